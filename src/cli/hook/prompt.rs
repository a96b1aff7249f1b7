//! What a client asks its user, in a few words, and where the user can answer.

use std::env;

use serde_json::Value;

use super::super::print::harmless;
use super::host::Processes;
use super::input::Input;
use crate::redact;
use crate::state::agent::WaitReason;
use crate::state::limit;

/// Bytes of a tool's input that are looked at.
const LOOKED_AT: usize = 4_096;
/// Most characters that are reported.
const SHOWN: usize = 120;
/// Fields that tell most about what a tool would do, from the most telling one.
const TELLING: [&str; 10] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "url",
    "query",
    "pattern",
    "filePath",
    "prompt",
    "description",
];

/// A question to the user, at which the agent waits.
pub(super) struct Prompt {
    pub reason: WaitReason,
    /// What is to be permitted; none for a question in words.
    pub what: Option<String>,
}

impl Prompt {
    /// The prompt that a hook tells of; none if it tells of something else.
    pub(super) fn of(input: &Input) -> Option<Self> {
        if input.asks_permission() {
            return Some(Self {
                reason: WaitReason::Permission,
                what: asked(&input.tool_name, &input.tool_input),
            });
        }
        let message = || input.message.as_str().map(brief);
        match input.notification_type.as_str()? {
            "permission_prompt" => Some(Self { reason: WaitReason::Permission, what: message() }),
            "ToolPermission" => Some(Self {
                reason: WaitReason::Permission,
                what: detailed(&input.details).or_else(message),
            }),
            "idle_prompt" => Some(Self { reason: WaitReason::Input, what: None }),
            "elicitation_dialog" | "agent_needs_input" => {
                Some(Self { reason: WaitReason::Input, what: message() })
            }
            _ => None,
        }
    }
}

/// The tool, and what it would do: `Bash: cargo add nom`.
fn asked(tool: &Value, input: &Value) -> Option<String> {
    let tool = tool.as_str()?;
    Some(match telling(input) {
        Some(input) => brief(&format!("{tool}: {input}")),
        None => brief(tool),
    })
}

/// The same from the details of Gemini CLI, which has no tool's name in some.
fn detailed(details: &Value) -> Option<String> {
    let field = |name: &str| details[name].as_str();
    let what = match field("type")? {
        "mcp" => format!("{}: {}", field("serverName")?, field("toolName")?),
        "exec" => format!("shell: {}", field("command")?),
        kind => format!("{kind}: {}", telling(details).or(field("title").map(str::to_owned))?),
    };
    Some(brief(&what))
}

fn telling(input: &Value) -> Option<String> {
    TELLING.iter().find_map(|name| match &input[name] {
        Value::String(text) => Some(beginning(text, LOOKED_AT).to_owned()),
        Value::Array(words) => {
            let words: Vec<_> = words.iter().take(SHOWN).filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| beginning(&words.join(" "), LOOKED_AT).to_owned())
        }
        _ => None,
    })
}

/// The beginning of the text, in one line and without secrets.
fn brief(text: &str) -> String {
    let text = beginning(text, LOOKED_AT);
    let clean = redact::text(text).map_or_else(|| text.to_owned(), |(clean, _)| clean);
    let line = harmless(&clean).split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = line.char_indices().nth(SHOWN).map_or(line.len(), |(end, _)| end);
    let shown = beginning(&line[..shown], limit::AWAITED.max - '…'.len_utf8());
    if shown.len() < line.len() { format!("{shown}…") } else { line }
}

fn beginning(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Where the user can answer: a pane of a multiplexer, or else the program and the terminal of the
/// client.
pub(super) fn place() -> Option<String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let pane = set("TMUX_PANE").map(|pane| format!("tmux pane {pane}"));
    let pane = pane.or_else(|| Some(format!("zellij pane {}", set("ZELLIJ_PANE_ID")?)));
    let pane = pane.or_else(|| Some(format!("screen {}", set("STY")?)));
    let terminal = || {
        let device = Processes::look().terminal_of(std::process::id());
        let parts: Vec<_> = set("TERM_PROGRAM").into_iter().chain(device).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    pane.or_else(terminal).map(|place| brief(&place))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(input: Value) -> Option<(WaitReason, Option<String>)> {
        let prompt = Prompt::of(&Input::of(&input.to_string()).expect("an input"))?;
        Some((prompt.reason, prompt.what))
    }

    fn permission(what: &str) -> Option<(WaitReason, Option<String>)> {
        Some((WaitReason::Permission, Some(what.to_owned())))
    }

    #[test]
    fn the_prompts_of_each_client_are_told_in_few_words() {
        let claude = json!({"hook_event_name": "PermissionRequest", "permission_mode": "default", "tool_name": "Bash",
            "tool_input": {"command": "cargo add nom\n  --dev", "description": "Add it"}});
        assert_eq!(told(claude), permission("Bash: cargo add nom --dev"));
        let edit = json!({"hook_event_name": "PermissionRequest", "tool_name": "Edit",
            "tool_input": {"file_path": "/p/src/a.rs", "old_string": "x", "new_string": "y"}});
        assert_eq!(told(edit), permission("Edit: /p/src/a.rs"));
        let tool = json!({"hook_event_name": "PermissionRequest", "tool_name": "mcp__db__drop", "tool_input": {"n": 1}});
        assert_eq!(told(tool), permission("mcp__db__drop"));
        let later = json!({"hook_event_name": "Notification", "notification_type": "permission_prompt",
            "message": "Claude needs your permission to use Bash"});
        assert_eq!(told(later), permission("Claude needs your permission to use Bash"));
        let gemini = json!({"hook_event_name": "Notification", "notification_type": "ToolPermission", "timestamp": "t",
            "message": "Tool x requires execution", "details": {"type": "exec", "title": "x", "command": "make"}});
        assert_eq!(told(gemini), permission("shell: make"));
        let gemini = json!({"notification_type": "ToolPermission", "details": {"type": "edit", "filePath": "/p/a.rs"}});
        assert_eq!(told(gemini), permission("edit: /p/a.rs"));
        let gemini = json!({"notification_type": "ToolPermission",
            "details": {"type": "mcp", "serverName": "callboard", "toolName": "claim_task"}});
        assert_eq!(told(gemini), permission("callboard: claim_task"));
        let idle = json!({"notification_type": "idle_prompt", "message": "Claude is waiting for your input"});
        assert_eq!(told(idle), Some((WaitReason::Input, None)));
    }

    #[test]
    fn what_is_no_prompt_is_none() {
        assert_eq!(told(json!({"notification_type": "auth_success", "message": "m"})), None);
        assert_eq!(told(json!({"notification_type": 7, "tool_name": [], "details": "d"})), None);
        // Copilot CLI sends it for every call of a tool.
        let early = json!({"hook_event_name": "PermissionRequest", "timestamp": "2026-11-25T20:00:00Z", "tool_name": "Bash",
            "tool_input": {"command": "ls"}});
        assert_eq!(told(early), None);
    }

    #[test]
    fn secrets_are_redacted_before_the_text_is_cut() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let command =
            format!("{} curl -H 'Authorization: Bearer {token}' https://x", "y".repeat(60));
        let asks = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": command}});
        let (_, what) = told(asks).expect("a prompt");
        let what = what.expect("what for");
        assert!(!what.contains("ghp_") && what.contains("[redacted"), "{what}");
        assert!(what.chars().count() <= SHOWN + 1 && what.len() <= limit::AWAITED.max, "{what}");
        let wide = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "€".repeat(9_000)}});
        assert!(
            told(wide).and_then(|(_, what)| what).expect("what for").len() <= limit::AWAITED.max
        );
    }
}
