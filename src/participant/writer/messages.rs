//! How messages come in: a turn takes all that are there, and an open batch takes calls as they
//! come.

use std::time::{Duration, Instant};

use super::{BATCH, Writer};
use crate::participant::board::Board;
use crate::participant::message::{Message, Queued};

/// How long a batch waits for callers who are likely to call again at once, unless `ENOUGH` of them
/// have called.
pub(super) const LINGER: Duration = Duration::from_micros(200);
const ENOUGH: usize = 16;

impl Writer {
    /// Takes `received` and all that has come meanwhile, so that it goes into the same batch. False
    /// when it is time to stop.
    pub(super) fn hear(&mut self, received: Option<Message>) -> bool {
        for message in std::mem::take(&mut self.put_off).into_iter().chain(received) {
            if !self.take(message) {
                return false;
            }
        }
        for _ in 0..BATCH {
            let Some(message) = self.next_message(Duration::ZERO) else { break };
            if !self.take(message) {
                return false;
            }
        }
        true
    }

    /// The next message that comes within `patience`.
    fn next_message(&self, patience: Duration) -> Option<Message> {
        if patience.is_zero() {
            self.messages.try_recv().ok()
        } else {
            self.messages.recv_timeout(patience).ok()
        }
    }

    /// Waits a moment for callers who make one call after another, because a commit costs about the
    /// same for one call as for several. A lone caller is not kept waiting. Done before the
    /// lock is taken, because other processes that append must not wait for it meanwhile.
    pub(super) fn gather(&mut self) -> bool {
        let until = Instant::now() + LINGER;
        while self.is_too_few(self.queue.len()) {
            let Some(message) = self.next_message(until.saturating_duration_since(Instant::now()))
            else {
                break;
            };
            if !self.take(message) {
                return false;
            }
        }
        true
    }

    /// Whether a batch of `calls` calls should wait for more, because they are likely to come at
    /// once.
    fn is_too_few(&self, calls: usize) -> bool {
        calls > 0 && calls < self.callers.saturating_sub(self.rounds.held()).min(ENOUGH)
    }

    /// The next call for an open batch of `calls` calls. If nobody else appends, calls are waited
    /// for here, under the lock, and each is done while the others are on their way.
    pub(super) fn next_call(&mut self, calls: usize, until: Instant) -> Option<Queued> {
        if let Some(call) = self.queue.pop_front() {
            return Some(call);
        }
        let mut is_closed = self.rounds.has_company;
        while !is_closed {
            let until = if self.is_too_few(calls) { until } else { Instant::now() };
            match self.next_message(until.saturating_duration_since(Instant::now()))? {
                Message::Call(call) if call.reply.is_closed() => {}
                Message::Call(call) if call.is_for_batch() => return Some(call),
                message => {
                    is_closed = !matches!(message, Message::Call(_)) || self.put_off.len() >= BATCH;
                    self.put_off.push(message);
                }
            }
        }
        None
    }

    /// Handles one message; false when it is time to stop.
    pub(super) fn take(&mut self, message: Message) -> bool {
        match message {
            // The caller has gone.
            Message::Call(call) if call.reply.is_closed() => {}
            Message::Call(call) if call.is_for_batch() => self.queue.push_back(call),
            Message::Call(call) if call.fetches() => self.fetch(call),
            Message::Call(call) => self.read(call, true),
            Message::History { seq, limit, reply } => drop(reply.send(self.past(seq, limit))),
            Message::Look(look) => self.show(look),
            Message::Snapshot(reply) => drop(reply.send(self.snapshot())),
            Message::Locked { acquired, generation } => self.locked(acquired, generation),
            Message::StopWaiting => self.hurried = true,
            Message::Examined(examined) => self.edits.take(examined),
            Message::Settled => self.hear_syncer(),
            Message::Changed => {
                self.hint.take();
                if self.board.is_some() && !Board::exists(&self.dir) {
                    // Looks at once, so that the next call finds the board that was here and does
                    // not make another.
                    self.last_look = None;
                }
            }
            Message::Stop => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use serde_json::{Value, json};
    use tokio::sync::oneshot;

    use super::*;
    use crate::clock::SystemClock;
    use crate::participant::feed::Feed;
    use crate::participant::message::Answer;
    use crate::participant::metrics::Metrics;
    use crate::participant::{Options, Stay};

    fn call(operation: &str, arguments: Value) -> (Message, oneshot::Receiver<Answer>) {
        let (call, answer) = Queued::new(operation, arguments);
        (Message::Call(call), answer)
    }

    fn create(description: &str) -> (Message, oneshot::Receiver<Answer>) {
        call("create_task", json!({"description": description}))
    }

    #[test]
    fn open_batch_takes_calls_and_puts_off_the_rest_until_something_closes_it() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            dir: dir.path().join(".coordination"),
            state_file: None,
            stay: Stay::Lasting,
            unwritable: None,
            forbidden: None,
            unasked: None,
            clock: Box::new(SystemClock),
            seed: 1,
            worktree: None,
        };
        let (sender, messages) = sync_channel(16);
        let shared = (Arc::new(Feed::new()), Arc::new(Metrics::new()));
        let mut writer = Writer::new(options, sender.clone(), messages, shared);
        // As after a batch of eight calls, whose callers are likely to call again.
        writer.callers = 8;
        let (read, mut read_answer) = call("get_status", json!({}));
        let (one, mut one_answer) = create("one");
        let (other, mut other_answer) = create("other");
        for message in [read, one, Message::Changed, other] {
            sender.try_send(message).unwrap_or_else(|_| panic!("the queue is full"));
        }

        let until = Instant::now() + Duration::from_secs(60);
        let taken = writer.next_call(1, until).unwrap();
        assert_eq!(taken.prepared.params()["description"], "one");
        assert!(
            writer.next_call(2, until).is_none(),
            "a batch that is closed takes the next call all the same"
        );
        assert_eq!((writer.put_off.len(), writer.queue.len()), (2, 0));
        assert_eq!(writer.patience(), Some(Duration::ZERO));

        writer.queue.push_back(taken);
        writer.attend();
        assert_eq!((writer.put_off.len(), writer.queue.len()), (2, 0));
        assert!(writer.hear(None));
        writer.stop();
        for created in [&mut one_answer, &mut other_answer] {
            assert_eq!(created.try_recv().unwrap().unwrap()["success"], true);
        }
        let status = read_answer.try_recv().unwrap().unwrap();
        assert_eq!(status["total_tasks"], 2, "behind the batch: {status}");
    }
}
