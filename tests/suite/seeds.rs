//! Boards of the coordinators that callboard grew from: a directory of files, a server's state, an
//! orchestrator's state. Each comes in, goes out as each other, and comes in again on an empty
//! board with all that it had.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Board, size};

const A: &str = "option-a";
const B: &str = "option-b";
const C: &str = "option-c";

/// What a command printed; it must succeed.
#[track_caller]
fn says(board: &Board, arguments: &[&str]) -> String {
    let done = board.finish(board.command().args(arguments));
    assert!(done.status.success(), "{arguments:?}: {}{}", done.stdout, done.stderr);
    done.stdout
}

/// Where files of this format are put below a directory.
fn place(format: &str, base: &Path) -> PathBuf {
    base.join(match format {
        A => "files",
        B => "server/mcp-state.json",
        _ => "orchestrator.json",
    })
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it has a directory")).expect("made");
    fs::write(path, text).expect("written");
}

/// A directory with groups, a barrier, subtasks, retries, and times without a zone.
fn directory(base: &Path) -> PathBuf {
    let at = place(A, base);
    let tasks = json!([
        {"id": "task-1", "description": "Model the users\n\nWith roles.", "status": "done", "priority": 1,
            "claimed_by": "terminal-1", "created_at": "2026-01-05T09:00:00.123456",
            "claimed_at": "2026-01-05T09:01:00", "completed_at": "2026-01-05T09:31:00", "estimated_duration": 25,
            "actual_duration": 30, "tags": ["db"], "context": {"files": ["src/user.rs"], "hints": "use uuids"},
            "result": {"output": "done well", "files_modified": ["src/user.rs"], "files_created": []}},
        {"id": "task-2", "description": "Write the routes", "status": "available", "priority": 2, "group_id": "group-1",
            "dependencies": ["task-1"], "required_capabilities": ["rust", "http"], "max_retries": 4, "retry_count": 1,
            "next_retry_at": "2026-01-05T10:00:00", "timeout_minutes": 20, "estimated_duration": 60,
            "created_at": "2026-01-05T09:00:01"},
        {"id": "task-3", "description": "Write the pages", "status": "in_progress", "priority": 2,
            "group_id": "group-1", "claimed_by": "terminal-2", "claimed_at": "2026-01-05T09:40:00",
            "created_at": "2026-01-05T09:00:02"},
        {"id": "task-4", "description": "Put both together", "status": "blocked", "priority": 3, "group_id": "group-1",
            "created_at": "2026-01-05T09:00:03"},
        {"id": "task-5", "description": "Old idea", "status": "cancelled", "priority": 9,
            "created_at": "2026-01-05T09:00:04", "completed_at": "2026-01-05T09:10:00",
            "result": {"cancelled": true, "reason": "not needed", "previous_status": "available"}},
        {"id": "task-6", "description": "Deploy", "status": "failed", "priority": 5, "claimed_by": "terminal-1",
            "created_at": "2026-01-05T09:00:05", "claimed_at": "2026-01-05T09:50:00",
            "completed_at": "2026-01-05T09:55:00", "result": {"error": "no credentials"}},
        {"id": "task-7", "description": "Document it", "status": "available", "priority": 5,
            "created_at": "2026-01-05T09:00:06"},
        {"id": "task-8", "description": "Document the routes", "status": "available", "priority": 5,
            "parent_id": "task-7", "created_at": "2026-01-05T09:00:07", "dependencies": ["task-2"]},
    ]);
    put(&at.join("tasks.json"), &json!({"version": "1.0", "tasks": tasks}).to_string());
    let agents = json!([{"id": "terminal-1", "capabilities": "rust, http", "registered_at": "2026-01-05T08:59:00",
        "last_seen": "2026-01-05T09:55:00"}, {"id": "terminal-2", "capabilities": "",
        "registered_at": "2026-01-05T08:59:30", "last_seen": "2026-01-05T09:40:00"}]);
    put(&at.join("agents.json"), &json!({"agents": agents}).to_string());
    let groups = json!([{"id": "group-1", "name": "Front and back", "task_ids": ["task-2", "task-3"],
        "barrier_task_id": "task-4", "created_at": "2026-01-05T09:00:10", "status": "active"}]);
    put(&at.join("groups.json"), &json!({"version": "1.0", "groups": groups}).to_string());
    let plan = "# Master Plan\n\n## Objective\nShip the shop\n\n## Approach\nBottom up.\n\n## Success Criteria\n\
                - [ ] All tests pass\n- [ ] It is fast\n";
    put(&at.join("master-plan.md"), plan);
    put(
        &at.join("context/discoveries.md"),
        "# Shared Discoveries\n\nImportant findings go here.\n\n## Port\n\n8080 is taken\n",
    );
    put(&at.join("results/task-1.md"), "# Task: task-1\n");
    at
}

/// The state of the server, with its logs and empty contexts.
fn server(base: &Path) -> PathBuf {
    let at = place(B, base);
    let state = json!({
        "master_plan": "1. Schema\n2. API", "goal": "Ship billing",
        "tasks": [
            {"id": "task-a", "description": "Schema", "status": "done", "priority": 1, "claimed_by": "worker-1",
                "dependencies": [], "context": {"files": ["db/"], "hints": "cents"}, "created_at": "2026-03-01T10:00:00.000Z",
                "claimed_at": "2026-03-01T10:02:11.482Z", "completed_at": "2026-03-01T10:19:40.007Z",
                "result": {"output": "three tables", "files_created": ["db/1.sql"]}},
            {"id": "task-b", "description": "API", "status": "claimed", "priority": 2, "claimed_by": "worker-2",
                "dependencies": ["task-a"], "context": {"parent_task": "task-a"}, "result": null,
                "created_at": "2026-03-01T10:00:00.001Z", "claimed_at": "2026-03-01T10:21:03.914Z",
                "completed_at": null, "tags": ["api"]},
            {"id": "task-c", "description": "PDF \u{20ac} \u{5408}", "status": "failed", "priority": 5, "claimed_by": "worker-1",
                "dependencies": ["task-a"], "context": {}, "result": {"error": "no fonts"},
                "created_at": "2026-03-01T10:00:00.002Z", "claimed_at": "2026-03-01T11:00:00.000Z",
                "completed_at": "2026-03-01T11:05:00.000Z"},
            {"id": "task-d", "description": "Load test", "status": "available", "priority": 7, "claimed_by": null,
                "dependencies": ["task-b", "task-c"], "context": null, "result": null,
                "created_at": "2026-03-01T10:00:00.003Z", "claimed_at": null, "completed_at": null},
        ],
        "agents": {
            "lead": {"id": "lead", "role": "leader", "last_heartbeat": "2026-03-01T11:00:00.000Z", "current_task": null,
                "tasks_completed": 0},
            "worker-1": {"id": "worker-1", "role": "worker", "last_heartbeat": "2026-03-01T11:05:00.000Z",
                "current_task": "task-b", "tasks_completed": 1},
        },
        "discoveries": [{"id": "disc-1", "agent_id": "worker-1", "content": "The <API> --> is slow\n\n- very",
            "tags": ["perf"], "created_at": "2026-03-01T10:30:00.000Z"}],
        "created_at": "2026-03-01T10:00:00.000Z", "last_activity": "2026-03-01T11:05:00.000Z",
        "audit_log": [{"action": "claim", "agent": "worker-1"}], "transactions": {"tx-1": {"state": "open"}},
    });
    put(&at, &state.to_string());
    at
}

/// The state of the orchestrator, with a specialist, metrics, attempts and what results have
/// beside.
fn orchestrator(base: &Path) -> PathBuf {
    let at = place(C, base);
    let state = json!({
        "goal": "Port it", "master_plan": "Crate by crate", "working_directory": "/srv/port",
        "tasks": [
            {"id": "task-x", "description": "Port the parser", "status": "done", "priority": 2, "claimed_by": "spec-1",
                "dependencies": [], "blocks": ["task-y"], "context": {"files": [], "hints": "", "tags": ["core"],
                "metadata": {"issue": 7}, "parent_task": null}, "created_at": "2026-02-01T08:00:00",
                "claimed_at": "2026-02-01T08:05:00", "started_at": "2026-02-01T08:06:00",
                "completed_at": "2026-02-01T08:45:00", "attempts": 2, "max_attempts": 4,
                "result": {"output": "ported", "files_modified": [], "files_created": ["p.rs"], "files_deleted": ["p.c"],
                    "error": null, "subtasks_created": ["task-y"], "discoveries": ["UTF-8 only"]}},
            {"id": "task-y", "description": "Port the printer", "status": "pending", "priority": 3, "claimed_by": null,
                "dependencies": ["task-x"], "blocks": [], "context": {"files": ["q.c"], "hints": "see p.rs", "tags": [],
                "metadata": {}}, "result": null, "created_at": "2026-02-01T08:00:01", "attempts": 0, "max_attempts": 3},
            {"id": "task-z", "description": "Benchmarks", "status": "failed", "priority": 5, "claimed_by": "worker-1",
                "dependencies": [], "blocks": [], "context": {}, "created_at": "2026-02-01T08:00:02",
                "claimed_at": "2026-02-01T09:00:00", "completed_at": "2026-02-01T09:10:00", "attempts": 3,
                "max_attempts": 3, "result": {"output": "", "error": "timed out"}},
        ],
        "agents": {
            "spec-1": {"id": "spec-1", "role": "specialist", "is_active": false, "current_task": null, "pid": 4711,
                "last_heartbeat": "2026-02-01T08:45:00", "working_directory": "/srv/port", "model": "large",
                "max_concurrent_tasks": 2, "metrics": {"tasks_completed": 1, "tasks_failed": 0,
                "total_time_working": 2400.5, "avg_task_time": 2400.5, "discoveries_made": 1}},
        },
        "discoveries": [{"id": "disc-9", "agent_id": "spec-1", "content": "UTF-8 only", "tags": ["text"],
            "related_task": "task-x", "created_at": "2026-02-01T08:30:00"}],
        "created_at": "2026-02-01T08:00:00", "last_activity": "2026-02-01T09:10:00",
        "max_parallel_workers": 5, "task_timeout_seconds": 900,
    });
    put(&at, &state.to_string());
    at
}

/// All that has to come through: tasks, agents, discoveries and what the board was told, without
/// what follows from the time and the file of the import.
fn content(board: &Board) -> Value {
    let document = board.document();
    let task = |task: &Value| {
        let fields = [
            "id",
            "description",
            "title",
            "status",
            "priority",
            "result",
            "max_attempts",
            "timeout_seconds",
            "estimated_minutes",
            "parent",
            "tags",
            "demands",
            "attempt",
            "created_at",
            "claimed_by",
            "not_before",
            "context",
        ];
        let mut kept: BTreeMap<&str, Value> =
            fields.iter().map(|name| (*name, task[*name].clone())).collect();
        let mut after: Vec<&str> =
            task["dependencies"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        after.sort_unstable();
        kept.insert("dependencies", json!(after));
        // The time at which a group of tasks was over is that of the import.
        kept.insert("completed_at", task["completed_at"].clone());
        // A word that the board does not have may become another's.
        if let Some(metadata) =
            kept.get_mut("context").and_then(|context| context.get_mut("metadata"))
        {
            metadata.as_object_mut().unwrap().retain(|name, _| name != "status");
        }
        if let Some(context) = kept.get_mut("context").and_then(Value::as_object_mut) {
            context.retain(|_, value| *value != json!({}));
        }
        let is_bare = |context: &Value| {
            context.as_object().is_some_and(|one| one.values().all(|value| *value == json!({})))
        };
        if is_bare(&kept["context"]) {
            kept.insert("context", Value::Null);
        }
        (task["id"].as_str().unwrap().to_owned(), json!(kept))
    };
    let tasks: BTreeMap<_, _> = document["tasks"].as_array().unwrap().iter().map(task).collect();
    let metadata = document["plans"][0]["metadata"].clone();
    json!({"tasks": tasks, "agents": document["agents"], "discoveries": document["discoveries"],
        "goal": document["goal"], "master_plan": document["master_plan"], "metadata": metadata})
}

/// Asserts that two boards have the same, naming the first thing that differs.
#[track_caller]
fn assert_same(before: &Value, after: &Value, way: &str) {
    for part in ["goal", "metadata", "discoveries", "agents"] {
        assert_eq!(before[part], after[part], "{way}: {part}");
    }
    let ids =
        |content: &Value| content["tasks"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(before), ids(after), "{way}");
    for id in ids(before) {
        for (name, value) in before["tasks"][&id].as_object().unwrap() {
            assert_eq!(*value, after["tasks"][&id][name], "{way}: {name} of {id}");
        }
    }
}

fn import(format: &str, path: &Path) -> Board {
    let board = Board::new();
    let path = path.to_str().expect("a text");
    says(&board, &["import", path, "--format", format]);
    says(&board, &["verify", format, path]);
    board
}

fn there_and_back(format: &str, path: &Path) {
    let first = import(format, path);
    let before = content(&first);
    for other in [A, B, C].into_iter().filter(|other| *other != format) {
        let away = place(other, &first.base().join(format!("as-{other}")));
        fs::create_dir_all(if other == A { &away } else { away.parent().unwrap() }).unwrap();
        says(&first, &["export", other, away.to_str().unwrap()]);
        let second = import(other, &away);
        assert_same(&before, &content(&second), &format!("{format} to {other}"));
        let home = place(format, &second.base().join("back"));
        fs::create_dir_all(if format == A { &home } else { home.parent().unwrap() }).unwrap();
        says(&second, &["export", format, home.to_str().unwrap()]);
        let third = import(format, &home);
        assert_same(&before, &content(&third), &format!("{format} to {other} and back"));
    }
}

#[test]
fn a_directory_of_files_goes_to_each_of_the_others_and_back() {
    let base = Board::new();
    there_and_back(A, &directory(base.base()));
}

#[test]
fn a_server_s_state_goes_to_each_of_the_others_and_back() {
    let base = Board::new();
    there_and_back(B, &server(base.base()));
}

#[test]
fn an_orchestrator_s_state_goes_to_each_of_the_others_and_back() {
    let base = Board::new();
    there_and_back(C, &orchestrator(base.base()));
}

#[test]
fn each_format_is_found_by_its_files() {
    let base = Board::new();
    let made =
        [(A, directory(base.base())), (B, server(base.base())), (C, orchestrator(base.base()))];
    for (format, path) in made {
        let board = Board::new();
        let told = says(&board, &["import", path.to_str().unwrap(), "--dry-run"]);
        assert!(told.contains(&format!("is {format}:")), "{told}");
    }
}

#[test]
fn what_a_directory_says_is_read_as_it_is_meant() {
    let base = Board::new();
    let board = import(A, &directory(base.base()));
    let tasks = board.tasks();
    let (barrier, group) = (&tasks["task-4"], &tasks["group-1"]);
    assert_eq!(
        (&barrier["dependencies"], &barrier["status"]),
        (&json!(["group-1"]), &json!("available"))
    );
    assert_eq!(
        (&tasks["task-2"]["parent"], &group["title"]),
        (&json!("group-1"), &json!("Front and back"))
    );
    assert_eq!(
        (&tasks["task-2"]["timeout_seconds"], &tasks["task-2"]["max_attempts"]),
        (&json!(1200), &json!(5))
    );
    assert_eq!(tasks["task-2"]["demands"]["capabilities"], json!(["http", "rust"]));
    assert_eq!(
        (&tasks["task-5"]["status"], &tasks["task-5"]["result"]["error"]),
        (&json!("cancelled"), &json!("not needed"))
    );
    assert_eq!(tasks["task-5"]["result"]["data"]["previous_status"], "available");
    assert_eq!(
        (&tasks["task-1"]["estimated_minutes"], &tasks["task-1"]["created_at"]),
        (&json!(25), &json!("2026-01-05T09:00:00.123Z"))
    );
    assert_eq!(tasks["task-3"]["attempts"][0]["outcome"], "released");
    let document = board.document();
    assert_eq!(
        (&document["goal"], tasks.len()),
        (&json!("Ship the shop"), 9),
        "criteria are no tasks"
    );
    assert_eq!(document["agents"]["terminal-1"]["capabilities"], json!(["http", "rust"]));
    assert_eq!(document["discoveries"][0]["content"], "Port\n\n8080 is taken");
    let shown = says(&board, &["show", "task-1"]);
    assert!(shown.contains("actual: 30 min") && shown.contains("estimate: 25 min"), "{shown}");
}

#[test]
fn logs_of_a_server_are_kept_and_said() {
    let base = Board::new();
    let path = server(base.base());
    let board = Board::new();
    let told = says(&board, &["import", path.to_str().unwrap()]);
    assert!(told.contains("audit_log (1)") && told.contains("transactions (1)"), "{told}");
    let plan = board.document()["plans"][0]["metadata"].clone();
    assert_eq!(plan["audit_log"][0]["action"], "claim");
    assert!(!says(&board, &["--json", "status"]).contains("audit_log"));
}

#[test]
fn another_result_in_the_file_is_a_difference() {
    let files = tempfile::tempdir().unwrap();
    let path = server(files.path());
    let board = import(B, &path);
    let verify = || board.finish(board.command().args(["verify", B]).arg(&path));
    assert!(verify().status.success());
    let changed = fs::read_to_string(&path).unwrap().replace("three tables", "four tables");
    fs::write(&path, changed).unwrap();
    let told = verify();
    assert!(!told.status.success());
    let says = "the result is \"four tables\" in the file, \"three tables\" on the board";
    assert!(told.stdout.contains(says), "{}", told.stdout);
}

#[test]
fn a_second_import_changes_nothing() {
    let base = Board::new();
    let path = directory(base.base());
    let board = import(A, &path);
    let before = board.document();
    says(&board, &["import", path.to_str().unwrap()]);
    assert_eq!(board.document()["tasks"], before["tasks"]);
}

#[test]
fn a_bad_value_refuses_the_whole_file_with_its_line() {
    let base = Board::new();
    let wrong = [
        (
            json!({"id": "t", "description": "d", "status": "done", "created_at": "yesterday"}),
            "created_at",
        ),
        (json!({"id": "t", "description": "d", "status": "done", "priority": "soon"}), "priority"),
        (json!({"id": "t", "description": "d", "status": "done", "claimed_by": "a b"}), "agent"),
        (json!({"id": "t", "description": "d", "status": "done", "result": "good"}), "result"),
        (json!({"id": "t", "description": "d", "status": "available", "dependencies": ["u"]}), "u"),
    ];
    for (task, named) in wrong {
        let path = base.base().join("state.json");
        let other =
            json!({"id": "u", "description": "d", "status": "available", "dependencies": ["t"]});
        let state = json!({"goal": "g", "agents": {}, "tasks": [other, task]});
        fs::write(&path, serde_json::to_string_pretty(&state).unwrap()).unwrap();
        let board = Board::new();
        let done =
            board.finish(board.command().args(["import", path.to_str().unwrap(), "--format", B]));
        assert!(
            !done.status.success() && done.stderr.contains(named) && done.stderr.contains("line "),
            "{}",
            done.stderr
        );
        assert!(!board.file("mcp-state.json").exists() || board.tasks().is_empty(), "{named}");
    }
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A random state of a server or an orchestrator.
fn random(dice: &mut Dice, is_orchestrator: bool) -> Value {
    let count = 3 + dice.below(12);
    let time = |dice: &mut Dice| {
        format!("2026-02-0{}T1{}:00:00.00{}Z", 1 + dice.below(9), dice.below(10), dice.below(10))
    };
    let tasks: Vec<Value> = (0..count)
        .map(|number| {
            let status = dice.one(&["available", "claimed", "in_progress", "done", "done", "failed"]);
            let is_over = matches!(status, "done" | "failed");
            let on: Vec<String> = (0..number).filter(|_| dice.below(4) == 0).map(|on| format!("t{on}")).collect();
            let text = dice.one(&["Write it", "Test #1 (high priority)", "P1.M1: a path", "~~struck~~", "a\n\n- [ ] b", "\u{5408}"]);
            let mut task = json!({"id": format!("t{number}"), "description": format!("{text} {number}"), "status": status,
                "priority": 1 + dice.below(10), "dependencies": on, "created_at": time(dice), "context": null, "result": null});
            if status != "available" {
                task["claimed_by"] = format!("w{}", dice.below(3)).into();
                task["claimed_at"] = time(dice).into();
            }
            if is_over {
                task["completed_at"] = time(dice).into();
                task["result"] = match status {
                    "done" => json!({"output": "made", "files_modified": ["a.rs"]}),
                    _ => json!({"error": "broken"}),
                };
            }
            if dice.below(2) == 0 {
                task["context"] = json!({"files": ["src/a.rs"], "hints": "look there"});
                task["tags"] = json!(["x"]);
            }
            if is_orchestrator {
                task["attempts"] = (u64::from(status != "available") + dice.below(2)).into();
                task["max_attempts"] = (2 + dice.below(4)).into();
            }
            task
        })
        .collect();
    let agents: BTreeMap<String, Value> = (0..3)
        .map(|number| {
            let id = format!("w{number}");
            (id.clone(), json!({"id": id, "role": "worker", "last_heartbeat": time(dice), "tasks_completed": number}))
        })
        .collect();
    let mut state = json!({"goal": "g", "master_plan": dice.one(&["", "Do it.", "# Plan\n\n## Objective\nother"]),
        "tasks": tasks, "agents": agents, "discoveries": [], "created_at": time(dice), "last_activity": time(dice)});
    if is_orchestrator {
        state["max_parallel_workers"] = 3.into();
    }
    state
}

#[test]
fn random_boards_come_through_all_formats() {
    for seed in 0..size("CALLBOARD_SEED_BOARDS", 4) as u64 {
        let mut dice = Dice(seed.wrapping_mul(7919) + 1);
        let format = if seed % 2 == 0 { B } else { C };
        let base = Board::new();
        let path = place(format, base.base());
        put(&path, &random(&mut dice, format == C).to_string());
        there_and_back(format, &path);
    }
}
