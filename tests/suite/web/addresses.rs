//! Browsers look for the board's host name at 127.0.0.1 and at [::1]: both are the server's.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::process::Stdio;

use serde_json::Value;

use super::Browser;
use crate::harness::http::{Connection, Server, serve};
use crate::harness::{Board, available};

/// A socket of this process at [::1], if the machine has that address.
fn listening(port: u16) -> Option<TcpListener> {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)) {
        Ok(listener) => Some(listener),
        Err(error) => {
            let reason = format!("[::1] cannot be used: {error}");
            assert!(!available("ipv6", Some(&reason)));
            None
        }
    }
}

/// Runs a server that must not start, and returns what it said.
#[track_caller]
fn refused(board: &Board, address: SocketAddr) -> String {
    let (mut command, log) = serve(board, &["--listen", &address.to_string()]);
    let output = command.output().unwrap();
    let said = fs::read_to_string(log).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{said}");
    said
}

#[test]
fn server_answers_at_both_and_leaves_neither_to_another() {
    if listening(0).is_none() {
        return;
    }
    let (board, other) = (Board::new(), Board::new());
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let server = Server::with(&board, &["--listen", listen], &[]);
        let browser = Browser::logged_in(&server);
        let port = server.address.port();
        let both = [server.address, SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
        for address in both {
            let answer = Connection::to(address).ask(&browser.request("GET", "/keys"));
            assert_eq!(answer.status, 200, "{address}: {}", answer.text());
            assert!(TcpListener::bind(address).is_err(), "{address} is left to this process");
            let said = refused(&other, address);
            assert!(said.contains(&address.to_string()) && said.contains("in use"), "{said}");
        }
    }
}

#[test]
fn server_does_not_start_beside_another_process_at_the_other_address() {
    let Some(foreign) = listening(0) else { return };
    let port = foreign.local_addr().unwrap().port();
    let said = refused(&Board::new(), SocketAddr::from(([127, 0, 0, 1], port)));
    assert!(said.contains(&format!("[::1]:{port}")) && said.contains("--listen"), "{said}");
    assert!(said.contains("where browsers may look"), "{said}");
}

#[test]
fn web_takes_another_port_where_the_usual_one_is_half_taken() {
    if listening(0).is_none() {
        return;
    }
    let board = Board::new();
    // If it cannot be bound, another process has it: that is as good.
    let usual = TcpListener::bind((Ipv6Addr::LOCALHOST, 8425)).ok();
    let mut command = board.command();
    command.args(["--json", "web", "--no-open"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    let link = reply["link"].as_str().unwrap();
    assert!(link.contains(".localhost:") && !link.contains(":8425/"), "{link}");
    if let Some(usual) = usual {
        usual.set_nonblocking(true).unwrap();
        assert!(usual.accept().is_err(), "nothing was sent to the other process");
    }
}
