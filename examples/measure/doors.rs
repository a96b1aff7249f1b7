//! The same operation in process and over HTTP, in turns.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use callboard::participant::Caller;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::{Outcome, board_of, callboard, inside, median, millis, quantile};

const CALLS: usize = 300;
/// What the way over HTTP may add at the median.
const ALLOWED: Duration = Duration::from_millis(1);

pub fn measure() -> Outcome<()> {
    let dir = tempfile::tempdir_in(std::env::current_dir()?)?;
    // One board each, so that neither has to read what the other wrote.
    let (near, far) = (board_of(&dir.path().join("near"), 1_000)?, board_of(&dir.path().join("far"), 1_000)?);
    let handle = inside(&near);
    let runtime = Builder::new_current_thread().build()?;
    let server = Server::start(&far)?;
    let (mut mcp, mut rpc) = (server.connect()?, server.connect()?);
    println!("| {CALLS} calls, ms: median and p95 | in process | tools/call, HTTP | POST /rpc | added by HTTP |");
    println!("|---|---|---|---|---|");
    for operation in ["get_status", "create_task"] {
        let (mut inner, mut tools, mut methods) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..CALLS {
            let arguments = match operation {
                "create_task" => json!({"description": "do one thing more"}),
                _ => json!({}),
            };
            let start = Instant::now();
            runtime.block_on(handle.call(operation, arguments.clone(), &Caller::default()))?;
            inner.push(start.elapsed());
            let start = Instant::now();
            mcp.tool(operation, &arguments)?;
            tools.push(start.elapsed());
            let start = Instant::now();
            rpc.method(operation, &arguments)?;
            methods.push(start.elapsed());
        }
        // Each against its neighbour in time, because what a durable write takes changes with the machine's other work.
        let added = [&tools, &methods].map(|outer| {
            let pairs = outer.iter().zip(&inner);
            median(pairs.map(|(outer, inner): (&Duration, &Duration)| outer.saturating_sub(*inner)).collect())
        });
        let [inner, tools, methods] =
            [inner, tools, methods].map(|times| [50, 95].map(|percent| quantile(times.clone(), percent)));
        let show = |times: [Duration; 2]| format!("{:.3} {:.3}", millis(times[0]), millis(times[1]));
        println!("| {operation} | {} | {} | {} | {} |", show(inner), show(tools), show(methods), show(added));
        assert!(added.iter().all(|added| *added <= ALLOWED), "{operation}: HTTP adds {added:?}");
    }
    Ok(())
}

struct Server {
    process: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(board: &Path) -> Outcome<Self> {
        let mut process = callboard(board)?.args(["--json", "serve", "--listen", "127.0.0.1:0"]).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no standard output")?).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line)?;
        let text = |field: &str| announced[field].as_str().map(str::to_owned).ok_or(format!("no {field}"));
        let address = text("url")?.trim_start_matches("http://").to_owned();
        Ok(Self { process, address, token: text("token")? })
    }

    fn connect(&self) -> Outcome<Connection> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "Host: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            self.address, self.token
        );
        Ok(Connection { stream: BufReader::new(stream), head })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// One that is kept for all calls.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn tool(&mut self, name: &str, arguments: &Value) -> Outcome<()> {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n");
        match self.ask("/mcp", &headers, &body)? {
            reply if reply["result"]["structuredContent"].is_object() && reply["result"]["isError"] != true => Ok(()),
            reply => Err(format!("{name}: {reply}").into()),
        }
    }

    fn method(&mut self, name: &str, arguments: &Value) -> Outcome<()> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments});
        match self.ask("/rpc", "", &body)? {
            reply if reply["result"].is_object() => Ok(()),
            reply => Err(format!("{name}: {reply}").into()),
        }
    }

    fn ask(&mut self, path: &str, headers: &str, body: &Value) -> Outcome<Value> {
        let body = body.to_string();
        let length = body.len();
        let request = format!("POST {path} HTTP/1.1\r\n{}{headers}Content-Length: {length}\r\n\r\n{body}", self.head);
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut length = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok()
                }
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut reply = vec![0; length.ok_or("no content-length")?];
        self.stream.read_exact(&mut reply)?;
        Ok(serde_json::from_slice(&reply)?)
    }
}
