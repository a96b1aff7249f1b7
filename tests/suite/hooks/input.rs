//! What comes to a hook in pieces, without an end, or at a length that nobody expects; and what a
//! file is called.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BOUND, answer, by_shell, held_since, input, used_a_tool};
use crate::harness::Board;
use crate::health::Holder;

/// A board on which `ada` holds the files.
fn held(files: &[&str]) -> Board {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "ada"}));
    board.cli_ok("reserve_files", json!({"agent_id": "ada", "files": files, "minutes": 60}));
    board
}

fn guard(board: &Board) -> Command {
    let mut guard = by_shell(board, "guard");
    guard.env("CALLBOARD_AGENT", "bob");
    guard
}

fn edit(board: &Board, file: &str) -> Value {
    let path = board.base().join(file);
    input(board, "PreToolUse", json!({"tool_name": "Write", "tool_input": {"file_path": path}}))
}

#[track_caller]
fn assert_denied(board: &Board, text: &str, what: &str) {
    let said = answer(guard(board), text.as_bytes());
    assert!(said.contains("\"deny\""), "{what}: {said}");
}

#[test]
fn a_pipe_that_stays_open_is_answered_after_one_value() {
    let board = held(&["a.rs"]);
    let start = Instant::now();
    let mut process = guard(&board).spawn().unwrap();
    let mut open = process.stdin.take().unwrap();
    let text = edit(&board, "a.rs").to_string();
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    open.write_all(first).unwrap();
    open.flush().unwrap();
    assert!(process.try_wait().unwrap().is_none(), "half of a value is not one");
    open.write_all(second).unwrap();
    let mut said = String::new();
    process.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("\"deny\""), "{said}");
    assert!(process.wait().unwrap().success() && start.elapsed() < BOUND);
    drop(open);
}

#[test]
fn input_of_any_length_keeps_the_guard_closed() {
    let board = held(&["a.rs"]);
    let long = "\\\" é\\u00e9\\ud83d\\ude00 ".repeat(1 << 20);
    let many = "[1,{\"a\":[]}],".repeat(2 << 20);
    let path = board.base().join("a.rs");
    let path = json!(path).to_string();
    for (what, text) in [
        (
            "a long text before the path",
            format!(r#"{{"tool_input": {{"content": "{long}", "file_path": {path}}}}}"#),
        ),
        (
            "a long text after the path",
            format!(r#"{{"tool_input": {{"file_path": {path}, "content": "{long}"}}}}"#),
        ),
        (
            "a long text before the tool",
            format!(r#"{{"prompt": "{long}", "tool_input": {{"file_path": {path}}}}}"#),
        ),
        (
            "a long list after the path",
            format!(r#"{{"tool_input": {{"file_path": {path}, "edits": [{many} 1]}}}}"#),
        ),
        (
            "an object without an end after the path",
            format!(r#"{{"tool_input": {{"file_path": {path}, "edits": [{many}"#),
        ),
    ] {
        assert!(text.len() > 16 << 20, "{what}: {}", text.len());
        // So much takes its time where tests run side by side.
        let mut process = guard(&board).spawn().unwrap();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = process.wait_with_output().unwrap().stdout;
        assert!(String::from_utf8_lossy(&said).contains("\"deny\""), "{what}: {said:?}");
    }
}

#[test]
fn a_held_file_is_held_by_every_name() {
    let (composed, decomposed) = ("caf\u{e9}.rs", "cafe\u{301}.rs");
    let board = held(&["a.rs", composed, "o\u{308}/**"]);
    fs::write(board.base().join("a.rs"), "").unwrap();
    fs::hard_link(board.base().join("a.rs"), board.base().join("linked.rs")).unwrap();
    for file in ["linked.rs", composed, decomposed, "o\u{308}/b.rs", "\u{f6}/b.rs"] {
        assert_denied(&board, &edit(&board, file).to_string(), file);
    }
    let other = edit(&board, "cafe.rs").to_string();
    assert_eq!(answer(guard(&board), other.as_bytes()), "");
}

#[test]
fn a_stopped_process_with_the_lock_delays_no_hook() {
    let board = held(&["a.rs"]);
    held_since(&board, "bob", Duration::from_secs(50));
    let Some(holder) = Holder::of(&board.file("lock")) else { return };
    holder.stop();
    let seq = board.document()["seq"].clone();
    let mut took = Vec::new();
    let start = Instant::now();
    assert_denied(&board, &edit(&board, "a.rs").to_string(), "the guard");
    took.push(start.elapsed());
    let start = Instant::now();
    let used = used_a_tool(&board).to_string();
    assert_eq!(answer(by_shell(&board, "heartbeat --agent bob"), used.as_bytes()), "");
    took.push(start.elapsed());
    println!("with a stopped holder of the lock: guard {:?}, heartbeat {:?}", took[0], took[1]);
    // Far below what a call waits for the lock.
    assert!(took.iter().all(|took| took.as_millis() < 1_500), "{took:?}");
    assert_eq!(board.document()["seq"], seq);
}
