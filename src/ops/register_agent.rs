use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::execute::free_slot;
use super::{AgentArgument, Annotations, Call, Decision, DefaultAgent, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::agent::{Agent, Properties, Role};
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::message::Address;
use crate::state::refusal::Refusal;

pub struct RegisterAgent;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Your name; made up if omitted
    agent_id: Option<String>,
    /// Default worker
    role: Option<Role>,
    capabilities: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    /// Of your machine
    properties: Option<Properties>,
    max_concurrent: Option<u32>,
    /// Take the id from another process
    #[serde(default)]
    takeover: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clear: Vec<Clearable>,
}

/// What an agent that reconnects can take back.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Clearable {
    Capabilities,
    Tags,
    Properties,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    success: bool,
    agent: Agent,
}

impl Operation for RegisterAgent {
    const NAME: &'static str = "register_agent";
    const DESCRIPTION: &'static str =
        "Join the board first. Again reconnects: claims and what you omit stay; `clear` empties.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        if params.agent_id.as_deref() == Some(HUMAN) {
            return Err(Refusal::ReservedId { agent: agent.clone() }.into());
        }
        let room = room_for(agent, state, call)?;
        if !params.takeover {
            refuse_if_elsewhere(agent, state, call)?;
        }
        // An agent that reconnects under its own id keeps the abilities it had.
        let known = state.agent(agent).filter(|_| !takes_free_slot(params, call));
        let max_concurrent = params.max_concurrent.or(known.map(|known| known.max_concurrent)).unwrap_or(1);
        limit::HELD.check(max_concurrent as usize)?;
        params.check_cleared()?;
        let stays = |field| known.filter(|_| !params.clear.contains(&field));
        let registered = Event::AgentRegistered {
            agent: agent.clone(),
            role: params.role.or(known.map(|known| known.role)).unwrap_or(Role::Worker),
            capabilities: labels(
                params.capabilities.as_deref(),
                stays(Clearable::Capabilities).map(|known| known.capabilities.as_ref()),
            )?,
            tags: labels(params.tags.as_deref(), stays(Clearable::Tags).map(|known| known.tags.as_ref()))?,
            properties: properties(
                params.properties.as_ref(),
                stays(Clearable::Properties).map(|known| known.properties.as_ref()),
            )?,
            max_concurrent: max_concurrent.max(1),
            takeover: params.takeover,
        };
        let renews = call.presence.is_some() || state.agent(agent).is_some();
        let seen = renews.then(|| Event::AgentSeen {
            answered: None,
            waited: state.agent(agent).is_some_and(|known| known.waiting.is_some()),
            agent: agent.clone(),
            through: call.presence.map(|participant| participant.id.clone()),
            lease_millis: call.policy.lease_millis(call.presence.is_some()),
        });
        Ok(room.into_iter().chain([registered]).chain(seen).collect())
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        Ok(Reply { success: true, agent: Agent::clone(state.known_agent(call.agent()?)?) })
    }
}

impl Params {
    /// Refuses a field that is given and cleared at once.
    fn check_cleared(&self) -> Result<(), Refusal> {
        let given = [
            (Clearable::Capabilities, self.capabilities.is_some()),
            (Clearable::Tags, self.tags.is_some()),
            (Clearable::Properties, self.properties.is_some()),
        ];
        match given.iter().any(|(field, is_given)| *is_given && self.clear.contains(field)) {
            true => Err(Refusal::GivenAndCleared),
            false => Ok(()),
        }
    }
}

/// Refuses an id that acts through another living process: it belongs to that process.
pub fn refuse_if_elsewhere(id: &AgentId, state: &State, call: &Call) -> Result<(), Refusal> {
    let Some(agent) = state.agent(id) else { return Ok(()) };
    let ours = call.presence.map(|participant| &participant.id);
    let others = agent.present_through.iter().filter(|one| Some(*one) != ours);
    match others.filter_map(|one| state.participant(one)).next() {
        Some(other) => Err(Refusal::AgentInUse {
            agent: id.clone(),
            pid: other.pid,
            worktree: other.worktree.clone(),
            free: free_slot(state, id.as_str(), call),
        }),
        None => Ok(()),
    }
}

/// True if the process takes a free slot. A new session in a numbered slot does not inherit the abilities of the one
/// before it.
fn takes_free_slot(params: &Params, call: &Call) -> bool {
    params.agent_id.is_none() && matches!(call.default_agent, DefaultAgent::Auto { .. })
}

fn labels(given: Option<&[String]>, known: Option<&BTreeSet<String>>) -> Result<BTreeSet<String>, Refusal> {
    match given {
        Some(given) => Ok(input::checked_labels(given)?.into_iter().collect()),
        None => Ok(known.cloned().unwrap_or_default()),
    }
}

fn properties(given: Option<&Properties>, known: Option<&Properties>) -> Result<Properties, Refusal> {
    for value in given.into_iter().flat_map(Properties::values).flatten() {
        limit::PATH.check_text(value)?;
    }
    Ok(given.or(known).cloned().unwrap_or_default())
}

/// Checks that the id is not another form of address and that there is room for the agent, perhaps after others retire.
pub fn room_for(agent: &AgentId, state: &State, call: &Call) -> Result<Option<Event>, Refusal> {
    match Address::checked(agent.as_str()) {
        Ok(Address::Agent(_) | Address::Human) => state.room_for_agent(agent, call.now),
        _ => Err(Refusal::AddressAsId),
    }
}

/// Registration of a process's default agent that did not register itself.
pub fn unasked(agent: &AgentId) -> Event {
    Event::AgentRegistered {
        agent: agent.clone(),
        role: if agent.as_str() == HUMAN { Role::Leader } else { Role::Worker },
        capabilities: BTreeSet::new(),
        tags: BTreeSet::new(),
        properties: Properties::default(),
        max_concurrent: 1,
        takeover: false,
    }
}
