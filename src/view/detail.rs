//! One task, and what it hangs together with.

use std::sync::Arc;

use super::Standing;
use super::card::Named;
use crate::state::State;
use crate::state::hierarchy::Progress;
use crate::state::id::TaskId;
use crate::state::message::Message;
use crate::state::time::Timestamp;

/// Most tasks that each list names.
const NAMED: usize = 100;
/// Most discoveries of the task that are shown.
const DISCOVERIES: usize = 20;

/// What the task itself does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    pub number: Option<u64>,
    /// None if it is not on the board
    pub standing: Option<Standing>,
    /// What it is a part of, the outermost first
    pub above: Vec<Named>,
    pub parts: Vec<Named>,
    /// How far its parts are, if it has any
    pub progress: Option<Progress>,
    /// What it depends on, itself
    pub needs: Vec<Named>,
    /// What it or what it is a part of still waits for
    pub waits_for: Vec<Named>,
    /// Tasks that depend on it
    pub needed_by: Vec<Named>,
    /// What agents found out at it
    pub found: Vec<Arc<crate::state::discovery::Discovery>>,
    /// Messages about it, the newest first
    pub messages: Vec<Arc<Message>>,
    pub now: Timestamp,
    pub seq: u64,
}

impl Detail {
    pub fn of(state: &State, id: &TaskId, now: Timestamp) -> Self {
        let task = state.task(id);
        let named = |ids: &[TaskId]| all(state, ids.iter());
        let needed_by = state.tasks().filter(|one| one.dependencies.contains(id));
        let above = task.map(|task| state.ancestors(task).map(|one| &one.id).collect::<Vec<_>>());
        let found = state.discoveries().filter(|one| one.task_id.as_ref() == Some(id));
        let messages = state.messages().rev().filter(|one| one.task_id.as_ref() == Some(id));
        Self {
            number: state.number_of(id),
            standing: task.map(|task| Standing::of(state, task)),
            above: all(state, above.unwrap_or_default().into_iter().rev()),
            parts: all(state, state.parts(id).map(|part| &part.id)),
            progress: state.has_parts(id).then(|| state.progress(id)),
            needs: task.map(|task| named(&task.dependencies)).unwrap_or_default(),
            waits_for: task.map(|task| all(state, state.waits_for(task))).unwrap_or_default(),
            needed_by: all(state, needed_by.map(|one| &one.id)),
            found: found.take(DISCOVERIES).cloned().collect(),
            messages: messages.take(NAMED).cloned().collect(),
            now,
            seq: state.seq(),
        }
    }
}

fn all<'s>(state: &State, ids: impl Iterator<Item = &'s TaskId>) -> Vec<Named> {
    ids.take(NAMED).map(|id| Named::find(state, id)).collect()
}
