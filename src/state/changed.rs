//! What of the state has changed since somebody asked: for a picture of it that is kept up and not made anew.

use foldhash::{HashMap, HashMapExt};

use super::id::{AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, TaskId, WorkflowId};

/// One thing that the state file shows by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    Agent(AgentId),
    Checkpoint(CheckpointId),
    Discovery(DiscoveryId),
    Message(MessageId),
    Participant(ParticipantId),
    Reservation(ReservationId),
    Retired(TaskId),
    Task(TaskId),
    Workflow(WorkflowId),
}

#[derive(Clone, Debug)]
pub enum Changed {
    /// Nothing of an earlier picture holds.
    Everything,
    /// Each with the event that changed it last; one that the state does not have any more was removed.
    Entities(HashMap<Entity, u64>),
}

impl Default for Changed {
    fn default() -> Self {
        Self::Entities(HashMap::new())
    }
}

impl Changed {
    pub(super) fn note(&mut self, entity: Entity, seq: u64) {
        if let Self::Entities(entities) = self {
            entities.insert(entity, seq);
        }
    }

    /// Both, one after the other.
    pub fn and(self, later: Self) -> Self {
        match (self, later) {
            (Self::Entities(mut entities), Self::Entities(later)) => {
                entities.extend(later);
                Self::Entities(entities)
            }
            _ => Self::Everything,
        }
    }
}
