//! Whatever a client writes to `callboard mcp`: every line of the answer is a message, and a call after it is answered.
#![no_main]

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::thread::{self, JoinHandle};

use callboard::mcp::{Server, serve_stdio};
use callboard::ops::Toolset;
use callboard::participant::{Caller, Stay};
use callboard_fuzz::{INPUTS_PER_BOARD, board, pipe, read_some};
use libfuzzer_sys::fuzz_target;
use rustix::stdio::{dup2_stdin, dup2_stdout};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// A server on the standard input and output of this very process.
struct Session {
    input: Option<File>,
    output: File,
    unread: Vec<u8>,
    server: Option<JoinHandle<()>>,
    inputs: usize,
}

impl Session {
    fn open() -> Self {
        let ((served, input), (output, answers)) = (pipe(), pipe());
        dup2_stdin(&served).unwrap();
        dup2_stdout(&answers).unwrap();
        let server = thread::spawn(|| {
            let runtime =
                Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (_dir, handle) = board(Stay::Presence);
            runtime
                .block_on(serve_stdio(Server::new(handle, Caller::default(), Toolset::Full)))
                .unwrap();
        });
        Self { input: Some(input), output, unread: Vec::new(), server: Some(server), inputs: 0 }
    }

    fn take(&mut self, input: &[u8]) {
        self.inputs += 1;
        let id = format!("behind input {}", self.inputs);
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let message = [input, b"\n", ping.to_string().as_bytes(), b"\n"].concat();
        self.input.as_mut().unwrap().write_all(&message).unwrap();
        while self.message()["id"] != *id {}
    }

    fn message(&mut self) -> Value {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.unread.drain(..=end).collect();
                let message: Value = serde_json::from_slice(&line).expect("a line is JSON");
                assert_eq!(message["jsonrpc"], "2.0", "{message}");
                return message;
            }
            assert!(read_some(&mut self.output, &mut self.unread), "the server has ended");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        self.server.take().unwrap().join().expect("the server ends well");
    }
}

thread_local!(static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) });

fuzz_target!(|input: &[u8]| SESSION.with_borrow_mut(|session| {
    if session.as_ref().is_some_and(|session| session.inputs == INPUTS_PER_BOARD) {
        *session = None;
    }
    session.get_or_insert_with(Session::open).take(input);
}));
