use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Ids of failed or cancelled tasks; all are retried, or none
    #[arg(required_unless_present = "scope")]
    id: Vec<String>,
    /// Retry all tasks at or below this path; `all` is every task
    #[arg(long, value_name = "PATH", conflicts_with = "id")]
    scope: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if let Some(scope) = &arguments.scope {
        let reply = session.call("retry_task", json!({"scope": scope}))?;
        session.show(&reply, |page| {
            page.line(format_args!("{} tasks are available again", reply["retried"]))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply = match arguments.id.as_slice() {
        [id] => session.call("retry_task", json!({"task_id": id}))?,
        ids => {
            let retries =
                ids.iter().map(|id| json!({"name": "retry_task", "arguments": {"task_id": id}}));
            session.call("apply_batch", json!({"operations": retries.collect::<Value>()}))?
        }
    };
    session.show(&reply, |page| {
        arguments.id.iter().for_each(|id| page.line(format_args!("available again: {id}")))
    })?;
    Ok(ExitCode::SUCCESS)
}
