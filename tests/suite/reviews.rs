//! Review through the binary: tasks whose results wait for a reviewer, over MCP and on the command
//! line.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Board, Client, Finished, PATIENCE, until};

fn run(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(arguments))
}

/// What a command that succeeds prints.
#[track_caller]
fn says(board: &Board, arguments: &[&str]) -> String {
    let finished = run(board, arguments);
    assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

/// What a refused command prints.
#[track_caller]
fn refused(board: &Board, arguments: &[&str]) -> String {
    let finished = run(board, arguments);
    assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stdout);
    finished.stderr
}

/// A board with a task under review and one that waits for it, and the agent that did the work.
fn worked(review: &str) -> (Board, Client) {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("w1");
    worker.ok("create_task", json!({"description": "Lexer", "id": "t", "review": review}));
    worker.ok("create_task", json!({"description": "Parser", "id": "p", "dependencies": ["t"]}));
    worker.ok("claim_task", json!({"agent_id": "w1"}));
    let done = json!({"agent_id": "w1", "task_id": "t", "output": "names", "branch": "work/t"});
    let reply = worker.ok("complete_task", done);
    assert_eq!(reply["review"], review, "{reply}");
    (board, worker)
}

#[test]
fn over_mcp_a_review_outlives_its_worker_is_sent_back_and_approved() {
    let (board, mut worker) = worked("required");
    let own = worker.call("approve_task", json!({"agent_id": "w1", "task_id": "t"}));
    assert!(own.is_error && own.text.contains("another has to approve it"), "{}", own.text);
    worker.kill();
    let mut other = board.mcp();
    other.register("w2");
    // The worker's process is found dead, and the review stays.
    until(PATIENCE, "the dead process is noticed", || {
        let claim = other.ok("claim_task", json!({"agent_id": "w2"}));
        assert_eq!(
            (&claim["verdict"], &claim["in_review"]),
            (&json!("wait"), &json!(1)),
            "{claim}"
        );
        let gone = board.events().iter().any(|one| one.event.kind() == "participant_gone");
        gone.then_some(())
    });
    assert_eq!(board.task("t")["status"], "review");
    let no = json!({"agent_id": "w2", "task_id": "t", "reason": "keywords are missing"});
    assert_eq!(other.ok("reject_task", no.clone())["status"], "available");
    assert_eq!(other.ok("reject_task", no)["already"], true);
    let claim = other.ok("claim_task", json!({"agent_id": "w2"}));
    let last = &claim["handoff"]["last_attempt"];
    assert_eq!(
        (&claim["task"]["id"], &last["error"], &last["rejected_by"], &last["branch"]),
        (&json!("t"), &json!("keywords are missing"), &json!("w2"), &json!("work/t")),
        "{claim}"
    );
    other.ok("complete_task", json!({"agent_id": "w2", "task_id": "t", "output": "all"}));
    other.call("claim_task", json!({"agent_id": "w2", "task_id": "p"}));
    assert_eq!(board.task("p")["status"], "available");
    let mut third = board.mcp();
    third.register("w3");
    let yes = json!({"agent_id": "w3", "task_id": "t", "comment": "good"});
    assert_eq!(third.ok("approve_task", yes.clone())["status"], "done");
    assert_eq!(third.ok("approve_task", yes)["already"], true);
    assert_eq!(third.ok("claim_task", json!({"agent_id": "w3"}))["task"]["id"], "p");
    drop((other, third));
    board.assert_file_is_the_replay();
}

#[test]
fn a_waiting_claim_gets_the_dependent_as_soon_as_its_task_is_approved() {
    let (board, mut worker) = worked("by leader");
    let waiting = worker.wait_in_claim("w1");
    says(&board, &["approve", "t"]);
    let claim = worker.reply(waiting).expect("an answer").ok();
    assert_eq!(claim["task"]["id"], "p", "{claim}");
}

#[test]
fn a_person_hears_of_reviews_and_decides_them() {
    let board = Board::new();
    for id in ["a", "b", "c"] {
        says(&board, &["add", id, "--id", id, "--review"]);
    }
    says(&board, &["add", "d", "--id", "d", "--review=leader"]);
    says(&board, &["--agent", "w1", "call", "register_agent", r#"{"role": "worker"}"#]);
    for id in ["a", "b", "c", "d"] {
        says(&board, &["--agent", "w1", "claim", id]);
        let done = says(&board, &["--agent", "w1", "complete", id, "made"]);
        assert!(done.contains("waits for review"), "{done}");
    }
    let status = says(&board, &["status"]);
    for part in ["4 in review", "approve 1, reject 1 REASON"] {
        assert!(status.contains(part), "no {part:?} in {status}");
    }
    assert_eq!(
        says(&board, &["approve", "a", "b", "-m", "both fine"]),
        "approved #1 a\napproved #2 b\n"
    );
    assert_eq!(says(&board, &["approve", "a"]), "approved before: #1 a\n");
    assert_eq!(says(&board, &["reject", "c", "no tests"]), "sent back #3 c\n");
    assert_eq!(says(&board, &["reject", "c", "no tests"]), "sent back before: #3 c\n");
    let shown = says(&board, &["show", "c"]);
    assert!(
        shown.contains("rejected: no tests") && shown.contains("sent back by human"),
        "{shown}"
    );
    assert!(refused(&board, &["approve", "c"]).contains("it has no result yet"));
    assert!(refused(&board, &["--agent", "w1", "approve", "d"]).contains("did the work"));
    says(&board, &["--agent", "w2", "call", "register_agent", r#"{"role": "worker"}"#]);
    assert!(refused(&board, &["--agent", "w2", "approve", "d"]).contains("reviewed by a leader"));
    // All or none.
    assert!(refused(&board, &["approve", "d", "c"]).contains("#3"));
    assert_eq!(board.task("d")["status"], "review");
    let json: Value = serde_json::from_str(&says(&board, &["--json", "approve", "d"])).unwrap();
    assert_eq!((&json["success"], &json["status"]), (&json!(true), &json!("done")));
    assert!(says(&board, &["approve"]).contains("no task waits for review"));
    assert_eq!(run(&board, &["add", "x", "--review=king"]).status.code(), Some(2));
}

#[test]
fn the_board_s_setting_holds_where_nothing_else_is_said() {
    let board = Board::with_policy("review = \"by leader\"");
    says(&board, &["add", "d", "--id", "t"]);
    says(&board, &["--agent", "w1", "call", "register_agent", r#"{"role": "worker"}"#]);
    says(&board, &["--agent", "w1", "claim", "t"]);
    says(&board, &["--agent", "w1", "complete", "t", "made"]);
    assert_eq!(board.task("t")["status"], "review");
    assert!(refused(&board, &["add", "x", "--review=none"]).contains("needs here (by leader)"));
    says(&board, &["approve", "t"]);
    assert_eq!(board.task("t")["status"], "done");
    fs::write(board.file("config.toml"), "[policy]\nreview = \"by king\"\n").unwrap();
    let error = run(&board, &["status"]).stderr;
    assert!(error.contains("by leader") && error.contains("config.toml"), "{error}");
}

#[test]
fn work_ends_when_only_reviewers_are_left_and_says_how_many_wait() {
    let board = Board::new();
    for id in ["a", "b"] {
        says(&board, &["add", id, "--id", id, "--review"]);
    }
    says(&board, &["add", "behind", "--id", "behind", "--after", "a"]);
    let ended = run(&board, &["work", "--exec", "true", "--agents", "2", "--workflow", "w"]);
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    for part in ["what is left waits for review", "1 blocked", "2 wait for review"] {
        assert!(ended.stdout.contains(part), "no {part:?} in {}{}", ended.stdout, ended.stderr);
    }
    says(&board, &["approve", "a", "b"]);
    let go_on = ["work", "--exec", "true", "--workflow", "w", "--continue"];
    let ended = run(&board, &go_on);
    assert!(ended.stdout.contains("nothing is left to do"), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(board.task("behind")["status"], "done");
}

#[test]
fn a_review_survives_a_restore_and_no_hand_edit_ends_it() {
    let (board, worker) = worked("required");
    drop(worker);
    let name = board.cli_ok("create_snapshot", json!({}))["snapshot"].clone();
    says(&board, &["approve", "t"]);
    board.cli_ok("restore_snapshot", json!({"snapshot": name}));
    assert_eq!(board.task("t")["status"], "review");
    let edited = fs::read_to_string(board.file("mcp-state.json")).unwrap();
    let edited = edited.replace("\"status\": \"review\"", "\"status\": \"done\"");
    fs::write(board.file("mcp-state.json"), edited).unwrap();
    says(&board, &["status"]);
    assert_eq!(board.task("t")["status"], "review", "approve_task decides");
    says(&board, &["approve", "t"]);
    assert_eq!(board.task("t")["status"], "done");
    board.assert_file_is_the_replay();
}
