//! The files of artifacts: written whole before the board hears of them, under a name in which their hash stands, below
//! `artifacts/<task>/`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::private::{Dir, Purpose};
use crate::redact;
use crate::state::artifact::{Artifact, DIRECTORY, Source};
use crate::state::digest::sha256;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

/// Another process writes an artifact at most for so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes the file and says what it is; the same again writes nothing.
pub fn keep(board: &Path, task: &TaskId, name: &str, source: &Source, at: Timestamp) -> Result<Artifact, Refusal> {
    let content = match source {
        Source::Text(text) => text.as_bytes().to_vec(),
        Source::Path(path) => cleaned(read(Path::new(path))?),
    };
    limit::ARTIFACT.check(content.len())?;
    let bytes = content.len() as u64;
    let artifact = Artifact { name: name.to_owned(), bytes, sha256: sha256(&content), agent: None, attempt: None, at };
    place(board, task, &artifact.file(), &content).map_err(|error| failed(&error))?;
    Ok(artifact)
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::ArtifactFailed { detail: error.to_string() }
}

/// Without the secrets, if it is text.
fn cleaned(content: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(content) {
        Ok(text) => redact::text(&text).map_or(text, |(clean, _)| clean).into_bytes(),
        Err(binary) => binary.into_bytes(),
    }
}

/// A regular file, and not more of it than may be kept.
fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file: File = opened.map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return Err(Refusal::ArtifactFailed { detail: "the path leads to no regular file".to_owned() });
    }
    let mut content = Vec::new();
    file.take(limit::ARTIFACT.max as u64 + 1).read_to_end(&mut content).map_err(|error| failed(&error))?;
    limit::ARTIFACT.check(content.len())?;
    Ok(content)
}

fn place(board: &Path, task: &TaskId, file: &str, content: &[u8]) -> io::Result<()> {
    let board = Dir::open(board)?.ok_or(io::ErrorKind::NotFound)?;
    let (all, _) = board.make_dir(DIRECTORY)?;
    all.keep_private()?;
    let (dir, _) = all.make_dir(task.as_str())?;
    dir.keep_private()?;
    let _alone = all.lock(PATIENCE)?.ok_or(io::ErrorKind::TimedOut)?;
    dir.clear_unfinished()?;
    if let Some(mut there) = dir.open_file(file, Purpose::Read)? {
        let mut known = Vec::new();
        Read::by_ref(&mut there).take(limit::ARTIFACT.max as u64 + 1).read_to_end(&mut known)?;
        if known == content {
            return Ok(());
        }
    }
    dir.place(file, content)
}
