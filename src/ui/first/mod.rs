//! The first screen: the board's model, fitted to the width and height that there are. `callboard
//! status` prints it, and `callboard ui` scrolls through it.

mod agents;
mod lists;

use std::iter;

use crate::state::time::{MINUTE, Timestamp};
use crate::view::columns::{cut, joined, left, right, span, widest, width};
use crate::view::{Board, Rows, Tone, Wait, WaitKind};

/// Fewest rows of a list, however low the terminal is.
const FEWEST: usize = 2;
const BAR: usize = 30;
/// Fewest columns that a bar and numbers stand side by side in, and a row of a list in one line.
const WIDE: usize = BAR + 3 + 20;
/// Widest columns of names, and of a number such as `#1234`.
const NAME: usize = 16;
const NUMBER: usize = 6;
const AGE: usize = 4;
/// Before the second line of a row.
const INDENT: &str = "      ";

pub(crate) type Line = Vec<(Tone, String)>;

/// Room in the terminal.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub columns: usize,
    /// None if every row is wanted.
    pub lines: Option<usize>,
}

/// How times of day and commands are said where the screen is.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub clock: &'a dyn Fn(Timestamp) -> String,
    /// The whole command line of the words behind `callboard`.
    pub command: &'a dyn Fn(&str) -> String,
    /// Whether ages under a minute are told in seconds: not where the screen stays.
    pub has_seconds: bool,
}

pub(crate) struct Overview<'a> {
    pub board: &'a Board,
    pub room: Room,
    pub words: Words<'a>,
}

impl Overview<'_> {
    /// All lines; `notes` come between the head and the lists.
    pub(crate) fn lines(&self, notes: Vec<Line>) -> Vec<Line> {
        let mut lines = self.head();
        let foot = if self.room.lines.is_some() { self.foot() } else { self.lists() };
        // Notes are whole, because they name commands: long ones take several lines.
        let tall = |note: &Line| {
            let wide: usize = note.iter().map(|(_, text)| width(text)).sum();
            wide.div_ceil(self.room.columns).max(1)
        };
        let taken = lines.len() + foot.len() + notes.iter().map(tall).sum::<usize>();
        let [waits, agents] = self.heights(taken);
        lines.extend(notes);
        if self.is_narrow() {
            lines.extend(self.narrow_waits(waits));
            lines.extend(self.narrow_agents(agents));
        } else {
            lines.extend(self.waits(waits));
            lines.extend(self.agents(agents));
        }
        lines.extend(foot);
        lines
    }

    /// Whether a row of a list has two lines.
    fn is_narrow(&self) -> bool {
        self.room.columns < WIDE
    }

    /// Rows that the two lists get, if everything else takes `taken` lines.
    fn heights(&self, taken: usize) -> [usize; 2] {
        let mut rows = [self.board.waits.rows.len(), self.board.agents.rows.len()];
        let Some(lines) = self.room.lines else { return rows };
        // Each list has an empty line and a title, and the terminal's prompt takes one.
        let left = lines.saturating_sub(taken + 5) / if self.is_narrow() { 2 } else { 1 };
        while rows.iter().sum::<usize>() > left {
            let longer = usize::from(rows[1] >= rows[0]);
            if rows[longer] <= FEWEST {
                break;
            }
            rows[longer] -= 1;
        }
        rows
    }

    pub(super) fn head(&self) -> Vec<Line> {
        let (head, columns) = (&self.board.head, self.room.columns);
        let mut far = vec![format!("{} of {} done", head.done, head.wanted)];
        far.extend(head.pace.map(|pace| format!("{} an hour", pace.per_hour)));
        far.extend(head.ends_at.map(|end| format!("about {}", (self.words.clock)(end))));
        let goal = if head.goal.is_empty() { "no goal yet" } else { &head.goal };
        let bar = BAR.min(columns.saturating_sub(2));
        let full = usize::try_from(head.percent).unwrap_or_default().min(100) * bar / 100;
        let bar = format!("[{}{}]", "#".repeat(full), "-".repeat(bar - full));
        let plain = |line: String| vec![(Tone::Plain, line)];
        if self.is_narrow() {
            let far = in_lines(&far, columns).into_iter().map(plain);
            let counts = in_lines(&self.counts(), columns).into_iter().map(plain);
            let title = plain(cut(goal, columns));
            return [title]
                .into_iter()
                .chain(far)
                .chain([vec![(Tone::Good, bar)]])
                .chain(counts)
                .collect();
        }
        let far = far.join(" · ");
        let room = columns.saturating_sub(width(&far) + 2);
        let title = plain(format!("{}  {far}", left(goal, room)));
        let indent = BAR + 3;
        let counts = in_lines(&self.counts(), columns - indent);
        let leads = [bar].into_iter().chain(iter::repeat(String::new()));
        let counts = leads
            .zip(counts)
            .map(|(lead, counts)| vec![(Tone::Good, left(&lead, indent)), (Tone::Plain, counts)]);
        [title].into_iter().chain(counts).collect()
    }

    fn counts(&self) -> Vec<String> {
        let (counts, first) = (&self.board.counts, self.board.retries.rows.first());
        let until = first.and_then(|retry| retry.until).map(|until| (self.words.clock)(until));
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        let told = [
            (counts.in_work, "in work", String::new()),
            (counts.in_review, "in review", String::new()),
            (counts.ready, "ready", String::new()),
            (counts.blocked, "blocked", String::new()),
            (counts.waiting, "waiting", until),
            (counts.failed, "failed", String::new()),
            (counts.cancelled, "cancelled", String::new()),
        ];
        let told = told.into_iter().filter(|(count, ..)| *count > 0);
        let mut told: Vec<_> =
            told.map(|(count, word, more)| format!("{count} {word}{more}")).collect();
        if told.is_empty() {
            let is_unread = self.board.waits.rows.iter().any(|wait| wait.kind == WaitKind::Unread);
            let said = match counts.total {
                0 => "no tasks",
                _ if is_unread => "lines of the plan are in no task",
                _ => "all is done",
            };
            told.push(said.to_owned());
        }
        told
    }

    /// A list's title: how many there are, and where the rest is if not all are shown.
    fn title<T>(&self, name: &str, list: &Rows<T>, shown: usize, more: &str) -> Vec<Line> {
        let mut title = format!("{name}  {}{more}", list.total());
        if shown < list.total() {
            let all = (self.words.command)("status --all");
            title = if self.is_narrow() {
                format!("{name}  {shown} of {}: status --all", list.total())
            } else {
                format!("{title}  (the first {shown}; all: {all})")
            };
        }
        vec![Line::new(), vec![(Tone::Waiting, cut(&title, self.room.columns))]]
    }

    pub(super) fn waits(&self, shown: usize) -> Vec<Line> {
        let list = &self.board.waits;
        if list.is_empty() {
            return vec![Line::new(), vec![(Tone::Good, "Nothing waits for you.".to_owned())]];
        }
        let rows = &list.rows[..shown];
        let name = widest(rows.iter().map(|wait| wait.name.as_str()), NAME);
        let kind = widest(rows.iter().map(|wait| wait.kind.as_str()), NAME);
        let rest = self.room.columns.saturating_sub(2 + name + 1 + kind + 1 + AGE + 2);
        let remedies: Vec<_> = rows.iter().map(|wait| remedy(wait, rest)).collect();
        let remedy = widest(remedies.iter().map(String::as_str), rest / 2);
        let text =
            widest(rows.iter().map(|wait| wait.text.as_str()), rest.saturating_sub(remedy + 2));
        let row = |(wait, how): (&Wait, &String)| {
            // A remedy is of no use if it is cut.
            let text = text.min(rest.saturating_sub(width(how) + 2));
            let said = if text < FEWEST { String::new() } else { left(&wait.text, text) + "  " };
            vec![
                (Tone::Plain, format!("  {} ", left(&wait.name, name))),
                (tone(wait.kind), left(wait.kind.as_str(), kind)),
                (Tone::Plain, format!(" {}  {said}{how}", right(&self.age(wait.since), AGE))),
            ]
        };
        let mut lines = self.title("WAITS FOR YOU", list, shown, "");
        lines.extend(rows.iter().zip(&remedies).map(row));
        lines
    }

    /// The same with two lines for each.
    fn narrow_waits(&self, shown: usize) -> Vec<Line> {
        let list = &self.board.waits;
        if list.is_empty() {
            return self.waits(shown);
        }
        let room = self.room.columns.saturating_sub(INDENT.len());
        let row = |wait: &Wait| {
            let how = remedy(wait, room);
            let text = cut(&wait.text, room.saturating_sub(width(&how) + 2));
            let gap = if text.is_empty() || how.is_empty() { "" } else { "  " };
            let about = vec![
                (Tone::Plain, format!("  {} ", cut(&wait.name, NAME))),
                (tone(wait.kind), wait.kind.as_str().to_owned()),
                (Tone::Plain, format!(" {}", self.age(wait.since))),
            ];
            let text = if width(&text) < FEWEST { String::new() } else { text + gap };
            [about, vec![(Tone::Plain, format!("{INDENT}{text}{}", cut(&how, room)))]]
        };
        let mut lines = self.title("WAITS FOR YOU", list, shown, "");
        lines.extend(list.rows[..shown].iter().flat_map(row));
        lines
    }

    fn age(&self, since: Option<Timestamp>) -> String {
        let told = |millis| match millis {
            ..MINUTE if !self.words.has_seconds => "<1m".to_owned(),
            millis => span(millis),
        };
        since.map(|since| told(self.board.now.since(since))).unwrap_or_default()
    }
}

/// The items in as many lines as they need.
fn in_lines(items: &[String], room: usize) -> Vec<String> {
    let (mut lines, mut left) = (Vec::new(), items);
    while let Some(first) = left.first() {
        let (line, count) = joined(left, room);
        lines.push(if count == 0 { cut(first, room) } else { line });
        left = &left[count.max(1)..];
    }
    lines
}

/// What to do about it: the first command, and more of them where the text leaves room.
fn remedy(wait: &Wait, room: usize) -> String {
    let commands = wait.remedies.iter().map(|words| words.join(" "));
    let place = wait.place.as_ref().map(|place| format!("in {place}"));
    let mut all = place.into_iter().chain(commands);
    let first = all.next().unwrap_or_default();
    let taken = width(&wait.text) + 2;
    all.fold(first, |told, more| {
        let longer = format!("{told}, {more}");
        if taken + width(&longer) <= room { longer } else { told }
    })
}

fn tone(kind: WaitKind) -> Tone {
    match kind {
        WaitKind::Failed | WaitKind::NoSign | WaitKind::Stuck => Tone::Bad,
        WaitKind::Message => Tone::Plain,
        _ => Tone::Busy,
    }
}
