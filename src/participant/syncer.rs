//! The thread that waits for the disk and for the rounds of other processes, so that the writer
//! goes on meanwhile.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::message::Message;

/// A shorter wait means that nobody released the lock: somebody may hold it shared, as the doctor
/// does, which does not stop this thread, but does stop a round.
const SHORTEST_TURN: Duration = Duration::from_micros(50);
/// Pause after such a short wait, doubled each time up to `LONGEST_PAUSE`.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

pub(super) struct Syncer {
    requests: Sender<Request>,
    outcomes: Receiver<Outcome>,
}

enum Request {
    Sync(Arc<File>),
    /// Asks to be told when nobody holds the lock of this file, which is opened for that alone.
    Turn(Arc<File>),
}

pub(super) enum Outcome {
    Synced(io::Result<()>),
    /// The lock was free; somebody else may have taken it by now.
    Turn,
}

impl Syncer {
    /// Starts the thread, which sends the writer `Settled` when there is an outcome.
    pub(super) fn spawn(writer: SyncSender<Message>) -> io::Result<Self> {
        let (requests, requested) = channel();
        let (sender, outcomes) = channel();
        thread::Builder::new()
            .name("syncer".to_owned())
            .spawn(move || serve(&requested, &sender, &writer))?;
        Ok(Self { requests, outcomes })
    }

    pub(super) fn sync(&self, log: Arc<File>) {
        drop(self.requests.send(Request::Sync(log)));
    }

    pub(super) fn wait_for_turn(&self, lock: Arc<File>) {
        drop(self.requests.send(Request::Turn(lock)));
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }

    /// Waits for an outcome; `None` when the thread has ended.
    pub(super) fn next_outcome(&self) -> Option<Outcome> {
        self.outcomes.recv().ok()
    }
}

fn serve(requests: &Receiver<Request>, outcomes: &Sender<Outcome>, writer: &SyncSender<Message>) {
    let mut pause = PAUSE;
    for request in requests {
        let outcome = match request {
            Request::Sync(log) => Outcome::Synced(log.sync_data()),
            Request::Turn(lock) => {
                let start = Instant::now();
                // Shared, so that all waiting processes hear of it at once.
                drop(lock.lock_shared());
                drop(lock.unlock());
                if start.elapsed() < SHORTEST_TURN {
                    thread::sleep(pause);
                    pause = LONGEST_PAUSE.min(2 * pause);
                } else {
                    pause = PAUSE;
                }
                Outcome::Turn
            }
        };
        if outcomes.send(outcome).is_err() {
            return;
        }
        // If the queue is full, the writer will look at it soon anyway.
        drop(writer.try_send(Message::Settled));
    }
}
