//! What a person sees when a board cannot be read or goes away, when a part of the process panics,
//! and of a board that a server has.

use std::fs;

use serde_json::json;

use super::terminal::Terminal;
use super::{Board, is_possible, lively, until_task};
use crate::harness::http::Server;
use crate::harness::remove_live;

/// Whether the process is in the terminal, and has not given it back.
fn is_shown(ui: &Terminal) -> bool {
    ui.raw().contains("[?1049h")
}

#[test]
fn a_board_that_cannot_be_read_is_said_before_the_terminal_is_taken() {
    if !is_possible() {
        return;
    }
    let (board, agents) = lively();
    drop(agents);
    fs::remove_file(board.file("journal.db")).unwrap();
    fs::create_dir(board.file("journal.db")).unwrap();
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("is a directory, so it is not used");
    assert_ne!(ui.code(), Some(0));
    assert!(!is_shown(&ui), "{}", ui.raw());
}

#[test]
fn a_board_that_is_deleted_under_it_is_put_back() {
    if !is_possible() {
        return;
    }
    let (board, agents) = lively();
    drop(agents);
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("WAITS FOR YOU");
    remove_live(board.dir());
    ui.keys("nA task after it\r");
    ui.shows("the task is added");
    let all = board.tasks();
    assert!(all.contains_key("made") && all.len() == 7, "{all:#?}");
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    assert!(ui.is_given_back(), "{}", ui.raw());
}

#[test]
fn a_board_that_is_replaced_under_it_is_said_and_what_is_typed_is_kept() {
    if !is_possible() {
        return;
    }
    let (board, agents) = lively();
    drop(agents);
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("WAITS FOR YOU");
    let other = Board::new();
    other.cli_ok("create_task", json!({"title": "Of another board", "description": "d"}));
    fs::rename(board.dir(), board.base().join("kept")).unwrap();
    fs::rename(other.dir(), board.dir()).unwrap();
    ui.keys("nA task after it\r");
    ui.shows("is another one now");
    ui.keys("n");
    ui.shows("A task after it");
    ui.keys("\u{1b}");
    ui.shows("not live: ");
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    assert!(ui.is_given_back(), "{}", ui.raw());
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "release builds have no failpoints")]
fn a_panic_is_reported_in_a_terminal_that_is_given_back() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    for (point, hit) in [("ui-draw", 3), ("ui-read", 2)] {
        let failpoint = format!("{point}:{hit}:panic");
        let mut ui = Terminal::start(&board, 80, 24, &[("CALLBOARD_FAILPOINT", &failpoint)]);
        ui.shows("WAITS FOR YOU");
        ui.keys("2");
        ui.shows("panicked at");
        ui.shows(&format!("failpoint {point}"));
        assert_eq!(ui.code(), Some(101), "{}", ui.contents());
        assert!(ui.is_given_back(), "{}", ui.raw());
        // Given back twice, a terminal puts the cursor over the report.
        assert_eq!(ui.raw().matches("[?1049l").count(), 1, "{}", ui.raw());
        assert!(!ui.contents().contains("WAITS FOR YOU"), "{}", ui.contents());
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "release builds have no failpoints")]
fn a_terminal_that_fails_ends_it_with_a_report() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    let mut ui = Terminal::start(&board, 80, 24, &[("CALLBOARD_FAILPOINT", "ui-draw:1:error")]);
    ui.shows("Input/output error");
    assert_ne!(ui.code(), Some(0));
    assert!(ui.is_given_back(), "{}", ui.raw());
}

#[test]
fn the_board_of_a_server_is_shown_and_acted_on() {
    if !is_possible() {
        return;
    }
    let (board, mut agents) = lively();
    let mut server = Server::on(&board);
    let elsewhere = Board::new();
    let url = format!("http://{}", server.address);
    let words = ["--server", &url, "ui"];
    let mut ui = Terminal::with(&elsewhere, &words, 100, 40, &[("CALLBOARD_TOKEN", &server.token)]);
    ui.shows("WAITS FOR YOU");
    ui.on("keep the old", "aYes, keep it\r");
    ui.shows("ada has your answer");
    ui.keys("2");
    ui.on("spans", "++");
    until_task(&board, "next", "sooner", |task| task["priority"] == 3);
    ui.on("unicode", "cy");
    until_task(&board, "drop", "cancelled", |task| task["status"] == "cancelled");
    ui.keys("u");
    ui.shows("cancelled #6");
    ui.keys("y");
    until_task(&board, "drop", "open again", |task| task["status"] == "available");
    ui.keys("1");
    agents.ok("create_task", json!({"title": "Brand new", "description": "d"}));
    ui.shows("Brand new");
    server.kill();
    ui.keys("nA task without a server\r");
    ui.shows(&url["http://".len()..]);
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    assert!(ui.is_given_back(), "{}", ui.raw());
    let mut absent =
        Terminal::with(&elsewhere, &words, 80, 24, &[("CALLBOARD_TOKEN", &server.token)]);
    absent.shows("cannot be reached");
    assert_eq!(absent.code(), Some(3));
    assert!(!is_shown(&absent), "{}", absent.raw());
}
