//! The whole state as one document: what `mcp-state.json` holds, and what an import carries.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::digest::sha256;
use super::id::{AgentId, TaskId};
use super::kinds::kinds;
use super::record::Record;
use super::review::Review;
use super::task::{Task, TaskStatus, UNNAMED};
use super::time::Timestamp;

/// Highest level of state file that this build reads.
pub const SCHEMA_VERSION: u32 = super::event::VERSION;

macro_rules! document {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Document {
            #[serde(flatten)]
            pub board: Board,
            $($(#[$meta])* pub $field: <super::$module::$kind as Record>::All,)*
        }

        impl Document {
            /// A document without records.
            pub fn empty(board: Board) -> Self {
                Self { board, $($field: Default::default(),)* }
            }
        }
    };
}
kinds!(document);

/// What is said once for the whole board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// Level of the newest kind of event so far
    pub schema_version: u32,
    pub board_id: String,
    /// Last event in the state
    pub seq: u64,
    #[serde(default)]
    pub goal: Arc<str>,
    #[serde(default)]
    pub master_plan: Arc<str>,
    pub created_at: Timestamp,
    pub last_activity: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// No lease ends before this because a process died; set after a clock step
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_until: Option<Timestamp>,
    #[serde(default)]
    pub archived: Archived,
    /// Retired runs: done counts completed ones, cancelled stopped ones, obsolete failed ones
    #[serde(default, skip_serializing_if = "Archived::is_empty")]
    pub archived_runs: Archived,
    /// Retired tasks without parts of which nothing is left here; the journal has them
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_stubs: u64,
    /// Number of the last question to the board's owner
    #[serde(default, skip_serializing_if = "is_zero")]
    pub questions: u64,
    /// Number of the next task; 0 if tasks have none
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_number: u64,
    /// Last attempt number of tasks that a restore removed, so that no task of that id uses a
    /// number again
    #[serde(default, skip_serializing_if = "are_none_spent")]
    pub spent_attempts: Arc<BTreeMap<TaskId, u32>>,
    /// Event ranges that restores have undone, in order; idempotency keys of those events are free
    /// again
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<Undone>,
    /// Newest versions of all plans, oldest first
    #[serde(default = "no_plans", skip_serializing_if = "has_no_plans")]
    pub plans: Arc<[PlanVersion]>,
}

impl Board {
    /// True if goal, master plan and what belongs to them are the very same objects, not only
    /// equal.
    pub fn has_plan_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.goal, &other.goal)
            && Arc::ptr_eq(&self.master_plan, &other.master_plan)
            && Arc::ptr_eq(&self.plans, &other.plans)
            && Arc::ptr_eq(&self.spent_attempts, &other.spent_attempts)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn are_none_spent(spent: &BTreeMap<TaskId, u32>) -> bool {
    spent.is_empty()
}

fn no_plans() -> Arc<[PlanVersion]> {
    Arc::from([])
}

fn has_no_plans(plans: &Arc<[PlanVersion]>) -> bool {
    plans.is_empty()
}

/// One imported version of the plan. The state after event `seq` has its items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanVersion {
    /// Its name: the file that it came from first, or the one that was given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name that it had before this version, if that was another
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// SHA-256 of the plan's text; its first 12 hex digits name the version
    pub sha256: String,
    /// SHA-256 of the version before this one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_sha256: Option<String>,
    /// Where the plan came from, as given on import
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub items: usize,
    /// What it came with that has no field of its own
    #[serde(default, skip_serializing_if = "is_empty")]
    pub metadata: Arc<Map<String, Value>>,
    /// Headings that count do not wait for each other
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// True if entries of plain lists are items wherever they stand
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lists: bool,
    /// Lines that look like work and are in no task; 0 if somebody said that none of them is work
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// Review of its tasks that say nothing else
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// The board no longer has the plan
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub imported_at: Timestamp,
}

fn is_empty(metadata: &Map<String, Value>) -> bool {
    metadata.is_empty()
}

impl PlanVersion {
    /// True if somebody said that no line which was not read is work.
    pub fn is_all_read(&self) -> bool {
        self.unread == Some(0)
    }

    /// The version without its metadata, which may be long.
    pub fn brief(&self) -> Self {
        Self { metadata: Arc::default(), ..self.clone() }
    }

    /// The plan's name; `-` if it has none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(UNNAMED)
    }

    pub fn session(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// Events after `after` up to `until`, undone by a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// Last event that stands; 0 if none, because the restored state was another board's
    pub after: u64,
    pub until: u64,
}

impl Undone {
    pub fn contains(&self, seq: u64) -> bool {
        self.after < seq && seq <= self.until
    }
}

/// Numbers of retired tasks by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Archived {
    #[serde(default)]
    pub done: u64,
    #[serde(default)]
    pub cancelled: u64,
    #[serde(default)]
    pub obsolete: u64,
}

impl Archived {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn total(&self) -> u64 {
        self.done + self.cancelled + self.obsolete
    }
}

/// What stays of a retired task; event `seq` of the journal has the whole of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retired {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub status: TaskStatus,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// First 16 hex digits of the SHA-256 of the task's JSON
    pub content_hash: String,
    pub seq: u64,
    /// True if it was a run
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// True if it had parts until they retired with it, so that no count has it
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parent: bool,
}

impl Retired {
    /// What stays of `task`, which event `seq` retired; `parent` says whether it had parts.
    pub fn of(task: &Task, parent: bool, seq: u64) -> Self {
        let json = serde_json::to_vec(task).unwrap_or_default();
        Self {
            number: task.number,
            path: task.path.clone(),
            status: task.status,
            attempt: task.attempt,
            agent: task.claimed_by.clone(),
            content_hash: sha256(json)[..16].to_owned(),
            seq,
            run: task.run.is_some(),
            parent,
        }
    }
}

impl Record for Retired {
    const FIELD: &'static str = "retired";
    type Id = TaskId;
    type All = BTreeMap<TaskId, Self>;

    fn id(&self) -> Option<&TaskId> {
        None
    }
}
