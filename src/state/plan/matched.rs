//! Which task each item of a plan's text is, for an export that says what has changed since.

use std::sync::Arc;

use super::delta::Delta;
use super::item::{Import, Plan};
use crate::state::State;
use crate::state::event::{Event, PlanChange};
use crate::state::id::TaskId;
use crate::state::task::Task;

/// The task of an item, and what the item waits for.
pub struct Matched<'a> {
    pub task: &'a Arc<Task>,
    pub waits: Vec<TaskId>,
    /// Those of `waits` that follow from the order of headings.
    pub ordered: Vec<TaskId>,
}

impl State {
    /// The task of each item; `None` unless the items are exactly the tasks of the plan.
    pub fn matched<'a>(&'a self, plan: &'a Plan, import: &'a Import) -> Option<Vec<Matched<'a>>> {
        let mut delta = Delta::new(self, plan, import).ok()?;
        let waits = delta.dependencies();
        let is_planned = |task: &&'a Arc<Task>| task.planned.is_some();
        let tasks: Vec<_> =
            delta.before.iter().map(|task| task.filter(is_planned)).collect::<Option<_>>()?;
        if !delta.problems.is_empty() || tasks.len() != delta.own_tasks().filter(is_planned).count()
        {
            return None;
        }
        let mut ordered = vec![Vec::new(); tasks.len()];
        let order = plan.order.iter().filter(|_| !import.parallel);
        order.for_each(|(later, before)| ordered[*later].push(tasks[*before].id.clone()));
        let matched = tasks.into_iter().zip(waits).zip(ordered);
        Some(matched.map(|((task, waits), ordered)| Matched { task, waits, ordered }).collect())
    }

    /// True if importing `plan` would change no task.
    pub fn is_no_news(&self, plan: &Plan, import: &Import) -> bool {
        let Ok(Event::PlanImported { created, changed, removed, leaving, .. }) =
            self.replan(plan, import)
        else {
            return false;
        };
        let is_same = created.is_empty() && removed.is_empty() && leaving.is_empty();
        is_same && changed.iter().all(|one| one.what == PlanChange::Moved)
    }
}
