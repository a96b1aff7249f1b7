//! Which task of the board each item of the plan was before.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::delta::{Delta, origin};
use super::hashes::{hash, older_content_hash};
use super::item::Item;
use super::text::{folded, one_line};
use super::words::words;
use crate::state::hierarchy;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::task::{Context, Source, Task, TaskStatus};

impl<'a> Delta<'a> {
    /// Finds the task that each item was before: by its words, and then, level by level, by path,
    /// by content and by similar title. A task found by less than its words is the same item
    /// only while it is neither held nor done.
    pub(super) fn recognise(&mut self) {
        self.pair_same_words();
        self.pair_sources();
        let mut old: BTreeMap<usize, Vec<&'a Arc<Task>>> = BTreeMap::new();
        let named: HashSet<&TaskId> =
            self.reworded.values().chain(self.waits_for.values()).map(|task| &task.id).collect();
        let is_left =
            |task: &&Arc<Task>| !self.taken.contains(&task.id) && !named.contains(&task.id);
        for task in self.own_tasks().filter(|task| task.planned.is_some()).filter(is_left) {
            old.entry(hierarchy::level(task.path.as_deref().unwrap_or_default()))
                .or_default()
                .push(task);
        }
        let levels: Vec<usize> = (0..self.plan.items.len()).map(|item| self.level(item)).collect();
        for level in 1..=limit::PLAN_DEPTH.max {
            let new: Vec<usize> = (0..levels.len()).filter(|item| levels[*item] == level).collect();
            let mut left = old.remove(&level).unwrap_or_default();
            self.pair(&new, &mut left, Self::has_same_path);
            self.pair(&new, &mut left, Self::has_same_content);
            self.pair_alike(&new, &mut left);
        }
    }

    /// Takes the only task with the only item's id in another tool for what the item was.
    fn pair_sources(&mut self) {
        let key = |source: &Source| (source.format.clone(), source.id.clone(), source.path.clone());
        let mut items: HashMap<_, Vec<usize>> = HashMap::new();
        for (number, item) in self.plan.items.iter().enumerate() {
            items.entry(item.source.as_ref().map(key)).or_default().push(number);
        }
        let mut tasks: HashMap<_, Vec<&'a Arc<Task>>> = HashMap::new();
        for task in self.own_tasks().filter(|task| task.planned.is_some()) {
            tasks
                .entry(origin(task).and_then(|planned| planned.source.as_ref()).map(key))
                .or_default()
                .push(task);
        }
        for (source, items) in items.into_iter().filter(|(source, _)| source.is_some()) {
            if let ([item], Some([task])) =
                (items.as_slice(), tasks.get(&source).map(Vec::as_slice))
                && self.is_open(*item)
                && !self.taken.contains(&task.id)
            {
                self.reword(*item, task);
            }
        }
    }

    /// Tasks that the plan has or had.
    pub(super) fn own_tasks(&self) -> impl Iterator<Item = &'a Arc<Task>> + use<'a> {
        let own = self.import.own_name();
        self.state.tasks().filter(move |task| task.plan_name() == Some(own))
    }

    /// Takes the task for what the item was under other words. A held one keeps its words until its
    /// attempt ends, a done one keeps them for ever.
    fn reword(&mut self, item: usize, task: &'a Arc<Task>) {
        let is_group = self.is_group(item) && self.state.is_parent(&task.id);
        match task.status {
            status if status.is_in_work() => drop(self.waits_for.insert(item, task)),
            TaskStatus::Done if !is_group => drop(self.reworded.insert(item, task)),
            _ => {
                self.taken.insert(&task.id);
                self.before[item] = Some(task);
            }
        }
    }

    fn is_open(&self, item: usize) -> bool {
        self.before[item].is_none()
            && !self.waits_for.contains_key(&item)
            && !self.reworded.contains_key(&item)
    }

    /// Pairs the items and tasks that fit exactly one partner.
    fn pair(
        &mut self,
        new: &[usize],
        left: &mut Vec<&'a Arc<Task>>,
        fits: fn(&Self, usize, &Task) -> bool,
    ) {
        // Tasks by each key that a step decides on, so that not every item is compared with every
        // task.
        let mut near: HashMap<&str, Vec<&'a Arc<Task>>> = HashMap::new();
        for task in left.iter() {
            let planned = origin(task);
            let keys = [
                task.path.as_deref(),
                planned.map(|one| one.title.as_str()),
                planned.map(|one| one.content.as_str()),
            ];
            keys.into_iter().flatten().for_each(|key| near.entry(key).or_default().push(task));
        }
        let mut wanted: HashMap<&TaskId, Vec<usize>> = HashMap::new();
        let mut single: Vec<(usize, &'a Arc<Task>)> = Vec::new();
        for item in new.iter().copied().filter(|item| self.is_open(*item)) {
            let one = &self.plan.items[item];
            let (title, content) = &self.hashes[item];
            let content = Some(content.as_str()).filter(|_| one.description.is_some());
            let keys = [one.path.as_deref(), Some(title.as_str()), content];
            let mut found: BTreeMap<&TaskId, &'a Arc<Task>> = BTreeMap::new();
            for task in keys.into_iter().flatten().filter_map(|key| near.get(key)).flatten() {
                if fits(self, item, task) {
                    found.insert(&task.id, task);
                }
            }
            for id in found.keys() {
                wanted.entry(id).or_default().push(item);
            }
            if let (1, Some((_, task))) = (found.len(), found.pop_first()) {
                single.push((item, task));
            }
        }
        let mut taken: HashSet<&TaskId> = HashSet::new();
        for (item, task) in single {
            if wanted.get(&task.id).is_some_and(|items| items.len() == 1) {
                self.reword(item, task);
                taken.insert(&task.id);
            }
        }
        left.retain(|task| !taken.contains(&task.id));
    }

    /// Pairs what is left under the same parent, if the titles share most of their words.
    fn pair_alike(&mut self, new: &[usize], left: &mut Vec<&'a Arc<Task>>) {
        let mut alike: Vec<(u32, usize, usize)> = Vec::new();
        let open: Vec<usize> = new.iter().copied().filter(|item| self.is_open(*item)).collect();
        if open.len().saturating_mul(left.len()) > COMPARED {
            return;
        }
        for item in open {
            let one = &self.plan.items[item];
            if one.path.is_some() {
                continue;
            }
            for (number, task) in
                left.iter().enumerate().filter(|(_, task)| self.is_beside(item, task))
            {
                let likeness = likeness(&one.title, task.title.as_deref().unwrap_or_default());
                if likeness >= ALIKE && self.same_content(item, task) {
                    alike.push((100 - likeness, item, number));
                }
            }
        }
        alike.sort_unstable();
        let mut taken: HashSet<usize> = HashSet::new();
        for (_, item, number) in alike {
            if self.is_open(item) && taken.insert(number) {
                self.reword(item, left[number]);
            }
        }
        let mut number = 0;
        left.retain(|_| {
            number += 1;
            !taken.contains(&(number - 1))
        });
    }

    /// True if the task has the item's parent, or had it when it left the plan.
    pub(super) fn is_beside(&self, item: usize, task: &Task) -> bool {
        let parent = self.plan.items[item].parent.map(|parent| self.before[parent]);
        let above = task.path.as_deref().and_then(hierarchy::parent_path);
        match parent {
            None if task.planned.is_none() => above.is_none(),
            None => task.parent.is_none(),
            Some(None) => false,
            Some(Some(parent)) if task.planned.is_none() => parent.path.as_deref() == above,
            Some(Some(parent)) => task.parent.as_ref() == Some(&parent.id),
        }
    }

    pub(super) fn has_same_path(&self, item: usize, task: &Task) -> bool {
        let path = &self.plan.items[item].path;
        path.is_some() && *path == task.path
    }

    fn has_same_content(&self, item: usize, task: &Task) -> bool {
        let one = &self.plan.items[item];
        one.description.is_some() && self.same_content(item, task) && self.is_beside(item, task)
    }

    /// True if the plan last gave the task these words, whatever it is called on the board.
    pub(super) fn had_title(&self, item: usize, task: &Task) -> bool {
        let is_it = |stored: &str| {
            stored == self.hashes[item].0 || stored == hash(&self.plan.items[item].title)
        };
        origin(task).is_some_and(|planned| is_it(&planned.title))
    }

    /// True if the item has the words that the plan gave before, or those given on the board since:
    /// neither is news.
    pub(super) fn same_title(&self, item: usize, task: &Task) -> bool {
        self.had_title(item, task) || words(task.headline()) == words(&self.plan.items[item].title)
    }

    /// True if the item has the content that the plan gave before, or the one given on the board
    /// since.
    pub(super) fn same_content(&self, item: usize, task: &Task) -> bool {
        self.had_content(item, task) || says(task, &self.plan.items[item])
    }

    pub(super) fn had_content(&self, item: usize, task: &Task) -> bool {
        let is_it = |stored: &str| {
            stored == self.hashes[item].1 || stored == older_content_hash(&self.plan.items[item])
        };
        origin(task).is_some_and(|planned| is_it(&planned.content))
    }
}

/// Most pairs of titles whose words are compared.
pub(super) const COMPARED: usize = 50_000;
/// Percent of shared words from which a title counts as a rewording of another.
const ALIKE: u32 = 50;

fn likeness(one: &str, other: &str) -> u32 {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(folded)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    (shared * 100 / one.union(&other).count().max(1)) as u32
}

/// True if the task's content on the board equals the item's.
fn says(task: &Task, item: &Item) -> bool {
    let none = Context::default();
    let Context { files, hints, metadata, .. } = task.context.as_deref().unwrap_or(&none);
    let is_known = item.metadata.iter().all(|(key, value)| metadata.get(key) == Some(value));
    let description = Some(task.description.trim()).filter(|text| *text != task.headline());
    let line = |hints: &Option<String>| one_line(hints.as_deref().unwrap_or_default());
    let is_same = item.description.as_deref() == description && item.files == *files;
    is_same && is_known && line(&item.hints) == line(hints)
}
