//! Copies of a board's files, made for a moment: private to their owner, and known for leftovers once the process is gone.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::private::{Dir, Purpose};

/// And six characters: the names of directories, of which only those with the mark are ever removed.
const DIRECTORIES: [&str; 2] = [".callboard-backup-", ".callboard-restore-"];
/// A file that is made in such a directory and nowhere else; held as long as the process lives.
const MARK: &str = ".callboard-scratch";
/// And six characters: files in a board's directory that are made under these names and renamed when they are whole.
const UNFINISHED: [&str; 4] = [".tmp", ".restored-", ".tokens-", ".serve-token-"];
/// The same, with anything up to `.tmp` behind it.
const UNFINISHED_COPIES: [&str; 2] = [".journal.db", ".mcp-state.json"];

/// A directory that is removed with this value.
pub struct Scratch {
    dir: TempDir,
    _mark: File,
}

impl Scratch {
    /// In `parent`, from which it removes what ended processes have left.
    pub fn make_in(parent: &Path, purpose: &str) -> io::Result<Self> {
        for path in abandoned(parent) {
            // What cannot be removed is in nobody's way.
            drop(fs::remove_dir_all(path));
        }
        let dir = private(&format!(".callboard-{purpose}-"), parent)?;
        let handle = Dir::open(dir.path())?.ok_or(io::ErrorKind::NotFound)?;
        let mark = handle.open_file(MARK, Purpose::Keep)?.ok_or(io::ErrorKind::NotFound)?;
        mark.lock()?;
        Ok(Self { dir, _mark: mark })
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
    let named = entries.filter(|entry| is_made_up(&entry.file_name().to_string_lossy(), &DIRECTORIES));
    named.map(|entry| entry.path()).filter(|path| is_abandoned(path)).collect()
}

/// One of `starts` and the six characters by which `tempfile` tells names apart.
fn is_made_up(name: &str, starts: &[&str]) -> bool {
    let rest = starts.iter().filter_map(|start| name.strip_prefix(start));
    rest.into_iter().any(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(Some(dir)) = Dir::open(path) else { return false };
    let mark = dir.inspect().ok().and_then(|()| dir.open_file(MARK, Purpose::Read).ok()?);
    mark.is_some_and(|mark| mark.try_lock().is_ok())
}

/// What processes that were ended while writing have left in the board's directory. The caller holds the board's lock.
pub fn leftovers(board: &Path) -> Vec<PathBuf> {
    let is_copy = |name: &str| name.ends_with(".tmp") && UNFINISHED_COPIES.iter().any(|start| name.starts_with(start));
    let entries = fs::read_dir(board).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        (is_made_up(&name, &UNFINISHED) || is_copy(&name)) && entry.file_type().is_ok_and(|kind| kind.is_file())
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
