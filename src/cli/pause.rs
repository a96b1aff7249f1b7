use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::pause::Params;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Why, as agents that claim are told
    reason: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = session
        .ask::<ops::PauseBoard>(&Params { reason: arguments.reason, ..Default::default() })?;
    session.show(reply.json(), |page| {
        page.line(format_args!(
            "claims are paused; {} allows them again",
            session.wording.command("resume")
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}
