//! The clients: where each keeps its configuration, what an entry looks like there, and how it is
//! used.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;

use super::entry::{Edited, Entry, Secret, Setting};
use super::json::{self, Dialect};
use super::line::{quoted, text};
use super::{TOKEN_VARIABLE, toml};
use crate::http::TOKEN_FILE;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Copilot,
    Opencode,
    Vscode,
    Zed,
}

/// Milliseconds that opencode gives a call; a claim waits up to 50 s.
const OPENCODE_TIMEOUT: u32 = 60_000;

pub(super) const TOKEN: Secret =
    Secret { id: "callboard-token", description: "Token of callboard serve (file serve.token)" };

impl Client {
    pub(super) fn project_file(self) -> &'static str {
        match self {
            Self::Claude => ".mcp.json",
            Self::Copilot => ".github/mcp.json",
            Self::Opencode => "opencode.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
        }
    }

    pub(super) fn local_entry(self, exe: &Path, arguments: Vec<String>) -> anyhow::Result<Entry> {
        let entry = match self {
            Self::Claude | Self::Cursor | Self::Vscode => Entry::local().require("type", "stdio"),
            Self::Copilot | Self::Opencode => Entry::local().require("type", "local"),
            Self::Codex | Self::Gemini | Self::Zed => Entry::local(),
        };
        let program = text(exe)?;
        let entry = match self {
            Self::Opencode => {
                let words: Vec<_> = [program].into_iter().chain(arguments).collect();
                entry.require("command", words)
            }
            _ => entry.require("command", program).require("args", arguments),
        };
        Ok(match self {
            // Without it, newer versions let the model search for tools before it can call them.
            Self::Claude => entry.suggest("alwaysLoad", true),
            // Without it, no tool is allowed.
            Self::Copilot => entry.suggest("tools", vec!["*".to_owned()]),
            Self::Opencode => entry.suggest("enabled", true).suggest("timeout", OPENCODE_TIMEOUT),
            // Codex passes on a dozen variables of its own choice. Its newest defaults are 30 s and
            // 300 s, but 10 s and 60 s in older versions.
            Self::Codex => entry
                .suggest("env_vars", vec!["COORDINATION_DIR".to_owned()])
                .suggest("startup_timeout_sec", 30)
                .suggest("tool_timeout_sec", 300),
            _ => entry,
        })
    }

    pub(super) fn remote_entry(self, url: &str) -> anyhow::Result<Entry> {
        let authorization =
            |token: &str| Setting::Field("Authorization", format!("Bearer {token}"));
        let entry = Entry::remote();
        Ok(match self {
            Self::Claude => entry
                .require("type", "http")
                .require("url", url)
                .require("headers", authorization(&format!("${{{TOKEN_VARIABLE}}}")))
                .suggest("alwaysLoad", true),
            Self::Copilot => entry
                .require("type", "http")
                .require("url", url)
                .require("headers", authorization(&format!("${{{TOKEN_VARIABLE}}}")))
                .suggest("tools", vec!["*".to_owned()]),
            Self::Opencode => entry
                .require("type", "remote")
                .require("url", url)
                .require("headers", authorization(&format!("{{env:{TOKEN_VARIABLE}}}")))
                .suggest("enabled", true)
                .suggest("timeout", OPENCODE_TIMEOUT),
            Self::Codex => entry
                .require("url", url)
                .require("bearer_token_env_var", TOKEN_VARIABLE)
                .suggest("startup_timeout_sec", 30)
                .suggest("tool_timeout_sec", 300),
            Self::Gemini => entry
                .require("httpUrl", url)
                .require("headers", authorization(&format!("${TOKEN_VARIABLE}"))),
            Self::Cursor => entry
                .require("url", url)
                .require("headers", authorization(&format!("${{env:{TOKEN_VARIABLE}}}"))),
            Self::Vscode => entry
                .require("type", "http")
                .require("url", url)
                .require("headers", authorization(&format!("${{input:{}}}", TOKEN.id)))
                .ask(TOKEN),
            Self::Zed => bail!(
                "Zed sends a header as it stands in its settings, and the token does not belong \
                 there; let it start callboard itself: `callboard connect zed`"
            ),
        })
    }

    /// Key of the client's table of servers.
    pub(super) fn servers(self) -> &'static str {
        match self {
            Self::Claude | Self::Copilot | Self::Gemini | Self::Cursor => "mcpServers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
        }
    }

    /// What the client's own parser takes: plain JSON (Claude Code, Copilot CLI), comments too
    /// (Gemini CLI), or also trailing commas (the editors). None means TOML.
    pub(super) fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Claude | Self::Copilot => Some(Dialect::Plain),
            Self::Gemini => Some(Dialect::Comments),
            Self::Cursor | Self::Opencode | Self::Vscode | Self::Zed => {
                Some(Dialect::TrailingCommas)
            }
            Self::Codex => None,
        }
    }

    pub(super) fn edit(self, text: &str, entry: &Entry) -> anyhow::Result<Edited> {
        match self.dialect() {
            Some(dialect) => json::edit(text, self.servers(), entry, dialect),
            None => toml::edit(text, self.servers(), entry),
        }
    }

    /// Arguments of the server's entry in a file with this `text`; empty if there is none, or none
    /// that can be read.
    pub(super) fn arguments(self, text: &str) -> Vec<String> {
        match self.dialect() {
            Some(dialect) if self == Self::Opencode => {
                json::words(text, self.servers(), "command", dialect).into_iter().skip(1).collect()
            }
            Some(dialect) => json::words(text, self.servers(), "args", dialect),
            None => toml::arguments(text, self.servers()),
        }
    }

    pub(super) fn next_remote(self, board: &Path) -> String {
        let next = self.next();
        match self {
            Self::Vscode => {
                let file = board.join(TOKEN_FILE);
                format!(
                    "start `callboard serve`; {next}; paste the token from {} when asked",
                    file.display()
                )
            }
            _ => {
                let export = export_token(board);
                format!(
                    "start `callboard serve`; in the shell that starts the client: {export}; \
                     {next}"
                )
            }
        }
    }

    /// What to do if another machine serves the board: its token's file is not here.
    pub(super) fn next_elsewhere(self) -> String {
        let next = self.next();
        let made =
            "on the machine that serves the board, `callboard token add NAME` prints a token";
        match self {
            Self::Vscode => format!("{made}; {next}; paste it when asked"),
            _ => format!(
                "{made}; in the shell that starts the client: \
                 `read -rs {TOKEN_VARIABLE} && export {TOKEN_VARIABLE}`, and paste it; {next}"
            ),
        }
    }

    pub(super) fn next(self) -> &'static str {
        match self {
            Self::Claude => {
                "restart Claude Code in this project and approve the server `callboard` (/mcp \
                 shows it)"
            }
            Self::Codex => {
                "restart Codex; it reads a project's configuration only if the project is trusted \
                 (/mcp shows the server `callboard`; --global configures every project)"
            }
            Self::Gemini => {
                "restart Gemini CLI in this folder and trust it if asked (/mcp shows the server \
                 `callboard`)"
            }
            Self::Copilot => {
                "restart Copilot CLI in this repository and trust it if asked (/mcp shows the \
                 server `callboard`); the hooks that it reads are those of Claude Code: `callboard \
                 connect claude --hooks`"
            }
            Self::Opencode => {
                "restart opencode in this project (`opencode mcp list` shows the server \
                 `callboard`)"
            }
            Self::Cursor => {
                "restart Cursor and switch the server `callboard` on in its settings, under MCP"
            }
            Self::Vscode => {
                "open .vscode/mcp.json in VS Code, choose Start above `callboard`, and use agent \
                 mode"
            }
            Self::Zed => {
                "open the project in Zed and trust it; the agent panel's settings show the server \
                 `callboard`"
            }
        }
    }

    pub(super) fn remove(self, text: &str) -> anyhow::Result<Option<String>> {
        match self.dialect() {
            Some(dialect) => json::remove(text, self.servers(), dialect),
            None => toml::remove(text, self.servers()),
        }
    }

    /// The client's name as people know it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Copilot => "Copilot CLI",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
            Self::Zed => "Zed",
        }
    }

    /// What to type so that a session works on the board.
    pub(crate) fn prompt(self) -> &'static str {
        match self {
            Self::Claude => {
                "type `/mcp__callboard__work`; `/mcp__callboard__lead GOAL` has it plan and lead"
            }
            Self::Gemini => "type `/work`; `/lead --goal=\"GOAL\"` has it plan and lead",
            Self::Opencode => "type `/callboard:work`; `/callboard:lead GOAL` has it plan and lead",
            Self::Vscode => {
                "type `/mcp.callboard.work`; `/mcp.callboard.lead` has it plan and lead"
            }
            Self::Cursor | Self::Zed => {
                "type `/` and choose `work` of callboard; `lead` has it plan and lead"
            }
            // They have no prompts of MCP servers. The server's instructions say the rest.
            Self::Codex | Self::Copilot => {
                "type `Work on the callboard until its verdict is finished`; `Lead this goal on \
                 the callboard: GOAL` has it plan and lead"
            }
        }
    }

    /// Programs and directories below the home directory that tell that the client is installed.
    fn traces(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Claude => (&["claude"], &[".claude"]),
            Self::Codex => (&["codex"], &[".codex"]),
            Self::Copilot => (&["copilot"], &[".copilot"]),
            Self::Gemini => (&["gemini"], &[".gemini"]),
            Self::Cursor => (&["cursor", "cursor-agent"], &[".cursor"]),
            Self::Opencode => (&["opencode"], &[".config/opencode", ".opencode"]),
            Self::Vscode => (&["code"], &[".config/Code", "Library/Application Support/Code"]),
            Self::Zed => (&["zed", "zeditor"], &[".config/zed"]),
        }
    }

    pub(crate) fn is_installed(self, path: Option<&OsStr>, home: Option<&Path>) -> bool {
        let (programs, homes) = self.traces();
        let dirs: Vec<_> = path.into_iter().flat_map(std::env::split_paths).collect();
        let is_program = |name: &&str| dirs.iter().any(|dir| dir.join(name).is_file());
        programs.iter().any(is_program)
            || home.is_some_and(|home| homes.iter().any(|dir| home.join(dir).is_dir()))
    }
}

/// Command that puts the token into the environment, to be run before what [`Client::next`] says.
/// It works in any directory.
pub(super) fn export_token(board: &Path) -> String {
    format!(
        "export {TOKEN_VARIABLE}=\"$(cat {})\"",
        quoted(&board.join(TOKEN_FILE).to_string_lossy())
    )
}
