//! A check that there is room for the log's index, which every first connection rebuilds.

use std::path::Path;

use rustix::fs::statvfs;

use crate::journal::JournalError;

/// Bytes for the log's index, which is 32 kB long at first, and for the file system's metadata.
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
