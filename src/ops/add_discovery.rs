use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::discovery::Discovery;
use crate::state::event::Event;
use crate::state::id::{Chance, DiscoveryId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::{Created, State};

pub struct AddDiscovery;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub content: String,
    #[serde(default)]
    pub tags: Vec<String>,
    pub task_id: Option<String>,
    #[serde(default)]
    pub files: Vec<String>,
    /// Ids
    #[serde(default)]
    pub supersedes: Vec<String>,
    pub idempotency_key: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub discovery: Discovery,
}

impl Operation for AddDiscovery {
    const NAME: &'static str = "add_discovery";
    const DESCRIPTION: &'static str = "Share something that other agents should know.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> =
        Some(&["agent_id", "content", "tags", "task_id", "files", "supersedes"]);
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
        // A discovery without a task belongs to the one its agent is working on.
        let own = state.known_agent(&agent)?.current_task.clone();
        let discovery = DiscoveryId::trusted(format!("disc-{}", Chance::new(call.seed).base32(8)));
        let content = input::checked_text("content", &limit::CONTENT, &params.content)?;
        let tags = input::checked_labels(&params.tags)?;
        let task_id = params.task_id.as_deref().map(TaskId::checked).transpose()?;
        if let Some(unknown) = task_id.as_ref().filter(|id| state.status_of(id).is_none()) {
            return Err(Refusal::UnknownTask { task: unknown.clone() }.into());
        }
        let mut files = input::checked_patterns("files", &params.files, call.place)?;
        files.dedup();
        let acted = task_id.as_ref().and_then(|id| state.acted_on(Some(&agent), id));
        let (task_id, supersedes) = (task_id.or(own), superseded(&params.supersedes, state)?);
        let room = state.room_for_discovery(&supersedes)?;
        let added =
            Event::DiscoveryAdded { discovery, agent, content, tags, task_id, files, supersedes };
        Ok(acted.into_iter().chain([added]).chain(room).collect())
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let added = call.created.iter().find_map(|created| match created {
            Created::Discovery(id) => state.discovery(id),
            _ => None,
        });
        let discovery = added.ok_or(Refusal::Missing { what: "what the call created" })?;
        Ok(Reply { success: true, discovery: Discovery::clone(discovery) })
    }
}

/// Each id once, in the order given.
fn superseded(given: &[String], state: &State) -> Result<Vec<DiscoveryId>, Refusal> {
    limit::SUPERSEDED.check(given.len())?;
    let mut ids = Vec::new();
    for id in given {
        let discovery = DiscoveryId::checked(id)?;
        if state.discovery(&discovery).is_none() {
            return Err(Refusal::UnknownDiscovery { discovery });
        }
        if !ids.contains(&discovery) {
            ids.push(discovery);
        }
    }
    Ok(ids)
}
