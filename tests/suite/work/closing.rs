//! What `work` says while it goes on and when it is over, and which command it names next.

use std::io::{BufRead, BufReader};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Worker, add};
use crate::harness::{Board, Finished, PATIENCE, until};

/// What a person sees of `callboard work`, running `script` with sh.
fn seen(board: &Board, options: &[&str], script: &str) -> Finished {
    let mut command = board.command();
    command.arg("work").args(options).args(["--", "sh", "-c", script]);
    board.finish(&mut command)
}

/// The command that the end of the work names.
#[track_caller]
fn next(seen: &Finished) -> &str {
    let next = seen.stdout.lines().find_map(|line| line.strip_prefix("next: "));
    next.unwrap_or_else(|| panic!("no next command: {}", seen.stdout))
}

/// Runs a line that a person was told to type.
fn typed(board: &Board, line: &str) -> Finished {
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_callboard")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(board.base()).env("PATH", path);
    shell.env("HOME", board.base()).env("COORDINATION_DIR", board.dir());
    board.finish(&mut shell)
}

#[test]
fn a_failed_task_is_not_called_finished_and_the_next_command_retries_it() {
    for options in [&["--workflow", "w"][..], &["--continue-on-error"]] {
        let board = Board::new();
        add(&board, &["a"]);
        let first = seen(&board, options, "[ -e mended ] || exit 78");
        assert_eq!(first.status.code(), Some(1), "{}", first.stdout);
        assert!(!first.stdout.contains("finished"), "{}", first.stdout);
        assert!(
            next(&first).starts_with("callboard retry a && callboard work "),
            "{}",
            next(&first)
        );
        std::fs::write(board.base().join("mended"), "").unwrap();
        let again = typed(&board, next(&first));
        assert!(again.status.success(), "{}{}", again.stdout, again.stderr);
        assert_eq!(board.task("a")["status"], "done");
    }
}

#[test]
fn the_end_of_work_that_goes_on_names_what_failed_before() {
    let board = Board::new();
    add(&board, &["a"]);
    seen(&board, &["--workflow", "w"], "exit 78");
    let again = seen(&board, &["--workflow", "w", "--continue"], "true");
    assert!(again.stdout.contains("nothing is left to do but what failed: a"), "{}", again.stdout);
    assert!(next(&again).starts_with("callboard retry a && "), "{}", again.stdout);
    let state = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"].clone();
    assert_eq!(
        (&state["state"]["phase"], &state["state"]["status"]),
        (&json!("failed"), &json!("failed"))
    );
}

#[test]
fn a_task_that_is_tried_again_is_not_given_up() {
    let board = Board::with_policy("retry_seconds = 0");
    add(&board, &["a"]);
    let options = ["--retries", "0", "--breaker", "0"];
    let seen = seen(&board, &options, "exit 1");
    let lines = |text: &str| seen.stdout.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines("will be tried again"), lines("gave a up")), (2, 1), "{}", seen.stdout);
    assert!(seen.stdout.contains("2 attempts are left"), "{}", seen.stdout);
}

#[test]
fn hints_for_running_work_and_counts_of_writes_are_not_part_of_the_end() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let failed = seen(&board, &[], "exit 78");
    let end = failed.stdout.split_once("ended after").unwrap().1;
    assert!(end.contains("task a failed") && !end.contains("--continue-on-error"), "{end}");
    assert!(!failed.stdout.contains("writes"), "{}", failed.stdout);
    let over = {
        let board = Board::new();
        add(&board, &["a"]);
        seen(&board, &[], "true")
    }
    .stdout;
    assert_eq!(over.matches("nothing is left to do").count(), 1, "it is said once: {over}");
    let told: Value = {
        let board = Board::new();
        add(&board, &["a", "b"]);
        let mut worker = Worker::start(&board, &[], "touch begun; until [ -e go ]; do :; done");
        until(PATIENCE, "it runs", || board.base().join("begun").exists().then_some(()));
        worker.signal(Signal::INT);
        let stopping = worker.tells("stopping");
        assert!(stopping["hint"].as_str().unwrap().contains("a second signal"), "{stopping}");
        std::fs::write(board.base().join("go"), "").unwrap();
        worker.ends().0
    };
    assert_eq!(told["reason"], "it was asked to stop");
    assert!(told["calls"].as_u64() > Some(0), "{told}");
}

#[test]
fn the_command_gets_no_token_unless_it_is_asked_for() {
    for (options, expected) in [(&[][..], "none"), (&["--pass-token"], "sesame")] {
        let board = Board::new();
        add(&board, &["a"]);
        // The environment of the process that runs the command is as readable as the command's own.
        let script = "echo ${CALLBOARD_TOKEN-none}; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c \
                      ^CALLBOARD_TOKEN; true";
        let mut command = board.command();
        command.arg("work").args(options).args(["--", "sh", "-c", script]);
        let ran = board.finish(command.env("CALLBOARD_TOKEN", "sesame"));
        assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
        let output = board.task("a")["result"]["output"].clone();
        let count = u8::from(!options.is_empty());
        assert_eq!(output, format!("{expected}\n{count}"));
    }
}

#[test]
fn a_try_that_may_hang_is_pointed_out_with_the_option_that_ends_it() {
    let board = Board::new();
    add(&board, &["a"]);
    let hangs = "until [ -e go ]; do sleep 0.01; done";
    let mut command = board.command();
    command.args(["work", "--long-after", "50ms", "--", "sh", "-c", hangs]);
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("may hang")).unwrap();
    assert!(line.contains(": a has run for") && line.contains("--timeout"));
    std::fs::write(board.base().join("go"), "").unwrap();
    assert_eq!(lines.filter(|line| line.contains("may hang")).count(), 0, "once is enough");
    assert!(process.wait().unwrap().success());
    // Where a limit is given, nobody has to be told of it.
    let limited = Board::new();
    add(&limited, &["a"]);
    let options = ["--long-after", "1ms", "--timeout", "5m"];
    let ran = seen(&limited, &options, "sleep 0.1");
    assert!(ran.status.success() && !ran.stdout.contains("may hang"), "{}", ran.stdout);
    let help = board.finish(board.command().args(["work", "--help"])).stdout;
    assert!(!help.contains("long-after"));
}
