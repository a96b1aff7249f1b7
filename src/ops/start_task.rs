use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;

pub struct StartTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    pub attempt: Option<u32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub attempt: u32,
    pub lease_until: Timestamp,
}

impl Operation for StartTask {
    const NAME: &'static str = "start_task";
    const DESCRIPTION: &'static str = "Say that you have begun on the task you claimed.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Core;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let task = TaskId::checked(&params.task_id)?;
        state.own_attempt(call.agent()?, &task, params.attempt)?;
        let started = state.known_task(&task)?.status == TaskStatus::InProgress;
        Ok(if started { Vec::new() } else { vec![Event::Started { task }] })
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let attempt =
            state.own_attempt(call.agent()?, &TaskId::checked(&params.task_id)?, params.attempt)?;
        Ok(Reply { success: true, attempt: attempt.number, lease_until: attempt.lease_until })
    }
}
