use std::process::ExitCode;

use super::print::{Tone, listed};
use super::show::risen;
use super::{Outcome, Session};
use crate::ops;
use crate::ops::explain_task::{Other, Params, Reason};
use crate::state::id::AgentId;
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
        // That no agent has room says nothing of a task that waits for something else.
        let is_of_agents = |reason: &&Reason| reason.why.contains("see others");
        let is_only = reply.reasons.iter().all(|reason| is_of_agents(&reason));
        for reason in reply.reasons.iter().filter(|reason| is_only || !is_of_agents(reason)) {
            let why = session.numbered(&wording.in_commands(&reason.why));
            page.marked("not claimable:", Tone::Bad, why);
            let next = session.numbered(&wording.in_commands(&reason.next));
            page.line(format_args!("  {next}"));
        }
        if reply.claimable {
            page.marked("claimable:", Tone::Good, "now");
        }
        page.field("priority", risen(reply.priority, reply.effective_priority));
        page.field("could be taken by", listed(&reply.agents));
        if is_only && reply.status == TaskStatus::Available {
            for (why, agents) in by_reason(&reply.others) {
                let why = session.numbered(why);
                page.field("not by", format_args!("{}: {why}", listed(&agents)));
            }
        }
        if let Some(last) = &reply.last_change {
            let at = page.when(last.at);
            let by = last.by.as_ref().map(|by| format!(" by {}", by.shown())).unwrap_or_default();
            page.field("last change", format_args!("{}{by}, {at} (event {})", last.kind, last.seq));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Agents by what keeps them from it; what each of them holds is left out where several have no room.
fn by_reason(others: &[Other]) -> Vec<(&str, Vec<&AgentId>)> {
    let mut found: Vec<(&str, Vec<&AgentId>)> = Vec::new();
    for other in others {
        let why = other.why.split_once(": ").map_or(other.why.as_str(), |(why, _)| why);
        match found.iter_mut().find(|(known, _)| *known == why) {
            Some((_, agents)) => agents.push(&other.agent),
            None => found.push((why, vec![&other.agent])),
        }
    }
    found
}
