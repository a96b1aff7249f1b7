//! How far an execution has come, in its own words, and what a save changes of that.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::WorkflowId;

/// Progress of an execution, in its own words
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutionState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    #[serde(default = "initializing")]
    pub phase: String,
    #[serde(default)]
    pub step: u64,
    #[serde(default = "pending")]
    pub status: String,
    /// State by persona: last_updated, status, current_attempt, tokens_used, last_error,
    /// recovery_applied
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub persona_states: BTreeMap<String, Map<String, Value>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retry_counts: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed_tasks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_tasks: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub artifacts: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metrics: Map<String, Value>,
}

fn initializing() -> String {
    "initializing".to_owned()
}

fn pending() -> String {
    "pending".to_owned()
}

impl Default for ExecutionState {
    fn default() -> Self {
        Self {
            workflow_id: None,
            phase: initializing(),
            step: 0,
            status: pending(),
            persona_states: BTreeMap::new(),
            retry_counts: BTreeMap::new(),
            completed_tasks: Vec::new(),
            pending_tasks: Vec::new(),
            artifacts: Map::new(),
            metrics: Map::new(),
        }
    }
}

/// What a save changes of the state: what it leaves out stays, and null for a persona, or for a key
/// of retry_counts, artifacts or metrics, takes that away
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub workflow_id: Option<WorkflowId>,
    pub phase: Option<String>,
    pub step: Option<u64>,
    pub status: Option<String>,
    /// Each field of each persona by itself: last_updated, status, current_attempt, tokens_used,
    /// last_error, recovery_applied
    #[serde(default)]
    pub persona_states: BTreeMap<String, Option<Map<String, Value>>>,
    #[serde(default)]
    pub retry_counts: BTreeMap<String, Option<u64>>,
    /// Added to those known, and taken off pending_tasks
    #[serde(default)]
    pub completed_tasks: Vec<String>,
    /// In place of those known; what is completed is left out
    pub pending_tasks: Option<Vec<String>>,
    #[serde(default)]
    pub artifacts: Map<String, Value>,
    #[serde(default)]
    pub metrics: Map<String, Value>,
}

// A part of the state that a save may give as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    PersonaStates,
    RetryCounts,
    CompletedTasks,
    PendingTasks,
    Artifacts,
    Metrics,
}

impl ExecutionState {
    /// The state's JSON without spaces.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The state after a change. Of the parts in `replaced`, only what the change names is left.
    pub fn changed(mut self, change: &Change, replaced: &[Part]) -> Self {
        for part in replaced {
            match part {
                Part::PersonaStates => self.persona_states.clear(),
                Part::RetryCounts => self.retry_counts.clear(),
                Part::CompletedTasks => self.completed_tasks.clear(),
                Part::PendingTasks => self.pending_tasks.clear(),
                Part::Artifacts => self.artifacts.clear(),
                Part::Metrics => self.metrics.clear(),
            }
        }
        self.phase = change.phase.clone().unwrap_or(self.phase);
        self.step = change.step.unwrap_or(self.step);
        self.status = change.status.clone().unwrap_or(self.status);
        for (name, fields) in &change.persona_states {
            match fields {
                // A null inside says something of the persona, such as that it had no error.
                Some(fields) => {
                    self.persona_states.entry(name.clone()).or_default().extend(fields.clone())
                }
                None => _ = self.persona_states.remove(name),
            }
        }
        for (task, count) in &change.retry_counts {
            match count {
                Some(count) => _ = self.retry_counts.insert(task.clone(), *count),
                None => _ = self.retry_counts.remove(task),
            }
        }
        let by_key =
            [(&mut self.artifacts, &change.artifacts), (&mut self.metrics, &change.metrics)];
        for (known, changed) in by_key {
            for (key, value) in changed {
                match value {
                    Value::Null => _ = known.shift_remove(key),
                    value => _ = known.insert(key.clone(), value.clone()),
                }
            }
        }
        self.complete(&change.completed_tasks);
        if let Some(pending) = &change.pending_tasks {
            let completed: BTreeSet<_> = self.completed_tasks.iter().collect();
            self.pending_tasks =
                pending.iter().filter(|task| !completed.contains(task)).cloned().collect();
        }
        self
    }

    fn complete(&mut self, tasks: &[String]) {
        let named: BTreeSet<_> = tasks.iter().collect();
        self.pending_tasks.retain(|task| !named.contains(task));
        let mut known: BTreeSet<_> = self.completed_tasks.iter().cloned().collect();
        let new = tasks.iter().filter(|task| known.insert((*task).clone()));
        self.completed_tasks.extend(new.cloned());
    }
}
