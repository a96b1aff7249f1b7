//! How this process attends to its board: the time it goes by, the sign of life that others see,
//! and what it knows of them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::board::Board;
use super::directory::DirectoryError;
use super::living::Others;
use super::lock;
use super::note::Note;
use super::options::Stay;
use super::presence::{PresenceLock, clear_presence, clear_unlisted, is_present, last_attended};
use super::recovery::Author;
use crate::clock::BoardClock;
use crate::ops::Due;
use crate::state::State;
use crate::state::agent::Participant;
use crate::state::deadline::STEP;
use crate::state::id::ParticipantId;
use crate::state::time::Timestamp;

/// Time between two checks whether the others are alive.
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
/// Time between two touches of the presence file.
const BETWEEN_TOUCHES: Duration = Duration::from_secs(10);

pub(super) struct Attendance {
    dir: PathBuf,
    own: ParticipantId,
    stay: Stay,
    /// Whether the process may not write, and so leaves no trace.
    is_unseen: bool,
    pub clock: BoardClock,
    presence: Option<PresenceLock>,
    /// What this process says of itself in the file of that lock.
    note: Note,
    pub others: Others,
    /// When this process opened the board, since when it attends to it.
    opened_at: Timestamp,
    /// When another process last attended to the board, as found then.
    attended_before: Option<Timestamp>,
    /// When the presence file was last touched.
    touched_at: Option<Instant>,
    /// When it was last checked whether the others are alive.
    checked_at: Option<Instant>,
    /// Milliseconds that the machine had slept since it booted, as last noted in the lock file, and
    /// when it was last found out what is due.
    slept: Option<i64>,
    slept_when_due: i64,
}

impl Attendance {
    pub(super) fn new(
        dir: PathBuf,
        own: ParticipantId,
        stay: Stay,
        is_unseen: bool,
        clock: BoardClock,
    ) -> Self {
        Self {
            others: Others::new(dir.clone(), own.clone()),
            dir,
            own,
            stay,
            is_unseen,
            clock,
            presence: None,
            note: Note::of_this_process(),
            opened_at: Timestamp::default(),
            attended_before: None,
            touched_at: None,
            checked_at: None,
            slept: None,
            slept_when_due: 0,
        }
    }

    /// The board's time, which is not before its last event.
    pub(super) fn now(&mut self, state: &State) -> Timestamp {
        self.clock.now(state.board().last_activity)
    }

    pub(super) fn author(&mut self) -> Author {
        Author { participant: self.own.clone(), now: self.clock.now(Timestamp::default()) }
    }

    /// Begins to attend to the board, which was just opened. Returns its time.
    pub(super) fn begin(&mut self, board: &Board) -> Timestamp {
        self.clock.settle(|| board.lock.mark());
        self.opened_at = self.now(&board.state);
        self.attended_before = last_attended(&self.dir, &self.own);
        self.opened_at
    }

    /// Settles on the board's time under the lock, before the first event of a boot is appended, so
    /// that all processes date the next one alike.
    pub(super) fn settle(&mut self, board: &Board) {
        self.clock.settle(|| board.lock.mark());
        self.now(&board.state);
        self.note_mark(board);
    }

    /// Notes the board's time for the processes that come later, unless that was done a moment ago.
    fn note_mark(&mut self, board: &Board) {
        if let Some(mark) = self.clock.mark()
            && let Err(error) = board.lock.note_mark(&mark)
        {
            tracing::warn!(%error, "the board's time could not be noted");
        }
    }

    /// Takes the presence lock in a process that stays, even if it only reads: it may know what the
    /// files have lost.
    pub(super) fn show(&mut self) -> Result<(), DirectoryError> {
        let is_shown = self.presence.as_ref().is_some_and(PresenceLock::is_in_place);
        if self.stay != Stay::Brief && !self.is_unseen && !is_shown {
            // The old lock is dropped first, because that removes its file.
            self.presence = None;
            self.note.learn_clock(self.clock.ahead());
            let presence = PresenceLock::acquire(&self.dir, self.own.as_str(), &self.note)?;
            // The system has dated the file by the wall clock.
            drop(presence.touch(self.clock.now(Timestamp::default())));
            self.presence = Some(presence);
        }
        Ok(())
    }

    /// Does this where the board can be read without it.
    pub(super) fn try_to_show(&mut self) {
        if let Err(error) = self.show() {
            tracing::debug!(%error, "others cannot see that this process lives");
        }
    }

    /// Makes sure that others can see this process. If it is not listed, it may have been taken for
    /// dead and its file removed.
    pub(super) fn ensure_shown(&mut self, state: &State) -> Result<(), DirectoryError> {
        let is_listed = state.participant(&self.own).is_some();
        // If its life says nothing about agents, a check once a second is enough.
        let is_doubtful = self.is_check_due() || self.stay == Stay::Presence;
        if self.presence.is_none() || is_doubtful && !is_listed { self.show() } else { Ok(()) }
    }

    /// Ends this process's presence on the board.
    pub(super) fn end(&mut self) {
        self.presence = None;
    }

    /// Touches the presence file once in a while, so that a silent time is not taken for one in
    /// which no process ran.
    pub(super) fn touch(&mut self, board: Option<&Board>) {
        let is_due = self.touched_at.is_none_or(|at| at.elapsed() >= BETWEEN_TOUCHES);
        let Some(presence) = self.presence.as_ref().filter(|_| is_due) else { return };
        self.touched_at = Some(Instant::now());
        self.clock.settle(|| lock::mark_of(&self.dir));
        if self.note.learn_clock(self.clock.ahead()) {
            drop(presence.note(&self.note));
        }
        drop(presence.touch(self.clock.now(Timestamp::default())));
        board.into_iter().for_each(|board| self.note_mark(board));
    }

    /// Notes in the presence file which client this process serves.
    pub(super) fn learn(&mut self, client: Option<&str>) {
        if self.stay == Stay::Presence && self.note.learn(client) {
            // It serves people only.
            drop(self.note_again());
        }
    }

    /// Notes in the presence file whether this process has opened the board, or is about to.
    pub(super) fn note_board(&mut self, has_board: bool) {
        if self.note.has_board != Some(has_board) {
            self.note.has_board = Some(has_board);
            if let Err(error) = self.note_again() {
                tracing::warn!(%error, "others cannot see whether this process knows the board");
            }
        }
    }

    /// Replaces the note in the presence file, and makes good the time of the file.
    fn note_again(&mut self) -> io::Result<()> {
        let Some(presence) = &self.presence else { return Ok(()) };
        presence.note(&self.note)?;
        presence.touch(self.clock.now(Timestamp::default()))
    }

    pub(super) fn is_check_due(&self) -> bool {
        is_past(self.checked_at)
    }

    /// Has the next check made at once.
    pub(super) fn doubt(&mut self) {
        self.checked_at = None;
    }

    /// Puts the next check off, because the others need a moment to show that they are alive.
    pub(super) fn trust(&mut self) {
        self.checked_at = Some(Instant::now());
    }

    /// Whether another process on the board has died; checked once a second.
    pub(super) fn has_someone_died(&mut self, state: &State) -> bool {
        if !self.is_check_due() {
            return false;
        }
        let mut others = state.participants().filter(|one| one.id != self.own);
        let died = others.any(|one| !is_present(&self.dir, one.id.as_str()));
        if !died {
            self.trust();
        }
        died
    }

    /// Whether the machine has slept since that was last noted.
    pub(super) fn has_slept(&self) -> bool {
        self.slept.is_some_and(|noted| self.clock.slept() - noted > STEP)
    }

    /// What time has brought since the last batch.
    pub(super) fn due(&mut self, board: &Board) -> Due {
        let state = &board.state;
        self.slept_when_due = self.clock.slept();
        let gone = self.gone(state);
        // A process that is on no list, such as a server, leaves its file if it is killed.
        let nobody_ran = match state.participants().count() {
            0 => self.attended_before.is_some(),
            all => gone.len() == all,
        };
        // An agent that works in silence records nothing.
        let last_activity = state.board().last_activity;
        let last_seen = last_activity.max(self.attended_before.unwrap_or_default());
        let idle = self.opened_at.since(last_seen);
        let unattended = (nobody_ran && idle > STEP).then_some(idle);
        Due { gap: unattended.max(self.slept_unnoticed(board)), gone }
    }

    /// Participants whose process is dead; looked for once a second.
    fn gone(&mut self, state: &State) -> Vec<Arc<Participant>> {
        if !self.is_check_due() {
            return Vec::new();
        }
        self.trust();
        clear_unlisted(&self.dir, |name| {
            name == self.own.as_str() || state.participant(&ParticipantId::trusted(name)).is_some()
        });
        let others = state.participants().filter(|one| one.id != self.own);
        others.filter(|one| !is_present(&self.dir, one.id.as_str())).cloned().collect()
    }

    /// Milliseconds that the machine has slept since that was last noted, if that is more than a
    /// clock step and anything was noted.
    fn slept_unnoticed(&self, board: &Board) -> Option<i64> {
        let slept = self.slept_when_due;
        if self.slept.is_some_and(|noted| slept - noted <= STEP) {
            return None;
        }
        board.lock.slept().map(|noted| slept - noted).filter(|unnoticed| *unnoticed > STEP)
    }

    /// What was due has been recorded.
    pub(super) fn recorded(&mut self, due: &Due, board: &Board) {
        due.gone.iter().for_each(|one| clear_presence(&self.dir, one.id.as_str()));
        // Not what it is now: the machine may have slept since.
        let slept = self.slept_when_due;
        if self.slept.is_some_and(|noted| slept - noted <= STEP) {
            return;
        }
        // A failure here does not concern what was committed.
        match board.lock.note_slept(slept) {
            Ok(()) => self.slept = Some(slept),
            Err(error) => {
                tracing::warn!(%error, "how long the machine has slept could not be noted");
            }
        }
    }
}

/// Whether a check that is made once a second, and was made at `last`, is due.
pub(super) fn is_past(last: Option<Instant>) -> bool {
    last.is_none_or(|last| last.elapsed() >= BETWEEN_CHECKS)
}
