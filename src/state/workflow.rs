//! Workflows: the progress of an execution, its budget, and its newest checkpoints, so that whoever
//! resumes it after an interruption goes on from there.
//!
//! A workflow's checkpoints have places that are reused, the oldest first. A state file that is
//! written in place then overwrites one text instead of growing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::execution::ExecutionState;
use super::id::{AgentId, CheckpointId, TaskId, WorkflowId};
use super::record::Record;
use super::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    pub id: WorkflowId,
    /// What the workflow works through: `all` or a path such as P1.M2
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Agents that work for it and have saved in no other workflow since
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub agents: BTreeSet<AgentId>,
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    #[serde(default)]
    pub spent: Spent,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Number of the newest checkpoint; no number is used twice
    pub checkpoint: u64,
}

impl Record for Workflow {
    const FIELD: &'static str = "workflows";
    type Id = WorkflowId;
    type All = BTreeMap<WorkflowId, Self>;

    fn id(&self) -> Option<&WorkflowId> {
        Some(&self.id)
    }
}

/// What a workflow may spend; what is omitted is unlimited
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    #[serde(default)]
    pub tokens: u64,
    #[serde(default)]
    pub attempts: u64,
    #[serde(default)]
    pub seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    pub workflow_id: WorkflowId,
    /// Number within the workflow, from 1
    pub number: u64,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// SHA-256 of the state's JSON without spaces
    pub sha256: String,
    pub state: ExecutionState,
}

impl Record for Checkpoint {
    const FIELD: &'static str = "checkpoints";
    type Id = CheckpointId;
    type All = BTreeMap<CheckpointId, Self>;

    fn id(&self) -> Option<&CheckpointId> {
        None
    }
}

impl Checkpoint {
    /// What is wrong with the checkpoint; `None` if it is as it was saved.
    pub fn damage(&self) -> Option<&'static str> {
        (sha256(self.state.text()) != self.sha256).then_some("its sha256 does not fit its state")
    }
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    pub what: &'static str,
    pub spent: u64,
    pub budget: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.spent, self.budget, self.what)
    }
}

impl Budget {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This budget with the bounds of `more` in place of its own.
    pub fn with(self, more: Self) -> Self {
        Self {
            tokens: more.tokens.or(self.tokens),
            attempts: more.attempts.or(self.attempts),
            seconds: more.seconds.or(self.seconds),
        }
    }

    /// True if `new` raises a bound that is set.
    pub fn is_raised_by(self, new: Self) -> bool {
        let raised = |old: Option<u64>, new: Option<u64>| matches!((old, new), (Some(old), Some(new)) if new > old);
        raised(self.tokens, new.tokens)
            || raised(self.attempts, new.attempts)
            || raised(self.seconds, new.seconds)
    }
}

impl Spent {
    pub fn and(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            attempts: self.attempts.saturating_add(more.attempts),
            seconds: self.seconds.saturating_add(more.seconds),
        }
    }

    /// The larger of each amount.
    pub fn max(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            attempts: self.attempts.max(other.attempts),
            seconds: self.seconds.max(other.seconds),
        }
    }
}

impl Workflow {
    pub fn remaining(&self) -> Budget {
        let left =
            |budget: Option<u64>, spent: u64| budget.map(|budget| budget.saturating_sub(spent));
        Budget {
            tokens: left(self.budget.tokens, self.spent.tokens),
            attempts: left(self.budget.attempts, self.spent.attempts),
            seconds: left(self.budget.seconds, self.spent.seconds),
        }
    }

    pub fn exhausted(&self) -> Option<Exhausted> {
        let bounds = [
            ("tokens", self.budget.tokens, self.spent.tokens),
            ("attempts", self.budget.attempts, self.spent.attempts),
            ("seconds", self.budget.seconds, self.spent.seconds),
        ];
        let over = |(what, budget, spent): (&'static str, Option<u64>, u64)| {
            budget.filter(|budget| spent >= *budget).map(|budget| Exhausted { what, spent, budget })
        };
        bounds.into_iter().find_map(over)
    }
}

/// Indexes that follow from the workflows and their checkpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    /// Place and time of each checkpoint of a workflow, by number.
    pub(super) numbers: BTreeMap<WorkflowId, BTreeMap<u64, (CheckpointId, Timestamp)>>,
    pub(super) tasks: BTreeMap<TaskId, BTreeSet<(Timestamp, u64, CheckpointId)>>,
    pub(super) agents: BTreeMap<AgentId, WorkflowId>,
    /// Workflows with more than one checkpoint, by the time of the oldest.
    pub(super) aging: BTreeSet<(Timestamp, WorkflowId)>,
}

impl Progress {
    pub(super) fn replace_workflow(&mut self, old: Option<&Workflow>, new: Option<&Workflow>) {
        for (one, agent) in
            old.iter().flat_map(|one| one.agents.iter().map(move |agent| (one, agent)))
        {
            if self.agents.get(agent) == Some(&one.id) {
                self.agents.remove(agent);
            }
        }
        for (one, agent) in
            new.iter().flat_map(|one| one.agents.iter().map(move |agent| (one, agent)))
        {
            self.agents.insert(agent.clone(), one.id.clone());
        }
    }

    pub(super) fn replace_checkpoint(
        &mut self,
        id: &CheckpointId,
        old: Option<&Checkpoint>,
        new: Option<&Checkpoint>,
    ) {
        let workflow = new.or(old).map(|one| one.workflow_id.clone());
        let before = workflow.as_ref().and_then(|workflow| self.oldest_of(workflow));
        self.replace(id, old, new);
        if let Some(workflow) = workflow {
            let after = self.oldest_of(&workflow);
            before.map(|at| self.aging.remove(&(at, workflow.clone())));
            after.map(|at| self.aging.insert((at, workflow)));
        }
    }

    /// Time of the oldest checkpoint of a workflow that has more than one.
    fn oldest_of(&self, workflow: &WorkflowId) -> Option<Timestamp> {
        let numbers = self.numbers.get(workflow).filter(|numbers| numbers.len() > 1)?;
        numbers.values().map(|(_, at)| *at).min()
    }

    fn replace(&mut self, id: &CheckpointId, old: Option<&Checkpoint>, new: Option<&Checkpoint>) {
        if let Some(old) = old {
            if let Some(numbers) = self.numbers.get_mut(&old.workflow_id) {
                numbers.remove(&old.number);
                if numbers.is_empty() {
                    self.numbers.remove(&old.workflow_id);
                }
            }
            if let Some(task) = &old.task
                && let Some(of_task) = self.tasks.get_mut(task)
            {
                of_task.remove(&(old.at, old.number, id.clone()));
                if of_task.is_empty() {
                    self.tasks.remove(task);
                }
            }
        }
        if let Some(new) = new {
            self.numbers
                .entry(new.workflow_id.clone())
                .or_default()
                .insert(new.number, (id.clone(), new.at));
            if let Some(task) = &new.task {
                self.tasks.entry(task.clone()).or_default().insert((
                    new.at,
                    new.number,
                    id.clone(),
                ));
            }
        }
    }
}
