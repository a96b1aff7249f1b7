//! What a process records in a batch besides the calls: what is due by time before them, and what
//! follows from them after them.

use std::sync::Arc;

use crate::state::agent::Participant;
use crate::state::deadline::clock_stepped;
use crate::state::event::{Event, Recorded};
use crate::state::id::{Chance, ParticipantId};
use crate::state::policy::Policy;
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};

/// What clocks and the ends of processes have brought since the last batch.
#[derive(Default)]
pub struct Due {
    /// Milliseconds by which the open deadlines move.
    pub gap: Option<i64>,
    /// Participants whose processes have ended.
    pub gone: Vec<Arc<Participant>>,
}

/// Records in the name of a process, at one time.
pub struct Recorder<'a> {
    pub at: Timestamp,
    pub participant: &'a ParticipantId,
    pub policy: &'a Policy,
    /// Whether all living processes can read the event. One that they cannot read is left for
    /// later.
    pub admits: &'a dyn Fn(&State, &Event) -> bool,
}

impl Recorder<'_> {
    /// Records one event, and returns whether it did.
    pub fn record(
        &self,
        state: &mut State,
        event: Event,
        events: &mut Vec<Recorded>,
    ) -> Result<bool, ApplyError> {
        if !(self.admits)(state, &event) {
            return Ok(false);
        }
        let participant = self.participant.clone();
        events.push(state.record(
            event,
            &Envelope { at: self.at, participant, actor: None, idempotency: None },
        )?);
        Ok(true)
    }

    /// Records what is due by time.
    pub fn time(
        &self,
        state: &mut State,
        due: &Due,
        events: &mut Vec<Recorded>,
    ) -> Result<(), ApplyError> {
        if let Some(gap) = due.gap {
            self.record(state, clock_stepped(gap, self.at), events)?;
        }
        for participant in &due.gone {
            let gone = state.participant_gone(participant, self.policy, self.at);
            self.record(state, gone, events)?;
        }
        for expired in state.expire(self.at) {
            self.record(state, expired, events)?;
        }
        if state.lacks_numbers() {
            self.record(state, Event::TasksNumbered {}, events)?;
        }
        Ok(())
    }

    /// Records what follows for the sessions of runs, in the batch of its cause, so that a process
    /// that dies leaves both or neither.
    pub fn follow_up(
        &self,
        state: &mut State,
        chance: &mut Chance,
        events: &mut Vec<Recorded>,
    ) -> Result<(), ApplyError> {
        while let Some(event) = state.follow_up(chance.draw()) {
            // What waits makes what would follow from it wait, too.
            if !self.record(state, event, events)? {
                break;
            }
        }
        Ok(())
    }

    /// Retires surplus tasks and old checkpoints, and drops the oldest stubs. After the calls, because a retired task is looked
    /// up in the journal, where this batch is only after its commit. `retired_from` is the
    /// number of finished tasks that were left when some were last looked for.
    pub fn retire(
        &self,
        state: &mut State,
        retired_from: &mut usize,
        events: &mut Vec<Recorded>,
    ) -> Result<(), ApplyError> {
        let retired = [
            state.retire_surplus(self.policy, retired_from),
            state.retire_checkpoints(self.policy, self.at),
        ];
        for event in retired.into_iter().flatten() {
            self.record(state, event, events)?;
        }
        state
            .drop_stubs(self.policy)
            .map_or(Ok(()), |event| self.record(state, event, events).map(drop))
    }
}
