use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::print::{Column, Page, Tone};
use super::{Outcome, Session};
use crate::state::hierarchy::{self, Progress};
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

#[derive(clap::Args)]
pub struct Arguments {
    /// List only tasks with this status
    #[arg(long, value_parser = PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str)))]
    status: Option<String>,
    /// List only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// List every page, not only the first
    #[arg(long)]
    all: bool,
    /// Print a tree of phases, milestones, tasks and subtasks, with the progress of each
    #[arg(long, conflicts_with = "status")]
    tree: bool,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let query = json!({"status_filter": arguments.status.as_deref().unwrap_or("all"), "scope": arguments.scope});
    let reply = match arguments.all || arguments.tree {
        true => session.every_page("get_all_tasks", "tasks", &query)?,
        false => session.call("get_all_tasks", query)?,
    };
    let tasks: Vec<Task> = serde_json::from_value(reply["tasks"].clone())?;
    session.show(&reply, |page| {
        if tasks.is_empty() {
            page.line("no tasks");
            return;
        }
        if arguments.tree {
            return tree(page, &tasks);
        }
        page.table(["id", "status", "prio", "agent", "attempt", "task"], tasks.iter().map(row));
        if reply.get("next").is_some_and(Value::is_string) {
            page.line(format_args!("the first {}; --all shows the rest", tasks.len()));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints each task below its parent, without tasks that the plan has dropped.
fn tree(page: &mut Page, tasks: &[Task]) {
    let there: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let mut below: HashMap<Option<&TaskId>, Vec<&Task>> = HashMap::new();
    for task in tasks.iter().filter(|task| task.status != TaskStatus::Obsolete) {
        below.entry(task.parent.as_ref().filter(|parent| there.contains(parent))).or_default().push(task);
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
        let lead = format!("{}{path}{}", "  ".repeat(depth), task.id);
        if parts.is_empty() {
            page.entry(&lead, task.status.as_str(), Tone::of(task.status), task.headline());
        } else {
            let progress = progress(task, &below);
            let word = progress.word(task.status);
            let tone = if word == task.status.as_str() { Tone::of(task.status) } else { Tone::Busy };
            let done = format!("{} % ({} of {}) {}", progress.percent, progress.done, progress.tasks, task.headline());
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

fn row(task: &Task) -> [Column; 6] {
    let agent = task.claimed_by.as_ref().map(ToString::to_string).unwrap_or_default();
    let attempt =
        if task.attempt == 0 { String::new() } else { format!("{}/{}", task.attempts_used(), task.max_attempts) };
    [
        task.id.as_str().into(),
        Column::toned(task.status, Tone::of(task.status)),
        task.priority.into(),
        agent.into(),
        attempt.into(),
        task.headline().into(),
    ]
}
