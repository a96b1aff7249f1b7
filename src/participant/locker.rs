//! The thread that waits for the journal's lock, so that reads go on meanwhile.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

use super::message::Message;

pub(super) struct Locker {
    requests: Sender<()>,
    /// Whether the lock has been requested and no answer has come yet.
    pub waiting: bool,
    /// The generation of the lock file. Answers from the lockers of earlier lock files may still
    /// come.
    pub generation: u64,
}

impl Locker {
    pub(super) fn spawn(
        lock: File,
        generation: u64,
        writer: SyncSender<Message>,
    ) -> io::Result<Self> {
        let (requests, receiver) = channel();
        std::thread::Builder::new()
            .name("locker".to_owned())
            .spawn(move || wait(&lock, generation, &receiver, &writer))?;
        Ok(Self { requests, waiting: false, generation })
    }

    /// Requests the lock; the writer is sent `Locked` when this process has it.
    pub(super) fn request(&mut self) {
        if !self.waiting {
            self.waiting = self.requests.send(()).is_ok();
        }
    }
}

fn wait(lock: &File, generation: u64, requests: &Receiver<()>, writer: &SyncSender<Message>) {
    while requests.recv().is_ok() {
        let acquired = lock.lock();
        if writer.send(Message::Locked { acquired, generation }).is_err() {
            return;
        }
    }
}
