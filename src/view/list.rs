//! Lists of tasks of one kind, a page at a time.

use std::sync::Arc;

use super::card::Card;
use super::sorted::{Numbered, Sorted};
use super::{Filter, Standing};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

/// Tasks of a page.
pub const PAGE: usize = 200;

/// Which tasks a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    All,
    Ready,
    Blocked,
    Waiting,
    InWork,
    Review,
    Failed,
    Done,
    Cancelled,
}

impl Kind {
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::All, "all"),
        (Self::Ready, "ready"),
        (Self::Blocked, "blocked"),
        (Self::Waiting, "waiting"),
        (Self::InWork, "work"),
        (Self::Review, "review"),
        (Self::Failed, "failed"),
        (Self::Done, "done"),
        (Self::Cancelled, "cancelled"),
    ];

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, own)| *own == word).map(|(kind, _)| kind)
    }

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    fn has(self, state: &State, task: &Task) -> bool {
        match self {
            Self::All => true,
            Self::Ready => state.is_ready(&task.id),
            Self::Blocked => state.is_blocked(task),
            Self::Waiting => {
                task.status == TaskStatus::Available
                    && !state.is_ready(&task.id)
                    && !state.is_blocked(task)
            }
            Self::InWork => task.status.is_held(),
            Self::Review => task.status == TaskStatus::Review,
            Self::Failed => task.status == TaskStatus::Failed,
            Self::Done => task.status == TaskStatus::Done,
            Self::Cancelled => {
                matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct List {
    pub kind: Kind,
    pub rows: Vec<Listed>,
    /// Number of those before the page
    pub after: usize,
    pub total: usize,
    pub now: Timestamp,
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub card: Card,
    pub standing: Standing,
    pub agent: Option<crate::state::id::AgentId>,
    /// When it ended, was taken, or was made
    pub at: Timestamp,
}

impl List {
    /// Tasks without parts: ready ones in claim order, done ones the newest first, all others in
    /// order of creation.
    pub fn of(
        state: &State,
        kind: Kind,
        scope: Option<&str>,
        filter: &Filter,
        after: usize,
        now: Timestamp,
    ) -> Self {
        let sorted = Sorted::of(state, scope);
        let numbered = |task: &Arc<Task>| sorted.task(&task.id);
        let is_wanted = |one: &Numbered<'_>| {
            in_scope(one.task, scope)
                && !state.is_parent(&one.task.id)
                && kind.has(state, one.task)
                && filter.fits(one)
        };
        let all: Vec<Numbered<'_>> = match kind {
            Kind::Ready => state.ready_in_order().into_iter().filter_map(numbered).collect(),
            Kind::Done => sorted.done.clone(),
            _ => state.tasks().filter_map(numbered).collect(),
        };
        let wanted: Vec<_> = all.into_iter().filter(is_wanted).collect();
        let rows = wanted.iter().skip(after).take(PAGE).map(|one| Listed::of(state, one)).collect();
        Self { kind, rows, after, total: wanted.len(), now, seq: state.seq() }
    }
}

impl Listed {
    fn of(state: &State, one: &Numbered<'_>) -> Self {
        let task = one.task;
        Self {
            card: Card::of(one),
            standing: Standing::of(state, task),
            agent: task.claimed_by.clone(),
            at: task.completed_at.or(task.claimed_at).unwrap_or(task.created_at),
        }
    }
}
