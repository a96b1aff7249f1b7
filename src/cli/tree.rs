//! `callboard tree`: the tasks as parts of each other, with how far each part is.

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use super::print::{Page, Tone};
use super::tasks::{every_brief, numbers_around};
use super::{Outcome, Session};
use crate::ops;
use crate::ops::get_all_tasks::{Brief, Listed, Params};
use crate::state::hierarchy::{self, Progress};
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};
use crate::view::{Numbers, Standing};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show only tasks at or below this path
    #[arg(value_name = "PATH")]
    scope: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    show(session, arguments.scope)
}

pub(super) fn show(session: &Session, scope: Option<String>) -> Outcome {
    let query = || Params { scope: scope.clone(), ..Default::default() };
    let reply = session.every_page::<ops::GetAllTasks>("tasks", &query())?;
    let tasks: Vec<&Task> = reply.tasks.iter().filter_map(|task| Listed::whole(task)).collect();
    let briefs = if session.json { Vec::new() } else { every_brief(session, query())? };
    let drawn = Drawn::of(session, &briefs)?;
    session.show(reply.json(), |page| {
        if tasks.is_empty() {
            page.line("no tasks");
        }
        write(page, &tasks, &drawn);
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What is written beside the tasks.
struct Drawn {
    standings: HashMap<TaskId, Standing>,
    numbers: Numbers,
}

impl Drawn {
    fn of(session: &Session, briefs: &[Brief]) -> anyhow::Result<Self> {
        Ok(Self {
            standings: briefs.iter().map(|one| (one.id.clone(), one.standing())).collect(),
            numbers: numbers_around(session, &briefs.iter().collect::<Vec<_>>())?,
        })
    }
}

/// Prints each task below its parent, without tasks that the plan has dropped.
fn write(page: &mut Page, tasks: &[&Task], drawn: &Drawn) {
    let there: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let mut below: HashMap<Option<&TaskId>, Vec<&Task>> = HashMap::new();
    for task in tasks.iter().copied().filter(|task| task.status != TaskStatus::Obsolete) {
        below
            .entry(task.parent.as_ref().filter(|parent| there.contains(parent)))
            .or_default()
            .push(task);
    }
    for parts in below.values_mut() {
        parts.sort_by_cached_key(|task| {
            task.path.as_deref().map(|path| (0, hierarchy::numbers(path))).unwrap_or((1, None))
        });
    }
    let tops = below.get(&None).cloned().unwrap_or_default();
    let mut open: Vec<(&Task, usize)> = tops.into_iter().rev().map(|task| (task, 0)).collect();
    while let Some((task, depth)) = open.pop() {
        let parts = below.get(&Some(&task.id)).map(Vec::as_slice).unwrap_or_default();
        let path = task.path.as_ref().map(|path| format!("{path} ")).unwrap_or_default();
        let name = drawn.numbers.name(&task.id);
        let lead = format!("{}{path}{name}", "  ".repeat(depth));
        if parts.is_empty() {
            let standing = drawn.standings.get(&task.id);
            let word = standing.map_or_else(
                || task.status.to_string(),
                |standing| standing.words(|at| page.clock(at), &drawn.numbers),
            );
            let tone = standing.map_or_else(|| Tone::of(task.status), Standing::tone);
            page.entry(&lead, &word, tone, task.headline());
        } else {
            let progress = progress(task, &below);
            let word = match progress.status(task.status) {
                TaskStatus::Available => "open",
                other => other.as_str(),
            };
            let tone = Tone::of(progress.status(task.status));
            let done = format!(
                "{} % ({} of {}) {}",
                progress.percent,
                progress.done,
                progress.tasks,
                task.headline()
            );
            page.entry(&lead, word, tone, done);
        }
        // A chain of parents that forms a cycle is in no list that begins at the top, so this ends.
        open.extend(parts.iter().rev().map(|part| (*part, depth + 1)));
    }
}

fn progress(task: &Task, below: &HashMap<Option<&TaskId>, Vec<&Task>>) -> Progress {
    let mut progress = Progress::default();
    let mut open = vec![task];
    while let Some(task) = open.pop() {
        match below.get(&Some(&task.id)) {
            Some(parts) => open.extend(parts),
            None => progress.count(task.status),
        }
    }
    progress
}
