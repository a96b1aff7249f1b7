//! How work is stopped: gracefully, at once, and by SIGKILL.

use std::fs;
use std::io::Write;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::{Worker, add, alive, dies_out, worktrees};
use crate::harness::{Board, PATIENCE, until};

/// Starts every kind of child process that could be missed, reports that, and runs for long.
const FAMILY: &str = "sleep 600 & setsid sleep 601 & (setsid sh -c 'trap \"\" TERM HUP INT; while \
                      :; do sleep 1; done' &); touch ready; sleep 602; exit 5";

#[test]
fn the_first_signal_lets_the_task_end_and_takes_no_other() {
    for signal in [Signal::INT, Signal::TERM] {
        let board = Board::new();
        add(&board, &["a", "b"]);
        let script = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo fine";
        let mut worker = Worker::start(&board, &[], script);
        worker.tells("running");
        until(PATIENCE, "the command runs", || board.base().join("begun").exists().then_some(()));
        worker.signal(signal);
        worker.tells("stopping");
        fs::write(board.base().join("go"), "").unwrap();
        let (summary, status) = worker.ends();
        assert!(status.success(), "{summary}");
        assert_eq!((&summary["done"], &summary["remaining"]["ready"]), (&json!(1), &json!(1)));
        assert_eq!(
            (&board.task("a")["status"], &board.task("b")["status"]),
            (&json!("done"), &json!("available"))
        );
    }
}

#[test]
fn the_second_signal_ends_the_command_and_gives_the_task_back() {
    let board = Board::new();
    add(&board, &["a"]);
    let mut worker = Worker::start(&board, &[], FAMILY);
    worker.tells("running");
    until(PATIENCE, "the family is there", || board.base().join("ready").exists().then_some(()));
    until(PATIENCE, "all of it", || (alive(&board).len() >= 5).then_some(()));
    worker.signal(Signal::INT);
    worker.tells("stopping");
    worker.signal(Signal::INT);
    let (summary, status) = worker.ends();
    assert_eq!((status.code(), &summary["released"]), (Some(130), &json!(1)), "{summary}");
    dies_out(&board);
    let task = board.task("a");
    assert_eq!((&task["status"], &task["uncounted"]), (&json!("available"), &json!(1)));
}

#[test]
fn a_killed_worker_takes_everything_with_it_and_its_task_returns() {
    let board = Board::with_policy("grace_seconds = 1");
    add(&board, &["a"]);
    let mut worker = Worker::start(&board, &["--workflow", "w"], FAMILY);
    worker.tells("running");
    until(PATIENCE, "the family is there", || board.base().join("ready").exists().then_some(()));
    worker.kill();
    dies_out(&board);
    until(PATIENCE, "the task returns", || {
        // The lease's end is recorded by the next call that writes.
        board.cli_ok("create_task", json!({"description": "another"}));
        (board.task("a")["status"] == "available").then_some(())
    });
}

#[test]
fn a_killed_supervisor_leaves_nothing_and_the_try_counts_as_failed() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = format!("[ \"$CALLBOARD_TRY\" = 2 ] && exit 0; {FAMILY}");
    let mut worker = Worker::start(&board, &["--backoff", "0"], &script);
    let pid = worker.tells("running")["pid"].as_u64().unwrap();
    until(PATIENCE, "the family is there", || board.base().join("ready").exists().then_some(()));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    let parent = rustix::process::Pid::from_raw(parent).unwrap();
    rustix::process::kill_process(parent, Signal::KILL).unwrap();
    let retrying = worker.tells("retrying");
    assert_eq!(retrying["category"], "transient");
    dies_out(&board);
    let (summary, _) = worker.ends();
    assert_eq!(summary["done"], 1);
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = "(setsid sleep 600 &); sleep 601 & echo started";
    let mut worker = Worker::start(&board, &[], script);
    let (summary, _) = worker.ends();
    assert_eq!(summary["done"], 1);
    assert_eq!(alive(&board), Vec::<u32>::new());
    assert_eq!(board.task("a")["result"]["output"], "started");
}

#[test]
fn what_ignores_the_request_to_end_is_ended() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = "trap '' TERM INT HUP; while :; do sleep 0.1; done";
    let options = ["--timeout", "1", "--retries", "0", "--continue-on-error", "--max-tasks", "1"];
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert_eq!((&summary["given_up"], status.code()), (&json!(1), Some(0)), "{summary}");
    assert_eq!(alive(&board), Vec::<u32>::new());
    assert_eq!(board.task("a")["attempts"][0]["error"]["category"], "timeout");
}

#[test]
fn a_command_is_ended_in_time_while_somebody_holds_the_boards_lock() {
    for (options, is_interrupted) in [(&["--timeout", "3s"][..], false), (&[], true)] {
        let board = Board::new();
        add(&board, &["a"]);
        // The marked checkpoint waits to be saved.
        let script = "trap 'touch ended; exit 1' TERM; touch begun; while [ ! -e locked ]; do sleep 0.02; done
            echo '::callboard::checkpoint {\"page\": 7}'; touch marked; while :; do sleep 0.1; done";
        let more = ["--workflow", "w", "--max-tasks", "1", "--retries", "0"];
        let mut worker = Worker::start(&board, &[&more, options].concat(), script);
        let is_there = |name: &str| board.base().join(name).exists().then_some(());
        until(PATIENCE, "the command runs", || is_there("begun"));
        let lock = fs::File::open(board.file("lock")).unwrap();
        lock.lock().unwrap();
        fs::write(board.base().join("locked"), "").unwrap();
        until(PATIENCE, "it has marked something", || is_there("marked"));
        if is_interrupted {
            worker.signal(Signal::INT);
            worker.tells("stopping");
            worker.signal(Signal::INT);
        }
        until(Duration::from_secs(20), "the command is ended", || is_there("ended"));
        lock.unlock().unwrap();
        let (summary, _) = worker.ends();
        let ended_by = if is_interrupted { "released" } else { "given_up" };
        assert_eq!(summary[ended_by], 1, "{summary}");
        assert_eq!(board.task("a")["kept"]["page"], 7, "{summary}");
    }
}

#[test]
fn a_leader_stops_a_task_and_takes_one_away() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let mut worker = Worker::start(&board, &["--breaker", "1"], "sleep 600");
    worker.tells("running");
    board.cli_ok("cancel_task", json!({"task_id": "a", "ask_owner": true, "reason": "not needed"}));
    let released = worker.tells("released");
    assert_eq!(
        (&released["task"], &released["reason"]),
        (&json!("a"), &json!("stopped as asked: not needed"))
    );
    assert_eq!(board.task("a")["status"], "cancelled");
    worker.tells("running");
    board.cli_ok("cancel_task", json!({"task_id": "b"}));
    let lost = worker.tells("lost");
    assert_eq!(lost["task"], "b");
    dies_out(&board);
    let (summary, status) = worker.ends();
    assert_eq!((&summary["released"], &summary["given_up"]), (&json!(1), &json!(0)), "{summary}");
    assert_eq!(board.task("b")["status"], "cancelled");
    assert_eq!(status.code(), Some(0), "nothing failed");
}

#[test]
fn a_task_that_the_plan_changes_is_begun_again_with_the_new_text() {
    let board = Board::new();
    worktrees::begin(&board);
    let plan = board.base().join("plan.md");
    let import = |text: &str| {
        fs::write(&plan, format!("- [ ] P1: Held\n  {text}\n- [ ] P2: Other\n")).unwrap();
        let finished =
            board.finish(board.command().args(["plan", "import", plan.to_str().unwrap()]));
        assert!(finished.status.success(), "{}", finished.stderr);
    };
    import("Do the old thing.");
    let script = r#"echo x > "$CALLBOARD_TASK_PATH.txt"; case $CALLBOARD_TASK_DESCRIPTION in *old*) sleep 600;; esac"#;
    let mut worker =
        Worker::start(&board, &["--worktree", "--workflow", "w", "--breaker", "1"], script);
    let task = worker.tells("running")["task"].as_str().unwrap().to_owned();
    import("Do the new thing.");
    let released = worker.tells("released");
    assert!(
        released["reason"].as_str().unwrap().contains("the plan has changed the task"),
        "{released}"
    );
    let (summary, status) = worker.ends();
    let counts = ["done", "released", "given_up", "retries"].map(|name| summary[name].as_u64());
    assert_eq!(
        (counts, status.code()),
        ([Some(2), Some(1), Some(0), Some(0)], Some(0)),
        "{summary}"
    );
    let attempts = board.task(&task)["attempts"].clone();
    assert_eq!(
        (&attempts[0]["outcome"], &attempts[1]["outcome"]),
        (&json!("released"), &json!("done")),
        "{attempts}"
    );
    let kept = format!("refs/callboard/{task}/1");
    assert_eq!(
        worktrees::files(&board, &kept),
        ["P1.txt", "shared.txt"],
        "what it had left is kept aside"
    );
}

#[test]
fn a_reader_that_stops_reading_does_not_stop_the_work() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    // Fills the pipe, so that the worker's first line does not fit.
    writer.write_all(&[b' '; 64 << 10]).unwrap();
    let mut command = board.command();
    command.args(["--json", "work", "--exec", "true"]).stdout(writer);
    let mut process = command.spawn().unwrap();
    let status = until(PATIENCE, "it ends", || process.try_wait().unwrap());
    assert!(status.success());
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("done"), &json!("done"))
    );
    drop(reader);
}
