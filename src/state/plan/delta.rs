//! The difference between the board and a new version of its plan, from the items' tasks to the
//! event.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::hashes::{content_hash, hash, settings_hash};
use super::item::{Import, Plan, Remark, Stated};
use super::problem::Problem;
use super::words::words;
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::event::{Event, Reworded};
use crate::state::id::TaskId;
use crate::state::task::{DEFAULT_PRIORITY, Pending, Planned, Task, TaskStatus};

pub(super) struct Delta<'a> {
    pub(super) state: &'a State,
    pub(super) plan: &'a Plan,
    pub(super) import: &'a Import,
    pub(super) parts: Vec<Vec<usize>>,
    /// Hashes of the words of each item's title, and of its content.
    pub(super) hashes: Vec<(String, String)>,
    /// The task that each item was before.
    pub(super) before: Vec<Option<&'a Arc<Task>>>,
    /// Tasks that are the item of `before`.
    pub(super) taken: HashSet<&'a TaskId>,
    /// Held tasks that items were under other words.
    pub(super) waits_for: HashMap<usize, &'a Arc<Task>>,
    /// Done tasks that items may have been, under other words or in another place.
    pub(super) reworded: HashMap<usize, &'a Arc<Task>>,
    pub(super) ids: Vec<TaskId>,
    pub(super) paths: Vec<String>,
    pub(super) problems: BTreeSet<Problem>,
    /// What items depend on that is neither an item nor a task.
    pub(super) unknown: Vec<Remark>,
}

impl<'a> Delta<'a> {
    pub(super) fn new(
        state: &'a State,
        plan: &'a Plan,
        import: &'a Import,
    ) -> Result<Self, Vec<Problem>> {
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
            import,
            parts,
            hashes: plan
                .items
                .iter()
                .map(|item| (hash(&words(&item.title)), content_hash(item)))
                .collect(),
            before: vec![None; count],
            taken: HashSet::new(),
            waits_for: HashMap::new(),
            reworded: HashMap::new(),
            ids: Vec::new(),
            paths: vec![String::new(); count],
            problems: BTreeSet::new(),
            unknown: Vec::new(),
        };
        delta.refuse_twins();
        delta.sound()?;
        delta.recognise();
        delta.name();
        delta.place();
        delta.carry();
        delta.sound()?;
        Ok(delta)
    }

    fn sound(&self) -> Result<(), Vec<Problem>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.iter().cloned().collect()) }
    }

    pub(super) fn wrong(&mut self, item: usize, problem: String) {
        self.problems.insert(Problem { line: self.plan.items[item].line, problem });
    }

    /// Refuses two items with one path.
    fn refuse_twins(&mut self) {
        let mut paths: HashMap<&str, usize> = HashMap::new();
        let plan = self.plan;
        for (number, item) in plan.items.iter().enumerate() {
            let Some(path) = &item.path else { continue };
            if let Some(other) = paths.insert(path, number) {
                let first = plan.items[other].line;
                self.wrong(
                    number,
                    format!("the path {path} stands on line {first} already; give each its own"),
                );
            }
        }
    }

    /// Makes items the done tasks that the caller says they are.
    fn carry(&mut self) {
        for (id, path) in &self.import.carry {
            let item = (0..self.paths.len())
                .find(|item| self.paths[*item] == *path || self.ids[*item].as_str() == path);
            let task = self.own_tasks().find(|task| task.id == *id);
            if let Err(problem) = self.carried(item, task) {
                let line = item.map_or(1, |item| self.plan.items[item].line);
                self.problems
                    .insert(Problem { line, problem: format!("carry {id}={path}: {problem}") });
            }
        }
    }

    fn carried(&mut self, item: Option<usize>, task: Option<&'a Arc<Task>>) -> Result<(), String> {
        let item = item.ok_or("no item has that path")?;
        let task = task.ok_or("the plan never had that task")?;
        if self.before[item].is_some_and(|before| before.id == task.id) {
            return Ok(());
        }
        let is_held = self.before[item].is_some_and(|before| before.status.is_in_work());
        match () {
            () if task.status != TaskStatus::Done => {
                return Err(format!("that task is {}, not done", task.status));
            }
            () if self.taken.contains(&task.id) => {
                return Err("that task is another item of the plan".to_owned());
            }
            () if is_held => {
                return Err(
                    "an agent or a reviewer has the item's task; try again when it is free"
                        .to_owned(),
                );
            }
            () if self.is_group(item) => {
                return Err("that item has parts, which are done by themselves".to_owned());
            }
            () => {}
        }
        self.before[item] = Some(task);
        self.taken.insert(&task.id);
        self.ids[item] = task.id.clone();
        self.waits_for.remove(&item);
        self.reworded.remove(&item);
        Ok(())
    }

    /// The version that this one follows.
    pub(super) fn current(&self) -> Option<&'a PlanVersion> {
        self.state.base_of(self.import)
    }

    /// Whether the item's parts alone decide whether it is done.
    pub(super) fn is_group(&self, item: usize) -> bool {
        !self.parts[item].is_empty() && !self.plan.items[item].is_own
    }

    pub(super) fn level(&self, item: usize) -> usize {
        let above = |item: &usize| self.plan.items[*item].parent;
        std::iter::successors(Some(item), above).count()
    }

    pub(super) fn event(mut self) -> Result<Event, Vec<Problem>> {
        let dependencies = self.dependencies();
        self.sound()?;
        self.refuse_cycle(&dependencies);
        self.sound()?;
        let plan = self.plan;
        let (mut created, mut changed) = (Vec::new(), Vec::new());
        let mut order = self.order();
        let mut priorities: Vec<u8> = Vec::with_capacity(plan.items.len());
        for (number, (item, dependencies)) in plan.items.iter().zip(dependencies).enumerate() {
            let inherited = item.parent.map_or(DEFAULT_PRIORITY, |parent| priorities[parent]);
            let priority = item.priority.unwrap_or(inherited);
            priorities.push(priority);
            let settings = settings_hash(
                priority,
                &dependencies,
                &item.tags,
                item.estimated_minutes,
                &item.further.trials,
            );
            let (title, content) = self.hashes[number].clone();
            let kept = self.before[number].filter(|task| self.had_content(number, task));
            let content =
                kept.and_then(|task| origin(task)).map_or(content, |kept| kept.content.clone());
            let done = item.status == Stated::Done && !self.is_group(number);
            let kept = self.before[number].filter(|task| self.had_title(number, task));
            let title = kept.and_then(|task| origin(task)).map_or(title, |kept| kept.title.clone());
            let off = item.status.is_called_off() && !self.is_group(number);
            let own = item.is_own && !self.parts[number].is_empty();
            let after = self.waits_for.get(&number).map(|task| task.id.clone());
            let pending =
                after.map(|after| Box::new(Pending { after: Some(after), ..Pending::default() }));
            let (plan, source) = (self.import.name.clone(), item.source.clone());
            let beside = order[number].take().map(Box::new);
            let planned = Planned {
                title,
                content,
                settings,
                ticked: false,
                done,
                off,
                own,
                source,
                plan,
                beside,
                pending,
            };
            let parent = item.parent.map(|parent| self.ids[parent].clone());
            match self.before[number] {
                Some(task) => changed.extend(self.changed(
                    number,
                    task,
                    parent,
                    planned,
                    priority,
                    dependencies,
                )),
                None => created.push(self.created(number, parent, planned, priority, dependencies)),
            }
        }
        let there: HashSet<&TaskId> = self.before.iter().flatten().map(|task| &task.id).collect();
        let gone =
            self.own_tasks().filter(|task| task.planned.is_some() && !there.contains(&task.id));
        let (leaving, removed): (Vec<_>, Vec<_>) = gone.partition(|task| task.status.is_in_work());
        let ids = |tasks: Vec<&Arc<Task>>| tasks.into_iter().map(|task| task.id.clone()).collect();
        let mut reworded: Vec<(usize, &'a Arc<Task>)> =
            self.reworded.iter().map(|(item, task)| (*item, *task)).collect();
        reworded.sort_unstable_by_key(|(item, _)| *item);
        let named = |(item, task): (usize, &'a Arc<Task>)| Reworded {
            done: task.id.clone(),
            now: self.ids[item].clone(),
        };
        let reworded = reworded.into_iter().map(named).collect();
        let current = self.current();
        let prev_sha256 = match current.filter(|current| current.sha256 == plan.sha256) {
            Some(same) => same.prev_sha256.clone(),
            None => current.map(|current| current.sha256.clone()),
        };
        let version = PlanVersion {
            name: self.import.name.clone(),
            was: current
                .filter(|current| current.name != self.import.name)
                .map(|current| current.name().to_owned()),
            parallel: self.import.parallel,
            lists: self.import.lists,
            unread: Some(if self.import.is_all_read { 0 } else { plan.unread })
                .filter(|lines| *lines > 0 || self.import.is_all_read),
            review: plan.review,
            removed: false,
            sha256: plan.sha256.clone(),
            prev_sha256,
            source: self.import.source.clone(),
            title: plan.title.clone(),
            items: plan.items.len(),
            metadata: Arc::new(plan.metadata.clone()),
            seq: 0,
            imported_at: Default::default(),
        };
        let (leaving, removed) = (ids(leaving), ids(removed));
        let brought = self.brought(&created, &changed);
        Ok(Event::PlanImported {
            plan: version,
            created,
            changed,
            removed,
            leaving,
            reworded,
            known_again: true,
            brought,
            text: None,
        })
    }
}

/// What the plan said about the task when it last had it.
pub(super) fn origin(task: &Task) -> Option<&Planned> {
    task.planned.as_deref().or(task.left_plan.as_deref())
}
