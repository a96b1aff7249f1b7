//! The command line: one file per command. Commands act as `human`, a leader, unless `--agent` says otherwise.

mod call;
mod connect;
mod mcp;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, Parser, Subcommand};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::clock::SystemClock;
use crate::location::{Location, Start};
use crate::participant::{self, AgentChoice, CallError, Caller, Handle, Options};
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::task::Place;
use crate::worktree::{Repository, Worktree};

/// Exit codes, as the help of `callboard` documents them.
const REFUSED: u8 = 1;
const USAGE: u8 = 2;
const FAILED: u8 = 3;

const EXIT_CODES: &str = "Exit codes:
  0  done
  1  refused: the message says why and what to do (also: no task was claimed)
  2  the command line is wrong
  3  the board cannot be used: directory, disk, lock, journal";

/// Coordination server for AI coding agents: one durable task queue and agent registry over MCP.
#[derive(Parser)]
#[command(name = "callboard", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Arguments {
    /// The board's directory [default: the nearest .coordination upwards, else the repository's main worktree]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Act as this agent; for `mcp` also `auto`
    #[arg(long, global = true, value_name = "ID")]
    agent: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
    /// Format of the log on standard error
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text", hide = true)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP on standard input and output, for an IDE or agent to start
    Mcp(mcp::Arguments),
    /// Call any operation by name
    Call(call::Arguments),
    /// Write the configuration that lets a client start `callboard mcp`
    Connect(connect::ConnectArgs),
}

/// What commands need: where the board is, how to call it, how to print.
pub struct Session {
    location: Location,
    dir_given: Option<PathBuf>,
    home: Option<PathBuf>,
    cwd: PathBuf,
    agent: Option<String>,
    json: bool,
    color: ColorChoice,
}

/// Whether the command did what it was asked.
pub type Outcome = anyhow::Result<ExitCode>;

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log(arguments.log_format);
    let json = arguments.json;
    match run(arguments) {
        Ok(code) => code,
        Err(error) => report(&error, json),
    }
}

fn run(arguments: Arguments) -> Outcome {
    let session = Session::new(&arguments)?;
    match arguments.command {
        Command::Mcp(arguments) => mcp::run(&session, arguments),
        Command::Call(arguments) => call::run(&session, arguments),
        Command::Connect(arguments) => session.connect(&arguments),
    }
}

/// Standard output belongs to the protocol and to replies.
fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("CALLBOARD_LOG").unwrap_or_else(|_| EnvFilter::new("warn,rmcp=warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

/// The error on standard error, as text or, with `--json`, as the object that programs get.
fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let call = error.downcast_ref::<CallError>();
    if json {
        let data = call.map_or_else(|| json!({"code": "failed", "message": format!("{error:#}")}), CallError::data);
        eprintln!("{}", json!({"error": data}));
    } else {
        eprintln!("callboard: {error:#}");
    }
    ExitCode::from(match call {
        Some(CallError::Refused(_)) => REFUSED,
        Some(CallError::UnknownOperation(_)) => USAGE,
        Some(CallError::Failed(_)) | None => FAILED,
    })
}

/// A command line that clap could not know to be wrong.
pub fn usage_error(message: impl std::fmt::Display) -> ! {
    Arguments::command().error(clap::error::ErrorKind::ValueValidation, message).exit()
}

impl Session {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let cwd = env::current_dir()?;
        let home = env::home_dir();
        let workspace = env::var_os("WORKSPACE_FOLDER_PATHS").map(PathBuf::from);
        let variable = env::var_os("COORDINATION_DIR").filter(|value| !value.is_empty());
        let location = Location::of(&Start {
            dir: arguments.dir.as_deref(),
            env: variable.as_deref(),
            cwd: &cwd,
            workspace: workspace.as_deref(),
            home: home.as_deref(),
        });
        Ok(Self {
            location,
            dir_given: arguments.dir.clone(),
            home,
            cwd,
            agent: arguments.agent.clone(),
            json: arguments.json,
            color: arguments.color,
        })
    }

    pub fn dir(&self) -> &Path {
        &self.location.dir
    }

    /// A replica of the board in this process.
    pub fn participant(&self, lasting: bool) -> Handle {
        participant::spawn(Options {
            dir: self.location.dir.clone(),
            lasting,
            forbidden: self.location.may_create().err().map(|error| error.to_string()),
            clock: Box::new(SystemClock::default()),
            seed: seed(),
            worktree: self.place().worktree,
        })
    }

    pub fn place(&self) -> Place {
        let Some(worktree) = Worktree::at(&self.cwd) else { return Place::default() };
        let root = worktree.root.to_string_lossy().into_owned();
        Place { worktree: Some(root), branch: worktree.branch, head: worktree.head }
    }

    /// Commands act for a person.
    pub fn caller(&self) -> anyhow::Result<Caller> {
        let agent = AgentId::checked(self.agent.as_deref().unwrap_or(HUMAN));
        let agent = match agent {
            Ok(agent) if agent.as_str() == HUMAN => AgentId::trusted(HUMAN),
            Ok(agent) => agent,
            Err(refusal) => return Err(CallError::Refused(refusal).into()),
        };
        Ok(Caller { client: None, agent: AgentChoice::Named(agent), place: self.place() })
    }

    /// One operation, from a command that does just that.
    pub fn call(&self, operation: &str, arguments: Value) -> anyhow::Result<Value> {
        let caller = self.caller()?;
        let handle = self.participant(false);
        Ok(runtime()?.block_on(handle.call(operation, arguments, &caller))?)
    }

    fn connect(&self, arguments: &connect::ConnectArgs) -> Outcome {
        let root = Repository::containing(&self.cwd).and_then(|repository| repository.root);
        let root = root.unwrap_or_else(|| self.cwd.clone());
        let exe = connect::command(&env::current_exe()?, env::var_os("PATH").as_deref());
        let connected = connect::connect(arguments, self.dir_given.as_deref(), &root, self.home.as_deref(), &exe)?;
        if self.json {
            self.print_json(&serde_json::to_value(connected)?)?;
        } else {
            println!("{connected}");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Pretty on a terminal, one line for programs.
    pub fn print_json(&self, value: &Value) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            serde_json::to_writer_pretty(&mut out, value)?;
        } else {
            serde_json::to_writer(&mut out, value)?;
        }
        writeln!(out)
    }

    pub fn coloured(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
        }
    }
}

pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Differs from process to process, also in the same millisecond.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
