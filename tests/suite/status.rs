//! What a person sees first: the model of it, and `callboard status`.

use serde_json::{Value, json};

use super::harness::Board;

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
