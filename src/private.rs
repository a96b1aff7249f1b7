//! Files that are one person's alone: opened from a handle of their directory, and inspected before
//! they are trusted.
//!
//! Nothing is followed: a symbolic link could lead anywhere. Nothing is waited for: opening a named
//! pipe would block until somebody else opens its other end.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat};
#[cfg(target_os = "linux")]
use rustix::fs::{StatxFlags, makedev, statx};
use rustix::fs::{fchmod, fstat, fsync, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use thiserror::Error;

use crate::failpoint;

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
pub(crate) enum Purpose {
    Read,
    /// To be read and written; made if there is none.
    Keep,
}

/// Reading then does not update the file's access time, which would cost a write. Only the owner of
/// a file may ask for this.
#[cfg(target_os = "linux")]
pub(crate) const NO_ATIME: OFlags = OFlags::NOATIME;
#[cfg(not(target_os = "linux"))]
pub const NO_ATIME: OFlags = OFlags::empty();

/// The lock file in directories whose files are replaced; whoever writes there holds it.
const LOCK: &str = "lock";
/// How long an open waits for the lease of a process that is replacing the file.
const LEASED_AT_MOST: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// A directory, held open by its handle, whatever its path leads to later.
pub(crate) struct Dir {
    path: PathBuf,
    handle: OwnedFd,
    /// Device and inode, once they were asked for.
    identity: OnceLock<Option<(u64, u64)>>,
}

impl Dir {
    /// Opens the directory at `path`; none if there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, PrivateError> {
        Self::at(CWD, path, path.to_owned())
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_in_place(&self) -> bool {
        let found = seen(CWD, &self.path);
        let own = self
            .identity
            .get_or_init(|| fstat(&self.handle).ok().map(|stat| Seen::from(stat).identity));
        found.is_ok_and(|found| *own == Some(found.identity))
    }

    /// The directory `name` in this one; none if there is none.
    pub(crate) fn dir(&self, name: &str) -> Result<Option<Self>, PrivateError> {
        Self::at(&self.handle, Path::new(name), self.path.join(name))
    }

    fn at(
        base: impl std::os::fd::AsFd,
        name: &Path,
        path: PathBuf,
    ) -> Result<Option<Self>, PrivateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(base, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { path, handle, identity: OnceLock::new() })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                Err(PrivateError::Refused { path, what: "not a directory" })
            }
            Err(source) => Err(PrivateError::Failed { path, source: source.into() }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory `name` in this one, made if there is none, and whether it was.
    pub(crate) fn make_dir(&self, name: &str) -> Result<(Self, bool), PrivateError> {
        let path = || self.path.join(name);
        let failed = |source: Errno| PrivateError::Failed { path: path(), source: source.into() };
        let is_new = match mkdirat(&self.handle, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
        if is_new {
            fsync(&self.handle).map_err(failed)?;
        }
        Ok((self.dir(name)?.ok_or_else(|| failed(Errno::NOENT))?, is_new))
    }

    /// Refuses a directory in which others could put something.
    pub(crate) fn inspect(&self) -> Result<(), PrivateError> {
        match foreign(&self.look_at()?.into()) {
            Some(what) => Err(PrivateError::Refused { path: self.path.clone(), what }),
            None => Ok(()),
        }
    }

    /// Inspects it, and takes from everybody else what permissions they have on it. Returns whether
    /// they had any; some file systems have no permissions to take.
    pub(crate) fn keep_private(&self) -> Result<bool, PrivateError> {
        self.inspect()?;
        if self.is_private()? {
            return Ok(false);
        }
        fchmod(&self.handle, Mode::RWXU).map_err(|error| self.failed(error))?;
        self.is_private()
    }

    fn is_private(&self) -> Result<bool, PrivateError> {
        Ok(self.look_at()?.st_mode & 0o077 == 0)
    }

    fn look_at(&self) -> Result<Stat, PrivateError> {
        fstat(&self.handle).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: Errno) -> PrivateError {
        PrivateError::Failed { path: self.path.clone(), source: source.into() }
    }

    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle)? {
            if let Ok(name) = entry?.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Acquires the directory's lock, for one writer at a time. It is freed when the handle is
    /// dropped. None when another process holds it for longer than `patience`.
    pub(crate) fn lock(&self, patience: Duration) -> io::Result<Option<File>> {
        let file = self.open_file(LOCK, Purpose::Keep)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(lock_within(&file, patience)?.then_some(file))
    }

    /// Writes a file so that the whole of it or nothing is there, even after a power loss.
    pub(crate) fn place(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = format!(".{name}.tmp");
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file =
            File::from(openat(&self.handle, &unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let written = written.and_then(|()| failpoint::hit("before-rename"));
        let placed =
            written.and_then(|()| Ok(renameat(&self.handle, &unfinished, &self.handle, name)?));
        if placed.is_err() {
            // The error that matters is the first one.
            let _ = unlinkat(&self.handle, &unfinished, AtFlags::empty());
        }
        placed?;
        Ok(fsync(&self.handle)?)
    }

    /// Removes the unfinished files that crashes have left. The caller holds the lock.
    pub(crate) fn clear_unfinished(&self) -> io::Result<()> {
        for name in
            self.names()?.iter().filter(|name| name.starts_with('.') && name.ends_with(".tmp"))
        {
            self.remove(name)?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Renames the file `name`, so that it is kept and not used; returns its new name. The caller
    /// holds the lock.
    pub(crate) fn quarantine(&self, name: &str) -> io::Result<String> {
        let names = self.names()?;
        let aside = (1..)
            .map(|number| format!("{name}.quarantined-{number}"))
            .find(|aside| !names.contains(aside));
        let aside = aside.unwrap_or_default();
        renameat(&self.handle, name, &self.handle, &aside)?;
        fsync(&self.handle)?;
        Ok(aside)
    }

    /// The file `name` in it; none if there is none.
    pub(crate) fn open_file(
        &self,
        name: &str,
        purpose: Purpose,
    ) -> Result<Option<File>, PrivateError> {
        let path = || self.path.join(name);
        let access = match purpose {
            Purpose::Read => OFlags::RDONLY,
            Purpose::Keep => OFlags::RDWR | OFlags::CREATE | NO_ATIME,
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || match openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR) {
            // It is not this user's file, or the file system, of another machine or process, says
            // so.
            Err(Errno::PERM) => {
                openat(&self.handle, name, flags - NO_ATIME, Mode::RUSR | Mode::WUSR)
            }
            opened => opened,
        };
        let (start, mut opened) = (Instant::now(), open());
        // There is a lease on the file that had the name a moment ago: another file has it by now.
        while matches!(opened, Err(Errno::AGAIN)) && start.elapsed() < LEASED_AT_MOST {
            std::thread::sleep(BETWEEN_TRIES);
            opened = open();
        }
        let handle = match opened {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                // Perhaps it could not be opened because it is none to be trusted.
                if let Some(what) = self.stat(name).ok().flatten().and_then(|stat| wrong(&stat)) {
                    return Err(PrivateError::Refused { path: path(), what });
                }
                return Err(PrivateError::Failed { path: path(), source: error.into() });
            }
        };
        let stat = fstat(&handle)
            .map_err(|source| PrivateError::Failed { path: path(), source: source.into() })?;
        match wrong(&stat.into()) {
            Some(what) => Err(PrivateError::Refused { path: path(), what }),
            None => Ok(Some(handle.into())),
        }
    }

    /// Device and inode of the file `name`, if it is one to be trusted; none if there is none.
    pub(crate) fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, PrivateError> {
        let Some(seen) = self.stat(name)? else { return Ok(None) };
        match wrong(&seen) {
            Some(what) => Err(PrivateError::Refused { path: self.path.join(name), what }),
            None => Ok(Some(seen.identity)),
        }
    }

    /// Looks at the file `name`; none if there is none. An error leaves that open.
    fn stat(&self, name: &str) -> Result<Option<Seen>, PrivateError> {
        match seen(&self.handle, name) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => {
                Err(PrivateError::Failed { path: self.path.join(name), source: error.into() })
            }
        }
    }
}

/// The file `name` in `dir`, to be read; none if it or the directory is not there.
pub(crate) fn read(dir: &Path, name: &str) -> Result<Option<File>, PrivateError> {
    match Dir::open(dir)? {
        Some(dir) => dir.open_file(name, Purpose::Read),
        None => Ok(None),
    }
}

/// Locks the file; false if another process holds the lock for longer than `patience`: it may have
/// been stopped, and nobody waits for that for ever.
pub(crate) fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() >= patience => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
        }
    }
}

/// The effective user id, asked for once: this process never becomes another user's.
fn own_user() -> u32 {
    static USER: OnceLock<u32> = OnceLock::new();
    *USER.get_or_init(|| rustix::process::geteuid().as_raw())
}

/// What must be known of a file to trust it.
struct Seen {
    /// Device and inode.
    identity: (u64, u64),
    mode: RawMode,
    user: u32,
}

impl From<Stat> for Seen {
    #[cfg_attr(
        target_os = "linux",
        expect(clippy::unnecessary_cast, reason = "elsewhere a device's number is another type")
    )]
    fn from(stat: Stat) -> Self {
        Self { identity: (stat.st_dev as u64, stat.st_ino), mode: stat.st_mode, user: stat.st_uid }
    }
}

/// Looks at a file, following no link. Its times are not asked for: when they have been, the kernel
/// notes the time of the next write at once, and writes it to the disk with that.
#[cfg(target_os = "linux")]
fn seen(base: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<Seen> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID | StatxFlags::INO;
    match statx(&base, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Ok(found) => Ok(Seen {
            identity: (makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino),
            mode: found.stx_mode.into(),
            user: found.stx_uid,
        }),
        // The system has no such call, or forbids it by rules that are older than the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            statat(base, name, AtFlags::SYMLINK_NOFOLLOW).map(Seen::from)
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn seen(base: impl AsFd, name: impl Arg) -> rustix::io::Result<Seen> {
    statat(base, name, AtFlags::SYMLINK_NOFOLLOW).map(Seen::from)
}

/// Whether the file has no name any more. Its times are not asked for here either.
pub(crate) fn is_deleted(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    if let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
        return found.stx_nlink == 0;
    }
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

/// Why a file is not to be trusted.
fn wrong(seen: &Seen) -> Option<&'static str> {
    match FileType::from_raw_mode(seen.mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Some("a symbolic link"),
        FileType::Fifo => return Some("a named pipe"),
        FileType::Socket => return Some("a socket"),
        FileType::Directory => return Some("a directory"),
        _ => return Some("a device"),
    }
    foreign(seen)
}

/// Why the content of a file or directory may be another's.
fn foreign(seen: &Seen) -> Option<&'static str> {
    if seen.user != own_user() {
        return Some("owned by another user");
    }
    (seen.mode & 0o002 != 0).then_some("writable by everybody")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_looked_at_is_not_said_to_be_gone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open(place.path()).expect("a look").expect("a directory");
        assert_eq!(dir.identity("gone").expect("a look"), None);
        // Longer than any name may be, so the system looks at nothing.
        let failed = dir.identity(&"n".repeat(300));
        assert!(matches!(failed, Err(PrivateError::Failed { .. })), "{failed:?}");
    }
}
