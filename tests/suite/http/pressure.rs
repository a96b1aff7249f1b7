//! The doors under pressure: who only connects, who calls without end, who sends nothing more, and
//! who does not mask what is sent.

use std::fs;

use serde_json::{Value, json};

use super::{register, ways_in};
use crate::access::tokens::{added, with};
use crate::harness::http::{Connection, Door, Server, TEXT, WebSocket, reply};
use crate::harness::{Board, PATIENCE, until};

/// Connections of a server that may have so many files.
const FEW: usize = 64 + 16;

#[test]
fn silent_connections_shut_out_none_with_a_token() {
    let board = Board::new();
    let server = Server::with_files(&board, FEW);
    let status = Door::Rpc.call(&server, 1, "get_status", &json!({}));
    let mut first = server.connect();
    assert_eq!(first.ask(&status).status, 200);
    let mut socket = WebSocket::open(&server);
    let half = status.head();
    let mut silent = Vec::new();
    for number in 0..200 {
        let mut connection = server.connect();
        match number % 4 {
            0 => {}
            1 => drop(connection.write(&half[..half.len() / 2])),
            2 => drop(connection.write(&server.request("GET", "/healthz").bytes())),
            _ => drop(connection.write(b"GET /mcp HTTP/1.1\r\nHost: local")),
        }
        silent.push(connection);
        if number % 20 == 19 {
            assert_eq!(server.ask(&status).status, 200, "a new one after {number}");
        }
    }
    assert_eq!(first.ask(&status).status, 200, "one that was there before");
    socket.send(1, "get_status", &json!({}));
    assert!(!reply(&socket.answer(1)).is_error);
    assert!(server.log().contains("a silent one was closed"), "{}", server.log());
}

#[test]
fn where_all_have_a_token_a_new_connection_is_closed() {
    let board = Board::new();
    let server = Server::with_files(&board, FEW);
    let status = Door::Rpc.call(&server, 1, "get_status", &json!({}));
    let connect = || {
        let mut connection = server.connect();
        let answer = connection.write(&status.bytes()).then(|| connection.answer()).flatten();
        answer.map(|_| connection)
    };
    let mut kept: Vec<Connection> = (0..16).filter_map(|_| connect()).collect();
    assert_eq!(kept.len(), 16);
    assert!(connect().is_none() && server.log().contains("a new one was closed"));
    assert!(kept.iter_mut().all(|one| one.ask(&status).status == 200));
    kept.pop();
    until(PATIENCE, "the place is free again", connect);
}

fn calls(many: usize) -> String {
    let call = |id| json!({"jsonrpc": "2.0", "id": id, "method": "get_status", "params": {}});
    Value::from((0..many).map(call).collect::<Vec<_>>()).to_string()
}

fn codes(answers: &Value) -> Vec<&str> {
    let each = answers.as_array().unwrap().iter();
    each.map(|one| one["error"]["data"]["code"].as_str().unwrap_or("")).collect()
}

#[test]
fn calls_of_one_token_are_bounded_and_those_of_others_go_on() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    fs::write(board.file("config.toml"), "rate = 2\n").unwrap();
    let server = Server::on(&board);
    let tokens =
        [&["--name", "busy"][..], &["--name", "calm"], &["--name", "fast", "--rate", "500"]];
    let [busy, calm, fast] = tokens.map(|token| added(&board, token));
    let batch = |token: &str| server.ask(&with(server.post("/rpc", calls(60)), token)).message();
    let answers = batch(&busy);
    let refused = answers.as_array().unwrap().iter().find(|one| one["error"].is_object()).unwrap();
    let data = &refused["error"]["data"];
    assert_eq!((&data["code"], &data["retry_after"]), (&json!("rate_limited"), &json!(1)));
    assert!(codes(&answers).iter().filter(|code| code.is_empty()).count() >= 2);
    assert!(!codes(&batch(&fast)).contains(&"rate_limited"), "its own rate goes first");
    for door in Door::ALL {
        let call = with(door.call(&server, 1, "get_status", &json!({})), &busy);
        let answer = until(PATIENCE, "it is told so", || {
            Some(server.ask(&call)).filter(|answer| answer.status == 429)
        });
        assert_eq!(answer.header("Retry-After"), Some("1"));
        let error = answer.message()["error"].clone();
        assert_eq!(error["data"]["code"], "rate_limited", "{error}");
        assert!(error["message"].as_str().unwrap().contains("call again in 1 s"), "{error}");
        let other = server.ask(&with(door.call(&server, 1, "get_status", &json!({})), &fast));
        assert_eq!(other.status, 200, "another token's");
    }
    let runs = until(PATIENCE, "it is told so", || {
        let answer = server.ask(&with(server.request("GET", "/runs"), &busy));
        Some(answer).filter(|answer| answer.status == 429)
    });
    assert!(runs.header("Retry-After").is_some());
    let mut socket = WebSocket::with(&server, &with(server.upgrade(), &calm));
    for id in 1..=60 {
        socket.send(id, "get_status", &json!({}));
    }
    let codes: Vec<_> = (0..60).map(|_| reply(&socket.next().unwrap()).code().to_owned()).collect();
    assert!(codes.contains(&String::new()) && codes.contains(&"rate_limited".to_owned()));
    until(PATIENCE, "time gives it more", || {
        (server.ask(&with(server.rpc(1, "get_status", &json!({})), &busy)).status == 200)
            .then_some(())
    });
}

#[test]
fn rate_is_generous_where_none_is_set_and_must_be_one() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    let server = Server::on(&board);
    let token = added(&board, &[]);
    for token in [&token, &server.token] {
        for _ in 0..5 {
            let answers = server.ask(&with(server.post("/rpc", calls(60)), token)).message();
            assert!(codes(&answers).iter().all(|code| code.is_empty()), "{answers}");
        }
    }
    let listed = board.finish(board.command().args(["--json", "token", "list"])).value();
    assert_eq!(listed["tokens"][0]["rate"], Value::Null);
    let none = board.finish(board.command().args(["token", "add", "--rate", "0"]));
    assert_eq!(none.status.code(), Some(2), "{}", none.stderr);
}

#[test]
fn who_sends_nothing_more_is_answered() {
    let board = Board::new();
    let server = Server::on(&board);
    for (way, request) in ways_in(&server) {
        let mut connection = server.connect();
        connection.send(&request);
        connection.close_sending();
        let head = connection.answer_head().unwrap_or_else(|| panic!("{way}: no answer"));
        assert!(matches!(head.status, 101 | 200..300 | 404), "{way}: {head:?}");
    }
    for number in 0..20 {
        for door in Door::ALL {
            let id = format!("{door:?}-{number}");
            let create =
                door.call(&server, 1, "create_task", &json!({"id": id, "description": "d"}));
            let mut connection = server.connect();
            connection.send(&create);
            connection.close_sending();
            let answer = connection.answer().unwrap_or_else(|| panic!("{id}: no answer"));
            assert!(!reply(&answer.message()).is_error, "{}", answer.text());
        }
    }
    register(&server, "waits");
    let claim = json!({"agent_id": "waits", "wait_seconds": 50});
    for task in board.tasks().keys() {
        Door::Rpc.ok(&server, "cancel_task", &json!({"task_id": task}));
    }
    // Something is left to wait for.
    Door::Rpc.ok(&server, "create_task", &json!({"id": "held", "description": "d"}));
    register(&server, "holds");
    Door::Rpc.ok(&server, "claim_task", &json!({"agent_id": "holds", "task_id": "held"}));
    let mut connection = server.connect();
    connection.send(&server.rpc(1, "claim_task", &claim));
    connection.close_sending();
    let answer = connection.answer().expect("an answer before the wait is over");
    assert_eq!(reply(&answer.message()).code(), "gone", "{}", answer.text());
}

#[test]
fn web_socket_that_does_not_mask_its_frames_is_closed() {
    let board = Board::new();
    let server = Server::on(&board);
    let create = |id: &str| {
        let params = json!({"id": id, "description": "d"});
        json!({"jsonrpc": "2.0", "id": 1, "method": "create_task", "params": params}).to_string()
    };
    for before in [0, 1, 3] {
        let mut socket = WebSocket::open(&server);
        for number in 0..before {
            let id = format!("masked-{before}-{number}");
            assert!(socket.frame(TEXT, create(&id).as_bytes()));
            assert!(!reply(&socket.answer(1)).is_error);
        }
        let message = create("unmasked");
        let mut frame = vec![0x80 | TEXT, message.len() as u8];
        assert!(message.len() < 126);
        frame.extend(message.as_bytes());
        socket.connection.write(&frame);
        assert_eq!(socket.next(), None, "it is closed");
    }
    assert!(!board.tasks().contains_key("unmasked"));
    assert_eq!(board.tasks().len(), 4);
}
