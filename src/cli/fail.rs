use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::fail_task::Params;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task that you hold
    task: String,
    /// What was tried and what happened
    #[arg(required = true)]
    error: Vec<String>,
    /// Fail for good: the task is not tried again
    #[arg(long)]
    permanent: bool,
    /// Kind of error, such as timeout, transient or permanent
    #[arg(long)]
    category: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task = session.task(&arguments.task)?;
    let failure = Params {
        task_id: task.id.to_string(),
        error: arguments.error.join(" "),
        is_final: arguments.permanent,
        category: arguments.category,
        ..Default::default()
    };
    let reply = session.ask::<ops::FailTask>(&failure)?;
    session.show(reply.json(), |page| match reply.retry_at {
        Some(time) => {
            let (when, left) = (page.when(time), reply.attempts_left);
            page.line(format_args!("{task} is tried again {when}; attempts left: {left}"));
        }
        None => page.line(format_args!("{task} is {} now", reply.status)),
    })?;
    Ok(ExitCode::SUCCESS)
}
