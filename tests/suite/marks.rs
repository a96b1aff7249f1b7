//! The byte order mark that Windows editors and PowerShell put before UTF-8: whatever people write
//! is read all the same.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::harness::http::Server;
use crate::harness::{Board, Finished};

const MARK: &str = "\u{feff}";

/// Result of a command that reads `text` from standard input.
fn fed(board: &Board, arguments: &[&str], text: &str) -> Finished {
    let mut command = board.command();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Finished { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[track_caller]
fn ok(finished: &Finished) {
    assert!(finished.status.success(), "{} {}", finished.stdout, finished.stderr);
}

#[test]
fn arguments_batches_and_plans_may_begin_with_a_mark() {
    let board = Board::new();
    ok(&fed(
        &board,
        &["call", "create_task", "-"],
        &format!("{MARK}{{\"id\":\"t1\",\"description\":\"d\"}}"),
    ));
    let inline = format!("{MARK}{}", json!({"id": "t2", "description": "d"}));
    ok(&board.finish(board.command().args(["call", "create_task", &inline])));
    ok(&fed(
        &board,
        &["add", "--batch", "-"],
        &format!("{MARK}[{{\"id\":\"t3\",\"description\":\"d\"}}]"),
    ));
    ok(&fed(&board, &["claim", "t1"], ""));
    ok(&fed(&board, &["complete", "t1", "-"], &format!("{MARK}done")));
    assert_eq!(
        board.cli_ok("get_task", json!({"task_id": "t1"}))["task"]["result"]["output"],
        "done"
    );
    for (name, plan) in [
        ("plan.md", "# Plan\n\n- [ ] first\n"),
        ("plan.json", "{\"title\": \"Plan\", \"items\": [{\"title\": \"first\"}]}"),
    ] {
        let board = Board::new();
        let file = board.base().join(name);
        fs::write(&file, format!("{MARK}{plan}")).unwrap();
        ok(&board.finish(board.command().args(["plan", "import"]).arg(&file)));
        // The same plan without its mark is the same plan.
        fs::write(&file, plan).unwrap();
        ok(&board.finish(board.command().args(["plan", "import"]).arg(&file)));
        let tasks = board.cli_ok("get_all_tasks", json!({}));
        assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1), "{tasks}");
    }
}

#[test]
fn settings_and_tokens_may_begin_with_a_mark() {
    let board = Board::new();
    board.make_dir();
    fs::write(board.file("config.toml"), format!("{MARK}[policy]\nlease_minutes = 7\n")).unwrap();
    board.cli_ok("create_task", json!({"description": "d"}));
    let added = board.finish(board.command().args(["--json", "token", "add", "--name", "ci"]));
    ok(&added);
    let guest = added.value()["token"].as_str().unwrap().to_owned();
    let tokens = fs::read_to_string(board.file("tokens.toml")).unwrap();
    fs::write(board.file("tokens.toml"), format!("{MARK}{tokens}")).unwrap();
    drop(Server::on(&board));
    let own = fs::read_to_string(board.file("serve.token")).unwrap();
    fs::write(board.file("serve.token"), format!("{MARK}{}\r\n", own.trim_end())).unwrap();
    let server = Server::on(&board);
    assert_eq!(server.token, own.trim_end());
    let url = server.announced["url"].as_str().unwrap();
    let file = board.base().join("token");
    for token in [&guest, &server.token] {
        fs::write(&file, format!("{MARK}{token}\r\n")).unwrap();
        ok(&board
            .finish(board.command().args(["--server", url, "status", "--token-file"]).arg(&file)));
        let marked = format!("{MARK}{token}");
        ok(&board.finish(
            board.command().args(["--server", url, "status"]).env("CALLBOARD_TOKEN", marked),
        ));
    }
}
