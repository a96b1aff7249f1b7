//! A simulated machine: processes that run the commit path that ships, on clocks and a disk that
//! fail, and that are stopped and killed between any two actions.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use callboard::journal::BatchId;
use callboard::ops::{Fetched, find};
use callboard::participant::commit::{Action, Event as Happened};
use callboard::participant::disk::Disk;
use callboard::participant::driver::Driver;
use callboard::participant::{Answer, BoardError, CallError, Caller, Queued, Stay};
use callboard::state::agent::Participant;
use callboard::state::event::Event;
use callboard::state::id::{Chance, ParticipantId};
use callboard::state::limit::KEYS_REMEMBERED;
use callboard::state::policy::Policy;
use callboard::state::refusal::Refusal;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::time::Timestamp;
use callboard::state::{Envelope, State};
use serde_json::Value;
use tokio::sync::oneshot::Receiver;

use super::clocks::{Clocks, Truth};
use super::disk::{Shared, SimulatedDisk};
use super::journal::{Fate, Journal};

pub(crate) const SEATS: usize = 4;
/// More actions than a process takes without waiting for anything.
const MOST_ACTIONS: usize = 1_000;
/// Longer than a call waits for a lock, in milliseconds.
const LONGER_THAN_PATIENCE: i64 = 6_000;

/// What happens to a process during a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    KilledBeforeAppend,
    DiskFull,
    /// Written but not synced; then the process dies, asks the journal what it holds, or cannot
    /// even do that.
    TornAndKilled,
    Torn,
    TornForGood,
    /// Another process appends in between, though this one has the lock.
    Overtaken,
    /// The process is stopped with the journal's lock.
    StoppedBeforeAppend,
    /// A call comes while the log is synced for others, and the process is stopped when those are
    /// answered.
    CalledMeanwhile,
    /// The process is killed after the append: others may read what no process has synced.
    KilledBehindAppend,
    /// The process lives, but has not come to its round of syncing.
    NoRoundYet,
    SyncFails,
    /// The process is stopped with the state file's lock.
    StoppedBehindSync,
    KilledBehindSync,
    KilledBeforeReplies,
    /// The process lives, but its replies are lost.
    RepliesLost,
}

/// What a caller knows about a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Answer(Result<Value, Refusal>),
    /// Certainly nothing was done.
    NotDone,
    Nothing,
}

pub(crate) struct Process {
    driver: Driver,
    pub(crate) disk: SimulatedDisk,
    /// The last event that its feed has.
    published: u64,
    /// What it was stopped before.
    stopped_before: Option<Action>,
    /// Calls that come while the log is synced.
    meanwhile: Vec<Queued>,
}

/// Where a process stands after it was driven.
#[derive(Clone, Copy, PartialEq)]
enum Driven {
    /// It has nothing to do, or waits for a lock.
    Waits,
    Stopped,
    Killed,
}

pub(crate) struct Machine {
    pub(crate) shared: Rc<RefCell<Shared>>,
    pub(crate) journal: Journal,
    pub(crate) clocks: Clocks,
    pub(crate) seats: [Option<Process>; SEATS],
    /// Seats whose processes are stopped between two actions.
    stopped: BTreeSet<usize>,
    policy: Policy,
    started: u64,
    chance: Chance,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Self {
        let journal = Journal::default();
        let at = Timestamp::from_millis(1_772_366_400_000);
        let mut state = State::new();
        let participant = ParticipantId::trusted("p-first");
        let envelope = Envelope { at, participant, actor: None, idempotency: None };
        let created = Event::BoardCreated { board_id: "board-sim".to_owned(), numbered: true };
        let created = state.record(created, &envelope).unwrap();
        journal.append(0, &BatchId::new("p-first/0"), &[created]).unwrap();
        journal.sync(1);
        let clocks = Clocks::new(at);
        let shared = Shared {
            journal: journal.clone(),
            clocks: clocks.clone(),
            truth: Truth::default(),
            living: BTreeSet::new(),
            lock: None,
            awaits_lock: BTreeSet::new(),
            file_lock: None,
            awaits_file: BTreeSet::new(),
            file: None,
            file_on_disk: None,
            noted: None,
            slept: None,
            attended: None,
            fails_to_find: false,
            fails_to_sync: false,
        };
        Self {
            shared: Rc::new(RefCell::new(shared)),
            journal,
            clocks,
            seats: [const { None }; SEATS],
            stopped: BTreeSet::new(),
            // Small, so that tasks retire during the work.
            policy: Policy { keep_finished: 4, keep_stubs: 6, ..Policy::default() },
            started: 0,
            chance: Chance::new(seed ^ 0x5eed),
        }
    }

    /// Processes that live and are not in the middle of a batch.
    pub(crate) fn living(&self) -> impl Iterator<Item = usize> {
        (0..SEATS).filter(|seat| self.seats[*seat].is_some() && !self.stopped.contains(seat))
    }

    /// Starts a process from the state file, if it is sound, and the end of the journal.
    pub(crate) fn start(&mut self, seat: usize, file_is_sound: bool) {
        if self.seats.iter().all(Option::is_none) {
            self.journal.recover();
        }
        let file = self.shared.borrow().file.clone().filter(|_| file_is_sound);
        let head = self.journal.head();
        let state = file.map_or_else(State::new, |document| {
            let shown = document.board.seq;
            assert!(shown <= head, "the file is at {shown} and the journal at {head}");
            let text = serde_json::to_string(&document).unwrap();
            State::from_document(serde_json::from_str(&text).unwrap())
        });
        self.started += 1;
        let participant = Participant {
            id: ParticipantId::trusted(format!("p-{}", self.started)),
            pid: u32::try_from(self.started).unwrap(),
            worktree: None,
            joined_at: Timestamp::default(),
        };
        self.shared.borrow_mut().living.insert(participant.id.clone());
        let mut disk = SimulatedDisk::new(&self.shared, seat, state, self.policy.clone());
        for recorded in self.journal.keyed(KEYS_REMEMBERED) {
            if recorded.seq <= disk.state.seq() {
                disk.state.remember(&recorded);
            }
        }
        disk.follow();
        // Agents live in every other process, and one ends with its answers.
        let stay = [Stay::Presence, Stay::Lasting, Stay::Presence, Stay::Brief][seat];
        let started_at = disk.clock.now(Timestamp::default());
        let published = disk.state.seq();
        let driver = Driver::new(participant, stay, Chance::new(self.started), started_at);
        self.seats[seat] =
            Some(Process { driver, disk, published, stopped_before: None, meanwhile: Vec::new() });
    }

    pub(crate) fn kill(&mut self, seat: usize) {
        self.stopped.remove(&seat);
        let Some(process) = self.seats[seat].take() else { return };
        let mut shared = self.shared.borrow_mut();
        shared.living.remove(&process.driver.participant.id);
        shared.lock.take_if(|holder| *holder == seat);
        shared.file_lock.take_if(|holder| *holder == seat);
        shared.awaits_lock.remove(&seat);
        shared.awaits_file.remove(&seat);
    }

    /// Kills everything and boots again after `off` milliseconds. The disk keeps what was synced,
    /// an old or the new state file, and perhaps what was noted beside the lock.
    pub(crate) fn lose_power(&mut self, file_was_written_out: bool, off: i64) {
        (0..SEATS).for_each(|seat| self.kill(seat));
        self.clocks.boot(off);
        let mut shared = self.shared.borrow_mut();
        shared.noted.take_if(|_| !file_was_written_out);
        if file_was_written_out {
            shared.file_on_disk = shared.file.clone();
        }
        shared.file = shared.file_on_disk.clone();
        self.journal.lose_power();
    }

    /// Time passes, in which each living process touches its presence file.
    pub(crate) fn pass(&mut self, millis: i64) {
        self.clocks.pass(millis);
        let living = self.seats.iter_mut().flatten();
        let now = living.map(|process| process.disk.clock.now(Timestamp::default())).max();
        let mut shared = self.shared.borrow_mut();
        shared.attended = now.or(shared.attended);
    }

    /// The kernel writes the state file to the disk at some time.
    pub(crate) fn write_file_out(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.file_on_disk = shared.file.clone();
    }

    /// Makes calls through a process. Returns what each caller hears.
    pub(crate) fn commit(
        &mut self,
        seat: usize,
        calls: &[(&'static str, Value)],
        fault: Fault,
    ) -> Vec<Heard> {
        let mut answers = Vec::new();
        for (number, (name, arguments)) in calls.iter().enumerate() {
            let later = fault == Fault::CalledMeanwhile && number > 1;
            answers.push(self.call(seat, name, arguments.clone(), later));
        }
        let mut driven = self.drive(seat, fault);
        while driven == Driven::Waits && self.is_held_up(seat) {
            self.release_others(seat);
            driven = self.drive(seat, Fault::None);
        }
        let mut shared = self.shared.borrow_mut();
        (shared.fails_to_find, shared.fails_to_sync) = (false, false);
        let heard = answers.into_iter().map(|answer| match answer {
            Err(refusal) => Heard::Answer(Err(refusal)),
            Ok(_) if fault == Fault::RepliesLost => Heard::Nothing,
            Ok(mut answer) => answer.try_recv().map_or(Heard::Nothing, heard),
        });
        heard.collect()
    }

    fn call(
        &mut self,
        seat: usize,
        name: &'static str,
        arguments: Value,
        later: bool,
    ) -> Result<Receiver<Answer>, Refusal> {
        let Some(process) = &mut self.seats[seat] else { panic!("seat {seat} is empty") };
        let prepared = find(name).unwrap().prepare(arguments)?;
        let now = process.disk.instant();
        // Snapshots are not simulated: there is always room for another.
        let name = || SnapshotName::new(Timestamp::default(), "0123abcd");
        let taken = || Fetched::Taken(Listed { name: name(), bytes: 1, head: None });
        let fetched = prepared.fetches().then(|| Box::new(taken()));
        let (mut call, answer) = Queued::new(prepared.into(), Caller::default(), now);
        call.fetched = fetched;
        if later {
            process.meanwhile.push(call);
        } else {
            process.driver.commit.handle(Happened::Called(call), now);
        }
        Ok(answer)
    }

    /// Whether the process waits for a lock that another has.
    fn is_held_up(&self, seat: usize) -> bool {
        let Some(process) = &self.seats[seat] else { return false };
        process.driver.commit.has_calls() || process.driver.commit.is_round_pending()
    }

    /// Has those who hold the locks go on, die, or stay stopped for longer than a call waits.
    fn release_others(&mut self, seat: usize) {
        let holders = {
            let shared = self.shared.borrow();
            [shared.lock, shared.file_lock].into_iter().flatten().collect::<BTreeSet<_>>()
        };
        let choice = self.chance.draw() % 3;
        for holder in holders.into_iter().filter(|holder| *holder != seat) {
            match choice {
                0 => self.kill(holder),
                1 => drop(self.drive(holder, Fault::None)),
                _ => {}
            }
        }
        if choice == 2 || self.chance.draw().is_multiple_of(4) {
            self.pass(LONGER_THAN_PATIENCE);
        } else {
            self.pass(1_000);
        }
        self.grant_locks();
    }

    /// Gives locks that are free to the threads that wait for them.
    fn grant_locks(&mut self) {
        let awaits = self.shared.borrow().awaits_lock.iter().copied().collect::<Vec<_>>();
        for seat in awaits {
            if self.shared.borrow().lock.is_some() {
                break;
            }
            let mut shared = self.shared.borrow_mut();
            shared.awaits_lock.remove(&seat);
            shared.lock = Some(seat);
            drop(shared);
            self.happens(seat, |_| Happened::LockCame(Ok(())));
        }
        if self.shared.borrow().file_lock.is_none() {
            let awaits = std::mem::take(&mut self.shared.borrow_mut().awaits_file);
            for seat in awaits {
                self.happens(seat, |seq| Happened::FileFree { seq });
            }
        }
    }

    fn happens(&mut self, seat: usize, event: impl FnOnce(u64) -> Happened) {
        if let Some(process) = &mut self.seats[seat] {
            let event = event(process.disk.state.seq());
            let now = process.disk.instant();
            process.driver.commit.handle(event, now);
        }
    }

    /// Has the process do what there is to do, until the fault meets it.
    fn drive(&mut self, seat: usize, fault: Fault) -> Driven {
        self.stopped.remove(&seat);
        let mut is_overtaken = false;
        for _ in 0..MOST_ACTIONS {
            let Some(process) = &mut self.seats[seat] else { return Driven::Killed };
            let now = process.disk.instant();
            let stopped_before = process.stopped_before.take();
            let Some(action) = stopped_before.or_else(|| process.driver.commit.next(now)) else {
                if !process.meanwhile.is_empty() {
                    let calls = std::mem::take(&mut process.meanwhile).into_iter();
                    calls
                        .for_each(|call| process.driver.commit.handle(Happened::Called(call), now));
                    continue;
                }
                if !self.finish_sync(seat) {
                    let shared = self.shared.borrow();
                    let holds = [shared.lock, shared.file_lock].contains(&Some(seat));
                    assert!(!holds, "a process that waits keeps a lock from others");
                    return Driven::Waits;
                }
                if fault == Fault::KilledBehindSync {
                    self.kill(seat);
                    return Driven::Killed;
                }
                continue;
            };
            let kind = Kind::of(&action);
            match (fault, kind) {
                (Fault::KilledBeforeAppend, Kind::Append)
                | (Fault::TornAndKilled, Kind::Find)
                | (Fault::KilledBeforeReplies, Kind::Reply) => {
                    self.kill(seat);
                    return Driven::Killed;
                }
                (Fault::DiskFull, Kind::Append) => self.journal.doom(Fate::Refused),
                (Fault::TornAndKilled | Fault::Torn | Fault::TornForGood, Kind::Append) => {
                    self.journal.doom(Fate::Torn);
                }
                (Fault::TornForGood, Kind::Find) => {
                    self.shared.borrow_mut().fails_to_find = true;
                }
                (Fault::SyncFails, Kind::Sync) => self.shared.borrow_mut().fails_to_sync = true,
                (Fault::Overtaken, Kind::Append) if !is_overtaken => {
                    is_overtaken = true;
                    self.overtake(seat);
                }
                _ => {}
            }
            let stops = matches!(
                (fault, kind),
                (Fault::StoppedBeforeAppend, Kind::Append)
                    | (Fault::NoRoundYet, Kind::AskShown)
                    | (Fault::StoppedBehindSync, Kind::Place)
            );
            let Some(process) = &mut self.seats[seat] else { return Driven::Killed };
            if stops {
                process.stopped_before = Some(action);
                self.stopped.insert(seat);
                return Driven::Stopped;
            }
            process.perform(action);
            self.journal.doom(Fate::Written);
            if fault == Fault::KilledBehindAppend && kind == Kind::Append {
                self.kill(seat);
                return Driven::Killed;
            }
            if fault == Fault::CalledMeanwhile && kind == Kind::Reply {
                return Driven::Stopped;
            }
        }
        panic!("the process goes round in a circle");
    }

    /// The sync on the other thread comes to its end, if there is one.
    fn finish_sync(&mut self, seat: usize) -> bool {
        let Some(process) = &mut self.seats[seat] else { return false };
        if process.disk.syncs_to.is_none() {
            return false;
        }
        let synced = process.disk.finish_sync();
        self.happens(seat, |_| Happened::Synced(synced));
        true
    }

    /// Another process appends although this one has the lock.
    fn overtake(&mut self, seat: usize) {
        let Some(other) = self.living().find(|other| *other != seat) else { return };
        let lock = self.shared.borrow_mut().lock.take();
        let call = serde_json::json!({"goal": format!("goal {}", self.chance.draw())});
        drop(self.call(other, "init_coordination", call, false));
        self.drive(other, Fault::None);
        self.shared.borrow_mut().lock = lock;
    }

    /// A read, which takes no lock, and waits until what it has seen is synced.
    pub(crate) fn read(
        &mut self,
        seat: usize,
        name: &'static str,
        arguments: Value,
    ) -> Option<Result<Value, Refusal>> {
        self.drive(seat, Fault::None);
        let process = self.seats[seat].as_mut()?;
        process.catch_up();
        let prepared = find(name).unwrap().prepare(arguments).unwrap();
        let (call, _answer) =
            Queued::new(prepared.into(), Caller::default(), process.disk.instant());
        let answer = process.driver.answer(&call, &mut process.disk);
        self.journal.sync(u64::MAX);
        match answer {
            Ok(reply) => Some(Ok(reply)),
            Err(CallError::Refused(refusal)) => Some(Err(refusal)),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

fn heard(answer: Answer) -> Heard {
    match answer {
        Ok(reply) => Heard::Answer(Ok(reply)),
        Err(CallError::Refused(refusal)) => Heard::Answer(Err(refusal)),
        Err(CallError::Failed(error)) => match *error {
            BoardError::NotWritten(_) | BoardError::Locked { .. } => Heard::NotDone,
            _ => Heard::Nothing,
        },
        Err(error) => panic!("{error}"),
    }
}

/// The actions before or behind which something may happen.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Append,
    Find,
    AskShown,
    Sync,
    Place,
    Reply,
    Other,
}

impl Kind {
    fn of(action: &Action) -> Self {
        match action {
            Action::Append(_) => Self::Append,
            Action::Find(..) => Self::Find,
            Action::AskShown { .. } => Self::AskShown,
            Action::Sync { .. } => Self::Sync,
            Action::Place => Self::Place,
            Action::Reply(_) => Self::Reply,
            _ => Self::Other,
        }
    }
}

impl Process {
    fn perform(&mut self, action: Action) {
        match action {
            Action::Reply(answers) => answers.into_iter().for_each(|(reply, answer)| {
                drop(reply.send(answer));
            }),
            Action::Publish { events, seq } => {
                for recorded in events {
                    self.published += 1;
                    assert_eq!(recorded.seq, self.published, "the feed has a gap or a repeat");
                }
                assert!(self.published <= seq, "the feed is ahead of what is durable");
                assert!(seq <= self.disk.journal().durable(), "event {seq} may be lost");
            }
            Action::Committed { parked, .. } => assert!(parked.is_empty(), "no call waits"),
            action => self.driver.perform(action, &mut self.disk),
        }
    }
}

impl Process {
    pub(crate) fn catch_up(&mut self) {
        self.driver.catch_up(&mut self.disk, &mut VecDeque::new()).unwrap();
    }

    pub(crate) fn state(&self) -> &State {
        &self.disk.state
    }
}
