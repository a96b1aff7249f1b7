use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input;
use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE};
use crate::state::State;
use crate::state::deadline::cancelled_when_stopped;
use crate::state::event::Event;
use crate::state::guard::not_held;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;

pub struct ReleaseTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    /// For whoever takes it next
    pub reason: Option<String>,
    pub attempt: Option<u32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// cancelled when its agent was asked to stop, else available
    pub status: TaskStatus,
}

impl Operation for ReleaseTask {
    const NAME: &'static str = "release_task";
    const DESCRIPTION: &'static str = "Put a task back unfinished; it costs no attempt.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> = Some(&["agent_id", "task_id", "reason"]);
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let task = TaskId::checked(&params.task_id)?;
        if call.leads(state, "release another's task").is_ok() {
            let held = state.known_task(&task)?;
            let open = held.open_attempt().ok_or_else(|| not_held(held))?;
            state.own_attempt(&open.agent, &task, params.attempt)?;
        } else {
            state.own_attempt(call.agent()?, &task, params.attempt)?;
        }
        let cancelled = cancelled_when_stopped(state.known_task(&task)?);
        let released =
            Event::Released { task, reason: input::checked_reason(params.reason.as_ref())? };
        Ok(std::iter::once(released).chain(cancelled).collect())
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        Ok(Reply { success: true, status: task.status })
    }
}
