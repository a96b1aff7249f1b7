//! Parked calls, which wait for a better answer than there is now.
//!
//! Each is tried again once the board has changed, the longest waiting first; while nothing changes
//! they cost nothing. If there are very many, those for which there was no time come before the
//! others the next time, so that each has its turn however often the board changes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::message::Queued;
use crate::ops::AgentArgument;
use crate::state::State;

/// How often calls are looked for whose time is up or whose caller has gone.
const SWEEP: Duration = Duration::from_millis(50);
/// Most calls that are tried before new messages are heard again.
const LOOKED_AT: usize = 256;

pub(super) struct Parked {
    pub call: Queued,
    pub until: Instant,
    /// Number of calls that were parked before this one.
    number: u64,
    /// Whether there was no time to try it.
    passed_over: bool,
}

impl Parked {
    /// Whether the same agent waits for the same thing in both calls.
    fn is_same_waiter(&self, newer: &Queued) -> bool {
        let older = &self.call;
        newer.prepared.agent_argument() == AgentArgument::Required
            && older.prepared.name() == newer.prepared.name()
            && older.prepared.agent_id() == newer.prepared.agent_id()
            && older.caller.default_agent() == newer.caller.default_agent()
    }
}

/// All that the answer to a parked call depends on: two equal ones of one board mean that nothing
/// has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sight {
    seq: u64,
    delayed: usize,
    hurried: bool,
}

impl Sight {
    pub(super) fn of(state: &State, hurried: bool) -> Self {
        Self { seq: state.seq(), delayed: state.delayed_count(), hurried }
    }
}

#[derive(Default)]
pub(super) struct Waiting {
    /// Calls to be tried.
    unsettled: VecDeque<Parked>,
    /// Calls known to wait as long as the board stays as it was.
    settled: VecDeque<Parked>,
    sight: Option<Sight>,
    /// How many more calls there is time to try.
    left: usize,
    parked: u64,
    swept: Option<Instant>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.unsettled.len() + self.settled.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Parks a call, and returns the older ones that it supersedes.
    pub(super) fn park(&mut self, call: Queued, until: Instant) -> Vec<Parked> {
        let mut older = Vec::new();
        for calls in [&mut self.settled, &mut self.unsettled] {
            while let Some(index) = calls.iter().position(|parked| parked.is_same_waiter(&call)) {
                older.extend(calls.remove(index));
            }
        }
        self.unsettled.push_back(Parked { call, until, number: self.parked, passed_over: false });
        self.parked += 1;
        older
    }

    /// Notes what the board is like now, and has all calls tried again if that is different; none
    /// for a board that does not exist, of which nothing is known.
    pub(super) fn see(&mut self, sight: Option<Sight>) {
        self.left = LOOKED_AT;
        if sight.is_none() || self.sight != sight {
            self.sight = sight;
            self.unsettled.append(&mut self.settled);
            // Those for which there was no time come first, in the order that they were in.
            self.unsettled
                .make_contiguous()
                .sort_by_key(|parked| (!parked.passed_over).then_some(parked.number));
        }
    }

    /// The next call to try; none when all have been tried, or as many as there was time for.
    pub(super) fn next_unsettled(&mut self) -> Option<Parked> {
        if self.left == 0 {
            self.unsettled.iter_mut().for_each(|parked| parked.passed_over = true);
            return None;
        }
        self.left -= 1;
        self.unsettled.pop_front()
    }

    pub(super) fn settle(&mut self, parked: Parked) {
        self.settled.push_back(Parked { passed_over: false, ..parked });
    }

    /// Takes out the calls whose time is up, and forgets those whose caller has gone.
    pub(super) fn due(&mut self) -> Vec<Parked> {
        if self.swept.is_some_and(|swept| swept.elapsed() < SWEEP) {
            return Vec::new();
        }
        let now = Instant::now();
        self.swept = Some(now);
        let mut due = Vec::new();
        for calls in [&mut self.settled, &mut self.unsettled] {
            calls.retain(|parked| !parked.call.reply.is_closed());
            if calls.iter().any(|parked| parked.until <= now) {
                let (late, rest): (VecDeque<_>, _) =
                    calls.drain(..).partition(|parked| parked.until <= now);
                *calls = rest;
                due.extend(late);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn park(waiting: &mut Waiting, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let (call, _) = Queued::of("wait_for_events", json!({"since_seq": number}));
            let entered = call.entered;
            waiting.park(call, entered);
        }
    }

    fn number(parked: &Parked) -> usize {
        parked.call.prepared.params()["since_seq"].as_u64().unwrap() as usize
    }

    /// Has the calls tried at event `seq`, up to `room` of them, which all wait on; returns their
    /// numbers.
    fn look(waiting: &mut Waiting, seq: u64, room: usize) -> Vec<usize> {
        waiting.see(Some(Sight { seq, delayed: 0, hurried: false }));
        let mut looked_at = Vec::new();
        while looked_at.len() < room
            && let Some(parked) = waiting.next_unsettled()
        {
            looked_at.push(number(&parked));
            waiting.settle(parked);
        }
        looked_at
    }

    #[test]
    fn each_of_very_many_has_its_turn_although_the_board_changes_with_every_turn() {
        let mut waiting = Waiting::default();
        let (half, all) = (LOOKED_AT / 2, LOOKED_AT * 5 / 2);
        park(&mut waiting, 0..all);
        let turn = |waiting: &mut Waiting, seq| look(waiting, seq, usize::MAX);
        assert!(turn(&mut waiting, 1).into_iter().eq(0..LOOKED_AT));
        assert!(turn(&mut waiting, 2).into_iter().eq(LOOKED_AT..2 * LOOKED_AT));
        assert!(turn(&mut waiting, 3).into_iter().eq((2 * LOOKED_AT..all).chain(0..half)));
        assert!(turn(&mut waiting, 4).into_iter().eq(half..half + LOOKED_AT));
    }

    #[test]
    fn who_has_waited_longest_is_first_again_when_something_has_come_for_another() {
        let mut waiting = Waiting::default();
        park(&mut waiting, 0..4);
        assert_eq!(look(&mut waiting, 1, 1), [0]);
        let woken = waiting.next_unsettled();
        assert_eq!(woken.as_ref().map(number), Some(1));
        park(&mut waiting, 4..5);
        assert_eq!(look(&mut waiting, 2, usize::MAX), [0, 2, 3, 4]);
        park(&mut waiting, 5..6);
        assert_eq!(look(&mut waiting, 3, usize::MAX), [0, 2, 3, 4, 5]);
    }
}
