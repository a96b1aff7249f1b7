//! `callboard tree`: the tasks as parts of each other, with how far each part is.

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use super::print::{Page, Tone};
use super::target::Target;
use super::tasks::{every_brief, numbers_around};
use super::{Outcome, Session};
use crate::ops;
use crate::ops::get_all_tasks::{Brief, Listed, Params};
use crate::state::hierarchy::{self, Progress};
use crate::state::id::TaskId;
use crate::state::task::{Named, Task, TaskStatus};
use crate::view::{Numbers, Standing};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show only this task with its parts, or, if it has none, the part of the board that it is in
    #[arg(value_name = "TASK|PATH")]
    task: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.task.map(|given| session.task_or_scope(&given)).transpose()? {
        None => show(session, None),
        Some(Target::Scope(scope)) => show(session, Some(scope)),
        Some(Target::Task(task)) => around(session, &task),
    }
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

/// Shows the task and what is below it; of one without parts, what it is a part of.
fn around(session: &Session, named: &Named) -> Outcome {
    let reply = session.every_page::<ops::GetAllTasks>("tasks", &Params::default())?;
    let all: Vec<&Task> = reply.tasks.iter().filter_map(|task| Listed::whole(task)).collect();
    let has_parts = all.iter().any(|task| task.parent.as_ref() == Some(&named.id));
    let itself = all.iter().find(|task| task.id == named.id);
    let above = itself.and_then(|task| task.parent.as_ref()).filter(|_| !has_parts);
    let top = above.unwrap_or(&named.id);
    let tasks = at_or_below(&all, top);
    let mut json = reply.json().clone();
    if let Some(listed) = json["tasks"].as_array_mut() {
        let wanted: HashSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        listed.retain(|task| task["id"].as_str().is_some_and(|id| wanted.contains(id)));
    }
    let briefs = if session.json { Vec::new() } else { every_brief(session, Params::default())? };
    let drawn = Drawn::of(session, &briefs)?;
    session.show(&json, |page| {
        if !tasks.iter().any(|task| is_drawn(task)) {
            let show = session.wording.command(&format!("show {}", named.short()));
            page.line(format_args!("{named} is in no tree any more; {show} has it"));
        }
        write(page, &tasks, &drawn);
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The task `top` and all that are below it, in the order of `tasks`.
fn at_or_below<'t>(tasks: &[&'t Task], top: &TaskId) -> Vec<&'t Task> {
    let mut parts: HashMap<&TaskId, Vec<&TaskId>> = HashMap::new();
    for task in tasks {
        if let Some(parent) = &task.parent {
            parts.entry(parent).or_default().push(&task.id);
        }
    }
    let (mut wanted, mut open) = (HashSet::new(), vec![top]);
    while let Some(id) = open.pop() {
        if wanted.insert(id) {
            open.extend(parts.get(id).into_iter().flatten());
        }
    }
    tasks.iter().copied().filter(|task| wanted.contains(&task.id)).collect()
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

fn is_drawn(task: &Task) -> bool {
    task.status != TaskStatus::Obsolete
}

/// Prints each task below its parent, without tasks that the plan has dropped.
fn write(page: &mut Page, tasks: &[&Task], drawn: &Drawn) {
    let there: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let mut below: HashMap<Option<&TaskId>, Vec<&Task>> = HashMap::new();
    for task in tasks.iter().copied().filter(|task| is_drawn(task)) {
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
        let progress = Some(progress(task, &below)).filter(|_| !parts.is_empty());
        let counted = progress.as_ref().map_or_else(String::new, |progress| {
            format!("{} % ({} of {}) ", progress.percent, progress.done, progress.tasks)
        });
        let text = format!("{counted}{}", task.headline());
        let group = progress.filter(|_| !task.is_own_work());
        if let Some(progress) = group {
            let word = match progress.status(task.status) {
                TaskStatus::Available => "open",
                other => other.as_str(),
            };
            let tone = Tone::of(progress.status(task.status));
            page.entry(&lead, word, tone, text);
        } else {
            let standing = drawn.standings.get(&task.id);
            let word = standing.map_or_else(
                || task.status.to_string(),
                |standing| standing.words(|at| page.clock(at), &drawn.numbers),
            );
            let tone = standing.map_or_else(|| Tone::of(task.status), Standing::tone);
            page.entry(&lead, &word, tone, text);
        }
        // A chain of parents that forms a cycle is in no list that begins at the top, so this ends.
        open.extend(parts.iter().rev().map(|part| (*part, depth + 1)));
    }
}

fn progress(task: &Task, below: &HashMap<Option<&TaskId>, Vec<&Task>>) -> Progress {
    let mut progress = Progress::default();
    let mut open = vec![task];
    while let Some(one) = open.pop() {
        let parts = below.get(&Some(&one.id));
        open.extend(parts.into_iter().flatten());
        if parts.is_none() || one.is_own_work() && one.id != task.id {
            progress.count(one.status);
        }
    }
    progress
}
