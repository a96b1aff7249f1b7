//! Texts on their way to a terminal.

use std::fmt::Write as _;

use super::is_unseen;

/// `text` with tabs as spaces, and with each character replaced that a terminal would obey instead
/// of show. Line breaks stay.
pub fn harmless(text: &str) -> String {
    with_tabs(text).replace('\t', " ")
}

/// Like [`harmless`], but with tabs kept, for text that programs read again.
///
/// Agents write what is printed here; see CVE-2021-42574 for what bidirectional controls can hide.
pub fn with_tabs(text: &str) -> String {
    let mut before = ' ';
    let shown = text.chars().map(|c| {
        let shown = match c {
            '\n' | '\t' => c,
            c if is_obeyed(c) || is_unseen(c) && !joins(before, c) => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        before = c;
        shown
    });
    shown.collect()
}

/// Whether the character, which is not seen, gives the one before it another form: in emoji and in
/// scripts whose letters join.
fn joins(before: char, c: char) -> bool {
    let follows = match c {
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' => {
            !before.is_ascii() && !is_unseen(before)
        }
        '\u{fe00}'..='\u{fe0f}' => !before.is_ascii_alphabetic() && !is_unseen(before),
        _ => false,
    };
    follows || before == '\u{fe0f}' && c == '\u{200d}'
}

/// JSON with the characters escaped that a terminal would obey. They occur only inside its strings.
pub fn harmless_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_obeyed(c) {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| _ = write!(escaped, "\\u{unit:04x}"));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        assert_eq!(
            harmless("a\x1b[2Jb\u{9b}c\u{202e}d\r\x07\te\nf"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}\u{fffd} e\nf"
        );
        for kept in ["naïve 日本 👩‍💻", "❤️‍🔥 1️⃣", "می\u{200c}خواهم"]
        {
            assert_eq!(harmless(kept), kept);
        }
        for unseen in [0x200b, 0x200d, 0x200f, 0x2060, 0x2064, 0xfeff, 0xad, 0x61c, 0x3164, 0xe0041]
        {
            let unseen = char::from_u32(unseen).expect("a character");
            assert_eq!(harmless(&format!("cl{unseen}aude")), "cl\u{fffd}aude", "{unseen:?}");
        }
    }

    #[test]
    fn escaped_json_says_the_same() {
        let value = serde_json::json!({"a": "\u{9b}2J\u{202e}\x1b\u{e0041}\u{7f}"});
        let json = harmless_json(&value.to_string());
        assert!(json.chars().all(|c| !is_obeyed(c)), "{json}");
        assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), value);
    }
}
