//! What a plan in JSON has beside its items if it comes from another board: agents, discoveries,
//! and what became of the items there.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::over;
use crate::state::agent::{self, Demands, Properties, Role};
use crate::state::brought::{Brought, Past};
use crate::state::discovery;
use crate::state::id::{AgentId, DiscoveryId, TaskId};
use crate::state::limit::{self, Limit};
use crate::state::plan::{Further, Trials};
use crate::state::task::TaskResult;
use crate::state::time::Timestamp;

/// What a board has beside tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Board {
    /// Taken over by a board that has none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_plan: Option<String>,
    /// Agents as they were known; none of them is there by that
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discoveries: Vec<Discovery>,
    /// Lines of the file that look like work and are no items
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// Anything else, kept with the import
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub id: String,
    #[serde(default = "worker")]
    pub role: Role,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<Timestamp>,
    #[serde(default)]
    pub tasks_completed: u64,
    #[serde(default)]
    pub tasks_failed: u64,
}

fn worker() -> Role {
    Role::Worker
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    pub id: String,
    pub agent_id: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The task_id of an item
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// What is said of an item beside what is to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OfTask {
    /// Id of the task, if the board does not have it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Time limit of each attempt
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demands: Option<Demands>,
    /// What became of it before
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
}

impl OfTask {
    pub fn checked(self) -> Result<Further, String> {
        let Self { task_id, max_attempts, timeout_seconds, demands, past } = self;
        let task_id = task_id
            .map(|id| TaskId::checked(&id))
            .transpose()
            .map_err(|refusal| refusal.to_string())?;
        for (what, given, limit) in [
            ("max_attempts", max_attempts, limit::ATTEMPTS),
            ("timeout_seconds", timeout_seconds, limit::SPAN),
            ("attempt", Some(past.attempt).filter(|number| *number > 0), limit::SPAN),
        ] {
            let Some(given) = given else { continue };
            if given == 0 {
                return Err(format!("{what} is 0: leave it out, or give a number from 1"));
            }
            within(limit, given as usize)?;
        }
        if let Some(demands) = &demands {
            labels(demands.capabilities.iter().chain(&demands.tags))?;
        }
        check_past(&past)?;
        Ok(Further {
            task_id,
            trials: Trials { max_attempts, timeout_seconds, demands, review: None },
            past,
        })
    }
}

fn check_past(past: &Past) -> Result<(), String> {
    past.claimed_by.iter().try_for_each(check_agent)?;
    past.result.iter().try_for_each(check_result)?;
    let mut before = 0;
    for tried in &past.attempts {
        check_agent(&tried.agent)?;
        if tried.number <= before || tried.number > past.attempt {
            return Err(format!(
                "attempt {} does not stand between {before} and {}, the last one: number them in \
                 order",
                tried.number, past.attempt
            ));
        }
        before = tried.number;
        if let Some(error) = &tried.error {
            within(limit::LABEL, error.category.len())?;
            within(limit::ERROR, error.message.len())?;
        }
        within(limit::NOTE, tried.note.as_ref().map_or(0, String::len))?;
    }
    if past.uncounted > past.attempt {
        Err(format!("uncounted is {}, and there were {} attempts", past.uncounted, past.attempt))
    } else {
        Ok(())
    }
}

fn check_agent(id: &AgentId) -> Result<(), String> {
    AgentId::checked(id.as_str()).map(drop).map_err(|refusal| refusal.to_string())
}

fn check_result(result: &TaskResult) -> Result<(), String> {
    within(limit::OUTPUT, result.output.as_ref().map_or(0, String::len))?;
    within(limit::ERROR, result.error.as_ref().map_or(0, String::len))?;
    within(limit::DATA, result.data.as_ref().map_or(0, |data| data.to_string().len()))?;
    for files in [&result.files_created, &result.files_modified] {
        within(limit::FILES, files.len())?;
        files.iter().try_for_each(|file| within(limit::PATH, file.len()))?;
    }
    Ok(())
}

impl Agent {
    pub fn checked(self) -> Result<agent::Agent, String> {
        let id = AgentId::checked(&self.id).map_err(|refusal| refusal.to_string())?;
        labels(self.capabilities.iter().chain(&self.tags))?;
        within(limit::PATH, self.project_dir.as_ref().map_or(0, String::len))?;
        let max_concurrent = self.max_concurrent.unwrap_or(1);
        if max_concurrent == 0 {
            return Err("max_concurrent is 0: leave it out, or give a number from 1".to_owned());
        }
        within(limit::HELD, max_concurrent as usize)?;
        let set = |labels: Vec<String>| Arc::new(labels.into_iter().collect::<BTreeSet<_>>());
        Ok(agent::Agent {
            id,
            role: self.role,
            last_heartbeat: self.last_heartbeat.or(self.registered_at).unwrap_or_default(),
            current_task: None,
            tasks_completed: self.tasks_completed,
            tasks_failed: self.tasks_failed,
            current_tasks: Vec::new(),
            capabilities: set(self.capabilities),
            tags: set(self.tags),
            metadata: Arc::default(),
            properties: Arc::new(Properties {
                project_dir: self.project_dir,
                ..Properties::default()
            }),
            max_concurrent,
            registered_at: self.registered_at,
            present_through: BTreeSet::new(),
            runner: None,
            waiting: None,
            paused: None,
        })
    }
}

impl Discovery {
    pub fn checked(self) -> Result<discovery::Discovery, String> {
        let id = DiscoveryId::checked(&self.id).map_err(|refusal| refusal.to_string())?;
        let agent_id = AgentId::checked(&self.agent_id).map_err(|refusal| refusal.to_string())?;
        let task_id = self
            .task_id
            .as_deref()
            .map(TaskId::checked)
            .transpose()
            .map_err(|refusal| refusal.to_string())?;
        if self.content.trim().is_empty() {
            return Err("it has no content".to_owned());
        }
        within(limit::CONTENT, self.content.len())?;
        labels(self.tags.iter())?;
        within(limit::FILES, self.files.len())?;
        self.files.iter().try_for_each(|file| within(limit::PATH, file.len()))?;
        let Self { content, tags, files, created_at, .. } = self;
        let created_at = created_at.unwrap_or_default();
        Ok(discovery::Discovery {
            id,
            agent_id,
            content,
            tags,
            created_at,
            task_id,
            files,
            supersedes: Vec::new(),
        })
    }
}

fn labels<'a>(labels: impl Iterator<Item = &'a String> + Clone) -> Result<(), String> {
    within(limit::LABELS, labels.clone().count())?;
    labels.into_iter().try_for_each(|label| {
        if label.trim().is_empty() {
            Err("a tag or capability is empty".to_owned())
        } else {
            within(limit::LABEL, label.len())
        }
    })
}

fn within(limit: Limit, actual: usize) -> Result<(), String> {
    if actual <= limit.max { Ok(()) } else { Err(over(0, limit, actual).problem) }
}

/// Checks the texts of the whole.
pub fn check(brought: &Brought, metadata: &Map<String, Value>) -> Result<(), String> {
    within(limit::GOAL, brought.goal.as_ref().map_or(0, String::len))?;
    within(limit::MASTER_PLAN, brought.master_plan.as_ref().map_or(0, String::len))?;
    within(limit::AGENTS, brought.agents.len())?;
    within(limit::DISCOVERIES, brought.discoveries.len())?;
    let metadata =
        if metadata.is_empty() { 0 } else { Value::Object(metadata.clone()).to_string().len() };
    within(limit::IMPORT_METADATA, metadata)
}
