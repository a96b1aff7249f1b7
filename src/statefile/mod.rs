//! `mcp-state.json`: the whole live state, for anyone who opens the file. The journal is the truth and this its picture.
//!
//! Format 1 is the pretty JSON of a [`Document`](crate::state::document::Document) with a `checksum` behind `seq`: the
//! sum modulo 2^128 of one number for the header, one for each of its long fields that is not empty, and one for each
//! entity. The header is every field before `tasks` but the checksum; its long fields, `goal`, `master_plan`, `plans` and
//! `spent_attempts`, are in it as on a board that has none. In files from before they are in it as they are, and have no
//! numbers of their own. The number is the first 16 bytes, big-endian, of the SHA-256 of section, key and compact JSON with
//! a NUL byte behind the first two; the sections are the field names and `board`. Only an entity of a map has a key that is
//! not empty.
//!
//! Where the system lets it, the file is `flat`: the same fields in another order, with a `layout`, and a checksum that goes
//! by the entities' order, too. Else it is written `whole`. Both are loaded whichever is written.

pub mod displaced;
pub mod edit;
mod flat;
mod fragment;
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

use crate::failpoint;
use crate::private;
use crate::state::State;
use crate::state::changed::Changed;
use crate::state::document::SCHEMA_VERSION;
use flat::Flat;
pub use flat::boot;
pub use load::{Found, LoadError, load, load_file, recognise};
pub use put_back::{PutBack, keep_put_back};
pub use spare::NAME as SPARE;
use whole::Whole;

pub const FILE_NAME: &str = "mcp-state.json";

/// The header's first fields lie within this many bytes.
const HEAD_BYTES: u64 = 4096;

/// Makes every projection of this process write whole files, as where the other way is not open.
pub const WHOLE_FILES: &str = "CALLBOARD_WHOLE_FILES";

/// Keeps the file up: in slots where the system allows it, else as a whole, which is seen by trying.
#[derive(Debug)]
pub struct Projection {
    dir: PathBuf,
    way: Way,
    /// Since the last file that got its place.
    changed: Changed,
    bytes: u64,
    written: u64,
    /// The file that got its place last, and the event that it shows.
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
    /// The event that it shows.
    seq: u64,
    /// What was left when it was prepared, which nobody adds to before it gets its place.
    left: Left,
}

impl Unplaced {
    pub fn left(&self) -> &Left {
        &self.left
    }
}

/// A file to which its first part is wanting.
struct Unfinished {
    path: PathBuf,
    file: File,
    head: Vec<u8>,
    /// What was written for it, in bytes.
    written: usize,
}

impl Unfinished {
    /// Its first byte makes the file valid. It is looked at before the lease ends: who has waited to open it may write at once.
    fn finish(&self) -> io::Result<FileIdentity> {
        failpoint::hit("slots-written")?;
        self.file.write_all_at(&self.head, 0)?;
        let identity = FileIdentity::from(&self.file.metadata()?);
        lease::give_back(&self.file);
        Ok(identity)
    }
}

impl Projection {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        match std::env::var_os(WHOLE_FILES).is_some_and(|value| !value.is_empty()) {
            true => Self::of_whole_files(dir),
            false => Self::by(Way::Flat(Box::default()), dir),
        }
    }

    /// As [`WHOLE_FILES`] asks for.
    pub fn of_whole_files(dir: impl Into<PathBuf>) -> Self {
        Self::by(Way::Whole(Box::new(Whole::new())), dir)
    }

    fn by(way: Way, dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), way, changed: Changed::default(), bytes: 0, written: 0, last: None }
    }

    /// Loads the file like [`load()`], to go on from it: the next state that is written is to come from this document.
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

    /// The same, see [`prepare`](Self::prepare) and [`place`](Self::place).
    pub fn write_keeping(
        &mut self,
        state: &mut State,
        left: Left,
        note: impl FnOnce(Left) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let unplaced = self.prepare(state, FileIdentity::of(&self.dir)?, left)?;
        self.place(unplaced, FileIdentity::of(&self.dir)?, note)
    }

    /// Writes a file that shows `state`, to be placed or given up before another is prepared. `found` lies in the place.
    pub fn prepare(&mut self, state: &mut State, found: Option<FileIdentity>, left: Left) -> io::Result<Unplaced> {
        self.changed = std::mem::take(&mut self.changed).and(state.take_changed());
        // What others have written twice within one tick of the file system's clock looks the same, but for its event.
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

    /// Puts the file that was prepared in its place, where `found` lies. If no projection has left that it is kept, and the
    /// answer says where. `note` is told what will have been left before it is in its place, so that a crash leaves nothing
    /// that nobody knows.
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
                // Only now: what nobody knows there is taken for somebody's.
                fs::rename(&file.path, &spare)?;
            }
            Ok((identity, displaced::replace(&spare, &self.dir.join(FILE_NAME), found, &left.files, spared)?))
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

    /// The file that was prepared is not to get its place.
    pub fn give_up(&mut self, Unplaced { file, .. }: Unplaced) {
        self.last = None;
        if let Way::Flat(flat) = &mut self.way {
            flat.forget();
        }
        // What lies under the spare's name may by now be what somebody has saved. The error that matters is another.
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

    /// The event that `found` shows, if this projection has left it.
    pub fn shows(&self, found: &FileIdentity) -> Option<u64> {
        self.last.filter(|(last, _)| last == found).map(|(_, seq)| seq)
    }

    /// Of the file that was written last, in bytes; 0 before the first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was written for it, in bytes.
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// What a file that is written as a whole says of `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut whole = Whole::new();
    whole.render(state)?;
    Ok(whole.text)
}

fn hex(checksum: u128) -> String {
    format!("{checksum:032x}")
}

/// A new file: nobody else has it open, and it is no link to another.
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
    /// Of the file in `dir`; `None` when there is none.
    pub fn of(dir: &Path) -> io::Result<Option<Self>> {
        displaced::identity(&dir.join(FILE_NAME))
    }
}

impl From<&std::fs::Metadata> for FileIdentity {
    fn from(metadata: &std::fs::Metadata) -> Self {
        let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Self { dev: metadata.dev(), ino: metadata.ino(), size: metadata.size(), mtime_ns }
    }
}

/// What the projections have left in the place of the state file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// The one that is to be there is the last.
    pub files: Vec<FileIdentity>,
    /// The event that it shows.
    pub seq: u64,
    /// The system that ran then: a loss of power may leave a file of that identity that shows less.
    #[serde(default)]
    boot: String,
}

impl Left {
    pub fn new(files: Vec<FileIdentity>, seq: u64) -> Self {
        Self { files, seq, boot: flat::boot().to_owned() }
    }

    /// Whether a projection has left it, as far as is known.
    pub fn has(&self, file: &FileIdentity) -> bool {
        self.files.is_empty() || self.files.contains(file)
    }

    /// The event that `found` shows, if a projection has left it last.
    pub fn shows(&self, found: &FileIdentity) -> Option<u64> {
        (self.files.last() == Some(found) && self.is_of_this_boot()).then_some(self.seq)
    }

    /// No loss of power has come since.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == flat::boot()
    }
}

/// What the head of the file says of itself, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub board_id: String,
    pub seq: u64,
}

/// Reads the head of the file in `dir` only. `None` when there is no file, or none that a [`Projection`] wrote.
pub fn seq_of(dir: &Path) -> io::Result<Option<Head>> {
    let Some(file) = open_regular(&dir.join(FILE_NAME))? else { return Ok(None) };
    // In one go.
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(parse_head(&head))
}

fn parse_head(head: &[u8]) -> Option<Head> {
    let start = format!("{{\n  \"schema_version\": {SCHEMA_VERSION},\n  \"board_id\": ");
    let rest = head.strip_prefix(start.as_bytes())?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let board_id = values.next()?.ok()?;
    let rest = rest[values.byte_offset()..].strip_prefix(b",\n  \"seq\": ")?;
    let digits = rest.split(|byte| *byte == b',').next().filter(|digits| digits.len() < rest.len())?;
    Some(Head { board_id, seq: std::str::from_utf8(digits).ok()?.parse().ok()? })
}

/// As many bytes as there are from `at` on, and how many those were.
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

/// Neither follows a link nor waits for the other end of a pipe.
fn open_regular(path: &Path) -> io::Result<Option<fs::File>> {
    // Of a bare name the parent is empty, and no directory.
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = private::read(dir, &path.file_name().unwrap_or_default().to_string_lossy())?;
    Ok(file.map(|file| fs::File::from_parts(file, path)))
}

/// Renames the file in `dir` to `mcp-state.json.<suffix>-N` with the first free N, and says to what.
pub fn set_aside(dir: &Path, suffix: &str) -> io::Result<PathBuf> {
    let mut number: u64 = 1;
    loop {
        let aside = dir.join(format!("{FILE_NAME}.{suffix}-{number}"));
        match fs::symlink_metadata(&aside) {
            Ok(_) => number += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::rename(dir.join(FILE_NAME), &aside)?;
                return Ok(aside);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
