//! Agents that are paused, stopped and forgotten one by one.

use callboard::state::task::TaskStatus;
use callboard::state::time::{MINUTE, SECOND};
use serde_json::json;

use super::super::world::{Answered, World};

fn two() -> World {
    World::new().agent("a1").agent("a2").task("t1").task("t2")
}

#[test]
fn paused_agents_get_nothing_and_others_go_on() {
    let mut world = two();
    let pause = json!({"agents": ["a1"], "reason": "lunch"});
    world.nobody().call("pause", pause.clone()).expect("paused");
    let before = world.state.seq();
    world.nobody().call("pause", pause).expect("paused already");
    assert_eq!(world.state.seq(), before, "nothing new was recorded");
    let told = json!({"success": false, "verdict": "paused", "reason": "lunch",
        "message": "claims are paused for you"});
    world.by("a1").call("claim_task", json!({})).replies(told.clone());
    world.by("a1").call("claim_task", json!({"task_id": "t1"})).replies(told);
    world.by("a2").call("claim_task", json!({})).replies(json!({"success": true}));
    world.nobody().call("resume", json!({})).expect("of the board, which is not paused");
    world.by("a1").call("claim_task", json!({})).replies(json!({"verdict": "paused"}));
    world.nobody().call("resume", json!({"agents": ["a1"]})).expect("allowed");
    world.by("a1").call("claim_task", json!({})).replies(json!({"success": true}));
}

#[test]
fn stopped_agent_is_told_by_its_next_reply_and_gets_nothing_more() {
    let mut world = two().claimed("a1", "t1");
    let stop = json!({"agent": "a1", "reason": "wrong branch"});
    world.nobody().call("stop_agent", stop).replies(json!({"asked": ["t1"], "present": false}));
    let asked = |world: &World| {
        let agent = world.state.agent(&"a1".into()).expect("an agent");
        agent.stop_asked().map(|(pause, heard)| (pause.reason.clone(), heard))
    };
    assert_eq!(asked(&world), Some((Some("wrong branch".to_owned()), false)));
    world.at(2 * SECOND);
    let told = json!({"stop_requested": [{"task": "t1", "reason": "wrong branch"}]});
    world.by("a1").call("heartbeat", json!({})).replies(told);
    assert_eq!(asked(&world), Some((Some("wrong branch".to_owned()), true)));
    world.by("a1").call("release_task", json!({"task_id": "t1"})).expect("released");
    assert_eq!(world.status("t1"), TaskStatus::Available);
    let none = json!({"verdict": "paused", "message": "you are asked to stop"});
    world.by("a1").call("claim_task", json!({})).replies(none);
    world.nobody().call("resume", json!({"agents": ["a1"]})).expect("it may go on");
    world.by("a1").call("claim_task", json!({})).replies(json!({"success": true}));
}

#[test]
fn stop_now_releases_at_once_and_resume_takes_a_request_back() {
    let mut world = two().claimed("a1", "t1");
    world.nobody().call("stop_agent", json!({"agent": "a1"})).expect("asked");
    assert!(world.read("t1").stop_requested.is_some());
    world.nobody().call("resume", json!({"agents": ["a1"]})).expect("taken back");
    assert!(world.read("t1").stop_requested.is_none());
    let now = json!({"agent": "a1", "now": true});
    world.nobody().call("stop_agent", now).replies(json!({"asked": []}));
    assert_eq!(world.status("t1"), TaskStatus::Available);
    world
        .by("a1")
        .call("complete_task", json!({"task_id": "t1", "output": "x"}))
        .refuses("attempt_over");
}

#[test]
fn a_task_that_was_to_be_cancelled_when_its_agent_stops_still_is() {
    let mut world = two().claimed("a1", "t1");
    let ask = json!({"task_id": "t1", "ask_owner": true});
    world.nobody().call("cancel_task", ask).expect("asked");
    world.nobody().call("stop_agent", json!({"agent": "a1", "now": true})).expect("stopped");
    assert_eq!(world.status("t1"), TaskStatus::Cancelled);
}

#[test]
fn only_leaders_steer_and_only_known_agents() {
    let mut world = two();
    for (name, call) in [
        ("pause", json!({"agents": ["a2"]})),
        ("resume", json!({"agents": ["a2"]})),
        ("stop_agent", json!({"agent": "a2"})),
        ("forget_agent", json!({"agent": "a2"})),
    ] {
        world.by("a1").call(name, call).refuses("not_leader");
        let unknown = json!({"agents": ["none"]});
        let of_one = json!({"agent": "none"});
        let unknown = if name.ends_with("_agent") { of_one } else { unknown };
        world.nobody().call(name, unknown).refuses("unknown_agent");
    }
}

#[test]
fn agents_are_forgotten_unless_they_hold_something_or_are_here() {
    let mut world = two().claimed("a1", "t1");
    world.nobody().call("forget_agent", json!({"agent": "a1"})).refuses("agent_stays");
    world.nobody().call("forget_agent", json!({"agent": "human"})).refuses("unknown_agent");
    world.nobody().call("forget_agent", json!({"agent": "a2"})).expect("forgotten");
    assert!(world.state.agent(&"a2".into()).is_none());
    let file = json!({"files": ["a.rs"]});
    world.by("a1").call("complete_task", json!({"task_id": "t1", "output": "x"})).expect("done");
    world.by("a1").call("reserve_files", file).expect("reserved");
    world.nobody().call("forget_agent", json!({"agent": "a1"})).refuses("agent_stays");
}

#[test]
fn tasks_are_found_by_number_and_keep_it() {
    let mut world = two();
    world.nobody().call("create_task", json!({"description": "third", "id": "x3"})).expect("made");
    let find = |what: &str| json!({"references": [what]});
    for (given, id) in [("2", "t2"), ("#3", "x3"), ("third", "x3")] {
        world.call("find_tasks", find(given)).replies(json!({"tasks": [{"id": id}]}));
    }
    world.call("find_tasks", find("four")).refuses("unknown_task");
    world.call("find_tasks", find("a b")).refuses("unknown_task");
    assert_eq!(world.read("x3").number, Some(3));
    let several = json!({"references": ["four", "x3", "t", "t2"], "known_only": true});
    let known = json!({"tasks": [{"id": "x3"}, {"id": "t2"}]});
    world.call("find_tasks", several.clone()).replies(known);
    let all = json!({"references": several["references"]});
    world.call("find_tasks", all).refuses("unknown_task");
}

#[test]
fn a_task_is_kept_for_an_agent_until_it_claims_or_the_time_is_over() {
    let mut world = two();
    let keep = json!({"task_id": "t2", "to": "a2", "minutes": 10});
    world
        .nobody()
        .call("assign_task", keep)
        .replies(json!({"ready": true, "kept_for": {"agent": "a2"}}));
    world.by("a1").call("claim_task", json!({"task_id": "t2"})).refuses("kept_for_other");
    world.by("a1").call("claim_task", json!({})).replies(json!({"task": {"id": "t1"}}));
    world.by("a1").call("complete_task", json!({"task_id": "t1", "output": "x"})).expect("done");
    let none = world.by("a1").call("claim_task", json!({})).expect("a reply");
    assert_eq!((&none["verdict"], &none["kept_for_others"]), (&json!("wait"), &json!(1)), "{none}");
    assert!(
        none["message"].as_str().is_some_and(|text| text.contains("1 kept for other")),
        "{none}"
    );
    assert_eq!(world.state.next_deadline(), Some(world.now + 10 * MINUTE));
    world.at(10 * MINUTE);
    assert_eq!(world.count_of("task_opened"), 1);
    world.by("a1").call("claim_task", json!({})).replies(json!({"task": {"id": "t2"}}));
}

#[test]
fn an_agent_is_given_first_what_is_kept_for_it() {
    let mut world = two();
    world.create("late", json!({"priority": 9}));
    world.nobody().call("assign_task", json!({"task_id": "late", "to": "a2"})).expect("kept");
    world.by("a2").call("claim_task", json!({})).replies(json!({"task": {"id": "late"}}));
    assert_eq!(world.read("late").kept_for, None);
    let held = json!({"task_id": "late", "to": "a1"});
    world.nobody().call("assign_task", held).refuses("wrong_status");
    world.nobody().call("assign_task", json!({"task_id": "t1", "to": "a1"})).expect("kept");
    world.nobody().call("assign_task", json!({"task_id": "t1"})).expect("open to all");
    world.by("a2").call("complete_task", json!({"task_id": "late", "output": "x"})).expect("done");
    world.by("a2").call("claim_task", json!({})).replies(json!({"task": {"id": "t1"}}));
    let long = json!({"task_id": "t2", "to": "a1", "minutes": 1441});
    world.nobody().call("assign_task", long).expect("the longest time");
    world.nobody().call("assign_task", json!({"task_id": "t2"})).expect("open to all");
    let unknown = json!({"task_id": "t2", "to": "none"});
    world.nobody().call("assign_task", unknown).refuses("unknown_agent");
    world.by("a1").call("assign_task", json!({"task_id": "t2", "to": "a1"})).refuses("not_leader");
}
