//! Why a call has no reply, and why the board cannot be used.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;

use super::directory::DirectoryError;
use super::holder::Holder;
use crate::config::ConfigError;
use crate::journal::JournalError;
use crate::ops::no_operation;
use crate::state::ApplyError;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::statefile::LoadError;

/// Why a call has no reply.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("{}", no_operation("operation", .0))]
    UnknownOperation(String),
    /// The caller can put it right.
    #[error("{0}")]
    Refused(Refusal),
    #[error("the caller has gone")]
    Gone,
    /// The board cannot be used as it is.
    #[error("{0}")]
    Failed(Arc<BoardError>),
}

impl CallError {
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The name of what is wrong, for programs; those of refusals stand in their variants.
    pub fn code(&self) -> String {
        match self {
            Self::UnknownOperation(_) => "unknown_operation".to_owned(),
            Self::Refused(refusal) => refusal.code(),
            Self::Gone => "gone".to_owned(),
            Self::Failed(error) => error.code().to_owned(),
        }
    }

    /// The error for programs: `code`, `message`, and what the message names.
    pub fn data(&self) -> Value {
        let mut data = match self {
            Self::UnknownOperation(name) => json!({"code": self.code(), "operation": name}),
            Self::Refused(refusal) => serde_json::to_value(refusal).unwrap_or_default(),
            Self::Gone | Self::Failed(_) => json!({"code": self.code()}),
        };
        data["message"] = Value::from(self.message());
        data
    }
}

impl From<BoardError> for CallError {
    fn from(error: BoardError) -> Self {
        Self::Failed(Arc::new(error))
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Why the board cannot be used, and what to do about it.
#[derive(Debug, Error)]
pub enum BoardError {
    #[error("no board in {}; make one with `callboard init GOAL`, or add a task with create_task", dir.display())]
    Absent { dir: PathBuf },
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unwritable(String),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    StateFile(#[from] LoadError),
    #[error("the journal does not fit the state: {0}; nothing was changed; run `callboard doctor`")]
    Inconsistent(#[from] ApplyError),
    #[error(
        "{} is at event {file} but the journal ends at {head}: the journal has lost its end. Nothing was touched; \
         `callboard doctor --repair --dry-run` says how the board can go on from the state file", path.display()
    )]
    JournalBehind { path: PathBuf, file: u64, head: u64 },
    #[error(
        "there was a board here, and nothing of it is sound ({reason}); restore {} or the journal from a backup, or run \
         `callboard doctor --repair --dry-run` to see what it would do", path.display()
    )]
    NothingSound { path: PathBuf, reason: String },
    #[error("event {seq} is not in the past: the first is {first} and the newest {head}")]
    NotInThePast { seq: u64, first: u64, head: u64 },
    #[error("nothing is known of {time}: the board's history begins at {first}")]
    BeforeTheFirst { time: Timestamp, first: Timestamp },
    #[error(
        "the board is damaged ({reason}), and to go on from what is sound would lose {lost}. \
         Other processes on the board may know more: call one of them, or end them and try again; \
         nothing was touched"
    )]
    OthersKnowMore { lost: String, reason: String },
    #[error(
        "the board in {} is another one now, or went on from an earlier state without this process: it is at event {theirs}, \
         and this process knew {ours} events of which some are not in it; restart this process.{}",
        path.display(), saved_text(saved.as_deref())
    )]
    Diverged { path: PathBuf, ours: u64, theirs: u64, saved: Option<PathBuf> },
    #[error(
        "the board was removed while the call was done ({0}); whether it is on the board when \
         that is back is unknown: ask again, with the same idempotency_key if there was one"
    )]
    Vanished(Box<BoardError>),
    #[error("the state file is not what was written: {0}")]
    StateFileUnsound(String),
    /// The processes of a board must agree, or each would write a file of its own.
    #[error(
        "the board in {} is shown in `{shown}`, and {by} names `{asked}`: {way_out}", dir.display()
    )]
    StateFileName { dir: PathBuf, shown: String, by: &'static str, asked: String, way_out: String },
    #[error("nothing was changed: {0}")]
    NotWritten(JournalError),
    #[error(
        "whether the call was done is unknown ({0}); ask again, with the same idempotency_key if \
         there was one"
    )]
    Unknown(JournalError),
    #[error(
        "the board's lock has been held by {holder} for {seconds} s; nothing was changed; {}, then \
         try again", holder.remedy()
    )]
    Locked { holder: Holder, seconds: u64 },
    #[error("{0}; this process only reads from here on: restart it with the newer callboard")]
    Outdated(String),
    #[error("{waiting} calls are waiting already; try again in a moment")]
    Overloaded { waiting: usize },
    #[error("this process's board has ended; restart the process")]
    Ended,
    #[error("{action}: {source}")]
    Io { action: String, source: io::Error },
}

impl BoardError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Absent { .. } => "no_board",
            Self::Forbidden(_) => "board_forbidden",
            Self::Unwritable(_) => "board_unwritable",
            Self::Directory(DirectoryError::Replaced { .. } | DirectoryError::Homeless { .. }) => {
                "board_replaced"
            }
            Self::Diverged { .. } => "board_replaced",
            Self::Directory(_) => "bad_directory",
            Self::Config(_) => "bad_config",
            Self::Journal(_) | Self::Inconsistent(_) => "journal_unusable",
            Self::StateFileName { .. } => "state_file_name",
            Self::StateFile(_) | Self::StateFileUnsound(_) | Self::NothingSound { .. } => {
                "state_file_unusable"
            }
            Self::JournalBehind { .. } => "journal_behind",
            Self::NotInThePast { .. } | Self::BeforeTheFirst { .. } => "not_in_the_past",
            Self::NotWritten(_) => "not_written",
            Self::Unknown(_) | Self::Vanished(_) => "unknown_outcome",
            Self::OthersKnowMore { .. } => "board_damaged",
            Self::Locked { .. } => "locked",
            Self::Outdated(_) => "outdated",
            Self::Overloaded { .. } => "overloaded",
            Self::Ended => "ended",
            Self::Io { .. } => "io",
        }
    }

    /// Whether the files on the disk are not what was written, so that a recovery from what is
    /// sound may help.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_damage(),
            Self::StateFileUnsound(_) => true,
            _ => false,
        }
    }
}

fn saved_text(saved: Option<&Path>) -> String {
    saved.map_or_else(String::new, |path| format!(" Its own state is kept in {}", path.display()))
}

pub(super) fn io_error(action: &str, dir: &Path, source: io::Error) -> BoardError {
    BoardError::Io { action: format!("{action} {}", dir.display()), source }
}

pub(super) fn lock_error(source: io::Error) -> BoardError {
    BoardError::Io { action: "cannot take the board's lock".to_owned(), source }
}

pub(super) fn overloaded() -> BoardError {
    BoardError::Overloaded { waiting: limit::QUEUED.max }
}
