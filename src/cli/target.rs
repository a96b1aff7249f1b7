//! What a command hits: a task, or the tasks of a scope.

use super::report::blame_and_data;
use super::{Session, print};
use crate::ops::get_all_tasks::{Listed, Params};
use crate::ops::{self};
use crate::state::hierarchy::{numbers, split_scope};
use crate::state::limit::CANDIDATES;
use crate::state::task::{Named, TaskStatus};

/// What was named: a task, or else a path that has tasks below it.
pub(super) enum Target {
    Task(Named),
    Scope(String),
}

impl Session {
    pub(super) fn target(&self, given: &str) -> anyhow::Result<Target> {
        let is_scope = given == "all" || numbers(split_scope(given).1).is_some();
        match self.task(given) {
            Ok(task) => Ok(Target::Task(task)),
            Err(error) if is_scope && blame_and_data(&error).1["code"] == "unknown_task" => {
                Ok(Target::Scope(given.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Tasks of a scope, or of the board, that have one of these statuses and no parts.
    pub(super) fn leaves(
        &self,
        scope: Option<&str>,
        statuses: &[TaskStatus],
    ) -> anyhow::Result<Vec<Named>> {
        let scope = scope.filter(|scope| *scope != "all").map(str::to_owned);
        let statuses = statuses.to_vec();
        let query = Params { scope, statuses, brief: true, ..Default::default() };
        let reply = self.every_page::<ops::GetAllTasks>("tasks", &query)?.reply;
        let named = reply.tasks.iter().filter_map(|listed| match &**listed {
            Listed::Brief(task) if task.parts.is_none() => Some(Named {
                id: task.id.clone(),
                number: task.number,
                title: task.title.clone(),
                status: Some(task.status),
            }),
            _ => None,
        });
        Ok(named.collect())
    }
}

/// Writes what was hit, or would be: one task a line, and how many more there are.
pub(super) fn list(page: &mut print::Page, word: &str, tone: print::Tone, tasks: &[Named]) {
    for task in tasks.iter().take(CANDIDATES) {
        page.marked(word, tone, task);
    }
    if let Some(more) = tasks.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
        page.line(format_args!("and {more} more"));
    }
}
