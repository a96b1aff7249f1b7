//! An old state file that somebody has put in the place of a newer one: sound, of this board, and
//! of the past.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use fs_err as fs;

use super::found::Found;
use super::head::seq_of;
use super::home::Home;
use super::load;
use crate::state::time::Timestamp;

#[derive(Debug)]
pub struct PutBack {
    /// The seq that it shows.
    pub seq: u64,
    /// Where it is kept.
    pub kept: PathBuf,
}

/// Checks whether the file in `dir` is behind event `head` because somebody has put it there; if
/// so, keeps it under another name, too. A file that a process merely died before replacing is
/// older than the first event that it lacks, of which `happened` tells the time: its inode has not
/// been touched since.
pub fn keep_put_back(
    dir: &Home,
    board_id: &str,
    head: u64,
    happened: impl FnOnce(u64) -> Option<Timestamp>,
) -> io::Result<Option<PutBack>> {
    let Some(shown) = seq_of(dir)?.filter(|shown| shown.board_id == board_id && shown.seq < head)
    else {
        return Ok(None);
    };
    let metadata = fs::symlink_metadata(dir.file())?;
    let changed = Timestamp::from_millis(
        metadata.ctime().saturating_mul(1_000) + metadata.ctime_nsec() / 1_000_000,
    );
    if happened(shown.seq + 1).is_none_or(|happened| changed <= happened) {
        return Ok(None);
    }
    match load(dir) {
        Ok(Some(Found::Sound(document))) if document.board.seq == shown.seq => {
            Ok(Some(PutBack { seq: shown.seq, kept: keep(dir)? }))
        }
        // An edit or damage, which is dealt with elsewhere.
        _ => Ok(None),
    }
}

/// Gives the file a second name (hard link), so that there is always one under the first.
fn keep(dir: &Home) -> io::Result<PathBuf> {
    let mut number: u64 = 1;
    loop {
        let kept = dir.join(format!("{}.put-back-{number}", dir.name()));
        match fs::hard_link(dir.file(), &kept) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
