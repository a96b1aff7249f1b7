//! Old events, compressed: those far enough behind the head move from `events` into blocks in
//! `archive`, and are read from there as before.
//!
//! A block holds the rows `first` to `last`, deflated: one JSON array for each, with its columns in
//! order, but without `seq`, which follows from its position, and without the hash, which follows
//! from the chain. `hash_before` and `hash_after` are the ends of the block's part of the chain.
//! Rows with an idempotency key can still be read by themselves in `archived_keys`, for as many
//! calls as are ever looked for.

use std::io::Write;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::super::JournalError;
use super::super::chain::{Hash, Link, Row, damaged};
use super::{READ, SqliteJournal, read_row};
use crate::state::limit::KEYS_REMEMBERED;

/// Number of the newest events that stay as they are: they are read at every start and by everybody
/// who listens.
pub(super) const RECENT: u64 = 10_000;
/// Events in one block: few enough that moving them does not keep others waiting.
pub const BLOCK: u64 = 512;

pub(super) const SCHEMA: &str = "
    CREATE TABLE archive(
        first INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        hash_before BLOB NOT NULL,
        hash_after BLOB NOT NULL,
        rows BLOB NOT NULL
    ) STRICT;
    CREATE TABLE archived_keys(
        seq INTEGER PRIMARY KEY,
        batch_id TEXT NOT NULL,
        v INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        participant TEXT NOT NULL,
        agent TEXT,
        idem_key TEXT,
        idem_params TEXT,
        body TEXT NOT NULL,
        hash BLOB NOT NULL,
        hash_before BLOB NOT NULL
    ) STRICT;";

const OLDEST: &str = "SELECT min(seq) FROM events";

const FIND: &str = "
    SELECT first, last, hash_before, hash_after, rows FROM archive WHERE first <= ?1 ORDER BY \
                    first DESC LIMIT 1";

const KEEP_KEYS: &str = "
    INSERT INTO archived_keys SELECT *,
        COALESCE((SELECT hash FROM events AS previous WHERE previous.seq = events.seq - 1), ?3)
    FROM events WHERE seq BETWEEN ?1 AND ?2 AND idem_key IS NOT NULL";

const COUNT_SAVED: &str = "
    INSERT INTO meta(key, value) VALUES ('archive_saves', CAST(?1 AS TEXT))
    ON CONFLICT(key) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + ?1 AS TEXT)";

const FORGET_KEYS: &str = "DELETE FROM archived_keys WHERE seq < ?1";

/// The columns of a row as a block has them.
type Columns =
    (String, u32, String, i64, String, Option<String>, Option<String>, Option<String>, String);

/// Events that were read and compressed, and are not yet moved.
pub struct Block {
    before: Link,
    last: Link,
    /// The seq before which no key is looked for any more. Found beforehand, because it takes too
    /// long under the lock.
    first_keyed: i64,
    /// The length of the columns' text in bytes, and that text compressed.
    columns: usize,
    rows: Vec<u8>,
}

impl SqliteJournal {
    /// The seq from which on there is a block to archive.
    pub fn archives_at(&self) -> Result<u64, JournalError> {
        let oldest: Option<i64> =
            self.connection.prepare_cached(OLDEST)?.query_row([], |row| row.get(0))?;
        Ok(oldest.map_or(1, i64::cast_unsigned) + RECENT + BLOCK)
    }

    /// The oldest events, compressed, if there are enough that are old enough.
    pub fn next_block(&self) -> Result<Option<Block>, JournalError> {
        let due_at = self.archives_at()?;
        if super::head(&self.connection, self.root())?.seq < due_at {
            return Ok(None);
        }
        let before = self.link_at(due_at - RECENT - BLOCK - 1)?;
        let (mut link, mut text) = (before, Vec::new());
        let mut statement = self.connection.prepare_cached(READ)?;
        let mut rows = statement.query(params![before.seq.cast_signed(), BLOCK.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let (row, hash) = read_row(row)?;
            link = row.verify(&link, &hash)?;
            let Row {
                batch_id,
                v,
                kind,
                at_ms,
                participant,
                agent,
                idem_key,
                idem_params,
                body,
                ..
            } = row;
            let columns: Columns =
                (batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body);
            serde_json::to_writer(&mut text, &columns)?;
        }
        let first_keyed = self.first_keyed(KEYS_REMEMBERED)?;
        // In one write: for each of the many small pieces in which JSON is written, the encoder
        // would clear a whole buffer.
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text)?;
        Ok(Some(Block {
            before,
            last: link,
            first_keyed,
            columns: text.len(),
            rows: encoder.finish()?,
        }))
    }

    /// Moves what `block` holds into the archive, unless another process has done it. The caller
    /// holds the journal's lock.
    pub fn archive(&mut self, block: &Block) -> Result<(), JournalError> {
        let (before, last) = (block.before, block.last);
        let (first, end) = ((before.seq + 1).cast_signed(), last.seq.cast_signed());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let oldest: Option<i64> = transaction.query_row(OLDEST, [], |row| row.get(0))?;
        if oldest != Some(first) {
            return Ok(());
        }
        transaction.execute(
            "INSERT INTO archive VALUES (?1, ?2, ?3, ?4, ?5)",
            params![first, end, before.hash, last.hash, block.rows],
        )?;
        transaction.execute(KEEP_KEYS, params![first, end, before.hash])?;
        transaction.execute(FORGET_KEYS, [block.first_keyed])?;
        transaction.execute("DELETE FROM events WHERE seq BETWEEN ?1 AND ?2", [first, end])?;
        transaction
            .execute(COUNT_SAVED, [block.columns.saturating_sub(block.rows.len()) as i64])?;
        Ok(transaction.commit()?)
    }
}

/// The archived events after `link`, as far as they are in one block, each with its own link. Empty
/// when the archive does not have them.
pub(super) fn rows_after(
    connection: &Connection,
    link: &Link,
) -> Result<Vec<(Row, Link)>, JournalError> {
    let Some((before, end, rows)) = find(connection, link.seq + 1)? else { return Ok(Vec::new()) };
    let rows = unpacked(before, end, &rows)?;
    let known = if before.seq == link.seq {
        Some(before)
    } else {
        rows.iter().map(|(_, at)| *at).find(|at| at.seq == link.seq)
    };
    if known != Some(*link) {
        return Err(damaged(link.seq, "it is not the event that the archive goes on from"));
    }
    Ok(rows.into_iter().filter(|(row, _)| row.seq > link.seq).collect())
}

/// The link of archived event `seq`.
pub(super) fn link_at(connection: &Connection, seq: u64) -> Result<Option<Link>, JournalError> {
    let Some((before, end, rows)) = find(connection, seq)? else { return Ok(None) };
    if end.seq == seq {
        return Ok(Some(end));
    }
    Ok(unpacked(before, end, &rows)?.into_iter().map(|(_, link)| link).find(|link| link.seq == seq))
}

/// The block that event `seq` is in: the links before and at its end, and its rows.
fn find(connection: &Connection, seq: u64) -> Result<Option<(Link, Link, Vec<u8>)>, JournalError> {
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row([seq.cast_signed()], |row| {
        let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
        let before = Link { seq: first.cast_unsigned().saturating_sub(1), hash: row.get(2)? };
        Ok((before, Link { seq: last.cast_unsigned(), hash: row.get(3)? }, row.get(4)?))
    });
    Ok(found.optional()?.filter(|(_, end, _)| end.seq >= seq))
}

/// Unpacks the rows of a block, which must lead from one end of its part of the chain to the other.
fn unpacked(before: Link, end: Link, deflated: &[u8]) -> Result<Vec<(Row, Link)>, JournalError> {
    let wrong =
        |seq, detail: &str| damaged(seq, format!("the archive's block that it is in {detail}"));
    let mut rows = Vec::new();
    let mut link = before;
    let columns = serde_json::Deserializer::from_reader(std::io::BufReader::new(
        DeflateDecoder::new(deflated),
    ));
    for columns in columns.into_iter::<Columns>() {
        let seq = link.seq + 1;
        let (batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body) =
            columns.map_err(|_| wrong(seq, "cannot be read"))?;
        let row =
            Row { seq, batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body };
        let hash: Hash = row.hash(&link.hash);
        link = Link { seq, hash };
        rows.push((row, link));
    }
    if link == end { Ok(rows) } else { Err(wrong(before.seq + 1, "is not what was put there")) }
}
