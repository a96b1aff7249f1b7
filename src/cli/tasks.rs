use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::print::{Column, Tone};
use super::{Outcome, Session};
use crate::state::task::{Task, TaskStatus};

#[derive(clap::Args)]
pub struct Arguments {
    /// Only those of this status
    #[arg(long, value_parser = PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str)))]
    status: Option<String>,
    /// Only at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// Every page, not only the first
    #[arg(long)]
    all: bool,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let query = json!({"status_filter": arguments.status.as_deref().unwrap_or("all"), "scope": arguments.scope});
    let reply = match arguments.all {
        true => session.every_page("get_all_tasks", "tasks", &query)?,
        false => session.call("get_all_tasks", query)?,
    };
    let tasks: Vec<Task> = serde_json::from_value(reply["tasks"].clone())?;
    session.show(&reply, |page| {
        if tasks.is_empty() {
            page.line("no tasks");
            return;
        }
        page.table(["id", "status", "prio", "agent", "attempt", "task"], tasks.iter().map(row));
        if reply.get("next").is_some_and(Value::is_string) {
            page.line(format_args!("the first {}; --all shows the rest", tasks.len()));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(task: &Task) -> [Column; 6] {
    let agent = task.claimed_by.as_ref().map(ToString::to_string).unwrap_or_default();
    let attempt =
        if task.attempt == 0 { String::new() } else { format!("{}/{}", task.attempts_used(), task.max_attempts) };
    [
        task.id.as_str().into(),
        Column::toned(task.status, Tone::of(task.status)),
        task.priority.into(),
        agent.into(),
        attempt.into(),
        task.headline().into(),
    ]
}
