//! What happened. An event is journal line, feed item, audit entry and replay unit at once: `State::apply` reads nothing
//! but the state and the event, so everything that follows from policy, clock or chance stands in it.
//!
//! A change of an event's meaning is a new version; old ones load for ever.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::{Demands, Participant, Properties, Role};
use super::artifact::Artifact;
use super::document::{Document, PlanVersion};
use super::id::{
    AgentId, CheckpointId, DiscoveryId, MessageId, ParticipantId, ReservationId, SessionId, TaskId, WorkflowId,
};
use super::message::Message;
use super::reservation::Reservation;
use super::run::Run;
use super::session::Session;
use super::snapshot::SnapshotName;
use super::task::{AttemptError, Context, Place, Planned, Task, TaskResult, TaskStatus};
use super::time::Timestamp;
use super::workflow::{Budget, Checkpoint, Spent};

/// The version of the events that this build writes.
pub const VERSION: u32 = 1;

/// The kinds of events, in the order in which they are defined.
pub const KINDS: [&str; 45] = [
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
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    BoardCreated {
        board_id: String,
    },
    /// A state without a journal became the beginning of one. It follows the document's own `seq`, if that has one.
    Imported {
        source: String,
        document: Box<Document>,
    },
    PlanSet {
        goal: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        master_plan: Option<String>,
    },
    /// In an order in which every dependency exists before its dependent or stands in the same event.
    TasksCreated {
        tasks: Vec<NewTask>,
    },
    TaskUpdated {
        task: TaskId,
        change: Box<TaskChange>,
        /// When the lease of the open attempt ends with that, if it ends otherwise than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// Anew, or again: counters and claims stay.
    AgentRegistered {
        agent: AgentId,
        role: Role,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        capabilities: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        tags: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "Properties::is_empty")]
        properties: Properties,
        max_concurrent: u32,
        /// Presence in other processes ends: this one has taken the id over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takeover: bool,
    },
    /// An agent was heard of: its leases now last `lease_millis` from here.
    AgentSeen {
        agent: AgentId,
        /// The living process it acted through, when there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<ParticipantId>,
        lease_millis: i64,
        /// Its claim, which that process was told of once more, and which is that process's from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<TaskId>,
    },
    /// What an agent says of a task it holds, for whoever takes the task next.
    Noted {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    ParticipantJoined {
        participant: Participant,
    },
    /// Its presence lock was found free. Agents that were present through it alone have until `grace_until`.
    ParticipantGone {
        participant: ParticipantId,
        grace_until: Timestamp,
    },
    /// Wall time ran ahead of the time that agents could act in: every open deadline moves by `gap_millis`.
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
    /// Also late, by the agent of the last, expired attempt.
    Completed {
        task: TaskId,
        attempt: u32,
        result: Arc<TaskResult>,
    },
    /// A result of an attempt that is over.
    LateResultKept {
        task: TaskId,
        attempt: u32,
        result: Arc<TaskResult>,
    },
    Failed {
        task: TaskId,
        error: AttemptError,
        /// The task becomes available again, then; else it stays failed.
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
        /// Against `max_attempts`.
        counted: bool,
        /// The task has used up its attempts and is failed.
        gave_up: bool,
    },
    StopRequested {
        task: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// It is not to be done by another either.
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
        /// Their place it takes; they stay.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        supersedes: Vec<DiscoveryId>,
    },
    /// Unread by all its recipients from here on; the message that it answers, if there is one, is read by its sender.
    MessageSent {
        message: Box<Message>,
    },
    MessagesRead {
        agent: AgentId,
        messages: Vec<MessageId>,
    },
    /// They have made room: read by all, or unread only by agents that are lost.
    MessagesRetired {
        messages: Vec<MessageId>,
    },
    /// Anew, or renewed under the same id. The files of a task need none: they are held with its lease.
    FilesReserved {
        reservation: Box<Reservation>,
    },
    FilesReleased {
        reservations: Vec<ReservationId>,
        /// Their time was over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    Paused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Resumed {},
    /// Finished tasks leave the live state; this event keeps them whole.
    TasksRetired {
        tasks: Vec<Arc<Task>>,
    },
    /// The plan is this one from here on. What it says as before is not in the event.
    PlanImported {
        plan: PlanVersion,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        created: Vec<NewTask>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Replanned>,
        /// Not in the plan any more: obsolete, unless they are done.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<TaskId>,
        /// Those are known when they come back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known_again: bool,
    },
    /// Available again, also what was done, as if nobody had begun.
    TasksReset {
        tasks: Vec<TaskId>,
    },
    /// A person changed the state file by hand, and the board took the changes over.
    StateEdited {
        /// The last event in the file that was edited.
        base_seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        master_plan: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<EditedTask>,
    },
    /// An earlier state has taken the place of the present one: all of `document`, in which the leases of then are ended
    /// and attempt numbers, participants and agents are already those that hold from here on.
    StateRestored {
        /// The event that the earlier state ended with.
        restored_seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<SnapshotName>,
        document: Box<Document>,
    },
    /// With the session that it begins, if it does. It is told all results that its session has kept.
    RunCreated {
        run: Box<NewTask>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Box<Session>>,
    },
    /// Nobody's doing but time's: no runner came, or its attempt took too long.
    RunFailed {
        run_id: TaskId,
        error: AttemptError,
    },
    /// A runner that fits is there and busy: they wait for it until then.
    RunsAwaited {
        runs: Vec<TaskId>,
        until: Timestamp,
    },
    /// A pending run that child results had called for is told those that its session has kept since.
    ResultsAdded {
        run_id: TaskId,
    },
    /// The agent claims runs: for the first time, or by another rule than before.
    RunnerSeen {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        require_matching_tags: bool,
    },
    /// An execution has come further, spent something, or may spend more.
    WorkflowSaved(Box<Saved>),
    /// They were too old, or somebody wanted them gone.
    CheckpointsDropped {
        checkpoints: Vec<CheckpointId>,
        /// It goes, too, with the record of what it has spent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<WorkflowId>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    /// In place of one of the same name; its file is written already.
    ArtifactAttached {
        task: TaskId,
        artifact: Box<Artifact>,
    },
    /// They have made room: away for long, and nothing was theirs but mail, which counts as read.
    AgentsRetired {
        agents: Vec<AgentId>,
    },
    /// They have made room: others had taken their place.
    DiscoveriesRetired {
        discoveries: Vec<DiscoveryId>,
    },
    /// They have made room: all their runs had retired, and nothing waited for them.
    SessionsRetired {
        sessions: Vec<SessionId>,
    },
}

/// What is new of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub workflow: WorkflowId,
    /// It works for this workflow from here on, and for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The bounds that are new.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Since it was saved last.
    #[serde(default)]
    pub spent: Spent,
    /// In place of whatever stood there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<(CheckpointId, Checkpoint)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<CheckpointId>,
    /// Left with the task that the agent holds, for whoever works on it next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<(TaskId, Arc<Map<String, Value>>)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// When it is over already, as a plan says; else available.
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
    pub run: Option<Box<Run>>,
}

/// New values of the fields that change; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}

/// A task of which the plan says something new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replanned {
    pub task: TaskId,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    pub planned: Planned,
    /// An empty context takes the old one away.
    #[serde(flatten)]
    pub change: TaskChange,
    /// Available once more, or done; else it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<TaskStatus>,
    /// If it becomes available, no result of an attempt before counts; and a request to cancel it stays. Older events did
    /// neither.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    pub what: PlanChange,
    /// Its title or path before, when that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

/// What a new version of the plan means for a task that was in the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanChange {
    Modified,
    /// It was over, and is to be done again.
    Reopened,
    /// Another title or path, and nothing else of what is to be done.
    Renamed,
    /// The plan says that it is done.
    Completed,
    /// Other things moved, and it with them; or it has come back as it was.
    Moved,
}

/// A task that was edited by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditedTask {
    pub task: TaskId,
    /// An empty context takes the old one away.
    #[serde(flatten)]
    pub change: TaskChange,
    /// The title was taken away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untitled: bool,
}

/// An event with its place in history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub seq: u64,
    pub at: Timestamp,
    /// The process that wrote it; `participant` is a field of some events.
    #[serde(rename = "writer")]
    pub participant: ParticipantId,
    /// Who acted: an agent, `human`, `~` and the name of a token whose bearer named no agent, or nobody when time did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    #[serde(flatten)]
    pub event: Event,
}

/// A caller's name for one creating call, so that a repeated call creates nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// `<actor>/<operation>/<key>`.
    pub key: String,
    /// Of the parameters: the same key with others is refused.
    pub params: String,
}

impl Event {
    /// The value of the `kind` column.
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
        }
    }

    /// The tasks that it is about, for filters.
    pub fn tasks(&self) -> Vec<&TaskId> {
        match self {
            Self::TasksCreated { tasks } => tasks.iter().map(|task| &task.id).collect(),
            Self::TasksRetired { tasks } => tasks.iter().map(|task| &task.id).collect(),
            Self::TasksReset { tasks } => tasks.iter().collect(),
            Self::RunCreated { run, .. } => vec![&run.id],
            Self::RunFailed { run_id, .. } | Self::ResultsAdded { run_id } => vec![run_id],
            Self::RunsAwaited { runs, .. } => runs.iter().collect(),
            Self::PlanImported { created, changed, removed, .. } => {
                let created = created.iter().map(|task| &task.id);
                created.chain(changed.iter().map(|one| &one.task)).chain(removed).collect()
            }
            Self::MessageSent { message } => message.task_id.iter().collect(),
            Self::FilesReserved { reservation } => reservation.task.iter().collect(),
            Self::DiscoveryAdded { task_id, .. } => task_id.iter().collect(),
            Self::WorkflowSaved(saved) => {
                let of_checkpoint = saved.checkpoint.as_ref().and_then(|(_, one)| one.task.as_ref());
                of_checkpoint.or(saved.kept.as_ref().map(|(task, _)| task)).into_iter().collect()
            }
            Self::StateEdited { tasks, .. } => tasks.iter().map(|edited| &edited.task).collect(),
            Self::TaskUpdated { task, .. }
            | Self::Noted { task, .. }
            | Self::Claimed { task, .. }
            | Self::Started { task }
            | Self::Completed { task, .. }
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
        let error = serde_json::from_value::<Event>(json!({"kind": "?"})).expect_err("no such kind").to_string();
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
            "until": "2026-03-01T12:00:00.000Z",
        });
        for kind in KINDS {
            let mut event = all.clone();
            event["kind"] = kind.into();
            event["reservation"] =
                json!({"id": "r", "agent": "a", "files": [], "created_at": "2026-03-01T12:00:00.000Z"});
            if kind == "message_sent" {
                event["message"] = json!({"id": "m", "from": "a", "to": "all", "kind": "inform", "text": "t",
                    "sent_at": "2026-03-01T12:00:00.000Z", "recipients": ["b"]});
            }
            event["participant"] = match kind {
                "participant_joined" => json!({"id": "p", "pid": 1, "joined_at": "2026-03-01T12:00:00.000Z"}),
                _ => json!("p"),
            };
            let event: Event = serde_json::from_value(event).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(event.kind(), kind);
        }
    }
}
