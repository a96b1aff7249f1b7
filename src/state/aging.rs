//! Ageing: the longer a task is ready, the earlier it is claimed, so that none waits for ever
//! behind more urgent ones.
//!
//! A ready task's priority rises by one for every step that it waits, up to the highest. The rise
//! is linear, so two tasks that wait keep their order: it is the order of the times at which each
//! reaches the highest priority. That time is a task's rank. Nothing is updated as time passes, and
//! tasks that have reached the highest priority come in the order in which they reached it.

use super::task::Task;
use super::time::{MINUTE, Timestamp};
use super::{Ordinal, State};

/// Milliseconds in which a ready task rises by one priority; 0 if it never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aging(i64);

/// Place among the ready tasks: lower ones are claimed first. By urgency, then by the order of
/// creation or that of the plan: the task beside which it is claimed, and the steps from there.
pub type Rank = (i64, Ordinal, i32);

const HIGHEST: u8 = 1;

impl Aging {
    pub fn every(minutes: u32) -> Self {
        Self(i64::from(minutes) * MINUTE)
    }

    pub fn is_off(self) -> bool {
        self == Self::default()
    }

    /// The urgency of a task that has been ready since `since`. It does not depend on the present
    /// time.
    pub fn urgency(self, priority: u8, since: Timestamp) -> i64 {
        let priority = i64::from(priority);
        if self.is_off() { priority } else { priority * self.0 + since.millis() }
    }

    /// The priority that the task has risen to by `now`.
    pub fn risen(self, priority: u8, since: Timestamp, now: Timestamp) -> u8 {
        if self.is_off() || priority <= HIGHEST {
            return priority;
        }
        let steps = u8::try_from(now.since(since) / self.0).unwrap_or(u8::MAX);
        priority.saturating_sub(steps).max(HIGHEST)
    }
}

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
                if let Some(task) = state.tasks.get(*ordinal).cloned() {
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

    /// Turn of the task in the order of creation, or in that of its plan.
    pub(super) fn turn_of(&self, task: &Task) -> (Ordinal, i32) {
        let beside = task.planned.as_ref().and_then(|planned| planned.beside.as_ref());
        let place = beside.and_then(|beside| Some((self.ordinal_of(&beside.task)?, beside.step)));
        place.unwrap_or_else(|| (self.ordinal_of(&task.id).unwrap_or_default(), 0))
    }

    /// When the last thing happened that a ready task had to wait for: it was created or reset, its
    /// last attempt or the pause before a retry ended, or a dependency was done. Dependencies
    /// count as if the task had always had them.
    fn ready_since(&self, task: &Task) -> Timestamp {
        let ended = task.attempts.last().and_then(|attempt| attempt.ended_at);
        let own = [ended, task.reset_at, task.not_before].into_iter().flatten();
        let done = self.prerequisites(task).filter_map(|id| self.task(id)?.completed_at);
        own.chain(done).fold(task.created_at, Timestamp::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u32 = 10;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * MINUTE)
    }

    #[test]
    fn priority_rises_by_one_for_every_step_up_to_the_highest() {
        let aging = Aging::every(STEP);
        let risen: Vec<_> =
            [0, 9, 10, 39, 40, 49, 1_000_000].map(|now| aging.risen(5, at(0), at(now))).into();
        assert_eq!(risen, [5, 5, 4, 2, 1, 1, 1]);
        assert_eq!(aging.risen(5, at(20), at(10)), 5, "a clock that stepped back lowers nothing");
        assert_eq!(aging.risen(1, at(0), at(1_000)), 1);
        assert_eq!(Aging::default().risen(5, at(0), at(1_000_000)), 5);
    }

    #[test]
    fn ranks_order_tasks_as_their_risen_priorities_do_at_any_time() {
        let aging = Aging::every(STEP);
        let tasks: Vec<_> = (1..=10)
            .flat_map(|priority| (0..200).step_by(7).map(move |since| (priority, since)))
            .collect();
        for (one, other) in
            tasks.iter().zip(tasks.iter().skip(31)).chain(tasks.iter().zip(tasks.iter().rev()))
        {
            let rank = |task: &(u8, i64)| aging.urgency(task.0, at(task.1));
            if rank(one) > rank(other) {
                continue;
            }
            for now in (200..400).step_by(3) {
                let risen = |task: &(u8, i64)| aging.risen(task.0, at(task.1), at(now));
                assert!(risen(one) <= risen(other), "{one:?} before {other:?} at {now}");
            }
        }
    }

    #[test]
    fn without_ageing_the_rank_is_the_priority() {
        assert_eq!(Aging::default().urgency(7, at(3)), 7);
        assert_eq!(Aging::every(0), Aging::default());
    }
}
