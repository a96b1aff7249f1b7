//! What a process records for runs in addition to calls: what follows for their sessions, and the return of claims that
//! died with another process.

use super::living::Others;
use super::options::Stay;
use crate::state::event::{Event, Recorded};
use crate::state::id::{Chance, ParticipantId};
use crate::state::run::stopped;
use crate::state::task::{Attempt, Task};
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};

/// Records what follows from calls and from time for the sessions of runs. This is in the same batch as its cause, so
/// that a process that dies leaves both or neither.
pub fn follow_up(
    state: &mut State,
    envelope: &Envelope,
    chance: &mut Chance,
    others: &Others,
    events: &mut Vec<Recorded>,
) -> Result<(), ApplyError> {
    while let Some(event) = state.follow_up(chance.draw()) {
        // What a living process could not read waits, and what would follow from it, too.
        let Some(recorded) = others.record(state, event, envelope)? else { break };
        events.push(recorded);
    }
    Ok(())
}

/// Events that return claimed runs which nobody has started, if no process is left through which they could have been
/// claimed, so that others can take them. A claim by a command without presence is returned only by a process that
/// stays and finds nobody else.
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
