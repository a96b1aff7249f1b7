//! Makes what agents write harmless: nothing is left that could deceive a terminal, an editor or a
//! reader.
//!
//! Done when a text comes in, once for all places where it may later be shown. Sequences that
//! colour or move are dropped; line ends become `\n`; every other control character but `\t`, what
//! reverses the direction of text, and invisible tag characters become U+FFFD.

pub mod shown;
pub mod tags;

use serde_json::Value;

/// `text` made harmless; `None` if it already is.
pub fn text(text: &str) -> Option<String> {
    if !text.chars().any(is_obeyed) {
        return None;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => {
                rest.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // Parameters, then the letter that ends the sequence.
                while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
                rest.next_if(|c| matches!(c, '@'..='~'));
            }
            c if is_obeyed(c) => clean.push(char::REPLACEMENT_CHARACTER),
            c => clean.push(c),
        }
    }
    Some(clean)
}

/// Makes every text in `value` harmless.
pub fn value(value: &mut Value) {
    each_text(value, text);
}

/// Replaces every text in `value`, also names of fields, by what `clean` makes of it, if that is
/// another.
fn each_text(value: &mut Value, clean: fn(&str) -> Option<String>) {
    match value {
        Value::String(string) => {
            if let Some(cleaned) = clean(string) {
                *string = cleaned;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, clean)),
        Value::Object(fields) => {
            if fields.keys().any(|name| clean(name).is_some()) {
                let named = std::mem::take(fields).into_iter();
                *fields =
                    named.map(|(name, value)| (clean(&name).unwrap_or(name), value)).collect();
            }
            fields.values_mut().for_each(|value| each_text(value, clean));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Unicode's default-ignorable characters: invisible to people, and skipped by some models.
pub fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_deceives_goes_and_the_text_stays() {
        let clean = |given: &str| text(given).unwrap_or_else(|| given.to_owned());
        assert_eq!(clean("\u{1b}[1;31merror\u{1b}[0m: a\r\nb\rc\td"), "error: a\nb\nc\td");
        assert_eq!(
            clean("a\u{202e}b\u{7}c\u{9b}d\u{e0041}e\u{1b}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}"
        );
        assert_eq!(text("naïve 日本 👩‍💻 שלום\n\tx"), None);
    }

    #[test]
    fn names_of_fields_are_texts_too() {
        let mut given = json!({"data": {"a\u{202e}": ["\u{1b}[2Jx"]}});
        value(&mut given);
        assert_eq!(given, json!({"data": {"a\u{fffd}": ["x"]}}));
    }
}
