//! The token: where it is kept, how it changes, and where it must never appear.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::json;

use super::ways_in;
use crate::harness::http::{Door, Server, WebSocket, reply, serve};
use crate::harness::{Board, PATIENCE, until};

fn token_file(board: &Board) -> PathBuf {
    board.file("serve.token")
}

#[test]
fn token_is_256_bits_in_a_file_that_only_its_owner_reads() {
    let board = Board::new();
    let server = Server::on(&board);
    let digits = server.token.strip_prefix("cbt_").unwrap();
    assert!(
        digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
    let path = token_file(&board);
    assert_eq!(fs::read_to_string(&path).unwrap().trim_end(), server.token);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(server.announced["token_file"].as_str().map(PathBuf::from), Some(path));
    let (mcp, rpc) =
        (server.announced["mcp"].as_str().unwrap(), server.announced["rpc"].as_str().unwrap());
    let url = server.announced["url"].as_str().unwrap();
    assert_eq!((mcp, rpc), (&*format!("{url}/mcp"), &*format!("{url}/rpc")));
}

#[test]
fn boards_have_tokens_of_their_own() {
    let (one, other) = (Board::new(), Board::new());
    assert_ne!(Server::on(&one).token, Server::on(&other).token);
}

#[test]
fn token_is_kept_over_a_restart() {
    let board = Board::new();
    let mut first = Server::on(&board);
    let token = first.token.clone();
    first.kill();
    assert_eq!(Server::on(&board).token, token);
}

#[test]
fn new_token_ends_the_old_one_also_in_a_server_that_runs_already() {
    let board = Board::new();
    let running = Server::on(&board);
    let old = running.token.clone();
    let rotated = Server::with(&board, &["--new-token"], &[]);
    assert_ne!(rotated.token, old);
    assert_eq!(fs::read_to_string(token_file(&board)).unwrap().trim_end(), rotated.token);
    assert_eq!(fs::metadata(token_file(&board)).unwrap().permissions().mode() & 0o777, 0o600);
    for server in [&rotated, &running] {
        for door in Door::ALL {
            let call = door.call(server, 1, "get_status", &json!({}));
            let with =
                |token: &str| call.clone().header("Authorization", &format!("Bearer {token}"));
            until(PATIENCE, "the old token ends", || {
                (server.ask(&with(&old)).status == 401).then_some(())
            });
            assert_eq!(server.ask(&with(&rotated.token)).status, 200, "{door:?}");
        }
    }
}

#[test]
fn new_token_ends_what_was_open_with_the_old_one() {
    let board = Board::new();
    let running = Server::on(&board);
    let mut socket = WebSocket::open(&running);
    let mut stream = running.connect();
    let wanted = json!({"notifications": {"resourceSubscriptions": ["coordination://status"]}});
    let before = running.sockets();
    stream.send(&running.modern(1, "subscriptions/listen", wanted).header("Connection", "close"));
    assert_eq!(stream.answer_head().unwrap().status, 200);
    let _rotated = Server::with(&board, &["--new-token"], &[]);
    let mut id = 1;
    until(PATIENCE, "calls on the open connection are refused", || {
        id += 1;
        socket.send(id, "get_status", &json!({}));
        (reply(&socket.answer(id)).code() == "gone").then_some(())
    });
    until(PATIENCE, "the stream is closed", || (running.sockets() <= before).then_some(()));
}

#[test]
fn token_is_neither_logged_nor_in_the_command_line() {
    let board = Board::new();
    let server = Server::with(&board, &[], &[("CALLBOARD_LOG", "trace")]);
    for (_, request) in ways_in(&server) {
        let query = format!("{}?token={}", request.path, server.token);
        let wrong = request.clone().header("Authorization", &format!("Basic {}", server.token));
        let offered = format!("callboard, callboard.bearer.{}", server.token);
        let offered = request.clone().header("Sec-WebSocket-Protocol", &offered);
        for request in [
            request.clone(),
            request.at(&query),
            wrong,
            offered.clone(),
            offered.without("Authorization"),
        ] {
            let mut connection = server.connect();
            connection.send(&request);
            connection.answer_head().unwrap();
        }
    }
    let mut socket = WebSocket::open(&server);
    socket.send(1, "get_status", &json!({}));
    socket.answer(1);
    let log = server.log();
    assert!(!log.is_empty());
    let line = log.lines().find(|line| line.contains(&server.token));
    assert_eq!(line, None, "the token is in the log");
    let arguments = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains(&server.token));
}

#[test]
fn token_that_others_could_read_is_not_used() {
    let board = Board::new();
    let known = "0".repeat(64);
    board.make_dir();
    fs::write(token_file(&board), &known).unwrap();
    fs::set_permissions(token_file(&board), fs::Permissions::from_mode(0o644)).unwrap();
    let (mut command, log) = serve(&board, &[]);
    let mut process = command.spawn().unwrap();
    let settled = until(PATIENCE, "the server ends or has a token of its own", || {
        let safe = fs::metadata(token_file(&board))
            .is_ok_and(|file| file.permissions().mode() & 0o077 == 0);
        let ended = process.try_wait().unwrap();
        (ended.is_some() || safe).then_some(ended)
    });
    let _ = process.kill();
    let _ = process.wait();
    match settled {
        Some(status) => assert!(!status.success(), "{status} {}", fs::read_to_string(log).unwrap()),
        None => assert_ne!(fs::read_to_string(token_file(&board)).unwrap().trim_end(), known),
    }
}

#[test]
fn token_file_that_leads_elsewhere_is_neither_read_nor_written() {
    let board = Board::new();
    board.make_dir();
    let elsewhere = board.base().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&elsewhere, token_file(&board)).unwrap();
    for arguments in [&[][..], &["--new-token"]] {
        let (mut command, _) = serve(&board, arguments);
        let mut process = command.spawn().unwrap();
        until(PATIENCE, "the server ends or has a token of its own", || {
            let own = fs::symlink_metadata(token_file(&board)).is_ok_and(|file| file.is_file());
            (process.try_wait().unwrap().is_some() || own).then_some(())
        });
        let _ = process.kill();
        let _ = process.wait();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    }
}

#[test]
fn token_file_that_holds_no_token_lets_nobody_in() {
    for content in ["", "\n", "short"] {
        let board = Board::new();
        board.make_dir();
        fs::write(token_file(&board), content).unwrap();
        fs::set_permissions(token_file(&board), fs::Permissions::from_mode(0o600)).unwrap();
        let (mut command, log) = serve(&board, &[]);
        let mut process = command.spawn().unwrap();
        let ended = until(PATIENCE, "the server ends or has a token of its own", || {
            let token = fs::read_to_string(token_file(&board)).unwrap_or_default();
            let whole = token.trim_end().len() == 64;
            let ended = process.try_wait().unwrap();
            (ended.is_some() || whole).then_some(ended)
        });
        let _ = process.kill();
        let _ = process.wait();
        assert!(
            ended.is_none_or(|status| !status.success()),
            "{content:?} {}",
            fs::read_to_string(log).unwrap()
        );
    }
}
