//! `callboard log`: what an agent did, or what happened to a task, newest first.

use std::num::NonZeroU32;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session, runtime, watch};
use crate::ops::{self, get_agents};
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
    /// An agent, `human` for yourself, or a task
    #[arg(value_name = "AGENT|TASK")]
    subject: Option<String>,
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
    let mut query = json!({"kinds": kinds(), "limit": limit});
    if let Some(subject) = &arguments.subject {
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
            page.line("nothing");
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The parameter of `get_history` for an agent or a task. A name of an agent is one, whatever tasks
/// are called.
fn about(session: &Session, subject: &str) -> anyhow::Result<(&'static str, String)> {
    session.keep_board()?;
    let agents = session.every_page::<ops::GetAgents>("agents", &get_agents::Params::default())?;
    let is_agent = |name: &str| agents.agents.iter().any(|one| one.agent.id.as_str() == name);
    if subject == HUMAN || is_agent(subject) {
        return Ok(("agent", subject.to_owned()));
    }
    match session.task(subject) {
        Ok(task) => Ok(("task_id", task.id.to_string())),
        Err(_) if has_acted(session, subject) => Ok(("agent", subject.to_owned())),
        Err(error) => Err(error),
    }
}

/// Whether a person of this name has done something.
fn has_acted(session: &Session, name: &str) -> bool {
    let found = session.call("get_history", json!({"agent": name, "limit": 1}));
    found.is_ok_and(|found| found["events"].as_array().is_some_and(|events| !events.is_empty()))
}
