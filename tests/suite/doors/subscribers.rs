//! Very many WebSockets that all receive every event.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Way;
use crate::harness::http::{Door, Server, TEXT, WebSocket};
use crate::harness::{Board, PATIENCE, size, until};

const CALLERS: usize = 64;
/// Rounds in which each caller creates, claims and completes a task.
const ROUNDS: usize = 4;
/// The task that is created after everything else.
const LAST: &str = "last";
/// Most subscriptions of one connection.
const SUBSCRIPTIONS: usize = 16;
/// Size and number of answers that together exceed the kernel's buffers for a reader.
const PLAN: usize = 250 << 10;
const UNREAD: usize = 40;
/// Events after which every tenth subscriber reconnects.
const RECONNECTS_AFTER: usize = 100;
/// Memory by which the server may grow, per subscriber and in all.
const MEMORY_EACH: u64 = 96 << 10;
const MEMORY: u64 = 48 << 20;
/// Stack size of a thread that only reads.
const STACK: usize = 256 << 10;

fn subscribe(socket: &mut WebSocket, since: Option<u64>) -> Value {
    let params = since.map_or(json!({}), |since| json!({"since_seq": since}));
    socket.send(1, "subscribe_events", &params);
    let answer = socket.answer(1);
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap_or_else(|| panic!("no event: {event}"))
}

fn is_last(event: &Value) -> bool {
    event["tasks"][0]["id"] == LAST
}

/// A subscriber that reads everything after `since`, and checks that events come once and in order.
struct Follower<'a> {
    server: &'a Server,
    since: u64,
    /// Start of the subscription; none means from now on.
    asked: Option<u64>,
    reconnects: bool,
}

impl Follower<'_> {
    /// Reads up to the last event. Returns all events.
    fn follow(self, ready: &Sender<()>) -> Vec<Value> {
        let mut socket = WebSocket::open(self.server);
        subscribe(&mut socket, self.asked);
        ready.send(()).unwrap();
        let (mut seen, mut newest, mut reconnects) = (Vec::new(), self.since, self.reconnects);
        loop {
            let mut message = socket.next().expect("the subscription goes on");
            let event = message["params"]["result"].take();
            assert_eq!(seq(&event), newest + 1, "{event}");
            newest += 1;
            let ends = is_last(&event);
            seen.push(event);
            if ends {
                return seen;
            }
            if reconnects && seen.len() >= RECONNECTS_AFTER {
                reconnects = false;
                socket = WebSocket::open(self.server);
                subscribe(&mut socket, Some(newest));
            }
        }
    }
}

/// Creates, claims and completes tasks.
fn work(mut way: Way, agent: &str) {
    way.ok("register_agent", &json!({"agent_id": agent, "role": "worker"}));
    for round in 0..ROUNDS {
        way.ok(
            "create_task",
            &json!({"id": format!("{agent}-{round}"), "description": "one of very many tasks"}),
        );
        let claim = way.ok("claim_task", &json!({"agent_id": agent}));
        let output = json!({"agent_id": agent, "task_id": claim["task"]["id"], "output": "done"});
        way.ok("complete_task", &output);
    }
}

struct Measured {
    /// Time until the last caller was answered, and until the last subscriber had seen all.
    called: Duration,
    seen: Duration,
}

/// Runs callers while subscribers watch, together with whatever `beside` does, such as clients that
/// do not read.
fn run(subscribers: usize, beside: impl FnOnce(&Server, &Sender<()>) + Send) -> Measured {
    let board = Board::new();
    let server = Server::with(&board, &[], &[("CALLBOARD_LOG", "info")]);
    Door::Rpc.ok(
        &server,
        "init_coordination",
        &json!({"goal": "to be seen", "master_plan": "x".repeat(PLAN)}),
    );
    let head = || Door::Rpc.ok(&server, "get_status", &json!({}))["seq"].as_u64().unwrap();
    let (start, sockets, before) = (head(), server.sockets(), server.memory());
    let (ready, subscribed) = channel();
    let (mut peak, mut called, mut seen) = (0, Duration::ZERO, Duration::ZERO);
    thread::scope(|scope| {
        let follow = |number: usize| {
            let (since, asked) = if number % 4 == 1 { (0, Some(0)) } else { (start, None) };
            let follower =
                Follower { server: &server, since, asked, reconnects: number.is_multiple_of(10) };
            let ready = ready.clone();
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, move || follower.follow(&ready)).unwrap()
        };
        let followers: Vec<_> = (0..subscribers).map(follow).collect();
        let told = ready.clone();
        let beside = scope.spawn(|| beside(&server, &{ told }));
        (0..=subscribers).for_each(|_| subscribed.recv_timeout(PATIENCE).expect("all subscribe"));
        let idle = server.memory();
        let begun = Instant::now();
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let mut ways = Way::of_server(&server);
                let way = ways.swap_remove(number % ways.len());
                scope.spawn(move || work(way, &format!("caller-{number}")))
            })
            .collect();
        let mut all_done = |threads: &dyn Fn() -> bool| {
            until(PATIENCE, "all are done", || {
                peak = peak.max(server.memory());
                threads().then(|| begun.elapsed())
            })
        };
        called = all_done(&|| callers.iter().all(ScopedJoinHandle::is_finished));
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        Door::Rpc.ok(&server, "create_task", &json!({"id": LAST, "description": "the end"}));
        seen = all_done(&|| followers.iter().all(ScopedJoinHandle::is_finished));
        let histories: Vec<_> =
            followers.into_iter().map(|follower| follower.join().unwrap()).collect();
        compare(&board, start, &histories);
        beside.join().unwrap();
        let events = histories[0].len() * subscribers;
        println!(
            "{subscribers} subscribers, {CALLERS} callers, {} events: called {called:.1?}, seen \
             {seen:.1?}, {:.0} a second",
            histories[0].len(),
            events as f64 / seen.as_secs_f64(),
        );
        println!(
            "    memory: {} MB, {} MB subscribed, {} MB at most",
            before >> 20,
            idle >> 20,
            peak >> 20
        );
    });
    until(PATIENCE, "all have gone", || (server.sockets() <= sockets).then_some(()));
    println!("    memory afterwards: {} MB", server.memory() >> 20);
    let allowed = MEMORY + MEMORY_EACH * subscribers as u64;
    assert!(peak.saturating_sub(before) < allowed, "{peak} bytes, {before} before");
    Measured { called, seen }
}

/// Asserts that every subscriber saw what is in the journal.
fn compare(board: &Board, start: u64, histories: &[Vec<Value>]) {
    let journal: Vec<_> =
        board.events().iter().map(|recorded| serde_json::to_value(recorded).unwrap()).collect();
    for history in histories {
        let first = seq(&history[0]) as usize;
        assert!(first == 1 || first == start as usize + 1);
        assert!(journal[first - 1..].starts_with(history) && history.last().is_some_and(is_last));
    }
    board.assert_file_is_the_replay();
}

#[test]
fn subscription_is_answered_once_also_in_a_batch() {
    let board = Board::new();
    let server = Server::on(&board);
    let mut socket = WebSocket::open(&server);
    let subscribe = |id: u64, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": "subscribe_events", "params": params});
    let status =
        |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "get_status", "params": {}});
    let batches = [
        json!([subscribe(1, json!({}))]),
        json!([subscribe(2, json!({"kinds": ["zz"]})), status(3)]),
        json!([subscribe(4, json!([1]))]),
    ];
    let mut answers: Vec<Value> = Vec::new();
    let mut send_and_read = |message: &Value, ids: &[u64]| {
        socket.frame(TEXT, message.to_string().as_bytes());
        while !ids.iter().all(|id| answers.iter().any(|answer| answer["id"] == *id)) {
            match socket.next().expect("an answer") {
                Value::Array(batch) => answers.extend(batch),
                answer => answers.push(answer),
            }
        }
    };
    for (batch, ids) in batches.iter().zip([&[1][..], &[2, 3], &[4]]) {
        send_and_read(batch, ids);
    }
    // Duplicate answers would come before this one.
    send_and_read(&status(5), &[5]);
    let mut ids: Vec<_> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5], "{answers:?}");
    let refused = answers.iter().find(|answer| answer["id"] == 4).expect("it is there");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|why| why.contains("since_seq?")),
        "{refused}"
    );
}

#[test]
fn every_subscriber_sees_every_event_once_and_whoever_does_not_read_slows_nobody() {
    let subscribers = size("CALLBOARD_SUBSCRIBERS", 50);
    let alone = || run(subscribers, |_, ready| ready.send(()).unwrap());
    // Measured before and after, because the machine also runs other tests.
    let (before, beside, after) = (alone(), run(subscribers, stop_reading), alone());
    let (called, seen) = (before.called.max(after.called), before.seen.max(after.seen));
    println!("beside one that does not read: seen {:.1?}, without it {seen:.1?}", beside.seen);
    let allowed = |time: Duration| time * 2 + Duration::from_secs(2);
    assert!(beside.called < allowed(called), "{:?} {called:?}", beside.called);
    assert!(beside.seen < allowed(seen), "{:?} {seen:?}", beside.seen);
}

/// What one connection heard: the newest event of each subscription, and which have ended.
#[derive(Default)]
struct Heard {
    newest: BTreeMap<String, u64>,
    ended: BTreeMap<String, u64>,
}

impl Heard {
    fn hear(&mut self, message: &Value, since: u64) {
        if message["id"] == 1 {
            self.newest.insert(message["result"].to_string(), since);
        }
        let params = &message["params"];
        if params.is_null() {
            return;
        }
        let id = params["subscription"].to_string();
        assert!(!self.ended.contains_key(&id), "{message}");
        let newest = self.newest.get_mut(&id).expect("a subscription");
        let error = &params["error"];
        if error.is_null() {
            assert_eq!(seq(&params["result"]), *newest + 1);
            *newest += 1;
        } else {
            assert_eq!(
                (&error["code"], &error["next_seq"]),
                (&json!("too_slow"), &json!(*newest)),
                "{message}"
            );
            self.ended.insert(id, *newest);
        }
    }
}

/// Subscribes as often as allowed, requests more than the kernel buffers, and reads nothing until
/// the server has given up. Then it finds everything sent so far, is told why the rest is missing,
/// and gets that on request.
fn stop_reading(server: &Server, ready: &Sender<()>) {
    let since = Door::Rpc.ok(server, "get_status", &json!({}))["seq"].as_u64().unwrap();
    let mut socket = WebSocket::open(server);
    let mut heard = Heard::default();
    for _ in 0..SUBSCRIPTIONS {
        socket.send(1, "subscribe_events", &json!({"since_seq": since}));
    }
    while heard.newest.len() < SUBSCRIPTIONS {
        heard.hear(&socket.next().expect("an answer"), since);
    }
    (0..UNREAD).for_each(|_| socket.send(2, "get_master_plan", &json!({})));
    ready.send(()).unwrap();
    let given_up = || server.log().matches("too slow").count() == SUBSCRIPTIONS;
    until(PATIENCE, "it is too slow", || given_up().then_some(()));
    while heard.ended.len() < SUBSCRIPTIONS {
        heard.hear(&socket.next().expect("the end of each subscription"), since);
    }
    let slowest = *heard.ended.values().min().unwrap();
    let resumed = Follower { server, since: slowest, asked: Some(slowest), reconnects: false };
    let (ready, _subscribed) = channel();
    println!(
        "    too slow after {} events; then {} more",
        slowest - since,
        resumed.follow(&ready).len()
    );
}
