//! The round: it completes all commits since the last one. The journal's log is synced, the state
//! file is replaced, and then everything that depends on the two leaves: answers, reads, and the
//! feed's events.
//!
//! A round holds the state file's lock. If others append, it takes in their events, too, so a
//! process that has waited for that lock usually finds its own events durable and shown, and has
//! nothing left to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Action, BETWEEN_TRIES};
use crate::ops::add_warning;
use crate::participant::edits::{Examined, Verdict};
use crate::participant::error::{BoardError, CallError};
use crate::participant::holder::Holder;
use crate::participant::lock::LOCK_PATIENCE;
use crate::participant::message::{Answer, Answers};
use crate::state::event::Recorded;

/// Time between two attempts while a thread waits for the state file's lock, in case that lock is
/// held by a process that shows nothing.
const WHILE_AWAITED: Duration = Duration::from_millis(250);
/// Time between two attempts to show what could not be shown.
const BETWEEN_SHOWS: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Round {
    /// Answers that wait to become durable, ordered by `seq`.
    pub held: VecDeque<Held>,
    /// Events that the feed does not have yet, ordered by `seq`.
    pub unpublished: Vec<Recorded>,
    /// The seq that the next round must make durable and the state file must show; none if there is
    /// nothing to do.
    pending: Option<u64>,
    /// What becomes of a hand edit at the end of that round.
    edit: Option<(Examined, Verdict)>,
    step: Step,
    /// Since when a round has waited for another process to release the lock.
    waits_since: Option<Instant>,
    retry_at: Option<Instant>,
    /// Whether a thread waits for the lock.
    is_awaited: bool,
    /// Why the state file could not be brought up to date, if it is behind.
    pub unshown: Option<String>,
    retried_at: Option<Instant>,
}

/// An answer that depends on the events up to `seq`, and leaves when those are durable.
pub(super) struct Held {
    seq: u64,
    reply: oneshot::Sender<Answer>,
    answer: Answer,
    /// A read, whose answer stands even if the round fails or the state file cannot be written.
    read: bool,
}

/// A round that has found the board's files gone.
pub(super) struct Gone {
    pub seq: u64,
    /// Why the files could not be examined, if it is only that.
    pub unseen: Option<String>,
}

#[derive(Default)]
enum Step {
    #[default]
    Resting,
    Ask,
    /// The lock is held by another process, which may have shown what is pending.
    AskAgain,
    Asking {
        is_held_up: bool,
    },
    TryLock,
    Sync,
    Syncing {
        seq: u64,
    },
    Place {
        seq: u64,
    },
    Placing {
        seq: u64,
    },
    /// `why` it goes without the state file; none if its lock has been held for too long.
    SyncAlone {
        why: Option<String>,
    },
    SyncingAlone {
        why: Option<String>,
    },
    /// The driver is doing what it was told to.
    Busy,
}

impl Round {
    pub(super) fn hold(&mut self, seq: u64, answers: Answers, edit: Option<(Examined, Verdict)>) {
        self.pending = Some(seq);
        self.edit = edit;
        let held =
            answers.into_iter().map(|(reply, answer)| Held { seq, reply, answer, read: false });
        self.held.extend(held);
    }

    pub(super) fn hold_read(&mut self, seq: u64, answers: Answers) -> Option<Answers> {
        if !self.is_soon() {
            return Some(answers);
        }
        self.pending = Some(seq);
        let held =
            answers.into_iter().map(|(reply, answer)| Held { seq, reply, answer, read: true });
        self.held.extend(held);
        None
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some() || !self.is_resting()
    }

    /// Whether a round is pending and does not wait for another process.
    pub(super) fn is_soon(&self) -> bool {
        self.pending.is_some() && self.waits_since.is_none()
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.step, Step::Resting)
    }

    pub(super) fn is_syncing(&self) -> bool {
        matches!(self.step, Step::Syncing { .. })
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at.filter(|_| self.pending.is_some() && self.is_resting())
    }

    /// `here` means that no other thread is to sync the log.
    pub(super) fn next(&mut self, here: bool, has_company: bool, now: Instant) -> Option<Action> {
        if self.is_resting()
            && self.pending.is_some()
            && self.retry_at.is_none_or(|retry_at| retry_at <= now)
        {
            self.step = Step::Ask;
        }
        let (step, action) = match std::mem::replace(&mut self.step, Step::Busy) {
            Step::Ask => {
                let is_late = self.waits_since.is_some();
                (Step::Asking { is_held_up: false }, Action::AskShown { is_late })
            }
            Step::AskAgain => {
                (Step::Asking { is_held_up: true }, Action::AskShown { is_late: true })
            }
            Step::TryLock => (Step::Busy, Action::TryLockFile { has_company }),
            Step::Sync => (Step::Busy, Action::Sync { here: here || self.is_awaited, has_company }),
            Step::Place { seq } => (Step::Placing { seq }, Action::Place),
            Step::SyncAlone { why } => (Step::SyncingAlone { why }, Action::SyncAlone),
            step => {
                self.step = step;
                return None;
            }
        };
        self.step = step;
        Some(action)
    }

    /// The seq that the state file shows is known. Returns it if nothing more is to be done.
    pub(super) fn shown(&mut self, seq: Option<u64>) -> Option<u64> {
        let shown = seq.filter(|seq| Some(*seq) >= self.pending);
        if shown.is_some() {
            (self.unshown, self.waits_since) = (None, None);
            self.rest();
        }
        shown
    }

    /// It is not shown: takes the lock, or waits for it if that was tried just now.
    pub(super) fn go_on(&mut self, is_brief: bool, now: Instant) -> Option<Action> {
        match self.step {
            Step::Asking { is_held_up: true } => self.wait(is_brief, now),
            _ => {
                self.step = Step::TryLock;
                None
            }
        }
    }

    /// Another process holds the lock.
    pub(super) fn held_up(&mut self, is_brief: bool, now: Instant) -> Option<Action> {
        if self.waits_since.is_some() {
            return self.wait(is_brief, now);
        }
        self.waits_since = Some(now);
        self.step = Step::AskAgain;
        None
    }

    /// Has a thread wait for the lock, or tries again soon in a process that has none for that. Goes
    /// on without a state file after `LOCK_PATIENCE`.
    fn wait(&mut self, is_brief: bool, now: Instant) -> Option<Action> {
        let since = *self.waits_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= LOCK_PATIENCE {
            self.step = Step::SyncAlone { why: None };
            return None;
        }
        self.step = Step::Resting;
        self.retry_at = Some(now + if is_brief { BETWEEN_TRIES } else { WHILE_AWAITED });
        let asks = !is_brief && !self.is_awaited;
        self.is_awaited |= asks;
        asks.then_some(Action::AwaitFile)
    }

    /// The lock was free. `seq` is that of the replica.
    pub(super) fn file_free(&mut self, seq: u64) {
        (self.is_awaited, self.retry_at) = (false, None);
        self.show_what_is_unshown(seq);
    }

    /// Tries again, once a second, to write a state file that could not be written. If another
    /// process's lock was the reason, the thread tells when that is free.
    pub(super) fn retry_to_show(&mut self, seq: u64, now: Instant) {
        let is_past =
            self.retried_at.is_none_or(|at| now.saturating_duration_since(at) >= BETWEEN_SHOWS);
        if !self.is_awaited && is_past {
            self.retried_at = Some(now);
            self.show_what_is_unshown(seq);
        }
    }

    fn show_what_is_unshown(&mut self, seq: u64) {
        if self.pending.is_none() && self.unshown.is_some() {
            (self.pending, self.waits_since) = (Some(seq), None);
        }
    }

    /// Shows event `seq`, which the state file lacks. This process has its lock.
    pub(super) fn show(&mut self, seq: u64) {
        self.pending = Some(seq);
        self.locked();
    }

    pub(super) fn locked(&mut self) {
        (self.waits_since, self.retry_at) = (None, None);
        self.step = Step::Sync;
    }

    pub(super) fn syncing(&mut self, seq: u64) {
        self.step = Step::Syncing { seq };
    }

    pub(super) fn place(&mut self) {
        if let Step::Syncing { seq } = self.step {
            self.step = Step::Place { seq };
        }
    }

    pub(super) fn go_without(&mut self, why: String) {
        self.step = Step::SyncAlone { why: Some(why) };
    }

    /// The log was synced without the state file's lock, which `holder` has.
    pub(super) fn synced_alone(&mut self, holder: Holder) {
        if let Step::SyncingAlone { why } = std::mem::take(&mut self.step) {
            self.unshown =
                why.or_else(|| Some(format!("its lock is held by {holder}: {}", holder.remedy())));
        }
    }

    /// Ends the round. Returns the seq up to which it went.
    pub(super) fn rest(&mut self) -> u64 {
        self.retry_at = None;
        match std::mem::take(&mut self.step) {
            Step::Syncing { seq } | Step::Placing { seq } => seq,
            _ => 0,
        }
    }

    pub(super) fn warn(&mut self, seq: u64, warning: &str) {
        for held in self.held.iter_mut().filter(|held| held.seq <= seq && !held.read) {
            if let Ok(Value::Object(reply)) = &mut held.answer {
                add_warning(reply, warning);
            }
        }
    }

    pub(super) fn fail(&mut self, seq: u64, error: &Arc<BoardError>) {
        for held in self.held.iter_mut().filter(|held| held.seq <= seq && !held.read) {
            held.answer = Err(CallError::Failed(Arc::clone(error)));
        }
    }

    /// The events up to `seq` that the feed does not have yet.
    pub(super) fn published(&mut self, seq: u64) -> Vec<Recorded> {
        let later = self.unpublished.partition_point(|recorded| recorded.seq <= seq);
        let later = self.unpublished.split_off(later);
        std::mem::replace(&mut self.unpublished, later)
    }

    /// What becomes of the hand edit, if that is among what is over now.
    pub(super) fn edit_at(&mut self, seq: u64) -> Option<(Examined, Verdict)> {
        self.edit.take_if(|_| self.pending.is_none_or(|pending| pending <= seq))
    }

    /// Everything up to `seq` is over: takes out its answers.
    pub(super) fn settled(&mut self, seq: u64) -> Answers {
        if self.unshown.is_none() {
            self.waits_since = None;
        }
        self.pending.take_if(|pending| *pending <= seq);
        let over = self.held.partition_point(|held| held.seq <= seq);
        self.held.drain(..over).map(|held| (held.reply, held.answer)).collect()
    }
}
