//! Changes of a task: attempts, stops, updates, dependencies, pause, retirement.

use callboard::ops::Fetched;
use callboard::state::policy::Policy;
use callboard::state::snapshot::SnapshotName;
use callboard::state::task::{Outcome, Place, TaskStatus};
use callboard::state::time::{MINUTE, SECOND};
use serde_json::{Value, json};

use super::super::world::{Answered, World};
use super::HOUR;

#[test]
fn task_is_given_up_after_max_attempts() {
    let mut world = World::new().agent("a1").task_with("t", json!({"max_attempts": 2}));
    for expected in [TaskStatus::Available, TaskStatus::Failed] {
        world.claim("a1", "t");
        world.at(31 * MINUTE);
        assert_eq!(world.status("t"), expected);
    }
    let error = world.read("t").result.and_then(|result| result.error.clone());
    assert_eq!(error.as_deref(), Some("gave up after 2 attempts"));
}

#[test]
fn fail_tries_again_only_while_attempts_remain() {
    let mut world = World::new().agent("a1").task_with("t", json!({"max_attempts": 2}));
    world.claim("a1", "t");
    let again = json!({"status": "available", "attempts_left": 1});
    world.call("fail_task", json!({"task_id": "t", "error": "x"})).replies(again);
    world.at(MINUTE);
    world.claim("a1", "t");
    let over = json!({"status": "failed", "attempts_left": 0, "retry_at": null});
    world
        .call("fail_task", json!({"task_id": "t", "error": "x", "category": "timeout"}))
        .replies(over);
    assert_eq!(world.attempt("t").error.expect("kept").category, "timeout");
}

#[test]
fn retry_forgives_all_attempts_and_the_pause() {
    let mut world =
        World::new().agent("a1").task_with("t", json!({"max_attempts": 1})).claimed("a1", "t");
    world.call("fail_task", json!({"task_id": "t", "error": "x"})).expect("failed");
    world.nobody().call("retry_task", json!({"task_id": "t"})).expect("retried");
    let task = world.read("t");
    assert_eq!((task.status, task.attempt, task.attempts_used()), (TaskStatus::Available, 1, 0));
    assert_eq!((task.result, task.not_before), (None, None));
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "max_attempts": 3}))
        .expect("updated");
    world.claim("a1", "t");
    assert_eq!(world.attempt("t").number, 2);
    world
        .call("fail_task", json!({"task_id": "t", "error": "x"}))
        .replies(json!({"status": "available"}));
    world.nobody().call("retry_task", json!({"task_id": "t"})).expect("needs not wait");
    world.claim("a1", "t");
}

#[test]
fn release_costs_no_attempt_and_leaves_its_reason() {
    let mut world = World::new().agent("a1").agent("a2").task_with("t", json!({"max_attempts": 1}));
    for _ in 0..3 {
        world.claim("a1", "t");
        world
            .call("release_task", json!({"task_id": "t", "reason": "no gpu here"}))
            .expect("released");
    }
    assert_eq!(
        (world.read("t").attempts_used(), world.attempt("t").outcome),
        (0, Some(Outcome::Released))
    );
    world.by("a2").call("claim_task", json!({})).replies(json!({
        "attempt": 4, "handoff": {"last_attempt": {"agent": "a1", "error": "no gpu here"}, "more": "get_task"},
    }));
}

#[test]
fn stop_request_comes_with_every_reply_to_the_owner_until_it_lets_go() {
    let mut world = World::new().agent("a2").agent("a1").task("t").claimed("a1", "t");
    let ask = json!({"task_id": "t", "ask_owner": true, "reason": "not needed"});
    for _ in 0..2 {
        world
            .nobody()
            .call("cancel_task", ask.clone())
            .replies(json!({"status": "claimed", "asked_owner": true}));
    }
    assert_eq!(world.count_of("stop_requested"), 1);
    let asked = json!({"stop_requested": [{"task": "t", "reason": "not needed"}]});
    world.by("a1").call("heartbeat", json!({})).replies(asked.clone());
    world.by("a1").call("start_task", json!({"task_id": "t"})).replies(asked);
    world.by("a2").call("heartbeat", json!({})).replies(json!({"stop_requested": null}));
    world
        .by("a1")
        .call("release_task", json!({"task_id": "t"}))
        .replies(json!({"stop_requested": null}));
    assert_eq!((world.read("t").stop_requested, world.status("t")), (None, TaskStatus::Cancelled));
}

#[test]
fn a_task_that_is_not_to_be_done_is_cancelled_however_its_agent_stops() {
    let ends = [
        (Some(("release_task", json!({"task_id": "t"}))), TaskStatus::Cancelled),
        (Some(("fail_task", json!({"task_id": "t", "error": "stopped"}))), TaskStatus::Cancelled),
        (
            Some(("fail_task", json!({"task_id": "t", "error": "x", "retryable": false}))),
            TaskStatus::Failed,
        ),
        (Some(("complete_task", json!({"task_id": "t", "output": "ready"}))), TaskStatus::Done),
        (None, TaskStatus::Cancelled),
    ];
    for (call, status) in ends {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world
            .nobody()
            .call("cancel_task", json!({"task_id": "t", "ask_owner": true}))
            .expect("asked");
        match &call {
            Some((name, arguments)) => {
                drop(world.by("a1").call(name, arguments.clone()).expect("ended"))
            }
            None => drop(world.at(30 * MINUTE)),
        }
        assert_eq!(world.status("t"), status, "{call:?}");
    }
}

#[test]
fn what_is_to_be_cancelled_stays_so_through_a_plan_and_a_restore() {
    let plan = |text: &str| json!({"text": format!("# Plan\n\n## One\n\n- [ ] A\n\n  {text}\n")});
    let mut world = World::new().agent("a1");
    world.nobody().call("import_plan", plan("Do this.")).expect("imported");
    let id = world.next("a1")["task"]["id"].clone();
    let ask = json!({"task_id": id, "ask_owner": true, "reason": "moot"});
    world.nobody().call("cancel_task", ask).expect("asked");
    let asked = world.state.to_document();
    world.nobody().call("import_plan", plan("Do that.")).expect("imported");
    world.by("a1").call("release_task", json!({"task_id": id})).expect("released");
    assert_eq!(world.status(id.as_str().expect("an id")), TaskStatus::Cancelled);
    let before = SnapshotName::new(world.now, "0123abcd");
    world.fetched = Fetched::Earlier { document: Box::new(asked), snapshot: None, before };
    let seq = world.state.seq();
    world.nobody().call("restore_snapshot", json!({"seq": 1})).replies(json!({"before_seq": seq}));
    let task = world.read(id.as_str().expect("an id"));
    let reason = task.result.as_ref().and_then(|result| result.error.as_deref());
    assert_eq!((task.status, reason), (TaskStatus::Cancelled, Some("moot")));
    assert_eq!(
        world.read(task.parent.expect("a part").as_str()).status,
        TaskStatus::Cancelled,
        "with its only part"
    );
    world.check();
}

#[test]
fn cancelling_a_held_task_frees_its_agent() {
    let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
    world
        .nobody()
        .call("cancel_task", json!({"task_id": "t", "reason": "moot"}))
        .replies(json!({"status": "cancelled"}));
    assert_eq!(world.attempt("t").outcome, Some(Outcome::Cancelled));
    world
        .by("a1")
        .call("complete_task", json!({"task_id": "t", "output": "x"}))
        .refuses("attempt_over");
    assert_eq!(world.next("a1")["task"]["id"], "u");
}

#[test]
fn update_refuses_cycles_and_shows_them() {
    let mut world = World::new().task("a").task_with("b", json!({"dependencies": ["a"]}));
    world.create("c", json!({"dependencies": ["b"]}));
    let seq = world.state.seq();
    let cases = [("a", "c", "a -> c -> b -> a"), ("b", "c", "b -> c -> b"), ("a", "a", "a -> a")];
    for (task, on, cycle) in cases {
        let arguments = json!({"task_id": task, "dependencies": [on]});
        let message = world.nobody().call("update_task", arguments).refuses("dependency_cycle");
        assert!(message.contains(cycle), "{message}");
    }
    let unknown = world.call("update_task", json!({"task_id": "a", "dependencies": ["nope"]}));
    assert!(unknown.refuses("unknown_dependency").contains("`nope`"));
    assert_eq!(world.state.seq(), seq);
}

#[test]
fn update_changes_what_is_named_and_leaves_the_rest() {
    let more = json!({"title": "T", "hints": "h", "context_files": ["f"], "tags": ["x"], "demands": {"tags": ["eu"]}});
    let mut world = World::new().task_with("t", more).task("u");
    world
        .nobody()
        .call("update_task", json!({"task_id": "t", "priority": 2, "metadata": {"k": 1}}))
        .replies(json!({
            "task": {
                "title": "T", "priority": 2, "tags": ["x"], "demands": {"tags": ["eu"]},
                "context": {"hints": "h", "files": ["f"], "metadata": {"k": 1}},
            },
        }));
    let seq = world.state.seq();
    let message = world.call("update_task", json!({"task_id": "t"})).refuses("nothing_to_change");
    assert!(message.contains("complete_task"), "{message}");
    assert_eq!(world.state.seq(), seq, "nothing changes, nothing is recorded");
    let mut world = world.agent_with("a1", json!({"tags": ["eu"]})).claimed("a1", "t");
    let message = world
        .call("update_task", json!({"task_id": "t", "dependencies": ["u"]}))
        .refuses("not_ready");
    assert!(message.contains("waits for `u`"), "{message}");
}

#[test]
fn dependent_becomes_ready_when_the_last_dependency_is_done() {
    let mut world = World::new()
        .agent("a1")
        .task("a")
        .task("b")
        .task_with("c", json!({"dependencies": ["a", "b", "a"]}));
    assert_eq!(world.read("c").dependencies.len(), 2, "each once");
    let message = world.call("claim_task", json!({"task_id": "c"})).refuses("not_ready");
    assert!(message.contains("waits for `a`, `b`"), "{message}");
    for task in ["a", "b"] {
        world.call("get_task", json!({"task_id": "c"})).replies(json!({"ready": false}));
        world.claim("a1", task);
        world.complete("a1", task);
    }
    world
        .call("get_task", json!({"task_id": "c"}))
        .replies(json!({"ready": true, "waits_for": null}));
    assert_eq!(world.next("a1")["task"]["id"], "c");
}

#[test]
fn retirement_keeps_what_unfinished_tasks_need_and_the_counts() {
    let mut world =
        World::with_policy(Policy { keep_finished: 2, ..Policy::default() }).agent("a1");
    for task in ["needed", "d1", "d2", "d3", "d4"] {
        world.create(task, json!({}));
    }
    world.create("open", json!({"dependencies": ["needed", "d4"]}));
    for task in ["needed", "d1", "d2", "d3", "d4"] {
        world.at(SECOND);
        world.claim("a1", task);
        world.complete("a1", task);
    }
    world.at(SECOND);
    let live: Vec<_> = world.state.tasks().map(|task| task.id.to_string()).collect();
    assert_eq!(live, ["needed", "d4", "open"]);
    assert_eq!(world.state.board().archived.done, 3);
    world.call("get_status", json!({})).replies(json!({
        "tasks": {"available": 1, "done": 5}, "total_tasks": 6, "progress_percent": 83,
    }));
    world.call("get_task", json!({"task_id": "d1"})).replies(json!({
        "retired": true, "task": {"id": "d1", "status": "done", "result": {"output": "made"}},
    }));
    let results =
        json!({"results": [{"task_id": "d2", "result": {"output": "made"}}, {"task_id": "d4"}]});
    world.call("get_results", json!({"task_ids": ["d2", "d4"]})).replies(results);
    world.call("create_task", json!({"id": "d1", "description": "x"})).refuses("task_exists");
    world.create("later", json!({"dependencies": ["d1"]}));
    assert_eq!(world.state.ready_count(), 2, "a retired dependency is done");
}

#[test]
fn finished_tasks_that_must_stay_are_not_looked_through_again_with_every_call() {
    let policy = Policy { keep_finished: 20, ..Policy::default() };
    let mut world =
        World::with_policy(Policy { keep_finished: 1_000, ..Policy::default() }).agent("a1");
    let tasks: Vec<_> = (0..30).map(|number| format!("t{number}")).collect();
    for task in &tasks {
        world.create(task, json!({}));
    }
    world.create("open", json!({"dependencies": &tasks[..27]}));
    for task in &tasks[..27] {
        world.claim("a1", task);
        world.complete("a1", task);
    }
    let mut left = 0;
    for (task, looks) in [(27, false), (28, false), (29, true)] {
        assert!(
            world.state.retire_surplus(&policy, &mut left).is_none(),
            "all are needed, or it was looked just now"
        );
        assert_eq!(left, 27, "{task}: it has not looked since");
        world.claim("a1", &tasks[task]);
        world.complete("a1", &tasks[task]);
        let retired = world.state.retire_surplus(&policy, &mut left);
        assert_eq!(retired.is_some(), looks, "after {task}");
    }
    assert_eq!(left, 27);
}

#[test]
fn what_was_called_off_is_not_waited_for_in_the_progress() {
    let mut world = World::new().agent("a1").task("t").task("off").claimed("a1", "t");
    world.complete("a1", "t");
    world.nobody().call("get_status", json!({})).replies(json!({"progress_percent": 50}));
    world.call("cancel_task", json!({"task_id": "off"})).expect("cancelled");
    world.call("get_status", json!({})).replies(json!({"total_tasks": 2, "progress_percent": 100}));
}

#[test]
fn failed_tasks_and_what_they_need_stay() {
    let mut world =
        World::with_policy(Policy { keep_finished: 0, ..Policy::default() }).agent("a1").task("a");
    world.create("b", json!({"dependencies": ["a"], "max_attempts": 1}));
    world.claim("a1", "a");
    world.complete("a1", "a");
    world.claim("a1", "b");
    world.call("fail_task", json!({"task_id": "b", "error": "x"})).expect("failed");
    world.at(HOUR);
    assert_eq!(world.state.live_tasks(), 2);
    world.nobody().call("cancel_task", json!({"task_id": "b"})).expect("cancelled");
    world.at(HOUR);
    assert_eq!((world.state.live_tasks(), world.state.board().archived.total()), (0, 2));
}

#[test]
fn pause_stops_claims_and_nothing_else() {
    let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
    for _ in 0..2 {
        world.nobody().call("pause", json!({"reason": "release day"})).expect("paused");
    }
    assert_eq!(world.count_of("paused"), 1);
    world.call("get_status", json!({})).replies(json!({"paused": {"reason": "release day"}}));
    world.complete("a1", "t");
    let paused = json!({"success": false, "verdict": "paused", "message": "claims are paused", "reason": "release day"});
    world.by("a1").call("claim_task", json!({"task_id": "u"})).replies(paused);
    world.call("resume", json!({})).refuses("not_leader");
    for _ in 0..2 {
        world.nobody().call("resume", json!({})).expect("resumed");
    }
    assert_eq!(world.count_of("resumed"), 1);
    assert_eq!(world.next("a1")["task"]["id"], "u");
}

#[test]
fn paths_in_the_worktree_are_kept_relative_to_it() {
    let mut world = World::new().agent("a1").task("t");
    let place = Place {
        worktree: Some("/w/five".into()),
        branch: Some("fix".into()),
        head: Some("c0ffee".into()),
    };
    world.place = place.clone();
    world.claim("a1", "t");
    assert_eq!(world.attempt("t").place, place);
    let files = json!(["/w/five/src/a.rs", "src/b.rs", "/w/fiver/c.rs"]);
    world
        .call("complete_task", json!({"task_id": "t", "output": "", "files_modified": files}))
        .expect("done");
    let result = world.read("t").result.expect("a result");
    assert_eq!(result.files_modified, ["src/a.rs", "src/b.rs", "/w/fiver/c.rs"]);
    assert_eq!(result.branch.as_deref(), Some("fix"));
}

#[test]
fn a_batch_tells_of_each_operation_what_that_one_did() {
    let mut world = World::new().agent("a1").task("t").task("u");
    for task in ["t", "u"] {
        world.nobody().call("cancel_task", json!({"task_id": task})).expect("cancelled");
    }
    let retry = |what: Value| json!({"name": "retry_task", "arguments": what});
    let operations = [
        retry(json!({"task_id": "t"})),
        retry(json!({"task_id": "u"})),
        retry(json!({"scope": "P9"})),
    ];
    let results = json!([{"retried": 1}, {"retried": 1}, {"retried": 0}]);
    world
        .call("apply_batch", json!({"operations": operations}))
        .replies(json!({"items_written": 2, "results": results}));
}
