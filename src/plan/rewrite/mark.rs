//! Boxes, ticked and cleared in the form in which they were written.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::super::stated;

static BOX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(\\?\[)[^\[\]\\]*(\\?\])|[☐⬜🔲◻□❏❑☑✅✔✓☒🗹❌✗✘🚫⏳🔄🚧]\u{fe0f}?").ok()
});

/// What stands in a box.
pub(super) const DONE: char = 'x';
pub(super) const OPEN: char = ' ';
pub(super) const CANCELLED: char = '-';

/// Where the first box of `text` stands, and that box with this in it.
pub(super) fn set(text: &str, inside: char) -> Option<(Range<usize>, String)> {
    let found = BOX.as_ref()?.captures(text)?;
    let whole = found.get(0)?;
    let mark = match (found.get(1), found.get(2)) {
        (Some(open), Some(close)) => {
            format!("{}{inside}{}", open.as_str(), close.as_str())
        }
        _ => match inside {
            DONE => "☑".to_owned(),
            OPEN => "☐".to_owned(),
            // There is no symbol for it.
            other => format!("[{other}]"),
        },
    };
    Some((whole.range(), mark))
}

/// A cell that says a status, saying another: `word`, where it has words.
pub(super) fn cell(text: &str, inside: char, word: &str) -> String {
    let Some((range, mark)) = set(text, inside) else {
        return if text.is_empty() { format!("[{inside}]") } else { word.to_owned() };
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
            for (inside, expected) in [(DONE, done), (OPEN, open)] {
                let (range, mark) = set(text, inside).unwrap();
                assert_eq!(
                    format!("{}{mark}{}", &text[..range.start], &text[range.end..]),
                    expected
                );
            }
        }
        assert_eq!(set("- ", DONE), None);
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
            assert_eq!(cell(text, DONE, "Complete"), done);
            assert_eq!(cell(text, OPEN, "Planned"), open);
        }
        for (text, off) in [
            ("[x]", "[-]"),
            ("☐", "[-]"),
            ("", "[-]"),
            ("Todo", "Cancelled"),
            ("☐ Tag it", "[-] Tag it"),
        ] {
            assert_eq!(cell(text, CANCELLED, "Cancelled"), off);
        }
    }
}
