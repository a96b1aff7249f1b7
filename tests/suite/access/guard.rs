//! What one agent holds or has attached is not taken by another: the guard of a session that nobody
//! knows, inputs that it does not expect, reservations of everything, and artifacts of one name.

use callboard::state::time::MINUTE;
use serde_json::{Value, json};

use crate::harness::{Board, Client};
use crate::hooks::{answer, by_shell, input, silent};
use crate::world::{Answered, World};

/// A board on which `ada` holds a.rs, through a command that has ended.
fn held_by_ada() -> Board {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    let files = json!({"agent_id": "ada", "files": ["a.rs"], "minutes": 60});
    board.cli_ok("reserve_files", files);
    board
}

fn edit(board: &Board, file: &str) -> Value {
    let path = board.base().join(file);
    input(board, "PreToolUse", json!({"tool_name": "Edit", "tool_input": {"file_path": path}}))
}

#[test]
fn session_that_has_not_registered_is_kept_from_what_others_hold() {
    let board = held_by_ada();
    let edit_a = edit(&board, "a.rs");
    let said = answer(by_shell(&board, "guard"), edit_a.to_string().as_bytes());
    assert!(said.contains("\"deny\""), "{said}");
    let registration = json!({"agent_id": "ada"}).to_string().replace('"', "\\\"");
    assert!(said.contains(&format!("register_agent {registration}")), "{said}");
    silent(by_shell(&board, "guard"), &edit(&board, "b.rs"));
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "ada"}));
    silent(by_shell(&board, "guard"), &edit_a);
}

#[test]
fn odd_field_does_not_switch_the_guard_off() {
    let board = held_by_ada();
    let whole = edit(&board, "a.rs");
    let path = whole["tool_input"]["file_path"].clone();
    let odd = [Value::Null, json!(7), json!(true), json!([]), json!({}), json!("")];
    let mut inputs = Vec::new();
    for name in [
        "cwd",
        "stop_hook_active",
        "agent_id",
        "hook_event_name",
        "background_tasks",
        "tool_name",
        "notification_type",
        "message",
        "details",
        "timestamp",
        "session_id",
        "extra",
    ] {
        for value in &odd {
            let mut input = whole.clone();
            input[name] = value.clone();
            inputs.push(input.to_string().into_bytes());
        }
    }
    for value in &odd {
        let tool_input = json!({"file_path": path, "notebook_path": value, "edits": value});
        inputs
            .push(json!({"cwd": board.base(), "tool_input": tool_input}).to_string().into_bytes());
        let tool_input = json!({"file_path": value, "notebook_path": path});
        inputs
            .push(json!({"cwd": board.base(), "tool_input": tool_input}).to_string().into_bytes());
    }
    inputs.push(json!({"tool_input": {"file_path": ["b.rs", path]}}).to_string().into_bytes());
    let text = whole.to_string();
    let with = |extra: &str| format!("{{{extra},{}", &text[1..]);
    let deep = format!("\"x\":{}{}", "[".repeat(5_000), "]".repeat(5_000));
    inputs.push(with(&deep).into_bytes());
    inputs.push(with("\"cwd\":\"/\",\"cwd\":3").into_bytes());
    inputs.push(with("\"message\":\"\\ud800\"").into_bytes());
    inputs.push(text.replace("{\"file_path\"", &format!("{{{deep},\"file_path\"")).into_bytes());
    inputs.push([b"\xef\xbb\xbf", with("\"x\":\"?\"").as_bytes()].concat());
    let mut bytes = with("\"x\":\"?\"").into_bytes();
    let place = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[place] = 0xff;
    inputs.push(bytes);
    for input in inputs {
        let said = answer(by_shell(&board, "guard"), &input);
        let shown = String::from_utf8_lossy(&input[..input.len().min(400)]).into_owned();
        assert!(said.contains("\"deny\""), "{shown}: {said}");
    }
    for none in ["", "null", "[]", "7", "{", "{\"tool_input\":7}"] {
        assert_eq!(answer(by_shell(&board, "guard"), none.as_bytes()), "");
    }
}

#[test]
fn whole_project_is_reserved_only_as_far_as_no_narrower_pattern_is() {
    let mut world = World::new().agent("a1").agent("a2").agent("a3");
    for wide in ["**", "**/*.rs", "*"] {
        world.by("a1").call("reserve_files", json!({"files": [wide]})).expect("reserved");
    }
    world.by("a2").call("reserve_files", json!({"files": ["src/"]})).expect("narrower");
    world.by("a3").call("reserve_files", json!({"files": ["README.md"]})).expect("narrower");
    world.call("reserve_files", json!({"files": ["src/a.rs"]})).refuses("files_held");
    world.call("reserve_files", json!({"files": ["**/*.md"]})).refuses("files_held");
}

#[test]
fn one_agent_reserves_so_many_files_and_keeps_others_from_no_wide_pattern() {
    let mut world = World::new().agent("a1").agent("a2");
    world.replays_seldom = true;
    let files = |from: usize| -> Vec<String> {
        (from..from + 100).map(|number| format!("src/g{number}*.gen")).collect()
    };
    for from in (0..500).step_by(100) {
        world.by("a1").call("reserve_files", json!({"files": files(from)})).expect("reserved");
    }
    let refused = world.call("reserve_files", json!({"files": ["one.rs"]})).refuses("over_limit");
    assert!(refused.contains("500") && refused.contains("release_files"), "{refused}");
    world.call("reserve_files", json!({"files": files(0)})).expect("renewed");
    let many: Vec<_> = (0..100).map(|number| format!("src/h{number}*.rs")).collect();
    world.by("a2").call("reserve_files", json!({"files": many})).expect("reserved");
    world.at(60 * MINUTE);
    assert!(world.state.all_files_are_free());
}

#[test]
fn narrower_hold_wins_when_an_edit_is_guarded() {
    let board = Board::new();
    for (agent, files) in [("wide", "**"), ("narrow", "src/a.rs")] {
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
        let files = json!({"agent_id": agent, "files": [files], "minutes": 60});
        board.cli_ok("reserve_files", files);
    }
    std::fs::create_dir(board.base().join("src")).unwrap();
    let is_denied = |agent: &str, file: &str| {
        let mut guard = by_shell(&board, "guard");
        guard.env("CALLBOARD_AGENT", agent);
        answer(guard, edit(&board, file).to_string().as_bytes()).contains("\"deny\"")
    };
    assert!(!is_denied("narrow", "src/a.rs") && is_denied("wide", "src/a.rs"));
    assert!(is_denied("narrow", "src/b.rs") && !is_denied("wide", "src/b.rs"));
}

#[test]
fn artifact_is_replaced_by_those_it_concerns_and_its_versions_stay_listed() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    for (agent, role) in
        [("ada", "worker"), ("bob", "worker"), ("eve", "worker"), ("boss", "leader")]
    {
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": role}));
    }
    let artifact = |agent: &str, name: &str, text: &str| json!({"agent_id": agent, "task_id": "t", "name": name, "text": text});
    let attach = |agent, name, text| board.cli_ok("attach_artifact", artifact(agent, name, text));
    attach("ada", "report", "one");
    board.cli_ok("claim_task", json!({"agent_id": "bob", "task_id": "t"}));
    let refused = board.cli("attach_artifact", artifact("eve", "report", "forged"));
    assert_eq!(refused.code(), "artifact_of_other", "{}", refused.stderr);
    assert!(refused.stderr.contains("another name"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(board.file("artifacts/t")).unwrap().count(), 1);
    attach("eve", "report-of-eve", "hers");
    attach("ada", "report", "two");
    attach("bob", "report", "three");
    attach("boss", "report", "four");
    board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "report", "text": "five"}));
    let task = board.cli_ok("get_task", json!({"task_id": "t"}))["task"].clone();
    let report = task["artifacts"].as_array().unwrap().iter().find(|one| one["name"] == "report");
    let earlier = report.unwrap()["earlier"].as_array().unwrap().clone();
    let agents: Vec<_> = earlier.iter().map(|one| one["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["boss", "bob", "ada", "ada"], "{report:?}");
    for version in &earlier {
        let sha256 = version["sha256"].as_str().unwrap();
        assert!(board.file(&format!("artifacts/t/{}-report", &sha256[..8])).exists());
    }
    board.assert_file_is_the_replay();
}

#[test]
fn names_of_the_person_and_the_board_are_for_no_agent() {
    let board = Board::new();
    for name in ["human", "Human", "HUMAN", "human.", "hum4n", "auto", "SYSTEM", "system-1"] {
        let refused = board.cli("register_agent", json!({"agent_id": name, "role": "worker"}));
        assert_eq!(refused.code(), "reserved_id", "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains("register another"), "{}", refused.stderr);
    }
    for name in ["hum\u{430}n", "human\u{200b}", "\u{ff28}uman", "hu\u{ad}man"] {
        let refused = board.cli("register_agent", json!({"agent_id": name, "role": "worker"}));
        assert!(
            matches!(refused.code().as_str(), "bad_id" | "reserved_id"),
            "{name:?}: {}",
            refused.stderr
        );
    }
    // As the default agent of a process that registers nobody.
    let mut client = Client::start(board.command().args(["--agent", "System", "mcp"]));
    assert_eq!(client.call("heartbeat", json!({})).code(), "reserved_id");
}
