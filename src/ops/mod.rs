//! Operations: what the board can be asked. Each operation is one file. From the list in [`all`] come the MCP tools,
//! the JSON-RPC methods, `callboard call`, the schemas and the README's table.
//!
//! A program calls them by their types through `Board::call`. Each has a module with its `Params` and its
//! `Reply`: `board.call::<ops::ClaimTask>(ops::claim_task::Params { … })`. Parameters that are left to
//! `..Default::default()` are as if they were left out; one that is required is refused if it is empty.
#![doc = include_str!("operations.md")]

pub mod add_discovery;
pub mod apply_batch;
mod assigned;
pub mod attach_artifact;
pub mod cancel_task;
pub mod claim_run;
pub mod claim_task;
pub mod complete_task;
pub mod create_run;
pub mod create_snapshot;
pub mod create_task;
pub mod create_tasks_batch;
pub mod delete_checkpoints;
pub mod diff_plans;
pub mod diff_snapshots;
mod execute;
pub mod explain_task;
pub mod export_plan;
pub mod fail_task;
pub mod get_agents;
pub mod get_all_tasks;
pub mod get_checkpoint;
pub mod get_discoveries;
pub mod get_history;
pub mod get_master_plan;
pub mod get_messages;
pub mod get_results;
pub mod get_run;
pub mod get_session;
pub mod get_status;
pub mod get_task;
#[doc(hidden)]
pub mod hand_edit;
mod handoff;
pub mod health_check;
pub mod heartbeat;
mod held;
mod identity;
pub mod import_plan;
pub mod init_coordination;
pub(crate) mod input;
pub mod list_bundles;
pub mod list_checkpoints;
pub mod list_plans;
pub mod list_runs;
pub mod list_sessions;
pub mod list_snapshots;
pub mod load_bundle;
mod page;
pub mod pause;
mod principal;
mod reader;
pub mod refine_bundle;
pub mod register_agent;
pub mod release_files;
pub mod release_task;
pub mod remove_plan;
pub mod report_run;
pub mod report_waiting;
pub mod reserve_files;
pub mod reset_tasks;
pub mod restore_snapshot;
pub mod resume;
pub mod retry_task;
pub mod save_bundle;
pub mod save_checkpoint;
pub(crate) mod save_state;
#[doc(hidden)]
pub mod schema;
pub mod send_message;
mod spoken;
pub mod start_task;
pub mod stop_run;
mod task_filter;
mod telling;
mod typed;
mod understand;
pub mod update_run;
pub mod update_task;
pub mod verify_bundles;
pub mod verify_snapshots;
pub mod wait_for_events;

pub use add_discovery::AddDiscovery;
pub use apply_batch::ApplyBatch;
pub use assigned::Assigned;
pub use attach_artifact::AttachArtifact;
pub use cancel_task::CancelTask;
pub use claim_run::ClaimRun;
pub use claim_task::ClaimTask;
pub use complete_task::CompleteTask;
pub use create_run::CreateRun;
pub use create_snapshot::CreateSnapshot;
pub use create_task::CreateTask;
pub use create_tasks_batch::CreateTasksBatch;
pub use delete_checkpoints::DeleteCheckpoints;
pub use diff_plans::DiffPlans;
pub use diff_snapshots::DiffSnapshots;
#[doc(hidden)]
pub use execute::{Executed, admit, execute, waits};
pub use explain_task::ExplainTask;
pub use export_plan::ExportPlan;
pub use fail_task::FailTask;
pub use get_agents::GetAgents;
pub use get_all_tasks::GetAllTasks;
pub use get_checkpoint::GetCheckpoint;
pub use get_discoveries::GetDiscoveries;
pub use get_history::GetHistory;
pub use get_master_plan::GetMasterPlan;
pub use get_messages::GetMessages;
pub use get_results::GetResults;
pub use get_run::GetRun;
pub use get_session::GetSession;
pub use get_status::GetStatus;
pub use get_task::GetTask;
pub use handoff::Handoff;
pub use health_check::{HealthCheck, Vitals};
pub use heartbeat::Heartbeat;
pub use held::{Held, Lost};
pub use import_plan::ImportPlan;
pub use init_coordination::InitCoordination;
pub use input::{Success, TaskInput};
pub use list_bundles::ListBundles;
pub use list_checkpoints::ListCheckpoints;
pub use list_plans::ListPlans;
pub use list_runs::ListRuns;
pub use list_sessions::ListSessions;
pub use list_snapshots::ListSnapshots;
pub use load_bundle::LoadBundle;
pub use page::{Part, Shown};
pub use pause::PauseBoard;
pub use principal::Principal;
pub use reader::Reader;
pub use refine_bundle::RefineBundle;
pub use register_agent::RegisterAgent;
pub use release_files::ReleaseFiles;
pub use release_task::ReleaseTask;
pub use remove_plan::RemovePlan;
pub use report_run::ReportRun;
pub use report_waiting::ReportWaiting;
pub use reserve_files::ReserveFiles;
pub use reset_tasks::ResetTasks;
pub use restore_snapshot::RestoreSnapshot;
pub use resume::ResumeBoard;
pub use retry_task::RetryTask;
pub use save_bundle::SaveBundle;
pub use save_checkpoint::SaveCheckpoint;
pub use send_message::SendMessage;
pub(crate) use spoken::in_commands;
pub use spoken::{Listener, acts_as_agent, subcommand};
pub use start_task::StartTask;
pub use stop_run::StopRun;
pub use task_filter::SORTS;
pub(crate) use typed::{Typed, typed};
pub(crate) use understand::near;
#[doc(hidden)]
pub use understand::{Understood, understand};
pub use update_run::UpdateRun;
pub use update_task::UpdateTask;
pub use verify_bundles::VerifyBundles;
pub use verify_snapshots::VerifySnapshots;
pub use wait_for_events::{EventFilter, WaitForEvents};

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::state::agent::Participant;
use crate::state::artifact::{Artifact, Source};
use crate::state::bundle;
use crate::state::document::Document;
use crate::state::event::{Event, Recorded};
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Listed, Occasion, SnapshotName, Verification};
use crate::state::task::Place;
use crate::state::time::Timestamp;
use crate::state::{Created, State};
use crate::{harmless, redact};
use typed::Slot;

/// One thing that the board can be asked.
pub trait Operation: 'static {
    const NAME: &'static str;
    /// One or two sentences for a model: what it does and when to call it.
    const DESCRIPTION: &'static str;
    const ANNOTATIONS: Annotations;
    const TOOLSET: Toolset;
    const AGENT: AgentArgument = AgentArgument::None;

    type Params: DeserializeOwned + JsonSchema + Serialize + Send + Sync + 'static;
    type Reply: Serialize + JsonSchema + Send + 'static;

    /// Decides on the events that the call causes. Reads cause none.
    fn decide(_params: &Self::Params, _state: &State, _call: &Call) -> Decision {
        Ok(Vec::new())
    }

    /// Builds the reply from the state after the events have been applied.
    fn reply(params: &Self::Params, state: &State, call: &Call) -> Result<Self::Reply, Refusal>;

    /// What follows from the caller's having the reply, built from the same state.
    fn delivered(_params: &Self::Params, _state: &State, _call: &Call) -> Vec<Event> {
        Vec::new()
    }

    fn agent_id(_params: &Self::Params) -> Option<&str> {
        None
    }

    fn idempotency_key(_params: &Self::Params) -> Option<&str> {
        None
    }

    /// True if the call reads or writes the archive. `fetch` then runs first, outside the writer and without any lock.
    const FETCHES: bool = false;

    /// Notes in the arguments what is lost when they are cleaned, such as how lines ended.
    fn note_form(_arguments: &mut Value) {}

    /// Checks whether the caller may have `fetch` done at all; runs before it.
    fn admit(_params: &Self::Params, _state: &State, _call: &Call) -> Result<(), Refusal> {
        Ok(())
    }

    /// Does the archive work and returns what `decide` and `reply` will find in `Call::fetched`.
    fn fetch(_params: &Self::Params, _archive: &dyn Archive) -> Result<Fetched, Refusal> {
        Ok(Fetched::Nothing)
    }

    /// How many seconds the caller is willing to wait for a better reply than the present one; 0 for none. While
    /// `waits` says true of the state, the call is held back for that long.
    fn wait_seconds(_params: &Self::Params) -> u64 {
        0
    }

    /// True if the caller would rather wait than have the reply that this state gives.
    fn waits(_params: &Self::Params, _state: &State, _call: &Call) -> bool {
        false
    }

    /// True if branch and head of the caller's worktree are recorded, so that they are read anew for the call.
    const PLACED: bool = false;

    /// Files that the call says are done, of which git is asked before whether they are committed.
    fn done_files(_params: &Self::Params) -> Vec<&str> {
        Vec::new()
    }

    /// Adds to the reply what git says of the caller's worktree. Runs after the call and without any lock, if the
    /// worktree is on this machine.
    const CHECKED_OUT: Option<AskGit> = None;

    /// Where the rest is of a list that is too long for a model, if this operation has no pages.
    const REST: &'static str = "get_all_tasks, get_task";

    /// True if the reply may take long to make, so that it is made beside the writer, from a snapshot of the state.
    fn is_long(_params: &Self::Params, _reader: Reader) -> bool {
        false
    }

    /// The operations that a batch consists of: all are done, in order, or none. `None` for an operation that is no
    /// batch.
    fn steps(_params: &Self::Params) -> Result<Option<Steps>, Refusal> {
        Ok(None)
    }
}

/// What git says of the caller's worktree. Slow, unlike everything else that an operation may use.
pub struct Checkout<'a> {
    pub root: &'a str,
    /// What brings a commit, or else the tip of a branch, into the checkout; `None` if it is there, or there is none.
    pub merge: &'a AskMerge<'a>,
    /// Files that are changed or new and not committed; `None` if git does not say.
    pub uncommitted: &'a dyn Fn() -> Option<Vec<String>>,
}

/// How a commit comes into a checkout.
pub struct Merge {
    pub command: String,
    /// False if git has not said whether the commit is there. To merge it again does no harm; to miss it does.
    pub is_needed: bool,
}

type AskMerge<'a> = dyn Fn(Option<&str>, Option<&str>) -> Option<Merge> + 'a;
pub type AskGit = fn(&mut Value, &Checkout);
pub type Decision = Result<Vec<Event>, Rejected>;
pub type Steps = Vec<Box<dyn Prepared>>;

/// A refusal, with the events to record in spite of it.
#[derive(Debug)]
pub struct Rejected {
    pub refusal: Refusal,
    pub keep: Vec<Event>,
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, keep: Vec::new() }
    }
}

/// What an operation may know besides its parameters and the state.
pub struct Call<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    /// Seed for random choices; chance is an argument, like time.
    pub seed: u64,
    pub participant: &'a ParticipantId,
    /// The living process that the agent acts through; `None` for one-shot commands and HTTP.
    pub presence: Option<&'a Participant>,
    pub place: &'a Place,
    /// Of the files that the call says are done, those that are not committed; none if it names none, or git has not
    /// said.
    pub uncommitted: Option<&'a [String]>,
    pub history: &'a dyn History,
    pub vitals: &'a Vitals<'a>,
    /// What `fetch` returned for this call.
    pub fetched: &'a Fetched,
    /// The agent that acts when `agent_id` is left out.
    pub default_agent: &'a DefaultAgent,
    /// The default agent that the process was started with, even if `Auto` has resolved to a name since.
    pub started_as: &'a DefaultAgent,
    /// The bearer of the token that let the caller in; `None` if the caller is the board's owner.
    pub principal: Option<&'a Principal>,
    /// True if the caller may be on another machine.
    pub remote: bool,
    /// The command line that runs callboard for this board in the caller's shell; `None` where the caller may have no
    /// such shell.
    pub command: Option<&'a str>,
    pub reader: Reader,
    /// The acting agent; `None` if it is the board's owner or the bearer of a token.
    pub actor: Option<AgentId>,
    /// What the call has created, now or when its idempotency key was first used.
    pub created: Vec<Created>,
    /// True if the idempotency key was used before: the call was already done.
    pub repeated: bool,
    /// When the acting agent was last heard of before this call; `None` if it was not on the board.
    pub heard: Option<Timestamp>,
    /// True if the acting agent has acted through this process before.
    pub is_known_here: bool,
    /// True if this call has already recorded a renewal of the agent's leases.
    pub renewed: bool,
    /// Number of events that the operation itself has caused, not counting `AgentSeen` and `RunnerSeen`.
    pub events: usize,
}

impl Call<'_> {
    /// The acting agent, for operations that need one.
    pub fn agent(&self) -> Result<&AgentId, Refusal> {
        self.actor.as_ref().ok_or(Refusal::AgentMissing)
    }

    /// Makes a path in the caller's worktree relative to its root, so that one file in five worktrees has one path.
    pub fn relative(&self, path: &str) -> String {
        self.place.relative(path).to_owned()
    }
}

/// The agent that acts when `agent_id` is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DefaultAgent {
    /// No agent: operations of agents require `agent_id`.
    #[default]
    None,
    Named(AgentId),
    /// The lowest free `<prefix>-N`.
    Auto {
        prefix: String,
    },
    /// Agents that act through a process of `auto`, in the order in which they came: a call has to name one.
    Several(Vec<AgentId>),
}

/// The journal's events, for the few operations that read them.
pub trait History {
    /// Hands up to `limit` events after `seq` to `take`, one at a time, until `take` breaks.
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String>;

    /// Returns the events at once, for ranges known to be small.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>, String> {
        let mut events = Vec::new();
        self.each_after(seq, limit, &mut |recorded| {
            events.push(recorded);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// The newest `limit` files that keep rejected hand edits.
    fn rejected_edits(&self, _limit: usize) -> Vec<String> {
        Vec::new()
    }
}

/// Earlier states, for the few operations that need them. Slow, unlike everything else that an operation may use.
pub trait Archive {
    fn reader(&self) -> Reader;
    /// The state at the time of the call.
    fn present(&self) -> &State;
    /// All snapshots, oldest first.
    fn list(&self) -> Result<Vec<Listed>, Refusal>;
    /// The state in the snapshot `name`.
    fn load(&self, name: &SnapshotName) -> Result<Document, Refusal>;
    /// The newest sound snapshot.
    fn newest_sound(&self) -> Result<(SnapshotName, Document), Refusal>;
    /// The state after event `seq`.
    fn at(&self, seq: u64) -> Result<Document, Refusal>;
    /// Takes a snapshot of the present state; it is durable when this returns.
    fn take(&self, occasion: Occasion, label: Option<String>) -> Result<Listed, Refusal>;
    fn verify(&self) -> Result<Verification, Refusal>;
    fn bundles(&self, asked: &bundle::Asked) -> Result<bundle::Told, Refusal>;
    /// Writes the file of an artifact; it is on disk when this returns.
    fn keep_artifact(&self, task: &TaskId, name: &str, source: &Source) -> Result<Artifact, Refusal>;
}

/// What a call fetched from the archive before it was decided on.
#[derive(Debug, Default)]
pub enum Fetched {
    #[default]
    Nothing,
    Listed(Vec<Listed>),
    Taken(Listed),
    Verified(Verification),
    Document(Box<Document>),
    Pair(Box<Document>, Box<Document>),
    Bundles(bundle::Told),
    Artifact(Artifact),
    /// An earlier state and the snapshot taken of the present one. `snapshot` is `None` if the state came from the
    /// journal.
    Earlier {
        document: Box<Document>,
        snapshot: Option<SnapshotName>,
        before: SnapshotName,
    },
}

/// Hints to clients, as defined by the MCP specification. No operation reaches beyond the board, so `openWorldHint` is
/// false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
}

/// Changes nothing.
pub const READ: Annotations = Annotations { read_only: true, destructive: false, idempotent: true };
/// Changes the board; the same call again changes it again.
pub const WRITE: Annotations = Annotations { read_only: false, destructive: false, idempotent: false };
/// Changes the board; the same call again has no further effect.
pub const REPEATABLE: Annotations = Annotations { read_only: false, destructive: false, idempotent: true };
/// May discard work; the same call again has no further effect.
pub const DESTRUCTIVE: Annotations = Annotations { read_only: false, destructive: true, idempotent: true };

/// The sets of tools that clients can be shown; each contains the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toolset {
    Worker,
    Core,
    Full,
}

/// Whether an operation takes `agent_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentArgument {
    /// The operation has no such argument.
    None,
    /// Left out: the process's default agent acts, else the board's owner.
    Optional,
    /// Left out: the process's default agent acts, else the call is refused.
    Required,
}

/// An operation with its types erased, for the list.
pub struct Entry {
    pub name: &'static str,
    pub description: &'static str,
    pub annotations: Annotations,
    pub toolset: Toolset,
    pub agent: AgentArgument,
    pub checked_out: Option<AskGit>,
    params_schema: fn() -> Map<String, Value>,
    exact_schema: fn() -> Map<String, Value>,
    reply_schema: fn() -> Map<String, Value>,
    prepare: fn(Value) -> Result<Box<dyn Prepared>, Refusal>,
}

impl Entry {
    pub const fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            description: O::DESCRIPTION,
            annotations: O::ANNOTATIONS,
            toolset: O::TOOLSET,
            agent: O::AGENT,
            checked_out: O::CHECKED_OUT,
            params_schema: schema::of::<O::Params>,
            exact_schema: schema::exact::<O::Params>,
            reply_schema: schema::of_reply::<O::Reply>,
            prepare: prepare::<O>,
        }
    }

    /// JSON Schema of the arguments. `agent_required` adds `agent_id` to the required ones of an agent's operation;
    /// `register_agent` never requires it, because it can make an id up.
    pub fn input_schema(&self, agent_required: bool) -> Map<String, Value> {
        let mut schema = (self.params_schema)();
        if agent_required && self.agent == AgentArgument::Required && self.name != RegisterAgent::NAME {
            schema::require(&mut schema, "agent_id");
        }
        schema
    }

    /// Names of the arguments in one line, for error messages.
    pub fn arguments(&self) -> String {
        schema::summary(&(self.params_schema)())
    }

    /// The schema of the arguments with the ranges of integers.
    fn exact_schema(&self) -> Map<String, Value> {
        (self.exact_schema)()
    }

    pub fn output_schema(&self) -> Map<String, Value> {
        (self.reply_schema)()
    }

    /// Schema of arguments and reply together, as in `schemas/` and in `callboard call --schema`.
    pub fn schema(&self) -> Value {
        let (mut arguments, mut reply) = (self.input_schema(true), self.output_schema());
        // References count from the root of the document.
        let definitions = schema::take_definitions(&mut arguments).into_iter();
        let definitions: Map<_, _> = definitions.chain(schema::take_definitions(&mut reply)).collect();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "description": self.description,
            "type": "object",
            "properties": {"arguments": arguments, "reply": reply},
        });
        if !definitions.is_empty() {
            schema[schema::DEFINITIONS] = Value::Object(definitions);
        }
        schema
    }

    pub fn prepare(&self, arguments: Value) -> Result<Box<dyn Prepared>, Refusal> {
        (self.prepare)(arguments)
    }
}

/// JSON Schema of an input that is not an operation's arguments: a plan.
pub fn schema_of<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of::<T>(), title)
}

/// JSON Schema of a file that callboard writes: the state file.
pub fn schema_of_written<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of_reply::<T>(), title)
}

fn titled(mut schema: Map<String, Value>, title: &str) -> Value {
    schema.insert("$schema".to_owned(), Value::from("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), Value::from(title));
    Value::Object(schema)
}

/// Largest arguments that are read, in bytes.
pub const LARGEST_INPUT: u64 = limit::ARGUMENTS.max as u64;

/// All operations, in the order in which clients are shown them.
pub fn all() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        Entry::of::<RegisterAgent>(),
        Entry::of::<ClaimTask>(),
        Entry::of::<StartTask>(),
        Entry::of::<CompleteTask>(),
        Entry::of::<FailTask>(),
        Entry::of::<ReleaseTask>(),
        Entry::of::<Heartbeat>(),
        Entry::of::<AddDiscovery>(),
        Entry::of::<GetTask>(),
        Entry::of::<InitCoordination>(),
        Entry::of::<CreateTask>(),
        Entry::of::<CreateTasksBatch>(),
        Entry::of::<GetStatus>(),
        Entry::of::<GetAllTasks>(),
        Entry::of::<GetResults>(),
        Entry::of::<GetDiscoveries>(),
        Entry::of::<GetMasterPlan>(),
        Entry::of::<UpdateTask>(),
        Entry::of::<CancelTask>(),
        Entry::of::<RetryTask>(),
        Entry::of::<WaitForEvents>(),
        Entry::of::<GetAgents>(),
        Entry::of::<ReportWaiting>(),
        Entry::of::<HealthCheck>(),
        Entry::of::<PauseBoard>(),
        Entry::of::<ResumeBoard>(),
        Entry::of::<ApplyBatch>(),
        Entry::of::<SendMessage>(),
        Entry::of::<GetMessages>(),
        Entry::of::<ReserveFiles>(),
        Entry::of::<ReleaseFiles>(),
        Entry::of::<ImportPlan>(),
        Entry::of::<ExportPlan>(),
        Entry::of::<DiffPlans>(),
        Entry::of::<ListPlans>(),
        Entry::of::<RemovePlan>(),
        Entry::of::<ExplainTask>(),
        Entry::of::<ResetTasks>(),
        Entry::of::<GetHistory>(),
        Entry::of::<CreateSnapshot>(),
        Entry::of::<ListSnapshots>(),
        Entry::of::<DiffSnapshots>(),
        Entry::of::<RestoreSnapshot>(),
        Entry::of::<VerifySnapshots>(),
        Entry::of::<SaveBundle>(),
        Entry::of::<LoadBundle>(),
        Entry::of::<RefineBundle>(),
        Entry::of::<ListBundles>(),
        Entry::of::<VerifyBundles>(),
        Entry::of::<CreateRun>(),
        Entry::of::<ClaimRun>(),
        Entry::of::<ReportRun>(),
        Entry::of::<UpdateRun>(),
        Entry::of::<StopRun>(),
        Entry::of::<GetRun>(),
        Entry::of::<ListRuns>(),
        Entry::of::<GetSession>(),
        Entry::of::<ListSessions>(),
        Entry::of::<SaveCheckpoint>(),
        Entry::of::<GetCheckpoint>(),
        Entry::of::<ListCheckpoints>(),
        Entry::of::<DeleteCheckpoints>(),
        Entry::of::<AttachArtifact>(),
    ];
    ALL
}

pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// A call whose arguments have been parsed.
pub trait Prepared: Send + Sync {
    fn name(&self) -> &'static str;
    fn annotations(&self) -> Annotations;
    fn agent_argument(&self) -> AgentArgument;
    fn agent_id(&self) -> Option<&str>;
    fn idempotency_key(&self) -> Option<&str>;
    /// The parameters without the idempotency key, to tell whether a repeated call is the same call.
    fn params(&self) -> Value;
    /// Number of secrets that were redacted from the arguments.
    fn redacted(&self) -> usize;
    fn wait_seconds(&self) -> u64;
    fn waits(&self, state: &State, call: &Call) -> bool;
    fn is_long(&self, reader: Reader) -> bool;
    /// See [`Operation::REST`].
    fn rest(&self) -> &'static str;
    fn steps(&self) -> Result<Option<&Steps>, Refusal>;
    fn fetches(&self) -> bool;
    /// See [`Operation::PLACED`]; of a batch, whether a step is.
    fn is_placed(&self) -> bool;
    fn done_files(&self) -> Vec<&str>;
    fn admit(&self, state: &State, call: &Call) -> Result<(), Refusal>;
    fn fetch(&self, archive: &dyn Archive) -> Result<Fetched, Refusal>;
    fn decide(&self, state: &State, call: &Call) -> Decision;
    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal>;
    fn delivered(&self, state: &State, call: &Call) -> Vec<Event>;
}

struct Parsed<O: Operation> {
    params: O::Params,
    redacted: usize,
    /// Parsed together with the call, because there is no time for it under the board's lock.
    steps: Result<Option<Steps>, Refusal>,
    /// Where the caller finds the reply as it is; `None` if the caller wants only its JSON.
    reply: Option<Slot<O>>,
}

impl<O: Operation> Parsed<O> {
    fn all_steps(&self) -> impl Iterator<Item = &dyn Prepared> {
        self.steps.iter().flatten().flatten().map(Box::as_ref)
    }
}

fn prepare<O: Operation>(arguments: Value) -> Result<Box<dyn Prepared>, Refusal> {
    Ok(Box::new(parse::<O>(arguments)?))
}

/// A text as operations that record it receive it: without what is harmful or secret.
pub(crate) fn received(text: &str) -> String {
    let mut value = Value::from(text);
    harmless::value(&mut value);
    redact::value(&mut value);
    value.as_str().unwrap_or_default().to_owned()
}

fn parse<O: Operation>(arguments: Value) -> Result<Parsed<O>, Refusal> {
    let mut arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    O::note_form(&mut arguments);
    harmless::value(&mut arguments);
    // A read stores nothing, so there is nothing to redact.
    let redacted = if O::ANNOTATIONS.read_only { 0 } else { redact::value(&mut arguments) };
    let kept = needs_patience(&arguments).then(|| arguments.clone());
    let parsed = serde_path_to_error::deserialize(arguments);
    let parsed = parsed.or_else(|error| match kept {
        Some(mut arguments) => {
            schema::drop_nulls(&mut arguments, &Value::Object(schema::of::<O::Params>()));
            serde_path_to_error::deserialize(with_integers(arguments))
        }
        None => Err(error),
    });
    match parsed {
        Ok(params) => Ok(Parsed { steps: O::steps(&params), params, redacted, reply: None }),
        Err(error) => Err(Refusal::BadArguments {
            operation: O::NAME,
            argument: Some(error.path().to_string()).filter(|path| path != "."),
            detail: error.to_string(),
            expected: schema::summary(&schema::of::<O::Params>()),
        }),
    }
}

/// 2^53, up to which every whole number has a double of its own.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The integer meant by a number like `5.0`. JSON Schema counts it as an integer, and some clients write integers so.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let fraction = number.as_f64().filter(|value| number.is_f64() && value.abs() <= LARGEST_WHOLE)?;
    (fraction.fract() == 0.0).then_some(fraction as i64)
}

/// Whether the value contains numbers like `5.0`, or nulls, which may stand for omitted arguments.
fn needs_patience(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => integer(number).is_some(),
        Value::Array(items) => items.iter().any(needs_patience),
        Value::Object(fields) => fields.values().any(needs_patience),
        Value::Bool(_) | Value::String(_) => false,
    }
}

fn with_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => integer(&number).map_or(Value::Number(number), Value::from),
        Value::Array(items) => items.into_iter().map(with_integers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, with_integers(value))).collect(),
        other => other,
    }
}

impl<O: Operation> Prepared for Parsed<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn annotations(&self) -> Annotations {
        O::ANNOTATIONS
    }

    fn agent_argument(&self) -> AgentArgument {
        O::AGENT
    }

    fn agent_id(&self) -> Option<&str> {
        O::agent_id(&self.params)
    }

    fn idempotency_key(&self) -> Option<&str> {
        O::idempotency_key(&self.params)
    }

    fn params(&self) -> Value {
        let mut params = serde_json::to_value(&self.params).unwrap_or_default();
        if let Some(params) = params.as_object_mut() {
            params.remove("idempotency_key");
        }
        params
    }

    fn redacted(&self) -> usize {
        self.redacted
    }

    fn wait_seconds(&self) -> u64 {
        O::wait_seconds(&self.params)
    }

    fn waits(&self, state: &State, call: &Call) -> bool {
        O::waits(&self.params, state, call)
    }

    fn is_long(&self, reader: Reader) -> bool {
        O::ANNOTATIONS.read_only && O::is_long(&self.params, reader)
    }

    fn rest(&self) -> &'static str {
        O::REST
    }

    fn steps(&self) -> Result<Option<&Steps>, Refusal> {
        self.steps.as_ref().map(Option::as_ref).map_err(Refusal::clone)
    }

    fn fetches(&self) -> bool {
        O::FETCHES
    }

    fn is_placed(&self) -> bool {
        O::PLACED || self.all_steps().any(|step| step.is_placed())
    }

    fn done_files(&self) -> Vec<&str> {
        let of_steps = self.all_steps().flat_map(|step| step.done_files());
        O::done_files(&self.params).into_iter().chain(of_steps).collect()
    }

    fn admit(&self, state: &State, call: &Call) -> Result<(), Refusal> {
        O::admit(&self.params, state, call)
    }

    fn fetch(&self, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        O::fetch(&self.params, archive)
    }

    fn decide(&self, state: &State, call: &Call) -> Decision {
        O::decide(&self.params, state, call)
    }

    fn delivered(&self, state: &State, call: &Call) -> Vec<Event> {
        O::delivered(&self.params, state, call)
    }

    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal> {
        let reply = O::reply(&self.params, state, call)?;
        let value = serde_json::to_value(&reply).unwrap_or_default();
        if let Some(slot) = &self.reply {
            slot.put(reply);
        }
        Ok(value)
    }
}
