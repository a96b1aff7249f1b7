use std::process::ExitCode;

use serde_json::json;

use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task that you have claimed
    id: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = session.call("start_task", json!({"task_id": arguments.id}))?;
    session.show(&reply, |page| page.line(format_args!("started {}", arguments.id)))?;
    Ok(ExitCode::SUCCESS)
}
