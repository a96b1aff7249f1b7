//! `callboard retry`: failed tasks begin again, and cancelled ones that are meant.

use std::process::ExitCode;

use super::ask::step;
use super::print::Tone;
use super::target::{Hits, Target, is_all, list};
use super::{Declined, Outcome, Session};
use crate::ops::get_all_tasks::Brief;
use crate::ops::retry_task::Params;
use crate::ops::{self, apply_batch};
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard retry\n  \
    callboard retry 12 13\n  \
    callboard retry P1.M2 --cancelled\n  \
    callboard retry --all")]
pub(super) struct Arguments {
    /// Tasks, or paths whose failed tasks are meant; all are retried, or none. Without any, the
    /// failed ones are listed and nothing changes
    #[arg(value_name = "TASK|PATH")]
    task: Vec<String>,
    /// Retry all failed tasks
    #[arg(long, conflicts_with = "task")]
    all: bool,
    /// Cancelled tasks, too, and not only those that are named
    #[arg(long)]
    cancelled: bool,
    /// The same as PATH
    #[arg(long, value_name = "PATH", conflicts_with_all = ["task", "all"], hide = true)]
    scope: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let all = [TaskStatus::Failed, TaskStatus::Cancelled];
    let statuses = if arguments.cancelled { &all[..] } else { &all[..1] };
    let (given, scope) = (arguments.task, arguments.scope);
    if scope.is_some() && !arguments.cancelled {
        let reply = session.ask::<ops::RetryTask>(&Params { scope, ..Default::default() })?;
        session.show(reply.json(), |page| {
            page.line(format_args!("{} tasks are available again", reply.retried))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.is_empty() && scope.is_none() && !arguments.all {
        let mut failed = Hits::default();
        failed.extend(session.leaves(None, statuses)?);
        return listed(session, &failed.names());
    }
    let mut hits = Hits::default();
    if arguments.all || scope.is_some() {
        hits.extend(session.leaves(scope.as_deref(), statuses)?);
    }
    for given in &given {
        match session.target(given)? {
            // A cancelled task that is named is meant; those below a path only if that is said.
            Target::Task(task) => hits.extend(session.parts_or_itself(&task, statuses)?),
            Target::Scope(scope) => hits.extend(session.leaves(Some(&scope), statuses)?),
        }
    }
    let is_ready = |task: &Brief| task.status == TaskStatus::Available && task.until.is_none();
    let (ready, tasks): (Vec<_>, Vec<_>) = hits.tasks.into_iter().partition(is_ready);
    if tasks.is_empty() {
        let why = match ready.first() {
            Some(task) => format!("{} is available as it is; nothing to retry", Named::from(task)),
            None if given.iter().all(|given| is_all(given)) => {
                "no task has failed; nothing to retry".to_owned()
            }
            None => format!(
                "nothing has failed at or below {}; `callboard tasks --failed` lists failed tasks",
                given.join(", ")
            ),
        };
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    let tasks: Vec<_> = tasks.iter().map(Named::from).collect();
    let retry = |task: &Named| Params { task_id: Some(task.id.to_string()), ..Default::default() };
    let reply = match tasks.as_slice() {
        [task] => session.ask::<ops::RetryTask>(&retry(task))?.into_json(),
        tasks => {
            let operations = tasks.iter().map(|task| step::<ops::RetryTask>(&retry(task)));
            let operations = operations.collect::<Result<_, _>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            session.ask::<ops::ApplyBatch>(&batch)?.into_json()
        }
    };
    session.show(&reply, |page| list(page, "available again:", Tone::Good, &tasks))?;
    Ok(ExitCode::SUCCESS)
}

/// Says what would be retried.
fn listed(session: &Session, tasks: &[Named]) -> Outcome {
    let reply = serde_json::json!({"retried": 0, "would_retry": tasks});
    session.show(&reply, |page| {
        if tasks.is_empty() {
            return page
                .line("no task has failed; `retry --cancelled` looks for cancelled ones, too");
        }
        list(page, "would be retried:", Tone::Busy, tasks);
        let (all, one) = (session.wording.command("retry --all"), &tasks[0].short());
        let one = session.wording.command(&format!("retry {one}"));
        page.line(format_args!("nothing has changed; {all} retries all, {one} one"));
    })?;
    Ok(ExitCode::SUCCESS)
}
