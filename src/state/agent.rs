//! Agents, what they offer, and what a task may demand of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::{AgentId, ParticipantId, TaskId};
use super::record::Record;
use super::run::Runner;
use super::time::{MINUTE, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Leader,
    Worker,
    Observer,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Worker => "worker",
            Self::Observer => "observer",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub id: AgentId,
    pub role: Role,
    pub last_heartbeat: Timestamp,
    /// The newest of current_tasks
    #[serde(default)]
    pub current_task: Option<TaskId>,
    #[serde(default)]
    pub tasks_completed: u64,
    #[serde(default)]
    pub tasks_failed: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub current_tasks: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub capabilities: Arc<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub tags: Arc<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Properties::is_empty")]
    pub properties: Arc<Properties>,
    /// What else it said of itself when it registered
    #[serde(default, skip_serializing_if = "is_without")]
    pub metadata: Arc<Map<String, Value>>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub max_concurrent: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    /// Ids of the living processes that the agent has acted through: its presence
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub present_through: BTreeSet<ParticipantId>,
    /// Set if the agent claims runs
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// What the agent waits for a person for, until its next sign
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<Waiting>>,
    /// Set while a person or a leader lets the agent have no more tasks
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Box<AgentPause>>,
}

/// Why an agent gets no more tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentPause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Timestamp,
    /// True if it is to stop what it does, too
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
}

impl Record for Agent {
    const FIELD: &'static str = "agents";
    type Id = AgentId;
    type All = BTreeMap<AgentId, Self>;

    fn id(&self) -> Option<&AgentId> {
        Some(&self.id)
    }
}

/// An agent waits for a person, who sees it only where the agent runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    #[serde(rename = "for")]
    pub reason: WaitReason,
    /// What is to be permitted: the tool and the beginning of its input
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Where the person can answer, such as the terminal
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "where")]
    pub place: Option<String>,
    pub since: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    Permission,
    Input,
}

impl WaitReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Input => "input",
        }
    }
}

fn is_without(metadata: &Arc<Map<String, Value>>) -> bool {
    metadata.is_empty()
}

fn is_empty(names: &BTreeSet<String>) -> bool {
    names.is_empty()
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Agent {
    /// A worker that has just come, and offers nothing in particular.
    pub fn new(id: AgentId, at: Timestamp) -> Self {
        Self {
            id,
            role: Role::Worker,
            last_heartbeat: at,
            current_task: None,
            tasks_completed: 0,
            tasks_failed: 0,
            current_tasks: Vec::new(),
            capabilities: Arc::default(),
            tags: Arc::default(),
            properties: Arc::default(),
            metadata: Arc::default(),
            max_concurrent: 1,
            registered_at: Some(at),
            present_through: BTreeSet::new(),
            runner: None,
            waiting: None,
            paused: None,
        }
    }

    /// The request that the agent stop, and whether it has been heard: the agent has called since.
    pub fn stop_asked(&self) -> Option<(&AgentPause, bool)> {
        let pause = self.paused.as_deref().filter(|pause| pause.stop)?;
        Some((pause, self.last_heartbeat > pause.at))
    }

    pub fn is_present(&self) -> bool {
        !self.present_through.is_empty()
    }

    /// True if the agent is present or was heard of within half an hour: it may come and claim.
    pub fn is_about(&self, now: Timestamp) -> bool {
        const A_LITTLE_WHILE: i64 = 30 * MINUTE;
        self.is_present() || now.since(self.last_heartbeat) < A_LITTLE_WHILE
    }

    /// True if the agent is not present and was not heard of for a week: it will hardly read what
    /// it was sent.
    pub fn is_lost(&self, now: Timestamp) -> bool {
        const A_WEEK: i64 = 7 * 24 * 60 * MINUTE;
        !self.is_present() && now.since(self.last_heartbeat) > A_WEEK
    }

    pub fn has_room(&self) -> bool {
        self.current_tasks.len() < self.max_concurrent as usize
    }
}

/// What an agent says of the machine it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Properties {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Your worktree, if not the server's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub kind: Option<String>,
}

impl Properties {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn values(&self) -> [&Option<String>; 4] {
        [&self.hostname, &self.project_dir, &self.profile, &self.kind]
    }
}

/// What its agent needs
// Every capability and tag, and equal properties. Every tool list contains the line above.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Demands {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub kind: Option<String>,
}

impl Demands {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn met_by(&self, agent: &Agent) -> bool {
        // The lengths are compared first, because most tasks demand one thing or nothing.
        let are_among = |demanded: &BTreeSet<String>, offered: &BTreeSet<String>| {
            demanded.len() <= offered.len() && demanded.iter().all(|one| offered.contains(one))
        };
        are_among(&self.capabilities, &agent.capabilities)
            && are_among(&self.tags, &agent.tags)
            && self.unequal_to(&agent.properties).next().is_none()
    }

    /// What `agent` lacks, in words for people.
    pub fn missing_from(&self, agent: &Agent) -> Vec<String> {
        let labels = self
            .capabilities
            .difference(&agent.capabilities)
            .chain(self.tags.difference(&agent.tags));
        let unequal =
            self.unequal_to(&agent.properties).map(|(name, demanded)| format!("{name}={demanded}"));
        labels.cloned().chain(unequal).collect()
    }

    /// The demands of both; `None` if they contradict each other.
    pub fn merged(&self, more: &Self) -> Option<Self> {
        let one = |old: &Option<String>, new: &Option<String>| match (old, new) {
            (Some(old), Some(new)) if old != new => None,
            (old, new) => Some(old.clone().or_else(|| new.clone())),
        };
        Some(Self {
            capabilities: self.capabilities.union(&more.capabilities).cloned().collect(),
            tags: self.tags.union(&more.tags).cloned().collect(),
            hostname: one(&self.hostname, &more.hostname)?,
            project_dir: one(&self.project_dir, &more.project_dir)?,
            profile: one(&self.profile, &more.profile)?,
            kind: one(&self.kind, &more.kind)?,
        })
    }

    /// The demands in words for people.
    pub fn described(&self) -> Vec<String> {
        let labels = self.capabilities.iter().chain(&self.tags).cloned();
        let nothing = Properties::default();
        let equal: Vec<_> = self
            .unequal_to(&nothing)
            .map(|(name, demanded)| format!("{name}={demanded}"))
            .collect();
        labels.chain(equal).collect()
    }

    fn unequal_to<'a>(
        &'a self,
        offered: &'a Properties,
    ) -> impl Iterator<Item = (&'static str, &'a String)> {
        let demanded = [
            ("hostname", &self.hostname),
            ("project_dir", &self.project_dir),
            ("profile", &self.profile),
            ("type", &self.kind),
        ];
        demanded
            .into_iter()
            .zip(offered.values())
            .filter(|((_, demanded), offered)| demanded != offered)
            .filter_map(|((name, demanded), _)| Some((name, demanded.as_ref()?)))
    }
}

/// A process that agents act through and that outlives one call: `mcp` over stdio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Participant {
    pub id: ParticipantId,
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    pub joined_at: Timestamp,
}

impl Record for Participant {
    const FIELD: &'static str = "participants";
    type Id = ParticipantId;
    type All = BTreeMap<ParticipantId, Self>;

    fn id(&self) -> Option<&ParticipantId> {
        Some(&self.id)
    }
}
