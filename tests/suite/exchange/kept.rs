//! Fields that callboard does not know: kept in the metadata, and written where they are read as
//! the same.

use std::fs;

use serde_json::{Map, Value, json};

use super::{reply, write};
use crate::harness::Board;

fn only_task(board: &Board) -> Value {
    board.cli_ok("get_all_tasks", json!({}))["tasks"][0].take()
}

#[test]
fn metadata_with_names_of_a_format_changes_no_field_and_is_said_to_be_left_out() {
    let own =
        ["id", "title", "description", "status", "priority", "dependencies", "parent_id", "note"];
    let board = Board::new();
    let mut metadata: Map<String, Value> =
        own.map(|name| (name.to_owned(), json!("odd"))).into_iter().collect();
    metadata.extend([
        ("callboard_status".to_owned(), json!("obsolete")),
        ("a: b #".to_owned(), json!(["mine"])),
    ]);
    let plan = json!({"items": [{"title": "a", "priority": 1, "metadata": metadata}]});
    write(&board, "plan.json", &plan.to_string());
    reply(&board, &["import", "plan.json"]);
    for (format, place) in [
        ("task-master", "tasks.json"),
        ("backlog-md", ""),
        ("beads", "issues.jsonl"),
        ("pipeline", "phases.json"),
        ("csv", "tasks.csv"),
        ("option-a", ""),
        ("option-b", "state.json"),
        ("option-c", "state.json"),
    ] {
        let path = format!("{format}/{place}");
        fs::create_dir_all(board.base().join(format)).unwrap();
        let left_out = reply(&board, &["export", format, &path])["report"]["left_out"].take();
        for name in ["status", "priority", "dependencies", "parent_id"] {
            assert_eq!(left_out[format!("metadata.{name}")], 1, "{format}: {name}: {left_out}");
        }
        let from = board.base().join(&path);
        let other = Board::new();
        reply(&other, &["import", format, from.to_str().unwrap()]);
        let task = only_task(&other);
        assert_eq!(
            (&task["title"], &task["status"], &task["path"]),
            (&json!("a"), &json!("available"), &json!("P1"))
        );
        assert_eq!(task["context"]["metadata"]["a: b #"], json!(["mine"]), "{format}: {task:#}");
        let verdict = reply(&board, &["verify", format, &path]);
        assert_eq!(verdict["differences"], json!([]), "{format}");
    }
}

#[test]
fn metadata_of_a_plan_takes_the_place_of_no_field_of_a_board() {
    let board = Board::new();
    let plan = json!({"goal": "Ship", "metadata": {"tasks": 5, "goal": "none"}, "items": [{"title": "a"}]});
    write(&board, "plan.json", &plan.to_string());
    reply(&board, &["import", "plan.json"]);
    for format in ["option-b", "option-a"] {
        fs::create_dir_all(board.base().join("option-a")).unwrap();
        let left_out = reply(&board, &["export", format, format])["report"]["left_out"].take();
        assert_eq!(left_out["tasks of the plan's metadata"], 1, "{format}: {left_out}");
        assert_eq!(
            reply(&board, &["verify", format, format])["differences"],
            json!([]),
            "{format}"
        );
    }
}

#[test]
fn only_metadata_of_a_plans_newest_version_is_exported() {
    let board = Board::new();
    let plan =
        |extra: &str, title: &str| json!({extra: 1, "items": [{"title": title}]}).to_string();
    write(&board, "other.json", &plan("other", "b"));
    reply(&board, &["import", "other.json"]);
    for (extra, title) in [("before", "a"), ("since", "c")] {
        write(&board, "plan.json", &plan(extra, title));
        reply(&board, &["import", "plan.json"]);
    }
    let exported = reply(&board, &["export", "option-b"]);
    let state: Value = serde_json::from_str(exported["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&state["other"], &state["since"], &state["before"]),
        (&json!(1), &json!(1), &Value::Null)
    );
}

#[test]
fn an_id_with_a_comma_is_one_id_for_what_waits_for_it() {
    let board = Board::new();
    let table = "id,title,depends,tags\nx,First,,\n\"x,y\",Second,,\n\"x, z\",Third,,\"[\"\"a,b\"\"]\"\nz,Fourth,,\n\
        p,One,\"x,y\",\nq,Two,\"x, z\",\nr,Both,\"[\"\"x,y\"\",\"\"z\"\"]\",\ns,List,\"[\"\"x\"\",\"\"z\"\"]\",\n";
    write(&board, "in.csv", table);
    reply(&board, &["import", "csv", "in.csv"]);
    reply(&board, &["export", "csv", "out.csv"]);
    let verdict = reply(&board, &["verify", "csv", "out.csv"]);
    assert_eq!(
        (&verdict["differences"], &verdict["in_file"]["dependencies"]),
        (&json!([]), &json!(6))
    );
    let waits = |id: &str| super::formats::depends(&board, id);
    assert_eq!(
        [waits("p"), waits("q"), waits("r"), waits("s")],
        [
            vec!["x,y".to_owned()],
            vec!["x, z".to_owned()],
            vec!["x,y".to_owned(), "z".to_owned()],
            vec!["x".to_owned(), "z".to_owned()]
        ]
    );
    assert_eq!(super::by_source(&board, "x, z")["tags"], json!(["a,b"]));
}

#[test]
fn numbers_after_the_greatest_are_the_lowest_that_are_free() {
    for (format, place, text) in [
        (
            "task-master",
            "tasks.json",
            r#"{"master":{"tasks":[{"id":18446744073709551615,"title":"Last"}]}}"#,
        ),
        (
            "backlog-md",
            "backlog/tasks/a.md",
            "---\nid: TASK-18446744073709551615\ntitle: Last\nstatus: To Do\n---\n",
        ),
    ] {
        let board = Board::new();
        write(&board, place, text);
        reply(&board, &["import", format, if format == "backlog-md" { "." } else { place }]);
        board.cli_ok("create_task", json!({"description": "Ours"}));
        fs::create_dir(board.base().join("out")).unwrap();
        reply(&board, &["export", format, "out"]);
        assert_eq!(reply(&board, &["verify", format, "out"])["differences"], json!([]), "{format}");
    }
}

#[test]
fn twins_are_compared_with_those_below_the_same() {
    let board = Board::new();
    let same = |tag: &str| json!({"title": "Same", "tags": [tag]});
    let plan = json!({"items": [{"title": "G1", "items": [same("a"), {"title": "Same", "status": "Complete"}]},
        {"title": "G2", "items": [same("b")]}]});
    write(&board, "plan.json", &plan.to_string());
    reply(&board, &["import", "plan.json"]);
    for format in ["task-master", "backlog-md", "pipeline", "csv", "beads"] {
        fs::create_dir(board.base().join(format)).unwrap();
        reply(&board, &["export", format, format]);
        let file = match format {
            "csv" => "csv/tasks.csv",
            "pipeline" => "pipeline/tasks.json",
            directory => directory,
        };
        assert_eq!(reply(&board, &["verify", format, file])["differences"], json!([]), "{format}");
    }
}

#[test]
fn what_is_called_off_is_called_off_in_the_same_word_by_every_format() {
    let board = Board::new();
    let part = |title: &str, status: &str| json!({"title": title, "status": status});
    let parts = [part("c", "Obsolete"), part("d", "Cancelled")];
    let plan = json!({"items": [part("a", "Obsolete"), {"title": "b", "status": "Cancelled", "items": parts}]});
    write(&board, "plan.json", &plan.to_string());
    reply(&board, &["import", "plan.json"]);
    for (format, file) in [
        ("task-master", ""),
        ("backlog-md", ""),
        ("beads", ""),
        ("csv", "tasks.csv"),
        ("pipeline", "tasks.json"),
        ("option-a", ""),
    ] {
        fs::create_dir(board.base().join(format)).unwrap();
        reply(&board, &["export", format, format]);
        let path = format!("{format}/{file}");
        assert_eq!(reply(&board, &["verify", format, &path])["differences"], json!([]), "{format}");
    }
}
