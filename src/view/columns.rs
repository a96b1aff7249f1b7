//! Texts in columns of a terminal: what counts is how wide they are shown.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::harmless::shown::harmless;
use crate::state::time::{DAY, MINUTE, SECOND};

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The first line of `text`, with an ellipsis where it is wider than `most`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line = harmless(text.lines().next().unwrap_or_default());
    if width(&line) <= most {
        return line;
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used < most
    };
    let kept: String = line.chars().take_while(fits).collect();
    if most == 0 { String::new() } else { format!("{}…", kept.trim_end()) }
}

/// `text` cut or filled up with spaces to `wide` columns.
pub(crate) fn left(text: &str, wide: usize) -> String {
    let text = cut(text, wide);
    let missing = wide.saturating_sub(width(&text));
    text + &" ".repeat(missing)
}

/// The same, at the right edge of its column.
pub(crate) fn right(text: &str, wide: usize) -> String {
    let text = cut(text, wide);
    " ".repeat(wide.saturating_sub(width(&text))) + &text
}

/// The width of the widest, at most `most`.
pub(crate) fn widest<'t>(texts: impl Iterator<Item = &'t str>, most: usize) -> usize {
    texts.map(width).max().unwrap_or_default().min(most)
}

/// As many of `items` as fit into `room`, with ` · ` between them, and how many they are.
pub(crate) fn joined(items: &[String], room: usize) -> (String, usize) {
    let mut line = String::new();
    for (count, item) in items.iter().enumerate() {
        let gap = if line.is_empty() { "" } else { " · " };
        if width(&line) + width(gap) + width(item) > room {
            return (line, count);
        }
        line.push_str(gap);
        line.push_str(item);
    }
    (line, items.len())
}

/// `text` broken where it is wider than `room`, between words where it can be; `used` columns of the
/// first line are taken. Spaces stay, because they may be an indentation.
pub(crate) fn folded(text: &str, used: usize, room: usize) -> Vec<String> {
    let room = room.max(1);
    let (mut lines, mut line, mut wide) = (Vec::new(), String::new(), used);
    for word in text.split_inclusive([' ', '\n']) {
        if wide > 0 && wide + width(word.trim_end()) > room {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            wide = 0;
        }
        for c in word.chars() {
            let own = c.width().unwrap_or_default();
            if c == '\n' || wide > 0 && wide + own > room && c != ' ' {
                lines.push(std::mem::take(&mut line));
                wide = 0;
            }
            if c != '\n' {
                line.push(c);
                wide += own;
            }
        }
    }
    lines.push(line);
    lines
}

/// A span in two to four characters: `12s`, `41m`, `3h`, `2d`.
pub(crate) fn span(millis: i64) -> String {
    match millis {
        ..MINUTE => format!("{}s", millis.max(0) / SECOND),
        MINUTE..6_000_000 => format!("{}m", millis / MINUTE),
        6_000_000..172_800_000 => format!("{}h", (millis + 30 * MINUTE) / (60 * MINUTE)),
        _ => format!("{}d", (millis + DAY / 2) / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_how_wide_they_are_shown() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("plainer", 5), "plai…");
        assert_eq!(cut("日本語の題", 5), "日本…");
        assert_eq!(cut("one\ntwo", 9), "one");
        assert_eq!(cut("word and more", 6), "word…");
        assert_eq!(cut("a", 0), "");
        for wide in 0..12 {
            assert_eq!(width(&left("日本語の題", wide)), wide);
            assert_eq!(width(&right("e\u{301}t\u{e9}", wide)), wide);
        }
    }

    #[test]
    fn texts_are_folded_between_words_and_within_long_ones() {
        assert_eq!(folded("one two three", 0, 7), ["one two", "three"]);
        assert_eq!(folded("one two", 5, 7), ["", "one two"]);
        assert_eq!(folded("abcdefgh", 0, 3), ["abc", "def", "gh"]);
        assert_eq!(folded("日本語", 0, 5), ["日本", "語"]);
        assert_eq!(folded("日本", 0, 1), ["日", "本"]);
        assert_eq!(folded("a\n\n  b", 0, 9), ["a", "", "  b"]);
        assert_eq!(folded("", 3, 9), [""]);
    }

    #[test]
    fn items_are_joined_as_far_as_they_fit() {
        let items = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(joined(&items, 9), ("one · two".to_owned(), 2));
        assert_eq!(joined(&items, 80).1, 3);
        assert_eq!(joined(&items, 2), (String::new(), 0));
    }

    #[test]
    fn spans_are_short() {
        let told = [0, 59_999, MINUTE, 99 * MINUTE, 100 * MINUTE, 47 * 60 * MINUTE, 3 * DAY];
        assert_eq!(told.map(span), ["0s", "59s", "1m", "99m", "2h", "47h", "3d"]);
    }
}
