//! Levels: what a build must know to read an event. Processes of several builds live on one board,
//! because an upgrade stops no agent; what an older one among them could not read is not written.
//!
//! Level 1 is what the first builds read. Whatever came later has a line in `NEWER` with the
//! level that brought it:
//!
//! - A new kind of event: the older build stops at it.
//! - A new field in an event of an older kind, or in what it carries: the older build would drop
//!   it, and its state would differ from ours. The field is optional, and left out when it says
//!   nothing: only then is the event as old as it was.
//! - A new value of an older field, such as another role. A field whose type changes is a new
//!   field.
//! - A new field of what the state file holds, under the name `state`. Nothing but an event of that
//!   level may set it: derived from an older event, it would stand in a file that older builds
//!   read, and they check every field.
//!
//! Lines that come between two releases share a level; the first after a release takes the next
//! number. A line never changes afterwards.
//!
//! The level stands in the journal's column `v`. The board's own level, `schema_version`, is the
//! highest so far; a process that knows less refuses the board. An operation that would raise it is
//! refused while a process lives that knows less, naming it; see [`Older`]. What time brings waits.

mod needed;
pub mod newer;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::id::{AgentId, ParticipantId};

/// Level of a process that notes none.
pub const FIRST: u32 = 1;

/// A kind, field or value that older builds do not read.
#[derive(Clone, Copy, Debug)]
pub struct Newer {
    /// The event's kind, or `state` for what the state file holds.
    pub kind: &'static str,
    /// Empty if the whole kind is new. Else the path of a field, through lists as if they were not
    /// there and through maps with `*`, or `path=value` for a new value.
    pub part: &'static str,
    pub level: u32,
}

impl Newer {
    /// A line of `NEWER`.
    pub const fn new(kind: &'static str, part: &'static str, level: u32) -> Self {
        Self { kind, part, level }
    }

    fn is_in(&self, value: &Value) -> bool {
        let (path, wanted) = self.part.split_once('=').unwrap_or((self.part, ""));
        reaches(value, path, wanted)
    }
}

/// The highest level in `lines`.
pub const fn newest(lines: &[Newer]) -> u32 {
    let (mut newest, mut at) = (FIRST, 0);
    while at < lines.len() {
        if lines[at].level > newest {
            newest = lines[at].level;
        }
        at += 1;
    }
    newest
}

/// Whether `path` leads to something in `value`; to `wanted`, if that is not empty.
fn reaches(value: &Value, path: &str, wanted: &str) -> bool {
    if let Value::Array(items) = value {
        return items.iter().any(|item| reaches(item, path, wanted));
    }
    if path.is_empty() {
        return if wanted.is_empty() { !value.is_null() } else { value.as_str() == Some(wanted) };
    }
    let Value::Object(fields) = value else { return false };
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    match name {
        "*" => fields.values().any(|one| reaches(one, rest, wanted)),
        name => fields.get(name).is_some_and(|one| reaches(one, rest, wanted)),
    }
}

/// A living process, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    pub id: ParticipantId,
    pub level: u32,
    pub pid: Option<u32>,
    pub machine: Option<String>,
    pub client: Option<String>,
    /// By how many milliseconds its wall clock is ahead of the board's time, if that is worth a
    /// word.
    pub ahead: Option<i64>,
}

/// A living process that knows less than what is to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Older {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Agents that act through it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    pub level: u32,
}

impl fmt::Display for Older {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("an unnamed process")?,
        }
        let agents: Vec<_> = self.agents.iter().map(|agent| format!("`{agent}`")).collect();
        let agents = (!agents.is_empty()).then(|| format!("agent {}", agents.join(", ")));
        let worktree = self.worktree.as_ref().map(|worktree| format!("in {worktree}"));
        let machine = self.machine.as_ref().map(|machine| format!("on {machine}"));
        let told: Vec<_> =
            [agents, self.client.clone(), worktree, machine].into_iter().flatten().collect();
        if told.is_empty() { Ok(()) } else { write!(f, " ({})", told.join(", ")) }
    }
}

/// Most older processes that one text names.
const NAMED: usize = 5;

/// The processes in words.
pub fn named(older: &[Older]) -> String {
    let mut named: Vec<_> = older.iter().take(NAMED).map(Older::to_string).collect();
    if let Some(more) = older.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    named.join("; ")
}

/// Stands for the state file in `NEWER`.
pub const STATE: &str = "state";

#[cfg(test)]
mod tests;
