//! One agent: what it does, and what it did.

use std::sync::Arc;

use super::card::{Named, begun};
use super::{AgentRow, Look};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::id::AgentId;
use crate::state::message::Message;
use crate::state::task::Outcome;
use crate::state::time::Timestamp;

/// Most attempts and messages that are shown.
const SHOWN: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub agent: Arc<Agent>,
    pub row: AgentRow,
    pub tasks: Vec<Named>,
    /// Its attempts, the newest first
    pub attempts: Vec<Worked>,
    /// Messages from it and to it, the newest first
    pub messages: Vec<Arc<Message>>,
    pub now: Timestamp,
    pub seq: u64,
}

/// An attempt of an agent at a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Worked {
    pub agent: AgentId,
    pub task: Named,
    pub number: u32,
    pub since: Timestamp,
    /// None while it goes on
    pub until: Option<Timestamp>,
    pub outcome: Option<Outcome>,
    /// What came of it: the beginning of its error, or of its newest note
    pub text: Option<String>,
}

impl Profile {
    /// None if there is no such agent.
    pub fn of(state: &State, id: &AgentId, look: &Look<'_>) -> Option<Self> {
        let agent = state.agent(id)?;
        let mut attempts = worked(state, |one| one == id);
        attempts.truncate(SHOWN);
        let is_its =
            |message: &&Arc<Message>| message.from == *id || message.recipients.contains(id);
        Some(Self {
            agent: Arc::clone(agent),
            row: AgentRow::of(state, agent, look),
            tasks: agent.current_tasks.iter().map(|id| Named::find(state, id)).collect(),
            attempts,
            messages: state.messages().rev().filter(is_its).take(SHOWN).cloned().collect(),
            now: look.now,
            seq: state.seq(),
        })
    }
}

/// Attempts of these agents at all live tasks, the newest first.
pub(super) fn worked(state: &State, wanted: impl Fn(&AgentId) -> bool) -> Vec<Worked> {
    let tasks = state.tasks().filter(|task| task.run.is_none());
    let attempts = tasks.flat_map(|task| task.attempts.iter().map(move |attempt| (task, attempt)));
    let mut worked: Vec<_> = attempts.filter(|(_, attempt)| wanted(&attempt.agent)).collect();
    worked.sort_by_key(|(_, attempt)| std::cmp::Reverse(attempt.claimed_at));
    worked.truncate(10 * SHOWN);
    let row = |(task, attempt): (&Arc<crate::state::task::Task>, &crate::state::task::Attempt)| {
        let error = attempt.error.as_ref().map(|error| error.message.as_str());
        Worked {
            agent: attempt.agent.clone(),
            task: Named::find(state, &task.id),
            number: attempt.number,
            since: attempt.claimed_at,
            until: attempt.ended_at,
            outcome: attempt.outcome,
            text: error.or(attempt.note.as_deref()).map(begun),
        }
    };
    worked.into_iter().map(row).collect()
}
