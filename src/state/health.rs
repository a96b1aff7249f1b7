//! What keeps the queue from moving, and what would free it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::State;
use super::id::TaskId;
use super::limit::{self, Limit};
use super::task::{Task, TaskStatus};
use super::time::Timestamp;

/// Most entries of each kind that are named.
pub const NAMED: usize = 20;
/// Most blocked tasks among which cycles are searched for, except by `doctor`.
const SEARCHED: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Health {
    /// Dependency cycles: each task waits for the next, and the last for the first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<TaskId>>,
    /// Tasks that depend on a task that does not exist
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Orphan>,
    /// What everything else waits for, when nothing can move
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Orphan {
    pub task: TaskId,
    pub missing: TaskId,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Blocker {
    pub task: TaskId,
    /// Null if the task does not exist
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// Number of tasks that wait for it, directly or through others
    pub blocks: usize,
    pub free_by: String,
}

impl Health {
    pub fn is_sound(&self) -> bool {
        *self == Self::default()
    }
}

impl State {
    /// True if tasks are left, but none is ready, held or waiting for its time.
    pub fn is_deadlocked(&self) -> bool {
        self.blocked_count() > 0
            && self.ready_count() + self.delayed_count() + self.held_count() == 0
    }

    /// What keeps the queue from moving. With `thorough` cycles are searched for even where that
    /// takes long.
    pub fn health(&self, thorough: bool) -> Health {
        let deadlocked = self.is_deadlocked();
        if self.blocked_count() == 0 || !thorough && !deadlocked && self.blocked_count() > SEARCHED
        {
            return Health::default();
        }
        Health {
            cycles: self.cycles(),
            orphans: self.orphans(),
            blockers: if deadlocked { self.blockers() } else { Vec::new() },
        }
    }

    /// The limits that are nearly reached, not counting what can retire to make room.
    pub fn nearly_full(&self, now: Timestamp) -> Vec<String> {
        let held: [(Limit, usize, &dyn Fn() -> usize); 7] = [
            (limit::TASKS, self.records.tasks.len(), &|| 0),
            (limit::AGENTS, self.records.agents.len(), &|| self.agents_to_spare(now).len()),
            (limit::MESSAGES, self.records.messages.len(), &|| self.read_by_all()),
            (limit::DISCOVERIES, self.records.discoveries.len(), &|| {
                self.discoveries_to_spare(&[]).count()
            }),
            (limit::RESERVATIONS, self.records.reservations.len(), &|| 0),
            (limit::RUN_SESSIONS, self.sessions().len(), &|| self.sessions_to_spare(None).count()),
            (limit::WORKFLOWS, self.records.workflows.len(), &|| 0),
        ];
        // What could retire is counted only where it matters.
        let full = held.into_iter().filter(|(limit, count, _)| limit.nearly(*count).is_some());
        full.filter_map(|(limit, count, spare)| limit.nearly(count - spare())).collect()
    }

    fn blocked(&self) -> impl Iterator<Item = &Arc<Task>> {
        let open = self.tasks().filter(|task| task.status == TaskStatus::Available);
        open.filter(|task| !self.is_parent(&task.id) && self.waits_for(task).next().is_some())
    }

    fn orphans(&self) -> Vec<Orphan> {
        let missing = self.blocked().flat_map(|task| {
            let missing = task
                .dependencies
                .iter()
                .chain(&task.parent)
                .filter(|id| self.status_of(id).is_none());
            missing.map(|missing| Orphan { task: task.id.clone(), missing: missing.clone() })
        });
        missing.take(NAMED).collect()
    }

    /// Finds cycles one after another, leaving out the members of those found.
    fn cycles(&self) -> Vec<Vec<TaskId>> {
        let mut found: Vec<Vec<TaskId>> = Vec::new();
        let mut known: BTreeSet<TaskId> = BTreeSet::new();
        let edges: BTreeMap<&TaskId, &[TaskId]> =
            self.blocked().map(|task| (&task.id, task.dependencies.as_slice())).collect();
        let mut rest: BTreeMap<&TaskId, &[TaskId]> = edges;
        while found.len() < NAMED {
            let Some(cycle) = self.cycle_among(&rest) else { break };
            known.extend(cycle.iter().cloned());
            rest.retain(|id, _| !known.contains(*id));
            found.push(cycle);
        }
        found
    }

    /// What nothing that can move will resolve: failed, cancelled, obsolete or missing tasks, and
    /// cycles.
    fn blockers(&self) -> Vec<Blocker> {
        let mut blocks: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
        for task in self.blocked() {
            for root in self.roots(task) {
                blocks.entry(root).or_default().insert(task.id.clone());
            }
        }
        let mut blockers: Vec<_> =
            blocks.into_iter().map(|(id, blocked)| self.blocker(id, blocked.len())).collect();
        blockers.sort_by(|one, other| {
            other.blocks.cmp(&one.blocks).then_with(|| one.task.cmp(&other.task))
        });
        blockers.truncate(NAMED);
        blockers
    }

    /// Ends of the chains of what `task` waits for.
    fn roots(&self, task: &Task) -> Vec<TaskId> {
        let mut seen: BTreeSet<&TaskId> = BTreeSet::new();
        let mut open: Vec<&TaskId> = self.waits_for(task).collect();
        let mut roots = Vec::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(one) = self.task(id) else {
                roots.push(id.clone());
                continue;
            };
            let unfinished_parts: Vec<_> = self
                .parts(id)
                .filter(|part| part.status != TaskStatus::Done)
                .map(|part| &part.id)
                .collect();
            if !unfinished_parts.is_empty() {
                open.extend(unfinished_parts);
            } else if one.status == TaskStatus::Available {
                let before = open.len();
                open.extend(self.waits_for(one));
                if open.len() == before || one.id == task.id {
                    roots.push(id.clone());
                }
            } else {
                roots.push(id.clone());
            }
        }
        roots
    }

    fn blocker(&self, id: TaskId, blocks: usize) -> Blocker {
        let status = self.status_of(&id);
        let retired = self.task(&id).is_none() && status.is_some();
        let free_by = match status {
            None => "update_task what depends on it: there is no such task".to_owned(),
            Some(_) if retired => "update_task what depends on it: it has retired".to_owned(),
            Some(TaskStatus::Failed | TaskStatus::Cancelled) => {
                format!("retry_task `{id}`, or update_task what depends on it")
            }
            Some(TaskStatus::Obsolete) => {
                "update_task what depends on it: the plan does not have it any more".to_owned()
            }
            Some(_) => "update_task its dependencies: it waits for itself".to_owned(),
        };
        Blocker { task: id, status, blocks, free_by }
    }
}
