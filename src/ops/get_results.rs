use std::collections::HashSet;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::retired;
use super::page::{Page, Part, Shown};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskResult, TaskStatus};
use crate::state::time::Timestamp;

pub struct GetResults;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// All if omitted
    pub task_ids: Option<Vec<String>>,
    /// Default 100
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<TaskId>>,
    pub results: Vec<Shown<Item>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Item {
    pub task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    pub title: String,
    pub description: String,
    pub status: TaskStatus,
    /// Null until the task has ended
    pub result: Option<TaskResult>,
    pub completed_at: Option<Timestamp>,
}

impl From<&Task> for Item {
    fn from(task: &Task) -> Self {
        Self {
            task_id: task.id.clone(),
            number: task.number,
            title: task.headline().to_owned(),
            description: task.description.to_string(),
            status: task.status,
            result: task.result.as_deref().cloned(),
            completed_at: task.completed_at,
        }
    }
}

impl Operation for GetResults {
    const NAME: &'static str = "get_results";
    const DESCRIPTION: &'static str =
        "Read the results of finished tasks: the named ones, or a page of all.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 100)?.cut("get_task");
        let after = params.after.as_deref().map(TaskId::checked).transpose()?;
        if let Some(ids) = &params.task_ids {
            limit::PAGE.check(ids.len())?;
            let mut seen = HashSet::new();
            let ids = ids.iter().map(|id| TaskId::checked(id)).collect::<Result<Vec<_>, _>>()?;
            let ids: Vec<_> = ids.into_iter().filter(|id| seen.insert(id.clone())).collect();
            let place = |after: &TaskId| {
                let place = ids.iter().position(|id| id == after);
                place
                    .map(|place| place + 1)
                    .ok_or_else(|| Refusal::UnknownTask { task: after.clone() })
            };
            let begin = after.as_ref().map_or(Ok(0), place)?;
            let mut is_more = false;
            for id in &ids[begin..] {
                is_more = is_more || !page.add(named(id, state, call)?);
            }
            let next = page.last().filter(|_| is_more).map(|last| last.task_id.clone());
            return Ok(Reply {
                part: page.part(Some(ids.len()), begin > 0, next),
                results: page.into_entries(),
            });
        }
        after.as_ref().map_or(Ok(()), |after| state.known_cursor(after))?;
        let finished = |after| {
            state.tasks_after(after).filter(|task| task.run.is_none() && task.result.is_some())
        };
        let is_more = page.fill(finished(after.as_ref()).map(|task| Item::from(task.as_ref())));
        let next = page.last().filter(|_| is_more).map(|last| last.task_id.clone());
        let total = (after.is_some() || is_more).then(|| finished(None).count());
        Ok(Reply { part: page.part(total, after.is_some(), next), results: page.into_entries() })
    }
}

fn named(id: &TaskId, state: &State, call: &Call) -> Result<Item, Refusal> {
    match state.task(id) {
        Some(task) => Ok(task.as_ref().into()),
        None => Ok((&retired(id, state, call)?).into()),
    }
}
