//! Salvage of a journal that is damaged, or that was deleted while a process had it open: a deleted
//! file lives on in the connections that have it open, and all of these see the same events.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{
    FILE_NAME, SqliteJournal, begin, close_alone, compaction, connect, file::beside, head,
    initialise, insert_linked, purge, put_in_place, read_link, runs, take_log_in_at_end,
};
use crate::failpoint;
use crate::journal::chain::{Hash, Link, damaged};
use crate::journal::{BatchId, JournalError};
use crate::state::event::Recorded;
use crate::state::limit::KEYS_REMEMBERED;

const REINSTATE: &str = "DELETE FROM meta WHERE key = 'superseded'";
/// Most events that are read at once.
const READ_AT_ONCE: usize = 4_096;
/// The name of a complete copy of a journal that is about to be set aside.
pub const REMADE: &str = "journal.db.remade";

impl SqliteJournal {
    /// Passes the events after `after`, each verified, to `take`, up to the first that is not sound
    /// or for which it returns false. An error says why one was not sound.
    pub fn read_sound(
        &self,
        after: u64,
        mut take: impl FnMut(&Recorded) -> bool,
    ) -> Result<(), JournalError> {
        let (mut last, mut at_once) = (after, READ_AT_ONCE);
        loop {
            match self.read_from(last, at_once) {
                Ok(events) => {
                    let all = events.len() < at_once;
                    if !events.iter().all(&mut take) || all {
                        return Ok(());
                    }
                    last = events.last().map_or(last, |event| event.seq);
                }
                Err(error) if at_once == 1 => return Err(error),
                Err(_) => at_once = 1,
            }
        }
    }

    /// The hash of event `seq`; none when the journal does not have it.
    pub fn hash_of(&self, seq: u64) -> Result<Option<Hash>, JournalError> {
        let mut statement =
            self.connection.prepare_cached("SELECT seq, hash FROM events WHERE seq = ?1")?;
        let link = statement.query_row([seq.cast_signed()], read_link).optional()?;
        let link = if link.is_none() { compaction::link_at(&self.connection, seq)? } else { link };
        Ok(link.map(|link| link.hash))
    }

    /// Makes a journal of all that this connection sees in `dir`, where there is none.
    pub fn carry_over(&self, dir: &Path) -> Result<Self, JournalError> {
        let unfinished = begin(dir)?;
        self.copy_to(&unfinished)?;
        let (copy, _) = connect(&unfinished)?;
        copy.execute(REINSTATE, [])?;
        close_alone(copy)?;
        // SQLite does not sync a copy.
        fs::File::open(&unfinished)?.sync_all()?;
        let journal = put_in_place(&unfinished, dir)?;
        journal.read_sound(0, |_| true)?;
        Ok(journal)
    }

    /// Appends what `longer` has after the end of this journal, which must be the beginning of it.
    pub fn extend_from(&mut self, longer: &Self) -> Result<(), JournalError> {
        let root = self.root();
        extend(&mut self.connection, root, longer)?;
        self.bring_up_runs()
    }

    /// Checks that the file can be used apart from its events, too: its pages, and the idempotency
    /// keys. If not, the error is one of [`JournalError::is_damage`].
    pub fn check(&self) -> Result<(), JournalError> {
        let found: String =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(damaged(0, found.replace('\n', " ")));
        }
        match self.keyed(KEYS_REMEMBERED) {
            Ok(_) | Err(JournalError::UnknownKind { .. }) => Ok(()),
            Err(JournalError::Damaged { seq, detail }) => {
                Err(damaged(0, format!("of the idempotency key of event {seq}, {detail}")))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts another journal of the same events in the place of this one, whose events are sound,
    /// but not all else. This one is set aside. Old events are archived again in time. The
    /// caller holds the board's lock.
    pub fn remake(self, dir: &Path) -> Result<Option<PathBuf>, JournalError> {
        let unfinished = begin(dir)?;
        let board_id = self.board_id()?.unwrap_or_default();
        initialise(&unfinished, &board_id, self.base, &BatchId::new(""), &[])?;
        let (mut copy, _) = connect(&unfinished)?;
        extend(&mut copy, self.root(), &self)?;
        close_alone(copy)?;
        fs::File::open(&unfinished)?.sync_all()?;
        let remade = dir.join(REMADE);
        fs::rename(&unfinished, &remade)?;
        fs::File::open(dir)?.sync_all()?;
        self.abandon();
        let aside = set_aside(dir)?;
        failpoint::hit("remade")?;
        put_in_place(&remade, dir)?;
        Ok(aside)
    }

    /// Completes the remaking of a journal in which a process died after it had set the old one
    /// aside: puts the copy in place, if that is of this board and has the events up to `seq`,
    /// and is therefore not from an earlier time. Returns whether there is a journal now. The
    /// caller holds the board's lock.
    pub fn finish_remake(dir: &Path, board_id: &str, seq: u64) -> Result<bool, JournalError> {
        let remade = dir.join(REMADE);
        if fs::symlink_metadata(&remade).is_err() {
            return Ok(false);
        }
        let (copy, _) = connect(&remade)?;
        let of: String =
            copy.query_row("SELECT value FROM meta WHERE key = 'board_id'", [], |row| row.get(0))?;
        let is_newest = of == board_id && head(&copy, Link::ROOT)?.seq >= seq;
        close_alone(copy)?;
        if is_newest {
            put_in_place(&remade, dir)?;
        }
        Ok(is_newest)
    }

    /// Marks this journal, which was deleted, as superseded: from here on nobody appends to it, and
    /// `by` alone makes another of it. False when another process has done so before, unless it
    /// is to be done `anyway`.
    pub fn supersede(&self, by: &str, anyway: bool) -> Result<bool, JournalError> {
        let mark = "INSERT INTO meta(key, value) VALUES ('superseded', ?1)
            ON CONFLICT(key) DO UPDATE SET value = ?1 WHERE ?2 OR value = ?1";
        Ok(self.connection.execute(mark, params![by, anyway])? > 0)
    }

    /// Takes the mark back: the journal was put back in its place, so it is the board's again.
    pub fn reinstate(&self) -> Result<(), JournalError> {
        self.connection.execute(REINSTATE, [])?;
        Ok(())
    }

    /// Closes the journal without touching the files under its name, which may be another's by now.
    pub fn abandon(self) {
        take_log_in_at_end(&self.connection, false);
    }

    /// The first event, which must bring along everything before it.
    pub fn first(&self) -> Result<Recorded, JournalError> {
        let mut events = self.read_from(self.base, 1)?;
        events.pop().ok_or_else(|| damaged(self.base + 1, "it is missing"))
    }
}

/// Appends what `longer` has after the end of a journal that begins after `root`.
fn extend(
    connection: &mut Connection,
    root: Link,
    longer: &SqliteJournal,
) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let link = head(&transaction, root)?;
    longer.rows_after(link, usize::MAX, |row, at| {
        insert_linked(&transaction, &row, at)?;
        Ok(ControlFlow::Continue(()))
    })?;
    purge::copy_tombstones(&longer.connection, &transaction)?;
    runs::mark_stale(&transaction)?;
    Ok(transaction.commit()?)
}

/// Whether a process has superseded the journal, which was not in its place then.
pub(super) fn is_marked(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.prepare_cached("SELECT 1 FROM meta WHERE key = 'superseded'")?.exists([])
}

/// Renames the journal in `dir` with its log to `journal.db.quarantined-N`, as a database that can
/// be opened. No connection of this process may have it open, unless it is to be abandoned.
pub fn set_aside(dir: &Path) -> io::Result<Option<PathBuf>> {
    let path = dir.join(FILE_NAME);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let free = |number: &u64| {
        let aside = beside(&path, &format!(".quarantined-{number}"));
        ["", "-wal"].iter().all(|suffix| fs::symlink_metadata(beside(&aside, suffix)).is_err())
    };
    let number = (1..).find(free).unwrap_or(u64::MAX);
    let aside = beside(&path, &format!(".quarantined-{number}"));
    // The log last: alone it belongs to no database, and the database without it would be an older
    // one.
    for suffix in ["", "-shm", "-wal"] {
        match fs::rename(beside(&path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(Some(aside))
}
