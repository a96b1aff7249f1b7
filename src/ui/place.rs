//! What can be looked at: the views on the digits, and one task, agent or message.

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

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Board => "Board",
            Self::Tasks => "Tasks",
            Self::Agents => "Agents",
            Self::Events => "Events",
            Self::Plan => "Plan",
            Self::Graph => "Graph",
            Self::Task(id) => id.as_str(),
            Self::Agent(id) => id.as_str(),
            Self::Message(id) => id.as_str(),
        }
    }
}
