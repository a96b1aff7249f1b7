//! What is wanted of an argument, in words and with an example. Nothing here is longer than a line.

use serde_json::Value;

use super::shape::{Record, Shape};

/// Most bytes of a refusal.
const LONGEST: usize = 200;
/// Most bytes of a place or name that is repeated.
const LONGEST_NAME: usize = 60;

/// Examples of texts, by the name of the argument, and what a list of them is a list of.
const TEXTS: [(&str, &str, &str); 20] = [
    ("agent_id", "swift-otter", "agents"),
    ("task_id", "task-7f3k", "task ids"),
    ("task_ids", "task-7f3k", "task ids"),
    ("dependencies", "task-7f3k", "task ids"),
    ("completed_tasks", "task-7f3k", "task ids"),
    ("pending_tasks", "task-7f3k", "task ids"),
    ("supersedes", "disc-7f3k", "ids of discoveries"),
    ("reservations", "res-7f3k", "ids of reservations"),
    ("acknowledge", "msg-7f3k", "ids of messages"),
    ("stopping", "run-7f3k", "ids of runs"),
    ("kinds", "claimed", "kinds of events"),
    ("capabilities", "rust", "capabilities"),
    ("tags", "backend", "tags"),
    ("files", "src/a.rs", "paths"),
    ("path", "P1.M2.T3", "paths"),
    ("scope", "P1.M2", "paths"),
    ("since", "2026-03-01T12:00:00Z", "times"),
    ("statuses", "done", "statuses"),
    ("name", "resume", "names"),
    ("prompt", "Fix the failing test", "prompts"),
];

/// `text` on one line.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `text` on one line, within the limit.
pub(super) fn line(text: &str) -> String {
    let plain = plain(text);
    if plain.len() <= LONGEST {
        return plain;
    }
    let end = (0..=LONGEST - "…".len())
        .rev()
        .find(|end| plain.is_char_boundary(*end))
        .unwrap_or_default();
    format!("{}…", &plain[..end])
}

/// A name that the caller has made up, fit to be repeated.
pub(super) fn name(given: &str) -> String {
    let plain = given
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.#[]".contains(c) { c } else { '?' });
    let short: String = plain.clone().take(LONGEST_NAME).collect();
    if plain.count() > LONGEST_NAME { format!("{short}…") } else { short }
}

/// What is wanted, such as `a list of paths, such as ["src/a.rs"]`.
pub(super) fn wanted(field: &str, shape: &Shape) -> String {
    match shape {
        Shape::Choice(values) => format!("one of {}", values.join(", ")),
        Shape::Flag => "true or false".to_owned(),
        Shape::Any => "any JSON".to_owned(),
        Shape::Whole { least, .. } => {
            let from = if *least == 1 { " from 1" } else { "" };
            format!("a whole number{from}, such as {}", example(field, shape))
        }
        Shape::Number => "a number, such as 0.5".to_owned(),
        Shape::Text => format!("text, such as {}", example(field, shape)),
        Shape::List(item) => {
            format!("a list of {}, such as {}", items(field, item), example(field, shape))
        }
        Shape::Record(_) | Shape::Map(_) => format!("an object, such as {}", example(field, shape)),
    }
}

/// What the items of a list are.
fn items(field: &str, item: &Shape) -> &'static str {
    match item {
        Shape::Text => of_name(field).map_or("texts", |(_, _, items)| items),
        Shape::Choice(_) => "names",
        Shape::Record(_) | Shape::Map(_) => "objects",
        Shape::Whole { .. } | Shape::Number => "numbers",
        _ => "values",
    }
}

fn of_name(field: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let is_time = field.ends_with("_since") || field.ends_with("_before");
    let known = TEXTS.iter().find(|(name, ..)| field == *name);
    let like = |like: &str| TEXTS.iter().find(|(name, ..)| *name == like);
    known
        .or_else(|| like("files").filter(|_| field.contains("files")))
        .or_else(|| like("since").filter(|_| is_time))
}

/// An example of such a value, as JSON.
fn example(field: &str, shape: &Shape) -> String {
    match shape {
        Shape::Text => {
            Value::from(of_name(field).map_or("…", |(_, example, _)| example)).to_string()
        }
        Shape::Choice(values) => Value::from(values.first().cloned()).to_string(),
        Shape::Whole { .. } if field.ends_with("seconds") => "600".to_owned(),
        Shape::Whole { .. } | Shape::Number => "3".to_owned(),
        Shape::Flag => "true".to_owned(),
        Shape::Any => "{}".to_owned(),
        Shape::List(item) => format!("[{}]", example(field, item)),
        Shape::Map(item) => format!(r#"{{"name": {}}}"#, example("name", item)),
        Shape::Record(record) => object(record),
    }
}

/// The required fields, or the first if none is.
fn object(record: &Record) -> String {
    let required = record.current().filter(|field| field.required);
    let shown: Vec<_> = required
        .chain(record.current())
        .take(record.current().filter(|field| field.required).count().max(1))
        .collect();
    let fields: Vec<_> = shown
        .iter()
        .map(|field| format!(r#""{}": {}"#, field.name, example(&field.name, &field.shape)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}
