use std::process::ExitCode;

use super::ask::step;
use super::{Outcome, Session};
use crate::ops::retry_task::Params;
use crate::ops::{self, apply_batch};

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
    let Arguments { id: ids, scope } = arguments;
    if scope.is_some() {
        let reply = session.ask::<ops::RetryTask>(&Params { scope, ..Default::default() })?;
        session.show(reply.json(), |page| {
            page.line(format_args!("{} tasks are available again", reply.retried))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let retry = |id: &String| Params { task_id: Some(id.clone()), ..Default::default() };
    let reply = match ids.as_slice() {
        [id] => session.ask::<ops::RetryTask>(&retry(id))?.into_json(),
        ids => {
            let operations = ids
                .iter()
                .map(|id| step::<ops::RetryTask>(&retry(id)))
                .collect::<Result<_, _>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            session.ask::<ops::ApplyBatch>(&batch)?.into_json()
        }
    };
    session.show(&reply, |page| {
        ids.iter().for_each(|id| page.line(format_args!("available again: {id}")))
    })?;
    Ok(ExitCode::SUCCESS)
}
