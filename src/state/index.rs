//! What follows from the tasks, kept up with every change so that no operation scans them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashMap;

use super::agent::{Agent, Demands};
use super::aging::{Aging, Rank};
use super::id::TaskId;
use super::run::queue::Queue;
use super::table::Ordinal;
use super::task::{Task, TaskStatus};
use super::time::Timestamp;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Index {
    by_status: [usize; TaskStatus::ALL.len()],
    /// Ready tasks by demand set, in claim order: a claim looks at the first task of each set that
    /// the agent meets.
    ready: BTreeMap<Set, BTreeSet<(Rank, Ordinal)>>,
    aging: Aging,
    /// Ranks of the ready tasks while they rise, and of those that are claimed beside others; else
    /// a task's rank is its priority and its ordinal.
    ranks: HashMap<Ordinal, Rank>,
    /// Tasks that wait only for `not_before`.
    delayed: BTreeSet<(Timestamp, Ordinal)>,
    /// Shared with the copies that long reads take, because there may be millions of them.
    dependents: HashMap<TaskId, Arc<BTreeSet<Ordinal>>>,
    parts: HashMap<TaskId, Parts>,
    by_path: BTreeMap<String, BTreeSet<Ordinal>>,
    /// Tasks that have parts, and how many of them have each status.
    parents: HashMap<Ordinal, TaskStatus>,
    parents_by_status: [usize; TaskStatus::ALL.len()],
    leases: BTreeSet<(Timestamp, Ordinal)>,
    /// Index of the runs, which are kept apart.
    runs: Queue,
    /// Done, cancelled and obsolete tasks, oldest first.
    finished: BTreeSet<(Timestamp, Ordinal)>,
    /// Failed, cancelled and obsolete tasks.
    ended_badly: BTreeSet<Ordinal>,
    in_review: BTreeSet<Ordinal>,
    /// Unfinished tasks with an estimate.
    estimated: BTreeSet<Ordinal>,
    /// Tasks that are kept for an agent.
    kept: BTreeSet<(Timestamp, Ordinal)>,
    /// Time up to which `not_before` has been looked at.
    awake_until: Timestamp,
}

/// The parts of a task, and how many of them have each status, so that the status of a parent with
/// many parts is known without a look at each.
#[derive(Clone, Debug, Default, PartialEq)]
struct Parts {
    ordinals: BTreeSet<Ordinal>,
    by_status: [usize; TaskStatus::ALL.len()],
}

/// Demand sets among which one is searched for by pointer, which costs less than comparing two
/// sets.
const NEAR: usize = 8;

/// Demands shared by tasks. Compared by pointer first, because mostly the same object is compared.
#[derive(Clone, Debug)]
pub(super) struct Set(pub Arc<Demands>);

impl Ord for Set {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Set {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Set {}

impl Index {
    /// An index without tasks, for tasks that rise at this speed.
    pub(super) fn rising(aging: Aging) -> Self {
        Self { aging, ..Self::default() }
    }

    /// The index of tasks, none of them placed yet.
    pub(super) fn of<'a>(tasks: impl Iterator<Item = (Ordinal, &'a Task)>) -> Self {
        let mut index = Self::default();
        tasks.for_each(|(ordinal, task)| index.replace(ordinal, None, Some(task)));
        index
    }

    /// Places many tasks at once in an index in which none is placed.
    pub(super) fn place_all<'a>(&mut self, tasks: impl Iterator<Item = (Ordinal, &'a Task, Rank)>) {
        let mut ready: BTreeMap<Set, Vec<(Rank, Ordinal)>> = BTreeMap::new();
        for (ordinal, task, rank) in tasks {
            match task.not_before {
                Some(until) if until > self.awake_until => self.place(ordinal, task, rank),
                _ => {
                    self.note_rank(ordinal, rank);
                    ready.entry(Set(Arc::clone(&task.demands))).or_default().push((rank, ordinal));
                }
            }
        }
        self.ready = ready
            .into_iter()
            .map(|(demands, tasks)| (demands, tasks.into_iter().collect()))
            .collect();
    }

    /// Number of tasks with the status, those with parts among them.
    pub(super) fn count_all(&self, status: TaskStatus) -> usize {
        self.by_status[status as usize]
    }

    /// Number of tasks with the status, without those that have parts.
    pub(super) fn count(&self, status: TaskStatus) -> usize {
        self.by_status[status as usize] - self.parents_by_status[status as usize]
    }

    pub(super) fn replace(&mut self, ordinal: Ordinal, old: Option<&Task>, new: Option<&Task>) {
        if let Some(task) = old.filter(|task| task.open_attempt().is_some()) {
            self.leases.remove(&(lease_end(task), ordinal));
        }
        if let Some(task) = new.filter(|task| task.open_attempt().is_some()) {
            self.leases.insert((lease_end(task), ordinal));
        }
        if old.or(new).is_some_and(|task| task.run.is_some()) {
            self.runs.replace(ordinal, old, new);
            return;
        }
        if let Some(task) = old {
            self.by_status[task.status as usize] -= 1;
            if task.status.may_retire() {
                self.finished.remove(&(finish(task), ordinal));
            }
            if task.status.ended_badly() {
                self.ended_badly.remove(&ordinal);
            }
            if task.status == TaskStatus::Review {
                self.in_review.remove(&ordinal);
            }
            if has_estimate(task) {
                self.estimated.remove(&ordinal);
            }
            if let Some(kept) = &task.kept_for {
                self.kept.remove(&(kept.until, ordinal));
            }
            for id in task.dependencies.iter().chain(task.after()) {
                remove(&mut self.dependents, id, ordinal);
            }
            if let Some(parent) = &task.parent
                && let Some(parts) = self.parts.get_mut(parent)
            {
                parts.by_status[task.status as usize] -= 1;
                parts.ordinals.remove(&ordinal);
                if parts.ordinals.is_empty() {
                    self.parts.remove(parent);
                }
            }
            if let Some(path) = &task.path
                && let Some(ordinals) = self.by_path.get_mut(path)
            {
                ordinals.remove(&ordinal);
                if ordinals.is_empty() {
                    self.by_path.remove(path);
                }
            }
        }
        if let Some(task) = new {
            self.by_status[task.status as usize] += 1;
            if task.status.may_retire() {
                self.finished.insert((finish(task), ordinal));
            }
            if task.status.ended_badly() {
                self.ended_badly.insert(ordinal);
            }
            if task.status == TaskStatus::Review {
                self.in_review.insert(ordinal);
            }
            if has_estimate(task) {
                self.estimated.insert(ordinal);
            }
            if let Some(kept) = &task.kept_for {
                self.kept.insert((kept.until, ordinal));
            }
            for id in task.dependencies.iter().chain(task.after()) {
                Arc::make_mut(self.dependents.entry(id.clone()).or_default()).insert(ordinal);
            }
            if let Some(parent) = &task.parent {
                let parts = self.parts.entry(parent.clone()).or_default();
                parts.by_status[task.status as usize] += 1;
                parts.ordinals.insert(ordinal);
            }
            if let Some(path) = &task.path {
                self.by_path.entry(path.clone()).or_default().insert(ordinal);
            }
        }
    }

    pub(super) fn runs(&self) -> &Queue {
        &self.runs
    }

    pub(super) fn has_parts(&self, id: &TaskId) -> bool {
        self.parts.contains_key(id)
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = &TaskId> {
        self.parts.keys()
    }

    pub(super) fn parts(&self, id: &TaskId) -> impl Iterator<Item = Ordinal> + '_ {
        self.parts.get(id).into_iter().flat_map(|parts| &parts.ordinals).copied()
    }

    pub(super) fn count_parts(&self, id: &TaskId) -> usize {
        self.parts.get(id).map_or(0, |parts| parts.ordinals.len())
    }

    /// How many parts of the task have the status; `None` if it has no parts.
    pub(super) fn parts_that_are(&self, id: &TaskId, status: TaskStatus) -> Option<usize> {
        self.parts.get(id).map(|parts| parts.by_status[status as usize])
    }

    pub(super) fn at_path(&self, path: &str) -> impl Iterator<Item = Ordinal> + '_ {
        self.by_path.get(path).into_iter().flatten().copied()
    }

    /// Tasks at `path` or below it.
    pub(super) fn within_path(&self, path: &str) -> impl Iterator<Item = Ordinal> + '_ {
        let below = format!("{path}.");
        let from = self.by_path.range(below.clone()..);
        let below = from
            .take_while(move |(path, _)| path.starts_with(&below))
            .flat_map(|(_, ordinals)| ordinals)
            .copied();
        self.at_path(path).chain(below)
    }

    /// Notes the status of a task that has parts; `None` for one that has none.
    pub(super) fn note_parent(&mut self, ordinal: Ordinal, status: Option<TaskStatus>) {
        let before = match status {
            Some(status) => self.parents.insert(ordinal, status),
            None => self.parents.remove(&ordinal),
        };
        if let Some(before) = before {
            self.parents_by_status[before as usize] -= 1;
        }
        if let Some(status) = status {
            self.parents_by_status[status as usize] += 1;
        }
    }

    /// Places a task that only time may keep from being claimed: among the ready or the delayed.
    pub(super) fn place(&mut self, ordinal: Ordinal, task: &Task, rank: Rank) {
        match task.not_before {
            Some(until) if until > self.awake_until => drop(self.delayed.insert((until, ordinal))),
            _ => {
                self.note_rank(ordinal, rank);
                self.ready
                    .entry(Set(Arc::clone(&task.demands)))
                    .or_default()
                    .insert((rank, ordinal));
            }
        }
    }

    fn note_rank(&mut self, ordinal: Ordinal, rank: Rank) {
        if !self.aging.is_off() || (rank.1, rank.2) != (ordinal, 0) {
            self.ranks.insert(ordinal, rank);
        }
    }

    /// The rank under which a ready task was placed.
    pub(super) fn rank(&self, ordinal: Ordinal, task: &Task) -> Rank {
        self.ranks.get(&ordinal).copied().unwrap_or_else(|| (task.priority.into(), ordinal, 0))
    }

    pub(super) fn aging(&self) -> Aging {
        self.aging
    }

    /// Sets how fast tasks rise. None may be among the ready ones.
    pub(super) fn set_aging(&mut self, aging: Aging) {
        self.aging = aging;
    }

    /// Undoes what `place` did with `task`, if it did anything.
    pub(super) fn displace(&mut self, ordinal: Ordinal, task: &Task) {
        if let Some(until) = task.not_before {
            self.delayed.remove(&(until, ordinal));
        }
        let rank = self.rank(ordinal, task);
        self.ranks.remove(&ordinal);
        let near = self
            .ready
            .iter_mut()
            .take(NEAR)
            .find(|(known, _)| Arc::ptr_eq(&known.0, &task.demands));
        let set = match near {
            Some((_, set)) => Some(set),
            None => self.ready.get_mut(&Set(Arc::clone(&task.demands))),
        };
        if let Some(set) = set {
            set.remove(&(rank, ordinal));
            if set.is_empty() {
                self.ready.remove(&Set(Arc::clone(&task.demands)));
            }
        }
    }

    /// The object that ready tasks share for these demands, else `demands` itself.
    pub(super) fn shared(&self, demands: Arc<Demands>) -> Arc<Demands> {
        let demands = Set(demands);
        let known = self.ready.get_key_value(&demands).map(|(known, _)| Arc::clone(&known.0));
        known.unwrap_or(demands.0)
    }

    /// Delayed tasks whose time has come by `now`, which becomes the index's current time.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Ordinal> {
        self.awake_until = self.awake_until.max(now);
        self.delayed
            .range(..=(self.awake_until, Ordinal::MAX))
            .map(|(_, ordinal)| *ordinal)
            .collect()
    }

    pub(super) fn awake_until(&self) -> Timestamp {
        self.awake_until
    }

    pub(super) fn dependents(&self, id: &TaskId) -> impl Iterator<Item = Ordinal> + '_ {
        self.dependents.get(id).into_iter().flat_map(|all| all.iter().copied())
    }

    pub(super) fn has_dependents(&self, id: &TaskId) -> bool {
        self.dependents.contains_key(id)
    }

    /// What tasks depend on, or wait for because the plan has other words for it.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &TaskId> {
        self.dependents.keys()
    }

    /// The first task in claim order that `agent` may be given.
    pub(super) fn first_for(&self, agent: &Agent) -> Option<Ordinal> {
        let met = self.ready.iter().filter(|(demands, _)| demands.0.met_by(agent));
        met.filter_map(|(_, set)| set.first()).min().map(|(_, ordinal)| *ordinal)
    }

    /// Ready tasks that `agent` may be given, in claim order: one sequence for each demand set it
    /// meets.
    pub(super) fn ready_for<'a>(
        &'a self,
        agent: &'a Agent,
    ) -> impl Iterator<Item = impl Iterator<Item = (Rank, Ordinal)> + 'a> + 'a {
        let met = self.ready.iter().filter(|(demands, _)| demands.0.met_by(agent));
        met.map(|(_, set)| set.iter().copied())
    }

    /// Demand sets of ready tasks that `agent` does not meet, with the number of tasks of each.
    pub(super) fn unmet_by<'a>(
        &'a self,
        agent: &'a Agent,
    ) -> impl Iterator<Item = (&'a Demands, usize)> + 'a {
        let unmet = self.ready.iter().filter(|(demands, _)| !demands.0.met_by(agent));
        unmet.map(|(demands, set)| (demands.0.as_ref(), set.len()))
    }

    /// Whether only time keeps the task from being claimed.
    pub(super) fn is_delayed(&self, ordinal: Ordinal, task: &Task) -> bool {
        task.not_before.is_some_and(|until| self.delayed.contains(&(until, ordinal)))
    }

    pub(super) fn is_ready(&self, ordinal: Ordinal, task: &Task) -> bool {
        let set = self.ready.get(&Set(Arc::clone(&task.demands)));
        set.is_some_and(|set| set.contains(&(self.rank(ordinal, task), ordinal)))
    }

    pub(super) fn ready(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.ready_ranked().map(|(_, ordinal)| ordinal)
    }

    /// Ready tasks, those of each demand set in claim order.
    pub(super) fn ready_ranked(&self) -> impl Iterator<Item = (Rank, Ordinal)> + '_ {
        self.ready.values().flatten().copied()
    }

    pub(super) fn ready_count(&self) -> usize {
        self.ready.values().map(BTreeSet::len).sum()
    }

    /// The ready task that was created first.
    pub(super) fn oldest_ready(&self) -> Option<Ordinal> {
        self.ready().min()
    }

    pub(super) fn delayed_count(&self) -> usize {
        self.delayed.len()
    }

    pub(super) fn next_delayed(&self) -> Option<Timestamp> {
        self.delayed.first().map(|(until, _)| *until)
    }

    pub(super) fn next_lease_end(&self) -> Option<Timestamp> {
        self.leases.first().map(|(until, _)| *until)
    }

    pub(super) fn leases_ended(&self, now: Timestamp) -> impl Iterator<Item = Ordinal> + '_ {
        self.leases.range(..=(now, Ordinal::MAX)).map(|(_, ordinal)| *ordinal)
    }

    /// Tasks that are kept for an agent, by the time until which they are.
    pub(super) fn kept(&self) -> impl Iterator<Item = (Timestamp, Ordinal)> + '_ {
        self.kept.iter().copied()
    }

    pub(super) fn ended_badly(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.ended_badly.iter().copied()
    }

    pub(super) fn in_review(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.in_review.iter().copied()
    }

    /// Unfinished tasks with an estimate.
    pub(super) fn estimated(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.estimated.iter().copied()
    }

    pub(super) fn finished(&self) -> impl ExactSizeIterator<Item = Ordinal> + '_ {
        self.finished.iter().map(|(_, ordinal)| *ordinal)
    }
}

fn remove<K: Eq + Hash>(map: &mut HashMap<K, Arc<BTreeSet<Ordinal>>>, key: &K, ordinal: Ordinal) {
    if let Some(ordinals) = map.get_mut(key) {
        Arc::make_mut(ordinals).remove(&ordinal);
        if ordinals.is_empty() {
            map.remove(key);
        }
    }
}

fn lease_end(task: &Task) -> Timestamp {
    task.open_attempt().map(|attempt| attempt.lease_until).unwrap_or_default()
}

fn has_estimate(task: &Task) -> bool {
    task.estimated_minutes.is_some() && task.status.is_unfinished()
}

fn finish(task: &Task) -> Timestamp {
    task.completed_at.unwrap_or(task.created_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::state::document::Document;

    #[test]
    fn index_of_all_is_the_index_of_one_after_another() {
        let text = include_str!("../../tests/data/state-v1.json");
        let mut document: Document = serde_json::from_str(text).unwrap();
        for (number, task) in document.tasks.iter_mut().enumerate() {
            Arc::make_mut(task).not_before =
                (number % 3 == 0).then(|| Timestamp::from_millis(number as i64));
        }
        let state = State::from_document(document);
        let mut one_by_one = Index::default();
        for (ordinal, task) in state.records.tasks.iter() {
            one_by_one.replace(ordinal, None, Some(task));
            one_by_one.note_parent(ordinal, state.is_parent(&task.id).then_some(task.status));
            if state.is_unblocked(task) {
                one_by_one.place(ordinal, task, state.rank(task));
            }
        }
        assert_eq!(state.index, one_by_one);
        assert!(state.index.ready_count() > 0);
    }
}
