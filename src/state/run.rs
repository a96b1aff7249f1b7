//! Runs: work of a session, for a runner that meets its demands. A run is a task that `claim_task`
//! never gives out; its lease, attempts, result and stop request are those of the task.

mod follow;
pub mod queue;
pub mod rows;
pub mod runner;
mod sessions;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::Demands;
use super::id::{AgentId, SessionId, TaskId};
use super::task::{Task, TaskStatus};
use super::time::{SECOND, Timestamp};

/// Seconds that a run waits for a fitting runner by default.
pub const NO_MATCH: u32 = 300;

/// What makes a task a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub session_id: SessionId,
    #[serde(rename = "type")]
    pub kind: RunKind,
    pub execution_mode: ExecutionMode,
    /// Name of the agent that the runner starts, as the runner knows it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    /// Agent that created the run; null if it was the board's owner or the board itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<AgentId>,
    /// Seconds that the run waits for a fitting runner
    pub no_match_seconds: u32,
    /// When the wait for a runner ends, while the run is pending
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_match_until: Option<Timestamp>,
    /// True if the board created the run to deliver results of child runs
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub callback: bool,
    /// Results of child runs since the session's run before, oldest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ChildResult>,
}

#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    #[default]
    StartSession,
    ResumeSession,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartSession => "start_session",
            Self::ResumeSession => "resume_session",
        }
    }
}

/// How the creator of a run learns of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// The creator waits in get_run.
    #[default]
    Sync,
    /// The creator polls get_run.
    AsyncPoll,
    /// The parent session is resumed with the result.
    AsyncCallback,
}

impl ExecutionMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::AsyncPoll => "async_poll",
            Self::AsyncCallback => "async_callback",
        }
    }
}

/// Status of a run. Derived from the task's status; never stored.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Pending,
    Claimed,
    Running,
    Stopping,
    Completed,
    Failed,
    Stopped,
}

/// When the time of a run is over: for its open attempt, if it is limited; while it is pending, for
/// the wait for a fitting runner.
pub fn timeout_at(task: &Task) -> Option<Timestamp> {
    match task.open_attempt() {
        Some(open) => {
            let seconds = i64::from(task.timeout_seconds?);
            Some(open.claimed_at + open.stepped_millis + seconds * SECOND)
        }
        None => {
            let run = task.run.as_deref()?;
            run.no_match_until.filter(|_| RunStatus::of(task) == RunStatus::Pending)
        }
    }
}

impl RunStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Claimed,
        Self::Running,
        Self::Stopping,
        Self::Completed,
        Self::Failed,
        Self::Stopped,
    ];

    pub fn of(task: &Task) -> Self {
        match Self::of_status(task.status) {
            Self::Claimed | Self::Running if task.stop_requested.is_some() => Self::Stopping,
            status => status,
        }
    }

    /// The run's status as far as the task's status tells it.
    pub fn of_status(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Available => Self::Pending,
            TaskStatus::Claimed => Self::Claimed,
            // No run is reviewed.
            TaskStatus::InProgress | TaskStatus::Review => Self::Running,
            TaskStatus::Done => Self::Completed,
            TaskStatus::Failed => Self::Failed,
            TaskStatus::Cancelled | TaskStatus::Obsolete => Self::Stopped,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Result of a run, for the session that asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildResult {
    pub run_id: TaskId,
    pub session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    pub status: RunStatus,
    /// Output, cut if it is long: get_run has the whole
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// True if something was left out: get_run has the whole
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
    pub ended_at: Timestamp,
}

/// What an agent that claims runs takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    /// Take only runs that demand one of the agent's tags
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_matching_tags: bool,
}

impl Runner {
    pub fn takes(self, demands: &Demands) -> bool {
        !self.require_matching_tags || !demands.tags.is_empty()
    }
}
