//! `approve` and `reject`: what a person says of results that wait for review. Alone, they list those.

use std::process::ExitCode;

use super::ask::step;
use super::connect::quoted;
use super::print::Tone;
use super::target::list;
use super::{Outcome, Session, usage_error};
use crate::ops::{self, apply_batch, approve_task, reject_task};
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
pub(super) struct Approve {
    /// Tasks in review; all are approved, or none. Without any, those in review are listed
    #[arg(value_name = "TASK")]
    id: Vec<String>,
    /// What to say of the work, for the history
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Reject {
    /// A task in review; without it, those in review are listed
    #[arg(value_name = "TASK")]
    id: Option<String>,
    /// What to do better: the agent that takes the task next reads it
    reason: Vec<String>,
}

pub(super) fn approve(session: &Session, arguments: Approve) -> Outcome {
    let Approve { id: given, message } = arguments;
    if given.is_empty() {
        return waiting(session, "approve");
    }
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
    let Some(id) = arguments.id else { return waiting(session, "reject") };
    let reason = arguments.reason.join(" ");
    if reason.is_empty() {
        let line = session.wording.command(&format!("reject {} REASON", quoted(&id)));
        usage_error(format!("the reason is missing: {line}"));
    }
    let task = session.task(&id)?;
    let task_id = task.id.to_string();
    let request = reject_task::Params { task_id, reason, ..Default::default() };
    let reply = session.ask::<ops::RejectTask>(&request)?;
    let word = if reply.already { "sent back before:" } else { "sent back" };
    session.show(reply.json(), |page| page.marked(word, Tone::Waiting, task))?;
    Ok(ExitCode::SUCCESS)
}

/// Says which tasks are in review, and the line that approves or rejects them.
fn waiting(session: &Session, verb: &str) -> Outcome {
    let found = session.leaves(None, &[TaskStatus::Review])?;
    let tasks: Vec<_> = found.iter().map(Named::from).collect();
    let numbers: Vec<_> = tasks.iter().map(|task| task.short()).collect();
    session.show(&serde_json::json!({"in_review": tasks}), |page| {
        let Some(first) = numbers.first() else { return page.line("no task waits for review") };
        list(page, "in review:", Tone::Busy, &tasks);
        let line = |words: &str| session.wording.command(words);
        page.line(match verb {
            "approve" => format!(
                "{} shows the work; {} accepts {}",
                line(&format!("diff {first}")),
                line(&format!("approve {}", numbers.join(" "))),
                if numbers.len() == 1 { "it" } else { "all" }
            ),
            _ => format!(
                "{} shows the work; {} sends it back",
                line(&format!("diff {first}")),
                line(&format!("reject {first} REASON"))
            ),
        });
    })?;
    Ok(ExitCode::SUCCESS)
}
