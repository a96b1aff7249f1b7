//! What each operation costs on boards that are hard to walk, and how long a write waits beside it:
//! one server, a connection that writes all the time, another that asks.
//!
//! `CALLBOARD_COSTS=10000 cargo test --release --test suite -- costs --nocapture` is the full size,
//! held to 50 ms. The everyday size asks for so much less than a quadratic walk takes that a busy
//! machine does not matter. The best of three counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callboard::ops;
use serde_json::{Value, json};

use super::harness::http::Server;
use super::harness::{Board, Client, StopAtEnd, size};

/// Size from which the figures are those of the design, if the build is optimised.
const FULL: usize = 10_000;
const TRIES: usize = 3;
/// Tasks that one batch creates.
const AT_ONCE: usize = 500;
/// Most dependencies of one task.
const DEPENDENCIES: usize = 200;
/// A task that no other has to do with, for the writes beside.
const SPARE: &str = "spare";

/// How tasks hang together.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Each task depends on the one before.
    Deep,
    /// A deep chain whose first task failed, so that nothing can move.
    FailedRoot,
    /// Parts of a phase that depends on many tasks, and on which another phase depends.
    Wide,
    /// Each task depends on as many as it may; of the first, half failed.
    Dense,
    /// Milestones of tasks of subtasks, each milestone behind the one before, with long texts.
    Nested,
}

impl Shape {
    const ALL: [Self; 5] = [Self::Deep, Self::FailedRoot, Self::Wide, Self::Dense, Self::Nested];

    fn tasks(self, size: usize) -> Vec<Value> {
        match self {
            Self::Deep | Self::FailedRoot => (0..size).map(|n| task(n, before(n, 1))).collect(),
            Self::Dense => (0..size).map(|n| task(n, behind_roots(n, size))).collect(),
            Self::Wide => wide(size),
            Self::Nested => nested(size),
        }
    }

    /// Tasks that fail once they are there.
    fn failed(self, size: usize) -> usize {
        match self {
            Self::Deep | Self::Nested => 0,
            Self::FailedRoot | Self::Wide => 1,
            Self::Dense => roots(size) / 2,
        }
    }
}

fn id(number: usize) -> String {
    format!("t{number}")
}

fn before(number: usize, most: usize) -> Vec<String> {
    (number.saturating_sub(most)..number).map(id).collect()
}

/// Number of tasks that depend on none, on a board where the others depend on many.
fn roots(size: usize) -> usize {
    DEPENDENCIES.min(size / 4)
}

fn behind_roots(number: usize, size: usize) -> Vec<String> {
    if number < roots(size) { Vec::new() } else { before(number, DEPENDENCIES) }
}

fn task(number: usize, dependencies: Vec<String>) -> Value {
    json!({"id": id(number), "description": format!("task {number}"), "dependencies": dependencies})
}

fn wide(size: usize) -> Vec<Value> {
    let roots = roots(size);
    let phase = json!({"id": "p1", "path": "P1", "description": "one", "dependencies": before(roots, roots)});
    let next = json!({"id": "p2", "path": "P2", "description": "two", "dependencies": ["p1"]});
    let part = |n: usize| {
        let (phase, number) = (1 + n % 2, n - roots);
        let mut part = task(n, Vec::new());
        part["path"] = json!(format!("P{phase}.M{}", 1 + number / 2));
        part
    };
    let roots = (0..roots).map(|n| task(n, Vec::new()));
    roots.clone().chain([phase, next]).chain((roots.len()..size).map(part)).collect()
}

fn nested(size: usize) -> Vec<Value> {
    const SUBTASKS: usize = 20;
    let text = "long text ".repeat(200);
    let mut tasks = vec![json!({"id": "p1", "path": "P1", "description": text})];
    for number in 0.. {
        let (milestone, part) = (1 + number / (SUBTASKS * 5), 1 + number / SUBTASKS % 5);
        let above = format!("P1.M{milestone}");
        if number % (SUBTASKS * 5) == 0 {
            let after =
                if milestone > 1 { vec![format!("m{}", milestone - 1)] } else { Vec::new() };
            tasks.push(json!({"id": format!("m{milestone}"), "path": above, "description": text, "dependencies": after}));
        }
        if number % SUBTASKS == 0 {
            tasks.push(json!({"path": format!("{above}.T{part}"), "description": text}));
        }
        let subtask = 1 + number % SUBTASKS;
        tasks.push(json!({"id": id(number), "path": format!("{above}.T{part}.S{subtask}"), "description": text}));
        if tasks.len() >= size {
            break;
        }
    }
    tasks
}

/// What is asked of each operation, in the order in which all are called. An operation that is not
/// here fails the test.
pub(crate) fn calls(operation: &str, last: &str) -> Option<Vec<Value>> {
    let some = |name: &str| json!({"agent_id": name});
    let all = |calls: &[Value]| Some(calls.to_vec());
    let missing = "none-such";
    match operation {
        "get_status" | "get_board" => {
            all(&[json!({}), json!({"scope": "P1"}), json!({"scope": "P2"})])
        }
        "get_all_tasks" => all(&[
            json!({}),
            json!({"limit": 20}),
            json!({"blocked": true, "limit": 20, "brief": true}),
            json!({"ready": true, "sort": "path", "limit": 20}),
            json!({"waiting": true, "limit": 20}),
            json!({"text": "task 7", "limit": 20}),
            json!({"parent": "t0", "limit": 20}),
            json!({"scope": "P1", "limit": 20, "descending": true}),
            json!({"after": last, "limit": 20}),
        ]),
        "get_task" | "explain_task" => {
            all(&[json!({"task_id": "t0"}), json!({"task_id": last}), json!({"task_id": "p1"})])
        }
        "get_results" => all(&[json!({}), json!({"task_ids": [last]})]),
        "get_history" => {
            all(&[json!({}), json!({"task_id": last}), json!({"agent": "writer", "limit": 5})])
        }
        "wait_for_events" => all(&[
            json!({}),
            json!({"since_seq": 0}),
            json!({"since_seq": 0, "task_id": last}),
            json!({"since_seq": 0, "kinds": ["completed"]}),
        ]),
        "get_discoveries" => all(&[json!({}), json!({"task_id": last}), json!({"query": "a b"})]),
        "get_messages" => all(&[some("writer")]),
        "get_master_plan" | "get_agents" | "health_check" | "list_plans" | "list_snapshots"
        | "list_bundles" | "list_runs" | "list_sessions" | "list_checkpoints" | "export_plan"
        | "diff_plans" | "verify_snapshots" | "verify_bundles" | "resume" => all(&[json!({})]),
        "get_report" => all(&[json!({}), json!({"scope": "P1", "limit": 20})]),
        "undo" => all(&[json!({"seq": 1})]),
        "diff_snapshots" => all(&[json!({"from": "1"})]),
        "load_bundle" => all(&[json!({"scope": "all"})]),
        "get_run" => all(&[json!({"run_id": missing})]),
        "get_session" => all(&[json!({"session_id": missing})]),
        "get_checkpoint" => all(&[json!({"task_id": last})]),
        "register_agent" => all(&[some("writer")]),
        "claim_task" => all(&[
            some("writer"),
            json!({"agent_id": "writer", "scope": "P2"}),
            json!({"agent_id": "writer", "task_id": last}),
            json!({"agent_id": "writer", "task_id": "p1"}),
        ]),
        "start_task" | "release_task" => all(&[json!({"agent_id": "writer", "task_id": "t0"})]),
        "heartbeat" => all(&[some("writer")]),
        "complete_task" => all(&[json!({"agent_id": "writer", "task_id": "t0", "output": "done"})]),
        "fail_task" => all(&[json!({"agent_id": "writer", "task_id": "t0", "error": "no"})]),
        "add_discovery" => all(&[json!({"agent_id": "writer", "content": "a b", "task_id": last})]),
        "init_coordination" => all(&[json!({"goal": "another", "replace_goal": true})]),
        "create_task" => all(&[
            json!({"description": "new", "dependencies": [last]}),
            json!({"description": "new", "path": "P2.M1.T9", "dependencies": [last]}),
            json!({"description": "new", "path": "P1.M1.T9.S1", "dependencies": ["p2"]}),
        ]),
        "create_tasks_batch" => {
            let many = |n: usize| json!({"description": "new", "path": format!("P1.M{n}.T8"), "dependencies": [last]});
            all(&[json!({"tasks": (1..AT_ONCE).map(many).collect::<Vec<_>>()})])
        }
        "update_task" => all(&[
            json!({"task_id": last, "dependencies": ["t0"]}),
            json!({"task_id": "t0", "dependencies": [last]}),
            json!({"task_id": "p1", "dependencies": ["p2"]}),
        ]),
        "apply_batch" => {
            let one = |n: usize| json!({"name": "create_task", "arguments": {"description": "new", "path": format!("P1.M{n}.T9"), "dependencies": [last]}});
            all(&[json!({"operations": (1..AT_ONCE).map(one).collect::<Vec<_>>()})])
        }
        "import_plan" => {
            let items: String =
                (1..AT_ONCE).map(|n| format!("- [ ] item {n} of a plan\n")).collect();
            all(&[
                json!({"text": format!("# Plan\n\n## Phase\n\n{items}"), "source": "PLAN.md", "parallel": false}),
            ])
        }
        "report_waiting" => all(&[json!({"agent_id": "writer", "for": "permission"})]),
        "ask_human" => all(&[json!({"agent_id": "writer", "question": "a?"})]),
        "pause" => all(&[json!({}), json!({"agents": ["writer"]})]),
        "find_tasks" => all(&[json!({"references": ["1", last, "P1.M1", "no such title"]})]),
        "assign_task" => all(&[json!({"task_id": last, "to": "writer"})]),
        "stop_agent" | "forget_agent" => all(&[json!({"agent": "writer"})]),
        "send_message" => all(&[json!({"to": "writer", "text": "a"})]),
        "reserve_files" => all(&[json!({"agent_id": "writer", "files": ["src/**"]})]),
        "release_files" => all(&[some("writer")]),
        "remove_plan" => all(&[json!({"plan": "PLAN.md"})]),
        "create_snapshot" => all(&[json!({})]),
        "restore_snapshot" => all(&[json!({"snapshot": missing})]),
        "save_bundle" => all(&[json!({"scope": "all", "prompts": {"a": "b"}})]),
        "refine_bundle" => all(&[json!({"scope": "all", "prompts": {"a": "c"}})]),
        "create_run" => all(&[json!({"type": "start_session", "prompt": "go"})]),
        "claim_run" => all(&[some("writer")]),
        "report_run" => {
            all(&[json!({"agent_id": "writer", "run_id": missing, "status": "started"})])
        }
        "update_run" => all(&[json!({"run_id": missing, "demands": {}})]),
        "stop_run" => all(&[json!({"run_id": missing})]),
        "save_checkpoint" => {
            all(&[json!({"agent_id": "writer", "workflow_id": "w", "state": {"phase": "p"}})])
        }
        "delete_checkpoints" => all(&[json!({"workflow_id": "w", "keep": 1})]),
        "attach_artifact" => all(&[json!({"task_id": last, "name": "a.txt", "text": "a"})]),
        "cancel_task" => all(&[json!({"task_id": last}), json!({"task_id": "p1"})]),
        "retry_task" => all(&[json!({"task_id": "p1"}), json!({"scope": "all"})]),
        "approve_task" => all(&[json!({"task_id": last})]),
        "reject_task" => all(&[json!({"task_id": last, "reason": "no"})]),
        "reset_tasks" => all(&[json!({"scope": "P1"}), json!({"scope": "all"})]),
        _ => None,
    }
}

/// When each write began, and how long it took.
type Writes = Mutex<Vec<(Instant, Duration)>>;

/// What was found of one operation: its slowest way of being asked, and the longest that a write
/// waited beside one.
#[derive(Default)]
struct Cost {
    took: Duration,
    asked: String,
    waited: Duration,
}

fn board(shape: Shape, size: usize) -> (Board, String) {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("init_coordination", json!({"goal": "costs"}));
    client.register("writer");
    client.ok("create_task", json!({"id": SPARE, "description": "spare", "priority": 10}));
    let tasks = shape.tasks(size);
    for batch in tasks.chunks(AT_ONCE) {
        client.ok("create_tasks_batch", json!({"tasks": batch}));
    }
    fail(&mut client, shape.failed(size));
    let last = tasks.iter().rev().find_map(|task| task["id"].as_str());
    (board, last.unwrap().to_owned())
}

fn fail(client: &mut Client, count: usize) {
    for number in 0..count {
        let task = id(number);
        client.ok("claim_task", json!({"agent_id": "writer", "task_id": task}));
        let failed =
            json!({"agent_id": "writer", "task_id": task, "error": "no", "retryable": false});
        client.ok("fail_task", failed);
    }
}

/// Asks the operation in all its ways.
fn cost(operation: &str, last: &str, tries: usize, server: &Server, writes: &Writes) -> Cost {
    let calls = calls(operation, last);
    let calls = calls.unwrap_or_else(|| panic!("{operation}: say in `calls` how it is asked"));
    let mut connection = server.connect();
    let mut cost = Cost::default();
    for arguments in calls {
        let request = server.rpc(1, operation, &arguments);
        let mut tried = Vec::new();
        for _ in 0..tries {
            let begun = Instant::now();
            let answer = connection.ask(&request);
            tried.push((begun, begun.elapsed()));
            let answer = answer.message();
            let is_understood = answer["error"]["code"] != json!(-32602);
            assert!(is_understood, "{operation} {arguments}: {answer}");
        }
        let waits = tried.iter().map(|(begun, took)| longest(writes, *begun, *begun + *took));
        cost.waited = cost.waited.max(waits.min().unwrap());
        let took = tried.iter().map(|(_, took)| *took).min().unwrap();
        if took >= cost.took {
            (cost.took, cost.asked) = (took, arguments.to_string().chars().take(60).collect());
        }
    }
    cost
}

/// The longest of the writes that were under way between two times.
fn longest(writes: &Writes, begun: Instant, ended: Instant) -> Duration {
    let writes = writes.lock().unwrap();
    let beside = writes.iter().rev().take_while(|(at, took)| *at + *took > begun);
    beside.filter(|(at, _)| *at < ended).map(|(_, took)| *took).max().unwrap_or_default()
}

/// Writes until it is told to stop.
fn write(server: &Server, writes: &Writes, is_over: &AtomicBool) {
    let mut connection = server.connect();
    let mut number = 0;
    while !is_over.load(Ordering::SeqCst) {
        number += 1;
        let change = json!({"task_id": SPARE, "priority": 9 + number % 2});
        let begun = Instant::now();
        let answer = connection.ask(&server.rpc(number, "update_task", &change)).message();
        assert!(answer["result"].is_object(), "{answer}");
        writes.lock().unwrap().push((begun, begun.elapsed()));
    }
}

#[test]
fn no_read_takes_long_or_holds_up_a_write_however_tasks_hang_together() {
    let size = size("CALLBOARD_COSTS", 1_500);
    let is_full = size >= FULL && !cfg!(debug_assertions);
    let (read, other) = if is_full { (50, 1_000) } else { (1_000, 20_000) };
    let mut slow = Vec::new();
    for shape in Shape::ALL {
        let (board, last) = board(shape, size);
        let server = Server::on(&board);
        let (writes, is_over) = (Writes::default(), AtomicBool::new(false));
        let (reads, others): (Vec<_>, Vec<_>) =
            ops::all().iter().partition(|entry| entry.annotations.read_only);
        thread::scope(|scope| {
            let stop = StopAtEnd(&is_over);
            scope.spawn(|| write(&server, &writes, &is_over));
            for (entry, tries, most) in reads
                .iter()
                .map(|entry| (entry, TRIES, read))
                .chain(others.iter().map(|entry| (entry, 1, other)))
            {
                let cost = cost(entry.name, &last, tries, &server, &writes);
                let line = format!(
                    "{shape:?} {}: {:.1} ms {}, a write beside it {:.1} ms",
                    entry.name,
                    cost.took.as_secs_f64() * 1e3,
                    cost.asked,
                    cost.waited.as_secs_f64() * 1e3
                );
                println!("{line}");
                if cost.took.max(cost.waited) > Duration::from_millis(most) {
                    slow.push(line);
                }
            }
            drop(stop);
        });
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
