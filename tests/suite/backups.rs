//! What a backup and a restore put on the disk for a moment: private, and removed when they were killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Board;

fn with_task() -> Board {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    board
}

/// Under a umask that takes nothing away, and killed in the middle.
fn kill_at(board: &Board, failpoint: &str, arguments: &[&Path]) {
    let mut shell = Command::new("sh");
    let line = format!("umask 0; exec {} \"$@\"", env!("CARGO_BIN_EXE_callboard"));
    shell.args(["-c", &line, "sh"]).args(arguments).current_dir(board.base());
    shell.env("COORDINATION_DIR", board.dir()).env("HOME", board.base()).env("CALLBOARD_FAILPOINT", failpoint);
    assert_eq!(shell.output().unwrap().status.code(), None, "it was killed");
}

/// The directories that were made for a moment.
fn left_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let own = entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(".callboard-"));
    own.map(|entry| entry.path()).collect()
}

#[track_caller]
fn is_private(dir: &Path) {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir), 0o700);
    assert_eq!(mode(&dir.join("journal.db")), 0o600);
}

fn done(board: &Board, arguments: &[&Path]) -> Value {
    let finished = board.finish(board.command().arg("--json").args(arguments));
    assert!(finished.status.success(), "{}", finished.stderr);
    finished.value()
}

fn leftovers(board: &Board) -> String {
    let report = done(board, &["doctor".as_ref()]);
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "leftovers");
    check.unwrap()["found"].as_str().unwrap().to_owned()
}

#[test]
fn killed_backup_leaves_what_others_cannot_read_and_the_next_one_removes() {
    let board = with_task();
    let arguments: [&Path; 2] = ["backup".as_ref(), &board.base().join("b.backup")];
    kill_at(&board, "backup-copied", &arguments);
    let left = left_in(board.base());
    assert_eq!(left.len(), 1);
    is_private(&left[0]);
    done(&board, &arguments);
    assert_eq!(left_in(board.base()), Vec::<PathBuf>::new());
    assert_eq!(fs::metadata(arguments[1]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn killed_restore_leaves_what_others_cannot_read_where_the_board_is_to_be() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let arguments: [&Path; 3] = ["restore".as_ref(), &backup, "--force".as_ref()];
    kill_at(&board, "restore-copied", &arguments);
    let left = left_in(board.dir());
    assert_eq!(left.len(), 1);
    is_private(&left[0]);
    done(&board, &arguments);
    assert_eq!(left_in(board.dir()), Vec::<PathBuf>::new());
    // Where there is no board yet, none is made of it.
    let empty = Board::new();
    kill_at(&empty, "restore-copied", &["restore".as_ref(), &backup]);
    is_private(&left_in(empty.base())[0]);
    assert!(!empty.dir().exists());
    done(&empty, &["restore".as_ref(), &backup]);
    assert_eq!(left_in(empty.base()), Vec::<PathBuf>::new());
}

#[test]
fn doctor_names_and_removes_what_ended_processes_have_left() {
    let board = with_task();
    kill_at(&board, "backup-copied", &["backup".as_ref(), &board.file("b.backup")]);
    let killed = left_in(board.dir())[0].clone();
    let living = board.file(".callboard-backup-Living");
    fs::create_dir(&living).unwrap();
    let lock = fs::File::create(living.join(".callboard-scratch")).unwrap();
    lock.lock().unwrap();
    // What others have put there.
    let theirs =
        [".tmpl", ".notes.tmp", ".callboard-backup-Others/notes", ".callboard-mine/lock"].map(|name| board.file(name));
    for path in &theirs {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "theirs").unwrap();
    }
    let files = [".journal.db.restore.tmp", ".tmpAbCdEf", ".tokens-AbCdEf"].map(|name| board.file(name));
    files.iter().for_each(|file| fs::write(file, "half").unwrap());
    let gone: Vec<_> = files.iter().chain([&killed]).collect();
    let found = leftovers(&board);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(gone.iter().all(|path| found.contains(&name(path))), "{found}");
    assert!(!found.contains("living"), "{found}");
    // Nobody need end for that.
    let mut process = board.mcp();
    process.ok("get_status", json!({}));
    let would = done(&board, &["doctor".as_ref(), "--repair".as_ref(), "--dry-run".as_ref()]);
    assert_eq!(would["steps"].as_array().unwrap().len(), gone.len(), "{would}");
    assert!(gone.iter().all(|path| path.exists()));
    assert_eq!(done(&board, &["doctor".as_ref(), "--repair".as_ref()])["repaired"], true);
    assert!(gone.iter().all(|path| !path.exists()));
    assert!(living.exists() && theirs.iter().all(|path| path.exists()));
    assert_eq!(leftovers(&board), "none");
    assert_eq!(done(&board, &["doctor".as_ref(), "--repair".as_ref()])["repaired"], false);
    process.ok("create_task", json!({"id": "after", "description": "d"}));
}

#[test]
fn a_backup_removes_nothing_that_others_have_put_beside_it() {
    let board = with_task();
    let other = board.base().join(".callboard-backup-Others");
    board.finish(board.command().args(["--dir".as_ref(), other.as_os_str()]).args(["add", "of another board"]));
    let notes = board.base().join(".callboard-notes");
    fs::create_dir(&notes).unwrap();
    done(&board, &["backup".as_ref(), &board.base().join("b.backup")]);
    assert!(notes.exists() && other.join("journal.db").exists());
}
