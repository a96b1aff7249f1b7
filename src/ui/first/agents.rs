//! Who does what, since when, and when each was last heard of.

use super::{AGE, INDENT, Line, NAME, NUMBER, Overview};
use crate::view::columns::{cut, left, right, widest, width};
use crate::view::{AgentRow, Sign, Tone};

/// Widths of the columns.
struct Widths {
    name: usize,
    number: usize,
    title: usize,
    said: usize,
    branch: usize,
}

impl Overview<'_> {
    pub(in crate::ui) fn agents(&self, shown: usize) -> Vec<Line> {
        self.agents_in(shown, |row, widths| vec![self.agent(row, widths)], beside)
    }

    /// The same with two lines for each.
    pub(super) fn narrow_agents(&self, shown: usize) -> Vec<Line> {
        let row = |row: &Row<'_>, widths: &Widths| {
            let mut who = self.agent(row, widths);
            let mut does = who.split_off(who.len() - 3);
            does[0].1 = format!("{INDENT}{}", does[0].1.trim_start());
            vec![who, does]
        };
        self.agents_in(shown, row, |_, _| INDENT.len())
    }

    /// The list. `before` is the number of columns before a task's title.
    fn agents_in(
        &self,
        shown: usize,
        lines_of: impl Fn(&Row<'_>, &Widths) -> Vec<Line>,
        before: fn(usize, usize) -> usize,
    ) -> Vec<Line> {
        let list = &self.board.agents;
        let ended = match self.board.ended {
            0 => String::new(),
            count => format!(", {count} ended"),
        };
        let mut lines = self.title("AGENTS", list, shown, &ended);
        if list.is_empty() {
            lines.push(self.how_to_get_one());
            return lines;
        }
        let rows: Vec<_> =
            list.rows[..shown].iter().map(|row| (row, number(row), self.saying(row))).collect();
        let widths = widths(&rows, self.room.columns, before);
        if let Some((_, title)) = lines.last_mut().and_then(|line| line.last_mut()) {
            let before = 2 + widths.name + 2 + widths.number + 1;
            if width(title) < before {
                let ages = format!("{} {}", right("for", AGE), right("sign", AGE));
                *title = left(title, before) + &ages;
            }
        }
        lines.extend(rows.iter().flat_map(|row| lines_of(row, &widths)));
        lines
    }

    fn how_to_get_one(&self) -> Line {
        let [connect, work] =
            ["connect CLIENT", "work --exec COMMAND"].map(|words| (self.words.command)(words));
        let told =
            format!("  none; {connect} sets a client up, {work} runs a command for each task");
        vec![(Tone::Over, cut(&told, self.room.columns))]
    }

    fn agent(&self, (row, number, (tone, said)): &Row<'_>, widths: &Widths) -> Line {
        let flag = if matches!(row.sign, Sign::Working | Sign::Idle) { "  " } else { "! " };
        let name = left(row.id.as_str(), widths.name);
        let task = format!("{name}  {} ", left(number, widths.number));
        let branch = row.branch.as_deref().filter(|_| widths.branch > 0).unwrap_or_default();
        vec![
            (*tone, flag.to_owned()),
            (Tone::Plain, format!("{task}{} ", right(&self.age(row.since), AGE))),
            (*tone, right(&self.age(Some(row.last_sign)), AGE)),
            (Tone::Plain, format!("  {}  ", left(title(row), widths.title))),
            (*tone, left(said, widths.said)),
            (Tone::Over, format!("  {}", cut(branch, widths.branch))),
        ]
    }

    /// What there is to say of the agent, beside its task.
    fn saying(&self, row: &AgentRow) -> (Tone, String) {
        if let Some(asked) = row.stop_asked {
            let ago = self.age(Some(asked));
            let (tone, heard) =
                if row.stop_heard { (Tone::Busy, "") } else { (Tone::Bad, ", not heard") };
            return (tone, format!("asked to stop {ago} ago{heard}"));
        }
        let note = row.note.as_ref().filter(|note| !note.is_empty());
        match (row.sign, &row.waits, &row.asks) {
            (Sign::Waiting, Some(waits), _) => {
                (Tone::Busy, format!("waits for {}", waits.reason.as_str()))
            }
            (Sign::Quiet, ..) => (Tone::Bad, "no sign".to_owned()),
            (Sign::Gone, ..) => (Tone::Bad, "its process has ended".to_owned()),
            (.., Some(asks)) => (Tone::Busy, format!("asks {asks}")),
            _ => (Tone::Plain, note.map(|note| format!("\"{note}\"")).unwrap_or_default()),
        }
    }
}

/// An agent, the number of its task, and what there is to say.
type Row<'r> = (&'r AgentRow, String, (Tone, String));

/// Columns before a title that stands in the line of its agent, by the widths of the agent's name
/// and the task's number.
fn beside(name: usize, number: usize) -> usize {
    2 + name + 2 + number + 2 * (1 + AGE) + 2
}

fn widths(rows: &[Row<'_>], columns: usize, before: fn(usize, usize) -> usize) -> Widths {
    let name = widest(rows.iter().map(|(row, ..)| row.id.as_str()), NAME);
    let number = widest(rows.iter().map(|(_, number, _)| number.as_str()), NUMBER);
    let rest = columns.saturating_sub(before(name, number));
    let titles = widest(rows.iter().map(|(row, ..)| title(row)), rest);
    let sayings = widest(rows.iter().map(|(.., (_, said))| said.as_str()), rest);
    // Each gets what it needs if both fit, else the titles get most of it.
    let title = match titles + 2 + sayings {
        wide if wide <= rest => titles,
        _ => titles.min((rest * 3 / 5).max(rest.saturating_sub(sayings + 2))),
    };
    let said = sayings.min(rest.saturating_sub(title + 2));
    let branches = rows.iter().filter_map(|(row, ..)| row.branch.as_deref());
    let branch = widest(branches, rest);
    let has_room = title + 2 + said + 2 + branch <= rest;
    Widths { name, number, title, said, branch: if has_room { branch } else { 0 } }
}

fn number(row: &AgentRow) -> String {
    row.task.as_ref().map(|task| task.name()).unwrap_or_default()
}

fn title(row: &AgentRow) -> &str {
    row.task.as_ref().map_or("idle", |task| task.title.as_str())
}
