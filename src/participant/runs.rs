//! The return of claims of runs that died with another process.

use super::options::Stay;
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::ParticipantId;
use crate::state::run::runner::stopped;
use crate::state::task::{Attempt, Task};
use crate::state::time::Timestamp;

/// Events that return claimed runs which nobody has started, if no process is left through which
/// they could have been claimed, so that others can take them. A claim by a command without
/// presence is returned only by a process that stays and finds nobody else.
pub(super) fn returned(
    state: &State,
    own: &ParticipantId,
    stay: Stay,
    began: Timestamp,
) -> Vec<Event> {
    if state.participants().any(|one| one.id != *own) {
        return Vec::new();
    }
    let is_lost = |attempt: &Attempt| match &attempt.participant {
        Some(through) => through != own,
        None => stay != Stay::Brief && attempt.claimed_at < began,
    };
    let reason = "no process was left of those that could have begun it".to_owned();
    let lost = state.claimed_runs().filter(|task| task.open_attempt().is_some_and(is_lost));
    let released =
        |task: &Task| Event::Released { task: task.id.clone(), reason: Some(reason.clone()) };
    lost.map(|task| stopped(task).unwrap_or_else(|| released(task))).collect()
}
