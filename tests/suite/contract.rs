//! Requests and replies of the TypeScript broker's clients work unchanged: over raw stdio frames of
//! both eras, through `callboard call`, and on a state file that the old broker left. The calls are
//! in tests/clients/contract.json.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const CONTRACT: &str = include_str!("../clients/contract.json");
const BROKERS_STATE: &str = include_str!("../data/typescript-broker/mcp-state.json");

/// A reply, or the text of a refusal.
type Answer = Result<Value, String>;
type Names = BTreeMap<String, String>;

fn callboard(home: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
    let board = home.path().join("board");
    command
        .current_dir(home)
        .env("HOME", home.path())
        .env("COORDINATION_DIR", board)
        .env_remove("CALLBOARD_LOG");
    command
}

/// A `callboard mcp` process, driven by hand-written frames.
struct Wire {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    modern: bool,
    id: u64,
}

impl Wire {
    fn modern(home: &TempDir) -> Self {
        Self::start(home, true)
    }

    fn legacy(home: &TempDir) -> Self {
        let mut wire = Self::start(home, false);
        let client = json!({"name": "wire", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let reply = wire.request("initialize", hello);
        assert_eq!(reply["result"]["protocolVersion"], "2025-06-18", "{reply}");
        wire.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        wire
    }

    fn start(home: &TempDir, modern: bool) -> Self {
        let mut command = callboard(home);
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, modern, id: 0 }
    }

    fn write(&mut self, frame: &Value) {
        writeln!(self.input, "{frame}").unwrap();
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.id += 1;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let frame: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{method}: {line:?}: {error}"));
        assert_eq!(frame["id"], self.id, "{frame}");
        frame
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let frame = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &frame["result"];
        let [block] = result["content"].as_array().unwrap_or_else(|| panic!("{frame}")).as_slice()
        else {
            panic!("not one block: {frame}")
        };
        assert_eq!(block["type"], "text", "{frame}");
        let text = block["text"].as_str().unwrap();
        if result["isError"] == true {
            return Err(text.to_owned());
        }
        let reply: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(reply, result["structuredContent"], "text and structure differ");
        Ok(reply)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls a tool in a process of its own.
fn command(home: &TempDir, tool: &str, arguments: &Value) -> Answer {
    let output = callboard(home).args(["call", tool, &arguments.to_string()]).output().unwrap();
    let (text, log) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    if text.is_empty() {
        assert_eq!(output.status.code(), Some(1), "{tool} {arguments}: {log}");
        return Err(log);
    }
    let reply: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{tool}: {text}: {error}"));
    let code = if reply["success"] == false { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{tool} {arguments}: {reply} {log}");
    Ok(reply)
}

/// Makes the contract's calls, and checks each reply.
fn play(mut call: impl FnMut(&str, &Value) -> Answer) {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let mut names = Names::new();
    for (number, step) in contract["steps"].as_array().unwrap().iter().enumerate() {
        let tool = step["tool"].as_str().unwrap();
        let arguments = filled(&step["arguments"], &names);
        let place = format!("step {number}, {tool}");
        match (call(tool, &arguments), step.get("reply")) {
            (Ok(reply), Some(wanted)) => check(&reply, wanted, &mut names, &place),
            (Err(message), None) => {
                for text in filled(&step["refusal"], &names).as_array().unwrap() {
                    let text = text.as_str().unwrap();
                    assert!(message.contains(text), "{place}: {message:?} does not name {text:?}");
                }
            }
            (answer, _) => panic!("{place}: {answer:?}"),
        }
    }
}

/// `value` with its `$NAME`s replaced.
fn filled(value: &Value, names: &Names) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| filled(item, names)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, item)| (key.clone(), filled(item, names))).collect()
        }
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => json!(names[name]),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Compares as described in `about` of contract.json.
fn check(found: &Value, wanted: &Value, names: &mut Names, place: &str) {
    match wanted {
        Value::Object(fields) => {
            for (key, item) in fields {
                let field =
                    found.get(key).unwrap_or_else(|| panic!("{place} has no {key}: {found}"));
                check(field, item, names, &format!("{place}.{key}"));
            }
        }
        Value::Array(items) => {
            let found =
                found.as_array().unwrap_or_else(|| panic!("{place}: {found}, wanted {wanted}"));
            assert_eq!(found.len(), items.len(), "{place}: {found:?}, wanted {wanted}");
            found.iter().zip(items).for_each(|(found, item)| check(found, item, names, place));
        }
        Value::String(text) if text.starts_with('<') => {
            let is_so = match text.as_str() {
                "<string>" => found.is_string(),
                "<number>" => found.is_number(),
                "<list>" => found.is_array(),
                "<object>" => found.is_object(),
                "<time>" => found.as_str().is_some_and(is_time),
                "<any>" => true,
                id => {
                    let name = id.strip_prefix("<id ").and_then(|id| id.strip_suffix('>')).unwrap();
                    let id = found.as_str().unwrap_or_default();
                    names.insert(name.to_owned(), id.to_owned());
                    !id.is_empty()
                }
            };
            assert!(is_so, "{place}: {found}, wanted {wanted}");
        }
        _ => assert_eq!(*found, filled(wanted, names), "{place}"),
    }
}

/// Whether it has the format of JavaScript's `toISOString`.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

#[test]
fn contract_holds_over_stdio_with_handshake() {
    let home = TempDir::new().unwrap();
    let mut wire = Wire::legacy(&home);
    play(|tool, arguments| wire.call(tool, arguments));
}

#[test]
fn contract_holds_over_stdio_without_handshake() {
    let home = TempDir::new().unwrap();
    let mut wire = Wire::modern(&home);
    play(|tool, arguments| wire.call(tool, arguments));
}

#[test]
fn contract_holds_through_one_command_per_call() {
    let home = TempDir::new().unwrap();
    play(|tool, arguments| command(&home, tool, arguments));
}

#[test]
fn contract_holds_over_stdio_and_commands_in_turn() {
    let home = TempDir::new().unwrap();
    let mut wires = [Wire::legacy(&home), Wire::modern(&home)];
    let mut turn = 0;
    play(|tool, arguments| {
        turn += 1;
        // An agent belongs to the process that registered it, as long as that lives; other calls
        // may come from any process.
        let is_agents = arguments.get("agent_id").is_some();
        match turn % 3 {
            0 if !is_agents => command(&home, tool, arguments),
            1 if !is_agents => wires[1].call(tool, arguments),
            _ => wires[0].call(tool, arguments),
        }
    });
}

#[test]
fn resources_of_the_contract_are_replies_of_its_tools() {
    let home = TempDir::new().unwrap();
    let mut wire = Wire::modern(&home);
    play(|tool, arguments| wire.call(tool, arguments));
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    for (uri, tool) in contract["resources"].as_object().unwrap() {
        let frame = wire.request("resources/read", json!({"uri": uri}));
        let content = &frame["result"]["contents"][0];
        assert_eq!(content["mimeType"], "application/json", "{frame}");
        let read: Value = serde_json::from_str(content["text"].as_str().unwrap()).unwrap();
        assert_eq!(read, wire.call(tool.as_str().unwrap(), &json!({})).unwrap(), "{uri}");
    }
}

/// A board's directory with the state file that the old broker left.
fn inherited() -> TempDir {
    let home = TempDir::new().unwrap();
    fs::create_dir(home.path().join("board")).unwrap();
    fs::write(home.path().join("board/mcp-state.json"), BROKERS_STATE).unwrap();
    home
}

#[test]
fn state_file_of_the_broker_is_taken_over_by_a_command() {
    let home = inherited();
    command(&home, "heartbeat", &json!({"agent_id": "lead"})).unwrap();
    assert_taken_over(&home.path().join("board"));
    work_goes_on(|tool, arguments| command(&home, tool, arguments));
}

#[test]
fn state_file_of_the_broker_is_taken_over_by_a_process_on_stdio() {
    let home = inherited();
    let mut wire = Wire::legacy(&home);
    wire.call("heartbeat", &json!({"agent_id": "lead"})).unwrap();
    assert_taken_over(&home.path().join("board"));
    work_goes_on(|tool, arguments| wire.call(tool, arguments));
}

/// Asserts that the state file after the first write contains everything in the old one, in the
/// same format.
fn assert_taken_over(board: &Path) {
    let old: Value = serde_json::from_str(BROKERS_STATE).unwrap();
    let new: Value =
        serde_json::from_slice(&fs::read(board.join("mcp-state.json")).unwrap()).unwrap();
    for field in ["goal", "master_plan", "created_at", "discoveries"] {
        assert_eq!(new[field], old[field], "{field}");
    }
    let (old_tasks, tasks) = (old["tasks"].as_array().unwrap(), new["tasks"].as_array().unwrap());
    assert_eq!(tasks.len(), old_tasks.len());
    for (old, new) in old_tasks.iter().zip(tasks) {
        // The old broker had no leases, so nobody knows whether a task that it shows as held is
        // still worked on.
        let held = matches!(old["status"].as_str(), Some("claimed" | "in_progress"));
        let mut wanted = old.clone();
        if held {
            wanted["status"] = json!("available");
            wanted["claimed_by"] = Value::Null;
            wanted["claimed_at"] = Value::Null;
        }
        wanted["priority"] = json!(old["priority"].as_u64().unwrap().clamp(1, 10));
        wanted["dependencies"]
            .as_array_mut()
            .unwrap()
            .retain(|id| old_tasks.iter().any(|task| task["id"] == *id));
        for (field, value) in wanted.as_object().unwrap() {
            assert_eq!(new.get(field), Some(value), "{field} of {}", old["id"]);
        }
    }
    let (old_agents, agents) =
        (old["agents"].as_object().unwrap(), new["agents"].as_object().unwrap());
    assert!(agents.keys().eq(old_agents.keys()), "{agents:?}");
    for (id, old) in old_agents {
        for field in ["id", "role", "tasks_completed"] {
            assert_eq!(agents[id][field], old[field], "{field} of {id}");
        }
        assert_eq!(agents[id]["current_task"], Value::Null, "{id}");
    }
    let kept = fs::read_to_string(board.join("mcp-state.json.imported-1")).unwrap();
    assert_eq!(kept, BROKERS_STATE, "the original is kept as it was");
}

/// The old agents continue without registering again.
fn work_goes_on(mut call: impl FnMut(&str, &Value) -> Answer) {
    let status = call("get_status", &json!({})).unwrap();
    let tasks = json!({"available": 4, "claimed": 0, "in_progress": 0, "done": 1, "failed": 1});
    assert_eq!(status["tasks"], tasks, "{status}");
    assert_eq!(status["discoveries_count"], 2, "{status}");
    let claimed = call("claim_task", &json!({"agent_id": "worker-2"})).unwrap();
    assert_eq!(claimed["task"]["id"], "task-1740823200001-p8m1ze", "{claimed}");
    let done = json!({"agent_id": "worker-2", "task_id": "task-1740823200001-p8m1ze", "output": "Three endpoints"});
    assert_eq!(call("complete_task", &done).unwrap()["success"], true);
    let results = call("get_results", &json!({"task_ids": ["task-1740823200000-k3x9q2"]})).unwrap();
    assert_eq!(
        results["results"][0]["result"]["files_created"],
        json!(["migrations/001_billing.sql"]),
        "{results}"
    );
}
