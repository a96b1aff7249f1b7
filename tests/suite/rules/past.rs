//! The past: going back to an earlier state, hand edits, and differences between states.

use callboard::ops::{Fetched, hand_edit};
use callboard::state::diff::{Kind, diff};
use callboard::state::document::Document;
use callboard::state::edit::{Changed, Edit, TaskEdit};
use callboard::state::event::Event;
use callboard::state::id::{AgentId, ParticipantId, TaskId};
use callboard::state::policy::Policy;
use callboard::state::snapshot::SnapshotName;
use callboard::state::task::{Context, Outcome, TaskStatus};
use callboard::state::time::MINUTE;
use callboard::state::{Envelope, State};
use serde_json::json;

use super::super::world::{Answered, World};

/// A state in which `a1` holds `t1` and has done `t2`, and a world with later changes to undo.
fn before_and_after() -> (Document, World) {
    let mut world = World::new()
        .agent_with("lead", json!({"role": "leader"}))
        .agent("a1")
        .task("t1")
        .task("t2");
    // A restore also resets the agents' counters, which then differ from the history.
    world.replays_seldom = true;
    world.claim("a1", "t2");
    world.complete("a1", "t2");
    world.claim("a1", "t1");
    let then = world.state.to_document();
    world.at(MINUTE).by("a1").call("release_task", json!({"task_id": "t1"})).unwrap();
    let mut world = world.agent("a2").task("t3").task("t4");
    world.claim("a2", "t1");
    world.complete("a2", "t1");
    world.claim("a1", "t3");
    world
        .by("a1")
        .call("fail_task", json!({"task_id": "t3", "error": "e", "retryable": false}))
        .unwrap();
    (then, world)
}

fn restore(world: &mut World, then: &Document) {
    let before = SnapshotName::new(world.now, "0123abcd");
    world.fetched = Fetched::Earlier { document: Box::new(then.clone()), snapshot: None, before };
    let seq = then.board.seq;
    world
        .by("lead")
        .call("restore_snapshot", json!({"seq": seq}))
        .replies(json!({"restored_seq": seq}));
}

#[test]
fn restored_state_gives_no_lease_and_no_attempt_number_back() {
    let (then, mut world) = before_and_after();
    restore(&mut world, &then);
    let task = world.read("t1");
    assert_eq!((task.status, task.attempt, task.uncounted), (TaskStatus::Available, 2, 2));
    let released = task.attempts.last().unwrap();
    assert_eq!(
        (released.number, released.outcome, released.ended_at),
        (1, Some(Outcome::Released), Some(world.now))
    );
    assert!(world.state.task(&TaskId::trusted("t3")).is_none());
    // Of the tasks that are gone, only the one that had an attempt.
    let spent: Vec<_> = world
        .state
        .board()
        .spent_attempts
        .iter()
        .map(|(id, number)| (id.clone(), *number))
        .collect();
    assert_eq!(spent, [(TaskId::trusted("t3"), 1)]);
    world
        .by("a1")
        .call("claim_task", json!({"task_id": "t1"}))
        .replies(json!({"success": true, "attempt": 3}));
    world.create("t3", json!({}));
    world
        .by("a2")
        .call("claim_task", json!({"task_id": "t3"}))
        .replies(json!({"success": true, "attempt": 2}));
}

#[test]
fn restored_agents_are_who_they_are_and_have_done_what_they_had() {
    let (then, mut world) = before_and_after();
    restore(&mut world, &then);
    let counted = |id: &str| {
        let agent = world.state.agent(&AgentId::trusted(id)).unwrap();
        assert!(agent.current_tasks.is_empty() && agent.current_task.is_none());
        (agent.tasks_completed, agent.tasks_failed)
    };
    assert_eq!((counted("a1"), counted("a2")), ((1, 0), (0, 0)));
}

#[test]
fn restored_stub_of_a_retired_task_keeps_its_last_attempt() {
    let mut world = World::with_policy(Policy { keep_finished: 1, ..Policy::default() })
        .agent_with("lead", json!({"role": "leader"}))
        .agent("a1")
        .task("t1")
        .task("t2");
    world.replays_seldom = true;
    let mut then = None;
    for task in ["t1", "t2"] {
        world.claim("a1", task);
        world.complete("a1", task);
    }
    world.tick();
    let document = then.get_or_insert_with(|| world.state.to_document());
    assert_eq!(document.retired.keys().collect::<Vec<_>>(), [&TaskId::trusted("t1")]);
    // Makes it look as if the task had had fewer attempts then.
    document.retired.get_mut(&TaskId::trusted("t1")).unwrap().attempt = 0;
    let restored = world.state.restored(document, world.now);
    assert_eq!(restored.retired[&TaskId::trusted("t1")].attempt, 1);
    assert!(restored.board.spent_attempts.is_empty());
}

/// A board on which `a1` has done `t1` to `t6`, of which two are left as stubs.
fn with_dropped_stubs() -> World {
    let policy = Policy { keep_finished: 0, keep_stubs: 2, ..Policy::default() };
    let mut world =
        World::with_policy(policy).agent_with("lead", json!({"role": "leader"})).agent("a1");
    for task in ["t1", "t2", "t3", "t4", "t5", "t6"] {
        world = world.task(task);
        world.claim("a1", task);
        world.complete("a1", task);
        world.tick();
    }
    assert_eq!((world.state.retired().count(), world.state.board().dropped_stubs), (2, 4));
    world
}

#[test]
fn task_whose_stub_was_dropped_is_found_wherever_a_call_names_it() {
    let mut world = with_dropped_stubs();
    let read = |world: &mut World| {
        let shown = world.call("get_task", json!({"task_id": "t1"})).unwrap();
        assert_eq!((&shown["retired"], &shown["task"]["status"]), (&json!(true), &json!("done")));
        let results = world.call("get_results", json!({"task_ids": ["t2", "t1"]})).unwrap();
        assert_eq!(results["results"][1]["task_id"], "t1");
    };
    read(&mut world);
    let again = json!({"task_id": "t1", "output": "made"});
    world.by("a1").call("complete_task", again).replies(json!({"already": true}));
    world.call("create_task", json!({"id": "t2", "description": "another"})).refuses("task_exists");
    let refused = world.by("a1").call("start_task", json!({"task_id": "t3"}));
    assert!(refused.refuses("wrong_status").contains("retired"));
    world
        .call("create_task", json!({"id": "next", "description": "d", "dependencies": ["t4"]}))
        .unwrap();
    world.by("a1").call("add_discovery", json!({"content": "c", "task_id": "t1"})).unwrap();
    world.call("get_task", json!({"task_id": "t0"})).refuses("unknown_task");
    read(&mut world);
}

#[test]
fn stub_that_a_live_task_depends_on_stays() {
    let mut world = with_dropped_stubs();
    world
        .call("create_task", json!({"id": "next", "description": "d", "dependencies": ["t1"]}))
        .unwrap();
    for task in ["t7", "t8", "t9"] {
        world = world.task(task);
        world.claim("a1", task);
        world.complete("a1", task);
        world.tick();
    }
    assert!(world.state.retired_task(&TaskId::trusted("t1")).is_some());
    assert!(world.state.retired_task(&TaskId::trusted("t7")).is_none());
    world.claim("a1", "next");
}

#[test]
fn restore_knows_the_attempts_of_tasks_whose_stubs_were_dropped() {
    let policy = Policy { keep_finished: 0, keep_stubs: 0, ..Policy::default() };
    let mut world = World::with_policy(policy)
        .agent_with("lead", json!({"role": "leader"}))
        .agent("a1")
        .task("t1");
    world.replays_seldom = true;
    let then = world.state.to_document();
    world.claim("a1", "t1");
    world.complete("a1", "t1");
    world.tick();
    assert_eq!((world.state.retired().count(), world.state.board().dropped_stubs), (0, 1));
    world.fetched = Fetched::Earlier {
        document: Box::new(then),
        snapshot: None,
        before: SnapshotName::new(world.now, "0123abcd"),
    };
    world.by("lead").call("restore_snapshot", json!({"snapshot": "latest"})).unwrap();
    assert_eq!(world.read("t1").attempt, 1, "the next attempt is the second");
    assert_eq!(world.state.board().dropped_stubs, 0);
}

fn envelope(world: &World) -> Envelope {
    let participant = ParticipantId::trusted("p-edit");
    Envelope { at: world.now, participant, actor: None, idempotency: None }
}

/// Adopting a state can be undone as long as it is not durable.
fn taken_over_and_back(state: &mut State, event: Event, envelope: &Envelope) -> Document {
    let (before, savepoint) = (state.to_document(), state.savepoint());
    state.record(event, envelope).unwrap();
    let after = state.to_document();
    assert_eq!(state.check(), [""; 0]);
    state.rollback(savepoint);
    assert_eq!((state.to_document(), state.check()), (before, Vec::new()));
    after
}

#[test]
fn restore_that_was_not_durable_is_taken_back_with_what_came_before_it() {
    let (then, world) = before_and_after();
    let mut state = world.state.clone();
    let start = state.to_document();
    let savepoint = state.savepoint();
    state.record(Event::Paused { reason: None }, &envelope(&world)).unwrap();
    let document = Box::new(state.restored(&then, world.now));
    let event = Event::StateRestored { restored_seq: then.board.seq, snapshot: None, document };
    let after = taken_over_and_back(&mut state, event, &envelope(&world));
    assert_eq!(after.tasks.len(), 2);
    assert_eq!(after.board.seq, start.board.seq + 2);
    state.rollback(savepoint);
    assert_eq!(state.to_document(), start);
}

fn untouched(id: &str) -> TaskEdit {
    let id = TaskId::trusted(id);
    TaskEdit {
        id,
        title: None,
        description: None,
        priority: None,
        dependencies: None,
        context: None,
        tags: None,
    }
}

#[test]
fn edit_by_hand_takes_titles_and_contexts_away_and_leaves_others() {
    let fields = json!({"title": "old", "hints": "look"});
    let world = World::new()
        .task_with("t1", fields.clone())
        .task_with("t2", fields.clone())
        .task_with("t3", fields);
    let title = |to: Option<&str>| {
        Some(Changed { from: Some("old".to_owned()), to: to.map(str::to_owned) })
    };
    let hints = world.read("t1").context.unwrap();
    let edit = Edit {
        base_seq: world.state.seq(),
        tasks: vec![
            TaskEdit { title: title(None), ..untouched("t1") },
            TaskEdit { title: title(Some("new")), ..untouched("t2") },
            TaskEdit {
                context: Some(Changed { from: Context::clone(&hints), to: Context::default() }),
                ..untouched("t3")
            },
        ],
        ..Edit::default()
    };
    let event = hand_edit::decide(&edit, &world.state).unwrap().unwrap();
    let after = taken_over_and_back(&mut world.state.clone(), event, &envelope(&world));
    let titles: Vec<_> = after.tasks.iter().map(|task| task.title.as_deref()).collect();
    assert_eq!(titles, [None, Some("new"), Some("old")]);
    let contexts: Vec<_> = after.tasks.iter().map(|task| task.context.is_some()).collect();
    assert_eq!(contexts, [true, true, false]);
}

#[test]
fn edit_is_empty_only_if_nothing_is_in_it() {
    let changed = || Some(Changed { from: String::new(), to: "g".to_owned() });
    assert!(Edit::default().is_empty());
    assert!(!Edit { goal: changed(), ..Edit::default() }.is_empty());
    assert!(!Edit { master_plan: changed(), ..Edit::default() }.is_empty());
    assert!(!Edit { tasks: vec![untouched("t")], ..Edit::default() }.is_empty());
}

#[test]
fn difference_names_every_entity_and_field_that_is_another() {
    let (then, world) = before_and_after();
    let told: Vec<_> = diff(&then, &world.state.to_document())
        .into_iter()
        .map(|change| (change.table, change.id, change.kind.as_str(), change.fields.join(" ")))
        .collect();
    let told: Vec<_> = told
        .iter()
        .map(|(table, id, kind, fields)| (*table, id.as_str(), *kind, fields.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("board", "", "changed", "seq last_activity next_number"),
            (
                "tasks",
                "t1",
                "changed",
                "status claimed_by result claimed_at completed_at attempt uncounted attempts"
            ),
            ("tasks", "t3", "added", ""),
            ("tasks", "t4", "added", ""),
            ("agents", "a1", "changed", "last_heartbeat current_task tasks_failed current_tasks"),
            ("agents", "a2", "added", ""),
        ]
    );
    assert_eq!(diff(&then, &then), []);
    let back = diff(&world.state.to_document(), &then);
    assert_eq!(back.iter().filter(|change| change.kind == Kind::Removed).count(), 3);
}

#[test]
fn reason_of_a_cancellation_is_kept() {
    let mut world = World::new().task("t").agent_with("lead", json!({"role": "leader"}));
    world.by("lead").call("cancel_task", json!({"task_id": "t", "reason": "not needed"})).unwrap();
    assert_eq!(world.read("t").result.unwrap().error.as_deref(), Some("not needed"));
}

#[test]
fn pages_hold_every_task_once() {
    let mut world = World::new().task("t1").task("t2").task("t3");
    let (mut seen, mut after) = (Vec::new(), json!(null));
    loop {
        let page = world.call("get_all_tasks", json!({"limit": 1, "after": after})).unwrap();
        seen.extend(
            page["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].as_str().unwrap().to_owned()),
        );
        after = page["next"].clone();
        if after.is_null() || seen.len() > 3 {
            break;
        }
    }
    assert_eq!(seen, ["t1", "t2", "t3"]);
}
