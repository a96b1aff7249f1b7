//! What a board needs now and then and nobody asks for: snapshots, and the journal's old events compressed. Without the
//! journal's lock but for moments, and beside the writer's thread unless the process would end before.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Stay;
use super::archive::has_grown;
use super::board::{Board, BoardError, LOCK_PATIENCE};
use crate::journal::JournalError;
use crate::journal::sqlite::{BLOCK, SqliteJournal};
use crate::private;
use crate::snapshot::Snapshots;
use crate::state::time::Timestamp;

/// To ask for the journal's size costs more than many an operation.
const WORTH_A_LOOK: u64 = 32 << 10;
/// While as many events as one block holds come in less time, those who call need the processors, and old events wait; but no
/// more than so many.
const BUSY: Duration = Duration::from_secs(1);
const WAIT_AT_MOST: u64 = 32 * BLOCK;

#[derive(Default)]
pub struct Upkeep {
    /// The journal's size when the newest snapshot was taken, as far as known.
    journal_at_snapshot: Option<u64>,
    /// What had passed through the journal when its size was looked at.
    looked_at: Option<u64>,
    /// Before this event nothing more is to be archived.
    archive_at: u64,
    /// When that event had come.
    archive_looked_at: Option<Instant>,
}

impl Upkeep {
    /// Looks whether something is due, behind answers that have left.
    pub fn look(&mut self, board: &Board, now: Timestamp, stay: Stay) {
        self.snapshot_if_grown(board, now, stay);
        self.archive_if_long(board, stay);
    }

    fn snapshot_if_grown(&mut self, board: &Board, now: Timestamp, stay: Stay) {
        let passed = board.journal_passed();
        if self.looked_at.is_some_and(|looked_at| passed.abs_diff(looked_at) < WORTH_A_LOOK) {
            return;
        }
        self.looked_at = Some(passed);
        let (journal_bytes, state_bytes) = (board.journal_bytes(), board.state_bytes());
        if !has_grown(journal_bytes, self.journal_at_snapshot, state_bytes) {
            return;
        }
        let newest = Snapshots::of(board.dir()).and_then(|snapshots| snapshots.newest());
        let newest = newest.ok().flatten().and_then(|newest| newest.head);
        self.journal_at_snapshot = newest.map(|head| head.journal_bytes);
        if !has_grown(journal_bytes, self.journal_at_snapshot, state_bytes) {
            return;
        }
        // Whether it succeeds or not: the next attempt is due when it has grown again.
        self.journal_at_snapshot = Some(journal_bytes);
        let archive = board.archive(now);
        beside("snapshot", stay, move || {
            if let Err(error) = archive.take_if_grown(state_bytes) {
                tracing::warn!(%error, "no snapshot could be written");
            }
        });
    }

    fn archive_if_long(&mut self, board: &Board, stay: Stay) {
        let seq = board.state.seq();
        if seq < self.archive_at {
            return;
        }
        let due_at = match board.archives_at() {
            Ok(due_at) => due_at,
            Err(error) => return tracing::warn!(%error, "whether the journal is long could not be seen"),
        };
        // When it is due: again when one more block is.
        self.archive_at = if seq < due_at { due_at } else { seq + BLOCK };
        let before = self.archive_looked_at.replace(Instant::now());
        let is_busy = before.is_some_and(|before| before.elapsed() < BUSY) && stay != Stay::Brief;
        if seq < due_at || is_busy && seq < due_at + WAIT_AT_MOST {
            return;
        }
        let (dir, lock) = (board.dir().to_owned(), board.lock.another());
        let at_most = if stay == Stay::Brief { 1 } else { usize::MAX };
        beside("archive", stay, move || {
            let archived = lock.map_err(BoardError::from).and_then(|lock| archive_old(&dir, &lock, at_most));
            if let Err(error) = archived {
                tracing::warn!(%error, "old events could not be archived");
            }
        });
    }
}

/// Compresses blocks without the lock, and moves each with it.
fn archive_old(dir: &Path, lock: &File, at_most: usize) -> Result<(), BoardError> {
    let mut journal = SqliteJournal::open(dir)?;
    for _ in 0..at_most {
        let Some(block) = journal.next_block()? else { break };
        // Whoever has it may have been stopped; then the block is due again.
        if !private::lock_within(lock, LOCK_PATIENCE).map_err(JournalError::from)? {
            break;
        }
        let archived = journal.archive(&block);
        lock.unlock().map_err(JournalError::from)?;
        archived?;
    }
    Ok(())
}

fn beside(name: &str, stay: Stay, work: impl FnOnce() + Send + 'static) {
    match stay {
        Stay::Brief => work(),
        Stay::Lasting | Stay::Presence => {
            // Without a thread it is due again later.
            drop(thread::Builder::new().name(name.to_owned()).spawn(work));
        }
    }
}
