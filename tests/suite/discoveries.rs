//! Discoveries: searched, superseded, and passed to whoever claims a task that they help with.

use std::sync::Arc;

use callboard::state::State;
use callboard::state::discovery::Discovery;
use callboard::state::event::Recorded;
use callboard::state::id::{AgentId, DiscoveryId};
use callboard::state::limit;
use callboard::statefile;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, size};
use crate::world::{Answered, World};

/// Adds a discovery and returns its id.
#[track_caller]
fn add(world: &mut World, agent: &str, content: &str, more: Value) -> String {
    let mut arguments = json!({"content": content});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = world.by(agent).call("add_discovery", arguments).expect("added");
    reply["discovery"]["id"].as_str().expect("an id").to_owned()
}

fn contents(reply: &Value) -> Vec<&str> {
    reply["discoveries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["content"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn found(world: &mut World, query: Value) -> Vec<String> {
    let reply = world.call("get_discoveries", query).expect("read");
    contents(&reply).into_iter().map(str::to_owned).collect()
}

#[track_caller]
fn handed(world: &mut World, agent: &str, task: &str) -> Vec<String> {
    let reply = world.by(agent).call("claim_task", json!({"task_id": task})).expect("claimed");
    let handed = reply["handoff"]["discoveries"].as_array().cloned().unwrap_or_default();
    handed.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn search_finds_by_words_tags_and_task() {
    let mut world = World::new().agent("a1").task("t").task("u");
    world.claim("a1", "t");
    add(&mut world, "a1", "The cache LIES about ages", json!({"tags": ["Cache"]}));
    world.by("a1").call("release_task", json!({"task_id": "t"})).expect("released");
    add(&mut world, "a1", "tests need git", json!({"tags": ["ci"], "files": ["src/git.rs"]}));
    add(&mut world, "a1", "über alles wächst Gras", json!({"task_id": "u"}));
    for (query, expected) in [
        (json!({"query": "lies CACHE"}), vec!["The cache LIES about ages"]),
        (json!({"query": "src/git.rs"}), vec!["tests need git"]),
        (json!({"query": "ci git"}), vec!["tests need git"]),
        (json!({"query": "ÜBER"}), vec!["über alles wächst Gras"]),
        (json!({"query": "cache git"}), vec![]),
        (
            json!({"query": "e", "tags": ["ci", "Cache"]}),
            vec!["The cache LIES about ages", "tests need git"],
        ),
        (json!({"task_id": "t"}), vec!["The cache LIES about ages"]),
        (json!({"task_id": "u"}), vec!["über alles wächst Gras"]),
        (
            json!({"query": " "}),
            vec!["The cache LIES about ages", "tests need git", "über alles wächst Gras"],
        ),
    ] {
        assert_eq!(found(&mut world, query.clone()), expected, "{query}");
    }
}

#[test]
fn pages_follow_each_other_from_new_to_old() {
    let mut world = World::new().agent("a1");
    for number in 0..7 {
        add(
            &mut world,
            "a1",
            &format!("finding {number}"),
            json!({"tags": [if number % 2 == 0 { "even" } else { "odd" }]}),
        );
    }
    for (query, expected) in [
        (json!({"limit": 3}), vec!["456", "123", "0"]),
        (json!({"limit": 2, "tags": ["even"]}), vec!["46", "02"]),
        (json!({"limit": 2, "query": "finding"}), vec!["56", "34", "12", "0"]),
    ] {
        let (mut query, mut pages) = (query, Vec::new());
        loop {
            let reply = world.call("get_discoveries", query.clone()).expect("a page");
            pages.push(
                contents(&reply)
                    .iter()
                    .map(|content| &content["finding ".len()..])
                    .collect::<String>(),
            );
            match &reply["next"] {
                Value::Null => break,
                next => query["after"] = next.clone(),
            }
        }
        assert_eq!(pages, expected, "{query}");
    }
}

#[test]
fn large_board_is_searched_in_bounded_pieces() {
    let mut world = World::new().agent("a1");
    let needle = add(&mut world, "a1", "the needle", json!({}));
    for number in 0..400 {
        add(&mut world, "a1", &format!("{number} {}", "hay ".repeat(4_000)), json!({}));
    }
    let (mut query, mut calls) = (json!({"query": "needle", "limit": 20}), 0);
    let found = loop {
        let reply = world.call("get_discoveries", query.clone()).expect("a page");
        calls += 1;
        if let Some(found) = reply["discoveries"].as_array().and_then(|found| found.first()) {
            break found["id"].clone();
        }
        assert!(reply["next"].is_string(), "{reply}");
        query["after"] = reply["next"].clone();
    };
    assert_eq!((found, calls), (json!(needle), 2), "6.4 MB, in pieces of 4 MiB");
    let page = world.call("get_discoveries", json!({"limit": 1_000})).expect("a page");
    assert!(page.to_string().len() < 300_000, "{}", page.to_string().len());
}

#[test]
fn superseded_discovery_gives_way_and_stays() {
    let mut world = World::new().agent("a1").agent("a2").task_with("t", json!({"tags": ["x"]}));
    let first = add(&mut world, "a1", "port 80", json!({"tags": ["x"]}));
    let second =
        add(&mut world, "a2", "port 81", json!({"tags": ["x"], "supersedes": [first, first]}));
    assert_eq!(found(&mut world, json!({})), ["port 81"]);
    assert_eq!(found(&mut world, json!({"query": "port", "tags": ["x"]})), ["port 81"]);
    let all = world.call("get_discoveries", json!({"all": true})).expect("all");
    assert_eq!(all["discoveries"][0]["superseded_by"], second.as_str());
    assert_eq!(all["discoveries"][1]["supersedes"], json!([first]));
    assert_eq!(handed(&mut world, "a1", "t"), ["port 81"]);
    let third = add(&mut world, "a1", "port 82", json!({"supersedes": [first, second]}));
    assert_eq!(found(&mut world, json!({})), ["port 82"]);
    let all = world.call("get_discoveries", json!({"all": true})).expect("all");
    assert_eq!(all["discoveries"][0]["superseded_by"], third.as_str());
    assert_eq!(world.state.check(), Vec::<String>::new());
}

#[test]
fn claim_brings_what_is_closest_to_the_task() {
    let mut world = World::new().agent("a1").agent("a2").task("before");
    let context = json!({"tags": ["db"], "dependencies": ["before"], "context_files": ["src/db/", "src/**/*.sql", "a.rs"]});
    world.claim("a1", "before");
    add(&mut world, "a1", "from the dependency", json!({}));
    world
        .by("a1")
        .call("complete_task", json!({"task_id": "before", "output": "x"}))
        .expect("done");
    world.create("t", context);
    add(&mut world, "a1", "about a file below", json!({"files": ["src/db/pool.rs"]}));
    add(&mut world, "a1", "about a file and a tag", json!({"files": ["a.rs"], "tags": ["db"]}));
    add(&mut world, "a1", "met by a glob", json!({"files": ["src/x/y.sql"]}));
    add(&mut world, "a1", "under a tag", json!({"tags": ["db"]}));
    add(
        &mut world,
        "a1",
        "about nothing of it",
        json!({"tags": ["ui"], "files": ["b.rs", "src/dba/x.rs"]}),
    );
    add(&mut world, "a2", "for the task itself", json!({"task_id": "t"}));
    let expected = [
        "for the task itself",
        "from the dependency",
        "about a file and a tag",
        "met by a glob",
        "about a file below",
    ];
    assert_eq!(handed(&mut world, "a1", "t"), expected);
}

#[test]
fn what_a_claim_brings_stays_within_its_bytes_and_its_time() {
    let mut world = World::new().agent("a1");
    for number in 0..size("CALLBOARD_DISCOVERIES", 2_000) {
        let more = json!({"tags": ["x"], "files": [format!("src/{number}.rs"), "src/**/*.rs"]});
        add(&mut world, "a1", &format!("{number} \"\\\n{}", "é\"".repeat(400)), more);
    }
    let files: Vec<_> =
        (0..limit::FILES.max).map(|number| format!("src/**/{number}*.rs")).collect();
    world.create("t", json!({"tags": ["x"], "context_files": files}));
    let start = std::time::Instant::now();
    let reply = world.by("a1").call("claim_task", json!({"task_id": "t"})).expect("claimed");
    let took = start.elapsed();
    let handed = reply["handoff"]["discoveries"].to_string();
    assert!(handed.len() <= 300, "{} bytes: {handed}", handed.len());
    assert_eq!(reply["handoff"]["discoveries"].as_array().unwrap().len(), 2);
    println!("the discoveries of a claim: {} bytes, the claim {took:?} unoptimised", handed.len());
}

/// A board with as many discoveries as allowed. Up to the thousandth, each tenth supersedes the one
/// before it.
fn full() -> World {
    World::new().agent("a1").holding(|document| {
        let id = |number: usize| DiscoveryId::trusted(format!("disc-{number}"));
        let discovery = |number: usize| Discovery {
            id: id(number),
            agent_id: AgentId::trusted("a1"),
            content: number.to_string(),
            tags: Vec::new(),
            created_at: document.board.created_at,
            task_id: None,
            files: Vec::new(),
            supersedes: if number % 10 == 9 && number < 1_000 {
                vec![id(number - 1)]
            } else {
                Vec::new()
            },
        };
        document.discoveries = (0..limit::DISCOVERIES.max).map(discovery).map(Arc::new).collect();
    })
}

#[test]
fn on_a_full_board_what_is_superseded_makes_room() {
    let mut world = full();
    add(&mut world, "a1", "there is room", json!({}));
    assert_eq!(world.state.discoveries().len(), limit::DISCOVERIES.max - 100 + 1);
    let ids: Vec<_> = world.state.discoveries().take(9).map(|one| one.content.clone()).collect();
    assert_eq!(ids.concat(), "012345679");
    let mut world = full().holding(|document| {
        let all = document.discoveries.iter_mut().map(Arc::make_mut);
        all.for_each(|one| one.supersedes.clear());
    });
    let refused =
        world.by("a1").call("add_discovery", json!({"content": "x"})).refuses("over_limit");
    assert!(refused.contains("supersedes"), "{refused}");
    add(&mut world, "a1", "in the place of another", json!({"supersedes": ["disc-5"]}));
    assert_eq!(world.state.discoveries().len(), limit::DISCOVERIES.max);
    world.call("get_discoveries", json!({"after": "disc-5"})).refuses("unknown_discovery");
}

#[test]
fn what_refers_to_nothing_is_refused_with_the_way_out() {
    let mut world = World::new().agent("a1");
    let id = add(&mut world, "a1", "x", json!({}));
    for (operation, arguments, code, part) in [
        (
            "add_discovery",
            json!({"supersedes": ["disc-none"]}),
            "unknown_discovery",
            "get_discoveries",
        ),
        ("add_discovery", json!({"supersedes": ["a b"]}), "bad_id", "discovery id"),
        ("add_discovery", json!({"supersedes": vec![id; 21]}), "over_limit", "20"),
        ("add_discovery", json!({"task_id": "none"}), "unknown_task", "none"),
        ("add_discovery", json!({"files": ["../x"]}), "outside_project", "files[0]"),
        ("get_discoveries", json!({"after": "disc-none"}), "unknown_discovery", "disc-none"),
        ("get_discoveries", json!({"query": "x".repeat(501)}), "over_limit", "500"),
    ] {
        let mut arguments = arguments;
        if operation == "add_discovery" {
            arguments["content"] = json!("y");
        }
        let refusal = world.by("a1").call(operation, arguments).refuses(code);
        assert!(refusal.to_string().contains(part), "{operation}: {refusal}");
    }
    assert_eq!(found(&mut world, json!({"all": true})), ["x"]);
}

#[test]
fn event_and_file_from_before_there_were_relations_still_open() {
    let event = json!({"seq": 2, "at": "2026-03-01T12:00:00.000Z", "writer": "p-1", "kind": "discovery_added",
        "discovery": "d1", "agent": "a", "content": "c", "tags": ["x"]});
    let recorded: Recorded = serde_json::from_value(event.clone()).unwrap();
    assert_eq!(serde_json::to_value(&recorded).unwrap(), event, "written as it was read");
    let mut state = State::new();
    let first = json!({"seq": 1, "at": "2026-03-01T12:00:00.000Z", "writer": "p-1", "kind": "board_created", "board_id": "b"});
    for recorded in [serde_json::from_value(first).unwrap(), recorded] {
        state.apply(&recorded).unwrap();
        state.settle();
    }
    assert_eq!(state.check(), Vec::<String>::new());
    let kept = serde_json::to_value(state.discoveries().next().unwrap()).unwrap();
    let fields: Vec<_> = kept.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["id", "agent_id", "content", "tags", "created_at"],
        "the sums of old files hold"
    );
}

#[test]
fn other_processes_and_the_files_know_the_same() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "x", "tags": ["db"]}));
    let server = Server::on(&board);
    let mut agent = board.mcp();
    agent.register("ada");
    let first = agent
        .ok("add_discovery", json!({"agent_id": "ada", "content": "the old way", "tags": ["db"]}));
    let old = first["discovery"]["id"].as_str().unwrap().to_owned();
    let told = board.finish(board.command().args([
        "--json",
        "discoveries",
        "add",
        "the new way",
        "--tag",
        "db",
        "--task",
        "t",
        "--file",
        "a.rs",
        "--supersede",
        &old,
    ]));
    assert!(told.status.success(), "{}", told.stderr);
    let new = told.value()["discovery"]["id"].clone();
    for door in Door::ALL {
        let reply = door.ok(&server, "get_discoveries", &json!({"query": "way"}));
        assert_eq!(contents(&reply), ["the new way"], "{door:?}");
        let reply = door.ok(&server, "get_discoveries", &json!({"query": "way", "all": true}));
        assert_eq!(reply["discoveries"][0]["superseded_by"], new, "{door:?}");
    }
    let claimed = agent.ok("claim_task", json!({"agent_id": "ada"}));
    assert_eq!(claimed["handoff"]["discoveries"], json!(["the new way"]));
    let searched = board.finish(board.command().args(["discoveries", "--search", "WAY", "--all"]));
    assert!(
        searched.stdout.contains("superseded by disc-") && searched.stdout.contains("the old way"),
        "{}",
        searched.stdout
    );
    let kept = board.document()["discoveries"].as_array().unwrap().clone();
    assert_eq!((kept[0].get("supersedes"), &kept[1]["supersedes"]), (None, &json!([old])));
    assert_eq!((&kept[1]["task_id"], &kept[1]["files"]), (&json!("t"), &json!(["a.rs"])));
    board.assert_file_is_the_replay();
    let text = String::from_utf8(statefile::text_of(&board.replay()).unwrap()).unwrap();
    assert!(text.contains("\"supersedes\""), "{text}");
}
