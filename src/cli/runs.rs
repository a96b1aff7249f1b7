use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use super::print::{Column, Page, Tone, or_empty};
use super::{Outcome, Session, of_word, tasks};
use crate::ops::get_run::RunView;
use crate::ops::{self, get_run, get_session, list_runs, list_sessions, stop_run};
use crate::participant::board_time;
use crate::state::run::RunStatus;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// List only runs of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// List only runs with this status
    #[arg(long,
        value_parser = PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::as_str))
            .try_map(of_word::<RunStatus>))]
    status: Option<RunStatus>,
    /// List only runs that this runner has, or had last
    #[arg(long, value_name = "AGENT", alias = "runner")]
    of: Option<String>,
    /// List only runs created since a time: 2026-03-01T12:00:00Z, or 30m, 2h, 3d for a span that
    /// ends now
    #[arg(long, value_name = "TIME")]
    created_since: Option<String>,
    /// List only runs created before a time
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,
    /// List only runs that ended since a time
    #[arg(long, value_name = "TIME")]
    completed_since: Option<String>,
    /// List only runs that ended before a time
    #[arg(long, value_name = "TIME")]
    completed_before: Option<String>,
    /// Lists are complete without it, too
    #[arg(long, hide = true)]
    all: bool,
}

#[derive(clap::Args)]
pub(super) struct One {
    /// Id of the run, as `callboard runs` lists it
    id: String,
    /// Seconds to wait for its end
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = super::wait_seconds())]
    wait: u64,
    /// Stop the run: a pending one at once, a running one by its runner
    #[arg(long, conflicts_with = "wait")]
    stop: bool,
    /// Why it is stopped
    #[arg(long, requires = "stop")]
    reason: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Sessions {
    /// Show this session: its runs, where it continues, and the sessions it has started
    id: Option<String>,
    /// Stop what the session has under way: a pending run at once, a running one by its runner
    #[arg(long, requires = "id")]
    stop: bool,
    /// Why it is stopped
    #[arg(long, requires = "stop")]
    reason: Option<String>,
    /// Lists are complete without it, too
    #[arg(long, hide = true)]
    all: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let now = board_time(session.dir());
    let time = |option, given: &Option<String>| tasks::time(option, given.as_deref(), now);
    let query = list_runs::Params {
        created_since: time("--created-since", &arguments.created_since),
        created_before: time("--created-before", &arguments.created_before),
        completed_since: time("--completed-since", &arguments.completed_since),
        completed_before: time("--completed-before", &arguments.completed_before),
        session_id: arguments.session,
        status: arguments.status,
        runner_id: arguments.of,
        ..Default::default()
    };
    let reply = session.every_page::<ops::ListRuns>("runs", &query)?;
    session.show(reply.json(), |page| table(page, reply.runs.iter().map(|run| &**run)))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn one(session: &Session, arguments: One) -> Outcome {
    let One { id: run_id, wait: wait_seconds, stop, reason } = arguments;
    if stop {
        let run_id = Some(run_id);
        return self::stop(session, &stop_run::Params { run_id, reason, ..Default::default() });
    }
    let reply = session.ask::<ops::GetRun>(&get_run::Params { run_id, wait_seconds })?;
    session.show(reply.json(), |page| details(page, &reply.run))?;
    Ok(ExitCode::SUCCESS)
}

fn stop(session: &Session, params: &stop_run::Params) -> Outcome {
    let reply = session.ask::<ops::StopRun>(params)?;
    session
        .show(reply.json(), |page| page.marked(reply.status.as_str(), Tone::Over, &reply.run_id))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn sessions(session: &Session, arguments: Sessions) -> Outcome {
    if arguments.stop {
        let Sessions { id: session_id, reason, .. } = arguments;
        return stop(session, &stop_run::Params { session_id, reason, ..Default::default() });
    }
    if let Some(session_id) = arguments.id {
        let reply = session.ask::<ops::GetSession>(&get_session::Params { session_id })?;
        session.show(reply.json(), |page| {
            let shown = &reply.session.session;
            page.field("session", &shown.id);
            page.field("status", or_empty(reply.session.status));
            page.field("parent", or_empty(shown.parent_session_id.as_ref()));
            page.field("where", or_empty(shown.affinity.hostname.as_ref()));
            for child in &reply.children {
                page.field("started", format!("{} {}", child.session_id, or_empty(child.status)));
            }
            table(page, reply.runs.iter());
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply =
        session.every_page::<ops::ListSessions>("sessions", &list_sessions::Params::default())?;
    session.show(reply.json(), |page| {
        if reply.sessions.is_empty() {
            return page.line("no sessions");
        }
        let rows = reply.sessions.iter().map(|one| {
            [
                Column::from(&one.session.id),
                one.status.map_or_else(|| Column::toned("", Tone::Over), status),
                one.session.runs.into(),
                or_empty(one.session.agent_name.as_ref()).into(),
                or_empty(one.session.parent_session_id.as_ref()).into(),
            ]
        });
        page.table(["id", "status", "runs", "agent", "parent"], rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn table<'a>(page: &mut Page, runs: impl ExactSizeIterator<Item = &'a RunView>) {
    if runs.len() == 0 {
        return page.line("no runs");
    }
    let rows = runs.map(|run| {
        [
            Column::from(&run.run_id),
            status(run.status),
            or_empty(run.runner_id.as_ref()).into(),
            Column::from(&run.session_id),
            run.prompt.lines().next().unwrap_or_default().into(),
        ]
    });
    page.table(["id", "status", "runner", "session", "prompt"], rows);
}

fn details(page: &mut Page, run: &RunView) {
    page.marked(run.status.as_str(), tone(run.status), &run.run_id);
    page.field("session_id", &run.session_id);
    page.field("type", run.kind.as_str());
    page.field("agent_name", or_empty(run.agent_name.as_ref()));
    page.field("project_dir", or_empty(run.project_dir.as_ref()));
    page.field("parent_session_id", or_empty(run.parent_session_id.as_ref()));
    page.field("runner_id", or_empty(run.runner_id.as_ref()));
    page.field("prompt", &run.prompt);
    if !run.demands.is_empty() {
        page.field("demands", json!(run.demands));
    }
    let times = [
        ("created_at", Some(run.created_at)),
        ("started_at", run.started_at),
        ("completed_at", run.completed_at),
        ("timeout_at", run.timeout_at),
        ("no_match_until", run.no_match_until),
    ];
    for (name, at) in times.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        let when = page.when(at);
        page.field(name, when);
    }
    if let Some(result) = &run.result {
        page.field("output", or_empty(result.output.as_ref()));
        page.field("error", or_empty(result.error.as_ref()));
    }
    for result in &run.results {
        page.field("told", format!("{} {}", result.run_id, result.status));
    }
}

fn status(status: RunStatus) -> Column {
    Column::toned(status, tone(status))
}

fn tone(status: RunStatus) -> Tone {
    match status {
        RunStatus::Pending => Tone::Waiting,
        RunStatus::Claimed | RunStatus::Running | RunStatus::Stopping => Tone::Busy,
        RunStatus::Completed => Tone::Good,
        RunStatus::Failed => Tone::Bad,
        RunStatus::Stopped => Tone::Over,
    }
}
