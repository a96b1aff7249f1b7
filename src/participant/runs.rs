//! What a process records for runs beside the calls: what follows for their sessions, and claims that died with others.

use super::Stay;
use crate::state::event::{Event, Recorded};
use crate::state::id::{Chance, ParticipantId};
use crate::state::run::stopped;
use crate::state::task::{Attempt, Task};
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};

/// What follows from the calls and from time for the sessions of runs. In the batch of what it follows from, so that a
/// process that dies leaves both or neither.
pub fn follow_up(
    state: &mut State,
    envelope: &Envelope,
    chance: &mut Chance,
    events: &mut Vec<Recorded>,
) -> Result<(), ApplyError> {
    while let Some(event) = state.follow_up(chance.draw()) {
        events.push(state.record(event, envelope)?);
    }
    Ok(())
}

/// Claims of runs that nobody has begun, when no process lives that they could have been made through: they are for others
/// to take. Of a command line that came and went without presence only a process knows that stays and finds nobody.
pub fn returned(state: &State, own: &ParticipantId, stay: Stay, began: Timestamp) -> Vec<Event> {
    if state.participants().any(|one| one.id != *own) {
        return Vec::new();
    }
    let is_lost = |attempt: &Attempt| match &attempt.participant {
        Some(through) => through != own,
        None => stay != Stay::Brief && attempt.claimed_at < began,
    };
    let reason = "no process was left of those that could have begun it".to_owned();
    let lost = state.claimed_runs().filter(|task| task.open_attempt().is_some_and(is_lost));
    let released = |task: &Task| Event::Released { task: task.id.clone(), reason: Some(reason.clone()) };
    lost.map(|task| stopped(task).unwrap_or_else(|| released(task))).collect()
}
