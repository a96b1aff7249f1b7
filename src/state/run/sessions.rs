//! Sessions in order, their children, and room for one more.

use std::sync::Arc;

use super::RunStatus;
use crate::state::event::Event;
use crate::state::id::SessionId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::session::{Session, Sessions};
use crate::state::{State, Undo};

/// Sessions that retire at once to make room.
const RETIRED_AT_ONCE: usize = 1_000;

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
    pub(in crate::state) fn sessions_to_spare(
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

    pub(in crate::state) fn put_session(&mut self, session: Session) {
        let id = session.id.clone();
        let old = self.sessions.swap(id.clone(), Some(Arc::new(session)));
        self.undo.push(Undo::Session(id, old));
    }

    pub(in crate::state) fn check_sessions(&self, wrong: &mut Vec<String>) {
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
