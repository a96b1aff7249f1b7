//! Whether a command runs inside an agent: in a shell that an agent's client has started. What is
//! typed there is the agent's, not the person's.

use std::env;

use super::hook::{Processes, Tasks};
use super::{Command, Session};
use crate::ops::Inside;
use crate::participant::living::living;
use crate::state::id::{AgentId, ParticipantId};
use crate::state::level::Living;

/// Environment variable with the agent that a shell belongs to. Whoever starts an agent's client
/// or program sets it.
pub(super) const AGENT_VARIABLE: &str = "CALLBOARD_AGENT";

/// Environment variables that agents' clients set in the shells that they start, but not in the
/// terminals of the person, and what the client is called. Settings that people keep in their own
/// environment are none of them, such as `CODEX_HOME`.
const MARKS: [(&str, &str); 24] = [
    ("CLAUDECODE", "claude"),
    ("CLAUDE_CODE", "claude"),
    ("CLAUDE_CODE_SESSION_ID", "claude"),
    ("CLAUDE_CODE_IS_COWORK", "claude"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_CI", "codex"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("GEMINI_CLI", "gemini"),
    ("QWEN_CODE", "qwen"),
    ("CURSOR_AGENT", "cursor"),
    ("OPENCODE", "opencode"),
    ("OPENCODE_CLIENT", "opencode"),
    ("COPILOT_CLI", "copilot"),
    ("CLINE_ACTIVE", "cline"),
    ("ROO_ACTIVE", "roo"),
    ("AUGMENT_AGENT", "augment"),
    ("GOOSE_TERMINAL", "goose"),
    ("AMP_CURRENT_THREAD_ID", "amp"),
    ("CRUSH", "crush"),
    ("ANTIGRAVITY_AGENT", "antigravity"),
    ("PI_CODING_AGENT", "pi"),
    ("OPENCLAW_SHELL", "openclaw"),
    ("AI_AGENT", "agent"),
];

/// Programs of agents' clients: the shells below one that has started an agent's server are its.
const PROGRAMS: [&str; 10] = [
    "claude",
    "codex",
    "gemini",
    "qwen",
    "cursor-agent",
    "opencode",
    "copilot",
    "goose",
    "amp",
    "crush",
];

/// The agent's surroundings of a command.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// What the client is called.
    pub client: &'static str,
    /// The agent that was named, or else the session's only one.
    pub agent: Option<AgentId>,
    pub inside: Inside,
}

/// Whether the command acts for whoever types it. A server acts for its clients, and a hook finds
/// its agent itself.
fn acts(command: &Command) -> bool {
    !matches!(
        command,
        Command::Mcp(_)
            | Command::Hook(_)
            | Command::Guard(_)
            | Command::Serve(_)
            | Command::Web(_)
    )
}

/// Whether the agent that is named with the command is another than the one who types it.
fn names_another(command: &Command) -> bool {
    matches!(command, Command::Connect(_) | Command::Init(_) | Command::Token(_) | Command::Work(_))
}

impl Session {
    /// Finds out whose command this is. An agent that is named stays the one who acts.
    pub(super) fn look_around(&mut self, command: &Command) {
        self.surroundings = self.surroundings(command);
        if let (Some(around), None, false) =
            (&self.surroundings, &self.agent, names_another(command))
        {
            self.agent = around.agent.as_ref().map(AgentId::to_string);
        }
    }

    /// What makes this command an agent's; none if it is the person's.
    fn surroundings(&self, command: &Command) -> Option<Surroundings> {
        if !acts(command) {
            return None;
        }
        let is_set =
            |name: &str| env::var_os(name).is_some_and(|set| !set.is_empty() && set != "0");
        // A name that is no text is refused as one that is no agent's, not passed over.
        let named = env::var_os(AGENT_VARIABLE).filter(|name| !name.is_empty());
        let named = named.map(|name| name.to_string_lossy().into_owned());
        let marked = named.iter().map(|_| (AGENT_VARIABLE, "agent")).chain(MARKS);
        let marked = marked.into_iter().find(|(name, _)| is_set(name));
        let (dir, processes, own) = (self.dir(), Processes::look(), std::process::id());
        let (above, host) = (processes.above(own), processes.host_of(own));
        let is_ours = |process: &Living| {
            let Some(pid) = process.pid else { return false };
            let starter = processes.host_of(pid);
            let is_below = above.contains(&pid)
                || starter
                    .is_some_and(|one| above.contains(&one) && processes.is_one_of(one, &PROGRAMS));
            is_below || marked.is_some() && starter.is_some() && starter == host
        };
        let ours: Vec<_> = living(dir).into_iter().filter(is_ours).map(|one| one.id).collect();
        let state = (!ours.is_empty()).then(|| Tasks::Held.state(dir).ok()).flatten();
        let is_one = |one: &ParticipantId| ours.contains(one);
        let agents: Vec<_> = state
            .iter()
            .flat_map(|state| state.agents())
            .filter(|agent| agent.present_through.iter().any(is_one))
            .map(|agent| agent.id.clone())
            .collect();
        let (client, mark) = match (marked, agents.first()) {
            (Some((name, client)), _) => (client, format!("{name} is set")),
            (None, Some(agent)) => ("agent", format!("it runs below agent `{agent}`")),
            (None, None) => return None,
        };
        let only = agents.first().filter(|_| agents.len() == 1).cloned();
        let agent = named.map(AgentId::trusted).or(only);
        Some(Surroundings { client, agent, inside: Inside { mark: Some(mark), processes: ours } })
    }
}
