//! `config.toml`, saved while processes use the board.

use std::fs;
use std::time::Duration;

use callboard::state::event::Event;
use callboard::state::time::SECOND;
use serde_json::json;

use crate::harness::{Board, Client, PATIENCE, until};

fn save(board: &Board, settings: &str) {
    fs::write(board.file("config.toml"), format!("[policy]\n{settings}\n")).unwrap();
}

/// Waits until a failed task pauses for that many seconds. Returns the warnings in replies
/// meanwhile.
fn pauses(board: &Board, client: &mut Client, seconds: i64) -> Vec<String> {
    let mut warnings = Vec::new();
    until(PATIENCE, "the settings hold", || {
        let task = client.ok("create_task", json!({"description": "d"}));
        let task = task["task"]["id"].as_str().unwrap();
        let held = json!({"agent_id": "a", "task_id": task});
        let failed = json!({"agent_id": "a", "task_id": task, "error": "e"});
        for (tool, arguments) in [("claim_task", held), ("fail_task", failed)] {
            warnings.extend(client.ok(tool, arguments)["warning"].as_str().map(str::to_owned));
        }
        let events = board.events();
        let pause = events.iter().rev().find_map(|recorded| match &recorded.event {
            Event::Failed { retry_at, .. } => Some(retry_at.unwrap().since(recorded.at)),
            _ => None,
        });
        (pause == Some(seconds * SECOND)).then_some(())
    });
    warnings
}

/// Waits until a reply to `client` has a warning.
fn warns(client: &mut Client) -> String {
    until(PATIENCE, "a warning", || {
        client.ok("get_status", json!({}))["warning"].as_str().map(str::to_owned)
    })
}

#[test]
fn settings_that_are_saved_hold_in_processes_that_run_already() {
    let board = Board::new();
    let mut clients = [board.mcp(), board.mcp()];
    let all_pause = |clients: &mut [Client], seconds| {
        clients.iter_mut().flat_map(|client| pauses(&board, client, seconds)).collect::<Vec<_>>()
    };
    clients.iter_mut().for_each(|client| client.register("a"));
    assert_eq!(all_pause(&mut clients, 30), [""; 0]);
    save(&board, "retry_seconds = 7");
    assert_eq!(all_pause(&mut clients, 7), [""; 0]);
    // As an editor leaves the file for a moment.
    fs::write(board.file("config.toml"), "").unwrap();
    save(&board, "retry_hours = 1");
    for client in &mut clients {
        let warning = warns(client);
        assert!(warning.contains("retry_hours") && warning.contains("before"), "{warning}");
    }
    assert_eq!(all_pause(&mut clients, 7), [""; 0]);
    save(&board, "retry_seconds = 8");
    assert_eq!(all_pause(&mut clients, 8), [""; 0]);
    fs::remove_file(board.file("config.toml")).unwrap();
    assert_eq!(all_pause(&mut clients, 30), [""; 0]);
}

#[test]
fn a_claim_of_no_time_is_refused_with_the_smallest_that_there_is() {
    for setting in ["lease_minutes", "silent_minutes"] {
        let board = Board::new();
        board.make_dir();
        save(&board, &format!("{setting} = 0"));
        let refused = board.cli("create_task", json!({"description": "d"}));
        assert_eq!(refused.code(), "bad_config", "{}", refused.stderr);
        assert!(
            refused.stderr.contains(setting) && refused.stderr.contains("smallest"),
            "{}",
            refused.stderr
        );
        save(&board, &format!("{setting} = 1"));
        board.cli_ok("create_task", json!({"description": "d"}));
    }
}

#[test]
fn calls_that_come_while_one_before_is_refused_are_refused_as_well() {
    let board = Board::new();
    board.make_dir();
    save(&board, "retry_hours = 1");
    let mut client = board.mcp();
    for _ in 0..50 {
        let sent: Vec<_> =
            (0..8).map(|_| client.send("create_task", json!({"description": "d"}))).collect();
        for id in sent {
            let reply = client.reply(id).unwrap();
            assert!(reply.is_error && reply.code() == "bad_config", "{}", reply.text);
        }
    }
    fs::remove_file(board.file("config.toml")).unwrap();
    client.ok("create_task", json!({"description": "d"}));
}

#[test]
fn settings_that_are_too_long_are_not_read_in_part() {
    let board = Board::new();
    board.make_dir();
    let settings = format!("[policy]\n{}retry_hours = 1\n", "# a comment\n".repeat(6_000));
    fs::write(board.file("config.toml"), settings).unwrap();
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(refused.code(), "bad_config");
    assert!(refused.stderr.contains("65536 bytes"), "{}", refused.stderr);
}

#[test]
fn a_task_rises_while_it_waits_if_the_settings_say_so() {
    let board = Board::with_policy("aging_minutes = 10");
    let old = [
        ("create_task", json!({"id": "old", "description": "d", "priority": 5})),
        ("create_task", json!({"id": "older", "description": "d", "priority": 9})),
    ];
    board.called_earlier(Duration::from_secs(25 * 60), &old);
    board.cli_ok("create_task", json!({"id": "new", "description": "d", "priority": 4}));
    let says = |arguments: &[&str]| board.finish(board.command().args(arguments)).stdout;
    let shown = says(&["show", "old"]);
    assert!(shown.contains("5, risen to 3"), "{shown}");
    let explained = says(&["explain", "older"]);
    assert!(explained.contains("9, risen to 7"), "{explained}");
    assert!(!says(&["show", "new"]).contains("risen"));
    board.cli_ok("register_agent", json!({"agent_id": "a", "max_concurrent": 9}));
    let claim = || board.cli_ok("claim_task", json!({"agent_id": "a"}))["task"]["id"].clone();
    assert_eq!(claim(), "old");
    board.cli_ok("start_task", json!({"agent_id": "a", "task_id": "old"}));
    save(&board, "aging_minutes = 1");
    let ready: Vec<_> = until(PATIENCE, "the settings hold", || {
        let shown = board.cli_ok("get_task", json!({"task_id": "older"}));
        (shown["effective_priority"] == 1).then(|| ["older", "new"].map(str::to_owned).to_vec())
    });
    for task in ready {
        assert_eq!(claim(), task, "a minute lifts it above the newer one");
        board.cli_ok("start_task", json!({"agent_id": "a", "task_id": task}));
    }
    board.assert_file_is_the_replay();
}
