//! The tasks as parts of each other.

use super::card::Named;
use crate::state::State;
use crate::state::hierarchy::{Progress, numbers};
use crate::state::task::{Task, TaskStatus};

/// Most tasks of a tree.
const SHOWN: usize = 2_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub tops: Vec<Branch>,
    /// Number of tasks that are left out
    pub more: usize,
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub task: Named,
    pub path: Option<String>,
    /// How far its parts are, if it has any
    pub progress: Option<Progress>,
    pub parts: Vec<Branch>,
}

impl Tree {
    /// All tasks, or those at and below a path, without those that the plan has dropped.
    pub fn of(state: &State, scope: Option<&str>) -> Self {
        let is_top = |task: &Task| match scope {
            Some(scope) => task.path.as_deref() == Some(scope),
            None => task.parent.as_ref().is_none_or(|parent| state.task(parent).is_none()),
        };
        let mut tops: Vec<_> =
            state.tasks().filter(|task| is_shown(task) && is_top(task)).collect();
        tops.sort_by_key(|task| order(task));
        let mut room = SHOWN;
        let tops: Vec<_> =
            tops.into_iter().filter_map(|task| branch(state, task, &mut room)).collect();
        let more = match scope {
            Some(_) => 0,
            None => {
                state.tasks().filter(|task| is_shown(task)).count().saturating_sub(SHOWN - room)
            }
        };
        Self { tops, more, seq: state.seq() }
    }
}

fn is_shown(task: &Task) -> bool {
    task.run.is_none() && task.status != TaskStatus::Obsolete
}

fn order(task: &Task) -> (bool, Option<Vec<u32>>) {
    let numbers = task.path.as_deref().and_then(numbers);
    (numbers.is_none(), numbers)
}

/// The task and its parts, as far as there is room.
fn branch(state: &State, task: &Task, room: &mut usize) -> Option<Branch> {
    *room = room.checked_sub(1)?;
    let mut parts: Vec<_> = state.parts(&task.id).filter(|task| is_shown(task)).collect();
    parts.sort_by_key(|task| order(task));
    Some(Branch {
        task: Named::find(state, &task.id),
        path: task.path.clone(),
        progress: state.has_parts(&task.id).then(|| state.progress(&task.id)),
        parts: parts.into_iter().filter_map(|part| branch(state, part, room)).collect(),
    })
}
