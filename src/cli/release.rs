use std::process::ExitCode;

use super::ask::{results, step};
use super::{Outcome, Session, usage_error};
use crate::board::Answer;
use crate::ops::apply_batch::{self, Reply as Batch};
use crate::ops::release_task::{Params, Reply};
use crate::ops::{self, get_all_tasks};
use crate::state::task::{Named, Task, TaskStatus};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Tasks; without any, every task that the agent of --agent holds
    task: Vec<String>,
    /// Release every task that any agent holds
    #[arg(long, conflicts_with = "task")]
    all: bool,
    /// Why, for whoever takes it next
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if let [given] = arguments.task.as_slice() {
        let task = session.task(given)?;
        let task_id = task.id.to_string();
        let params = Params { task_id, reason: arguments.reason, ..Default::default() };
        let reply = session.ask::<ops::ReleaseTask>(&params)?;
        session.show(reply.json(), |page| page.line(format_args!("{} {task}", became(&reply))))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.task.is_empty() {
        return several(session, &arguments);
    }
    let holder = match (arguments.all, session.agent.as_deref()) {
        (true, _) => None,
        (false, Some(agent)) => Some(agent),
        (false, None) => usage_error("release what? Name a task, an agent with --agent, or --all"),
    };
    release_held(session, holder, arguments.reason.as_deref())
}

/// Releases all of these tasks, or none.
fn several(session: &Session, arguments: &Arguments) -> Outcome {
    let tasks = session.tasks(&arguments.task)?;
    let release = |task: &Named| {
        let (task_id, reason) = (task.id.to_string(), arguments.reason.clone());
        step::<ops::ReleaseTask>(&Params { task_id, reason, ..Default::default() })
    };
    let operations = tasks.iter().map(release).collect::<Result<_, _>>()?;
    let batch = apply_batch::Params { operations, ..Default::default() };
    let reply = session.ask::<ops::ApplyBatch>(&batch)?;
    let became_of = results::<ops::ReleaseTask>(&reply)?;
    session.show(reply.json(), |page| {
        for (reply, task) in became_of.iter().zip(&tasks) {
            page.line(format_args!("{} {task}", became(reply)));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What has become of a task: one whose agent was asked to stop does not go back to the queue.
fn became(reply: &Reply) -> &'static str {
    if reply.status == TaskStatus::Cancelled { "cancelled" } else { "released" }
}

/// Releases all tasks that `holder`, or anybody, holds. It acts as the person, because the agent
/// may be gone.
fn release_held(session: &Session, holder: Option<&str>, reason: Option<&str>) -> Outcome {
    let mut held = held_of(session, holder)?;
    let mut reply = release_these(session, &held, reason);
    if reply.is_err() {
        // The call also ended expired leases, so fewer tasks may be held now.
        let still = held_of(session, holder)?;
        if still.len() < held.len() {
            (reply, held) = (release_these(session, &still, reason), still);
        }
    }
    let reply = reply?;
    let became_of = results::<ops::ReleaseTask>(&reply)?;
    session.show(reply.json(), |page| {
        if held.is_empty() {
            page.line(format_args!(
                "{}",
                holder.map_or("nobody holds a task".to_owned(), |id| format!("{id} holds no task"))
            ));
        }
        for (reply, task) in became_of.iter().zip(&held) {
            page.line(format_args!("{} {}", became(reply), Named::from(task)));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn held_of(session: &Session, holder: Option<&str>) -> anyhow::Result<Vec<Task>> {
    let mut held = held_tasks(session)?;
    held.retain(|task| {
        holder.is_none_or(|holder| task.claimed_by.as_ref().is_some_and(|by| by.as_str() == holder))
    });
    Ok(held)
}

fn release_these(
    session: &Session,
    held: &[Task],
    reason: Option<&str>,
) -> anyhow::Result<Answer<Batch>> {
    if held.is_empty() {
        return Ok(Answer::of(Batch {
            success: true,
            applied: 0,
            items_written: 0,
            writes_saved: 0,
            results: Vec::new(),
        })?);
    }
    let operations = held.iter().map(|task| step::<ops::ReleaseTask>(&release_of(task, reason)));
    let operations = operations.collect::<Result<_, _>>()?;
    session.ask::<ops::ApplyBatch>(&apply_batch::Params { operations, ..Default::default() })
}

fn release_of(task: &Task, reason: Option<&str>) -> Params {
    Params { task_id: task.id.to_string(), reason: reason.map(str::to_owned), ..Default::default() }
}

impl Session {
    /// The tasks that the agent holds.
    pub(super) fn held_by(&self, agent: &str) -> anyhow::Result<Vec<Named>> {
        Ok(held_of(self, Some(agent))?.iter().map(Named::from).collect())
    }
}

fn held_tasks(session: &Session) -> anyhow::Result<Vec<Task>> {
    let mut held = Vec::new();
    for status in TaskStatus::ALL.into_iter().filter(|status| status.is_held()) {
        let query = get_all_tasks::Params { statuses: vec![status], ..Default::default() };
        let reply = session.every_page::<ops::GetAllTasks>("tasks", &query)?;
        let tasks = reply.tasks.iter().filter_map(|task| task.whole().cloned());
        // A filter by status takes results in review for work in progress.
        held.extend(tasks.filter(|task| task.status.is_held()));
    }
    Ok(held)
}
