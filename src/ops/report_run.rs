use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Rejected, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::held_by_other;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::run::{RunStatus, run_over};
use crate::state::task::{Attempt, AttemptError, Outcome, Task, TaskResult, TaskStatus};

pub struct ReportRun;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Report {
    Started,
    Progress,
    Completed,
    Failed,
    Stopped,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    agent_id: Option<String>,
    run_id: String,
    status: Report,
    attempt: Option<u32>,
    /// Progress: how far it is
    note: Option<String>,
    /// Completed: what came of it
    output: Option<String>,
    data: Option<Value>,
    #[serde(default)]
    files_modified: Vec<String>,
    branch: Option<String>,
    commit: Option<String>,
    /// Failed, stopped: why
    error: Option<String>,
    /// timeout, transient, permanent, …
    category: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    success: bool,
    run_id: TaskId,
    status: RunStatus,
    /// It was reported before
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already: bool,
}

impl Operation for ReportRun {
    const NAME: &'static str = "report_run";
    const DESCRIPTION: &'static str =
        "Runners: say how your run goes. Renews its lease, and brings requests to stop it.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        let id = TaskId::checked(&params.run_id)?;
        state.known_agent(agent)?;
        if was_reported(params, &id, agent, state) {
            return Ok(Vec::new());
        }
        let (task, _) = state.known_run(&id)?;
        if params.status == Report::Completed {
            return completed(params, task, agent, state, call);
        }
        state.own_run(agent, &id, params.attempt)?;
        let begun = task.status == TaskStatus::InProgress;
        Ok(match params.status {
            Report::Started | Report::Progress if !begun => {
                let note = noted(params)?;
                std::iter::once(Event::Started { task: id.clone() })
                    .chain(note.map(|note| Event::Noted { task: id, note: Some(note) }))
                    .collect()
            }
            Report::Started => Vec::new(),
            Report::Progress => vec![Event::Noted { task: id, note: noted(params)? }],
            Report::Stopped => {
                let asked = task.stop_requested.as_ref().and_then(|stop| stop.reason.clone());
                let reason = input::checked_reason(params.error.as_ref())?.or(asked);
                vec![Event::Cancelled { task: id, reason: Some(reason.unwrap_or_else(|| "stopped".to_owned())) }]
            }
            Report::Failed | Report::Completed => {
                let message = params.error.as_deref().unwrap_or_default();
                let message = input::checked_text("error", &limit::ERROR, message)?;
                let category = params.category.as_deref().unwrap_or("error");
                let category = input::checked_text("category", &limit::LABEL, category)?;
                vec![Event::Failed { task: id, error: AttemptError { category, message }, retry_at: None }]
            }
        })
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let run_id = TaskId::checked(&params.run_id)?;
        let status = state.run_status(&run_id).ok_or_else(|| Refusal::UnknownRun { run: run_id.clone() })?;
        Ok(Reply { success: true, run_id, status, already: call.events == 0 })
    }
}

fn noted(params: &Params) -> Result<Option<String>, Refusal> {
    params.note.as_ref().map(|note| limit::NOTE.check_text(note).map(|()| note.clone())).transpose()
}

/// The same agent has ended it in the same attempt, in the same way.
fn was_reported(params: &Params, id: &TaskId, agent: &AgentId, state: &State) -> bool {
    let same = |attempt: u32| params.attempt.is_none_or(|given| given == attempt);
    let meant = match params.status {
        Report::Started | Report::Progress => return false,
        Report::Completed => TaskStatus::Done,
        Report::Failed => TaskStatus::Failed,
        Report::Stopped => TaskStatus::Cancelled,
    };
    if let Some(task) = state.task(id).filter(|task| task.run.is_some()) {
        let last = task.attempts.last();
        return task.status == meant && last.is_some_and(|one| one.agent == *agent && same(one.number));
    }
    let stub = state.retired_task(id).filter(|stub| stub.run && stub.status == meant);
    stub.is_some_and(|stub| stub.agent.as_ref() == Some(agent) && same(stub.attempt))
}

/// Also late, while nobody else has begun on it; else the result is kept with the attempt.
fn completed(params: &Params, task: &Task, agent: &AgentId, state: &State, call: &Call) -> Decision {
    let result = result(params, call)?;
    let own = |attempt: &&Attempt| attempt.agent == *agent && params.attempt.is_none_or(|n| n == attempt.number);
    if let Some(open) = task.open_attempt().filter(own) {
        return Ok(vec![Event::Completed { task: task.id.clone(), attempt: open.number, result }]);
    }
    let expired = |attempt: &&Attempt| own(attempt) && attempt.outcome == Some(Outcome::Expired);
    let Some(late) = task.attempts.iter().rev().find(expired) else {
        return Err(match task.open_attempt() {
            Some(open) if open.agent != *agent => held_by_other(task, open).into(),
            Some(_) => {
                state.own_run(agent, &task.id, params.attempt).map_or_else(Rejected::from, |_| run_over(task).into())
            }
            None => run_over(task).into(),
        });
    };
    if task.status == TaskStatus::Available && late.number == task.attempt {
        return Ok(vec![Event::Completed { task: task.id.clone(), attempt: late.number, result }]);
    }
    let refusal = Refusal::AttemptOver {
        task: task.id.clone(),
        given: late.number,
        current: task.attempt,
        holder: task.open_attempt().map(|open| open.agent.clone()),
        kept: true,
    };
    let is_new = late.late_result.as_ref() != Some(&result);
    let event = Event::LateResultKept { task: task.id.clone(), attempt: late.number, result };
    Err(Rejected { refusal, keep: is_new.then_some(event).into_iter().collect() })
}

fn result(params: &Params, call: &Call) -> Result<TaskResult, Refusal> {
    let files_modified = params.files_modified.iter().map(|file| call.relative(file)).collect();
    input::checked_result(TaskResult {
        output: params.output.clone(),
        files_modified,
        files_created: Vec::new(),
        branch: params.branch.clone().or_else(|| call.place.branch.clone()),
        commit: params.commit.clone(),
        error: None,
        data: params.data.clone(),
    })
}
