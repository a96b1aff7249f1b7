use std::num::NonZeroU32;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

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
    /// List only tasks with this status, as it is shown; may be repeated
    #[arg(long, value_delimiter = ',', ignore_case = true,
        value_parser = PossibleValuesParser::new(words_of_status()).map(|word| Shown::of(&word)))]
    status: Vec<Shown>,
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
    /// List at most N
    #[arg(long, value_name = "N", value_parser = super::page_size(), conflicts_with_all = ["tree", "graph"])]
    limit: Option<NonZeroU32>,
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
    Some(time.unwrap_or_else(|| usage_error(format!("{option} takes {}", snapshot::MOMENT))))
}

/// What --status says: statuses of the board, or a word of how an open task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Ready,
    Blocked,
    Waiting,
    Are(&'static [TaskStatus]),
}

/// Words of --status, each with those that mean the same in other tools.
const STATUSES: [(&str, &[&str], Shown); 14] = {
    use TaskStatus::{Available, Cancelled, Claimed, Done, Failed, InProgress, Obsolete, Review};
    [
        ("ready", &["claimable", "free", "next"], Shown::Ready),
        ("blocked", &["stalled"], Shown::Blocked),
        ("waiting", &["delayed", "scheduled"], Shown::Waiting),
        (
            "open",
            &["unfinished", "pending", "incomplete", "unresolved", "not-done", "remaining"],
            Shown::Are(&[Available, Claimed, InProgress, Review]),
        ),
        ("available", &["todo", "to-do", "backlog", "new", "unclaimed"], Shown::Are(&[Available])),
        ("claimed", &["taken"], Shown::Are(&[Claimed])),
        ("in_progress", &["in-progress", "inprogress", "started"], Shown::Are(&[InProgress])),
        (
            "doing",
            &["wip", "running", "working", "in-work", "active", "ongoing", "current", "held"],
            Shown::Are(&[Claimed, InProgress]),
        ),
        ("review", &["in-review", "in_review", "reviewing"], Shown::Are(&[Review])),
        (
            "done",
            &["closed", "completed", "complete", "finished", "resolved", "merged", "success"],
            Shown::Are(&[Done]),
        ),
        ("failed", &["failure", "error", "failing", "broken"], Shown::Are(&[Failed])),
        ("cancelled", &["canceled", "dropped", "wontfix", "abandoned"], Shown::Are(&[Cancelled])),
        ("obsolete", &["superseded", "outdated"], Shown::Are(&[Obsolete])),
        ("ended", &["over"], Shown::Are(&[Done, Failed, Cancelled, Obsolete])),
    ]
};

fn words_of_status() -> [PossibleValue; STATUSES.len()] {
    STATUSES.map(|(word, others, _)| PossibleValue::new(word).aliases(others.iter().copied()))
}

/// Whether --status takes the word.
pub(super) fn is_status(word: &str) -> bool {
    words_of_status().iter().any(|value| value.matches(word, true))
}

impl Shown {
    fn of(word: &str) -> Self {
        let known = STATUSES.into_iter().zip(words_of_status());
        let mut found = known.filter(|(_, value)| value.matches(word, true));
        found.next().map_or(Self::Are(&[]), |((.., shown), _)| shown)
    }
}

fn query(arguments: &Arguments, now: Timestamp) -> Params {
    let (min_priority, max_priority) = arguments.priority.unzip();
    let failed = arguments.failed.then_some(Shown::Are(&[TaskStatus::Failed]));
    let wanted: Vec<_> = arguments.status.iter().cloned().chain(failed).collect();
    let is = |shown: &Shown| wanted.contains(shown);
    let statuses: Vec<TaskStatus> = wanted
        .iter()
        .flat_map(|shown| if let Shown::Are(all) = shown { *all } else { &[] })
        .copied()
        .collect();
    if !statuses.is_empty() && (is(&Shown::Ready) || is(&Shown::Blocked) || is(&Shown::Waiting)) {
        usage_error(
            "ready, blocked and waiting are said of available tasks: leave the other words of \
             --status out",
        );
    }
    Params {
        statuses,
        ready: arguments.ready || is(&Shown::Ready),
        blocked: arguments.blocked || is(&Shown::Blocked),
        waiting: arguments.waiting || is(&Shown::Waiting),
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
    let now = board_time(session.dir());
    let agent = session.agents_named(arguments.of.as_slice(), "tasks --of")?.pop();
    let query = Params { parent, agent, limit: arguments.limit, ..query(&arguments, now) };
    // A page, if one was asked for, else all of them.
    let ask = |query: &Params| match arguments.limit {
        Some(_) => session.ask::<ops::GetAllTasks>(query),
        None => session.every_page::<ops::GetAllTasks>("tasks", query),
    };
    if session.json {
        session.show(ask(&query)?.json(), |_| ())?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply = ask(&Params { brief: true, ..query })?;
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
