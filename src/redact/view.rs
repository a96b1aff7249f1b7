//! A text as it is meant: without the characters that no reader sees, which could hide a secret
//! from the search by standing in the middle of it, and with signs of ASCII instead of their wide
//! and escaped forms.

use std::ops::Range;

use crate::harmless::is_unseen;

/// A text without unseen characters.
pub(super) struct View {
    pub text: String,
    /// Where something was left out, and all bytes left out up to there. A place before a byte of
    /// `text` is twice its number, one within a character that was written longer is one more.
    gaps: Vec<(usize, usize)>,
}

impl View {
    /// `None` if nothing is to be left out of `given`.
    pub(super) fn of(given: &str) -> Option<Self> {
        let is_plain = |byte: u8| matches!(byte, b'\n' | b'\r' | b'\t' | b' '..=b'~');
        let is_written_longer = || LONGER.iter().any(|mark| given.contains(mark));
        if given.bytes().all(is_plain) && !is_written_longer() {
            return None;
        }
        let mut view = Self { text: String::with_capacity(given.len()), gaps: Vec::new() };
        let mut letters = given.char_indices().peekable();
        while let Some((at, c)) = letters.next() {
            if let Some((meant, length)) = longer(&given[at..]) {
                view.leave_out(2 * view.text.len() + 1, length - 1);
                view.text.push(meant);
                while letters.next_if(|(next, _)| *next < at + length).is_some() {}
                continue;
            }
            if !is_left_out(c) {
                view.text.push(c);
                continue;
            }
            // A sequence that colours: parameters, then the letter that ends it.
            if c == '\u{1b}' && letters.next_if(|(_, next)| *next == '[').is_some() {
                while letters.next_if(|(_, next)| matches!(next, ' '..='?')).is_some() {}
                letters.next_if(|(_, next)| matches!(next, '@'..='~'));
            }
            let end = letters.peek().map_or(given.len(), |(next, _)| *next);
            view.leave_out(2 * view.text.len(), end - at);
        }
        (!view.gaps.is_empty()).then_some(view)
    }

    fn leave_out(&mut self, at: usize, bytes: usize) {
        let before = self.gaps.last().map_or(0, |(_, before)| *before);
        self.gaps.push((at, before + bytes));
    }

    /// The place in the given text of a place in the view: what is left out before and behind it
    /// does not belong to it.
    pub(super) fn original(&self, place: &Range<usize>) -> Range<usize> {
        let moved = |before: usize| {
            let gaps = self.gaps.partition_point(|(at, _)| *at < before);
            gaps.checked_sub(1).map_or(0, |last| self.gaps[last].1)
        };
        place.start + moved(2 * place.start + 1)..place.end + moved(2 * place.end)
    }
}

/// What begins the longer forms of a sign, beside the wide ones, and the texts of those.
const LONGER: [&str; 3] = ["&", "\\u00", "%"];
const NAMED: [(&str, char); 12] = [
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&#x27;", '\''),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("%22", '"'),
    ("%27", '\''),
    ("%3A", ':'),
    ("%3a", ':'),
    ("%7B", '{'),
];

/// The sign that a text begins with in a longer form, and the bytes of that.
fn longer(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    if let '\u{ff01}'..='\u{ff5e}' = first {
        return Some((char::from_u32(u32::from(first) - 0xfee0)?, first.len_utf8()));
    }
    if let Some(code) = text.strip_prefix("\\u00") {
        let sign = u8::from_str_radix(code.get(..2)?, 16).ok().filter(u8::is_ascii_graphic)?;
        return Some((char::from(sign), "\\u0000".len()));
    }
    let named = NAMED.iter().filter(|_| matches!(first, '&' | '%'));
    let (form, meant) = named.into_iter().find(|(form, _)| text.starts_with(form))?;
    Some((*meant, form.len()))
}

/// Characters that are obeyed or not seen, and the one that stands for one which was taken out.
fn is_left_out(c: char) -> bool {
    is_unseen(c)
        || c == char::REPLACEMENT_CHARACTER
        || c.is_control() && !matches!(c, '\n' | '\r' | '\t')
        || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_to_the_given_text() {
        let given = "a\u{200b}\u{7}bc\u{fffd}\u{1b}[31md\u{202e} e";
        let view = View::of(given).unwrap();
        assert_eq!(view.text, "abcd e");
        assert_eq!(&given[view.original(&(1..3))], "bc");
        assert_eq!(&given[view.original(&(0..4))], "a\u{200b}\u{7}bc\u{fffd}\u{1b}[31md");
        assert_eq!(&given[view.original(&(3..6))], "d\u{202e} e");
        let given = "x&quot;ｐｗ＝ａb\\u0022\u{200b}c";
        let view = View::of(given).unwrap();
        assert_eq!(view.text, "x\"pw=ab\"c");
        assert_eq!(&given[view.original(&(2..4))], "ｐｗ");
        assert_eq!(&given[view.original(&(5..7))], "ａb");
        assert_eq!(&given[view.original(&(1..5))], "&quot;ｐｗ＝");
        assert_eq!(&given[view.original(&(8..9))], "c");
        assert!(View::of("naïve 日本\n\tשלום").is_none());
    }
}
