//! A client that can ask its user is sent the questions of `ask_human`, and asked before the board
//! loses something: in the protocol of 2025 by requests of the server, since 2026-07-28 by answers
//! that ask.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::harness::{Board, PATIENCE};

/// A client of the protocol of 2025 that answers requests of the server by hand.
struct Client {
    process: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    set_aside: Vec<Value>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Client {
    fn start(board: &Board, capabilities: Value) -> Self {
        let mut command = board.command();
        command.args(["mcp", "--toolset", "full"]).env("CALLBOARD_ME", "ada");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines
                .filter_map(|line| serde_json::from_str(&line).ok())
                .try_for_each(|message| sender.send(message))
        });
        let input = process.stdin.take().unwrap();
        let mut client = Self { process, input, lines, set_aside: Vec::new() };
        client.write(json!({"id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "by-hand", "version": "1"}}}));
        client.take("the handshake", |message| message["id"] == 0);
        client.write(json!({"method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        writeln!(self.input, "{message}").unwrap();
    }

    fn send(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.write(json!({"id": id, "method": "tools/call", "params": params}));
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.send(id, tool, arguments);
        self.reply(id)
    }

    fn reply(&mut self, id: u64) -> Value {
        self.take("a reply", |message| message["id"] == id && message["method"].is_null())
    }

    fn question(&mut self) -> Value {
        self.take("a question", |message| message["method"] == "elicitation/create")
    }

    fn answer(&mut self, question: &Value, result: Value) {
        self.write(json!({"id": question["id"], "result": result}));
    }

    #[track_caller]
    fn take(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.set_aside.iter().position(&is_it) {
                return self.set_aside.remove(at);
            }
            let next = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {what}"));
            self.set_aside.push(next);
        }
    }

    fn has_question(&self) -> bool {
        self.set_aside.iter().any(|message| message["method"] == "elicitation/create")
    }
}

fn can_ask() -> Value {
    json!({"elicitation": {}})
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

#[track_caller]
fn says(board: &Board, arguments: &[&str]) -> String {
    let finished = board.finish(board.command().args(arguments));
    assert!(finished.status.success(), "{}{}", finished.stdout, finished.stderr);
    finished.stdout
}

#[test]
fn a_question_is_asked_at_the_client_and_the_waiting_call_gets_the_answer() {
    let board = Board::new();
    let mut client = Client::start(&board, can_ask());
    client.call(1, "register_agent", json!({"agent_id": "w"}));
    let options = ["Keep it", "Drop it"];
    client.send(
        2,
        "ask_human",
        json!({"agent_id": "w", "question": "Which?", "options": options, "wait_seconds": 50}),
    );
    let question = client.question();
    let params = &question["params"];
    assert_eq!(params["message"], "w (Q1): Which?");
    assert_eq!(params["requestedSchema"]["properties"]["choice"]["enum"], json!(options));
    client.answer(&question, accept(json!({"choice": "Drop it"})));
    let reply = client.reply(2)["result"]["structuredContent"].clone();
    assert_eq!((&reply["answer"], &reply["answered_by"]), (&json!("Drop it"), &json!("ada")));
    assert_eq!(board.document()["messages"][1]["person"], "ada");
}

#[test]
fn an_answer_from_elsewhere_ends_the_question_at_the_client() {
    let board = Board::new();
    let mut client = Client::start(&board, can_ask());
    client.call(1, "register_agent", json!({"agent_id": "w"}));
    // Without time to wait the call comes back at once, and the question stays open at the client.
    let reply = client.call(2, "ask_human", json!({"agent_id": "w", "question": "Tabs?"}));
    assert_eq!(reply["result"]["structuredContent"]["answer"], Value::Null);
    let question = client.question();
    says(&board, &["answer", "Q1", "Spaces"]);
    let cancelled = client
        .take("the end of the question", |message| message["method"] == "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    // Too late: the answer from elsewhere stays.
    client.answer(&question, accept(json!({"answer": "Tabs"})));
    let reply = client.call(3, "ask_human", json!({"agent_id": "w", "question": "Tabs?"}));
    assert_eq!(reply["result"]["structuredContent"]["answer"], "Spaces");
    assert!(!client.has_question(), "asked once");
}

#[test]
fn a_person_who_does_not_answer_at_the_client_answers_elsewhere() {
    let board = Board::new();
    let mut client = Client::start(&board, can_ask());
    client.call(1, "register_agent", json!({"agent_id": "w"}));
    for (number, action) in [(1, "decline"), (2, "cancel")] {
        let asked = json!({"agent_id": "w", "question": action, "wait_seconds": 50});
        client.send(number * 10, "ask_human", asked);
        let question = client.question();
        client.answer(&question, json!({"action": action}));
        says(&board, &["answer", &format!("Q{number}"), "yes"]);
        let reply = client.reply(number * 10);
        assert_eq!(reply["result"]["structuredContent"]["answer"], "yes");
    }
    let blank = json!({"agent_id": "w", "question": "blank", "wait_seconds": 1});
    client.send(30, "ask_human", blank);
    let question = client.question();
    client.answer(&question, accept(json!({"answer": "  "})));
    assert_eq!(client.reply(30)["result"]["structuredContent"]["answer"], Value::Null);
}

#[test]
fn what_destroys_is_done_only_if_the_person_says_so() {
    let board = Board::new();
    says(&board, &["add", "a", "--id", "a"]);
    says(&board, &["--agent", "w", "claim", "a"]);
    says(&board, &["--agent", "w", "complete", "a", "done"]);
    let status = || board.task("a")["status"].clone();
    let mut client = Client::start(&board, can_ask());
    client.call(1, "register_agent", json!({"agent_id": "lead", "role": "leader"}));
    let reset = json!({"agent_id": "lead", "task_id": "a"});
    let refusals = [
        accept(json!({"confirm": false})),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        accept(json!({"confirm": "yes"})),
    ];
    for (id, refusal) in (2..).zip(refusals) {
        client.send(id, "reset_tasks", reset.clone());
        let question = client.question();
        assert_eq!(
            question["params"]["message"],
            "lead wants to begin tasks anew; their results go.\nreset_tasks {\"task_id\":\"a\"}"
        );
        client.answer(&question, refusal);
        let reply = client.reply(id);
        assert_eq!(reply["result"]["structuredContent"]["code"], "not_confirmed", "{reply}");
        assert_eq!(status(), "done");
    }
    client.send(10, "reset_tasks", reset.clone());
    let question = client.question();
    client.answer(&question, accept(json!({"confirm": true})));
    assert_eq!(client.reply(10)["result"]["structuredContent"]["reset"], 1);
    assert_eq!(status(), "available");
    // A client that cannot ask is not asked.
    let mut mute = Client::start(&board, json!({}));
    mute.call(1, "register_agent", json!({"agent_id": "lead", "role": "leader", "takeover": true}));
    let reply = mute.call(2, "reset_tasks", reset);
    assert_eq!(reply["result"]["isError"], false, "{reply}");
}

/// A call of the protocol since 2026-07-28, by a client that can ask, with what the person said.
fn modern(tool: &str, arguments: &Value, said: Option<Value>) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "by-hand", "version": "1"}}});
    if let Some(said) = said {
        params["inputResponses"] = json!({"person": said});
    }
    json!({"jsonrpc": "2.0", "method": "tools/call", "params": params})
}

#[test]
fn since_2026_a_question_is_the_answer_to_the_call() {
    let board = Board::new();
    says(&board, &["add", "a", "--id", "a"]);
    let mut client = board.mcp();
    client.register("w");
    let mut ask = |tool: &str, arguments: &Value, said: Option<Value>| {
        client.ask(modern(tool, arguments, said))["result"].clone()
    };
    let asked = json!({"agent_id": "w", "question": "Tabs?", "wait_seconds": 50});
    let required = ask("ask_human", &asked, None);
    assert_eq!(required["resultType"], "input_required", "{required}");
    let form = &required["inputRequests"]["person"];
    assert_eq!(form["params"]["message"], "w (Q1): Tabs?");
    let reply = ask("ask_human", &asked, Some(accept(json!({"answer": "Spaces"}))));
    assert_eq!(reply["structuredContent"]["answer"], "Spaces", "{reply}");
    // Without time to wait nobody is kept waiting.
    let brief = json!({"agent_id": "w", "question": "Now?"});
    assert_eq!(ask("ask_human", &brief, None)["structuredContent"]["question"], "Q2");
    let delete = json!({"plan": "none"});
    let required = ask("remove_plan", &delete, None);
    assert_eq!(required["resultType"], "input_required", "{required}");
    let refused = ask("remove_plan", &delete, Some(json!({"action": "decline"})));
    assert_eq!(refused["structuredContent"]["code"], "not_confirmed", "{refused}");
    let done = ask("remove_plan", &delete, Some(accept(json!({"confirm": true}))));
    assert_ne!(done["structuredContent"]["code"], "not_confirmed", "{done}");
}
