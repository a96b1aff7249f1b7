//! The board on disk as one process holds it: lock, journal, state file; how it is made, loaded and caught up with.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::archive::{self, BoardArchive};
use super::directory::{self, BoardLock, DirectoryError, JOURNAL};
use super::edits;
use crate::config::{self, Config, ConfigError};
use crate::journal::sqlite::SqliteJournal;
use crate::journal::{AppendError, BatchId, Journal, JournalError};
use crate::ops::History;
use crate::state::document::Document;
use crate::state::event::{Event, Recorded};
use crate::state::id::ParticipantId;
use crate::state::limit::KEYS_REMEMBERED;
use crate::state::time::Timestamp;
use crate::state::{ApplyError, Envelope, State};
use crate::statefile::{self, Found, LoadError, Projection};

/// Why the board cannot be used, and what to do about it.
#[derive(Debug, Error)]
pub enum BoardError {
    #[error("no board in {}; make one with `callboard init GOAL`, or with the first writing call", dir.display())]
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
         keep both files and run `callboard doctor`", path.display()
    )]
    JournalBehind { path: PathBuf, file: u64, head: u64 },
    #[error(
        "{} is not readable ({reason}) and there is no journal to rebuild it from; restore one of the two, or move the \
         file away to start anew", path.display()
    )]
    NothingSound { path: PathBuf, reason: String },
    #[error("event {seq} is not in the past: the first is 1 and the newest {head}")]
    NotInThePast { seq: u64, head: u64 },
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
            Self::Directory(DirectoryError::Replaced { .. }) => "board_replaced",
            Self::Directory(_) => "bad_directory",
            Self::Config(_) => "bad_config",
            Self::Journal(_) | Self::Inconsistent(_) => "journal_unusable",
            Self::StateFile(_) | Self::NothingSound { .. } => "state_file_unusable",
            Self::JournalBehind { .. } => "journal_behind",
            Self::NotInThePast { .. } => "not_in_the_past",
            Self::NotWritten(_) => "not_written",
            Self::Unknown(_) => "unknown_outcome",
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

pub struct Board {
    pub state: State,
    pub config: Config,
    pub lock: BoardLock,
    dir: PathBuf,
    journal: SqliteJournal,
    projection: Projection,
    /// The journal has events that this build does not know.
    outdated: Option<String>,
}

/// What catching up with the journal has brought.
#[derive(Default)]
pub struct CaughtUp {
    /// The last events, as many as are read in one go.
    pub newest: Vec<Recorded>,
    /// By how many milliseconds others saw the clock step.
    pub stepped: i64,
}

/// Events read from the journal in one go.
const READ_AT_ONCE: usize = 4_096;

impl Board {
    pub fn exists(dir: &Path) -> bool {
        dir.join(JOURNAL).exists()
    }

    /// Loads the board that is there.
    pub fn open(dir: &Path) -> Result<Self, BoardError> {
        directory::inspect(dir)?;
        let mut lock = BoardLock::open(dir)?;
        lock.settle_journal()?;
        let board = Self::load(dir, lock)?;
        // SQLite has opened the journal by its path: it must have been the file that was looked at.
        board.lock.verify()?;
        Ok(board)
    }

    /// Makes the board, unless somebody else has made it meanwhile.
    pub fn create(dir: &Path, participant: &ParticipantId, board_id: &str, now: Timestamp) -> Result<Self, BoardError> {
        directory::prepare(dir)?;
        let lock = BoardLock::open(dir)?;
        lock.handle().and_then(|file| file.lock()).map_err(|source| io_error("cannot lock", dir, source))?;
        let made = match Self::exists(dir) {
            true => Ok(()),
            false => Self::begin(dir, participant, board_id, now),
        };
        lock.release();
        made?;
        Self::open(dir)
    }

    /// The journal and its first event: a new board, or the state file that lies there.
    fn begin(dir: &Path, participant: &ParticipantId, board_id: &str, now: Timestamp) -> Result<(), BoardError> {
        let first = match statefile::load(dir)? {
            None => Event::BoardCreated { board_id: board_id.to_owned() },
            Some(Found::Foreign { document, notes }) => {
                notes.iter().for_each(|note| tracing::warn!("state file: {note}"));
                imported("option-b", *document, board_id)
            }
            Some(Found::Sound(document)) => imported("callboard", *document, board_id),
            Some(Found::Unsound { reason }) => {
                return Err(BoardError::NothingSound { path: dir.join(statefile::FILE_NAME), reason });
            }
        };
        let envelope = Envelope { at: now, participant: participant.clone(), actor: None, idempotency: None };
        let mut state = State::new();
        let first = state.record(first, &envelope)?;
        if matches!(first.event, Event::Imported { .. }) {
            keep_copy(dir).map_err(|source| io_error("cannot copy the state file in", dir, source))?;
        }
        SqliteJournal::create_with(dir, board_id, &BatchId::new(format!("{participant}/0")), &[first])?;
        // What was imported is another board's file until it is replaced.
        Projection::new(dir).write(&state).map_err(|source| io_error("cannot write the state file in", dir, source))
    }

    fn load(dir: &Path, lock: BoardLock) -> Result<Self, BoardError> {
        let config = config::load(dir)?;
        let journal = SqliteJournal::open(dir)?;
        let (mut rebuilt, mut outdated) = (false, None);
        let state = match starting_state(dir, &journal)? {
            Ok(state) => state,
            Err(_) => {
                edits::let_settle(dir, &lock);
                // Under the lock, and looked at again: another process may have rebuilt it meanwhile.
                lock.handle().and_then(|file| file.lock()).map_err(|source| io_error("cannot lock", dir, source))?;
                rebuilt = true;
                starting_state(dir, &journal)?.or_else(|reason| match edits::is_edit(dir, &lock, &journal) {
                    true => Ok(State::new()),
                    false => set_aside(dir, &reason),
                })?
            }
        };
        if let Some(before) = state.seq().checked_sub(1) {
            // Nothing else reads the event that the state file ends with, and what comes next is chained to it.
            match journal.read_from(before, 1) {
                Err(error @ JournalError::UnknownKind { .. }) => outdated = Some(error.to_string()),
                read => drop(read?),
            }
        }
        let projection = Projection::new(dir);
        let mut board = Self { state, config, lock, dir: dir.to_owned(), journal, projection, outdated };
        for recorded in board.journal.keyed(KEYS_REMEMBERED)? {
            if recorded.seq <= board.state.seq() {
                board.state.remember(&recorded);
            }
        }
        board.catch_up()?;
        if rebuilt {
            if board.outdated.is_none()
                && let Err(error) = board.project()
            {
                tracing::warn!(%error, "the state file could not be written anew");
            }
            board.lock.release();
        }
        Ok(board)
    }

    /// Applies what others have appended.
    pub fn catch_up(&mut self) -> Result<CaughtUp, BoardError> {
        let (mut caught_up, mut at_once) = (CaughtUp::default(), READ_AT_ONCE);
        loop {
            let events = match self.journal.read_from(self.state.seq(), at_once) {
                Ok(events) => events,
                Err(JournalError::UnknownKind { seq, kind, v }) => {
                    self.outdated = Some(JournalError::UnknownKind { seq, kind, v }.to_string());
                    // What stands before it can still be read.
                    at_once = usize::try_from(seq - 1 - self.state.seq()).unwrap_or(READ_AT_ONCE);
                    if at_once == 0 {
                        return Ok(caught_up);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            caught_up.stepped += stepped_in(&events);
            for recorded in &events {
                self.state.apply(recorded)?;
                self.state.settle();
            }
            let last = events.len() < at_once;
            caught_up.newest = events;
            if last {
                return Ok(caught_up);
            }
        }
    }

    /// Whether this process may still write.
    pub fn check_writable(&self) -> Result<(), BoardError> {
        match &self.outdated {
            Some(message) => Err(BoardError::Outdated(message.clone())),
            None => Ok(()),
        }
    }

    /// Makes what was applied since `expected` durable. On an error it is for the caller to take it back.
    pub fn append(&mut self, expected: u64, batch: &BatchId, events: &[Recorded]) -> Result<(), BoardError> {
        match self.journal.append(expected, batch, events) {
            Ok(()) => Ok(()),
            Err(AppendError::Unknown(error)) => self.look_for(batch, error),
            Err(error) => Err(append_error(error)),
        }
    }

    /// COMMIT failed, which does not say that nothing was written: the journal itself knows.
    fn look_for(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError> {
        let found = SqliteJournal::open(&self.dir).and_then(|journal| {
            self.journal = journal;
            // Else a later crash could take back or bring back what is answered now. A full disk has no space for it.
            if !error.is_of_write() {
                self.journal.settle_for_good()?;
            }
            self.journal.holds_batch(batch)
        });
        match found {
            Ok(true) => Ok(()),
            Ok(false) => Err(BoardError::NotWritten(error)),
            Err(_) => Err(BoardError::Unknown(error)),
        }
    }

    /// What is answered from now on, nothing takes back.
    pub fn settle(&self) -> Result<(), BoardError> {
        self.journal.settle().map_err(BoardError::NotWritten)
    }

    /// Brings the state file to the head, if it is behind.
    pub fn project(&mut self) -> io::Result<()> {
        // A file ahead of the journal is what no power loss may leave.
        self.journal.settle().map_err(io::Error::other)?;
        let (board_id, seq) = (&self.state.board().board_id, self.state.seq());
        match statefile::seq_of(&self.dir) {
            Ok(Some(shown)) if shown.board_id == *board_id && shown.seq == seq && !edits::is_strange(self) => Ok(()),
            _ => edits::write(&mut self.projection, &self.state, &self.lock, &self.dir),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// When the state file is an old one that somebody has put there: keeps it, and says what to do with it.
    pub fn keep_put_back(&mut self, head: u64) -> Option<String> {
        let happened = |seq: u64| Some(self.journal.read_from(seq - 1, 1).ok()?.first()?.at);
        let board_id = &self.state.board().board_id;
        match statefile::keep_put_back(&self.dir, board_id, head, happened) {
            Ok(put_back) => put_back.map(|old| {
                let (seq, kept) = (old.seq, old.kept.file_name().unwrap_or_default().display().to_string());
                format!(
                    "somebody had put an old state file back, of event {seq}; it is kept as {kept}, and mcp-state.json \
                     shows the present again; to go back to event {seq}: `callboard snapshot restore --seq {seq}` or \
                     restore_snapshot {{\"seq\": {seq}}}"
                )
            }),
            Err(error) => {
                tracing::warn!(%error, "whether the state file is an old one could not be seen");
                None
            }
        }
    }

    /// What was fetched from, or is to be added to, the archive of this board.
    pub fn archive(&self, now: Timestamp) -> BoardArchive {
        BoardArchive {
            dir: self.dir.clone(),
            present: self.state.clone(),
            now,
            retention: archive::retention(&self.config.policy),
            journal_bytes: self.journal_bytes(),
        }
    }

    /// 0 when it cannot be told.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.bytes().unwrap_or_default()
    }

    /// Of the state file as this process wrote it last.
    pub fn state_bytes(&self) -> u64 {
        self.projection.bytes()
    }

    /// The state and the journal at once, for an operation that changes the one and may read the other.
    pub fn split(&mut self) -> (&mut State, JournalHistory<'_>, &Config) {
        (&mut self.state, JournalHistory(&self.journal, &self.dir), &self.config)
    }
}

pub struct JournalHistory<'a>(&'a SqliteJournal, &'a Path);

impl History for JournalHistory<'_> {
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>, String> {
        self.0.read_from(seq, limit).map_err(|error| error.to_string())
    }

    fn rejected_edits(&self, limit: usize) -> Vec<String> {
        statefile::displaced::all_rejected(self.1).into_iter().take(limit).collect()
    }
}

/// No history, where there is no board yet.
pub struct NoHistory;

impl History for NoHistory {
    fn events_after(&self, _: u64, _: usize) -> Result<Vec<Recorded>, String> {
        Ok(Vec::new())
    }
}

/// What a state file without a journal says, for whoever only looks; the first write will import it.
pub fn before_first_write(dir: &Path) -> Result<State, BoardError> {
    if std::fs::symlink_metadata(dir).is_err() {
        return Ok(State::new());
    }
    directory::inspect(dir)?;
    match statefile::load(dir)? {
        Some(Found::Foreign { document, .. } | Found::Sound(document)) => Ok(State::from_document(*document)),
        Some(Found::Unsound { reason }) => {
            Err(BoardError::NothingSound { path: dir.join(statefile::FILE_NAME), reason })
        }
        None => Ok(State::new()),
    }
}

/// The state to replay the journal's tail on: the state file's if it is sound and this board's, the empty one if there is
/// no file, else why the file cannot be used.
fn starting_state(dir: &Path, journal: &SqliteJournal) -> Result<Result<State, String>, BoardError> {
    let board_id = journal.board_id()?;
    if statefile::displaced::is_irregular(&dir.join(statefile::FILE_NAME)) {
        return Ok(Err("it is not a regular file".to_owned()));
    }
    match statefile::load(dir)? {
        None => Ok(Ok(State::new())),
        Some(Found::Sound(document)) if Some(&document.board.board_id) == board_id.as_ref() => {
            let (file, head) = (document.board.seq, journal.head()?);
            if file > head {
                return Err(BoardError::JournalBehind { path: dir.join(statefile::FILE_NAME), file, head });
            }
            Ok(Ok(State::from_document(*document)))
        }
        Some(Found::Unsound { reason }) => Ok(Err(reason)),
        Some(_) => Ok(Err("it is the state of another board".to_owned())),
    }
}

/// With the board's lock: the damaged file is kept, and the journal is replayed from its start.
fn set_aside(dir: &Path, reason: &str) -> Result<State, BoardError> {
    let kept = statefile::set_aside(dir, "quarantined");
    let kept = kept.map_err(|source| io_error("cannot move the damaged state file aside in", dir, source))?;
    tracing::warn!(kept = %kept.display(), %reason, "the state file was not used; rebuilt from the journal");
    Ok(State::new())
}

/// By how many milliseconds the clock stepped in these events.
pub fn stepped_in(events: &[Recorded]) -> i64 {
    let steps = events.iter().filter_map(|recorded| match recorded.event {
        Event::ClockStepped { gap_millis, .. } => Some(gap_millis),
        _ => None,
    });
    steps.sum()
}

/// What was imported stays beside the board as it was.
fn keep_copy(dir: &Path) -> io::Result<()> {
    let mut original = fs_err::File::open(dir.join(statefile::FILE_NAME))?;
    let mut options = fs_err::OpenOptions::new();
    let options = fs_err::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
    let copy = (1..).map(|number| options.open(dir.join(format!("{}.imported-{number}", statefile::FILE_NAME))));
    let taken = |copy: &io::Result<_>| copy.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists);
    for mut copy in copy.skip_while(taken).take(1) {
        io::copy(&mut original, copy.as_mut().map_err(|error| io::Error::from(error.kind()))?)?;
    }
    Ok(())
}

/// Presence does not carry over: the processes are not ours.
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

fn io_error(action: &str, dir: &Path, source: io::Error) -> BoardError {
    BoardError::Io { action: format!("{action} {}", dir.display()), source }
}
