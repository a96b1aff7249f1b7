//! Estimated and actual durations.

use callboard::state::task::TaskStatus;
use callboard::state::time::MINUTE;
use serde_json::json;

use super::super::world::{Answered, World};

#[test]
fn what_is_left_is_the_sum_of_unfinished_estimates() {
    let mut world = World::new().agent("a1");
    for (id, path, minutes) in
        [("p", "P1", Some(500)), ("a", "P1.M1", Some(30)), ("b", "P1.M2", None)]
    {
        world.create(id, json!({"path": path, "estimated_minutes": minutes}));
    }
    world.create("c", json!({"path": "P2", "estimated_minutes": 45}));
    let status =
        |world: &mut World, scope| world.nobody().call("get_status", json!({"scope": scope}));
    status(&mut world, None).replies(json!({"remaining": {"minutes": 75, "tasks": 2}}));
    status(&mut world, Some("P1")).replies(json!({"remaining": {"minutes": 30, "tasks": 1}}));
    world.claim("a1", "a");
    status(&mut world, Some("P1")).replies(json!({"remaining": {"minutes": 30, "tasks": 1}}));
    world.complete("a1", "a");
    status(&mut world, Some("P1")).replies(json!({"remaining": null}));
    status(&mut world, None).replies(json!({"remaining": {"minutes": 45, "tasks": 1}}));
    world.nobody().call("cancel_task", json!({"task_id": "c"})).expect("cancelled");
    status(&mut world, None).replies(json!({"remaining": null}));
    world.nobody().call("retry_task", json!({"task_id": "c"})).expect("tried again");
    status(&mut world, None).replies(json!({"remaining": {"minutes": 45, "tasks": 1}}));
}

#[test]
fn an_estimate_is_changed_and_removed() {
    let mut world = World::new().task_with("t", json!({"estimated_minutes": 20}));
    for (given, kept) in [(Some(35), Some(35)), (None, Some(35)), (Some(0), None)] {
        let change = json!({"task_id": "t", "priority": 2, "estimated_minutes": given});
        world
            .nobody()
            .call("update_task", change)
            .replies(json!({"task": {"estimated_minutes": kept}}));
        assert_eq!(world.read("t").estimated_minutes, kept);
    }
    let task = json!({"description": "d", "estimated_minutes": 0});
    let error = world.nobody().call("create_task", task).expect_err("refused").to_string();
    assert!(error.contains("estimated_minutes"), "{error}");
}

#[test]
fn a_claim_says_the_estimate_and_all_attempts_make_the_actual_duration() {
    let mut world = World::new().agent("a1").task_with("t", json!({"estimated_minutes": 20}));
    let took = |world: &mut World, minutes: Option<u64>| {
        world
            .nobody()
            .call("get_task", json!({"task_id": "t"}))
            .replies(json!({"actual_minutes": minutes}));
    };
    took(&mut world, None);
    let claim = world.by("a1").call("claim_task", json!({}));
    claim.replies(json!({"task": {"estimated_minutes": 20}}));
    world.at(4 * MINUTE);
    world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
    took(&mut world, Some(4));
    world.claim("a1", "t");
    world.at(25 * MINUTE);
    took(&mut world, Some(4));
    world.complete("a1", "t");
    assert_eq!(world.status("t"), TaskStatus::Done);
    took(&mut world, Some(29));
}

#[test]
fn a_plan_s_new_estimate_changes_only_that() {
    let plan =
        |estimate: &str| json!({"text": format!("- [ ] Write it\n{estimate}- [ ] Test it\n")});
    let mut world = World::new().agent("a1");
    let import = |world: &mut World, estimate: &str| {
        world.nobody().call("import_plan", plan(estimate)).expect("it fits")
    };
    import(&mut world, "  estimate: 1h\n");
    let id = world.next("a1")["task"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(world.read(&id).estimated_minutes, Some(60));
    world.complete("a1", &id);
    let reply = import(&mut world, "  estimate: 2h\n");
    assert_eq!(
        (reply["modified"][0]["task"].as_str(), reply["kept"].as_u64()),
        (Some(id.as_str()), Some(1))
    );
    assert_eq!(
        (world.read(&id).estimated_minutes, world.status(&id)),
        (Some(120), TaskStatus::Done)
    );
    let json = world.nobody().call("export_plan", json!({"format": "json"})).expect("exported");
    assert_eq!(json["json"]["items"][0]["estimated_minutes"], 120);
    let markdown = world.nobody().call("export_plan", json!({})).expect("exported");
    assert!(
        markdown["markdown"].as_str().is_some_and(|text| text.contains("estimate: 2h")),
        "{markdown}"
    );
    import(&mut world, "");
    assert_eq!(world.read(&id).estimated_minutes, None);
    assert_eq!(import(&mut world, "")["unchanged"], true);
}
