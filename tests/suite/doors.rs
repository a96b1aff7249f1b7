//! All transports of one server under load: how long calls take, how soon events arrive, and that
//! all show the same history.

mod latency;
mod mixed;
mod polling;
mod subscribers;

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::http::{Connection, Door, Server, Session, WebSocket, reply};
use crate::harness::{Board, Client, Reply};

/// One client, by the way in which it calls.
enum Way<'a> {
    Stdio(Client),
    Modern(&'a Server, Connection),
    Legacy(Connection, Session<'a>),
    Rpc(&'a Server, Connection),
    WebSocket(WebSocket),
    Cli(&'a Board),
}

impl<'a> Way<'a> {
    /// One client of each kind.
    fn all(board: &'a Board, server: &'a Server) -> Vec<Self> {
        let mut ways = Self::of_server(server);
        ways.extend([Self::Stdio(board.mcp()), Self::Cli(board)]);
        ways
    }

    fn of_server(server: &'a Server) -> Vec<Self> {
        vec![
            Self::Modern(server, server.connect()),
            Self::Legacy(server.connect(), Session::open(server)),
            Self::Rpc(server, server.connect()),
            Self::WebSocket(WebSocket::open(server)),
        ]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio MCP",
            Self::Modern(..) => "HTTP MCP 2026-07-28",
            Self::Legacy(..) => "HTTP MCP 2025-11-25",
            Self::Rpc(..) => "JSON-RPC POST",
            Self::WebSocket(_) => "JSON-RPC WebSocket",
            Self::Cli(_) => "CLI",
        }
    }

    fn call(&mut self, operation: &str, arguments: &Value) -> Reply {
        const ID: u64 = 7;
        let message = match self {
            Self::Stdio(client) => return client.call(operation, arguments.clone()),
            Self::Cli(board) => {
                let finished = board.cli(operation, arguments.clone());
                // An empty-handed claim has an exit code of its own, and still a reply.
                let is_error = finished.stdout.is_empty();
                let value = if is_error { Value::Null } else { finished.value() };
                return Reply { value, is_error, text: finished.stderr };
            }
            Self::Modern(server, connection) => {
                connection.ask(&Door::Mcp.call(server, ID, operation, arguments)).message()
            }
            Self::Rpc(server, connection) => {
                connection.ask(&Door::Rpc.call(server, ID, operation, arguments)).message()
            }
            Self::Legacy(connection, session) => {
                connection.ask(&session.call(ID, operation, arguments)).message()
            }
            Self::WebSocket(socket) => {
                socket.send(ID, operation, arguments);
                socket.answer(ID)
            }
        };
        reply(&message)
    }

    #[track_caller]
    fn ok(&mut self, operation: &str, arguments: &Value) -> Value {
        self.call(operation, arguments).ok()
    }

    fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Modern(_, connection)
            | Self::Legacy(connection, _)
            | Self::Rpc(_, connection) => Some(connection),
            Self::WebSocket(socket) => Some(&socket.connection),
            Self::Stdio(_) | Self::Cli(_) => None,
        }
    }
}

/// Many measured times of the same thing.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    fn at(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }

    fn median(&self) -> Duration {
        self.at(50)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |percent| self.at(percent).as_secs_f64() * 1_000.0;
        write!(f, "p50 {:.2} ms, p95 {:.2} ms, max {:.2} ms", millis(50), millis(95), millis(100))
    }
}

/// Keeps a task held, so that claims that find nothing wait.
fn keep_busy(server: &Server) {
    Door::Rpc.ok(server, "register_agent", &json!({"agent_id": "keeper", "role": "worker"}));
    Door::Rpc.ok(
        server,
        "create_task",
        &json!({"id": "kept", "description": "held until the end"}),
    );
    Door::Rpc.ok(server, "claim_task", &json!({"agent_id": "keeper", "task_id": "kept"}));
}
