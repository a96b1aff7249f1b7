//! Decides on which thread a call is done: the writer's own, or that of a caller who is alone.
//!
//! Waking another thread and being woken by it takes longer than everything that a call does in
//! memory, so a lone caller's call is done on the thread that it comes from. With several callers,
//! the writer's thread takes their calls together, which then wait for the disk once. It also takes
//! over after a slow turn, because whatever else the caller's thread does stands still meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::error::{BoardError, CallError, overloaded};
use super::message::{Message, Queued, answer_one};
use super::writer::Writer;

/// Calls in a row, none of them beside another, after which their caller is taken to be alone.
const LONELY: u32 = 4;
/// A turn that takes longer than this is slow; after it, `AFTER_SLOW` calls go to the writer's
/// thread.
const SLOW: Duration = Duration::from_millis(5);
const AFTER_SLOW: u32 = 256;

pub(super) struct Solo {
    writer: Mutex<Writer>,
    sender: SyncSender<Message>,
    under_way: AtomicUsize,
    /// Number of calls since there were last several at once.
    lonely: AtomicU32,
    /// Number of calls that must still go to the writer's thread after a slow turn.
    resting: AtomicU32,
    /// The call of somebody who seems to be alone. A caller that comes meanwhile sends it to the
    /// writer's thread, ahead of its own.
    held: Mutex<Option<Queued>>,
}

/// Counts a call as under way until it is dropped.
pub(super) struct UnderWay<'a>(&'a Solo);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Solo {
    pub(super) fn new(writer: Writer, sender: SyncSender<Message>) -> Self {
        let (under_way, lonely, resting) =
            (AtomicUsize::new(0), AtomicU32::new(0), AtomicU32::new(0));
        Self {
            writer: Mutex::new(writer),
            sender,
            under_way,
            lonely,
            resting,
            held: Mutex::new(None),
        }
    }

    /// The loop of the writer's thread, until it is told to stop.
    pub(super) fn serve(&self, mut messages: Receiver<Message>) {
        guarded(|| lock(&self.writer).show_life());
        loop {
            let patience = guarded(|| lock(&self.writer).note_patience());
            let received = match patience {
                Some(patience) => messages.recv_timeout(patience),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let received = match received {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            };
            let Some(lent) = guarded(|| lock(&self.writer).turn(received, messages)) else {
                return guarded(|| lock(&self.writer).stop());
            };
            messages = lent;
        }
    }

    /// Marks a call as under way; the guard is held until it has an answer.
    pub(super) fn enter(&self) -> UnderWay<'_> {
        match self.under_way.fetch_add(1, Ordering::Relaxed) {
            0 => self.lonely.fetch_add(1, Ordering::Relaxed),
            _ => self.lonely.swap(0, Ordering::Relaxed),
        };
        UnderWay(self)
    }

    /// Sends the call to the writer's thread, or does it if nobody else calls.
    pub(super) async fn submit(
        &self,
        call: Queued,
        gone: &CancellationToken,
    ) -> Result<(), CallError> {
        let rests = self
            .resting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1))
            .is_ok();
        if rests || !self.is_alone() {
            return Ok(self.send(Message::Call(call))?);
        }
        self.send_held();
        *lock(&self.held) = Some(call);
        // Lets other tasks on this thread make their calls.
        yield_now().await;
        let Some(call) = lock(&self.held).take() else { return Ok(()) };
        if gone.is_cancelled() {
            return Err(CallError::Gone);
        }
        if let Some(call) = self.do_here(call) {
            return Ok(self.send(Message::Call(call))?);
        }
        // Lets tasks that have called meanwhile find this call still under way.
        yield_now().await;
        Ok(())
    }

    fn is_alone(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 1 && self.lonely.load(Ordering::Relaxed) >= LONELY
    }

    /// Sends `message` after the held call, if there is one.
    pub(super) fn send(&self, message: Message) -> Result<(), BoardError> {
        self.send_held();
        self.sender.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => overloaded(),
            TrySendError::Disconnected(_) => BoardError::Ended,
        })
    }

    fn send_held(&self) {
        let mut held = lock(&self.held);
        if let Some(call) = held.take()
            && let Err(TrySendError::Full(Message::Call(call))) =
                self.sender.try_send(Message::Call(call))
        {
            answer_one(call.reply, Err(overloaded().into()));
        }
    }

    /// Gives the call back if it must not be done here.
    fn do_here(&self, call: Queued) -> Option<Queued> {
        if !self.is_alone() {
            return Some(call);
        }
        let start = Instant::now();
        let wakes = {
            let Ok(mut writer) = self.writer.try_lock() else { return Some(call) };
            if !guarded(|| writer.is_idle()) {
                return Some(call);
            }
            guarded(|| writer.turn_alone(call))
        };
        if wakes {
            // If the queue is full, the thread will look at it soon anyway.
            drop(self.sender.try_send(Message::Sooner));
        }
        if start.elapsed() > SLOW {
            self.resting.store(AFTER_SLOW, Ordering::Relaxed);
        }
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aborts the process if `turn` panics: it may hold the board's lock, which only the end of the
/// process would free.
fn guarded<T>(turn: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| {
        tracing::error!("the writer panicked; what was acknowledged is in the journal");
        std::process::abort();
    })
}
