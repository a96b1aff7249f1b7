//! Tasks that are parts of others, and plans that change during the work.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard::ops::{self, Entry, Fetched};
use callboard::state::State;
use callboard::state::id::{Chance, TaskId};
use callboard::state::policy::Policy;
use callboard::state::refusal::Refusal;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::task::{Outcome, Task, TaskStatus};
use callboard::state::time::{MINUTE, SECOND};
use serde_json::{Value, json};

use super::super::harness::size;
use super::super::world::{Answered, World};

/// P1 with two milestones, the second of which depends on the first; each has two tasks.
fn tree() -> World {
    let mut world =
        World::new().agent_with("lead", json!({"role": "leader"})).agent("a1").agent("a2");
    let task = |id: &str, path: &str| json!({"id": id, "description": id, "path": path});
    let mut second = task("m2", "P1.M2");
    second["dependencies"] = json!(["m1"]);
    let tasks = [task("p", "P1"), task("m1", "P1.M1"), second];
    let leaves = ["P1.M1.T1", "P1.M1.T2", "P1.M2.T1", "P1.M2.T2"];
    let leaves = leaves.map(|path| task(&path.to_lowercase().replace('.', "-"), path));
    let tasks: Vec<_> = tasks.into_iter().chain(leaves).collect();
    world.by("lead").call("create_tasks_batch", json!({"tasks": tasks})).expect("created");
    world
}

#[test]
fn parents_are_done_when_their_parts_are_and_never_claimed() {
    let mut world = tree();
    let message = world.by("a1").call("claim_task", json!({"task_id": "m1"})).refuses("is_parent");
    assert!(message.contains("2 of them unfinished") && message.contains("P1.M1"), "{message}");
    assert_eq!(
        (world.state.ready_count(), world.state.blocked_count()),
        (2, 2),
        "parents are neither"
    );
    for task in ["p1-m1-t1", "p1-m1-t2"] {
        let message =
            world.by("a2").call("claim_task", json!({"task_id": "p1-m2-t1"})).refuses("not_ready");
        assert!(message.contains("`m1`"), "{message}");
        assert_eq!(world.status("m1"), TaskStatus::Available);
        assert_eq!(world.next("a1")["task"]["id"], task);
        world.complete("a1", task);
    }
    assert_eq!((world.status("m1"), world.status("p")), (TaskStatus::Done, TaskStatus::Available));
    world.call("get_status", json!({})).replies(json!({"parts": [
        {"path": "P1", "status": "in_progress", "percent": 50, "tasks": 4, "done": 2},
    ]}));
    for task in ["p1-m2-t1", "p1-m2-t2"] {
        assert_eq!(world.next("a1")["task"]["id"], task, "the barrier is open");
        world.complete("a1", task);
    }
    assert_eq!(world.status("p"), TaskStatus::Done);
    world.by("a1").call("claim_task", json!({})).replies(json!({"verdict": "finished"}));
}

#[test]
fn a_part_that_fails_is_what_its_parents_wait_for() {
    let mut world = tree();
    for task in ["p1-m1-t1", "p1-m1-t2"] {
        world.claim("a1", task);
        world
            .call("fail_task", json!({"task_id": task, "error": "x", "retryable": false}))
            .expect("failed");
    }
    assert_eq!(
        (world.status("m1"), world.status("p")),
        (TaskStatus::Failed, TaskStatus::Available)
    );
    world.call("get_status", json!({})).replies(json!({
        "queue": {"ready": 0, "blocked": 2, "deadlocked": true},
        "graph": {"blockers": [{"task": "p1-m1-t1", "status": "failed", "blocks": 2}, {"task": "p1-m1-t2"}]},
        "blocked_by_failure": [{"task": "p1-m2-t1", "by": ["m1"]}, {"task": "p1-m2-t2", "by": ["m1"]}],
    }));
    world.by("a1").call("claim_task", json!({})).replies(json!({"verdict": "stuck"}));
    world.by("lead").call("retry_task", json!({"task_id": "m1"})).replies(json!({"retried": 2}));
    assert_eq!((world.status("m1"), world.state.ready_count()), (TaskStatus::Available, 2));
    world
        .by("lead")
        .call("cancel_task", json!({"task_id": "m1"}))
        .replies(json!({"status": "cancelled"}));
    assert_eq!(world.status("p1-m1-t2"), TaskStatus::Cancelled);
    world.by("lead").call("retry_task", json!({"scope": "P1.M2"})).replies(json!({"retried": 0}));
    world.by("lead").call("retry_task", json!({"scope": "P1.M1"})).replies(json!({"retried": 2}));
    world.by("lead").call("retry_task", json!({})).refuses("task_or_scope");
}

#[test]
fn cycles_through_parents_are_refused() {
    let mut world = tree();
    let rewire = |task: &str, on: &str| json!({"task_id": task, "dependencies": [on]});
    for (task, on) in [
        ("p1-m1-t1", "m1"),
        ("p1-m1-t1", "p"),
        ("p1-m1-t1", "p1-m2-t2"),
        ("m1", "p1-m2-t1"),
        ("p", "m2"),
    ] {
        world.by("lead").call("update_task", rewire(task, on)).refuses("dependency_cycle");
    }
    world.by("lead").call("update_task", rewire("p1-m1-t1", "p1-m1-t2")).expect("no cycle");
    let part = json!({"description": "x", "path": "P1.M1.T3", "dependencies": ["m2"]});
    world.call("create_task", part).refuses("dependency_cycle");
    world.claim("a1", "p1-m1-t2");
    let message =
        world.by("lead").call("update_task", json!({"task_id": "p", "dependencies": ["p1-m2-t1"]}));
    message.refuses("dependency_cycle");
}

#[test]
fn a_new_part_reopens_its_parents_and_ends_work_in_hand() {
    let mut world = tree();
    for _ in 0..4 {
        let task = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
        world.complete("a1", &task);
    }
    assert_eq!(world.status("p"), TaskStatus::Done);
    world.create("late", json!({"path": "P1.M2.T9"}));
    assert_eq!(
        (world.status("p"), world.status("m2"), world.status("m1")),
        (TaskStatus::Available, TaskStatus::Available, TaskStatus::Done)
    );
    world.claim("a1", "late");
    world.by("lead").create("below", json!({"path": "P1.M2.T9.S1"}));
    let late = world.read("late");
    assert_eq!(world.read("below").parent, Some(late.id.clone()));
    assert_eq!((late.status, late.attempts_used()), (TaskStatus::Available, 0));
    let ended = world.attempt("late");
    assert_eq!(ended.outcome, Some(Outcome::Released));
    assert!(ended.error.is_some_and(|note| note.message.contains("`below`")));
    let result = json!({"task_id": "late", "output": "made"});
    world.by("a1").call("complete_task", result.clone()).refuses("is_parent");
    assert!(world.attempt("late").late_result.is_some(), "what was made is kept");
    world.claim("a1", "below");
    let failed = json!({"task_id": "below", "error": "x", "retryable": false});
    world.by("a1").call("fail_task", failed).expect("failed");
    let refusal = world.by("a1").call("complete_task", result).expect_err("it is open");
    let text = refusal.to_string();
    assert!(text.contains("`below` failed and keeps it open: retry_task or cancel_task"), "{text}");
    world.by("lead").call("retry_task", json!({"task_id": "late"})).expect("retried");
    world.claim("a1", "below");
    world.complete("a1", "below");
    assert_eq!((world.status("late"), world.status("p")), (TaskStatus::Done, TaskStatus::Done));
}

#[test]
fn who_divides_the_task_that_it_holds_goes_on_with_the_first_part() {
    let mut world = World::new().agent_in("a1", "p").agent("a2");
    world.create("whole", json!({"path": "P1", "max_attempts": 1}));
    world.create("behind", json!({"dependencies": ["whole"]}));
    world.claim("a1", "whole");
    let files = json!({"files": ["src/a.rs"], "task_id": "whole"});
    world.by("a1").call("reserve_files", files).expect("reserved");
    let part = |id: &str, path: &str, on: &[&str]| json!({"id": id, "description": id, "path": path, "dependencies": on});
    let parts = [part("s2", "P1.M2", &["s1"]), part("s1", "P1.M1", &[])];
    world
        .nobody()
        .through("p")
        .call("create_tasks_batch", json!({"tasks": parts}))
        .expect("created");
    assert_eq!(world.status("whole"), TaskStatus::Available);
    let attempt = world.attempt("s1");
    assert_eq!((attempt.agent.as_str(), attempt.place), ("a1", world.attempt("whole").place));
    let reserved: Vec<_> = world.state.reservations().cloned().collect();
    assert_eq!(reserved.len(), 1);
    assert_eq!(reserved[0].task, Some(TaskId::trusted("s1")));
    let offered = world.next("a1");
    assert_eq!((&offered["task"]["id"], &offered["already"]), (&json!("s1"), &json!(true)));
    world.complete("a1", "s1");
    world.by("a2").call("claim_task", json!({"task_id": "behind"})).refuses("not_ready");
    world.claim("a1", "s2");
    world.complete("a1", "s2");
    assert_eq!(world.status("whole"), TaskStatus::Done);
    world.claim("a2", "behind");
}

#[test]
fn a_part_that_its_holder_cannot_take_is_left_for_others() {
    let mut world = World::new().agent_in("a1", "p");
    world.create("whole", json!({"path": "P1"}));
    world.claim("a1", "whole");
    let gpu = json!({"capabilities": ["gpu"]});
    let part = json!({"id": "s1", "description": "s1", "path": "P1.M1", "demands": gpu});
    world.nobody().through("p").call("create_task", part).expect("created");
    assert_eq!(world.status("s1"), TaskStatus::Available);
    assert_eq!(world.state.held_count(), 0);
}

#[test]
fn parts_that_an_earlier_version_left_beside_work_are_named_and_waited_for() {
    let mut world = World::new().agent("a1");
    world.create("whole", json!({"path": "P1"}));
    world.create("part", json!({}));
    world.at(SECOND);
    world.claim("a1", "whole");
    world.at(SECOND);
    let now = world.now;
    let mut document = world.state.to_document();
    for task in document.tasks.iter_mut().filter(|task| task.id.as_str() == "part") {
        let part = Arc::make_mut(task);
        (part.path, part.created_at) = (Some("P1.M1".to_owned()), now);
    }
    let mut world = world.holding(|known| *known = document);
    let apart: Vec<_> =
        world.state.apart().iter().map(|(task, part)| format!("{} {}", task.id, part.id)).collect();
    assert_eq!(apart, ["whole part"]);
    let result = json!({"task_id": "whole", "output": "made"});
    world.by("a1").call("complete_task", result).refuses("is_parent");
    world.nobody().call("cancel_task", json!({"task_id": "part"})).expect("cancelled");
    world.complete("a1", "whole");
}

#[test]
fn what_came_below_a_task_that_was_over_does_not_hold_it_up_when_it_is_open_again() {
    for review in [None, Some("required")] {
        let mut world = World::new().agent("a1");
        world.create("whole", json!({"path": "P1", "review": review}));
        world.claim("a1", "whole");
        let whole = json!({"task_id": "whole"});
        if review.is_some() {
            world.complete("a1", "whole");
        } else {
            let failed = json!({"task_id": "whole", "error": "x", "retryable": false});
            world.by("a1").call("fail_task", failed).expect("failed");
        }
        world.at(SECOND);
        world.create("other", json!({"path": "P1.M1"}));
        assert_eq!(world.read("other").parent, None);
        if review.is_some() {
            let why = json!({"task_id": "whole", "reason": "more"});
            world.nobody().call("reject_task", why).expect("rejected");
        } else {
            world.nobody().call("retry_task", whole).expect("retried");
        }
        world.at(SECOND);
        world.claim("a1", "whole");
        assert_eq!(world.state.apart().len(), 0);
        world.complete("a1", "whole");
    }
}

#[test]
fn finished_parts_stay_while_their_parents_are_open() {
    let mut world =
        World::with_policy(Policy { keep_finished: 0, ..Policy::default() }).agent("a1");
    for (id, path) in [("p", "P1"), ("a", "P1.M1"), ("b", "P1.M2")] {
        world.create(id, json!({"path": path}));
    }
    world.claim("a1", "a");
    world.complete("a1", "a");
    world.at(SECOND);
    assert_eq!(world.state.live_tasks(), 3);
    world.claim("a1", "b");
    world.complete("a1", "b");
    world.at(SECOND).at(SECOND);
    let archived = world.state.board().archived;
    assert_eq!((world.state.live_tasks(), archived.done), (0, 2), "the parent is not counted");
    assert_eq!(world.state.retired().count(), 3);
    let counted = json!({"total_tasks": 2, "tasks": {"done": 2}});
    world.call("get_status", json!({})).replies(counted.clone());
    world.call("get_status", json!({"scope": "P1"})).replies(counted);
}

#[test]
fn counts_are_those_of_tasks_without_parts_everywhere() {
    let mut world = tree();
    let counted = json!({"total_tasks": 4, "tasks": {"available": 4}});
    world.call("get_status", json!({})).replies(counted.clone());
    world.call("get_status", json!({"scope": "P1"})).replies(counted);
    world.claim("a1", "p1-m1-t1");
    world.complete("a1", "p1-m1-t1");
    world.by("lead").call("cancel_task", json!({"task_id": "p1-m1-t2"})).expect("cancelled");
    world.call("get_status", json!({})).replies(json!({
        "total_tasks": 4, "tasks": {"available": 2, "done": 1, "failed": 1},
        "of_failed": {"cancelled": 1}, "progress_percent": 33, "parts": [{"tasks": 3, "percent": 33}],
    }));
    world.call("get_status", json!({"scope": "P1.M1"})).replies(json!({
        "total_tasks": 2, "tasks": {"done": 1, "failed": 1},
        "of_failed": {"cancelled": 1}, "progress_percent": 100,
    }));
    world.call("get_all_tasks", json!({"limit": 1})).replies(json!({"total": 7}));
    world.call("health_check", json!({})).replies(json!({"queue": {"available": 2, "ready": 2}}));
}

#[test]
fn done_parts_stay_until_those_that_were_called_off_are_gone() {
    let mut world =
        World::with_policy(Policy { keep_finished: 2, ..Policy::default() }).agent("a1");
    for (id, path) in [("p", "P1"), ("a", "P1.M1"), ("b", "P1.M2")] {
        world.create(id, json!({"path": path}));
    }
    world.create("next", json!({"dependencies": ["p"]}));
    world.claim("a1", "a");
    world.complete("a1", "a");
    world.at(SECOND).nobody().call("cancel_task", json!({"task_id": "b"})).expect("called off");
    assert_eq!((world.status("p"), world.state.ready_count()), (TaskStatus::Done, 1));
    world.at(SECOND).at(SECOND);
    assert_eq!(
        (world.status("p"), world.state.ready_count()),
        (TaskStatus::Done, 1),
        "nothing has changed but time"
    );
    assert_eq!(world.state.live_tasks(), 3, "one has retired");
    world.policy.keep_finished = 0;
    world.at(SECOND).at(SECOND);
    assert_eq!(
        (world.status("p"), world.state.live_tasks()),
        (TaskStatus::Done, 3),
        "what is needed stays, and one part of it"
    );
}

#[test]
fn explanations_name_every_reason_and_who_could() {
    let mut world = tree();
    world.create("gpu", json!({"demands": {"capabilities": ["gpu"]}, "dependencies": ["m1"]}));
    let reply = world.call("explain_task", json!({"task_id": "P1.M2.T1"})).replies(json!({
        "task": "p1-m2-t1", "status": "available", "claimable": false, "agents": ["a1", "a2", "lead"],
        "reasons": [{"next": "explain_task `m1`"}], "last_change": {"kind": "tasks_created", "by": "human"},
    }));
    assert!(
        reply["reasons"][0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("waits for m1, as does all of P1.M2"))
    );
    world
        .call("explain_task", json!({"task_id": "gpu"}))
        .replies(json!({"agents": [], "claimable": false}));
    world.call("explain_task", json!({"task_id": "p"})).replies(json!({"claimable": false}));
    world.claim("a1", "p1-m1-t1");
    world.nobody().call("pause", json!({})).expect("paused");
    let reply = world.call("explain_task", json!({"task_id": "p1-m1-t1"})).expect("explained");
    assert_eq!(reply["reasons"].as_array().map(Vec::len), Some(2), "{reply}");
    assert_eq!(reply["last_change"]["kind"], "claimed");
    world.call("explain_task", json!({"task_id": "nope"})).refuses("unknown_task");
}

#[test]
fn what_is_claimable_is_given_to_somebody_who_asks() {
    let mut world = World::new().task("t");
    let explain =
        |world: &mut World| world.call("explain_task", json!({"task_id": "t"})).expect("explained");
    let reason = |reply: &Value| reply["reasons"][0]["why"].as_str().unwrap_or_default().to_owned();
    let nobody = explain(&mut world);
    assert_eq!(
        (&nobody["claimable"], reason(&nobody)),
        (&json!(false), "no agent is registered".to_owned())
    );
    let mut world = world.agent("a1");
    let gone = json!({"claimable": false, "agents": [], "others": [{"agent": "a1"}]});
    assert_eq!(explain(&mut world)["claimable"], true);
    world.at(30 * MINUTE);
    let reply = world.call("explain_task", json!({"task_id": "t"})).replies(gone.clone());
    assert!(reason(&reply).contains("see others"), "{reply}");
    assert!(
        reply["others"][0]["why"].as_str().is_some_and(|why| why.contains("was last heard of at")),
        "{reply}"
    );
    let spent = json!({"workflow_id": "w", "budget": {"tokens": 1}, "spent": {"tokens": 2}});
    world.by("a1").call("save_checkpoint", spent).expect("saved");
    world.call("claim_task", json!({})).replies(json!({"verdict": "spent"}));
    let reply = world.call("explain_task", json!({"task_id": "t"})).replies(gone);
    assert!(
        reply["others"][0]["why"].as_str().is_some_and(|why| why.contains("2 of 1 tokens")),
        "{reply}"
    );
    let mut world = world.agent("a2");
    world
        .call("explain_task", json!({"task_id": "t"}))
        .replies(json!({"claimable": true, "agents": ["a2"]}));
}

#[test]
fn what_can_never_be_done_is_named_also_when_a_file_brought_it() {
    let mut world = World::new();
    for id in ["a", "b", "c", "d", "free"] {
        world.create(id, json!({}));
    }
    let mut document = world.state.to_document();
    for (task, on) in [(0, "b"), (1, "a"), (2, "a"), (3, "gone")] {
        Arc::make_mut(&mut document.tasks[task]).dependencies = vec![TaskId::trusted(on)];
    }
    let named = |state: &State| {
        let health = state.health(true);
        let cycles: Vec<Vec<String>> = health
            .cycles
            .iter()
            .map(|cycle| cycle.iter().map(ToString::to_string).collect())
            .collect();
        let orphans: Vec<_> =
            health.orphans.iter().map(|one| format!("{} {}", one.task, one.missing)).collect();
        let blockers: Vec<_> =
            health.blockers.iter().map(|one| format!("{} {}", one.task, one.blocks)).collect();
        (cycles, orphans, blockers)
    };
    let cycle = vec![["a", "b", "a"].map(str::to_owned).to_vec()];
    let moving = named(&State::from_document(document.clone()));
    assert_eq!(moving, (cycle.clone(), vec!["d gone".to_owned()], Vec::new()), "one task is free");
    document.tasks.pop();
    let stuck = State::from_document(document);
    assert!(stuck.is_deadlocked());
    let (cycles, _, blockers) = named(&stuck);
    assert_eq!((cycles, blockers.contains(&"gone 1".to_owned())), (cycle, true), "{blockers:?}");
    assert!(
        blockers.iter().any(|one| one.starts_with("a ") || one.starts_with("b ")),
        "{blockers:?}"
    );
}

pub(super) fn import(world: &mut World, text: &str, dry_run: bool) -> Result<Value, Refusal> {
    world.nobody().call("import_plan", json!({"text": text, "dry_run": dry_run}))
}

pub(super) fn at(world: &World, path: &str) -> Task {
    let mut there = world.state.at_path(path);
    let task = there.next().unwrap_or_else(|| panic!("a task at {path}"));
    Task::clone(task)
}

pub(super) fn names(reply: &Value, list: &str) -> Vec<String> {
    let items = reply[list].as_array().unwrap_or_else(|| panic!("{list} in {reply}"));
    items.iter().map(|one| one["title"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(super) const FIRST: &str = "\
# Plan

## Parser

- [ ] Read
  priority: 2

  Read the text.
- [ ] Check
  depends: Read
- [x] Decide

## Writer

- [ ] Write
  depends: Parser
- [ ] Print
";

#[test]
fn first_import_makes_tasks_and_the_same_again_makes_nothing() {
    let mut world = World::new().agent("a1");
    let seq = world.state.seq();
    let shown = import(&mut world, FIRST, true).expect("shown");
    assert_eq!((names(&shown, "added").len(), world.state.seq()), (7, seq));
    let reply = import(&mut world, FIRST, false).expect("imported");
    assert_eq!((names(&reply, "added"), &reply["kept"]), (names(&shown, "added"), &json!(0)));
    assert_eq!(world.state.seq(), seq + 1, "one event");
    assert_eq!((at(&world, "P1.M3").status, at(&world, "P1.M1").priority), (TaskStatus::Done, 2));
    assert_eq!(at(&world, "P2.M1").dependencies, [at(&world, "P1").id]);
    assert_eq!(world.state.ready_count(), 2, "Read, Print");
    import(&mut world, FIRST, false).replies(json!({"unchanged": true, "kept": 7}));
    assert_eq!(world.state.seq(), seq + 1);
    let other = format!("{FIRST}\n\n");
    import(&mut world, &other, false)
        .replies(json!({"kept": 7, "unchanged": null, "prev_sha256": reply["sha256"]}));
}

#[test]
fn a_changed_plan_is_the_difference_and_done_work_stays_done() {
    let mut world = World::new().agent("a1").agent("a2");
    import(&mut world, FIRST, false).expect("imported");
    let (read, check, print) =
        (at(&world, "P1.M1").id, at(&world, "P1.M2").id, at(&world, "P2.M2").id);
    world.claim("a1", read.as_str());
    world.complete("a1", read.as_str());
    world.claim("a1", check.as_str());
    world.claim("a2", print.as_str());
    let second = FIRST
        .replace("Read the text.", "Read the text, and its comments.")
        .replace("- [ ] Check", "- [ ] New first\n- [ ] Check it")
        .replace("- [ ] Print\n", "");
    let shown = import(&mut world, &second, true).expect("shown");
    let reply = import(&mut world, &second, false).expect("imported");
    for list in [
        "added",
        "modified",
        "reopened",
        "renamed",
        "completed",
        "obsolete",
        "left_done",
        "leaving",
    ] {
        let expected: &[&str] = match list {
            "added" => &["New first", "Check it"],
            "modified" => &["Read"],
            "leaving" => &["Check", "Print"],
            _ => &[],
        };
        assert_eq!(names(&reply, list), expected, "{list}");
        assert_eq!(names(&shown, list), expected, "{list} before");
    }
    assert_eq!(reply["kept"], json!(4));
    assert_eq!(
        (world.status(read.as_str()), world.status(check.as_str())),
        (TaskStatus::Done, TaskStatus::Claimed)
    );
    assert_eq!(&*world.read(read.as_str()).description, "Read the text, and its comments.");
    assert_eq!(at(&world, "P1.M4").title.as_deref(), Some("New first"), "no number is used twice");
    world.complete("a2", print.as_str());
    assert_eq!(world.status(print.as_str()), TaskStatus::Done, "work in hand goes on");
    let third = second.replace("- [ ] Check it", "- [x] Check it").replace("- [x] Decide\n", "");
    let reply = import(&mut world, &third, false).expect("imported");
    assert_eq!(
        (names(&reply, "left_done"), names(&reply, "completed")),
        (vec!["Decide".to_owned()], vec!["Check it".to_owned()])
    );
    assert_eq!(
        world.status(check.as_str()),
        TaskStatus::Claimed,
        "its holder says when it is done"
    );
}

#[test]
fn item_that_is_ticked_while_it_is_held_is_named_and_done_when_it_was_released() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    world.claim("a1", read.as_str());
    let second = FIRST.replace("- [ ] Read", "- [x] Read");
    let named =
        json!({"ticked": [{"task": read, "path": "P1.M1", "title": "Read", "held_by": "a1"}]});
    import(&mut world, &second, true).replies(named.clone());
    import(&mut world, &second, false).replies(named.clone());
    import(&mut world, &second, false)
        .replies(json!({"unchanged": true, "ticked": named["ticked"]}));
    assert_eq!(world.status(read.as_str()), TaskStatus::Claimed, "its holder says when it is done");
    world.by("a1").call("release_task", json!({"task_id": read})).expect("released");
    let reply =
        import(&mut world, &second, false).replies(json!({"unchanged": null, "ticked": null}));
    assert_eq!(
        (names(&reply, "completed"), world.status(read.as_str())),
        (vec!["Read".to_owned()], TaskStatus::Done)
    );
    let seq = world.state.seq();
    import(&mut world, &second, false).replies(json!({"unchanged": true}));
    assert_eq!(world.state.seq(), seq);
}

#[test]
fn result_of_work_that_was_reset_and_then_ticked_is_kept() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    world.claim("a1", read.as_str());
    world.nobody().call("release_task", json!({"task_id": read})).expect("released");
    import(&mut world, &FIRST.replace("- [ ] Read", "- [x] Read"), false).expect("imported");
    world
        .by("a1")
        .call("complete_task", json!({"task_id": read, "output": "late"}))
        .refuses("attempt_over");
    assert!(world.attempt(read.as_str()).late_result.is_some());
}

#[test]
fn a_tick_from_before_a_reset_does_nothing() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    world.claim("a1", read.as_str());
    let second = FIRST.replace("- [ ] Read", "- [x] Read");
    import(&mut world, &second, false).expect("imported");
    world.complete("a1", read.as_str());
    world.fetched = Fetched::Taken(Listed {
        name: SnapshotName::new(world.now, "0123abcd"),
        bytes: 1,
        head: None,
    });
    world.at(1).nobody().call("reset_tasks", json!({"task_id": read})).expect("reset");
    import(&mut world, &second, false).replies(json!({"unchanged": true}));
    assert_eq!(world.status(read.as_str()), TaskStatus::Available);
    let third = second.replace("Read the text.", "Read all.");
    import(&mut world, &third, false).expect("imported");
    assert_eq!(
        world.status(read.as_str()),
        TaskStatus::Available,
        "also when the plan says it once more, and differs"
    );
    import(&mut world, &third.replace("- [x] Read", "- [ ] Read"), false).expect("imported");
    import(&mut world, &third, false).expect("imported");
    assert_eq!(world.status(read.as_str()), TaskStatus::Done, "a new tick counts");
}

#[test]
fn a_late_result_is_not_taken_for_what_the_plan_has_put_anew() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    world.call("update_task", json!({"task_id": read, "max_attempts": 1})).expect("updated");
    world.claim("a1", read.as_str());
    world.at(30 * MINUTE);
    assert_eq!(world.status(read.as_str()), TaskStatus::Failed);
    import(&mut world, &FIRST.replace("Read the text.", "Read all."), false).expect("imported");
    assert_eq!(world.status(read.as_str()), TaskStatus::Available);
    world
        .by("a1")
        .call("complete_task", json!({"task_id": read, "output": "late"}))
        .refuses("attempt_over");
    assert!(world.attempt(read.as_str()).late_result.is_some(), "it is kept");
}

#[test]
fn what_has_moved_is_no_other_that_had_left() {
    let plan = |alpha: &[&str], beta: &[&str]| {
        let items = |titles: &[&str]| {
            titles.iter().map(|title| format!("- [ ] {title}\n")).collect::<String>()
        };
        format!("# Plan\n\n## Alpha\n\n{}\n## Beta\n\n{}", items(alpha), items(beta))
    };
    let mut world = World::new().agent("a1");
    import(&mut world, &plan(&["Tests", "Keep"], &["Tests", "Other"]), false).expect("imported");
    let tests = at(&world, "P2.M1").id;
    import(&mut world, &plan(&["Keep"], &["Tests", "Other"]), false).expect("imported");
    world.claim("a1", tests.as_str());
    let reply = import(&mut world, &plan(&["Tests", "Keep"], &["Other"]), false).expect("imported");
    assert_eq!((names(&reply, "obsolete"), names(&reply, "reopened")), (vec![], vec![]));
    assert_eq!(world.status(tests.as_str()), TaskStatus::Claimed);
    world.complete("a1", tests.as_str());
    import(&mut world, &plan(&["Keep"], &["Tests", "Other"]), false).expect("imported");
    let mut other = World::new().agent("a1");
    import(&mut other, &plan(&["Tests", "Keep"], &["Tests", "Other"]), false).expect("imported");
    let (left, done) = (at(&other, "P1.M1").id, at(&other, "P2.M1").id);
    other.claim("a1", done.as_str());
    other.complete("a1", done.as_str());
    import(&mut other, &plan(&["Keep"], &["Tests", "Other"]), false).expect("imported");
    import(&mut other, &plan(&["Tests", "Keep"], &["More tests", "Other"]), false)
        .expect("imported");
    assert_eq!(at(&other, "P1.M1").id, left, "what is done elsewhere is not this");
    assert_eq!(other.status(left.as_str()), TaskStatus::Available);
}

#[test]
fn what_has_left_the_plan_is_known_when_it_comes_back() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let (read, check, write) =
        (at(&world, "P1.M1").id, at(&world, "P1.M2").id, at(&world, "P2.M1").id);
    world.claim("a1", read.as_str());
    world.complete("a1", read.as_str());
    let without_parser =
        FIRST.split_once("## Parser").zip(FIRST.split_once("## Writer")).map(|(before, after)| {
            format!("{}## Writer{}", before.0, after.1.replace("  depends: Parser\n", ""))
        });
    let reply = import(&mut world, &without_parser.expect("two phases"), false).expect("imported");
    assert_eq!(names(&reply, "left_done"), ["Read", "Decide"]);
    assert_eq!(names(&reply, "obsolete"), ["Parser", "Check"]);
    let reply = import(&mut world, FIRST, false).expect("imported");
    assert_eq!(
        (names(&reply, "added"), names(&reply, "reopened")),
        (vec![], vec!["Parser".into(), "Check".into()])
    );
    let back = [at(&world, "P1.M1").id, at(&world, "P1.M2").id, at(&world, "P2.M1").id];
    assert_eq!(back, [read.clone(), check.clone(), write]);
    let done = world.read(read.as_str());
    assert_eq!(
        (done.status, done.result.and_then(|result| result.output.clone())),
        (TaskStatus::Done, Some("made".into()))
    );
    assert_eq!(
        (world.status(check.as_str()), at(&world, "P1").status),
        (TaskStatus::Available, TaskStatus::Available)
    );
    let without_read = FIRST
        .replace("- [ ] Read\n  priority: 2\n\n  Read the text.\n", "")
        .replace("  depends: Read\n", "");
    import(&mut world, &without_read, false).expect("imported");
    let reply =
        import(&mut world, &FIRST.replace("Read the text.", "Read all."), false).expect("imported");
    assert_eq!(
        (names(&reply, "added"), names(&reply, "modified")),
        (vec![], vec!["Read".to_owned(), "Check".to_owned()])
    );
    assert_eq!((at(&world, "P1.M1").id, world.status(read.as_str())), (read, TaskStatus::Done));
}

#[test]
fn what_has_left_the_plan_is_not_said_to_be_retried() {
    let mut world = World::new();
    import(&mut world, FIRST, false).expect("imported");
    let print = at(&world, "P2.M2").id;
    world.create("own", json!({"dependencies": [print]}));
    import(&mut world, &FIRST.replace("- [ ] Print\n", ""), false).expect("imported");
    let blocked = json!({"blocked_by_failure": [{"task": "own", "by": [print], "gone": [print]}]});
    world.call("get_status", json!({})).replies(blocked);
    let update = json!({"task_id": print, "priority": 1});
    let message = world.nobody().call("update_task", update).refuses("wrong_status");
    assert!(!message.contains("retry_task") && message.contains("create a new one"), "{message}");
}

#[test]
fn reset_says_what_has_retired() {
    let mut world = World::with_policy(Policy { keep_finished: 0, ..Policy::default() })
        .agent("a1")
        .task("t")
        .task("u");
    world.claim("a1", "t");
    world.complete("a1", "t");
    world.at(SECOND);
    world.fetched = Fetched::Taken(Listed {
        name: SnapshotName::new(world.now, "0123abcd"),
        bytes: 1,
        head: None,
    });
    world
        .nobody()
        .call("reset_tasks", json!({"scope": "all"}))
        .replies(json!({"reset": 0, "retired": 1}));
    world.call("reset_tasks", json!({"scope": "P1"})).replies(json!({"retired": null}));
}

#[test]
fn done_item_that_had_parts_for_a_while_is_done() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let check = at(&world, "P2.M2").id;
    world.claim("a1", check.as_str());
    world.complete("a1", check.as_str());
    let divided = FIRST.replace("- [ ] Print\n", "- [ ] Print\n  - [ ] Words\n  - [ ] Lines\n");
    for text in [&divided, FIRST] {
        let reply = import(&mut world, text, false).expect("imported");
        assert_eq!(names(&reply, "reopened"), Vec::<String>::new());
        assert_eq!(world.status(check.as_str()), TaskStatus::Done, "its box was never ticked");
    }
    assert!(world.read(check.as_str()).result.is_some());
}

#[test]
fn changes_on_the_board_are_no_changes_of_the_plan() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    let update =
        json!({"task_id": read, "description": "better", "priority": 9, "title": "Read well"});
    world.nobody().call("update_task", update).expect("updated");
    world.create("own", json!({"path": "P1.M9"}));
    let reply = import(&mut world, &format!("{FIRST}- [ ] More\n"), false).expect("imported");
    assert_eq!((names(&reply, "added"), &reply["kept"]), (vec!["More".to_owned()], &json!(7)));
    let task = world.read(read.as_str());
    assert_eq!((&*task.description, task.priority), ("better", 9));
    assert_eq!(world.status("own"), TaskStatus::Available);
}

#[test]
fn changed_settings_of_an_item_reach_its_task_and_leave_its_text_and_the_other_way_round() {
    let mut world = World::new();
    import(&mut world, FIRST, false).expect("imported");
    let (read, write) = (at(&world, "P1.M1").id, at(&world, "P2.M1").id);
    world
        .nobody()
        .call("update_task", json!({"task_id": read, "description": "better"}))
        .expect("updated");
    let second = FIRST
        .replace("priority: 2", "priority: 3\n  tags: slow")
        .replace("depends: Parser", "depends: Parser, Print");
    let reply = import(&mut world, &second, false).expect("imported");
    assert_eq!(names(&reply, "modified"), ["Read", "Write"]);
    let task = world.read(read.as_str());
    assert_eq!(
        (task.priority, task.tags.concat(), &*task.description),
        (3, "slow".to_owned(), "better")
    );
    assert_eq!(
        world.read(write.as_str()).dependencies,
        [at(&world, "P1").id, at(&world, "P2.M2").id]
    );
    world.nobody().call("update_task", json!({"task_id": read, "priority": 9})).expect("updated");
    let reply = import(&mut world, &second.replace("Read the text.", "Read all."), false)
        .expect("imported");
    assert_eq!(names(&reply, "modified"), ["Read"]);
    let task = world.read(read.as_str());
    assert_eq!((task.priority, &*task.description), (9, "Read all."));
}

#[test]
fn held_work_whose_text_changes_is_told_to_its_owner() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let read = at(&world, "P1.M1").id;
    world.claim("a1", read.as_str());
    let second = FIRST.replace("Read the text.", "Read all.");
    import(&mut world, &second, false)
        .replies(json!({"modified": [{"task": read, "held_by": "a1"}]}));
    world
        .by("a1")
        .call("heartbeat", json!({}))
        .replies(json!({"stop_requested": [{"task": read}]}));
    let divided = second
        .replace("  Read the text.\n", "")
        .replace("  Read all.\n", "  Read all.\n\n  - [ ] Words\n  - [ ] Lines\n");
    import(&mut world, &divided, false).expect("imported");
    assert_eq!((world.status(read.as_str()), world.state.held_count()), (TaskStatus::Available, 0));
    world
        .by("a1")
        .call("complete_task", json!({"task_id": read, "output": "late"}))
        .refuses("is_parent");
}

#[test]
fn wrong_plans_are_refused_with_lines_and_change_nothing() {
    let mut world = World::new();
    import(&mut world, FIRST, false).expect("imported");
    let seq = world.state.seq();
    let cases = [
        (
            "## P1: x\n\n- [ ] P1.M1: a\n- [ ] P1.M1: b\n",
            "line 4: the path P1.M1 stands on line 3 already",
        ),
        (
            "- [ ] a\n  depends: b\n- [ ] b\n  depends: a\n",
            "line 1: a cycle: P3 (line 1) -> P4 (line 3) -> P3 (line 1)",
        ),
        ("- [ ] a\n  - [ ] b\n    depends: a\n", "P3 (line 1) -> P3.M1 (line 2) -> P3 (line 1)"),
        ("- [ ] a\n  - [ ] b\n    depends: d\n- [ ] c\n  depends: a\n  - [ ] d\n", "a cycle"),
    ];
    let long: String =
        (1..=12).map(|one| format!("- [ ] t{one}\n  depends: t{}\n", one % 12 + 1)).collect();
    for (text, part) in
        cases.into_iter().chain([(&*long, "-> P12 (line 19) -> and 2 more; each waits")])
    {
        let message = import(&mut world, text, false).refuses("bad_plan");
        assert!(
            message.contains(part) && message.contains("nothing of the plan"),
            "{text}: {message}"
        );
    }
    assert_eq!(world.state.seq(), seq);
    let moved = json!({"text": "- [ ] a", "prev_sha256": "0123456789"});
    world.nobody().call("import_plan", moved).refuses("plan_moved");
    world.agent("a1").call("import_plan", json!({"text": "- [ ] a"})).refuses("not_leader");
}

#[test]
fn an_exported_plan_is_the_same_plan() {
    let odd = "{\"items\": [{\"title\": \"One `x` *y* <b>\", \"description\": \"# not\\n- [ ] that\\n```\\ndepends: x\\n```\\n\\n   end\",
        \"hints\": \"h: i\", \"tags\": [\"a\", \"b\"], \"files\": [\"src/*.rs\"], \"items\": [{\"title\": \"Two\", \"priority\": 3,
        \"items\": [{\"title\": \"Three\", \"description\": \"- x\\n- y\", \"items\": [{\"title\": \"Four\", \"status\": \"Complete\",
        \"depends\": [\"Five\"]}, {\"title\": \"Five\", \"status\": \"Complete\"}]}]}]}, {\"title\": \"Six\", \"status\": \"Failed\"}]}";
    for text in [FIRST, odd] {
        let mut world = World::new();
        import(&mut world, text, false).expect("imported");
        let count = world.state.live_tasks();
        for format in ["markdown", "json"] {
            world.fetched = Fetched::Nothing;
            let reply = world.call("export_plan", json!({"format": format})).expect("exported");
            let exported =
                reply[format].as_str().map_or_else(|| reply[format].to_string(), str::to_owned);
            let again = import(&mut world, &exported, false)
                .unwrap_or_else(|refusal| panic!("{exported}\n{refusal}"));
            assert_eq!(again["kept"], json!(count), "{exported}\n{again}");
            for list in ["obsolete", "left_done"] {
                assert_eq!(names(&again, list), Vec::<String>::new(), "{exported}");
            }
        }
    }
}

/// Bundles are exempt: their scopes may be any text.
#[test]
fn malformed_scopes_are_refused_by_every_operation_that_takes_one() {
    let takes_scope = |entry: &&Entry| {
        entry
            .input_schema(false)
            .get("properties")
            .is_some_and(|fields| fields.get("scope").is_some())
    };
    let (of_bundles, of_tasks): (Vec<_>, Vec<_>) =
        ops::all().iter().filter(takes_scope).partition(|entry| entry.name.contains("bundle"));
    let names: BTreeSet<_> = of_tasks.iter().map(|entry| entry.name).collect();
    for name in ["claim_task", "get_all_tasks", "get_status", "retry_task", "reset_tasks"] {
        assert!(names.contains(name), "{name} takes none any more");
    }
    assert_eq!(of_bundles.len(), 5);
    let mut world = tree();
    let long = [format!("P{}", "1".repeat(299)), "P1.".repeat(100), "x".repeat(300)];
    let malformed = [
        "P1..M2",
        "X",
        "p1/m2",
        "",
        " ",
        "P1.",
        ".P1",
        "P1.M2 ",
        "P1.T1",
        "P",
        "ALL",
        "P1.M2.T3.S4.S5",
        "P-1",
    ];
    for entry in of_tasks {
        for scope in malformed.into_iter().chain(long.iter().map(String::as_str)) {
            let before = world.state.seq();
            let by = if entry.name == "claim_task" { "a1" } else { "lead" };
            let arguments = match entry.name {
                "save_checkpoint" => json!({"workflow_id": "w", "scope": scope}),
                _ => json!({"scope": scope}),
            };
            let message = world.by(by).call(entry.name, arguments).refuses("bad_path");
            let form = "P1, P1.M2, P1.M2.T3 or P1.M2.T3.S4; a scope may also be all";
            assert!(message.contains(form), "{} {scope:?}: {message}", entry.name);
            assert!(message.len() < 300, "{message}");
            assert_eq!(world.state.seq(), before, "{} {scope:?}", entry.name);
        }
    }
}

#[test]
fn reset_begins_anew_what_the_scope_says() {
    let mut world = tree();
    for task in ["p1-m1-t1", "p1-m1-t2"] {
        world.claim("a1", task);
        world.complete("a1", task);
    }
    world.claim("a1", "p1-m2-t1");
    world.fetched = Fetched::Taken(Listed {
        name: SnapshotName::new(world.now, "0123abcd"),
        bytes: 1,
        head: None,
    });
    world
        .by("lead")
        .call("reset_tasks", json!({"scope": "P1.M2"}))
        .replies(json!({"reset": 0, "held": 1}));
    world
        .by("lead")
        .call("reset_tasks", json!({"scope": "P1.M1"}))
        .replies(json!({"reset": 2, "held": 0}));
    assert_eq!((world.status("m1"), world.read("p1-m1-t1").result), (TaskStatus::Available, None));
    assert_eq!(world.status("p1-m2-t1"), TaskStatus::Claimed, "what was begun goes on");
    world
        .by("lead")
        .call("reset_tasks", json!({"scope": "P1", "held": true}))
        .replies(json!({"reset": 1}));
    assert_eq!(world.state.held_count(), 0);
    world.by("lead").call("reset_tasks", json!({"scope": "P1.X"})).refuses("bad_path");
    world.by("a1").call("reset_tasks", json!({"scope": "all"})).refuses("not_leader");
}

#[test]
fn what_the_plan_does_not_have_is_not_reset() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let print = at(&world, "P2.M2").id;
    import(&mut world, &FIRST.replace("- [ ] Print\n", ""), false).expect("imported");
    assert_eq!(world.status(print.as_str()), TaskStatus::Obsolete);
    world.fetched = Fetched::Taken(Listed {
        name: SnapshotName::new(world.now, "0123abcd"),
        bytes: 1,
        head: None,
    });
    let message =
        world.nobody().call("reset_tasks", json!({"task_id": print})).refuses("wrong_status");
    assert!(
        message.contains("obsolete") && message.contains("put it back into the plan"),
        "{message}"
    );
    world.call("reset_tasks", json!({"scope": "all"})).replies(json!({"success": true}));
}

/// A random plan of some items: often the same ones, with other texts, orders, dependencies and
/// states.
fn invented(chance: &mut Chance) -> Value {
    fn node(chance: &mut Chance, level: u64, number: u64) -> Value {
        let mut item = json!({"title": format!("item {level} {number}{}", if chance.draw().is_multiple_of(6) { " anew" } else { "" })});
        if chance.draw().is_multiple_of(3) {
            item["description"] = json!(format!("text {}", chance.draw() % 3));
        }
        if chance.draw().is_multiple_of(5) {
            item["status"] =
                json!(["Planned", "Complete", "Failed", "Obsolete"][(chance.draw() % 4) as usize]);
        }
        if chance.draw().is_multiple_of(4) {
            item["depends"] = json!([format!("item {level} {}", chance.draw() % 4)]);
        }
        if level < 4 && chance.draw().is_multiple_of(2) {
            let count = chance.draw() % 3;
            item["items"] = (0..count).map(|number| node(chance, level + 1, number)).collect();
        }
        item
    }
    fn node_list(chance: &mut Chance) -> Value {
        let count = 1 + chance.draw() % 4;
        (0..count).map(|number| node(chance, 1, number)).collect()
    }
    json!({"items": node_list(chance)})
}

/// After every step, the world checks `State::check`, the replay and the rollback.
#[test]
fn whatever_is_planned_and_done_the_board_is_sound() {
    let (mut imported, mut refused) = (0, 0);
    for seed in 0..size("CALLBOARD_PLANS", 20) as u64 {
        let mut chance = Chance::new(seed);
        let mut world = World::new().agent("a1").agent_with("a2", json!({"max_concurrent": 3}));
        for _ in 0..60 {
            let ids: Vec<_> = world.state.tasks().map(|task| task.id.clone()).collect();
            let any = ids
                .get(chance.draw() as usize % ids.len().max(1))
                .map_or("none", TaskId::as_str)
                .to_owned();
            let agent = ["a1", "a2"][(chance.draw() % 2) as usize];
            match chance.draw() % 12 {
                0..=2 => {
                    match import(
                        &mut world,
                        &invented(&mut chance).to_string(),
                        chance.draw().is_multiple_of(5),
                    ) {
                        Ok(_) => imported += 1,
                        Err(refusal) => {
                            assert_eq!(refusal.code(), "bad_plan", "{refusal}");
                            refused += 1;
                        }
                    }
                }
                3..=5 => drop(world.by(agent).call("claim_task", json!({}))),
                6 | 7 => {
                    for task in world
                        .state
                        .tasks()
                        .filter(|task| task.status.is_held())
                        .cloned()
                        .collect::<Vec<_>>()
                    {
                        let call = json!({"task_id": task.id, "output": "x"});
                        drop(
                            world
                                .by(task.claimed_by.as_ref().map_or("a1", |id| id.as_str()))
                                .call("complete_task", call),
                        );
                    }
                }
                8 => drop(world.nobody().call("cancel_task", json!({"task_id": any}))),
                9 => drop(world.nobody().call("retry_task", json!({"task_id": any}))),
                10 => {
                    let path = world
                        .state
                        .tasks()
                        .find(|task| task.id.as_str() == any)
                        .and_then(|task| task.path.clone());
                    let path = path.filter(|path| path.matches('.').count() < 3).map(|path| {
                        format!("{path}.{}7", ["M", "T", "S"][path.matches('.').count()])
                    });
                    drop(world.nobody().call(
                        "create_task",
                        json!({"description": "own", "path": path, "dependencies": [any]}),
                    ));
                }
                _ => {
                    let call = json!({"task_id": any, "error": "x", "retryable": chance.draw().is_multiple_of(2)});
                    drop(world.by(agent).call("fail_task", call));
                    world.at(31 * MINUTE);
                }
            }
        }
        world.check();
    }
    println!("{imported} plans imported or shown, {refused} refused");
    assert!(imported > refused / 4 && imported > 0, "{imported} {refused}");
}
