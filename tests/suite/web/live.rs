//! Open pages: what they are sent when the board changes.

use rustix::process::Signal;
use serde_json::json;

use super::Browser;
use crate::harness::http::{Connection, Server};
use crate::harness::{Board, PATIENCE};

/// The stream of an open page, and what it was sent.
struct Open {
    connection: Connection,
    text: String,
}

impl Open {
    /// Opens the stream of the first screen, as the page that shows event `seq` does.
    #[track_caller]
    fn of(browser: &Browser, has: &str) -> Self {
        let path = "/live?page=%2F".to_owned() + if has.is_empty() { "" } else { "&seq=" } + has;
        let mut connection = browser.server.connect();
        connection.write(&browser.request("GET", &path).bytes());
        let answer = connection.answer_head().expect("an answer");
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/event-stream"))
        );
        Self { connection, text: String::new() }
    }

    /// Reads until `wanted` was sent.
    #[track_caller]
    fn gets(&mut self, wanted: &str) -> &str {
        while !self.text.contains(wanted) {
            let chunk = self.connection.chunk();
            let chunk = chunk.unwrap_or_else(|| panic!("it ended without {wanted}: {}", self.text));
            self.text.push_str(&String::from_utf8(chunk).unwrap());
        }
        &self.text
    }
}

fn add(board: &Board, id: &str, title: &str) {
    board.cli_ok("create_task", json!({"id": id, "title": title, "description": "d"}));
}

#[test]
fn open_page_gets_the_sections_that_changed() {
    let board = Board::new();
    add(&board, "t1", "First");
    add(&board, "t2", "Other");
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let page = browser.get("/").text();
    let address = page.split_once("hx-sse:connect=\"").unwrap().1.split_once('"').unwrap().0;
    let seq = address.split_once("&amp;seq=").unwrap().1;
    let mut open = Open::of(&browser, seq);
    board.cli_ok("update_task", json!({"task_id": "t2", "title": "Second"}));
    let text = open.gets("Second");
    assert!(text.contains(r##"hx-target="#next""##), "{text}");
    assert!(!text.contains(r##"hx-target="#waits""##), "it is as it was: {text}");
    assert_eq!(text.matches("\nid: ").count() + usize::from(text.starts_with("id: ")), 1, "{text}");
}

#[test]
fn page_that_missed_changes_gets_them_and_one_of_another_server_gets_all() {
    let board = Board::new();
    add(&board, "t1", "First");
    let mut server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let cookie = browser.cookie.clone();
    let mut open = Open::of(&browser, "");
    let text = open.gets("First");
    let id = text.split_once("id: ").unwrap().1.lines().next().unwrap().to_owned();
    let mut other = Open::of(&browser, "");
    other.gets("First");
    drop(open);
    add(&board, "t2", "Second");
    other.gets("Second");
    let again = |browser: &Browser, id: &str| {
        let request = browser.request("GET", "/live?page=%2F&seq=1").header("Last-Event-ID", id);
        let mut connection = browser.server.connect();
        connection.write(&request.bytes());
        connection.answer_head().expect("an answer");
        Open { connection, text: String::new() }
    };
    let mut back = again(&browser, &id);
    let text = back.gets("Second");
    assert!(!text.contains(r#"hx-target="main""#), "{text}");
    server.signal(Signal::TERM);
    server.ends_within(PATIENCE);
    add(&board, "t3", "Third");
    let server = Server::on(&board);
    let browser = Browser { cookie, ..Browser::at(&server) };
    let text = again(&browser, &id).gets("Third").to_owned();
    assert!(text.contains(r#"hx-target="main""#), "{text}");
}

#[test]
fn stream_is_for_visitors_only_and_ends_with_their_token() {
    let board = Board::new();
    let server = Server::on(&board);
    let stranger = Browser::at(&server);
    assert_eq!(stranger.get("/live?page=%2F").status, 401);
    let browser = Browser::logged_in(&server);
    let mut open = Open::of(&browser, "");
    open.gets("id: ");
    let _other = Server::with(&board, &["--new-token"], &[]);
    while open.connection.chunk().is_some() {}
}
