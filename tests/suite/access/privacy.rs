//! Messages are for their sender, their recipients, leaders and the person: a token of anybody else
//! reads no text of them, whichever way it asks.

use serde_json::{Value, json};

use super::tokens::{added, smallest, with};
use crate::harness::Board;
use crate::harness::http::{Door, Server, Session, WebSocket};

const SECRET: &str = "planted-4711";

/// A board on which `alice`, `bob` and the person have written to each other, restored once, so that
/// an event has them all.
fn board_with_secrets() -> Board {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t1", "description": "x"}));
    board.cli_ok("create_task", json!({"id": "t2", "description": "x"}));
    for agent in ["alice", "bob", "carol"] {
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
    }
    board.cli_ok("register_agent", json!({"agent_id": "boss", "role": "leader"}));
    board.cli_ok("claim_task", json!({"agent_id": "bob", "task_id": "t1"}));
    for (from, to) in [
        ("alice", "bob"),
        ("alice", "human"),
        ("bob", "boss"),
        ("boss", "task:t1"),
        ("alice", "role:leader"),
    ] {
        let text = format!("{SECRET} from {from} to {to}");
        let message = json!({"agent_id": from, "to": to, "text": text, "task_id": "t2",
            "kind": "request", "idempotency_key": format!("{from} {to}")});
        board.cli_ok("send_message", message);
    }
    let choices = [format!("{SECRET} yes"), format!("{SECRET} no")];
    let question =
        json!({"agent_id": "alice", "question": SECRET, "options": choices, "task_id": "t2"});
    board.cli_ok("ask_human", question);
    let typed = format!("{SECRET} from the person to alice");
    let typed = board.finish(board.command().args(["send", "alice", &typed]));
    assert!(typed.status.success(), "{}", typed.stderr);
    let snapshot = board.cli_ok("create_snapshot", json!({"label": "one"}));
    board.cli_ok("restore_snapshot", json!({"snapshot": snapshot["snapshot"]}));
    board.cli_ok("send_message", json!({"agent_id": "alice", "to": "bob", "text": SECRET}));
    board
}

/// What a token gets to read: each operation's reply with several arguments over both transports,
/// each resource, and each stream from the beginning.
fn all_that_is_told(board: &Board, server: &Server, token: &str) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for entry in callboard::ops::all() {
        let mut arguments = vec![smallest(entry)];
        let schema = Value::Object(entry.input_schema(false));
        for more in [
            json!({"since_seq": 0, "limit": 1000}),
            json!({"agent": "bob"}),
            json!({"task_id": "t2"}),
            json!({"kinds": ["message_sent"]}),
            json!({"from": "1"}),
            json!({"format": "json"}),
        ] {
            let known = more.as_object().unwrap().keys();
            if known.into_iter().all(|name| schema["properties"].get(name).is_some()) {
                let mut one = smallest(entry);
                one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                arguments.push(one);
            }
        }
        for arguments in &arguments {
            for door in Door::ALL {
                let answer = server.ask(&with(door.call(server, 1, entry.name, arguments), token));
                told.push((format!("{door:?} {} {arguments}", entry.name), answer.text()));
            }
        }
    }
    let listed = server.ask(&with(server.modern(1, "resources/list", json!({})), token));
    let uris = listed.message()["result"]["resources"].as_array().unwrap().clone();
    assert!(uris.len() > 5, "{uris:?}");
    for uri in uris.iter().map(|one| &one["uri"]) {
        let read = server.modern(1, "resources/read", json!({"uri": uri}));
        let read = read.header("Mcp-Name", uri.as_str().unwrap());
        let answer = server.ask(&with(read, token));
        assert_eq!(answer.status, 200, "{uri}: {}", answer.text());
        told.push((uri.to_string(), answer.text()));
    }
    let head = board.document()["seq"].as_u64().unwrap();
    let mut socket = WebSocket::with(server, &with(server.upgrade(), token));
    socket.send(1, "subscribe_events", &json!({"since_seq": 0}));
    loop {
        let event = socket.next().expect("events up to the last");
        told.push(("subscribe_events".to_owned(), event.to_string()));
        if event["params"]["result"]["seq"].as_u64().is_some_and(|seq| seq >= head) {
            break;
        }
    }
    for path in ["/runs", "/metrics"] {
        let answer = server.ask(&with(server.request("GET", path), token));
        told.push((path.to_owned(), answer.text()));
    }
    told
}

#[test]
fn texts_of_messages_are_for_those_whom_they_concern() {
    let board = board_with_secrets();
    let server = Server::on(&board);
    for arguments in [&["--agent", "carol"][..], &["--role", "observer"], &["--name", "any"]] {
        let token = added(&board, arguments);
        let told = all_that_is_told(&board, &server, &token);
        let leaks: Vec<_> = told.iter().filter(|(_, text)| text.contains(SECRET)).collect();
        assert!(leaks.is_empty(), "{arguments:?}: {leaks:?}");
        let sent = told
            .iter()
            .filter(|(way, text)| way == "subscribe_events" && text.contains("\"message_sent\""));
        // What the token itself asks the person comes on top.
        assert!(sent.count() >= 8, "each is an event for everybody");
    }
    let texts = |arguments: &[&str]| {
        let token = added(&board, arguments);
        let history = with(Door::Rpc.call(&server, 1, "get_history", &history()), &token);
        server.ask(&history).text().matches(SECRET).count()
    };
    assert_eq!(texts(&["--agent", "bob"]), 4, "one sent, three received");
    assert_eq!(texts(&["--role", "leader"]), 10, "one has two answers to choose from");
    let own = Door::Rpc.ask(&server, "get_history", &history());
    assert_eq!(own.text.matches(SECRET).count(), 10, "the person reads all");
}

fn history() -> Value {
    json!({"kinds": ["message_sent"], "limit": 1000})
}

#[test]
fn event_without_its_text_has_the_same_seq_and_everything_else() {
    let board = board_with_secrets();
    let server = Server::on(&board);
    let carol = added(&board, &["--agent", "carol"]);
    let own = Door::Rpc.ok(&server, "get_history", &history());
    let others = server.ask(&with(server.rpc(1, "get_history", &history()), &carol)).message();
    let pairs = own["events"]
        .as_array()
        .unwrap()
        .iter()
        .zip(others["result"]["events"].as_array().unwrap());
    assert_eq!(pairs.len(), 8);
    for (own, other) in pairs {
        let mut cut = own.clone();
        for said in ["text", "options"] {
            cut["message"].as_object_mut().unwrap().remove(said);
        }
        cut["message"]["private"] = json!(true);
        cut.as_object_mut().unwrap().remove("idempotency");
        assert_eq!(other, &cut);
    }
}

#[test]
fn session_of_another_token_can_be_neither_used_nor_ended() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t1", "description": "x"}));
    let server = Server::on(&board);
    let tokens = [&["--name", "one"][..], &["--name", "two"]].map(|name| added(&board, name));
    let opened = server.ask(&with(server.initialize(0), &tokens[0]));
    let id = opened.header("mcp-session-id").expect("a session id").to_owned();
    let session = Session { server: &server, id };
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for stranger in [&tokens[1], &server.token] {
        let attempts = [session.end(), session.post(&list), session.get("text/event-stream")];
        for attempt in attempts {
            let answer = server.ask(&with(attempt, stranger));
            assert_eq!(answer.status, 404, "{}", answer.text());
            assert!(answer.text().contains("initialize"), "{}", answer.text());
        }
    }
    assert_eq!(server.ask(&with(session.post(&list), &tokens[0])).status, 200);
    let id = session.id.clone();
    drop(server);
    // A server that has been restarted does not know whose session it was.
    let server = Server::on(&board);
    let session = Session { server: &server, id };
    assert_eq!(server.ask(&with(session.end(), &tokens[1])).status, 204);
    assert_eq!(server.ask(&with(session.post(&list), &tokens[0])).status, 200);
    assert_eq!(server.ask(&with(session.end(), &tokens[0])).status, 204);
    assert_eq!(server.ask(&with(session.post(&list), &tokens[0])).status, 404);
}
