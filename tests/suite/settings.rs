//! `config.toml`, saved while processes use the board.

use std::fs;

use callboard::state::event::Event;
use callboard::state::time::SECOND;
use serde_json::json;

use crate::harness::{Board, Client};

fn save(board: &Board, settings: &str) {
    fs::write(board.file("config.toml"), format!("[policy]\n{settings}\n")).unwrap();
}

/// The seconds of pause that a task gets which fails now, and what the replies warn of.
fn pause(board: &Board, client: &mut Client, task: &str) -> (i64, Vec<String>) {
    let calls = [
        ("create_task", json!({"id": task, "description": "d"})),
        ("claim_task", json!({"agent_id": "a", "task_id": task})),
        ("fail_task", json!({"agent_id": "a", "task_id": task, "error": "e"})),
    ];
    let replies = calls.map(|(tool, arguments)| client.ok(tool, arguments));
    let warnings = replies.iter().filter_map(|reply| reply["warning"].as_str().map(str::to_owned)).collect();
    let events = board.events();
    let failed = events.iter().rev().find_map(|recorded| match &recorded.event {
        Event::Failed { retry_at, .. } => Some(retry_at.unwrap().since(recorded.at)),
        _ => None,
    });
    (failed.unwrap() / SECOND, warnings)
}

#[test]
fn settings_that_are_saved_hold_in_processes_that_run_already() {
    let board = Board::new();
    let mut clients = [board.mcp(), board.mcp()];
    for (client, task) in clients.iter_mut().zip(["a0", "b0"]) {
        client.register("a");
        assert_eq!(pause(&board, client, task), (30, vec![]));
    }
    save(&board, "retry_seconds = 7");
    for (client, task) in clients.iter_mut().zip(["a1", "b1"]) {
        client.register("a");
        assert_eq!(pause(&board, client, task), (7, vec![]));
    }
    save(&board, "retry_hours = 1");
    for (client, task) in clients.iter_mut().zip(["a2", "b2"]) {
        let (seconds, warnings) = pause(&board, client, task);
        assert_eq!((seconds, warnings.len()), (7, 1), "{warnings:?}");
        assert!(warnings[0].contains("retry_hours") && warnings[0].contains("before"), "{warnings:?}");
    }
    // As an editor leaves it for a moment.
    fs::write(board.file("config.toml"), "").unwrap();
    assert_eq!(pause(&board, &mut clients[0], "a3"), (7, vec![]));
    save(&board, "retry_seconds = 8");
    assert_eq!(pause(&board, &mut clients[0], "a4"), (8, vec![]));
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
