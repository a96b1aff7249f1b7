//! Work in worktrees: what is committed is the task's, and what is not done is put aside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::{Worker, add};
use crate::harness::{Board, PATIENCE, until};

pub(super) fn git(board: &Board, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .current_dir(board.base())
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a repository with a commit.
pub(super) fn begin(board: &Board) {
    git(board, &["init", "--quiet"]);
    fs::write(board.base().join("shared.txt"), "one\n").unwrap();
    fs::write(board.base().join(".gitignore"), "board\nmarks\n").unwrap();
    fs::create_dir_all(board.base().join("marks")).unwrap();
    git(board, &["add", "."]);
    git(board, &["commit", "--quiet", "-m", "first"]);
}

pub(super) fn files(board: &Board, commit: &str) -> Vec<String> {
    let listed = git(board, &["ls-tree", "-r", "--name-only", commit]);
    listed.lines().filter(|name| name.ends_with(".txt")).map(str::to_owned).collect()
}

#[test]
fn each_worker_has_a_worktree_and_commits_there() {
    let board = Board::new();
    git(&board, &["init", "--quiet"]);
    let ran = board.finish(board.command().args([
        "work",
        "--worktree",
        "--workflow",
        "tree",
        "--exec",
        "true",
    ]));
    assert!(!ran.status.success() && ran.stderr.contains("needs a commit"), "{}", ran.stderr);
    begin(&board);
    add(&board, &["a", "b"]);
    let options = ["--agents", "2", "--worktree", "--workflow", "tree"];
    let script = "echo more >> shared.txt; echo new > made-by-$CALLBOARD_TASK_ID.txt";
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert!(status.success(), "{summary}");
    for id in ["a", "b"] {
        let result = board.task(id)["result"].clone();
        assert_eq!(result["files_modified"], json!(["shared.txt"]), "{result}");
        assert_eq!(result["files_created"], json!([format!("made-by-{id}.txt")]));
        let (branch, commit) =
            (result["branch"].as_str().unwrap(), result["commit"].as_str().unwrap());
        assert!(branch.starts_with("callboard/tree-"), "{branch}");
        assert!(git(&board, &["show", "--stat", commit]).contains(&format!("Task: {id}")));
    }
    assert_eq!(fs::read_to_string(board.base().join("shared.txt")).unwrap(), "one\n");
    assert_eq!(git(&board, &["status", "--porcelain"]), "");
}

#[test]
fn no_hook_is_run_that_an_agent_may_have_written() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a", "b"]);
    let (ran, hooks) = (board.base().join("marks/ran"), board.base().join(".git/hooks"));
    fs::create_dir_all(&hooks).unwrap();
    let names = [
        "commit-msg",
        "fsmonitor",
        "post-checkout",
        "post-commit",
        "post-index-change",
        "pre-commit",
    ];
    for name in names.into_iter().chain(["prepare-commit-msg", "reference-transaction"]) {
        let hook = hooks.join(name);
        fs::write(&hook, format!("#!/bin/sh\necho {name} >> '{}'\n", ran.display())).unwrap();
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    git(&board, &["config", "core.fsmonitor", hooks.join("fsmonitor").to_str().unwrap()]);
    let script = "echo x > made-by-$CALLBOARD_TASK_ID.txt; [ $CALLBOARD_TASK_ID = a ] || exit 78";
    let (summary, _) = Worker::start(&board, &["--worktree", "--workflow", "w"], script).ends();
    assert_eq!((&summary["done"], &summary["parked"]), (&json!(1), &json!(1)), "{summary}");
    assert_eq!(fs::read_to_string(&ran).unwrap_or_default(), "");
    assert_eq!(files(&board, "callboard/w-1"), ["made-by-a.txt", "shared.txt"]);
    git(&board, &["status"]);
    assert!(ran.exists(), "git runs them when nobody keeps it from it");
}

#[test]
fn what_a_filter_leaves_running_is_not_waited_for() {
    const LASTS: Duration = Duration::from_secs(60);
    let board = Board::new();
    begin(&board);
    fs::write(board.base().join(".gitattributes"), "*.txt filter=slow\n").unwrap();
    git(&board, &["add", "."]);
    git(&board, &["commit", "--quiet", "-m", "attributes"]);
    let filter = format!("sleep {} >/dev/null & cat", LASTS.as_secs());
    git(&board, &["config", "filter.slow.clean", &filter]);
    add(&board, &["a"]);
    let start = Instant::now();
    let (summary, status) =
        Worker::start(&board, &["--worktree", "--workflow", "w"], "echo x > a.txt").ends();
    assert!(status.success(), "{summary}");
    assert!(start.elapsed() < LASTS, "{:?}", start.elapsed());
}

#[test]
fn what_a_failed_task_leaves_is_kept_aside_and_not_in_the_next_ones_commit() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a", "b"]);
    let script = r#"[ $CALLBOARD_TASK_ID = b ] && { echo b > b.txt; exit 0; }
        echo a > committed.txt; git add .; git -c user.name=t -c user.email=t@t commit --quiet -m half
        git checkout --quiet -b elsewhere; echo a > left.txt; exit 78"#;
    let (summary, _) =
        Worker::start(&board, &["--worktree", "--workflow", "w", "--continue-on-error"], script)
            .ends();
    assert_eq!((&summary["done"], &summary["parked"]), (&json!(1), &json!(1)), "{summary}");
    let result = board.task("b")["result"].clone();
    assert_eq!(result["files_created"], json!(["b.txt"]), "{result}");
    assert_eq!(result["branch"], "callboard/w-1");
    assert_eq!(files(&board, result["commit"].as_str().unwrap()), ["b.txt", "shared.txt"]);
    assert_eq!(files(&board, "refs/callboard/a/1"), ["committed.txt", "left.txt", "shared.txt"]);
}

#[test]
fn whatever_a_task_is_called_its_commits_are_kept_aside() {
    let board = Board::new();
    begin(&board);
    add(&board, &["t1-Cargo.lock", "a..b", "last"]);
    let script = r#"echo x > "$CALLBOARD_TASK_ID.txt"; [ $CALLBOARD_TASK_ID = last ] && exit 0
        git add .; git -c user.name=t -c user.email=t@t commit --quiet -m half; exit 78"#;
    let options = ["--worktree", "--workflow", "w", "--continue-on-error", "--breaker", "0"];
    let mut worker = Worker::start(&board, &options, script);
    let (summary, _) = worker.ends();
    assert_eq!((&summary["done"], &summary["parked"]), (&json!(1), &json!(2)), "{summary}");
    assert_eq!(files(&board, "callboard/w-1"), ["last.txt", "shared.txt"], "{:#?}", worker.told);
    assert_eq!(
        files(&board, "refs/callboard/t1-Cargo-lock/1"),
        ["shared.txt", "t1-Cargo.lock.txt"]
    );
    assert_eq!(files(&board, "refs/callboard/a--b/1"), ["a..b.txt", "shared.txt"]);
}

#[test]
fn a_workflow_whose_name_makes_no_branch_is_refused_at_once() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a"]);
    for workflow in ["w..x", "w:x"] {
        let work = ["work", "--worktree", "--workflow", workflow, "--exec", "true"];
        let ran = board.finish(board.command().args(work));
        assert_eq!(ran.status.code(), Some(2), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("--workflow: with --worktree"), "{}", ran.stderr);
    }
    assert!(!board.file("worktrees").exists());
    let ran = board.finish(board.command().args([
        "work",
        "--worktree",
        "--workflow",
        "w.lock@x",
        "--exec",
        "true",
    ]));
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_an_interrupted_task_leaves_is_kept_aside() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a"]);
    let script = "echo a > half.txt; touch ../../../marks/begun; sleep 600";
    let mut worker = Worker::start(&board, &["--worktree", "--workflow", "w"], script);
    until(PATIENCE, "the command runs", || board.base().join("marks/begun").exists().then_some(()));
    worker.signal(Signal::INT);
    worker.tells("stopping");
    worker.signal(Signal::INT);
    let (summary, _) = worker.ends();
    assert_eq!(summary["released"], 1, "{summary}");
    assert!(
        summary["spent"]["seconds"].as_u64().unwrap() >= 1,
        "an interrupted try takes time: {summary}"
    );
    assert_eq!(files(&board, "refs/callboard/a/1"), ["half.txt", "shared.txt"]);
    assert!(!board.file("worktrees/w-1/half.txt").exists());
}

#[test]
fn a_killed_worker_goes_on_with_what_lies_there_and_tells_it_all() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a"]);
    let script = r#"if [ -e ../../../marks/begun ]; then echo two > two.txt; exit 0; fi
        echo one > one.txt; git add .; git -c user.name=t -c user.email=t@t commit --quiet -m half; echo x > half.txt
        touch ../../../marks/begun; sleep 600"#;
    let mut worker = Worker::start(&board, &["--worktree", "--workflow", "w"], script);
    until(PATIENCE, "the command runs", || board.base().join("marks/begun").exists().then_some(()));
    worker.kill();
    let (summary, status) =
        Worker::start(&board, &["--worktree", "--workflow", "w", "--continue"], script).ends();
    assert!(status.success(), "{summary}");
    let result = board.task("a")["result"].clone();
    assert_eq!(result["files_created"], json!(["half.txt", "one.txt", "two.txt"]), "{result}");
}

#[test]
fn files_of_an_earlier_try_are_told_too() {
    let board = Board::new();
    begin(&board);
    let script = "echo x > try-$CALLBOARD_TRY.txt; [ $CALLBOARD_TRY = 2 ]";
    for options in [&["--backoff", "0"][..], &["--backoff", "0", "--worktree"]] {
        let id = format!("task-{}", options.len());
        add(&board, &[&id]);
        let (summary, status) = Worker::start(&board, options, script).ends();
        assert!(status.success(), "{summary}");
        let mut created = board.task(&id)["result"]["files_created"].as_array().unwrap().clone();
        created.sort_by_key(|name| name.to_string());
        assert_eq!(created, [json!("try-1.txt"), json!("try-2.txt")], "{options:?}");
        git(&board, &["clean", "--quiet", "-f"]);
    }
}

#[test]
fn what_cannot_be_committed_is_not_done() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a"]);
    let script = r#"lock=$(git rev-parse --git-common-dir)/refs/heads/callboard/w-1.lock; echo x > x.txt
        if [ $CALLBOARD_TRY = 1 ]; then touch "$lock"; else rm "$lock"; fi"#;
    let mut worker =
        Worker::start(&board, &["--worktree", "--workflow", "w", "--backoff", "0"], script);
    let retrying = worker.tells("retrying");
    assert!(retrying["error"].as_str().unwrap().contains("could not be committed"), "{retrying}");
    assert_eq!(retrying["category"], "transient");
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    let commit = board.task("a")["result"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(files(&board, &commit), ["shared.txt", "x.txt"]);
}

#[test]
fn whoever_has_but_a_name_or_an_address_can_commit() {
    for (setting, value, author) in [
        ("user.email", "ann@example.org", "callboard <ann@example.org>"),
        ("user.name", "Ann", "Ann <callboard@localhost>"),
        ("user.name", "", "callboard <callboard@localhost>"),
    ] {
        let board = Board::new();
        begin(&board);
        // Keeps git from deriving a name from the machine and the user.
        git(&board, &["config", "user.useConfigOnly", "true"]);
        git(&board, &["config", setting, value]);
        add(&board, &["a"]);
        let (summary, status) =
            Worker::start(&board, &["--worktree", "--workflow", "w"], "echo a > a.txt").ends();
        assert!(status.success(), "{setting}: {summary}");
        assert_eq!(
            git(&board, &["log", "-1", "--format=%an <%ae>", "callboard/w-1"]),
            format!("{author}\n")
        );
    }
}

#[test]
fn what_is_typed_to_stop_the_work_does_not_reach_git() {
    let board = Board::new();
    begin(&board);
    git(
        &board,
        &[
            "config",
            "filter.slow.clean",
            "touch ../../../marks/adding; while [ ! -e ../../../marks/go ]; do sleep 0.02; done; \
             cat",
        ],
    );
    fs::write(board.base().join(".git/info/attributes"), "slow.txt filter=slow\n").unwrap();
    add(&board, &["a"]);
    let mut worker = Worker::start(&board, &["--worktree", "--workflow", "w"], "echo x > slow.txt");
    until(PATIENCE, "git adds", || board.base().join("marks/adding").exists().then_some(()));
    kill_process_group(Pid::from_child(&worker.process), Signal::INT).unwrap();
    worker.tells("stopping");
    fs::write(board.base().join("marks/go"), "").unwrap();
    let (summary, status) = worker.ends();
    assert!(status.success() && summary["done"] == 1, "{summary}");
    let commit = board.task("a")["result"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(files(&board, &commit), ["shared.txt", "slow.txt"]);
}

#[test]
fn new_work_does_not_begin_on_the_code_of_old_work() {
    let board = Board::new();
    begin(&board);
    for number in 1..=2 {
        let id = format!("task-{number}");
        add(&board, &[&id]);
        let (summary, status) =
            Worker::start(&board, &["--worktree"], "echo $CALLBOARD_TASK_ID > made.txt").ends();
        assert!(status.success(), "{summary}");
        assert_eq!(summary["workflow"], format!("work-{number}"));
        assert_eq!(board.task(&id)["result"]["files_created"], json!(["made.txt"]));
    }
    let named = ["work", "--worktree", "--workflow", "work-1", "--exec", "true"];
    let ran = board.finish(board.command().args(named));
    assert!(!ran.status.success(), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("is there from an earlier one") && ran.stderr.contains("git branch -D"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_a_killed_worker_left_of_a_task_that_is_not_its_own_any_more_is_kept_aside() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a", "b"]);
    let script = r#"[ $CALLBOARD_TASK_ID = b ] && { echo b > b.txt; exit 0; }
        echo one > one.txt; git add .; git -c user.name=t -c user.email=t@t commit --quiet -m half; echo x > half.txt
        touch ../../../marks/begun; sleep 600"#;
    let mut worker = Worker::start(&board, &["--worktree", "--workflow", "w"], script);
    until(PATIENCE, "the command runs", || board.base().join("marks/begun").exists().then_some(()));
    worker.kill();
    board.cli_ok("cancel_task", json!({"task_id": "a"}));
    let (summary, _) =
        Worker::start(&board, &["--worktree", "--workflow", "w", "--continue"], script).ends();
    assert_eq!(summary["done"], 1, "{summary}");
    let result = board.task("b")["result"].clone();
    assert_eq!(result["files_created"], json!(["b.txt"]), "{result}");
    assert_eq!(files(&board, result["commit"].as_str().unwrap()), ["b.txt", "shared.txt"]);
    assert_eq!(files(&board, "refs/callboard/a/1"), ["half.txt", "one.txt", "shared.txt"]);
}
