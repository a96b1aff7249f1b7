use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::resume::Params;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard resume\n  \
    callboard resume bob carol")]
pub(super) struct Arguments {
    /// Agents that may have tasks again, and go on with what they were to stop; without any, all
    /// claims are allowed but those of agents that were paused or stopped by name
    #[arg(value_name = "AGENT")]
    who: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let params = Params { agents: arguments.who, ..Default::default() };
    let reply = session.ask::<ops::ResumeBoard>(&params)?;
    let of = if params.agents.is_empty() {
        String::new()
    } else {
        format!(" for {}", params.agents.join(", "))
    };
    session.show(reply.json(), |page| page.line(format_args!("claims are allowed{of}")))?;
    Ok(ExitCode::SUCCESS)
}
