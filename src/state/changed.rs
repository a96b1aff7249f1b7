//! What of the state has changed since somebody asked: for a picture of it that is kept up and not made anew.

use foldhash::{HashMap, HashMapExt};

use super::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId, WorkflowId,
};

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
    Session(SessionId),
    Task(TaskId),
    Workflow(WorkflowId),
}

#[derive(Clone, Debug)]
pub enum Changed {
    /// Nothing of an earlier picture holds.
    Everything,
    /// One that the state does not have any more was removed.
    Entities(HashMap<Entity, Change>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of the event that changed it last.
    pub seq: u64,
    /// It was made, perhaps in the place of one of the same name that was removed.
    pub anew: bool,
}

impl Default for Changed {
    fn default() -> Self {
        Self::Entities(HashMap::new())
    }
}

/// Of more than so many it is not remembered which.
const REMEMBERED: usize = 1 << 16;

impl Changed {
    pub(super) fn note(&mut self, entity: Entity, change: Change) {
        if let Self::Entities(entities) = self {
            let known = entities.entry(entity).or_insert(change);
            *known = Change { seq: change.seq, anew: known.anew || change.anew };
            if entities.len() > REMEMBERED {
                *self = Self::Everything;
            }
        }
    }

    /// Both, one after the other.
    pub fn and(mut self, later: Self) -> Self {
        match (&self, later) {
            (Self::Entities(_), Self::Entities(later)) => {
                later.into_iter().for_each(|(entity, change)| self.note(entity, change));
                self
            }
            _ => Self::Everything,
        }
    }
}
