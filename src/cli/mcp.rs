use std::process::ExitCode;

use super::wording::in_any_shell;
use super::{AUTO, Outcome, Session, runtime};
use crate::mcp::{Server, serve_stdio};
use crate::ops::{Door, Inside, Toolset};
use crate::participant::{AgentChoice, CallError, Caller};
use crate::state::id::AgentId;
use crate::user;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Tools to list; tools that are not listed can still be called
    #[arg(long, value_enum, default_value = "core")]
    toolset: Tools,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Tools {
    /// What a worker needs
    Worker,
    /// The tools of `worker`, and what a leader needs most
    Core,
    /// All tools
    Full,
}

impl From<Tools> for Toolset {
    fn from(tools: Tools) -> Self {
        match tools {
            Tools::Worker => Self::Worker,
            Tools::Core => Self::Core,
            Tools::Full => Self::Full,
        }
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let agent = match session.agent.as_deref() {
        None => AgentChoice::None,
        Some(AUTO) => AgentChoice::Auto,
        Some(name) => AgentChoice::Named(AgentId::checked(name).map_err(CallError::Refused)?),
    };
    // The shell of the agent may have another search path than this process.
    let runtime = runtime()?;
    let board = session.guest(agent)?.in_shell(in_any_shell(&session.location).into());
    runtime.block_on(async {
        super::notify::begin(session.dir(), board.handle());
        let (handle, caller) = (board.handle().clone(), board.caller().clone());
        let door = Door::Agent(Inside::default());
        let caller = Caller { door, person: user::person(), ..caller };
        let server = Server::new(handle, caller, arguments.toolset.into());
        serve_stdio(server).await
    })?;
    Ok(ExitCode::SUCCESS)
}
