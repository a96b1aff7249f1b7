//! The writer keeps this process's replica, on a thread of its own. It hands what may record
//! something to the [`Driver`], and is the neighbour to whom that reports.
//!
//! Reads are answered from the replica after it has caught up, once what they saw is durable. Calls
//! that wait for a better answer are parked and tried again whenever something changes.

mod messages;
mod neighbours;
mod reads;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use super::access::Access;
use super::attendance::{Attendance, is_past};
use super::board::Board;
use super::commit::Event;
use super::directory::DirectoryError;
use super::disk::View;
use super::driver::Driver;
use super::editing::Edits;
use super::error::{BoardError, CallError};
use super::feed::Feed;
use super::files::{Absent, Files, Threads};
use super::hints::Watch;
use super::lock::{self, LOCK_PATIENCE};
use super::message::{Message, Queued, answer_one};
use super::metrics::Metrics;
use super::obstacles::Obstacles;
use super::options::{Options, Stay};
use super::recovery::Author;
use super::syncer::Outcome;
use super::upkeep::Upkeep;
use super::waiting::Waiting;
use super::{naming, opening, room};
use crate::clock::BoardClock;
use crate::redact;
use crate::state::agent::Participant;
use crate::state::id::{Chance, ParticipantId};
use crate::state::time::Timestamp;

/// How often a process that outlives its calls checks whether the others are alive. Its other
/// periodic checks keep the same pace.
const PRESENCE_CHECK: Duration = Duration::from_secs(1);
/// Poll interval while somebody waits, in case the file system's notifications, which are only
/// hints, do not come.
const POLL_WHILE_PARKED: Duration = Duration::from_millis(250);
/// Shortest wait for a deadline, so that one that has come but cannot be recorded, because the lock
/// or the disk is unavailable, does not make the thread spin.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(20);
/// Time between two attempts while nothing else is done.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Writer {
    dir: PathBuf,
    access: Access,
    driver: Driver,
    board: Option<Board>,
    attendance: Attendance,
    threads: Threads,
    messages: Receiver<Message>,
    sender: SyncSender<Message>,
    waiting: Waiting,
    watch: Watch,
    edits: Edits,
    upkeep: Upkeep,
    obstacles: Obstacles,
    feed: Arc<Feed>,
    metrics: Arc<Metrics>,
    /// Cloned by each call that is asking the archive, so that its reference count tells how many
    /// there are.
    fetching: Arc<()>,
}

impl Writer {
    /// `shared` is what the writer shares with the handles.
    pub(super) fn new(
        options: Options,
        sender: SyncSender<Message>,
        messages: Receiver<Message>,
        shared: (Arc<Feed>, Arc<Metrics>),
    ) -> Self {
        let (feed, metrics) = shared;
        let (dir, stay) = (options.dir, options.stay);
        let mut chance = Chance::new(options.seed);
        let participant = Participant {
            id: ParticipantId::trusted(format!("p-{}", chance.base32(10))),
            pid: std::process::id(),
            worktree: options.worktree.map(|path| redact::name(&path).unwrap_or(path)),
            joined_at: Timestamp::default(),
        };
        let mut clock = BoardClock::new(options.clock, lock::mark_of(&dir).as_ref());
        let started_at = clock.now(Timestamp::default());
        let is_unseen = options.unwritable.is_some();
        let access = Access {
            state_file: options.state_file,
            forbidden: options.forbidden,
            unasked: options.unasked,
            unwritable: options.unwritable,
        };
        Self {
            attendance: Attendance::new(
                dir.clone(),
                participant.id.clone(),
                stay,
                is_unseen,
                clock,
            ),
            dir,
            access,
            driver: Driver::new(participant, stay, chance, started_at),
            board: None,
            threads: Threads::new(sender.clone()),
            messages,
            sender,
            waiting: Waiting::default(),
            watch: Watch::default(),
            edits: Edits::default(),
            upkeep: Upkeep::default(),
            obstacles: Obstacles::default(),
            feed,
            metrics,
            fetching: Arc::default(),
        }
    }

    /// Handles messages, and what is due by time, until it is told to stop.
    pub(super) fn serve(mut self) {
        // Before its first call, too: others must write nothing that it cannot read.
        if Board::exists(&self.dir) {
            self.attendance.try_to_show();
        }
        loop {
            let received = match self.patience() {
                Some(patience) => self.messages.recv_timeout(patience),
                None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let goes_on = match received {
                Ok(message) => self.turn(Some(message)),
                Err(RecvTimeoutError::Timeout) => self.turn(None),
                Err(RecvTimeoutError::Disconnected) => false,
            };
            if !goes_on {
                return self.stop();
            }
        }
    }

    /// Handles the message that came and everything that is due. False when it is time to stop.
    fn turn(&mut self, received: Option<Message>) -> bool {
        if !self.take_all(received) || !self.gather() {
            return false;
        }
        self.poll();
        if self.begins_to_listen() {
            // What happened between the last poll and the start of the watch has brought no hint.
            self.poll();
        }
        if !self.take_all(None) {
            return false;
        }
        self.driver.commit.end_turn();
        true
    }

    /// Completes what is pending, and then ends this process's presence on the board.
    fn stop(&mut self) {
        self.finish();
        self.attendance.end();
    }

    /// How long nothing is due if no message comes; `None` for ever.
    fn patience(&mut self) -> Option<Duration> {
        let listened_to = self.is_listened_to();
        let commit = &self.driver.commit;
        let Some(board) = &self.board else {
            let checks = self.driver.stay == Stay::Lasting;
            let while_served = checks.then_some(PRESENCE_CHECK);
            return if listened_to { Some(POLL_WHILE_PARKED) } else { while_served };
        };
        let awaits_lock = commit.has_calls() && !commit.is_ready();
        if commit.is_ready() || self.waiting.is_unsettled() && !awaits_lock {
            return Some(Duration::ZERO);
        }
        let awaited = !self.waiting.is_empty() || commit.has_calls() || commit.is_round_pending();
        let patience = match (awaited, self.driver.stay) {
            (true, _) => POLL_WHILE_PARKED,
            (false, Stay::Lasting | Stay::Presence) => PRESENCE_CHECK,
            (false, Stay::Brief) if listened_to => PRESENCE_CHECK,
            (false, Stay::Brief) => return None,
        };
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let sooner = commit.wakes_at().map(until).into_iter().chain(self.edits.patience());
        let patience = sooner.fold(patience, Duration::min);
        let deadline = board.state.next_deadline();
        let deadline = deadline.filter(|_| is_past(self.attendance.others.withheld_at()));
        let now = self.attendance.clock.now(Timestamp::default());
        let until =
            deadline.map(|at| Duration::from_millis(u64::try_from(at.since(now)).unwrap_or(0)));
        Some(until.map_or(patience, |until| until.max(SHORTEST_PATIENCE).min(patience)))
    }

    /// Does what is due: parked calls, deadlines, hand edits, and the commit path.
    fn poll(&mut self) {
        let listened_to = self.is_listened_to();
        if self.board.is_none() && listened_to && Board::exists(&self.dir) {
            // The board that these callers wait for has been made. If it cannot be opened, they are
            // told so when their wait ends.
            drop(self.open(false));
        }
        let lasts = self.driver.stay != Stay::Brief;
        if listened_to || lasts && is_past(self.watch.polled_at) {
            self.watch.polled_at = Some(Instant::now());
            self.attend();
        }
        self.unpark();
        let attends = lasts || !self.waiting.is_empty();
        let is_due = self.access.unwritable.is_none()
            && is_past(self.driver.commit.failed_at())
            && (attends && self.time_has_come() || lasts && self.is_edited());
        if is_due {
            self.driver.commit.handle(Event::Due, Instant::now());
        }
        self.advance();
    }

    /// Catches up with what others do, and shows them that this process lives.
    fn attend(&mut self) {
        match self.catch_up() {
            Ok(()) => {
                if self.board.is_some() && self.attendance.is_check_due() {
                    self.attendance.try_to_show();
                }
                self.show_again();
            }
            Err(error) => tracing::warn!(%error, "the board could not be read"),
        }
        if let Some(board) = &self.board {
            self.driver.commit.retry_to_show(board.state.seq(), Instant::now());
        }
        self.attendance.touch(self.board.as_ref());
        let seq = self.board.as_ref().map(|board| board.state.seq());
        self.obstacles.look(&self.dir, seq, Instant::now());
    }

    /// Whether a parked call or a feed listener waits for what may happen.
    fn is_listened_to(&self) -> bool {
        !self.waiting.is_empty() || self.feed.is_heard()
    }

    /// Whether time alone has brought something that must be recorded.
    fn time_has_come(&mut self) -> bool {
        let Some(board) = &self.board else { return false };
        if !is_past(self.attendance.others.withheld_at()) {
            return false;
        }
        let now = self.attendance.clock.now(Timestamp::default());
        let has_someone_died = self.attendance.has_someone_died(&board.state);
        has_someone_died
            || self.driver.has_to_return(&board.state)
            || board.state.follow_up(0).is_some()
            || self.attendance.has_slept()
            || !board.state.expire(now).is_empty()
    }

    /// Looks for hand edits. Returns whether the state file has to be put in its place again.
    fn is_edited(&mut self) -> bool {
        let Some(board) = &self.board else { return false };
        let now = self.attendance.now(&board.state);
        self.edits.look(board, now, &self.sender)
    }

    /// Begins to watch the directory while somebody waits, so that other processes' commits wake
    /// this one. Returns whether it has just begun to.
    fn begins_to_listen(&mut self) -> bool {
        let is_listened_to = self.is_listened_to();
        self.watch.follow(is_listened_to, self.board.as_ref(), &self.sender)
    }

    /// Gives a call to the commit path, for which the board is opened, or made.
    fn record(&mut self, call: Queued) {
        let writable = self.access.check_writable();
        let asked = || self.access.check_asked(&call, self.board.is_some(), &self.dir);
        let opened = writable.and_then(|()| asked()).map_err(Arc::new);
        match opened.and_then(|()| self.open(true)) {
            Ok(()) => self.driver.commit.handle(Event::Called(call), Instant::now()),
            Err(error) => answer_one(call.reply, Err(CallError::Failed(self.in_words(error)))),
        }
    }

    /// The error of a board that could not be opened. If nothing can be written there, that is what
    /// it says, whatever the attempt has met first.
    pub(super) fn in_words(&self, error: Arc<BoardError>) -> Arc<BoardError> {
        let is_of_place = !matches!(
            *error,
            BoardError::Forbidden(_)
                | BoardError::Absent { .. }
                | BoardError::Locked { .. }
                | BoardError::Directory(DirectoryError::Unsafe { .. })
        );
        let trouble = room::objection(&self.dir).filter(|_| is_of_place);
        trouble.map_or(error, |trouble| Arc::new(BoardError::Unwritable(trouble.text)))
    }

    /// Loads the board if there is one; makes it if `create` says so.
    fn open(&mut self, create: bool) -> Result<(), Arc<BoardError>> {
        if self.board.is_some() {
            return Ok(());
        }
        let exists = Board::exists(&self.dir);
        self.access.check_allowed()?;
        if !exists && !create {
            return Err(Arc::new(BoardError::Absent { dir: self.dir.clone() }));
        }
        let author = self.attendance.author();
        opening::let_the_living_rebuild(&self.dir, &author.participant);
        // From the first look at the journal on, this process may know what the files then lose.
        self.attendance.note_board(true);
        let opened = self.load(exists, &author);
        if opened.is_err() {
            self.board = None;
            self.attendance.note_board(false);
        }
        opened.map_err(Arc::new)
    }

    fn load(&mut self, exists: bool, author: &Author) -> Result<(), BoardError> {
        let asked = self.access.state_file.as_deref();
        let board = if exists {
            naming::agree(&self.dir, asked)?;
            let author = self.access.unwritable.is_none().then_some(author);
            Board::open(&self.dir, author)?
        } else {
            let board_id = format!("board-{}", self.driver.chance.base32(10));
            Board::create(&self.dir, author, &board_id, asked)?
        };
        let opened_at = self.attendance.begin(&board);
        // Before the board was there, nothing had said what its time is.
        self.driver.started_at = self.driver.started_at.min(opened_at);
        self.driver.commit.file_name = board.dir().name().to_owned();
        self.board = Some(board);
        if let Some((_, mut files)) = self.parts() {
            files.replace_locker()?;
        }
        self.attendance.try_to_show();
        self.publish_seen();
        self.settle_edits();
        Ok(())
    }

    /// The driver, and the disk for it.
    fn parts(&mut self) -> Option<(&mut Driver, Files<'_>)> {
        let files = Files {
            board: self.board.as_mut()?,
            attendance: &mut self.attendance,
            threads: &mut self.threads,
            unwatched: self.watch.unwatched.as_deref(),
            obstacles: &self.obstacles,
            may_write: self.access.unwritable.is_none(),
        };
        Some((&mut self.driver, files))
    }

    /// Has `operate` use the board, or what there is before one is made.
    fn with_view<T>(&mut self, operate: impl FnOnce(&mut Driver, &mut dyn View) -> T) -> T {
        if let Some((driver, mut files)) = self.parts() {
            return operate(driver, &mut files);
        }
        let (state, _) = opening::before_first_write(&self.dir).unwrap_or_default();
        operate(&mut self.driver, &mut Absent::new(state, &mut self.attendance))
    }

    /// Goes on with the commit path, as far as it can go now.
    fn advance(&mut self) {
        let Some((driver, mut files)) = self.parts() else { return };
        while let Some(outcome) = files.threads.outcome() {
            let event = match outcome {
                Outcome::Synced(synced) => Event::Synced(files.synced(synced)),
                Outcome::Turn => Event::FileFree { seq: files.board.state.seq() },
            };
            driver.commit.handle(event, Instant::now());
        }
        let news = driver.run(&mut files);
        self.receive(news);
    }

    /// Completes everything that is pending before it returns.
    fn finish(&mut self) {
        // What is not complete by then waits for a process that has been stopped.
        let end = Instant::now() + 2 * LOCK_PATIENCE;
        self.driver.commit.finish(true);
        loop {
            self.advance();
            if self.board.is_none() || self.driver.commit.is_complete() || Instant::now() > end {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.driver.commit.finish(false);
    }

    /// Adopts or rejects the hand edits that wait, before anything else is answered.
    fn settle_edits(&mut self) {
        while self.access.unwritable.is_none()
            && let Some(board) = &self.board
            && let now = self.attendance.now(&board.state)
            && let Some(examined) = self.edits.read_next(board, now)
        {
            self.driver.commit.handle(Event::Edited(examined), Instant::now());
            self.finish();
            if self.driver.commit.failed_at().is_some() {
                return;
            }
        }
    }

    /// Catches up without holding the lock, after putting the board back if it is gone, and
    /// publishes what others have appended.
    fn catch_up(&mut self) -> Result<(), Arc<BoardError>> {
        let Some((driver, mut files)) = self.parts() else { return Ok(()) };
        let mut news = Default::default();
        let caught_up = driver.catch_up(&mut files, &mut news);
        self.receive(news);
        if caught_up.is_ok() {
            self.publish_seen();
        }
        caught_up
    }

    /// Makes durable what others have appended, and gives it to the feed, unless a round is about
    /// to do so.
    fn publish_seen(&mut self) {
        let is_soon = self.driver.commit.is_round_soon();
        let Some(board) = self.board.as_ref().filter(|_| !is_soon) else { return };
        match board.settle() {
            Ok(()) => self.driver.commit.durable(board.state.seq()),
            Err(error) => tracing::error!(%error, "what others have recorded is not durable"),
        }
    }

    /// Puts the state file back if it is missing or behind: it was deleted, or the process that was
    /// to show an event has died. A process that holds the file's lock is about to show it.
    fn show_again(&mut self) {
        let is_free = !self.driver.commit.is_round_pending() && self.access.unwritable.is_none();
        let Some(board) = self.board.as_ref().filter(|_| is_free) else { return };
        if !board.is_shown()
            && board.check_writable().is_ok()
            && matches!(board.lock.try_acquire_state_file(), Ok(true))
        {
            let behind = Event::Behind { seq: board.state.seq() };
            self.driver.commit.handle(behind, Instant::now());
            self.advance();
        }
    }
}
