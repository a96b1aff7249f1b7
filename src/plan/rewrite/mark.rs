//! Boxes, ticked and cleared in the form in which they were written.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

static BOX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(\\?\[)[^\[\]\\]*(\\?\])|[☐⬜🔲◻□❏❑☑✅✔✓☒🗹❌✗✘🚫]\u{fe0f}?").ok()
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
}
