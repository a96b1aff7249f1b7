//! What waits for a person: messages to the board's owner, results to review, tasks that failed
//! for good, and tasks that wait for those.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::in_scope;
use super::guard::HUMAN;
use super::id::{AgentId, MessageId, TaskId};
use super::limit::BLOCKERS_SHOWN;
use super::message::MessageKind;
use super::task::{Task, TaskStatus};
use super::time::Timestamp;
use super::{Ordinal, State};

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

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct ForHuman {
    pub message: MessageId,
    /// What people call a question
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub from: AgentId,
    pub kind: MessageKind,
    /// Beginning of the text, for those who may read it
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Answers to choose from, for those who may read it
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub options: Vec<String>,
}

/// A task whose result waits for a reviewer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InReview {
    pub task: TaskId,
    pub title: String,
    /// Who did the work
    pub agent: AgentId,
    pub attempt: u32,
    pub since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl InReview {
    fn of(task: &Task) -> Option<Self> {
        let last = task.attempts.last()?;
        let result = task.result.as_deref();
        Some(Self {
            task: task.id.clone(),
            title: task.headline().chars().take(TEXT_SHOWN).collect(),
            agent: last.agent.clone(),
            attempt: last.number,
            since: task.in_review_since()?,
            branch: result.and_then(|result| result.branch.clone()),
            commit: result.and_then(|result| result.commit.clone()),
        })
    }
}

impl State {
    /// Tasks within `scope` that wait for a reviewer, the longest first.
    pub fn in_review(&self, scope: Option<&str>) -> Vec<InReview> {
        let tasks = self.index.in_review().filter_map(|one| self.records.tasks.get(one));
        let within = tasks.filter(|task| in_scope(task, scope));
        let mut waiting: Vec<_> = within.filter_map(|task| InReview::of(task)).collect();
        waiting.sort_by_key(|one| one.since);
        waiting.truncate(NAMED);
        waiting
    }

    /// Oldest messages that the board's owner has not read, those first that want an answer.
    pub fn questions(&self) -> Vec<ForHuman> {
        let human = AgentId::trusted(HUMAN);
        let (asked, told): (Vec<_>, Vec<_>) =
            self.unread(&human).partition(|one| one.kind == MessageKind::Request);
        let shown = asked.into_iter().chain(told).take(MESSAGES_SHOWN).map(|one| ForHuman {
            message: one.id.clone(),
            question: one.question.map(|_| one.name()),
            from: one.from.clone(),
            kind: one.kind,
            text: match one.text.char_indices().nth(TEXT_SHOWN) {
                Some((end, _)) => format!("{}…", &one.text[..end]),
                None => one.text.clone(),
            },
            task_id: one.task_id.clone(),
            options: one.options.clone(),
        });
        shown.collect()
    }

    /// Tasks within `scope` that failed, out of attempts or given up for good.
    pub fn parked(&self, scope: Option<&str>) -> Vec<Parked> {
        let ended = self.index.ended_badly().filter_map(|one| self.records.tasks.get(one));
        let failed =
            ended.filter(|task| task.status == TaskStatus::Failed && in_scope(task, scope));
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
        let is_gone =
            |id: &TaskId| self.task(id).is_none_or(|task| task.status == TaskStatus::Obsolete);
        let blocked = self.blocked_by_failure().filter(|task| in_scope(task, scope)).take(NAMED);
        let blocked = blocked.map(|task| {
            let by: Vec<TaskId> = self.failures(task).take(BLOCKERS_SHOWN).cloned().collect();
            Blocked {
                task: task.id.clone(),
                gone: by.iter().filter(|id| is_gone(id)).cloned().collect(),
                by,
            }
        });
        blocked.collect()
    }

    /// Available tasks with a dependency that failed, was cancelled or is obsolete, or with a failed
    /// part: nothing frees them by itself. They are found from those that ended badly, so that a board on which little
    /// failed is not searched.
    pub fn blocked_by_failure(&self) -> impl Iterator<Item = &Arc<Task>> {
        let live = self.index.ended_badly().filter_map(|one| self.records.tasks.get(one));
        let retired = self.retired().filter(|(_, stub)| stub.status.ended_badly());
        let archived = self.board().archived;
        let has_retired = archived.cancelled + archived.obsolete > 0;
        let retired = retired.map(|(id, _)| id).take(if has_retired { usize::MAX } else { 0 });
        let mut found: BTreeSet<Ordinal> = BTreeSet::new();
        let mut seen: HashSet<&TaskId> = HashSet::new();
        let live: Vec<&Arc<Task>> = live.collect();
        let failed = live.iter().filter(|task| task.status == TaskStatus::Failed);
        found.extend(failed.filter_map(|part| self.ordinal_of(part.parent.as_ref()?)));
        for id in live.into_iter().map(|task| &task.id).chain(retired) {
            for ordinal in self.index.dependents(id) {
                let task = self.records.tasks.get(ordinal);
                let Some(task) = task.filter(|task| task.depends_on(id)) else { continue };
                found.insert(ordinal);
                if self.has_parts(&task.id) && seen.insert(&task.id) {
                    let below = self.below(&task.id);
                    found.extend(below.into_iter().filter_map(|part| self.ordinal_of(&part.id)));
                }
            }
        }
        let found = found.into_iter().filter_map(|ordinal| self.records.tasks.get(ordinal));
        found.filter(|task| self.is_blocked(task))
    }

    /// The failed, cancelled and obsolete tasks that a task waits for.
    pub fn failures<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        self.prerequisites(task)
            .chain(self.open_parts(task))
            .filter(|id| self.status_of(id).is_some_and(TaskStatus::ended_badly))
    }
}
