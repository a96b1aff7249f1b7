use std::num::NonZeroU32;
use std::process::ExitCode;

use super::{Outcome, Session, print, read_input};
use crate::ops::{self, add_discovery, get_discoveries};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// List only discoveries that contain all these words
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// List only discoveries with this tag; may be repeated to match any of them
    #[arg(long)]
    tag: Vec<String>,
    /// List only what was found in work on this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Include superseded discoveries
    #[arg(long)]
    all: bool,
    /// List only discoveries older than this one
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// List at most N, the newest
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add something that others should know
    Add(Add),
}

#[derive(clap::Args)]
struct Add {
    /// What is to be known; `-` reads standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// Tag of the discovery; may be repeated
    #[arg(long)]
    tag: Vec<String>,
    /// The task in whose work it was found [default: the one you hold]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// File that it is about; may be repeated
    #[arg(long)]
    file: Vec<String>,
    /// Id of a discovery that this one supersedes; may be repeated
    #[arg(long, value_name = "ID")]
    supersede: Vec<String>,
    /// Idempotency key: repeating the command with it adds nothing
    #[arg(long)]
    key: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command {
        Some(Command::Add(arguments)) => add(session, arguments),
        None => list(session, arguments),
    }
}

fn add(session: &Session, arguments: Add) -> Outcome {
    let text = arguments.text.join(" ");
    let content = if text == "-" { read_input("-") } else { text };
    let files = session.project_paths(&arguments.file);
    let task_id = session.task_id(arguments.task.as_deref())?;
    let request = add_discovery::Params {
        content,
        tags: arguments.tag,
        task_id,
        files,
        supersedes: arguments.supersede,
        idempotency_key: arguments.key,
        ..Default::default()
    };
    let reply = session.ask::<ops::AddDiscovery>(&request)?;
    session.show(reply.json(), |page| page.line(&reply.discovery.id))?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { search, tag, task, all, before, limit, .. } = arguments;
    let task_id = session.task_id(task.as_deref())?;
    let request =
        get_discoveries::Params { query: search, tags: tag, task_id, all, limit, after: before };
    let reply = session.ask::<ops::GetDiscoveries>(&request)?;
    session.show(reply.json(), |page| {
        if reply.discoveries.is_empty() {
            page.line("no discoveries");
        }
        for shown in &reply.discoveries {
            let one = &shown.discovery;
            let tags = if one.tags.is_empty() {
                String::new()
            } else {
                format!(" [{}]", one.tags.join(", "))
            };
            let superseded_by = shown
                .superseded_by
                .as_ref()
                .map(|by| format!(", superseded by {by}"))
                .unwrap_or_default();
            let from = format!(
                "{} {} {}{tags}{superseded_by}",
                one.id,
                one.agent_id,
                page.when(one.created_at)
            );
            page.field(&print::harmless(&from), &one.content);
        }
        if let Some(next) = reply.part.as_ref().and_then(|part| part.next.as_ref()) {
            page.line(format_args!("there are older ones: --before {next}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
