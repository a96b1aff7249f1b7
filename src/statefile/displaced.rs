//! Files that were found in the state file's place, put there by somebody other than a projection,
//! and kept until they have been examined. Nothing here follows a link or opens what is not a
//! regular file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::{CWD, Mode, RenameFlags, chmodat, renameat_with};
use rustix::io::Errno;

use super::file::{FileIdentity, identity, metadata};
use super::home::{FILE_NAME, Home};
use super::load;
use crate::failpoint;
use crate::state::time::Timestamp;

/// Mark in the name of a file that waits to be examined; a number follows.
const EDITED: &str = "edited-";
const REJECTED: &str = "rejected-";
const REASON: &str = ".txt";

/// The path under which a displaced file waits.
fn waiting(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!(".{FILE_NAME}.{EDITED}{number}"))
}

/// What became of the file that was in place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Where the file waits, if it was somebody's.
    pub kept: Option<PathBuf>,
    /// Whether names cannot be exchanged on this file system.
    pub renamed_only: bool,
}

impl Replaced {
    fn kept(kept: PathBuf) -> Self {
        Self { kept: Some(kept), ..Self::default() }
    }
}

/// Puts the finished file `new` in the place of the one at `path`, where `found` was a moment ago.
/// The old file is kept, unless it is one of `left`, which projections have written, or `left` is
/// empty, so that nothing is known of it. One of `left` stays under the name of `new` if it is to
/// be `spared`; otherwise it is removed.
///
/// Where names can be exchanged this is one step, so what is examined is what was saved over the
/// old file a moment ago. The old file is removed instead of renamed over, so that its pages that
/// have not reached the disk never will: after a rename over it, ext4 would write the new one out
/// at once, and the next commit would wait for that.
pub fn replace(
    new: &Path,
    path: &Path,
    found: Option<FileIdentity>,
    left: &[FileIdentity],
    spared: bool,
) -> io::Result<Replaced> {
    let done = |()| Replaced::default();
    let is_ours = |file: &FileIdentity| left.is_empty() || left.contains(file);
    let mut found = found.filter(|found| left.contains(found));
    loop {
        if found.take().is_none() {
            let Some(metadata) = metadata(path)? else {
                match renameat_with(CWD, new, CWD, path, RenameFlags::NOREPLACE) {
                    Ok(()) => return Ok(Replaced::default()),
                    Err(Errno::EXIST) => continue,
                    Err(_) => return fs::rename(new, path).map(done),
                }
            };
            // A directory cannot be removed like a file: this fails instead.
            if metadata.is_dir() && is_ours(&FileIdentity::from(&metadata)) {
                return fs::rename(new, path).map(done);
            }
        }
        match renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => {
                let displaced = identity(new)?;
                return match displaced {
                    Some(old) if spared && left.contains(&old) => Ok(Replaced::default()),
                    Some(old) if is_ours(&old) => fs::remove_file(new).map(done),
                    _ => keep(new, path).map(Replaced::kept),
                };
            }
            // Either the old file is gone, or the new one is, because somebody is deleting the
            // whole directory.
            Err(Errno::NOENT) => {
                fs::symlink_metadata(new)?;
            }
            // The system or file system has no such call, and what was found may have been saved
            // over since.
            Err(error) => {
                let renamed_only = matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP);
                let kept = match identity(path)? {
                    Some(old) if !is_ours(&old) => Some(keep(path, path)?),
                    _ => None,
                };
                fs::rename(new, path)?;
                return Ok(Replaced { kept, renamed_only });
            }
        }
    }
}

/// Renames `file` to wait behind all that wait already: of two edits the older is examined first.
pub(super) fn keep(file: &Path, path: &Path) -> io::Result<PathBuf> {
    failpoint::hit("before-keep")?;
    let dir = path.parent().unwrap_or(Path::new("."));
    let newest = numbers(dir).last().copied().unwrap_or_default();
    let mut behind = (u64::from(newest) + 1..).map(|number| waiting(dir, number));
    // The directory may not have been read completely, and no waiting file may be replaced.
    let free = behind
        .find_map(|kept| identity(&kept).map(|found| found.is_none().then_some(kept)).transpose());
    let kept = free.ok_or(io::ErrorKind::AlreadyExists)??;
    fs::rename(file, &kept)?;
    Ok(kept)
}

/// Whether something is at `path` and is no regular file.
pub fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// The content of a regular file, of at most the size that a board may reach.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    if is_irregular(path) {
        return Err("it is not a regular file (a link, a pipe, a directory or a device); it was \
                    not opened"
            .to_owned());
    }
    match load::read(path) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err("it is gone".to_owned()),
        Err(error) => Err(format!("it cannot be read: {}", error.kind())),
    }
}

/// The files that wait to be examined, oldest first.
pub fn all_waiting(dir: &Path) -> Vec<PathBuf> {
    numbers(dir).into_iter().map(|number| waiting(dir, number.into())).collect()
}

/// The numbers of the files that wait, ascending.
fn numbers(dir: &Path) -> Vec<u32> {
    let mark = format!(".{FILE_NAME}.{EDITED}");
    let number = |name: &String| name.strip_prefix(&mark)?.parse().ok();
    let mut numbers: Vec<_> = names(dir).iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The names of rejected edits, newest first.
pub fn all_rejected(dir: &Home) -> Vec<String> {
    let mark = format!("{}.{REJECTED}", dir.name());
    let mut names: Vec<_> = names(dir)
        .into_iter()
        .filter(|name| name.starts_with(&mark) && !name.ends_with(REASON))
        .collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Keeps `file` as rejected at `now`, with `reason` in a file beside it, and returns its new path.
pub fn reject(dir: &Home, file: &Path, reason: &str, now: Timestamp) -> io::Result<PathBuf> {
    let time: String = now.to_string().chars().filter(|c| !"-:".contains(*c)).collect();
    let name = |number: u64| match number {
        1 => format!("{}.{REJECTED}{time}", dir.name()),
        number => format!("{}.{REJECTED}{time}-{number}", dir.name()),
    };
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let path = (1..)
        .map(|number| dir.join(name(number)))
        .find(is_free)
        .ok_or(io::ErrorKind::AlreadyExists)?;
    let text = format!("{path}{REASON}", path = path.display());
    match fs::remove_file(&text) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => write_new(Path::new(&text), reason.as_bytes())?,
    };
    if !is_irregular(file) {
        // Another user's file stays as it is.
        _ = chmodat(CWD, file, Mode::RUSR | Mode::WUSR, rustix::fs::AtFlags::empty());
    }
    match fs::rename(file, &path) {
        Ok(()) => Ok(path),
        Err(error) => {
            drop(fs::remove_file(&text));
            Err(error)
        }
    }
}

/// Writes a new file, which nobody else has open and which is no link to another.
fn write_new(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    Ok(file.into_parts().0)
}
