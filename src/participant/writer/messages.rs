//! How messages come in: a turn takes all that are there.

use std::time::{Duration, Instant};

use super::Writer;
use crate::participant::board::Board;
use crate::participant::commit::Event;
use crate::participant::message::Message;

/// Most messages that are taken before the commit path goes on.
const AT_ONCE: usize = 64;
/// How long a batch waits for callers who are likely to call again at once.
const LINGER: Duration = Duration::from_micros(200);

impl Writer {
    /// Takes `received` and all that has come meanwhile, so that it goes into the same batch. False
    /// when it is time to stop.
    pub(super) fn take_all(&mut self, received: Option<Message>) -> bool {
        if received.is_some_and(|message| !self.take(message)) {
            return false;
        }
        for _ in 0..AT_ONCE {
            let Ok(message) = self.messages.try_recv() else { break };
            if !self.take(message) {
                return false;
            }
        }
        true
    }

    /// Waits a moment for callers who make one call after another, because a commit costs about the
    /// same for one call as for several. A lone caller is not kept waiting. Done before the lock is
    /// taken, because other processes that append must not wait for it meanwhile.
    pub(super) fn gather(&mut self) -> bool {
        let until = Instant::now() + LINGER;
        while self.driver.commit.is_too_few() {
            let patience = until.saturating_duration_since(Instant::now());
            let Ok(message) = self.messages.recv_timeout(patience) else { break };
            if !self.take(message) {
                return false;
            }
        }
        true
    }

    /// Handles one message; false when it is time to stop.
    fn take(&mut self, message: Message) -> bool {
        match message {
            // The caller has gone.
            Message::Call(call) if call.reply.is_closed() => {}
            Message::Call(call) if call.is_for_batch() => self.record(*call),
            Message::Call(call) if call.fetches() => self.fetch(*call),
            Message::Call(call) => self.read(*call, true),
            Message::History { seq, limit, reply } => drop(reply.send(self.past(seq, limit))),
            Message::Look(look) => self.show(look),
            Message::Snapshot(reply) => drop(reply.send(self.snapshot())),
            Message::Locked { acquired, generation } => {
                if self.threads.is_of_present_lock(generation) {
                    self.driver.commit.handle(Event::LockCame(acquired), Instant::now());
                    self.advance();
                }
            }
            Message::StopWaiting => self.driver.is_hurried = true,
            Message::Examined(examined) => {
                self.driver.commit.handle(Event::Edited(examined), Instant::now());
                self.advance();
            }
            Message::Settled => self.advance(),
            Message::Changed => {
                self.watch.take_hint();
                if self.board.is_some() && !Board::exists(&self.dir) {
                    // Looks at once, so that the next call finds the board that was here and does
                    // not make another.
                    self.watch.polled_at = None;
                }
            }
            Message::Stop => return false,
        }
        true
    }
}
