//! What a claim costs: over MCP on stdio, against one durable SQLite commit of a row of the same size, in one run; then how
//! long a process takes to its first reply and how much memory it has; what the way over HTTP adds to a call; and what
//! very many that wait or listen cost those who call.
//!
//! Run it with `cargo build --release && cargo run --release --example measure`.

#[path = "measure/crowd.rs"]
mod crowd;
#[path = "measure/doors.rs"]
mod doors;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use callboard::clock::SystemClock;
use callboard::participant::{self, Handle, Options, Stay};
use rusqlite::Connection;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const CLAIMS: usize = 60;
const STARTS: usize = 20;
const SIZES: [usize; 3] = [100, 1_000, 10_000];

fn main() -> Outcome<()> {
    println!("| tasks | claim over stdio | SQLite FULL commit | ratio |\n|---|---|---|---|");
    for tasks in SIZES {
        let (claim, commit) = claims_against_commits(tasks)?;
        let ratio = claim.as_secs_f64() / commit.as_secs_f64();
        println!("| {tasks} | {} µs | {} µs | {ratio:.2} |", claim.as_micros(), commit.as_micros());
    }
    let (first_reply, memory) = starts()?;
    println!("spawn to first reply, existing board of 100 tasks: {:.1} ms (median of {STARTS})", millis(first_reply));
    println!("PSS after the first reply: {:.1} MB", memory as f64 / 1_024.0);
    doors::measure()?;
    crowd::measure()
}

/// The binary that was built beside this example.
fn callboard(board: &Path) -> Outcome<Command> {
    let example = std::env::current_exe()?;
    let callboard = example.parent().and_then(Path::parent).ok_or("no target directory")?.join("callboard");
    let mut command = Command::new(callboard);
    command.env("COORDINATION_DIR", board).stdout(Stdio::piped());
    Ok(command)
}

/// A participant in this process.
fn inside(board: &Path) -> Handle {
    participant::spawn(Options {
        dir: board.to_owned(),
        stay: Stay::Lasting,
        forbidden: None,
        unwritable: None,
        clock: Box::new(SystemClock::default()),
        seed: 1,
        worktree: None,
    })
}

/// Medians. Claims and commits take turns, so that both meet the same weather.
fn claims_against_commits(tasks: usize) -> Outcome<(Duration, Duration)> {
    let dir = tempfile::tempdir_in(std::env::current_dir()?)?;
    let board = board_of(dir.path(), tasks)?;
    let mut agent = Agent::start(&board)?;
    agent.call("register_agent", json!({"agent_id": "ada", "role": "worker", "max_concurrent": 100}))?;
    let sqlite = Connection::open(dir.path().join("rows.db"))?;
    sqlite.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE rows(seq INTEGER PRIMARY KEY, body TEXT)",
    )?;
    let row = json!({"kind": "claimed", "task": "task-000000", "agent": "ada", "attempt": 1,
        "lease_until": "2026-01-01T00:00:00.000Z", "through": "p-0000000000", "padding": "x".repeat(260)});
    let row = row.to_string();
    let (mut claims, mut commits) = (Vec::new(), Vec::new());
    for _ in 0..CLAIMS {
        let start = Instant::now();
        let claim = agent.call("claim_task", json!({"agent_id": "ada"}))?;
        claims.push(start.elapsed());
        agent.call("start_task", json!({"agent_id": "ada", "task_id": claim["task"]["id"]}))?;
        let start = Instant::now();
        sqlite.execute("INSERT INTO rows(body) VALUES (?1)", [&row])?;
        commits.push(start.elapsed());
    }
    Ok((median(claims), median(commits)))
}

fn starts() -> Outcome<(Duration, u64)> {
    let dir = tempfile::tempdir_in(std::env::current_dir()?)?;
    let board = board_of(dir.path(), 100)?;
    let mut replies = Vec::new();
    let mut memory = 0;
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut agent = Agent::start(&board)?;
        agent.call("get_status", json!({}))?;
        replies.push(start.elapsed());
        memory = pss_kilobytes(agent.process.id())?;
    }
    Ok((median(replies), memory))
}

fn pss_kilobytes(pid: u32) -> Outcome<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn board_of(dir: &Path, tasks: usize) -> Outcome<PathBuf> {
    let board = dir.join(".coordination");
    let mut leader = Agent::start(&board)?;
    let mut left = tasks;
    while left > 0 {
        let size = left.min(2_000);
        let batch: Vec<_> =
            (0..size).map(|n| json!({"description": format!("do thing {n}, and do it well")})).collect();
        leader.call("create_tasks_batch", json!({"tasks": batch}))?;
        left -= size;
    }
    Ok(board)
}

fn median(times: Vec<Duration>) -> Duration {
    quantile(times, 50)
}

fn quantile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(board: &Path) -> Outcome<Self> {
        let mut process = callboard(board)?.arg("mcp").stdin(Stdio::piped()).spawn()?;
        let input = process.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        Ok(Self { process, input, output })
    }

    /// In the era without a handshake: the first request is the first call.
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Value> {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let reply: Value = serde_json::from_str(&line)?;
        match &reply["result"]["structuredContent"] {
            Value::Object(fields) if reply["result"]["isError"] != true => Ok(Value::Object(fields.clone())),
            _ => Err(format!("{tool}: {line}").into()),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
