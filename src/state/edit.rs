//! What a person changed by hand in the state file, among what may be changed there.

use super::id::TaskId;
use super::task::Context;

/// The difference between an edited file and the state it was made from, not yet checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// Last event in the edited state.
    pub base_seq: u64,
    pub goal: Option<Changed<String>>,
    pub master_plan: Option<Changed<String>>,
    pub tasks: Vec<TaskEdit>,
}

/// A field before and after the edit.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed<T> {
    pub from: T,
    pub to: T,
}

/// Changes to one task; `None` is a field left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEdit {
    pub id: TaskId,
    pub title: Option<Changed<Option<String>>>,
    pub description: Option<Changed<String>>,
    pub priority: Option<Changed<i64>>,
    pub dependencies: Option<Changed<Vec<String>>>,
    /// An empty context stands for none.
    pub context: Option<Changed<Context>>,
    pub tags: Option<Changed<Vec<String>>>,
}

impl Edit {
    pub fn is_empty(&self) -> bool {
        self.goal.is_none() && self.master_plan.is_none() && self.tasks.is_empty()
    }
}
