//! The commit path as a value: events come in, actions go out. It touches no disk, clock or thread,
//! so the simulator runs the code that ships.
//!
//! Two small machines share one number, the `seq` whose answers are pending:
//!
//! | the batch | the round |
//! |---|---|
//! | waits for the journal's lock | waits for the state file's lock |
//! | decides up to 64 calls and keeps them | syncs the log while the state file is written |
//! | appends what was decided; a conflict has the same calls decided again | puts the file in its place |
//! | releases the lock: others append while this process waits for the disk | replies and publishes up to that `seq` |

mod batch;
mod round;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::edits::{Examined, Verdict};
use super::error::{BoardError, CallError};
use super::holder::Holder;
use super::lock::LOCK_PATIENCE;
use super::message::{Answers, Queued};
use super::options::Stay;
use crate::journal::JournalError;
use crate::ops::health_check::{Kind, Trouble};
use crate::state::event::Recorded;
use batch::Batch;
pub use batch::{Decided, Decision, Outcome};
use round::Round;

/// Pause between two attempts to take a lock that no thread waits for.
const BETWEEN_TRIES: Duration = Duration::from_millis(1);
/// Most callers that a batch is kept waiting for.
const ENOUGH: usize = 16;

/// What has happened.
pub enum Event {
    /// A call has come that may record something.
    Called(Queued),
    /// A hand edit of the state file has been read.
    Edited(Examined),
    /// Time has brought something to record.
    Due,
    /// The attempt to take the journal's lock has ended; false if another process holds it.
    Locked(io::Result<bool>),
    /// The thread that waited for the journal's lock has taken it for this process.
    LockCame(io::Result<()>),
    /// Another file has become the lock: nobody waits for that.
    LockReplaced,
    /// Who holds the journal's lock, for which these calls have waited too long.
    Holder(Vec<Queued>, Holder),
    Decided(Box<Decided>),
    /// Nothing was decided, and nothing is recorded.
    Undecided {
        calls: Vec<Queued>,
        edit: Option<Examined>,
        error: BoardError,
    },
    Appended(Box<Decided>),
    /// Others have appended first. The state is as it was before the batch.
    Conflict(Box<Decided>),
    /// Whether the batch was appended has to be found out.
    Unknown(Box<Decided>, JournalError),
    /// Nothing was appended. The state is as it was before the batch.
    Failed(Box<Decided>, BoardError),
    /// What others have appended was applied; these are the newest of their events.
    CaughtUp(Vec<Recorded>),
    /// The board's files are gone or damaged. The calls are tried again once they are back.
    Vanished {
        calls: Vec<Queued>,
        edit: Option<Examined>,
        error: BoardError,
    },
    Regained(Result<(), BoardError>),
    /// The seq that the state file shows, if that is known.
    Shown(Option<u64>),
    /// The attempt to take the state file's lock has ended; false if another process holds it.
    FileLocked(io::Result<bool>),
    /// The state file's lock was free a moment ago.
    FileFree {
        seq: u64,
    },
    /// The state file is missing or behind event `seq`, and this process has taken its lock.
    Behind {
        seq: u64,
    },
    /// The log is being synced up to this event.
    Syncing {
        seq: u64,
    },
    Synced(Result<(), BoardError>),
    Placed(Placed),
    /// The log was synced without the state file's lock.
    SyncedAlone {
        seq: u64,
        synced: Result<(), BoardError>,
        holder: Holder,
        is_gone: bool,
    },
}

/// What became of the state file that a round has written.
pub enum Placed {
    Done {
        warning: Option<String>,
        unshown: Option<String>,
    },
    /// The files that the round was about are not the board's any more. If it is only that they
    /// could not be examined, `unseen` says why.
    Gone {
        unseen: Option<String>,
    },
}

/// What to do next. The driver answers each of the first kind with an event, at once or later.
pub enum Action {
    TryLock,
    /// Have a thread wait for the journal's lock.
    AwaitLock,
    Unlock,
    Decide(Vec<Queued>, Option<Examined>),
    Append(Box<Decided>),
    /// Find out whether the batch was appended.
    Find(Box<Decided>, JournalError),
    Regain,
    /// Look which event the state file shows. Unless `is_late`, others have had no time yet to
    /// show what is not durable.
    AskShown {
        is_late: bool,
    },
    TryLockFile {
        has_company: bool,
    },
    /// Have a thread wait until the state file's lock is free.
    AwaitFile,
    /// Write the state file and sync the log: `here`, or on another thread meanwhile.
    Sync {
        here: bool,
        has_company: bool,
    },
    /// Wait for the sync that is under way.
    FinishSync,
    /// Put the state file in its place, and release its lock.
    Place,
    /// Give the written file up, and release the lock.
    GiveUp,
    /// The state file shows event `seq`, which is durable then.
    NoteShown {
        seq: u64,
    },
    /// Sync the log without the state file's lock.
    SyncAlone,

    /// Callers have waited too long for the journal's lock: find out who holds it.
    AskHolder(Vec<Queued>),

    /// For the neighbours. What was committed, and the calls that wait on.
    Committed {
        calls: usize,
        parked: Vec<Queued>,
    },
    Reply(Answers),
    /// These events are durable, as is everything up to `seq`.
    Publish {
        events: Vec<Recorded>,
        seq: u64,
    },
    /// What becomes of a hand edit is durable.
    Conclude(Examined, Verdict),
}

impl Action {
    /// Whether it concerns the neighbours of the commit path.
    pub fn is_news(&self) -> bool {
        matches!(
            self,
            Self::Committed { .. } | Self::Reply(_) | Self::Publish { .. } | Self::Conclude(..)
        )
    }
}

/// Both machines, and what they share.
pub struct Commit {
    batch: Batch,
    round: Round,
    ready: VecDeque<Action>,
    stay: Stay,
    /// The state file's name, for warnings.
    pub file_name: String,
    /// Whether nothing else is done until all is complete, so that no thread is asked for anything.
    is_finishing: bool,
    /// Whether others had appended when this process last caught up.
    has_company: bool,
    /// Number of calls answered since `callers` was last estimated.
    answered: usize,
    /// Estimated number of concurrent callers: the calls answered in the last turn, and those held
    /// or queued after it.
    callers: usize,
    regains: Regains,
    /// When a batch or a round last failed; none if the last one succeeded.
    failed_at: Option<Instant>,
}

/// The board's files are to be put back.
#[derive(Default)]
struct Regains {
    is_needed: bool,
    /// The round that found them gone.
    round: Option<round::Gone>,
    /// Why they could not be, until that is asked for.
    error: Option<Arc<BoardError>>,
}

impl Commit {
    pub fn new(stay: Stay) -> Self {
        Self {
            batch: Batch::default(),
            round: Round::default(),
            ready: VecDeque::new(),
            stay,
            file_name: crate::statefile::FILE_NAME.to_owned(),
            is_finishing: false,
            has_company: false,
            answered: 0,
            callers: 0,
            regains: Regains::default(),
            failed_at: None,
        }
    }

    pub fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Called(call) => self.batch.call(call),
            Event::Edited(examined) => self.batch.edit(examined, now),
            Event::Due => self.batch.is_due = true,
            Event::Locked(Err(error)) | Event::LockCame(Err(error)) => self.refuse_lock(error),
            Event::Locked(Ok(true)) => self.batch.locked(),
            Event::Locked(Ok(false)) => self.await_lock(now),
            Event::LockCame(Ok(())) => {
                if !self.batch.lock_came() {
                    self.ready.push_back(Action::Unlock);
                }
            }
            Event::LockReplaced => self.batch.lock_replaced(),
            Event::Holder(calls, holder) => {
                let locked = || BoardError::Locked { holder, seconds: LOCK_PATIENCE.as_secs() };
                let refused = calls.into_iter().map(|call| (call.reply, Err(locked().into())));
                self.reply(refused.collect());
            }
            Event::Decided(decided) => self.batch.append(decided),
            Event::Conflict(decided) => {
                if let Some((calls, edit)) = self.batch.decide_again(*decided) {
                    self.fail(calls, edit, overtaken(), now);
                }
            }
            Event::Unknown(decided, error) => self.batch.find(decided, error),
            Event::Appended(decided) => self.appended(*decided),
            Event::Failed(decided, error) => {
                let (calls, edit) = decided.taken_back();
                self.fail(calls, edit, error, now);
            }
            Event::Undecided { calls, edit, error } => self.fail(calls, edit, error, now),
            Event::CaughtUp(newest) => {
                self.has_company = !newest.is_empty();
                self.round.unpublished.extend(newest);
            }
            Event::Vanished { calls, edit, error } => {
                self.ready.push_back(Action::Unlock);
                if self.batch.put_back(calls, edit, now) {
                    self.regains.is_needed = true;
                } else {
                    self.fail(Vec::new(), None, error, now);
                }
            }
            Event::Regained(regained) => self.regained(regained, now),
            Event::FileLocked(Err(error)) => self.round.go_without(error.to_string()),
            Event::Shown(_)
            | Event::FileLocked(_)
            | Event::FileFree { .. }
            | Event::Behind { .. }
            | Event::Syncing { .. }
            | Event::Synced(_)
            | Event::Placed(_)
            | Event::SyncedAlone { .. } => self.handle_of_round(event, now),
        }
    }

    fn handle_of_round(&mut self, event: Event, now: Instant) {
        let is_brief = self.stay == Stay::Brief || self.is_finishing;
        match event {
            Event::Shown(seq) => {
                if let Some(seq) = self.round.shown(seq) {
                    self.ready.push_back(Action::NoteShown { seq });
                    self.conclude(seq, Ok(()), None, now);
                } else {
                    self.ready.extend(self.round.go_on(is_brief, now));
                }
            }
            Event::FileLocked(Ok(true)) => self.round.locked(),
            Event::FileLocked(Ok(false)) => {
                self.ready.extend(self.round.held_up(is_brief, now));
            }
            Event::FileFree { seq } => self.round.file_free(seq),
            Event::Behind { seq } => self.round.show(seq),
            Event::Syncing { seq } => self.round.syncing(seq),
            Event::Synced(Ok(())) => self.round.place(),
            Event::Synced(Err(error)) => {
                self.ready.push_back(Action::GiveUp);
                let seq = self.round.rest();
                self.conclude(seq, Err(error), None, now);
            }
            Event::Placed(Placed::Done { warning, unshown }) => {
                let seq = self.round.rest();
                self.round.unshown = unshown;
                self.conclude(seq, Ok(()), warning, now);
            }
            Event::Placed(Placed::Gone { unseen }) => {
                let seq = self.round.rest();
                self.regains.round = Some(round::Gone { seq, unseen });
            }
            Event::SyncedAlone { seq, synced, holder, is_gone } => {
                self.round.synced_alone(holder);
                if is_gone && synced.is_ok() {
                    self.regains.round = Some(round::Gone { seq, unseen: None });
                } else {
                    self.conclude(seq, synced, None, now);
                }
            }
            _ => {}
        }
    }

    /// The next thing to do; none until something happens or `wakes_at` has come.
    pub fn next(&mut self, now: Instant) -> Option<Action> {
        if let Some(action) = self.ready.pop_front() {
            return Some(action);
        }
        if self.regains.is_needed || self.regains.round.is_some() {
            // What the sync is about must not be replaced under it.
            if self.round.is_syncing() {
                return Some(Action::FinishSync);
            }
            if self.round.is_resting() {
                self.regains.is_needed = false;
                return Some(Action::Regain);
            }
        }
        let (late, edit) = self.batch.late(now);
        if let Some(examined) = edit {
            // Its file is looked at again.
            self.ready.push_back(Action::Conclude(examined, Verdict::Left));
        }
        if !late.is_empty() {
            return Some(Action::AskHolder(late));
        }
        if let Some(action) = self.ready.pop_front() {
            return Some(action);
        }
        // A batch that waits for the journal goes first: others can join the round then.
        if let Some(action) = self.batch.next(now) {
            return Some(action);
        }
        let here = self.stay == Stay::Brief || self.is_finishing || self.is_alone();
        if self.is_finishing && self.round.is_syncing() {
            return Some(Action::FinishSync);
        }
        self.round.next(here, self.has_company, now)
    }

    /// When to ask again although nothing has happened.
    pub fn wakes_at(&self) -> Option<Instant> {
        [self.batch.retry_at(), self.round.retry_at()].into_iter().flatten().min()
    }

    /// Holds an answer that records nothing until what it has seen is durable, if a round is about
    /// to make it so; else gives it back.
    pub(super) fn hold_read(&mut self, seq: u64, reply: Answers) -> Option<Answers> {
        self.round.hold_read(seq, reply)
    }

    /// The events up to `seq` are durable, though no round has said so.
    pub fn durable(&mut self, seq: u64) {
        self.publish(seq);
    }

    /// Has a state file that could not be written tried again, once a second.
    pub fn retry_to_show(&mut self, seq: u64, now: Instant) {
        self.round.retry_to_show(seq, now);
    }

    /// Has everything completed without the help of other threads, until the second call.
    pub fn finish(&mut self, is_finishing: bool) {
        self.is_finishing = is_finishing;
    }

    /// Whether nothing is pending but calls for which a thread waits for the lock.
    pub fn is_complete(&self) -> bool {
        self.ready.is_empty()
            && self.batch.is_complete()
            && !self.round.is_pending()
            && !self.regains.is_needed
    }

    /// Whether a round is about to make durable what is in the replica.
    pub fn is_round_soon(&self) -> bool {
        self.round.is_soon()
    }

    pub fn is_round_pending(&self) -> bool {
        self.round.is_pending()
    }

    /// Whether the log may be hastened to the disk: no round is under way, and nobody else appends
    /// to the page that would be on its way.
    pub fn may_hasten(&self) -> bool {
        self.is_alone() && !self.round.is_syncing()
    }

    /// Whether one caller makes one call after another and nobody else appends: then another
    /// thread would only make the round longer.
    fn is_alone(&self) -> bool {
        !self.has_company
            && self.callers <= 1
            && self.round.held.len() <= 1
            && self.batch.queue.is_empty()
    }

    /// Whether more calls are likely to come at once, so that a batch should wait a moment.
    pub fn is_too_few(&self) -> bool {
        let likely = self.callers.saturating_sub(self.round.held.len()).min(ENOUGH);
        self.batch.queue.len() < likely && self.batch.is_ready()
    }

    /// Ends a turn, in which all callers that were answered had time to call again.
    pub fn end_turn(&mut self) {
        let queued = self.batch.queue.len();
        // A lone caller may have called again since its answer.
        let again = usize::from(self.answered == 1 && queued == 1);
        self.callers = self.answered + self.round.held.len() + queued - again;
        self.answered = 0;
    }

    /// Whether calls wait that a batch could begin with now.
    pub fn is_ready(&self) -> bool {
        self.batch.is_ready()
    }

    pub fn has_calls(&self) -> bool {
        !self.batch.queue.is_empty()
    }

    /// When a batch or a round last failed; none if the last one succeeded.
    pub fn failed_at(&self) -> Option<Instant> {
        self.failed_at
    }

    /// What is wrong with the state file, in words for the operator.
    pub fn trouble(&self) -> Option<Trouble> {
        let unshown = self.round.unshown.as_ref()?;
        let text = format!(
            "{} could not be written ({unshown}); operations are safe in the journal, and it is \
             tried again",
            self.file_name
        );
        Some(Trouble::new(Kind::StateFileBehind, text))
    }

    /// Why the board could not be put back, once.
    pub fn take_unregained(&mut self) -> Option<Arc<BoardError>> {
        self.regains.error.take()
    }

    fn await_lock(&mut self, now: Instant) {
        let may_ask = !self.is_finishing;
        self.batch.await_lock(may_ask, now);
        if may_ask {
            self.ready.push_back(Action::AwaitLock);
        }
    }

    fn refuse_lock(&mut self, source: io::Error) {
        let error = BoardError::Io { action: "cannot take the board's lock".to_owned(), source };
        self.batch.rest();
        self.refuse(Vec::new(), Arc::new(error));
    }

    fn appended(&mut self, decided: Decided) {
        self.failed_at = None;
        let Decided { decisions, edit, events, seq, .. } = decided;
        self.round.unpublished.extend(events);
        let (answers, parked) = batch::parted(decisions);
        self.ready.push_back(Action::Committed { calls: answers.len(), parked });
        // After a verdict on a hand edit the lock is kept until that is carried out: another process
        // would decide on the same file again, or on another that has its name by then.
        self.batch.appended(edit.is_some());
        if edit.is_none() {
            self.ready.push_front(Action::Unlock);
        }
        self.round.hold(seq, answers, edit);
    }

    /// The batch has failed: nothing of it is recorded. What waits behind it would fail, too.
    fn fail(
        &mut self,
        calls: Vec<Queued>,
        edit: Option<Examined>,
        error: BoardError,
        now: Instant,
    ) {
        self.failed_at = Some(now);
        self.batch.rest();
        self.ready.push_back(Action::Unlock);
        self.ready.extend(edit.map(|examined| Action::Conclude(examined, Verdict::Left)));
        self.refuse(calls, Arc::new(error));
    }

    fn refuse(&mut self, calls: Vec<Queued>, error: Arc<BoardError>) {
        let calls = calls.into_iter().chain(self.batch.queue.drain(..));
        let refused = calls.map(|call| (call.reply, Err(CallError::Failed(Arc::clone(&error)))));
        let refused = refused.collect();
        self.reply(refused);
    }

    fn regained(&mut self, regained: Result<(), BoardError>, now: Instant) {
        let round = self.regains.round.take();
        match (round, regained) {
            (Some(round::Gone { seq, unseen }), Ok(())) => {
                self.round.unshown = unseen;
                self.conclude(seq, Ok(()), None, now);
            }
            (Some(round::Gone { seq, .. }), Err(error)) => {
                self.conclude(seq, Err(BoardError::Vanished(Box::new(error))), None, now);
            }
            (None, Ok(())) => self.round.unshown = None,
            (None, Err(error)) => {
                let error = Arc::new(error);
                self.refuse(Vec::new(), Arc::clone(&error));
                let edit = self.batch.take_edit();
                self.ready.extend(edit.map(|examined| Action::Conclude(examined, Verdict::Left)));
                self.regains.error = Some(error);
            }
        }
    }

    /// Ends a round: what is recorded up to `seq` is durable, or never will be for sure.
    fn conclude(
        &mut self,
        seq: u64,
        durable: Result<(), BoardError>,
        warning: Option<String>,
        now: Instant,
    ) {
        let is_durable = durable.is_ok();
        match durable {
            Ok(()) => {
                let unshown = self.round.unshown.as_ref().map(|error| {
                    format!(
                        "done and in the journal, but {} could not be written: {error}",
                        self.file_name
                    )
                });
                for warning in warning.into_iter().chain(unshown) {
                    tracing::error!("{warning}");
                    self.round.warn(seq, &warning);
                }
                self.publish(seq);
            }
            Err(error) => {
                self.failed_at = Some(now);
                self.round.fail(seq, &Arc::new(error));
            }
        }
        if let Some((examined, verdict)) = self.round.edit_at(seq) {
            let verdict = if is_durable { verdict } else { Verdict::Left };
            self.ready.push_back(Action::Conclude(examined, verdict));
            if self.batch.release() {
                self.ready.push_back(Action::Unlock);
            }
        }
        let answers = self.round.settled(seq);
        self.reply(answers);
    }

    fn publish(&mut self, seq: u64) {
        let events = self.round.published(seq);
        self.ready.push_back(Action::Publish { events, seq });
    }

    fn reply(&mut self, answers: Answers) {
        if !answers.is_empty() {
            self.answered += answers.len();
            self.ready.push_back(Action::Reply(answers));
        }
    }
}

fn overtaken() -> BoardError {
    let source = io::Error::other("other processes append all the time without the board's lock");
    BoardError::Io { action: "cannot append to the journal".to_owned(), source }
}
