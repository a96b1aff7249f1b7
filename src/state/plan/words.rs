//! When two texts are the same words, whatever their marks of emphasis, their case and their white
//! space.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

static EMPHASIS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let marks = [("`", "`+"), ("*", r"\*{1,3}"), ("_", "_{1,3}"), ("~", "~~")];
    let around = |(own, mark): &(&str, &str)| {
        let (edge, inside) =
            (format!(r"[^\pL\pN\\{own}]"), format!(r"[^\s{own}](?:[^{own}]*[^\s{own}])?"));
        Regex::new(&format!("(^|{edge}){mark}({inside}){mark}($|{edge})"))
    };
    marks.iter().filter_map(|mark| around(mark).ok()).collect()
});

/// Times that marks inside marks are looked for.
const NESTED: usize = 3;

/// The text without marks of emphasis around its words. Symbols of other kinds stay: `<=` and `C++`
/// are words, too.
pub fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.contains(['`', '*', '_', '~']) {
        return text;
    }
    for _ in 0..NESTED {
        let before = text.clone();
        for around in EMPHASIS.iter() {
            // Neighbours share the character between them, which one pass sees only once.
            for _ in 0..2 {
                text = around.replace_all(&text, "$1$2$3").into_owned();
            }
        }
        if text == before {
            break;
        }
    }
    text
}

/// The form in which equal words are equal.
pub fn words(text: &str) -> String {
    let composed: String = text.nfc().collect();
    let lower: String = plain(&composed).to_lowercase();
    let parts = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}'));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_equal_whatever_their_form() {
        for (one, other) in [
            ("Caf\u{e9}", "Cafe\u{301}"),
            ("Port `customers` table", "port customers  Table"),
            ("**Ship** it", "Ship it"),
            ("*Ship* __it__", "ship it"),
            ("~~Old~~ (gone)", "old (gone)"),
            ("Fix `a` `b` `c`", "fix a b c"),
            ("a\u{a0}b", "A b"),
            ("**`x`** y", "x y"),
            ("***x*** y", "x y"),
        ] {
            assert_eq!(words(one), words(other), "{one} {other}");
        }
    }

    #[test]
    fn symbols_and_numbers_count() {
        for (one, other) in [
            ("Port to C", "Port to C++"),
            ("Port to C#", "Port to C"),
            ("a <= b", "a >= b"),
            ("Fix bug 101", "Fix bug 102"),
            ("snake_case_name", "snakecasename"),
            ("2*3*4", "234"),
            ("2 * 3", "2 3"),
            ("*.rs", ".rs"),
            ("Ship!", "Ship?"),
        ] {
            assert_ne!(words(one), words(other), "{one} {other}");
        }
    }
}
