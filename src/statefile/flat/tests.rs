use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use rustix::fs::OFlags;
use serde_json::{Map, Value, json};

use super::super::FILE_NAME;
use super::*;
use crate::state::Envelope;
use crate::state::event::{Event, Recorded};
use crate::state::id::{ParticipantId, WorkflowId};
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;
use crate::statefile::projection::{Projection, Way};
use crate::statefile::{Found, Left, displaced, load, text_of};

/// Knuth's linear congruential generator; its high bits are the good ones.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn text(&mut self) -> String {
        let length = [3, 40, 400, 3_000][self.below(4)];
        (0..length).map(|_| ['a', '\n', '"', 'ü', ' ', '{'][self.below(6)]).collect()
    }
}

/// One directory, its lock's note of what was left, its journal, and the processes that take turns
/// on it.
struct Table {
    dir: tempfile::TempDir,
    left: Left,
    /// Whether the file system's clock stands still.
    timeless: bool,
    journal: Vec<Recorded>,
    chance: Chance,
    names: usize,
    /// The size of a whole file from which on slots are written.
    slots_from: u64,
}

struct Process {
    state: State,
    projection: Projection,
}

impl Table {
    fn new(seed: u64) -> Self {
        let (dir, chance) = (tempfile::tempdir().unwrap(), Chance(seed));
        let (left, journal, timeless) = (Left::default(), Vec::new(), seed.is_multiple_of(3));
        Self { dir, left, timeless, journal, chance, names: 0, slots_from: 0 }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(FILE_NAME)
    }

    fn open(&self) -> File {
        File::open(self.path()).unwrap()
    }

    /// Starts a process, from the file if there is one.
    fn start(&mut self, whole: bool) -> Process {
        let dir = self.dir.path();
        let slots_from = if whole { u64::MAX } else { self.slots_from };
        let mut projection = Projection::with_slots_from(dir, slots_from);
        let state = match projection.load().unwrap() {
            Some(Found::Sound(document)) => State::from_document(*document),
            None => State::new(),
            other => panic!("{other:?}"),
        };
        Process { state, projection }
    }

    fn catch_up(&self, process: &mut Process) {
        for recorded in &self.journal[process.state.seq() as usize..] {
            process.state.apply(recorded).unwrap();
            process.state.settle();
        }
    }

    /// Records a batch of events in the journal and in the file.
    fn turn(&mut self, process: &mut Process, events: usize) {
        self.catch_up(process);
        for _ in 0..events {
            let event = self.event(&process.state);
            self.record(process, event);
        }
        process.state.settle();
        self.write(process);
    }

    fn record(&mut self, process: &mut Process, event: Value) {
        let event: Event = serde_json::from_value(event).unwrap();
        let at =
            Timestamp::from_millis(1_772_366_400_000 + process.state.seq().cast_signed() * 1_000);
        let participant = ParticipantId::trusted("p-1");
        let envelope = Envelope { at, participant, actor: None, idempotency: None };
        self.journal.push(process.state.record(event, &envelope).unwrap());
    }

    fn write(&mut self, process: &mut Process) {
        let left = self.left.clone();
        let note = |left| {
            self.left = left;
            Ok(())
        };
        assert_eq!(process.projection.write_keeping(&mut process.state, left, note).unwrap(), None);
        if self.timeless {
            self.take_back_time(&mut process.projection);
        }
    }

    /// A process records `event` and dies while it waits for the journal to be durable.
    fn die(&mut self, process: &mut Process, event: Value) {
        self.catch_up(process);
        self.record(process, event);
        process.state.settle();
        let found = FileIdentity::of(self.dir.path()).unwrap();
        let unplaced =
            process.projection.prepare(&mut process.state, found, self.left.clone()).unwrap();
        if self.timeless {
            unplaced.file.file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }

    /// Sets the file's time back, as if it had been written within the same tick as all before.
    fn take_back_time(&mut self, projection: &mut Projection) {
        fs::File::open(self.path()).unwrap().file().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let live = FileIdentity::of(self.dir.path()).unwrap().unwrap();
        *self.left.files.last_mut().unwrap() = live;
        projection.last.as_mut().unwrap().0 = live;
        if let Way::Flat(flat) = &mut projection.way
            && let Some(known) = &mut flat.live
        {
            known.identity = live;
        }
    }

    #[track_caller]
    fn check(&self, process: &Process) {
        let document = match load(self.dir.path()).unwrap() {
            Some(Found::Sound(document)) => document,
            other => panic!(
                "event {}: {other:?}\n{}",
                process.state.seq(),
                fs::read_to_string(self.path()).unwrap()
            ),
        };
        assert!(*document == process.state.to_document(), "event {}", process.state.seq());
        self.check_lines(process);
    }

    /// Asserts that the file has what a whole one has, in the same order and without blank lines.
    #[track_caller]
    fn check_lines(&self, process: &Process) {
        let text = fs::read_to_string(self.path()).unwrap();
        assert!(text.lines().all(|line| !line.trim().is_empty()), "{text}");
        let mut shown: Map<String, Value> = serde_json::from_str(&text).unwrap();
        shown.shift_remove("layout");
        for list in ["tasks", "reservations"] {
            let list = shown[list].as_array_mut().unwrap();
            list.sort_by_key(|one| one["order"].as_u64());
            list.iter_mut().for_each(|one| _ = one.as_object_mut().unwrap().shift_remove("order"));
        }
        let mut whole: Map<String, Value> =
            serde_json::from_slice(&text_of(&process.state).unwrap()).unwrap();
        assert!(shown.keys().eq(whole.keys()), "{text}");
        let checksums = [&mut shown, &mut whole].map(|file| file["checksum"].take());
        assert!(checksums.iter().all(Value::is_string));
        assert_eq!(shown, whole);
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}-{}", self.names)
    }

    /// A random event that may happen to `state`.
    fn event(&mut self, state: &State) -> Value {
        if state.seq() == 0 {
            return json!({"kind": "board_created", "board_id": "board-7"});
        }
        if state.agents().next().is_none() {
            return json!({"kind": "agent_registered", "agent": "a", "role": "worker", "max_concurrent": 9});
        }
        let tasks: Vec<_> = state.tasks().cloned().collect();
        let task = (!tasks.is_empty()).then(|| tasks[self.chance.below(tasks.len())].clone());
        let created = |this: &mut Self| {
            let count = 1 + this.chance.below(3);
            let known = this.chance.below(3);
            let on: Vec<_> = state.tasks().take(known).map(|task| task.id.as_str()).collect();
            let tasks: Vec<_> = (0..count)
                .map(|_| {
                    json!({"id": this.name("t"), "description": this.chance.text(), "priority": 5,
                    "max_attempts": 99, "dependencies": on})
                })
                .collect();
            json!({"kind": "tasks_created", "tasks": tasks})
        };
        let Some(task) = task else { return created(self) };
        let id = task.id.as_str();
        match self.chance.below(62) {
            0..6 => created(self),
            6 => {
                json!({"kind": "agent_registered", "agent": self.name("a"), "role": "worker", "max_concurrent": 9})
            }
            7 => {
                let older: Vec<_> = state
                    .discoveries()
                    .next_back()
                    .map(|one| one.id.as_str())
                    .into_iter()
                    .collect();
                json!({"kind": "discovery_added", "discovery": self.name("d"), "agent": "a", "content":
                    self.chance.text(), "task_id": id, "files": [self.chance.text()], "supersedes": older})
            }
            8 => {
                // Often one that has been taken for dead.
                let gone = ["p-a", "p-b"]
                    .into_iter()
                    .find(|id| state.participant(&ParticipantId::trusted(*id)).is_none());
                let id = gone.map_or_else(|| self.name("p"), str::to_owned);
                json!({"kind": "participant_joined", "participant":
                    {"id": id, "pid": 7, "joined_at": "2026-03-01T12:00:00Z"}})
            }
            9 => match state.participants().next() {
                Some(one) => json!({"kind": "participant_gone", "participant": one.id.as_str(),
                    "grace_until": "2026-03-01T12:02:00Z"}),
                None => json!({"kind": "resumed"}),
            },
            10 => {
                // Often a text that was there before.
                let mut text = |known: [&str; 2]| match self.chance.below(3) {
                    0 => self.chance.text(),
                    one => known[one - 1].to_owned(),
                };
                json!({"kind": "plan_set", "goal": text(["one", "another"]), "master_plan": text(["", "- a\n"])})
            }
            11 => json!({"kind": "paused", "reason": self.chance.text()}),
            12 => json!({"kind": "resumed"}),
            13..16 => {
                let change = json!({"description": self.chance.text()});
                json!({"kind": "task_updated", "task": id, "change": change})
            }
            16..20 if task.status.may_retire() => {
                json!({"kind": "tasks_retired", "tasks": [serde_json::to_value(&*task).unwrap()]})
            }
            20 if self.chance.below(4) == 0 => {
                let document = serde_json::to_value(
                    state.restored(&state.to_document(), Timestamp::default()),
                )
                .unwrap();
                json!({"kind": "state_restored", "document": document, "restored_seq": 1})
            }
            40..44 => {
                let to: Vec<_> = state.agents().map(|agent| agent.id.as_str()).take(3).collect();
                let asked: Vec<_> = state.messages().map(|one| one.id.as_str()).collect();
                let reply_to = (!asked.is_empty()).then(|| asked[self.chance.below(asked.len())]);
                json!({"kind": "message_sent", "message": {"id": self.name("m"), "from": "a", "to": "all", "kind": "reply",
                    "text": self.chance.text(), "reply_to": reply_to, "sent_at": "2026-03-01T12:00:00Z", "recipients": to}})
            }
            44..46 => {
                let reader =
                    state.agents().nth(self.chance.below(2)).map_or("a", |agent| agent.id.as_str());
                let some: Vec<_> = state
                    .messages()
                    .filter(|_| self.chance.below(3) == 0)
                    .map(|one| &one.id)
                    .collect();
                json!({"kind": "messages_read", "agent": reader, "messages": some})
            }
            46..48 => {
                let some: Vec<_> = state
                    .messages()
                    .filter(|_| self.chance.below(4) == 0)
                    .map(|one| &one.id)
                    .collect();
                json!({"kind": "messages_retired", "messages": some})
            }
            48..53 => {
                let known: Vec<_> = state.reservations().map(|one| one.id.as_str()).collect();
                let renewed = (!known.is_empty() && self.chance.below(2) == 0)
                    .then(|| known[self.chance.below(known.len())].to_owned());
                let bound =
                    (task.open_attempt().is_some() && self.chance.below(2) == 0).then_some(id);
                json!({"kind": "files_reserved", "reservation": {"id": renewed.unwrap_or_else(|| self.name("r")),
                    "agent": "a", "files": ["src/*.rs"], "reason": self.chance.text(), "task": bound,
                    "until": "2026-03-01T13:00:00Z", "created_at": "2026-03-01T12:00:00Z"}})
            }
            53..55 => {
                let some: Vec<_> = state
                    .reservations()
                    .filter(|_| self.chance.below(3) == 0)
                    .map(|one| &one.id)
                    .collect();
                json!({"kind": "files_released", "reservations": some})
            }
            55 => {
                json!({"kind": "clock_stepped", "gap_millis": 1_000, "grace_until": "2026-03-01T12:02:00Z"})
            }
            56..60 => {
                let workflow = ["w1", "w2"][self.chance.below(2)];
                let (place, dropped) =
                    state.next_place(&WorkflowId::trusted(workflow), 0, 1 + self.chance.below(4));
                let number = 1 + state
                    .workflow(&WorkflowId::trusted(workflow))
                    .map_or(0, |known| known.checkpoint);
                let checkpoint = json!({"workflow_id": workflow, "number": number, "at": "2026-03-01T12:00:00Z",
                    "task": id, "sha256": "", "state": {"phase": self.chance.text(), "metrics": {"x": 0.1}}});
                json!({"kind": "workflow_saved", "workflow": workflow, "agent": "a", "spent": {"tokens": 7},
                    "checkpoint": [place, checkpoint], "dropped": dropped})
            }
            60 => {
                let workflow = WorkflowId::trusted(["w1", "w2"][self.chance.below(2)]);
                serde_json::to_value(state.workflow_dropped(&workflow, false)).unwrap()
            }
            61 => {
                let some: Vec<_> = state
                    .checkpoints()
                    .filter(|_| self.chance.below(3) == 0)
                    .map(|(id, _)| id)
                    .collect();
                json!({"kind": "checkpoints_dropped", "checkpoints": some})
            }
            _ => match task.status {
                TaskStatus::Available => {
                    json!({"kind": "claimed", "task": id, "agent": "a", "attempt": task.attempt + 1,
                    "lease_until": "2026-03-01T13:00:00Z", "through": "p-1", "branch": "main"})
                }
                TaskStatus::Claimed if self.chance.below(2) == 0 => {
                    json!({"kind": "started", "task": id})
                }
                TaskStatus::Claimed | TaskStatus::InProgress => match self.chance.below(3) {
                    0 => json!({"kind": "released", "task": id}),
                    _ => json!({"kind": "completed", "task": id, "attempt": task.attempt,
                        "result": {"output": self.chance.text()}}),
                },
                _ => json!({"kind": "cancelled", "task": id}),
            },
        }
    }
}

/// A file held open, which must stay as it was, whatever happens under its name.
struct Held {
    file: fs::File,
    content: Vec<u8>,
}

impl Held {
    fn of(path: &Path) -> Self {
        let (mut file, mut content) = (fs::File::open(path).unwrap(), Vec::new());
        file.read_to_end(&mut content).unwrap();
        Self { file, content }
    }

    fn check(&self) {
        let mut now = vec![0; self.content.len() + 1];
        let length = self.file.file().read_at(&mut now, 0).unwrap();
        assert!(now[..length] == self.content, "a file that somebody holds has changed");
    }
}

#[test]
fn processes_that_take_turns_show_every_state_and_change_no_file_that_somebody_holds() {
    let seeds = std::env::var("CALLBOARD_FLAT_SEEDS").map_or(12, |text| text.parse().unwrap());
    let (mut turns, mut restarts, mut in_place, mut changes) = (0, 0, 0, 0);
    for seed in 0..seeds {
        let mut table = Table::new(seed);
        // Some boards change between both forms.
        table.slots_from = [0, 0, 16_000, 40_000][seed as usize % 4];
        let mut has_slots = false;
        let mut processes = vec![table.start(false)];
        table.turn(&mut processes[0], 1);
        processes.extend((0..2).map(|_| table.start(false)));
        // With every second seed there is a process that cannot write flat files.
        processes.extend((0..seed % 2).map(|_| table.start(true)));
        let mut held = BTreeMap::new();
        for turn in 0..150 {
            let number = table.chance.below(processes.len());
            let events = [0, 1, 1, 1, 2, 9][table.chance.below(6)];
            if events == 0 && table.chance.below(3) == 0 {
                let another = table.start(number == 3);
                let mut process = std::mem::replace(&mut processes[number], another);
                if table.chance.below(2) == 0 {
                    table.catch_up(&mut process);
                    let event = table.event(&process.state);
                    table.die(&mut process, event);
                }
                restarts += 1;
            }
            let before = table.journal.len();
            if events > 0 || processes[number].state.seq() < before as u64 {
                table.turn(&mut processes[number], events.max(1));
            }
            table.check(&processes[number]);
            let projection = &processes[number].projection;
            in_place +=
                usize::from(projection.written() > 0 && projection.written() < projection.bytes());
            let had_slots =
                std::mem::replace(&mut has_slots, Header::read(&table.open()).unwrap().is_some());
            changes += usize::from(had_slots != has_slots);
            held.retain(|until, held: &mut Held| {
                held.check();
                *until > turn
            });
            if table.chance.below(4) == 0 {
                held.insert(turn + table.chance.below(12), Held::of(&table.path()));
            }
            turns += 1;
        }
        assert_eq!(displaced::all_waiting(table.dir.path()), [""; 0].map(PathBuf::from));
        let mut replayed = State::new();
        table.journal.iter().for_each(|recorded| {
            replayed.apply(recorded).unwrap();
            replayed.settle();
        });
        let Some(Found::Sound(document)) = load(table.dir.path()).unwrap() else {
            panic!("the file is not sound")
        };
        assert!(*document == replayed.to_document());
    }
    println!(
        "{seeds} boards, {turns} turns, {restarts} restarts, {in_place} files written in part, \
         {changes} changes of form"
    );
    assert!(in_place > turns / 10, "{in_place} of {turns}");
    assert!(changes > turns / 100, "{changes} of {turns}");
}

#[test]
fn whoever_opens_the_spare_while_it_is_written_waits_until_it_is_valid() {
    for slots_from in [0, 1 << 20] {
        let table = Table { slots_from, ..Table::new(1) };
        waits_until_it_is_valid(table);
    }
}

fn waits_until_it_is_valid(mut table: Table) {
    let mut process = table.start(false);
    table.turn(&mut process, 1);
    do_all(&mut table, &mut process, &[json!({"kind": "resumed"}), json!({"kind": "resumed"})]);
    table.record(&mut process, json!({"kind": "paused", "reason": "lunch"}));
    process.state.settle();
    let found = FileIdentity::of(table.dir.path()).unwrap();
    let unplaced =
        process.projection.prepare(&mut process.state, found, table.left.clone()).unwrap();
    let path = spare::path(table.dir.path());
    assert_eq!(unplaced.file.path, path, "it was not written into the spare");
    let open = || {
        std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
    };
    assert_eq!(open().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let mut start = [0];
    unplaced.file.file.read_exact_at(&mut start, 0).unwrap();
    assert_eq!(start, *b" ", "it looks valid");
    process.projection.place(unplaced, found, |_| Ok(())).unwrap();
    table.check(&process);
    open().unwrap();
}

#[test]
fn spare_that_was_put_back_is_no_ground_to_go_on_from() {
    for seed in 0..12 {
        let mut table = Table::new(seed);
        let mut process = table.start(false);
        for _ in 0..40 {
            table.turn(&mut process, 2);
            let dir = table.dir.path();
            if table.chance.0.is_multiple_of(5) && spare::path(dir).exists() {
                fs::rename(spare::path(dir), dir.join(FILE_NAME)).unwrap();
                table.turn(&mut process, 1);
            }
            table.check(&process);
        }
    }
}

/// Records the events one after the other, and shows each.
fn do_all(table: &mut Table, process: &mut Process, events: &[Value]) {
    table.catch_up(process);
    for event in events {
        table.record(process, event.clone());
        process.state.settle();
        table.write(process);
        table.check(process);
    }
}

#[test]
fn participant_that_was_taken_for_dead_is_shown_again() {
    let joined = |id: &str| {
        let participant = json!({"id": id, "pid": 7, "joined_at": "2026-03-01T12:00:00Z"});
        json!({"kind": "participant_joined", "participant": participant})
    };
    let gone = |id: &str| json!({"kind": "participant_gone", "participant": id, "grace_until": "2026-03-01T12:02:00Z"});
    let resumed = || json!({"kind": "resumed"});
    for id in ["p-a", "p-c"] {
        let mut table = Table::new(1);
        let mut processes = [(); 2].map(|()| table.start(false));
        table.turn(&mut processes[0], 9);
        let [one, other] = &mut processes;
        do_all(&mut table, one, &[joined("p-a"), joined("p-b"), joined("p-c"), joined("p-d")]);
        do_all(&mut table, other, &[resumed(), resumed()]);
        for _ in 0..3 {
            do_all(&mut table, one, &[resumed(), resumed()]);
            do_all(&mut table, other, &[gone(id)]);
            do_all(&mut table, one, &[joined(id), resumed()]);
            do_all(&mut table, other, &[resumed(), resumed()]);
        }
    }
}

#[test]
fn spare_in_which_somebody_has_died_is_not_gone_on_with() {
    let mut table = Table::new(3);
    assert!(table.timeless);
    let updated =
        |text: &str| json!({"kind": "task_updated", "task": "t", "change": {"description": text}});
    let mut processes = [(); 2].map(|()| table.start(false));
    let [one, other] = &mut processes;
    table.turn(one, 1);
    let tasks = json!([{"id": "t", "description": "before", "priority": 5, "max_attempts": 9}]);
    do_all(&mut table, one, &[json!({"kind": "tasks_created", "tasks": tasks})]);
    do_all(&mut table, other, &[json!({"kind": "resumed"}), json!({"kind": "resumed"})]);
    do_all(&mut table, one, &[json!({"kind": "resumed"}), json!({"kind": "resumed"})]);
    table.record(one, json!({"kind": "paused"}));
    one.state.settle();
    table.die(other, updated("behind"));
    table.write(one);
    table.check(one);
}

#[test]
fn plan_that_was_another_meanwhile_is_shown_again() {
    let plan = |plan: &str| json!({"kind": "plan_set", "goal": "all of it", "master_plan": plan});
    let mut table = Table::new(1);
    let mut processes = [(); 2].map(|()| table.start(false));
    table.turn(&mut processes[0], 9);
    let [one, other] = &mut processes;
    do_all(&mut table, one, &[plan("first"), json!({"kind": "resumed"})]);
    for _ in 0..3 {
        // Each process has written only its own plan, and hears of the other's by its events.
        do_all(&mut table, other, &[plan("second"), json!({"kind": "resumed"})]);
        do_all(&mut table, one, &[plan("first"), json!({"kind": "resumed"})]);
        do_all(&mut table, other, &[plan("second"), plan("first")]);
        do_all(&mut table, one, &[json!({"kind": "resumed"}), json!({"kind": "paused"})]);
    }
}
