//! The board on disk as one process holds it: lock, journal, state file; how it is made, loaded and caught up with.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::archive::{self, BoardArchive};
use super::directory::{self, BoardLock, DirectoryError, JOURNAL};
use super::edits;
use super::naming;
use super::recovery::{self, Author};
use crate::config::{self, ConfigError};
use crate::journal::sqlite::SqliteJournal;
use crate::journal::{AppendError, BatchId, Journal, JournalError};
use crate::memory;
use crate::ops::{History, Reader};
use crate::private;
use crate::state::document::Document;
use crate::state::event::{Event, Recorded};
use crate::state::limit::KEYS_REMEMBERED;
use crate::state::policy::Policy;
use crate::state::run::rows::Rows;
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};
use crate::statefile::{self, FileIdentity, Found, Home, Left, LoadError, Projection, Unplaced};

/// Why the board cannot be used, and what to do about it.
#[derive(Debug, Error)]
pub enum BoardError {
    #[error("no board in {}; make one with `callboard init GOAL`, or add a task with create_task", dir.display())]
    Absent { dir: PathBuf },
    #[error("{0}")]
    Forbidden(String),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    StateFile(#[from] LoadError),
    #[error("the journal does not fit the state: {0}; nothing was changed; run `callboard doctor`")]
    Inconsistent(#[from] ApplyError),
    #[error(
        "{} is at event {file} but the journal ends at {head}: the journal has lost its end. Nothing was touched; \
         `callboard doctor --repair --dry-run` says how the board can go on from the state file", path.display()
    )]
    JournalBehind { path: PathBuf, file: u64, head: u64 },
    #[error(
        "there was a board here, and nothing of it is sound ({reason}); restore {} or the journal from a backup, or run \
         `callboard doctor --repair --dry-run` to see what it would do", path.display()
    )]
    NothingSound { path: PathBuf, reason: String },
    #[error("event {seq} is not in the past: the first is {first} and the newest {head}")]
    NotInThePast { seq: u64, first: u64, head: u64 },
    #[error("nothing is known of {time}: the board's history begins at {first}")]
    BeforeTheFirst { time: Timestamp, first: Timestamp },
    #[error(
        "the board is damaged ({reason}), and to go on from what is sound would lose {lost}. Other processes on the board \
         may know more: call one of them, or end them and try again; nothing was touched"
    )]
    OthersKnowMore { lost: String, reason: String },
    #[error(
        "the board in {} is another one now, or went on from an earlier state without this process: it is at event {theirs}, \
         and this process knew {ours} events of which some are not in it; restart this process.{}",
        path.display(), saved_text(saved.as_deref())
    )]
    Diverged { path: PathBuf, ours: u64, theirs: u64, saved: Option<PathBuf> },
    #[error(
        "the board was removed while the call was done ({0}); whether it is on the board when that is back is unknown: \
         ask again, with the same idempotency_key if there was one"
    )]
    Vanished(Box<BoardError>),
    #[error("the state file is not what was written: {0}")]
    StateFileUnsound(String),
    /// The processes of a board must agree, or each would write a file of its own.
    #[error(
        "the board in {} is shown in `{shown}`, and {by} names `{asked}`: {way_out}", dir.display()
    )]
    StateFileName { dir: PathBuf, shown: String, by: &'static str, asked: String, way_out: String },
    #[error("nothing was changed: {0}")]
    NotWritten(JournalError),
    #[error("whether the call was done is unknown ({0}); ask again, with the same idempotency_key if there was one")]
    Unknown(JournalError),
    #[error("the board's lock has been held by {} for {seconds} s; nothing was changed; try again", holder_text(*holder))]
    Locked { holder: Option<u32>, seconds: u64 },
    #[error("{0}; this process only reads from here on: restart it with the newer callboard")]
    Outdated(String),
    #[error("{waiting} calls are waiting already; try again in a moment")]
    Overloaded { waiting: usize },
    #[error("this process's board has ended; restart the process")]
    Ended,
    #[error("{action}: {source}")]
    Io { action: String, source: io::Error },
}

impl BoardError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Absent { .. } => "no_board",
            Self::Forbidden(_) => "board_forbidden",
            Self::Directory(DirectoryError::Replaced { .. } | DirectoryError::Homeless { .. }) => "board_replaced",
            Self::Diverged { .. } => "board_replaced",
            Self::Directory(_) => "bad_directory",
            Self::Config(_) => "bad_config",
            Self::Journal(_) | Self::Inconsistent(_) => "journal_unusable",
            Self::StateFileName { .. } => "state_file_name",
            Self::StateFile(_) | Self::StateFileUnsound(_) | Self::NothingSound { .. } => "state_file_unusable",
            Self::JournalBehind { .. } => "journal_behind",
            Self::NotInThePast { .. } | Self::BeforeTheFirst { .. } => "not_in_the_past",
            Self::NotWritten(_) => "not_written",
            Self::Unknown(_) | Self::Vanished(_) => "unknown_outcome",
            Self::OthersKnowMore { .. } => "board_damaged",
            Self::Locked { .. } => "locked",
            Self::Outdated(_) => "outdated",
            Self::Overloaded { .. } => "overloaded",
            Self::Ended => "ended",
            Self::Io { .. } => "io",
        }
    }
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn saved_text(saved: Option<&Path>) -> String {
    saved.map_or_else(String::new, |path| format!(" Its own state is kept in {}", path.display()))
}

impl BoardError {
    /// Whether the files on the disk are not what was written, so that a recovery from what is sound may help.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_damage(),
            Self::StateFileUnsound(_) => true,
            _ => false,
        }
    }
}

pub struct Board {
    pub state: State,
    pub config: config::Followed,
    pub lock: BoardLock,
    /// Rises when another file becomes the lock.
    pub lock_generation: u64,
    pub(super) dir: Home,
    pub(super) journal: SqliteJournal,
    pub(super) projection: Projection,
    /// Why this process may only read, if the journal has events that this build does not know.
    outdated: Option<String>,
    /// What was repaired, to be told in the next reply.
    pub report: Option<String>,
    /// Where this process saved its own state when it found another history in the board's place.
    pub(super) saved: Option<PathBuf>,
    /// The mark of the newest `callboard restore` when this process opened the board.
    pub(super) restored: Option<String>,
    /// Since when this process has been trying to regain a board that is gone, which one that knows more may rebuild.
    pub(super) awaited_since: Option<Instant>,
}

/// What catching up with the journal brought.
#[derive(Default)]
pub struct CaughtUp {
    /// The newest events: those of the last read.
    pub newest: Vec<Recorded>,
    /// The sum of the clock steps that others recorded, in milliseconds.
    pub stepped: i64,
}

/// How long a caller waits for a lock before it gives up.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How long a start leaves it to living processes to rebuild the board. Those look at it more often than that.
const PATIENCE_WITH_THE_LIVING: Duration = Duration::from_secs(3);
const OTHER_HISTORY: &str = "it is of another history";
/// Most events that are read from the journal at once.
const READ_AT_ONCE: usize = 4_096;

impl Board {
    pub fn exists(dir: &Path) -> bool {
        dir.join(JOURNAL).exists()
    }

    /// Loads the board that is there. Without an `author` nothing is repaired.
    pub fn open(dir: &Path, author: Option<&Author>) -> Result<Self, BoardError> {
        directory::inspect(dir)?;
        let_the_living_rebuild(dir, author);
        let lock = BoardLock::open(dir)?;
        let home = naming::settle(dir, &lock, author)?;
        let board = Self::load(home, lock, author)?;
        memory::give_back();
        // SQLite has opened the journal by its path: it must have been the file that was inspected.
        match board.lock.verify() {
            // The files were deleted since; the first look will put the board back.
            Err(DirectoryError::Replaced { .. }) | Ok(()) => Ok(board),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the board, whose state file gets the `name`, unless another process has made it meanwhile.
    pub fn create(dir: &Path, author: &Author, board_id: &str, name: Option<&str>) -> Result<Self, BoardError> {
        directory::prepare(dir)?;
        let_the_living_rebuild(dir, Some(author));
        let lock = BoardLock::open(dir)?;
        acquire(&lock)?;
        let made = Self::make(dir, &lock, author, board_id, name);
        if matches!(made, Ok(Some(_))) {
            leave_what_is_there(&lock, dir);
        }
        lock.release();
        let report = made?;
        let mut board = Self::open(dir, Some(author))?;
        board.report = report.or(board.report);
        Ok(board)
    }

    /// Begins the board under its locks. One that another process has made meanwhile must have the `name`.
    fn make(
        dir: &Path,
        lock: &BoardLock,
        author: &Author,
        board_id: &str,
        name: Option<&str>,
    ) -> Result<Option<String>, BoardError> {
        if Self::exists(dir) || is_remade(dir)? {
            return naming::agree(dir, name).map(|()| None);
        }
        naming::begin(dir, lock, name)?;
        Self::begin(dir, author, board_id)
    }

    /// Makes the journal with its first event: a new board, the import of a state file that is there, or a recovery
    /// from what is left of a board, of which the report is returned.
    fn begin(dir: &Path, author: &Author, board_id: &str) -> Result<Option<String>, BoardError> {
        let first = match statefile::load(dir)? {
            None if recovery::evidence(dir).is_empty() => Event::BoardCreated { board_id: board_id.to_owned() },
            Some(Found::Foreign { document, notes }) => {
                keep_copy(dir).map_err(|source| io_error("cannot copy the state file in", dir, source))?;
                notes.iter().for_each(|note| tracing::warn!("state file: {note}"));
                imported("typescript-broker", *document, board_id)
            }
            None | Some(Found::Sound(_) | Found::Unsound { .. }) => {
                let plan = recovery::plan(dir)?;
                return match plan.finds_nothing() {
                    true => Err(nothing_sound(dir, plan.faults().join("; "))),
                    false => plan.carry_out(author).map(Some),
                };
            }
        };
        let participant = &author.participant;
        let envelope = Envelope { at: author.now, participant: participant.clone(), actor: None, idempotency: None };
        let mut state = State::new();
        let first = state.record(first, &envelope)?;
        SqliteJournal::create_with(dir, board_id, &BatchId::new(format!("{participant}/0")), &[first])?;
        // Until it is replaced, the imported file is another board's.
        Projection::new(dir)
            .write(&mut state)
            .map(|()| None)
            .map_err(|source| io_error("cannot write the state file in", dir, source))
    }

    /// Loads the board, and repairs it if it is damaged and enough is sound: under the lock and after a second look,
    /// because another process may have done so. A file that somebody has edited is not damaged: the projection keeps
    /// it as an edit.
    fn load(home: Home, mut lock: BoardLock, author: Option<&Author>) -> Result<Self, BoardError> {
        let dir = &home;
        let restored = directory::restored(dir);
        let (mut has_lock, mut is_edited) = (false, false);
        let loaded = match (Loaded::read(dir), author) {
            (Err(BoardError::StateFileUnsound(_)), None) => Loaded::without_file(dir).map(|loaded| (loaded, None)),
            (Err(error), Some(author)) if error.is_damage() => {
                edits::let_settle(dir, &lock);
                acquire(&lock)?;
                has_lock = true;
                let again = Loaded::read(dir).map(|loaded| (loaded, None));
                again.or_else(|error| {
                    is_edited = matches!(error, BoardError::StateFileUnsound(_))
                        && SqliteJournal::open(dir).is_ok_and(|journal| edits::is_edit(dir, &lock, &journal));
                    match error {
                        _ if is_edited => Ok((Loaded::without_file(dir)?, None)),
                        error if error.is_damage() => {
                            let report = recovery::mend(dir, author)?;
                            leave_what_is_there(&lock, dir);
                            Ok((Loaded::read(dir)?, report))
                        }
                        error => Err(error),
                    }
                })
            }
            (loaded, _) => loaded.map(|loaded| (loaded, None)),
        };
        let (Loaded { state, mut journal, config, outdated, projection }, report) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                if has_lock {
                    lock.release();
                }
                return Err(error);
            }
        };
        journal.defer_syncs(dir)?;
        lock.settle_journal(journal.identity(), journal.has_log())?;
        let mut board = Self {
            state,
            config,
            lock,
            lock_generation: 0,
            dir: home,
            journal,
            projection,
            outdated,
            report,
            saved: None,
            restored,
            awaited_since: None,
        };
        if is_edited
            && board.outdated.is_none()
            && let Err(error) = board.project()
        {
            tracing::warn!(%error, "the state file could not be written anew");
        }
        if has_lock {
            board.lock.release();
        }
        Ok(board)
    }

    /// Applies what others have appended.
    pub fn catch_up(&mut self) -> Result<CaughtUp, BoardError> {
        catch_up(&self.journal, &mut self.state, &mut self.outdated)
    }

    /// Whether this process may still write.
    pub fn check_writable(&self) -> Result<(), BoardError> {
        match &self.outdated {
            Some(message) => Err(BoardError::Outdated(message.clone())),
            None => Ok(()),
        }
    }

    /// Refuses to go on under a name of the state file that is no longer the board's.
    pub fn check_name(&self) -> Result<(), BoardError> {
        naming::check(&self.dir, &self.lock)
    }

    /// See [`SqliteJournal::begin_append`]. Catching up or appending will meet any other error, too, and report it
    /// better.
    pub fn begin_append(&self) -> Result<(), BoardError> {
        match self.journal.begin_append() {
            Err(error @ JournalError::Busy) => return Err(BoardError::NotWritten(error)),
            Err(error) => tracing::debug!(%error, "the transaction of an append could not be opened"),
            Ok(()) => {}
        }
        Ok(())
    }

    /// See [`SqliteJournal::end_append`].
    pub fn end_append(&self) {
        self.journal.end_append();
    }

    /// Appends the events that were applied after `expected` to the journal. On an error the caller rolls the state
    /// back.
    pub fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        rows: &Rows,
    ) -> Result<(), BoardError> {
        let mut appended = self.journal.append_with(expected, batch, events, rows);
        if matches!(appended, Err(AppendError::Failed(JournalError::Superseded))) && self.lock.verify().is_ok() {
            self.journal.reinstate().map_err(BoardError::NotWritten)?;
            appended = self.journal.append_with(expected, batch, events, rows);
        }
        match appended {
            Ok(()) => Ok(()),
            Err(AppendError::Unknown(error)) => self.look_for(batch, error),
            Err(error) => Err(append_error(error)),
        }
    }

    /// Looks for the batch after COMMIT failed, which does not mean that nothing was written.
    fn look_for(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError> {
        let found = self.journal.reopened(&self.dir).and_then(|reopened| {
            if let Some(journal) = reopened {
                self.journal = journal;
            }
            // Otherwise a later crash could undo, or bring back, what is answered now. After a failed write there is
            // nothing to bring back, and a full disk has no space for it.
            if !error.is_of_write() {
                self.journal.settle_for_good(self.journal.head()?)?;
            }
            self.journal.holds_batch(batch)
        });
        match found {
            Ok(true) => Ok(()),
            Ok(false) => Err(BoardError::NotWritten(error)),
            Err(_) => Err(BoardError::Unknown(error)),
        }
    }

    /// Whether everything in the replica is durable, as far as is known.
    pub fn is_settled(&self) -> bool {
        self.journal.is_settled(self.state.seq())
    }

    /// Makes everything in the replica durable.
    pub fn settle(&self) -> Result<(), BoardError> {
        if !self.is_settled()
            && let Some(shown) = self.shown()
        {
            self.journal.settled(shown);
        }
        self.journal.settle(self.state.seq()).map_err(BoardError::Unknown)
    }

    /// Does this for a read, which goes on if it fails: on a failing disk, what is known is better than nothing.
    pub fn settle_for_reading(&self) {
        if let Err(error) = self.settle() {
            tracing::error!(%error, "a power loss may take back what is read");
        }
    }

    /// Makes the events up to `seq` durable.
    pub fn settle_to(&self, seq: u64) -> Result<(), BoardError> {
        self.journal.settle(seq).map_err(BoardError::Unknown)
    }

    /// See [`SqliteJournal::hasten`].
    pub fn hasten(&self) {
        if !self.is_settled() {
            self.journal.hasten();
        }
    }

    /// See [`SqliteJournal::log`].
    pub fn log(&self) -> Option<Arc<File>> {
        self.journal.log()
    }

    /// See [`SqliteJournal::settled`].
    pub fn settled(&self, seq: u64) {
        self.journal.settled(seq);
    }

    /// See [`SqliteJournal::synced`].
    pub fn synced(&self, seq: u64, synced: io::Result<()>) -> Result<(), BoardError> {
        self.journal.synced(seq, synced).map_err(BoardError::Unknown)
    }

    /// The seq of the newest event that is known to be durable.
    pub fn settled_seq(&self) -> u64 {
        self.journal.durable().min(self.state.seq())
    }

    /// The seq that the state file shows, if a projection was the last to put a file there; that event is durable then.
    pub fn shown(&self) -> Option<u64> {
        let found = self.found()?;
        self.projection.shows(&found).or_else(|| self.lock.left().shows(&found))
    }

    /// Whether the state file shows, or was about to show, what this process does not know yet.
    pub fn is_overtaken(&self, left: &Left) -> bool {
        left.seq > self.state.seq()
    }

    /// Brings the state file to the head, if it is behind.
    pub fn project(&mut self) -> io::Result<()> {
        // No power loss may leave the state file ahead of the journal.
        self.settle().map_err(io::Error::other)?;
        let (board_id, seq) = (&self.state.board().board_id, self.state.seq());
        match statefile::seq_of(&self.dir) {
            Ok(Some(shown)) if shown.board_id == *board_id && shown.seq == seq && !edits::is_strange(self) => Ok(()),
            _ => edits::write(&mut self.projection, &mut self.state, &self.lock),
        }
    }

    /// Writes a file that shows the present state, unless the one in place does. The caller holds the state file's lock
    /// until the file is placed or given up, and has read `left` under it.
    pub fn prepare_show(&mut self, left: Left) -> io::Result<Option<Unplaced>> {
        self.check_name().map_err(io::Error::other)?;
        let found = FileIdentity::of(&self.dir)?;
        match found.and_then(|found| self.projection.shows(&found).or_else(|| left.shows(&found))) {
            Some(shown) if shown >= self.state.seq() => Ok(None),
            _ => self.projection.prepare(&mut self.state, found, left).map(Some),
        }
    }

    /// Checks that the files that were verified when the call began are still there. If the state file is the one that
    /// was left, it is enough that neither lock nor log was deleted; the next call notices a file that was only
    /// renamed.
    pub fn verify_again(&self, found: Option<FileIdentity>, left: &Left) -> Result<(), DirectoryError> {
        let is_left = found.is_some_and(|found| left.files.contains(&found));
        let is_deleted = || self.lock.is_deleted() || self.log().is_some_and(|log| private::is_deleted(&log));
        if is_left && !is_deleted() { Ok(()) } else { self.lock.verify() }
    }

    /// The identity of the file in the state file's place, if there is one.
    pub fn found(&self) -> Option<FileIdentity> {
        FileIdentity::of(&self.dir).ok().flatten()
    }

    /// Replaces the state file by the prepared one, whose events are durable. `found` is what was in place a moment
    /// ago; what there is to say about that is returned as a warning.
    pub fn show(&mut self, prepared: Unplaced, found: Option<FileIdentity>) -> (Option<String>, io::Result<()>) {
        let warning = found.and_then(|found| self.keep_put_back(found, prepared.left()));
        let placed = self.projection.place(prepared, found, |left| self.lock.leave(left));
        (warning, placed.map(edits::say_kept))
    }

    pub fn give_up(&mut self, prepared: Unplaced) {
        self.projection.give_up(prepared);
    }

    /// If the state file is an old one that somebody has put there, keeps it and returns a warning that says what to do
    /// with it.
    fn keep_put_back(&self, found: FileIdentity, left: &Left) -> Option<String> {
        if left.has(&found) {
            return None;
        }
        let happened = |seq: u64| Some(self.journal.read_from(seq - 1, 1).ok()?.first()?.at);
        let board_id = &self.state.board().board_id;
        match statefile::keep_put_back(&self.dir, board_id, left.seq, happened) {
            Ok(put_back) => put_back.map(|old| {
                let (seq, kept) = (old.seq, old.kept.file_name().unwrap_or_default().display().to_string());
                format!(
                    "an old state file, of event {seq}, had been put back; it is kept as {kept}, and {} shows the \
                     present again; to go back to event {seq}: `callboard snapshot restore --seq {seq}` or \
                     restore_snapshot {{\"seq\": {seq}}}",
                    self.dir.name()
                )
            }),
            Err(error) => {
                tracing::warn!(%error, "whether the state file is an old one could not be seen");
                None
            }
        }
    }

    pub fn dir(&self) -> &Home {
        &self.dir
    }

    /// A view of this board's archive, which can be used without the writer and the board's locks.
    pub fn archive(&self, now: Timestamp) -> BoardArchive {
        self.settle_for_reading();
        BoardArchive {
            dir: self.dir.to_path_buf(),
            present: self.state.clone(),
            reader: Reader::Program,
            now,
            retention: archive::retention(self.config.policy()),
            journal_bytes: self.journal_bytes(),
        }
    }

    /// Size of the journal in bytes, see [`SqliteJournal::bytes`]; 0 when it cannot be told.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.bytes().unwrap_or_default()
    }

    /// See [`SqliteJournal::passed`].
    pub fn journal_passed(&self) -> u64 {
        self.journal.passed()
    }

    /// The seq from which on there is a block of old events to archive.
    pub fn archives_at(&self) -> Result<u64, JournalError> {
        self.journal.archives_at()
    }

    /// Size of the state file as this process last wrote it, in bytes.
    pub fn state_bytes(&self) -> u64 {
        self.projection.bytes()
    }

    /// The state and the journal at once, for an operation that changes the one and may read the other.
    pub fn split(&mut self) -> (&mut State, JournalHistory<'_>, &Policy) {
        let history = JournalHistory { journal: &self.journal, dir: &self.dir, head: self.state.seq() };
        (&mut self.state, history, self.config.policy())
    }
}

/// What loading yields: the state at the end of the journal, and what it was read from.
struct Loaded {
    state: State,
    journal: SqliteJournal,
    config: config::Followed,
    outdated: Option<String>,
    projection: Projection,
}

impl Loaded {
    fn read(dir: &Path) -> Result<Self, BoardError> {
        Self::read_on(dir, |journal, projection| starting_state(dir, journal, projection))
    }

    /// Replays the journal from its start, whatever the state file is like.
    fn without_file(dir: &Path) -> Result<Self, BoardError> {
        Self::read_on(dir, |_, _| Ok(State::new()))
    }

    fn read_on(
        dir: &Path,
        start: impl FnOnce(&SqliteJournal, &mut Projection) -> Result<State, BoardError>,
    ) -> Result<Self, BoardError> {
        let config = config::Followed::load(dir)?;
        directory::inspect_journal(dir)?;
        let journal = SqliteJournal::open(dir)?;
        let mut outdated = None;
        let mut projection = Projection::new(dir);
        let mut state = start(&journal, &mut projection)?;
        if let Some(before) = state.seq().checked_sub(1).filter(|before| *before >= journal.base()) {
            // Nothing else reads the event that the state file ends with, and what comes next is chained to it.
            match journal.read_from(before, 1) {
                Err(error @ JournalError::UnknownKind { .. }) => outdated = Some(error.to_string()),
                read => {
                    let last = read?.pop();
                    // After a loss of events, another history may have the same numbers.
                    if last.is_some_and(|last| last.at != state.board().last_activity) {
                        return Err(BoardError::StateFileUnsound(OTHER_HISTORY.to_owned()));
                    }
                }
            }
        }
        let keyed = match journal.keyed(KEYS_REMEMBERED) {
            Err(error @ JournalError::UnknownKind { .. }) => {
                outdated = Some(error.to_string());
                Vec::new()
            }
            keyed => keyed?,
        };
        let known = state.seq();
        for recorded in keyed.iter().filter(|recorded| recorded.seq <= known) {
            state.remember(recorded);
        }
        catch_up(&journal, &mut state, &mut outdated)?;
        Ok(Self { state, journal, config, outdated, projection })
    }
}

/// Applies the events that the journal has after `state`.
fn catch_up(journal: &SqliteJournal, state: &mut State, outdated: &mut Option<String>) -> Result<CaughtUp, BoardError> {
    let (mut caught_up, mut at_once) = (CaughtUp::default(), READ_AT_ONCE);
    loop {
        let events = match journal.read_from(state.seq(), at_once) {
            Ok(events) => events,
            Err(JournalError::UnknownKind { seq, kind, v }) => {
                *outdated = Some(JournalError::UnknownKind { seq, kind, v }.to_string());
                // The events before it can still be read.
                at_once = usize::try_from(seq - 1 - state.seq().max(journal.base())).unwrap_or(READ_AT_ONCE);
                if at_once == 0 {
                    return Ok(caught_up);
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        caught_up.stepped += stepped_in(&events);
        for recorded in &events {
            state.apply(recorded)?;
            state.settle();
        }
        let last = events.len() < at_once;
        caught_up.newest = events;
        if last {
            return Ok(caught_up);
        }
    }
}

pub struct JournalHistory<'a> {
    pub journal: &'a SqliteJournal,
    pub dir: &'a Home,
    /// The newest event that may be read: what follows may be of a newer version.
    pub head: u64,
}

impl History for JournalHistory<'_> {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let known = self.head.saturating_sub(seq.max(self.journal.base()));
        let limit = limit.min(usize::try_from(known).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(());
        }
        self.journal.each_from(seq, limit, take).map_err(|error| error.to_string())
    }

    fn rejected_edits(&self, limit: usize) -> Vec<String> {
        statefile::displaced::all_rejected(self.dir).into_iter().take(limit).collect()
    }
}

/// The empty history of a board that does not exist yet.
pub struct NoHistory;

impl History for NoHistory {
    fn each_after(&self, _: u64, _: usize, _: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), String> {
        Ok(())
    }
}

/// Whether there is a board, or something that one can be made from.
pub fn is_begun(dir: &Path) -> bool {
    Board::exists(dir)
        || Home::of(dir).file().exists()
        || dir.join(statefile::FILE_NAME).exists()
        || !recovery::evidence(dir).is_empty()
}

/// The state for reads while there is no journal: what the state file shows or, if that is not sound, the newest sound
/// snapshot or spare, and then a text that says so. The first write will import it.
pub fn before_first_write(dir: &Path) -> Result<(State, Option<String>), BoardError> {
    if std::fs::symlink_metadata(dir).is_err() {
        return Ok((State::new(), None));
    }
    directory::inspect(dir)?;
    match statefile::load(dir)? {
        Some(Found::Foreign { document, .. } | Found::Sound(document)) => Ok((State::from_document(*document), None)),
        None if recovery::evidence(dir).is_empty() => Ok((State::new(), None)),
        found @ (Some(Found::Unsound { .. }) | None) => {
            let of_file = match found {
                Some(Found::Unsound { reason }) => format!("the state file is not sound: {reason}"),
                _ => "no state file".to_owned(),
            };
            let newest = recovery::earlier(dir).into_iter().max_by_key(|(document, _)| document.board.seq);
            let unsound = || nothing_sound(dir, format!("no journal, no sound snapshot, and {of_file}"));
            let (document, name) = newest.ok_or_else(unsound)?;
            let lost = format!(
                "there is no journal, and {of_file}: this is the state after event {} from {name}, and what came after \
                 it is lost; `callboard doctor` says more, and the next writing call goes on from here",
                document.board.seq
            );
            Ok((State::from_document(document), Some(lost)))
        }
    }
}

/// Completes the remaking of a journal in which a process died, and returns whether there was one to complete. The
/// state file was written before it began. A remade copy that is damaged, too, does not count.
fn is_remade(dir: &Path) -> Result<bool, BoardError> {
    let Ok(Some(shown)) = statefile::seq_of(dir) else { return Ok(false) };
    match SqliteJournal::finish_remake(dir, &shown.board_id, shown.seq) {
        Err(error) if error.is_damage() => Ok(false),
        finished => Ok(finished?),
    }
}

fn nothing_sound(dir: &Path, reason: impl Into<String>) -> BoardError {
    let mut reason = reason.into();
    if let Some(aside) = recovery::evidence(dir).into_iter().rfind(|name| name.starts_with(recovery::REPLACED)) {
        reason
            .push_str(&format!("; a restore has moved one to {aside}: to go on from that, move what is in there back"));
    }
    BoardError::NothingSound { path: Home::of(dir).file(), reason }
}

/// Waits for the board's locks as long as a call would.
pub fn acquire(lock: &BoardLock) -> Result<(), BoardError> {
    let failed = |source| BoardError::Io { action: "cannot take the board's lock".to_owned(), source };
    let acquired = lock.acquire_within(LOCK_PATIENCE, std::process::id()).map_err(failed)?;
    acquired.map_err(|holder| BoardError::Locked { holder, seconds: LOCK_PATIENCE.as_secs() })
}

/// Waits for living processes to rebuild a board whose journal or log is missing: they know more than the other files.
fn let_the_living_rebuild(dir: &Path, author: Option<&Author>) {
    let start = Instant::now();
    while directory::is_incomplete(dir)
        && directory::is_anyone_present(dir, author.map(|author| &author.participant))
        && start.elapsed() < PATIENCE_WITH_THE_LIVING
    {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The state on which the journal's tail is replayed: the state file's if that is sound and this board's, the empty one
/// if there is no file.
fn starting_state(dir: &Path, journal: &SqliteJournal, projection: &mut Projection) -> Result<State, BoardError> {
    let board_id = journal.board_id()?;
    match found_by(dir, || projection.load())? {
        None => Ok(State::new()),
        Some(Found::Sound(document)) if Some(&document.board.board_id) == board_id.as_ref() => {
            let (file, head) = (document.board.seq, journal.head()?);
            if file > head {
                return Err(BoardError::JournalBehind { path: Home::of(dir).file(), file, head });
            }
            Ok(State::from_document(*document))
        }
        Some(Found::Unsound { reason }) => Err(BoardError::StateFileUnsound(reason)),
        Some(_) => Err(BoardError::StateFileUnsound("it is the state of another board".to_owned())),
    }
}

/// Loads the state file where there was a board before: anything but a regular file counts as unsound.
pub fn found(dir: &Path) -> Result<Option<Found>, LoadError> {
    found_by(dir, || statefile::load(dir))
}

fn found_by(dir: &Path, load: impl FnOnce() -> Result<Option<Found>, LoadError>) -> Result<Option<Found>, LoadError> {
    if statefile::displaced::is_irregular(&Home::of(dir).file()) {
        return Ok(Some(Found::Unsound { reason: "it is not a regular file".to_owned() }));
    }
    load()
}

/// Notes the present state file in the lock as left by a projection, so that it is not taken for somebody's edit.
fn leave_what_is_there(lock: &BoardLock, dir: &Path) {
    let seq = statefile::seq_of(dir).ok().flatten().map_or(0, |head| head.seq);
    let left = FileIdentity::of(dir).and_then(|file| lock.leave(Left::new(file.into_iter().collect(), seq)));
    if let Err(error) = left {
        tracing::debug!(%error, "the state file may be taken for an edit");
    }
}

/// The sum of the clock steps in these events, in milliseconds.
pub fn stepped_in(events: &[Recorded]) -> i64 {
    let steps = events.iter().filter_map(|recorded| match recorded.event {
        Event::ClockStepped { gap_millis, .. } => Some(gap_millis),
        _ => None,
    });
    steps.sum()
}

/// Keeps a copy of the imported file beside the board, once, however often the import is tried.
fn keep_copy(dir: &Path) -> io::Result<()> {
    let home = Home::of(dir);
    let copy_of = |number: u64| dir.join(format!("{}.imported-{number}", home.name()));
    let original = fs_err::read(home.file())?;
    let mut options = fs_err::OpenOptions::new();
    let options = fs_err::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
    for number in 1.. {
        match options.open(copy_of(number)) {
            Ok(mut copy) => {
                return copy.write_all(&original).inspect_err(|_| drop(fs_err::remove_file(copy_of(number))));
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // A start that did not finish has left it.
            Err(_) if is_copy(&copy_of(number), &original) => return Ok(()),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Whether `path` is a copy of `original`. It is read only if it is a regular file of the same length.
fn is_copy(path: &Path, original: &[u8]) -> bool {
    let is_as_long =
        fs_err::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == original.len() as u64);
    is_as_long && fs_err::read(path).is_ok_and(|copy| copy == original)
}

/// The event that imports `document`. Presence does not carry over: the processes are not on this board.
fn imported(source: &str, mut document: Document, board_id: &str) -> Event {
    document.board.board_id = board_id.to_owned();
    document.participants.clear();
    for agent in document.agents.values_mut() {
        agent.present_through.clear();
    }
    Event::Imported { source: source.to_owned(), document: Box::new(document) }
}

fn append_error(error: AppendError) -> BoardError {
    match error {
        AppendError::Conflict { head } => {
            let detail = format!("another process appended event {head} without the board's lock");
            BoardError::Io { action: "cannot append to the journal".to_owned(), source: io::Error::other(detail) }
        }
        AppendError::Failed(error) => BoardError::NotWritten(error),
        AppendError::Unknown(error) => BoardError::Unknown(error),
    }
}

pub fn io_error(action: &str, dir: &Path, source: io::Error) -> BoardError {
    BoardError::Io { action: format!("{action} {}", dir.display()), source }
}
