//! Which failed tasks a continued workflow tries again: the one that its scope names, or all that
//! its own agents failed.

use std::collections::BTreeSet;

use serde_json::json;

use super::{CallError, Handle, Show, person};
use crate::cli::work::show::Event;
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::hierarchy::split_scope;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::task::{Task, TaskStatus};

/// Failed tasks to retry.
pub(super) struct Again<'a> {
    pub scope: Option<&'a str>,
    /// Agents of the workflow, if all that they failed is meant.
    pub failed_by: Option<BTreeSet<AgentId>>,
}

impl Again<'_> {
    /// Makes the tasks available. The person who started the work decides it.
    pub(super) async fn retry(self, handle: &Handle, show: &Show) -> Result<(), CallError> {
        let tasks = self.tasks(handle).await?;
        for part in tasks.chunks(limit::BATCH.max) {
            let retry =
                |task: &TaskId| json!({"name": "retry_task", "arguments": {"task_id": task}});
            let batch = json!({"operations": part.iter().map(retry).collect::<Vec<_>>()});
            handle.call("apply_batch", batch, &person()).await?;
        }
        if !tasks.is_empty() {
            show.tell(&Event::Again { tasks: &tasks });
        }
        Ok(())
    }

    pub(super) async fn tasks(self, handle: &Handle) -> Result<Vec<TaskId>, CallError> {
        let scope = self.scope.map(str::to_owned);
        let failed_by = self.failed_by;
        let looked = move |state: &State| {
            let scope = scope.as_deref();
            let is_own = |task: &Task| {
                let last = task.attempts.last().map(|attempt| &attempt.agent);
                failed_by.as_ref().zip(last).is_some_and(|(own, last)| own.contains(last))
            };
            let failed = state.tasks().filter(|task| {
                task.status == TaskStatus::Failed
                    && task.run.is_none()
                    && in_scope(task, scope)
                    && (is_named(task, scope) || is_own(task))
            });
            failed.map(|task| task.id.clone()).collect()
        };
        handle.look(looked).await
    }
}

/// Whether the scope is the task's own path, and not one above it.
fn is_named(task: &Task, scope: Option<&str>) -> bool {
    scope.is_some_and(|scope| task.path.as_deref() == Some(split_scope(scope).1))
}
