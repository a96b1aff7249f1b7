//! `callboard cancel`: ends a task, or the open tasks of a scope.

use std::process::ExitCode;

use super::ask::step;
use super::print::Tone;
use super::target::{Target, list};
use super::{Declined, Outcome, Session};
use crate::ops::cancel_task::Params;
use crate::ops::{self, apply_batch};
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard cancel 12 --reason 'the parser does it already'\n  \
    callboard cancel P4\n  \
    callboard cancel 12 --ask-owner")]
pub(super) struct Arguments {
    /// The task, with its parts; or a path, whose open tasks are meant
    #[arg(value_name = "TASK|PATH")]
    task: String,
    /// Why it is no longer wanted
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// If an agent holds it, ask that agent to stop instead of ending its attempt at once
    #[arg(long)]
    ask_owner: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match session.target(&arguments.task)? {
        Target::Task(task) => one(session, &task, &arguments),
        Target::Scope(scope) => all(session, &scope, &arguments),
    }
}

impl Arguments {
    fn request(&self, task: &Named) -> Params {
        let (task_id, reason) = (task.id.to_string(), self.reason.clone());
        Params { task_id, reason, ask_owner: self.ask_owner, ..Default::default() }
    }
}

fn one(session: &Session, task: &Named, arguments: &Arguments) -> Outcome {
    let reply = session.ask::<ops::CancelTask>(&arguments.request(task))?;
    session.show(reply.json(), |page| match reply.status {
        _ if reply.asked_owner => {
            page.line(format_args!("the agent of {task} is told to stop with its next call"))
        }
        TaskStatus::Cancelled => page.line(format_args!("cancelled {task}")),
        // Some of its parts were done, or are asked to stop.
        status => page.line(format_args!("cancelled what is open of {task}; it is {status}")),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn all(session: &Session, scope: &str, arguments: &Arguments) -> Outcome {
    let is_open = |status: &TaskStatus| status.is_unfinished() || *status == TaskStatus::Failed;
    let open: Vec<_> = TaskStatus::ALL.into_iter().filter(is_open).collect();
    let tasks = session.leaves(Some(scope), &open)?;
    if tasks.is_empty() {
        let why = format!(
            "no task at or below {scope} is open; `callboard tasks --scope {scope}` lists them"
        );
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    let operations = tasks.iter().map(|task| step::<ops::CancelTask>(&arguments.request(task)));
    let operations = operations.collect::<Result<_, _>>()?;
    let batch = apply_batch::Params { operations, ..Default::default() };
    let reply = session.ask::<ops::ApplyBatch>(&batch)?;
    let word = if arguments.ask_owner { "cancelled, or its agent asked:" } else { "cancelled" };
    session.show(reply.json(), |page| list(page, word, Tone::Over, &tasks))?;
    Ok(ExitCode::SUCCESS)
}
