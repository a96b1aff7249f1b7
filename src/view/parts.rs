//! The first parts of the plan: what the screen can be narrowed to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::card::begun;
use crate::state::State;
use crate::state::hierarchy::numbers;
use crate::state::task::Task;

/// Most parts that are listed.
const LISTED: usize = 100;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PlanPart {
    pub path: String,
    pub title: String,
    /// Tasks without parts that are done
    pub done: u64,
    /// Tasks without parts that are to be done
    pub wanted: u64,
}

/// Tasks with parts that are not parts themselves, and those with parts below them.
pub(super) fn first(state: &State) -> Vec<PlanPart> {
    let is_near = |path: &str| path.matches('.').count() < 2;
    let parents = state.tasks().filter_map(|task| {
        let path = task.path.as_deref().filter(|path| is_near(path))?;
        state.has_parts(&task.id).then_some((path, task))
    });
    let mut parts: Vec<_> = parents.take(LISTED).collect();
    parts.sort_by_key(|(path, _)| numbers(path));
    parts.into_iter().map(|(path, task)| PlanPart::of(state, path, task)).collect()
}

impl PlanPart {
    fn of(state: &State, path: &str, task: &Task) -> Self {
        let progress = state.progress(&task.id);
        Self {
            path: path.to_owned(),
            title: begun(task.headline()),
            done: progress.done,
            wanted: progress.tasks,
        }
    }
}
