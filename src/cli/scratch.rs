//! Copies of a board's files, made for a moment: private to their owner, and known for leftovers once the process is gone.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::private::{Dir, Purpose};

const PREFIX: &str = ".callboard-";
/// Held as long as the process lives.
const LOCK: &str = "lock";
/// Nobody looks at a new directory's lock for longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between a directory and its lock nothing takes so long.
const WITHOUT_LOCK: Duration = Duration::from_secs(60);
/// Files in a board's directory that are made under these names and renamed when they are whole.
const UNFINISHED: [&str; 4] = [".tmp", ".restored-", ".tokens-", ".serve-token-"];

/// A directory that is removed with this value.
pub struct Scratch {
    dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// In `parent`, from which it removes what ended processes have left.
    pub fn make_in(parent: &Path, purpose: &str) -> io::Result<Self> {
        for path in abandoned(parent) {
            // What cannot be removed is in nobody's way.
            drop(fs::remove_dir_all(path));
        }
        let dir = private(&format!("{PREFIX}{purpose}-"), parent)?;
        let handle = Dir::open(dir.path())?.ok_or(io::ErrorKind::NotFound)?;
        let lock = handle.lock(PATIENCE)?.ok_or(io::ErrorKind::TimedOut)?;
        Ok(Self { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A directory that only its owner can look into, whatever the umask says.
pub fn private(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir_in(parent)
}

/// The directories in `parent` whose processes are gone.
fn abandoned(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    named.map(|entry| entry.path()).filter(|path| is_abandoned(path)).collect()
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(Some(dir)) = Dir::open(path) else { return false };
    let is_old = || {
        let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > WITHOUT_LOCK))
    };
    dir.inspect().is_ok()
        && match dir.open_file(LOCK, Purpose::Read) {
            Ok(Some(lock)) => lock.try_lock().is_ok(),
            Ok(None) => is_old(),
            Err(_) => false,
        }
}

/// What processes that were ended while writing have left in the board's directory. The caller holds the board's lock.
pub fn leftovers(board: &Path) -> Vec<PathBuf> {
    let is_unfinished = |name: &str| {
        name.starts_with('.') && name.ends_with(".tmp") || UNFINISHED.iter().any(|start| name.starts_with(start))
    };
    let entries = fs::read_dir(board).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        is_unfinished(&entry.file_name().to_string_lossy()) && entry.file_type().is_ok_and(|kind| !kind.is_dir())
    });
    let mut left: Vec<_> = files.map(|entry| entry.path()).chain(abandoned(board)).collect();
    left.sort();
    left
}

pub fn remove(leftover: &Path) -> io::Result<()> {
    match fs::symlink_metadata(leftover)?.is_dir() {
        true => fs::remove_dir_all(leftover),
        false => fs::remove_file(leftover),
    }
}
