use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Page, Tone, text};
use super::wording::Wording;
use super::{Outcome, Session};
use crate::state::task::Task;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Claim this task and no other
    id: Option<String>,
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
    let query = json!({"task_id": arguments.id, "wait_seconds": arguments.wait, "scope": arguments.scope,
        "exclusive_files": arguments.exclusive_files});
    let progress = (arguments.wait > 0)
        .then(|| session.progress(&format!("waiting up to {} s for a task", arguments.wait)));
    let reply = session.call("claim_task", query)?;
    drop(progress);
    let wording = &session.wording;
    if reply["success"] != true {
        session.show(&reply, |page| empty_handed(page, &reply, wording))?;
        return Ok(ExitCode::from(super::REFUSED));
    }
    let task: Task = serde_json::from_value(reply["task"].clone())?;
    session.show(&reply, |page| claimed(page, &reply, &task, wording))?;
    Ok(ExitCode::SUCCESS)
}

fn empty_handed(page: &mut Page, reply: &Value, wording: &Wording) {
    page.line(text(&reply["message"]));
    for held in reply["holding"].as_array().into_iter().flatten() {
        let id = format!("{}{}", text(&held["task"]), text(&held["run"]));
        page.line(format_args!("{id} (attempt {})", held["attempt"]));
    }
    page.field("reason", text(&reply["reason"]));
    page.field("verdict", text(&reply["verdict"]));
    page.field("next", wording.in_commands(&text(&reply["next"])));
}

fn claimed(page: &mut Page, reply: &Value, task: &Task, wording: &Wording) {
    let already = if reply["already"] == true { " before" } else { "" };
    let attempt = format_args!("{}{already}, attempt {}", task.id, task.attempt);
    page.marked("claimed", Tone::Busy, attempt);
    page.field("title", task.title.as_deref().unwrap_or_default());
    page.field("description", &task.description);
    if let Some(context) = &task.context {
        page.field("files", context.files.join(", "));
        page.field("hints", context.hints.as_deref().unwrap_or_default());
    }
    handoff(page, &reply["handoff"]);
    if let Ok(until) = serde_json::from_value(reply["lease_until"].clone()) {
        let until = page.when(until);
        page.field("lease ends", until);
    }
    page.field("next", wording.line_of_agent(&format!("complete {} 'what was done'", task.id)));
}

fn handoff(page: &mut Page, handoff: &Value) {
    for one in handoff["dependencies"].as_array().into_iter().flatten() {
        let parts = ["task", "branch", "commit", "output"].map(|field| text(&one[field]));
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        page.field("builds on", parts.join(" "));
    }
    let last = &handoff["last_attempt"];
    page.field("last attempt by", text(&last["agent"]));
    page.field("its error", text(&last["error"]));
    page.field("its note", text(&last["note"]));
    page.field("its worktree", text(&last["worktree"]));
    for one in handoff["overlaps"].as_array().into_iter().flatten() {
        let until = serde_json::from_value(one["until"].clone())
            .map(|until| page.when(until))
            .unwrap_or_default();
        let task = text(&one["task"]);
        let task = if task.is_empty() { task } else { format!(" for {task}") };
        page.field(
            "overlaps",
            format_args!("{} of {}{task}, ends {until}", text(&one["files"]), text(&one["agent"])),
        );
    }
    for discovery in handoff["discoveries"].as_array().into_iter().flatten() {
        page.field("discovery", text(discovery));
    }
}
