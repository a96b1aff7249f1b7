//! Keeps the state file up to date.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use fs_err as fs;

use super::file::{self, FileIdentity, Left};
use super::flat::{Flat, Live, Prepared, Seen};
use super::found::{Found, LoadError};
use super::home::Home;
use super::lease::{self, Asked};
use super::load::load;
use super::slots::read::load_to_write;
use super::unfinished::Unfinished;
use super::whole::Whole;
use super::{displaced, spare};
use crate::failpoint;
use crate::state::State;
use crate::state::changed::Changed;

/// Environment variable that makes every projection of this process write whole files, as where
/// flat ones are not possible.
pub const WHOLE_FILES: &str = "CALLBOARD_WHOLE_FILES";
/// Environment variable for the size of a whole file, in bytes, from which on slots are written.
/// All processes of a board must agree, so it is for tests.
pub const SLOTS_FROM: &str = "CALLBOARD_SLOTS_FROM";

/// The largest file that is written whole where slots are possible, in bytes.
const LARGEST_WHOLE: u64 = 256 << 10;
/// A task takes at least this many bytes of a whole file.
const LEAST_TASK: u64 = 256;

/// Keeps the state file up to date: as a whole file while that is small, else with slots where the
/// system allows it, which is found out by trying.
///
/// Which of the two is written follows from the size of the file and from the form that it has, so
/// that all processes agree; and between the two sizes at which it changes nothing changes back and
/// forth.
#[derive(Debug)]
pub struct Projection {
    pub(super) dir: Home,
    /// The form of the file that is in place, as far as is known.
    pub(super) way: Way,
    /// The largest file that is written whole, in bytes.
    largest_whole: u64,
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

impl Way {
    fn whole() -> Self {
        Self::Whole(Box::new(Whole::new()))
    }
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
        if std::env::var_os(WHOLE_FILES).is_some_and(|value| !value.is_empty()) {
            return Self::of_whole_files(dir);
        }
        let from = std::env::var(SLOTS_FROM).ok().and_then(|bytes| bytes.parse().ok());
        Self::with_slots_from(dir, from.unwrap_or(LARGEST_WHOLE))
    }

    /// A projection that writes whole files, as [`WHOLE_FILES`] asks for.
    pub fn of_whole_files(dir: impl Into<Home>) -> Self {
        Self::with_slots_from(dir, u64::MAX)
    }

    /// A projection that writes slots as soon as a whole file would have more than `bytes`.
    pub fn with_slots_from(dir: impl Into<Home>, bytes: u64) -> Self {
        let (dir, way) = (dir.into(), Way::whole());
        Self {
            dir,
            way,
            largest_whole: bytes,
            changed: Changed::default(),
            bytes: 0,
            written: 0,
            last: None,
        }
    }

    /// Loads the file like [`load()`], and goes on from it: the next state that is written must
    /// have grown from this document.
    pub fn load(&mut self) -> Result<Option<Found>, LoadError> {
        if self.largest_whole == u64::MAX {
            return load(&self.dir);
        }
        let (found, books) = load_to_write(&self.dir)?.unzip();
        self.way =
            books.flatten().map_or_else(Way::whole, |books| Way::Flat(Box::new(Flat::of(books))));
        Ok(found)
    }

    /// Replaces the file by `state`. A reader sees the old file or the new one; nothing is synced
    /// to the disk.
    pub fn write(&mut self, state: &mut State) -> io::Result<()> {
        self.write_keeping(state, Left::default(), |_| Ok(())).map(drop)
    }

    /// Replaces the file by `state` in two steps, see [`prepare`](Self::prepare) and
    /// [`place`](Self::place).
    pub fn write_keeping(
        &mut self,
        state: &mut State,
        left: Left,
        note: impl FnOnce(Left) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let unplaced = self.prepare(state, FileIdentity::of(&self.dir)?, left)?;
        self.place(unplaced, FileIdentity::of(&self.dir)?, note)
    }

    /// Writes a file that shows `state`, to be placed or given up before the next is prepared.
    /// `found` is the file that is in place.
    pub fn prepare(
        &mut self,
        state: &mut State,
        found: Option<FileIdentity>,
        left: Left,
    ) -> io::Result<Unplaced> {
        self.changed = std::mem::take(&mut self.changed).and(state.take_changed());
        // If others have written it twice within one tick of the file system's clock, it looks the
        // same, but shows another event.
        let own = found.filter(|found| self.shows(found) == Some(left.seq));
        let file = self
            .write_beside(state, own, &left.files)
            .inspect_err(|_| spare::abandon(&self.dir, &left.files))?;
        Ok(Unplaced { file, seq: state.seq(), left })
    }

    /// Puts the prepared file in its place, where `found` is. If no projection has left that, it is
    /// kept, and its new path is returned. `note` is told what will have been left before the
    /// file is in place, so that a crash leaves no file that nobody knows.
    pub fn place(
        &mut self,
        unplaced: Unplaced,
        found: Option<FileIdentity>,
        note: impl FnOnce(Left) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let Unplaced { file, seq, left } = unplaced;
        let spare = spare::path(&self.dir);
        let placed = file.finish().and_then(|identity| {
            failpoint::hit("before-exchange")?;
            let before = found.filter(|found| left.files.contains(found));
            note(Left::new(before.into_iter().chain([identity]).collect(), seq))?;
            if file.path != spare {
                // Only now, because an unknown file under the spare's name is taken for somebody's.
                fs::rename(&file.path, &spare)?;
            }
            Ok((identity, displaced::replace(&spare, &self.dir.file(), found, &left.files, true)?))
        });
        match placed {
            Ok((identity, replaced)) => {
                match &mut self.way {
                    way if replaced.renamed_only => {
                        (self.largest_whole, *way) = (u64::MAX, Way::whole())
                    }
                    Way::Flat(flat) => flat.exchange(identity),
                    Way::Whole(_) => {}
                }
                self.changed = Changed::default();
                self.last = Some((identity, seq));
                (self.bytes, self.written) =
                    (identity.size, file.written as u64 + file.head.len() as u64);
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
        // The file under the spare's name may by now be one that somebody has saved. Errors are
        // ignored, because the one that matters is another.
        let identity = file.file.metadata().ok().map(|metadata| FileIdentity::from(&metadata));
        for path in [&file.path, &spare::path(&self.dir)] {
            if identity.is_some() && file::identity(path).is_ok_and(|found| found == identity) {
                drop(fs::remove_file(path));
            }
        }
    }

    /// Writes the file in the form that its size and the file in place ask for. `own` is the latter
    /// if this projection has left it.
    fn write_beside(
        &mut self,
        state: &State,
        own: Option<FileIdentity>,
        left: &[FileIdentity],
    ) -> io::Result<Unfinished> {
        let is_known = match &self.way {
            Way::Flat(flat) => flat.is_live(own),
            Way::Whole(_) => own.is_some(),
        };
        let mut live = if is_known { None } else { self.follow(left)? };
        if let Way::Flat(_) = self.way
            && let Some(file) =
                self.write_slots(state, (own, live.take()), left, self.largest_whole / 4 * 3)?
        {
            return Ok(file);
        }
        if let Some(file) = self.write_whole(state, left)? {
            return Ok(file);
        }
        self.way = Way::Flat(Box::default());
        if let Some(file) = self.write_slots(state, (own, live), left, 0)? {
            return Ok(file);
        }
        self.write_whole(state, left)?.ok_or_else(|| io::Error::other("the state file has no form"))
    }

    /// Takes over the form of a file that another process has left, and returns it if it has slots.
    fn follow(&mut self, left: &[FileIdentity]) -> io::Result<Option<Box<Live>>> {
        if self.largest_whole == u64::MAX {
            return Ok(None);
        }
        match (Seen::look(&self.dir, left)?, &self.way) {
            (Seen::Slots(live), Way::Flat(_)) => return Ok(Some(live)),
            (Seen::Slots(live), Way::Whole(_)) => {
                self.way = Way::Flat(Box::default());
                return Ok(Some(live));
            }
            (Seen::Whole, Way::Flat(_)) => self.way = Way::whole(),
            (Seen::Whole, Way::Whole(_)) | (Seen::Nothing, _) => {}
        }
        Ok(None)
    }

    /// Writes a whole file; `None` if that is too large.
    fn write_whole(
        &mut self,
        state: &State,
        left: &[FileIdentity],
    ) -> io::Result<Option<Unfinished>> {
        let Way::Whole(whole) = &mut self.way else { return Ok(None) };
        if state.live_tasks() as u64 * LEAST_TASK > self.largest_whole {
            return Ok(None);
        }
        let text = whole.render(state)?;
        if text.len() as u64 > self.largest_whole {
            return Ok(None);
        }
        if let Some(file) = write_into_spare(&self.dir, text, left)? {
            return Ok(Some(file));
        }
        let mut file = spare::begin(&self.dir, left)?;
        file.write_all(text)?;
        Ok(Some(Unfinished {
            path: spare::unfinished(&self.dir),
            file,
            head: Vec::new(),
            written: text.len(),
        }))
    }

    /// Writes a file with slots; `None` if they are not possible, or if the board takes fewer bytes
    /// than `least`. From then on whole files are written.
    fn write_slots(
        &mut self,
        state: &State,
        live: (Option<FileIdentity>, Option<Box<Live>>),
        left: &[FileIdentity],
        least: u64,
    ) -> io::Result<Option<Unfinished>> {
        let Way::Flat(flat) = &mut self.way else { return Ok(None) };
        match flat.prepare(&self.dir, state, &self.changed, live, left, least)? {
            Prepared::File(file) => return Ok(Some(file)),
            Prepared::Small => {}
            Prepared::Unsupported => self.largest_whole = u64::MAX,
        }
        self.way = Way::whole();
        Ok(None)
    }

    /// The seq that `found` shows, if this projection was the last to place a file and it is that
    /// one.
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

/// Writes a whole file, except its first byte, over the spare, which costs less than a new file;
/// `None` when there is none or somebody has it open.
fn write_into_spare(
    dir: &Home,
    text: &[u8],
    left: &[FileIdentity],
) -> io::Result<Option<Unfinished>> {
    let Some((file, before)) = spare::reopen(dir, left)? else { return Ok(None) };
    // Until the lease is given back, whoever opens the file waits.
    let Asked::Granted(lease) = lease::ask(&file) else { return Ok(None) };
    let (head, rest) = text.split_at(1);
    file.write_all_at(b" ", 0)?;
    file.write_all_at(rest, 1)?;
    if before.size > text.len() as u64 {
        file.set_len(text.len() as u64)?;
    }
    lease.keep();
    let (path, head) = (spare::path(dir), head.to_vec());
    Ok(Some(Unfinished { path, file, head, written: rest.len() }))
}
