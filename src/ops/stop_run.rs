use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::{SessionId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::task::Task;

pub struct StopRun;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub run_id: Option<String>,
    /// Instead: what this session has under way
    pub session_id: Option<String>,
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// The run; of a session, its newest
    pub run_id: TaskId,
    /// stopping: the runner is told, and reports when it has stopped
    pub status: RunStatus,
    /// True if the run had ended or was asked to stop before
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
}

impl Operation for StopRun {
    const NAME: &'static str = "stop_run";
    const DESCRIPTION: &'static str = "Stop a run, or what a session has under way: a pending run at once, a running one by its \
         runner. Safe to repeat.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let tasks: Vec<_> = match Chosen::of(params, state)? {
            Chosen::Run(id) if state.task(&id).is_none() && state.run_status(&id).is_some() => {
                return Ok(Vec::new());
            }
            Chosen::Run(id) => vec![state.known_run(&id)?.0],
            Chosen::Session(id) => state.runs_of(&id).collect(),
        };
        let reason = input::checked_reason(params.reason.as_ref())?;
        let mut events = Vec::new();
        for task in tasks {
            state.commands(call.decider()?, task, "stop it")?;
            events.extend(stop(task, reason.as_ref()));
        }
        Ok(events)
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let run_id = match Chosen::of(params, state)? {
            Chosen::Run(id) => id,
            Chosen::Session(session) => {
                let newest = state.runs_of(&session).next_back().map(|task| task.id.clone());
                newest.ok_or(Refusal::SessionOver { session })?
            }
        };
        let status =
            state.run_status(&run_id).ok_or_else(|| Refusal::UnknownRun { run: run_id.clone() })?;
        Ok(Reply { success: true, run_id, status, already: call.events == 0 })
    }
}

/// What a call stops.
enum Chosen {
    Run(TaskId),
    Session(SessionId),
}

impl Chosen {
    fn of(params: &Params, state: &State) -> Result<Self, Refusal> {
        match (params.run_id.as_deref(), params.session_id.as_deref()) {
            (Some(run), None) => TaskId::checked(run).map(Self::Run),
            (None, Some(session)) => {
                let session = SessionId::checked(session)?;
                match state.session(&session) {
                    Some(_) => Ok(Self::Session(session)),
                    None => Err(Refusal::UnknownSession { session }),
                }
            }
            _ => Err(Refusal::RunOrSession),
        }
    }
}

fn stop(task: &Task, reason: Option<&String>) -> Option<Event> {
    let (id, reason) = (task.id.clone(), reason.cloned());
    match RunStatus::of(task) {
        RunStatus::Pending => {
            Some(Event::Cancelled { task: id, reason: reason.or(Some("stopped".to_owned())) })
        }
        RunStatus::Claimed | RunStatus::Running => {
            Some(Event::StopRequested { task: id, reason, cancel: false })
        }
        _ => None,
    }
}
