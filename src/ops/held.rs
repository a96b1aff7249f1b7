//! What an agent holds, as replies tell it: enough to go on with it after a break.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim_task::shortened;
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::id::{AgentId, TaskId};
use crate::state::task::{Outcome, Task, TaskStatus};
use crate::state::time::Timestamp;

/// A task or a run that the agent holds.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Held {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<TaskId>,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its newest note
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A task whose claim ended while its agent was away.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Lost {
    pub task: TaskId,
    pub title: String,
    /// What became of it
    pub status: TaskStatus,
    /// Who has it now, or has finished it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// Bytes of a title and of a note.
const TITLE: usize = 80;
const NOTE: usize = 200;
/// Most tasks in one reply. An agent usually holds one.
const TOLD: usize = 5;
/// Newest tasks that are searched for lost ones.
const SEARCHED: usize = 20_000;

/// All tasks and runs that the agent holds.
pub(super) fn held(agent: &Agent, state: &State) -> Vec<Held> {
    let held = agent.current_tasks.iter().filter_map(|id| state.task(id));
    held.map(|task| {
        let id = Some(task.id.clone());
        let (run, task_id) = if task.run.is_some() { (id, None) } else { (None, id) };
        let note = task.attempts.iter().rev().find_map(|attempt| attempt.note.as_deref());
        Held {
            task: task_id,
            run,
            attempt: task.attempt,
            title: shortened(task.headline(), TITLE),
            note: note.map(|note| shortened(note, NOTE)),
        }
    })
    .collect()
}

impl Held {
    pub fn is_task(&self) -> bool {
        self.task.is_some()
    }
}

/// Tasks that `agent` held when it was last heard of, at `heard`, and that were taken from it
/// since.
pub(super) fn lost(agent: &AgentId, heard: Timestamp, state: &State) -> Vec<Lost> {
    let is_lost = |task: &&std::sync::Arc<Task>| {
        let own = task.attempts.iter().rev().find(|attempt| attempt.agent == *agent);
        own.is_some_and(|own| {
            own.outcome == Some(Outcome::Expired) && own.ended_at.is_some_and(|at| at >= heard)
        }) && task.open_attempt().is_none_or(|open| open.agent != *agent)
            && task.run.is_none()
    };
    let lost = state.tasks().rev().take(SEARCHED).filter(is_lost).take(TOLD);
    lost.map(|task| Lost {
        task: task.id.clone(),
        title: shortened(task.headline(), TITLE),
        status: task.status,
        agent: task.claimed_by.clone(),
    })
    .collect()
}
