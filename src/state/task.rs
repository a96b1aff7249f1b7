//! A task and its attempts, in the shape in which replies and the state file show them.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::Demands;
use super::artifact::Artifact;
use super::id::{AgentId, ParticipantId, TaskId};
use super::record::Record;
use super::review::{Review, Reviewed};
use super::run::Run;
use super::time::Timestamp;

pub const DEFAULT_PRIORITY: u8 = 5;
pub const DEFAULT_MAX_ATTEMPTS: u32 = 3;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Available,
    Claimed,
    InProgress,
    Review,
    Done,
    Failed,
    Cancelled,
    Obsolete,
}

impl TaskStatus {
    pub const ALL: [Self; 8] = [
        Self::Available,
        Self::Claimed,
        Self::InProgress,
        Self::Review,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Obsolete,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Claimed => "claimed",
            Self::InProgress => "in_progress",
            Self::Review => "review",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Obsolete => "obsolete",
        }
    }

    /// True if an agent holds the task.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Claimed | Self::InProgress)
    }

    /// True if an agent holds the task, or a reviewer has its result: a plan leaves it to them.
    pub fn is_in_work(self) -> bool {
        self.is_held() || self == Self::Review
    }

    /// True if work may still happen on the task without a leader's doing.
    pub fn is_unfinished(self) -> bool {
        self == Self::Available || self.is_in_work()
    }

    /// True if a client that asks for tasks with the status `wanted` means these, too: one that
    /// knows nothing of reviews looks for tasks in review among those in progress.
    pub fn counts_as(self, wanted: Self) -> bool {
        self == wanted || self == Self::Review && wanted == Self::InProgress
    }

    /// True if tasks that depend on the task wait in vain.
    pub fn ended_badly(self) -> bool {
        matches!(self, Self::Failed | Self::Cancelled | Self::Obsolete)
    }

    /// True if the task may retire from the live state. Failed tasks stay: they need somebody's
    /// attention.
    pub fn may_retire(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Obsolete)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: TaskId,
    /// What people call it: its place in the order of creation, from 1
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    // Shared, because every change of a task makes a new one.
    pub description: Arc<str>,
    pub status: TaskStatus,
    pub priority: u8,
    #[serde(default)]
    pub claimed_by: Option<AgentId>,
    #[serde(default)]
    pub dependencies: Vec<TaskId>,
    #[serde(default)]
    pub context: Option<Arc<Context>>,
    #[serde(default)]
    pub result: Option<Arc<TaskResult>>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub claimed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Task that this one is a part of; that one is done, or ready, when all its parts are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Set while the task is in the current plan
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Arc<Planned>>,
    /// Set if the task was in an earlier plan, so that it is recognised if it comes back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_plan: Option<Arc<Planned>>,
    /// Set if the task is a run, which is not part of the queue
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<Run>>,
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Arc<Demands>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Time limit of each attempt, in seconds from its claim, whatever the agent says
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Replaces the policy's silent_minutes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_minutes: Option<u32>,
    /// What its planner expects all work on it to take
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    /// Whether its result waits for a reviewer, and for which; else what it is a part of, its plan
    /// or the board says so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_requested: Option<StopRequest>,
    /// Number of the current or last attempt: the fence of the lease
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    #[serde(default = "default_max_attempts")]
    pub max_attempts: u32,
    /// Attempts that do not count against max_attempts: ended by a clock step, released, or before
    /// a retry
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// When the task was last reset: what was saved before is not handed on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Timestamp>,
    /// Files that work on the task has left
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The agent that the task is kept for, until it is claimed or the time is over
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<Box<KeptFor>>,
    /// Data that an agent left for whoever works on the task next; gone when the task is done or
    /// reset
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Arc<Map<String, Value>>>,
}

impl Record for Task {
    const FIELD: &'static str = "tasks";
    type Id = TaskId;
    type All = Vec<Arc<Self>>;

    fn id(&self) -> Option<&TaskId> {
        Some(&self.id)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn default_max_attempts() -> u32 {
    DEFAULT_MAX_ATTEMPTS
}

impl Task {
    /// The attempt that holds the lease, while the task is held.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.outcome.is_none())
    }

    pub fn open_attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut().filter(|attempt| attempt.outcome.is_none())
    }

    /// True if any attempt was started, whatever came of it.
    pub fn has_begun(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.started_at.is_some())
    }

    /// True if the task was reset after `attempt` ended.
    pub fn was_reset_since(&self, attempt: &Attempt) -> bool {
        self.reset_at.is_some_and(|at| attempt.ended_at.is_none_or(|ended| ended <= at))
    }

    /// Attempts that count against `max_attempts`.
    pub fn attempts_used(&self) -> u32 {
        self.attempt.saturating_sub(self.uncounted)
    }

    /// The task for lists: without attempts and the data that agents left.
    pub fn brief(&self) -> Self {
        Self { attempts: Vec::new(), kept: None, ..self.clone() }
    }

    /// The task whose attempt this one waits for, because the plan has other words for it.
    pub fn after(&self) -> Option<&TaskId> {
        self.planned.as_ref()?.after()
    }

    /// Of a task that waits for `id`: whether it depends on it, and does not only take its place.
    pub fn depends_on(&self, id: &TaskId) -> bool {
        self.after() != Some(id) || self.dependencies.contains(id)
    }

    /// Name of the plan that has or had the task; `-` stands for the plan without one.
    pub fn plan_name(&self) -> Option<&str> {
        let planned = self.planned.as_ref().or(self.left_plan.as_ref())?;
        Some(planned.plan.as_deref().unwrap_or(UNNAMED))
    }

    /// True if it is to be done itself, once its parts are.
    pub fn is_own_work(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.own)
    }

    /// What the task itself waits for, done or not.
    pub fn waits(&self) -> (&[TaskId], Option<&TaskId>) {
        (&self.dependencies, self.after())
    }

    /// True if the plan has left the task to the agent that held it.
    pub fn leaves_plan(&self) -> bool {
        let pending = self.left_plan.as_ref().and_then(|left| left.pending.as_ref());
        pending.is_some_and(|pending| pending.leaves)
    }

    /// What a person would call the task: its title, or the first line of its description.
    pub fn headline(&self) -> &str {
        let text = self.title.as_deref().unwrap_or(&self.description);
        text.lines().next().unwrap_or_default()
    }

    /// True unless the task is kept for another agent.
    pub fn is_open_to(&self, agent: &AgentId) -> bool {
        self.kept_for.as_ref().is_none_or(|kept| kept.agent == *agent)
    }

    /// True if the agent failed or released the task before.
    pub fn was_given_up_by(&self, agent: &AgentId) -> bool {
        let is_given_up = |outcome| matches!(outcome, Some(Outcome::Failed | Outcome::Released));
        self.attempts.iter().any(|attempt| is_given_up(attempt.outcome) && attempt.agent == *agent)
    }
}

/// A task as it is listed by the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Empty if it has retired
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
}

impl Named {
    /// A task of which nothing else is known.
    pub fn unknown(id: &str) -> Self {
        Self { id: TaskId::trusted(id), number: None, title: String::new(), status: None }
    }

    /// The shortest name that is typed for it: its number, else its id.
    pub fn short(&self) -> String {
        self.number.map_or_else(|| self.id.to_string(), |number| number.to_string())
    }
}

impl From<&Task> for Named {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            number: task.number,
            title: task.headline().to_owned(),
            status: Some(task.status),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "#{number}")?,
            None => f.write_str(self.id.as_str())?,
        }
        if self.title.is_empty() { Ok(()) } else { write!(f, " {}", self.title) }
    }
}

/// The candidates, one a line.
pub(super) fn listed(candidates: &[Named], more: usize) -> String {
    let lines = candidates.iter().map(|one| match one.number {
        Some(number) => format!("\n  #{number} {} {}", one.id, one.title),
        None => format!("\n  {} {}", one.id, one.title),
    });
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    lines.chain(more).collect()
}

/// Only this agent is given the task before `until`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFor {
    pub agent: AgentId,
    pub until: Timestamp,
}

/// Where a task was before it came here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the format, as `callboard import` has it
    pub format: String,
    /// Its id there
    pub id: String,
    /// Path of its file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.format, self.id)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " in {path}"))
    }
}
/// Stands for the name of the plan that came without a file.
pub const UNNAMED: &str = "-";

/// What the plan last said about a task, each as the first 16 hex digits of its SHA-256, so that a
/// change made on the board since does not count as a change of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// Hash of the title's words; of the title itself on older boards
    pub title: String,
    /// Hash of what is to be done
    pub content: String,
    /// Hash of priority, dependencies and tags
    pub settings: String,
    /// True if the plan said that the task is done while an agent held it, which decides for
    /// itself
    #[serde(default, skip_serializing_if = "is_false")]
    pub ticked: bool,
    /// True if the plan said that the task is done: said again, it does not undo a reset
    #[serde(default, skip_serializing_if = "is_false")]
    pub done: bool,
    /// True if the plan called the task off: said again, it does not undo a retry
    #[serde(default, skip_serializing_if = "is_false")]
    pub off: bool,
    /// True if the plan gives the task parts and a mark or status of its own: they make it ready,
    /// and never done
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Name of the plan; none for the one that came without a file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Where the item is claimed, if not in the order of creation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<Beside>>,
    /// What waits for the end of an attempt that was open when the plan changed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Box<Pending>>,
}

impl Planned {
    /// The task whose attempt this one waits for, because the plan has other words for it.
    pub fn after(&self) -> Option<&TaskId> {
        self.pending.as_ref()?.after.as_ref()
    }
}

/// A place in the order of claims: steps after an item of the plan, or before it if negative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    pub task: TaskId,
    pub step: i32,
}

/// What a plan changes once an attempt has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    /// The new description, for the end of the task's own attempt
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The new context, for the end of the task's own attempt
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The task is obsolete if its attempt ends without success, because the plan no longer has it
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaves: bool,
    /// Task with the words that the plan had before; this one waits while it is held
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TaskId>,
}

impl Pending {
    pub fn has_text(&self) -> bool {
        self.description.is_some() || self.context.is_some()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    /// Field of older state files; kept, not interpreted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Context {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_created: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Timestamp,
    /// True if the task is cancelled once its agent has stopped
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancel: bool,
}

/// One agent's try at a task, opened by a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub number: u32,
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<ParticipantId>,
    #[serde(flatten)]
    pub place: Place,
    pub claimed_at: Timestamp,
    /// When the lease of an open attempt ends, unless the agent calls
    pub lease_until: Timestamp,
    /// True if a clock step moved lease_until and no call has renewed it since: its expiry does
    /// not count
    #[serde(default, skip_serializing_if = "is_false")]
    pub stepped: bool,
    /// Milliseconds that the clock has stepped since the claim; they do not count towards
    /// timeout_seconds
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub stepped_millis: i64,
    /// True if the agent has acted on the task since the claim, so that it knows of the claim
    #[serde(default, skip_serializing_if = "is_false")]
    pub acted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Box<Reviewed>>,
    /// Result that was not taken: it came after the attempt was over, or was rejected
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_result: Option<Arc<TaskResult>>,
}

fn is_no_time(millis: &i64) -> bool {
    *millis == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Where an attempt is worked on, as the agent's process read it from git.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

impl Place {
    /// Makes a path in this worktree relative to its root, so that one file in five worktrees has
    /// one path.
    pub fn relative<'p>(&self, path: &'p str) -> &'p str {
        let inside =
            self.worktree.as_deref().and_then(|root| path.strip_prefix(root)?.strip_prefix('/'));
        inside.unwrap_or(path)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed,
    Expired,
    Released,
    Cancelled,
    /// A reviewer sent the result back
    Rejected,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptError {
    pub category: String,
    pub message: String,
}
