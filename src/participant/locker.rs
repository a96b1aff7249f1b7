//! The thread that waits for the journal's lock, so that reads go on meanwhile.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

use super::writer::Message;

pub struct Locker {
    requests: Sender<()>,
    /// Asked, and not answered yet.
    pub waiting: bool,
    /// Told from those of the lock files before, whose answers may still come.
    pub generation: u64,
}

impl Locker {
    pub fn spawn(lock: File, generation: u64, writer: SyncSender<Message>) -> io::Result<Self> {
        let (requests, receiver) = channel();
        std::thread::Builder::new()
            .name("locker".to_owned())
            .spawn(move || wait(&lock, generation, &receiver, &writer))?;
        Ok(Self { requests, waiting: false, generation })
    }

    /// The writer will be sent `Locked` once the lock is ours.
    pub fn request(&mut self) {
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
