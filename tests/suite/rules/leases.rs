//! Leases: presence, renewal, death, and clocks that jump.

use callboard::ops::Fetched;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::task::TaskStatus;
use callboard::state::time::{MINUTE, SECOND};
use serde_json::json;

use super::super::world::{Answered, World};
use super::HOUR;

#[test]
fn lease_without_presence_lasts_lease_minutes() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    assert_eq!(world.lease("t"), 30 * MINUTE);
    world.at(30 * MINUTE - 1);
    assert_eq!(world.status("t"), TaskStatus::Claimed);
    world.at(1);
    assert_eq!(world.status("t"), TaskStatus::Available);
    assert_eq!(world.read("t").claimed_by, None);
}

#[test]
fn lease_with_presence_lasts_silent_minutes_and_the_agent_is_shown_as_quiet() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    assert_eq!(world.lease("t"), 240 * MINUTE);
    world.at(30 * MINUTE).call("get_status", json!({})).replies(json!({"quiet": null}));
    world.at(1).call("get_status", json!({})).replies(json!({"quiet": ["a1"]}));
    world
        .call("get_agents", json!({}))
        .replies(json!({"agents": [{"id": "a1", "quiet": true, "present": true}]}));
    world.at(210 * MINUTE - 2);
    assert_eq!(world.status("t"), TaskStatus::Claimed);
    world.at(1);
    assert_eq!(world.status("t"), TaskStatus::Available);
}

#[test]
fn any_call_that_names_the_agent_renews_its_leases() {
    let calls = [
        ("heartbeat", json!({})),
        ("add_discovery", json!({"content": "x"})),
        ("claim_task", json!({})),
        ("start_task", json!({"task_id": "t"})),
        ("start_task", json!({"task_id": "nope"})),
        ("register_agent", json!({"role": "worker"})),
        ("cancel_task", json!({"task_id": "t"})),
    ];
    for (name, arguments) in calls {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world.at(29 * MINUTE);
        drop(world.by("a1").call(name, arguments));
        assert_eq!(world.lease("t"), 30 * MINUTE, "after {name}");
    }
}

#[test]
fn calls_in_quick_succession_record_no_renewal() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    world.call("start_task", json!({"task_id": "t"})).expect("started");
    let seq = world.state.seq();
    for _ in 0..5 {
        world.at(SECOND).call("claim_task", json!({})).replies(json!({"success": false}));
    }
    assert_eq!(world.state.seq(), seq);
}

#[test]
fn sign_of_life_is_recorded_after_twenty_seconds_or_when_a_tenth_of_a_lease_has_passed() {
    let records = |world: &mut World, after: i64| {
        let seq = world.state.seq();
        drop(world.at(after).call("start_task", json!({"task_id": "nope"})));
        world.state.seq() > seq
    };
    let mut idle = World::new().agent("a1");
    assert!(!records(&mut idle, 20 * SECOND - 1));
    assert!(records(&mut idle, 1));
    let mut at_work = World::new().agent_in("a1", "ide").task("t");
    at_work
        .nobody()
        .call("update_task", json!({"task_id": "t", "silent_minutes": 2}))
        .expect("updated");
    at_work.claim("a1", "t");
    assert!(!records(&mut at_work, 12 * SECOND));
    assert!(records(&mut at_work, 1));
}

#[test]
fn agent_that_acts_every_half_second_keeps_its_lease() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    for step in 0..4_000 {
        world
            .at(SECOND / 2)
            .call("add_discovery", json!({"content": format!("x{step}")}))
            .expect("added");
    }
    assert_eq!(world.status("t"), TaskStatus::Claimed);
}

#[test]
fn task_may_say_its_own_silence_and_bound() {
    let mut world = World::new().agent_in("a1", "ide").task("t").task("u");
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "silent_minutes": 600}))
        .expect("updated");
    world
        .nobody()
        .call("update_task", json!({"task_id": "u", "timeout_seconds": 600}))
        .expect("updated");
    world.claim("a1", "t");
    assert_eq!(world.lease("t"), 600 * MINUTE);
    world.complete("a1", "t");
    world.claim("a1", "u");
    assert_eq!(world.lease("u"), 10 * MINUTE);
    world.at(9 * MINUTE).by("a1").call("heartbeat", json!({"task_id": "u"})).expect("alive");
    assert_eq!(world.lease("u"), MINUTE, "whatever the agent says");
    world.at(MINUTE);
    assert_eq!(world.status("u"), TaskStatus::Available);
}

#[test]
fn silence_and_bound_that_a_leader_changes_count_at_once() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    let set = |world: &mut World, more| world.nobody().call("update_task", more).expect("updated");
    world.at(MINUTE);
    set(&mut world, json!({"task_id": "t", "timeout_seconds": 600}));
    assert_eq!(world.lease("t"), 9 * MINUTE, "since the claim");
    set(&mut world, json!({"task_id": "t", "timeout_seconds": 86_400}));
    assert_eq!(world.lease("t"), 239 * MINUTE, "the agent was not heard of since");
    set(&mut world, json!({"task_id": "t", "silent_minutes": 10}));
    assert_eq!(world.lease("t"), 9 * MINUTE);
    set(&mut world, json!({"task_id": "t", "priority": 2}));
    assert_eq!(world.lease("t"), 9 * MINUTE);
    world.at(9 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available);
}

#[test]
fn agent_of_a_dead_process_has_the_grace_to_come_back() {
    let dead = || {
        let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
        world.at(MINUTE).kill("ide");
        assert!(world.agents_present().is_empty());
        assert_eq!(world.lease("t"), MINUTE);
        world
    };
    let mut world = dead();
    world.at(MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available);
    let mut world = dead();
    world.lives_in("a1", "restarted");
    world.at(59 * SECOND).by("a1").call("heartbeat", json!({})).expect("alive");
    assert_eq!(world.lease("t"), 240 * MINUTE);
    let mut world = dead();
    world.at(59 * SECOND).by("a1").call("heartbeat", json!({})).expect("alive");
    assert_eq!(world.lease("t"), 30 * MINUTE, "by a one-shot command");
}

#[test]
fn agent_that_acts_in_the_second_after_its_process_died_keeps_its_task() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world
        .at(100)
        .kill("ide")
        .at(100)
        .by("a1")
        .call("start_task", json!({"task_id": "t"}))
        .expect("started");
    world.at(2 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::InProgress);
}

#[test]
fn agent_is_present_while_any_of_its_processes_lives() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.by("a1").through("second").call("heartbeat", json!({})).expect("alive");
    world.kill("ide").at(2 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Claimed);
    world.kill("second").at(MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available);
}

#[test]
fn clock_step_moves_deadlines_and_its_expiries_do_not_count() {
    let mut world =
        World::new().agent("a1").task_with("t", json!({"max_attempts": 1})).claimed("a1", "t");
    world.at(25 * MINUTE).sleeps(8 * HOUR);
    assert_eq!(world.lease("t"), 10 * MINUTE, "the rest was less than the grace");
    world.at(10 * MINUTE);
    assert_eq!((world.status("t"), world.read("t").attempts_used()), (TaskStatus::Available, 0));
    world.claim("a1", "t");
    world.sleeps(8 * HOUR);
    assert_eq!(world.lease("t"), 30 * MINUTE);
    world.at(MINUTE).by("a1").call("heartbeat", json!({})).expect("alive");
    world.at(30 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Failed, "once renewed, an expiry counts");
}

#[test]
fn process_found_dead_after_a_clock_step_has_the_grace_of_the_step() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.sleeps(HOUR).kill("ide");
    assert_eq!(world.lease("t"), 10 * MINUTE);
}

#[test]
fn timeout_of_an_attempt_does_not_run_while_the_machine_sleeps() {
    let mut world = World::new().agent_in("a1", "ide").task("t");
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "timeout_seconds": 3_600}))
        .expect("updated");
    world.claim("a1", "t");
    world.at(10 * MINUTE).sleeps(8 * HOUR);
    assert_eq!(world.lease("t"), 50 * MINUTE);
    world.at(MINUTE).by("a1").call("start_task", json!({"task_id": "t"})).expect("started");
    assert_eq!(world.lease("t"), 49 * MINUTE);
    world.at(SECOND);
    assert_eq!(world.status("t"), TaskStatus::InProgress);
}

#[test]
fn death_of_a_process_lengthens_no_lease() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.at(240 * MINUTE - SECOND).kill("ide");
    assert_eq!(world.lease("t"), SECOND);
}

#[test]
fn silence_and_bound_count_at_once_whatever_the_agent_has_done_since() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.at(SECOND).by("a1").call("start_task", json!({"task_id": "t"})).expect("started");
    world
        .at(SECOND)
        .nobody()
        .call("update_task", json!({"task_id": "t", "timeout_seconds": 60}))
        .expect("updated");
    assert_eq!(world.lease("t"), 58 * SECOND);
    world
        .by("a1")
        .call("update_task", json!({"task_id": "t", "timeout_seconds": 86_400}))
        .expect("updated");
    world
        .by("a1")
        .call("update_task", json!({"task_id": "t", "silent_minutes": 600}))
        .expect("updated");
    assert_eq!(world.lease("t"), 600 * MINUTE);
}

#[test]
fn a_leader_lengthens_no_lease_of_a_process_that_has_died() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.kill("ide");
    let grace = world.lease("t");
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "silent_minutes": 60}))
        .expect("updated");
    assert_eq!(world.lease("t"), grace);
    world
        .by("a1")
        .call("update_task", json!({"task_id": "t", "timeout_seconds": 36_000}))
        .expect("updated");
    assert!(world.lease("t") > grace, "its agent goes on without a process");
}

#[test]
fn a_leader_who_lengthens_a_task_takes_no_grace_away() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.at(2 * HOUR).kill("ide");
    let grace = world.lease("t");
    for span in [json!({"silent_minutes": 600}), json!({"timeout_seconds": 36_000})] {
        let mut update = json!({"task_id": "t"});
        update
            .as_object_mut()
            .expect("an object")
            .extend(span.as_object().expect("an object").clone());
        world.nobody().call("update_task", update).expect("updated");
        assert_eq!((world.lease("t"), world.status("t")), (grace, TaskStatus::Claimed));
    }
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "timeout_seconds": 60}))
        .expect("updated");
    assert_eq!(world.at(1).status("t"), TaskStatus::Available, "its time is up");
}

#[test]
fn whoever_polls_through_a_second_process_keeps_what_is_held_through_the_first() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 3})).task("t");
    world.lives_in("a1", "first");
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "silent_minutes": 1}))
        .expect("updated");
    world.by("a1").call("claim_task", json!({"task_id": "t"})).expect("claimed");
    world.by("a1").call("start_task", json!({"task_id": "t"})).expect("started");
    for _ in 0..6 {
        world
            .at(20 * SECOND)
            .nobody()
            .through("second")
            .call("claim_task", json!({"agent_id": "a1"}))
            .expect("asked");
    }
    assert_eq!(world.status("t"), TaskStatus::InProgress);
}

#[test]
fn a_late_result_is_not_taken_for_a_task_that_was_reset_or_waits_again() {
    let after = [
        ("reset_tasks", json!({"task_id": "t"})),
        ("update_task", json!({"task_id": "t", "dependencies": ["u"]})),
    ];
    for (operation, arguments) in after {
        let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
        world.at(30 * MINUTE);
        world.fetched = Fetched::Taken(Listed {
            name: SnapshotName::new(world.now, "0123abcd"),
            bytes: 1,
            head: None,
        });
        world.nobody().call(operation, arguments).expect("the leader wants it otherwise");
        world
            .by("a1")
            .call("complete_task", json!({"task_id": "t", "output": "late"}))
            .refuses("attempt_over");
        assert_eq!(world.status("t"), TaskStatus::Available, "{operation}");
        assert!(world.attempt("t").late_result.is_some(), "{operation}: it is kept");
    }
}

#[test]
fn a_heartbeat_names_no_attempt_that_is_not_held_and_says_when_its_note_is_lost() {
    let mut world = World::new().agent("a1").task("t");
    world.call("heartbeat", json!({})).replies(json!({"warning": null}));
    let reply = world
        .call("heartbeat", json!({"note": "half way"}))
        .replies(json!({"success": true, "task_id": null}));
    assert!(
        reply["warning"].as_str().is_some_and(|warning| warning.contains("not kept")),
        "{reply}"
    );
    assert!(
        world
            .call("heartbeat", json!({"attempt": 1}))
            .refuses("holds_nothing")
            .contains("claim_task")
    );
    world.claim("a1", "t");
    world.at(30 * MINUTE);
    world.claim("a1", "t");
    world.by("a1").call("heartbeat", json!({"attempt": 1, "note": "old"})).refuses("attempt_over");
    let current = json!({"attempt": 2, "note": "new"});
    world.call("heartbeat", current).replies(json!({"task_id": "t", "warning": null}));
    assert_eq!(world.attempt("t").note.as_deref(), Some("new"));
}

#[test]
fn a_result_kept_after_the_last_attempt_is_taken_once_the_task_is_retried() {
    let mut world =
        World::new().agent("a1").task_with("t", json!({"max_attempts": 1})).claimed("a1", "t");
    world.at(30 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Failed);
    let late = json!({"task_id": "t", "output": "late"});
    let message = world.by("a1").call("complete_task", late.clone()).refuses("attempt_over");
    for part in ["not taken, but kept", "get_task", "retry_task", "complete_task again is taken"] {
        assert!(message.contains(part), "{message}");
    }
    world.nobody().call("retry_task", json!({"task_id": "t"})).expect("a leader wants it");
    world.by("a1").call("complete_task", late).replies(json!({"success": true}));
    assert_eq!(world.status("t"), TaskStatus::Done);
}

#[test]
fn a_heartbeat_names_the_task_that_it_was_for() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 2})).task("t").task("u");
    world.claim("a1", "t");
    world.at(30 * MINUTE);
    for task in ["t", "u"] {
        world.claim("a1", task);
    }
    let older = json!({"attempt": 2, "note": "half way"});
    world.by("a1").call("heartbeat", older).replies(json!({"task_id": "t"}));
    assert_eq!(world.attempt("t").note.as_deref(), Some("half way"));
    world.call("heartbeat", json!({"note": "begun"})).replies(json!({"task_id": "u"}));
    world.call("heartbeat", json!({})).replies(json!({"task_id": "u"}));
}
