use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::retired;
use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::agent::Demands;
use crate::state::id::{AgentId, SessionId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::run::{ChildResult, ExecutionMode, RunKind, RunStatus, timeout_at};
use crate::state::task::{Attempt, StopRequest, Task, TaskResult};
use crate::state::time::Timestamp;

pub struct GetRun;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub run_id: String,
    /// Seconds to wait for the run's end: 0 to 50, default 0
    #[serde(default)]
    pub wait_seconds: u64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub run: RunView,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
}

/// A run as replies show it.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct RunView {
    pub run_id: TaskId,
    pub session_id: SessionId,
    #[serde(rename = "type")]
    pub kind: RunKind,
    pub status: RunStatus,
    pub execution_mode: ExecutionMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Demands,
    pub priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<AgentId>,
    /// Agent that holds the run or held it last
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_id: Option<AgentId>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// When its time is over: timeout_seconds of the open attempt, or no_match_until while pending
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Timestamp>,
    /// When a pending run fails unless a fitting runner is there
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_match_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_requested: Option<StopRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// Results of child runs, for this run to continue with
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ChildResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl RunView {
    /// The view of a run; `None` if the task is no run.
    pub fn of(task: &Task, state: &State) -> Option<Self> {
        let run = task.run.as_deref()?;
        let status = RunStatus::of(task);
        let last = task.attempts.last();
        Some(Self {
            run_id: task.id.clone(),
            session_id: run.session_id.clone(),
            kind: run.kind,
            status,
            execution_mode: run.execution_mode,
            parent_session_id: state
                .session(&run.session_id)
                .and_then(|session| session.parent_session_id.clone()),
            agent_name: run.agent_name.clone(),
            prompt: task.description.to_string(),
            project_dir: run.project_dir.clone(),
            demands: Demands::clone(&task.demands),
            priority: task.priority,
            created_by: run.created_by.clone(),
            runner_id: last.map(|attempt| attempt.agent.clone()),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            created_at: task.created_at,
            claimed_at: task.claimed_at,
            started_at: task.started_at,
            completed_at: task.completed_at,
            timeout_seconds: task.timeout_seconds,
            timeout_at: timeout_at(task),
            no_match_until: run.no_match_until.filter(|_| status == RunStatus::Pending),
            stop_requested: task.stop_requested.clone(),
            result: task.result.as_deref().cloned(),
            results: run.results.clone(),
            attempts: task.attempts.clone(),
        })
    }

    pub fn without_attempts(task: &Task, state: &State) -> Option<Self> {
        Some(Self { attempts: Vec::new(), ..Self::of(task, state)? })
    }

    /// The view for lists: without attempts, output, data and child results, and with prompt and
    /// error cut short.
    pub fn brief(task: &Task, state: &State) -> Option<Self> {
        let whole = Self::without_attempts(task, state)?;
        let result = whole.result.map(|result| TaskResult {
            output: None,
            data: None,
            error: result.error.as_deref().map(beginning),
            ..result
        });
        Some(Self {
            prompt: beginning(&whole.prompt),
            result: result.filter(|result| *result != TaskResult::default()),
            results: Vec::new(),
            ..whole
        })
    }
}

/// Characters of one text that a list shows.
const TEXT_SHOWN: usize = 200;

fn beginning(text: &str) -> String {
    match text.char_indices().nth(TEXT_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Operation for GetRun {
    const NAME: &'static str = "get_run";
    const DESCRIPTION: &'static str =
        "Read one run whole, with its attempts and result, or wait for its end.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn wait_seconds(params: &Params) -> u64 {
        params.wait_seconds
    }

    fn waits(params: &Params, state: &State, _: &Call) -> bool {
        TaskId::checked(&params.run_id)
            .is_ok_and(|id| state.run_status(&id).is_some_and(|status| !status.is_over()))
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        limit::WAIT.check(params.wait_seconds as usize)?;
        let id = TaskId::checked(&params.run_id)?;
        let (task, retired) = live_or_retired(&id, state, call)?;
        let run = RunView::of(&task, state).ok_or(Refusal::UnknownRun { run: id })?;
        Ok(Reply { run, retired })
    }
}

/// The run, and whether it has retired.
pub fn live_or_retired(
    id: &TaskId,
    state: &State,
    call: &Call,
) -> Result<(Arc<Task>, bool), Refusal> {
    match state.task(id) {
        Some(task) => Ok((Arc::clone(task), false)),
        None if state.retired_task(id).is_some_and(|stub| stub.run) => {
            Ok((Arc::new(retired(id, state, call)?), true))
        }
        None => Err(Refusal::UnknownRun { run: id.clone() }),
    }
}
