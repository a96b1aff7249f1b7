use std::process::ExitCode;

use super::report::{InNumbers, blame_and_data};
use super::{Outcome, Session, read_input};
use crate::ops;
use crate::ops::complete_task::Params;
use crate::state::task::Named;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The task that you hold
    task: String,
    /// What was done, for whoever builds on it; `-` reads standard input
    output: Vec<String>,
    /// File that was changed; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// File that was created; may be repeated
    #[arg(long, value_name = "PATH")]
    created: Vec<String>,
    /// Branch with the work [default: the worktree's]
    #[arg(long)]
    branch: Option<String>,
    /// Commit with the work
    #[arg(long)]
    commit: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let output = arguments.output.join(" ");
    let output = if output == "-" { read_input("-") } else { output };
    let task = session.task(&arguments.task)?;
    let result = Params {
        task_id: task.id.to_string(),
        output,
        files_modified: session.project_paths(&arguments.file),
        files_created: session.project_paths(&arguments.created),
        branch: arguments.branch,
        commit: arguments.commit,
        ..Default::default()
    };
    let reply = session
        .ask::<ops::CompleteTask>(&result)
        .map_err(|error| if session.agent.is_some() { error } else { as_person(&task, error) })?;
    let word = if reply.already { "completed before:" } else { "completed" };
    let waits = if reply.review.is_some() { "; it waits for review" } else { "" };
    session.show(reply.json(), |page| page.line(format_args!("{word} {task}{waits}")))?;
    Ok(ExitCode::SUCCESS)
}

/// A person who wants a task off the board does not claim it first, and does not complete what
/// others work on.
fn as_person(task: &Named, error: anyhow::Error) -> anyhow::Error {
    let (_, data) = blame_and_data(&error);
    let number = task.short();
    let told = match (data["code"].as_str(), data["status"].as_str(), data["holder"].as_str()) {
        (Some("not_held"), Some("available"), _) => format!(
            "nobody works on {task}: take it with `callboard claim {number}`, or drop it with \
             `callboard cancel {number}`"
        ),
        (Some("held_by_other"), _, Some(holder)) => format!(
            "{holder} works on {task} and completes it; `callboard release {number}` takes it \
             back, and it is yours to claim and complete"
        ),
        _ => return error,
    };
    error.context(InNumbers(told))
}
