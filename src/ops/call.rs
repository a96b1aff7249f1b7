//! What an operation may know besides its parameters and the state.

use std::ops::ControlFlow;

use super::archive::Fetched;
use super::health_check::Vitals;
use super::identity::Door;
use super::principal::Principal;
use super::reader::Reader;
use crate::state::agent::Participant;
use crate::state::document::Undone;
use crate::state::event::Recorded;
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::state::task::Place;
use crate::state::time::Timestamp;
use crate::state::{Created, State};

/// What an operation may know besides its parameters and the state.
pub struct Call<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    /// Seed for random choices; chance is an argument, like time.
    pub seed: u64,
    pub participant: &'a ParticipantId,
    /// The living process that the agent acts through; `None` for one-shot commands and HTTP.
    pub presence: Option<&'a Participant>,
    pub place: &'a Place,
    /// Of the files that the call says are done, those that are not committed; none if it names
    /// none, or git has not said.
    pub uncommitted: Option<&'a [String]>,
    pub history: &'a dyn History,
    pub vitals: &'a Vitals<'a>,
    /// What `fetch` returned for this call.
    pub fetched: &'a Fetched,
    /// The agent that acts when `agent_id` is left out.
    pub default_agent: &'a DefaultAgent,
    /// The default agent that the process was started with, even if `Auto` has resolved to a name
    /// since.
    pub started_as: &'a DefaultAgent,
    /// What an agent that registers without an id is called, before its number; `None` where
    /// nothing tells its client.
    pub nickname: Option<&'a str>,
    pub door: &'a Door,
    /// What an agent's session is called where none of its agents acts.
    pub session: Option<&'a str>,
    /// The bearer of the token that let the caller in; `None` if the caller is the board's owner.
    pub principal: Option<&'a Principal>,
    /// The name of the person whose process calls, as far as it is known.
    pub person: Option<&'a str>,
    /// True if the caller may be on another machine.
    pub remote: bool,
    /// The command line that runs callboard for this board in the caller's shell; `None` where the
    /// caller may have no such shell.
    pub command: Option<&'a str>,
    pub reader: Reader,
    /// The acting agent; `None` if it is the board's owner or the bearer of a token.
    pub actor: Option<AgentId>,
    /// What the call has created, now or when its idempotency key was first used.
    pub created: Vec<Created>,
    /// True if the idempotency key was used before: the call was already done.
    pub repeated: bool,
    /// When the acting agent was last heard of before this call; `None` if it was not on the
    /// board.
    pub heard: Option<Timestamp>,
    /// True if the acting agent has acted through this process before.
    pub is_known_here: bool,
    /// True if this call has already recorded a renewal of the agent's leases.
    pub renewed: bool,
    /// Number of events that the operation itself has caused, not counting `AgentSeen` and
    /// `RunnerSeen`.
    pub events: usize,
}

impl<'a> Call<'a> {
    /// A call by the board's owner. All other fields have their defaults.
    pub fn new(
        now: Timestamp,
        seed: u64,
        policy: &'a Policy,
        participant: &'a ParticipantId,
        history: &'a dyn History,
        vitals: &'a Vitals<'a>,
    ) -> Self {
        static NOWHERE: Place = Place { worktree: None, branch: None, head: None };
        Self {
            now,
            policy,
            seed,
            participant,
            presence: None,
            place: &NOWHERE,
            uncommitted: None,
            history,
            vitals,
            fetched: &Fetched::Nothing,
            default_agent: &DefaultAgent::None,
            started_as: &DefaultAgent::None,
            nickname: None,
            door: &Door::Person,
            session: None,
            principal: None,
            person: None,
            remote: false,
            command: None,
            reader: Reader::Program,
            actor: None,
            created: Vec::new(),
            repeated: false,
            heard: None,
            is_known_here: false,
            renewed: false,
            events: 0,
        }
    }
}

impl Call<'_> {
    /// The acting agent, for operations that need one.
    pub fn agent(&self) -> Result<&AgentId, Refusal> {
        self.actor.as_ref().ok_or(Refusal::AgentMissing)
    }

    /// Who decides: an agent, or nobody for the person, who leads. A session without an agent decides
    /// nothing.
    pub fn decider(&self) -> Result<Option<&AgentId>, Refusal> {
        match (&self.actor, self.door) {
            (None, Door::Agent(inside)) if self.principal.is_none() => {
                Err(Refusal::NotThePerson { agent: None, mark: inside.mark.clone() })
            }
            (actor, _) => Ok(actor.as_ref()),
        }
    }

    /// Checks that whoever calls leads.
    pub fn leads(&self, state: &State, action: &'static str) -> Result<(), Refusal> {
        state.leads(self.decider()?, action)
    }

    /// The `seq` of the event that retired a task, if its stub has left the state.
    pub fn retired_at(&self, id: &TaskId, state: &State) -> Result<Option<u64>, Refusal> {
        let board = state.board();
        if board.dropped_stubs == 0 {
            return Ok(None);
        }
        let found = self.history.retired_at(id, &board.undone);
        found.map_err(|detail| Refusal::HistoryUnread { detail })
    }

    /// Makes a path in the caller's worktree relative to its root, so that one file in five
    /// worktrees has one path.
    pub fn relative(&self, path: &str) -> String {
        self.place.relative(path).to_owned()
    }
}

/// The agent that acts when `agent_id` is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DefaultAgent {
    /// No agent: operations of agents require `agent_id`.
    #[default]
    None,
    Named(AgentId),
    /// The lowest free `<prefix>-N`.
    Auto {
        prefix: String,
    },
    /// Agents that act through a process of `auto`, in the order in which they came: a call has to
    /// name one.
    Several(Vec<AgentId>),
}

/// The journal's events, for the few operations that read them.
pub trait History {
    /// Hands up to `limit` events after `seq` to `take`, one at a time, until `take` breaks.
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String>;

    /// Returns the events at once, for ranges known to be small.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>, String> {
        let mut events = Vec::new();
        self.each_after(seq, limit, &mut |recorded| {
            events.push(recorded);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// The `seq` of the event that retired a task whose stub has left the state. `undone` are the
    /// ranges of events that restores have undone.
    fn retired_at(&self, id: &TaskId, undone: &[Undone]) -> Result<Option<u64>, String>;

    /// The newest `limit` files that keep rejected hand edits.
    fn rejected_edits(&self, _limit: usize) -> Vec<String> {
        Vec::new()
    }
}

/// The empty history of a board that does not exist yet.
pub struct NoHistory;

impl History for NoHistory {
    fn each_after(
        &self,
        _: u64,
        _: usize,
        _: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        Ok(())
    }

    fn retired_at(&self, _: &TaskId, _: &[Undone]) -> Result<Option<u64>, String> {
        Ok(None)
    }
}
