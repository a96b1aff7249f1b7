//! `callboard connect CLIENT`: writes a client's configuration so that it starts `callboard mcp` on stdio, or, with
//! `--url`, so that it talks to `callboard serve`. The token stays out of what is written: projects commit such files.
//! Each client reads it from the environment or asks for it; Zed does neither.
//!
//! With `--hooks` it writes the hooks that run `callboard hook`, beside the hooks that are there, in place of the server.
//!
//! The formats were checked against Claude Code 2.1.197, Codex 0.169, Gemini CLI 0.61 and the documentation of Cursor,
//! VS Code and Zed. A claim waits up to 50 s: the clients' own limits for a tool call are above that, except in older
//! versions of Codex (60 s, shared with everything else the call does), where the limit is written.

mod entry;
mod file;
mod hooks;
mod json;
mod toml;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fs_err as fs;
use serde::Serialize;

use entry::{Edited, Entry, Secret, Setting};
use file::ConfigFile;
use hooks::Hooks;
pub use hooks::quoted;

/// Where clients find the token of `callboard serve`.
const TOKEN_VARIABLE: &str = "CALLBOARD_TOKEN";

#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// The client to configure
    pub client: Client,
    /// Print the configuration instead of writing it
    #[arg(long)]
    pub print: bool,
    /// Configure the client for every project, not only for this one
    #[arg(long)]
    pub global: bool,
    /// Write hooks that remind agents of tasks and held files, not the server (claude, codex, gemini)
    #[arg(long)]
    pub hooks: bool,
    #[arg(long, env = "CLAUDE_CONFIG_DIR", hide = true, value_name = "DIR")]
    pub claude_home: Option<PathBuf>,
    /// Connect to `callboard serve` at this URL instead of starting `callboard mcp`
    #[arg(
        long,
        alias = "http",
        value_name = "URL",
        conflicts_with = "hooks",
        num_args = 0..=1,
        default_missing_value = "http://127.0.0.1:8425/mcp",
        value_parser = endpoint
    )]
    pub url: Option<String>,
    #[arg(long, env = "CODEX_HOME", hide = true, value_name = "DIR")]
    pub codex_home: Option<PathBuf>,
    #[arg(long, env = "XDG_CONFIG_HOME", hide = true, value_name = "DIR")]
    pub config_home: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Vscode,
    Zed,
}

/// What was done. `Display` is for people: with `--print` it is the configuration and nothing else.
#[derive(Debug, Serialize)]
pub struct Connected {
    pub client: Client,
    pub path: PathBuf,
    pub status: Status,
    /// The smallest complete configuration file that holds the entry.
    pub config: String,
    /// How an entry that was there before differed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    pub next: String,
    #[serde(skip)]
    what: &'static str,
}

/// What is put into a client's configuration.
enum Addition {
    Server(Entry),
    Hooks(Hooks),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Written,
    Unchanged,
    Printed,
}

/// `board` is the board's directory, `dir` the same if the user named it; `exe` is written as given, see [`command`].
pub fn connect(
    args: &ConnectArgs,
    dir: Option<&Path>,
    board: &Path,
    project_root: &Path,
    home: Option<&Path>,
    exe: &Path,
) -> anyhow::Result<Connected> {
    let client = args.client;
    let (addition, next) = match &args.url {
        _ if args.hooks => (Addition::Hooks(Hooks::new(client, exe, dir)?), hooks::next(client).to_owned()),
        None => (Addition::Server(client.local_entry(exe, dir)?), client.next().to_owned()),
        Some(url) => (Addition::Server(client.remote_entry(url)?), client.next_remote(board, project_root)),
    };
    let what = addition.what();
    let connected = |path, status, changes| -> anyhow::Result<Connected> {
        let config = addition.put_into("", client)?.text;
        Ok(Connected { client, path, status, config, changes, next: next.clone(), what })
    };
    let path = args.path(project_root, home)?;
    if args.print {
        return connected(path, Status::Printed, Vec::new());
    }
    let file = ConfigFile::open(path)?;
    let edited = addition
        .put_into(&file.text, client)
        .with_context(|| format!("nothing was written: cannot edit {}", file.path.display()))?;
    if !edited.new && edited.changes.is_empty() {
        return connected(file.path, Status::Unchanged, Vec::new());
    }
    file.replace(&edited.text)?;
    let changes = if edited.new { Vec::new() } else { edited.changes };
    connected(file.path, Status::Written, changes)
}

/// How a configuration should call the executable `exe`: by its bare name if a search of `path` (`PATH`) finds this
/// very file, so that the configuration can be shared and survives an update.
pub fn command(exe: &Path, path: Option<&OsStr>) -> PathBuf {
    let found =
        path.and_then(|path| std::env::split_paths(path).map(|dir| dir.join("callboard")).find(|file| file.is_file()));
    match (found.and_then(|file| fs::canonicalize(file).ok()), fs::canonicalize(exe)) {
        (Some(found), Ok(this)) if found == this => PathBuf::from("callboard"),
        _ => exe.to_owned(),
    }
}

impl ConnectArgs {
    fn path(&self, project_root: &Path, home: Option<&Path>) -> anyhow::Result<PathBuf> {
        if !self.global {
            if home.is_some_and(|home| same_place(home, project_root)) {
                bail!("this is the home directory; run it in a project, or configure every project with --global");
            }
            let file = if self.hooks { hooks::project_file(self.client)? } else { self.client.project_file() };
            return Ok(project_root.join(file));
        }
        if let Some(url) = &self.url {
            match self.client {
                Client::Claude => bail!(
                    "Claude Code rewrites its user configuration while it runs; let it do this itself: \
                     `claude mcp add --scope user --transport http callboard {url} \
                     --header 'Authorization: Bearer ${{{TOKEN_VARIABLE}}}'`"
                ),
                Client::Vscode => bail!(
                    "VS Code keeps user servers in a profile: run its command `MCP: Open User Configuration` and put \
                     in what --print prints without --global"
                ),
                _ => {}
            }
        }
        let below_home = |name: &str| {
            let home = home.context("no home directory is known; set HOME")?;
            anyhow::Ok(home.join(name))
        };
        let given_or = |given: &Option<PathBuf>, name: &str| match given {
            Some(dir) if !dir.as_os_str().is_empty() => Ok(dir.clone()),
            _ => below_home(name),
        };
        match self.client {
            Client::Claude if self.hooks => Ok(given_or(&self.claude_home, ".claude")?.join("settings.json")),
            Client::Codex if self.hooks => Ok(given_or(&self.codex_home, ".codex")?.join("hooks.json")),
            Client::Codex => Ok(given_or(&self.codex_home, ".codex")?.join("config.toml")),
            Client::Cursor | Client::Gemini => below_home(self.client.project_file()),
            Client::Zed => Ok(given_or(&self.config_home, ".config")?.join("zed/settings.json")),
            Client::Claude => bail!(
                "Claude Code rewrites its user configuration while it runs; let it do this itself: \
                 `claude mcp add --scope user callboard -- callboard mcp --agent auto`"
            ),
            Client::Vscode => bail!(
                "VS Code keeps user servers in a profile; let it do this itself: `code --add-mcp \
                 '{{\"name\":\"callboard\",\"command\":\"callboard\",\"args\":[\"mcp\",\"--agent\",\"auto\"]}}'`"
            ),
        }
    }
}

impl Addition {
    fn put_into(&self, text: &str, client: Client) -> anyhow::Result<Edited> {
        match self {
            Self::Server(entry) => client.edit(text, entry),
            Self::Hooks(hooks) => hooks.put_into(text),
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Server(_) => "the server `callboard`",
            Self::Hooks(_) => "the hooks of callboard",
        }
    }
}

const TOKEN: Secret = Secret { id: "callboard-token", description: "Token of callboard serve (file serve.token)" };

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

impl Client {
    fn project_file(self) -> &'static str {
        match self {
            Self::Claude => ".mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
        }
    }

    fn local_entry(self, exe: &Path, dir: Option<&Path>) -> anyhow::Result<Entry> {
        let entry = Entry::local();
        let entry = match self {
            Self::Claude | Self::Cursor | Self::Vscode => entry.require("type", "stdio"),
            Self::Codex | Self::Gemini | Self::Zed => entry,
        };
        let entry = entry.require("command", text(exe)?).require("args", arguments(dir)?);
        Ok(match self {
            // Codex passes on a dozen variables of its own choice. Its newest defaults are 30 s and 300 s, but 10 s
            // and 60 s in older versions.
            Self::Codex => entry
                .suggest("env_vars", vec!["COORDINATION_DIR".to_owned()])
                .suggest("startup_timeout_sec", 30)
                .suggest("tool_timeout_sec", 300),
            _ => entry,
        })
    }

    fn remote_entry(self, url: &str) -> anyhow::Result<Entry> {
        let authorization = |token: &str| Setting::Field("Authorization", format!("Bearer {token}"));
        let entry = Entry::remote();
        Ok(match self {
            Self::Claude => entry
                .require("type", "http")
                .require("url", url)
                .require("headers", authorization(&format!("${{{TOKEN_VARIABLE}}}"))),
            Self::Codex => entry
                .require("url", url)
                .require("bearer_token_env_var", TOKEN_VARIABLE)
                .suggest("startup_timeout_sec", 30)
                .suggest("tool_timeout_sec", 300),
            Self::Gemini => {
                entry.require("httpUrl", url).require("headers", authorization(&format!("${TOKEN_VARIABLE}")))
            }
            Self::Cursor => {
                entry.require("url", url).require("headers", authorization(&format!("${{env:{TOKEN_VARIABLE}}}")))
            }
            Self::Vscode => entry
                .require("type", "http")
                .require("url", url)
                .require("headers", authorization(&format!("${{input:{}}}", TOKEN.id)))
                .ask(TOKEN),
            Self::Zed => bail!(
                "Zed sends a header as it stands in its settings, and the token does not belong there; let it start \
                 callboard itself: `callboard connect zed`"
            ),
        })
    }

    /// Claude Code reads plain JSON only, Gemini CLI takes comments, too, the editors also trailing commas.
    fn edit(self, text: &str, entry: &Entry) -> anyhow::Result<Edited> {
        match self {
            Self::Claude => json::edit(text, "mcpServers", entry, json::Dialect::Plain),
            Self::Gemini => json::edit(text, "mcpServers", entry, json::Dialect::Comments),
            Self::Cursor => json::edit(text, "mcpServers", entry, json::Dialect::TrailingCommas),
            Self::Vscode => json::edit(text, "servers", entry, json::Dialect::TrailingCommas),
            Self::Zed => json::edit(text, "context_servers", entry, json::Dialect::TrailingCommas),
            Self::Codex => toml::edit(text, "mcp_servers", entry),
        }
    }

    fn next_remote(self, board: &Path, project_root: &Path) -> String {
        let next = self.next();
        match self {
            Self::Vscode => {
                let file = board.join("serve.token");
                format!("start `callboard serve`; {next}; paste the token from {} when asked", file.display())
            }
            _ => {
                let export = export_token(board, project_root);
                format!("start `callboard serve`; in the shell that starts the client: {export}; {next}")
            }
        }
    }

    fn next(self) -> &'static str {
        match self {
            Self::Claude => "restart Claude Code in this project and approve the server `callboard` (/mcp shows it)",
            Self::Codex => {
                "restart Codex; it reads a project's configuration only if the project is trusted (/mcp shows the \
                 server `callboard`; --global configures every project)"
            }
            Self::Gemini => {
                "restart Gemini CLI in this folder and trust it if asked (/mcp shows the server `callboard`)"
            }
            Self::Cursor => "restart Cursor and switch the server `callboard` on in its settings, under MCP",
            Self::Vscode => "open .vscode/mcp.json in VS Code, choose Start above `callboard`, and use agent mode",
            Self::Zed => "open the project in Zed and trust it; the agent panel's settings show the server `callboard`",
        }
    }
}

/// What a person does, before what [`Client::next`] says.
fn export_token(board: &Path, project_root: &Path) -> String {
    let file = board.strip_prefix(project_root).unwrap_or(board).join("serve.token");
    format!("export {TOKEN_VARIABLE}=\"$(cat {})\"", quoted(&file.to_string_lossy()))
}

/// The endpoint's URL; a server's address alone is enough.
fn endpoint(url: &str) -> Result<String, &'static str> {
    let (_, rest) = url
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        .ok_or("it must begin with http:// or https://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control() || "@?#$\"'`\\{}".contains(c)) {
        return Err("it must be a plain URL, without user, query or fragment");
    }
    Ok(if path.is_empty() { format!("{}/mcp", url.trim_end_matches('/')) } else { url.to_owned() })
}

fn arguments(dir: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let mut arguments = ["mcp", "--agent", "auto"].map(str::to_owned).to_vec();
    if let Some(dir) = dir {
        let dir = std::path::absolute(dir).context("cannot resolve --dir")?;
        arguments.extend(["--dir".to_owned(), text(&dir)?]);
    }
    Ok(arguments)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the path {} is not UTF-8 and cannot be written to a configuration", path.display()))
}

impl fmt::Display for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.status {
            Status::Printed => return f.write_str(self.config.trim_end()),
            Status::Unchanged => write!(f, "already configured: {path}")?,
            Status::Written if self.changes.is_empty() => write!(f, "added {} to {path}", self.what)?,
            Status::Written => {
                writeln!(f, "updated {} in {path}:", self.what)?;
                write!(f, "  {}", self.changes.join("\n  "))?;
            }
        }
        match self.status {
            Status::Written => write!(f, "\nnext: {}", self.next),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
