//! `callboard stop`: asks an agent to end what it does.

use std::process::ExitCode;

use super::{Outcome, Session, agents, say};
use crate::ops;
use crate::ops::stop_agent::Params;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard stop claude-1 --reason 'the task has changed'\n  \
    callboard stop claude-1 --now\n\n\
    The agent hears it with its next call, and its hooks refuse to change files. It gets no task\n\
    until `callboard resume AGENT`.")]
pub(super) struct Arguments {
    /// The agent; without it, the agents are listed
    #[arg(value_name = "AGENT")]
    who: Option<String>,
    /// Why, as the agent is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Release its tasks at once, without its doing
    #[arg(long)]
    now: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { who, reason, now } = arguments;
    session.keep_board()?;
    let Some(who) = who else { return listed(session) };
    let agent = session.agent_named(&who, "stop")?;
    let held = session.held_by(&agent)?;
    let params = Params { agent, reason, now, ..Default::default() };
    let reply = session.ask::<ops::StopAgent>(&params)?;
    let (agent, wording) = (&params.agent, &session.wording);
    session.show(reply.json(), |page| {
        for task in &held {
            let word = if now { "released" } else { "asked to stop" };
            page.line(format_args!("{word} {task}"));
        }
        page.line(match (reply.present, now) {
            (_, false) => format!("{agent} hears it with its next call, and gets no more tasks"),
            (true, true) => format!("{agent} gets no more tasks; its process still runs"),
            (false, true) => format!("{agent} gets no more tasks"),
        });
        if !now && !held.is_empty() {
            let now = wording.command(&format!("stop {agent} --now"));
            page.line(format_args!("{now} releases its tasks at once"));
        }
        let resume = wording.command(&format!("resume {agent}"));
        page.line(format_args!("{resume} lets it go on"));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Says which agents could be stopped.
fn listed(session: &Session) -> Outcome {
    let done = agents::run(session, &agents::Arguments::default())?;
    if !session.json {
        let stop = session.wording.command("stop AGENT");
        say(&format!("nothing has changed; {stop} asks one of them to stop"));
    }
    Ok(done)
}
