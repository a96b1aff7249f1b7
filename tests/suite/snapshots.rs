//! Earlier states: snapshots, states by event and time, history, backups, and old state files put
//! back.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use callboard::clock::ManualClock;
use callboard::ops::Fetched;
use callboard::participant::{self, Caller, Options, Stay};
use callboard::snapshot::Snapshots;
use callboard::state::State;
use callboard::state::id::Chance;
use callboard::state::snapshot::{Occasion, SnapshotName};
use callboard::state::time::Timestamp;
use callboard::statefile::{self, Found};
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::harness::{Board, Finished, PATIENCE, STATE_FILE, StopAtEnd, until};
use crate::world::{Answered, World};

impl Board {
    fn run(&self, arguments: &[&str]) -> Finished {
        self.finish(self.command().args(arguments))
    }

    /// Reply of a command that must succeed.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Value {
        let finished = self.finish(self.command().arg("--json").args(arguments));
        assert!(
            finished.status.success(),
            "{arguments:?}: {} {}",
            finished.stdout,
            finished.stderr
        );
        finished.value()
    }

    /// Result of a command that must be refused or fail.
    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> Finished {
        let finished = self.finish(self.command().arg("--json").args(arguments));
        assert!(!finished.status.success(), "{arguments:?}: {}", finished.stdout);
        finished
    }

    fn snapshot_file(&self, name: &str) -> PathBuf {
        self.file("snapshots").join(name)
    }

    fn snapshot(&self) -> String {
        self.done(&["snapshot", "create"])["snapshot"].as_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<SnapshotName> {
        Snapshots::of(self.dir()).unwrap().names().unwrap()
    }

    /// Text of the state file after event `seq`, computed from the whole journal.
    fn text_at(&self, seq: u64) -> String {
        let mut state = State::new();
        for recorded in self.events().iter().take_while(|recorded| recorded.seq <= seq) {
            state.apply(recorded).unwrap();
            state.settle();
        }
        String::from_utf8(statefile::text_of(&state).unwrap()).unwrap()
    }

    fn add(&self, id: &str) {
        self.cli_ok("create_task", json!({"id": id, "description": format!("do {id}")}));
    }

    /// A board on which `worker` holds task `t`, and the seq before the claim.
    fn with_claim() -> (Self, u64) {
        let board = Self::new();
        board.add("t");
        board.cli_ok("register_agent", json!({"agent_id": "worker", "role": "worker"}));
        let before = board.document()["seq"].as_u64().unwrap();
        board.cli_ok("claim_task", json!({"agent_id": "worker", "task_id": "t"}));
        (board, before)
    }
}

#[test]
fn snapshot_is_listed_compared_restored_and_verified_by_command() {
    let board = Board::new();
    board.add("first");
    let name = board.snapshot();
    board.add("second");
    board.cli_ok("update_task", json!({"task_id": "first", "priority": 1}));
    let listed = board.done(&["snapshot", "list"]);
    assert_eq!(listed["snapshots"][0]["name"], name);
    assert_eq!(listed["snapshots"][0]["head"]["occasion"], "on_demand");
    let diff = board.done(&["snapshot", "diff", &name]);
    assert_eq!((&diff["added"], &diff["removed"]), (&json!(1), &json!(0)), "{diff}");
    let change = |table: &str, id: &str| {
        let changes = diff["changes"].as_array().unwrap().iter();
        changes
            .clone()
            .find(|one| one["table"] == table && one["id"] == id)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(change("tasks", "second")["kind"], "added");
    assert_eq!(
        change("tasks", "first"),
        json!({"table": "tasks", "id": "first", "kind": "changed", "fields": ["priority"]})
    );
    let page = board.cli_ok("diff_snapshots", json!({"from": name, "limit": 1, "after": 1}));
    assert_eq!((&page["changes"], &page["next"]), (&json!([diff["changes"][1]]), &json!(2)));

    let restored = board.done(&["snapshot", "restore", &name]);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["first"]);
    assert_eq!(board.task("first")["priority"], 5);
    board.assert_file_is_the_replay();
    board.done(&["snapshot", "restore", "--seq", &restored["before_seq"].to_string()]);
    assert_eq!((board.tasks().len(), &board.task("first")["priority"]), (2, &json!(1)));
    board.add("third");
    board.assert_file_is_the_replay();
    let verified = board.done(&["snapshot", "verify"]);
    assert_eq!((&verified["sound"], &verified["snapshots"]), (&json!(true), &json!(3)));
    let people = board.run(&["snapshot", "list"]).stdout;
    assert!(people.contains(&name) && people.contains("before a restore"), "{people}");
}

#[test]
fn zombie_of_a_restored_board_is_refused_and_its_attempt_number_is_never_used_again() {
    let (board, before) = Board::with_claim();
    let held = board.document()["seq"].as_u64().unwrap();
    let complete = json!({"agent_id": "worker", "task_id": "t", "output": "o", "attempt": 1});
    for (seq, code) in [(before, "not_held"), (held, "attempt_over")] {
        board.done(&["snapshot", "restore", "--seq", &seq.to_string()]);
        let task = board.task("t");
        assert_eq!((&task["status"], &task["attempt"]), (&json!("available"), &json!(1)), "{task}");
        assert_eq!(board.cli("complete_task", complete.clone()).code(), code);
        board.assert_file_is_the_replay();
    }
    let claim = board.cli_ok("claim_task", json!({"agent_id": "worker", "task_id": "t"}));
    assert_eq!(claim["attempt"], 2);
    assert_eq!(board.cli("complete_task", complete).code(), "attempt_over");
    assert_eq!(board.document()["agents"]["worker"]["current_tasks"], json!(["t"]));
    board.assert_file_is_the_replay();
}

#[test]
fn task_that_was_gone_for_a_while_goes_on_above_its_last_attempt() {
    let (board, _) = Board::with_claim();
    let held = board.document()["seq"].to_string();
    board.done(&["snapshot", "restore", "--seq", "1"]);
    assert!(board.tasks().is_empty());
    assert_eq!(board.document()["spent_attempts"], json!({"t": 1}));
    board.done(&["snapshot", "restore", "--seq", &held]);
    assert_eq!(
        (&board.task("t")["attempt"], &board.task("t")["uncounted"]),
        (&json!(1), &json!(1))
    );
    board.done(&["snapshot", "restore", "--seq", "1"]);
    board.add("t");
    let claim = board.cli_ok("claim_task", json!({"agent_id": "worker", "task_id": "t"}));
    assert_eq!(claim["attempt"], 2, "also when it is created anew");
    assert!(board.document().get("spent_attempts").is_none());
    board.assert_file_is_the_replay();
}

#[test]
fn living_processes_agents_and_idempotency_keys_outlive_a_restore() {
    let board = Board::new();
    let mut process = board.mcp();
    let create = json!({"id": "t", "description": "d", "idempotency_key": "k"});
    process.ok("create_task", create.clone());
    let name = board.snapshot();
    process.register("later");
    process.ok("claim_task", json!({"agent_id": "later"}));
    board.done(&["snapshot", "restore", &name]);
    let document = board.document();
    assert_eq!(document["participants"].as_object().unwrap().len(), 1);
    assert_eq!(document["agents"]["later"]["present_through"].as_array().unwrap().len(), 1);
    assert_eq!(process.ok("create_task", create)["already"], true);
    let claim = process.ok("claim_task", json!({"agent_id": "later"}));
    assert_eq!((&claim["task"]["id"], &claim["attempt"]), (&json!("t"), &json!(2)));
    process.kill();
    board.cli_ok("get_status", json!({}));
    board.assert_file_is_the_replay();
}

/// Calls with idempotency keys, and whether their effect outlasts a restore.
fn keyed_calls() -> [(&'static str, Value, bool); 8] {
    let of_agent = |more: Value| {
        let mut fields = json!({"agent_id": "a", "idempotency_key": "k"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let state = json!({"phase": "p", "step": 1, "status": "running"});
    let message = json!({"to": "a", "text": "b"});
    let add = json!([{"name": "create_task", "arguments": {"description": "d"}}]);
    [
        ("create_task", json!({"description": "d", "idempotency_key": "k"}), false),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "d"}], "idempotency_key": "k"}),
            false,
        ),
        ("apply_batch", json!({"operations": add, "idempotency_key": "k"}), false),
        ("create_run", of_agent(json!({"prompt": "p", "idempotency_key": "k"})), false),
        ("add_discovery", of_agent(json!({"content": "c"})), false),
        ("save_checkpoint", of_agent(json!({"workflow_id": "w", "state": state})), false),
        (
            "save_checkpoint",
            of_agent(json!({"workflow_id": "w", "spent": {"tokens": 5}, "idempotency_key": "s"})),
            true,
        ),
        ("send_message", of_agent(message), true),
    ]
}

#[test]
fn call_that_a_restore_has_undone_is_done_anew_with_the_same_key() {
    let board = Board::new();
    let mut process = board.mcp();
    process.register("a");
    let before = board.snapshot();
    for (tool, arguments, _) in keyed_calls() {
        process.ok(tool, arguments);
    }
    let after = board.snapshot();
    board.done(&["snapshot", "restore", &before]);
    // A process that was running during the restore, and one that was not, give the same answer.
    for (number, (tool, arguments, outlasts)) in keyed_calls().into_iter().enumerate() {
        let reply = match number % 2 {
            0 => process.ok(tool, arguments.clone()),
            _ => board.cli_ok(tool, arguments.clone()),
        };
        assert_eq!(reply.get("already").is_some(), outlasts, "{tool}: {reply}");
        let replies = [process.ok(tool, arguments.clone()), board.cli_ok(tool, arguments)];
        assert!(replies.iter().all(|reply| reply["already"] == true), "{tool}: {replies:?}");
    }
    assert_eq!(board.tasks().len(), 4);
    board.done(&["snapshot", "restore", &after]);
    for (tool, arguments, _) in keyed_calls() {
        let replies = [process.ok(tool, arguments.clone()), board.cli_ok(tool, arguments)];
        assert!(replies.iter().all(|reply| reply["already"] == true), "{tool}: {replies:?}");
    }
    assert_eq!(board.tasks().len(), 4, "the tasks that the first calls had created");
    process.kill();
    board.assert_file_is_the_replay();
}

#[test]
fn state_of_another_board_leaves_no_key_taken() {
    let (board, other) = (Board::new(), Board::new());
    let create = json!({"id": "t", "description": "d", "idempotency_key": "k"});
    board.cli_ok("create_task", create.clone());
    other.add("u");
    other.add("v");
    let file = other.file(STATE_FILE);
    board.done(&["restore", "--force", file.to_str().unwrap()]);
    assert!(board.cli_ok("create_task", create.clone()).get("already").is_none());
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t", "u", "v"]);
    assert_eq!(board.cli_ok("create_task", create)["already"], true);
    board.assert_file_is_the_replay();
}

/// The world makes every third step twice: the first time it is undone.
#[test]
fn restore_that_is_taken_back_leaves_nothing_behind() {
    let mut world = World::new().task("t").agent_in("a", "p").claimed("a", "t");
    let before = SnapshotName::parse("state-20260301T120000.000Z-00000000.json").unwrap();
    let document = Box::new(world.state.to_document());
    world.fetched = Fetched::Earlier { document, snapshot: None, before };
    for attempt in 2..8 {
        world
            .nobody()
            .call("restore_snapshot", json!({"seq": 4}))
            .replies(json!({"success": true}));
        assert!(world.state.is_ready(&world.read("t").id));
        let claim = world.claim("a", "t");
        assert_eq!((&claim["attempt"], world.read("t").attempts_used()), (&json!(attempt), 1));
    }
    assert_eq!(world.agents_present().len(), 1);
}

#[test]
fn writer_that_was_stopped_in_a_snapshot_holds_up_no_commit() {
    let board = Board::new();
    board.add("t");
    board.snapshot();
    let held = fs::OpenOptions::new().write(true).open(board.snapshot_file("lock")).unwrap();
    held.lock().unwrap();
    for number in 0..150 {
        board.cli_ok(
            "update_task",
            json!({"task_id": "t", "description": format!("{number:4}").repeat(4_000)}),
        );
    }
    assert_eq!(board.names().len(), 1, "two megabytes, and nobody could write");
    drop(held);
    board.add("later");
    board.cli_ok("update_task", json!({"task_id": "t", "description": "x".repeat(16_000)}));
    assert_eq!(board.names().len(), 2);
    board.assert_file_is_the_replay();
}

#[test]
fn only_a_leader_takes_snapshots_and_restores() {
    let (board, _) = Board::with_claim();
    for (operation, arguments) in [
        ("create_snapshot", json!({"agent_id": "worker"})),
        ("restore_snapshot", json!({"agent_id": "worker", "seq": 1})),
    ] {
        assert_eq!(board.cli(operation, arguments).code(), "not_leader");
    }
    assert_eq!(board.names(), [], "and nothing was written for them");
    assert_eq!(
        board.cli("create_snapshot", json!({"label": "x".repeat(201)})).code(),
        "over_limit"
    );
    let step = json!({"operations": [{"name": "restore_snapshot", "arguments": {"seq": 1}}]});
    assert_eq!(board.cli("apply_batch", step).code(), "batch_item");
}

#[test]
fn names_that_are_paths_are_refused() {
    let board = Board::new();
    board.add("t");
    board.snapshot();
    let good = board.names()[0].to_string();
    let dotted = format!("../snapshots/{good}");
    for name in
        ["../x", "../../etc/passwd", "/etc/passwd", "latest.json", "lock", dotted.as_str(), ""]
    {
        assert_eq!(
            board.cli("restore_snapshot", json!({"snapshot": name})).code(),
            "bad_snapshot_name",
            "{name}"
        );
        assert_eq!(
            board.cli("diff_snapshots", json!({"from": name})).code(),
            "bad_snapshot_name",
            "{name}"
        );
    }
    let absent = "state-20260301T120000.000Z-00000000.json";
    assert_eq!(
        board.cli("restore_snapshot", json!({"snapshot": absent})).code(),
        "unknown_snapshot"
    );
    for seq in [0, 1_000] {
        assert_eq!(board.cli("restore_snapshot", json!({"seq": seq})).code(), "not_in_the_past");
    }
    assert_eq!(board.cli("restore_snapshot", json!({})).code(), "restore_what");
    assert_eq!(board.names().len(), 1, "a refused restore takes no snapshot");
}

#[test]
fn damaged_newest_snapshot_is_told_and_the_newest_sound_one_is_used() {
    let board = Board::new();
    board.add("one");
    let sound = board.snapshot();
    board.add("two");
    let damaged = board.snapshot();
    let path = board.snapshot_file(&damaged);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("do two", "do 2wo")).unwrap();
    board.add("three");

    let refused = board.fails(&["snapshot", "restore", &damaged]);
    assert_eq!(refused.code(), "snapshot_damaged");
    assert!(refused.stderr.contains(&sound), "{}", refused.stderr);
    let verified = board.fails(&["snapshot", "verify"]);
    assert_eq!(verified.status.code(), Some(3));
    let report = verified.value();
    assert_eq!(
        (&report["newest_sound"], &report["problems"][0]["file"]),
        (&json!(sound), &json!(damaged))
    );
    let past = board.document()["seq"].as_u64().unwrap() - 1;
    assert_eq!(board.run(&["state", "--at", &past.to_string()]).stdout, board.text_at(past));
    let restored = board.done(&["snapshot", "restore", "latest"]);
    assert_eq!(restored["restored"], sound);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["one"]);
    assert!(path.exists(), "nothing is moved");
}

#[test]
fn latest_that_is_missing_or_lies_is_told_and_believed_by_nobody() {
    let board = Board::new();
    board.add("one");
    let first = board.snapshot();
    board.add("two");
    let newest = board.snapshot();
    let latest = board.snapshot_file("latest.json");
    let honest: Value = serde_json::from_slice(&fs::read(&latest).unwrap()).unwrap();
    assert_eq!((&honest["version"], &honest["path"]), (&json!(1), &json!(newest)));
    let lies = [
        json!({"version": 1, "path": first, "sha256": "0"}),
        json!({"version": 1, "path": newest, "sha256": "0".repeat(64)}),
        json!({"version": 1, "path": "../mcp-state.json", "sha256": honest["sha256"]}),
        json!({"version": 2}),
        json!(null),
    ];
    for lie in lies {
        fs::write(&latest, lie.to_string()).unwrap();
        let report = board.fails(&["snapshot", "verify"]).value();
        assert_eq!(report["problems"][0]["file"], "latest.json", "{lie}: {report}");
        assert_eq!(report["newest_sound"], newest);
        assert_eq!(board.done(&["snapshot", "diff", "2", &newest])["to_seq"], 3);
    }
    fs::remove_file(&latest).unwrap();
    assert_eq!(
        board.fails(&["snapshot", "verify"]).value()["problems"].as_array().unwrap().len(),
        1
    );
    board.snapshot();
    assert_eq!(board.done(&["snapshot", "verify"])["sound"], true, "the next one writes it anew");
}

#[test]
fn snapshots_taken_while_four_processes_write_equal_the_replay_at_their_seq() {
    let board = Board::new();
    board.add("first");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also if a writer fails.
        let stop = StopAtEnd(&done);
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let board = &board;
                scope.spawn(move || {
                    let mut process = board.mcp();
                    let leader = json!({"agent_id": format!("a{writer}"), "role": "leader"});
                    process.ok("register_agent", leader);
                    for number in 0..40 {
                        process.ok(
                            "create_task",
                            json!({"id": format!("t{writer}-{number}"), "description": "d"}),
                        );
                        process.ok("claim_task", json!({"agent_id": format!("a{writer}")}));
                        if number % 10 == writer {
                            process.ok("create_snapshot", json!({"label": format!("of {writer}")}));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                board.done(&["snapshot", "create"]);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(stop);
    });
    let snapshots = Snapshots::of(board.dir()).unwrap();
    let names = snapshots.names().unwrap();
    assert!(names.len() >= 16, "{names:?}");
    for name in &names {
        let snapshot = snapshots.load(name).unwrap();
        let text = statefile::text_of(&State::from_document(snapshot.state)).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), board.text_at(snapshot.head.seq), "{name}");
    }
    let report = snapshots.verify().unwrap();
    assert!(report.sound, "{report:?}");
    println!("{} snapshots by 5 processes equal the replay at their seq", names.len());
}

#[test]
fn snapshot_is_taken_when_the_journal_has_grown_by_a_megabyte() {
    for lasting in [false, true] {
        let board = Board::new();
        let mut process = lasting.then(|| board.mcp());
        let leader = json!({"agent_id": "boss", "role": "leader"});
        process.iter_mut().for_each(|process| drop(process.ok("register_agent", leader.clone())));
        let mut write = |number: u32| {
            let fields = json!({"id": "t", "description": format!("{number}").repeat(4_000)});
            let change = json!({"task_id": "t", "description": fields["description"]});
            let (name, arguments) =
                if number == 0 { ("create_task", fields) } else { ("update_task", change) };
            match &mut process {
                Some(process) => drop(process.ok(name, arguments)),
                None => drop(board.cli_ok(name, arguments)),
            }
        };
        (0..100).for_each(&mut write);
        assert_eq!(board.names(), [], "half a megabyte");
        (100..150).for_each(&mut write);
        let taken = until(PATIENCE, "a snapshot", || {
            let listed = Snapshots::of(board.dir()).unwrap().list().unwrap();
            listed.last().and_then(|one| one.head.clone())
        });
        assert_eq!(taken.occasion, Occasion::Growth);
        assert_eq!(board.names().len(), 1, "one will do for a while");
    }
}

#[test]
fn killed_between_a_snapshot_and_latest_leaves_sound_snapshots() {
    let board = Board::new();
    board.add("t");
    board.snapshot();
    let mut killed = board.command();
    killed.args(["snapshot", "create"]).env("CALLBOARD_FAILPOINT", "snapshot");
    assert!(!board.finish(&mut killed).status.success());
    assert_eq!(board.names().len(), 2);
    fs::write(board.snapshot_file(".latest.json.tmp"), "half").unwrap();
    assert_eq!(board.fails(&["snapshot", "verify"]).value()["problems"][0]["file"], "latest.json");
    board.snapshot();
    assert_eq!(board.done(&["snapshot", "verify"])["snapshots"], 3);
    assert!(!board.snapshot_file(".latest.json.tmp").exists());
}

#[test]
fn policy_says_how_long_snapshots_are_kept() {
    let board = Board::with_policy("max_checkpoints = 2\ncheckpoint_days = 1");
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = participant::spawn(Options {
        dir: board.dir().to_owned(),
        state_file: None,
        stay: Stay::Lasting,
        forbidden: None,
        unasked: None,
        unwritable: None,
        clock: Box::new(clock.clone()),
        seed: 1,
        worktree: None,
    });
    let call = |name: &str, arguments: Value| {
        runtime
            .block_on(handle.call(name, arguments, &Caller::default()))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    call("init_coordination", json!({"goal": "g", "replace_goal": true}));
    let mut taken = Vec::new();
    for hours in [0, 1, 1, 20, 10, 72] {
        clock.advance(Duration::from_secs(hours * 3_600));
        taken.push(call("create_snapshot", json!({}))["snapshot"].as_str().unwrap().to_owned());
    }
    let kept: Vec<_> = board.names().iter().map(ToString::to_string).collect();
    assert_eq!(kept, taken[4..], "the newest two, and none is younger than a day but the last");
    let report = call("verify_snapshots", json!({}));
    assert_eq!((&report["sound"], &report["pruned_before"]), (&json!(true), &json!(taken[4])));
}

#[test]
fn past_states_equal_a_fresh_replay_byte_for_byte() {
    let board = Board::new();
    random_history(&board, 120);
    let events = board.events();
    let head = events.last().unwrap().seq;
    let mut chance = Chance::new(7);
    for _ in 0..12 {
        let seq = 1 + chance.draw() % head;
        let expected = board.text_at(seq);
        assert_eq!(board.run(&["state", "--at", &seq.to_string()]).stdout, expected, "event {seq}");
        // The newest event of that moment.
        let at = events[seq as usize - 1].at;
        let last = events.iter().rev().find(|recorded| recorded.at <= at).unwrap().seq;
        assert_eq!(
            board.run(&["state", "--at", &at.to_string()]).stdout,
            board.text_at(last),
            "{at}"
        );
    }
    let Some(Found::Sound(shown)) = statefile::load(board.dir()).unwrap() else {
        panic!("the file is not sound")
    };
    let shown = statefile::text_of(&State::from_document(*shown)).unwrap();
    assert_eq!(board.run(&["state"]).stdout.into_bytes(), shown);
    for beyond in ["0", &(head + 1).to_string(), "2020-01-01T00:00:00Z"] {
        assert_eq!(board.fails(&["state", "--at", beyond]).code(), "not_in_the_past");
    }
    assert!(board.names().len() > 5);
}

/// Makes random tasks, claims, results, snapshots and restores; they depend only on `steps`.
fn random_history(board: &Board, steps: u64) {
    let mut process = board.mcp();
    let mut chance = Chance::new(42);
    process.ok("init_coordination", json!({"goal": "random", "replace_goal": true}));
    for agent in ["a", "b"] {
        process.register(agent);
    }
    for step in 0..steps {
        let agent = if chance.draw().is_multiple_of(2) { "a" } else { "b" };
        let held = process.ok("get_agents", json!({}));
        let held = held["agents"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == agent)
            .cloned()
            .unwrap();
        let task = held["current_task"].clone();
        match (chance.draw() % 12, task.is_string()) {
            (0..=3, _) => {
                drop(process.ok(
                    "create_task",
                    json!({"id": format!("t{step}"), "description": "é\n\"x\""}),
                ))
            }
            (4..=8, false) => drop(process.ok("claim_task", json!({"agent_id": agent}))),
            (4..=6, true) => {
                drop(process.ok(
                    "complete_task",
                    json!({"agent_id": agent, "task_id": task, "output": "o"}),
                ));
            }
            (7, true) => drop(
                process.ok("fail_task", json!({"agent_id": agent, "task_id": task, "error": "e"})),
            ),
            (8, true) => drop(
                process
                    .ok("release_task", json!({"agent_id": agent, "task_id": task, "reason": "r"})),
            ),
            (9, _) => drop(process.ok("add_discovery", json!({"agent_id": agent, "content": "c"}))),
            (10, _) => drop(process.lead("create_snapshot", json!({}))),
            _ => {
                let head = process.ok("get_status", json!({}))["seq"].as_u64().unwrap();
                drop(process.lead("restore_snapshot", json!({"seq": 1 + chance.draw() % head})));
            }
        }
    }
}

#[test]
fn restores_at_random_keep_every_invariant_and_the_replay() {
    let board = Board::new();
    random_history(&board, 200);
    // `replay` asserts every invariant of the state.
    let restores = board.events().iter().filter(|one| one.event.kind() == "state_restored").count();
    assert!(restores > 5, "{restores}");
    board.cli_ok(
        "init_coordination",
        json!({"goal": "the process has ended", "replace_goal": true}),
    );
    board.assert_file_is_the_replay();
    println!("{} events with {restores} restores replay to the state file", board.events().len());
}

#[test]
fn history_is_paged_and_filtered() {
    let (board, _) = Board::with_claim();
    board.add("other");
    board.cli_ok("complete_task", json!({"agent_id": "worker", "task_id": "t", "output": "o"}));
    board.done(&["snapshot", "restore", "--seq", "2"]);
    let seqs = |reply: &Value| -> Vec<u64> {
        reply["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["seq"].as_u64().unwrap())
            .collect()
    };
    let kinds = |reply: &Value| -> Vec<String> {
        reply["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = board.done(&["history"]);
    let head = board.document()["seq"].as_u64().unwrap();
    assert_eq!(seqs(&all), (1..=head).rev().collect::<Vec<_>>());
    assert_eq!(
        kinds(&board.done(&["history", "--task", "t"])),
        ["completed", "claimed", "tasks_created"]
    );
    assert_eq!(
        kinds(&board.done(&["history", "--of", "worker"])),
        ["completed", "claimed", "agent_registered"]
    );
    assert_eq!(
        kinds(&board.done(&["history", "--kind", "claimed", "--kind", "completed"])).len(),
        2
    );
    let page = board.done(&["history", "--limit", "2"]);
    assert_eq!((seqs(&page), page["next"].as_u64()), (vec![head, head - 1], Some(head - 1)));
    let next = board.done(&["history", "--limit", "2", "--before", &page["next"].to_string()]);
    assert_eq!(seqs(&next), [head - 2, head - 3]);
    assert_eq!(
        seqs(&board.done(&["history", "--since", "4"])),
        (5..=head).rev().collect::<Vec<_>>()
    );
    assert_eq!(seqs(&board.done(&["history", "--since", "1d"])).len() as u64, head);
    assert!(seqs(&board.done(&["history", "--since", "2100-01-01T00:00:00Z"])).is_empty());
    let forwards = board.cli_ok("get_history", json!({"since_seq": 1, "limit": 3}));
    assert_eq!((seqs(&forwards), &forwards["next"]), (vec![2, 3, 4], &json!(4)));
    let between = board.cli_ok("get_history", json!({"since_seq": 1, "before_seq": 4, "limit": 1}));
    assert_eq!((seqs(&between), &between["next"]), (vec![2], &json!(2)));
    let between = board.cli_ok("get_history", json!({"since_seq": 2, "before_seq": 4}));
    assert_eq!((seqs(&between), &between["next"]), (vec![3], &Value::Null));
    let restored = &all["events"][0];
    assert_eq!(
        (&restored["restored_seq"], restored.get("document")),
        (&json!(2), None),
        "not the whole state"
    );
    assert!(
        board.run(&["history"]).stdout.contains("completed #1 \"do t\""),
        "{}",
        board.run(&["history"]).stdout
    );
}

#[test]
fn history_ends_where_a_board_begins_that_goes_on_from_a_state() {
    let (old, board) = (Board::new(), Board::new());
    (0..20).for_each(|number| old.add(&format!("old-{number}")));
    let file = old.file(STATE_FILE);
    assert!(board.run(&["restore", file.to_str().unwrap()]).status.success());
    assert_eq!(board.cli_ok("get_history", json!({"since_seq": 0}))["next"], Value::Null);
    let none = board.cli_ok("wait_for_events", json!({"since_seq": 0}));
    assert_eq!((&none["events"], &none["more"]), (&json!([]), &json!(false)));
    ["a", "b"].iter().for_each(|task| board.add(task));
    let first = board.events()[0].seq;
    let head = board.document()["seq"].as_u64().unwrap();
    assert!(first > 20);
    let mut seen = Vec::new();
    let mut page = board.done(&["history", "--limit", "2"]);
    while let Some(next) = page["next"].as_u64() {
        seen.extend(
            page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()),
        );
        assert!(seen.len() <= 10, "{seen:?}");
        page = board.done(&["history", "--limit", "2", "--before", &next.to_string()]);
    }
    seen.extend(
        page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()),
    );
    assert_eq!(seen, (first..=head).rev().collect::<Vec<_>>());
    assert_eq!(board.done(&["history", "--task", "old-3"])["events"], json!([]));
    assert_eq!(board.done(&["explain", "a"])["last_change"]["kind"], "tasks_created");
    let refused = board.run(&["state", "--at", "3"]);
    assert!(refused.stderr.contains(&format!("the first is {first}")), "{}", refused.stderr);
}

#[test]
fn events_of_a_large_board_are_told_in_pages_that_can_be_read() {
    let board = Board::new();
    let mut client = board.mcp();
    for batch in 0..3 {
        let draft = |number| json!({"id": format!("t{batch}-{number}"), "description": "x".repeat(16 * 1024)});
        client.ok("create_tasks_batch", json!({"tasks": (0..200).map(draft).collect::<Vec<_>>()}));
    }
    board.done(&["snapshot", "restore", "--seq", "3"]);
    let (mut since, mut seqs, mut restored) = (0, Vec::new(), Value::Null);
    loop {
        let reply = client.ok("wait_for_events", json!({"since_seq": since}));
        assert!(reply.to_string().len() < 80 * 1024, "{} bytes", reply.to_string().len());
        for event in reply["events"].as_array().unwrap() {
            seqs.push(event["seq"].as_u64().unwrap());
            restored = event.clone();
        }
        since = reply["next_seq"].as_u64().unwrap();
        if reply["more"] == false {
            break;
        }
    }
    assert_eq!(seqs, board.events().iter().map(|recorded| recorded.seq).collect::<Vec<_>>());
    assert_eq!((&restored["kind"], &restored["tasks"]), (&json!("state_restored"), &json!(400)));
    let history = board.run(&["history"]).stdout;
    assert!(history.contains("200 tasks") && history.contains("after event 3"), "{history}");
}

#[test]
fn backup_made_while_others_write_is_a_board_at_one_event() {
    let board = Board::new();
    board.add("first");
    let file = board.base().join("b.backup");
    let stop = AtomicBool::new(false);
    let mut backups = Vec::new();
    thread::scope(|scope| {
        for writer in 0..2 {
            let (board, stop) = (&board, &stop);
            scope.spawn(move || {
                let mut process = board.mcp();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    process.ok(
                        "create_task",
                        json!({"id": format!("t{writer}-{number}"), "description": "d"}),
                    );
                }
            });
        }
        for number in 0..3 {
            let path = board.base().join(format!("{number}.backup"));
            let reply = board.done(&["backup", path.to_str().unwrap()]);
            backups.push((path, reply["seq"].as_u64().unwrap()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (path, seq) in &backups {
        let copy = Board::new();
        let reply = copy.done(&["restore", path.to_str().unwrap()]);
        assert_eq!(reply["seq"].as_u64(), Some(*seq));
        assert_eq!(fs::read_to_string(copy.file(STATE_FILE)).unwrap(), board.text_at(*seq));
        assert_eq!(copy.events(), board.events()[..*seq as usize]);
        copy.add("goes-on");
        copy.assert_file_is_the_replay();
        assert_eq!(copy.done(&["doctor"])["healthy"], true);
    }
    board.done(&["backup", file.to_str().unwrap()]);
    assert!(board.fails(&["backup", file.to_str().unwrap()]).stderr.contains("--force"));
    board.done(&["backup", file.to_str().unwrap(), "--force"]);
    let left: Vec<_> =
        names(board.base()).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn restore_over_a_board_is_an_event_after_a_backup() {
    let board = Board::new();
    board.add("kept");
    let file = board.base().join("b.backup");
    board.done(&["backup", file.to_str().unwrap()]);
    let mut process = board.mcp();
    process.ok("create_task", json!({"id": "lost", "description": "d"}));
    assert!(board.fails(&["restore", file.to_str().unwrap()]).stderr.contains("--force"));
    let reply = board.done(&["restore", file.to_str().unwrap(), "--force"]);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["kept"]);
    // The process that has been there all the time continues.
    process.ok("create_task", json!({"id": "new", "description": "d"}));
    drop(process);
    board.cli_ok("init_coordination", json!({"goal": "g", "replace_goal": true}));
    board.assert_file_is_the_replay();
    let copy = Board::new();
    copy.done(&["restore", reply["backup"].as_str().unwrap()]);
    assert_eq!(copy.tasks().keys().collect::<Vec<_>>(), ["kept", "lost"]);
    board.done(&["snapshot", "restore", "--seq", &reply["before_seq"].to_string()]);
    assert_eq!(board.tasks().len(), 2);
}

#[test]
fn state_file_is_restored_by_its_bare_name() {
    let (older, board) = (Board::new(), Board::new());
    older.add("t");
    let restored =
        board.finish(board.command().current_dir(older.dir()).args(["restore", STATE_FILE]));
    assert!(restored.status.success(), "{}", restored.stderr);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t"]);
}

#[test]
fn snapshot_that_failed_is_not_there() {
    let board = Board::new();
    board.add("t");
    let mut failing = board.command();
    failing.args(["snapshot", "create"]).env("CALLBOARD_FAILPOINT", "snapshot:1:error");
    assert!(!board.finish(&mut failing).status.success());
    assert!(board.names().is_empty());
    board.snapshot();
    assert_eq!(board.done(&["snapshot", "verify"])["sound"], true);
}

#[test]
fn state_file_is_restored_into_an_empty_directory_and_over_a_board() {
    let older = Board::new();
    older.add("t");
    let file = older.file(STATE_FILE);
    let board = Board::new();
    let told = board.run(&["restore", file.to_str().unwrap()]);
    assert!(
        told.status.success() && told.stdout.contains("the first writing call"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    board.add("more");
    assert_eq!(board.tasks().len(), 2);
    board.done(&["restore", file.to_str().unwrap(), "--force"]);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t"]);
    board.assert_file_is_the_replay();
}

#[test]
fn board_whose_journal_is_damaged_is_moved_aside_by_a_forced_restore() {
    let board = Board::new();
    board.add("t");
    let file = board.base().join("b.backup");
    board.done(&["backup", file.to_str().unwrap()]);
    board.snapshot();
    fs::write(board.file("journal.db"), "damaged").unwrap();
    let reply = board.done(&["restore", file.to_str().unwrap(), "--force"]);
    let aside = PathBuf::from(reply["aside"].as_str().unwrap());
    assert_eq!(fs::read_to_string(aside.join("journal.db")).unwrap(), "damaged");
    assert!(aside.join("snapshots").exists());
    board.add("goes-on");
    board.assert_file_is_the_replay();
}

#[test]
fn damaged_backup_is_not_restored() {
    let board = Board::new();
    board.add("t");
    let file = board.base().join("b.backup");
    board.done(&["backup", file.to_str().unwrap()]);
    let bytes = fs::read(&file).unwrap();
    let empty = Board::new();
    for place in (0..bytes.len()).step_by(bytes.len() / 23) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        fs::write(&file, &damaged).unwrap();
        empty.fails(&["restore", file.to_str().unwrap()]);
        fs::write(&file, &bytes[..place]).unwrap();
        empty.fails(&["restore", file.to_str().unwrap()]);
        assert!(!empty.dir().exists(), "byte {place}");
    }
}

#[test]
fn old_state_file_put_back_by_hand_is_kept_and_told() {
    for copied in [true, false] {
        let board = Board::new();
        board.add("first");
        let old = board.base().join("old.json");
        Command::new("cp").arg("-p").arg(board.file(STATE_FILE)).arg(&old).status().unwrap();
        board.add("second");
        board.add("third");
        if copied {
            _ = fs::copy(&old, board.file(STATE_FILE)).unwrap();
        } else {
            fs::rename(&old, board.file(STATE_FILE)).unwrap()
        }
        let reply = board.cli_ok("create_task", json!({"id": "fourth", "description": "d"}));
        let warning = reply["warning"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(warning.contains("callboard snapshot restore --seq 2"), "{warning}");
        assert_eq!(board.tasks().len(), 4, "the present one is there again");
        board.assert_file_is_the_replay();
        let kept: Value =
            serde_json::from_slice(&fs::read(board.file("mcp-state.json.put-back-1")).unwrap())
                .unwrap();
        assert_eq!(kept["seq"], 2);
        assert_eq!(
            board.cli_ok("create_task", json!({"id": "fifth", "description": "d"})).get("warning"),
            None
        );
        board.done(&["snapshot", "restore", "--seq", "2"]);
        assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["first"]);
    }
}

#[test]
fn state_file_that_a_killed_process_left_behind_is_no_old_one_put_back() {
    let board = Board::new();
    board.add("first");
    let mut killed = board.command();
    killed.args(["call", "create_task", r#"{"id": "second", "description": "d"}"#]);
    killed.env("CALLBOARD_FAILPOINT", "after-commit");
    assert!(!board.finish(&mut killed).status.success());
    let reply = board.cli_ok("create_task", json!({"id": "third", "description": "d"}));
    assert_eq!((reply.get("warning"), board.tasks().len()), (None, 3));
}

#[test]
fn backup_takes_the_place_of_regular_files_only() {
    let board = Board::new();
    board.add("t");
    let at = |name: &str| board.base().join(name);
    fs::write(at("target"), "kept").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (name, why) in
        [("link", "name its target"), ("pipe", "not a regular file"), ("", "not a regular file")]
    {
        let refused = board.fails(&["backup", at(name).to_str().unwrap(), "--force"]);
        assert!(refused.stderr.contains(why), "{name}: {}", refused.stderr);
    }
    assert_eq!(fs::read_to_string(at("link")).unwrap(), "kept");
    assert!(fs::symlink_metadata(at("pipe")).unwrap().file_type().is_fifo());
    board.done(&["backup", at("target").to_str().unwrap(), "--force"]);
}

#[test]
fn backup_says_when_there_is_no_board() {
    let board = Board::new();
    let file = board.base().join("b.backup");
    assert!(board.fails(&["backup", file.to_str().unwrap()]).stderr.contains("no board here"));
    assert!(!file.exists());
}

#[test]
#[cfg(target_os = "linux")]
fn backup_may_have_any_name() {
    let board = Board::new();
    board.add("t");
    let dir = board.base().join(OsStr::from_bytes(b"\xff"));
    fs::create_dir(&dir).unwrap();
    let file = dir.join("b.backup");
    let finished = board.finish(board.command().arg("backup").arg(&file));
    assert!(finished.status.success(), "{}", finished.stderr);
    let copy = Board::new();
    let finished = copy.finish(copy.command().arg("restore").arg(&file));
    assert!(finished.status.success() && copy.tasks().len() == 1, "{}", finished.stderr);
}

#[test]
fn good_backup_takes_the_place_of_a_board_that_is_damaged_inside() {
    let damages = [
        "UPDATE events SET body = body || ' ' WHERE seq = 2",
        // Its end is missing: the state file is ahead of it.
        "DELETE FROM events WHERE seq > 2",
    ];
    for damage in damages {
        let board = Board::new();
        ["one", "two", "three"].iter().for_each(|id| board.add(id));
        let file = board.base().join("b.backup");
        board.done(&["backup", file.to_str().unwrap()]);
        Connection::open(board.file("journal.db")).unwrap().execute_batch(damage).unwrap();
        let reply = board.done(&["restore", file.to_str().unwrap(), "--force"]);
        assert!(
            PathBuf::from(reply["aside"].as_str().unwrap()).join("journal.db").exists(),
            "{reply}"
        );
        let left = names(board.dir()).into_iter().find(|name| name.starts_with("before-restore"));
        assert_eq!(left, None, "{damage}");
        board.add("goes-on");
        assert_eq!(board.tasks().len(), 4);
        assert_eq!(board.done(&["doctor"])["healthy"], true);
        board.assert_file_is_the_replay();
    }
}

#[test]
fn time_before_the_board_is_told_with_its_beginning() {
    let board = Board::new();
    board.add("t");
    let refused = board.fails(&["state", "--at", "1999-01-01T00:00:00Z"]);
    let began = board.document()["created_at"].as_str().unwrap().to_owned();
    assert_eq!((refused.code().as_str(), refused.status.code()), ("not_in_the_past", Some(1)));
    assert!(
        refused.stderr.contains("1999-01-01") && refused.stderr.contains(&began),
        "{}",
        refused.stderr
    );
}
