//! What a hook finds: the board, read without a lock from its state file or, if a person has edited
//! that, from the journal; and the agents of the session that runs it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::super::inside::AGENT_VARIABLE;
use super::super::wording::in_shell;
use super::super::{AUTO, Session};
use super::host::Processes;
use super::subagent::{self, Tag};
use crate::location::{Location, Start, without_dots};
use crate::participant::directory::{self, JOURNAL};
use crate::participant::presence::is_present;
use crate::participant::{BoardError, archive, board_time, left_of};
use crate::redact;
use crate::state::State;
use crate::state::agent::{Agent, Participant};
use crate::state::id::{AgentId, ParticipantId};
use crate::state::reservation::Hold;
use crate::state::task::Task;
use crate::statefile::{self, Found};
use crate::worktree::Worktree;

/// Environment variable with the directory in which the session was started, wherever it works now.
/// Gemini CLI sets it, too.
const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// Which of a session's conversations asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Conversation {
    /// It is not known: any of them.
    Any,
    Main,
    Subagent(Tag),
}

/// Which tasks are looked at.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tasks {
    All,
    /// At least those that agents hold; how many others there are is not known.
    Held,
}

impl Tasks {
    pub(crate) fn state(self, dir: &Path) -> Result<State, BoardError> {
        if self == Self::Held
            && let Ok(Some(document)) = statefile::load_held(dir, &left_of(dir))
        {
            return Ok(State::from_document(document));
        }
        match statefile::load(dir) {
            Ok(Some(Found::Sound(document))) => Ok(State::from_document(*document)),
            _ => archive::present(dir),
        }
    }
}

/// An agent and a task that it holds.
pub(super) type Held = (Arc<Agent>, Arc<Task>);

pub(crate) struct Scene {
    pub dir: PathBuf,
    /// How to call callboard for that board in the session's shell.
    pub command: String,
    pub state: State,
    /// Agents that the session acts as, with its subagents.
    pub agents: Vec<Arc<Agent>>,
    /// The agent that the session was told to act as, which need not be on the board.
    named: Option<AgentId>,
    /// Tasks of agents that acted in this worktree through a process that has ended, if the
    /// session has no agents: it may be a resumed session of theirs.
    pub left: Vec<Held>,
    conversation: Conversation,
    /// Whether the session's processes can be told from those of other sessions.
    is_known: bool,
    /// The session's directory, and the root of its worktree.
    cwd: PathBuf,
    root: Option<PathBuf>,
    /// The worktree as the board names it.
    worktree: Option<String>,
}

impl Scene {
    /// Looks at the board; none if there is none.
    pub(crate) fn look(
        session: &Session,
        cwd: Option<&Path>,
        conversation: Conversation,
        tasks: Tasks,
    ) -> Result<Option<Self>, BoardError> {
        let cwd = cwd.filter(|cwd| cwd.is_dir()).unwrap_or(&session.cwd);
        let Some(location) = board_location(session, cwd) else { return Ok(None) };
        let (command, dir) = (in_shell(&location), location.dir);
        let mut state = tasks.state(&dir)?;
        state.wake(board_time(&dir));
        let root = Worktree::of_board(&dir, cwd).map(|worktree| worktree.root);
        let kept = |path: Cow<str>| redact::name(&path).unwrap_or_else(|| path.into_owned());
        let worktree = root.as_ref().map(|root| kept(root.to_string_lossy()));
        let search = Search { state: &state, dir: &dir, worktree: worktree.as_deref() };
        let named = named(session);
        let processes = Processes::look();
        let host = processes.host_of(std::process::id());
        let (agents, left) = match &named {
            Some(id) => (state.agent(id).cloned().into_iter().collect(), Vec::new()),
            None => search.unnamed(&processes, host),
        };
        let cwd = cwd.to_owned();
        Ok(Some(Self {
            dir,
            command,
            state,
            agents,
            named,
            left,
            conversation,
            is_known: host.is_some(),
            cwd,
            root,
            worktree,
        }))
    }

    /// The agent that the session was told to act as, if it is not on the board yet.
    pub(crate) fn unregistered(&self) -> Option<&AgentId> {
        self.named.as_ref().filter(|id| self.agents.is_empty() && !id.as_str().is_empty())
    }

    /// Agents that the conversation itself acts as. A subagent that has not registered helps the
    /// one that started it.
    pub(crate) fn own(&self) -> Vec<Arc<Agent>> {
        if let Conversation::Subagent(tag) = &self.conversation
            && let Some(agent) = tag.agent(&self.state)
        {
            return vec![Arc::clone(agent)];
        }
        let all = self.state.agents().map(|one| &one.id).chain(&self.named);
        let parents: HashSet<_> = all.map(|id| subagent::cut(id.as_str())).collect();
        let is_subagent =
            |agent: &Agent| subagent::is_one(agent, |parent| parents.contains(parent));
        let is_own =
            |agent: &&Arc<Agent>| self.conversation == Conversation::Any || !is_subagent(agent);
        self.agents.iter().filter(is_own).cloned().collect()
    }

    /// Agents whose tasks are to be ended before the conversation ends: a subagent's own, or all of
    /// the session's.
    pub(crate) fn answerable(&self) -> Vec<Arc<Agent>> {
        match &self.conversation {
            Conversation::Subagent(tag) => tag.agent(&self.state).cloned().into_iter().collect(),
            Conversation::Any | Conversation::Main => self.agents.clone(),
        }
    }

    /// The agent in whose name the conversation asks others.
    pub(crate) fn speaker(&self) -> Option<AgentId> {
        self.own().first().map(|agent| agent.id.clone()).or_else(|| self.unregistered().cloned())
    }

    /// The directory to tell the board of if the conversation works in another worktree than the
    /// session's processes.
    pub(crate) fn apart(&self) -> Option<&str> {
        let root = self.root.as_ref()?;
        let through = self.agents.iter().flat_map(|agent| &agent.present_through);
        let mut known =
            through.filter_map(|id| self.state.participant(id)).map(|one| &one.worktree).peekable();
        let is_apart = match known.peek() {
            Some(_) => known.all(|worktree| *worktree != self.worktree),
            None => {
                let project = env::var_os(PROJECT_VARIABLE).map(PathBuf::from);
                let project = project.and_then(|project| Worktree::of_board(&self.dir, &project));
                project.is_some_and(|project| project.root != *root)
            }
        };
        root.to_str().filter(|_| is_apart)
    }

    pub(crate) fn held_by<'s>(&'s self, agent: &'s Agent) -> impl Iterator<Item = &'s Arc<Task>> {
        agent.current_tasks.iter().filter_map(|id| self.state.task(id))
    }

    /// What others than the conversation's agents hold of `file`, under its name or under what a
    /// link leads to; it need not exist. A person at a shell, and a session that cannot be told
    /// from others, count everything held from their own worktree as theirs.
    pub(crate) fn others_hold(&self, file: &Path) -> Vec<Hold> {
        let file = without_dots(&self.cwd.join(file));
        let linked = || fs::canonicalize(&file).ok().and_then(|target| self.in_project(&target));
        let mut paths: Vec<_> = self
            .in_project(&file)
            .into_iter()
            .chain(self.as_named(&file))
            .chain(linked())
            .collect();
        let forms: Vec<String> = paths
            .iter()
            .filter(|path| !path.is_ascii())
            .flat_map(|path| [path.nfc().collect(), path.nfd().collect()])
            .collect();
        paths.extend(forms);
        paths.extend(self.other_names(&file));
        paths.sort_unstable();
        paths.dedup();
        let mut holds = Vec::new();
        for hold in paths.iter().flat_map(|path| self.others_hold_path(path)) {
            if !holds.contains(&hold) {
                holds.push(hold);
            }
        }
        holds
    }

    /// Held paths that lead to the same file by another name: a hard link, or other letters where
    /// the file system takes them for the same.
    fn other_names(&self, file: &Path) -> Vec<String> {
        let identity = |path: &Path| fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
        let (Some(own), Some(root)) = (identity(file), self.root_of_names()) else {
            return Vec::new();
        };
        let held = self.state.held_patterns();
        held.filter(|path| identity(&root.join(path)) == Some(own)).map(str::to_owned).collect()
    }

    /// The directory that held paths are relative to.
    fn root_of_names(&self) -> Option<PathBuf> {
        match &self.root {
            Some(root) => Some(root.clone()),
            None => fs::canonicalize(self.dir.parent()?).ok(),
        }
    }

    fn others_hold_path(&self, path: &str) -> Vec<Hold> {
        let own = self.own();
        let is_own = |hold: &Hold| match &self.named {
            None if own.is_empty() && self.agents.is_empty() && !self.is_apart_from_others() => {
                hold.worktree == self.worktree
            }
            _ => own.iter().any(|agent| agent.id == hold.agent),
        };
        let mut holds = self.state.holds_of(path, board_time(&self.dir));
        let shares = holds.iter().any(|hold| hold.shared && is_own(hold));
        let narrowest = holds.iter().filter(|hold| is_own(hold)).map(Hold::narrowness).max();
        let is_wider = |hold: &Hold| narrowest.is_some_and(|own| own > hold.narrowness());
        holds.retain(|hold| !(is_own(hold) || shares && hold.shared || is_wider(hold)));
        holds
    }

    /// Whether a session asks that is none of the others, though it may not have registered.
    fn is_apart_from_others(&self) -> bool {
        self.is_known && self.conversation != Conversation::Any
    }

    /// `file` relative to the worktree, with links left as they are.
    fn as_named(&self, file: &Path) -> Option<String> {
        let root = self.root_of_names()?;
        let under =
            |dir: &Path| Some(fs::canonicalize(dir).ok()?.join(file.strip_prefix(dir).ok()?));
        let file = self
            .cwd
            .ancestors()
            .find_map(|dir| under(dir).filter(|file| file.starts_with(&root)))?;
        Some(file.strip_prefix(root).ok()?.to_str()?.to_owned()).filter(|path| !path.is_empty())
    }

    /// `file` relative to the worktree of the board that contains it or, outside of git, to the
    /// project.
    fn in_project(&self, file: &Path) -> Option<String> {
        let known =
            file.ancestors().skip(1).find_map(|dir| Some((dir, fs::canonicalize(dir).ok()?)));
        let (dir, canonical) = known?;
        let file = canonical.join(file.strip_prefix(dir).ok()?);
        let root = match Worktree::of_file(&self.dir, &self.cwd, &canonical) {
            Some(worktree) => worktree.root,
            None => fs::canonicalize(self.dir.parent()?).ok()?,
        };
        Some(file.strip_prefix(root).ok()?.to_str()?.to_owned()).filter(|path| !path.is_empty())
    }
}

fn board_location(session: &Session, cwd: &Path) -> Option<Location> {
    let project =
        env::var_os(PROJECT_VARIABLE).map(PathBuf::from).filter(|project| project.is_dir());
    let variable = env::var_os("COORDINATION_DIR");
    let location = Location::of(&Start {
        dir: session.dir_given.as_deref(),
        env: variable.as_deref(),
        project: project.as_deref(),
        cwd,
        workspace: None,
        home: session.home.as_deref(),
        plugins: [None; 2],
    });
    location.may_create().ok()?;
    directory::inspect(&location.dir).ok()?;
    // Without a journal, renewing a lease would create the board.
    location.dir.join(JOURNAL).exists().then_some(location)
}

/// The agent that was named; none if none was. A name that cannot be an agent's belongs to nobody.
fn named(session: &Session) -> Option<AgentId> {
    let given = session.agent.clone().filter(|name| name != AUTO);
    let name = given.or_else(|| env::var(AGENT_VARIABLE).ok()).filter(|name| !name.is_empty())?;
    Some(AgentId::checked(&name).unwrap_or_else(|_| AgentId::trusted("")))
}

/// A search for the agents of a session that names none.
struct Search<'a> {
    state: &'a State,
    dir: &'a Path,
    /// Worktree of the session. Outside of git it has none, like everybody else on that board.
    worktree: Option<&'a str>,
}

impl Search<'_> {
    /// The agents of the session whose client is `host`, and what may have been theirs.
    fn unnamed(&self, processes: &Processes, host: Option<u32>) -> (Vec<Arc<Agent>>, Vec<Held>) {
        let living: Vec<_> = self
            .state
            .participants()
            .filter(|one| is_present(self.dir, one.id.as_str()))
            .cloned()
            .collect();
        let Some(host) = host else {
            return (self.only_one_here(&living), self.left(&living));
        };
        let siblings: Vec<_> =
            living.iter().filter(|one| processes.host_of(one.pid) == Some(host)).collect();
        let mut agents = self.through(&self.prefer_here(siblings));
        if agents.is_empty() {
            // A process with another host belongs to another session; one whose host is not visible
            // may belong to this one.
            let unseen = |one: &&Arc<Participant>| processes.host_of(one.pid).is_none();
            agents = self.only_one_here(&living.iter().filter(unseen).cloned().collect::<Vec<_>>());
        }
        let left = if agents.is_empty() { self.left(&living) } else { Vec::new() };
        (agents, left)
    }

    /// Prefers participants in this worktree: one host may have sessions in several.
    fn prefer_here<'p>(
        &self,
        participants: Vec<&'p Arc<Participant>>,
    ) -> Vec<&'p Arc<Participant>> {
        let here: Vec<_> = participants
            .iter()
            .copied()
            .filter(|one| self.is_here(one.worktree.as_deref()))
            .collect();
        if here.is_empty() { participants } else { here }
    }

    fn only_one_here(&self, living: &[Arc<Participant>]) -> Vec<Arc<Agent>> {
        let here: Vec<_> =
            living.iter().filter(|one| self.is_here(one.worktree.as_deref())).collect();
        let agents = self.through(&here);
        if agents.len() == 1 { agents } else { Vec::new() }
    }

    fn through(&self, participants: &[&Arc<Participant>]) -> Vec<Arc<Agent>> {
        let acts = |agent: &&Arc<Agent>| {
            participants.iter().any(|one| agent.present_through.contains(&one.id))
        };
        self.state.agents().filter(acts).cloned().collect()
    }

    fn left(&self, living: &[Arc<Participant>]) -> Vec<Held> {
        let living: HashSet<&ParticipantId> = living.iter().map(|one| &one.id).collect();
        let held = self.state.tasks().filter(|task| {
            task.open_attempt().is_some_and(|open| {
                let dead = open.participant.as_ref().is_some_and(|one| !living.contains(one));
                dead && self.is_here(open.place.worktree.as_deref())
            })
        });
        let with_agent = held.filter_map(|task| {
            let agent = self.state.agent(&task.open_attempt()?.agent)?;
            let gone = agent.present_through.iter().all(|one| !living.contains(one));
            gone.then(|| (Arc::clone(agent), Arc::clone(task)))
        });
        with_agent.collect()
    }

    fn is_here(&self, worktree: Option<&str>) -> bool {
        worktree == self.worktree
    }
}
