//! The state file's name, on which the processes of a board agree. It stands in `config.toml`,
//! which moves with the board and which older versions refuse if it sets one; the lock file notes
//! the name under which the file is shown. Where the two differ, a process that starts alone
//! renames the file.

use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::{BoardError, io_error};
use super::lock::{self, BoardLock, acquire};
use super::presence;
use super::recovery::Author;
use crate::config;
use crate::statefile::{FILE_NAME, Home};

/// The name under which the file is shown: the one that is noted. Other names than the default are
/// noted from the beginning, but the lock file may have been deleted since.
fn shown(home: &Home, noted: Option<String>) -> String {
    let has_default = || std::fs::symlink_metadata(home.join(FILE_NAME)).is_ok();
    let unnoted = || if has_default() { FILE_NAME } else { home.name() }.to_owned();
    noted.unwrap_or_else(unnoted)
}

/// Where the state file is now, also while the configuration has another name for it. Changes
/// nothing.
pub fn home(dir: &Path) -> Home {
    Home::new(dir, &shown(&Home::of(dir), lock::state_file_of(dir)))
}

/// Where the state file is. If the configuration has another name for it than the file has, it is
/// renamed, unless other processes live on the board or there is no `author`, who may write.
pub(super) fn settle(
    dir: &Path,
    lock: &BoardLock,
    author: Option<&Author>,
) -> Result<Home, BoardError> {
    let home = Home::new(dir, &config::load(dir)?.state_file);
    let shown_in = shown(&home, lock.state_file());
    if shown_in == home.name() {
        if author.is_some() && lock.state_file().is_none() && home.name() != FILE_NAME {
            note(&home, lock)?;
        }
        return Ok(home);
    }
    if author.is_none_or(|author| presence::is_anyone_present(dir, Some(&author.participant))) {
        let way_out = format!(
            "a name changes when no process is on the board; end them all (`callboard doctor` \
             lists them) and start one, or set state_file = \"{shown_in}\" there"
        );
        return Err(differs(&home, shown_in, config::FILE, home.name(), way_out));
    }
    acquire(lock)?;
    let renamed = rename(&home, lock);
    lock.release();
    renamed.map(|()| home)
}

/// Renames the file, unless another process has done so meanwhile. The caller holds the board's
/// locks.
fn rename(home: &Home, lock: &BoardLock) -> Result<(), BoardError> {
    let old = shown(home, lock.state_file());
    if old == home.name() {
        return Ok(());
    }
    match renameat_with(CWD, home.join(&old), CWD, home.file(), RenameFlags::NOREPLACE) {
        // Without a file there is nothing to rename: it is made anew under the other name.
        Ok(()) | Err(Errno::NOENT) => note(home, lock),
        Err(Errno::EXIST) => {
            let way_out = format!(
                "that is there already; move `{}` away, or choose another name",
                home.name()
            );
            Err(differs(home, old, config::FILE, home.name(), way_out))
        }
        Err(error) => Err(io_error("cannot rename the state file in", home, error.into())),
    }
}

fn note(home: &Home, lock: &BoardLock) -> Result<(), BoardError> {
    lock.note_state_file(home.name())
        .map_err(|error| io_error("cannot note the state file's name in", home, error))
}

/// Records the name that was asked for, in a directory in which a board is about to begin. The
/// caller holds its locks.
pub(super) fn begin(dir: &Path, lock: &BoardLock, asked: Option<&str>) -> Result<(), BoardError> {
    if let Some(asked) = asked.filter(|asked| *asked != Home::of(dir).name()) {
        config::record(dir, |config| asked.clone_into(&mut config.state_file))?;
    }
    rename(&Home::new(dir, &config::load(dir)?.state_file), lock)
}

/// Refuses a process that was told another name than the board's.
pub fn agree(dir: &Path, asked: Option<&str>) -> Result<(), BoardError> {
    let home = Home::of(dir);
    let Some(asked) = asked.filter(|asked| *asked != home.name()) else { return Ok(()) };
    let way_out = format!(
        "leave that out; or, to rename the file, end all processes on the board and set \
         state_file = \"{asked}\" in its config.toml"
    );
    Err(differs(
        &home,
        home.name().to_owned(),
        "--state-file or CALLBOARD_STATE_FILE",
        asked,
        way_out,
    ))
}

/// Refuses to go on if another process has renamed the file since this one opened the board.
pub(super) fn check(home: &Home, lock: &BoardLock) -> Result<(), BoardError> {
    match lock.state_file() {
        Some(noted) if noted != home.name() => {
            Err(differs(home, noted, "this process", home.name(), "restart it".to_owned()))
        }
        _ => Ok(()),
    }
}

fn differs(
    home: &Home,
    shown: String,
    by: &'static str,
    asked: &str,
    way_out: String,
) -> BoardError {
    BoardError::StateFileName {
        dir: home.to_path_buf(),
        shown,
        by,
        asked: asked.to_owned(),
        way_out,
    }
}
