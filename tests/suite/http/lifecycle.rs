//! How a server starts and ends, beside other servers and without a board.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use callboard::state::limit::IN_FLIGHT;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{register, supersede, surely_waiting, waiting_claim};
use crate::harness::http::{Connection, Door, Server, Session, WebSocket, reply, serve};
use crate::harness::{Board, PATIENCE, STATE_FILE, size, until};

const END: Duration = Duration::from_secs(5);

/// Asserts that the connection ends with a complete answer that gives no task, or with none.
#[track_caller]
fn assert_let_go(mut connection: Connection) {
    if let Some(answer) = connection.answer()
        && answer.status == 200
    {
        assert_ne!(reply(&answer.message()).value["success"], true, "{}", answer.text());
    }
}

#[test]
fn signal_ends_the_server_within_five_seconds_and_lets_everybody_go() {
    for signal in [Signal::TERM, Signal::INT] {
        let board = Board::new();
        let mut server = Server::on(&board);
        for agent in ["modern", "legacy", "rpc", "socket"] {
            register(&server, agent);
        }
        let send = |request| {
            let mut connection = server.connect();
            connection.send(&request);
            connection
        };
        let modern = supersede(surely_waiting(&server, "modern"), || {
            send(Door::Mcp.call(&server, 1, "claim_task", &waiting_claim("modern")))
        });
        let session = Session::open(&server);
        let legacy = supersede(surely_waiting(&server, "legacy"), || {
            send(session.call(1, "claim_task", &waiting_claim("legacy")))
        });
        let rpc = surely_waiting(&server, "rpc");
        let mut stream = session.stream();
        let mut socket = WebSocket::open(&server);
        socket.send(1, "subscribe_events", &json!({}));
        assert!(socket.answer(1)["result"] != Value::Null);
        supersede(surely_waiting(&server, "socket"), || {
            socket.send(2, "claim_task", &waiting_claim("socket"))
        });
        let events = send(server.rpc(1, "wait_for_events", &json!({"wait_seconds": 50})));
        let mut idle = server.connect();
        idle.ask(&server.request("GET", "/healthz"));
        let mut half = server.connect();
        half.write(b"POST /rpc HTTP/1.1\r\nHost: localh");

        server.signal(signal);
        let status = server.ends_within(END);
        assert_eq!(status.code(), Some(0), "{signal:?} {}", server.log());
        for connection in [modern, rpc, events] {
            assert_let_go(connection);
        }
        // A stream that has begun may end without an answer; its client treats that as a broken
        // connection.
        let rest = String::from_utf8_lossy(&{ legacy }.rest()).into_owned();
        assert!(!rest.contains("\"success\":true"), "{rest}");
        stream.rest();
        while let Some(message) = socket.next() {
            assert_ne!(message["result"]["success"], true, "{message}");
        }
        assert_eq!(
            (idle.answer().is_none(), half.answer().is_none_or(|answer| answer.status >= 400)),
            (true, true)
        );
        assert!(std::net::TcpStream::connect(server.address).is_err(), "the port is still taken");
    }
}

#[test]
fn signal_waits_for_no_client_that_does_not_read_or_write() {
    let board = Board::new();
    let mut server = Server::on(&board);
    let text = "x".repeat(10_000);
    for number in 0..60 {
        Door::Rpc.ok(
            &server,
            "create_task",
            &json!({"description": text, "id": format!("task-{number}")}),
        );
    }
    let mut deaf = server.connect();
    let list = server.rpc(1, "get_all_tasks", &json!({"limit": 50})).bytes();
    deaf.write(&list.repeat(20));
    let mut slow = server.connect();
    slow.write(&server.rpc(1, "get_status", &json!({})).header("Content-Length", "100000").head());
    let mut deaf_socket = WebSocket::open(&server);
    for id in 0..20 {
        deaf_socket.send(id, "get_all_tasks", &json!({"limit": 50}));
    }
    Door::Rpc.ok(&server, "get_status", &json!({}));
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(END).code(), Some(0));
}

#[test]
fn second_signal_does_no_harm() {
    let board = Board::new();
    let mut server = Server::on(&board);
    register(&server, "a");
    let waiting = surely_waiting(&server, "a");
    server.signal(Signal::TERM);
    server.signal(Signal::INT);
    assert_eq!(server.ends_within(END).code(), Some(0));
    assert_let_go(waiting);
}

#[test]
fn what_was_acknowledged_before_a_signal_is_on_the_board() {
    let board = Board::new();
    let mut server = Server::on(&board);
    let mut connection = server.connect();
    for number in 0..50 {
        connection.send(&server.rpc(
            number,
            "create_task",
            &json!({"description": "d", "id": format!("task-{number}")}),
        ));
    }
    let first = connection.answer().unwrap();
    server.signal(Signal::TERM);
    let mut acknowledged = vec![first];
    while let Some(answer) = connection.answer() {
        acknowledged.push(answer);
    }
    assert_eq!(server.ends_within(END).code(), Some(0));
    let tasks = board.tasks();
    for answer in acknowledged.iter().filter(|answer| answer.status == 200) {
        let message = answer.message();
        if let Some(id) = message["result"]["task"]["id"].as_str() {
            assert!(tasks.contains_key(id), "{id}");
        }
    }
    board.assert_file_is_the_replay();
}

#[test]
fn a_signal_lets_calls_on_a_web_socket_have_their_answers() {
    let board = Board::new();
    let mut server = Server::on(&board);
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    let mut socket = WebSocket::open(&server);
    let lock = fs::File::open(board.file("lock")).unwrap();
    lock.lock().unwrap();
    socket.send(1, "create_task", &json!({"description": "d"}));
    socket.send(2, "get_status", &json!({}));
    socket.answer(2);
    server.signal(Signal::TERM);
    until(PATIENCE, "no more connections", || std::net::TcpStream::connect(server.address).err());
    lock.unlock().unwrap();
    assert_eq!(socket.answer(1)["result"]["success"], true);
    assert_eq!(server.ends_within(END).code(), Some(0));
}

#[test]
fn more_calls_at_once_than_a_web_socket_has_room_for_wait_for_the_others() {
    let board = Board::new();
    let server = Server::on(&board);
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    let newest = board.document()["seq"].clone();
    let mut socket = WebSocket::open(&server);
    let most = IN_FLIGHT.max as u64;
    for id in 0..most {
        socket.send(id, "wait_for_events", &json!({"since_seq": newest, "wait_seconds": 50}));
    }
    socket.send(most, "get_status", &json!({}));
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    let status = socket.answer(most);
    assert_eq!(status["result"]["total_tasks"], 2, "{status}");
}

#[test]
fn two_servers_on_one_board_are_one_queue() {
    let board = Board::new();
    let servers = [Server::on(&board), Server::on(&board)];
    // If all tasks were finished, a claim would not wait.
    register(&servers[0], "keeper");
    Door::Rpc.ok(
        &servers[0],
        "create_task",
        &json!({"description": "held throughout", "id": "held"}),
    );
    Door::Rpc.ok(&servers[1], "claim_task", &json!({"agent_id": "keeper", "task_id": "held"}));
    for (number, door) in Door::ALL.into_iter().enumerate() {
        let (maker, taker) = (&servers[number], &servers[1 - number]);
        let agent = format!("agent-{number}");
        register(taker, &agent);
        let id = door.ok(maker, "create_task", &json!({"description": "d"}))["task"]["id"].take();
        let claim = door.ok(taker, "claim_task", &json!({"agent_id": agent}));
        assert_eq!(claim["task"]["id"], id, "{claim}");
        let seen = door.ok(maker, "get_task", &json!({"task_id": id}));
        assert_eq!(seen["task"]["claimed_by"], agent);
        let other = format!("other-{number}");
        register(taker, &other);
        let mut waiting = surely_waiting(taker, &other);
        let id = door.ok(maker, "create_task", &json!({"description": "d"}))["task"]["id"].take();
        let claim = waiting.answer().unwrap().message();
        assert_eq!(claim["result"]["task"]["id"], id, "{claim}");
    }
}

#[test]
fn killed_server_loses_nothing_that_it_acknowledged() {
    let kills = size("CALLBOARD_SERVER_KILLS", 3);
    let board = Board::new();
    let acknowledged: Vec<BTreeSet<String>> =
        (0..kills).map(|kill| load_until_killed(&board, kill)).collect();
    let tasks = board.tasks();
    let acknowledged: BTreeSet<_> = acknowledged.into_iter().flatten().collect();
    let lost: Vec<_> = acknowledged.iter().filter(|id| !tasks.contains_key(*id)).collect();
    assert_eq!(lost, [""; 0]);
    println!(
        "{kills} SIGKILLs under load: {} creates acknowledged, {} on the board, 0 lost",
        acknowledged.len(),
        tasks.len()
    );
    board.replay();
    // The next process repairs the state file.
    let server = Server::on(&board);
    Door::Mcp.ok(&server, "create_task", &json!({"description": "d"}));
    board.assert_file_is_the_replay();
}

/// Four callers create tasks until the server is killed. Returns the tasks that they know were
/// created.
fn load_until_killed(board: &Board, kill: usize) -> BTreeSet<String> {
    let mut server = Server::on(board);
    let (address, count) = (server.address, AtomicUsize::new(0));
    let calls = Door::ALL.map(|door| {
        let template =
            door.call(&server, 1, "create_task", &json!({"description": "d", "id": "ID"}));
        move |id: &str| {
            let body = String::from_utf8(template.body.clone())
                .unwrap()
                .replace("\"ID\"", &format!("{id:?}"));
            template.clone().with_body(body)
        }
    });
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                let (call, count) = (&calls[caller % 2], &count);
                let mut connection = Connection::to(address);
                scope.spawn(move || {
                    let mut known = BTreeSet::new();
                    for number in 0.. {
                        let id = format!("task-{kill}-{caller}-{number}");
                        let whole = connection.write(&call(&id).bytes());
                        // A killed server may leave half an answer.
                        let answer = String::from_utf8_lossy(&if whole {
                            connection.some()
                        } else {
                            Vec::new()
                        })
                        .into_owned();
                        if !answer.contains(&format!("\"id\":\"{id}\"")) {
                            return known;
                        }
                        known.insert(id);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    known
                })
            })
            .collect();
        until(PATIENCE, "the load is on", || (count.load(Ordering::Relaxed) > 60).then_some(()));
        server.kill();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    })
}

#[test]
fn taken_port_is_told_with_the_way_out() {
    let board = Board::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (mut command, log) = serve(&board, &["--listen", &address]);
    let output = command.output().unwrap();
    let said = fs::read_to_string(log).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{said}");
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
    assert_eq!(said.matches("in use").count(), 1, "{said}");
}

#[test]
fn board_that_everybody_may_write_is_not_served() {
    let board = Board::new();
    board.make_dir();
    fs::set_permissions(board.dir(), fs::Permissions::from_mode(0o777)).unwrap();
    let (mut command, log) = serve(&board, &[]);
    let mut process = command.spawn().unwrap();
    let status = until(PATIENCE, "the server refuses", || process.try_wait().unwrap());
    let said = fs::read_to_string(log).unwrap();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("chmod 700"), "{said}");
    assert!(!board.file("serve.token").exists());
}

#[test]
fn board_is_made_by_the_first_write_and_not_before() {
    for door in Door::ALL {
        let board = Board::new();
        let server = Server::on(&board);
        door.ok(&server, "get_status", &json!({}));
        assert!(!board.file(STATE_FILE).exists() && !board.file("journal.db").exists());
        let ready = server.ask(&server.request("GET", "/readyz"));
        assert_eq!(ready.status, 200, "{}", ready.text());
        let id = door.ok(&server, "create_task", &json!({"description": "d"}))["task"]["id"].take();
        assert_eq!(board.task(id.as_str().unwrap())["status"], "available");
        assert_eq!(fs::metadata(board.dir()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn board_that_cannot_be_read_is_not_ready_and_its_callers_are_told() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    fs::write(
        board.file("journal.db"),
        "this is no database, and long enough to be looked at".repeat(100),
    )
    .unwrap();
    for name in ["journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(board.file(name));
    }
    // Otherwise the board would continue from this file.
    fs::write(board.file(STATE_FILE), "{").unwrap();
    let server = Server::on(&board);
    assert_eq!(server.ask(&server.request("GET", "/healthz")).status, 200);
    let ready = server.ask(&server.request("GET", "/readyz"));
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert!(!ready.text().contains(board.dir().to_str().unwrap()), "{}", ready.text());
    let failed = server.ask(&server.rpc(1, "get_status", &json!({}))).message();
    assert_eq!(failed["error"]["code"], -32001, "{failed}");
    assert!(failed["error"]["data"]["code"].is_string(), "{failed}");
    assert!(Door::Mcp.ask(&server, "get_status", &json!({})).is_error);
}

#[test]
fn session_of_a_server_before_is_told_of_what_it_may_have_subscribed_to() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let id = Session::open(&Server::on(&board)).id;
    let server = Server::on(&board);
    let session = Session { server: &server, id };
    let listed =
        server.ask(&session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list"})));
    assert!(listed.message()["result"]["resources"].is_array(), "{}", listed.text());
    let mut stream = session.stream();
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    let told = |stream: &Connection| String::from_utf8_lossy(&stream.unread).into_owned();
    for what in ["coordination://status", "coordination://tasks", "list_changed"] {
        while !told(&stream).contains(what) {
            assert!(stream.read_more(), "{what}: {}", told(&stream));
        }
    }
    let told = told(&stream);
    assert!(!told.contains("coordination://discoveries"), "{told}");
}

#[test]
fn session_that_begins_again_is_told_of_the_list_once() {
    let board = Board::new();
    let server = Server::on(&board);
    let session = Session::open(&server);
    let ask = |message: Value| server.ask(&session.post(&message)).status;
    for _ in 0..4 {
        assert_eq!(ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})), 202);
    }
    let status = json!({"uri": "coordination://status"});
    assert_eq!(
        ask(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": status})),
        200
    );
    let mut stream = session.stream();
    let told = |stream: &Connection, what: &str| {
        String::from_utf8_lossy(&stream.unread).matches(what).count()
    };
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    while told(&stream, "list_changed") == 0 || told(&stream, "coordination://status") == 0 {
        assert!(stream.read_more());
    }
    // Notifications of this come later than those before.
    board.cli_ok("add_discovery", json!({"content": "c"}));
    while told(&stream, "coordination://status") < 2 {
        assert!(stream.read_more());
    }
    assert_eq!(told(&stream, "list_changed"), 1, "{}", String::from_utf8_lossy(&stream.unread));
}

#[test]
fn one_stream_of_a_session_is_told_and_the_others_come_in_when_it_ends() {
    let board = Board::new();
    let server = Server::on(&board);
    let session = Session::open(&server);
    let status = json!({"uri": "coordination://status"});
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": status});
    assert_eq!(server.ask(&session.post(&subscribe)).status, 200);
    let changes = || drop(Door::Rpc.ok(&server, "create_task", &json!({"description": "d"})));
    let hears = |stream: &mut Connection| {
        while !String::from_utf8_lossy(&stream.unread).contains("coordination://status") {
            assert!(stream.read_more());
        }
    };
    let mut first = session.stream();
    // As clients do that resume a finished answer, or have lost their connection.
    let mut silent: Vec<Connection> = (0..2).map(|_| session.stream()).collect();
    assert_eq!(server.ask(&session.get("application/json")).status, 406);
    changes();
    hears(&mut first);
    drop(first);
    for stream in &mut silent {
        while !stream.unread.ends_with(b"0\r\n\r\n") {
            assert!(stream.read_more());
        }
        let told = String::from_utf8_lossy(&stream.unread);
        assert!(!told.contains("coordination://status"), "{told}");
    }
    let mut next = session.stream();
    changes();
    hears(&mut next);
}
