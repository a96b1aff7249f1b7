use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::WorkflowId;
use crate::state::refusal::Refusal;

pub struct DeleteCheckpoints;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub workflow_id: String,
    /// Delete only this checkpoint
    pub number: Option<u64>,
    /// Delete all but this many of the newest
    pub keep: Option<u32>,
    /// Delete the whole workflow, with the record of what it has spent
    #[serde(default)]
    pub all: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub workflow_id: WorkflowId,
    /// Checkpoints left
    pub kept: usize,
    /// True if the whole workflow was deleted
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

impl Operation for DeleteCheckpoints {
    const NAME: &'static str = "delete_checkpoints";
    const DESCRIPTION: &'static str =
        "Delete one checkpoint, all but the newest, or a workflow whole (leaders only).";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "delete checkpoints")?;
        let workflow = &state.known_workflow(&WorkflowId::checked(&params.workflow_id)?)?.id;
        // Strict clients fill in 0 for the arguments that they do not mean.
        let numbers: Vec<u64> = match (params.number, params.keep, params.all) {
            (None | Some(0), None | Some(0), true) => {
                return Ok(vec![state.workflow_dropped(workflow, false)]);
            }
            (None, Some(keep), false) | (Some(0), Some(keep @ 1..), false) => {
                state.checkpoints_of(workflow).skip(keep as usize).map(|one| one.number).collect()
            }
            (Some(number @ 1..), None | Some(0), false) => {
                let unknown = || Refusal::UnknownCheckpoint { workflow: workflow.clone(), number };
                state.place_of(workflow, number).ok_or_else(unknown)?;
                vec![number]
            }
            _ => return Err(Refusal::NumberOrKeep.into()),
        };
        let checkpoints: Vec<_> = numbers
            .iter()
            .filter_map(|number| state.place_of(workflow, *number))
            .cloned()
            .collect();
        let dropped = Event::CheckpointsDropped { checkpoints, workflow: None, expired: false };
        Ok(if numbers.is_empty() { Vec::new() } else { vec![dropped] })
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let workflow_id = WorkflowId::checked(&params.workflow_id)?;
        let removed = state.workflow(&workflow_id).is_none();
        Ok(Reply {
            success: true,
            kept: state.checkpoints_of(&workflow_id).count(),
            workflow_id,
            removed,
        })
    }
}
