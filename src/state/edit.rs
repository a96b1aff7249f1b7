//! What a person has changed in the state file by hand, of what may be changed there.

use super::id::TaskId;
use super::task::Context;

/// The difference between a file and the state that it was made from; nothing in it is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// The last event in the state that was edited.
    pub base_seq: u64,
    pub goal: Option<Changed<String>>,
    pub master_plan: Option<Changed<String>>,
    pub tasks: Vec<TaskEdit>,
}

/// A field as it was, and as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed<T> {
    pub from: T,
    pub to: T,
}

/// `None` is a field that was left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEdit {
    pub id: TaskId,
    pub title: Option<Changed<Option<String>>>,
    pub description: Option<Changed<String>>,
    pub priority: Option<Changed<i64>>,
    pub dependencies: Option<Changed<Vec<String>>>,
    /// An empty one stands for none.
    pub context: Option<Changed<Context>>,
    pub tags: Option<Changed<Vec<String>>>,
}

impl Edit {
    pub fn is_empty(&self) -> bool {
        self.goal.is_none() && self.master_plan.is_none() && self.tasks.is_empty()
    }
}
