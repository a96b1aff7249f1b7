//! Identity: names, slots, registration, takeover.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard::ops::DefaultAgent;
use callboard::state::agent::Agent;
use callboard::state::id::AgentId;
use callboard::state::limit;
use callboard::state::policy::Policy;
use callboard::state::task::{Place, TaskStatus};
use callboard::state::time::MINUTE;
use serde_json::{Value, json};

use super::super::world::{Answered, World};

#[test]
fn auto_takes_the_lowest_slot_that_no_living_process_acts_as() {
    let mut world = World::new().task("t").task("u").task("v");
    world.default_agent = DefaultAgent::Auto { prefix: "claude-main".to_owned() };
    world
        .through("p1")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-main-1", "success": true}));
    world
        .through("p2")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-main-2", "success": true}));
    world
        .through("p1")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-main-1", "already": true}));
    world.nobody().kill("p1");
    world
        .through("p3")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-main-1", "already": true}));
}

#[test]
fn a_newcomer_takes_the_lowest_slot_in_which_nobody_living_is_at_work() {
    let mut world = World::new().task("t");
    world.default_agent = DefaultAgent::Auto { prefix: "claude".to_owned() };
    let register = |world: &mut World| {
        world.call("register_agent", json!({"role": "worker"})).expect("registered")["agent_id"]
            .clone()
    };
    assert_eq!(register(world.through("p1")), "claude-1");
    world.call("claim_task", json!({"agent_id": "claude-1"})).expect("claimed");
    assert_eq!(register(world.through("p1")), "claude-2");
    assert_eq!(register(world.through("p1")), "claude-3", "the second was heard of just now");
    assert_eq!(register(world.through("p2")), "claude-4");
    world.at(31 * MINUTE);
    assert_eq!(register(world.through("p1")), "claude-2", "it is idle, and the first is at work");
    world.at(31 * MINUTE);
    assert_eq!(register(world.through("p2")), "claude-4", "the others are another process's");
}

#[test]
fn what_an_agent_left_in_another_worktree_is_gone_on_with_there() {
    let mut world = World::new().task("t").task("u");
    world.default_agent = DefaultAgent::Auto { prefix: "claude".to_owned() };
    let at = |root: &str| Place { worktree: Some(root.to_owned()), ..Place::default() };
    world.place = at("/p/a");
    world
        .through("p1")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-1", "task": {"id": "t"}}));
    world.kill("p1").place = at("/p/b");
    world
        .through("p2")
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "claude-2", "task": {"id": "u"}}));
    world.place = at("/p/a");
    world.through("p3").call("register_agent", json!({"role": "worker"})).replies(json!({
        "agent_id": "claude-1", "holding": [{"task": "t"}],
    }));
}

#[test]
fn new_session_in_a_free_slot_is_not_as_able_as_the_one_before() {
    let mut world = World::new().task_with("g", json!({"demands": {"capabilities": ["gpu"]}}));
    world.default_agent = DefaultAgent::Auto { prefix: "claude-main".to_owned() };
    let able = json!({"role": "worker", "capabilities": ["gpu"], "max_concurrent": 3});
    world
        .through("p1")
        .call("register_agent", able)
        .replies(json!({"agent": {"id": "claude-main-1"}}));
    world.nobody().kill("p1");
    let plain =
        json!({"agent": {"id": "claude-main-1", "capabilities": null, "max_concurrent": null}});
    world.through("p2").call("register_agent", json!({"role": "worker"})).replies(plain);
    world.call("claim_task", json!({})).replies(json!({"verdict": "unsuited"}));
}

#[test]
fn named_process_needs_no_agent_id_and_no_registration() {
    let mut world = World::new().task("t");
    world.default_agent = DefaultAgent::Named(AgentId::trusted("scout"));
    world.call("claim_task", json!({})).replies(json!({"agent_id": "scout", "task": {"id": "t"}}));
    world.call("cancel_task", json!({"task_id": "t"})).refuses("not_leader");
    world.by("unregistered").call("claim_task", json!({})).refuses("unknown_agent");
}

#[test]
fn the_person_leads() {
    let mut world = World::new().agent("a1").task("t").claimed("a1", "t");
    world.default_agent = DefaultAgent::Named(AgentId::trusted("human"));
    world
        .nobody()
        .call("release_task", json!({"task_id": "t"}))
        .replies(json!({"agent_id": "human"}));
    world.call("cancel_task", json!({"task_id": "t"})).replies(json!({"status": "cancelled"}));
}

#[test]
fn agent_id_of_another_living_process_is_refused_and_can_be_taken_over() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    let register = json!({"agent_id": "a1", "role": "worker"});
    let message = world
        .nobody()
        .through("second")
        .call("register_agent", register.clone())
        .refuses("agent_in_use");
    for part in ["`a1`", "process 1000", "/work/ide", "register as `a1-", "takeover: true"] {
        assert!(message.contains(part), "{message}");
    }
    world.nobody().call("register_agent", register.clone()).refuses("agent_in_use");
    let takeover = json!({"agent_id": "a1", "role": "worker", "takeover": true});
    let taken = json!({"agent": {"current_tasks": ["t"]}, "holding": [{"task": "t", "title": "do t", "attempt": 1}]});
    world.through("second").call("register_agent", takeover).replies(taken);
    let through = &world.state.agent(&AgentId::trusted("a1")).expect("it is there").present_through;
    assert_eq!(through.iter().map(ToString::to_string).collect::<Vec<_>>(), ["p-second"]);
    world.kill("ide").at(2 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Claimed, "it lives in the second process now");
    world.kill("second");
    world.nobody().call("register_agent", register).replies(json!({"agent": {"id": "a1"}}));
}

#[test]
fn a_claim_is_answered_again_to_the_process_that_made_it_and_to_no_other_that_lives() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    world.by("a1").through("ide").call("claim_task", json!({})).replies(json!({"already": true}));
    for process in [Some("second"), None] {
        world.nobody();
        if let Some(process) = process {
            world.through(process);
        }
        let message = world.call("claim_task", json!({"agent_id": "a1"})).refuses("agent_in_use");
        assert!(
            message.contains("process 1000") && message.contains("register as `a1-"),
            "{message}"
        );
    }
    world
        .kill("ide")
        .through("second")
        .call("claim_task", json!({"agent_id": "a1"}))
        .replies(json!({"already": true}));
}

#[test]
fn a_claim_that_was_answered_again_is_that_process_s_and_no_third_one_has_it() {
    let mut world = World::new().agent_in("a1", "first").task("t").claimed("a1", "t");
    let claim = json!({"agent_id": "a1"});
    world.nobody().through("third").call("claim_task", claim.clone()).refuses("agent_in_use");
    world
        .kill("first")
        .through("second")
        .call("claim_task", claim.clone())
        .replies(json!({"already": true}));
    world.through("second").call("claim_task", claim.clone()).replies(json!({"already": true}));
    world.through("third").call("claim_task", claim.clone()).refuses("agent_in_use");
    world
        .kill("second")
        .through("third")
        .call("claim_task", claim)
        .replies(json!({"already": true}));
}

#[test]
fn of_several_processes_that_outlive_a_claims_own_the_first_that_asks_has_it() {
    let mut world = World::new().agent_in("a1", "first").task("t").claimed("a1", "t");
    for process in ["second", "third"] {
        world
            .nobody()
            .through(process)
            .call("heartbeat", json!({"agent_id": "a1"}))
            .expect("alive");
    }
    let claim = json!({"agent_id": "a1"});
    world.kill("first").nobody().call("claim_task", claim.clone()).refuses("agent_in_use");
    world.through("third").call("claim_task", claim.clone()).replies(json!({"already": true}));
    world.through("second").call("claim_task", claim.clone()).refuses("agent_in_use");
    world.through("third").call("claim_task", claim).replies(json!({"already": true}));
}

#[test]
fn a_claim_that_is_refused_binds_no_process_to_the_agent() {
    let mut world = World::new().agent_in("a1", "first").task("t").claimed("a1", "t");
    let claim = json!({"agent_id": "a1"});
    world.nobody().through("second").call("claim_task", claim.clone()).refuses("agent_in_use");
    world.default_agent = DefaultAgent::Named(AgentId::trusted("a1"));
    let batch = json!({"operations": [{"name": "claim_task", "arguments": claim}]});
    world.through("second").call("apply_batch", batch).refuses("batch_item");
    world.kill("first").at(2 * MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available, "the second has said nothing of it");
    world
        .through("third")
        .call("register_agent", json!({"agent_id": "a1", "role": "worker"}))
        .expect("it is free");
}

#[test]
fn a_process_whose_name_was_taken_over_has_its_claim_no_more() {
    let mut world = World::new().agent_in("a1", "first").task("t").claimed("a1", "t");
    let takeover = json!({"agent_id": "a1", "role": "worker", "takeover": true});
    world.nobody().through("second").call("register_agent", takeover).expect("taken over");
    let claim = json!({"agent_id": "a1"});
    world.through("first").call("claim_task", claim.clone()).refuses("agent_in_use");
    world.through("second").call("claim_task", claim).replies(json!({"already": true}));
}

#[test]
fn what_a_process_creates_is_by_the_agent_it_stands_for() {
    let mut world = World::new().agent("ada").agent("bob");
    let create = |text: &str| json!({"description": text, "idempotency_key": "k"});
    let mut ids = Vec::new();
    for name in ["ada", "bob", "nobody-yet", "human"] {
        world.default_agent = DefaultAgent::Named(AgentId::trusted(name));
        ids.push(
            world.call("create_task", create(name)).expect("a key of its own")["task"]["id"]
                .clone(),
        );
        let actor = world.executed("create_task", json!({"description": "another"})).actor;
        assert_eq!(actor, Some(AgentId::trusted(name)).filter(|_| ["ada", "bob"].contains(&name)));
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[2] != ids[3], "{ids:?}");
}

#[test]
fn a_key_is_the_same_before_and_after_the_agent_of_its_process_has_registered() {
    for default in [
        DefaultAgent::Named(AgentId::trusted("ada")),
        DefaultAgent::Auto { prefix: "claude".to_owned() },
    ] {
        let mut world = World::new().task("t");
        world.default_agent = default;
        let create = json!({"description": "d", "idempotency_key": "k"});
        let first = world.through("p1").call("create_task", create.clone()).expect("created");
        world.call("claim_task", json!({})).expect("claimed, and registered with it");
        world
            .call("create_task", create)
            .replies(json!({"already": true, "task": {"id": first["task"]["id"]}}));
    }
}

#[test]
fn a_key_is_known_to_the_process_that_comes_after_in_the_same_name() {
    let create = json!({"description": "d", "idempotency_key": "k"});
    for claims_first in [false, true] {
        let mut world = World::new().task("t");
        world.default_agent = DefaultAgent::Auto { prefix: "claude".to_owned() };
        world.through("p1").call("claim_task", json!({})).expect("claimed, and registered with it");
        let first = world.call("create_task", create.clone()).expect("created");
        let others = world.through("p2").call("create_task", create.clone()).expect("created");
        assert_ne!(others["task"]["id"], first["task"]["id"], "another agent's key");
        world.nobody().kill("p1");
        world.through("p3");
        if claims_first {
            world
                .call("claim_task", json!({}))
                .replies(json!({"agent_id": "claude-1", "already": true}));
        }
        let known = json!({"already": true, "task": {"id": first["task"]["id"]}});
        world.call("create_task", create.clone()).replies(known);
    }
}

#[test]
fn a_key_of_a_dead_agent_is_not_that_of_a_living_one() {
    let create = |description: &str| json!({"description": description, "idempotency_key": "k"});
    let mut world = World::new().task("t").task("u");
    world.default_agent = DefaultAgent::Auto { prefix: "claude".to_owned() };
    world.through("p1").call("claim_task", json!({})).replies(json!({"agent_id": "claude-1"}));
    let first = world.call("create_task", create("d")).expect("created");
    world.through("p2").call("claim_task", json!({})).replies(json!({"agent_id": "claude-2"}));
    world.nobody().kill("p1");
    let second = world.through("p2").call("create_task", create("e")).expect("created");
    assert_ne!(second["task"]["id"], first["task"]["id"]);
}

#[test]
fn a_repeated_call_may_name_its_agent_or_leave_it_out() {
    let mut world = World::new();
    world.default_agent = DefaultAgent::Named(AgentId::trusted("ada"));
    for (text, first, again) in [("x", json!(null), json!("ada")), ("y", json!("ada"), json!(null))]
    {
        let add = |agent: Value, content: &str| json!({"agent_id": agent, "content": content, "idempotency_key": text});
        let added = world.call("add_discovery", add(first, text)).expect("added");
        let known = json!({"already": true, "discovery": {"id": added["discovery"]["id"]}});
        world.call("add_discovery", add(again.clone(), text)).replies(known);
        world.call("add_discovery", add(again, "other")).refuses("key_reused");
    }
}

#[test]
fn a_process_registers_no_agent_under_what_addresses_messages() {
    for name in ["all", "role:leader", "task:t"] {
        let mut world = World::new().task("t");
        world.default_agent = DefaultAgent::Named(AgentId::trusted(name));
        world.call("claim_task", json!({})).refuses("address_as_id");
        assert_eq!((world.state.agents().count(), world.status("t")), (0, TaskStatus::Available));
    }
}

#[test]
fn refused_registration_lends_the_agent_no_presence() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    let register = json!({"agent_id": "a1", "role": "worker"});
    world
        .at(MINUTE)
        .nobody()
        .through("second")
        .call("register_agent", register)
        .refuses("agent_in_use");
    world.kill("ide").at(MINUTE);
    assert_eq!(world.status("t"), TaskStatus::Available, "the second process never acted as a1");
}

#[test]
fn takeover_by_a_one_shot_command_leaves_a_lease_without_presence() {
    let mut world = World::new().agent_in("a1", "ide").task("t").claimed("a1", "t");
    let takeover = json!({"agent_id": "a1", "role": "worker", "takeover": true});
    world.at(MINUTE).nobody().call("register_agent", takeover).expect("taken over");
    assert!(world.agents_present().is_empty());
    assert_eq!(world.lease("t"), 30 * MINUTE);
}

#[test]
fn registering_again_keeps_claims_and_counters() {
    let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
    world.complete("a1", "t");
    world.claim("a1", "u");
    world.call("register_agent", json!({"role": "leader", "capabilities": ["gpu"]})).replies(json!({
        "agent": {"role": "leader", "capabilities": ["gpu"], "current_task": "u", "tasks_completed": 1},
    }));
}

#[test]
fn registration_without_an_id_makes_one_up() {
    let mut world = World::new();
    let names: Vec<_> = (0..3)
        .map(|_| {
            world.call("register_agent", json!({"role": "worker"})).expect("registered")["agent_id"]
                .clone()
        })
        .collect();
    assert!(
        names.iter().all(|name| name.as_str().is_some_and(|name| name.contains('-'))),
        "{names:?}"
    );
    assert_eq!(world.state.agents().count(), 3);
}

/// A board with as many agents as allowed, each active a second after the one before; except for
/// `human`, all of them act here.
fn full() -> World {
    let policy = Policy { lease_minutes: 20 * 24 * 60, ..Policy::default() };
    let world = World::with_policy(policy)
        .task("t")
        .agent("holder")
        .agent("reader")
        .agent("reserver")
        .claimed("holder", "t");
    let mut world = world.agent_in("lives", "ide");
    world
        .by("reserver")
        .call("reserve_files", json!({"files": ["src/"], "minutes": 1_000}))
        .expect("reserved");
    world.call("send_message", json!({"to": "reader", "text": "x"})).expect("sent");
    world.holding(|document| {
        let like = document.agents[&AgentId::trusted("reader")].clone();
        for number in 0..limit::AGENTS.max - document.agents.len() {
            let id = AgentId::trusted(format!("agent-{number:04}"));
            let last_heartbeat = document.board.last_activity + number as i64 * 1_000;
            document.agents.insert(id.clone(), Agent { id, last_heartbeat, ..like.clone() });
        }
    })
}

#[test]
fn on_a_full_board_who_was_not_heard_of_for_longest_makes_room() {
    let mut world = full();
    let reasons = world
        .nobody()
        .call("health_check", json!({}))
        .replies(json!({"status": "degraded"}))["reasons"]
        .clone();
    assert!(
        reasons[0].as_str().expect("one").contains("agents: 10000 of at most 10000"),
        "{reasons}"
    );
    let new = json!({"agent_id": "new", "role": "worker"});
    let refused = world.nobody().call("register_agent", new.clone()).refuses("over_limit");
    assert!(refused.contains("makes room") && refused.contains("get_agents"), "{refused}");
    world
        .at(300 * MINUTE)
        .nobody()
        .call("health_check", json!({}))
        .replies(json!({"status": "ok"}));
    world
        .at(-300 * MINUTE + 30 * MINUTE + 49_500)
        .call("register_agent", new)
        .expect("there is room");
    let ids: Vec<_> = world.state.agents().map(|agent| agent.id.to_string()).collect();
    assert_eq!((ids.len(), ids[0].as_str()), (limit::AGENTS.max - 50 + 1, "agent-0050"));
    world
        .at(300 * MINUTE)
        .call("register_agent", json!({"agent_id": "newer", "role": "worker"}))
        .expect("there is room");
    world.by("agent-0000").call("claim_task", json!({})).refuses("unknown_agent");
    world
        .call("register_agent", json!({"role": "worker"}))
        .replies(json!({"agent": {"id": "agent-0000"}}));
    for stays in ["holder", "reader", "reserver", "lives"] {
        assert!(world.state.agent(&AgentId::trusted(stays)).is_some(), "{stays}");
    }
}

#[test]
fn on_a_full_board_the_person_and_a_new_process_can_act() {
    let mut world = full();
    world.default_agent = DefaultAgent::Named(AgentId::trusted("human"));
    world
        .nobody()
        .call("send_message", json!({"to": "reader", "text": "x"}))
        .expect("the person is always heard");
    world.default_agent = DefaultAgent::Named(AgentId::trusted("scout"));
    world.call("claim_task", json!({})).refuses("over_limit");
    world
        .at(9 * 24 * 60 * MINUTE)
        .call("claim_task", json!({}))
        .replies(json!({"agent_id": "scout"}));
    // The least recently active goes, and none with unread messages as long as there are others.
    assert_eq!(world.state.agents().next().expect("an agent").id.as_str(), "agent-0100");
    for stays in ["holder", "human", "lives", "reader"] {
        assert!(world.state.agent(&AgentId::trusted(stays)).is_some(), "{stays}");
    }
}

#[test]
fn the_mail_of_the_lost_goes_with_them() {
    let mut world = World::new().agent("lost").agent_in("lives", "ide");
    world.by("lives").call("send_message", json!({"to": "lost", "text": "x"})).expect("sent");
    let mut world = world.holding(|document| {
        let like = |id: &str| document.agents[&AgentId::trusted(id)].clone();
        let (lost, lives) = (like("lost"), like("lives"));
        let more = |like: Agent, number: usize| Agent {
            id: AgentId::trusted(format!("{}-{number}", like.id)),
            ..like
        };
        let all = (0..998).map(|number| more(lost.clone(), number));
        let all: Vec<_> = all
            .chain((0..limit::AGENTS.max - 1_000).map(|number| more(lives.clone(), number)))
            .collect();
        document.agents.extend(all.into_iter().map(|agent| (agent.id.clone(), agent)));
        let lost = document.agents.keys().filter(|id| id.as_str().starts_with("lost"));
        let recipients: BTreeSet<_> = lost.cloned().collect();
        let message = Arc::make_mut(&mut document.messages[0]);
        message.unread_by.clone_from(&recipients);
        message.recipients = recipients;
    });
    let new = json!({"agent_id": "new", "role": "worker"});
    world.nobody().at(24 * 60 * MINUTE).call("register_agent", new.clone()).refuses("over_limit");
    world.at(7 * 24 * 60 * MINUTE).call("register_agent", new).expect("there is room");
    let message = world.state.messages().next().expect("the message");
    assert_eq!((message.recipients.len(), message.unread_by.len()), (999, 899));
}

#[test]
fn every_reply_to_an_agent_repeats_its_id() {
    let mut world = World::new().agent("a1").task("t");
    let calls = [
        ("register_agent", json!({"role": "leader"})),
        ("claim_task", json!({})),
        ("claim_task", json!({})),
        ("start_task", json!({"task_id": "t"})),
        ("claim_task", json!({})),
        ("heartbeat", json!({})),
        ("add_discovery", json!({"content": "x"})),
        ("update_task", json!({"task_id": "t", "priority": 1})),
        ("complete_task", json!({"task_id": "t", "output": "x"})),
        ("complete_task", json!({"task_id": "t", "output": "x"})),
        ("claim_task", json!({})),
        ("pause", json!({})),
        ("claim_task", json!({})),
        ("resume", json!({})),
    ];
    for (name, arguments) in calls {
        world.call(name, arguments).replies(json!({"agent_id": "a1"}));
    }
}

#[test]
fn registering_again_keeps_what_is_left_out() {
    let able = json!({
        "capabilities": ["gpu"], "tags": ["eu"], "properties": {"hostname": "h1"}, "max_concurrent": 3,
    });
    let mut world = World::new().agent_with("a1", able.clone());
    world.call("register_agent", json!({"role": "worker"})).replies(json!({"agent": able}));
    let less = json!({"role": "worker", "capabilities": [], "properties": {}, "max_concurrent": 1});
    world.call("register_agent", less).replies(json!({
        "agent": {"capabilities": null, "tags": ["eu"], "properties": null, "max_concurrent": null},
    }));
    world
        .call("register_agent", json!({"role": "worker", "tags": []}))
        .replies(json!({"agent": {"tags": null}}));
}

#[test]
fn an_agent_waits_for_a_person_until_its_next_sign() {
    let mut world = World::new().agent_in("a1", "ide").agent("a2").task("t").claimed("a1", "t");
    let asked =
        json!({"for": "permission", "what": "Bash: cargo add nom", "where": "tmux pane %3"});
    world.by("a1").through("ide").call("report_waiting", asked).replies(json!({"success": true}));
    let waiting =
        json!({"for": "permission", "what": "Bash: cargo add nom", "where": "tmux pane %3"});
    let shown =
        json!({"agents": [{"id": "a1", "waiting": waiting}, {"id": "a2", "waiting": null}]});
    world.call("get_agents", json!({})).replies(shown);
    let listed = json!({"waiting": [{"agent": "a1", "task": "t", "for": "permission", "what": "Bash: cargo add nom"}]});
    world.call("get_status", json!({})).replies(listed);
    world.by("a2").call("heartbeat", json!({})).replies(json!({"success": true}));
    world.call("get_status", json!({})).replies(json!({"waiting": [{"agent": "a1"}]}));
    world.by("a1").through("ide").call("heartbeat", json!({})).replies(json!({"success": true}));
    world.call("get_status", json!({})).replies(json!({"waiting": null}));
    assert_eq!(world.kinds().last(), Some(&"agent_seen"));
}

#[test]
fn a_prompt_goes_with_the_process_that_shows_it() {
    let mut world = World::new().agent_in("a1", "ide");
    world
        .by("a1")
        .through("ide")
        .call("report_waiting", json!({"for": "input"}))
        .replies(json!({"success": true}));
    world.kill("ide");
    world
        .nobody()
        .call("get_agents", json!({}))
        .replies(json!({"agents": [{"id": "a1", "waiting": null}]}));
}

#[test]
fn registering_again_ends_the_waiting() {
    let mut world = World::new().agent("a1");
    world
        .by("a1")
        .call("report_waiting", json!({"for": "input"}))
        .replies(json!({"success": true}));
    world
        .call("register_agent", json!({"role": "worker"}))
        .replies(json!({"agent": {"id": "a1", "waiting": null}}));
}

#[test]
fn waiting_is_reported_by_a_known_agent_in_few_words() {
    let mut world = World::new().agent("a1");
    world
        .by("a1")
        .call("report_waiting", json!({"for": "input", "what": "x".repeat(201)}))
        .refuses("over_limit");
    world.by("a1").call("report_waiting", json!({"for": "money"})).refuses("bad_arguments");
    world.by("nobody").call("report_waiting", json!({"for": "input"})).refuses("unknown_agent");
    assert_eq!(world.count_of("agent_waits"), 0);
}
