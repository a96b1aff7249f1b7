//! Files of other tools through the real program: imported, exported, compared, and imported again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Board, Finished};

mod checklists;
mod coordinators;
mod formats;
mod kept;
mod models;
mod other_tools;
mod random;
mod task_master;
mod tools;
mod torn;
mod unread;

/// Runs a command in the board's base directory.
pub(crate) fn run(board: &Board, words: &[&str]) -> Finished {
    board.finish(board.command().current_dir(board.base()).args(words))
}

/// The same, for its reply.
#[track_caller]
pub(crate) fn reply(board: &Board, words: &[&str]) -> Value {
    let finished = run(board, &[&["--json"], words].concat());
    assert!(finished.status.success(), "{words:?}: {} {}", finished.stdout, finished.stderr);
    finished.value()
}

/// What a refused command says.
#[track_caller]
pub(crate) fn refusal(board: &Board, words: &[&str]) -> String {
    let finished = run(board, words);
    assert!(!finished.status.success(), "{words:?}: {}", finished.stdout);
    let is_import =
        |event: &callboard::state::event::Recorded| event.event.kind() == "plan_imported";
    let has_board = board.base().join("board/journal.db").exists();
    assert!(
        !has_board || !board.events().iter().any(is_import),
        "{words:?} has imported something"
    );
    finished.stderr
}

/// Writes a file below the board's base directory.
pub(crate) fn write(board: &Board, name: &str, text: &str) -> PathBuf {
    let path = board.base().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// The board's tasks by their ids in the file that they came from.
pub(crate) fn by_source(board: &Board, id: &str) -> Value {
    let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let found = tasks.as_array().unwrap().iter().find(|task| task["planned"]["source"]["id"] == id);
    found.unwrap_or_else(|| panic!("no task came from {id}: {tasks:#}")).clone()
}

/// Statuses of the board's tasks by their ids in the file, in the order of their paths.
pub(crate) fn statuses(board: &Board) -> Vec<(String, String)> {
    let mut tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let tasks = tasks.as_array_mut().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tasks.sort_by_key(|task| text(&task["path"]));
    tasks
        .iter()
        .map(|task| (text(&task["planned"]["source"]["id"]), text(&task["status"])))
        .collect()
}

/// Texts of the files below a directory, by their names there.
pub(crate) fn texts(directory: &Path) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
                texts.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

/// What an export in a form of callboard's own must bring back, by title.
fn essence(board: &Board) -> BTreeMap<String, Value> {
    let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let tasks = tasks.as_array().unwrap();
    let title = |task: &Value| task["title"].as_str().unwrap_or_default().to_owned();
    let title_of = |id: &Value| tasks.iter().find(|task| task["id"] == *id).map(title);
    let of_task = |task: &Value| {
        let waits: Vec<_> = task["dependencies"].as_array().unwrap().iter().map(title_of).collect();
        let fields = ["description", "status", "priority", "tags"].map(|name| task[name].clone());
        json!([fields, waits])
    };
    tasks.iter().map(|task| (title(task), of_task(task))).collect()
}

#[test]
fn tasks_of_a_board_without_a_plan_are_exported_as_one() {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "Port the parser"}));
    for format in ["markdown", "json"] {
        let told = refusal(&board, &["export", format]);
        assert!(told.contains("the board has no tasks; `callboard add TEXT` adds one"), "{told}");
    }
    let add = |task: Value| board.cli_ok("create_task", task);
    add(
        json!({"id": "lexer", "title": "Lexer", "description": "Write the lexer\n\n- fast", "priority": 1}),
    );
    add(
        json!({"id": "parser", "title": "Parser", "description": "Write it", "dependencies": ["lexer"]}),
    );
    add(json!({"id": "p3", "title": "Printer", "description": "A part", "path": "P3"}));
    add(
        json!({"id": "m1", "title": "Layout", "description": "Lines", "path": "P3.M1", "tags": ["late"]}),
    );
    add(json!({"id": "gone", "title": "Gone", "description": "Not wanted"}));
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "a", "task_id": "lexer"}));
    board.cli_ok("complete_task", json!({"agent_id": "a", "task_id": "lexer", "output": "done"}));
    board.cli_ok("cancel_task", json!({"task_id": "gone"}));
    let expected = essence(&board);
    for (format, name) in [("markdown", "PLAN.md"), ("json", "plan.json")] {
        let made = run(&board, &["export", format]).stdout;
        let other = Board::new();
        write(&other, name, &made);
        reply(&other, &["import", name]);
        assert_eq!(essence(&other), expected, "{format}: {made}");
        // Where there is a plan, that is exported.
        other.cli_ok("create_task", json!({"title": "Beside", "description": "of no plan"}));
        assert!(!run(&other, &["export", format]).stdout.contains("Beside"), "{format}");
    }
}
