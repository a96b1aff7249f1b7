//! Tasks that are created below one that an agent holds: its attempt ends, because a task with
//! parts is done by them alone. Its holder goes on with the first of them.

use std::collections::BTreeSet;

use super::Call;
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::event::{Event, NewTask};
use crate::state::id::TaskId;
use crate::state::reservation::Reservation;
use crate::state::task::{Attempt, Task};
use crate::state::time::SECOND;

/// The events that create tasks.
pub(super) fn taken_in(tasks: Vec<NewTask>, state: &State, call: &Call) -> Vec<Event> {
    let parents: BTreeSet<&TaskId> = tasks.iter().filter_map(|task| task.parent.as_ref()).collect();
    let (mut ends, mut goes_on) = (Vec::new(), Vec::new());
    for parent in parents.into_iter().filter_map(|id| state.task(id)) {
        let Some(open) = parent.open_attempt() else { continue };
        let parts = || tasks.iter().filter(|task| task.parent.as_ref() == Some(&parent.id));
        ends.push(ended(parent, parts().map(|part| &part.id)));
        if is_by_holder(open, call)
            && let Some(agent) = state.agent(&open.agent)
            && let Some(first) = parts().find(|part| is_for(part, agent, state))
        {
            goes_on.extend(handed_on(parent, open, first, state, call));
        }
    }
    ends.into_iter().chain([Event::TasksCreated { tasks }]).chain(goes_on).collect()
}

fn ended<'t>(parent: &Task, parts: impl Iterator<Item = &'t TaskId>) -> Event {
    let named: Vec<_> = parts.take(3).map(|id| format!("`{id}`")).collect();
    let reason = format!("it has got parts ({}), and is done when they are", named.join(", "));
    Event::Released { task: parent.id.clone(), reason: Some(reason) }
}

/// Whether the holder of the attempt makes the call, or the process that it claimed through.
fn is_by_holder(open: &Attempt, call: &Call) -> bool {
    let through = call.presence.map(|participant| &participant.id);
    call.actor.as_ref() == Some(&open.agent)
        || through.is_some() && through == open.participant.as_ref()
}

/// Whether the agent may go on with the part at once.
fn is_for(part: &NewTask, agent: &Agent, state: &State) -> bool {
    let is_free = part.status.is_none() && part.not_before.is_none();
    is_free
        && part.demands.met_by(agent)
        && part.dependencies.iter().all(|dependency| state.is_done(dependency))
}

/// The first part is claimed where the task was, with the reservations of that claim. The next
/// `claim_task` answers it, because its agent has not acted on it.
fn handed_on(
    parent: &Task,
    open: &Attempt,
    first: &NewTask,
    state: &State,
    call: &Call,
) -> Vec<Event> {
    let spent = state.board().spent_attempts.get(&first.id).copied().unwrap_or_default();
    let limit = first.timeout_seconds.map(|seconds| call.now + i64::from(seconds) * SECOND);
    let claimed = Event::Claimed {
        task: first.id.clone(),
        agent: open.agent.clone(),
        attempt: spent + 1,
        lease_until: limit.map_or(open.lease_until, |limit| limit.min(open.lease_until)),
        through: open.participant.clone(),
        place: open.place.clone(),
    };
    let held = state.reservations().filter(|one| one.task.as_ref() == Some(&parent.id));
    let held = held.map(|one| Event::FilesReserved {
        reservation: Box::new(Reservation {
            task: Some(first.id.clone()),
            ..Reservation::clone(one)
        }),
    });
    std::iter::once(claimed).chain(held).collect()
}
