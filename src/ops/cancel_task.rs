use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};

pub struct CancelTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    pub reason: Option<String>,
    /// If held, ask its agent to stop instead
    #[serde(default)]
    pub ask_owner: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_owner: bool,
}

impl Operation for CancelTask {
    const NAME: &'static str = "cancel_task";
    const DESCRIPTION: &'static str = "Leaders: end a task that is not to be done.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Core;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "cancel a task")?;
        let id = TaskId::checked(&params.task_id)?;
        let task = state.known_task(&id)?;
        let reason = input::checked_reason(params.reason.as_ref())?;
        if state.has_parts(&id) {
            let below = state.below(&id).into_iter().chain([task]);
            let open = below
                .filter(|one| !state.is_parent(&one.id))
                .filter(|part| part.status.is_unfinished() || part.status == TaskStatus::Failed);
            let open: Vec<_> = open.collect();
            if !open.is_empty() {
                let events: Vec<_> =
                    open.iter().filter_map(|part| ended(part, &reason, params.ask_owner)).collect();
                limit::BATCH.check(events.len())?;
                return Ok(events);
            }
        }
        match task.status {
            TaskStatus::Cancelled => Ok(Vec::new()),
            TaskStatus::Done | TaskStatus::Obsolete => Err(Refusal::WrongStatus {
                task: id,
                status: task.status,
                action: "cancelled",
                next: "it is over already".to_owned(),
            }
            .into()),
            _ => Ok(ended(task, &reason, params.ask_owner).into_iter().collect()),
        }
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        Ok(Reply { success: true, status: task.status, asked_owner: task.stop_requested.is_some() })
    }
}

/// The event that ends the task or asks its agent to stop; `None` if the agent was already asked.
fn ended(task: &Task, reason: &Option<String>, ask_owner: bool) -> Option<Event> {
    let (task, reason) = match (task.status.is_held() && ask_owner, &task.stop_requested) {
        (true, Some(request)) if request.cancel => return None,
        (true, _) => {
            let (task, reason) = (task.id.clone(), reason.clone());
            return Some(Event::StopRequested { task, reason, cancel: true });
        }
        (false, _) => (task.id.clone(), reason.clone()),
    };
    Some(Event::Cancelled { task, reason })
}
