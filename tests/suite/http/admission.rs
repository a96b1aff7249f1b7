//! Admission: Host, Origin, token, content type, and the addresses on which the server may listen.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{admitted, head, refused, status, ways_in};
use crate::harness::Board;
use crate::harness::http::{Connection, Door, Server, WebSocket, serve};

#[test]
fn host_of_this_machine_is_admitted_by_any_name_and_port() {
    let board = Board::new();
    let server = Server::on(&board);
    for host in ["localhost", "LocalHost:1", "127.0.0.1:9", "[::1]", "[::1]:65535"] {
        admitted(&server, |request| request.header("Host", host));
    }
}

#[test]
fn host_that_is_not_listed_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let port = server.address.port();
    let foreign = [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
    ];
    for host in foreign {
        refused(&server, 403, |request| request.header("Host", host));
    }
    refused(&server, 403, |request| request.header("Host", &format!("evil.example:{port}")));
    refused(&server, 403, |request| {
        request.header("Host", &format!("localhost:{port}@evil.example"))
    });
    for tail in [":80:90", ":99999", ":8o", ":80.evil.example", ":+80", ":-1"] {
        for (way, request) in ways_in(&server) {
            let status = status(&server, &request.header("Host", &format!("localhost{tail}")));
            assert!(matches!(status, 400 | 403), "{way}: localhost{tail}: {status}");
        }
    }
}

#[test]
fn request_without_one_host_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    for (way, request) in ways_in(&server) {
        let none = status(&server, &request.clone().without("Host"));
        let two = status(&server, &request.and_header("Host", "evil.example"));
        assert!(matches!((none, two), (400 | 403, 400 | 403)), "{way}: {none} {two}");
    }
}

#[test]
fn foreign_authority_in_the_request_line_is_refused_whatever_the_host() {
    let board = Board::new();
    let server = Server::on(&board);
    for (way, request) in ways_in(&server) {
        let absolute = format!("http://evil.example{}", request.path);
        let status = status(&server, &request.at(&absolute));
        assert!(matches!(status, 400 | 403), "{way}: {status}");
    }
}

#[test]
fn host_that_the_owner_allows_is_admitted() {
    let board = Board::new();
    let server =
        Server::with(&board, &["--allow-host", "board.example", "--allow-host", "10.0.0.7"], &[]);
    for host in ["board.example", "board.example:8425", "10.0.0.7:8425", "localhost"] {
        admitted(&server, |request| request.header("Host", host));
    }
    refused(&server, 403, |request| request.header("Host", "other.example"));
}

#[test]
fn origin_of_the_server_itself_is_admitted() {
    let board = Board::new();
    let server = Server::on(&board);
    let port = server.address.port();
    admitted(&server, |request| request.header("Origin", &format!("http://127.0.0.1:{port}")));
    let local = format!("localhost:{port}");
    admitted(&server, |request| {
        request.header("Host", &local).header("Origin", &format!("http://{local}"))
    });
}

#[test]
fn foreign_origin_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let own = server.announced["url"].as_str().unwrap().to_owned();
    let other_port = format!("http://127.0.0.1:{}", server.address.port().wrapping_add(1));
    let foreign = [
        "https://evil.example",
        "null",
        "",
        &other_port,
        "http://localhost",
        "file://",
        "chrome-extension://x",
    ];
    for origin in foreign {
        refused(&server, 403, |request| request.header("Origin", origin));
    }
    refused(&server, 403, |request| request.header("Origin", &format!("{own}.evil.example")));
    refused(&server, 403, |request| request.header("Origin", &own.replace("http://", "https://")));
}

#[test]
fn several_origins_are_refused_when_one_is_foreign() {
    let board = Board::new();
    let server = Server::on(&board);
    let own = server.announced["url"].as_str().unwrap().to_owned();
    refused(&server, 403, |request| {
        request.header("Origin", &own).and_header("Origin", "https://evil.example")
    });
    refused(&server, 403, |request| {
        request.header("Origin", "https://evil.example").and_header("Origin", &own)
    });
    refused(&server, 403, |request| {
        request.header("Origin", &format!("{own} https://evil.example"))
    });
    refused(&server, 403, |request| {
        request.header("Origin", &format!("{own}, https://evil.example"))
    });
}

#[test]
fn origin_that_the_owner_allows_is_admitted() {
    let board = Board::new();
    let allowed =
        ["--allow-origin", "https://ide.example", "--allow-origin", "vscode-webview://panel"];
    let server = Server::with(&board, &allowed, &[]);
    for origin in [allowed[1], allowed[3]] {
        admitted(&server, |request| request.header("Origin", origin));
    }
    refused(&server, 403, |request| request.header("Origin", "http://ide.example"));
    refused(&server, 403, |request| request.header("Origin", "https://ide.example:444"));
}

#[test]
fn request_without_the_token_is_refused_and_told_the_scheme() {
    let board = Board::new();
    let server = Server::on(&board);
    refused(&server, 401, |request| request.without("Authorization"));
    for (way, request) in ways_in(&server) {
        let answer = head(&server, &request.without("Authorization"));
        let asked = answer.header("www-authenticate").unwrap_or_default();
        assert!(asked.starts_with("Bearer"), "{way}: {answer:?}");
    }
}

#[test]
fn wrong_token_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let token = server.token.clone();
    let last = if token.ends_with('0') { "1" } else { "0" };
    let wrong = [
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        format!("Bearer {}{last}", &token[..63]),
        format!("Bearer {}", &token[..63]),
        format!("Bearer {token}0"),
        format!("Bearer {token} {token}"),
        format!("Bearer {}", "0".repeat(100_000)),
        format!("Basic {token}"),
        format!("Digest {token}"),
        token.clone(),
        format!("Bearer{token}"),
        "Bearer \u{e9}".to_owned(),
    ];
    for authorization in &wrong {
        // A header that is too long is refused for its length.
        if authorization.len() < 10_000 {
            refused(&server, 401, |request| request.header("Authorization", authorization));
        } else {
            let statuses: Vec<_> = ways_in(&server)
                .into_iter()
                .map(|(_, request)| {
                    status(&server, &request.header("Authorization", authorization))
                })
                .collect();
            assert!(statuses.iter().all(|status| matches!(status, 401 | 431)), "{statuses:?}");
        }
    }
}

#[test]
fn token_anywhere_but_in_its_header_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let token = server.token.clone();
    for name in ["token", "access_token", "authorization"] {
        refused(&server, 401, |request| {
            let path = format!("{}?{name}={token}", request.path);
            request.without("Authorization").at(&path)
        });
    }
    refused(&server, 401, |request| {
        request.without("Authorization").header("Cookie", &format!("token={token}"))
    });
    refused(&server, 401, |request| request.without("Authorization").header("X-Token", &token));
    refused(&server, 401, |request| {
        request
            .without("Authorization")
            .header("Sec-WebSocket-Protocol", &format!("bearer, {token}"))
    });
}

#[test]
fn scheme_of_the_token_is_read_in_any_case() {
    let board = Board::new();
    let server = Server::on(&board);
    let token = server.token.clone();
    admitted(&server, |request| request.header("Authorization", &format!("bearer {token}")));
}

#[test]
fn host_and_origin_are_judged_before_the_token() {
    let board = Board::new();
    let server = Server::on(&board);
    refused(&server, 403, |request| {
        request.header("Host", "evil.example").without("Authorization")
    });
    refused(&server, 403, |request| {
        request.header("Origin", "null").header("Authorization", "Bearer 0")
    });
}

#[test]
fn post_that_is_not_json_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let kinds = [
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ];
    for door in Door::ALL {
        for kind in kinds {
            let create =
                door.call(&server, 1, "create_task", &json!({"description": "d", "id": "forged"}));
            let posted = status(&server, &create.clone().header("Content-Type", kind));
            assert_eq!(posted, 415, "{door:?} {kind}");
            assert_eq!(status(&server, &create.without("Content-Type")), 415, "{door:?}");
        }
        assert!(door.ask(&server, "get_task", &json!({"task_id": "forged"})).is_error);
        let request = door.call(&server, 1, "get_status", &json!({}));
        for kind in ["application/json; charset=utf-8", "Application/JSON"] {
            assert_eq!(
                status(&server, &request.clone().header("Content-Type", kind)),
                200,
                "{door:?} {kind}"
            );
        }
    }
}

#[test]
fn listening_beyond_this_machine_needs_its_own_word() {
    let board = Board::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (mut command, log) = serve(&board, &["--listen", address]);
        let output = command.output().unwrap();
        let said = std::fs::read_to_string(log).unwrap();
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{address}: {}",
            output.status
        );
        assert!(said.contains("--allow-remote"), "{said}");
    }
}

#[test]
fn listener_that_may_be_reached_from_elsewhere_still_asks_for_host_origin_and_token() {
    let board = Board::new();
    let server = Server::with(&board, &["--listen", "0.0.0.0:0", "--allow-remote"], &[]);
    admitted(&server, |request| request);
    refused(&server, 403, |request| request.header("Host", "evil.example"));
    refused(&server, 403, |request| request.header("Origin", "https://evil.example"));
    refused(&server, 401, |request| request.without("Authorization"));
}

#[test]
fn another_address_of_the_loopback_is_a_host_too() {
    let board = Board::new();
    let server = Server::with(&board, &["--listen", "127.0.0.2:0"], &[]);
    let address = SocketAddr::from(([127, 0, 0, 2], server.address.port()));
    let request = server.request("GET", "/healthz").header("Host", &address.to_string());
    assert_eq!(Connection::to(address).ask(&request).status, 200);
    let link = server.announced["link"].as_str().unwrap();
    assert!(link.starts_with(&format!("http://{address}/")), "{link}");
}

#[test]
fn health_is_told_without_the_token_and_nothing_else_is() {
    let board = Board::new();
    let server = Server::on(&board);
    for path in ["/healthz", "/readyz"] {
        let answer = server.ask(&server.request("GET", path).without("Authorization"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let text = answer.text();
        assert!(
            !text.contains(&server.token) && !text.contains(board.dir().to_str().unwrap()),
            "{text}"
        );
    }
    for path in ["/serve.token", "/mcp/", "/rpc/", "/RPC", "//rpc", "/%72pc", "/mcp/../rpc", "/"] {
        let create = server.rpc(1, "create_task", &json!({"description": "d", "id": "forged"}));
        let status = status(&server, &create.without("Authorization").at(path));
        assert!(matches!(status, 400..500), "{path}: {status}");
    }
    assert!(Door::Rpc.ask(&server, "get_task", &json!({"task_id": "forged"})).is_error);
}

#[test]
fn websocket_serves_whoever_was_admitted() {
    let board = Board::new();
    let server = Server::on(&board);
    let mut socket = WebSocket::open(&server);
    socket.send(1, "get_status", &json!({}));
    assert!(socket.answer(1)["result"].is_object());
    let rejected: [(u16, &str, &str); 3] = [
        (403, "Origin", "https://evil.example"),
        (403, "Host", "evil.example"),
        (401, "Authorization", "Bearer 0"),
    ];
    for (expected, name, value) in rejected {
        assert_eq!(status(&server, &server.upgrade().header(name, value)), expected, "{name}");
    }
}

#[test]
fn caller_of_a_request_is_who_its_header_says_and_nobody_without_it() {
    let board = Board::new();
    let server = Server::on(&board);
    let registered =
        Door::Rpc.ok(&server, "register_agent", &json!({"agent_id": "ada", "role": "worker"}));
    assert_eq!(registered["agent_id"], "ada");
    let beat = server.rpc(1, "heartbeat", &json!({}));
    let nobody = server.ask(&beat).message();
    assert_eq!(nobody["error"]["data"]["code"], "agent_missing", "{nobody}");
    let ada = server.ask(&beat.clone().header("callboard-caller", r#"{"agent":"ada"}"#)).message();
    assert_eq!(ada["result"]["agent_id"], "ada", "{ada}");
    for wrong in ["{", "[]", r#""ada""#, r#"{"agent":1}"#, r#"{"agent":"a b\u001b[1m"}"#] {
        let answer = server.ask(&beat.clone().header("callboard-caller", wrong));
        let message: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert!(
            answer.status == 400 || message["error"].is_object(),
            "{wrong}: {} {}",
            answer.status,
            answer.text()
        );
    }
}

#[test]
fn names_that_could_never_match_are_refused_and_origins_taken_as_browsers_send_them() {
    let board = Board::new();
    for (option, wrong) in [
        ("--allow-host", "board.example:8425"),
        ("--allow-host", "http://board.example"),
        ("--allow-host", "a@b"),
        ("--allow-host", ""),
        ("--allow-origin", "ide.example"),
        ("--allow-origin", "https://ide.example/app"),
        ("--allow-origin", "https://me@ide.example"),
        ("--allow-origin", "https://ide.example:99999"),
    ] {
        let refused =
            board.finish(board.command().args(["serve", "--listen", "127.0.0.1:0", option, wrong]));
        assert_eq!(refused.status.code(), Some(2), "{option} {wrong} {}", refused.stderr);
        assert!(refused.stderr.contains("as in"), "{}", refused.stderr);
    }
    let server = Server::with(&board, &["--allow-origin", "https://ide.example:443/"], &[]);
    let call = Door::Rpc
        .call(&server, 1, "get_status", &json!({}))
        .header("Origin", "https://ide.example");
    assert_eq!(server.ask(&call).status, 200);
}
