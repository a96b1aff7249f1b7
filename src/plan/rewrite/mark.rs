//! Boxes, ticked and cleared in the form in which they were written.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::super::stated;

static BOX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(\\?\[)[^\[\]\\]*(\\?\])|[☐⬜🔲◻□❏❑☑✅✔✓☒🗹❌✗✘🚫⏳🔄🚧]\u{fe0f}?").ok()
});

/// Where the first box of `text` stands, and that box ticked or cleared.
pub(super) fn set(text: &str, is_done: bool) -> Option<(Range<usize>, String)> {
    let found = BOX.as_ref()?.captures(text)?;
    let whole = found.get(0)?;
    let mark = match (found.get(1), found.get(2)) {
        (Some(open), Some(close)) => {
            format!("{}{}{}", open.as_str(), if is_done { 'x' } else { ' ' }, close.as_str())
        }
        _ => if is_done { "☑" } else { "☐" }.to_owned(),
    };
    Some((whole.range(), mark))
}

/// A cell that says a status, saying another: `word`, where it has words.
pub(super) fn cell(text: &str, is_done: bool, word: &str) -> String {
    let Some((range, mark)) = set(text, is_done) else {
        let empty = if is_done { "[x]" } else { "[ ]" };
        return if text.is_empty() { empty } else { word }.to_owned();
    };
    if stated(&text[range.end..]).is_some() {
        format!("{mark} {word}")
    } else {
        format!("{}{mark}{}", &text[..range.start], &text[range.end..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_keep_their_form() {
        for (text, done, open) in [
            ("- [ ] ", "- [x] ", "- [ ] "),
            ("1. [X]", "1. [x]", "1. [ ]"),
            ("- \\[ \\] ", "- \\[x\\] ", "- \\[ \\] "),
            ("- [] ", "- [x] ", "- [ ] "),
            ("## [/] ", "## [x] ", "## [ ] "),
            ("• ☐ ", "• ☑ ", "• ☐ "),
            ("☑\u{fe0f} ", "☑ ", "☐ "),
        ] {
            for (is_done, expected) in [(true, done), (false, open)] {
                let (range, mark) = set(text, is_done).unwrap();
                assert_eq!(
                    format!("{}{mark}{}", &text[..range.start], &text[range.end..]),
                    expected
                );
            }
        }
        assert_eq!(set("- ", true), None);
    }

    #[test]
    fn cells_keep_their_form() {
        for (text, done, open) in [
            ("[ ]", "[x]", "[ ]"),
            ("✅", "☑", "☐"),
            ("", "[x]", "[ ]"),
            ("In progress", "Complete", "Planned"),
            ("❌ TODO", "☑ Complete", "☐ Planned"),
            ("[ ] Tag it", "[x] Tag it", "[ ] Tag it"),
        ] {
            assert_eq!(cell(text, true, "Complete"), done);
            assert_eq!(cell(text, false, "Planned"), open);
        }
    }
}
