//! `callboard artifact`: files kept with a task.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::print::{Column, or_empty};
use super::{Outcome, Session, read_whole, usage_error};
use crate::ops;
use crate::ops::{attach_artifact, get_task};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Keep a file with a task
    Attach(Attach),
    /// List the files that are kept with a task
    List(List),
}

#[derive(Args)]
pub(super) struct Attach {
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

#[derive(Args)]
pub(super) struct List {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,
}

pub(super) fn run(session: &Session, command: Command) -> Outcome {
    match command {
        Command::Attach(arguments) => attach(session, arguments),
        Command::List(arguments) => list(session, &arguments),
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

fn list(session: &Session, arguments: &List) -> Outcome {
    let task_id = session.task(&arguments.task)?.id.to_string();
    let query = get_task::Params { task_id: task_id.clone(), ..Default::default() };
    let reply = session.ask::<ops::GetTask>(&query)?;
    let artifacts = &reply.task.task.artifacts;
    let shown = json!({"task_id": task_id, "artifacts": artifacts});
    session.show(&shown, |page| {
        if artifacts.is_empty() {
            return page.line(format_args!(
                "no artifacts; {} keeps one",
                session.wording.command("artifact attach")
            ));
        }
        let rows = artifacts.iter().map(|one| {
            let (agent, attempt) = (or_empty(one.agent.as_ref()), or_empty(one.attempt));
            let name = Column::from(one.name.as_str());
            let (at, earlier) = (page.when(one.at).into(), one.earlier.len().into());
            [name, one.bytes.into(), at, agent.into(), attempt.into(), earlier]
        });
        let rows: Vec<_> = rows.collect();
        page.table(["name", "bytes", "attached", "agent", "attempt", "earlier"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}
