//! A board whose files were deleted or replaced under a running process.
//!
//! A deleted journal lives on in the connections that have it, so all processes that had it open can still read to its
//! end. Whoever notices first takes the deleted lock, so that nobody commits to what is gone, then the lock at the board's
//! path, and makes the journal anew there with everything in it; the others find that journal and that it begins with all
//! that they know, and go on with it. The deleted one is marked: a process that has only that one, because it slept through
//! a rebuilding, lets those who know more rebuild first. Where two histories differ nothing is merged: the process that
//! finds another history in its place saves its own state beside it and refuses to go on.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::board::{self, Board, BoardError, acquire, io_error};
use super::directory::{self, BoardLock, DirectoryError};
use super::edits;
use super::recovery::{self, Author};
use crate::journal::sqlite::{self, SqliteJournal};
use crate::journal::{Journal, JournalError};
use crate::state::State;
use crate::state::document::Document;
use crate::state::event::Event;
use crate::statefile::{self, Found, Projection};

/// As long as a call waits for the lock.
const PATIENCE: Duration = Duration::from_secs(5);
/// Processes that live longer than a call look at the board more often than that.
const PATIENCE_WITH_NEWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// How the journal at the board's path is to ours.
enum Other {
    /// It holds all that we know.
    Newer,
    /// It is a beginning of ours.
    Older,
    Different,
}

impl Board {
    /// Puts the board back in its place, or finds the one that another process has put there, and holds its lock then,
    /// which may be held after an error, too. Answers what there is to report. The state is caught up with what was appended to the deleted journal, not with
    /// what was appended since.
    pub fn regain(&mut self, author: &Author) -> Result<Option<String>, BoardError> {
        acquire(&self.lock)?;
        self.find_or_rebuild(author)
    }

    fn find_or_rebuild(&mut self, author: &Author) -> Result<Option<String>, BoardError> {
        let start = Instant::now();
        loop {
            let lets_newer_rebuild = start.elapsed() < PATIENCE_WITH_NEWER;
            // Whoever deletes may not have finished: what is made anew may be gone before it is used.
            match self.try_regain(author, lets_newer_rebuild) {
                Ok(report) if self.lock.verify().is_ok() => return Ok(report),
                Ok(_) => {}
                Err(error) if is_final(&error) || start.elapsed() > PATIENCE => return Err(error),
                Err(error) => tracing::debug!(%error, "the board could not be put back yet"),
            }
            if start.elapsed() > PATIENCE {
                return Err(DirectoryError::Replaced { path: self.dir.clone() }.into());
            }
            sleep(PAUSE);
        }
    }

    fn try_regain(&mut self, author: &Author, lets_newer_rebuild: bool) -> Result<Option<String>, BoardError> {
        directory::prepare_again(&self.dir)?;
        let lock = BoardLock::open(&self.dir)?;
        let had_lock = self.lock.is_in_place();
        if !had_lock {
            acquire(&lock)?;
        }
        // Who else has this journal may have had another lock. If it cannot be read, the replica is what there is.
        let is_readable = self.catch_up().is_ok();
        if is_readable && self.lock.is_journal_in_place() {
            // Nothing but the lock was deleted.
            if !had_lock {
                self.take_lock(lock);
            }
            return Ok(None);
        }
        let is_ours = self.lock.is_database_in_place();
        let found = if is_ours { None } else { self.open_found(lets_newer_rebuild)? };
        let (journal, report) = match found {
            Some(found) => self.join(found)?,
            None if lets_newer_rebuild && self.journal.is_superseded() => {
                let source = std::io::Error::other("a process that knows more has not rebuilt it yet");
                return Err(io_error("cannot find the board in", &self.dir, source));
            }
            None => self.rebuild(author, is_readable)?,
        };
        let old = std::mem::replace(&mut self.journal, journal);
        if is_readable && let Err(error) = old.mark_superseded() {
            tracing::debug!(%error, "the deleted journal could not be marked");
        }
        old.abandon();
        if !had_lock {
            self.take_lock(lock);
        }
        self.lock.settle_journal(self.journal.identity(), self.journal.has_log());
        self.projection = Projection::new(&self.dir);
        self.catch_up()?;
        self.project().map_err(|source| io_error("cannot write the state file in", &self.dir, source))?;
        if let Some(report) = &report {
            recovery::log(&self.dir, author, report);
        }
        Ok(report)
    }

    /// The journal that is at the board's path, if there is one.
    fn open_found(&self, lets_newer_rebuild: bool) -> Result<Option<SqliteJournal>, BoardError> {
        let log = self.lock.log_files();
        let has_log = || self.lock.has_log_files(&log);
        // Without the log that others write to, it would be an older journal than theirs; to open it would make another.
        let is_incomplete = || {
            let source = std::io::Error::other("the journal's log is missing");
            Err(io_error("cannot use the board in", &self.dir, source))
        };
        if lets_newer_rebuild && Self::exists(&self.dir) && !has_log() {
            return is_incomplete();
        }
        directory::inspect_journal(&self.dir)?;
        match SqliteJournal::open(&self.dir) {
            Ok(_) if lets_newer_rebuild && !has_log() => is_incomplete(),
            Ok(journal) => Ok(Some(journal)),
            Err(JournalError::NotFound { .. }) => Ok(None),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn take_lock(&mut self, lock: BoardLock) {
        if lock.left().is_empty()
            && let Err(error) = lock.leave(&self.lock.left())
        {
            tracing::debug!(%error, "an edit of the state file may be taken for an old one");
        }
        self.lock = lock;
        self.lock_generation += 1;
        self.lock.settle_journal(self.journal.identity(), self.journal.has_log());
    }

    /// Another process has been here first.
    fn join(&mut self, mut found: SqliteJournal) -> Result<(SqliteJournal, Option<String>), BoardError> {
        let board_id = &self.state.board().board_id;
        if found.board_id()?.as_ref() != Some(board_id) {
            return Err(DirectoryError::Replaced { path: self.dir.clone() }.into());
        }
        match self.compare(&found)? {
            Other::Newer => Ok((found, None)),
            Other::Older => {
                let before = found.head()?;
                found.extend_from(&self.journal)?;
                let after = self.state.seq();
                Ok((found, Some(format!("the journal was found at event {before} and brought to event {after}"))))
            }
            Other::Different => Err(self.diverged(found.head()?)),
        }
    }

    fn compare(&self, found: &SqliteJournal) -> Result<Other, JournalError> {
        let (ours, theirs) = (self.state.seq(), found.head()?);
        if found.base() > ours {
            // It begins with the state of somebody who knew more.
            return Ok(Other::Newer);
        }
        if found.base() == ours {
            let Event::Imported { document, .. } = found.first()?.event else { return Ok(Other::Different) };
            let same = without_presence(*document) == without_presence(self.state.to_document());
            return Ok(if same { Other::Newer } else { Other::Different });
        }
        let common = ours.min(theirs);
        let ours_there = self.journal.hash_of(common).ok().flatten();
        Ok(match (ours_there, found.hash_of(common)?) {
            (Some(here), Some(there)) if here == there && ours <= theirs => Other::Newer,
            (Some(here), Some(there)) if here == there => Other::Older,
            _ => Other::Different,
        })
    }

    /// The own state becomes a board of its own inside the directory, to be looked at with `--dir`.
    fn diverged(&mut self, theirs: u64) -> BoardError {
        let saved = self.saved.clone().or_else(|| save_beside(self, theirs).ok());
        self.saved.clone_from(&saved);
        BoardError::Diverged { path: self.dir.clone(), ours: self.state.seq(), theirs, saved }
    }

    /// Nobody else has been here: everything that this process knows becomes the board again.
    fn rebuild(&mut self, author: &Author, is_readable: bool) -> Result<(SqliteJournal, Option<String>), BoardError> {
        let seq = self.state.seq();
        let failed = |action: &str| {
            let (action, dir) = (action.to_owned(), self.dir.clone());
            move |source| io_error(&action, &dir, source)
        };
        let mut newer = None;
        match board::found(&self.dir)? {
            None => {}
            Some(Found::Sound(document)) if document.board.board_id == self.state.board().board_id => {
                newer = (document.board.seq > seq).then_some(document);
            }
            Some(Found::Sound(_) | Found::Foreign { .. }) => {
                return Err(DirectoryError::Replaced { path: self.dir.clone() }.into());
            }
            // An edit: the projection keeps it.
            Some(Found::Unsound { .. }) if edits::is_strange(self) => {}
            Some(Found::Unsound { .. }) => {
                statefile::set_aside(&self.dir, "quarantined")
                    .map_err(failed("cannot move the state file aside in"))?;
            }
        }
        sqlite::set_aside(&self.dir).map_err(failed("cannot move the journal aside in"))?;
        if let Some(document) = newer {
            // Written by somebody who knew more and is gone.
            self.state = State::from_document(*document);
        } else if is_readable {
            match self.journal.carry_over(&self.dir) {
                Ok(journal) if journal.head().is_ok_and(|head| head == seq) => {
                    let report = "with its whole history";
                    return Ok((journal, Some(rebuilt(seq, report))));
                }
                Ok(incomplete) => incomplete.abandon(),
                Err(error) => tracing::warn!(%error, "the deleted journal could not be carried over"),
            }
            sqlite::set_aside(&self.dir).map_err(failed("cannot move the journal aside in"))?;
        }
        let seq = self.state.seq();
        let journal = recovery::begin_behind(&self.dir, &mut self.state, author)?;
        Ok((journal, Some(rebuilt(seq, "without the history before, and idempotency keys are forgotten"))))
    }
}

fn rebuilt(seq: u64, how: &str) -> String {
    format!(
        "the board's files were removed or damaged while processes ran; it was rebuilt from a running process, {how}: \
         everything up to event {seq} is safe; config.toml and tokens are not restored"
    )
}

fn save_beside(board: &Board, theirs: u64) -> std::io::Result<PathBuf> {
    let path = board.dir.join(format!("diverged-{}-from-{theirs}", board.state.seq()));
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path)?;
    Projection::new(&path).write(&board.state)?;
    Ok(path)
}

/// Trying again would find the same.
fn is_final(error: &BoardError) -> bool {
    matches!(
        error,
        BoardError::Diverged { .. }
            | BoardError::Directory(DirectoryError::Replaced { .. } | DirectoryError::Homeless { .. })
            | BoardError::Directory(DirectoryError::Unsafe { .. } | DirectoryError::Private(_))
            | BoardError::StateFile(_)
            | BoardError::Inconsistent(_)
    )
}

fn without_presence(mut document: Document) -> Document {
    document.participants.clear();
    document.agents.values_mut().for_each(|agent| agent.present_through.clear());
    document
}
