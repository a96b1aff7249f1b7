//! The board in a program of your own: [`Board`] is opened as every callboard process opens it,
//! called by the types of [`ops`](crate::ops), and listened to. The commands of the CLI work
//! through it, too.

#![warn(missing_docs)]

mod answer;
mod events;
mod file;
mod options;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

pub use answer::Answer;
pub use events::Events;
pub use options::Options;
pub(crate) use options::{STATE_FILE, checkout, objection, seed};

use crate::ops::{CreateSnapshot, Door, EventFilter, Operation, create_snapshot, restore_snapshot};
use crate::participant::{self, AgentChoice, Caller, Handle};
use crate::state::document::Document;
use crate::state::id::AgentId;
use crate::state::snapshot::SnapshotName;

/// Why a call has no answer: a refusal that the caller can mend, or a board that cannot be
/// used as it is. [`code`](Error::code) is for programs, and the text names the thing and the
/// way out.
pub use crate::participant::CallError as Error;

/// A board, opened in this process, which thereby takes part in it like any `callboard` process:
/// what it calls is durable when the answer comes, and what other processes did is known to every
/// call.
///
/// Clones share one replica. The last one that is dropped ends this process's part.
///
/// Calls need a Tokio runtime around them. Several may be under way at once; they are committed
/// together.
///
/// ```
/// use callboard::{Board, ops};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # let project = place.path();
/// let board = Board::open(project.join(".coordination"))?;
/// let task = ops::TaskInput { description: "write the parser".to_owned(), ..Default::default() };
/// let created = board.call::<ops::CreateTask>(task).await?;
///
/// let ada = board.acting_as("ada")?;
/// ada.call::<ops::RegisterAgent>(Default::default()).await?;
/// let claim = ada.call::<ops::ClaimTask>(Default::default()).await?;
/// let ops::claim_task::Reply::Claimed(claimed) = &claim.reply else { panic!("it is ready") };
/// assert_eq!(claimed.task.id, created.task.id);
///
/// // What is refused says why, for people and for programs.
/// let unknown = ops::start_task::Params { task_id: "task-none".to_owned(), ..Default::default() };
/// let error = ada.call::<ops::StartTask>(unknown).await.err().expect("a refusal");
/// assert_eq!(error.code(), "unknown_task");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Board {
    handle: Handle,
    caller: Caller,
    dir: PathBuf,
}

impl Board {
    /// Opens the board in the directory `dir`, usually a project's `.coordination`, with the
    /// defaults of [`Options`]. If there is none, the first call that writes makes it.
    ///
    /// # Errors
    ///
    /// Says so if no board may be kept there.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        Options::at(dir).open()
    }

    /// The board's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file that shows the whole state after every operation.
    pub fn state_file(&self) -> PathBuf {
        participant::home(&self.dir).file()
    }

    /// The same board, whose calls act for `agent` where their parameters name none.
    ///
    /// # Errors
    ///
    /// Refuses what is not an agent's id.
    pub fn acting_as(&self, agent: &str) -> Result<Self, Error> {
        let agent = AgentChoice::Named(AgentId::checked(agent)?);
        Ok(Self { caller: Caller { agent, ..self.caller.clone() }, ..self.clone() })
    }

    /// Performs the operation `O`. What it did is durable, and shown in the state file, when this
    /// returns; dropping the future withdraws the call unless it is already being done.
    ///
    /// # Errors
    ///
    /// The board's refusal, or why the board cannot be used.
    pub async fn call<O: Operation>(&self, params: O::Params) -> Result<Answer<O::Reply>, Error> {
        let (reply, json) = self.handle.call_typed::<O>(&params, &self.caller).await?;
        Ok(Answer::new(reply, json))
    }

    /// Performs the operation of this name, with arguments and reply as in its schema.
    ///
    /// # Errors
    ///
    /// The same as of [`call`](Self::call), and `CallError::UnknownOperation` for a name that is
    /// not an operation.
    pub async fn call_json(&self, operation: &str, arguments: Value) -> Result<Value, Error> {
        self.handle.call(operation, arguments, &self.caller).await
    }

    /// Listens for every event after `since`, or from now on, whichever process caused it.
    ///
    /// # Errors
    ///
    /// Why the board cannot be used.
    pub async fn subscribe(&self, since: Option<u64>) -> Result<Events, Error> {
        self.subscribe_to(since, EventFilter::default()).await
    }

    /// Listens for the events that `filter` wants.
    ///
    /// # Errors
    ///
    /// Why the board cannot be used.
    pub async fn subscribe_to(
        &self,
        since: Option<u64>,
        filter: EventFilter,
    ) -> Result<Events, Error> {
        Ok(Events::new(self.handle.listen(since, filter).await?))
    }

    /// The whole state at this moment, as the state file shows it.
    ///
    /// # Errors
    ///
    /// Why the board cannot be used; `no_board` before the first call that writes.
    pub async fn state(&self) -> Result<Document, Error> {
        self.handle.look(|state| state.to_document()).await
    }

    /// Keeps the present state as a snapshot, which can be compared with later states and restored.
    /// Needs a leader, which a board without an agent is.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn snapshot(
        &self,
        label: Option<&str>,
    ) -> Result<Answer<create_snapshot::Reply>, Error> {
        let label = label.map(str::to_owned);
        self.call::<CreateSnapshot>(create_snapshot::Params { agent_id: None, label }).await
    }

    /// Replaces the present state by `document`, such as [`load_state`](Self::load_state) has read
    /// it. A snapshot of the present, under `label`, is taken first; tasks that are held are
    /// released.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn restore(
        &self,
        document: Document,
        label: &str,
    ) -> Result<Answer<restore_snapshot::Reply>, Error> {
        let before = self.snapshot(Some(label)).await?.reply.snapshot;
        self.restore_after(before, document).await
    }

    /// The same, when `before` is the snapshot of the present state.
    pub(crate) async fn restore_after(
        &self,
        before: SnapshotName,
        document: Document,
    ) -> Result<Answer<restore_snapshot::Reply>, Error> {
        let (reply, json) = self.handle.restore(document, before, &self.caller).await?;
        Ok(Answer::new(reply, json))
    }

    /// The participant behind it, for the transports.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The same board, called from a shell in which `command` runs callboard for it.
    pub(crate) fn in_shell(mut self, command: Arc<str>) -> Self {
        self.caller.command = Some(command);
        self
    }

    /// The same board, used by the person of this name.
    pub(crate) fn for_person(mut self, name: Option<Arc<str>>) -> Self {
        self.caller.person = name;
        self
    }

    /// The same board, called through this door by a client of this name.
    pub(crate) fn through(mut self, door: Door, client: &str) -> Self {
        self.caller.door = door;
        self.caller.client = Some(client.to_owned());
        self
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }
}
