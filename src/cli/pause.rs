use std::process::ExitCode;

use super::{Outcome, Session, usage_error};
use crate::ops;
use crate::ops::pause::Params;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard pause\n  \
    callboard pause --reason 'main is being merged'\n  \
    callboard pause bob carol")]
pub(super) struct Arguments {
    /// Agents that get no more tasks [default: all agents]
    #[arg(value_name = "AGENT")]
    who: Vec<String>,
    /// Why, as agents that claim are told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { who: agents, reason } = arguments;
    if agents.iter().any(|agent| agent.contains(char::is_whitespace)) {
        usage_error("the name of an agent has no spaces; a reason is given by --reason TEXT");
    }
    let agents = session.agents_named(&agents, "pause")?;
    let params = Params { reason, agents, ..Default::default() };
    let reply = session.ask::<ops::PauseBoard>(&params)?;
    let (of, whom) = if params.agents.is_empty() {
        (String::new(), "resume".to_owned())
    } else {
        let names = params.agents.join(" ");
        (format!(" for {}", params.agents.join(", ")), format!("resume {names}"))
    };
    session.show(reply.json(), |page| {
        page.line(format_args!(
            "claims are paused{of}; tasks in work go on; {} allows claims again",
            session.wording.command(&whom)
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}
