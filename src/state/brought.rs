//! What an import brings beside what is to be done: the past of the tasks, and agents and
//! discoveries of the board that they come from.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::discovery::Discovery;
use super::id::{AgentId, TaskId};
use super::limit::ATTEMPTS_KEPT;
use super::task::{Attempt, AttemptError, Outcome, Place, Task, TaskResult};
use super::time::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Brought {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_plan: Option<String>,
    /// Agents that the board did not know. None of them is present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discoveries: Vec<Discovery>,
    /// Tasks with a past, each before its parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<(TaskId, Past)>,
}

/// How much of each an import brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    pub agents: usize,
    pub discoveries: usize,
    /// Tasks with a past: times, attempts or a result
    pub tasks: usize,
    pub results: usize,
}

impl Brought {
    pub fn counts(&self) -> Counts {
        Counts {
            agents: self.agents.len(),
            discoveries: self.discoveries.len(),
            tasks: self.tasks.len(),
            results: self.tasks.iter().filter(|(_, past)| past.result.is_some()).count(),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What became of a task before it came here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Past {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Agent that did it, or tried last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// When an available task may be claimed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// Number of the last attempt
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Attempts that do not count against max_attempts
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u32,
    /// Attempts of which more is known, oldest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Tried>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    pub number: u32,
    pub agent: AgentId,
    #[serde(default)]
    pub claimed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Without it, the attempt ended with the import
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Past {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn give_to(&self, task: &mut Task, at: Timestamp) {
        let is_over = !task.status.is_unfinished();
        task.created_at = self.created_at.unwrap_or(task.created_at);
        task.not_before = self.not_before.filter(|_| !is_over);
        if is_over {
            task.claimed_by.clone_from(&self.claimed_by);
            task.claimed_at = self.claimed_at;
            task.started_at = self.started_at;
            task.completed_at = self.completed_at.or(task.completed_at).or(Some(at));
        }
        if let Some(result) = &self.result {
            task.result = Some(Arc::new(result.clone()));
        }
        // A task that had attempts here before keeps their numbers.
        if task.attempt == 0 {
            task.attempt = self.attempt;
            task.uncounted = self.uncounted;
            let surplus = self.attempts.len().saturating_sub(ATTEMPTS_KEPT);
            task.attempts =
                self.attempts.iter().skip(surplus).map(|tried| tried.attempt(at)).collect();
        }
    }
}

impl Tried {
    fn attempt(&self, at: Timestamp) -> Attempt {
        let ended_at = self.ended_at.unwrap_or(at);
        Attempt {
            number: self.number,
            agent: self.agent.clone(),
            participant: None,
            place: Place::default(),
            claimed_at: self.claimed_at,
            lease_until: ended_at,
            stepped: false,
            stepped_millis: 0,
            acted: true,
            started_at: self.started_at,
            ended_at: Some(ended_at),
            outcome: Some(self.outcome),
            error: self.error.clone(),
            note: self.note.clone(),
            reviewed: None,
            late_result: None,
        }
    }
}
