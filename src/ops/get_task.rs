use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};

pub struct GetTask;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    task_id: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    task: Task,
    /// True if it can be claimed now
    ready: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<Waiting>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retired: bool,
}

#[derive(Serialize, JsonSchema)]
struct Waiting {
    task: TaskId,
    status: TaskStatus,
}

impl Operation for GetTask {
    const NAME: &'static str = "get_task";
    const DESCRIPTION: &'static str = "Read one task whole: context, attempts, notes, result.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Worker;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let id = TaskId::checked(&params.task_id)?;
        let Some(task) = state.task(&id) else {
            let task = retired(&id, state, call)?;
            return Ok(Reply { task, ready: false, waits_for: Vec::new(), retired: true });
        };
        let waits_for =
            state.waits_for(task).filter_map(|id| Some(Waiting { task: id.clone(), status: state.status_of(id)? }));
        Ok(Reply {
            task: Task::clone(task),
            ready: state.is_ready(&id),
            waits_for: waits_for.collect(),
            retired: false,
        })
    }
}

/// A task that has left the live state, read from the event that keeps it.
pub fn retired(id: &TaskId, state: &State, call: &Call) -> Result<Task, Refusal> {
    let unknown = || Refusal::UnknownTask { task: id.clone() };
    let stub = state.retired_task(id).ok_or_else(unknown)?;
    let events = call.history.events_after(stub.seq - 1, 1).map_err(|detail| Refusal::HistoryUnread { detail })?;
    let tasks = events.into_iter().flat_map(|recorded| match recorded.event {
        Event::TasksRetired { tasks } => tasks,
        _ => Vec::new(),
    });
    let task = tasks.into_iter().find(|task| task.id == *id).ok_or_else(unknown)?;
    Ok(Arc::unwrap_or_clone(task))
}
