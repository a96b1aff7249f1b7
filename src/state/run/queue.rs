//! What follows from the runs, kept up with every change so that no claim scans them.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use super::RunStatus;
use crate::state::agent::Demands;
use crate::state::id::SessionId;
use crate::state::index::Set;
use crate::state::table::Ordinal;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    all: BTreeSet<Ordinal>,
    by_status: [usize; RunStatus::ALL.len()],
    /// Pending runs by demand set, in claim order: a claim looks at the first run of each set that
    /// the runner meets.
    pending: BTreeMap<Set, BTreeSet<(u8, Ordinal)>>,
    /// Pending runs, by the end of their wait for a fitting runner.
    unmatched: BTreeSet<(Timestamp, Ordinal)>,
    of_session: HashMap<SessionId, BTreeSet<Ordinal>>,
    /// Runs that are claimed and not begun.
    claimed: BTreeSet<Ordinal>,
    /// Runs that have ended, oldest first.
    over: BTreeSet<(Timestamp, Ordinal)>,
}

impl Queue {
    pub fn live(&self) -> usize {
        self.all.len()
    }

    pub fn count(&self, status: RunStatus) -> usize {
        self.by_status[status as usize]
    }

    pub fn pending(&self) -> usize {
        self.count(RunStatus::Pending)
    }

    pub fn replace(&mut self, ordinal: Ordinal, old: Option<&Task>, new: Option<&Task>) {
        if let Some((task, run)) = old.and_then(|task| Some((task, task.run.as_deref()?))) {
            self.all.remove(&ordinal);
            self.by_status[RunStatus::of(task) as usize] -= 1;
            if let Some(ordinals) = self.of_session.get_mut(&run.session_id) {
                ordinals.remove(&ordinal);
                if ordinals.is_empty() {
                    self.of_session.remove(&run.session_id);
                }
            }
            self.claimed.remove(&ordinal);
            self.over.remove(&(end(task), ordinal));
            if task.status == TaskStatus::Available {
                let demands = Set(task.demands.clone());
                if let Some(set) = self.pending.get_mut(&demands) {
                    set.remove(&(task.priority, ordinal));
                    if set.is_empty() {
                        self.pending.remove(&demands);
                    }
                }
                self.unmatched.remove(&(run.no_match_until.unwrap_or_default(), ordinal));
            }
        }
        if let Some((task, run)) = new.and_then(|task| Some((task, task.run.as_deref()?))) {
            self.all.insert(ordinal);
            self.by_status[RunStatus::of(task) as usize] += 1;
            self.of_session.entry(run.session_id.clone()).or_default().insert(ordinal);
            match task.status {
                TaskStatus::Available => {
                    self.pending
                        .entry(Set(task.demands.clone()))
                        .or_default()
                        .insert((task.priority, ordinal));
                    self.unmatched.extend(run.no_match_until.map(|until| (until, ordinal)));
                }
                TaskStatus::Claimed => drop(self.claimed.insert(ordinal)),
                TaskStatus::InProgress => {}
                _ => drop(self.over.insert((end(task), ordinal))),
            }
        }
    }

    pub(in crate::state) fn newest(
        &self,
        before: Option<Ordinal>,
    ) -> impl Iterator<Item = Ordinal> + '_ {
        self.all.range(..before.unwrap_or(Ordinal::MAX)).rev().copied()
    }

    pub(in crate::state) fn of_session(
        &self,
        session: &SessionId,
    ) -> impl DoubleEndedIterator<Item = Ordinal> + '_ + use<'_> {
        self.of_session.get(session).into_iter().flatten().copied()
    }

    /// The demand sets of pending runs, each with its first run.
    pub(in crate::state) fn first_of_each(
        &self,
    ) -> impl Iterator<Item = (&Demands, (u8, Ordinal))> {
        self.pending.iter().filter_map(|(demands, runs)| Some((demands.0.as_ref(), *runs.first()?)))
    }

    /// The demand sets of pending runs, with how many runs have each.
    pub fn demanded(&self) -> impl Iterator<Item = (&Demands, usize)> {
        self.pending.iter().map(|(demands, runs)| (demands.0.as_ref(), runs.len()))
    }

    pub(in crate::state) fn unmatched(&self, now: Timestamp) -> impl Iterator<Item = Ordinal> + '_ {
        self.unmatched.range(..=(now, Ordinal::MAX)).map(|(_, ordinal)| *ordinal)
    }

    pub fn next_unmatched(&self) -> Option<Timestamp> {
        self.unmatched.first().map(|(until, _)| *until)
    }

    pub(in crate::state) fn claimed(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.claimed.iter().copied()
    }

    pub(in crate::state) fn pending_runs(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.pending.values().flatten().map(|(_, ordinal)| *ordinal)
    }

    pub(in crate::state) fn over(&self) -> impl ExactSizeIterator<Item = Ordinal> + '_ {
        self.over.iter().map(|(_, ordinal)| *ordinal)
    }
}

fn end(task: &Task) -> Timestamp {
    task.completed_at.unwrap_or(task.created_at)
}
