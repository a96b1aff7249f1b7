//! Web pages of other sites: what a browser asks before they may call, and how they open a
//! WebSocket.

use serde_json::{Value, json};

use super::{head, ways_in};
use crate::harness::Board;
use crate::harness::http::{Answer, Request, Server, WebSocket};

const PAGE: &str = "https://ide.example";

fn server(board: &Board) -> Server {
    Server::with(board, &["--allow-origin", PAGE, "--allow-origin", "vscode-webview://panel"], &[])
}

/// What a browser asks before it sends the request.
fn preflight(request: Request, origin: &str, headers: &str) -> Request {
    let mut asked = request.without("Authorization").header("Origin", origin).with_body("");
    "OPTIONS".clone_into(&mut asked.method);
    asked
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", headers)
}

fn granted(answer: &Answer) -> Vec<String> {
    answer.header_names().filter(|name| name.starts_with("access-control-")).collect()
}

fn names(answer: &Answer, header: &str) -> Vec<String> {
    let names = answer.header(header).unwrap_or_else(|| panic!("no {header}: {answer:?}"));
    names.split(',').map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[test]
fn preflight_of_a_listed_page_is_granted_what_clients_send() {
    let board = Board::new();
    let server = server(&board);
    let asked =
        "authorization,content-type,mcp-protocol-version,mcp-param-region,last-event-id,x-other";
    for (way, request) in ways_in(&server) {
        for origin in [PAGE, "HTTPS://IDE.example", "vscode-webview://panel"] {
            let answer = head(&server, &preflight(request.clone(), origin, asked));
            assert_eq!(
                (answer.status, answer.header("access-control-allow-origin")),
                (204, Some(origin)),
                "{way}"
            );
            let headers = names(&answer, "access-control-allow-headers");
            for name in asked.split(',').filter(|name| *name != "x-other").chain([
                "mcp-session-id",
                "mcp-method",
                "mcp-name",
            ]) {
                assert!(headers.iter().any(|one| one == name), "{way}: {name} in {headers:?}");
            }
            assert!(!headers.iter().any(|one| one == "x-other" || one == "*"), "{headers:?}");
            let methods = names(&answer, "access-control-allow-methods");
            assert_eq!(methods, ["get", "post", "delete"], "{way}");
            assert_eq!(answer.header("vary"), Some("origin"), "{way}");
        }
    }
}

#[test]
fn preflight_says_nothing_to_others() {
    let board = Board::new();
    let (open, closed) = (server(&board), Server::on(&board));
    let own = open.announced["url"].as_str().unwrap().to_owned();
    for (way, request) in ways_in(&open) {
        let foreign =
            ["https://evil.example", "null", "http://ide.example", "https://ide.example:444"];
        for origin in foreign {
            let answer = head(&open, &preflight(request.clone(), origin, "authorization"));
            assert_eq!((answer.status, granted(&answer).len()), (403, 0), "{way} {origin}");
        }
        let twice = preflight(request.clone(), PAGE, "authorization").and_header("Origin", PAGE);
        let elsewhere =
            preflight(request.clone(), PAGE, "authorization").header("Host", "evil.example");
        assert_eq!(head(&open, &elsewhere).status, 403, "{way}");
        let same = preflight(request.clone(), &own, "authorization");
        for (server, request) in
            [(&open, &twice), (&open, &same), (&closed, &preflight(request, PAGE, "authorization"))]
        {
            let answer = head(server, request);
            assert!(matches!(answer.status, 401 | 403), "{way}: {}", answer.status);
            assert_eq!(granted(&answer), [""; 0], "{way}");
        }
    }
}

#[test]
fn listed_page_may_read_every_answer_and_no_other_page_any() {
    let board = Board::new();
    let server = server(&board);
    for (way, request) in ways_in(&server) {
        let failing = [
            request.clone(),
            request.clone().without("Authorization"),
            request.clone().header("Host", "evil.example"),
            request.clone().at("/nothing"),
            request.clone().header("Content-Type", "text/plain"),
            request.clone().with_body("nonsense"),
        ];
        for one in failing {
            let answer = head(&server, &one.clone().header("Origin", PAGE));
            let status = answer.status;
            assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{way}: {status}");
            assert_eq!(
                answer.header("access-control-expose-headers"),
                Some("mcp-session-id"),
                "{way}: {status}"
            );
            assert_eq!(answer.header("access-control-allow-credentials"), None, "{way}: {status}");
            for other in [one.clone(), one.header("Origin", "https://evil.example")] {
                let answer = head(&server, &other);
                assert_eq!(
                    (granted(&answer).len(), answer.header("vary")),
                    (0, Some("origin")),
                    "{way}: {status}"
                );
            }
        }
    }
}

/// As `new WebSocket(url, protocols)` in a page opens one.
fn from_page(server: &Server, protocols: &str) -> Request {
    let request = server.upgrade().without("Authorization").header("Origin", PAGE);
    request.header("Sec-WebSocket-Protocol", protocols)
}

#[test]
fn page_opens_a_web_socket_with_the_token_as_a_subprotocol() {
    let board = Board::new();
    let server = Server::with(&board, &["--allow-origin", PAGE], &[("CALLBOARD_LOG", "trace")]);
    let token = &server.token;
    for protocols in [
        format!("callboard, callboard.bearer.{token}"),
        format!("callboard.bearer.{token},callboard"),
        format!("other, callboard.bearer.{token}, callboard"),
    ] {
        let answer = head(&server, &from_page(&server, &protocols));
        assert_eq!(
            (answer.status, answer.header("sec-websocket-protocol")),
            (101, Some("callboard")),
            "{protocols}"
        );
        let mut socket = WebSocket::with(&server, &from_page(&server, &protocols));
        socket.send(1, "get_status", &json!({}));
        assert!(socket.answer(1)["result"].is_object());
    }
    let two = from_page(&server, "callboard")
        .and_header("Sec-WebSocket-Protocol", &format!("callboard.bearer.{token}"));
    assert_eq!(head(&server, &two).status, 101);
    // With the header nothing is chosen that was not offered.
    let plain = server.upgrade();
    assert_eq!(head(&server, &plain).header("sec-websocket-protocol"), None);
    let named = head(&server, &plain.clone().header("Sec-WebSocket-Protocol", "callboard"));
    assert_eq!((named.status, named.header("sec-websocket-protocol")), (101, Some("callboard")));
    let other = head(&server, &plain.header("Sec-WebSocket-Protocol", "graphql-ws"));
    assert_eq!(other.header("sec-websocket-protocol"), None);
    let log = server.log();
    assert!(log.len() > 1_000 && !log.contains(token), "the token is in the log");
}

#[test]
fn subprotocol_opens_no_more_than_the_header_does() {
    let board = Board::new();
    let server = server(&board);
    let (token, wrong) = (&server.token, "cbt_wrong");
    for (protocols, status) in [
        ("callboard".to_owned(), 401),
        (format!("callboard, callboard.bearer.{wrong}"), 401),
        (format!("callboard, callboard.bearer.{}", &token[..token.len() - 1]), 401),
        (format!("callboard, callboard.bearer.{token}, callboard.bearer.{token}"), 401),
        (format!("callboard, {token}"), 401),
        (format!("callboard.bearer.{token}"), 400),
    ] {
        let answer = server.ask(&from_page(&server, &protocols));
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(
            (answer.header("sec-websocket-protocol"), answer.text().contains(token)),
            (None, false)
        );
        let error: Value = serde_json::from_slice(&answer.body).expect("a reason");
        assert!(
            status != 400
                || error["error"]["message"]
                    .as_str()
                    .is_some_and(|why| why.contains("`callboard`"))
        );
    }
    let good = format!("callboard, callboard.bearer.{token}");
    let twice = from_page(&server, &good).header("Authorization", &format!("Bearer {token}"));
    assert_eq!(head(&server, &twice).status, 401);
    assert_eq!(
        head(&server, &from_page(&server, &good).header("Origin", "https://evil.example")).status,
        403
    );
    // Only a WebSocket is opened by it.
    let call = server
        .rpc(1, "get_status", &json!({}))
        .without("Authorization")
        .header("Sec-WebSocket-Protocol", &good);
    assert_eq!(head(&server, &call).status, 401);
    let session =
        server.initialize(1).without("Authorization").header("Sec-WebSocket-Protocol", &good);
    assert_eq!(
        head(&server, &session.header("Connection", "Upgrade").header("Upgrade", "websocket"))
            .status,
        401
    );
}
