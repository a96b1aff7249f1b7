//! Tasks that are parts of others: Phase `P1` > Milestone `P1.M1` > Task `P1.M1.T1` > Subtask `P1.M1.T1.S1`.
//!
//! A task with parts is never claimed; its status follows from theirs with every event. What it depends on, all its parts
//! wait for; so a dependency on a parent, or of one, is a barrier.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::limit::PLAN_DEPTH;
use super::refusal::Refusal;
use super::task::{Task, TaskStatus};
use super::{Ordinal, State};

const LEVELS: [&str; PLAN_DEPTH.max] = ["P", "M", "T", "S"];
/// A chain of parents is followed no further; none is longer than `LEVELS` unless a file was made so.
const FOLLOWED: usize = 2 * LEVELS.len();

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Phase,
    Milestone,
    Task,
    Subtask,
}

impl Kind {
    pub fn of_level(level: usize) -> Self {
        match level {
            0 | 1 => Self::Phase,
            2 => Self::Milestone,
            3 => Self::Task,
            _ => Self::Subtask,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Milestone => "milestone",
            Self::Task => "task",
            Self::Subtask => "subtask",
        }
    }
}

/// The numbers of `P1.M2.T3` are 1, 2 and 3; none of what has no such form.
pub fn numbers(path: &str) -> Option<Vec<u32>> {
    let parts: Vec<_> = path.split('.').collect();
    if parts.len() > LEVELS.len() {
        return None;
    }
    let number = |(part, level): (&&str, &&str)| {
        let digits = part.strip_prefix(*level)?;
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    parts.iter().zip(&LEVELS).map(number).collect()
}

/// Whether new tasks may stand there. `P01` is a path on older boards, and would be another than `P1`.
pub fn is_path(path: &str) -> bool {
    let is_padded = |part: &str| part.len() > 2 && part[1..].starts_with('0');
    numbers(path).is_some() && !path.split('.').any(is_padded)
}

/// The path of the `number`-th part of what stands at `parent`.
pub fn part_path(parent: Option<&str>, number: u32) -> Option<String> {
    match parent {
        None => Some(format!("P{number}")),
        Some(parent) => Some(format!("{parent}.{}{number}", LEVELS.get(level(parent))?)),
    }
}

pub fn parent_path(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(parent, _)| parent)
}

/// 1 of a phase to 4 of a subtask.
pub fn level(path: &str) -> usize {
    path.split('.').count()
}

pub fn kind(path: &str) -> Kind {
    Kind::of_level(level(path))
}

/// How far what is below a task has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Progress {
    /// Tasks without parts
    pub tasks: u64,
    pub done: u64,
    pub held: u64,
    pub failed: u64,
    pub percent: u64,
}

impl Progress {
    pub fn count(&mut self, status: TaskStatus) {
        self.tasks += u64::from(!matches!(status, TaskStatus::Cancelled | TaskStatus::Obsolete));
        self.done += u64::from(status == TaskStatus::Done);
        self.held += u64::from(status.is_held());
        self.failed += u64::from(status == TaskStatus::Failed);
        self.percent = (self.done * 100 + self.tasks / 2) / self.tasks.max(1);
    }

    /// What a parent is called whose parts have come so far, and whose own status is `status`.
    pub fn word(&self, status: TaskStatus) -> &'static str {
        match status {
            TaskStatus::Available if self.held > 0 || self.done > 0 => TaskStatus::InProgress.as_str(),
            other => other.as_str(),
        }
    }
}

impl State {
    pub fn is_parent(&self, id: &TaskId) -> bool {
        self.index.has_parts(id)
    }

    /// In order of creation.
    pub fn parts(&self, id: &TaskId) -> impl Iterator<Item = &Arc<Task>> {
        self.index.parts(id).filter_map(|ordinal| self.tasks.get(ordinal))
    }

    /// From the parent upwards.
    pub fn ancestors<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a Arc<Task>> {
        let above = |task: &Task| self.task(task.parent.as_ref()?);
        std::iter::successors(above(task), move |task| above(task)).take(FOLLOWED)
    }

    /// Parts and parts of parts, each before its own.
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

    /// Of the tasks below it that have no parts.
    pub fn progress(&self, id: &TaskId) -> Progress {
        let mut progress = Progress::default();
        let leaves = self.below(id).into_iter().filter(|task| !self.is_parent(&task.id));
        leaves.for_each(|task| progress.count(task.status));
        progress
    }

    /// What `task` waits for: its own dependencies and those of all that it is part of.
    pub fn waits_for<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        let inherited = self.ancestors(task).flat_map(|above| &above.dependencies);
        task.dependencies.iter().chain(inherited).filter(|id| !self.is_done(id))
    }

    /// Tasks at this path that are not out of the plan.
    pub fn at_path(&self, path: &str) -> impl Iterator<Item = &Arc<Task>> {
        let there = self.index.at_path(path).filter_map(|ordinal| self.tasks.get(ordinal));
        there.filter(|task| task.status != TaskStatus::Obsolete)
    }

    /// What a new task at `path` becomes a part of: the nearest above it that has parts already, or that nobody has
    /// begun on.
    pub fn parent_at(&self, path: &str) -> Option<&Arc<Task>> {
        let mut above = parent_path(path);
        while let Some(path) = above {
            let mut there = self.at_path(path);
            if let (Some(one), None) = (there.next(), there.next()) {
                let untouched = one.status == TaskStatus::Available && one.attempt == 0;
                if untouched || self.is_parent(&one.id) {
                    return Some(one);
                }
            }
            above = parent_path(path);
        }
        None
    }

    /// A task has no lease of its own while it has parts.
    pub fn refuse_parent(&self, id: &TaskId) -> Result<(), Refusal> {
        let Some(task) = self.task(id).filter(|_| self.is_parent(id)) else { return Ok(()) };
        let open = self.below(id).into_iter().filter(|one| one.status.is_unfinished() && !self.is_parent(&one.id));
        Err(Refusal::IsParent { task: id.clone(), path: task.path.clone(), open: open.count() })
    }

    /// The status that follows from the parts; none of a task without.
    pub(super) fn rolled_up(&self, id: &TaskId) -> Option<TaskStatus> {
        let mut found = None;
        for part in self.parts(id) {
            let status = if part.status.is_unfinished() { TaskStatus::Available } else { part.status };
            found = Some(found.map_or(status, |found| weightier(found, status)));
        }
        found
    }

    pub(super) fn check_hierarchy(&self, wrong: &mut Vec<String>) {
        for task in self.tasks() {
            if let Some(parent) = task.parent.as_ref().filter(|parent| self.status_of(parent).is_none()) {
                wrong.push(format!("task {} is part of {parent}, which does not exist", task.id));
            }
            if self.ancestors(task).any(|above| above.id == task.id) {
                wrong.push(format!("task {} is part of itself", task.id));
            }
            if let Some(status) = self.rolled_up(&task.id).filter(|status| *status != task.status) {
                wrong.push(format!("task {} is {} and its parts say {status}", task.id, task.status));
            }
        }
    }

    /// Puts everything below the task where the definition of ready says.
    pub(super) fn refresh_below(&mut self, id: &TaskId) {
        if self.index.has_parts(id) {
            let below = self.below(id);
            let below: Vec<Ordinal> = below.into_iter().filter_map(|task| self.ordinal_of(&task.id)).collect();
            below.into_iter().for_each(|ordinal| self.refresh(ordinal));
        }
    }
}

/// Of two statuses of parts, the one that decides.
fn weightier(one: TaskStatus, other: TaskStatus) -> TaskStatus {
    const ORDER: [TaskStatus; 5] =
        [TaskStatus::Available, TaskStatus::Failed, TaskStatus::Done, TaskStatus::Cancelled, TaskStatus::Obsolete];
    let weight = |status| ORDER.iter().position(|one| *one == status);
    if weight(one) <= weight(other) { one } else { other }
}
