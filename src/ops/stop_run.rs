use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;

pub struct StopRun;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub run_id: String,
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub run_id: TaskId,
    /// stopping: the runner is told, and reports when it has stopped
    pub status: RunStatus,
    /// True if the run had ended or was asked to stop before
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
}

impl Operation for StopRun {
    const NAME: &'static str = "stop_run";
    const DESCRIPTION: &'static str =
        "Stop a run: a pending one at once, a running one by its runner. Safe to repeat.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let id = TaskId::checked(&params.run_id)?;
        if state.task(&id).is_none() && state.run_status(&id).is_some() {
            return Ok(Vec::new());
        }
        let (task, _) = state.known_run(&id)?;
        state.commands(call.actor.as_ref(), task, "stop it")?;
        let reason = input::checked_reason(params.reason.as_ref())?;
        Ok(match RunStatus::of(task) {
            RunStatus::Pending => {
                vec![Event::Cancelled { task: id, reason: reason.or(Some("stopped".to_owned())) }]
            }
            RunStatus::Claimed | RunStatus::Running => {
                vec![Event::StopRequested { task: id, reason, cancel: false }]
            }
            _ => Vec::new(),
        })
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let run_id = TaskId::checked(&params.run_id)?;
        let status =
            state.run_status(&run_id).ok_or_else(|| Refusal::UnknownRun { run: run_id.clone() })?;
        Ok(Reply { success: true, run_id, status, already: call.events == 0 })
    }
}
