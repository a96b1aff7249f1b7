//! What things are called in a call: tasks, agents, operations, and the arguments as a whole.

use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, Client};

fn added(client: &mut Client, id: &str, title: &str) {
    client.ok("create_task", json!({"id": id, "title": title, "description": "d"}));
}

/// A call that waits is looked at again after each event, and remembers where it began.
#[test]
fn a_call_that_waits_for_a_task_by_its_number_or_title_hears_of_it() {
    let board = Board::new();
    let mut client = board.mcp();
    added(&mut client, "lexer", "Write the lexer");
    added(&mut client, "other", "Write the parser");
    for (name, priority) in [("#1", 1), ("write the lexer", 2)] {
        let wait = client.send("wait_for_events", json!({"task_id": name, "wait_seconds": 40}));
        // The same process has looked at the call before when it answers this one.
        client.ok("get_status", json!({}));
        let mut another = board.mcp();
        another.ok(
            "register_agent",
            json!({"agent_id": format!("boss-{priority}"), "role": "leader"}),
        );
        another.ok("update_task", json!({"task_id": "other", "priority": priority}));
        another.ok("update_task", json!({"task_id": "lexer", "priority": priority}));
        let events = client.reply(wait).expect("an answer").ok();
        let all = events["events"].as_array().expect("events");
        assert!(all.len() == 1 && all[0]["kind"] == "task_updated", "{name}: {events}");
        assert_eq!(all[0]["task"], "lexer", "{name}: {events}");
    }
}

#[test]
fn a_task_goes_by_every_name_in_every_kind_of_call() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("w");
    client.ok(
        "create_task",
        json!({"id": "lexer", "title": "Write the lexer", "description": "d", "path": "P1.M1.T1"}),
    );
    for name in [
        json!("lexer"),
        json!(1),
        json!("1"),
        json!("#1"),
        json!("P1.M1.T1"),
        json!("Write the lexer"),
    ] {
        let read = client.ok("get_task", json!({"task_id": name}));
        assert_eq!(read["task"]["id"], "lexer", "{name}");
        let warning = read["warning"].as_str().unwrap_or_default();
        assert_eq!(warning.contains("#1 lexer"), name != "lexer", "{name}: {warning}");
        assert_eq!(client.ok("explain_task", json!({"task_id": name}))["task"], "lexer", "{name}");
    }
    client.ok("claim_task", json!({"agent_id": "w", "task_id": "#1"}));
    client.ok(
        "attach_artifact",
        json!({"agent_id": "w", "task_id": "#1", "name": "a.md", "text": "x"}),
    );
    assert!(board.file("artifacts/lexer").exists() && !board.file("artifacts/#1").exists());
    let steps = json!([{"name": "complete_task", "arguments": {"agent_id": "w", "task_id": "write the lexer", "output": "o"}}]);
    client.ok("apply_batch", json!({"operations": steps}));
    assert_eq!(board.task("lexer")["status"], "done");
    board.assert_file_is_the_replay();
}

#[test]
fn a_parent_makes_a_part_or_says_why_not() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"id": "phase", "title": "Phase", "path": "P1"}));
    let first = client.ok("create_task", json!({"title": "First", "parent": "phase"}));
    let second = client.ok("create_task", json!({"title": "Second", "parentId": "#1"}));
    assert_eq!([&first["task"]["path"], &second["task"]["path"]], ["P1.M1", "P1.M2"]);
    assert_eq!(second["task"]["parent"], "phase");
    let batch =
        json!([{"ref": "a", "title": "A", "parent": "First"}, {"title": "B", "parent": "a"}]);
    let ids = client.ok("create_tasks_batch", json!({"tasks": batch}))["task_ids"].clone();
    let task = |at: usize| board.task(ids[at].as_str().expect("an id"));
    assert_eq!([&task(0)["path"], &task(1)["path"]], ["P1.M1.T1", "P1.M1.T1.S1"]);
    assert_eq!(task(1)["parent"], ids[0]);
    let before = board.document()["seq"].clone();
    for (arguments, why) in [
        (json!({"title": "T", "parent": "phase", "path": "P2.M1"}), "not below"),
        (json!({"title": "T", "parent": "nothing"}), "no task"),
        (json!({"title": "T", "subtasks": ["a"]}), "parent"),
    ] {
        let refused = client.call("create_task", arguments.clone());
        assert!(refused.is_error && refused.text.contains(why), "{arguments}: {}", refused.text);
    }
    let circle = json!([{"ref": "a", "title": "A", "parent": "b"}, {"ref": "b", "title": "B", "parent": "a"}]);
    let refused = client.call("create_tasks_batch", json!({"tasks": circle}));
    assert!(refused.is_error && refused.text.contains("in itself"), "{}", refused.text);
    assert_eq!(board.document()["seq"], before, "nothing was written");
    board.assert_file_is_the_replay();
}

#[test]
fn what_an_agent_says_of_itself_is_kept_and_not_handed_on() {
    let board = Board::new();
    let mut client = board.mcp();
    let given = json!({"agent_id": "w", "name": "Ada", "model": "m-1"});
    let said = client.ok("register_agent", given)["warning"].to_string();
    assert!(said.contains("kept in metadata") && said.contains("`model`"), "{said}");
    let kept = |board: &Board| board.document()["agents"]["w"]["metadata"].clone();
    assert_eq!(kept(&board), json!({"name": "Ada", "model": "m-1"}));
    client.ok("register_agent", json!({"agent_id": "w", "role": "leader"}));
    assert_eq!(kept(&board), json!({"name": "Ada", "model": "m-1"}), "it stays");
    board.assert_file_is_the_replay();
}

#[test]
fn a_wrong_name_of_a_tool_leads_to_the_right_one() {
    let board = Board::new();
    let mut client = Client::start(board.command().args(["mcp", "--toolset", "full"]));
    let mut error = |name: &str| {
        let params = json!({"name": name, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }});
        let answer =
            client.ask(json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{name}: {answer}")).to_owned()
    };
    for (given, meant) in [
        ("claim_next_task", "claim_task"),
        ("get_next_task", "claim_task"),
        ("next_task", "claim_task"),
        ("finish_task", "complete_task"),
        ("mark_task_done", "complete_task"),
        ("add_task", "create_task"),
        ("tasks.create", "create_task"),
        ("list_tasks", "get_all_tasks"),
        ("get_tasks", "get_all_tasks"),
        ("search_tasks", "get_all_tasks"),
        ("delete_task", "cancel_task"),
        ("ask_user", "ask_human"),
        ("mcp__callboard__claim_next", "claim_task"),
        ("callboard.completeTask", "complete_task"),
        ("callboard/get_status", "get_status"),
        ("unclaim_task", "release_task"),
        ("unassign_task", "release_task"),
        ("unlock_files", "release_files"),
        ("unregister_agent", "forget_agent"),
        ("reopen_task", "retry_task"),
        ("send", "send_message"),
    ] {
        let said = error(given);
        assert!(said.contains(&format!("did you mean {meant}?")), "{given}: {said}");
    }
}

/// What some clients send for the arguments as a whole.
#[test]
fn arguments_may_be_a_text_or_an_empty_list_at_every_door() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    let server = Server::on(&board);
    let mut client = board.mcp();
    for none in [json!([]), json!(""), json!("{}"), Value::Null] {
        assert!(!client.call("get_status", none.clone()).is_error, "{none}");
        assert!(!Door::Mcp.ask(&server, "get_status", &none).is_error, "{none}");
    }
    let text = json!("{\"task_id\": \"t\"}");
    assert_eq!(client.ok("get_task", text.clone())["task"]["id"], "t");
    assert_eq!(Door::Mcp.ok(&server, "get_task", &text)["task"]["id"], "t");
}
