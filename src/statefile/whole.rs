//! The state file written as a whole, from texts that are kept for as long as the state holds their entities: for file
//! systems without leases or exchange of names, and for the text of a state by itself.

use std::io;

use super::fragment::{Section, Shape, hex};
use super::plan::{Plan, short};
use super::rendering::Rendering;
use crate::state::State;
use crate::state::agent::{Agent, Discovery, Participant};
use crate::state::document::Retired;
use crate::state::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId, WorkflowId,
};
use crate::state::message::Message;
use crate::state::reservation::Reservation;
use crate::state::session::Session;
use crate::state::task::Task;
use crate::state::workflow::{Checkpoint, Workflow};

const NO_CHECKSUM: &str = "00000000000000000000000000000000";

#[derive(Debug)]
pub struct Whole {
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
    pub fn new() -> Self {
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

    pub fn render(&mut self, state: &State) -> io::Result<&[u8]> {
        let plan = Plan::known_or_of(self.plan.take(), state.board())?;
        let of_board = plan.sum_with(&Rendering::of(&short(state.board()))?);
        self.plan = Some(plan);
        let text = &mut self.text;
        text.clear();
        let place = write_header(text, state)?;
        let sums = [
            of_board,
            self.tasks.write(text, state.tasks().map(|task| (&task.id, task)))?,
            self.agents.write(text, state.agents().map(|agent| (&agent.id, agent)))?,
            self.discoveries.write(text, state.discoveries().map(|one| (&one.id, one)))?,
            self.messages.write(text, state.messages().map(|one| (&one.id, one)))?,
            self.reservations.write(text, state.reservations().map(|one| (&one.id, one)))?,
            self.participants.write(text, state.participants().map(|one| (&one.id, one)))?,
            self.retired.write(text, state.retired())?,
            self.sessions.write(text, state.sessions().map(|one| (&one.id, one)))?,
            self.workflows.write(text, state.workflows().map(|one| (&one.id, one)))?,
            self.checkpoints.write(text, state.checkpoints())?,
        ];
        text.extend_from_slice(b"\n}");
        let checksum = sums.into_iter().fold(0, u128::wrapping_add);
        text[place..place + NO_CHECKSUM.len()].copy_from_slice(hex(checksum).as_bytes());
        Ok(text)
    }
}

/// Writes everything before `tasks`, and returns where in it the checksum belongs.
fn write_header(text: &mut Vec<u8>, state: &State) -> io::Result<usize> {
    let board = serde_json::to_string_pretty(state.board())?;
    // A line break in the text is never inside a string, so this is the field.
    let seq = format!("\n  \"seq\": {},", state.seq());
    let (before, after) = board.split_once(&seq).ok_or_else(|| io::Error::other("the board has no seq"))?;
    text.extend_from_slice(before.as_bytes());
    text.extend_from_slice(seq.as_bytes());
    text.extend_from_slice(b"\n  \"checksum\": \"");
    let place = text.len();
    text.extend_from_slice(NO_CHECKSUM.as_bytes());
    text.extend_from_slice(b"\",");
    text.extend_from_slice(after.strip_suffix("\n}").unwrap_or(after).as_bytes());
    Ok(place)
}

/// The text of a whole file that shows `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut whole = Whole::new();
    whole.render(state)?;
    Ok(whole.text)
}
