use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::retired;
use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskResult, TaskStatus};
use crate::state::time::Timestamp;

pub struct GetResults;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// All if omitted
    task_ids: Option<Vec<String>>,
    /// Default 100
    limit: Option<NonZeroU32>,
    /// `next` of the prior page
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    results: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TaskId>,
}

#[derive(Serialize, JsonSchema)]
struct Item {
    task_id: TaskId,
    description: String,
    status: TaskStatus,
    /// Null until the task has ended
    result: Option<TaskResult>,
    completed_at: Option<Timestamp>,
}

impl From<&Task> for Item {
    fn from(task: &Task) -> Self {
        Self {
            task_id: task.id.clone(),
            description: task.description.to_string(),
            status: task.status,
            result: task.result.as_deref().cloned(),
            completed_at: task.completed_at,
        }
    }
}

impl Operation for GetResults {
    const NAME: &'static str = "get_results";
    const DESCRIPTION: &'static str = "Read the results of finished tasks: the named ones, or a page of all.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        if let Some(ids) = &params.task_ids {
            limit::PAGE.check(ids.len())?;
            let results = ids.iter().map(|id| named(&TaskId::checked(id)?, state, call));
            return Ok(Reply { results: results.collect::<Result<_, _>>()?, next: None });
        }
        let size = input::page(params.limit, 100)?;
        let after = params.after.as_deref().map(TaskId::checked).transpose()?;
        after.as_ref().map_or(Ok(()), |after| state.known_cursor(after))?;
        let mut finished = state.tasks_after(after.as_ref()).filter(|task| task.run.is_none() && task.result.is_some());
        let results: Vec<Item> = finished.by_ref().take(size).map(|task| Item::from(task.as_ref())).collect();
        let next = finished.next().and_then(|_| Some(results.last()?.task_id.clone()));
        Ok(Reply { results, next })
    }
}

fn named(id: &TaskId, state: &State, call: &Call) -> Result<Item, Refusal> {
    match state.task(id) {
        Some(task) => Ok(task.as_ref().into()),
        None => Ok((&retired(id, state, call)?).into()),
    }
}
