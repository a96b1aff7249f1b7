//! `callboard log`: what an agent did, or what happened to a task, newest first.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session, print, runtime, watch};
use crate::participant::Stay;
use crate::state::event::KINDS;
use crate::state::guard::HUMAN;
use crate::view::Names;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard log\n  \
    callboard log claude-1\n  \
    callboard log 12 --limit 5\n\n\
    `callboard history` lists all kinds of events, by task, agent, kind and time.")]
pub(super) struct Arguments {
    /// Agents, `human` for yourself, or tasks
    #[arg(value_name = "AGENT|TASK")]
    subject: Vec<String>,
    /// List at most N events
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

/// Kinds of events that say nothing of the work.
const NOISE: [&str; 15] = [
    "agent_seen",
    "participant_joined",
    "participant_gone",
    "clock_stepped",
    "messages_read",
    "messages_retired",
    "files_released",
    "tasks_retired",
    "runs_awaited",
    "results_added",
    "runner_seen",
    "sessions_retired",
    "stubs_dropped",
    "stubs_recalled",
    "tasks_numbered",
];

/// Kinds of events that say something of the work.
pub(super) fn kinds() -> Vec<&'static str> {
    KINDS.into_iter().filter(|kind| !NOISE.contains(kind)).collect()
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let limit = arguments.limit.map_or(30, NonZeroU32::get);
    if arguments.subject.is_empty() {
        return one(session, None, limit);
    }
    for (place, subject) in arguments.subject.iter().enumerate() {
        if place > 0 && !session.json {
            print::unless_reader_left(writeln!(io::stdout().lock()))?;
        }
        one(session, Some(subject), limit)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What happened lately, to one subject or to all of the board.
fn one(session: &Session, subject: Option<&str>, limit: u32) -> Outcome {
    let mut query = json!({"kinds": kinds(), "limit": limit});
    if let Some(subject) = subject {
        let (name, id) = about(session, subject)?;
        query[name] = id.into();
    }
    let mut events = Vec::new();
    let mut reply = session.call("get_history", query.clone())?;
    loop {
        events.append(reply["events"].as_array_mut().unwrap_or(&mut Vec::new()));
        let next = reply["next"].take();
        if next.is_null() || events.len() >= limit as usize {
            break;
        }
        query["before_seq"] = next;
        query["limit"] = Value::from(limit as usize - events.len());
        reply = session.call("get_history", query.clone())?;
    }
    let mut names = Names::default();
    if !session.json {
        runtime()?.block_on(names.learn(&session.board(Stay::Brief)?, &events));
    }
    reply["events"] = events.into();
    session.show(&reply, |page| {
        let events = reply["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        events.iter().for_each(|event| watch::line::write_numbered(page, event, &names));
        if events.is_empty() {
            page.line("nothing has happened yet");
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The parameter of `get_history` for an agent or a task. A name of an agent is one, whatever tasks
/// are called.
fn about(session: &Session, subject: &str) -> anyhow::Result<(&'static str, String)> {
    session.keep_board()?;
    let agent = || Ok(("agent", session.agent_named(subject, "log")?));
    if subject == HUMAN || subject.eq_ignore_ascii_case("me") || session.has_agent_called(subject) {
        return agent();
    }
    match session.task(subject) {
        Ok(task) => Ok(("task_id", task.id.to_string())),
        Err(_) if session.has_agent(subject) => agent(),
        Err(_) if has_acted(session, subject) => Ok(("agent", subject.to_owned())),
        Err(error) => Err(error),
    }
}

/// Whether a person of this name has done something.
fn has_acted(session: &Session, name: &str) -> bool {
    let found = session.call("get_history", json!({"agent": name, "limit": 1}));
    found.is_ok_and(|found| found["events"].as_array().is_some_and(|events| !events.is_empty()))
}
