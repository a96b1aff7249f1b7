use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_status::is_quiet;
use super::page::{Page, Part, Shown};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::id::AgentId;
use crate::state::refusal::Refusal;

pub struct GetAgents;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Default 200, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<AgentId>>,
    pub agents: Vec<Shown<Item>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Item {
    #[serde(flatten)]
    pub agent: Agent,
    /// True if a process that the agent acts through is alive
    pub present: bool,
    /// True if the agent is present and holds a task, but has not called for the length of a lease
    pub quiet: bool,
}

impl Operation for GetAgents {
    const NAME: &'static str = "get_agents";
    const DESCRIPTION: &'static str = "List the agents: roles, current tasks, presence, counters.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 200)?.cut("callboard agents");
        let after = params.after.as_deref().unwrap_or_default();
        let rest = state.agents().filter(|agent| agent.id.as_str() > after);
        let item = |agent: &std::sync::Arc<Agent>| Item {
            agent: Agent::clone(agent),
            present: agent.is_present(),
            quiet: is_quiet(agent, call),
        };
        let next = page
            .fill(rest.map(item))
            .then(|| page.last().map(|last| last.agent.id.clone()))
            .flatten();
        let part = page.part(Some(state.agents().count()), !after.is_empty(), next);
        Ok(Reply { part, agents: page.into_entries() })
    }
}
