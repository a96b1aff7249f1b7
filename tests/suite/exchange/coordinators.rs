use serde_json::{Value, json};

use super::{refusal, reply, write};
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
        let items: Vec<String> = (0..levels).map(|level| part.replace("LEVEL", &level.to_string())).collect();
        format!("{begin}[{}{}]}}", items.concat(), "]}".repeat(levels))
    };
    let task_master = r#"{"id":1,"title":"t","subtasks":["#;
    let pipeline = r#"{"id":"LEVEL","type":"Phase","title":"t","milestones":["#;
    for levels in [101, 20_000] {
        let text = nested(r#"{"master":{"tasks":"#, task_master, levels) + "}";
        write(&board, ".taskmaster/tasks/tasks.json", &text);
        let refused = refusal(&board, &["import", "task-master", "."]);
        assert!(refused.contains("tasks.json line 1: it is nested deeper than 100 levels"), "{refused}");
        write(&board, "deep.json", &nested(r#"{"backlog":"#, pipeline, levels));
        let refused = refusal(&board, &["import", "pipeline", "deep.json"]);
        assert!(refused.contains("it is not pipeline"), "{refused}");
    }
    let indented: Vec<String> = (0..101).map(|level| format!("{}- [ ] {level}. Task", " ".repeat(level))).collect();
    write(&board, ".kiro/specs/x/tasks.md", &indented.join("\n"));
    let refused = refusal(&board, &["import", "kiro", ".kiro/specs/x/tasks.md"]);
    assert!(refused.contains("tasks.md line 101: it is nested deeper than 100 levels"), "{refused}");

    let chain = |levels: usize| -> Vec<Value> {
        (0..levels).map(|level| with(task(&format!("t{level}")), "parent_id", format!("t{}", level + 1))).collect()
    };
    write(&board, "state.json", &state(&chain(3_000)));
    let first = reply(&board, &["import", "option-b", "state.json"]);
    assert_eq!(first["items"], 3_000);
    let notes = first["report"]["notes"].to_string();
    assert!(notes.contains("it is no part of t2900: that is a part of it, or is nested too deeply"), "{notes:.300}");
}
