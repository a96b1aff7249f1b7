//! Slips that models make, through a real `callboard mcp`.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Board, Client};

const LONGEST_REFUSAL: usize = 200;

/// What the board makes of a call.
enum Wanted {
    /// The reply has these fields with these values, wherever they are nested.
    Reply(Value),
    /// And it warns with these words.
    Warned(Value, &'static [&'static str]),
    Refused(&'static [&'static str]),
}
use Wanted::{Refused, Reply, Warned};

/// Whether `found` has all of `wanted`.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|found| has(found, value))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| has(found, wanted))
        }
        _ => found == wanted,
    }
}

#[track_caller]
fn check(client: &mut Client, board: &Board, tool: &str, arguments: Value, wanted: Wanted) {
    let before = board.document()["seq"].clone();
    let reply = client.call(tool, arguments.clone());
    let what = format!("{tool} {arguments}: {}", reply.text);
    let (fields, words): (Value, &[&str]) = match wanted {
        Reply(fields) => (fields, &[]),
        Warned(fields, words) => (fields, words),
        Refused(words) => {
            assert!(reply.is_error, "{what}");
            let length = board.without_places(&reply.text).len();
            assert!(length <= LONGEST_REFUSAL && !reply.text.contains('\n'), "{what}");
            assert!(
                words.iter().all(|word| reply.text.contains(word)),
                "{what} does not say {words:?}"
            );
            assert_eq!(board.document()["seq"], before, "{what}: something was written");
            return;
        }
    };
    assert!(!reply.is_error && has(&reply.value, &fields), "{what}, wanted {fields}");
    let warning = reply.value["warning"].as_str().unwrap_or_default();
    assert_eq!(warning.is_empty(), words.is_empty(), "{what}");
    assert!(words.iter().all(|word| warning.contains(word)), "{what} does not warn of {words:?}");
}

#[test]
fn slips_are_understood_or_refused_with_the_fix() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"id": "first", "description": "d"}));
    let blanks = json!({"description": "d", "id": "plain", "title": "", "hints": "", "path": "", "tags": [], "context_files": [],
        "dependencies": [], "demands": {"capabilities": [], "tags": [], "hostname": "", "type": ""}, "metadata": {},
        "priority": 0, "max_attempts": 0, "timeout_seconds": 0, "silent_minutes": 0,
        "estimated_minutes": 0, "idempotency_key": ""});
    let plain =
        json!({"task": {"id": "plain", "priority": 5, "max_attempts": 3, "dependencies": []}});
    let synonyms = json!({"id": "named", "description": "d", "depends_on": "first", "labels": "[\"a\", \"b\"]", "timeout": "60",
        "priority": "3.0"});
    let named = json!({"task": {"dependencies": ["first"], "tags": ["a", "b"], "timeout_seconds": 60, "priority": 3}});
    let batch = json!({"tasks": "[{\"description\": \"a\", \"id\": 0}, {\"title\": \"b\", \"blocked_by\": [0]}]"});
    for (tool, arguments, wanted) in [
        (
            "register_agent",
            json!({"agent_id": "w"}),
            Reply(json!({"agent": {"id": "w", "role": "worker"}})),
        ),
        (
            "register_agent",
            json!({"agentId": "boss", "role": "Leader"}),
            Reply(json!({"agent": {"id": "boss", "role": "leader"}})),
        ),
        ("create_task", blanks, Reply(plain)),
        ("create_task", synonyms, Warned(named, &["`depends_on` as dependencies", "`timeout` as"])),
        (
            "create_task",
            json!({"description": "d", "deps": "first"}),
            Warned(json!({"task": {"dependencies": ["first"]}}), &["`deps` as dependencies"]),
        ),
        (
            "create_task",
            json!({"title": "Only a title"}),
            Reply(json!({"task": {"description": "Only a title"}})),
        ),
        ("create_tasks_batch", batch, Warned(json!({"created": 2}), &["`tasks[1].blocked_by` as"])),
        (
            "create_task",
            json!({"description": "d", "colour": "red"}),
            Warned(
                json!({"task": {"context": {"metadata": {"colour": "red"}}}}),
                &["kept in metadata: `colour`"],
            ),
        ),
        (
            "create_task",
            json!({"description": "d", "priorty": 1}),
            Refused(&["priorty", "priority"]),
        ),
        ("create_task", json!({"description": "d", "prio": 1}), Refused(&["prio", "priority"])),
        (
            "create_task",
            json!({"desc": "d"}),
            Warned(json!({"success": true}), &["`desc` as description"]),
        ),
        (
            "get_all_tasks",
            json!({"status": "done"}),
            Warned(json!({"tasks": []}), &["`status` as status_filter"]),
        ),
        (
            "create_task",
            json!({"description": "d", "after": ["first"]}),
            Refused(&["after", "dependencies"]),
        ),
        (
            "create_task",
            json!({"description": "d", "assignee": "w"}),
            Refused(&["assignee", "demands"]),
        ),
        (
            "create_task",
            json!({"description": "d", "deadline": "noon"}),
            Refused(&["deadline", "timeout_seconds"]),
        ),
        ("create_task", json!({"description": ""}), Refused(&["description", "empty"])),
        (
            "create_task",
            json!({"description": "d", "tags": ["a"], "labels": ["b"]}),
            Warned(
                json!({"task": {"tags": ["a"], "context": {"metadata": {"labels": ["b"]}}}}),
                &["kept in metadata: `labels`"],
            ),
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "a"}, {"description": "b", "priority": "high"}]}),
            Refused(&["tasks[1].priority", "a whole number"]),
        ),
        (
            "create_tasks_batch",
            json!({"tasks": "a, b"}),
            Refused(&["tasks", "a list of objects, such as [{\"description\""]),
        ),
        (
            "create_task",
            json!({"description": "d", "demands": {"gpu": true}}),
            Refused(&["demands.gpu", "capabilities"]),
        ),
        (
            "create_task",
            json!({"description": "d", "demands": {"agent_id": "w"}}),
            Refused(&["demands.agent_id", "capabilities"]),
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "a", "agentId": "w"}]}),
            Refused(&["tasks[0].agentId", "demands"]),
        ),
        (
            "create_tasks_batch",
            json!({"wait_for_previous": true, "tasks": [{"description": "a", "wait_for_previous": true}]}),
            Reply(json!({"created": 1})),
        ),
        (
            "apply_batch",
            json!({"operations": [{"name": "create_task", "agent_id": "w", "arguments": {"description": "d", "agent_id": "w"}}]}),
            Reply(json!({"applied": 1})),
        ),
        (
            "get_task",
            json!({"task_id": "first", "agent_id": "w"}),
            Reply(json!({"task": {"id": "first"}})),
        ),
        ("get_status", json!({"scope": "", "verbose": true}), Warned(json!({}), &["`verbose`"])),
        (
            "claim_task",
            json!({"agent_id": "w", "task_id": "first", "wait_seconds": 3_600, "wait_for_previous": true}),
            Warned(json!({"task": {"id": "first"}}), &["`wait_seconds` is 50"]),
        ),
        (
            "complete_task",
            json!({"agent_id": "w", "task_id": "first", "output": "o", "files_modified": 7.5}),
            Refused(&["files_modified: a list of paths, such as [\"src/a.rs\"]"]),
        ),
        (
            "complete_task",
            json!({"agent_id": "w", "task_id": "first"}),
            Refused(&["output", "is missing"]),
        ),
        (
            "complete_task",
            json!({"agent_id": "w", "task_id": "first", "output": "o", "file_modified": "a"}),
            Refused(&["files_modified"]),
        ),
        (
            "complete_task",
            json!({"agent_id": "w", "task_id": "first", "result": "done", "files_modified": "src/a.rs", "status": "done", "attempt": 0}),
            Warned(json!({"success": true}), &["`result` as output"]),
        ),
        (
            "update_task",
            json!({"agent_id": "boss", "task_id": "named", "tags": [], "priority": 0, "hints": "h"}),
            Reply(json!({"task": {"tags": ["a", "b"], "priority": 3}})),
        ),
        (
            "update_task",
            json!({"agent_id": "boss", "task_id": "named", "tags": "c", "clear": ["tags"]}),
            Refused(&["clear"]),
        ),
        (
            "update_task",
            json!({"agent_id": "boss", "task_id": "named", "clear": "dependencies"}),
            Reply(json!({"task": {"dependencies": []}})),
        ),
        (
            "apply_batch",
            json!({"operations": [{"tool": "update_task", "args": {"agent_id": "boss", "id": "named", "labels": "c"}}]}),
            Warned(
                json!({"applied": 1, "results": [{"task": {"tags": ["c"]}}]}),
                &["`operations[0].arguments.labels` as tags"],
            ),
        ),
        (
            "apply_batch",
            json!({"operations": [{"name": "create_task", "arguments": {"description": "d", "owner": "w"}}]}),
            Refused(&["operations[0].arguments.owner", "demands"]),
        ),
        (
            "apply_batch",
            json!({"operations": [{"name": "update_tasks", "arguments": {"task_id": "named"}}]}),
            Refused(&["no operation `update_tasks`", "did you mean update_task?"]),
        ),
        (
            "claim_task",
            json!({"agent_id": "w", "task_id": "named"}),
            Reply(json!({"success": true})),
        ),
        (
            "fail_task",
            json!({"agent_id": "w", "task_id": "named", "error": "e", "permanent": "true"}),
            Warned(json!({"status": "failed"}), &["`permanent` as final"]),
        ),
    ] {
        check(&mut client, &board, tool, arguments, wanted);
    }
    assert_eq!(board.task("first")["result"]["files_modified"], json!(["src/a.rs"]));
    assert_eq!(board.task("first")["result"]["output"], "done");
    board.assert_file_is_the_replay();
}

#[test]
fn an_agent_id_that_an_operation_does_not_have_neither_acts_nor_renews() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("w");
    client.ok("create_task", json!({"description": "d", "deps": [], "agent_id": "w"}));
    assert_eq!(board.events().last().unwrap().actor.as_ref().unwrap().as_str(), "w");
    let (before, heard) =
        (board.document()["seq"].clone(), board.document()["agents"]["w"].clone());
    client.ok("get_status", json!({"agent_id": "w"}));
    assert_eq!((&board.document()["seq"], &board.document()["agents"]["w"]), (&before, &heard));
}

#[test]
fn a_task_that_there_is_not_is_a_result_that_says_where_those_are() {
    let board = Board::new();
    let refused = board.mcp().call("get_task", json!({"task_id": "nope"}));
    assert!(refused.is_error && refused.code() == "unknown_task", "{}", refused.text);
    assert!(
        refused.text.contains("`nope`") && refused.text.contains("get_all_tasks"),
        "{}",
        refused.text
    );
}

#[test]
fn the_same_call_in_other_words_is_the_same_call() {
    let board = Board::new();
    let mut client = board.mcp();
    let first = client
        .ok("create_task", json!({"description": "d", "tags": ["a"], "idempotency_key": "k"}));
    let again = client.ok(
        "create_task",
        json!({"description": "d", "labels": "a", "title": "", "idempotency_key": "k"}),
    );
    assert_eq!((&again["task"]["id"], &again["already"]), (&first["task"]["id"], &json!(true)));
    let other = client
        .call("create_task", json!({"description": "d", "labels": "b", "idempotency_key": "k"}));
    assert_eq!(other.code(), "key_reused", "{}", other.text);
}

#[test]
fn programs_are_understood_as_models_are_but_fill_in_nothing() {
    let board = Board::new();
    for (arguments, task) in [
        (json!({"description": "d", "labels": ["a"]}), json!({"tags": ["a"]})),
        (json!({"description": "d", "priority": "3"}), json!({"priority": 3})),
        (json!({"arguments": {"title": "only"}}), json!({"description": "only"})),
    ] {
        let created = board.cli_ok("create_task", arguments);
        assert!(has(&created["task"], &task), "{created}");
    }
    for arguments in
        [json!({"description": "d", "title": ""}), json!({"description": "d", "max_attempts": 0})]
    {
        assert!(["empty", "zero"].contains(&board.cli("create_task", arguments).code().as_str()));
    }
    board.cli_ok("create_task", json!({"description": "d", "id": "t"}));
    board.cli_ok("register_agent", json!({"agent_id": "w", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "w", "task_id": "t"}));
    let failed = board.cli_ok(
        "fail_task",
        json!({"agent_id": "w", "task_id": "t", "error": "e", "retryable": false}),
    );
    assert_eq!(failed["status"], "failed");
}

#[test]
fn zero_and_false_count_where_they_mean_something() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "w", "role": "leader"}));
    for id in ["a", "b"] {
        client.ok("create_task", json!({"id": id, "description": "d"}));
    }
    let history = client
        .ok("get_history", json!({"since_seq": 0, "before_seq": 0, "limit": 2, "task_id": ""}));
    assert_eq!(history["events"][0]["seq"], 1, "oldest first: {history}");
    for step in 1..=4 {
        client.ok("save_checkpoint", json!({"workflow_id": "flow", "state": {"step": step}}));
    }
    for nothing in [
        json!({"workflow_id": "flow"}),
        json!({"workflow_id": "flow", "number": 0}),
        json!({"workflow_id": "flow", "number": 0, "keep": 0, "all": false}),
    ] {
        let none = client.call("delete_checkpoints", nothing);
        assert_eq!(none.code(), "number_or_keep", "{}", none.text);
    }
    let newest =
        client.ok("get_checkpoint", json!({"workflow_id": "flow", "task_id": "", "number": 0}));
    assert_eq!(newest["checkpoint"]["number"], 4, "{newest}");
    let kept =
        client.ok("delete_checkpoints", json!({"workflow_id": "flow", "number": 0, "keep": 2}));
    assert_eq!(kept["kept"], 2, "{kept}");
    let kept =
        client.ok("delete_checkpoints", json!({"workflow_id": "flow", "number": 3, "keep": 0}));
    assert_eq!(kept["kept"], 1, "{kept}");
    let kept = client.ok("delete_checkpoints", json!({"workflow_id": "flow", "keep": 0}));
    assert_eq!(
        (&kept["kept"], kept.get("removed")),
        (&json!(0), None),
        "the workflow stays: {kept}"
    );
    let all = json!({"workflow_id": "flow", "number": 0, "keep": 0, "all": true});
    assert_eq!(client.ok("delete_checkpoints", all)["removed"], true);
    client.ok("claim_task", json!({"agent_id": "w", "task_id": "a"}));
    let failed = client.ok(
        "fail_task",
        json!({"agent_id": "w", "task_id": "a", "error": "e", "retryable": false}),
    );
    assert_eq!(failed["status"], "failed");
    client.ok("claim_task", json!({"agent_id": "w", "task_id": "b"}));
    let both =
        json!({"agent_id": "w", "task_id": "b", "error": "e", "final": true, "retryable": true});
    assert!(client.call("fail_task", both).is_error);
    let failed = client
        .ok("fail_task", json!({"agent_id": "w", "task_id": "b", "error": "e", "final": false}));
    assert_eq!(failed["status"], "available");
}

#[test]
fn an_agent_that_reconnects_keeps_what_it_leaves_empty_and_clears_by_name() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok(
        "register_agent",
        json!({"agent_id": "w", "role": "leader", "tags": ["gpu"], "properties": {"profile": "p"}}),
    );
    let again = json!({"agent_id": "w", "role": "", "tags": [], "capabilities": [], "properties": {"profile": ""}, "max_concurrent": 0});
    let kept = client.ok("register_agent", again);
    assert_eq!(
        (&kept["agent"]["role"], &kept["agent"]["tags"]),
        (&json!("leader"), &json!(["gpu"])),
        "{kept}"
    );
    assert_eq!(kept["agent"]["properties"]["profile"], "p");
    let cleared =
        client.ok("register_agent", json!({"agent_id": "w", "clear": ["tags", "properties"]}));
    assert_eq!(
        (cleared["agent"].get("tags"), cleared["agent"].get("properties")),
        (None, None),
        "{cleared}"
    );
}

#[test]
fn new_tasks_take_all_that_a_change_takes() {
    let of = |tool: &str| {
        let schema = Value::Object(callboard::ops::find(tool).unwrap().input_schema(false));
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<std::collections::BTreeSet<_>>()
    };
    let missing: Vec<_> = of("update_task").difference(&of("create_task")).cloned().collect();
    assert_eq!(missing, ["agent_id", "clear", "task_id"]);
    let board = Board::new();
    let all = json!({"description": "d", "id": "t", "metadata": {"issue": 7}, "timeout_seconds": 60, "silent_minutes": 5,
            "estimated_minutes": 45});
    board.mcp().ok("create_tasks_batch", json!({"tasks": [all]}));
    let task = board.task("t");
    assert_eq!(
        (&task["timeout_seconds"], &task["silent_minutes"]),
        (&json!(60), &json!(5)),
        "{task}"
    );
    assert_eq!(task["estimated_minutes"], 45, "{task}");
    assert_eq!(task["context"]["metadata"], json!({"issue": 7}), "{task}");
    let mut add = board.command();
    add.args([
        "add",
        "d",
        "--id",
        "u",
        "--path",
        "P1.M1",
        "--metadata",
        "issue=8",
        "--timeout",
        "61",
        "--silent",
        "6",
    ]);
    add.args([
        "--max-attempts",
        "2",
        "--agent-tag",
        "gpu",
        "--property",
        "hostname=h",
        "--estimate",
        "90",
    ]);
    assert!(add.output().unwrap().status.success());
    let task = board.task("u");
    for (field, value) in [
        ("path", json!("P1.M1")),
        ("timeout_seconds", json!(61)),
        ("silent_minutes", json!(6)),
        ("estimated_minutes", json!(90)),
        ("max_attempts", json!(2)),
        ("demands", json!({"tags": ["gpu"], "hostname": "h"})),
    ] {
        assert_eq!(task[field], value, "{task}");
    }
    assert_eq!(task["context"]["metadata"], json!({"issue": 8}), "{task}");
}

/// Messages of a `callboard mcp` that was sent these lines.
fn answers(board: &Board, lines: &[Value]) -> Vec<Value> {
    let mut command = board.command();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let output = process.wait_with_output().unwrap().stdout;
    String::from_utf8(output)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn call(params: Value) -> [Value; 3] {
    let client = json!({"name": "t", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}),
    ]
}

#[test]
fn a_list_that_a_client_has_made_a_text_is_read() {
    let tasks = "[{\"description\":\"a\"},{\"description\":\"b\"}]";
    let lines = call(json!({"name": "create_tasks_batch", "arguments": {"tasks": tasks}}));
    let answer = answers(&Board::new(), &lines).pop().unwrap();
    assert_eq!(answer["result"]["structuredContent"]["created"], 2, "{answer}");
}

#[test]
fn arguments_may_be_null_or_left_out() {
    for params in [json!({"name": "get_status"}), json!({"name": "get_status", "arguments": null})]
    {
        let answer = answers(&Board::new(), &call(params)).pop().unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
}

#[test]
fn a_tool_that_is_not_listed_is_named_by_its_command() {
    let answer =
        answers(&Board::new(), &call(json!({"name": "save_checkpoints", "arguments": {}})))
            .pop()
            .unwrap();
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains("did you mean `") && message.contains("callboard "), "{message}");
}

#[test]
fn an_unknown_tool_is_answered_with_the_one_that_was_meant() {
    for (given, meant) in [
        ("claim", "claim_task"),
        ("claimTask", "claim_task"),
        ("complete_tasks", "complete_task"),
        ("mcp__callboard__get_statuss", "get_status"),
        ("no\nsuch\u{1}thing", "`nosuchthing`"),
        ("unclaim_task", "release_task"),
        ("callboard.completeTask", "complete_task"),
        ("get_next_task", "claim_task"),
        ("deregister_agent", "agents forget"),
    ] {
        let board = Board::new();
        let answer = answers(&board, &call(json!({"name": given, "arguments": {}}))).pop().unwrap();
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let length = board.without_places(message).len();
        assert!(message.contains(meant) && length <= LONGEST_REFUSAL, "{given}: {message}");
        assert!(!message.contains('\n'), "{message:?}");
    }
}
