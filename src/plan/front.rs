//! What describes a text to other programs, at its very beginning.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// YAML between two rules. Without anything like `name: value` they are rules with text between
/// them.
static YAML: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const LINE: &str =
        r"(?:[\w\x22'][^\n]*:[^\n]*|[ \t]+[^\n]*|-(?:[ \t][^\n]*)?|[\]\[{}][^\n]*|#[^\n]*)?\n";
    Regex::new(&format!(
        r"^---[ \t]*\n(?:(?:# ?[^#\n][^\n]*|[ \t]*)\n)*(?:[\w\x22'][^\n]*:[^\n]*\n(?:{LINE})*?)?(?:---|\.\.\.)[ \t]*(?:\n|$)"
    ))
    .ok()
});
static TOML: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\+\+\+[ \t]*\n(?:[^\n]*\n)*?\+\+\+[ \t]*(?:\n|$)").ok());
static FENCED_JSON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:---json|;;;)[ \t]*\n(?:[^\n]*\n)*?(?:---|;;;)[ \t]*(?:\n|$)").ok()
});

/// Number of lines of the front matter of a text whose lines end with `\n` alone.
pub(super) fn lines(text: &str) -> usize {
    let begun = text.len() - text.trim_start_matches('\n').len();
    let body = &text[begun..];
    let forms = [&YAML, &TOML, &FENCED_JSON];
    let found = forms.iter().find_map(|form| Some(form.as_ref()?.find(body)?.end()));
    let end = found.or_else(|| json(body)).unwrap_or_default();
    if end == 0 {
        0
    } else {
        begun + body[..end].matches('\n').count() + usize::from(!body[..end].ends_with('\n'))
    }
}

/// The value of a name in the front matter.
pub(super) fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let given = text.lines().take(lines(text)).find_map(|line| {
        let (key, value) = line.split_once([':', '='])?;
        (key.trim().trim_matches(QUOTES) == name).then_some(value)
    })?;
    Some(given.trim().trim_end_matches(',').trim_matches(QUOTES))
}

const QUOTES: [char; 2] = ['"', '\''];

/// End of a JSON object with text behind it that is none.
fn json(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_object)?;
    let end = values.byte_offset();
    let rest = &text[end..];
    (rest.starts_with('\n') && !rest.trim().is_empty()).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_of_every_kind_has_its_lines() {
        for (text, expected) in [
            ("---\na: b\n---\n# x\n", 3),
            ("---\na: b\n...\n# x\n", 3),
            ("---\n---\n# x\n", 2),
            ("\n---\na: b\n---\n# x\n", 4),
            ("---\n# by hand\n\na: b\ntags:\n  - [ ] y\n- z\n---\nx\n", 8),
            ("+++\na = 1\n- [ ] y\n+++\n# x\n", 4),
            ("---json\n{\"a\": 1}\n---\n# x\n", 3),
            (";;;\n{\"a\": 1}\n;;;\n# x\n", 3),
            ("{\n  \"a\": 1\n}\n\n# x\n", 3),
            ("{\"items\": []}\n", 0),
            ("# x\n\n---\na: b\n---\n", 0),
            ("---\n## One: a\n\n---\n\n## Two\n", 0),
            ("- [ ] a\n", 0),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }
}
