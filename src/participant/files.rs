//! The disk of a participant: the board's files, and the threads that wait for their locks.

use std::io;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use super::attendance::Attendance;
use super::board::Board;
use super::commit::Placed;
use super::directory::DirectoryError;
use super::disk::{Blocked, Disk, Parts, Peers, View};
use super::error::{BoardError, lock_error};
use super::history::JournalHistory;
use super::holder::Holder;
use super::living::Others;
use super::locker::Locker;
use super::message::Message;
use super::obstacles::Obstacles;
use super::room;
use super::syncer::{Outcome, Syncer};
use crate::journal::sqlite::SqliteJournal;
use crate::journal::{AppendError, BatchId, JournalError};
use crate::ops::health_check::{Kind, Trouble};
use crate::ops::{Due, History, NoHistory};
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::level::Living;
use crate::state::policy::Policy;
use crate::state::run::rows::Rows;
use crate::statefile::{self, Home};

/// The threads that wait for locks and for the disk.
pub(super) struct Threads {
    sender: SyncSender<Message>,
    locker: Option<Locker>,
    syncer: Option<Syncer>,
    /// The last event in the log when it was last given to be synced.
    syncs_to: u64,
}

impl Threads {
    pub(super) fn new(sender: SyncSender<Message>) -> Self {
        Self { sender, locker: None, syncer: None, syncs_to: 0 }
    }

    fn syncer(&mut self) -> Option<&Syncer> {
        if self.syncer.is_none() {
            self.syncer = Syncer::spawn(self.sender.clone()).ok();
        }
        self.syncer.as_ref()
    }

    /// What has come of the sync, or of the wait for the state file's lock.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.syncer.as_ref().and_then(Syncer::outcome)
    }

    /// Whether the answer is that of the thread that waits for the present lock file. The lock of
    /// one that was deleted since is freed with its last handle.
    pub(super) fn is_of_present_lock(&mut self, generation: u64) -> bool {
        match &mut self.locker {
            Some(locker) if locker.generation == generation => {
                locker.waiting = false;
                true
            }
            _ => false,
        }
    }

    fn waits_for_lock(&self) -> bool {
        self.locker.as_ref().is_some_and(|locker| locker.waiting)
    }
}

pub(super) struct Files<'a> {
    pub board: &'a mut Board,
    pub attendance: &'a mut Attendance,
    pub threads: &'a mut Threads,
    /// Why changes are found by polling only, if the directory cannot be watched.
    pub unwatched: Option<&'a str>,
    pub obstacles: &'a Obstacles,
    /// Whether the process may write, and so put the board's files back.
    pub may_write: bool,
}

impl Peers for Others {
    fn living(&self) -> Vec<Living> {
        self.living()
    }

    fn admit(&self, state: &State, event: &Event) -> bool {
        self.admit(state, event)
    }

    fn state_file_seq(&self) -> Option<u64> {
        seq_of(self.dir())
    }

    fn room(&self) -> Option<Trouble> {
        room::objection(self.dir())
    }
}

/// The seq of the state file in `dir`, if it can be read.
pub(super) fn seq_of(dir: &Path) -> Option<u64> {
    statefile::seq_of(dir).ok().flatten().map(|shown| shown.seq)
}

impl View for Files<'_> {
    fn parts(&mut self) -> Parts<'_> {
        let now = self.attendance.now(&self.board.state);
        let ahead = self.attendance.clock.ahead();
        let (state, history, policy) = self.board.split();
        let history = Box::new(history);
        Parts { state, history, policy, now, peers: &self.attendance.others, ahead }
    }

    fn troubles(&self) -> Vec<Trouble> {
        let outdated = self.board.check_writable().err();
        let outdated = outdated.map(|error| Trouble::new(Kind::Outdated, error.to_string()));
        let unwatched = self.unwatched.map(|error| {
            Trouble::new(Kind::Polling, format!("changes are found by polling only ({error})"))
        });
        self.obstacles.troubles().into_iter().chain(outdated).chain(unwatched).collect()
    }
}

impl Files<'_> {
    /// Starts the thread that waits for the lock, or another one if the lock file has changed: the
    /// old one waits for a deleted file's lock, which says nothing about the present one. Returns
    /// whether it is another.
    pub(super) fn replace_locker(&mut self) -> Result<bool, BoardError> {
        let generation = self.board.lock_generation;
        if self.threads.locker.as_ref().is_some_and(|locker| locker.generation == generation) {
            return Ok(false);
        }
        self.threads.locker = None;
        let lock = self.board.lock.handle();
        let spawned = lock
            .and_then(|lock| Locker::spawn(lock, generation, self.threads.sender.clone()))
            .map_err(|source| BoardError::Io {
                action: "cannot wait for the board's lock".to_owned(),
                source,
            })?;
        self.threads.locker = Some(spawned);
        Ok(true)
    }

    fn caught_up(&mut self) -> Result<Vec<Recorded>, BoardError> {
        let board = &mut *self.board;
        board.lock.verify()?;
        board.check_name()?;
        if let Err(error) = board.config.look(&board.dir) {
            let told = format!("{error}; what it said before holds until it is mended");
            tracing::warn!("{told}");
            board.report(told);
        }
        let newest = board.catch_up()?;
        let now = self.attendance.now(&board.state);
        board.state.set_aging(board.config.policy().aging());
        board.state.wake(now);
        Ok(newest)
    }

    /// The error of a board whose files can be put back: a running process knows what they have
    /// lost. Whatever the error is called: what is gone cannot be read.
    fn blocked(&self, error: BoardError) -> Blocked {
        let is_replaced = matches!(error, BoardError::Directory(DirectoryError::Replaced { .. }));
        if self.may_write && (is_replaced || error.is_damage() || self.is_replaced()) {
            Blocked::Vanished(error)
        } else {
            Blocked::Failed(error)
        }
    }

    fn is_replaced(&self) -> bool {
        matches!(self.board.lock.verify(), Err(DirectoryError::Replaced { .. }))
    }

    /// Releases both locks, except the journal's while the locker waits for it: that thread may
    /// have it already, through the same handle, and its answer will come.
    fn release_unless_awaited(&self) {
        self.board.lock.release_state_file();
        if !self.threads.waits_for_lock() {
            self.board.lock.release_journal();
        }
    }

    fn try_regain(&mut self) -> Result<(), BoardError> {
        let author = self.attendance.author();
        let regained = self.board.regain(&author);
        let report = regained.and_then(|report| self.replace_locker().map(|_| report));
        let report = report.inspect_err(|error| {
            if matches!(error, BoardError::Diverged { .. }) {
                // This process is on no board any more for which others could wait.
                self.attendance.end();
            }
        })?;
        if report.is_some() {
            self.board.report = report;
        }
        // If the directory is already gone again, the next look makes it.
        self.attendance.try_to_show();
        self.attendance.trust();
        Ok(())
    }
}

impl Disk for Files<'_> {
    fn state(&self) -> &State {
        &self.board.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.board.state
    }

    fn report(&mut self) -> &mut Option<String> {
        &mut self.board.report
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        self.board.lock.try_acquire_journal()
    }

    fn await_lock(&mut self) {
        if let Some(locker) = &mut self.threads.locker {
            locker.request();
        }
    }

    fn unlock(&mut self) {
        self.board.lock.release_journal();
    }

    fn holder(&self) -> Holder {
        self.board.lock.holder()
    }

    fn begin(&mut self) -> Result<Vec<Recorded>, Blocked> {
        self.board.lock.sign(std::process::id()).map_err(lock_error)?;
        self.board.check_log().map_err(|error| self.blocked(error))?;
        self.board.begin_append()?;
        self.attendance.others.look_again();
        let newest = self.caught_up().map_err(|error| self.blocked(error))?;
        self.board.check_writable()?;
        self.attendance.settle(self.board);
        self.attendance.ensure_shown(&self.board.state).map_err(BoardError::from)?;
        Ok(newest)
    }

    fn due(&mut self) -> Due {
        self.attendance.due(self.board)
    }

    fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        rows: &Rows,
    ) -> Result<(), AppendError> {
        let appended = self.board.append(expected, batch, events, rows);
        appended.map_err(|error| match error {
            // SQLite tells of a full quota as of any other failure.
            AppendError::Failed(JournalError::Sqlite(_) | JournalError::Io(_))
                if room::objection(&self.board.dir)
                    .is_some_and(|trouble| trouble.kind == Kind::DiskFull) =>
            {
                AppendError::Failed(JournalError::Full)
            }
            error => error,
        })
    }

    fn find(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError> {
        self.board.find(batch, error)
    }

    fn end(&mut self, appended: Option<&Due>) {
        match appended {
            Some(due) => self.attendance.recorded(due, self.board),
            None => self.attendance.doubt(),
        }
        self.board.end_append();
    }

    fn learn(&mut self, client: Option<&str>) {
        self.attendance.learn(client);
    }

    fn doubt_presence(&mut self) {
        self.attendance.doubt();
    }

    fn hasten(&mut self) {
        self.board.hasten();
    }

    fn catch_up(&mut self) -> Result<Vec<Recorded>, Blocked> {
        self.caught_up().map_err(|error| self.blocked(error))
    }

    fn regain(&mut self) -> Result<(), BoardError> {
        // Before waiting for the journal's lock, whose holder may be waiting for this one.
        self.board.lock.release_state_file();
        let regained = self.try_regain();
        self.release_unless_awaited();
        regained
    }

    fn is_durable(&self) -> bool {
        self.board.is_settled()
    }

    fn shown(&self) -> Option<u64> {
        let shown = self.board.shown().filter(|_| self.board.lock.verify().is_ok());
        shown.map(|seq| seq.min(self.board.state.seq()))
    }

    fn note_shown(&mut self, seq: u64) {
        self.board.settled(seq);
    }

    fn try_lock_file(&mut self) -> io::Result<bool> {
        self.board.lock.try_acquire_state_file()
    }

    fn await_file(&mut self) {
        // If this fails, the lock is tried again soon all the same.
        if let Ok(lock) = self.board.lock.turn()
            && let Some(syncer) = self.threads.syncer()
        {
            syncer.wait_for_turn(lock);
        }
    }

    fn file_holder(&self) -> Holder {
        self.board.lock.state_file_holder()
    }

    fn is_overtaken(&self) -> bool {
        self.board.is_overtaken(&self.board.lock.left())
    }

    fn sync(&mut self, here: bool) -> Option<Result<(), BoardError>> {
        // Others do not change this while this process holds the lock.
        let left = self.board.lock.left();
        drop(self.board.lock.sign_state_file(std::process::id()));
        let log = self.board.log().filter(|_| !here && !self.board.is_settled());
        let seq = self.board.state.seq();
        let Some((log, syncer)) = log.and_then(|log| Some((log, self.threads.syncer()?))) else {
            self.board.prepare_show(left);
            return Some(self.board.settle_to(seq));
        };
        syncer.sync(log);
        self.threads.syncs_to = seq;
        // While the thread wakes up.
        self.board.hasten();
        self.board.prepare_show(left);
        None
    }

    fn finish_sync(&mut self) -> Result<(), BoardError> {
        let ended = || io::Error::other("the thread has ended");
        loop {
            match self.threads.syncer.as_ref().and_then(Syncer::next_outcome) {
                Some(Outcome::Synced(synced)) => return self.synced(synced),
                Some(Outcome::Turn) => {}
                None => return self.synced(Err(ended())),
            }
        }
    }

    fn place(&mut self) -> Placed {
        let placed = self.board.show();
        self.board.lock.release_state_file();
        placed
    }

    fn give_up(&mut self) {
        self.board.give_up();
        self.board.lock.release_state_file();
    }

    fn sync_alone(&mut self) -> Result<(), BoardError> {
        self.board.settle()
    }

    fn is_gone(&self) -> bool {
        self.board.lock.verify().is_err()
    }
}

impl Files<'_> {
    /// What the thread says of the sync.
    pub(super) fn synced(&mut self, synced: io::Result<()>) -> Result<(), BoardError> {
        self.board.synced(self.threads.syncs_to, synced)
    }
}

/// What there is before a board is made: the state that the first write will begin with. Or what
/// can be read of a board that cannot be written.
pub(super) struct Absent<'a> {
    state: State,
    /// That of a board which can only be read.
    journal: Option<(Home, SqliteJournal)>,
    policy: Policy,
    attendance: &'a mut Attendance,
}

impl<'a> Absent<'a> {
    pub(super) fn new(state: State, attendance: &'a mut Attendance) -> Self {
        Self { state, journal: None, policy: Policy::default(), attendance }
    }

    pub(super) fn with_journal(self, dir: &Path, journal: Option<SqliteJournal>) -> Self {
        Self { journal: journal.map(|journal| (Home::of(dir), journal)), ..self }
    }
}

impl View for Absent<'_> {
    fn parts(&mut self) -> Parts<'_> {
        let now = self.attendance.now(&self.state);
        let ahead = self.attendance.clock.ahead();
        let head = self.state.seq();
        let history: Box<dyn History + '_> = match &self.journal {
            Some((dir, journal)) => Box::new(JournalHistory { journal, dir, head }),
            None => Box::new(NoHistory),
        };
        let (state, policy, peers) = (&mut self.state, &self.policy, &self.attendance.others);
        Parts { state, history, policy, now, peers, ahead }
    }
}
