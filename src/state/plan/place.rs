//! Ids and paths of the items.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::delta::Delta;
use super::hashes::hash;
use crate::state::hierarchy;
use crate::state::id::{Chance, TaskId};

impl Delta<'_> {
    /// Sets every item's id. Those of new tasks follow from the board and the text, so that a dry
    /// run shows them.
    pub(super) fn name(&mut self) {
        let seed = hash(&(&self.state.board().board_id, &self.plan.sha256, &self.import.name));
        let mut chance = Chance::new(u64::from_str_radix(&seed, 16).unwrap_or_default());
        let mut taken = HashSet::new();
        for (number, before) in self.before.iter().enumerate() {
            let wanted = self.wanted_id(number).filter(|id| !taken.contains(*id)).cloned();
            taken.extend(wanted.clone());
            let id = match (before, wanted) {
                (Some(task), _) => task.id.clone(),
                (None, Some(wanted)) => wanted,
                (None, None) => loop {
                    let id = TaskId::trusted(format!("task-{}", chance.base32(6)));
                    if self.state.status_of(&id).is_none() && taken.insert(id.clone()) {
                        break id;
                    }
                },
            };
            self.ids.push(id);
        }
    }

    /// True if a task of the plan, or of no plan, has or had the path.
    fn is_taken(&self, path: &str) -> bool {
        let there = self
            .state
            .index
            .at_path(path)
            .filter_map(|ordinal| self.state.records.tasks.get(ordinal));
        let mut plans = there.map(|task| task.plan_name());
        plans.any(|plan| plan.is_none() || plan == Some(self.import.own_name()))
    }

    /// Sets every item's path. Items without one of their own keep the number they had, or get one
    /// that no item had.
    pub(super) fn place(&mut self) {
        let plan = self.plan;
        let mut next: HashMap<Option<usize>, BTreeSet<u32>> = HashMap::new();
        let mut stated: HashSet<(Option<usize>, u32)> = HashSet::new();
        let last =
            |path: &str| hierarchy::numbers(path).and_then(|numbers| numbers.last().copied());
        for (number, item) in plan.items.iter().enumerate() {
            let own = match (&item.path, self.before[number]) {
                (Some(path), _) => last(path),
                (None, Some(task)) if self.is_beside(number, task) => {
                    task.path.as_deref().and_then(last)
                }
                _ => None,
            };
            next.entry(item.parent).or_default().extend(own);
            stated.extend(item.path.as_deref().and_then(last).map(|number| (item.parent, number)));
        }
        let mut first_free: HashMap<Option<usize>, u32> = HashMap::new();
        for (number, item) in plan.items.iter().enumerate() {
            let above = item.parent.map(|parent| self.paths[parent].clone());
            let path_of =
                |number| hierarchy::part_path(above.as_deref(), number).unwrap_or_default();
            let kept = self.before[number].filter(|task| self.is_beside(number, task));
            let kept = kept.and_then(|task| last(task.path.as_deref()?));
            let kept = kept.filter(|number| !stated.contains(&(item.parent, *number)));
            self.paths[number] = match (&item.path, kept) {
                (Some(path), _) => path.clone(),
                (None, Some(kept)) => path_of(kept),
                (None, None) => {
                    let taken = next.entry(item.parent).or_default();
                    let free = first_free.entry(item.parent).or_insert(1);
                    while taken.contains(free) || self.is_taken(&path_of(*free)) {
                        *free += 1;
                    }
                    *free += 1;
                    path_of(*free - 1)
                }
            };
        }
    }
}
