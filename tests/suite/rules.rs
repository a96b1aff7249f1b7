//! Rules of the board, one fact per test; here the state machine and late results.

mod agents;
mod aging;
mod brought;
mod calls;
mod changes;
mod claims;
mod edited_plans;
mod estimates;
mod hierarchy;
mod identity;
mod invariants;
mod leases;
mod own_work;
mod past;
mod reviews;
mod several_plans;
mod steering;
mod undo;

use callboard::ops::Fetched;
use callboard::state::policy::Policy;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::task::{Outcome, TaskStatus};
use callboard::state::time::{MINUTE, SECOND};
use serde_json::json;

use super::world::{Answered, World};

const HOUR: i64 = 60 * MINUTE;

/// A task `t` in the given status, with a worker, another agent and a leader.
fn one_of_each(status: &str) -> World {
    let mut world = World::new()
        .agent_with("lead", json!({"role": "leader"}))
        .agent("other")
        .agent("a1")
        .task_with("t", json!({"review": Some("required").filter(|_| status == "review")}));
    if !matches!(status, "available" | "obsolete") {
        world.claim("a1", "t");
    }
    match status {
        "in_progress" => drop(world.call("start_task", json!({"task_id": "t"}))),
        "done" | "review" => drop(world.complete("a1", "t")),
        "failed" => drop(
            world.call("fail_task", json!({"task_id": "t", "error": "broken", "retryable": false})),
        ),
        "cancelled" => drop(world.by("lead").call("cancel_task", json!({"task_id": "t"}))),
        _ => {}
    }
    assert_eq!(world.status("t").as_str(), status);
    world
}

/// The whole state machine: for each status, operation and caller, the status after it, or `!` and
/// the refusal's code.
const MACHINE: &[(&str, &str, &str, &str)] = &[
    ("available", "claim_task", "a1", "claimed"),
    ("available", "start_task", "a1", "!not_held"),
    ("available", "complete_task", "a1", "!not_held"),
    ("available", "fail_task", "a1", "!not_held"),
    ("available", "release_task", "a1", "!not_held"),
    ("available", "release_task", "lead", "!not_held"),
    ("available", "cancel_task", "lead", "cancelled"),
    ("available", "cancel_task", "a1", "!not_leader"),
    ("available", "retry_task", "lead", "available"),
    ("available", "retry_task", "a1", "!not_leader"),
    ("available", "update_task", "lead", "available"),
    ("available", "update_task", "a1", "!not_held"),
    ("claimed", "claim_task", "other", "!held_by_other"),
    ("claimed", "start_task", "a1", "in_progress"),
    ("claimed", "start_task", "other", "!held_by_other"),
    ("claimed", "complete_task", "a1", "done"),
    ("claimed", "complete_task", "other", "!held_by_other"),
    ("claimed", "fail_task", "a1", "available"),
    ("claimed", "fail_task", "other", "!held_by_other"),
    ("claimed", "release_task", "a1", "available"),
    ("claimed", "release_task", "lead", "available"),
    ("claimed", "release_task", "other", "!held_by_other"),
    ("claimed", "cancel_task", "lead", "cancelled"),
    ("claimed", "cancel_task", "a1", "!not_leader"),
    ("claimed", "retry_task", "lead", "!wrong_status"),
    ("claimed", "update_task", "a1", "claimed"),
    ("claimed", "update_task", "other", "!held_by_other"),
    ("in_progress", "claim_task", "other", "!held_by_other"),
    ("in_progress", "start_task", "a1", "in_progress"),
    ("in_progress", "start_task", "other", "!held_by_other"),
    ("in_progress", "complete_task", "a1", "done"),
    ("in_progress", "complete_task", "other", "!held_by_other"),
    ("in_progress", "fail_task", "a1", "available"),
    ("in_progress", "fail_task", "other", "!held_by_other"),
    ("in_progress", "release_task", "a1", "available"),
    ("in_progress", "release_task", "lead", "available"),
    ("in_progress", "release_task", "other", "!held_by_other"),
    ("in_progress", "cancel_task", "lead", "cancelled"),
    ("in_progress", "cancel_task", "other", "!not_leader"),
    ("in_progress", "retry_task", "lead", "!wrong_status"),
    ("in_progress", "update_task", "a1", "in_progress"),
    ("in_progress", "update_task", "other", "!held_by_other"),
    ("review", "claim_task", "a1", "!wrong_status"),
    ("review", "start_task", "a1", "!not_held"),
    ("review", "complete_task", "a1", "review"),
    ("review", "complete_task", "other", "!not_held"),
    ("review", "fail_task", "a1", "!not_held"),
    ("review", "release_task", "a1", "!not_held"),
    ("review", "release_task", "lead", "!not_held"),
    ("review", "cancel_task", "lead", "cancelled"),
    ("review", "cancel_task", "a1", "!not_leader"),
    ("review", "retry_task", "lead", "!wrong_status"),
    ("review", "update_task", "lead", "review"),
    ("review", "update_task", "a1", "!not_held"),
    ("review", "approve_task", "other", "done"),
    ("review", "approve_task", "a1", "!own_work"),
    ("review", "reject_task", "other", "available"),
    ("available", "approve_task", "lead", "!wrong_status"),
    ("claimed", "approve_task", "lead", "!wrong_status"),
    ("in_progress", "reject_task", "lead", "!wrong_status"),
    ("done", "approve_task", "lead", "!wrong_status"),
    ("failed", "reject_task", "lead", "!wrong_status"),
    ("cancelled", "approve_task", "lead", "!wrong_status"),
    ("done", "claim_task", "a1", "!wrong_status"),
    ("done", "start_task", "a1", "!not_held"),
    ("done", "complete_task", "a1", "done"),
    ("done", "complete_task", "other", "!not_held"),
    ("done", "fail_task", "a1", "!not_held"),
    ("done", "release_task", "a1", "!not_held"),
    ("done", "release_task", "lead", "!not_held"),
    ("done", "cancel_task", "lead", "!wrong_status"),
    ("done", "retry_task", "lead", "!wrong_status"),
    ("done", "update_task", "lead", "!wrong_status"),
    ("failed", "claim_task", "a1", "!wrong_status"),
    ("failed", "start_task", "a1", "!not_held"),
    ("failed", "complete_task", "a1", "!attempt_over"),
    ("failed", "fail_task", "a1", "!not_held"),
    ("failed", "release_task", "a1", "!not_held"),
    ("failed", "release_task", "lead", "!not_held"),
    ("failed", "cancel_task", "lead", "cancelled"),
    ("failed", "retry_task", "lead", "available"),
    ("failed", "retry_task", "a1", "!not_leader"),
    ("failed", "update_task", "lead", "!wrong_status"),
    ("cancelled", "claim_task", "a1", "!wrong_status"),
    ("cancelled", "start_task", "a1", "!not_held"),
    ("cancelled", "complete_task", "a1", "!attempt_over"),
    ("cancelled", "fail_task", "a1", "!not_held"),
    ("cancelled", "release_task", "a1", "!not_held"),
    ("cancelled", "release_task", "lead", "!not_held"),
    ("cancelled", "cancel_task", "lead", "cancelled"),
    ("cancelled", "retry_task", "lead", "available"),
    ("cancelled", "update_task", "lead", "!wrong_status"),
];

#[test]
fn every_status_takes_or_refuses_every_operation_as_the_table_says() {
    for (status, operation, who, outcome) in MACHINE {
        let mut world = one_of_each(status);
        let mut arguments = json!({"task_id": "t"});
        match *operation {
            "complete_task" => arguments["output"] = json!("made"),
            "fail_task" => arguments["error"] = json!("broken"),
            "update_task" => arguments["priority"] = json!(2),
            "reject_task" => arguments["reason"] = json!("broken"),
            _ => {}
        }
        let seq = world.state.seq();
        let answer = world.by(who).call(operation, arguments);
        match outcome.strip_prefix('!') {
            Some(code) => {
                let message = answer.refuses(code);
                let named = if code == "not_leader" { *who } else { "`t`" };
                assert!(message.contains(named), "{status} {operation}: {message}");
                let kept = u64::from(*code == *"attempt_over");
                assert_eq!(
                    world.state.seq(),
                    seq + kept,
                    "{status} {operation}: a refusal records but a late result"
                );
                assert_eq!(world.status("t").as_str(), *status);
            }
            None => {
                answer.expect(operation);
                assert_eq!(world.status("t").as_str(), *outcome, "{status} {operation} by {who}");
            }
        }
    }
}

#[test]
fn wrong_status_and_wrong_owner_name_status_and_owner() {
    let message = one_of_each("done")
        .by("a1")
        .call("claim_task", json!({"task_id": "t"}))
        .refuses("wrong_status");
    assert!(message.contains("is done") && message.contains("claim_task"), "{message}");
    let message = one_of_each("claimed")
        .by("other")
        .call("start_task", json!({"task_id": "t"}))
        .refuses("held_by_other");
    assert!(message.contains("`a1` (attempt 1) until 2026-03-01T12:30:00.000Z"), "{message}");
}

#[test]
fn stale_attempt_is_refused_by_every_operation_that_takes_one() {
    let operations = [
        ("start_task", json!({})),
        ("complete_task", json!({"output": "x"})),
        ("fail_task", json!({"error": "x"})),
        ("release_task", json!({})),
        ("heartbeat", json!({"note": "x"})),
    ];
    for (operation, mut arguments) in operations {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world.call("release_task", json!({"task_id": "t"})).expect("released");
        world.claim("a1", "t");
        arguments["task_id"] = json!("t");
        arguments["attempt"] = json!(1);
        let message = world.call(operation, arguments.clone()).refuses("attempt_over");
        assert!(
            message.contains("attempt 1 of task `t` is over; the current one is 2"),
            "{message}"
        );
        let has_result = operation == "complete_task";
        assert_eq!(
            (message.contains("leave attempt out"), message.contains("result")),
            (!has_result, has_result)
        );
        arguments["attempt"] = json!(3);
        let message = world.call(operation, arguments.clone()).refuses("attempt_over");
        assert!(
            message.contains("there is no attempt 3 of task `t`; the current one is 2"),
            "{message}"
        );
        arguments["attempt"] = json!(2);
        world.call(operation, arguments).expect(operation);
    }
}

#[test]
fn leader_that_names_a_stale_attempt_does_not_release_the_new_one() {
    let mut world = World::new()
        .agent_with("lead", json!({"role": "leader"}))
        .agent("a1")
        .task("t")
        .claimed("a1", "t");
    world.at(31 * MINUTE);
    world.claim("a1", "t");
    world
        .by("lead")
        .call("release_task", json!({"task_id": "t", "attempt": 1}))
        .refuses("attempt_over");
    assert_eq!(world.status("t"), TaskStatus::Claimed);
    world
        .by("lead")
        .call("release_task", json!({"task_id": "t", "attempt": 2}))
        .replies(json!({"success": true}));
}

#[test]
fn late_result_is_taken_when_nobody_has_claimed_since() {
    let mut world = World::new().agent("a1").agent("a2").task("t").claimed("a1", "t");
    world.at(31 * MINUTE);
    assert_eq!(
        (world.status("t"), world.attempt("t").outcome),
        (TaskStatus::Available, Some(Outcome::Expired))
    );
    world
        .by("a1")
        .call("complete_task", json!({"task_id": "t", "output": "late"}))
        .replies(json!({"already": null}));
    assert_eq!(
        (world.status("t"), world.attempt("t").outcome),
        (TaskStatus::Done, Some(Outcome::Done))
    );
    world
        .by("a1")
        .call("complete_task", json!({"task_id": "t", "output": "late"}))
        .replies(json!({"already": true}));
    world
        .by("a2")
        .call("complete_task", json!({"task_id": "t", "output": "late"}))
        .refuses("not_held");
}

#[test]
fn late_result_is_refused_and_kept_once_when_another_attempt_was_opened() {
    let mut world = World::new().agent("a1").agent("a2").task("t").claimed("a1", "t");
    world.at(31 * MINUTE);
    world.claim("a2", "t");
    let late = json!({"task_id": "t", "output": "late"});
    for _ in 0..2 {
        let message = world.by("a1").call("complete_task", late.clone()).refuses("attempt_over");
        assert!(
            message.contains("kept")
                && message.contains("by `a2`")
                && message.contains("claim_task"),
            "{message}"
        );
    }
    assert_eq!(world.count_of("late_result_kept"), 1);
    let kept =
        world.read("t").attempts[0].late_result.clone().and_then(|result| result.output.clone());
    assert_eq!(kept.as_deref(), Some("late"));
    world.complete("a2", "t");
    assert_eq!(
        world.read("t").result.and_then(|result| result.output.clone()).as_deref(),
        Some("made")
    );
}

#[test]
fn result_of_an_attempt_that_others_ended_is_kept_on_it() {
    let all = json!({"scope": "all", "held": true});
    let ended = [
        ("cancel_task", json!({"task_id": "t"}), "the task is cancelled"),
        ("release_task", json!({"task_id": "t"}), "the task is available"),
        ("reset_tasks", all, "the task is available"),
    ];
    for (operation, arguments, now) in ended {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world.fetched = Fetched::Taken(Listed {
            name: SnapshotName::new(world.now, "0123abcd"),
            bytes: 1,
            head: None,
        });
        world.nobody().call(operation, arguments).expect(operation);
        let hours = json!({"task_id": "t", "output": "hours of work"});
        let message = world.by("a1").call("complete_task", hours.clone()).refuses("attempt_over");
        assert!(
            message.contains(now) && message.contains("kept with the attempt; get_task shows it"),
            "{message}"
        );
        world.by("a1").call("complete_task", hours).refuses("attempt_over");
        assert_eq!(world.count_of("late_result_kept"), 1);
        let attempt =
            world.call("get_task", json!({"task_id": "t"})).expect("read")["task"]["attempts"][0]
                .clone();
        assert_eq!(attempt["late_result"]["output"], "hours of work");
    }
}

#[test]
fn completing_again_answers_success_also_when_the_task_has_retired() {
    let mut world =
        World::with_policy(Policy { keep_finished: 0, ..Policy::default() }).agent("a1").task("t");
    world.claim("a1", "t");
    world.complete("a1", "t");
    let seq = world.state.seq();
    world.at(SECOND);
    assert_eq!(world.state.seq(), seq + 1);
    assert_eq!(world.state.live_tasks(), 0);
    let again = json!({"task_id": "t", "output": "made"});
    world
        .by("a1")
        .call("complete_task", again.clone())
        .replies(json!({"already": true, "agent_id": "a1"}));
    let message =
        world.by("a1").call("start_task", json!({"task_id": "t"})).refuses("wrong_status");
    assert!(message.contains("retired"), "{message}");
    let other = world.agent("a2").call("complete_task", again);
    other.refuses("wrong_status");
}
