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
    let pipeline = |levels: usize| {
        let phase = r#"{"id":"P","type":"Phase","title":"t","milestones":[{"id":"M","title":"t","tasks":["#;
        let part = r#"{"id":"LEVEL","title":"t","subtasks":["#;
        nested(&format!("{{\"backlog\":[{phase}"), part, levels) + "]}]}"
    };
    let task_master =
        |levels: usize| nested(r#"{"master":{"tasks":"#, r#"{"id":1,"title":"t","subtasks":["#, levels) + "}";
    for levels in [101, 20_000] {
        for (format, text) in [("pipeline", pipeline(levels)), ("task-master", task_master(levels))] {
            write(&board, "deep.json", &text);
            let refused = refusal(&board, &["import", format, "deep.json"]);
            assert!(refused.contains("deep.json line 1: it is nested deeper than 100 levels"), "{format}: {refused}");
        }
    }
    let indented: Vec<String> = (0..101).map(|level| format!("{}- [ ] {level}. Task", " ".repeat(level))).collect();
    write(&board, "tasks.md", &indented.join("\n"));
    let refused = refusal(&board, &["import", "kiro", "tasks.md"]);
    assert!(refused.contains("tasks.md line 101: it is nested deeper than 100 levels"), "{refused}");

    let chain = |levels: usize| -> Vec<Value> {
        (0..levels).map(|level| with(task(&format!("t{level}")), "parent_id", format!("t{}", level + 1))).collect()
    };
    write(&board, "state.json", &state(&chain(3_000)));
    let first = reply(&board, &["import", "option-b", "state.json"]);
    assert_eq!(first["items"], 3_000);
    let notes = first["report"]["notes"].to_string();
    assert!(notes.contains("it is no part of t2900: that is a part of it, or is nested too deeply"), "{notes:.300}");
    assert_eq!(reply(&board, &["verify", "option-b", "state.json"])["differences"], json!([]));
}
