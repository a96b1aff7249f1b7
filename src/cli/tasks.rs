use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::print::{Column, Page, or_empty};
use super::{Outcome, Session, exchange, of_word, snapshot, tree, usage_error};
use crate::ops::get_all_tasks::{Brief, Params};
use crate::ops::{self, SORTS, Sort};
use crate::participant::board_time;
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;
use crate::view::Numbers;

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
    /// List only tasks that failed
    #[arg(long, conflicts_with_all = ["status", "ready", "blocked", "waiting"])]
    failed: bool,
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
    #[arg(long, value_name = "TASK")]
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
    /// Print a graph of what waits for what: mermaid or dot
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "mermaid",
        value_parser = ["mermaid", "dot"], conflicts_with_all = NOT_OF_TREES)]
    graph: Option<String>,
}

/// Options that would leave holes in a tree.
const NOT_OF_TREES: [&str; 14] = [
    "failed",
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
        statuses: if arguments.failed {
            vec![TaskStatus::Failed]
        } else {
            arguments.status.clone()
        },
        ready: arguments.ready,
        blocked: arguments.blocked,
        waiting: arguments.waiting,
        agent: arguments.of.clone(),
        tags: arguments.tag.clone(),
        text: arguments.search.clone(),
        min_priority,
        max_priority,
        scope: arguments.scope.clone(),
        created_since: time("--created-since", arguments.created_since.as_deref(), now),
        changed_since: time("--changed-since", arguments.changed_since.as_deref(), now),
        sort: arguments.sort,
        descending: arguments.reverse,
        ..Default::default()
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if let Some(format) = &arguments.graph {
        return exchange::export::to_output(session, format);
    }
    if arguments.tree {
        return tree::show(session, arguments.scope);
    }
    let parent = session.task_id(arguments.parent.as_deref())?;
    let query = Params { parent, ..query(&arguments, board_time(session.dir())) };
    if session.json {
        let reply = session.every_page::<ops::GetAllTasks>("tasks", &query)?;
        session.show(reply.json(), |_| ())?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply =
        session.every_page::<ops::GetAllTasks>("tasks", &Params { brief: true, ..query })?;
    let briefs: Vec<&Brief> = reply.tasks.iter().filter_map(|task| task.brief()).collect();
    let numbers = numbers_around(session, &briefs)?;
    session.show(reply.json(), |page| {
        if briefs.is_empty() {
            page.line("no tasks");
            return;
        }
        let rows: Vec<_> = briefs.iter().map(|brief| row(page, brief, &numbers)).collect();
        page.table(["#", "status", "prio", "agent", "task"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}

/// All tasks that the query wants, in one line each.
pub(super) fn every_brief(session: &Session, query: Params) -> anyhow::Result<Vec<Brief>> {
    let query = Params { brief: true, ..query };
    let tasks = session.every_page::<ops::GetAllTasks>("tasks", &query)?.reply.tasks;
    Ok(tasks.into_iter().filter_map(|task| task.into_entry().into_brief()).collect())
}

pub(super) fn numbers<'b>(briefs: impl Iterator<Item = &'b Brief>) -> Numbers {
    Numbers::of(briefs.map(|brief| (&brief.id, brief.number)))
}

/// Numbers of the tasks, and of those that they wait for, which may not be in the list.
pub(super) fn numbers_around(session: &Session, briefs: &[&Brief]) -> anyhow::Result<Numbers> {
    let known = numbers(briefs.iter().copied());
    if briefs.iter().flat_map(|brief| &brief.blocked_by).all(|id| known.knows(id)) {
        return Ok(known);
    }
    Ok(numbers(every_brief(session, Params::default())?.iter()))
}

fn row(page: &Page, brief: &Brief, numbers: &Numbers) -> [Column; 5] {
    let standing = brief.standing();
    [
        numbers.name(&brief.id).into(),
        Column::toned(standing.words(|at| page.clock(at), numbers), standing.tone()),
        brief.priority.into(),
        or_empty(brief.agent.as_ref()).into(),
        brief.title.as_str().into(),
    ]
}
