//! Ready tasks whose priority rises while they wait.

use callboard::state::policy::Policy;
use callboard::state::time::MINUTE;
use serde_json::json;

use crate::world::{Answered, World};

/// A board whose ready tasks rise by one for every ten minutes, with agents for any number of
/// claims.
fn rising() -> World {
    let world = World::with_policy(Policy { aging_minutes: 10, ..Policy::default() });
    world
        .agent_with("lead", json!({"role": "leader"}))
        .agent_with("a1", json!({"max_concurrent": 50}))
}

fn with(world: &mut World, id: &str, priority: u8) {
    world.create(id, json!({"priority": priority}));
}

/// The tasks that claims give, first to last.
fn claims(world: &mut World, count: usize) -> Vec<String> {
    let mut claimed = Vec::new();
    for _ in 0..count {
        let reply = world.by("a1").call("claim_task", json!({})).replies(json!({"success": true}));
        let id = reply["task"]["id"].as_str().expect("a task was claimed").to_owned();
        world.call("start_task", json!({"task_id": id})).replies(json!({"success": true}));
        claimed.push(id);
    }
    claimed
}

fn shown(world: &mut World, id: &str) -> Option<u64> {
    world.call("get_task", json!({"task_id": id})).expect("it is there")["effective_priority"]
        .as_u64()
}

#[test]
fn a_task_that_waits_passes_newer_ones_of_higher_priority() {
    let mut world = rising();
    with(&mut world, "old", 5);
    world.at(31 * MINUTE);
    for (id, priority) in [("urgent", 1), ("second", 2), ("third", 3)] {
        with(&mut world, id, priority);
    }
    assert_eq!(shown(&mut world, "old"), Some(2));
    assert_eq!(shown(&mut world, "urgent"), None, "it is what was stated");
    assert_eq!(claims(&mut world, 4), ["urgent", "old", "second", "third"]);
}

#[test]
fn none_rises_where_it_is_not_asked_for() {
    let mut world = rising();
    world.policy.aging_minutes = 0;
    with(&mut world, "old", 5);
    world.at(10_000 * MINUTE);
    with(&mut world, "new", 4);
    assert_eq!(shown(&mut world, "old"), None);
    assert_eq!(claims(&mut world, 2), ["new", "old"]);
}

#[test]
fn at_the_highest_priority_those_come_first_that_reached_it_first() {
    let mut world = rising();
    with(&mut world, "nine", 9);
    world.at(50 * MINUTE);
    with(&mut world, "two", 2);
    world.at(200 * MINUTE);
    with(&mut world, "one", 1);
    assert_eq!([shown(&mut world, "nine"), shown(&mut world, "two")], [Some(1), Some(1)]);
    assert_eq!(claims(&mut world, 3), ["two", "nine", "one"]);
}

#[test]
fn waiting_counts_from_when_the_task_could_be_claimed() {
    let mut world = rising();
    with(&mut world, "first", 1);
    world.create("after", json!({"priority": 5, "dependencies": ["first"]}));
    world.at(60 * MINUTE);
    with(&mut world, "released", 1);
    assert_eq!(claims(&mut world, 2), ["first", "released"]);
    assert_eq!(shown(&mut world, "after"), None, "it is not ready");
    world.complete("a1", "first");
    world
        .by("a1")
        .call("release_task", json!({"task_id": "released"}))
        .replies(json!({"success": true}));
    world
        .by("lead")
        .call("update_task", json!({"task_id": "released", "priority": 5}))
        .replies(json!({"success": true}));
    world.at(21 * MINUTE);
    assert_eq!([shown(&mut world, "after"), shown(&mut world, "released")], [Some(3), Some(3)]);
    let explained = world.call("explain_task", json!({"task_id": "after"})).expect("it is there");
    assert_eq!((&explained["priority"], &explained["effective_priority"]), (&json!(5), &json!(3)));
    assert_eq!(claims(&mut world, 1), ["after"], "what an agent gave up it is given last");
    assert_eq!(shown(&mut world, "after"), None, "a held task does not rise");
}

#[test]
fn a_changed_policy_orders_the_ready_tasks_anew() {
    let mut world = rising();
    with(&mut world, "old", 4);
    world.at(25 * MINUTE);
    with(&mut world, "new", 3);
    for (minutes, first) in [(0, "new"), (10, "old"), (100, "new"), (1, "old")] {
        world.policy.aging_minutes = minutes;
        world.tick();
        world.check();
        assert_eq!(world.state.ready_in_order()[0].id.as_str(), first, "by {minutes} minutes");
    }
    assert_eq!(claims(&mut world, 2), ["old", "new"]);
}

#[test]
fn ties_are_broken_by_age_and_free_files_are_preferred_among_equals() {
    let mut world = rising().agent("a2");
    world.create("held", json!({"priority": 1, "context_files": ["src/a.rs"]}));
    world.claim("a2", "held");
    for id in ["same-1", "same-2"] {
        world.create(id, json!({"priority": 5}));
    }
    world.create("busy", json!({"priority": 4, "context_files": ["src/a.rs"]}));
    world.at(10 * MINUTE);
    world.create("new", json!({"priority": 3}));
    // `busy` has risen to 3: its files are held, so one of equal priority goes first.
    assert_eq!(claims(&mut world, 4), ["new", "busy", "same-1", "same-2"]);
}
