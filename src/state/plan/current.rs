//! The plan that the board has, and what importing another text would change.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::delta::Delta;
use super::hashes::hash;
use super::item::{Import, Plan, Problem, Remark, Skipped};
use super::text::shown;
use super::words::words;
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::event::Event;
use crate::state::hierarchy;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

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
            for title in [hash(&words(&item.title)), hash(&item.title)] {
                known.remove(&(level, title));
            }
            levels.push(level);
        }
        let is_known = |one: &&Skipped| {
            let titles = [hash(&words(&one.title)), hash(&one.title)];
            one.level.is_some_and(|level| titles.into_iter().any(|title| known.contains(&(level, title))))
        };
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
    pub fn replan(&self, plan: &Plan, import: &Import) -> Result<Event, Vec<Problem>> {
        Delta::new(self, plan, import)?.event()
    }
}

/// Tasks of the current plan, each before its parts.
pub fn planned<'a>(tasks: impl Iterator<Item = &'a Arc<Task>>) -> Vec<&'a Task> {
    let mut found: Vec<_> = tasks.map(AsRef::as_ref).filter(|task: &&Task| task.planned.is_some()).collect();
    found.sort_by_cached_key(|task| hierarchy::numbers(task.path.as_deref().unwrap_or_default()));
    found
}
