use std::process::ExitCode;

use super::print::or_empty;
use super::{Outcome, Session};
use crate::ops;
use crate::ops::heartbeat::Params;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task that the note is about [default: the one you hold]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// How far you are, for whoever takes the task next
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task_id = session.task_id(arguments.task.as_deref())?;
    let params = Params { task_id, note: arguments.note, ..Default::default() };
    let reply = session.ask::<ops::Heartbeat>(&params)?;
    session.show(reply.json(), |page| match reply.lease_until {
        Some(until) => {
            let (until, held) =
                (page.when(until), reply.task_id.as_ref().or(reply.run_id.as_ref()));
            page.line(format_args!("the lease of {} ends {until}", or_empty(held)));
        }
        None => page.line("heard; you hold no task"),
    })?;
    Ok(ExitCode::SUCCESS)
}
