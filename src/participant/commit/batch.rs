//! The batch: calls that gather, are decided together under the journal's lock, and are appended.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Action, BETWEEN_TRIES};
use crate::journal::JournalError;
use crate::ops::Due;
use crate::participant::edits::{Examined, Verdict};
use crate::participant::lock::LOCK_PATIENCE;
use crate::participant::message::{Answer, Answers, Queued, waited};
use crate::state::Savepoint;
use crate::state::event::Recorded;

/// Most calls that are committed together.
const BATCH: usize = 64;
/// Most times that a batch is decided again because others have appended first, or that the board's
/// files are put back for it: while they are being deleted, they may be gone again at once.
const AGAIN: u32 = 100;

/// A batch that was decided. Its events are applied to the replica, and can be rolled back.
pub struct Decided {
    /// Kept, so that they can be decided again after a conflict.
    pub decisions: Vec<Decision>,
    pub edit: Option<(Examined, Verdict)>,
    pub due: Due,
    pub events: Vec<Recorded>,
    /// The seq before the first event, and at the end of the batch.
    pub before: u64,
    pub seq: u64,
    /// Where `rollback` goes back to.
    pub savepoint: Savepoint,
}

pub struct Decision {
    pub call: Queued,
    pub outcome: Outcome,
}

pub enum Outcome {
    Answer(Answer),
    /// The call waits for a better answer.
    Park,
}

impl Decided {
    /// The calls and the edit as they came.
    pub(super) fn taken_back(self) -> (Vec<Queued>, Option<Examined>) {
        let calls = self.decisions.into_iter().map(|decision| decision.call).collect();
        (calls, self.edit.map(|(examined, _)| examined))
    }
}

/// The answers of the batch, and the calls that wait on.
pub(super) fn parted(decisions: Vec<Decision>) -> (Answers, Vec<Queued>) {
    let (mut answers, mut parked) = (Answers::new(), Vec::new());
    for Decision { call, outcome } in decisions {
        match outcome {
            Outcome::Answer(answer) => answers.push((call.reply, answer)),
            Outcome::Park => parked.push(call),
        }
    }
    (answers, parked)
}

#[derive(Default)]
pub(super) struct Batch {
    pub queue: VecDeque<Queued>,
    /// A hand edit to decide on, and since when.
    edit: Option<(Examined, Instant)>,
    pub is_due: bool,
    step: Step,
    /// How often these calls were put back, or decided again.
    again: u32,
}

#[derive(Default)]
enum Step {
    #[default]
    Idle,
    /// Another process holds the lock; to be tried again then, unless a thread waits for it.
    Waiting {
        retry_at: Option<Instant>,
    },
    Decide(Vec<Queued>, Option<Examined>),
    Append(Box<Decided>),
    Find(Box<Decided>, JournalError),
    /// The lock is kept until the verdict on a hand edit is carried out.
    Kept,
    /// The driver is doing what it was told to.
    Busy,
}

impl Batch {
    pub(super) fn call(&mut self, call: Queued) {
        self.queue.push_back(call);
    }

    pub(super) fn edit(&mut self, examined: Examined, now: Instant) {
        self.edit = Some((examined, now));
    }

    pub(super) fn take_edit(&mut self) -> Option<Examined> {
        self.edit.take().map(|(examined, _)| examined)
    }

    /// Whether it would begin now.
    pub(super) fn is_ready(&self) -> bool {
        !self.queue.is_empty() && matches!(self.step, Step::Idle)
    }

    pub(super) fn is_complete(&self) -> bool {
        match self.step {
            Step::Idle => self.queue.is_empty() && self.edit.is_none() && !self.is_due,
            Step::Waiting { retry_at } => retry_at.is_none(),
            _ => false,
        }
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        if let Step::Waiting { retry_at } = self.step { retry_at } else { None }
    }

    pub(super) fn next(&mut self, now: Instant) -> Option<Action> {
        match std::mem::replace(&mut self.step, Step::Busy) {
            Step::Idle if !self.queue.is_empty() || self.edit.is_some() || self.is_due => {
                Some(Action::TryLock)
            }
            Step::Waiting { retry_at: Some(at) } if at <= now => Some(Action::TryLock),
            Step::Decide(calls, edit) => Some(Action::Decide(calls, edit)),
            Step::Append(decided) => Some(Action::Append(decided)),
            Step::Find(decided, error) => Some(Action::Find(decided, error)),
            step => {
                self.step = step;
                None
            }
        }
    }

    /// Takes out the calls, and the edit, that have waited too long for the lock.
    pub(super) fn late(&mut self, now: Instant) -> (Vec<Queued>, Option<Examined>) {
        if !matches!(self.step, Step::Waiting { .. }) {
            return (Vec::new(), None);
        }
        let is_late = |since: Instant| now.saturating_duration_since(since) > LOCK_PATIENCE;
        let edit = self.edit.take_if(|(_, since)| is_late(*since)).map(|(examined, _)| examined);
        let (late, rest): (VecDeque<_>, _) =
            self.queue.drain(..).partition(|call| is_late(call.entered + waited(call)));
        self.queue = rest;
        if self.queue.is_empty() && self.edit.is_none() && self.retry_at().is_some() {
            self.step = Step::Idle;
        }
        (late.into(), edit)
    }

    /// This process has the lock.
    pub(super) fn locked(&mut self) {
        let calls = self.queue.drain(..self.queue.len().min(BATCH)).collect();
        self.is_due = false;
        self.step = Step::Decide(calls, self.take_edit());
    }

    /// The thread has taken the lock. False if it is not wanted any more.
    pub(super) fn lock_came(&mut self) -> bool {
        if !matches!(self.step, Step::Waiting { .. }) {
            return matches!(self.step, Step::Kept);
        }
        let is_wanted = !self.queue.is_empty() || self.edit.is_some() || self.is_due;
        if is_wanted {
            self.locked();
        } else {
            self.step = Step::Idle;
        }
        is_wanted
    }

    /// Waits for a thread that asks for the lock, or until it is time to try again.
    pub(super) fn await_lock(&mut self, asks: bool, now: Instant) {
        self.step = Step::Waiting { retry_at: (!asks).then(|| now + BETWEEN_TRIES) };
    }

    pub(super) fn lock_replaced(&mut self) {
        if matches!(self.step, Step::Waiting { .. }) {
            self.step = Step::Idle;
        }
    }

    pub(super) fn append(&mut self, decided: Box<Decided>) {
        self.step = Step::Append(decided);
    }

    pub(super) fn find(&mut self, decided: Box<Decided>, error: JournalError) {
        self.step = Step::Find(decided, error);
    }

    /// Decides the same calls again. Gives them back if that was done too often.
    pub(super) fn decide_again(
        &mut self,
        decided: Decided,
    ) -> Option<(Vec<Queued>, Option<Examined>)> {
        let (calls, edit) = decided.taken_back();
        self.again += 1;
        if self.again > AGAIN {
            return Some((calls, edit));
        }
        self.step = Step::Decide(calls, edit);
        None
    }

    /// Puts the calls of a batch that could not begin back to where they were. False if that was
    /// done too often.
    pub(super) fn put_back(
        &mut self,
        calls: Vec<Queued>,
        edit: Option<Examined>,
        now: Instant,
    ) -> bool {
        self.edit = edit.map(|examined| (examined, now)).or(self.edit.take());
        calls.into_iter().rev().for_each(|call| self.queue.push_front(call));
        if matches!(self.step, Step::Busy) {
            self.step = Step::Idle;
        }
        self.again += 1;
        self.again <= AGAIN
    }

    /// The batch is over, but for the verdict on an edit if there is one.
    pub(super) fn appended(&mut self, keeps_lock: bool) {
        self.step = if keeps_lock { Step::Kept } else { Step::Idle };
        self.again = 0;
    }

    pub(super) fn rest(&mut self) {
        self.step = Step::Idle;
        self.again = 0;
    }

    /// The verdict on an edit is carried out. Returns whether the lock was kept for that.
    pub(super) fn release(&mut self) -> bool {
        let was_kept = matches!(self.step, Step::Kept);
        if was_kept {
            self.step = Step::Idle;
        }
        was_kept
    }
}
