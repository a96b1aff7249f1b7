//! The board on disk as one process holds it: lock, journal, state file; how it is caught up with
//! and written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::archive::{self, BoardArchive};
use super::commit::Placed;
use super::directory::{DirectoryError, JOURNAL};
use super::error::BoardError;
use super::history::JournalHistory;
use super::lock::BoardLock;
use super::{edits, naming};
use crate::config;
use crate::journal::sqlite::SqliteJournal;
use crate::journal::{AppendError, BatchId, JournalError};
use crate::ops::Reader;
use crate::private;
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::limit::KEYS_REMEMBERED;
use crate::state::policy::Policy;
use crate::state::run::rows::Rows;
use crate::state::time::Timestamp;
use crate::statefile::{self, FileIdentity, Home, Left, Projection, Unplaced};

pub(super) struct Board {
    pub state: State,
    pub config: config::Followed,
    pub lock: BoardLock,
    /// Rises when another file becomes the lock.
    pub lock_generation: u64,
    pub(super) dir: Home,
    pub(super) journal: SqliteJournal,
    pub(super) projection: Projection,
    /// The state file that was written and is not in its place yet.
    pub(super) unplaced: Option<io::Result<Option<Unplaced>>>,
    /// Why this process may only read, if the journal has events that this build does not know.
    pub(super) outdated: Option<String>,
    /// What was repaired, to be told in the next reply.
    pub report: Option<String>,
    /// Where this process saved its own state when it found another history in the board's place.
    pub(super) saved: Option<PathBuf>,
    /// The mark of the newest `callboard restore` when this process opened the board.
    pub(super) restored: Option<String>,
    /// Since when this process has been trying to regain a board that is gone, which one that
    /// knows more may rebuild.
    pub(super) awaited_since: Option<Instant>,
}

/// Most events that are read from the journal at once.
const READ_AT_ONCE: usize = 4_096;

impl Board {
    /// Has the next reply say `news`, too.
    pub(super) fn report(&mut self, news: String) {
        self.report = Some(match self.report.take() {
            Some(report) => format!("{report}; {news}"),
            None => news,
        });
    }

    pub(super) fn exists(dir: &Path) -> bool {
        dir.join(JOURNAL).exists()
    }

    /// Applies what others have appended. Returns the newest of these events: those of the last
    /// read.
    pub(super) fn catch_up(&mut self) -> Result<Vec<Recorded>, BoardError> {
        catch_up(&self.journal, &mut self.state, &mut self.outdated)
    }

    /// Whether this process may still write.
    pub(super) fn check_writable(&self) -> Result<(), BoardError> {
        match &self.outdated {
            Some(message) => Err(BoardError::Outdated(message.clone())),
            None => Ok(()),
        }
    }

    /// Refuses to go on under a name of the state file that is no longer the board's.
    pub(super) fn check_name(&self) -> Result<(), BoardError> {
        naming::check(&self.dir, &self.lock)
    }

    /// See [`SqliteJournal::check_log`].
    pub(super) fn check_log(&self) -> Result<(), BoardError> {
        Ok(self.journal.check_log()?)
    }

    /// See [`SqliteJournal::begin_append`]. Catching up or appending will meet any other error,
    /// too, and report it better.
    pub(super) fn begin_append(&self) -> Result<(), BoardError> {
        match self.journal.begin_append() {
            Err(error @ JournalError::Busy) => return Err(BoardError::NotWritten(error)),
            Err(error) => {
                tracing::debug!(%error, "the transaction of an append could not be opened")
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// See [`SqliteJournal::end_append`].
    pub(super) fn end_append(&self) {
        self.journal.end_append();
    }

    /// Appends the events that were applied after `expected` to the journal. On an error the caller
    /// rolls the state back.
    pub(super) fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        rows: &Rows,
    ) -> Result<(), AppendError> {
        let mut appended = self.journal.append_with(expected, batch, events, rows);
        if matches!(appended, Err(AppendError::Failed(JournalError::Superseded)))
            && self.lock.verify().is_ok()
        {
            self.journal.reinstate().map_err(AppendError::Failed)?;
            appended = self.journal.append_with(expected, batch, events, rows);
        }
        appended
    }

    /// Looks for the batch after COMMIT failed, which does not mean that nothing was written.
    pub(super) fn find(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError> {
        let found = self.journal.reopened(&self.dir).and_then(|reopened| {
            if let Some(journal) = reopened {
                self.journal = journal;
            }
            // Otherwise a later crash could undo, or bring back, what is answered now. After a
            // failed write there is nothing to bring back, and a full disk has no space for it.
            if !error.is_of_write() {
                self.journal.settle_for_good(self.journal.head()?)?;
            }
            self.journal.holds_batch(batch)
        });
        match found {
            Ok(true) => Ok(()),
            Ok(false) => Err(BoardError::NotWritten(error)),
            Err(_) => Err(BoardError::Unknown(error)),
        }
    }

    /// Whether everything in the replica is durable, as far as is known.
    pub(super) fn is_settled(&self) -> bool {
        self.journal.is_settled(self.state.seq())
    }

    /// Makes everything in the replica durable.
    pub(super) fn settle(&self) -> Result<(), BoardError> {
        if !self.is_settled()
            && let Some(shown) = self.shown()
        {
            self.journal.settled(shown);
        }
        self.journal.settle(self.state.seq()).map_err(BoardError::Unknown)
    }

    /// Does this for a read, which goes on if it fails: on a failing disk, what is known is better
    /// than nothing.
    pub(super) fn settle_for_reading(&self) {
        if let Err(error) = self.settle() {
            tracing::error!(%error, "a power loss may take back what is read");
        }
    }

    /// Makes the events up to `seq` durable.
    pub(super) fn settle_to(&self, seq: u64) -> Result<(), BoardError> {
        self.journal.settle(seq).map_err(BoardError::Unknown)
    }

    /// See [`SqliteJournal::hasten`].
    pub(super) fn hasten(&self) {
        if !self.is_settled() {
            self.journal.hasten();
        }
    }

    /// See [`SqliteJournal::log`].
    pub(super) fn log(&self) -> Option<Arc<File>> {
        self.journal.log()
    }

    /// See [`SqliteJournal::settled`].
    pub(super) fn settled(&self, seq: u64) {
        self.journal.settled(seq);
    }

    /// See [`SqliteJournal::synced`].
    pub(super) fn synced(&self, seq: u64, synced: io::Result<()>) -> Result<(), BoardError> {
        self.journal.synced(seq, synced).map_err(BoardError::Unknown)
    }

    /// The seq of the newest event that is known to be durable.
    pub(super) fn settled_seq(&self) -> u64 {
        self.journal.durable().min(self.state.seq())
    }

    /// The seq that the state file shows, if a projection was the last to put a file there; that
    /// event is durable then.
    pub(super) fn shown(&self) -> Option<u64> {
        let found = self.found()?;
        self.projection.shows(&found).or_else(|| self.lock.left().shows(&found))
    }

    /// Whether the state file shows, or was about to show, what this process does not know yet.
    pub(super) fn is_overtaken(&self, left: &Left) -> bool {
        left.seq > self.state.seq()
    }

    /// Whether there is a file in the state file's place that no projection has left there.
    pub(super) fn is_strange(&self) -> bool {
        let left = self.lock.left();
        FileIdentity::of(self.dir()).is_ok_and(|found| found.is_some_and(|file| !left.has(&file)))
    }

    /// Whether the state file shows everything in the replica, or is for others to deal with: an
    /// edit, or a file of which nothing is known.
    pub(super) fn is_shown(&self) -> bool {
        let Ok(found) = FileIdentity::of(&self.dir) else { return true };
        let Some(found) = found else { return false };
        let is_newest = |shown: Option<u64>| shown.is_some_and(|shown| shown >= self.state.seq());
        if is_newest(self.projection.shows(&found)) {
            return true;
        }
        let left = self.lock.left();
        is_newest(left.shows(&found)) || !left.files.contains(&found)
    }

    /// Brings the state file to the head, if it is behind.
    pub(super) fn project(&mut self) -> io::Result<()> {
        // No power loss may leave the state file ahead of the journal.
        self.settle().map_err(io::Error::other)?;
        let (board_id, seq) = (&self.state.board().board_id, self.state.seq());
        match statefile::seq_of(&self.dir) {
            Ok(Some(shown))
                if shown.board_id == *board_id && shown.seq == seq && !self.is_strange() =>
            {
                Ok(())
            }
            _ => edits::write(&mut self.projection, &mut self.state, &self.lock),
        }
    }

    /// Writes a file that shows the present state, unless the one in place does. The caller holds
    /// the state file's lock until the file is placed or given up, and has read `left` under
    /// it.
    pub(super) fn prepare_show(&mut self, left: Left) {
        self.unplaced = Some(self.prepared(left));
    }

    fn prepared(&mut self, left: Left) -> io::Result<Option<Unplaced>> {
        self.check_name().map_err(io::Error::other)?;
        let found = FileIdentity::of(&self.dir)?;
        match found.and_then(|found| self.projection.shows(&found).or_else(|| left.shows(&found))) {
            Some(shown) if shown >= self.state.seq() => Ok(None),
            _ => self.projection.prepare(&mut self.state, found, left).map(Some),
        }
    }

    /// Checks that the files that were verified when the call began are still there. If the state
    /// file is the one that was left, it is enough that neither lock nor log was deleted; the
    /// next call notices a file that was only renamed.
    pub(super) fn verify_again(
        &self,
        found: Option<FileIdentity>,
        left: &Left,
    ) -> Result<(), DirectoryError> {
        let is_left = found.is_some_and(|found| left.files.contains(&found));
        let is_deleted =
            || self.lock.is_deleted() || self.log().is_some_and(|log| private::is_deleted(&log));
        if is_left && !is_deleted() { Ok(()) } else { self.lock.verify() }
    }

    /// The identity of the file in the state file's place, if there is one.
    pub(super) fn found(&self) -> Option<FileIdentity> {
        FileIdentity::of(&self.dir).ok().flatten()
    }

    /// Replaces the state file by the prepared one, whose events are durable.
    pub(super) fn show(&mut self) -> Placed {
        let prepared = self.unplaced.take().unwrap_or(Ok(None));
        let found = self.found();
        let verified = match &prepared {
            Ok(Some(prepared)) => self.verify_again(found, prepared.left()),
            _ => self.lock.verify(),
        };
        if let Err(error) = verified {
            self.unplaced = Some(prepared);
            self.give_up();
            // If the files could not be examined and are there all the same, the board will not be
            // put back, so the state file does not show this round.
            let is_replaced = matches!(error, DirectoryError::Replaced { .. });
            return Placed::Gone { unseen: (!is_replaced).then(|| error.to_string()) };
        }
        let (warning, shown) = match prepared {
            Ok(Some(prepared)) => {
                let warning = found.and_then(|found| self.keep_put_back(found, prepared.left()));
                let placed = self.projection.place(prepared, found, |left| self.lock.leave(left));
                (warning, placed.map(edits::say_kept))
            }
            Ok(None) => (None, Ok(())),
            Err(error) => (None, Err(error)),
        };
        Placed::Done { warning, unshown: shown.err().map(|error| error.to_string()) }
    }

    pub(super) fn give_up(&mut self) {
        if let Some(Ok(Some(unplaced))) = self.unplaced.take() {
            self.projection.give_up(unplaced);
        }
    }

    /// If the state file is an old one that somebody has put there, keeps it and returns a warning
    /// that says what to do with it.
    fn keep_put_back(&self, found: FileIdentity, left: &Left) -> Option<String> {
        if left.has(&found) {
            return None;
        }
        let happened = |seq: u64| Some(self.journal.read_from(seq - 1, 1).ok()?.first()?.at);
        let board_id = &self.state.board().board_id;
        match statefile::keep_put_back(&self.dir, board_id, left.seq, happened) {
            Ok(put_back) => put_back.map(|old| {
                let (seq, kept) =
                    (old.seq, old.kept.file_name().unwrap_or_default().display().to_string());
                format!(
                    "an old state file, of event {seq}, had been put back; it is kept as {kept}, \
                     and {} shows the present again; to go back to event {seq}: `callboard \
                     snapshot restore --seq {seq}` or restore_snapshot {{\"seq\": {seq}}}",
                    self.dir.name()
                )
            }),
            Err(error) => {
                tracing::warn!(%error, "whether the state file is an old one could not be seen");
                None
            }
        }
    }

    pub(super) fn dir(&self) -> &Home {
        &self.dir
    }

    /// A view of this board's archive, which can be used without the writer and the board's locks.
    pub(super) fn archive(&self, now: Timestamp) -> BoardArchive {
        self.settle_for_reading();
        BoardArchive {
            dir: self.dir.to_path_buf(),
            present: self.state.clone(),
            reader: Reader::Program,
            now,
            retention: archive::retention(self.config.policy()),
            journal_bytes: self.journal_bytes(),
        }
    }

    /// Size of the journal in bytes, see [`SqliteJournal::bytes`]; 0 when it cannot be told.
    pub(super) fn journal_bytes(&self) -> u64 {
        self.journal.bytes().unwrap_or_default()
    }

    /// See [`SqliteJournal::passed`].
    pub(super) fn journal_passed(&self) -> u64 {
        self.journal.passed()
    }

    /// The seq from which on there is a block of old events to archive.
    pub(super) fn archives_at(&self) -> Result<u64, JournalError> {
        self.journal.archives_at()
    }

    /// Size of the state file as this process last wrote it, in bytes.
    pub(super) fn state_bytes(&self) -> u64 {
        self.projection.bytes()
    }

    /// The state and the journal at once, for an operation that changes the one and may read the
    /// other.
    pub(super) fn split(&mut self) -> (&mut State, JournalHistory<'_>, &Policy) {
        let history =
            JournalHistory { journal: &self.journal, dir: &self.dir, head: self.state.seq() };
        (&mut self.state, history, self.config.policy())
    }
}

fn is_purge(recorded: &Recorded) -> bool {
    matches!(recorded.event, Event::Purged { .. })
}

/// Applies the events that the journal has after `state`.
pub(super) fn catch_up(
    journal: &SqliteJournal,
    state: &mut State,
    outdated: &mut Option<String>,
) -> Result<Vec<Recorded>, BoardError> {
    let (mut newest, mut at_once) = (Vec::new(), READ_AT_ONCE);
    loop {
        let events = match journal.read_from(state.seq(), at_once) {
            Ok(events) => events,
            Err(JournalError::UnknownKind { seq, kind, v }) => {
                *outdated = Some(JournalError::UnknownKind { seq, kind, v }.to_string());
                // The events before it can still be read.
                at_once = usize::try_from(seq - 1 - state.seq().max(journal.base()))
                    .unwrap_or(READ_AT_ONCE);
                if at_once == 0 {
                    return Ok(newest);
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for recorded in &events {
            state.apply(recorded)?;
            state.settle();
        }
        if events.iter().any(is_purge) {
            // What calls with a key created, and the keys, may have had the text.
            state.forget_calls();
            for recorded in journal.keyed(KEYS_REMEMBERED)? {
                if recorded.seq <= state.seq() {
                    state.remember(&recorded);
                }
            }
        }
        let last = events.len() < at_once;
        newest = events;
        if last {
            return Ok(newest);
        }
    }
}
