//! Pairs items with the tasks that had the same words, at whatever depth and place.
//!
//! "Done" carries over on these pairs alone. Words that occur twice need equal parents, word for
//! word; what is still ambiguous is paired only with what is not done.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::delta::{Delta, origin};
use super::hashes::hash;
use super::words::words;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

/// A task by the words that the plan gave it.
#[derive(Clone)]
struct Known<'a> {
    task: &'a Arc<Task>,
    key: String,
    /// Words of the parents; unknown for a task that has left the plan.
    chain: Option<String>,
}

/// Items and tasks with the same words.
#[derive(Default)]
struct Group<'a> {
    items: Vec<usize>,
    current: Vec<Known<'a>>,
    gone: Vec<Known<'a>>,
}

impl<'a> Delta<'a> {
    pub(super) fn pair_same_words(&mut self) {
        let chains = self.chains();
        let mut groups: HashMap<String, Group<'a>> = HashMap::new();
        for (number, (key, _)) in self.hashes.iter().enumerate() {
            groups.entry(key.clone()).or_default().items.push(number);
        }
        for known in self.known() {
            let Some(group) = groups.get_mut(&known.key) else { continue };
            if known.task.planned.is_some() {
                group.current.push(known)
            } else {
                group.gone.push(known)
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| group.items[0]);
        groups.into_iter().for_each(|group| self.pair_group(group, &chains));
        self.pair_own_words();
    }

    /// Words of each item's parents.
    fn chains(&self) -> Vec<String> {
        let mut chains: Vec<String> = Vec::with_capacity(self.hashes.len());
        for item in &self.plan.items {
            let chain =
                item.parent.map(|parent| format!("{}/{}", chains[parent], self.hashes[parent].0));
            chains.push(chain.unwrap_or_default());
        }
        chains
    }

    fn known(&self) -> Vec<Known<'a>> {
        // Older boards have hashes of whole titles.
        let whole: HashMap<String, &String> = self
            .plan
            .items
            .iter()
            .zip(&self.hashes)
            .map(|(item, (key, _))| (hash(&item.title), key))
            .collect();
        let key_of = |task: &Task| {
            let stored = origin(task)?.title.clone();
            let title = task.title.as_deref().unwrap_or_default();
            if hash(&title) == stored {
                return Some(hash(&words(title)));
            }
            Some(whole.get(&stored).map_or(stored, |key| (*key).clone()))
        };
        let keys: HashMap<&TaskId, String> =
            self.own_tasks().filter_map(|task| Some((&task.id, key_of(task)?))).collect();
        let chain_of = |task: &Task| {
            let above: Vec<_> =
                self.state.ancestors(task).map(|above| keys.get(&above.id)).collect();
            above
                .iter()
                .rev()
                .map(|key| format!("/{}", key.map_or("", String::as_str)))
                .collect::<String>()
        };
        let known = self.own_tasks().filter_map(|task| {
            let chain = task.planned.is_some().then(|| chain_of(task));
            Some(Known { task, key: keys.get(&task.id)?.clone(), chain })
        });
        known.collect()
    }

    fn pair_group(&mut self, group: Group<'a>, chains: &[String]) {
        let Group { items, current, gone } = group;
        let is_single = items.len() == 1 && current.len() == 1;
        let left = self.pair_under_equal_parents(&items, current, chains);
        let single = left.first().filter(|_| is_single).map(|known| known.task);
        if let Some(task) = single.filter(|task| task.status.is_unfinished()) {
            self.join(items[0], task);
        }
        self.pair_gone(&items, &gone, is_single || !left.is_empty());
        if let Some(task) = single.filter(|_| self.before[items[0]].is_none()) {
            self.join(items[0], task);
        }
        self.pair_unfinished(&items, &left);
        self.name_done(&items, left.iter().chain(&gone));
    }

    /// Returns the tasks that are left.
    fn pair_under_equal_parents(
        &mut self,
        items: &[usize],
        tasks: Vec<Known<'a>>,
        chains: &[String],
    ) -> Vec<Known<'a>> {
        let mut beside: BTreeMap<&str, (Vec<usize>, Vec<Known<'a>>)> = BTreeMap::new();
        for item in items {
            beside.entry(&chains[*item]).or_default().0.push(*item);
        }
        let mut left = Vec::new();
        for known in tasks {
            match known.chain.as_deref().and_then(|chain| beside.get_mut(chain)) {
                Some((_, tasks)) => tasks.push(known),
                None => left.push(known),
            }
        }
        for (items, tasks) in beside.into_values() {
            left.extend(self.pair_beside(items, tasks));
        }
        left
    }

    /// Pairs items that come back. What was done comes back only if its words are the only ones.
    fn pair_gone(&mut self, items: &[usize], gone: &[Known<'a>], has_others: bool) {
        let is_only = items.len() == 1 && gone.len() == 1 && !has_others;
        if items.len().saturating_mul(gone.len()) > super::recognise::COMPARED {
            return;
        }
        for known in gone {
            let fits = |item: &usize| {
                let is_same = is_only
                    || known.task.status != TaskStatus::Done && self.is_beside(*item, known.task);
                self.before[*item].is_none() && is_same
            };
            if let Some(item) = items.iter().copied().find(fits) {
                self.join(item, known.task);
            }
        }
    }

    /// Pairs twins under the same parent: by path, by content, and in their order. Returns the
    /// tasks that are left.
    fn pair_beside(&mut self, items: Vec<usize>, mut tasks: Vec<Known<'a>>) -> Vec<Known<'a>> {
        tasks.sort_by_cached_key(|known| self.state.turn_of(known.task));
        let fits: [fn(&Self, usize, &Task) -> bool; 2] = [Self::has_same_path, Self::had_content];
        if items.len().max(tasks.len()) > 1 {
            for fits in fits {
                self.pair_twins(&items, &tasks, fits);
            }
        }
        let is_free = |delta: &Self, known: &Known<'_>| !delta.taken.contains(&known.task.id);
        let open: Vec<usize> =
            items.into_iter().filter(|item| self.before[*item].is_none()).collect();
        let left: Vec<Known<'a>> = tasks.into_iter().filter(|known| is_free(self, known)).collect();
        if open.len() == left.len() {
            open.iter().zip(&left).for_each(|(item, known)| self.join(*item, known.task));
        } else {
            let unfinished = |held: bool| {
                let wanted = move |known: &&Known<'a>| {
                    known.task.status.is_unfinished() && known.task.status.is_in_work() == held
                };
                left.iter().filter(wanted)
            };
            let found = unfinished(true).chain(unfinished(false)).map(|known| known.task);
            let mut first: Vec<_> = found.take(open.len()).collect();
            // As the next import, which has as many of both, will pair them.
            first.sort_by_cached_key(|task| self.state.turn_of(task));
            open.iter().zip(first).for_each(|(item, task)| self.join(*item, task));
        }
        left.into_iter().filter(|known| is_free(self, known)).collect()
    }

    /// Pairs those that fit exactly one partner.
    fn pair_twins(
        &mut self,
        items: &[usize],
        tasks: &[Known<'a>],
        fits: fn(&Self, usize, &Task) -> bool,
    ) {
        let open: Vec<usize> =
            items.iter().copied().filter(|item| self.before[*item].is_none()).collect();
        let free: Vec<&'a Arc<Task>> = tasks
            .iter()
            .map(|known| known.task)
            .filter(|task| !self.taken.contains(&task.id))
            .collect();
        if open.len().saturating_mul(free.len()) > super::recognise::COMPARED {
            return;
        }
        let delta = &*self;
        let fitting =
            |item: usize| free.iter().copied().filter(move |task| fits(delta, item, task));
        let mut pairs: Vec<(usize, &'a Arc<Task>)> = Vec::new();
        let mut wanted: BTreeMap<&TaskId, usize> = BTreeMap::new();
        for item in open {
            fitting(item).for_each(|task| *wanted.entry(&task.id).or_default() += 1);
            let mut found = fitting(item);
            if let (Some(task), None) = (found.next(), found.next()) {
                pairs.push((item, task));
            }
        }
        pairs.retain(|(_, task)| wanted.get(&task.id) == Some(&1));
        pairs.into_iter().for_each(|(item, task)| self.join(item, task));
    }

    /// Pairs the only item that is left with the only unfinished task that is: nothing done is in
    /// question.
    fn pair_unfinished(&mut self, items: &[usize], left: &[Known<'a>]) {
        let mut open = items.iter().copied().filter(|item| self.before[*item].is_none());
        let mut tasks =
            left.iter().map(|known| known.task).filter(|task| task.status.is_unfinished());
        if let (Some(item), None, Some(task), None) =
            (open.next(), open.next(), tasks.next(), tasks.next())
            && !self.taken.contains(&task.id)
        {
            self.join(item, task);
        }
    }

    /// Notes the done tasks that items may be which stay open.
    fn name_done<'k>(&mut self, items: &[usize], left: impl Iterator<Item = &'k Known<'a>>)
    where
        'a: 'k,
    {
        let mut done = left.map(|known| known.task).filter(|task| task.status == TaskStatus::Done);
        for item in items {
            if self.before[*item].is_none()
                && let Some(task) = done.find(|task| !self.taken.contains(&task.id))
            {
                self.reworded.insert(*item, task);
            }
        }
    }

    /// Pairs items with tasks that got the same words on the board, where titles can be changed.
    fn pair_own_words(&mut self) {
        let mut own: HashMap<String, Vec<&'a Arc<Task>>> = HashMap::new();
        let left = self
            .own_tasks()
            .filter(|task| task.planned.is_some() && !self.taken.contains(&task.id));
        for task in left {
            own.entry(hash(&words(task.headline()))).or_default().push(task);
        }
        let mut wanted: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, (key, _)) in
            self.hashes.iter().enumerate().filter(|(number, _)| self.before[*number].is_none())
        {
            wanted.entry(key).or_default().push(number);
        }
        let mut pairs: Vec<(usize, &'a Arc<Task>)> = Vec::new();
        for (key, items) in wanted {
            if let ([item], Some([task])) = (items.as_slice(), own.get(key).map(Vec::as_slice)) {
                pairs.push((*item, task));
            }
        }
        pairs.into_iter().for_each(|(item, task)| self.join(item, task));
    }

    fn join(&mut self, item: usize, task: &'a Arc<Task>) {
        if self.taken.insert(&task.id) {
            self.before[item] = Some(task);
        }
    }
}
