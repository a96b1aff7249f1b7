use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};

pub struct GetAllTasks;

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusFilter {
    #[default]
    All,
    Available,
    Claimed,
    InProgress,
    Done,
    Failed,
    Cancelled,
    Obsolete,
}

impl StatusFilter {
    fn passes(self, status: TaskStatus) -> bool {
        match self {
            Self::All => true,
            Self::Available => status == TaskStatus::Available,
            Self::Claimed => status == TaskStatus::Claimed,
            Self::InProgress => status == TaskStatus::InProgress,
            Self::Done => status == TaskStatus::Done,
            Self::Failed => status == TaskStatus::Failed,
            Self::Cancelled => status == TaskStatus::Cancelled,
            Self::Obsolete => status == TaskStatus::Obsolete,
        }
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[serde(default)]
    #[schemars(extend("default" = "all"))]
    status_filter: StatusFilter,
    /// A path such as P1.M2
    scope: Option<String>,
    /// Default 200
    limit: Option<NonZeroU32>,
    /// `next` of the prior page
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TaskId>,
}

impl Operation for GetAllTasks {
    const NAME: &'static str = "get_all_tasks";
    const DESCRIPTION: &'static str = "List tasks in order of creation, a page at a time.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        input::check_scope(params.scope.as_deref())?;
        let size = input::page(params.limit, 200)?;
        let after = params.after.as_deref().map(TaskId::checked).transpose()?;
        after.as_ref().map_or(Ok(()), |after| state.known_cursor(after))?;
        let mut wanted = state
            .tasks_after(after.as_ref())
            .filter(|task| task.run.is_none())
            .filter(|task| params.status_filter.passes(task.status) && in_scope(task, params.scope.as_deref()));
        let tasks: Vec<Task> = wanted.by_ref().take(size).map(|task| task.brief()).collect();
        let next = wanted.next().and_then(|_| Some(tasks.last()?.id.clone()));
        Ok(Reply { tasks, next })
    }
}
