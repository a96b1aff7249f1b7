//! Operations: what the board can be asked. One operation is one file; from the list here come the MCP tools, the
//! methods, `callboard call`, the schemas and the README's table.

mod add_discovery;
mod apply_batch;
mod attach_artifact;
mod cancel_task;
mod claim_run;
mod claim_task;
mod complete_task;
mod create_run;
mod create_snapshot;
mod create_task;
mod create_tasks_batch;
mod delete_checkpoints;
mod diff_plans;
mod diff_snapshots;
mod execute;
mod explain_task;
mod export_plan;
mod fail_task;
mod get_agents;
mod get_all_tasks;
mod get_checkpoint;
mod get_discoveries;
mod get_history;
mod get_master_plan;
mod get_messages;
mod get_results;
mod get_run;
mod get_session;
mod get_status;
mod get_task;
pub mod hand_edit;
mod health_check;
mod heartbeat;
mod import_plan;
mod init_coordination;
pub(crate) mod input;
mod list_bundles;
mod list_checkpoints;
mod list_runs;
mod list_sessions;
mod list_snapshots;
mod load_bundle;
mod pause;
mod principal;
mod refine_bundle;
mod register_agent;
mod release_files;
mod release_task;
mod report_run;
mod reserve_files;
mod reset_tasks;
mod restore_snapshot;
mod resume;
mod retry_task;
mod save_bundle;
mod save_checkpoint;
mod schema;
mod send_message;
mod start_task;
mod stop_run;
mod telling;
mod update_run;
mod update_task;
mod verify_bundles;
mod verify_snapshots;
mod wait_for_events;

pub use claim_run::ClaimRun;
pub use claim_task::ClaimTask;
pub use execute::{Executed, admit, execute, waits};
pub use get_status::Reply as StatusReply;
pub use health_check::Vitals;
pub use principal::Principal;
pub use wait_for_events::EventFilter;

use std::ops::ControlFlow;

use apply_batch::ApplyBatch;
use create_task::CreateTask;
use create_tasks_batch::CreateTasksBatch;
use register_agent::RegisterAgent;
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

/// One thing that the board can be asked.
pub trait Operation: 'static {
    const NAME: &'static str;
    /// One or two sentences for a model: what it does and when to call it.
    const DESCRIPTION: &'static str;
    const ANNOTATIONS: Annotations;
    const TOOLSET: Toolset;
    const AGENT: AgentArgument = AgentArgument::None;

    type Params: DeserializeOwned + JsonSchema + Serialize + Send + Sync + 'static;
    type Reply: Serialize + JsonSchema;

    /// The events that follow from the call. Reads decide nothing.
    fn decide(_params: &Self::Params, _state: &State, _call: &Call) -> Decision {
        Ok(Vec::new())
    }

    /// The answer, from the state in which the events are applied.
    fn reply(params: &Self::Params, state: &State, call: &Call) -> Result<Self::Reply, Refusal>;

    fn agent_id(_params: &Self::Params) -> Option<&str> {
        None
    }

    fn idempotency_key(_params: &Self::Params) -> Option<&str> {
        None
    }

    /// The call reads or writes the archive: `fetch` runs first, beside the writer and without any lock.
    const FETCHES: bool = false;

    /// Whether the caller may have `fetch` done at all.
    fn admit(_params: &Self::Params, _state: &State, _call: &Call) -> Result<(), Refusal> {
        Ok(())
    }

    /// What `decide` and `reply` are to find in `Call::fetched`.
    fn fetch(_params: &Self::Params, _archive: &dyn Archive) -> Result<Fetched, Refusal> {
        Ok(Fetched::Nothing)
    }

    /// How long the caller would wait for a better answer, and whether this state has none yet.
    fn wait_seconds(_params: &Self::Params) -> u64 {
        0
    }

    fn waits(_params: &Self::Params, _state: &State, _call: &Call) -> bool {
        false
    }

    /// The operations that this one consists of, to be done one after another or not at all.
    fn steps(_params: &Self::Params) -> Result<Option<Steps>, Refusal> {
        Ok(None)
    }
}

pub type Decision = Result<Vec<Event>, Rejected>;
pub type Steps = Vec<Box<dyn Prepared>>;

/// A refusal, and what is to be kept of the call all the same.
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

/// What an operation may know beside its parameters and the state.
pub struct Call<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    /// Chance, as an argument.
    pub seed: u64,
    pub participant: &'a ParticipantId,
    /// The living process that the agent acts through; none for one-shot commands and HTTP.
    pub presence: Option<&'a Participant>,
    pub place: &'a Place,
    pub history: &'a dyn History,
    pub vitals: &'a Vitals<'a>,
    /// What the call had fetched from the archive.
    pub fetched: &'a Fetched,
    /// Who an omitted `agent_id` stands for.
    pub default_agent: &'a DefaultAgent,
    /// The same as the process was started, whatever name stands for it by now.
    pub started_as: &'a DefaultAgent,
    /// Whose token let the caller in; none is the person whose board it is.
    pub principal: Option<&'a Principal>,
    /// The caller may be on another machine.
    pub remote: bool,
    /// How callboard is called for this board in a shell of the caller's; none where the caller may have no such shell.
    pub command: Option<&'a str>,
    /// The acting agent; none is the person whose board it is.
    pub actor: Option<AgentId>,
    /// What the call has created, now or when its idempotency key was first used.
    pub created: Vec<Created>,
    /// The call had been answered before.
    pub repeated: bool,
    /// The renewal of the agent's leases was recorded with this call.
    pub renewed: bool,
    /// How many events the operation itself has caused, beside those that say that its agent is there.
    pub events: usize,
}

impl Call<'_> {
    /// The acting agent, for operations that cannot do without.
    pub fn agent(&self) -> Result<&AgentId, Refusal> {
        self.actor.as_ref().ok_or(Refusal::AgentMissing)
    }

    /// A path in the caller's worktree relative to its root, so that one file in five worktrees is one path.
    pub fn relative(&self, path: &str) -> String {
        self.place.relative(path).to_owned()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum DefaultAgent {
    /// `agent_id` is required.
    #[default]
    None,
    Named(AgentId),
    /// The lowest free `<prefix>-N`.
    Auto {
        prefix: String,
    },
}

/// The past, for the few operations that read it.
pub trait History {
    /// Hands out up to `limit` events after `seq` one by one, until `take` breaks.
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String>;

    /// The same at once, for what is known to be small.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>, String> {
        let mut events = Vec::new();
        self.each_after(seq, limit, &mut |recorded| {
            events.push(recorded);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// The newest `limit` files in which hand edits are kept that were not taken over.
    fn rejected_edits(&self, _limit: usize) -> Vec<String> {
        Vec::new()
    }
}

/// Earlier states, for the few operations that need them. Slow, unlike everything else that an operation may ask.
pub trait Archive {
    /// The state when the call came.
    fn present(&self) -> &State;
    /// Oldest first.
    fn list(&self) -> Result<Vec<Listed>, Refusal>;
    /// The state of that snapshot.
    fn load(&self, name: &SnapshotName) -> Result<Document, Refusal>;
    /// The newest sound snapshot.
    fn newest_sound(&self) -> Result<(SnapshotName, Document), Refusal>;
    /// The state after event `seq`.
    fn at(&self, seq: u64) -> Result<Document, Refusal>;
    /// A snapshot of the present, durable when this returns.
    fn take(&self, occasion: Occasion, label: Option<String>) -> Result<Listed, Refusal>;
    fn verify(&self) -> Result<Verification, Refusal>;
    fn bundles(&self, asked: &bundle::Asked) -> Result<bundle::Told, Refusal>;
    /// The file of an artifact, written when this returns.
    fn keep_artifact(&self, task: &TaskId, name: &str, source: &Source) -> Result<Artifact, Refusal>;
}

/// What a call had fetched from the archive before it was decided on.
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
    /// An earlier state, of a snapshot or of the journal alone, and the snapshot taken of the present.
    Earlier {
        document: Box<Document>,
        snapshot: Option<SnapshotName>,
        before: SnapshotName,
    },
}

/// Hints to clients; see the MCP specification. Nothing here reaches beyond the board, so `openWorldHint` is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
}

pub const READ: Annotations = Annotations { read_only: true, destructive: false, idempotent: true };
pub const WRITE: Annotations = Annotations { read_only: false, destructive: false, idempotent: false };
pub const REPEATABLE: Annotations = Annotations { read_only: false, destructive: false, idempotent: true };
pub const DESTRUCTIVE: Annotations = Annotations { read_only: false, destructive: true, idempotent: true };

/// Each holds the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toolset {
    Worker,
    Core,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentArgument {
    None,
    Optional,
    Required,
}

/// An operation without its types, for the list.
pub struct Entry {
    pub name: &'static str,
    pub description: &'static str,
    pub annotations: Annotations,
    pub toolset: Toolset,
    pub agent: AgentArgument,
    params_schema: fn() -> Map<String, Value>,
    reply_schema: fn() -> Map<String, Value>,
    prepare: fn(Value) -> Result<Box<dyn Prepared>, Refusal>,
}

impl Entry {
    const fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            description: O::DESCRIPTION,
            annotations: O::ANNOTATIONS,
            toolset: O::TOOLSET,
            agent: O::AGENT,
            params_schema: schema::of::<O::Params>,
            reply_schema: schema::of_reply::<O::Reply>,
            prepare: prepare::<O>,
        }
    }

    /// JSON Schema of the arguments. `agent_id` is required of agents unless the process stands for one; registration
    /// makes one up.
    pub fn input_schema(&self, agent_required: bool) -> Map<String, Value> {
        let mut schema = (self.params_schema)();
        if agent_required && self.agent == AgentArgument::Required && self.name != RegisterAgent::NAME {
            schema::require(&mut schema, "agent_id");
        }
        schema
    }

    /// The arguments' names, as a reader of an error message wants them.
    pub fn arguments(&self) -> String {
        schema::summary(&(self.params_schema)())
    }

    pub fn output_schema(&self) -> Map<String, Value> {
        (self.reply_schema)()
    }

    /// Both schemas, as `schemas/` and `callboard call --schema` show them.
    pub fn schema(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "description": self.description,
            "type": "object",
            "properties": {"arguments": self.input_schema(true), "reply": self.output_schema()},
        })
    }

    pub fn prepare(&self, arguments: Value) -> Result<Box<dyn Prepared>, Refusal> {
        (self.prepare)(arguments)
    }
}

/// JSON Schema of what is read and is not an operation's: a plan.
pub fn schema_of<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of::<T>(), title)
}

/// The same of what is written: the state file.
pub fn schema_of_written<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of_reply::<T>(), title)
}

fn titled(mut schema: Map<String, Value>, title: &str) -> Value {
    schema.insert("$schema".to_owned(), Value::from("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), Value::from(title));
    Value::Object(schema)
}

/// The largest arguments that are read, in bytes.
pub const LARGEST_INPUT: u64 = limit::ARGUMENTS.max as u64;

/// In the order in which clients are shown them.
pub fn all() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        Entry::of::<RegisterAgent>(),
        Entry::of::<claim_task::ClaimTask>(),
        Entry::of::<start_task::StartTask>(),
        Entry::of::<complete_task::CompleteTask>(),
        Entry::of::<fail_task::FailTask>(),
        Entry::of::<release_task::ReleaseTask>(),
        Entry::of::<heartbeat::Heartbeat>(),
        Entry::of::<add_discovery::AddDiscovery>(),
        Entry::of::<get_task::GetTask>(),
        Entry::of::<init_coordination::InitCoordination>(),
        Entry::of::<CreateTask>(),
        Entry::of::<CreateTasksBatch>(),
        Entry::of::<get_status::GetStatus>(),
        Entry::of::<get_all_tasks::GetAllTasks>(),
        Entry::of::<get_results::GetResults>(),
        Entry::of::<get_discoveries::GetDiscoveries>(),
        Entry::of::<get_master_plan::GetMasterPlan>(),
        Entry::of::<update_task::UpdateTask>(),
        Entry::of::<cancel_task::CancelTask>(),
        Entry::of::<retry_task::RetryTask>(),
        Entry::of::<wait_for_events::WaitForEvents>(),
        Entry::of::<get_agents::GetAgents>(),
        Entry::of::<health_check::HealthCheck>(),
        Entry::of::<pause::PauseBoard>(),
        Entry::of::<resume::ResumeBoard>(),
        Entry::of::<ApplyBatch>(),
        Entry::of::<send_message::SendMessage>(),
        Entry::of::<get_messages::GetMessages>(),
        Entry::of::<reserve_files::ReserveFiles>(),
        Entry::of::<release_files::ReleaseFiles>(),
        Entry::of::<import_plan::ImportPlan>(),
        Entry::of::<export_plan::ExportPlan>(),
        Entry::of::<diff_plans::DiffPlans>(),
        Entry::of::<explain_task::ExplainTask>(),
        Entry::of::<reset_tasks::ResetTasks>(),
        Entry::of::<get_history::GetHistory>(),
        Entry::of::<create_snapshot::CreateSnapshot>(),
        Entry::of::<list_snapshots::ListSnapshots>(),
        Entry::of::<diff_snapshots::DiffSnapshots>(),
        Entry::of::<restore_snapshot::RestoreSnapshot>(),
        Entry::of::<verify_snapshots::VerifySnapshots>(),
        Entry::of::<save_bundle::SaveBundle>(),
        Entry::of::<load_bundle::LoadBundle>(),
        Entry::of::<refine_bundle::RefineBundle>(),
        Entry::of::<list_bundles::ListBundles>(),
        Entry::of::<verify_bundles::VerifyBundles>(),
        Entry::of::<create_run::CreateRun>(),
        Entry::of::<claim_run::ClaimRun>(),
        Entry::of::<report_run::ReportRun>(),
        Entry::of::<update_run::UpdateRun>(),
        Entry::of::<stop_run::StopRun>(),
        Entry::of::<get_run::GetRun>(),
        Entry::of::<list_runs::ListRuns>(),
        Entry::of::<get_session::GetSession>(),
        Entry::of::<list_sessions::ListSessions>(),
        Entry::of::<save_checkpoint::SaveCheckpoint>(),
        Entry::of::<get_checkpoint::GetCheckpoint>(),
        Entry::of::<list_checkpoints::ListCheckpoints>(),
        Entry::of::<delete_checkpoints::DeleteCheckpoints>(),
        Entry::of::<attach_artifact::AttachArtifact>(),
    ];
    ALL
}

pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// A call whose arguments have been read.
pub trait Prepared: Send + Sync {
    fn name(&self) -> &'static str;
    fn annotations(&self) -> Annotations;
    fn agent_argument(&self) -> AgentArgument;
    fn agent_id(&self) -> Option<&str>;
    fn idempotency_key(&self) -> Option<&str>;
    /// The parameters without the key, for telling whether a repeated call is the same call.
    fn params(&self) -> Value;
    /// How many secrets were taken out of the arguments.
    fn redacted(&self) -> usize;
    fn wait_seconds(&self) -> u64;
    fn waits(&self, state: &State, call: &Call) -> bool;
    fn steps(&self) -> Result<Option<&Steps>, Refusal>;
    fn fetches(&self) -> bool;
    fn admit(&self, state: &State, call: &Call) -> Result<(), Refusal>;
    fn fetch(&self, archive: &dyn Archive) -> Result<Fetched, Refusal>;
    fn decide(&self, state: &State, call: &Call) -> Decision;
    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal>;
}

struct Parsed<O: Operation> {
    params: O::Params,
    redacted: usize,
    /// Read with the call, too: under the board's lock there is no time for it.
    steps: Result<Option<Steps>, Refusal>,
}

fn prepare<O: Operation>(arguments: Value) -> Result<Box<dyn Prepared>, Refusal> {
    let mut arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    harmless::value(&mut arguments);
    // Nothing of a read is kept.
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
        Ok(params) => Ok(Box::new(Parsed::<O> { steps: O::steps(&params), params, redacted })),
        Err(error) => Err(Refusal::BadArguments {
            operation: O::NAME,
            detail: error.to_string(),
            expected: schema::summary(&schema::of::<O::Params>()),
        }),
    }
}

/// The largest up to which every whole number is a double of its own.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The integer that JSON Schema takes a number like `5.0` for, and some clients write so.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let fraction = number.as_f64().filter(|value| number.is_f64() && value.abs() <= LARGEST_WHOLE)?;
    (fraction.fract() == 0.0).then_some(fraction as i64)
}

/// It has numbers like `5.0`, or nulls, which may stand for what is left out.
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

    fn steps(&self) -> Result<Option<&Steps>, Refusal> {
        self.steps.as_ref().map(Option::as_ref).map_err(Refusal::clone)
    }

    fn fetches(&self) -> bool {
        O::FETCHES
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

    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal> {
        let reply = O::reply(&self.params, state, call)?;
        Ok(serde_json::to_value(reply).unwrap_or_default())
    }
}
