use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{SUCCESS, Success};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;

pub struct RetryTask;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    agent_id: Option<String>,
    task_id: String,
}

impl Operation for RetryTask {
    const NAME: &'static str = "retry_task";
    const DESCRIPTION: &'static str =
        "Leaders: make a failed or cancelled task available again, with all its attempts.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Core;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        state.leads(call.actor.as_ref(), "retry a task")?;
        let id = TaskId::checked(&params.task_id)?;
        match state.known_task(&id)?.status {
            TaskStatus::Failed | TaskStatus::Cancelled => Ok(vec![Event::Retried { task: id }]),
            // Waiting out its backoff: it need not.
            TaskStatus::Available => {
                let waits = state.known_task(&id)?.not_before.is_some();
                Ok(waits.then_some(Event::Retried { task: id }).into_iter().collect())
            }
            status => Err(Refusal::WrongStatus {
                task: id,
                status,
                action: "retried",
                next: "only failed and cancelled tasks can be".to_owned(),
            }
            .into()),
        }
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}
