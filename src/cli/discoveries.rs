use std::process::ExitCode;

use serde_json::json;

use super::{Outcome, Session, print, read_input};
use crate::state::agent::Discovery;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only those with this tag; may be repeated, any of them will do
    #[arg(long)]
    tag: Vec<String>,
    /// The newest N
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Share something that others should know
    Add(Add),
}

#[derive(clap::Args)]
struct Add {
    /// What is to be known; `-` reads it from standard input
    text: String,
    /// What it is about; may be repeated
    #[arg(long)]
    tag: Vec<String>,
    /// Idempotency key: repeating the command with it adds nothing
    #[arg(long)]
    key: Option<String>,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command {
        Some(Command::Add(arguments)) => add(session, arguments),
        None => list(session, &arguments),
    }
}

fn add(session: &Session, arguments: Add) -> Outcome {
    let content = if arguments.text == "-" { read_input("-") } else { arguments.text };
    let request = json!({"content": content, "tags": arguments.tag, "idempotency_key": arguments.key});
    let reply = session.call("add_discovery", request)?;
    session.show(&reply, |page| page.line(print::text(&reply["discovery"]["id"])))?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session, arguments: &Arguments) -> Outcome {
    let reply = session.call("get_discoveries", json!({"tags": arguments.tag, "limit": arguments.limit}))?;
    let discoveries: Vec<Discovery> = serde_json::from_value(reply["discoveries"].clone())?;
    session.show(&reply, |page| {
        if discoveries.is_empty() {
            page.line("no discoveries");
        }
        for one in &discoveries {
            let tags = if one.tags.is_empty() { String::new() } else { format!(" [{}]", one.tags.join(", ")) };
            let from = format!("{} {}{tags}", one.agent_id, page.when(one.created_at));
            page.field(&print::harmless(&from), &one.content);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
