//! Items with a mark or status of their own that have parts: these make them ready, and never done;
//! and marks that a newer version of a file takes back.

use callboard::state::task::TaskStatus;
use serde_json::{Value, json};

use super::super::world::{Answered, World};

fn import(world: &mut World, text: &str) -> Value {
    world
        .nobody()
        .call("import_plan", json!({"text": text, "source": "plan.md"}))
        .expect("imported")
}

/// The id of the only task with this title.
fn id(world: &World, title: &str) -> String {
    let mut named = world.state.tasks().filter(|task| task.title.as_deref() == Some(title));
    let found = named.next().unwrap_or_else(|| panic!("no {title}"));
    assert!(named.next().is_none(), "{title} is there twice");
    found.id.to_string()
}

fn status(world: &World, title: &str) -> TaskStatus {
    world.status(&id(world, title))
}

fn titles(reply: &Value, list: &str) -> Vec<String> {
    let entries = reply[list].as_array().into_iter().flatten();
    entries.map(|one| one["title"].as_str().unwrap_or_default().to_owned()).collect()
}

const PARSER: &str = "\
- [ ] Write the parser
  - [x] research grammars
- [ ] Use the parser (after: Write the parser)
";

#[test]
fn open_item_whose_parts_are_done_is_ready_and_not_done() {
    let mut world = World::new().agent("a1");
    let reply = import(&mut world, PARSER);
    assert_eq!(reply["understood"]["done"], 1);
    assert_eq!(reply["understood"]["ready"], 1);
    assert_eq!(status(&world, "Write the parser"), TaskStatus::Available);
    assert_eq!(world.next("a1")["task"]["title"], "Write the parser");
    world.complete("a1", &id(&world, "Write the parser"));
    assert_eq!(world.next("a1")["task"]["title"], "Use the parser");
}

/// Its agent could not complete it, nor claim the part.
#[test]
fn a_part_that_a_newer_file_opens_ends_the_attempt_of_held_work_of_its_own() {
    for (newer, part) in [
        ("- [ ] Write the parser\n  - [x] research grammars\n  - [ ] write tests\n", "write tests"),
        ("- [ ] Write the parser\n  - [ ] research grammars\n", "research grammars"),
    ] {
        let mut world = World::new().agent("a1");
        import(&mut world, PARSER);
        assert_eq!(world.next("a1")["task"]["title"], "Write the parser");
        import(&mut world, newer);
        assert_eq!(status(&world, "Write the parser"), TaskStatus::Available, "{newer}");
        assert_eq!(world.next("a1")["task"]["title"], part);
        world.complete("a1", &id(&world, part));
        assert_eq!(world.next("a1")["task"]["title"], "Write the parser", "{newer}");
        world.complete("a1", &id(&world, "Write the parser"));
        world.check();
    }
}

/// What a done part gets afterwards does not take it back, so that nobody waits for it.
#[test]
fn work_of_its_own_that_is_ready_can_be_completed_whatever_a_done_part_has_got() {
    let mut world = World::new().agent("a1");
    import(&mut world, "- [ ] Ship\n  - [ ] Test\n");
    assert_eq!(world.next("a1")["task"]["title"], "Test");
    world.complete("a1", &id(&world, "Test"));
    import(&mut world, "- [ ] Ship\n  - [ ] Test\n    - [ ] Fix\n");
    assert_eq!(status(&world, "Test"), TaskStatus::Done, "an agent did it");
    let ship = id(&world, "Ship");
    world.claim("a1", &ship);
    world.complete("a1", &ship);
    assert_eq!(status(&world, "Fix"), TaskStatus::Available, "what is open stays open");
    world.check();
}

const TREE: &str = "\
## Phase 1

- [ ] Ship
  - [ ] Build
    - [ ] Compile
  - [ ] Test

## Phase 2

- [ ] Rest
";

#[test]
fn parts_make_work_of_its_own_ready_level_by_level_and_its_agent_gets_their_results() {
    let mut world = World::new().agent("a1");
    import(&mut world, TREE);
    for title in ["Compile", "Build", "Test", "Ship", "Rest"] {
        let claim = world.next("a1");
        assert_eq!(claim["task"]["title"], title);
        if title == "Ship" {
            let given = claim["handoff"]["dependencies"].to_string();
            assert!(given.contains(&id(&world, "Build")) && given.contains(&id(&world, "Test")));
        }
        world.complete("a1", &id(&world, title));
    }
    let groups = ["Phase 1", "Phase 2"].map(|title| status(&world, title));
    assert_eq!(groups, [TaskStatus::Done; 2], "headings follow their parts");
}

#[test]
fn work_of_its_own_waits_for_its_parts_and_is_counted() {
    let mut world = World::new().agent("a1");
    import(&mut world, TREE);
    let ship = id(&world, "Ship");
    let message = world.by("a1").call("claim_task", json!({"task_id": ship})).refuses("not_ready");
    assert!(message.contains(&id(&world, "Build")), "{message}");
    world.call("get_task", json!({"task_id": ship})).replies(json!({
        "ready": false, "parts": {"tasks": 3, "done": 0, "status": "available"},
    }));
    world.call("get_status", json!({})).replies(json!({
        "total_tasks": 5, "parts": [{"path": "P1", "tasks": 4}, {"path": "P2", "tasks": 1}],
    }));
    world.claim("a1", &id(&world, "Compile"));
    let broken = json!({"task_id": id(&world, "Compile"), "error": "no", "retryable": false});
    world.call("fail_task", broken).expect("failed");
    let waits = |world: &mut World, title: &str| {
        let task = world.call("get_task", json!({"task_id": id(world, title)})).expect("read");
        task["waits_for"].to_string()
    };
    assert!(waits(&mut world, "Build").contains("failed"), "a failed part is not over");
    assert_eq!(status(&world, "Build"), TaskStatus::Available);
}

#[test]
fn cancelled_parts_free_work_of_its_own_which_is_cancelled_with_its_open_parts() {
    let mut world = World::new().agent_with("lead", json!({"role": "leader"})).agent("a1");
    import(&mut world, TREE);
    for title in ["Compile", "Build", "Test"] {
        let task = id(&world, title);
        world.by("lead").call("cancel_task", json!({"task_id": task})).expect("cancelled");
    }
    assert_eq!(world.next("a1")["task"]["title"], "Ship");
    let ship = id(&world, "Ship");
    let test = id(&world, "Test");
    world.by("lead").call("retry_task", json!({"task_id": test})).expect("retried");
    world
        .by("a1")
        .call("complete_task", json!({"task_id": ship, "output": "o"}))
        .refuses("is_parent");
    world
        .by("lead")
        .call("cancel_task", json!({"task_id": ship}))
        .replies(json!({"status": "cancelled"}));
    assert_eq!(status(&world, "Test"), TaskStatus::Cancelled);
    assert_eq!(status(&world, "Phase 1"), TaskStatus::Cancelled);
    world.call("retry_task", json!({"task_id": ship})).replies(json!({"retried": 4}));
    assert_eq!(status(&world, "Ship"), TaskStatus::Available);
}

#[test]
fn done_item_with_open_parts_stays_done_as_the_file_says() {
    let mut world = World::new().agent("a1");
    import(&mut world, "- [x] Port\n  - [ ] Polish\n- [ ] Use it (after: Port)\n");
    assert_eq!(status(&world, "Port"), TaskStatus::Done);
    assert_eq!(status(&world, "Polish"), TaskStatus::Available);
    assert!(world.state.ready_count() == 2, "what depends on it need not wait for the part");
}

/// What the file said at its last import, what it says now, and what the board has.
#[test]
fn three_sides_decide_whether_a_mark_that_is_gone_reopens() {
    let text = |mark: &str| format!("- [{mark}] Alpha work\n- [ ] Beta work\n");
    for (then, done_here, now, expected) in [
        ("x", false, " ", TaskStatus::Available),
        ("x", false, "x", TaskStatus::Done),
        ("x", false, "/", TaskStatus::Available),
        (" ", true, " ", TaskStatus::Done),
        (" ", true, "x", TaskStatus::Done),
        (" ", false, "x", TaskStatus::Done),
        ("-", false, " ", TaskStatus::Available),
    ] {
        let mut world = World::new().agent("a1");
        import(&mut world, &text(then));
        let alpha = id(&world, "Alpha work");
        if done_here {
            world.claim("a1", &alpha);
            world.complete("a1", &alpha);
        }
        let again = format!("{}\nMore words.\n", text(now));
        let reply = import(&mut world, &again);
        assert_eq!(world.status(&alpha), expected, "[{then}] then [{now}], {done_here}");
        let is_reopened = matches!((then, now), ("x", " " | "/") | ("-", " "));
        let said = titles(&reply, "reopened");
        assert_eq!(said, Vec::from_iter(is_reopened.then(|| "Alpha work".to_owned())), "{reply}");
        assert_eq!(import(&mut world, &again)["unchanged"], true);
        assert_eq!(world.status(&alpha), expected);
    }
}

#[test]
fn what_was_done_here_and_ticked_since_is_reopened_when_the_tick_goes() {
    let mut world = World::new().agent("a1");
    let text = |mark: &str| format!("- [{mark}] Alpha work\n- [ ] Beta work\n");
    import(&mut world, &text(" "));
    let alpha = id(&world, "Alpha work");
    world.claim("a1", &alpha);
    assert_eq!(titles(&import(&mut world, &text("x")), "ticked"), ["Alpha work"], "it is held");
    world.complete("a1", &alpha);
    assert_eq!(titles(&import(&mut world, &text(" ")), "reopened"), ["Alpha work"]);
    assert_eq!(world.status(&alpha), TaskStatus::Available);
    assert_eq!(titles(&import(&mut world, &text("x")), "completed"), ["Alpha work"]);
}

#[test]
fn item_that_gets_a_mark_is_no_longer_done_by_its_parts() {
    let mut world = World::new();
    import(&mut world, "## Work\n\n- [x] a\n- [x] b\n");
    assert_eq!(status(&world, "Work"), TaskStatus::Done);
    let reply = import(&mut world, "## [ ] Work\n\n- [x] a\n- [x] b\n");
    assert_eq!(titles(&reply, "reopened"), ["Work"]);
    assert_eq!(status(&world, "Work"), TaskStatus::Available);
    import(&mut world, "## Work\n\n- [x] a\n- [x] b\n");
    assert_eq!(status(&world, "Work"), TaskStatus::Done);
}

#[test]
fn item_in_hand_that_gets_parts_waits_for_them() {
    let mut world = World::new().agent("a1").agent("a2");
    import(&mut world, "- [ ] Port\n");
    let port = id(&world, "Port");
    world.claim("a1", &port);
    import(&mut world, "- [ ] Port\n  - [ ] Polish\n");
    assert_eq!(world.status(&port), TaskStatus::Available, "its attempt has ended");
    assert_eq!(world.next("a2")["task"]["title"], "Polish");
    world.complete("a2", &id(&world, "Polish"));
    assert_eq!(world.next("a2")["task"]["id"], port);
}

/// Items of JSON say it by their status; what its type calls a phase or a milestone follows its
/// parts.
#[test]
fn status_in_json_makes_work_of_its_own() {
    let mut world = World::new();
    let part = |title: &str| json!([{"title": title, "status": "Complete"}]);
    let text = json!({"items": [
        {"title": "Phase", "type": "Phase", "status": "Planned", "items": part("a")},
        {"title": "Own", "status": "Planned", "items": part("b")},
        {"title": "Group", "items": part("c")},
    ]});
    import(&mut world, &text.to_string());
    let statuses = ["Phase", "Own", "Group"].map(|title| status(&world, title));
    assert_eq!(statuses, [TaskStatus::Done, TaskStatus::Available, TaskStatus::Done]);
    let exported = world.call("export_plan", json!({"format": "json"})).expect("exported");
    let reply = import(&mut world, &exported["json"].to_string());
    assert_eq!((titles(&reply, "added"), titles(&reply, "completed")), (vec![], vec![]));
    let statuses = ["Phase", "Own", "Group"].map(|title| status(&world, title));
    assert_eq!(statuses, [TaskStatus::Done, TaskStatus::Available, TaskStatus::Done]);
}

#[test]
fn markdown_of_own_work_and_groups_is_read_as_the_same() {
    let mut world = World::new();
    let leaf = |title: &str| json!({"title": title, "status": "Complete"});
    let text = json!({"items": [{"title": "P", "items": [{"title": "M", "status": "Planned", "items": [
        {"title": "T", "items": [leaf("a")]},
        {"title": "U", "status": "Planned", "items": [leaf("b")]},
    ]}]}]});
    import(&mut world, &text.to_string());
    let all = ["P", "M", "T", "U", "a", "b"];
    let before = all.map(|title| status(&world, title));
    let open = TaskStatus::Available;
    let done = TaskStatus::Done;
    assert_eq!(before, [open, open, done, open, done, done]);
    let exported = world.call("export_plan", json!({"format": "markdown"})).expect("exported");
    let mut other = World::new();
    import(&mut other, exported["markdown"].as_str().unwrap_or_default());
    assert_eq!(all.map(|title| status(&other, title)), before, "{}", exported["markdown"]);
    let own = |world: &World, title: &str| world.read(&id(world, title)).is_own_work();
    assert_eq!(all.map(|title| own(&other, title)), all.map(|title| own(&world, title)));
}
