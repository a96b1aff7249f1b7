//! `callboard connect [CLIENT…]`: writes the configuration of clients so that they start `callboard
//! mcp` on stdio or, with `--url`, connect to `callboard serve`, and the hooks that run `callboard
//! hook`. Without a client, of all that are installed. The token is not written, because projects
//! commit such files: each client reads it from the environment or asks for it. Zed does neither.
//! `--remove` takes out what was written, and `--check` says whether it is as it would be written
//! now. Everything else in the files stays as it is.
//!
//! The formats were checked against Claude Code 2.1.332, Codex 0.169, Gemini CLI 0.61 and the
//! documentation of Copilot CLI, Cursor, opencode, VS Code and Zed. A claim waits up to 50 s: the
//! clients' own limits for a tool call are above that, except in opencode and older versions of
//! Codex (60 s, shared with everything else the call does), where the limit is written.

mod client;
mod entry;
mod file;
mod hooks;
mod json;
mod line;
mod report;
mod toml;
mod worktrees;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fs_err as fs;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::AUTO;
use crate::config::TOKEN_VARIABLE;
use crate::participant::directory::JOURNAL;
use crate::rpc::client::{Address, AddressError};
pub(super) use client::Client;
use entry::{Edited, Entry};
use file::ConfigFile;
use hooks::Hooks;
pub(super) use line::quoted;
use line::{Choice, Line, text};
pub(super) use report::Report;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct ConnectArgs {
    /// Clients to configure [default: those that are installed]
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<Client>,
    /// Print the configuration instead of writing it
    #[arg(long)]
    pub print: bool,
    /// Configure the clients for every project, not only for this one
    #[arg(long)]
    pub global: bool,
    /// Write only the hooks: they remind agents of their tasks and of held files, give subagents
    /// names of their own, and tell the board of permission prompts (claude, codex, gemini)
    #[arg(long)]
    pub hooks: bool,
    /// Write no hooks, only the server
    #[arg(long, conflicts_with = "hooks")]
    pub no_hooks: bool,
    /// Take out what `connect` has written [default: of all clients of this project]
    #[arg(long, conflicts_with_all = ["print", "url"])]
    pub remove: bool,
    /// Only say what `remove` would take out.
    #[arg(skip)]
    pub dry_run: bool,
    /// Write nothing; exit with 1 unless everything is there as it would be written now
    #[arg(long, conflicts_with_all = ["print", "remove"])]
    pub check: bool,
    #[arg(long, env = "CLAUDE_CONFIG_DIR", hide = true, value_name = "DIR")]
    pub claude_home: Option<PathBuf>,
    /// Connect to `callboard serve` at this URL instead of starting `callboard mcp`
    #[arg(
        long,
        alias = "http",
        value_name = "URL",
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

/// What of a client's configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Server,
    Hooks,
}

/// What was done with one file.
#[derive(Debug, Serialize)]
pub(super) struct Connected {
    pub client: Client,
    pub part: Part,
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub status: Status,
    /// What the part does: a command line, or the events of hooks.
    pub what: String,
    /// The smallest complete configuration file that holds the part.
    pub config: String,
    /// What differed in an entry that was there before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    pub next: String,
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
pub(super) struct Target<'a> {
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
    /// `PATH`, on which clients are looked for.
    pub path: Option<&'a OsStr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Written,
    Unchanged,
    Printed,
    Removed,
    /// There is nothing to remove.
    Absent,
    /// It is not there as it would be written now.
    Outdated,
}

/// Does what `args` ask for with the files of each client. The report says what was done even if an
/// error followed.
pub(super) fn connect(
    args: &ConnectArgs,
    target: &Target<'_>,
) -> anyhow::Result<(Report, Option<anyhow::Error>)> {
    let clients = args.chosen(target)?;
    let (mut files, mut failure) = (Vec::new(), None);
    for client in &clients {
        // What one client refuses keeps no other from being connected.
        let parts = args.parts(*client, target).unwrap_or_else(|error| {
            failure.get_or_insert(error);
            Vec::new()
        });
        for part in parts {
            match connect_part(*client, part, args, target) {
                Ok(connected) => files.push(connected),
                Err(error) => {
                    failure.get_or_insert(error);
                    // With --global, the error says how the client itself adds the server.
                    if !args.global {
                        break;
                    }
                }
            }
        }
    }
    Ok((Report::new(files, args, target), failure))
}

/// Adds one part to the client's configuration, or removes, checks or prints it.
fn connect_part(
    client: Client,
    part: Part,
    args: &ConnectArgs,
    target: &Target<'_>,
) -> anyhow::Result<Connected> {
    let next = match (&args.url, part) {
        (_, Part::Hooks) => hooks::next(client).to_owned(),
        (None, Part::Server) => client.next().to_owned(),
        (Some(url), Part::Server) => {
            let is_elsewhere = match url.parse::<Address>() {
                Ok(address) => !address.is_loopback(),
                Err(error) => error == AddressError::NotEncrypted,
            };
            if is_elsewhere { client.next_elsewhere() } else { client.next_remote(target.board) }
        }
    };
    let fresh = Addition::new(client, part, args, target, "")?;
    let config = fresh.put_into("", client)?.text;
    let what = fresh.what(client, &config);
    let path = args.path(client, part, target)?;
    let connected = |path, status, changes| Connected {
        client,
        part,
        path,
        status,
        what,
        config,
        changes,
        next,
    };
    if args.print {
        return Ok(connected(path, Status::Printed, Vec::new()));
    }
    if args.remove {
        let is_there = if args.dry_run {
            fresh.take_from(&file::read(&path)?, client)?.is_some()
        } else {
            remove_part(&fresh, client, &path)?
        };
        let status = if is_there { Status::Removed } else { Status::Absent };
        return Ok(connected(path, status, Vec::new()));
    }
    let add = |text: &str| {
        let edited = Addition::new(client, part, args, target, text)?.put_into(text, client);
        let unwritten = if args.check { "" } else { "nothing was written: " };
        edited.with_context(|| format!("{unwritten}cannot edit {}", path.display()))
    };
    if args.check {
        let edited = add(&file::read(&path)?)?;
        let as_written = !edited.new && edited.changes.is_empty();
        let status = if as_written { Status::Unchanged } else { Status::Outdated };
        let changes = if edited.new { Vec::new() } else { edited.changes };
        return Ok(connected(path, status, changes));
    }
    loop {
        let file = ConfigFile::open(path.clone())?;
        let edited = add(&file.text)?;
        if !edited.new && edited.changes.is_empty() {
            return Ok(connected(file.path, Status::Unchanged, Vec::new()));
        }
        if file.replace(&edited.text)? {
            let changes = if edited.new { Vec::new() } else { edited.changes };
            return Ok(connected(file.path, Status::Written, changes));
        }
    }
}

/// Takes the part out of the file. A file that holds nothing else goes, and a directory that held
/// only that file.
fn remove_part(part: &Addition<'_>, client: Client, path: &Path) -> anyhow::Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    loop {
        let file = ConfigFile::open(path.to_owned())?;
        let removed = part.take_from(&file.text, client);
        let removed = removed
            .with_context(|| format!("nothing was removed: cannot edit {}", path.display()))?;
        let Some(text) = removed else { return Ok(false) };
        let rest: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let is_done =
            if matches!(rest.as_str(), "" | "{}") { file.delete()? } else { file.replace(&text)? };
        if is_done {
            return Ok(true);
        }
    }
}

/// How a configuration should call the executable `exe`: by its bare name if a search of `path`
/// (`PATH`) finds this very file, so that the configuration can be shared and survives an update.
pub(super) fn command(exe: &Path, path: Option<&OsStr>) -> PathBuf {
    let found = path.and_then(|path| {
        std::env::split_paths(path).map(|dir| dir.join("callboard")).find(|file| file.is_file())
    });
    match (found.and_then(|file| fs::canonicalize(file).ok()), fs::canonicalize(exe)) {
        (Some(found), Ok(this)) if found == this => PathBuf::from("callboard"),
        _ => exe.to_owned(),
    }
}

impl ConnectArgs {
    /// Arguments to connect these clients to the board of this project.
    pub(super) fn to(clients: Vec<Client>) -> Self {
        let home =
            |name: &str| std::env::var_os(name).filter(|home| !home.is_empty()).map(PathBuf::from);
        Self {
            clients,
            print: false,
            global: false,
            hooks: false,
            no_hooks: false,
            remove: false,
            dry_run: false,
            check: false,
            url: None,
            claude_home: home("CLAUDE_CONFIG_DIR"),
            codex_home: home("CODEX_HOME"),
            config_home: home("XDG_CONFIG_HOME"),
        }
    }

    /// The clients that were named, or else those that are installed or, to look at or remove what
    /// was written, those that were connected.
    fn chosen(&self, target: &Target<'_>) -> anyhow::Result<Vec<Client>> {
        if !self.clients.is_empty() {
            return Ok(self.clients.clone());
        }
        let all = <Client as clap::ValueEnum>::value_variants().iter().copied();
        if self.remove || self.check {
            return Ok(all.filter(|client| self.is_connected(*client, target)).collect());
        }
        let has_hooks = |client: &Client| !self.hooks || hooks::exist_for(*client);
        let can_connect = |client: &Client| *client != Client::Zed || self.url.is_none();
        let is_installed = |client: &Client| client.is_installed(target.path, target.home);
        let found: Vec<_> =
            all.clone().filter(is_installed).filter(has_hooks).filter(can_connect).collect();
        if found.is_empty() {
            let names: Vec<_> = all.map(Client::title).collect();
            bail!(
                "no client is installed here ({}); name one: `callboard connect claude`",
                names.join(", ")
            );
        }
        Ok(found)
    }

    /// Whether one of the client's files holds something of ours.
    fn is_connected(&self, client: Client, target: &Target<'_>) -> bool {
        let holds = |part: Part| {
            let fresh = Addition::new(client, part, self, target, "").ok()?;
            let text = file::read(&self.path(client, part, target).ok()?).ok()?;
            fresh.take_from(&text, client).ok()?
        };
        self.parts(client, target).unwrap_or_default().into_iter().any(|part| holds(part).is_some())
    }

    fn parts(&self, client: Client, target: &Target<'_>) -> anyhow::Result<Vec<Part>> {
        if self.hooks {
            return hooks::project_file(client).map(|_| vec![Part::Hooks]);
        }
        // Hooks read the board's directory, which a server elsewhere does not share.
        let is_here = self.url.is_none() || target.board.join(JOURNAL).exists();
        let with_hooks = !self.no_hooks && is_here && hooks::exist_for(client);
        Ok([Part::Server].into_iter().chain(with_hooks.then_some(Part::Hooks)).collect())
    }

    fn path(&self, client: Client, part: Part, target: &Target<'_>) -> anyhow::Result<PathBuf> {
        let Target { project_root, home, .. } = *target;
        if !self.global {
            if home.is_some_and(|home| same_place(home, project_root)) {
                bail!(
                    "this is the home directory; run it in a project, or configure every project \
                     with --global"
                );
            }
            let file = if part == Part::Hooks {
                hooks::project_file(client)?
            } else {
                client.project_file()
            };
            return Ok(existing(project_root, file));
        }
        if let Some(url) = &self.url {
            match client {
                Client::Claude => bail!(
                    "Claude Code rewrites its user configuration while it runs; let it do this \
                     itself: `claude mcp add --scope user --transport http callboard {url} \
                     --header 'Authorization: Bearer ${{{TOKEN_VARIABLE}}}'`"
                ),
                Client::Vscode => bail!(
                    "VS Code keeps user servers in a profile: run its command `MCP: Open User \
                     Configuration` and put in what --print prints without --global"
                ),
                _ => {}
            }
        }
        let below_home = |name: &str| {
            let home = home.context("no home directory is known; set HOME")?;
            anyhow::Ok(home.join(name))
        };
        let given_or = |given: &Option<PathBuf>, name: &str| {
            given.clone().map_or_else(|| below_home(name), Ok)
        };
        match client {
            Client::Claude if part == Part::Hooks => {
                Ok(given_or(&self.claude_home, ".claude")?.join("settings.json"))
            }
            Client::Codex if part == Part::Hooks => {
                Ok(given_or(&self.codex_home, ".codex")?.join("hooks.json"))
            }
            Client::Codex => Ok(given_or(&self.codex_home, ".codex")?.join("config.toml")),
            Client::Cursor | Client::Gemini => below_home(client.project_file()),
            Client::Copilot => below_home(".copilot/mcp-config.json"),
            Client::Opencode => {
                Ok(given_or(&self.config_home, ".config")?.join("opencode/opencode.json"))
            }
            Client::Zed => Ok(given_or(&self.config_home, ".config")?.join("zed/settings.json")),
            Client::Claude => {
                let words = [text(target.exe)?].into_iter().chain(target.arguments(&[])?);
                let words = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
                bail!(
                    "Claude Code rewrites its user configuration while it runs; let it do this \
                     itself: `claude mcp add --scope user callboard -- {words}`"
                )
            }
            Client::Vscode => {
                let entry = json!({"name": "callboard", "command": text(target.exe)?, "args": target.arguments(&[])?});
                bail!(
                    "VS Code keeps user servers in a profile; let it do this itself: `code \
                     --add-mcp {}`",
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

    /// Arguments for the executable. Options in `before` stay, except those that were asked for
    /// differently.
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
    fn new(
        client: Client,
        part: Part,
        args: &ConnectArgs,
        target: &'a Target<'_>,
        text: &str,
    ) -> anyhow::Result<Self> {
        Ok(match (part, &args.url) {
            (Part::Hooks, _) => Self::Hooks(Hooks::new(client, target.exe, target.line())?),
            (Part::Server, None) => Self::Server(
                client.local_entry(target.exe, target.arguments(&client.arguments(text))?)?,
            ),
            (Part::Server, Some(url)) => Self::Server(client.remote_entry(url)?),
        })
    }

    fn put_into(&self, text: &str, client: Client) -> anyhow::Result<Edited> {
        match self {
            Self::Server(entry) => client.edit(text, entry),
            Self::Hooks(hooks) => hooks.put_into(text),
        }
    }

    /// The file's text without the addition; none if it is not there.
    fn take_from(&self, text: &str, client: Client) -> anyhow::Result<Option<String>> {
        match self {
            Self::Server(_) => client.remove(text),
            Self::Hooks(hooks) => hooks.take_from(text),
        }
    }

    /// What the addition does, given the smallest file that holds it.
    fn what(&self, client: Client, config: &str) -> String {
        match self {
            Self::Server(_) => {
                format!("callboard {}", client.arguments(config).join(" ")).trim_end().to_owned()
            }
            Self::Hooks(hooks) => hooks.events().join(", "),
        }
    }
}

/// The project's file, or the one that is there under its other name.
fn existing(project_root: &Path, file: &str) -> PathBuf {
    let path = project_root.join(file);
    let other = project_root.join(format!("{file}c"));
    if !path.exists() && file == Client::Opencode.project_file() && other.exists() {
        other
    } else {
        path
    }
}

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// The URL of the endpoint; the address of a server is completed to it.
fn endpoint(url: &str) -> Result<String, &'static str> {
    let (_, rest) = url
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        .ok_or("it must begin with http:// or https://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty()
        || rest
            .contains(|c: char| c.is_whitespace() || c.is_control() || "@?#$\"'`\\{}".contains(c))
    {
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

#[cfg(test)]
mod tests;
