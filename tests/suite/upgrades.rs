//! Processes of several versions on one board: what an older one could not read is not written
//! while it lives.

use std::fs::{self, File};
use std::process;

use callboard::state::event::VERSION;
use callboard::state::level::FIRST;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Board, STATE_FILE};

/// A living process of the first version: it holds the lock of its presence file, and notes nothing
/// in it.
fn older(board: &Board) -> File {
    let file = File::create(board.file("run/p-older")).unwrap();
    file.lock().unwrap();
    file
}

fn waits(agent: &str) -> Value {
    json!({"agent_id": agent, "for": "permission", "what": "Bash: make"})
}

/// Level of an agent that waits.
const WAITS: u32 = 2;

/// The board's level as the state file and the journal's newest event have it.
fn levels(board: &Board) -> (u32, u32) {
    let connection = Connection::open(board.file("journal.db")).unwrap();
    let newest = connection
        .query_row("SELECT v FROM events ORDER BY seq DESC LIMIT 1", [], |row| row.get(0))
        .unwrap();
    (serde_json::from_value(board.document()["schema_version"].clone()).unwrap(), newest)
}

#[test]
fn what_an_older_process_cannot_read_is_refused_until_it_has_ended() {
    let board = Board::new();
    // A new board needs this build from the start, because its tasks get numbers.
    board.make_dir();
    fs::write(board.file(STATE_FILE), r#"{"tasks": [], "agents": {}}"#).unwrap();
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let older = older(&board);
    let before = board.document();
    let refused = client.call("report_waiting", waits("a"));
    assert_eq!(refused.code(), "older_processes", "{refused:?}");
    assert!(refused.text.contains(&format!("process {}", process::id())), "{}", refused.text);
    assert!(refused.text.contains("restart them"), "{}", refused.text);
    assert_eq!(board.cli("report_waiting", waits("a")).code(), "older_processes", "by a command");
    let batch = json!({"operations": [
        {"name": "heartbeat", "arguments": {"agent_id": "a"}},
        {"name": "report_waiting", "arguments": waits("a")},
    ]});
    assert_eq!(client.call("apply_batch", batch).code(), "older_processes", "in a batch");
    assert_eq!(board.document(), before, "nothing was written");
    client.ok("heartbeat", json!({"agent_id": "a"}));
    assert_eq!(levels(&board), (FIRST, FIRST), "the older process can go on");
    drop(older);
    client.ok("report_waiting", waits("a"));
    assert_eq!(levels(&board), (WAITS, WAITS));
    assert_eq!(board.document()["agents"]["a"]["waiting"]["for"], "permission");
    board.assert_file_is_the_replay();
}

#[test]
fn once_written_it_is_not_refused_any_more() {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    board.cli_ok("report_waiting", waits("a"));
    // This process came later, and refuses the board itself.
    let _older = older(&board);
    board.cli_ok("report_waiting", waits("a"));
}

#[test]
fn a_process_that_stays_notes_its_level_its_machine_and_its_client() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let participants =
        board.document()["participants"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let note = fs::read_to_string(board.file(&format!("run/{}", participants[0]))).unwrap();
    let note: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(
        (&note["level"], &note["pid"], &note["client"]),
        (&json!(VERSION), &json!(client.pid()), &json!("test"))
    );
    assert!(note["machine"].as_str().is_some_and(|machine| !machine.is_empty()), "{note}");
}

#[test]
fn health_and_doctor_name_the_older_processes() {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    assert_eq!(board.cli_ok("health_check", json!({}))["older_processes"], Value::Null);
    let _older = older(&board);
    let health = board.cli_ok("health_check", json!({}));
    assert_eq!(health["older_processes"][0]["pid"], process::id(), "{health}");
    assert_eq!(health["older_processes"][0]["level"], FIRST, "{health}");
    assert_eq!(health["status"], "ok", "it works, and so does the older process");
    let doctor = board.finish(board.command().arg("doctor"));
    let line = doctor.stdout.lines().find(|line| line.contains("living processes")).unwrap();
    assert!(
        line.starts_with("warn") && line.contains(&format!("process {}", process::id())),
        "{line}"
    );
}
