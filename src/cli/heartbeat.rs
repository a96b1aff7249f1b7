use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task that the note is about [default: the one you hold]
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// How far you are, for whoever takes the task next
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply =
        session.call("heartbeat", json!({"task_id": arguments.task, "note": arguments.note}))?;
    session.show(&reply, |page| match serde_json::from_value(reply["lease_until"].clone()) {
        Ok(until) => {
            let until = page.when(until);
            page.line(format_args!(
                "the lease of {} ends {until}",
                text(&reply["task_id"]) + &text(&reply["run_id"])
            ));
        }
        Err(_) => page.line("heard; you hold no task"),
    })?;
    Ok(ExitCode::SUCCESS)
}
