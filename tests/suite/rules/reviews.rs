//! Review: a completed task waits for a reviewer.

use callboard::ops::Fetched;
use callboard::state::policy::Policy;
use callboard::state::review::Review;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::task::{Outcome, TaskStatus};
use callboard::state::time::MINUTE;
use serde_json::{Value, json};

use super::super::world::{Answered, World};

/// A task `t` in review, done by `a1`, with a task that waits for it; and a worker, a leader and an
/// observer.
fn in_review(review: &str) -> World {
    let mut world = World::new()
        .agent_with("lead", json!({"role": "leader"}))
        .agent_with("eyes", json!({"role": "observer"}))
        .agent("other")
        .agent("a1")
        .task_with("t", json!({"review": review, "max_attempts": 1, "context_files": ["src/a.rs"]}))
        .task_with("next", json!({"dependencies": ["t"]}));
    world.claim("a1", "t");
    world.complete("a1", "t");
    world
}

fn approve(world: &mut World, by: &str) -> Result<Value, callboard::state::refusal::Refusal> {
    let arguments = json!({"task_id": "t", "comment": "good"});
    match by {
        "" => world.nobody().call("approve_task", arguments),
        by => world.by(by).call("approve_task", arguments),
    }
}

fn reject(world: &mut World, by: &str) -> Result<Value, callboard::state::refusal::Refusal> {
    let arguments = json!({"task_id": "t", "reason": "the names are wrong"});
    match by {
        "" => world.nobody().call("reject_task", arguments),
        by => world.by(by).call("reject_task", arguments),
    }
}

#[test]
fn a_completed_task_waits_for_review_and_its_worker_is_free() {
    let mut world = World::new()
        .agent("a1")
        .task_with("t", json!({"review": "required"}))
        .task_with("next", json!({"dependencies": ["t"]}))
        .task("free");
    world.claim("a1", "t");
    world.by("a1").call("reserve_files", json!({"files": ["docs/"]})).expect("reserved");
    world.by("a1").call("complete_task", json!({"task_id": "t", "output": "made"})).replies(
        json!({
            "success": true, "already": null, "review": "required",
            "next": "it waits for review; you are free: claim the next with claim_task",
        }),
    );
    let task = world.read("t");
    assert_eq!((task.status, task.completed_at), (TaskStatus::Review, None));
    assert!(task.open_attempt().is_none() && task.result.is_some());
    assert_eq!(world.state.reservations().count(), 0, "they end with the attempt");
    let again = json!({"task_id": "t", "output": "made"});
    world
        .by("a1")
        .call("complete_task", again)
        .replies(json!({"already": true, "review": "required"}));
    world.by("a1").call("claim_task", json!({"task_id": "next"})).refuses("not_ready");
    assert_eq!(world.next("a1")["task"]["id"], "free");
}

#[test]
fn an_approved_task_is_done_and_frees_what_waits_for_it() {
    let mut world = in_review("required");
    let completed = |world: &World| {
        let agent = world.state.agents().find(|agent| agent.id.as_str() == "a1");
        agent.map(|agent| agent.tasks_completed)
    };
    assert_eq!(completed(&world), Some(0));
    approve(&mut world, "other")
        .replies(json!({"success": true, "status": "done", "already": null}));
    assert_eq!(completed(&world), Some(1));
    let task = world.read("t");
    let reviewed = task.reviewed().expect("it was reviewed");
    assert_eq!(
        (
            reviewed.approved,
            reviewed.by.as_ref().map(|by| by.as_str()),
            reviewed.comment.as_deref()
        ),
        (true, Some("other"), Some("good"))
    );
    assert_eq!(world.attempt("t").outcome, Some(Outcome::Done));
    approve(&mut world, "lead").replies(json!({"already": true}));
    reject(&mut world, "lead").refuses("wrong_status");
    assert_eq!(world.next("a1")["task"]["id"], "next");
}

#[test]
fn a_rejected_task_is_available_with_the_reason_and_costs_no_attempt() {
    let mut world = in_review("required");
    for time in 1..=3 {
        reject(&mut world, "other").replies(json!({"status": "available", "already": null}));
        reject(&mut world, "other").replies(json!({"already": true}));
        let task = world.read("t");
        assert_eq!((task.attempts_used(), task.result.as_ref()), (0, None), "time {time}");
        assert_eq!(world.attempt("t").outcome, Some(Outcome::Rejected));
        approve(&mut world, "lead").refuses("wrong_status");
        world.by("a1").call("claim_task", json!({})).replies(json!({
            "task": {"id": "t"}, "attempt": time + 1,
            "handoff": {"last_attempt": {
                "agent": "a1", "error": "the names are wrong", "rejected_by": "other",
            }},
        }));
        let done = json!({"task_id": "t", "output": "again", "branch": "work/t", "commit": "abc"});
        world.by("a1").call("complete_task", done).expect("completed");
    }
    reject(&mut world, "").expect("sent back");
    world.by("other").call("claim_task", json!({})).replies(json!({"handoff": {"last_attempt": {
        "branch": "work/t", "commit": "abc", "rejected_by": "human",
    }}}));
}

#[test]
fn who_did_the_work_does_not_approve_it_and_a_role_limits_who_may() {
    // Who asks, and what comes of an approval and of a rejection under each rule.
    let table = [
        ("required", "a1", Err("own_work"), Ok(())),
        ("required", "other", Ok(()), Ok(())),
        ("required", "lead", Ok(()), Ok(())),
        ("required", "eyes", Err("not_reviewer"), Err("not_reviewer")),
        ("required", "stranger", Err("unknown_agent"), Err("unknown_agent")),
        ("required", "", Ok(()), Ok(())),
        ("by leader", "a1", Err("own_work"), Err("not_reviewer")),
        ("by leader", "other", Err("not_reviewer"), Err("not_reviewer")),
        ("by leader", "lead", Ok(()), Ok(())),
        ("by leader", "", Ok(()), Ok(())),
        ("by worker", "lead", Err("not_reviewer"), Err("not_reviewer")),
        ("by worker", "other", Ok(()), Ok(())),
        ("by worker", "", Ok(()), Ok(())),
    ];
    for (rule, who, approval, rejection) in table {
        type Ask = fn(&mut World, &str) -> Result<Value, callboard::state::refusal::Refusal>;
        for (ask, expected) in [(approve as Ask, approval), (reject as Ask, rejection)] {
            let mut world = in_review(rule);
            let answer = ask(&mut world, who);
            match expected {
                Ok(()) => drop(answer.unwrap_or_else(|error| panic!("{rule} {who}: {error}"))),
                Err(code) => {
                    answer.refuses(code);
                    assert_eq!(world.status("t"), TaskStatus::Review);
                }
            }
        }
    }
}

#[test]
fn a_leader_does_not_approve_its_own_work_either() {
    let mut world = World::new()
        .agent_with("lead", json!({"role": "leader"}))
        .task_with("t", json!({"review": "by leader"}))
        .claimed("lead", "t");
    world.complete("lead", "t");
    approve(&mut world, "lead").refuses("own_work");
    approve(&mut world, "").expect("the person may");
}

#[test]
fn the_task_then_what_it_is_part_of_then_the_board_says_whether_it_is_reviewed() {
    let policy = Policy { review: Review::ByLeader, ..Policy::default() };
    let mut world =
        World::with_policy(policy).agent_with("lead", json!({"role": "leader"})).agent("a1");
    world.create("top", json!({"path": "P1", "review": "by worker"}));
    world.create("part", json!({"path": "P1.M1"}));
    world.create("own", json!({"path": "P1.M2", "review": "required"}));
    world.create("apart", json!({}));
    for (id, rule) in [("part", "by worker"), ("own", "required"), ("apart", "by leader")] {
        world.claim("a1", id);
        let done = json!({"task_id": id, "output": "made"});
        world.by("a1").call("complete_task", done).replies(json!({"review": rule}));
    }
    let less = json!({"description": "d", "path": "P1.M3", "review": "none"});
    world.nobody().call("create_task", less.clone()).refuses("review_needed");
    let batch = json!({"tasks": [{"description": "d"}, less]});
    world.nobody().call("create_tasks_batch", batch).refuses("review_needed");
    world.create("small", json!({}));
    world.claim("a1", "small");
    let exempt = json!({"task_id": "small", "review": "none"});
    world.by("a1").call("update_task", exempt.clone()).refuses("not_leader");
    world.by("lead").call("update_task", exempt).expect("a leader may");
    world.complete("a1", "small");
    assert_eq!(world.status("small"), TaskStatus::Done);
}

#[test]
fn a_review_is_asked_for_changed_and_taken_back() {
    let mut world = World::new().agent("a1").task("t");
    let change = |world: &mut World, review: &str| {
        world.nobody().call("update_task", json!({"task_id": "t", "review": review}))
    };
    for (given, kept) in [
        ("by leader", Some(Review::ByLeader)),
        ("worker", Some(Review::ByWorker)),
        ("none", Some(Review::None)),
        ("default", None),
    ] {
        change(&mut world, given).expect("changed");
        assert_eq!(world.read("t").review, kept, "{given}");
    }
    change(&mut world, "by observer").refuses("bad_arguments");
    // A worker may ask for more on its own task.
    world.claim("a1", "t");
    world
        .by("a1")
        .call("update_task", json!({"task_id": "t", "review": "required"}))
        .expect("asked");
}

#[test]
fn counters_and_filters_count_a_review_as_in_progress() {
    let mut world = in_review("required");
    world.nobody().call("get_status", json!({})).replies(json!({
        "tasks": {"available": 1, "claimed": 0, "in_progress": 1, "done": 0, "failed": 0},
        "total_tasks": 2, "of_in_progress": {"review": 1}, "progress_percent": 0,
        "in_review": [{"task": "t", "agent": "a1", "attempt": 1}],
        "queue": {"deadlocked": null},
    }));
    for (filter, found) in [("in_progress", 1), ("review", 1), ("claimed", 0), ("done", 0)] {
        let list = world.nobody().call("get_all_tasks", json!({"status_filter": filter}));
        let list = list.expect("a list");
        assert_eq!(list["tasks"].as_array().map(Vec::len), Some(found), "{filter}: {list}");
        let list = world
            .nobody()
            .call("get_all_tasks", json!({"status_filter": filter, "sort": "priority"}))
            .expect("a list");
        assert_eq!(list["tasks"].as_array().map(Vec::len), Some(found), "{filter}: {list}");
    }
    let several = json!({"statuses": ["in_progress", "done"]});
    let list = world.nobody().call("get_all_tasks", several).expect("a list");
    assert_eq!(list["tasks"][0]["status"], "review");
}

#[test]
fn what_is_behind_a_review_says_that_it_waits_for_it() {
    let mut world = in_review("by leader");
    world.by("other").call("claim_task", json!({})).replies(json!({
        "success": false, "verdict": "wait", "blocked": 1, "held": 0, "in_review": 1,
        "message": "no task is ready: 0 held, 1 blocked, 1 waits for review",
    }));
    let explained = world.nobody().call("explain_task", json!({"task_id": "next"})).expect("why");
    let text = explained.to_string();
    assert!(text.contains("which waits for review"), "{text}");
    let explained = world.nobody().call("explain_task", json!({"task_id": "t"})).expect("why");
    assert!(explained.to_string().contains("it waits for review by a leader"), "{explained}");
    let refusal = world.by("other").call("claim_task", json!({"task_id": "t"}));
    assert!(refusal.refuses("wrong_status").contains("it waits for review"));
}

#[test]
fn a_review_outlives_its_worker_and_every_lease() {
    let mut world = World::new()
        .agent_in("b1", "b")
        .agent("other")
        .task_with("t", json!({"review": "required"}));
    world.lives_in("b1", "b");
    world.claim("b1", "t");
    world.complete("b1", "t");
    world.kill("b");
    for _ in 0..3 {
        world.at(1_000 * MINUTE);
        assert_eq!(world.status("t"), TaskStatus::Review);
    }
    approve(&mut world, "other").expect("approved");
    world.check();
}

#[test]
fn a_late_result_is_reviewed_too() {
    let mut world =
        World::new().agent("a1").agent("other").task_with("t", json!({"review": "required"}));
    world.claim("a1", "t");
    world.at(31 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available);
    assert_eq!(world.complete("a1", "t")["review"], "required");
    approve(&mut world, "other").expect("approved");
    assert_eq!(world.attempt("t").outcome, Some(Outcome::Done));
}

#[test]
fn a_review_is_of_the_attempt_that_was_looked_at() {
    let mut world = in_review("required");
    let of = |attempt: u32| json!({"task_id": "t", "reason": "no", "attempt": attempt});
    world.nobody().call("reject_task", of(2)).refuses("attempt_over");
    world.nobody().call("reject_task", of(1)).expect("sent back");
    world.claim("other", "t");
    world.complete("other", "t");
    let stale = json!({"task_id": "t", "attempt": 1});
    world.nobody().call("approve_task", stale).refuses("attempt_over");
    world.nobody().call("approve_task", json!({"task_id": "t", "attempt": 2})).expect("approved");
}

#[test]
fn a_task_in_review_is_cancelled_and_reset_and_what_it_made_is_kept() {
    for (call, arguments, status) in [
        ("cancel_task", json!({"task_id": "t", "reason": "not needed"}), TaskStatus::Cancelled),
        ("reset_tasks", json!({"task_id": "t"}), TaskStatus::Available),
    ] {
        let mut world = in_review("required");
        world.fetched = Fetched::Taken(Listed {
            name: SnapshotName::new(world.now, "0123abcd"),
            bytes: 1,
            head: None,
        });
        world.nobody().call(call, arguments).expect(call);
        assert_eq!(world.status("t"), status, "{call}");
        let late = world.attempt("t").late_result.expect("it is kept");
        assert_eq!(late.output.as_deref(), Some("made"), "{call}");
        approve(&mut world, "").refuses("wrong_status");
        world.check();
    }
}

#[test]
fn a_parent_is_not_done_while_a_part_is_in_review() {
    let mut world = World::new().agent("a1");
    world.create("top", json!({"path": "P1", "review": "required"}));
    world.create("part", json!({"path": "P1.M1"}));
    world.create("behind", json!({"dependencies": ["top"]}));
    world.claim("a1", "part");
    world.complete("a1", "part");
    assert_eq!(world.status("top"), TaskStatus::Available);
    world.nobody().call("get_task", json!({"task_id": "top"})).replies(json!({
        "parts": {"status": "in_progress", "review": 1, "done": 0},
    }));
    world.nobody().call("approve_task", json!({"task_id": "top"})).refuses("is_parent");
    world.by("a1").call("claim_task", json!({"task_id": "behind"})).refuses("not_ready");
    world.nobody().call("approve_task", json!({"task_id": "part"})).expect("approved");
    assert_eq!(world.status("top"), TaskStatus::Done);
}

#[test]
fn a_new_part_below_a_task_in_review_leaves_the_review_alone() {
    let mut world = World::new().agent("a1");
    world.create("t", json!({"path": "P1.M1", "review": "required"}));
    world.claim("a1", "t");
    world.complete("a1", "t");
    world.create("more", json!({"path": "P1.M1.T1"}));
    assert_eq!(world.read("more").parent, None);
    approve(&mut world, "").expect("approved");
    assert_eq!(world.status("t"), TaskStatus::Done);
    assert!(world.state.apart().is_empty(), "what was asked for later is no fault");
}

#[test]
fn a_reviewed_task_waits_from_the_end_of_its_review_on() {
    let policy = Policy { aging_minutes: 10, ..Policy::default() };
    let mut world = World::with_policy(policy).agent("a1").agent("other");
    world.create("t", json!({"review": "required", "priority": 5}));
    world.claim("a1", "t");
    world.complete("a1", "t");
    world.at(60 * MINUTE);
    reject(&mut world, "other").expect("sent back");
    let task = world.read("t");
    assert_eq!(world.state.effective_priority(&task, world.policy.aging(), world.now), 5);
}

#[test]
fn a_plan_asks_for_reviews_and_leaves_a_review_to_its_reviewer() {
    let text = |first: &str, more: &str| json!({"text": format!("# Plan\n\nreview: by leader\n\n- [ ] Write it\n{first}- [ ] Test it\n{more}")});
    let mut world = World::new().agent("a1").agent_with("lead", json!({"role": "leader"}));
    let import =
        |world: &mut World, plan: Value| world.nobody().call("import_plan", plan).expect("it fits");
    import(&mut world, text("  review: by worker\n", ""));
    let ids: Vec<_> = world.state.tasks().map(|task| task.id.to_string()).collect();
    let rules = |world: &World| {
        let rule = |id: &String| world.state.review_of(&world.read(id), &Policy::default());
        ids.iter().map(|id| rule(id).as_str()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&world), ["by worker", "by leader"]);
    for format in ["json", "markdown"] {
        let plan = world.nobody().call("export_plan", json!({"format": format})).expect("exported");
        let text = if plan["json"].is_object() {
            plan["json"].to_string()
        } else {
            plan["markdown"].as_str().expect("text").to_owned()
        };
        let read = callboard::plan::parse(&text).expect("a plan");
        assert_eq!(read.review, Some(Review::ByLeader), "{text}");
        assert_eq!(read.items[0].further.trials.review, Some(Review::ByWorker), "{text}");
        assert_eq!(read.items[1].further.trials.review, None, "{text}");
    }
    import(&mut world, text("", ""));
    assert_eq!(rules(&world), ["by leader", "by leader"]);
    world.next("a1");
    world.complete("a1", &ids[0]);
    // Ticked, reworded, and left out: its reviewer decides.
    for plan in ["# Plan\n\n- [x] Write it\n- [ ] Test it\n", "# Plan\n\n- [ ] Test it\n"] {
        import(&mut world, json!({"text": plan}));
        assert_eq!(world.status(&ids[0]), TaskStatus::Review, "{plan}");
    }
    let sent_back = json!({"task_id": ids[0], "reason": "no"});
    world.nobody().call("reject_task", sent_back).expect("sent back");
    assert_eq!(world.status(&ids[0]), TaskStatus::Obsolete);
}
