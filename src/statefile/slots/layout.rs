//! The layout of a flat file, as its own `layout` field states it.

use serde::{Deserialize, Serialize};

use crate::state::changed::Entity;
use crate::state::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId,
    WorkflowId,
};

/// The fields that hold entities, in the order in which the file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Field {
    Agents,
    Tasks,
    Discoveries,
    Messages,
    Reservations,
    Sessions,
    Workflows,
    Checkpoints,
    Participants,
    Retired,
}

pub(crate) const FIELDS: [Field; 10] = [
    Field::Agents,
    Field::Tasks,
    Field::Discoveries,
    Field::Messages,
    Field::Reservations,
    Field::Sessions,
    Field::Workflows,
    Field::Checkpoints,
    Field::Participants,
    Field::Retired,
];

/// The field behind which the plan stands.
pub(crate) const BEFORE_PLAN: Field = Field::Messages;

impl Field {
    pub(crate) fn of(entity: &Entity) -> Self {
        match entity {
            Entity::Agent(_) => Self::Agents,
            Entity::Checkpoint(_) => Self::Checkpoints,
            Entity::Discovery(_) => Self::Discoveries,
            Entity::Message(_) => Self::Messages,
            Entity::Participant(_) => Self::Participants,
            Entity::Reservation(_) => Self::Reservations,
            Entity::Retired(_) => Self::Retired,
            Entity::Session(_) => Self::Sessions,
            Entity::Task(_) => Self::Tasks,
            Entity::Workflow(_) => Self::Workflows,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Checkpoints => "checkpoints",
            Self::Discoveries => "discoveries",
            Self::Messages => "messages",
            Self::Participants => "participants",
            Self::Reservations => "reservations",
            Self::Retired => "retired",
            Self::Sessions => "sessions",
            Self::Tasks => "tasks",
            Self::Workflows => "workflows",
        }
    }

    /// Whether the field is an object by id, and not a list.
    pub(crate) fn is_map(self) -> bool {
        !matches!(self, Self::Discoveries | Self::Messages | Self::Reservations | Self::Tasks)
    }

    /// Whether the field is a list whose entities may outgrow their slots, so that they carry their
    /// order.
    pub(crate) fn has_order(self) -> bool {
        matches!(self, Self::Reservations | Self::Tasks)
    }

    pub(crate) fn opening(self) -> String {
        format!("\n  \"{}\": {}", self.name(), if self.is_map() { '{' } else { '[' })
    }

    /// What stands behind the last slot, or behind the opening if there is none.
    pub(crate) fn closing(self, is_empty: bool) -> &'static str {
        match (self.is_map(), is_empty) {
            (true, true) => "},",
            (true, false) => "\n  },",
            (false, true) => "],",
            (false, false) => "\n  ],",
        }
    }

    pub(super) fn entity(self, id: &str) -> Entity {
        match self {
            Self::Agents => Entity::Agent(AgentId::trusted(id)),
            Self::Checkpoints => Entity::Checkpoint(CheckpointId::trusted(id)),
            Self::Discoveries => Entity::Discovery(DiscoveryId::trusted(id)),
            Self::Messages => Entity::Message(MessageId::trusted(id)),
            Self::Participants => Entity::Participant(ParticipantId::trusted(id)),
            Self::Reservations => Entity::Reservation(ReservationId::trusted(id)),
            Self::Retired => Entity::Retired(TaskId::trusted(id)),
            Self::Sessions => Entity::Session(SessionId::trusted(id)),
            Self::Tasks => Entity::Task(TaskId::trusted(id)),
            Self::Workflows => Entity::Workflow(WorkflowId::trusted(id)),
        }
    }
}

/// The `layout` field. Offsets and lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The generation of the arrangement: within one, slots are only added, and stay where they
    /// are.
    pub generation: u64,
    /// The ID of the boot in which the file was written.
    pub boot: String,
    /// The order that the next new task or reservation gets.
    pub next_order: u64,
    /// Length of the part at the front: the goal, and what is derived.
    pub head: u64,
    /// Length of the part behind the messages: the plan.
    pub plan: u64,
    /// Length of the part behind the last slots: the board's other fields.
    pub spent: u64,
    pub agents: Span,
    /// Like the messages, reservations, sessions and workflows, missing from a file of a version
    /// that had none, which is therefore rearranged.
    #[serde(default, skip_serializing_if = "Span::is_nowhere")]
    pub checkpoints: Span,
    pub discoveries: Span,
    #[serde(default, skip_serializing_if = "Span::is_nowhere")]
    pub messages: Span,
    pub participants: Span,
    #[serde(default, skip_serializing_if = "Span::is_nowhere")]
    pub reservations: Span,
    pub retired: Span,
    #[serde(default, skip_serializing_if = "Span::is_nowhere")]
    pub sessions: Span,
    #[serde(default, skip_serializing_if = "Span::is_nowhere")]
    pub workflows: Span,
    pub tasks: Span,
}

/// Slots from `start` to `end`, then the field's closing bracket, and room for more up to `limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
    pub limit: u64,
}

impl Span {
    fn is_nowhere(&self) -> bool {
        *self == Self::default()
    }
}

impl Layout {
    /// A layout of which nothing is known but when it was made, with offsets that are as long as
    /// they can be.
    pub(crate) fn anywhere(generation: u64, boot: &str) -> Self {
        let anywhere = Span { start: u64::MAX, end: u64::MAX, limit: u64::MAX };
        Self {
            generation,
            boot: boot.to_owned(),
            next_order: u64::MAX,
            head: u64::MAX,
            plan: u64::MAX,
            spent: u64::MAX,
            agents: anywhere,
            checkpoints: anywhere,
            discoveries: anywhere,
            messages: anywhere,
            participants: anywhere,
            reservations: anywhere,
            retired: anywhere,
            sessions: anywhere,
            workflows: anywhere,
            tasks: anywhere,
        }
    }

    pub(crate) fn span(&self, field: Field) -> Span {
        match field {
            Field::Agents => self.agents,
            Field::Checkpoints => self.checkpoints,
            Field::Discoveries => self.discoveries,
            Field::Messages => self.messages,
            Field::Participants => self.participants,
            Field::Reservations => self.reservations,
            Field::Retired => self.retired,
            Field::Sessions => self.sessions,
            Field::Tasks => self.tasks,
            Field::Workflows => self.workflows,
        }
    }

    pub(super) fn set_span(&mut self, field: Field, span: Span) {
        match field {
            Field::Agents => self.agents = span,
            Field::Checkpoints => self.checkpoints = span,
            Field::Discoveries => self.discoveries = span,
            Field::Messages => self.messages = span,
            Field::Participants => self.participants = span,
            Field::Reservations => self.reservations = span,
            Field::Retired => self.retired = span,
            Field::Sessions => self.sessions = span,
            Field::Tasks => self.tasks = span,
            Field::Workflows => self.workflows = span,
        }
    }

    /// Extends the slots of `field` by `length` bytes, and returns where those are; `None` when there
    /// is no room.
    pub(super) fn grow(&mut self, field: Field, length: u32) -> Option<u64> {
        let Span { start, end, limit } = self.span(field);
        let grown = end.checked_add(u64::from(length))?;
        self.set_span(field, Span { start, end: grown, limit });
        (grown + field.closing(false).len() as u64 <= limit).then_some(end)
    }

    /// The order of a new entity of `field`; 0 if it has none.
    pub(super) fn next_order(&mut self, field: Field) -> u64 {
        if !field.has_order() {
            return 0;
        }
        self.next_order += 1;
        self.next_order - 1
    }

    pub(crate) fn plan_at(&self) -> u64 {
        self.span(BEFORE_PLAN).limit
    }

    pub(crate) fn rest_at(&self) -> u64 {
        self.span(Field::Retired).limit
    }

    /// The offset of the last part, which tells whose file it is.
    pub(crate) fn end_at(&self) -> u64 {
        self.rest_at() + self.spent
    }

    /// Whether the parts follow each other as they must, within a file of `size` bytes.
    pub(crate) fn fits(&self, size: u64) -> bool {
        let end = FIELDS.into_iter().try_fold(self.head, |at, field| {
            let Span { start, end, limit } = self.span(field);
            let is_next = at.checked_add(field.opening().len() as u64)? == start && start <= end;
            let closed = end.checked_add(field.closing(start == end).len() as u64)?;
            let behind = if field == BEFORE_PLAN { self.plan } else { 0 };
            (is_next && closed <= limit).then(|| limit.checked_add(behind)).flatten()
        });
        end.and_then(|end| end.checked_add(self.spent)).is_some_and(|end| end < size)
    }
}
