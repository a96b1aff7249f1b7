//! `callboard serve` as a process, and clients that send exactly the bytes they are told to.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_quickack;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Board, PATIENCE, Reply, until};
use crate::schemas::assert_reply;

pub(crate) const LEGACY_VERSION: &str = "2025-11-25";
const MODERN_VERSION: &str = "2026-07-28";

/// A running server. Its log is in a file beside the board.
pub(crate) struct Server {
    process: Child,
    pub address: SocketAddr,
    /// The line that it printed first.
    pub announced: Value,
    pub token: String,
    log: PathBuf,
}

/// A command for `callboard --json serve` on a free port, with its log in a file of its own.
pub(crate) fn serve(board: &Board, arguments: &[&str]) -> (Command, PathBuf) {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let log = board.base().join(format!("serve-{}.log", STARTED.fetch_add(1, Ordering::Relaxed)));
    let mut command = board.command();
    command.args(["--json", "serve"]).args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    (command, log)
}

impl Server {
    #[track_caller]
    pub(crate) fn on(board: &Board) -> Self {
        Self::with(board, &[], &[])
    }

    #[track_caller]
    pub(crate) fn with(board: &Board, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let (mut command, log) = serve(board, arguments);
        command.envs(environment.iter().copied());
        Self::start(&mut command, log)
    }

    /// A server with a limit on open files.
    #[track_caller]
    pub(crate) fn with_files(board: &Board, limit: usize) -> Self {
        let (command, log) = serve(board, &[]);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(command.get_program());
        shell.args(command.get_args()).current_dir(board.base()).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        Self::start(&mut shell, log)
    }

    #[track_caller]
    fn start(command: &mut Command, log: PathBuf) -> Self {
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let parsed = serde_json::from_str(&line);
        let announced: Value =
            parsed.unwrap_or_else(|_| panic!("{line:?} {}", fs::read_to_string(&log).unwrap()));
        // A full pipe would block a server that continues to print.
        thread::spawn(move || output.lines().map_while(Result::ok).for_each(drop));
        let text = |field: &str| {
            announced[field].as_str().unwrap_or_else(|| panic!("no {field}: {line}")).to_owned()
        };
        let port: u16 = text("url").rsplit(':').next().unwrap().parse().unwrap();
        let (address, token) = (SocketAddr::from(([127, 0, 0, 1], port)), text("token"));
        Self { process, address, announced, token, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }

    /// Number of open sockets, including the listener.
    pub(crate) fn sockets(&self) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let targets = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Kills the process with SIGKILL and reaps it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    #[track_caller]
    pub(crate) fn ends_within(&mut self, patience: Duration) -> ExitStatus {
        until(patience, "the server ends", || self.process.try_wait().unwrap())
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    /// The answer to one request on its own connection.
    #[track_caller]
    pub(crate) fn ask(&self, request: &Request) -> Answer {
        self.connect().ask(request)
    }

    /// An empty request with the headers that every request needs.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        request
            .header("Host", &self.address.to_string())
            .header("Authorization", &format!("Bearer {}", self.token))
    }

    pub(crate) fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Request {
        let mut request = self.request("POST", path).header("Content-Type", "application/json");
        request.body = body.into();
        request
    }

    /// A request for one operation through `/rpc`.
    pub(crate) fn rpc(&self, id: u64, operation: &str, arguments: &Value) -> Request {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": operation, "params": arguments});
        self.post("/rpc", call.to_string())
    }

    /// An MCP message of 2026-07-28, with the headers that mirror it.
    pub(crate) fn modern(&self, id: u64, method: &str, params: Value) -> Request {
        let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        call["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let request = self.post("/mcp", call.to_string()).accepting_streams();
        let request =
            request.header("MCP-Protocol-Version", MODERN_VERSION).header("Mcp-Method", method);
        match call["params"]["name"].as_str() {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }

    /// An `initialize` request of the versions before 2026-07-28.
    pub(crate) fn initialize(&self, id: u64) -> Request {
        let client = json!({"name": "old-client", "version": "1"});
        let params =
            json!({"protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": client});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params});
        self.post("/mcp", call.to_string()).accepting_streams()
    }

    /// The upgrade request for a WebSocket.
    pub(crate) fn upgrade(&self) -> Request {
        let request = self
            .request("GET", "/rpc")
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket");
        request
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ways to call an operation by a single request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Door {
    Mcp,
    Rpc,
}

impl Door {
    pub(crate) const ALL: [Self; 2] = [Self::Mcp, Self::Rpc];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Mcp => "/mcp",
            Self::Rpc => "/rpc",
        }
    }

    pub(crate) fn call(
        self,
        server: &Server,
        id: u64,
        operation: &str,
        arguments: &Value,
    ) -> Request {
        match self {
            Self::Mcp => {
                server.modern(id, "tools/call", json!({"name": operation, "arguments": arguments}))
            }
            Self::Rpc => server.rpc(id, operation, arguments),
        }
    }

    #[track_caller]
    pub(crate) fn ask(self, server: &Server, operation: &str, arguments: &Value) -> Reply {
        reply(&server.ask(&self.call(server, 1, operation, arguments)).message())
    }

    #[track_caller]
    pub(crate) fn ok(self, server: &Server, operation: &str, arguments: &Value) -> Value {
        let reply = self.ask(server, operation, arguments).ok();
        assert_reply(operation, &reply);
        reply
    }
}

/// The reply of an operation, from a message in either format.
#[track_caller]
pub(crate) fn reply(message: &Value) -> Reply {
    let (result, error) = (&message["result"], &message["error"]);
    assert!(result.is_object() || error.is_object(), "{message}");
    if error.is_object() {
        return Reply { value: error["data"].clone(), is_error: true, text: error.to_string() };
    }
    let is_error = result["isError"] == true;
    let value = if result["content"].is_array() { &result["structuredContent"] } else { result };
    Reply { value: value.clone(), is_error, text: result.to_string() }
}

/// A request as it will be written, valid or not.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// Sets a header, in place of any with that name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.without(name).and_header(name, value)
    }

    /// Adds a header, even if there is one with that name.
    pub(crate) fn and_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn accepting_streams(self) -> Self {
        self.header("Accept", "application/json, text/event-stream")
    }

    /// Everything up to the empty line, without the length of the body.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        self.headers
            .iter()
            .for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        (text + "\r\n").into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let sized = self.clone().header("Content-Length", &self.body.len().to_string());
        [sized.head(), self.body.clone()].concat()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn header_names(&self) -> impl Iterator<Item = String> {
        self.headers.iter().map(|(name, _)| name.to_ascii_lowercase())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON-RPC answer, whether alone or last in a stream of events.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let text = self.text();
        let stream =
            self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let found = if stream {
            events(&text).into_iter().rfind(|message| message["id"] != Value::Null)
        } else {
            serde_json::from_str(&text).ok()
        };
        found.unwrap_or_else(|| panic!("no message in {} {text:?}", self.status))
    }
}

/// The messages in a stream of server-sent events.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

/// One TCP connection.
pub(crate) struct Connection {
    stream: TcpStream,
    pub unread: Vec<u8>,
}

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, unread: Vec::new() }
    }

    /// Whether the bytes were sent; the other side may have closed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn send(&mut self, request: &Request) {
        assert!(self.write(&request.bytes()), "the server has closed");
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        // A server that has already answered need not read the rest.
        self.write(&request.bytes());
        self.answer().unwrap_or_else(|| {
            panic!("closed without an answer to {} {}", request.method, request.path)
        })
    }

    /// The next answer; none if the connection ended before one. Panics if it ended within one.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        loop {
            let mut answer = self.answer_head()?;
            // Status 100 only says to continue.
            if answer.status == 100 {
                continue;
            }
            answer.body =
                match (answer.header("content-length"), answer.header("transfer-encoding")) {
                    (_, Some(_)) => self.chunks(),
                    (Some(length), None) => self.exactly(length.parse().unwrap()),
                    (None, None) => Vec::new(),
                };
            return Some(answer);
        }
    }

    /// The status line and headers, for streams with an endless body.
    #[track_caller]
    pub(crate) fn answer_head(&mut self) -> Option<Answer> {
        while !self.unread.windows(4).any(|window| window == b"\r\n\r\n") {
            if !self.read_more() {
                let part = String::from_utf8_lossy(&self.unread);
                assert!(part.is_empty(), "the connection ended within {part:?}");
                return None;
            }
        }
        let end = self.unread.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(self.exactly(end + 4)).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pairs = lines.filter_map(|line| line.split_once(':'));
        let headers =
            pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Some(Answer { status, headers, body: Vec::new() })
    }

    /// Everything up to the end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.read_more() {}
        std::mem::take(&mut self.unread)
    }

    /// What arrives with one answer, or with the part of it that arrives.
    #[track_caller]
    pub(crate) fn some(&mut self) -> Vec<u8> {
        let whole = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let length = text.split("\r\n").find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse::<usize>()
                    .ok()
            });
            let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
            head.zip(length).is_some_and(|(head, length)| bytes.len() >= head + 4 + length)
        };
        while !whole(&self.unread) && self.read_more() {}
        std::mem::take(&mut self.unread)
    }

    /// Sets whether the kernel acknowledges the next segments at once, or late, as it does by
    /// itself when requests and answers alternate.
    pub(crate) fn acknowledge(&self, at_once: bool) {
        set_tcp_quickack(&self.stream, at_once).unwrap();
    }

    pub(crate) fn close_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Whether anything can be read now, including the end.
    pub(crate) fn is_readable(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        !self.unread.is_empty() || !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether the other side has closed, with nothing left to read.
    pub(crate) fn is_closed(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        match peeked {
            Ok(size) => size == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Reads more; false at the end, clean or not.
    #[track_caller]
    pub(crate) fn read_more(&mut self) -> bool {
        let mut part = [0; 16 * 1024];
        match self.stream.read(&mut part) {
            Ok(0) => false,
            Ok(size) => {
                self.unread.extend_from_slice(&part[..size]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!(
                    "no answer within {PATIENCE:?}; so far {:?}",
                    String::from_utf8_lossy(&self.unread)
                )
            }
            Err(_) => false,
        }
    }

    #[track_caller]
    fn exactly(&mut self, size: usize) -> Vec<u8> {
        while self.unread.len() < size {
            assert!(
                self.read_more(),
                "the connection ended within an answer: {:?}",
                String::from_utf8_lossy(&self.unread)
            );
        }
        let rest = self.unread.split_off(size);
        std::mem::replace(&mut self.unread, rest)
    }

    #[track_caller]
    fn chunks(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.chunk()).flatten().collect()
    }

    /// The next piece of a body without a length; none at its end.
    #[track_caller]
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        let chunk = self.exactly(size);
        self.exactly(2);
        (size > 0).then_some(chunk)
    }

    #[track_caller]
    fn line(&mut self) -> String {
        while !self.unread.contains(&b'\n') {
            assert!(self.read_more(), "the connection ended within an answer");
        }
        let end = self.unread.iter().position(|byte| *byte == b'\n').unwrap();
        String::from_utf8(self.exactly(end + 1)).unwrap()
    }
}

/// A session of the versions before 2026-07-28.
pub(crate) struct Session<'a> {
    pub server: &'a Server,
    pub id: String,
}

impl<'a> Session<'a> {
    #[track_caller]
    pub(crate) fn open(server: &'a Server) -> Self {
        let answer = server.ask(&server.initialize(0));
        assert_eq!(
            answer.message()["result"]["protocolVersion"],
            LEGACY_VERSION,
            "{}",
            answer.text()
        );
        let id = answer.header("mcp-session-id").expect("a session id").to_owned();
        let session = Self { server, id };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(server.ask(&session.post(&initialized)).status, 202);
        session
    }

    pub(crate) fn post(&self, message: &Value) -> Request {
        self.as_ours(self.server.post("/mcp", message.to_string()))
    }

    pub(crate) fn call(&self, id: u64, tool: &str, arguments: &Value) -> Request {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    pub(crate) fn cancel(&self, id: u64) -> Request {
        let params = json!({"requestId": id});
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    }

    /// The request that ends the session.
    pub(crate) fn end(&self) -> Request {
        self.as_ours(self.server.request("DELETE", "/mcp"))
    }

    /// The stream for unsolicited messages, once it is open.
    #[track_caller]
    pub(crate) fn stream(&self) -> Connection {
        let mut connection = self.server.connect();
        connection.send(&self.get("text/event-stream"));
        let head = connection.answer_head().expect("a stream");
        assert_eq!(head.status, 200, "{head:?}");
        connection
    }

    pub(crate) fn get(&self, accepted: &str) -> Request {
        self.as_ours(self.server.request("GET", "/mcp")).header("Accept", accepted)
    }

    fn as_ours(&self, request: Request) -> Request {
        request
            .accepting_streams()
            .header("Mcp-Session-Id", &self.id)
            .header("MCP-Protocol-Version", LEGACY_VERSION)
    }
}

pub(crate) const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;

/// A WebSocket on `/rpc`.
pub(crate) struct WebSocket {
    pub connection: Connection,
}

impl WebSocket {
    #[track_caller]
    pub(crate) fn open(server: &Server) -> Self {
        Self::with(server, &server.upgrade())
    }

    #[track_caller]
    pub(crate) fn with(server: &Server, upgrade: &Request) -> Self {
        let mut connection = server.connect();
        connection.send(upgrade);
        let head = connection.answer_head().expect("an answer to the upgrade");
        assert_eq!(head.status, 101, "{head:?} {:?}", String::from_utf8_lossy(&connection.unread));
        Self { connection }
    }

    pub(crate) fn send(&mut self, id: u64, method: &str, params: &Value) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert!(self.frame(TEXT, call.to_string().as_bytes()), "the server has closed");
    }

    /// Sends a frame, masked as a client's must be. Returns whether it was sent.
    pub(crate) fn frame(&mut self, kind: u8, payload: &[u8]) -> bool {
        const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
        let mut frame = vec![0x80 | kind];
        match payload.len() {
            size @ 0..126 => frame.push(0x80 | size as u8),
            size @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend((size as u16).to_be_bytes());
            }
            size => {
                frame.push(0x80 | 127);
                frame.extend((size as u64).to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.connection.write(&frame)
    }

    /// Sends a close frame.
    pub(crate) fn close(&mut self) {
        self.frame(CLOSE, &1_000_u16.to_be_bytes());
    }

    /// The next message; none if the connection was closed.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            if self.connection.unread.is_empty() && !self.connection.read_more() {
                return None;
            }
            let start = self.connection.exactly(2);
            let size = match start[1] {
                126 => {
                    usize::from(u16::from_be_bytes(self.connection.exactly(2).try_into().unwrap()))
                }
                127 => u64::from_be_bytes(self.connection.exactly(8).try_into().unwrap()) as usize,
                size => usize::from(size),
            };
            let payload = self.connection.exactly(size);
            match start[0] & 0x0f {
                TEXT => return Some(serde_json::from_slice(&payload).unwrap()),
                CLOSE => return None,
                PING => drop(self.frame(PING + 1, &payload)),
                _ => {}
            }
        }
    }

    /// The answer to call `id`; other messages are skipped.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message =
                self.next().unwrap_or_else(|| panic!("closed without an answer to call {id}"));
            if message["id"] == id {
                return message;
            }
        }
    }
}
