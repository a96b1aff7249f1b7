//! Lines like `depends: P1.M1.T2` below an item.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::super::{files, is_something, list, minutes, priority, stated};
use crate::state::plan::{Named, Names};
use crate::state::review::Review;

static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*(\**)(depends(?:[ _]on)?|dependenc(?:y|ies)|after|blocked[ _]by|priority|estimate|review|files|hints|tags|status|metadata)(\**)\s*:(.*)$",
    )
    .ok()
});
static WORDED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\(?(?:depends\s+on|after|blocked\s+by)\s+([^\s:].*?)\)?$").ok()
});
static OTHER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\**([A-Za-z][A-Za-z_-]{1,23})\**:\**\s+[^\s/].*$").ok());
/// Words before a colon that begin a sentence.
const SPEECH: [&str; 14] = [
    "note",
    "notes",
    "hint",
    "tip",
    "todo",
    "warning",
    "example",
    "see",
    "nb",
    "caution",
    "important",
    "http",
    "https",
    "remember",
];

/// Name and value of a line like `depends: P1`, whose name may be in bold.
pub(crate) fn field(line: &str) -> Option<(String, &str)> {
    let found = FIELD.as_ref()?.captures(line)?;
    let [opened, name, closed, value] =
        [1, 2, 3, 4].map(|group| found.get(group).map_or("", |one| one.as_str()));
    // Otherwise the stars belong to the value, as in `files:**/*.rs`.
    let is_closed_behind = !opened.is_empty() && closed.is_empty();
    let value = if is_closed_behind { value.trim_start_matches('*') } else { value };
    Some((name.to_lowercase().replace('_', " "), value.trim()))
}

/// What a line like `depends on the parser` names.
pub(super) fn worded(line: &str) -> Option<&str> {
    WORDED.as_ref()?.captures(line.trim())?.get(1).map(|named| named.as_str().trim_end_matches('.'))
}

/// The name of a line that looks like a field and is not one.
pub(super) fn other(line: &str) -> Option<&str> {
    let name = OTHER.as_ref()?.captures(line.trim())?.get(1)?.as_str();
    let is_speech = SPEECH.iter().any(|word| name.eq_ignore_ascii_case(word));
    (!is_speech && field(line).is_none()).then_some(name)
}

pub(super) fn is_list(name: &str) -> bool {
    !matches!(name, "priority" | "estimate" | "review" | "status" | "hints" | "metadata")
}

pub(super) fn is_dependency(name: &str) -> bool {
    name.starts_with("depend") || matches!(name, "after" | "blocked by")
}

/// True for names that prose also uses, such as those of libraries that are needed.
pub(super) fn is_ambiguous(name: &str) -> bool {
    name.starts_with("dependenc") || name == "after"
}

/// True if the values may follow as entries of a list.
pub(super) fn is_left_open(value: &str) -> bool {
    value.is_empty() || value.ends_with(',')
}

/// True if `given` names an item.
pub(super) fn names(known: &Names, given: &str) -> bool {
    let path = given.trim_matches(['`', '*', ' ']);
    crate::state::hierarchy::is_path(path) || known.find(given, None) != Named::None
}

/// True if the value suits the field: prose may begin with such a word, too.
pub(super) fn fits(known: &Names, name: &str, value: &str) -> bool {
    match name {
        "status" => stated(value).is_some(),
        "priority" => priority(value).is_some(),
        "estimate" => minutes(value).is_some(),
        "review" => Review::read(value).is_some(),
        "metadata" => serde_json::from_str::<Map<String, Value>>(value).is_ok(),
        "files" => files(value).iter().all(|file| !file.contains(char::is_whitespace)),
        name if is_ambiguous(name) => {
            let items = list(value.trim_matches(['[', ']']));
            items.is_empty() && name != "after" || items.iter().any(|item| names(known, item))
        }
        _ => true,
    }
}

/// True if the line continues the values before it.
pub(super) fn continues(known: &Names, name: &str, line: &str) -> bool {
    let mut values = line.split(',').map(|value| value.trim().trim_matches(['`', ']']));
    if is_dependency(name) {
        values.any(|value| is_something(value) && names(known, value))
    } else {
        values.all(|value| !value.contains(char::is_whitespace))
    }
}
