//! Files that are one person's alone: opened from a handle of their directory, and looked at before they are trusted.
//!
//! Nothing is followed: a symbolic link could lead anywhere. Nothing is waited for: opening a named pipe would block until
//! somebody else opens its other end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum PrivateError {
    #[error("{} is {what}, so it is not used; look who put it there, move it away, and try again", path.display())]
    Refused { path: PathBuf, what: &'static str },
    #[error("cannot open {}: {source}; check the disk and the permissions, then try again", path.display())]
    Failed { path: PathBuf, source: io::Error },
}

impl From<PrivateError> for io::Error {
    fn from(error: PrivateError) -> Self {
        let kind = match &error {
            PrivateError::Refused { .. } => io::ErrorKind::InvalidInput,
            PrivateError::Failed { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Read,
    Write,
    /// To be read and written, made if there is none.
    Keep,
}

/// A directory, by its handle: whatever its path leads to later, this is the one.
pub struct Dir {
    path: PathBuf,
    handle: OwnedFd,
}

impl Dir {
    /// None if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, PrivateError> {
        Self::at(CWD, path, path.to_owned())
    }

    /// The directory `name` in this one; none if there is none.
    pub fn dir(&self, name: &str) -> Result<Option<Self>, PrivateError> {
        Self::at(&self.handle, Path::new(name), self.path.join(name))
    }

    fn at(base: impl std::os::fd::AsFd, name: &Path, path: PathBuf) -> Result<Option<Self>, PrivateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(base, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { path, handle })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(PrivateError::Refused { path, what: "not a directory" }),
            Err(source) => Err(PrivateError::Failed { path, source: source.into() }),
        }
    }

    /// The file `name` in it; none if there is none.
    pub fn open_file(&self, name: &str, purpose: Purpose) -> Result<Option<File>, PrivateError> {
        let path = || self.path.join(name);
        let access = match purpose {
            Purpose::Read => OFlags::RDONLY,
            Purpose::Write => OFlags::WRONLY,
            Purpose::Keep => OFlags::RDWR | OFlags::CREATE,
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR);
        let handle = match opened {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                // Why it could not be opened may be that it is none of ours.
                if let Some(what) = self.stat(name).and_then(|stat| wrong(&stat)) {
                    return Err(PrivateError::Refused { path: path(), what });
                }
                return Err(PrivateError::Failed { path: path(), source: error.into() });
            }
        };
        let stat = fstat(&handle).map_err(|source| PrivateError::Failed { path: path(), source: source.into() })?;
        match wrong(&stat) {
            Some(what) => Err(PrivateError::Refused { path: path(), what }),
            None => Ok(Some(handle.into())),
        }
    }

    /// Which file `name` is, device and inode, if it is one to be trusted; none if there is none.
    pub fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, PrivateError> {
        let Some(stat) = self.stat(name) else { return Ok(None) };
        match wrong(&stat) {
            Some(what) => Err(PrivateError::Refused { path: self.path.join(name), what }),
            None => Ok(Some((stat.st_dev, stat.st_ino))),
        }
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }
}

/// The file `name` in `dir`, to be read; none if it or the directory is not there.
pub fn read(dir: &Path, name: &str) -> Result<Option<File>, PrivateError> {
    match Dir::open(dir)? {
        Some(dir) => dir.open_file(name, Purpose::Read),
        None => Ok(None),
    }
}

/// Why a file is not to be trusted.
fn wrong(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Some("a symbolic link"),
        FileType::Fifo => return Some("a named pipe"),
        FileType::Socket => return Some("a socket"),
        FileType::Directory => return Some("a directory"),
        _ => return Some("a device"),
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Some("owned by another user");
    }
    (stat.st_mode & 0o002 != 0).then_some("writable by everybody")
}
