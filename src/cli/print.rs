//! Output for people: one page of text, tables, colours, times, and nothing that a terminal would
//! obey.

use std::fmt;
use std::io::{self, IsTerminal, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

pub(super) use crate::harmless::shown::{harmless, harmless_json, with_tabs};
use crate::state::id::AgentId;
use crate::state::time::{MINUTE, Timestamp};
use crate::view::Reader;
pub(super) use crate::view::Tone;
use crate::view::columns;
pub(super) use crate::view::told::{listed, text};

/// Longest headline in a table, in characters.
const HEADLINE: usize = 80;
/// Longest text of an event, in columns.
const LONGEST: usize = 1_000;
/// Least width of a table's last column, in characters, however narrow the terminal is.
const LAST: u16 = 12;
/// Least width of the others, if they have to be cut.
const SHORTEST: usize = 6;
/// Columns of tables that are left out where the terminal is too narrow for all, the first first.
const LEFT_OUT: [&str; 9] =
    ["role", "failed", "done", "last sign", "prio", "for", "waited", "tries", "agent"];

/// Output for people, composed completely before anything is written.
pub(super) struct Page {
    text: String,
    coloured: bool,
    now: Timestamp,
    zone: TimeZone,
    /// Width of the terminal, if there is one.
    columns: Option<usize>,
    reader: Reader,
}

impl Page {
    /// `now` is the time from which the ages of things are counted.
    pub(super) fn new(coloured: bool, now: Timestamp) -> Self {
        let columns = of_terminal();
        let (text, zone, reader) = (String::new(), TimeZone::system(), Reader::default());
        Self { text, coloured, now, zone, columns, reader }
    }

    /// The page with "you" for what this reader did.
    pub(super) fn read_by(self, reader: Reader) -> Self {
        Self { reader, ..self }
    }

    /// What is said of who acted.
    pub(super) fn who<'a>(&self, actor: &'a AgentId) -> &'a str {
        self.reader.calls(actor)
    }

    /// The page with times in UTC instead of the local time.
    pub(super) fn in_utc(self, is_utc: bool) -> Self {
        if is_utc { Self { zone: TimeZone::UTC, ..self } } else { self }
    }

    pub(super) fn line(&mut self, line: impl fmt::Display) {
        for line in harmless(&line.to_string()).split('\n') {
            let hang = indent_of(line) + 2;
            self.put(&[(Tone::Plain.style(), line)], hang);
        }
    }

    /// Adds `name` and a value, unless the value is empty; its further lines are indented.
    pub(super) fn field(&mut self, name: &str, value: impl fmt::Display) {
        let value = value.to_string();
        if !value.trim_end().is_empty() {
            self.led(&format!("{name}:"), AnsiColor::BrightBlack.on_default(), value.trim_end());
        }
    }

    /// Adds a line that begins with a coloured word; further lines are indented.
    pub(super) fn marked(&mut self, word: &str, tone: Tone, rest: impl fmt::Display) {
        self.led(word, tone.style(), &rest.to_string());
    }

    fn led(&mut self, lead: &str, style: Style, rest: &str) {
        let rest = harmless(rest);
        let (first, others) = rest.split_once('\n').unwrap_or((&rest, ""));
        let plain = Tone::Plain.style();
        self.put(&[(style, lead), (plain, &format!(" {first}"))], 2);
        if rest.len() > first.len() {
            for line in others.split('\n') {
                self.put(&[(plain, &format!("  {line}"))], 2 + indent_of(line));
            }
        }
    }

    /// Adds one line: what it is about, a coloured word, and the first line of the rest.
    pub(super) fn entry(&mut self, lead: &str, word: &str, tone: Tone, rest: impl fmt::Display) {
        self.about(lead, word, tone, &headline(&rest.to_string()));
    }

    /// Adds a line like [`entry`](Self::entry) with all of the rest's first line.
    pub(super) fn wrapped(&mut self, lead: &str, word: &str, tone: Tone, rest: &str) {
        self.about(lead, word, tone, &columns::cut(rest, LONGEST));
    }

    fn about(&mut self, lead: &str, word: &str, tone: Tone, rest: &str) {
        let lead = harmless(lead);
        let hang = columns::width(&lead) + columns::width(word) + 2;
        let (dim, plain) = (AnsiColor::BrightBlack.on_default(), Tone::Plain.style());
        let (word, rest) = ((tone.style(), word), format!(" {rest}"));
        self.put(&[(dim, &lead), (plain, " "), word, (plain, &rest)], hang);
    }

    /// Adds one line of toned pieces, none of which has a line break.
    pub(super) fn pieces<'t>(&mut self, pieces: impl IntoIterator<Item = (Tone, &'t str)>) {
        let pieces: Vec<_> = pieces
            .into_iter()
            .map(|(tone, piece)| (tone.style(), harmless(piece).replace('\n', " ")))
            .collect();
        let pieces: Vec<_> = pieces.iter().map(|(style, piece)| (*style, &**piece)).collect();
        self.put(&pieces, 2);
    }

    /// Adds one line of pieces. Where the terminal is too narrow, it goes on between words in lines
    /// that are indented by `hang`, or less if that leaves too little room.
    fn put(&mut self, pieces: &[(Style, &str)], hang: usize) {
        let wide: usize = pieces.iter().map(|(_, text)| columns::width(text)).sum();
        match self.columns.filter(|columns| wide > *columns) {
            None => pieces.iter().for_each(|(style, text)| self.push(text, *style)),
            Some(columns) => self.fold(pieces, columns, hang),
        }
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        self.text.push('\n');
    }

    fn fold(&mut self, pieces: &[(Style, &str)], columns: usize, hang: usize) {
        let lead = pieces.first().map_or(0, |(_, text)| indent_of(text) + 2);
        let hang = if hang + usize::from(LAST) <= columns { hang } else { lead.min(columns / 2) };
        let mut used = 0;
        for (style, text) in pieces {
            let mut run = String::new();
            for (spaces, word) in words(text, columns - hang) {
                let wide = columns::width(word);
                if used > 0 && wide > 0 && used + spaces + wide > columns {
                    self.push(run.trim_end(), *style);
                    let indent = hang.min(columns.saturating_sub(wide));
                    self.text.truncate(self.text.trim_end_matches(' ').len());
                    self.text.push('\n');
                    self.text.push_str(&" ".repeat(indent));
                    (used, run) = (indent, String::new());
                } else {
                    run.push_str(&" ".repeat(spaces));
                    used += spaces;
                }
                run.push_str(word);
                used += wide;
            }
            self.push(&run, *style);
        }
    }

    /// Adds a piece of a line, in its colour if it has one.
    fn push(&mut self, text: &str, style: Style) {
        let is_plain = style.is_plain() || text.trim().is_empty();
        let text = if is_plain { text.to_owned() } else { self.paint(text, style) };
        self.text.push_str(&text);
    }

    /// Adds rows under a header. Cells hold one line each. The last column is cut to the width of
    /// the terminal, so that ids in the others stay whole; of the others, some are left out where
    /// it is too narrow for them.
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
        let rows: Vec<_> = rows.collect();
        let most = most(&header, &rows, width);
        let count = most.iter().flatten().count();
        let names = header.iter().zip(&most).filter_map(|(name, most)| Some((name, (*most)?)));
        table.set_header(
            names.map(|(name, most)| Cell::new(columns::cut(&name.to_uppercase(), most))),
        );
        table.add_rows(rows.into_iter().map(|cells| {
            let cells =
                cells.into_iter().zip(&most).filter_map(|(cell, most)| Some((cell, (*most)?)));
            Row::from(cells.map(|(cell, most)| cell.cell(most)).collect::<Vec<_>>())
        }));
        table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 2)));
        if let Some(width) = width {
            table.row_iter_mut().for_each(|row| _ = row.max_height(1));
            let taken: u16 = table
                .column_max_content_widths()
                .iter()
                .take(count - 1)
                .map(|taken| taken + 2)
                .sum();
            // The width includes padding, which is not printed.
            let left = Width::Fixed(width.saturating_sub(taken).max(LAST) + 2);
            if let Some(last) = table.column_mut(count - 1) {
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

    /// A time of day, with the date unless it is today's: `14:05`, `Fri 14:05`.
    pub(super) fn clock(&self, time: Timestamp) -> String {
        let (Some(now), Some(time)) = (self.local(self.now), self.local(time)) else {
            return time.to_string();
        };
        let days = now.date().since(time.date()).map_or(i32::MAX, |span| span.get_days()).abs();
        let form = match days {
            0 => "%H:%M",
            1..7 => "%a %H:%M",
            _ => "%Y-%m-%d %H:%M",
        };
        self.marked_utc(time.strftime(form).to_string())
    }

    /// `text` with each time in it as [`clock`](Self::clock) tells it.
    pub(super) fn in_local_time(&self, text: &str) -> String {
        let told = text.split(' ').map(|word| {
            let time = word.trim_end_matches([',', ';', ':', '.', ')']);
            match Timestamp::of_text(time).filter(|_| time.ends_with('Z')) {
                Some(at) => word.replacen(time, &self.clock(at), 1),
                None => word.to_owned(),
            }
        });
        told.collect::<Vec<_>>().join(" ")
    }

    /// Date and time to the second.
    pub(super) fn stamp(&self, time: Timestamp) -> String {
        let local = self.local(time).map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
        local.map_or_else(|| time.to_string(), |text| self.marked_utc(text))
    }

    fn marked_utc(&self, text: String) -> String {
        if self.zone == TimeZone::UTC { text + "Z" } else { text }
    }

    fn local(&self, time: Timestamp) -> Option<DateTime> {
        let time = jiff::Timestamp::from_millisecond(time.millis()).ok()?;
        Some(self.zone.to_datetime(time))
    }

    /// As many columns as are wanted, or as there are.
    pub(super) fn room(&self, wanted: usize) -> usize {
        self.columns.map_or(wanted, |columns| columns.min(wanted))
    }

    /// The page without a width, for a screen that folds its lines itself.
    pub(super) fn unbounded(self) -> Self {
        Self { columns: None, ..self }
    }

    /// The lines in pieces, each with the tone that it was written in.
    pub(super) fn into_lines(self) -> Vec<Vec<(Tone, String)>> {
        let mut tone = Tone::Plain;
        let pieces = |line: &str| {
            let mut parts = line.split("\u{1b}[");
            let mut pieces = vec![(tone, parts.next().unwrap_or_default().to_owned())];
            for part in parts {
                let (code, text) = part.split_once('m').unwrap_or_default();
                tone = Tone::of_code(code);
                pieces.push((tone, text.to_owned()));
            }
            pieces.retain(|(_, text)| !text.is_empty());
            pieces
        };
        self.text.lines().map(pieces).collect()
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

/// Width of the terminal that standard output is. Some terminals report none.
fn of_terminal() -> Option<usize> {
    let size = io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    size.map(|(columns, _)| columns.into()).filter(|columns| *columns > 0)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The words of a line, each with the number of spaces before it. A command in backquotes is one
/// word if it fits into `room`.
fn words(line: &str, room: usize) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let spaces = indent_of(rest);
        rest = &rest[spaces..];
        if rest.is_empty() {
            // Spaces at the end part it from the next piece.
            words.extend((spaces > 0).then_some((spaces, "")));
            return words;
        }
        let mut end = rest.find(' ').unwrap_or(rest.len());
        if rest[..end].matches('`').count() % 2 == 1
            && let Some(closing) = rest[end..].find('`')
        {
            let closed = end + closing;
            let closed = rest[closed..].find(' ').map_or(rest.len(), |more| closed + more);
            if columns::width(&rest[..closed]) <= room {
                end = closed;
            }
        }
        words.push((spaces, &rest[..end]));
        rest = &rest[end..];
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

/// How a terminal shows a tone.
impl Tone {
    /// The tone that [`style`](Self::style) writes as this code.
    fn of_code(code: &str) -> Self {
        let all = [Self::Good, Self::Busy, Self::Waiting, Self::Bad, Self::Over];
        let is_its = |tone: &Self| tone.style().to_string() == format!("\u{1b}[{code}m");
        all.into_iter().find(is_its).unwrap_or(Self::Plain)
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

    /// A cell of at most so many columns.
    fn cell(self, most: usize) -> Cell {
        let cell = Cell::new(columns::cut(&self.0, most));
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

/// How wide the cells of each column may be; none if a terminal of this width has no room for the
/// column. The last one is cut by the table.
fn most<const N: usize>(
    header: &[&str; N],
    rows: &[[Column; N]],
    width: Option<u16>,
) -> [Option<usize>; N] {
    let mut most = [Some(usize::MAX); N];
    let last = N.saturating_sub(1);
    most[last] = Some(HEADLINE + 1);
    let Some(width) = width else { return most };
    for (column, most) in most[..last].iter_mut().enumerate() {
        let cells = rows.iter().map(|cells| columns::width(&first_line(&cells[column].0)));
        *most = cells.chain([header[column].len()]).max();
    }
    let room = usize::from(width.saturating_sub(LAST));
    let taken = |most: &[Option<usize>]| most.iter().flatten().map(|wide| wide + 2).sum::<usize>();
    for name in LEFT_OUT {
        if taken(&most[..last]) <= room {
            return most;
        }
        if let Some(column) = header[..last].iter().position(|one| *one == name) {
            most[column] = None;
        }
    }
    // Ids are short, so titles are cut first.
    while taken(&most[..last]) > room {
        match most[..last].iter_mut().flatten().max() {
            Some(widest) if *widest > SHORTEST => *widest -= 1,
            _ => break,
        }
    }
    most
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_back_in_its_tones() {
        let mut page = Page::new(true, Timestamp::default()).unbounded();
        page.marked("failed", Tone::Bad, "why");
        page.field("title", "one\ntwo\u{1b}[31m");
        let (plain, dim) = (Tone::Plain, Tone::Over);
        let piece = |tone, text: &str| (tone, text.to_owned());
        let expected = [
            vec![piece(Tone::Bad, "failed"), piece(plain, " why")],
            vec![piece(dim, "title:"), piece(plain, " one")],
            vec![piece(plain, "  two\u{fffd}[31m")],
        ];
        assert_eq!(page.into_lines(), expected);
    }

    #[test]
    fn times_are_told_from_now() {
        let page = Page {
            text: String::new(),
            coloured: false,
            now: Timestamp::from_millis(100_000_000_000),
            zone: TimeZone::UTC,
            columns: None,
            reader: Reader::default(),
        };
        let told = |millis: i64| page.when(page.now + millis);
        assert_eq!(told(0), "just now");
        assert_eq!(told(-42_000), "42 s ago");
        assert_eq!(told(-3 * MINUTE), "3 min ago");
        assert_eq!(told(30 * MINUTE), "in 30 min");
        assert_eq!(told(-47 * 60 * MINUTE), "47 h ago");
        assert_eq!(told(-49 * 60 * MINUTE), "2 days ago");
    }

    #[test]
    fn texts_of_events_are_wrapped_between_words() {
        let mut page = Page::new(false, Timestamp::default());
        page.columns = Some(30);
        page.wrapped("12:00 w", "noted", Tone::Plain, "one two three four five\nsix");
        let indent = " ".repeat(14);
        assert_eq!(page.into_text(), format!("12:00 w noted one two three\n{indent}four five\n"));
    }

    #[test]
    fn times_of_day_are_local_unless_utc_is_wanted() {
        let at = |text: &str| Timestamp::of_text(text).expect("a time");
        let now = at("2026-03-04T11:00:00Z");
        let mut page = Page::new(false, now);
        page.zone = TimeZone::fixed(jiff::tz::offset(2));
        let times = ["2026-03-04T10:05:07Z", "2026-03-03T21:30:00Z", "2026-02-01T08:00:00Z"];
        let [today, yesterday, long_ago] = times.map(at);
        assert_eq!(page.clock(today), "12:05");
        assert_eq!(page.clock(yesterday), "Tue 23:30");
        assert_eq!(page.clock(long_ago), "2026-02-01 10:00");
        assert_eq!(page.stamp(today), "2026-03-04 12:05:07");
        let told = "until 2026-03-04T10:05:07.000Z; see 2026 and Z";
        assert_eq!(page.in_local_time(told), "until 12:05; see 2026 and Z");
        let page = page.in_utc(true);
        assert_eq!(
            (page.clock(today), page.stamp(today)),
            ("10:05Z".to_owned(), "2026-03-04 10:05:07Z".to_owned())
        );
    }
}
