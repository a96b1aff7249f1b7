//! The way in which calls reach the board.

use std::convert::Infallible;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::select;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tracing::Instrument;

use super::beside::Snapshot;
use super::caller::Caller;
use super::error::{BoardError, CallError, overloaded};
use super::feed::Feed;
use super::message::{Answer, Message, Past, Queued, send_surely};
use super::metrics::{self, Form, Metrics, Seen};
use super::options::{Options, Stay};
use super::turns::Turns;
use super::whereabouts::{self, Site};
use super::writer::Writer;
use crate::ops::{
    self, Entry, Fetched, Operation, Prepared, RestoreSnapshot, Typed, Understood, restore_snapshot,
};
use crate::state::State;
use crate::state::document::Document;
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::snapshot::SnapshotName;
use crate::state::time::Timestamp;

/// A way to call the board; clones share one replica.
#[derive(Clone)]
pub struct Handle {
    /// Turns of the long reads that are made beside the writer.
    beside: Arc<Turns>,
    pub(super) feed: Arc<Feed>,
    metrics: Arc<Metrics>,
    dir: Arc<Path>,
    last: Arc<Stop>,
}

/// Stops the writer when the last handle is dropped.
struct Stop {
    sender: SyncSender<Message>,
    /// Closed when this process's presence on the board has ended; none for a brief process, which
    /// has no presence.
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

/// How long the last handle waits for that. After a longer time somebody else clears what is left
/// behind.
const PATIENCE_AT_END: Duration = Duration::from_millis(500);

impl Handle {
    /// Performs one operation. Dropping the future withdraws the call unless it is already being
    /// done.
    pub async fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Answer {
        if caller.gone.is_cancelled() {
            return Err(CallError::Gone);
        }
        let entry = ops::find(name)
            .ok_or_else(|| CallError::UnknownOperation(name.chars().take(64).collect()))?;
        let entered = Instant::now();
        if let Some(rate) = &caller.rate {
            rate.take(entered).map_err(CallError::Refused)?;
        }
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
        let json = self
            .counted(entry, caller, entered, self.make(entry, prepared, caller, entered))
            .await?;
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
        span.in_scope(|| {
            tracing::info!(outcome, micros = u64::try_from(took.as_micros()).ok(), "answered")
        });
        answer
    }

    async fn submit(
        &self,
        entry: &'static Entry,
        arguments: Value,
        caller: &Caller,
        entered: Instant,
    ) -> Answer {
        let Understood { prepared, warning } = ops::understand(entry, arguments, caller.reader)?;
        let mut answer = self.make(entry, prepared, caller, entered).await;
        if let (Some(warning), Ok(Value::Object(reply))) = (warning, &mut answer) {
            ops::add_warning(reply, &warning);
        }
        answer
    }

    /// Makes the call where it belongs: a long read beside the writer, any other on the writer's
    /// way.
    async fn make(
        &self,
        entry: &Entry,
        prepared: Box<dyn Prepared>,
        caller: &Caller,
        entered: Instant,
    ) -> Answer {
        if prepared.is_long(caller.reader) {
            self.read_beside(prepared, caller).await
        } else {
            self.ask(entry, prepared, None, caller, entered).await
        }
    }

    /// Answers a long read from a snapshot, on a thread of its own; the writer is held up for the
    /// snapshot only.
    async fn read_beside(&self, prepared: Box<dyn Prepared>, caller: &Caller) -> Answer {
        let caller = caller.clone();
        let reader = caller.principal.as_ref().map(|principal| principal.token.clone());
        let read = move |snapshot: Snapshot| snapshot.answer(prepared.as_ref(), &caller);
        self.beside(reader, read).await?
    }

    /// Returns what `read` makes of the state at that time, for the bearer of a token or the person.
    /// It runs on a thread of its own, so it may take long.
    pub async fn survey<T, F>(&self, reader: Option<String>, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&State, &Policy, Timestamp) -> T + Send + 'static,
    {
        let read = move |snapshot: Snapshot| read(&snapshot.state, &snapshot.policy, snapshot.now);
        self.beside(reader, read).await
    }

    async fn beside<T, F>(&self, reader: Option<String>, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(Snapshot) -> T + Send + 'static,
    {
        let turn = self.beside.take(reader).await.ok_or(BoardError::Ended)?;
        let snapshot = {
            let (reply, answer) = oneshot::channel();
            self.send(Message::Snapshot(reply))?;
            answer.await.map_err(|_| BoardError::Ended)??
        };
        let (reply, made) = oneshot::channel();
        // The thread has the turn: who asks and goes makes no room for another.
        spawn_blocking(move || {
            if !reply.is_closed() {
                drop(reply.send(read(*snapshot)));
            }
            drop(turn);
        });
        made.await.map_err(|_| BoardError::Ended.into())
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
        let waits = prepared.wait_seconds() > 0;
        let mut goes_on = prepared.goes_on() && waits;
        let (reply, site) = loop {
            let site = Site::of(&self.dir, &prepared, caller, told.take()).await;
            // The board keeps nothing of a read, so there is nothing to redact.
            let shown = if prepared.annotations().read_only { site.clone() } else { site.kept() };
            let (call, answer) = Queued::new(Arc::clone(&prepared), caller.clone(), entered);
            let queued = Queued { site: shown, fetched: fetched.take(), ..call };
            self.send(Message::Call(Box::new(queued)))?;
            let answer = select! {
                biased;
                () = caller.gone.cancelled() => return Err(CallError::Gone),
                () = caller.half_closed.cancelled(), if waits => return Err(CallError::Gone),
                answer = answer => answer.map_err(|_| BoardError::Ended)?,
            };
            match (answer, site.instead.get()) {
                (Err(CallError::Gone), Some(directory)) => told = Some(directory.clone()),
                (Ok(_), _) if std::mem::take(&mut goes_on) => {}
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
        let entry = ops::find(operation)
            .ok_or_else(|| CallError::UnknownOperation(operation.to_owned()))?;
        self.submit(entry, json!({}), &Caller::default(), Instant::now()).await
    }

    /// This process's counters, and the board's health and figures, as text for Prometheus.
    pub async fn metrics(&self, form: Form) -> Result<String, CallError> {
        let [health, board, report] = ["health_check", "get_board", "get_report"];
        let seen = Seen {
            health: self.probe(health).await?,
            board: self.probe(board).await?,
            report: self.probe(report).await?,
        };
        Ok(self.metrics.text(&seen, form))
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
        let params =
            restore_snapshot::Params { seq: Some(document.board.seq), ..Default::default() };
        let Typed { prepared, reply } = ops::typed::<RestoreSnapshot>(&params)?;
        let fetched = Fetched::Earlier { document: Box::new(document), snapshot: None, before };
        let json = self.ask(entry, prepared, Some(fetched), caller, Instant::now()).await?;
        Ok((reply.take().ok_or(BoardError::Ended)?, json))
    }

    /// From now on, calls that wait for a better answer get the one there is.
    pub fn stop_waiting(&self) {
        send_surely(&self.last.sender, Message::StopWaiting);
    }

    /// Returns what `read` makes of the caught-up replica. It runs on the writer's thread, so it
    /// must be quick.
    pub async fn look<T, F>(&self, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&State) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Look(Box::new(move |state| drop(reply.send(state.map(read))))))?;
        answer.await.map_err(|_| BoardError::Ended)?
    }

    fn send(&self, message: Message) -> Result<(), BoardError> {
        self.last.sender.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => overloaded(),
            TrySendError::Disconnected(_) => BoardError::Ended,
        })
    }

    /// Up to `limit` events after `seq`.
    pub(super) async fn history(&self, seq: u64, limit: usize) -> Result<Past, CallError> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::History { seq, limit, reply })?;
        answer.await.map_err(|_| BoardError::Ended)?
    }
}

/// Ends the process if the writer's thread panics, so that a client or supervisor starts another.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("the writer panicked; what was acknowledged is in the journal");
            std::process::abort();
        }
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
    let writer = Writer::new(options, sender.clone(), receiver, shared);
    let started = thread::Builder::new().name("writer".to_owned()).spawn(move || {
        let panics = AbortOnPanic;
        writer.serve();
        drop((panics, alive));
    });
    if let Err(error) = &started {
        // The receiver is gone with the thread, so every call will say that the writer has ended.
        tracing::error!(%error, "the writer's thread could not be started");
    }
    let last =
        Arc::new(Stop { sender, leaving, writer: started.ok().map(|one| one.thread().id()) });
    let beside = Arc::new(Turns::default());
    Handle { beside, feed, metrics, dir, last }
}
