//! Sessions in order, their children, and room for one more.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RunStatus;
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::SessionId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::session::{Lineage, Session};
use crate::state::stored::Stored;

/// Sessions that retire at once to make room.
const RETIRED_AT_ONCE: usize = 1_000;

impl State {
    pub fn session(&self, id: &SessionId) -> Option<&Arc<Session>> {
        self.records.sessions.get(id)
    }

    /// All sessions, ordered by id.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = &Arc<Session>> {
        self.records.sessions.values()
    }

    /// Sessions created before `before`, newest first.
    pub fn newest_sessions(&self, before: Option<&Session>) -> impl Iterator<Item = &Arc<Session>> {
        let end = before.map(|session| (session.created_at, session.id.clone()));
        let all = &self.lineage.by_creation;
        let older = match end {
            Some(end) => all.range(..end),
            None => all.range(..),
        };
        older.rev().filter_map(|(_, id)| self.records.sessions.get(id))
    }

    pub fn child_sessions<'s>(
        &'s self,
        id: &'s SessionId,
    ) -> impl Iterator<Item = &'s Arc<Session>> {
        let from = (id.clone(), SessionId::trusted(""));
        let children =
            self.lineage.children.range(from..).take_while(move |(parent, _)| parent == id);
        children.filter_map(|(_, child)| self.records.sessions.get(child))
    }

    /// Sessions with results that no run has taken over.
    pub fn owed_sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.lineage.owed.iter().filter_map(|id| self.records.sessions.get(id))
    }

    /// Status of the session's newest run.
    pub fn session_status(&self, session: &Session) -> Option<RunStatus> {
        self.run_status(session.last_run.as_ref()?)
    }

    /// Checks that there is room for one more session, a child of `parent`. On a full board,
    /// returns the event that retires the oldest sessions without live runs, results owed or
    /// children. The journal's tables keep them.
    pub fn room_for_session(&self, parent: Option<&SessionId>) -> Result<Option<Event>, Refusal> {
        let count = self.records.sessions.len() + 1;
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
        let oldest = self.lineage.by_creation.iter().filter_map(|(_, id)| self.session(id));
        oldest.filter(move |session| {
            session.results.is_empty()
                && parent != Some(&session.id)
                && self.runs_of(&session.id).next().is_none()
                && self.child_sessions(&session.id).next().is_none()
        })
    }

    pub(in crate::state) fn put_session(&mut self, session: Session) {
        self.put(session.id.clone(), Some(Arc::new(session)));
    }
}

impl Stored for Session {
    type Kept = BTreeMap<SessionId, Arc<Self>>;

    fn follow(state: &mut State, id: &SessionId, old: Option<&Self>, new: Option<&Self>) {
        state.lineage.replace(id, old, new);
    }

    fn check(state: &State, wrong: &mut Vec<String>) {
        let mut fresh = Lineage::default();
        state.records.sessions.iter().for_each(|(id, one)| fresh.replace(id, None, Some(one)));
        if fresh != state.lineage {
            wrong.push("the sessions are not indexed as they are".to_owned());
        }
        for session in state.sessions() {
            if session
                .parent_session_id
                .as_ref()
                .is_some_and(|parent| state.session(parent).is_none())
            {
                wrong.push(format!("session {} has a parent that does not exist", session.id));
            }
            let last = session.last_run.as_ref();
            if last.is_some_and(|run| state.status_of(run).is_none()) {
                wrong.push(format!("session {} names a run that does not exist", session.id));
            }
        }
        for task in state.tasks() {
            let Some(run) = &task.run else { continue };
            if state.session(&run.session_id).is_none() {
                wrong.push(format!("run {} is of a session that does not exist", task.id));
            }
            if !task.dependencies.is_empty() || task.parent.is_some() || task.path.is_some() {
                wrong.push(format!("run {} has a place among tasks", task.id));
            }
        }
    }
}
