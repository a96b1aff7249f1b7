//! The directory `snapshots`, held open: names are looked up in it, never along a path that somebody may exchange.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat};

use super::DIRECTORY;

const LOCK: &str = "lock";
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

pub struct Directory(OwnedFd);

impl Directory {
    /// None when there is none. A link in its place is refused.
    pub fn open(board: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, board.join(DIRECTORY), flags, Mode::empty()) {
            Ok(directory) => Ok(Some(Self(directory))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub fn make(board: &Path) -> io::Result<Self> {
        match mkdirat(CWD, board.join(DIRECTORY), Mode::RWXU) {
            Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
            _ => {}
        }
        Self::open(board)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// One writer at a time. Freed when the handle is dropped. None when another has it for longer than `patience`.
    pub fn lock(&self, patience: Duration) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, LOCK, flags, Mode::RUSR | Mode::WUSR)?);
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if start.elapsed() >= patience => return Ok(None),
                // Another writes a snapshot, and may have been stopped meanwhile: nobody waits for it for ever.
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            }
        }
    }

    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// None when there is no such file; neither follows a link nor waits for the other end of a pipe.
    pub fn read(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(not_regular()),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(not_regular()) }
    }

    /// The whole file or none of it is there, also after a power loss.
    pub fn place(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = format!(".{name}.tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, &unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| Ok(renameat(&self.0, &unfinished, &self.0, name)?));
        if placed.is_err() {
            // The error that matters is the first one.
            let _ = unlinkat(&self.0, &unfinished, AtFlags::empty());
        }
        placed?;
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// What crashes have left. The caller holds the lock.
    pub fn clear_unfinished(&self) -> io::Result<()> {
        for name in self.names()?.iter().filter(|name| name.starts_with('.') && name.ends_with(".tmp")) {
            self.remove(name)?;
        }
        Ok(())
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }
}
