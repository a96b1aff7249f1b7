//! The plan that the board has, and what importing another text would change.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::delta::Delta;
use super::hashes::hash;
use super::item::{Import, Plan, Remark, Skipped, Unread};
use super::problem::Problem;
use super::words::words;
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::event::Event;
use crate::state::hierarchy;
use crate::state::task::{Task, TaskStatus};

impl State {
    /// True if `plan` is the current version and importing it again would change nothing.
    pub fn has_plan(&self, plan: &Plan, import: &Import) -> bool {
        let is_it = |current: &&PlanVersion| {
            let same_place = current.name == import.name && current.source == import.source;
            let same_reading = current.parallel == import.parallel
                && current.lists == import.lists
                && current.is_all_read() == import.is_all_read;
            current.sha256 == plan.sha256 && same_place && same_reading
        };
        let Some(current) = self.base_of(import).filter(is_it) else { return false };
        let is_due = |task: &Arc<Task>| {
            let ticked = task.planned.as_ref().is_some_and(|planned| planned.ticked);
            // A reset after the import overrules what the plan says.
            let was_reset = task.reset_at.is_some_and(|at| at >= current.imported_at);
            let is_open = task.status != TaskStatus::Done && !task.status.is_in_work();
            ticked && !was_reset && is_open && task.plan_name() == Some(current.name())
        };
        !self.tasks().any(is_due)
    }

    /// The version on the board that the import follows.
    pub fn base_of(&self, import: &Import) -> Option<&PlanVersion> {
        self.plan_named(import.base.as_deref()?).ok()
    }

    /// The version that was imported last.
    pub fn current_plan(&self) -> Option<&PlanVersion> {
        self.plans().pop()
    }

    /// What was not read of each plan, if that may be work.
    pub fn unread_lines(&self) -> Vec<Unread> {
        let unread = |plan: &PlanVersion| {
            let lines = plan.unread.filter(|lines| *lines > 0)?;
            Some(Unread { plan: plan.name().to_owned(), file: plan.source.clone(), lines })
        };
        self.plans().into_iter().filter_map(unread).collect()
    }

    /// Lines of skipped headings that are items of the current plan, imported when nothing was
    /// marked, and not called off since. A title that is also an item of `plan` at that level
    /// means that item instead.
    pub fn still_items(&self, plan: &Plan, import: &Import) -> BTreeSet<usize> {
        if plan.skipped.is_empty() {
            return BTreeSet::new();
        }
        let mut known: HashSet<(usize, String)> = self
            .tasks()
            .filter(|task| task.plan_name() == Some(import.own_name()))
            .filter(|task| !matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete))
            .filter_map(|task| {
                Some((
                    hierarchy::level(task.path.as_deref()?),
                    task.planned.as_ref()?.title.clone(),
                ))
            })
            .collect();
        let mut levels: Vec<usize> = Vec::with_capacity(plan.items.len());
        for item in &plan.items {
            let level = item.parent.map_or(1, |parent| levels[parent] + 1);
            for title in [hash(&words(&item.title)), hash(&item.title)] {
                known.remove(&(level, title));
            }
            levels.push(level);
        }
        let is_known = |one: &&Skipped| {
            let titles = [hash(&words(&one.title)), hash(&one.title)];
            one.level.is_some_and(|level| {
                titles.into_iter().any(|title| known.contains(&(level, title)))
            })
        };
        plan.skipped.iter().filter(is_known).map(|one| one.line).collect()
    }

    /// What items depend on that is neither an item of the plan nor a task.
    pub fn unknown_dependencies(&self, plan: &Plan, import: &Import) -> Vec<Remark> {
        if plan.items.iter().all(|item| item.depends.is_empty()) {
            return Vec::new();
        }
        let Ok(mut delta) = Delta::new(self, plan, import) else { return Vec::new() };
        delta.dependencies();
        delta.unknown
    }

    /// The tasks that are items of the plan now.
    pub fn items_of<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Task>> {
        self.tasks().filter(move |task| is_item_of(task, name))
    }

    /// The event that takes the plan off the board: what is done stays, what is held is its agent's
    /// until its attempt ends.
    pub fn without_plan(&self, plan: &PlanVersion) -> Event {
        let (leaving, removed): (Vec<_>, Vec<_>) =
            self.items_of(plan.name()).partition(|task| task.status.is_in_work());
        let ids = |tasks: Vec<&Arc<Task>>| tasks.into_iter().map(|task| task.id.clone()).collect();
        Event::PlanImported {
            plan: PlanVersion { removed: true, items: 0, was: None, ..plan.clone() },
            created: Vec::new(),
            changed: Vec::new(),
            removed: ids(removed),
            leaving: ids(leaving),
            reworded: Vec::new(),
            brought: None,
            text: None,
            known_again: true,
        }
    }

    /// The event that makes `plan` the current version, or the problems with it.
    pub fn replan(&self, plan: &Plan, import: &Import) -> Result<Event, Vec<Problem>> {
        Delta::new(self, plan, import)?.event()
    }

    /// Those of `tasks` that are in a plan, in the order of its file: each before its parts.
    pub fn in_file_order<'a>(
        &'a self,
        tasks: impl Iterator<Item = &'a Arc<Task>>,
    ) -> Vec<&'a Task> {
        let mut found: Vec<&Task> =
            tasks.map(AsRef::as_ref).filter(|task| task.planned.is_some()).collect();
        found.sort_by_cached_key(|task| {
            let mut turns: Vec<_> = self.ancestors(task).map(|above| self.turn_of(above)).collect();
            turns.reverse();
            turns.push(self.turn_of(task));
            turns
        });
        found
    }
}

pub(super) fn is_item_of(task: &Task, name: &str) -> bool {
    task.planned.is_some() && task.plan_name() == Some(name)
}

/// Tasks of plans in the order of their paths, each before its parts.
pub fn planned<'a>(tasks: impl Iterator<Item = &'a Arc<Task>>) -> Vec<&'a Task> {
    let mut found: Vec<_> =
        tasks.map(AsRef::as_ref).filter(|task: &&Task| task.planned.is_some()).collect();
    found.sort_by_cached_key(|task| hierarchy::numbers(task.path.as_deref().unwrap_or_default()));
    found
}
