//! Several plans on one board: each is known by its file or its name, and none touches another's
//! tasks.

use callboard::state::id::TaskId;
use callboard::state::task::TaskStatus;
use serde_json::{Value, json};

use super::super::world::{Answered, World};
use super::hierarchy::names;

const ALBUMS: &str = "# Albums\n\n- [ ] T001 Make the schema\n- [ ] T002 Make the page\n";
const SEARCH: &str = "# Search\n\n- [ ] T001 Make the index\n- [ ] T002 Make the box\n";

fn from(world: &mut World, file: &str, text: &str) -> Value {
    world.nobody().call("import_plan", json!({"text": text, "source": file})).expect("imported")
}

fn two() -> World {
    let mut world = World::new().agent("a1").agent("a2");
    from(&mut world, "albums.md", ALBUMS);
    from(&mut world, "search.md", SEARCH);
    world
}

fn at(world: &World, path: &str) -> TaskId {
    world.state.at_path(path).next().unwrap_or_else(|| panic!("a task at {path}")).id.clone()
}

#[test]
fn another_file_is_another_plan_and_touches_nothing_of_the_first() {
    let mut world = World::new().agent("a1");
    from(&mut world, "albums.md", ALBUMS);
    let held = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    let before: Vec<_> = world.state.tasks().cloned().collect();
    let reply = from(&mut world, "search.md", SEARCH);
    assert_eq!((names(&reply, "added").len(), &reply["beside"]), (2, &json!(["albums.md"])));
    assert!(before.iter().all(|task| world.read(task.id.as_str()) == **task));
    from(&mut world, "search.md", &SEARCH.replace("- [ ] T002 Make the box\n", ""));
    from(&mut world, "albums.md", ALBUMS);
    assert!(before.iter().all(|task| world.read(task.id.as_str()) == **task));
    let plans = world.call("list_plans", json!({})).expect("listed");
    let of = |number: usize, field: &str| plans["plans"][number][field].clone();
    assert_eq!(
        (of(0, "name"), of(0, "items"), of(1, "name"), of(1, "items")),
        (json!("albums.md"), json!(2), json!("search.md"), json!(1))
    );
    assert_eq!(plans["plans"][0]["progress"]["held"], 1);
    assert_eq!(world.status(&held), TaskStatus::Claimed);
}

#[test]
fn paths_are_per_plan_and_a_bare_one_of_two_is_refused() {
    let mut world = two();
    let (first, second) = (at(&world, "albums.md:P1"), at(&world, "search.md:P1"));
    assert_ne!(first, second);
    for (name, arguments) in [
        ("claim_task", json!({"scope": "P1"})),
        ("get_all_tasks", json!({"scope": "P1"})),
        ("get_status", json!({"scope": "P1"})),
        ("retry_task", json!({"scope": "P1"})),
        ("explain_task", json!({"task_id": "P1"})),
    ] {
        let by = if name == "retry_task" { world.nobody() } else { world.by("a1") };
        let message = by.call(name, arguments).refuses("ambiguous_path");
        assert!(message.contains("`albums.md:P1` or `search.md:P1`"), "{message}");
    }
    world
        .by("a1")
        .call("claim_task", json!({"scope": "search.md:P2"}))
        .replies(json!({"task": {"id": at(&world, "search.md:P2")}}));
    world
        .by("a2")
        .call("claim_task", json!({"scope": "search.md:all"}))
        .replies(json!({"task": {"id": second}}));
    let listed = world.call("get_all_tasks", json!({"scope": "search.md:all"})).expect("listed");
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(2), "{listed}");
    world
        .call("get_status", json!({"scope": "albums.md:all"}))
        .replies(json!({"total_tasks": 2, "tasks": {"claimed": 0}}));
    world.call("explain_task", json!({"task_id": "albums.md:P1"})).replies(json!({"task": first}));
    world.call("get_all_tasks", json!({"scope": "none.md:P1"})).refuses("unknown_plan");
    world.call("export_plan", json!({})).refuses("several_plans");
    let exported = world.call("export_plan", json!({"plan": "search.md"})).expect("exported");
    let text = exported["markdown"].as_str().unwrap_or_default();
    assert!(text.contains("Make the index") && !text.contains("Make the schema"), "{text}");
}

#[test]
fn id_with_a_colon_is_a_task_and_no_path_of_a_plan() {
    let mut world = two();
    world.nobody().call("create_task", json!({"id": "a:b", "description": "d"})).expect("created");
    world
        .call("explain_task", json!({"task_id": "a:b"}))
        .replies(json!({"task": "a:b", "claimable": true}));
    world.call("explain_task", json!({"task_id": "a:c"})).refuses("unknown_task");
}

#[test]
fn text_without_a_file_is_one_plan_and_needs_a_name_beside_others() {
    let mut world = World::new().agent("a1");
    let given = |name: Option<&str>, text: &str| json!({"text": text, "name": name});
    for text in [ALBUMS, SEARCH] {
        world
            .nobody()
            .call("import_plan", given(None, text))
            .replies(json!({"plan": null, "items": 2}));
    }
    assert_eq!(world.state.plans().len(), 1);
    world.call("import_plan", given(Some("other"), ALBUMS)).replies(json!({"plan": "other"}));
    world
        .call("import_plan", given(None, &format!("{SEARCH}\n")))
        .replies(json!({"plan": null, "kept": 2}));
    world.call("get_all_tasks", json!({"scope": "-:all"})).replies(json!({"tasks": [{}, {}]}));
    let mut world = two();
    let message = world.nobody().call("import_plan", given(None, ALBUMS)).refuses("unnamed_plan");
    assert!(message.contains("`albums.md`, `search.md`"), "{message}");
}

#[test]
fn a_plan_whose_file_has_moved_is_that_plan() {
    let mut world = two();
    let held = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    let ids: Vec<_> = ["P1", "P2"].map(|path| at(&world, &format!("albums.md:{path}"))).into();
    let moved =
        |gone: &[&str], text: &str| json!({"text": text, "source": "docs/albums.md", "gone": gone});
    let text = ALBUMS.replace("- [ ] T002", "- [ ] T003 Make the tests\n- [ ] T002");
    world
        .nobody()
        .call("import_plan", moved(&["albums.md"], &text))
        .replies(json!({"plan": "docs/albums.md", "kept": 2}));
    assert_eq!(
        ["P1", "P2"].map(|path| at(&world, &format!("docs/albums.md:{path}"))).to_vec(),
        ids
    );
    assert_eq!(
        (world.state.plan_names(), world.status(&held)),
        (vec!["search.md".to_owned(), "docs/albums.md".to_owned()], TaskStatus::Claimed)
    );
    world.call("import_plan", moved(&["albums.md"], &text)).replies(json!({"unchanged": true}));
    // Its file is there, or the words are others: it is a plan of its own.
    world
        .call("import_plan", json!({"text": text, "source": "copy.md"}))
        .replies(json!({"plan": "copy.md", "kept": 0}));
    let other =
        json!({"text": "- [ ] Something else\n", "source": "new.md", "gone": ["search.md"]});
    world.call("import_plan", other).replies(json!({"plan": "new.md", "kept": 0}));
    assert_eq!(world.state.plans().len(), 4);
}

#[test]
fn a_file_is_refused_whose_name_another_plan_was_given() {
    let mut world = World::new();
    let given = json!({"text": SEARCH, "source": "b.md", "name": "a.md"});
    world.nobody().call("import_plan", given).replies(json!({"plan": "a.md"}));
    world.call("import_plan", json!({"text": ALBUMS, "source": "a.md"})).refuses("plan_exists");
    world
        .call("import_plan", json!({"text": ALBUMS, "source": "a.md", "name": "c"}))
        .replies(json!({"plan": "c"}));
    assert_eq!(world.state.plan_names(), ["a.md", "c"]);
    assert!(world.state.tasks().all(|task| task.status == TaskStatus::Available));
}

#[test]
fn a_named_plan_without_a_file_is_not_one_whose_file_has_moved() {
    let mut world = World::new();
    world
        .nobody()
        .call("import_plan", json!({"text": ALBUMS, "name": "sprint"}))
        .replies(json!({"plan": "sprint"}));
    let more =
        json!({"text": format!("{ALBUMS}- [ ] T003 Make the tests\n"), "source": "other.md"});
    world
        .call("import_plan", more)
        .replies(json!({"plan": "other.md", "kept": 0, "beside": ["sprint"]}));
}

#[test]
fn an_item_waits_for_that_of_another_plan_by_name_and_path() {
    let mut world = two();
    let text = "- [ ] Ship (depends on albums.md:P2)\n- [ ] Tell\n  depends: search.md:P1, ship.md:P1, P9\n\
                - [ ] Rest\n  depends: P1.M1, none.md:P1, albums.md:P7\n";
    for _ in 0..2 {
        let reply = from(&mut world, "ship.md", text);
        let remarks: Vec<_> =
            reply["remarks"].as_array().into_iter().flatten().map(|one| &one["remark"]).collect();
        let unknown = ["P9", "P1.M1", "albums.md:P7", "none.md:P1"];
        let told = |given: &&str| {
            remarks.iter().any(|one| one.to_string().contains(&format!("\\\"{given}\\\" fits no")))
        };
        assert!(unknown.iter().all(told) && remarks.len() == unknown.len(), "{remarks:?}");
    }
    let waits = |path: &str| world.read(at(&world, path).as_str()).dependencies;
    assert_eq!(waits("ship.md:P1"), [at(&world, "albums.md:P2")]);
    assert_eq!(waits("ship.md:P2"), [at(&world, "search.md:P1"), at(&world, "ship.md:P1")]);
    assert_eq!(waits("ship.md:P3"), []);
}

#[test]
fn a_plan_is_replaced_named_and_removed_when_the_caller_says_so() {
    let mut world = two();
    let held = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    let first = at(&world, "search.md:P1");
    let replaced = json!({"text": SEARCH, "source": "find.md", "replace": "search.md"});
    world.nobody().call("import_plan", replaced).replies(json!({"plan": "find.md", "kept": 2}));
    assert_eq!(at(&world, "find.md:P1"), first);
    world
        .call("import_plan", json!({"text": SEARCH, "source": "find.md", "name": "find"}))
        .replies(json!({"plan": "find", "kept": 2}));
    world
        .call("import_plan", json!({"text": SEARCH, "source": "else.md", "replace": "find"}))
        .replies(json!({"plan": "find"}));
    world
        .call(
            "import_plan",
            json!({"text": SEARCH, "source": "albums.md", "replace": "find", "name": "albums.md"}),
        )
        .refuses("plan_exists");
    world
        .call("import_plan", json!({"text": SEARCH, "replace": "nothing"}))
        .refuses("unknown_plan");
    world.by("a2").call("claim_task", json!({"task_id": first})).expect("claimed");
    world.complete("a2", first.as_str());
    world
        .nobody()
        .call("remove_plan", json!({"plan": "find"}))
        .replies(json!({"obsolete": 1, "left_done": 1, "leaving": 0}));
    world
        .call("remove_plan", json!({"plan": "albums.md"}))
        .replies(json!({"obsolete": 1, "leaving": 1}));
    world.call("remove_plan", json!({"plan": "albums.md"})).refuses("unknown_plan");
    assert_eq!((world.status(&held), world.state.plans().len()), (TaskStatus::Claimed, 0));
    world.by("a1").call("release_task", json!({"task_id": held})).expect("released");
    assert_eq!(
        (world.status(&held), world.status(first.as_str())),
        (TaskStatus::Obsolete, TaskStatus::Done)
    );
    // It comes back as it was.
    let reply = from(&mut world, "albums.md", ALBUMS);
    assert_eq!(names(&reply, "reopened"), ["T001 Make the schema", "T002 Make the page"]);
    for number in 0..30 {
        from(&mut world, "albums.md", &format!("{ALBUMS}{}", "\n".repeat(number)));
        if number == 10 {
            from(&mut world, "search.md", SEARCH);
        }
    }
    assert_eq!((world.state.plans().len(), world.state.board().plans.len()), (2, 20));
}

#[test]
fn headings_that_count_need_not_wait() {
    let mut world = World::new().agent("a1");
    let phases = "## Phase 1\n\n- [ ] a\n\n## Phase 2\n\n- [ ] b\n";
    let ready = |world: &World| world.state.ready_count();
    let import =
        |parallel: Option<bool>| json!({"text": phases, "source": "p.md", "parallel": parallel});
    world.nobody().call("import_plan", import(None)).expect("imported");
    assert_eq!((ready(&world), at(&world, "P2").as_str() != ""), (1, true));
    world
        .call("import_plan", import(Some(true)))
        .replies(json!({"understood": {"waits": [], "ready": 2}}));
    assert_eq!(ready(&world), 2);
    world.call("import_plan", import(None)).replies(json!({"unchanged": true}));
    world.call("import_plan", import(Some(false))).expect("imported");
    assert_eq!(ready(&world), 1);
}

#[test]
fn headings_whose_parts_are_done_keep_none_waiting() {
    let mut world = World::new().agent("a1");
    let text = "## Phase 1\n\n- [x] a\n\n## Phase 2\n\n- [ ] b\n- [ ] c\n  - [x] d\n";
    let understood = json!({"understood": {"ready": 2, "items": 4, "done": 2}});
    world.nobody().call("import_plan", json!({"text": text, "source": "p.md"})).replies(understood);
    assert_eq!(world.state.ready_count(), 2, "b, and c, whose part is done");
}
