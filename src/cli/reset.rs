use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task to reset, with all tasks that are part of it
    #[arg(required_unless_present = "scope")]
    task: Option<String>,
    /// Reset all tasks at or below this path; `all` is every task
    #[arg(long, value_name = "PATH", conflicts_with = "task")]
    scope: Option<String>,
    /// Also reset tasks that agents hold now, which ends their attempts
    #[arg(long)]
    held: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task_id = session.task_id(arguments.task.as_deref())?;
    let query = json!({"task_id": task_id, "scope": arguments.scope, "held": arguments.held});
    let reply = session.call("reset_tasks", query)?;
    session.show(&reply, |page| {
        page.line(format_args!("{} tasks begin anew", reply["reset"]));
        if let Some(held) = reply["held"].as_u64().filter(|held| *held > 0) {
            page.line(format_args!(
                "{held} are held by agents and were left alone; --held resets them, too"
            ));
        }
        if let Some(retired) = reply["retired"].as_u64() {
            page.line(format_args!(
                "{retired} have retired and were left alone; {} what is to be done again",
                session.wording.command("add")
            ));
        }
        page.line(format_args!(
            "to take it back: {}",
            session.wording.line(&format!("snapshot restore {}", text(&reply["before"])))
        ));
    })?;
    Ok(ExitCode::SUCCESS)
}
