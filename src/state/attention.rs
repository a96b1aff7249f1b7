//! What waits for a person: messages to the board's owner, tasks that failed for good, and tasks
//! that wait for those.

use schemars::JsonSchema;
use serde::Serialize;

use super::State;
use super::claim::in_scope;
use super::guard::HUMAN;
use super::id::{AgentId, MessageId, TaskId};
use super::message::MessageKind;
use super::task::TaskStatus;

/// Messages to the board's owner that are shown.
const MESSAGES_SHOWN: usize = 5;
/// Characters that are shown of each text.
pub const TEXT_SHOWN: usize = 200;
/// Stuck tasks that are named, and parked ones.
const NAMED: usize = 20;

#[derive(Debug, Serialize, JsonSchema)]
pub struct Blocked {
    pub task: TaskId,
    pub by: Vec<TaskId>,
    /// Tasks among `by` that no retry brings back: obsolete or retired
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<TaskId>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Parked {
    pub task: TaskId,
    pub title: String,
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Beginning of the error
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ForHuman {
    pub message: MessageId,
    pub from: AgentId,
    pub kind: MessageKind,
    /// Beginning of the text
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

impl State {
    /// Oldest messages that the board's owner has not read.
    pub fn questions(&self) -> Vec<ForHuman> {
        let human = AgentId::trusted(HUMAN);
        let unread = self.unread(&human).take(MESSAGES_SHOWN);
        let shown = unread.map(|one| ForHuman {
            message: one.id.clone(),
            from: one.from.clone(),
            kind: one.kind,
            text: match one.text.char_indices().nth(TEXT_SHOWN) {
                Some((end, _)) => format!("{}…", &one.text[..end]),
                None => one.text.clone(),
            },
            task_id: one.task_id.clone(),
        });
        shown.collect()
    }

    /// Tasks within `scope` that failed, out of attempts or given up for good.
    pub fn parked(&self, scope: Option<&str>) -> Vec<Parked> {
        if self.count(TaskStatus::Failed) == 0 {
            return Vec::new();
        }
        let failed = self.tasks().filter(|task| {
            task.run.is_none() && task.status == TaskStatus::Failed && in_scope(task, scope)
        });
        let begun = |text: &str| text.chars().take(TEXT_SHOWN).collect::<String>();
        let parked = failed.take(NAMED).map(|task| {
            let last = task.attempts.last().and_then(|attempt| attempt.error.as_ref());
            let of_result = || task.result.as_ref()?.error.as_deref().map(begun);
            Parked {
                task: task.id.clone(),
                title: begun(task.headline()),
                attempts: task.attempt,
                category: last.map(|error| error.category.clone()),
                error: last.map(|error| begun(&error.message)).or_else(of_result),
            }
        });
        parked.collect()
    }

    /// Tasks within `scope` that depend on a task that failed, was cancelled or is obsolete.
    pub fn stuck(&self, scope: Option<&str>) -> Vec<Blocked> {
        let is_meant = |id: &TaskId| {
            scope.is_none() || self.task(id).is_some_and(|task| in_scope(task, scope))
        };
        let blocked = self.blocked_by_failure().into_iter().filter(|(id, _)| is_meant(id));
        let is_gone =
            |id: &TaskId| self.task(id).is_none_or(|task| task.status == TaskStatus::Obsolete);
        let blocked = blocked.take(NAMED).map(|(task, by)| {
            let by: Vec<TaskId> = by.into_iter().cloned().collect();
            Blocked {
                task: task.clone(),
                gone: by.iter().filter(|id| is_gone(id)).cloned().collect(),
                by,
            }
        });
        blocked.collect()
    }
}
