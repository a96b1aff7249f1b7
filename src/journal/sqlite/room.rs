//! Zeros at the end of the write-ahead log, because a write that overwrites is synced sooner than
//! one that makes a file longer.
//!
//! SQLite takes no notice: there is always something old after its last frame, and zeros are no
//! frame. They are appended, so they never overwrite what anybody has written; the log needs no
//! lock, because SQLite locks another file.
//!
//! Also a check that there is room for the log's index, which every first connection rebuilds.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use rustix::fs::{OFlags, fstatvfs, statvfs};

use crate::journal::JournalError;

/// The log is lengthened to a multiple of this, in bytes. A length that SQLite itself gives it
/// hardly ever is one.
const STEP: u64 = 64 << 10;
/// Bytes that the log has for each page in addition to it: the frame's header.
const FRAME: u64 = 24;
/// The log is lengthened up to this, in bytes: about as long as SQLite lets it become before it
/// restarts it.
const MOST: u64 =
    (super::LOG_PAGES as u64 * (super::PAGE as u64 + FRAME)).next_multiple_of(STEP) + STEP;
/// The disk must have this many times the room left, or the log is not lengthened.
const SPARED: u64 = 16;
/// Commits after which a process is taken to be one that stays.
const SOON: u32 = 16;
/// Commits after which a log of full length is looked at again: it stays that long, unless somebody
/// truncates it with a checkpoint.
const RESTS: u32 = 64;

/// Bytes for the log's index, which is 32 kB long at first, and for what the file system notes of
/// it.
const INDEX: u64 = 48 << 10;
/// The size that SQLite assumes for a page of memory, in bytes.
const PAGE: u64 = 4 << 10;

/// Fails if there is no room for the log's index. SQLite maps it into memory, and has the file
/// system allocate only the last block of each page. If blocks are smaller than pages and none is
/// left for the others, the first access there would kill the process.
pub(super) fn of_index(dir: &Path) -> Result<(), JournalError> {
    let Ok(disk) = statvfs(dir) else { return Ok(()) };
    let is_short = disk.f_blocks > 0
        && disk.f_frsize < PAGE
        && disk.f_bavail.saturating_mul(disk.f_frsize) < INDEX;
    if is_short { Err(JournalError::Full) } else { Ok(()) }
}

#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    commits: u32,
    log: Option<File>,
    /// Number of commits until the log is looked at again.
    rests: u32,
}

impl Room {
    pub(super) fn in_log(path: PathBuf) -> Self {
        Self { path, commits: 0, log: None, rests: 0 }
    }

    /// After a commit that has made the log longer, adds half of its length. If that fails, it is
    /// not tried again.
    pub(super) fn make(&mut self) {
        self.commits = self.commits.saturating_add(1);
        if self.commits == SOON {
            self.log = open(&self.path);
        }
        if self.rests > 0 {
            self.rests -= 1;
            return;
        }
        match self.log.as_mut().map(lengthen) {
            Some(Ok(length)) if length >= MOST => self.rests = RESTS,
            Some(Err(error)) => {
                tracing::debug!(%error, "the log gets no room");
                self.log = None;
            }
            Some(Ok(_)) | None => {}
        }
    }
}

fn open(path: &Path) -> Option<File> {
    // Opened without following a link or waiting for the other end of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let log = OpenOptions::new().append(true).custom_flags(flags).open(path).ok()?;
    log.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(log)
}

/// Lengthens the log if need be; returns how long it was.
fn lengthen(log: &mut File) -> io::Result<u64> {
    // By a seek, because `stat` would ask for the file's times, too.
    let length = log.seek(SeekFrom::End(0))?;
    if length.is_multiple_of(STEP) || length >= MOST {
        return Ok(length);
    }
    let room = (length + length / 2).next_multiple_of(STEP).min(MOST) - length;
    let disk = fstatvfs(&*log)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < SPARED * room {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // A step at a time: what comes in one write the kernel may keep as one folio, all of which each
    // commit would then walk.
    let zeros = vec![0; STEP as usize];
    let first = room % STEP;
    log.write_all(&zeros[..first as usize])?;
    (0..room / STEP).try_for_each(|_| log.write_all(&zeros))?;
    Ok(length)
}
