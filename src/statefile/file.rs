//! The state file's own files: how they are opened, told apart and moved aside.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::home::Home;
use crate::clock::boot;
use crate::private;

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
        identity(&dir.into().file())
    }
}

impl From<&std::fs::Metadata> for FileIdentity {
    fn from(metadata: &std::fs::Metadata) -> Self {
        let mtime_ns =
            metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
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
    /// The boot ID of the system at that time: after a power loss, a file of the same identity may
    /// show less.
    #[serde(default)]
    pub(super) boot: String,
}

impl Left {
    pub fn new(files: Vec<FileIdentity>, seq: u64) -> Self {
        Self { files, seq, boot: boot().to_owned() }
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
        self.boot == boot()
    }
}

pub fn identity(path: &Path) -> io::Result<Option<FileIdentity>> {
    Ok(metadata(path)?.as_ref().map(FileIdentity::from))
}

pub(super) fn metadata(path: &Path) -> io::Result<Option<std::fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => metadata.map(Some),
    }
}

/// Opens a file, without following a link or waiting for the other end of a pipe.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<fs::File>> {
    // The parent of a bare name is empty, and no directory.
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = private::read(dir, &path.file_name().unwrap_or_default().to_string_lossy())?;
    Ok(file.map(|file| fs::File::from_parts(file, path)))
}

/// Fills `bytes` from offset `at` on, as far as the file goes; returns how many bytes were read.
pub(super) fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
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

/// Renames the file in `dir` to `<its name>.<suffix>-N` with the first free N, and returns its new
/// path.
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
