//! The command line: one file per command. Commands act as `human`, a leader, unless `--agent`
//! names an agent.

mod add;
mod agents;
mod artifact;
mod ask;
mod backup;
mod bench;
mod board;
mod bundle;
mod call;
mod cancel;
mod checkpoint;
mod claim;
mod complete;
mod completions;
mod connect;
mod discoveries;
mod doctor;
mod exchange;
mod explain;
mod fail;
mod grounds;
mod guard;
mod heartbeat;
mod history;
mod hook;
mod init;
mod input;
mod log;
mod man;
mod mcp;
mod messages;
mod pause;
mod plan;
mod plan_files;
mod print;
mod progress;
mod release;
mod reset;
mod restore;
mod resume;
mod retry;
mod runs;
mod scratch;
mod serve;
mod show;
mod snapshot;
mod start;
mod state;
mod status;
mod supervise;
mod tasks;
mod token;
mod watch;
mod wording;
mod work;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use anyhow::Context;
use clap::builder::{RangedU64ValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use board::{BEGINNINGS, Board, Server};
pub use input::{read_input, read_marked, read_whole};
use wording::Wording;

use crate::board::{Options, STATE_FILE, checkout};
use crate::config;
use crate::http::tokens::TokensError;
use crate::location::{Location, Start, without_dots};
use crate::ops;
use crate::participant::{self, AgentChoice, BoardError, CallError, Handle, Stay};
use crate::redact;
use crate::rpc::client::{Blame, ClientError};
use crate::signal;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::task::Place;
use crate::worktree::Repository;

/// Exit codes, as the help of `callboard` documents them.
const REFUSED: u8 = 1;
const USAGE: u8 = 2;
const FAILED: u8 = 3;

const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done"),
    (REFUSED, "refused: the message says why and what to do (also: no task was claimed)"),
    (USAGE, "the command line is wrong"),
    (FAILED, "the board cannot be used: directory, disk, lock, journal, server"),
];

/// Coordination server for AI coding agents: one durable task queue and agent registry over MCP.
#[derive(Parser)]
#[command(name = "callboard", version, after_help = exit_codes(), max_term_width = 100)]
struct Arguments {
    /// Directory of the board [env: COORDINATION_DIR] [default: the nearest .coordination here or
    /// above, within the git repository, else the one of its main worktree, else .coordination
    /// here]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Name of the state file in the board's directory, for a board that is made; another must
    /// have it already [default: mcp-state.json]
    #[arg(long, global = true, value_name = "NAME", env = STATE_FILE, hide_env = true, value_parser = state_file)]
    state_file: Option<String>,
    /// Use the board of the `callboard serve` at this URL [env: CALLBOARD_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// File with the server's token [default: CALLBOARD_TOKEN, else this board's serve.token for a
    /// server on this machine]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Act as this agent; without it, commands act as `human`. `mcp` and `connect` also take
    /// `auto`
    #[arg(long, global = true, value_name = "ID")]
    agent: Option<String>,
    /// Allow writing to a board on a network file system; safe only if no other machine uses the
    /// board
    #[arg(long, global = true, env = "CALLBOARD_ALLOW_NETWORK_FILESYSTEM", hide_env = true,
        value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    allow_network_filesystem: bool,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
    /// Format of the log on standard error
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
    /// Name of the command if it is one of [`LOCAL`].
    #[arg(skip)]
    local: Option<&'static str>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Create the board, set its goal, and print how agents use it
    Init(init::Arguments),
    /// Add one or more tasks
    Add(add::Arguments),
    /// Show counts, progress and what is stuck
    Status(status::Arguments),
    /// List the tasks
    Tasks(tasks::Arguments),
    /// List the agents
    Agents,
    /// Show everything about a task
    Show(show::Arguments),
    /// Claim a task
    Claim(claim::Arguments),
    /// Mark a task that you hold as in progress
    Start(start::Arguments),
    /// Complete your task, with its result
    Complete(complete::Arguments),
    /// Fail your task, with the error; it is tried again later while attempts remain
    Fail(fail::Arguments),
    /// Give tasks back to the queue unfinished
    Release(release::Arguments),
    /// Cancel a task that is no longer wanted
    Cancel(cancel::Arguments),
    /// Make failed or cancelled tasks available again
    Retry(retry::Arguments),
    /// Start tasks over, including finished ones; their results are dropped, after a snapshot
    Reset(reset::Arguments),
    /// Explain why a task cannot be claimed, who could claim it, and what changed it last
    Explain(explain::Arguments),
    /// Import a plan as tasks, update them when it changes, and export it
    Plan(plan::Arguments),
    /// Bring in tasks from files: a plan, or what another tool keeps
    Import(exchange::import::Arguments),
    /// Write the board's tasks for another tool
    Export(exchange::export::Arguments),
    /// Compare another tool's files with the board: exit code 1 if they differ
    Verify(exchange::verify::Arguments),
    /// Renew your lease, with a note on how far you are
    Heartbeat(heartbeat::Arguments),
    /// Stop all claims until `resume`
    Pause(pause::Arguments),
    /// Allow claims again
    Resume,
    /// Run a command for each task: claim, run, retry, complete
    Work(work::Arguments),
    /// Run one command for `callboard work`, which starts this process
    #[command(hide = true)]
    Supervise,
    /// Show events as they happen
    Watch(watch::Arguments),
    /// List what agents found out, or add a discovery
    Discoveries(discoveries::Arguments),
    /// Show your messages, unread first
    Messages(messages::Arguments),
    /// Send a message to agents, or to the person whose board it is
    Send(messages::Send),
    /// Answer a message
    Reply(messages::Reply),
    /// List the runs of agent sessions, newest first
    Runs(runs::Arguments),
    /// Show everything about a run, wait for its end, or stop it
    Run(runs::One),
    /// List the sessions that runs belong to, or show one
    Sessions(runs::Sessions),
    /// List past events, newest first
    History(history::Arguments),
    /// Print the whole state, now or at an earlier event or time
    State(state::Arguments),
    /// Keep states as files, compare them, and go back to them
    Snapshot(snapshot::Arguments),
    /// Keep refined prompts and settings for the next run, and load them
    Bundle(bundle::Arguments),
    /// Keep how far a workflow has come, and what it may spend
    #[command(subcommand)]
    Checkpoint(checkpoint::Command),
    /// Keep files with a task: reports, logs, patches
    #[command(subcommand)]
    Artifact(artifact::Command),
    /// Write state, history and settings to one file, while other processes use the board
    ///
    /// In it: the journal, the state file and config.toml. Not in it: bundles/ (context bundles),
    /// artifacts/, snapshots/, logs/ and worktrees/, which you copy yourself to move a board,
    /// and tokens and files that were moved aside.
    Backup(backup::Arguments),
    /// Create a board from a backup or a state file, or set a board back to one
    Restore(restore::Arguments),
    /// Check the board, its files and this machine; changes nothing without --repair
    Doctor(doctor::Arguments),
    /// Measure what operations cost on this machine, on temporary boards
    Bench(bench::Arguments),
    /// Serve MCP over standard input and output, for an IDE or agent that starts this process
    Mcp(mcp::Arguments),
    /// Serve MCP and JSON-RPC over HTTP, for agents and scripts
    Serve(serve::Arguments),
    /// Create, list and revoke tokens for `callboard serve`
    Token(token::Arguments),
    /// Call any operation by name
    Call(call::Arguments),
    /// Check whether another agent holds files, for hooks: exit code 1 if so
    Guard(guard::Arguments),
    /// Answer the hooks of an agent's client, which `connect CLIENT --hooks` configures
    Hook(hook::Arguments),
    /// Configure a client to use this board: its MCP server, or its hooks
    Connect(connect::ConnectArgs),
    /// Print a shell's completion script
    Completions(completions::Arguments),
    /// Print the manual page
    Man(man::Arguments),
}

/// Value of `--agent` for a process that acts as whichever of its agents is free.
const AUTO: &str = "auto";

/// Parser of `--state-file`. An empty name is none, as for other variables.
fn state_file(name: &str) -> Result<String, String> {
    if !name.is_empty() {
        config::check_state_file(name)?;
    }
    Ok(name.to_owned())
}

/// Parser of `--limit` where a command lists one page.
fn page_size() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=limit::PAGE.max as i64).try_map(NonZeroU32::try_from)
}

/// What a word means in an enumeration of the board, for options that take its words.
fn of_word<T: DeserializeOwned>(word: String) -> serde_json::Result<T> {
    serde_json::from_value(Value::from(word))
}

/// Parser of `--wait`.
fn wait_seconds() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(..=limit::WAIT.max as u64)
}

/// Commands that are about this machine and cannot use a server's board.
const LOCAL: [&str; 13] = [
    "doctor",
    "work",
    "supervise",
    "bench",
    "mcp",
    "serve",
    "token",
    "connect",
    "hook",
    "guard",
    "state",
    "backup",
    "restore",
];

/// The command line, as it is parsed and documented.
fn command() -> clap::Command {
    let root = Arguments::command();
    let of_servers = root
        .get_arguments()
        .filter(|one| ["server", "token_file"].contains(&one.get_id().as_str()));
    let hidden: Vec<_> = of_servers.map(|one| one.clone().hide(true)).collect();
    root.mut_subcommands(|one| {
        if LOCAL.contains(&one.get_name()) { one.args(hidden.clone()) } else { one }
    })
}

/// The command line, as this process parses it.
fn parser() -> clap::Command {
    without_empty_variables(command()).color(colours_of(own_words()))
}

/// The arguments of this process, up to `--`, behind which they belong to another command.
fn own_words() -> impl Iterator<Item = String> {
    env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .take_while(|word| word != "--")
}

/// The value of --color in a command line, even one that cannot be parsed.
fn colours_of(mut words: impl Iterator<Item = String>) -> ColorChoice {
    let mut found = ColorChoice::Auto;
    while let Some(word) = words.next() {
        let when = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        found = when.and_then(|when| when.parse().ok()).unwrap_or(found);
    }
    found
}

/// Treats empty environment variables as unset.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty =
        |one: &clap::Arg| one.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
    command
        .mut_args(|one| if is_empty(&one) { one.env(None::<&'static str>) } else { one })
        .mut_subcommands(without_empty_variables)
}

/// What commands need: where the board is, how to call it, and how to print.
#[derive(Clone)]
pub struct Session {
    location: Location,
    /// Whether there was a board when the command began.
    found_board: bool,
    dir_given: Option<PathBuf>,
    home: Option<PathBuf>,
    cwd: PathBuf,
    server: Option<Server>,
    agent: Option<String>,
    wording: Wording,
    state_file: Option<String>,
    allow_network_filesystem: bool,
    json: bool,
    color: ColorChoice,
}

/// The exit code of a command, or why it failed.
pub type Outcome = anyhow::Result<ExitCode>;

pub fn main() -> ExitCode {
    let matches = parser().try_get_matches().unwrap_or_else(|error| exit_with(&error));
    let mut arguments =
        Arguments::from_arg_matches(&matches).unwrap_or_else(|error| exit_with(&error));
    arguments.local = LOCAL.into_iter().find(|name| matches.subcommand_name() == Some(name));
    start_log(arguments.log_format);
    let is_hook = matches!(arguments.command, Command::Hook(_));
    let telling = match &arguments.command {
        _ if arguments.json => Telling::Json,
        // Whoever calls operations by name is told operations, not commands.
        Command::Call(_) => Telling::Operations,
        _ => Telling::Commands(Wording::of(&arguments)),
    };
    match run(arguments) {
        Ok(code) => code,
        // A failing hook must not get in the way of the session that runs it.
        Err(_) if is_hook => ExitCode::SUCCESS,
        // The reader of our output has left, having read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report(&error, &telling),
    }
}

fn run(arguments: Arguments) -> Outcome {
    if let (Some(name), Some(_)) = (arguments.local, &arguments.server) {
        usage_error(format!("`callboard {name}` is about this machine; leave --server out"));
    }
    // As an argument of a call it would be redacted, and would then be no valid id.
    if arguments.agent.as_deref().is_some_and(|agent| redact::text(agent).is_some()) {
        usage_error(
            "--agent has the form of a secret, and everybody reads the names of agents; choose \
             another",
        );
    }
    if let (Command::Work(_), Some(_)) = (&arguments.command, &arguments.agent) {
        usage_error(
            "`callboard work` names its agents itself, after --workflow ID: ID-1, ID-2, …; leave \
             --agent out",
        );
    }
    if let (Command::Serve(_), Some(_)) = (&arguments.command, &arguments.agent) {
        usage_error(
            "`callboard serve` is for many agents, each of whom says who it is; leave --agent out",
        );
    }
    if let Command::Supervise = arguments.command {
        // It needs nothing of what follows, not even an existing current directory.
        return supervise::run();
    }
    // Help must work whatever is wrong with the directory or the environment.
    match &arguments.command {
        Command::Completions(asked) => return completions::run(asked),
        Command::Man(asked) => return man::run(asked),
        Command::Call(asked) if asked.is_for_help() => return call::help(asked, arguments.json),
        _ => {}
    }
    let session = Session::new(&arguments)?;
    session.check_link(&arguments.command)?;
    match arguments.command {
        Command::Init(arguments) => init::run(&session, arguments),
        Command::Add(arguments) => add::run(&session, arguments),
        Command::Status(arguments) => status::run(&session, arguments),
        Command::Tasks(arguments) => tasks::run(&session, arguments),
        Command::Agents => agents::run(&session),
        Command::Show(arguments) => show::run(&session, arguments),
        Command::Claim(arguments) => claim::run(&session, arguments),
        Command::Start(arguments) => start::run(&session, arguments),
        Command::Complete(arguments) => complete::run(&session, arguments),
        Command::Fail(arguments) => fail::run(&session, arguments),
        Command::Release(arguments) => release::run(&session, arguments),
        Command::Cancel(arguments) => cancel::run(&session, arguments),
        Command::Retry(arguments) => retry::run(&session, arguments),
        Command::Reset(arguments) => reset::run(&session, arguments),
        Command::Explain(arguments) => explain::run(&session, arguments),
        Command::Plan(arguments) => plan::run(&session, arguments),
        Command::Import(arguments) => exchange::import::run(&session, arguments),
        Command::Export(arguments) => exchange::export::run(&session, arguments),
        Command::Verify(arguments) => exchange::verify::run(&session, arguments),
        Command::Heartbeat(arguments) => heartbeat::run(&session, arguments),
        Command::Pause(arguments) => pause::run(&session, arguments),
        Command::Resume => resume::run(&session),
        Command::Work(arguments) => work::run(&session, &arguments),
        Command::Supervise => supervise::run(),
        Command::Watch(arguments) => watch::run(&session, arguments),
        Command::Discoveries(arguments) => discoveries::run(&session, arguments),
        Command::Messages(arguments) => messages::run(&session, arguments),
        Command::Send(arguments) => messages::send(&session, arguments),
        Command::Reply(arguments) => messages::reply(&session, arguments),
        Command::Runs(arguments) => runs::run(&session, arguments),
        Command::Run(arguments) => runs::one(&session, arguments),
        Command::Sessions(arguments) => runs::sessions(&session, arguments),
        Command::History(arguments) => history::run(&session, arguments),
        Command::State(arguments) => state::run(&session, arguments),
        Command::Snapshot(arguments) => snapshot::run(&session, arguments),
        Command::Bundle(arguments) => bundle::run(&session, arguments),
        Command::Checkpoint(command) => checkpoint::run(&session, command),
        Command::Artifact(command) => artifact::run(&session, command),
        Command::Backup(arguments) => backup::run(&session, arguments),
        Command::Restore(arguments) => restore::run(&session, arguments),
        Command::Doctor(arguments) => doctor::run(&session, &arguments),
        Command::Bench(arguments) => bench::run(&session, arguments),
        Command::Mcp(arguments) => mcp::run(&session, arguments),
        Command::Serve(arguments) => serve::run(&session, arguments),
        Command::Token(arguments) => token::run(&session, arguments),
        Command::Call(arguments) => call::run(&session, arguments),
        Command::Guard(arguments) => guard::run(&session, &arguments),
        Command::Hook(arguments) => hook::run(&session, &arguments),
        Command::Connect(arguments) => session.connect(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Logs to standard error: standard output belongs to the protocol and to replies.
fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("CALLBOARD_LOG").unwrap_or_else(|_| {
        EnvFilter::new("warn,rmcp=error,rmcp::service=off,rustls_platform_verifier=off")
    });
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| log::Lines)
        .with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// How an error is worded.
enum Telling {
    /// As a JSON object, for programs.
    Json,
    Operations,
    Commands(Wording),
}

/// A refusal by the command itself, although the board can be used.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct Declined(anyhow::Error);

/// Codes of refusals whose cause is the disk or a directory of the board, so that any call would
/// meet it.
const CODES_OF_THE_BOARD: [&str; 4] =
    ["archive_failed", "artifact_failed", "bundles_failed", "history_unread"];

fn blame_and_data(error: &anyhow::Error) -> (Blame, Value) {
    if let Some(call) = error.downcast_ref::<CallError>() {
        let blame = match call {
            CallError::UnknownOperation(_) => Blame::Name,
            CallError::Refused(_) => Blame::Call,
            CallError::Failed(failure)
                if matches!(
                    **failure,
                    BoardError::NotInThePast { .. } | BoardError::BeforeTheFirst { .. }
                ) =>
            {
                Blame::Call
            }
            CallError::Failed(_) | CallError::Gone => Blame::Board,
        };
        return (blame, call.data());
    }
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return (error.blame(), error.data());
    }
    let is_declined =
        error.is::<Declined>() || error.downcast_ref().is_some_and(TokensError::is_refusal);
    let (blame, code) =
        if is_declined { (Blame::Call, "refused") } else { (Blame::Board, "failed") };
    (blame, json!({"code": code, "message": format!("{error:#}")}))
}

/// Prints the error on standard error, and returns the exit code for it.
fn report(error: &anyhow::Error, telling: &Telling) -> ExitCode {
    let (blame, data) = blame_and_data(error);
    let is_of_the_board =
        data["code"].as_str().is_some_and(|code| CODES_OF_THE_BOARD.contains(&code));
    let mut message = print::text(&data["message"]);
    if let (Blame::Name, Telling::Operations) = (blame, telling) {
        message.push_str("; `callboard call` lists them");
    }
    say(&match telling {
        Telling::Json => as_object(&data),
        Telling::Operations => format!("callboard: {}", print::harmless(&message)),
        Telling::Commands(wording) => {
            format!("callboard: {}", print::harmless(&wording.in_commands(&message)))
        }
    });
    ExitCode::from(match blame {
        Blame::Name => USAGE,
        Blame::Call if !is_of_the_board => REFUSED,
        Blame::Call | Blame::Board => FAILED,
    })
}

fn as_object(error: &Value) -> String {
    print::harmless_json(&json!({"error": error}).to_string())
}

/// Prints what is wrong with the command line, for people or for programs, and exits. Help comes
/// this way, too.
fn exit_with(error: &clap::Error) -> ! {
    if !error.use_stderr() || own_words().all(|word| word != "--json") {
        error.exit();
    }
    let message = match error.kind() {
        // clap's message for this would be the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing; --help lists them".to_owned()
        }
        _ => without_usage(&error.render().to_string()),
    };
    say(&as_object(&json!({"code": "usage", "message": message})));
    process::exit(error.exit_code())
}

/// The message of clap without its usage: what is wrong, and what may have been meant.
fn without_usage(rendered: &str) -> String {
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| rendered.find(end)).min().unwrap_or(rendered.len());
    let message = &rendered[..end];
    message.strip_prefix("error: ").unwrap_or(message).trim_end().to_owned()
}

fn exit_codes() -> String {
    let lines = EXIT_CODES.map(|(code, meaning)| format!("\n  {code}  {meaning}"));
    format!("Exit codes:{}", lines.concat())
}

/// Writes to standard error, which may be closed.
fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Exits with a usage error that clap could not detect.
pub fn usage_error(message: impl std::fmt::Display) -> ! {
    exit_with(&parser().error(ErrorKind::ValueValidation, message))
}

/// Index of the subcommand in `words`, the command line without the program's name.
pub fn place_of_subcommand(words: &[String]) -> Option<usize> {
    let command = command();
    let takes_value = |word: &str| {
        let mut known = command.get_arguments().filter(|one| one.get_action().takes_values());
        known.any(|one| one.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long)))
    };
    let mut place = 0;
    while words.get(place)?.starts_with('-') {
        place += if takes_value(&words[place]) { 2 } else { 1 };
    }
    Some(place)
}

/// The current directory. It need not exist if the board is named by an absolute path.
fn start_directory(board: Option<&Path>) -> anyhow::Result<PathBuf> {
    match env::current_dir() {
        Err(_) if board.is_some_and(Path::is_absolute) => Ok(PathBuf::from("/")),
        cwd => cwd.context(
            "the directory that this was started in is gone or cannot be read; change to another \
             one, or name the board from the root on: --dir /PROJECT/.coordination",
        ),
    }
}

impl Session {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let home = env::home_dir();
        let path_in = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let workspace = path_in("WORKSPACE_FOLDER_PATHS");
        // A shell that a session has started has the variable, too, and may have changed to another
        // project.
        let project =
            path_in("CLAUDE_PROJECT_DIR").filter(|_| matches!(arguments.command, Command::Mcp(_)));
        let plugins = [path_in("PLUGIN_ROOT"), path_in("CLAUDE_PLUGIN_ROOT")];
        let variable = env::var_os("COORDINATION_DIR").filter(|value| !value.is_empty());
        let cwd = start_directory(arguments.dir.as_deref().or(variable.as_deref().map(Path::new)))?;
        let location = Location::of(&Start {
            dir: arguments.dir.as_deref(),
            env: variable.as_deref(),
            project: project.as_deref(),
            cwd: &cwd,
            workspace: workspace.as_deref(),
            home: home.as_deref(),
            plugins: plugins.each_ref().map(Option::as_deref),
        });
        // A client may have started the server anywhere.
        let cwd =
            if matches!(arguments.command, Command::Mcp(_)) { location.start.clone() } else { cwd };
        let server = match arguments.local {
            None => Server::named(arguments, &location.dir),
            Some(_) => None,
        };
        Ok(Self {
            found_board: participant::is_begun(&location.dir),
            location,
            server,
            dir_given: arguments.dir.clone(),
            home,
            cwd,
            agent: arguments.agent.clone(),
            wording: Wording::of(arguments),
            state_file: arguments.state_file.clone().filter(|name| !name.is_empty()),
            allow_network_filesystem: arguments.allow_network_filesystem,
            json: arguments.json,
            color: arguments.color,
        })
    }

    pub fn dir(&self) -> &Path {
        &self.location.dir
    }

    /// How this command opens its board.
    pub fn options(&self) -> Options {
        let options = Options::located(self.location.clone(), self.cwd.clone());
        let options =
            self.state_file.iter().fold(options, |options, name| options.state_file(name));
        if self.allow_network_filesystem { options.allow_network_filesystem() } else { options }
    }

    /// Starts a participant: a replica of the board in this process.
    pub fn participant(&self, stay: Stay) -> anyhow::Result<Handle> {
        Ok(self.options().stay(stay).open_or_explain(AgentChoice::None)?.handle().clone())
    }

    pub fn place(&self) -> Place {
        checkout(self.dir(), &self.cwd)
    }

    /// The agent that the command acts as: by default the person.
    fn acting_agent(&self) -> anyhow::Result<AgentId> {
        let name = self.agent.as_deref().unwrap_or(HUMAN);
        if name == AUTO {
            usage_error("--agent auto is for `callboard mcp`; here, name the agent");
        }
        Ok(AgentId::checked(name).map_err(CallError::Refused)?)
    }

    /// The board that the command works on.
    pub fn board(&self, stay: Stay) -> anyhow::Result<Board> {
        if let Some(server) = &self.server {
            return Ok(Board::There(server.client(self)?));
        }
        let agent = AgentChoice::Named(self.acting_agent()?);
        let board = self.options().stay(stay).open_or_explain(agent)?;
        Ok(Board::Here(board.in_shell(wording::in_shell(&self.location).into())))
    }

    /// Calls one operation, for a command that does nothing else.
    pub fn call(&self, operation: &str, arguments: Value) -> anyhow::Result<Value> {
        self.expect_board(operation)?;
        let board = self.board(Stay::Brief)?;
        runtime()?.block_on(board.call(operation, arguments))
    }

    /// Refuses to create a board by accident: an empty board in the wrong directory would be the
    /// board of everything below it.
    fn expect_board(&self, operation: &str) -> Result<(), CallError> {
        let may_make = match ops::find(operation) {
            Some(entry) => entry.annotations.read_only || BEGINNINGS.contains(&operation),
            None => true,
        };
        if may_make
            || self.server.is_some()
            || self.location.may_create().is_err()
            || participant::is_begun(self.dir())
        {
            return Ok(());
        }
        Err(BoardError::Absent { dir: self.dir().to_owned() }.into())
    }

    /// Paths as the board keeps them, whatever the current directory: relative to the worktree's
    /// root or, outside of git, to the project.
    fn project_paths(&self, given: &[String]) -> Vec<String> {
        // A server's board is elsewhere, so its directory says nothing about paths here.
        let without_git = || {
            self.server.is_none().then(|| fs_err::canonicalize(self.dir().parent()?).ok()).flatten()
        };
        let root = self.place().worktree.map(PathBuf::from).or_else(without_git);
        let relative = |path: &String| {
            let inside = without_dots(&self.cwd.join(path))
                .strip_prefix(root.as_deref()?)
                .ok()?
                .to_str()?
                .to_owned();
            Some(inside).filter(|inside| !inside.is_empty())
        };
        given.iter().map(|path| relative(path).unwrap_or_else(|| path.clone())).collect()
    }

    /// Whether there is anything at this path of the project, in this worktree or beside the board.
    fn is_in_project(&self, path: &str) -> bool {
        let beside = self.dir().parent().filter(|_| self.server.is_none()).map(Path::to_owned);
        let roots = [self.place().worktree.map(PathBuf::from), beside];
        roots.into_iter().flatten().any(|root| root.join(path).exists())
    }

    /// Prints the reply as JSON, or what `write` makes of it for people.
    fn show(&self, reply: &Value, write: impl FnOnce(&mut print::Page)) -> anyhow::Result<()> {
        self.say_made();
        if self.json {
            return Ok(print::json(reply)?);
        }
        let mut page = print::Page::new(self.coloured(), participant::board_time(self.dir()));
        write(&mut page);
        for stop in reply["stop_requested"].as_array().into_iter().flatten() {
            let (task, reason) = (print::text(&stop["task"]), print::text(&stop["reason"]));
            page.marked("stop requested:", print::Tone::Bad, format_args!("{task} {reason}"));
        }
        if let Some(warning) = reply["warning"].as_str() {
            say(&format!("callboard: {}", print::harmless(&self.wording.in_commands(warning))));
        }
        Ok(page.print()?)
    }

    /// Root of the project: of the repository or, outside of one, the current directory.
    fn project_root(&self) -> PathBuf {
        let root = Repository::containing(&self.cwd).and_then(|repository| repository.root);
        let root = root.filter(|root| Location::is_ground(root, self.home.as_deref()));
        root.unwrap_or_else(|| self.cwd.clone())
    }

    /// Does what `connect` is asked for. The report holds what was done before the failure, if
    /// there was one.
    fn connected(
        &self,
        arguments: &connect::ConnectArgs,
    ) -> anyhow::Result<(connect::Report, Option<anyhow::Error>)> {
        let root = self.project_root();
        let (exe, path) = (env::current_exe()?, env::var_os("PATH"));
        let exe = connect::command(&exe, path.as_deref());
        if let Some(agent) = self.agent.as_deref() {
            if arguments.url.is_some() {
                let how = format!("a token says who comes: `callboard token add --agent {agent}`");
                usage_error(format!("over HTTP {how}; leave --agent out"));
            }
            if agent != AUTO {
                AgentId::checked(agent)
                    .unwrap_or_else(|refusal| usage_error(format!("--agent: {refusal}")));
            }
        }
        let target = connect::Target {
            exe: &exe,
            agent: self.agent.as_deref(),
            dir: self.dir_given.as_deref(),
            board: self.dir(),
            project_root: &root,
            home: self.home.as_deref(),
            path: path.as_deref(),
        };
        let declined = |error: anyhow::Error| {
            if error.chain().any(|cause| cause.is::<io::Error>()) {
                error
            } else {
                Declined(error).into()
            }
        };
        let (report, failure) = connect::connect(arguments, &target).map_err(declined)?;
        Ok((report, failure.map(declined)))
    }

    fn connect(&self, arguments: &connect::ConnectArgs) -> Outcome {
        let (report, failure) = self.connected(arguments)?;
        if !report.files.is_empty() || failure.is_none() {
            if self.json {
                print::json(&serde_json::to_value(&report)?)?;
            } else {
                print::unless_reader_left(writeln!(io::stdout().lock(), "{report}"))?;
            }
        }
        match failure {
            Some(error) => Err(error),
            None if arguments.check && !report.is_current() => Ok(ExitCode::from(REFUSED)),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    pub fn coloured(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let is_unwanted = env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
                let is_dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
                io::stdout().is_terminal() && !is_unwanted && !is_dumb
            }
        }
    }
}

pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    signal::outlive_size_limit()?;
    drop(entered);
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_and_option_has_one_line_of_help() {
        fn check(command: &clap::Command) {
            let helps = command
                .get_arguments()
                .filter(|one| !one.is_hide_set())
                .map(|one| (one.get_id().as_str(), one.get_help()));
            for (name, help) in helps.chain([(command.get_name(), command.get_about())]) {
                let help = help.map(ToString::to_string).unwrap_or_default();
                assert!(
                    !help.is_empty() && !help.contains('\n'),
                    "{} {name}: {help:?}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }

    #[test]
    fn colours_are_known_before_the_line_is_parsed() {
        let found = |line: &str| colours_of(line.split(' ').map(str::to_owned));
        assert_eq!(found("--color never tasks --nope"), ColorChoice::Never);
        assert_eq!(found("tasks --color=always"), ColorChoice::Always);
        for line in ["tasks", "tasks --color", "--color purple", "--colors always"] {
            assert_eq!(found(line), ColorChoice::Auto, "{line}");
        }
    }
}
