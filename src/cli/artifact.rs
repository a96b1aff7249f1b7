//! `callboard artifact`: files kept with a task.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::print::{Column, Page, or_empty};
use super::{Outcome, Session, read_whole, usage_error};
use crate::ops;
use crate::ops::get_all_tasks::Listed;
use crate::ops::{attach_artifact, get_all_tasks, get_task};
use crate::state::artifact::Artifact;
use crate::state::task::Named;

#[derive(Args)]
pub(super) struct Arguments {
    /// Without it, the files of all tasks are listed
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Keep a file with a task
    Attach(Attach),
    /// List the files that are kept with a task, or with all of them
    List(List),
}

#[derive(Args)]
struct Attach {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,
    /// File to keep; `-` reads text from standard input; with --server, text files only
    #[arg(value_name = "FILE")]
    file: String,
    /// Name of the kept file [default: the file's own]
    #[arg(long)]
    name: Option<String>,
}

#[derive(Args, Default)]
struct List {
    /// The task [default: all that have not retired]
    #[arg(value_name = "TASK")]
    task: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command.unwrap_or(Command::List(List::default())) {
        Command::Attach(arguments) => attach(session, arguments),
        Command::List(List { task: Some(task) }) => list(session, &task),
        Command::List(List { task: None }) => list_all(session),
    }
}

fn attach(session: &Session, arguments: Attach) -> Outcome {
    let Attach { task, file, name } = arguments;
    let task = session.task(&task)?.id.to_string();
    let own_name =
        Path::new(&file).file_name().and_then(|name| name.to_str()).filter(|_| file != "-");
    let name = name.or(own_name.map(str::to_owned));
    let name = name.unwrap_or_else(|| usage_error("what is it to be called? give --name"));
    let mut request = attach_artifact::Params { task_id: task, name, ..Default::default() };
    // A server reads no files of this machine, so the content goes along as text.
    if file == "-" || session.server.is_some() {
        request.text = Some(read_whole(&file));
    } else {
        request.path = Some(session.cwd.join(&file).to_string_lossy().into_owned());
    }
    let reply = session.ask::<ops::AttachArtifact>(&request)?;
    session.show(reply.json(), |page| {
        let (bytes, path) = (reply.artifact.bytes, &reply.path);
        let place = match &session.server {
            Some(server) => format!("{path} of the board of {}", server.address),
            None => session.dir().join(path).display().to_string(),
        };
        page.line(format_args!(
            "task {}: {}, {bytes} bytes, in {place}",
            reply.task_id, request.name
        ));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session, task: &str) -> Outcome {
    let task_id = session.task(task)?.id.to_string();
    let query = get_task::Params { task_id: task_id.clone(), ..Default::default() };
    let reply = session.ask::<ops::GetTask>(&query)?;
    let artifacts = &reply.task.task.artifacts;
    let shown = json!({"task_id": task_id, "artifacts": artifacts});
    session.show(&shown, |page| {
        if artifacts.is_empty() {
            return page.line(nothing_kept(session));
        }
        let rows: Vec<_> = artifacts.iter().map(|one| row(page, one)).collect();
        page.table(["name", "bytes", "attached", "agent", "attempt", "earlier"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the files of all tasks, in the order of the tasks.
fn list_all(session: &Session) -> Outcome {
    let query = get_all_tasks::Params::default();
    let reply = session.every_page::<ops::GetAllTasks>("tasks", &query)?;
    let tasks = reply.tasks.iter().filter_map(|task| Listed::whole(task));
    let kept: Vec<_> =
        tasks.flat_map(|task| task.artifacts.iter().map(move |one| (task, one))).collect();
    let shown = kept.iter().map(|(task, one)| {
        let mut shown = json!(one);
        shown["task_id"] = json!(task.id);
        shown
    });
    session.show(&json!({"artifacts": shown.collect::<Vec<_>>()}), |page| {
        if kept.is_empty() {
            return page.line(nothing_kept(session));
        }
        let rows: Vec<_> = kept
            .iter()
            .map(|(task, one)| {
                let [name, bytes, attached, agent, ..] = row(page, one);
                let number = Named::from(*task).short();
                [number.into(), name, bytes, attached, agent, task.headline().into()]
            })
            .collect();
        page.table(["#", "name", "bytes", "attached", "agent", "task"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}

fn nothing_kept(session: &Session) -> String {
    format!("no artifacts; {} keeps one", session.wording.command("artifact attach TASK FILE"))
}

fn row(page: &Page, one: &Artifact) -> [Column; 6] {
    let (agent, attempt) = (or_empty(one.agent.as_ref()), or_empty(one.attempt));
    let (at, earlier) = (page.when(one.at).into(), one.earlier.len().into());
    [one.name.as_str().into(), one.bytes.into(), at, agent.into(), attempt.into(), earlier]
}
