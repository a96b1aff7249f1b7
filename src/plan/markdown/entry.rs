//! What begins a line: the bullet or number of an entry, and the box that makes it an item.

use crate::state::plan::Stated;

/// A line that is an entry of a list, or has a box.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'t> {
    pub mark: Option<Mark>,
    pub text: &'t str,
}

/// A box, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub status: Stated,
    /// The box as written, if Markdown does not say what it means.
    pub unusual: Option<String>,
    /// True for a symbol, which stands in texts that are no work, too; false for a box in brackets.
    pub is_sign: bool,
}

impl Mark {
    pub(crate) fn of(status: Stated) -> Self {
        Self { status, unusual: None, is_sign: false }
    }
}

const BULLETS: &str = "-*+–—•‣◦▪●○·∙";
/// Most digits of a number that begins an entry.
const DIGITS: usize = 9;
const OPEN: &str = "☐⬜🔲◻□❏❑";
const DONE: &str = "☑✅✔✓☒🗹";
/// Only words call something off.
const NOT_DONE: &str = "❌✗✘🚫";
/// Symbols that are marks behind a bullet and in a cell; elsewhere they adorn.
const ON_THE_WAY: &str = "⏳🔄🚧";
/// Follows a symbol that is to be shown in colour.
const IN_COLOUR: char = '\u{fe0f}';

pub(super) fn is_tick(c: char) -> bool {
    DONE.contains(c)
}

pub(super) fn is_on_the_way(c: char) -> bool {
    ON_THE_WAY.contains(c)
}

/// White space, and what takes no room at all.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// The text without white space at either end.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The column in which the line's text begins, and the text from there on.
pub(crate) fn indented(line: &str) -> (usize, &str) {
    let mut column = 0;
    for (at, c) in line.char_indices() {
        match c {
            '\t' => column += 4 - column % 4,
            c if is_blank(c) => column += 1,
            _ => return (column, &line[at..]),
        }
    }
    (column, "")
}

/// Reads a line, without its indent, as an entry.
pub(crate) fn entry(text: &str) -> Option<Entry<'_>> {
    if is_rule(text) {
        return None;
    }
    match bullet(text) {
        Some(after) => {
            let after = after.trim_start_matches(is_blank);
            // Struck out with its box, an entry is one that is struck out.
            let struck = after
                .strip_prefix("~~")
                .and_then(|struck| mark(struck))
                .filter(|_| after.ends_with("~~"));
            if let Some((mark, _)) = struck {
                return Some(Entry {
                    mark: Some(Mark { status: Stated::Obsolete, ..mark }),
                    text: unstruck(after),
                });
            }
            let (mark, text) = mark(after).map_or((None, after), |(mark, text)| (Some(mark), text));
            Some(Entry { mark, text: trimmed(text) })
        }
        None => {
            let (mark, after) = mark(text).filter(|_| !text.starts_with(is_on_the_way))?;
            // A word in brackets may begin a sentence, and empty ones may be named in it.
            let is_box =
                !text.starts_with("[]") && (after.starts_with(is_blank) || !text.starts_with('['));
            let text = trimmed(after);
            (is_box && !text.is_empty()).then_some(Entry { mark: Some(mark), text })
        }
    }
}

/// The text of an entry that is struck out with its box.
fn unstruck(text: &str) -> &str {
    let inside = text.trim_matches('~');
    mark(inside).map_or(inside, |(_, text)| trimmed(text))
}

/// A line between two parts of a text, as `---`.
pub(crate) fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| !is_blank(*c));
    let first = marks.next().filter(|first| "-*_".contains(*first));
    first.is_some_and(|first| marks.clone().count() >= 2 && marks.all(|mark| mark == first))
}

/// The text after a bullet or number, which has a space or a box behind it.
pub(crate) fn bullet(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = match digits {
        0 => text.strip_prefix(|c| BULLETS.contains(c))?,
        1..=DIGITS => text[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    let is_apart = after.starts_with(is_blank) && !trimmed(after).is_empty();
    (is_apart || mark(after).is_some()).then_some(after)
}

/// The box at the beginning of the text, and the text behind it.
pub(crate) fn mark(text: &str) -> Option<(Mark, &str)> {
    let first = text.chars().next()?;
    let symbol = |status, unusual: Option<char>| {
        let after = text[first.len_utf8()..].trim_start_matches(IN_COLOUR);
        Some((Mark { status, unusual: unusual.map(String::from), is_sign: true }, after))
    };
    match first {
        c if OPEN.contains(c) => return symbol(Stated::Open, None),
        c if DONE.contains(c) => return symbol(Stated::Done, None),
        c if NOT_DONE.contains(c) || is_on_the_way(c) => return symbol(Stated::Open, Some(c)),
        _ => {}
    }
    // Some editors put backslashes before brackets that they did not make themselves.
    let inside = text.strip_prefix("\\[").or_else(|| text.strip_prefix('['))?;
    let (inside, after) = inside.split_once(']')?;
    let inside = trimmed(inside.strip_suffix('\\').unwrap_or(inside)).trim_end_matches(IN_COLOUR);
    if after.starts_with(['(', '[', ':']) {
        return None;
    }
    let unusual = || Some(format!("[{inside}]"));
    let mut characters = inside.chars();
    let (status, unusual) = match (characters.next(), characters.next()) {
        (None, _) => (Stated::Open, None),
        (Some('x' | 'X'), None) => (Stated::Done, None),
        (Some(c), None) if DONE.contains(c) => (Stated::Done, None),
        (Some('-' | '–' | '—'), None) => (Stated::Cancelled, unusual()),
        (Some(c), None) if !c.is_alphanumeric() => (Stated::Open, unusual()),
        _ => return None,
    };
    // A star right behind the box says that the task is optional.
    let star = after.strip_prefix("\\*").or_else(|| after.strip_prefix('*'));
    let after = star.filter(|after| after.starts_with(is_blank)).unwrap_or(after);
    Some((Mark { status, unusual, is_sign: false }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_every_form_are_entries() {
        let cases = [
            ("- [ ] a", Stated::Open),
            ("* [ ] a", Stated::Open),
            ("+ [ ] a", Stated::Open),
            ("1. [ ] a", Stated::Open),
            ("12) [x] a", Stated::Done),
            ("- [X] a", Stated::Done),
            ("-[ ] a", Stated::Open),
            ("-[x]a", Stated::Done),
            ("1.[ ] a", Stated::Open),
            ("[ ] a", Stated::Open),
            ("[x] a", Stated::Done),
            ("– [ ] a", Stated::Open),
            ("— [x] a", Stated::Done),
            ("• [ ] a", Stated::Open),
            ("• ☐ a", Stated::Open),
            ("☐ a", Stated::Open),
            ("☑ a", Stated::Done),
            ("☑\u{fe0f} a", Stated::Done),
            ("✅ a", Stated::Done),
            ("- ✅ a", Stated::Done),
            ("- [\u{a0}] a", Stated::Open),
            ("- [ ]\u{a0}a", Stated::Open),
            ("-\u{a0}[ ] a", Stated::Open),
            ("-\u{a0}[\u{a0}]\u{a0}a", Stated::Open),
            ("- [] a", Stated::Open),
            ("- [  ] a", Stated::Open),
            ("- [ x ] a", Stated::Done),
            ("- \\[ \\] a", Stated::Open),
            ("- \\[x\\] a", Stated::Done),
            ("- [/] a", Stated::Open),
            ("- [~] a", Stated::Open),
            ("- [-] a", Stated::Cancelled),
            ("- [ ]* a", Stated::Open),
            ("- [ ]\\* a", Stated::Open),
            ("- 🚧 a", Stated::Open),
            ("❌ a", Stated::Open),
            ("- ~~[ ] a~~", Stated::Obsolete),
        ];
        for (text, status) in cases {
            let found = entry(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (found.mark.map(|mark| mark.status), found.text),
                (Some(status), "a"),
                "{text}"
            );
        }
    }

    #[test]
    fn links_rules_and_words_are_not_boxes() {
        for text in ["- [x](a.md) b", "- [1] docs", "- [ab] c", "- plain", "1. plain", "• plain"]
        {
            assert_eq!(entry(text).unwrap_or_else(|| panic!("{text}")).mark, None, "{text}");
        }
        for text in [
            "---",
            "* * *",
            "**bold** words",
            "[x]: https://a",
            "[] is the empty list",
            "[a] b",
            "[x](a) b",
            "-5 degrees",
            "1.5 litres",
            "words",
            "[ ]",
            "-",
            "🚧 a",
        ] {
            assert_eq!(entry(text), None, "{text}");
        }
    }
}
