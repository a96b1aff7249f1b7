use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::id::{AgentId, TaskId, WorkflowId};
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::state::workflow::{Budget, Checkpoint, Workflow};

pub struct ListCheckpoints;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Workflow whose checkpoints to list; if omitted, lists the workflows
    workflow_id: Option<String>,
    /// Default 50, at most 1000
    limit: Option<NonZeroU32>,
    /// `next` of the prior page
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    Workflows {
        workflows: Vec<Shown>,
        /// Cursor for `after`; there are more
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<WorkflowId>,
    },
    Checkpoints(Box<Checkpoints>),
}

#[derive(Serialize, JsonSchema)]
pub struct Checkpoints {
    workflow: Shown,
    /// Newest first
    checkpoints: Vec<Brief>,
    /// Cursor for `after`; there are older ones
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    workflow: Workflow,
    kept: usize,
    #[serde(skip_serializing_if = "Budget::is_empty")]
    remaining: Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    exhausted: Option<String>,
}

/// A checkpoint without its state.
#[derive(Serialize, JsonSchema)]
struct Brief {
    number: u64,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    phase: String,
    step: u64,
    status: String,
    /// Why the checkpoint is not as it was saved
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<&'static str>,
}

impl Operation for ListCheckpoints {
    const NAME: &'static str = "list_checkpoints";
    const DESCRIPTION: &'static str =
        "List the workflows with their budgets, or the checkpoints that are kept of one, newest first.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let size = input::page(params.limit, 50)?;
        let Some(id) = &params.workflow_id else {
            let after = params.after.as_deref().map(WorkflowId::checked).transpose()?;
            let mut behind = state.workflows_after(after.as_ref());
            let workflows: Vec<_> = behind.by_ref().take(size).map(|one| shown(one, state)).collect();
            let next = workflows.last().filter(|_| behind.next().is_some());
            let next = next.map(|last| last.workflow.id.clone());
            return Ok(Reply::Workflows { workflows, next });
        };
        let workflow = state.known_workflow(&WorkflowId::checked(id)?)?;
        let after = params.after.as_deref().map(|text| text.parse().map_err(|_| no_number()));
        let below: u64 = after.transpose()?.unwrap_or(u64::MAX);
        let mut older = state.checkpoints_of(&workflow.id).filter(|one| one.number < below);
        let checkpoints: Vec<_> = older.by_ref().take(size).map(|one| brief(one)).collect();
        let next = checkpoints.last().filter(|_| older.next().is_some());
        let next = next.map(|last| last.number.to_string());
        Ok(Reply::Checkpoints(Box::new(Checkpoints { workflow: shown(workflow, state), checkpoints, next })))
    }
}

fn no_number() -> Refusal {
    Refusal::BadArgument {
        argument: "after".to_owned(),
        wanted: "the number of a checkpoint, which the page before has as `next`; leave it out for the first page"
            .to_owned(),
    }
}

fn shown(workflow: &Workflow, state: &State) -> Shown {
    Shown {
        workflow: workflow.clone(),
        kept: state.checkpoints_of(&workflow.id).count(),
        remaining: workflow.remaining(),
        exhausted: workflow.exhausted().map(|exhausted| exhausted.to_string()),
    }
}

fn brief(one: &Checkpoint) -> Brief {
    Brief {
        number: one.number,
        at: one.at,
        agent: one.agent.clone(),
        task: one.task.clone(),
        attempt: one.attempt,
        phase: one.state.phase.clone(),
        step: one.state.step,
        status: one.state.status.clone(),
        damage: one.damage(),
    }
}
