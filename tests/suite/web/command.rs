//! `callboard web`: starts a server if none runs, and prints a link either way.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use super::{Browser, code_of};
use crate::harness::http::Server;
use crate::harness::{Board, PATIENCE, until};

#[test]
fn link_is_of_the_server_that_runs() {
    let board = Board::new();
    let none = board.finish(board.command().args(["web", "--link"]));
    assert!(!none.status.success() && none.stderr.contains("start one with"), "{}", none.stderr);
    let mut server = Server::on(&board);
    for command in ["web", "board"] {
        let fresh = board.finish(board.command().args(["--json", command, "--link"]));
        let reply = fresh.value();
        assert_eq!(reply["started"], false);
        assert_eq!(Browser::at(&server).log_in(&code_of(&reply["link"])).status, 303, "{command}");
    }
    // Without --link it is the same, as long as one runs.
    let text = board.finish(board.command().args(["web", "--no-open"]));
    let link = text.stdout.lines().next().unwrap().to_owned();
    assert_eq!(Browser::at(&server).log_in(&code_of(&Value::from(link))).status, 303);
    // One that was killed leaves its file, and another process may have its port.
    server.kill();
    let taken = TcpListener::bind(server.address).unwrap();
    let after = board.finish(board.command().args(["web", "--link"]));
    assert!(!after.status.success() && after.stderr.contains("start one with"), "{}", after.stderr);
    taken.set_nonblocking(true).unwrap();
    assert!(taken.accept().is_err(), "nothing was sent to whatever listens there now");
}

#[test]
fn server_is_started_where_none_runs() {
    let board = Board::new();
    // The usual port may be taken; then it is another.
    let usual = TcpListener::bind("127.0.0.1:8425");
    let opener = board.base().join("opener");
    std::fs::write(&opener, "#!/bin/sh\nprintf %s \"$1\" > opened.new && mv opened.new opened\n")
        .unwrap();
    std::fs::set_permissions(&opener, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = board.command();
    command.args(["--json", "web", "--open"]).env("BROWSER", &opener);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reply["started"], true);
    let link = reply["link"].as_str().unwrap();
    let opened = until(PATIENCE, "the browser is opened", || {
        std::fs::read_to_string(board.base().join("opened")).ok()
    });
    assert_eq!(opened, link);
    let again = board.finish(board.command().args(["--json", "web"]));
    assert_eq!(again.value()["started"], false);
    rustix::process::kill_process(rustix::process::Pid::from_child(&process), Signal::TERM)
        .unwrap();
    assert!(process.wait().unwrap().success());
    assert!(!board.finish(board.command().args(["web", "--link"])).status.success());
    drop(usual);
}
