//! What can be looked at: the views on the digits, and one task, agent or message.

use std::borrow::Cow;

use crate::state::id::{AgentId, MessageId, TaskId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Board,
    Tasks,
    Agents,
    Events,
    Plan,
    Graph,
    Task(TaskId),
    /// What the work on a task has changed.
    Diff(TaskId),
    Agent(AgentId),
    Message(MessageId),
}

impl Place {
    /// The views on the digits, from 1.
    pub(super) const VIEWS: [Self; 6] =
        [Self::Board, Self::Tasks, Self::Agents, Self::Events, Self::Plan, Self::Graph];

    pub(super) fn of_digit(digit: char) -> Option<Self> {
        let index = digit.to_digit(10)?.checked_sub(1)?;
        Self::VIEWS.get(usize::try_from(index).ok()?).cloned()
    }

    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Board => "Board".into(),
            Self::Tasks => "Tasks".into(),
            Self::Agents => "Agents".into(),
            Self::Events => "Events".into(),
            Self::Plan => "Plan".into(),
            Self::Graph => "Graph".into(),
            Self::Task(id) => id.as_str().into(),
            Self::Diff(id) => format!("diff of {id}").into(),
            Self::Agent(id) => id.as_str().into(),
            Self::Message(id) => id.as_str().into(),
        }
    }
}
