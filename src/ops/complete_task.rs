use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Rejected, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::{held_by_other, not_held};
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::task::{Attempt, Outcome, Task, TaskResult, TaskStatus};

pub struct CompleteTask;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    agent_id: Option<String>,
    task_id: String,
    /// What was done, for whoever builds on it
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
    /// It was done by this attempt before
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
        if state.run_status(&id).is_none() && is_repeated(params, &id, agent, state) {
            return Ok(Vec::new());
        }
        let result = result(params, call)?;
        let task = state.known_task(&id)?;
        let own = |attempt: &&Attempt| attempt.agent == *agent && params.attempt.is_none_or(|n| n == attempt.number);
        if let Some(open) = task.open_attempt().filter(own) {
            return Ok(vec![Event::Completed { task: id, attempt: open.number, result }]);
        }
        let expired = |attempt: &&Attempt| own(attempt) && attempt.outcome == Some(Outcome::Expired);
        let Some(late) = task.attempts.iter().rev().find(expired) else {
            return Err(refusal(task, agent, params).into());
        };
        if task.status == TaskStatus::Available && late.number == task.attempt && !state.is_parent(&id) {
            return Ok(vec![Event::Completed { task: id, attempt: late.number, result }]);
        }
        Err(kept(task, late, result))
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

/// The same agent has completed it in the same attempt.
fn is_repeated(params: &Params, id: &TaskId, agent: &AgentId, state: &State) -> bool {
    let same = |attempt: u32| params.attempt.is_none_or(|given| given == attempt);
    if let Some(task) = state.task(id) {
        let last = task.attempts.last();
        return task.status == TaskStatus::Done && last.is_some_and(|one| one.agent == *agent && same(one.number));
    }
    state
        .retired_task(id)
        .is_some_and(|stub| stub.status == TaskStatus::Done && stub.agent.as_ref() == Some(agent) && same(stub.attempt))
}

/// The result of an attempt that another has followed: kept on it, once.
fn kept(task: &Task, late: &Attempt, result: TaskResult) -> Rejected {
    let refusal = Refusal::AttemptOver {
        task: task.id.clone(),
        given: late.number,
        current: task.attempt,
        holder: task.open_attempt().map(|open| open.agent.clone()),
        kept: true,
    };
    let is_new = late.late_result.as_ref() != Some(&result);
    let event = Event::LateResultKept { task: task.id.clone(), attempt: late.number, result };
    Rejected { refusal, keep: is_new.then_some(event).into_iter().collect() }
}

fn refusal(task: &Task, agent: &AgentId, params: &Params) -> Refusal {
    match task.open_attempt() {
        Some(open) if open.agent != *agent => held_by_other(task, open),
        Some(open) => Refusal::AttemptOver {
            task: task.id.clone(),
            given: params.attempt.unwrap_or_default(),
            current: open.number,
            holder: Some(open.agent.clone()),
            kept: false,
        },
        None => not_held(task),
    }
}
