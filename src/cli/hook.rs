//! `callboard hook …`: what an agent's client runs when a session begins, when a turn ends, and
//! before and after tools.
//!
//! The client writes one JSON object to standard input and obeys one on standard output. This was
//! checked against the programs of Claude Code 2.1.332, the schemas of Codex 0.169.0, and the
//! program and documentation of Gemini CLI 0.61.0 and Copilot CLI 1.0.102, which agree on what is
//! used here:
//!
//! | event | input, beside `cwd` | output that is obeyed |
//! |---|---|---|
//! | `SessionStart` | `source`: `startup`, `resume`, `clear`, `compact` (not Gemini), `fork` (Codex) | `hookSpecificOutput.additionalContext` |
//! | `SubagentStart` of Claude Code and Codex | `agent_id`, `agent_type` | the same |
//! | `Stop`, `SubagentStop`, Gemini's `AfterAgent` | `stop_hook_active`; Claude Code also `background_tasks` | `decision: "block"` with `reason` |
//! | `PreToolUse` of Claude Code | `tool_input` with `file_path` or `notebook_path` | `hookSpecificOutput.permissionDecision: "deny"` with its reason |
//! | `PostToolUse` | the tool's input and output | `hookSpecificOutput.additionalContext`, if the agent is to stop |
//! | `PostToolUseFailure`, `UserPromptSubmit`, Gemini's `AfterTool` and `BeforeAgent` | the tool's input and output | none is given |
//! | `PermissionRequest` of Claude Code and Codex | `tool_name`, `tool_input` | none is given |
//! | `Notification` of Claude Code, Copilot and Gemini | `notification_type`, `message`; Gemini also `details` | none is given |
//!
//! Every hook that runs inside a subagent has its `agent_id`.
//!
//! A hook must never get in its session's way: it answers within two seconds or not at all, creates
//! no board, and always exits with code 0 (2 would block). It reads standard input to the end,
//! because Claude Code treats a hook that closes it early as failed.

mod host;
mod input;
mod prompt;
mod quote;
mod scene;
mod sign;
mod subagent;
mod tell;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Outcome, Session, print};
pub(super) use host::Processes;
use input::Input;
use prompt::Prompt;
pub(super) use scene::{Conversation, Scene, Tasks};
use subagent::Tag;

/// Longest wait for the answer; the rest of the two seconds is for starting the process.
const PATIENCE: Duration = Duration::from_millis(1_700);

const WHO: &str = "Reads the client's JSON on standard input, answers in JSON or with nothing, \
                   and always exits with 0.
The agent is --agent, else CALLBOARD_AGENT, else any that acts through a `callboard mcp` that the \
                   same client
process has started, else, if processes cannot be compared, the only one present in the worktree.";

#[derive(clap::Args)]
#[command(after_help = WHO)]
pub(super) struct Arguments {
    /// Without it, the hooks are listed
    #[command(subcommand)]
    hook: Option<Hook>,
}

#[derive(Clone, Copy, Subcommand)]
enum Hook {
    /// When a session begins, resumes or was compacted: tell it its agent, its tasks and the next
    /// step
    SessionStart,
    /// When a subagent begins: give it a name of its own on the board, and the first calls
    SubagentStart,
    /// When an agent or subagent is about to stop: keep it from stopping, once, while it holds a
    /// task
    Stop,
    /// Before a tool changes a file: refuse a file that another agent holds
    Guard,
    /// After a tool or an answer: renew the agent's leases, and say if it is to stop
    Heartbeat,
    /// When the client asks its user something: record that the agent waits, for what and where
    Waiting,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let Some(hook) = arguments.hook else { return list(session) };
    let (sender, receiver) = channel();
    let session = session.clone();
    let asked = thread::Builder::new().name("hook".to_owned()).spawn(move || {
        let heard = || drop(sender.send(None));
        drop(sender.send(Some(hook.output(&session, heard))));
    });
    // Time counts from what came last. A call that is still waiting ends with the process.
    let answer = || loop {
        if let Some(answer) = receiver.recv_timeout(PATIENCE).ok()? {
            return answer;
        }
    };
    if let (Ok(_), Some(output)) = (asked, answer()) {
        writeln!(io::stdout().lock(), "{}", print::harmless_json(&output.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which hooks there are, and that clients run them.
fn list(session: &Session) -> Outcome {
    let root = Hook::augment_subcommands(clap::Command::new("hook"));
    let about = |one: &clap::Command| one.get_about().map(ToString::to_string).unwrap_or_default();
    let hooks: Vec<_> =
        root.get_subcommands().map(|one| (one.get_name().to_owned(), about(one))).collect();
    let names: Vec<_> = hooks.iter().map(|(name, _)| name).collect();
    session.show(&json!({"hooks": names}), |page| {
        let connect = session.wording.command("connect CLIENT --hooks");
        page.line(format_args!("an agent's client runs these by itself; {connect} configures it"));
        for (name, about) in &hooks {
            page.wrapped("", &format!("{name:<14}"), print::Tone::Plain, about);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Hook {
    /// What runs at each use of a tool looks at as little as it can.
    fn tasks(self) -> Tasks {
        match self {
            Self::SessionStart | Self::SubagentStart | Self::Stop => Tasks::All,
            Self::Guard | Self::Heartbeat | Self::Waiting => Tasks::Held,
        }
    }

    fn output(self, session: &Session, heard: impl Fn()) -> Option<Value> {
        let input = Input::read(heard)?;
        let subagent = input.subagent().map(Tag::of);
        let conversation = subagent.clone().map_or(Conversation::Main, Conversation::Subagent);
        let tasks = self.tasks();
        let scene =
            Scene::look(session, input.cwd.as_deref(), conversation, tasks).ok().flatten()?;
        match self {
            Self::SessionStart => Some(context("SessionStart", &tell::at_start(&scene))),
            Self::SubagentStart => {
                Some(context("SubagentStart", &tell::at_subagent_start(&scene, &subagent?)))
            }
            Self::Stop => match open_work(&scene, &input) {
                Some(reason) => Some(json!({"decision": "block", "reason": reason})),
                None => {
                    sign::go_on(session, &scene);
                    None
                }
            },
            Self::Guard => {
                let stop = input.files().next().and_then(|_| tell::asked_to_stop(&scene, false));
                if stop.is_some() {
                    sign::hear(session, &scene);
                }
                let held = || input.files().find_map(|file| tell::at_edit(&scene, Path::new(file)));
                let reason = stop.or_else(held)?;
                Some(json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
                }}))
            }
            Self::Heartbeat => {
                // Claude Code and Codex give the agent what is answered after a tool.
                let is_told = input.is_after_tool();
                let stop = is_told.then(|| tell::asked_to_stop(&scene, true)).flatten();
                if stop.is_some() {
                    sign::hear(session, &scene);
                }
                sign::renew(session, &scene);
                stop.map(|text| context("PostToolUse", &text))
            }
            Self::Waiting => {
                sign::wait(session, &scene, Prompt::of(&input)?, input.is_detailed());
                None
            }
        }
    }
}

fn context(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}

/// Why the agent should not stop yet. A second stop is its own decision; while subagents run, the
/// turn is not over.
fn open_work(scene: &Scene, input: &Input) -> Option<String> {
    if input.stop_hook_active == Some(true) || input.has_subagents() {
        return None;
    }
    tell::at_stop(scene)
}
