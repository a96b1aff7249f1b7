use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::Chosen;
use super::{
    AgentArgument, Annotations, Archive, Call, DESTRUCTIVE, Decision, Fetched, Operation, Toolset,
    input,
};
use crate::state::claim::{in_scope, path_in_scope};
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Occasion, SnapshotName};
use crate::state::task::{Task, TaskStatus};
use crate::state::{Created, State};

pub struct ResetTasks;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: Option<String>,
    /// Instead of task_id: all tasks at or below a path such as P1.M2, or `all`
    pub scope: Option<String>,
    /// Also tasks that agents hold; their attempts end
    #[serde(default)]
    pub held: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Tasks that are to be done anew
    pub reset: usize,
    /// Held tasks, which were left alone
    pub held: usize,
    /// Retired tasks, which cannot be reset
    #[serde(skip_serializing_if = "is_zero")]
    pub retired: usize,
    /// The snapshot taken before the reset
    pub before: SnapshotName,
}

impl Operation for ResetTasks {
    const NAME: &'static str = "reset_tasks";
    const DESCRIPTION: &'static str = "Leaders: begin tasks anew, also those that are done; their \
                                       results go. A snapshot is taken first.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(params: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        call.leads(state, "reset tasks")?;
        meant(params, state).map(drop)
    }

    fn fetch(_: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        Ok(Fetched::Taken(archive.take(Occasion::BeforeReset, None)?))
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "reset tasks")?;
        let meant = meant(params, state)?;
        let touched = meant
            .into_iter()
            .filter(|task| !is_new(task, state) && (params.held || !task.status.is_held()));
        let tasks: Vec<TaskId> = touched.map(|task| task.id.clone()).collect();
        limit::TASKS.check(tasks.len())?;
        Ok(Some(Event::TasksReset { tasks: tasks.clone() })
            .filter(|_| !tasks.is_empty())
            .into_iter()
            .collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let Fetched::Taken(taken) = call.fetched else { return Err(Refusal::NoSnapshot) };
        let reset = call.created.iter().find_map(|created| match created {
            Created::Reset(tasks) => Some(*tasks),
            _ => None,
        });
        let held = meant(params, state)?.into_iter().filter(|task| task.status.is_held()).count();
        let (reset, retired) = (reset.unwrap_or_default(), retired(params, state));
        Ok(Reply { success: true, reset, held, retired, before: taken.name.clone() })
    }
}

/// Tasks that the call means, without parents and obsolete tasks.
fn meant<'s>(params: &Params, state: &'s State) -> Result<Vec<&'s Task>, Refusal> {
    let own = |task: &&Task| !state.is_parent(&task.id) && task.status != TaskStatus::Obsolete;
    match input::task_or_scope(params.task_id.as_deref(), params.scope.as_deref(), state)? {
        Chosen::Task(id) => {
            let task = state.known_task(&id)?;
            if task.status == TaskStatus::Obsolete {
                let next = "put it back into the plan, or create_task".to_owned();
                return Err(Refusal::WrongStatus {
                    task: id,
                    status: task.status,
                    action: "reset",
                    next,
                });
            }
            let below = state.below(&id).into_iter().map(AsRef::as_ref);
            Ok(std::iter::once(task.as_ref()).chain(below).filter(own).collect())
        }
        Chosen::Scope(scope) => {
            let inside = state
                .tasks()
                .map(AsRef::as_ref)
                .filter(|task| task.run.is_none() && in_scope(task, Some(scope)));
            Ok(inside.filter(own).collect())
        }
    }
}

/// Number of done or cancelled tasks in the scope that have left the live state.
fn retired(params: &Params, state: &State) -> usize {
    let Some(scope) = params.scope.as_deref() else { return 0 };
    let tasks =
        state.retired().filter(|(_, stub)| !stub.run && stub.status != TaskStatus::Obsolete);
    tasks.filter(|(_, stub)| scope == "all" || path_in_scope(stub.path.as_deref(), scope)).count()
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// True if nothing has come of the task since it was created or last reset.
fn is_new(task: &Task, state: &State) -> bool {
    task.status == TaskStatus::Available
        && task.not_before.is_none()
        && task.kept.is_none()
        && task.attempts.last().is_none_or(|last| task.was_reset_since(last))
        && state.checkpoints_for(&task.id).next().is_none()
}
