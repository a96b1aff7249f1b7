//! How the writer goes on after its board has vanished.

use std::time::Instant;

use super::Writer;
use crate::participant::directory::DirectoryError;
use crate::participant::error::BoardError;

/// Most rebuilds in a row: while somebody is deleting the board's files, they may be gone again at
/// once.
const REGAINED_AT_MOST: usize = 100;

impl Writer {
    /// Puts the board right if the files at its paths are damaged or are not those that this
    /// process has open. Its lock is held then.
    pub(super) fn regain(&mut self) -> Result<(), BoardError> {
        self.end_round();
        let author = self.author();
        let Some(board) = &mut self.board else { return Ok(()) };
        let regained = board.regain(&author);
        let replaced = self.replace_locker();
        let report = match (regained, replaced) {
            (Ok(report), Ok(())) => report,
            (Err(error), _) | (_, Err(error)) => {
                if matches!(error, BoardError::Diverged { .. }) {
                    // This process is on no board any more for which others could wait.
                    self.presence = None;
                }
                self.release_unless_awaited();
                return Err(error);
            }
        };
        if let Some(board) = &mut self.board {
            drop(board.lock.sign(self.participant.pid));
        }
        self.report = report.or(self.report.take());
        // If the directory is already gone again, the next look makes it.
        drop(self.show_presence());
        // The others need a moment to show that they are alive.
        self.last_reap = Some(Instant::now());
        self.watch_anew();
        Ok(())
    }

    fn is_gone(&self) -> bool {
        let verified = self.board.as_ref().map(|board| board.lock.verify());
        matches!(verified, Some(Err(DirectoryError::Replaced { .. })))
    }

    /// Starts another locker if the lock file has changed: the old one waits for a deleted file's
    /// lock, which says nothing about the present one.
    pub(super) fn replace_locker(&mut self) -> Result<(), BoardError> {
        if let Some(board) = &self.board
            && self.locker.as_ref().is_none_or(|locker| locker.generation != board.lock_generation)
        {
            self.locker = None;
            self.locker = Some(self.wait_for_lock_of(board)?);
        }
        Ok(())
    }

    /// Releases both locks, except the journal's while the locker waits for it: that thread may
    /// have it already, through the same handle, and its answer will come.
    pub(super) fn release_unless_awaited(&self) {
        let Some(board) = &self.board else { return };
        board.lock.release_state_file();
        if !self.locker.as_ref().is_some_and(|locker| locker.waiting) {
            board.lock.release_journal();
        }
    }

    /// Catches up without holding the lock, and publishes what others have appended.
    pub(super) fn look_again(&mut self) -> Result<(), BoardError> {
        let mut has_lock = false;
        let caught_up = self.catch_up_or_regain(&mut has_lock);
        if has_lock {
            self.release_unless_awaited();
        }
        if caught_up.is_ok() {
            self.publish_seen();
        }
        caught_up
    }

    /// Catches up, after putting the board back if it is gone. `has_lock` is set if the lock was
    /// taken for that.
    pub(super) fn catch_up_or_regain(&mut self, has_lock: &mut bool) -> Result<(), BoardError> {
        for _ in 0..REGAINED_AT_MOST {
            match self.catch_up() {
                // Whatever the error is called: what is gone cannot be read.
                Err(error)
                    if self.unwritable.is_none() && (can_be_regained(&error) || self.is_gone()) =>
                {
                    self.regain()?;
                }
                caught_up => return caught_up,
            }
            *has_lock = true;
        }
        self.catch_up()
    }
}

/// Whether the board can be put back after this error: a running process knows what the files have
/// lost.
fn can_be_regained(error: &BoardError) -> bool {
    matches!(error, BoardError::Directory(DirectoryError::Replaced { .. })) || error.is_damage()
}
