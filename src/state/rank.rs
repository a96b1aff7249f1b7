//! The order of ready tasks: by rank, which follows from priority and waiting.

use super::aging::{Aging, Rank};
use super::id::TaskId;
use super::task::Task;
use super::time::Timestamp;
use super::{Ordinal, State};

/// All priorities, the first first.
const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=10;

impl State {
    /// Sets how fast ready tasks rise. A change orders them anew; it is not an event, because what
    /// is claimed is recorded and the order is not.
    pub fn set_aging(&mut self, aging: Aging) {
        if self.index.aging() == aging {
            return;
        }
        let ready: Vec<Ordinal> = self.index.ready().collect();
        let each = |state: &mut Self, place: fn(&mut Self, Ordinal, &Task)| {
            for ordinal in &ready {
                if let Some(task) = state.records.tasks.get(*ordinal).cloned() {
                    place(state, *ordinal, &task);
                }
            }
        };
        each(self, |state, ordinal, task| state.index.displace(ordinal, task));
        self.index.set_aging(aging);
        each(self, |state, ordinal, task| state.index.place(ordinal, task, state.rank(task)));
    }

    /// The priority that counts for a claim at `now`. Only ready tasks rise.
    pub fn effective_priority(&self, task: &Task, aging: Aging, now: Timestamp) -> u8 {
        if aging.is_off() || !self.is_ready(&task.id) {
            return task.priority;
        }
        aging.risen(task.priority, self.ready_since(task), now)
    }

    pub(super) fn rank(&self, task: &Task) -> Rank {
        let aging = self.index.aging();
        let since = if aging.is_off() { Timestamp::default() } else { self.ready_since(task) };
        let (at, step) = self.turn_of(task);
        (aging.urgency(task.priority, since), at, step)
    }

    /// The priority that places a ready task before another in the order of claims, or behind all:
    /// of those that do, the nearest to its own. If none places it just there, one that places it
    /// further ahead. None if the other has the first priority and the earlier turn, or if one of
    /// them is not ready.
    pub fn priority_before(&self, id: &TaskId, before: Option<&TaskId>) -> Option<u8> {
        let task = self.task(id).filter(|task| self.is_ready(&task.id))?;
        let others: Vec<_> =
            self.ready_in_order().into_iter().filter(|other| other.id != *id).collect();
        let place = match before {
            Some(before) => others.iter().position(|other| other.id == *before)?,
            None => others.len(),
        };
        let rank = |priority| self.rank(&Task { priority, ..Task::clone(task) });
        let is_ahead =
            |priority: &u8| others.get(place).is_none_or(|next| rank(*priority) < self.rank(next));
        let is_behind = |priority: &u8| {
            let last = place.checked_sub(1).and_then(|place| others.get(place));
            last.is_none_or(|last| self.rank(last) < rank(*priority))
        };
        let distance = |priority: &u8| priority.abs_diff(task.priority);
        let ahead = PRIORITIES.filter(is_ahead);
        let exact = ahead.clone().filter(is_behind).min_by_key(distance);
        exact.or_else(|| ahead.min_by_key(distance))
    }

    /// Turn of the task in the order of creation, or in that of its plan.
    pub(super) fn turn_of(&self, task: &Task) -> (Ordinal, i32) {
        let beside = task.planned.as_ref().and_then(|planned| planned.beside.as_ref());
        let place = beside.and_then(|beside| Some((self.ordinal_of(&beside.task)?, beside.step)));
        place.unwrap_or_else(|| (self.ordinal_of(&task.id).unwrap_or_default(), 0))
    }

    /// When the last thing happened that a ready task had to wait for: it was created or reset, its
    /// last attempt, the review of it or the pause before a retry ended, or a dependency or a part
    /// was done. Dependencies count as if the task had always had them.
    pub fn ready_since(&self, task: &Task) -> Timestamp {
        let ended = task.attempts.last().and_then(|attempt| attempt.ended_at);
        let reviewed = task.reviewed().map(|reviewed| reviewed.at);
        let own = [ended, reviewed, task.reset_at, task.not_before].into_iter().flatten();
        let done = self.prerequisites(task).filter_map(|id| self.task(id)?.completed_at);
        let parts = self.parts(&task.id).filter_map(|part| part.completed_at);
        own.chain(done).chain(parts).fold(task.created_at, Timestamp::max)
    }
}
