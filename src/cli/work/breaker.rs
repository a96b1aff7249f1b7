//! A circuit breaker: after several failures in a row, whatever the task, the command is not run
//! for a while.

use serde::{Deserialize, Serialize};

use crate::state::time::{SECOND, Timestamp};

/// First pause, in milliseconds; it doubles.
const FIRST_PAUSE: i64 = 30 * SECOND;
const LONGEST_PAUSE: i64 = 30 * 60 * SECOND;
/// Pauses without one success in between, after which the worker gives up.
const PAUSES: u32 = 3;

/// The state of the circuit breaker, kept in the workflow's state so that a restart does not close
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Breaker {
    /// Hash of the command; another command starts afresh.
    pub command: String,
    /// Failures since the last success.
    pub failures: u32,
    /// Pauses since the last success.
    pub pauses: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Timestamp>,
}

impl Breaker {
    /// The breaker for `command`, in its known state if that is for the same command. A breaker
    /// that had given up starts afresh: whoever continues has fixed the cause.
    pub(super) fn of(command: &str, known: Option<Self>) -> Self {
        let known = known.filter(|known| known.command == command && !known.has_given_up());
        known.unwrap_or_else(|| Self { command: command.to_owned(), ..Self::default() })
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self { command: std::mem::take(&mut self.command), ..Self::default() };
    }

    /// Opens after `threshold` failures in a row, and again after each failure that follows a
    /// pause. 0 never opens.
    pub(super) fn failed(&mut self, threshold: u32, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        let is_open = self.open_until.is_some_and(|until| until > now);
        if threshold > 0 && self.failures >= threshold && !is_open {
            self.pauses += 1;
            self.open_until = Some(now + self.pause());
        }
    }

    /// Length of the latest pause, in milliseconds.
    fn pause(&self) -> i64 {
        (FIRST_PAUSE << self.pauses.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.pauses > PAUSES
    }

    /// Milliseconds until the command may run again. After the clock was set back, at most one
    /// whole pause is left; otherwise it would last until the clock has caught up.
    pub(super) fn left(&mut self, now: Timestamp) -> i64 {
        let latest = now + self.pause();
        self.open_until = self.open_until.map(|until| until.min(latest));
        self.open_until.map_or(0, |until| until.since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_open_it_and_a_success_closes_it() {
        let (mut breaker, now) = (Breaker::of("c", None), Timestamp::from_millis(1_000_000));
        (0..2).for_each(|_| breaker.failed(3, now));
        assert_eq!(breaker.left(now), 0);
        breaker.failed(3, now);
        assert_eq!(breaker.left(now), FIRST_PAUSE);
        // Failures of runs that had already begun.
        breaker.failed(3, now);
        assert_eq!((breaker.left(now), breaker.pauses), (FIRST_PAUSE, 1));
        let later = now + FIRST_PAUSE;
        breaker.failed(3, later);
        assert_eq!((breaker.left(later), breaker.pauses), (2 * FIRST_PAUSE, 2));
        breaker.succeeded();
        assert_eq!((breaker.left(later), breaker.failures), (0, 0));
    }

    #[test]
    fn it_gives_up_in_the_end_and_judges_neither_another_command_nor_one_that_was_mended() {
        let mut breaker = Breaker::of("c", None);
        let mut now = Timestamp::from_millis(0);
        while !breaker.has_given_up() {
            assert_eq!(Breaker::of("c", Some(breaker.clone())), breaker);
            assert_eq!(Breaker::of("d", Some(breaker.clone())).failures, 0);
            breaker.failed(1, now);
            now = now + breaker.left(now);
        }
        assert_eq!(breaker.pauses, PAUSES + 1);
        assert_eq!(Breaker::of("c", Some(breaker)), Breaker::of("c", None));
    }

    #[test]
    fn clock_that_is_set_back_begins_the_pause_anew_at_most() {
        let (mut breaker, now) = (Breaker::of("c", None), Timestamp::from_millis(1_000_000_000));
        breaker.failed(1, now);
        let back = now + -3_600 * SECOND;
        assert_eq!(breaker.left(back), FIRST_PAUSE);
        assert_eq!(breaker.left(back + FIRST_PAUSE), 0);
        breaker.failed(1, back + FIRST_PAUSE);
        assert_eq!((breaker.left(back), breaker.pauses), (2 * FIRST_PAUSE, 2));
    }

    #[test]
    fn zero_never_opens() {
        let mut breaker = Breaker::of("c", None);
        (0..100).for_each(|_| breaker.failed(0, Timestamp::from_millis(0)));
        assert_eq!(breaker.left(Timestamp::from_millis(0)), 0);
    }
}
