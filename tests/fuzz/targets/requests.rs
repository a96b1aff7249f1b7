//! Whatever arrives at `callboard serve`: raw bytes, or a body behind a head that the gate lets in. The server answers or
//! closes, and goes on.
#![no_main]

use std::cell::RefCell;
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use callboard::http::{Admission, Gate, Keyring, MCP, RPC, Rates, Token, listen, serve};
use callboard::mcp::Server;
use callboard::ops::Toolset;
use callboard::participant::{Caller, Stay};
use callboard_fuzz::{INPUTS_PER_BOARD, PATIENCE, board, is_readable, read_some};
use libfuzzer_sys::fuzz_target;
use rustix::net::sockopt::set_socket_linger;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// For an answer to what may get none: a request without an end, a call that waits.
const MOMENT: Duration = Duration::from_millis(20);

struct Served {
    runtime: Runtime,
    address: SocketAddr,
    token: String,
    stop: Option<oneshot::Sender<()>>,
    inputs: usize,
}

impl Served {
    fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (dir, handle) = board(Stay::Lasting);
        let (stop, stopped) = oneshot::channel();
        let token = Token::open(dir.path(), true).unwrap();
        let text = token.text();
        let address = runtime.block_on(async {
            let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).unwrap();
            let address = listener.local_addr().unwrap();
            let keys = Some(Keyring::open(dir.path(), token).unwrap());
            let admission = Admission::new(address, &[], &[]);
            let gate = Gate { admission, keys, rates: Rates::default() };
            tokio::spawn(async move {
                let server = Server::new(handle.clone(), Caller::default(), Toolset::Full);
                let interruption = async { drop(stopped.await) };
                serve(listener, handle, server, None, gate, interruption).await.unwrap();
                drop(dir);
            });
            address
        });
        Self { runtime, address, token: text, stop: Some(stop), inputs: 0 }
    }

    fn take(&mut self, input: &[u8]) {
        self.inputs += 1;
        let (first, rest) = input.split_first().unwrap_or((&0, &[]));
        let path = match first % 4 {
            0 => RPC,
            1 => MCP,
            _ => "",
        };
        let request = if path.is_empty() { rest.to_vec() } else { self.admitted(path, rest) };
        self.ask(&request, MOMENT);
        let health = self.ask(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            PATIENCE,
        );
        assert!(health.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&health));
    }

    fn admitted(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    /// Everything that the server answers before it closes. It is told that nothing more comes when it has begun to
    /// answer, or has nothing to say so far.
    fn ask(&self, request: &[u8], patience: Duration) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // Thousands of closed connections would wait for their ports otherwise.
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        let mut answer = Vec::new();
        let written = stream.write_all(request);
        let open = written.is_ok()
            && (!is_readable(&stream, patience) || read_some(&mut stream, &mut answer));
        if open && stream.shutdown(Shutdown::Write).is_ok() {
            while read_some(&mut stream, &mut answer) {}
        }
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        std::mem::replace(&mut self.runtime, Builder::new_current_thread().build().unwrap())
            .shutdown_timeout(Duration::from_secs(10));
    }
}

thread_local!(static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) });

fuzz_target!(|input: &[u8]| SERVED.with_borrow_mut(|served| {
    if served.as_ref().is_some_and(|served| served.inputs == INPUTS_PER_BOARD) {
        *served = None;
    }
    served.get_or_insert_with(Served::start).take(input);
}));
