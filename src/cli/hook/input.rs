//! What a client writes to a hook's standard input.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::bom;

/// Bytes of standard input that are read; a tool's output may be long.
const LARGEST_INPUT: u64 = 16 << 20;

/// The fields that are used; clients send more. Those that not every hook needs are accepted in any
/// form.
#[derive(Deserialize)]
pub(super) struct Input {
    pub cwd: Option<PathBuf>,
    pub stop_hook_active: Option<bool>,
    /// The client's own id of the subagent in which the hook runs; none in the main conversation.
    #[serde(default)]
    agent_id: Value,
    #[serde(default)]
    hook_event_name: Value,
    /// Work that continues after the turn and wakes the session.
    #[serde(default)]
    background_tasks: Value,
    #[serde(default)]
    pub tool_name: Value,
    #[serde(default)]
    pub tool_input: Value,
    #[serde(default)]
    pub notification_type: Value,
    #[serde(default)]
    pub message: Value,
    /// What Gemini CLI says of the prompt that it shows.
    #[serde(default)]
    pub details: Value,
    #[serde(default)]
    timestamp: Value,
}

impl Input {
    /// Reads standard input to its end. None if it cannot be understood.
    pub(super) fn read() -> Option<Self> {
        let mut stdin = io::stdin().lock();
        if stdin.is_terminal() {
            return serde_json::from_str("{}").ok();
        }
        let mut text = Vec::new();
        stdin.by_ref().take(LARGEST_INPUT).read_to_end(&mut text).ok()?;
        io::copy(&mut stdin, &mut io::sink()).ok()?;
        serde_json::from_slice(bom::skip_bytes(&text)).ok()
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
