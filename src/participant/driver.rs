//! Carries out what the commit path says, on a disk, and tells it what came of that. It decides
//! nothing itself.

mod actors;
mod decide;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::commit::{Action, Commit, Decided, Decision, Event, Outcome};
use super::disk::{Blocked, Disk};
use super::error::BoardError;
use super::message::Answers;
use super::options::Stay;
use super::runs;
use crate::journal::{AppendError, BatchId};
use crate::ops::add_warning;
use crate::state::State;
use crate::state::agent::Participant;
use crate::state::id::{AgentId, Chance};
use crate::state::time::Timestamp;

pub struct Driver {
    pub commit: Commit,
    pub participant: Participant,
    pub stay: Stay,
    pub chance: Chance,
    pub started_at: Timestamp,
    /// Number of batches that were begun, for their names.
    batches: u64,
    /// The agents that `auto` stands for, by name prefix.
    auto: HashMap<String, Vec<AgentId>>,
    /// Whether claims of runs that an earlier process left behind have been returned.
    has_returned: bool,
    /// Number of finished tasks that were left when some were last looked for to retire.
    retired_from: usize,
    /// Whether calls are no longer parked.
    pub is_hurried: bool,
}

/// Most times that the board is put back in a row: while its files are being deleted, they may be
/// gone again at once.
const REGAINED_AT_MOST: usize = 100;

impl Driver {
    pub fn new(
        participant: Participant,
        stay: Stay,
        chance: Chance,
        started_at: Timestamp,
    ) -> Self {
        Self {
            commit: Commit::new(stay),
            participant,
            stay,
            chance,
            started_at,
            batches: 0,
            auto: HashMap::new(),
            has_returned: false,
            retired_from: 0,
            is_hurried: false,
        }
    }

    /// Whether claims of runs that an earlier process left behind are still to be returned.
    pub fn has_to_return(&mut self, state: &State) -> bool {
        let own = &self.participant.id;
        self.has_returned |= runs::returned(state, own, self.stay, self.started_at).is_empty();
        !self.has_returned
    }

    /// Goes on until there is nothing to do but to wait. Returns what concerns the neighbours.
    pub fn run(&mut self, disk: &mut impl Disk) -> VecDeque<Action> {
        let mut news = VecDeque::new();
        while let Some(action) = self.commit.next(disk.instant()) {
            if action.is_news() {
                news.push_back(action);
            } else {
                self.perform(action, disk);
            }
        }
        news
    }

    /// Carries out one action, and tells the commit path what came of it.
    pub fn perform(&mut self, action: Action, disk: &mut impl Disk) {
        if let Some(event) = self.performed(action, disk) {
            self.commit.handle(event, disk.instant());
        }
    }

    fn performed(&mut self, action: Action, disk: &mut impl Disk) -> Option<Event> {
        let event = match action {
            Action::TryLock => Event::Locked(disk.try_lock()),
            Action::AwaitLock => {
                disk.await_lock();
                return None;
            }
            Action::Unlock => {
                disk.unlock();
                return None;
            }
            Action::Decide(calls, edit) => self.decide(calls, edit, disk),
            Action::Append(decided) => self.append(decided, disk),
            Action::Find(decided, error) => {
                let batch = self.batch_id();
                match disk.find(&batch, error) {
                    Ok(()) => self.appended(decided, disk),
                    Err(error) => self.undone(decided, disk, error),
                }
            }
            Action::Regain => {
                let regained = disk.regain();
                self.commit.handle(Event::LockReplaced, disk.instant());
                Event::Regained(regained)
            }
            Action::AskShown { is_late } => {
                let may_be_shown = is_late || disk.is_durable();
                Event::Shown(if may_be_shown { disk.shown() } else { None })
            }
            Action::NoteShown { seq } => {
                disk.note_shown(seq);
                return None;
            }
            Action::TryLockFile { has_company } => {
                if has_company {
                    // So that another process about to append can join this round.
                    std::thread::yield_now();
                }
                Event::FileLocked(disk.try_lock_file())
            }
            Action::AwaitFile => {
                disk.await_file();
                return None;
            }
            Action::Sync { here, has_company } => {
                Event::Synced(self.sync(here, has_company, disk)?)
            }
            Action::FinishSync => Event::Synced(disk.finish_sync()),
            Action::Place => Event::Placed(disk.place()),
            Action::AskHolder(calls) => Event::Holder(calls, disk.holder()),
            Action::GiveUp => {
                disk.give_up();
                return None;
            }
            Action::SyncAlone => Event::SyncedAlone {
                seq: disk.state().seq(),
                holder: disk.file_holder(),
                synced: disk.sync_alone(),
                is_gone: disk.is_gone(),
            },
            Action::Committed { .. }
            | Action::Reply(_)
            | Action::Publish { .. }
            | Action::Conclude(..) => return None,
        };
        Some(event)
    }

    /// Appends the batch to the journal, unless it records nothing.
    fn append(&mut self, decided: Box<Decided>, disk: &mut impl Disk) -> Event {
        self.batches += 1;
        if decided.events.is_empty() {
            return self.appended(decided, disk);
        }
        let rows = disk.state().run_rows(decided.savepoint);
        let batch = self.batch_id();
        match disk.append(decided.before, &batch, &decided.events, &rows) {
            Ok(()) => self.appended(decided, disk),
            Err(AppendError::Unknown(error)) => Event::Unknown(decided, error),
            Err(AppendError::Conflict { .. }) => {
                disk.state_mut().rollback(decided.savepoint);
                self.has_returned = false;
                disk.end(None);
                Event::Conflict(decided)
            }
            Err(AppendError::Failed(error)) => {
                self.undone(decided, disk, BoardError::NotWritten(error))
            }
        }
    }

    fn batch_id(&self) -> BatchId {
        BatchId::new(format!("{}/{}", self.participant.id, self.batches))
    }

    fn appended(&mut self, mut decided: Box<Decided>, disk: &mut impl Disk) -> Event {
        disk.state_mut().settle();
        disk.end(Some(&decided.due));
        // With several callers, waking the thread that syncs comes first.
        if self.commit.may_hasten() {
            disk.hasten();
        }
        let replies = decided.decisions.iter_mut().filter_map(|decision| match decision {
            Decision { call, outcome: Outcome::Answer(Ok(Value::Object(reply))) } => {
                (!call.reply.is_closed()).then_some(reply)
            }
            _ => None,
        });
        add_report(disk.report(), replies);
        Event::Appended(decided)
    }

    fn undone(&mut self, decided: Box<Decided>, disk: &mut impl Disk, error: BoardError) -> Event {
        disk.state_mut().rollback(decided.savepoint);
        // What was due by time must be found again.
        self.has_returned = false;
        disk.end(None);
        Event::Failed(decided, error)
    }

    fn sync(
        &mut self,
        here: bool,
        has_company: bool,
        disk: &mut impl Disk,
    ) -> Option<Result<(), BoardError>> {
        if has_company || disk.is_overtaken() {
            match disk.catch_up() {
                Ok(newest) => self.commit.handle(Event::CaughtUp(newest), disk.instant()),
                // The next call will meet this error, too, and can report it.
                Err(Blocked::Vanished(error) | Blocked::Failed(error)) => {
                    tracing::warn!(%error, "what others have recorded could not be read");
                }
            }
        }
        self.commit.handle(Event::Syncing { seq: disk.state().seq() }, disk.instant());
        disk.sync(here)
    }

    /// Catches up without holding the lock, after putting the board back if it is gone. The news
    /// of that are for the neighbours.
    pub fn catch_up(
        &mut self,
        disk: &mut impl Disk,
        news: &mut VecDeque<Action>,
    ) -> Result<(), Arc<BoardError>> {
        for _ in 0..REGAINED_AT_MOST {
            let error = match disk.catch_up() {
                Ok(newest) => {
                    self.commit.handle(Event::CaughtUp(newest), disk.instant());
                    return Ok(());
                }
                Err(Blocked::Failed(error)) => return Err(Arc::new(error)),
                Err(Blocked::Vanished(error)) => error,
            };
            let vanished = Event::Vanished { calls: Vec::new(), edit: None, error };
            self.commit.handle(vanished, disk.instant());
            news.extend(self.run(disk));
            if let Some(error) = self.commit.take_unregained() {
                return Err(error);
            }
        }
        Err(Arc::new(BoardError::Ended))
    }
}

/// Adds what was repaired to the first of these replies.
fn add_report<'a>(
    report: &mut Option<String>,
    mut replies: impl Iterator<Item = &'a mut Map<String, Value>>,
) {
    if report.is_some()
        && let Some(reply) = replies.next()
        && let Some(report) = report.take()
    {
        add_warning(reply, &report);
    }
}

/// Adds it to the answer of a read.
pub(super) fn report_in(report: &mut Option<String>, answers: &mut Answers) {
    let replies = answers.iter_mut().filter_map(|(reply, answer)| match answer {
        Ok(Value::Object(fields)) if !reply.is_closed() => Some(fields),
        _ => None,
    });
    add_report(report, replies);
}
