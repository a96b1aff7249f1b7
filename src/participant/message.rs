//! What is sent to the writer: calls, requests, and news of what others have done.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;

use super::beside::Snapshot;
use super::caller::Caller;
use super::edits::Examined;
use super::error::CallError;
use super::feed::Item;
use super::whereabouts::Site;
use crate::ops::{Fetched, Prepared};
use crate::state::State;
use crate::state::limit;

pub(crate) enum Message {
    Call(Box<Queued>),
    /// Up to `limit` events after `seq`.
    History {
        seq: u64,
        limit: usize,
        reply: oneshot::Sender<Result<Past, CallError>>,
    },
    /// Shows the caught-up replica to a closure.
    Look(Look),
    /// Copies the caught-up replica, for a read that is made beside the writer.
    Snapshot(oneshot::Sender<Result<Box<Snapshot>, CallError>>),
    /// The locker's answer to a request for the journal's lock; ignored unless `generation` is that
    /// of the present lock file.
    Locked {
        acquired: io::Result<()>,
        generation: u64,
    },
    /// Something in the directory has changed.
    Changed,
    /// A hand edit has been read.
    Examined(Examined),
    /// The syncer has an outcome to report.
    Settled,
    /// Parked calls are answered now with what there is, and no call is parked any more.
    StopWaiting,
    Stop,
}

/// A closure that takes what it wants from the replica, or is told why there is none.
pub(super) type Look = Box<dyn FnOnce(Result<&State, CallError>) + Send>;

pub type Answer = Result<Value, CallError>;

pub(super) type Answers = Vec<(oneshot::Sender<Answer>, Answer)>;

/// A call on its way to the writer and back.
pub struct Queued {
    pub(super) prepared: Arc<dyn Prepared>,
    pub(super) caller: Caller,
    /// Where the caller works now.
    pub(super) site: Site,
    /// Nobody waits for the reply any more once this is closed.
    pub(super) reply: oneshot::Sender<Answer>,
    pub(super) entered: Instant,
    /// The archive's answer, once it was asked.
    pub fetched: Option<Box<Fetched>>,
}

impl Queued {
    /// A call that `caller` makes from nowhere in particular, and where its answer comes.
    pub fn new(
        prepared: Arc<dyn Prepared>,
        caller: Caller,
        entered: Instant,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        let site = Site::default();
        (Self { prepared, caller, site, reply, entered, fetched: None }, answer)
    }

    #[cfg(test)]
    pub(super) fn of(operation: &str, arguments: Value) -> (Self, oneshot::Receiver<Answer>) {
        let prepared = crate::ops::find(operation).unwrap().prepare(arguments).unwrap().into();
        Self::new(prepared, Caller::default(), Instant::now())
    }

    /// Whether the archive must be asked first.
    pub(super) fn fetches(&self) -> bool {
        self.prepared.fetches() && self.fetched.is_none()
    }

    /// Whether it may record something, for which the lock is needed.
    pub(super) fn is_for_batch(&self) -> bool {
        !self.fetches() && !self.prepared.annotations().read_only
    }
}

/// Past events, and where the journal ends.
pub(crate) struct Past {
    pub items: Vec<Arc<Item>>,
    pub head: u64,
}

/// How long the call is willing to wait for a better answer.
pub(super) fn waited(call: &Queued) -> Duration {
    Duration::from_secs(call.prepared.wait_seconds().min(limit::WAIT.max as u64))
}

/// Sends a message that nobody will send again: a full queue must neither lose it nor hold the
/// sender up.
pub(super) fn send_surely(sender: &SyncSender<Message>, message: Message) {
    if let Err(TrySendError::Full(message)) = sender.try_send(message) {
        let sender = sender.clone();
        // If there is no thread for it, the message is lost, and the calls in the queue end by
        // themselves.
        drop(
            thread::Builder::new()
                .name("sender".to_owned())
                .spawn(move || drop(sender.send(message))),
        );
    }
}

/// Sends `answer`; the caller may have gone.
pub(super) fn answer_one(reply: oneshot::Sender<Answer>, answer: Answer) {
    drop(reply.send(answer));
}
