//! The hooks that run `callboard hook`, in the format that three clients share: groups of commands
//! for each event.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp};
use serde_json::Value;

use super::super::AUTO;
use super::Client;
use super::entry::Edited;
use super::json::{self, Dialect};
use super::line::{self, Choice, Line, quoted, shell_words, text};

/// An event of the client, the subcommand of `callboard hook` that it runs, and for which tools.
struct Hook {
    event: &'static str,
    run: &'static str,
    /// Pattern for sources or tools; none stands for all.
    matcher: Option<&'static str>,
}

const fn hook(event: &'static str, run: &'static str) -> Hook {
    Hook { event, run, matcher: None }
}

/// Hook for Claude Code's tools that change a file.
const EDITS: Hook =
    Hook { event: "PreToolUse", run: "guard", matcher: Some("Edit|Write|MultiEdit|NotebookEdit") };
/// Timeout for a hook, which answers within two seconds; the client waits longer only if it cannot
/// be started.
const TIMEOUT_SECONDS: u32 = 5;

pub(super) struct Hooks<'a> {
    format: &'static Format,
    /// The program, quoted for a shell.
    program: String,
    line: Line<'a>,
}

/// How a client's configuration holds hooks.
struct Format {
    project_file: &'static str,
    hooks: &'static [Hook],
    timeout: u32,
    dialect: Dialect,
    next: &'static str,
}

static CLAUDE: Format = Format {
    project_file: ".claude/settings.json",
    hooks: &[
        hook("SessionStart", "session-start"),
        hook("SubagentStart", "subagent-start"),
        hook("Stop", "stop"),
        hook("SubagentStop", "stop"),
        hook("PostToolUse", "heartbeat"),
        hook("PostToolUseFailure", "heartbeat"),
        hook("UserPromptSubmit", "heartbeat"),
        EDITS,
        hook("PermissionRequest", "waiting"),
        Hook {
            event: "Notification",
            run: "waiting",
            matcher: Some("permission_prompt|idle_prompt|elicitation_dialog"),
        },
    ],
    timeout: TIMEOUT_SECONDS,
    dialect: Dialect::Plain,
    next: "restart Claude Code in this project (/hooks shows them)",
};
static CODEX: Format = Format {
    project_file: ".codex/hooks.json",
    hooks: &[
        hook("SessionStart", "session-start"),
        hook("SubagentStart", "subagent-start"),
        hook("Stop", "stop"),
        hook("SubagentStop", "stop"),
        hook("PostToolUse", "heartbeat"),
        hook("UserPromptSubmit", "heartbeat"),
        hook("PermissionRequest", "waiting"),
    ],
    timeout: TIMEOUT_SECONDS,
    dialect: Dialect::Plain,
    next: "restart Codex and trust them (/hooks shows them)",
};
static GEMINI: Format = Format {
    project_file: ".gemini/settings.json",
    hooks: &[
        hook("SessionStart", "session-start"),
        hook("AfterAgent", "stop"),
        hook("AfterTool", "heartbeat"),
        hook("BeforeAgent", "heartbeat"),
        Hook { event: "Notification", run: "waiting", matcher: Some("ToolPermission") },
    ],
    timeout: TIMEOUT_SECONDS * 1_000,
    dialect: Dialect::Comments,
    next: "restart Gemini CLI and trust them if asked (/hooks shows them)",
};

impl<'a> Hooks<'a> {
    pub(super) fn new(client: Client, exe: &Path, line: Line<'a>) -> anyhow::Result<Self> {
        // A hook without --agent finds the session's agent itself.
        let agent = if line.agent == Choice::Named(AUTO) { Choice::Dropped } else { line.agent };
        let line = Line { agent, ..line };
        Ok(Self { format: format(client)?, program: quoted(&text(exe)?), line })
    }

    /// The command line of a hook, in place of `before`.
    fn command(&self, run: &str, before: &str) -> anyhow::Result<String> {
        let words = self.line.words(&["hook", run], &shell_words(before).unwrap_or_default())?;
        let words = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        // If callboard is missing or too old for hooks, nobody should be bothered, least of all by
        // exit code 2, which blocks.
        Ok(format!("{} {words} || true", self.program))
    }

    /// Adds missing hooks and updates ours. Comments, order and layout of the rest stay.
    pub(super) fn put_into(&self, text: &str) -> anyhow::Result<Edited> {
        let (text, (new, changes)) = json::change(text, self.format.dialect, |root| {
            let events =
                root.object_value_or_create("hooks").context("`hooks` is not an object")?;
            let (mut added, mut changes) = (0, Vec::new());
            for hook in self.format.hooks {
                let event = hook.event;
                let groups = events.array_value_or_create(event);
                let groups = groups.with_context(|| format!("`hooks.{event}` is not an array"))?;
                match find(&groups, hook.run, &self.command(hook.run, "")?) {
                    Some((property, before)) => {
                        let command = self.command(hook.run, &before)?;
                        if command != before {
                            property.set_value(CstInputValue::from(command.as_str()));
                            changes.push(format!("{event}: {before:?}, now {command:?}"));
                        }
                    }
                    None => {
                        let command = self.command(hook.run, "")?;
                        groups.append(self.group(hook, &command));
                        added += 1;
                        changes.push(format!("{event}: {command:?} added"));
                    }
                }
            }
            Ok((added == self.format.hooks.len(), changes))
        })?;
        let value = json::read(&text, self.format.dialect)?;
        for Hook { event, run, .. } in self.format.hooks {
            let groups = value["hooks"][event].as_array().into_iter().flatten();
            let mut hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten();
            let fresh = self.command(run, "")?;
            let is_there = hooks
                .any(|hook| hook["command"].as_str().is_some_and(|one| is_ours(one, run, &fresh)));
            ensure!(is_there, "`hooks` or `{event}` is there twice");
        }
        Ok(Edited { text, new, changes })
    }

    /// The text without our hooks; none if there are none. Groups, events and `hooks` that hold
    /// nothing more go, too.
    pub(super) fn take_from(&self, text: &str) -> anyhow::Result<Option<String>> {
        let (text, removed) = json::change(text, self.format.dialect, |root| {
            let Some(events) = root.object_value("hooks") else { return Ok(0) };
            let mut removed = 0;
            for Hook { event, run, .. } in self.format.hooks {
                let Some(groups) = events.array_value(event) else { continue };
                while let Some((property, _)) = find(&groups, run, &self.command(run, "")?) {
                    let hook = property.parent().and_then(|hook| hook.as_object());
                    hook.context("a hook stands alone")?.remove();
                    removed += 1;
                }
                for group in groups.elements() {
                    let hooks = group.as_object().and_then(|group| group.array_value("hooks"));
                    if removed > 0 && hooks.is_some_and(|hooks| hooks.elements().is_empty()) {
                        group.remove();
                    }
                }
                json::remove_if_empty(&events, event);
            }
            json::remove_if_empty(root, "hooks");
            Ok(removed)
        })?;
        Ok((removed > 0).then_some(text))
    }

    /// The client's events that run our hooks.
    pub(super) fn events(&self) -> Vec<&'static str> {
        self.format.hooks.iter().map(|hook| hook.event).collect()
    }

    fn group(&self, hook: &Hook, command: &str) -> CstInputValue {
        let text = |value: &str| CstInputValue::from(value);
        let matcher = hook.matcher.map(|matcher| ("matcher".to_owned(), text(matcher)));
        let hook = [
            ("type", text("command")),
            ("command", text(command)),
            ("timeout", CstInputValue::Number(self.format.timeout.to_string())),
        ];
        let hook = CstInputValue::Object(hook.map(|(key, value)| (key.to_owned(), value)).into());
        let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![hook]));
        CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
    }
}

pub(super) fn project_file(client: Client) -> anyhow::Result<&'static str> {
    Ok(format(client)?.project_file)
}

pub(super) fn exist_for(client: Client) -> bool {
    format(client).is_ok()
}

pub(super) fn next(client: Client) -> &'static str {
    format(client).map_or("", |format| format.next)
}

fn format(client: Client) -> anyhow::Result<&'static Format> {
    match client {
        Client::Claude => Ok(&CLAUDE),
        Client::Codex => Ok(&CODEX),
        Client::Gemini => Ok(&GEMINI),
        Client::Copilot => bail!(
            "callboard writes hooks for claude, codex and gemini; Copilot CLI reads those of \
             Claude Code: `callboard connect claude --hooks`"
        ),
        Client::Cursor | Client::Opencode | Client::Vscode | Client::Zed => {
            bail!(
                "callboard writes hooks for claude, codex and gemini; other clients have none, or \
                 of another form"
            )
        }
    }
}

/// The `command` property of the hook that runs ours, in its `fresh` or an earlier form, and its
/// value.
fn find(groups: &CstArray, run: &str, fresh: &str) -> Option<(CstObjectProp, String)> {
    let hooks =
        groups.elements().into_iter().filter_map(|group| group.as_object()?.array_value("hooks"));
    let mut hooks = hooks.flat_map(|hooks| hooks.elements()).filter_map(|hook| hook.as_object());
    hooks.find_map(|hook: CstObject| {
        let property = hook.get("command")?;
        let Value::String(found) = property.to_serde_value()? else { return None };
        is_ours(&found, run, fresh).then_some((property, found))
    })
}

/// Whether the command runs `callboard hook RUN`, wherever it is and for whichever board, and
/// nothing else; one that does more is the user's.
fn is_ours(command: &str, run: &str, fresh: &str) -> bool {
    command == fresh || shell_words(command).is_some_and(|words| line::runs(&words, &["hook", run]))
}
