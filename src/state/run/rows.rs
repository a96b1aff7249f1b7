//! Runs, sessions and attempts as table rows, for queries of the journal's database in SQL. They
//! follow from the events alone: a batch writes the rows of what it changed, as they are after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Run, RunStatus, timeout_at};
use crate::state::id::{SessionId, TaskId};
use crate::state::session::Session;
use crate::state::stored::Replaced;
use crate::state::task::{Attempt, Outcome, Task};
use crate::state::{Ordinal, Savepoint, State, Undo};

/// Rows to write with a batch of events.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    /// If set, all other rows are deleted, except those of these retired runs.
    pub anew: Option<BTreeSet<TaskId>>,
    /// Sessions; a parent may come after its children.
    pub sessions: Vec<SessionRow>,
    pub runs: Vec<RunRow>,
}

#[derive(Debug, PartialEq)]
pub struct SessionRow {
    pub session: Arc<Session>,
    /// Status of the newest run.
    pub status: Option<RunStatus>,
}

#[derive(Debug, PartialEq)]
pub struct RunRow {
    pub task: Arc<Task>,
    pub parent_session_id: Option<SessionId>,
    /// Attempts that are new or have changed.
    pub attempts: Vec<Attempt>,
}

impl Rows {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RunRow {
    pub fn run(&self) -> Option<&Run> {
        self.task.run.as_deref()
    }

    /// When the run's time is over, in RFC 3339 like all times in the tables.
    pub fn timeout_at(&self) -> Option<String> {
        timeout_at(&self.task).map(|at| at.to_string())
    }
}

pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Expired => "expired",
        Outcome::Released => "released",
        Outcome::Cancelled => "cancelled",
        Outcome::Rejected => "rejected",
    }
}

impl State {
    /// The rows of what has changed since `since`; empty without runs.
    pub fn run_rows(&self, since: Savepoint) -> Rows {
        let mut runs: BTreeMap<Ordinal, (Option<Arc<Task>>, Arc<Task>)> = BTreeMap::new();
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        for undo in &self.undo[since.0..] {
            match undo {
                Undo::Whole(_) => return self.all_run_rows(),
                Undo::Record(Replaced::Session(id, _)) => drop(sessions.insert(id.clone())),
                Undo::Record(Replaced::Task(ordinal, old)) => {
                    let now = self.records.tasks.get(*ordinal);
                    // A run that has retired keeps its last row.
                    let Some(last) = now.or(old.as_ref()).filter(|task| task.run.is_some()) else {
                        continue;
                    };
                    let first = || (old.clone(), Arc::clone(last));
                    runs.entry(*ordinal).or_insert_with(first).1 = Arc::clone(last);
                }
                _ => {}
            }
        }
        sessions.extend(
            runs.values().filter_map(|(_, task)| Some(task.run.as_ref()?.session_id.clone())),
        );
        Rows {
            anew: None,
            sessions: sessions.iter().filter_map(|id| self.session_row(id)).collect(),
            runs: runs
                .into_values()
                .map(|(old, task)| self.run_row(old.as_deref(), task))
                .collect(),
        }
    }

    /// The rows of the whole state, as after a change that replaced all of it.
    pub fn all_run_rows(&self) -> Rows {
        let retired = self.retired().filter(|(_, stub)| stub.run).map(|(id, _)| id.clone());
        let runs = self.tasks().filter(|task| task.run.is_some());
        Rows {
            anew: Some(retired.collect()),
            sessions: self.sessions().filter_map(|session| self.session_row(&session.id)).collect(),
            runs: runs.map(|task| self.run_row(None, Arc::clone(task))).collect(),
        }
    }

    fn session_row(&self, id: &SessionId) -> Option<SessionRow> {
        let session = self.session(id)?;
        Some(SessionRow { session: Arc::clone(session), status: self.session_status(session) })
    }

    fn run_row(&self, old: Option<&Task>, task: Arc<Task>) -> RunRow {
        let session = task.run.as_ref().and_then(|run| self.session(&run.session_id));
        let known = old.map(|task| task.attempts.as_slice()).unwrap_or_default();
        let attempts =
            task.attempts.iter().filter(|attempt| !known.contains(attempt)).cloned().collect();
        RunRow {
            parent_session_id: session.and_then(|session| session.parent_session_id.clone()),
            attempts,
            task,
        }
    }
}
