//! What an import brings beside what is to be done: the past of the tasks, and agents and
//! discoveries of the board that they come from.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::State;
use super::agent::{Agent, Discovery};
use super::apply::Absent;
use super::id::{AgentId, TaskId};
use super::limit::{self, ATTEMPTS_KEPT};
use super::refusal::Refusal;
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

    fn give_to(&self, task: &mut Task, at: Timestamp) {
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
            late_result: None,
        }
    }
}

impl State {
    /// Applies what an import brings, after its tasks are there.
    pub(super) fn bring(&mut self, brought: &Brought, at: Timestamp) -> Result<(), Absent> {
        if brought.goal.is_some() || brought.master_plan.is_some() {
            self.edit_board(|board| {
                board.goal =
                    brought.goal.as_deref().map_or_else(|| Arc::clone(&board.goal), Arc::from);
                let plan = brought.master_plan.as_deref();
                board.master_plan = plan.map_or_else(|| Arc::clone(&board.master_plan), Arc::from);
            });
        }
        brought.agents.iter().for_each(|agent| self.put_agent(agent.clone()));
        brought.discoveries.iter().for_each(|one| self.put_discovery(one.clone()));
        // From the parts upwards, so that each parent already has the status that follows from its
        // parts.
        for (id, past) in brought.tasks.iter().rev() {
            let rolled_up = self.rolled_up(id);
            self.edit_task(id, |task| {
                task.status = rolled_up.unwrap_or(task.status);
                past.give_to(task, at);
            })?;
        }
        Ok(())
    }

    /// Checks that there is room for what an import brings.
    pub fn check_room_for(&self, brought: &Brought) -> Result<(), Refusal> {
        limit::AGENTS.check(self.agents.len() + brought.agents.len())?;
        limit::DISCOVERIES.check(self.discoveries.len() + brought.discoveries.len())
    }

    /// What of `brings` is new to the board.
    pub fn news_of(&self, brings: &Brought) -> Brought {
        let is_new = |old: &str, new: &Option<String>| old.is_empty() && new.is_some();
        let board = self.board();
        let agents = brings.agents.iter().filter(|agent| self.agent(&agent.id).is_none());
        let discoveries = brings.discoveries.iter().filter(|one| self.discovery(&one.id).is_none());
        Brought {
            goal: brings.goal.clone().filter(|_| is_new(&board.goal, &brings.goal)),
            master_plan: brings
                .master_plan
                .clone()
                .filter(|_| is_new(&board.master_plan, &brings.master_plan)),
            agents: agents.cloned().collect(),
            discoveries: discoveries.cloned().collect(),
            tasks: Vec::new(),
        }
    }
}
