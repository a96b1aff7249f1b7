//! Files of artifacts, below `artifacts/<task>/`: each is written whole, under a name with its
//! hash, before the board hears of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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

/// How long to wait for another process that writes an artifact.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes the file and returns the artifact; the same content again writes nothing.
pub(crate) fn keep(
    board: &Path,
    task: &TaskId,
    name: &str,
    source: &Source,
    at: Timestamp,
) -> Result<Artifact, Refusal> {
    let content = match source {
        Source::Text(text) => cleaned(text.as_bytes().to_vec()),
        Source::Path(path) => {
            is_none_of(board, Path::new(path))?;
            cleaned(read(Path::new(path))?)
        }
    };
    limit::ARTIFACT.check(content.len())?;
    let bytes = content.len() as u64;
    let artifact = Artifact {
        name: name.to_owned(),
        bytes,
        sha256: sha256(&content),
        agent: None,
        attempt: None,
        at,
        earlier: Vec::new(),
    };
    place(board, task, &artifact.file(), &content).map_err(|error| failed(&error))?;
    Ok(artifact)
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::ArtifactFailed { detail: error.to_string() }
}

fn unread(error: io::Error) -> Refusal {
    Refusal::ArtifactUnread { detail: error.to_string() }
}

/// The content without its secrets. In a JSON document, fields tell more about secrets than plain
/// text does.
fn cleaned(content: Vec<u8>) -> Vec<u8> {
    if let Some((clean, _)) = str::from_utf8(&content).ok().and_then(redact::document) {
        return clean.into_bytes();
    }
    redact::bytes(&content).map_or(content, |(clean, _)| clean)
}

/// Refuses the board's own files, under whatever name: opening the journal's and closing it again
/// would drop SQLite's locks on it in this process.
fn is_none_of(board: &Path, path: &Path) -> Result<(), Refusal> {
    let refused = || {
        let detail = "the file is one of the board's own; `callboard backup` copies the board, \
                      and `callboard state` prints it: attach what it wrote";
        Err(Refusal::ArtifactUnread { detail: detail.to_owned() })
    };
    let canonical = path.canonicalize().map_err(unread)?;
    if canonical
        .parent()
        .is_some_and(|parent| board.canonicalize().is_ok_and(|board| board == parent))
    {
        return refused();
    }
    let identity =
        |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let own = fs::read_dir(board).into_iter().flatten().flatten().map(|entry| entry.path());
    let given = identity(path);
    if own.map(|own| identity(&own)).any(|own| own.is_some() && own == given) {
        refused()
    } else {
        Ok(())
    }
}

/// Reads a regular file, refusing one that is larger than may be kept.
fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file: File = opened.map_err(unread)?;
    if !file.metadata().map_err(unread)?.is_file() {
        return Err(Refusal::ArtifactUnread {
            detail: "the path leads to no regular file".to_owned(),
        });
    }
    let mut content = Vec::new();
    file.take(limit::ARTIFACT.max as u64 + 1).read_to_end(&mut content).map_err(unread)?;
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
