//! One batch: what is due by time is recorded, then the calls, then what follows from them.

use super::Driver;
use crate::ops::health_check::Kind;
use crate::ops::{self, Call, Due, Fetched, Prepared, Recorder, Vitals};
use crate::participant::commit::{Decided, Decision, Event, Outcome};
use crate::participant::disk::{Blocked, Disk, Parts, View};
use crate::participant::edits::{self, Examined, Verdict};
use crate::participant::error::{BoardError, CallError};
use crate::participant::message::{Answer, Queued, waited};
use crate::participant::options::Stay;
use crate::participant::runs;
use crate::state::event::Recorded;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, Chance};
use crate::state::refusal::Refusal;
use crate::state::{ApplyError, Envelope, State};

/// What a batch is about to append.
#[derive(Default)]
struct Record {
    due: Due,
    verdict: Option<Verdict>,
    outcomes: Vec<Outcome>,
    events: Vec<Recorded>,
}

impl Driver {
    /// Decides the calls on the newest state. They are kept, because a conflict has them decided
    /// again.
    pub(super) fn decide(
        &mut self,
        calls: Vec<Queued>,
        edit: Option<Examined>,
        disk: &mut impl Disk,
    ) -> Event {
        match disk.begin() {
            Ok(newest) => self.commit.handle(Event::CaughtUp(newest), disk.instant()),
            Err(Blocked::Vanished(error)) => {
                disk.end(None);
                return Event::Vanished { calls, edit, error };
            }
            Err(Blocked::Failed(error)) => {
                disk.end(None);
                return Event::Undecided { calls, edit, error };
            }
        }
        let (before, savepoint) = (disk.state().seq(), disk.state().savepoint());
        let record = match self.record(&calls, edit.as_ref(), disk) {
            Ok(record) => record,
            Err(error) => {
                disk.state_mut().rollback(savepoint);
                self.has_returned = false;
                disk.end(None);
                return Event::Undecided { calls, edit, error: error.into() };
            }
        };
        let Record { due, verdict, outcomes, events } = record;
        let seq = disk.state().seq();
        let decisions = calls.into_iter().zip(outcomes);
        let decisions = decisions.map(|(call, outcome)| Decision { call, outcome }).collect();
        let edit = edit.zip(verdict);
        Event::Decided(Box::new(Decided { decisions, edit, due, events, before, seq, savepoint }))
    }

    fn record(
        &mut self,
        calls: &[Queued],
        edit: Option<&Examined>,
        disk: &mut impl Disk,
    ) -> Result<Record, ApplyError> {
        let mut record = Record::default();
        if let Some(examined) = edit {
            record.verdict = Some(self.record_edit(examined, disk, &mut record.events)?);
        }
        record.due = disk.due();
        self.record_time(disk, &mut record)?;
        for call in calls {
            let outcome = self.record_call(call, disk, &mut record.events);
            record.outcomes.push(outcome);
        }
        self.follow_up(disk, &mut record.events)?;
        Ok(record)
    }

    /// Records the hand edit, if the board adopts it. Returns what becomes of its file.
    fn record_edit(
        &self,
        examined: &Examined,
        disk: &mut impl Disk,
        events: &mut Vec<Recorded>,
    ) -> Result<Verdict, ApplyError> {
        let Parts { state, now: at, peers, .. } = disk.parts();
        let verdict = edits::decide(examined, state);
        let Verdict::Adopted(event) = &verdict else { return Ok(verdict) };
        if !peers.admit(state, event) {
            let older = state.older(&peers.living(), event.level());
            let operation = "what it changes".to_owned();
            let refusal = Refusal::OlderProcesses { operation, older };
            return Ok(Verdict::Rejected(vec![refusal.to_string()]));
        }
        let (participant, actor) = (self.participant.id.clone(), Some(AgentId::trusted(HUMAN)));
        let envelope = Envelope { at, participant, actor, idempotency: None };
        events.push(state.record(crate::state::event::Event::clone(event), &envelope)?);
        Ok(verdict)
    }

    fn record_time(&mut self, disk: &mut impl Disk, record: &mut Record) -> Result<(), ApplyError> {
        let Record { due, events, .. } = record;
        let has_returned = std::mem::replace(&mut self.has_returned, true);
        let (stay, began) = (self.stay, self.started_at);
        self.record_with(disk, |recorder, state, _| {
            recorder.time(state, due, events)?;
            let own = recorder.participant;
            let returned = (!has_returned).then(|| runs::returned(state, own, stay, began));
            let mut returned = returned.into_iter().flatten();
            returned.try_for_each(|event| recorder.record(state, event, events).map(drop))
        })
    }

    /// Records what follows from the calls.
    fn follow_up(
        &mut self,
        disk: &mut impl Disk,
        events: &mut Vec<Recorded>,
    ) -> Result<(), ApplyError> {
        let mut retired_from = self.retired_from;
        self.record_with(disk, |recorder, state, chance| {
            recorder.follow_up(state, chance, events)?;
            recorder.retire(state, &mut retired_from, events)
        })?;
        self.retired_from = retired_from;
        Ok(())
    }

    fn record_with(
        &mut self,
        disk: &mut impl Disk,
        record: impl FnOnce(&Recorder, &mut State, &mut Chance) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        let Parts { state, policy, now: at, peers, .. } = disk.parts();
        let admits = |state: &State, event: &crate::state::event::Event| peers.admit(state, event);
        let recorder = Recorder { at, participant: &self.participant.id, policy, admits: &admits };
        record(&recorder, state, &mut self.chance)
    }

    fn record_call(
        &mut self,
        call: &Queued,
        disk: &mut impl Disk,
        events: &mut Vec<Recorded>,
    ) -> Outcome {
        if call.reply.is_closed() {
            return Outcome::Answer(Err(CallError::Gone));
        }
        if let Some(directory) = self.works_elsewhere(call, disk.state()) {
            drop(call.site.instead.set(directory));
            return Outcome::Answer(Err(CallError::Gone));
        }
        let may_wait = disk.instant() < call.entered + waited(call);
        if may_wait && self.would_wait(call, disk) {
            return Outcome::Park;
        }
        disk.learn(call.caller.client.as_deref());
        let executed = match self.with_call(call, disk, ops::execute) {
            Ok(executed) => executed,
            Err(error) => return Outcome::Answer(Err(BoardError::from(error).into())),
        };
        self.note_actor(call, &executed, disk.state());
        let has_recorded = !executed.events.is_empty();
        events.extend(executed.events);
        // Only now that the call has registered its agent can it wait.
        if has_recorded && may_wait && self.would_wait(call, disk) {
            return Outcome::Park;
        }
        if let Err(Refusal::AgentInUse { .. }) = &executed.answer {
            disk.doubt_presence();
        }
        Outcome::Answer(executed.answer.map_err(CallError::Refused))
    }

    /// Answers a call that records nothing.
    pub fn answer(&mut self, call: &Queued, view: &mut (impl View + ?Sized)) -> Answer {
        match self.with_call(call, view, ops::execute) {
            Ok(executed) => executed.answer.map_err(CallError::Refused),
            Err(error) => Err(BoardError::from(error).into()),
        }
    }

    pub fn would_wait(&mut self, call: &Queued, view: &mut (impl View + ?Sized)) -> bool {
        !self.is_hurried
            && self.with_call(call, view, |state, prepared, call| ops::waits(state, prepared, call))
    }

    /// Runs `operate` with everything that the pure core may know.
    pub fn with_call<T>(
        &mut self,
        call: &Queued,
        view: &mut (impl View + ?Sized),
        operate: impl FnOnce(&mut State, &dyn Prepared, Call) -> T,
    ) -> T {
        let started_as = call.caller.default_agent();
        let nickname = call.caller.newcomer();
        let door = call.caller.door();
        let session = call.caller.session(&door);
        let seed = self.chance.draw();
        let unshown = self.commit.trouble();
        let others = view.troubles().into_iter();
        // Why this process could not write the file says more than that it is behind.
        let others = others
            .filter(|other| unshown.is_none() || other.kind != Kind::StateFileBehind)
            .collect::<Vec<_>>();
        let troubles = unshown.into_iter().chain(others).collect();
        let Parts { state, history, policy, now, peers, ahead } = view.parts();
        let default_agent = self.resolved(&started_as, state);
        let vitals = Vitals {
            started_at: self.started_at,
            troubles,
            room: &|| peers.room(),
            state_file_seq: &|| peers.state_file_seq(),
            living: &|| peers.living(),
            ahead,
        };
        let context = Call {
            presence: (self.stay == Stay::Presence).then_some(&self.participant),
            place: &call.site.place,
            uncommitted: call.site.uncommitted.as_deref(),
            fetched: call.fetched.as_deref().unwrap_or(&Fetched::Nothing),
            default_agent: &default_agent,
            started_as: &started_as,
            nickname: nickname.as_deref(),
            door: &door,
            session: session.as_deref(),
            principal: call.caller.principal.as_deref(),
            person: call.caller.person.as_deref(),
            remote: call.caller.remote,
            command: call.caller.command.as_deref(),
            reader: call.caller.reader,
            ..Call::new(now, seed, policy, &self.participant.id, history.as_ref(), &vitals)
        };
        operate(state, call.prepared.as_ref(), context)
    }
}
