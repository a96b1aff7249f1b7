//! Purging: a person takes a text that slipped through redaction out of everything that the board
//! keeps.
//!
//! The text is replaced by a mark in the rows of the journal (see `journal::sqlite::purge`), and so
//! in every state that is replayed from them. A `purged` event follows, with the present state
//! without the text: processes that live on the board replace their replicas by it, as after a
//! restore, and empty what they keep of events for listeners. It tells who and when, and lists the
//! rows with the hashes of what they hold now; nothing in it tells the text.
//!
//! Files are written anew under the board's locks: artifacts first, because the state and the
//! journal have their hashes; the journal; the state file, without its spare; snapshots and
//! bundles, whose chains of hashes are made anew from the first changed file on; then whatever else
//! lies in the board's directory, where the text is blotted out. Copies of journals that were set
//! aside cannot be searched, because SQLite divides and compresses what it holds, so they are
//! removed. At last every byte in the directory is searched again, and files that still have the
//! text are named. A purge that was interrupted is completed by the next one of the same text.

mod files;
mod text;

use std::io;
use std::path::Path;

use serde::Serialize;
use thiserror::Error;

use super::board::Board;
use super::error::{BoardError, io_error};
use super::lock::acquire;
use super::opening::let_the_living_rebuild;
use super::recovery::Author;
use super::{edits, living};
use crate::journal::BatchId;
use crate::journal::JournalError;
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::refusal::Refusal;
use crate::state::{Envelope, State};
use crate::statefile::{self, Projection};
use files::Change;
pub use text::{SHORTEST, Text, TextError};

/// What has, or had, the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Places {
    /// Rows of the journal
    pub events: usize,
    /// Whether the present state has it
    pub state: bool,
    /// Files of artifacts, snapshots and bundles, and whatever else lies in the directory
    pub files: Vec<String>,
    /// Copies of journals, which cannot be searched
    pub copies: Vec<String>,
}

impl Places {
    pub fn count(&self) -> usize {
        self.events + usize::from(self.state) + self.files.len()
    }
}

#[derive(Debug, Error)]
pub enum PurgeError {
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error(
        "without this text the board could not be read ({0}); it is part of how the board is \
         written, or of an id: nothing was changed"
    )]
    Needed(String),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}; run the same purge again to complete it")]
    Io(#[from] io::Error),
}

impl From<JournalError> for PurgeError {
    fn from(error: JournalError) -> Self {
        Self::Board(error.into())
    }
}

/// Takes `text` out of the board in `dir`, or only finds it. Returns where it was, and which files
/// still have it.
pub fn purge(
    dir: &Path,
    text: &Text,
    author: &Author,
    dry_run: bool,
) -> Result<(Places, Vec<String>), PurgeError> {
    let_the_living_rebuild(dir, &author.participant);
    let mut board = Board::open(dir, Some(author))?;
    acquire(&board.lock)?;
    let purged = purge_under_lock(&mut board, text, author, dry_run);
    board.lock.release();
    purged
}

fn purge_under_lock(
    board: &mut Board,
    text: &Text,
    author: &Author,
    dry_run: bool,
) -> Result<(Places, Vec<String>), PurgeError> {
    board.catch_up()?;
    board.check_writable()?;
    let dir = board.dir().to_path_buf();
    let changes = files::changes(&dir, board.dir().name(), text)?;
    // Hashes of artifacts follow from their content.
    let text = text.clone().with(files::new_hashes(&changes));
    let rows =
        board.journal.cleaned(
            |found, is_json| {
                if is_json { text.clean_json(found) } else { text.clean(found) }
            },
        )?;
    let state = cleaned_state(&board.state, &text)?;
    let names = |copies: bool| {
        let changes = changes.iter().filter(|one| one.is_copy() == copies);
        changes.flat_map(Change::names).cloned().collect()
    };
    let places = Places {
        events: rows.len(),
        state: state.is_some(),
        files: names(false),
        copies: names(true),
    };
    if dry_run {
        return Ok((places, Vec::new()));
    }
    for change in changes.iter().filter(|one| one.is_artifact()) {
        change.write(&text)?;
    }
    if !rows.is_empty() || state.is_some() {
        let document = state.unwrap_or_else(|| board.state.to_document());
        let rows_now = rows.iter().map(|row| row.tombstone()).collect();
        let event = Event::Purged { document: Box::new(document), rows: rows_now };
        let older = board.state.older(&living::living(&dir), event.level());
        if !older.is_empty() {
            return Err(Refusal::OlderProcesses { operation: "purge".to_owned(), older }.into());
        }
        let envelope = Envelope {
            at: author.now,
            participant: author.participant.clone(),
            actor: Some(AgentId::trusted(HUMAN)),
            idempotency: None,
        };
        let recorded = board
            .state
            .record(event, &envelope)
            .map_err(|error| PurgeError::Needed(error.to_string()))?;
        board.state.settle();
        let batch = BatchId::new(format!("{}/purge-{}", author.participant, recorded.seq));
        board.journal.purge(&rows, Some((&batch, &recorded)))?;
    } else {
        board.journal.purge(&rows, None)?;
    }
    statefile::remove_spare(board.dir(), &board.lock.left().files)?;
    board.projection = Projection::new(board.dir().clone());
    edits::write(&mut board.projection, &mut board.state, &board.lock)
        .map_err(|source| io_error("cannot write the state file in", &dir, source))?;
    statefile::remove_spare(board.dir(), &board.lock.left().files)?;
    for change in changes.iter().filter(|one| !one.is_artifact()) {
        change.write(&text)?;
    }
    for change in changes.iter().filter(|one| one.is_artifact()) {
        change.finish()?;
    }
    Ok((places, files::with(&dir, &text)?))
}

/// The present state without the text; none if it has not got it.
fn cleaned_state(
    state: &State,
    text: &Text,
) -> Result<Option<crate::state::document::Document>, PurgeError> {
    let needed = |error: serde_json::Error| PurgeError::Needed(error.to_string());
    let whole = serde_json::to_string(&state.to_document()).map_err(needed)?;
    let Some(clean) = text.clean_json(&whole) else { return Ok(None) };
    let document = serde_json::from_str(&clean).map_err(needed)?;
    let wrong = State::from_document(document).check();
    if let Some(wrong) = wrong.first() {
        return Err(PurgeError::Needed(wrong.clone()));
    }
    serde_json::from_str(&clean).map(Some).map_err(needed)
}
