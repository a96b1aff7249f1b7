use std::process::ExitCode;

use super::print::listed;
use super::{Outcome, Session};
use crate::ops::resume::Params;
use crate::ops::{self, get_board};

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
    let agents = session.agents_named(&arguments.who, "resume")?;
    let params = Params { agents, ..Default::default() };
    let reply = session.ask::<ops::ResumeBoard>(&params)?;
    let of = if params.agents.is_empty() {
        String::new()
    } else {
        format!(" for {}", params.agents.join(", "))
    };
    let paused =
        if session.json || !params.agents.is_empty() { Vec::new() } else { paused(session)? };
    session.show(reply.json(), |page| {
        page.line(format_args!("claims are allowed{of}"));
        if !paused.is_empty() {
            let resume = session.wording.command(&format!("resume {}", paused.join(" ")));
            page.line(format_args!("still paused: {}; {resume} lets them go on", listed(&paused)));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The agents that were paused or stopped by name.
fn paused(session: &Session) -> anyhow::Result<Vec<String>> {
    let board = session.ask::<ops::GetBoard>(&get_board::Params::default())?;
    let rows = board.agents.rows.iter().filter(|row| row.paused.is_some());
    Ok(rows.map(|row| row.id.to_string()).collect())
}
