//! What a person sees first: the model of it, and `callboard status`.

use serde_json::{Value, json};

use super::harness::Board;
use super::people::{Running, on_a_terminal};

/// A board with an agent that works, one that asks, and tasks of every kind.
fn scene() -> Board {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "Port the parser"}));
    let task = |id: &str, more: Value| {
        let mut task = json!({"id": id, "title": format!("Title of {id}"), "description": "d"});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        board.cli_ok("create_task", task);
    };
    task("bad", json!({"priority": 1, "max_attempts": 1}));
    task("work", json!({"priority": 2}));
    task("later", json!({"priority": 3}));
    task("next", json!({}));
    task("behind", json!({"dependencies": ["bad"]}));
    task("after", json!({"dependencies": ["work"]}));
    for agent in ["a1", "a2"] {
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
    }
    board.cli_ok("claim_task", json!({"agent_id": "a2", "task_id": "bad"}));
    let failed =
        json!({"agent_id": "a2", "task_id": "bad", "error": "no docs/book", "retryable": false});
    board.cli_ok("fail_task", failed);
    board.cli_ok("claim_task", json!({"agent_id": "a2", "task_id": "later"}));
    board.cli_ok("fail_task", json!({"agent_id": "a2", "task_id": "later", "error": "flaky"}));
    board.cli_ok("claim_task", json!({"agent_id": "a1", "task_id": "work"}));
    board.cli_ok("heartbeat", json!({"agent_id": "a1", "note": "half of it"}));
    let question =
        json!({"agent_id": "a2", "to": "human", "kind": "request", "text": "Keep the old syntax?"});
    board.cli_ok("send_message", question);
    board
}

#[test]
fn model_of_the_first_screen_has_every_task_once_and_what_waits_on_top() {
    let board = scene();
    let seen = board.cli_ok("get_board", json!({}));
    let counts = json!({"ready": 1, "blocked": 2, "waiting": 1, "in_work": 1, "in_review": 0,
        "failed": 1, "cancelled": 0, "done": 0, "total": 6});
    assert_eq!(seen["counts"], counts);
    let kinds: Vec<_> = seen["waits"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wait| (wait["kind"].as_str().unwrap(), wait["text"].as_str().unwrap()))
        .collect();
    let expected = [
        ("question", "a2: Keep the old syntax?"),
        ("failed", "Title of bad: no docs/book; 1 wait for it"),
    ];
    assert_eq!(kinds, expected);
    let work = &seen["agents"]["rows"][0];
    assert_eq!(
        (&work["id"], &work["sign"], &work["task"]["number"]),
        (&json!("a1"), &json!("working"), &json!(2))
    );
    assert_eq!(work["note"], "half of it");
    assert_eq!(seen["next"]["rows"][0]["id"], "next");
    assert_eq!(seen["retries"]["rows"][0]["error"], "flaky");
    let behind: Vec<_> = seen["blocked"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["behind"].as_str().unwrap())
        .collect();
    assert_eq!(behind, ["ended", "work"]);
    let scope = board.cli_ok("get_board", json!({"limit": 1}));
    assert_eq!(
        (scope["waits"]["rows"].as_array().unwrap().len(), &scope["waits"]["more"]),
        (1, &json!(1))
    );
}

/// What `callboard …` prints where there are `columns` and 24 lines.
fn shown(board: &Board, columns: usize, arguments: &[&str]) -> String {
    let mut command = board.command();
    command.args(arguments).env("COLUMNS", columns.to_string()).env("LINES", "24");
    let finished = board.finish(&mut command);
    assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// The line that begins with `lead`, whatever is in front of it.
#[track_caller]
fn line<'t>(text: &'t str, lead: &str) -> &'t str {
    let found = text.lines().find(|line| line.trim_start_matches(['!', ' ']).starts_with(lead));
    found.unwrap_or_else(|| panic!("no line with {lead:?} in {text}"))
}

#[test]
fn status_says_who_does_what_and_what_waits() {
    let board = scene();
    let text = shown(&board, 100, &["status"]);
    contains(line(&text, "Port the parser"), &["0 of 6 done"]);
    contains(
        line(&text, "[---"),
        &["1 in work", "1 ready", "2 blocked", "1 waiting until ", "1 failed"],
    );
    contains(line(&text, "WAITS FOR YOU"), &["2"]);
    contains(&text, &["question", "a2: Keep the old syntax?", "answer Q1 TEXT"]);
    contains(line(&text, "#1 "), &["failed", "Title of bad: no docs/book", "retry 1"]);
    contains(line(&text, "a1 "), &["#2", "Title of work", "\"half of it\""]);
    contains(line(&text, "a2 "), &["idle", "asks Q1"]);
    contains(line(&text, "NEXT"), &["#4 Title of next"]);
    contains(line(&text, "BLOCKED"), &["1 behind #1 failed · 1 behind work"]);
    let all = shown(&board, 100, &["status", "--all"]);
    contains(
        &all,
        &["#5 Title of behind", "WAITING  1", "flaky", "discoveries: 0", "last activity:"],
    );
}

#[test]
fn status_is_one_screen_however_much_there_is_and_however_wide_texts_are() {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "日本語の長い目標 ".repeat(20)}));
    let task = |number: usize| {
        json!({"id": format!("t{number}"), "max_attempts": 1,
        "description": "d", "title": format!("名前 with wide letters, number {number} of many")})
    };
    board.cli_ok("create_tasks_batch", json!({"tasks": (0..40).map(task).collect::<Vec<_>>()}));
    for number in 0..12 {
        let agent = format!("agent-{number}-with-a-name-that-is-long");
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
        let id = format!("t{number}");
        board.cli_ok("claim_task", json!({"agent_id": agent, "task_id": id}));
        let failed = json!({"agent_id": agent, "task_id": id, "error": "エラー ".repeat(30), "retryable": false});
        board.cli_ok("fail_task", failed);
        board.cli_ok(
            "claim_task",
            json!({"agent_id": agent, "task_id": format!("t{}", number + 20)}),
        );
    }
    for columns in [60, 80, 100, 160] {
        let text = shown(&board, columns, &["status"]);
        assert!(text.lines().count() < 24, "{columns}: {text}");
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= columns, "{columns}: {line}");
        }
        contains(&text, &["WAITS FOR YOU  12  (the first ", "status --all"]);
    }
    let all = shown(&board, 100, &["status", "--all"]);
    contains(&all, &["agent-11-with-a…", "#12 ", "NEXT  16"]);
}

#[test]
fn status_says_what_to_do_where_there_is_nothing() {
    let board = Board::new();
    contains(&shown(&board, 80, &["status"]), &["no board here yet", "init GOAL"]);
    assert_eq!(shown(&board, 80, &["status", "--line"]), "");
    board.cli_ok("init_coordination", json!({"goal": "g"}));
    contains(&shown(&board, 80, &["status"]), &["no tasks yet:", "add TEXT", "connect CLIENT"]);
    board.cli_ok("create_task", json!({"id": "t", "description": "do it"}));
    let text = shown(&board, 80, &["status"]);
    contains(line(&text, "1 ready"), &["untaken", "no agent to take them"]);
    assert_eq!(shown(&board, 80, &["status", "--line"]), "0/1 done · 1 ready · 1 for you\n");
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    contains(&shown(&board, 80, &["status"]), &["Nothing waits for you."]);
    // One-shot commands leave no process behind, and the person is no agent.
    let ran = board.finish(board.command().args(["--agent", "a", "claim", "t"]));
    assert!(ran.status.success(), "{}", ran.stderr);
    let ran = board.finish(board.command().args(["add", "more"]));
    assert!(ran.status.success(), "{}", ran.stderr);
    let agents = shown(&board, 80, &["agents"]);
    contains(line(&agents, "a "), &["working", "#1 do it"]);
    assert!(!agents.contains("human"), "{agents}");
}

#[test]
fn status_json_has_what_it_had_and_the_model() {
    let board = scene();
    let json: Value = serde_json::from_str(&shown(&board, 80, &["--json", "status"])).unwrap();
    assert_eq!((&json["total_tasks"], &json["queue"]["ready"]), (&json!(6), &json!(1)));
    assert_eq!(json["board"]["counts"]["total"], 6);
}

#[test]
fn tasks_are_ready_blocked_or_waiting_and_never_just_available() {
    let board = scene();
    let text = shown(&board, 120, &["tasks"]);
    assert!(!text.contains("available"), "{text}");
    contains(line(&text, "#4"), &["ready", "Title of next"]);
    contains(line(&text, "#5"), &["blocked by #1", "Title of behind"]);
    contains(line(&text, "#3"), &["waiting until "]);
    let listed = |option: &str| shown(&board, 120, &["tasks", option]);
    contains(&listed("--failed"), &["bad"]);
    assert_eq!(listed("--failed").lines().count(), 2);
    assert_eq!(listed("--blocked").lines().count(), 3);
    // Also where the list does not have what a task waits for.
    contains(line(&listed("--blocked"), "#5"), &["blocked by #1"]);
    let tree = shown(&board, 120, &["tree"]);
    contains(line(&tree, "#5"), &["blocked by #1", "Title of behind"]);
    contains(&listed("--graph"), &["flowchart TD"]);
    contains(&shown(&board, 120, &["tasks", "--graph", "dot"]), &["digraph"]);
}

#[test]
fn unregistered_agent_is_judged_as_a_new_one() {
    let board = scene();
    let explained =
        |agent: &str, task: &str| shown(&board, 120, &["--agent", agent, "explain", task]);
    contains(&explained("nora", "next"), &["claimable: now", "could be taken by: nora"]);
    contains(
        &explained("nora", "after"),
        &["it waits for work \"Title of work\", which is being done"],
    );
    contains(
        &explained("a1", "next"),
        &["a1 has no room: it holds 1 of 1: work \"Title of work\""],
    );
    board.cli_ok(
        "create_task",
        json!({"id": "gpu", "description": "d", "demands": {"capabilities": ["gpu"]}}),
    );
    contains(&explained("nora", "gpu"), &["nora has not what it demands: gpu"]);
}

#[test]
fn history_says_titles_and_what_was_before_and_leaves_noise_out() {
    let board = scene();
    board.cli_ok("update_task", json!({"task_id": "next", "priority": 1, "title": "Another"}));
    let text = shown(&board, 200, &["history", "--limit", "100"]);
    contains(
        &text,
        &[
            "changed #4 \"Another\": title Title of next → Another, priority 5 → 1",
            "a1 claimed #2 \"Title of work\", attempt 1",
            "failed #1 \"Title of bad\": no docs/book",
        ],
    );
    let utc = shown(&board, 200, &["history", "--utc", "--limit", "1"]);
    assert_eq!(utc.get(25..27), Some("Z "), "{utc}");
    let mut command = board.command();
    command.args(["history", "--limit", "1"]).env("TZ", "Asia/Tokyo");
    let tokyo = board.finish(&mut command).stdout;
    // Number, date and hour: within nine hours both may have the same date.
    assert_ne!(tokyo.get(..19), utc.get(..19), "{tokyo}");
}

#[test]
fn command_alone_is_the_status_if_there_is_a_board() {
    let board = Board::new();
    let Some(help) = on_a_terminal(&board, "") else { return };
    contains(&help, &["Usage:", "Start:", "Options of all commands:"]);
    let board = scene();
    contains(&on_a_terminal(&board, "").unwrap(), &["Port the parser", "WAITS FOR YOU"]);
    contains(&on_a_terminal(&board, "--version").unwrap(), &["callboard "]);
    let piped = board.finish(&mut board.command());
    assert_eq!(piped.status.code(), Some(0), "{}", piped.stderr);
    contains(&piped.stdout, &["Port the parser", "WAITS FOR YOU"]);
}

#[test]
fn status_is_shown_anew_when_something_happens() {
    let board = scene();
    let watch = Running::start(board.command().args(["--json", "status", "--watch"]));
    let total = |line: String| {
        serde_json::from_str::<Value>(&line).unwrap()["board"]["counts"]["total"].as_u64()
    };
    assert_eq!(total(watch.line()), Some(6));
    board.cli_ok("create_task", json!({"description": "one more"}));
    while total(watch.line()) != Some(7) {}
}

#[test]
fn texts_of_events_are_broken_between_words_on_a_terminal() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "a", "task_id": "t"}));
    let note = "word ".repeat(60);
    board.cli_ok("heartbeat", json!({"agent_id": "a", "note": note}));
    let Some(text) = on_a_terminal(&board, "--color never history --limit 1") else { return };
    let lines: Vec<_> = text.lines().filter(|line| line.contains("word")).collect();
    assert!(lines.len() > 1 || lines[0].matches("word").count() == 60, "{text}");
    let is_whole = |line: &&str| line.trim_end().ends_with("word");
    assert!(lines.iter().all(is_whole), "{text}");
}
