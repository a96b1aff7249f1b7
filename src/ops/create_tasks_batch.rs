use std::collections::BTreeMap;

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
    /// Their numbers
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// Ids of the tasks that were named in the call only, by `ref` or an id of digits
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refs: BTreeMap<String, TaskId>,
}

impl Operation for CreateTasksBatch {
    const NAME: &'static str = "create_tasks_batch";
    const DESCRIPTION: &'static str = "Add many tasks, all or none. Dependencies name tasks by \
                                       id, title or #number, and each other by id or title.";
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
        let tasks = input::new_tasks(params.tasks.iter(), state, call)?;
        state
            .check_new(&tasks)
            .map_err(|refusal| input::by_position(refusal, &params.tasks, &tasks))?;
        state.check_new_reviews(&tasks, call.policy)?;
        Ok(taken_in(tasks, state, call))
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let task_ids = created_tasks(call);
        let numbers = task_ids.iter().filter_map(|id| state.task(id)?.number).collect();
        let named = params.tasks.iter().zip(&task_ids);
        let refs = named
            .flat_map(|(input, id)| input::refs(input).map(|name| (name.to_owned(), id.clone())));
        let refs = refs.collect();
        Ok(Reply { success: true, created: task_ids.len(), task_ids, numbers, refs })
    }
}
