//! Tasks and their parts: what a part waits for, and how the status of a parent rolls up.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::hierarchy::{LEVELS, Progress, parent_path, split_scope, weightier};
use super::id::TaskId;
use super::refusal::Refusal;
use super::task::{Task, TaskStatus};
use super::{Ordinal, State};

/// Most parents that are followed upwards; a chain is longer than `LEVELS` only if a file was made
/// so.
const FOLLOWED: usize = 2 * LEVELS.len();

/// Statuses of parts that keep work of its own from being done.
pub(super) const KEEPING: [TaskStatus; 5] = [
    TaskStatus::Available,
    TaskStatus::Claimed,
    TaskStatus::InProgress,
    TaskStatus::Review,
    TaskStatus::Failed,
];

/// Failed parts that a refusal names.
const FAILED_NAMED: usize = 5;

fn is_failed(task: &Task) -> bool {
    task.status == TaskStatus::Failed
}

/// Whether work on the task is to come, other than what its holder may still do although the plan
/// has left it out.
fn is_open(task: &Task) -> bool {
    task.status.is_unfinished() && !task.leaves_plan()
}

/// Whether `part` was created while an agent held `task`. Today it becomes a part of `task`; earlier
/// versions left it beside. What was created while nobody held `task` does not belong to it.
fn came_beside(part: &Task, task: &Task) -> bool {
    task.attempts.iter().any(|one| {
        one.claimed_at <= part.created_at && one.ended_at.is_none_or(|end| part.created_at < end)
    })
}

/// Whether the part keeps work of its own, of which it is a part, from being done.
pub(super) fn keeps_open(part: &Task) -> bool {
    KEEPING.contains(&part.status)
}

impl State {
    /// True for a group: a task that its parts alone finish. Work of its own that has parts is
    /// counted, claimed and done as if it had none.
    pub fn is_parent(&self, id: &TaskId) -> bool {
        self.has_parts(id) && !self.task(id).is_some_and(|task| task.is_own_work())
    }

    pub fn has_parts(&self, id: &TaskId) -> bool {
        self.index.has_parts(id)
    }

    /// Parts that keep work of its own from being done; none of a group.
    pub fn open_parts<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        let some =
            |status| self.index.parts_that_are(&task.id, status).is_some_and(|count| count > 0);
        // Only one look if there are none.
        let parent = Some(&task.id).filter(|_| task.is_own_work() && KEEPING.into_iter().any(some));
        let parts = parent.into_iter().flat_map(|id| self.parts(id));
        parts.filter(|part| keeps_open(part)).map(|part| &part.id)
    }

    /// Direct parts, in order of creation.
    pub fn parts(&self, id: &TaskId) -> impl Iterator<Item = &Arc<Task>> {
        self.index.parts(id).filter_map(|ordinal| self.records.tasks.get(ordinal))
    }

    /// Parents from the nearest upwards.
    pub fn ancestors<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a Arc<Task>> {
        let above = |task: &Task| self.task(task.parent.as_ref()?);
        std::iter::successors(above(task), move |task| above(task)).take(FOLLOWED)
    }

    /// All parts at any depth, each before its own parts.
    pub fn below(&self, id: &TaskId) -> Vec<&Arc<Task>> {
        let mut found: Vec<&Arc<Task>> = Vec::new();
        let mut seen: HashSet<&TaskId> = HashSet::new();
        let mut open: Vec<&Arc<Task>> = self.parts(id).collect();
        open.reverse();
        while let Some(task) = open.pop() {
            if seen.insert(&task.id) {
                found.push(task);
                let start = open.len();
                open.extend(self.parts(&task.id));
                open[start..].reverse();
            }
        }
        found
    }

    /// Roll-up of the tasks below `id` that have no parts.
    pub fn progress(&self, id: &TaskId) -> Progress {
        let mut progress = Progress::default();
        let leaves = self.below(id).into_iter().filter(|task| !self.is_parent(&task.id));
        leaves.for_each(|task| progress.count(task.status));
        progress
    }

    /// Unfinished dependencies of `task` and of its ancestors, held tasks whose places they take in
    /// the plan, and parts that work of its own waits for.
    pub fn waits_for<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        let above = self.ancestors(task).filter_map(|above| above.after());
        let held = |id: &&TaskId| self.status_of(id).is_some_and(TaskStatus::is_in_work);
        let replaced = task.after().into_iter().chain(above).filter(held);
        let unfinished = self.prerequisites(task).filter(|id| !self.is_done(id));
        self.open_parts(task).chain(unfinished).chain(replaced)
    }

    /// Dependencies of `task` and of its ancestors.
    pub fn prerequisites<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        let inherited = self.ancestors(task).flat_map(|above| &above.dependencies);
        task.dependencies.iter().chain(inherited)
    }

    /// Tasks at this path, or at this path of a plan, that are not obsolete; of those, the ones
    /// that are in a plan, if any are.
    pub fn at_path(&self, given: &str) -> impl Iterator<Item = &Arc<Task>> {
        let (plan, path) = split_scope(given);
        let is_meant = move |task: &&Arc<Task>| {
            plan.is_none_or(|plan| task.plan_name().is_none_or(|own| own == plan))
        };
        let there = move || {
            self.index
                .at_path(path)
                .filter_map(|ordinal| self.records.tasks.get(ordinal))
                .filter(is_meant)
        };
        let is_taken = there().any(|task| task.planned.is_some());
        there().filter(move |task| {
            task.status != TaskStatus::Obsolete && !(is_taken && task.left_plan.is_some())
        })
    }

    /// Refuses a path that several plans have, and a plan that there is not.
    pub fn check_path_meant(&self, given: &str) -> Result<(), Refusal> {
        let (plan, path) = split_scope(given);
        if let Some(plan) = plan {
            return self.plan_named(plan).map(drop);
        }
        let plans: BTreeSet<&str> = self
            .at_path(path)
            .filter(|task| task.planned.is_some())
            .filter_map(|task| task.plan_name())
            .collect();
        if plans.len() < 2 {
            return Ok(());
        }
        let plans = plans.into_iter().map(str::to_owned).collect();
        Err(Refusal::AmbiguousPath { path: path.to_owned(), plans })
    }

    /// Parent of a new task at `path`: the nearest task above it that has parts or is not over.
    /// What was acknowledged as done stays done, or in review.
    pub fn parent_at(&self, path: &str) -> Option<&Arc<Task>> {
        let is_open = |one: &Task| one.status.is_unfinished() && one.status != TaskStatus::Review;
        self.alone_above(path).find(|one| is_open(one) || self.is_parent(&one.id))
    }

    fn nearest_above(&self, path: &str) -> Option<&Arc<Task>> {
        self.alone_above(path).next()
    }

    /// Tasks above `path`, nearest first, of those paths at which there is one.
    fn alone_above<'s>(&'s self, path: &str) -> impl Iterator<Item = &'s Arc<Task>> {
        let paths = std::iter::successors(parent_path(path), |path| parent_path(path));
        paths.filter_map(|path| {
            let mut there = self.at_path(path);
            there.next().filter(|_| there.next().is_none())
        })
    }

    /// Refuses a task that has parts: it has no lease of its own, and is done when they are.
    pub fn refuse_parent(&self, id: &TaskId) -> Result<(), Refusal> {
        match self.task(id).filter(|_| self.is_parent(id)) {
            Some(task) => Err(self.parts_refused(task, &self.below(id))),
            None => Ok(()),
        }
    }

    /// Refuses to end a task of which a part is open: by its parent, or by its path, as an earlier
    /// version left parts beside work in hand. A part that is done keeps nothing open, whatever it
    /// has got since: by the same rule the task was ready.
    pub fn refuse_open_parts(&self, task: &Task) -> Result<(), Refusal> {
        let beside = self.beside(task);
        if beside.is_empty() && !self.parts(&task.id).any(|part| keeps_open(part)) {
            return Ok(());
        }
        let parts = if beside.is_empty() { self.below(&task.id) } else { beside };
        Err(self.parts_refused(task, &parts))
    }

    fn parts_refused(&self, task: &Task, below: &[&Arc<Task>]) -> Refusal {
        let leaves = || below.iter().filter(|one| !self.is_parent(&one.id));
        let failed = leaves().filter(|one| is_failed(one));
        Refusal::IsParent {
            task: task.id.clone(),
            path: task.path.clone(),
            open: leaves().filter(|one| one.status.is_unfinished()).count(),
            failed: failed.take(FAILED_NAMED).map(|one| one.id.clone()).collect(),
        }
    }

    /// Open tasks below the path of a task without parts that an earlier version left beside it.
    fn beside(&self, task: &Task) -> Vec<&Arc<Task>> {
        let Some(path) = task.path.as_deref().filter(|_| !self.has_parts(&task.id)) else {
            return Vec::new();
        };
        let within =
            self.index.within_path(path).filter_map(|ordinal| self.records.tasks.get(ordinal));
        let is_nearest = |below: &&Arc<Task>| {
            let nearest = below.path.as_deref().and_then(|path| self.parent_at(path));
            nearest.is_some_and(|nearest| nearest.id == task.id && came_beside(below, task))
        };
        let open = within.filter(|below| is_open(below) && below.id != task.id);
        open.filter(is_nearest).collect()
    }

    /// Tasks that were done, or are held, although tasks below their paths are open, each with one
    /// of those. New parts are taken in; these are from earlier versions.
    pub fn apart(&self) -> Vec<(&Arc<Task>, &Arc<Task>)> {
        let open = self.tasks().filter(|task| is_open(task) && task.run.is_none());
        let apart = open.filter_map(|part| {
            let nearest = self.nearest_above(part.path.as_deref()?)?;
            let is_meant = nearest.status == TaskStatus::Done || nearest.status.is_held();
            let is_apart = is_meant && !self.has_parts(&nearest.id) && came_beside(part, nearest);
            is_apart.then_some((nearest, part))
        });
        apart.collect()
    }

    /// The status that rolls up from the parts; `None` for a task without parts, and for work of its
    /// own.
    pub(super) fn rolled_up(&self, id: &TaskId) -> Option<TaskStatus> {
        let id = Some(id).filter(|id| self.is_parent(id))?;
        let some = |status| self.index.parts_that_are(id, status).is_some_and(|count| count > 0);
        let statuses = TaskStatus::ALL.into_iter().filter(|status| some(*status));
        let open = |status: TaskStatus| {
            if status.is_unfinished() { TaskStatus::Available } else { status }
        };
        statuses.map(open).reduce(weightier)
    }

    pub(super) fn check_hierarchy(&self, wrong: &mut Vec<String>) {
        for task in self.tasks() {
            if let Some(parent) =
                task.parent.as_ref().filter(|parent| self.status_of(parent).is_none())
            {
                wrong.push(format!("task {} is part of {parent}, which does not exist", task.id));
            }
            if self.ancestors(task).any(|above| above.id == task.id) {
                wrong.push(format!("task {} is part of itself", task.id));
            }
            if self.is_parent(&task.id) && task.open_attempt().is_some() {
                wrong.push(format!("task {} has parts and is held", task.id));
            }
            if let Some(status) = self.rolled_up(&task.id).filter(|status| *status != task.status) {
                wrong.push(format!(
                    "task {} is {} and its parts say {status}",
                    task.id, task.status
                ));
            }
        }
    }

    /// Updates the readiness of everything below the task.
    pub(super) fn refresh_below(&mut self, id: &TaskId) {
        if self.index.has_parts(id) {
            let below = self.below(id);
            let below: Vec<Ordinal> =
                below.into_iter().filter_map(|task| self.ordinal_of(&task.id)).collect();
            below.into_iter().for_each(|ordinal| self.refresh(ordinal));
        }
    }
}
