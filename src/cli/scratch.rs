//! Temporary copies of a board's files: private to their owner, and recognizable as leftovers once
//! their process is gone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::private::{Dir, Purpose};

/// Prefixes of directory names, followed by six characters. Only directories with the mark are ever
/// removed.
const DIRECTORIES: [&str; 3] = [".callboard-backup-", ".callboard-restore-", ".callboard-repair-"];
/// File that exists only in such directories, locked as long as the process lives.
const MARK: &str = ".callboard-scratch";
/// Name of the mark before it is locked: a mark without a lock would say that its process is gone.
const UNLOCKED: &str = ".callboard-scratch.tmp";
/// Prefixes of files in a board's directory that are renamed once they are complete; six characters
/// follow.
const UNFINISHED: [&str; 4] = [".tmp", ".restored-", ".tokens-", ".serve-token-"];
/// Prefixes of such files with any text and `.tmp` behind them.
const UNFINISHED_COPIES: [&str; 2] = [".journal.db", ".mcp-state.json"];

/// A directory that is removed when this value is dropped.
pub(super) struct Scratch {
    /// Closed before the directory is removed: some file systems keep the name of an open file.
    _mark: Option<File>,
    dir: TempDir,
}

impl Scratch {
    /// Makes a directory in `parent`, and removes those there that dead processes have left.
    pub(super) fn make_in(parent: &Path, purpose: &str) -> io::Result<Self> {
        for path in abandoned(parent) {
            // A directory that cannot be removed is in nobody's way.
            drop(fs::remove_dir_all(path));
        }
        let dir = private(&format!(".callboard-{purpose}-"), parent)?;
        // The parent may be in a repository.
        fs::write(dir.path().join(".gitignore"), "*\n")?;
        Ok(Self { _mark: mark(dir.path())?, dir })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Marks the directory as in use. None if the file system has no locks: without the mark it is
/// never taken for abandoned.
fn mark(dir: &Path) -> io::Result<Option<File>> {
    let unlocked = dir.join(UNLOCKED);
    let mark = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked)?;
    if mark.try_lock().is_err() {
        return Ok(None);
    }
    fs::rename(unlocked, dir.join(MARK))?;
    Ok(Some(mark))
}

/// A directory that only its owner can look into, whatever the umask says.
pub(super) fn private(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
}

/// Directories in `parent` whose processes are gone.
fn abandoned(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named =
        entries.filter(|entry| is_made_up(&entry.file_name().to_string_lossy(), &DIRECTORIES));
    named.map(|entry| entry.path()).filter(|path| is_abandoned(path)).collect()
}

/// Whether the name is one of `starts` and the six characters by which `tempfile` makes names
/// unique.
fn is_made_up(name: &str, starts: &[&str]) -> bool {
    let rest = starts.iter().filter_map(|start| name.strip_prefix(start));
    rest.into_iter()
        .any(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(Some(dir)) = Dir::open(path) else { return false };
    let mark = dir.inspect().ok().and_then(|()| dir.open_file(MARK, Purpose::Read).ok()?);
    mark.is_some_and(|mark| mark.try_lock().is_ok())
}

/// Files and directories that killed processes left in the board's directory. The caller holds the
/// board's lock.
pub(super) fn leftovers(board: &Path) -> Vec<PathBuf> {
    let is_copy = |name: &str| {
        name.ends_with(".tmp") && UNFINISHED_COPIES.iter().any(|start| name.starts_with(start))
    };
    let entries = fs::read_dir(board).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        (is_made_up(&name, &UNFINISHED) || is_copy(&name))
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    let mut left: Vec<_> = files.map(|entry| entry.path()).chain(abandoned(board)).collect();
    left.sort();
    left
}

/// Removes a leftover; one that is gone already counts as removed.
pub(super) fn remove(leftover: &Path) -> io::Result<()> {
    let removed = fs::symlink_metadata(leftover).and_then(|metadata| {
        if metadata.is_dir() { fs::remove_dir_all(leftover) } else { fs::remove_file(leftover) }
    });
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_takes_for_abandoned_what_another_has_just_made() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let make = || {
            (0..200).all(|_| {
                Scratch::make_in(parent.path(), "backup").is_ok_and(|made| made.path().exists())
            })
        };
        let all = thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            makers.into_iter().all(|maker| maker.join().is_ok_and(|all| all))
        });
        assert!(all && abandoned(parent.path()).is_empty());
    }
}
