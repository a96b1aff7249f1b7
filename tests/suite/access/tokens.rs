//! Tokens with roles, through a real server: what each allows over every transport, and how it
//! ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::http::{Door, Request, Server, WebSocket, reply};
use crate::harness::{Board, PATIENCE, Reply, until};

fn token(board: &Board, arguments: &[&str]) -> Value {
    let finished = board.finish(board.command().args(["--json", "token"]).args(arguments));
    assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    finished.value()
}

/// The text of a new token.
pub(crate) fn added(board: &Board, arguments: &[&str]) -> String {
    token(board, &[&["add"], arguments].concat())["token"].as_str().unwrap().to_owned()
}

pub(crate) fn with(request: Request, token: &str) -> Request {
    request.header("Authorization", &format!("Bearer {token}"))
}

/// Makes a call with a token over each transport; all must give the same reply.
#[track_caller]
fn ask(server: &Server, token: &str, operation: &str, arguments: &Value) -> Reply {
    let replies = Door::ALL.map(|door| {
        let answer = server.ask(&with(door.call(server, 1, operation, arguments), token));
        assert_eq!(answer.status, 200, "{door:?} {operation}: {}", answer.text());
        reply(&answer.message())
    });
    let mut socket = WebSocket::with(server, &with(server.upgrade(), token));
    socket.send(1, operation, arguments);
    let over_socket = reply(&socket.answer(1));
    for other in &replies {
        assert_eq!(
            other.code(),
            over_socket.code(),
            "{operation}: {} {}",
            other.text,
            over_socket.text
        );
    }
    over_socket
}

#[track_caller]
fn refused(server: &Server, token: &str, operation: &str, arguments: Value, code: &str) {
    let reply = ask(server, token, operation, &arguments);
    assert_eq!(reply.code(), code, "{operation} {arguments}: {}", reply.text);
    assert!(reply.text.contains("token") || code != "token_role", "{}", reply.text);
}

#[track_caller]
fn allowed(server: &Server, token: &str, operation: &str, arguments: Value) {
    let reply = ask(server, token, operation, &arguments);
    assert!(!reply.is_error, "{operation} {arguments}: {}", reply.text);
}

fn board_with_tasks() -> Board {
    let board = Board::new();
    for id in ["t1", "t2", "t3"] {
        board.cli_ok("create_task", json!({"id": id, "description": "x"}));
    }
    board.cli_ok("register_agent", json!({"agent_id": "boss", "role": "leader"}));
    board.cli_ok("register_agent", json!({"agent_id": "other", "role": "worker"}));
    board
}

#[test]
fn observers_read_and_change_nothing() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let observer = added(&board, &["--role", "observer"]);
    let before = board.document()["seq"].clone();
    for operation in callboard::ops::all().iter().filter(|entry| !entry.annotations.read_only) {
        let arguments = smallest(operation);
        refused(&server, &observer, operation.name, arguments, "token_role");
    }
    for read in [
        "get_status",
        "get_board",
        "get_report",
        "get_all_tasks",
        "get_agents",
        "get_discoveries",
        "get_master_plan",
        "get_results",
    ] {
        allowed(&server, &observer, read, json!({}));
    }
    allowed(&server, &observer, "get_task", json!({"task_id": "t1"}));
    assert_eq!(board.document()["seq"], before);
}

/// Arguments that the operation accepts.
pub(super) fn smallest(operation: &callboard::ops::Entry) -> Value {
    let schema = Value::Object(operation.input_schema(false));
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = required.iter().map(|name| {
        let name = name.as_str().unwrap();
        let property = &schema["properties"][name];
        let value = match (property["enum"][0].clone(), property["type"].as_str()) {
            (value @ Value::String(_), _) => value,
            (_, Some("array")) => json!([]),
            (_, Some("object")) => json!({}),
            (_, Some("integer" | "number")) => json!(1),
            (_, Some("boolean")) => json!(true),
            _ => json!("t1"),
        };
        (name.to_owned(), value)
    });
    Value::Object(fields.collect())
}

#[test]
fn workers_work_and_do_not_lead() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let worker = added(&board, &[]);
    allowed(
        &server,
        &worker,
        "register_agent",
        json!({"agent_id": "w1", "role": "worker", "max_concurrent": 5}),
    );
    allowed(&server, &worker, "claim_task", json!({"agent_id": "w1", "task_id": "t1"}));
    allowed(
        &server,
        &worker,
        "create_task",
        json!({"description": "found on the way", "id": "t9", "idempotency_key": "k"}),
    );
    let leading = [
        ("init_coordination", json!({"goal": "mine"})),
        ("register_agent", json!({"agent_id": "w2", "role": "leader"})),
        ("cancel_task", json!({"agent_id": "boss", "task_id": "t2"})),
        ("cancel_task", json!({"agent_id": "human", "task_id": "t2"})),
        ("pause", json!({"agent_id": "boss"})),
        ("heartbeat", json!({"agent_id": "boss"})),
        ("update_task", json!({"agent_id": "boss", "task_id": "t2", "priority": 1})),
    ];
    for (operation, arguments) in leading {
        refused(&server, &worker, operation, arguments.clone(), "token_role");
        if callboard::ops::find(operation).is_some_and(|entry| entry.name != "init_coordination") {
            let batch = json!({"operations": [{"name": operation, "arguments": arguments}]});
            refused(&server, &worker, "apply_batch", batch, "batch_item");
        }
    }
    for nobody in ["cancel_task", "retry_task", "update_task", "approve_task"] {
        refused(&server, &worker, nobody, json!({"task_id": "t2"}), "agent_missing");
    }
    refused(
        &server,
        &worker,
        "cancel_task",
        json!({"agent_id": "w1", "task_id": "t2"}),
        "not_leader",
    );
    assert_eq!(board.task("t2")["status"], "available");
    assert_eq!(board.document()["agents"]["boss"]["role"], "leader");
}

#[test]
fn what_is_done_as_no_agent_is_recorded_as_the_tokens() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let worker = added(&board, &["--name", "ci"]);
    allowed(
        &server,
        &worker,
        "create_task",
        json!({"id": "t9", "description": "x", "idempotency_key": "k"}),
    );
    Door::Rpc.ok(&server, "create_task", &json!({"id": "t8", "description": "x"}));
    let actors = |task: &str| -> Vec<String> {
        let reply = board.cli_ok("get_history", json!({"task_id": task}));
        let events = reply["events"].as_array().unwrap();
        events.iter().map(|event| event["actor"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((actors("t9"), actors("t8")), (vec!["~ci".to_owned()], vec!["human".to_owned()]));
    board.assert_file_is_the_replay();
}

#[test]
fn token_of_one_agent_acts_as_that_agent_alone() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let bound = added(&board, &["--agent", "ci"]);
    allowed(&server, &bound, "register_agent", json!({"role": "worker"}));
    let claimed = ask(&server, &bound, "claim_task", &json!({"task_id": "t1"}));
    assert_eq!(claimed.value["agent_id"], "ci", "{}", claimed.text);
    let as_others = [
        ("register_agent", json!({"agent_id": "other", "role": "worker"})),
        ("heartbeat", json!({"agent_id": "other"})),
        ("claim_task", json!({"agent_id": "human"})),
        ("add_discovery", json!({"agent_id": "boss", "content": "x"})),
    ];
    for (operation, arguments) in as_others {
        refused(&server, &bound, operation, arguments.clone(), "token_agent");
        let batch = json!({"operations": [{"name": operation, "arguments": arguments}]});
        refused(&server, &bound, "apply_batch", batch, "batch_item");
    }
    refused(&server, &bound, "cancel_task", json!({"task_id": "t2"}), "not_leader");
    refused(&server, &bound, "register_agent", json!({"role": "leader"}), "token_role");
    // The caller header, in which the command line names its agent, makes no difference.
    for (agent, status) in [("other", 403), ("ci", 200), ("human", 200)] {
        for door in Door::ALL {
            let call = with(door.call(&server, 1, "heartbeat", &json!({})), &bound);
            let answer =
                server.ask(&call.header("Callboard-Caller", &json!({"agent": agent}).to_string()));
            assert_eq!(answer.status, status, "{agent} {}", answer.text());
        }
    }
    let made = ask(
        &server,
        &bound,
        "create_task",
        &json!({"id": "t7", "description": "x", "idempotency_key": "one"}),
    );
    assert_eq!(made.value["agent_id"], "ci", "{}", made.text);
    let own_key = Door::Rpc.ask(
        &server,
        "create_task",
        &json!({"id": "t8", "description": "y", "idempotency_key": "one"}),
    );
    assert!(!own_key.is_error, "keys are each actor's own: {}", own_key.text);
}

#[test]
fn leaders_and_the_owner_do_everything() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let leader = added(&board, &["--role", "leader", "--name", "lead"]);
    let owner = server.token.clone();
    for token in [&leader, &owner] {
        allowed(&server, token, "init_coordination", json!({"goal": "ours"}));
        allowed(&server, token, "update_task", json!({"task_id": "t2", "priority": 2}));
        allowed(&server, token, "pause", json!({"agent_id": "boss"}));
        allowed(&server, token, "resume", json!({}));
        allowed(&server, token, "heartbeat", json!({"agent_id": "other"}));
    }
}

#[test]
fn token_is_shown_once_and_kept_as_its_hash_in_a_private_file() {
    let board = board_with_tasks();
    let text = added(&board, &["--name", "ci", "--expires", "7"]);
    assert!(text.len() == 68 && text.starts_with("cbt_"), "{text}");
    let file = board.file("tokens.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains(&text[4..]));
    let listed = token(&board, &["list"]);
    let one = &listed["tokens"][0];
    assert_eq!(
        (&one["name"], &one["role"], &one["agent"]),
        (&json!("ci"), &json!("worker"), &Value::Null)
    );
    assert!(one["expires"].is_string() && !listed.to_string().contains(&text[4..]));
    assert!(board.finish(board.command().args(["token", "add", "laptop"])).status.success());
    let again = board.finish(board.command().args(["token", "add", "--name", "ci"]));
    assert!(
        !again.status.success() && again.stderr.contains("token revoke ci"),
        "{}",
        again.stderr
    );
    for name in ["", "a b", "a/b", "\u{1b}[2J", &"x".repeat(65)] {
        let finished = board.finish(board.command().args(["token", "add", "--name", name]));
        assert!(
            !finished.status.success() && !finished.stderr.contains('\u{1b}'),
            "{name:?} {}",
            finished.stderr
        );
    }
}

#[test]
fn revoked_token_ends_at_once_also_on_connections_that_are_open() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let text = added(&board, &["--name", "gone"]);
    let mut socket = WebSocket::with(&server, &with(server.upgrade(), &text));
    socket.send(1, "get_status", &json!({}));
    assert!(!reply(&socket.answer(1)).is_error);
    token(&board, &["revoke", "gone"]);
    for door in Door::ALL {
        assert_eq!(
            server.ask(&with(door.call(&server, 1, "get_status", &json!({})), &text)).status,
            401
        );
    }
    socket.send(2, "create_task", &json!({"id": "late", "description": "x"}));
    assert_eq!(reply(&socket.answer(2)).code(), "gone");
    let unknown = board.finish(board.command().args(["token", "revoke", "gone"]));
    assert!(
        !unknown.status.success() && unknown.stderr.contains("token list"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn revoked_token_is_not_good_for_a_request_that_it_has_begun() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let text = added(&board, &["--name", "gone"]);
    let create = |door: Door| {
        let create =
            door.call(&server, 1, "create_task", &json!({"id": "late", "description": "x"}));
        let length = create.body.len().to_string();
        with(create, &text).header("Content-Length", &length).header("Expect", "100-continue")
    };
    let begun = Door::ALL.map(|door| {
        let (mut connection, create) = (server.connect(), create(door));
        connection.write(&create.head());
        // The server asks for the body only after it has accepted the head.
        assert_eq!(connection.answer_head().unwrap().status, 100);
        (connection, create.body)
    });
    token(&board, &["revoke", "gone"]);
    for (mut connection, body) in begun {
        connection.write(&body);
        assert_eq!(connection.answer().unwrap().status, 401);
    }
    assert!(!board.tasks().contains_key("late"));
}

#[test]
fn token_is_not_for_whichever_agent_is_free() {
    let board = board_with_tasks();
    let refused = board.finish(board.command().args(["--agent", "auto", "token", "add"]));
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("leave --agent out"), "{}", refused.stderr);
}

#[test]
fn where_no_board_is_there_are_no_tokens() {
    let board = Board::new();
    assert_eq!(token(&board, &["list"]), json!({"tokens": []}));
    let refused = board.finish(board.command().args(["token", "revoke", "any"]));
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("no token `any`"), "{}", refused.stderr);
    assert!(!board.dir().exists());
}

#[test]
fn server_whose_token_is_gone_says_so_once() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let status = || server.ask(&server.rpc(1, "get_status", &json!({}))).status;
    assert_eq!(status(), 200);
    fs::remove_file(board.file("serve.token")).unwrap();
    until(PATIENCE, "the token is refused", || (status() == 401).then_some(()));
    assert_eq!(status(), 401);
    assert_eq!(server.log().matches("no token is accepted").count(), 1, "{}", server.log());
}

#[test]
fn streams_that_are_open_end_with_their_token() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let text = added(&board, &["--name", "gone"]);
    let wanted = json!({"notifications": {"resourceSubscriptions": ["coordination://status"]}});
    let before = server.sockets();
    let mut stream = server.connect();
    let listen =
        with(server.modern(1, "subscriptions/listen", wanted), &text).header("Connection", "close");
    stream.send(&listen);
    assert_eq!(stream.answer_head().unwrap().status, 200);
    assert!(server.sockets() > before);
    token(&board, &["revoke", "gone"]);
    until(PATIENCE, "the stream is closed", || (server.sockets() <= before).then_some(()));
    let told = String::from_utf8(stream.rest()).unwrap();
    assert!(told.contains("subscriptions/acknowledged"), "{told}");
}

#[test]
fn token_that_has_expired_lets_nobody_in_and_says_so() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let text = added(&board, &["--name", "brief", "--expires", "1"]);
    let call = || with(Door::Rpc.call(&server, 1, "get_status", &json!({})), &text);
    assert_eq!(server.ask(&call()).status, 200);
    // Makes it look as if a day had passed.
    let file = board.file("tokens.toml");
    let content = fs::read_to_string(&file).unwrap();
    let past: String = content
        .lines()
        .map(|line| {
            if line.starts_with("expires") {
                "expires = \"2020-01-01T00:00:00.000Z\"\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    fs::write(&file, past).unwrap();
    // The file is not read for every call, and when half written it holds no token.
    until(PATIENCE, "the token is refused as one that has expired", || {
        let answer = server.ask(&call());
        (answer.status == 401 && answer.text().contains("`brief` has expired")).then_some(())
    });
}

#[test]
fn file_of_tokens_that_cannot_be_trusted_lets_in_nobody_but_the_owner() {
    let board = board_with_tasks();
    let server = Server::on(&board);
    let text = added(&board, &[]);
    let file = board.file("tokens.toml");
    let content = fs::read_to_string(&file).unwrap();
    let asks = |token: &str| {
        server.ask(&with(Door::Rpc.call(&server, 1, "get_status", &json!({})), token)).status
    };
    // For a token that was accepted a moment ago, the file is not read again.
    let is_refused =
        || until(PATIENCE, "the token is refused", || (asks(&text) == 401).then_some(()));
    for wrong in
        ["version = 1\n[[token]]\nname = 3\n", &content.replace("version = 1", "version = 22")]
    {
        // Each text has another length than the one before: with coarse file times, only that shows
        // a change.
        fs::write(&file, &content).unwrap();
        assert_eq!(asks(&text), 200);
        fs::write(&file, wrong).unwrap();
        is_refused();
        assert_eq!((asks(&text), asks(&server.token)), (401, 200));
    }
    fs::write(&file, &content).unwrap();
    assert_eq!(asks(&text), 200);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    is_refused();
    let listed = board.finish(board.command().args(["token", "list"]));
    assert!(!listed.status.success() && listed.stderr.contains("chmod 600"), "{}", listed.stderr);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(asks(&text), 200, "as the advice says");
    let listed = board.finish(board.command().args(["token", "list"])).stdout;
    assert!(listed.contains("serve.token"), "the owner's token is listed, too: {listed}");
    // A file whose mode is already wrong when it appears.
    let other = board.file("other.toml");
    fs::copy(&file, &other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(&other, &file).unwrap();
    is_refused();
    assert_eq!((asks(&text), asks(&text)), (401, 401));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(asks(&text), 200, "as the advice says");
    assert_eq!(
        server.log().matches("run `chmod 600 ").count(),
        2,
        "once for each: {}",
        server.log()
    );
    for wrong in ["", "cbt_", "Bearer", &text[..67], &format!("{text}0"), &text.to_uppercase()] {
        assert_eq!(asks(wrong), 401, "{wrong}");
    }
}

#[test]
fn board_has_no_more_tokens_than_its_limit() {
    let board = board_with_tasks();
    added(&board, &["--name", "t"]);
    let file = board.file("tokens.toml");
    let content = fs::read_to_string(&file).unwrap();
    let (head, entry) = content.split_once("[[token]]").unwrap();
    let many: String = (0..200)
        .map(|number| format!("[[token]]{}\n", entry.replace("\"t\"", &format!("\"t{number}\""))))
        .collect();
    fs::write(&file, format!("{head}{many}")).unwrap();
    let refused = board.finish(board.command().args(["token", "add"]));
    assert!(
        !refused.status.success() && refused.stderr.contains("at most 200"),
        "{}",
        refused.stderr
    );
}
