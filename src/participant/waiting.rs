//! Calls that would rather wait than have the answer there is now.
//!
//! Each is looked at again once the board has changed, the longest waiting first; while nothing changes they cost nothing. Of
//! very many, those for whom there was no time are looked at before the others, so that each has its turn however often
//! the board changes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Queued;
use crate::ops::AgentArgument;
use crate::state::State;

/// How often those are looked for whose time is up, or who have gone.
const SWEEP: Duration = Duration::from_millis(50);
/// Calls that are looked at before others are heard again.
const LOOKED_AT: usize = 256;

pub struct Parked {
    pub call: Queued,
    pub until: Instant,
    /// How many had been parked before.
    number: u64,
    /// There was no time for it.
    passed_over: bool,
}

impl Parked {
    /// Whether one agent waits in both for the same.
    fn is_same_waiter(&self, newer: &Queued) -> bool {
        let older = &self.call;
        newer.prepared.agent_argument() == AgentArgument::Required
            && older.prepared.name() == newer.prepared.name()
            && older.prepared.agent_id() == newer.prepared.agent_id()
            && older.default_agent == newer.default_agent
    }
}

/// All that the answer to a call that waits depends on: two equal ones of one board mean that nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    seq: u64,
    delayed: usize,
    hurried: bool,
}

impl Sight {
    pub fn of(state: &State, hurried: bool) -> Self {
        Self { seq: state.seq(), delayed: state.delayed_count(), hurried }
    }
}

#[derive(Default)]
pub struct Waiting {
    /// To be looked at.
    unsettled: VecDeque<Parked>,
    /// Known to wait as long as the board stays what it was.
    settled: VecDeque<Parked>,
    sight: Option<Sight>,
    /// How many there is still time for.
    left: usize,
    parked: u64,
    swept: Option<Instant>,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.unsettled.len() + self.settled.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Takes a call in; beside it, the older ones that it replaces.
    pub fn park(&mut self, call: Queued, until: Instant) -> Vec<Parked> {
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

    /// What the board is like now; none for one that is not there, of which nothing is known.
    pub fn see(&mut self, sight: Option<Sight>) {
        self.left = LOOKED_AT;
        if sight.is_none() || self.sight != sight {
            self.sight = sight;
            self.unsettled.append(&mut self.settled);
            // Those for whom there was no time stay in their order.
            self.unsettled.make_contiguous().sort_by_key(|parked| (!parked.passed_over).then_some(parked.number));
        }
    }

    /// None when all have been looked at, or as many as there was time for.
    pub fn next_unsettled(&mut self) -> Option<Parked> {
        if self.left == 0 {
            self.unsettled.iter_mut().for_each(|parked| parked.passed_over = true);
            return None;
        }
        self.left -= 1;
        self.unsettled.pop_front()
    }

    pub fn settle(&mut self, parked: Parked) {
        self.settled.push_back(Parked { passed_over: false, ..parked });
    }

    /// Those whose time is up; who has gone is forgotten.
    pub fn due(&mut self) -> Vec<Parked> {
        if self.swept.is_some_and(|swept| swept.elapsed() < SWEEP) {
            return Vec::new();
        }
        let now = Instant::now();
        self.swept = Some(now);
        let mut due = Vec::new();
        for calls in [&mut self.settled, &mut self.unsettled] {
            calls.retain(|parked| !parked.call.reply.is_closed());
            if calls.iter().any(|parked| parked.until <= now) {
                let (late, rest): (VecDeque<_>, _) = calls.drain(..).partition(|parked| parked.until <= now);
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
            let (call, _) = Queued::new("wait_for_events", json!({"since_seq": number}));
            let entered = call.entered;
            waiting.park(call, entered);
        }
    }

    fn number(parked: &Parked) -> usize {
        parked.call.prepared.params()["since_seq"].as_u64().unwrap() as usize
    }

    /// The board is at event `seq`: who is looked at then, up to `room`, and waits on.
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
