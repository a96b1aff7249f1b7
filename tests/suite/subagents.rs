//! Subagents of one session: they share its MCP process, and each has a name and a task of its own.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Board, Client};
use crate::hooks::{answer, by_shell, call_in, git_dir, holding, input, silent, used_a_tool};

/// What Claude Code 2.1.332 sends when it starts a subagent.
fn starts(board: &Board, id: &str) -> Value {
    input(board, "SubagentStart", json!({"agent_id": id, "agent_type": "general-purpose"}))
}

/// The input of an event inside of a subagent.
fn inside(mut event: Value, id: &str) -> Value {
    event["agent_id"] = json!(id);
    event["agent_type"] = json!("general-purpose");
    event
}

#[track_caller]
fn told(board: &Board, input: &Value) -> String {
    let printed = answer(by_shell(board, "subagent-start"), input.to_string().as_bytes());
    let output: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed:?}"));
    assert_eq!(output["hookSpecificOutput"]["hookEventName"], "SubagentStart");
    output["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

/// Registers the subagent as it was told to, and claims a task; returns its name and the task.
fn works(board: &Board, client: &mut Client, id: &str) -> (String, String) {
    let text = told(board, &starts(board, id));
    let registration = call_in(&text, "register_agent");
    client.ok("register_agent", registration.clone());
    let claimed = client.ok("claim_task", call_in(&text, "claim_task"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&registration["agent_id"]), text(&claimed["task"]["id"]))
}

fn edits(board: &Board, file: &str) -> Value {
    let more = json!({"tool_name": "Edit", "tool_input": {"file_path": board.base().join(file), "old_string": "a"}});
    input(board, "PreToolUse", more)
}

fn is_refused(board: &Board, input: &Value) -> bool {
    answer(by_shell(board, "guard"), input.to_string().as_bytes()).contains("\"deny\"")
}

#[test]
fn three_subagents_of_one_session_have_three_names_and_three_tasks() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    for task in ["a", "b", "c"] {
        client.ok("create_task", json!({"id": task, "description": "d"}));
    }
    let mut done: Vec<_> =
        ["x1", "x2", "x3"].iter().map(|id| works(&board, &mut client, id)).collect();
    assert!(done.iter().all(|(name, _)| name.starts_with("ada.")), "{done:?}");
    for (name, task) in &done {
        client.ok("complete_task", json!({"agent_id": name, "task_id": task, "output": "done"}));
        assert_eq!(board.task(task)["attempts"][0]["agent"], **name);
    }
    done.sort_by(|one, other| one.1.cmp(&other.1));
    done.dedup_by(|one, other| one.0 == other.0 || one.1 == other.1);
    assert_eq!(done.len(), 3);
    assert_eq!(board.task("lexer")["status"], "claimed");
}

#[test]
fn a_subagent_is_told_whose_helper_it_may_be_and_what_the_board_has() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    client.ok("create_task", json!({"id": "a", "description": "d"}));
    let text = told(&board, &starts(&board, "x1"));
    for part in ["1 ready", "1 in work", "If you only help ada", "Pass this agent_id in every call"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text, told(&board, &starts(&board, "x1")), "a name is found again");
    assert!(text.len() < 1_200, "{}", text.len());
    let (name, _) = works(&board, &mut client, "x1");
    let resumed = told(&board, &starts(&board, "x1"));
    assert!(
        resumed.contains(&format!("you are agent {name}")) && resumed.contains("task a, attempt 1"),
        "{resumed}"
    );
    silent(
        by_shell(&board, "subagent-start"),
        &input(&board, "SubagentStart", json!({"agent_type": "no id"})),
    );
}

#[test]
fn a_subagent_in_a_worktree_of_its_own_names_it_when_it_registers() {
    let board = Board::new();
    git_dir(board.base());
    let _client = holding(&board, "ada", "lexer");
    assert_eq!(
        call_in(&told(&board, &starts(&board, "x1")), "register_agent")["properties"],
        Value::Null
    );
    let apart = board.base().join(".claude/worktrees/x1");
    let admin = board.base().join(".git/worktrees/x1");
    fs::create_dir_all(&apart).unwrap();
    fs::create_dir_all(&admin).unwrap();
    let write = |path: &Path, text: String| fs::write(path, text).unwrap();
    write(&apart.join(".git"), format!("gitdir: {}\n", admin.display()));
    write(&admin.join("gitdir"), format!("{}\n", apart.join(".git").display()));
    write(&admin.join("commondir"), "../..\n".to_owned());
    write(&admin.join("HEAD"), "ref: refs/heads/x1\n".to_owned());
    let mut starts = starts(&board, "x1");
    starts["cwd"] = json!(apart);
    let registration = call_in(&told(&board, &starts), "register_agent");
    assert_eq!(registration["properties"]["project_dir"], json!(apart.canonicalize().unwrap()));
}

#[test]
fn the_guard_tells_a_subagent_from_its_siblings_and_from_the_agent_that_started_it() {
    let board = Board::new();
    git_dir(board.base());
    let mut client = board.mcp();
    client.register("ada");
    for (task, file) in [("lexer", "lexer.rs"), ("a", "a.rs"), ("b", "b.rs")] {
        client.ok("create_task", json!({"id": task, "description": "d", "context_files": [file]}));
    }
    client.ok("claim_task", json!({"agent_id": "ada", "task_id": "lexer"}));
    let (_, first) = works(&board, &mut client, "x1");
    let (_, second) = works(&board, &mut client, "x2");
    assert_eq!((first.as_str(), second.as_str()), ("a", "b"));
    let of = |file: &str, id: &str| inside(edits(&board, file), id);
    assert!(!is_refused(&board, &of("a.rs", "x1")), "its own file");
    assert!(is_refused(&board, &of("b.rs", "x1")), "its sibling's");
    assert!(is_refused(&board, &of("lexer.rs", "x1")), "that of the agent which started it");
    assert!(
        is_refused(&board, &edits(&board, "a.rs")),
        "the main conversation and a subagent's file"
    );
    assert!(!is_refused(&board, &edits(&board, "lexer.rs")));
    assert!(!is_refused(&board, &of("lexer.rs", "helper")), "who never registered helps ada");
    assert!(is_refused(&board, &of("a.rs", "helper")));
    // Git's hook cannot know which of them commits.
    let guard =
        board.finish(board.command().current_dir(board.base()).args(["guard", "a.rs", "lexer.rs"]));
    assert_eq!(guard.status.code(), Some(0), "{}", guard.stdout);
}

#[test]
fn an_agent_whose_name_ends_like_a_subagents_is_none_without_a_parent() {
    let board = Board::new();
    git_dir(board.base());
    let mut client = board.mcp();
    client.register("dev.agent");
    client.ok("create_task", json!({"id": "a", "description": "d", "context_files": ["a.rs"]}));
    client.ok("claim_task", json!({"agent_id": "dev.agent"}));
    assert!(!is_refused(&board, &edits(&board, "a.rs")), "its own file");
}

#[test]
fn a_subagent_is_kept_from_stopping_by_its_own_task_alone() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    client.ok("create_task", json!({"id": "a", "description": "d"}));
    let (name, _) = works(&board, &mut client, "x1");
    let stops =
        |id: &str| inside(input(&board, "SubagentStop", json!({"stop_hook_active": false})), id);
    let blocked = answer(by_shell(&board, "stop"), stops("x1").to_string().as_bytes());
    assert!(
        blocked.contains("\"block\"") && blocked.contains(&name) && !blocked.contains("lexer"),
        "{blocked}"
    );
    silent(by_shell(&board, "stop"), &stops("helper"));
    client.ok("complete_task", json!({"agent_id": name, "task_id": "a", "output": "done"}));
    silent(by_shell(&board, "stop"), &stops("x1"));
}

#[test]
fn a_prompt_of_a_subagent_is_its_own_and_ends_with_its_own_sign() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    client.ok("create_task", json!({"id": "a", "description": "d"}));
    let (name, _) = works(&board, &mut client, "x1");
    let waiting = |agent: &str| board.document()["agents"][agent]["waiting"]["what"].clone();
    let asks = input(
        &board,
        "PermissionRequest",
        json!({"tool_name": "Bash", "tool_input": {"command": "make"}}),
    );
    silent(by_shell(&board, "waiting"), &inside(asks, "x1"));
    assert_eq!((waiting(&name), waiting("ada")), (json!("Bash: make"), Value::Null));
    // Six seconds later, without a word of which of them asks.
    let later = json!({"message": "Claude needs your permission to use Bash", "notification_type": "permission_prompt"});
    silent(by_shell(&board, "waiting"), &input(&board, "Notification", later));
    assert_eq!(waiting("ada"), Value::Null);
    silent(by_shell(&board, "heartbeat"), &used_a_tool(&board));
    assert_eq!(waiting(&name), json!("Bash: make"), "the main conversation went on");
    silent(by_shell(&board, "heartbeat"), &inside(used_a_tool(&board), "x1"));
    assert_eq!(waiting(&name), Value::Null);
}
