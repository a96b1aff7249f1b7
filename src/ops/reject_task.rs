use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approve_task::{Reply, check_in_review, is_meant, reviewed};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::review::Reviewed;
use crate::state::task::{Task, TaskStatus};

pub struct RejectTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    /// What to do better
    pub reason: String,
    /// The one you looked at
    pub attempt: Option<u32>,
}

impl Operation for RejectTask {
    const NAME: &'static str = "reject_task";
    const DESCRIPTION: &'static str = "Send a task in review back: it is available again, and its \
                                       next agent gets the reason. Costs no attempt.";
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
        let reason = input::checked_text("reason", &limit::REASON, &params.reason)?;
        if is_rejected(task, &reason) && is_meant(task, params.attempt) {
            return Ok(Vec::new());
        }
        check_in_review(task, params.attempt, "rejected", state)?;
        state.may_review(task, call.decider()?, false, call.policy)?;
        Ok(vec![Event::Reviewed { task: id, approved: false, comment: Some(reason) }])
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        reviewed(&params.task_id, state, call)
    }
}

/// True if the task's last attempt was sent back for this reason, and none has begun since.
fn is_rejected(task: &Task, reason: &str) -> bool {
    let is_same =
        |reviewed: &Reviewed| !reviewed.approved && reviewed.comment.as_deref() == Some(reason);
    task.status == TaskStatus::Available && task.reviewed().is_some_and(is_same)
}
