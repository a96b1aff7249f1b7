//! A text as it is meant: without the characters that no reader sees, which could hide a secret
//! from the search by standing in the middle of it.

use std::ops::Range;

use crate::harmless::is_unseen;

/// A text without unseen characters.
pub(super) struct View {
    pub text: String,
    /// Places in `text` where something was left out, and all bytes left out up to there.
    gaps: Vec<(usize, usize)>,
}

impl View {
    /// `None` if nothing is to be left out of `given`.
    pub(super) fn of(given: &str) -> Option<Self> {
        let is_plain = |byte: u8| matches!(byte, b'\n' | b'\r' | b'\t' | b' '..=b'~');
        if given.bytes().all(is_plain) || !given.chars().any(is_left_out) {
            return None;
        }
        let mut view = Self { text: String::with_capacity(given.len()), gaps: Vec::new() };
        let mut letters = given.char_indices().peekable();
        while let Some((at, c)) = letters.next() {
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
            view.gaps.push((view.text.len(), end - view.text.len()));
            debug_assert!(at < end);
        }
        Some(view)
    }

    /// The place in the given text of a place in the view: what is left out before and behind it
    /// does not belong to it.
    pub(super) fn original(&self, place: &Range<usize>) -> Range<usize> {
        let moved = |before: usize| {
            let gaps = self.gaps.partition_point(|(at, _)| *at < before);
            gaps.checked_sub(1).map_or(0, |last| self.gaps[last].1)
        };
        place.start + moved(place.start + 1)..place.end + moved(place.end)
    }
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
        assert!(View::of("naïve 日本\n\tשלום").is_none());
    }
}
