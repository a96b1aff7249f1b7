use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::id::{TaskId, WorkflowId};
use crate::state::refusal::Refusal;
use crate::state::workflow::{Budget, Checkpoint, Workflow};

pub struct GetCheckpoint;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Workflow to read from; give either this or task_id
    pub workflow_id: Option<String>,
    /// Newest checkpoint of any workflow saved while working on this task
    pub task_id: Option<String>,
    /// This checkpoint only; default the newest sound one
    pub number: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    /// True if there is a sound checkpoint
    pub restored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// True if newer checkpoints were skipped as damaged
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub remaining: Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Skipped {
    pub workflow_id: WorkflowId,
    pub number: u64,
    pub reason: &'static str,
}

impl Operation for GetCheckpoint {
    const NAME: &'static str = "get_checkpoint";
    const DESCRIPTION: &'static str = "Read the newest sound checkpoint of a workflow or a task, \
                                       if there is one, and what the workflow has spent: \
                                       `restored` says.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let known: Vec<&Arc<Checkpoint>> = match (&params.workflow_id, &params.task_id) {
            (Some(workflow), None) => {
                state.checkpoints_of(&WorkflowId::checked(workflow)?).collect()
            }
            (None, Some(task)) => {
                let task = TaskId::checked(task)?;
                if state.status_of(&task).is_none() && call.retired_at(&task, state)?.is_none() {
                    return Err(Refusal::UnknownTask { task });
                }
                state.checkpoints_for(&task).collect()
            }
            _ => return Err(Refusal::WorkflowOrTask),
        };
        if let Some(number) = params.number.filter(|number| *number > 0) {
            return one(number, params, &known, state);
        }
        let mut skipped = Vec::new();
        let newest = known.iter().find(|one| match one.damage() {
            Some(reason) => {
                skipped.push(Skipped {
                    workflow_id: one.workflow_id.clone(),
                    number: one.number,
                    reason,
                });
                false
            }
            None => true,
        });
        let asked = params.workflow_id.as_deref().map(WorkflowId::trusted);
        let workflow =
            newest.map(|one| &one.workflow_id).or(asked.as_ref()).and_then(|id| state.workflow(id));
        Ok(reply(newest.copied(), skipped, workflow))
    }
}

fn one(
    number: u64,
    params: &Params,
    known: &[&Arc<Checkpoint>],
    state: &State,
) -> Result<Reply, Refusal> {
    let found = known.iter().find(|one| one.number == number);
    let Some(found) = found else {
        let workflow = known.first().map(|one| one.workflow_id.clone());
        let workflow = workflow.or_else(|| params.workflow_id.as_deref().map(WorkflowId::trusted));
        let workflow = workflow.ok_or(Refusal::WorkflowOrTask)?;
        state.known_workflow(&workflow)?;
        return Err(Refusal::UnknownCheckpoint { workflow, number });
    };
    if let Some(detail) = found.damage() {
        return Err(Refusal::CheckpointDamaged {
            workflow: found.workflow_id.clone(),
            number,
            detail,
        });
    }
    Ok(reply(Some(found), Vec::new(), state.workflow(&found.workflow_id)))
}

fn reply(
    found: Option<&Arc<Checkpoint>>,
    skipped: Vec<Skipped>,
    workflow: Option<&Arc<Workflow>>,
) -> Reply {
    Reply {
        restored: found.is_some(),
        checkpoint: found.map(|one| Checkpoint::clone(one)),
        fallback: found.is_some() && !skipped.is_empty(),
        skipped,
        workflow: workflow.map(|one| Workflow::clone(one)),
        remaining: workflow.map(|one| one.remaining()).unwrap_or_default(),
        exhausted: workflow.and_then(|one| one.exhausted()).map(|exhausted| exhausted.to_string()),
    }
}
