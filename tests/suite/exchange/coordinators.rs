use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::{by_source, refusal, reply, run, texts, write};
use crate::harness::Board;

fn task(id: &str) -> Value {
    json!({"id": id, "description": format!("Task {id}"), "status": "available"})
}

fn with(mut task: Value, field: &str, value: impl Into<Value>) -> Value {
    task[field] = value.into();
    task
}

fn state(tasks: &[Value]) -> String {
    json!({"goal": "g", "tasks": tasks, "agents": {}, "discoveries": []}).to_string()
}

#[test]
fn items_that_are_nested_too_deeply_are_named_and_fill_no_stack() {
    let board = Board::new();
    let nested = |begin: &str, part: &str, levels: usize| {
        let name = |level: usize| *["milestones", "tasks"].get(level).unwrap_or(&"subtasks");
        let item =
            |level: usize| part.replace("LEVEL", &level.to_string()).replace("PARTS", name(level));
        format!("{begin}[{}{}]}}", (0..levels).map(item).collect::<String>(), "]}".repeat(levels))
    };
    let task_master = r#"{"id":1,"title":"t","subtasks":["#;
    let pipeline = r#"{"id":"LEVEL","type":"Phase","title":"t","PARTS":["#;
    for levels in [70, 100, 101, 20_000] {
        let text = nested(r#"{"master":{"tasks":"#, task_master, levels) + "}";
        write(&board, ".taskmaster/tasks/tasks.json", &text);
        write(&board, "deep.json", &nested(r#"{"backlog":"#, pipeline, levels));
        for (format, path, file) in
            [("task-master", ".", "tasks.json"), ("pipeline", "deep.json", "deep.json")]
        {
            let ran = run(&board, &["import", format, path, "--dry-run"]);
            let said = format!("{file} line 1: it is nested deeper than 100 levels");
            assert_eq!(
                ran.stderr.contains(&said),
                levels > 100,
                "{levels} in {format}: {}",
                ran.stderr
            );
            assert_eq!(ran.status.success(), levels <= 100, "{levels} in {format}: {}", ran.stderr);
        }
    }
    let indented: Vec<String> =
        (0..101).map(|level| format!("{}- [ ] {level}. Task", " ".repeat(level))).collect();
    write(&board, ".kiro/specs/x/tasks.md", &indented.join("\n"));
    let refused = refusal(&board, &["import", "kiro", ".kiro/specs/x/tasks.md"]);
    assert!(
        refused.contains("tasks.md line 101: it is nested deeper than 100 levels"),
        "{refused}"
    );

    let chain = |levels: usize| -> Vec<Value> {
        (0..levels)
            .map(|level| with(task(&format!("t{level}")), "parent_id", format!("t{}", level + 1)))
            .collect()
    };
    write(&board, "state.json", &state(&chain(3_000)));
    let first = reply(&board, &["import", "option-b", "state.json"]);
    assert_eq!(first["items"], 3_000);
    let notes = first["report"]["notes"].to_string();
    assert!(
        notes.contains("not put below t2900: that is a part of it, or is nested too deeply"),
        "{notes:.300}"
    );
}

#[test]
fn items_of_several_files_with_the_same_ids_are_written_with_an_id_each() {
    for (format, name, text) in [
        ("csv", "tasks.csv", "id,title,depends\n1,First,\n2,Second,1\n".to_owned()),
        (
            "beads",
            "issues.jsonl",
            "{\"id\":\"1\",\"title\":\"First\",\"status\":\"open\",\"priority\":1}\n\
             {\"id\":\"2\",\"title\":\"Second\",\"status\":\"open\",\"priority\":1,\
             \"dependencies\":[{\"issue_id\":\"2\",\"depends_on_id\":\"1\",\"type\":\"blocks\"}]}\n"
                .to_owned(),
        ),
        (
            "option-b",
            "state.json",
            state(&[task("1"), with(task("2"), "dependencies", json!(["1"]))]),
        ),
    ] {
        let board = Board::new();
        for directory in ["a", "b"] {
            let path = format!("{directory}/{name}");
            write(&board, &path, &text);
            reply(&board, &["import", format, &path]);
        }
        reply(&board, &["export", format, "all"]);
        let other = Board::new();
        write(&other, "all", &fs::read_to_string(board.base().join("all")).unwrap());
        assert_eq!(reply(&other, &["import", format, "all"])["items"], 4, "{format}");
        let tasks = other.cli_ok("get_all_tasks", json!({"limit": 10}))["tasks"].take();
        let waits = tasks
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|task| task["dependencies"].as_array().unwrap());
        let waits: BTreeSet<&str> = waits.map(|on| on.as_str().unwrap()).collect();
        assert_eq!(waits.len(), 2, "{format}: each waits for the one of its own file");
    }
}

#[test]
fn a_directory_whose_tasks_file_has_lists_of_agents_is_read() {
    let board = Board::new();
    let file =
        json!({"tasks": [task("t1")], "agents": ["x"], "discoveries": "none", "owner": "ann"});
    write(&board, "in/tasks.json", &file.to_string());
    let agents = json!({"agents": [{"id": "a1", "role": "specialist", "metrics": {"speed": 2}, "model": "m"}]});
    write(&board, "in/agents.json", &agents.to_string());
    let report = reply(&board, &["import", "option-a", "in"])["report"].take();
    assert_eq!(report["left_out"]["agents in tasks.json (they have a file of their own)"], 1);
    assert_eq!((&report["kept"]["owner"], &report["kept"]["agents.model"]), (&json!(1), &json!(1)));
    reply(&board, &["export", "option-a", "out"]);
    let files = texts(&board.base().join("out"));
    let agents: Value = serde_json::from_str(&files["agents.json"]).unwrap();
    let agent = &agents["agents"][0];
    assert_eq!(
        (&agent["role"], &agent["metrics"]["speed"], &agent["model"]),
        (&json!("specialist"), &json!(2), &json!("m"))
    );
}

fn metadata(board: &Board, id: &str) -> Value {
    by_source(board, id)["context"]["metadata"].clone()
}

#[test]
fn what_a_board_names_and_does_not_have_is_kept_and_said() {
    let board = Board::new();
    let tasks = [
        with(task("t1"), "group_id", "g1"),
        with(task("t2"), "parent_id", "gone"),
        with(with(task("t3"), "parent_id", "t4"), "tags", json!(["a"])),
        with(task("t4"), "parent_id", "t3"),
        with(task("t5"), "group_id", "g2"),
    ];
    write(&board, "in/tasks.json", &json!({"tasks": tasks}).to_string());
    write(
        &board,
        "in/groups.json",
        &json!({"groups": [{"id": "g2", "name": "G", "task_ids": ["t5"]}]}).to_string(),
    );
    let found = "# Shared Discoveries\n\nImportant findings go here.\n\nWatch the lock.\n\n## One\n\nmore\n";
    write(&board, "in/context/discoveries.md", found);
    let report = reply(&board, &["import", "option-a", "in"])["report"].take();
    let notes = report["notes"].to_string();
    for part in [
        "not put below gone: no other item has that id",
        "not put below t4: that is a part of it",
        "no heading with ## is above it: Watch the lock.",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_eq!(
        (&metadata(&board, "t1")["group_id"], &metadata(&board, "t5")["group_id"]),
        (&json!("g1"), &Value::Null)
    );
    reply(&board, &["export", "option-a", "out"]);
    let written: Value =
        serde_json::from_str(&texts(&board.base().join("out"))["tasks.json"]).unwrap();
    let named = |id: &str, field: &str| {
        written["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id).unwrap()[field]
            .clone()
    };
    assert_eq!(
        (named("t1", "group_id"), named("t5", "group_id"), named("t2", "parent_id")),
        (json!("g1"), json!("g2"), json!("gone"))
    );
    assert_eq!(reply(&board, &["verify", "option-a", "out"])["differences"], json!([]));
}

#[test]
fn an_export_says_what_it_leaves_out_and_which_statuses_it_has_no_word_for() {
    let board = Board::new();
    let rich = json!({"id": "t1", "description": "d", "status": "available", "max_retries": 7, "timeout_minutes": 5,
        "estimated_duration": 30, "required_capabilities": "rust"});
    let off = json!({"id": "t2", "description": "e", "status": "cancelled"});
    write(&board, "in/tasks.json", &json!({"tasks": [rich, off]}).to_string());
    write(
        &board,
        "in/agents.json",
        &json!({"agents": [{"id": "a1", "role": "worker"}]}).to_string(),
    );
    write(&board, "in/context/discoveries.md", "# Shared\n\n## One\n\nmore\n");
    reply(&board, &["import", "option-a", "in"]);
    for format in ["csv", "beads", "task-master", "pipeline"] {
        let left_out = reply(&board, &["export", format, "out"])["report"]["left_out"].take();
        for field in [
            "agents",
            "discoveries",
            "estimated_minutes",
            "timeout_seconds",
            "max_attempts",
            "required_capabilities",
        ] {
            assert_eq!(left_out[field], 1, "{format}: {field}: {left_out}");
        }
        fs::remove_file(board.base().join("out")).unwrap();
    }
    let report = reply(&board, &["export", "option-b", "state.json"])["report"].take();
    assert_eq!(report["statuses"], json!({"cancelled is failed": 1}));
}

#[test]
fn a_fault_of_the_whole_names_what_was_imported() {
    let board = Board::new();
    write(&board, "in/tasks.json", &json!({"tasks": [task("t1")]}).to_string());
    write(&board, "in/master-plan.md", &"x".repeat(2 * 1024 * 1024));
    let refused = refusal(&board, &["import", "option-a", "in"]);
    assert!(refused.contains("in line 1: "), "{refused}");
}

#[test]
fn sections_of_discoveries_that_say_the_same_are_each_kept() {
    let board = Board::new();
    write(&board, "in/tasks.json", &json!({"tasks": [task("t1")]}).to_string());
    write(
        &board,
        "in/context/discoveries.md",
        "## One\n\nmore\n\n## One\n\nmore\n\n## One\n\nless\n",
    );
    reply(&board, &["import", "option-a", "in"]);
    let found = board.cli_ok("get_discoveries", json!({}));
    assert_eq!(found["discoveries"].as_array().unwrap().len(), 3, "{found}");
}
