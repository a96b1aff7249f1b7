use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{SUCCESS, Success};
use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::refusal::Refusal;

pub struct ForgetAgent;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Who is to be forgotten
    pub agent: String,
}

impl Operation for ForgetAgent {
    const NAME: &'static str = "forget_agent";
    const DESCRIPTION: &'static str =
        "Leaders: take an agent that has gone off the list. What it did stays done.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "forget an agent")?;
        let agent = state.agent_called(&params.agent)?;
        let why_not = match agent.current_tasks.last() {
            Some(task) => {
                let stop = format!("stop_agent `{}` with now: true", agent.id);
                Some(format!("holds task `{task}`; {stop} releases it"))
            }
            None if agent.is_present() => Some("is here: end its client first".to_owned()),
            None if call.actor.as_ref() == Some(&agent.id) || agent.id.as_str() == HUMAN => {
                Some("is you, or the board's owner".to_owned())
            }
            None if state.reservations().any(|one| one.agent == agent.id) => {
                Some("has files reserved; release_files gives them up".to_owned())
            }
            None => None,
        };
        match why_not {
            Some(why) => Err(Refusal::AgentStays { agent: agent.id.clone(), why }.into()),
            None => Ok(vec![Event::AgentsRetired { agents: vec![agent.id.clone()] }]),
        }
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}
