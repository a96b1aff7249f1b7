//! Boards of other coordinators of agents, which keep tasks with nearly the same fields:
//! `option_a`, `option_b`, `option_c` have what is special to each. A field that one of them does
//! not have stands beside its own ones, where its programs take no notice of it, so nothing is lost
//! on the way from one to another.

mod read;
mod tree;
mod whole;
mod write;

pub(super) use read::{Reading, time};
pub(super) use tree::{Flat, grown};
pub(super) use whole::{Beside, agents, discoveries, written_agents, written_discoveries};
pub(super) use write::{Flavour, Writing, add_beside, plain_word, told, whole};

use crate::state::task::TaskStatus;

/// Field of an item's metadata that says that it is a group of tasks and no task itself.
pub(super) const GROUP: &str = "group";

/// Begins the names of fields that a task's context has.
const OF_CONTEXT: &str = "context.";

/// Fields of a task that are read by their names.
const OWN: [&str; 26] = [
    "id",
    "title",
    "description",
    "tags",
    "estimated_duration",
    "actual_duration",
    "blocks",
    "context",
    "max_attempts",
    "max_retries",
    "retry_count",
    "attempts",
    "timeout_seconds",
    "timeout_minutes",
    "required_capabilities",
    "claimed_by",
    "result",
    "created_at",
    "claimed_at",
    "started_at",
    "completed_at",
    "next_retry_at",
    "context.files",
    "context.hints",
    "context.tags",
    "context.metadata",
];

pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Review => TaskStatus::InProgress.as_str(),
        other => other.as_str(),
    }
}
