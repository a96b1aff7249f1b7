//! What a person does in a page: every action once, with and without script, and what is refused.

use serde_json::{Value, json};

use super::{Browser, code_of};
use crate::harness::Board;
use crate::harness::http::{Answer, Server};

fn add(board: &Board, id: &str) {
    board.cli_ok(
        "create_task",
        json!({"id": id, "title": id, "description": "d", "max_attempts": 1}),
    );
}

fn register(board: &Board, agent: &str) {
    board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
}

/// The number of the newest event.
fn seq(board: &Board) -> String {
    board.document()["seq"].to_string()
}

/// What an action answers to the page's script.
#[track_caller]
fn act(browser: &Browser, action: &str, fields: &[(&str, &str)]) -> Answer {
    let form = browser.form(&format!("/do/{action}"), fields).header("HX-Request", "true");
    browser.server.ask(&form.header("Accept", "text/html"))
}

#[track_caller]
fn done(browser: &Browser, action: &str, fields: &[(&str, &str)]) {
    let answer = act(browser, action, fields);
    let text = answer.text();
    assert_eq!(answer.status, 200, "{action}: {text}");
    assert!(text.starts_with(r#"<div id="notice""#) && text.contains("data-done"), "{text}");
    assert!(!text.contains('\u{1}'), "{text:?}");
}

/// A task, held by an agent of its own, whose result waits for a reviewer if it is told so.
#[track_caller]
fn reviewed(board: &Board, id: &str) {
    board.cli_ok(
        "create_task",
        json!({"id": id, "title": id, "description": "d", "review": "required"}),
    );
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": id}));
    board.cli_ok("complete_task", json!({"agent_id": "ada", "task_id": id, "output": "done"}));
}

#[test]
fn every_action_is_an_operation() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    done(&browser, "add", &[("title", "First"), ("description", "a & b\r\nc"), ("priority", "3")]);
    let first = board.document()["tasks"][0].clone();
    assert_eq!((&first["title"], &first["priority"]), (&json!("First"), &json!(3)));
    assert_eq!(first["description"], "a & b\nc");
    let first = first["id"].as_str().unwrap();
    done(&browser, "add", &[("title", "Second"), ("after", &format!("{first}, "))]);
    let second = board.document()["tasks"][1].clone();
    assert_eq!(second["dependencies"], json!([first]));
    assert_eq!(second["description"], "Second");
    let second = second["id"].as_str().unwrap();
    done(
        &browser,
        "edit",
        &[("task", second), ("title", "Next"), ("priority", "2"), ("after", "")],
    );
    let edited = board.task(second);
    assert_eq!((&edited["title"], &edited["dependencies"]), (&json!("Next"), &json!([])));
    assert_eq!((&edited["priority"], &edited["description"]), (&json!(2), &json!("Second")));
    register(&board, "ada");
    done(&browser, "assign", &[("task", first), ("to", "ada")]);
    assert_eq!(board.task(first)["kept_for"]["agent"], "ada");
    done(&browser, "assign", &[("task", first), ("to", "")]);
    assert!(board.task(first)["kept_for"].is_null());
    done(&browser, "cancel", &[("task", second), ("reason", "not needed")]);
    assert_eq!(board.task(second)["status"], "cancelled");
    let cancelled = seq(&board);
    let own = format!("id=\"event-undo-{cancelled}\"");
    for page in ["/", "/events"] {
        let page = browser.get(page).text();
        assert!(page.contains(&own), "undo stands beside what the visitor did: {page}");
    }
    done(&browser, "undo", &[("event", &cancelled)]);
    assert_eq!(board.task(second)["status"], "available");
    done(&browser, "cancel", &[("task", second)]);
    done(&browser, "retry", &[("task", second)]);
    assert_eq!(board.task(second)["status"], "available");
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": first}));
    done(&browser, "release", &[("task", first), ("attempt", "1"), ("reason", "it sleeps")]);
    assert_eq!(board.task(first)["status"], "available");
    reviewed(&board, "t-yes");
    done(&browser, "approve", &[("task", "t-yes"), ("attempt", "1")]);
    assert_eq!(board.task("t-yes")["status"], "done");
    reviewed(&board, "t-no");
    done(&browser, "reject", &[("task", "t-no"), ("reason", "no tests")]);
    assert_eq!(board.task("t-no")["status"], "available");
}

#[test]
fn the_page_of_a_task_is_at_every_name_of_it() {
    let board = Board::new();
    let task =
        json!({"id": "t-tree", "title": "Tree of all", "description": "d", "path": "P1.M1.T1"});
    board.cli_ok("create_task", task);
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    for name in ["t-tree", "1", "%231", "P1.M1.T1", "Tree%20of%20all"] {
        for page in ["", "/diff"] {
            let answer = browser.get(&format!("/tasks/{name}{page}"));
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            assert!(answer.text().contains("Tree of all"), "{name}: {}", answer.text());
        }
    }
    let gone = browser.get("/tasks/12");
    assert_eq!(gone.status, 404);
    assert!(gone.text().contains("there is no task 12; see /tasks"), "{}", gone.text());
}

#[test]
fn tasks_are_linked_by_what_people_call_them() {
    let board = Board::new();
    for (id, title, path) in [
        ("t-lexer", "Lexer, names", None),
        ("t-parser", "Parser", Some("P1.M1.T1")),
        ("t-tree", "Tree", None),
    ] {
        let task = json!({"id": id, "title": title, "description": "d", "path": path});
        board.cli_ok("create_task", task);
    }
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let needs = |id: &str| board.task(id)["dependencies"].clone();
    let link =
        |task: &str, needs: &str| done(&browser, "link", &[("task", task), ("needs", needs)]);
    link("t-tree", " Lexer, Names ");
    link("t-tree", "P1.M1.T1");
    link("t-tree", "#1");
    assert_eq!(needs("t-tree"), json!(["t-lexer", "t-parser"]));
    link("t-parser", "1");
    // The task's page has a button for each.
    let page = browser.get("/tasks/t-tree").text();
    assert_eq!(page.matches(r#"action="/do/unlink""#).count(), 2, "{page}");
    let cycle = act(&browser, "link", &[("task", "t-lexer"), ("needs", "tree")]);
    let text = cycle.text();
    assert_eq!(cycle.status, 422, "{text}");
    let told = "#1 Lexer, names -&gt; #3 Tree -&gt; #1 Lexer, names";
    assert!(text.contains("in a cycle") && text.contains(told), "{text}");
    assert_eq!(needs("t-lexer"), json!([]));
    done(&browser, "unlink", &[("task", "t-tree"), ("needs", "t-lexer")]);
    done(&browser, "unlink", &[("task", "t-tree"), ("needs", "t-none")]);
    assert_eq!(needs("t-tree"), json!(["t-parser"]));
    done(&browser, "unlink", &[("task", "t-tree"), ("needs", "t-parser")]);
    assert_eq!(needs("t-tree"), json!([]));
    for unknown in ["#9", "P7.M1", "no such title", ""] {
        let answer = act(&browser, "link", &[("task", "t-tree"), ("needs", unknown)]);
        assert_eq!(answer.status, 422, "{unknown}: {}", answer.text());
    }
    let answer = act(&browser, "edit", &[("task", "t-tree"), ("after", "#2\n\n Lexer names")]);
    assert!(answer.status == 422 && answer.text().contains("Lexer names"), "{}", answer.text());
    done(&browser, "edit", &[("task", "t-tree"), ("after", "#2\r\nP1.M1.T1, t-lexer\r\n")]);
    assert_eq!(needs("t-tree"), json!(["t-parser", "t-lexer"]));
}

#[test]
fn tags_are_set_and_stay_as_they_were() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    done(&browser, "add", &[("title", "First"), ("tags", "lexer, old parser ,")]);
    let id = board.document()["tasks"][0]["id"].as_str().unwrap().to_owned();
    let tags = || board.task(&id)["tags"].clone();
    assert_eq!(tags(), json!(["lexer", "old parser"]));
    board.cli_ok("update_task", json!({"task_id": id, "tags": ["a, b", "c"]}));
    let page = browser.get(&format!("/tasks/{id}")).text();
    assert!(page.contains(r#"name="tags_before" value="a, b, c""#), "{page}");
    let edit = |after: &str| {
        let fields = [("task", &*id), ("priority", "2"), ("tags_before", "a, b, c")];
        done(&browser, "edit", &[fields.as_slice(), &[("tags", after)]].concat());
    };
    edit("a, b, c");
    assert_eq!(tags(), json!(["a, b", "c"]), "the field was left as it was");
    edit("c, d");
    assert_eq!(tags(), json!(["c", "d"]));
    edit("");
    assert_eq!(tags(), Value::Null);
    assert_eq!(board.task(&id)["priority"], 2);
}

#[test]
fn agents_are_steered_and_spoken_to() {
    let board = Board::new();
    add(&board, "t1");
    register(&board, "ada");
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": "t1"}));
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    done(&browser, "pause", &[("reason", "lunch")]);
    let paused = || board.cli_ok("get_board", json!({}))["head"]["paused"].clone();
    assert_eq!(paused()["reason"], "lunch");
    done(&browser, "resume", &[]);
    assert!(paused().is_null());
    let agent = || {
        let agents = board.cli_ok("get_agents", json!({}));
        agents["agents"].as_array().unwrap()[0].clone()
    };
    done(&browser, "pause", &[("agent", "ada")]);
    assert!(agent()["paused"].is_object(), "{}", agent());
    done(&browser, "resume", &[("agent", "ada")]);
    assert!(agent()["paused"].is_null());
    done(&browser, "message", &[("to", "ada"), ("text", "How far are you?")]);
    let got = board.cli_ok("get_messages", json!({"agent_id": "ada"}));
    assert_eq!(got["messages"][0]["text"], "How far are you?");
    assert_eq!(got["messages"][0]["from"], "human");
    board.cli_ok(
        "ask_human",
        json!({"agent_id": "ada", "question": "Which?", "options": ["a", "b"]}),
    );
    let asked = board.cli_ok("get_board", json!({}));
    let waits = asked["waits"]["rows"].as_array().unwrap();
    let question = waits.iter().find_map(|wait| wait["message"].as_str()).unwrap().to_owned();
    done(&browser, "answer", &[("message", &question), ("text", "b")]);
    let answer = board.cli_ok(
        "ask_human",
        json!({"agent_id": "ada", "question": "Which?", "options": ["a", "b"]}),
    );
    assert_eq!(answer["answer"], "b");
    let again = act(&browser, "answer", &[("message", &question), ("text", "a")]);
    assert_eq!(again.status, 422);
    assert!(again.text().contains("answered already"), "{}", again.text());
    board.cli_ok("send_message", json!({"agent_id": "ada", "to": "human", "text": "Half is done"}));
    let message = || board.cli_ok("get_messages", json!({"agent_id": "human"}))["messages"].clone();
    let id = message()[0]["id"].as_str().unwrap().to_owned();
    done(&browser, "read", &[("message", &id)]);
    assert_eq!(message(), json!([]));
    done(&browser, "stop", &[("agent", "ada"), ("reason", "wrong branch")]);
    assert_eq!(board.task("t1")["status"], "claimed");
    done(&browser, "stop", &[("agent", "ada"), ("now", "yes")]);
    assert_eq!(board.task("t1")["status"], "available");
}

#[test]
fn drag_changes_the_order_of_claims() {
    let board = Board::new();
    for id in ["t1", "t2", "t3", "t4"] {
        add(&board, id);
    }
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let order = || -> Vec<String> {
        let board = board.cli_ok("get_board", json!({}));
        let rows = board["next"]["rows"].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(order(), ["t1", "t2", "t3", "t4"]);
    done(&browser, "reorder", &[("task", "t4"), ("before", "t1")]);
    assert_eq!(order(), ["t4", "t1", "t2", "t3"]);
    done(&browser, "reorder", &[("task", "t1"), ("before", "")]);
    assert_eq!(order(), ["t4", "t2", "t3", "t1"]);
    done(&browser, "reorder", &[("task", "t2"), ("before", "t1")]);
    assert_eq!(order().first().map(String::as_str), Some("t4"));
    for fields in [[("task", "t1"), ("before", "t-none")], [("task", "t-none"), ("before", "t1")]] {
        assert_eq!(act(&browser, "reorder", &fields).status, 422);
    }
}

#[test]
fn action_that_was_decided_on_an_older_state_is_refused_with_what_changed() {
    let board = Board::new();
    add(&board, "t1");
    register(&board, "ada");
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let old = seq(&board);
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": "t1"}));
    let stale = act(&browser, "cancel", &[("task", "t1"), ("seq", &old)]);
    assert_eq!(stale.status, 409);
    let text = stale.text();
    assert!(text.contains("nothing was done") && text.contains("(ada claimed "), "{text}");
    assert_eq!(board.task("t1")["status"], "claimed");
    // The answer says which state the page knows now, and what does not concern the task does not
    // matter.
    let new = text.split_once("data-seq=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    add(&board, "t2");
    board.cli_ok("heartbeat", json!({"agent_id": "ada", "note": "half"}));
    done(&browser, "cancel", &[("task", "t1"), ("seq", &new)]);
    for seq in ["", "x"] {
        let form = act(&browser, "retry", &[("task", "t1"), ("seq", seq)]);
        assert_eq!(form.status, if seq.is_empty() { 200 } else { 400 }, "{}", form.text());
    }
}

#[test]
fn what_is_sent_twice_is_done_once() {
    let board = Board::new();
    add(&board, "t1");
    register(&board, "ada");
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let old = seq(&board);
    for _ in 0..3 {
        done(&browser, "add", &[("title", "Twice"), ("seq", &old)]);
        done(&browser, "message", &[("to", "ada"), ("text", "Hello"), ("seq", &old)]);
    }
    assert_eq!(board.tasks().len(), 2);
    let got = board.cli_ok("get_messages", json!({"agent_id": "ada"}));
    assert_eq!(got["messages"].as_array().unwrap().len(), 1);
    done(&browser, "add", &[("title", "Twice"), ("seq", &seq(&board))]);
    assert_eq!(board.tasks().len(), 3, "a later form is another one");
}

#[test]
fn without_script_the_browser_is_sent_back_and_told_there() {
    let board = Board::new();
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let send = |fields: &[(&str, &str)]| server.ask(&browser.form("/do/add", fields));
    assert!(!browser.get("/add").text().contains(" required"), "a title alone is enough");
    let answer = send(&[("title", "Added <b>"), ("back", "/?scope=all")]);
    assert_eq!(answer.status, 303, "{}", answer.text());
    let location = answer.header("location").unwrap().to_owned();
    assert!(location.starts_with("/?scope=all&said="), "{location}");
    let page = browser.get(&location).text();
    assert!(page.contains("#1: added"), "{page}");
    assert!(!browser.get(&location).text().contains("#1: added"), "it is said once");
    let refused = send(&[("title", &"x".repeat(300)), ("back", "/")]);
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(
        text.contains("<main") && text.contains("title is over its limit: 300 bytes"),
        "{text}"
    );
    for elsewhere in ["//evil.example/", "https://evil.example", "/\\evil.example", "/a\nb", "é"] {
        let answer = send(&[("title", "t"), ("back", elsewhere)]);
        assert_eq!(answer.status, 303);
        assert!(answer.header("location").unwrap().starts_with("/?said="), "{elsewhere:?}");
    }
}

#[test]
fn bad_input_is_refused_in_the_words_of_the_operation() {
    let board = Board::new();
    add(&board, "t1");
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let long = "<script>alert(1)</script>".repeat(700);
    for (action, fields, status, words) in [
        ("retry", &[("task", "t-none")][..], 422, "no task `t-none`"),
        ("retry", &[("task", "t1"), ("attempt", "x")], 422, "attempt"),
        ("cancel", &[], 422, "task_id"),
        ("edit", &[("task", "t1"), ("priority", "99")], 422, "priority must be 1"),
        ("edit", &[("task", "t1"), ("priority", "first")], 422, "priority"),
        ("edit", &[("task", "t1"), ("after", "t1")], 422, "cycle"),
        ("edit", &[("task", "t1"), ("description", &long)], 422, "description"),
        ("add", &[("title", ""), ("description", "")], 422, "description"),
        ("message", &[("to", "nobody-here"), ("text", "x")], 422, "nobody called"),
        ("stop", &[("agent", "nobody-here")], 422, "no agent"),
        ("explode", &[("task", "t1")], 404, "no such page"),
    ] {
        let answer = act(&browser, action, fields);
        let text = answer.text();
        assert_eq!(answer.status, status, "{action} {fields:?}: {text}");
        assert!(text.contains(words) && !text.contains("<script>alert"), "{action}: {text}");
    }
    assert_eq!(board.task("t1")["priority"], 5);
    let large = browser.form("/do/add", &[("description", &"x".repeat(2 << 20))]);
    assert_eq!(server.ask(&large).status, 413);
}

#[test]
fn roles_keep_what_they_may_do() {
    let board = Board::new();
    add(&board, "t1");
    let server = Server::on(&board);
    let login = |role: &str| {
        let made =
            board.finish(board.command().args(["--json", "token", "add", role, "--role", role]));
        let token = made.value()["token"].as_str().unwrap().to_owned();
        let link =
            server.post("/login/link", "{}").header("Authorization", &format!("Bearer {token}"));
        let reply: Value = serde_json::from_slice(&server.ask(&link).body).unwrap();
        let mut browser = Browser::at(&server);
        assert_eq!(browser.log_in(&code_of(&reply["link"])).status, 303);
        browser
    };
    let (observer, worker, leader) = (login("observer"), login("worker"), login("leader"));
    for browser in [&observer, &worker] {
        for (action, fields) in [
            ("cancel", &[("task", "t1")][..]),
            ("edit", &[("task", "t1"), ("title", "x")]),
            ("pause", &[]),
            ("message", &[("to", "all"), ("text", "x")]),
            ("reorder", &[("task", "t1"), ("before", "")]),
        ] {
            let answer = act(browser, action, fields);
            assert_eq!(answer.status, 422, "{action}: {}", answer.text());
        }
    }
    assert!(
        !observer.get("/").text().contains("method=\"post\""),
        "an observer's page has no forms that act"
    );
    done(&leader, "cancel", &[("task", "t1")]);
    let stranger = Browser::at(&server);
    assert_eq!(act(&stranger, "retry", &[("task", "t1")]).status, 401);
    let without_origin = leader.form("/do/retry", &[("task", "t1")]).without("Origin");
    assert_eq!(server.ask(&without_origin).status, 403);
    assert_eq!(board.task("t1")["status"], "cancelled");
}

#[test]
fn pages_say_which_open_task_is_ready_and_which_is_blocked() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "first", "description": "d"}));
    board.cli_ok(
        "create_task",
        json!({"id": "second", "description": "d", "dependencies": ["first"]}),
    );
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    for path in ["/tasks", "/plan", "/graph", "/tasks/first", "/tasks/second"] {
        let page = browser.get(path).text();
        assert!(page.contains(">ready<") && page.contains(">blocked<"), "{path}: {page}");
        assert!(!page.contains(">open<") && !page.contains(">available<"), "{path}: {page}");
    }
}
