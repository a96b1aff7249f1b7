//! A round completes all commits since the last one: the journal's write-ahead log is synced, the
//! state file is replaced, and then everything that depends on the two leaves: answers, refusals,
//! reads and the feed's events.
//!
//! A commit releases the journal's lock before its events are durable, so that others append while
//! this process waits for the disk. A round holds the state file's lock. If others append, it takes
//! in their events, too, so a process that has waited for that lock usually finds its own events
//! durable and shown, and has nothing left to do. The state file is put in place after the sync of
//! the log, and is written during it: with several callers, or if others append, another thread
//! waits for the disk meanwhile.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Writer, is_past};
use crate::participant::board::Board;
use crate::participant::directory::DirectoryError;
use crate::participant::edits::Verdict;
use crate::participant::error::{BoardError, CallError};
use crate::participant::lock::LOCK_PATIENCE;
use crate::participant::message::{Answer, Answers, add_warning, answer_one};
use crate::participant::options::Stay;
use crate::participant::syncer::{Outcome, Syncer};
use crate::state::event::Recorded;
use crate::state::time::Timestamp;
use crate::statefile::Unplaced;

/// A yield longer than this means that the CPU went to unrelated work, not to another process's
/// append.
const LONGEST_YIELD: Duration = Duration::from_millis(2);
/// Slow yields in a row after which yielding pauses for a second.
const OUTRUN: u32 = 3;
/// Pause between two attempts to begin a round.
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Rounds {
    /// Answers that wait to become durable, ordered by `seq`.
    held: VecDeque<Held>,
    /// Events that the feed does not have yet, ordered by `seq`.
    unpublished: Vec<Recorded>,
    /// The seq that the next round must make durable and the state file must show; none if no
    /// round is owed.
    owed: Option<u64>,
    /// What becomes of a hand edit at the end of that round.
    verdict: Option<Verdict>,
    under_way: Option<Round>,
    syncer: Option<Syncer>,
    /// When the syncer began to wait for the state file's lock, if it does.
    awaits_turn: Option<Instant>,
    /// Since when a round has waited for another process to release that lock.
    waits_since: Option<Instant>,
    /// When a state file that could not be written was last tried again.
    tried_at: Option<Instant>,
    /// Whether others had appended when this process last caught up.
    pub has_company: bool,
    /// Number of slow yields in a row, see `LONGEST_YIELD`, and when the last of them ended.
    outrun: u32,
    outrun_at: Option<Instant>,
}

/// An answer that depends on the events up to `seq`, and leaves when those are durable.
struct Held {
    seq: u64,
    reply: oneshot::Sender<Answer>,
    answer: Answer,
    /// A read, whose answer stands even if the round fails or the state file cannot be written.
    read: bool,
}

struct Round {
    seq: u64,
    prepared: io::Result<Option<Unplaced>>,
}

impl Rounds {
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether anything waits for a round to begin or to end.
    pub(super) fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    /// Whether a round is owed and does not wait for another process.
    fn is_soon(&self) -> bool {
        self.is_owed() && self.waits_since.is_none()
    }

    /// Yields once, so that another process about to append can join this round. Skipped after
    /// `OUTRUN` slow yields in a row: then unrelated work holds the CPU.
    fn let_others_append(&mut self) {
        if self.outrun >= OUTRUN && !is_past(self.outrun_at) {
            return;
        }
        let start = Instant::now();
        std::thread::yield_now();
        let is_outrun = start.elapsed() > LONGEST_YIELD;
        self.outrun = if is_outrun { self.outrun.saturating_add(1) } else { 0 };
        self.outrun_at = is_outrun.then(Instant::now);
    }

    pub(super) fn note(&mut self, events: Vec<Recorded>) {
        self.unpublished.extend(events);
    }
}

impl Writer {
    /// Holds these answers until what was committed with them is durable and shown.
    pub(super) fn owe(&mut self, answers: Answers, verdict: Option<Verdict>) {
        let Some(seq) = self.board.as_ref().map(|board| board.state.seq()) else { return };
        (self.rounds.owed, self.rounds.verdict) = (Some(seq), verdict);
        let held =
            answers.into_iter().map(|(reply, answer)| Held { seq, reply, answer, read: false });
        self.rounds.held.extend(held);
    }

    /// Answers now if everything in the replica is durable, else with the round that makes it so;
    /// if none is about to begin, syncs here.
    pub(super) fn answer_read(&mut self, reply: oneshot::Sender<Answer>, answer: Answer) {
        if let Some(board) = &self.board
            && !board.is_settled()
        {
            if self.rounds.is_soon() {
                let seq = board.state.seq();
                self.rounds.owed = Some(seq);
                return self.rounds.held.push_back(Held { seq, reply, answer, read: true });
            }
            board.settle_for_reading();
        }
        answer_one(reply, answer);
    }

    /// Makes durable what others have appended, and gives it to the feed, unless a round is about
    /// to do so.
    pub(in crate::participant) fn publish_seen(&mut self) {
        let Some(board) = self.board.as_ref().filter(|_| !self.rounds.is_soon()) else { return };
        match board.settle() {
            Ok(()) => self.publish(board.state.seq()),
            Err(error) => tracing::error!(%error, "what others have recorded is not durable"),
        }
    }

    fn publish(&mut self, seq: u64) {
        let later = self.rounds.unpublished.partition_point(|recorded| recorded.seq <= seq);
        let later = self.rounds.unpublished.split_off(later);
        let events = std::mem::replace(&mut self.rounds.unpublished, later);
        self.metrics.happened(&events);
        self.feed.publish(events, seq);
    }

    /// Has the kernel start writing the log, which the round that is about to begin will sync. Not
    /// while a round is under way, nor if others append: they would write to the page that is
    /// on its way to the disk.
    pub(super) fn hasten(&self) {
        if let Some(board) = &self.board
            && !self.rounds.is_under_way()
            && !self.rounds.has_company
        {
            board.hasten();
        }
    }

    /// Begins a round if one is owed and none is under way. If the lock of another process's round
    /// has only just been asked for, the syncer will tell when it is free.
    pub(super) fn advance(&mut self) {
        let has_just_asked =
            self.rounds.awaits_turn.is_some_and(|asked| asked.elapsed() < BETWEEN_TRIES);
        if !self.rounds.is_under_way() && self.rounds.is_owed() && !has_just_asked {
            self.begin(false);
        }
    }

    /// Completes everything that is owed before it returns.
    pub(super) fn settle_here(&mut self) {
        self.end_round();
        while self.rounds.is_owed() {
            self.begin(true);
            if self.rounds.is_owed() {
                std::thread::sleep(BETWEEN_TRIES);
            }
        }
    }

    /// Handles the syncer's outcomes, then begins a round if one is owed.
    pub(super) fn hear_syncer(&mut self) {
        while let Some(outcome) = self.rounds.syncer.as_ref().and_then(Syncer::outcome) {
            self.take_outcome(outcome);
        }
        self.advance();
    }

    /// Waits for the end of the round that is under way, if there is one.
    pub(in crate::participant) fn end_round(&mut self) {
        while self.rounds.under_way.is_some() {
            let outcome = self.rounds.syncer.as_ref().and_then(Syncer::next_outcome);
            self.take_outcome(
                outcome.unwrap_or_else(|| {
                    Outcome::Synced(Err(io::Error::other("the thread has ended")))
                }),
            );
        }
    }

    fn take_outcome(&mut self, outcome: Outcome) {
        match (outcome, self.rounds.under_way.take()) {
            (Outcome::Synced(synced), Some(round)) => self.end(round, synced),
            (Outcome::Synced(_), None) => {}
            (Outcome::Turn, under_way) => {
                (self.rounds.under_way, self.rounds.awaits_turn) = (under_way, None);
                self.show_what_is_unshown();
            }
        }
    }

    /// Tries again, once a second, to write a state file that could not be written. If another
    /// process's lock was the reason, the syncer tells when that is free.
    pub(super) fn try_to_show(&mut self) {
        if self.rounds.awaits_turn.is_none() && is_past(self.rounds.tried_at) {
            self.rounds.tried_at = Some(Instant::now());
            self.show_what_is_unshown();
        }
    }

    /// Puts the state file back if it is missing or behind: it was deleted, or the process that was
    /// to show an event has died. If another process holds the file's lock, that one is about
    /// to show it.
    pub(super) fn show_again(&mut self) {
        let is_due =
            !self.rounds.is_owed() && !self.rounds.is_under_way() && self.unshown.is_none();
        let Some(board) = self.board.as_ref().filter(|_| is_due && self.unwritable.is_none())
        else {
            return;
        };
        if !board.is_shown()
            && board.check_writable().is_ok()
            && matches!(board.lock.try_acquire_state_file(), Ok(true))
        {
            self.hold_round(true);
        }
    }

    /// Owes a round for what the state file does not show yet, if none is owed.
    fn show_what_is_unshown(&mut self) {
        if !self.rounds.is_owed()
            && self.unshown.is_some()
            && let Some(board) = &self.board
        {
            (self.rounds.owed, self.rounds.waits_since) = (Some(board.state.seq()), None);
        }
    }

    /// Begins a round. `here` means that nothing else is done until the round is over.
    fn begin(&mut self, here: bool) {
        // Nobody has had time yet to show what this process has only just appended.
        let is_settled = self.board.as_ref().is_none_or(Board::is_settled);
        let may_be_shown = is_settled || self.rounds.waits_since.is_some();
        if may_be_shown && self.tell_shown() {
            return;
        }
        if self.rounds.has_company && !here {
            self.rounds.let_others_append();
        }
        let Some(board) = &self.board else { return self.rounds.owed = None };
        match board.lock.try_acquire_state_file() {
            Ok(true) => self.hold_round(here),
            Ok(false) if may_be_shown || !self.tell_shown() => self.wait_for_turn(),
            Ok(false) => {}
            Err(error) => self.go_without(&error.to_string()),
        }
    }

    /// If another process has shown all that is owed, answers without a round, and returns true.
    fn tell_shown(&mut self) -> bool {
        let Some(board) = &self.board else { return false };
        let shown = board
            .shown()
            .filter(|shown| Some(*shown) >= self.rounds.owed && board.lock.verify().is_ok());
        let Some(seq) = shown else { return false };
        board.settled(seq);
        // `settle_edits` acquires both locks, so this one may still be held.
        board.lock.release_state_file();
        (self.unshown, self.rounds.waits_since) = (None, None);
        let seq = seq.min(board.state.seq());
        self.tell(seq);
        true
    }

    /// Runs a round; this process holds the state file's lock.
    fn hold_round(&mut self, here: bool) {
        self.rounds.waits_since = None;
        let Some(board) = &self.board else { return };
        // Nobody changes this while this process holds the lock.
        let left = board.lock.left();
        if self.rounds.has_company || board.is_overtaken(&left) {
            self.take_in();
        }
        let here = here || self.rounds.awaits_turn.is_some() || self.is_alone();
        let Some(board) = &mut self.board else { return };
        drop(board.lock.sign_state_file(self.participant.pid));
        let seq = board.state.seq();
        let log = board.log().filter(|_| !here && !board.is_settled());
        let syncer = log.and_then(|log| Some((self.syncer()?, log)));
        match syncer {
            Some((syncer, log)) => {
                syncer.sync(log);
                // While the syncer's thread wakes up.
                self.hasten();
                let prepared =
                    self.board.as_mut().map_or(Ok(None), |board| board.prepare_show(left));
                self.rounds.under_way = Some(Round { seq, prepared });
            }
            None => {
                let Some(board) = &mut self.board else { return };
                let prepared = board.prepare_show(left);
                let settled = board.settle_to(seq);
                self.end_settled(Round { seq, prepared }, settled);
            }
        }
    }

    /// Whether one caller makes one call after another and nobody else appends: then another thread
    /// would only make the round longer.
    pub(super) fn is_alone(&self) -> bool {
        !self.rounds.has_company
            && self.callers <= 1
            && self.rounds.held.len() <= 1
            && self.queue.is_empty()
    }

    fn syncer(&mut self) -> Option<&Syncer> {
        if self.rounds.syncer.is_none() {
            self.rounds.syncer = Syncer::spawn(self.sender.clone()).ok();
        }
        self.rounds.syncer.as_ref()
    }

    /// Catches up, so that the round includes what others have appended since.
    fn take_in(&mut self) {
        let Some(board) = &mut self.board else { return };
        match board.catch_up() {
            Ok(newest) => self.caught_up(newest),
            // The next call will meet this error, too, and can report it.
            Err(error) => tracing::warn!(%error, "what others have recorded could not be read"),
        }
    }

    /// Has the syncer wait for the state file's lock, and goes on without a state file after
    /// `LOCK_PATIENCE`. The syncer still reports then when the lock is free.
    fn wait_for_turn(&mut self) {
        // If this fails, it is tried again soon.
        if self.rounds.awaits_turn.is_none()
            && self.stay != Stay::Brief
            && let Some(board) = &self.board
            && let Ok(lock) = board.lock.turn()
            && let Some(syncer) = self.syncer()
        {
            syncer.wait_for_turn(lock);
            self.rounds.awaits_turn = Some(Instant::now());
        }
        let since = *self.rounds.waits_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= LOCK_PATIENCE {
            let holder = self.board.as_ref().and_then(|board| board.lock.state_file_holder());
            let holder =
                holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            self.go_without(&format!("its lock is held by {holder}"));
        }
    }

    /// Ends the round without replacing the state file: what is durable is done.
    fn go_without(&mut self, why: &str) {
        let Some(board) = &self.board else { return };
        let (seq, settled) = (board.state.seq(), board.settle());
        self.unshown = Some(why.to_owned());
        let settled = settled.and(self.regain_if_gone());
        self.conclude(seq, settled, None);
    }

    /// If the board's files were deleted, puts the board back, with what was committed to the
    /// deleted journal, and shows that.
    fn regain_if_gone(&mut self) -> Result<(), BoardError> {
        let Some(board) = self.board.as_ref().filter(|board| board.lock.verify().is_err()) else {
            return Ok(());
        };
        // Before waiting for the journal's lock, whose holder may be waiting for this one.
        board.lock.release_state_file();
        let regained = self.regain();
        self.release_unless_awaited();
        self.unshown = None;
        regained.map_err(|error| BoardError::Vanished(Box::new(error)))
    }

    fn end(&mut self, round: Round, synced: io::Result<()>) {
        let Some(board) = &mut self.board else { return };
        let settled = board.synced(round.seq, synced);
        self.end_settled(round, settled);
    }

    fn end_settled(&mut self, Round { seq, prepared }: Round, settled: Result<(), BoardError>) {
        let Some(board) = &mut self.board else { return };
        let found = board.found();
        let verified = match &prepared {
            Ok(Some(prepared)) => board.verify_again(found, prepared.left()),
            _ => board.lock.verify(),
        };
        if settled.is_err() || verified.is_err() {
            if let Ok(Some(prepared)) = prepared {
                board.give_up(prepared);
            }
            board.lock.release_state_file();
            let settled = settled.and(self.regain_if_gone());
            // If the files could not be checked and are there all the same, the board was not put
            // back, so the state file does not show this round.
            let unseen =
                verified.err().filter(|error| !matches!(error, DirectoryError::Replaced { .. }));
            self.unshown = unseen.map(|error| error.to_string()).or(self.unshown.take());
            return self.conclude(seq, settled, None);
        }
        let (warning, shown) = match prepared {
            Ok(Some(prepared)) => board.show(prepared, found),
            Ok(None) => (None, Ok(())),
            Err(error) => (None, Err(error)),
        };
        board.lock.release_state_file();
        self.unshown = shown.err().map(|error| error.to_string());
        self.conclude(seq, Ok(()), warning);
    }

    fn conclude(&mut self, seq: u64, settled: Result<(), BoardError>, warning: Option<String>) {
        match settled {
            Ok(()) => {
                let name = self.file_name();
                let unshown = self.unshown.as_ref().map(|error| {
                    format!("done and in the journal, but {name} could not be written: {error}")
                });
                for warning in warning.into_iter().chain(unshown) {
                    self.warn(seq, &warning);
                }
                self.tell(seq);
            }
            Err(error) => {
                let error = std::sync::Arc::new(error);
                for held in self.rounds.held.iter_mut().filter(|held| held.seq <= seq && !held.read)
                {
                    held.answer = Err(CallError::Failed(std::sync::Arc::clone(&error)));
                }
                self.failed_at = Some(Instant::now());
                self.answer_up_to(seq);
            }
        }
    }

    fn warn(&mut self, seq: u64, warning: &str) {
        tracing::error!("{warning}");
        for held in self.rounds.held.iter_mut().filter(|held| held.seq <= seq && !held.read) {
            if let Ok(serde_json::Value::Object(reply)) = &mut held.answer {
                add_warning(reply, warning);
            }
        }
    }

    /// Publishes and answers everything up to `seq`, which is durable.
    fn tell(&mut self, seq: u64) {
        self.publish(seq);
        if self.rounds.owed.is_none_or(|owed| owed <= seq)
            && let Some(verdict) = self.rounds.verdict.take()
            && let Some(board) = &self.board
        {
            self.edits.conclude(verdict, board.dir(), self.clock.now(Timestamp::default()));
        }
        self.answer_up_to(seq);
    }

    fn answer_up_to(&mut self, seq: u64) {
        self.rounds.waits_since = self.rounds.waits_since.filter(|_| self.unshown.is_some());
        self.rounds.owed = self.rounds.owed.filter(|owed| *owed > seq);
        let told = self.rounds.held.partition_point(|held| held.seq <= seq);
        let told: Vec<_> = self.rounds.held.drain(..told).collect();
        // A process that ends with its answer must look for hand edits and do its upkeep first; in
        // any other nobody waits for that.
        if self.stay == Stay::Brief {
            if self.failed_at.is_none() {
                self.settle_edits();
            }
            // Nothing is left to decide under this lock, and archiving needs it.
            self.release_journal();
            self.tend_board();
        }
        self.answered += told.len();
        for Held { reply, answer, .. } in told {
            answer_one(reply, answer);
        }
        if self.stay != Stay::Brief {
            self.tend_board();
        }
    }
}
