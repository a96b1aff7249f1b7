//! What keeps the queue from moving, and what would free it.

use std::collections::{BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::State;
use super::flow::Flow;
use super::id::TaskId;
use super::limit::{self, CYCLE_SHOWN, Limit};
use super::task::TaskStatus;
use super::time::Timestamp;

/// Most entries of each kind that are named.
pub const NAMED: usize = 20;
/// Most blocked tasks among which cycles are searched for, except by `doctor`.
const SEARCHED: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Health {
    /// Dependency cycles: each task waits for the next; of a long one the first tasks
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<TaskId>>,
    /// Number of tasks in each cycle, if only the first of one are named
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycle_lengths: Vec<usize>,
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

fn lengths(cycles: &[Vec<TaskId>]) -> Vec<usize> {
    let is_long = cycles.iter().any(|cycle| cycle.len() > CYCLE_SHOWN + 1);
    cycles.iter().filter(|_| is_long).map(|cycle| cycle.len() - 1).collect()
}

fn beginning(mut cycle: Vec<TaskId>) -> Vec<TaskId> {
    if cycle.len() > CYCLE_SHOWN + 1 {
        cycle.truncate(CYCLE_SHOWN);
    }
    cycle
}

impl State {
    /// True if tasks are left, but none is ready, held, in review or waiting for its
    /// time.
    pub fn is_deadlocked(&self) -> bool {
        self.blocked_count() > 0 && self.under_way() == 0
    }

    /// What keeps the queue from moving. With `thorough` cycles are searched for even where that
    /// takes long.
    pub fn health(&self, thorough: bool) -> Health {
        let deadlocked = self.is_deadlocked();
        if self.blocked_count() == 0 || !thorough && !deadlocked && self.blocked_count() > SEARCHED
        {
            return Health::default();
        }
        let is_sought = thorough || self.acyclic.get().is_none();
        let flow = (is_sought || deadlocked).then(|| Flow::new(self));
        let entangled = flow.as_ref().map(Flow::entangled).unwrap_or_default();
        if is_sought && entangled.is_empty() {
            self.acyclic.get_or_init(|| ());
        }
        let cycles = self.cycles(entangled);
        let blockers = flow.filter(|_| deadlocked).map(|flow| self.blockers(&flow, &cycles));
        Health {
            orphans: self.orphans(),
            blockers: blockers.unwrap_or_default(),
            cycle_lengths: lengths(&cycles),
            cycles: cycles.into_iter().map(beginning).collect(),
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

    fn orphans(&self) -> Vec<Orphan> {
        let missing = self.index.awaited().filter(|id| self.status_of(id).is_none());
        let waiting = missing.flat_map(|missing| {
            self.index.dependents(missing).map(move |ordinal| (ordinal, missing))
        });
        let parts = self.index.parents().filter(|id| self.status_of(id).is_none());
        let parts =
            parts.flat_map(|missing| self.index.parts(missing).map(move |part| (part, missing)));
        let found: BTreeSet<_> = waiting.chain(parts).collect();
        let found = found.into_iter().filter_map(|(ordinal, missing)| {
            let task = self.records.tasks.get(ordinal)?;
            let is_blocked = self.is_blocked(task);
            is_blocked.then(|| Orphan { task: task.id.clone(), missing: missing.clone() })
        });
        found.take(NAMED).collect()
    }

    /// Finds cycles one after another among the tasks of `entangled`, leaving out the members of
    /// those found.
    fn cycles(&self, mut entangled: HashSet<&TaskId>) -> Vec<Vec<TaskId>> {
        let mut found: Vec<Vec<TaskId>> = Vec::new();
        while found.len() < NAMED && !entangled.is_empty() {
            let Some(cycle) = self.cycle_among(&entangled) else { break };
            for id in &cycle {
                entangled.remove(id);
            }
            found.push(cycle);
        }
        found
    }

    /// What nothing that can move will resolve: failed, cancelled, obsolete or missing tasks, and
    /// cycles.
    fn blockers(&self, flow: &Flow<'_>, cycles: &[Vec<TaskId>]) -> Vec<Blocker> {
        let mut blocks = flow.blocks();
        let of_cycles: BTreeSet<&TaskId> = cycles.iter().flatten().collect();
        blocks.extend(of_cycles.into_iter().map(|id| (id.clone(), 1)));
        blocks.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
        blocks.truncate(NAMED);
        blocks.into_iter().map(|(id, blocks)| self.blocker(id, blocks)).collect()
    }

    fn blocker(&self, id: TaskId, blocks: usize) -> Blocker {
        let status = self.status_of(&id);
        let retired = self.task(&id).is_none() && status.is_some();
        let free_by = match status {
            None => "there is no such task: update_task what depends on it".to_owned(),
            Some(_) if retired => "it has retired: update_task what depends on it".to_owned(),
            Some(TaskStatus::Failed | TaskStatus::Cancelled) => {
                format!("retry_task `{id}`, or update_task what depends on it")
            }
            Some(TaskStatus::Obsolete) => {
                "the plan does not have it any more: update_task what depends on it".to_owned()
            }
            Some(_) => format!("it waits for itself: update_task `{id}` its dependencies"),
        };
        Blocker { task: id, status, blocks, free_by }
    }
}
