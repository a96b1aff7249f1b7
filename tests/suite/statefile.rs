//! The state file as readers see it while it is replaced again and again, and as a killed process
//! leaves it. `CALLBOARD_REPLACEMENTS` is the number of replacements.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::event::Event;
use callboard::state::id::ParticipantId;
use callboard::state::time::Timestamp;
use callboard::state::{Envelope, State};
use callboard::statefile::{self, Found, Left, Projection, SLOTS_FROM, WHOLE_FILES};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Board, PATIENCE, STATE_FILE, size, until};

/// A state and the file that shows it, in a directory without a journal.
struct Shown {
    dir: TempDir,
    state: State,
    projection: Projection,
    left: Left,
    /// Bytes written for each replacement.
    written: Vec<u64>,
    /// Number of replacements that did not write the whole file.
    in_part: usize,
}

impl Shown {
    /// Slots are written if the file would have more than `slots_from` bytes.
    fn new(slots_from: u64, tasks: usize) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let projection = Projection::with_slots_from(dir.path(), slots_from);
        let mut shown = Self {
            dir,
            state: State::new(),
            projection,
            left: Left::default(),
            written: Vec::new(),
            in_part: 0,
        };
        shown.record(json!({"kind": "board_created", "board_id": "board-7"}));
        shown.record(json!({"kind": "agent_registered", "agent": "a", "role": "worker", "max_concurrent": 9}));
        for first in (0..tasks).step_by(1_000) {
            let task = |number| {
                json!({"id": format!("task-{number:06}"), "priority": 5, "max_attempts": 3,
                "description": format!("do thing {number}, and do it well")})
            };
            let tasks: Vec<_> = (first..tasks.min(first + 1_000)).map(task).collect();
            shown.record(json!({"kind": "tasks_created", "tasks": tasks}));
        }
        // The first two files are written in full.
        shown.write();
        shown.happen(0);
        shown.written.clear();
        shown
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(STATE_FILE)
    }

    fn record(&mut self, event: Value) {
        let event: Event = serde_json::from_value(event).unwrap();
        let at = Timestamp::from_millis(1_772_366_400_000 + self.state.seq().cast_signed());
        let envelope = Envelope {
            at,
            participant: ParticipantId::trusted("p-1"),
            actor: None,
            idempotency: None,
        };
        self.state.record(event, &envelope).unwrap();
        self.state.settle();
    }

    fn write(&mut self) {
        let left = self.left.clone();
        let note = |left| {
            self.left = left;
            Ok(())
        };
        assert_eq!(self.projection.write_keeping(&mut self.state, left, note).unwrap(), None);
        self.written.push(self.projection.written());
        self.in_part += usize::from(self.projection.written() < self.projection.bytes());
    }

    /// Claim, start, complete, and the next task: one event per replacement. After the last task,
    /// the first is next.
    fn happen(&mut self, step: usize) {
        let tasks = self.state.live_tasks();
        let task = format!("task-{:06}", step / 4 % tasks);
        let attempt = step / 4 / tasks + 1;
        self.record(match step % 4 {
            0 => json!({"kind": "claimed", "task": task, "agent": "a", "attempt": attempt, "through": "p-1",
                "lease_until": "2026-03-01T13:00:00Z", "branch": "main"}),
            1 => json!({"kind": "started", "task": task}),
            2 => json!({"kind": "completed", "task": task, "attempt": attempt, "result": {"output": format!("did {task}")}}),
            _ => json!({"kind": "retried", "task": task}),
        });
        self.write();
    }
}

/// Replacements after which the file is as long as before, and those that make it longer or
/// shorter.
impl Shown {
    fn stay(&mut self, step: usize) {
        self.record(json!({"kind": if step.is_multiple_of(2) { "paused" } else { "resumed" }}));
        self.write();
    }

    fn describe(&mut self, words: usize) {
        let change = json!({"description": "long ".repeat(words)});
        self.record(json!({"kind": "task_updated", "task": "task-000000", "change": change}));
        self.write();
    }
}

/// What readers found in the file, each by its own method.
#[derive(Default)]
struct Seen {
    files: u64,
    last_seq: u64,
    mixed: Vec<String>,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        self.files += 1;
        match serde_json::from_slice::<Value>(bytes).map(|file| file["seq"].as_u64()) {
            Ok(Some(seq)) if seq >= self.last_seq => self.last_seq = seq,
            Ok(seq) => self.mixed.push(format!("event {seq:?} after {}", self.last_seq)),
            Err(error) => self.mixed.push(error.to_string()),
        }
    }
}

fn read_plainly(path: &Path, seen: &mut Seen) {
    seen.take(&fs::read(path).unwrap());
}

/// Maps the file and closes it at once, so that only the mapping holds it. Its content is compared
/// twice, as it must not change.
fn read_mapped(path: &Path, seen: &mut Seen) {
    let file = File::open(path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    // SAFETY: a new mapping of a file of that length, which nobody truncates. It is unmapped below,
    // after its last use.
    let bytes = unsafe {
        let start = mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &file, 0)
            .unwrap();
        std::slice::from_raw_parts(start.cast::<u8>(), length)
    };
    drop(file);
    let first = bytes.to_vec();
    seen.take(&first);
    if first != bytes {
        seen.mixed.push(format!("event {} changed under a mapping", seen.last_seq));
    }
    // SAFETY: it was mapped above, and `bytes` is not used any more.
    unsafe { munmap(bytes.as_ptr().cast_mut().cast(), length).unwrap() };
}

/// Every `change` steps the size of the file changes, so that it has slots and is whole by turns.
fn no_reader_sees_a_mixture(slots_from: u64, change: Option<usize>) {
    let replacements = size("CALLBOARD_REPLACEMENTS", 2_000);
    let mut shown = Shown::new(slots_from, 20);
    let mut changes = Changes::default();
    let (path, stop) = (shown.path(), AtomicBool::new(false));
    let mut held = (File::open(&path).unwrap(), fs::read(&path).unwrap());
    let seen = thread::scope(|scope| {
        let readers = [read_plainly, read_mapped].map(|read: fn(&Path, &mut Seen)| {
            let (path, stop) = (&path, &stop);
            scope.spawn(move || {
                let mut seen = Seen::default();
                while !stop.load(Ordering::Relaxed) {
                    read(path, &mut seen);
                }
                seen
            })
        });
        for step in 1..=replacements {
            match change {
                None => shown.happen(step),
                Some(change) => {
                    shown.stay(step);
                    if step.is_multiple_of(change) {
                        shown.describe(if (step / change).is_multiple_of(2) { 1 } else { 20_000 });
                        changes.see(&path);
                    }
                }
            }
            if step % 50 == 0 {
                let mut now = Vec::new();
                held.0.read_to_end(&mut now).unwrap();
                assert!(now == held.1, "a file that somebody holds has changed");
                held = (File::open(&path).unwrap(), fs::read(&path).unwrap());
            }
        }
        stop.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap())
    });
    let in_part = shown.in_part;
    println!(
        "{replacements} replacements, {in_part} of them in part: {} files read, {} mapped, {} \
         mixed",
        seen[0].files,
        seen[1].files,
        seen[0].mixed.len() + seen[1].mixed.len()
    );
    assert_eq!(seen.map(|seen| seen.mixed), [const { Vec::<String>::new() }; 2]);
    assert_eq!(slots_from == u64::MAX, in_part == 0);
    println!("{} changes to slots, {} back", changes.to_slots, changes.to_whole);
    let expected = change.map_or(0, |change| replacements / change / 2);
    assert_eq!((changes.to_slots, changes.to_whole), (expected, expected));
}

/// How often the file's form was seen to change.
#[derive(Default)]
struct Changes {
    has_slots: bool,
    to_slots: usize,
    to_whole: usize,
}

impl Changes {
    fn see(&mut self, path: &Path) {
        let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let has_slots = file["layout"].is_object();
        self.to_slots += usize::from(has_slots && !self.has_slots);
        self.to_whole += usize::from(!has_slots && self.has_slots);
        self.has_slots = has_slots;
    }
}

#[test]
fn no_reader_sees_a_mixture_of_slots() {
    no_reader_sees_a_mixture(0, None);
}

#[test]
fn no_reader_sees_a_mixture_of_whole_files() {
    no_reader_sees_a_mixture(u64::MAX, None);
}

#[test]
fn no_reader_sees_a_mixture_while_the_form_changes() {
    no_reader_sees_a_mixture(60_000, Some(5));
}

/// The file is what `serde_json` prints with two spaces, whatever happens on the board.
#[test]
fn file_of_a_board_of_usual_size_is_plain_json() {
    for tasks in [1, 13, 500] {
        let board = Board::new();
        let mut client = board.mcp();
        let is_plain = || {
            let text = fs::read_to_string(board.file(STATE_FILE)).unwrap();
            let shown: Value = serde_json::from_str(&text).unwrap();
            assert!(text == serde_json::to_string_pretty(&shown).unwrap(), "{text}");
            assert!(text.len() < 256 << 10, "{} bytes", text.len());
            shown
        };
        client.ok(
            "init_coordination",
            json!({"goal": "All of it, \"well\" done", "master_plan": "# Plan\n- one\n"}),
        );
        for first in (0..tasks).step_by(50) {
            let batch: Vec<_> = (first..tasks.min(first + 50))
                .map(|number| json!({"id": format!("t-{number}"), "description": format!("Do part {number} ü\nand no more")}))
                .collect();
            client.ok("create_tasks_batch", json!({"tasks": batch}));
            is_plain();
        }
        client.register("ada");
        let claimed = client.ok("claim_task", json!({"agent_id": "ada"}));
        assert_eq!(claimed["task"]["id"], "t-0");
        let shown = is_plain();
        assert_eq!(shown["tasks"].as_array().unwrap().len(), tasks);
        assert_eq!(
            (
                &shown["agents"]["ada"]["current_task"],
                &shown["agents"]["ada"]["current_task_title"]
            ),
            (&"t-0".into(), &"Do part 0 ü".into())
        );
        let order: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            order[..7],
            ["goal", "progress", "attention", "agents", "tasks", "discoveries", "messages"]
        );
        client.ok("complete_task", json!({"agent_id": "ada", "task_id": "t-0", "output": "done"}));
        let shown = is_plain();
        assert_eq!(shown["progress"]["counts"]["done"], 1);
        assert_eq!(shown["progress"]["percent"], (100 + tasks / 2) / tasks);
        // What a program needs is found in the last bytes.
        let text = fs::read_to_string(board.file(STATE_FILE)).unwrap();
        assert!(text[text.len().saturating_sub(4096)..].contains("\n  \"schema_version\": "));
        let head = statefile::seq_of(board.dir()).unwrap().unwrap();
        assert_eq!(Some(head.seq), shown["seq"].as_u64());
        board.assert_file_is_the_replay();
    }
}

/// With real processes, of which each finds the form that the others have left.
#[test]
fn processes_agree_on_the_form_of_the_file() {
    let board = Board::new();
    let environment = [(SLOTS_FROM, "60000")];
    let mut clients = [(); 3].map(|()| board.mcp_with(&environment));
    for (number, client) in clients.iter_mut().enumerate() {
        let leader = json!({"agent_id": format!("leader-{number}"), "role": "leader"});
        client.ok("register_agent", leader);
    }
    clients[0].ok("create_task", json!({"id": "t", "description": "short"}));
    let mut changes = Changes::default();
    for step in 0..24 {
        let description = "long ".repeat(if step / 6 % 2 == 0 { 3_000 } else { 1 });
        let id = format!("t-{}", step % 6);
        let client = &mut clients[step % 3];
        if step < 6 {
            client.ok("create_task", json!({"id": id, "description": description}))
        } else {
            client.ok("update_task", json!({"task_id": id, "description": description}))
        };
        changes.see(&board.file(STATE_FILE));
        board.assert_file_is_the_replay();
    }
    assert_eq!((changes.to_slots, changes.to_whole), (2, 2));
}

#[test]
fn what_a_commit_writes_does_not_grow_with_the_board() {
    let most = size("CALLBOARD_TASKS", 10_000);
    for tasks in [100, 1_000, 10_000, 100_000].into_iter().filter(|tasks| *tasks <= most) {
        let mut shown = Shown::new(0, tasks);
        (1..=200).for_each(|step| shown.happen(step));
        // The newest two were written without a known spare file.
        let mut written = shown.written[2..].to_vec();
        written.sort_unstable();
        let [median, nearly_all, most] =
            [50, 95, 100].map(|share| written[(written.len() - 1) * share / 100]);
        println!(
            "{tasks} tasks: {median} bytes a commit, 95 of 100 at most {nearly_all}, all at most \
             {most}, of {}",
            shown.projection.bytes()
        );
        // A process that another test starts has our files open until it executes its program; then
        // a commit copies.
        assert!(nearly_all <= 8_000, "{nearly_all} bytes at {tasks} tasks");
        let Some(Found::Sound(document)) = statefile::load(shown.dir.path()).unwrap() else {
            panic!("it is sound")
        };
        assert!(*document == shown.state.to_document());
    }
}

/// Leaves the state file behind: a process records something and dies before it shows that.
fn leave_behind(board: &Board, id: &str) {
    let mut client = board.mcp_with(&[("CALLBOARD_FAILPOINT", "before-exchange")]);
    assert!(client.try_call("create_task", json!({"description": "d", "id": id})).is_none());
    client.ends_within(PATIENCE);
}

#[test]
fn living_process_puts_the_file_back_when_it_is_missing_or_behind() {
    for board in [Board::new(), Board::with_slots()] {
        let mut client = board.mcp();
        client.ok("create_task", json!({"description": "d", "id": "t"}));
        for _ in 0..3 {
            fs::remove_file(board.file(STATE_FILE)).unwrap();
            let start = Instant::now();
            until(PATIENCE, "the file is there", || board.file(STATE_FILE).exists().then_some(()));
            println!("put back after {:?}", start.elapsed());
            board.assert_file_is_the_replay();
        }
        leave_behind(&board, "behind");
        let start = Instant::now();
        until(PATIENCE, "the file shows the task", || {
            board.tasks().contains_key("behind").then_some(())
        });
        println!("shown after {:?}", start.elapsed());
        board.assert_file_is_the_replay();
        assert_eq!(
            client.ok("get_task", json!({"task_id": "behind"}))["task"]["status"],
            "available"
        );
    }
}

#[test]
fn command_that_reads_puts_the_file_back_at_once() {
    for board in [Board::new(), Board::with_slots()] {
        board.cli_ok("create_task", json!({"description": "d", "id": "t"}));
        let head = board.events().len();
        fs::remove_file(board.file(STATE_FILE)).unwrap();
        board.cli_ok("get_status", json!({}));
        assert_eq!(board.document()["seq"], head);
        fs::remove_file(board.file(STATE_FILE)).unwrap();
        let listed = board.finish(board.command().args(["status"]));
        assert!(listed.status.success(), "{}", listed.stderr);
        assert_eq!(board.document()["seq"], head);
        leave_behind(&board, "behind");
        assert!(!board.tasks().contains_key("behind"));
        board.cli_ok("get_status", json!({}));
        assert!(board.tasks().contains_key("behind"));
        assert_eq!(board.document()["seq"], board.events().len());
    }
}

/// A reader neither waits for a process that was stopped while it replaced the file, nor takes its
/// place.
#[test]
fn command_that_reads_does_not_wait_for_whoever_replaces_the_file() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d", "id": "t"}));
    let lock = File::open(board.file("state-lock")).unwrap();
    lock.lock().unwrap();
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    let start = Instant::now();
    board.cli_ok("get_status", json!({}));
    assert!(start.elapsed() < Duration::from_secs(4), "it waited for the lock");
    assert!(!board.file(STATE_FILE).exists());
    drop(lock);
    board.cli_ok("get_status", json!({}));
    assert!(board.file(STATE_FILE).exists());
}

/// All of what a board goes through: tasks that are claimed, done, and retired.
#[test]
fn file_with_slots_has_few_bytes_more_than_its_texts() {
    let tasks = size("CALLBOARD_TASKS", 10_000);
    let mut shown = Shown::new(256 << 10, tasks);
    let mut most = 0.0;
    let mut look = |shown: &Shown| {
        let file: Value = serde_json::from_slice(&fs::read(shown.path()).unwrap()).unwrap();
        let plain = serde_json::to_string_pretty(&file).unwrap().len();
        let ratio = shown.projection.bytes() as f64 / plain as f64;
        assert!(ratio <= 1.6, "{ratio} times {plain} bytes");
        assert!(file["layout"].is_object());
        most = f64::max(most, ratio);
    };
    look(&shown);
    // Each task is claimed, started and done.
    for number in 0..tasks * 3 {
        let (task, attempt) = (format!("task-{:06}", number / 3), 1);
        shown.record(match number % 3 {
            0 => json!({"kind": "claimed", "task": task, "agent": "a", "attempt": attempt, "through": "p-1",
                "lease_until": "2026-03-01T13:00:00Z", "branch": "main"}),
            1 => json!({"kind": "started", "task": task}),
            _ => json!({"kind": "completed", "task": task, "attempt": attempt, "result": {"output": format!("did {task}")}}),
        });
        shown.write();
        if number % (tasks / 4) == 0 {
            look(&shown);
        }
    }
    look(&shown);
    for _ in 0..(tasks - tasks / 10) / 10 {
        let some: Vec<_> = shown
            .state
            .tasks()
            .take(10)
            .map(|task| serde_json::to_value(&**task).unwrap())
            .collect();
        shown.record(json!({"kind": "tasks_retired", "tasks": some}));
        shown.write();
        if shown.state.live_tasks() % (tasks / 10) < 10 {
            look(&shown);
        }
    }
    look(&shown);
    let written = shown.written.iter().sum::<u64>() / shown.written.len() as u64;
    println!("{tasks} tasks: at most {most:.2} times the plain size, {written} bytes a commit");
}

#[test]
fn process_that_dies_while_it_writes_the_file_leaves_it_whole() {
    for (place, whole) in [("slots-written", ""), ("before-exchange", ""), ("before-exchange", "1")]
    {
        let board = if whole.is_empty() { Board::with_slots() } else { Board::new() };
        board.cli_ok("create_task", json!({"description": "d", "id": "first"}));
        for hit in 1..=6 {
            let failpoint = format!("{place}:{hit}");
            let mut client =
                board.mcp_with(&[("CALLBOARD_FAILPOINT", &failpoint), (WHOLE_FILES, whole)]);
            let mut number = 0;
            loop {
                number += 1;
                let task = json!({"description": "d", "id": format!("t-{hit}-{number}")});
                if client.try_call("create_task", task).is_none() {
                    break;
                }
                assert!(number < 20, "{failpoint} was never reached");
            }
            let shown = board.document()["seq"].as_u64().unwrap();
            assert!(shown <= board.events().len() as u64);
            let after = [(WHOLE_FILES, whole)];
            let mut client = board.mcp_with(&after);
            for number in 0..4 {
                client.ok(
                    "create_task",
                    json!({"description": "d", "id": format!("after-{hit}-{number}")}),
                );
                board.assert_file_is_the_replay();
            }
            let task = board.task(&format!("t-{hit}-{number}"));
            assert_eq!(task["status"], "available", "what died with the file was in the journal");
        }
        assert!(!board.file("mcp-state.json.quarantined-1").exists());
    }
}

#[test]
fn pages_of_another_time_are_no_edit() {
    for (boot, adopted) in [("0000000000000000", false), ("", true)] {
        let board = Board::with_slots();
        board.cli_ok("create_task", json!({"description": "before", "id": "t"}));
        board.cli_ok("update_task", json!({"task_id": "t", "description": "behind"}));
        // The task's former content is still on the disk, the text around it is not.
        let mut mixed = board.document();
        assert_eq!(mixed["tasks"][0]["description"], "behind");
        mixed["tasks"][0]["description"] = "before".into();
        if !boot.is_empty() {
            mixed["layout"]["boot"] = boot.into();
        }
        fs::remove_file(board.file(STATE_FILE)).unwrap();
        fs::write(board.file(STATE_FILE), mixed.to_string()).unwrap();
        board.cli_ok("create_task", json!({"description": "d", "id": "after"}));
        assert_eq!(
            board.task("t")["description"],
            if adopted { "before" } else { "behind" },
            "boot {boot:?}"
        );
        assert_eq!(board.file("mcp-state.json.quarantined-1").exists(), !adopted);
        board.assert_file_is_the_replay();
    }
}

/// As a power loss may leave the file, if the note in the lock about the last replacement is older
/// than the file.
#[test]
fn pages_of_another_time_in_a_file_that_nobody_knows_are_kept_and_not_taken_over() {
    let board = Board::with_slots();
    board.cli_ok("create_task", json!({"description": "before", "id": "t"}));
    board.cli_ok("update_task", json!({"task_id": "t", "description": "behind"}));
    let mut mixed = board.document();
    mixed["tasks"][0]["description"] = "before".into();
    mixed["layout"]["boot"] = "0000000000000000".into();
    let spare = board.file(&format!(".{STATE_FILE}.spare"));
    let _ = fs::remove_file(&spare);
    fs::write(&spare, mixed.to_string()).unwrap();
    board.cli_ok("create_task", json!({"description": "d", "id": "after"}));
    assert_eq!(board.task("t")["description"], "behind");
    let names = fs::read_dir(board.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kept = names
        .filter(|name| name.contains("rejected-") && !name.ends_with(".txt"))
        .collect::<Vec<_>>();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(board.file(&kept[0])).unwrap(), mixed.to_string());
    board.assert_file_is_the_replay();
}

/// With real processes: one that stays knows the plan as it was before, and again.
#[test]
fn plan_that_another_process_had_changed_is_shown_as_it_is_again() {
    for board in [Board::new(), Board::with_slots()] {
        let mut client = board.mcp();
        let plan = |plan: &str| json!({"goal": plan, "master_plan": format!("- {plan}\n")});
        let shows = |expected: &str| {
            let Some(Found::Sound(document)) = statefile::load(board.dir()).unwrap() else {
                panic!("it is not sound")
            };
            assert_eq!(
                (&*document.board.goal, document.board.seq),
                (expected, board.replay().seq())
            );
        };
        client.ok("init_coordination", plan("first"));
        client.ok("create_task", json!({"description": "d"}));
        for _ in 0..2 {
            board.cli_ok("init_coordination", plan("second"));
            board.cli_ok("create_task", json!({"description": "d"}));
            shows("second");
            client.ok("init_coordination", plan("first"));
            shows("first");
            client.ok("create_task", json!({"description": "d"}));
            shows("first");
            board.cli_ok("init_coordination", plan("second"));
            board.cli_ok("init_coordination", plan("first"));
            client.ok("create_task", json!({"description": "d"}));
            shows("first");
        }
    }
}

#[test]
fn process_that_was_taken_for_dead_is_shown_again_when_it_goes_on() {
    let board = Board::with_slots();
    let (mut one, mut other) = (board.mcp(), board.mcp());
    one.register("one");
    let participants = || board.document()["participants"].as_object().unwrap().clone();
    let id = participants().keys().next().unwrap().clone();
    other.register("other");
    let shows_it = || {
        let Some(Found::Sound(document)) = statefile::load(board.dir()).unwrap() else {
            panic!("it is not sound")
        };
        assert_eq!(document.board.seq, board.replay().seq());
        let text = fs::read_to_string(board.file(STATE_FILE)).unwrap();
        assert_eq!(text.matches(&format!("\"{id}\": {{")).count(), 1, "{text}");
    };
    for _ in 0..3 {
        one.signal(Signal::STOP);
        fs::remove_file(board.file("run").join(&id)).unwrap();
        until(PATIENCE, "it is taken for dead", || {
            (!participants().contains_key(&id)).then_some(())
        });
        one.signal(Signal::CONT);
        for (client, agent) in [(&mut one, "one"), (&mut other, "other")] {
            client.ok("heartbeat", json!({"agent_id": agent}));
            shows_it();
            client.ok("create_task", json!({"description": "d"}));
            shows_it();
        }
    }
}
