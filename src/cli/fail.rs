use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task that you hold
    id: String,
    /// What was tried and what happened
    error: String,
    /// Fail for good: the task is not tried again
    #[arg(long)]
    permanent: bool,
    /// Kind of error, such as timeout, transient or permanent
    #[arg(long)]
    category: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let failure = json!({
        "task_id": arguments.id,
        "error": arguments.error,
        "final": arguments.permanent,
        "category": arguments.category,
    });
    let reply = session.call("fail_task", failure)?;
    session.show(&reply, |page| match serde_json::from_value(reply["retry_at"].clone()) {
        Ok(time) => {
            let (when, left) = (page.when(time), &reply["attempts_left"]);
            page.line(format_args!(
                "{} is tried again {when}; attempts left: {left}",
                arguments.id
            ));
        }
        Err(_) => page.line(format_args!("{} is {} now", arguments.id, text(&reply["status"]))),
    })?;
    Ok(ExitCode::SUCCESS)
}
