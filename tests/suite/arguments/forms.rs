//! Every argument of every operation in other forms than the schema's: misspelt, wrapped, as text,
//! beside others that there are not, contradicting itself. What comes of it is what the plain call
//! says, or a refusal.

use callboard::ops::{self, Entry, Reader, Toolset, understand};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::wrong::{required, right};
use crate::harness::size;

const READERS: [Reader; 2] = [Reader::Model(Toolset::Full), Reader::Program];

/// The parameters that were understood, and what the reply says of that.
fn read(entry: &'static Entry, given: Value, reader: Reader) -> Result<(Value, String), String> {
    match understand(entry, given, reader) {
        Ok(call) => {
            let mut params = call.prepared.params();
            if let Some(fields) = params.as_object_mut()
                && ["create_task", "register_agent"].contains(&entry.name)
            {
                fields.remove("metadata");
            }
            Ok((params, call.warning.unwrap_or_default()))
        }
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// Other spellings of a name: some are slips, some only look different.
fn spelt(name: &str, how: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    let middle = letters.len() / 2;
    match how {
        0 => letters.iter().enumerate().filter(|(at, _)| *at != middle).map(|(_, c)| c).collect(),
        1 => {
            let mut swapped = letters.clone();
            swapped.swap(middle.saturating_sub(1), middle.min(letters.len() - 1));
            swapped.into_iter().collect()
        }
        2 => format!("{name}s"),
        3 => name.to_uppercase(),
        4 => name.replace('_', "-"),
        5 => {
            let mut words = name.split('_');
            let first = words.next().unwrap_or_default().to_owned();
            words.fold(first, |all, word| {
                let mut letters = word.chars();
                let head = letters.next().map(|c| c.to_ascii_uppercase());
                all + &head.into_iter().chain(letters).collect::<String>()
            })
        }
        6 => format!("the_{name}"),
        _ => name.chars().take(4).collect(),
    }
}

const WRAPPERS: [&str; 6] = ["arguments", "params", "input", "args", "kwargs", "parameters"];

/// Names of arguments that models make up.
const EXTRA: [&str; 24] = [
    "older_than",
    "filter",
    "only",
    "where",
    "until",
    "dry_run",
    "force",
    "exclude",
    "status",
    "owner",
    "assignee",
    "subtasks",
    "page",
    "offset",
    "due",
    "if_exists",
    "except",
    "max_age",
    "notify",
    "recursive",
    "state",
    "success",
    "condition",
    "x_custom",
];

fn cases() -> impl Strategy<Value = (usize, prop::sample::Index, usize, usize)> {
    (0..ops::all().len(), any::<prop::sample::Index>(), 0..5_usize, 0..24_usize)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: u32::try_from(size("CALLBOARD_CASES", 2_000)).unwrap(),
        // Many operations have no arguments, and many forms fit few.
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    })]

    #[test]
    fn other_forms_mean_what_the_plain_call_means_or_nothing(
        (place, field, form, how) in cases(), reader in select(&READERS[..]),
    ) {
        let entry = &ops::all()[place];
        let schema = Value::Object(entry.input_schema(true));
        let names: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
        prop_assume!(!names.is_empty());
        let name = names[field.index(names.len())].clone();
        let value = right(&schema["properties"][&name]);
        let mut plain = required(&schema);
        plain.insert(name.clone(), value.clone());
        let without: Map<String, Value> =
            plain.iter().filter(|(one, _)| **one != name).map(|(n, v)| (n.clone(), v.clone())).collect();
        let Ok((meant, _)) = read(entry, Value::Object(plain.clone()), reader) else { return Ok(()) };
        let given = match form {
            0 => {
                let mut given = without.clone();
                let other = spelt(&name, how % 8);
                // What says nothing says nothing under any name.
                prop_assume!(value != json!({}) && !given.contains_key(&other));
                prop_assume!(other == name || !names.contains(&&other));
                given.insert(other, value);
                Value::Object(given)
            }
            1 => {
                let wrapper = WRAPPERS[how % WRAPPERS.len()];
                prop_assume!(!names.iter().any(|one| *one == wrapper));
                let inside = if how % 2 == 0 { json!(plain) } else { json!(json!(plain).to_string()) };
                json!({wrapper: inside})
            }
            2 => {
                let mut given = plain.clone();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                given.insert(name.clone(), Value::from(text));
                Value::Object(given)
            }
            3 => {
                let extra = EXTRA[how % EXTRA.len()];
                prop_assume!(!names.iter().any(|one| *one == extra));
                let mut given = plain.clone();
                given.insert(extra.to_owned(), json!("7 days"));
                Value::Object(given)
            }
            _ => {
                let inside: Map<String, Value> = [(name.clone(), json!("another"))].into_iter().collect();
                let mut given = plain.clone();
                given.insert("arguments".to_owned(), Value::Object(inside));
                prop_assume!(!names.iter().any(|one| *one == "arguments") && value != json!("another"));
                Value::Object(given)
            }
        };
        match (form, read(entry, given.clone(), reader)) {
            (_, Err(refusal)) => prop_assert!(!refusal.is_empty()),
            // Two values of one argument are never one of them.
            (4, Ok((params, _))) => prop_assert!(false, "{} {given}: {params}", entry.name),
            // What is added is kept or refused, and never without a word; a read may ignore how its
            // reply is to look.
            (3, Ok((params, warning))) => {
                prop_assert!(!warning.is_empty(), "{} {given}: {params}", entry.name);
                if !warning.starts_with("took `") {
                    prop_assert_eq!(&params, &meant, "{} {}", entry.name, given);
                }
            }
            // What is called otherwise is another argument that there is, and it is said; or it is
            // this one.
            (0, Ok((params, warning))) if params != meant => {
                prop_assert!(!warning.is_empty(), "{} {given}: {params}", entry.name);
            }
            (_, Ok((params, _))) => prop_assert_eq!(&params, &meant, "{} {}", entry.name, given),
        }
    }
}

/// An example in a refusal can be given as it stands.
#[test]
fn examples_in_refusals_are_valid() {
    let (mut examples, mut wrong) = (0, Vec::new());
    for entry in ops::all() {
        let schema = Value::Object(entry.input_schema(false));
        for (name, _) in schema["properties"].as_object().into_iter().flatten() {
            let mut given = required(&schema);
            given.insert(name.clone(), json!([[[1]]]));
            let Err(refusal) = understand(entry, Value::Object(given.clone()), READERS[0]) else {
                continue;
            };
            let text = refusal.to_string();
            let Some((_, example)) = text.split_once("such as ") else { continue };
            examples += 1;
            let Ok(example) = serde_json::from_str(example) else {
                wrong.push(format!("{}.{name}: {text}", entry.name));
                continue;
            };
            given.insert(name.clone(), example);
            if let Err(refusal) = understand(entry, Value::Object(given), READERS[0]) {
                wrong.push(format!("{}.{name}: {text}: {refusal}", entry.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples > 150, "{examples}");
}
