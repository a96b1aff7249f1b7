use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::complete_task::completed;
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::run::runner::run_over;
use crate::state::task::{AttemptError, TaskResult, TaskStatus};

pub struct ReportRun;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Started,
    #[default]
    Progress,
    Completed,
    Failed,
    Stopped,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub run_id: String,
    /// started or progress while the run goes on; completed, failed or stopped when it has ended
    pub status: Report,
    pub attempt: Option<u32>,
    /// With started or progress: how far the run is
    pub note: Option<String>,
    /// With completed: what came of the run
    pub output: Option<String>,
    /// With completed: the result as JSON
    pub data: Option<Value>,
    #[serde(default)]
    pub files_modified: Vec<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    /// With failed (required) or stopped: the reason
    pub error: Option<String>,
    /// With failed: timeout, transient, permanent, … (default error)
    pub category: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub run_id: TaskId,
    pub status: RunStatus,
    /// True if this was reported before
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
}

impl Operation for ReportRun {
    const NAME: &'static str = "report_run";
    const DESCRIPTION: &'static str =
        "Runners: say how your run goes. Renews its lease, and brings requests to stop it.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    const PLACED: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        let id = TaskId::checked(&params.run_id)?;
        state.known_agent(agent)?;
        let ended = |like| state.has_ended(agent, &id, params.attempt, like);
        if state.run_status(&id).is_some() && end_of(params.status).is_some_and(ended) {
            return Ok(Vec::new());
        }
        let (task, _) = state.known_run(&id)?;
        if params.status == Report::Completed {
            let result = result(params, call)?;
            return completed(task, agent, params.attempt, result, false, state, run_over);
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
                vec![Event::Cancelled {
                    task: id,
                    reason: Some(reason.unwrap_or_else(|| "stopped".to_owned())),
                }]
            }
            Report::Failed | Report::Completed => {
                let message = params.error.as_deref().unwrap_or_default();
                let message = input::checked_text("error", &limit::ERROR, message)?;
                let category = params.category.as_deref().unwrap_or("error");
                let category = input::checked_text("category", &limit::LABEL, category)?;
                vec![Event::Failed {
                    task: id,
                    error: AttemptError { category, message },
                    retry_at: None,
                }]
            }
        })
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let run_id = TaskId::checked(&params.run_id)?;
        let status =
            state.run_status(&run_id).ok_or_else(|| Refusal::UnknownRun { run: run_id.clone() })?;
        Ok(Reply { success: true, run_id, status, already: call.events == 0 })
    }
}

fn noted(params: &Params) -> Result<Option<String>, Refusal> {
    params.note.as_ref().map(|note| limit::NOTE.check_text(note).map(|()| note.clone())).transpose()
}

/// The status with which a report ends the run; `None` if it does not.
fn end_of(report: Report) -> Option<TaskStatus> {
    match report {
        Report::Started | Report::Progress => None,
        Report::Completed => Some(TaskStatus::Done),
        Report::Failed => Some(TaskStatus::Failed),
        Report::Stopped => Some(TaskStatus::Cancelled),
    }
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
