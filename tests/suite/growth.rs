//! A board that has finished many tasks: what is kept of them does not grow with their number, and
//! nothing of them is forgotten.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::harness::{Board, Client, size};

const AGENTS: usize = 4;
/// Tasks in one batch, and most that wait at a time.
const BATCH: usize = 100;

/// Finishes tasks until `goal` of them are done.
fn work(board: &Board, name: &str, done: &AtomicUsize, goal: usize) {
    let mut client = board.mcp();
    let mut call = |operation: &str, arguments: Value| client.ok(operation, arguments);
    call("register_agent", json!({"agent_id": name, "role": "worker"}));
    while done.load(Ordering::SeqCst) < goal {
        let claimed = call("claim_task", json!({"agent_id": name}));
        let Some(id) = claimed["task"]["id"].as_str() else { continue };
        call("complete_task", json!({"agent_id": name, "task_id": id, "output": "it works"}));
        done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Creates and finishes the tasks from `first` up to `last`.
fn finish(board: &Board, lead: &mut Client, first: usize, last: usize) {
    let done = AtomicUsize::new(0);
    for first in (first..last).step_by(BATCH) {
        let goal = done.load(Ordering::SeqCst) + BATCH.min(last - first);
        let tasks: Vec<_> = (first..last.min(first + BATCH))
            .map(|number| {
                let description = format!("do thing {number}, and do it well");
                json!({"id": format!("t-{number}"), "description": description})
            })
            .collect();
        lead.ok("create_tasks_batch", json!({"tasks": tasks}));
        thread::scope(|scope| {
            for agent in 0..AGENTS {
                let done = &done;
                scope.spawn(move || work(board, &format!("w{agent}"), done, goal));
            }
        });
    }
}

#[test]
fn finished_tasks_do_not_make_the_board_grow_and_are_not_forgotten() {
    let tasks = size("CALLBOARD_GROWTH", 600);
    let board = Board::with_policy("keep_finished = 100\nkeep_stubs = 100");
    let mut lead = board.mcp();
    let file = || std::fs::metadata(board.file("mcp-state.json")).unwrap().len();
    finish(&board, &mut lead, 0, tasks / 2);
    let half = file();
    finish(&board, &mut lead, tasks / 2, tasks);
    let (whole, document) = (file(), board.document());
    assert!(whole < half + half / 5, "{half} bytes at half, and {whole} at the end");
    let stubs = document["retired"].as_object().unwrap().len();
    let dropped = document["dropped_stubs"].as_u64().unwrap();
    assert!(stubs <= 110 && dropped > 100, "{stubs} stubs, and {dropped} that were dropped");
    for number in [0, tasks / 4] {
        let task = lead.ok("get_task", json!({"task_id": format!("t-{number}")}));
        assert_eq!(
            (&task["retired"], &task["task"]["result"]["output"]),
            (&json!(true), &json!("it works"))
        );
    }
    let again = board.cli("create_task", json!({"id": "t-0", "description": "another"}));
    assert_eq!(again.code(), "task_exists");
    board.cli_ok("create_task", json!({"description": "next", "dependencies": ["t-1"]}));
    assert_eq!(board.cli_ok("get_status", json!({}))["tasks"]["done"], tasks);
    let doctor = board.finish(board.command().args(["doctor", "--json"]));
    assert!(doctor.status.success(), "{}", doctor.value());
}
