//! Whether there is room, and permission, for what calls write in the board's directory.

use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FallocateFlags, accessat, fallocate};
use rustix::io::Errno;

use super::directory::{JOURNAL, LOCKS};
use crate::ops::health_check::{Kind, Trouble};

/// Most bytes, about, that a call writes, apart from rewriting the whole state file.
pub const OF_A_CALL: u64 = 256 << 10;

/// Why calls cannot write in `dir`, if they cannot.
pub fn objection(dir: &Path) -> Option<Trouble> {
    let closed = || LOCKS.into_iter().chain([JOURNAL]).find_map(|name| denied(&dir.join(name)));
    let error = fits(dir, OF_A_CALL).err().or_else(|| closed().map(io::Error::from))?;
    // Where there is no directory yet, the first call makes it.
    if error.kind() == io::ErrorKind::NotFound {
        return None;
    }
    let kind = if is_full(&error) { Kind::DiskFull } else { Kind::Unwritable };
    Some(Trouble::new(kind, format!("{}; reading goes on", in_words(dir, &error))))
}

/// Why the file cannot be read and written; none if it can, or does not exist.
pub fn denied(path: &Path) -> Option<io::ErrorKind> {
    match accessat(CWD, path, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) | Err(Errno::NOENT) => None,
        Err(error) => Some(error.kind()),
    }
}

/// Whether the disk or the quota is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What this error of writing in `dir` means, and what to do about it.
pub fn in_words(dir: &Path, error: &io::Error) -> String {
    let dir = dir.display();
    match error.kind() {
        io::ErrorKind::StorageFull => {
            format!("the disk is full, so that nothing can be written in {dir}; free some space")
        }
        io::ErrorKind::QuotaExceeded => format!(
            "the disk quota is used up, so that nothing can be written in {dir}; free some space"
        ),
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "{dir} is on a file system mounted read-only, so that nothing can be written there; \
             mount it for writing, or use `callboard --server URL status` where the board can be written"
        ),
        _ => format!(
            "nothing can be written in {dir} ({error}); `chmod -R u+rwX {dir}` as its owner, or use \
             the owner's `callboard serve`"
        ),
    }
}

/// Allocates that much for an unnamed file, which nobody sees and which disappears at once.
pub fn fits(dir: &Path, bytes: u64) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(dir)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        // The file system does not support the call.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            file.write_all(&vec![0; bytes.min(OF_A_CALL) as usize])
        }
        taken => Ok(taken?),
    }
}
