//! `callboard report`: how the work went, in figures.

use std::num::NonZeroU32;
use std::process::ExitCode;

use super::print::{Page, Tone};
use super::{Outcome, Session, snapshot, usage_error};
use crate::ops::{self, get_report};
use crate::participant::board_time;
use crate::state::time::SECOND;
use crate::view::columns::span;
use crate::view::report::{Hour, Report, Spread, Tries};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard report\n  \
    callboard report --since 24h --scope P1\n  \
    callboard report --of claude-1 --json\n\n\
    Times of work are from a claim to its end; a task waits from when it is ready until it is \
    claimed. Tasks that have left the board are not counted.")]
pub(super) struct Arguments {
    /// Tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// Only what this agent did
    #[arg(long, value_name = "AGENT")]
    of: Option<String>,
    /// Only what ended since a time: 2026-03-01T12:00:00Z, or 30m, 2h, 3d for a span that ends now
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// List at most N tasks
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

/// Longest bar of an hour.
const BAR: usize = 40;
/// Columns before it.
const BESIDE: usize = 24;

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let now = board_time(session.dir());
    let since = arguments.since.as_deref().map(|since| {
        snapshot::moment(since, now)
            .unwrap_or_else(|| usage_error(format!("--since takes {}", snapshot::MOMENT)))
    });
    let params = get_report::Params {
        scope: arguments.scope,
        agent: arguments.of,
        since,
        limit: arguments.limit,
    };
    let reply = session.ask::<ops::GetReport>(&params)?;
    session.show(reply.json(), |page| write(page, &reply))?;
    Ok(ExitCode::SUCCESS)
}

fn write(page: &mut Page, report: &Report) {
    let Some(begun) = report.begun else {
        return page.line("no agent has worked yet; `callboard status` shows what waits");
    };
    let pace = report.done_per_hour.map(|pace| format!(", {pace} an hour")).unwrap_or_default();
    page.marked(
        &format!("{} done", report.done),
        Tone::Good,
        format!("since {}{pace}", page.when(begun)),
    );
    page.field("tries", tries(&report.tries));
    page.field("work", spread(&report.work));
    page.field("waiting", spread(&report.waiting));
    if report.retired > 0 {
        page.field(
            "not counted",
            format_args!("{} tasks that have left the board", report.retired),
        );
    }
    page.line("");
    let agents = report.agents.iter().map(|agent| {
        [
            agent.id.as_str().into(),
            agent.tries.done.into(),
            lost(&agent.tries).into(),
            told(agent.work.median).into(),
            told(agent.work.total).into(),
        ]
    });
    page.table(["agent", "done", "not done", "median", "total"], agents);
    page.line("");
    let tasks = report.tasks.rows.iter().map(|one| {
        [
            one.task.name().into(),
            told(one.work).into(),
            told(one.waiting).into(),
            one.tries.into(),
            one.agent.as_str().into(),
            one.task.title.as_str().into(),
        ]
    });
    page.table(["#", "work", "waited", "tries", "agent", "task"], tasks);
    if report.tasks.more > 0 {
        page.line(format_args!("{} more: --limit {}", report.tasks.more, report.tasks.total()));
    }
    hours(page, &report.hours);
}

fn hours(page: &mut Page, hours: &[Hour]) {
    let most = hours.iter().map(|hour| hour.done).max().unwrap_or_default();
    if most == 0 {
        return;
    }
    page.line("");
    page.line("DONE BY HOUR");
    let longest = page.room(BAR + BESIDE) - BESIDE.min(page.room(BESIDE));
    for hour in hours {
        let bar = "#".repeat((hour.done * longest).div_ceil(most.max(longest)));
        let line = format!("  {}  {:>4}  {bar}", page.clock(hour.from), hour.done);
        page.line(line.trim_end());
    }
}

fn lost(tries: &Tries) -> u64 {
    tries.failed + tries.expired + tries.released + tries.cancelled + tries.rejected
}

fn tries(tries: &Tries) -> String {
    let all = [
        (tries.done, "done"),
        (tries.failed, "failed"),
        (tries.expired, "lost"),
        (tries.released, "given back"),
        (tries.cancelled, "cancelled"),
        (tries.rejected, "rejected"),
    ];
    let told = all.into_iter().filter(|(count, _)| *count > 0);
    told.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(" · ")
}

fn spread(spread: &Spread) -> String {
    if spread.count == 0 {
        return String::new();
    }
    let [median, most, longest, total] =
        [spread.median, spread.p90, spread.longest, spread.total].map(told);
    format!("median {median} · nine of ten within {most} · longest {longest} · {total} in all")
}

fn told(seconds: i64) -> String {
    span(seconds * SECOND)
}
