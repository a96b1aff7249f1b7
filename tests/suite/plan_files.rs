//! Files of plans that were changed after their import.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Board, Finished};

const PLAN: &str = "- [ ] Write the lexer\n- [ ] Write the parser\n";

fn run(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(arguments))
}

fn check(board: &Board) -> Value {
    let report = run(board, &["--json", "doctor"]).value();
    let checks = report["checks"].as_array().unwrap().clone();
    checks.into_iter().find(|check| check["name"] == "plan file").unwrap_or_default()
}

#[test]
fn changed_plan_is_told_by_status_doctor_and_work() {
    let board = Board::new();
    assert_eq!(check(&board), Value::Null, "a board without a plan has nothing to check");
    let file = board.base().join("plan.md");
    fs::write(&file, PLAN).unwrap();
    assert!(run(&board, &["plan", "import", "plan.md"]).status.success());
    assert_eq!(run(&board, &["--json", "status"]).value()["plan_files"], Value::Null);
    assert_eq!(check(&board)["verdict"], "ok");
    assert!(run(&board, &["work", "--workflow", "w", "--exec", "true"]).status.success());

    fs::write(&file, format!("{PLAN}- [ ] Write the printer\n")).unwrap();
    let version = &board.document()["plans"][0]["sha256"].as_str().unwrap()[..12].to_owned();
    let status = run(&board, &["--json", "status"]).value();
    let told = &status["plan_files"][0];
    assert_eq!(
        (&told["file"], &told["state"], &told["version"]),
        (&json!("plan.md"), &json!("changed"), &json!(version)),
        "{status}"
    );
    let text = run(&board, &["status"]).stdout;
    assert!(text.contains("plan.md has changed") && text.contains("plan import plan.md"), "{text}");
    let found = check(&board);
    assert!(
        found["verdict"] == "warn"
            && found["fix"].as_str().unwrap().contains("plan import plan.md"),
        "{found}"
    );
    let went_on = run(&board, &["work", "--workflow", "w", "--continue", "--exec", "true"]);
    let said = format!("{}{}", went_on.stdout, went_on.stderr);
    assert!(said.contains("plan.md has changed") && said.contains("plan import plan.md"), "{said}");
    // Written as one reads it: the command is right, and afterwards all is well.
    assert!(run(&board, &["plan", "import", "plan.md"]).status.success());
    assert_eq!(run(&board, &["--json", "status"]).value()["plan_files"], Value::Null);
    assert_eq!(check(&board)["verdict"], "ok");
}

#[test]
fn file_of_another_tool_is_told_only_when_it_has_changed() {
    let board = Board::new();
    let file = board.base().join("tasks.json");
    let tasks = |title: &str| {
        json!({"master": {"tasks": [{"id": 1, "title": title, "status": "pending"}]}}).to_string()
    };
    fs::write(&file, tasks("Write the lexer")).unwrap();
    assert!(run(&board, &["import", "task-master", "tasks.json"]).status.success());
    assert_eq!(run(&board, &["--json", "status"]).value()["plan_files"], Value::Null);
    fs::write(&file, tasks("Write the parser")).unwrap();
    assert_eq!(run(&board, &["--json", "status"]).value()["plan_files"][0]["state"], "changed");
}

#[test]
fn the_command_that_takes_a_changed_file_over_is_right_where_it_is_printed() {
    let board = Board::new();
    let sub = board.base().join("sub");
    fs::create_dir(&sub).unwrap();
    let file = board.base().join("my plan.md");
    fs::write(&file, PLAN).unwrap();
    assert!(run(&board, &["plan", "import", "my plan.md"]).status.success());
    fs::write(&file, format!("{PLAN}- [ ] Write the printer\n")).unwrap();
    let status =
        || board.finish(board.command().current_dir(&sub).args(["--json", "status"])).value();
    let command = status()["plan_files"][0]["command"].as_str().unwrap().to_owned();
    let words = shlex::split(&command).unwrap();
    let ran = board.finish(board.command().current_dir(&sub).args(&words[1..]));
    assert!(ran.status.success(), "{command}: {}", ran.stderr);
    assert_eq!(status()["plan_files"], Value::Null);
}

#[test]
fn a_file_that_lies_beside_the_board_alone_is_not_gone() {
    let board = Board::new();
    let project = board.base().join("project");
    let git = |words: &[&str]| {
        let ran = Command::new("git").args(words).current_dir(&project).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    fs::create_dir(&project).unwrap();
    git(&["init", "--quiet"]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "m",
    ]);
    git(&["worktree", "add", "--quiet", "../linked"]);
    fs::write(project.join("plan.md"), PLAN).unwrap();
    let here = |dir: &str, words: &[&str]| {
        let mut command = board.command();
        board.finish(
            command
                .env_remove("COORDINATION_DIR")
                .env("HOME", "/")
                .current_dir(board.base().join(dir))
                .args(words),
        )
    };
    assert!(here("project", &["plan", "import", "plan.md"]).status.success());
    assert_eq!(here("linked", &["--json", "status"]).value()["plan_files"], Value::Null);
    fs::remove_file(project.join("plan.md")).unwrap();
    assert_eq!(here("linked", &["--json", "status"]).value()["plan_files"][0]["state"], "gone");
}

#[test]
fn source_that_an_agent_names_is_not_read_outside_the_project() {
    for source in ["/etc/hostname", "../outside-of-the-project.md", "board/journal.db"] {
        let board = Board::new();
        board.cli_ok("import_plan", json!({"text": PLAN, "source": source}));
        let status = run(&board, &["--json", "status"]).value();
        assert_eq!(status["plan_files"], Value::Null, "{source}: {status}");
    }
}
