use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::start_task::Params;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task that you have claimed
    task: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task = session.task(&arguments.task)?;
    let params = Params { task_id: task.id.to_string(), ..Default::default() };
    let reply = session.ask::<ops::StartTask>(&params)?;
    session.show(reply.json(), |page| page.line(format_args!("started {task}")))?;
    Ok(ExitCode::SUCCESS)
}
