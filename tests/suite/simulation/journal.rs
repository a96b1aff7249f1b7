//! A simulated journal. It fails, and loses what was not synced, the way that SQLite's write-ahead
//! log does where commits are not synced.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::rc::Rc;

use callboard::journal::{AppendError, BatchId, JournalError};
use callboard::state::event::Recorded;

/// The journal of a machine. Clones are the same journal.
#[derive(Clone, Default)]
pub(crate) struct Journal(Rc<RefCell<Disk>>);

/// What becomes of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All can read it, but a power loss undoes it until a sync.
    #[default]
    Written,
    /// The disk is full: nothing is written.
    Refused,
    /// It was written, but readers do not see it: the outcome is unknown.
    Torn,
}

#[derive(Default)]
struct Disk {
    batches: Vec<Batch>,
    /// The number of batches that survive a power loss.
    synced: usize,
    /// A batch after what readers see, until the next append overwrites it.
    torn: Option<Batch>,
    next: Fate,
}

struct Batch {
    id: BatchId,
    events: Vec<Recorded>,
}

impl Batch {
    fn last(&self) -> u64 {
        self.events.last().map_or(0, |last| last.seq)
    }
}

impl Journal {
    /// Sets the fate of the next append; those after it are written again.
    pub(crate) fn doom(&self, fate: Fate) {
        self.0.borrow_mut().next = fate;
    }

    /// Does what happens when the first process opens the journal after all others have died: a torn
    /// batch is found, too, though still unsynced.
    pub(crate) fn recover(&self) {
        let mut disk = self.0.borrow_mut();
        let torn = disk.torn.take();
        disk.batches.extend(torn);
    }

    /// A sync of the events up to `seq`.
    pub(crate) fn sync(&self, seq: u64) {
        let mut disk = self.0.borrow_mut();
        let batches = disk.batches.iter().take_while(|batch| batch.last() <= seq).count();
        disk.synced = disk.synced.max(batches);
    }

    /// A checkpoint: all is synced, and a torn batch is gone.
    pub(crate) fn checkpoint(&self) {
        self.sync(u64::MAX);
        self.0.borrow_mut().torn = None;
    }

    /// The last event that a power loss leaves.
    pub(crate) fn durable(&self) -> u64 {
        let disk = self.0.borrow();
        disk.batches[..disk.synced].last().map_or(0, Batch::last)
    }

    pub(crate) fn lose_power(&self) {
        let mut disk = self.0.borrow_mut();
        let synced = disk.synced;
        disk.batches.truncate(synced);
        disk.torn = None;
    }

    pub(crate) fn head(&self) -> u64 {
        self.0.borrow().batches.last().map_or(0, Batch::last)
    }

    pub(crate) fn append(
        &self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
    ) -> Result<(), AppendError> {
        let head = self.head();
        if head != expected {
            return Err(AppendError::Conflict { head });
        }
        assert!((expected + 1..).zip(events).all(|(seq, recorded)| recorded.seq == seq));
        let mut disk = self.0.borrow_mut();
        let appended = Batch { id: batch.clone(), events: events.to_vec() };
        match std::mem::take(&mut disk.next) {
            Fate::Written => {
                disk.torn = None;
                disk.batches.push(appended);
                Ok(())
            }
            Fate::Refused => Err(AppendError::Failed(JournalError::Full)),
            Fate::Torn => {
                disk.torn = Some(appended);
                Err(AppendError::Unknown(io::Error::other("a failed write").into()))
            }
        }
    }

    /// Up to `limit` events that follow event `after`.
    pub(crate) fn read(&self, after: u64, limit: usize) -> Vec<Recorded> {
        assert!(after <= self.head(), "a process knows event {after}, which is not there");
        let disk = self.0.borrow();
        let start = disk.batches.partition_point(|batch| batch.last() <= after);
        let events = disk.batches[start..].iter().flat_map(|batch| &batch.events);
        events.filter(|recorded| recorded.seq > after).take(limit).cloned().collect()
    }

    pub(crate) fn holds(&self, batch: &BatchId) -> bool {
        self.0.borrow().batches.iter().any(|held| held.id == *batch)
    }

    /// The events of the `newest` calls that have an idempotency key, oldest first.
    pub(crate) fn keyed(&self, newest: usize) -> Vec<Recorded> {
        let disk = self.0.borrow();
        let backwards = disk.batches.iter().rev().flat_map(|batch| batch.events.iter().rev());
        let keyed =
            backwards.filter_map(|recorded| Some((recorded, &recorded.idempotency.as_ref()?.key)));
        let mut keys = HashSet::new();
        let of_newest = keyed.take_while(|(_, key)| {
            keys.insert(*key);
            keys.len() <= newest
        });
        let mut keyed: Vec<_> = of_newest.map(|(recorded, _)| recorded.clone()).collect();
        keyed.reverse();
        keyed
    }
}
