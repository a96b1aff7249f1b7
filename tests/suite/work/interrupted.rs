//! What an interruption leaves: the step is the next, its tries count, and one that kills its
//! worker does so only so often.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::{Worker, add, dies_out};
use crate::harness::{Board, PATIENCE, until};

/// Starts work on `a` that does not end, and has it stopped at once by two signals.
fn interrupted(board: &Board, options: &[&str]) {
    let mut worker = Worker::start(board, options, "touch begun; exec sleep 600");
    until(PATIENCE, "it runs", || board.base().join("begun").exists().then_some(()));
    fs::remove_file(board.base().join("begun")).unwrap();
    worker.signal(Signal::INT);
    worker.tells("stopping");
    worker.signal(Signal::INT);
    assert_eq!(worker.ends().1.code(), Some(130));
}

fn claimed(worker: &Worker) -> Vec<&str> {
    let claimed = worker.told.iter().filter(|told| told["event"] == "claimed");
    claimed.filter_map(|told| told["task"].as_str()).collect()
}

#[test]
fn an_interrupted_step_is_the_next() {
    let board = Board::new();
    add(&board, &["a", "b", "c"]);
    interrupted(&board, &["--workflow", "w"]);
    // Again, before it has begun anew: it stays the next.
    interrupted(&board, &["--workflow", "w", "--continue"]);
    let mut worker = Worker::start(&board, &["--workflow", "w", "--continue"], "true");
    let (summary, _) = worker.ends();
    assert_eq!(claimed(&worker), ["a", "b", "c"], "{summary}");
}

#[test]
fn an_interrupted_step_of_another_agent_is_the_next_of_those_that_are_left() {
    let board = Board::new();
    add(&board, &["a", "b", "c", "d"]);
    let script = "touch begun-$CALLBOARD_TASK_ID; exec sleep 600";
    let mut worker = Worker::start(&board, &["--workflow", "w", "--agents", "2"], script);
    let begun = |id: &str| board.base().join(format!("begun-{id}")).exists();
    until(PATIENCE, "two run", || (begun("a") && begun("b")).then_some(()));
    worker.signal(Signal::INT);
    worker.tells("stopping");
    worker.signal(Signal::INT);
    worker.ends();
    let mut worker = Worker::start(&board, &["--workflow", "w", "--continue"], "true");
    worker.ends();
    assert_eq!(claimed(&worker), ["a", "b", "c", "d"]);
}

#[test]
fn an_interrupted_step_outside_the_scope_is_left_alone() {
    let board = Board::new();
    let task = |id: &str, path: &str| json!({"id": id, "description": "d", "path": path});
    board.cli_ok("create_tasks_batch", json!({"tasks": [task("a", "P1"), task("b", "P2")]}));
    interrupted(&board, &["--workflow", "w"]);
    let options = ["--workflow", "w", "--continue", "--scope", "P2"];
    let mut worker = Worker::start(&board, &options, "true");
    worker.ends();
    assert_eq!(claimed(&worker), ["b"]);
}

#[test]
fn tries_before_a_stop_count_after_it() {
    let board = Board::with_policy("retry_seconds = 0");
    board.cli_ok("create_task", json!({"id": "a", "description": "d", "max_attempts": 2}));
    let script = "echo $CALLBOARD_TRY >> tries; exit 1";
    let mut options =
        vec!["--workflow", "w", "--retries", "1", "--backoff", "1h", "--breaker", "0"];
    options.extend(["--max-tasks", "1"]);
    // Each start makes one try. The pause after the first of two is interrupted; the second fails
    // the attempt.
    for start in 0..4 {
        let mut worker = Worker::start(&board, &options, script);
        if start % 2 == 0 {
            worker.tells("retrying");
            worker.signal(Signal::INT);
        }
        worker.ends();
        if start == 0 {
            options.push("--continue");
        }
    }
    let tries = fs::read_to_string(board.base().join("tries")).unwrap();
    assert_eq!(tries, "1\n2\n1\n2\n");
    assert_eq!(board.task("a")["status"], "failed");
}

#[test]
fn a_step_that_kills_its_worker_is_parked_after_as_many_times_as_it_may_fail() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "a", "description": "d", "max_attempts": 2}));
    add(&board, &["b"]);
    // The worker is the parent of the supervisor.
    let script = "echo $CALLBOARD_TRY >> runs-$CALLBOARD_TASK_ID; [ $CALLBOARD_TASK_ID = b ] || \
                  kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 0.1";
    let options = ["--workflow", "w", "--continue", "--continue-on-error"];
    for _ in 0..2 {
        let mut worker = Worker::start(&board, &options, script);
        assert_eq!(worker.process.wait().unwrap().code(), None, "it is killed");
        dies_out(&board);
    }
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert_eq!((status.code(), &summary["parked"]), (Some(1), &json!(1)), "{summary}");
    let runs = fs::read_to_string(board.base().join("runs-a")).unwrap();
    assert_eq!(runs, "1\n1\n");
    let error = board.task("a")["attempts"][0]["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("killed 2 times"), "{error}");
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("failed"), &json!("done"))
    );
}
