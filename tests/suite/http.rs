//! The HTTP server as clients, strangers and attackers see it. Every point is tested on `/mcp` and
//! `/rpc` alike.

mod admission;
mod bodies;
mod browsers;
mod disconnect;
mod encrypted;
mod lifecycle;
mod load;
mod negotiation;
mod pressure;
mod secrets;

use serde_json::{Value, json};

use crate::harness::http::{Answer, Connection, Door, Request, Server};

/// Every way in, as a valid request.
fn ways_in(server: &Server) -> Vec<(&'static str, Request)> {
    let status = json!({"name": "get_status", "arguments": {}});
    vec![
        ("modern call", server.modern(1, "tools/call", status)),
        ("modern discovery", server.modern(1, "server/discover", json!({}))),
        ("legacy initialize", server.initialize(1)),
        ("stream of an unknown session", stray(server, "GET")),
        ("end of an unknown session", stray(server, "DELETE")),
        ("JSON-RPC call", server.rpc(1, "get_status", &json!({}))),
        ("WebSocket", server.upgrade()),
    ]
}

/// A request for a session that does not exist: with the token it is not found; without it nobody
/// looks.
fn stray(server: &Server, method: &str) -> Request {
    server
        .request(method, "/mcp")
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", "none")
}

/// Status of an answer whose body may be endless.
#[track_caller]
fn status(server: &Server, request: &Request) -> u16 {
    head(server, request).status
}

#[track_caller]
fn head(server: &Server, request: &Request) -> Answer {
    let mut connection = server.connect();
    connection.write(&request.bytes());
    connection.answer_head().unwrap_or_else(|| panic!("closed without an answer to {request:?}"))
}

/// Asserts that every way in answers `expected` to a request changed by `change`, and makes no
/// call.
#[track_caller]
fn refused(server: &Server, expected: u16, change: impl Fn(Request) -> Request) {
    let answers =
        ways_in(server).into_iter().map(|(way, request)| (way, status(server, &change(request))));
    let wrong: Vec<_> = answers.filter(|(_, status)| *status != expected).collect();
    assert_eq!(wrong, [("", 0); 0], "instead of {expected}");
    for door in Door::ALL {
        let id = format!("task-behind-{}", door.path().trim_start_matches('/'));
        let create = door.call(server, 1, "create_task", &json!({"description": "d", "id": id}));
        assert_eq!(status(server, &change(create)), expected, "{door:?}");
        let sought = door.ask(server, "get_task", &json!({"task_id": id}));
        assert!(sought.is_error, "{door:?} did what it refused: {}", sought.text);
    }
}

/// Asserts that no way in rejects a request changed by `change`.
#[track_caller]
fn admitted(server: &Server, change: impl Fn(Request) -> Request) {
    for (way, request) in ways_in(server) {
        let expected: &[u16] = match way {
            "WebSocket" => &[101],
            "stream of an unknown session" => &[404],
            // A session that does not exist has ended already.
            "end of an unknown session" => &[202, 204, 404],
            _ => &[200],
        };
        let status = status(server, &change(request));
        assert!(expected.contains(&status), "{way}: {status}");
    }
}

#[track_caller]
fn register(server: &Server, agent: &str) {
    Door::Rpc.ok(server, "register_agent", &json!({"agent_id": agent, "role": "worker"}));
}

fn waiting_claim(agent: &str) -> Value {
    json!({"agent_id": agent, "wait_seconds": 50})
}

/// Leaves a claim of `agent` waiting. Of two claims of one agent the newer supersedes the older, so
/// when one is answered, the other waits.
#[track_caller]
fn surely_waiting(server: &Server, agent: &str) -> Connection {
    let open = || {
        let mut connection = server.connect();
        connection.send(&server.rpc(1, "claim_task", &waiting_claim(agent)));
        connection
    };
    let (mut one, mut other) = (open(), open());
    let first =
        crate::harness::until(crate::harness::PATIENCE, "one of two claims is superseded", || {
            if one.is_readable() { Some(true) } else { other.is_readable().then_some(false) }
        });
    let superseded = if first { &mut one } else { &mut other };
    let answer = superseded.answer().expect("an answer to the superseded claim");
    assert_ne!(answer.message()["result"]["success"], true, "{}", answer.text());
    if first { other } else { one }
}

/// Sends another claim of the same agent with `begin`. Afterwards that one waits.
#[track_caller]
fn supersede<T>(mut waiting: Connection, begin: impl FnOnce() -> T) -> T {
    let begun = begin();
    waiting.answer().expect("an answer to the superseded claim");
    begun
}
