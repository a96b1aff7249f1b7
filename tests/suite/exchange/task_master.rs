use serde_json::{Value, json};

use super::{by_source, refusal, reply, run, statuses, write};
use crate::harness::Board;

const PLACE: &str = ".taskmaster/tasks/tasks.json";

fn tags() -> Value {
    json!({
        "master": {
            "tasks": [
                {"id": 1, "title": "Set up the repository", "description": "Make it", "details": "git init\nand push",
                 "testStrategy": "it is there", "priority": "high", "dependencies": [], "status": "done", "subtasks": []},
                {"id": 2, "title": "Write the parser (depends on Ship)", "description": "", "details": "",
                 "testStrategy": "", "priority": "medium", "dependencies": [1], "status": "in-progress", "subtasks": [
                    {"id": 1, "title": "Lexer", "description": "tokens", "details": "", "status": "done",
                     "dependencies": [], "parentId": "undefined"},
                    {"id": 2, "title": "Grammar", "description": "rules", "details": "", "status": "pending",
                     "dependencies": [1, "1"]},
                ]},
                {"id": 3, "title": "Ship", "description": "x", "priority": "low", "dependencies": [2, "2.1"],
                 "status": "deferred", "subtasks": [], "assignee": "bob"},
            ],
            "metadata": {"created": "2025-01-01T00:00:00.000Z", "description": "Tasks"},
        },
        "ui": {"tasks": [{"id": "1", "title": "Lexer", "description": "again", "status": "review", "dependencies": []}],
            "metadata": {}},
    })
}

#[test]
fn tags_tasks_and_subtasks_come_in_and_go_out() {
    let board = Board::new();
    write(&board, PLACE, &tags().to_string());
    let dry = reply(&board, &["import", ".", "--dry-run"]);
    assert_eq!(
        (&dry["format"], dry["added"].as_array().unwrap().len()),
        (&json!("task-master"), 8)
    );
    let first = reply(&board, &["import", "."]);
    assert_eq!(first["found"], json!(format!("by {PLACE}")));
    assert_eq!(first["report"]["statuses"]["deferred is available"], 1);
    assert_eq!(first["report"]["kept"]["testStrategy"], 1);
    assert_eq!(first["report"]["kept"]["assignee"], 1);
    let all = [
        ("master:", "available"),
        ("1", "done"),
        ("2", "available"),
        ("2.1", "done"),
        ("2.2", "available"),
        ("3", "available"),
        ("ui:", "available"),
        ("ui:1", "available"),
    ];
    assert_eq!(statuses(&board), all.map(|(id, status)| (id.to_owned(), status.to_owned())));
    let parser = by_source(&board, "2");
    assert_eq!(parser["title"], "Write the parser (depends on Ship)", "a title is a title");
    let grammar = by_source(&board, "2.2");
    assert_eq!(
        grammar["dependencies"],
        json!([by_source(&board, "2.1")["id"], by_source(&board, "1")["id"]])
    );
    assert_eq!(
        grammar["planned"]["source"],
        json!({"format": "task-master", "id": "2.2", "path": PLACE})
    );
    let shown = run(&board, &["show", grammar["id"].as_str().unwrap()]).stdout;
    assert!(shown.contains(&format!("from: task-master 2.2 in {PLACE}")), "{shown}");

    let refused = run(&board, &["export", "task-master", "."]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("--force") && refused.stderr.contains(PLACE),
        "{}",
        refused.stderr
    );
    reply(&board, &["export", "task-master", ".", "--force"]);
    let written: Value =
        serde_json::from_slice(&std::fs::read(board.base().join(PLACE)).unwrap()).unwrap();
    let mut expected = tags();
    expected["master"]["tasks"][1]["subtasks"][0].as_object_mut().unwrap().remove("parentId");
    for (tag, id) in [("master", 0), ("master", 1), ("master", 2), ("ui", 0)] {
        for (name, default) in [("details", ""), ("testStrategy", "")] {
            let task = expected[tag]["tasks"][id].as_object_mut().unwrap();
            task.entry(name).or_insert(json!(default));
        }
    }
    let ui = expected["ui"]["tasks"][0].as_object_mut().unwrap();
    ui.insert("priority".to_owned(), json!("medium"));
    ui.insert("subtasks".to_owned(), json!([]));
    for subtask in expected["master"]["tasks"][1]["subtasks"].as_array_mut().unwrap() {
        subtask["testStrategy"] = json!("");
    }
    assert_eq!(written, expected);
    let verdict = reply(&board, &["verify", "task-master", PLACE]);
    assert_eq!(
        (&verdict["same"], &verdict["in_file"]["items"]),
        (&json!(true), &json!(8)),
        "{verdict:#}"
    );
    let again = reply(&board, &["import", PLACE]);
    assert_eq!(again["kept"], 8, "{again:#}");
    reply(&board, &["export", "task-master", "."]);
}

#[test]
fn verify_names_what_differs() {
    let board = Board::new();
    let mut file = tags();
    write(&board, PLACE, &file.to_string());
    reply(&board, &["import", PLACE]);
    file["master"]["tasks"][0]["status"] = json!("pending");
    file["master"]["tasks"][2]["dependencies"] = json!([1]);
    file["master"]["tasks"].as_array_mut().unwrap().remove(1);
    write(&board, PLACE, &file.to_string());
    let told = run(&board, &["verify", "task-master", PLACE]);
    assert_eq!(told.status.code(), Some(1), "{} {}", told.stdout, told.stderr);
    for part in [
        "1 (task-",
        "the status is available in the file, done on the board",
        "what it depends on is 1 in the file, ",
        "\"Grammar\" is on the board alone",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
}

#[test]
fn a_bad_file_is_refused_whole_with_its_line() {
    let board = Board::new();
    let task = |id: u32, depends: Value| json!({"id": id, "title": format!("Task {id}"), "dependencies": depends});
    let file = |tasks: Vec<Value>| {
        let tasks: Vec<_> = tasks.iter().map(ToString::to_string).collect();
        format!("{{\"master\": {{\"tasks\": [\n{}\n]}}}}", tasks.join(",\n"))
    };
    let circle = file(vec![task(1, json!([3])), task(2, json!([1])), task(3, json!([2]))]);
    for (text, line, part) in [
        (circle, 2, "1 (line 2) -> 3 (line 4) -> 2 (line 3) -> 1 (line 2)"),
        (file(vec![json!({"id": 1})]), 2, "it has no title"),
        (file(vec![json!({"id": 1, "title": ["a"]})]), 2, "title is a list"),
        ("{\"master\": {\"tasks\": [\n\n{]}}".to_owned(), 3, "it cannot be read"),
        ("{\"master\": {\"tasks\": []}}".to_owned(), 1, "there is no task in it"),
    ] {
        write(&board, PLACE, &text);
        let told = refusal(&board, &["import", PLACE]);
        assert!(
            told.contains(&format!("{PLACE} line {line}: ")) && told.contains(part),
            "{part}: {told}"
        );
    }
}

#[test]
fn what_is_named_has_to_be_there_and_of_the_format_that_is_named() {
    let board = Board::new();
    write(&board, "tasks.json", "{\"a\": 1}");
    write(&board, "empty/x.txt", "x");
    std::fs::write(board.base().join("bytes"), [0xff, 0xfe, 0xfd, 0x00, 0xff]).unwrap();
    for (words, part) in [
        (&["import", "bytes"][..], "not text"),
        (&["import", "empty"], "is a directory in which there is nothing to import"),
        (&["import", "none.json"], "cannot read none.json"),
        (&["import", "task-master", "tasks.json"], "it is not task-master"),
        (&["import", "tasks.json", "--format", "kiro"], "it is not kiro; leave --format out"),
        (
            &["import", "nonesuch", "tasks.json"],
            "nonesuch is not a format; there are markdown, json, task-master",
        ),
        (&["import", "tasks.json", "--format", "nonesuch"], "nonesuch is not a format"),
        (&["verify", "nonesuch", "tasks.json"], "nonesuch is not a format"),
        (&["export", "nonesuch"], "nonesuch is not a format"),
    ] {
        let told = refusal(&board, words);
        assert!(told.contains(part), "{words:?}: {told}");
    }
}

#[test]
fn tasks_of_other_plans_stand_beside_those_of_master() {
    let board = Board::new();
    write(&board, "PLAN.md", "- [ ] Planned\n");
    reply(&board, &["import", "PLAN.md"]);
    let task =
        |title: &str| json!({"id": 1, "title": title, "description": "", "status": "pending"});
    let file = json!({"master": {"tasks": [task("Master's")]}, "ui": {"tasks": [task("Page")]}});
    write(&board, ".taskmaster/tasks/tasks.json", &file.to_string());
    reply(&board, &["import", ".taskmaster/tasks/tasks.json"]);
    let written: Value =
        serde_json::from_str(&run(&board, &["export", "task-master"]).stdout).unwrap();
    let titles = |tag: &str| -> Vec<Value> {
        written[tag]["tasks"].as_array().unwrap().iter().map(|task| task["title"].clone()).collect()
    };
    assert_eq!(
        (titles("master"), titles("ui")),
        (vec![json!("Planned"), json!("Master's")], vec![json!("Page")])
    );
}
