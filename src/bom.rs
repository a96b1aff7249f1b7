//! The byte order mark that some editors and shells put before text in UTF-8. It means nothing
//! there, but JSON and TOML do not allow it, so every reader of foreign text skips it here.

const MARK: &str = "\u{feff}";

/// The text after its mark, if it has one.
pub(crate) fn skip(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// As [`skip`], for what may not be UTF-8.
pub(crate) fn skip_bytes(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK.as_bytes()).unwrap_or(bytes)
}

/// As [`skip`], for a text that is kept.
pub(crate) fn skipped(mut text: String) -> String {
    if text.starts_with(MARK) {
        text.drain(..MARK.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mark_is_skipped_and_only_at_the_beginning() {
        for (given, rest) in [
            ("\u{feff}{}", "{}"),
            ("{}", "{}"),
            ("", ""),
            ("\u{feff}", ""),
            ("a\u{feff}", "a\u{feff}"),
        ] {
            assert_eq!(skip(given), rest);
            assert_eq!(skip_bytes(given.as_bytes()), rest.as_bytes());
            assert_eq!(skipped(given.to_owned()), rest);
        }
        assert_eq!(skip_bytes(b"\xef\xbb"), b"\xef\xbb");
    }
}
