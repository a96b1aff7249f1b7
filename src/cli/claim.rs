use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::json;

use super::print::{Page, Tone, or_empty, text};
use super::wording::Wording;
use super::{Outcome, Session};
use crate::ops::claim_task::{Claimed, Empty, Params, Reply};
use crate::ops::{self, Handoff, Held};
use crate::state::claim::Verdict;
use crate::state::id::TaskId;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Claim this task and no other
    task: Option<String>,
    /// Seconds to wait for a task, at most 50
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = super::wait_seconds())]
    wait: u64,
    /// Skip tasks whose files others hold
    #[arg(long)]
    exclusive_files: bool,
    /// Claim only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { task, wait, exclusive_files, scope } = arguments;
    let task_id = session.task_id(task.as_deref())?;
    let query =
        Params { task_id, wait_seconds: wait, scope, exclusive_files, ..Default::default() };
    let progress =
        (wait > 0).then(|| session.progress(&format!("waiting up to {wait} s for a task")));
    let reply = session.ask::<ops::ClaimTask>(&query)?;
    drop(progress);
    let wording = &session.wording;
    let depends = match &reply.reply {
        Reply::Claimed(mine) if !session.json => mine.task.dependencies.as_slice(),
        _ => &[],
    };
    let names = session.called(depends);
    session.show(reply.json(), |page| match &reply.reply {
        Reply::Claimed(mine) => claimed(page, mine, wording, &names),
        Reply::Holding { message, holding, next, .. } => {
            holds(page, message, holding, &wording.in_commands(next))
        }
        Reply::Empty(empty) => empty_handed(page, empty, wording),
    })?;
    Ok(ExitCode::from(if matches!(reply.reply, Reply::Claimed(_)) { 0 } else { super::REFUSED }))
}

fn holds(page: &mut Page, message: &str, holding: &[Held], next: &str) {
    page.line(message);
    for held in holding {
        let id = or_empty(held.task.as_ref().or(held.run.as_ref()));
        page.line(format_args!("{id} (attempt {})", held.attempt));
    }
    page.field("next", next);
}

fn empty_handed(page: &mut Page, empty: &Empty, wording: &Wording) {
    page.line(&empty.message);
    page.field("reason", empty.reason.as_deref().unwrap_or_default());
    page.field("verdict", text(&json!(empty.why.verdict)));
    let mut next = wording.in_commands(&empty.next);
    if empty.why.verdict == Verdict::Paused {
        let resume = wording.command("resume");
        next = format!("{next}; a person lets agents claim again with {resume}");
    }
    page.field("next", next);
}

fn claimed(page: &mut Page, claimed: &Claimed, wording: &Wording, names: &HashMap<TaskId, String>) {
    let (task, already) = (&claimed.task, if claimed.already { " before" } else { "" });
    let number = task.number.map(|number| format!("#{number} ")).unwrap_or_default();
    let attempt = format_args!("{number}{}{already}, attempt {}", task.id, task.attempt);
    page.marked("claimed", Tone::Busy, attempt);
    page.field("title", task.title.as_deref().unwrap_or_default());
    page.field("description", &task.description);
    if let Some(context) = &task.context {
        page.field("files", context.files.join(", "));
        page.field("hints", context.hints.as_deref().unwrap_or_default());
    }
    claimed.handoff.iter().for_each(|earlier| handoff(page, earlier, names));
    let until = page.when(claimed.lease_until);
    page.field("lease ends", until);
    let name = task.number.map_or_else(|| task.id.to_string(), |number| number.to_string());
    page.field("next", wording.line_of_agent(&format!("complete {name} 'what was done'")));
}

fn handoff(page: &mut Page, handoff: &Handoff, names: &HashMap<TaskId, String>) {
    for one in &handoff.dependencies {
        let left =
            [&one.branch, &one.commit, &one.output].map(|part| part.as_deref().unwrap_or_default());
        let name = names.get(&one.task).map_or(one.task.as_str(), String::as_str);
        let parts = std::iter::once(name).chain(left).filter(|part| !part.is_empty());
        page.field("builds on", parts.collect::<Vec<_>>().join(" "));
    }
    if let Some(last) = &handoff.last_attempt {
        page.field("last attempt by", &last.agent);
        page.field("its error", last.error.as_deref().unwrap_or_default());
        page.field("its note", last.note.as_deref().unwrap_or_default());
        page.field("its worktree", last.worktree.as_deref().unwrap_or_default());
    }
    for one in &handoff.overlaps {
        let task = one.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
        let until = page.when(one.until);
        page.field("overlaps", format_args!("{} of {}{task}, ends {until}", one.files, one.agent));
    }
    for discovery in &handoff.discoveries {
        page.field("discovery", discovery);
    }
}
