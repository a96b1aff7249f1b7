//! A participant: one process's replica of the board, and the one way in which calls reach it.
//!
//! [`spawn`] starts the writer's thread. Every call goes to it through a [`Handle`], or is done on the caller's own
//! thread if it is the only one, and returns when what it did is durable and shown in the state file.

pub mod archive;
mod beside;
mod board;
pub mod directory;
mod edits;
mod feed;
mod hints;
pub mod living;
mod locker;
mod metrics;
mod naming;
pub mod nickname;
pub mod recovery;
mod runs;
mod solo;
mod syncer;
mod upkeep;
mod vanished;
mod waiting;
pub mod whereabouts;
mod writer;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::select;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use board::{BoardError, LOCK_PATIENCE, acquire, is_begun};
pub use feed::{Item, Listener};
pub use metrics::Form;
pub use naming::{agree, home};

use crate::clock::Clock;
use crate::ops::{
    self, DefaultAgent, Entry, EventFilter, Fetched, Operation, Prepared, Principal, Reader, RestoreSnapshot, Typed,
    Understood, restore_snapshot,
};
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
use whereabouts::Site;
use writer::{Message, Writer};

pub struct Options {
    pub dir: PathBuf,
    /// Name of the state file that the process was started with; none to use the board's.
    pub state_file: Option<String>,
    pub stay: Stay,
    /// Why nothing may be written to the board; none if it may.
    pub unwritable: Option<String>,
    /// Why no board may be made or opened in `dir`; none if one may.
    pub forbidden: Option<String>,
    /// Why only a call that asks for a board makes one in `dir`; none if any writing call does.
    pub unasked: Option<String>,
    pub clock: Box<dyn Clock>,
    /// Seed of ids; equal seeds give equal ids.
    pub seed: u64,
    pub worktree: Option<String>,
}

/// How long the process lives, and what that says about the agents that act through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Ends after a call or a few.
    Brief,
    /// Serves callers who may be anywhere, so its life says nothing about theirs.
    Lasting,
    /// Agents that act through the process are present while it lives.
    Presence,
}

/// A way to call the board; clones share one replica.
#[derive(Clone)]
pub struct Handle {
    solo: Arc<Solo>,
    /// Turns of the long reads that are made beside the writer.
    beside: Arc<Semaphore>,
    feed: Arc<Feed>,
    metrics: Arc<Metrics>,
    dir: Arc<Path>,
    last: Arc<Stop>,
}

/// Past events, and where the journal ends.
pub(crate) struct Past {
    pub items: Vec<Arc<Item>>,
    pub head: u64,
}

/// Stops the writer when the last handle is dropped.
struct Stop {
    sender: SyncSender<Message>,
    /// Closed when this process's presence on the board has ended; none for a brief process, which has no presence.
    leaving: Option<Mutex<Receiver<Infallible>>>,
    writer: Option<ThreadId>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        send_surely(&self.sender, Message::Stop);
        // Otherwise the process might end before its presence file is removed.
        if let Some(leaving) = self.leaving.as_mut().and_then(|leaving| leaving.get_mut().ok())
            && self.writer != Some(thread::current().id())
        {
            let _ = leaving.recv_timeout(PATIENCE_AT_END);
        }
    }
}

/// How long the last handle waits for that. After a longer time somebody else clears what is left behind.
const PATIENCE_AT_END: Duration = Duration::from_millis(500);

/// On whose behalf a call is made.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The name that the client gives itself.
    pub client: Option<String>,
    pub agent: AgentChoice,
    pub place: Place,
    /// The caller's directory on this machine, from which its place is read anew; none if `place` is all that is known.
    pub cwd: Option<Arc<Path>>,
    /// Root of the main worktree of the repository that the place is in.
    pub main_worktree: Option<Arc<Path>>,
    /// The owner of the token that let the caller in; none for the person whose board it is.
    pub principal: Option<Arc<Principal>>,
    /// Whether the caller may be on another machine, so that its paths are not those of this one.
    pub remote: bool,
    /// The command that calls callboard for this board in the caller's shell.
    pub command: Option<Arc<str>>,
    /// Arguments of a model are read as it means them, those of a program as strictly as the schemas say.
    pub reader: Reader,
    /// Cancelled when nobody waits for the reply any more.
    pub gone: CancellationToken,
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

    fn default_agent(&self) -> DefaultAgent {
        match &self.agent {
            AgentChoice::None => DefaultAgent::None,
            AgentChoice::Named(agent) => DefaultAgent::Named(agent.clone()),
            AgentChoice::Auto => DefaultAgent::Auto { prefix: self.prefix() },
        }
    }

    fn prefix(&self) -> String {
        let worktree = self.place.worktree.as_deref().map(Path::new);
        nickname::prefix(self.client.as_deref(), worktree, self.main_worktree.as_deref())
    }
}

/// Why a call has no reply.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("there is no operation `{0}`")]
    UnknownOperation(String),
    /// The caller can put it right.
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

    /// The name of what is wrong, for programs; those of refusals stand in their variants.
    pub fn code(&self) -> String {
        match self {
            Self::UnknownOperation(_) => "unknown_operation".to_owned(),
            Self::Refused(refusal) => refusal.code(),
            Self::Gone => "gone".to_owned(),
            Self::Failed(error) => error.code().to_owned(),
        }
    }

    /// The error for programs: `code`, `message`, and what the message names.
    pub fn data(&self) -> Value {
        let mut data = match self {
            Self::UnknownOperation(name) => json!({"code": self.code(), "operation": name}),
            Self::Refused(refusal) => serde_json::to_value(refusal).unwrap_or_default(),
            Self::Gone | Self::Failed(_) => json!({"code": self.code()}),
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

/// Sends a message that nobody will send again: a full queue must neither lose it nor hold the sender up.
fn send_surely(sender: &SyncSender<Message>, message: Message) {
    if let Err(TrySendError::Full(message)) = sender.try_send(message) {
        let sender = sender.clone();
        // If there is no thread for it, the message is lost, and the calls in the queue end by themselves.
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
    let dir = Arc::from(options.dir.as_path());
    let shared = (Arc::clone(&feed), Arc::clone(&metrics));
    let writer = Writer::new(options, sender.clone(), shared);
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
    let beside = Arc::new(Semaphore::new(limit::READING.max));
    Handle { solo, beside, feed, metrics, dir, last }
}

/// Redacts `place` for the board to keep: the names that git and clients give have passed no other check.
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
    prepared: Arc<dyn Prepared>,
    caller: Caller,
    /// Where the caller works now.
    site: Site,
    /// Nobody waits for the reply any more once this is closed.
    reply: oneshot::Sender<Answer>,
    entered: Instant,
    /// The archive's answer, once it was asked.
    fetched: Option<Box<Fetched>>,
}

impl Queued {
    #[cfg(test)]
    fn new(operation: &str, arguments: Value) -> (Self, oneshot::Receiver<Answer>) {
        let prepared = ops::find(operation).unwrap().prepare(arguments).unwrap().into();
        let (reply, answer) = oneshot::channel();
        let (caller, site) = (Caller::default(), Site::default());
        let entered = Instant::now();
        (Self { prepared, caller, site, reply, entered, fetched: None }, answer)
    }

    /// Whether the archive must be asked first.
    fn fetches(&self) -> bool {
        self.prepared.fetches() && self.fetched.is_none()
    }

    /// Whether it may record something, for which the lock is needed.
    fn is_for_batch(&self) -> bool {
        !self.fetches() && !self.prepared.annotations().read_only
    }
}

impl Handle {
    /// Performs one operation. Dropping the future withdraws the call unless it is already being done.
    pub async fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Answer {
        if caller.gone.is_cancelled() {
            return Err(CallError::Gone);
        }
        let entry = ops::find(name).ok_or_else(|| CallError::UnknownOperation(name.chars().take(64).collect()))?;
        let entered = Instant::now();
        self.counted(entry, caller, entered, self.submit(entry, arguments, caller, entered)).await
    }

    /// Performs the operation `O`. Returns its reply as it is, and as clients get it in JSON.
    pub async fn call_typed<O: Operation>(
        &self,
        params: &O::Params,
        caller: &Caller,
    ) -> Result<(O::Reply, Value), CallError> {
        let entry = const { &Entry::of::<O>() };
        let entered = Instant::now();
        let Typed { prepared, reply } = ops::typed::<O>(params)?;
        let json = self.counted(entry, caller, entered, self.make(entry, prepared, caller, entered)).await?;
        Ok((reply.take().ok_or(BoardError::Ended)?, json))
    }

    /// Makes a call that a client has asked for: it is counted and logged.
    async fn counted(
        &self,
        entry: &Entry,
        caller: &Caller,
        entered: Instant,
        call: impl Future<Output = Answer>,
    ) -> Answer {
        let span = tracing::info_span!("call", operation = entry.name, client = caller.client);
        let answer = call.instrument(span.clone()).await;
        let took = entered.elapsed();
        self.metrics.called(entry.name, &answer, took);
        let outcome = metrics::outcome(&answer);
        span.in_scope(|| tracing::info!(outcome, micros = u64::try_from(took.as_micros()).ok(), "answered"));
        answer
    }

    async fn submit(&self, entry: &'static Entry, arguments: Value, caller: &Caller, entered: Instant) -> Answer {
        if !caller.reader.is_model() {
            return self.make(entry, entry.prepare(arguments)?, caller, entered).await;
        }
        let Understood { prepared, warning } = ops::understand(entry, arguments)?;
        let mut answer = self.make(entry, prepared, caller, entered).await;
        if let (Some(warning), Ok(Value::Object(reply))) = (warning, &mut answer) {
            writer::add_warning(reply, &warning);
        }
        answer
    }

    /// Makes the call where it belongs: a long read beside the writer, any other on the writer's way.
    async fn make(&self, entry: &Entry, prepared: Box<dyn Prepared>, caller: &Caller, entered: Instant) -> Answer {
        match prepared.is_long(caller.reader) {
            true => self.read_beside(prepared, caller).await,
            false => self.ask(entry, prepared, None, caller, entered).await,
        }
    }

    /// Answers a long read from a snapshot, on a thread of its own; the writer is held up for the snapshot only.
    async fn read_beside(&self, prepared: Box<dyn Prepared>, caller: &Caller) -> Answer {
        let turn = self.beside.acquire().await.map_err(|_| BoardError::Ended)?;
        let snapshot = {
            let (reply, answer) = oneshot::channel();
            let _under_way = self.solo.enter();
            self.solo.send(Message::Snapshot(reply))?;
            answer.await.map_err(|_| BoardError::Ended)??
        };
        let caller = caller.clone();
        let answer = spawn_blocking(move || snapshot.answer(prepared.as_ref(), &caller)).await;
        drop(turn);
        answer.map_err(|_| BoardError::Ended)?
    }

    async fn ask(
        &self,
        entry: &Entry,
        prepared: Box<dyn Prepared>,
        fetched: Option<Fetched>,
        caller: &Caller,
        entered: Instant,
    ) -> Answer {
        let prepared: Arc<dyn Prepared> = prepared.into();
        let mut fetched = fetched.map(Box::new);
        let mut told = None;
        let (reply, site) = loop {
            let site = Site::of(&self.dir, &prepared, caller, told).await;
            let (reply, answer) = oneshot::channel();
            // The board keeps nothing of a read, so there is nothing to redact.
            let shown = if prepared.annotations().read_only { site.clone() } else { site.kept() };
            let (prepared, fetched) = (Arc::clone(&prepared), fetched.take());
            let queued = Queued { prepared, caller: caller.clone(), site: shown, reply, entered, fetched };
            let _under_way = self.solo.enter();
            self.solo.submit(queued, &caller.gone).await?;
            let answer = select! {
                biased;
                () = caller.gone.cancelled() => return Err(CallError::Gone),
                answer = answer => answer.map_err(|_| BoardError::Ended)?,
            };
            match (answer, site.instead.get()) {
                (Err(CallError::Gone), Some(directory)) => told = Some(directory.clone()),
                (answer, _) => break (answer?, site),
            }
        };
        match (entry.checked_out, site.root(caller)) {
            (Some(ask), Some(root)) => Ok(whereabouts::checked_out(reply, root, ask).await),
            _ => Ok(reply),
        }
    }

    /// Makes a call that no client has asked for: it is neither counted nor logged.
    pub async fn probe(&self, operation: &str) -> Answer {
        let entry = ops::find(operation).ok_or_else(|| CallError::UnknownOperation(operation.to_owned()))?;
        self.submit(entry, json!({}), &Caller::default(), Instant::now()).await
    }

    /// This process's counters and the board's health, as text for Prometheus.
    pub async fn metrics(&self, form: Form) -> Result<String, CallError> {
        Ok(self.metrics.text(&self.probe("health_check").await?, form))
    }

    /// Counts the status of an HTTP response.
    pub fn answered(&self, status: u16) {
        self.metrics.answered(status);
    }

    /// Replaces the present state, of which `before` is the snapshot, by one from elsewhere.
    pub async fn restore(
        &self,
        document: Document,
        before: SnapshotName,
        caller: &Caller,
    ) -> Result<(restore_snapshot::Reply, Value), CallError> {
        let entry = const { &Entry::of::<RestoreSnapshot>() };
        let params = restore_snapshot::Params { seq: Some(document.board.seq), ..Default::default() };
        let Typed { prepared, reply } = ops::typed::<RestoreSnapshot>(&params)?;
        let fetched = Fetched::Earlier { document: Box::new(document), snapshot: None, before };
        let json = self.ask(entry, prepared, Some(fetched), caller, Instant::now()).await?;
        Ok((reply.take().ok_or(BoardError::Ended)?, json))
    }

    /// Listens for events after `since`, or from now on, for as long as the listener is asked.
    pub async fn listen(&self, since: Option<u64>, filter: EventFilter) -> Result<Listener, CallError> {
        Listener::new(self.clone(), since, filter).await
    }

    /// From now on, calls that wait for a better answer get the one there is.
    pub fn stop_waiting(&self) {
        send_surely(&self.last.sender, Message::StopWaiting);
    }

    /// Returns what `read` makes of the caught-up replica. It runs on the writer's thread, so it must be quick.
    pub async fn look<T, F>(&self, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&State) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // While this is under way, no call that comes later overtakes it.
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
