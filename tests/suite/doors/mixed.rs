//! Agents on every transport at once, on one board.

use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

use callboard::state::event::Event;
use serde_json::{Value, json};

use super::Way;
use crate::harness::http::{Door, Server, WebSocket};
use crate::harness::{Board, PATIENCE, until};

/// Tasks are in rows; each depends on two of the row before.
const ROWS: usize = 16;
const ROW: usize = 8;
const TASKS: usize = ROWS * ROW;
/// Number of agents for each kind of client.
const EACH: usize = 2;

fn id(row: usize, place: usize) -> String {
    format!("task-{row}-{place}")
}

fn task(row: usize, place: usize) -> Value {
    let before: Vec<_> = match row.checked_sub(1) {
        Some(row) => [place, (place + 1) % ROW].map(|place| id(row, place)).to_vec(),
        None => Vec::new(),
    };
    json!({"id": id(row, place), "description": format!("the {place} of row {row}"), "dependencies": before})
}

/// Works until everything is finished, and returns the tasks done.
fn work(mut way: Way, agent: &str) -> Vec<String> {
    let mut done = Vec::new();
    way.ok("register_agent", &json!({"agent_id": agent, "role": "worker"}));
    loop {
        let claim = way.ok("claim_task", &json!({"agent_id": agent, "wait_seconds": 5}));
        if claim["success"] == false {
            match claim["verdict"].as_str() {
                Some("finished") => return done,
                Some("wait" | "empty") => continue,
                _ => panic!("{claim}"),
            }
        }
        assert!(claim["already"].is_null(), "{claim}");
        let task = claim["task"]["id"].as_str().unwrap().to_owned();
        if done.len().is_multiple_of(2) {
            way.ok("start_task", &json!({"agent_id": agent, "task_id": task}));
        }
        let output = format!("{task} by {agent}");
        way.ok("complete_task", &json!({"agent_id": agent, "task_id": task, "output": output}));
        done.push(task);
    }
}

#[test]
fn agents_by_every_door_do_every_task_once_and_make_one_history() {
    let board = Board::new();
    let server = Server::on(&board);
    for row in 0..ROWS {
        // Uses all kinds of clients in turn.
        let mut ways = Way::all(&board, &server);
        let tasks: Vec<_> = (0..ROW).map(|place| task(row, place)).collect();
        let turn = row % ways.len();
        ways[turn].ok("create_tasks_batch", &json!({"tasks": tasks}));
    }
    let start = Instant::now();
    let by_way: Vec<(&str, Vec<String>)> = thread::scope(|scope| {
        let mut agents = Vec::new();
        for number in 0..EACH {
            for way in Way::all(&board, &server) {
                let (name, agent) =
                    (way.name(), format!("{}-{number}", way.name().replace([' ', '.'], "-")));
                agents.push((name, scope.spawn(move || work(way, &agent))));
            }
        }
        agents.into_iter().map(|(name, agent)| (name, agent.join().unwrap())).collect()
    });
    let took = start.elapsed();
    let shares: Vec<_> =
        by_way.iter().map(|(name, done)| format!("{name} {}", done.len())).collect();
    println!("{TASKS} tasks in {:.1} s: {}", took.as_secs_f64(), shares.join(", "));
    let done: Vec<_> = by_way.iter().flat_map(|(_, done)| done).collect();
    assert_eq!((done.len(), done.iter().collect::<BTreeSet<_>>().len()), (TASKS, TASKS));
    for kind in ["claimed", "completed"] {
        assert_eq!(
            board.events().iter().filter(|recorded| recorded.event.kind() == kind).count(),
            TASKS,
            "{kind}"
        );
    }
    assert!(board.tasks().values().all(|task| task["status"] == "done"));
    assert_in_order(&board);
    // The processes on stdio have ended, which is the last event.
    until(PATIENCE, "the end of processes is known", || {
        board.replay().participants().next().is_none().then_some(())
    });
    board.assert_file_is_the_replay();
    assert_same_view(&board, &server);
}

/// Asserts that no task was claimed before its dependencies were completed.
fn assert_in_order(board: &Board) {
    let mut completed = BTreeSet::new();
    let tasks = board.tasks();
    for recorded in board.events() {
        match recorded.event {
            Event::Completed { task, .. } => drop(completed.insert(task.as_str().to_owned())),
            Event::Claimed { task, .. } => {
                let before = tasks[task.as_str()]["dependencies"].as_array().unwrap();
                assert!(
                    before.iter().all(|id| completed.contains(id.as_str().unwrap())),
                    "{task} came too early"
                );
            }
            _ => {}
        }
    }
}

/// Asserts that every transport shows the same tasks, results, agents and events.
fn assert_same_view(board: &Board, server: &Server) {
    let journal: Vec<_> =
        board.events().iter().map(|recorded| serde_json::to_value(recorded).unwrap()).collect();
    let questions = [
        ("get_status", json!({})),
        // So few that they fit in a reply for models.
        ("get_all_tasks", json!({"limit": 40})),
        ("get_results", json!({"limit": 40})),
        ("get_agents", json!({"limit": 40})),
        ("wait_for_events", json!({"since_seq": 0, "limit": 40})),
    ];
    for (operation, arguments) in &questions {
        let views: Vec<_> = Way::all(board, server)
            .iter_mut()
            .map(|way| (way.name(), way.ok(operation, arguments)))
            .collect();
        for (name, view) in &views {
            assert_eq!(*view, views[0].1, "{operation} through {name}");
        }
    }
    let mut told = Vec::new();
    while told.len() < journal.len() {
        let page =
            board.cli_ok("wait_for_events", json!({"since_seq": told.len(), "limit": 1_000}));
        told.extend(page["events"].as_array().filter(|events| !events.is_empty()).unwrap().clone());
    }
    assert_eq!(told, journal);
    let mut socket = WebSocket::open(server);
    socket.send(1, "subscribe_events", &json!({"since_seq": 0}));
    socket.answer(1);
    let heard: Vec<_> =
        journal.iter().map(|_| socket.next().unwrap()["params"]["result"].take()).collect();
    assert_eq!(heard, journal);
    assert_eq!(Door::Rpc.ok(server, "get_status", &json!({}))["seq"], journal.len());
}
