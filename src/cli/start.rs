use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::start_task::Params;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task that you have claimed
    id: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let params = Params { task_id: arguments.id, ..Default::default() };
    let reply = session.ask::<ops::StartTask>(&params)?;
    session.show(reply.json(), |page| page.line(format_args!("started {}", params.task_id)))?;
    Ok(ExitCode::SUCCESS)
}
