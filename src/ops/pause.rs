use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{self, SUCCESS, Success};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::event::Event;
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct PauseBoard;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub reason: Option<String>,
    /// Only these agents; without any, all claims
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl Operation for PauseBoard {
    const NAME: &'static str = "pause";
    const DESCRIPTION: &'static str =
        "Leaders: stop all claims, or those of some agents, until resume. Tasks in work go on.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "pause the board")?;
        let reason = input::checked_reason(params.reason.as_ref())?;
        if !params.agents.is_empty() {
            return of_agents(&params.agents, reason, state);
        }
        let paused = state.board().paused.as_ref();
        let as_asked = paused.is_some_and(|pause| pause.reason == reason);
        Ok(if as_asked { Vec::new() } else { vec![Event::Paused { reason }] })
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}

/// Pauses the claims of agents. One that is to stop stays so.
fn of_agents(ids: &[String], reason: Option<String>, state: &State) -> Decision {
    let known = known(ids, state)?;
    let is_new = |agent: &&Arc<Agent>| {
        agent.paused.as_ref().is_none_or(|pause| !pause.stop && pause.reason != reason)
    };
    let agents: Vec<_> = known.into_iter().filter(is_new).map(|agent| agent.id.clone()).collect();
    let paused =
        (!agents.is_empty()).then_some(Event::AgentsPaused { agents, reason, stop: false });
    Ok(paused.into_iter().collect())
}

/// The agents of these ids, each once.
pub(super) fn known<'s>(ids: &[String], state: &'s State) -> Result<Vec<&'s Arc<Agent>>, Refusal> {
    limit::RECIPIENTS.check(ids.len())?;
    let ids: BTreeSet<_> = ids.iter().collect();
    ids.into_iter().map(|id| state.agent_called(id)).collect()
}
