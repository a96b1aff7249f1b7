//! On whose behalf a call is made.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::nickname;
use super::rate::Rate;
use crate::ops::{DefaultAgent, Door, Inside, Principal, Reader};
use crate::state::id::{AgentId, HUMAN};
use crate::state::task::Place;

/// On whose behalf a call is made.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The name that the client gives itself.
    pub client: Option<String>,
    pub agent: AgentChoice,
    pub door: Door,
    /// The name of the person whose process calls.
    pub person: Option<Arc<str>>,
    pub place: Place,
    /// The caller's directory on this machine, from which its place is read anew; none if `place`
    /// is all that is known.
    pub cwd: Option<Arc<Path>>,
    /// Root of the main worktree of the repository that the place is in.
    pub main_worktree: Option<Arc<Path>>,
    /// The owner of the token that let the caller in; none for the person whose board it is.
    pub principal: Option<Arc<Principal>>,
    /// Whether the caller may be on another machine, so that its paths are not those of this one.
    pub remote: bool,
    /// The command that calls callboard for this board in the caller's shell.
    pub command: Option<Arc<str>>,
    /// Arguments of a model are read as it means them, those of a program as strictly as the
    /// schemas say.
    pub reader: Reader,
    /// Cancelled when nobody waits for the reply any more.
    pub gone: CancellationToken,
    /// Cancelled when the caller sends nothing more and may be gone: its calls are answered, but
    /// do not wait.
    pub half_closed: CancellationToken,
    /// Bounds the caller's calls together with others of the same token.
    pub rate: Option<Arc<Rate>>,
}

/// Who acts when a call names nobody.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AgentChoice {
    #[default]
    None,
    Named(AgentId),
    /// A [name](nickname) from the client, the worktree and the lowest free number.
    Auto,
}

impl Caller {
    /// Whether the process stands for an agent, so that calls need not name one.
    pub fn names_agent(&self) -> bool {
        self.agent != AgentChoice::None
    }

    pub(super) fn default_agent(&self) -> DefaultAgent {
        match &self.agent {
            AgentChoice::None => DefaultAgent::None,
            AgentChoice::Named(agent) => DefaultAgent::Named(agent.clone()),
            AgentChoice::Auto => DefaultAgent::Auto { prefix: self.prefix() },
        }
    }

    /// The door through which the call comes: whoever calls as a certain agent is no person.
    pub(super) fn door(&self) -> Door {
        let is_an_agents = match &self.agent {
            AgentChoice::Named(agent) => agent.as_str() != HUMAN,
            AgentChoice::Auto => true,
            AgentChoice::None => false,
        };
        match &self.door {
            Door::Person if is_an_agents => Door::Agent(Inside::default()),
            door => door.clone(),
        }
    }

    /// What an agent's session is called where none of its agents acts.
    pub(super) fn session(&self, door: &Door) -> Option<String> {
        matches!(door, Door::Agent(_)).then(|| self.prefix())
    }

    /// Notes which client calls.
    pub fn called_by(&mut self, name: String, title: Option<String>) {
        self.client = Some(nickname::telling(name, title)).filter(|name| !name.is_empty());
    }

    /// What a newcomer is called, before its number, that comes from afar without a name.
    pub(super) fn newcomer(&self) -> Option<String> {
        (self.remote && self.client.is_some()).then(|| self.prefix())
    }

    fn prefix(&self) -> String {
        let worktree = self.place.worktree.as_deref().map(Path::new);
        nickname::prefix(self.client.as_deref(), worktree, self.main_worktree.as_deref())
    }
}
