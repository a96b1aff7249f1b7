//! Who may decide: agents are never the person, whatever their call names, through whatever door.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::http::{Door, Server, reply};
use crate::harness::{Board, Client};

/// The person of these boards, as the system names them.
const PERSON: &str = "root";
/// Names that a call may give for the person, and ones that only look like it.
const PERSONS: [&str; 8] = ["human", "Human", "hum4n", "root", "Root", "root.", "me", "the-person"];

/// Every operation that decides about others' work or the board, with arguments that fit the board
/// of [`stage`].
fn decisions() -> Vec<(&'static str, Value)> {
    vec![
        ("approve_task", json!({"task_id": "reviewed"})),
        ("reject_task", json!({"task_id": "reviewed", "reason": "r"})),
        ("pause", json!({"reason": "r"})),
        ("resume", json!({})),
        ("assign_task", json!({"task_id": "open", "to": "other"})),
        ("cancel_task", json!({"task_id": "held", "reason": "r"})),
        ("retry_task", json!({"task_id": "failed"})),
        ("reset_tasks", json!({"task_id": "held"})),
        ("update_task", json!({"task_id": "held", "priority": 1})),
        ("release_task", json!({"task_id": "held"})),
        ("stop_agent", json!({"agent": "other"})),
        ("forget_agent", json!({"agent": "other"})),
        ("undo", json!({"seq": 1})),
        ("create_snapshot", json!({"label": "l"})),
        ("remove_plan", json!({"plan": "p"})),
        ("delete_checkpoints", json!({"workflow_id": "w", "all": true})),
        ("import_plan", json!({"text": "- [ ] t", "name": "q"})),
    ]
}

/// A board with another agent's work: held, waiting for review, failed.
fn stage() -> Board {
    let board = Board::new();
    for (id, more) in [
        ("reviewed", json!({"review": "by leader"})),
        ("held", json!({})),
        ("failed", json!({"max_attempts": 1})),
        ("open", json!({})),
    ] {
        let mut task = json!({"id": id, "description": "d", "max_attempts": 1});
        for (name, value) in more.as_object().unwrap() {
            task[name] = value.clone();
        }
        board.cli_ok("create_task", task);
    }
    let other = |operation: &str, arguments: Value| {
        let mut arguments = arguments;
        arguments["agent_id"] = json!("other");
        board.cli_ok(operation, arguments);
    };
    other("register_agent", json!({"role": "worker", "max_concurrent": 5}));
    for id in ["reviewed", "failed", "held"] {
        other("claim_task", json!({"task_id": id}));
    }
    other("complete_task", json!({"task_id": "reviewed", "output": "o"}));
    other("fail_task", json!({"task_id": "failed", "error": "e", "final": true}));
    board
}

/// Events by the person after `seq`.
fn by_the_person(board: &Board, seq: u64) -> Vec<String> {
    let later = board.events().into_iter().filter(|event| event.seq > seq);
    let acted = later.filter_map(|event| {
        let actor = event.actor.clone()?;
        (actor.as_str() == "human" || actor.person().is_some()).then(|| format!("{event:?}"))
    });
    acted.collect()
}

fn head(board: &Board) -> u64 {
    board.document()["seq"].as_u64().unwrap()
}

/// Options before the command, and the environment.
type Surroundings<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

/// One way to call, as a certain agent or as nobody; answers with the code of the refusal, or none.
type Way<'a> = Box<dyn FnMut(&str, Value) -> Option<String> + 'a>;

fn over(client: &mut Client) -> Way<'_> {
    Box::new(move |operation, arguments| {
        let reply = client.call(operation, arguments);
        reply.is_error.then(|| reply.code().to_owned())
    })
}

fn in_shell<'a>(board: &'a Board, before: &'a [&str], environment: &'a [(&str, &str)]) -> Way<'a> {
    Box::new(move |operation, arguments| {
        let mut command = board.command();
        command.env("CALLBOARD_ME", PERSON).envs(environment.iter().copied());
        command.arg("--json").args(before).args(["call", operation, &arguments.to_string()]);
        let finished = board.finish(&mut command);
        (!finished.status.success()).then(|| finished.code())
    })
}

/// Tries every decision through an agent's door, as nobody and by each name; returns what became of
/// them, by the code of the refusal.
fn decided(board: &Board, mut way: Way<'_>) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    let names = [None].into_iter().chain(PERSONS.map(Some));
    for name in names {
        for (operation, mut arguments) in decisions() {
            if let Some(name) = name {
                arguments["agent_id"] = json!(name);
            }
            let before = head(board);
            let refused = way(operation, arguments.clone());
            assert_ne!(refused.as_deref(), Some("bad_arguments"), "{operation} {arguments}");
            let acted = by_the_person(board, before);
            assert!(acted.is_empty(), "{operation} {arguments} was the person's: {acted:?}");
            if name.is_some() {
                assert!(refused.is_some(), "{operation} {arguments} was done");
            }
            *ends.entry(refused.unwrap_or_else(|| "done".to_owned())).or_default() += 1;
        }
    }
    ends
}

#[test]
fn no_agents_door_decides_as_the_person() {
    let none = ("CALLBOARD_ME", PERSON);
    for (door, agent) in
        [("unregistered", None), ("worker", Some("worker")), ("leader", Some("leader"))]
    {
        let board = stage();
        let mut client = board.mcp_with(&[none]);
        if let Some(role) = agent {
            client.ok("register_agent", json!({"agent_id": "own", "role": role}));
        }
        let ends = decided(&board, over(&mut client));
        println!("MCP, {door}: {ends:?}");
        assert_eq!(ends.contains_key("done"), door == "leader", "{door}: {ends:?}");
    }
    let board = stage();
    board.cli_ok("register_agent", json!({"agent_id": "own", "role": "worker"}));
    let shells: [Surroundings<'_>; 6] = [
        (&["--agent", "own"], &[]),
        (&[], &[("CALLBOARD_AGENT", "own")]),
        (&[], &[("CLAUDECODE", "1")]),
        (&[], &[("CODEX_SANDBOX", "seatbelt")]),
        (&[], &[("GEMINI_CLI", "1")]),
        (&[], &[("CURSOR_AGENT", "1")]),
    ];
    for (before, environment) in shells {
        let ends = decided(&board, in_shell(&board, before, environment));
        println!("shell {before:?} {environment:?}: {ends:?}");
        assert!(!ends.contains_key("done"), "{before:?} {environment:?}: {ends:?}");
    }
}

#[test]
fn the_persons_doors_decide() {
    let decide = |mut way: Way<'_>, board: &Board| {
        let before = head(board);
        assert_eq!(way("pause", json!({"reason": "r"})), None);
        assert_eq!(way("resume", json!({})), None);
        assert_eq!(way("approve_task", json!({"task_id": "reviewed"})), None);
        assert_eq!(by_the_person(board, before).len(), 3);
    };
    let board = stage();
    decide(in_shell(&board, &[], &[]), &board);
    let board = stage();
    // What a setting of a client leaves empty marks nothing.
    decide(in_shell(&board, &[], &[("CLAUDECODE", ""), ("CODEX_HOME", "/tmp")]), &board);
    let board = stage();
    let server = Server::on(&board);
    decide(
        Box::new(|operation, arguments| {
            let answer = server.ask(&Door::ALL[0].call(&server, 1, operation, &arguments));
            let reply = reply(&answer.message());
            reply.is_error.then(|| reply.code().to_owned())
        }),
        &board,
    );
}

#[test]
fn a_shell_of_an_agents_client_is_that_agents() {
    let board = stage();
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "own", "role": "leader"}));
    // The tests are the client of both the server and the shell.
    let inside = |words: &[&str]| {
        let mut command = board.command();
        board.finish(command.env("CLAUDECODE", "1").arg("--json").args(words))
    };
    let before = head(&board);
    let approved = inside(&["approve", "reviewed"]);
    assert!(approved.status.success(), "{}", approved.stderr);
    assert_eq!(by_the_person(&board, before), [""; 0]);
    let reviewed = board.task("reviewed")["attempts"][0]["reviewed"].clone();
    assert_eq!(reviewed["by"], "own");
    // With a second agent in the same session nobody can tell which of them types.
    client.ok("register_agent", json!({"agent_id": "second", "role": "leader"}));
    let refused = inside(&["pause"]);
    assert_eq!(refused.code(), "which_agent", "{}", refused.stderr);
    assert!(inside(&["--agent", "second", "pause"]).status.success());
}

#[test]
fn tokens_and_what_cannot_be_undone_are_the_persons() {
    let board = stage();
    for words in [
        &["token", "add", "--role", "leader"][..],
        &["token", "revoke", "t"],
        &["purge", "--yes", "--file", "-"],
        &["restore", "backup", "--force"],
    ] {
        let mut command = board.command();
        command.env("CLAUDECODE", "1").arg("--json").args(words);
        let finished = board.finish(&mut command);
        assert_eq!(finished.code(), "not_the_person", "{words:?}: {}", finished.stderr);
    }
}

#[test]
fn a_session_that_is_an_agent_acts_as_no_other_that_lives_elsewhere() {
    let board = Board::new();
    let (mut first, mut second) = (board.mcp(), board.mcp());
    first.register("claude-1");
    second.register("claude-2");
    for id in ["a", "b"] {
        first.ok("create_task", json!({"id": id, "description": "d"}));
    }
    first.ok("claim_task", json!({"agent_id": "claude-1", "task_id": "a"}));
    let complete = json!({"agent_id": "claude-1", "task_id": "a", "output": "mixed up"});
    let refused = second.call("complete_task", complete.clone());
    assert_eq!(refused.code(), "of_another_session", "{}", refused.text);
    assert!(refused.text.contains("claude-1") && refused.text.contains("claude-2"));
    // A batch is no way round it, nor is the shell of the session.
    let step = json!({"name": "complete_task", "arguments": complete.clone()});
    let batch = second.call("apply_batch", json!({"operations": [step]}));
    assert!(batch.is_error && board.task("a")["status"] == "claimed", "{}", batch.text);
    let mut shell = board.command();
    shell.args(["--json", "--agent", "claude-2", "call", "complete_task", &complete.to_string()]);
    assert_eq!(board.finish(&mut shell).code(), "of_another_session");
    // Several agents of one process stay possible, and the agent of a process that has ended is
    // taken over.
    second.register("claude-3");
    second.ok("claim_task", json!({"agent_id": "claude-3", "task_id": "b"}));
    second.ok("register_agent", json!({"agent_id": "claude-1", "takeover": true}));
    second.ok("complete_task", complete);
}

#[test]
fn another_result_of_what_is_done_is_kept_and_said() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("w");
    client.ok("create_task", json!({"id": "a", "description": "d"}));
    client.ok("claim_task", json!({"agent_id": "w", "task_id": "a"}));
    let complete = |output: &str| json!({"agent_id": "w", "task_id": "a", "output": output});
    client.ok("complete_task", complete("first"));
    let same = client.ok("complete_task", complete("first"));
    assert!(same["already"] == true && same["warning"].is_null(), "{same}");
    let seq = head(&board);
    for _ in 0..2 {
        let other = client.ok("complete_task", complete("second"));
        assert!(other["already"] == true && other["warning"].as_str().unwrap().contains("kept"));
        assert_eq!(head(&board), seq + 1, "{other}");
    }
    let task = board.task("a");
    assert_eq!(task["result"]["output"], "first");
    assert_eq!(task["attempts"][0]["late_result"]["output"], "second");
}

#[test]
fn agents_get_no_name_of_the_person() {
    let board = Board::new();
    let mut client = board.mcp_with(&[("CALLBOARD_ME", PERSON)]);
    for id in PERSONS.into_iter().chain(["you", "admin", "user", "User-1"]) {
        let reply = client.call("register_agent", json!({"agent_id": id, "role": "leader"}));
        assert_eq!(reply.code(), "reserved_id", "{id}: {}", reply.text);
    }
    client.ok("register_agent", json!({"agent_id": "rooted"}));
}

#[test]
fn a_server_knows_an_agents_shell_from_the_persons() {
    let board = stage();
    let server = Server::on(&board);
    let url = format!("http://{}", server.address);
    let pause = |environment: &[(&str, &str)]| {
        let mut command = board.command();
        command.envs(environment.iter().copied());
        board.finish(command.args(["--json", "--server", &url, "pause"]))
    };
    let before = head(&board);
    assert_eq!(pause(&[("CLAUDECODE", "1")]).code(), "not_the_person");
    assert_eq!(pause(&[("CALLBOARD_AGENT", "other")]).code(), "not_leader");
    assert_eq!(head(&board), before);
    let person = pause(&[]);
    assert!(person.status.success(), "{}", person.stderr);
}

#[test]
fn the_doctor_says_whether_agents_run_as_the_person() {
    let board = stage();
    let _client = board.mcp();
    let doctor = board.finish(board.command().args(["--json", "doctor"])).value();
    let checks = doctor["checks"].as_array().unwrap();
    let apart = checks.iter().find(|check| check["name"] == "agents apart").unwrap();
    assert!(apart["found"].as_str().unwrap().starts_with("1 of 1 processes"), "{apart}");
}
