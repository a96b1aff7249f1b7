//! Processes that are killed, and boards that turn out to be damaged, foreign, full or read-only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::event::Event;
use rusqlite::{Connection, params};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Board, Client, STATE_FILE, available, size};

const SLOTS: usize = 4;

/// What the clients were told for certain.
#[derive(Default)]
struct Ledger {
    created: Vec<String>,
    claimed: Vec<(String, u64, String)>,
    completed: Vec<(String, String, String)>,
    refused: Vec<String>,
    unknown: usize,
    aimed: usize,
    random: usize,
}

/// An agent that acts through a series of processes.
struct Slot<'a> {
    board: &'a Board,
    agent: String,
    tickets: &'a AtomicUsize,
    ledger: Ledger,
    chance: u64,
    tasks: usize,
    /// Completions without a reply, to be repeated.
    unsure: Vec<(String, u64)>,
}

/// The process died during the call.
struct Lost;

impl Slot<'_> {
    fn run(mut self) -> Ledger {
        loop {
            let ticket = self
                .tickets
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .ok();
            let Some(ticket) = ticket else {
                self.live(&mut self.board.mcp(), false)
                    .unwrap_or_else(|Lost| panic!("{} died unasked", self.agent));
                return self.ledger;
            };
            // Knuth's linear congruential generator; only its high bits are good.
            self.chance = self
                .chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let chance = self.chance >> 33;
            if ticket % 10 < 3 {
                let failpoint = format!("after-commit:{}", 2 + chance % 25);
                let mut client = self.board.mcp_with(&[("CALLBOARD_FAILPOINT", &failpoint)]);
                while self.live(&mut client, true).is_ok() {}
                self.ledger.aimed += 1;
            } else {
                let mut client = self.board.mcp();
                let pid = Pid::from_raw(client.pid().cast_signed()).unwrap();
                let moment = Duration::from_millis(30 + chance % 500);
                // The process is not reaped before the client is dropped, so its id is not reused.
                let killer = thread::spawn(move || {
                    thread::sleep(moment);
                    kill_process(pid, Signal::KILL)
                });
                while self.live(&mut client, true).is_ok() {}
                killer.join().unwrap().unwrap();
                self.ledger.random += 1;
            }
        }
    }

    /// Works until the process dies or, if nobody kills it, until nothing is left.
    fn live(&mut self, client: &mut Client, doomed: bool) -> Result<(), Lost> {
        let agent = self.agent.clone();
        self.call(
            client,
            "register_agent",
            json!({"agent_id": agent, "role": "worker", "takeover": true}),
        )?;
        for (task, attempt) in std::mem::take(&mut self.unsure) {
            self.complete(client, task, attempt)?;
        }
        loop {
            if doomed {
                self.tasks += 1;
                let id = format!("task-{agent}-{}", self.tasks);
                let task = json!({"description": "d", "id": id, "max_attempts": 100});
                self.call(client, "create_task", task)?;
                self.ledger.created.push(id);
            }
            let reply =
                self.call(client, "claim_task", json!({"agent_id": agent, "wait_seconds": 2}))?;
            if let Some(held) = reply["holding"].as_array() {
                for one in held {
                    self.complete(
                        client,
                        one["task"].as_str().unwrap().to_owned(),
                        one["attempt"].as_u64().unwrap(),
                    )?;
                }
            } else if reply["success"] == true {
                let (task, attempt) =
                    (reply["task"]["id"].as_str().unwrap().to_owned(), &reply["attempt"]);
                let attempt = attempt.as_u64().unwrap();
                self.ledger.claimed.push((task.clone(), attempt, agent.clone()));
                self.complete(client, task, attempt)?;
            } else if !doomed && reply["verdict"] == "finished" {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, client: &mut Client, task: String, attempt: u64) -> Result<(), Lost> {
        let output = format!("{task} attempt {attempt} by {}", self.agent);
        let arguments =
            json!({"agent_id": self.agent, "task_id": task, "attempt": attempt, "output": output});
        let refused = self.ledger.refused.len();
        if let Err(lost) = self.call(client, "complete_task", arguments) {
            self.unsure.push((task, attempt));
            return Err(lost);
        }
        if self.ledger.refused.len() == refused {
            self.ledger.completed.push((task, self.agent.clone(), output));
        }
        Ok(())
    }

    fn call(&mut self, client: &mut Client, tool: &str, arguments: Value) -> Result<Value, Lost> {
        match client.try_patiently(tool, &arguments) {
            None => {
                self.ledger.unknown += 1;
                Err(Lost)
            }
            Some(reply) => {
                if reply.is_error {
                    self.ledger.refused.push(format!("{tool} {}: {}", reply.code(), reply.text));
                }
                Ok(reply.value)
            }
        }
    }
}

#[test]
fn killed_processes_lose_nothing_that_was_acknowledged_and_nothing_is_done_twice() {
    let kills = size("CALLBOARD_KILLS", 12);
    let board = Board::with_policy("grace_seconds = 1\nkeep_finished = 1000000");
    let tickets = AtomicUsize::new(kills);
    let ledgers = Mutex::new(Vec::new());
    let start = Instant::now();
    thread::scope(|scope| {
        for slot in 0..SLOTS {
            let (board, tickets, ledgers) = (&board, &tickets, &ledgers);
            scope.spawn(move || {
                let (ledger, chance) = (Ledger::default(), slot as u64 + 1);
                let agent = format!("worker-{slot}");
                let slot =
                    Slot { board, agent, tickets, ledger, chance, tasks: 0, unsure: Vec::new() };
                let ledger = slot.run();
                ledgers.lock().unwrap().push(ledger);
            });
        }
    });
    let ledgers = ledgers.into_inner().unwrap();
    let tasks = board.tasks();
    let mut completions = BTreeMap::<String, usize>::new();
    let mut owners = BTreeMap::new();
    let mut double_owners = 0;
    for recorded in board.events() {
        match recorded.event {
            Event::Completed { task, .. } => {
                *completions.entry(task.as_str().to_owned()).or_default() += 1
            }
            Event::Claimed { task, attempt, agent, .. } => {
                let claim = (task.as_str().to_owned(), u64::from(attempt));
                double_owners +=
                    usize::from(owners.insert(claim, agent.as_str().to_owned()).is_some());
            }
            _ => {}
        }
    }
    let all = |count: fn(&Ledger) -> usize| ledgers.iter().map(count).sum::<usize>();
    let lost_creates =
        ledgers.iter().flat_map(|one| &one.created).filter(|id| !tasks.contains_key(*id)).count();
    let lost_claims = ledgers
        .iter()
        .flat_map(|one| &one.claimed)
        .filter(|(task, attempt, agent)| owners.get(&(task.clone(), *attempt)) != Some(agent));
    let lost_claims = lost_claims.count();
    let lost_completes =
        ledgers.iter().flat_map(|one| &one.completed).filter(|(task, agent, output)| {
            let task = &tasks[task];
            task["status"] != "done"
                || task["claimed_by"] != **agent
                || task["result"]["output"] != **output
        });
    let lost_completes = lost_completes.count();
    let twice = completions.values().filter(|times| **times > 1).count() + double_owners;
    println!(
        "{} SIGKILLs ({} aimed behind the commit) of {SLOTS} processes in {:.1} s: acknowledged \
         {} creates, {} claims, {} completes; {} refused, {} unknown; lost {}, done twice {twice}",
        all(|one| one.aimed + one.random),
        all(|one| one.aimed),
        start.elapsed().as_secs_f64(),
        all(|one| one.created.len()),
        all(|one| one.claimed.len()),
        all(|one| one.completed.len()),
        all(|one| one.refused.len()),
        all(|one| one.unknown),
        lost_creates + lost_claims + lost_completes,
    );
    assert_eq!((lost_creates, lost_claims, lost_completes, twice), (0, 0, 0, 0));
    assert_eq!(all(|one| one.aimed + one.random), kills);
    let stray = ledgers
        .iter()
        .flat_map(|one| &one.refused)
        .filter(|text| !text.starts_with("complete_task attempt_over"));
    assert_eq!(stray.collect::<Vec<_>>(), [""; 0]);
    assert!(tasks.values().all(|task| task["status"] == "done"));
    assert_eq!(completions.len(), tasks.len());
    board.assert_file_is_the_replay();
}

/// A board with three tasks and no running process.
fn three_tasks() -> Board {
    let board = Board::new();
    for number in 1..=3 {
        board.cli_ok("create_task", json!({"description": "d", "id": format!("task-{number}")}));
    }
    board
}

fn journal_files(board: &Board) -> Vec<PathBuf> {
    ["journal.db", "journal.db-wal", "journal.db-shm"].map(|name| board.file(name)).into()
}

#[test]
fn damaged_state_file_is_moved_aside_and_rebuilt_from_the_journal() {
    for damage in [
        |text: &[u8]| text[..text.len() / 2].to_vec(),
        |text: &[u8]| text.replace_first(b"task-2", b"task-9"),
    ] {
        let board = three_tasks();
        let sound = fs::read(board.file(STATE_FILE)).unwrap();
        let damaged = damage(&sound);
        assert_ne!(sound, damaged);
        board.decay(&damaged);
        assert_eq!(board.cli_ok("get_status", json!({}))["total_tasks"], 3);
        assert_eq!(fs::read(board.file("mcp-state.json.quarantined-1")).unwrap(), damaged);
        board.assert_file_is_the_replay();
        board.cli_ok("create_task", json!({"description": "d", "id": "task-4"}));
        assert_eq!(
            board.tasks().into_keys().collect::<Vec<_>>(),
            ["task-1", "task-2", "task-3", "task-4"]
        );
        board.assert_file_is_the_replay();
    }
}

trait ReplaceFirst {
    fn replace_first(&self, old: &[u8], new: &[u8]) -> Vec<u8>;
}

impl ReplaceFirst for [u8] {
    fn replace_first(&self, old: &[u8], new: &[u8]) -> Vec<u8> {
        let place = self.windows(old.len()).position(|window| window == old).unwrap();
        [&self[..place], new, &self[place + old.len()..]].concat()
    }
}

#[test]
fn damaged_state_file_without_a_journal_is_refused_and_left_alone() {
    let board = Board::new();
    board.make_dir();
    fs::write(board.file(STATE_FILE), "{\"tasks\": [").unwrap();
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(refused.status.code(), Some(3), "{}", refused.stderr);
    assert_eq!(refused.code(), "state_file_unusable");
    assert_eq!(fs::read_to_string(board.file(STATE_FILE)).unwrap(), "{\"tasks\": [");
    assert!(!board.file("journal.db").exists());
}

#[test]
fn state_file_ahead_of_the_journal_is_refused_and_nothing_touched() {
    let board = three_tasks();
    let old: Vec<_> =
        journal_files(&board).into_iter().map(|path| (fs::read(&path).ok(), path)).collect();
    board.cli_ok("create_task", json!({"description": "d"}));
    for (bytes, path) in old.iter().filter(|(_, path)| !path.ends_with("journal.db-shm")) {
        let _ = fs::remove_file(path);
        bytes.iter().for_each(|bytes| fs::write(path, bytes).unwrap());
    }
    // SQLite rebuilds it from the log, which it must not be ahead of.
    let _ = fs::remove_file(board.file("journal.db-shm"));
    let (file, events) = (fs::read(board.file(STATE_FILE)).unwrap(), board.events());
    assert_eq!(events.len(), 4);
    for (operation, arguments) in
        [("get_status", json!({})), ("create_task", json!({"description": "d"}))]
    {
        let refused = board.cli(operation, arguments);
        assert_eq!(
            (refused.status.code(), refused.code().as_str()),
            (Some(3), "journal_behind"),
            "{operation}"
        );
        assert!(refused.stderr.contains("doctor"), "{}", refused.stderr);
    }
    assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), file);
    assert_eq!(board.events(), events);
    assert!(!board.file("mcp-state.json.quarantined-1").exists());
}

fn brokers_file(board: &Board) -> Vec<u8> {
    let original =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/typescript-broker/mcp-state.json");
    let original = fs::read(original).unwrap();
    board.make_dir();
    fs::write(board.file(STATE_FILE), &original).unwrap();
    original
}

#[test]
fn brokers_file_is_imported_by_the_first_write_and_kept() {
    let board = Board::new();
    let original = brokers_file(&board);
    board.cli_ok("create_task", json!({"description": "d", "id": "added"}));
    assert_eq!(fs::read(board.file("mcp-state.json.imported-1")).unwrap(), original);
    let before: Value = serde_json::from_slice(&original).unwrap();
    let tasks = board.tasks();
    let before = before["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), before.len() + 1);
    for task in before {
        assert_eq!(tasks[task["id"].as_str().unwrap()]["description"], task["description"]);
    }
    board.assert_file_is_the_replay();
}

#[test]
fn old_file_that_cannot_be_read_is_left_alone_and_names_the_task() {
    let board = Board::new();
    board.make_dir();
    let text = |priority: Value| {
        let tasks = json!([{"id": "good"}, {"id": "bad", "priority": priority}]);
        json!({"goal": "g", "created_at": "2026-03-01T10:00:00.000Z", "tasks": tasks}).to_string()
    };
    fs::write(board.file(STATE_FILE), text(json!("high"))).unwrap();
    for (operation, arguments) in
        [("get_status", json!({})), ("create_task", json!({"description": "d"}))]
    {
        for _ in 0..3 {
            let refused = board.cli(operation, arguments.clone());
            assert_eq!(refused.code(), "state_file_unusable", "{}", refused.stderr);
            for part in ["bad", "tasks[1].priority", "try again"] {
                assert!(refused.stderr.contains(part), "{operation}: {}", refused.stderr);
            }
        }
    }
    assert!(!board.file("mcp-state.json.imported-1").exists());
    // With the byte order mark that some editors write.
    let mended = [b"\xef\xbb\xbf".as_slice(), text(json!(1)).as_bytes()].concat();
    fs::write(board.file(STATE_FILE), &mended).unwrap();
    fs::write(board.file("mcp-state.json.imported-1"), &mended).unwrap();
    assert_eq!(board.cli_ok("get_status", json!({}))["last_activity"], "2026-03-01T10:00:00.000Z");
    assert_eq!(
        board.cli_ok("get_master_plan", json!({}))["created_at"],
        "2026-03-01T10:00:00.000Z"
    );
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(board.tasks().len(), 3);
    assert!(!board.file("mcp-state.json.imported-2").exists(), "it is there already");
}

#[test]
fn secrets_of_an_imported_file_do_not_come_over() {
    let board = Board::new();
    board.make_dir();
    let token = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let task = json!({"id": "old", "description": format!("{token}\u{1b}[31m red"), "status": "available"});
    fs::write(board.file(STATE_FILE), json!({"goal": "g", "tasks": [task]}).to_string()).unwrap();
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(board.tasks()["old"]["description"], "[redacted: github token] red");
    assert!(!fs::read_to_string(board.file(STATE_FILE)).unwrap().contains(&token));
}

#[test]
fn crash_while_a_board_is_made_leaves_the_next_process_everything() {
    for failpoint in ["create", "before-commit", "after-commit"] {
        let board = Board::new();
        let original: Value = serde_json::from_slice(&brokers_file(&board)).unwrap();
        let mut command = board.command();
        let killed = command
            .args(["call", "create_task", "{\"description\": \"d\"}"])
            .env("CALLBOARD_FAILPOINT", failpoint);
        assert!(!board.finish(killed).status.success(), "{failpoint}");
        board.cli_ok("create_task", json!({"description": "d", "id": "added"}));
        let tasks = board.tasks();
        for task in original["tasks"].as_array().unwrap() {
            assert!(tasks.contains_key(task["id"].as_str().unwrap()), "{failpoint}");
        }
        assert!(!board.file("mcp-state.json.quarantined-1").exists(), "{failpoint}");
        board.assert_file_is_the_replay();
    }
}

/// Appends an event of a newer callboard, chained as the journal's format requires.
fn append_from_the_future(board: &Board, key: Option<&str>) {
    let connection = Connection::open(board.file("journal.db")).unwrap();
    let last = "SELECT seq, hash, at_ms FROM events ORDER BY seq DESC LIMIT 1";
    let last =
        connection.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let (seq, previous, at_ms): (i64, Vec<u8>, i64) = last;
    let (seq, v, body) = (seq + 1, 99_u32, r#"{"kind":"task_teleported"}"#);
    let mut digest = Sha256::new();
    digest.update(&previous);
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let number = |bytes: &[u8]| Some(bytes.to_vec());
    let columns = [
        number(&seq.to_le_bytes()),
        text("p-future/1"),
        number(&v.to_le_bytes()),
        text("task_teleported"),
        number(&at_ms.to_le_bytes()),
        text("p-future"),
        None,
        key.and_then(text),
        key.and_then(text),
        text(body),
    ];
    for column in columns {
        digest.update(column.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        digest.update(column.unwrap_or_default());
    }
    let hash = digest.finalize().to_vec();
    let insert = "INSERT INTO events(seq, batch_id, v, kind, at_ms, participant, body, hash, \
                  idem_key, idem_params)
        VALUES (?1, 'p-future/1', ?2, 'task_teleported', ?3, 'p-future', ?4, ?5, ?6, ?6)";
    connection.execute(insert, params![seq, v, at_ms, body, hash, key]).unwrap();
}

#[test]
fn event_of_a_newer_version_stops_the_writing_and_not_the_reading() {
    for key in [None, Some("k")] {
        let board = three_tasks();
        let mut running = board.mcp();
        running.ok("create_task", json!({"description": "d"}));
        append_from_the_future(&board, key);
        let file = fs::read(board.file(STATE_FILE)).unwrap();
        for mut client in [running, board.mcp()] {
            let refused = client.call("create_task", json!({"description": "d"}));
            assert_eq!(refused.code(), "outdated", "{}", refused.text);
            assert!(refused.text.contains("restart"), "{}", refused.text);
            assert_eq!(client.ok("get_status", json!({}))["total_tasks"], 4);
            let told = client.ok("wait_for_events", json!({"since_seq": 1}));
            assert!(
                !told["events"].as_array().unwrap().is_empty() && told["more"] == false,
                "{told}"
            );
        }
        assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), file);
    }
}

/// A small file system mounted at the board, removed with the test.
struct Mount(PathBuf);

impl Mount {
    /// None, with the reason printed, if nothing can be mounted here.
    fn of(board: &Board, options: &str) -> Option<Self> {
        board.make_dir();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(board.dir())
            .output();
        let failure = match mount {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(format!(
                "nothing can be mounted: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
            Err(error) => Some(format!("nothing can be mounted: {error}")),
        };
        available("root", failure.as_deref()).then(|| Self(board.dir().to_owned()))
    }

    fn remount(&self, options: &str) {
        let status =
            Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn full_disk_is_an_error_until_there_is_space_again() {
    let board = Board::new();
    let Some(_mount) = Mount::of(&board, "size=2m,mode=700") else { return };
    let mut client = board.mcp();
    client.ok("init_coordination", json!({"goal": "fill the disk", "replace_goal": true}));
    fs::write(board.file("filler"), vec![0; 1 << 20]).unwrap();
    let mut acknowledged = Vec::new();
    let mut create = |client: &mut Client, number: usize| {
        let id = format!("task-{number}");
        let reply = client.call("create_task", json!({"description": "x".repeat(4_000), "id": id}));
        acknowledged.extend((!reply.is_error).then_some(id));
        reply
    };
    let refused = (0..1_000).map(|number| create(&mut client, number)).find(|reply| reply.is_error);
    let refused = refused.expect("the disk is full at last");
    assert!(
        ["not_written", "io", "bad_directory"].contains(&refused.code()),
        "{} {}",
        refused.code(),
        refused.text
    );
    assert!(refused.text.contains("space"), "{}", refused.text);
    client.ok("get_status", json!({}));
    fs::remove_file(board.file("filler")).unwrap();
    let again = create(&mut client, 2_000);
    assert!(!again.is_error, "{}", again.text);
    let tasks = board.tasks();
    assert_eq!(tasks.keys().collect::<BTreeSet<_>>(), acknowledged.iter().collect());
    println!(
        "full disk: {} tasks acknowledged and there, then {:?}",
        acknowledged.len(),
        refused.text
    );
    board.assert_file_is_the_replay();
}

#[test]
fn directory_that_cannot_be_written_is_an_error_until_it_can() {
    let board = Board::new();
    let Some(mount) = Mount::of(&board, "size=4m,mode=700") else { return };
    board.cli_ok("create_task", json!({"description": "d", "id": "before"}));
    mount.remount("ro");
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(refused.status.code(), Some(3), "{} {}", refused.stdout, refused.stderr);
    assert_eq!(refused.code(), "board_unwritable");
    assert!(refused.stderr.contains("mounted read-only"), "{}", refused.stderr);
    mount.remount("rw");
    board.cli_ok("create_task", json!({"description": "d", "id": "after"}));
    assert_eq!(board.tasks().into_keys().collect::<Vec<_>>(), ["after", "before"]);
    board.assert_file_is_the_replay();
}

/// A directory in which even root cannot create or remove files, until this is dropped.
struct Immutable(PathBuf);

impl Immutable {
    fn of(board: &Board) -> Option<Self> {
        let output = Command::new("chattr").arg("+i").arg(board.dir()).output();
        let failure = (!output.is_ok_and(|output| output.status.success()))
            .then_some("chattr +i does not work here");
        available("root", failure).then(|| Self(board.dir().to_owned()))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

#[test]
fn call_whose_state_file_cannot_be_written_is_done_with_a_warning_and_shown_later() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "d", "id": "before"}));
    let shown = fs::read(board.file(STATE_FILE)).unwrap();
    let Some(immutable) = Immutable::of(&board) else { return };
    let reply = client.ok("create_task", json!({"description": "d", "id": "unshown"}));
    let warning = reply["warning"].as_str().unwrap_or_else(|| panic!("no warning: {reply}"));
    assert!(warning.contains("in the journal"), "{warning}");
    assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), shown);
    drop(immutable);
    client.ok("create_task", json!({"description": "d", "id": "after"}));
    assert_eq!(board.tasks().into_keys().collect::<Vec<_>>(), ["after", "before", "unshown"]);
    board.assert_file_is_the_replay();
}

#[test]
fn directory_whose_run_leads_elsewhere_is_refused_and_nothing_there_is_touched() {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "g", "replace_goal": true}));
    let elsewhere = board.base().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::remove_dir_all(board.file("run")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, board.file("run")).unwrap();
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(
        (refused.status.code(), refused.code().as_str()),
        (Some(3), "bad_directory"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn damaged_state_file_without_a_journal_is_no_empty_board_to_readers() {
    let board = Board::new();
    board.make_dir();
    std::fs::write(board.file("mcp-state.json"), "{bad").unwrap();
    let refused = board.cli("get_status", json!({}));
    assert_eq!(
        (refused.status.code(), refused.code().as_str()),
        (Some(3), "state_file_unusable"),
        "{}",
        refused.stderr
    );
}
