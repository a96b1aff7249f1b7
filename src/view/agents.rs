//! Agents: what each does, since when, and when it was last heard of. The person is none of them.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use super::card::{Named, begun};
use super::sorted::Numbered;
use crate::state::State;
use crate::state::agent::{Agent, Role, Waiting};
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::message::MessageKind;
use crate::state::time::{MINUTE, Timestamp};

/// Milliseconds for which an agent without task and process still counts as there: between two
/// one-shot commands.
const A_MOMENT: i64 = 5 * MINUTE;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AgentRow {
    pub id: AgentId,
    pub role: Role,
    pub sign: Sign,
    /// True if a process that it acts through is alive
    pub present: bool,
    /// The newest of its tasks
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Named>,
    /// Number of its other tasks
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub others: usize,
    /// When it claimed the task
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    pub last_sign: Timestamp,
    /// Its newest note on the task
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What it waits for at a prompt
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
    /// The oldest question of it that the person has not read
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// Since when a person lets it have no more tasks
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Timestamp>,
    /// When it was asked to stop
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_asked: Option<Timestamp>,
    /// True if it has called since
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_heard: bool,
}

/// How an agent is doing, as far as the board knows.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// At a prompt, for a person
    Waiting,
    /// Holds a task, but its process has ended
    Gone,
    /// Holds a task, but has not called for the length of a lease
    Quiet,
    Working,
    /// Holds no task
    Idle,
}

/// Those of the list, the ones that need a person first, and the number of those whose sessions
/// have ended.
pub(super) fn rows(
    state: &State,
    look: &Look<'_>,
    held: &HashMap<&TaskId, Numbered<'_>>,
) -> (Vec<AgentRow>, usize) {
    let asked = questions(state);
    let all = state.agents().filter(|agent| agent.id.as_str() != HUMAN);
    let (here, ended): (Vec<_>, Vec<_>) = all.partition(|agent| is_here(agent, look.now));
    let mut rows: Vec<_> = here.iter().map(|agent| row(state, agent, look, held, &asked)).collect();
    rows.sort_by_cached_key(|row| {
        (row.sign, row.since.unwrap_or(Timestamp::from_millis(i64::MAX)), row.id.clone())
    });
    (rows, ended.len())
}

/// Whether the agent's session goes on.
pub(super) fn is_here(agent: &Agent, now: Timestamp) -> bool {
    agent.is_present()
        || !agent.current_tasks.is_empty()
        || agent.waiting.is_some()
        || now.since(agent.last_heartbeat) < A_MOMENT
}

impl AgentRow {
    /// What the list says of the agent, wherever it is.
    pub(super) fn of(state: &State, agent: &Agent, look: &Look<'_>) -> Self {
        row(state, agent, look, &HashMap::new(), &questions(state))
    }
}

fn row(
    state: &State,
    agent: &Agent,
    look: &Look<'_>,
    held: &HashMap<&TaskId, Numbered<'_>>,
    asked: &HashMap<&AgentId, String>,
) -> AgentRow {
    let task = agent.current_task.as_ref();
    let open = task.and_then(|id| state.task(id)?.open_attempt());
    let stopped = agent.stop_asked().map(|(pause, _)| pause.at);
    let stopped =
        stopped.max(task.and_then(|id| Some(state.task(id)?.stop_requested.as_ref()?.at)));
    AgentRow {
        id: agent.id.clone(),
        role: agent.role,
        sign: sign(state, agent, look),
        present: agent.is_present(),
        task: task.and_then(|id| {
            let number = held.get(id).map(|one| one.number).or_else(|| state.number_of(id));
            Some(Named::of(number, state.task(id)?))
        }),
        others: agent.current_tasks.len().saturating_sub(1),
        since: open.map(|attempt| attempt.claimed_at),
        last_sign: agent.last_heartbeat,
        note: open.and_then(|attempt| attempt.note.as_deref()).map(begun),
        branch: open.and_then(|attempt| attempt.place.branch.clone()),
        waits: agent.waiting.as_deref().cloned(),
        asks: asked.get(&agent.id).cloned(),
        paused: agent.paused.as_ref().map(|pause| pause.at),
        stop_asked: stopped,
        stop_heard: stopped.is_some_and(|at| agent.last_heartbeat > at),
    }
}

fn sign(state: &State, agent: &Agent, look: &Look<'_>) -> Sign {
    let mut held = agent.current_tasks.iter().filter_map(|id| state.task(id)?.open_attempt());
    if agent.waiting.is_some() {
        Sign::Waiting
    } else if agent.current_tasks.is_empty() {
        Sign::Idle
    } else if look.now.since(agent.last_heartbeat) > look.policy.lease_millis(false) {
        Sign::Quiet
    } else if !agent.is_present() && held.any(|attempt| attempt.participant.is_some()) {
        Sign::Gone
    } else {
        Sign::Working
    }
}

/// The oldest question of each agent that the person has not read.
fn questions(state: &State) -> HashMap<&AgentId, String> {
    let human = AgentId::trusted(HUMAN);
    let mut asked = HashMap::new();
    for message in state.unread(&human).filter(|one| one.kind == MessageKind::Request) {
        asked.entry(&message.from).or_insert_with(|| message.name());
    }
    asked
}
