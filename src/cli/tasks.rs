use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::print::{Column, Page, Tone, or_empty};
use super::{Outcome, Session, of_word, snapshot, usage_error};
use crate::ops::get_all_tasks::{Listed, Params};
use crate::ops::{self, SORTS, Sort};
use crate::participant::board_time;
use crate::state::hierarchy::{self, Progress};
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard tasks --ready --sort priority\n  \
    callboard tasks --status failed --status cancelled --changed-since 2h\n  \
    callboard tasks --of claude-1 --search 'parser error' --json")]
pub(super) struct Arguments {
    /// List only tasks with this status; may be repeated
    #[arg(long, value_delimiter = ',',
        value_parser = PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str))
            .try_map(of_word::<TaskStatus>))]
    status: Vec<TaskStatus>,
    /// List only tasks that can be claimed now; with --blocked or --waiting those, too
    #[arg(long)]
    ready: bool,
    /// List only tasks that wait for a dependency
    #[arg(long)]
    blocked: bool,
    /// List only tasks that wait for a retry time
    #[arg(long)]
    waiting: bool,
    /// List only tasks that this agent holds or had last
    #[arg(long, value_name = "AGENT")]
    of: Option<String>,
    /// List only tasks with this tag; may be repeated to match any of them
    #[arg(long)]
    tag: Vec<String>,
    /// List only tasks that contain all these words, in any of their texts
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// List only tasks of this priority, or of a range such as 1-3
    #[arg(long, value_name = "N|N-M", value_parser = priorities)]
    priority: Option<(i64, i64)>,
    /// List only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// List only the direct parts of this task
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// List only tasks created since a time: 2026-03-01T12:00:00Z, or 30m, 2h, 3d for a span that
    /// ends now
    #[arg(long, value_name = "TIME")]
    created_since: Option<String>,
    /// List only tasks changed since a time
    #[arg(long, value_name = "TIME")]
    changed_since: Option<String>,
    /// Order of the list
    #[arg(long, value_name = "BY", value_parser = PossibleValuesParser::new(SORTS).try_map(of_word::<Sort>),
        default_value = "created")]
    sort: Sort,
    /// Turn the order round
    #[arg(long)]
    reverse: bool,
    /// Lists are complete without it, too
    #[arg(long, hide = true)]
    all: bool,
    /// Print a tree of phases, milestones, tasks and subtasks, with the progress of each
    #[arg(long, conflicts_with_all = NOT_OF_TREES)]
    tree: bool,
}

/// Options that would leave holes in a tree.
const NOT_OF_TREES: [&str; 13] = [
    "status",
    "ready",
    "blocked",
    "waiting",
    "of",
    "tag",
    "search",
    "priority",
    "parent",
    "created_since",
    "changed_since",
    "sort",
    "reverse",
];

/// The first and the last priority of a range.
fn priorities(given: &str) -> Result<(i64, i64), String> {
    let (first, last) = given.split_once('-').unwrap_or((given, given));
    let number =
        |text: &str| text.trim().parse::<i64>().ok().filter(|number| (1..=10).contains(number));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("a priority is 1 (first) to 10 (last), a range such as 1-3".to_owned()),
    }
}

/// The time that an option gives, or a usage error.
pub(super) fn time(option: &str, given: Option<&str>, now: Timestamp) -> Option<Timestamp> {
    let given = given?;
    let time = snapshot::moment(given, now);
    Some(time.unwrap_or_else(|| {
        usage_error(format!("{option} takes a time or a span, such as 2026-03-01T12:00:00Z or 2h"))
    }))
}

fn query(arguments: &Arguments, now: Timestamp) -> Params {
    let (min_priority, max_priority) = arguments.priority.unzip();
    Params {
        statuses: arguments.status.clone(),
        ready: arguments.ready,
        blocked: arguments.blocked,
        waiting: arguments.waiting,
        agent: arguments.of.clone(),
        tags: arguments.tag.clone(),
        text: arguments.search.clone(),
        min_priority,
        max_priority,
        scope: arguments.scope.clone(),
        parent: arguments.parent.clone(),
        created_since: time("--created-since", arguments.created_since.as_deref(), now),
        changed_since: time("--changed-since", arguments.changed_since.as_deref(), now),
        sort: arguments.sort,
        descending: arguments.reverse,
        ..Default::default()
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let query = query(&arguments, board_time(session.dir()));
    let reply = session.every_page::<ops::GetAllTasks>("tasks", &query)?;
    let tasks: Vec<&Task> = reply.tasks.iter().filter_map(|task| Listed::whole(task)).collect();
    session.show(reply.json(), |page| {
        if tasks.is_empty() {
            page.line("no tasks");
            return;
        }
        if arguments.tree {
            return tree(page, &tasks);
        }
        page.table(
            ["id", "status", "prio", "agent", "attempt", "task"],
            tasks.iter().copied().map(row),
        );
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints each task below its parent, without tasks that the plan has dropped.
fn tree(page: &mut Page, tasks: &[&Task]) {
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
        let lead = format!("{}{path}{}", "  ".repeat(depth), task.id);
        if parts.is_empty() {
            page.entry(&lead, task.status.as_str(), Tone::of(task.status), task.headline());
        } else {
            let progress = progress(task, &below);
            let word = progress.word(task.status);
            let tone =
                if word == task.status.as_str() { Tone::of(task.status) } else { Tone::Busy };
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

fn row(task: &Task) -> [Column; 6] {
    let attempt = if task.attempt == 0 {
        String::new()
    } else {
        format!("{}/{}", task.attempts_used(), task.max_attempts)
    };
    [
        task.id.as_str().into(),
        Column::toned(task.status, Tone::of(task.status)),
        task.priority.into(),
        or_empty(task.claimed_by.as_ref()).into(),
        attempt.into(),
        task.headline().into(),
    ]
}
