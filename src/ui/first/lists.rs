//! What comes next, what is blocked and what was done: a line each, or every row.

use super::{Line, NUMBER, Overview};
use crate::view::columns::{cut, joined, left, width};
use crate::view::{Behind, Card, Group, Tone};

/// Width of the names in front of the lines.
const LEAD: usize = 9;
/// Widest title of a task that is one of several in a line.
const TITLE: usize = 30;

impl Overview<'_> {
    pub(super) fn foot(&self) -> Vec<Line> {
        let board = self.board;
        let next = board
            .next
            .rows
            .iter()
            .map(|card| format!("#{} {}", card.number, cut(&card.title, TITLE)));
        let next = self.row("NEXT", next.collect(), board.next.total(), "tasks --ready");
        let blocked = board.blocked.rows.iter().map(behind).collect();
        let blocked = self.row("BLOCKED", blocked, board.blocked.total(), "tasks --blocked");
        let rows: Vec<Line> = next.into_iter().chain(blocked).collect();
        if rows.is_empty() { rows } else { [vec![Line::new()], rows].concat() }
    }

    /// The lists of the foot with a line for each row.
    pub(super) fn lists(&self) -> Vec<Line> {
        [self.next(), self.blocked(), self.waiting(), self.done()].concat()
    }

    pub(in crate::ui) fn next(&self) -> Vec<Line> {
        let list = &self.board.next;
        self.list("NEXT", list.rows.iter().map(card).collect(), list.total())
    }

    pub(in crate::ui) fn blocked(&self) -> Vec<Line> {
        let rows = self.board.blocked.rows.iter().map(|group| {
            let first: Vec<_> =
                group.first.iter().map(|task| format!("{} {}", task.name(), task.title)).collect();
            let more = if group.tasks > group.first.len() { ", …" } else { "" };
            format!("{}: {}{more}", behind(group), first.join(", "))
        });
        self.list("BLOCKED", rows.collect(), self.board.counts.blocked as usize)
    }

    pub(in crate::ui) fn waiting(&self) -> Vec<Line> {
        let list = &self.board.retries;
        let rows = list.rows.iter().map(|retry| {
            let until = retry.until.map(self.words.clock).unwrap_or_default();
            let error =
                retry.last.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{}, until {until}{error}", card(&retry.card))
        });
        self.list("WAITING", rows.collect(), list.total())
    }

    pub(in crate::ui) fn done(&self) -> Vec<Line> {
        let list = &self.board.done;
        let rows = list.rows.iter().map(|done| {
            let agent = done.agent.as_ref().map(|agent| format!("  {agent}")).unwrap_or_default();
            format!("{}{agent}  {} ago", card(&done.card), self.age(done.at))
        });
        self.list("DONE", rows.collect(), list.total())
    }

    fn list(&self, name: &str, rows: Vec<String>, total: usize) -> Vec<Line> {
        if rows.is_empty() {
            return Vec::new();
        }
        let title = vec![(Tone::Waiting, format!("{name}  {total}"))];
        let rows =
            rows.iter().map(|row| vec![(Tone::Plain, cut(&format!("  {row}"), self.room.columns))]);
        [Line::new(), title].into_iter().chain(rows).collect()
    }

    /// One line of the first of a list, and the command that lists all.
    fn row(&self, name: &str, items: Vec<String>, total: usize, command: &str) -> Option<Line> {
        if items.is_empty() {
            return None;
        }
        let room = self.room.columns.saturating_sub(LEAD);
        let (line, count) = joined(&items, room);
        let line = if count == total {
            line
        } else {
            let words = |left: usize| format!(" · {left} more: {command}");
            let (line, count) = joined(&items, room.saturating_sub(width(&words(total))));
            match count {
                0 => format!("{total}: {command}"),
                count => line + &words(total - count),
            }
        };
        Some(vec![(Tone::Waiting, left(name, LEAD)), (Tone::Plain, line)])
    }
}

fn card(card: &Card) -> String {
    format!("{}  {}", left(&format!("#{}", card.number), NUMBER), card.title)
}

fn behind(group: &Group) -> String {
    let by = group.by.first();
    let name = by.map(|by| by.name()).unwrap_or_default();
    let what = match group.behind {
        Behind::Ended => {
            let status = by.and_then(|by| by.status).map_or("gone", |status| status.as_str());
            format!("{name} {status}")
        }
        Behind::Gone => format!("{name}, which is gone"),
        Behind::Cycle => return format!("{} in a circle", group.tasks),
        Behind::Review => "review".to_owned(),
        Behind::Work => "work".to_owned(),
        Behind::Retry => "a retry".to_owned(),
        Behind::Ready => "ready tasks".to_owned(),
    };
    format!("{} behind {what}", group.tasks)
}
