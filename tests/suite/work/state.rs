//! What is kept of a workflow: what is left, what came of it and what it used; and what is retried
//! of it.

use std::fs;

use serde_json::{Value, json};

use super::{Worker, add, worktrees};
use crate::harness::{Board, PATIENCE, until};

fn state(board: &Board) -> Value {
    board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"]["state"].take()
}

#[test]
fn the_state_names_what_is_left_and_what_came_of_the_rest() {
    let board = Board::new();
    worktrees::begin(&board);
    add(&board, &["a", "b", "c"]);
    board.cli_ok("create_task", json!({"id": "d", "description": "d", "dependencies": ["c"]}));
    let bin = env!("CARGO_BIN_EXE_callboard");
    let script = format!(
        "case $CALLBOARD_TASK_ID in
        a) echo x > made.txt; echo fine | '{bin}' artifact attach a - --name report >&2;;
        b) exit 78;;
        c) touch $COORDINATION_DIR/begun-c; until [ -e $COORDINATION_DIR/go ]; do sleep 0.01; done;; esac
        echo '{{\"tokens\": 5}}'"
    );
    let options = ["--workflow", "w", "--worktree", "--continue-on-error"];
    let mut worker = Worker::start(&board, &options, &script);
    let at = |name: &str| board.file(name);
    until(PATIENCE, "c runs", || at("begun-c").exists().then_some(()));
    let during = state(&board);
    assert_eq!(during["pending_tasks"], json!(["c", "d"]), "{during}");
    assert_eq!(during["completed_tasks"], json!(["a"]));
    let left = &during["artifacts"]["a"];
    assert_eq!(left["files"], json!(["made.txt"]), "{during}");
    assert_eq!(left["attached"], json!(["report"]), "{during}");
    let commit = board.task("a")["result"]["commit"].clone();
    assert!(commit.is_string() && left["commit"] == commit, "{left} {commit}");
    fs::write(at("go"), "").unwrap();
    worker.ends();
    let metrics = |state: &Value, name: &str| state["metrics"][name].as_u64();
    let counted = |state: &Value| {
        ["done", "given_up", "parked", "tries", "tokens"].map(|name| metrics(state, name))
    };
    let after = state(&board);
    assert_eq!(after["pending_tasks"], Value::Null, "{after}");
    assert_eq!(counted(&after), [3, 1, 1, 4, 15].map(Some), "{after}");
    assert!(metrics(&after, "peak_open_files") > Some(0), "{after}");
    // The metrics are those of the workflow, not of the process.
    add(&board, &["e"]);
    Worker::start(&board, &["--workflow", "w", "--continue"], "true").ends();
    assert_eq!(counted(&state(&board)), [4, 1, 1, 5, 15].map(Some));
}

fn claimed(worker: &Worker) -> Vec<&str> {
    let claimed = worker.told.iter().filter(|told| told["event"] == "claimed");
    claimed.filter_map(|told| told["task"].as_str()).collect()
}

#[test]
fn continuing_retries_the_failed_task_that_the_scope_names_or_all_of_the_workflow() {
    let board = Board::new();
    let task = |id: &str, path: &str| json!({"id": id, "description": "d", "path": path});
    let tasks = [task("a", "P1.M1.T1"), task("b", "P1.M1.T2"), task("c", "P1.M2.T1")];
    board.cli_ok("create_tasks_batch", json!({"tasks": tasks}));
    let options = ["--workflow", "w", "--continue-on-error", "--breaker", "0"];
    Worker::start(&board, &options, "exit 78").ends();
    add(&board, &["other"]);
    Worker::start(&board, &["--workflow", "other", "--scope", "all"], "exit 78").ends();
    let goes_on = |more: &[&str]| {
        let options = [&["--workflow", "w", "--continue", "--breaker", "0"], more].concat();
        let mut worker = Worker::start(&board, &options, "true");
        worker.ends();
        claimed(&worker).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(goes_on(&[]).is_empty(), "nothing is retried that nobody named");
    assert!(goes_on(&["--scope", "P1.M1"]).is_empty(), "nor what is below the scope");
    let dry = board.finish(board.command().args([
        "work",
        "--exec",
        "true",
        "--workflow",
        "w",
        "--continue",
        "--scope",
        "P1.M1.T2",
        "--dry-run",
    ]));
    assert!(dry.stdout.contains("would retry what failed: b"), "{}", dry.stdout);
    assert_eq!(goes_on(&["--scope", "P1.M1.T2"]), ["b"]);
    assert_eq!(goes_on(&["--retry-failed"]), ["a", "c"]);
    assert_eq!(board.task("other")["status"], "failed", "it is another workflow's");
    let alone = board.finish(board.command().args(["work", "--exec", "true", "--retry-failed"]));
    assert_eq!(alone.status.code(), Some(2), "{}", alone.stderr);
}

#[test]
fn memory_and_open_files_of_the_command_are_limited_and_told() {
    let board = Board::new();
    add(&board, &["a"]);
    // The shell keeps a text of 40 MB, and has ten files open, for longer than measurements are apart.
    let greedy = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); \
                  exec 3<. 4<. 5<. 6<. 7<. 8<. 9<.; ulimit -Sn; ulimit -Hn; sleep 1.5; \
                  echo ${#x}";
    let mut worker = Worker::start(&board, &["--open-files", "64"], greedy);
    let used = worker.tells("used");
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    assert_eq!(board.task("a")["result"]["output"], "64\n64\n40000000");
    assert!(used["memory_bytes"].as_u64() > Some(40_000_000), "{used}");
    assert!(used["open_files"].as_u64() >= Some(10), "{used}");
    assert_eq!(summary["peak_memory_bytes"], used["memory_bytes"]);
    // With less memory, it cannot have the text.
    add(&board, &["b"]);
    let options = ["--memory-limit", "32M", "--open-files", "64", "--retries", "0"];
    let (summary, _) =
        Worker::start(&board, &[&options[..], &["--max-tasks", "1"]].concat(), greedy).ends();
    assert_eq!((&summary["done"], &summary["given_up"]), (&json!(0), &json!(1)), "{summary}");
    let ran = board.finish(board.command().args(["work", "--exec", "true", "--memory-limit", "9"]));
    assert!(ran.status.code() == Some(2) && ran.stderr.contains("at least 16M"), "{}", ran.stderr);
}
