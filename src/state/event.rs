//! What happened. An event is journal line, feed item, audit entry and replay unit at once.
//! `State::apply` reads nothing but the state and the event, so an event holds everything that
//! follows from policy, clock or chance.
//!
//! A change of an event's meaning is a new kind or field; old ones load for ever. What is new has a
//! line in [`NEWER`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::{Demands, Participant, Properties, Role, WaitReason};
use super::artifact::Artifact;
use super::brought::Brought;
use super::document::{Document, PlanVersion, Retired};
use super::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId,
    WorkflowId,
};
pub use super::level::newer::{NEWER, REVIEW, TEXT, VERSION};
use super::message::Message;
use super::plan::kept::KeptText;
use super::reservation::Reservation;
use super::review::Review;
use super::run::Run;
use super::session::Session;
use super::snapshot::SnapshotName;
use super::task::{AttemptError, Context, Place, Planned, Task, TaskResult, TaskStatus};
use super::time::Timestamp;
use super::workflow::{Budget, Checkpoint, Spent};

/// Kinds of events, in the order of their definition.
pub const KINDS: [&str; 56] = [
    "board_created",
    "imported",
    "plan_set",
    "tasks_created",
    "task_updated",
    "agent_registered",
    "agent_seen",
    "noted",
    "participant_joined",
    "participant_gone",
    "clock_stepped",
    "claimed",
    "started",
    "completed",
    "late_result_kept",
    "failed",
    "released",
    "lease_expired",
    "stop_requested",
    "cancelled",
    "retried",
    "discovery_added",
    "message_sent",
    "messages_read",
    "messages_retired",
    "files_reserved",
    "files_released",
    "paused",
    "resumed",
    "agents_paused",
    "agents_resumed",
    "tasks_retired",
    "plan_imported",
    "tasks_reset",
    "state_edited",
    "state_restored",
    "run_created",
    "run_failed",
    "runs_awaited",
    "results_added",
    "runner_seen",
    "workflow_saved",
    "checkpoints_dropped",
    "artifact_attached",
    "agents_retired",
    "discoveries_retired",
    "sessions_retired",
    "agent_waits",
    "stubs_dropped",
    "stubs_recalled",
    "task_kept",
    "task_opened",
    "tasks_numbered",
    "purged",
    "reviewed",
    "command_undone",
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    BoardCreated {
        board_id: String,
        /// Whether its tasks get numbers from the first on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        numbered: bool,
    },
    /// A state without a journal was imported as the start of one. The event follows the document's
    /// own `seq`, if it has one.
    Imported {
        source: String,
        document: Box<Document>,
    },
    PlanSet {
        goal: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        master_plan: Option<String>,
    },
    /// Each dependency existed before its dependent, or is created by the same event.
    TasksCreated {
        tasks: Vec<NewTask>,
    },
    TaskUpdated {
        task: TaskId,
        change: Box<TaskChange>,
        /// The new end of the open attempt's lease, if it changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// An agent registered, or registered again; its counters and claims stay.
    AgentRegistered {
        agent: AgentId,
        role: Role,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        capabilities: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        tags: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "Properties::is_empty")]
        properties: Properties,
        /// What else it said of itself; left out, that stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map<String, Value>>,
        max_concurrent: u32,
        /// Ends the agent's presence in other processes: this process has taken the id over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takeover: bool,
    },
    /// An agent was heard of; its leases now last `lease_millis` from here.
    AgentSeen {
        agent: AgentId,
        /// The living process that it acted through, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<ParticipantId>,
        lease_millis: i64,
        /// The claim that was answered again; it belongs to that process from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<TaskId>,
        /// Whether it had waited for a person until then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waited: bool,
    },
    /// An agent's note on a task it holds, for whoever takes the task next.
    Noted {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    ParticipantJoined {
        participant: Participant,
    },
    /// The participant's presence lock was found free. Agents present only through it have until
    /// `grace_until`.
    ParticipantGone {
        participant: ParticipantId,
        grace_until: Timestamp,
    },
    /// Wall time ran ahead of the time in which agents could act. Every open deadline moves by
    /// `gap_millis`.
    ClockStepped {
        gap_millis: i64,
        grace_until: Timestamp,
    },
    Claimed {
        task: TaskId,
        agent: AgentId,
        attempt: u32,
        lease_until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<ParticipantId>,
        #[serde(flatten)]
        place: Place,
    },
    Started {
        task: TaskId,
    },
    /// May come late, from the agent of the last attempt, after its lease expired.
    Completed {
        task: TaskId,
        attempt: u32,
        result: Arc<TaskResult>,
        /// Whether the task is not done before a reviewer approves the result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        review: bool,
    },
    /// The result of an attempt that was over; kept, but not taken.
    LateResultKept {
        task: TaskId,
        attempt: u32,
        result: Arc<TaskResult>,
    },
    Failed {
        task: TaskId,
        error: AttemptError,
        /// When the task becomes available again; without it the task stays failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    },
    Released {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    LeaseExpired {
        task: TaskId,
        attempt: u32,
        /// Whether the attempt counts against `max_attempts`.
        counted: bool,
        /// Whether the task has used up its attempts and is failed.
        gave_up: bool,
    },
    StopRequested {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Cancel the task once its agent has stopped, so that nobody else does it either.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cancel: bool,
    },
    Cancelled {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Retried {
        task: TaskId,
    },
    DiscoveryAdded {
        discovery: DiscoveryId,
        agent: AgentId,
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// Discoveries that it replaces; they stay.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        supersedes: Vec<DiscoveryId>,
    },
    /// A message, unread by all its recipients from here on. The message that it answers, if any,
    /// counts as read by its sender.
    MessageSent {
        message: Box<Message>,
    },
    MessagesRead {
        agent: AgentId,
        messages: Vec<MessageId>,
    },
    /// Messages dropped to make room: read by all, or unread only by agents that are lost.
    MessagesRetired {
        messages: Vec<MessageId>,
    },
    /// A new reservation, or one renewed under the same id. A task's files need none: they are held
    /// with its lease.
    FilesReserved {
        reservation: Box<Reservation>,
    },
    FilesReleased {
        reservations: Vec<ReservationId>,
        /// Whether they ran out; otherwise somebody gave them up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    Paused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Resumed {},
    /// The agents get no more tasks; with `stop` they are asked to end what they do, too.
    AgentsPaused {
        agents: Vec<AgentId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stop: bool,
    },
    /// The agents may have tasks again, and go on with what they were to stop.
    AgentsResumed {
        agents: Vec<AgentId>,
    },
    /// Finished tasks leave the live state; this event keeps them whole.
    TasksRetired {
        tasks: Vec<Arc<Task>>,
        /// Those of them that had parts, which retire with the last of these
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parents: Vec<TaskId>,
    },
    /// A plan became the current one. The event leaves out what the plan says as before.
    PlanImported {
        plan: PlanVersion,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        created: Vec<NewTask>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Replanned>,
        /// Tasks no longer in the plan: they become obsolete, unless done.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<TaskId>,
        /// Tasks no longer in the plan that agents hold: they become obsolete when their attempts
        /// end without success.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leaving: Vec<TaskId>,
        /// Done tasks that new items may be, under other words or in another place.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reworded: Vec<Reworded>,
        /// Whether the removed tasks are recognised if they come back; false in older events.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known_again: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brought: Option<Box<Brought>>,
        /// The plan's text, if it is Markdown. The state does not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Box<KeptText>>,
    },
    /// Tasks made available again, even done ones, as if nobody had begun them.
    TasksReset {
        tasks: Vec<TaskId>,
    },
    /// A person edited the state file, and the board adopted the changes.
    StateEdited {
        /// Last event in the file that was edited.
        base_seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        master_plan: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<EditedTask>,
    },
    /// An earlier state replaced the present one. `document` is the whole restored state: its
    /// leases are ended, and its attempt numbers, participants and agents are those that hold
    /// from here on.
    StateRestored {
        /// Last event of the earlier state.
        restored_seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<SnapshotName>,
        document: Box<Document>,
    },
    /// A run, with the session if it starts one. The run takes over all results that its session
    /// has kept.
    RunCreated {
        run: Box<NewTask>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Box<Session>>,
    },
    /// A run failed by itself: no runner came, or its attempt took too long.
    RunFailed {
        run_id: TaskId,
        error: AttemptError,
    },
    /// Runs whose fitting runners are busy wait for one until `until`.
    RunsAwaited {
        runs: Vec<TaskId>,
        until: Timestamp,
    },
    /// A pending callback run takes over the results that its session has kept since.
    ResultsAdded {
        run_id: TaskId,
    },
    /// An agent began to claim runs, or changed how it chooses them.
    RunnerSeen {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        require_matching_tags: bool,
    },
    /// A workflow made progress, spent something, or got another budget.
    WorkflowSaved(Box<Saved>),
    /// Checkpoints that were too old, or that somebody deleted.
    CheckpointsDropped {
        checkpoints: Vec<CheckpointId>,
        /// The workflow that is deleted with them, including the record of what it has spent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<WorkflowId>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    /// An artifact, replacing one of the same name. Its file is already written.
    ArtifactAttached {
        task: TaskId,
        artifact: Box<Artifact>,
    },
    /// Agents retired to make room: long away, with nothing but mail, which counts as read.
    AgentsRetired {
        agents: Vec<AgentId>,
    },
    /// Discoveries retired to make room; all were superseded.
    DiscoveriesRetired {
        discoveries: Vec<DiscoveryId>,
    },
    /// Sessions retired to make room: all their runs had retired, and nothing waited for them.
    SessionsRetired {
        sessions: Vec<SessionId>,
    },
    /// An agent waits for a person, since this event's time, until the next event that it causes.
    AgentWaits {
        agent: AgentId,
        #[serde(rename = "for")]
        reason: WaitReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        what: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "where")]
        place: Option<String>,
    },
    /// The stubs of tasks that retired long ago leave the state. The journal finds them by id: each
    /// is here with the `seq` of the event that retired the task.
    StubsDropped {
        stubs: BTreeMap<TaskId, u64>,
    },
    /// Stubs that had left the state are in it again, because a call names their tasks.
    StubsRecalled {
        stubs: BTreeMap<TaskId, Retired>,
    },
    /// Only this agent is given the task before `until`, unless it is opened again.
    TaskKept {
        task: TaskId,
        agent: AgentId,
        until: Timestamp,
    },
    /// The task is kept for no agent any more.
    TaskOpened {
        task: TaskId,
    },
    /// Tasks get numbers from here on. Those that there are get theirs in the order of creation.
    TasksNumbered {},
    /// A person took a text out of the whole history. `document` is the present state without it.
    Purged {
        document: Box<Document>,
        /// The events that had it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rows: Vec<PurgedRow>,
    },
    /// A reviewer approved the result of a task in review, which is done; or sent it back, so that
    /// the task is available again. The actor is the reviewer.
    Reviewed {
        task: TaskId,
        approved: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// What the command of the events from `first` to `last` changed was taken back: fields by this
    /// event, all else by those before it in its batch.
    CommandUndone {
        first: u64,
        last: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        master_plan: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<EditedTask>,
        /// Tasks whose results wait for review again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reviews: Vec<TaskId>,
    },
}

/// What is new about a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Saved {
    pub workflow: WorkflowId,
    /// Agent that works for this workflow from here on, and for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// New bounds; the others stay.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Spent since the last save.
    #[serde(default)]
    pub spent: Spent,
    /// The new checkpoint and its place, where it replaces what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<(CheckpointId, Checkpoint)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<CheckpointId>,
    /// Data left with the task that the agent holds, for whoever works on it next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<(TaskId, Arc<Map<String, Value>>)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct NewTask {
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// Set if the task is over from the start, as a plan may say; else it is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Demands,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub max_attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<Run>>,
}

impl NewTask {
    /// The task whose attempt this one waits for.
    pub fn after(&self) -> Option<&TaskId> {
        self.planned.as_ref()?.after()
    }
}

/// New values of fields; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<TaskId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<Demands>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_minutes: Option<u32>,
    /// 0 removes the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// A task about which a plan says something new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Replanned {
    pub task: TaskId,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    pub planned: Planned,
    /// An empty context removes the old one.
    #[serde(flatten)]
    pub change: TaskChange,
    /// The new status: available, done, or what the plan says by `planned.off`; without it the
    /// status stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<TaskStatus>,
    /// If the task becomes available, whether results of earlier attempts stop counting and a
    /// request to cancel it stays. Older events did neither.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    pub what: PlanChange,
    /// Previous title or path, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

/// A done task, and the item that is open because its words or its place differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reworded {
    pub done: TaskId,
    pub now: TaskId,
}

/// What a new version of the plan means for a task of the version before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanChange {
    Modified,
    /// The task had ended and is to be done again.
    Reopened,
    /// Only title or path changed, not what is to be done.
    Renamed,
    /// The plan says that the task is done.
    Completed,
    /// The plan says that the task is cancelled or obsolete.
    CalledOff,
    /// The task moved along with others, or came back unchanged.
    Moved,
}

/// A task that was edited by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct EditedTask {
    pub task: TaskId,
    /// An empty context removes the old one.
    #[serde(flatten)]
    pub change: TaskChange,
    /// The title was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untitled: bool,
}

/// An event of which a text was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PurgedRow {
    pub seq: u64,
    /// Hash of what the journal's row holds now.
    pub sha256: String,
}

/// An event with its place in history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub seq: u64,
    pub at: Timestamp,
    /// The process that wrote the event. Not called `participant`, because some events have a
    /// field of that name.
    #[serde(rename = "writer")]
    pub participant: ParticipantId,
    /// The actor: an agent, `human`, or `~` and the name of a token whose bearer named no agent;
    /// `None` if time acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    #[serde(flatten)]
    pub event: Event,
}

/// The idempotency key of a creating call: repeating the call creates nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// `<actor>/<operation>/<key>`.
    pub key: String,
    /// Hash of the parameters; the same key with others is refused.
    pub params: String,
}

impl Event {
    /// The event without the text of a plan, which only exports read.
    pub fn without_text(&self) -> Self {
        let mut event = self.clone();
        if let Self::PlanImported { text, .. } = &mut event {
            *text = None;
        }
        event
    }

    /// Value of the `kind` column.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BoardCreated { .. } => "board_created",
            Self::Imported { .. } => "imported",
            Self::PlanSet { .. } => "plan_set",
            Self::TasksCreated { .. } => "tasks_created",
            Self::TaskUpdated { .. } => "task_updated",
            Self::AgentRegistered { .. } => "agent_registered",
            Self::AgentSeen { .. } => "agent_seen",
            Self::Noted { .. } => "noted",
            Self::ParticipantJoined { .. } => "participant_joined",
            Self::ParticipantGone { .. } => "participant_gone",
            Self::ClockStepped { .. } => "clock_stepped",
            Self::Claimed { .. } => "claimed",
            Self::Started { .. } => "started",
            Self::Completed { .. } => "completed",
            Self::LateResultKept { .. } => "late_result_kept",
            Self::Failed { .. } => "failed",
            Self::Released { .. } => "released",
            Self::LeaseExpired { .. } => "lease_expired",
            Self::StopRequested { .. } => "stop_requested",
            Self::Cancelled { .. } => "cancelled",
            Self::Retried { .. } => "retried",
            Self::DiscoveryAdded { .. } => "discovery_added",
            Self::MessageSent { .. } => "message_sent",
            Self::MessagesRead { .. } => "messages_read",
            Self::MessagesRetired { .. } => "messages_retired",
            Self::FilesReserved { .. } => "files_reserved",
            Self::FilesReleased { .. } => "files_released",
            Self::Paused { .. } => "paused",
            Self::Resumed {} => "resumed",
            Self::AgentsPaused { .. } => "agents_paused",
            Self::AgentsResumed { .. } => "agents_resumed",
            Self::TasksRetired { .. } => "tasks_retired",
            Self::PlanImported { .. } => "plan_imported",
            Self::TasksReset { .. } => "tasks_reset",
            Self::StateEdited { .. } => "state_edited",
            Self::StateRestored { .. } => "state_restored",
            Self::RunCreated { .. } => "run_created",
            Self::RunFailed { .. } => "run_failed",
            Self::RunsAwaited { .. } => "runs_awaited",
            Self::ResultsAdded { .. } => "results_added",
            Self::RunnerSeen { .. } => "runner_seen",
            Self::WorkflowSaved(_) => "workflow_saved",
            Self::CheckpointsDropped { .. } => "checkpoints_dropped",
            Self::ArtifactAttached { .. } => "artifact_attached",
            Self::AgentsRetired { .. } => "agents_retired",
            Self::DiscoveriesRetired { .. } => "discoveries_retired",
            Self::SessionsRetired { .. } => "sessions_retired",
            Self::AgentWaits { .. } => "agent_waits",
            Self::StubsDropped { .. } => "stubs_dropped",
            Self::StubsRecalled { .. } => "stubs_recalled",
            Self::TaskKept { .. } => "task_kept",
            Self::TaskOpened { .. } => "task_opened",
            Self::TasksNumbered {} => "tasks_numbered",
            Self::Purged { .. } => "purged",
            Self::Reviewed { .. } => "reviewed",
            Self::CommandUndone { .. } => "command_undone",
        }
    }

    /// Tasks that the event is about, for filters.
    pub fn tasks(&self) -> Vec<&TaskId> {
        match self {
            Self::TasksCreated { tasks } => tasks.iter().map(|task| &task.id).collect(),
            Self::TasksRetired { tasks, .. } => tasks.iter().map(|task| &task.id).collect(),
            Self::TasksReset { tasks } => tasks.iter().collect(),
            Self::RunCreated { run, .. } => vec![&run.id],
            Self::RunFailed { run_id, .. } | Self::ResultsAdded { run_id } => vec![run_id],
            Self::RunsAwaited { runs, .. } => runs.iter().collect(),
            Self::PlanImported { created, changed, removed, leaving, .. } => {
                let created = created.iter().map(|task| &task.id);
                created
                    .chain(changed.iter().map(|one| &one.task))
                    .chain(removed)
                    .chain(leaving)
                    .collect()
            }
            Self::MessageSent { message } => message.task_id.iter().collect(),
            Self::FilesReserved { reservation } => reservation.task.iter().collect(),
            Self::DiscoveryAdded { task_id, .. } => task_id.iter().collect(),
            Self::WorkflowSaved(saved) => {
                let of_checkpoint =
                    saved.checkpoint.as_ref().and_then(|(_, one)| one.task.as_ref());
                of_checkpoint.or(saved.kept.as_ref().map(|(task, _)| task)).into_iter().collect()
            }
            Self::StateEdited { tasks, .. } => tasks.iter().map(|edited| &edited.task).collect(),
            Self::CommandUndone { tasks, reviews, .. } => {
                tasks.iter().map(|edited| &edited.task).chain(reviews).collect()
            }
            Self::TaskUpdated { task, .. }
            | Self::TaskKept { task, .. }
            | Self::TaskOpened { task }
            | Self::Noted { task, .. }
            | Self::Claimed { task, .. }
            | Self::Started { task }
            | Self::Completed { task, .. }
            | Self::Reviewed { task, .. }
            | Self::LateResultKept { task, .. }
            | Self::Failed { task, .. }
            | Self::Released { task, .. }
            | Self::LeaseExpired { task, .. }
            | Self::StopRequested { task, .. }
            | Self::Cancelled { task, .. }
            | Self::Retried { task }
            | Self::ArtifactAttached { task, .. } => vec![task],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::State;

    #[test]
    fn the_kinds_are_those_of_the_enum() {
        let error = serde_json::from_value::<Event>(json!({"kind": "?"}))
            .expect_err("no such kind")
            .to_string();
        let named: Vec<_> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, KINDS, "{error}");
    }

    #[test]
    fn an_event_says_the_kind_that_it_is_written_with() {
        let all = json!({
            "board_id": "b", "source": "s", "document": State::new().to_document(), "goal": "g", "tasks": [], "task": "t",
            "change": {}, "agent": "a", "role": "worker", "max_concurrent": 1, "lease_millis": 1, "grace_until":
            "2026-03-01T12:00:00.000Z", "gap_millis": 1, "attempt": 1, "lease_until": "2026-03-01T12:00:00.000Z",
            "result": {}, "counted": true, "restored_seq": 1, "gave_up": false, "discovery": "d", "content": "c", "messages": [], "reservations": [], "base_seq": 1,
            "workflow": "w", "checkpoints": [], "agents": [], "discoveries": [], "sessions": [], "artifact": {"name": "n", "bytes": 1, "sha256": "5", "at":
            "2026-03-01T12:00:00.000Z"},
            "plan": {"sha256": "5", "items": 0},
            "error": {"category": "error", "message": "m", "retryable": true},
            "run": {"id": "r", "description": "d", "priority": 5, "max_attempts": 3}, "run_id": "r", "runs": [],
            "approved": true, "first": 1, "last": 1, "until": "2026-03-01T12:00:00.000Z", "for": "permission", "stubs": {},
        });
        for kind in KINDS {
            let mut event = all.clone();
            event["kind"] = kind.into();
            event["reservation"] = json!({"id": "r", "agent": "a", "files": [], "created_at": "2026-03-01T12:00:00.000Z"});
            if kind == "message_sent" {
                event["message"] = json!({"id": "m", "from": "a", "to": "all", "kind": "inform", "text": "t",
                    "sent_at": "2026-03-01T12:00:00.000Z", "recipients": ["b"]});
            }
            event["participant"] = match kind {
                "participant_joined" => {
                    json!({"id": "p", "pid": 1, "joined_at": "2026-03-01T12:00:00.000Z"})
                }
                _ => json!("p"),
            };
            let event: Event =
                serde_json::from_value(event).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(event.kind(), kind);
        }
    }
}
