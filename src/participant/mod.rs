//! A participant: one process's replica of the board, and the one way in which calls reach it.
//!
//! [`spawn`] starts the writer's thread; every call goes to it through a [`Handle`], or takes its place if it is the only one,
//! and comes back when what it did is durable and shown in the state file.

pub mod archive;
mod board;
pub mod directory;
mod edits;
mod feed;
mod hints;
mod locker;
mod metrics;
pub mod recovery;
mod runs;
mod solo;
mod syncer;
mod upkeep;
mod vanished;
mod waiting;
mod writer;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::select;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use board::{BoardError, LOCK_PATIENCE, acquire, is_begun};
pub use feed::{Item, Listener};

use crate::clock::Clock;
use crate::ops::{self, DefaultAgent, Entry, EventFilter, Fetched, Prepared, Principal};
use crate::redact;
use crate::state::State;
use crate::state::document::Document;
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::snapshot::SnapshotName;
use crate::state::task::Place;
use feed::Feed;
use metrics::Metrics;
use solo::Solo;
use writer::{Message, Writer};

pub struct Options {
    pub dir: PathBuf,
    pub stay: Stay,
    /// Why nothing must be written there, if nothing must.
    pub unwritable: Option<String>,
    /// Why the board must not be made here, if it must not.
    pub forbidden: Option<String>,
    pub clock: Box<dyn Clock>,
    /// Seed of ids; equal seeds give equal ids.
    pub seed: u64,
    pub worktree: Option<String>,
}

/// How long the process is there, and what that says of the agents that act through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// For a call or a few.
    Brief,
    /// For callers who may be anywhere: its life says nothing of theirs.
    Lasting,
    /// Agents that act through it are present while it lives.
    Presence,
}

/// A way to call the board; clones share one replica.
#[derive(Clone)]
pub struct Handle {
    solo: Arc<Solo>,
    feed: Arc<Feed>,
    metrics: Arc<Metrics>,
    last: Arc<Stop>,
}

/// Past events, and where the journal ends.
pub(crate) struct Past {
    pub items: Vec<Arc<Item>>,
    pub head: u64,
}

/// Dropped with the last handle.
struct Stop {
    sender: SyncSender<Message>,
    /// Closed when the process lives on the board no more; none if nobody could see that it does.
    leaving: Option<Mutex<Receiver<Infallible>>>,
    writer: Option<ThreadId>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        send_surely(&self.sender, Message::Stop);
        // Else the process might end before its file is removed.
        if let Some(leaving) = self.leaving.as_mut().and_then(|leaving| leaving.get_mut().ok())
            && self.writer != Some(thread::current().id())
        {
            let _ = leaving.recv_timeout(PATIENCE_AT_END);
        }
    }
}

/// Somebody else clears what is left behind after a longer time.
const PATIENCE_AT_END: Duration = Duration::from_millis(500);

/// On whose behalf a call is made.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// What the client calls itself.
    pub client: Option<String>,
    pub agent: AgentChoice,
    pub place: Place,
    /// Whose token let the caller in; none is the person whose board it is.
    pub principal: Option<Arc<Principal>>,
    /// It may be on another machine: its paths are not those of this one.
    pub remote: bool,
    /// How callboard is called for this board in a shell of the caller's.
    pub command: Option<Arc<str>>,
    /// Cancelled when nobody waits for the reply any more.
    pub gone: CancellationToken,
}

/// Who acts when a call names nobody.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AgentChoice {
    #[default]
    None,
    Named(AgentId),
    /// A name from the client, the worktree and the lowest free number.
    Auto,
}

impl Caller {
    /// The process stands for an agent, so that calls need not name one.
    pub fn names_agent(&self) -> bool {
        self.agent != AgentChoice::None
    }

    fn default_agent(&self) -> DefaultAgent {
        match &self.agent {
            AgentChoice::None => DefaultAgent::None,
            AgentChoice::Named(agent) => DefaultAgent::Named(agent.clone()),
            AgentChoice::Auto => DefaultAgent::Auto { prefix: self.prefix() },
        }
    }

    fn prefix(&self) -> String {
        const LONGEST: usize = 24;
        let worktree = self.place.worktree.as_deref().and_then(|path| path.rsplit('/').next());
        let parts = [self.client.as_deref().unwrap_or("agent"), worktree.unwrap_or_default()];
        let slugs = parts.iter().map(|part| {
            let slug: String = part
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .take(LONGEST)
                .collect();
            slug.trim_matches('-').to_owned()
        });
        let named: Vec<_> = slugs.filter(|slug| !slug.is_empty()).collect();
        if named.is_empty() { "agent".to_owned() } else { named.join("-") }
    }
}

/// Why a call has no reply.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("there is no operation `{0}`")]
    UnknownOperation(String),
    /// The caller can mend it.
    #[error("{0}")]
    Refused(Refusal),
    #[error("the caller has gone")]
    Gone,
    /// The board cannot be used as it is.
    #[error("{0}")]
    Failed(Arc<BoardError>),
}

impl CallError {
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The same for programs: `code`, `message`, and what the message names.
    pub fn data(&self) -> Value {
        let mut data = match self {
            Self::UnknownOperation(name) => json!({"code": "unknown_operation", "operation": name}),
            Self::Refused(refusal) => serde_json::to_value(refusal).unwrap_or_default(),
            Self::Gone => json!({"code": "gone"}),
            Self::Failed(error) => json!({"code": error.code()}),
        };
        data["message"] = Value::from(self.message());
        data
    }
}

impl From<BoardError> for CallError {
    fn from(error: BoardError) -> Self {
        Self::Failed(Arc::new(error))
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What nobody sends again must not be lost to a full queue, nor hold the sender up.
fn send_surely(sender: &SyncSender<Message>, message: Message) {
    if let Err(TrySendError::Full(message)) = sender.try_send(message) {
        let sender = sender.clone();
        // Without a thread for it, the calls in the queue end by themselves.
        drop(thread::Builder::new().name("sender".to_owned()).spawn(move || drop(sender.send(message))));
    }
}

/// Starts the thread that keeps this process's replica. It ends when the last handle is gone.
pub fn spawn(options: Options) -> Handle {
    let (sender, receiver) = sync_channel(limit::QUEUED.max);
    let feed = Arc::new(Feed::new());
    let metrics = Arc::new(Metrics::new());
    let (alive, leaving) = sync_channel(0);
    let leaving = (options.stay != Stay::Brief).then(|| Mutex::new(leaving));
    let writer = Writer::new(options, sender.clone(), Arc::clone(&feed), Arc::clone(&metrics));
    let solo = Arc::new(Solo::new(writer, sender.clone()));
    let served = Arc::clone(&solo);
    let started = thread::Builder::new().name("writer".to_owned()).spawn(move || {
        served.serve(receiver);
        drop(alive);
    });
    if let Err(error) = &started {
        // The receiver is gone with the thread, so every call will say that the writer has ended.
        tracing::error!(%error, "the writer's thread could not be started");
    }
    let last = Arc::new(Stop { sender, leaving, writer: started.ok().map(|one| one.thread().id()) });
    Handle { solo, feed, metrics, last }
}

/// `place` as the board keeps it: what git and clients call things has passed no other door.
fn kept(place: &Place) -> Place {
    let mut place = place.clone();
    for name in [&mut place.worktree, &mut place.branch, &mut place.head].into_iter().flatten() {
        if let Some(clean) = redact::name(name) {
            *name = clean;
        }
    }
    place
}

type Answer = Result<Value, CallError>;

/// A call on its way to the writer and back.
pub(crate) struct Queued {
    prepared: Box<dyn Prepared>,
    default_agent: DefaultAgent,
    place: Place,
    principal: Option<Arc<Principal>>,
    remote: bool,
    command: Option<Arc<str>>,
    /// Nobody waits for the reply any more once this is closed.
    reply: oneshot::Sender<Answer>,
    entered: Instant,
    /// What the archive has answered, once it was asked.
    fetched: Option<Box<Fetched>>,
}

impl Queued {
    #[cfg(test)]
    fn new(operation: &str, arguments: Value) -> (Self, oneshot::Receiver<Answer>) {
        let prepared = ops::find(operation).unwrap().prepare(arguments).unwrap();
        let (reply, answer) = oneshot::channel();
        let (default_agent, place, entered) = (DefaultAgent::None, Place::default(), Instant::now());
        let (principal, remote, command, fetched) = (None, false, None, None);
        (Self { prepared, default_agent, place, principal, remote, command, reply, entered, fetched }, answer)
    }

    /// The archive is to be asked first.
    fn fetches(&self) -> bool {
        self.prepared.fetches() && self.fetched.is_none()
    }

    /// It may record something, for which the lock is needed.
    fn is_for_batch(&self) -> bool {
        !self.fetches() && !self.prepared.annotations().read_only
    }
}

impl Handle {
    /// Does one operation. Dropping the future takes the call back unless it is being done already.
    pub async fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Answer {
        if caller.gone.is_cancelled() {
            return Err(CallError::Gone);
        }
        let entry = ops::find(name).ok_or_else(|| CallError::UnknownOperation(name.chars().take(64).collect()))?;
        let entered = Instant::now();
        let span = tracing::info_span!("call", operation = entry.name, client = caller.client);
        let answer = self.submit(entry, arguments, caller, entered).instrument(span.clone()).await;
        let took = entered.elapsed();
        self.metrics.called(entry.name, &answer, took);
        let outcome = metrics::outcome(&answer);
        span.in_scope(|| tracing::info!(outcome, micros = u64::try_from(took.as_micros()).ok(), "answered"));
        answer
    }

    async fn submit(&self, entry: &Entry, arguments: Value, caller: &Caller, entered: Instant) -> Answer {
        let prepared = entry.prepare(arguments)?;
        self.ask(prepared, None, caller, entered).await
    }

    async fn ask(
        &self,
        prepared: Box<dyn Prepared>,
        fetched: Option<Fetched>,
        caller: &Caller,
        entered: Instant,
    ) -> Answer {
        let (reply, answer) = oneshot::channel();
        let default_agent = caller.default_agent();
        // Nothing of a read is kept.
        let place = if prepared.annotations().read_only { caller.place.clone() } else { kept(&caller.place) };
        let (principal, fetched) = (caller.principal.clone(), fetched.map(Box::new));
        let (remote, command) = (caller.remote, caller.command.clone());
        let queued = Queued { prepared, default_agent, place, principal, remote, command, reply, entered, fetched };
        let _under_way = self.solo.enter();
        self.solo.submit(queued, &caller.gone).await?;
        select! {
            biased;
            () = caller.gone.cancelled() => Err(CallError::Gone),
            answer = answer => answer.map_err(|_| BoardError::Ended)?,
        }
    }

    /// What this process has done, in numbers, and how the board is doing: text for Prometheus.
    pub async fn metrics(&self) -> Result<String, CallError> {
        let health = self.call("health_check", json!({}), &Caller::default()).await?;
        Ok(self.metrics.text(&health))
    }

    /// Puts a state from elsewhere in the place of the present one, of which `before` is the snapshot.
    pub async fn restore(&self, document: Document, before: SnapshotName, caller: &Caller) -> Answer {
        let entry = ops::find("restore_snapshot").ok_or_else(|| CallError::UnknownOperation(String::new()))?;
        let prepared = entry.prepare(json!({"seq": document.board.seq}))?;
        let fetched = Fetched::Earlier { document: Box::new(document), snapshot: None, before };
        self.ask(prepared, Some(fetched), caller, Instant::now()).await
    }

    /// What happened after `since`, or from now on, for as long as the listener is asked.
    pub async fn listen(&self, since: Option<u64>, filter: EventFilter) -> Result<Listener, CallError> {
        Listener::new(self.clone(), since, filter).await
    }

    /// Calls that wait for a better answer get the one there is, now and from here on.
    pub fn stop_waiting(&self) {
        send_surely(&self.last.sender, Message::StopWaiting);
    }

    /// What `read` makes of the replica, caught up. It runs on the writer's thread, so it must be quick.
    pub async fn look<T, F>(&self, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&State) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // A call that comes behind it does not overtake it.
        let _under_way = self.solo.enter();
        self.solo.send(Message::Look(Box::new(move |state| drop(reply.send(state.map(read))))))?;
        answer.await.map_err(|_| BoardError::Ended)?
    }

    /// Up to `limit` events after `seq`.
    async fn history(&self, seq: u64, limit: usize) -> Result<Past, CallError> {
        let (reply, answer) = oneshot::channel();
        let _under_way = self.solo.enter();
        self.solo.send(Message::History { seq, limit, reply })?;
        answer.await.map_err(|_| BoardError::Ended)?
    }
}
