//! Sessions: each is one conversation with an agent. Runs start and resume it; results of its child
//! runs are kept here until a run of it takes them over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::{Demands, Properties};
use super::event::Event;
use super::id::{SessionId, TaskId};
use super::limit;
use super::refusal::Refusal;
use super::run::{ChildResult, ExecutionMode, RunStatus};
use super::task::Task;
use super::time::Timestamp;
use super::{State, Undo};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    /// Session whose run started this one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    /// Execution mode of the newest run, and of runs that the board creates itself
    pub execution_mode: ExecutionMode,
    /// Where the session was started and so has to continue
    #[serde(default, skip_serializing_if = "Affinity::is_empty")]
    pub affinity: Affinity,
    /// Id of the newest run
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<TaskId>,
    /// Number of runs so far
    #[serde(default)]
    pub runs: u32,
    /// Results of ended child runs that no run of this session has taken over yet, oldest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ChildResult>,
    /// True if the run that was to take the results over ended before it began: they wait for a
    /// run that somebody creates, or for another result
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// What the newest run that somebody created asked for; runs that the board creates ask for
    /// the same
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Asked>>,
    #[serde(default)]
    pub created_at: Timestamp,
}

/// What a run asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Demands,
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

impl Asked {
    pub fn of(run: &Task) -> Self {
        Self {
            demands: Demands::clone(&run.demands),
            priority: run.priority,
            timeout_seconds: run.timeout_seconds,
        }
    }
}

impl Session {
    /// Demands on a runner that resumes the session: where the conversation is takes precedence
    /// over what was asked for.
    pub fn demands(&self) -> Demands {
        let affinity = self.affinity.demands();
        let asked = self.asked.as_deref().map(|asked| asked.demands.clone()).unwrap_or_default();
        Demands {
            hostname: affinity.hostname.or(asked.hostname),
            profile: affinity.profile.or(asked.profile),
            ..asked
        }
    }
}

/// The machine and profile that have the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Affinity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Affinity {
    pub fn of(properties: &Properties) -> Self {
        Self { hostname: properties.hostname.clone(), profile: properties.profile.clone() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Demands on a runner that resumes the session.
    pub fn demands(&self) -> Demands {
        Demands {
            hostname: self.hostname.clone(),
            profile: self.profile.clone(),
            ..Demands::default()
        }
    }
}

/// Sessions that retire at once to make room.
const RETIRED_AT_ONCE: usize = 1_000;

/// All sessions, with indexes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sessions {
    by_id: BTreeMap<SessionId, Arc<Session>>,
    by_creation: BTreeSet<(Timestamp, SessionId)>,
    children: BTreeSet<(SessionId, SessionId)>,
    /// Sessions with results that no run has taken over.
    owed: BTreeSet<SessionId>,
}

impl Sessions {
    pub fn of(sessions: impl Iterator<Item = Session>) -> Self {
        let mut all = Self::default();
        sessions.for_each(|session| drop(all.swap(session.id.clone(), Some(Arc::new(session)))));
        all
    }

    pub fn get(&self, id: &SessionId) -> Option<&Arc<Session>> {
        self.by_id.get(id)
    }

    pub fn swap(&mut self, id: SessionId, new: Option<Arc<Session>>) -> Option<Arc<Session>> {
        let old = match &new {
            Some(session) => self.by_id.insert(id.clone(), Arc::clone(session)),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = &old {
            self.by_creation.remove(&(old.created_at, id.clone()));
            if let Some(parent) = &old.parent_session_id {
                self.children.remove(&(parent.clone(), id.clone()));
            }
            self.owed.remove(&id);
        }
        if let Some(new) = &new {
            self.by_creation.insert((new.created_at, id.clone()));
            if let Some(parent) = &new.parent_session_id {
                self.children.insert((parent.clone(), id.clone()));
            }
            if !new.results.is_empty() {
                self.owed.insert(id);
            }
        }
        old
    }
}

impl State {
    pub fn session(&self, id: &SessionId) -> Option<&Arc<Session>> {
        self.sessions.get(id)
    }

    /// All sessions, ordered by id.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = &Arc<Session>> {
        self.sessions.by_id.values()
    }

    /// Sessions created before `before`, newest first.
    pub fn newest_sessions(&self, before: Option<&Session>) -> impl Iterator<Item = &Arc<Session>> {
        let end = before.map(|session| (session.created_at, session.id.clone()));
        let all = &self.sessions.by_creation;
        let older = match end {
            Some(end) => all.range(..end),
            None => all.range(..),
        };
        older.rev().filter_map(|(_, id)| self.sessions.get(id))
    }

    pub fn child_sessions<'s>(
        &'s self,
        id: &'s SessionId,
    ) -> impl Iterator<Item = &'s Arc<Session>> {
        let from = (id.clone(), SessionId::trusted(""));
        let children =
            self.sessions.children.range(from..).take_while(move |(parent, _)| parent == id);
        children.filter_map(|(_, child)| self.sessions.get(child))
    }

    /// Sessions with results that no run has taken over.
    pub fn owed_sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.owed.iter().filter_map(|id| self.sessions.get(id))
    }

    /// Status of the session's newest run.
    pub fn session_status(&self, session: &Session) -> Option<RunStatus> {
        self.run_status(session.last_run.as_ref()?)
    }

    /// Checks that there is room for one more session, a child of `parent`. On a full board,
    /// returns the event that retires the oldest sessions without live runs, results owed or
    /// children. The journal's tables keep them.
    pub fn room_for_session(&self, parent: Option<&SessionId>) -> Result<Option<Event>, Refusal> {
        let count = self.sessions.by_id.len() + 1;
        if limit::RUN_SESSIONS.check(count).is_ok() {
            return Ok(None);
        }
        let past =
            self.sessions_to_spare(parent).take(count - limit::RUN_SESSIONS.max + RETIRED_AT_ONCE);
        let sessions: Vec<_> = past.map(|session| session.id.clone()).collect();
        limit::RUN_SESSIONS.check(count - sessions.len())?;
        Ok(Some(Event::SessionsRetired { sessions }))
    }

    /// Sessions that may retire, oldest first.
    pub(super) fn sessions_to_spare(
        &self,
        parent: Option<&SessionId>,
    ) -> impl Iterator<Item = &Arc<Session>> {
        let oldest = self.sessions.by_creation.iter().filter_map(|(_, id)| self.session(id));
        oldest.filter(move |session| {
            session.results.is_empty()
                && parent != Some(&session.id)
                && self.runs_of(&session.id).next().is_none()
                && self.child_sessions(&session.id).next().is_none()
        })
    }

    pub(super) fn put_session(&mut self, session: Session) {
        let id = session.id.clone();
        let old = self.sessions.swap(id.clone(), Some(Arc::new(session)));
        self.undo.push(Undo::Session(id, old));
    }

    pub(super) fn check_sessions(&self, wrong: &mut Vec<String>) {
        let fresh = Sessions::of(self.sessions().map(|session| Session::clone(session)));
        if fresh != self.sessions {
            wrong.push("the sessions are not indexed as they are".to_owned());
        }
        for session in self.sessions() {
            if session
                .parent_session_id
                .as_ref()
                .is_some_and(|parent| self.session(parent).is_none())
            {
                wrong.push(format!("session {} has a parent that does not exist", session.id));
            }
            let last = session.last_run.as_ref();
            if last.is_some_and(|run| self.status_of(run).is_none()) {
                wrong.push(format!("session {} names a run that does not exist", session.id));
            }
        }
        for task in self.tasks() {
            let Some(run) = &task.run else { continue };
            if self.session(&run.session_id).is_none() {
                wrong.push(format!("run {} is of a session that does not exist", task.id));
            }
            if !task.dependencies.is_empty() || task.parent.is_some() || task.path.is_some() {
                wrong.push(format!("run {} has a place among tasks", task.id));
            }
        }
    }
}
