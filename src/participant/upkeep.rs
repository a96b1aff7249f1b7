//! Upkeep that nobody asks for: snapshots, and compressing the journal's old events. It holds the
//! journal's lock only for moments, and runs on a thread of its own, unless the process is brief
//! and would end before that.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::archive::has_grown;
use super::board::Board;
use super::error::BoardError;
use super::lock::LOCK_PATIENCE;
use super::options::Stay;
use crate::journal::JournalError;
use crate::journal::sqlite::{BLOCK, SqliteJournal};
use crate::private;
use crate::snapshot::Snapshots;
use crate::state::time::Timestamp;

/// Bytes that must pass through the journal before its size is asked for, which costs more than
/// many an operation.
const WORTH_A_LOOK: u64 = 32 << 10;
/// While as many events as one block holds come in less than this time, callers need the CPU and
/// old events wait, but only until `WAIT_AT_MOST` more have come.
const BUSY: Duration = Duration::from_secs(1);
const WAIT_AT_MOST: u64 = 32 * BLOCK;

#[derive(Default)]
pub(super) struct Upkeep {
    /// The journal's size when the newest snapshot was taken, as far as known.
    journal_at_snapshot: Option<u64>,
    /// The bytes that had passed through the journal when its size was last asked for.
    looked_at: Option<u64>,
    backlog: Backlog,
}

/// Old events that are still to be archived.
#[derive(Default)]
struct Backlog {
    /// The seq before which nothing more will be due.
    next_at: u64,
    /// When that was last checked.
    looked_at: Option<Instant>,
    /// Whether something is due and waits for a quieter time.
    waits: bool,
}

impl Backlog {
    /// Whether it is worth checking.
    fn may_be_due(&self, seq: u64, now: Instant) -> bool {
        let is_quiet = || self.looked_at.is_none_or(|before| now - before >= BUSY);
        seq >= self.next_at || self.waits && is_quiet()
    }

    /// Whether to archive now, at event `seq`, if there is a block to archive from event `due_at`
    /// on. `may_wait` says that this process will check again.
    fn is_due(&mut self, seq: u64, due_at: u64, may_wait: bool, now: Instant) -> bool {
        // If it is due now, it is due again after one more block.
        self.next_at = if seq < due_at { due_at } else { seq + BLOCK };
        let is_busy = self.looked_at.replace(now).is_some_and(|before| now - before < BUSY);
        self.waits = seq >= due_at && is_busy && may_wait && seq < due_at + WAIT_AT_MOST;
        seq >= due_at && !self.waits
    }
}

impl Upkeep {
    /// Does what is due.
    pub(super) fn look(&mut self, board: &Board, now: Timestamp, stay: Stay) {
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
        // Whether it succeeds or not, the next snapshot is due when the journal has grown again.
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
        let now = Instant::now();
        if !self.backlog.may_be_due(seq, now) {
            return;
        }
        let due_at = match board.archives_at() {
            Ok(due_at) => due_at,
            Err(error) => {
                return tracing::warn!(%error, "whether the journal is long could not be seen");
            }
        };
        if !self.backlog.is_due(seq, due_at, stay != Stay::Brief, now) {
            return;
        }
        let (dir, lock) = (board.dir().to_owned(), board.lock.another());
        let at_most = if stay == Stay::Brief { 1 } else { usize::MAX };
        beside("archive", stay, move || {
            let archived =
                lock.map_err(BoardError::from).and_then(|lock| archive_old(&dir, &lock, at_most));
            if let Err(error) = archived {
                tracing::warn!(%error, "old events could not be archived");
            }
        });
    }
}

/// Compresses blocks without the lock, and moves each into the archive under the lock.
fn archive_old(dir: &Path, lock: &File, at_most: usize) -> Result<(), BoardError> {
    let mut journal = SqliteJournal::open(dir)?;
    for _ in 0..at_most {
        let Some(block) = journal.next_block()? else { break };
        // The lock's holder may have been stopped; then the block is due again later.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The seqs at which blocks are archived, with a check at every event, `apart` from each other.
    /// Each time all that is due is archived.
    fn archived_at(apart: Duration, may_wait: bool, events: u64) -> Vec<u64> {
        let (mut backlog, mut now, mut due_at, mut archived) =
            (Backlog::default(), Instant::now(), 1_000, Vec::new());
        for seq in 1..=events {
            now += apart;
            if backlog.may_be_due(seq, now) && backlog.is_due(seq, due_at, may_wait, now) {
                archived.push(seq);
                due_at += ((seq - due_at) / BLOCK + 1) * BLOCK;
            }
        }
        archived
    }

    #[test]
    fn old_events_wait_while_many_come_but_not_for_ever() {
        let micros = Duration::from_micros(50);
        let busy = archived_at(micros, true, 40_000);
        let gaps: Vec<_> =
            [1_000].iter().chain(&busy).zip(&busy).map(|(before, at)| at - before).collect();
        assert!(
            gaps.iter().all(|gap| (WAIT_AT_MOST..=WAIT_AT_MOST + BLOCK).contains(gap)),
            "{busy:?}"
        );
        assert_eq!(busy.len(), 2);
        let by_the_block: Vec<_> = (0..4).map(|block| 1_000 + block * BLOCK).collect();
        assert_eq!(archived_at(Duration::from_secs(1), true, 2_600), by_the_block, "a quiet board");
        assert_eq!(
            archived_at(micros, false, 2_600),
            by_the_block,
            "who ends with the call looks once"
        );
    }

    #[test]
    fn what_has_waited_is_archived_with_the_first_call_behind_a_busy_time() {
        let (mut backlog, start) = (Backlog::default(), Instant::now());
        for seq in 1..=3_000 {
            assert!(
                !(backlog.may_be_due(seq, start) && backlog.is_due(seq, 1_000, true, start)),
                "{seq}"
            );
        }
        assert!(!backlog.may_be_due(3_001, start));
        assert!(
            backlog.may_be_due(3_001, start + BUSY)
                && backlog.is_due(3_001, 1_000, true, start + BUSY)
        );
    }
}
