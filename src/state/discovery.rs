//! Discoveries: what agents found out, kept for all. A superseded one stays while there is room,
//! and is shown on request. What follows from the discoveries (which supersedes which, which are
//! about what) is kept up beside them and never written.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, DiscoveryId, TaskId};
use super::record::Record;
use super::table::Ordinal;
use super::time::Timestamp;

/// Something worth knowing that an agent found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Discovery {
    pub id: DiscoveryId,
    pub agent_id: AgentId,
    pub content: String,
    #[serde(default)]
    pub tags: Vec<String>,
    pub created_at: Timestamp,
    /// Task being worked on when it was found
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Paths and globs that it is about
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Ids of the discoveries that it replaces
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<DiscoveryId>,
}

impl Record for Discovery {
    const FIELD: &'static str = "discoveries";
    type Id = DiscoveryId;
    type All = Vec<Arc<Self>>;

    fn id(&self) -> Option<&DiscoveryId> {
        Some(&self.id)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub(super) ordinals: HashMap<DiscoveryId, Ordinal>,
    /// The discoveries that supersede each one.
    pub(super) superseded: HashMap<DiscoveryId, BTreeSet<Ordinal>>,
    pub(super) tags: HashMap<String, BTreeSet<Ordinal>>,
    pub(super) tasks: HashMap<TaskId, BTreeSet<Ordinal>>,
    /// Discoveries by file, as the file was given.
    pub(super) files: HashMap<String, BTreeSet<Ordinal>>,
    /// Discoveries that name files.
    pub(super) filed: BTreeSet<Ordinal>,
}

impl Findings {
    pub(super) fn add(&mut self, ordinal: Ordinal, one: &Discovery) {
        self.ordinals.insert(one.id.clone(), ordinal);
        for older in &one.supersedes {
            self.superseded.entry(older.clone()).or_default().insert(ordinal);
        }
        for tag in &one.tags {
            self.tags.entry(tag.clone()).or_default().insert(ordinal);
        }
        for file in &one.files {
            self.files.entry(file.clone()).or_default().insert(ordinal);
            self.filed.insert(ordinal);
        }
        if let Some(task) = &one.task_id {
            self.tasks.entry(task.clone()).or_default().insert(ordinal);
        }
    }

    pub(super) fn remove(&mut self, ordinal: Ordinal, one: &Discovery) {
        self.ordinals.remove(&one.id);
        one.supersedes.iter().for_each(|older| forget(&mut self.superseded, older, ordinal));
        one.tags.iter().for_each(|tag| forget(&mut self.tags, tag, ordinal));
        one.files.iter().for_each(|file| forget(&mut self.files, file, ordinal));
        one.task_id.iter().for_each(|task| forget(&mut self.tasks, task, ordinal));
        self.filed.remove(&ordinal);
    }
}

fn forget<K: std::hash::Hash + Eq>(
    index: &mut HashMap<K, BTreeSet<Ordinal>>,
    key: &K,
    ordinal: Ordinal,
) {
    if let Some(found) = index.get_mut(key) {
        found.remove(&ordinal);
        if found.is_empty() {
            index.remove(key);
        }
    }
}
