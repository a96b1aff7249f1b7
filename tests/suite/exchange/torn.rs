//! Files that are half there: cut, or written while they are read.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{reply, run, statuses, write};
use crate::harness::{Board, until};

#[test]
fn files_of_programs_that_are_cut_anywhere_are_refused_and_change_nothing() {
    let tasks = json!({"master": {"tasks": [
        {"id": 1, "title": "Dig", "status": "done", "dependencies": [], "subtasks": []},
        {"id": 2, "title": "Sow", "status": "pending", "dependencies": [1], "subtasks": []},
    ]}});
    let item = |id: &str| json!({"id": id, "type": "Phase", "title": id, "status": "Planned"});
    let backlog = json!({"backlog": [item("P1"), item("P2")]});
    for (format, text) in [("task-master", tasks.to_string()), ("pipeline", backlog.to_string())] {
        let board = Board::new();
        write(&board, "in.json", &text);
        reply(&board, &["import", format, "in.json"]);
        let (before, events) = (statuses(&board), board.events().len());
        for cut in 1..8 {
            write(&board, "in.json", &text[..text.len() * cut / 8]);
            let ran = run(&board, &["import", format, "in.json"]);
            assert!(!ran.status.success(), "{format}: {}", ran.stdout);
            assert!(ran.stderr.contains("in.json"), "{}", ran.stderr);
            let found = run(&board, &["import", "in.json"]);
            assert!(!found.status.success(), "{format}: {}", found.stdout);
        }
        assert_eq!((statuses(&board), board.events().len()), (before, events), "{format}");
    }
}

#[test]
fn a_checklist_that_was_cut_is_the_same_plan_again_once_it_is_whole() {
    let board = Board::new();
    let all: String = (1..=30)
        .map(|number| format!("- [{}] Work {number}\n", if number % 3 == 0 { 'x' } else { ' ' }))
        .collect();
    let standing = || {
        let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
        let tasks = tasks.as_array().unwrap().clone();
        tasks.into_iter().map(|task| json!([task["id"], task["title"], task["status"]])).collect()
    };
    write(&board, "PLAN.md", &all);
    reply(&board, &["import", "PLAN.md"]);
    let before: Vec<_> = standing();
    for cut in [200, 52, 11] {
        write(&board, "PLAN.md", &all[..cut]);
        let said = reply(&board, &["import", "PLAN.md"]);
        assert!(!said["obsolete"].as_array().unwrap().is_empty(), "it is said: {said}");
    }
    write(&board, "PLAN.md", &all);
    reply(&board, &["import", "PLAN.md"]);
    let mut after: Vec<_> = standing();
    after.retain(|task| task[2] != "obsolete");
    assert_eq!(after, before);
}

#[test]
fn a_file_that_something_keeps_writing_is_refused_by_its_name() {
    let board = Board::new();
    let plan = format!("- [ ] Work\n{}", "words below it\n".repeat(200_000));
    let path = write(&board, "PLAN.md", &plan);
    let is_over = AtomicBool::new(false);
    let ran = thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(b"\n").unwrap();
            }
        });
        // The writer may stand still for as long as a read takes.
        let ran = until(Duration::from_secs(60), "an import while it is written", || {
            Some(run(&board, &["import", "PLAN.md", "--dry-run"]))
                .filter(|ran| !ran.status.success())
        });
        is_over.store(true, Ordering::Relaxed);
        ran
    });
    assert!(
        ran.stderr.contains("cannot read PLAN.md: something keeps writing it; try again"),
        "{}",
        ran.stderr
    );
    assert!(!board.base().join("board/journal.db").exists(), "there is no board");
    fs::write(&path, "- [ ] Work\n").unwrap();
    assert_eq!(reply(&board, &["import", "PLAN.md"])["items"], 1);
}
