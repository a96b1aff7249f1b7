//! The state as a file: read without opening a board, waited for, and copied.

use std::io;
use std::path::Path;

use super::{Board, Error};
use crate::ops::save_state::{Params, SaveState};
use crate::participant::{self, BoardError, is_begun};
use crate::state::document::Document;
use crate::statefile::{self, Found};

impl Board {
    /// Reads a state from the file at `path`: callboard's own, or one of the TypeScript broker,
    /// which lacks what callboard adds. Opens no board and changes nothing.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the file: not there, not a state, damaged, or of a newer callboard.
    pub fn load_state(path: impl AsRef<Path>) -> Result<Document, Error> {
        let path = path.as_ref();
        match statefile::load_file(path).map_err(BoardError::from)? {
            Some(Found::Sound(document) | Found::Foreign { document, .. }) => Ok(*document),
            Some(Found::Unsound { reason }) => Err(BoardError::StateFileUnsound(reason).into()),
            None => Err(failed("cannot read", path, io::ErrorKind::NotFound.into())),
        }
    }

    /// Waits until the state file shows everything that was acknowledged before, by any process,
    /// and returns the number of the event that it shows. Every operation writes the file, so
    /// call this only before the file is read by other means, if a warning said that it could
    /// not be written or if it may have been deleted.
    ///
    /// # Errors
    ///
    /// Says why the file cannot be written. The board is safe all the same: it is in the journal.
    pub async fn save_state(&self) -> Result<u64, Error> {
        if !is_begun(self.dir()) {
            return Err(BoardError::Absent { dir: self.dir().to_owned() }.into());
        }
        let answer = self.call::<SaveState>(Params {}).await?;
        match statefile::seq_of(participant::home(self.dir())) {
            Ok(Some(shown)) if shown.seq >= answer.seq => Ok(shown.seq),
            Err(error) => Err(failed("cannot read the state file in", self.dir(), error)),
            Ok(_) => {
                let why = answer.warning().unwrap_or("it is not there").to_owned();
                Err(failed("cannot write the state file in", self.dir(), io::Error::other(why)))
            }
        }
    }

    /// Writes the present state to a file of your own at `path`, whole or not at all;
    /// [`load_state`](Self::load_state) reads it.
    ///
    /// # Errors
    ///
    /// Refuses a file in the board's directory, and says what else is in the way.
    pub async fn save_state_to(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let cannot = |error| failed("cannot write", path, error);
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = fs_err::canonicalize(parent).map_err(cannot)?;
        if fs_err::canonicalize(self.dir()).is_ok_and(|own| parent.starts_with(own)) {
            return Err(BoardError::Forbidden(format!(
                "{} is in the board's own directory; choose another place",
                path.display()
            ))
            .into());
        }
        let state = self.handle.look(Clone::clone).await?;
        let written = statefile::text_of(&state).and_then(|text| {
            let mut file = tempfile::NamedTempFile::new_in(&parent)?;
            io::Write::write_all(&mut file, &text)?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        });
        written.map_err(cannot)
    }
}

fn failed(action: &str, path: &Path, source: io::Error) -> Error {
    BoardError::Io { action: format!("{action} {}", path.display()), source }.into()
}
