use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim_task::shortened;
use super::get_task::Parts;
use super::page::{Page, Part, Shown};
use super::task_filter;
pub use super::task_filter::Params;
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::task::{Named, Task, TaskStatus};
use crate::state::time::Timestamp;
use crate::view::Standing;

pub struct GetAllTasks;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<TaskId>>,
    pub tasks: Vec<Shown<Listed>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Listed {
    Whole(Box<Task>),
    Brief(Brief),
}

/// A task in one line.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Brief {
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    pub status: TaskStatus,
    /// True if it can be claimed now
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Status that follows from its parts, if it has any; in_progress once one is held or done
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<TaskStatus>,
    /// The first tasks that it waits for
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<TaskId>,
    /// When it can be claimed, if it waits for that only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Agent that holds it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    pub priority: u8,
}

impl From<&Brief> for Named {
    fn from(task: &Brief) -> Self {
        let (id, title) = (task.id.clone(), task.title.clone());
        Self { id, number: task.number, title, status: Some(task.status) }
    }
}

/// Bytes of a title in one line.
const TITLE_SHOWN: usize = 100;

impl Operation for GetAllTasks {
    const NAME: &'static str = "get_all_tasks";
    const DESCRIPTION: &'static str = "List tasks, a page at a time.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        let searches = params.text.is_some() || params.changed_since.is_some();
        searches || !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 200)?.cut("get_task");
        let after = params.after.as_deref().map(TaskId::checked).transpose()?;
        after.as_ref().map_or(Ok(()), |after| state.known_cursor(after))?;
        let (total, tasks) = task_filter::select(params, after.as_ref(), state, call)?;
        let is_more = page.fill(tasks.map(|task| {
            if params.brief {
                Listed::Brief(brief(task, state))
            } else {
                Listed::Whole(Box::new(listed(task, call.reader)))
            }
        }));
        let next = page.last().filter(|_| is_more).map(|last| last.id().clone());
        Ok(Reply {
            part: page.part(Some(total), after.is_some(), next),
            tasks: page.into_entries(),
        })
    }
}

impl Listed {
    /// The task, unless the list was to be brief.
    pub fn whole(&self) -> Option<&Task> {
        match self {
            Self::Whole(task) => Some(task),
            Self::Brief(_) => None,
        }
    }

    /// The task in one line, if the list was to be brief.
    pub fn brief(&self) -> Option<&Brief> {
        match self {
            Self::Whole(_) => None,
            Self::Brief(brief) => Some(brief),
        }
    }

    pub fn into_brief(self) -> Option<Brief> {
        match self {
            Self::Whole(_) => None,
            Self::Brief(brief) => Some(brief),
        }
    }

    fn id(&self) -> &TaskId {
        match self {
            Self::Whole(task) => &task.id,
            Self::Brief(brief) => &brief.id,
        }
    }
}

impl Brief {
    pub fn standing(&self) -> Standing {
        match (self.parts.unwrap_or(self.status), self.until) {
            (TaskStatus::Available, _) if self.parts.is_some() => Standing::Open,
            (TaskStatus::Available, _) if self.ready => Standing::Ready,
            (TaskStatus::Available, Some(until)) => Standing::Waiting(until),
            (TaskStatus::Available, None) => Standing::Blocked(self.blocked_by.clone()),
            (status, _) => Standing::Is(status),
        }
    }
}

/// The task without what only its own reading shows; a model is spared the plan's hashes, too.
fn listed(task: &Task, reader: Reader) -> Task {
    let brief = task.brief();
    if reader.is_model() { Task { planned: None, left_plan: None, ..brief } } else { brief }
}

fn brief(task: &Task, state: &State) -> Brief {
    let title = task.headline();
    let is_open = task.status == TaskStatus::Available;
    let standing = Standing::of(state, task);
    Brief {
        id: task.id.clone(),
        number: task.number,
        path: task.path.clone(),
        title: shortened(title, TITLE_SHOWN),
        status: task.status,
        ready: standing == Standing::Ready,
        parts: Parts::of(task, state).map(|parts| parts.status),
        blocked_by: state
            .waits_for(task)
            .filter(|_| is_open)
            .take(Standing::NAMED)
            .cloned()
            .collect(),
        until: match standing {
            Standing::Waiting(until) => Some(until),
            _ => None,
        },
        agent: task.claimed_by.clone().filter(|_| task.status.is_held()),
        priority: task.priority,
    }
}
