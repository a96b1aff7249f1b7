use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::print::{Column, Page, Tone, text};
use super::{Outcome, Session};
use crate::state::run::RunStatus;
use crate::state::time::Timestamp;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// List only runs of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// List only runs with this status
    #[arg(long, value_parser = PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::as_str)))]
    status: Option<String>,
    /// List only runs that this runner has, or had last
    #[arg(long, value_name = "AGENT")]
    runner: Option<String>,
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
    /// Lists are complete without it, too
    #[arg(long, hide = true)]
    all: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let query = json!({"session_id": arguments.session, "status": arguments.status, "runner_id": arguments.runner});
    let reply = session.every_page("list_runs", "runs", &query)?;
    session.show(&reply, |page| table(page, &reply, "no runs"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn one(session: &Session, arguments: One) -> Outcome {
    if arguments.stop {
        let reply = session
            .call("stop_run", json!({"run_id": arguments.id, "reason": arguments.reason}))?;
        session.show(&reply, |page| {
            page.marked(&text(&reply["status"]), Tone::Over, text(&reply["run_id"]))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply =
        session.call("get_run", json!({"run_id": arguments.id, "wait_seconds": arguments.wait}))?;
    session.show(&reply, |page| details(page, &reply["run"]))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn sessions(session: &Session, arguments: Sessions) -> Outcome {
    if let Some(id) = arguments.id {
        let reply = session.call("get_session", json!({"session_id": id}))?;
        session.show(&reply, |page| {
            let shown = &reply["session"];
            for (name, key) in
                [("session", "id"), ("status", "status"), ("parent", "parent_session_id")]
            {
                page.field(name, text(&shown[key]));
            }
            page.field("where", text(&shown["affinity"]["hostname"]));
            for child in reply["children"].as_array().into_iter().flatten() {
                page.field(
                    "started",
                    format!("{} {}", text(&child["session_id"]), text(&child["status"])),
                );
            }
            table(page, &reply, "no runs");
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let reply = session.every_page("list_sessions", "sessions", &json!({}))?;
    session.show(&reply, |page| {
        let sessions = reply["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if sessions.is_empty() {
            return page.line("no sessions");
        }
        let rows = sessions.iter().map(|one| {
            [
                Column::from(text(&one["id"])),
                status(&one["status"]),
                one["runs"].as_u64().unwrap_or_default().into(),
                text(&one["agent_name"]).into(),
                text(&one["parent_session_id"]).into(),
            ]
        });
        page.table(["id", "status", "runs", "agent", "parent"], rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn table(page: &mut Page, reply: &Value, none: &str) {
    let runs = reply["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if runs.is_empty() {
        return page.line(none);
    }
    let rows = runs.iter().map(|run| {
        [
            Column::from(text(&run["run_id"])),
            status(&run["status"]),
            text(&run["runner_id"]).into(),
            text(&run["session_id"]).into(),
            text(&run["prompt"]).lines().next().unwrap_or_default().into(),
        ]
    });
    page.table(["id", "status", "runner", "session", "prompt"], rows);
}

fn details(page: &mut Page, run: &Value) {
    page.marked(&text(&run["status"]), tone(&run["status"]), text(&run["run_id"]));
    let fields = [
        "session_id",
        "type",
        "agent_name",
        "project_dir",
        "parent_session_id",
        "runner_id",
        "prompt",
    ];
    for name in fields {
        page.field(name, text(&run[name]));
    }
    if run["demands"].is_object() {
        page.field("demands", run["demands"].to_string());
    }
    for name in ["created_at", "started_at", "completed_at", "timeout_at", "no_match_until"] {
        if let Ok(at) = serde_json::from_value::<Timestamp>(run[name].clone()) {
            let when = page.when(at);
            page.field(name, when);
        }
    }
    page.field("output", text(&run["result"]["output"]));
    page.field("error", text(&run["result"]["error"]));
    for result in run["results"].as_array().into_iter().flatten() {
        page.field("told", format!("{} {}", text(&result["run_id"]), text(&result["status"])));
    }
}

fn status(value: &Value) -> Column {
    Column::toned(text(value), tone(value))
}

fn tone(status: &Value) -> Tone {
    match status.as_str().unwrap_or_default() {
        "pending" => Tone::Waiting,
        "claimed" | "running" | "stopping" => Tone::Busy,
        "completed" => Tone::Good,
        "failed" => Tone::Bad,
        _ => Tone::Over,
    }
}
