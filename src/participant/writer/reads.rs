//! Reads: what is answered from the replica and records nothing.

use std::sync::Arc;
use std::time::Instant;

use super::Writer;
use crate::ops::{self, History};
use crate::participant::archive::{self, BoardArchive};
use crate::participant::beside::Snapshot;
use crate::participant::commit::Event;
use crate::participant::driver::report_in;
use crate::participant::error::{BoardError, CallError};
use crate::participant::feed::Item;
use crate::participant::files::Absent;
use crate::participant::history::JournalHistory;
use crate::participant::message::{Answers, Look, Message, Past, Queued, answer_one};
use crate::participant::opening::{self, AsItIs};
use crate::participant::options::Stay;
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::statefile::Home;

impl Writer {
    /// Answers from the replica, after catching up; without a board, from the empty state.
    pub(super) fn read(&mut self, call: Queued, may_wait: bool) {
        match self.open(false).and_then(|()| self.catch_up()) {
            Ok(()) => self.bring_up_to_date(),
            Err(error) if matches!(*error, BoardError::Absent { .. }) => {
                return self.read_before_board(call, may_wait);
            }
            Err(error) => return self.read_as_it_is(call, error),
        }
        if may_wait && self.would_wait(&call) {
            return self.park(call);
        }
        let Some((driver, mut files)) = self.parts() else { return };
        files.attendance.others.look_again();
        let answer = driver.answer(&call, &mut files);
        let mut answers = vec![(call.reply, answer)];
        report_in(&mut files.board.report, &mut answers);
        self.answer_reads(answers);
    }

    fn read_before_board(&mut self, call: Queued, may_wait: bool) {
        let (state, lost) = match opening::before_first_write(&self.dir) {
            Ok(found) => found,
            Err(error) => return answer_one(call.reply, Err(error.into())),
        };
        let mut view = Absent::new(state, &mut self.attendance);
        if may_wait && self.driver.would_wait(&call, &mut view) {
            return self.park(call);
        }
        let answer = self.driver.answer(&call, &mut view);
        let mut answers = vec![(call.reply, answer)];
        report_in(&mut { lost }, &mut answers);
        self.answer_reads(answers);
    }

    /// Answers from what can be read of a board that cannot be written. It is read again for each
    /// call: others may write it where they are.
    fn read_as_it_is(&mut self, call: Queued, error: Arc<BoardError>) {
        let found = match opening::as_it_is(&self.dir) {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => return answer_one(call.reply, Err(CallError::Failed(error))),
        };
        let view = Absent::new(found.state, &mut self.attendance);
        let mut view = view.with_journal(&self.dir, found.journal);
        let answer = self.driver.answer(&call, &mut view);
        let mut answers = vec![(call.reply, answer)];
        report_in(&mut Some(found.report), &mut answers);
        self.answer_reads(answers);
    }

    /// What can be read of a board that cannot be opened, because it cannot be written.
    fn unwritable(&self, error: CallError) -> Result<AsItIs, CallError> {
        match opening::as_it_is(&self.dir) {
            Ok(Some(found)) => Ok(found),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Answers now if everything in the replica is durable, else with the round that makes it so;
    /// if none is about to begin, syncs here.
    fn answer_reads(&mut self, answers: Answers) {
        let mut answers = Some(answers);
        if let Some(board) = self.board.as_ref().filter(|board| !board.is_settled()) {
            let seq = board.state.seq();
            answers = answers.and_then(|answers| self.driver.commit.hold_read(seq, answers));
            if answers.is_some() {
                board.settle_for_reading();
            }
        }
        answers.into_iter().flatten().for_each(|(reply, answer)| answer_one(reply, answer));
    }

    /// Brings the replica up to date, if there is a board.
    fn look(&mut self) -> Result<(), CallError> {
        match self.open(false) {
            Ok(()) => {
                self.catch_up().map_err(CallError::Failed)?;
                self.bring_up_to_date();
                Ok(())
            }
            Err(error) if matches!(*error, BoardError::Absent { .. }) => Ok(()),
            Err(error) => Err(CallError::Failed(error)),
        }
    }

    /// Records for a reader that other processes have ended, since none may live that does, and
    /// puts the state file back where it is behind. Neither keeps it waiting for a lock.
    fn bring_up_to_date(&mut self) {
        let may_record = self.driver.stay == Stay::Brief
            && self.access.unwritable.is_none()
            && !self.driver.commit.has_calls()
            && self.driver.commit.failed_at().is_none();
        let died = self.board.as_ref().filter(|_| may_record).is_some_and(|board| {
            self.attendance.has_someone_died(&board.state)
                && board.check_writable().is_ok()
                && board.lock.is_free()
        });
        if died {
            self.driver.commit.handle(Event::Due, Instant::now());
            self.finish();
        }
        self.show_again();
    }

    pub(super) fn show(&mut self, look: Look) {
        match (self.look(), &self.board) {
            (Err(error), _) => match self.unwritable(error) {
                Ok(found) => look(Ok(&found.state)),
                Err(error) => look(Err(error)),
            },
            (Ok(()), Some(board)) => {
                board.settle_for_reading();
                look(Ok(&board.state));
            }
            (Ok(()), None) => match opening::before_first_write(&self.dir) {
                Ok((state, _)) => look(Ok(&state)),
                Err(error) => look(Err(error.into())),
            },
        }
    }

    pub(super) fn snapshot(&mut self) -> Result<Box<Snapshot>, CallError> {
        let unwritable = match self.look() {
            Ok(()) => None,
            Err(error) => Some(self.unwritable(error)?),
        };
        let mut report = None;
        let (dir, state, policy) = match (&mut self.board, unwritable) {
            (_, Some(found)) => {
                report = Some(found.report);
                (Home::of(&self.dir), found.state, Policy::default())
            }
            (Some(board), None) => {
                board.settle_for_reading();
                let dir = board.dir.clone();
                let (state, _, policy) = board.split();
                (dir, state.clone(), policy.clone())
            }
            (None, None) => {
                let state = opening::before_first_write(&self.dir)?.0;
                (Home::of(&self.dir), state, Policy::default())
            }
        };
        Ok(Box::new(Snapshot {
            dir,
            now: self.attendance.now(&state),
            state,
            policy,
            seed: self.driver.chance.draw(),
            participant: self.driver.participant.clone(),
            is_presence: self.driver.stay == Stay::Presence,
            started_at: self.driver.started_at,
            report,
        }))
    }

    pub(super) fn past(&mut self, seq: u64, limit: usize) -> Result<Past, CallError> {
        if let Err(error) = self.look() {
            return self.past_as_it_is(seq, limit, error);
        }
        let Some(board) = &mut self.board else { return Ok(Past { items: Vec::new(), head: 0 }) };
        if limit == 0 {
            // A new listener may have heard from another process of events that are not settled
            // here yet.
            board.settle_for_reading();
        }
        let head = board.settled_seq();
        let (_, history, _) = board.split();
        let limit = limit.min(usize::try_from(head.saturating_sub(seq)).unwrap_or(usize::MAX));
        let events =
            history.events_after(seq, limit).map_err(|detail| Refusal::HistoryUnread { detail })?;
        Ok(Past { items: events.into_iter().filter_map(Item::new).collect(), head })
    }

    fn past_as_it_is(&self, seq: u64, limit: usize, error: CallError) -> Result<Past, CallError> {
        let Ok(Some(AsItIs { state, journal: Some(journal), .. })) = opening::as_it_is(&self.dir)
        else {
            return Err(error);
        };
        let (dir, head) = (Home::of(&self.dir), state.seq());
        let history = JournalHistory { journal: &journal, dir: &dir, head };
        let events =
            history.events_after(seq, limit).map_err(|detail| Refusal::HistoryUnread { detail })?;
        Ok(Past { items: events.into_iter().filter_map(Item::new).collect(), head })
    }

    /// Asks the archive on another thread; the call comes back with its answer.
    pub(super) fn fetch(&mut self, mut call: Queued) {
        if !call.prepared.annotations().read_only
            && let Err(error) = self.access.check_writable()
        {
            return answer_one(call.reply, Err(error.into()));
        }
        let mut unwritable = None;
        if let Err(error) = self.open(false).and_then(|()| self.catch_up()) {
            let in_words = CallError::Failed(self.in_words(Arc::clone(&error)));
            unwritable = match self.unwritable(CallError::Failed(error)) {
                Ok(found) if call.prepared.annotations().read_only => Some(found.state),
                Ok(_) => return answer_one(call.reply, Err(in_words)),
                Err(error) => return answer_one(call.reply, Err(error)),
            };
        }
        let admitted = self.with_view(|driver, view| {
            driver.with_call(&call, view, |state, prepared, call| ops::admit(state, prepared, call))
        });
        match admitted {
            Ok(Some(with_ids)) => call.prepared = with_ids,
            Ok(None) => {}
            Err(refusal) => {
                return self.answer_reads(vec![(call.reply, Err(CallError::Refused(refusal)))]);
            }
        }
        let waiting = Arc::strong_count(&self.fetching);
        let archive = match (unwritable, &self.board) {
            _ if waiting > limit::FETCHING.max => None,
            (Some(state), _) => Some(BoardArchive {
                dir: self.dir.clone(),
                now: self.attendance.now(&state),
                present: state,
                reader: call.caller.reader,
                retention: archive::retention(&Policy::default()),
                journal_bytes: 0,
            }),
            (None, Some(board)) => Some(board.archive(self.attendance.now(&board.state))),
            (None, None) => None,
        };
        let Some(archive) = archive else {
            return answer_one(call.reply, Err(BoardError::Overloaded { waiting }.into()));
        };
        let archive = BoardArchive { reader: call.caller.reader, ..archive };
        let (sender, fetching) = (self.sender.clone(), Arc::clone(&self.fetching));
        let ask = move || {
            let fetched = call.prepared.fetch(&archive);
            drop((archive, fetching));
            match fetched {
                Ok(fetched) => {
                    (call.fetched, call.entered) = (Some(Box::new(fetched)), Instant::now());
                    // If the writer has ended, nobody waits.
                    drop(sender.send(Message::Call(Box::new(call))));
                }
                Err(refusal) => answer_one(call.reply, Err(CallError::Refused(refusal))),
            }
        };
        // Without a thread the call is dropped, which its caller notices.
        if let Err(error) = std::thread::Builder::new().name("archive".to_owned()).spawn(ask) {
            tracing::error!(%error, "no thread for the archive");
        }
    }
}
