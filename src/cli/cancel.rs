use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::{Outcome, Session};

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
    let request = json!({"task_id": arguments.id, "reason": arguments.reason, "ask_owner": arguments.ask_owner});
    let reply = session.call("cancel_task", request)?;
    session.show(&reply, |page| match reply["asked_owner"] == true {
        true => page
            .line(format_args!("the agent of {} is told to stop with its next call", arguments.id)),
        false if reply["status"] == "cancelled" => {
            page.line(format_args!("cancelled {}", arguments.id))
        }
        // Some of its parts were done, or are asked to stop.
        false => page.line(format_args!(
            "cancelled what is open of {}; it is {}",
            arguments.id,
            text(&reply["status"])
        )),
    })?;
    Ok(ExitCode::SUCCESS)
}
