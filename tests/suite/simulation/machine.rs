//! A simulated machine: clocks, a disk that loses what was not synced, and processes that take the
//! same steps as a participant's writer.

use std::ops::ControlFlow;
use std::sync::Arc;

use callboard::clock::{BoardClock, Mark};
use callboard::journal::memory::{Fate, MemoryJournal};
use callboard::journal::{AppendError, BatchId, Journal};
use callboard::ops::{Call, Due, Fetched, History, Recorder, Vitals, execute, find};
use callboard::state::agent::Participant;
use callboard::state::deadline::STEP;
use callboard::state::document::Document;
use callboard::state::event::{Event, Recorded};
use callboard::state::id::{Chance, ParticipantId};
use callboard::state::limit::KEYS_REMEMBERED;
use callboard::state::policy::Policy;
use callboard::state::refusal::Refusal;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::time::Timestamp;
use callboard::state::{Envelope, State};
use serde_json::Value;

use super::clocks::{Clocks, Truth};

pub(super) const SEATS: usize = 4;

/// The point at which a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    KilledBeforeAppend,
    DiskFull,
    /// Written but not synced; then the process dies, asks the journal what it holds, or cannot
    /// even do that.
    TornAndKilled,
    Torn,
    TornForGood,
    /// The process is killed after the append: others may read what no process has synced.
    KilledBehindAppend,
    /// The process lives, but has not come to its round of syncing.
    NoRoundYet,
    KilledBehindSync,
    KilledBeforeReplies,
    /// The process lives, but its replies are lost.
    RepliesLost,
}

/// What a caller knows about a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    Answer(Result<Value, Refusal>),
    /// Certainly nothing was done.
    NotDone,
    Nothing,
}

pub(super) struct Process {
    participant: Participant,
    presence: bool,
    pub state: State,
    clock: BoardClock,
    chance: Chance,
    batches: u64,
}

pub(super) struct Machine {
    pub journal: MemoryJournal,
    pub clocks: Clocks,
    pub seats: [Option<Process>; SEATS],
    pub policy: Policy,
    /// The state file, as processes see it and as a power loss leaves it.
    shown: Option<Document>,
    shown_on_disk: Option<Document>,
    /// What processes have noted beside the lock: the board's time, and how long the machine has
    /// slept in which boot.
    noted: Option<Mark>,
    slept: Option<(u64, i64)>,
    /// When a process last touched its presence file, in the board's time.
    attended: Option<Timestamp>,
    pub truth: Truth,
    started: u64,
}

struct Past<'a>(&'a MemoryJournal);

impl History for Past<'_> {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let events = self.0.read_from(seq, limit).map_err(|error| error.to_string())?;
        _ = events.into_iter().try_for_each(take);
        Ok(())
    }
}

impl Machine {
    pub(super) fn new() -> Self {
        let mut journal = MemoryJournal::new("board-sim");
        let at = 1_772_366_400_000;
        let mut state = State::new();
        let participant = ParticipantId::trusted("p-first");
        let envelope = Envelope {
            at: Timestamp::from_millis(at),
            participant,
            actor: None,
            idempotency: None,
        };
        let created = Event::BoardCreated { board_id: "board-sim".to_owned() };
        let created = state.record(created, &envelope).unwrap();
        journal.append(0, &BatchId::new("p-first/0"), &[created]).unwrap();
        journal.settle();
        // Small, so that tasks retire during the work.
        let policy = Policy { keep_finished: 4, ..Policy::default() };
        Self {
            journal,
            clocks: Clocks::new(Timestamp::from_millis(at)),
            seats: [const { None }; SEATS],
            policy,
            shown: None,
            shown_on_disk: None,
            noted: None,
            slept: None,
            attended: None,
            truth: Truth::default(),
            started: 0,
        }
    }

    pub(super) fn living(&self) -> impl Iterator<Item = usize> {
        (0..SEATS).filter(|seat| self.seats[*seat].is_some())
    }

    /// Starts a process from the state file, if it is sound, and the end of the journal.
    pub(super) fn start(&mut self, seat: usize, file_is_sound: bool) {
        if self.living().next().is_none() {
            self.journal.recover();
        }
        let file = self.shown.clone().filter(|_| file_is_sound);
        let head = self.journal.head().unwrap();
        let state = file.map_or_else(State::new, |document| {
            assert!(
                document.board.seq <= head,
                "the file is at {} and the journal at {head}",
                document.board.seq
            );
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
        let clock = BoardClock::new(Box::new(self.clocks.of(seat)), self.noted.as_ref());
        let chance = Chance::new(self.started);
        // Agents live in every other process.
        let presence = seat.is_multiple_of(2);
        let mut process = Process { participant, presence, state, clock, chance, batches: 0 };
        for recorded in self.journal.keyed(KEYS_REMEMBERED).unwrap() {
            if recorded.seq <= process.state.seq() {
                process.state.remember(&recorded);
            }
        }
        process.catch_up(&self.journal);
        self.seats[seat] = Some(process);
    }

    pub(super) fn kill(&mut self, seat: usize) {
        self.seats[seat] = None;
    }

    /// Kills everything and boots again after `off` milliseconds. The disk keeps what was synced,
    /// an old or the new state file, and perhaps what was noted beside the lock.
    pub(super) fn lose_power(&mut self, file_was_written_out: bool, off: i64) {
        self.seats = [const { None }; SEATS];
        self.clocks.boot(off);
        self.noted.take_if(|_| !file_was_written_out);
        if file_was_written_out {
            self.shown_on_disk = self.shown.clone();
        }
        self.shown = self.shown_on_disk.clone();
        self.journal.lose_power();
    }

    /// Time passes, in which each living process touches its presence file.
    pub(super) fn pass(&mut self, millis: i64) {
        self.clocks.pass(millis);
        let living = self.seats.iter_mut().flatten();
        self.attended =
            living.map(|process| process.clock.now(Timestamp::default())).max().or(self.attended);
    }

    /// The kernel writes the state file to the disk at some time.
    pub(super) fn write_file_out(&mut self) {
        self.shown_on_disk = self.shown.clone();
    }

    /// Takes one batch through a participant. Returns what each caller hears.
    pub(super) fn commit(
        &mut self,
        seat: usize,
        calls: &[(&'static str, Value)],
        fault: Fault,
    ) -> Vec<Heard> {
        let all = |heard: Heard| vec![heard; calls.len()];
        let mut gone = self.gone(seat);
        let Some(process) = &mut self.seats[seat] else { return all(Heard::NotDone) };
        process.catch_up(&self.journal);
        process.clock.settle(|| self.noted.clone());
        process.clock.now(process.state.board().last_activity);
        self.noted = process.clock.mark().or(self.noted.take());
        // Another process may have recorded a death that this one learns of only now.
        gone.retain(|one| process.state.participant(&one.id).is_some());
        let idle = process.idle(&gone, self.attended);
        let is_attended = gone.len() < process.state.participants().count();
        let (before, savepoint) = (process.state.seq(), process.state.savepoint());
        let mut events = Vec::new();
        let slept = (self.clocks.boots(), process.clock.slept());
        let noted = self.slept.filter(|(boot, _)| *boot == slept.0);
        let unnoticed =
            noted.map(|(_, noted)| slept.1 - noted).filter(|unnoticed| *unnoticed > STEP);
        process.record_time(&mut events, gone, unnoticed.max(idle), &self.policy);
        let answers: Vec<_> = calls
            .iter()
            .map(|call| process.execute(call, &mut events, &self.policy, &self.journal))
            .collect();
        process.follow_up(&mut events, &self.policy);
        if fault == Fault::KilledBeforeAppend {
            self.kill(seat);
            return all(Heard::Nothing);
        }
        self.truth.note(&events, &self.clocks);
        self.journal.doom(match fault {
            Fault::DiskFull => Fate::Refused,
            Fault::TornAndKilled | Fault::Torn | Fault::TornForGood => Fate::Torn,
            _ => Fate::Written,
        });
        process.batches += 1;
        let batch = BatchId::new(format!("{}/{}", process.participant.id, process.batches));
        let appended = self.journal.append(before, &batch, &events);
        self.journal.doom(Fate::Written);
        match appended {
            Ok(()) => {}
            Err(AppendError::Conflict { head }) => panic!("conflict at {head} under the lock"),
            Err(AppendError::Failed(_)) => {
                process.state.rollback(savepoint);
                return all(Heard::NotDone);
            }
            Err(AppendError::Unknown(_)) => {
                process.state.rollback(savepoint);
                if fault == Fault::TornAndKilled {
                    self.kill(seat);
                    return all(Heard::Nothing);
                }
                if fault == Fault::TornForGood {
                    return all(Heard::Nothing);
                }
                self.journal.settle_for_good();
                assert!(!self.journal.holds_batch(&batch).unwrap());
                return all(Heard::NotDone);
            }
        }
        process.state.settle();
        self.truth.check_steps(&events, &self.clocks, is_attended);
        if noted.is_none() || unnoticed.is_some() {
            self.slept = Some(slept);
        }
        if fault == Fault::KilledBehindAppend {
            self.kill(seat);
            return all(Heard::Nothing);
        }
        if fault == Fault::NoRoundYet {
            return all(Heard::Nothing);
        }
        // The round comes even without new events: an answer may rely on something that the process
        // found and nobody has synced.
        self.journal.settle();
        if fault == Fault::KilledBehindSync {
            self.kill(seat);
            return all(Heard::Nothing);
        }
        self.shown = Some(process.state.to_document());
        match fault {
            Fault::KilledBeforeReplies => {
                self.kill(seat);
                all(Heard::Nothing)
            }
            Fault::RepliesLost => all(Heard::Nothing),
            _ => answers.into_iter().map(Heard::Answer).collect(),
        }
    }

    /// A read, which takes no lock, and waits until what it has seen is synced.
    pub(super) fn read(
        &mut self,
        seat: usize,
        name: &'static str,
        arguments: Value,
    ) -> Option<Result<Value, Refusal>> {
        let process = self.seats[seat].as_mut()?;
        process.catch_up(&self.journal);
        let mut events = Vec::new();
        let answer = process.execute(&(name, arguments), &mut events, &self.policy, &self.journal);
        assert!(events.is_empty(), "{name} only reads and recorded {events:?}");
        self.journal.settle();
        Some(answer)
    }

    /// Participants on the board whose processes are dead.
    fn gone(&self, seat: usize) -> Vec<Arc<Participant>> {
        let alive: Vec<_> =
            self.seats.iter().flatten().map(|process| &process.participant.id).collect();
        let Some(process) = &self.seats[seat] else { return Vec::new() };
        process.state.participants().filter(|one| !alive.contains(&&one.id)).cloned().collect()
    }
}

impl Process {
    pub(super) fn catch_up(&mut self, journal: &MemoryJournal) {
        for recorded in journal.read_from(self.state.seq(), usize::MAX).unwrap() {
            self.state.apply(&recorded).unwrap();
            self.state.settle();
        }
        let now = self.clock.now(self.state.board().last_activity);
        self.state.wake(now);
    }

    /// For how long nobody ran, if agents were there and all are gone.
    fn idle(&mut self, gone: &[Arc<Participant>], attended: Option<Timestamp>) -> Option<i64> {
        let last_activity = self.state.board().last_activity;
        let nobody_ran = !gone.is_empty() && gone.len() == self.state.participants().count();
        let idle =
            self.clock.now(last_activity).since(last_activity.max(attended.unwrap_or_default()));
        (nobody_ran && idle > STEP).then_some(idle)
    }

    fn record_time(
        &mut self,
        events: &mut Vec<Recorded>,
        gone: Vec<Arc<Participant>>,
        gap: Option<i64>,
        policy: &Policy,
    ) {
        let at = self.clock.now(self.state.board().last_activity);
        let recorder =
            Recorder { at, participant: &self.participant.id, policy, admits: &|_, _| true };
        recorder.time(&mut self.state, &Due { gap, gone }, events).unwrap();
    }

    fn follow_up(&mut self, events: &mut Vec<Recorded>, policy: &Policy) {
        let at = self.clock.now(self.state.board().last_activity);
        let recorder =
            Recorder { at, participant: &self.participant.id, policy, admits: &|_, _| true };
        recorder.follow_up(&mut self.state, &mut self.chance, events).unwrap();
        recorder.retire(&mut self.state, &mut 0, events).unwrap();
    }

    fn execute(
        &mut self,
        (name, arguments): &(&'static str, Value),
        events: &mut Vec<Recorded>,
        policy: &Policy,
        journal: &MemoryJournal,
    ) -> Result<Value, Refusal> {
        let prepared = find(name).unwrap().prepare(arguments.clone())?;
        let now = self.clock.now(self.state.board().last_activity);
        let fetched = if prepared.fetches() {
            Fetched::Taken(Listed {
                name: SnapshotName::new(now, "0123abcd"),
                bytes: 1,
                head: None,
            })
        } else {
            Fetched::Nothing
        };
        let (vitals, past) = (Vitals::since(self.clock.now(Timestamp::default())), Past(journal));
        let call = Call {
            presence: self.presence.then_some(&self.participant),
            fetched: &fetched,
            ..Call::new(now, self.chance.draw(), policy, &self.participant.id, &past, &vitals)
        };
        let executed = execute(&mut self.state, prepared.as_ref(), call).unwrap();
        events.extend(executed.events);
        executed.answer
    }
}
