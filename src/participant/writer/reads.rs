//! Reads: what is answered from the replica and records nothing.

use std::sync::Arc;
use std::time::Instant;

use super::Writer;
use crate::ops::{self, History};
use crate::participant::archive::BoardArchive;
use crate::participant::beside::Snapshot;
use crate::participant::error::{BoardError, CallError};
use crate::participant::feed::Item;
use crate::participant::message::{Look, Message, Past, Queued, answer_one};
use crate::participant::opening;
use crate::participant::options::Stay;
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;

impl Writer {
    /// Answers from the replica, after catching up; without a board, from the empty state.
    pub(super) fn read(&mut self, call: Queued, may_wait: bool) {
        let answer = match self.open(false) {
            Ok(()) => self.look_again().map_err(Arc::new).map_err(CallError::Failed),
            Err(error) if matches!(*error, BoardError::Absent { .. }) => {
                let shown = opening::before_first_write(&self.dir).map_err(CallError::from);
                shown.map(|(_, lost)| self.report = self.report.take().or(lost))
            }
            Err(error) => Err(CallError::Failed(error)),
        };
        if let Err(error) = answer {
            return answer_one(call.reply, Err(error));
        }
        self.show_again();
        if may_wait && self.would_wait(&call) {
            return self.park(call);
        }
        self.others.look_again();
        let executed =
            self.with_call(&call, |state, prepared, call| ops::execute(state, prepared, call));
        let answer = match executed {
            Ok(executed) => executed.answer.map_err(CallError::Refused),
            Err(error) => Err(CallError::Failed(Arc::new(error.into()))),
        };
        let mut answers = vec![(call.reply, answer)];
        self.report_in(&mut answers);
        answers.into_iter().for_each(|(reply, answer)| self.answer_read(reply, answer));
    }

    /// Brings the replica up to date, if there is a board.
    fn look(&mut self) -> Result<(), CallError> {
        match self.open(false) {
            Ok(()) => {
                self.look_again()?;
                self.show_again();
                Ok(())
            }
            Err(error) if matches!(*error, BoardError::Absent { .. }) => Ok(()),
            Err(error) => Err(CallError::Failed(error)),
        }
    }

    pub(super) fn show(&mut self, look: Look) {
        match (self.look(), &self.board) {
            (Err(error), _) => look(Err(error)),
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
        self.look()?;
        let (state, policy) = match &mut self.board {
            Some(board) => {
                board.settle_for_reading();
                let (state, _, policy) = board.split();
                (state.clone(), policy.clone())
            }
            None => (opening::before_first_write(&self.dir)?.0, Policy::default()),
        };
        Ok(Box::new(Snapshot {
            dir: self.dir.clone(),
            now: self.clock.now(state.board().last_activity),
            state,
            policy,
            seed: self.chance.draw(),
            participant: self.participant.clone(),
            is_presence: self.stay == Stay::Presence,
            started_at: self.started_at,
        }))
    }

    pub(super) fn past(&mut self, seq: u64, limit: usize) -> Result<Past, CallError> {
        self.look()?;
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

    /// Asks the archive on another thread; the call comes back with its answer.
    pub(super) fn fetch(&mut self, mut call: Queued) {
        if let Some(reason) =
            self.unwritable.as_ref().filter(|_| !call.prepared.annotations().read_only)
        {
            return answer_one(call.reply, Err(BoardError::Forbidden(reason.clone()).into()));
        }
        let opened = self.open(false).and_then(|()| self.look_again().map_err(Arc::new));
        if let Err(error) = opened {
            return answer_one(call.reply, Err(CallError::Failed(error)));
        }
        if let Err(refusal) =
            self.with_call(&call, |state, prepared, call| ops::admit(state, prepared, call))
        {
            return self.answer_read(call.reply, Err(CallError::Refused(refusal)));
        }
        let waiting = Arc::strong_count(&self.fetching);
        let Some(board) = self.board.as_ref().filter(|_| waiting <= limit::FETCHING.max) else {
            return answer_one(call.reply, Err(BoardError::Overloaded { waiting }.into()));
        };
        let archive = board.archive(self.clock.now(board.state.board().last_activity));
        let archive = BoardArchive { reader: call.caller.reader, ..archive };
        let (sender, fetching) = (self.sender.clone(), Arc::clone(&self.fetching));
        let ask = move || {
            let fetched = call.prepared.fetch(&archive);
            drop((archive, fetching));
            match fetched {
                Ok(fetched) => {
                    (call.fetched, call.entered) = (Some(Box::new(fetched)), Instant::now());
                    // If the writer has ended, nobody waits.
                    drop(sender.send(Message::Call(call)));
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
