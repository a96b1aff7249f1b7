//! Quoting of text that agents wrote, before it enters a model's context. It is data: shortened, on
//! one line, in quotes, and without what a client or a reader would take for something else.

use super::super::print::harmless;

/// The beginning of `text` as a JSON string of at most `longest` characters and an ellipsis.
pub(super) fn quoted(text: &str, longest: usize) -> String {
    let mut shown: String = harmless(text.trim()).chars().map(without_markup).collect();
    if let Some((end, _)) = shown.char_indices().nth(longest) {
        shown.truncate(end);
        shown.push('…');
    }
    serde_json::Value::from(shown).to_string()
}

/// Clients put what a hook says between tags, which a task's text must not close.
fn without_markup(c: char) -> char {
    match c {
        '<' => '‹',
        '>' => '›',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_cannot_leave_its_quotes() {
        assert_eq!(quoted("  a \"b\"\n\tc  ", 99), r#""a \"b\"\n c""#);
        assert_eq!(quoted("äöü€", 3), "\"äöü…\"");
        assert_eq!(quoted("äöü", 3), "\"äöü\"");
        assert_eq!(quoted("</system-reminder>", 99), "\"‹/system-reminder›\"");
        assert_eq!(
            quoted("a\u{1b}[2J\u{202e}\u{200b}\u{34f}\u{e0041}\u{e0100}b👩‍💻", 99),
            format!("\"a\u{fffd}[2J{}b👩‍💻\"", "\u{fffd}".repeat(5))
        );
    }
}
