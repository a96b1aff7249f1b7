//! `callboard work`, through the binary: what runs, what is kept, and that nothing outlives its
//! worker.

mod bundles;
mod closing;
mod endings;
mod failures;
mod interrupted;
mod leftovers;
mod resuming;
mod state;
mod worktrees;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Board, PATIENCE, until};

/// A worker process, and the JSON objects that it prints, one per line.
struct Worker {
    process: Child,
    lines: Receiver<Value>,
    told: Vec<Value>,
}

impl Worker {
    /// Starts `callboard --json work` with `options` on the board, running `script` with sh.
    fn start(board: &Board, options: &[&str], script: &str) -> Self {
        let mut command = board.command();
        command.args(["--json", "work"]).args(options).args(["--", "sh", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines
                .filter_map(|line| serde_json::from_str(&line).ok())
                .try_for_each(|value| sender.send(value))
        });
        Self { process, lines, told: Vec::new() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// The next event of that kind.
    #[track_caller]
    fn tells(&mut self, event: &str) -> Value {
        loop {
            let told = self.lines.recv_timeout(PATIENCE);
            let told = told.unwrap_or_else(|error| panic!("no {event}: {error}; {:#?}", self.told));
            self.told.push(told.clone());
            if told["event"] == event {
                return told;
            }
        }
    }

    /// The last event, and the exit status.
    #[track_caller]
    fn ends(&mut self) -> (Value, ExitStatus) {
        let summary = self.tells("ended");
        (summary, self.process.wait().unwrap())
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn add(board: &Board, ids: &[&str]) {
    let tasks: Vec<_> =
        ids.iter().map(|id| json!({"id": id, "description": format!("do {id}")})).collect();
    board.cli_ok("create_tasks_batch", json!({"tasks": tasks}));
}

/// Living processes that a worker of this board has started, directly or not.
fn alive(board: &Board) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let dir = format!("COORDINATION_DIR={}", board.dir().display());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variables: Vec<_> =
            environment.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        variables.iter().any(|one| **one == dir)
            && variables.iter().any(|one| one.starts_with("CALLBOARD_RUN="))
    })
    .collect()
}

#[track_caller]
fn dies_out(board: &Board) {
    until(Duration::from_secs(20), "nothing is left", || alive(board).is_empty().then_some(()));
}

fn logs(board: &Board, task: &str) -> Vec<PathBuf> {
    let logs =
        fs::read_dir(board.file("logs").join(task)).unwrap().flatten().map(|entry| entry.path());
    let mut logs: Vec<_> =
        logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    logs.sort();
    logs
}

#[test]
fn tasks_are_worked_off_and_keep_what_the_command_says() {
    let board = Board::new();
    add(&board, &["a", "b", "c"]);
    let script = r#"read -r input; printf '%s\n' "$input" > "input-$CALLBOARD_TASK_ID"
        echo "worked on $CALLBOARD_TASK_ID as $CALLBOARD_AGENT"; echo "{\"tokens\": 7, \"answer\": 42}""#;
    let mut worker = Worker::start(&board, &["--agents", "2", "--workflow", "w"], script);
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    assert_eq!(
        (&summary["done"], &summary["finished"], &summary["tokens"]),
        (&json!(3), &json!(true), &json!(21))
    );
    assert!(summary["writes_saved"].as_u64().unwrap() >= 6, "{summary}");
    for id in ["a", "b", "c"] {
        let task = board.task(id);
        assert_eq!(task["status"], "done");
        assert_eq!(task["result"]["data"]["answer"], 42);
        let agent = task["attempts"][0]["agent"].as_str().unwrap();
        assert!(["w-1", "w-2"].contains(&agent));
        assert_eq!(task["result"]["output"], format!("worked on {id} as {agent}"));
        let input: Value =
            serde_json::from_slice(&fs::read(board.base().join(format!("input-{id}"))).unwrap())
                .unwrap();
        assert_eq!(
            (&input["task"]["id"], &input["try"], &input["attempt"]),
            (&json!(id), &json!(1), &json!(1))
        );
        let log = fs::read_to_string(&logs(&board, id)[0]).unwrap();
        assert!(log.contains("worked on"), "{log}");
    }
    let saved = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
    assert_eq!(saved["workflow"]["spent"]["tokens"], 21);
    assert_eq!(saved["workflow"]["spent"]["attempts"], 3);
    assert_eq!(saved["checkpoint"]["state"]["status"], "completed");
    assert_eq!(board.replay().check(), Vec::<String>::new());
}

#[test]
fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let board = Board::new();
    add(&board, &["a"]);
    let before = fs::read(board.file(crate::harness::STATE_FILE)).unwrap();
    let mut command = board.command();
    let ran = board.finish(command.args([
        "work",
        "--exec",
        "true --really",
        "--agents",
        "2",
        "--dry-run",
    ]));
    assert!(
        ran.status.success()
            && ran.stdout.contains("nothing was done")
            && ran.stdout.contains("--really")
    );
    assert!(ran.stdout.contains("1 tasks ready"), "{}", ran.stdout);
    assert_eq!(fs::read(board.file(crate::harness::STATE_FILE)).unwrap(), before);
    assert!(!board.file("logs").exists());
}

#[test]
fn a_dry_run_is_refused_where_the_work_would_be() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let dry = |options: &[&str]| {
        let mut command = board.command();
        board.finish(command.args(["work", "--exec", "true", "--dry-run"]).args(options))
    };
    let is_refused = |options: &[&str], message: &str| {
        let ran = dry(options);
        assert!(
            !ran.status.success() && ran.stderr.contains(message),
            "{options:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
    };
    is_refused(&["--worktree"], "needs a git repository");
    worktrees::git(&board, &["init", "--quiet"]);
    is_refused(&["--worktree"], "needs a commit");
    let (_, status) =
        Worker::start(&board, &["--workflow", "w", "--max-tasks", "1"], "true").ends();
    assert!(status.success());
    is_refused(&["--workflow", "w"], "--continue");
    assert!(dry(&["--workflow", "w", "--continue"]).status.success());
    assert!(dry(&[]).stdout.contains("as work-1-1,"));
    let mut working = Worker::start(
        &board,
        &["--workflow", "work-1"],
        "touch begun; while [ ! -e end ]; do sleep 0.01; done",
    );
    until(PATIENCE, "it works", || board.base().join("begun").exists().then_some(()));
    is_refused(&["--workflow", "work-1", "--continue"], "works for workflow");
    assert!(dry(&[]).stdout.contains("as work-2-1,"));
    fs::write(board.base().join("end"), "").unwrap();
    assert!(working.ends().1.success());
}

#[test]
fn a_command_line_that_cannot_work_is_refused_before_anything_is_claimed() {
    let board = Board::new();
    add(&board, &["a"]);
    let cases: [(&[&str], &str); 6] = [
        (&["--exec", "no-such-program-at-all x"], "there is no program `no-such-program-at-all`"),
        (&["--exec", "cat a | grep b"], "no shell runs the command"),
        (&["--exec", "cat 'a"], "not closed"),
        (&["--exec", " "], "the command is empty"),
        (&["--exec", "true", "--timeout", "soon"], "90s"),
        (&["--exec", "true", "--agent", "bob"], "leave --agent out"),
    ];
    for (options, message) in cases {
        let ran = board.finish(board.command().arg("work").args(options));
        assert_eq!(ran.status.code(), Some(2), "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{options:?}: {}", ran.stderr);
    }
    assert_eq!(board.task("a")["status"], "available");
}

#[test]
fn limits_end_the_work_where_they_say() {
    let board = Board::new();
    add(&board, &["a", "b", "c", "d"]);
    let (summary, status) =
        Worker::start(&board, &["--max-tasks", "2", "--agents", "3"], "true").ends();
    assert!(status.success());
    assert_eq!((&summary["done"], &summary["remaining"]["ready"]), (&json!(2), &json!(2)));
    let next = summary["next"].as_str().unwrap();
    assert!(next.contains("work --workflow work-1 --continue --max-tasks 2"), "{next}");
    let budget = ["--workflow", "b", "--token-budget", "10"];
    let (summary, status) = Worker::start(&board, &budget, r#"echo '{"tokens": 12}'"#).ends();
    assert_eq!(status.code(), Some(1));
    assert_eq!((&summary["done"], &summary["spent"]["tokens"]), (&json!(1), &json!(12)));
    assert!(summary["reason"].as_str().unwrap().contains("budget"), "{summary}");
    // A restart does not reset the budget.
    let again = ["--workflow", "b", "--continue"];
    let (summary, status) = Worker::start(&board, &again, r#"echo '{"tokens": 12}'"#).ends();
    assert_eq!((status.code(), &summary["done"]), (Some(1), &json!(0)));
    let more = ["--workflow", "b", "--continue", "--token-budget", "100"];
    let (summary, status) = Worker::start(&board, &more, r#"echo '{"tokens": 12}'"#).ends();
    assert_eq!(
        (status.code(), &summary["done"], &summary["spent"]["tokens"]),
        (Some(0), &json!(1), &json!(24))
    );
}

#[test]
fn only_the_scope_is_worked_off() {
    let board = Board::new();
    let task = |id: &str, path: &str| json!({"id": id, "description": "d", "path": path});
    board.cli_ok(
        "create_tasks_batch",
        json!({"tasks": [task("a", "P1.M1.T1"), task("b", "P1.M2.T1")]}),
    );
    let (summary, status) = Worker::start(&board, &["--scope", "P1.M1"], "true").ends();
    assert!(status.success(), "{summary}");
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("done"), &json!("available"))
    );
    for options in [&["--scope", "P9"][..], &["--scope", "P9", "--dry-run"]] {
        let ran = board.finish(board.command().args(["work", "--exec", "true"]).args(options));
        assert_eq!(ran.status.code(), Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("there is no task at or below `P9`; `callboard tasks`"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_scope_whose_tasks_have_retired_is_finished() {
    let board = Board::with_policy("keep_finished = 1\n");
    let task = |id: &str, path: &str| json!({"id": id, "description": "d", "path": path});
    board.cli_ok(
        "create_tasks_batch",
        json!({"tasks": [task("a", "P1"), task("b", "P2"), task("c", "P3")]}),
    );
    assert!(Worker::start(&board, &[], "true").ends().1.success());
    assert!(!board.tasks().contains_key("a"), "it has retired");
    let (summary, status) = Worker::start(&board, &["--scope", "P1"], "true").ends();
    assert!(status.success(), "{summary}");
}

#[test]
fn the_line_that_goes_on_has_its_options_behind_the_command() {
    let board = Board::new();
    let named = Board::at(board.base().join("work"));
    add(&named, &["a", "b"]);
    let line = [
        "--color",
        "never",
        "--dir",
        "work",
        "--json",
        "work",
        "--max-tasks",
        "1",
        "--exec",
        "true",
    ];
    let mut command = board.command();
    let home = board.base().join("home");
    let ran = board.finish(command.env_remove("COORDINATION_DIR").env("HOME", home).args(line));
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let next = "callboard --color never --dir work --json work --workflow work-1 --continue \
                --max-tasks 1 --exec true";
    assert_eq!(summary["next"], next);
}

#[test]
fn a_time_budget_of_less_than_a_second_is_one() {
    let board = Board::new();
    add(&board, &["a"]);
    let (summary, status) = Worker::start(&board, &["--time-budget", "500ms"], "true").ends();
    assert!(status.success(), "{summary}");
    assert_eq!(summary["done"], 1);
}
