//! Permission prompts: what clients tell their hooks of them, and what the board then shows.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::Board;
use crate::hooks::{by_shell, holding, input, silent, stops, used_a_tool};

fn waiting(board: &Board, agent: &str) -> Value {
    board.document()["agents"][agent]["waiting"].clone()
}

/// What Claude Code 2.1.332 sends before it shows the dialog.
fn asks(board: &Board, command: &str) -> Value {
    let more = json!({"tool_name": "Bash", "tool_input": {"command": command, "description": "d"},
        "permission_suggestions": [{"type": "addRules", "rules": [], "behavior": "allow", "destination": "session"}]});
    input(board, "PermissionRequest", more)
}

/// What it sends when the dialog was shown for six seconds.
fn still_asks(board: &Board) -> Value {
    let more = json!({"message": "Claude needs your permission to use Bash", "notification_type": "permission_prompt"});
    input(board, "Notification", more)
}

fn is_idle(board: &Board) -> Value {
    let more =
        json!({"message": "Claude is waiting for your input", "notification_type": "idle_prompt"});
    input(board, "Notification", more)
}

/// The hook in a pane of tmux.
fn in_pane(board: &Board) -> Command {
    let mut command = by_shell(board, "waiting");
    command.env("TMUX_PANE", "%3").env_remove("TERM_PROGRAM");
    command
}

#[test]
fn a_permission_prompt_is_seen_by_all_until_the_agents_next_sign() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    silent(in_pane(&board), &asks(&board, "cargo add nom"));
    let shown = waiting(&board, "ada");
    for (field, text) in
        [("for", "permission"), ("what", "Bash: cargo add nom"), ("where", "tmux pane %3")]
    {
        assert_eq!(shown[field], text, "{shown}");
    }
    let agents = client.ok("get_agents", json!({}));
    assert_eq!(agents["agents"][0]["waiting"], shown);
    let status = board.finish(board.command().arg("status")).stdout;
    for part in ["ada permission", "waits for permission", "Bash: cargo add nom", "in tmux pane %3"]
    {
        assert!(status.contains(part), "{part}: {status}");
    }
    let agents = board.finish(board.command().arg("agents")).stdout;
    assert!(agents.contains("waiting") && agents.contains("ada for permission"), "{agents}");
    // The same prompt once more says nothing new, and less.
    let seq = board.document()["seq"].clone();
    silent(in_pane(&board), &still_asks(&board));
    silent(in_pane(&board), &asks(&board, "cargo add nom"));
    assert_eq!(board.document()["seq"], seq);
    silent(by_shell(&board, "heartbeat"), &used_a_tool(&board));
    assert_eq!(waiting(&board, "ada"), Value::Null);
    let status = board.finish(board.command().arg("status")).stdout;
    assert!(!status.contains("waiting:"), "{status}");
    board.assert_file_is_the_replay();
}

#[test]
fn each_sign_of_the_agent_ends_its_waiting() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    let ask = || {
        silent(by_shell(&board, "waiting"), &still_asks(&board));
        assert_eq!(waiting(&board, "ada")["for"], "permission");
    };
    ask();
    client.ok("heartbeat", json!({"agent_id": "ada"}));
    assert_eq!(waiting(&board, "ada"), Value::Null, "a call");
    ask();
    silent(
        by_shell(&board, "heartbeat"),
        &input(&board, "UserPromptSubmit", json!({"prompt": "go on"})),
    );
    assert_eq!(waiting(&board, "ada"), Value::Null, "an answer of the person");
    ask();
    silent(by_shell(&board, "stop"), &stops(&board, true));
    assert_eq!(waiting(&board, "ada"), Value::Null, "the end of its turn");
}

#[test]
fn an_agent_waits_for_words_only_if_it_holds_a_task() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    silent(by_shell(&board, "waiting"), &is_idle(&board));
    assert_eq!(waiting(&board, "ada")["for"], "input");
    client.ok("complete_task", json!({"agent_id": "ada", "task_id": "lexer", "output": "done"}));
    silent(by_shell(&board, "waiting"), &is_idle(&board));
    assert_eq!(waiting(&board, "ada"), Value::Null);
}

#[test]
fn the_prompts_of_codex_and_gemini_are_seen_too() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    let codex = json!({"session_id": "s", "transcript_path": null, "cwd": board.base(), "model": "m", "turn_id": "1",
        "permission_mode": "default", "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "git push", "description": "publish"}});
    silent(by_shell(&board, "waiting"), &codex);
    assert_eq!(waiting(&board, "ada")["what"], "Bash: git push");
    client.ok("heartbeat", json!({"agent_id": "ada"}));
    let gemini = json!({"session_id": "s", "transcript_path": "/t.json", "cwd": board.base(), "timestamp": "2026-11-25T20:00:00.000Z",
        "hook_event_name": "Notification", "notification_type": "ToolPermission", "message": "Tool Shell requires execution",
        "details": {"type": "exec", "title": "Shell", "command": "npm install", "rootCommand": "npm"}});
    silent(by_shell(&board, "waiting"), &gemini);
    assert_eq!(waiting(&board, "ada")["what"], "shell: npm install");
}

#[test]
fn a_secret_in_what_is_asked_is_not_kept() {
    let board = Board::new();
    let _client = holding(&board, "ada", "lexer");
    let secret = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    silent(
        by_shell(&board, "waiting"),
        &asks(&board, &format!("curl -H 'Authorization: Bearer {secret}' https://x")),
    );
    let kept = waiting(&board, "ada").to_string();
    assert!(kept.contains("[redacted") && !kept.contains(&secret), "{kept}");
}

#[test]
fn a_hook_that_has_nothing_to_tell_changes_nothing() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "d"}));
    let seq = board.document()["seq"].clone();
    silent(by_shell(&board, "waiting"), &asks(&board, "ls"));
    assert_eq!(board.document()["seq"], seq, "nobody has registered");
    client.register("ada");
    let seq = board.document()["seq"].clone();
    let others = [
        json!({"notification_type": "auth_success", "message": "m"}),
        json!({"notification_type": 7, "tool_name": [1], "tool_input": "x", "details": null}),
        json!({}),
    ];
    for other in others {
        silent(by_shell(&board, "waiting"), &input(&board, "Notification", other));
    }
    // Copilot CLI sends this before it knows whether it will ask.
    let mut early = asks(&board, "ls");
    early["timestamp"] = json!("2026-11-25T20:00:00.000Z");
    silent(by_shell(&board, "waiting"), &early);
    assert_eq!(board.document()["seq"], seq);
}

#[test]
fn a_prompt_that_is_told_takes_no_longer_than_a_command() {
    let board = Board::new();
    let mut client = holding(&board, "ada", "lexer");
    let took = |command: Command, told: &Value| {
        let start = Instant::now();
        silent(command, told);
        start.elapsed()
    };
    let fastest = (0..5).map(|number| {
        let told = took(by_shell(&board, "waiting"), &asks(&board, &format!("make {number}")));
        client.ok("heartbeat", json!({"agent_id": "ada"}));
        told
    });
    let fastest = fastest.min().unwrap();
    println!("the fastest of five hooks took {fastest:?}");
    assert!(fastest.as_millis() < 1_000, "{fastest:?}");
}
