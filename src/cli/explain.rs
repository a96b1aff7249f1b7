use std::process::ExitCode;

use super::print::{Tone, listed};
use super::show::risen;
use super::{Outcome, Session};
use crate::ops;
use crate::ops::explain_task::Params;
use crate::state::task::TaskStatus;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task
    task: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task = session.task(&arguments.task)?;
    let task_id = task.id.to_string();
    let params = Params { task_id, agent: session.agent.clone() };
    let reply = session.ask::<ops::ExplainTask>(&params)?;
    let wording = &session.wording;
    session.show(reply.json(), |page| {
        let name = reply.path.as_ref().map(|path| format!("{path} ")).unwrap_or_default();
        // An open task says below what keeps it from being claimed.
        let word = match reply.status {
            TaskStatus::Available if reply.claimable => "ready",
            TaskStatus::Available => "open",
            other => other.as_str(),
        };
        page.marked(word, Tone::of(reply.status), format_args!("{name}{task}"));
        for reason in &reply.reasons {
            let why = page.in_local_time(&wording.in_commands(&reason.why));
            page.marked("not claimable:", Tone::Bad, why);
            page.line(format_args!("  {}", wording.in_commands(&reason.next)));
        }
        if reply.claimable {
            page.marked("claimable:", Tone::Good, "now");
        }
        page.field("priority", risen(reply.priority, reply.effective_priority));
        page.field("could be taken by", listed(&reply.agents));
        for other in &reply.others {
            let why = session.numbered(&other.why);
            page.field("not by", format_args!("{}: {why}", other.agent));
        }
        if let Some(last) = &reply.last_change {
            let at = page.when(last.at);
            let by = last.by.as_ref().map(|by| format!(" by {}", by.shown())).unwrap_or_default();
            page.field("last change", format_args!("{}{by}, {at} (event {})", last.kind, last.seq));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
