//! The state file with a slot for each entity, so that a commit writes what it changed and no more,
//! whatever the board's size.
//!
//! # A commit
//!
//! There are two files: the live one and, under a hidden name, the spare, which was live before.
//! The slots that have changed since the spare was live are written into it, as far as they differ
//! from its content, and the names are exchanged. A reader that still has the spare open would see
//! it change, so first the kernel is asked for a write lease on it, which it grants only on a file
//! that nobody else has open or mapped. If it does not, that commit copies the live file and writes
//! into the copy. Nothing is synced: the journal is the truth, and after a power loss the
//! checksum shows whether all pages had arrived.
//!
//! A child of this process holds the files that were open at its fork until it execs another
//! program, so a commit at that moment, too, may find the spare held and copy.
//!
//! A spare is used only if it surely was live once: it is one of those noted as left, has no second
//! name (hard link), is of this generation, and is behind the live one. It is made invalid before
//! the first slot is written and valid after the last, so a writer that dies in between leaves
//! nothing that could be mistaken for a state file. Under the spare's name there may be somebody's
//! edit instead, see `spare`.
//!
//! # Several processes
//!
//! They take turns under the state file's lock, and no process reads the whole file again when its
//! turn comes. Events tell each what has changed and when; where things are changes only by slots
//! that are added at the end of a field, and those are read. A file of another generation is read
//! as a whole. A process does not know what was changed before it started, so it uses no spare that
//! is older than the file it started with: its first commit copies.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::derived::with_agents;
use super::file::{FileIdentity, open_regular, read_up_to};
use super::home::Home;
use super::lease::{self, Asked};
use super::slots::books::Books;
use super::slots::books::arrange::Before;
use super::slots::header::{Header, size_of};
use super::spare;
use super::unfinished::Unfinished;
use crate::state::State;
use crate::state::changed::Changed;

/// Bytes per write of a new file: what comes in one write the kernel may keep as one folio, all of
/// which each later commit would then walk.
const STEP: usize = 64 << 10;

/// A file that a projection has left, and its header.
#[derive(Clone, Debug)]
struct Known {
    identity: FileIdentity,
    header: Arc<Header>,
}

/// The live file, as a projection has left it. If this process left it, all is known without
/// opening it.
pub(super) struct Live {
    identity: FileIdentity,
    file: Option<File>,
    header: Arc<Header>,
}

/// The file that another process has left in place.
pub(super) enum Seen {
    /// None, or one that no projection has left last.
    Nothing,
    Whole,
    Slots(Box<Live>),
}

impl Seen {
    pub(super) fn look(dir: &Home, left: &[FileIdentity]) -> io::Result<Self> {
        let Some((file, identity)) = open_live(dir, left)? else { return Ok(Self::Nothing) };
        let header = Header::read(&file)?.filter(|header| header.layout.fits(identity.size));
        Ok(header.map_or(Self::Whole, |header| {
            Self::Slots(Box::new(Live { identity, file: Some(file), header: Arc::new(header) }))
        }))
    }
}

impl Live {
    /// The file, opened again if need be; `None` if another is in its place.
    fn reopened(&mut self, dir: &Home, left: &[FileIdentity]) -> io::Result<Option<File>> {
        match self.file.take() {
            Some(file) => Ok(Some(file)),
            None => {
                let found =
                    open_live(dir, left)?.filter(|(_, identity)| *identity == self.identity);
                Ok(found.map(|(file, _)| file))
            }
        }
    }

    /// Its content, unless somebody writes into it meanwhile.
    fn whole(&mut self, dir: &Home, left: &[FileIdentity]) -> io::Result<Option<Vec<u8>>> {
        let Some(mut file) = self.reopened(dir, left)? else { return Ok(None) };
        let mut bytes = Vec::with_capacity(size_of(&file)?);
        // Until now it was read only at offsets, so this starts at the beginning.
        file.read_to_end(&mut bytes)?;
        Ok((FileIdentity::from(&file.metadata()?) == self.identity).then_some(bytes))
    }
}

/// Opens the live file, if it is the last of `left`: an earlier one that somebody has put back
/// lacks what was shown since.
fn open_live(dir: &Home, left: &[FileIdentity]) -> io::Result<Option<(File, FileIdentity)>> {
    // No projection has left a file that cannot be opened.
    let Ok(Some(file)) = open_regular(&dir.file()) else { return Ok(None) };
    let (file, _) = file.into_parts();
    let identity = FileIdentity::from(&file.metadata()?);
    Ok((left.last() == Some(&identity)).then_some((file, identity)))
}

#[derive(Debug, Default)]
pub(super) struct Flat {
    /// What stands in which slot, if that is known.
    books: Option<Books>,
    /// The live file and the spare, if this process has left them.
    live: Option<Known>,
    spare: Option<Known>,
    /// The header of the file that was prepared last.
    prepared: Option<Arc<Header>>,
}

impl Flat {
    /// Starts from the file that was loaded, with its books.
    pub(super) fn of(books: Books) -> Self {
        Self { books: Some(books), ..Self::default() }
    }

    /// Writes a file that shows `state`, except its first part, into the spare or a new one.
    /// `changed` is what has changed since the last file that was placed; after an error
    /// nothing is known any more. `own` is the live file if this process has left it; `live` is
    /// given unless [`is_live`](Self::is_live) says that it is known. If all texts have fewer bytes
    /// than `least`, nothing is written.
    pub(super) fn prepare(
        &mut self,
        dir: &Home,
        state: &State,
        changed: &Changed,
        (own, live): (Option<FileIdentity>, Option<Box<Live>>),
        left: &[FileIdentity],
        least: u64,
    ) -> io::Result<Prepared> {
        let (live, known_spare) = match self.live.take().filter(|known| Some(known.identity) == own)
        {
            Some(Known { identity, header }) => {
                (Some(Live { identity, file: None, header }), self.spare.take())
            }
            None => (live.map(|live| *live), None),
        };
        let live = live.filter(|live| {
            let board = state.board();
            live.header.board_id == board.board_id && live.header.seq <= board.seq
        });
        let mut books = self.books.take();
        let mut copied = None;
        let changed = match changed {
            Changed::Everything => None,
            Changed::Entities(changed) => Some(with_agents(state, changed)),
        };
        if let (Some(books), Some(mut live), Some(changed)) = (&mut books, live, changed.as_deref())
            && books.follow(&live.header, live.file.as_ref(), changed)?
        {
            let updated = books.update(state, changed, (live.header.seq, live.identity.size))?;
            if updated.is_some() && books.shown() < least {
                return Ok(Prepared::Small);
            }
            if let Some((head, header)) = updated
                && books.knows_since(live.header.seq)
            {
                let spare = take_spare(dir, books, &live, known_spare, left)?;
                let mut prepared =
                    spare.map_or(Ok(None), |spare| write_into(dir, spare, books, state, &head))?;
                if prepared.is_none() {
                    let file = live.reopened(dir, left)?;
                    let copy = |file| copy_live(dir, books, &live, &file, state, &head, left);
                    prepared = file.map_or(Ok(None), copy)?;
                }
                if let Some(prepared) = prepared {
                    self.books = Some(std::mem::take(books));
                    self.live = Some(Known { identity: live.identity, header: live.header });
                    self.prepared = Some(Arc::new(header));
                    return Ok(Prepared::File(prepared));
                }
            }
            copied = live.whole(dir, left)?;
        }
        let before = match (&books, changed.as_deref(), copied) {
            (Some(books), Some(changed), Some(file)) => Some(Before { books, changed, file }),
            _ => None,
        };
        let (books, text) = Books::arrange(state, before.as_ref())?;
        if books.shown() < least {
            return Ok(Prepared::Small);
        }
        let file = spare::begin(dir, left)?;
        if matches!(lease::ask(&file), Asked::Unsupported) {
            return Ok(Prepared::Unsupported);
        }
        for (at, step) in (0..).step_by(STEP).zip(text.chunks(STEP)) {
            file.write_all_at(step, at)?;
        }
        (self.books, self.prepared) = (Some(books), None);
        let path = spare::unfinished(dir);
        Ok(Prepared::File(Unfinished { path, file, head: Vec::new(), written: text.len() }))
    }

    /// Whether `own`, which this process has left in place, is known without opening it.
    pub(super) fn is_live(&self, own: Option<FileIdentity>) -> bool {
        self.live.as_ref().is_some_and(|known| Some(known.identity) == own)
    }

    /// Notes that the prepared file was placed, and that the one before it is the spare now.
    pub(super) fn exchange(&mut self, identity: FileIdentity) {
        let live = self.prepared.take().map(|header| Known { identity, header });
        self.spare = std::mem::replace(&mut self.live, live);
    }

    /// Forgets everything, because the prepared file was not placed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// What became of writing a file with slots.
pub(super) enum Prepared {
    File(Unfinished),
    /// The board has become too small for one.
    Small,
    /// The system or file system has no leases.
    Unsupported,
}

/// A spare that may be written into, as long as nobody has it open.
struct Spare {
    file: File,
    header: Arc<Header>,
}

fn take_spare(
    dir: &Home,
    books: &Books,
    live: &Live,
    known: Option<Known>,
    left: &[FileIdentity],
) -> io::Result<Option<Spare>> {
    let Some((file, identity)) = spare::reopen(dir, left)? else { return Ok(None) };
    let header = match known.filter(|known| known.identity == identity) {
        Some(known) => Some(known.header),
        None => Header::read(&file)?.map(Arc::new),
    };
    let header = header.filter(|header| {
        header.board_id == live.header.board_id
            && header.layout.fits(identity.size)
            && header.layout.generation == live.header.layout.generation
            && header.seq < live.header.seq
            && books.knows_since(header.seq)
    });
    Ok(header.map(|header| Spare { file, header }))
}

/// Brings the spare up to date, except its first part; `None` when somebody has it open.
fn write_into(
    dir: &Home,
    spare: Spare,
    books: &mut Books,
    state: &State,
    head: &[u8],
) -> io::Result<Option<Unfinished>> {
    let pieces = books.missing(&spare.header, state)?;
    // Until the lease is given back, whoever opens the file waits.
    let Asked::Granted(lease) = lease::ask(&spare.file) else { return Ok(None) };
    let mut there = Vec::new();
    let differs = differing(&spare.file, 0, head, &mut there)?;
    // Somebody may have died while writing into it, within the same tick of the file system's
    // clock.
    let is_whole = there.first() == Some(&b'{');
    if !is_whole || Header::read(&spare.file)?.is_none_or(|found| found.seq != spare.header.seq) {
        return Ok(None);
    }
    spare.file.write_all_at(b" ", 0)?;
    let mut written = 1;
    for (at, bytes) in &pieces {
        let Range { start, end } = differing(&spare.file, *at, bytes, &mut there)?;
        if start < end {
            spare.file.write_all_at(&bytes[start..end], *at + start as u64)?;
            written += end - start;
        }
    }
    // Whoever is about to open it waits until it is valid again.
    lease.keep();
    let head = head[..differs.end.max(1)].to_vec();
    Ok(Some(Unfinished { path: spare::path(dir), file: spare.file, head, written }))
}

/// The range of `text` that differs from what is in the file at `at`. `there` is a buffer to read
/// into.
fn differing(file: &File, at: u64, text: &[u8], there: &mut Vec<u8>) -> io::Result<Range<usize>> {
    there.resize(there.len().max(text.len()), 0);
    let there = &mut there[..text.len()];
    let length = read_up_to(file, there, at)?;
    if length < text.len() {
        return Ok(common(text.iter(), there[..length].iter())..text.len());
    }
    let (Some(first), Some(last)) = (unlike(text, there).next(), unlike(text, there).next_back())
    else {
        return Ok(length..length);
    };
    let (first, last) = (first * CHUNK, (last * CHUNK + CHUNK).min(length));
    let start = first + common(text[first..].iter(), there[first..].iter());
    let end = last - common(text[..last].iter().rev(), there[..last].iter().rev());
    Ok(start..end)
}

/// Bytes that are compared at once, which is many times as fast as byte by byte.
const CHUNK: usize = 64;

/// The numbers of the chunks in which the two differ.
fn unlike(one: &[u8], other: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    let chunks = one.chunks(CHUNK).zip(other.chunks(CHUNK)).enumerate();
    chunks.filter(|(_, (one, other))| one != other).map(|(number, _)| number)
}

/// The length of their common beginning, in bytes.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Copies the live file and brings the copy up to date, except its first part; `None` when somebody
/// has written into the live file meanwhile, because the copy may then hold some of that between
/// the slots.
fn copy_live(
    dir: &Home,
    books: &mut Books,
    live: &Live,
    source: &File,
    state: &State,
    head: &[u8],
    left: &[FileIdentity],
) -> io::Result<Option<Unfinished>> {
    let pieces = books.missing(&live.header, state)?;
    let mut file = spare::begin(dir, left)?;
    let copied = io::copy(&mut &*source, &mut file)?;
    if FileIdentity::from(&source.metadata()?) != live.identity {
        return Ok(None);
    }
    file.write_all_at(b" ", 0)?;
    let mut written = usize::try_from(copied).unwrap_or_default() + 1;
    for (at, bytes) in &pieces {
        file.write_all_at(bytes, *at)?;
        written += bytes.len();
    }
    Ok(Some(Unfinished { path: spare::unfinished(dir), file, head: head.to_vec(), written }))
}

#[cfg(test)]
mod tests;
