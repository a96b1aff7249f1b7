//! One batch under the lock: what is due by time, then the calls, then what follows from them is
//! recorded, and all of it is appended to the journal.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::messages::LINGER;
use super::{BATCH, Writer, is_past};
use crate::clock::BoardClock;
use crate::journal::BatchId;
use crate::ops::{self, Due, Recorder};
use crate::participant::board::Board;
use crate::participant::directory::DirectoryError;
use crate::participant::edits::Verdict;
use crate::participant::error::{BoardError, CallError, lock_error};
use crate::participant::message::{Answers, waited};
use crate::participant::options::Stay;
use crate::participant::presence::{PresenceLock, clear_presence, clear_unlisted, is_present};
use crate::participant::runs;
use crate::state::agent::Participant;
use crate::state::deadline::STEP;
use crate::state::event::{Event, Recorded};
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, Chance, ParticipantId};
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};

impl Writer {
    /// Commits one batch. Returns the verdict on a hand edit, if there was one to decide on.
    pub(super) fn commit_batch(
        &mut self,
        answers: &mut Answers,
    ) -> Result<Option<Verdict>, BoardError> {
        let committed = self.commit_begun(answers);
        if let Some(board) = &self.board {
            board.end_append();
        }
        committed
    }

    fn commit_begun(&mut self, answers: &mut Answers) -> Result<Option<Verdict>, BoardError> {
        let Some(board) = &mut self.board else { return Ok(None) };
        board.lock.sign(self.participant.pid).map_err(lock_error)?;
        board.begin_append()?;
        self.others.look_again();
        self.catch_up_or_regain(&mut true)?;
        let Some(board) = &mut self.board else { return Ok(None) };
        board.check_writable()?;
        self.clock.settle(|| board.lock.mark());
        self.clock.now(board.state.board().last_activity);
        // Before the first event of a boot is appended, so that all processes date the next one
        // alike.
        self.note_mark();
        let Some(board) = &mut self.board else { return Ok(None) };
        let (before, savepoint) = (board.state.seq(), board.state.savepoint());
        let mut events = Vec::new();
        let (verdict, recorded) = match self.record_edit(&mut events) {
            Ok(verdict) => (verdict, self.record_batch(&mut events, answers)),
            Err(error) => (None, Err(error.into())),
        };
        let Some(board) = &mut self.board else { return Ok(None) };
        self.batches += 1;
        let batch = BatchId::new(format!("{}/{}", self.participant.id, self.batches));
        let written = match recorded {
            Ok(()) if events.is_empty() => Ok(()),
            Ok(()) => {
                let rows = board.state.run_rows(savepoint);
                board.append(before, &batch, &events, &rows)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            board.state.rollback(savepoint);
            // What was due by time must be found again.
            self.last_reap = None;
            self.has_returned = false;
            return Err(error);
        }
        board.state.settle();
        let slept = self.clock.slept();
        if self.slept.is_none_or(|noted| slept - noted > STEP) {
            // A failure here does not concern what was committed.
            match board.lock.note_slept(slept) {
                Ok(()) => self.slept = Some(slept),
                Err(error) => {
                    tracing::warn!(%error, "how long the machine has slept could not be noted")
                }
            }
        }
        self.rounds.note(events);
        Ok(verdict)
    }

    /// Records the hand edit that was read last, if the board adopts it. Returns what becomes of
    /// its file.
    fn record_edit(&mut self, events: &mut Vec<Recorded>) -> Result<Option<Verdict>, ApplyError> {
        let Some(board) = &mut self.board else { return Ok(None) };
        let Some(verdict) = self.edits.decide(&board.state) else { return Ok(None) };
        let Verdict::Adopted(event) = &verdict else { return Ok(Some(verdict)) };
        let at = self.clock.now(board.state.board().last_activity);
        let (participant, actor) = (self.participant.id.clone(), Some(AgentId::trusted(HUMAN)));
        let envelope = Envelope { at, participant, actor, idempotency: None };
        if !self.others.admit(&board.state, event) {
            let older = board.state.older(&self.others.living(), event.level());
            let operation = "what it changes".to_owned();
            return Ok(Some(Verdict::Rejected(vec![
                Refusal::OlderProcesses { operation, older }.to_string(),
            ])));
        }
        events.push(board.state.record(Event::clone(event), &envelope)?);
        Ok(Some(verdict))
    }

    /// Records what is due by time, then the calls, each of which sees what the one before did,
    /// then what follows from them.
    fn record_batch(
        &mut self,
        events: &mut Vec<Recorded>,
        answers: &mut Answers,
    ) -> Result<(), BoardError> {
        self.ensure_presence()?;
        self.record_time(events)?;
        self.record_calls(events, answers);
        Ok(self.follow_up(events)?)
    }

    fn record_calls(&mut self, events: &mut Vec<Recorded>, answers: &mut Answers) {
        let until = Instant::now() + LINGER;
        for calls in 0..BATCH {
            let Some(call) = self.next_call(calls, until) else { return };
            if call.reply.is_closed() {
                continue;
            }
            if let Some(directory) = self.works_elsewhere(&call) {
                drop(call.site.instead.set(directory));
                answers.push((call.reply, Err(CallError::Gone)));
                continue;
            }
            if call.entered.elapsed() < waited(&call) && self.would_wait(&call) {
                self.park(call);
                continue;
            }
            self.learn(call.caller.client.as_deref());
            let executed =
                self.with_call(&call, |state, prepared, call| ops::execute(state, prepared, call));
            let answer = match executed {
                Ok(executed) => {
                    self.note_actor(&call, &executed);
                    let recorded = !executed.events.is_empty();
                    events.extend(executed.events);
                    // Only now that the call has registered its agent can it wait.
                    if recorded && call.entered.elapsed() < waited(&call) && self.would_wait(&call)
                    {
                        self.park(call);
                        continue;
                    }
                    if let Err(Refusal::AgentInUse { .. }) = &executed.answer {
                        // Has the next batch check whether that process is still alive.
                        self.last_reap = None;
                    }
                    executed.answer.map_err(CallError::Refused)
                }
                Err(error) => Err(CallError::Failed(Arc::new(error.into()))),
            };
            answers.push((call.reply, answer));
        }
    }

    /// Makes sure that others can see this process. If it is not listed, it may have been taken for
    /// dead and its file removed.
    fn ensure_presence(&mut self) -> Result<(), BoardError> {
        let Some(board) = &self.board else { return Ok(()) };
        let is_listed = board.state.participant(&self.participant.id).is_some();
        // If its life says nothing about agents, a check once a second is enough.
        let is_doubtful = is_past(self.last_reap) || self.stay == Stay::Presence;
        if self.presence.is_none() || is_doubtful && !is_listed {
            self.show_presence()?;
        }
        Ok(())
    }

    /// Takes the presence lock in a process that stays, even if it only reads: it may know what the
    /// files have lost.
    pub(in crate::participant) fn show_presence(&mut self) -> Result<(), DirectoryError> {
        let is_shown = self.presence.as_ref().is_some_and(PresenceLock::is_in_place);
        if self.stay != Stay::Brief && self.unwritable.is_none() && !is_shown {
            // The old lock is dropped first, because that removes its file.
            self.presence = None;
            self.note.learn_clock(self.clock.ahead());
            let presence =
                PresenceLock::acquire(&self.dir, self.participant.id.as_str(), &self.note)?;
            // The system has dated the file by the wall clock.
            drop(presence.touch(self.clock.now(Timestamp::default())));
            self.presence = Some(presence);
        }
        Ok(())
    }

    /// Notes in the presence file which client this process serves.
    fn learn(&mut self, client: Option<&str>) {
        if self.stay == Stay::Presence
            && self.note.learn(client)
            && let Some(presence) = &self.presence
        {
            // The note serves people only, and touching makes good the time of the file.
            drop(
                presence
                    .note(&self.note)
                    .and_then(|()| presence.touch(self.clock.now(Timestamp::default()))),
            );
        }
    }

    fn record_time(&mut self, events: &mut Vec<Recorded>) -> Result<(), ApplyError> {
        let Some(board) = &mut self.board else { return Ok(()) };
        let last_activity = board.state.board().last_activity;
        let at = self.clock.now(last_activity);
        let gone = gone(&board.state, &self.dir, &self.participant.id, &mut self.last_reap);
        // A process that is on no list, such as a server, leaves its file if it is killed.
        let nobody_ran = match board.state.participants().count() {
            0 => self.attended_before.is_some(),
            all => gone.len() == all,
        };
        // An agent that works in silence records nothing.
        let last_seen = last_activity.max(self.attended_before.unwrap_or_default());
        let idle = self.opened_at.since(last_seen);
        let unattended = (nobody_ran && idle > STEP).then_some(idle);
        let slept = slept_unnoticed(board, &self.clock, self.slept);
        let gap = unattended.max(slept);
        let due = Due { gap, gone };
        let has_returned = std::mem::replace(&mut self.has_returned, true);
        let (own, stay, started_at) = (self.participant.id.clone(), self.stay, self.started_at);
        self.record_at(at, |recorder, state, _| {
            recorder.time(state, &due, events)?;
            let returned = if has_returned {
                Vec::new()
            } else {
                runs::returned(state, &own, stay, started_at)
            };
            returned
                .into_iter()
                .try_for_each(|event| recorder.record(state, event, events).map(drop))
        })?;
        due.gone.iter().for_each(|participant| clear_presence(&self.dir, participant.id.as_str()));
        Ok(())
    }

    /// Records what follows from the calls.
    fn follow_up(&mut self, events: &mut Vec<Recorded>) -> Result<(), ApplyError> {
        let Some(board) = &self.board else { return Ok(()) };
        let at = self.clock.now(board.state.board().last_activity);
        let mut retired_from = self.retired_from;
        self.record_at(at, |recorder, state, chance| {
            recorder.follow_up(state, chance, events)?;
            recorder.retire(state, &mut retired_from, events)
        })?;
        self.retired_from = retired_from;
        Ok(())
    }

    fn record_at(
        &mut self,
        at: Timestamp,
        record: impl FnOnce(&Recorder, &mut State, &mut Chance) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        let Some(board) = &mut self.board else { return Ok(()) };
        let (state, _, policy) = board.split();
        let admits = |state: &State, event: &Event| self.others.admit(state, event);
        let recorder = Recorder { at, participant: &self.participant.id, policy, admits: &admits };
        record(&recorder, state, &mut self.chance)
    }
}

/// Milliseconds that the machine has slept since that was last noted, if that is more than a clock
/// step and anything was noted.
fn slept_unnoticed(board: &Board, clock: &BoardClock, noted: Option<i64>) -> Option<i64> {
    let slept = clock.slept();
    if noted.is_some_and(|noted| slept - noted <= STEP) {
        return None;
    }
    board.lock.slept().map(|noted| slept - noted).filter(|unnoticed| *unnoticed > STEP)
}

/// Participants whose process is dead; looked for once a second.
fn gone(
    state: &State,
    dir: &Path,
    own: &ParticipantId,
    last_reap: &mut Option<Instant>,
) -> Vec<Arc<Participant>> {
    if !is_past(*last_reap) {
        return Vec::new();
    }
    *last_reap = Some(Instant::now());
    clear_unlisted(dir, |name| {
        name == own.as_str() || state.participant(&ParticipantId::trusted(name)).is_some()
    });
    let others = state.participants().filter(|one| one.id != *own);
    others.filter(|one| !is_present(dir, one.id.as_str())).cloned().collect()
}
