//! `State::check` notices every way in which a state can be wrong: the other tests rest on it.

use callboard::state::State;
use callboard::state::document::Document;
use callboard::state::id::{AgentId, ParticipantId, TaskId};
use callboard::state::policy::Policy;
use callboard::state::task::Outcome;

use super::super::world::World;

/// `held` is held by `a1`, `free` by nobody; `early` is done and `earlier` retired.
fn sound() -> Document {
    let policy = Policy { keep_finished: 1, ..Policy::default() };
    let mut world = World::with_policy(policy).agent("a1").agent("a2").task("earlier").task("early");
    for task in ["earlier", "early"] {
        world.claim("a1", task);
        world.complete("a1", task);
    }
    let mut world = world.task("held").task("free").claimed("a1", "held");
    world.tick();
    world.state.to_document()
}

#[test]
fn broken_invariant_is_named() {
    let task = |document: &Document, id: &str| document.tasks.iter().position(|task| task.id.as_str() == id).unwrap();
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
            document.tasks[held].attempts[0].outcome = Some(Outcome::Released);
        }),
        ("with 1 open attempts", |document, held, free| {
            document.tasks[free].attempts = document.tasks[held].attempts.clone();
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
        ("the open attempt is not attempt 2", |document, held, _| document.tasks[held].attempt = 2),
        ("claimed_by is not the holder", |document, held, _| {
            document.tasks[held].claimed_by = Some(AgentId::trusted("a2"));
        }),
        ("which does not exist", |document, _, free| {
            document.tasks[free].dependencies.push(TaskId::trusted("nowhere"));
        }),
        ("cycle", |document, held, free| {
            document.tasks[held].dependencies.push(TaskId::trusted("free"));
            document.tasks[free].dependencies.push(TaskId::trusted("held"));
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
