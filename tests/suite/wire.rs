//! The MCP wire protocol over stdio, as raw lines to a real process.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, until};

mod changes;

const LONGEST_LINE: usize = callboard::state::limit::LINE.max;

/// `callboard mcp` on a board of its own.
struct Session {
    process: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    board: PathBuf,
}

impl Session {
    fn start(arguments: &[&str]) -> Self {
        Self::with(arguments, "")
    }

    fn failing(failpoint: &str) -> Self {
        Self::with(&[], failpoint)
    }

    fn with(arguments: &[&str], failpoint: &str) -> Self {
        static BOARDS: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("mcp-wire-{}-{}", std::process::id(), BOARDS.fetch_add(1, Ordering::Relaxed));
        let board = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut process = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .arg("mcp")
            .args(arguments)
            .env("COORDINATION_DIR", &board)
            .env("CALLBOARD_FAILPOINT", failpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = process.stdout.take().map(BufReader::new);
        Self { process, input, output, board }
    }

    fn legacy(version: &str) -> Self {
        let mut session = Self::start(&[]);
        assert_eq!(session.initialize(version)["result"]["protocolVersion"], version);
        session
    }

    fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "old-client", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.ask(message(0, "initialize", params));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// A session of the client of this name.
    fn of(client: &str) -> Self {
        let mut session = Self::start(&[]);
        let client = json!({"name": client, "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        session.ask(message(0, "initialize", params));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    fn ask(&mut self, message: Value) -> Value {
        self.send(&message);
        let answer = self.receive();
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    /// Result of a tool call of the modern era.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.ask(modern(1, "tools/call", json!({"name": tool, "arguments": arguments})));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Leaves a claim waiting; a later request was answered, so it is in progress.
    fn wait_in_claim(&mut self, id: u32, agent: &str) {
        self.call("init_coordination", json!({"goal": "wait"}));
        self.call("register_agent", json!({"agent_id": agent, "role": "worker"}));
        let claim =
            json!({"name": "claim_task", "arguments": {"agent_id": agent, "wait_seconds": 50}});
        self.send(&modern(id, "tools/call", claim));
        self.ask(modern(1, "prompts/list", json!({})));
    }

    fn close_input(&mut self) {
        self.input = None;
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    #[track_caller]
    fn ends_well_within_a_second(mut self) -> Vec<Value> {
        let start = Instant::now();
        let mut rest = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut rest).unwrap();
        }
        let status = self.process.wait().unwrap();
        let took = start.elapsed();
        assert!(status.success(), "{status}");
        assert!(took < Duration::from_secs(1), "took {took:?}");
        rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.board);
    }
}

fn message(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of 2026-07-28, with the fields that used to be in the handshake.
fn modern(id: u32, method: &str, params: Value) -> Value {
    let mut message = message(id, method, params);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "new-client", "version": "1"},
    });
    message
}

fn tool_names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn modern_client_needs_no_handshake() {
    let mut session = Session::start(&[]);
    let result = session.ask(modern(1, "server/discover", json!({})))["result"].take();
    assert_eq!(result["resultType"], "complete");
    let versions = result["supportedVersions"].as_array().unwrap();
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{version}");
    }
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "callboard");
    for declared in ["tools", "resources", "prompts"] {
        assert!(result["capabilities"][declared].is_object(), "{declared}");
    }
    assert_eq!(session.call("init_coordination", json!({"goal": "g"}))["resultType"], "complete");
}

#[test]
fn modern_client_that_discovers_nothing_is_served_too() {
    let mut session = Session::start(&[]);
    assert!(!tool_names(&session.ask(modern(1, "tools/list", json!({})))).is_empty());
}

#[test]
fn handshake_agrees_on_every_older_revision_and_answers_in_its_shape() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut session = Session::legacy(version);
        assert_eq!(session.ask(message(1, "ping", json!({})))["result"], json!({}));
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let result = session.ask(message(1, method, json!({})))["result"].take();
            assert_eq!(
                result.as_object().unwrap().len(),
                1,
                "{version} {method} {:?}",
                result.as_object().unwrap().keys()
            );
        }
    }
}

#[test]
fn handshake_for_a_revision_without_one_agrees_on_the_newest_that_has_one() {
    for version in ["2026-07-28", "1999-01-01"] {
        let mut session = Session::start(&[]);
        assert_eq!(session.initialize(version)["result"]["protocolVersion"], "2025-11-25");
        assert!(session.ask(message(1, "tools/list", json!({})))["result"].get("ttlMs").is_none());
    }
}

#[test]
fn both_eras_share_one_process() {
    let mut session = Session::start(&[]);
    session.ask(modern(1, "tools/list", json!({})));
    session.initialize("2025-06-18");
    assert!(session.ask(message(2, "tools/list", json!({})))["result"].get("resultType").is_none());
    assert_eq!(session.ask(modern(3, "tools/list", json!({})))["result"]["resultType"], "complete");
}

#[test]
fn request_without_handshake_or_metadata_is_refused_and_the_session_goes_on() {
    let mut session = Session::start(&[]);
    for method in ["tools/list", "tools/call", "server/discover", "resources/list"] {
        let answer = session.ask(message(1, method, json!({"name": "get_status"})));
        assert_eq!(answer["error"]["code"], -32602, "{method}");
    }
    let mut unknown_version = modern(2, "tools/list", json!({}));
    unknown_version["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
        json!("2030-01-01");
    assert_eq!(session.ask(unknown_version)["error"]["code"], -32022);
    session.initialize("2025-11-25");
    assert!(session.ask(message(3, "tools/list", json!({})))["result"].is_object());
}

#[test]
fn messages_before_the_first_request_do_not_end_the_session() {
    let mut session = Session::start(&[]);
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    session.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    );
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/of/somebody/else"}));
    session.send(&json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    session.send(&json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -1, "message": "no"}}));
    session.ask(modern(1, "server/discover", json!({})));
    session.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    );
    session.initialize("2025-11-25");
    assert!(session.ask(message(2, "tools/list", json!({})))["result"].is_object());
}

#[test]
fn byte_order_mark_before_a_line_is_skipped() {
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let mut session = Session::start(&[]);
    session.write(format!("\u{feff}{}\n", message(1, "initialize", params)).as_bytes());
    assert_eq!(session.receive()["result"]["protocolVersion"], "2025-06-18");
    session.write(
        format!("\u{feff}\r\n\u{feff}{}\r\n", message(2, "tools/list", json!({}))).as_bytes(),
    );
    assert!(session.receive()["result"]["tools"].is_array());
    // Of a line that is too long, too, the id is found.
    let long =
        json!({"name": "t", "arguments": {"text": "x".repeat(callboard::state::limit::LINE.max)}});
    session.write(format!("\u{feff}{}\n", message(3, "tools/call", long)).as_bytes());
    let refused = session.receive();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(3), &json!(-32600)),
        "{refused}"
    );
}

#[test]
fn handshake_of_a_client_that_does_not_say_who_it_is_is_answered() {
    for rest in [
        json!({"capabilities": {}}),
        json!({}),
        json!({"clientInfo": {"version": "1"}}),
        json!({"clientInfo": null}),
    ] {
        let mut params = rest;
        params["protocolVersion"] = json!("2025-06-18");
        let mut session = Session::start(&["--agent", "auto"]);
        let answer = session.ask(message(1, "initialize", params));
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let call = json!({"name": "register_agent", "arguments": {"role": "worker"}});
        let registered = session.ask(message(2, "tools/call", call));
        let id = &registered["result"]["structuredContent"]["agent_id"];
        assert!(id.as_str().is_some_and(|id| !id.is_empty()), "{registered}");
    }
}

#[test]
fn handshake_without_a_usable_version_is_refused_by_the_field_and_may_be_repeated() {
    let client = json!({"name": "t", "version": "1"});
    let mut session = Session::start(&[]);
    for version in [
        None,
        Some(json!(null)),
        Some(json!(20_250_618)),
        Some(json!("")),
        Some(json!(["2025-06-18"])),
    ] {
        let mut params = json!({"capabilities": {}, "clientInfo": client});
        params
            .as_object_mut()
            .unwrap()
            .extend(version.map(|version| ("protocolVersion".to_owned(), version)));
        let refused = session.ask(message(1, "initialize", params));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(
            why.contains("`protocolVersion`") && why.contains("2025-11-25") && why.len() < 200,
            "{why}"
        );
    }
    session.initialize("2025-11-25");
    assert!(session.ask(message(3, "tools/list", json!({})))["result"].is_object());
}

#[test]
fn request_sent_right_behind_the_handshake_is_answered_behind_it() {
    let mut session = Session::start(&[]);
    let client = json!({"name": "hasty", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    session.send(&message(1, "initialize", params));
    session.send(&message(2, "tools/list", json!({})));
    assert_eq!(session.receive()["id"], 1);
    assert_eq!(session.receive()["id"], 2);
}

#[test]
fn reply_is_one_text_block_of_json_and_the_same_as_structured_content() {
    let mut session = Session::start(&[]);
    let result = session.call("init_coordination", json!({"goal": "g"}));
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    let text = content[0]["text"].as_str().unwrap();
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    assert_eq!(result["isError"], false);
}

#[test]
fn refusal_is_a_tool_result_that_the_model_can_read() {
    let mut session = Session::start(&[]);
    session.call("init_coordination", json!({"goal": "g"}));
    session.call("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let result = session
        .call("complete_task", json!({"agent_id": "a", "task_id": "task-none", "output": "o"}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("task-none"), "{result}");
    assert!(result["structuredContent"].is_object(), "{result}");
}

#[test]
fn unknown_tools_and_malformed_requests_are_protocol_errors() {
    let mut session = Session::start(&[]);
    for (params, code) in [
        (json!({"name": "no_such_tool"}), -32602),
        (json!({"name": "get_status", "arguments": [1]}), -32602),
        (json!({"name": "get_status", "arguments": "x"}), -32602),
        (json!({"arguments": {}}), -32602),
    ] {
        assert_eq!(
            session.ask(modern(1, "tools/call", params.clone()))["error"]["code"],
            code,
            "{params}"
        );
    }
    assert_eq!(
        session.ask(modern(1, "tools/list", json!({"cursor": "2"})))["error"]["code"],
        -32602
    );
    assert_eq!(session.ask(modern(1, "prompts/get", json!({})))["error"]["code"], -32602);
    assert_eq!(session.ask(modern(1, "no/such/method", json!({})))["error"]["code"], -32601);
    assert_eq!(session.ask(modern(1, "completion/complete", json!({})))["error"]["code"], -32602);
}

#[test]
fn tool_list_is_stable_cacheable_and_annotated() {
    let mut session = Session::start(&[]);
    let first = session.ask(modern(1, "tools/list", json!({})));
    session.call("init_coordination", json!({"goal": "g"}));
    assert_eq!(session.ask(modern(1, "tools/list", json!({}))), first);
    assert!(first["result"]["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(first["result"]["cacheScope"], "public");
    // The list of tasks depends on who asks.
    assert_eq!(
        session.ask(modern(1, "resources/list", json!({})))["result"]["cacheScope"],
        "private"
    );
    for tool in first["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
        let operation = callboard::ops::find(tool["name"].as_str().unwrap()).unwrap().annotations;
        // What MCP assumes of a tool that does not say it.
        let hint =
            |name: &str, assumed: bool| tool["annotations"][name].as_bool().unwrap_or(assumed);
        assert_eq!(hint("readOnlyHint", false), operation.read_only, "{tool}");
        if !operation.read_only {
            assert_eq!(hint("destructiveHint", true), operation.destructive, "{tool}");
            assert_eq!(hint("idempotentHint", false), operation.idempotent, "{tool}");
        }
    }
}

#[test]
fn toolset_hides_tools_and_forbids_none() {
    let mut session = Session::start(&["--toolset", "worker"]);
    let answer = session.ask(modern(1, "tools/list", json!({})));
    let names = tool_names(&answer);
    assert!(names.contains(&"claim_task"), "{names:?}");
    assert!(!names.contains(&"init_coordination"), "{names:?}");
    assert_eq!(session.call("init_coordination", json!({"goal": "g"}))["isError"], false);
}

#[test]
fn agent_is_required_in_the_schema_unless_the_process_has_its_own() {
    for (arguments, required) in [(&[][..], true), (&["--agent", "auto"][..], false)] {
        let mut session = Session::start(arguments);
        let answer = session.ask(modern(1, "tools/list", json!({})));
        let tools = answer["result"]["tools"].as_array().unwrap();
        let claim = tools.iter().find(|tool| tool["name"] == "claim_task").unwrap();
        let fields = claim["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        assert_eq!(fields.contains(&json!("agent_id")), required, "{arguments:?}");
    }
}

#[test]
fn line_that_is_no_message_gets_an_error_and_the_session_goes_on() {
    let deep_array = "[".repeat(100_000);
    let deep_call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}1{}}}"#,
        r#"{"a":"#.repeat(100_000),
        "}".repeat(100_000),
    );
    let overlong = "x".repeat(LONGEST_LINE + 1);
    let params = "x".repeat(LONGEST_LINE);
    let overlong_call = format!(
        r#"{{"method":"tools/call","params":{{"text":"{params}"}},"jsonrpc":"2.0","id":3}}"#
    );
    let lone_surrogate =
        br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"text":"\ud800"}}"#;
    let none = Value::Null;
    let cases: [(&[u8], i64, Value); 12] = [
        (b"nonsense", -32700, none.clone()),
        (b"{\"jsonrpc\":\"2.0\",", -32700, none.clone()),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", -32700, none.clone()),
        (deep_array.as_bytes(), -32700, none.clone()),
        (deep_call.as_bytes(), -32700, json!(1)),
        (lone_surrogate, -32700, json!(2)),
        (b"[]", -32600, none.clone()),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, none.clone()),
        (b"7", -32600, none.clone()),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, none.clone()),
        (overlong.as_bytes(), -32600, none),
        (overlong_call.as_bytes(), -32600, json!(3)),
    ];
    let mut session = Session::start(&[]);
    for (line, code, id) in cases {
        session.write(line);
        session.write(b"\n\n \r\n");
        let answer = session.receive();
        let start = String::from_utf8_lossy(&line[..line.len().min(40)]);
        assert_eq!(answer["error"]["code"], code, "{start}");
        assert_eq!(answer.get("id"), Some(&id), "{start}");
    }
    assert!(session.ask(modern(1, "server/discover", json!({})))["result"].is_object());
}

#[test]
fn messages_are_read_from_whatever_standard_input_is() {
    let ids = [1, 2, 3];
    let messages = ids.map(|id| modern(id, "server/discover", json!({})).to_string());
    // The last line has no newline.
    let text = messages.join("\n");
    let write_all = |mut to: Box<dyn Write>| to.write_all(text.as_bytes()).unwrap();
    for kind in ["pipe", "socket", "file"] {
        let place = tempfile::tempdir().unwrap();
        let input = match kind {
            "pipe" => {
                let (input, output) = std::io::pipe().unwrap();
                write_all(Box::new(output));
                Stdio::from(input)
            }
            "socket" => {
                let (input, output) = UnixStream::pair().unwrap();
                write_all(Box::new(output));
                Stdio::from(OwnedFd::from(input))
            }
            _ => {
                let path = place.path().join("messages");
                write_all(Box::new(std::fs::File::create(&path).unwrap()));
                Stdio::from(std::fs::File::open(&path).unwrap())
            }
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        let finished = command
            .arg("mcp")
            .env("COORDINATION_DIR", place.path().join("board"))
            .stdin(input)
            .output();
        let finished = finished.unwrap();
        assert!(finished.status.success(), "{kind}: {finished:?}");
        let answers = String::from_utf8(finished.stdout).unwrap();
        let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut answered: Vec<_> = answers
            .filter(|answer| answer["result"].is_object())
            .map(|one| one["id"].clone())
            .collect();
        answered.sort_unstable_by_key(Value::as_i64);
        assert_eq!(answered, ids, "{kind}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pipe_needs_no_thread_that_waits_for_it() {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    let (input, _output) = std::io::pipe().unwrap();
    let read = preadv2(
        &input,
        &mut [std::io::IoSliceMut::new(&mut [0])],
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    );
    if read != Err(Errno::AGAIN) {
        return println!("skipped: this kernel cannot read a pipe without waiting");
    }
    let mut session = Session::start(&[]);
    session.ask(modern(1, "server/discover", json!({})));
    let threads = std::fs::read_dir(format!("/proc/{}/task", session.process.id())).unwrap();
    let names =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap());
    let names: Vec<_> = names.collect();
    assert!(!names.iter().any(|name| name.trim() == "mcp-stdin"), "{names:?}");
}

#[test]
#[cfg(unix)]
fn signal_ends_a_process_whose_client_writes_nothing_but_what_gets_no_answer() {
    let mut session = Session::start(&[]);
    session.ask(modern(1, "server/discover", json!({})));
    let mut input = session.input.take().unwrap();
    // Much more than the pipe holds, so it is being read.
    let lines = vec![b'\n'; 1 << 20];
    input.write_all(&lines).unwrap();
    let flood = std::thread::spawn(move || while input.write_all(&lines).is_ok() {});
    session.signal(rustix::process::Signal::TERM);
    session.ends_well_within_a_second();
    flood.join().unwrap();
}

#[test]
fn invalid_request_is_answered_under_its_own_id() {
    let mut session = Session::start(&[]);
    let answer = session.ask(json!({"jsonrpc": "1.0", "id": 9, "method": "ping"}));
    assert_eq!(answer["error"]["code"], -32600);
    let answer = session.ask(json!({"jsonrpc": "2.0", "id": "nine"}));
    assert_eq!(answer["error"]["code"], -32600);
}

#[test]
fn an_id_that_is_in_use_is_refused_and_takes_nothing() {
    let mut session = Session::start(&[]);
    session.wait_in_claim(7, "ada");
    let claim = json!({"name": "claim_task", "arguments": {"agent_id": "ada", "wait_seconds": 50}});
    let answer = session.ask(modern(7, "tools/call", claim.clone()));
    assert_eq!(answer["error"]["code"], -32600);
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("id 7 has no answer yet"),
        "{answer}"
    );
    let created = modern(
        8,
        "tools/call",
        json!({"name": "create_task", "arguments": {"id": "t", "description": "d"}}),
    );
    session.send(&created);
    let answers = [session.receive(), session.receive()];
    let claimed = answers.iter().find(|answer| answer["id"] == 7).expect("the first call's answer");
    assert_eq!(claimed["result"]["structuredContent"]["task"]["id"], "t");
    // After the answer or a cancellation, the id may be used again.
    for _ in 0..50 {
        session.ask(modern(7, "prompts/list", json!({})));
    }
}

#[test]
fn message_just_below_the_limit_is_taken() {
    let mut session = Session::start(&[]);
    let mut ping = message(1, "ping", json!({"padding": ""}));
    ping["params"]["padding"] = json!("x".repeat(LONGEST_LINE - ping.to_string().len()));
    assert_eq!(session.ask(ping)["result"], json!({}));
}

#[test]
#[cfg(target_os = "linux")]
fn overlong_line_takes_no_memory() {
    let mut session = Session::start(&[]);
    session.ask(modern(1, "server/discover", json!({})));
    // Pages of the program itself count, too, and a debug build has many.
    let path = format!("/proc/{}/status", session.process.id());
    let peak = || {
        let status = std::fs::read_to_string(&path).unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        peak.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = peak();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        session.write(&block);
    }
    session.write(b"\n");
    assert_eq!(session.receive()["error"]["code"], -32600);
    let grown = peak() - before;
    assert!(grown < 32 << 10, "{grown} kB");
}

#[test]
fn end_of_input_ends_an_idle_process() {
    let mut session = Session::start(&[]);
    session.call("get_status", json!({}));
    session.close_input();
    session.ends_well_within_a_second();
}

#[test]
fn end_of_input_ends_a_process_in_which_a_claim_waits() {
    let mut session = Session::start(&[]);
    session.wait_in_claim(7, "a");
    session.close_input();
    session.ends_well_within_a_second();
}

#[test]
fn requests_written_before_the_end_of_input_are_answered_even_without_a_last_newline() {
    let mut session = Session::start(&[]);
    session.call("get_status", json!({}));
    session.send(&modern(1, "tools/list", json!({})));
    session.write(modern(2, "prompts/list", json!({})).to_string().as_bytes());
    session.close_input();
    let answers = session.ends_well_within_a_second();
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

#[test]
#[cfg(target_os = "linux")]
fn answers_that_do_not_fit_into_the_pipe_come_whole_once_they_are_read() {
    let mut session = Session::start(&[]);
    for id in 1..=40 {
        session.send(&modern(id, "tools/list", json!({})));
    }
    session.close_input();
    let pipe = session.output.as_ref().unwrap().get_ref();
    until(PATIENCE, "the pipe is full", || {
        // The end of a line may leave the rest of its page empty, and the pipe holds five lines.
        rustix::io::ioctl_fionread(pipe).ok().filter(|unread| *unread > (64 << 10) - 6 * 4096)
    });
    let answers: Vec<Value> = (1..=40).map(|_| session.receive()).collect();
    let mut answered: Vec<_> =
        answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..=40).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["result"] == answers[0]["result"]));
    let all: usize = answers.iter().map(|answer| answer.to_string().len()).sum();
    // Several times more than the pipe holds.
    assert!(all > 256 << 10, "{all} bytes");
    assert!(session.ends_well_within_a_second().is_empty());
}

#[test]
#[cfg(unix)]
fn answers_are_written_to_a_file_and_a_socket_as_to_a_pipe() {
    let place = tempfile::tempdir().unwrap();
    let requests: String =
        (1..=5).map(|id| format!("{}\n", modern(id, "tools/list", json!({})))).collect();
    let answered = |output: Stdio| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .arg("mcp")
            .env("COORDINATION_DIR", place.path().join("board"))
            .stdin(Stdio::piped())
            .stdout(output)
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(requests.as_bytes()).unwrap();
        process
    };
    let path = place.path().join("answers");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
    assert!(answered(file.into()).wait().unwrap().success());
    let written = std::fs::read_to_string(&path).unwrap();
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let (mut process, mut received) =
        (answered(std::os::fd::OwnedFd::from(theirs).into()), String::new());
    ours.read_to_string(&mut received).unwrap();
    assert!(process.wait().unwrap().success());
    for output in [written, received] {
        let answers = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut ids: Vec<_> = answers.map(|answer| answer["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
    }
}

#[test]
#[cfg(unix)]
fn signal_ends_the_process_also_while_a_claim_waits() {
    use rustix::process::Signal;
    for signal in [Signal::TERM, Signal::INT] {
        let mut session = Session::start(&[]);
        session.wait_in_claim(7, "a");
        session.signal(signal);
        session.ends_well_within_a_second();
    }
}

#[test]
fn client_that_closes_its_end_of_the_output_ends_the_process() {
    let mut session = Session::start(&[]);
    session.call("get_status", json!({}));
    session.output = None;
    session.send(&modern(1, "server/discover", json!({})));
    session.ends_well_within_a_second();
}

#[test]
fn cancelled_claim_gets_no_answer_and_takes_no_task() {
    let mut session = Session::start(&[]);
    session.wait_in_claim(7, "a");
    session.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    );
    session.call("create_task", json!({"description": "for b"}));
    session.call("register_agent", json!({"agent_id": "b", "role": "worker"}));
    let claim = session.call("claim_task", json!({"agent_id": "b", "wait_seconds": 5}));
    assert_eq!(claim["structuredContent"]["success"], true, "{claim}");
    session.close_input();
    assert_eq!(session.ends_well_within_a_second(), [Value::Null; 0]);
}

#[test]
fn resources_read_the_board() {
    let mut session = Session::start(&[]);
    session.call("init_coordination", json!({"goal": "read me"}));
    let task = session.call("create_task", json!({"description": "d"}));
    let id = task["structuredContent"]["task"]["id"].as_str().unwrap().to_owned();
    let listed = session.ask(modern(1, "resources/list", json!({})))["result"]["resources"].take();
    let uris = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned());
    let uris: Vec<_> = uris.collect();
    assert_eq!(uris.len(), 6);
    assert_eq!(uris[5], format!("coordination://tasks/{id}"), "unfinished tasks are listed");
    for uri in &uris {
        let answer = session.ask(modern(1, "resources/read", json!({"uri": uri})));
        let content = &answer["result"]["contents"][0];
        assert_eq!(content["uri"], json!(uri), "{answer}");
        assert_eq!(content["mimeType"], "application/json", "{answer}");
        assert!(
            serde_json::from_str::<Value>(content["text"].as_str().unwrap()).unwrap().is_object(),
            "{answer}"
        );
    }
    let templates = session.ask(modern(1, "resources/templates/list", json!({})));
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "coordination://tasks/{id}"
    );
}

#[test]
fn unknown_resource_is_an_error_of_its_era() {
    let unknown =
        ["coordination://nothing", "coordination://tasks/task-none", "file:///etc/passwd"];
    let mut new = Session::start(&[]);
    let mut old = Session::legacy("2025-11-25");
    for uri in unknown {
        assert_eq!(
            new.ask(modern(1, "resources/read", json!({"uri": uri})))["error"]["code"],
            -32602,
            "{uri}"
        );
        assert_eq!(
            old.ask(message(1, "resources/read", json!({"uri": uri})))["error"]["code"],
            -32002,
            "{uri}"
        );
    }
}

#[test]
fn prompts_are_filled_with_their_argument() {
    let mut session = Session::start(&[]);
    let listed = session.ask(modern(1, "prompts/list", json!({})));
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["work", "lead"]);
    let mut text = |name: &str, arguments: Value| {
        let answer =
            session.ask(modern(1, "prompts/get", json!({"name": name, "arguments": arguments})));
        answer["result"]["messages"][0]["content"]["text"]
            .as_str()
            .map(str::to_owned)
            .ok_or(answer["error"]["code"].clone())
    };
    assert!(text("work", json!({"agent_id": "swift-otter"})).unwrap().contains("swift-otter"));
    assert!(!text("work", json!({})).unwrap().contains("{agent_id}"));
    assert!(text("lead", json!({"goal": "port the parser"})).unwrap().contains("port the parser"));
    assert_eq!(text("lead", json!({})), Err(json!(-32602)));
    assert_eq!(text("sing", json!({})), Err(json!(-32602)));
}

#[test]
fn instructions_reach_both_eras() {
    let new = Session::start(&[]).ask(modern(1, "server/discover", json!({})));
    let old = Session::start(&[]).initialize("2025-06-18");
    assert_eq!(new["result"]["instructions"], old["result"]["instructions"]);
    assert!(old["result"]["instructions"].as_str().unwrap().len() <= 2_000);
    assert_eq!(old["result"]["serverInfo"]["name"], "callboard");
    assert_eq!(old["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
}

/// What a worker does, from its registration to its second, empty-handed claim. Returns the
/// results.
fn worker_of(client: &str) -> Vec<Value> {
    let mut session = Session::of(client);
    let mut ask = |number: u32, name: &str, arguments: Value| {
        let called = json!({"name": name, "arguments": arguments});
        session.ask(message(number, "tools/call", called))["result"].take()
    };
    let description = "Write the parser, with tests. ".repeat(20);
    ask(
        1,
        "create_task",
        json!({"id": "t", "description": description, "files": ["src/parser.rs"]}),
    );
    let loops = [
        ("register_agent", json!({"agent_id": "w", "role": "worker"})),
        ("claim_task", json!({"agent_id": "w"})),
        ("heartbeat", json!({"agent_id": "w", "note": "half of it"})),
        ("complete_task", json!({"agent_id": "w", "task_id": "t", "output": "written"})),
        ("claim_task", json!({"agent_id": "w"})),
        ("complete_task", json!({"agent_id": "w", "task_id": "none", "output": "refused"})),
    ];
    (2..).zip(loops).map(|(id, (name, given))| ask(id, name, given)).collect()
}

#[test]
fn clients_whose_models_read_both_parts_of_a_result_get_its_text_alone() {
    let bytes = |results: &[Value]| results.iter().map(|one| one.to_string().len()).sum::<usize>();
    let both = worker_of("claude-code");
    for result in &both {
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap())
            .unwrap_or_else(|_| result["structuredContent"].clone());
        assert_eq!(result["structuredContent"], text, "one is the other");
    }
    for client in ["Cline", "@cline/core", "@langchain/mcp-adapters"] {
        let once = worker_of(client);
        for (result, known) in once.iter().zip(&both) {
            assert_eq!(result.get("structuredContent"), None, "{client}: {result}");
            assert_eq!(result["isError"], known["isError"]);
            assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
        }
        println!(
            "a worker's loop of {client}: {} bytes, with both parts {}",
            bytes(&once),
            bytes(&both)
        );
        assert!(bytes(&once) * 100 < bytes(&both) * 65, "{client}");
    }
}
