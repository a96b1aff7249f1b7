//! Exports read back by the models that the tools have of their own files, after work on the board.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{by_source, reply, statuses, write};
use crate::harness::Board;

/// An object with these fields, all of which have to be there.
fn object(fields: Value) -> Value {
    let required: Vec<String> = fields.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": fields, "required": required})
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn or_null(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

fn orchestrator() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let count = json!({"type": "integer", "minimum": 0});
    let texts = list(text.clone());
    let result = object(json!({"output": {"type": "string"}, "files_modified": texts}));
    let context = object(json!({"files": texts, "hints": {"type": "string"}}));
    let task = object(json!({
        "id": text, "description": text, "priority": {"type": "integer", "minimum": 1, "maximum": 10},
        "status": {"enum": ["pending", "available", "claimed", "in_progress", "done", "failed"]},
        "claimed_by": or_null("string"), "dependencies": texts, "context": context,
        "result": {"anyOf": [{"type": "null"}, result]},
        "created_at": text, "claimed_at": or_null("string"), "completed_at": or_null("string"),
        "attempts": count, "max_attempts": {"type": "integer", "minimum": 1},
    }));
    let agent = object(json!({
        "id": text, "role": {"enum": ["leader", "worker", "specialist"]},
        "last_heartbeat": text, "current_task": or_null("string"),
    }));
    let discovery =
        object(json!({"id": text, "agent_id": text, "content": text, "created_at": text}));
    object(json!({
        "goal": {"type": "string"}, "master_plan": {"type": "string"}, "tasks": list(task),
        "agents": {"type": "object", "additionalProperties": agent}, "discoveries": list(discovery),
        "created_at": text, "last_activity": text, "max_parallel_workers": count,
        "task_timeout_seconds": count,
    }))
}

fn backlog() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let status = json!({"enum": [
        "Planned", "Researching", "Ready", "Implementing", "Complete", "Failed", "Obsolete"
    ]});
    let item = |kind: &str, more: Value| {
        let mut fields = json!({"id": text, "type": {"const": kind}, "title": text,
            "status": status, "description": {"type": "string"}});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object(fields)
    };
    let subtask = json!({"story_points": {"type": "integer", "minimum": 1},
        "dependencies": list(text.clone()), "context_scope": {"type": "string"}});
    let subtasks = list(item("Subtask", subtask));
    let tasks = list(item("Task", json!({"subtasks": subtasks})));
    let milestones = list(item("Milestone", json!({"tasks": tasks})));
    object(json!({"backlog": list(item("Phase", json!({"milestones": milestones})))}))
}

#[track_caller]
fn is_accepted(model: &Validator, board: &Board, file: &str) -> Value {
    let text = fs::read_to_string(board.base().join(file)).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let wrong: Vec<_> = model
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?} in {text}");
    value
}

/// Claims a task and ends it by this tool.
fn end(board: &Board, id: &str, tool: &str, mut given: Value) {
    let task = by_source(board, id)["id"].clone();
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": task}));
    given["agent_id"] = "ada".into();
    given["task_id"] = task;
    board.cli_ok(tool, given);
}

/// Work of every kind, an export, more work and another export: the model takes both, and a new
/// board that imports the last one has the same tasks.
fn twice(format: &str, model: &Value, file: &str, ids: [&str; 5]) {
    let model = jsonschema::draft202012::new(model).expect("it is a schema");
    let board = Board::new();
    write(&board, "in.json", file);
    reply(&board, &["import", format, "in.json"]);
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "leader"}));
    board.cli_ok("add_discovery", json!({"agent_id": "ada", "content": "It is slow"}));
    let [done, failed, off, held, added] = ids;
    end(&board, done, "complete_task", json!({"output": "made"}));
    end(&board, failed, "fail_task", json!({"error": "broken", "final": true}));
    board.cli_ok("cancel_task", json!({"task_id": by_source(&board, off)["id"]}));
    reply(&board, &["export", format, "out.json"]);
    is_accepted(&model, &board, "out.json");
    board.cli_ok("create_task", json!({"description": "Found on the way", "tags": ["late"]}));
    board.cli_ok("retry_task", json!({"task_id": by_source(&board, failed)["id"]}));
    end(&board, failed, "complete_task", json!({"output": "", "data": {"lines": 3}}));
    let task = by_source(&board, held)["id"].clone();
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": task}));
    reply(&board, &["export", format, "out.json"]);
    let second = is_accepted(&model, &board, "out.json");
    assert!(second.to_string().contains("Found on the way"), "{second:#}");
    assert_eq!(reply(&board, &["verify", format, "out.json"])["differences"], json!([]));
    let other = Board::new();
    write(&other, "in.json", &fs::read_to_string(board.base().join("out.json")).unwrap());
    reply(&other, &["import", format, "in.json"]);
    let open = |(id, status): &(String, String)| {
        let is_held = ["claimed", "in_progress"].contains(&status.as_str());
        (id.clone(), if is_held { "available".to_owned() } else { status.clone() })
    };
    let mut found = statuses(&other);
    found.retain(|(id, _)| ids.contains(&id.as_str()) && id != off || id == added);
    let expected: Vec<_> = statuses(&board).iter().map(open).collect();
    for pair in &found {
        assert!(expected.contains(pair), "{pair:?} in {expected:?}");
    }
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn the_orchestrator_s_model_takes_its_state_after_work_on_the_board() {
    let task = |id: &str, on: &[&str]| {
        json!({"id": id, "description": format!("Do {id}"),
        "status": "available", "priority": 2, "dependencies": on})
    };
    let tasks =
        [task("a", &[]), task("b", &[]), task("c", &[]), task("d", &["a"]), task("e", &["d"])];
    let file = json!({"goal": "Port it", "master_plan": "", "tasks": tasks, "agents": {},
        "discoveries": [], "max_parallel_workers": 4, "task_timeout_seconds": 900});
    twice("option-c", &orchestrator(), &file.to_string(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_pipeline_s_schema_takes_its_backlog_after_work_on_the_board() {
    let item = |id: &str, kind: &str, more: Value| {
        let mut item = json!({"id": id, "type": kind, "title": format!("Part {id}"),
            "status": "Planned", "description": format!("Do {id}.")});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let subtask = |number: u32| {
        let more = json!({"dependencies": [], "story_points": 1, "context_scope": "INPUT: none"});
        item(&format!("P1.M1.T1.S{number}"), "Subtask", more)
    };
    let subtasks: Vec<_> = (1..=5).map(subtask).collect();
    let task = item("P1.M1.T1", "Task", json!({"subtasks": subtasks}));
    let milestone = item("P1.M1", "Milestone", json!({"tasks": [task]}));
    let file = json!({"backlog": [item("P1", "Phase", json!({"milestones": [milestone]}))]});
    let ids = ["P1.M1.T1.S1", "P1.M1.T1.S2", "P1.M1.T1.S3", "P1.M1.T1.S4", "P1.M1.T1.S5"];
    twice("pipeline", &backlog(), &file.to_string(), ids);
}
