use std::process::ExitCode;

use serde_json::json;

use super::print::{Tone, text};
use super::show::risen;
use super::{Outcome, Session};
use crate::state::task::TaskStatus;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task, or its path in the plan
    task: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = session.call("explain_task", json!({"task_id": arguments.task}))?;
    let wording = &session.wording;
    session.show(&reply, |page| {
        let status = serde_json::from_value::<TaskStatus>(reply["status"].clone())
            .map_or(Tone::Plain, Tone::of);
        let path = text(&reply["path"]);
        let name = if path.is_empty() { String::new() } else { format!("{path} ") };
        page.marked(
            &text(&reply["status"]),
            status,
            format_args!("{name}{}: {}", text(&reply["task"]), text(&reply["title"])),
        );
        for reason in reply["reasons"].as_array().into_iter().flatten() {
            page.marked("not claimable:", Tone::Bad, wording.in_commands(&text(&reason["why"])));
            page.line(format_args!("  {}", wording.in_commands(&text(&reason["next"]))));
        }
        if reply["claimable"] == true {
            page.marked("claimable:", Tone::Good, "now");
        }
        page.field("priority", risen(&reply["priority"], &reply["effective_priority"]));
        page.field("could be taken by", text(&reply["agents"]));
        for other in reply["others"].as_array().into_iter().flatten() {
            page.field(
                "not by",
                format_args!("{}: {}", text(&other["agent"]), text(&other["why"])),
            );
        }
        let last = &reply["last_change"];
        if let Ok(at) = serde_json::from_value(last["at"].clone()) {
            let (at, by) = (page.when(at), text(&last["by"]));
            let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
            page.field(
                "last change",
                format_args!("{}{by}, {at} (event {})", text(&last["kind"]), last["seq"]),
            );
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
