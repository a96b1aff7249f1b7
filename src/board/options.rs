//! How a board is opened.

use std::env;
use std::path::{Path, PathBuf};

use super::{Board, Error};
use crate::clock::SystemClock;
use crate::config;
use crate::filesystem;
use crate::location::{Location, Start};
use crate::participant::{self, AgentChoice, BoardError, Caller, Handle, Stay, directory};
use crate::state::id::AgentId;
use crate::state::policy::Policy;
use crate::state::task::Place as Checkout;
use crate::worktree::{Repository, Worktree};

/// Environment variable with the name of the state file.
pub(crate) const STATE_FILE: &str = "CALLBOARD_STATE_FILE";

/// Which board is opened, for whom, and how.
///
/// ```no_run
/// use callboard::board::Options;
/// use callboard::state::policy::Policy;
///
/// # fn main() -> Result<(), callboard::Error> {
/// let policy = Policy { lease_minutes: 10, ..Policy::default() };
/// let board = Options::at("/projects/parser/.coordination").agent("ada").policy(policy).open()?;
/// # Ok(())
/// # }
/// ```
pub struct Options {
    place: Place,
    cwd: Option<PathBuf>,
    agent: Option<String>,
    stay: Stay,
    must_exist: bool,
    allow_network_filesystem: bool,
    unasked: Option<String>,
    policy: Option<Policy>,
    state_file: Option<String>,
}

enum Place {
    Named(PathBuf),
    Here,
    Located(Location),
}

impl Options {
    /// The board in the directory `dir`, usually a project's `.coordination`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self::of(Place::Named(dir.into()))
    }

    /// The board that `callboard` would use if it were started here: the one that
    /// `COORDINATION_DIR` names, else the nearest `.coordination` upwards, else that of the git
    /// repository's main worktree. `CALLBOARD_STATE_FILE` counts, too.
    pub fn here() -> Self {
        let name = env::var(STATE_FILE).ok().filter(|name| !name.is_empty());
        Self { state_file: name, ..Self::of(Place::Here) }
    }

    /// The board that was located for a process started in `cwd`.
    pub(crate) fn located(location: Location, cwd: PathBuf) -> Self {
        Self { cwd: Some(cwd), ..Self::of(Place::Located(location)) }
    }

    fn of(place: Place) -> Self {
        Self {
            place,
            cwd: None,
            agent: None,
            stay: Stay::Presence,
            must_exist: false,
            allow_network_filesystem: false,
            unasked: None,
            policy: None,
            state_file: None,
        }
    }

    /// Calls act for this agent where their parameters name none. Without it they act for the
    /// board's owner, who is a leader, and operations of agents must name theirs.
    pub fn agent(mut self, id: impl Into<String>) -> Self {
        self.agent = Some(id.into());
        self
    }

    /// For a program that makes a call or a few and ends. Otherwise the agents that it acts for
    /// count as present for as long as it lives: their claims last through silence, and end
    /// soon after it dies.
    pub fn brief(self) -> Self {
        self.stay(Stay::Brief)
    }

    /// Refuses to open a board that is not there yet, instead of making it with the first call that
    /// writes.
    pub fn existing(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Writes even where file locks may not work, such as on a network file system.
    pub fn allow_network_filesystem(mut self) -> Self {
        self.allow_network_filesystem = true;
        self
    }

    /// What the board's owner may set. It is recorded in the board's `config.toml`, where all
    /// processes read it; a board that has that file already must say the same in it.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The name of the state file in the board's directory, instead of `mcp-state.json`. The board
    /// that is made gets it, in its `config.toml`; a board that is there must have it already.
    pub fn state_file(mut self, name: impl Into<String>) -> Self {
        self.state_file = Some(name.into());
        self
    }

    pub(crate) fn stay(mut self, stay: Stay) -> Self {
        self.stay = stay;
        self
    }

    /// Why only a call that asks for a board makes one.
    pub(crate) fn unasked(mut self, reason: Option<String>) -> Self {
        self.unasked = reason;
        self
    }

    /// Opens the board. Its files are read and written by the calls. With a
    /// [`policy`](Self::policy), though, `config.toml` is made now, with the policy and the
    /// state file's name as far as they differ from the defaults.
    ///
    /// # Errors
    ///
    /// Says so if no board may be kept in the directory, if it is not there and must be, or if its
    /// `config.toml` says something else.
    pub fn open(self) -> Result<Board, Error> {
        let agent = match &self.agent {
            Some(id) => AgentChoice::Named(AgentId::checked(id)?),
            None => AgentChoice::None,
        };
        let (location, cwd) = self.find()?;
        let dir = location.dir.clone();
        location.may_create().map_err(|error| BoardError::Forbidden(error.typed()))?;
        if self.must_exist && !participant::is_begun(&dir) {
            return Err(BoardError::Absent { dir }.into());
        }
        if let Some(name) = &self.state_file {
            config::check_state_file(name).map_err(BoardError::Forbidden)?;
        }
        if participant::is_begun(&dir) {
            participant::agree(&dir, self.state_file.as_deref())?;
        }
        self.record(&dir)?;
        let caller = caller(agent, &dir, &cwd);
        Ok(Board { handle: self.spawn(&location, &caller), caller, dir })
    }

    /// Opens the board in any case; what is in the way is the answer to every call. For commands
    /// and servers, which say it where their callers look.
    pub(crate) fn open_or_explain(self, agent: AgentChoice) -> Result<Board, Error> {
        let (location, cwd) = self.find()?;
        let caller = caller(agent, &location.dir, &cwd);
        Ok(Board { handle: self.spawn(&location, &caller), caller, dir: location.dir })
    }

    fn find(&self) -> Result<(Location, PathBuf), Error> {
        let cwd = match (&self.cwd, &self.place) {
            (Some(cwd), _) => cwd.clone(),
            (None, Place::Named(dir)) if dir.is_absolute() => {
                env::current_dir().unwrap_or_else(|_| "/".into())
            }
            (None, _) => env::current_dir().map_err(|source| BoardError::Io {
                action: "cannot read the current directory".to_owned(),
                source,
            })?,
        };
        let (dir, variable) = match &self.place {
            Place::Located(location) => return Ok((location.clone(), cwd)),
            Place::Named(dir) => (Some(dir.as_path()), None),
            Place::Here => (None, env::var_os("COORDINATION_DIR")),
        };
        let home = env::home_dir();
        let location = Location::of(&Start {
            dir,
            env: variable.as_deref(),
            project: None,
            cwd: &cwd,
            workspace: None,
            home: home.as_deref(),
            plugins: [None; 2],
        });
        Ok((location, cwd))
    }

    /// Records what was asked for where all processes on the board read it.
    fn record(&self, dir: &Path) -> Result<(), BoardError> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let names_file = self.state_file.as_ref().is_some_and(|name| name != config::STATE_FILE);
        if *policy != Policy::default() || names_file {
            directory::prepare(dir)?;
        }
        Ok(config::record(dir, |config| {
            config.policy = policy.clone();
            config.state_file =
                self.state_file.clone().unwrap_or_else(|| std::mem::take(&mut config.state_file));
        })?)
    }

    fn spawn(&self, location: &Location, caller: &Caller) -> Handle {
        let dir = location.dir.clone();
        let may_create = location.may_create().map_err(|error| match self.stay {
            // A client has started this process, so the message is about its configuration.
            Stay::Presence => error.to_string(),
            Stay::Brief | Stay::Lasting => error.typed(),
        });
        participant::spawn(participant::Options {
            state_file: self.state_file.clone(),
            stay: self.stay,
            forbidden: may_create.err(),
            unasked: self.unasked.clone(),
            unwritable: objection(&dir, self.allow_network_filesystem),
            clock: Box::new(SystemClock),
            seed: seed(),
            worktree: caller.place.worktree.clone(),
            dir,
        })
    }
}

/// Why the board in `dir` should not be written to, unless that is allowed.
pub(crate) fn objection(dir: &Path, is_allowed: bool) -> Option<String> {
    let allows = || config::load(dir).is_ok_and(|config| config.allow_network_filesystem);
    filesystem::objection(&filesystem::kind(dir), dir).filter(|_| !is_allowed && !allows())
}

/// Who calls the board in `dir` from the directory `cwd`.
fn caller(agent: AgentChoice, dir: &Path, cwd: &Path) -> Caller {
    let place = checkout(dir, cwd);
    let repository =
        place.worktree.as_deref().and_then(|root| Repository::containing(Path::new(root)));
    let main_worktree = repository.map(|repository| repository.main_root().into());
    Caller { agent, place, cwd: Some(cwd.into()), main_worktree, ..Caller::default() }
}

/// Worktree, branch and commit around `cwd`, as far as they concern the board in `dir`.
pub(crate) fn checkout(dir: &Path, cwd: &Path) -> Checkout {
    Worktree::of_board(dir, cwd).map(Checkout::from).unwrap_or_default()
}

/// A seed that differs between processes, and between the boards that one opens, even in the same
/// millisecond.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
