use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::cancel_task::Params;
use crate::state::task::TaskStatus;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task
    id: String,
    /// Why it is no longer wanted
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// If an agent holds it, ask that agent to stop instead of ending its attempt at once
    #[arg(long)]
    ask_owner: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { id, reason, ask_owner } = arguments;
    let request = Params { task_id: id, reason, ask_owner, ..Default::default() };
    let reply = session.ask::<ops::CancelTask>(&request)?;
    let id = &request.task_id;
    session.show(reply.json(), |page| match reply.status {
        _ if reply.asked_owner => {
            page.line(format_args!("the agent of {id} is told to stop with its next call"))
        }
        TaskStatus::Cancelled => page.line(format_args!("cancelled {id}")),
        // Some of its parts were done, or are asked to stop.
        status => page.line(format_args!("cancelled what is open of {id}; it is {status}")),
    })?;
    Ok(ExitCode::SUCCESS)
}
