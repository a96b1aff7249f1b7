use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::agent::Discovery;
use crate::state::event::Event;
use crate::state::id::{Chance, DiscoveryId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::{Created, State};

pub struct AddDiscovery;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    agent_id: Option<String>,
    content: String,
    #[serde(default)]
    tags: Vec<String>,
    idempotency_key: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    success: bool,
    discovery: Discovery,
}

impl Operation for AddDiscovery {
    const NAME: &'static str = "add_discovery";
    const DESCRIPTION: &'static str = "Share something that other agents should know.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn idempotency_key(params: &Params) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?.clone();
        state.known_agent(&agent)?;
        limit::DISCOVERIES.check(state.discoveries().len() + 1)?;
        let discovery = DiscoveryId::trusted(format!("disc-{}", Chance::new(call.seed).base32(8)));
        let content = input::checked_text("content", &limit::CONTENT, &params.content)?;
        Ok(vec![Event::DiscoveryAdded { discovery, agent, content, tags: input::checked_labels(&params.tags)? }])
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let added = call.created.iter().find_map(|created| match created {
            Created::Discovery(id) => state.discovery(id),
            _ => None,
        });
        let discovery = added.ok_or(Refusal::Empty { what: "what the call created" })?;
        Ok(Reply { success: true, discovery: Discovery::clone(discovery) })
    }
}
