//! How a board is made, found and loaded.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::board::{Board, catch_up};
use super::directory::{self, DirectoryError};
use super::error::{BoardError, io_error};
use super::lock::{BoardLock, acquire};
use super::recovery::{self, Author, found_by};
use super::{edits, naming, presence, room};
use crate::config;
use crate::journal::sqlite::SqliteJournal;
use crate::journal::{BatchId, JournalError};
use crate::memory;
use crate::state::document::Document;
use crate::state::event::Event;
use crate::state::id::ParticipantId;
use crate::state::limit::KEYS_REMEMBERED;
use crate::state::{Envelope, State};
use crate::statefile::{self, FileIdentity, Found, Home, Left, Projection};

/// How long a start leaves it to living processes to rebuild the board. Those look at it more often
/// than that.
const PATIENCE_WITH_THE_LIVING: Duration = Duration::from_secs(3);

const OTHER_HISTORY: &str = "it is of another history";

impl Board {
    /// Loads the board that is there. Without an `author` nothing is repaired.
    pub(super) fn open(dir: &Path, author: Option<&Author>) -> Result<Self, BoardError> {
        directory::inspect(dir)?;
        let lock = BoardLock::open(dir)?;
        let home = naming::settle(dir, &lock, author)?;
        let mut board = Self::load(home, lock, author)?;
        if author.is_some()
            && let Some(taken) = directory::make_private(dir)
        {
            board.report(taken);
        }
        memory::give_back();
        // SQLite has opened the journal by its path: it must have been the file that was inspected.
        match board.lock.verify() {
            // The files were deleted since; the first look will put the board back.
            Err(DirectoryError::Replaced { .. }) | Ok(()) => Ok(board),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the board, whose state file gets the `name`, unless another process has made it
    /// meanwhile.
    pub(super) fn create(
        dir: &Path,
        author: &Author,
        board_id: &str,
        name: Option<&str>,
    ) -> Result<Self, BoardError> {
        directory::prepare(dir)?;
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

    /// Begins the board under its locks. One that another process has made meanwhile must have the
    /// `name`.
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

    /// Makes the journal with its first event: a new board, the import of a state file that is
    /// there, or a recovery from what is left of a board, of which the report is returned.
    fn begin(dir: &Path, author: &Author, board_id: &str) -> Result<Option<String>, BoardError> {
        let first = match statefile::load(dir)? {
            None if recovery::evidence(dir).is_empty() => {
                Event::BoardCreated { board_id: board_id.to_owned(), numbered: true }
            }
            Some(Found::Foreign { document, notes }) => {
                keep_copy(dir)
                    .map_err(|source| io_error("cannot copy the state file in", dir, source))?;
                notes.iter().for_each(|note| tracing::warn!("state file: {note}"));
                imported("typescript-broker", *document, board_id)
            }
            None | Some(Found::Sound(_) | Found::Unsound { .. }) => {
                let plan = recovery::plan(dir)?;
                return if plan.finds_nothing() {
                    Err(nothing_sound(dir, plan.faults().join("; ")))
                } else {
                    plan.carry_out(author).map(Some)
                };
            }
        };
        let participant = &author.participant;
        let envelope = Envelope {
            at: author.now,
            participant: participant.clone(),
            actor: None,
            idempotency: None,
        };
        let mut state = State::new();
        let first = state.record(first, &envelope)?;
        SqliteJournal::create_with(
            dir,
            board_id,
            &BatchId::new(format!("{participant}/0")),
            &[first],
        )?;
        // Until it is replaced, the imported file is another board's.
        Projection::new(dir)
            .write(&mut state)
            .map(|()| None)
            .map_err(|source| io_error("cannot write the state file in", dir, source))
    }

    /// Loads the board, and repairs it if it is damaged and enough is sound: under the lock and
    /// after a second look, because another process may have done so. A file that somebody has
    /// edited is not damaged: the projection keeps it as an edit.
    fn load(home: Home, mut lock: BoardLock, author: Option<&Author>) -> Result<Self, BoardError> {
        let dir = &home;
        let restored = directory::restored(dir);
        let (mut has_lock, mut is_edited) = (false, false);
        let loaded = match (Loaded::read(dir), author) {
            (Err(BoardError::StateFileUnsound(_)), None) => {
                Loaded::without_file(dir).map(|loaded| (loaded, None))
            }
            (Err(error), Some(author)) if error.is_damage() => {
                edits::let_settle(dir, &lock);
                acquire(&lock)?;
                has_lock = true;
                let again = Loaded::read(dir).map(|loaded| (loaded, None));
                again.or_else(|error| {
                    is_edited = matches!(error, BoardError::StateFileUnsound(_))
                        && SqliteJournal::open(dir)
                            .is_ok_and(|journal| edits::is_edit(dir, &lock, &journal));
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
            unplaced: None,
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
        if let Some(before) = state.seq().checked_sub(1).filter(|before| *before >= journal.base())
        {
            // Nothing else reads the event that the state file ends with, and what comes next is
            // chained to it.
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

/// Whether there is a board, or something that one can be made from.
pub fn is_begun(dir: &Path) -> bool {
    Board::exists(dir)
        || Home::of(dir).file().exists()
        || dir.join(statefile::FILE_NAME).exists()
        || !recovery::evidence(dir).is_empty()
}

/// The state for reads while there is no journal: what the state file shows or, if that is not
/// sound, the newest sound snapshot or spare, and then a text that says so. The first write will
/// import it.
pub(super) fn before_first_write(dir: &Path) -> Result<(State, Option<String>), BoardError> {
    if std::fs::symlink_metadata(dir).is_err() {
        return Ok((State::new(), None));
    }
    directory::inspect(dir)?;
    match statefile::load(dir)? {
        Some(Found::Foreign { document, .. } | Found::Sound(document)) => {
            Ok((State::from_document(*document), None))
        }
        None if recovery::evidence(dir).is_empty() => Ok((State::new(), None)),
        found @ (Some(Found::Unsound { .. }) | None) => {
            let of_file = match found {
                Some(Found::Unsound { reason }) => format!("the state file is not sound: {reason}"),
                _ => "no state file".to_owned(),
            };
            let newest =
                recovery::earlier(dir).into_iter().max_by_key(|(document, _)| document.board.seq);
            let unsound =
                || nothing_sound(dir, format!("no journal, no sound snapshot, and {of_file}"));
            let (document, name) = newest.ok_or_else(unsound)?;
            let lost = format!(
                "there is no journal, and {of_file}: this is the state after event {} from \
                 {name}, and what came after it is lost; `callboard doctor` says more, and the \
                 next writing call goes on from here",
                document.board.seq
            );
            Ok((State::from_document(document), Some(lost)))
        }
    }
}

/// A board that cannot be written where it is, as far as it can be read there.
pub(super) struct AsItIs {
    pub state: State,
    pub journal: Option<SqliteJournal>,
    /// Says so, and why.
    pub report: String,
}

/// Reads what is there; none if the board could be written, so that it should be opened instead.
pub(super) fn as_it_is(dir: &Path) -> Result<Option<AsItIs>, BoardError> {
    let Some(trouble) = room::objection(dir) else { return Ok(None) };
    directory::inspect(dir)?;
    let loaded = Loaded::read(dir).or_else(|error| match error {
        BoardError::StateFileUnsound(_) => Loaded::without_file(dir),
        error => Err(error),
    });
    let (state, journal, unread) = match loaded {
        Ok(Loaded { state, journal, .. }) => (state, Some(journal), String::new()),
        Err(error) => match statefile::load(dir)? {
            Some(Found::Sound(document) | Found::Foreign { document, .. }) => {
                let unread = format!("; its history cannot be read there ({error})");
                (State::from_document(*document), None, unread)
            }
            _ => return Err(error),
        },
    };
    let report = format!("{}: this is the board as of event {}{unread}", trouble.text, state.seq());
    Ok(Some(AsItIs { state, journal, report }))
}

/// Completes the remaking of a journal in which a process died, and returns whether there was one
/// to complete. The state file was written before it began. A remade copy that is damaged, too,
/// does not count.
fn is_remade(dir: &Path) -> Result<bool, BoardError> {
    let Ok(Some(shown)) = statefile::seq_of(dir) else { return Ok(false) };
    match SqliteJournal::finish_remake(dir, &shown.board_id, shown.seq) {
        Err(error) if error.is_damage() => Ok(false),
        finished => Ok(finished?),
    }
}

fn nothing_sound(dir: &Path, reason: impl Into<String>) -> BoardError {
    let mut reason = reason.into();
    if let Some(aside) =
        recovery::evidence(dir).into_iter().rfind(|name| name.starts_with(recovery::REPLACED))
    {
        reason.push_str(&format!(
            "; a restore has moved one to {aside}: to go on from that, move what is in there back"
        ));
    }
    BoardError::NothingSound { path: Home::of(dir).file(), reason }
}

/// Waits for living processes to rebuild a board whose journal or log is missing: they know more
/// than the other files. Comes before the board is opened or made.
pub(super) fn let_the_living_rebuild(dir: &Path, own: &ParticipantId) {
    let start = Instant::now();
    while directory::is_incomplete(dir)
        && presence::may_anyone_know_more(dir, own)
        && start.elapsed() < PATIENCE_WITH_THE_LIVING
    {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The state on which the journal's tail is replayed: the state file's if that is sound and this
/// board's, the empty one if there is no file.
fn starting_state(
    dir: &Path,
    journal: &SqliteJournal,
    projection: &mut Projection,
) -> Result<State, BoardError> {
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

/// Notes the present state file in the lock as left by a projection, so that it is not taken for
/// somebody's edit.
fn leave_what_is_there(lock: &BoardLock, dir: &Path) {
    let seq = statefile::seq_of(dir).ok().flatten().map_or(0, |head| head.seq);
    let left = FileIdentity::of(dir)
        .and_then(|file| lock.leave(Left::new(file.into_iter().collect(), seq)));
    if let Err(error) = left {
        tracing::debug!(%error, "the state file may be taken for an edit");
    }
}

/// Keeps a copy of the imported file beside the board, once, however often the import is tried.
fn keep_copy(dir: &Path) -> io::Result<()> {
    let home = Home::of(dir);
    let copy_of = |number: u64| dir.join(format!("{}.imported-{number}", home.name()));
    let original = fs_err::read(home.file())?;
    let mut options = fs_err::OpenOptions::new();
    let options =
        fs_err::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
    for number in 1.. {
        match options.open(copy_of(number)) {
            Ok(mut copy) => {
                return copy
                    .write_all(&original)
                    .inspect_err(|_| drop(fs_err::remove_file(copy_of(number))));
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // A start that did not finish has left it.
            Err(_) if is_copy(&copy_of(number), &original) => return Ok(()),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Whether `path` is a copy of `original`. It is read only if it is a regular file of the same
/// length.
fn is_copy(path: &Path, original: &[u8]) -> bool {
    let is_as_long = fs_err::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == original.len() as u64);
    is_as_long && fs_err::read(path).is_ok_and(|copy| copy == original)
}

/// The event that imports `document`. Presence does not carry over: the processes are not on this
/// board.
fn imported(source: &str, mut document: Document, board_id: &str) -> Event {
    document.board.board_id = board_id.to_owned();
    document.participants.clear();
    for agent in document.agents.values_mut() {
        agent.present_through.clear();
    }
    Event::Imported { source: source.to_owned(), document: Box::new(document) }
}
