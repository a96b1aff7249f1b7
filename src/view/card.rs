//! Cards: what lists say of one task.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sorted::{Numbered, Sorted};
use super::{Look, Rows, Standing};
use crate::state::State;
use crate::state::attention::TEXT_SHOWN;
use crate::state::claim::in_scope;
use crate::state::id::{AgentId, TaskId};
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

/// A task as others name it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Named {
    /// Place in the order of creation, said as #12; none once the task has retired
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// None if there is no such task
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// How it stands; only pages that look the task up have this
    #[serde(skip)]
    pub standing: Option<Standing>,
}

/// A task in a list.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Card {
    /// Place in the order of creation, said as #12
    pub number: u64,
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    pub priority: u8,
    /// The agent that it is kept for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Failure {
    #[serde(flatten)]
    pub card: Card,
    #[serde(flatten)]
    pub last: Last,
    /// Number of blocked tasks that wait for it
    pub blocks: usize,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Retry {
    #[serde(flatten)]
    pub card: Card,
    #[serde(flatten)]
    pub last: Last,
    /// Time from which it can be claimed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How the last attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Last {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Beginning of the error
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Done {
    #[serde(flatten)]
    pub card: Card,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Beginning of the output
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Named {
    pub(super) fn of(number: Option<u64>, task: &Task) -> Self {
        Self {
            number,
            id: task.id.clone(),
            title: begun(task.headline()),
            status: Some(task.status),
            standing: None,
        }
    }

    /// The task of this id, whether it is live, retired or not there.
    pub fn find(state: &State, id: &TaskId) -> Self {
        match state.task(id) {
            Some(task) => Self {
                standing: Some(Standing::of(state, task)),
                ..Self::of(state.number_of(id), task)
            },
            None => Self::gone(id, state.status_of(id)),
        }
    }

    pub(super) fn gone(id: &TaskId, status: Option<TaskStatus>) -> Self {
        Self { number: None, id: id.clone(), title: String::new(), status, standing: None }
    }

    /// What a person calls it: `#12`, or its id once it has no number.
    pub fn name(&self) -> String {
        self.number.map_or_else(|| self.id.to_string(), |number| format!("#{number}"))
    }

    /// The name as a person types it: `12`, or its id.
    pub fn short(&self) -> String {
        self.number.map_or_else(|| self.id.to_string(), |number| number.to_string())
    }
}

impl Card {
    pub(super) fn of(one: &Numbered<'_>) -> Self {
        Self {
            number: one.number,
            id: one.task.id.clone(),
            path: one.task.path.clone(),
            title: begun(one.task.headline()),
            priority: one.task.priority,
            kept_for: one.task.kept_for.as_ref().map(|kept| kept.agent.clone()),
            tags: one.task.tags.clone(),
        }
    }
}

impl Last {
    pub(super) fn of(task: &Task) -> Self {
        let attempt = task.attempts.last();
        let error = attempt.and_then(|attempt| attempt.error.as_ref());
        let of_result = || task.result.as_ref()?.error.as_deref().map(begun);
        Self {
            at: task.completed_at.or_else(|| attempt?.ended_at),
            agent: attempt.map(|attempt| attempt.agent.clone()),
            attempts: task.attempt,
            category: error.map(|error| error.category.clone()),
            error: error.map(|error| begun(&error.message)).or_else(of_result),
        }
    }
}

/// The first line of a text, or as much of it as is shown.
pub(super) fn begun(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect()
}

/// Ready tasks in claim order.
pub(super) fn next(state: &State, look: &Look<'_>, sorted: &Sorted<'_>) -> Rows<Card> {
    let ready = state.ready_in_order().into_iter().filter(|task| in_scope(task, look.scope));
    let ready = ready.filter_map(|task| Some(Numbered { number: sorted.number(&task.id)?, task }));
    Rows::made(&ready.collect::<Vec<_>>(), look, Card::of)
}

pub(super) fn failed(
    sorted: &Sorted<'_>,
    blocks: &HashMap<&TaskId, usize>,
    look: &Look<'_>,
) -> Rows<Failure> {
    Rows::made(&sorted.failed, look, |one| Failure {
        card: Card::of(one),
        last: Last::of(one.task),
        blocks: blocks.get(&one.task.id).copied().unwrap_or_default(),
    })
}

pub(super) fn retries(sorted: &Sorted<'_>, look: &Look<'_>) -> Rows<Retry> {
    Rows::made(&sorted.delayed, look, |one| Retry {
        card: Card::of(one),
        last: Last::of(one.task),
        until: one.task.not_before,
    })
}

pub(super) fn done(sorted: &Sorted<'_>, look: &Look<'_>) -> Rows<Done> {
    Rows::made(&sorted.done, look, |one| {
        let result = one.task.result.as_ref();
        Done {
            card: Card::of(one),
            at: one.task.completed_at,
            agent: one.task.claimed_by.clone(),
            output: result.and_then(|result| result.output.as_deref()).map(begun),
            branch: result.and_then(|result| result.branch.clone()),
        }
    })
}
