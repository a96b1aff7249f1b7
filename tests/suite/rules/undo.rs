//! What one command changed is taken back, as far as nobody changed it since.

use callboard::ops::Fetched;
use callboard::state::State;
use callboard::state::task::{Task, TaskStatus};
use callboard::state::undo::Command;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::world::World;

fn board() -> World {
    World::new().agent("a1").agent("a2").task("t1").task("t2").task("t3")
}

/// Makes the person's call, and keeps what is needed to undo it.
fn command(world: &mut World, operation: &'static str, arguments: Value) -> Box<Command> {
    let before = world.state.clone();
    world.nobody().call(operation, arguments).expect("the command is allowed");
    let events = world.since(before.seq());
    Box::new(Command { before, after: world.state.clone(), events })
}

fn undo(world: &mut World, command: Box<Command>) -> Result<Value, String> {
    let seq = command.last();
    world.fetched = Fetched::Command(command);
    world.nobody().call("undo", json!({"seq": seq})).map_err(|refusal| refusal.to_string())
}

fn left(reply: &Value) -> Vec<&str> {
    reply["left"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn cancelled_tasks_are_available_again_and_created_ones_cancelled() {
    let mut world = board().claimed("a1", "t2");
    let cancel = json!({"operations": [
        {"name": "cancel_task", "arguments": {"task_id": "t1"}},
        {"name": "cancel_task", "arguments": {"task_id": "t2"}},
    ]});
    let cancelled = command(&mut world, "apply_batch", cancel);
    let reply = undo(&mut world, cancelled).expect("undone");
    assert_eq!(left(&reply), [] as [&str; 0]);
    assert_eq!(world.status("t1"), TaskStatus::Available);
    assert_eq!(world.status("t2"), TaskStatus::Available, "its agent was stopped");
    let added = command(
        &mut world,
        "create_tasks_batch",
        json!({"tasks": [
            {"id": "n1", "description": "new"}, {"id": "n2", "description": "new"},
        ]}),
    );
    world.claim("a2", "n2");
    let seq = added.last();
    world.fetched = Fetched::Command(added.clone());
    let would = world.nobody().call("undo", json!({"seq": seq, "dry_run": true})).expect("said");
    assert_eq!((left(&would), &would["events"]), (vec!["n2 is claimed by now"], &json!(0)));
    assert_eq!(world.status("n1"), TaskStatus::Available, "nothing is changed");
    let reply = undo(&mut world, added).expect("undone in part");
    assert_eq!(left(&reply), ["n2 is claimed by now"]);
    assert_eq!(world.status("n1"), TaskStatus::Cancelled);
    assert_eq!(world.status("n2"), TaskStatus::Claimed);
}

#[test]
fn fields_that_others_changed_since_stay() {
    let mut world = board();
    let edit = json!({"task_id": "t1", "title": "Mine", "priority": 1, "hints": "look",
        "dependencies": ["t2"], "tags": ["a"], "review": "required", "estimated_minutes": 5});
    let edited = command(&mut world, "update_task", edit);
    world.nobody().call("update_task", json!({"task_id": "t1", "tags": ["b"]})).expect("allowed");
    let reply = undo(&mut world, edited.clone()).expect("undone in part");
    assert_eq!(left(&reply), ["t1 keeps what was changed since or is in use: tags"]);
    let task = world.read("t1");
    assert_eq!((task.title.as_deref(), task.priority, task.tags), (None, 5, vec!["b".to_owned()]));
    assert!(task.dependencies.is_empty() && task.context.is_none() && task.review.is_none());
    assert_eq!(task.estimated_minutes, None);
    let again = undo(&mut world, edited).expect_err("nothing is left of it");
    assert!(again.contains("tags"), "{again}");
}

#[test]
fn a_dependency_that_would_close_a_circle_is_not_brought_back() {
    let mut world = board();
    world
        .nobody()
        .call("update_task", json!({"task_id": "t1", "dependencies": ["t2"]}))
        .expect("ok");
    let freed =
        command(&mut world, "update_task", json!({"task_id": "t1", "clear": ["dependencies"]}));
    world
        .nobody()
        .call("update_task", json!({"task_id": "t2", "dependencies": ["t1"]}))
        .expect("ok");
    let refused = undo(&mut world, freed).expect_err("nothing can be undone");
    assert!(refused.contains("t1 keeps its dependencies"), "{refused}");
    assert_eq!(world.state.check(), Vec::<String>::new());
}

#[test]
fn pauses_and_assignments_are_as_before() {
    let mut world = board();
    let paused = command(&mut world, "pause", json!({"reason": "lunch"}));
    undo(&mut world, paused).expect("undone");
    assert!(world.state.board().paused.is_none());
    world.nobody().call("pause", json!({"reason": "night"})).expect("paused");
    let resumed = command(&mut world, "resume", json!({}));
    undo(&mut world, resumed).expect("undone");
    let reason = |world: &World| world.state.board().paused.as_ref()?.reason.clone();
    assert_eq!(reason(&world).as_deref(), Some("night"));
    world.nobody().call("resume", json!({})).expect("resumed");
    let stopped = command(&mut world, "stop_agent", json!({"agent": "a1", "reason": "no"}));
    undo(&mut world, stopped).expect("undone");
    world.claim("a1", "t3");
    let kept = command(&mut world, "assign_task", json!({"task_id": "t1", "to": "a2"}));
    undo(&mut world, kept).expect("undone");
    assert!(world.read("t1").kept_for.is_none());
    let kept = command(&mut world, "assign_task", json!({"task_id": "t2", "to": "a2"}));
    world.claim("a2", "t2");
    let refused = undo(&mut world, kept).expect_err("it was taken");
    assert!(refused.contains("t2 was assigned or taken since"), "{refused}");
}

#[test]
fn what_cannot_be_taken_back_is_listed_with_what_can_be_done() {
    let mut world = board();
    world.claim("a1", "t1");
    world
        .by("a1")
        .call("fail_task", json!({"task_id": "t1", "error": "no", "retryable": false}))
        .expect("failed");
    let retried = command(&mut world, "retry_task", json!({"task_id": "t1"}));
    let refused = undo(&mut world, retried).expect_err("it has begun anew");
    assert!(refused.contains("t1 stays available; `cancel`"), "{refused}");
    let worker =
        world.by("a1").call("undo", json!({"seq": 1})).expect_err("a worker does not lead");
    assert!(worker.to_string().contains("leader"), "{worker}");
}

/// The person's commands that can be undone whole, while nobody else acts.
fn reversible() -> impl Strategy<Value = (&'static str, Value)> {
    let id = prop::sample::select(vec!["t1", "t2", "t3"]);
    let name = "[a-z]{1,6}";
    prop_oneof![
        (id.clone(), 1..=10_i64, name).prop_map(|(id, priority, title)| {
            ("update_task", json!({"task_id": id, "priority": priority, "title": title}))
        }),
        (id.clone(), prop::collection::btree_set("[a-c]", 0..3)).prop_map(|(id, tags)| {
            ("update_task", json!({"task_id": id, "tags": tags, "hints": "h"}))
        }),
        id.clone().prop_map(|id| ("cancel_task", json!({"task_id": id}))),
        id.prop_map(|id| ("assign_task", json!({"task_id": id, "to": "a1"}))),
        name.prop_map(|reason| ("pause", json!({"reason": reason}))),
        Just(("resume", json!({}))),
        Just(("pause", json!({"agents": ["a1", "a2"]}))),
        name.prop_map(|goal| ("init_coordination", json!({"goal": goal}))),
        Just(("create_task", json!({"description": "more"}))),
    ]
}

/// What a person sees of the board, without times and numbers of attempts.
fn seen(state: &State) -> Value {
    let task = |task: &Task| {
        json!([
            task.id,
            task.title,
            task.description,
            task.priority,
            task.dependencies,
            task.context,
            task.tags,
            task.kept_for,
            task.status
        ])
    };
    let open = state.tasks().filter(|task| task.status != TaskStatus::Cancelled);
    let tasks: Vec<_> = open.map(|one| task(one)).collect();
    let paused: Vec<_> = state
        .agents()
        .map(|agent| {
            json!([agent.id, agent.paused.as_ref().map(|pause| (&pause.reason, pause.stop))])
        })
        .collect();
    let board = state.board();
    let pause = board.paused.as_ref().map(|pause| &pause.reason);
    json!({"tasks": tasks, "agents": paused, "goal": board.goal, "pause": pause})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Commands are undone one after the other, the last first, and each step is as it was.
    #[test]
    fn undone_commands_leave_the_board_as_it_was(steps in prop::collection::vec(reversible(), 1..8)) {
        let mut world = board();
        let mut done = Vec::new();
        for (operation, arguments) in steps {
            let before = world.state.clone();
            if world.nobody().call(operation, arguments).is_ok() && world.state.seq() > before.seq() {
                let events = world.since(before.seq());
                done.push(Box::new(Command { before, after: world.state.clone(), events }));
            }
        }
        for command in done.into_iter().rev() {
            let was = seen(&command.before);
            match undo(&mut world, command) {
                Ok(reply) => prop_assert_eq!(left(&reply), Vec::<&str>::new()),
                Err(refused) => prop_assert!(refused.contains("everything is as it was"), "{}", refused),
            }
            prop_assert_eq!(seen(&world.state), was);
            assert_eq!(world.state.check(), Vec::<String>::new());
        }
    }
}

/// A board with a result of a1 that waits for review, and a task that depends on it.
fn in_review() -> World {
    let mut world = World::new().agent("a1").agent("a2");
    let mut add = |task: Value| world.nobody().call("create_task", task).expect("created");
    add(json!({"id": "p", "description": "part of it"}));
    add(json!({"id": "t1", "description": "work", "review": "required"}));
    add(json!({"id": "after", "description": "later", "dependencies": ["t1"]}));
    world.claim("a1", "t1");
    let done = json!({"task_id": "t1", "output": "made", "branch": "work/t1"});
    world.by("a1").call("complete_task", done).expect("completed");
    assert_eq!(world.status("t1"), TaskStatus::Review);
    world
}

#[test]
fn a_review_is_taken_back_while_nobody_has_built_on_it() {
    for (operation, arguments) in [
        ("approve_task", json!({"task_id": "t1"})),
        ("reject_task", json!({"task_id": "t1", "reason": "no tests"})),
    ] {
        let mut world = in_review();
        let before = world.read("t1");
        let done = world.state.agent(&"a1".into()).expect("there").tasks_completed;
        let reviewed = command(&mut world, operation, arguments.clone());
        undo(&mut world, reviewed.clone()).expect("undone");
        assert_eq!(world.read("t1"), before, "{operation}");
        assert_eq!(world.state.agent(&"a1".into()).expect("there").tasks_completed, done);
        assert_eq!(world.state.check(), Vec::<String>::new());
        undo(&mut world, reviewed).expect_err("it is taken back already");
        // What is reviewed again can be reviewed either way.
        command(&mut world, "approve_task", json!({"task_id": "t1"}));
        assert_eq!(world.status("t1"), TaskStatus::Done);
    }
}

#[test]
fn a_review_that_others_have_built_on_stays() {
    let mut world = in_review();
    let approved = command(&mut world, "approve_task", json!({"task_id": "t1"}));
    world.claim("a2", "after");
    let refused = undo(&mut world, approved).expect_err("its dependent is in work");
    assert!(refused.contains("t1 stays done: after builds on it"), "{refused}");
    let mut world = in_review();
    let rejected = command(&mut world, "reject_task", json!({"task_id": "t1", "reason": "no"}));
    world.claim("a2", "t1");
    let refused = undo(&mut world, rejected).expect_err("it was taken");
    assert!(refused.contains("t1 is claimed by now"), "{refused}");
}
