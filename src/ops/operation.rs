//! What an operation is: its name and place among the tools, and what it decides and answers.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::archive::{Archive, Fetched};
use super::call::Call;
use super::prepared::Prepared;
use super::reader::Reader;
use crate::state::State;
use crate::state::event::Event;
use crate::state::refusal::Refusal;

/// One thing that the board can be asked.
pub trait Operation: 'static {
    const NAME: &'static str;
    /// One or two sentences for a model: what it does and when to call it.
    const DESCRIPTION: &'static str;
    const ANNOTATIONS: Annotations;
    const TOOLSET: Toolset;
    const AGENT: AgentArgument = AgentArgument::None;

    type Params: DeserializeOwned + JsonSchema + Serialize + Send + Sync + 'static;
    type Reply: Serialize + JsonSchema + Send + 'static;

    /// Decides on the events that the call causes. Reads cause none.
    fn decide(_params: &Self::Params, _state: &State, _call: &Call) -> Decision {
        Ok(Vec::new())
    }

    /// Builds the reply from the state after the events have been applied.
    fn reply(params: &Self::Params, state: &State, call: &Call) -> Result<Self::Reply, Refusal>;

    /// What follows from the caller's having the reply, built from the same state.
    fn delivered(_params: &Self::Params, _state: &State, _call: &Call) -> Vec<Event> {
        Vec::new()
    }

    fn agent_id(_params: &Self::Params) -> Option<&str> {
        None
    }

    fn idempotency_key(_params: &Self::Params) -> Option<&str> {
        None
    }

    /// True if the call reads or writes the archive. `fetch` then runs first, outside the writer
    /// and without any lock.
    const FETCHES: bool = false;

    /// Notes in the arguments what is lost when they are cleaned, such as how lines ended.
    fn note_form(_arguments: &mut Value) {}

    /// Checks whether the caller may have `fetch` done at all; runs before it.
    fn admit(_params: &Self::Params, _state: &State, _call: &Call) -> Result<(), Refusal> {
        Ok(())
    }

    /// Does the archive work and returns what `decide` and `reply` will find in `Call::fetched`.
    fn fetch(_params: &Self::Params, _archive: &dyn Archive) -> Result<Fetched, Refusal> {
        Ok(Fetched::Nothing)
    }

    /// How many seconds the caller is willing to wait for a better reply than the present one; 0
    /// for none. While `waits` says true of the state, the call is held back for that long.
    fn wait_seconds(_params: &Self::Params) -> u64 {
        0
    }

    /// True if what the call does comes before the waiting: it is then made once more, to wait for
    /// a better reply.
    const GOES_ON: bool = false;

    /// True if the caller would rather wait than have the reply that this state gives.
    fn waits(_params: &Self::Params, _state: &State, _call: &Call) -> bool {
        false
    }

    /// True if branch and head of the caller's worktree are recorded, so that they are read anew
    /// for the call.
    const PLACED: bool = false;

    /// Files that the call says are done. Git is asked before the call whether they are committed.
    fn done_files(_params: &Self::Params) -> Vec<&str> {
        Vec::new()
    }

    /// Adds to the reply what git says of the caller's worktree. Runs after the call and without
    /// any lock, if the worktree is on this machine.
    const CHECKED_OUT: Option<AskGit> = None;

    /// The arguments that the tools of toolset `worker` show, where they do not show all. The others
    /// are understood, too.
    const OF_WORKERS: Option<&'static [&'static str]> = None;

    /// Where the rest is of a list that is too long for a model, if this operation has no pages.
    const REST: &'static str = "get_all_tasks, get_task";

    /// True if the reply may take long to make, so that it is made beside the writer, from a
    /// snapshot of the state.
    fn is_long(_params: &Self::Params, _reader: Reader) -> bool {
        false
    }

    /// The operations that a batch consists of: all are done, in order, or none. `None` for an
    /// operation that is no batch.
    fn steps(_params: &Self::Params) -> Result<Option<Steps>, Refusal> {
        Ok(None)
    }
}

/// What git says of the caller's worktree. Slow, unlike everything else that an operation may use.
pub struct Checkout<'a> {
    pub root: &'a str,
    /// What brings a commit, or else the tip of a branch, into the checkout; `None` if it is
    /// there, or there is none.
    pub merge: &'a AskMerge<'a>,
    /// Files that are changed or new and not committed; `None` if git does not say.
    pub uncommitted: &'a dyn Fn() -> Option<Vec<String>>,
}

/// How a commit comes into a checkout.
pub struct Merge {
    pub command: String,
    /// False if git has not said whether the commit is there. To merge it again does no harm; to
    /// miss it does.
    pub is_needed: bool,
}

type AskMerge<'a> = dyn Fn(Option<&str>, Option<&str>) -> Option<Merge> + 'a;
pub type AskGit = fn(&mut Value, &Checkout);
pub type Decision = Result<Vec<Event>, Rejected>;
pub type Steps = Vec<Box<dyn Prepared>>;

/// A refusal, with the events to record in spite of it.
#[derive(Debug)]
pub struct Rejected {
    pub refusal: Refusal,
    pub keep: Vec<Event>,
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, keep: Vec::new() }
    }
}

/// Hints to clients, as defined by the MCP specification. No operation reaches beyond the board, so
/// `openWorldHint` is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
}

/// Changes nothing.
pub const READ: Annotations = Annotations { read_only: true, destructive: false, idempotent: true };
/// Changes the board; the same call again changes it again.
pub const WRITE: Annotations =
    Annotations { read_only: false, destructive: false, idempotent: false };
/// Changes the board; the same call again has no further effect.
pub const REPEATABLE: Annotations =
    Annotations { read_only: false, destructive: false, idempotent: true };
/// May discard work; the same call again has no further effect.
pub const DESTRUCTIVE: Annotations =
    Annotations { read_only: false, destructive: true, idempotent: true };

/// The sets of tools that clients can be shown; each contains the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toolset {
    Worker,
    Core,
    Full,
}

/// Whether an operation takes `agent_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentArgument {
    /// The operation has no such argument.
    None,
    /// Left out: the process's default agent acts, else the board's owner.
    Optional,
    /// Left out: the process's default agent acts, else the call is refused.
    Required,
}
