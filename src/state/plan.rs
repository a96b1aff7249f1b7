//! What a plan says, and what a new version of it means for the tasks of the one before.

mod names;
mod words;

pub use names::{Named, Names, leading_id};
pub use words::{plain, words};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::State;
use super::agent::Demands;
use super::digest::sha256;
use super::document::PlanVersion;
use super::event::{Event, NewTask, PlanChange, Replanned, TaskChange};
use super::graph::Node;
use super::hierarchy;
use super::id::{Chance, TaskId};
use super::limit;
use super::refusal::Refusal;
use super::task::{Context, DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Planned, Task, TaskStatus};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub sha256: String,
    pub title: Option<String>,
    /// Items, each before its parts.
    pub items: Vec<Item>,
    /// Headings, entries and rows that are text, because others are marked as items and they are not.
    pub skipped: Vec<Skipped>,
    /// What was read in a way that the text does not say in so many words.
    pub remarks: Vec<Remark>,
    /// Items that wait for another because their headings count: the later one, then the one before it.
    pub order: Vec<(usize, usize)>,
}

/// How something was read, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Remark {
    pub line: usize,
    pub remark: String,
}

/// A heading or list entry that is not an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    pub line: usize,
    pub title: String,
    /// Level that a heading would have as an item, counted from 1.
    #[serde(skip)]
    pub level: Option<usize>,
}

/// One item of a plan, checked except for what concerns other items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    pub line: usize,
    /// Index of the parent in `items`.
    pub parent: Option<usize>,
    /// Path as written; if omitted, it follows from the item's place.
    pub path: Option<String>,
    pub title: String,
    /// True for a heading, and for what was made for its parts.
    pub is_group: bool,
    pub description: Option<String>,
    pub status: Stated,
    pub priority: Option<u8>,
    /// Indices of the items that it waits for.
    pub waits: Vec<usize>,
    /// What else it depends on: paths that items get by their place, and ids of tasks.
    pub depends: Vec<String>,
    pub files: Vec<String>,
    pub hints: Option<String>,
    pub tags: Vec<String>,
    /// Fields that callboard does not know.
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stated {
    #[default]
    Open,
    Done,
    Failed,
    Cancelled,
    Obsolete,
}

impl Stated {
    pub fn is_called_off(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Obsolete)
    }
}

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    pub line: usize,
    pub problem: String,
}

impl State {
    /// True if `plan` is the current one and importing it again would change nothing.
    pub fn has_plan(&self, plan: &Plan) -> bool {
        let Some(current) = self.current_plan().filter(|current| current.sha256 == plan.sha256) else { return false };
        let is_due = |task: &Arc<Task>| {
            let ticked = task.planned.as_ref().is_some_and(|planned| planned.ticked);
            // Whoever has reset the task since then knew what the plan says.
            let was_reset = task.reset_at.is_some_and(|at| at >= current.imported_at);
            ticked && !was_reset && task.status != TaskStatus::Done && !task.status.is_held()
        };
        !self.tasks().any(is_due)
    }

    pub fn current_plan(&self) -> Option<&PlanVersion> {
        self.board().plans.last()
    }

    /// Lines of skipped headings that are items of the current plan, imported when nothing was marked, and not called
    /// off since. A title that is also an item of `plan` at that level means that item instead.
    pub fn still_items(&self, plan: &Plan) -> BTreeSet<usize> {
        if plan.skipped.is_empty() {
            return BTreeSet::new();
        }
        let mut known: HashSet<(usize, String)> = self
            .tasks()
            .filter(|task| !matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete))
            .filter_map(|task| Some((hierarchy::level(task.path.as_deref()?), task.planned.as_ref()?.title.clone())))
            .collect();
        let mut levels: Vec<usize> = Vec::with_capacity(plan.items.len());
        for item in &plan.items {
            let level = item.parent.map_or(1, |parent| levels[parent] + 1);
            known.remove(&(level, hash(&item.title)));
            levels.push(level);
        }
        let is_known = |one: &&Skipped| one.level.is_some_and(|level| known.contains(&(level, hash(&one.title))));
        plan.skipped.iter().filter(is_known).map(|one| one.line).collect()
    }

    /// What items depend on that is neither an item of the plan nor a task. `created` are paths of new tasks.
    pub fn unknown_dependencies(&self, plan: &Plan, created: &HashSet<&str>) -> Vec<Remark> {
        let is_known = |given: &str| {
            let is_task = || TaskId::checked(given).is_ok_and(|id| self.status_of(&id).is_some());
            created.contains(given) || self.at_path(given).next().is_some() || is_task()
        };
        let unknown = plan.items.iter().flat_map(|item| item.depends.iter().map(move |given| (item, given)));
        let told = unknown.filter(|(_, given)| !is_known(given)).map(|(item, given)| Remark {
            line: item.line,
            remark: format!("\"{}\" fits no item and no task: it makes none wait", shown(given)),
        });
        told.collect()
    }

    /// The event that makes `plan` the current one, or the problems with it.
    pub fn replan(&self, plan: &Plan, source: Option<String>, seed: u64) -> Result<Event, Vec<Problem>> {
        Delta::new(self, plan, seed)?.event(source)
    }
}

/// Tasks of the current plan, each before its parts.
pub fn planned<'a>(tasks: impl Iterator<Item = &'a Arc<Task>>) -> Vec<&'a Task> {
    let mut found: Vec<_> = tasks.map(AsRef::as_ref).filter(|task: &&Task| task.planned.is_some()).collect();
    found.sort_by_cached_key(|task| hierarchy::numbers(task.path.as_deref().unwrap_or_default()));
    found
}

struct Delta<'a> {
    state: &'a State,
    plan: &'a Plan,
    parts: Vec<Vec<usize>>,
    /// Hashes of each item's title and content.
    hashes: Vec<(String, String)>,
    /// The task that each item was before.
    before: Vec<Option<&'a Arc<Task>>>,
    ids: Vec<TaskId>,
    paths: Vec<String>,
    problems: BTreeSet<Problem>,
}

impl<'a> Delta<'a> {
    fn new(state: &'a State, plan: &'a Plan, seed: u64) -> Result<Self, Vec<Problem>> {
        let count = plan.items.len();
        let mut parts = vec![Vec::new(); count];
        for (number, item) in plan.items.iter().enumerate() {
            if let Some(parent) = item.parent {
                parts[parent].push(number);
            }
        }
        let mut delta = Self {
            state,
            plan,
            parts,
            hashes: plan.items.iter().map(|item| (hash(&item.title), content_hash(item))).collect(),
            before: vec![None; count],
            ids: Vec::new(),
            paths: vec![String::new(); count],
            problems: BTreeSet::new(),
        };
        delta.refuse_twins();
        delta.sound()?;
        delta.recognise();
        delta.name(seed);
        delta.place();
        Ok(delta)
    }

    fn sound(&self) -> Result<(), Vec<Problem>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.iter().cloned().collect()) }
    }

    fn wrong(&mut self, item: usize, problem: String) {
        self.problems.insert(Problem { line: self.plan.items[item].line, problem });
    }

    /// Refuses two items that the next version could not tell apart.
    fn refuse_twins(&mut self) {
        let mut paths: HashMap<&str, usize> = HashMap::new();
        let mut titles: HashMap<(Option<usize>, String), usize> = HashMap::new();
        let plan = self.plan;
        for (number, item) in plan.items.iter().enumerate() {
            let twin = match &item.path {
                Some(path) => paths.insert(path, number).map(|other| (other, format!("the path {path}"))),
                None => titles
                    .insert((item.parent, folded(&item.title)), number)
                    .map(|other| (other, format!("the title \"{}\" beside it", shown(&item.title)))),
            };
            if let Some((other, what)) = twin {
                let first = plan.items[other].line;
                self.wrong(number, format!("{what} stands on line {first} already; give each its own"));
            }
        }
    }

    /// Finds the task that each item was before, level by level: by path and title (also among tasks that left the plan
    /// earlier), by title and content, by path, by content, and by similar title.
    fn recognise(&mut self) {
        let mut old: BTreeMap<usize, Vec<&'a Arc<Task>>> = BTreeMap::new();
        let mut gone: BTreeMap<usize, Vec<&'a Arc<Task>>> = BTreeMap::new();
        for task in self.state.tasks().filter(|task| origin(task).is_some()) {
            let tasks = if task.planned.is_some() { &mut old } else { &mut gone };
            tasks.entry(hierarchy::level(task.path.as_deref().unwrap_or_default())).or_default().push(task);
        }
        let levels: Vec<usize> = (0..self.plan.items.len()).map(|item| self.level(item)).collect();
        for level in 1..=limit::PLAN_DEPTH.max {
            let new: Vec<usize> = (0..levels.len()).filter(|item| levels[*item] == level).collect();
            let mut left = old.remove(&level).unwrap_or_default();
            self.pair(&new, &mut left, Self::is_same);
            // An unfinished task that has only moved is preferred to one that left the plan earlier.
            self.pair(&new, &mut left, |delta, item, task| {
                task.status.is_unfinished() && delta.has_same_text(item, task)
            });
            self.pair(&new, &mut gone.remove(&level).unwrap_or_default(), Self::is_same);
            let steps: [fn(&Self, usize, &Task) -> bool; 3] =
                [Self::has_same_text, Self::has_same_path, Self::has_same_content];
            for step in steps {
                self.pair(&new, &mut left, step);
            }
            self.pair_alike(&new, &mut left);
        }
    }

    fn level(&self, item: usize) -> usize {
        let above = |item: &usize| self.plan.items[*item].parent;
        std::iter::successors(Some(item), above).count()
    }

    /// Pairs the items and tasks that fit exactly one partner.
    fn pair(&mut self, new: &[usize], left: &mut Vec<&'a Arc<Task>>, fits: fn(&Self, usize, &Task) -> bool) {
        // Tasks by each key that a step decides on, so that not every item is compared with every task.
        let mut near: HashMap<&str, Vec<&'a Arc<Task>>> = HashMap::new();
        for task in left.iter() {
            let planned = origin(task);
            let keys =
                [task.path.as_deref(), planned.map(|one| one.title.as_str()), planned.map(|one| one.content.as_str())];
            keys.into_iter().flatten().for_each(|key| near.entry(key).or_default().push(task));
        }
        let mut wanted: HashMap<&TaskId, Vec<usize>> = HashMap::new();
        let mut single: Vec<(usize, &'a Arc<Task>)> = Vec::new();
        for item in new.iter().copied().filter(|item| self.before[*item].is_none()) {
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
                self.before[item] = Some(task);
                taken.insert(&task.id);
            }
        }
        left.retain(|task| !taken.contains(&task.id));
    }

    /// Pairs what is left under the same parent, if the titles share most of their words.
    fn pair_alike(&mut self, new: &[usize], left: &mut Vec<&'a Arc<Task>>) {
        let mut alike: Vec<(u32, usize, usize)> = Vec::new();
        let open: Vec<usize> = new.iter().copied().filter(|item| self.before[*item].is_none()).collect();
        if open.len().saturating_mul(left.len()) > COMPARED {
            return;
        }
        for item in open {
            let one = &self.plan.items[item];
            if one.path.is_some() {
                continue;
            }
            for (number, task) in left.iter().enumerate().filter(|(_, task)| self.is_beside(item, task)) {
                let likeness = likeness(&one.title, task.title.as_deref().unwrap_or_default());
                if likeness >= ALIKE && self.same_content(item, task) {
                    alike.push((100 - likeness, item, number));
                }
            }
        }
        alike.sort_unstable();
        let mut taken: HashSet<usize> = HashSet::new();
        for (_, item, number) in alike {
            if self.before[item].is_none() && taken.insert(number) {
                self.before[item] = Some(left[number]);
            }
        }
        let mut number = 0;
        left.retain(|_| {
            number += 1;
            !taken.contains(&(number - 1))
        });
    }

    /// True if the task has the item's parent, or had it when it left the plan.
    fn is_beside(&self, item: usize, task: &Task) -> bool {
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

    fn is_same(&self, item: usize, task: &Task) -> bool {
        match &self.plan.items[item].path {
            Some(path) => task.path.as_ref() == Some(path) && self.same_title(item, task),
            // Only the plan's title counts: a task beside it may have the title that this one was given on the board.
            None => self.is_beside(item, task) && self.had_title(item, task),
        }
    }

    fn has_same_text(&self, item: usize, task: &Task) -> bool {
        self.had_title(item, task) && self.same_content(item, task)
    }

    fn has_same_path(&self, item: usize, task: &Task) -> bool {
        let path = &self.plan.items[item].path;
        path.is_some() && *path == task.path
    }

    fn has_same_content(&self, item: usize, task: &Task) -> bool {
        let one = &self.plan.items[item];
        one.description.is_some() && self.same_content(item, task) && self.is_beside(item, task)
    }

    /// True if the plan last gave the task this title, whatever it is called on the board.
    fn had_title(&self, item: usize, task: &Task) -> bool {
        origin(task).is_some_and(|planned| planned.title == self.hashes[item].0)
    }

    /// True if the item has the title that the plan gave before, or the one given on the board since: neither is news.
    fn same_title(&self, item: usize, task: &Task) -> bool {
        self.had_title(item, task) || one_line(task.headline()) == self.plan.items[item].title
    }

    /// True if the item has the content that the plan gave before, or the one given on the board since.
    fn same_content(&self, item: usize, task: &Task) -> bool {
        self.had_content(item, task) || says(task, &self.plan.items[item])
    }

    fn had_content(&self, item: usize, task: &Task) -> bool {
        let is_it =
            |stored: &str| stored == self.hashes[item].1 || stored == older_content_hash(&self.plan.items[item]);
        origin(task).is_some_and(|planned| is_it(&planned.content))
    }

    fn name(&mut self, seed: u64) {
        let mut chance = Chance::new(seed);
        let mut taken = HashSet::new();
        for before in &self.before {
            let id = match before {
                Some(task) => task.id.clone(),
                None => loop {
                    let id = TaskId::trusted(format!("task-{}", chance.base32(6)));
                    if self.state.status_of(&id).is_none() && taken.insert(id.clone()) {
                        break id;
                    }
                },
            };
            self.ids.push(id);
        }
    }

    /// Sets every item's path. Items without one of their own keep the number they had, or get one that nobody had.
    fn place(&mut self) {
        let plan = self.plan;
        let mut next: HashMap<Option<usize>, BTreeSet<u32>> = HashMap::new();
        let mut stated: HashSet<(Option<usize>, u32)> = HashSet::new();
        let last = |path: &str| hierarchy::numbers(path).and_then(|numbers| numbers.last().copied());
        for (number, item) in plan.items.iter().enumerate() {
            let own = match (&item.path, self.before[number]) {
                (Some(path), _) => last(path),
                (None, Some(task)) if self.is_beside(number, task) => task.path.as_deref().and_then(last),
                _ => None,
            };
            next.entry(item.parent).or_default().extend(own);
            stated.extend(item.path.as_deref().and_then(last).map(|number| (item.parent, number)));
        }
        let mut first_free: HashMap<Option<usize>, u32> = HashMap::new();
        for (number, item) in plan.items.iter().enumerate() {
            let above = item.parent.map(|parent| self.paths[parent].clone());
            let path_of = |number| hierarchy::part_path(above.as_deref(), number).unwrap_or_default();
            let kept = self.before[number].filter(|task| self.is_beside(number, task));
            let kept = kept.and_then(|task| last(task.path.as_deref()?));
            let kept = kept.filter(|number| !stated.contains(&(item.parent, *number)));
            self.paths[number] = match (&item.path, kept) {
                (Some(path), _) => path.clone(),
                (None, Some(kept)) => path_of(kept),
                (None, None) => {
                    let taken = next.entry(item.parent).or_default();
                    let free = first_free.entry(item.parent).or_insert(1);
                    while taken.contains(free) || self.state.index.at_path(&path_of(*free)).next().is_some() {
                        *free += 1;
                    }
                    *free += 1;
                    path_of(*free - 1)
                }
            };
        }
    }

    fn dependencies(&mut self) -> Vec<Vec<TaskId>> {
        let plan = self.plan;
        let by_path: HashMap<&str, usize> = self.paths.iter().map(String::as_str).zip(0..).collect();
        let mut by_title: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, item) in plan.items.iter().enumerate() {
            by_title.entry(folded(&item.title)).or_default().push(number);
        }
        let mut all = Vec::with_capacity(plan.items.len());
        let mut problems = Vec::new();
        for (number, item) in plan.items.iter().enumerate() {
            let ordered = plan.order.iter().filter(|(later, _)| *later == number).map(|(_, before)| before);
            let mut found: Vec<TaskId> = Vec::new();
            for on in ordered.chain(&item.waits).map(|on| self.ids[*on].clone()) {
                if !found.contains(&on) {
                    found.push(on);
                }
            }
            for given in &item.depends {
                let of_plan = by_path.get(given.as_str()).map(|item| vec![*item]);
                // A long text may have become a shorter title.
                let titles = [folded(given), folded(&shortened(&one_line(given), limit::TITLE.max))];
                let titled = || titles.iter().find_map(|title| by_title.get(title)).cloned();
                let of_plan = of_plan.or_else(titled).unwrap_or_default();
                let id = match of_plan.as_slice() {
                    [one] => Some(self.ids[*one].clone()),
                    [] => TaskId::checked(given)
                        .ok()
                        .filter(|id| self.state.status_of(id).is_some() && self.state.run_status(id).is_none()),
                    several => {
                        let lines: Vec<_> = several.iter().map(|one| plan.items[*one].line.to_string()).collect();
                        let given = shown(given);
                        let lines = lines.join(" and ");
                        problems
                            .push((number, format!("\"{given}\" may be that of line {lines}; name it by its path")));
                        continue;
                    }
                };
                match id {
                    Some(id) if !found.contains(&id) => found.push(id),
                    Some(_) => {}
                    // Named in the reply: see `unknown`.
                    None => {}
                }
            }
            all.push(found);
        }
        problems.into_iter().for_each(|(item, problem)| self.wrong(item, problem));
        all
    }

    fn event(mut self, source: Option<String>) -> Result<Event, Vec<Problem>> {
        let dependencies = self.dependencies();
        self.sound()?;
        self.refuse_cycle(&dependencies);
        self.sound()?;
        let plan = self.plan;
        let (mut created, mut changed) = (Vec::new(), Vec::new());
        let mut priorities: Vec<u8> = Vec::with_capacity(plan.items.len());
        for (number, (item, dependencies)) in plan.items.iter().zip(dependencies).enumerate() {
            let inherited = item.parent.map_or(DEFAULT_PRIORITY, |parent| priorities[parent]);
            let priority = item.priority.unwrap_or(inherited);
            priorities.push(priority);
            let settings = settings_hash(priority, &dependencies, &item.tags);
            let (title, content) = self.hashes[number].clone();
            let kept = self.before[number].filter(|task| self.had_content(number, task));
            let content = kept.and_then(|task| origin(task)).map_or(content, |kept| kept.content.clone());
            let done = item.status == Stated::Done && self.parts[number].is_empty();
            let planned = Planned { title, content, settings, ticked: false, done };
            let parent = item.parent.map(|parent| self.ids[parent].clone());
            match self.before[number] {
                Some(task) => changed.extend(self.changed(number, task, parent, planned, priority, dependencies)),
                None => created.push(self.created(number, parent, planned, priority, dependencies)),
            }
        }
        let there: HashSet<&TaskId> = self.before.iter().flatten().map(|task| &task.id).collect();
        let gone = self.state.tasks().filter(|task| task.planned.is_some() && !there.contains(&task.id));
        let removed = gone.map(|task| task.id.clone()).collect();
        let current = self.state.current_plan();
        let prev_sha256 = match current.filter(|current| current.sha256 == plan.sha256) {
            Some(same) => same.prev_sha256.clone(),
            None => current.map(|current| current.sha256.clone()),
        };
        let version = PlanVersion {
            sha256: plan.sha256.clone(),
            prev_sha256,
            source,
            title: plan.title.clone(),
            items: plan.items.len(),
            seq: 0,
            imported_at: Default::default(),
        };
        Ok(Event::PlanImported { plan: version, created, changed, removed, known_again: true })
    }

    fn created(
        &self,
        number: usize,
        parent: Option<TaskId>,
        planned: Planned,
        priority: u8,
        dependencies: Vec<TaskId>,
    ) -> NewTask {
        let item = &self.plan.items[number];
        let status = match item.status {
            Stated::Open => None,
            Stated::Done => Some(TaskStatus::Done),
            Stated::Failed => Some(TaskStatus::Failed),
            Stated::Cancelled => Some(TaskStatus::Cancelled),
            Stated::Obsolete => Some(TaskStatus::Obsolete),
        };
        NewTask {
            id: self.ids[number].clone(),
            title: Some(item.title.clone()),
            description: item.description.clone().unwrap_or_else(|| item.title.clone()),
            priority,
            dependencies,
            context: Some(context(item)).filter(|context| !context.is_empty()),
            path: Some(self.paths[number].clone()),
            parent,
            planned: Some(planned),
            // The status of a parent follows from its parts.
            status: status.filter(|_| self.parts[number].is_empty()),
            demands: Demands::default(),
            tags: item.tags.clone(),
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            not_before: None,
            timeout_seconds: None,
            silent_minutes: None,
            run: None,
        }
    }

    /// The change to a task; `None` if the plan says nothing new about it.
    fn changed(
        &self,
        number: usize,
        task: &Task,
        parent: Option<TaskId>,
        mut planned: Planned,
        priority: u8,
        dependencies: Vec<TaskId>,
    ) -> Option<Replanned> {
        let item = &self.plan.items[number];
        let before = origin(task).cloned().unwrap_or_default();
        let path = self.paths[number].clone();
        let (retitled, rewritten) = (!self.same_title(number, task), !self.same_content(number, task));
        let is_reset = before.settings != planned.settings
            && settings_hash(task.priority, &task.dependencies, &task.tags) != planned.settings;
        let mut change = TaskChange::default();
        if retitled {
            change.title = Some(item.title.clone());
        }
        if rewritten || retitled && task.title.as_deref() == Some(&*task.description) {
            change.description = Some(item.description.clone().unwrap_or_else(|| item.title.clone()));
        }
        if rewritten {
            let kept = task.context.as_deref().cloned().unwrap_or_default();
            let metadata = kept.metadata.into_iter().chain(item.metadata.clone()).collect();
            change.context = Some(Context { parent_task: kept.parent_task, metadata, ..context(item) });
        }
        if is_reset {
            change.priority = Some(priority);
            change.dependencies = Some(dependencies);
            change.tags = Some(item.tags.clone());
        }
        let becomes = self.becomes(number, task);
        planned.ticked = item.status == Stated::Done && task.status.is_held() && becomes.is_none();
        planned.done &= !planned.ticked;
        let returns = task.planned.is_none();
        let moved = task.path.as_ref() != Some(&path) || task.parent != parent;
        let renumbered =
            if returns { task.path.as_ref() != Some(&path) } else { is_renumbered(task, parent.as_ref(), Some(&path)) };
        // A parent's status follows from its parts, which are reported themselves.
        let by_parts = !self.parts[number].is_empty() && self.state.is_parent(&task.id);
        let reopened = !task.status.is_unfinished() && !by_parts && self.stays_open(number);
        let news = match () {
            () if rewritten => Some(PlanChange::Modified),
            () if retitled || renumbered => Some(PlanChange::Renamed),
            () => is_reset.then_some(PlanChange::Modified),
        };
        let what = match (becomes, news) {
            (Some(TaskStatus::Done), _) => PlanChange::Completed,
            _ if reopened => PlanChange::Reopened,
            (_, Some(change)) => change,
            (Some(_), None) => PlanChange::Modified,
            (None, None) if moved || returns || before != planned => PlanChange::Moved,
            (None, None) => return None,
        };
        let was = match () {
            () if retitled => task.title.clone(),
            () if renumbered => task.path.clone(),
            () => None,
        };
        Some(Replanned { task: task.id.clone(), path, parent, planned, change, becomes, anew: true, what, was })
    }

    fn becomes(&self, number: usize, task: &Task) -> Option<TaskStatus> {
        let stated_done = self.plan.items[number].status == Stated::Done;
        let others = self.state.parts(&task.id).any(|part| part.planned.is_none());
        if !self.parts[number].is_empty() || others {
            return task.status.is_held().then_some(TaskStatus::Available);
        }
        let is_over = !task.status.is_unfinished();
        let rewritten = !self.same_content(number, task);
        let had_parts = self.state.is_parent(&task.id);
        let was_done = task.result.as_ref().is_some_and(|result| result.error.is_none());
        match task.status {
            TaskStatus::Available if stated_done && !had_parts && self.is_reset(task) => None,
            TaskStatus::Done if stated_done || !rewritten => None,
            status if stated_done && !status.is_held() => Some(TaskStatus::Done),
            // The task was done before it got the parts that are gone again.
            TaskStatus::Available if had_parts && was_done && !rewritten => Some(TaskStatus::Done),
            _ if is_over && (rewritten || had_parts || task.planned.is_none()) => Some(TaskStatus::Available),
            _ => None,
        }
    }

    /// True if somebody has reset the task who knew that the plan calls it done.
    fn is_reset(&self, task: &Task) -> bool {
        let (Some(reset_at), Some(planned)) = (task.reset_at, &task.planned) else { return false };
        let is_since = || self.state.current_plan().is_some_and(|current| reset_at >= current.imported_at);
        planned.done || planned.ticked && is_since()
    }

    /// True if something of the item is still to be done once the plan is the current one.
    fn stays_open(&self, number: usize) -> bool {
        match self.before[number] {
            _ if !self.parts[number].is_empty() => self.parts[number].iter().any(|part| self.stays_open(*part)),
            None => self.plan.items[number].status == Stated::Open,
            Some(task) => self.becomes(number, task).unwrap_or(task.status).is_unfinished(),
        }
    }

    fn refuse_cycle(&mut self, dependencies: &[Vec<TaskId>]) {
        let plan = self.plan;
        let ids = &self.ids;
        let mut nodes: BTreeMap<&TaskId, Node<'_>> = BTreeMap::new();
        for task in self.state.tasks().filter(|task| task.planned.is_some()) {
            nodes.insert(&task.id, Node { parent: None, dependencies: &task.dependencies });
        }
        for (number, item) in plan.items.iter().enumerate() {
            let parent = item.parent.map(|parent| &ids[parent]);
            nodes.insert(&ids[number], Node { parent, dependencies: &dependencies[number] });
        }
        let Err(Refusal::DependencyCycle { mut cycle }) = self.state.check_wired(nodes) else { return };
        let number_of = |id: &TaskId| ids.iter().position(|one| one == id);
        // Begins the cycle at its first line, so that the message does not depend on made-up ids.
        cycle.pop();
        let first = cycle.iter().filter_map(number_of).min().unwrap_or_default();
        let start = cycle.iter().position(|id| *id == ids[first]).unwrap_or_default();
        cycle.rotate_left(start);
        cycle.extend(cycle.first().cloned());
        let named: Vec<_> = cycle
            .iter()
            .map(|id| match number_of(id) {
                Some(number) => format!("{} (line {})", self.paths[number], plan.items[number].line),
                None => id.to_string(),
            })
            .collect();
        let what = "each waits for the next, as one does for its parts and for what its parents wait for";
        self.wrong(first, format!("a cycle: {}; {what}; leave one dependency out", named.join(" -> ")));
    }
}

/// What the plan said about the task when it last had it.
fn origin(task: &Task) -> Option<&Planned> {
    task.planned.as_deref().or(task.left_plan.as_deref())
}

/// Most pairs of titles whose words are compared.
const COMPARED: usize = 50_000;
/// Percent of shared words from which a title counts as a rewording of another.
const ALIKE: u32 = 50;

fn likeness(one: &str, other: &str) -> u32 {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(folded).collect()
    };
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    (shared * 100 / one.union(&other).count().max(1)) as u32
}

fn context(item: &Item) -> Context {
    let Item { files, hints, metadata, .. } = item;
    Context { files: files.clone(), hints: hints.clone(), metadata: metadata.clone(), ..Context::default() }
}

/// The text with single spaces and no line ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text, cut to at most `bytes` bytes.
pub fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let cut = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= bytes - '…'.len_utf8());
    format!("{}…", &text[..cut.last().unwrap_or_default()])
}

fn folded(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The text, short enough for a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Planned {
    /// The change from this to `new`, if any, in what is to be done or what it is called.
    pub fn change(&self, new: &Self, renumbered: bool) -> Option<PlanChange> {
        match () {
            () if self.content != new.content => Some(PlanChange::Modified),
            () if self.title != new.title || renumbered => Some(PlanChange::Renamed),
            () if self.settings != new.settings => Some(PlanChange::Modified),
            () => None,
        }
    }
}

/// True if the task has another parent, or another place below it. A new number of the parent does not count.
pub fn is_renumbered(before: &Task, parent: Option<&TaskId>, path: Option<&str>) -> bool {
    before.parent.as_ref() != parent || last_part(before.path.as_deref()) != last_part(path)
}

fn last_part(path: Option<&str>) -> &str {
    let path = path.unwrap_or_default();
    path.rsplit_once('.').map_or(path, |(_, last)| last)
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

fn settings_hash(priority: u8, dependencies: &[TaskId], tags: &[String]) -> String {
    hash(&(priority, dependencies, tags))
}

/// Hash of what is to be done. Spaces and line ends in hints do not count, because Markdown has hints on one line.
fn content_hash(item: &Item) -> String {
    let hints = item.hints.as_deref().map(one_line);
    match item.metadata.is_empty() {
        true => hash(&(&item.description, &item.files, hints)),
        false => hash(&(&item.description, &item.files, hints, &item.metadata)),
    }
}

/// The hash that boards have of plans imported when every space counted.
fn older_content_hash(item: &Item) -> String {
    hash(&(&item.description, &item.files, &item.hints))
}

/// First 16 hex digits of the SHA-256 of the JSON.
fn hash(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    sha256(json)[..16].to_owned()
}
