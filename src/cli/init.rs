use std::process::ExitCode;

use serde_json::json;

use super::{Outcome, Session, read_input};

#[derive(clap::Args)]
pub struct Arguments {
    /// What all work is for
    goal: String,
    /// The master plan; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
}

/// For a project's AGENTS.md or CLAUDE.md.
const PARAGRAPH: &str = "\
## Tasks

All agents on this project share one task board, callboard. With its MCP tools: `register_agent` once, keep the agent_id;
then `claim_task` (wait_seconds 50), do that one task, `heartbeat` with a note at each milestone, `complete_task` with
what was done, or `fail_task` with the error; claim again until its verdict is `finished` or `paused`. Without the tools,
the same from a shell, NAME being yours alone:

    callboard --agent NAME claim --wait 50
    callboard --agent NAME heartbeat --note 'where I am'
    callboard --agent NAME complete TASK 'what was done'
    callboard --agent NAME fail TASK 'what went wrong'

`callboard tasks` and `callboard status` show the board. Work only on what you hold; never edit `.coordination/` by hand.";

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let plan = arguments.plan.as_deref().map(read_input);
    let reply = session.call("init_coordination", json!({"goal": arguments.goal, "master_plan": plan}))?;
    session.show(&reply, |page| {
        page.line(match &session.server {
            Some(server) => format!("The board is that of {}.", server.address),
            None => format!("The board is in {} ({}).", session.dir().display(), session.location.source),
        });
        page.line("\nFor AGENTS.md or CLAUDE.md, so that agents use it:\n");
        page.line(PARAGRAPH);
        page.line(
            "\nNext: `callboard connect claude` lets Claude Code use it (or codex, gemini, cursor, vscode, zed),",
        );
        page.line("`callboard add 'what is to be done'` makes the first task.");
    })?;
    Ok(ExitCode::SUCCESS)
}
