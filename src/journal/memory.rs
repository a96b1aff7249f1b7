//! A journal that lasts as long as its process: for tests and simulation. It fails, and loses what
//! was not synced, the way that SQLite's write-ahead log does where commits are not synced.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chain::damaged;
use super::{AppendError, BatchId, Journal, JournalError, check_sequence};
use crate::state::event::Recorded;

/// A journal in memory. Clones are further participants of the same board.
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    board_id: String,
    disk: Arc<Mutex<Disk>>,
}

/// What becomes of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// All can read it, but a power loss undoes it until somebody syncs.
    #[default]
    Written,
    /// The disk is full: nothing is written.
    Refused,
    /// It was written, but readers do not see it: the outcome is unknown.
    Torn,
}

#[derive(Debug, Default)]
struct Disk {
    batches: Vec<Batch>,
    /// The number of batches that survive a power loss.
    synced: usize,
    /// A batch after what readers see, until the next append overwrites it.
    torn: Option<Batch>,
    next: Fate,
}

#[derive(Debug)]
struct Batch {
    id: BatchId,
    events: Vec<Recorded>,
}

impl MemoryJournal {
    pub fn new(board_id: impl Into<String>) -> Self {
        Self { board_id: board_id.into(), disk: Arc::default() }
    }

    /// Sets the fate of the next append; those after it are written again.
    pub fn doom(&self, fate: Fate) {
        self.disk().next = fate;
    }

    /// Does what happens when the first process opens the journal after all others have died: a
    /// torn batch is found, too, though still unsynced.
    pub fn recover(&self) {
        let mut disk = self.disk();
        let torn = disk.torn.take();
        disk.batches.extend(torn);
    }

    /// A sync: what can be read is durable.
    pub fn settle(&self) {
        let mut disk = self.disk();
        disk.synced = disk.batches.len();
    }

    /// A checkpoint: the same, and a torn batch is gone.
    pub fn settle_for_good(&self) {
        self.settle();
        self.disk().torn = None;
    }

    pub fn is_settled(&self) -> bool {
        let disk = self.disk();
        disk.synced == disk.batches.len()
    }

    /// A power loss: what was not synced is lost.
    pub fn lose_power(&self) {
        let mut disk = self.disk();
        let synced = disk.synced;
        disk.batches.truncate(synced);
        disk.torn = None;
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // A batch is pushed whole, so another thread's panic leaves nothing half done.
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn head(batches: &[Batch]) -> u64 {
    batches.iter().rev().find_map(|batch| batch.events.last()).map_or(0, |last| last.seq)
}

impl Journal for MemoryJournal {
    fn head(&self) -> Result<u64, JournalError> {
        Ok(head(&self.disk().batches))
    }

    fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
    ) -> Result<(), AppendError> {
        check_sequence(expected, events).map_err(AppendError::Failed)?;
        let mut disk = self.disk();
        let head = head(&disk.batches);
        if head != expected {
            return Err(AppendError::Conflict { head });
        }
        // SQLite leaves no trace of a batch without events.
        if events.is_empty() {
            return Ok(());
        }
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

    fn read_from(&self, after: u64, limit: usize) -> Result<Vec<Recorded>, JournalError> {
        let disk = self.disk();
        let head = head(&disk.batches);
        if after > head {
            return Err(damaged(after, "it is missing"));
        }
        let start = disk
            .batches
            .partition_point(|batch| batch.events.last().is_some_and(|last| last.seq <= after));
        let events = disk.batches[start..].iter().flat_map(|batch| &batch.events);
        Ok(events.filter(|recorded| recorded.seq > after).take(limit).cloned().collect())
    }

    fn holds_batch(&self, batch: &BatchId) -> Result<bool, JournalError> {
        Ok(self.disk().batches.iter().any(|held| held.id == *batch))
    }

    fn keyed(&self, newest: usize) -> Result<Vec<Recorded>, JournalError> {
        let disk = self.disk();
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
        Ok(keyed)
    }

    fn board_id(&self) -> Result<Option<String>, JournalError> {
        Ok(Some(self.board_id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::event::Event;
    use crate::state::id::ParticipantId;
    use crate::state::time::Timestamp;

    fn event(seq: u64) -> Recorded {
        let event = Event::PlanSet { goal: format!("goal {seq}"), master_plan: None };
        let participant = ParticipantId::trusted("p-1");
        Recorded {
            seq,
            at: Timestamp::default(),
            participant,
            actor: None,
            idempotency: None,
            event,
        }
    }

    fn append(journal: &mut MemoryJournal, seq: u64) -> Result<(), AppendError> {
        journal.append(seq - 1, &BatchId::new(format!("batch-{seq}")), &[event(seq)])
    }

    #[test]
    fn what_is_not_synced_is_read_and_lost_with_the_power() {
        let mut journal = MemoryJournal::new("board");
        append(&mut journal, 1).expect("nothing fails");
        journal.settle();
        append(&mut journal, 2).expect("nothing fails");
        assert_eq!((journal.head().expect("a head"), journal.is_settled()), (2, false));
        journal.lose_power();
        assert_eq!((journal.head().expect("a head"), journal.is_settled()), (1, true));
    }

    #[test]
    fn torn_batch_is_found_by_who_comes_when_all_are_dead_unless_it_was_overwritten_or_settled() {
        for (overwrites, settles) in [(false, false), (true, false), (false, true)] {
            let mut journal = MemoryJournal::new("board");
            append(&mut journal, 1).expect("nothing fails");
            journal.doom(Fate::Torn);
            let torn = journal.append(1, &BatchId::new("torn"), &[event(2)]);
            assert!(matches!(torn, Err(AppendError::Unknown(_))));
            journal.settle();
            assert_eq!(journal.head().expect("a head"), 1);
            if overwrites {
                append(&mut journal, 2).expect("nothing fails any more");
            }
            if settles {
                journal.settle_for_good();
            }
            journal.recover();
            assert_eq!(
                journal.holds_batch(&BatchId::new("torn")).expect("an answer"),
                !overwrites && !settles
            );
        }
    }
}
