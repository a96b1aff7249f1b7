//! What a client writes to a hook's standard input.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::bom;

/// Bytes of standard input that are read; a tool's output may be long.
const LARGEST_INPUT: u64 = 16 << 20;

/// The fields that are used; clients send more. Each is read by itself: one of another type, one
/// that is too deep or one that comes twice must not keep the guard from the others.
#[derive(Default)]
pub(super) struct Input {
    pub cwd: Option<PathBuf>,
    pub stop_hook_active: Option<bool>,
    /// The client's own id of the subagent in which the hook runs; none in the main conversation.
    agent_id: Value,
    hook_event_name: Value,
    /// Work that continues after the turn and wakes the session.
    background_tasks: Value,
    pub tool_name: Value,
    pub tool_input: Value,
    pub notification_type: Value,
    pub message: Value,
    /// What Gemini CLI says of the prompt that it shows.
    pub details: Value,
    timestamp: Value,
}

type Fields = HashMap<String, Box<RawValue>>;

impl Input {
    /// Reads standard input to its end. None if it is not a JSON object.
    pub(super) fn read() -> Option<Self> {
        let mut stdin = io::stdin().lock();
        if stdin.is_terminal() {
            return Some(Self::default());
        }
        let mut text = Vec::new();
        stdin.by_ref().take(LARGEST_INPUT).read_to_end(&mut text).ok()?;
        io::copy(&mut stdin, &mut io::sink()).ok()?;
        Self::of(&String::from_utf8_lossy(&text))
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        let fields: Fields = serde_json::from_str(bom::skip(text)).ok()?;
        let value = |name| fields.get(name).map(|raw| lenient(raw)).unwrap_or_default();
        Some(Self {
            cwd: value("cwd").as_str().map(PathBuf::from),
            stop_hook_active: match value("stop_hook_active") {
                Value::Null => None,
                given => Some(given != false),
            },
            agent_id: value("agent_id"),
            hook_event_name: value("hook_event_name"),
            background_tasks: value("background_tasks"),
            tool_name: value("tool_name"),
            tool_input: value("tool_input"),
            notification_type: value("notification_type"),
            message: value("message"),
            details: value("details"),
            timestamp: value("timestamp"),
        })
    }

    /// The files that a tool is about to change: only tools that change one have such a field.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let given = ["file_path", "notebook_path"].map(|name| &self.tool_input[name]);
        given.into_iter().flat_map(each).filter_map(Value::as_str)
    }

    pub(super) fn is_after_tool(&self) -> bool {
        self.hook_event_name == "PostToolUse"
    }

    pub(super) fn subagent(&self) -> Option<&str> {
        self.agent_id.as_str().filter(|id| !id.is_empty())
    }

    pub(super) fn has_subagents(&self) -> bool {
        let mut tasks = self.background_tasks.as_array().into_iter().flatten();
        tasks.any(|task| matches!(task["type"].as_str(), Some("subagent" | "workflow")))
    }

    /// Whether the client is about to ask its user. Copilot CLI, which alone gives a time with this
    /// event, sends it before it knows whether it will ask.
    pub(super) fn asks_permission(&self) -> bool {
        self.hook_event_name == "PermissionRequest" && self.timestamp.is_null()
    }

    /// Whether the input says what exactly the user is asked.
    pub(super) fn is_detailed(&self) -> bool {
        self.asks_permission() || self.details.is_object()
    }
}

/// The entries of a list, or the one value.
fn each(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// The value. Of an object that cannot be read as a whole, the fields that can.
fn lenient(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| {
        let fields: Fields = serde_json::from_str(raw.get()).unwrap_or_default();
        let read = |(name, raw): (String, Box<RawValue>)| {
            Some((name, serde_json::from_str(raw.get()).ok()?))
        };
        Value::Object(fields.into_iter().filter_map(read).collect())
    })
}
