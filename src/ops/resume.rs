use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{SUCCESS, Success};
use super::pause::known;
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::refusal::Refusal;

pub struct ResumeBoard;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Only these agents; without any, the board
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl Operation for ResumeBoard {
    const NAME: &'static str = "resume";
    const DESCRIPTION: &'static str =
        "Leaders: allow claims again, also to agents that were to stop.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "resume the board")?;
        if !params.agents.is_empty() {
            let known = known(&params.agents, state)?.into_iter();
            let agents: Vec<_> = known
                .filter(|agent| agent.paused.is_some())
                .map(|agent| agent.id.clone())
                .collect();
            let resumed = (!agents.is_empty()).then_some(Event::AgentsResumed { agents });
            return Ok(resumed.into_iter().collect());
        }
        Ok(state.board().paused.as_ref().map(|_| Event::Resumed {}).into_iter().collect())
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}
