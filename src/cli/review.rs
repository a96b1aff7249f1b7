//! `approve` and `reject`: what a person says of results that wait for review.

use std::process::ExitCode;

use super::ask::step;
use super::print::Tone;
use super::{Outcome, Session};
use crate::ops::{self, apply_batch, approve_task, reject_task};
use crate::state::task::Named;

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
    let tasks = session.tasks(&given)?;
    let approve = |task: &Named| approve_task::Params {
        task_id: task.id.to_string(),
        comment: message.clone(),
        ..Default::default()
    };
    let (reply, already) = match tasks.as_slice() {
        [task] => {
            let reply = session.ask::<ops::ApproveTask>(&approve(task))?;
            let already = vec![reply.already];
            (reply.into_json(), already)
        }
        tasks => {
            let operations = tasks
                .iter()
                .map(|task| step::<ops::ApproveTask>(&approve(task)))
                .collect::<Result<_, _>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            let reply = session.ask::<ops::ApplyBatch>(&batch)?;
            let replies = super::ask::results::<ops::ApproveTask>(&reply)?;
            (reply.into_json(), replies.iter().map(|one| one.already).collect())
        }
    };
    session.show(&reply, |page| {
        for (task, already) in tasks.iter().zip(already) {
            let word = if already { "approved before:" } else { "approved" };
            page.marked(word, Tone::Good, task);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reject(session: &Session, arguments: Reject) -> Outcome {
    let Reject { id, reason } = arguments;
    let task = session.task(&id)?;
    let task_id = task.id.to_string();
    let request = reject_task::Params { task_id, reason, ..Default::default() };
    let reply = session.ask::<ops::RejectTask>(&request)?;
    let word = if reply.already { "sent back before:" } else { "sent back" };
    session.show(reply.json(), |page| page.marked(word, Tone::Waiting, task))?;
    Ok(ExitCode::SUCCESS)
}
