//! `mcp-state.json`: the whole live state, for anyone who opens the file. The journal is the truth and this its picture.
//!
//! Format 1 is the pretty JSON of a [`Document`](crate::state::document::Document) with a `checksum` behind `seq`: the
//! sum modulo 2^128 of one number for the header (every field before `tasks` but the checksum) and one for each entity.
//! The number is the first 16 bytes, big-endian, of the SHA-256 of section, key and compact JSON with a NUL byte behind
//! the first two; the sections are the field names and `board`. A list's entity and the header have an empty key.

pub mod displaced;
pub mod edit;
mod fragment;
mod load;
mod older;
mod put_back;

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};

use crate::private;
use crate::state::State;
use crate::state::agent::{Agent, Discovery, Participant};
use crate::state::document::{Retired, SCHEMA_VERSION};
use crate::state::id::{AgentId, DiscoveryId, ParticipantId, TaskId};
use crate::state::task::Task;
use fragment::{Section, Shape, sum_of};
pub use load::{Found, LoadError, load, load_file};
pub use put_back::{PutBack, keep_put_back};

pub const FILE_NAME: &str = "mcp-state.json";

/// The header's first fields lie within this many bytes.
const HEAD_BYTES: u64 = 4096;

const NO_CHECKSUM: &str = "00000000000000000000000000000000";

/// Writes the file, and keeps the text of every entity so that an operation costs what it changed.
#[derive(Debug)]
pub struct Projection {
    dir: PathBuf,
    tasks: Section<TaskId, Task>,
    agents: Section<AgentId, Agent>,
    discoveries: Section<DiscoveryId, Discovery>,
    participants: Section<ParticipantId, Participant>,
    retired: Section<TaskId, Retired>,
    text: Vec<u8>,
}

impl Projection {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            tasks: Section::new("tasks", Shape::List),
            agents: Section::new("agents", Shape::Map),
            discoveries: Section::new("discoveries", Shape::List),
            participants: Section::new("participants", Shape::Map),
            retired: Section::new("retired", Shape::Map),
            text: Vec::new(),
        }
    }

    /// Replaces the file by `state`. A reader sees the old file or the new one; nothing is synced to the disk.
    pub fn write(&mut self, state: &State) -> io::Result<()> {
        self.write_keeping(state, &[], |_| Ok(())).map(drop)
    }

    /// The same, but a file that is none of `left` is kept, and the answer says where. `note` is told which file will
    /// have been left before it is in its place, so that a crash leaves none that nobody knows.
    pub fn write_keeping(
        &mut self,
        state: &State,
        left: &[FileIdentity],
        note: impl FnOnce(FileIdentity) -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        self.render(state)?;
        // One name is enough: whoever writes has the board's lock.
        let unfinished = self.dir.join(format!(".{FILE_NAME}.tmp"));
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = write_new(&unfinished, &self.text);
        let new = written.as_ref().ok().copied();
        let noted = written.and_then(note);
        let replaced = noted.and_then(|()| displaced::replace(&unfinished, &self.dir.join(FILE_NAME), left));
        // What lies under that name may by now be what somebody has saved.
        if replaced.is_err() && (new.is_none() || displaced::identity(&unfinished).is_ok_and(|found| found == new)) {
            // The error that matters is the first one.
            let _ = fs::remove_file(&unfinished);
        }
        replaced
    }

    /// Of the file that was written last, in bytes; 0 before the first.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    fn render(&mut self, state: &State) -> io::Result<()> {
        let text = &mut self.text;
        text.clear();
        let place = write_header(text, state)?;
        let sums = [
            sum_of("board", "", state.board())?,
            self.tasks.write(text, state.tasks().map(|task| (&task.id, task)))?,
            self.agents.write(text, state.agents().map(|agent| (&agent.id, agent)))?,
            self.discoveries.write(text, state.discoveries().map(|one| (&one.id, one)))?,
            self.participants.write(text, state.participants().map(|one| (&one.id, one)))?,
            self.retired.write(text, state.retired())?,
        ];
        text.extend_from_slice(b"\n}");
        let checksum = sums.into_iter().fold(0, u128::wrapping_add);
        text[place..place + NO_CHECKSUM.len()].copy_from_slice(hex(checksum).as_bytes());
        Ok(())
    }
}

/// What the file says of `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut projection = Projection::new(PathBuf::new());
    projection.render(state)?;
    Ok(projection.text)
}

/// Everything before `tasks`, and where in it the checksum belongs.
fn write_header(text: &mut Vec<u8>, state: &State) -> io::Result<usize> {
    let board = serde_json::to_string_pretty(state.board())?;
    // A line break in the text is never inside a string, so this is the field.
    let seq = format!("\n  \"seq\": {},", state.seq());
    let (before, after) = board.split_once(&seq).ok_or_else(|| io::Error::other("the board has no seq"))?;
    text.extend_from_slice(before.as_bytes());
    text.extend_from_slice(seq.as_bytes());
    text.extend_from_slice(b"\n  \"checksum\": \"");
    let place = text.len();
    text.extend_from_slice(NO_CHECKSUM.as_bytes());
    text.extend_from_slice(b"\",");
    text.extend_from_slice(after.strip_suffix("\n}").unwrap_or(after).as_bytes());
    Ok(place)
}

fn hex(checksum: u128) -> String {
    format!("{checksum:032x}")
}

/// A new file: nobody else has it open, and it is no link to another.
fn write_new(path: &Path, text: &[u8]) -> io::Result<FileIdentity> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    Ok(FileIdentity::from(&file.metadata()?))
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

/// What the head of the file says of itself, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub board_id: String,
    pub seq: u64,
}

/// Reads the head of the file in `dir` only. `None` when there is no file, or none that a [`Projection`] wrote.
pub fn seq_of(dir: &Path) -> io::Result<Option<Head>> {
    let Some(file) = open_regular(&dir.join(FILE_NAME))? else { return Ok(None) };
    let mut head = Vec::new();
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

/// Neither follows a link nor waits for the other end of a pipe.
fn open_regular(path: &Path) -> io::Result<Option<fs::File>> {
    let (dir, name) = (path.parent().unwrap_or(Path::new(".")), path.file_name().unwrap_or_default());
    let file = private::read(dir, &name.to_string_lossy())?;
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
