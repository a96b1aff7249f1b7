//! Phases, milestones, tasks and subtasks through the real program.

use callboard::state::id::TaskId;
use callboard::state::task::TaskStatus;
use serde_json::{Value, json};

use crate::harness::{Board, Client, Finished};

/// A board with two phases, the second of which depends on the first.
fn board() -> Board {
    let board = Board::new();
    let task = |id: &str, path: &str, on: &[&str]| json!({"id": id, "description": id, "path": path, "dependencies": on});
    let tasks = [
        task("p1", "P1", &[]),
        task("m1", "P1.M1", &[]),
        task("a", "P1.M1.T1", &[]),
        task("b", "P1.M1.T2", &["a"]),
        task("p2", "P2", &["p1"]),
        task("c", "P2.M1", &[]),
    ];
    board.cli_ok("create_tasks_batch", json!({"tasks": tasks}));
    board
}

fn run(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(arguments))
}

#[test]
fn tree_of_a_task_has_its_parts_or_what_it_is_a_part_of() {
    let board = board();
    let tree = |name: &str| run(&board, &["tree", name]).stdout;
    let of_the_first =
        "P1.M1 #2 open 0 % (0 of 2) m1\n  P1.M1.T1 #3 ready a\n  P1.M1.T2 #4 blocked by #3 b\n";
    for name in ["2", "#2", "m1", "P1.M1", "p1.m1", "T2"] {
        assert_eq!(tree(name), of_the_first, "{name}");
    }
    for name in ["3", "b", "P1.M1.T2"] {
        assert_eq!(tree(name), of_the_first, "{name} has no parts");
    }
    assert_eq!(tree("p2"), "P2 #5 open 0 % (0 of 1) p2\n  P2.M1 #6 blocked by #1 c\n");
    let json = run(&board, &["--json", "tree", "4"]).value();
    let ids: Vec<_> =
        json["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m1", "a", "b"]);
    for name in ["99", "nonsense"] {
        let (refused, shown) = (run(&board, &["tree", name]), run(&board, &["show", name]));
        assert_eq!((refused.status.code(), &refused.stderr), (Some(1), &shown.stderr), "{name}");
    }
    run(&board, &["add", "alone"]);
    assert_eq!(tree("alone"), "#7 ready alone\n");
}

#[test]
fn the_tree_shows_how_far_everything_has_come() {
    let board = board();
    let mut client = Client::start(board.command().arg("mcp"));
    client.register("w1");
    let claim = client.ok("claim_task", json!({"agent_id": "w1"}));
    assert_eq!(claim["task"]["id"], "a");
    client.ok("complete_task", json!({"agent_id": "w1", "task_id": "a", "output": "made"}));
    let tree = run(&board, &["tasks", "--tree"]).stdout;
    let lines: Vec<_> = tree.lines().collect();
    assert_eq!(
        lines,
        [
            "P1 #1 in_progress 50 % (1 of 2) p1",
            "  P1.M1 #2 in_progress 50 % (1 of 2) m1",
            "    P1.M1.T1 #3 done a",
            "    P1.M1.T2 #4 ready b",
            "P2 #5 open 0 % (0 of 1) p2",
            "  P2.M1 #6 blocked by #1 c",
        ]
    );
    let by_path = run(&board, &["--json", "show", "P1.M1.T1"]).value();
    assert_eq!(by_path["task"]["id"], "a");
    let status = run(&board, &["status", "--all"]).stdout;
    assert!(status.contains("in_progress P1 p1: 50 % (1 of 2)"), "{status}");
    let counts = &board.document()["progress"];
    let counted = [&counts["counts"]["done"], &counts["counts"]["available"], &counts["percent"]];
    assert_eq!(counted, [&json!(1), &json!(2), &json!(33)], "those without parts");
    let status = run(&board, &["--json", "status"]).value();
    assert_eq!((&status["total_tasks"], &status["progress_percent"]), (&json!(3), &json!(33)));
    let explained = run(&board, &["explain", "c"]).stdout;
    assert!(explained.contains("waits for p1, as does all of P2"), "{explained}");
    assert!(explained.contains("`callboard explain p1`"), "{explained}");
    let explained = run(&board, &["explain", "p1"]).stdout;
    assert!(explained.contains("  `callboard claim --scope P1`\n"), "{explained}");
    let claim = client.ok("claim_task", json!({"agent_id": "w1"}));
    client.ok(
        "complete_task",
        json!({"agent_id": "w1", "task_id": claim["task"]["id"], "output": "made"}),
    );
    assert_eq!(
        client.ok("claim_task", json!({"agent_id": "w1"}))["task"]["id"],
        "c",
        "the barrier is open"
    );
    assert_eq!(board.replay().status_of(&TaskId::trusted("p1")), Some(TaskStatus::Done));
    board.assert_file_is_the_replay();
}

#[test]
fn a_parent_that_ends_in_one_process_is_done_in_all() {
    let board = board();
    let mut first = Client::start(board.command().arg("mcp"));
    let mut second = Client::start(board.command().arg("mcp"));
    first.register("w1");
    second.register("w2");
    let waiting =
        second.send("claim_task", json!({"agent_id": "w2", "scope": "P2", "wait_seconds": 50}));
    for _ in 0..2 {
        let claim = first.ok("claim_task", json!({"agent_id": "w1", "scope": "P1"}));
        first.ok(
            "complete_task",
            json!({"agent_id": "w1", "task_id": claim["task"]["id"], "output": "made"}),
        );
    }
    let claimed = second.reply(waiting).expect("the process lives").ok();
    assert_eq!(claimed["task"]["id"], "c", "{claimed}");
}

#[test]
fn a_queue_in_which_nothing_can_move_says_why_and_what_would_free_it() {
    let board = board();
    let mut client = Client::start(board.command().arg("mcp"));
    client.register("w1");
    client.ok("claim_task", json!({"agent_id": "w1"}));
    client.ok(
        "fail_task",
        json!({"agent_id": "w1", "task_id": "a", "error": "broken", "retryable": false}),
    );
    let status = run(&board, &["status"]).stdout;
    assert!(status.contains("a is failed, and 2 wait for it"), "{status}");
    assert!(status.contains("retry 3"), "{status}");
    let doctor = run(&board, &["doctor"]).stdout;
    assert!(
        doctor.contains("warn graph: ") && doctor.contains("nothing can move; a blocks 2"),
        "{doctor}"
    );
    let explained = run(&board, &["explain", "b"]).stdout;
    assert!(explained.contains("it waits for a, which has failed"), "{explained}");
    assert_eq!(run(&board, &["retry", "--scope", "P1"]).status.code(), Some(0));
    assert!(run(&board, &["doctor"]).stdout.contains("ok   graph: 1 ready"));
}

#[test]
fn work_that_gets_parts_is_done_by_them_alone_and_frees_nothing_before() {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("ada");
    let create = |id: &str, more: Value| {
        let mut task = json!({"id": id, "description": id});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        board.cli_ok("create_task", task)
    };
    create("whole", json!({"path": "P1.M1.T1"}));
    create("behind", json!({"dependencies": ["whole"]}));
    worker.ok("claim_task", json!({"agent_id": "ada", "task_id": "whole"}));
    create("part", json!({"path": "P1.M1.T1.S1"}));
    let made = json!({"agent_id": "ada", "task_id": "whole", "output": "made"});
    assert_eq!(worker.call("complete_task", made).code(), "is_parent");
    let behind = json!({"agent_id": "ada", "task_id": "behind"});
    assert_eq!(worker.call("claim_task", behind.clone()).code(), "not_ready");
    let whole = worker.ok("get_task", json!({"task_id": "whole"}));
    assert_eq!(whole["parts"]["status"], "available");
    let listed = worker.ok("get_all_tasks", json!({"brief": true}));
    assert_eq!(listed["tasks"][0]["parts"], "available");
    worker.ok("claim_task", json!({"agent_id": "ada"}));
    let part = json!({"agent_id": "ada", "task_id": "part", "output": "made"});
    worker.ok("complete_task", part);
    assert_eq!(board.task("whole")["status"], "done");
    worker.ok("claim_task", behind);
    drop(worker);
    board.assert_file_is_the_replay();
}

#[test]
fn an_agent_that_divides_its_task_is_offered_the_first_part_next() {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("ada");
    let task = json!({"id": "whole", "description": "whole", "path": "P1"});
    worker.ok("create_task", task);
    worker.ok("claim_task", json!({"agent_id": "ada"}));
    worker.ok("reserve_files", json!({"agent_id": "ada", "files": ["src/a.rs"]}));
    let parts =
        ["P1.M1", "P1.M2"].map(|path| json!({"id": path, "description": path, "path": path}));
    worker.ok("create_tasks_batch", json!({"tasks": parts}));
    let offered = worker.ok("claim_task", json!({"agent_id": "ada"}));
    assert_eq!((&offered["task"]["id"], &offered["already"]), (&json!("P1.M1"), &json!(true)));
    let document = board.document();
    assert_eq!(document["reservations"][0]["task"], "P1.M1");
    let part = json!({"agent_id": "ada", "task_id": "P1.M1", "output": "made"});
    worker.ok("complete_task", part);
    assert_eq!(worker.ok("claim_task", json!({"agent_id": "ada"}))["task"]["id"], "P1.M2");
}

#[test]
fn a_retried_task_is_completed_beside_what_came_below_it_while_it_had_failed() {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("ada");
    board.cli_ok("create_task", json!({"id": "whole", "description": "d", "path": "P1"}));
    let whole = json!({"agent_id": "ada", "task_id": "whole"});
    worker.ok("claim_task", whole.clone());
    let failed = json!({"agent_id": "ada", "task_id": "whole", "error": "x", "retryable": false});
    worker.ok("fail_task", failed);
    board.cli_ok("create_task", json!({"id": "other", "description": "d", "path": "P1.M1"}));
    board.cli_ok("retry_task", json!({"task_id": "whole"}));
    worker.ok("claim_task", whole);
    let made = json!({"agent_id": "ada", "task_id": "whole", "output": "made"});
    worker.ok("complete_task", made);
    assert_eq!(board.task("whole")["status"], "done");
    assert_eq!(board.task("other")["status"], "available");
    drop(worker);
    board.assert_file_is_the_replay();
}
