//! Output for people: one page of text, tables, colours, times, and nothing that a terminal would
//! obey.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use serde_json::Value;

use crate::state::task::TaskStatus;
use crate::state::time::{MINUTE, Timestamp};

/// Longest headline in a table, in characters.
const HEADLINE: usize = 80;
/// Least width of a table's last column, in characters, however narrow the terminal is.
const LAST: u16 = 12;

/// Output for people, composed completely before anything is written.
pub(super) struct Page {
    text: String,
    coloured: bool,
    now: Timestamp,
}

impl Page {
    /// `now` is the time from which the ages of things are counted.
    pub(super) fn new(coloured: bool, now: Timestamp) -> Self {
        Self { text: String::new(), coloured, now }
    }

    pub(super) fn line(&mut self, line: impl fmt::Display) {
        self.text.push_str(&harmless(&line.to_string()));
        self.text.push('\n');
    }

    /// Adds `name` and a value, unless the value is empty; its further lines are indented.
    pub(super) fn field(&mut self, name: &str, value: impl fmt::Display) {
        let value = harmless(value.to_string().trim_end());
        if !value.is_empty() {
            let name = self.paint(&format!("{name}:"), AnsiColor::BrightBlack.on_default());
            let _ = writeln!(self.text, "{name} {}", value.replace('\n', "\n  "));
        }
    }

    /// Adds a line that begins with a coloured word; further lines are indented.
    pub(super) fn marked(&mut self, word: &str, tone: Tone, rest: impl fmt::Display) {
        let word = self.paint(word, tone.style());
        let _ = writeln!(self.text, "{word} {}", harmless(&rest.to_string()).replace('\n', "\n  "));
    }

    /// Adds one line: what it is about, a coloured word, and the first line of the rest.
    pub(super) fn entry(&mut self, lead: &str, word: &str, tone: Tone, rest: impl fmt::Display) {
        let lead = self.paint(&harmless(lead), AnsiColor::BrightBlack.on_default());
        let word = self.paint(word, tone.style());
        let _ = writeln!(self.text, "{lead} {word} {}", headline(&rest.to_string()));
    }

    /// Adds rows under a header. Cells hold one line each. Only the last column is cut to the width
    /// of the terminal, so that ids in the others stay whole.
    pub(super) fn table<const N: usize>(
        &mut self,
        header: [&str; N],
        rows: impl Iterator<Item = [Column; N]>,
    ) {
        let mut table = Table::new();
        // Some terminals report a width of zero.
        let width = table.width().filter(|width| *width > 0);
        table.style_text_only();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.coloured {
            // The table would look at NO_COLOR again; here it has already been weighed against
            // --color.
            crossterm::style::force_color_output(true);
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(header.map(|name| Cell::new(name.to_uppercase())));
        table.add_rows(rows.map(|cells| {
            let cells = cells.into_iter().enumerate();
            Row::from(cells.map(|(column, cell)| cell.cell(column + 1 == N)).collect::<Vec<_>>())
        }));
        table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 2)));
        if let Some(width) = width {
            table.row_iter_mut().for_each(|row| _ = row.max_height(1));
            let taken: u16 =
                table.column_max_content_widths().iter().take(N - 1).map(|taken| taken + 2).sum();
            // The width includes padding, which is not printed.
            let left = Width::Fixed(width.saturating_sub(taken).max(LAST) + 2);
            if let Some(last) = table.column_mut(N - 1) {
                last.set_constraint(ColumnConstraint::UpperBoundary(left));
            }
        }
        for line in table.lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    /// A time relative to now: `3 min ago`, `in 2 h`.
    pub(super) fn when(&self, time: Timestamp) -> String {
        let (ahead, span) = (time > self.now, time.since(self.now).max(self.now.since(time)));
        let text = match (span, (span + MINUTE / 2) / MINUTE) {
            (0..5_000, _) => return "just now".to_owned(),
            (5_000..MINUTE, _) => format!("{} s", (span + 500) / 1_000),
            (_, minutes @ 0..=59) => format!("{minutes} min"),
            (_, minutes @ 60..=2_880) => format!("{} h", (minutes + 30) / 60),
            (_, minutes) => format!("{} days", (minutes + 720) / 1_440),
        };
        if ahead { format!("in {text}") } else { format!("{text} ago") }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        unless_reader_left(out.write_all(self.text.as_bytes()).and_then(|()| out.flush()))
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Ignores a reader that has left: what the command did stands, and its exit code tells. Any other
/// failure to write must not look like a failure of the command.
pub(super) fn unless_reader_left(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        kind => Err(io::Error::new(
            kind,
            format!("done, but the answer could not be written to standard output: {error}"),
        )),
    })
}

/// Prints JSON: indented on a terminal, on one line for programs.
pub(super) fn json(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text =
        if out.is_terminal() { serde_json::to_string_pretty(value)? } else { value.to_string() };
    unless_reader_left(writeln!(out, "{}", harmless_json(&text)))
}

/// Meaning of a word, which decides its colour.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Good,
    Busy,
    Waiting,
    Bad,
    Over,
}

impl Tone {
    pub(super) fn of(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Available => Self::Waiting,
            TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Review => Self::Busy,
            TaskStatus::Done => Self::Good,
            TaskStatus::Failed => Self::Bad,
            TaskStatus::Cancelled | TaskStatus::Obsolete => Self::Over,
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Busy => AnsiColor::Yellow.on_default(),
            Self::Waiting => AnsiColor::Cyan.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Over => AnsiColor::BrightBlack.on_default(),
        }
    }

    fn colour(self) -> Color {
        match self {
            Self::Plain => Color::Reset,
            Self::Good => Color::DarkGreen,
            Self::Busy => Color::DarkYellow,
            Self::Waiting => Color::DarkCyan,
            Self::Bad => Color::DarkRed,
            Self::Over => Color::DarkGrey,
        }
    }
}

/// One cell of a table.
pub(super) struct Column(String, Tone);

impl Column {
    pub(super) fn toned(text: impl fmt::Display, tone: Tone) -> Self {
        Self(text.to_string(), tone)
    }

    fn cell(self, is_last: bool) -> Cell {
        let cell = Cell::new(if is_last { headline(&self.0) } else { first_line(&self.0) });
        match self.1 {
            Tone::Plain => cell,
            tone => cell.fg(tone.colour()),
        }
    }
}

impl<T: fmt::Display> From<T> for Column {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

fn first_line(text: &str) -> String {
    harmless(text.lines().next().unwrap_or_default())
}

/// The first line of a text, cut to what a table can hold.
pub(super) fn headline(text: &str) -> String {
    let line = first_line(text);
    match line.char_indices().nth(HEADLINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A number of minutes as `45 min` or `2 h 5 min`.
pub(super) fn minutes_in_words(minutes: u64) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// How far a clock is from the board's time, as `5 h ahead`.
pub(super) fn off_in_words(ahead_seconds: i64) -> String {
    let side = if ahead_seconds < 0 { "behind" } else { "ahead of" };
    format!(
        "{} {side} the board's time",
        minutes_in_words((ahead_seconds.unsigned_abs() + 30) / 60)
    )
}

/// A value as text; empty if there is none.
pub(super) fn or_empty(value: Option<impl fmt::Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Values in one line.
pub(super) fn listed<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A value of a reply as text: a string without its quotes; empty if it is null.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// `text` with tabs as spaces, and with each character replaced that a terminal would obey instead
/// of show. Line breaks stay.
pub(super) fn harmless(text: &str) -> String {
    with_tabs(text).replace('\t', " ")
}

/// Like [`harmless`], but with tabs kept, for text that programs read again.
///
/// Agents write what is printed here; see CVE-2021-42574 for what bidirectional controls can hide.
pub(super) fn with_tabs(text: &str) -> String {
    let shown = text.chars().map(|c| match c {
        '\n' | '\t' => c,
        c if is_obeyed(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    shown.collect()
}

/// JSON with the characters escaped that a terminal would obey. They occur only inside its strings.
pub(super) fn harmless_json(json: &str) -> String {
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
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        assert_eq!(
            harmless("a\x1b[2Jb\u{9b}c\u{202e}d\r\x07\te\nf"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}\u{fffd} e\nf"
        );
        assert_eq!(harmless("naïve 日本 👩‍💻"), "naïve 日本 👩‍💻");
    }

    #[test]
    fn escaped_json_says_the_same() {
        let value = serde_json::json!({"a": "\u{9b}2J\u{202e}\x1b\u{e0041}\u{7f}"});
        let json = harmless_json(&value.to_string());
        assert!(json.chars().all(|c| !is_obeyed(c)), "{json}");
        assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), value);
    }

    #[test]
    fn times_are_told_from_now() {
        let page = Page {
            text: String::new(),
            coloured: false,
            now: Timestamp::from_millis(100_000_000_000),
        };
        let told = |millis: i64| page.when(page.now + millis);
        assert_eq!(told(0), "just now");
        assert_eq!(told(-42_000), "42 s ago");
        assert_eq!(told(-3 * MINUTE), "3 min ago");
        assert_eq!(told(30 * MINUTE), "in 30 min");
        assert_eq!(told(-47 * 60 * MINUTE), "47 h ago");
        assert_eq!(told(-49 * 60 * MINUTE), "2 days ago");
    }
}
