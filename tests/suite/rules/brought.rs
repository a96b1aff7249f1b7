//! What an import brings beside tasks, from another board.

use callboard::state::event::Event;
use callboard::state::id::{AgentId, DiscoveryId, TaskId};
use callboard::state::task::{Outcome, TaskStatus};
use serde_json::{Value, json};

use super::super::world::{Answered, World};

fn board() -> Value {
    let at = |minute: u32| format!("2026-02-01T10:{minute:02}:00.000Z");
    json!({
        "goal": "Ship it", "master_plan": "First this, then that.",
        "metadata": {"other": {"audit_log": [{"event": "created"}]}},
        "agents": [
            {"id": "w1", "capabilities": ["rust"], "tasks_completed": 4, "tasks_failed": 1, "last_heartbeat": at(30)},
            {"id": "boss", "role": "leader", "max_concurrent": 2, "project_dir": "/srv/p"},
        ],
        "discoveries": [
            {"id": "d-1", "agent_id": "w1", "content": "The port is taken", "tags": ["net"], "created_at": at(5),
                "task_id": "done-1"},
        ],
        "items": [
            {"title": "Group", "task_id": "g", "past": {"created_at": at(0), "completed_at": at(20)}, "items": [
                {"title": "Done", "task_id": "done-1", "status": "Complete", "estimated_minutes": 20, "past": {
                    "created_at": at(0), "claimed_by": "w1", "claimed_at": at(1), "started_at": at(2),
                    "completed_at": at(20), "attempt": 2,
                    "result": {"output": "made", "files_created": ["a.rs"]},
                    "attempts": [{"number": 2, "agent": "w1", "claimed_at": at(1), "ended_at": at(20),
                        "outcome": "done"}]}},
            ]},
            {"title": "Failed", "task_id": "failed-1", "status": "Failed", "max_attempts": 5, "timeout_seconds": 900,
                "demands": {"capabilities": ["rust"]}, "past": {"attempt": 1, "completed_at": at(9),
                    "result": {"error": "no network"}, "attempts": [{"number": 1, "agent": "w2", "outcome": "failed",
                    "claimed_at": at(3), "ended_at": at(9), "error": {"category": "timeout", "message": "no network"}}]}},
            {"title": "Held", "task_id": "held-1", "past": {"attempt": 1, "uncounted": 1, "attempts": [{"number": 1,
                "agent": "w2", "outcome": "released", "claimed_at": at(3), "note": "half of it"}]}},
        ],
    })
}

fn import(world: &mut World, board: &Value) -> Value {
    world.nobody().call("import_plan", json!({"text": board.to_string()})).expect("imported")
}

#[test]
fn a_board_comes_with_its_agents_discoveries_and_results_in_one_event() {
    let mut world = World::new();
    let before = world.state.seq();
    let reply = import(&mut world, &board());
    assert_eq!(reply["brought"], json!({"agents": 2, "discoveries": 1, "tasks": 4, "results": 2}));
    assert_eq!(world.state.seq(), before + 1);
    assert_eq!(
        (&*world.state.board().goal, &*world.state.board().master_plan),
        ("Ship it", "First this, then that.")
    );
    let agent = world.state.agent(&AgentId::trusted("w1")).expect("known");
    assert_eq!((agent.tasks_completed, agent.tasks_failed, agent.is_present()), (4, 1, false));
    assert!(agent.capabilities.contains("rust"));
    let discovery = world.state.discovery(&DiscoveryId::trusted("d-1")).expect("there");
    assert_eq!(discovery.task_id, Some(TaskId::trusted("done-1")));
    let done = world.read("done-1");
    assert_eq!((done.status, done.attempt, done.attempts.len()), (TaskStatus::Done, 2, 1));
    assert_eq!(done.completed_at.expect("known").to_string(), "2026-02-01T10:20:00.000Z");
    assert_eq!(done.result.expect("kept").files_created, ["a.rs"]);
    let group = world.read("g");
    assert_eq!(
        (group.status, group.completed_at),
        (TaskStatus::Done, world.read("done-1").completed_at)
    );
    let failed = world.read("failed-1");
    assert_eq!(
        (failed.status, failed.max_attempts, failed.timeout_seconds),
        (TaskStatus::Failed, 5, Some(900))
    );
    assert_eq!(failed.result.expect("kept").error.as_deref(), Some("no network"));
    assert_eq!(world.attempt("failed-1").error.expect("kept").category, "timeout");
    let held = world.read("held-1");
    assert_eq!((held.status, held.attempts_used()), (TaskStatus::Available, 0));
    assert_eq!(world.attempt("held-1").outcome, Some(Outcome::Released));
    world
        .nobody()
        .call("get_task", json!({"task_id": "done-1"}))
        .replies(json!({"actual_minutes": 19}));
    let plans = world.nobody().call("get_master_plan", json!({})).expect("read");
    assert_eq!(plans["plans"][0]["metadata"]["other"]["audit_log"][0]["event"], "created");
}

#[test]
fn an_attempt_goes_on_where_the_other_board_left_it() {
    let mut world = World::new().agent("a1");
    import(&mut world, &board());
    let claim = world.claim("a1", "held-1");
    assert_eq!(
        (&claim["attempt"], &claim["handoff"]["last_attempt"]["agent"]),
        (&json!(2), &json!("w2"))
    );
}

#[test]
fn a_second_import_brings_nothing_that_is_there() {
    let mut world = World::new();
    import(&mut world, &board());
    let seq = world.state.seq();
    assert_eq!(import(&mut world, &board())["unchanged"], true);
    let mut more = board();
    more["goal"] = json!("Another goal");
    more["agents"][0]["tasks_completed"] = json!(9);
    more["discoveries"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"id": "d-2", "agent_id": "w1", "content": "new"}));
    let reply = import(&mut world, &more);
    assert_eq!(reply["brought"], json!({"agents": 0, "discoveries": 1, "tasks": 0, "results": 0}));
    assert_eq!((world.state.seq(), &*world.state.board().goal), (seq + 1, "Ship it"));
    assert_eq!(world.state.agent(&AgentId::trusted("w1")).expect("known").tasks_completed, 4);
}

#[test]
fn an_id_that_another_task_has_is_not_taken() {
    let mut world = World::new().task("done-1");
    import(&mut world, &board());
    assert_eq!(world.status("done-1"), TaskStatus::Available);
    let discovery = world.state.discovery(&DiscoveryId::trusted("d-1")).expect("there");
    let made = discovery.task_id.clone().expect("that of the item");
    assert_eq!((made.as_str() == "done-1", world.status(made.as_str())), (false, TaskStatus::Done));
}

#[test]
fn a_bad_value_is_refused_whole_and_named_with_its_line() {
    let wrong: [(&str, Value, &str); 11] = [
        ("/agents/0/id", json!("a b"), "agents"),
        ("/agents/1/role", json!("king"), "king"),
        ("/agents/1/id", json!("w1"), "w1 is there twice"),
        ("/agents/1/max_concurrent", json!(0), "max_concurrent"),
        ("/discoveries/0/content", json!(""), "discoveries"),
        ("/discoveries/0/created_at", json!("yesterday"), "discoveries"),
        ("/items/1/past/attempts/0/number", json!(3), "attempt 3"),
        ("/items/1/past/result/error", json!(7), "past"),
        ("/items/1/max_attempts", json!(0), "max_attempts"),
        ("/items/2/past/uncounted", json!(2), "uncounted"),
        ("/items/2/task_id", json!("a/b"), "task id"),
    ];
    for (at, value, named) in wrong {
        let mut world = World::new();
        let mut board = board();
        *board.pointer_mut(at).expect("it is there") = value;
        let text = serde_json::to_string_pretty(&board).expect("JSON");
        let refusal =
            world.nobody().call("import_plan", json!({"text": text})).expect_err("refused");
        let told = refusal.to_string();
        assert!(told.contains(named) && told.contains("line "), "{at}: {told}");
        assert_eq!((world.state.live_tasks(), world.state.agents().count()), (0, 0), "{at}");
    }
}

#[test]
fn what_is_brought_needs_a_build_that_reads_it() {
    let mut world = World::new();
    import(&mut world, &json!({"items": [{"title": "a"}]}));
    let level = |world: &World| world.level_of("plan_imported");
    assert_eq!(level(&world), 1);
    import(&mut world, &board());
    assert_eq!(level(&world), 3);
    let event = Event::PlanSet { goal: "g".to_owned(), master_plan: None };
    assert_eq!(event.level(), 1);
}
