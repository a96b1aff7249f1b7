//! A board whose files were deleted or replaced under a running process.
//!
//! A deleted journal lives on in the connections that have it open, so all of these processes can
//! still read to its end. Whoever notices first takes the deleted lock, so that nobody commits to
//! what is gone, then the lock at the board's path, marks the deleted journal as superseded by
//! itself, and makes a new one at the path with everything in it; the others find that it begins
//! with all that they know, and go on with it. Locks may be deleted, too, so they prove little
//! here. What decides is the mark, made in one transaction on the journal that all of them share:
//! after it nobody can append there, and a process that finds another's mark, perhaps because it
//! slept through a rebuild, waits for those that know more. A new journal never replaces one that
//! is there. If two histories differ, nothing is merged: the process that finds another history in
//! its place saves its own state beside it and refuses to go on.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::board::Board;
use super::directory::{self, DirectoryError};
use super::error::{BoardError, io_error};
use super::lock::{BoardLock, LOCK_PATIENCE, acquire};
use super::recovery::{self, Author};
use crate::config;
use crate::journal::JournalError;
use crate::journal::sqlite::{self, SqliteJournal};
use crate::state::State;
use crate::state::document::Document;
use crate::state::event::Event;
use crate::statefile::{self, Found, Projection};

/// How long a process waits for one that knows more to rebuild the board. Those that live longer
/// than a call look at it far more often than that. Calls are refused meanwhile.
const PATIENCE_WITH_NEWER: Duration = Duration::from_secs(15);
/// How long a journal without its log is not opened, because somebody who is deleting files may not
/// have finished.
const PATIENCE_WITH_LOG: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// How the journal at the board's path relates to this process's.
enum Other {
    /// It holds all that this process knows.
    Newer,
    /// It is the beginning of this process's.
    Older,
    Different,
}

impl Board {
    /// Puts the board back in its place, or finds the one that another process has put there. Its
    /// lock is held then, and may be held after an error, too. Returns what there is to report.
    pub(super) fn regain(&mut self, author: &Author) -> Result<Option<String>, BoardError> {
        // The open transaction may be on a journal that is not the board's any more.
        self.end_append();
        acquire(&self.lock)?;
        let since = *self.awaited_since.get_or_insert_with(Instant::now);
        let regained = self.find_or_rebuild(author, since);
        if regained.is_ok() {
            self.awaited_since = None;
        }
        regained
    }

    /// `since` is when this process first missed the board.
    fn find_or_rebuild(
        &mut self,
        author: &Author,
        since: Instant,
    ) -> Result<Option<String>, BoardError> {
        let start = Instant::now();
        loop {
            let lets_newer_rebuild = since.elapsed() < PATIENCE_WITH_NEWER;
            // A deletion may not be finished: what is rebuilt may be gone before it is used.
            match self.try_regain(author, lets_newer_rebuild) {
                Ok(report) if self.lock.verify().is_ok() => return Ok(report),
                Ok(_) => {}
                Err(error) if is_final(&error) || start.elapsed() > LOCK_PATIENCE => {
                    return Err(error);
                }
                Err(error) => tracing::debug!(%error, "the board could not be put back yet"),
            }
            if start.elapsed() > LOCK_PATIENCE {
                return Err(DirectoryError::Replaced { path: self.dir.to_path_buf() }.into());
            }
            sleep(PAUSE);
        }
    }

    fn try_regain(
        &mut self,
        author: &Author,
        lets_newer_rebuild: bool,
    ) -> Result<Option<String>, BoardError> {
        directory::prepare_again(&self.dir)?;
        let lock = self.lock.anew()?;
        let had_lock = self.lock.is_in_place()?;
        if !had_lock {
            // A holder of the state file's lock never waits for the journal's.
            self.lock.release_state_file();
            acquire(&lock)?;
        }
        if directory::restored(&self.dir).is_some_and(|mark| self.restored.as_ref() != Some(&mark))
        {
            let shown = statefile::seq_of(&self.dir).ok().flatten();
            return Err(self.diverged(shown.map_or(0, |head| head.seq)));
        }
        // Another process may have appended to this journal under another lock file.
        let is_readable = self.can_catch_up()?;
        if is_readable && self.lock.is_journal_in_place()? {
            // Nothing but the lock was deleted.
            if !had_lock {
                self.take_lock(lock)?;
            }
            return Ok(None);
        }
        let is_ours = self.lock.is_database_in_place()?;
        let found = if is_ours { None } else { self.open_found()? };
        let (journal, report) = match found {
            Some(found) => self.join(found)?,
            None => {
                if is_readable {
                    self.take_on(author, lets_newer_rebuild)?;
                }
                self.rebuild(author, is_readable)?
            }
        };
        std::mem::replace(&mut self.journal, journal).abandon();
        self.journal.defer_syncs(&self.dir)?;
        if !had_lock {
            self.take_lock(lock)?;
        }
        self.lock.settle_journal(self.journal.identity(), self.journal.has_log())?;
        self.projection = Projection::new(&self.dir);
        let report = report.map(|report| format!("{report}{}", self.put_back_configuration()));
        self.catch_up()?;
        self.project()
            .map_err(|source| io_error("cannot write the state file in", &self.dir, source))?;
        if let Some(report) = &report {
            recovery::log(&self.dir, author, report);
        }
        Ok(report)
    }

    /// Catches up; false when the journal is damaged, so that only the replica is left. Any other
    /// error may pass.
    fn can_catch_up(&mut self) -> Result<bool, BoardError> {
        match self.check_log().and_then(|()| self.catch_up()) {
            Ok(_) => Ok(true),
            Err(BoardError::Inconsistent(_)) => Ok(false),
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that nobody appends to the deleted journal any more and that no other process
    /// rebuilds the board from it, then catches up to its end.
    fn take_on(&mut self, author: &Author, lets_newer_rebuild: bool) -> Result<(), BoardError> {
        if !self.journal.supersede(author.participant.as_str(), !lets_newer_rebuild)? {
            let source = std::io::Error::other("a process that knows more has not rebuilt it yet");
            return Err(io_error("cannot find the board in", &self.dir, source));
        }
        self.catch_up().map(drop)
    }

    /// Opens the journal at the board's path, if there is a sound one.
    fn open_found(&self) -> Result<Option<SqliteJournal>, BoardError> {
        let log = self.lock.log_files()?;
        let awaits_log =
            self.awaited_since.is_some_and(|since| since.elapsed() < PATIENCE_WITH_LOG);
        let has_log = || self.lock.has_log_files(&log);
        // Without the log that others write to, the file is older than their journal, and opening
        // it would make another log.
        let is_incomplete = || {
            let source = std::io::Error::other("the journal's log is missing");
            Err(io_error("cannot use the board in", &self.dir, source))
        };
        if awaits_log && Self::exists(&self.dir) && !has_log()? {
            return is_incomplete();
        }
        directory::inspect_journal(&self.dir)?;
        match SqliteJournal::open(&self.dir) {
            Ok(_) if awaits_log && !has_log()? => is_incomplete(),
            Ok(journal) => Ok(Some(journal)),
            Err(JournalError::NotFound { .. }) => Ok(None),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn take_lock(&mut self, lock: BoardLock) -> Result<(), DirectoryError> {
        if lock.left().files.is_empty()
            && let Err(error) = lock.leave(self.lock.left())
        {
            tracing::debug!(%error, "an edit of the state file may be taken for an old one");
        }
        self.lock = lock;
        self.lock_generation += 1;
        self.lock.settle_journal(self.journal.identity(), self.journal.has_log())
    }

    /// Goes on with the journal that another process has put there first, after extending it if it
    /// is behind.
    fn join(
        &mut self,
        mut found: SqliteJournal,
    ) -> Result<(SqliteJournal, Option<String>), BoardError> {
        let board_id = &self.state.board().board_id;
        if found.board_id()?.as_ref() != Some(board_id) {
            return Err(self.diverged(found.head()?));
        }
        match self.compare(&found)? {
            Other::Newer => Ok((found, None)),
            Other::Older => {
                let before = found.head()?;
                found.extend_from(&self.journal)?;
                let after = self.state.seq();
                Ok((
                    found,
                    Some(format!(
                        "the journal was found at event {before} and brought to event {after}"
                    )),
                ))
            }
            Other::Different => Err(self.diverged(found.head()?)),
        }
    }

    fn compare(&self, found: &SqliteJournal) -> Result<Other, JournalError> {
        let (ours, theirs) = (self.state.seq(), found.head()?);
        if found.base() > ours {
            // It begins with the state of a process that knew more.
            return Ok(Other::Newer);
        }
        if found.base() == ours {
            let Event::Imported { document, .. } = found.first()?.event else {
                return Ok(Other::Different);
            };
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

    /// Saves this process's state as a board of its own inside the directory, which can be opened
    /// with `--dir`.
    fn diverged(&mut self, theirs: u64) -> BoardError {
        let saved = self.saved.clone().or_else(|| save_beside(self, theirs).ok());
        self.saved.clone_from(&saved);
        BoardError::Diverged { path: self.dir.to_path_buf(), ours: self.state.seq(), theirs, saved }
    }

    /// Puts the configuration back if it was deleted. Returns, in words, what became of it and of
    /// the other files that the journal knows nothing of.
    fn put_back_configuration(&self) -> String {
        let path = self.dir.join(config::FILE);
        let put_back =
            self.config.text().filter(|_| std::fs::symlink_metadata(&path).is_err()).map(|text| {
                let mut file = std::fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)?;
                file.write_all(text.as_bytes())
            });
        let gone = "; tokens that were deleted are not put back (`callboard token add` makes new \
                    ones), nor are bundles, artifacts, snapshots and logs";
        match put_back {
            None => gone.to_owned(),
            Some(Ok(())) => format!("; {} is as this process had read it{gone}", config::FILE),
            Some(Err(error)) => format!("; {} could not be put back ({error}){gone}", config::FILE),
        }
    }

    /// Makes everything that this process knows the board again, if no other process has been here.
    fn rebuild(
        &mut self,
        author: &Author,
        is_readable: bool,
    ) -> Result<(SqliteJournal, Option<String>), BoardError> {
        let seq = self.state.seq();
        let failed = |action: &str| {
            let (action, dir) = (action.to_owned(), self.dir.clone());
            move |source| io_error(&action, &dir, source)
        };
        let mut newer = None;
        match recovery::found(&self.dir)? {
            None => {}
            Some(Found::Sound(document))
                if document.board.board_id == self.state.board().board_id =>
            {
                newer = (document.board.seq > seq).then_some(document);
            }
            Some(Found::Sound(document) | Found::Foreign { document, .. }) => {
                return Err(self.diverged(document.board.seq));
            }
            // It is an edit, which the projection keeps.
            Some(Found::Unsound { .. }) if self.is_strange() => {}
            Some(Found::Unsound { .. }) => {
                statefile::set_aside(&self.dir, "quarantined")
                    .map_err(failed("cannot move the state file aside in"))?;
            }
        }
        sqlite::set_aside(&self.dir).map_err(failed("cannot move the journal aside in"))?;
        if let Some(document) = newer {
            // The file is from a process that knew more and is gone.
            self.state = State::from_document(*document);
        } else if is_readable {
            match self.journal.carry_over(&self.dir) {
                Ok(journal) if journal.head().is_ok_and(|head| head == seq) => {
                    let safe = format!("everything up to event {seq} is safe, its history, too");
                    return Ok((journal, Some(rebuilt(&safe))));
                }
                Ok(incomplete) => incomplete.abandon(),
                // Somebody may still be deleting, or the disk may be full: that is no reason to
                // give up what there is.
                Err(error) if !error.is_damage() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, "the deleted journal could not be carried over")
                }
            }
            sqlite::set_aside(&self.dir).map_err(failed("cannot move the journal aside in"))?;
        }
        let seq = self.state.seq();
        let forgotten = recovery::forgotten(&self.state, self.journal.base()).unwrap_or_default();
        let journal = recovery::begin_behind(&self.dir, &mut self.state, author)?;
        let safe = format!(
            "the state up to event {seq} is safe; lost: {forgotten}; idempotency keys are \
             forgotten"
        );
        Ok((journal, Some(rebuilt(&safe))))
    }
}

fn rebuilt(safe: &str) -> String {
    format!(
        "the board's files were removed or damaged while processes ran; it was rebuilt from a \
         running process: {safe}"
    )
}

fn save_beside(board: &Board, theirs: u64) -> std::io::Result<PathBuf> {
    let path = board.dir.join(format!(
        "diverged-{}-from-{theirs}-{}",
        board.state.seq(),
        std::process::id()
    ));
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path)?;
    Projection::new(&path).write(&mut board.state.clone())?;
    match board.journal.carry_over(&path) {
        Ok(journal) => journal.abandon(),
        Err(error) => tracing::warn!(%error, "the history could not be kept beside the state"),
    }
    Ok(path)
}

/// Whether another attempt would meet the same error.
fn is_final(error: &BoardError) -> bool {
    matches!(
        error,
        BoardError::Diverged { .. }
            | BoardError::Directory(
                DirectoryError::Replaced { .. } | DirectoryError::Homeless { .. }
            )
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
