//! What clients say first over HTTP: the answers that they accept, and who they are; and what they
//! get first.

use serde_json::{Value, json};

use super::head;
use crate::harness::Board;
use crate::harness::http::{Door, Request, Server, Session, TEXT, WebSocket};

/// Media ranges that include both kinds of answers.
const ANYTHING: [&str; 6] = [
    "*/*",
    "application/*, text/*;q=0.5",
    "text/html, */*;q=0.1",
    "Application/JSON, text/event-stream",
    "application/json;q=0.2,*/*",
    "",
];

/// Lines of a stream up to its first message.
#[track_caller]
fn beginning(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.starts_with("data: {")).collect()
}

#[test]
fn no_stream_begins_with_an_event_that_is_no_message() {
    let board = Board::new();
    let server = Server::on(&board);
    let handshake = server.ask(&server.initialize(0));
    assert!(handshake.text().starts_with("data: {"), "{:?}", handshake.text());
    let session = Session::open(&server);
    let call = server.ask(&session.call(1, "get_status", &json!({})));
    let events: Vec<_> =
        call.text().split("\n\n").map(str::to_owned).filter(|event| !event.is_empty()).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].lines().any(|line| line.starts_with("data: {")), "{events:?}");
    let mut stream = session.stream();
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "coordination://status"}});
    assert_eq!(server.ask(&session.post(&listing)).status, 200);
    server.ask(&session.call(3, "create_task", &json!({"description": "d"})));
    while !String::from_utf8_lossy(&stream.unread).contains("coordination://status") {
        assert!(stream.read_more());
    }
    let told = String::from_utf8_lossy(&stream.unread).into_owned();
    let before = beginning(&told);
    assert!(
        !before.iter().any(|line| line.starts_with("data") || line.starts_with("retry")),
        "{told:?}"
    );
}

#[test]
fn whoever_accepts_anything_is_answered() {
    let board = Board::new();
    let server = Server::on(&board);
    let session = Session::open(&server);
    // Each has an id of its own, because the answer before may still be open.
    let kinds: [&dyn Fn(u64) -> Request; 5] = [
        &|id| server.initialize(id),
        &|id| server.modern(id, "tools/list", json!({})),
        &|id| server.modern(id, "server/discover", json!({})),
        &|id| session.call(id, "get_status", &json!({})),
        &|_| session.get("text/event-stream"),
    ];
    for request in kinds {
        let split = request(1).header("Accept", "application/json").and_header("Accept", "text/*");
        let ranges =
            ANYTHING.iter().zip(3..).map(|(ranges, id)| request(id).header("Accept", ranges));
        for request in ranges.chain([request(2).without("Accept"), split]) {
            assert_eq!(head(&server, &request).status, 200, "{request:?}");
        }
    }
}

#[test]
fn answer_that_is_not_accepted_is_not_sent_and_the_reason_is() {
    let board = Board::new();
    let server = Server::on(&board);
    let session = Session::open(&server);
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "create_task", "arguments": {"description": "d"}}});
    let refused = |request: Request, ranges: &str| {
        let answer = server.ask(&request.header("Accept", ranges));
        let error: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let why = error["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            answer.status == 406 && why.contains("Accept: "),
            "{ranges}: {} {}",
            answer.status,
            answer.text()
        );
    };
    for ranges in ["text/html", "application/json", "*/*;q=0", "*/*, text/event-stream;q=0"] {
        refused(server.initialize(1), ranges);
        refused(session.post(&create), ranges);
        refused(session.get("x/y"), ranges);
        refused(server.modern(1, "subscriptions/listen", json!({"notifications": {}})), ranges);
    }
    let call = server.modern(1, "tools/call", create["params"].clone());
    for ranges in ["text/html", "text/event-stream", "*/*, application/json;q=0"] {
        refused(call.clone(), ranges);
    }
    assert!(!board.file("journal.db").exists(), "a refused call was carried out");
    // These are answered by one JSON text.
    for ranges in ["application/json", "application/*", "application/json, text/html;q=0.5"] {
        assert_eq!(server.ask(&call.clone().header("Accept", ranges)).status, 200, "{ranges}");
    }
}

#[test]
fn client_need_not_say_who_it_is_but_which_revision_it_speaks() {
    let board = Board::new();
    let server = Server::on(&board);
    let hello = |params: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params});
        server.ask(&server.initialize(7).with_body(call.to_string()))
    };
    for rest in
        [json!({}), json!({"clientInfo": null}), json!({"clientInfo": {}, "capabilities": {}})]
    {
        let mut params = rest;
        params["protocolVersion"] = json!("2025-06-18");
        let answer = hello(params);
        assert_eq!(
            answer.message()["result"]["protocolVersion"],
            "2025-06-18",
            "{}",
            answer.text()
        );
        assert!(answer.header("mcp-session-id").is_some());
    }
    for (params, field) in [
        (json!({}), "protocolVersion"),
        (json!({"protocolVersion": 7, "capabilities": {}}), "protocolVersion"),
        (
            json!({"protocolVersion": "", "clientInfo": {"name": "a", "version": "1"}}),
            "protocolVersion",
        ),
        (json!({"protocolVersion": "2025-06-18", "clientInfo": "me"}), "clientInfo"),
    ] {
        let answer = hello(params);
        let message: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let error = (answer.status, &message["error"]["code"], &message["id"]);
        assert_eq!(error, (400, &json!(-32602), &json!(7)), "{}", answer.text());
        assert!(
            message["error"]["message"].as_str().unwrap_or_default().contains(field),
            "{}",
            answer.text()
        );
    }
}

#[test]
fn byte_order_mark_before_a_body_is_skipped() {
    let board = Board::new();
    let server = Server::on(&board);
    for request in [
        server.initialize(1),
        server.modern(1, "tools/list", json!({})),
        server.rpc(1, "get_status", &json!({})),
        server
            .post("/rpc", json!([{"jsonrpc": "2.0", "id": 1, "method": "get_status"}]).to_string()),
    ] {
        let marked = [b"\xef\xbb\xbf", &request.body[..]].concat();
        assert_eq!(server.ask(&request.clone().with_body(marked)).status, 200, "{request:?}");
        let twice = [b"\xef\xbb\xbf\xef\xbb\xbf", &request.body[..]].concat();
        assert_eq!(server.ask(&request.with_body(twice)).status, 400);
    }
}

#[test]
fn byte_order_mark_before_a_message_on_a_web_socket_is_skipped() {
    let board = Board::new();
    let server = Server::on(&board);
    let mut socket = WebSocket::open(&server);
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "get_status", "params": {}});
    assert!(socket.frame(TEXT, format!("\u{feff}{call}").as_bytes()));
    assert_eq!(socket.answer(7)["result"]["total_tasks"], 0);
}

#[test]
fn arguments_are_understood_alike_at_every_door() {
    let board = Board::new();
    let server = Server::on(&board);
    for arguments in [
        json!({"description": "d", "labels": ["a"]}),
        json!({"description": "d", "priority": "3"}),
        json!({"description": "d", "agent_id": "w"}),
        json!({"title": "only"}),
        json!({"params": {"title": "only"}}),
    ] {
        for door in [Door::Rpc, Door::Mcp] {
            door.ok(&server, "create_task", &arguments);
        }
    }
    let unknown = json!({"task_id": "1", "force": true});
    for door in [Door::Rpc, Door::Mcp] {
        let reply = door.ask(&server, "cancel_task", &unknown);
        assert!(
            reply.code() == "bad_arguments" && reply.text.contains("it takes"),
            "{}",
            reply.text
        );
    }
}
