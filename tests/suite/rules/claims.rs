//! Claims: which task an agent gets, what comes with it, and why it gets none.

use callboard::ops::Fetched;
use callboard::state::time::{MINUTE, SECOND};
use serde_json::json;

use super::super::world::{Answered, World};

#[test]
fn claims_go_by_priority_then_age() {
    let mut world = World::new()
        .agent_with("a1", json!({"max_concurrent": 9}))
        .task_with("low", json!({"priority": 9}))
        .task("old")
        .task("new")
        .task_with("first", json!({"priority": 1}));
    for expected in ["first", "old", "new", "low"] {
        let reply = world.next("a1");
        assert_eq!(reply["task"]["id"], expected);
        world.by("a1").call("start_task", json!({"task_id": expected})).expect("started");
    }
}

#[test]
fn task_that_the_agent_failed_before_comes_last_for_it_alone() {
    let mut world = World::new()
        .agent("a1")
        .agent("a2")
        .task_with("failed", json!({"priority": 1}))
        .task("other");
    world.claim("a1", "failed");
    world.call("fail_task", json!({"task_id": "failed", "error": "x"})).expect("failed");
    world.at(MINUTE);
    assert_eq!(world.next("a1")["task"]["id"], "other");
    assert_eq!(world.next("a2")["task"]["id"], "failed");
    world.call("release_task", json!({"task_id": "failed"})).expect("released");
    world.complete("a1", "other");
    assert_eq!(world.next("a1")["task"]["id"], "failed", "when there is nothing else");
}

#[test]
fn demands_must_all_be_met() {
    let demands = [
        (json!({"capabilities": ["gpu"]}), json!({"capabilities": ["gpu", "rust"]}), "gpu"),
        (json!({"tags": ["eu"]}), json!({"tags": ["eu"]}), "eu"),
        (json!({"hostname": "h1"}), json!({"properties": {"hostname": "h1"}}), "hostname=h1"),
        (
            json!({"project_dir": "/p"}),
            json!({"properties": {"project_dir": "/p"}}),
            "project_dir=/p",
        ),
        (json!({"profile": "x"}), json!({"properties": {"profile": "x"}}), "profile=x"),
        (json!({"type": "claude"}), json!({"properties": {"type": "claude"}}), "type=claude"),
    ];
    for (demanded, offered, missing) in demands {
        let mut world = World::new()
            .task_with("t", json!({"demands": demanded}))
            .agent("plain")
            .agent_with("able", offered);
        let named =
            world.by("plain").call("claim_task", json!({"task_id": "t"})).refuses("demands_unmet");
        assert!(
            named.contains("`plain`") && !named.contains(missing),
            "others' words stay in their field: {named}"
        );
        world.by("plain").call("claim_task", json!({})).replies(json!({
            "success": false, "verdict": "unsuited", "demands_unmet": 1, "missing": [missing], "agent_id": "plain",
        }));
        assert_eq!(world.next("able")["task"]["id"], "t");
    }
}

#[test]
fn scope_is_a_path_prefix_and_nothing_else() {
    let mut world = World::new().agent("a1").task("t");
    let message =
        world.by("a1").call("claim_task", json!({"scope": "P1.M2"})).refuses("empty_scope");
    assert!(message.contains("`P1.M2`") && message.contains("get_all_tasks"), "{message}");
    for bad in ["p1", "P1.T2", "P1.M2.T3.S4.X5", "P", "../etc", ""] {
        let message = world.call("claim_task", json!({"scope": bad})).refuses("bad_path");
        assert!(message.contains("P1.M2.T3.S4"), "{message}");
    }
    world.call("claim_task", json!({"scope": "all"})).replies(json!({"task": {"id": "t"}}));
}

#[test]
fn failed_attempts_wait_30_seconds_doubled_each_time_up_to_an_hour() {
    let mut world = World::new().agent("a1").task_with("t", json!({"max_attempts": 12}));
    for pause in [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
        world.claim("a1", "t");
        world
            .call("fail_task", json!({"task_id": "t", "error": "x"}))
            .replies(json!({"status": "available"}));
        let until = world.read("t").not_before.expect("a pause");
        assert_eq!(until.since(world.now), pause * SECOND);
        world.at(pause * SECOND - 1);
        let message = world.call("claim_task", json!({"task_id": "t"})).refuses("too_early");
        assert!(message.contains(&until.to_string()), "{message}");
        world
            .call("claim_task", json!({}))
            .replies(json!({"verdict": "wait", "waiting_retry": 1, "retry_after": 1}));
        world.at(1);
    }
}

#[test]
fn claim_that_was_not_acted_on_is_given_again() {
    let mut world = World::new().agent("a1").task("t").task("u");
    let first = world.next("a1");
    let again = world.next("a1");
    assert_eq!(
        (&again["already"], &again["task"], &again["attempt"]),
        (&json!(true), &first["task"], &json!(1))
    );
    world.call("claim_task", json!({"task_id": "t"})).replies(json!({"already": true}));
    world.call("heartbeat", json!({})).replies(json!({"task_id": "t"}));
    world.call("claim_task", json!({})).replies(json!({"already": true}));
    world.call("start_task", json!({"task_id": "t"})).expect("started");
    world.call("claim_task", json!({})).replies(json!({
        "success": false, "holding": [{"task": "t", "attempt": 1, "title": "do t"}],
        "next": "go on with it (get_task has all of it) and complete it; a subagent registers its own agent_id",
    }));
}

#[test]
fn heartbeat_about_a_task_shows_that_its_claim_arrived() {
    for arguments in [
        json!({"task_id": "t"}),
        json!({"note": "reading"}),
        json!({"task_id": "t", "note": "reading"}),
    ] {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world.call("heartbeat", arguments).expect("alive");
        world
            .call("claim_task", json!({}))
            .replies(json!({"holding": [{"task": "t", "attempt": 1}]}));
    }
}

#[test]
fn whatever_names_a_task_shows_its_holders_claim_arrived() {
    let artifact =
        json!({"name": "a.txt", "bytes": 1, "sha256": "00", "at": "2026-03-01T12:00:00.000Z"});
    for (name, arguments) in [
        ("add_discovery", json!({"task_id": "t", "content": "it is odd", "idempotency_key": "k"})),
        ("reserve_files", json!({"task_id": "t", "files": ["src/a.rs"]})),
        ("update_task", json!({"task_id": "t", "hints": "mind the gap"})),
        ("attach_artifact", json!({"task_id": "t", "name": "a.txt", "text": "x"})),
    ] {
        let mut world =
            World::new().agent("a1").agent_with("lead", json!({"role": "leader"})).task("t");
        world.claim("a1", "t");
        world.fetched =
            Fetched::Artifact(serde_json::from_value(artifact.clone()).expect("an artifact"));
        if name != "reserve_files" {
            world.by("lead").call(name, arguments.clone()).expect("by another");
            assert_eq!(world.next("a1")["already"], true, "{name}: another's word shows nothing");
        }
        world.by("a1").call(name, arguments.clone()).expect(name);
        world
            .call("claim_task", json!({}))
            .replies(json!({"holding": [{"task": "t", "attempt": 1}]}));
        world.call(name, arguments).expect(name);
        assert_eq!(world.count_of("noted"), 1, "{name}: once is enough");
    }
    for (name, arguments) in [
        ("add_discovery", json!({"content": "it is odd"})),
        ("reserve_files", json!({"files": ["src/a.rs"]})),
    ] {
        let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
        world.by("a1").call(name, arguments).expect(name);
        assert_eq!(world.next("a1")["already"], true, "{name}: it may not know of the task");
    }
}

#[test]
fn agent_holds_at_most_max_concurrent() {
    let mut world =
        World::new().agent_with("a1", json!({"max_concurrent": 2})).task("t").task("u").task("v");
    for task in ["t", "u"] {
        world.claim("a1", task);
        world.call("start_task", json!({"task_id": task})).expect("started");
    }
    let holding = json!([{"task": "t", "attempt": 1}, {"task": "u", "attempt": 1}]);
    world.call("claim_task", json!({})).replies(json!({"success": false, "holding": holding}));
    world.call("claim_task", json!({"task_id": "v"})).replies(json!({"holding": holding}));
    world.complete("a1", "t");
    world.claim("a1", "v");
}

#[test]
fn wrong_task_id_is_answered_with_what_the_agent_holds() {
    let mine = json!({"title": "My </b> title"});
    let world =
        World::new().agent("w").agent("v").task_with("mine", mine).task("other").task("free");
    let mut world = world.claimed("w", "mine").claimed("v", "other");
    let calls = [
        ("complete_task", json!({"output": "o"})),
        ("fail_task", json!({"error": "e"})),
        ("release_task", json!({"reason": "r"})),
        ("heartbeat", json!({"note": "n"})),
        ("start_task", json!({})),
    ];
    for (operation, arguments) in calls {
        for (task, code) in
            [("nowhere", "unknown_task"), ("other", "held_by_other"), ("free", "not_held")]
        {
            let mut arguments = arguments.clone();
            arguments["task_id"] = json!(task);
            let refusal = world.by("w").call(operation, arguments).expect_err("it is not its own");
            assert_eq!(refusal.code(), code, "{operation} {task}");
            let told = refusal.to_string();
            assert!(
                told.ends_with("; you hold `mine`") && told.len() <= 200,
                "{operation}: {told}"
            );
            let data = serde_json::to_value(&refusal).expect("JSON");
            let holding = json!([{"task": "mine", "title": "My </b> title", "attempt": 1}]);
            assert_eq!((&data["task"], &data["holding"]), (&json!(task), &holding), "{operation}");
        }
    }
    world.complete("w", "mine");
    let told =
        world.by("w").call("heartbeat", json!({"task_id": "nowhere"})).refuses("unknown_task");
    assert!(!told.contains("you hold"), "{told}");
}

#[test]
fn board_without_tasks_says_whom_to_ask() {
    let ask = |world: &mut World, agent: &str| {
        let empty = json!({"success": false, "verdict": "empty", "held": 0, "retry_after": 30});
        world.by(agent).call("claim_task", json!({})).replies(empty)["next"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut world = World::new().agent("w");
    assert!(ask(&mut world, "w").contains("the person"));
    let mut world = world.agent_with("boss", json!({"role": "leader"}));
    assert!(ask(&mut world, "w").contains("leader `boss`"));
    assert!(ask(&mut world, "boss").contains("create_tasks_batch"));
    assert!(
        world.by("w").waits("claim_task", json!({"wait_seconds": 50})),
        "a task may still come"
    );
    world.nobody().call("pause", json!({})).expect("it is paused");
    world.by("w").call("claim_task", json!({})).replies(json!({"verdict": "paused"}));
    world.nobody().call("resume", json!({})).expect("it is resumed");
    // A board whose tasks are all over is finished, not empty.
    world.create("t", json!({}));
    world.nobody().call("cancel_task", json!({"task_id": "t"})).expect("it is cancelled");
    world.by("w").call("claim_task", json!({})).replies(json!({"verdict": "finished"}));
}

#[test]
fn claim_says_what_the_task_is_for_and_nothing_empty() {
    let mut world = World::new().agent("w");
    let goal = format!("Ship \"it\"\n{}", "soon ".repeat(100));
    world.nobody().call("init_coordination", json!({"goal": goal})).expect("the goal is set");
    for (path, title) in [
        ("P1", "First phase"),
        ("P1.M1", "A milestone"),
        ("P1.M1.T1", "A task"),
        ("P1.M1.T1.S1", "The part"),
    ] {
        world.create(path, json!({"path": path, "title": title}));
    }
    let claim = world.next("w");
    assert_eq!(claim["above"], json!(["First phase", "A milestone", "A task"]), "{claim}");
    assert!(
        claim["goal"].as_str().is_some_and(|goal| goal.starts_with("Ship \"it\" soon ")),
        "{claim}"
    );
    let around = json!({"goal": claim["goal"], "above": claim["above"]}).to_string();
    assert!(around.len() <= 200, "{} bytes", around.len());
    assert_eq!(claim["task"]["title"], "The part");
    let text = claim.to_string();
    assert!(
        !text.contains("null") && !text.contains("planned") && !text.contains("settings"),
        "{text}"
    );
}

#[test]
fn empty_handed_agent_is_told_why() {
    let mut world = World::new().agent("a1").agent("a2");
    world.create("t", json!({"max_attempts": 1}));
    world.create("u", json!({"dependencies": ["t"]}));
    world.claim("a1", "t");
    let waiting =
        json!({"verdict": "wait", "blocked": 1, "held": 1, "waiting_retry": 0, "demands_unmet": 0});
    world.by("a2").call("claim_task", json!({})).replies(waiting);
    world
        .by("a1")
        .call("fail_task", json!({"task_id": "t", "error": "x"}))
        .replies(json!({"status": "failed"}));
    world
        .by("a2")
        .call("claim_task", json!({}))
        .replies(json!({"verdict": "stuck", "blocked": 1, "retry_after": null}));
    world.call("get_status", json!({})).replies(json!({
        "blocked_by_failure": [{"task": "u", "by": ["t"]}], "queue": {"deadlocked": true, "blocked": 1},
    }));
    world.nobody().call("pause", json!({})).expect("paused");
    world
        .by("a2")
        .call("claim_task", json!({}))
        .replies(json!({"verdict": "paused", "next": "finish what you hold and stop"}));
    world.nobody().call("resume", json!({})).expect("resumed");
    world.nobody().call("cancel_task", json!({"task_id": "u"})).expect("cancelled");
    world
        .by("a2")
        .call("claim_task", json!({}))
        .replies(json!({"verdict": "finished", "agent_id": "a2"}));
}

#[test]
fn whoever_comes_before_the_plan_waits_for_its_scope() {
    let mut world = World::new().agent("a1");
    world.by("a1").call("claim_task", json!({"scope": "P1"})).replies(json!({"verdict": "empty"}));
    assert!(world.waits("claim_task", json!({"scope": "P1", "wait_seconds": 50})));
    world.create("t", json!({"path": "P2.M1"}));
    world.by("a1").call("claim_task", json!({"scope": "P1"})).refuses("empty_scope");
}

#[test]
fn of_a_scope_it_is_told_what_is_left_there() {
    let mut world = World::new().agent("a1").agent("a2").task("elsewhere");
    for (id, path, more) in [
        ("one", "P1.M1", json!([])),
        ("two", "P1.M2", json!(["one"])),
        ("three", "P2.M1", json!([])),
    ] {
        world.create(id, json!({"path": path, "dependencies": more}));
    }
    let ask = |scope: &str| json!({"scope": scope});
    world
        .by("a1")
        .call("claim_task", ask("P1.M2"))
        .replies(json!({"verdict": "wait", "blocked": 1, "held": 0}));
    world.by("a1").call("claim_task", ask("P1")).replies(json!({"task": {"id": "one"}}));
    world
        .by("a2")
        .call("claim_task", ask("P1"))
        .replies(json!({"verdict": "wait", "blocked": 1, "held": 1}));
    world.call("claim_task", ask("P2")).replies(json!({"task": {"id": "three"}}));
    world.complete("a2", "three");
    let finished = json!({"verdict": "finished", "message": "every task of P2 is finished", "held": 0, "blocked": 0});
    world.call("claim_task", ask("P2")).replies(finished);
    assert!(!world.waits("claim_task", json!({"scope": "P2", "wait_seconds": 50})));
    assert!(world.waits("claim_task", json!({"scope": "P1", "wait_seconds": 50})));
}

/// More tasks than are skipped one by one.
#[test]
fn tasks_of_a_scope_are_found_behind_many_others() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 9, "tags": ["eu"]}));
    for _ in 0..3 {
        let tasks: Vec<_> =
            (0..500).map(|_| json!({"description": "elsewhere", "priority": 1})).collect();
        world.call("create_tasks_batch", json!({"tasks": tasks})).expect("made");
    }
    for (id, path, more) in [
        ("last", "P1.M2.T1", json!({"priority": 9})),
        ("like", "P10.M1", json!({"priority": 2})),
        ("first", "P1.M1", json!({})),
        ("gpu", "P1.M3", json!({"priority": 2, "demands": {"capabilities": ["gpu"]}})),
        ("behind", "P1.M4", json!({"priority": 2, "dependencies": ["last"]})),
        ("second", "P1.M5.T1", json!({"demands": {"tags": ["eu"]}})),
    ] {
        let mut task = json!({"path": path});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.create(id, task);
    }
    for expected in ["first", "second", "last"] {
        world
            .by("a1")
            .call("claim_task", json!({"scope": "P1"}))
            .replies(json!({"task": {"id": expected}}));
        world.call("start_task", json!({"task_id": expected})).expect("started");
    }
    let held = ["first", "second", "last"].map(|id| json!({"task": id}));
    world
        .call("claim_task", json!({"scope": "P1"}))
        .replies(json!({"success": false, "holding": held}));
    world.agent("a2").by("a2").call("claim_task", json!({"scope": "P1"})).replies(json!({
        "verdict": "wait", "blocked": 1, "demands_unmet": 1, "held": 3,
    }));
}

#[test]
fn a_named_task_outside_the_scope_is_refused() {
    let mut world = World::new().agent("a1").task_with("in", json!({"path": "P1.M1"}));
    world.create("out", json!({"path": "P10.M1"}));
    world.create("nowhere", json!({}));
    for outside in ["out", "nowhere"] {
        let asked = json!({"task_id": outside, "scope": "P1"});
        let message = world.by("a1").call("claim_task", asked).refuses("outside_scope");
        assert!(message.contains(outside) && message.contains("`P1`"), "{message}");
    }
    world
        .call("claim_task", json!({"task_id": "in", "scope": "P1"}))
        .replies(json!({"success": true}));
}

#[test]
fn who_waits_for_what_it_holds_itself_is_told_so() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 2})).agent("a2");
    for (id, path) in [("t1", "P1.M1"), ("t2", "P2.M1")] {
        world.create(id, json!({"path": path}));
    }
    world.create("t3", json!({"path": "P1.M3", "dependencies": ["t1"]}));
    world.claim("a2", "t2");
    world.claim("a1", "t1");
    world.call("start_task", json!({"task_id": "t1"})).expect("started");
    let ask = |scope: Option<&str>| json!({"scope": scope, "wait_seconds": 3});
    let waiting = world.prepared("claim_task", ask(None)).expect("the arguments are good");
    assert!(world.by("a1").waits_on(waiting.as_ref()), "another holds something");
    let told = world.call("claim_task", ask(None)).replies(json!({"verdict": "wait", "held": 2}));
    assert!(
        told["next"].as_str().is_some_and(|next| next.starts_with("go on with what you hold")),
        "{told}"
    );
    world
        .call("claim_task", ask(Some("P1")))
        .replies(json!({"verdict": "wait", "held": 1, "blocked": 1}));
    world.by("a2").call("fail_task", json!({"task_id": "t2", "error": "x"})).expect("failed");
    assert!(world.by("a1").waits_on(waiting.as_ref()), "it will be tried again");
    world.nobody().call("cancel_task", json!({"task_id": "t2"})).expect("cancelled");
    assert!(world.by("a1").waits_on(waiting.as_ref()), "it has room for what is created meanwhile");
    for scope in [None, Some("all"), Some("P1"), Some("P1.M3")] {
        let reply = world.call("claim_task", ask(scope)).replies(json!({
            "success": false, "verdict": null, "holding": [{"task": "t1", "attempt": 1, "title": "do t1"}],
        }));
        assert!(
            reply["next"].as_str().is_some_and(|next| next.contains("go on with it")),
            "{reply}"
        );
    }
    world.call("claim_task", ask(Some("P2"))).replies(json!({"verdict": "finished"}));
    world.complete("a1", "t1");
    assert_eq!(world.next("a1")["task"]["id"], "t3");
}

#[test]
fn a_claim_is_not_answered_again_to_who_asks_for_another_part_of_the_plan() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 2}));
    for (id, path) in [("t1", "P1.M1"), ("t2", "P2.M1")] {
        world.create(id, json!({"path": path}));
    }
    world.claim("a1", "t1");
    let held = json!({"success": false, "holding": [{"task": "t1", "attempt": 1}]});
    for asked in [json!({"scope": "P2"}), json!({"scope": "P2", "task_id": "t1"})] {
        world.by("a1").call("claim_task", asked).replies(held.clone());
    }
    world.call("claim_task", json!({"scope": "P1"})).replies(json!({"already": true}));
    world.call("start_task", json!({"task_id": "t1"})).expect("started");
    world.call("claim_task", json!({"scope": "P2"})).replies(json!({"task": {"id": "t2"}}));
}

#[test]
fn who_may_yet_be_needed_is_not_told_to_stop() {
    let gpu = json!({"demands": {"capabilities": ["gpu"]}, "dependencies": []});
    let mut world = World::new()
        .agent("plain")
        .agent_with("able", json!({"capabilities": ["gpu"]}))
        .task_with("g", gpu);
    let empty =
        |world: &mut World, more| world.by("plain").call("claim_task", json!({})).replies(more);
    empty(&mut world, json!({"verdict": "unsuited", "blocked": 0}));
    world.create("after", json!({"dependencies": ["g"]}));
    empty(&mut world, json!({"verdict": "wait", "blocked": 1, "demands_unmet": 1}));
    world.at(30 * MINUTE);
    world.by("plain").call("heartbeat", json!({})).expect("alive");
    empty(&mut world, json!({"verdict": "unsuited", "blocked": 1}));
}

#[test]
fn who_waits_for_another_part_of_the_plan_is_not_told_to_stop() {
    let gpu = json!({"path": "P1.M1.T1", "demands": {"capabilities": ["gpu"]}});
    let mut world = World::new().agent("a1").agent("other").task_with("g", gpu);
    world.create("o", json!({"path": "P2.M1.T1"}));
    world.create("x", json!({"path": "P1.M1.T2", "dependencies": ["o"]}));
    world.claim("other", "o");
    let ask = json!({"scope": "P1"});
    world
        .by("a1")
        .call("claim_task", ask.clone())
        .replies(json!({"verdict": "wait", "blocked": 1, "held": 0}));
    assert!(world.waits("claim_task", json!({"scope": "P1", "wait_seconds": 50})));
    world.complete("other", "o");
    world.by("a1").call("claim_task", ask).replies(json!({"task": {"id": "x"}}));
}

#[test]
fn what_an_agent_put_back_comes_last_for_it() {
    let mut world = World::new().agent("a1").agent("a2").task("t").task("u");
    assert_eq!(world.next("a1")["task"]["id"], "t");
    world
        .call("release_task", json!({"task_id": "t", "reason": "it needs Windows"}))
        .expect("put back");
    assert_eq!(world.next("a1")["task"]["id"], "u");
    world.call("release_task", json!({"task_id": "u"})).expect("put back");
    assert_eq!(world.next("a1")["task"]["id"], "t", "there is no other");
    assert_eq!(world.next("a2")["task"]["id"], "u");
}

#[test]
fn observers_and_strangers_claim_nothing() {
    let mut world = World::new().agent_with("watcher", json!({"role": "observer"})).task("t");
    let message = world.by("watcher").call("claim_task", json!({})).refuses("observer");
    assert!(message.contains("`watcher`") && message.contains("register"), "{message}");
    let message = world.by("stranger").call("claim_task", json!({})).refuses("unknown_agent");
    assert!(message.contains("`stranger`") && message.contains("register_agent"), "{message}");
    let message = world.nobody().call("claim_task", json!({})).refuses("agent_missing");
    assert!(message.contains("agent_id"), "{message}");
}

#[test]
fn waiting_is_for_those_to_whom_something_may_come() {
    let mut world = World::new().agent("a1").agent("a2").task("t");
    let wait = json!({"wait_seconds": 50});
    assert!(!world.by("a1").waits("claim_task", wait.clone()), "there is a task");
    world.claim("a1", "t");
    assert!(!world.by("a1").waits("claim_task", wait.clone()), "it has a claim");
    assert!(world.by("a2").waits("claim_task", wait.clone()));
    assert!(!world.by("a2").waits("claim_task", json!({})));
    world.complete("a1", "t");
    assert!(!world.by("a2").waits("claim_task", wait), "all is finished");
    let seq = world.state.seq();
    assert!(world.nobody().waits("wait_for_events", json!({"since_seq": seq, "wait_seconds": 1})));
    assert!(
        !world.nobody().waits("wait_for_events", json!({"since_seq": seq - 1, "wait_seconds": 1}))
    );
}

#[test]
fn claim_costs_at_most_600_bytes_beside_the_text_of_the_task() {
    let (task, agent) = ("t".repeat(64), "a".repeat(64));
    let mut world = World::new()
        .agent(&agent)
        .task_with(&task, json!({"priority": 10, "title": "T", "hints": "h"}));
    world
        .nobody()
        .call(
            "update_task",
            json!({"task_id": task, "timeout_seconds": 86_400, "silent_minutes": 600}),
        )
        .expect("updated");
    for _ in 0..2 {
        let mut reply = world.next(&agent);
        let text = reply["task"].as_object_mut().expect("a task");
        for field in ["id", "description", "title", "context"] {
            text.remove(field);
        }
        let bytes = reply.to_string().len();
        println!("a claim beside its task's text, longest ids: {bytes} bytes of 600");
        assert!(bytes <= 600, "{bytes} bytes: {reply}");
    }
}

#[test]
fn handoff_is_at_most_two_kilobytes_in_the_worst_case() {
    let nasty = "\"\\\n\u{1}é漢🦀\t".repeat(4_000);
    let upto = |bytes: usize| nasty.chars().take(bytes / 3).collect::<String>();
    let ids: Vec<String> = (0..6).map(|number| format!("{number}{}", "d".repeat(63))).collect();
    let agent = "a".repeat(64);
    let mut world = World::new().agent(&agent);
    for id in &ids {
        world.create(id, json!({}));
        world.claim(&agent, id);
        let result = json!({
            "task_id": id, "output": upto(64 * 1_024), "branch": "b".repeat(1_024), "commit": "c".repeat(1_024),
        });
        world.by(&agent).call("complete_task", result).expect("done");
    }
    for _ in 0..5 {
        world
            .call("add_discovery", json!({"content": upto(16 * 1_024), "tags": ["x"]}))
            .expect("added");
    }
    world.create("t", json!({"dependencies": ids, "tags": ["x"]}));
    world.place.worktree = Some(format!("/{}", "w\"".repeat(500)));
    world.claim(&agent, "t");
    world.by(&agent).call("heartbeat", json!({"note": upto(2_000)})).expect("noted");
    world.call("fail_task", json!({"task_id": "t", "error": upto(16 * 1_024)})).expect("failed");
    world.at(MINUTE);
    let reply = world.next(&agent);
    let handoff = reply["handoff"].to_string();
    println!("the largest handoff: {} bytes of 2,048", handoff.len());
    assert!(handoff.len() <= 2_048, "{} bytes: {handoff}", handoff.len());
    assert_eq!(reply["handoff"]["dependencies"].as_array().map(Vec::len), Some(3));
    let outputs = reply["handoff"]["dependencies"].as_array().expect("dependencies").iter();
    assert!(
        outputs.clone().all(|one| one["output"].as_str().is_some_and(|text| text.len() > 10)),
        "{handoff}"
    );
}

/// With long ids and a checkpoint, there is no room for all dependencies.
#[test]
fn handoff_leaves_dependencies_out_before_it_grows_too_large() {
    let nasty = "n\"".repeat(500);
    let ids: Vec<String> = (0..5).map(|number| format!("{number}{}", "d".repeat(63))).collect();
    let (agent, other, task) = ("a".repeat(64), "o".repeat(64), "t".repeat(64));
    let mut world = World::new().agent(&agent).agent(&other);
    for id in &ids {
        world.create(id, json!({}));
        world.claim(&agent, id);
        let result = json!({"task_id": id, "output": nasty, "branch": "b".repeat(99), "commit": "c".repeat(99)});
        world.by(&agent).call("complete_task", result).expect("done");
    }
    world.create(&task, json!({"dependencies": ids, "context_files": ["f".repeat(200)]}));
    world.place.worktree = Some(format!("/{nasty}"));
    world.claim(&other, &task);
    let saved = json!({
        "workflow_id": "w".repeat(64), "task_id": task, "state": {"phase": nasty, "step": 1, "status": nasty},
    });
    world.by(&other).call("save_checkpoint", saved).expect("saved");
    world.call("heartbeat", json!({"note": nasty})).expect("noted");
    world.call("fail_task", json!({"task_id": task, "error": nasty})).expect("failed");
    world
        .call("reserve_files", json!({"files": ["f".repeat(200)], "minutes": 60}))
        .expect("reserved");
    world.at(MINUTE);
    let reply = world.claim(&agent, &task);
    let handoff = &reply["handoff"];
    assert!(handoff.to_string().len() <= 2_000, "{} bytes: {handoff}", handoff.to_string().len());
    assert_eq!(
        (handoff["dependencies"].as_array().map(Vec::len), handoff["overlaps"].is_array()),
        (Some(2), true)
    );
}

#[test]
fn handoff_gives_the_whole_of_what_is_short() {
    let mut world =
        World::new().agent("a1").task("a").task_with("b", json!({"dependencies": ["a"]}));
    world.claim("a1", "a");
    let result = json!({"task_id": "a", "output": "x".repeat(200), "branch": "fix/login", "commit": "c".repeat(40)});
    world.by("a1").call("complete_task", result).expect("done");
    let inherited = json!([{"task": "a", "output": "x".repeat(200), "branch": "fix/login", "commit": "c".repeat(40)}]);
    world
        .by("a1")
        .call("claim_task", json!({}))
        .replies(json!({"handoff": {"dependencies": inherited}}));
}

#[test]
fn a_demanded_property_may_be_as_long_as_an_agents() {
    let dir = format!("/{}", "d".repeat(1_000));
    let mut world = World::new().agent_with("a1", json!({"properties": {"project_dir": dir}}));
    world.create("t", json!({"demands": {"project_dir": dir}}));
    assert_eq!(world.next("a1")["task"]["id"], "t");
    let demands = json!({"demands": {"project_dir": "d".repeat(1_025)}, "description": "x"});
    world.nobody().call("create_task", demands).refuses("over_limit");
}
