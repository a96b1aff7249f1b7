//! Lines that look like work and are in no task: a board is not finished without them.

use serde_json::{Value, json};

use super::{reply, run, write};
use crate::harness::Board;

const PLAN: &str = "\
# Shop

## Tasks
- [ ] Write the basket

## Ideas
- A wish list
- Gift cards

## Notes
- Ann knows the old shop
";

/// Does all tasks that are open.
fn work(board: &Board) {
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "leader"}));
    loop {
        let claimed = claim(board);
        let Some(task) = claimed["task"]["id"].as_str() else { return };
        let given = json!({"agent_id": "ada", "task_id": task, "output": "made"});
        board.cli_ok("complete_task", given);
    }
}

fn claim(board: &Board) -> Value {
    board.cli("claim_task", json!({"agent_id": "ada"})).value()
}

#[test]
fn no_verdict_says_finished_while_lines_that_look_like_work_are_in_no_task() {
    let board = Board::new();
    write(&board, "PLAN.md", PLAN);
    let shown = run(&board, &["import", "PLAN.md"]).stdout;
    assert!(shown.contains("2 lines may be work and are in no task"), "{shown}");
    assert!(shown.contains("--lists makes") && shown.contains("--lists=false says"), "{shown}");
    assert_eq!(reply(&board, &["import", "PLAN.md"])["unread"], 2);
    assert!(!run(&board, &["status"]).stdout.contains("in no task"), "there is work to do first");
    work(&board);
    let why = claim(&board);
    assert_eq!(why["verdict"], "unread", "{why}");
    let message = why["message"].as_str().unwrap();
    assert!(message.contains("2 lines of PLAN.md that look like work are in no task"), "{why}");
    assert!(why["next"].as_str().unwrap().contains("lists"), "{why}");
    let status = board.cli_ok("get_status", json!({}));
    assert_eq!(status["unread"], json!([{"plan": "PLAN.md", "file": "PLAN.md", "lines": 2}]));
    let shown = run(&board, &["status"]).stdout;
    assert!(!shown.contains("all is done"), "{shown}");
    assert!(shown.contains("lines of the plan are in no task"), "{shown}");
    assert!(shown.contains("import PLAN.md --lists"), "{shown}");
    let worked = run(&board, &["work", "--exec", "true"]);
    let told = format!("{}{}", worked.stdout, worked.stderr);
    assert!(told.contains("2 lines of PLAN.md"), "{told}");
    // A part of the board can be finished.
    let part = board.cli("claim_task", json!({"agent_id": "ada", "scope": "P1"})).value();
    assert_eq!(part["verdict"], "finished", "{part}");
}

#[test]
fn entries_that_are_taken_or_said_to_be_no_work_keep_nothing_open() {
    let board = Board::new();
    write(&board, "PLAN.md", PLAN);
    reply(&board, &["import", "PLAN.md", "--lists"]);
    work(&board);
    assert_eq!(claim(&board)["verdict"], "finished");

    let board = Board::new();
    write(&board, "PLAN.md", PLAN);
    reply(&board, &["import", "PLAN.md"]);
    work(&board);
    assert_eq!(claim(&board)["verdict"], "unread");
    let said = reply(&board, &["import", "PLAN.md", "--lists=false"]);
    assert_eq!((&said["unread"], &said["kept"]), (&Value::Null, &said["items"]), "{said}");
    assert_eq!(claim(&board)["verdict"], "finished");
    assert!(run(&board, &["status"]).stdout.contains("all is done"));
    assert_eq!(reply(&board, &["import", "PLAN.md"])["unchanged"], true, "it was said once");
    write(&board, "PLAN.md", &format!("{PLAN}\n## More ideas\n- Vouchers\n"));
    reply(&board, &["import", "PLAN.md"]);
    assert_eq!(claim(&board)["verdict"], "finished", "it is kept for later versions");
}

#[test]
fn what_stands_below_an_item_or_is_no_work_is_read_with_it() {
    for text in [
        "## Phase 1\n- [ ] Dig\n\n| do | by |\n|---|---|\n| Sow | ann |\n",
        "# Shop\n- Fast\n\n## Goals\n- Small\n\n## Tasks\n- [ ] Dig\n\n## References\n- notes.txt\n",
        "## Tasks\n- [ ] Dig\n\n## Parts\n\n| part | made of |\n|---|---|\n| hull | oak |\n",
    ] {
        let board = Board::new();
        write(&board, "PLAN.md", text);
        reply(&board, &["import", "PLAN.md"]);
        work(&board);
        assert_eq!(claim(&board)["verdict"], "finished", "{text}");
    }
}

#[test]
fn entries_without_a_box_in_files_of_other_tools_count_too() {
    for (format, path) in
        [("openspec", "openspec/changes/shop/tasks.md"), ("kiro", ".kiro/specs/shop/tasks.md")]
    {
        let board = Board::new();
        write(
            &board,
            path,
            "# Plan\n\n- Decide on the name\n\n## 1. Basket\n\n- [ ] 1.1 Write it\n",
        );
        let said = reply(&board, &["import", format, path]);
        assert_eq!(said["unread"], 1, "{format}: {said}");
        let verified = run(&board, &["verify", format, path]);
        assert!(verified.stdout.contains("1 line of the file"), "{format}: {}", verified.stdout);
        work(&board);
        assert_eq!(claim(&board)["verdict"], "unread", "{format}");
        reply(&board, &["import", format, path, "--lists=false"]);
        assert_eq!(claim(&board)["verdict"], "finished", "{format}");
    }
}
