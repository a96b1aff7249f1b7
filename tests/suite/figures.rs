//! The report: how long tasks took and waited, how often they were tried, and who did them.

use callboard::state::time::{MINUTE, SECOND};
use serde_json::{Value, json};

use crate::harness::Board;
use crate::world::World;

const HOUR: i64 = 60 * MINUTE;

fn report(world: &mut World, asked: Value) -> Value {
    world.nobody().call("get_report", asked).expect("a report")
}

/// `t1` waits a minute and takes ten; `t2` follows it, fails once after two, waits and takes four.
fn worked() -> World {
    let mut world = World::new().agent("a1").agent("a2").task("t1");
    world.create("t2", json!({"dependencies": ["t1"], "path": "P1"}));
    world.at(MINUTE).claim("a1", "t1");
    world.at(10 * MINUTE).complete("a1", "t1");
    world.at(3 * MINUTE).claim("a2", "t2");
    world
        .at(2 * MINUTE)
        .by("a2")
        .call("fail_task", json!({"task_id": "t2", "error": "no"}))
        .expect("failed");
    world.at(HOUR).claim("a1", "t2");
    world.at(4 * MINUTE).complete("a1", "t2");
    world
}

#[test]
fn times_are_from_ready_to_claimed_and_from_claimed_to_done() {
    let mut world = worked();
    let report = report(&mut world, json!({}));
    assert_eq!(report["done"], 2);
    assert_eq!(
        report["tries"],
        json!({"done": 2, "failed": 1, "expired": 0, "released": 0, "cancelled": 0, "rejected": 0})
    );
    let seconds = |spread: &Value| {
        ["count", "median", "p90", "longest", "total"]
            .map(|name| spread[name].as_i64().unwrap_or(-1))
    };
    assert_eq!(seconds(&report["work"]), [2, 240, 600, 600, 840]);
    // The last waited for what is left of its backoff and for an agent.
    assert_eq!(seconds(&report["waiting"]), [3, 180, 3600, 3600, 60 + 180 + 3600]);
    let tasks = &report["tasks"]["rows"];
    assert_eq!(
        (&tasks[0]["id"], &tasks[0]["work"], &tasks[0]["tries"]),
        (&json!("t1"), &json!(600), &json!(1))
    );
    assert_eq!(
        (&tasks[1]["work"], &tasks[1]["tries"], &tasks[1]["agent"]),
        (&json!(360), &json!(2), &json!("a1"))
    );
    let agents = report["agents"].as_array().expect("a list");
    assert_eq!((&agents[0]["id"], &agents[0]["done"]), (&json!("a1"), &json!(2)));
    assert_eq!((&agents[1]["id"], &agents[1]["failed"]), (&json!("a2"), &json!(1)));
    let hours = report["hours"].as_array().expect("a list");
    assert_eq!(hours.iter().map(|hour| hour["done"].as_u64().unwrap_or_default()).sum::<u64>(), 2);
}

#[test]
fn a_report_is_of_a_scope_an_agent_or_a_time() {
    let mut world = worked();
    assert_eq!(report(&mut world, json!({"scope": "P1"}))["done"], 1);
    let of_a2 = report(&mut world, json!({"agent": "a2"}));
    assert_eq!((&of_a2["tries"]["failed"], &of_a2["tries"]["done"]), (&json!(1), &json!(0)));
    let since = (world.now - 10 * MINUTE).to_string();
    assert_eq!(report(&mut world, json!({"since": since}))["work"]["count"], 1);
    let later = (world.now + SECOND).to_string();
    let none = report(&mut world, json!({"since": later}));
    assert_eq!((&none["done"], &none["hours"]), (&json!(0), &json!([])));
    world.nobody().call("get_report", json!({"agent": "none"})).expect_err("no such agent");
}

#[test]
fn report_is_a_page_for_a_person() {
    let board = Board::new();
    let run = |arguments: &[&str]| {
        let finished = board.finish(board.command().args(arguments));
        assert!(finished.status.success(), "{}", finished.stderr);
        finished.stdout
    };
    assert!(run(&["report"]).contains("no agent has worked yet"));
    run(&["add", "Write the lexer", "--id", "lexer"]);
    run(&["--agent", "bob", "claim", "lexer"]);
    run(&["--agent", "bob", "complete", "lexer", "made"]);
    let text = run(&["report", "--of", "bob", "--since", "1h"]);
    for part in [
        "1 done since",
        "tries: 1 done",
        "median 0s",
        "bob",
        "#1",
        "Write the lexer",
        "DONE BY HOUR",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let json: Value = serde_json::from_str(&run(&["--json", "report"])).expect("JSON");
    assert_eq!(json["agents"][0]["id"], "bob");
}
