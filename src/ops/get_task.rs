use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::page::{Page, Part, Shown, bytes};
use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::hierarchy::Progress;
use crate::state::id::TaskId;
use crate::state::limit::REPLY;
use crate::state::refusal::Refusal;
use crate::state::task::{Attempt, Task, TaskStatus};

pub struct GetTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub task_id: String,
    // Attempts up to this one, which is shown whole. No doc comment, because every tool list would
    // contain it.
    pub attempt: Option<u32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// If not all attempts are shown; `next` is passed as attempt
    #[serde(flatten)]
    pub part: Option<Part<u32>>,
    pub task: Whole,
    /// True if it can be claimed now
    pub ready: bool,
    /// What its priority has risen to while it was ready, if aging_minutes is set
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Waiting>,
    /// How far its parts are, if it has any
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Minutes from claim to end, added up over its last 20 attempts
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_minutes: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Whole {
    #[serde(flatten)]
    pub task: Task,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Shown<Attempt>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Parts {
    /// Status that follows from them, in_progress once one is held or done; of work of its own, its
    /// own
    pub status: TaskStatus,
    #[serde(flatten)]
    pub progress: Progress,
}

impl Parts {
    /// None for a task without parts.
    pub(super) fn of(task: &Task, state: &State) -> Option<Self> {
        let progress = state.has_parts(&task.id).then(|| state.progress(&task.id))?;
        let is_group = state.is_parent(&task.id);
        let status = if is_group { progress.status(task.status) } else { task.status };
        Some(Self { status, progress })
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Waiting {
    pub task: TaskId,
    pub status: TaskStatus,
}

impl Operation for GetTask {
    const NAME: &'static str = "get_task";
    const DESCRIPTION: &'static str = "One task whole, with its attempts.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> = Some(&["task_id"]);
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let id = TaskId::checked(&params.task_id)?;
        let Some(task) = state.task(&id) else {
            let task = retired(&id, state, call)?;
            let actual_minutes = task.actual_minutes();
            let (part, task) = whole(task, params.attempt, call)?;
            return Ok(Reply {
                part,
                task,
                ready: false,
                effective_priority: None,
                waits_for: Vec::new(),
                parts: None,
                actual_minutes,
                retired: true,
            });
        };
        let waits_for = state
            .waits_for(task)
            .filter_map(|id| Some(Waiting { task: id.clone(), status: state.status_of(id)? }));
        let (part, whole) = whole(Task::clone(task), params.attempt, call)?;
        Ok(Reply {
            part,
            task: whole,
            ready: state.is_ready(&id),
            effective_priority: risen(task, state, call),
            waits_for: waits_for.collect(),
            parts: Parts::of(task, state),
            actual_minutes: task.actual_minutes(),
            retired: false,
        })
    }
}

/// The priority that the task has risen to while it was ready, if it has.
pub fn risen(task: &Task, state: &State, call: &Call) -> Option<u8> {
    let effective = state.effective_priority(task, call.policy.aging(), call.now);
    Some(effective).filter(|effective| *effective != task.priority)
}

/// Fewest bytes for the attempts, however long the task is.
const ATTEMPTS_AT_LEAST: usize = REPLY / 4;

/// The task and as many of its attempts as fit a reply, the newest of them.
fn whole(
    mut task: Task,
    up_to: Option<u32>,
    call: &Call,
) -> Result<(Option<Part<u32>>, Whole), Refusal> {
    let all = std::mem::take(&mut task.attempts);
    let total = all.len();
    let mut page = Page::new(call, None, usize::MAX)?.cut("get_task with attempt");
    if call.reader.is_model() {
        task.kept = task.kept.take().map(shown_to_model);
        page = page.within(REPLY.saturating_sub(bytes(&task)).max(ATTEMPTS_AT_LEAST));
    }
    let mut back =
        all.into_iter().rev().filter(|attempt| up_to.is_none_or(|number| attempt.number <= number));
    if up_to.is_some() {
        back.next().into_iter().for_each(|asked| page.add_whole(asked));
    }
    let next = back.find_map(|attempt| {
        let number = attempt.number;
        (!page.add(attempt)).then_some(number)
    });
    let part = page.part(Some(total), page.len() < total, next);
    let mut attempts = page.into_entries();
    attempts.reverse();
    Ok((part, Whole { task, attempts }))
}

/// What an agent left with a task, or where it is if it would fill the reply.
fn shown_to_model(kept: Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    let size = bytes(&kept);
    if size <= REPLY / 2 {
        return kept;
    }
    let whole = format!("{size} bytes: `callboard call get_task` in a shell has it whole");
    Arc::new(Map::from_iter([("shortened".to_owned(), Value::from(whole))]))
}

/// A task that has left the live state, read from the event that keeps it.
pub fn retired(id: &TaskId, state: &State, call: &Call) -> Result<Task, Refusal> {
    let seq = match state.retired_task(id) {
        Some(stub) => Some(stub.seq),
        None => call.retired_at(id, state)?,
    };
    let unknown = || Refusal::UnknownTask { task: id.clone() };
    retired_by(seq.ok_or_else(unknown)?, id, call).map(|(task, _)| task)
}

/// A task as event `seq` retired it, and whether it had parts.
pub(super) fn retired_by(seq: u64, id: &TaskId, call: &Call) -> Result<(Task, bool), Refusal> {
    let events = call.history.events_after(seq - 1, 1);
    let events = events.map_err(|detail| Refusal::HistoryUnread { detail })?;
    let found = events.into_iter().find_map(|recorded| match recorded.event {
        Event::TasksRetired { tasks, parents } => {
            let task = tasks.into_iter().find(|task| task.id == *id)?;
            Some((Arc::unwrap_or_clone(task), parents.contains(id)))
        }
        _ => None,
    });
    found.ok_or_else(|| Refusal::UnknownTask { task: id.clone() })
}
