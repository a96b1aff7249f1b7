//! `State::check` finds every inconsistency of a state; all other tests rely on it.

use std::sync::Arc;

use callboard::state::State;
use callboard::state::document::Document;
use callboard::state::id::{AgentId, ParticipantId, TaskId};
use callboard::state::policy::Policy;
use callboard::state::task::{Outcome, Task};
use serde_json::{Value, json};

use super::super::world::World;

/// A state in which `a1` holds `held` and nobody `free`; `early` is done and `earlier` has retired.
fn sound() -> Document {
    let policy = Policy { keep_finished: 1, ..Policy::default() };
    let mut world =
        World::with_policy(policy).agent("a1").agent("a2").task("earlier").task("early");
    for task in ["earlier", "early"] {
        world.claim("a1", task);
        world.complete("a1", task);
    }
    let mut world = world.task("held").task("free").claimed("a1", "held");
    world.tick();
    world.state.to_document()
}

fn altered(document: &mut Document, task: usize) -> &mut Task {
    Arc::make_mut(&mut document.tasks[task])
}

#[test]
fn broken_invariant_is_named() {
    let task = |document: &Document, id: &str| {
        document.tasks.iter().position(|task| task.id.as_str() == id).unwrap()
    };
    type Break = fn(&mut Document, usize, usize);
    let broken: [(&str, Break); 11] = [
        ("current_task is not the newest", |document, _, _| {
            document.agents.get_mut(&AgentId::trusted("a1")).unwrap().current_task = None;
        }),
        ("is present through p-gone, which is not there", |document, _, _| {
            let agent = document.agents.get_mut(&AgentId::trusted("a2")).unwrap();
            agent.present_through.insert(ParticipantId::trusted("p-gone"));
        }),
        ("with 0 open attempts", |document, held, _| {
            altered(document, held).attempts[0].outcome = Some(Outcome::Released);
        }),
        ("with 1 open attempts", |document, held, free| {
            let attempts = document.tasks[held].attempts.clone();
            altered(document, free).attempts = attempts;
        }),
        ("and listed by [a1, a2]", |document, _, _| {
            let agent = document.agents.get_mut(&AgentId::trusted("a2")).unwrap();
            agent.current_tasks.push(TaskId::trusted("held"));
            agent.current_task = Some(TaskId::trusted("held"));
        }),
        ("and listed by []", |document, _, _| {
            let agent = document.agents.get_mut(&AgentId::trusted("a1")).unwrap();
            agent.current_tasks.clear();
            agent.current_task = None;
        }),
        ("the open attempt is not attempt 2", |document, held, _| {
            altered(document, held).attempt = 2
        }),
        ("claimed_by is not the holder", |document, held, _| {
            altered(document, held).claimed_by = Some(AgentId::trusted("a2"));
        }),
        ("which does not exist", |document, _, free| {
            altered(document, free).dependencies.push(TaskId::trusted("nowhere"));
        }),
        ("cycle", |document, held, free| {
            altered(document, held).dependencies.push(TaskId::trusted("free"));
            altered(document, free).dependencies.push(TaskId::trusted("held"));
        }),
        ("stubs, and", |document, _, _| document.board.archived.done += 1),
    ];
    let sound = sound();
    assert_eq!((State::from_document(sound.clone()).check(), sound.retired.len()), (Vec::new(), 1));
    for (named, break_it) in broken {
        let mut document = sound.clone();
        break_it(&mut document, task(&sound, "held"), task(&sound, "free"));
        let wrong = State::from_document(document).check();
        assert!(wrong.iter().any(|one| one.contains(named)), "{named}: {wrong:?}");
    }
}

#[test]
fn agent_that_lists_a_task_that_is_nowhere_is_named() {
    let mut document = sound();
    let agent = document.agents.get_mut(&AgentId::trusted("a2")).unwrap();
    agent.current_tasks.push(TaskId::trusted("nowhere"));
    agent.current_task = Some(TaskId::trusted("nowhere"));
    let wrong = State::from_document(document).check();
    assert_eq!(wrong, ["task nowhere is listed by an agent and does not exist"]);
}

/// A state with a task that has a part held by `a1`, and one of everything else.
fn rich() -> Value {
    let mut world = World::new().agent("a1").agent("a2");
    let task = |id: &str, path: &str| json!({"id": id, "description": id, "path": path});
    let tasks = json!({"tasks": [task("whole", "P1"), task("part", "P1.M1")]});
    world.nobody().call("create_tasks_batch", tasks).expect("created");
    world.claim("a1", "part");
    let calls = [
        ("reserve_files", json!({"files": ["a.rs"], "minutes": 5})),
        ("send_message", json!({"to": "a2", "text": "look"})),
        ("add_discovery", json!({"content": "it is slow"})),
        ("save_checkpoint", json!({"workflow_id": "w", "state": {}})),
    ];
    for (operation, arguments) in calls {
        world.by("a1").call(operation, arguments).expect(operation);
    }
    world
        .nobody()
        .call("create_run", json!({"session_id": "s", "prompt": "do it"}))
        .expect("created");
    serde_json::to_value(world.state.to_document()).unwrap()
}

fn twice(list: &mut Value) {
    let list = list.as_array_mut().unwrap();
    list.push(list[0].clone());
}

fn first(map: &mut Value) -> &mut Value {
    map.as_object_mut().unwrap().values_mut().next().unwrap()
}

#[test]
fn broken_invariant_of_what_stands_beside_the_tasks_is_named() {
    type Break = fn(&mut Value);
    let broken: [(&str, Break); 16] = [
        ("part of nowhere, which does not exist", |all| {
            all["tasks"][1]["parent"] = json!("nowhere")
        }),
        ("whole is part of itself", |all| all["tasks"][0]["parent"] = json!("part")),
        ("whole is failed and its parts say available", |all| {
            all["tasks"][0]["status"] = json!("failed")
        }),
        ("is unread by somebody it was not sent to", |all| {
            all["messages"][0]["unread_by"] = json!(["a1"])
        }),
        ("waits for ghost, who is not there", |all| {
            all["messages"][0]["unread_by"] = json!(["a2", "ghost"])
        }),
        ("is there twice", |all| twice(&mut all["messages"])),
        ("is there twice", |all| twice(&mut all["discoveries"])),
        ("is there twice", |all| twice(&mut all["reservations"])),
        ("belongs to a claim that is not a1's", |all| {
            all["reservations"][0]["task"] = json!("whole")
        }),
        ("never ends", |all| {
            let reservation = &mut all["reservations"][0];
            (reservation["task"], reservation["until"]) = (Value::Null, Value::Null);
        }),
        ("has a parent that does not exist", |all| {
            first(&mut all["sessions"])["parent_session_id"] = json!("none")
        }),
        ("names a run that does not exist", |all| {
            first(&mut all["sessions"])["last_run"] = json!("none")
        }),
        ("is of a session that does not exist", |all| {
            all["tasks"][2]["run"]["session_id"] = json!("none")
        }),
        ("has a place among tasks", |all| all["tasks"][2]["path"] = json!("P1.M2")),
        ("workflow w has another id inside", |all| first(&mut all["workflows"])["id"] = json!("v")),
        ("is number 9 of w", |all| first(&mut all["checkpoints"])["number"] = json!(9)),
    ];
    let check =
        |all: &Value| State::from_document(serde_json::from_value(all.clone()).unwrap()).check();
    let sound = rich();
    assert_eq!(check(&sound), Vec::<String>::new());
    for (named, break_it) in broken {
        let mut all = sound.clone();
        break_it(&mut all);
        let wrong = check(&all);
        assert!(wrong.iter().any(|one| one.contains(named)), "{named}: {wrong:?}");
    }
}
