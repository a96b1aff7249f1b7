//! What reading a state file finds.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::state::document::Document;

#[derive(Debug, PartialEq)]
pub enum Found {
    /// Callboard's own, and unchanged since it was written.
    Sound(Box<Document>),
    /// The file of the TypeScript broker that callboard replaces. Its board id is empty and its
    /// `seq` 0; `notes` say what could not be taken over as it was.
    Foreign { document: Box<Document>, notes: Vec<String> },
    /// Damaged, edited, or no state file at all.
    Unsound { reason: String },
}

#[derive(Debug, Error)]
pub enum LoadError {
    #[error(
        "the state file has schema version {found} and this callboard knows up to {supported}; \
         update callboard and restart"
    )]
    Newer { found: u64, supported: u32 },
    #[error("{} has more than {max} bytes, which no board reaches; move it away and try again", path.display())]
    TooLarge { path: PathBuf, max: u64 },
    /// Also for a symbolic link, a pipe, or anything else that is not a regular file.
    #[error("{} cannot be read ({source}); make it a regular file that you own, or move it away", path.display())]
    Io { path: PathBuf, source: io::Error },
}

pub(super) fn unsound(reason: impl Into<String>) -> Found {
    Found::Unsound { reason: reason.into() }
}
