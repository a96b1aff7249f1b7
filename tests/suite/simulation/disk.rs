//! The disk of a simulated process: what all processes share, and what is its own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use callboard::clock::{BoardClock, Mark};
use callboard::journal::{AppendError, BatchId, JournalError};
use callboard::ops::{Due, History};
use callboard::participant::BoardError;
use callboard::participant::commit::Placed;
use callboard::participant::disk::{Blocked, Disk, Parts, Peers, View};
use callboard::participant::holder::Holder;
use callboard::state::State;
use callboard::state::agent::Participant;
use callboard::state::deadline::STEP;
use callboard::state::document::{Document, Undone};
use callboard::state::event::{Event, Recorded};
use callboard::state::id::{ParticipantId, TaskId};
use callboard::state::level::Living;
use callboard::state::policy::Policy;
use callboard::state::run::rows::Rows;
use callboard::state::time::Timestamp;

use super::clocks::{Clocks, Moment, Truth};
use super::journal::Journal;
use crate::world::dropped_at;

/// What the processes of a machine share.
pub(crate) struct Shared {
    pub(crate) journal: Journal,
    pub(crate) clocks: Clocks,
    pub(crate) truth: Truth,
    /// Processes that live.
    pub(crate) living: BTreeSet<ParticipantId>,
    /// The seats that hold the locks of journal and state file, and those for which a thread waits.
    pub(crate) lock: Option<usize>,
    pub(crate) awaits_lock: BTreeSet<usize>,
    pub(crate) file_lock: Option<usize>,
    pub(crate) awaits_file: BTreeSet<usize>,
    /// The state file, as processes see it and as a power loss leaves it.
    pub(crate) file: Option<Document>,
    pub(crate) file_on_disk: Option<Document>,
    /// What processes have noted beside the lock: the board's time, and how long the machine has
    /// slept in which boot.
    pub(crate) noted: Option<Mark>,
    pub(crate) slept: Option<(u64, i64)>,
    /// When a process last touched its presence file, in the board's time.
    pub(crate) attended: Option<Timestamp>,
    /// Whether the next search for a batch, or the next sync, fails.
    pub(crate) fails_to_find: bool,
    pub(crate) fails_to_sync: bool,
}

pub(crate) struct SimulatedDisk {
    pub(crate) shared: Rc<RefCell<Shared>>,
    pub(crate) seat: usize,
    pub(crate) state: State,
    pub(crate) clock: BoardClock,
    pub(crate) policy: Policy,
    /// The state file that was written and is not in its place yet.
    pub(crate) unplaced: Option<Document>,
    /// The event up to which another thread syncs the log.
    pub(crate) syncs_to: Option<u64>,
    pub(crate) report: Option<String>,
    /// Whether a process lives through which an agent acts, at the last batch.
    is_attended: bool,
    /// When that began.
    began_at: Moment,
    start: Instant,
}

impl SimulatedDisk {
    pub(crate) fn new(
        shared: &Rc<RefCell<Shared>>,
        seat: usize,
        state: State,
        policy: Policy,
    ) -> Self {
        let shared = Rc::clone(shared);
        let clock = {
            let shared = shared.borrow();
            BoardClock::new(Box::new(shared.clocks.of(seat)), shared.noted.as_ref())
        };
        Self {
            shared,
            seat,
            state,
            clock,
            policy,
            unplaced: None,
            syncs_to: None,
            report: None,
            is_attended: false,
            began_at: Moment::default(),
            start: Instant::now(),
        }
    }

    pub(crate) fn journal(&self) -> Journal {
        self.shared.borrow().journal.clone()
    }

    /// Applies what others have appended, and returns it.
    pub(crate) fn follow(&mut self) -> Vec<Recorded> {
        let newest = self.journal().read(self.state.seq(), usize::MAX);
        for recorded in &newest {
            self.state.apply(recorded).unwrap();
            self.state.settle();
        }
        let now = self.now();
        self.state.wake(now);
        newest
    }

    fn now(&mut self) -> Timestamp {
        self.clock.now(self.state.board().last_activity)
    }

    fn synced(&mut self, seq: u64) -> Result<(), BoardError> {
        if std::mem::take(&mut self.shared.borrow_mut().fails_to_sync) {
            return Err(BoardError::Unknown(io::Error::other("a failed sync").into()));
        }
        self.journal().sync(seq);
        Ok(())
    }

    /// Milliseconds that the machine has slept since that was last noted, if that is worth a word.
    fn slept_unnoticed(&self) -> Option<i64> {
        let Moment { boot, slept, .. } = self.began_at;
        let noted = self.shared.borrow().slept.filter(|(noted_in, _)| *noted_in == boot);
        noted.map(|(_, noted)| slept - noted).filter(|unnoticed| *unnoticed > STEP)
    }
}

struct Past(Journal);

impl History for Past {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        _ = self.0.read(seq, limit).into_iter().try_for_each(take);
        Ok(())
    }

    fn retired_at(&self, id: &TaskId, undone: &[Undone]) -> Result<Option<u64>, String> {
        Ok(dropped_at(self.0.read(0, usize::MAX).iter(), id, undone))
    }
}

struct Equals;

impl Peers for Equals {
    fn living(&self) -> Vec<Living> {
        Vec::new()
    }

    fn admit(&self, _: &State, _: &Event) -> bool {
        true
    }

    fn state_file_seq(&self) -> Option<u64> {
        None
    }
}

impl View for SimulatedDisk {
    fn parts(&mut self) -> Parts<'_> {
        let (now, history) = (self.now(), Box::new(Past(self.journal())));
        let (state, policy) = (&mut self.state, &self.policy);
        Parts { state, history, policy, now, peers: &Equals, ahead: None }
    }
}

impl Disk for SimulatedDisk {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn report(&mut self) -> &mut Option<String> {
        &mut self.report
    }

    fn instant(&self) -> Instant {
        let passed = u64::try_from(self.shared.borrow().clocks.passed()).unwrap();
        self.start + Duration::from_millis(passed)
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        let mut shared = self.shared.borrow_mut();
        Ok(*shared.lock.get_or_insert(self.seat) == self.seat)
    }

    fn await_lock(&mut self) {
        self.shared.borrow_mut().awaits_lock.insert(self.seat);
    }

    fn unlock(&mut self) {
        self.shared.borrow_mut().lock.take_if(|holder| *holder == self.seat);
    }

    fn holder(&self) -> Holder {
        Holder::default()
    }

    fn begin(&mut self) -> Result<Vec<Recorded>, Blocked> {
        assert_eq!(self.shared.borrow().lock, Some(self.seat), "a batch without the lock");
        self.began_at = self.shared.borrow().clocks.moment();
        let newest = self.follow();
        let noted = self.shared.borrow().noted.clone();
        self.clock.settle(|| noted);
        self.now();
        if let Some(mark) = self.clock.mark() {
            self.shared.borrow_mut().noted = Some(mark);
        }
        Ok(newest)
    }

    fn due(&mut self) -> Due {
        let shared = self.shared.borrow();
        let is_dead = |one: &&std::sync::Arc<Participant>| !shared.living.contains(&one.id);
        let gone: Vec<_> = self.state.participants().filter(is_dead).cloned().collect();
        let attended = shared.attended.unwrap_or_default();
        drop(shared);
        let last_activity = self.state.board().last_activity;
        self.is_attended = gone.len() < self.state.participants().count();
        let nobody_ran = !gone.is_empty() && gone.len() == self.state.participants().count();
        let idle = self.now().since(last_activity.max(attended));
        let unattended = (nobody_ran && idle > STEP).then_some(idle);
        Due { gap: unattended.max(self.slept_unnoticed()), gone }
    }

    fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        _: &Rows,
    ) -> Result<(), AppendError> {
        let mut shared = self.shared.borrow_mut();
        let Shared { journal, truth, .. } = &mut *shared;
        let journal = journal.clone();
        // An attempt whose outcome is unknown counts, too.
        if journal.head() == expected {
            truth.note(events, self.began_at);
        }
        journal.append(expected, batch, events)?;
        truth.check_steps(events, self.began_at, self.is_attended);
        Ok(())
    }

    fn find(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError> {
        if std::mem::take(&mut self.shared.borrow_mut().fails_to_find) {
            return Err(BoardError::Unknown(error));
        }
        let journal = self.journal();
        journal.checkpoint();
        if journal.holds(batch) { Ok(()) } else { Err(BoardError::NotWritten(error)) }
    }

    fn end(&mut self, appended: Option<&Due>) {
        let slept = (self.began_at.boot, self.began_at.slept);
        let is_news = self.shared.borrow().slept.is_none_or(|noted| noted.0 != slept.0)
            || self.slept_unnoticed().is_some();
        if appended.is_some() && is_news {
            self.shared.borrow_mut().slept = Some(slept);
        }
    }

    fn learn(&mut self, _: Option<&str>) {}

    fn doubt_presence(&mut self) {}

    fn hasten(&mut self) {}

    fn catch_up(&mut self) -> Result<Vec<Recorded>, Blocked> {
        Ok(self.follow())
    }

    fn regain(&mut self) -> Result<(), BoardError> {
        panic!("nothing has vanished")
    }

    fn is_durable(&self) -> bool {
        self.journal().durable() >= self.state.seq()
    }

    fn shown(&self) -> Option<u64> {
        let shown = self.shared.borrow().file.as_ref().map(|document| document.board.seq);
        shown.map(|seq| seq.min(self.state.seq()))
    }

    fn note_shown(&mut self, seq: u64) {
        assert!(self.journal().durable() >= seq, "event {seq} is shown and not durable");
    }

    fn try_lock_file(&mut self) -> io::Result<bool> {
        let mut shared = self.shared.borrow_mut();
        Ok(*shared.file_lock.get_or_insert(self.seat) == self.seat)
    }

    fn await_file(&mut self) {
        self.shared.borrow_mut().awaits_file.insert(self.seat);
    }

    fn file_holder(&self) -> Holder {
        Holder::default()
    }

    fn is_overtaken(&self) -> bool {
        self.shared
            .borrow()
            .file
            .as_ref()
            .is_some_and(|document| document.board.seq > self.state.seq())
    }

    fn sync(&mut self, here: bool) -> Option<Result<(), BoardError>> {
        assert_eq!(self.shared.borrow().file_lock, Some(self.seat), "a round without the lock");
        self.unplaced = Some(self.state.to_document());
        if here {
            return Some(self.synced(self.state.seq()));
        }
        self.syncs_to = Some(self.state.seq());
        None
    }

    fn finish_sync(&mut self) -> Result<(), BoardError> {
        let seq = self.syncs_to.take().expect("a sync is under way");
        self.synced(seq)
    }

    fn place(&mut self) -> Placed {
        let unplaced = self.unplaced.take().expect("a file was written");
        let mut shared = self.shared.borrow_mut();
        let durable = shared.journal.durable();
        assert!(unplaced.board.seq <= durable, "the file is ahead of what is durable, {durable}");
        let shown = shared.file.as_ref().map_or(0, |document| document.board.seq);
        assert!(unplaced.board.seq >= shown, "the file goes back from {shown}");
        shared.file = Some(unplaced);
        assert_eq!(shared.file_lock.take(), Some(self.seat), "a file is placed without the lock");
        Placed::Done { warning: None, unshown: None }
    }

    fn give_up(&mut self) {
        self.unplaced = None;
        self.shared.borrow_mut().file_lock.take_if(|holder| *holder == self.seat);
    }

    fn sync_alone(&mut self) -> Result<(), BoardError> {
        self.synced(self.state.seq())
    }

    fn is_gone(&self) -> bool {
        false
    }
}
