//! Boards whose files are damaged, missing, inconsistent, or deleted while processes run: the board
//! continues from what is sound, the rest is kept, and what was lost is reported.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::digest::sha256;
use callboard::state::event::Event;
use rusqlite::Connection;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{
    Board, Client, Finished, PATIENCE, STATE_FILE, StopAtEnd, remove_live, size, until,
};
use crate::participants::watcher;

/// A board with three tasks, at event 4, and no running process.
fn three_tasks() -> Board {
    let board = Board::new();
    for number in 1..=3 {
        create(&board, &format!("task-{number}"));
    }
    assert_eq!(board.document()["seq"], 4);
    board
}

fn create(board: &Board, id: &str) -> Value {
    board.cli_ok("create_task", json!({"description": "d", "id": id}))
}

fn remove_journal(board: &Board) {
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(board.file(name));
    }
}

/// Hash of every file of the board, except for those that reading creates.
fn files(board: &Board) -> Vec<(String, String)> {
    let entries = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let mut files: Vec<_> = files
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), sha256(fs::read(entry.path()).unwrap()))
        })
        .filter(|(name, _)| {
            !["lock", "state-lock", ".gitignore", "journal.db-shm", "journal.db-wal"]
                .contains(&name.as_str())
        })
        .collect();
    files.sort();
    files
}

fn names(board: &Board) -> Vec<String> {
    files(board).into_iter().map(|(name, _)| name).collect()
}

fn sql(board: &Board, change: &str) {
    Connection::open(board.file("journal.db")).unwrap().execute_batch(change).unwrap();
}

#[track_caller]
fn warning(reply: &Value) -> &str {
    reply["warning"].as_str().unwrap_or_else(|| panic!("no warning in {reply}"))
}

#[track_caller]
fn refused(finished: &Finished, code: &str, words: &[&str]) {
    assert_eq!(
        (finished.status.code(), finished.code().as_str()),
        (Some(3), code),
        "{}",
        finished.stderr
    );
    for word in words {
        assert!(finished.stderr.contains(word), "no {word:?} in {}", finished.stderr);
    }
}

/// Asserts that the board continues as if nothing had happened, apart from the warning and one
/// event.
#[track_caller]
fn goes_on(board: &Board, tasks: &[&str], words: &[&str]) {
    let id = board.document()["board_id"].clone();
    let reply = board.cli_ok("get_status", json!({}));
    for word in words {
        assert!(warning(&reply).contains(word), "no {word:?} in {reply}");
    }
    let log = fs::read_to_string(board.file("recovery.log")).unwrap();
    assert!(log.contains(words[0]), "{log}");
    assert!(board.cli_ok("get_status", json!({})).get("warning").is_none(), "said twice");
    let seq = board.document()["seq"].as_u64().unwrap();
    create(board, "task-after");
    assert_eq!(board.document()["seq"], seq + 1);
    assert_eq!(board.document()["board_id"], id);
    let there: BTreeSet<_> = board.tasks().into_keys().collect();
    assert_eq!(there, tasks.iter().chain(&["task-after"]).map(|id| (*id).to_owned()).collect());
    board.assert_file_is_the_replay();
}

const ALL: [&str; 3] = ["task-1", "task-2", "task-3"];

#[test]
fn a_recovery_is_told_once_whatever_the_command() {
    for command in [&["status"][..], &["tasks"], &["show", "no-such-task"], &["--json", "status"]] {
        let board = Board::new();
        board.cli_ok("create_task", json!({"id": "a", "description": "d"}));
        fs::write(board.file("journal.db"), "junk").unwrap();
        let ran = board.finish(board.command().args(command));
        let all = format!("{}{}", ran.stdout, ran.stderr);
        let times = all.matches("the board was recovered because").count();
        assert_eq!(times, 1, "{command:?}: {all}");
    }
}

#[test]
fn board_without_its_journal_goes_on_from_the_state_file_with_its_id_and_seq() {
    let board = three_tasks();
    let id = board.document()["board_id"].clone();
    remove_journal(&board);
    assert_eq!(board.cli_ok("get_status", json!({}))["total_tasks"], 3);
    assert!(!board.file("journal.db").exists(), "made by looking");
    let reply = create(&board, "task-4");
    assert!(
        warning(&reply).contains("up to event 4 is safe; lost: the history before event 5;"),
        "{reply}"
    );
    assert_eq!((&board.document()["board_id"], &board.document()["seq"]), (&id, &json!(6)));
    let first = board.events().remove(0);
    assert_eq!(first.seq, 5);
    assert!(matches!(first.event, Event::Imported { .. }));
    assert_eq!(board.tasks().len(), 4);
    board.assert_file_is_the_replay();
}

#[test]
fn damaged_journal_beside_a_sound_state_file_loses_nothing_but_history_and_says_so() {
    let damages: [fn(&Board); 6] = [
        |board| fs::write(board.file("journal.db"), vec![b'x'; 10_000]).unwrap(),
        |board| {
            let _ = fs::remove_file(board.file("journal.db-wal"));
            fs::write(board.file("journal.db"), "").unwrap();
        },
        |board| {
            fs::OpenOptions::new()
                .write(true)
                .open(board.file("journal.db"))
                .unwrap()
                .set_len(5_000)
                .unwrap()
        },
        |board| {
            sql(board, "UPDATE events SET body = replace(body, 'task-3', 'task-9') WHERE seq = 4")
        },
        |board| sql(board, "UPDATE meta SET value = 'board-other' WHERE key = 'board_id'"),
        |board| sql(board, "DROP TABLE meta"),
    ];
    for (number, damage) in damages.iter().enumerate() {
        let board = three_tasks();
        damage(&board);
        let damaged = fs::read(board.file("journal.db")).unwrap();
        println!("damage {number}");
        goes_on(
            &board,
            &ALL,
            &[
                "up to event 4 is safe; lost: the history before event 5",
                "journal.db.quarantined-1",
            ],
        );
        assert_eq!(
            sha256(fs::read(board.file("journal.db.quarantined-1")).unwrap()),
            sha256(&damaged)
        );
    }
}

#[test]
fn results_that_only_the_lost_journal_had_are_told_as_lost() {
    let board = Board::with_policy("keep_finished = 3");
    board.cli_ok("register_agent", json!({"agent_id": "a1", "role": "worker"}));
    for number in 1..=8 {
        create(&board, &format!("task-{number}"));
        board.cli_ok("claim_task", json!({"agent_id": "a1"}));
        board.cli_ok(
            "complete_task",
            json!({"agent_id": "a1", "task_id": format!("task-{number}"), "output": "found"}),
        );
    }
    until(PATIENCE, "five have retired", || {
        board.cli_ok("heartbeat", json!({"agent_id": "a1"}));
        (board.document()["retired"].as_object().unwrap().len() == 5).then_some(())
    });
    assert_eq!(board.cli_ok("get_task", json!({"task_id": "task-1"}))["retired"], true);
    sql(&board, "UPDATE events SET body = body || ' ' WHERE seq = 2");
    let next = board.document()["seq"].as_u64().unwrap() + 1;
    let lost = format!("the history before event {next} and the results of 5 retired tasks");
    for arguments in [&["--repair", "--dry-run"][..], &["--repair"]] {
        assert_eq!(doctor(&board, arguments).value()["lost"], lost.as_str(), "{arguments:?}");
    }
    let log = fs::read_to_string(board.file("recovery.log")).unwrap();
    assert!(log.contains(&lost) && log.contains("journal.db.quarantined-1"), "{log}");
    assert_eq!(board.cli("get_task", json!({"task_id": "task-1"})).code(), "unknown_task");
}

/// A board with enough tasks that two files take turns as the state file.
fn with_a_spare() -> Board {
    let board = three_tasks();
    for number in 4..=30 {
        create(&board, &format!("task-{number}"));
    }
    assert!(board.file(SPARE).exists());
    board
}

const SPARE: &str = ".mcp-state.json.spare";

#[test]
fn state_file_before_the_last_is_gone_on_from_when_nothing_newer_is_sound() {
    type Loss = (fn(&Board), &'static str);
    let losses: [Loss; 2] = [
        // As `rm .coordination/*` does, which leaves hidden files.
        (
            |board| {
                remove_journal(board);
                ["lock", "state-lock", STATE_FILE]
                    .iter()
                    .for_each(|name| fs::remove_file(board.file(name)).unwrap());
            },
            "lost: what may have happened after event 30; the history before event 31;",
        ),
        (
            // Neither of the two says any more where it ended.
            |board| {
                for name in ["journal.db", STATE_FILE] {
                    fs::OpenOptions::new()
                        .write(true)
                        .open(board.file(name))
                        .unwrap()
                        .set_len(3_000)
                        .unwrap();
                }
            },
            "lost: what may have happened after event 30; the history before event 31;",
        ),
    ];
    for (lose, lost) in losses {
        let board = with_a_spare();
        let id = board.document()["board_id"].clone();
        lose(&board);
        assert!(doctor(&board, &[]).stdout.contains("doctor --repair --dry-run"));
        let reply = create(&board, "task-31");
        assert!(
            warning(&reply).contains("the state file before") && warning(&reply).contains(lost),
            "{reply}"
        );
        assert_eq!((&board.document()["board_id"], board.tasks().len()), (&id, 30));
        board.assert_file_is_the_replay();
    }
}

#[test]
fn damage_in_the_middle_of_the_journal_does_not_matter_until_it_is_needed() {
    let board = three_tasks();
    sql(&board, "UPDATE events SET body = replace(body, 'task-1', 'task-9') WHERE seq = 2");
    create(&board, "task-4");
    fs::remove_file(board.file(SPARE)).unwrap();
    fs::write(board.file(STATE_FILE), "{").unwrap();
    // Of the journal, only event 1 can be verified.
    let reply = board.cli_ok("get_status", json!({}));
    assert!(warning(&reply).contains("up to event 1 is safe; lost: events 2 to 5"), "{reply}");
    for name in ["journal.db.quarantined-1", "mcp-state.json.quarantined-1"] {
        assert!(warning(&reply).contains(name) && board.file(name).exists(), "{name}: {reply}");
    }
    board.assert_file_is_the_replay();
}

/// Blanks the newest page with events, in a journal without a log.
fn blank_last_page(board: &Board) {
    let connection = Connection::open(board.file("journal.db")).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'events'";
    let mut page: usize =
        connection.query_row(root, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let size =
        connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    drop(connection);
    let mut bytes = fs::read(board.file("journal.db")).unwrap();
    let start = |page: usize| (page - 1) * size;
    // An inner page names its last child in its header.
    while bytes[start(page)] == 5 {
        let child = start(page) + 8;
        page = u32::from_be_bytes(bytes[child..child + 4].try_into().unwrap()) as usize;
    }
    bytes[start(page)..start(page) + size].fill(0);
    fs::write(board.file("journal.db"), bytes).unwrap();
}

#[test]
fn journal_whose_end_cannot_be_read_is_gone_on_from_as_far_as_it_can() {
    let board = with_a_spare();
    blank_last_page(&board);
    fs::remove_file(board.file(SPARE)).unwrap();
    fs::write(board.file(STATE_FILE), "{").unwrap();
    let reply = board.cli_ok("get_status", json!({}));
    let before = board.tasks().len();
    assert!((10..30).contains(&before), "{before} of 30 tasks");
    let safe = format!(
        "up to event {} is safe; lost: what may have happened after event {0};",
        before + 1
    );
    assert!(warning(&reply).contains("the sound beginning of the journal"), "{reply}");
    assert!(warning(&reply).contains(&safe), "{reply}");
    board.assert_file_is_the_replay();
}

#[test]
fn journal_that_is_damaged_from_its_first_event_on_is_no_empty_board() {
    let board = three_tasks();
    sql(&board, "UPDATE events SET body = body || ' ' WHERE seq = 1");
    fs::remove_file(board.file(SPARE)).unwrap();
    fs::write(board.file(STATE_FILE), "{").unwrap();
    let before = files(&board);
    for (operation, arguments) in
        [("get_status", json!({})), ("create_task", json!({"description": "d"}))]
    {
        refused(
            &board.cli(operation, arguments),
            "state_file_unusable",
            &["nothing of it is sound", "event 1"],
        );
    }
    assert_eq!(files(&board), before);
}

#[test]
fn journal_of_which_only_the_events_are_sound_is_made_anew_from_them() {
    type Damage = (fn(&Board), &'static str, bool);
    let damages: [Damage; 2] = [
        (
            |board| {
                sql(
                    board,
                    "INSERT INTO archived_keys SELECT *, zeroblob(32) FROM events WHERE seq = 5",
                )
            },
            "of the idempotency key of event 5",
            true,
        ),
        // Only a write notices it.
        (
            |board| {
                sql(board, "CREATE TABLE unused AS SELECT * FROM events; DROP TABLE unused");
                let mut bytes = fs::read(board.file("journal.db")).unwrap();
                bytes[32..36].copy_from_slice(&9_999_u32.to_be_bytes());
                fs::write(board.file("journal.db"), bytes).unwrap();
            },
            "Freelist",
            false,
        ),
    ];
    for (damage, words, stops_a_start) in damages {
        let board = three_tasks();
        let keyed = || {
            board.cli_ok(
                "create_task",
                json!({"description": "d", "id": "task-4", "idempotency_key": "k"}),
            )
        };
        keyed();
        let events = board.events();
        damage(&board);
        let found = checks(&board)["journal file"].clone();
        assert_eq!(found["verdict"], "fail", "{found}");
        assert!(found["found"].as_str().unwrap().contains(words), "{found}");
        let said = doctor(&board, &["--repair", "--dry-run"]).value();
        assert_eq!(said["lost"], "nothing", "{said}");
        assert!(
            said["steps"].to_string().contains("make journal.db anew from all its events"),
            "{said}"
        );
        let report = if stops_a_start {
            warning(&board.cli_ok("get_status", json!({}))).to_owned()
        } else {
            doctor(&board, &["--repair"]).value()["report"].as_str().unwrap().to_owned()
        };
        for part in [
            words,
            "up to event 5 is safe; lost: nothing; kept as evidence: journal.db.quarantined-1",
        ] {
            assert!(report.contains(part), "no {part:?} in {report}");
        }
        assert!(!report.contains("keys are forgotten"), "{report}");
        assert_eq!(board.events(), events, "{words}");
        assert!(doctor(&board, &[]).status.success());
        keyed();
        assert_eq!(board.tasks().len(), 4, "{words}: its key is known");
        create(&board, "task-5");
        board.assert_file_is_the_replay();
    }
}

#[test]
fn journal_that_was_being_made_anew_when_the_process_died_is_gone_on_with() {
    let board = three_tasks();
    board
        .cli_ok("create_task", json!({"description": "d", "id": "task-4", "idempotency_key": "k"}));
    let events = board.events();
    sql(&board, "INSERT INTO archived_keys SELECT *, zeroblob(32) FROM events WHERE seq = 5");
    let mut dying = board.command();
    let died =
        board.finish(dying.args(["call", "get_status", "{}"]).env("CALLBOARD_FAILPOINT", "remade"));
    assert!(died.status.code().is_none(), "{}{}", died.stdout, died.stderr);
    assert!(!board.file("journal.db").exists());
    create(&board, "task-5");
    assert_eq!(board.events()[..events.len()], events, "with its history");
    assert_eq!(board.tasks().len(), 5);
    board.assert_file_is_the_replay();
    assert!(doctor(&board, &[]).status.success());
}

#[test]
fn copy_of_a_journal_that_is_older_or_damaged_is_not_gone_on_with() {
    for is_damaged in [false, true] {
        let board = three_tasks();
        fs::copy(board.file("journal.db"), board.file("journal.db.remade")).unwrap();
        if is_damaged {
            fs::write(board.file("journal.db.remade"), "no database").unwrap();
        }
        create(&board, "task-4");
        fs::remove_file(board.file("journal.db")).unwrap();
        create(&board, "task-5");
        assert_eq!(board.tasks().len(), 5);
        board.assert_file_is_the_replay();
    }
}

#[test]
fn state_file_of_a_history_that_the_board_has_not_gone_on_with_is_kept_and_not_used() {
    let board = three_tasks();
    let names = ["journal.db", "journal.db-wal", STATE_FILE];
    let before = names.map(|name| (name, fs::read(board.file(name)).ok()));
    create(&board, "task-lost");
    let lost = fs::read(board.file(STATE_FILE)).unwrap();
    remove_journal(&board);
    for (name, bytes) in before {
        bytes.iter().for_each(|bytes| fs::write(board.file(name), bytes).unwrap());
    }
    create(&board, "task-4");
    create(&board, "task-5");
    fs::write(board.file(STATE_FILE), &lost).unwrap();
    let reply = board.cli_ok("get_status", json!({}));
    let report = "because the state file is of another history; it goes on from the journal: the \
                  state up to event 6";
    assert!(warning(&reply).contains(report), "{reply}");
    assert_eq!(
        sha256(fs::read(board.file("mcp-state.json.quarantined-1")).unwrap()),
        sha256(&lost)
    );
    let tasks: Vec<_> = board.tasks().into_keys().collect();
    assert_eq!(tasks, ["task-1", "task-2", "task-3", "task-4", "task-5"]);
    board.assert_file_is_the_replay();
}

#[test]
fn state_file_that_is_behind_is_brought_to_the_head() {
    let board = three_tasks();
    let old = fs::read(board.file(STATE_FILE)).unwrap();
    create(&board, "task-4");
    fs::write(board.file(STATE_FILE), old).unwrap();
    let reply = create(&board, "task-5");
    assert!(
        warning(&reply).contains("an old state file, of event 4, had been put back"),
        "{reply}"
    );
    assert!(!board.file("recovery.log").exists(), "nothing had to be recovered");
    assert_eq!(board.tasks().len(), 5);
    board.assert_file_is_the_replay();
}

#[test]
fn state_file_that_is_missing_or_another_boards_is_written_anew_from_the_journal() {
    let board = three_tasks();
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    create(&board, "task-4");
    assert_eq!(board.tasks().len(), 4);
    let other = three_tasks();
    let foreign = fs::read(other.file(STATE_FILE)).unwrap();
    fs::write(board.file(STATE_FILE), &foreign).unwrap();
    let reply = create(&board, "task-5");
    assert!(warning(&reply).contains("another board"), "{reply}");
    assert_eq!(
        sha256(fs::read(board.file("mcp-state.json.quarantined-1")).unwrap()),
        sha256(&foreign)
    );
    assert_eq!(board.tasks().len(), 5);
    board.assert_file_is_the_replay();
}

#[test]
fn state_file_of_a_newer_version_is_refused_and_nothing_touched() {
    let board = three_tasks();
    let version = format!("_version\": {}", board.document()["schema_version"]);
    let newer = fs::read_to_string(board.file(STATE_FILE)).unwrap();
    let newer = newer.replace(&version, "_version\": 9");
    fs::write(board.file(STATE_FILE), newer).unwrap();
    for journal in [true, false] {
        if !journal {
            remove_journal(&board);
        }
        let before = files(&board);
        for (operation, arguments) in
            [("get_status", json!({})), ("create_task", json!({"description": "d"}))]
        {
            refused(
                &board.cli(operation, arguments),
                "state_file_unusable",
                &["schema version 9", "update"],
            );
        }
        assert_eq!(files(&board), before);
    }
}

fn take_snapshot(board: &Board) -> String {
    board.cli_ok("create_snapshot", json!({}))["snapshot"].as_str().unwrap().to_owned()
}

/// Three snapshots, after one, two and three tasks, followed by a fourth task.
fn with_snapshots() -> (Board, [String; 3]) {
    let board = Board::new();
    let names = ["task-1", "task-2", "task-3"].map(|id| {
        create(&board, id);
        take_snapshot(&board)
    });
    create(&board, "task-4");
    (board, names)
}

#[test]
fn newest_sound_snapshot_is_gone_on_from_when_nothing_newer_is_sound() {
    for journal in ["missing", "garbage"] {
        let (board, names) = with_snapshots();
        let id = board.document()["board_id"].clone();
        // Flips one bit of the newest snapshot.
        let newest = board.file("snapshots").join(&names[2]);
        let mut bytes = fs::read(&newest).unwrap();
        bytes[200] ^= 1;
        fs::write(&newest, bytes).unwrap();
        remove_journal(&board);
        if journal == "garbage" {
            fs::write(board.file("journal.db"), vec![b'x'; 10_000]).unwrap();
        }
        fs::write(board.file(STATE_FILE), "{\"schema_version\": 1, ").unwrap();
        fs::write(board.file(SPARE), "").unwrap();
        let reply = create(&board, "task-5");
        let lost = format!(
            "snapshot {}: the state up to event 3 is safe; lost: what may have happened after",
            names[1]
        );
        assert!(warning(&reply).contains(&lost), "{journal}: {reply}");
        assert_eq!(board.tasks().into_keys().collect::<Vec<_>>(), ["task-1", "task-2", "task-5"]);
        assert_eq!((&board.document()["board_id"], &board.document()["seq"]), (&id, &json!(5)));
        board.assert_file_is_the_replay();
    }
}

#[test]
fn journal_is_followed_from_a_snapshot_where_its_beginning_is_damaged() {
    let (board, _) = with_snapshots();
    sql(&board, "UPDATE events SET body = replace(body, 'task-1', 'task-9') WHERE seq = 2");
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    let reply = create(&board, "task-5");
    assert!(
        warning(&reply).contains("up to event 5 is safe; lost: the history before event 6;"),
        "{reply}"
    );
    assert_eq!(board.tasks().len(), 5);
    board.assert_file_is_the_replay();
}

#[test]
fn nothing_begins_empty_where_there_was_a_board() {
    let remains: [fn(&Board); 5] = [
        |board| fs::write(board.file(SPARE), "x").unwrap(),
        |board| fs::write(board.file(STATE_FILE), "{\"tasks\": [").unwrap(),
        |board| fs::write(board.file("mcp-state.json.quarantined-1"), "x").unwrap(),
        |board| fs::write(board.file("mcp-state.json.imported-1"), "x").unwrap(),
        |board| {
            fs::create_dir(board.file("snapshots")).unwrap();
            fs::write(board.file("snapshots/state-20260301T120000.000Z-00000000.json"), "{}")
                .unwrap();
        },
    ];
    for remain in remains {
        let board = Board::new();
        board.make_dir();
        remain(&board);
        let before = files(&board);
        for (operation, arguments) in
            [("get_status", json!({})), ("create_task", json!({"description": "d"}))]
        {
            refused(
                &board.cli(operation, arguments),
                "state_file_unusable",
                &["callboard doctor --repair"],
            );
        }
        assert!(!board.file("journal.db").exists());
        let after = files(&board);
        assert!(before.iter().all(|file| after.contains(file)), "{:?}", names(&board));
    }
}

#[test]
fn what_would_lose_events_is_not_done_while_others_live_on_the_board() {
    let board = three_tasks();
    let mut living = board.mcp();
    living.register("a1");
    // Otherwise it might repair the state file first.
    stop(&living);
    fs::write(board.file(STATE_FILE), "{").unwrap();
    let bytes = fs::read(board.file("journal.db")).unwrap();
    fs::write(board.file("journal.db"), vec![b'x'; bytes.len()]).unwrap();
    let before = fs::read(board.file(STATE_FILE)).unwrap();
    refused(
        &board.cli("get_status", json!({})),
        "board_damaged",
        &["Other processes", "call one of them"],
    );
    assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), before);
    living.signal(Signal::CONT);
    living.ok("create_task", json!({"description": "d", "id": "task-4"}));
    let reply = create(&board, "task-5");
    assert!(warning(&reply).contains("lost: the history before"), "{reply}");
    living.ok("create_task", json!({"description": "d", "id": "task-6"}));
    assert_eq!(board.tasks().len(), 6);
    board.assert_file_is_the_replay();
}

/// A server shows that it lives before it opens the board, and is not another process to itself.
#[test]
fn server_that_starts_alone_recovers_what_no_other_process_can_know() {
    let (board, names) = with_snapshots();
    remove_journal(&board);
    fs::write(board.file("journal.db"), vec![b'x'; 10_000]).unwrap();
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    fs::write(board.file(SPARE), "").unwrap();
    let reply = board.mcp().ok("create_task", json!({"description": "d", "id": "task-5"}));
    let recovered = format!("snapshot {}: the state up to event", names[2]);
    assert!(warning(&reply).contains(&recovered), "{reply}");
    assert_eq!(
        board.tasks().into_keys().collect::<Vec<_>>(),
        ["task-1", "task-2", "task-3", "task-5"]
    );
}

#[test]
fn server_that_starts_alone_waits_for_no_process_to_rebuild_the_board() {
    let board = three_tasks();
    // The last connection that is closed removes the log.
    sql(&board, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(!board.file("journal.db-wal").exists());
    let mut server = board.mcp();
    let start = Instant::now();
    server.ok("create_task", json!({"description": "d", "id": "task-4"}));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    board.assert_file_is_the_replay();
}

fn doctor(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(["--json", "doctor"]).args(arguments))
}

/// A board whose journal ends at event 4 while its state file shows event 5.
fn journal_that_lost_its_end() -> Board {
    let board = three_tasks();
    let logs = ["journal.db", "journal.db-wal"].map(|name| (name, fs::read(board.file(name)).ok()));
    create(&board, "task-4");
    remove_journal(&board);
    for (name, bytes) in logs {
        bytes.iter().for_each(|bytes| fs::write(board.file(name), bytes).unwrap());
    }
    board
}

#[test]
fn doctor_repairs_a_journal_that_lost_its_end_after_a_backup_and_says_so_before() {
    let board = journal_that_lost_its_end();
    refused(&board.cli("get_status", json!({})), "journal_behind", &["doctor --repair --dry-run"]);
    let before = files(&board);
    let said = doctor(&board, &["--repair", "--dry-run"]).value();
    assert_eq!(files(&board), before, "a dry run changed something");
    assert_eq!(
        (&said["repaired"], &said["lost"]),
        (&json!(false), &json!("the history before event 6")),
        "{said}"
    );
    assert!(said["steps"].to_string().contains("behind event 5"), "{said}");
    assert_eq!(said["faults"][0], "the journal ends at event 4 and the state file is at event 5");
    let done = doctor(&board, &["--repair"]);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert_eq!(done.value()["faults"], said["faults"]);
    let backup = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path());
    let backup: Vec<_> = backup
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("backup-"))
        .collect();
    for (name, hash) in before {
        assert_eq!(sha256(fs::read(backup[0].join(&name)).unwrap()), hash, "{name}");
    }
    assert_eq!(board.tasks().len(), 4);
    create(&board, "task-5");
    assert_eq!(board.document()["seq"], 7);
    board.assert_file_is_the_replay();
    let again = doctor(&board, &["--repair"]);
    assert_eq!((again.status.code(), &again.value()["repaired"]), (Some(0), &json!(false)));
}

#[test]
fn doctor_makes_room_for_a_new_board_when_nothing_is_sound() {
    let board = three_tasks();
    remove_journal(&board);
    [STATE_FILE, SPARE].iter().for_each(|name| fs::write(board.file(name), "{").unwrap());
    refused(&board.cli("get_status", json!({})), "state_file_unusable", &["doctor --repair"]);
    let said = doctor(&board, &["--repair", "--dry-run"]).value();
    assert_eq!(said["lost"], "everything");
    assert!(!said["steps"].to_string().contains("quarantined"), "it is in the backup only: {said}");
    assert!(board.file(STATE_FILE).exists());
    assert_eq!(doctor(&board, &["--repair"]).status.code(), Some(0));
    create(&board, "task-new");
    assert_eq!(board.tasks().into_keys().collect::<Vec<_>>(), ["task-new"]);
    board.assert_file_is_the_replay();
}

#[test]
fn doctor_says_to_programs_as_to_people_that_there_is_nothing_to_repair() {
    let board = Board::new();
    let refused = doctor(&board, &["--repair"]);
    assert_eq!(refused.status.code(), Some(3));
    let said: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert!(said["error"]["message"].as_str().unwrap().contains("nothing to repair"), "{said}");
}

#[test]
fn doctor_repairs_nothing_while_others_use_the_board() {
    let board = journal_that_lost_its_end();
    let before = files(&board);
    let lock = fs::OpenOptions::new().append(true).open(board.file("lock")).unwrap();
    lock.lock().unwrap();
    let refused = doctor(&board, &["--repair"]);
    assert_eq!((refused.status.code(), files(&board)), (Some(3), before), "{}", refused.stderr);
    assert!(refused.stderr.contains("lock"), "{}", refused.stderr);
    drop(lock);
    let living = fs::File::create(board.file("run").join("p-living")).unwrap();
    living.lock().unwrap();
    let refused = doctor(&board, &["--repair"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("processes live on the board"), "{}", refused.stderr);
    assert!(!board.file("journal.db.quarantined-1").exists());
}

#[test]
fn lock_that_is_held_is_waited_for_no_longer_than_a_call_may_take() {
    let fresh = Board::new();
    fresh.make_dir();
    let damaged = three_tasks();
    fs::write(damaged.file(STATE_FILE), "{").unwrap();
    for board in [&fresh, &damaged] {
        let lock =
            fs::OpenOptions::new().create(true).append(true).open(board.file("lock")).unwrap();
        lock.lock().unwrap();
        let start = Instant::now();
        refused(&board.cli("create_task", json!({"description": "d"})), "locked", &["5 s"]);
        assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
        drop(lock);
        create(board, "task-after");
    }
}

#[test]
fn commit_that_fails_is_answered_with_what_the_journal_holds() {
    let board = three_tasks();
    // Before COMMIT nothing is written. An error of COMMIT itself proves nothing, and neither does
    // one after it.
    for (failpoint, done) in [("before-commit", false), ("commit", false), ("after-commit", true)] {
        let mut client =
            board.mcp_with(&[("CALLBOARD_FAILPOINT", &format!("{failpoint}:1:error"))]);
        let reply = client.call("create_task", json!({"description": "d", "id": failpoint}));
        assert_eq!(reply.is_error, !done, "{failpoint}: {}", reply.text);
        assert_eq!(board.tasks().contains_key(failpoint), done, "{failpoint}");
        if !done {
            assert_eq!(reply.code(), "not_written", "{failpoint}: {}", reply.text);
        }
        client.ok("create_task", json!({"description": "d", "id": format!("{failpoint}-again")}));
        board.assert_file_is_the_replay();
    }
}

/// Stops the process while it holds no lock; until it continues, it notices nothing.
fn stop(client: &Client) {
    let stat = || fs::read_to_string(format!("/proc/{}/stat", client.pid())).unwrap();
    client.signal(Signal::STOP);
    until(PATIENCE, "the process has stopped", || stat().contains(") T ").then_some(()));
}

/// A process on a board with one task.
fn settled(board: &Board) -> Client {
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "d", "id": "task-1", "idempotency_key": "k"}));
    client
}

#[test]
fn board_that_is_deleted_under_a_process_comes_back_whole() {
    type Deletion = fn(&Board);
    let deletions: [(&str, Deletion); 7] = [
        ("directory", |board| remove_live(board.dir())),
        ("journal", |board| fs::remove_file(board.file("journal.db")).unwrap()),
        ("log", |board| fs::remove_file(board.file("journal.db-wal")).unwrap()),
        ("index", |board| fs::remove_file(board.file("journal.db-shm")).unwrap()),
        ("lock", |board| fs::remove_file(board.file("lock")).unwrap()),
        ("lock of the state file", |board| fs::remove_file(board.file("state-lock")).unwrap()),
        ("state file", |board| fs::remove_file(board.file(STATE_FILE)).unwrap()),
    ];
    for (what, delete) in deletions {
        let board = Board::new();
        let mut client = settled(&board);
        let before = board.document();
        let history = board.events();
        delete(&board);
        let again = json!({"description": "d", "id": "task-1", "idempotency_key": "k"});
        let repeated = client.ok("create_task", again);
        client.ok("create_task", json!({"description": "d", "id": "task-2"}));
        assert_eq!(board.document()["board_id"], before["board_id"], "{what}");
        assert_eq!(
            board.tasks().into_keys().collect::<Vec<_>>(),
            ["task-1", "task-2"],
            "{what}: {repeated}"
        );
        assert_eq!(board.events()[..history.len()], history, "{what}: the history came along");
        board.assert_file_is_the_replay();
        create(&board, "task-3");
        client.ok("create_task", json!({"description": "d", "id": "task-4"}));
        assert_eq!(board.tasks().len(), 4, "{what}");
        board.assert_file_is_the_replay();
    }
}

#[test]
fn log_that_is_cut_off_under_a_process_is_noticed_before_anything_is_acknowledged() {
    for left in ["nothing", "its header", "half", "all but a byte"] {
        let board = Board::new();
        let mut client = settled(&board);
        (0..20).for_each(|n| {
            client.ok("create_task", json!({"description": "d", "id": format!("n{n}")}));
        });
        let path = board.file("journal.db-wal");
        let log = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let length = log.metadata().unwrap().len();
        let lengths = [("nothing", 0), ("its header", 32), ("half", length / 2)];
        let to = lengths.iter().find(|(name, _)| *name == left).map_or(length - 1, |(_, to)| *to);
        log.set_len(to).unwrap();
        let reply = client.ok("create_task", json!({"description": "d", "id": "after"}));
        assert!(warning(&reply).contains("rebuilt"), "{left}: {reply}");
        let tasks = board.tasks();
        client.kill();
        assert_eq!(tasks.len(), 22, "{left}");
        create(&board, "last");
        assert_eq!(board.tasks().len(), 23, "{left}: nothing is lost with the process");
        board.assert_file_is_the_replay();
    }
}

/// The directory stays, so the next process sees at once that the board is gone.
#[test]
fn board_whose_files_are_deleted_is_left_to_whoever_lives_on_it_and_has_only_looked() {
    type Start = fn(&Board) -> Box<dyn Any>;
    let starts: [(&str, Start); 3] = [
        ("a server", |board| {
            let server = Server::on(board);
            Door::Rpc.ok(&server, "get_status", &json!({}));
            Box::new(server)
        }),
        ("an IDE", |board| {
            let mut client = board.mcp();
            client.ok("get_status", json!({}));
            Box::new(client)
        }),
        ("a person who watches", |board| Box::new(watcher(board))),
    ];
    for (what, start) in starts {
        for deleted in [&["journal.db"][..], &["journal.db", STATE_FILE], &["journal.db-wal"]] {
            let board = three_tasks();
            create(&board, "with-key");
            let history = board.events();
            let living = start(&board);
            let is_deleted = |name: &str| {
                deleted.iter().any(|one| name.trim_start_matches('.').starts_with(one))
            };
            let entries = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap());
            let names = entries.filter(|entry| is_deleted(entry.file_name().to_str().unwrap()));
            names.for_each(|entry| fs::remove_file(entry.path()).unwrap());
            create(&board, "task-new");
            assert_eq!(board.events()[..history.len()], history, "{what} {deleted:?}");
            assert_eq!(board.tasks().len(), 5, "{what} {deleted:?}");
            board.assert_file_is_the_replay();
            drop(living);
        }
    }
}

#[test]
fn call_that_asks_the_archive_brings_a_deleted_board_back_as_any_other_does() {
    let board = Board::new();
    let mut client = settled(&board);
    let artifact = json!({"agent_id": "a", "task_id": "task-1", "name": "n", "text": "t"});
    client.ok("register_agent", json!({"agent_id": "a", "role": "leader"}));
    client.ok("claim_task", json!({"agent_id": "a"}));
    for (operation, arguments) in [
        ("create_snapshot", json!({})),
        ("list_snapshots", json!({})),
        ("attach_artifact", artifact),
        ("list_bundles", json!({})),
    ] {
        remove_live(board.dir());
        let reply = client.ok(operation, arguments);
        assert!(warning(&reply).contains("up to event"), "{operation}: {reply}");
    }
    board.assert_file_is_the_replay();
}

#[test]
fn deleted_board_comes_back_without_a_call_and_the_next_reply_says_so() {
    let board = Board::new();
    let mut client = settled(&board);
    remove_live(board.dir());
    until(PATIENCE, "the board is back", || board.file("recovery.log").exists().then_some(()));
    let reply = client.ok("get_status", json!({}));
    assert!(warning(&reply).contains("up to event"), "{reply}");
    board.assert_file_is_the_replay();
}

#[test]
fn another_board_in_the_place_of_a_processs_board_is_refused() {
    let (board, other) = (Board::new(), three_tasks());
    let mut client = settled(&board);
    renameat_with(CWD, board.dir(), CWD, other.dir(), RenameFlags::EXCHANGE).unwrap();
    let before = board.document();
    for (operation, arguments) in
        [("create_task", json!({"description": "d"})), ("get_status", json!({}))]
    {
        let refused = client.call(operation, arguments);
        assert_eq!(refused.code(), "board_replaced", "{}", refused.text);
        assert!(refused.text.contains("restart"), "{}", refused.text);
    }
    assert_eq!(board.document(), before);
}

#[test]
fn another_history_in_the_place_of_a_processs_own_is_refused_and_its_own_kept() {
    let board = Board::new();
    let mut client = settled(&board);
    let copy = board.base().join("copy");
    assert!(Command::new("cp").arg("-r").arg(board.dir()).arg(&copy).status().unwrap().success());
    client.ok("create_task", json!({"description": "d", "id": "task-ours"}));
    let theirs = board
        .command()
        .arg("--dir")
        .arg(&copy)
        .args(["call", "create_task"])
        .arg("{\"description\": \"d\"}")
        .output();
    assert!(theirs.unwrap().status.success());
    renameat_with(CWD, board.dir(), CWD, &copy, RenameFlags::EXCHANGE).unwrap();
    let refused = client.call("create_task", json!({"description": "d"}));
    assert_eq!(refused.code(), "board_replaced", "{}", refused.text);
    let kept = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path());
    let kept =
        kept.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("diverged-"));
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(refused.text.contains(kept[0].to_str().unwrap()), "{}", refused.text);
    assert!(fs::read_to_string(kept[0].join(STATE_FILE)).unwrap().contains("task-ours"));
}

const PROCESSES: usize = 4;

/// Creates tasks until told to stop. Returns the acknowledged tasks, and the other answers.
fn create_until(mut client: Client, slot: usize, stop: &AtomicBool) -> (Vec<String>, Vec<String>) {
    let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("task-{slot}-{number}");
        let reply = client.call("create_task", json!({"description": "d", "id": id}));
        if reply.is_error {
            refused.push(format!("{} {}", reply.code(), reply.text))
        } else {
            acknowledged.push(id)
        }
    }
    client.ok("get_status", json!({}));
    (acknowledged, refused)
}

#[test]
fn directory_that_is_removed_again_and_again_under_load_loses_nothing_acknowledged() {
    let removals = size("CALLBOARD_REMOVALS", 6);
    loses_nothing(&Board::new(), removals, "removals of the directory", |board| {
        let _ = Command::new("rm").arg("-rf").arg(board.dir()).output();
    });
}

#[test]
fn git_clean_under_four_working_processes_loses_nothing_acknowledged() {
    let removals = size("CALLBOARD_REMOVALS", 6);
    let board = Board::new();
    let git = |arguments: &[&str]| {
        Command::new("git").arg("-C").arg(board.base()).args(arguments).output().unwrap()
    };
    assert!(git(&["init", "-q"]).status.success());
    loses_nothing(&board, removals, "times git clean -fdx", |board| {
        // It fails if the board comes back before everything is removed.
        let cleaned = git(&["clean", "-fdx"]);
        let said = String::from_utf8_lossy(&cleaned.stdout).into_owned();
        let name = board.dir().file_name().unwrap().to_str().unwrap();
        let said_or_warned = format!("{said}{}", String::from_utf8_lossy(&cleaned.stderr));
        assert!(said_or_warned.contains(name), "it removed nothing: {said_or_warned}");
    });
}

/// Four processes create tasks while `remove` is called repeatedly.
fn loses_nothing(board: &Board, removals: usize, what: &str, remove: impl Fn(&Board)) {
    board.cli_ok("init_coordination", json!({"goal": "g"}));
    let id = board.document()["board_id"].clone();
    // A process that starts while the board is gone would create another.
    let mut clients: Vec<_> = (0..PROCESSES).map(|_| board.mcp()).collect();
    clients.iter_mut().for_each(|client| drop(client.ok("get_status", json!({}))));
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let results = thread::scope(|scope| {
        let stopping = StopAtEnd(&stop);
        let create = |client, slot| create_until(client, slot, &stop);
        let slots: Vec<_> = clients
            .into_iter()
            .zip(0..)
            .map(|(client, slot)| scope.spawn(move || create(client, slot)))
            .collect();
        let seq = || {
            fs::read(board.file(STATE_FILE))
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        };
        let seq = || seq().and_then(|document| document["seq"].as_u64()).unwrap_or(0);
        for removal in 1..=removals {
            let now = until(PATIENCE, "the board is there", || Some(seq()).filter(|seq| *seq > 0));
            until(PATIENCE, "work goes on", || (seq() > now + 20).then_some(()));
            remove(board);
            println!("removal {removal} at event {now} or later");
        }
        let now = until(PATIENCE, "the board is there", || Some(seq()).filter(|seq| *seq > 0));
        until(PATIENCE, "work goes on", || (seq() > now + 20).then_some(()));
        drop(stopping);
        slots.into_iter().map(|slot| slot.join().unwrap()).collect::<Vec<_>>()
    });
    let tasks = board.tasks();
    let acknowledged: Vec<_> = results.iter().flat_map(|(acknowledged, _)| acknowledged).collect();
    let refused: Vec<_> = results.iter().flat_map(|(_, refused)| refused).collect();
    let lost: Vec<_> = acknowledged.iter().filter(|id| !tasks.contains_key(**id)).collect();
    println!(
        "{removals} {what} under {PROCESSES} processes in {:.1} s: {} creates acknowledged, {} \
         answered with an error, {} lost",
        start.elapsed().as_secs_f64(),
        acknowledged.len(),
        refused.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(board.document()["board_id"], id);
    // A task that was refused because the files were gone again is not on the board, or not for
    // certain.
    let honest = ["unknown_outcome", "bad_directory", "not_written", "io "];
    let odd: Vec<_> =
        refused.iter().filter(|text| !honest.iter().any(|code| text.starts_with(code))).collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(results.iter().all(|(acknowledged, _)| !acknowledged.is_empty()));
    board.assert_file_is_the_replay();
}

/// A board at event 5, and its backup from event 4.
fn backed_up() -> (Board, String) {
    let board = three_tasks();
    let backup = board.base().join("b.backup").to_str().unwrap().to_owned();
    assert!(board.finish(board.command().args(["backup", &backup])).status.success());
    (board, backup)
}

#[test]
fn process_does_not_take_a_restored_board_for_a_deleted_one() {
    for journal in ["damaged", "missing"] {
        let (board, backup) = backed_up();
        let mut client = board.mcp();
        client.ok("create_task", json!({"description": "d", "id": "task-ours"}));
        // A stopped process notices nothing, so nothing is recovered before the restore.
        stop(&client);
        match journal {
            "damaged" => fs::write(board.file("journal.db"), vec![b'x'; 4_096]).unwrap(),
            _ => remove_journal(&board),
        }
        let restored = board.finish(board.command().args(["restore", "--force", &backup]));
        assert!(restored.status.success(), "{journal}: {}", restored.stderr);
        client.signal(Signal::CONT);
        for (operation, arguments) in
            [("create_task", json!({"description": "d"})), ("get_status", json!({}))]
        {
            let refused = client.call(operation, arguments);
            assert_eq!(refused.code(), "board_replaced", "{journal}: {}", refused.text);
            assert!(refused.text.contains("restart this process"), "{}", refused.text);
        }
        create(&board, "task-after");
        let tasks: Vec<_> = board.tasks().into_keys().collect();
        assert_eq!(
            tasks,
            ["task-1", "task-2", "task-3", "task-after"],
            "{journal}: what was restored is the board"
        );
        board.assert_file_is_the_replay();
        // What only that process knew is kept.
        let entries = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path());
        let kept: Vec<_> =
            entries.filter(|path| path.to_str().unwrap().contains("/diverged-")).collect();
        assert_eq!(kept.len(), 1, "{journal}: {kept:?}");
        assert!(fs::read_to_string(kept[0].join(STATE_FILE)).unwrap().contains("task-ours"));
    }
}

#[test]
fn new_board_in_the_place_of_a_deleted_one_is_left_alone_and_the_old_one_kept_with_its_history() {
    let board = Board::new();
    let mut client = settled(&board);
    let seq = board.document()["seq"].as_u64().unwrap();
    stop(&client);
    remove_live(board.dir());
    create(&board, "task-new");
    client.signal(Signal::CONT);
    let refused = client.call("get_status", json!({}));
    assert_eq!(refused.code(), "board_replaced", "{}", refused.text);
    assert_eq!(board.tasks().into_keys().collect::<Vec<_>>(), ["task-new"]);
    let entries = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> =
        entries.filter(|path| path.to_str().unwrap().contains("/diverged-")).collect();
    let (kept, state) = (kept[0].to_str().unwrap(), seq.to_string());
    let past =
        board.finish(board.command().args(["--json", "--dir", kept, "state", "--at", &state]));
    assert!(
        past.status.success() && past.stdout.contains("task-1"),
        "{} {}",
        past.stdout,
        past.stderr
    );
}

#[test]
fn configuration_comes_back_with_a_deleted_board_and_tokens_do_not() {
    let board = three_tasks();
    let text = "[policy]\nmax_checkpoints = 7\n";
    fs::write(board.file("config.toml"), text).unwrap();
    let token =
        board.finish(board.command().args(["token", "add", "--role", "worker", "--name", "w"]));
    assert!(token.status.success(), "{}", token.stderr);
    let mut client = board.mcp();
    client.ok("get_status", json!({}));
    remove_live(board.dir());
    let reply = client.ok("create_task", json!({"description": "d", "id": "task-4"}));
    assert!(warning(&reply).contains("config.toml is as this process had read it"), "{reply}");
    assert!(warning(&reply).contains("tokens that were deleted are not put back"), "{reply}");
    assert_eq!(fs::read_to_string(board.file("config.toml")).unwrap(), text);
    assert_eq!(
        fs::metadata(board.file("config.toml")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(!board.file("tokens.toml").exists());
}

#[test]
fn server_whose_tokens_are_deleted_lets_nobody_in() {
    let board = three_tasks();
    let token = board.finish(
        board.command().args(["--json", "token", "add", "--role", "worker", "--name", "w"]),
    );
    let token = token.value()["token"].as_str().unwrap().to_owned();
    let server = Server::on(&board);
    let ask = |token: Option<&str>| {
        let request = server.rpc(1, "get_status", &json!({})).without("authorization");
        let request = match token {
            Some(token) => request.header("authorization", &format!("Bearer {token}")),
            None => request,
        };
        server.ask(&request).status
    };
    assert_eq!((ask(Some(&token)), ask(None)), (200, 401));
    fs::remove_file(board.file("tokens.toml")).unwrap();
    // For a token that was accepted a moment ago, the file is not read again.
    until(PATIENCE, "the token is refused without the file", || {
        (ask(Some(&token)) == 401).then_some(())
    });
    assert_eq!((ask(Some(&token)), ask(None)), (401, 401), "without the file");
    remove_live(board.dir());
    assert_eq!((ask(Some(&token)), ask(None)), (401, 401), "without the board");
    until(PATIENCE, "the board is back", || board.file("recovery.log").exists().then_some(()));
    assert_eq!((ask(Some(&token)), ask(None)), (401, 401), "with the board that is back");
}

#[test]
fn state_at_an_event_is_found_in_a_journal_that_begins_behind_a_recovery() {
    let board = three_tasks();
    remove_journal(&board);
    for id in ["task-4", "task-5", "task-6"] {
        create(&board, id);
    }
    let past = |seq: &str| board.finish(board.command().args(["--json", "state", "--at", seq]));
    let state = past("6").value();
    let ids: Vec<_> =
        state["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    assert_eq!((&state["seq"], ids.len()), (&json!(6), 4), "{state}");
    let before = past("3");
    assert_eq!(
        (before.status.code(), before.code().as_str()),
        (Some(1), "not_in_the_past"),
        "{}",
        before.stderr
    );
}

fn checks(board: &Board) -> BTreeMap<String, Value> {
    let checks = doctor(board, &[]).value()["checks"].as_array().unwrap().clone();
    checks.into_iter().map(|check| (check["name"].as_str().unwrap().to_owned(), check)).collect()
}

#[test]
fn doctor_verifies_the_snapshots_and_looks_at_the_directories_above() {
    let (board, names) = with_snapshots();
    let before = checks(&board);
    assert_eq!(before["snapshots"]["verdict"], "ok", "{before:?}");
    assert!(
        before["snapshots"]["found"].as_str().unwrap().starts_with("3, chain verified"),
        "{before:?}"
    );
    let path = board.file("snapshots").join(format!("{}.gz", names[1]));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(board.base(), fs::Permissions::from_mode(0o777)).unwrap();
    let after = checks(&board);
    assert_eq!(after["snapshots"]["verdict"], "warn", "{after:?}");
    for words in [&names[1], &names[2]] {
        assert!(after["snapshots"]["found"].as_str().unwrap().contains(words), "{after:?}");
    }
    assert_eq!(after["directories above"]["verdict"], "warn", "{after:?}");
    let found = after["directories above"]["found"].as_str().unwrap();
    assert!(
        found.contains(board.base().to_str().unwrap()) && found.contains("writable by everybody"),
        "{found}"
    );
    let base = board.base().to_str().unwrap();
    assert!(!before["directories above"]["found"].as_str().unwrap().contains(base), "{before:?}");
    fs::set_permissions(board.base(), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(
        !checks(&board)["directories above"]["found"].as_str().unwrap().contains(base),
        "sticky"
    );
}
