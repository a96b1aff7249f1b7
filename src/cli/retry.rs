use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session};

#[derive(clap::Args)]
pub struct Arguments {
    /// The failed or cancelled tasks; all of them or none
    #[arg(required = true)]
    id: Vec<String>,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = match arguments.id.as_slice() {
        [id] => session.call("retry_task", json!({"task_id": id}))?,
        ids => {
            let retries = ids.iter().map(|id| json!({"name": "retry_task", "arguments": {"task_id": id}}));
            session.call("apply_batch", json!({"operations": retries.collect::<Value>()}))?
        }
    };
    session.show(&reply, |page| arguments.id.iter().for_each(|id| page.line(format_args!("available again: {id}"))))?;
    Ok(ExitCode::SUCCESS)
}
