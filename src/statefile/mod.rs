//! `mcp-state.json`: the whole live state, for anyone who opens the file. The journal is the truth, and this file its
//! projection.
//!
//! Format 1 is the pretty-printed JSON of a [`Document`](crate::state::document::Document) with a `checksum` after
//! `seq`: the sum modulo 2^128 of one number for the header, one for each of its long fields that is not empty, and one
//! for each entity. The header is every field before `tasks` except the checksum; its long fields, `goal`,
//! `master_plan`, `plans` and `spent_attempts`, enter the header's number as if they were empty. In older files they
//! enter it as they are, and have no numbers of their own. A number is the first 16 bytes, big-endian, of the SHA-256
//! of section, key and compact JSON, with a NUL byte after each of the first two; a section is a field's name or
//! `board`. Only an entity of a map has a key that is not empty.
//!
//! Where the system allows it, the file is `flat`: the same fields in another order, with a `layout`, and a checksum
//! that covers the entities' order, too. Elsewhere it is written `whole`. Either form can be loaded anywhere.

pub mod displaced;
pub mod edit;
mod flat;
mod fragment;
mod home;
mod lease;
mod load;
mod older;
mod plan;
mod put_back;
mod rendering;
mod spare;
mod whole;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};

use crate::config;
use crate::failpoint;
use crate::private;
use crate::state::State;
use crate::state::changed::Changed;
use crate::state::document::SCHEMA_VERSION;
use flat::Flat;
pub use flat::boot;
pub use home::Home;
pub use load::{Found, LoadError, load, load_file, recognise};
pub use put_back::{PutBack, keep_put_back};
pub use spare::NAME as SPARE;
use whole::Whole;

/// Name of the state file unless the board's configuration sets another.
pub const FILE_NAME: &str = config::STATE_FILE;

/// The header's first fields lie within this many bytes.
const HEAD_BYTES: u64 = 4096;

/// Environment variable that makes every projection of this process write whole files, as where flat ones are not
/// possible.
pub const WHOLE_FILES: &str = "CALLBOARD_WHOLE_FILES";

/// Keeps the state file up to date: as a flat file where the system allows it, which is found out by trying, else as a
/// whole file.
#[derive(Debug)]
pub struct Projection {
    dir: Home,
    way: Way,
    /// What has changed since the last file that was placed.
    changed: Changed,
    bytes: u64,
    written: u64,
    /// The file that was placed last, and the seq that it shows.
    last: Option<(FileIdentity, u64)>,
}

#[derive(Debug)]
enum Way {
    Flat(Box<Flat>),
    Whole(Box<Whole>),
}

/// A file that shows a state and is not in its place yet.
pub struct Unplaced {
    file: Unfinished,
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

/// A file that still lacks its first part, `head`.
struct Unfinished {
    path: PathBuf,
    file: File,
    head: Vec<u8>,
    /// Number of bytes written for it so far.
    written: usize,
}

impl Unfinished {
    /// Writes the first part, whose first byte makes the file valid. The identity is read before the lease ends: who
    /// has waited to open the file may write at once.
    fn finish(&self) -> io::Result<FileIdentity> {
        failpoint::hit("slots-written")?;
        self.file.write_all_at(&self.head, 0)?;
        let identity = FileIdentity::from(&self.file.metadata()?);
        lease::give_back(&self.file);
        Ok(identity)
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
        let (found, books) = load::load_to_write(&self.dir)?.unzip();
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
            if identity.is_some() && displaced::identity(path).is_ok_and(|found| found == identity) {
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

/// The text of a whole file that shows `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut whole = Whole::new();
    whole.render(state)?;
    Ok(whole.text)
}

fn hex(checksum: u128) -> String {
    format!("{checksum:032x}")
}

/// Writes a new file, which nobody else has open and which is no link to another.
fn write_new(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    Ok(file.into_parts().0)
}

/// Tells whether the file is still the one that was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    pub mtime_ns: i64,
}

impl FileIdentity {
    /// The identity of the state file in `dir`; `None` when there is none.
    pub fn of(dir: impl Into<Home>) -> io::Result<Option<Self>> {
        displaced::identity(&dir.into().file())
    }
}

impl From<&std::fs::Metadata> for FileIdentity {
    fn from(metadata: &std::fs::Metadata) -> Self {
        let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Self { dev: metadata.dev(), ino: metadata.ino(), size: metadata.size(), mtime_ns }
    }
}

/// The files that projections have left in the state file's place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// The last one is the one that should be there now.
    pub files: Vec<FileIdentity>,
    /// The seq that it shows.
    pub seq: u64,
    /// The boot ID of the system at that time: after a power loss, a file of the same identity may show less.
    #[serde(default)]
    boot: String,
}

impl Left {
    pub fn new(files: Vec<FileIdentity>, seq: u64) -> Self {
        Self { files, seq, boot: flat::boot().to_owned() }
    }

    /// Whether a projection has left `file`, as far as is known.
    pub fn has(&self, file: &FileIdentity) -> bool {
        self.files.is_empty() || self.files.contains(file)
    }

    /// The seq that `found` shows, if a projection left it last, since the system was started.
    pub fn shows(&self, found: &FileIdentity) -> Option<u64> {
        (self.files.last() == Some(found) && self.is_of_this_boot()).then_some(self.seq)
    }

    /// Whether the system has not been restarted since, so that there was no power loss.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == flat::boot()
    }
}

/// What the head of a state file says, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub board_id: String,
    pub seq: u64,
}

/// Reads the head of the file in `dir` only. `None` when there is no file, or none that a [`Projection`] wrote.
pub fn seq_of(dir: impl Into<Home>) -> io::Result<Option<Head>> {
    let Some(file) = open_regular(&dir.into().file())? else { return Ok(None) };
    // With room for all, one read is enough.
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(parse_head(&head))
}

fn parse_head(head: &[u8]) -> Option<Head> {
    let rest = head.strip_prefix(b"{\n  \"schema_version\": ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let version: u32 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    if !(1..=SCHEMA_VERSION).contains(&version) {
        return None;
    }
    let rest = rest[digits..].strip_prefix(b",\n  \"board_id\": ")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let board_id = values.next()?.ok()?;
    let rest = rest[values.byte_offset()..].strip_prefix(b",\n  \"seq\": ")?;
    let digits = rest.split(|byte| *byte == b',').next().filter(|digits| digits.len() < rest.len())?;
    Some(Head { board_id, seq: std::str::from_utf8(digits).ok()?.parse().ok()? })
}

/// Fills `bytes` from offset `at` on, as far as the file goes; returns how many bytes were read.
fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], at + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Opens a file, without following a link or waiting for the other end of a pipe.
fn open_regular(path: &Path) -> io::Result<Option<fs::File>> {
    // The parent of a bare name is empty, and no directory.
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = private::read(dir, &path.file_name().unwrap_or_default().to_string_lossy())?;
    Ok(file.map(|file| fs::File::from_parts(file, path)))
}

/// Renames the file in `dir` to `<its name>.<suffix>-N` with the first free N, and returns its new path.
pub fn set_aside(dir: impl Into<Home>, suffix: &str) -> io::Result<PathBuf> {
    let dir = dir.into();
    let mut number: u64 = 1;
    loop {
        let aside = dir.join(format!("{}.{suffix}-{number}", dir.name()));
        match fs::symlink_metadata(&aside) {
            Ok(_) => number += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::rename(dir.file(), &aside)?;
                return Ok(aside);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
