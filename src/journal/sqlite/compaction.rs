//! Old events, compressed: those far enough behind the head move from `events` into blocks in
//! `archive`, and are read from there as before.
//!
//! A block holds the rows `first` to `last`, deflated: one JSON array for each, with its columns in
//! order, but without `seq`, which follows from its position, and without the hash, which follows
//! from the chain. `hash_before` and `hash_after` are the ends of the block's part of the chain.
//! Rows with an idempotency key can still be read by themselves in `archived_keys`, for as many
//! calls as are ever looked for.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::super::JournalError;
use super::super::chain::{Hash, Link, Row, damaged};
use super::{READ, SqliteJournal, purge, read_row};
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
            link = self.verified(&row, &link, &hash)?;
            push(row, &mut text)?;
        }
        let first_keyed = self.first_keyed(KEYS_REMEMBERED)?;
        let (columns, rows) = (text.len(), deflated(&text)?);
        Ok(Some(Block { before, last: link, first_keyed, columns, rows }))
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

/// Appends the columns of a row to the text of a block.
fn push(row: Row, text: &mut Vec<u8>) -> Result<(), JournalError> {
    let Row { batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body, .. } = row;
    let columns: Columns =
        (batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body);
    Ok(serde_json::to_writer(text, &columns)?)
}

/// In one write: for each of the many small pieces in which JSON is written, the encoder would clear
/// a whole buffer.
fn deflated(text: &[u8]) -> Result<Vec<u8>, JournalError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    Ok(encoder.finish()?)
}

/// Puts `rows` in the place of archived ones, whose tombstones are written already and are not yet
/// followed.
pub(super) fn replace(
    connection: &Connection,
    rows: &BTreeMap<u64, &Row>,
) -> Result<(), JournalError> {
    let mut next = rows.keys().next().copied();
    while let Some(seq) = next {
        let last = match find(connection, seq)? {
            None => seq,
            Some((before, end, block)) => {
                let mut text = Vec::new();
                for (number, row) in (before.seq + 1..).zip(columns(&block)) {
                    let columns = row.map_err(|_| damaged(number, UNREADABLE))?;
                    match rows.get(&number) {
                        Some(row) => push((*row).clone(), &mut text)?,
                        None => serde_json::to_writer(&mut text, &columns)?,
                    }
                }
                connection.execute(
                    "UPDATE archive SET rows = ?2 WHERE first = ?1",
                    params![(before.seq + 1).cast_signed(), deflated(&text)?],
                )?;
                end.seq
            }
        };
        next = rows.range(last + 1..).next().map(|(seq, _)| *seq);
    }
    Ok(())
}

/// The archived events after `link`, as far as they are in one block, each with its own link. Empty
/// when the archive does not have them.
pub(super) fn rows_after(
    connection: &Connection,
    link: &Link,
) -> Result<Vec<(Row, Link)>, JournalError> {
    let Some((before, end, rows)) = find(connection, link.seq + 1)? else { return Ok(Vec::new()) };
    let rows = unpacked(connection, before, end, &rows)?;
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
    Ok(unpacked(connection, before, end, &rows)?
        .into_iter()
        .map(|(_, link)| link)
        .find(|link| link.seq == seq))
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
fn unpacked(
    connection: &Connection,
    before: Link,
    end: Link,
    deflated: &[u8],
) -> Result<Vec<(Row, Link)>, JournalError> {
    let tombstones = purge::tombstones(connection, before.seq + 1, end.seq)?;
    let mut rows = Vec::new();
    let mut link = before;
    for columns in columns(deflated) {
        let seq = link.seq + 1;
        let (batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body) =
            columns.map_err(|_| damaged(seq, UNREADABLE))?;
        let row =
            Row { seq, batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body };
        let hash: Hash = row.hash(&link.hash);
        let purged = tombstones.get(&seq).filter(|tombstone| tombstone.content == hash);
        link = Link { seq, hash: purged.map_or(hash, |tombstone| tombstone.hash) };
        rows.push((row, link));
    }
    if link == end { Ok(rows) } else { Err(damaged(before.seq + 1, OTHER)) }
}

const UNREADABLE: &str = "the archive's block that it is in cannot be read";
const OTHER: &str = "the archive's block that it is in is not what was put there";

/// The columns of each row of a block.
fn columns(deflated: &[u8]) -> impl Iterator<Item = serde_json::Result<Columns>> {
    let reader = std::io::BufReader::new(DeflateDecoder::new(deflated));
    serde_json::Deserializer::from_reader(reader).into_iter()
}
