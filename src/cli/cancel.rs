use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::{Outcome, Session};

#[derive(clap::Args)]
pub struct Arguments {
    /// The task
    id: String,
    /// Why it is not to be done
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// If it is held, ask its agent to stop instead
    #[arg(long)]
    ask_owner: bool,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let request = json!({"task_id": arguments.id, "reason": arguments.reason, "ask_owner": arguments.ask_owner});
    let reply = session.call("cancel_task", request)?;
    session.show(&reply, |page| match reply["asked_owner"] == true {
        true => page.line(format_args!("the agent of {} is told to stop with its next call", arguments.id)),
        false if reply["status"] == "cancelled" => page.line(format_args!("cancelled {}", arguments.id)),
        // Some of its parts were done, or are asked to stop.
        false => {
            page.line(format_args!("cancelled what is open of {}; it is {}", arguments.id, text(&reply["status"])))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
