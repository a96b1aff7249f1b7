//! Calls that would rather wait than have the answer there is now.
//!
//! Each is looked at again once the board has changed, the longest waiting first; while nothing changes they cost nothing.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Queued;
use crate::ops::AgentArgument;
use crate::state::State;

/// How often those are looked for whose time is up, or who have gone.
const SWEEP: Duration = Duration::from_millis(50);

pub struct Parked {
    pub call: Queued,
    pub until: Instant,
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
        self.unsettled.push_back(Parked { call, until });
        older
    }

    /// What the board is like now; none for one that is not there, of which nothing is known.
    pub fn see(&mut self, sight: Option<Sight>) {
        if sight.is_none() || self.sight != sight {
            self.sight = sight;
            self.settled.append(&mut self.unsettled);
            std::mem::swap(&mut self.settled, &mut self.unsettled);
        }
    }

    pub fn next_unsettled(&mut self) -> Option<Parked> {
        self.unsettled.pop_front()
    }

    pub fn settle(&mut self, parked: Parked) {
        self.settled.push_back(parked);
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
