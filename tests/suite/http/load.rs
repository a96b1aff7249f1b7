//! Many clients at once: nobody gets another's answer, strangers cost no memory, and what they send
//! is one line in the log.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::harness::http::{Connection, Door, Request, Server, Session, WebSocket, reply};
use crate::harness::{Board, PATIENCE, available, size, until};

const ROUNDS: usize = 20;

/// How one of many clients calls, all of them with the same request id.
enum Way<'a> {
    Modern(Connection),
    Legacy(Connection, Session<'a>),
    Rpc(Connection),
    WebSocket(WebSocket),
}

impl<'a> Way<'a> {
    fn open(server: &'a Server, number: usize) -> Self {
        match number % 4 {
            0 => Self::Modern(server.connect()),
            1 => Self::Legacy(server.connect(), Session::open(server)),
            2 => Self::Rpc(server.connect()),
            _ => Self::WebSocket(WebSocket::open(server)),
        }
    }

    fn call(&mut self, server: &Server, operation: &str, arguments: &Value) -> Value {
        const ID: u64 = 7;
        let message = match self {
            Self::Modern(connection) => {
                connection.ask(&Door::Mcp.call(server, ID, operation, arguments)).message()
            }
            Self::Legacy(connection, session) => {
                connection.ask(&session.call(ID, operation, arguments)).message()
            }
            Self::Rpc(connection) => {
                connection.ask(&Door::Rpc.call(server, ID, operation, arguments)).message()
            }
            Self::WebSocket(socket) => {
                socket.send(ID, operation, arguments);
                socket.next().expect("an answer")
            }
        };
        assert_eq!(message["id"], ID, "{message}");
        reply(&message).ok()
    }
}

#[test]
fn equal_ids_on_a_hundred_connections_never_cross() {
    const CONNECTIONS: usize = 100;
    let board = Board::new();
    let server = Server::on(&board);
    let together = Barrier::new(CONNECTIONS);
    thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let (server, together) = (&server, &together);
            scope.spawn(move || {
                let agent = format!("agent-{number}");
                let mut way = Way::open(server, number);
                let register = json!({"agent_id": agent, "role": "worker"});
                assert_eq!(way.call(server, "register_agent", &register)["agent_id"], agent);
                together.wait();
                for round in 0..ROUNDS {
                    let beat = way.call(server, "heartbeat", &json!({"agent_id": agent}));
                    assert_eq!(beat["agent_id"], agent, "round {round}");
                }
                let id = format!("task-of-{number}");
                let task = json!({"id": id, "description": format!("for {agent}")});
                assert_eq!(way.call(server, "create_task", &task)["task"]["id"], id);
                let claim =
                    way.call(server, "claim_task", &json!({"agent_id": agent, "task_id": id}));
                assert_eq!((&claim["agent_id"], &claim["task"]["id"]), (&json!(agent), &json!(id)));
            });
        }
    });
    assert!(
        board.tasks().iter().all(|(id, task)| task["claimed_by"] == id.replace("task-of", "agent"))
    );
}

#[test]
fn equal_ids_of_waiting_claims_are_answered_to_those_who_asked() {
    const AGENTS: usize = 24;
    let board = Board::new();
    let server = Server::on(&board);
    for number in 0..AGENTS {
        super::register(&server, &format!("agent-{number}"));
    }
    let barrier = Barrier::new(AGENTS + 1);
    thread::scope(|scope| {
        for number in 0..AGENTS {
            let (server, barrier) = (&server, &barrier);
            scope.spawn(move || {
                let agent = format!("agent-{number}");
                let mut way = Way::open(server, number);
                barrier.wait();
                let claim = way.call(server, "claim_task", &super::waiting_claim(&agent));
                assert_eq!(
                    (&claim["success"], &claim["agent_id"]),
                    (&json!(true), &json!(agent)),
                    "{claim}"
                );
                let task =
                    Door::Rpc.ok(server, "get_task", &json!({"task_id": claim["task"]["id"]}));
                assert_eq!(task["task"]["claimed_by"], agent);
            });
        }
        barrier.wait();
        for number in 0..AGENTS {
            Door::Rpc.ok(
                &server,
                "create_task",
                &json!({"description": "d", "id": format!("task-{number}")}),
            );
        }
    });
}

#[test]
fn who_comes_when_all_places_are_taken_is_served_and_the_oldest_silent_one_is_not() {
    const PLACES: usize = 4_096;
    let limit = getrlimit(Resource::Nofile);
    let few = limit.maximum.is_some_and(|maximum| maximum < 2 * PLACES as u64);
    if !available("files", few.then_some("a process may not have so many files open")) {
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let board = Board::new();
    let server = Server::on(&board);
    let status = Door::Rpc.call(&server, 1, "get_status", &json!({}));
    let mut first = server.connect();
    assert_eq!(first.ask(&status).status, 200);
    let mut others: Vec<_> = (1..PLACES).map(|_| server.connect()).collect();
    assert_eq!(server.ask(&status).status, 200);
    assert!(server.log().contains("too many connections"), "{}", server.log());
    assert_eq!(first.ask(&status).status, 200);
    assert!(others[0].answer().is_none());
    assert_eq!(others[PLACES / 2].ask(&status).status, 200);
}

/// A call of an operation that does not exist, with a name that was never used before.
fn unknown(server: &Server, door: Door, number: usize) -> Request {
    let name = format!("no_such_operation_{number}_{}", "x".repeat(60));
    door.call(server, 1, &name, &json!({}))
}

#[test]
fn unknown_names_in_mass_leave_no_trace_in_memory() {
    let names = size("CALLBOARD_NAMES", 20_000);
    let board = Board::new();
    let server = Server::on(&board);
    let mut connections = Door::ALL.map(|door| (door, server.connect()));
    let mut socket = WebSocket::open(&server);
    let mut ask = |number: usize| {
        for (door, connection) in &mut connections {
            let answer = connection.ask(&unknown(&server, *door, number)).message();
            assert!(matches!(answer["error"]["code"].as_i64(), Some(-32601 | -32602)), "{answer}");
        }
        socket.send(1, &format!("no_such_operation_{number}"), &json!({}));
        assert_eq!(socket.answer(1)["error"]["code"], -32601);
    };
    // Allocates what is set up once, and what the allocator keeps.
    (0..1_000).for_each(&mut ask);
    let before = server.memory();
    let start = Instant::now();
    (1_000..1_000 + names / 2).for_each(&mut ask);
    let grown = server.memory().saturating_sub(before);
    println!(
        "{names} unknown names in {:.1} s: memory {before} grew by {grown} bytes",
        start.elapsed().as_secs_f64()
    );
    assert!(grown < 4 << 20, "{grown} bytes for {names} names");
}

#[test]
fn sessions_that_nobody_ends_are_bounded() {
    let board = Board::new();
    let server = Server::on(&board);
    let mut connection = server.connect();
    let mut open = |count: usize| {
        let answers = (0..count).map(|_| connection.ask(&server.initialize(1)).status);
        answers
            .filter(|status| *status != 200 && *status != 503 && *status != 429)
            .collect::<Vec<_>>()
    };
    assert_eq!(open(1_500), [0; 0]);
    let before = server.memory();
    assert_eq!(open(3_000), [0; 0]);
    let grown = server.memory().saturating_sub(before);
    println!("3000 sessions that nobody ends: {grown} bytes");
    assert!(grown < 32 << 20, "{grown} bytes");
    Door::Mcp.ok(&server, "get_status", &json!({}));
}

#[test]
fn sessions_that_nobody_uses_keep_nobody_out() {
    const SESSIONS: usize = 1_024;
    let board = Board::new();
    let server = Server::on(&board);
    let (read, idle) = (Session::open(&server), Session::open(&server));
    let _stream = read.stream();
    let mut connection = server.connect();
    for _ in 0..SESSIONS + 10 {
        assert_eq!(connection.ask(&server.initialize(1)).status, 200);
    }
    // The forgotten session can be continued, too.
    for session in [&read, &idle, &Session::open(&server)] {
        let answer = connection.ask(&session.call(1, "get_status", &json!({})));
        assert!(!reply(&answer.message()).is_error, "{}", answer.text());
    }
}

#[test]
fn sessions_that_are_in_use_are_bounded_whatever_version_opens_them() {
    const SESSIONS: usize = 1_024;
    let board = Board::new();
    let server = Server::on(&board);
    let sessions: Vec<_> = (0..SESSIONS).map(|_| Session::open(&server)).collect();
    let mut streams: Vec<_> = sessions.iter().map(Session::stream).collect();
    let params = json!({"protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let modern = server
        .initialize(1)
        .header("MCP-Protocol-Version", "2026-07-28")
        .with_body(call.to_string());
    assert_eq!(
        [&modern, &server.initialize(1)].map(|request| server.ask(request).status),
        [503, 503]
    );
    assert!(!Door::Mcp.ask(&server, "get_status", &json!({})).is_error);
    streams.truncate(SESSIONS - 2);
    for request in [modern, server.initialize(1)] {
        until(PATIENCE, "there is room", || (server.ask(&request).status == 200).then_some(()));
    }
}

#[test]
fn board_has_the_files_that_it_needs_however_many_connect() {
    let board = Board::new();
    let server = Server::with_files(&board, 256);
    let mut first = server.connect();
    assert_eq!(first.ask(&server.rpc(1, "get_status", &json!({}))).status, 200);
    let half = server.rpc(1, "get_status", &json!({})).head();
    let _others: Vec<_> = (0..300)
        .map(|_| {
            let mut connection = server.connect();
            connection.write(&half[..half.len() / 2]);
            connection
        })
        .collect();
    until(PATIENCE, "some are closed", || {
        server.log().contains("too many connections").then_some(())
    });
    for number in 0..20 {
        let answer = first.ask(&server.rpc(
            1,
            "create_task",
            &json!({"id": format!("t{number}"), "description": "x"}),
        ));
        assert!(answer.message()["result"].is_object(), "{}", answer.text());
    }
    let taken = first.ask(&server.rpc(1, "create_snapshot", &json!({})));
    assert!(taken.message()["result"].is_object(), "{}", taken.text());
    assert_eq!(board.tasks().len(), 20);
}

#[test]
fn a_web_socket_keeps_its_place_until_it_is_closed() {
    let board = Board::new();
    // Leaves room for the files of the board.
    let server = Server::with_files(&board, 64 + 8);
    let mut sockets: Vec<_> = (0..8).map(|_| WebSocket::open(&server)).collect();
    let status = || {
        let mut connection = server.connect();
        connection.write(&server.upgrade().head());
        connection.answer_head().map(|head| head.status)
    };
    assert_eq!(status(), None);
    assert!(server.log().contains("too many connections"), "{}", server.log());
    sockets.pop().unwrap().close();
    until(PATIENCE, "another gets its place", || status().filter(|status| *status == 101));
}

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}"#;

#[test]
fn sessions_under_names_that_the_server_never_gave_are_bounded() {
    let board = Board::new();
    let server = Server::on(&board);
    let mut connection = server.connect();
    let mut ask = |number: usize| {
        let name = format!("00000000-0000-4000-8000-{number:012x}");
        let request = server.initialize(1).header("Mcp-Session-Id", &name).with_body(LIST);
        connection.ask(&request).status
    };
    let open =
        |statuses: Vec<u16>| statuses.iter().all(|status| matches!(status, 200 | 404 | 429 | 503));
    assert!(open((0..1_500).map(&mut ask).collect()));
    let before = server.memory();
    assert!(open((1_500..4_500).map(&mut ask).collect()));
    let grown = server.memory().saturating_sub(before);
    println!("3000 sessions under made-up names: {grown} bytes");
    assert!(grown < 32 << 20, "{grown} bytes");
}

#[test]
fn names_that_no_session_can_have_are_not_kept() {
    let board = Board::new();
    let server = Server::on(&board);
    let ask = |number: usize| {
        let name = format!("{number}{}", "-".repeat(300_000));
        server.ask(&server.initialize(1).header("Mcp-Session-Id", &name).with_body(LIST)).status
    };
    assert!((0..20).all(|number| ask(number) == 404));
    let before = server.memory();
    assert!((20..220).all(|number| ask(number) == 404));
    let grown = server.memory().saturating_sub(before);
    println!("200 names of 300 kB: {grown} bytes");
    assert!(grown < 16 << 20, "{grown} bytes");
}

#[test]
fn what_a_client_writes_is_one_escaped_line_of_the_log() {
    const FORGED: &str = "FORGED";
    let text = format!("a\n{FORGED} b\r\n\u{1b}[31mred\u{202e}evil\u{2066}\u{7}\u{9b}c");
    let board = Board::new();
    let server = Server::with(&board, &[], &[("CALLBOARD_LOG", "trace")]);
    let mut socket = WebSocket::open(&server);
    socket.send(1, &text, &json!({&text: &text}));
    socket.answer(1);
    for door in Door::ALL {
        let calls = [
            door.call(&server, 1, "heartbeat", &json!({"agent_id": text})),
            door.call(&server, 1, "get_task", &json!({"task_id": text})),
            door.call(&server, 1, "register_agent", &json!({"agent_id": "ada", "role": text})),
            door.call(&server, 1, "get_status", &json!({&text: 1})),
        ];
        for call in calls {
            server.ask(&call);
        }
        let call = door.call(&server, 1, "get_status", &json!({}));
        let escaped = json!({"agent": text}).to_string();
        let raw = format!("a\u{202e}{FORGED}\u{9b}31m");
        for name in [
            "callboard-caller",
            "User-Agent",
            "Origin",
            "Mcp-Name",
            "Mcp-Session-Id",
            "X-Any",
            "Authorization",
        ] {
            for value in [&escaped, &raw] {
                let mut connection = server.connect();
                connection.send(&call.clone().header(name, value));
                connection.answer();
            }
        }
        server.connect().ask(&call.clone().at(&format!("{}?{FORGED}=%0aFORGED%1b[31m", call.path)));
    }
    let initialize = server.initialize(1);
    let body = String::from_utf8(initialize.body.clone())
        .unwrap()
        .replace("\"old-client\"", &json!(text).to_string());
    server.ask(&initialize.with_body(body));
    let unknown = server.modern(1, "tools/call", json!({"name": text, "arguments": {}}));
    let base64 = "=?base64?YQpGT1JHRUQgYg==?=";
    server.ask(&unknown.without("Mcp-Name").header("Mcp-Name", base64));

    let log = server.log();
    assert!(!log.is_empty());
    let is_start =
        |line: &str| line.len() > 20 && line.starts_with("20") && line.as_bytes()[10] == b'T';
    let torn: Vec<_> = log.lines().filter(|line| !is_start(line)).take(3).collect();
    assert_eq!(torn, [""; 0], "lines that do not begin as lines of the log do");
    let commanding = |c: char| {
        c != '\n'
            && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    let raw: Vec<_> = log.lines().filter(|line| line.contains(commanding)).take(3).collect();
    assert_eq!(raw, [""; 0], "lines that a terminal would obey");
}

#[test]
fn idle_connections_do_not_keep_a_caller_from_being_answered() {
    let board = Board::new();
    let server = Server::on(&board);
    let half = server.rpc(1, "get_status", &json!({})).head();
    let idle: Vec<_> = (0..300)
        .map(|number| {
            let mut connection = server.connect();
            if number % 3 == 1 {
                connection.write(&half[..half.len() / 2]);
            }
            connection
        })
        .collect();
    let start = Instant::now();
    for door in Door::ALL {
        for _ in 0..20 {
            door.ok(&server, "get_status", &json!({}));
        }
    }
    let took = start.elapsed();
    println!("40 answers beside {} idle connections: {took:?}", idle.len());
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn connections_that_close_are_forgotten() {
    let board = Board::new();
    let server = Server::on(&board);
    Door::Rpc.ok(&server, "get_status", &json!({}));
    until(PATIENCE, "the listeners are left", || (server.sockets() <= 5).then_some(()));
    let before = server.sockets();
    let mut open: Vec<_> = (0..200).map(|_| server.connect()).collect();
    let mut sockets: Vec<_> = (0..50).map(|_| WebSocket::open(&server)).collect();
    for connection in &mut open {
        connection.ask(&server.request("GET", "/healthz"));
    }
    sockets.iter_mut().for_each(|socket| socket.send(1, "get_status", &json!({})));
    sockets.iter_mut().for_each(|socket| drop(socket.answer(1)));
    assert!(server.sockets() >= before + 250, "{}", server.sockets());
    drop((open, sockets));
    until(PATIENCE, "they are closed on the server's side, too", || {
        (server.sockets() <= before).then_some(())
    });
}
