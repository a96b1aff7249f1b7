//! A file that is being written and is not valid yet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::file::FileIdentity;
use super::lease;
use crate::failpoint;

/// A file that still lacks its first part, `head`.
pub(super) struct Unfinished {
    pub path: PathBuf,
    pub file: File,
    pub head: Vec<u8>,
    /// Number of bytes written for it so far.
    pub written: usize,
}

impl Unfinished {
    /// Writes the first part, whose first byte makes the file valid. The identity is read before
    /// the lease ends: who has waited to open the file may write at once.
    pub(super) fn finish(&self) -> io::Result<FileIdentity> {
        failpoint::hit("slots-written")?;
        self.file.write_all_at(&self.head, 0)?;
        let identity = FileIdentity::from(&self.file.metadata()?);
        lease::give_back(&self.file);
        Ok(identity)
    }
}
