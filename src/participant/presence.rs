//! Presence files: the proof that a process on the board is alive.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::directory::{DirectoryError, RUN, failed, make_run, opened};
use super::note::Note;
use crate::private::{Dir, Purpose};
use crate::state::id::ParticipantId;
use crate::state::time::Timestamp;

/// Most attempts to acquire a presence lock. Each fails only if another process takes this one for
/// dead at that very moment, which it checks once a second.
const ACQUIRED_AT_MOST: usize = 100;

/// Proof that a process is alive: a locked file that the kernel frees when the process ends.
pub struct PresenceLock {
    path: PathBuf,
    file: File,
}

impl PresenceLock {
    /// Makes this process's presence file with the note in it, and locks it. Until it is locked,
    /// another process may take it for a dead process's file and remove it, so its path is
    /// checked afterwards.
    pub fn acquire(dir: &Path, participant: &str, note: &Note) -> Result<Self, DirectoryError> {
        make_run(dir)?;
        let path = dir.join(RUN).join(participant);
        for _ in 0..ACQUIRED_AT_MOST {
            let file = opened(&dir.join(RUN))?.open_file(participant, Purpose::Keep)?;
            let file = file.ok_or_else(|| failed("open", &path)(io::ErrorKind::NotFound.into()))?;
            note.write(&file).map_err(failed("write", &path))?;
            file.lock().map_err(failed("lock", &path))?;
            let acquired = Self { path: path.clone(), file };
            if acquired.is_in_place() {
                return Ok(acquired);
            }
        }
        Err(failed("keep", &path)(io::ErrorKind::NotFound.into()))
    }

    /// Says by the file's modification time that the process looks after the board, see
    /// [`last_attended`].
    pub fn touch(&self, now: Timestamp) -> io::Result<()> {
        let millis = u64::try_from(now.millis()).unwrap_or_default();
        self.file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
    }

    /// Replaces the note in the file.
    pub fn note(&self, note: &Note) -> io::Result<()> {
        note.write(&self.file)
    }

    pub fn is_in_place(&self) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let found = std::fs::symlink_metadata(&self.path).ok().map(identity);
        found.is_some() && found == self.file.metadata().ok().map(identity)
    }
}

impl Drop for PresenceLock {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// When another process that stays looked after the board last, in the board's time and to some
/// seconds, if one does or has ended without goodbye.
pub fn last_attended(dir: &Path, own: &ParticipantId) -> Option<Timestamp> {
    let modified = |name| std::fs::symlink_metadata(dir.join(RUN).join(name)).ok()?.modified().ok();
    let newest =
        presence_names(dir).filter(|name| name != own.as_str()).filter_map(modified).max()?;
    let since_epoch = newest.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).ok()?))
}

/// Whether another process with a presence lock lives on the board. The `own` file is left out: it
/// is locked before the board is opened.
pub fn is_anyone_present(dir: &Path, own: Option<&ParticipantId>) -> bool {
    presence_names(dir)
        .any(|name| own.is_none_or(|own| own.as_str() != name) && is_present(dir, &name))
}

/// Whether another process with a presence lock may know more of the board than its files do. One
/// that has not opened it does not keep the journal's log in place either: SQLite removes that when
/// the last connection is closed.
pub fn may_anyone_know_more(dir: &Path, own: &ParticipantId) -> bool {
    let has_board = |file: &File| {
        is_held(file) && Note::read(file).is_none_or(|note| note.has_board != Some(false))
    };
    presence_names(dir).any(|name| own.as_str() != name && is_found(dir, &name, has_board))
}

/// Whether the process that holds this presence lock is alive. Only a lock that was acquired, or a
/// missing file, proves its death: an error proves nothing.
pub fn is_present(dir: &Path, participant: &str) -> bool {
    is_found(dir, participant, is_held)
}

/// The user that the process runs as, whose file its presence file is.
pub fn user_of(dir: &Path, participant: &str) -> Option<u32> {
    Some(std::fs::symlink_metadata(presence_file(dir, participant)?).ok()?.uid())
}

/// Whether `is_so` is true of a presence file, or nobody can tell.
fn is_found(dir: &Path, participant: &str, is_so: impl FnOnce(&File) -> bool) -> bool {
    if presence_file(dir, participant).is_none() {
        return false;
    }
    let run = Dir::open(&dir.join(RUN));
    match run.and_then(|run| run.map_or(Ok(None), |run| run.open_file(participant, Purpose::Read)))
    {
        Ok(Some(file)) => is_so(&file),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Whether a process holds the lock of `file`. Asks with a shared lock, so that two may ask at
/// once.
pub fn is_held(file: &File) -> bool {
    file.try_lock_shared().is_err()
}

/// Names of the presence files: those of living processes, and those that dead ones have left.
pub fn presence_names(dir: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(dir.join(RUN)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| presence_file(dir, name).is_some())
}

/// Removes the presence files of processes that are dead and not listed. The caller holds the
/// board's lock.
pub fn clear_unlisted(dir: &Path, is_listed: impl Fn(&str) -> bool) {
    for name in presence_names(dir).filter(|name| !is_listed(name)) {
        if !is_present(dir, &name) {
            clear_presence(dir, &name);
        }
    }
}

/// Removes the presence file of a process that is gone for good.
pub fn clear_presence(dir: &Path, participant: &str) {
    if let Some(path) = presence_file(dir, participant) {
        drop(std::fs::remove_file(path));
    }
}

/// The path of a presence file; none for an id that no participant gives itself: it came with a
/// foreign state and may be no file name.
fn presence_file(dir: &Path, participant: &str) -> Option<PathBuf> {
    let digits = participant.strip_prefix("p-")?;
    let is_name = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| dir.join(RUN).join(participant))
}
