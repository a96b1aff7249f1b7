use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::create_task::created_tasks;
use super::input::{self, TaskInput};
use super::parts::taken_in;
use super::{Annotations, Call, Decision, Operation, Toolset, WRITE};
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct CreateTasksBatch;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub tasks: Vec<TaskInput>,
    pub idempotency_key: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub created: usize,
    pub task_ids: Vec<TaskId>,
}

impl Operation for CreateTasksBatch {
    const NAME: &'static str = "create_tasks_batch";
    const DESCRIPTION: &'static str = "Add many tasks, all or none. Dependencies name tasks by \
                                       id, or by place in the batch: #0 is the first.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn idempotency_key(params: &Params) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        if params.tasks.is_empty() {
            return Err(Refusal::Empty { what: "tasks" }.into());
        }
        limit::BATCH.check(params.tasks.len())?;
        limit::TASKS.check(state.live_tasks() + params.tasks.len())?;
        if params.tasks.iter().any(|task| task.idempotency_key.is_some()) {
            return Err(Refusal::KeyOfItem.into());
        }
        let tasks = input::new_tasks(params.tasks.iter(), state, call.seed, call.place)?;
        state
            .check_new(&tasks)
            .map_err(|refusal| input::by_position(refusal, &params.tasks, &tasks))?;
        state.check_new_reviews(&tasks, call.policy)?;
        Ok(taken_in(tasks, state, call))
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let task_ids = created_tasks(call);
        Ok(Reply { success: true, created: task_ids.len(), task_ids })
    }
}
