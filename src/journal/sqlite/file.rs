//! The database file: opened and set up, begun under another name and put in place, closed, removed.

use fs_err::os::unix::fs::OpenOptionsExt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{FILE_NAME, Identity, SqliteJournal};
use crate::journal::JournalError;

/// Page size of a new journal, in bytes.
const PAGE: u32 = 2_048;
/// Pages in the log at which SQLite checkpoints: it copies them into the database and restarts the
/// log. Whoever commits waits for that, and most pages are written again and again, so with a long
/// log it happens less often and copies less in total.
pub const LOG_PAGES: u32 = 4_000;

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the database; also returns whether it has a log: some file systems cannot share the memory
/// of its index.
pub(super) fn connect(path: &Path) -> Result<(Connection, bool), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    take_log_in_at_end(&connection, false);
    // Otherwise SQLite prepares a statement again whenever its LIMIT is another, which is at every
    // commit.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let has_log = set_up(&connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok((connection, has_log))
}

/// Sets how commits are written, also for the database that the bench compares the journal with.
/// Returns whether there is a log.
pub fn set_up(connection: &Connection) -> Result<bool, rusqlite::Error> {
    // Affects a new journal only. A commit writes whole pages, and most events are a fraction of
    // one.
    connection.pragma_update(None, "page_size", PAGE)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
    )?;
    Ok(mode == "wal")
}

/// Sets whether the last connection checkpoints the write-ahead log when it is closed. One that
/// only reads must not: what is damaged is to be kept as it is.
pub(super) fn take_log_in_at_end(connection: &Connection, take: bool) {
    drop(connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !take));
}

pub(super) fn unreadable(path: &Path, error: impl Into<JournalError>) -> JournalError {
    match error.into() {
        JournalError::Sqlite(source) => JournalError::Unreadable { path: path.to_owned(), source },
        other => other,
    }
}

/// Begins a journal under another name, which it has until it is complete: a crash leaves no
/// journal without tables.
pub(super) fn begin(dir: &Path) -> io::Result<PathBuf> {
    let unfinished = dir.join(format!(".{FILE_NAME}.{}.tmp", std::process::id()));
    remove_database(&unfinished)?;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    Ok(unfinished)
}

pub(super) fn put_in_place(unfinished: &Path, dir: &Path) -> Result<SqliteJournal, JournalError> {
    set_orphans_aside(dir)?;
    let (identity, path) = (identity_of(unfinished)?, dir.join(FILE_NAME));
    if let Err(error) = rename_to_nothing(unfinished, &path) {
        // Otherwise it may be the only copy.
        if matches!(error, JournalError::Exists { .. }) {
            remove_database(unfinished)?;
        }
        return Err(error);
    }
    fs::File::open(dir)?.sync_all()?;
    let journal = SqliteJournal::open(dir)?;
    // Somebody may have deleted it, and somebody else made another.
    if journal.identity == identity { Ok(journal) } else { Err(JournalError::NotFound { path }) }
}

/// Renames, but replaces nothing: two processes that make a journal at once may have different
/// locks, if somebody deletes those, too.
pub(super) fn rename_to_nothing(unfinished: &Path, path: &Path) -> Result<(), JournalError> {
    match renameat_with(CWD, unfinished, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(JournalError::Exists { path: path.to_owned() }),
        // The system or file system has no such call.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(fs::rename(unfinished, path)?),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

pub(super) fn identity_of(path: &Path) -> Result<Identity, JournalError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(JournalError::NotFound { path: path.to_owned() })
        }
        metadata => {
            metadata.map(|metadata| (metadata.dev(), metadata.ino())).map_err(JournalError::from)
        }
    }
}

/// Checkpoints and closes, after which the file alone is the journal. The checkpoint comes first
/// because SQLite does not report what fails while a connection is closed.
pub(super) fn close_alone(connection: Connection) -> Result<(), JournalError> {
    checkpoint(&connection, "TRUNCATE")?;
    take_log_in_at_end(&connection, true);
    connection.close().map_err(|(_, error)| error.into())
}

pub(super) fn checkpoint(connection: &Connection, mode: &str) -> Result<(), JournalError> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let busy: bool = connection.query_row(&sql, [], |row| row.get(0))?;
    if busy { Err(JournalError::Busy) } else { Ok(()) }
}

pub(super) fn remove_database(path: &Path) -> io::Result<()> {
    for path in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Moves aside the log of a deleted journal, which SQLite would take for the new one's. It may hold
/// the only copy of events.
pub(super) fn set_orphans_aside(dir: &Path) -> io::Result<()> {
    for orphan in ["-wal", "-shm"].map(|suffix| beside(&dir.join(FILE_NAME), suffix)) {
        if fs::symlink_metadata(&orphan).is_ok() {
            let mut free = (1..).map(|n: u32| beside(&orphan, &format!(".orphaned-{n}")));
            fs::rename(
                &orphan,
                free.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_default(),
            )?;
        }
    }
    Ok(())
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
