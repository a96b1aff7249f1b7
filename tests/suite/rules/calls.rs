//! The form of calls: bad input, limits, idempotency keys, batches, pages.

use std::sync::Arc;

use callboard::ops::{DefaultAgent, Reader, understand};
use callboard::state::id::TaskId;
use callboard::state::policy::Policy;
use callboard::state::task::TaskStatus;
use callboard::state::time::{MINUTE, SECOND};
use serde_json::{Value, json};

use super::super::world::{Answered, World};

#[test]
fn bad_input_is_refused_by_name_with_a_way_out_and_records_nothing() {
    let long = "x".repeat(16 * 1024 + 1);
    let many: Vec<String> = (0..201).map(|number| format!("d{number}")).collect();
    let labels: Vec<String> = (0..51).map(|number| format!("l{number}")).collect();
    let cases: Vec<(&str, Value, &str, &[&str])> = vec![
        (
            "create_task",
            json!({"description": "x", "dependencies": ["nope"]}),
            "unknown_dependency",
            &["`nope`", "create it first"],
        ),
        (
            "create_task",
            json!({"description": "x", "dependencies": ["#2"]}),
            "unknown_dependency",
            &["`#2`", "its id, ref or title"],
        ),
        (
            "create_task",
            json!({"description": "x", "id": "s", "dependencies": ["s"]}),
            "dependency_cycle",
            &["s -> s", "leave one"],
        ),
        (
            "create_task",
            json!({"description": "x", "id": "t"}),
            "task_exists",
            &["`t`", "another id"],
        ),
        ("create_task", json!({"description": "x", "id": "a b"}), "bad_id", &["task id", "`a-b`"]),
        ("create_task", json!({"description": " \n"}), "empty", &["description"]),
        ("create_task", json!({"description": "x", "title": ""}), "empty", &["title"]),
        ("create_task", json!({"description": "x", "max_attempts": 0}), "zero", &["max_attempts"]),
        ("create_task", json!({"description": "x", "tags": [""]}), "empty", &["tag"]),
        (
            "create_task",
            json!({"description": long}),
            "over_limit",
            &["description", "16385 bytes", "at most 16384"],
        ),
        (
            "create_task",
            json!({"description": "x", "hints": long}),
            "over_limit",
            &["hints", "16385", "16384"],
        ),
        (
            "create_task",
            json!({"description": "x", "title": "x".repeat(201)}),
            "over_limit",
            &["title", "201", "200"],
        ),
        (
            "create_task",
            json!({"description": "x", "id": "x".repeat(65)}),
            "over_limit",
            &["id", "65", "64"],
        ),
        (
            "create_task",
            json!({"description": "x", "dependencies": many}),
            "over_limit",
            &["dependencies", "201", "200"],
        ),
        (
            "create_task",
            json!({"description": "x", "tags": labels}),
            "over_limit",
            &["tags", "51", "50"],
        ),
        (
            "create_task",
            json!({"description": "x", "idempotency_key": "k".repeat(201)}),
            "over_limit",
            &["idempotency_key", "201", "200"],
        ),
        (
            "create_task",
            json!({"description": "x", "priority": 0}),
            "bad_priority",
            &["1 (first) to 10", "not 0"],
        ),
        ("create_task", json!({"description": "x", "priority": 11}), "bad_priority", &["not 11"]),
        ("create_task", json!({"description": "x", "priority": -1}), "bad_priority", &["not -1"]),
        (
            "create_task",
            json!({"description": "x", "prio": 1}),
            "bad_arguments",
            &["prio", "did you mean", "priority?"],
        ),
        (
            "create_task",
            json!({"description": "x", "priority": "high"}),
            "bad_arguments",
            &["priority", "not high", "a whole number"],
        ),
        ("create_task", json!({}), "bad_arguments", &["description", "is missing"]),
        ("create_task", json!(["x"]), "bad_arguments", &["create_task", "by name"]),
        (
            "create_task",
            json!({"description": "x", "demands": {"gpu": true}}),
            "bad_arguments",
            &["demands.gpu", "capabilities"],
        ),
        ("create_tasks_batch", json!({"tasks": []}), "empty", &["tasks"]),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "x", "idempotency_key": "k"}]}),
            "key_of_item",
            &["batch"],
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"id": "p", "description": "x", "dependencies": ["q"]}, {"id": "q", "description": "x", "dependencies": ["p"]}]}),
            "dependency_cycle",
            &["p -> q -> p"],
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"id": "p", "description": "x"}, {"id": "p", "description": "x"}]}),
            "task_exists",
            &["`p`"],
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"id": "p", "description": "x"}, {"description": "x", "dependencies": ["#2"]}]}),
            "unknown_dependency",
            &["`tasks[1]`", "`#2`"],
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"ref": "a", "description": "x", "dependencies": ["b"]}, {"ref": "b", "description": "x", "dependencies": ["a"]}]}),
            "dependency_cycle",
            &["tasks[0] -> tasks[1] -> tasks[0]"],
        ),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "x"}, {"description": "x", "priority": 11}]}),
            "task_of_batch",
            &["tasks[1]", "not 11", "nothing"],
        ),
        (
            "register_agent",
            json!({"agent_id": "b", "role": "boss"}),
            "bad_arguments",
            &["boss", "leader", "worker", "observer"],
        ),
        (
            "register_agent",
            json!({"agent_id": "human", "role": "worker"}),
            "reserved_id",
            &["human", "agent_id"],
        ),
        (
            "register_agent",
            json!({"agent_id": "all", "role": "worker"}),
            "address_as_id",
            &["all", "agent_id"],
        ),
        (
            "register_agent",
            json!({"agent_id": "role:x", "role": "worker"}),
            "address_as_id",
            &["role:", "agent_id"],
        ),
        ("register_agent", json!({"agent_id": "../x", "role": "worker"}), "bad_id", &["agent id"]),
        (
            "start_task",
            json!({"agent_id": "a1", "task_id": "nope"}),
            "unknown_task",
            &["`nope`", "get_all_tasks"],
        ),
        (
            "complete_task",
            json!({"agent_id": "a1", "task_id": "nope", "output": ""}),
            "unknown_task",
            &["`nope`"],
        ),
        (
            "start_task",
            json!({"agent_id": "nope", "task_id": "t"}),
            "unknown_agent",
            &["`nope`", "register_agent"],
        ),
        (
            "add_discovery",
            json!({"agent_id": "nope", "content": "x"}),
            "unknown_agent",
            &["`nope`"],
        ),
        ("add_discovery", json!({"agent_id": "a1", "content": ""}), "empty", &["content"]),
        (
            "heartbeat",
            json!({"agent_id": "a1", "note": "n".repeat(2_049)}),
            "over_limit",
            &["note", "2049", "2048"],
        ),
        (
            "heartbeat",
            json!({"agent_id": "a1", "project_dir": "sub"}),
            "bad_arguments",
            &["project_dir", "absolute"],
        ),
        ("init_coordination", json!({"goal": ""}), "empty", &["goal"]),
        (
            "init_coordination",
            json!({"goal": "g".repeat(8_193)}),
            "over_limit",
            &["goal", "8193", "8192"],
        ),
        ("pause", json!({"reason": "r".repeat(2_049)}), "over_limit", &["reason", "2049"]),
        ("get_task", json!({"task_id": "nope"}), "unknown_task", &["`nope`"]),
        ("get_results", json!({"task_ids": ["nope"]}), "unknown_task", &["`nope`"]),
        ("apply_batch", json!({"operations": []}), "empty", &["operations"]),
    ];
    let mut world = World::new().task("t").agent("a1");
    let seq = world.state.seq();
    for (operation, arguments, code, parts) in cases {
        let shown: String = arguments.to_string().chars().take(120).collect();
        let message = world.nobody().call(operation, arguments).refuses(code);
        for part in parts {
            assert!(
                message.contains(part),
                "{operation} {shown}: {message:?} does not say {part:?}"
            );
        }
        assert!(message.len() < 600, "{message}");
        assert_eq!(world.state.seq(), seq, "{operation} {shown} recorded something");
    }
}

#[test]
fn whole_numbers_are_integers_however_they_are_written() {
    let mut world = World::new().agent("a1");
    let task = |world: &World| Arc::clone(world.state.task(&TaskId::trusted("t")).unwrap());
    let call = json!({"id": "t", "description": "d", "priority": 3.0, "max_attempts": 2e0});
    world.call("create_task", call).expect("created");
    assert_eq!((task(&world).priority, task(&world).max_attempts), (3, 2));
    world.claim("a1", "t");
    let data = json!({"ratio": 5.0, "half": 0.5});
    world
        .call("complete_task", json!({"task_id": "t", "output": "o", "data": data}))
        .expect("completed");
    assert_eq!(task(&world).result.as_ref().expect("a result").data, Some(data));
    for priority in [json!(3.5), json!("3.5"), json!(1e300)] {
        world
            .call("create_task", json!({"description": "d", "priority": priority}))
            .refuses("bad_arguments");
    }
    let one =
        world.call("get_all_tasks", json!({"limit": 0})).expect("a limit is brought into range");
    assert_eq!(one["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn results_over_their_limit_are_refused_with_the_task_still_held() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    let files: Vec<String> = (0..501).map(|number| format!("f{number}")).collect();
    let cases = [
        (json!({"output": "x".repeat(65_537)}), "65537 bytes, at most 65536"),
        (json!({"output": "", "files_modified": files}), "501 entries, at most 500"),
        (json!({"output": "", "branch": "b".repeat(1_025)}), "1025 bytes, at most 1024"),
        (json!({"output": "", "data": "d".repeat(65_536)}), "65538 bytes, at most 65536"),
    ];
    for (mut arguments, sizes) in cases {
        arguments["task_id"] = json!("t");
        let message = world.call("complete_task", arguments).refuses("over_limit");
        assert!(message.contains(sizes), "{message}");
    }
    assert_eq!(world.status("t"), TaskStatus::Claimed);
}

#[test]
fn repeated_key_creates_nothing_and_answers_the_same_ids() {
    let mut world = World::new().agent("a1");
    let calls = [
        ("create_task", json!({"description": "x", "idempotency_key": "k"}), "/task/id"),
        (
            "create_tasks_batch",
            json!({"tasks": [{"description": "x"}, {"description": "y"}], "idempotency_key": "k"}),
            "/task_ids",
        ),
        ("add_discovery", json!({"content": "x", "idempotency_key": "k"}), "/discovery/id"),
    ];
    for (operation, arguments, ids) in calls {
        let first = world.call(operation, arguments.clone()).replies(json!({"already": null}));
        let seq = world.state.seq();
        let again =
            world.at(SECOND).call(operation, arguments.clone()).replies(json!({"already": true}));
        assert_eq!(again.pointer(ids), first.pointer(ids));
        assert_eq!(world.state.seq(), seq, "{operation}");
        let mut others = arguments;
        others["tags"] = json!(["z"]);
        if operation == "create_tasks_batch" {
            others = json!({"tasks": [{"description": "other"}], "idempotency_key": "k"});
        }
        assert!(world.call(operation, others).refuses("key_reused").contains("`k`"));
    }
    let mut world = world.agent("a2");
    let other = json!({"content": "other", "idempotency_key": "k"});
    world.call("add_discovery", other).replies(json!({"already": null, "agent_id": "a2"}));
}

#[test]
fn repeated_key_is_answered_also_when_the_task_has_retired() {
    let mut world =
        World::with_policy(Policy { keep_finished: 0, ..Policy::default() }).agent("a1");
    let create = json!({"id": "t", "description": "x", "idempotency_key": "k"});
    world.call("create_task", create.clone()).expect("created");
    world.claim("a1", "t");
    world.complete("a1", "t");
    world.at(SECOND);
    assert_eq!(world.state.live_tasks(), 0);
    world.call("create_task", create).replies(json!({"already": true, "task": {"id": "t"}}));
}

#[test]
fn key_is_remembered_for_ten_thousand_others() {
    let mut world = World::new().agent("a1");
    world.policy.keep_finished = 1_000_000;
    let add = |number: usize| json!({"content": "x", "idempotency_key": format!("k{number}")});
    for number in 0..10_000 {
        world.call("add_discovery", add(number)).expect("added");
    }
    world.call("add_discovery", add(0)).replies(json!({"already": true}));
    world.call("add_discovery", add(10_000)).replies(json!({"already": null}));
    world.call("add_discovery", add(1)).replies(json!({"already": true}));
    world.call("add_discovery", add(0)).replies(json!({"already": null}));
}

#[test]
fn empty_key_is_none() {
    let mut world = World::new().agent("a1");
    for text in ["x", "y", "y"] {
        let call = json!({"description": text, "idempotency_key": ""});
        world.call("create_task", call).replies(json!({"already": null}));
    }
}

#[test]
fn batch_names_tasks_by_id_ref_or_title() {
    let mut world = World::new();
    let tasks = json!([
        {"description": "last", "dependencies": ["1", "second"]},
        {"id": "1", "title": "First", "description": "first"},
        {"id": "second", "description": "second", "dependencies": ["First"]},
    ]);
    let reply =
        world.call("create_tasks_batch", json!({"tasks": tasks})).replies(json!({"created": 3}));
    let ids: Vec<_> = reply["task_ids"]
        .as_array()
        .expect("ids")
        .iter()
        .map(|id| id.as_str().expect("text"))
        .collect();
    let last = world.read(ids[0]);
    assert_eq!(
        last.dependencies.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
        [ids[1], "second"]
    );
    assert_eq!(world.state.ready_count(), 1);
    assert_eq!(reply["refs"], json!({"1": ids[1]}), "digits are no id");
    assert_eq!(reply["numbers"], json!([1, 2, 3]));
    let twins = json!([{"title": "T"}, {"title": "T"}, {"title": "U", "dependencies": ["T"]}]);
    world.call("create_tasks_batch", json!({"tasks": twins})).refuses("task_of_batch");
    let both = json!([{"ref": "a", "title": "A"}, {"title": "B", "dependencies": ["a, #1"]}]);
    let reply = world.call("create_tasks_batch", json!({"tasks": both})).expect("created");
    let added = world.read(reply["task_ids"][1].as_str().expect("an id"));
    let after: Vec<_> = added.dependencies.iter().map(|id| id.as_str()).collect();
    assert_eq!(after, [reply["refs"]["a"].as_str().expect("an id"), ids[0]]);
}

#[test]
fn apply_batch_does_all_or_nothing_and_says_which_was_refused() {
    let mut world = World::new().agent("a1").task("t");
    let operations = json!([
        {"name": "create_task", "arguments": {"id": "u", "description": "x"}},
        {"name": "claim_task", "arguments": {"agent_id": "a1", "task_id": "t"}},
        {"name": "start_task", "arguments": {"agent_id": "a1", "task_id": "u"}},
    ]);
    let seq = world.state.seq();
    let message =
        world.nobody().call("apply_batch", json!({"operations": operations})).refuses("batch_item");
    assert!(
        message.contains("operations[2] (start_task)") && message.contains("task `u`"),
        "{message}"
    );
    assert_eq!((world.state.seq(), world.state.live_tasks()), (seq, 1));
    let mut good = operations;
    good[2]["arguments"]["task_id"] = json!("t");
    let reply = world.call("apply_batch", json!({"operations": good})).replies(json!({
        "applied": 3, "items_written": 3, "writes_saved": 2,
    }));
    assert_eq!(
        (&reply["results"][0]["task"]["id"], &reply["results"][2]["attempt"]),
        (&json!("u"), &json!(1))
    );
    assert_eq!(reply["results"][1]["agent_id"], "a1");
    assert_eq!(world.status("t"), TaskStatus::InProgress);
}

#[test]
fn a_batch_that_is_refused_keeps_no_late_result_and_says_so() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    world.nobody().call("cancel_task", json!({"task_id": "t"})).expect("cancelled");
    let late = json!({"task_id": "t", "agent_id": "a1", "output": "late"});
    let batch = json!({"operations": [{"name": "complete_task", "arguments": late}]});
    let message = world.call("apply_batch", batch).refuses("batch_item");
    assert!(
        message.contains("not taken; sent alone") && !message.contains("but kept"),
        "{message}"
    );
    assert!(world.attempt("t").late_result.is_none());
    world.call("complete_task", late).refuses("attempt_over");
    assert!(world.attempt("t").late_result.is_some());
}

#[test]
fn each_result_of_apply_batch_shows_what_that_operation_created() {
    let mut world = World::new().agent("a1");
    let create =
        |id: &str| json!({"name": "create_task", "arguments": {"id": id, "description": "x"}});
    let add = |content: &str| json!({"name": "add_discovery", "arguments": {"agent_id": "a1", "content": content}});
    let several =
        json!({"name": "create_tasks_batch", "arguments": {"tasks": [{"description": "x"}]}});
    let operations = json!([create("t"), create("u"), several, add("first"), add("second")]);
    let reply = world.call("apply_batch", json!({"operations": operations})).expect("applied");
    assert_eq!(reply["results"][0]["task"]["id"], "t");
    assert_eq!(reply["results"][1]["task"]["id"], "u");
    assert_eq!(reply["results"][2]["created"], 1);
    assert_eq!(reply["results"][4]["discovery"]["content"], "second");
}

#[test]
fn apply_batch_refuses_what_has_no_place_in_it() {
    let mut world = World::new();
    let seq = world.state.seq();
    let cases = [
        (json!({"name": "get_status"}), "not_in_batch"),
        (json!({"name": "apply_batch", "arguments": {"operations": []}}), "not_in_batch"),
        (json!({"name": "rm -rf"}), "bad_arguments"),
        (
            json!({"name": "create_task", "arguments": {"description": "x", "idempotency_key": "k"}}),
            "key_of_item",
        ),
    ];
    for (item, inner) in cases {
        let operations = json!([{"name": "create_task", "arguments": {"description": "x"}}, item]);
        let answer = world.call("apply_batch", json!({"operations": operations}));
        let refusal = answer.expect_err("refused");
        assert!(refusal.to_string().starts_with("operations[1] ("), "{refusal}");
        assert_eq!(serde_json::to_value(&refusal).expect("a refusal")["refusal"]["code"], inner);
    }
    let operations = json!([{"name": "create_task", "arguments": {"descriptio": "x"}}]);
    let misspelt = world.call("apply_batch", json!({"operations": operations}));
    let message = misspelt.refuses("bad_arguments");
    assert!(message.starts_with("operations[0].arguments.descriptio: "), "{message}");
    assert_eq!(world.state.seq(), seq);
}

#[test]
fn refused_batch_was_made_by_nobody_in_it() {
    let mut world = World::new().agent("a1");
    world.default_agent = DefaultAgent::Auto { prefix: "claude-main".to_owned() };
    let operations =
        json!([{"name": "start_task", "arguments": {"agent_id": "a1", "task_id": "nope"}}]);
    let executed = world.nobody().executed("apply_batch", json!({"operations": operations}));
    assert!(executed.answer.is_err());
    assert_eq!(executed.actor, None, "or the process would take `auto` for a1 from now on");
}

#[test]
fn repeated_apply_batch_does_nothing_and_tells_what_it_did() {
    let mut world = World::new().agent("a1").task("u").claimed("a1", "u");
    let operations = json!([
        {"name": "create_task", "arguments": {"id": "t", "description": "x"}},
        {"name": "complete_task", "arguments": {"agent_id": "a1", "task_id": "u", "output": "o"}},
        {"name": "add_discovery", "arguments": {"agent_id": "a1", "content": "c"}},
    ]);
    let batch = json!({"operations": operations, "idempotency_key": "k"});
    let first =
        world.call("apply_batch", batch.clone()).replies(json!({"applied": 3, "already": null}));
    let seq = world.state.seq();
    let found = &first["results"][2]["discovery"]["id"];
    let results = json!([{"created": ["t"]}, {"changed": "u"}, {"discovery": found}]);
    let again = json!({"applied": 3, "items_written": 0, "writes_saved": 0, "already": true, "results": results});
    world.call("apply_batch", batch).replies(again);
    assert_eq!(world.state.seq(), seq);
}

#[test]
fn events_are_paged_without_gap_or_repeat() {
    let mut world = World::new().agent("a1");
    for number in 0..23 {
        world.create(&format!("t{number}"), json!({}));
    }
    let (mut since, mut seen) = (0, Vec::new());
    loop {
        let reply =
            world.call("wait_for_events", json!({"since_seq": since, "limit": 4})).expect("a page");
        seen.extend(
            reply["events"].as_array().expect("events").iter().map(|event| event["seq"].as_u64()),
        );
        since = reply["next_seq"].as_u64().expect("a place");
        if reply["more"] == false {
            break;
        }
    }
    assert_eq!(seen, (1..=world.state.seq()).map(Some).collect::<Vec<_>>());
    let filtered = json!({"since_seq": 0, "kinds": ["tasks_created"], "task_id": "t7"});
    world
        .call("wait_for_events", filtered)
        .replies(json!({"events": [{"kind": "tasks_created"}], "more": false}));
}

#[test]
fn events_without_a_seq_are_those_since_the_call_came() {
    let mut world = World::new().agent("a1").task("t");
    let head = world.state.seq();
    let nothing_yet = json!({"events": [], "next_seq": head, "more": false, "next": null});
    let asked = json!({"wait_seconds": 50});
    for filter in [json!({}), json!({"kinds": ["tasks_created"]}), json!({"task_id": "t"})] {
        world.nobody().call("wait_for_events", filter).replies(nothing_yet.clone());
    }
    let waiting = world.prepared("wait_for_events", asked).expect("the arguments are good");
    assert!(world.waits_on(waiting.as_ref()));
    let unheard = world.answer(waiting.as_ref()).expect("an answer when the time is up");
    assert_eq!((&unheard["events"], &unheard["next_seq"]), (&json!([]), &json!(head)));
    for id in ["u", "v"] {
        world.create(id, json!({}));
        assert!(!world.waits_on(waiting.as_ref()));
    }
    let answer = world.answer(waiting.as_ref()).expect("an answer");
    let (seqs, last) = (numbers(&answer["events"], "seq"), world.state.seq());
    assert_eq!((seqs, &answer["next_seq"]), ((head + 1..=last).collect(), &json!(last)));
    let history = world.call("wait_for_events", json!({"since_seq": 0})).expect("a page");
    assert_eq!(numbers(&history["events"], "seq"), (1..=last).collect::<Vec<_>>());
}

fn numbers(entries: &Value, field: &str) -> Vec<u64> {
    let entries = entries.as_array().expect("a list").iter();
    entries.map(|entry| entry[field].as_u64().expect("a number")).collect()
}

#[test]
fn who_waits_for_events_looks_at_each_once_and_is_told_the_same() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    let asked = json!({"since_seq": 0, "kinds": ["failed"], "wait_seconds": 50});
    let waiting =
        world.nobody().prepared("wait_for_events", asked.clone()).expect("the arguments are good");
    for number in 0..9 {
        world.create(&format!("t{number}"), json!({}));
        assert!(world.waits_on(waiting.as_ref()));
    }
    assert_eq!(world.events_read(), world.state.seq());
    let answer = world.answer(waiting.as_ref()).expect("an answer when the time is up");
    assert_eq!(
        (&answer["events"], &answer["next_seq"]),
        (&json!([]), &json!(world.state.seq())),
        "{answer}"
    );
    world.by("a1").call("fail_task", json!({"task_id": "t", "error": "x"})).expect("failed");
    world.nobody().create("last", json!({}));
    assert!(!world.waits_on(waiting.as_ref()));
    let answer = world.answer(waiting.as_ref());
    assert_eq!(answer, world.call("wait_for_events", asked));
    assert_eq!(answer.expect("an answer")["events"][0]["kind"], "failed");
}

/// Some clients fill in every argument, and write null where they have no value.
#[test]
fn null_stands_for_an_argument_that_is_left_out() {
    let mut world = World::new().agent("a1");
    for entry in callboard::ops::all() {
        let schema = Value::Object(entry.input_schema(false));
        let mut arguments = sample(&schema);
        let read = |given: &Value| understand(entry, given.clone(), Reader::Program).map(drop);
        assert!(read(&arguments).is_ok(), "{}: {arguments}", entry.name);
        for (name, _) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = !arguments[name].is_null();
            let given = std::mem::replace(&mut arguments[name], Value::Null);
            let read = read(&arguments);
            assert_eq!(read.is_err(), is_required, "{}: {name} is null: {read:?}", entry.name);
            arguments[name] = given;
        }
    }
    let tasks = json!([{"description": "d", "priority": null, "tags": null, "demands": {"tags": null}, "id": "t"}]);
    world.call("create_tasks_batch", json!({"tasks": tasks})).replies(json!({"task_ids": ["t"]}));
    let missing = json!({"tasks": [{"description": null, "priority": null}]});
    assert!(
        world.call("create_tasks_batch", missing).refuses("bad_arguments").contains("description")
    );
    world.call("get_status", json!({"nothing": null})).expect("null says nothing");
    world.claim("a1", "t");
    let data = json!({"kept": null});
    let done = json!({"task_id": "t", "output": "o", "files_modified": null, "data": data});
    world.by("a1").call("complete_task", done).expect("it is done");
    let results = json!([{"status": "done", "result": {"data": data}}]);
    world
        .nobody()
        .call("get_results", json!({"task_ids": ["t"], "limit": null}))
        .replies(json!({"results": results}));
}

/// The required arguments according to the schema.
fn sample(schema: &Value) -> Value {
    let of = |name: &Value| {
        let name = name.as_str().expect("a name");
        (name.to_owned(), sample(&schema["properties"][name]))
    };
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("x"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .map(of)
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[test]
fn a_named_task_without_a_result_is_told_with_its_status() {
    let mut world = World::new().agent("a1").task("open").task("held").claimed("a1", "held");
    let wanted = json!([{"task_id": "open", "status": "available"}, {"task_id": "held", "status": "claimed"}]);
    world
        .call("get_results", json!({"task_ids": ["open", "held"]}))
        .replies(json!({"results": wanted}));
}

#[test]
fn a_page_after_what_has_retired_is_refused_and_says_so() {
    let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
    world.complete("a1", "t");
    for list in ["get_all_tasks", "get_results"] {
        world.call(list, json!({"after": "t"})).expect("a page");
    }
    world.policy.keep_finished = 0;
    world.at(SECOND);
    for list in ["get_all_tasks", "get_results"] {
        let message = world.call(list, json!({"after": "t"})).refuses("cursor_retired");
        assert!(
            message.contains("`t` has retired") && message.contains("without after"),
            "{message}"
        );
        world.call(list, json!({"after": "none"})).refuses("unknown_task");
    }
}

/// Most bytes that a model can read at once, with room for the reply around the events.
const READABLE: usize = 80 * 1024;

#[test]
fn large_events_end_the_page_and_are_told_in_brief() {
    let mut world = World::new().agent("a1");
    world.replays_seldom = true;
    let long = "x".repeat(2 * 1024);
    let drafts = (0..300)
        .map(|number| json!({"id": format!("t{number}"), "title": "brief", "description": long}));
    world
        .call("create_tasks_batch", json!({"tasks": drafts.collect::<Vec<_>>()}))
        .expect("a batch");
    for number in 0..40 {
        world.create(&format!("single{number}"), json!({"description": "y".repeat(3_000)}));
    }
    let data = (0..500)
        .map(|key| (key.to_string(), json!([[["z".repeat(90)]]])))
        .collect::<serde_json::Map<_, _>>();
    world.claim("a1", "single0");
    world
        .by("a1")
        .call(
            "complete_task",
            json!({"task_id": "single0", "output": "o".repeat(60_000), "data": data}),
        )
        .expect("done");
    world
        .nobody()
        .call("init_coordination", json!({"goal": "g", "master_plan": "p".repeat(200_000)}))
        .expect("set");
    let (mut since, mut seen) = (0, Vec::new());
    loop {
        let asked = json!({"since_seq": since, "limit": 1_000});
        let reply = world.call("wait_for_events", asked.clone()).expect("a page");
        assert!(reply.to_string().len() <= READABLE, "{} bytes", reply.to_string().len());
        let page = reply["events"].as_array().expect("events").clone();
        let history = world.call("get_history", asked).expect("a page");
        assert_eq!(history["events"], reply["events"]);
        seen.extend(page);
        since = reply["next_seq"].as_u64().expect("a place");
        assert_eq!(history["next"].as_u64(), (reply["more"] == true).then_some(since));
        if reply["more"] == false {
            break;
        }
    }
    let head = world.state.seq();
    let seqs = |events: &[Value]| -> Vec<_> {
        events.iter().filter_map(|event| event["seq"].as_u64()).collect()
    };
    assert_eq!(seqs(&seen), (1..=head).collect::<Vec<_>>());
    let of = |kind: &str| seen.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    let batch = of("tasks_created")[0];
    assert_eq!((&batch["shortened"], &batch["counts"]), (&json!(true), &json!({"tasks": 300})));
    assert_eq!(
        (&batch["tasks"][9]["id"], &batch["tasks"][9]["title"]),
        (&json!("t9"), &json!("brief"))
    );
    let single = of("tasks_created")[1];
    assert_eq!(
        (single["tasks"][0]["description"].as_str().map(str::len), single.get("shortened")),
        (Some(3_000), None)
    );
    for (kind, field) in [("completed", "result"), ("plan_set", "master_plan")] {
        assert!(
            of(kind).iter().any(|event| event["shortened"] == true && !event[field].is_null()),
            "{kind}"
        );
    }
    let (mut before, mut backwards) = (Value::Null, Vec::new());
    loop {
        let reply = world
            .call("get_history", json!({"before_seq": before, "limit": 1_000}))
            .expect("a page");
        assert!(reply.to_string().len() <= READABLE, "{} bytes", reply.to_string().len());
        backwards.extend(seqs(reply["events"].as_array().expect("events")));
        before = reply["next"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(backwards, (1..=head).rev().collect::<Vec<_>>());
}

#[test]
fn the_history_of_an_agent_has_what_was_done_to_it() {
    let mut world =
        World::new().agent("a1").agent("a2").agent("a3").task("t").task("other").claimed("a1", "t");
    world.at(1).by("a2").call("send_message", json!({"to": "a1", "text": "hear"})).expect("sent");
    world.call("send_message", json!({"to": "a3", "text": "not you"})).expect("sent");
    world
        .at(1)
        .nobody()
        .call("cancel_task", json!({"task_id": "t", "ask_owner": true}))
        .expect("asked");
    world.at(1).nobody().call("release_task", json!({"task_id": "t"})).expect("released");
    world.at(1).nobody().call("retry_task", json!({"task_id": "t"})).expect("available");
    world.claim("a1", "t");
    world.at(30 * MINUTE);
    world.claim("a3", "t");
    world.claim("a1", "other");
    world.at(1).nobody().call("cancel_task", json!({"task_id": "t"})).expect("cancelled");
    let mut of = |agent: &str| -> Vec<String> {
        let events = world
            .nobody()
            .call("get_history", json!({"agent": agent, "since_seq": 0}))
            .expect("a page");
        let events = events["events"].as_array().expect("events").iter();
        let done_to =
            events.filter(|event| event["actor"] != agent && event["kind"] != "agent_seen");
        done_to.map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    assert_eq!(
        of("a1"),
        ["message_sent", "stop_requested", "released", "cancelled", "lease_expired"]
    );
    assert_eq!(
        of("a3"),
        ["message_sent", "cancelled"],
        "and not the end of the attempt before its own"
    );
}
