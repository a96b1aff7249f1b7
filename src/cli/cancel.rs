//! `callboard cancel`: ends tasks, or the open tasks of a scope.

use std::collections::HashSet;
use std::process::ExitCode;

use super::ask::step;
use super::print::{Page, Tone, listed};
use super::target::{Hits, Target, is_all};
use super::{Declined, Outcome, Session, tasks};
use crate::ops::cancel_task::Params;
use crate::ops::get_all_tasks::{self, Brief};
use crate::ops::{self, apply_batch};
use crate::state::id::TaskId;
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard cancel 12 --reason 'the parser does it already'\n  \
    callboard cancel 12 13\n  \
    callboard cancel P4\n  \
    callboard cancel 12 --ask-owner\n\n\
    On a terminal it asks before it ends more than one task, or one that an agent works on.")]
pub(super) struct Arguments {
    /// Tasks, with their parts; or paths, whose open tasks are meant. All are cancelled, or none
    #[arg(value_name = "TASK|PATH", required = true)]
    task: Vec<String>,
    /// Reason, kept with each task
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// If an agent holds one, ask that agent to stop instead of ending its attempt at once
    #[arg(long)]
    ask_owner: bool,
    /// Cancel without asking
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let is_open = |status: &TaskStatus| status.is_unfinished() || *status == TaskStatus::Failed;
    let open: Vec<_> = TaskStatus::ALL.into_iter().filter(is_open).collect();
    let mut hits = Hits::default();
    for given in &arguments.task {
        match session.target(given)? {
            Target::Task(task) => hits.extend(session.parts_or_itself(&task, &open)?),
            Target::Scope(scope) => hits.extend(session.leaves(Some(&scope), &open)?),
        }
    }
    if hits.tasks.is_empty() {
        let given = arguments.task.join(", ");
        let why = format!("no task at or below {given} is open; `callboard tasks` lists all");
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    let all = arguments.task.iter().any(|given| is_all(given));
    let is_large = hits.tasks.len() > 1 || hits.tasks.iter().any(|hit| hit.agent.is_some());
    if is_large && !arguments.yes {
        let given = arguments.task.iter().map(String::as_str);
        let words: Vec<_> = ["cancel"].into_iter().chain(given).collect();
        session.confirm("cancel", &words, &hits, all)?;
    }
    let request = |hit: &Brief| Params {
        task_id: hit.id.to_string(),
        reason: arguments.reason.clone(),
        ask_owner: arguments.ask_owner,
        ..Default::default()
    };
    let reply = match hits.tasks.as_slice() {
        [hit] => session.ask::<ops::CancelTask>(&request(hit))?.into_json(),
        tasks => {
            let operations = tasks.iter().map(|hit| step::<ops::CancelTask>(&request(hit)));
            let operations = operations.collect::<Result<_, _>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            session.ask::<ops::ApplyBatch>(&batch)?.into_json()
        }
    };
    let left = if session.json { Vec::new() } else { waiting_for(session, &hits)? };
    session.show(&reply, |page| {
        for hit in &hits.tasks {
            tell(page, hit, arguments.ask_owner);
        }
        say_left(page, session, &left);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn tell(page: &mut Page, hit: &Brief, ask_owner: bool) {
    let task = Named::from(hit);
    match &hit.agent {
        Some(agent) if ask_owner => {
            page.line(format_args!("{agent} is asked to stop {task}, which ends then"));
        }
        Some(agent) => {
            let told = format!("{task}; {agent} worked on it and hears it with its next call");
            page.marked("cancelled", Tone::Over, told);
        }
        None if hit.status == TaskStatus::Cancelled => {
            page.marked("cancelled before:", Tone::Over, task);
        }
        None => page.marked("cancelled", Tone::Over, task),
    }
}

/// The open tasks that wait for one that was cancelled.
fn waiting_for(session: &Session, hits: &Hits) -> anyhow::Result<Vec<Brief>> {
    let over: HashSet<&TaskId> = hits.tasks.iter().map(|hit| &hit.id).collect();
    let query = get_all_tasks::Params { blocked: true, ..Default::default() };
    let mut waiting = tasks::every_brief(session, query)?;
    waiting.retain(|one| one.blocked_by.iter().any(|by| over.contains(by)));
    Ok(waiting)
}

fn say_left(page: &mut Page, session: &Session, left: &[Brief]) {
    let Some(first) = left.first() else { return };
    let names: Vec<_> = left.iter().take(5).map(|one| Named::from(one).to_string()).collect();
    let more = left.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    page.marked("now stuck:", Tone::Bad, format!("{}{more}", listed(&names)));
    let first = Named::from(first).short();
    let free = session.wording.command(&format!("edit {first} --no-depends"));
    page.line(format_args!("{free} lets one wait for nothing"));
}
