//! Boards at random: what is exported, imported into an empty board and exported again is the same.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{reply, texts, write};
use crate::harness::{Board, size};

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
