//! `config.toml`, saved while processes use the board.

use std::fs;

use callboard::state::event::Event;
use callboard::state::time::SECOND;
use serde_json::json;

use crate::harness::{Board, Client, PATIENCE, until};

fn save(board: &Board, settings: &str) {
    fs::write(board.file("config.toml"), format!("[policy]\n{settings}\n")).unwrap();
}

/// Waits until a failed task pauses for that many seconds. Returns the warnings in replies meanwhile.
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
    until(PATIENCE, "a warning", || client.ok("get_status", json!({}))["warning"].as_str().map(str::to_owned))
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
        assert!(refused.stderr.contains(setting) && refused.stderr.contains("smallest"), "{}", refused.stderr);
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
        let sent: Vec<_> = (0..8).map(|_| client.send("create_task", json!({"description": "d"}))).collect();
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
