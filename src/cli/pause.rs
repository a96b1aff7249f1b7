use std::process::ExitCode;

use serde_json::json;

use super::{Outcome, Session};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Why, as agents that claim are told
    reason: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = session.call("pause", json!({"reason": arguments.reason}))?;
    session.show(&reply, |page| {
        page.line(format_args!(
            "claims are paused; {} allows them again",
            session.wording.command("resume")
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}
