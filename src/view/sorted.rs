//! The tasks of the board, sorted by how they stand: one pass over all of them.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::Counts;
use super::card::Named;
use crate::state::State;
use crate::state::claim::{in_scope, path_in_scope};
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

/// A task and its number.
#[derive(Clone, Copy)]
pub(super) struct Numbered<'s> {
    pub number: u64,
    pub task: &'s Arc<Task>,
}

/// Tasks without parts within the scope.
pub(super) struct Sorted<'s> {
    state: &'s State,
    /// Of all live tasks, whatever the scope.
    numbers: HashMap<&'s TaskId, u64>,
    pub counts: Counts,
    pub held: Vec<Numbered<'s>>,
    /// Those that wait for a reviewer, the longest first.
    pub in_review: Vec<Numbered<'s>>,
    /// Oldest first.
    pub failed: Vec<Numbered<'s>>,
    /// By the time that they wait for.
    pub delayed: Vec<Numbered<'s>>,
    /// Newest first.
    pub done: Vec<Numbered<'s>>,
}

impl<'s> Sorted<'s> {
    pub(super) fn of(state: &'s State, scope: Option<&str>) -> Self {
        let mut sorted = Self {
            state,
            numbers: HashMap::with_capacity(state.live_tasks()),
            counts: retired(state, scope),
            held: Vec::new(),
            in_review: Vec::new(),
            failed: Vec::new(),
            delayed: Vec::new(),
            done: Vec::new(),
        };
        for (number, task) in state.numbered() {
            sorted.numbers.insert(&task.id, number);
            if in_scope(task, scope) && !state.is_parent(&task.id) {
                sorted.take(Numbered { number, task });
            }
        }
        sorted.in_review.sort_by_key(|one| one.task.in_review_since());
        sorted.failed.sort_by_key(|one| one.task.completed_at);
        sorted.delayed.sort_by_key(|one| one.task.not_before);
        sorted.done.sort_by_key(|one| std::cmp::Reverse(one.task.completed_at));
        sorted
    }

    fn take(&mut self, one: Numbered<'s>) {
        let counts = &mut self.counts;
        counts.total += 1;
        let (counter, list) = match one.task.status {
            TaskStatus::Available if self.state.is_ready(&one.task.id) => (&mut counts.ready, None),
            TaskStatus::Available if self.state.is_blocked(one.task) => (&mut counts.blocked, None),
            TaskStatus::Available => (&mut counts.waiting, Some(&mut self.delayed)),
            TaskStatus::Claimed | TaskStatus::InProgress => {
                (&mut counts.in_work, Some(&mut self.held))
            }
            TaskStatus::Review => (&mut counts.in_review, Some(&mut self.in_review)),
            TaskStatus::Done => (&mut counts.done, Some(&mut self.done)),
            TaskStatus::Failed => (&mut counts.failed, Some(&mut self.failed)),
            TaskStatus::Cancelled | TaskStatus::Obsolete => (&mut counts.cancelled, None),
        };
        *counter += 1;
        if let Some(list) = list {
            list.push(one);
        }
    }

    pub(super) fn number(&self, id: &TaskId) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    pub(super) fn task(&self, id: &TaskId) -> Option<Numbered<'s>> {
        Some(Numbered { number: self.number(id)?, task: self.state.task(id)? })
    }

    /// The task as others name it, whether it is live, retired or not there.
    pub(super) fn named(&self, id: &TaskId) -> Named {
        match self.state.task(id) {
            Some(task) => Named::of(self.number(id), task),
            None => Named::gone(id, self.state.status_of(id)),
        }
    }
}

/// Counts of retired tasks.
fn retired(state: &State, scope: Option<&str>) -> Counts {
    let archived = state.board().archived;
    let (done, cancelled) = match scope {
        None => (archived.done, archived.cancelled + archived.obsolete),
        Some(scope) => {
            let stubs = state.retired().map(|(_, stub)| stub).filter(|stub| {
                !stub.parent && !stub.run && path_in_scope(stub.path.as_deref(), scope)
            });
            stubs.fold((0, 0), |(done, off), stub| match stub.status {
                TaskStatus::Done => (done + 1, off),
                _ => (done, off + 1),
            })
        }
    };
    Counts { done, cancelled, total: done + cancelled, ..Counts::default() }
}
