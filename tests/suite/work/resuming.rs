//! Workers that are killed at any moment, and continue as if nothing had happened.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Worker, add, dies_out};
use crate::harness::{Board, PATIENCE, size, until};

/// Steps of the workflow, and tokens that each uses.
const STEPS: usize = 40;
const TOKENS: u64 = 5;

/// What was observed at a kill: the steps done, and the number of runs begun.
struct Seen {
    done: BTreeSet<String>,
    runs: usize,
}

#[test]
fn a_workflow_is_one_workers_at_a_time() {
    let board = Board::new();
    add(&board, &["a"]);
    let mut worker =
        Worker::start(&board, &["--workflow", "w"], "while [ ! -e go ]; do sleep 0.02; done");
    worker.tells("running");
    let work = |options: &[&str]| {
        board.finish(board.command().args(["work", "--workflow", "w"]).args(options))
    };
    for options in [&["--exec", "true"][..], &["--exec", "true", "--continue"]] {
        let ran = work(options);
        assert_eq!(ran.status.code(), Some(1));
        assert!(
            ran.stderr.contains(&format!("process {} works for", worker.process.id())),
            "{}",
            ran.stderr
        );
    }
    fs::write(board.base().join("go"), "").unwrap();
    assert_eq!(worker.ends().0["done"], 1);
    let ran = work(&["--exec", "true"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        ran.stderr.contains("callboard work --continue --workflow w --exec true"),
        "{}",
        ran.stderr
    );
    assert!(work(&["--exec", "true", "--continue"]).status.success());
}

#[test]
fn what_a_command_saves_in_the_workflow_of_its_worker_is_for_its_next_try() {
    let board = Board::new();
    add(&board, &["a"]);
    let save = format!(
        "'{}' checkpoint save $CALLBOARD_WORKFLOW --phase p$CALLBOARD_TRY",
        env!("CARGO_BIN_EXE_callboard")
    );
    let script = format!(
        "read input; echo \"$input\" > try-$CALLBOARD_TRY; {save}; [ $CALLBOARD_TRY = 3 ] || exit \
         75"
    );
    let options = ["--workflow", "w", "--retries", "2", "--backoff", "1ms"];
    Worker::start(&board, &options, &script).ends();
    let given = |number: usize| -> Value {
        let input = fs::read_to_string(board.base().join(format!("try-{number}"))).unwrap();
        serde_json::from_str::<Value>(&input).unwrap()["checkpoint"].take()
    };
    assert_eq!((given(1), given(2)), (Value::Null, json!({"phase": "p1"})));
    assert_eq!(given(3), json!({"phase": "p2"}));
    let state =
        board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"]["state"].take();
    assert_eq!(state["completed_tasks"], json!(["a"]), "the worker's state is its own: {state}");
}

#[test]
fn workflow_that_goes_on_does_not_name_what_others_have_done_since() {
    let board = Board::with_policy("grace_seconds = 1");
    add(&board, &["a"]);
    let mut worker = Worker::start(&board, &["--workflow", "w"], "sleep 60");
    worker.tells("running");
    until(PATIENCE, "it is saved", || {
        let saved = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
        (saved["checkpoint"]["state"]["pending_tasks"] == json!(["a"])).then_some(())
    });
    worker.kill();
    dies_out(&board);
    Worker::start(&board, &["--workflow", "heir"], "true").ends();
    assert_eq!(board.task("a")["status"], "done");
    Worker::start(&board, &["--workflow", "w", "--continue"], "true").ends();
    let mut state =
        board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"]["state"].take();
    let persona = state["persona_states"]["w-1"]["status"].take();
    assert_eq!(
        (&state["pending_tasks"], &state["status"], persona),
        (&Value::Null, &json!("completed"), json!("idle"))
    );
}

#[test]
fn what_others_save_in_the_workflow_of_a_worker_stays() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let script = "touch begun; while [ ! -e go ]; do sleep 0.02; done";
    let mut worker = Worker::start(&board, &["--workflow", "w"], script);
    worker.tells("running");
    let state = json!({"persona_states": {"critic": {"status": "waiting"}}, "metrics": {"score": 7},
        "artifacts": {"report": "r.md"}});
    board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "state": state}));
    fs::write(board.base().join("go"), "").unwrap();
    assert_eq!(worker.ends().0["done"], 2);
    let saved =
        board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"]["state"].take();
    assert_eq!(saved["persona_states"]["critic"], json!({"status": "waiting"}), "{saved}");
    assert_eq!((&saved["metrics"]["score"], &saved["metrics"]["done"]), (&json!(7), &json!(2)));
    assert_eq!(saved["artifacts"]["report"], "r.md");
    assert_eq!(saved["completed_tasks"], json!(["a", "b"]));
}

#[test]
fn forty_steps_survive_twenty_kills() {
    let kills = size("CALLBOARD_WORK_KILLS", 20);
    let board = Board::new();
    let steps: Vec<_> = (0..STEPS).map(|step| format!("step-{step:02}")).collect();
    // A step that is under way at each of the kills must not be taken for their cause.
    let tasks: Vec<_> = steps
        .iter()
        .map(|id| json!({"id": id, "description": format!("do {id}"), "max_attempts": 100}))
        .collect();
    board.cli_ok("create_tasks_batch", json!({"tasks": tasks}));
    // The step's id makes its effect idempotent: a directory is created once.
    let script = format!(
        "echo $CALLBOARD_TASK_ID $CALLBOARD_TRY >> runs; sleep 0.05; mkdir -p \
         effects/$CALLBOARD_TASK_ID; sleep 0.05; echo '{{\"tokens\": {TOKENS}}}'"
    );
    let options = ["--workflow", "w", "--agents", "2", "--token-budget", "100000", "--continue"];
    let runs = || -> Vec<String> {
        fs::read_to_string(board.base().join("runs"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let (start, chance) = (Instant::now(), RandomState::new());
    let mut seen = Vec::new();
    for kill in 0..kills {
        let mut worker = Worker::start(&board, &options, &script);
        let dice = chance.hash_one(kill);
        for _ in 0..dice % 9 {
            if worker.lines.recv_timeout(Duration::from_secs(20)).is_err() {
                break;
            }
        }
        thread::sleep(Duration::from_micros(dice / 9 % 60_000));
        worker.kill();
        dies_out(&board);
        let done = board
            .tasks()
            .into_iter()
            .filter(|(_, task)| task["status"] == "done")
            .map(|(id, _)| id);
        seen.push(Seen { done: done.collect(), runs: runs().len() });
    }
    let (summary, status) = Worker::start(&board, &options, &script).ends();
    assert!(status.success(), "{summary}");
    let runs = runs();
    let effects = fs::read_dir(board.base().join("effects")).unwrap().flatten();
    let mut effects: Vec<_> =
        effects.map(|entry| entry.file_name().into_string().unwrap()).collect();
    effects.sort();
    assert_eq!(effects, steps);
    for (kill, seen) in seen.iter().enumerate() {
        let again =
            runs[seen.runs..].iter().find(|run| seen.done.contains(run.split(' ').next().unwrap()));
        assert_eq!(again, None, "done before kill {kill}, and run again");
    }
    for (id, task) in board.tasks() {
        assert_eq!((&task["status"], &task["attempt"]), (&json!("done"), &json!(1)), "{id}");
    }
    assert!(
        runs.iter().all(|run| run.ends_with(" 1")),
        "an interrupted try goes on as the same: {runs:?}"
    );
    let spent = &summary["spent"];
    assert_eq!(
        (spent["tokens"].as_u64(), spent["attempts"].as_u64()),
        (Some(STEPS as u64 * TOKENS), Some(STEPS as u64))
    );
    board.assert_file_is_the_replay();
    println!(
        "{STEPS} steps, {kills} kills, {} runs, {:.1} s",
        runs.len(),
        start.elapsed().as_secs_f64()
    );
}

#[test]
fn fewer_agents_go_on_with_what_more_held_and_are_no_more_at_once() {
    let board = Board::new();
    add(&board, &["a", "b", "c", "d", "e"]);
    let script = "[ -e go ] || { touch begun-$CALLBOARD_TASK_ID; sleep 600; }
        mkdir busy || touch overlap; sleep 0.1; rmdir busy";
    let mut worker = Worker::start(&board, &["--workflow", "w", "--agents", "3"], script);
    let begun = |id: &str| board.base().join(format!("begun-{id}")).exists();
    until(PATIENCE, "three run", || (["a", "b", "c"].into_iter().all(begun)).then_some(()));
    worker.kill();
    dies_out(&board);
    fs::write(board.base().join("go"), "").unwrap();
    let mut worker =
        Worker::start(&board, &["--workflow", "w", "--agents", "1", "--continue"], script);
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    assert_eq!((&summary["done"], &summary["recovered"]), (&json!(5), &json!(3)), "{summary}");
    assert!(!board.base().join("overlap").exists(), "one at a time");
    assert_eq!(worker.told[0]["agents"], 1);
    let claimed = worker.told.iter().filter(|told| told["event"] == "claimed");
    assert_eq!(claimed.map(|told| &told["agent"]).collect::<Vec<_>>(), ["w-1", "w-1"]);
}

/// Child processes of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    listed
        .flat_map(|pids| {
            pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal);
}

#[test]
fn two_runs_of_one_task_never_overlap() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = "echo x >> runs; [ $(wc -l < runs) -gt 1 ] || sleep 600";
    let options = ["--workflow", "w", "--continue"];
    let runs = || fs::read_to_string(board.base().join("runs")).unwrap_or_default().lines().count();
    let mut first = Worker::start(&board, &options, script);
    first.tells("running");
    until(PATIENCE, "the command runs", || (runs() == 1).then_some(()));
    let [supervisor] = children(first.process.id())[..] else { panic!("one supervisor") };
    // The supervisor cannot end what it started, as on a machine that is too busy.
    signal(supervisor, Signal::STOP);
    first.kill();
    let waiting = |worker: &mut Worker| {
        worker.tells("taken_up");
        let waits = until(PATIENCE, "its supervisor is there", || {
            children(worker.process.id()).first().copied()
        });
        // Time in which it would begin if nothing kept it from that.
        let told = worker.lines.recv_timeout(Duration::from_millis(700));
        assert!(told.is_err() && runs() == 1, "it began beside the first: {told:?}");
        waits
    };
    // A worker that is killed while it waits begins nothing later.
    let mut second = Worker::start(&board, &options, script);
    let waits = waiting(&mut second);
    second.kill();
    until(PATIENCE, "who waits for a dead worker ends", || {
        (!Path::new(&format!("/proc/{waits}")).exists()).then_some(())
    });
    let mut third = Worker::start(&board, &options, script);
    waiting(&mut third);
    signal(supervisor, Signal::CONT);
    let (summary, status) = third.ends();
    assert!(status.success(), "{summary}");
    assert_eq!(
        (runs(), &board.task("a")["attempt"], &summary["recovered"]),
        (2, &json!(1), &json!(1))
    );
}

#[test]
fn a_run_that_has_lost_worker_and_supervisor_is_ended_before_the_next() {
    let board = Board::new();
    add(&board, &["a"]);
    // The environment of a process that has ended but was not reaped is not visible.
    let script = "[ -e pid ] || { echo $$ > pid; exec sleep 600; }
        ! grep -q . /proc/$(cat pid)/environ || touch overlap";
    let options = ["--workflow", "w", "--continue"];
    let mut first = Worker::start(&board, &options, script);
    first.tells("running");
    until(PATIENCE, "the command runs", || board.base().join("pid").exists().then_some(()));
    let [supervisor] = children(first.process.id())[..] else { panic!("one supervisor") };
    signal(supervisor, Signal::STOP);
    first.kill();
    signal(supervisor, Signal::KILL);
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert!(status.success(), "{summary}");
    assert!(!board.base().join("overlap").exists(), "it ran beside the first");
    dies_out(&board);
}

#[test]
fn an_order_to_end_is_heeded_while_an_earlier_run_ends() {
    let board = Board::new();
    add(&board, &["a"]);
    let (script, options) = ("echo x >> runs; sleep 600", ["--workflow", "w", "--continue"]);
    let mut first = Worker::start(&board, &options, script);
    first.tells("running");
    let [supervisor] = children(first.process.id())[..] else { panic!("one supervisor") };
    signal(supervisor, Signal::STOP);
    first.kill();
    let mut second = Worker::start(&board, &options, script);
    second.tells("taken_up");
    until(PATIENCE, "its supervisor is there", || children(second.process.id()).first().copied());
    second.signal(Signal::INT);
    second.tells("stopping");
    second.signal(Signal::INT);
    let (summary, status) = second.ends();
    signal(supervisor, Signal::CONT);
    assert_eq!((status.code(), &summary["released"]), (Some(130), &json!(1)), "{summary}");
    assert!(summary["seconds"].as_f64().unwrap() < 20.0, "{summary}");
    dies_out(&board);
}

/// The checkpoint that the command of that attempt was given.
fn given(board: &Board, attempt: u32) -> Value {
    let input = fs::read(board.base().join(format!("input-{attempt}"))).unwrap();
    serde_json::from_slice::<Value>(&input).unwrap()["checkpoint"].clone()
}

#[test]
fn whoever_takes_a_task_over_is_given_what_the_newest_before_it_marked() {
    let board = Board::with_policy("grace_seconds = 1\nretry_seconds = 1\n");
    board.cli_ok("create_task", json!({"id": "a", "description": "d", "max_attempts": 5}));
    let script = |marks: &str| {
        format!(
            "cat > input-$CALLBOARD_ATTEMPT; [ $CALLBOARD_TASK_ID = a ] || exit 0; {marks}
             touch marked-$CALLBOARD_ATTEMPT; sleep 600"
        )
    };
    let mark =
        |name: &str| script(&format!("echo '::callboard::checkpoint {{\"session\": \"{name}\"}}'"));
    let mut first = Worker::start(&board, &["--workflow", "w"], &mark("first"));
    first.tells("checkpoint");
    first.kill();
    dies_out(&board);
    // More saves of the workflow than are kept.
    for _ in 0..12 {
        board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "state": {"phase": "p"}}));
    }
    let mut second = Worker::start(&board, &["--workflow", "x"], &mark("second"));
    second.tells("checkpoint");
    assert_eq!(
        (&board.task("a")["attempt"], &given(&board, 2)),
        (&json!(2), &json!({"session": "first"}))
    );
    second.signal(Signal::TERM);
    second.tells("stopping");
    second.signal(Signal::TERM);
    assert_eq!(second.ends().0["released"], 1);
    // If a command marks nothing, the checkpoint is passed on, and its own older one is not taken
    // for the newest.
    let mut third = Worker::start(&board, &["--workflow", "w", "--continue"], &script(":"));
    until(PATIENCE, "the command runs", || board.base().join("marked-3").exists().then_some(()));
    assert_eq!(given(&board, 3), json!({"session": "second"}));
    third.signal(Signal::TERM);
    third.tells("stopping");
    third.signal(Signal::TERM);
    assert_eq!(third.ends().0["released"], 1);
    board.cli_ok("reset_tasks", json!({"task_id": "a"}));
    let mut fourth = Worker::start(&board, &["--workflow", "w", "--continue"], &script(":"));
    until(PATIENCE, "the command runs", || board.base().join("marked-4").exists().then_some(()));
    assert_eq!(given(&board, 4), Value::Null, "it begins anew");
    fourth.kill();
    board.assert_file_is_the_replay();
}

#[test]
fn of_marks_that_come_faster_than_they_are_saved_the_last_is_given_on() {
    let board = Board::with_policy("retry_seconds = 1\n");
    board.cli_ok("create_task", json!({"id": "a", "description": "d"}));
    let script = r#"cat > input-$CALLBOARD_ATTEMPT; [ $CALLBOARD_ATTEMPT = 2 ] && exit 0
        for page in 1 2 3 4 5; do echo "::callboard::checkpoint {\"page\": $page}"; sleep 0.01; done; exit 1"#;
    let options = ["--workflow", "w", "--retries", "0", "--agents", "2"];
    let (summary, _) = Worker::start(&board, &options, script).ends();
    assert_eq!(summary["done"], 1, "{summary}");
    assert_eq!(given(&board, 2), json!({"page": 5}));
    assert_eq!(board.task("a")["kept"], Value::Null, "nothing is left to do");
}

#[test]
fn a_mark_that_was_not_due_yet_is_saved_while_the_command_says_nothing_more() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "a", "description": "d"}));
    let script = r#"for page in 1 2; do echo "::callboard::checkpoint {\"page\": $page}"; sleep 0.05; done; sleep 600"#;
    let mut worker = Worker::start(&board, &["--workflow", "w"], script);
    until(PATIENCE, "it is saved", || {
        (board.task("a")["kept"] == json!({"page": 2})).then_some(())
    });
    worker.kill();
    dies_out(&board);
}
