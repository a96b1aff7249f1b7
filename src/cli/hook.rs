//! `callboard hook …`: what an agent's client runs when a session begins, when a turn ends, and before and after tools.
//!
//! The client writes one JSON object to standard input and obeys one on standard output. This was checked against the
//! schemas in Claude Code 2.1.197 and Codex 0.169.0 and the documentation in Gemini CLI 0.61.0, which agree on what is
//! used here:
//!
//! | event | input, beside `cwd` | output that is obeyed |
//! |---|---|---|
//! | `SessionStart` | `source`: `startup`, `resume`, `clear`, `compact` (not Gemini), `fork` (Codex) | `hookSpecificOutput.additionalContext` |
//! | `Stop`, Gemini's `AfterAgent` | `stop_hook_active`; Claude Code also `background_tasks` | `decision: "block"` with `reason` |
//! | `PreToolUse` of Claude Code | `tool_input` with `file_path` or `notebook_path` | `hookSpecificOutput.permissionDecision: "deny"` with its reason |
//! | `PostToolUse`, Gemini's `AfterTool` | the tool's input and output | none is given |
//!
//! A hook must never get in its session's way: it answers within two seconds or not at all, creates no board, and
//! always exits with code 0 (2 would block). It reads standard input to the end, because Claude Code treats a hook that
//! closes it early as failed.

mod host;
mod quote;
mod scene;
mod tell;

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Outcome, Session, print, runtime, seed};
use crate::clock::{Clock, SystemClock};
use crate::participant::{self, Caller, Options, Stay};
use crate::state::agent::Agent;
use crate::state::time::SECOND;
pub use scene::Scene;

/// Longest wait for the answer; the rest of the two seconds is for starting the process.
const PATIENCE: Duration = Duration::from_millis(1_700);
/// Bytes of standard input that are read; a tool's output may be long.
const LARGEST_INPUT: u64 = 16 << 20;
/// Milliseconds since an agent's last heartbeat within which no new one is sent.
const HEARD: i64 = 20 * SECOND;

const WHO: &str = "Reads the client's JSON on standard input, answers in JSON or with nothing, and always exits with 0.
The agent is --agent, else CALLBOARD_AGENT, else any that acts through a `callboard mcp` that the same client
process has started, else, if processes cannot be compared, the only one present in the worktree.";

#[derive(clap::Args)]
#[command(after_help = WHO)]
pub struct Arguments {
    #[command(subcommand)]
    hook: Hook,
}

#[derive(Clone, Copy, clap::Subcommand)]
enum Hook {
    /// When a session begins, resumes or was compacted: tell it its agent, its tasks and the next step
    SessionStart,
    /// When an agent is about to stop: keep it from stopping, once, while it holds a task
    Stop,
    /// Before a tool changes a file: refuse a file that another agent holds
    Guard,
    /// After a tool: renew the agent's leases, silently and at most every 20 seconds
    Heartbeat,
}

/// The fields of the hooks' input that are used; clients send more.
#[derive(Deserialize)]
struct Input {
    cwd: Option<PathBuf>,
    stop_hook_active: Option<bool>,
    /// Work that continues after the turn and wakes the session. Like `tool_input`, it is accepted in any form, since
    /// most hooks need neither.
    #[serde(default)]
    background_tasks: Value,
    #[serde(default)]
    tool_input: Value,
}

pub fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let (sender, receiver) = sync_channel(1);
    let (hook, session) = (arguments.hook, session.clone());
    let asked = thread::Builder::new().name("hook".to_owned()).spawn(move || drop(sender.send(hook.output(&session))));
    // A call that is still waiting ends with the process.
    if let (Ok(_), Ok(Some(output))) = (asked, receiver.recv_timeout(PATIENCE)) {
        writeln!(io::stdout().lock(), "{}", print::harmless_json(&output.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Hook {
    fn output(self, session: &Session) -> Option<Value> {
        let input = read_input()?;
        // A second stop is the agent's own decision; while subagents run, the turn is not over.
        if matches!(self, Self::Stop) && (input.stop_hook_active == Some(true) || input.has_subagents()) {
            return None;
        }
        let scene = Scene::look(session, input.cwd.as_deref()).ok().flatten()?;
        match self {
            Self::SessionStart => {
                let context = tell::at_start(&scene);
                Some(json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}}))
            }
            Self::Stop => tell::at_stop(&scene).map(|reason| json!({"decision": "block", "reason": reason})),
            Self::Guard => {
                // Only tools that change one file have such a field.
                let file = ["file_path", "notebook_path"].iter().find_map(|name| input.tool_input[name].as_str())?;
                let reason = tell::at_edit(&scene, Path::new(file))?;
                Some(json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
                }}))
            }
            Self::Heartbeat => {
                renew(session, &scene);
                None
            }
        }
    }
}

impl Input {
    fn has_subagents(&self) -> bool {
        let mut tasks = self.background_tasks.as_array().into_iter().flatten();
        tasks.any(|task| matches!(task["type"].as_str(), Some("subagent" | "workflow")))
    }
}

fn read_input() -> Option<Input> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        return serde_json::from_str("{}").ok();
    }
    let mut text = Vec::new();
    stdin.by_ref().take(LARGEST_INPUT).read_to_end(&mut text).ok()?;
    io::copy(&mut stdin, &mut io::sink()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Renews the leases of silent agents: any call that names an agent does.
fn renew(session: &Session, scene: &Scene) {
    let now = SystemClock::default().wall();
    let silent = |agent: &&Arc<Agent>| !agent.current_tasks.is_empty() && now.since(agent.last_heartbeat) >= HEARD;
    let silent: Vec<_> = scene.agents.iter().filter(silent).map(|agent| agent.id.clone()).collect();
    if silent.is_empty() {
        return;
    }
    let Ok(runtime) = runtime() else { return };
    let handle = participant::spawn(Options {
        dir: scene.dir.clone(),
        stay: Stay::Brief,
        forbidden: None,
        unwritable: session.objection_to(&scene.dir),
        clock: Box::new(SystemClock::default()),
        seed: seed(),
        worktree: None,
    });
    runtime.block_on(async {
        let mut calls = JoinSet::new();
        for agent in silent {
            let handle = handle.clone();
            calls.spawn(async move {
                // Nobody is there to see an error.
                drop(handle.call("heartbeat", json!({"agent_id": agent}), &Caller::default()).await);
            });
        }
        calls.join_all().await;
    });
}
