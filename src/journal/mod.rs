//! Every event, in order: the truth of a board. What has been appended survives the
//! death of the process, and a power loss, too, once it has been settled.
//!
//! Events are chained by hashes, so that a reader notices any that were changed, lost or inserted.

mod chain;
pub mod sqlite;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::state::event::Recorded;

/// The name of one append, never used twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchId(String);

impl BatchId {
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Error)]
pub enum AppendError {
    /// Nothing was written: others have appended first. Catch up and decide again.
    #[error("the journal has moved on to event {head}; read what was appended and decide again")]
    Conflict { head: u64 },
    /// Certainly nothing was written.
    #[error("nothing was written: {0}")]
    Failed(#[source] JournalError),
    /// COMMIT itself failed. Reopen the journal and ask `holds_batch`.
    #[error("the outcome is unknown: {0}; open the journal anew and look for the batch")]
    Unknown(#[source] JournalError),
}

#[derive(Debug, Error)]
pub enum JournalError {
    #[error("there is no journal at {}; the first write makes one", path.display())]
    NotFound { path: PathBuf },
    #[error("there is a journal at {} already; open it", path.display())]
    Exists { path: PathBuf },
    #[error("{} cannot be read as a journal ({source}); keep it as it is and run `callboard doctor`", path.display())]
    Unreadable { path: PathBuf, source: rusqlite::Error },
    #[error(
        "event {seq} of the journal is damaged: {detail}; stop writing and run `callboard doctor`"
    )]
    Damaged { seq: u64, detail: String },
    #[error(
        "event {seq} ({kind}, version {v}) was written by a newer callboard; restart this process \
         to use it"
    )]
    UnknownKind { seq: u64, kind: String, v: u32 },
    #[error(
        "the journal has format {found} and this callboard knows up to {supported}; update \
         callboard and restart"
    )]
    NewerFormat { found: u32, supported: u32 },
    #[error("another program has kept the journal locked for 5 seconds; close it and try again")]
    Busy,
    #[error(
        "the journal was deleted, and another process has taken over what was in it; try again"
    )]
    Superseded,
    #[error("no space is left for the journal; free some and try again")]
    Full,
    #[error("{0}; see to the permissions and the disk, then try again")]
    Io(#[from] io::Error),
    #[error(
        "event {found} was to be written in the place of event {seq}; this is a defect of \
         callboard, please report it"
    )]
    OutOfOrder { seq: u64, found: u64 },
    #[error(
        "an event cannot be written as JSON ({0}); this is a defect of callboard, please report it"
    )]
    Unwritable(#[from] serde_json::Error),
    #[error("the journal's database failed ({0}); see to the disk, then run `callboard doctor`")]
    Sqlite(#[source] rusqlite::Error),
}

impl JournalError {
    /// Whether the write itself failed, not the sync after it: then the log has no whole batch that
    /// could come back after a crash.
    pub fn is_of_write(&self) -> bool {
        match self {
            Self::Full => true,
            Self::Sqlite(error) => error
                .sqlite_error()
                .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE),
            _ => false,
        }
    }

    /// Whether the journal is not what was written: then trying again will not help, as it may with
    /// a disk or a lock.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode;
        match self {
            Self::Damaged { .. } => true,
            Self::Unreadable { source, .. } | Self::Sqlite(source) => match source {
                rusqlite::Error::SqliteFailure(failure, _) => matches!(
                    failure.code,
                    ErrorCode::DatabaseCorrupt
                        | ErrorCode::NotADatabase
                        | ErrorCode::TypeMismatch
                        | ErrorCode::Unknown
                ),
                // A table or column is missing.
                rusqlite::Error::SqlInputError { .. } => true,
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..) => true,
                _ => false,
            },
            _ => false,
        }
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Sqlite(error),
        }
    }
}

fn check_sequence(expected: u64, events: &[Recorded]) -> Result<(), JournalError> {
    let stray = (expected + 1..).zip(events).find(|(seq, recorded)| recorded.seq != *seq);
    stray.map_or(Ok(()), |(seq, stray)| Err(JournalError::OutOfOrder { seq, found: stray.seq }))
}
