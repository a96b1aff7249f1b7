//! What a command needs: where the board is, how it is called, and how replies are printed.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use clap::ColorChoice;
use serde_json::Value;

use super::board::{BEGINNINGS, Board, Server};
use super::inside::Surroundings;
use super::line::{AUTO, Arguments, Command};
use super::report::{Declined, REFUSED, say, usage_error};
use super::wording::{Wording, in_shell};
use super::{Outcome, connect, print};
use crate::board::{Options, checkout};
use crate::location::{Location, Start, without_dots};
use crate::ops::{self, Door};
use crate::participant::{self, AgentChoice, BoardError, CallError, Handle, Stay, recovery};
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::refusal::Refusal;
use crate::state::task::Place;
use crate::state::time::Timestamp;
use crate::worktree::Repository;
use crate::{signal, user};

/// What commands need: where the board is, how to call it, and how to print.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) location: Location,
    /// Whether there was a board when the command began.
    pub(super) found_board: bool,
    pub(super) dir_given: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) cwd: PathBuf,
    pub(super) server: Option<Server>,
    pub(super) agent: Option<String>,
    /// What makes the command an agent's, besides `--agent`.
    pub(super) surroundings: Option<Surroundings>,
    pub(super) wording: Wording,
    pub(super) state_file: Option<String>,
    pub(super) allow_network_filesystem: bool,
    pub(super) json: bool,
    /// Whether times are shown in UTC instead of the local time.
    pub(super) utc: bool,
    pub(super) color: ColorChoice,
    /// Whether the command may change something, so that no name is guessed.
    pub(super) is_careful: bool,
    pub(super) opened: Arc<Opened>,
}

/// What a command that calls more than once keeps between its calls.
#[derive(Default)]
pub(super) struct Opened {
    board: OnceLock<crate::Board>,
    warning: Mutex<Option<Value>>,
}

impl Opened {
    /// Keeps what a process says of the board with its first reply, for the one that is shown.
    pub(super) fn swap_warning(&self, warning: Option<Value>) -> Option<Value> {
        let mut kept = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut kept, warning)
    }
}

/// The current directory. It need not exist if the board is named by an absolute path.
pub(super) fn start_directory(board: Option<&Path>) -> anyhow::Result<PathBuf> {
    match env::current_dir() {
        Err(_) if board.is_some_and(Path::is_absolute) => Ok(PathBuf::from("/")),
        cwd => cwd.context(
            "the directory that this was started in is gone or cannot be read; change to another \
             one, or name the board from the root on: --dir /PROJECT/.coordination",
        ),
    }
}

impl Session {
    pub(super) fn new(arguments: &Arguments) -> anyhow::Result<Self> {
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
        let mut session = Self {
            found_board: participant::is_begun(&location.dir),
            location,
            server,
            dir_given: arguments.dir.clone(),
            home,
            cwd,
            agent: arguments.agent.clone(),
            surroundings: None,
            wording: Wording::of(arguments),
            state_file: arguments.state_file.clone().filter(|name| !name.is_empty()),
            allow_network_filesystem: arguments.allow_network_filesystem,
            json: arguments.json,
            utc: arguments.utc,
            color: arguments.color,
            is_careful: !arguments.command.only_shows(),
            opened: Arc::default(),
        };
        session.look_around(&arguments.command);
        Ok(session)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.location.dir
    }

    /// Whether there is a board to look at.
    pub(super) fn has_board(&self) -> bool {
        self.found_board || self.server.is_some()
    }

    /// How this command opens its board.
    pub(super) fn options(&self) -> Options {
        let options = Options::located(self.location.clone(), self.cwd.clone());
        let options =
            self.state_file.iter().fold(options, |options, name| options.state_file(name));
        if self.allow_network_filesystem { options.allow_network_filesystem() } else { options }
    }

    /// Starts a participant: a replica of the board in this process.
    pub(super) fn participant(&self, stay: Stay) -> anyhow::Result<Handle> {
        Ok(self.options().stay(stay).open_or_explain(AgentChoice::None)?.handle().clone())
    }

    pub(super) fn place(&self) -> Place {
        checkout(self.dir(), &self.cwd)
    }

    /// The agent that the command acts as. The person acts as `human`. There is none in the shell of
    /// an agent whose name is not known.
    pub(super) fn acting_agent(&self) -> anyhow::Result<Option<AgentId>> {
        let name = match (self.agent.as_deref(), &self.surroundings) {
            (Some(AUTO), _) => {
                usage_error("--agent auto is for `callboard mcp`; here, name the agent")
            }
            (Some(name), _) => name,
            (None, Some(_)) => return Ok(None),
            (None, None) => HUMAN,
        };
        let agent = AgentId::checked(name).map_err(CallError::Refused)?;
        if self.agent.is_some() && name == HUMAN {
            let refusal = Refusal::NotThePerson { agent: Some(agent), mark: None };
            return Err(CallError::Refused(refusal).into());
        }
        Ok(Some(agent))
    }

    /// Refuses an agent what only a person does.
    pub(super) fn expect_person(&self, does: &str) -> anyhow::Result<()> {
        self.expect_persons_shell()?;
        if self.agent.is_some() {
            let refused = anyhow::anyhow!("only a person {does}, no agent; leave --agent out");
            return Err(Declined(refused).into());
        }
        Ok(())
    }

    /// Refuses a command in the shell of an agent, whoever is named with it.
    pub(super) fn expect_persons_shell(&self) -> Result<(), CallError> {
        match &self.surroundings {
            Some(around) => Err(CallError::Refused(Refusal::NotThePerson {
                agent: None,
                mark: around.inside.mark.clone(),
            })),
            None => Ok(()),
        }
    }

    /// Under which names the history has what is done here: those of a person are what the board
    /// calls them now, and what it called anybody in charge.
    pub(super) fn own_actors(&self) -> Vec<AgentId> {
        if let Some(agent) = &self.agent {
            return vec![AgentId::trusted(agent.as_str())];
        }
        let named = user::person().map(|name| AgentId::of_person(&name));
        named.into_iter().chain([AgentId::trusted(HUMAN)]).collect()
    }

    /// The board that the command works on.
    pub(super) fn board(&self, stay: Stay) -> anyhow::Result<Board> {
        if let Some(server) = &self.server {
            return Ok(Board::There(server.client(self)?));
        }
        if let Some(board) = self.opened.board.get().filter(|_| matches!(stay, Stay::Brief)) {
            return Ok(Board::Here(board.clone()));
        }
        let agent = self.acting_agent()?.map_or(AgentChoice::None, AgentChoice::Named);
        let board = self.options().stay(stay).open_or_explain(agent)?;
        let board = board.in_shell(in_shell(&self.location).into()).for_person(user::person());
        Ok(Board::Here(match &self.surroundings {
            Some(around) => board.through(Door::Agent(around.inside.clone()), around.client),
            None => board,
        }))
    }

    /// Keeps the board open for the calls to come.
    pub(super) fn keep_board(&self) -> anyhow::Result<()> {
        if let Board::Here(board) = self.board(Stay::Brief)? {
            self.opened.board.get_or_init(|| board);
        }
        Ok(())
    }

    /// Calls one operation, for a command that does nothing else.
    pub(super) fn call(&self, operation: &str, arguments: Value) -> anyhow::Result<Value> {
        self.expect_board(operation)?;
        let board = self.board(Stay::Brief)?;
        let mut reply = runtime()?.block_on(board.call(operation, arguments))?;
        if let (Some(warning), None) = (self.opened.swap_warning(None), reply.get("warning")) {
            reply["warning"] = warning;
        }
        Ok(reply)
    }

    /// Refuses to create a board by accident: an empty board in the wrong directory would be the
    /// board of everything below it.
    pub(super) fn expect_board(&self, operation: &str) -> Result<(), CallError> {
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
    pub(super) fn project_paths(&self, given: &[String]) -> Vec<String> {
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
    pub(super) fn is_in_project(&self, path: &str) -> bool {
        let beside = self.dir().parent().filter(|_| self.server.is_none()).map(Path::to_owned);
        let roots = [self.place().worktree.map(PathBuf::from), beside];
        roots.into_iter().flatten().any(|root| root.join(path).exists())
    }

    /// Prints the reply as JSON, or what `write` makes of it for people.
    pub(super) fn show(
        &self,
        reply: &Value,
        write: impl FnOnce(&mut print::Page),
    ) -> anyhow::Result<()> {
        self.say_made();
        let warning = reply["warning"].as_str();
        warning.into_iter().for_each(recovery::was_told);
        if self.json {
            return Ok(print::json(reply)?);
        }
        let mut page = self.page(participant::board_time(self.dir()));
        write(&mut page);
        for stop in reply["stop_requested"].as_array().into_iter().flatten() {
            let (task, reason) = (print::text(&stop["task"]), print::text(&stop["reason"]));
            page.marked("stop requested:", print::Tone::Bad, format_args!("{task} {reason}"));
        }
        if let Some(warning) = warning {
            say(&format!("callboard: {}", print::harmless(&self.wording.in_commands(warning))));
        }
        Ok(page.print()?)
    }

    /// An empty page, for a terminal like ours.
    pub(super) fn page(&self, now: Timestamp) -> print::Page {
        print::Page::new(self.coloured(), now).in_utc(self.utc)
    }

    /// Root of the project: of the repository or, outside of one, the current directory.
    pub(super) fn project_root(&self) -> PathBuf {
        let root = Repository::containing(&self.cwd).and_then(|repository| repository.root);
        let root = root.filter(|root| Location::is_ground(root, self.home.as_deref()));
        root.unwrap_or_else(|| self.cwd.clone())
    }

    /// Does what `connect` is asked for. The report holds what was done before the failure, if
    /// there was one.
    pub(super) fn connected(
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

    pub(super) fn connect(&self, arguments: &connect::ConnectArgs) -> Outcome {
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

    pub(super) fn coloured(&self) -> bool {
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

pub(super) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    signal::outlive_size_limit()?;
    drop(entered);
    Ok(runtime)
}
