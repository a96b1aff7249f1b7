//! Rules for runs, with time moved by hand.

use std::collections::BTreeSet;

use callboard::state::agent::Demands;
use callboard::state::event::Event;
use callboard::state::id::{ParticipantId, SessionId};
use callboard::state::limit;
use callboard::state::run::{ChildResult, Run};
use callboard::state::session::Session;
use callboard::state::time::SECOND;
use callboard::state::{Envelope, State};
use serde_json::{Value, json};

use crate::world::{Answered, World};

fn create(world: &mut World, more: Value) -> String {
    let mut fields = json!({"prompt": "do it"});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = world.nobody().call("create_run", fields).replies(json!({"success": true}));
    reply["run_id"].as_str().unwrap().to_owned()
}

fn session(world: &mut World, id: &str, more: Value) -> String {
    let mut fields = json!({"session_id": id});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    create(world, fields)
}

fn claim(world: &mut World, runner: &str) -> Value {
    world.by(runner).call("claim_run", json!({})).expect("a claim is answered")
}

fn report(world: &mut World, runner: &str, run: &str, more: Value) -> Value {
    let mut fields = json!({"run_id": run});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.by(runner).call("report_run", fields).replies(json!({"success": true}))
}

fn status(world: &mut World, run: &str) -> String {
    let reply = world.nobody().call("get_run", json!({"run_id": run})).unwrap();
    reply["run"]["status"].as_str().unwrap().to_owned()
}

fn run_through(world: &mut World, runner: &str, run: &str) {
    assert_eq!(claim(world, runner)["run"]["run_id"], run);
    report(world, runner, run, json!({"status": "started"}));
    report(world, runner, run, json!({"status": "completed", "output": format!("{run} is done")}));
}

#[test]
fn a_run_goes_to_a_runner_and_never_to_a_worker() {
    let mut world = World::new().task("t1").agent("r1");
    let run = create(&mut world, json!({}));
    let counted = json!({"total_tasks": 1, "tasks": {"available": 1}, "runs": {"pending": 1}});
    world.nobody().call("get_status", json!({})).replies(counted);
    assert_eq!(
        world.nobody().call("get_all_tasks", json!({})).unwrap()["tasks"].as_array().unwrap().len(),
        1
    );
    world.next("r1");
    world.complete("r1", "t1");
    let nothing = world.next("r1");
    assert_eq!((&nothing["success"], &nothing["verdict"]), (&json!(false), &json!("finished")));
    assert_eq!(claim(&mut world, "r1")["run"]["run_id"], *run);
    assert_eq!(status(&mut world, &run), "claimed");
    report(&mut world, "r1", &run, json!({"status": "started"}));
    assert_eq!(status(&mut world, &run), "running");
    report(&mut world, "r1", &run, json!({"status": "progress", "note": "half"}));
    assert_eq!(world.attempt(&run).note.as_deref(), Some("half"));
    report(&mut world, "r1", &run, json!({"status": "completed", "output": "made"}));
    assert_eq!(status(&mut world, &run), "completed");
    let again = report(&mut world, "r1", &run, json!({"status": "completed", "output": "made"}));
    assert_eq!(again["already"], true);
}

#[test]
fn operations_of_tasks_refuse_a_run() {
    let mut world = World::new().agent("r1");
    let run = create(&mut world, json!({}));
    world.by("r1").call("claim_task", json!({"task_id": run})).refuses("is_run");
    assert_eq!(claim(&mut world, "r1")["success"], true);
    for operation in ["start_task", "release_task", "heartbeat", "cancel_task", "retry_task"] {
        world.by("r1");
        if ["cancel_task", "retry_task"].contains(&operation) {
            world.nobody();
        }
        let more = if operation == "release_task" {
            json!({"task_id": run, "reason": "r"})
        } else {
            json!({"task_id": run})
        };
        world.call(operation, more).refuses("is_run");
    }
    world.by("r1").call("complete_task", json!({"task_id": run, "output": "o"})).refuses("is_run");
    world.by("r1").call("fail_task", json!({"task_id": run, "error": "e"})).refuses("is_run");
    world.nobody().call("get_run", json!({"run_id": "run-none"})).refuses("unknown_run");
}

#[test]
fn demands_are_met_whole_and_only_grow() {
    let mut world = World::new().agent_with("bare", json!({})).agent_with(
        "fit",
        json!({"capabilities": ["gpu"], "tags": ["ci"], "properties": {"hostname": "h1"}}),
    );
    let run = create(&mut world, json!({"demands": {"capabilities": ["gpu"]}}));
    world
        .nobody()
        .call("update_run", json!({"run_id": run, "demands": {"tags": ["ci"], "hostname": "h1"}}))
        .replies(json!({"run": {"demands": {"capabilities": ["gpu"], "tags": ["ci"], "hostname": "h1"}}}));
    world
        .nobody()
        .call("update_run", json!({"run_id": run, "demands": {"hostname": "h2"}}))
        .refuses("demands_changed");
    let nothing = claim(&mut world, "bare");
    assert_eq!((&nothing["verdict"], &nothing["demands_unmet"]), (&json!("unsuited"), &json!(1)));
    assert_eq!(nothing["missing"], json!(["gpu", "ci", "hostname=h1"]));
    assert_eq!(claim(&mut world, "fit")["run"]["run_id"], *run);
    let late = json!({"run_id": run, "demands": {"tags": ["more"]}});
    world.nobody().call("update_run", late).refuses("run_status");
}

#[test]
fn a_runner_that_requires_matching_tags_takes_no_run_without() {
    let mut world = World::new().agent_with("r1", json!({"tags": ["ci", "fast"]}));
    create(&mut world, json!({}));
    let tagged = create(&mut world, json!({"demands": {"tags": ["ci"]}}));
    let strict = json!({"require_matching_tags": true});
    world.by("r1").call("claim_run", strict).replies(json!({"run": {"run_id": tagged}}));
}

#[test]
fn a_run_that_no_runner_fits_fails_in_time_and_says_why() {
    let mut world = World::new().agent("r1");
    claim(&mut world, "r1");
    let rare =
        create(&mut world, json!({"demands": {"capabilities": ["gpu"]}, "no_match_seconds": 60}));
    let common = create(&mut world, json!({"no_match_seconds": 60}));
    assert_eq!(claim(&mut world, "r1")["run"]["run_id"], *common);
    report(&mut world, "r1", &common, json!({"status": "started"}));
    let awaited = create(&mut world, json!({"no_match_seconds": 60}));
    world.at(59 * SECOND);
    assert_eq!(status(&mut world, &rare), "pending");
    world.at(SECOND);
    assert_eq!(
        (status(&mut world, &rare), status(&mut world, &awaited)),
        ("failed".into(), "pending".into())
    );
    let error = world.read(&rare).result.unwrap().error.clone().unwrap();
    assert!(error.contains("gpu") && error.contains("60 s"), "{error}");
    assert!(
        world.state.next_deadline().is_some_and(|at| at > world.now),
        "it is not asked for all the time"
    );
    report(&mut world, "r1", &common, json!({"status": "completed"}));
    assert_eq!(claim(&mut world, "r1")["run"]["run_id"], *awaited);
}

#[test]
fn the_deadline_of_a_pending_run_is_that_of_its_wait() {
    let mut world = World::new().agent("r1");
    claim(&mut world, "r1");
    let more = json!({"no_match_seconds": 60, "timeout_seconds": 600});
    let run = create(&mut world, more);
    let until = |world: &mut World| -> Value {
        let reply = world.nobody().call("get_run", json!({"run_id": run})).unwrap();
        reply["run"]["timeout_at"].clone()
    };
    let (begun, waits) = (world.now, json!((world.now + 60 * SECOND).to_string()));
    assert_eq!(until(&mut world), waits);
    world.at(10 * SECOND);
    claim(&mut world, "r1");
    assert_eq!(until(&mut world), json!((begun + 610 * SECOND).to_string()));
    report(&mut world, "r1", &run, json!({"status": "completed"}));
    assert_eq!(until(&mut world), Value::Null);
}

#[test]
fn what_a_session_has_under_way_is_stopped_by_its_name() {
    let mut world = World::new().agent("r1");
    let first = session(&mut world, "s1", json!({}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &first, json!({"status": "started"}));
    let other = session(&mut world, "s2", json!({}));
    let stop = json!({"session_id": "s1"});
    world
        .nobody()
        .call("stop_run", stop.clone())
        .replies(json!({"run_id": first, "status": "stopping"}));
    let statuses = [&first, &other].map(|run| status(&mut world, run));
    assert_eq!(statuses, ["stopping", "pending"]);
    world.nobody().call("stop_run", stop.clone()).replies(json!({"already": true}));
    report(&mut world, "r1", &first, json!({"status": "stopped"}));
    let second = create(&mut world, json!({"session_id": "s1", "type": "resume_session"}));
    world.nobody().call("stop_run", stop).replies(json!({"run_id": second, "status": "stopped"}));
    world.nobody().call("stop_run", json!({"session_id": "s9"})).refuses("unknown_session");
    world.nobody().call("stop_run", json!({})).refuses("run_or_session");
    let both = json!({"session_id": "s2", "run_id": other});
    world.nobody().call("stop_run", both).refuses("run_or_session");
    let mut others = World::new().agent("w2");
    session(&mut others, "s1", json!({}));
    others.by("w2").call("stop_run", json!({"session_id": "s1"})).refuses("not_your_run");
}

#[test]
fn runs_are_listed_by_when_they_were_created_and_ended() {
    let mut world = World::new().agent("r1");
    let begun = world.now;
    let at = |seconds: i64| json!((begun + seconds * SECOND).to_string());
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let run = create(&mut world, json!({"no_match_seconds": 3_000}));
            world.at(100 * SECOND);
            run
        })
        .collect();
    run_through(&mut world, "r1", &runs[0]);
    let listed = |world: &mut World, query: Value| -> Vec<usize> {
        let reply = world.nobody().call("list_runs", query).unwrap();
        let ids =
            reply["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap());
        ids.map(|id| runs.iter().position(|run| run == id).unwrap()).collect()
    };
    for (query, expected) in [
        (json!({"created_since": at(100)}), &[2, 1][..]),
        (json!({"created_before": at(100)}), &[0]),
        (json!({"created_since": at(50), "created_before": at(150)}), &[1]),
        (json!({"completed_since": at(300)}), &[0]),
        (json!({"completed_before": at(300)}), &[]),
        (json!({"created_since": at(301)}), &[]),
    ] {
        assert_eq!(listed(&mut world, query.clone()), expected, "{query}");
    }
    let reply = world.nobody().call("list_runs", json!({"created_since": at(100)})).unwrap();
    assert_eq!(reply["total"], Value::Null, "the total is that of all runs: {reply}");
}

#[test]
fn a_run_waits_for_no_runner_that_lives_and_asks_for_nothing() {
    let mut world = World::new().agent_in("r1", "p1");
    claim(&mut world, "r1");
    world.at(360 * SECOND);
    let run = create(&mut world, json!({"no_match_seconds": 60}));
    world.at(60 * SECOND);
    assert_eq!(status(&mut world, &run), "failed");
}

#[test]
fn a_run_waits_while_claims_are_paused() {
    let mut world = World::new();
    let run = create(&mut world, json!({"no_match_seconds": 60}));
    world.nobody().call("pause", json!({})).unwrap();
    world.at(3_600 * SECOND);
    assert_eq!(status(&mut world, &run), "pending");
    world.nobody().call("resume", json!({})).unwrap();
    world.at(3_600 * SECOND);
    assert_eq!(status(&mut world, &run), "failed");
}

#[test]
fn a_list_of_runs_is_brief_and_reads_few_that_have_retired() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 10}));
    world.policy.keep_finished = 10;
    let oldest = create(&mut world, json!({"prompt": "é".repeat(1_000), "agent_name": "rare"}));
    claim(&mut world, "r1");
    report(
        &mut world,
        "r1",
        &oldest,
        json!({"status": "completed", "output": "long", "data": {"also": "long"}}),
    );
    for _ in 0..130 {
        let run = create(&mut world, json!({}));
        claim(&mut world, "r1");
        report(&mut world, "r1", &run, json!({"status": "completed", "output": "o"}));
    }
    world.tick();
    let (mut pages, mut found, mut after) = (0, Vec::new(), Value::Null);
    loop {
        let page = world
            .nobody()
            .call("list_runs", json!({"agent_name": "rare", "after": after, "limit": 100}))
            .unwrap();
        pages += 1;
        found.extend(page["runs"].as_array().unwrap().clone());
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!((pages, found.len()), (3, 1), "50 of the retired runs a page");
    assert_eq!(found[0]["run_id"], *oldest);
    assert_eq!(found[0]["prompt"].as_str().unwrap().chars().count(), 201);
    assert!(found[0]["result"].is_null(), "{}", found[0]);
}

#[test]
fn a_failed_run_is_no_task_that_waits_for_a_person_or_is_waited_for() {
    let mut world = World::new().agent("r1").agent("w1").task("t1").task("t2").claimed("w1", "t2");
    let run = create(&mut world, json!({}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &run, json!({"status": "failed", "error": "broken"}));
    world
        .by("w1")
        .call("fail_task", json!({"task_id": "t2", "error": "broken", "retryable": false}))
        .unwrap();
    let told = world.nobody().call("get_status", json!({})).unwrap();
    let named: Vec<_> =
        told["needs_attention"].as_array().unwrap().iter().map(|one| one["task"].clone()).collect();
    assert_eq!(named, ["t2"]);
    world
        .call("create_task", json!({"id": "t3", "description": "d", "dependencies": [run]}))
        .refuses("is_run");
    world.call("update_task", json!({"task_id": "t1", "dependencies": [run]})).refuses("is_run");
}

#[test]
fn a_run_that_takes_too_long_fails_and_its_runner_cannot_finish_it() {
    let mut world = World::new().agent("r1");
    let run = create(&mut world, json!({"timeout_seconds": 100}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &run, json!({"status": "started"}));
    world.at(50 * SECOND);
    report(&mut world, "r1", &run, json!({"status": "progress"}));
    world.at(50 * SECOND);
    assert_eq!(status(&mut world, &run), "failed");
    assert!(world.read(&run).result.unwrap().error.clone().unwrap().contains("100 s"));
    world
        .by("r1")
        .call("report_run", json!({"run_id": run, "status": "progress"}))
        .refuses("run_status");
}

#[test]
fn only_its_runner_reports_and_only_on_its_attempt() {
    let mut world = World::new().agent("r1").agent("r2");
    let run = create(&mut world, json!({}));
    claim(&mut world, "r1");
    let done = json!({"run_id": run, "status": "completed"});
    world.by("r2").call("report_run", done.clone()).refuses("held_by_other");
    world.at(31 * 60 * SECOND);
    assert_eq!(status(&mut world, &run), "pending");
    assert_eq!(claim(&mut world, "r2")["attempt"], 2);
    world.by("r1").call("report_run", done.clone()).refuses("attempt_over");
    assert!(world.read(&run).attempts[0].late_result.is_some(), "the late result is kept");
    world
        .by("r2")
        .call("report_run", json!({"run_id": run, "status": "completed", "attempt": 1}))
        .refuses("attempt_over");
    report(&mut world, "r2", &run, json!({"status": "completed"}));
    world
        .by("r2")
        .call("report_run", json!({"run_id": run, "status": "failed", "error": "e"}))
        .refuses("run_status");
}

#[test]
fn stop_is_idempotent_and_reaches_the_runner() {
    let mut world = World::new().agent("r1");
    let pending = create(&mut world, json!({}));
    let stop = |run: &str| json!({"run_id": run});
    world.nobody().call("stop_run", stop(&pending)).replies(json!({"status": "stopped"}));
    world
        .nobody()
        .call("stop_run", stop(&pending))
        .replies(json!({"status": "stopped", "already": true}));
    let run = create(&mut world, json!({}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &run, json!({"status": "started"}));
    assert!(world.by("r1").waits("claim_run", json!({"wait_seconds": 50})), "a busy runner waits");
    world.nobody().call("stop_run", stop(&run)).replies(json!({"status": "stopping"}));
    world
        .nobody()
        .call("stop_run", stop(&run))
        .replies(json!({"status": "stopping", "already": true}));
    assert_eq!(world.count_of("stop_requested"), 1);
    assert!(!world.by("r1").waits("claim_run", json!({"wait_seconds": 50})), "it is told");
    assert!(
        world.by("r1").waits("claim_run", json!({"wait_seconds": 50, "stopping": [run]})),
        "and knows"
    );
    assert_eq!(claim(&mut world, "r1")["stop_requested"][0]["task"], *run);
    report(&mut world, "r1", &run, json!({"status": "stopped"}));
    assert_eq!(status(&mut world, &run), "stopped");
    world
        .by("r1")
        .call("stop_run", stop(&create(&mut World::new(), json!({}))))
        .refuses("unknown_run");
}

#[test]
fn a_run_that_is_to_stop_is_stopped_when_its_runner_dies() {
    let mut world = World::new().agent("r1").agent("r2");
    for (more, reason) in [(json!({}), "stopped"), (json!({"reason": "enough"}), "enough")] {
        let run = create(&mut world, json!({}));
        assert_eq!(claim(&mut world, "r1")["run"]["run_id"], *run);
        report(&mut world, "r1", &run, json!({"status": "started"}));
        let mut stop = json!({"run_id": run});
        stop.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.nobody().call("stop_run", stop).replies(json!({"status": "stopping"}));
        world.at(31 * 60 * SECOND);
        assert_eq!(status(&mut world, &run), "stopped");
        assert_eq!(world.read(&run).result.unwrap().error.as_deref(), Some(reason));
        assert_eq!(claim(&mut world, "r2")["success"], false, "nobody begins with it again");
    }
}

#[test]
fn who_neither_leads_nor_created_a_run_cannot_stop_it() {
    let mut world = World::new().agent("w1").agent("w2");
    let run = world.by("w1").call("create_run", json!({"prompt": "p"})).unwrap()["run_id"].clone();
    world.by("w2").call("stop_run", json!({"run_id": run})).refuses("not_your_run");
    world.by("w1").call("stop_run", json!({"run_id": run})).replies(json!({"status": "stopped"}));
}

#[test]
fn a_resume_goes_where_the_session_is() {
    let host = |name: &str| json!({"properties": {"hostname": name}});
    let mut world = World::new().agent_with("r1", host("h1")).agent_with("r2", host("h2"));
    let first = session(&mut world, "s1", json!({}));
    let resume = json!({"type": "resume_session", "session_id": "s1", "prompt": "go on"});
    world.nobody().call("create_run", resume.clone()).refuses("session_busy");
    run_through(&mut world, "r1", &first);
    let mut elsewhere = resume.clone();
    elsewhere["demands"] = json!({"hostname": "h2"});
    world.nobody().call("create_run", elsewhere).refuses("demands_changed");
    let second = world.nobody().call("create_run", resume).unwrap();
    assert_eq!(second["run"]["demands"], json!({"hostname": "h1"}));
    assert_eq!(claim(&mut world, "r2")["verdict"], "unsuited");
    assert_eq!(claim(&mut world, "r1")["run"]["run_id"], second["run_id"]);
}

#[test]
fn results_of_children_are_told_to_one_resume_when_the_parent_is_free() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 10}));
    let parent = session(&mut world, "p", json!({}));
    assert_eq!(claim(&mut world, "r1")["run"]["run_id"], *parent);
    report(&mut world, "r1", &parent, json!({"status": "started"}));
    let child = json!({"parent_session_id": "p", "execution_mode": "async_callback"});
    let children: Vec<_> = (0..5).map(|_| create(&mut world, child.clone())).collect();
    for run in &children {
        claim(&mut world, "r1");
        report(&mut world, "r1", run, json!({"status": "started"}));
    }
    report(&mut world, "r1", &children[0], json!({"status": "completed", "output": "0"}));
    report(&mut world, "r1", &children[1], json!({"status": "failed", "error": "broken"}));
    assert_eq!(world.count_of("run_created"), 6, "the parent is busy");
    report(&mut world, "r1", &parent, json!({"status": "completed"}));
    assert_eq!(world.count_of("run_created"), 7);
    for run in &children[2..] {
        report(&mut world, "r1", run, json!({"status": "completed", "output": "x"}));
    }
    assert_eq!(world.count_of("run_created"), 7, "what comes while it is pending is added to it");
    let resumed = claim(&mut world, "r1");
    assert_eq!(
        (&resumed["run"]["type"], &resumed["run"]["session_id"]),
        (&json!("resume_session"), &json!("p"))
    );
    let results = resumed["run"]["results"].as_array().unwrap();
    let told: Vec<_> = results.iter().map(|one| one["run_id"].as_str().unwrap()).collect();
    assert_eq!(told, children);
    assert_eq!((&results[1]["status"], &results[1]["error"]), (&json!("failed"), &json!("broken")));
    let id = resumed["run"]["run_id"].as_str().unwrap();
    report(&mut world, "r1", id, json!({"status": "completed"}));
    assert_eq!(world.count_of("run_created"), 7, "nothing is told twice");
    world.check();
}

/// The run that is to inform session p, after a child run of p has ended while p was free.
fn called_back(world: &mut World, asked: Value) -> String {
    let parent = session(world, "p", asked);
    run_through(world, "r1", &parent);
    let child =
        create(world, json!({"parent_session_id": "p", "execution_mode": "async_callback"}));
    run_through(world, "r1", &child);
    pending_of(world, "p").expect("the results are to be told")["run_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn pending_of(world: &mut World, session: &str) -> Option<Value> {
    let listed = world
        .nobody()
        .call("list_runs", json!({"session_id": session, "status": "pending"}))
        .unwrap();
    listed["runs"].get(0).cloned()
}

fn told(world: &mut World, run: &str) -> usize {
    let read = world.nobody().call("get_run", json!({"run_id": run})).unwrap();
    read["run"]["results"].as_array().map_or(0, Vec::len)
}

#[test]
fn results_that_no_run_has_begun_with_wait_for_the_next() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 10}));
    let first = called_back(&mut world, json!({}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &first, json!({"status": "failed", "error": "no such program"}));
    assert_eq!(told(&mut world, &first), 0);
    for _ in 0..3 {
        world.at(3_600 * SECOND);
        world.tick();
        assert_eq!(
            pending_of(&mut world, "p"),
            None,
            "what could not begin is not begun again and again"
        );
    }
    let other =
        create(&mut world, json!({"parent_session_id": "p", "execution_mode": "async_callback"}));
    run_through(&mut world, "r1", &other);
    let second = pending_of(&mut world, "p").unwrap()["run_id"].as_str().unwrap().to_owned();
    let results =
        world.nobody().call("get_run", json!({"run_id": second})).unwrap()["run"]["results"]
            .clone();
    assert_eq!(
        (results.as_array().unwrap().len(), &results[1]["run_id"]),
        (2, &json!(other)),
        "the oldest first"
    );
    world
        .nobody()
        .call("stop_run", json!({"run_id": second}))
        .replies(json!({"status": "stopped"}));
    assert_eq!(pending_of(&mut world, "p"), None);
    let third = create(&mut world, json!({"type": "resume_session", "session_id": "p"}));
    assert_eq!(told(&mut world, &third), 2);
    run_through(&mut world, "r1", &third);
    assert_eq!(
        (told(&mut world, &third), pending_of(&mut world, "p")),
        (2, None),
        "nothing is told twice"
    );
    world.check();
}

#[test]
fn a_run_that_nobody_asked_for_is_like_the_one_that_somebody_did() {
    let offered = json!({"capabilities": ["gpu", "big"], "properties": {"hostname": "h1"}, "max_concurrent": 10});
    let mut world = World::new().agent_with("r1", offered);
    let asked =
        json!({"demands": {"capabilities": ["gpu"]}, "priority": 2, "timeout_seconds": 900});
    let callback = called_back(&mut world, asked);
    let wanted = json!({"run": {
        "demands": {"capabilities": ["gpu"], "hostname": "h1"}, "priority": 2, "timeout_seconds": 900
    }});
    world.nobody().call("get_run", json!({"run_id": callback})).replies(wanted);
    run_through(&mut world, "r1", &callback);
    let again = create(&mut world, json!({"type": "resume_session", "session_id": "p"}));
    world
        .nobody()
        .call("update_run", json!({"run_id": again, "demands": {"capabilities": ["big"]}}))
        .unwrap();
    run_through(&mut world, "r1", &again);
    let child =
        create(&mut world, json!({"parent_session_id": "p", "execution_mode": "async_callback"}));
    run_through(&mut world, "r1", &child);
    let newest = pending_of(&mut world, "p").unwrap();
    assert_eq!(newest["demands"], json!({"capabilities": ["big"], "hostname": "h1"}));
    world.check();
}

#[test]
fn a_long_error_of_a_child_is_told_by_its_beginning() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 10}));
    let parent = session(&mut world, "p", json!({}));
    run_through(&mut world, "r1", &parent);
    let child =
        create(&mut world, json!({"parent_session_id": "p", "execution_mode": "async_callback"}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &child, json!({"status": "failed", "error": "é".repeat(5_000)}));
    let id = pending_of(&mut world, "p").unwrap()["run_id"].clone();
    let read = world.nobody().call("get_run", json!({"run_id": id})).unwrap();
    let result = &read["run"]["results"][0];
    assert_eq!(
        (result["error"].as_str().unwrap().len(), &result["shortened"]),
        (8 << 10, &json!(true))
    );
}

#[test]
fn of_very_many_results_the_last_are_told_without_their_output() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 100}));
    let parent = session(&mut world, "p", json!({}));
    claim(&mut world, "r1");
    report(&mut world, "r1", &parent, json!({"status": "started"}));
    let child = json!({"parent_session_id": "p", "execution_mode": "async_callback"});
    let children: Vec<_> = (0..60).map(|_| create(&mut world, child.clone())).collect();
    for run in &children {
        claim(&mut world, "r1");
        report(&mut world, "r1", run, json!({"status": "started"}));
    }
    report(&mut world, "r1", &parent, json!({"status": "completed"}));
    for run in &children {
        report(&mut world, "r1", run, json!({"status": "completed", "output": "made"}));
    }
    let resumed =
        world.nobody().call("list_runs", json!({"session_id": "p", "status": "pending"})).unwrap();
    let id = resumed["runs"][0]["run_id"].as_str().unwrap();
    let told = world.nobody().call("get_run", json!({"run_id": id})).unwrap();
    let results = told["run"]["results"].as_array().unwrap();
    let shortened: Vec<_> =
        results.iter().map(|one| (one["output"].is_null(), one["shortened"] == true)).collect();
    let expected: Vec<_> = (0..60).map(|number| (number >= 50, number >= 50)).collect();
    assert_eq!(shortened, expected);
    world.check();
}

#[test]
fn a_runner_whose_workflow_has_spent_its_budget_is_given_nothing() {
    let mut world = World::new().agent("r1");
    create(&mut world, json!({}));
    let saved = json!({"workflow_id": "w", "budget": {"attempts": 1}, "spent": {"attempts": 1}});
    world.by("r1").call("save_checkpoint", saved).replies(json!({"success": true}));
    let nothing = claim(&mut world, "r1");
    assert_eq!((&nothing["success"], &nothing["verdict"]), (&json!(false), &json!("spent")));
    assert!(nothing["message"].as_str().unwrap().contains("workflow `w`"), "{nothing}");
    assert!(nothing["next"].as_str().unwrap().contains("save_checkpoint"), "{nothing}");
}

#[test]
fn what_is_not_a_run_is_refused_before_it_is_one() {
    let mut world = World::new();
    let mut refuses = |more: Value, code: &str| {
        let mut fields = json!({"prompt": "p"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.nobody().call("create_run", fields).refuses(code);
    };
    refuses(json!({"prompt": " "}), "empty");
    refuses(json!({"type": "resume_session"}), "session_missing");
    refuses(json!({"type": "resume_session", "session_id": "none"}), "unknown_session");
    refuses(json!({"parent_session_id": "none"}), "unknown_session");
    refuses(json!({"execution_mode": "async_callback"}), "nobody_to_call_back");
    refuses(json!({"session_id": "no space"}), "bad_id");
    refuses(json!({"no_match_seconds": 0}), "zero");
    refuses(json!({"prompt": "x".repeat(20_000)}), "over_limit");
    refuses(json!({"demands": {"unknown": 1}}), "bad_arguments");
    session(&mut world, "s", json!({}));
    world
        .nobody()
        .call("create_run", json!({"prompt": "p", "session_id": "s"}))
        .refuses("session_exists");
    let keyed = json!({"prompt": "p", "idempotency_key": "k"});
    let first = world.nobody().call("create_run", keyed.clone()).unwrap();
    let second = world.nobody().call("create_run", keyed).unwrap();
    assert_eq!((&first["run_id"], &second["already"]), (&second["run_id"], &json!(true)));
}

#[test]
fn runs_retire_by_themselves_and_are_listed_still() {
    let mut world = World::new().agent("r1").task("t1");
    world.policy.keep_finished = 10;
    let mut all = Vec::new();
    for _ in 0..15 {
        let run = create(&mut world, json!({}));
        run_through(&mut world, "r1", &run);
        all.push(run);
    }
    world.tick();
    assert!(world.state.retired().count() > 0, "some have retired");
    world
        .nobody()
        .call("get_status", json!({}))
        .replies(json!({"total_tasks": 1, "runs": {"completed": 15}}));
    let mut listed = Vec::new();
    let mut after = Value::Null;
    loop {
        let page = world.nobody().call("list_runs", json!({"limit": 4, "after": after})).unwrap();
        listed.extend(
            page["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["run_id"].as_str().unwrap().to_owned()),
        );
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    listed.sort();
    all.sort();
    assert_eq!(listed, all);
}

#[test]
fn on_a_full_board_sessions_make_room_whose_runs_have_retired() {
    let mut world = World::new().agent("r1");
    world.policy.keep_finished = 0;
    let past = session(&mut world, "past", json!({}));
    run_through(&mut world, "r1", &past);
    session(&mut world, "above", json!({}));
    session(&mut world, "below", json!({"parent_session_id": "above"}));
    world.tick();
    let mut document = world.state.to_document();
    let like = document.sessions[&SessionId::trusted("past")].clone();
    let result = json!({"run_id": past, "session_id": "past", "status": "completed", "ended_at": like.created_at});
    let results = vec![serde_json::from_value::<ChildResult>(result).expect("a result")];
    for number in 0..limit::RUN_SESSIONS.max - 3 {
        let id = SessionId::trusted(format!("session-{number:05}"));
        // The first has ended, too; so has the second, apart from what it has started.
        let (parent_session_id, results) = match number {
            0 => (Some(SessionId::trusted("session-00001")), Vec::new()),
            1 => (None, Vec::new()),
            _ => (None, results.clone()),
        };
        let waits = !results.is_empty();
        document
            .sessions
            .insert(id.clone(), Session { id, parent_session_id, results, waits, ..like.clone() });
    }
    let below = document.tasks.last().and_then(|task| task.run.as_deref()).expect("a run").clone();
    let mut state = State::from_document(document);
    let (participant, at) = (ParticipantId::trusted("p"), world.now);
    let envelope = Envelope { at, participant, actor: None, idempotency: None };
    for (parent, gone) in
        [("past", ["session-00000"]), ("session-00001", ["past"]), ("above", ["session-00001"])]
    {
        let room = state
            .room_for_session(Some(&SessionId::trusted(parent)))
            .expect("room")
            .expect("of some that go");
        let sessions = gone.map(SessionId::trusted).to_vec();
        assert_eq!(room, Event::SessionsRetired { sessions });
        let savepoint = state.savepoint();
        state.record(room.clone(), &envelope).expect("they are there");
        state.rollback(savepoint);
        assert_eq!(state.sessions().len(), limit::RUN_SESSIONS.max);
        state.record(room, &envelope).expect("they are there again");
        let one = Session { id: SessionId::trusted(format!("child-of-{parent}")), ..like.clone() };
        let run = Run { session_id: one.id.clone(), ..below.clone() };
        let run = run.asked(state.new_run_id(state.seq()), "p".to_owned(), Demands::default());
        let created = Event::RunCreated { run: Box::new(run), session: Some(Box::new(one)) };
        state.record(created, &envelope).expect("it is begun");
    }
    let full = state.room_for_session(None).expect_err("no more").to_string();
    assert!(full.contains("keep_finished"), "{full}");
    assert_eq!(state.check(), Vec::<String>::new());
    let reply = world.call("get_run", json!({"run_id": past})).expect("it is read still");
    assert_eq!(reply["retired"], true);
}

#[test]
fn a_list_of_runs_leaves_none_out_when_its_place_retires() {
    let mut world = World::new().agent_with("r1", json!({"max_concurrent": 10}));
    let pending = create(&mut world, json!({"demands": {"tags": ["none has it"]}}));
    let runs: Vec<_> = (0..2).map(|_| create(&mut world, json!({}))).collect();
    for run in &runs {
        run_through(&mut world, "r1", run);
    }
    let page = world.nobody().call("list_runs", json!({"limit": 1})).expect("a page");
    assert_eq!(page["next"], *runs[1]);
    world.policy.keep_finished = 0;
    world.tick();
    let message = world.call("list_runs", json!({"after": page["next"]})).refuses("cursor_retired");
    assert!(message.contains("without after"), "{message}");
    let (mut listed, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = world.call("list_runs", json!({"limit": 1, "after": after})).expect("a page");
        listed.extend(
            page["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["run_id"].as_str().unwrap().to_owned()),
        );
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(listed[0], pending);
    assert_eq!(BTreeSet::from_iter(&listed), runs.iter().chain([&pending]).collect());
}

/// Prints what it has measured.
#[test]
fn an_empty_claim_over_many_unmatched_runs_is_quick() {
    let mut world = World::new().agent_with("r1", json!({"capabilities": ["c"]}));
    world.replays_seldom = true;
    for number in 0..1_000 {
        create(&mut world, json!({"demands": {"capabilities": [format!("c{number}")]}}));
    }
    claim(&mut world, "r1");
    world.by("r1");
    let timed = |world: &mut World| world.timed("claim_run", json!({}));
    assert_eq!(timed(&mut world).1["demands_unmet"], 1_000);
    let mut taken: Vec<_> = (0..101).map(|_| timed(&mut world).0).collect();
    taken.sort();
    println!("empty claim_run over 1,000 unmatched runs: median {:?}", taken[50]);
    // The bound is for an unoptimised build. Beside other tests, most calls may be interrupted, so
    // a low percentile counts.
    assert!(taken[10].as_micros() < 5_000, "{:?}", taken[10]);
}

#[test]
fn a_run_is_given_to_one_of_two_processes_under_a_name() {
    let mut world = World::new().agent_in("r1", "first");
    let run = create(&mut world, json!({}));
    let ask = json!({"agent_id": "r1"});
    let given = json!({"success": true, "already": null, "run": {"run_id": run}});
    world.nobody().through("first").call("claim_run", ask.clone()).replies(given);
    world.through("second").call("claim_run", ask.clone()).refuses("agent_in_use");
    world.through("first").call("claim_run", ask.clone()).replies(json!({"already": true}));
    world
        .kill("first")
        .through("second")
        .call("claim_run", ask.clone())
        .replies(json!({"already": true}));
    world.through("third").call("claim_run", ask).refuses("agent_in_use");
}

#[test]
fn whoever_may_hold_either_is_told_which_it_holds() {
    let mut world = World::new().agent("r1").agent("w1").task("t");
    let run = create(&mut world, json!({}));
    assert_eq!(claim(&mut world, "r1")["success"], true);
    let held = world.by("r1").call("claim_task", json!({})).expect("answered");
    assert_eq!(held["holding"], json!([{"run": run, "attempt": 1, "title": "do it"}]));
    assert!(held["next"].as_str().is_some_and(|next| next.contains("report_run")), "{held}");
    world
        .call("heartbeat", json!({}))
        .replies(json!({"run_id": run, "task_id": null, "warning": null}));
    let noted = world
        .call("heartbeat", json!({"note": "half"}))
        .replies(json!({"run_id": run, "task_id": null}));
    assert!(
        noted["warning"].as_str().is_some_and(|warning| warning.contains("report_run")),
        "{noted}"
    );
    world.call("heartbeat", json!({"attempt": 1})).refuses("holds_nothing");
    world.claim("w1", "t");
    let held = claim(&mut world, "w1");
    assert_eq!(held["holding"], json!([{"task": "t", "attempt": 1, "title": "do t"}]));
    assert!(
        held["next"].as_str().is_some_and(|next| next.contains("complete your task")),
        "{held}"
    );
    let mut world = world.agent_with("both", json!({"max_concurrent": 2})).task("u");
    let second = create(&mut world, json!({}));
    world.claim("both", "u");
    assert_eq!(claim(&mut world, "both")["run"]["run_id"], *second);
    let beat = world.by("both").call("heartbeat", json!({"note": "of the task"}));
    beat.replies(json!({"task_id": "u", "run_id": null, "warning": null}));
    assert_eq!(world.attempt("u").note.as_deref(), Some("of the task"));
}
