//! `callboard connect CLIENT`: writes a client's configuration so that it starts `callboard mcp` on stdio or, with
//! `--url`, connects to `callboard serve`. The token is not written into it, because projects commit such files: each
//! client reads it from the environment or asks for it. Zed does neither.
//!
//! With `--hooks`, it writes the hooks that run `callboard hook` instead of the server. Existing hooks stay.
//!
//! The formats were checked against Claude Code 2.1.197, Codex 0.169, Gemini CLI 0.61 and the documentation of Cursor,
//! VS Code and Zed. A claim waits up to 50 s: the clients' own limits for a tool call are above that, except in older
//! versions of Codex (60 s, shared with everything else the call does), where the limit is written.

mod entry;
mod file;
mod hooks;
mod json;
mod line;
mod toml;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fs_err as fs;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::AUTO;
use crate::http::TOKEN_FILE;
use entry::{Edited, Entry, Secret, Setting};
use file::ConfigFile;
use hooks::Hooks;
use json::Dialect;
pub use line::quoted;
use line::{Choice, Line, text};

/// Environment variable in which clients find the token of `callboard serve`.
const TOKEN_VARIABLE: &str = "CALLBOARD_TOKEN";

#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// Client to configure
    pub client: Client,
    /// Print the configuration instead of writing it
    #[arg(long)]
    pub print: bool,
    /// Configure the client for every project, not only for this one
    #[arg(long)]
    pub global: bool,
    /// Write hooks that remind agents of their tasks and of held files, instead of the server (claude, codex, gemini)
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
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub status: Status,
    /// The smallest complete configuration file that holds the entry.
    pub config: String,
    /// What differed in an entry that was there before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    pub next: String,
    #[serde(skip)]
    what: &'static str,
}

/// Serializes a path that need not be UTF-8.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// What is put into a client's configuration.
enum Addition<'a> {
    Server(Entry),
    Hooks(Hooks<'a>),
}

/// Who and what a configuration is written for.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Path or name of the executable, written as given; see [`command`].
    pub exe: &'a Path,
    /// Value of `--agent`, if given.
    pub agent: Option<&'a str>,
    /// Directory of the board, if the user named it.
    pub dir: Option<&'a Path>,
    /// Directory of the board.
    pub board: &'a Path,
    pub project_root: &'a Path,
    pub home: Option<&'a Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Written,
    Unchanged,
    Printed,
}

/// Adds to the client's configuration what is missing, and updates what differs.
pub fn connect(args: &ConnectArgs, target: &Target<'_>) -> anyhow::Result<Connected> {
    let client = args.client;
    let next = match &args.url {
        _ if args.hooks => hooks::next(client).to_owned(),
        None => client.next().to_owned(),
        Some(_) => client.next_remote(target.board),
    };
    let fresh = Addition::new(args, target, "")?;
    let what = fresh.what();
    let connected = |path, status, changes| -> anyhow::Result<Connected> {
        let config = fresh.put_into("", client)?.text;
        Ok(Connected { client, path, status, config, changes, next: next.clone(), what })
    };
    let path = args.path(target)?;
    if args.print {
        return connected(path, Status::Printed, Vec::new());
    }
    loop {
        let file = ConfigFile::open(path.clone())?;
        let edited = Addition::new(args, target, &file.text)?
            .put_into(&file.text, client)
            .with_context(|| format!("nothing was written: cannot edit {}", file.path.display()))?;
        if !edited.new && edited.changes.is_empty() {
            return connected(file.path, Status::Unchanged, Vec::new());
        }
        if file.replace(&edited.text)? {
            let changes = if edited.new { Vec::new() } else { edited.changes };
            return connected(file.path, Status::Written, changes);
        }
    }
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
    fn path(&self, target: &Target<'_>) -> anyhow::Result<PathBuf> {
        let Target { project_root, home, .. } = *target;
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
        let given_or = |given: &Option<PathBuf>, name: &str| given.clone().map_or_else(|| below_home(name), Ok);
        match self.client {
            Client::Claude if self.hooks => Ok(given_or(&self.claude_home, ".claude")?.join("settings.json")),
            Client::Codex if self.hooks => Ok(given_or(&self.codex_home, ".codex")?.join("hooks.json")),
            Client::Codex => Ok(given_or(&self.codex_home, ".codex")?.join("config.toml")),
            Client::Cursor | Client::Gemini => below_home(self.client.project_file()),
            Client::Zed => Ok(given_or(&self.config_home, ".config")?.join("zed/settings.json")),
            Client::Claude => {
                let words = [text(target.exe)?].into_iter().chain(target.arguments(&[])?);
                let words = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
                bail!(
                    "Claude Code rewrites its user configuration while it runs; let it do this itself: \
                     `claude mcp add --scope user callboard -- {words}`"
                )
            }
            Client::Vscode => {
                let entry = json!({"name": "callboard", "command": text(target.exe)?, "args": target.arguments(&[])?});
                bail!(
                    "VS Code keeps user servers in a profile; let it do this itself: `code --add-mcp {}`",
                    quoted(&entry.to_string())
                )
            }
        }
    }
}

impl Target<'_> {
    fn line(&self) -> Line<'_> {
        Line { agent: self.agent.map_or(Choice::Kept, Choice::Named), dir: self.dir }
    }

    /// Arguments for the executable. Options in `before` stay, except those that were asked for differently.
    fn arguments(&self, before: &[String]) -> anyhow::Result<Vec<String>> {
        let arguments = self.line().words(&["mcp"], before)?;
        let names_agent = |word: &String| word == "--agent" || word.starts_with("--agent=");
        if arguments.iter().any(names_agent) {
            return Ok(arguments);
        }
        Line { agent: Choice::Named(AUTO), ..self.line() }.words(&["mcp"], before)
    }
}

impl<'a> Addition<'a> {
    /// The addition to a file that holds this `text`.
    fn new(args: &ConnectArgs, target: &'a Target<'_>, text: &str) -> anyhow::Result<Self> {
        Ok(match &args.url {
            _ if args.hooks => Self::Hooks(Hooks::new(args.client, target.exe, target.line())?),
            None => Self::Server(args.client.local_entry(target.exe, target.arguments(&args.client.arguments(text))?)?),
            Some(url) => Self::Server(args.client.remote_entry(url)?),
        })
    }

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

    fn local_entry(self, exe: &Path, arguments: Vec<String>) -> anyhow::Result<Entry> {
        let entry = Entry::local();
        let entry = match self {
            Self::Claude | Self::Cursor | Self::Vscode => entry.require("type", "stdio"),
            Self::Codex | Self::Gemini | Self::Zed => entry,
        };
        let entry = entry.require("command", text(exe)?).require("args", arguments);
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

    /// Key of the client's table of servers.
    fn servers(self) -> &'static str {
        match self {
            Self::Claude | Self::Gemini | Self::Cursor => "mcpServers",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
        }
    }

    /// What the client's own parser takes: plain JSON (Claude Code), comments too (Gemini CLI), or also trailing commas
    /// (the editors). None means TOML.
    fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Claude => Some(Dialect::Plain),
            Self::Gemini => Some(Dialect::Comments),
            Self::Cursor | Self::Vscode | Self::Zed => Some(Dialect::TrailingCommas),
            Self::Codex => None,
        }
    }

    fn edit(self, text: &str, entry: &Entry) -> anyhow::Result<Edited> {
        match self.dialect() {
            Some(dialect) => json::edit(text, self.servers(), entry, dialect),
            None => toml::edit(text, self.servers(), entry),
        }
    }

    /// Arguments of the server's entry in a file with this `text`; empty if there is none, or none that can be read.
    fn arguments(self, text: &str) -> Vec<String> {
        match self.dialect() {
            Some(dialect) => json::arguments(text, self.servers(), dialect),
            None => toml::arguments(text, self.servers()),
        }
    }

    fn next_remote(self, board: &Path) -> String {
        let next = self.next();
        match self {
            Self::Vscode => {
                let file = board.join(TOKEN_FILE);
                format!("start `callboard serve`; {next}; paste the token from {} when asked", file.display())
            }
            _ => {
                let export = export_token(board);
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

/// Command that puts the token into the environment, to be run before what [`Client::next`] says. It works in any
/// directory.
fn export_token(board: &Path) -> String {
    format!("export {TOKEN_VARIABLE}=\"$(cat {})\"", quoted(&board.join(TOKEN_FILE).to_string_lossy()))
}

/// The URL of the endpoint; the address of a server is completed to it.
fn endpoint(url: &str) -> Result<String, &'static str> {
    let (_, rest) = url
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        .ok_or("it must begin with http:// or https://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control() || "@?#$\"'`\\{}".contains(c)) {
        return Err("it must be a plain URL, without user, query or fragment");
    }
    let whole = url.trim_end_matches('/');
    Ok(match path.trim_end_matches('/') {
        "" => format!("{whole}/mcp"),
        // `callboard serve` answers this path only without the trailing slash.
        path if path.rsplit('/').next() == Some("mcp") => whole.to_owned(),
        _ => url.to_owned(),
    })
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
