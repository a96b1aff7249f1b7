use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::retired;
use super::input::{self, TaskInput};
use super::parts::taken_in;
use super::{Annotations, Call, Decision, Operation, Toolset, WRITE};
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::Task;
use crate::state::{Created, State};

pub struct CreateTask;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub task: Task,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Operation for CreateTask {
    const NAME: &'static str = "create_task";
    const DESCRIPTION: &'static str =
        "Add one task to the queue. It becomes claimable when its dependencies are done.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    // A worker adds what it finds; making plans is for others.
    const OF_WORKERS: Option<&'static [&'static str]> =
        Some(&["description", "dependencies", "title"]);
    type Params = TaskInput;
    type Reply = Reply;

    fn idempotency_key(params: &TaskInput) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn decide(params: &TaskInput, state: &State, call: &Call) -> Decision {
        limit::TASKS.check(state.live_tasks() + 1)?;
        let tasks = input::new_tasks(std::iter::once(params), state, call)?;
        state.check_new(&tasks)?;
        state.check_new_reviews(&tasks, call.policy)?;
        Ok(taken_in(tasks, state, call))
    }

    fn reply(params: &TaskInput, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let created = created_tasks(call);
        let id = created.first().ok_or(Refusal::Missing { what: "what the call created" })?;
        // The task may have retired by the time a call is repeated.
        let task = match state.task(id) {
            Some(task) => task.brief(),
            None => retired(id, state, call)?.brief(),
        };
        let refs: Vec<_> = input::refs(params).map(|name| format!("`{name}`")).collect();
        let warning = format!("not its id, as numbers are the board's: {}", refs.join(", "));
        Ok(Reply { success: true, task, warning: Some(warning).filter(|_| !refs.is_empty()) })
    }
}

/// The tasks that the call created, in its order.
pub fn created_tasks(call: &Call) -> Vec<TaskId> {
    let created = call.created.iter().filter_map(|created| match created {
        Created::Tasks(tasks) => Some(tasks.as_slice()),
        _ => None,
    });
    created.flatten().cloned().collect()
}
