//! The board's two locks, and what the processes of a board note in the files of these.

use std::cell::{OnceCell, RefCell};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::directory::{
    DirectoryError, Identity, JOURNAL, LOCK, LOG_FILES, NO_FILE, STATE_LOCK, failed, identity_in,
    opened,
};
use super::error::BoardError;
use super::holder::Holder;
use crate::clock::{BoardClock, Mark, SystemClock, boot};
use crate::private::{self, Dir, Purpose};
use crate::state::time::Timestamp;
use crate::statefile::Left;

/// Where `lock` holds what was left in the state file's place, as JSON: after the signer's line,
/// and before how long the machine has slept. Offsets and lengths in bytes.
const LEFT_AT: u64 = 11;
const LEFT_BYTES: usize = 330;
const SLEPT_AT: u64 = LEFT_AT + LEFT_BYTES as u64 + 1;
const SLEPT_BYTES: usize = 40;
/// And behind it the name under which the processes show the state file, if that was ever set.
const NAME_AT: u64 = SLEPT_AT + SLEPT_BYTES as u64 + 1;
const NAME_BYTES: usize = 64;
/// And last the newest mark of the board's time.
const MARK_AT: u64 = NAME_AT + NAME_BYTES as u64 + 1;
const MARK_BYTES: usize = 80;

/// How long a caller waits for a lock before it gives up.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The board's two locks. The holder of the journal's may append to it, the holder of the state
/// file's may replace that, and the holder of both has the board to itself. Who holds the state
/// file's never waits for the journal's, which would be a deadlock.
pub struct BoardLock {
    dir: PathBuf,
    handle: Dir,
    journal: Held,
    state_file: Held,
    /// The state file's lock file, opened again for the thread that waits for it, once there is
    /// one.
    turn: OnceCell<Arc<File>>,
    /// Names and identities of the files that the journal is made of.
    files: Vec<(&'static str, Identity)>,
    /// The note of the files left, as text and as parsed, when it was last read or written.
    left: RefCell<(Vec<u8>, Left)>,
}

/// A lock file, which is never unlinked.
struct Held {
    name: &'static str,
    file: File,
    identity: Identity,
}

impl Held {
    fn open(dir: &Dir, name: &'static str, purpose: Purpose) -> Result<Self, DirectoryError> {
        let path = dir.path().join(name);
        let file = dir
            .open_file(name, purpose)?
            .ok_or_else(|| failed("open", &path)(io::ErrorKind::NotFound.into()))?;
        let metadata = file.metadata().map_err(failed("look at", &path))?;
        Ok(Self { name, file, identity: (metadata.dev(), metadata.ino()) })
    }

    /// Acquires the lock if nobody holds it, and returns whether it did.
    fn try_acquire(&self) -> io::Result<bool> {
        private::lock_within(&self.file, Duration::ZERO)
    }

    fn release(&self) {
        if let Err(error) = self.file.unlock() {
            tracing::error!(%error, name = self.name, "a lock of the board could not be released");
        }
    }

    /// Opens the same file again, for a thread that takes the lock for itself.
    fn another(&self, dir: &Path) -> Result<File, DirectoryError> {
        let found = Self::open(&opened(dir)?, self.name, Purpose::Read)?;
        let is_same = found.identity == self.identity;
        if is_same {
            Ok(found.file)
        } else {
            Err(DirectoryError::Replaced { path: dir.to_owned() })
        }
    }
}

impl BoardLock {
    pub fn open(dir: &Path) -> Result<Self, DirectoryError> {
        let handle = opened(dir)?;
        let journal = Held::open(&handle, LOCK, Purpose::Keep)?;
        let state_file = Held::open(&handle, STATE_LOCK, Purpose::Keep)?;
        let (turn, files, left) = (OnceCell::new(), Vec::new(), RefCell::default());
        Ok(Self { dir: dir.to_owned(), handle, journal, state_file, turn, files, left })
    }

    /// Opens the lock files that are at their paths now. A lock whose file is still the same stays
    /// held.
    pub fn anew(&self) -> Result<Self, DirectoryError> {
        let mut found = Self::open(&self.dir)?;
        for (new, old) in
            [(&mut found.journal, &self.journal), (&mut found.state_file, &self.state_file)]
        {
            if new.identity == old.identity {
                new.file =
                    old.file.try_clone().map_err(failed("open", &self.dir.join(new.name)))?;
            }
        }
        Ok(found)
    }

    /// A duplicate handle of the journal's lock file, which shares the lock, for the thread that
    /// waits for it.
    pub fn handle(&self) -> io::Result<File> {
        self.journal.file.try_clone()
    }

    /// Opens the journal's lock file again, for a thread that takes the lock for itself.
    pub fn another(&self) -> Result<File, DirectoryError> {
        self.journal.another(&self.dir)
    }

    /// The state file's lock file opened again, for the one thread that waits for it.
    pub fn turn(&self) -> Result<Arc<File>, DirectoryError> {
        if let Some(file) = self.turn.get() {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(self.state_file.another(&self.dir)?);
        Ok(Arc::clone(self.turn.get_or_init(|| file)))
    }

    /// Acquires the journal's lock if nobody holds it.
    pub fn try_acquire_journal(&self) -> io::Result<bool> {
        self.journal.try_acquire()
    }

    /// Whether both locks could be taken now.
    pub fn is_free(&self) -> bool {
        [&self.journal, &self.state_file].into_iter().all(|lock| {
            let is_free = matches!(lock.try_acquire(), Ok(true));
            if is_free {
                lock.release();
            }
            is_free
        })
    }

    pub fn release_journal(&self) {
        self.journal.release();
    }

    /// Acquires the state file's lock if nobody holds it.
    pub fn try_acquire_state_file(&self) -> io::Result<bool> {
        self.state_file.try_acquire()
    }

    pub fn release_state_file(&self) {
        self.state_file.release();
    }

    /// Acquires and signs both locks, waiting for at most `patience`. If one does not come, neither
    /// is held, and its holder is returned.
    pub fn acquire_within(&self, patience: Duration, pid: u32) -> io::Result<Result<(), Holder>> {
        let start = Instant::now();
        for held in [&self.journal, &self.state_file] {
            if !private::lock_within(&held.file, patience.saturating_sub(start.elapsed()))? {
                self.release();
                return Ok(Err(Holder::of(&held.file)));
            }
            // Otherwise whoever waits in vain would be told of the previous holder.
            drop(sign(&held.file, pid));
        }
        Ok(Ok(()))
    }

    pub fn release(&self) {
        self.state_file.release();
        self.journal.release();
    }

    /// Signs the journal's lock file with the holder's pid, for those who wait in vain.
    pub fn sign(&self, pid: u32) -> io::Result<()> {
        sign(&self.journal.file, pid)
    }

    /// Signs the state file's lock file.
    pub fn sign_state_file(&self, pid: u32) -> io::Result<()> {
        sign(&self.state_file.file, pid)
    }

    pub fn holder(&self) -> Holder {
        Holder::of(&self.journal.file)
    }

    pub fn state_file_holder(&self) -> Holder {
        Holder::of(&self.state_file.file)
    }

    /// Notes in the lock file which state files the projections have left, for every process that
    /// will find one.
    pub fn leave(&self, left: Left) -> io::Result<()> {
        let mut text = serde_json::to_vec(&left)?;
        text.resize(text.len().max(LEFT_BYTES), b' ');
        text.push(b'\n');
        self.journal.file.write_all_at(&text, LEFT_AT)?;
        text.pop();
        *self.left.borrow_mut() = (text, left);
        Ok(())
    }

    /// What [`leave`](Self::leave) noted last; empty when that is not known.
    pub fn left(&self) -> Left {
        let Some(text) = noted_left(&self.journal.file) else { return Left::default() };
        let mut last = self.left.borrow_mut();
        if last.0 != text {
            *last = (text.to_vec(), serde_json::from_slice(&text).unwrap_or_default());
        }
        last.1.clone()
    }

    /// Notes in the lock file how many milliseconds this machine has slept since it booted: the
    /// next process has no earlier clock reading of its own.
    pub fn note_slept(&self, millis: i64) -> io::Result<()> {
        let text = format!("{} {millis}", boot());
        self.journal.file.write_all_at(format!("{text:<SLEPT_BYTES$}\n").as_bytes(), SLEPT_AT)
    }

    /// What [`note_slept`](Self::note_slept) noted last, if that was since the machine booted.
    pub fn slept(&self) -> Option<i64> {
        let mut text = [0; SLEPT_BYTES];
        self.journal.file.read_exact_at(&mut text, SLEPT_AT).ok()?;
        let (noted_in, millis) = str::from_utf8(&text).ok()?.trim().split_once(' ')?;
        millis.parse().ok().filter(|_| noted_in == boot())
    }

    /// Notes in the lock file what the board's time is. Needs no lock: all processes note the same,
    /// earlier or later.
    pub fn note_mark(&self, mark: &Mark) -> io::Result<()> {
        self.journal
            .file
            .write_all_at(format!("{:<MARK_BYTES$}\n", mark.to_string()).as_bytes(), MARK_AT)
    }

    /// What [`note_mark`](Self::note_mark) noted last.
    pub fn mark(&self) -> Option<Mark> {
        noted_mark(&self.journal.file)
    }

    /// Notes in the lock file under which name the state file is shown from now on.
    pub fn note_state_file(&self, name: &str) -> io::Result<()> {
        self.journal.file.write_all_at(format!("{name:<NAME_BYTES$}\n").as_bytes(), NAME_AT)
    }

    /// What [`note_state_file`](Self::note_state_file) noted last.
    pub fn state_file(&self) -> Option<String> {
        noted_state_file(&self.journal.file)
    }

    /// Remembers which files the journal is made of: `database`, and its log, which is there while
    /// this process has it open.
    pub fn settle_journal(
        &mut self,
        database: Identity,
        has_log: bool,
    ) -> Result<(), DirectoryError> {
        let log = if has_log { self.log_files()? } else { Vec::new() };
        self.files = vec![(JOURNAL, database)];
        self.files.extend(log);
        Ok(())
    }

    /// The identities of the log and its index. A file that is gone already gets one that no file
    /// has, so that it will be missed.
    pub fn log_files(&self) -> Result<Vec<(&'static str, Identity)>, DirectoryError> {
        let file = |name| Ok((name, identity_in(&self.dir, name)?.unwrap_or(NO_FILE)));
        LOG_FILES.into_iter().map(file).collect()
    }

    /// Whether all of `files` existed and are still the log and its index.
    pub fn has_log_files(
        &self,
        files: &[(&'static str, Identity)],
    ) -> Result<bool, DirectoryError> {
        Ok(files.iter().all(|(_, identity)| *identity != NO_FILE) && self.log_files()? == files)
    }

    fn locks(&self) -> [(&'static str, Identity); 2] {
        [&self.journal, &self.state_file].map(|held| (held.name, held.identity))
    }

    /// The locks and the journal must still be the files at their paths, or writing would go
    /// nowhere.
    pub fn verify(&self) -> Result<(), DirectoryError> {
        let replaced = || DirectoryError::Replaced { path: self.dir.clone() };
        let another;
        let dir = if self.handle.is_in_place() {
            &self.handle
        } else {
            another = Dir::open(&self.dir)?.ok_or_else(replaced)?;
            &another
        };
        for (name, file) in self.locks().into_iter().chain(self.files.iter().copied()) {
            if dir.identity(name)? != Some(file) {
                return Err(replaced());
            }
        }
        Ok(())
    }

    /// Whether a lock file was deleted. One that was only renamed is not noticed, which makes this
    /// cheaper than [`verify`](Self::verify).
    pub fn is_deleted(&self) -> bool {
        [&self.journal, &self.state_file].iter().any(|held| private::is_deleted(&held.file))
    }

    pub fn is_in_place(&self) -> Result<bool, DirectoryError> {
        self.are_there(&self.locks())
    }

    pub fn is_journal_in_place(&self) -> Result<bool, DirectoryError> {
        self.are_there(&self.files)
    }

    /// Whether the database itself is in place, whatever has become of its log.
    pub fn is_database_in_place(&self) -> Result<bool, DirectoryError> {
        self.are_there(self.files.get(..1).unwrap_or_default())
    }

    fn are_there(&self, files: &[(&'static str, Identity)]) -> Result<bool, DirectoryError> {
        for (name, file) in files {
            if identity_in(&self.dir, name)? != Some(*file) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The state file's name that is noted in the lock file of `dir`, which is not made for this.
pub fn state_file_of(dir: &Path) -> Option<String> {
    noted_state_file(&Dir::open(dir).ok()??.open_file(LOCK, Purpose::Read).ok()??)
}

/// What the lock file of `dir`, which is not made for this, notes of the state file that was left;
/// empty when that is not known.
pub fn left_of(dir: &Path) -> Left {
    let lock = Dir::open(dir).ok().flatten();
    let lock = lock.and_then(|dir| dir.open_file(LOCK, Purpose::Read).ok().flatten());
    let text = lock.and_then(|lock| noted_left(&lock));
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// The newest mark of the board's time that is noted in the lock file of `dir`, which is not made
/// for this.
pub fn mark_of(dir: &Path) -> Option<Mark> {
    noted_mark(&Dir::open(dir).ok()??.open_file(LOCK, Purpose::Read).ok()??)
}

/// The time of the board in `dir`, for what is decided without opening it; the wall clock's where
/// there is none.
pub fn board_time(dir: &Path) -> Timestamp {
    BoardClock::new(Box::new(SystemClock), mark_of(dir).as_ref()).now(Timestamp::default())
}

fn noted_left(lock: &File) -> Option<[u8; LEFT_BYTES]> {
    let mut text = [0; LEFT_BYTES];
    lock.read_exact_at(&mut text, LEFT_AT).ok().map(|()| text)
}

fn noted_mark(lock: &File) -> Option<Mark> {
    let mut text = [0; MARK_BYTES];
    lock.read_exact_at(&mut text, MARK_AT).ok()?;
    Mark::parse(str::from_utf8(&text).ok()?.trim_end())
}

fn noted_state_file(lock: &File) -> Option<String> {
    let mut text = [0; NAME_BYTES];
    lock.read_exact_at(&mut text, NAME_AT).ok()?;
    let name = str::from_utf8(&text).ok()?.trim_end_matches([' ', '\0']);
    (!name.is_empty()).then(|| name.to_owned())
}

fn sign(lock: &File, pid: u32) -> io::Result<()> {
    // Usually the same process held it last, and reading is cheaper than writing.
    if signer(lock) == Some(pid) {
        Ok(())
    } else {
        lock.write_all_at(format!("{pid:<10}\n").as_bytes(), 0)
    }
}

/// The process that holds the lock of this name in `dir`, if one does. Neither the lock nor its
/// file is made for this, and nobody is kept waiting.
pub fn held(dir: &Path, name: &str) -> Option<Holder> {
    let file = Dir::open(dir).ok()??.open_file(name, Purpose::Read).ok()??;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| Holder::of(&file))
}

/// The process that last acquired this lock, if it signed it.
pub fn signer(lock: &File) -> Option<u32> {
    let mut text = [0; LEFT_AT as usize];
    lock.read_exact_at(&mut text, 0).ok()?;
    str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Waits for the board's locks as long as a call would.
pub fn acquire(lock: &BoardLock) -> Result<(), BoardError> {
    let failed =
        |source| BoardError::Io { action: "cannot take the board's lock".to_owned(), source };
    let acquired = lock.acquire_within(LOCK_PATIENCE, std::process::id()).map_err(failed)?;
    acquired.map_err(|holder| BoardError::Locked { holder, seconds: LOCK_PATIENCE.as_secs() })
}

#[cfg(test)]
mod tests {
    use super::super::directory::{LOCKS, prepare};
    use super::*;

    #[test]
    fn deleted_lock_is_seen_without_looking_for_its_name() {
        for name in LOCKS {
            let place = tempfile::tempdir().expect("a temporary directory");
            let dir = place.path().join("board");
            prepare(&dir).expect("a directory");
            let lock = BoardLock::open(&dir).expect("its locks");
            assert!(!lock.is_deleted());
            std::fs::remove_file(dir.join(name)).expect("the lock's file");
            assert!(lock.is_deleted(), "{name}");
            assert!(matches!(lock.verify(), Err(DirectoryError::Replaced { .. })), "{name}");
        }
    }
}
