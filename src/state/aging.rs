//! Ageing: the longer a task is ready, the earlier it is claimed, so that none waits for ever
//! behind more urgent ones.
//!
//! A ready task's priority rises by one for every step that it waits, up to the highest. The rise
//! is linear, so two tasks that wait keep their order: it is the order of the times at which each
//! reaches the highest priority. That time is a task's rank. Nothing is updated as time passes, and
//! tasks that have reached the highest priority come in the order in which they reached it.

use super::table::Ordinal;
use super::time::{MINUTE, Timestamp};

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
