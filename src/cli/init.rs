pub(super) mod paragraph;
mod plans;
mod set_up;

use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::json;

use super::board::Server;
use super::connect::quoted;
use super::print::text;
use super::{Declined, Outcome, Session, read_input};
use crate::http::MCP;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Goal of all work on the board
    #[arg(required = true)]
    goal: Vec<String>,
    /// File with the master plan; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
    #[command(flatten)]
    answers: set_up::Answers,
    /// Replace the goal of a board that has another
    #[arg(long)]
    replace_goal: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let plan = arguments.plan.as_deref().map(read_input);
    let goal = arguments.goal.join(" ");
    let mut asked = json!({"goal": goal, "master_plan": plan});
    if arguments.replace_goal {
        asked["replace_goal"] = true.into();
    } else {
        refuse_other_goal(session, goal.trim())?;
    }
    let reply = session.call("init_coordination", asked)?;
    let (board, connect) = match (&session.server, &session.dir_given) {
        (Some(Server { address, .. }), _) => {
            let (url, mcp) = (quoted(&address.to_string()), quoted(&format!("{address}{MCP}")));
            (format!("--server {url} "), format!("connect claude --url {mcp}"))
        }
        (None, Some(_)) => (
            format!("--dir {} ", quoted(&session.dir().to_string_lossy())),
            "connect claude".to_owned(),
        ),
        (None, None) => (String::new(), "connect claude".to_owned()),
    };
    if arguments.answers.are_wanted(session) {
        return set_up::run(session, &arguments.answers, &reply, &board);
    }
    session.show(&reply, |page| {
        page.line(match &session.server {
            Some(server) => format!("The board is that of {}.", server.address),
            None => format!(
                "The board is in {} ({}).",
                session.dir().display(),
                session.location.source
            ),
        });
        page.line("\nFor AGENTS.md or CLAUDE.md, so that agents use it:\n");
        page.line(paragraph::text(&board));
        if session.server.is_some() {
            page.line(
                "\nWhoever types such commands needs a token of that server in CALLBOARD_TOKEN.",
            );
        }
        let clients = if session.server.is_some() { "" } else { ", zed" };
        let wording = &session.wording;
        page.line(format_args!(
            "\nNext: {} lets Claude Code use it (or codex, gemini, cursor, vscode{clients}),",
            wording.command(&connect)
        ));
        page.line(format_args!(
            "{} makes the first task.",
            wording.command("add 'what is to be done'")
        ));
        if !session.found_board {
            session.name_imports(page);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a goal that differs from the goal of the board that is here.
fn refuse_other_goal(session: &Session, goal: &str) -> anyhow::Result<()> {
    let present = text(&session.call("get_master_plan", json!({}))?["goal"]);
    if present.is_empty() || goal.is_empty() || present == goal {
        return Ok(());
    }
    let place = match &session.server {
        Some(server) => server.address.to_string(),
        None => session.dir().display().to_string(),
    };
    let beginning: String = present.chars().take(SHOWN).collect();
    Err(Declined(anyhow!(
        "the board in {place} has another goal, `{beginning}`; to give it this one, add \
         --replace-goal; tasks and agents stay"
    ))
    .into())
}

/// Most characters of the present goal that a refusal shows.
const SHOWN: usize = 200;
