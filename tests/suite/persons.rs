//! The names of people: in the history, in reviews and in answers, by the terminal and over HTTP.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::access::tokens::added;
use crate::harness::http::Server;
use crate::harness::{Board, Finished, PATIENCE, until};

/// A command of the person with this name.
fn by(board: &Board, name: &str, arguments: &[&str]) -> Finished {
    board.finish(board.command().env("CALLBOARD_ME", name).args(arguments))
}

#[track_caller]
fn says(finished: Finished) -> String {
    assert_eq!(finished.status.code(), Some(0), "{}{}", finished.stdout, finished.stderr);
    finished.stdout
}

/// The actors of all events, oldest first.
fn actors(board: &Board) -> Vec<String> {
    let history = says(board.finish(board.command().args(["--json", "history"])));
    let history: Value = serde_json::from_str(&history).unwrap();
    let events = history["events"].as_array().unwrap().iter().rev();
    events.filter_map(|event| event["actor"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_history_says_which_person_did_what() {
    let board = Board::new();
    says(by(&board, "ada", &["add", "Lexer", "--id", "t"]));
    says(by(&board, "bob", &["edit", "t", "--priority", "1"]));
    says(by(&board, "human", &["pause"]));
    assert_eq!(actors(&board), ["~ada", "~bob", "human"]);
    let told = says(by(&board, "ada", &["history"]));
    assert!(told.contains(" ada added #1") && told.contains(" bob changed #1"), "{told}");
    assert!(!told.contains('~'), "{told}");
    let of = |name: &str| says(by(&board, "eve", &["history", "--of", name])).lines().count();
    assert_eq!((of("ada"), of("bob"), of("eve"), of("human")), (1, 1, 1, 3));
    let log = says(by(&board, "eve", &["log", "bob"]));
    assert!(log.contains("bob changed #1") && log.lines().count() == 1, "{log}");
}

#[test]
fn undo_takes_back_what_the_same_person_did() {
    let board = Board::new();
    says(by(&board, "ada", &["add", "Lexer", "--id", "t"]));
    says(by(&board, "ada", &["edit", "t", "--priority", "1"]));
    says(by(&board, "bob", &["edit", "t", "--title", "Scanner"]));
    says(by(&board, "ada", &["undo"]));
    let task = board.task("t");
    assert_eq!((&task["priority"], &task["title"]), (&json!(5), &json!("Scanner")));
}

#[test]
fn reviews_and_answers_carry_the_name() {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("w1");
    worker.ok("create_task", json!({"description": "Lexer", "id": "t", "review": "required"}));
    worker.ok("claim_task", json!({"agent_id": "w1"}));
    worker.ok("complete_task", json!({"agent_id": "w1", "task_id": "t", "output": "names"}));
    says(by(&board, "ada", &["reject", "t", "no tests"]));
    assert!(says(by(&board, "bob", &["show", "t"])).contains("sent back by ada"));
    let again = worker.ok("claim_task", json!({"agent_id": "w1"}));
    assert_eq!(again["handoff"]["last_attempt"]["rejected_by"], "ada", "{again}");
    let question = json!({"agent_id": "w1", "question": "Tabs?"});
    worker.ok("ask_human", question.clone());
    says(by(&board, "bob", &["answer", "Q1", "Spaces"]));
    let late = by(&board, "ada", &["answer", "Q1", "Tabs"]);
    assert!(late.stderr.contains("by bob: Spaces"), "{}", late.stderr);
    let answered = worker.ok("ask_human", question);
    assert_eq!(
        (&answered["answer"], &answered["answered_by"]),
        (&json!("Spaces"), &json!("bob")),
        "{answered}"
    );
    assert_eq!(board.document()["messages"][1]["from"], "human", "that stays the address");
}

#[test]
fn the_name_is_the_configured_one_or_the_system_s() {
    let board = Board::new();
    let system = Command::new("id").arg("-un").output().unwrap().stdout;
    let system = String::from_utf8(system).unwrap().trim().to_owned();
    let add = |id: &str| {
        let mut command = board.command();
        command.env_remove("CALLBOARD_ME").args(["add", id, "--id", id]);
        board.finish(command.env("XDG_CONFIG_HOME", board.base().join("config")))
    };
    says(add("a"));
    let dir = board.base().join("config/callboard");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), "me = \"grace\"\n").unwrap();
    says(add("b"));
    assert_eq!(actors(&board), [format!("~{system}"), "~grace".to_owned()]);
    fs::write(dir.join("config.toml"), "me = \"a b\"\n").unwrap();
    let mut doctor = board.command();
    let said =
        board.finish(doctor.arg("doctor").env("XDG_CONFIG_HOME", board.base().join("config")));
    assert!(said.stdout.contains("line 1: `me`"), "doctor names the fault: {}", said.stdout);
}

#[test]
fn over_http_the_owner_gives_a_name_and_a_token_has_one() {
    let board = Board::new();
    let server = Server::on(&board);
    let url = format!("http://{}", server.address);
    let there = |name: &str, token: &str, arguments: &[&str]| {
        let mut command = board.command();
        command.env("CALLBOARD_ME", name).env("CALLBOARD_TOKEN", token);
        board.finish(command.args(["--server", &url]).args(arguments))
    };
    says(there("ada", &server.token, &["add", "a", "--id", "a"]));
    let token = added(&board, &["carol", "--role", "leader"]);
    // A token says who comes, whatever the caller says.
    until(PATIENCE, "the server knows the token", || {
        let added = there("ada", &token, &["add", "b", "--id", "b"]);
        added.status.success().then_some(())
    });
    assert_eq!(actors(&board).last().unwrap(), "~carol");
    assert!(actors(&board).contains(&"~ada".to_owned()));
}
