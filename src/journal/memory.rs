//! A journal that lasts as long as its process: for tests and simulation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chain::damaged;
use super::{AppendError, BatchId, Journal, JournalError, check_sequence};
use crate::state::event::Recorded;

/// Clones are further participants of the same board.
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    board_id: String,
    batches: Arc<Mutex<Vec<Batch>>>,
}

#[derive(Debug)]
struct Batch {
    id: BatchId,
    events: Vec<Recorded>,
}

impl MemoryJournal {
    pub fn new(board_id: impl Into<String>) -> Self {
        Self { board_id: board_id.into(), batches: Arc::default() }
    }

    fn batches(&self) -> MutexGuard<'_, Vec<Batch>> {
        // A batch is pushed whole, so another thread's panic leaves nothing half done.
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn head(batches: &[Batch]) -> u64 {
    batches.iter().rev().find_map(|batch| batch.events.last()).map_or(0, |last| last.seq)
}

impl Journal for MemoryJournal {
    fn head(&self) -> Result<u64, JournalError> {
        Ok(head(&self.batches()))
    }

    fn append(&mut self, expected: u64, batch: &BatchId, events: &[Recorded]) -> Result<(), AppendError> {
        check_sequence(expected, events).map_err(AppendError::Failed)?;
        let mut batches = self.batches();
        let head = head(&batches);
        if head != expected {
            return Err(AppendError::Conflict { head });
        }
        // SQLite leaves no trace of a batch without events.
        if !events.is_empty() {
            batches.push(Batch { id: batch.clone(), events: events.to_vec() });
        }
        Ok(())
    }

    fn read_from(&self, after: u64, limit: usize) -> Result<Vec<Recorded>, JournalError> {
        let batches = self.batches();
        let head = head(&batches);
        if after > head {
            return Err(damaged(after, "it is missing"));
        }
        let start = batches.partition_point(|batch| batch.events.last().is_some_and(|last| last.seq <= after));
        let events = batches[start..].iter().flat_map(|batch| &batch.events);
        Ok(events.filter(|recorded| recorded.seq > after).take(limit).cloned().collect())
    }

    fn holds_batch(&self, batch: &BatchId) -> Result<bool, JournalError> {
        Ok(self.batches().iter().any(|held| held.id == *batch))
    }

    fn keyed(&self, newest: usize) -> Result<Vec<Recorded>, JournalError> {
        let batches = self.batches();
        let backwards = batches.iter().rev().flat_map(|batch| batch.events.iter().rev());
        let keyed = backwards.filter(|recorded| recorded.idempotency.is_some()).take(newest);
        let mut keyed: Vec<_> = keyed.cloned().collect();
        keyed.reverse();
        Ok(keyed)
    }

    fn board_id(&self) -> Result<Option<String>, JournalError> {
        Ok(Some(self.board_id.clone()))
    }
}
