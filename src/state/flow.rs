//! What waits for what on the whole board, followed forwards: from a task to those that wait for
//! it. A question about all tasks takes one walk, however long the chains are.
//!
//! A task without parts is one node. One with parts is two: its start, which its parts wait for, and
//! its end, which waits for them. Work of its own is done at its end.

pub(super) mod cause;

use std::collections::HashSet;

use super::id::TaskId;
use super::parts::keeps_open;
use super::task::{Task, TaskStatus};
use super::{Ordinal, State};

/// Steps that counting what each root blocks may take. Tasks that many others wait for directly
/// come first, so that those are counted where there is not time for all.
const STEPS: usize = 4_000_000;
/// Roots that are counted in one walk: each is a bit.
const ROOTS: usize = u128::BITS as usize;
const NONE: u32 = u32::MAX;

pub(super) struct Flow<'s> {
    state: &'s State,
    tasks: Vec<&'s Task>,
    /// Number of a task in `tasks`, which is also its start, by ordinal.
    numbers: Vec<u32>,
    /// The end of each task: of one without parts, its start.
    ends: Vec<u32>,
    /// The parent whose end a node behind those of `tasks` is, and whether it is a group.
    parents: Vec<(u32, bool)>,
    /// Tasks whose places others take in the plan, and which those wait for without depending on
    /// them.
    replaced: HashSet<&'s TaskId>,
    /// The nodes, each behind all that it waits for; those that wait for a cycle are not there.
    order: Vec<u32>,
    edges: usize,
}

impl<'s> Flow<'s> {
    pub(super) fn new(state: &'s State) -> Self {
        let mut flow = Self {
            state,
            tasks: Vec::with_capacity(state.live_tasks()),
            numbers: Vec::new(),
            ends: Vec::new(),
            parents: Vec::new(),
            replaced: HashSet::new(),
            order: Vec::new(),
            edges: 0,
        };
        for (ordinal, task) in state.records.tasks.iter().filter(|(_, task)| task.run.is_none()) {
            flow.numbers.resize(ordinal as usize + 1, NONE);
            flow.numbers[ordinal as usize] = flow.tasks.len() as u32;
            flow.tasks.push(task);
            flow.replaced.extend(task.after());
        }
        let count = flow.tasks.len() as u32;
        for (number, task) in (0..count).zip(&flow.tasks) {
            if state.has_parts(&task.id) {
                flow.ends.push(count + flow.parents.len() as u32);
                flow.parents.push((number, !task.is_own_work()));
            } else {
                flow.ends.push(number);
            }
        }
        flow.sort();
        flow
    }

    fn nodes(&self) -> usize {
        self.tasks.len() + self.parents.len()
    }

    fn number(&self, ordinal: Ordinal) -> Option<u32> {
        self.numbers.get(ordinal as usize).copied().filter(|number| *number != NONE)
    }

    /// Calls `visit` with each node that waits for this one.
    fn each_after(&self, node: u32, mut visit: impl FnMut(u32)) {
        let number = match (node as usize).checked_sub(self.tasks.len()) {
            Some(parent) => self.parents[parent].0,
            None => node,
        };
        let task = self.tasks[number as usize];
        if node != self.ends[number as usize] {
            let parts = self.state.index.parts(&task.id).filter_map(|one| self.number(one));
            // What work of its own depends on keeps itself waiting, too.
            let itself = Some(self.ends[number as usize]).filter(|_| task.is_own_work());
            return parts.chain(itself).for_each(visit);
        }
        if task.status == TaskStatus::Done {
            return;
        }
        let parent = task.parent.as_ref().and_then(|parent| self.state.ordinal_of(parent));
        let is_kept_open =
            |parent: &u32| !self.tasks[*parent as usize].is_own_work() || keeps_open(task);
        if let Some(parent) = parent.and_then(|ordinal| self.number(ordinal)).filter(is_kept_open) {
            visit(self.ends[parent as usize]);
        }
        self.each_dependent(&task.id, visit);
    }

    /// The task that is done at this node; none at the start of one with parts, and at the end of a
    /// group.
    fn work_at(&self, node: u32) -> Option<u32> {
        match (node as usize).checked_sub(self.tasks.len()) {
            Some(parent) => Some(self.parents[parent]).filter(|(_, is_group)| !is_group),
            None => Some((node, false)).filter(|_| self.ends[node as usize] == node),
        }
        .map(|(number, _)| number)
    }

    fn each_dependent(&self, id: &TaskId, visit: impl FnMut(u32)) {
        let is_replaced = self.replaced.contains(id);
        let numbers = self.state.index.dependents(id).filter_map(|one| self.number(one));
        numbers
            .filter(|number| !is_replaced || self.tasks[*number as usize].depends_on(id))
            .for_each(visit);
    }

    /// Fills `order`.
    fn sort(&mut self) {
        let mut waits = vec![0_u32; self.nodes()];
        let all = 0..self.nodes() as u32;
        for node in all.clone() {
            self.each_after(node, |after| waits[after as usize] += 1);
        }
        self.edges = waits.iter().map(|count| *count as usize).sum();
        let mut order: Vec<u32> = all.filter(|node| waits[*node as usize] == 0).collect();
        let mut at = 0;
        while let Some(node) = order.get(at).copied() {
            at += 1;
            self.each_after(node, |after| {
                waits[after as usize] -= 1;
                if waits[after as usize] == 0 {
                    order.push(after);
                }
            });
        }
        self.order = order;
    }

    /// Tasks that are in a cycle or wait for one.
    pub(super) fn entangled(&self) -> HashSet<&'s TaskId> {
        if self.order.len() == self.nodes() {
            return HashSet::new();
        }
        let mut is_free = vec![false; self.nodes()];
        self.order.iter().for_each(|node| is_free[*node as usize] = true);
        let tied = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(number, _)| !is_free[*number] || !is_free[self.ends[*number] as usize]);
        tied.map(|(_, task)| &task.id).collect()
    }

    /// Failed, cancelled, obsolete, retired and missing tasks, each with the number of tasks that
    /// wait for it, directly or through others.
    pub(super) fn blocks(&self) -> Vec<(TaskId, usize)> {
        let mut roots = self.roots();
        roots.sort_by_key(|root| std::cmp::Reverse(root.direct));
        let walk = self.nodes() + self.edges;
        let walks = (STEPS / walk.max(1)).max(1);
        roots.truncate(walks.saturating_mul(ROOTS));
        let counted = roots.chunks(ROOTS).flat_map(|roots| {
            roots.iter().map(|root| root.id.clone()).zip(self.counts(roots)).collect::<Vec<_>>()
        });
        counted.filter(|(_, count)| *count > 0).collect()
    }

    fn roots(&self) -> Vec<Root<'s>> {
        let live = self.ends.iter().copied().filter(|end| self.ended_badly_at(*end));
        let live = live.filter_map(|end| {
            let number = self.work_at(end)?;
            Some((&self.tasks[number as usize].id, Some(end)))
        });
        let state = self.state;
        let is_gone = |id: &&TaskId| state.task(id).is_none() && !state.is_done(id);
        let gone = state.index.awaited().filter(is_gone).map(|id| (id, None));
        let root = |(id, node)| Root { id, node, direct: state.index.dependents(id).count() };
        live.chain(gone).map(root).collect()
    }

    fn ended_badly_at(&self, node: u32) -> bool {
        self.work_at(node).is_some_and(|number| self.tasks[number as usize].status.ended_badly())
    }

    /// How many tasks wait for each of at most `ROOTS` roots.
    fn counts(&self, roots: &[Root<'_>]) -> Vec<usize> {
        let mut waits_for = vec![0_u128; self.nodes()];
        // A task that ended passes on itself alone, and not what it waited for.
        let is_over = |node: u32| self.ended_badly_at(node);
        for (bit, root) in roots.iter().enumerate() {
            match root.node {
                Some(node) => waits_for[node as usize] |= 1 << bit,
                None => self.each_dependent(root.id, |node| {
                    if !is_over(node) {
                        waits_for[node as usize] |= 1 << bit;
                    }
                }),
            }
        }
        for node in &self.order {
            let bits = waits_for[*node as usize];
            if bits != 0 {
                self.each_after(*node, |after| {
                    if !is_over(after) {
                        waits_for[after as usize] |= bits;
                    }
                });
            }
        }
        let mut tally = Tally::default();
        for (task, end) in self.tasks.iter().zip(&self.ends) {
            if self.work_at(*end).is_some() && self.state.is_blocked(task) {
                tally.add(waits_for[*end as usize]);
            }
        }
        (0..roots.len()).map(|bit| tally.count(bit)).collect()
    }
}

/// What others wait for and nothing brings about.
struct Root<'s> {
    id: &'s TaskId,
    /// None if the task is not there any more.
    node: Option<u32>,
    direct: usize,
}

/// Counts bits by place: plane `n` holds digit `n` of every count.
#[derive(Default)]
struct Tally {
    planes: Vec<u128>,
}

impl Tally {
    fn add(&mut self, mut bits: u128) {
        for plane in &mut self.planes {
            (*plane, bits) = (*plane ^ bits, *plane & bits);
            if bits == 0 {
                return;
            }
        }
        if bits != 0 {
            self.planes.push(bits);
        }
    }

    fn count(&self, bit: usize) -> usize {
        let digit = |(place, plane): (usize, &u128)| ((plane >> bit & 1) as usize) << place;
        self.planes.iter().enumerate().map(digit).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::state::hierarchy::weightier;

    const TASKS: usize = 9;

    /// A task: its parent and dependencies among those before it, or one behind it, how it ended,
    /// and whether it is work of its own.
    type Drawn = (Option<usize>, Vec<usize>, usize, Option<usize>, bool);

    fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
        let parent = prop::option::weighted(0.4, 0..TASKS);
        let before = prop::collection::vec(0..TASKS, 0..3);
        let behind = prop::option::weighted(0.05, 0..TASKS);
        prop::collection::vec((parent, before, 0..10_usize, behind, any::<bool>()), 1..TASKS)
    }

    fn state(drawn: &[Drawn]) -> State {
        let id = |number: usize| format!("t{number}");
        let is_parent = |number| drawn.iter().skip(number + 1).any(|one| parent(one, number));
        fn parent(one: &Drawn, number: usize) -> bool {
            one.0 == Some(number)
        }
        let tasks = drawn.iter().enumerate().map(|(number, (parent, before, status, behind, own))| {
            let status = ["available", "available", "available", "available", "available", "done", "done", "failed", "cancelled", "obsolete"][*status];
            let before = before.iter().filter(|one| **one < number).chain(behind);
            let on: BTreeSet<_> = before.filter(|one| **one != number).map(|one| id(*one)).collect();
            json!({"id": id(number), "description": "d", "priority": 5, "created_at": "2026-03-01T10:00:00.000Z",
                "parent": parent.filter(|one| *one < number).map(id), "dependencies": on,
                "status": if is_parent(number) && !own { "available" } else { status },
                "planned": {"title": "", "content": "", "settings": "", "own": own}})
        });
        let tasks = tasks.map(|task| Arc::new(serde_json::from_value(task).expect("a task")));
        let mut document = State::new().to_document();
        document.tasks = tasks.collect();
        // Parts come behind their parents.
        let mut rolled_up: BTreeMap<TaskId, TaskStatus> = BTreeMap::new();
        for task in document.tasks.iter_mut().rev() {
            let task = Arc::make_mut(task);
            let of_parts = rolled_up.get(&task.id).copied().filter(|_| !task.is_own_work());
            task.status = of_parts.unwrap_or(task.status);
            if let Some(parent) = task.parent.clone() {
                let above = rolled_up.entry(parent).or_insert(task.status);
                *above = weightier(*above, task.status);
            }
        }
        State::from_document(document)
    }

    /// Ends of the chains of what `task` waits for.
    fn roots(state: &State, task: &Task) -> BTreeSet<TaskId> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<_> = state.waits_for(task).cloned().collect();
        let mut roots = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            match state.task(&id) {
                Some(one) if state.is_parent(&id) => {
                    let parts = state.parts(&one.id).filter(|part| part.status != TaskStatus::Done);
                    open.extend(parts.map(|part| part.id.clone()));
                }
                Some(one) if one.status == TaskStatus::Available => {
                    open.extend(state.waits_for(one).cloned());
                }
                _ => drop(roots.insert(id)),
            }
        }
        roots
    }

    #[test]
    fn failed_task_passes_on_itself_and_not_what_it_waited_for() {
        // The first failed although it depends on a task that is not there.
        let state = state(&[(None, vec![], 7, Some(5), false), (None, vec![0], 0, None, false)]);
        assert_eq!(Flow::new(&state).blocks(), [(TaskId::trusted("t0"), 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn one_walk_finds_what_a_walk_from_each_task_finds(drawn in drawn()) {
            let state = state(&drawn);
            let flow = Flow::new(&state);
            let mut expected: BTreeMap<TaskId, usize> = BTreeMap::new();
            for task in state.tasks().filter(|task| state.is_blocked(task)) {
                for root in roots(&state, task) {
                    *expected.entry(root).or_default() += 1;
                }
            }
            if flow.entangled().is_empty() {
                prop_assert_eq!(flow.blocks().into_iter().collect::<BTreeMap<_, _>>(), expected);
            }
            // What is over keeps nothing waiting, and is in a cycle all the same.
            let is_passed = |task: &Arc<Task>| {
                let parent = task.parent.as_ref().and_then(|parent| state.task(parent));
                let of_own = parent.is_some_and(|parent| parent.is_own_work());
                task.status == TaskStatus::Done || of_own && !keeps_open(task)
            };
            if !state.tasks().any(is_passed) {
                prop_assert_eq!(flow.entangled().is_empty(), state.check_acyclic().is_ok());
            }
            let is_bad = |id: &TaskId| state.status_of(id).is_some_and(TaskStatus::ended_badly);
            let blocked = state.tasks().filter(|task| {
                state.is_blocked(task) && state.waits_for(task).any(is_bad)
            });
            let blocked: Vec<_> = blocked.map(|task| &task.id).collect();
            let found: Vec<_> = state.blocked_by_failure().map(|task| &task.id).collect();
            prop_assert_eq!(found, blocked);
        }
    }

    #[test]
    fn more_roots_than_fit_one_walk_are_counted_each() {
        let task = |id: String, on: Vec<String>, status: &str| {
            let task = json!({"id": id, "description": "d", "priority": 5, "dependencies": on, "status": status,
                "created_at": "2026-03-01T10:00:00.000Z"});
            Arc::new(serde_json::from_value(task).expect("a task"))
        };
        let mut document = State::new().to_document();
        for number in 0..300 {
            document.tasks.push(task(format!("r{number}"), Vec::new(), "failed"));
            document.tasks.push(task(
                format!("a{number}"),
                vec![format!("r{number}")],
                "available",
            ));
            document.tasks.push(task(
                format!("b{number}"),
                vec![format!("a{number}")],
                "available",
            ));
        }
        let state = State::from_document(document);
        let blocks = Flow::new(&state).blocks();
        assert_eq!(blocks.len(), 300);
        assert!(blocks.iter().all(|(_, count)| *count == 2), "{blocks:?}");
    }
}
