//! Statuses: the words of other tools for them, and what becomes of them on the board.

use serde_json::Value;

use super::report::Report;
use crate::plan::{self, Node};
use crate::state::hierarchy::weightier;
use crate::state::plan::Stated;
use crate::state::task::TaskStatus;

/// Field of an item's metadata with the word that its file has for the status, while the board has
/// none like it.
pub(super) const WORD: &str = "status";
/// Field of an item's metadata with the status that the import made of the word, where its parts or
/// what it is a part of decide.
pub(super) const MADE: &str = "status_here";
/// Field of an item's metadata with a note for the next agent.
pub(super) const NOTE: &str = "note";

/// Field of a file with the board's word, where the format has none that is read as the same.
pub(super) const OWN: &str = "callboard_status";

/// What a plan says of what is open. Said of an item with parts, it makes it work of its own.
pub(super) const OPEN: &str = "Planned";

/// The status of this name.
pub(super) fn named(name: &str) -> Option<TaskStatus> {
    TaskStatus::ALL.into_iter().find(|status| status.as_str() == name)
}

/// Takes the board's own word for the status, as long as the file's is the one that an export wrote
/// beside it.
pub(super) fn own(
    node: &mut Node,
    own: Option<Value>,
    given: &str,
    word: fn(TaskStatus) -> &'static str,
) {
    let own = own.as_ref().and_then(Value::as_str);
    let status = own.and_then(named).filter(|status| word(*status) == given);
    if let Some(status) = status {
        node.status = as_said(said(status));
        node.metadata.remove(WORD);
    }
}

/// The status that the board gives to a word.
pub(super) fn stated(word: &str) -> Stated {
    plan::stated(word).map_or(Stated::Open, |(stated, _)| stated)
}

/// Gives the item the status that a word stands for. What the word says beside that is kept.
pub(super) fn read(node: &mut Node, word: &str, holder: Option<&str>, report: &mut Report) {
    let stated = stated(word);
    node.status = as_said(stated);
    let plain = word.to_lowercase().replace(['-', '_', ' '], "");
    let is_plain = match stated {
        Stated::Open => {
            ["pending", "todo", "planned", "open", "ready", "available"].contains(&plain.as_str())
        }
        Stated::Obsolete => false,
        Stated::Done | Stated::Failed | Stated::Cancelled => true,
    };
    if !is_plain {
        report.status(word, becomes(stated).as_str());
    }
    if stated == Stated::Open
        && ["inprogress", "doing", "claimed", "started", "wip", "implementing"]
            .contains(&plain.as_str())
    {
        let with = holder.map(|holder| format!(" with {holder}")).unwrap_or_default();
        node.metadata.insert(
            NOTE.to_owned(),
            format!("it was in progress{with} when it was imported").into(),
        );
    }
    node.metadata.insert(WORD.to_owned(), Value::from(word));
}

/// A status as a plan says it.
fn as_said(stated: Stated) -> Option<&'static str> {
    match stated {
        Stated::Open => Some(OPEN),
        Stated::Done => Some("Complete"),
        Stated::Failed => Some("Failed"),
        Stated::Cancelled => Some("Cancelled"),
        Stated::Obsolete => Some("Obsolete"),
    }
}

/// The statuses on a board whose items are said to have these. A part of a cancelled item is
/// cancelled, too, if it is open. A group has the status of its parts. Each item stands before its
/// parts.
pub(super) fn settled(
    said: &[Stated],
    parents: &[Option<usize>],
    is_own: &dyn Fn(usize) -> bool,
) -> Vec<TaskStatus> {
    let mut down: Vec<Stated> = Vec::with_capacity(said.len());
    for (own, parent) in said.iter().zip(parents) {
        let above = parent.map(|parent| down[parent]).filter(Stated::is_called_off);
        down.push(above.filter(|_| !own.stays_below_called_off()).unwrap_or(*own));
    }
    let mut settled: Vec<TaskStatus> = down.into_iter().map(becomes).collect();
    let mut by_parts: Vec<Option<TaskStatus>> = vec![None; said.len()];
    for number in (0..said.len()).rev() {
        settled[number] = by_parts[number].unwrap_or(settled[number]);
        if let Some(parent) = parents[number].filter(|parent| !is_own(*parent)) {
            let own = settled[number];
            by_parts[parent] = Some(by_parts[parent].map_or(own, |other| weightier(other, own)));
        }
    }
    settled
}

pub(super) fn becomes(stated: Stated) -> TaskStatus {
    match stated {
        Stated::Open => TaskStatus::Available,
        Stated::Done => TaskStatus::Done,
        Stated::Failed => TaskStatus::Failed,
        Stated::Cancelled => TaskStatus::Cancelled,
        Stated::Obsolete => TaskStatus::Obsolete,
    }
}

/// What a board's status is said to be.
pub(super) fn said(status: TaskStatus) -> Stated {
    match status {
        TaskStatus::Available
        | TaskStatus::Claimed
        | TaskStatus::InProgress
        | TaskStatus::Review => Stated::Open,
        TaskStatus::Done => Stated::Done,
        TaskStatus::Failed => Stated::Failed,
        TaskStatus::Cancelled => Stated::Cancelled,
        TaskStatus::Obsolete => Stated::Obsolete,
    }
}
