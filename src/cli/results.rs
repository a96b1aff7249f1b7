use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Column, Page, Tone, headline, text};
use super::{Outcome, Session};
use crate::ops::{self, Operation};
use crate::state::task::TaskStatus;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard results\n  \
    callboard results 12 13")]
pub(super) struct Arguments {
    /// Only these tasks, with their results whole
    task: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let tasks = session.tasks(&arguments.task)?;
    let ids: Vec<_> = tasks.iter().map(|task| task.id.to_string()).collect();
    let name = ops::GetResults::NAME;
    let query = if ids.is_empty() { json!({}) } else { json!({"task_ids": ids}) };
    let reply = session.call_pages(name, "results", query)?;
    let results = reply["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    session.show(&reply, |page| match tasks.is_empty() {
        _ if results.is_empty() => page.line("no task has ended yet"),
        true => page.table(["task", "status", "result"], results.iter().map(row)),
        false => results.iter().for_each(|result| whole(page, result)),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn tone(result: &Value) -> Tone {
    let status = serde_json::from_value::<TaskStatus>(result["status"].clone());
    status.map_or(Tone::Plain, Tone::of)
}

/// What a person calls the task: its number and its title, or the beginning of its description.
fn name(result: &Value) -> String {
    let number = result["number"].as_u64().map(|number| format!("#{number}"));
    let lead = number.unwrap_or_else(|| text(&result["task_id"]));
    format!("{lead} {}", headline(&text(&result["title"])))
}

fn row(result: &Value) -> [Column; 3] {
    let of = &result["result"];
    let said = if of["error"].is_null() { &of["output"] } else { &of["error"] };
    let status = Column::toned(text(&result["status"]), tone(result));
    [name(result).into(), status, headline(&text(said)).into()]
}

fn whole(page: &mut Page, result: &Value) {
    page.marked(&text(&result["status"]), tone(result), name(result));
    for field in ["output", "error", "branch", "commit", "data"] {
        page.field(field, text(&result["result"][field]));
    }
    for field in ["files_modified", "files_created"] {
        let files = result["result"][field].as_array().into_iter().flatten();
        page.field(&field.replace('_', " "), files.map(text).collect::<Vec<_>>().join(", "));
    }
}
