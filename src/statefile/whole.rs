//! The state file written as a whole, from texts that are kept for as long as the state holds their
//! entities: for boards up to a size, for file systems without leases or exchange of names, and for
//! the text of a state by itself.
//!
//! The text is what `serde_json` prints with two spaces. What a person looks for comes first; the
//! fields that tell whose file it is and whether it is sound come last, where programs find them
//! without reading the rest.

use std::io;

use serde_json::Value;

use super::derived::{self, Derived};
use super::fragment::{Section, Shape, Sums};
use super::plan::{Plan, short};
use super::rendering::{Rendering, hex};
use crate::state::State;
use crate::state::agent::{Agent, Participant};
use crate::state::discovery::Discovery;
use crate::state::document::{Board, Retired};
use crate::state::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId,
    WorkflowId,
};
use crate::state::message::Message;
use crate::state::reservation::Reservation;
use crate::state::session::Session;
use crate::state::task::Task;
use crate::state::workflow::{Checkpoint, Workflow};

/// Fields of the board that are not in the part of its small ones: the long ones, and those at the
/// end.
const ELSEWHERE: [&str; 5] = ["goal", "master_plan", "schema_version", "board_id", "seq"];

#[derive(Debug)]
pub(super) struct Whole {
    pub(super) tasks: Section<TaskId, Task>,
    agents: Section<AgentId, Agent>,
    discoveries: Section<DiscoveryId, Discovery>,
    messages: Section<MessageId, Message>,
    reservations: Section<ReservationId, Reservation>,
    participants: Section<ParticipantId, Participant>,
    pub(super) retired: Section<TaskId, Retired>,
    sessions: Section<SessionId, Session>,
    workflows: Section<WorkflowId, Workflow>,
    checkpoints: Section<CheckpointId, Checkpoint>,
    plan: Option<Plan>,
    pub(super) text: Vec<u8>,
}

impl Whole {
    pub(super) fn new() -> Self {
        Self {
            tasks: Section::new("tasks", Shape::List),
            agents: Section::new("agents", Shape::Map),
            discoveries: Section::new("discoveries", Shape::List),
            messages: Section::new("messages", Shape::List),
            reservations: Section::new("reservations", Shape::List),
            participants: Section::new("participants", Shape::Map),
            retired: Section::new("retired", Shape::Map),
            sessions: Section::new("sessions", Shape::Map),
            workflows: Section::new("workflows", Shape::Map),
            checkpoints: Section::new("checkpoints", Shape::Map),
            plan: None,
            text: Vec::new(),
        }
    }

    pub(super) fn render(&mut self, state: &State) -> io::Result<&[u8]> {
        let plan = Plan::known_or_of(self.plan.take(), state.board())?;
        let small = Rendering::of(&short(state.board()))?;
        let derived = Derived::of(state)?;
        let (text, agents) = (&mut self.text, state.agents());
        text.clear();
        text.push(b'{');
        text.extend_from_slice(&plan.goal);
        derived.push(text);
        let agents = agents.map(|agent| (&agent.id, agent, derived::title(state, agent)));
        let mut sums = Sums { state: plan.sum_with(&small), derived: derived.sum() };
        sums = sums.and(self.agents.write_titled(text, agents)?);
        sums = sums.and(self.tasks.write(text, state.tasks().map(|task| (&task.id, task)))?);
        sums =
            sums.and(self.discoveries.write(text, state.discoveries().map(|one| (&one.id, one)))?);
        sums = sums.and(self.messages.write(text, state.messages().map(|one| (&one.id, one)))?);
        text.extend_from_slice(&plan.plan);
        sums = sums
            .and(self.reservations.write(text, state.reservations().map(|one| (&one.id, one)))?);
        sums = sums.and(self.sessions.write(text, state.sessions().map(|one| (&one.id, one)))?);
        sums = sums.and(self.workflows.write(text, state.workflows().map(|one| (&one.id, one)))?);
        sums = sums.and(self.checkpoints.write(text, state.checkpoints())?);
        sums = sums
            .and(self.participants.write(text, state.participants().map(|one| (&one.id, one)))?);
        sums = sums.and(self.retired.write(text, state.retired())?);
        push_small(&small, text)?;
        text.extend_from_slice(&plan.spent);
        push_end(state.board(), sums, text)?;
        // There is no comma behind the last field.
        text.pop();
        text.extend_from_slice(b"\n}");
        self.plan = Some(plan);
        Ok(text)
    }
}

/// Appends the small fields of the board.
pub(super) fn push_small(board: &Rendering, text: &mut Vec<u8>) -> io::Result<()> {
    let Value::Object(fields) = board.value()? else { return Ok(()) };
    for (name, value) in fields.iter().filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        Rendering::of(value)?.push_field(name, text);
    }
    Ok(())
}

/// Appends the fields that tell whose file it is and whether it is sound.
pub(super) fn push_end(board: &Board, sums: Sums, text: &mut Vec<u8>) -> io::Result<()> {
    let Board { schema_version, board_id, seq, .. } = board;
    Rendering::of(schema_version)?.push_field("schema_version", text);
    Rendering::of(board_id)?.push_field("board_id", text);
    Rendering::of(seq)?.push_field("seq", text);
    Rendering::of(&hex(sums.state))?.push_field("checksum", text);
    Rendering::of(&hex(sums.derived))?.push_field(derived::CHECKSUM, text);
    Ok(())
}

/// The text of a whole file that shows `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut whole = Whole::new();
    whole.render(state)?;
    Ok(whole.text)
}
