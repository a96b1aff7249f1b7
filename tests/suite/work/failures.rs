//! Commands that fail, and what they can do to their worker.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use callboard::state::limit;
use callboard::state::time::{SECOND, Timestamp};
use serde_json::json;

use super::{Worker, add, logs};
use crate::harness::{Board, PATIENCE, until};

#[test]
fn a_worker_tries_again_and_then_leaves_the_task_to_others() {
    let board = Board::with_policy("retry_seconds = 0");
    add(&board, &["a"]);
    let script = r#"echo "$CALLBOARD_AGENT $CALLBOARD_ATTEMPT.$CALLBOARD_TRY" >> tries; echo broken >&2; exit 3"#;
    let options =
        ["--agents", "2", "--retries", "1", "--backoff", "0", "--breaker", "0", "--workflow", "w"];
    let mut worker = Worker::start(&board, &options, script);
    let (summary, status) = worker.ends();
    assert_eq!(status.code(), Some(1));
    // Two tries in each of three attempts; then the task waits for a person.
    assert_eq!(
        (&summary["tries"], &summary["given_up"], &summary["parked"]),
        (&json!(6), &json!(3), &json!(1))
    );
    let tries = fs::read_to_string(board.base().join("tries")).unwrap();
    let tries: Vec<_> = tries.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(tries, ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]);
    let task = board.task("a");
    assert_eq!(task["status"], "failed");
    let error = &task["attempts"][2]["error"];
    assert_eq!(error["category"], "transient");
    assert_eq!(error["message"], "exit code 3: broken");
    let shown = board.finish(board.command().arg("status"));
    assert!(
        shown.stdout.contains("exit code 3: broken") && shown.stdout.contains("retry 1, show 1"),
        "{}",
        shown.stdout
    );
    board.cli_ok("retry_task", json!({"task_id": "a"}));
    let (summary, status) =
        Worker::start(&board, &["--workflow", "w", "--continue"], "true").ends();
    assert!(status.success(), "{summary}");
    assert_eq!(board.task("a")["status"], "done");
}

#[test]
fn what_is_permanent_is_not_tried_again() {
    let board = Board::new();
    add(&board, &["a", "b", "c"]);
    let script = r#"echo x >> tries-$CALLBOARD_TASK_ID; case $CALLBOARD_TASK_ID in
        a) exit 127;; b) echo '{"error": {"category": "permanent", "message": "no such model"}}';; c) exit 78;; esac"#;
    let (summary, status) =
        Worker::start(&board, &["--continue-on-error", "--breaker", "0"], script).ends();
    assert_eq!(
        (status.code(), &summary["parked"], &summary["tries"]),
        (Some(1), &json!(3), &json!(3)),
        "{summary}"
    );
    let error = board.task("b")["attempts"][0]["error"].clone();
    assert_eq!(error["message"], "no such model\n(exit code 0)");
    assert_eq!(error["category"], "permanent");
}

#[test]
fn without_going_on_the_first_failure_for_good_ends_the_work() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let (summary, status) = Worker::start(&board, &[], "exit 78").ends();
    assert_eq!((status.code(), &summary["tries"]), (Some(1), &json!(1)), "{summary}");
    assert_eq!(board.task("b")["status"], "available");
}

#[test]
fn a_command_that_fails_every_time_is_left_alone() {
    let board = Board::new();
    add(&board, &["a", "b", "c", "d"]);
    let options = ["--workflow", "w", "--breaker", "2", "--retries", "0", "--continue-on-error"];
    let mut worker = Worker::start(&board, &options, "exit 1");
    let paused = worker.tells("paused");
    assert_eq!(paused["failures"], 2);
    worker.kill();
    // The breaker stays open over a restart, for the same command only.
    let options = [
        "--workflow",
        "w",
        "--breaker",
        "2",
        "--retries",
        "0",
        "--continue-on-error",
        "--continue",
    ];
    let mut worker = Worker::start(&board, &options, "exit 1");
    assert_eq!(worker.tells("paused")["failures"], 2);
    worker.kill();
    let (_, status) =
        Worker::start(&board, &[&options[..], &["--max-tasks", "2"]].concat(), "true").ends();
    assert!(status.success());
}

#[test]
fn a_command_that_was_mended_after_the_worker_gave_it_up_is_run_again() {
    for (breaker, reached) in [("1", 4), ("0", 4), ("0", 1)] {
        let board = Board::new();
        add(&board, &["a", "b"]);
        let mut options =
            vec!["--workflow", "w", "--breaker", "1", "--retries", "0", "--continue-on-error"];
        let mut worker = Worker::start(&board, &options, "[ -e mended ]");
        worker.tells("paused");
        worker.kill();
        // Makes it look as if minutes had passed.
        let mut state =
            board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"]["state"]
                .clone();
        state["metrics"]["breaker"]["pauses"] = json!(reached);
        board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "state": state}));
        fs::write(board.base().join("mended"), "").unwrap();
        options[3] = breaker;
        let mut worker = Worker::start(
            &board,
            &[&options[..], &["--continue", "--max-tasks", "1"]].concat(),
            "[ -e mended ]",
        );
        let (summary, status) = worker.ends();
        assert_eq!((&summary["done"], status.code()), (&json!(1), Some(0)), "{summary}");
        assert!(worker.told.iter().all(|told| told["event"] != "paused"), "{:#?}", worker.told);
    }
}

#[test]
fn a_pause_that_nothing_comes_after_is_not_made() {
    let gpu = json!({"id": "gpu", "description": "d", "demands": {"capabilities": ["gpu"]}});
    let behind = json!({"id": "behind", "description": "d", "dependencies": ["a"]});
    for (more, told) in [(None, "what failed: a"), (Some(gpu), "gpu"), (Some(behind), "blocked")] {
        let board = Board::new();
        add(&board, &["a"]);
        more.into_iter().for_each(|task| drop(board.cli_ok("create_task", task)));
        let options = ["--workflow", "w", "--breaker", "1", "--continue-on-error"];
        let mut worker = Worker::start(&board, &options, "exit 78");
        let (summary, status) = worker.ends();
        assert_eq!((&summary["parked"], status.code()), (&json!(1), Some(1)), "{summary}");
        assert!(summary["reason"].as_str().unwrap().contains(told), "{summary}");
        assert!(worker.told.iter().all(|told| told["event"] != "paused"), "{:#?}", worker.told);
    }
}

#[test]
fn floods_endless_lines_and_what_is_no_text_are_borne() {
    let board = Board::new();
    add(&board, &["flood", "line", "bytes", "nothing", "both"]);
    let script = r#"case $CALLBOARD_TASK_ID in
        flood) yes "a line of a flood" | head -c 20000000; echo; echo '{"last": true}';;
        line) head -c 100000000 /dev/zero | tr '\0' x; echo;;
        bytes) printf '\377\376\000\033[31mred\r\n\300\n';;
        nothing) exec >&- 2>&- <&-;;
        both) exec cat > /dev/null;;
        esac"#;
    let (summary, status) = Worker::start(&board, &["--agents", "2"], script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!(summary["done"], 5);
    assert_eq!(board.task("flood")["result"]["data"]["last"], true);
    assert_eq!(board.task("nothing")["result"]["output"], "(the command printed nothing)");
    let output = board.task("bytes")["result"]["output"].to_string();
    assert!(output.contains("red") && !output.contains("\\u001b"), "{output}");
    for (task, least) in [("flood", 2 << 20), ("line", 2 << 20), ("bytes", 5)] {
        let logs = logs(&board, task);
        let size: u64 = logs.iter().map(|log| log.metadata().unwrap().len()).sum();
        assert!((least..=4 << 20).contains(&size), "{task}: {size} bytes in {logs:?}");
        assert!(
            logs.iter().all(|log| log.metadata().unwrap().permissions().mode() & 0o777 == 0o600)
        );
    }
    board.assert_file_is_the_replay();
}

#[test]
fn a_program_that_vanishes_costs_no_attempt() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let program = board.base().join("program");
    fs::write(&program, "#!/bin/sh\nrm -f ./program\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = board.finish(board.command().args(["work", "--exec", "./program"]));
    assert_eq!(ran.status.code(), Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(": the command cannot be run: "), "{}", ran.stdout);
    let task = board.task("b");
    assert_eq!(
        (&task["status"], &task["attempt"], &task["uncounted"]),
        (&json!("available"), &json!(1), &json!(1))
    );
}

#[test]
fn demands_that_the_worker_does_not_meet_are_named() {
    let board = Board::new();
    board.cli_ok(
        "create_task",
        json!({"id": "a", "description": "d", "demands": {"capabilities": ["gpu"]}}),
    );
    let (summary, status) = Worker::start(&board, &[], "true").ends();
    assert_eq!(status.code(), Some(1));
    assert!(summary["reason"].as_str().unwrap().contains("gpu"), "{summary}");
    let (_, status) = Worker::start(&board, &["--capabilities", "cpu,gpu"], "true").ends();
    assert!(status.success());
}

#[test]
fn what_a_command_marks_is_kept_at_once_and_given_to_the_next_try() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = r#"read -r input; echo "$input" > input-$CALLBOARD_TRY
        [ $CALLBOARD_TRY = 2 ] && exit 0
        echo '::callboard::checkpoint {"page": 7}'; echo '::callboard::checkpoint [oops'
        while [ ! -e go ]; do sleep 0.02; done; exit 1"#;
    let mut worker = Worker::start(&board, &["--workflow", "w", "--backoff", "0"], script);
    worker.tells("checkpoint");
    let saved = board.cli_ok("get_checkpoint", json!({"task_id": "a"}));
    assert_eq!(saved["checkpoint"]["state"]["persona_states"]["w-1"]["checkpoint"]["page"], 7);
    fs::write(board.base().join("go"), "").unwrap();
    let (summary, _) = worker.ends();
    assert_eq!(summary["done"], 1);
    let input: serde_json::Value =
        serde_json::from_slice(&fs::read(board.base().join("input-2")).unwrap()).unwrap();
    assert_eq!((&input["checkpoint"]["page"], &input["try"]), (&json!(7), &json!(2)));
    until(crate::harness::PATIENCE, "the log says what was wrong", || {
        fs::read_to_string(&logs(&board, "a")[0])
            .unwrap()
            .contains("a checkpoint was not kept")
            .then_some(())
    });
}

/// A command whose first try marks an object of so many bytes, and whose second writes what it is
/// given to a file.
fn marks(bytes: usize) -> String {
    let padding = bytes - r#"{"page":7,"text":""}"#.len();
    format!(
        r#"if [ $CALLBOARD_TRY = 2 ]; then cat > given; exit 0; fi
        printf '::callboard::checkpoint {{"page":7,"text":"'
        head -c {padding} /dev/zero | tr '\0' x; echo '"}}'
        while [ ! -e go ]; do sleep 0.02; done; exit 1"#
    )
}

#[test]
fn a_mark_as_large_as_a_checkpoint_may_be_is_given_to_the_next_try() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = marks(limit::CHECKPOINT.max);
    let options = ["--workflow", "w", "--backoff", "0", "--agents", "2"];
    let mut worker = Worker::start(&board, &options, &script);
    worker.tells("checkpoint");
    let saved = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["checkpoint"].take();
    assert!(saved.to_string().len() < 64 << 10, "the state, which is saved often, stays small");
    fs::write(board.base().join("go"), "").unwrap();
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    let given = fs::read(board.base().join("given")).unwrap();
    let input: serde_json::Value = serde_json::from_slice(&given).unwrap();
    assert_eq!(input["checkpoint"].to_string().len(), limit::CHECKPOINT.max);
    board.assert_file_is_the_replay();
}

#[test]
fn a_mark_that_is_too_long_is_told_by_the_work_and_on_the_board() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = marks(limit::CHECKPOINT.max + 1);
    let mut worker = Worker::start(&board, &["--workflow", "w", "--backoff", "0"], &script);
    let told = worker.tells("problem");
    let why = told["message"].as_str().unwrap();
    assert!(why.starts_with("a: a checkpoint was not kept: ") && why.contains("1048576"), "{why}");
    let note = until(crate::harness::PATIENCE, "the board says so", || {
        let attempts = board.task("a")["attempts"].take();
        attempts.as_array()?.last()?["note"].as_str().map(str::to_owned)
    });
    assert!(note.starts_with("a checkpoint was not kept: "), "{note}");
    fs::write(board.base().join("go"), "").unwrap();
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    let given = fs::read(board.base().join("given")).unwrap();
    let input: serde_json::Value = serde_json::from_slice(&given).unwrap();
    assert_eq!(input["checkpoint"], serde_json::Value::Null);
}

#[test]
fn a_mark_on_a_last_line_that_has_no_end_is_kept_too() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = r#"cat > input-$CALLBOARD_TRY; [ $CALLBOARD_TRY = 2 ] && exit 0
        printf '::callboard::checkpoint {"page": 7}'; exit 1"#;
    let (summary, _) = Worker::start(&board, &["--backoff", "0"], script).ends();
    assert_eq!(summary["done"], 1, "{summary}");
    let input: serde_json::Value =
        serde_json::from_slice(&fs::read(board.base().join("input-2")).unwrap()).unwrap();
    assert_eq!(input["checkpoint"]["page"], 7, "{input}");
}

#[test]
fn a_result_that_the_board_does_not_take_ends_its_task_once() {
    let board = Board::new();
    add(&board, &["deep", "many", "list"]);
    let script = r#"echo x >> runs-$CALLBOARD_TASK_ID; case $CALLBOARD_TASK_ID in
        deep) s=1; for i in $(seq 60); do s="{\"a\": $s}"; done; echo "$s";;
        many) echo '{"tokens": 1e18}';;
        list) echo '{"usage": {"input_tokens": 18446744073709551615, "output_tokens": 18446744073709551615}}';;
        esac"#;
    let (summary, status) = Worker::start(&board, &["--workflow", "w"], script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!((&summary["done"], &summary["lost"]), (&json!(3), &json!(0)), "{summary}");
    for id in ["deep", "many", "list"] {
        assert_eq!(
            fs::read_to_string(board.base().join(format!("runs-{id}"))).unwrap(),
            "x\n",
            "{id} ran once"
        );
    }
    assert!(board.task("deep")["result"]["output"].as_str().unwrap().contains("too deep"));
    assert_eq!(
        summary["spent"]["tokens"],
        1_u64 << 53 << 1,
        "each counts as the most that there is: {summary}"
    );
}

#[test]
fn checkpoints_that_are_too_deep_are_not_kept_and_cost_nothing() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = r#"s=1; for i in $(seq 31); do s="{\"a\": $s}"; done; echo "::callboard::checkpoint $s"
        sleep 0.3; [ $CALLBOARD_TRY = 2 ]"#;
    let (summary, status) = Worker::start(&board, &["--backoff", "0"], script).ends();
    assert!(status.success(), "{summary}");
    assert!(fs::read_to_string(&logs(&board, "a")[0]).unwrap().contains("levels deep"));
}

#[test]
fn words_in_the_output_make_no_failure_permanent() {
    let board = Board::new();
    add(&board, &["a"]);
    let script = "echo 'error: unexpected argument; test unauthorized ... permission denied' >&2; \
                  [ $CALLBOARD_TRY = 2 ]";
    let (summary, status) = Worker::start(&board, &["--backoff", "0"], script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!((&summary["tries"], &summary["done"]), (&json!(2), &json!(1)));
}

#[test]
fn without_room_for_a_log_the_work_goes_on() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    fs::write(board.file("logs"), "no directory").unwrap();
    let mut worker = Worker::start(&board, &[], "echo fine");
    assert!(worker.tells("problem")["message"].as_str().unwrap().contains("without a log"));
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    assert_eq!(board.task("a")["result"]["output"], "fine");
}

#[test]
fn the_last_of_a_number_of_tasks_is_tried_again_like_any() {
    let board = Board::new();
    add(&board, &["a", "b", "c"]);
    let script = "[ $CALLBOARD_TRY = 2 ]";
    let options = ["--max-tasks", "2", "--agents", "2", "--backoff", "100ms"];
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!(
        (&summary["done"], &summary["retries"], &summary["released"]),
        (&json!(2), &json!(2), &json!(0)),
        "{summary}"
    );
}

#[test]
fn a_task_that_takes_longer_than_it_may_fails_before_its_lease_ends() {
    let board = Board::with_policy("retry_seconds = 600");
    board.cli_ok("create_task", json!({"id": "a", "description": "d"}));
    board.cli_ok("update_task", json!({"task_id": "a", "timeout_seconds": 6}));
    let (summary, _) =
        Worker::start(&board, &["--retries", "5", "--max-tasks", "1"], "sleep 600").ends();
    assert_eq!(
        (&summary["given_up"], &summary["lost"], &summary["tries"]),
        (&json!(1), &json!(0), &json!(1)),
        "{summary}"
    );
    let attempt = board.task("a")["attempts"][0].clone();
    assert_eq!(
        (&attempt["outcome"], &attempt["error"]["category"]),
        (&json!("failed"), &json!("timeout")),
        "{attempt}"
    );
}

#[test]
fn a_budget_of_time_ends_the_try_that_uses_it_up() {
    let board = Board::new();
    add(&board, &["a"]);
    let (summary, status) =
        Worker::start(&board, &["--workflow", "w", "--time-budget", "1s"], "sleep 600").ends();
    assert_eq!(status.code(), Some(1), "{summary}");
    assert!(summary["spent"]["seconds"].as_u64().unwrap() >= 1, "{summary}");
    assert!(summary["reason"].as_str().unwrap().contains("budget"), "{summary}");
}

#[test]
fn the_end_of_a_budget_of_time_is_no_failure_of_the_task() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "a", "description": "d", "max_attempts": 1}));
    let options = ["--workflow", "w", "--time-budget", "1s", "--retries", "0"];
    let (summary, _) = Worker::start(&board, &options, "sleep 600").ends();
    assert_eq!((&summary["released"], &summary["given_up"]), (&json!(1), &json!(0)), "{summary}");
    let task = board.task("a");
    assert_eq!((&task["status"], &task["uncounted"]), (&json!("available"), &json!(1)), "{task}");
}

#[test]
fn agents_share_a_budget_of_time() {
    let board = Board::new();
    add(&board, &["a", "b", "c", "d", "e", "f"]);
    let options = ["--workflow", "w", "--time-budget", "12s", "--agents", "4"];
    let (summary, status) = Worker::start(&board, &options, "sleep 600").ends();
    assert_eq!(
        (status.code(), &summary["released"], &summary["tries"]),
        (Some(1), &json!(4), &json!(4)),
        "{summary}"
    );
    // Each command may take a little longer to end.
    assert!((12..24).contains(&summary["spent"]["seconds"].as_u64().unwrap()), "{summary}");
}

#[test]
fn a_budget_of_attempts_leaves_the_other_tasks_to_others() {
    let board = Board::new();
    add(&board, &["a", "b", "c"]);
    let (summary, status) =
        Worker::start(&board, &["--workflow", "w", "--attempt-budget", "2"], "true").ends();
    assert_eq!((&summary["done"], status.code()), (&json!(2), Some(1)), "{summary}");
    assert!(summary["reason"].as_str().unwrap().contains("budget"), "{summary}");
    assert_eq!(board.task("c")["status"], "available");
    let more = ["--workflow", "w", "--continue", "--attempt-budget", "3"];
    let (summary, status) = Worker::start(&board, &more, "true").ends();
    assert_eq!((&summary["done"], status.code()), (&json!(1), Some(0)), "{summary}");
    assert_eq!(summary["finished"], true, "the budget was just enough: {summary}");
}

#[test]
fn agents_that_begin_at_once_keep_within_a_budget_of_attempts() {
    for (budget, script, done) in [("1", "true", 1), ("4", "false", 0)] {
        let board = Board::new();
        add(&board, &["a", "b", "c", "d", "e", "f"]);
        let options = [
            "--agents",
            "3",
            "--workflow",
            "w",
            "--retries",
            "9",
            "--backoff",
            "0",
            "--breaker",
            "0",
        ];
        let more = ["--attempt-budget", budget];
        let (summary, status) =
            Worker::start(&board, &[&options[..], &more].concat(), script).ends();
        assert_eq!((&summary["done"], status.code()), (&json!(done), Some(1)), "{summary}");
        assert!(summary["reason"].as_str().unwrap().contains("budget"), "{summary}");
        let budget: u64 = budget.parse().unwrap();
        assert_eq!(
            (&summary["tries"], &summary["spent"]["attempts"]),
            (&json!(budget), &json!(budget)),
            "{summary}"
        );
    }
}

#[test]
fn after_its_longest_time_a_worker_ends_its_task_and_claims_no_other() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let (summary, _) = Worker::start(&board, &["--max-duration", "5s"], "sleep 6").ends();
    assert_eq!(summary["done"], 1, "{summary}");
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("done"), &json!("available"))
    );
}

#[test]
fn work_that_goes_on_does_not_call_failed_tasks_finished() {
    let board = Board::new();
    add(&board, &["a"]);
    let (_, status) = Worker::start(&board, &["--workflow", "w"], "exit 78").ends();
    assert_eq!(status.code(), Some(1));
    let (summary, status) =
        Worker::start(&board, &["--workflow", "w", "--continue"], "true").ends();
    assert_eq!((&summary["finished"], status.code()), (&json!(false), Some(1)), "{summary}");
}

#[test]
fn what_is_told_holds_no_secrets() {
    let board = Board::new();
    add(&board, &["a"]);
    let secret = ["sk-ant-", "api03-abcdefghijklmnopqrstuvwxyz0123456789"].concat();
    let script = format!("echo 'export API_KEY={secret}'; exit 78");
    for options in [&["--json", "work"][..], &["work"]] {
        add(&board, &[&format!("task-{}", options.len())]);
        let mut command = board.command();
        let ran = board.finish(command.args(options).args([
            "--continue-on-error",
            "--",
            "sh",
            "-c",
            &script,
        ]));
        assert!(
            ran.stdout.contains("[redacted: ") && !ran.stdout.contains("abcdefghijklmnop"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn only_own_agents_are_taken_over() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let foreign = json!({"agent_id": "someone", "workflow_id": "w"});
    board.cli_ok("register_agent", json!({"agent_id": "someone", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "someone", "task_id": "a"}));
    board.cli_ok("save_checkpoint", foreign);
    let options = ["--workflow", "w", "--continue", "--max-tasks", "1"];
    let mut worker = Worker::start(&board, &options, "true");
    assert_eq!(worker.tells("began")["agents"], 1);
    let (summary, _) = worker.ends();
    assert_eq!(summary["recovered"], 0, "{summary}");
    assert_eq!(
        (&board.task("a")["claimed_by"], &board.task("b")["status"]),
        (&json!("someone"), &json!("done"))
    );
}

#[test]
fn options_of_the_command_are_not_taken_for_those_of_the_work() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let mut command = board.command();
    command.args([
        "--json",
        "work",
        "--max-tasks",
        "1",
        "--",
        "sh",
        "-c",
        "true",
        "--continue",
        "--workflow=x",
    ]);
    let ran = board.finish(&mut command);
    assert!(
        ran.stdout.contains("work --workflow work-1 --continue --max-tasks 1 -- sh"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_task_that_waits_to_be_tried_again_is_held_and_can_be_cancelled() {
    let board = Board::with_policy("lease_minutes = 1\nsilent_minutes = 1\n");
    add(&board, &["a"]);
    let mut worker = Worker::start(&board, &["--backoff", "10m", "--workflow", "w"], "exit 75");
    worker.tells("retrying");
    let lease = || -> Timestamp {
        serde_json::from_value(board.task("a")["attempts"][0]["lease_until"].clone()).unwrap()
    };
    let at_failure = lease();
    until(PATIENCE, "its lease is renewed", || {
        (lease().since(at_failure) > 10 * SECOND).then_some(())
    });
    board.cli_ok("cancel_task", json!({"task_id": "a", "reason": "not wanted"}));
    assert_eq!(worker.tells("lost")["reason"], "it is cancelled");
    let (summary, _) = worker.ends();
    assert_eq!(
        (&summary["tries"], &board.task("a")["status"]),
        (&json!(1), &json!("cancelled")),
        "{summary}"
    );
}
