//! The difference between the board and a new version of its plan, from the items' tasks to the event.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::hashes::{content_hash, hash, settings_hash};
use super::item::{Plan, Problem, Stated};
use super::text::{folded, shown};
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::task::{DEFAULT_PRIORITY, Planned, Task};

pub(super) struct Delta<'a> {
    pub(super) state: &'a State,
    pub(super) plan: &'a Plan,
    pub(super) parts: Vec<Vec<usize>>,
    /// Hashes of each item's title and content.
    pub(super) hashes: Vec<(String, String)>,
    /// The task that each item was before.
    pub(super) before: Vec<Option<&'a Arc<Task>>>,
    pub(super) ids: Vec<TaskId>,
    pub(super) paths: Vec<String>,
    pub(super) problems: BTreeSet<Problem>,
}

impl<'a> Delta<'a> {
    pub(super) fn new(state: &'a State, plan: &'a Plan, seed: u64) -> Result<Self, Vec<Problem>> {
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

    pub(super) fn wrong(&mut self, item: usize, problem: String) {
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

    pub(super) fn level(&self, item: usize) -> usize {
        let above = |item: &usize| self.plan.items[*item].parent;
        std::iter::successors(Some(item), above).count()
    }

    pub(super) fn event(mut self, source: Option<String>) -> Result<Event, Vec<Problem>> {
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
            let settings = settings_hash(priority, &dependencies, &item.tags, item.estimated_minutes);
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
}

/// What the plan said about the task when it last had it.
pub(super) fn origin(task: &Task) -> Option<&Planned> {
    task.planned.as_deref().or(task.left_plan.as_deref())
}
