//! `callboard agents`: who does what. The person is none of them.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::process::ExitCode;

use serde_json::json;

use super::print::{Column, Page, Tone, headline};
use super::{Outcome, Session};
use crate::ops;
use crate::ops::get_agents::{Item, Params};
use crate::ops::get_board;
use crate::state::agent::Waiting;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::time::Timestamp;
use crate::view::columns::span;
use crate::view::{AgentRow, Sign};

#[derive(Default, clap::Args)]
pub(super) struct Arguments {
    /// List those whose sessions have ended, too
    #[arg(long)]
    all: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let reply = session.every_page::<ops::GetAgents>("agents", &Params::default())?;
    if session.json {
        session.show(reply.json(), |_| ())?;
        return Ok(ExitCode::SUCCESS);
    }
    let params =
        get_board::Params { limit: NonZeroU32::new(limit::PAGE.max as u32), ..Default::default() };
    let board = session.ask::<ops::GetBoard>(&params)?;
    let others = reply.agents.iter().filter(|item| item.agent.id.as_str() != HUMAN);
    let mut others: HashMap<&AgentId, &Item> =
        others.map(|item| (&item.agent.id, &**item)).collect();
    session.show(&json!({"warning": reply.json()["warning"]}), |page| {
        let here = board.agents.rows.iter();
        let mut rows: Vec<_> = here
            .filter_map(|row| Some(cells(page, board.now, others.remove(&row.id)?, Some(row))))
            .collect();
        let mut ended: Vec<_> = others.into_values().collect();
        ended.sort_by_key(|item| std::cmp::Reverse(item.agent.last_heartbeat));
        if arguments.all {
            rows.extend(ended.iter().map(|item| cells(page, board.now, item, None)));
        }
        if rows.is_empty() && ended.is_empty() {
            page.line("no agents");
            return;
        }
        if !rows.is_empty() {
            let head = ["id", "role", "state", "for", "last sign", "done", "failed", "task"];
            page.table(head, rows.into_iter());
        }
        for (row, at) in board.agents.rows.iter().filter_map(|row| Some((row, row.paused?))) {
            let resume = session.wording.command(&format!("resume {}", row.id));
            let (word, when) =
                (if row.stop_asked.is_some() { "stopped:" } else { "paused:" }, page.when(at));
            page.marked(
                word,
                Tone::Busy,
                format_args!("{} {when}; {resume} lets it have tasks", row.id),
            );
        }
        let waiting = board.agents.rows.iter();
        for (row, waiting) in waiting.filter_map(|row| Some((row, row.waits.as_ref()?))) {
            page.marked("waiting:", Tone::Busy, waits(page, &format!("{} ", row.id), waiting));
        }
        if !arguments.all && !ended.is_empty() {
            let all = session.wording.command("agents --all");
            page.line(format_args!("{} ended: {all} lists them", ended.len()));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What `who` waits for a person for, since when and where; `who` may be empty.
pub(super) fn waits(page: &Page, who: &str, waiting: &Waiting) -> String {
    let what =
        waiting.what.as_ref().map(|what| format!(": {}", headline(what))).unwrap_or_default();
    let place = waiting.place.as_ref().map(|place| format!("; in {place}")).unwrap_or_default();
    format!("{who}for {}, asked {}{what}{place}", waiting.reason.as_str(), page.when(waiting.since))
}

/// One row of the table; without a row of the board, of an agent whose session has ended.
fn cells(page: &Page, now: Timestamp, item: &Item, row: Option<&AgentRow>) -> [Column; 8] {
    let agent = &item.agent;
    let (state, tone) = standing(row);
    let state = Column::toned(state, tone);
    let since = row.and_then(|row| row.since);
    [
        agent.id.as_str().into(),
        agent.role.as_str().into(),
        state,
        since.map(|since| span(now.since(since))).unwrap_or_default().into(),
        page.when(agent.last_heartbeat).into(),
        agent.tasks_completed.into(),
        agent.tasks_failed.into(),
        row.map(doing).unwrap_or_default().into(),
    ]
}

/// How an agent is doing; without a row of the board, its session has ended.
fn standing(row: Option<&AgentRow>) -> (&'static str, Tone) {
    match row.map(|row| row.sign) {
        Some(Sign::Idle) if row.is_some_and(|row| row.paused.is_some()) => ("paused", Tone::Busy),
        Some(Sign::Waiting) => ("waiting", Tone::Busy),
        Some(Sign::Gone) => ("gone", Tone::Bad),
        Some(Sign::Quiet) => ("quiet", Tone::Bad),
        Some(Sign::Working) => ("working", Tone::Good),
        Some(Sign::Idle) => ("idle", Tone::Plain),
        None => ("ended", Tone::Over),
    }
}

/// Writes everything about one agent.
pub(super) fn write(page: &mut Page, item: &Item, row: Option<&AgentRow>) {
    let agent = &item.agent;
    let (state, tone) = standing(row);
    page.marked(state, tone, &agent.id);
    page.field("role", agent.role.as_str());
    page.field("task", row.map(doing).unwrap_or_default());
    page.field("branch", row.and_then(|row| row.branch.as_deref()).unwrap_or_default());
    let since = row.and_then(|row| row.since).map(|since| page.when(since));
    page.field("claimed", since.unwrap_or_default());
    if let Some(waiting) = row.and_then(|row| row.waits.as_ref()) {
        let told = waits(page, "", waiting);
        page.field("waits", told);
    }
    page.field("asks", row.and_then(|row| row.asks.as_deref()).unwrap_or_default());
    let asked = row.and_then(|row| row.stop_asked).map(|at| page.when(at));
    page.field("asked to stop", asked.unwrap_or_default());
    let last = page.when(agent.last_heartbeat);
    page.field("last sign", last);
    page.field("done", agent.tasks_completed);
    page.field("failed", agent.tasks_failed);
}

/// The agent's task, and its newest note on it.
fn doing(row: &AgentRow) -> String {
    let Some(task) = &row.task else { return String::new() };
    let others = if row.others > 0 { format!(" and {} more", row.others) } else { String::new() };
    let note = row.note.as_ref().map(|note| format!("; \"{note}\"")).unwrap_or_default();
    format!("{} {}{others}{note}", task.name(), task.title)
}
