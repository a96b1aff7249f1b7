use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{Page, Part, Shown as Entry};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::id::{AgentId, TaskId, WorkflowId};
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::state::workflow::{Budget, Checkpoint, Workflow};

pub struct ListCheckpoints;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Workflow whose checkpoints to list; if omitted, lists the workflows
    pub workflow_id: Option<String>,
    /// Default 50, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    Workflows {
        #[serde(flatten)]
        part: Option<Part<WorkflowId>>,
        workflows: Vec<Entry<Shown>>,
    },
    Checkpoints(Box<Checkpoints>),
}

#[derive(Serialize, JsonSchema)]
pub struct Checkpoints {
    #[serde(flatten)]
    pub part: Option<Part<String>>,
    pub workflow: Shown,
    /// Newest first
    pub checkpoints: Vec<Entry<Brief>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    pub workflow: Workflow,
    pub kept: usize,
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub remaining: Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
}

/// A checkpoint without its state.
#[derive(Serialize, JsonSchema)]
pub struct Brief {
    pub number: u64,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    pub phase: String,
    pub step: u64,
    pub status: String,
    /// Why the checkpoint is not as it was saved
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<&'static str>,
}

impl Operation for ListCheckpoints {
    const NAME: &'static str = "list_checkpoints";
    const DESCRIPTION: &'static str = "List the workflows with their budgets, or the checkpoints \
                                       that are kept of one, newest first.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let Some(id) = &params.workflow_id else {
            let after = params.after.as_deref().map(WorkflowId::checked).transpose()?;
            let mut page = Page::new(call, params.limit, 50)?.cut("get_checkpoint");
            let is_more =
                page.fill(state.workflows_after(after.as_ref()).map(|one| shown(one, state)));
            let next = page.last().filter(|_| is_more).map(|last| last.workflow.id.clone());
            let part = page.part(Some(state.workflows_after(None).count()), after.is_some(), next);
            return Ok(Reply::Workflows { part, workflows: page.into_entries() });
        };
        let workflow = state.known_workflow(&WorkflowId::checked(id)?)?;
        let after = params.after.as_deref().map(|text| text.parse().map_err(|_| no_number()));
        let below: u64 = after.transpose()?.unwrap_or(u64::MAX);
        let mut page = Page::new(call, params.limit, 50)?.cut("get_checkpoint");
        let older = state.checkpoints_of(&workflow.id).filter(|one| one.number < below);
        let is_more = page.fill(older.map(|one| brief(one)));
        let next = page.last().filter(|_| is_more).map(|last| last.number.to_string());
        let part = page.part(
            Some(state.checkpoints_of(&workflow.id).count()),
            params.after.is_some(),
            next,
        );
        let checkpoints = page.into_entries();
        Ok(Reply::Checkpoints(Box::new(Checkpoints {
            part,
            workflow: shown(workflow, state),
            checkpoints,
        })))
    }
}

fn no_number() -> Refusal {
    Refusal::BadArgument {
        argument: "after".to_owned(),
        wanted: "the number of a checkpoint, which the page before has as `next`; leave it out \
                 for the first page"
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
