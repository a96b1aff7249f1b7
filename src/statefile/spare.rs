//! The hidden names beside the state file, and to whom the files under them belong.
//!
//! A new file is written under one name, which nothing else ever gets, so what a process that died
//! has left there is nobody's. Before it is placed, it is noted as left and gets the other name,
//! the spare's, which is then exchanged with the state file's. So the file under the spare's name
//! is one that was left or, if a process died right after the exchange or could not move the file
//! away, one that somebody had saved. Therefore a file there that no projection has left is kept, and
//! one that a projection has left is written into, as long as nobody has it open, see `flat`.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;

use super::file::{FileIdentity, identity};
use super::found::Found;
use super::home::FILE_NAME;
use super::slots::header::Header;
use super::{displaced, load};
use crate::clock::boot;
use crate::private::NO_ATIME;

/// The name of the spare, the file that was in place before.
pub const NAME: &str = ".mcp-state.json.spare";

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// The path of a file that is being written. One name is enough: whoever writes holds the state
/// file's lock.
pub(super) fn unfinished(dir: &Path) -> PathBuf {
    dir.join(format!(".{FILE_NAME}.tmp"))
}

/// Opens the spare, if a projection has left it, to write into it as soon as a lease is granted.
pub(super) fn reopen(
    dir: &Path,
    left: &[FileIdentity],
) -> io::Result<Option<(File, FileIdentity)>> {
    let mut options = fs::OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | NO_ATIME).bits().cast_signed();
    let Ok(file) = options.read(true).write(true).custom_flags(flags).open(path(dir)) else {
        return Ok(None);
    };
    let (file, _) = file.into_parts();
    let metadata = file.metadata()?;
    let identity = FileIdentity::from(&metadata);
    // With a second name (hard link) it is somebody's copy.
    let is_ours = metadata.is_file()
        && metadata.nlink() == 1
        && metadata.mode() & 0o777 == 0o600
        && left.contains(&identity);
    Ok(is_ours.then_some((file, identity)))
}

/// Begins a new file, which nobody else has open and which is no link to another. It leaves no
/// spare; `left` tells whether that is somebody's.
pub(super) fn begin(dir: &Path, left: &[FileIdentity]) -> io::Result<File> {
    clear(dir, left)?;
    let path = unfinished(dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file =
        fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    Ok(file.into_parts().0)
}

/// Removes a file that was being written, and the spare, which is no loss. Errors are ignored,
/// because the one that matters is another.
pub(super) fn abandon(dir: &Path, left: &[FileIdentity]) {
    drop(fs::remove_file(unfinished(dir)));
    drop(clear(dir, left));
}

/// Removes the spare, which has what the state file had before. The caller holds the state file's
/// lock.
pub fn remove(dir: &Path, left: &[FileIdentity]) -> io::Result<()> {
    clear(dir, left)
}

/// Removes the file under the spare's name, which is of no more use, unless it is somebody's: then
/// it is kept as an edit.
fn clear(dir: &Path, left: &[FileIdentity]) -> io::Result<()> {
    let path = path(dir);
    match identity(&path)? {
        None => Ok(()),
        Some(found) if is_ours(&path, &found, left) => fs::remove_file(&path),
        Some(_) => displaced::keep(&path, &dir.join(FILE_NAME)).map(drop),
    }
}

fn is_ours(path: &Path, found: &FileIdentity, left: &[FileIdentity]) -> bool {
    if left.contains(found) {
        return true;
    }
    // Somebody may have written into it after it was displaced, or it only has the inode number of
    // one that is gone.
    if left.iter().any(|one| (one.dev, one.ino) == (found.dev, found.ino)) {
        return is_a_projections(path);
    }
    // If nothing is known of what was left, a link or the like is nothing to keep.
    left.is_empty() && (displaced::is_irregular(path) || is_a_projections(path))
}

/// Whether the file is a projection's: made invalid by one that died, complete as one wrote it, or
/// not what was written at all, as a power loss leaves it.
fn is_a_projections(path: &Path) -> bool {
    const MADE_INVALID: [&[u8]; 2] = [b" \n  \"goal\": ", b" \n  \"schema_version\": "];
    let Ok(bytes) = displaced::read(path) else { return false };
    let is_of_another_boot =
        || Header::parse(&bytes).is_some_and(|header| header.layout.boot != boot());
    matches!(bytes.first(), None | Some(0))
        || MADE_INVALID.iter().any(|start| bytes.starts_with(start))
        || is_of_another_boot()
        || matches!(load::recognise(&bytes), Ok(Found::Sound(_)))
}
