//! `callboard agents forget`: takes an agent off the list.

use std::process::ExitCode;

use super::{Outcome, Session, agents};
use crate::ops;
use crate::ops::forget_agent::Params;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: agents::Arguments,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Take an agent that has gone off the list; what it did stays done
    Forget {
        /// The agent
        #[arg(value_name = "AGENT")]
        who: String,
    },
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Some(Command::Forget { who: agent }) = arguments.command else {
        return agents::run(session, &arguments.list);
    };
    let agent = session.agent_named(&agent, "agents forget")?;
    let params = Params { agent, ..Default::default() };
    let reply = session.ask::<ops::ForgetAgent>(&params)?;
    session.show(reply.json(), |page| page.line(format_args!("forgotten: {}", params.agent)))?;
    Ok(ExitCode::SUCCESS)
}
