//! Bodies that are too large, too deep, ambiguous or too slow, and clients that do not read.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::status;
use crate::harness::http::{Connection, Door, Request, Server, Session, TEXT, WebSocket};
use crate::harness::{Board, PATIENCE, until};

const LARGEST: usize = callboard::state::limit::BODY.max;
/// Longer than any time limit of the server.
const CUT_OFF: Duration = Duration::from_secs(60);
/// Longest time for an answer; anything slower means that somebody is kept waiting. The machine
/// also runs other tests.
const PROMPT: Duration = Duration::from_secs(5);

/// A call whose body has exactly `size` bytes.
fn sized(server: &Server, door: Door, size: usize) -> Request {
    let request = door.call(server, 1, "create_task", &json!({"description": "d", "id": "sized"}));
    let mut body = request.body.clone();
    assert!(body.len() <= size);
    body.resize(size, b' ');
    request.with_body(body)
}

#[track_caller]
fn assert_alive(server: &Server) {
    for door in Door::ALL {
        door.ok(server, "get_status", &json!({}));
    }
}

/// Asserts that the answer has status `expected` and a JSON-RPC error.
#[track_caller]
fn turned_away(server: &Server, request: &Request, expected: u16) {
    let answer = server.ask(request);
    assert_eq!(answer.status, expected, "{}", answer.text());
    let message = answer.message();
    assert!(
        message["error"]["code"].is_i64() && message["error"]["message"].is_string(),
        "{message}"
    );
}

#[test]
fn body_of_the_largest_size_is_taken_and_one_byte_more_is_not() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let answer = server.ask(&sized(&server, door, LARGEST + 1));
        assert_eq!(answer.status, 413, "{door:?} {}", answer.text());
        assert!(door.ask(&server, "get_task", &json!({"task_id": "sized"})).is_error);
    }
    for door in Door::ALL {
        let answer = server.ask(&sized(&server, door, LARGEST));
        assert_eq!(answer.status, 200, "{door:?} {}", answer.text());
    }
}

#[test]
fn body_that_is_announced_as_too_large_is_refused_before_it_is_sent() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let beyond = (LARGEST + 1).to_string();
        for size in [beyond.as_str(), "10000000000", "18446744073709551615"] {
            let call =
                door.call(&server, 1, "get_status", &json!({})).header("Content-Length", size);
            for call in [call.clone(), call.header("Expect", "100-continue")] {
                let mut connection = server.connect();
                connection.write(&call.head());
                let answer = connection.answer().expect("an answer");
                // HTTP libraries do not accept the last value as a length.
                assert!(
                    answer.status == 413
                        || size.starts_with("184") && matches!(answer.status, 400..500),
                    "{door:?} {size}: {answer:?}"
                );
            }
        }
    }
}

#[test]
fn body_in_chunks_is_refused_when_it_has_grown_too_large() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let call = sized(&server, door, LARGEST + 1);
        let mut connection = server.connect();
        connection.write(&call.clone().header("Transfer-Encoding", "chunked").head());
        for part in call.body.chunks(64 * 1024) {
            // The end is not sent: the size is noticed before.
            connection.write(format!("{:x}\r\n", part.len()).as_bytes());
            connection.write(&[part, b"\r\n"].concat());
        }
        let answer = connection.answer().expect("an answer");
        assert_eq!(answer.status, 413, "{door:?}");
        assert!(door.ask(&server, "get_task", &json!({"task_id": "sized"})).is_error);
    }
}

#[test]
fn body_that_cannot_be_read_is_not_called_too_large() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let call = door.call(&server, 1, "get_status", &json!({}));
        let mut connection = server.connect();
        connection.write(&call.header("Transfer-Encoding", "chunked").head());
        connection.write(b"zz\r\n{}\r\n0\r\n\r\n");
        let answer = connection.answer().expect("an answer");
        assert_eq!(answer.status, 400, "{door:?} {}", answer.text());
    }
}

#[test]
fn body_in_chunks_is_taken_when_it_is_small_enough() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let call = door.call(&server, 1, "get_status", &json!({}));
        let mut connection = server.connect();
        connection.write(&call.clone().header("Transfer-Encoding", "chunked").head());
        for part in call.body.chunks(7) {
            connection.write(&[format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
        }
        connection.write(b"0\r\n\r\n");
        assert_eq!(connection.answer().expect("an answer").status, 200, "{door:?}");
    }
}

#[test]
fn request_whose_length_is_told_twice_smuggles_no_other() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let smuggled =
            door.call(&server, 2, "create_task", &json!({"description": "d", "id": "smuggled"}));
        let smuggled = smuggled.without("Authorization").bytes();
        let call = door.call(&server, 1, "get_status", &json!({})).with_body(smuggled);
        let both = call.clone().header("Content-Length", &call.body.len().to_string());
        let both = both.header("Transfer-Encoding", "chunked");
        let two = call.header("Content-Length", "0").and_header("Content-Length", "5");
        for request in [both, two] {
            let mut connection = server.connect();
            connection.write(&[request.head(), request.body.clone()].concat());
            while let Some(answer) = connection.answer() {
                assert!(answer.status >= 400, "{door:?} {answer:?}");
            }
        }
        assert!(door.ask(&server, "get_task", &json!({"task_id": "smuggled"})).is_error);
    }
}

/// A call with `value` inserted in its arguments as raw text.
fn with_raw(server: &Server, door: Door, value: &str) -> Request {
    let call = door.call(server, 1, "get_status", &json!({"raw": "RAW"}));
    let body = String::from_utf8(call.body.clone()).unwrap().replace("\"RAW\"", value);
    call.with_body(body)
}

#[test]
fn body_that_is_nested_too_deep_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for depth in [64, 100, 10_000, 100_000] {
                turned_away(&server, &with_raw(&server, door, &nested(depth)), 400);
            }
            let unclosed =
                door.call(&server, 1, "get_status", &json!({})).with_body(open.repeat(100_000));
            turned_away(&server, &unclosed, 400);
            // The operation itself rejects the unknown argument.
            let shallow = server.ask(&with_raw(&server, door, &nested(50)));
            assert_eq!(shallow.status, 200, "{}", shallow.text());
        }
    }
    assert_alive(&server);
}

#[test]
fn body_with_a_key_twice_in_one_object_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let twice = |text: String, old: &str, new: &str| {
        assert!(text.contains(old), "{text}");
        text.replacen(old, new, 1)
    };
    for door in Door::ALL {
        let call =
            door.call(&server, 1, "create_task", &json!({"description": "shown", "id": "twice"}));
        let text = || String::from_utf8(call.body.clone()).unwrap();
        let bodies = [
            twice(text(), "\"id\":1", "\"id\":2,\"id\":1"),
            twice(text(), "\"method\":", "\"method\":\"get_status\",\"method\":"),
            twice(text(), "\"description\":", "\"description\":\"done\",\"description\":"),
            twice(text(), "\"description\":", "\"d\\u0065scription\":\"done\",\"description\":"),
            twice(text(), "\"params\":", "\"params\":{},\"params\":"),
        ];
        for body in bodies {
            turned_away(&server, &call.clone().with_body(body), 400);
        }
        assert!(door.ask(&server, "get_task", &json!({"task_id": "twice"})).is_error);
    }
}

#[test]
fn body_that_is_no_message_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    for door in Door::ALL {
        let call = door.call(&server, 1, "get_status", &json!({}));
        for body in [&b""[..], b"{", b"nonsense", b"\xff\xfe{}", b"{} {}", b"{}\0"] {
            turned_away(&server, &call.clone().with_body(body), 400);
        }
        for body in
            ["1", "null", "\"text\"", "{}", r#"{"jsonrpc":"1.0","id":1,"method":"get_status"}"#]
        {
            let answer = server.ask(&call.clone().with_body(body));
            let message: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            assert!(
                message["error"].is_object() || matches!(answer.status, 400..500),
                "{door:?} {body}: {answer:?}"
            );
        }
    }
    assert_alive(&server);
}

#[test]
fn what_is_no_message_of_mcp_is_answered_in_json_rpc_under_its_id() {
    let board = Board::new();
    let server = Server::on(&board);
    let session = Session::open(&server);
    let list = server.modern(1, "tools/list", json!({}));
    let cases = [
        (r#"{}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}"#, -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#,
            -32600,
            Value::Null,
        ),
    ];
    for (body, code, id) in cases {
        for request in [list.clone(), session.post(&json!({}))] {
            let answer = server.ask(&request.with_body(body));
            let message: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            assert_eq!(
                (answer.status, &message["error"]["code"]),
                (400, &json!(code)),
                "{body} {}",
                answer.text()
            );
            assert_eq!(message.get("id"), Some(&id), "{body}");
        }
    }
    assert_eq!(server.ask(&session.end()).status, 204);
    assert_alive(&server);
}

#[test]
fn mcp_takes_no_batch() {
    let board = Board::new();
    let server = Server::on(&board);
    let create = server.modern(
        1,
        "tools/call",
        json!({"name": "create_task", "arguments": {"description": "d", "id": "b"}}),
    );
    let one: Value = serde_json::from_slice(&create.body).unwrap();
    for batch in [json!([one]), json!([one, one]), json!([])] {
        turned_away(&server, &create.clone().with_body(batch.to_string()), 400);
        turned_away(&server, &create.clone().with_body(format!(" \n{batch}")), 400);
    }
    assert!(Door::Mcp.ask(&server, "get_task", &json!({"task_id": "b"})).is_error);
}

#[test]
fn batch_of_calls_is_answered_up_to_its_limit() {
    let board = Board::new();
    let server = Server::on(&board);
    let one = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "get_status", "params": {}});
    let batch = |size: usize| {
        server.post("/rpc", Value::from((0..size).map(one).collect::<Vec<_>>()).to_string())
    };
    let answers = server.ask(&batch(64)).message();
    let mut ids: Vec<_> =
        answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..64).collect::<Vec<_>>());
    assert!(
        answers.as_array().unwrap().iter().all(|answer| answer["result"].is_object()),
        "{answers}"
    );
    for size in [0, 65] {
        let answer = server.ask(&batch(size));
        assert!(answer.message()["error"].is_object(), "{size}: {}", answer.text());
    }
}

#[test]
fn batch_whose_replies_are_too_large_together_is_answered_as_far_as_it_came() {
    const LIMIT: usize = 128 << 20;
    let board = Board::new();
    let large = "x".repeat(16 << 10);
    let tasks: Vec<_> = (0..100).map(|_| json!({"description": large, "hints": large})).collect();
    board.mcp().ok("create_tasks_batch", json!({"tasks": tasks}));
    let server = Server::on(&board);
    let one = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "get_all_tasks", "params": {"limit": 1_000}});
    let batch = Value::from((0..64).map(one).collect::<Vec<_>>()).to_string();
    let posted = || server.ask(&server.post("/rpc", batch.clone())).message();
    let over_socket = || {
        let mut socket = WebSocket::open(&server);
        socket.frame(TEXT, batch.as_bytes());
        socket.next().unwrap()
    };
    // One after the other, because they are large.
    for answers in [&posted as &dyn Fn() -> Value, &over_socket] {
        let answers = answers();
        let answers = answers.as_array().unwrap();
        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (0..64).collect::<Vec<_>>());
        let done = answers.iter().take_while(|answer| answer["result"].is_object()).count();
        let page = answers[0].to_string().len();
        assert_eq!(done, LIMIT / page + 1, "{page} bytes each");
        for refused in &answers[done..] {
            let error = &refused["error"];
            assert_eq!(
                (&error["code"], &error["data"]["code"]),
                (&json!(-32000), &json!("over_limit")),
                "{refused}"
            );
            assert!(error["message"].as_str().unwrap().contains("batch"), "{refused}");
        }
    }
}

#[test]
fn any_id_that_json_rpc_knows_is_answered_and_a_notification_is_done_without_an_answer() {
    let board = Board::new();
    let server = Server::on(&board);
    let create = |task: &str| json!({"jsonrpc": "2.0", "method": "create_task", "params": {"description": "d", "id": task}});
    let with = |task: &str, id: &Value| {
        let mut message = create(task);
        message["id"] = id.clone();
        message
    };
    let made = |task: &str| !Door::Rpc.ask(&server, "get_task", &json!({"task_id": task})).is_error;
    let ids = [json!(-1), json!(1.5), json!(u64::MAX), json!("a"), Value::Null];
    for (number, id) in ids.iter().enumerate() {
        let answer =
            server.ask(&server.post("/rpc", with(&format!("t{number}"), id).to_string())).message();
        assert_eq!((&answer["id"], answer["result"].is_object()), (id, true), "{answer}");
    }
    for id in [json!({}), json!([1]), json!(true)] {
        let answer = server.ask(&server.post("/rpc", with("odd", &id).to_string())).message();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{answer}"
        );
    }
    assert!(!made("odd"));
    // Nobody would hear about the claimed task.
    Door::Rpc.ok(&server, "register_agent", &json!({"agent_id": "w", "role": "worker"}));
    let claim = json!({"jsonrpc": "2.0", "method": "claim_task", "params": {"agent_id": "w", "task_id": "t0"}});
    assert_eq!(server.ask(&server.post("/rpc", claim.to_string())).status, 204);
    assert_eq!(board.task("t0")["status"], "available");
    let silent = server.ask(&server.post("/rpc", create("n1").to_string()));
    assert_eq!((silent.status, silent.text().as_str()), (204, ""));
    let silent = server.ask(&server.post("/rpc", json!([create("n2"), create("n3")]).to_string()));
    assert_eq!((silent.status, silent.text().as_str()), (204, ""));
    let mixed = json!([create("n4"), with("t5", &json!(-5)), 1, {"jsonrpc": "2.0", "id": 6, "method": "nope"}]);
    let answers = server.ask(&server.post("/rpc", mixed.to_string())).message();
    let told: Vec<_> =
        answers.as_array().unwrap().iter().map(|one| (&one["id"], &one["error"]["code"])).collect();
    assert_eq!(
        told,
        [(&json!(-5), &Value::Null), (&Value::Null, &json!(-32600)), (&json!(6), &json!(-32601))]
    );
    let mut socket = WebSocket::open(&server);
    for (number, id) in
        ids.iter().chain(&[json!(0), json!("7"), json!(-0.25), json!("")]).enumerate()
    {
        socket.frame(TEXT, with(&format!("s{number}"), id).to_string().as_bytes());
        let answer = socket.next().unwrap();
        assert_eq!((&answer["id"], answer["result"].is_object()), (id, true), "{answer}");
    }
    for id in [json!({}), json!([1]), json!(true)] {
        socket.frame(TEXT, with("odd", &id).to_string().as_bytes());
        let answer = socket.next().unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{answer}"
        );
    }
    assert!(!made("odd"));
    socket.frame(TEXT, create("n5").to_string().as_bytes());
    socket.frame(
        TEXT,
        json!([create("n6"), with("t6", &json!(7)), with("t7", &json!(-7.5))])
            .to_string()
            .as_bytes(),
    );
    let answers = socket.next().unwrap();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(7), &json!(-7.5)), "{answers}");
    for task in ["n1", "n2", "n3", "n4", "n6", "t6"] {
        assert!(made(task), "{task}");
    }
    until(PATIENCE, "the notification is done", || made("n5").then_some(()));
}

#[test]
fn subscription_is_answered_under_an_id_of_any_kind_and_ended_under_another() {
    let board = Board::new();
    let server = Server::on(&board);
    for id in [json!(-1), json!(2.5), json!("s"), json!(3), Value::Null] {
        let mut socket = WebSocket::open(&server);
        let send = |socket: &mut WebSocket, method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            socket.frame(TEXT, message.to_string().as_bytes());
            // Events may come between.
            let mut messages = std::iter::from_fn(|| socket.next());
            let answer = messages.find(|message| message.get("id").is_some()).unwrap();
            assert_eq!(answer["id"], id, "{answer}");
            answer
        };
        let subscribed = send(&mut socket, "subscribe_events", json!({}));
        let subscription = &subscribed["result"];
        assert!(subscription.is_u64(), "{subscribed}");
        Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
        let event = socket.next().unwrap();
        assert_eq!(
            (&event["method"], &event["params"]["subscription"]),
            (&json!("event"), subscription),
            "{event}"
        );
        let ended = send(&mut socket, "unsubscribe_events", json!([subscription]));
        assert_eq!(ended["result"], true, "{ended}");
        let refused = send(&mut socket, "subscribe_events", json!({"kinds": ["no such kind"]}));
        assert!(refused["error"]["data"]["code"].is_string(), "{refused}");
    }
}

#[test]
fn what_is_wrong_with_a_message_has_the_code_of_the_protocol() {
    let board = Board::new();
    let server = Server::on(&board);
    let code =
        |body: &str| server.ask(&server.post("/rpc", body)).message()["error"]["code"].clone();
    for (body, expected) in [
        ("{", -32700),
        ("1 2", -32700),
        ("1", -32600),
        ("[]", -32600),
        (r#"{"a":1,"a":2}"#, -32600),
    ] {
        assert_eq!(code(body), json!(expected), "{body}");
    }
    let subscribe = server.ask(&server.rpc(1, "subscribe_events", &json!({}))).message();
    assert!(
        subscribe["error"]["message"].as_str().is_some_and(|why| why.contains("WebSocket")),
        "{subscribe}"
    );
}

#[test]
fn websocket_message_that_no_body_could_be_does_nothing() {
    let board = Board::new();
    let server = Server::on(&board);
    let create = |id: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "create_task", "params": {"description": "d", "id": id}});
    let large = create("large").to_string() + &" ".repeat(LARGEST);
    let deep = create("deep")
        .to_string()
        .replace("\"d\"", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    let twice = create("twice")
        .to_string()
        .replace("\"description\"", "\"description\":\"x\",\"description\"");
    for (text, id) in [(large, "large"), (deep, "deep"), (twice, "twice")] {
        let mut socket = WebSocket::open(&server);
        socket.frame(1, text.as_bytes());
        if let Some(answer) = socket.next() {
            assert!(answer["error"].is_object(), "{id}: {answer}");
        }
        assert!(Door::Rpc.ask(&server, "get_task", &json!({"task_id": id})).is_error, "{id}");
    }
    assert_alive(&server);
}

#[test]
fn websocket_frame_that_announces_more_than_a_body_costs_no_memory() {
    let board = Board::new();
    let server = Server::on(&board);
    let before = server.memory();
    let mut sockets: Vec<_> = (0..20).map(|_| WebSocket::open(&server)).collect();
    for socket in &mut sockets {
        let head =
            [&[0x81, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[1, 2, 3, 4], &[0; 1_000]].concat();
        socket.connection.write(&head);
    }
    assert_alive(&server);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 24 << 20, "{grown} bytes");
}

/// Sends `piece` again and again. Returns how long the server allowed that.
fn trickled(server: &Server, head: &[u8], piece: &[u8]) -> (Duration, Connection) {
    let mut connection = server.connect();
    assert!(connection.write(head));
    let start = Instant::now();
    until(PATIENCE, "the server has had enough", || {
        // More slowly than any honest client, but never silent.
        thread::sleep(Duration::from_millis(200));
        (connection.is_readable() || !connection.write(piece)).then_some(())
    });
    (start.elapsed(), connection)
}

#[test]
fn whoever_sends_or_reads_too_slowly_is_cut_off_while_others_are_served() {
    let board = Board::new();
    let server = Server::on(&board);
    let text = "x".repeat(10_000);
    for number in 0..60 {
        let task = json!({"description": text, "id": format!("task-{number}")});
        Door::Rpc.ok(&server, "create_task", &task);
    }
    thread::scope(|scope| {
        let mut slow = Vec::new();
        for door in Door::ALL {
            let server = &server;
            slow.push(scope.spawn(move || {
                let call = door.call(server, 1, "get_status", &json!({}));
                let head = call.head();
                // Without the final empty line.
                let (took, _) = trickled(server, &head[..head.len() - 2], b"X-More: 1\r\n");
                (format!("{door:?} head"), took)
            }));
            slow.push(scope.spawn(move || {
                let call = door.call(server, 1, "get_status", &json!({}));
                let head = call.header("Content-Length", "100000").head();
                let (took, mut connection) = trickled(server, &head, b" ");
                let status = connection.answer().map(|answer| answer.status);
                assert!(matches!(status, Some(408) | None), "{door:?}: {status:?}");
                (format!("{door:?} body"), took)
            }));
            slow.push(scope.spawn(move || {
                let mut connection = server.connect();
                let start = Instant::now();
                until(PATIENCE, "the server does not wait for the reader", || {
                    let list = door.call(server, 1, "get_all_tasks", &json!({"limit": 50}));
                    // Blocks when the server's answers fill both buffers, and fails when it has
                    // closed.
                    (!connection.write(&list.bytes())).then_some(())
                });
                (format!("{door:?} reader"), start.elapsed())
            }));
        }
        let mut slowest = Duration::ZERO;
        while !slow.iter().all(thread::ScopedJoinHandle::is_finished) {
            for door in Door::ALL {
                let start = Instant::now();
                door.ok(&server, "get_status", &json!({}));
                slowest = slowest.max(start.elapsed());
            }
        }
        for one in slow {
            let (who, took) = one.join().unwrap();
            println!("slow {who}: cut off after {:.1} s", took.as_secs_f64());
            assert!(took < CUT_OFF, "{who}: {took:?}");
        }
        println!("slowest answer to others meanwhile: {slowest:?}");
        assert!(slowest < PROMPT, "{slowest:?}");
    });
    until(PATIENCE, "the connections are gone", || (server.sockets() <= 6).then_some(()));
}

#[test]
fn connection_that_says_nothing_is_closed() {
    let board = Board::new();
    let server = Server::on(&board);
    let silent = server.connect();
    let mut used = server.connect();
    used.ask(&server.request("GET", "/healthz"));
    until(PATIENCE, "both are closed", || (silent.is_closed() && used.is_closed()).then_some(()));
    assert_eq!(status(&server, &server.rpc(1, "get_status", &json!({}))), 200);
}
