//! Keeps the state file up to date.

use std::io::{self, Write};
use std::path::PathBuf;

use fs_err as fs;

use super::file::{self, FileIdentity, Left};
use super::flat::Flat;
use super::found::{Found, LoadError};
use super::home::Home;
use super::load::{load, load_to_write};
use super::unfinished::Unfinished;
use super::whole::Whole;
use super::{displaced, spare};
use crate::failpoint;
use crate::state::State;
use crate::state::changed::Changed;

/// Environment variable that makes every projection of this process write whole files, as where flat ones are not
/// possible.
pub const WHOLE_FILES: &str = "CALLBOARD_WHOLE_FILES";

/// Keeps the state file up to date: as a flat file where the system allows it, which is found out by trying, else as a
/// whole file.
#[derive(Debug)]
pub struct Projection {
    pub(super) dir: Home,
    pub(super) way: Way,
    /// What has changed since the last file that was placed.
    changed: Changed,
    bytes: u64,
    written: u64,
    /// The file that was placed last, and the seq that it shows.
    pub(super) last: Option<(FileIdentity, u64)>,
}

#[derive(Debug)]
pub(super) enum Way {
    Flat(Box<Flat>),
    Whole(Box<Whole>),
}

/// A file that shows a state and is not in its place yet.
pub struct Unplaced {
    pub(super) file: Unfinished,
    /// The seq that it shows.
    seq: u64,
    /// What projections had left when it was prepared, to which nobody adds before it is placed.
    left: Left,
}

impl Unplaced {
    pub fn left(&self) -> &Left {
        &self.left
    }
}

impl Projection {
    pub fn new(dir: impl Into<Home>) -> Self {
        match std::env::var_os(WHOLE_FILES).is_some_and(|value| !value.is_empty()) {
            true => Self::of_whole_files(dir),
            false => Self::by(Way::Flat(Box::default()), dir),
        }
    }

    /// A projection that writes whole files, as [`WHOLE_FILES`] asks for.
    pub fn of_whole_files(dir: impl Into<Home>) -> Self {
        Self::by(Way::Whole(Box::new(Whole::new())), dir)
    }

    fn by(way: Way, dir: impl Into<Home>) -> Self {
        Self { dir: dir.into(), way, changed: Changed::default(), bytes: 0, written: 0, last: None }
    }

    /// Loads the file like [`load()`], and goes on from it: the next state that is written must have grown from this
    /// document.
    pub fn load(&mut self) -> Result<Option<Found>, LoadError> {
        let Way::Flat(flat) = &mut self.way else { return load(&self.dir) };
        let (found, books) = load_to_write(&self.dir)?.unzip();
        flat.adopt(books.flatten());
        Ok(found)
    }

    /// Replaces the file by `state`. A reader sees the old file or the new one; nothing is synced to the disk.
    pub fn write(&mut self, state: &mut State) -> io::Result<()> {
        self.write_keeping(state, Left::default(), |_| Ok(())).map(drop)
    }

    /// Replaces the file by `state` in two steps, see [`prepare`](Self::prepare) and [`place`](Self::place).
    pub fn write_keeping(
        &mut self,
        state: &mut State,
        left: Left,
        note: impl FnOnce(Left) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let unplaced = self.prepare(state, FileIdentity::of(&self.dir)?, left)?;
        self.place(unplaced, FileIdentity::of(&self.dir)?, note)
    }

    /// Writes a file that shows `state`, to be placed or given up before the next is prepared. `found` is the file that
    /// is in place.
    pub fn prepare(&mut self, state: &mut State, found: Option<FileIdentity>, left: Left) -> io::Result<Unplaced> {
        self.changed = std::mem::take(&mut self.changed).and(state.take_changed());
        // If others have written it twice within one tick of the file system's clock, it looks the same, but shows
        // another event.
        let own = found.filter(|found| self.shows(found) == Some(left.seq));
        let flat = match &mut self.way {
            Way::Flat(flat) => flat
                .prepare(&self.dir, state, &self.changed, own, &left.files)
                .inspect_err(|_| spare::abandon(&self.dir, &left.files))?,
            Way::Whole(_) => None,
        };
        let file = match flat {
            Some(file) => file,
            None => self.prepare_whole(state, &left.files)?,
        };
        Ok(Unplaced { file, seq: state.seq(), left })
    }

    /// Puts the prepared file in its place, where `found` is. If no projection has left that, it is kept, and its new
    /// path is returned. `note` is told what will have been left before the file is in place, so that a crash leaves no
    /// file that nobody knows.
    pub fn place(
        &mut self,
        unplaced: Unplaced,
        found: Option<FileIdentity>,
        note: impl FnOnce(Left) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let Unplaced { file, seq, left } = unplaced;
        let spared = matches!(self.way, Way::Flat(_));
        let spare = spare::path(&self.dir);
        let placed = file.finish().and_then(|identity| {
            failpoint::hit("before-exchange")?;
            let before = found.filter(|found| left.files.contains(found));
            note(Left::new(before.into_iter().chain([identity]).collect(), seq))?;
            if file.path != spare {
                // Only now, because an unknown file under the spare's name is taken for somebody's.
                fs::rename(&file.path, &spare)?;
            }
            Ok((identity, displaced::replace(&spare, &self.dir.file(), found, &left.files, spared)?))
        });
        match placed {
            Ok((identity, replaced)) => {
                match &mut self.way {
                    way if replaced.renamed_only => *way = Way::Whole(Box::new(Whole::new())),
                    Way::Flat(flat) => flat.exchange(identity),
                    Way::Whole(_) => {}
                }
                self.changed = Changed::default();
                self.last = Some((identity, seq));
                (self.bytes, self.written) = (identity.size, file.written as u64 + file.head.len() as u64);
                Ok(replaced.kept)
            }
            Err(error) => {
                self.give_up(Unplaced { file, seq, left });
                Err(error)
            }
        }
    }

    /// Discards a prepared file, which is not to be placed.
    pub fn give_up(&mut self, Unplaced { file, .. }: Unplaced) {
        self.last = None;
        if let Way::Flat(flat) = &mut self.way {
            flat.forget();
        }
        // The file under the spare's name may by now be one that somebody has saved. Errors are ignored, because the
        // one that matters is another.
        let identity = file.file.metadata().ok().map(|metadata| FileIdentity::from(&metadata));
        for path in [&file.path, &spare::path(&self.dir)] {
            if identity.is_some() && file::identity(path).is_ok_and(|found| found == identity) {
                drop(fs::remove_file(path));
            }
        }
    }

    fn prepare_whole(&mut self, state: &State, left: &[FileIdentity]) -> io::Result<Unfinished> {
        if let Way::Flat(_) = self.way {
            self.way = Way::Whole(Box::new(Whole::new()));
        }
        let Way::Whole(whole) = &mut self.way else { return Err(io::Error::other("there are two ways")) };
        let text = whole.render(state)?;
        let written = spare::begin(&self.dir, left).and_then(|mut file| file.write_all(text).map(|()| file));
        let file = written.inspect_err(|_| spare::abandon(&self.dir, left))?;
        Ok(Unfinished { path: spare::unfinished(&self.dir), file, head: Vec::new(), written: text.len() })
    }

    /// The seq that `found` shows, if this projection was the last to place a file and it is that one.
    pub fn shows(&self, found: &FileIdentity) -> Option<u64> {
        self.last.filter(|(last, _)| last == found).map(|(_, seq)| seq)
    }

    /// Size of the file that was placed last, in bytes; 0 before the first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of bytes that were written for that file.
    pub fn written(&self) -> u64 {
        self.written
    }
}
