//! The state file under another name: who chooses it, who agrees, and how it changes.

use std::fs;
use std::process::{Command, Stdio};

use callboard::Board as Embedded;
use callboard::board::Options;
use callboard::ops::{CreateTask, TaskInput};
use callboard::state::policy::Policy;
use serde_json::{Value, json};

use crate::harness::{Board, Finished, PATIENCE, STATE_FILE};

const OTHER: &str = "board.json";

fn document(board: &Board, name: &str) -> Value {
    serde_json::from_slice(&fs::read(board.file(name)).unwrap()).unwrap()
}

fn configure(board: &Board, name: &str) {
    fs::write(board.file("config.toml"), format!("state_file = \"{name}\"\n")).unwrap();
}

fn add(board: &Board, command: &mut Command) -> Finished {
    board.finish(command.args(["--json", "call", "create_task", r#"{"description": "d"}"#]))
}

/// A board of the broker before callboard, or none, whose next call is made by `command`, has only
/// the other file.
#[track_caller]
fn is_shown_in_other(board: &Board, mut command: Command) {
    let added = add(board, &mut command);
    assert!(added.status.success(), "{}", added.stderr);
    let tasks = document(board, OTHER)["tasks"].as_array().unwrap().len();
    assert!(!board.file(STATE_FILE).exists());
    assert!(
        fs::read_to_string(board.file("config.toml"))
            .unwrap()
            .contains("state_file = \"board.json\"")
    );
    // Who says nothing uses the board's name.
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(document(board, OTHER)["tasks"].as_array().unwrap().len(), tasks + 1);
    assert!(!board.file(STATE_FILE).exists());
}

#[test]
fn option_environment_and_configuration_name_the_file() {
    let board = Board::new();
    let mut command = board.command();
    command.arg("--state-file").arg(OTHER);
    is_shown_in_other(&board, command);

    let board = Board::new();
    let mut command = board.command();
    command.env("CALLBOARD_STATE_FILE", OTHER);
    is_shown_in_other(&board, command);

    let board = Board::new();
    board.make_dir();
    configure(&board, OTHER);
    is_shown_in_other(&board, board.command());

    let imported = Board::new();
    imported.make_dir();
    let brokers =
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/typescript-broker/mcp-state.json");
    fs::copy(brokers, imported.file(STATE_FILE)).unwrap();
    let mut command = imported.command();
    command.arg("--state-file").arg(OTHER);
    is_shown_in_other(&imported, command);
    assert!(imported.file("board.json.imported-1").exists());
}

#[tokio::test]
async fn library_names_the_file_and_records_it_with_the_rest() {
    let board = Board::new();
    let policy = Policy { lease_minutes: 7, ..Policy::default() };
    let program = Options::at(board.dir()).state_file(OTHER).policy(policy).open().unwrap();
    program
        .call::<CreateTask>(TaskInput { description: "d".to_owned(), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(program.state_file(), board.file(OTHER));
    assert_eq!(
        program.save_state().await.unwrap(),
        document(&board, OTHER)["seq"].as_u64().unwrap()
    );
    assert!(!board.file(STATE_FILE).exists());
    let other = Options::at(board.dir()).state_file("third.json").open().err().unwrap();
    assert!(
        other.code() == "state_file_name" && other.to_string().contains("board.json"),
        "{other}"
    );
    assert_eq!(
        Options::at(board.dir()).state_file("a/b.json").open().err().unwrap().code(),
        "board_forbidden"
    );
}

#[test]
fn process_that_was_told_another_name_is_refused_with_both() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let before = fs::read(board.file(STATE_FILE)).unwrap();
    for arguments in [["--json", "status"].as_slice(), &["--json", "add", "more"]] {
        let refused = board.finish(board.command().args(["--state-file", OTHER]).args(arguments));
        assert_eq!((refused.code().as_str(), refused.status.code()), ("state_file_name", Some(3)));
        for part in [STATE_FILE, OTHER, "config.toml"] {
            assert!(refused.stderr.contains(part), "{}", refused.stderr);
        }
    }
    assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), before);
    assert!(!board.file(OTHER).exists() && !board.file("config.toml").exists());
}

#[test]
fn file_is_renamed_once_no_process_is_left() {
    let board = Board::new();
    let mut leader = board.mcp();
    leader.ok("create_task", json!({"id": "a", "description": "d"}));
    leader.ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    configure(&board, OTHER);
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(refused.code(), "state_file_name");
    assert!(
        refused.stderr.contains(STATE_FILE) && refused.stderr.contains(OTHER),
        "{}",
        refused.stderr
    );
    leader.ok("create_task", json!({"id": "b", "description": "d"}));
    assert_eq!(board.tasks().len(), 2, "whoever was there goes on");
    assert!(!board.file(OTHER).exists());
    leader.close_input();
    leader.ends_within(PATIENCE);

    board.cli_ok("create_task", json!({"id": "c", "description": "d"}));
    assert_eq!(document(&board, OTHER)["tasks"].as_array().unwrap().len(), 3);
    assert!(!board.file(STATE_FILE).exists(), "no old file lies");
    assert!(!board.file("board.json.quarantined-1").exists());

    fs::remove_file(board.file("config.toml")).unwrap();
    board.cli_ok("create_task", json!({"id": "d", "description": "d"}));
    assert!(!board.file(OTHER).exists());
    board.assert_file_is_the_replay();
    assert_eq!(board.tasks().len(), 4);
}

#[test]
fn name_that_another_file_has_is_refused() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    fs::write(board.file(OTHER), "mine").unwrap();
    configure(&board, OTHER);
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert!(
        refused.code() == "state_file_name" && refused.stderr.contains("move"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_to_string(board.file(OTHER)).unwrap(), "mine");
    fs::remove_file(board.file(OTHER)).unwrap();
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(document(&board, OTHER)["tasks"].as_array().unwrap().len(), 2);
}

/// A brief process is not seen by the one that renames, and must not write under the old name
/// afterwards.
#[tokio::test]
async fn process_that_missed_the_renaming_is_refused() {
    let board = Board::new();
    let task = || TaskInput { description: "d".to_owned(), ..Default::default() };
    let program: Embedded = Options::at(board.dir()).brief().open().unwrap();
    program.call::<CreateTask>(task()).await.unwrap();
    configure(&board, OTHER);
    board.cli_ok("create_task", json!({"description": "d"}));
    let late = program.call::<CreateTask>(task()).await.err().unwrap();
    assert!(late.code() == "state_file_name" && late.to_string().contains("restart"), "{late}");
    assert!(!board.file(STATE_FILE).exists());
    assert_eq!(document(&board, OTHER)["tasks"].as_array().unwrap().len(), 2);
}

#[test]
fn bad_names_are_refused() {
    let long = format!("{}.json", "x".repeat(60));
    let bad = [
        "../x.json",
        "a/b.json",
        ".hidden.json",
        "lock",
        "journal.db",
        ".json",
        "a b.json",
        "replaced-1.json",
        &long,
    ];
    for name in bad {
        let board = Board::new();
        let refused = board.finish(board.command().args(["--state-file", name, "add", "x"]));
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", refused.stderr);
        assert!(!board.dir().exists(), "{name}");
        board.make_dir();
        configure(&board, name);
        let refused = board.cli("create_task", json!({"description": "d"}));
        assert!(
            refused.code() == "bad_config" && refused.stderr.contains("board.json"),
            "{name}: {}",
            refused.stderr
        );
    }
}

#[test]
fn everything_that_names_the_file_uses_its_name() {
    let board = Board::new();
    board.make_dir();
    configure(&board, OTHER);
    board.cli_ok("create_task", json!({"id": "a", "description": "before"}));
    let checks = board.finish(board.command().args(["--json", "doctor"])).value();
    let checks = checks["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == OTHER).expect("a check of the file");
    assert_eq!(check["verdict"], "ok", "{check}");

    // A hand edit is taken over, and one that may not be is kept under the file's name.
    let edit = |from: &str, to: &str| {
        let text = fs::read_to_string(board.file(OTHER)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(board.file("new"), text.replacen(from, to, 1)).unwrap();
        fs::rename(board.file("new"), board.file(OTHER)).unwrap();
    };
    edit("\"before\"", "\"after\"");
    assert_eq!(board.cli_ok("get_task", json!({"task_id": "a"}))["task"]["description"], "after");
    edit("\"available\"", "\"done\"");
    board.cli_ok("create_task", json!({"id": "b", "description": "d"}));
    let names: Vec<_> =
        fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let rejected =
        |name: &&std::ffi::OsString| name.to_string_lossy().starts_with("board.json.rejected-");
    assert_eq!(names.iter().filter(rejected).count(), 2, "{names:?}");

    // A backup takes the name along.
    let backup = board.base().join("b.backup");
    let made = board.finish(board.command().arg("backup").arg(&backup));
    assert!(made.status.success(), "{}", made.stderr);
    let copy = Board::new();
    let restored = copy.finish(copy.command().arg("restore").arg(&backup));
    assert!(restored.status.success(), "{}", restored.stderr);
    assert!(copy.file(OTHER).exists() && !copy.file(STATE_FILE).exists());
    copy.cli_ok("create_task", json!({"id": "c", "description": "d"}));
    assert_eq!(document(&copy, OTHER)["tasks"].as_array().unwrap().len(), 3);

    // Damage is repaired under the name.
    fs::write(copy.file(OTHER), "{").unwrap();
    copy.cli_ok("create_task", json!({"id": "e", "description": "d"}));
    assert_eq!(document(&copy, OTHER)["tasks"].as_array().unwrap().len(), 4);
    assert!(!copy.file(STATE_FILE).exists());
}

#[test]
fn server_that_starts_alone_renames_the_file() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    configure(&board, OTHER);
    board.mcp().ok("create_task", json!({"description": "d"}));
    assert_eq!(document(&board, OTHER)["tasks"].as_array().unwrap().len(), 2);
    assert!(!board.file(STATE_FILE).exists());
}

/// Whichever process makes the board decides, and the other one is refused if it was asked for
/// another name.
#[test]
fn processes_that_make_a_board_at_once_agree_on_the_name() {
    for _ in 0..8 {
        let board = Board::new();
        let start = |arguments: &[&str]| {
            let mut command = board.command();
            command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut any = start(&["add", "one"]);
        let mut other = start(&["--state-file", OTHER, "add", "two"]);
        assert!(any.wait().unwrap().success());
        let is_agreed = other.wait().unwrap().success();
        let (made, absent) = if is_agreed { (OTHER, STATE_FILE) } else { (STATE_FILE, OTHER) };
        assert!(board.file(made).exists() && !board.file(absent).exists(), "{made}");
        assert_eq!(
            document(&board, made)["tasks"].as_array().unwrap().len(),
            if is_agreed { 2 } else { 1 }
        );
    }
}

#[test]
fn directory_with_a_renamed_file_is_a_boards() {
    let board = Board::new();
    let added = add(&board, board.command().arg("--state-file").arg(OTHER));
    assert!(added.status.success(), "{}", added.stderr);
    let copy = Board::new();
    fs::create_dir(copy.dir()).unwrap();
    for name in ["config.toml", OTHER] {
        fs::copy(board.file(name), copy.file(name)).unwrap();
    }
    fs::write(copy.file("notes.txt"), "mine").unwrap();
    copy.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(document(&copy, OTHER)["tasks"].as_array().unwrap().len(), 2);
}

/// The processes that are there go on under the old name, and what they write is what is looked at.
#[tokio::test]
async fn file_is_looked_for_under_its_old_name_until_it_is_renamed() {
    let board = Board::new();
    let program = Embedded::open(board.dir()).unwrap();
    let task = TaskInput { description: "d".to_owned(), ..Default::default() };
    program.call::<CreateTask>(task).await.unwrap();
    configure(&board, OTHER);
    assert_eq!(program.state_file(), board.file(STATE_FILE));
    assert_eq!(program.save_state().await.unwrap(), 2);
    let checks = board.finish(board.command().args(["--json", "doctor"])).value();
    let checks = checks["checks"].as_array().unwrap();
    let check =
        checks.iter().find(|check| check["name"] == STATE_FILE).expect("a check of the file");
    assert_eq!(check["verdict"], "ok", "{check}");
}
