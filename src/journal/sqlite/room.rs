//! Room at the end of the write-ahead log, because what overwrites is synced sooner than what makes a file longer.
//!
//! SQLite takes no notice: behind its last frame there is always something from before, and zeros are no frame. They are
//! appended, so they never come where anybody has written; the log needs no lock, as SQLite locks another file.

use std::cell::{Cell, OnceCell};
use std::io::Write;
use std::path::PathBuf;

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use rustix::fs::OFlags;

/// In bytes. What SQLite makes of the log is hardly ever a multiple of it.
const STEP: u64 = 64 << 10;
/// About as long as SQLite lets the log become before it begins it anew.
const MOST: u64 = 33 * STEP;
/// Commits after which a process is no passer-by.
const SOON: u32 = 16;

#[derive(Debug)]
pub struct Room {
    path: PathBuf,
    commits: Cell<u32>,
    log: OnceCell<Option<File>>,
}

impl Room {
    pub fn in_log(path: PathBuf) -> Self {
        Self { path, commits: Cell::new(0), log: OnceCell::new() }
    }

    /// Behind a commit: twice the log's length, if the commit has made it longer. A failure costs time only.
    pub fn make(&self) {
        self.commits.set(self.commits.get().saturating_add(1));
        if self.commits.get() < SOON {
            return;
        }
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let open = || OpenOptions::new().append(true).custom_flags(flags).open(&self.path).ok();
        let Some(log) = self.log.get_or_init(open) else { return };
        let Ok(length) = log.metadata().map(|metadata| metadata.len()) else { return };
        if length.is_multiple_of(STEP) || length >= MOST {
            return;
        }
        let end = (2 * length).next_multiple_of(STEP).min(MOST);
        let zeros = vec![0; usize::try_from(end - length).unwrap_or_default()];
        if let Err(error) = (&*log).write_all(&zeros) {
            tracing::debug!(%error, "the log gets no room");
        }
    }
}
