use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::Chosen;
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::event::Event;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};

pub struct RetryTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: Option<String>,
    /// Instead: in P1.M2, or all
    pub scope: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Tasks that are available again
    pub retried: usize,
}

impl Operation for RetryTask {
    const NAME: &'static str = "retry_task";
    const DESCRIPTION: &'static str =
        "Leaders: make a failed or cancelled task available again, with all its attempts.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Core;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "retry a task")?;
        let id = match input::task_or_scope(
            params.task_id.as_deref(),
            params.scope.as_deref(),
            state,
        )? {
            Chosen::Task(id) => id,
            Chosen::Scope(scope) => {
                return retries(
                    state.tasks().filter(|task| task.run.is_none() && in_scope(task, Some(scope))),
                    state,
                );
            }
        };
        let task = state.known_task(&id)?;
        let is_over = matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled);
        if state.is_parent(&id) || state.has_parts(&id) && is_over {
            return retries(state.below(&id).into_iter().chain([task]), state);
        }
        match task.status {
            TaskStatus::Failed | TaskStatus::Cancelled => Ok(vec![Event::Retried { task: id }]),
            // A task that waits for its backoff need not wait any longer.
            TaskStatus::Available => {
                let waits = task.not_before.is_some();
                Ok(waits.then_some(Event::Retried { task: id }).into_iter().collect())
            }
            status => Err(Refusal::WrongStatus {
                task: id,
                status,
                action: "retried",
                next: "only failed and cancelled tasks can be".to_owned(),
            }
            .into()),
        }
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        Ok(Reply { success: true, retried: call.events })
    }
}

/// Retries the failed and the cancelled of `tasks`.
fn retries<'s>(tasks: impl Iterator<Item = &'s Arc<Task>>, state: &State) -> Decision {
    let over =
        tasks.filter(|task| matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled));
    let own = over.filter(|task| !state.is_parent(&task.id));
    let events: Vec<_> = own.map(|task| Event::Retried { task: task.id.clone() }).collect();
    limit::BATCH.check(events.len())?;
    Ok(events)
}
