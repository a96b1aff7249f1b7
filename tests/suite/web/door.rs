//! Who gets in, with what, and what a browser is told to keep from doing.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Browser, PAGES, code_of};
#[cfg(target_os = "linux")]
use crate::clocks;
use crate::harness::http::{Door, Server};
use crate::harness::{Board, PATIENCE};

/// Addresses of every kind: pages, what programs call, and what there is not.
const ADDRESSES: [&str; 8] =
    ["/", "/tasks/task-1", "/nothing", "/mcp", "/rpc", "/runs", "/metrics", "/login"];

fn fresh_code(server: &Server, token: &str) -> String {
    let request =
        server.post("/login/link", "{}").header("Authorization", &format!("Bearer {token}"));
    let answer = server.ask(&request);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let reply: Value = serde_json::from_slice(&answer.body).unwrap();
    code_of(&reply["link"])
}

fn token(board: &Board, role: &str) -> String {
    let made = board.finish(board.command().args(["--json", "token", "add", role, "--role", role]));
    made.value()["token"].as_str().unwrap().to_owned()
}

/// A browser that was logged in with an observer's token.
pub(super) fn as_observer<'s>(board: &Board, server: &'s Server) -> Browser<'s> {
    let mut browser = Browser::at(server);
    assert_eq!(browser.log_in(&fresh_code(server, &token(board, "observer"))).status, 303);
    browser
}

#[test]
fn printed_link_logs_in_once_with_a_cookie_for_this_host_alone() {
    let board = Board::new();
    let server = Server::on(&board);
    let code = code_of(&server.announced["link"]);
    let mut browser = Browser::at(&server);
    assert!(browser.host.starts_with("board-") && browser.host.contains(".localhost:"));
    let answer = browser.log_in(&code);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.text());
    let cookie = answer.header("set-cookie").unwrap();
    let label = browser.host.split('.').next().unwrap();
    assert!(cookie.starts_with(&format!("callboard-{label}=")), "{cookie}");
    for wanted in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age="] {
        assert!(cookie.contains(wanted), "{wanted}: {cookie}");
    }
    assert!(!cookie.contains("Domain") && !cookie.contains(&server.token), "{cookie}");
    assert_eq!(browser.get("/").status, 200);
    // The link is used up; the cookie is not.
    let again = Browser::at(&server).log_in(&code);
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    assert!(again.text().contains("callboard web --link"), "{}", again.text());
    assert_eq!(browser.get("/").status, 200);
}

#[cfg(target_os = "linux")]
#[test]
fn printed_link_ends_with_its_minutes() {
    let board = Board::new();
    let clock = board.base().join("ahead");
    let ahead = |seconds: &str| fs::write(&clock, seconds).unwrap();
    ahead("0");
    let environment = clocks::ahead(clock.display());
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::with(&board, &[], &environment);
    let printed = code_of(&server.announced["link"]);
    let late = fresh_code(&server, &server.token);
    ahead("600");
    assert_eq!(Browser::at(&server).log_in(&printed).status, 303, "10 minutes are less than 15");
    ahead("900");
    let mut browser = Browser::at(&server);
    let answer = browser.log_in(&late);
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    assert!(answer.text().contains("has expired or was used"), "{}", answer.text());
    assert_eq!(browser.get("/").status, 401);
    assert_eq!(browser.log_in(&fresh_code(&server, &server.token)).status, 303);
    assert_eq!(browser.get("/").status, 200);
}

#[test]
fn visitor_is_you_and_other_people_have_their_names() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t1", "description": "d"}));
    let server = Server::with(&board, &[], &[("CALLBOARD_ME", "ada")]);
    let ada = Browser::logged_in(&server);
    let mut other = Browser::at(&server);
    assert_eq!(other.log_in(&fresh_code(&server, &token(&board, "leader"))).status, 303);
    for (browser, action) in [(&ada, "cancel"), (&other, "retry")] {
        let seq = board.document()["seq"].to_string();
        let fields = [("task", "t1"), ("seq", seq.as_str()), ("back", "/")];
        let answer = server.ask(&browser.form(&format!("/do/{action}"), &fields));
        assert_eq!(answer.status, 303, "{}", answer.text());
    }
    for (browser, cancelled_by, retried_by) in [(&ada, "you", "leader"), (&other, "ada", "you")] {
        for path in ["/", "/events", "/tasks/t1"] {
            let page = browser.get(path).text();
            for (word, by) in [("cancelled", cancelled_by), ("made available", retried_by)] {
                let rows = page.split("<li").filter(|row| row.contains(&format!(">{word}</span>")));
                let rows: Vec<_> = rows.collect();
                let [row] = rows[..] else { panic!("{path}: {word}: {rows:?}") };
                assert!(
                    row.contains(&format!(r#"<span class="who">{by}</span>"#)),
                    "{path}: {row}"
                );
            }
        }
    }
}

#[test]
fn browser_without_a_cookie_gets_the_same_page_everywhere() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::at(&server);
    for path in ADDRESSES {
        for cookie in [None, Some("callboard-x=1"), Some("broken")] {
            let request = browser.request("GET", path);
            let request = cookie.into_iter().fold(request, |one, text| one.header("Cookie", text));
            let answer = server.ask(&request);
            assert_eq!(answer.status, if path == "/login" { 200 } else { 401 }, "{path}");
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
            let text = answer.text();
            for wanted in [r#"name="code""#, r#"action="/login""#, "callboard web --link"] {
                assert!(text.contains(wanted), "{path}: no {wanted} in {text}");
            }
        }
    }
    assert_eq!(browser.get("/favicon.ico").header("content-type"), Some("image/svg+xml"));
    assert_eq!(browser.get("/healthz").text(), "ok\n");
}

#[test]
fn programs_get_what_they_always_got() {
    let board = Board::new();
    let server = Server::on(&board);
    for path in ["/", "/nothing", "/tasks/task-1"] {
        for accept in ["*/*", "application/json"] {
            let with = server.request("GET", path).header("Accept", accept);
            assert_eq!(server.ask(&with).status, 404, "{path}");
            let without = server.ask(&with.without("Authorization"));
            assert_eq!(without.status, 401, "{path}");
            let error: Value = serde_json::from_slice(&without.body).expect("JSON");
            assert_eq!(error["error"]["code"], -32600);
        }
        // A program with a token may be as lax as a browser about what it accepts.
        let lax = server.request("GET", path).header("Accept", PAGES);
        assert_eq!(server.ask(&lax).status, 404, "{path}");
    }
}

#[test]
fn cookie_opens_nothing_that_programs_call() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let cookie = browser.cookie.clone().unwrap();
    for door in Door::ALL {
        let create = json!({"description": "d", "id": "task-1"});
        let call = door.call(&server, 1, "create_task", &create).without("Authorization");
        for accept in ["*/*", PAGES, "application/json, text/event-stream"] {
            let call = call.clone().header("Cookie", &cookie).header("Accept", accept);
            assert_eq!(server.ask(&call).status, 401, "{door:?}");
            let own = call.header("Host", &browser.host);
            let own = own.header("Origin", &format!("http://{}", browser.host));
            assert_eq!(server.ask(&own).status, 401, "{door:?}");
        }
        let value = cookie.split_once('=').unwrap().1;
        let bearer = door.call(&server, 1, "create_task", &create);
        let bearer = bearer.header("Authorization", &format!("Bearer {value}"));
        assert_eq!(server.ask(&bearer).status, 401, "{door:?}");
        // In a browser the address is a page that says so.
        assert_eq!(browser.get(door.path()).status, 404, "{door:?}");
    }
    let socket = server.upgrade().without("Authorization").header("Cookie", &cookie);
    assert_eq!(server.ask(&socket).status, 401);
    let link = server.post("/login/link", "{}").without("Authorization").header("Cookie", &cookie);
    assert_eq!(server.ask(&link).status, 401);
    assert!(!board.file("journal.db").exists(), "nothing was called");
}

#[test]
fn form_of_another_page_does_nothing() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::at(&server);
    let own = format!("http://{}", browser.host);
    let port = server.address.port();
    let code = code_of(&server.announced["link"]);
    let form = browser.form("/login", &[("code", &code)]);
    let foreign = [
        form.clone().without("Origin"),
        form.clone().header("Origin", "null"),
        form.clone().header("Origin", "https://evil.example"),
        form.clone().header("Origin", &format!("http://127.0.0.1:{port}")),
        form.clone().header("Origin", &format!("http://localhost:{port}")),
        form.clone().header("Origin", &format!("http://{}:9", browser.host)),
        form.clone().and_header("Origin", &own),
        form.clone().without("Sec-Fetch-Site"),
        form.clone().header("Sec-Fetch-Site", "same-site"),
        form.clone().header("Sec-Fetch-Site", "cross-site"),
        form.clone().header("Sec-Fetch-Site", "none"),
        form.clone().header("Host", "evil.example").header("Origin", "http://evil.example"),
    ];
    for request in foreign {
        let answer = server.ask(&request);
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{request:?}");
    }
    // Nothing of that has used the code up.
    assert_eq!(server.ask(&form).status, 303);
}

#[test]
fn cookie_outlives_the_server_and_ends_with_its_token() {
    let board = Board::new();
    let mut server = Server::on(&board);
    let cookie = Browser::logged_in(&server).cookie.unwrap();
    server.signal(Signal::TERM);
    server.ends_within(PATIENCE);
    let mut server = Server::on(&board);
    let browser = Browser { cookie: Some(cookie.clone()), ..Browser::at(&server) };
    assert_eq!(browser.get("/").status, 200);
    server.signal(Signal::TERM);
    server.ends_within(PATIENCE);
    let server = Server::with(&board, &["--new-token"], &[]);
    let browser = Browser { cookie: Some(cookie), ..Browser::at(&server) };
    assert_eq!(browser.get("/").status, 401);
}

#[test]
fn changed_cookie_is_none() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let cookie = browser.cookie.clone().unwrap();
    let (name, value) = cookie.split_once('=').unwrap();
    let fields: Vec<_> = value.split('.').collect();
    let [until, token, nonce, signed] = fields[..] else { panic!("{value}") };
    let other = "0".repeat(64);
    let later = (until.parse::<i64>().unwrap() + 1).to_string();
    for changed in [
        [later.as_str(), token, nonce, signed].join("."),
        [until, &other, nonce, signed].join("."),
        [until, token, &nonce[1..], signed].join("."),
        [until, token, nonce, &signed[1..]].join("."),
        [until, token, nonce, ""].join("."),
        [until, token, nonce].join("."),
        String::new(),
    ] {
        let request = browser.request("GET", "/").header("Cookie", &format!("{name}={changed}"));
        assert_eq!(server.ask(&request).status, 401, "{changed}");
    }
    // One that another page has set beside it does not hide it.
    let both = format!("{name}=nonsense; other=1; {cookie}");
    assert_eq!(server.ask(&browser.request("GET", "/").header("Cookie", &both)).status, 200);
}

#[test]
fn token_that_was_handed_out_gives_its_own_bearer_a_link() {
    let board = Board::new();
    let server = Server::on(&board);
    let observer = token(&board, "observer");
    let mut browser = Browser::at(&server);
    let answer = browser.log_in(&fresh_code(&server, &observer));
    assert_eq!(answer.status, 303);
    assert_eq!(browser.get("/").status, 200);
    let revoked = board.finish(board.command().args(["token", "revoke", "observer"]));
    assert!(revoked.status.success(), "{}", revoked.stderr);
    assert_eq!(browser.get("/").status, 401, "its token is over");
    assert_eq!(server.ask(&server.request("GET", "/login/link")).status, 404);
}

#[test]
fn every_page_tells_the_browser_to_keep_to_it() {
    let board = Board::new();
    let server = Server::on(&board);
    let (stranger, known) = (Browser::at(&server), Browser::logged_in(&server));
    let mut nonces = std::collections::BTreeSet::new();
    for (browser, path) in [
        (&stranger, "/"),
        (&stranger, "/login"),
        (&known, "/"),
        (&known, "/nothing"),
        (&known, "/assets/board.css"),
        (&known, "/assets/nothing"),
    ] {
        let answer = browser.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        for wanted in [
            "default-src 'none'",
            "script-src 'self' 'nonce-",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types htmx",
        ] {
            assert!(policy.contains(wanted), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("referrer-policy").is_some_and(|one| one.contains("no-referrer")));
        let nonce = policy.split_once("'nonce-").unwrap().1.split_once('\'').unwrap().0;
        assert!(nonces.insert(nonce.to_owned()), "{path}: {nonce} was used before");
        let text = answer.text();
        if text.starts_with("<!DOCTYPE html>") {
            let scripts = text.matches("<script").count();
            let marked = text.matches(&format!("nonce=\"{nonce}\"")).count();
            assert!(scripts > 0 && marked >= scripts, "{path}: {text}");
            assert!(!text.contains("style=") && !text.contains("<style"), "{path}: {text}");
        }
    }
}

#[test]
fn code_is_in_no_log() {
    let board = Board::new();
    let server = Server::with(&board, &[], &[("CALLBOARD_LOG", "trace")]);
    let code = code_of(&server.announced["link"]);
    let browser = Browser::logged_in(&server);
    let cookie = browser.cookie.clone().unwrap();
    browser.get("/");
    let log = server.log();
    let value = cookie.split_once('=').unwrap().1;
    assert!(log.len() > 100 && !log.contains(&code) && !log.contains(value), "it is in the log");
}
