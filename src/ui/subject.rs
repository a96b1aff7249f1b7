//! What a row or a page is about: what can be opened, and what actions are meant for.

use super::place::Place;
use crate::state::id::{AgentId, MessageId, TaskId};
use crate::state::task::TaskStatus;
use crate::view::{Card, Named};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    Task(TaskSubject),
    Agent {
        id: AgentId,
        /// What it works on, as it is said before it is stopped.
        holds: Option<String>,
    },
    /// What somebody wrote to the person.
    Message {
        id: MessageId,
        name: String,
        from: AgentId,
        is_question: bool,
        text: String,
        /// Answers that a question offers
        options: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskSubject {
    pub id: TaskId,
    /// `#12`, or its id
    pub name: String,
    pub title: String,
    pub status: TaskStatus,
    pub priority: Option<u8>,
    /// Who holds it or had it last
    pub agent: Option<AgentId>,
    /// The attempt that was looked at
    pub attempt: Option<u32>,
}

impl TaskSubject {
    pub(super) fn named(named: &Named) -> Self {
        Self {
            id: named.id.clone(),
            name: named.name(),
            title: named.title.clone(),
            status: named.status.unwrap_or(TaskStatus::Available),
            priority: None,
            agent: None,
            attempt: None,
        }
    }

    pub(super) fn card(card: &Card, status: TaskStatus) -> Self {
        Self {
            id: card.id.clone(),
            name: format!("#{}", card.number),
            title: card.title.clone(),
            status,
            priority: Some(card.priority),
            agent: None,
            attempt: None,
        }
    }

    /// The task as it is named before something is done to it.
    pub(super) fn said(&self) -> String {
        format!("{} {}", self.name, self.title)
    }
}

impl Subject {
    /// Where it is shown whole.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Task(task) => Some(Place::Task(task.id.clone())),
            Self::Agent { id, .. } => Some(Place::Agent(id.clone())),
            Self::Message { id, .. } => Some(Place::Message(id.clone())),
        }
    }

    /// Who is there to be written to: the agent itself, who holds the task, or who wrote.
    pub(super) fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Task(task) => task.agent.as_ref().filter(|_| task.status.is_held()),
            Self::Agent { id, .. } => Some(id),
            Self::Message { from, .. } => Some(from),
        }
    }

    /// Whether both are about the same thing, however it stands.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(one), Self::Task(two)) => one.id == two.id,
            (Self::Agent { id: one, .. }, Self::Agent { id: two, .. }) => one == two,
            (Self::Message { id: one, .. }, Self::Message { id: two, .. }) => one == two,
            _ => false,
        }
    }
}
