//! The board's directory: made private, and inspected before it is trusted.

use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::journal::sqlite;
use crate::location::BOARD_DIR;
use crate::private::{Dir, PrivateError, Purpose};
use crate::state::artifact;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::statefile::{self, Home};
use crate::{bundle, config, snapshot};

pub const JOURNAL: &str = sqlite::FILE_NAME;
pub const LOCK: &str = "lock";
pub(super) const STATE_LOCK: &str = "state-lock";
/// The lock files, in the order in which they are acquired.
pub const LOCKS: [&str; 2] = [LOCK, STATE_LOCK];
pub const RUN: &str = "run";
pub const LOGS: &str = "logs";

#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("{} is {what}, so it is not used as a board; {remedy}", path.display())]
    Unsafe { path: PathBuf, what: &'static str, remedy: String },
    #[error("{action}: {source}; check the disk and the permissions, then try again")]
    Failed { action: String, source: io::Error },
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error(
        "{} holds other files and no board, and none is made among them; did you mean {}? Else name an empty directory \
         with --dir", path.display(), path.join(BOARD_DIR).display()
    )]
    Occupied { path: PathBuf },
    #[error("the board in {} was removed or replaced while this process ran; restart the process", path.display())]
    Replaced { path: PathBuf },
    #[error(transparent)]
    Long(Refusal),
    #[error("{} was removed with the directory above it, so the board is not made anew there", path.display())]
    Homeless { path: PathBuf },
}

pub(super) fn failed(action: &str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let action = format!("cannot {action} {}", path.display());
    move |source| DirectoryError::Failed { action, source }
}

/// Files that SQLite opens by name. A pipe there would block it, and a link would lead it
/// elsewhere.
const OPENED_BY_SQLITE: [&str; 3] = [JOURNAL, LOG_FILES[0], LOG_FILES[1]];
pub(super) const LOG_FILES: [&str; 2] = [sqlite::LOG_NAME, "journal.db-shm"];

/// Device and inode, which identify a file whatever its name.
pub type Identity = (u64, u64);
pub(super) const NO_FILE: Identity = (0, 0);

/// The identity of a file in `dir`; `None` when the file, or the whole directory, does not exist.
/// An error leaves that open.
pub(super) fn identity_in(dir: &Path, name: &str) -> Result<Option<Identity>, DirectoryError> {
    Ok(Dir::open(dir)?.map_or(Ok(None), |dir| dir.identity(name))?)
}

/// Refuses a journal that SQLite must not open.
pub fn inspect_journal(dir: &Path) -> Result<(), DirectoryError> {
    let dir = opened(dir)?;
    OPENED_BY_SQLITE.iter().try_for_each(|name| Ok(dir.identity(name).map(drop)?))
}

pub(super) fn opened(path: &Path) -> Result<Dir, DirectoryError> {
    Dir::open(path)?.ok_or_else(|| failed("open", path)(io::ErrorKind::NotFound.into()))
}

/// Beginnings of names that occur in a board's directory only.
const SURELY_OF_BOARDS: [&str; 7] = [
    JOURNAL,
    ".journal.db",
    statefile::FILE_NAME,
    ".mcp-state.json",
    STATE_LOCK,
    "serve.token",
    "tokens.toml",
];
/// Names in a board's directory that occur in others, too; `*` stands for any end.
const ALSO_OF_BOARDS: [&str; 24] = [
    LOCK,
    RUN,
    RESTORED,
    config::FILE,
    bundle::DIRECTORY,
    snapshot::DIRECTORY,
    artifact::DIRECTORY,
    LOGS,
    "worktrees",
    EXPORTS,
    "recovery.log",
    "replaced-*",
    "diverged-*",
    "backup-*",
    "before-restore-*",
    ".restored-*",
    ".tokens-*",
    ".serve-token-*",
    ".callboard-*",
    ".tmp*",
    ".gitignore",
    // What makes git keep an otherwise empty directory, and what a file manager leaves.
    ".gitkeep",
    ".DS_Store",
    // In a directory that is the root of a file system.
    "lost+found",
];

/// Hashes of the files that exports have written.
pub const EXPORTS: &str = "exports.json";

/// Makes the directory if there is none, private to its owner and ignored by git.
pub fn prepare(path: &Path) -> Result<(), DirectoryError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => {
            inspect(path)?;
            refuse_occupied(path)?;
            if !path.join(JOURNAL).exists() {
                limit::BOARD_PATH.check(path.as_os_str().len()).map_err(DirectoryError::Long)?;
            }
        }
        Err(_) => {
            limit::BOARD_PATH.check(path.as_os_str().len()).map_err(DirectoryError::Long)?;
            let mut builder = std::fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(failed("make the directory", path))?;
        }
    }
    furnish(path)
}

/// Refuses a directory that has other files and no board, as a project has. Git would ignore all of
/// them as it ignores a board, or else it would see the board's tokens like all of them.
pub fn refuse_occupied(path: &Path) -> Result<(), DirectoryError> {
    if path.file_name().is_some_and(|name| name == BOARD_DIR) {
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(failed("look at", path))?;
    let names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let home = Home::of(path);
    let is_surely = |name: &String| {
        name.trim_start_matches('.').starts_with(home.name())
            || SURELY_OF_BOARDS.iter().any(|start| name.starts_with(start))
    };
    let may_be = |name: &String| {
        ALSO_OF_BOARDS.iter().any(|known| {
            known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start))
        })
    };
    let is_board = names.iter().any(is_surely) || names.iter().all(may_be);
    if is_board { Ok(()) } else { Err(DirectoryError::Occupied { path: path.to_owned() }) }
}

fn furnish(path: &Path) -> Result<(), DirectoryError> {
    make_run(path)?;
    let ignore = path.join(".gitignore");
    // Only a new file, so that nothing is written through a link that lies there.
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&ignore) {
        Ok(mut file) => file.write_all(b"*\n").map_err(failed("write", &ignore)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("write", &ignore)(error)),
    }
}

/// Takes from others what permissions they have on the directories of a board, and says of which.
pub(super) fn make_private(path: &Path) -> Option<String> {
    let board = Dir::open(path).ok()??;
    let below = [RUN, bundle::DIRECTORY, snapshot::DIRECTORY, artifact::DIRECTORY, LOGS];
    let below: Vec<_> = below.iter().filter_map(|name| board.dir(name).ok()?).collect();
    let were_open: Vec<_> = std::iter::once(&board)
        .chain(&below)
        .filter(|dir| dir.keep_private().is_ok_and(|had_others| had_others))
        .map(|dir| dir.path().display().to_string())
        .collect();
    let all = were_open.join(" and ");
    (!were_open.is_empty())
        .then(|| format!("other users had access to {all}, and have none any more (mode 700)"))
}

/// Makes the directory of a board that was removed, unless the directory above it is gone, too.
pub fn prepare_again(path: &Path) -> Result<(), DirectoryError> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(DirectoryError::Homeless { path: path.to_owned() })
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make the directory", path)(error))
        }
        _ => {
            inspect(path)?;
            furnish(path)
        }
    }
}

/// File with the mark of a board that was put here on purpose, which no running process undoes.
const RESTORED: &str = "restored";
const LONGEST_MARK: u64 = 256;

/// Marks the board in `dir` as restored. The caller holds the board's lock and never uses the same
/// `mark` twice.
pub fn mark_restored(dir: &Path, mark: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".restored-").tempfile_in(dir)?;
    file.write_all(mark.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(dir.join(RESTORED)).map(drop).map_err(|error| error.error)
}

/// The mark that [`mark_restored`] wrote last.
pub fn restored(dir: &Path) -> Option<String> {
    let file = Dir::open(dir).ok()??.open_file(RESTORED, Purpose::Read).ok()??;
    let mut mark = String::new();
    file.take(LONGEST_MARK).read_to_string(&mut mark).ok()?;
    Some(mark)
}

/// Whether the journal is missing, or its log, which is there while any process has the journal
/// open.
pub fn is_incomplete(dir: &Path) -> bool {
    OPENED_BY_SQLITE[..2].iter().any(|name| std::fs::symlink_metadata(dir.join(name)).is_err())
}

pub(super) fn make_run(dir: &Path) -> Result<(), DirectoryError> {
    let run = dir.join(RUN);
    match std::fs::DirBuilder::new().mode(0o700).create(&run) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make the directory", &run)(error))
        }
        _ => inspect_run(dir),
    }
}

/// Refuses a `run` that is no directory: files are made and removed in it, so it must not lead
/// elsewhere.
fn inspect_run(dir: &Path) -> Result<(), DirectoryError> {
    let path = dir.join(RUN);
    if std::fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(DirectoryError::Unsafe {
            path,
            what: "not a directory",
            remedy: "remove it".to_owned(),
        });
    }
    Ok(())
}

/// Refuses a directory that others could tamper with.
pub fn inspect(path: &Path) -> Result<(), DirectoryError> {
    let metadata = std::fs::symlink_metadata(path).map_err(failed("look at", path))?;
    let refuse = |what, remedy: &str| {
        let remedy = remedy.to_owned();
        Err(DirectoryError::Unsafe { path: path.to_owned(), what, remedy })
    };
    if metadata.is_symlink() {
        return refuse("a symbolic link", "name its target with --dir");
    }
    if !metadata.is_dir() {
        return refuse("not a directory", "move it away or choose another with --dir");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse(
            "owned by another user",
            "its owner can share it: `callboard serve` there, then `callboard --server URL status` here; or \
             choose another with --dir, or run as its owner",
        );
    }
    if metadata.mode() & 0o002 != 0 {
        let is_shared = metadata.mode() & 0o1000 != 0;
        let remedy = if is_shared {
            "choose a directory of your own with --dir".to_owned()
        } else {
            format!("run `chmod 700 {}`", path.display())
        };
        return refuse("writable by everybody", &remedy);
    }
    inspect_run(path)
}
