//! Files that the tools themselves have made (`tests/data/exchange`, made anew by
//! `tests/exchange-files.sh`).

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{by_source, reply, texts, write};
use crate::harness::Board;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange").join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_directory_of_backlog_md_comes_in_goes_out_and_in_again_unchanged() {
    let board = Board::new();
    copy(&data("backlog"), &board.base().join("backlog"));
    let first = reply(&board, &["import", "."]);
    assert_eq!(first["format"], "backlog-md", "{first:#}");
    assert_eq!(first["added"].as_array().unwrap().len(), 23);
    assert_eq!(by_source(&board, "TASK-1")["status"], "done");
    assert_eq!(by_source(&board, "TASK-6")["status"], "cancelled", "an archived task");
    assert_eq!(by_source(&board, "DRAFT-1")["status"], "cancelled", "a draft");
    assert_eq!(by_source(&board, "TASK-2.1")["parent"], by_source(&board, "TASK-2")["id"]);
    let lists = by_source(&board, "TASK-1")["context"]["metadata"]["acceptance_criteria"].clone();
    assert_eq!(lists, json!("- [x] #1 it builds\n- [ ] #2 tests pass"));

    reply(&board, &["export", "backlog-md", "out"]);
    let verdict = reply(&board, &["verify", "backlog-md", "."]);
    assert_eq!((&verdict["differences"], &verdict["in_file"]["items"]), (&json!([]), &json!(23)));
    let other = Board::new();
    copy(&board.base().join("out/backlog"), &other.base().join("backlog"));
    let again = reply(&other, &["import", "."]);
    assert_eq!(again["added"].as_array().unwrap().len(), 23);
    reply(&other, &["export", "backlog-md", "out"]);
    assert_eq!(texts(&board.base().join("out")), texts(&other.base().join("out")));
    let names = |directory: &Path| texts(directory).into_keys().collect::<Vec<_>>();
    let mut expected = names(&data("backlog"));
    expected.retain(|name| name != "config.yml");
    assert_eq!(names(&board.base().join("out/backlog")), expected, "every file has its name");

    reply(&board, &["export", "backlog-md", ".", "--force"]);
    let third = reply(&board, &["import", "."]);
    assert_eq!(third["kept"], 23, "{third:#}");
}

#[test]
fn a_file_of_task_master_comes_in_goes_out_and_in_again_unchanged() {
    let board = Board::new();
    let place = ".taskmaster/tasks/tasks.json";
    write(&board, place, &fs::read_to_string(data("task-master.json")).unwrap());
    let first = reply(&board, &["import", place]);
    assert_eq!(
        (&first["format"], first["added"].as_array().unwrap().len()),
        (&json!("task-master"), 23)
    );
    assert_eq!(by_source(&board, "2.2")["dependencies"], json!([by_source(&board, "2.1")["id"]]));
    assert_eq!(reply(&board, &["verify", "task-master", place])["differences"], json!([]));
    reply(&board, &["export", "task-master", ".", "--force"]);
    assert_eq!(reply(&board, &["verify", "task-master", place])["differences"], json!([]));
    let again = reply(&board, &["import", place]);
    assert_eq!(again["kept"], 23, "{again:#}");
}
