//! Runs, sessions and attempts as rows of tables, for whoever asks the journal's database in SQL. They follow from the
//! events alone: the rows of a batch are those of what it changed, as it is behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Run, RunStatus};
use crate::state::id::{SessionId, TaskId};
use crate::state::session::Session;
use crate::state::task::{Attempt, Outcome, Task};
use crate::state::time::SECOND;
use crate::state::{Ordinal, Savepoint, State, Undo};

/// What is to be written with a batch of events.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    /// Everything else that the tables have is to go, but for these runs, which have retired.
    pub anew: Option<BTreeSet<TaskId>>,
    /// Parents may stand behind their children.
    pub sessions: Vec<SessionRow>,
    pub runs: Vec<RunRow>,
}

#[derive(Debug, PartialEq)]
pub struct SessionRow {
    pub session: Arc<Session>,
    /// Of the newest run.
    pub status: Option<RunStatus>,
}

#[derive(Debug, PartialEq)]
pub struct RunRow {
    pub task: Arc<Task>,
    pub parent_session_id: Option<SessionId>,
    /// Attempts that are new or other than they were.
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

    /// When the open attempt has taken all its time; RFC 3339, as all times of the tables.
    pub fn timeout_at(&self) -> Option<String> {
        let open = self.task.open_attempt()?;
        let seconds = self.task.timeout_seconds?;
        Some((open.claimed_at + open.stepped_millis + i64::from(seconds) * SECOND).to_string())
    }
}

pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Expired => "expired",
        Outcome::Released => "released",
        Outcome::Cancelled => "cancelled",
    }
}

impl State {
    /// Of what was changed since `since`. Nothing without runs.
    pub fn run_rows(&self, since: Savepoint) -> Rows {
        let mut runs: BTreeMap<Ordinal, (Option<Arc<Task>>, Arc<Task>)> = BTreeMap::new();
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        for undo in &self.undo[since.0..] {
            match undo {
                Undo::Whole(_) => return self.all_run_rows(),
                Undo::Session(id, _) => drop(sessions.insert(id.clone())),
                Undo::Task(ordinal, old) => {
                    let now = self.tasks.get(*ordinal);
                    // Of a run that has retired this is the last that was seen of it.
                    let Some(last) = now.or(old.as_ref()).filter(|task| task.run.is_some()) else { continue };
                    let first = || (old.clone(), Arc::clone(last));
                    runs.entry(*ordinal).or_insert_with(first).1 = Arc::clone(last);
                }
                _ => {}
            }
        }
        sessions.extend(runs.values().filter_map(|(_, task)| Some(task.run.as_ref()?.session_id.clone())));
        Rows {
            anew: None,
            sessions: sessions.iter().filter_map(|id| self.session_row(id)).collect(),
            runs: runs.into_values().map(|(old, task)| self.run_row(old.as_deref(), task)).collect(),
        }
    }

    /// Of the whole state, as after a change that replaced all of it.
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
        let attempts = task.attempts.iter().filter(|attempt| !known.contains(attempt)).cloned().collect();
        RunRow { parent_session_id: session.and_then(|session| session.parent_session_id.clone()), attempts, task }
    }
}
