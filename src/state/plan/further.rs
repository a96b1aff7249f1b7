//! What a plan says of an item that comes from another board: how it may be tried, and what became
//! of it there.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::delta::Delta;
use crate::state::agent::Demands;
use crate::state::brought::{Brought, Past};
use crate::state::event::{NewTask, Replanned, TaskChange};
use crate::state::id::{TaskId, is_number};
use crate::state::review::Review;
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, Task, TaskStatus};

/// Settings and the past of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Further {
    /// Id that the new task gets, unless the board has it already.
    pub task_id: Option<TaskId>,
    pub trials: Trials,
    pub past: Past,
}

/// How a task may be tried; what is not said stays as it is on the board.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trials {
    pub max_attempts: Option<u32>,
    pub timeout_seconds: Option<u32>,
    pub demands: Option<Demands>,
    // Left out of the hash where nothing is said, as boards have it from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl Trials {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Gives a new task what is said.
    pub(super) fn give_to(&self, new: &mut NewTask) {
        new.max_attempts = self.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
        new.timeout_seconds = self.timeout_seconds;
        new.demands = self.demands.clone().unwrap_or_default();
        new.review = self.review;
    }

    /// The same settings as the task has them.
    pub(super) fn of(&self, task: &Task) -> Self {
        Self {
            max_attempts: self.max_attempts.map(|_| task.max_attempts),
            timeout_seconds: self.timeout_seconds.and(task.timeout_seconds),
            demands: self.demands.as_ref().map(|_| Demands::clone(&task.demands)),
            review: task.review,
        }
    }

    /// Adds what differs from the task to its change.
    pub(super) fn change(&self, task: &Task, change: &mut TaskChange) {
        change.max_attempts = self.max_attempts.filter(|most| *most != task.max_attempts);
        change.timeout_seconds =
            self.timeout_seconds.filter(|seconds| Some(*seconds) != task.timeout_seconds);
        change.review = self.review.filter(|review| Some(*review) != task.review);
        change.demands = self.demands.clone().filter(|demands| *demands != *task.demands);
    }
}

impl Delta<'_> {
    /// What the import brings to the board: the past of new tasks and of those that it says are
    /// done.
    pub(super) fn brought(
        &self,
        created: &[NewTask],
        changed: &[Replanned],
    ) -> Option<Box<Brought>> {
        let mut brought = self.state.news_of(&self.plan.brings);
        let items = self.plan.items.iter().zip(&self.ids);
        // Of several items that want an id, the first one counts.
        let called: HashMap<&TaskId, &TaskId> = items
            .clone()
            .rev()
            .filter_map(|(item, id)| Some((item.further.task_id.as_ref()?, id)))
            .collect();
        for one in &mut brought.discoveries {
            one.task_id = one.task_id.take().and_then(|id| called.get(&id).copied().cloned());
        }
        let new = created.iter().map(|new| &new.id);
        let completed =
            changed.iter().filter(|one| one.becomes == Some(TaskStatus::Done)).map(|one| &one.task);
        let due: HashSet<&TaskId> = new.chain(completed).collect();
        let with_past =
            items.filter(|(item, id)| !item.further.past.is_empty() && due.contains(id));
        brought.tasks =
            with_past.map(|(item, id)| (id.clone(), item.further.past.clone())).collect();
        Some(brought).filter(|brought| !brought.is_empty()).map(Box::new)
    }

    /// The id that the item wants, if it is free and no number.
    pub(super) fn wanted_id(&self, number: usize) -> Option<&TaskId> {
        let wanted = self.plan.items[number].further.task_id.as_ref()?;
        let is_free = |id: &&TaskId| self.state.status_of(id).is_none();
        Some(wanted).filter(|id| !is_number(id.as_str()) && is_free(id))
    }
}
