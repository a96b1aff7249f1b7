//! Purging: rows are written anew without a text that must be forgotten.
//!
//! A purged row keeps the hash by which the next one is chained to it. `purged` has a tombstone for
//! it: that hash, and the hash of what the row holds now, by which it is verified instead. The event
//! of the purge lists those hashes, and is chained like any other. From the first purge on the
//! journal has format 3, because older builds would take a purged row for a damaged one.
//!
//! SQLite leaves what it deletes in free pages and in the log, so afterwards the database is
//! written anew as a whole, and the log truncated.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};

use super::{BUSY_TIMEOUT, FORMAT, SqliteJournal, checkpoint, compaction, insert, runs, stubs};
use crate::failpoint;
use crate::journal::chain::{Hash, Link, Row};
use crate::journal::{BatchId, JournalError};
use crate::state::digest::hex;
use crate::state::event::{PurgedRow, Recorded};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS purged(
        seq INTEGER PRIMARY KEY,
        hash BLOB NOT NULL,
        content BLOB NOT NULL
    ) STRICT;";

const TOMBSTONE: &str = "INSERT INTO purged VALUES (?1, ?2, ?3)
    ON CONFLICT(seq) DO UPDATE SET content = ?3";

const RAISE: &str = "UPDATE meta SET value = ?1 WHERE key = 'format'";

/// How long to wait for readers of the log to end.
const PATIENCE: Duration = BUSY_TIMEOUT;

/// A row without the text.
pub struct Cleaned {
    row: Row,
    link: Link,
    content: Hash,
}

impl Cleaned {
    pub fn tombstone(&self) -> PurgedRow {
        PurgedRow { seq: self.link.seq, sha256: hex(&self.content) }
    }
}

impl SqliteJournal {
    /// The rows that `clean` changes: it is given a body in JSON, or another text, of each row.
    pub fn cleaned(
        &self,
        clean: impl Fn(&str, bool) -> Option<String>,
    ) -> Result<Vec<Cleaned>, JournalError> {
        let (mut cleaned, mut previous) = (Vec::new(), self.root());
        self.rows_after(previous, usize::MAX, |mut row, link| {
            let body = clean(&row.body, true);
            let key = row.idem_key.as_deref().and_then(|key| clean(key, false));
            if body.is_some() || key.is_some() {
                row.body = body.unwrap_or(row.body);
                row.idem_key = key.or(row.idem_key);
                let content = row.hash(&previous.hash);
                cleaned.push(Cleaned { row, link: *link, content });
            }
            previous = *link;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(cleaned)
    }

    /// Replaces the rows, appends `event`, and leaves nothing of what was there before in the
    /// database or its log. The caller holds the board's lock and has caught up.
    pub fn purge(
        &mut self,
        rows: &[Cleaned],
        event: Option<(&BatchId, &Recorded)>,
    ) -> Result<(), JournalError> {
        self.end_append();
        self.connection.pragma_update(None, "secure_delete", "ON")?;
        self.replace(rows, event)?;
        failpoint::hit("purged")?;
        self.bring_up_runs()?;
        self.forget_deleted()
    }

    fn replace(
        &mut self,
        rows: &[Cleaned],
        event: Option<(&BatchId, &Recorded)>,
    ) -> Result<(), JournalError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute(RAISE, [FORMAT.to_string()])?;
        for Cleaned { row, link, content } in rows {
            let seq = link.seq.cast_signed();
            transaction.execute(TOMBSTONE, params![seq, link.hash, content])?;
            for table in ["events", "archived_keys"] {
                transaction.execute(
                    &format!("UPDATE {table} SET body = ?2, idem_key = ?3 WHERE seq = ?1"),
                    params![seq, row.body, row.idem_key],
                )?;
            }
        }
        stubs::note_anew(&transaction, rows.iter().map(|one| &one.row))?;
        compaction::replace(
            &transaction,
            &rows.iter().map(|one| (one.link.seq, &one.row)).collect(),
        )?;
        let mut last = None;
        if let Some((batch, recorded)) = event {
            let head = super::head(&transaction, Link { seq: self.base, ..Link::ROOT })?;
            last = Some(insert(&transaction, &Row::of(recorded, batch)?, &head)?);
        }
        runs::mark_stale(&transaction)?;
        transaction.commit()?;
        if last.is_some() {
            self.last.set(last);
        }
        Ok(())
    }

    /// Writes the database anew, without its free pages. Then truncates the log, once no other
    /// process reads it.
    fn forget_deleted(&self) -> Result<(), JournalError> {
        self.connection.execute_batch("VACUUM")?;
        let start = Instant::now();
        loop {
            match checkpoint(&self.connection, "TRUNCATE") {
                Err(JournalError::Busy) if start.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(20));
                }
                done => return done,
            }
        }
    }

    /// The rows that were purged, in order, with what each must hold now.
    pub fn purged(&self) -> Result<Vec<PurgedRow>, JournalError> {
        let all = tombstones(&self.connection, 0, i64::MAX.cast_unsigned())?;
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(seq, tombstone)| PurgedRow { seq, sha256: hex(&tombstone.content) })
            .collect();
        all.sort_by_key(|row| row.seq);
        Ok(all)
    }
}

fn is_there(connection: &Connection) -> Result<bool, rusqlite::Error> {
    const TABLE: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'purged'";
    connection.prepare_cached(TABLE)?.exists([])
}

/// A tombstone: the hash by which a purged row is chained, and that of what it holds.
#[derive(Clone, Copy)]
pub(super) struct Tombstone {
    pub hash: Hash,
    pub content: Hash,
}

pub(super) fn tombstone(
    connection: &Connection,
    seq: u64,
) -> Result<Option<Tombstone>, rusqlite::Error> {
    Ok(tombstones(connection, seq, seq)?.remove(&seq))
}

/// The tombstones of the rows from `first` to `last`.
pub(super) fn tombstones(
    connection: &Connection,
    first: u64,
    last: u64,
) -> Result<HashMap<u64, Tombstone>, rusqlite::Error> {
    if !is_there(connection)? {
        return Ok(HashMap::new());
    }
    let mut statement = connection
        .prepare_cached("SELECT seq, hash, content FROM purged WHERE seq BETWEEN ?1 AND ?2")?;
    let found = statement.query_map([first.cast_signed(), last.cast_signed()], |row| {
        let tombstone = Tombstone { hash: row.get(1)?, content: row.get(2)? };
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), tombstone))
    })?;
    found.collect()
}

/// Copies the tombstones to another journal with the same rows.
pub(super) fn copy_tombstones(from: &Connection, to: &Connection) -> Result<(), rusqlite::Error> {
    let all = tombstones(from, 0, i64::MAX.cast_unsigned())?;
    if all.is_empty() {
        return Ok(());
    }
    to.execute_batch(SCHEMA)?;
    to.execute(RAISE, [FORMAT.to_string()])?;
    for (seq, Tombstone { hash, content }) in all {
        to.execute(TOMBSTONE, params![seq.cast_signed(), hash, content])?;
    }
    Ok(())
}

/// The link of a row whose own hash is not the stored one: it was purged, or is damaged.
pub(super) fn link_of(
    connection: &Connection,
    row: &Row,
    previous: &Link,
    stored: &[u8],
) -> Result<Link, JournalError> {
    if row.seq == previous.seq + 1
        && let Some(found) = tombstone(connection, row.seq)?
        && found.hash == stored
        && found.content == row.hash(&previous.hash)
    {
        return Ok(Link { seq: row.seq, hash: found.hash });
    }
    row.verify(previous, stored)
}
