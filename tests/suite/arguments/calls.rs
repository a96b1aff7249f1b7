//! Calls as models make them, through a real `callboard mcp`: each is done as it was meant, or
//! refused without any effect.
//!
//! `tests/data/arguments/calls.json` was written from the operations' schemas alone, without a look
//! at how arguments are read: calls that a model makes from the descriptions of the tools, or from
//! memory of similar tools. `meant` is the correct call of the same effect, if there is one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::harness::{Board, Client};

#[derive(Deserialize)]
struct Case {
    name: String,
    tool: String,
    arguments: Value,
    kind: String,
    meant: Option<Meant>,
    /// Whether a refusal that says what to do is as good as what was meant.
    or_refused: bool,
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Meant {
    tool: String,
    arguments: Value,
}

/// What a model saw of a call, and what the board was afterwards.
struct Outcome {
    is_refused: bool,
    text: String,
    reply: Value,
    board: Value,
}

fn client(board: &Board) -> Client {
    Client::start(board.command().args(["mcp", "--toolset", "full"]))
}

/// A board on which there is something to lose.
fn fixture() -> Board {
    let board = Board::new();
    let mut client = client(&board);
    let tasks = json!([
        {"id": "build", "title": "Build the parser", "description": "Build it", "tags": ["rust"]},
        {"id": "docs", "title": "Write the docs", "description": "Describe the parser", "priority": 7, "dependencies": ["build"]},
        {"id": "tests", "title": "Write the tests", "description": "Test it", "tags": ["test", "rust"], "path": "P1.M1.T1"},
        {"id": "ship", "title": "Ship it", "description": "Ship it"},
        {"id": "broken", "title": "Fix the login", "description": "Fix it", "max_attempts": 1},
        {"id": "review", "title": "Review me", "description": "Look", "review": "required"},
    ]);
    let plan =
        json!({"agent_id": "boss", "name": "roadmap", "text": "- [ ] Item one\n- [ ] Item two\n"});
    let mut calls = vec![
        ("init_coordination", json!({"goal": "Ship"})),
        ("register_agent", json!({"agent_id": "boss", "role": "leader"})),
        ("register_agent", json!({"agent_id": "w", "role": "worker", "max_concurrent": 3})),
        ("register_agent", json!({"agent_id": "v", "role": "worker"})),
        ("create_tasks_batch", json!({"tasks": tasks})),
    ];
    for (id, end) in
        [("ship", "complete_task"), ("broken", "fail_task"), ("review", "complete_task")]
    {
        calls.push(("claim_task", json!({"agent_id": "w", "task_id": id})));
        let text = ["shipped", "no access", "please look"]
            [["ship", "broken", "review"].iter().position(|one| *one == id).unwrap()];
        calls.push((
            end,
            match end {
                "fail_task" => json!({"agent_id": "w", "task_id": id, "error": text}),
                _ => json!({"agent_id": "w", "task_id": id, "output": text}),
            },
        ));
    }
    calls.extend([
        ("claim_task", json!({"agent_id": "w", "task_id": "build"})),
        ("reserve_files", json!({"agent_id": "w", "files": ["src/a.rs"]})),
        ("reserve_files", json!({"agent_id": "w", "files": ["src/b.rs", "docs/**"]})),
        (
            "add_discovery",
            json!({"agent_id": "w", "content": "The parser is slow", "tags": ["perf"]}),
        ),
        ("send_message", json!({"agent_id": "boss", "to": "w", "text": "Hurry"})),
        ("import_plan", plan),
    ]);
    for step in 1..=3 {
        calls.push(("save_checkpoint", json!({"agent_id": "w", "workflow_id": "flow", "state": {"phase": "build", "step": step}})));
    }
    for (tool, arguments) in calls {
        client.ok(tool, arguments);
    }
    client.close_input();
    board
}

fn copy(board: &Board) -> Board {
    let copy = Board::new();
    let status = Command::new("cp").arg("-a").args([board.dir(), copy.dir()]).status();
    assert!(status.unwrap().success());
    copy
}

fn call(fixture: &Board, tool: &str, arguments: &Value) -> Outcome {
    let board = copy(fixture);
    let mut client = client(&board);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let answer = client.ask(json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));
    let (result, error) = (&answer["result"], &answer["error"]["message"]);
    let text = error.as_str().or(result["content"][0]["text"].as_str()).unwrap_or_default();
    let is_refused = result["isError"] == true || error.is_string();
    let outcome = Outcome {
        is_refused,
        text: text.to_owned(),
        reply: plain(result["structuredContent"].clone()),
        board: contents(&board),
    };
    client.close_input();
    outcome
}

/// What is on the board, without times and without what is made up.
fn contents(board: &Board) -> Value {
    let mut document = board.document();
    let fields = document.as_object_mut().unwrap();
    for name in
        ["seq", "last_activity", "participants", "head", "digest", "hash", "sum", "schema_version"]
    {
        fields.remove(name);
    }
    let snapshots = fs::read_dir(Path::new(&board.file("snapshots"))).map_or(0, Iterator::count);
    fields.insert("snapshots".to_owned(), json!(snapshots > 0));
    plain(document)
}

fn plain(value: Value) -> Value {
    thread_local! {
        static MADE_UP: Regex = Regex::new(
            r"(?:task|disc|msg|res|run|session|p|state|plan)-[0-9A-Za-z-]{6,}|\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{16,64}|\.tmp[0-9A-Za-z]+",
        )
        .unwrap();
    }
    match value {
        Value::String(text) => {
            Value::from(MADE_UP.with(|made_up| made_up.replace_all(&text, "…").into_owned()))
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
            let mut all: Map<String, Value> = Map::new();
            for (name, value) in kept {
                let Value::String(name) = plain(Value::from(name)) else { continue };
                all.insert(name, plain(value));
            }
            Value::Object(all)
        }
        other => other,
    }
}

/// Fields that say when, or how a call was understood.
const VOLATILE: [&str; 11] = [
    "seq",
    "next_seq",
    "warning",
    "last_heartbeat",
    "participant",
    "present_through",
    "lease_until",
    "at_ms",
    "metadata",
    "idempotency_keys",
    "remembered",
];

#[test]
fn calls_of_models_are_done_as_meant_or_refused() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../data/arguments/calls.json")).unwrap();
    assert!(cases.len() >= 150);
    let fixture = fixture();
    let before = contents(&fixture);
    let mut table: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let outcome = call(&fixture, &case.tool, &case.arguments);
        let counts = table.entry(&case.kind).or_default();
        let said = || format!("{} {} {}: {}", case.name, case.tool, case.arguments, outcome.text);
        if outcome.is_refused {
            let named =
                case.names.is_empty() || case.names.iter().any(|name| outcome.text.contains(name));
            counts[1] += 1;
            counts[2] += usize::from(named);
            if !named {
                println!("no next step: {}", said());
            }
            if outcome.board != before {
                wrong.push(format!("refused, and done: {}", said()));
            }
            if case.meant.is_some() && !case.or_refused {
                // A call that is correct may be refused by what is on the board.
                let meant =
                    case.meant.as_ref().map(|meant| call(&fixture, &meant.tool, &meant.arguments));
                if meant.is_some_and(|meant| !meant.is_refused) {
                    wrong.push(format!("refused: {}", said()));
                }
            }
            continue;
        }
        let as_meant = case.meant.as_ref().is_some_and(|meant| {
            let meant = call(&fixture, &meant.tool, &meant.arguments);
            meant.board == outcome.board && (meant.board != before || meant.reply == outcome.reply)
        });
        counts[0] += usize::from(as_meant);
        counts[3] += usize::from(!as_meant);
        if !as_meant {
            wrong.push(format!("something else: {}", said()));
        }
    }
    println!("kind              as meant  refused  of them with the next step  misleading");
    for (kind, [done, refused, named, misleading]) in &table {
        println!("{kind:16} {done:9} {refused:8} {named:27} {misleading:11}");
    }
    let total = table.values().fold([0; 4], |sum, row| std::array::from_fn(|at| sum[at] + row[at]));
    println!("{:16} {:9} {:8} {:27} {:11}", "all", total[0], total[1], total[2], total[3]);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
