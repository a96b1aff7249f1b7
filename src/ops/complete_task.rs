use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Rejected, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::{not_held, own_open};
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::task::{Attempt, Outcome, Task, TaskResult, TaskStatus};

pub struct CompleteTask;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    agent_id: Option<String>,
    task_id: String,
    /// What was done, for others to build on
    output: String,
    #[serde(default)]
    files_modified: Vec<String>,
    #[serde(default)]
    files_created: Vec<String>,
    branch: Option<String>,
    commit: Option<String>,
    data: Option<Value>,
    attempt: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    success: bool,
    /// This attempt had completed the task before
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already: bool,
}

impl Operation for CompleteTask {
    const NAME: &'static str = "complete_task";
    const DESCRIPTION: &'static str = "Finish your task with its result. Safe to repeat.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        let id = TaskId::checked(&params.task_id)?;
        state.known_agent(agent)?;
        if state.run_status(&id).is_none() && state.has_ended(agent, &id, params.attempt, TaskStatus::Done) {
            return Ok(Vec::new());
        }
        let result = result(params, call)?;
        let task = state.known_task(&id)?;
        completed(task, agent, params.attempt, result, state, not_held)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        Ok(Reply { success: true, already: call.events == 0 })
    }
}

fn result(params: &Params, call: &Call) -> Result<TaskResult, Refusal> {
    let relative = |files: &[String]| files.iter().map(|file| call.relative(file)).collect();
    input::checked_result(TaskResult {
        output: Some(params.output.clone()),
        files_modified: relative(&params.files_modified),
        files_created: relative(&params.files_created),
        branch: params.branch.clone().or_else(|| call.place.branch.clone()),
        commit: params.commit.clone(),
        error: None,
        data: params.data.clone(),
    })
}

/// Decides what becomes of the result of `agent`'s attempt. It is taken while the attempt is open, and also after its
/// lease expired if nobody has claimed the task since; else it is kept with the attempt that is over. An agent without
/// such an attempt is refused; `over` makes the refusal for a task that nobody holds.
pub(super) fn completed(
    task: &Task,
    agent: &AgentId,
    given: Option<u32>,
    result: TaskResult,
    state: &State,
    over: fn(&Task) -> Refusal,
) -> Decision {
    let result = Arc::new(result);
    let own = |attempt: &&Attempt| attempt.agent == *agent && given.is_none_or(|given| given == attempt.number);
    let taken = |attempt: u32, result| Ok(vec![Event::Completed { task: task.id.clone(), attempt, result }]);
    if let Some(open) = task.open_attempt().filter(own) {
        return taken(open.number, result);
    }
    let Some(late) = task.attempts.iter().rev().find(own) else {
        own_open(task, agent, given, over)?;
        return Err(over(task).into());
    };
    let is_free = task.status == TaskStatus::Available
        && late.number == task.attempt
        && !task.was_reset_since(late)
        && !state.is_parent(&task.id)
        && state.waits_for(task).next().is_none();
    match late.outcome {
        Some(Outcome::Expired) if is_free => taken(late.number, result),
        _ => Err(kept(task, late, result)),
    }
}

/// The refusal of a result whose attempt is over, however it ended. Keeps the result with the attempt, once.
fn kept(task: &Task, late: &Attempt, result: Arc<TaskResult>) -> Rejected {
    let refusal = Refusal::AttemptOver {
        task: task.id.clone(),
        given: late.number,
        current: task.attempt,
        status: task.status,
        holder: task.open_attempt().map(|open| open.agent.clone()),
        kept: Some(true),
        next: match (&task.run, task.status) {
            (Some(_), _) => "get_run shows it; claim another with claim_run",
            (None, TaskStatus::Failed) if late.outcome == Some(Outcome::Expired) && late.number == task.attempt => {
                "get_task shows it; after a leader's retry_task, and before anybody claims the task, complete_task again is taken"
            }
            (None, _) => "get_task shows it; claim other work with claim_task",
        },
    };
    let is_new = late.late_result.as_ref() != Some(&result);
    let event = Event::LateResultKept { task: task.id.clone(), attempt: late.number, result };
    Rejected { refusal, keep: is_new.then_some(event).into_iter().collect() }
}
