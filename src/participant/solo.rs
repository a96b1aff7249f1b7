//! Whose turn it is to keep the replica: the writer's thread, or a caller who is alone.
//!
//! To wake another thread and to be woken by it takes longer than all that a call does in memory. So a lone caller's call is
//! done on the thread that it comes from. Where several call, the writer's thread takes what they want together, and the disk
//! is waited for once. So it does where a turn takes long, because whatever else that thread does stands still meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::writer::{Message, Writer, answer_one};
use super::{BoardError, CallError, Queued};
use crate::state::limit;

/// The caller of so many calls, none of them beside another, is taken to be alone.
const LONELY: u32 = 4;
/// A turn that takes longer is slow, and after it so many calls go to the writer's thread.
const SLOW: Duration = Duration::from_millis(5);
const AFTER_SLOW: u32 = 256;

pub struct Solo {
    writer: Mutex<Writer>,
    sender: SyncSender<Message>,
    under_way: AtomicUsize,
    /// Calls since there were several at once.
    lonely: AtomicU32,
    /// Calls that are still to go to the writer's thread.
    resting: AtomicU32,
    /// The call of somebody who seems to be alone. Whoever comes meanwhile sends it ahead of the own one.
    held: Mutex<Option<Queued>>,
}

/// A call that is under way.
pub struct UnderWay<'a>(&'a Solo);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Solo {
    pub fn new(writer: Writer, sender: SyncSender<Message>) -> Self {
        let (under_way, lonely, resting) = (AtomicUsize::new(0), AtomicU32::new(0), AtomicU32::new(0));
        Self { writer: Mutex::new(writer), sender, under_way, lonely, resting, held: Mutex::new(None) }
    }

    /// The writer's thread, until it is told to stop.
    pub fn serve(&self, mut messages: Receiver<Message>) {
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

    /// For as long as the call has no answer.
    pub fn enter(&self) -> UnderWay<'_> {
        match self.under_way.fetch_add(1, Ordering::Relaxed) {
            0 => self.lonely.fetch_add(1, Ordering::Relaxed),
            _ => self.lonely.swap(0, Ordering::Relaxed),
        };
        UnderWay(self)
    }

    /// Sends the call to the writer's thread, or does it if nobody else calls.
    pub async fn submit(&self, call: Queued, gone: &CancellationToken) -> Result<(), CallError> {
        let rests =
            self.resting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1)).is_ok();
        if rests || !self.is_alone() {
            return Ok(self.send(Message::Call(call))?);
        }
        self.send_held();
        *lock(&self.held) = Some(call);
        // Others may call on this thread, who come to it only now.
        yield_now().await;
        let Some(call) = lock(&self.held).take() else { return Ok(()) };
        if gone.is_cancelled() {
            return Err(CallError::Gone);
        }
        if let Some(call) = self.do_here(call) {
            return Ok(self.send(Message::Call(call))?);
        }
        // Who has called meanwhile is to find this call under way.
        yield_now().await;
        Ok(())
    }

    fn is_alone(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 1 && self.lonely.load(Ordering::Relaxed) >= LONELY
    }

    /// Behind the call that is held.
    pub fn send(&self, message: Message) -> Result<(), BoardError> {
        self.send_held();
        self.sender.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => overloaded(),
            TrySendError::Disconnected(_) => BoardError::Ended,
        })
    }

    fn send_held(&self) {
        let mut held = lock(&self.held);
        if let Some(call) = held.take()
            && let Err(TrySendError::Full(Message::Call(call))) = self.sender.try_send(Message::Call(call))
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
            // A full queue is looked at soon anyway.
            drop(self.sender.try_send(Message::Sooner));
        }
        if start.elapsed() > SLOW {
            self.resting.store(AFTER_SLOW, Ordering::Relaxed);
        }
        None
    }
}

pub(super) fn overloaded() -> BoardError {
    BoardError::Overloaded { waiting: limit::QUEUED.max }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever panics may hold the board's lock, which only the end of the process would free.
fn guarded<T>(turn: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| {
        tracing::error!("the writer panicked; what was acknowledged is in the journal");
        std::process::abort();
    })
}
