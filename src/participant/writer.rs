//! The writer keeps this process's replica and takes every operation down the one commit path, on a
//! thread of its own.
//!
//! Writing calls gather while the writer waits for the lock, or while a batch is open, and are
//! committed together (group commit). Reads are answered from the replica after it has caught up,
//! once what they saw is durable. Calls that wait for a better answer are parked and tried again
//! whenever something changes.

mod batch;
mod callers;
mod messages;
mod reads;
mod regain;
mod round;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use notify::RecommendedWatcher;
use serde_json::Value;
use tokio::sync::oneshot;

use super::board::Board;
use super::editing::Edits;
use super::error::{BoardError, CallError, lock_error};
use super::feed::Feed;
use super::hints::{self, Hint};
use super::living::Others;
use super::lock::{self, LOCK_PATIENCE};
use super::locker::Locker;
use super::message::{Answer, Answers, Message, Queued, add_warning, answer_one, waited};
use super::metrics::Metrics;
use super::note::Note;
use super::opening::{self, is_begun};
use super::options::{Options, Stay};
use super::presence::{PresenceLock, is_present, last_attended};
use super::recovery::Author;
use super::upkeep::Upkeep;
use super::waiting::{Parked, Sight, Waiting};
use super::{naming, runs};
use crate::clock::BoardClock;
use crate::ops::init_coordination::InitCoordination;
use crate::ops::{self, Call, Fetched, History, NoHistory, Operation, Prepared, Vitals};
use crate::redact;
use crate::state::State;
use crate::state::agent::Participant;
use crate::state::deadline::STEP;
use crate::state::event::Recorded;
use crate::state::id::{AgentId, Chance, ParticipantId};
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::statefile;
use round::Rounds;

/// Most calls that are committed together.
const BATCH: usize = 64;
/// How often a process that outlives its calls checks whether the others are alive. Its other
/// periodic checks keep the same pace.
const PRESENCE_CHECK: Duration = Duration::from_secs(1);
/// Time between two touches of the presence file.
const BETWEEN_TOUCHES: Duration = Duration::from_secs(10);
/// Poll interval while somebody waits, in case the file system's notifications, which are only
/// hints, do not come.
const POLL_WHILE_PARKED: Duration = Duration::from_millis(250);
/// Shortest wait for a deadline, so that one that has come but cannot be recorded, because the lock
/// or the disk is unavailable, does not make the thread spin.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(20);

pub(crate) struct Writer {
    pub(super) dir: PathBuf,
    /// Name of the state file that this process was started with.
    state_file: Option<String>,
    forbidden: Option<String>,
    unasked: Option<String>,
    pub(super) unwritable: Option<String>,
    pub(super) participant: Participant,
    pub(super) stay: Stay,
    pub(super) clock: BoardClock,
    chance: Chance,
    pub(super) board: Option<Board>,
    pub(super) locker: Option<Locker>,
    pub(super) presence: Option<PresenceLock>,
    /// What this process says of itself in the file of that lock.
    note: Note,
    others: Others,
    watcher: Option<RecommendedWatcher>,
    hint: Hint,
    /// When a parked call or a feed listener was last waiting.
    listened_at: Option<Instant>,
    queue: VecDeque<Queued>,
    messages: Receiver<Message>,
    /// Messages that came while a batch was open and do not belong in it.
    put_off: Vec<Message>,
    /// What is committed and not yet answered.
    rounds: Rounds,
    /// Number of calls answered since `callers` was last counted.
    answered: usize,
    /// Estimated number of concurrent callers: the calls answered in the last turn, and those held
    /// or queued after it.
    callers: usize,
    waiting: Waiting,
    /// The agents that `auto` stands for, by name prefix.
    auto: HashMap<String, Vec<AgentId>>,
    pub(super) last_reap: Option<Instant>,
    /// Milliseconds that the machine had slept since it booted, as last noted in the lock file.
    slept: Option<i64>,
    /// When the replica last caught up without a call that needed it.
    pub(super) last_look: Option<Instant>,
    /// When a batch last failed; none if the last one succeeded. What time alone brings waits a
    /// second after that.
    failed_at: Option<Instant>,
    batches: u64,
    sender: SyncSender<Message>,
    feed: Arc<Feed>,
    edits: Edits,
    metrics: Arc<Metrics>,
    started_at: Timestamp,
    /// When this process opened the board, since when it looks after it.
    opened_at: Timestamp,
    /// When another process last looked after the board, as found then.
    attended_before: Option<Timestamp>,
    /// When the presence file was last touched.
    attended_at: Option<Instant>,
    /// Number of finished tasks that were left when some were last looked for to retire.
    retired_from: usize,
    /// Why others' changes are found by polling only, if the directory cannot be watched.
    unwatched: Option<String>,
    /// Why the state file could not be brought up to date, if it is behind.
    unshown: Option<String>,
    /// Whether calls are no longer parked.
    hurried: bool,
    /// Cloned by each call that is asking the archive, so that its reference count tells how many
    /// there are.
    fetching: Arc<()>,
    upkeep: Upkeep,
    /// Whether claims of runs that an earlier process left behind have been returned.
    has_returned: bool,
    /// What was repaired, to be told in the next reply.
    pub(super) report: Option<String>,
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
        let mut chance = Chance::new(options.seed);
        let participant = Participant {
            id: ParticipantId::trusted(format!("p-{}", chance.base32(10))),
            pid: std::process::id(),
            worktree: options.worktree.map(|path| redact::name(&path).unwrap_or(path)),
            joined_at: Timestamp::default(),
        };
        let mut clock = BoardClock::new(options.clock, lock::mark_of(&options.dir).as_ref());
        let others = Others::new(options.dir.clone(), participant.id.clone());
        Self {
            started_at: clock.now(Timestamp::default()),
            opened_at: Timestamp::default(),
            attended_before: None,
            attended_at: None,
            retired_from: 0,
            dir: options.dir,
            state_file: options.state_file,
            forbidden: options.forbidden,
            unasked: options.unasked,
            unwritable: options.unwritable,
            participant,
            stay: options.stay,
            clock,
            chance,
            board: None,
            locker: None,
            presence: None,
            note: Note::of_this_process(),
            others,
            watcher: None,
            hint: Hint::default(),
            listened_at: None,
            queue: VecDeque::new(),
            messages,
            put_off: Vec::new(),
            rounds: Rounds::default(),
            answered: 0,
            callers: 0,
            waiting: Waiting::default(),
            auto: HashMap::new(),
            last_reap: None,
            last_look: None,
            failed_at: None,
            batches: 0,
            sender,
            feed,
            edits: Edits::default(),
            metrics,
            unwatched: None,
            unshown: None,
            hurried: false,
            fetching: Arc::default(),
            upkeep: Upkeep::default(),
            has_returned: false,
            slept: None,
            report: None,
        }
    }

    /// Shows that this process lives, before its first call too: others must write nothing that it
    /// cannot read.
    fn show_life(&mut self) {
        if Board::exists(&self.dir)
            && let Err(error) = self.show_presence()
        {
            tracing::debug!(%error, "it is shown with the first call");
        }
    }

    /// Handles messages, and what is due by time, until it is told to stop.
    pub(super) fn serve(mut self) {
        self.show_life();
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
        if !self.hear(received) || self.rounds.has_company && !self.gather() {
            return false;
        }
        self.attend();
        if !self.hear(None) {
            return false;
        }
        self.count_callers();
        true
    }

    /// Completes everything owed, and then ends this process's presence on the board.
    fn stop(&mut self) {
        self.settle_here();
        self.presence = None;
    }

    fn attend(&mut self) {
        self.tend();
        if self.began_to_listen() {
            // What happened between the last look and the start of the watch has brought no hint.
            self.tend();
        }
        self.hear_syncer();
    }

    fn count_callers(&mut self) {
        // A lone caller may have called again since its answer.
        let again = usize::from(self.answered == 1 && self.queue.len() == 1);
        self.callers = self.answered + self.rounds.held() + self.queue.len() - again;
        self.answered = 0;
    }

    /// How long nothing is due if no message comes; `None` for ever.
    fn patience(&mut self) -> Option<Duration> {
        if !self.put_off.is_empty() {
            return Some(Duration::ZERO);
        }
        let listened_to = self.is_listened_to();
        let Some(board) = &self.board else {
            // A call may have come while an earlier one was being refused.
            let queued = (!self.queue.is_empty()).then_some(Duration::ZERO);
            return queued.or_else(|| listened_to.then_some(POLL_WHILE_PARKED));
        };
        let waits_for_lock = self.locker.as_ref().is_some_and(|locker| locker.waiting);
        if (!self.queue.is_empty() || self.waiting.is_unsettled()) && !waits_for_lock {
            return Some(Duration::ZERO);
        }
        let awaited = !self.waiting.is_empty() || !self.queue.is_empty() || self.rounds.is_owed();
        let patience = match (awaited, self.stay) {
            (true, _) => POLL_WHILE_PARKED,
            (false, Stay::Lasting | Stay::Presence) => PRESENCE_CHECK,
            (false, Stay::Brief) if listened_to => PRESENCE_CHECK,
            (false, Stay::Brief) => return None,
        };
        let patience = self.edits.patience().map_or(patience, |sooner| sooner.min(patience));
        let deadline = board.state.next_deadline().filter(|_| is_past(self.others.withheld_at()));
        let now = self.clock.now(Timestamp::default());
        let until =
            deadline.map(|at| Duration::from_millis(u64::try_from(at.since(now)).unwrap_or(0)));
        Some(until.map_or(patience, |until| until.clamp(SHORTEST_PATIENCE, patience)))
    }

    /// Does what is due: parked calls, deadlines, hand edits, and the queue, for which it needs the
    /// lock.
    fn tend(&mut self) {
        let listened_to = self.is_listened_to();
        if self.board.is_none() && listened_to && Board::exists(&self.dir) {
            // Somebody has made the board that these callers wait for. If it cannot be opened, they
            // are told so when their wait ends.
            drop(self.open(false));
        }
        let lasts = self.stay != Stay::Brief;
        if listened_to || lasts && is_past(self.last_look) {
            self.last_look = Some(Instant::now());
            match self.look_again() {
                Ok(()) => {
                    if is_past(self.last_reap) {
                        self.look_alive();
                    }
                    self.show_again();
                }
                Err(error) => tracing::warn!(%error, "the board could not be read"),
            }
            self.try_to_show();
            self.touch_presence();
        }
        self.unpark();
        let attends = lasts || !self.waiting.is_empty();
        let may_record = is_past(self.failed_at) && is_past(self.others.withheld_at());
        let time_has_come = attends && may_record && self.time_has_come();
        let edited = lasts && self.unwritable.is_none() && is_past(self.failed_at) && self.edited();
        if self.queue.is_empty() && !time_has_come && !edited {
            return;
        }
        if let Some(reason) = &self.unwritable {
            return self.refuse_queue(Arc::new(BoardError::Forbidden(reason.clone())));
        }
        let opened = self.check_asked().map_err(Arc::new).and_then(|()| self.open(true));
        if let Err(error) = opened {
            return self.refuse_queue(error);
        }
        self.seek_lock();
        self.give_up_on_lock();
    }

    /// Whether a parked call or a feed listener waits for what may happen.
    fn is_listened_to(&self) -> bool {
        !self.waiting.is_empty() || self.feed.is_heard()
    }

    /// Whether time alone has brought something that must be recorded.
    fn time_has_come(&mut self) -> bool {
        let now = self.clock.now(Timestamp::default());
        let Some(board) = &self.board else { return false };
        let someone_died = is_past(self.last_reap) && {
            let mut others = board.state.participants().filter(|one| one.id != self.participant.id);
            let died = others.any(|one| !is_present(&self.dir, one.id.as_str()));
            if !died {
                self.last_reap = Some(Instant::now());
            }
            died
        };
        let returned =
            |state| runs::returned(state, &self.participant.id, self.stay, self.started_at);
        self.has_returned |= !someone_died && returned(&board.state).is_empty();
        let is_owed = board.state.follow_up(0).is_some() || !self.has_returned;
        someone_died || is_owed || self.has_slept() || !board.state.expire(now).is_empty()
    }

    /// Refuses to make a board where no project is, unless a call asks for it.
    fn check_asked(&self) -> Result<(), BoardError> {
        let asks = |call: &Queued| call.prepared.name() == InitCoordination::NAME;
        match &self.unasked {
            Some(reason)
                if self.board.is_none() && !is_begun(&self.dir) && !self.queue.iter().any(asks) =>
            {
                Err(BoardError::Forbidden(self.forbidden.as_ref().unwrap_or(reason).clone()))
            }
            _ => Ok(()),
        }
    }

    /// Loads the board if there is one; makes it if `create` says so.
    fn open(&mut self, create: bool) -> Result<(), Arc<BoardError>> {
        if self.board.is_some() {
            return Ok(());
        }
        let exists = Board::exists(&self.dir);
        if let Some(reason) = &self.forbidden {
            return Err(Arc::new(BoardError::Forbidden(reason.clone())));
        }
        if !exists && !create {
            return Err(Arc::new(BoardError::Absent { dir: self.dir.clone() }));
        }
        let author = self.author();
        let asked = self.state_file.as_deref();
        let opened = if exists {
            naming::agree(&self.dir, asked)
                .and_then(|()| Board::open(&self.dir, self.unwritable.is_none().then_some(&author)))
        } else {
            let board_id = format!("board-{}", self.chance.base32(10));
            Board::create(&self.dir, &author, &board_id, asked)
        };
        let mut board = opened.map_err(Arc::new)?;
        self.locker = Some(self.wait_for_lock_of(&board).map_err(Arc::new)?);
        self.report = board.report.take().or(self.report.take());
        self.clock.settle(|| board.lock.mark());
        self.opened_at = self.clock.now(board.state.board().last_activity);
        // Before the board was there, nothing had told this process what its time is.
        self.started_at = self.started_at.min(self.opened_at);
        self.attended_before = last_attended(&self.dir, &self.participant.id);
        self.board = Some(board);
        self.look_alive();
        self.publish_seen();
        self.settle_edits();
        Ok(())
    }

    /// Touches the presence file once in a while, so that nobody takes a silent time for one when
    /// nobody ran.
    fn touch_presence(&mut self) {
        if self.attended_at.is_none_or(|at| at.elapsed() >= BETWEEN_TOUCHES)
            && let Some(presence) = &self.presence
        {
            self.attended_at = Some(Instant::now());
            self.clock.settle(|| lock::mark_of(&self.dir));
            if self.note.learn_clock(self.clock.ahead()) {
                drop(presence.note(&self.note));
            }
            drop(presence.touch(self.clock.now(Timestamp::default())));
            self.note_mark();
        }
    }

    /// Notes the board's time for the processes that come later, unless that was done a moment ago.
    fn note_mark(&mut self) {
        if let Some(board) = &self.board
            && let Some(mark) = self.clock.mark()
            && let Err(error) = board.lock.note_mark(&mark)
        {
            tracing::warn!(%error, "the board's time could not be noted");
        }
    }

    /// Whether the machine has slept since that was last noted.
    fn has_slept(&self) -> bool {
        self.slept.is_some_and(|noted| self.clock.slept() - noted > STEP)
    }

    /// Makes this process's presence visible. If that fails, the board can still be read.
    fn look_alive(&mut self) {
        if self.board.is_some()
            && let Err(error) = self.show_presence()
        {
            tracing::debug!(%error, "others cannot see that this process lives");
        }
    }

    /// Looks for hand edits. Returns whether there is one to deal with under the lock.
    fn edited(&mut self) -> bool {
        let Some(board) = &self.board else { return false };
        let now = self.clock.now(board.state.board().last_activity);
        self.edits.look(board, now, &self.sender)
    }

    /// Adopts or rejects the hand edits that wait, before anything else is answered.
    fn settle_edits(&mut self) {
        if self.unwritable.is_some() {
            return;
        }
        while let Some(board) = &self.board
            && self.edits.read_next(board, self.clock.now(board.state.board().last_activity))
        {
            // Whoever holds the lock is committing, which is quick, unless that process was
            // stopped.
            if lock::acquire(&board.lock).is_err() {
                return;
            }
            self.commit(true);
            if self.failed_at.is_some() {
                return;
            }
        }
    }

    pub(super) fn author(&mut self) -> Author {
        Author {
            participant: self.participant.id.clone(),
            now: self.clock.now(Timestamp::default()),
        }
    }

    pub(super) fn wait_for_lock_of(&self, board: &Board) -> Result<Locker, BoardError> {
        let sender = self.sender.clone();
        let spawned =
            board.lock.handle().and_then(|lock| Locker::spawn(lock, board.lock_generation, sender));
        spawned.map_err(|source| BoardError::Io {
            action: "cannot wait for the board's lock".to_owned(),
            source,
        })
    }

    /// Watches the directory while somebody waits, so that other processes' commits wake this one;
    /// returns whether it has just begun to. Only then, because a committing process pays for
    /// each one that it wakes. The notifications are hints only: there is a poll behind them.
    fn began_to_listen(&mut self) -> bool {
        if !self.is_listened_to() {
            if is_past(self.listened_at) {
                self.watcher = None;
            }
            return false;
        }
        self.listened_at = Some(Instant::now());
        let Some(board) =
            self.board.as_ref().filter(|_| self.watcher.is_none() && self.unwatched.is_none())
        else {
            return false;
        };
        match hints::watch(board.dir(), self.sender.clone(), self.hint.clone()) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => {
                tracing::warn!(%error, "changes are found by polling only");
                self.unwatched = Some(error.to_string());
            }
        }
        self.watcher.is_some()
    }

    /// Drops the watch, because the board now lies in another directory than the watched one.
    pub(super) fn watch_anew(&mut self) {
        (self.watcher, self.unwatched) = (None, None);
    }

    pub(super) fn catch_up(&mut self) -> Result<(), BoardError> {
        let Some(board) = &mut self.board else { return Ok(()) };
        board.lock.verify()?;
        board.check_name()?;
        if let Err(error) = board.config.look(&self.dir) {
            let told = format!("{error}; what it said before holds until it is mended");
            tracing::warn!("{told}");
            self.report =
                Some(self.report.take().map_or(told.clone(), |report| format!("{report}; {told}")));
        }
        let newest = board.catch_up()?;
        let now = self.clock.now(board.state.board().last_activity);
        board.state.set_aging(board.config.policy().aging());
        board.state.wake(now);
        self.caught_up(newest);
        Ok(())
    }

    fn caught_up(&mut self, newest: Vec<Recorded>) {
        self.rounds.has_company = !newest.is_empty();
        self.rounds.note(newest);
    }

    /// Adds the report of what was repaired to the first reply that succeeds.
    fn report_in(&mut self, answers: &mut Answers) {
        let succeeded = |(reply, answer): &&mut (oneshot::Sender<Answer>, Answer)| {
            answer.is_ok() && !reply.is_closed()
        };
        if self.report.is_some()
            && let Some((_, Ok(Value::Object(reply)))) = answers.iter_mut().find(succeeded)
            && let Some(report) = self.report.take()
        {
            add_warning(reply, &report);
        }
    }

    fn would_wait(&mut self, call: &Queued) -> bool {
        !self.hurried
            && self.with_call(call, |state, prepared, call| ops::waits(state, prepared, call))
    }

    /// Runs `operate` with everything that the pure core may know.
    fn with_call<T>(
        &mut self,
        call: &Queued,
        operate: impl FnOnce(&mut State, &dyn Prepared, Call) -> T,
    ) -> T {
        let started_as = call.caller.default_agent();
        let default_agent = self.resolved(&started_as);
        let seed = self.chance.draw();
        let mut shown;
        let default_policy;
        let troubles = self.troubles();
        let dir = &self.dir;
        let state_file_seq = || statefile::seq_of(dir).ok().flatten().map(|shown| shown.seq);
        let living = || self.others.living();
        let vitals = Vitals {
            started_at: self.started_at,
            troubles,
            state_file_seq: &state_file_seq,
            living: &living,
            ahead: self.clock.ahead(),
        };
        let (state, history, policy): (&mut State, Box<dyn History + '_>, &Policy) =
            match &mut self.board {
                Some(board) => {
                    let (state, history, policy) = board.split();
                    (state, Box::new(history), policy)
                }
                None => {
                    let (state, _) = opening::before_first_write(&self.dir).unwrap_or_default();
                    (shown, default_policy) = (state, Policy::default());
                    (&mut shown, Box::new(NoHistory), &default_policy)
                }
            };
        let now = self.clock.now(state.board().last_activity);
        let context = Call {
            presence: (self.stay == Stay::Presence).then_some(&self.participant),
            place: &call.site.place,
            uncommitted: call.site.uncommitted.as_deref(),
            fetched: call.fetched.as_deref().unwrap_or(&Fetched::Nothing),
            default_agent: &default_agent,
            started_as: &started_as,
            principal: call.caller.principal.as_deref(),
            remote: call.caller.remote,
            command: call.caller.command.as_deref(),
            reader: call.caller.reader,
            ..Call::new(now, seed, policy, &self.participant.id, history.as_ref(), &vitals)
        };
        operate(state, call.prepared.as_ref(), context)
    }

    /// The state file's name.
    fn file_name(&self) -> &str {
        self.board.as_ref().map_or(statefile::FILE_NAME, |board| board.dir().name())
    }

    /// What does not work as it should, in words for the operator.
    fn troubles(&self) -> Vec<String> {
        let outdated = self.board.as_ref().and_then(|board| board.check_writable().err());
        let unshown = self.unshown.as_ref().map(|error| {
            let name = self.file_name();
            format!(
                "{name} could not be written ({error}); operations are safe in the journal, and \
                 it is tried again"
            )
        });
        let unwatched = self
            .unwatched
            .as_ref()
            .map(|error| format!("changes are found by polling only ({error})"));
        outdated
            .map(|error| error.to_string())
            .into_iter()
            .chain(unshown)
            .chain(unwatched)
            .collect()
    }

    fn park(&mut self, call: Queued) {
        if self.waiting.len() >= limit::WAITING.max {
            let error = BoardError::Overloaded { waiting: self.waiting.len() };
            return answer_one(call.reply, Err(error.into()));
        }
        let until = call.entered + waited(&call);
        self.waiting.park(call, until).into_iter().for_each(supersede);
    }

    /// Wakes parked calls whose time is up or whose answer has changed. At most one batch at a
    /// time, because others call, too, and no more than there are ready tasks, because the rest
    /// would only wait again.
    fn unpark(&mut self) {
        for parked in self.waiting.due() {
            self.wake(parked);
        }
        self.waiting.see(self.board.as_ref().map(|board| Sight::of(&board.state, self.hurried)));
        let ready = self
            .board
            .as_ref()
            .map_or(0, |board| board.state.ready_count() + board.state.runs().pending());
        let mut room = if ready == 0 { BATCH } else { ready.min(BATCH) };
        while room > 0 {
            let Some(parked) = self.waiting.next_unsettled() else { return };
            if parked.call.reply.is_closed() {
                continue;
            }
            if self.would_wait(&parked.call) {
                self.waiting.settle(parked);
            } else {
                self.wake(parked);
                room -= 1;
            }
        }
    }

    fn wake(&mut self, parked: Parked) {
        if parked.call.prepared.annotations().read_only {
            self.read(parked.call, false);
        } else {
            self.queue.push_back(parked.call);
        }
    }

    /// Commits at once when the lock is free, else asks the locker for it.
    fn seek_lock(&mut self) {
        // An earlier attempt to start a locker may have found no thread.
        if let Err(error) = self.replace_locker() {
            return self.refuse_queue(Arc::new(error));
        }
        let (Some(board), Some(locker)) = (&self.board, &mut self.locker) else { return };
        if locker.waiting {
            return;
        }
        match board.lock.try_acquire_journal() {
            Ok(true) => self.commit(false),
            Ok(false) => locker.request(),
            Err(source) => self.refuse_queue(Arc::new(lock_error(source))),
        }
    }

    fn locked(&mut self, acquired: io::Result<()>, generation: u64) {
        match &mut self.locker {
            Some(locker) if locker.generation == generation => locker.waiting = false,
            // The lock is on a file that was deleted since; it is freed with its last handle.
            _ => return,
        }
        match acquired {
            Ok(()) => self.commit(false),
            Err(source) => self.refuse_queue(Arc::new(lock_error(source))),
        }
    }

    fn give_up_on_lock(&mut self) {
        let Some(board) = &self.board else { return };
        let seconds = LOCK_PATIENCE.as_secs();
        let is_late = |call: &Queued| call.entered.elapsed() > LOCK_PATIENCE + waited(call);
        let (late, rest): (VecDeque<_>, _) = self.queue.drain(..).partition(is_late);
        self.queue = rest;
        for call in late {
            let error = BoardError::Locked { holder: board.lock.holder(), seconds };
            answer_one(call.reply, Err(CallError::Failed(Arc::new(error))));
        }
    }

    fn refuse_queue(&mut self, error: Arc<BoardError>) {
        for call in self.queue.drain(..) {
            answer_one(call.reply, Err(CallError::Failed(Arc::clone(&error))));
        }
    }

    /// Commits one batch; this process holds the journal's lock. `here` means that nothing else is
    /// done until the answers have left.
    fn commit(&mut self, here: bool) {
        let mut answers = Answers::new();
        let committed = self.commit_batch(&mut answers);
        // With several callers, waking the syncer comes first.
        if self.is_alone() {
            self.hasten();
        }
        self.metrics.committed(answers.len());
        self.report_in(&mut answers);
        self.failed_at = committed.is_err().then(Instant::now);
        // After a verdict on a hand edit the lock is kept until that is carried out: another
        // process would decide on the same file again, or on another that has its name by
        // then.
        if !matches!(committed, Ok(Some(_))) {
            self.release_journal();
        }
        match committed {
            Ok(verdict) => {
                let here = here || verdict.is_some() || self.stay == Stay::Brief;
                self.owe(answers, verdict);
                if here {
                    self.settle_here();
                    self.release_journal();
                } else {
                    self.advance();
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for (reply, _) in answers {
                    answer_one(reply, Err(CallError::Failed(Arc::clone(&error))));
                }
                self.refuse_queue(error);
                if let Some(board) = self.board.as_ref().filter(|_| !self.rounds.is_under_way()) {
                    board.lock.release_state_file();
                }
                if self.stay == Stay::Brief {
                    self.tend_board();
                }
            }
        }
    }

    fn release_journal(&self) {
        if let Some(board) = &self.board {
            board.lock.release_journal();
        }
    }

    fn tend_board(&mut self) {
        if let Some(board) = &self.board {
            self.upkeep.look(board, self.clock.now(board.state.board().last_activity), self.stay);
        }
    }
}

/// Whether a check that is made once a second, and was made at `last`, is due.
fn is_past(last: Option<Instant>) -> bool {
    last.is_none_or(|last| last.elapsed() >= PRESENCE_CHECK)
}

fn supersede(parked: Parked) {
    let agent = AgentId::trusted(parked.call.prepared.agent_id().unwrap_or("of this process"));
    answer_one(parked.call.reply, Err(CallError::Refused(Refusal::Superseded { agent })));
}
