//! A leader plans ten tasks, and four worker processes do them over MCP on stdio. One is killed in
//! the middle of its task, and another takes that task over.
//!
//! Run it with `cargo build && cargo run --example team`.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const WORKERS: [&str; 4] = ["ada", "grace", "edsger", "barbara"];

fn main() -> Outcome<()> {
    let board = tempfile::tempdir()?.keep().join(".coordination");
    println!("board: {}", board.display());
    // A minute of grace is right for people; here nobody wants to wait that long for a process that
    // does not come back.
    std::fs::create_dir(&board)?;
    std::fs::write(board.join("config.toml"), "[policy]\ngrace_seconds = 2\n")?;
    let mut leader = Agent::start(&board)?;
    plan(&mut leader)?;

    let somebody_died = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers = WORKERS.map(|name| {
            let (board, somebody_died) = (&board, &somebody_died);
            scope.spawn(move || work(name, board, somebody_died))
        });
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker's thread panicked"))
    })?;
    report(&mut leader, &board)
}

/// The plan: two sources, a module from each, their tests, and tasks that need several of them.
fn plan(leader: &mut Agent) -> Outcome<()> {
    leader.call(
        "init_coordination",
        json!({"goal": "a tiny parser", "master_plan": "lex, parse, print, document"}),
    )?;
    let tasks = json!([
        {"id": "lexer", "description": "write the lexer", "priority": 1},
        {"id": "grammar", "description": "write the grammar down", "priority": 1},
        {"id": "lexer-tests", "description": "test the lexer", "dependencies": ["lexer"]},
        {"id": "parser", "description": "write the parser", "priority": 2, "dependencies": ["lexer", "grammar"]},
        {"id": "parser-tests", "description": "test the parser", "dependencies": ["parser"]},
        {"id": "printer", "description": "print the tree", "dependencies": ["grammar"]},
        {"id": "printer-tests", "description": "test the printer", "dependencies": ["printer"]},
        {"id": "round-trip", "description": "parse what was printed", "dependencies": ["parser", "printer"]},
        {"id": "guide", "description": "write the guide", "priority": 8, "dependencies": ["grammar"]},
        {"id": "release", "description": "tag the release", "dependencies":
            ["lexer-tests", "parser-tests", "printer-tests", "round-trip", "guide"]},
    ]);
    let created = leader.call("create_tasks_batch", json!({"tasks": tasks}))?;
    println!("leader: planned {} tasks", created["created"]);
    Ok(())
}

/// The loop that the prompt `work` tells a model to follow. The first worker to start on the parser
/// dies before it finishes.
fn work(name: &str, board: &Path, somebody_died: &AtomicBool) -> Outcome<()> {
    let mut agent = Agent::start(board)?;
    agent.call("register_agent", json!({"agent_id": name, "role": "worker"}))?;
    loop {
        let claim = agent.call("claim_task", json!({"agent_id": name, "wait_seconds": 50}))?;
        let Some(task) = claim["task"]["id"].as_str().map(str::to_owned) else {
            if claim["verdict"] == "wait" || claim["verdict"] == "empty" {
                continue;
            }
            println!("{name}: {}, so I stop", claim["message"].as_str().unwrap_or_default());
            return Ok(());
        };
        println!("{name}: {task} (attempt {})", claim["attempt"]);
        if let Some(note) = claim["handoff"]["last_attempt"]["note"].as_str() {
            println!("{name}: taking over where it says {note:?}");
        }
        agent.call("start_task", json!({"agent_id": name, "task_id": task}))?;
        if task == "parser" && !somebody_died.swap(true, Ordering::SeqCst) {
            let note = "expressions parse, statements do not";
            agent.call("heartbeat", json!({"agent_id": name, "task_id": task, "note": note}))?;
            println!("{name}: killed in the middle of {task}");
            return agent.kill();
        }
        let output = format!("{task} by {name}");
        agent
            .call("complete_task", json!({"agent_id": name, "task_id": task, "output": output}))?;
    }
}

fn report(leader: &mut Agent, board: &Path) -> Outcome<()> {
    let tasks = leader.call("get_all_tasks", json!({}))?;
    let tasks = tasks["tasks"].as_array().cloned().unwrap_or_default();
    let done = tasks.iter().filter(|task| task["status"] == "done").count();
    let again: BTreeSet<_> = tasks
        .iter()
        .filter(|task| task["attempt"] != 1)
        .map(|task| task["id"].to_string())
        .collect();
    println!("leader: {done} of {} tasks are done; more than one attempt: {again:?}", tasks.len());
    println!("state:  {}", board.join("mcp-state.json").display());
    if done == 10 && again == BTreeSet::from(["\"parser\"".to_owned()]) {
        return Ok(());
    }
    Err("the team did not do what it should".into())
}

/// A process of `callboard mcp`, as an IDE would start it.
struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Agent {
    fn start(board: &Path) -> Outcome<Self> {
        let mut command = Command::new(callboard()?);
        command
            .arg("mcp")
            .env("COORDINATION_DIR", board)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut agent = Self { process, input, output, last_id: 0 };
        let client = json!({"name": "team", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        agent.request("initialize", hello)?;
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Value> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        if result["isError"] == true {
            return Err(format!("{tool}: {}", result["content"][0]["text"]).into());
        }
        Ok(result["structuredContent"].clone())
    }

    fn request(&mut self, method: &str, params: Value) -> Outcome<Value> {
        self.last_id += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}),
        )?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("callboard has ended".into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.last_id {
                return Ok(message["result"].clone());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Outcome<()> {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    fn kill(mut self) -> Outcome<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// The binary of the same build, next to this example's directory.
fn callboard() -> Outcome<PathBuf> {
    let example = std::env::current_exe()?;
    let built = example.parent().and_then(Path::parent).map(|dir| dir.join("callboard"));
    built
        .filter(|path| path.exists())
        .ok_or_else(|| "callboard is not built: run `cargo build` first".into())
}
