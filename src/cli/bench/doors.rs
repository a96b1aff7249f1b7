//! End to end: the real program through each of its transports, with more and more clients.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command};

use anyhow::{Context, anyhow, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::drive::{Names, PATIENCE, Refused, Worker, await_answer, connect, drive, in_words};
use super::figure::{Key, Unit};
use super::last_words::LastWords;
use super::place::{agent, callboard, unleash};
use super::web_socket::WebSocket;
use super::{Bench, Measure};

pub(super) const PART: &str = "doors";

#[derive(Clone, Copy, PartialEq)]
enum Door {
    Stdio,
    HttpMcp,
    HttpRpc,
    WebSocket,
}

impl Door {
    const ALL: [Self; 4] = [Self::Stdio, Self::HttpMcp, Self::HttpRpc, Self::WebSocket];

    fn names(self) -> Names {
        let (rate, claim) = match self {
            Self::Stdio => ("MCP on stdio", "claim, MCP on stdio"),
            Self::HttpMcp => ("MCP over HTTP", "claim, MCP over HTTP"),
            Self::HttpRpc => (JSON_RPC, "claim, JSON-RPC over HTTP"),
            Self::WebSocket => ("JSON-RPC, WebSocket", "claim, JSON-RPC, WebSocket"),
        };
        Names { part: PART, rate, claim }
    }
}

/// The transport that other queues are compared with.
pub(super) const JSON_RPC: &str = "JSON-RPC over HTTP";
pub(super) const STDIO_CLAIM: &str = "claim, MCP on stdio";

pub(super) struct Doors;

impl Measure for Doors {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        for clients in bench.size.clients.clone() {
            for door in Door::ALL {
                let names = door.names();
                bench.begin(format_args!("{}, {clients} clients", names.rate));
                let tasks = bench.size.work;
                let board = bench.place.board(tasks, clients)?;
                let mut server = match door {
                    Door::Stdio => None,
                    _ => Some(Server::start(&board)?),
                };
                let worker = |number| -> anyhow::Result<Box<dyn Worker>> {
                    let agent = agent(number);
                    Ok(match (door, &server) {
                        (Door::HttpMcp, Some(server)) => {
                            Box::new(Through::new(agent, server.tools()?))
                        }
                        (Door::HttpRpc, Some(server)) => {
                            Box::new(Through::new(agent, server.methods()?))
                        }
                        (Door::WebSocket, Some(server)) => {
                            Box::new(Through::new(agent, server.web_socket()?))
                        }
                        _ => Box::new(Through::new(agent, Stdio::start(&board)?)),
                    })
                };
                let workers = (0..clients).map(worker).collect::<anyhow::Result<Vec<_>>>();
                let run = workers.and_then(|workers| drive(workers, bench.size.span));
                let run = run.map_err(|error| match &mut server {
                    Some(server) => server.ended(&error),
                    None => error,
                })?;
                run.record(bench, &names, tasks);
            }
        }
        Ok(())
    }
}

/// Several processes on one directory, compared with one process with as many callers.
pub(super) struct Processes;

pub(super) const PROCESSES: &str = "processes";
pub(super) const TOGETHER: Key = Key::new(PROCESSES, "processes on one directory");
pub(super) const ALONE: Key = Key::new(PROCESSES, "callers in one process");
pub(super) const SLOWEST: Key = Key::new(PROCESSES, "slowest process, of the mean");

impl Measure for Processes {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        const COUNT: usize = 8;
        let tasks = bench.size.work;
        bench.begin(format_args!("{COUNT} processes on one directory"));
        let board = bench.place.board(tasks, COUNT)?;
        let start = |number| -> anyhow::Result<Box<dyn Worker>> {
            Ok(Box::new(Through::new(agent(number), Stdio::start(&board)?)))
        };
        let workers = (0..COUNT).map(start).collect::<anyhow::Result<Vec<_>>>()?;
        let run = drive(workers, bench.size.span)?;
        run.record(
            bench,
            &Names { part: PROCESSES, rate: TOGETHER.name, claim: "claim, of 8 processes" },
            tasks,
        );
        let mean = run.done.iter().sum::<usize>() as f64 / COUNT as f64;
        let slowest = run.done.iter().min().copied().unwrap_or(0) as f64;
        bench.figures.value(
            SLOWEST.tasks(tasks).clients(COUNT),
            Unit::Share,
            slowest / mean.max(1.0),
        );

        bench.begin(format_args!("one process with {COUNT} callers"));
        let board = bench.place.board(tasks, COUNT)?;
        let handle = super::place::inside(&board);
        let workers = (0..COUNT).map(|number| -> anyhow::Result<Box<dyn Worker>> {
            Ok(Box::new(Through::new(agent(number), super::commit::Inside::new(handle.clone())?)))
        });
        let run = drive(workers.collect::<anyhow::Result<Vec<_>>>()?, bench.size.span)?;
        run.record(
            bench,
            &Names { part: PROCESSES, rate: ALONE.name, claim: "claim, of 8 callers" },
            tasks,
        );
        Ok(())
    }
}

/// A way to call operations.
pub(super) trait Client: Send {
    /// Calls an operation; `arguments` is JSON.
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply>;
}

/// The part of a reply that a client needs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reply {
    #[serde(default)]
    pub success: bool,
    pub task: Option<Claimed>,
    /// For example, that the state file was not written.
    pub warning: Option<String>,
}

impl Reply {
    /// Refuses a reply with a warning: work done in part is not what is measured.
    pub(super) fn whole(self, operation: &str) -> anyhow::Result<Self> {
        match self.warning {
            Some(warning) => bail!("{operation}: {warning}"),
            None => Ok(self),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Claimed {
    pub id: String,
}

/// A worker that calls through a client.
pub(super) struct Through<C> {
    agent: String,
    client: C,
    task: String,
}

impl<C> Through<C> {
    pub(super) fn new(agent: String, client: C) -> Self {
        Self { agent, client, task: String::new() }
    }
}

impl<C: Client> Worker for Through<C> {
    fn claim(&mut self) -> anyhow::Result<bool> {
        let reply =
            self.client.call("claim_task", &format!(r#"{{"agent_id":"{}"}}"#, self.agent))?;
        self.task = reply.task.map(|task| task.id).unwrap_or_default();
        Ok(reply.success)
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        let Self { agent, task, .. } = self;
        let arguments =
            format!(r#"{{"agent_id":"{agent}","task_id":"{task}","output":"what was done"}}"#);
        match self.client.call("complete_task", &arguments)? {
            reply if reply.success => Ok(()),
            reply => bail!(Refused(format!("complete_task: {reply:?}"))),
        }
    }
}

/// The response to a `tools/call`.
#[derive(Deserialize)]
struct ToolAnswer {
    result: Option<ToolResult>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    #[serde(default)]
    is_error: bool,
    structured_content: Option<Reply>,
    #[serde(default)]
    content: Vec<Block>,
}

/// Text for people, which says what was wrong.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: String,
}

impl ToolAnswer {
    fn reply(self, operation: &str) -> anyhow::Result<Reply> {
        match self.result {
            Some(ToolResult { is_error: false, structured_content: Some(reply), .. }) => {
                reply.whole(operation)
            }
            Some(result) => {
                let said: Vec<_> = result.content.into_iter().map(|block| block.text).collect();
                bail!(Refused(format!("{operation}: {}", said.join(" "))))
            }
            None => bail!(Refused(format!("{operation}: {}", self.error.unwrap_or_default()))),
        }
    }
}

/// The response to a JSON-RPC method.
#[derive(Deserialize)]
pub(super) struct MethodAnswer {
    result: Option<Reply>,
    error: Option<Value>,
}

impl MethodAnswer {
    pub(super) fn reply(self, operation: &str) -> anyhow::Result<Reply> {
        let refused =
            |error: Option<Value>| Refused(format!("{operation}: {}", error.unwrap_or_default()));
        self.result.ok_or_else(|| refused(self.error))?.whole(operation)
    }
}

/// A request for a JSON-RPC method.
pub(super) fn method(operation: &str, arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{operation}","params":{arguments}}}"#)
}

/// A request for a tool, in the protocol version without a handshake.
fn tool(operation: &str, arguments: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    method(
        "tools/call",
        &format!(r#"{{"name":"{operation}","arguments":{arguments},"_meta":{meta}}}"#),
    )
}

/// A process of this program, which ends when this value is dropped.
struct Process {
    child: Child,
    last_words: LastWords,
}

impl Process {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.spawn()?;
        let last_words = LastWords::of(child.stderr.take().context("no standard error")?);
        Ok(Self { child, last_words })
    }

    fn end(&mut self) {
        unleash(&mut self.child.stdin);
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// What went wrong with the process, and its own last words on that.
    fn ended(&mut self, error: &anyhow::Error) -> anyhow::Error {
        self.end();
        match self.last_words.lines() {
            said if said.is_empty() => anyhow!("{}", in_words(error)),
            said => anyhow!("{}; the last that the process said:\n{said}", in_words(error)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// `callboard mcp` and its only client.
pub(super) struct Stdio {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Stdio {
    pub(super) fn start(board: &Path) -> anyhow::Result<Self> {
        Self::of(callboard(board, false)?.arg("mcp"))
    }

    fn of(command: &mut Command) -> anyhow::Result<Self> {
        let mut process = Process::start(command)?;
        let input = process.child.stdin.take().context("no standard input")?;
        let output = BufReader::new(process.child.stdout.take().context("no standard output")?);
        Ok(Self { process, input, output, line: String::new() })
    }

    pub(super) fn process(&self) -> u32 {
        self.process.child.id()
    }

    fn ask(&mut self, request: &str) -> anyhow::Result<ToolAnswer> {
        self.input.write_all(request.as_bytes())?;
        self.line.clear();
        await_answer(self.output.get_ref(), PATIENCE)?;
        ensure!(self.output.read_line(&mut self.line)? > 0, "it has closed its standard output");
        serde_json::from_str(&self.line).with_context(|| self.line.clone())
    }
}

impl Client for Stdio {
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply> {
        let mut request = tool(operation, arguments);
        request.push('\n');
        self.ask(&request).map_err(|error| self.process.ended(&error))?.reply(operation)
    }
}

/// `callboard serve`.
pub(super) struct Server {
    process: Process,
    address: String,
    token: String,
}

impl Server {
    pub(super) fn start(board: &Path) -> anyhow::Result<Self> {
        Self::of(callboard(board, true)?.args(["--json", "serve", "--listen", "127.0.0.1:0"]))
    }

    fn of(command: &mut Command) -> anyhow::Result<Self> {
        let mut process = Process::start(command)?;
        let (address, token) =
            announced(&mut process.child).map_err(|error| process.ended(&error))?;
        Ok(Self { process, address, token })
    }

    /// What went wrong with a client, and the server's last words on that.
    pub(super) fn ended(&mut self, error: &anyhow::Error) -> anyhow::Error {
        self.process.ended(error)
    }

    fn connect(&self) -> anyhow::Result<Http> {
        let stream = connect(&self.address)?;
        let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.address, self.token);
        Ok(Http { stream, head, body: Vec::new() })
    }

    pub(super) fn tools(&self) -> anyhow::Result<Tools> {
        Ok(Tools(self.connect()?))
    }

    pub(super) fn methods(&self) -> anyhow::Result<Methods> {
        Ok(Methods(self.connect()?))
    }

    fn web_socket(&self) -> anyhow::Result<WebSocket> {
        let Http { stream, head, .. } = self.connect()?;
        WebSocket::open(stream, &head)
    }
}

/// Address and token that the server announces.
fn announced(server: &mut Child) -> anyhow::Result<(String, String)> {
    let mut line = String::new();
    let output = server.stdout.take().context("no standard output")?;
    await_answer(&output, PATIENCE)?;
    BufReader::new(output).read_line(&mut line)?;
    let announced: Value =
        serde_json::from_str(&line).context("the server did not say where it listens")?;
    let text = |field: &str| {
        announced[field].as_str().map(str::to_owned).with_context(|| format!("no {field}"))
    };
    Ok((text("url")?.trim_start_matches("http://").to_owned(), text("token")?))
}

/// A connection that is kept for all calls.
struct Http {
    stream: BufReader<TcpStream>,
    head: String,
    body: Vec<u8>,
}

impl Http {
    fn ask<T: DeserializeOwned>(
        &mut self,
        path: &str,
        headers: fmt::Arguments,
        body: &str,
    ) -> anyhow::Result<T> {
        let Self { stream, head, body: reply } = self;
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{head}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let mut length = None;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(stream.read_line(&mut line)? > 0, "the server has closed the connection");
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok();
                }
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        reply.resize(length.context("an answer without a length")?, 0);
        stream.read_exact(reply)?;
        serde_json::from_slice(reply).with_context(|| String::from_utf8_lossy(reply).into_owned())
    }
}

/// MCP over HTTP.
pub(super) struct Tools(Http);

impl Client for Tools {
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply> {
        let headers = format_args!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {operation}\r\n"
        );
        let answer: ToolAnswer = self.0.ask("/mcp", headers, &tool(operation, arguments))?;
        answer.reply(operation)
    }
}

/// JSON-RPC over HTTP.
pub(super) struct Methods(Http);

impl Client for Methods {
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply> {
        let answer: MethodAnswer =
            self.0.ask("/rpc", format_args!(""), &method(operation, arguments))?;
        answer.reply(operation)
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    fn broken() -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo 'the disk is full' >&2; exit 3"]);
        command
            .stdin(process::Stdio::piped())
            .stdout(process::Stdio::piped())
            .stderr(process::Stdio::piped());
        command
    }

    #[test]
    fn process_that_ends_has_its_own_words_told() {
        let mut client = Stdio::of(&mut broken()).expect("it runs");
        let errors = [client.call("get_status", "{}").err(), Server::of(&mut broken()).err()];
        for error in errors {
            let error = error.expect("it has ended");
            assert!(error.to_string().ends_with("\nthe disk is full"), "{error:#}");
            // It must not look like the end of a reader of our own output.
            assert!(!crate::cli::is_broken_pipe(&error), "{error:#}");
        }
    }
}
