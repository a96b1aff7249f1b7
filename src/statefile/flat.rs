//! The file with a slot for each entity, so that a commit writes what it changed and no more, whatever the board's size.
//!
//! # The format
//!
//! One valid, indented JSON document, as the other way writes it, but: an entity's text stands in a slot that is filled up
//! with spaces; the comma between two stands before the second, so that the last one needs none when another is added;
//! tasks come last, because they are the most and a file grows at its end; the other fields have room behind their slots;
//! and the first fields stand in one part that every commit writes, while goal and plan are apart because they are long
//! and hardly change. The field `layout` says where all that is.
//!
//! A text that outgrows its slot moves to a new one at the end of its field and leaves an empty line. For that each task
//! and each reservation carries its `order`, by which a reader has the order of creation; discoveries and messages never
//! grow. When a field other than the tasks has used its room, or half of the file is empty lines, or many tasks have been
//! added at once, the whole is arranged anew, as another `generation`. That is rare enough: the room is a share of the
//! whole file, so each byte of it pays for a bounded number of bytes written then.
//!
//! The checksum is the one of the other way, except that a number counts 2n + 1 times, n being the entity's order, and that
//! `layout` has a number, too. So it follows from the numbers of what has changed.
//!
//! # A commit
//!
//! There are two files: the live one and, under a hidden name, the spare, which was live before. The slots that have
//! changed since the spare was live are written into it, as far as they differ from what stands there, and the names are
//! exchanged. A reader that still has the spare
//! open would see it change, so first the kernel is asked for a write lease on it, which it grants only on a file that
//! nobody else has open or mapped. If it does not, that commit copies the live file and writes into the copy. Nothing is
//! synced: the journal is the truth, and after a power loss the checksum shows whether all pages had arrived.
//!
//! A child of this process holds what was open at its fork until it runs another program, so a commit at that moment, too,
//! may find the spare held and copy.
//!
//! A spare counts only if it is surely a file that was live: it is one of those noted as left, nothing has another name
//! for it, it is of this generation, and it is behind the live one. It is made invalid before the first slot and valid
//! after the last, so a writer that dies between the two leaves nothing that could be mistaken for it. Under its name
//! may lie somebody's edit instead, see `spare`.
//!
//! # Several processes
//!
//! They take turns under the state file's lock, and no process reads the file again when its turn comes. Events tell each what
//! has changed and when; where it stands only changes by slots that are added at the end of a field, and those are read.
//! Another generation is read as a whole. What was changed before a process came it does not know, so it uses no spare
//! that is older than the file it began with: its first commit copies.

mod books;
mod first_part;
pub mod layout;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::OFlags;

use super::lease::{self, Asked};
use super::{FILE_NAME, FileIdentity, HEAD_BYTES, Unfinished, open_regular, read_up_to, spare};
use crate::private::NO_ATIME;
use crate::state::State;
use crate::state::changed::Changed;
use books::Before;
pub use books::{Books, Slotted, contribution};
use layout::Layout;

/// A new file is written so much at a time: what comes in one write the system may keep as one folio, all of which each
/// commit would then walk.
const STEP: usize = 64 << 10;

/// What the first bytes of a flat file say.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub board_id: String,
    pub seq: u64,
    pub checksum: String,
    pub layout: Layout,
}

impl Header {
    /// `None` when `head` does not begin a flat file.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let shown = super::parse_head(head)?;
        let mark = b"\n  \"checksum\": ";
        let mut rest = &head[memchr::memmem::find(head, mark)? + mark.len()..];
        let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
        let checksum = texts.next()?.ok()?;
        rest = rest[texts.byte_offset()..].strip_prefix(b",\n  \"layout\": ")?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Layout>();
        Some(Self { board_id: shown.board_id, seq: shown.seq, checksum, layout: values.next()?.ok()? })
    }

    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut head = vec![0; usize::try_from(HEAD_BYTES).unwrap_or_default().min(size_of(file)?)];
        file.read_exact_at(&mut head, 0)?;
        Ok(Self::parse(&head))
    }
}

fn size_of(file: &File) -> io::Result<usize> {
    usize::try_from(file.metadata()?.len()).map_err(io::Error::other)
}

/// The system that runs now; a file of another may have been left by a loss of power.
pub fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.chars().filter(char::is_ascii_hexdigit).take(16).collect()
    })
}

/// A file that a projection has left, and what its first fields say.
#[derive(Clone, Debug)]
struct Known {
    identity: FileIdentity,
    header: Arc<Header>,
}

/// The live file, as a projection has left it. Of one that this process has left itself all is known without opening it.
struct Live {
    identity: FileIdentity,
    file: Option<File>,
    header: Arc<Header>,
}

impl Live {
    fn open(dir: &Path, left: &[FileIdentity]) -> io::Result<Option<Self>> {
        let Some((file, identity)) = open_live(dir, left)? else { return Ok(None) };
        let header = Header::read(&file)?.filter(|header| header.layout.fits(identity.size));
        Ok(header.map(|header| Self { identity, file: Some(file), header: Arc::new(header) }))
    }

    /// Its file, if that is still there.
    fn reopened(&mut self, dir: &Path, left: &[FileIdentity]) -> io::Result<Option<File>> {
        match self.file.take() {
            Some(file) => Ok(Some(file)),
            None => {
                let found = open_live(dir, left)?.filter(|(_, identity)| *identity == self.identity);
                Ok(found.map(|(file, _)| file))
            }
        }
    }

    /// What stands in it, unless somebody writes into it.
    fn whole(&mut self, dir: &Path, left: &[FileIdentity]) -> io::Result<Option<Vec<u8>>> {
        let Some(mut file) = self.reopened(dir, left)? else { return Ok(None) };
        let mut bytes = Vec::with_capacity(size_of(&file)?);
        // Nothing was read of it but at an offset.
        file.read_to_end(&mut bytes)?;
        Ok((FileIdentity::from(&file.metadata()?) == self.identity).then_some(bytes))
    }
}

/// The live file, if it is the last of `left`: one from before, that somebody has put back, lacks what was shown since.
fn open_live(dir: &Path, left: &[FileIdentity]) -> io::Result<Option<(File, FileIdentity)>> {
    // What cannot be opened, no projection has left.
    let Ok(Some(file)) = open_regular(&dir.join(FILE_NAME)) else { return Ok(None) };
    let (file, _) = file.into_parts();
    let identity = FileIdentity::from(&file.metadata()?);
    Ok((left.last() == Some(&identity)).then_some((file, identity)))
}

#[derive(Debug, Default)]
pub struct Flat {
    /// What stands where, unless that is not known.
    books: Option<Books>,
    /// As this process has left them.
    live: Option<Known>,
    spare: Option<Known>,
    /// What the first fields of the one that was prepared last say.
    prepared: Option<Arc<Header>>,
}

impl Flat {
    /// Knows the file that was loaded.
    pub fn adopt(&mut self, books: Option<Books>) {
        *self = Self { books, ..Self::default() };
    }

    /// Writes a file that shows `state`, but for its first part, into the spare or a new one; `None` when this way is not open
    /// here.
    /// `changed` is what changed since the last one that got its place, and after an error nothing is known any more.
    /// `own` is the live file if nobody has left another since this process did.
    pub fn prepare(
        &mut self,
        dir: &Path,
        state: &State,
        changed: &Changed,
        own: Option<FileIdentity>,
        left: &[FileIdentity],
    ) -> io::Result<Option<Unfinished>> {
        let (live, known_spare) = match self.live.take().filter(|known| Some(known.identity) == own) {
            Some(Known { identity, header }) => (Some(Live { identity, file: None, header }), self.spare.take()),
            None => (Live::open(dir, left)?, None),
        };
        let live = live.filter(|live| {
            let board = state.board();
            live.header.board_id == board.board_id && live.header.seq <= board.seq
        });
        let mut books = self.books.take();
        let mut copied = None;
        if let (Some(books), Some(mut live), Changed::Entities(changed)) = (&mut books, live, changed)
            && books.follow(&live.header, live.file.as_ref(), changed)?
        {
            if let Some((head, header)) = books.update(state, changed, live.header.seq)?
                && books.knows_since(live.header.seq)
            {
                let spare = take_spare(dir, books, &live, known_spare, left)?;
                let mut prepared = spare.map_or(Ok(None), |spare| write_into(spare, books, state, &head))?;
                if prepared.is_none() {
                    let file = live.reopened(dir, left)?;
                    let copy = |file| copy_live(dir, books, &live, &file, state, &head, left);
                    prepared = file.map_or(Ok(None), copy)?;
                }
                if let Some(prepared) = prepared {
                    self.books = Some(std::mem::take(books));
                    self.live = Some(Known { identity: live.identity, header: live.header });
                    self.prepared = Some(Arc::new(header));
                    return Ok(Some(prepared));
                }
            }
            copied = live.whole(dir, left)?;
        }
        let before = match (&books, changed, copied) {
            (Some(books), Changed::Entities(changed), Some(file)) => Some(Before { books, changed, file }),
            _ => None,
        };
        let (books, text) = Books::arrange(state, before.as_ref())?;
        let file = spare::begin(dir, left)?;
        if matches!(lease::ask(&file), Asked::Unsupported) {
            return Ok(None);
        }
        for (at, step) in (0..).step_by(STEP).zip(text.chunks(STEP)) {
            file.write_all_at(step, at)?;
        }
        (self.books, self.prepared) = (Some(books), None);
        Ok(Some(Unfinished { path: spare::unfinished(dir), file, head: Vec::new(), written: text.len() }))
    }

    /// The file that was prepared got its place, and the one before it the spare's.
    pub fn exchange(&mut self, identity: FileIdentity) {
        let live = self.prepared.take().map(|header| Known { identity, header });
        self.spare = std::mem::replace(&mut self.live, live);
    }

    /// The file that was prepared did not get its place.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// A spare that may be written into, as long as nobody has it open.
struct Spare {
    path: PathBuf,
    file: File,
    header: Arc<Header>,
}

fn take_spare(
    dir: &Path,
    books: &Books,
    live: &Live,
    known: Option<Known>,
    left: &[FileIdentity],
) -> io::Result<Option<Spare>> {
    let mut options = std::fs::OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | NO_ATIME).bits().cast_signed();
    let path = spare::path(dir);
    let Ok(file) = options.read(true).write(true).custom_flags(flags).open(&path) else { return Ok(None) };
    let metadata = file.metadata()?;
    let identity = FileIdentity::from(&metadata);
    // With a second name it is somebody's copy.
    let is_ours =
        metadata.is_file() && metadata.nlink() == 1 && metadata.mode() & 0o777 == 0o600 && left.contains(&identity);
    if !is_ours {
        return Ok(None);
    }
    let header = match known.filter(|known| known.identity == identity) {
        Some(known) => Some(known.header),
        None => Header::read(&file)?.map(Arc::new),
    };
    let header = header.filter(|header| {
        header.board_id == live.header.board_id
            && header.layout.fits(metadata.len())
            && header.layout.generation == live.header.layout.generation
            && header.seq < live.header.seq
            && books.knows_since(header.seq)
    });
    Ok(header.map(|header| Spare { path, file, header }))
}

/// Brings the spare to the head, but for its first part; `None` when somebody has it open.
fn write_into(spare: Spare, books: &mut Books, state: &State, head: &[u8]) -> io::Result<Option<Unfinished>> {
    let pieces = books.missing(&spare.header, state)?;
    // Until it is given back whoever opens the file waits.
    let Asked::Granted(lease) = lease::ask(&spare.file) else { return Ok(None) };
    let mut there = Vec::new();
    let differs = differing(&spare.file, 0, head, &mut there)?;
    // Within one tick of the file system's clock somebody may have died while writing into it.
    if super::parse_head(&there).is_none_or(|found| found.seq != spare.header.seq) {
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
    Ok(Some(Unfinished { path: spare.path, file: spare.file, head, written }))
}

/// Where `text` is not what stands at `at` in the file. `there` is room for what does.
fn differing(file: &File, at: u64, text: &[u8], there: &mut Vec<u8>) -> io::Result<Range<usize>> {
    there.resize(there.len().max(text.len()), 0);
    let there = &mut there[..text.len()];
    let length = read_up_to(file, there, at)?;
    if length < text.len() {
        return Ok(common(text.iter(), there[..length].iter())..text.len());
    }
    let (Some(first), Some(last)) = (unlike(text, there).next(), unlike(text, there).next_back()) else {
        return Ok(length..length);
    };
    let (first, last) = (first * CHUNK, (last * CHUNK + CHUNK).min(length));
    let start = first + common(text[first..].iter(), there[first..].iter());
    let end = last - common(text[..last].iter().rev(), there[..last].iter().rev());
    Ok(start..end)
}

/// Compared at once, which is many times as fast as byte by byte.
const CHUNK: usize = 64;

/// The chunks in which they differ.
fn unlike(one: &[u8], other: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    let chunks = one.chunks(CHUNK).zip(other.chunks(CHUNK)).enumerate();
    chunks.filter(|(_, (one, other))| one != other).map(|(number, _)| number)
}

/// How many bytes they begin with that are the same.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// A copy of the live file, brought to the head; `None` when somebody has written into it meanwhile, for then the copy may
/// hold some of that, between what the slots say.
fn copy_live(
    dir: &Path,
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
