use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::State;
use crate::state::deadline::cancelled_when_stopped;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{AttemptError, TaskStatus};
use crate::state::time::Timestamp;

pub struct FailTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    pub error: String,
    /// Do not try again
    #[serde(default, rename = "final")]
    pub is_final: bool,
    /// Older name: the opposite of `final`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("deprecated" = true))]
    pub retryable: Option<bool>,
    /// timeout, transient, permanent, …
    pub category: Option<String>,
    pub attempt: Option<u32>,
}

impl Params {
    /// Whether the task may be tried again.
    fn again(&self) -> Result<bool, Refusal> {
        match self.retryable {
            Some(true) if self.is_final => Err(Refusal::FinalOrRetryable),
            retryable => Ok(!self.is_final && retryable != Some(false)),
        }
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub status: TaskStatus,
    pub attempts_left: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

impl Operation for FailTask {
    const NAME: &'static str = "fail_task";
    const DESCRIPTION: &'static str =
        "Give your task up with the error. It is tried again while attempts remain, unless final.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> =
        Some(&["agent_id", "task_id", "error", "final", "category"]);
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let id = TaskId::checked(&params.task_id)?;
        state.own_attempt(call.agent()?, &id, params.attempt)?;
        let message = input::checked_text("error", &limit::ERROR, &params.error)?;
        let category = params.category.as_deref().unwrap_or("error");
        let category = input::checked_text("category", &limit::LABEL, category)?;
        let task = state.known_task(&id)?;
        let again = params.again()? && task.attempts_used() < task.max_attempts;
        let retry_at = again.then(|| call.now + call.policy.backoff_millis(task.attempts_used()));
        let cancelled = cancelled_when_stopped(task).filter(|_| again);
        let failed =
            Event::Failed { task: id, error: AttemptError { category, message }, retry_at };
        Ok(std::iter::once(failed).chain(cancelled).collect())
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        Ok(Reply {
            success: true,
            status: task.status,
            attempts_left: match task.status {
                TaskStatus::Available => task.max_attempts.saturating_sub(task.attempts_used()),
                _ => 0,
            },
            retry_at: task.not_before,
        })
    }
}
