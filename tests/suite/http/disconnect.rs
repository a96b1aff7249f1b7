//! Callers that disconnect while they wait, and agents that only their lease keeps on the board.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callboard::clock::ManualClock;
use callboard::participant::{self, Caller, Options, Stay};
use callboard::state::time::Timestamp;
use serde_json::{Value, json};

use super::{register, supersede, surely_waiting, waiting_claim};
use crate::harness::http::{Connection, Door, Server, Session, WebSocket};
use crate::harness::{Board, PATIENCE, until};

const ROUNDS: usize = 8;

/// Agent `gone` claims and disconnects, repeatedly; each time a task that is added then goes to
/// another agent. Each round keeps `kept` connections open.
#[track_caller]
fn gets_no_task(kept: usize, claim_and_go: impl Fn(&Server)) {
    let board = Board::new();
    let server = Server::on(&board);
    let idle = server.sockets();
    register(&server, "gone");
    register(&server, "other");
    // If all tasks were finished, a claim would not wait.
    register(&server, "keeper");
    Door::Rpc.ok(&server, "create_task", &json!({"description": "held throughout", "id": "held"}));
    Door::Rpc.ok(&server, "claim_task", &json!({"agent_id": "keeper", "task_id": "held"}));
    for round in 0..ROUNDS {
        claim_and_go(&server);
        // The server notices with some delay.
        let open = idle + kept * (round + 1);
        until(PATIENCE, "the server hears of it", || (server.sockets() <= open).then_some(()));
        Door::Mcp.ok(&server, "get_status", &json!({}));
        let id = format!("task-{round}");
        Door::Rpc.ok(&server, "create_task", &json!({"description": "d", "id": id}));
        let seen = Door::Rpc.ok(&server, "get_task", &json!({"task_id": id}));
        assert_eq!(seen["task"]["status"], "available", "round {round}: {seen}");
        let claim = Door::Mcp.ok(&server, "claim_task", &json!({"agent_id": "other"}));
        assert_eq!(
            (&claim["task"]["id"], &claim["attempt"]),
            (&json!(id), &json!(1)),
            "round {round}: {claim}"
        );
        Door::Rpc.ok(
            &server,
            "complete_task",
            &json!({"agent_id": "other", "task_id": id, "output": "o"}),
        );
    }
    assert!(board.tasks().values().all(|task| task["claimed_by"] != "gone"));
}

fn waits(server: &Server, send: impl FnOnce(&mut Connection)) -> Connection {
    supersede(surely_waiting(server, "gone"), || {
        let mut connection = server.connect();
        send(&mut connection);
        connection
    })
}

#[test]
fn modern_caller_that_closes_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| {
        drop(waits(server, |connection| {
            connection.send(&Door::Mcp.call(server, 1, "claim_task", &waiting_claim("gone")));
        }));
    });
}

#[test]
fn json_rpc_caller_that_closes_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| drop(surely_waiting(server, "gone")));
}

#[test]
fn json_rpc_batch_that_closes_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| {
        let call = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let batch =
            json!([call(1, "get_status", json!({})), call(2, "claim_task", waiting_claim("gone"))]);
        drop(waits(server, |connection| connection.send(&server.post("/rpc", batch.to_string()))));
    });
}

#[test]
fn websocket_that_closes_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| {
        let mut socket = WebSocket::open(server);
        supersede(surely_waiting(server, "gone"), || {
            socket.send(1, "claim_task", &waiting_claim("gone"))
        });
        drop(socket);
    });
}

#[test]
fn websocket_that_says_goodbye_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| {
        let mut socket = WebSocket::open(server);
        supersede(surely_waiting(server, "gone"), || {
            socket.send(1, "claim_task", &waiting_claim("gone"))
        });
        socket.close();
        while socket.next().is_some() {}
    });
}

#[test]
fn legacy_caller_that_closes_while_it_waits_gets_no_task() {
    gets_no_task(0, |server| {
        let session = Session::open(server);
        drop(waits(server, |connection| {
            connection.send(&session.call(1, "claim_task", &waiting_claim("gone")))
        }));
    });
}

#[test]
fn legacy_caller_that_cancels_while_it_waits_gets_no_task() {
    gets_no_task(1, |server| {
        let session = Session::open(server);
        let waiting = waits(server, |connection| {
            connection.send(&session.call(7, "claim_task", &waiting_claim("gone")))
        });
        assert_eq!(server.ask(&session.cancel(7)).status, 202);
        // Kept open, so that the notification ends the wait.
        std::mem::forget(waiting);
    });
}

#[test]
fn legacy_session_that_is_ended_while_it_waits_gets_no_task() {
    gets_no_task(1, |server| {
        let session = Session::open(server);
        let waiting = waits(server, |connection| {
            connection.send(&session.call(7, "claim_task", &waiting_claim("gone")))
        });
        let status = server.ask(&session.end()).status;
        assert!(matches!(status, 200..300), "{status}");
        std::mem::forget(waiting);
    });
}

#[test]
fn legacy_id_that_is_in_use_is_refused_and_takes_nothing() {
    let board = Board::new();
    let server = Server::on(&board);
    register(&server, "gone");
    let session = Session::open(&server);
    let mut waiting = waits(&server, |connection| {
        connection.send(&session.call(7, "claim_task", &waiting_claim("gone")))
    });
    let ping =
        |id: u64| server.ask(&session.post(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
    let refused = ping(7);
    assert_eq!(
        (refused.status, &refused.message()["error"]["code"]),
        (400, &json!(-32600)),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("id 7 has no answer yet"), "{}", refused.text());
    assert_eq!(ping(8).status, 200);
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d", "id": "t"}));
    let answer = waiting.answer().expect("the first call's answer");
    assert_eq!(
        answer.message()["result"]["structuredContent"]["task"]["id"],
        "t",
        "{}",
        answer.text()
    );
    // After the answer, the id may be used again.
    until(PATIENCE, "the id is free", || (ping(7).status == 200).then_some(()));
}

#[test]
fn caller_that_closes_its_sending_half_only_is_not_given_a_task_unseen() {
    let board = Board::new();
    let server = Server::on(&board);
    register(&server, "gone");
    let mut waiting = surely_waiting(&server, "gone");
    waiting.close_sending();
    Door::Mcp.ok(&server, "get_status", &json!({}));
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d", "id": "t"}));
    // Both outcomes are sound: the answer arrives, or there is no claim.
    let answered =
        waiting.answer().is_some_and(|answer| answer.message()["result"]["success"] == true);
    let task = Door::Rpc.ok(&server, "get_task", &json!({"task_id": "t"}));
    assert_eq!(answered, task["task"]["status"] == "claimed", "{task}");
}

#[test]
fn agent_over_http_has_no_presence_and_a_lease_that_its_calls_renew() {
    let board = Board::with_policy("lease_minutes = 1");
    let server = Server::on(&board);
    let session = Session::open(&server);
    let mut socket = WebSocket::open(&server);
    type Call<'a> = Box<dyn FnMut(&str, Value) -> Value + 'a>;
    let result = |message: Value| crate::harness::http::reply(&message).ok();
    let ways: [(&str, Call); 4] = [
        ("modern", Box::new(|operation, arguments| Door::Mcp.ok(&server, operation, &arguments))),
        ("rpc", Box::new(|operation, arguments| Door::Rpc.ok(&server, operation, &arguments))),
        (
            "legacy",
            Box::new(|operation, arguments| {
                result(server.ask(&session.call(1, operation, &arguments)).message())
            }),
        ),
        (
            "socket",
            Box::new(|operation, arguments| {
                socket.send(1, operation, &arguments);
                result(socket.answer(1))
            }),
        ),
    ];
    for (agent, mut call) in ways {
        call("register_agent", json!({"agent_id": agent, "role": "worker"}));
        let id = call("create_task", json!({"description": "d"}))["task"]["id"].take();
        call("claim_task", json!({"agent_id": agent}));
        let document = board.document();
        let shown = &document["agents"][agent];
        assert!(shown.is_object(), "{document}");
        assert!(shown["present_through"].as_array().is_none_or(Vec::is_empty), "{shown}");
        assert!(
            !document["participants"].to_string().contains(':'),
            "{}",
            document["participants"]
        );
        let lease = || millis(&board.task(id.as_str().unwrap())["attempts"][0]["lease_until"]);
        let first = lease();
        let left = first - now();
        assert!((50_000..=60_000).contains(&left), "{agent}: {left} ms");
        // A renewal is recorded once a tenth of the lease has passed.
        until(PATIENCE, "a call renews the lease", || {
            call("heartbeat", json!({"agent_id": agent}));
            (lease() > first).then_some(())
        });
    }
}

#[test]
fn task_of_an_agent_over_http_goes_back_when_its_lease_is_over() {
    for door in Door::ALL {
        let board = Board::with_policy("lease_minutes = 1");
        let server = Server::on(&board);
        register(&server, "gone");
        let id = door.ok(&server, "create_task", &json!({"description": "d"}))["task"]["id"].take();
        door.ok(&server, "claim_task", &json!({"agent_id": "gone"}));
        register(&server, "heir");
        let mut heir = surely_waiting(&server, "heir");
        let clock = ManualClock::at(Timestamp::from_millis(now()));
        let later = participant::spawn(Options {
            dir: board.dir().to_owned(),
            state_file: None,
            stay: Stay::Brief,
            forbidden: None,
            unasked: None,
            unwritable: None,
            clock: Box::new(clock.clone()),
            seed: 1,
            worktree: None,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let write = |goal: &str| {
            let nobody = Caller::default();
            let call = later.call(
                "init_coordination",
                json!({"goal": goal, "replace_goal": true}),
                &nobody,
            );
            runtime.block_on(call).unwrap_or_else(|error| panic!("{error}"))
        };
        write("time begins");
        clock.advance(Duration::from_secs(50));
        write("not yet over");
        let held = door.ok(&server, "get_task", &json!({"task_id": id}));
        assert_eq!(held["task"]["status"], "claimed", "{held}");
        clock.advance(Duration::from_secs(20));
        write("over");
        let claim = heir.answer().unwrap().message();
        assert_eq!(
            (&claim["result"]["task"]["id"], &claim["result"]["attempt"]),
            (&id, &json!(2)),
            "{claim}"
        );
        let late = json!({"agent_id": "gone", "task_id": id, "attempt": 1, "output": "late"});
        assert_eq!(door.ask(&server, "complete_task", &late).value["code"], "attempt_over");
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

fn millis(time: &Value) -> i64 {
    let text = time.as_str().unwrap_or_else(|| panic!("no time: {time}"));
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}
