//! What a view shows, as it was when the board was asked.

use super::first::Line;
use super::subject::Subject;
use crate::state::agent::Role;
use crate::state::id::{AgentId, TaskId};
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;
use crate::view::{Board, Tone};

pub(crate) enum Content {
    /// The first screen, and what `status` notes between its head and its lists.
    Board(Box<Board>, Vec<Line>),
    Tasks(Vec<TaskRow>),
    /// The board for those that are there, and the others.
    Agents(Box<Board>, Vec<AgentRow>),
    Events(Vec<EventRow>),
    Page(Box<Page>),
}

/// A task in the tree or in the graph.
#[derive(Clone)]
pub(crate) struct TaskRow {
    pub id: TaskId,
    pub number: Option<u64>,
    pub depth: usize,
    pub path: Option<String>,
    pub title: String,
    pub status: TaskStatus,
    /// How it stands, in words.
    pub standing: String,
    pub tone: Tone,
    pub agent: Option<AgentId>,
    pub priority: u8,
}

/// An agent whose session has ended.
pub(crate) struct AgentRow {
    pub id: AgentId,
    pub role: Role,
    pub last_sign: Timestamp,
    pub completed: u64,
    pub failed: u64,
}

pub(crate) struct EventRow {
    pub line: Line,
    pub about: Option<Subject>,
    pub seq: Option<u64>,
}

/// A text, such as all about one task.
pub(crate) struct Page {
    pub about: Option<Subject>,
    pub lines: Vec<Line>,
}
