//! Tasks that are parts of others: phase `P1` > milestone `P1.M1` > task `P1.M1.T1` > subtask
//! `P1.M1.T1.S1`.
//!
//! A task with parts is a group or work of its own. A group is never claimed; its status rolls up
//! from those of its parts with every event. Work of its own, to which its plan gives a mark or a
//! status beside parts, waits for them: when they are over it is ready. Parts that are created
//! below a held task end its attempt. All parts wait for the dependencies of what they are parts
//! of, so a dependency on a parent, or of a parent, is a barrier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit::PLAN_DEPTH;
use super::task::TaskStatus;

/// Most tasks in each other.
pub const DEEPEST: usize = PLAN_DEPTH.max;
pub(super) const LEVELS: [&str; DEEPEST] = ["P", "M", "T", "S", "U"];

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
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

/// The numbers in a path: 1, 2 and 3 for `P1.M2.T3`; `None` if it is no path.
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

/// Whether a new task may have this path. `P01` is a path on older boards, where it differs from
/// `P1`.
pub fn is_path(path: &str) -> bool {
    let is_padded = |part: &str| part.len() > 2 && part[1..].starts_with('0');
    numbers(path).is_some() && !path.split('.').any(is_padded)
}

/// The plan and the path of a scope such as `PLAN.md:P1.M2`, `PLAN.md:all` or `P1.M2`.
pub fn split_scope(scope: &str) -> (Option<&str>, &str) {
    scope.rsplit_once(':').map_or((None, scope), |(plan, path)| (Some(plan), path))
}

/// Path of the `number`-th part of `parent`.
pub fn part_path(parent: Option<&str>, number: u32) -> Option<String> {
    match parent {
        None => Some(format!("P{number}")),
        Some(parent) => Some(format!("{parent}.{}{number}", LEVELS.get(level(parent))?)),
    }
}

pub fn parent_path(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(parent, _)| parent)
}

/// Level of a path, from 1 for a phase to 4 for a subtask, and 5 for a part of one.
pub fn level(path: &str) -> usize {
    path.split('.').count()
}

pub fn kind(path: &str) -> Kind {
    Kind::of_level(level(path))
}

/// Roll-up of the tasks below a task that have no parts themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Number of tasks without parts
    pub tasks: u64,
    pub done: u64,
    pub held: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub review: u64,
    pub failed: u64,
    pub percent: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Progress {
    pub fn count(&mut self, status: TaskStatus) {
        self.tasks += u64::from(!matches!(status, TaskStatus::Cancelled | TaskStatus::Obsolete));
        self.done += u64::from(status == TaskStatus::Done);
        self.held += u64::from(status.is_held());
        self.review += u64::from(status == TaskStatus::Review);
        self.failed += u64::from(status == TaskStatus::Failed);
        self.percent = percent(self.done, self.tasks);
    }

    pub fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.done += other.done;
        self.held += other.held;
        self.review += other.review;
        self.failed += other.failed;
        self.percent = percent(self.done, self.tasks);
    }

    /// The status shown for a parent whose own status is `status`: in_progress once a part is held,
    /// in review or done.
    pub fn word(&self, status: TaskStatus) -> &'static str {
        self.status(status).as_str()
    }

    /// The same as a status.
    pub fn status(&self, status: TaskStatus) -> TaskStatus {
        match status {
            TaskStatus::Available if self.held + self.review + self.done > 0 => {
                TaskStatus::InProgress
            }
            other => other,
        }
    }
}

/// Of the statuses of two parts, the one that decides the parent's.
pub fn weightier(one: TaskStatus, other: TaskStatus) -> TaskStatus {
    const ORDER: [TaskStatus; 5] = [
        TaskStatus::Available,
        TaskStatus::Failed,
        TaskStatus::Done,
        TaskStatus::Cancelled,
        TaskStatus::Obsolete,
    ];
    let weight = |status| ORDER.iter().position(|one| *one == status);
    if weight(one) <= weight(other) { one } else { other }
}

/// The share that `done` is of `wanted`, rounded.
pub fn percent(done: u64, wanted: u64) -> u64 {
    (done * 100 + wanted / 2) / wanted.max(1)
}
