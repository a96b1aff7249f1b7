//! Agents that wait in `claim_task` over HTTP.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::event::Event;
use serde_json::{Value, json};

use super::{Times, Way, keep_busy};
use crate::harness::http::{Door, Server};
use crate::harness::{Board, PATIENCE, size, until};

const AGENTS: usize = 64;
/// Most time, at the median, from the reply to an addition until an agent has its task.
const SOON: Duration = Duration::from_millis(20);

fn waiting_claim(agent: &str) -> Value {
    json!({"agent_id": agent, "wait_seconds": 50})
}

/// Claims and completes until the board is paused; `tell` gets each task and when it came.
fn work(way: &mut Way, agent: &str, mut tell: impl FnMut(String, Instant)) {
    way.ok("register_agent", &json!({"agent_id": agent, "role": "worker"}));
    loop {
        let claim = way.ok("claim_task", &waiting_claim(agent));
        let came = Instant::now();
        if claim["success"] == false {
            match claim["verdict"].as_str() {
                Some("paused") => return,
                Some("wait" | "empty") => continue,
                _ => panic!("{claim}"),
            }
        }
        let id = claim["task"]["id"].as_str().unwrap();
        way.ok("complete_task", &json!({"agent_id": agent, "task_id": id, "output": agent}));
        tell(id.to_owned(), came);
    }
}

/// When an addition began, when it was answered, and when an agent had its task.
struct Addition {
    began: Instant,
    answered: Instant,
    came: Instant,
}

#[test]
fn tasks_added_one_by_one_reach_a_waiting_agent_at_once() {
    let tasks = size("CALLBOARD_ADDED", 60);
    let agents = size("CALLBOARD_AGENTS", AGENTS);
    let board = Board::new();
    let server = Server::on(&board);
    keep_busy(&server);
    let (sender, done) = channel();
    let mut additions = BTreeMap::<&str, Vec<Addition>>::new();
    thread::scope(|scope| {
        for number in 0..agents {
            let (server, sender) = (&server, sender.clone());
            scope.spawn(move || {
                let connection = server.connect();
                let mut way = Way::Modern(server, connection);
                work(&mut way, &format!("agent-{number}"), |task, came| {
                    sender.send((task, came)).unwrap()
                });
            });
        }
        let registered =
            || Door::Rpc.ok(&server, "get_status", &json!({}))["agents"]["total"] == agents + 1;
        until(PATIENCE, "all have registered", || registered().then_some(()));
        let mut doors = [Way::Rpc(&server, server.connect()), Way::Stdio(board.mcp())];
        for number in 0..tasks {
            let door = &mut doors[number % 2];
            let id = format!("added-{number}");
            let began = Instant::now();
            door.ok("create_task", &json!({"id": id, "description": "do it"}));
            let answered = Instant::now();
            let (task, came) = done.recv_timeout(PATIENCE).unwrap();
            assert_eq!(task, id);
            additions.entry(door.name()).or_default().push(Addition { began, answered, came });
        }
        Door::Rpc.ok(&server, "pause", &json!({"reason": "the end"}));
    });
    for (door, additions) in &additions {
        let times =
            |time: fn(&Addition) -> Duration| Times::of(additions.iter().map(time).collect());
        let after = times(|one| one.came.saturating_duration_since(one.answered));
        let whole = times(|one| one.came - one.began);
        println!(
            "{agents} waiting agents, {} tasks through {door}: at an agent {after} after the reply",
            additions.len()
        );
        println!("    and {whole} after the addition began");
        // Allows as much as a few durable calls take on this machine, which also runs other tests.
        let call = times(|one| one.answered - one.began);
        assert!(after.median() < SOON.max(3 * call.median()), "{door}: {after}; a call {call}");
    }
    let mut claims = BTreeMap::<String, usize>::new();
    for recorded in board.events() {
        if let Event::Claimed { task, .. } = recorded.event {
            *claims.entry(task.as_str().to_owned()).or_default() += 1;
        }
    }
    assert!(claims.len() == tasks + 1 && claims.values().all(|times| *times == 1), "{claims:?}");
    assert_eq!(board.tasks().values().filter(|task| task["status"] == "done").count(), tasks);
    board.assert_file_is_the_replay();
}

#[test]
fn clients_that_left_while_they_waited_never_get_a_task() {
    const GONE: usize = 16;
    let board = Board::new();
    let server = Server::on(&board);
    keep_busy(&server);
    let mut leader = Way::Rpc(&server, server.connect());
    let mut heir = Way::Modern(&server, server.connect());
    heir.ok("register_agent", &json!({"agent_id": "heir", "role": "worker"}));
    for number in 0..GONE {
        let agent = format!("gone-{number}");
        leader.ok("register_agent", &json!({"agent_id": agent, "role": "worker"}));
        let before = server.sockets();
        let mut connection = server.connect();
        let door = Door::ALL[number % 2];
        connection.send(&door.call(&server, 1, "claim_task", &waiting_claim(&agent)));
        // This call comes later and is answered, so the claim has arrived.
        Door::Rpc.ok(&server, "get_status", &json!({}));
        until(PATIENCE, "the claim waits", || (server.sockets() > before).then_some(()));
        assert!(!connection.is_readable(), "{agent} waits");
        drop(connection);
        until(PATIENCE, "the server sees that it is gone", || {
            (server.sockets() <= before).then_some(())
        });
        let id = format!("task-{number}");
        leader.ok("create_task", &json!({"id": id, "description": "do it"}));
        let claim = heir.ok("claim_task", &waiting_claim("heir"));
        assert_eq!(claim["task"]["id"], id.as_str(), "{claim}");
        heir.ok("complete_task", &json!({"agent_id": "heir", "task_id": id, "output": "done"}));
    }
    let lost = |event: &Event| matches!(event, Event::Claimed { agent, .. } if agent.as_str().starts_with("gone"));
    assert!(!board.events().iter().any(|recorded| lost(&recorded.event)));
    board.assert_file_is_the_replay();
}
