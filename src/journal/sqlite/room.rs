//! Room at the end of the write-ahead log, because what overwrites is synced sooner than what makes a file longer.
//!
//! SQLite takes no notice: behind its last frame there is always something from before, and zeros are no frame. They are
//! appended, so they never come where anybody has written; the log needs no lock, as SQLite locks another file.
//!
//! And room for the log's index, which every first connection makes anew.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use rustix::fs::{OFlags, fstatvfs, statvfs};

use crate::journal::JournalError;

/// In bytes. What SQLite makes of the log is hardly ever a multiple of it.
const STEP: u64 = 64 << 10;
/// What the log has beside each page.
const FRAME: u64 = 24;
/// About as long as SQLite lets the log become before it begins it anew.
const MOST: u64 = (super::LOG_PAGES as u64 * (super::PAGE as u64 + FRAME)).next_multiple_of(STEP) + STEP;
/// A disk that has not many times as much left is left alone.
const SPARED: u64 = 16;
/// Commits after which a process is no passer-by.
const SOON: u32 = 16;
/// A log as long as that stays so, unless somebody has taken it in: it is looked at again after so many commits.
const RESTS: u32 = 64;

/// Of the index, which is 32 kB long at first, and for what the file system notes of it.
const INDEX: u64 = 48 << 10;
/// What SQLite takes for a page of memory.
const PAGE: u64 = 4 << 10;

/// SQLite maps the index into memory, and has the file system find a place for the last block of each page only. Where
/// blocks are smaller than pages and none is left for the others, the first look there would end the process.
pub fn of_index(dir: &Path) -> Result<(), JournalError> {
    let Ok(disk) = statvfs(dir) else { return Ok(()) };
    let is_short = disk.f_blocks > 0 && disk.f_frsize < PAGE && disk.f_bavail.saturating_mul(disk.f_frsize) < INDEX;
    if is_short { Err(JournalError::Full) } else { Ok(()) }
}

#[derive(Debug)]
pub struct Room {
    path: PathBuf,
    commits: u32,
    log: Option<File>,
    /// Commits for which there is room in any case.
    rests: u32,
}

impl Room {
    pub fn in_log(path: PathBuf) -> Self {
        Self { path, commits: 0, log: None, rests: 0 }
    }

    /// Behind a commit: half of the log's length, if the commit has made it longer. Where that fails it is not tried again.
    pub fn make(&mut self) {
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
    // Neither follows a link nor waits for the other end of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let log = OpenOptions::new().append(true).custom_flags(flags).open(path).ok()?;
    log.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(log)
}

/// Answers how long it was.
fn lengthen(log: &mut File) -> io::Result<u64> {
    // Not by a look at the file, which asks for its times, too.
    let length = log.seek(SeekFrom::End(0))?;
    if length.is_multiple_of(STEP) || length >= MOST {
        return Ok(length);
    }
    let room = (length + length / 2).next_multiple_of(STEP).min(MOST) - length;
    let disk = fstatvfs(&*log)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < SPARED * room {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // A step at a time: what comes in one write the system may keep as one folio, all of which each commit would then walk.
    let zeros = vec![0; STEP as usize];
    let first = room % STEP;
    log.write_all(&zeros[..first as usize])?;
    (0..room / STEP).try_for_each(|_| log.write_all(&zeros))?;
    Ok(length)
}
