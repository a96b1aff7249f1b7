use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{SUCCESS, Success};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::agent::WaitReason;
use crate::state::event::Event;
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct ReportWaiting;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    #[serde(rename = "for")]
    pub reason: WaitReason,
    /// What is to be permitted or answered
    pub what: Option<String>,
    /// Where the person can answer, such as the terminal
    #[serde(rename = "where")]
    pub place: Option<String>,
}

impl Operation for ReportWaiting {
    const NAME: &'static str = "report_waiting";
    const DESCRIPTION: &'static str = "Clients' hooks: say that you wait for a person at a \
                                       prompt. It holds until your next call.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Success;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        state.known_agent(agent)?;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let (what, place) = (given(&params.what), given(&params.place));
        for text in [&what, &place].into_iter().flatten() {
            limit::AWAITED.check_text(text)?;
        }
        Ok(vec![Event::AgentWaits { agent: agent.clone(), reason: params.reason, what, place }])
    }

    fn reply(_: &Params, _: &State, _: &Call) -> Result<Success, Refusal> {
        Ok(SUCCESS)
    }
}
