//! What makes an item of a changed plan the same task: "done" belongs to words, and held work keeps
//! its own.

use callboard::state::task::TaskStatus;
use serde_json::{Value, json};

use super::super::world::{Answered, World};
use super::hierarchy::{FIRST, at, import, names};

/// A world whose agent a1 has done the first item of `before`.
fn done_first(before: &str) -> (World, String) {
    let mut world = World::new().agent("a1");
    import(&mut world, before, false).expect("imported");
    let done = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    world.complete("a1", &done);
    (world, done)
}

fn items(titles: &[&str]) -> String {
    titles.iter().map(|title| format!("- [ ] {title}\n")).collect()
}

/// Titles of the items that are done.
fn done(world: &World) -> Vec<String> {
    let of_plan = world
        .state
        .tasks()
        .filter(|task| task.planned.is_some() && task.status == TaskStatus::Done);
    of_plan.map(|task| task.headline().to_owned()).collect()
}

#[test]
fn done_belongs_to_words_whatever_their_form_depth_and_place() {
    for (before, after) in [
        ("- [ ] Caf\u{e9}\n- [ ] Ship\n", "- [ ] Cafe\u{301}\n- [ ] Ship\n"),
        (
            "- [ ] Write the lexer\n- [ ] Ship\n",
            "## Reading\n\n- [ ] Write the lexer\n- [ ] Ship\n",
        ),
        ("- [ ] write `it`\n- [ ] Ship\n", "- [ ] Ship\n- [ ] **Write**  it\n"),
        ("- [ ] P1: Write\n- [ ] P2: Ship\n", "- [ ] P1: Ship\n- [ ] P7: Write\n"),
        ("- [ ] Write\n\n  So.\n- [ ] Ship\n", "- [ ] Write\n\n  Not so.\n- [ ] Ship\n"),
    ] {
        let (mut world, task) = done_first(before);
        let reply = import(&mut world, after, false).expect("imported");
        assert_eq!(done(&world).len(), 1, "{after}");
        assert_eq!(
            (world.status(&task), &reply["left_done"], &reply["reworded"]),
            (TaskStatus::Done, &json!([]), &Value::Null)
        );
        assert_eq!(names(&reply, "modified").len(), usize::from(before.contains("So.")), "{after}");
    }
}

#[test]
fn other_words_are_open_and_the_reply_says_how_they_are_done() {
    for (before, after) in [
        ("Fix bug 101", "Fix bug 102"),
        ("Add tests for the lexer", "Add tests for the parser"),
        ("Port to C", "Port to C++"),
        ("P1: Accept a <= b", "P1: Accept a >= b"),
    ] {
        let (mut world, task) = done_first(&items(&[before, "Ship"]));
        let second = items(&[after, "Ship"]);
        let shown = import(&mut world, &second, true).expect("shown");
        let reply = import(&mut world, &second, false).expect("imported");
        assert_eq!((&shown["reworded"], done(&world)), (&reply["reworded"], vec![]), "{after}");
        assert_eq!((world.status(&task), names(&reply, "left_done").len()), (TaskStatus::Done, 1));
        let one = &reply["reworded"][0];
        assert_eq!(one["done"], json!(task));
        let carry = json!({"text": second, "carry": [one["carry"]]});
        world
            .nobody()
            .call("import_plan", carry.clone())
            .replies(json!({"success": true, "unchanged": null}));
        assert_eq!(done(&world).len(), 1, "{after}");
        assert_eq!(
            (world.status(&task), world.read(&task).planned.is_some()),
            (TaskStatus::Done, true)
        );
        assert_eq!(world.status(one["task"].as_str().expect("an id")), TaskStatus::Obsolete);
        let path = world.read(&task).path.expect("a path");
        for (carry, part) in [
            (format!("{task}=P9"), "no item has that path"),
            (format!("nobody={path}"), "the plan never had that task"),
            (format!("{}={path}", at(&world, "P2").id), "is available, not done"),
        ] {
            let message = world
                .call("import_plan", json!({"text": second, "carry": [carry]}))
                .refuses("bad_plan");
            assert!(message.contains(part), "{message}");
        }
        world.call("import_plan", json!({"text": second, "carry": ["x"]})).refuses("bad_carry");
    }
}

#[test]
fn unfinished_items_keep_their_ids_in_other_words() {
    let mut world = World::new();
    import(&mut world, "- [ ] P1: Write\n- [ ] P2: Fix bug 101\n", false).expect("imported");
    let ids = [at(&world, "P1").id, at(&world, "P2").id];
    let reply = import(&mut world, "- [ ] P1: Something else\n- [ ] P2: Fix bug 102\n", false)
        .expect("imported");
    assert_eq!(names(&reply, "renamed"), ["Something else", "Fix bug 102"]);
    assert_eq!([at(&world, "P1").id, at(&world, "P2").id], ids);
}

#[test]
fn held_work_keeps_its_words_and_other_words_wait_for_its_end() {
    let mut world = World::new().agent("a1").agent("a2");
    import(&mut world, &items(&["Fix bug 101", "Ship"]), false).expect("imported");
    let held = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    let second =
        items(&["Fix bug 102", "Ship"]).replace("Ship\n", "Ship\n  depends: Fix bug 102\n");
    let reply = import(&mut world, &second, false).expect("imported");
    assert_eq!(
        (names(&reply, "leaving"), names(&reply, "added")),
        (vec!["Fix bug 101".to_owned()], vec!["Fix bug 102".to_owned()])
    );
    assert_eq!(
        (world.status(&held), world.read(&held).headline()),
        (TaskStatus::Claimed, "Fix bug 101")
    );
    let heard = world
        .by("a1")
        .call("heartbeat", json!({}))
        .replies(json!({"stop_requested": [{"task": held}]}));
    assert!(heard.to_string().contains("other words"), "{heard}");
    let new = reply["added"][0]["task"].as_str().expect("an id").to_owned();
    let message = world.by("a2").call("claim_task", json!({"task_id": new})).refuses("not_ready");
    assert!(message.contains(&held), "{message}");
    import(&mut world, &second, false).replies(json!({"unchanged": true}));
    import(&mut world, &format!("{second}\n\n"), false)
        .replies(json!({"kept": 2, "leaving": null}));
    world.by("a1").call("release_task", json!({"task_id": held})).expect("released");
    assert_eq!(world.status(&held), TaskStatus::Obsolete);
    assert_eq!(world.next("a2")["task"]["id"], json!(new));
    world.complete("a2", &new);

    // Its own words come back while it is held, so that it is the item again.
    let third = items(&["Fix bug 102", "Ship it"]);
    let ship = world.next("a1")["task"]["id"].as_str().expect("a task").to_owned();
    import(&mut world, &third, false).replies(json!({"leaving": [{"task": ship}]}));
    import(&mut world, &items(&["Fix bug 102", "Ship"]), false).replies(json!({"leaving": null}));
    assert_eq!(
        (world.read(&ship).stop_requested, world.read(&ship).planned.is_some()),
        (None, true)
    );
    world.complete("a1", &ship);
    assert_eq!(done(&world).len(), 2);
}

#[test]
fn new_text_of_held_work_waits_for_the_end_of_its_attempt() {
    for ends in ["released", "done"] {
        let mut world = World::new().agent("a1");
        import(&mut world, FIRST, false).expect("imported");
        let read = at(&world, "P1.M1").id;
        world.claim("a1", read.as_str());
        let second = FIRST.replace("Read the text.", "Read all.");
        import(&mut world, &second, false)
            .replies(json!({"modified": [{"task": read, "held_by": "a1"}]}));
        assert_eq!(&*world.read(read.as_str()).description, "Read the text.");
        world
            .by("a1")
            .call("heartbeat", json!({}))
            .replies(json!({"stop_requested": [{"task": read}]}));
        import(&mut world, &format!("{second}\n"), false).replies(json!({"modified": []}));
        match ends {
            "done" => drop(world.complete("a1", read.as_str())),
            _ => drop(
                world.by("a1").call("release_task", json!({"task_id": read})).expect("released"),
            ),
        }
        let task = world.read(read.as_str());
        assert_eq!((&*task.description, task.status.is_held()), ("Read all.", false), "{ends}");
        assert_eq!(task.planned.and_then(|planned| planned.pending.clone()), None);
        import(&mut world, &format!("{second}\n\n"), false)
            .replies(json!({"modified": [], "reopened": []}));
    }
}

#[test]
fn words_that_stand_twice_need_equal_parents() {
    let plan = |phases: &[(&str, &[&str])]| {
        phases
            .iter()
            .map(|(phase, titles)| format!("## {phase}\n\n{}\n", items(titles)))
            .collect::<String>()
    };
    let first = plan(&[("Alpha", &["Tests"]), ("Beta", &["Tests"])]);
    let (mut world, task) = done_first(&first);
    // The same under other headings: which of the two is done is not known.
    let second = plan(&[("Gamma", &["Tests"]), ("Delta", &["Tests"])]);
    let reply = import(&mut world, &second, false).expect("imported");
    assert_eq!((done(&world), world.status(&task)), (vec![], TaskStatus::Done));
    assert_eq!(reply["reworded"][0]["done"], json!(task), "{reply}");

    let (mut world, task) = done_first(&first);
    let reply = import(&mut world, &plan(&[("Beta", &["Tests"]), ("Alpha", &["Tests"])]), false)
        .expect("imported");
    assert_eq!((world.read(&task).status, &reply["reworded"]), (TaskStatus::Done, &Value::Null));
    assert_eq!(
        world.read(&task).parent,
        Some(world.state.tasks().find(|one| one.headline() == "Alpha").expect("it").id.clone())
    );
}

#[test]
fn equal_titles_beside_each_other_are_paired_in_order() {
    let (mut world, task) = done_first(&items(&["Review", "Write", "Review"]));
    import(&mut world, &items(&["New", "Review", "Review", "Write"]), false)
        .replies(json!({"reworded": null}));
    assert_eq!((done(&world), world.status(&task)), (vec!["Review".to_owned()], TaskStatus::Done));
    assert_eq!(world.read(&task).path.as_deref(), Some("P1"));
    // Three for two: only what is open is surely the same.
    let reply =
        import(&mut world, &items(&["Review", "Review", "Review"]), false).expect("imported");
    assert_eq!(done(&world), Vec::<String>::new());
    assert_eq!(reply["reworded"][0]["done"], json!(task), "{reply}");
}

#[test]
fn what_a_later_version_calls_off_is_called_off_and_may_come_back() {
    let mut world = World::new().agent("a1");
    import(&mut world, FIRST, false).expect("imported");
    let (read, check, print) =
        (at(&world, "P1.M1").id, at(&world, "P1.M2").id, at(&world, "P2.M2").id);
    world.claim("a1", read.as_str());
    let second = FIRST
        .replace("[ ] Check", "[ ] ~~Check~~")
        .replace("[ ] Print", "[-] Print")
        .replace("[ ] Read", "[ ] ~~Read~~");
    for dry_run in [true, false] {
        let reply = import(&mut world, &second, dry_run).expect("imported");
        assert_eq!(names(&reply, "called_off"), ["Check", "Print"]);
        assert_eq!(names(&reply, "ticked"), ["Read"]);
    }
    let of = |world: &World| [&read, &check, &print].map(|id| world.status(id.as_str()));
    assert_eq!(of(&world), [TaskStatus::Claimed, TaskStatus::Obsolete, TaskStatus::Cancelled]);
    import(&mut world, &second, false).replies(json!({"unchanged": true}));
    world.by("a1").call("release_task", json!({"task_id": read})).expect("released");
    import(&mut world, &second, false).replies(json!({"called_off": [{"task": read}]}));
    assert_eq!(world.status(read.as_str()), TaskStatus::Obsolete);
    world.nobody().call("retry_task", json!({"task_id": print})).expect("retried");
    import(&mut world, &format!("{second}\n"), false).replies(json!({"called_off": null}));
    assert_eq!(
        world.status(print.as_str()),
        TaskStatus::Available,
        "it was retried by somebody who knew"
    );
    let reply = import(&mut world, FIRST, false).expect("imported");
    assert_eq!(names(&reply, "reopened"), ["Read", "Check"]);
    assert_eq!(of(&world), [TaskStatus::Available; 3]);
}

#[test]
fn items_are_claimed_in_the_order_of_the_file_whenever_they_were_added() {
    let mut world = World::new().agent("a1").agent("a2").agent("a3");
    import(&mut world, &items(&["One", "Two", "Three"]), false).expect("imported");
    world.create("own", json!({}));
    let seven = ["Zero", "Three", "One", "One and a half", "Two", "Four"];
    import(&mut world, &items(&seven), false).expect("imported");
    import(&mut world, &format!("{}\n", items(&seven)), false).replies(json!({"kept": 6}));
    let mut claimed = Vec::new();
    for number in 0..7 {
        if number == 2 {
            // As after a start.
            let document = world.state.to_document();
            world = world.holding(|held| *held = document);
        }
        let task = world.next("a1")["task"].clone();
        claimed.push(task["title"].as_str().unwrap_or_default().to_owned());
        world.complete("a1", task["id"].as_str().expect("an id"));
    }
    assert_eq!(claimed, ["Zero", "Three", "One", "One and a half", "Two", "", "Four"]);
}
