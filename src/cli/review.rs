//! `approve` and `reject`: what a person says of results that wait for review.

use std::process::ExitCode;

use super::ask::step;
use super::{Outcome, Session};
use crate::ops::{self, apply_batch, approve_task, reject_task};

#[derive(clap::Args)]
pub(super) struct Approve {
    /// Tasks in review; all are approved, or none
    #[arg(required = true, value_name = "TASK")]
    id: Vec<String>,
    /// What to say of the work, for the history
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Reject {
    /// A task in review
    #[arg(value_name = "TASK")]
    id: String,
    /// What to do better: the agent that takes the task next reads it
    reason: String,
}

pub(super) fn approve(session: &Session, arguments: Approve) -> Outcome {
    let Approve { id: given, message } = arguments;
    let ids = session.task_ids(&given)?;
    let approve = |id: &String| approve_task::Params {
        task_id: id.clone(),
        comment: message.clone(),
        ..Default::default()
    };
    let (reply, already) = match ids.as_slice() {
        [id] => {
            let reply = session.ask::<ops::ApproveTask>(&approve(id))?;
            let already = vec![reply.already];
            (reply.into_json(), already)
        }
        ids => {
            let operations = ids
                .iter()
                .map(|id| step::<ops::ApproveTask>(&approve(id)))
                .collect::<Result<_, _>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            let reply = session.ask::<ops::ApplyBatch>(&batch)?;
            let replies = super::ask::results::<ops::ApproveTask>(&reply)?;
            (reply.into_json(), replies.iter().map(|one| one.already).collect())
        }
    };
    session.show(&reply, |page| {
        for (id, already) in ids.iter().zip(already) {
            let word = if already { "approved before" } else { "approved" };
            page.line(format_args!("{word}: {id}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reject(session: &Session, arguments: Reject) -> Outcome {
    let Reject { id, reason } = arguments;
    let task_id = session.task(&id)?.id.to_string();
    let request = reject_task::Params { task_id, reason, ..Default::default() };
    let reply = session.ask::<ops::RejectTask>(&request)?;
    let word = if reply.already { "sent back before" } else { "sent back" };
    session.show(reply.json(), |page| page.line(format_args!("{word}: {}", request.task_id)))?;
    Ok(ExitCode::SUCCESS)
}
