use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::attempt_over;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};

pub struct ApproveTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    pub comment: Option<String>,
    /// The one you looked at
    pub attempt: Option<u32>,
}

/// What a review leaves.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub status: TaskStatus,
    /// The same had been said before
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
}

impl Operation for ApproveTask {
    const NAME: &'static str = "approve_task";
    const DESCRIPTION: &'static str =
        "Accept the result of a task in review, which is done then. Not for your own work.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        state.takes_part(call.actor.as_ref())?;
        let id = TaskId::checked(&params.task_id)?;
        let task = state.known_task(&id)?;
        let is_approved = |task: &Task| task.reviewed().is_some_and(|reviewed| reviewed.approved);
        let comment = input::checked_reason(params.comment.as_ref())?;
        if task.status == TaskStatus::Done && is_approved(task) && is_meant(task, params.attempt) {
            return Ok(Vec::new());
        }
        check_in_review(task, params.attempt, "approved", state)?;
        state.may_review(task, call.decider()?, true, call.policy)?;
        Ok(vec![Event::Reviewed { task: id, approved: true, comment }])
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        reviewed(&params.task_id, state, call)
    }
}

/// True if the last attempt is the given one, or none is given.
pub(super) fn is_meant(task: &Task, given: Option<u32>) -> bool {
    given.is_none_or(|given| given == task.attempt)
}

/// Refuses a task that is not in review, and one of which another attempt is.
pub(super) fn check_in_review(
    task: &Task,
    given: Option<u32>,
    action: &'static str,
    state: &State,
) -> Result<(), Refusal> {
    state.refuse_parent(&task.id)?;
    let id = &task.id;
    let next = match task.status {
        TaskStatus::Review if is_meant(task, given) => return Ok(()),
        TaskStatus::Review => return Err(attempt_over(task, given.unwrap_or_default())),
        TaskStatus::Done => format!("it is done already; reset_tasks `{id}` begins it anew"),
        TaskStatus::Failed | TaskStatus::Cancelled => {
            format!("retry_task `{id}` makes it available")
        }
        TaskStatus::Obsolete => "the plan does not have it any more".to_owned(),
        _ => "it has no result yet; get_all_tasks with status_filter review lists what has one"
            .to_owned(),
    };
    Err(Refusal::WrongStatus { task: id.clone(), status: task.status, action, next })
}

pub(super) fn reviewed(id: &str, state: &State, call: &Call) -> Result<Reply, Refusal> {
    let status = state.known_task(&TaskId::checked(id)?)?.status;
    Ok(Reply { success: true, status, already: call.events == 0 })
}
