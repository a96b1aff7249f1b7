//! Reading the file back: whether it is ours, and whether it is what was written.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use thiserror::Error;

use super::fragment::sum_of;
use super::{FILE_NAME, hex, older, open_regular};
use crate::state::document::{Document, SCHEMA_VERSION};

/// No state within the board's limits comes near it.
pub(super) const MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, PartialEq)]
pub enum Found {
    /// Ours, and unchanged since it was written.
    Sound(Box<Document>),
    /// Of the TypeScript broker that callboard replaces. Its board id is empty and its `seq` 0; `notes` say what did not
    /// come over as it was.
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

/// Reads and verifies the file in `dir`; `None` when there is none.
pub fn load(dir: &Path) -> Result<Option<Found>, LoadError> {
    load_file(&dir.join(FILE_NAME))
}

/// The same for a file of any name.
pub fn load_file(path: &Path) -> Result<Option<Found>, LoadError> {
    let path = path.to_owned();
    match read(&path) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => recognise(&bytes).map(Some),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(LoadError::TooLarge { path, max: MAX_BYTES }),
        Err(source) => Err(LoadError::Io { path, source }),
    }
}

pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    // It may grow while it is read.
    if file.metadata()?.len() <= MAX_BYTES {
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= MAX_BYTES {
            return Ok(Some(bytes));
        }
    }
    Err(io::ErrorKind::FileTooLarge.into())
}

/// The fields that tell whose file it is.
#[derive(Deserialize)]
struct Marks {
    schema_version: Option<Value>,
    board_id: Option<IgnoredAny>,
    seq: Option<IgnoredAny>,
    checksum: Option<Value>,
    tasks: Option<IgnoredAny>,
}

pub(super) fn recognise(bytes: &[u8]) -> Result<Found, LoadError> {
    // Serde would also take the fields from an array.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Ok(unsound("it is not a JSON object"));
    }
    let marks: Marks = match serde_json::from_slice(bytes) {
        Ok(marks) => marks,
        Err(error) => return Ok(unsound(format!("it is not JSON of the right shape: {error}"))),
    };
    match &marks.schema_version {
        Some(version) => match version.as_u64() {
            Some(found) if found > u64::from(SCHEMA_VERSION) => {
                Err(LoadError::Newer { found, supported: SCHEMA_VERSION })
            }
            Some(1..) => Ok(verify(bytes, marks.checksum.as_ref())),
            _ => Ok(unsound(format!("{version} is not a schema version"))),
        },
        // One damaged field name must not make our own file look like an older one.
        None if marks.board_id.is_some() || marks.seq.is_some() || marks.checksum.is_some() => {
            Ok(unsound("it has no schema_version"))
        }
        None if marks.tasks.is_none() => Ok(unsound("it is JSON without tasks")),
        None => Ok(older::import(bytes)),
    }
}

/// The file is sound when what was understood of it is what was written.
fn verify(bytes: &[u8], checksum: Option<&Value>) -> Found {
    let document: Document = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => return unsound(format!("a value in it is impossible: {error}")),
    };
    let Some(stated) = checksum.and_then(Value::as_str) else { return unsound("it has no checksum") };
    match checksum_of(&document) {
        Ok(actual) if stated != hex(actual) => {
            unsound(format!("its checksum is {stated} and its content has {}", hex(actual)))
        }
        Ok(_) => impossible(&document).map_or_else(|| Found::Sound(Box::new(document)), unsound),
        Err(error) => unsound(format!("its content cannot be written: {error}")),
    }
}

pub(super) fn checksum_of(document: &Document) -> io::Result<u128> {
    let list = [sum_of("board", "", &document.board)];
    let tasks = document.tasks.iter().map(|task| sum_of("tasks", "", task));
    let agents = document.agents.iter().map(|(id, agent)| sum_of("agents", id.as_str(), agent));
    let discoveries = document.discoveries.iter().map(|one| sum_of("discoveries", "", one));
    let participants = document.participants.iter().map(|(id, one)| sum_of("participants", id.as_str(), one));
    let retired = document.retired.iter().map(|(id, one)| sum_of("retired", id.as_str(), one));
    let mut sums = list.into_iter().chain(tasks).chain(agents).chain(discoveries).chain(participants).chain(retired);
    sums.try_fold(0, |total: u128, sum| Ok(total.wrapping_add(sum?)))
}

/// What no checksum excuses, because the state would take one entity for another.
fn impossible(document: &Document) -> Option<String> {
    let mut ids = HashSet::new();
    if let Some(twice) = document.tasks.iter().find(|task| !ids.insert(&task.id)) {
        return Some(format!("task {} is there twice", twice.id));
    }
    if let Some((id, _)) = document.agents.iter().find(|(id, agent)| **id != agent.id) {
        return Some(format!("agent {id} has another id inside"));
    }
    let stray = document.participants.iter().find(|(id, one)| **id != one.id);
    stray.map(|(id, _)| format!("participant {id} has another id inside"))
}

pub(super) fn unsound(reason: impl Into<String>) -> Found {
    Found::Unsound { reason: reason.into() }
}
