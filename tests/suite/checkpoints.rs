//! Workflows: checkpoints saved, read, skipped when damaged, and retired; budgets that end claims.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use callboard::ops::Fetched;
use callboard::state::State;
use callboard::state::document::Document;
use callboard::state::limit;
use callboard::state::refusal::Refusal;
use callboard::state::snapshot::{Listed, SnapshotName};
use callboard::state::time::{DAY, SECOND};
use callboard::statefile;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, STATE_FILE};
use crate::world::{Answered, World};

fn at_step(step: u64) -> Value {
    json!({"phase": "build", "step": step, "status": "running"})
}

fn saved(world: &mut World, workflow: &str, more: Value) -> Result<Value, Refusal> {
    world.call("save_checkpoint", with(json!({"workflow_id": workflow}), &more))
}

fn with(mut arguments: Value, more: &Value) -> Value {
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// The newest state of the workflow, without its id.
fn newest(world: &mut World, workflow: &str) -> Value {
    let read = world.call("get_checkpoint", json!({"workflow_id": workflow})).unwrap();
    let mut state = read["checkpoint"]["state"].clone();
    state.as_object_mut().unwrap().remove("workflow_id");
    state
}

#[track_caller]
fn save(world: &mut World, workflow: &str, more: Value) -> Value {
    saved(world, workflow, more).replies(json!({"success": true, "workflow_id": workflow}))
}

/// Numbers of the kept checkpoints, newest first.
fn kept(world: &World, workflow: &str) -> Vec<u64> {
    let id = callboard::state::id::WorkflowId::trusted(workflow);
    world.state.checkpoints_of(&id).map(|one| one.number).collect()
}

#[test]
fn what_was_saved_is_read_back_by_workflow_and_by_task() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    let state = json!({"phase": "build", "step": 3, "status": "running", "persona_states": {"coder": {"status": "failed",
        "current_attempt": 2, "tokens_used": 12, "last_error": "no", "recovery_applied": false}}, "retry_counts": {"t": 1},
        "completed_tasks": ["s"], "pending_tasks": ["t"], "artifacts": {"log": "a.txt"}, "metrics": {"ratio": 0.1}});
    saved(&mut world, "w", json!({"task_id": "t", "state": state}))
        .replies(json!({"checkpoint": 1, "kept": 1}));
    for asked in [
        json!({"workflow_id": "w"}),
        json!({"task_id": "t"}),
        json!({"workflow_id": "w", "number": 1}),
    ] {
        let read = world.call("get_checkpoint", asked).replies(json!({"restored": true}));
        let mut wanted = state.clone();
        wanted["workflow_id"] = "w".into();
        assert_eq!(read["checkpoint"]["state"], wanted);
        assert_eq!(
            (&read["checkpoint"]["attempt"], &read["checkpoint"]["agent"]),
            (&json!(1), &json!("a1"))
        );
        assert_eq!(read["workflow"]["agents"], json!(["a1"]));
    }
    world
        .call("get_checkpoint", json!({"workflow_id": "none"}))
        .replies(json!({"restored": false}));
    world
        .call("get_checkpoint", json!({"workflow_id": "w", "number": 2}))
        .refuses("unknown_checkpoint");
    world.call("get_checkpoint", json!({"task_id": "none"})).refuses("unknown_task");
    world.call("get_checkpoint", json!({})).refuses("workflow_or_task");
}

#[test]
fn a_save_changes_what_it_names_and_nothing_else() {
    let whole = json!({"phase": "build", "step": 3, "status": "running",
        "persona_states": {"coder": {"status": "failed", "tokens_used": 12, "last_error": "no"}, "tester": {"status": "idle"}},
        "retry_counts": {"t": 1, "u": 2}, "completed_tasks": ["s"], "pending_tasks": ["t", "u"],
        "artifacts": {"log": "a.txt", "map": {"x": 1}}, "metrics": {"ratio": 0.1, "n": 4}});
    // What is saved, and what is another in the state then, by pointers.
    let cases = [
        (json!({"phase": "test"}), json!({"/phase": "test"})),
        (json!({"step": 0}), json!({"/step": 0})),
        (json!({"status": "done"}), json!({"/status": "done"})),
        (
            json!({"persona_states": {"coder": {"status": "running", "last_error": null}}}),
            json!({"/persona_states/coder/status": "running", "/persona_states/coder/last_error": null}),
        ),
        (
            json!({"persona_states": {"new": {"status": "idle"}, "tester": null}}),
            json!({"/persona_states": {"coder": whole["persona_states"]["coder"], "new": {"status": "idle"}}}),
        ),
        (
            json!({"retry_counts": {"t": 5, "u": null, "v": 0}}),
            json!({"/retry_counts": {"t": 5, "v": 0}}),
        ),
        (json!({"artifacts": {"map": {"y": 2}}}), json!({"/artifacts/map": {"y": 2}})),
        (json!({"metrics": {"n": null, "m": 1}}), json!({"/metrics": {"ratio": 0.1, "m": 1}})),
        (
            json!({"completed_tasks": ["t", "s"]}),
            json!({"/completed_tasks": ["s", "t"], "/pending_tasks": ["u"]}),
        ),
        (json!({"pending_tasks": ["v"]}), json!({"/pending_tasks": ["v"]})),
        (
            json!({"pending_tasks": ["s", "v", "t"], "completed_tasks": ["t"]}),
            json!({"/completed_tasks": ["s", "t"], "/pending_tasks": ["v"]}),
        ),
        (json!({}), json!({})),
    ];
    for (change, others) in cases {
        let mut world = World::new();
        save(&mut world, "w", json!({"state": whole}));
        save(&mut world, "w", json!({"state": change}));
        let mut wanted = whole.clone();
        for (place, value) in others.as_object().unwrap() {
            *wanted.pointer_mut(place).unwrap() = value.clone();
        }
        assert_eq!(newest(&mut world, "w"), wanted, "{change}");
        let before = json!({"workflow_id": "w", "number": 1});
        let mut before =
            world.call("get_checkpoint", before).unwrap()["checkpoint"]["state"].take();
        before.as_object_mut().unwrap().remove("workflow_id");
        assert_eq!(before, whole, "the one before is as it was");
    }
}

#[test]
fn what_is_pending_although_completed_is_told_and_what_is_replaced_goes() {
    let mut world = World::new();
    let state = json!({"completed_tasks": ["a", "b"], "metrics": {"m": 1}, "artifacts": {"x": 1}});
    save(&mut world, "w", json!({"state": state}));
    saved(&mut world, "w", json!({"state": {"pending_tasks": ["a", "c"]}})).replies(
        json!({"checkpoint": 2, "phase": "initializing", "step": 0, "not_pending": ["a"]}),
    );
    let again = json!({"state": {"completed_tasks": ["b"], "pending_tasks": ["a", "c"]},
        "replace": ["completed_tasks"]});
    saved(&mut world, "w", again).replies(json!({"not_pending": null}));
    let read = newest(&mut world, "w");
    assert_eq!(
        (&read["completed_tasks"], &read["pending_tasks"]),
        (&json!(["b"]), &json!(["a", "c"]))
    );
    let all = json!([
        "persona_states",
        "retry_counts",
        "completed_tasks",
        "pending_tasks",
        "artifacts",
        "metrics"
    ]);
    save(&mut world, "w", json!({"replace": all, "state": {"metrics": {"n": 2}}}));
    let only =
        json!({"phase": "initializing", "step": 0, "status": "pending", "metrics": {"n": 2}});
    assert_eq!(newest(&mut world, "w"), only);
    saved(&mut world, "w", json!({"replace": ["metrics"]})).replies(json!({"checkpoint": 5}));
    assert_eq!(newest(&mut world, "w")["metrics"], Value::Null);
    saved(&mut world, "w", json!({"replace": ["phase"]})).refuses("bad_arguments");
}

#[test]
fn a_save_that_expects_another_checkpoint_is_refused_and_told_whose_is_there() {
    let mut world = World::new().agent("a1").agent("a2");
    let expecting = |number: u64| json!({"state": {"step": 9}, "expected_checkpoint": number});
    let said = saved(world.by("a1"), "w", expecting(1)).refuses("checkpoint_moved");
    assert!(said.to_string().contains("stands at checkpoint 0, not at 1"), "{said}");
    save(world.by("a1"), "w", expecting(0));
    save(world.by("a2"), "w", json!({"state": at_step(2), "expected_checkpoint": 1}));
    let said = saved(world.by("a1"), "w", expecting(1)).refuses("checkpoint_moved");
    assert!(said.to_string().contains("checkpoint 2, saved by a2, not at 1"), "{said}");
    let spending = json!({"spent": {"tokens": 1}, "expected_checkpoint": 0});
    saved(world.by("a1"), "w", spending).refuses("checkpoint_moved");
    assert_eq!(newest(&mut world, "w")["step"], 2);
    save(world.by("a1"), "w", expecting(2));
}

#[test]
fn of_large_checkpoints_fewer_are_kept_and_never_less_than_two() {
    let mut world = World::new();
    let big = |step: u64, bytes: usize| json!({"state": {"step": step, "metrics": {"m": "x".repeat(bytes)}}});
    for step in 1..=8 {
        save(&mut world, "w", big(step, 900_000));
    }
    assert_eq!(kept(&world, "w"), [8, 7, 6, 5]);
    let fits = limit::CHECKPOINTS_BYTES / 900_100;
    assert_eq!(fits, 4);
    save(&mut world, "w", json!({"state": {"metrics": {"m": "x"}}}));
    save(&mut world, "w", json!({"state": {"step": 10}}));
    assert_eq!(kept(&world, "w"), [10, 9, 8, 7, 6, 5]);
    save(&mut world, "w", big(11, limit::CHECKPOINT.max - 200));
    assert_eq!(kept(&world, "w"), [11, 10, 9, 8, 7, 6]);
}

/// A state whose JSON, saved, has so many bytes.
fn state_of(bytes: usize, workflow: &str) -> Value {
    let mut state = json!({"workflow_id": workflow, "phase": "p", "step": 0, "status": "s",
        "metrics": {"m": ""}});
    let rest = bytes - state.to_string().len();
    state["metrics"]["m"] = "x".repeat(rest).into();
    state
}

#[test]
fn the_largest_state_is_taken_by_every_door_and_one_byte_more_is_refused() {
    let board = Board::new();
    let server = Server::on(&board);
    let most = limit::CHECKPOINT.max;
    let save = |workflow: &str, bytes: usize| json!({"workflow_id": workflow, "state": state_of(bytes, workflow)});
    let mut client = board.mcp();
    assert_eq!(client.ok("save_checkpoint", save("stdio", most))["checkpoint"], 1);
    let refused = client.call("save_checkpoint", save("stdio", most + 1));
    assert_eq!(refused.code(), "over_limit", "{}", refused.text);
    for (door, workflow) in [(Door::Mcp, "mcp"), (Door::Rpc, "rpc")] {
        let saved = door.ok(&server, "save_checkpoint", &save(workflow, most));
        assert_eq!(saved["checkpoint"], 1);
        let refused = door.ask(&server, "save_checkpoint", &save(workflow, most + 1));
        assert_eq!(refused.code(), "over_limit", "{}", refused.text);
    }
    let file = board.base().join("state.json");
    for (bytes, code) in [(most, 0), (most + 1, 1)] {
        fs::write(&file, state_of(bytes, "line").to_string()).unwrap();
        let ran =
            board.command().args(["checkpoint", "save", "line", "--file"]).arg(&file).output();
        assert_eq!(ran.unwrap().status.code(), Some(code));
    }
    // Lists for models stay small, and the state file and the journal hold the whole.
    for asked in [json!({}), json!({"workflow_id": "stdio"})] {
        let listed = client.ok("list_checkpoints", asked);
        assert!(listed.to_string().len() < limit::REPLY, "{}", listed.to_string().len());
    }
    drop(client);
    for workflow in ["stdio", "mcp", "rpc", "line"] {
        let read = board.cli_ok("get_checkpoint", json!({"workflow_id": workflow}));
        assert_eq!(read["checkpoint"]["state"], state_of(most, workflow), "{workflow}");
    }
    board.assert_file_is_the_replay();
}

#[test]
fn what_a_holder_leaves_with_its_task_stays_until_that_is_done() {
    let mut world = World::new().agent("a1").agent("a2").task("t").claimed("a1", "t");
    let keeping = |agent: &str| json!({"agent_id": agent, "task_id": "t", "kept": {"page": 7}});
    saved(&mut world, "w", json!({"agent_id": "a1", "kept": {}})).refuses("kept_without_task");
    saved(&mut world, "w", keeping("a2")).refuses("held_by_other");
    saved(&mut world, "w", keeping("a1")).replies(json!({"checkpoint": 0}));
    world.call("release_task", json!({"agent_id": "a1", "task_id": "t", "reason": "r"})).unwrap();
    saved(&mut world, "w", keeping("a1")).refuses("not_held");
    world.call("get_task", json!({"task_id": "t"})).replies(json!({"task": {"kept": {"page": 7}}}));
    world.call("claim_task", json!({"agent_id": "a2", "task_id": "t"})).unwrap();
    saved(&mut world, "w", keeping("a2")).unwrap();
    world.call("complete_task", json!({"agent_id": "a2", "task_id": "t", "output": "o"})).unwrap();
    assert_eq!(
        world.call("get_task", json!({"task_id": "t"})).unwrap()["task"]["kept"],
        Value::Null
    );
}

#[test]
fn what_was_left_with_a_task_never_fills_the_reply_of_a_model() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("a1");
    client.ok("create_task", json!({"id": "t", "description": "d"}));
    client.ok("claim_task", json!({"agent_id": "a1"}));
    for size in [15_000, 900_000] {
        let kept = json!({"text": "x".repeat(size)});
        let saving = json!({"agent_id": "a1", "workflow_id": "w", "task_id": "t", "kept": kept});
        client.ok("save_checkpoint", saving);
        let shown = client.ok("get_task", json!({"task_id": "t"}));
        assert!(shown.to_string().len() < limit::REPLY, "{size}");
        let is_cut = shown["task"]["kept"]["shortened"].is_string();
        assert_eq!(is_cut, size > limit::REPLY / 2, "{size}");
        assert_eq!(board.cli_ok("get_task", json!({"task_id": "t"}))["task"]["kept"], kept);
    }
}

#[test]
fn ten_of_a_workflow_are_kept_and_places_used_again() {
    let mut world = World::new();
    for step in 1..=25 {
        save(&mut world, "w", json!({"state": at_step(step)}));
        save(&mut world, "other", json!({"state": at_step(step)}));
    }
    assert_eq!(kept(&world, "w"), (16..=25).rev().collect::<Vec<_>>());
    assert_eq!(world.state.checkpoints().len(), 20);
    assert!(
        world
            .state
            .checkpoints()
            .all(|(id, _)| id.as_str().ends_with(|digit: char| digit.is_ascii_digit()))
    );
    world.policy.max_checkpoints_per_workflow = 3;
    save(&mut world, "w", json!({"state": at_step(26)}));
    assert_eq!(kept(&world, "w"), [26, 25, 24]);
    world.policy.max_checkpoints_per_workflow = 5;
    save(&mut world, "w", json!({"state": at_step(27)}));
    assert_eq!(kept(&world, "w"), [27, 26, 25, 24]);
}

#[test]
fn after_seven_days_all_but_the_newest_go() {
    let mut world = World::new();
    save(&mut world, "w", json!({"state": at_step(1)}));
    world.at(DAY);
    save(&mut world, "w", json!({"state": at_step(2)}));
    save(&mut world, "alone", json!({"state": at_step(1)}));
    world.at(6 * DAY);
    assert_eq!(kept(&world, "w"), [2, 1], "seven days are not over");
    world.at(1).tick();
    assert_eq!((kept(&world, "w"), kept(&world, "alone")), (vec![2], vec![1]));
    save(&mut world, "w", json!({"state": at_step(3)}));
    world.at(30 * DAY);
    assert_eq!(
        (kept(&world, "w"), kept(&world, "alone")),
        (vec![3], vec![1]),
        "a workflow that rests can be taken up"
    );
    saved(&mut world, "w", json!({"state": at_step(4)})).replies(json!({"checkpoint": 4}));
    assert_eq!(world.count_of("checkpoints_dropped"), 2);
}

#[test]
fn a_checkpoint_of_an_attempt_that_is_over_is_refused() {
    let mut world = World::new().agent("a1").agent("a2").task("t").claimed("a1", "t");
    save(world.by("a1"), "w", json!({"task_id": "t", "attempt": 1, "state": at_step(1)}));
    world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
    save(world.by("a1"), "w", json!({"task_id": "t", "attempt": 1, "state": at_step(2)}));
    world.claim("a2", "t");
    let stale = json!({"workflow_id": "w", "task_id": "t", "attempt": 1, "state": at_step(3)});
    world.by("a1").call("save_checkpoint", stale.clone()).refuses("held_by_other");
    world.by("a2").call("save_checkpoint", stale).refuses("attempt_over");
    world
        .by("nobody-knows")
        .call("save_checkpoint", json!({"workflow_id": "w"}))
        .refuses("unknown_agent");
    assert_eq!(kept(&world, "w"), [2, 1]);
}

#[test]
fn whoever_saves_has_begun() {
    let mut world = World::new().agent("a1").task("t").task("u");
    world.next("a1");
    save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(1)}));
    assert!(
        world.next("a1")["holding"].is_array(),
        "a claim that was acted on is not handed out again"
    );
}

#[test]
fn a_repeated_save_saves_once() {
    let mut world = World::new().agent("a1");
    let first = json!({"state": at_step(1), "spent": {"tokens": 5}, "idempotency_key": "k"});
    save(world.by("a1"), "w", first.clone());
    save(world.by("a1"), "w", json!({"state": at_step(2), "spent": {"tokens": 5}}));
    saved(world.by("a1"), "w", first)
        .replies(json!({"already": true, "checkpoint": 1, "spent": {"tokens": 10}}));
    assert_eq!(kept(&world, "w"), [2, 1]);
}

#[test]
fn bad_input_is_refused_and_leaves_nothing() {
    let mut world = World::new().agent("a1");
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([deep]);
    }
    for (arguments, code) in [
        (json!({"workflow_id": "../w", "state": {}}), "bad_id"),
        (json!({"workflow_id": "w", "state": {"step": -1}}), "bad_arguments"),
        (json!({"workflow_id": "w", "state": {"unknown": 1}}), "bad_arguments"),
        (json!({"workflow_id": "w", "state": {"workflow_id": "v"}}), "other_workflow"),
        (json!({"workflow_id": "w", "state": {"workflow_id": "a/b"}}), "bad_id"),
        (
            json!({"workflow_id": "w", "state": {"metrics": {"m": "x".repeat(limit::CHECKPOINT.max)}}}),
            "over_limit",
        ),
        (json!({"workflow_id": "w", "state": {"metrics": {"m": deep}}}), "over_limit"),
        (json!({"workflow_id": "w", "task_id": "none"}), "unknown_task"),
        (json!({"workflow_id": "w", "scope": "nowhere/x"}), "bad_path"),
        (json!({"workflow_id": "w", "spent": {"tokens": -1}}), "bad_arguments"),
        (json!({"workflow_id": "w", "spent": {"tokens": u64::MAX}}), "over_limit"),
        (json!({"workflow_id": "w", "budget": {"dollars": 1}}), "bad_arguments"),
    ] {
        world.by("a1").call("save_checkpoint", arguments).refuses(code);
    }
    assert_eq!(world.state.workflows().len(), 0);
}

#[test]
fn a_workflow_is_made_while_there_is_room() {
    let mut world = World::new();
    world.replays_seldom = true;
    for number in 0..limit::WORKFLOWS.max {
        save(&mut world, &format!("w{number}"), json!({"spent": {"tokens": 1}}));
    }
    world.call("save_checkpoint", json!({"workflow_id": "more"})).refuses("over_limit");
    world.at(7 * DAY + 1);
    save(&mut world, "w0", json!({}));
    save(&mut world, "more", json!({}));
    let gone = callboard::state::id::WorkflowId::trusted("w1");
    assert!(world.state.workflow(&gone).is_none(), "the one that nobody has used for longest");
    world.check();
}

#[test]
fn a_spent_budget_ends_claims_until_a_leader_raises_it() {
    let mut world =
        World::new().agent("a1").agent("a2").agent_with("boss", json!({"role": "leader"}));
    for id in ["t", "u", "v"] {
        world.create(id, json!({}));
    }
    world.claim("a1", "t");
    let first = json!({"task_id": "t", "budget": {"tokens": 100, "attempts": 3}, "spent": {"tokens": 60, "attempts": 1}});
    saved(world.by("a1"), "w", first).replies(json!({"remaining": {"tokens": 40, "attempts": 2}}));
    let over = save(world.by("a1"), "w", json!({"spent": {"tokens": 50}}));
    assert_eq!(
        (&over["exhausted"], &over["remaining"]["tokens"]),
        (&json!("110 of 100 tokens"), &json!(0))
    );
    world.complete("a1", "t");
    for arguments in [json!({}), json!({"task_id": "u"}), json!({"wait_seconds": 50})] {
        assert!(
            !world.by("a1").waits("claim_task", arguments.clone()),
            "there is nothing to wait for"
        );
        let empty = world
            .by("a1")
            .call("claim_task", arguments)
            .replies(json!({"success": false, "verdict": "spent"}));
        assert!(empty["message"].as_str().unwrap().contains("110 of 100 tokens"), "{empty}");
        assert!(empty["next"].as_str().unwrap().contains("save_checkpoint"), "{empty}");
    }
    let works_for = |world: &World, agent: &str| {
        let workflow = world.state.workflow_of(&callboard::state::id::AgentId::trusted(agent));
        workflow.map(|workflow| workflow.id.to_string()).unwrap_or_default()
    };
    save(world.by("a1"), "free", json!({"state": at_step(1)}));
    assert_eq!(works_for(&world, "a1"), "w", "nobody frees itself of a budget");
    world
        .by("a1")
        .call("claim_task", json!({}))
        .replies(json!({"success": false, "verdict": "spent"}));
    let raise = json!({"workflow_id": "w", "budget": {"tokens": 1000}});
    world.by("a1").call("save_checkpoint", raise.clone()).refuses("not_leader");
    save(world.by("a1"), "w", json!({"budget": {"tokens": 100}}));
    world.claim("a2", "v");
    world.by("boss").call("save_checkpoint", raise).replies(json!({"remaining": {"tokens": 890}}));
    world.claim("a1", "u");
    save(world.by("boss"), "free", json!({"spent": {"tokens": 1_000_000}}));
    save(world.by("a2"), "free", json!({}));
    save(world.by("a2"), "w", json!({}));
    assert_eq!(["a1", "a2", "boss"].map(|agent| works_for(&world, agent)), ["w", "w", "free"]);
}

#[test]
fn a_claim_hands_over_the_newest_checkpoint_of_the_task() {
    let mut world = World::new().agent("a1").agent("a2").task("t").claimed("a1", "t");
    save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(1)}));
    save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(2)}));
    let long = "word \"quoted\"\n".repeat(400);
    save(world.by("a1"), "w", json!({"state": {"metrics": {"of": "no task"}}}));
    world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
    let claim = world.claim("a2", "t");
    let handed = &claim["handoff"]["checkpoint"];
    assert_eq!((&handed["workflow_id"], &handed["number"]), (&json!("w"), &json!(2)));
    assert_eq!((&handed["state"]["step"], &handed["state"]["phase"]), (&json!(2), &json!("build")));
    let full = json!({"phase": long, "step": 7, "status": long, "completed_tasks": ["t"], "metrics": {"m": long}});
    save(world.by("a2"), "w", json!({"task_id": "t", "state": full}));
    world.by("a2").call("release_task", json!({"task_id": "t"})).expect("released");
    let handed = world.claim("a1", "t")["handoff"]["checkpoint"].clone();
    assert_eq!((&handed["number"], &handed["step"]), (&json!(4), &json!(7)));
    let size = handed.to_string().len();
    assert!(size <= 500, "{size} bytes: {handed}");
}

#[test]
fn a_task_that_was_reset_is_begun_without_the_checkpoints_of_before() {
    let mut world = World::new()
        .agent("a1")
        .agent_with("boss", json!({"role": "leader"}))
        .task("t")
        .claimed("a1", "t");
    save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(1)}));
    world.at(SECOND);
    world.fetched = Fetched::Taken(Listed {
        name: SnapshotName::new(world.now, "0123abcd"),
        bytes: 1,
        head: None,
    });
    world
        .by("boss")
        .call("reset_tasks", json!({"task_id": "t", "held": true}))
        .replies(json!({"reset": 1}));
    let read =
        |world: &mut World| world.nobody().call("get_checkpoint", json!({"task_id": "t"})).unwrap();
    assert_eq!(read(&mut world)["restored"], false);
    assert!(world.claim("a1", "t")["handoff"]["checkpoint"].is_null());
    world.at(SECOND);
    save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(2)}));
    assert_eq!(read(&mut world)["checkpoint"]["number"], 2);
    world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
    assert_eq!(world.claim("a1", "t")["handoff"]["checkpoint"]["number"], 2);
    world.check();
}

#[test]
fn reset_begins_anew_what_was_released_or_retried_once() {
    type End = fn(&mut World);
    let ends: [(&str, End); 3] = [
        ("released", |world| {
            drop(world.by("a1").call("release_task", json!({"task_id": "t"})).unwrap())
        }),
        ("retried", |world| {
            let fail = json!({"task_id": "t", "error": "x", "retryable": false});
            world.by("a1").call("fail_task", fail).expect("failed");
            world.by("boss").call("retry_task", json!({"task_id": "t"})).expect("retried");
        }),
        ("saved without a claim", |world| {
            world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
            world.by("boss").call("reset_tasks", json!({"task_id": "t"})).expect("reset");
            world.at(SECOND).nobody();
            save(world, "w", json!({"task_id": "t", "state": at_step(2)}));
        }),
    ];
    for (name, end) in ends {
        let boss = json!({"role": "leader"});
        let mut world =
            World::new().agent("a1").agent_with("boss", boss).task("t").claimed("a1", "t");
        save(
            world.by("a1"),
            "w",
            json!({"task_id": "t", "state": at_step(1), "kept": {"half": "done"}}),
        );
        world.at(SECOND);
        world.fetched = Fetched::Taken(Listed {
            name: SnapshotName::new(world.now, "0123abcd"),
            bytes: 1,
            head: None,
        });
        end(&mut world);
        world.at(SECOND);
        for reset in [1, 0] {
            let reply = world.by("boss").call("reset_tasks", json!({"task_id": "t"})).expect(name);
            assert_eq!(reply["reset"], reset, "{name}");
        }
        assert_eq!(world.read("t").kept, None, "{name}");
        assert!(world.claim("a1", "t")["handoff"]["checkpoint"].is_null(), "{name}");
    }
}

#[test]
fn a_restore_gives_no_budget_back() {
    let mut world = World::new().agent("a1");
    save(
        world.by("a1"),
        "w",
        json!({"state": at_step(1), "budget": {"tokens": 100}, "spent": {"tokens": 10}}),
    );
    let then = world.state.to_document();
    save(world.by("a1"), "w", json!({"state": at_step(2), "spent": {"tokens": 90}}));
    save(world.by("a1"), "new", json!({"state": at_step(1)}));
    let restored = State::from_document(world.state.restored(&then, world.now));
    assert_eq!(restored.check(), Vec::<String>::new());
    let workflow = restored.workflow(&callboard::state::id::WorkflowId::trusted("w")).unwrap();
    assert_eq!((workflow.spent.tokens, workflow.checkpoint), (100, 2));
    let numbers: Vec<_> = restored.checkpoints_of(&workflow.id).map(|one| one.number).collect();
    assert_eq!(numbers, [1], "checkpoints are those of then");
}

/// A board imported from a state file with damaged newest checkpoints and a valid checksum.
fn imported(damage: impl Fn(&mut Document)) -> Board {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    for step in 1..=3 {
        save(world.by("a1"), "w", json!({"task_id": "t", "state": at_step(step)}));
    }
    let mut document = world.state.to_document();
    damage(&mut document);
    let board = Board::new();
    board.make_dir();
    let text = statefile::text_of(&State::from_document(document)).unwrap();
    fs::write(board.file(STATE_FILE), text).unwrap();
    board
}

#[test]
fn a_damaged_newest_checkpoint_falls_back_to_the_one_before() {
    let newest = |document: &mut Document, count: u64| {
        for checkpoint in document.checkpoints.values_mut().filter(|one| one.number > 3 - count) {
            checkpoint.state.step = 99;
        }
    };
    let board = imported(|document| newest(document, 1));
    for asked in [json!({"workflow_id": "w"}), json!({"task_id": "t"})] {
        let read = board.cli_ok("get_checkpoint", asked);
        assert_eq!((&read["restored"], &read["fallback"]), (&json!(true), &json!(true)), "{read}");
        assert_eq!(
            (&read["checkpoint"]["number"], &read["checkpoint"]["state"]["step"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(read["skipped"][0]["number"], 3);
        assert!(read["skipped"][0]["reason"].as_str().unwrap().contains("sha256"), "{read}");
    }
    assert_eq!(
        board.cli("get_checkpoint", json!({"workflow_id": "w", "number": 3})).code(),
        "checkpoint_damaged"
    );
    board.cli_ok("register_agent", json!({"agent_id": "a2", "role": "worker"}));
    let claim = board.cli_ok("claim_task", json!({"task_id": "t", "agent_id": "a2"}));
    assert_eq!(claim["handoff"]["checkpoint"]["number"], 2, "{claim}");
    let saved = board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "state": at_step(4)}));
    assert_eq!(saved["checkpoint"], 4, "a damaged number is not used again");
    assert_eq!((&saved["damaged"], &saved["step"]), (&json!([3]), &json!(4)), "{saved}");
    let read = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
    assert_eq!((&read["checkpoint"]["number"], &read["fallback"]), (&json!(4), &Value::Null));
    let phase = json!({"workflow_id": "w", "state": {"phase": "on"}});
    let board = imported(|document| newest(document, 1));
    let saved = board.cli_ok("save_checkpoint", phase);
    assert_eq!(
        (&saved["phase"], &saved["step"], &saved["damaged"]),
        (&json!("on"), &json!(2), &json!([3])),
        "it goes on from the newest sound one"
    );
    let all = imported(|document| newest(document, 3));
    let read = all.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
    assert_eq!(
        (&read["restored"], read["skipped"].as_array().unwrap().len()),
        (&json!(false), 3),
        "{read}"
    );
}

#[test]
fn a_checkpoint_survives_processes_and_stands_in_the_state_file() {
    let board = Board::new();
    for step in 1..=12 {
        board.cli_ok(
            "save_checkpoint",
            json!({"workflow_id": "nightly", "state": at_step(step), "spent": {"tokens": 1}}),
        );
    }
    let read = board.cli_ok("get_checkpoint", json!({"workflow_id": "nightly"}));
    assert_eq!(
        (&read["checkpoint"]["number"], &read["workflow"]["spent"]["tokens"]),
        (&json!(12), &json!(12))
    );
    let file: Value = serde_json::from_slice(&fs::read(board.file(STATE_FILE)).unwrap()).unwrap();
    let shown: Vec<_> = file["checkpoints"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(shown.len(), 10, "{shown:?}");
    assert_eq!(file["workflows"]["nightly"]["checkpoint"], 12);
}

#[test]
fn a_workflow_and_its_checkpoints_are_listed_in_pages_and_deleted_by_leaders() {
    let mut world = World::new().agent("a1");
    for number in 1..=7 {
        save(world.by("a1"), "w", json!({"state": at_step(number), "spent": {"attempts": 1}}));
        save(world.by("a1"), &format!("v{number}"), json!({}));
    }
    let first = world.call("list_checkpoints", json!({"limit": 5})).replies(json!({"next": "v5"}));
    assert_eq!(first["workflows"].as_array().unwrap().len(), 5);
    world
        .call("list_checkpoints", json!({"workflow_id": "v5", "after": "abc"}))
        .refuses("bad_arguments");
    let rest = world.call("list_checkpoints", json!({"limit": 5, "after": "v5"})).expect("listed");
    let ids: Vec<_> = rest["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!((ids, &rest["next"]), (vec!["v6", "v7", "w"], &Value::Null));
    let page = world
        .call("list_checkpoints", json!({"workflow_id": "w", "limit": 3}))
        .replies(json!({"next": "5"}));
    let steps: Vec<_> = page["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["step"].as_u64().unwrap())
        .collect();
    assert_eq!((steps, &page["workflow"]["kept"]), (vec![7, 6, 5], &json!(7)));
    world.call("list_checkpoints", json!({"workflow_id": "none"})).refuses("unknown_workflow");
    world.by("a1").call("delete_checkpoints", json!({"workflow_id": "w"})).refuses("not_leader");
    world.nobody();
    world
        .call("delete_checkpoints", json!({"workflow_id": "w", "number": 9}))
        .refuses("unknown_checkpoint");
    world
        .call("delete_checkpoints", json!({"workflow_id": "w", "number": 7, "keep": 1}))
        .refuses("number_or_keep");
    world
        .call("delete_checkpoints", json!({"workflow_id": "w", "number": 7}))
        .replies(json!({"kept": 6}));
    world
        .call("delete_checkpoints", json!({"workflow_id": "w", "keep": 2}))
        .replies(json!({"kept": 2}));
    assert_eq!(kept(&world, "w"), [6, 5]);
    saved(&mut world, "w", json!({"state": at_step(8)}))
        .replies(json!({"checkpoint": 8, "kept": 3}));
    for unclear in [json!({}), json!({"all": false}), json!({"all": true, "keep": 1})] {
        let unclear = with(json!({"workflow_id": "w"}), &unclear);
        world.call("delete_checkpoints", unclear).refuses("number_or_keep");
    }
    assert_eq!(kept(&world, "w"), [8, 6, 5]);
    world
        .call("delete_checkpoints", json!({"workflow_id": "w", "all": true}))
        .replies(json!({"removed": true, "kept": 0}));
    saved(&mut world, "w", json!({"state": at_step(1)}))
        .replies(json!({"checkpoint": 1, "spent": {"attempts": 0}}));
}

#[test]
fn the_command_saves_shows_lists_and_deletes() {
    let board = Board::new();
    let checkpoint =
        |arguments: &[&str]| board.finish(board.command().args(["checkpoint"]).args(arguments));
    let first = [
        "save",
        "w",
        "--phase",
        "build",
        "--step",
        "4",
        "--spent",
        "tokens=30",
        "--budget",
        "tokens=100",
    ];
    let told = checkpoint(&first);
    assert_eq!(
        told.stdout, "workflow w: checkpoint 1, 1 kept\nremaining: 70 tokens\n",
        "{}",
        told.stderr
    );
    let file = board.base().join("state.json");
    fs::write(&file, json!({"phase": "test", "step": 5, "metrics": {"ratio": 0.25}}).to_string())
        .unwrap();
    let told = checkpoint(&[
        "save",
        "w",
        "--file",
        file.to_str().unwrap(),
        "--step",
        "6",
        "--spent",
        "tokens=70",
    ]);
    assert!(told.stdout.contains("100 of 100 tokens"), "{}{}", told.stdout, told.stderr);
    let shown = checkpoint(&["show", "w"]).stdout;
    for line in
        ["number: 2", "phase: test", "step: 6", "metrics: {\"ratio\":0.25}", "spent: 100 tokens"]
    {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    assert_eq!(checkpoint(&["show", "none"]).status.code(), Some(1));
    let listed = checkpoint(&["list"]).stdout;
    assert!(listed.contains("WORKFLOW") && listed.contains("none: 100 of 100 tokens"), "{listed}");
    assert!(checkpoint(&["list", "w"]).stdout.contains("test"));
    assert_eq!(
        checkpoint(&["delete", "w"]).status.code(),
        Some(2),
        "it must be said what is to go"
    );
    assert_eq!(
        checkpoint(&["delete", "w", "--number", "2"]).stdout,
        "workflow w: 1 checkpoints are left\n"
    );
    assert_eq!(checkpoint(&["delete", "w", "--all"]).stdout, "workflow w is gone\n");
    for (arguments, word) in [
        (vec!["save", "w", "--spent", "tokens=-1"], "tokens=N"),
        (vec!["save", "w", "--budget", "dollars=1"], "tokens=N"),
        (vec!["save", "w", "--file", "/none"], "/none"),
        (vec!["show"], "WORKFLOW"),
    ] {
        let refused = checkpoint(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(word), "{arguments:?}: {}", refused.stderr);
    }
}

#[test]
fn artifacts_are_kept_beside_the_board_and_named_by_the_task() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "do it"}));
    let artifact =
        |arguments: &[&str]| board.finish(board.command().args(["artifact"]).args(arguments));
    let report = board.base().join("report.txt");
    fs::write(&report, "all is well\n").unwrap();
    let told = artifact(&["attach", "t", "report.txt"]);
    assert!(
        told.stdout.starts_with("task t: report.txt, 12 bytes, in "),
        "{}{}",
        told.stdout,
        told.stderr
    );
    let path = board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "log", "text": "x"}))
        ["path"]
        .clone();
    let kept = board.file(path.as_str().unwrap());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "x");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let again =
        board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "log", "text": "y"}));
    assert_ne!(again["path"], path, "two contents never share a file");
    let seq = board.cli_ok("health_check", json!({}))["seq"].clone();
    board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "log", "text": "y"}));
    assert_eq!(board.cli_ok("health_check", json!({}))["seq"], seq, "the same again is no event");
    let listed = artifact(&["list", "t"]).stdout;
    assert!(listed.contains("report.txt") && listed.contains("log"), "{listed}");
    let secret = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    fs::write(&report, &secret).unwrap();
    artifact(&["attach", "t", report.to_str().unwrap(), "--name", "leak"]);
    let leak =
        board.cli_ok("get_task", json!({"task_id": "t"}))["task"]["artifacts"][2]["sha256"].clone();
    let name = format!("artifacts/t/{}-leak", &leak.as_str().unwrap()[..8]);
    assert!(!fs::read_to_string(board.file(&name)).unwrap().contains(&secret));
    let names: Vec<_> = fs::read_dir(board.file("artifacts/t"))
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

#[test]
fn an_artifact_that_cannot_be_is_refused() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "do it"}));
    let big = board.base().join("big");
    fs::File::create(&big).unwrap().set_len(limit::ARTIFACT.max as u64 + 1).unwrap();
    for (arguments, code) in [
        (json!({"task_id": "t", "name": "../x", "text": "x"}), "bad_artifact_name"),
        (json!({"task_id": "t", "name": ".x", "text": "x"}), "bad_artifact_name"),
        (json!({"task_id": "none", "name": "x", "text": "x"}), "unknown_task"),
        (json!({"task_id": "../t", "name": "x", "text": "x"}), "unknown_task"),
        (json!({"task_id": "t", "name": "x"}), "text_or_path"),
        (
            json!({"task_id": "t", "name": "x", "text": "x", "path": "/etc/hostname"}),
            "text_or_path",
        ),
        (json!({"task_id": "t", "name": "x", "path": "/none"}), "artifact_unread"),
        (json!({"task_id": "t", "name": "x", "path": "/dev/zero"}), "artifact_unread"),
        (json!({"task_id": "t", "name": "x", "path": "/etc"}), "artifact_unread"),
        (json!({"task_id": "t", "name": "x", "path": big}), "over_limit"),
        (json!({"task_id": "t", "name": "x", "path": board.file("journal.db")}), "artifact_unread"),
    ] {
        assert_eq!(board.cli("attach_artifact", arguments.clone()).code(), code, "{arguments}");
    }
    assert!(!board.file("artifacts/none").exists() && !board.file("artifacts/t").exists());
    let server = Server::on(&board);
    for door in [Door::Mcp, Door::Rpc] {
        let path = json!({"task_id": "t", "name": "x", "path": "/etc/hostname"});
        let reply = door.ask(&server, "attach_artifact", &path);
        assert!(reply.is_error && reply.text.contains("path_of_other_machine"), "{}", reply.text);
        door.ok(
            &server,
            "attach_artifact",
            &json!({"task_id": "t", "name": "x", "text": "over HTTP"}),
        );
    }
}

/// If the process opened and closed the journal's file again, it would lose the locks that protect
/// others' writes.
#[test]
fn a_file_of_the_board_is_no_artifact_by_whatever_name() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"id": "t", "description": "do it"}));
    let beside = |name: &str| board.base().join(name);
    std::os::unix::fs::symlink(board.file("journal.db"), beside("link")).unwrap();
    std::os::unix::fs::symlink(board.dir(), beside("dir")).unwrap();
    let mut paths =
        vec![beside("link"), beside("dir").join("journal.db-shm"), beside("board/run/../lock")];
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "mcp-state.json"] {
        paths.push(board.file(name));
        paths.push(beside(&format!("hard-{name}")));
        fs::hard_link(board.file(name), beside(&format!("hard-{name}"))).unwrap();
    }
    for path in paths {
        let reply =
            client.call("attach_artifact", json!({"task_id": "t", "name": "x", "path": path}));
        assert!(reply.text.contains("callboard backup"), "{}: {}", path.display(), reply.text);
    }
    // Files in deeper directories, such as an agent's worktree, are not files of the board.
    fs::create_dir_all(board.file("worktrees/w")).unwrap();
    fs::write(board.file("worktrees/w/report"), "well").unwrap();
    let report =
        json!({"task_id": "t", "name": "report", "path": board.file("worktrees/w/report")});
    client.ok("attach_artifact", report);
}

#[test]
fn an_artifact_is_redacted_whatever_bytes_stand_between() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "do it"}));
    let secret = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let log = board.base().join("log");
    fs::write(&log, [b"gr\xfc\xdfe\n", secret.as_bytes(), b"\n\xff"].concat()).unwrap();
    let reply =
        board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "log", "path": log}));
    let kept = fs::read(board.file(reply["path"].as_str().unwrap())).unwrap();
    assert_eq!(kept, b"gr\xfc\xdfe\n[redacted: github token]\n\xff");
    // A redacted JSON document is still valid; a document without secrets is unchanged.
    let document = |text: &str| {
        fs::write(&log, text).unwrap();
        let reply = board
            .cli_ok("attach_artifact", json!({"task_id": "t", "name": "document", "path": log}));
        fs::read_to_string(board.file(reply["path"].as_str().unwrap())).unwrap()
    };
    let kept = document(
        r#"{"db": {"password": {"value": "hunter2hunter3"}, "pin": 4}, "password": 12345678}"#,
    );
    let clean = json!({"db": {"password": {"value": "[redacted: password]"}, "pin": 4}, "password": "[redacted: password]"});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).unwrap(), clean);
    assert!(!document(r#"{"token": "a1b2c3d4e5f6g7h8", "token": ""}"#).contains("a1b2"));
    let written = |secret: &str| {
        format!(r#"{{"token":{secret},  "big": 12345678901234567890123, "f":0.10,"f": 0.2}}"#)
    };
    assert_eq!(document(&written(r#""a1b2c3d4e5f6g7h8""#)), written(r#""[redacted: token]""#));
    let compact = format!(r#"{{"password":"hunter2hunter3","n":[{}0]}}"#, "1,".repeat(1_500_000));
    assert_eq!(document(&compact), compact.replace("hunter2hunter3", "[redacted: password]"));
    let harmless = r#"{"tokens":   1.50, "big": 12345678901234567890123}"#;
    assert_eq!(document(harmless), harmless);
}

#[test]
fn doctor_tells_of_damaged_checkpoints_and_artifacts() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "do it"}));
    let told = |board: &Board| board.finish(board.command().arg("doctor")).stdout;
    assert!(!told(&board).contains("checkpoints") && !told(&board).contains("artifacts"));
    board.cli_ok(
        "save_checkpoint",
        json!({"workflow_id": "w", "task_id": "t", "state": at_step(1)}),
    );
    let path = board.cli_ok("attach_artifact", json!({"task_id": "t", "name": "log", "text": "x"}))
        ["path"]
        .clone();
    let report = told(&board);
    assert!(report.contains("ok   checkpoints: 1 in 1 workflows, all sound"), "{report}");
    assert!(report.contains("ok   artifacts: 1 of 1 tasks"), "{report}");
    fs::write(board.file(path.as_str().unwrap()), "y").unwrap();
    assert!(
        told(&board).contains("warn artifacts: 1 of 1 tasks, t/log is not as it was attached"),
        "{}",
        told(&board)
    );
    fs::remove_file(board.file(path.as_str().unwrap())).unwrap();
    assert!(told(&board).contains("t/log is missing"), "{}", told(&board));
    let damaged = imported(|document| {
        for checkpoint in document.checkpoints.values_mut() {
            checkpoint.state.step = 99;
        }
    });
    assert!(
        told(&damaged).contains("warn checkpoints: 3 in 1 workflows, damaged: number 1 of w"),
        "{}",
        told(&damaged)
    );
}

#[test]
fn a_backup_and_a_rebuilt_file_hold_the_checkpoints() {
    let board = Board::new();
    for step in 1..=3 {
        board.cli_ok(
            "save_checkpoint",
            json!({"workflow_id": "w", "state": at_step(step), "spent": {"tokens": 2}}),
        );
    }
    let is_whole = |board: &Board| {
        let read = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
        assert_eq!(
            (&read["checkpoint"]["number"], &read["workflow"]["spent"]["tokens"]),
            (&json!(3), &json!(6))
        );
        assert_eq!(
            board.cli_ok("list_checkpoints", json!({"workflow_id": "w"}))["workflow"]["kept"],
            3
        );
    };
    let backup = board.base().join("board.backup");
    let finished = board.finish(board.command().arg("backup").arg(&backup));
    assert!(finished.status.success(), "{}", finished.stderr);
    let other = Board::new();
    let finished = other.finish(other.command().args(["restore", backup.to_str().unwrap()]));
    assert!(finished.status.success(), "{}", finished.stderr);
    is_whole(&other);
    // Rebuilt from the journal alone.
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    is_whole(&board);
    // Read from the file alone.
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(other.file(name));
    }
    is_whole(&other);
}

#[test]
fn a_hand_edit_of_a_checkpoint_is_no_edit() {
    let board = Board::new();
    board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "state": at_step(1)}));
    let text = fs::read_to_string(board.file(STATE_FILE)).unwrap();
    fs::write(board.file(STATE_FILE), text.replace("\"step\": 1", "\"step\": 9")).unwrap();
    board.cli_ok("save_checkpoint", json!({"workflow_id": "w", "spent": {"tokens": 1}}));
    let read = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}));
    assert_eq!(
        (&read["checkpoint"]["state"]["step"], &read["fallback"]),
        (&json!(1), &Value::Null)
    );
    let kept = fs::read_dir(board.dir())
        .unwrap()
        .filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().contains(".rejected-"));
    assert!(kept.count() > 0, "the edit is kept beside the file");
}
