//! Boards at random: what is exported, imported into an empty board and exported again is the same.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{reply, run, statuses, texts, write};
use crate::harness::{Board, Client, size};

const FORMATS: [&str; 5] = ["task-master", "backlog-md", "beads", "csv", "pipeline"];

/// Titles, descriptions and tags with what formats use themselves.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("Parser"),
        Just("#12"),
        Just("\"quoted\""),
        Just("a: b"),
        Just("[x]"),
        Just("ü, ö;"),
        Just("- [ ]"),
        Just("{}"),
        Just("yes"),
        Just("'1.2'"),
        Just("--- |"),
        Just("(depends on Parser)"),
        Just("=1+1"),
        Just("0x10"),
        Just("done"),
    ];
    prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "))
}

fn item() -> impl Strategy<Value = Value> {
    let status = prop_oneof![4 => Just("Planned"), 2 => Just("Complete"), 1 => Just("Failed"), 1 => Just("Cancelled")];
    let text = || {
        prop::option::of(prop::collection::vec(words(), 1..3).prop_map(|lines| lines.join("\n")))
    };
    (words(), text(), text(), status, 1..=10_u8, prop::collection::vec("[a-z]{1,4}", 0..3)).prop_map(
        |(title, description, hints, status, priority, tags)| {
            json!({"title": title, "description": description, "hints": hints, "status": status, "priority": priority,
                "tags": tags})
        },
    )
}

/// Items with, for each, whether it stands below the one before and how far back lies what it
/// depends on.
fn plan() -> impl Strategy<Value = Value> {
    prop::collection::vec((item(), 0..3_usize, prop::option::of(1..6_usize)), 1..14).prop_map(
        |items| {
            let mut flat: Vec<(Value, usize)> = Vec::new();
            for (number, (mut item, level, back)) in items.into_iter().enumerate() {
                let level = level.min(flat.last().map_or(0, |(_, level)| level + 1));
                item["source"] = json!({"format": "random", "id": number.to_string()});
                // Only what ended above the same level can be waited for without a circle.
                let on = back.and_then(|back| number.checked_sub(back)).filter(|on| {
                    let between =
                        flat[*on + 1..].iter().map(|(_, level)| *level).chain([level]).min();
                    between.is_some_and(|between| between <= flat[*on].1)
                });
                item["depends"] = json!(on.iter().map(ToString::to_string).collect::<Vec<_>>());
                flat.push((item, level));
            }
            let mut open: Vec<Value> = vec![json!({"items": []})];
            for (item, level) in flat {
                fold(&mut open, level);
                open.push(item);
            }
            fold(&mut open, 0);
            open.remove(0)
        },
    )
}

/// Puts what stands deeper into what it stands below.
fn fold(open: &mut Vec<Value>, level: usize) {
    while open.len() > level + 1 {
        let item = open.pop().unwrap();
        let above = open.last_mut().unwrap();
        if above["items"].is_null() {
            above["items"] = json!([]);
        }
        above["items"].as_array_mut().unwrap().push(item);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: size("EXCHANGE_CASES", 4) as u32, ..ProptestConfig::default() })]

    #[test]
    fn an_export_of_an_import_of_an_export_is_that_export(plan in plan()) {
        let board = Board::new();
        write(&board, "plan.json", &plan.to_string());
        reply(&board, &["import", "plan.json"]);
        for format in FORMATS {
            let place = format!("out/{format}");
            fs::create_dir_all(board.base().join(&place)).unwrap();
            reply(&board, &["export", format, &place]);
            let first = texts(&board.base().join(&place));
            let other = Board::new();
            first.iter().for_each(|(name, text)| _ = write(&other, &format!("in/{name}"), text));
            let path = match format {
                "csv" => "in/tasks.csv",
                "pipeline" => "in/tasks.json",
                _ => "in",
            };
            reply(&other, &["import", format, path]);
            let verdict = reply(&other, &["verify", format, path]);
            prop_assert_eq!(&verdict["differences"], &json!([]), "{}", format);
            let again = reply(&other, &["import", format, path]);
            prop_assert_eq!(&again["kept"], &again["items"], "{}", format);
            fs::create_dir_all(other.base().join(&place)).unwrap();
            reply(&other, &["export", format, &place]);
            prop_assert_eq!(&first, &texts(&other.base().join(&place)), "{}", format);
        }
    }
}

/// What a format calls each status of the board.
type Called = [(&'static str, &'static str); 6];

/// Formats whose items are nested, with their words for statuses and what each of the board's is
/// called.
const NESTED: [(&str, &[&str], Called); 3] = [
    (
        "pipeline",
        &["Planned", "Researching", "Ready", "Implementing", "Complete", "Failed", "Obsolete"],
        [
            ("available", "Planned"),
            ("claimed", "Implementing"),
            ("in_progress", "Implementing"),
            ("done", "Complete"),
            ("failed", "Failed"),
            ("cancelled", "Obsolete"),
        ],
    ),
    (
        "task-master",
        &["pending", "in-progress", "done", "review", "deferred", "cancelled", "blocked"],
        [
            ("available", "pending"),
            ("claimed", "in-progress"),
            ("in_progress", "in-progress"),
            ("done", "done"),
            ("failed", "cancelled"),
            ("cancelled", "cancelled"),
        ],
    ),
    (
        "beads",
        &["open", "in_progress", "blocked", "closed", "hooked"],
        [
            ("available", "open"),
            ("claimed", "in_progress"),
            ("in_progress", "in_progress"),
            ("done", "closed"),
            ("failed", "closed"),
            ("cancelled", "closed"),
        ],
    ),
];

/// Ids of items as places below each other, with the number of a word for the status of each.
fn outline() -> impl Strategy<Value = Vec<(Vec<usize>, usize)>> {
    prop::collection::vec((0..4_usize, 0..100_usize), 2..10).prop_map(|items| {
        let mut at: Vec<usize> = Vec::new();
        let placed = items.into_iter().map(|(level, word)| {
            at.truncate(level + 1);
            if at.len() > level {
                at[level] += 1
            } else {
                at.push(1)
            }
            (at.clone(), word)
        });
        placed.collect()
    })
}

/// A file of the format with these items; task-master has two levels.
fn file_of(format: &str, words: &[&str], outline: &[(Vec<usize>, usize)]) -> String {
    const KINDS: [(&str, &str); 4] =
        [("Phase", "milestones"), ("Milestone", "tasks"), ("Task", "subtasks"), ("Subtask", "")];
    let joined = |at: &[usize]| at.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let mut lines = String::new();
    let mut open: Vec<Value> = vec![json!({"items": []})];
    for (at, word) in outline {
        let word = words[word % words.len()];
        let level = if format == "task-master" { at.len().min(2) - 1 } else { at.len() - 1 };
        fold(&mut open, level);
        let title = format!("Work {}", joined(at));
        let mut item = json!({"title": title, "status": word});
        match format {
            "pipeline" => {
                let letters = at.iter().zip(["P", "M", "T", "S"]);
                let id: Vec<_> =
                    letters.map(|(number, letter)| format!("{letter}{number}")).collect();
                item["id"] = json!(id.join("."));
                item["type"] = json!(KINDS[level].0);
            }
            "task-master" => {
                let before = open.last().unwrap()["items"].as_array().map_or(0, Vec::len);
                item["id"] = json!(before + 1);
                item["dependencies"] = json!([]);
            }
            _ => {
                item["id"] = json!(format!("bd-{}", joined(at)));
                item["priority"] = json!(2);
                item["issue_type"] = json!("task");
                if at.len() > 1 {
                    let on = json!({"issue_id": item["id"], "type": "parent-child",
                        "depends_on_id": format!("bd-{}", joined(&at[..at.len() - 1]))});
                    item["dependencies"] = json!([on]);
                }
                lines.push_str(&format!("{item}\n"));
            }
        }
        open.push(item);
    }
    fold(&mut open, 0);
    let items = open[0]["items"].take();
    let named = |name: fn(usize) -> &'static str| renamed(items.clone(), 0, name);
    match format {
        "pipeline" => json!({"backlog": named(|level| KINDS[level].1)}).to_string(),
        "task-master" => json!({"master": {"tasks": named(|_| "subtasks")}}).to_string(),
        _ => lines,
    }
}

/// The items with their parts in the field that the format has for them.
fn renamed(items: Value, level: usize, name: fn(usize) -> &'static str) -> Value {
    let Value::Array(items) = items else { return json!([]) };
    let item = |mut item: Value| {
        let parts = renamed(item["items"].take(), level + 1, name);
        item.as_object_mut().unwrap().remove("items");
        if !name(level).is_empty() {
            item[name(level)] = parts;
        }
        item
    };
    items.into_iter().map(item).collect()
}

/// The word of each item in a file, by its title.
fn words_in(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut open: Vec<Value> = values.map(Result::unwrap).collect();
    while let Some(value) = open.pop() {
        if let (Some(title), Some(status)) = (value["title"].as_str(), value["status"].as_str()) {
            found.insert(title.to_owned(), status.to_owned());
        }
        match value {
            Value::Object(fields) => open.extend(fields.into_values()),
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    found
}

/// Status of each task by its title.
fn by_title(board: &Board) -> BTreeMap<String, String> {
    let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = tasks.as_array().unwrap().iter();
    tasks.map(|task| (text(&task["title"]), text(&task["status"]))).collect()
}

/// Works on a task as far as the board lets it.
fn work(client: &mut Client, task: &str, how: usize) {
    let given = json!({"agent_id": "ada", "task_id": task});
    let with = |field: &str, value: Value| {
        let mut given = given.clone();
        given[field] = value;
        given
    };
    if how < 3 {
        client.call("claim_task", given.clone());
    }
    let (tool, given) = match how {
        0 => ("complete_task", with("output", json!("made"))),
        1 => ("fail_task", with("error", json!("broken"))),
        2 => return,
        3 => ("cancel_task", json!({"task_id": task})),
        4 => ("retry_task", json!({"task_id": task})),
        _ => ("reset_tasks", json!({"task_ids": [task]})),
    };
    client.call(tool, given);
}

/// Retries what is called off above open tasks: in a file, what is below it is called off, too.
fn reopen_above_open(board: &Board, client: &mut Client) {
    loop {
        let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
        let tasks = tasks.as_array().unwrap();
        let status = |id: &Value| {
            let found = tasks.iter().find(|task| task["id"] == *id);
            found.map_or("", |task| task["status"].as_str().unwrap())
        };
        let is_off = |task: &&Value| {
            let is_open = ["available", "claimed", "in_progress", "failed"]
                .contains(&task["status"].as_str().unwrap());
            is_open && ["cancelled", "obsolete"].contains(&status(&task["parent"]))
        };
        let Some(task) = tasks.iter().find(is_off) else { return };
        client.ok("retry_task", json!({"task_id": task["parent"]}));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: size("EXCHANGE_CASES", 4) as u32, ..ProptestConfig::default() })]

    #[test]
    fn a_word_of_a_file_stays_until_the_board_has_another_status(
        outline in outline(),
        acts in prop::collection::vec((0..100_usize, 0..6_usize), 1..12),
    ) {
        for (format, words, called) in NESTED {
            let board = Board::new();
            let file = file_of(format, words, &outline);
            write(&board, "in.json", &file);
            reply(&board, &["import", format, "in.json"]);
            let (before, first) = (words_in(&file), by_title(&board));
            let exported = |board: &Board| run(board, &["export", format]).stdout;
            let unchanged = exported(&board);
            prop_assert_eq!(&words_in(&unchanged), &before, "{}", format);
            let again = Board::new();
            write(&again, "in.json", &unchanged);
            reply(&again, &["import", format, "in.json"]);
            prop_assert_eq!(exported(&again), unchanged, "{}", format);

            let mut client = board.mcp();
            client.ok("register_agent", json!({"agent_id": "ada", "role": "leader", "max_concurrent": 50}));
            let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
            let tasks = tasks.as_array().unwrap();
            for (task, how) in &acts {
                work(&mut client, tasks[task % tasks.len()]["id"].as_str().unwrap(), *how);
            }
            reopen_above_open(&board, &mut client);
            let (now, after) = (by_title(&board), exported(&board));
            for (title, word) in words_in(&after) {
                let expected = match &now[&title] {
                    same if *same == first[&title] => &*before[&title],
                    status => called.iter().find(|(known, _)| known == status).unwrap().1,
                };
                prop_assert_eq!(word, expected, "{} of {} in {}", title, format, after);
            }
            write(&board, "out.json", &after);
            let verdict = reply(&board, &["verify", format, "out.json"]);
            prop_assert_eq!(&verdict["differences"], &json!([]), "{}", format);
            let other = Board::new();
            write(&other, "in.json", &after);
            reply(&other, &["import", format, "in.json"]);
            let open = |(id, status): (String, String)| {
                let is_held = ["claimed", "in_progress"].contains(&status.as_str());
                (id, if is_held { "available".to_owned() } else { status })
            };
            let expected: Vec<_> = statuses(&board).into_iter().map(open).collect();
            prop_assert_eq!(statuses(&other), expected, "{}: {}", format, after);
        }
    }
}
