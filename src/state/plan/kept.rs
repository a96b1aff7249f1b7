//! The text of a plan as it was given. The event of its import keeps it, so that an export returns
//! it.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A plan's text, cleaned, with `\n` at the end of each line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct KeptText {
    pub text: String,
    /// How its lines ended; empty if all of them ended with `\n`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_ends: Vec<LineEnds>,
}

/// How some lines end, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineEnds {
    pub end: LineEnd,
    pub lines: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    Lf,
    Crlf,
    Cr,
}

impl LineEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

impl LineEnds {
    /// How the lines of `text` end; empty if all of them end with `\n`.
    pub fn of(text: &str) -> Vec<Self> {
        if !text.contains('\r') {
            return Vec::new();
        }
        let mut all: Vec<Self> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['\r', '\n']) {
            let end = match &rest[at..] {
                end if end.starts_with("\r\n") => LineEnd::Crlf,
                end if end.starts_with('\r') => LineEnd::Cr,
                _ => LineEnd::Lf,
            };
            rest = &rest[at + end.as_str().len()..];
            match all.last_mut().filter(|last| last.end == end) {
                Some(last) => last.lines += 1,
                None => all.push(Self { end, lines: 1 }),
            }
        }
        all
    }
}

impl KeptText {
    /// The end of each line, in order. The last line may have none.
    pub fn ends(&self) -> Vec<&'static str> {
        let count = self.text.matches('\n').count();
        let known = self
            .line_ends
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.end, run.lines.min(count)));
        known.chain(std::iter::repeat(LineEnd::Lf)).take(count).map(LineEnd::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_they_did() {
        for text in ["a\nb", "a\r\nb\r\n", "a\rb\nc\r\n\r\nd", "", "\r\n", "\n\r"] {
            let kept = KeptText {
                text: text.replace("\r\n", "\n").replace('\r', "\n"),
                line_ends: LineEnds::of(text),
            };
            let mut ends = kept.ends().into_iter();
            let whole: String = kept
                .text
                .split('\n')
                .map(|line| format!("{line}{}", ends.next().unwrap_or_default()))
                .collect();
            assert_eq!(whole, text);
        }
        assert_eq!(LineEnds::of("a\nb\n"), []);
    }
}
