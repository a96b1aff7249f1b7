//! Several agents of one session, and sessions that come back: who is who, and who has what.

mod worktrees;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, Client};

/// A session of Claude Code before anything has registered.
fn session(board: &Board) -> Client {
    session_in(board, board.base())
}

fn session_in(board: &Board, directory: &Path) -> Client {
    let mut client =
        Client::start(board.command().args(["mcp", "--agent", "auto"]).current_dir(directory));
    client.name = "claude-code";
    client
}

fn add(client: &mut Client, ids: &[&str]) {
    for id in ids {
        client.ok(
            "create_task",
            json!({"id": id, "title": format!("Write {id}"), "description": "d"}),
        );
    }
}

/// Registers a worker without an id and returns its reply.
fn register(client: &mut Client) -> Value {
    client.ok("register_agent", json!({"role": "worker"}))
}

#[test]
fn subagents_of_one_session_have_an_id_and_a_task_each() {
    let board = Board::new();
    let mut session = session(&board);
    add(&mut session, &["a", "b", "c", "d"]);
    // All three register before any of them claims.
    let asked: Vec<_> =
        (0..3).map(|_| session.send("register_agent", json!({"role": "worker"}))).collect();
    let ids: Vec<_> =
        asked.into_iter().map(|id| session.reply(id).unwrap().ok()["agent_id"].clone()).collect();
    assert_eq!(ids, ["claude-1", "claude-2", "claude-3"]);
    for (agent, task) in ids.iter().zip(["a", "b", "c"]) {
        let claim = session.ok("claim_task", json!({"agent_id": agent}));
        assert_eq!(
            (&claim["task"]["id"], &claim["again"]),
            (&json!(task), &Value::Null),
            "{claim}"
        );
    }
    for (agent, task) in ids.iter().zip(["a", "b", "c"]) {
        session.ok("complete_task", json!({"agent_id": agent, "task_id": task, "output": "o"}));
    }
    let by: Vec<_> = ["a", "b", "c"].map(|task| board.task(task)["claimed_by"].clone()).to_vec();
    assert_eq!(by, ids);
    assert_eq!(board.task("d")["status"], "available");
    board.assert_file_is_the_replay();
}

#[test]
fn a_call_that_names_none_of_several_agents_is_refused_with_their_names() {
    let board = Board::new();
    let mut session = session(&board);
    add(&mut session, &["a"]);
    assert_eq!(
        session.ok("claim_task", json!({}))["agent_id"],
        "claude-1",
        "the only agent need not be named"
    );
    session.ok("register_agent", json!({"agent_id": "scout", "role": "worker"}));
    let refused = session.call("claim_task", json!({}));
    assert_eq!(refused.code(), "which_agent", "{}", refused.text);
    for part in ["`claude-1` (holds `a`)", "`scout`", "agent_id"] {
        assert!(refused.text.contains(part), "{}", refused.text);
    }
    assert!(refused.text.len() <= 200, "{}", refused.text);
    assert_eq!(session.call("cancel_task", json!({"task_id": "a"})).code(), "which_agent");
    add(&mut session, &["b"]);
    let author = board.events().last().unwrap().actor.clone();
    assert_eq!(
        author.unwrap().as_str(),
        "claude-1",
        "where no agent can be named, the first is the author"
    );
    session.ok("heartbeat", json!({"agent_id": "claude-1"}));
}

#[test]
fn an_agent_that_has_lost_its_memory_finds_its_old_self_by_registering() {
    let board = Board::new();
    let mut session = session(&board);
    add(&mut session, &["a", "b"]);
    assert_eq!(register(&mut session)["agent_id"], "claude-1");
    session.ok("claim_task", json!({}));
    session.ok("heartbeat", json!({"task_id": "a", "note": "half of it is there"}));
    let new = register(&mut session);
    assert_eq!(new["agent_id"], "claude-2");
    assert_eq!(new["others"], json!([{"agent_id": "claude-1", "task": "a", "title": "Write a"}]));
    assert!(
        new["next"].as_str().unwrap().contains("register_agent with agent_id claude-1"),
        "{new}"
    );
    let old = session.ok("register_agent", json!({"agent_id": "claude-1", "role": "worker"}));
    let held =
        json!([{"task": "a", "title": "Write a", "attempt": 1, "note": "half of it is there"}]);
    assert_eq!((&old["again"], &old["holding"]), (&json!(true), &held), "{old}");
    assert!(
        old["since"].is_string() && old["next"].as_str().unwrap().contains("get_task"),
        "{old}"
    );
    let claim = session.ok("claim_task", json!({"agent_id": "claude-1"}));
    assert_eq!((&claim["success"], &claim["holding"]), (&json!(false), &held), "{claim}");
    assert!(claim["next"].as_str().unwrap().contains("get_task"), "{claim}");
    assert_eq!(session.ok("claim_task", json!({"agent_id": "claude-2"}))["task"]["id"], "b");
}

#[test]
fn a_process_started_for_one_agent_says_that_it_has_registered_before() {
    let board = Board::new();
    let mut session = Client::start(board.command().args(["mcp", "--agent", "scout"]));
    let first = register(&mut session);
    assert_eq!((&first["agent_id"], &first["again"]), (&json!("scout"), &Value::Null), "{first}");
    let second = register(&mut session);
    assert_eq!(
        (&second["agent_id"], &second["again"]),
        (&json!("scout"), &json!(true)),
        "{second}"
    );
    assert_eq!(second["since"], first["agent"]["registered_at"]);
}

#[test]
fn a_claim_that_is_answered_again_says_so_and_since_when() {
    let board = Board::new();
    let mut session = session(&board);
    add(&mut session, &["a"]);
    register(&mut session);
    let first = session.ok("claim_task", json!({}));
    assert_eq!((&first["again"], &first["since"]), (&Value::Null, &Value::Null), "{first}");
    let second = session.ok("claim_task", json!({}));
    assert_eq!((&second["again"], &second["already"]), (&json!(true), &json!(true)), "{second}");
    assert_eq!(second["since"], first["task"]["claimed_at"]);
    assert!(second["next"].as_str().unwrap().contains("subagent"), "{second}");
}

#[test]
fn a_restarted_session_takes_over_what_the_dead_one_held_and_hears_so() {
    let board = Board::new();
    let mut before = session(&board);
    add(&mut before, &["a"]);
    register(&mut before);
    before.ok("claim_task", json!({}));
    before.ok("heartbeat", json!({"task_id": "a", "note": "begun"}));
    before.kill();
    let mut after = session(&board);
    let back = register(&mut after);
    assert_eq!((&back["agent_id"], &back["again"]), (&json!("claude-1"), &Value::Null), "{back}");
    assert_eq!(back["holding"][0]["note"], "begun", "{back}");
    assert!(back["next"].as_str().unwrap().contains("taken over"), "{back}");
}

#[test]
fn a_session_that_comes_back_late_hears_who_has_its_task() {
    let board = Board::with_policy("grace_seconds = 0");
    let mut before = session(&board);
    add(&mut before, &["a"]);
    register(&mut before);
    before.ok("claim_task", json!({}));
    let mut heir = board.mcp();
    heir.register("heir");
    let waiting = heir.wait_in_claim("heir");
    before.kill();
    let claim = heir.reply(waiting).unwrap().ok();
    assert_eq!(claim["attempt"], 2, "{claim}");
    let mut after = session(&board);
    let back = register(&mut after);
    let lost = json!([{"task": "a", "title": "Write a", "status": "claimed", "agent": "heir"}]);
    assert_eq!((&back["agent_id"], &back["lost"]), (&json!("claude-1"), &lost), "{back}");
    assert!(back["next"].as_str().unwrap().contains("drop what you lost"), "{back}");
    after.kill();
    let told_before = register(&mut session(&board));
    assert_eq!(told_before["lost"], Value::Null, "it is told once: {told_before}");
}

#[test]
fn a_client_that_is_called_like_the_person_or_the_board_works_under_another_name() {
    for called in ["human", "Human", "callboard", "system", "owner-mcp-client", "B0ard"] {
        let board = Board::new();
        let mut client = Client::start(board.command().args(["mcp", "--agent", "auto"]));
        client.name = called;
        assert_eq!(register(&mut client)["agent_id"], "agent-1", "{called}");
        add(&mut client, &["a"]);
        assert_eq!(client.ok("claim_task", json!({}))["agent_id"], "agent-1", "{called}");
    }
}

#[test]
fn a_newcomer_over_http_is_called_after_its_client_and_never_as_another() {
    let board = Board::new();
    let server = Server::on(&board);
    let worker = json!({"role": "worker"});
    let name = |door: Door| door.ok(&server, "register_agent", &worker)["agent_id"].clone();
    // The client of the tests is called `test`.
    assert_eq!([name(Door::Mcp), name(Door::Mcp), name(Door::Mcp)], ["test-1", "test-2", "test-3"]);
    let without_a_client = name(Door::Rpc);
    assert!(!without_a_client.as_str().unwrap().starts_with("test"), "{without_a_client}");
}

#[test]
fn registration_answers_the_command_that_stands_in_for_the_tools() {
    let board = Board::new();
    let project = board.base().join("the project's");
    std::fs::create_dir(&project).unwrap();
    let mut command = board.command();
    command.env("COORDINATION_DIR", project.join("board")).args(["mcp", "--agent", "auto"]);
    let mut session = Client::start(&mut command);
    add(&mut session, &["a"]);
    let shell = register(&mut session)["shell"].as_str().unwrap().to_owned();
    assert!(shell.starts_with(env!("CARGO_BIN_EXE_callboard")), "{shell}");
    let claim = shell.replace("NAME 'JSON'", "claim_task '{}'");
    let ran = Command::new("/bin/sh")
        .args(["-c", &claim])
        .current_dir("/")
        .env_clear()
        .env("HOME", "/")
        .output()
        .unwrap();
    let reply: Value =
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{shell}: {ran:?}"));
    assert_eq!(
        (&reply["agent_id"], &reply["task"]["id"]),
        (&json!("test-1"), &json!("a")),
        "{reply}"
    );
}

#[test]
fn a_completion_that_names_files_of_another_agents_says_whose_they_are() {
    let board = Board::new();
    let mut session = session(&board);
    for (id, files) in [("a", json!(["src/a.rs"])), ("b", json!(["src/b/"]))] {
        session.ok("create_task", json!({"id": id, "description": "d", "context_files": files}));
    }
    for agent in ["one", "two"] {
        session.register(agent);
        session.ok("claim_task", json!({"agent_id": agent}));
    }
    let done = json!({"agent_id": "one", "task_id": "a", "output": "o", "files_modified": ["src/a.rs", "src/b/x.rs"]});
    let reply = session.ok("complete_task", done.clone());
    let warning = reply["warning"].as_str().unwrap();
    assert!(
        warning.contains("src/b/** is held by two for task b") && !warning.contains("src/a.rs"),
        "{reply}"
    );
    assert_eq!(session.ok("complete_task", done)["already"], true);
    let done =
        json!({"agent_id": "two", "task_id": "b", "output": "o", "files_modified": ["src/b/x.rs"]});
    assert_eq!(session.ok("complete_task", done)["warning"], Value::Null);
}

#[test]
fn an_answer_that_was_shown_is_read_and_a_request_is_not() {
    let board = Board::new();
    let mut session = session(&board);
    session.register("one");
    let ask = json!({"agent_id": "one", "to": "human", "kind": "request", "text": "JSON or CSV?"});
    let asked = session.ok("send_message", ask)["message_id"].clone();
    board.cli_ok("send_message", json!({"reply_to": asked, "text": "CSV"}));
    board.cli_ok("send_message", json!({"to": "one", "kind": "request", "text": "Which port?"}));
    let own = json!({"agent_id": "one"});
    assert_eq!(session.ok("heartbeat", own.clone())["unread_messages"]["count"], 2);
    let shown = session.ok("get_messages", own.clone());
    assert_eq!(
        (shown["messages"].as_array().unwrap().len(), &shown["unread"]),
        (2, &json!(1)),
        "{shown}"
    );
    assert_eq!(session.ok("heartbeat", own.clone())["unread_messages"]["count"], 1);
    let again = session.ok("get_messages", own);
    assert_eq!(again["messages"][0]["text"], "Which port?", "{again}");
    board.assert_file_is_the_replay();
}
