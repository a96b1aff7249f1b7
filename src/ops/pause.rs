use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{self, SUCCESS, Success};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::refusal::Refusal;

pub struct PauseBoard;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub reason: Option<String>,
}

impl Operation for PauseBoard {
    const NAME: &'static str = "pause";
    const DESCRIPTION: &'static str = "Leaders: stop all claims until resume. Tasks in work go on.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        state.leads(call.actor.as_ref(), "pause the board")?;
        let reason = input::checked_reason(params.reason.as_ref())?;
        let paused = state.board().paused.as_ref();
        let as_asked = paused.is_some_and(|pause| pause.reason == reason);
        Ok(if as_asked { Vec::new() } else { vec![Event::Paused { reason }] })
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}
