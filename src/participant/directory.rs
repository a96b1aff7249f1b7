//! The board's directory: made private, and inspected before it is trusted.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use thiserror::Error;

use super::living::Note;
use crate::journal::sqlite;
use crate::location::BOARD_DIR;
use crate::private::{self, Dir, PrivateError, Purpose};
use crate::state::artifact;
use crate::state::id::ParticipantId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::statefile::{self, Home, Left, boot};
use crate::{bundle, config, snapshot};

pub const JOURNAL: &str = sqlite::FILE_NAME;
const LOCK: &str = "lock";
const STATE_LOCK: &str = "state-lock";
/// The lock files, in the order in which they are acquired.
pub const LOCKS: [&str; 2] = [LOCK, STATE_LOCK];
pub const RUN: &str = "run";
/// Where `lock` holds what was left in the state file's place, as JSON: after the signer's line, and before how long
/// the machine has slept. Offsets and lengths in bytes.
const LEFT_AT: u64 = 11;
const LEFT_BYTES: usize = 330;
const SLEPT_AT: u64 = LEFT_AT + LEFT_BYTES as u64 + 1;
const SLEPT_BYTES: usize = 40;
/// And behind it the name under which the processes show the state file, if that was ever set.
const NAME_AT: u64 = SLEPT_AT + SLEPT_BYTES as u64 + 1;
const NAME_BYTES: usize = 64;

#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("{} is {what}, so it is not used as a board; {remedy}", path.display())]
    Unsafe { path: PathBuf, what: &'static str, remedy: &'static str },
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

fn failed(action: &str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let action = format!("cannot {action} {}", path.display());
    move |source| DirectoryError::Failed { action, source }
}

/// Files that SQLite opens by name. A pipe there would block it, and a link would lead it elsewhere.
const OPENED_BY_SQLITE: [&str; 3] = [JOURNAL, LOG_FILES[0], LOG_FILES[1]];
const LOG_FILES: [&str; 2] = [sqlite::LOG_NAME, "journal.db-shm"];

/// Device and inode, which identify a file whatever its name.
pub type Identity = (u64, u64);
const NO_FILE: Identity = (0, 0);

/// The identity of a file in `dir`; `None` when the file, or the whole directory, does not exist. An error leaves that
/// open.
fn identity_in(dir: &Path, name: &str) -> Result<Option<Identity>, DirectoryError> {
    Ok(Dir::open(dir)?.map_or(Ok(None), |dir| dir.identity(name))?)
}

/// Refuses a journal that SQLite must not open.
pub fn inspect_journal(dir: &Path) -> Result<(), DirectoryError> {
    let dir = opened(dir)?;
    OPENED_BY_SQLITE.iter().try_for_each(|name| Ok(dir.identity(name).map(drop)?))
}

fn opened(path: &Path) -> Result<Dir, DirectoryError> {
    Dir::open(path)?.ok_or_else(|| failed("open", path)(io::ErrorKind::NotFound.into()))
}

/// Beginnings of names that occur in a board's directory only.
const SURELY_OF_BOARDS: [&str; 7] =
    [JOURNAL, ".journal.db", statefile::FILE_NAME, ".mcp-state.json", STATE_LOCK, "serve.token", "tokens.toml"];
/// Names in a board's directory that occur in others, too; `*` stands for any end.
const ALSO_OF_BOARDS: [&str; 24] = [
    LOCK,
    RUN,
    RESTORED,
    config::FILE,
    bundle::DIRECTORY,
    snapshot::DIRECTORY,
    artifact::DIRECTORY,
    "logs",
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
            builder.recursive(true).mode(0o700).create(path).map_err(failed("make the directory", path))?;
        }
    }
    furnish(path)
}

/// Refuses a directory that has other files and no board, as a project has. Git would ignore all of them as it ignores
/// a board, or else it would see the board's tokens like all of them.
pub fn refuse_occupied(path: &Path) -> Result<(), DirectoryError> {
    if path.file_name().is_some_and(|name| name == BOARD_DIR) {
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(failed("look at", path))?;
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let home = Home::of(path);
    let is_surely = |name: &String| {
        name.trim_start_matches('.').starts_with(home.name())
            || SURELY_OF_BOARDS.iter().any(|start| name.starts_with(start))
    };
    let may_be = |name: &String| {
        ALSO_OF_BOARDS
            .iter()
            .any(|known| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start)))
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

/// Makes the directory of a board that was removed, unless the directory above it is gone, too.
pub fn prepare_again(path: &Path) -> Result<(), DirectoryError> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(DirectoryError::Homeless { path: path.to_owned() })
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("make the directory", path)(error)),
        _ => {
            inspect(path)?;
            furnish(path)
        }
    }
}

/// File with the mark of a board that was put here on purpose, which no running process undoes.
const RESTORED: &str = "restored";
const LONGEST_MARK: u64 = 256;
/// Most attempts to acquire a presence lock. Each fails only if another process takes this one for dead at that very
/// moment, which it checks once a second.
const ACQUIRED_AT_MOST: usize = 100;

/// Marks the board in `dir` as restored. The caller holds the board's lock and never uses the same `mark` twice.
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

/// Whether the journal is missing, or its log, which is there while any process has the journal open.
pub fn is_incomplete(dir: &Path) -> bool {
    OPENED_BY_SQLITE[..2].iter().any(|name| std::fs::symlink_metadata(dir.join(name)).is_err())
}

/// Whether another process with a presence lock lives on the board. The `own` file is left out: it is locked before the
/// board is opened.
pub fn is_anyone_present(dir: &Path, own: Option<&ParticipantId>) -> bool {
    presence_names(dir).any(|name| own.is_none_or(|own| own.as_str() != name) && is_present(dir, &name))
}

/// Names of the presence files: those of living processes, and those that dead ones have left.
pub fn presence_names(dir: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(dir.join(RUN)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| presence_file(dir, name).is_some())
}

fn make_run(dir: &Path) -> Result<(), DirectoryError> {
    let run = dir.join(RUN);
    match std::fs::DirBuilder::new().mode(0o700).create(&run) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("make the directory", &run)(error)),
        _ => inspect_run(dir),
    }
}

/// Refuses a `run` that is no directory: files are made and removed in it, so it must not lead elsewhere.
fn inspect_run(dir: &Path) -> Result<(), DirectoryError> {
    let path = dir.join(RUN);
    if std::fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(DirectoryError::Unsafe { path, what: "not a directory", remedy: "remove it" });
    }
    Ok(())
}

/// Refuses a directory that others could tamper with.
pub fn inspect(path: &Path) -> Result<(), DirectoryError> {
    let metadata = std::fs::symlink_metadata(path).map_err(failed("look at", path))?;
    let refuse = |what, remedy| Err(DirectoryError::Unsafe { path: path.to_owned(), what, remedy });
    if metadata.is_symlink() {
        return refuse("a symbolic link", "name its target with --dir");
    }
    if !metadata.is_dir() {
        return refuse("not a directory", "move it away or choose another with --dir");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("owned by another user", "choose another with --dir, or run as its owner");
    }
    if metadata.mode() & 0o002 != 0 {
        let is_shared = metadata.mode() & 0o1000 != 0;
        let remedy = if is_shared { "choose a directory of your own with --dir" } else { "run `chmod 700` on it" };
        return refuse("writable by everybody", remedy);
    }
    inspect_run(path)
}

/// The board's two locks. The holder of the journal's may append to it, the holder of the state file's may replace
/// that, and the holder of both has the board to itself. Who holds the state file's never waits for the journal's,
/// which would be a deadlock.
pub struct BoardLock {
    dir: PathBuf,
    handle: Dir,
    journal: Held,
    state_file: Held,
    /// The state file's lock file, opened again for the thread that waits for it, once there is one.
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
        let file =
            dir.open_file(name, purpose)?.ok_or_else(|| failed("open", &path)(io::ErrorKind::NotFound.into()))?;
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
        if is_same { Ok(found.file) } else { Err(DirectoryError::Replaced { path: dir.to_owned() }) }
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

    /// Opens the lock files that are at their paths now. A lock whose file is still the same stays held.
    pub fn anew(&self) -> Result<Self, DirectoryError> {
        let mut found = Self::open(&self.dir)?;
        for (new, old) in [(&mut found.journal, &self.journal), (&mut found.state_file, &self.state_file)] {
            if new.identity == old.identity {
                new.file = old.file.try_clone().map_err(failed("open", &self.dir.join(new.name)))?;
            }
        }
        Ok(found)
    }

    /// A duplicate handle of the journal's lock file, which shares the lock, for the thread that waits for it.
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

    /// Acquires and signs both locks, waiting for at most `patience`. If one does not come, neither is held, and the
    /// pid of its holder is returned, if known.
    pub fn acquire_within(&self, patience: Duration, pid: u32) -> io::Result<Result<(), Option<u32>>> {
        let start = Instant::now();
        for held in [&self.journal, &self.state_file] {
            if !private::lock_within(&held.file, patience.saturating_sub(start.elapsed()))? {
                self.release();
                return Ok(Err(self.signer(held.name)));
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

    pub fn holder(&self) -> Option<u32> {
        self.signer(LOCK)
    }

    pub fn state_file_holder(&self) -> Option<u32> {
        self.signer(STATE_LOCK)
    }

    fn signer(&self, name: &str) -> Option<u32> {
        signer(&opened(&self.dir).ok()?.open_file(name, Purpose::Read).ok()??)
    }

    /// Notes in the lock file which state files the projections have left, for every process that will find one.
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
        let mut text = [0; LEFT_BYTES];
        if self.journal.file.read_exact_at(&mut text, LEFT_AT).is_err() {
            return Left::default();
        }
        let mut last = self.left.borrow_mut();
        if last.0 != text {
            *last = (text.to_vec(), serde_json::from_slice(&text).unwrap_or_default());
        }
        last.1.clone()
    }

    /// Notes in the lock file how many milliseconds this machine has slept since it booted: the next process has no
    /// earlier clock reading of its own.
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

    /// Notes in the lock file under which name the state file is shown from now on.
    pub fn note_state_file(&self, name: &str) -> io::Result<()> {
        self.journal.file.write_all_at(format!("{name:<NAME_BYTES$}\n").as_bytes(), NAME_AT)
    }

    /// What [`note_state_file`](Self::note_state_file) noted last.
    pub fn state_file(&self) -> Option<String> {
        noted_state_file(&self.journal.file)
    }

    /// Remembers which files the journal is made of: `database`, and its log, which is there while this process has it
    /// open.
    pub fn settle_journal(&mut self, database: Identity, has_log: bool) -> Result<(), DirectoryError> {
        let log = if has_log { self.log_files()? } else { Vec::new() };
        self.files = vec![(JOURNAL, database)];
        self.files.extend(log);
        Ok(())
    }

    /// The identities of the log and its index. A file that is gone already gets one that no file has, so that it will
    /// be missed.
    pub fn log_files(&self) -> Result<Vec<(&'static str, Identity)>, DirectoryError> {
        let file = |name| Ok((name, identity_in(&self.dir, name)?.unwrap_or(NO_FILE)));
        LOG_FILES.into_iter().map(file).collect()
    }

    /// Whether all of `files` existed and are still the log and its index.
    pub fn has_log_files(&self, files: &[(&'static str, Identity)]) -> Result<bool, DirectoryError> {
        Ok(files.iter().all(|(_, identity)| *identity != NO_FILE) && self.log_files()? == files)
    }

    fn locks(&self) -> [(&'static str, Identity); 2] {
        [&self.journal, &self.state_file].map(|held| (held.name, held.identity))
    }

    /// The locks and the journal must still be the files at their paths, or writing would go nowhere.
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

    /// Whether a lock file was deleted. One that was only renamed is not noticed, which makes this cheaper than
    /// [`verify`](Self::verify).
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

fn noted_state_file(lock: &File) -> Option<String> {
    let mut text = [0; NAME_BYTES];
    lock.read_exact_at(&mut text, NAME_AT).ok()?;
    let name = str::from_utf8(&text).ok()?.trim_end_matches([' ', '\0']);
    (!name.is_empty()).then(|| name.to_owned())
}

fn sign(lock: &File, pid: u32) -> io::Result<()> {
    // Usually the same process held it last, and reading is cheaper than writing.
    if signer(lock) == Some(pid) { Ok(()) } else { lock.write_all_at(format!("{pid:<10}\n").as_bytes(), 0) }
}

/// The process that last acquired this lock, if it signed it.
pub fn signer(lock: &File) -> Option<u32> {
    let mut text = [0; LEFT_AT as usize];
    lock.read_exact_at(&mut text, 0).ok()?;
    str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Proof that a process is alive: a locked file that the kernel frees when the process ends.
pub struct PresenceLock {
    path: PathBuf,
    file: File,
}

impl PresenceLock {
    /// Makes this process's presence file with the note in it, and locks it. Until it is locked, another process may take
    /// it for a dead process's file and remove it, so its path is checked afterwards.
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

    /// Says by the file's modification time that the process looks after the board, see [`last_attended`].
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

/// When a process that stays looked after the board last, to some seconds, if one does or has ended without goodbye.
pub fn last_attended(dir: &Path) -> Option<Timestamp> {
    let modified = |name| std::fs::symlink_metadata(dir.join(RUN).join(name)).ok()?.modified().ok();
    let newest = presence_names(dir).filter_map(modified).max()?;
    let since_epoch = newest.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).ok()?))
}

/// Whether the process that holds this presence lock is alive. Only a lock that was acquired, or a missing file, proves
/// its death: an error proves nothing.
pub fn is_present(dir: &Path, participant: &str) -> bool {
    if presence_file(dir, participant).is_none() {
        return false;
    }
    let run = Dir::open(&dir.join(RUN));
    match run.and_then(|run| run.map_or(Ok(None), |run| run.open_file(participant, Purpose::Read))) {
        Ok(Some(file)) => is_held(&file),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Whether a process holds the lock of `file`. Asks with a shared lock, so that two may ask at once.
pub fn is_held(file: &File) -> bool {
    file.try_lock_shared().is_err()
}

/// Removes the presence files of processes that are dead and not listed. The caller holds the board's lock.
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

/// The path of a presence file; none for an id that no participant gives itself: it came with a foreign state and may
/// be no file name.
fn presence_file(dir: &Path, participant: &str) -> Option<PathBuf> {
    let digits = participant.strip_prefix("p-")?;
    let is_name = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| dir.join(RUN).join(participant))
}

#[cfg(test)]
mod tests {
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
