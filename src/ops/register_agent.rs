use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::claim_task::shortened;
use super::held::{Held, Lost, held, lost};
use super::identity::{is_ours, newcomers_slot, reads_as_the_person};
use super::{
    AgentArgument, Annotations, AskGit, Call, Checkout, Decision, DefaultAgent, Operation,
    REPEATABLE, Toolset, input,
};
use crate::state::State;
use crate::state::agent::{Agent, Properties, Role};
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::inbox::Address;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

pub struct RegisterAgent;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Your name; made up if omitted
    pub agent_id: Option<String>,
    /// Default worker
    pub role: Option<Role>,
    pub capabilities: Option<Vec<String>>,
    pub tags: Option<Vec<String>>,
    /// Of your machine
    pub properties: Option<Properties>,
    // What else it says of itself, for people. Not shown, as arguments that are not known come here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("deprecated" = true))]
    pub metadata: Map<String, Value>,
    pub max_concurrent: Option<u32>,
    /// Take the id from another process
    #[serde(default)]
    pub takeover: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<Clearable>,
}

/// What an agent that reconnects empties.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clearable {
    Capabilities,
    Tags,
    Properties,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub agent: Agent,
    /// You had registered in this process before
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What you hold from before
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holding: Vec<Held>,
    /// What you held before and was taken from you while you were away
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
    /// In this worktree, where you held something before
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Uncommitted>,
    /// Agents with work that act through the same process: your session and its subagents
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
    /// What to do first, if it is not to claim a task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Command that stands in for the tools when they fail
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

/// Files that are changed or new and not committed.
#[derive(Serialize, JsonSchema)]
pub struct Uncommitted {
    pub count: usize,
    /// The first of them
    pub files: Vec<String>,
}

/// Another agent that acts through the same process.
#[derive(Serialize, JsonSchema)]
pub struct Other {
    pub agent_id: AgentId,
    pub task: TaskId,
    pub title: String,
}

/// Most uncommitted files that are named.
const UNCOMMITTED: usize = 5;
/// Most other agents that are named.
const OTHERS: usize = 3;
/// Bytes of the title of what another agent holds.
const TITLE: usize = 60;

impl Operation for RegisterAgent {
    const NAME: &'static str = "register_agent";
    const DESCRIPTION: &'static str =
        "Join the board first. Again reconnects: claims and what you omit stay.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> =
        Some(&["agent_id", "role", "capabilities", "tags", "properties", "takeover"]);
    const AGENT: AgentArgument = AgentArgument::Required;
    const CHECKED_OUT: Option<AskGit> = Some(left_lying);
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        if params.agent_id.as_deref() == Some(HUMAN) {
            return Err(reserved(agent).into());
        }
        let room = room_for(agent, state, call)?;
        if !params.takeover {
            refuse_if_elsewhere(agent, state, call)?;
        }
        // An agent that reconnects under its own id keeps the abilities it had.
        let known = state.agent(agent).filter(|_| !takes_free_slot(params, call));
        let max_concurrent =
            params.max_concurrent.or(known.map(|known| known.max_concurrent)).unwrap_or(1);
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
            tags: labels(
                params.tags.as_deref(),
                stays(Clearable::Tags).map(|known| known.tags.as_ref()),
            )?,
            properties: properties(
                params.properties.as_ref(),
                stays(Clearable::Properties).map(|known| known.properties.as_ref()),
            )?,
            metadata: metadata(params, state.agent(agent), known.is_some())?,
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

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = state.known_agent(call.agent()?)?;
        let holding = held(agent, state);
        let heard = call.heard.filter(|_| !call.is_known_here);
        let lost = heard.map(|heard| lost(&agent.id, heard, state)).unwrap_or_default();
        let is_newcomer = params.agent_id.is_none() && !call.is_known_here && holding.is_empty();
        let others = if is_newcomer { others(agent, state, call) } else { Vec::new() };
        Ok(Reply {
            success: true,
            again: call.is_known_here,
            since: agent.registered_at.filter(|_| call.is_known_here),
            next: next(&agent.id, &holding, &lost, &others, call),
            // Ids of processes tell an agent nothing.
            agent: Agent { present_through: BTreeSet::new(), ..Agent::clone(agent) },
            holding,
            lost,
            uncommitted: None,
            others,
            shell: call
                .command
                .map(|command| format!("{command} --agent {} call NAME 'JSON'", agent.id)),
        })
    }
}

impl Params {
    fn check_cleared(&self) -> Result<(), Refusal> {
        let given = [
            (Clearable::Capabilities, self.capabilities.is_some()),
            (Clearable::Tags, self.tags.is_some()),
            (Clearable::Properties, self.properties.is_some()),
        ];
        input::check_cleared(&self.clear, &given)
    }
}

/// Adds the files that lie uncommitted where an agent comes back: its own, from before it was
/// interrupted.
fn left_lying(reply: &mut Value, checkout: &Checkout) {
    let comes_back = reply.get("holding").or(reply.get("lost")).is_some();
    if comes_back && let Some(all) = (checkout.uncommitted)().filter(|files| !files.is_empty()) {
        let files = all.iter().take(UNCOMMITTED).map(|file| shortened(file, TITLE)).collect();
        reply["uncommitted"] = json!(Uncommitted { count: all.len(), files });
    }
}

/// Agents that act through this process and hold a task.
fn others(agent: &Agent, state: &State, call: &Call) -> Vec<Other> {
    let acts = |one: &&std::sync::Arc<Agent>| one.id != agent.id && is_ours(one, call);
    let working = state.agents().filter(acts).filter_map(|one| {
        let task = state.task(one.current_task.as_ref()?)?;
        let title = shortened(task.headline(), TITLE);
        Some(Other { agent_id: one.id.clone(), task: task.id.clone(), title })
    });
    working.take(OTHERS).collect()
}

/// What the agent has to know before it claims.
fn next(
    agent: &AgentId,
    holding: &[Held],
    lost: &[Lost],
    others: &[Other],
    call: &Call,
) -> Option<String> {
    if !holding.is_empty() {
        let whose = match (call.is_known_here, call.heard) {
            (false, Some(_)) => "this registration has taken over what you held before: ",
            _ => "",
        };
        return Some(format!(
            "{whose}go on with what you hold; get_task has all of it, release_task gives it back"
        ));
    }
    if !lost.is_empty() {
        return Some(
            "drop what you lost unless it is available: claim_task {task_id} gets that again"
                .to_owned(),
        );
    }
    others.first().map(|other| {
        format!(
            "you are {agent}, a new agent; if you are {} and have lost your memory, \
             register_agent with agent_id {} and go on with its task",
            other.agent_id, other.agent_id
        )
    })
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
            free: newcomers_slot(state, id.as_str(), call),
        }),
        None => Ok(()),
    }
}

/// True if the process takes a free slot. A newcomer in a numbered slot does not inherit the
/// abilities of the one before it.
fn takes_free_slot(params: &Params, call: &Call) -> bool {
    params.agent_id.is_none() && matches!(call.started_as, DefaultAgent::Auto { .. })
}

fn labels(
    given: Option<&[String]>,
    known: Option<&BTreeSet<String>>,
) -> Result<BTreeSet<String>, Refusal> {
    match given {
        Some(given) => Ok(input::checked_labels(given)?.into_iter().collect()),
        None => Ok(known.cloned().unwrap_or_default()),
    }
}

fn properties(
    given: Option<&Properties>,
    known: Option<&Properties>,
) -> Result<Properties, Refusal> {
    for value in given.into_iter().flat_map(Properties::values).flatten() {
        limit::PATH.check_text(value)?;
    }
    Ok(given.or(known).cloned().unwrap_or_default())
}

/// What is to be kept of what the agent says of itself. Nothing stays of an agent that had the id
/// before, if `stays` is false.
fn metadata(
    params: &Params,
    before: Option<&Arc<Agent>>,
    stays: bool,
) -> Result<Option<Map<String, Value>>, Refusal> {
    let given = input::checked_metadata(params.metadata.clone())?;
    let is_left = !stays && before.is_some_and(|before| !before.metadata.is_empty());
    Ok((!given.is_empty() || is_left).then_some(given))
}

fn reserved(agent: &AgentId) -> Refusal {
    Refusal::ReservedId { agent: agent.clone() }
}

/// Checks that the id is not another form of address, that a new agent's does not read as the
/// person's or the board's, and that there is room for the agent, perhaps after others retire.
pub fn room_for(agent: &AgentId, state: &State, call: &Call) -> Result<Option<Event>, Refusal> {
    let is_new = agent.as_str() != HUMAN && state.agent(agent).is_none();
    match Address::checked(agent.as_str()) {
        Ok(Address::Agent(_)) if is_new && reads_as_the_person(agent, call) => Err(reserved(agent)),
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
        metadata: None,
        max_concurrent: 1,
        takeover: false,
    }
}
