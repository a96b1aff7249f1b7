//! The journal of one machine: `journal.db`, SQLite with a write-ahead log.
//!
//! Format 2: `meta` holds `board_id` and `format`; `events` has one row for each event that is not
//! in the archive (`compaction.rs`), with the event's JSON as its `body` and a `hash` as described
//! in `chain.rs`. Format 1 had no archive and is upgraded when it is opened. Format 3
//! has tombstones of purged rows (`purge.rs`). A journal that begins
//! with a state that has a history of its own has that state's `seq` as `base` in `meta`, and its
//! first event, an import of that state, has the next one. A deleted journal that a process has
//! made another of names that process as `superseded` in `meta`. While a process has the file open,
//! nothing in it but SQLite may open it: closing another handle would drop SQLite's locks.

mod compaction;
mod file;
mod purge;
mod room;
mod runs;
mod salvage;
mod stubs;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use fs_err as fs;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

pub use super::chain::Hash;
use super::chain::{Link, Row, damaged};
use super::{AppendError, BatchId, JournalError, check_sequence};
use crate::failpoint;
use crate::private;
use crate::state::event::Recorded;
use crate::state::run::rows::Rows;
pub use compaction::{BLOCK, Block};
use file::{
    BUSY_TIMEOUT, begin, checkpoint, close_alone, connect, identity_of, put_in_place,
    take_log_in_at_end, unreadable,
};
pub use file::{LOG_PAGES, set_up};
pub use purge::Cleaned;
pub use runs::SCHEMA as RUN_TABLES;
pub use salvage::{REMADE, set_aside};

pub const FILE_NAME: &str = "journal.db";
pub const LOG_NAME: &str = "journal.db-wal";
/// Highest format that this build knows: the one of a journal from which a text was purged.
pub const FORMAT: u32 = 3;
/// Format of a new journal.
const FORMAT_OF_NEW: u32 = 2;

/// What stands at the start of the log, and before each page in it, in bytes
/// (sqlite.org/walformat.html).
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// Estimated size of an events row without its body, in bytes.
const ABOUT_A_ROW: u64 = 128;

const SCHEMA: &str = "
    CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE events(
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
        hash BLOB NOT NULL
    ) STRICT;";

/// Upgrades format 1, whose indexes go: each is one more page that a commit writes, and what is
/// looked for is among the newest rows.
const FROM_FORMAT_1: &str = "
    DROP INDEX IF EXISTS events_batch;
    DROP INDEX IF EXISTS events_idem;
    UPDATE meta SET value = '2' WHERE key = 'format';";

const HEAD: &str = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1";

const INSERT: &str = "
    INSERT INTO events(seq, batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, \
                      body, hash)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

const READ: &str = "
    SELECT seq, batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body, hash
    FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2";

const KEYED: &str = "
    SELECT seq, batch_id, v, kind, at_ms, participant, agent, idem_key, idem_params, body, hash,
        COALESCE(
            (SELECT hash FROM events AS previous WHERE previous.seq = events.seq - 1),
            (SELECT hash_after FROM archive WHERE last = events.seq - 1))
    FROM events WHERE idem_key IS NOT NULL AND seq >= ?1
    UNION ALL SELECT * FROM archived_keys WHERE seq >= ?1
    ORDER BY seq";

const KEYS: &str = "
    SELECT seq, idem_key FROM events WHERE idem_key IS NOT NULL
    UNION ALL SELECT seq, idem_key FROM archived_keys
    ORDER BY seq DESC";

/// A batch is looked for right after its append, so among the newest rows.
const HOLDS: &str = "
    SELECT 1 FROM (SELECT batch_id FROM events ORDER BY seq DESC LIMIT 10000) WHERE batch_id = ?1 \
                     LIMIT 1";

/// Device and inode.
pub type Identity = (u64, u64);

/// Makes durable what is in the log of the journal in `dir`, whoever wrote it.
pub fn sync_log(dir: &Path) -> Result<(), JournalError> {
    match private::read(dir, LOG_NAME).map_err(io::Error::from)? {
        Some(log) => Ok(log.sync_data()?),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn write_out(log: &File) {
    use std::os::fd::AsRawFd;

    // SAFETY: the descriptor stays open while `log` is borrowed, and the call takes numbers and no
    // pointer.
    let begun =
        unsafe { libc::sync_file_range(log.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if begun != 0 {
        tracing::debug!(error = %io::Error::last_os_error(), "the log is written out when it is synced");
    }
}

#[cfg(not(target_os = "linux"))]
fn write_out(_: &File) {}

#[derive(Debug)]
pub struct SqliteJournal {
    connection: Connection,
    identity: Identity,
    has_log: bool,
    /// The seq before the first event.
    base: u64,
    /// The newest event that this process has read or written. What comes after it must be chained
    /// to it, so a history that was exchanged under a running process is noticed.
    last: Cell<Option<Link>>,
    /// The newest event in the journal, while the transaction of an append is open.
    begun: Cell<Option<Link>>,
    /// The log, if this process syncs it itself, see [`SqliteJournal::defer_syncs`].
    log: Option<Arc<File>>,
    /// Length of a page in the log with what stands before it, in bytes.
    frame: u64,
    /// The seq up to which everything is durable, as far as is known.
    durable: Cell<u64>,
    /// Whether a sync has failed: the kernel may have forgotten what it was for.
    has_failed: Cell<bool>,
    /// Estimated size of the events that were read or written, in bytes.
    passed: Cell<u64>,
}

impl SqliteJournal {
    /// Opens the journal in `dir`; [`JournalError::NotFound`] when there is none.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join(FILE_NAME);
        let identity = identity_of(&path)?;
        if fs::symlink_metadata(&path)?.len() == 0 {
            // SQLite would begin a new database in it.
            return Err(damaged(0, "the file is empty"));
        }
        room::of_index(dir)?;
        let (connection, has_log) = connect(&path).map_err(|error| unreadable(&path, error))?;
        let mut journal = Self {
            connection,
            identity,
            has_log,
            base: 0,
            last: Cell::new(None),
            begun: Cell::default(),
            log: None,
            frame: 0,
            durable: Cell::default(),
            has_failed: Cell::default(),
            passed: Cell::default(),
        };
        let opened = journal.check_format().and_then(|found| journal.bring_up(found));
        opened.map_err(|error| unreadable(&path, error))?;
        if identity_of(&path)? != identity {
            return Err(JournalError::NotFound { path });
        }
        if let Some(base) = journal.meta("base")? {
            journal.base = base
                .parse()
                .map_err(|_| damaged(0, format!("it cannot begin behind event {base}")))?;
        }
        journal.bring_up_runs()?;
        journal.bring_up_stubs()?;
        Ok(journal)
    }

    /// Makes the journal of a new board, readable by its owner only. The caller holds the board's
    /// lock.
    pub fn create(dir: &Path, board_id: &str) -> Result<Self, JournalError> {
        Self::create_with(dir, board_id, &BatchId::new(""), &[])
    }

    /// Makes the journal of a new board with its first events already in it. If these do not begin
    /// with event 1, the first must bring along everything before it.
    pub fn create_with(
        dir: &Path,
        board_id: &str,
        batch: &BatchId,
        events: &[Recorded],
    ) -> Result<Self, JournalError> {
        let base = events.first().map_or(0, |first| first.seq.saturating_sub(1));
        check_sequence(base, events)?;
        let path = dir.join(FILE_NAME);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(JournalError::Exists { path });
        }
        room::of_index(dir)?;
        let unfinished = begin(dir)?;
        initialise(&unfinished, board_id, base, batch, events)?;
        failpoint::hit("create")?;
        put_in_place(&unfinished, dir)
    }

    /// Device and inode of the database.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether there is a log; it and its index are there for as long as this is open.
    pub fn has_log(&self) -> bool {
        self.has_log
    }

    /// The seq before the first event.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// From here on a commit is over when it is written, and durable when this process, or another,
    /// has settled it: so one sync serves the commits of many (group commit), and others commit
    /// while it is under way. If there is no log, SQLite goes on syncing each commit.
    pub fn defer_syncs(&mut self, dir: &Path) -> Result<(), JournalError> {
        if self.has_log
            && let Some(log) = private::read(dir, LOG_NAME).map_err(io::Error::from)?
        {
            self.connection.pragma_update(None, "synchronous", "NORMAL")?;
            let page: u32 = self.connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            (self.log, self.frame) = (Some(Arc::new(log)), FRAME_HEADER + u64::from(page));
        }
        Ok(())
    }

    /// Reopens the journal, and remembers whether a sync has failed; `None` when another file is in
    /// its place.
    pub fn reopened(&self, dir: &Path) -> Result<Option<Self>, JournalError> {
        let mut journal = Self::open(dir)?;
        if journal.identity != self.identity {
            return Ok(None);
        }
        journal.has_failed.set(self.has_failed.get());
        journal.defer_syncs(dir)?;
        Ok(Some(journal))
    }

    /// The log, for another thread to sync; [`SqliteJournal::synced`] must then be given the
    /// result. `None` when SQLite syncs it, or a sync has failed.
    pub fn log(&self) -> Option<Arc<File>> {
        self.log.as_ref().filter(|_| !self.has_failed.get()).map(Arc::clone)
    }

    /// The seq up to which everything is durable, as far as this process knows.
    pub fn durable(&self) -> u64 {
        self.durable.get()
    }

    pub fn is_settled(&self, seq: u64) -> bool {
        self.durable.get() >= seq && !self.has_failed.get()
    }

    /// Notes that the events up to `seq` are durable.
    pub fn settled(&self, seq: u64) {
        self.durable.set(self.durable.get().max(seq));
    }

    /// Takes the result of a sync of the log that began after the events up to `seq` were written.
    /// If a sync has failed, another that succeeds would prove nothing, so they are
    /// checkpointed into the database instead.
    pub fn synced(&self, seq: u64, synced: io::Result<()>) -> Result<(), JournalError> {
        if let Err(error) = synced {
            tracing::error!(%error, "the journal's log could not be synced");
            self.has_failed.set(true);
        }
        if self.has_failed.get() {
            return self.settle_for_good(seq);
        }
        self.settled(seq);
        Ok(())
    }

    /// Asks the kernel to begin writing the log to the disk, so that settling it takes less time.
    /// That proves nothing, and where it is not possible nothing is lost.
    pub fn hasten(&self) {
        if let Some(log) = self.log() {
            write_out(&log);
        }
    }

    /// Makes the events up to `seq` durable, which this process has read or written. A process that
    /// was killed between writing its log and syncing it may have left events that the next one
    /// finds and a power loss would undo.
    pub fn settle(&self, seq: u64) -> Result<(), JournalError> {
        if self.is_settled(seq) {
            return Ok(());
        }
        match self.log() {
            None if self.has_failed.get() => return self.settle_for_good(seq),
            None => self.take_log_in("FULL")?,
            Some(log) => return self.synced(seq, log.sync_data()),
        }
        self.settled(seq);
        Ok(())
    }

    /// Makes the events up to `seq` durable and truncates the log, so that what cannot be read will
    /// not come back: an append that failed may still be in the log, after its end.
    pub fn settle_for_good(&self, seq: u64) -> Result<(), JournalError> {
        match self.take_log_in("TRUNCATE") {
            Err(JournalError::Busy) => return Err(JournalError::Busy),
            // The kernel reports a failure once through each handle, so SQLite may have met the one
            // that is already known.
            Err(_) => self.take_log_in("TRUNCATE")?,
            Ok(()) => {}
        }
        self.has_failed.set(false);
        self.settled(seq);
        Ok(())
    }

    fn take_log_in(&self, mode: &str) -> Result<(), JournalError> {
        // SQLite does not checkpoint while a transaction is open.
        self.end_append();
        checkpoint(&self.connection, mode)
    }

    /// The size that the database would have without the archive, including what is still in its
    /// log, in bytes. It grows with every event.
    pub fn bytes(&self) -> Result<u64, JournalError> {
        let pragma = "
            SELECT (page_count - freelist_count) * page_size
                + COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'archive_saves'), \
                      0)
            FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        let mut statement = self.connection.prepare_cached(pragma)?;
        Ok(statement.query_row([], |row| row.get::<_, i64>(0))?.cast_unsigned())
    }

    /// A number that rises by about as many bytes as the journal does, for what this process reads
    /// and writes. Costs nothing to ask for.
    pub fn passed(&self) -> u64 {
        self.passed.get()
    }

    fn pass(&self, row: &Row) {
        self.passed.set(self.passed.get() + row.body.len() as u64 + ABOUT_A_ROW);
    }

    /// Writes the journal as it is at this moment to a new file. Others need not stop for that.
    pub fn copy_to(&self, path: &Path) -> Result<(), JournalError> {
        // File names need not be UTF-8, and SQLite does not check that.
        let name = ToSqlOutput::Borrowed(ValueRef::Text(path.as_os_str().as_bytes()));
        self.connection.execute("VACUUM INTO ?1", [name])?;
        Ok(())
    }

    /// Checks that the log is as long as its index says. If it was cut off under this process,
    /// SQLite would go on behind its end, and nothing from there on would be found after a crash.
    pub fn check_log(&self) -> Result<(), JournalError> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut frames = self.connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
        let frames: u64 = frames.query_row([], |row| row.get::<_, i64>(1))?.try_into().unwrap_or(0);
        if frames == 0 || log.metadata()?.len() >= LOG_HEADER + frames * self.frame {
            return Ok(());
        }
        let detail = "the journal's log was cut off while callboard was running".to_owned();
        Err(JournalError::Damaged { seq: self.durable.get(), detail })
    }

    /// Opens the transaction of the next append, so that nothing comes between what is read from
    /// here on and the append. Waits for whoever holds SQLite's own lock, even if nothing will
    /// be appended.
    pub fn begin_append(&self) -> Result<(), JournalError> {
        let (transaction, head) = self.begin()?;
        self.begun.set(Some(head));
        // The transaction stays open.
        std::mem::forget(transaction);
        Ok(())
    }

    /// Begins a transaction; also returns the newest event.
    fn begin(&self) -> Result<(Transaction<'_>, Link), rusqlite::Error> {
        let transaction = Transaction::begin(&self.connection)?;
        let head = head(&self.connection, self.root())?;
        Ok((transaction, head))
    }

    /// Ends the transaction that [`SqliteJournal::begin_append`] opened, if no append has used it.
    pub fn end_append(&self) {
        if self.begun.take().is_some() {
            roll_back(&self.connection);
        }
    }

    /// Appends like [`append`](Self::append), and also writes what follows from the events to the tables
    /// of runs.
    pub fn append_with(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        of_runs: &Rows,
    ) -> Result<(), AppendError> {
        check_sequence(expected, events).map_err(AppendError::Failed)?;
        let rows =
            events.iter().map(|recorded| Row::of(recorded, batch)).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(AppendError::Failed)?;
        let known = self.last.get();
        let (transaction, mut link) = match self.begun.take() {
            Some(head) => (Transaction(&self.connection), head),
            None => self.begin().map_err(failed)?,
        };
        if link.seq != expected {
            return Err(AppendError::Conflict { head: link.seq });
        }
        if salvage::is_marked(&self.connection).map_err(failed)? {
            return Err(AppendError::Failed(JournalError::Superseded));
        }
        if known.is_some_and(|known| known.seq == link.seq && known != link) {
            return Err(AppendError::Failed(damaged(
                link.seq,
                "it is not the event that this process knows",
            )));
        }
        for row in &rows {
            self.pass(row);
            link = insert(&self.connection, row, &link).map_err(failed)?;
        }
        runs::write(&self.connection, of_runs).map_err(failed)?;
        failpoint::hit("before-commit").map_err(failed)?;
        failpoint::hit("commit").map_err(unknown)?;
        transaction.commit().map_err(unknown)?;
        failpoint::hit("after-commit").map_err(unknown)?;
        self.last.set(Some(link));
        if self.log.is_none() && !rows.is_empty() {
            self.settled(link.seq);
        }
        take_log_in_at_end(&self.connection, true);
        Ok(())
    }

    fn check_format(&self) -> Result<u32, JournalError> {
        let found = self.meta("format")?.and_then(|format| format.parse().ok()).unwrap_or(0);
        match found {
            1..=FORMAT => Ok(found),
            0 => Err(damaged(0, "the journal does not say its format")),
            found => Err(JournalError::NewerFormat { found, supported: FORMAT }),
        }
    }

    fn bring_up(&mut self, found: u32) -> Result<(), JournalError> {
        if found >= FORMAT_OF_NEW {
            return Ok(());
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let format: String =
            transaction
                .query_row("SELECT value FROM meta WHERE key = 'format'", [], |row| row.get(0))?;
        // Another process may have done it meanwhile.
        if format == found.to_string() {
            transaction.execute_batch(compaction::SCHEMA)?;
            transaction.execute_batch(FROM_FORMAT_1)?;
        }
        Ok(transaction.commit()?)
    }

    fn meta(&self, key: &str) -> Result<Option<String>, JournalError> {
        let mut statement =
            self.connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// The link of event `after`, from memory or from the file.
    fn link_at(&self, after: u64) -> Result<Link, JournalError> {
        if after <= self.base {
            return Ok(self.root());
        }
        if let Some(last) = self.last.get().filter(|last| last.seq == after) {
            return Ok(last);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT seq, hash FROM events WHERE seq = ?1")?;
        let link = statement.query_row([after.cast_signed()], read_link).optional()?;
        let link =
            if link.is_none() { compaction::link_at(&self.connection, after)? } else { link };
        link.ok_or_else(|| damaged(after, "it is missing"))
    }

    /// The link of a row that is what was written after `previous`, or was purged since.
    fn verified(&self, row: &Row, previous: &Link, stored: &[u8]) -> Result<Link, JournalError> {
        row.verify(previous, stored)
            .or_else(|_| purge::link_of(&self.connection, row, previous, stored))
    }

    /// Passes at most `limit` rows after `link` to `take`, each verified and with its own link,
    /// until `take` breaks; returns the last link.
    fn rows_after(
        &self,
        mut link: Link,
        limit: usize,
        mut take: impl FnMut(Row, &Link) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<Link, JournalError> {
        let mut missing = limit;
        loop {
            let mut statement = self.connection.prepare_cached(READ)?;
            let at_most = i64::try_from(missing).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![link.seq.cast_signed(), at_most])?;
            let mut gap = None;
            while let Some(row) = rows.next()? {
                let (row, hash) = read_row(row)?;
                if row.seq > link.seq + 1 {
                    gap = Some((row, hash));
                    break;
                }
                link = self.verified(&row, &link, &hash)?;
                if take(row, &link)?.is_break() {
                    return Ok(link);
                }
                missing -= 1;
            }
            let Some((row, hash)) = gap else { return Ok(link) };
            let archived = compaction::rows_after(&self.connection, &link)?;
            if archived.is_empty() {
                // Fails, and says what is missing.
                return row.verify(&link, &hash);
            }
            for (row, at) in archived.into_iter().take(missing) {
                link = at;
                if take(row, &link)?.is_break() {
                    return Ok(link);
                }
                missing -= 1;
            }
            if missing == 0 {
                return Ok(link);
            }
        }
    }

    /// Passes the events of [`read_from`](Self::read_from) to `take` one by one, until it
    /// breaks, so that large events are never in memory together.
    pub fn each_from(
        &self,
        after: u64,
        limit: usize,
        mut take: impl FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), JournalError> {
        // When the transaction began, there was nothing after this event.
        if self.begun.get().is_some_and(|head| head.seq == after && self.last.get() == Some(head)) {
            return Ok(());
        }
        let link = self.rows_after(self.link_at(after)?, limit, |row, _| {
            self.pass(&row);
            Ok(take(row.recorded()?))
        })?;
        self.remember(link);
        Ok(())
    }

    /// The seq of the first event of the `newest` calls that have an idempotency key.
    fn first_keyed(&self, newest: usize) -> Result<i64, JournalError> {
        let mut statement = self.connection.prepare_cached(KEYS)?;
        let mut rows = statement.query([])?;
        let (mut keys, mut first) = (HashSet::new(), i64::MAX);
        while let Some(row) = rows.next()? {
            keys.insert(row.get::<_, String>(1)?);
            if keys.len() > newest {
                break;
            }
            first = row.get(0)?;
        }
        Ok(first)
    }

    /// What the first event is chained to.
    fn root(&self) -> Link {
        Link { seq: self.base, ..Link::ROOT }
    }

    /// Remembers `link` unless a later one is known.
    fn remember(&self, link: Link) {
        if self.last.get().is_none_or(|last| last.seq < link.seq) {
            self.last.set(Some(link));
        }
    }
}

impl SqliteJournal {
    /// The seq of the last event; 0 when there is none.
    pub fn head(&self) -> Result<u64, JournalError> {
        Ok(head(&self.connection, self.root())?.seq)
    }

    /// Appends all of `events` or none. `expected` is the `seq` before the first of them.
    pub fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
    ) -> Result<(), AppendError> {
        self.append_with(expected, batch, events, &Rows::default())
    }

    /// At most `limit` events that follow event `after`, oldest first, verified.
    pub fn read_from(&self, after: u64, limit: usize) -> Result<Vec<Recorded>, JournalError> {
        let mut events = Vec::new();
        self.each_from(after, limit, |recorded| {
            events.push(recorded);
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// Whether an append with this batch id was taken: the answer to [`AppendError::Unknown`].
    pub fn holds_batch(&self, batch: &BatchId) -> Result<bool, JournalError> {
        let mut statement = self.connection.prepare_cached(HOLDS)?;
        Ok(statement.exists([batch.as_str()])?)
    }

    /// The events of the `newest` calls that have an idempotency key, oldest first. All events of a
    /// call have its key.
    pub fn keyed(&self, newest: usize) -> Result<Vec<Recorded>, JournalError> {
        let mut statement = self.connection.prepare_cached(KEYED)?;
        let mut rows = statement.query([self.first_keyed(newest)?])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            let previous: Option<Hash> = row.get(11)?;
            let (row, hash) = read_row(row)?;
            // The first event has none before it.
            let hash_before = previous.unwrap_or(Link::ROOT.hash);
            self.verified(&row, &Link { seq: row.seq.wrapping_sub(1), hash: hash_before }, &hash)?;
            events.push(row.recorded()?);
        }
        Ok(events)
    }

    pub fn board_id(&self) -> Result<Option<String>, JournalError> {
        self.meta("board_id")
    }
}

/// The transaction of an append, with statements that are prepared once. Dropped before its COMMIT,
/// it rolls back.
struct Transaction<'a>(&'a Connection);

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection) -> Result<Self, rusqlite::Error> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> Result<(), rusqlite::Error> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        roll_back(self.0);
    }
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If this fails, SQLite has already rolled back.
        drop(connection.prepare_cached("ROLLBACK").and_then(|mut rollback| rollback.execute([])));
    }
}

fn initialise(
    path: &Path,
    board_id: &str,
    base: u64,
    batch: &BatchId,
    events: &[Recorded],
) -> Result<(), JournalError> {
    let (mut connection, _) = connect(path)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute_batch(compaction::SCHEMA)?;
    transaction.execute_batch(runs::SCHEMA)?;
    transaction.execute_batch(stubs::SCHEMA)?;
    let meta = "INSERT INTO meta(key, value) VALUES ('board_id', ?1), ('format', ?2)";
    transaction.execute(meta, params![board_id, FORMAT_OF_NEW.to_string()])?;
    if base > 0 {
        transaction
            .execute("INSERT INTO meta(key, value) VALUES ('base', ?1)", [base.to_string()])?;
    }
    let mut link = Link { seq: base, ..Link::ROOT };
    for recorded in events {
        link = insert(&transaction, &Row::of(recorded, batch)?, &link)?;
    }
    runs::mark_stale(&transaction)?;
    transaction.commit()?;
    close_alone(connection)
}

fn head(connection: &Connection, root: Link) -> Result<Link, rusqlite::Error> {
    let link = connection.prepare_cached(HEAD)?.query_row([], read_link).optional()?;
    Ok(link.unwrap_or(root))
}

fn read_link(row: &rusqlite::Row<'_>) -> Result<Link, rusqlite::Error> {
    Ok(Link { seq: row.get::<_, i64>(0)?.cast_unsigned(), hash: row.get(1)? })
}

fn read_row(row: &rusqlite::Row<'_>) -> Result<(Row, Vec<u8>), rusqlite::Error> {
    let columns = Row {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        batch_id: row.get(1)?,
        v: row.get(2)?,
        kind: row.get(3)?,
        at_ms: row.get(4)?,
        participant: row.get(5)?,
        agent: row.get(6)?,
        idem_key: row.get(7)?,
        idem_params: row.get(8)?,
        body: row.get(9)?,
    };
    Ok((columns, row.get(10)?))
}

fn insert(connection: &Connection, row: &Row, previous: &Link) -> Result<Link, rusqlite::Error> {
    let link = Link { seq: row.seq, hash: row.hash(&previous.hash) };
    insert_linked(connection, row, &link)?;
    Ok(link)
}

/// Inserts a row with the hash that it had, even if it was purged since.
fn insert_linked(connection: &Connection, row: &Row, link: &Link) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(INSERT)?.execute(params![
        row.seq.cast_signed(),
        row.batch_id,
        row.v,
        row.kind,
        row.at_ms,
        row.participant,
        row.agent,
        row.idem_key,
        row.idem_params,
        row.body,
        link.hash
    ])?;
    stubs::note(connection, row)
}

fn failed(error: impl Into<JournalError>) -> AppendError {
    AppendError::Failed(error.into())
}

fn unknown(error: impl Into<JournalError>) -> AppendError {
    AppendError::Unknown(error.into())
}

#[cfg(test)]
mod tests;
