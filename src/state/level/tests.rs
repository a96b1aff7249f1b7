use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};

use super::needed::level_by;
use super::*;
use crate::state::State;
use crate::state::document::Document;
use crate::state::event::{Event, KINDS, NEWER, VERSION};

/// What level 1 has: a line for each kind, for each field with what it holds, and for each value of
/// a list of values. Builds of that level are in the world, so this never changes.
const LEVEL_1: &str = include_str!("level-1.txt");

/// What events and the state file are made of: kinds and types with their fields and values.
#[derive(Default)]
struct Types(BTreeMap<String, BTreeMap<String, Holds>>);

/// What a field holds, in words, and the types in that, each with the step from the field to it.
#[derive(Default)]
struct Holds {
    words: String,
    types: Vec<(String, &'static str)>,
}

impl Types {
    fn all() -> Self {
        let mut types = Self::default();
        let events = types.read::<Event>();
        for variant in events["oneOf"].as_array().unwrap() {
            let kind = variant["properties"]["kind"]["const"].as_str().unwrap();
            types.add(kind, variant);
        }
        let document = types.read::<Document>();
        types.add(STATE, &document);
        types
    }

    /// Adds the types that `T` is made of, and returns its schema.
    fn read<T: JsonSchema>(&mut self) -> Value {
        let schema = serde_json::to_value(schema_for!(T)).unwrap();
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            self.add(name, definition);
        }
        schema
    }

    fn add(&mut self, name: &str, schema: &Value) {
        let list = |key: &str| schema[key].as_array().cloned().unwrap_or_default();
        for variant in ["oneOf", "anyOf", "allOf"].into_iter().flat_map(list) {
            self.add(name, &variant);
        }
        let fields = self.0.entry(name.to_owned()).or_default();
        for value in list("enum").iter().chain(schema.get("const")) {
            fields.insert(
                format!("={}", value.as_str().unwrap()),
                Holds { words: "a value".to_owned(), ..Holds::default() },
            );
        }
        for (field, held) in schema["properties"].as_object().into_iter().flatten() {
            fields.insert(format!(".{field}"), held_by(held));
        }
        if let Some(reference) = schema["$ref"].as_str() {
            fields.insert(String::new(), of_type(reference));
        }
    }

    fn lines(&self) -> BTreeMap<String, (&str, &str)> {
        let fields = self
            .0
            .iter()
            .flat_map(|(name, fields)| fields.iter().map(move |(field, held)| (name, field, held)));
        let mut lines: BTreeMap<_, _> = fields
            .map(|(name, field, held)| {
                (format!("{name}{field}: {}", held.words), (name.as_str(), field.as_str()))
            })
            .collect();
        lines.extend(KINDS.map(|kind| (kind.to_owned(), (kind, ""))));
        lines
    }

    /// The lines of [`NEWER`] by which `part` of type `wanted` is recognised wherever it may be
    /// said. A document in an event says its level itself, and a task that retires was in the
    /// state, whose level is known.
    fn places(&self, wanted: &str, part: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for root in KINDS.into_iter().chain([STATE]) {
            self.walk(root, "", (wanted, part), &mut Vec::new(), &mut |path| {
                found.push((root.to_owned(), path.trim_start_matches('.').to_owned()));
            });
        }
        found
    }

    fn walk(
        &self,
        at: &str,
        path: &str,
        wanted: (&str, &str),
        above: &mut Vec<String>,
        found: &mut dyn FnMut(String),
    ) {
        if at == wanted.0 {
            found(format!("{path}{}", wanted.1));
        }
        if above.iter().any(|one| one == at) {
            return;
        }
        above.push(at.to_owned());
        let is_known =
            |field: &str| field == ".document" || (at, field) == ("tasks_retired", ".tasks");
        for (field, held) in
            self.0.get(at).into_iter().flatten().filter(|(field, _)| !is_known(field))
        {
            for (inner, step) in &held.types {
                self.walk(inner, &format!("{path}{field}{step}"), wanted, above, found);
            }
        }
        above.pop();
    }
}

fn of_type(reference: &str) -> Holds {
    let name = reference.rsplit('/').next().unwrap().to_owned();
    Holds { words: name.clone(), types: vec![(name, "")] }
}

fn held_by(schema: &Value) -> Holds {
    if let Some(reference) = schema["$ref"].as_str() {
        return of_type(reference);
    }
    if let Some(value) = schema["const"].as_str() {
        return Holds { words: value.to_owned(), ..Holds::default() };
    }
    let several = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|key| schema[key].as_array());
    let several = several.into_iter().flatten().map(held_by).collect::<Vec<_>>();
    let (parts, step) = match &schema["type"] {
        Value::String(kind) if kind == "array" && schema["prefixItems"].is_array() => {
            (schema["prefixItems"].as_array().unwrap().iter().map(held_by).collect(), "")
        }
        Value::String(kind) if kind == "array" => (vec![held_by(&schema["items"])], ""),
        Value::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            (vec![held_by(&schema["additionalProperties"])], ".*")
        }
        Value::String(kind) => return Holds { words: kind.clone(), ..Holds::default() },
        Value::Array(kinds) => {
            let alone = |kind: &Value| {
                let mut alone = schema.clone();
                alone["type"] = kind.clone();
                held_by(&alone)
            };
            (kinds.iter().map(alone).collect(), "|")
        }
        _ if several.is_empty() => return Holds { words: "any".to_owned(), ..Holds::default() },
        _ => (several, "|"),
    };
    let words: Vec<_> = parts.iter().map(|part| part.words.as_str()).collect();
    let words = match step {
        "" => format!("[{}]", words.join(", ")),
        ".*" => format!("{{{}}}", words.join(", ")),
        between => words.join(between),
    };
    let types = parts.into_iter().flat_map(|part| part.types);
    Holds {
        words,
        types: types.map(|(name, inner)| (name, if step == ".*" { step } else { inner })).collect(),
    }
}

fn has_line((kind, part): &(String, String)) -> bool {
    let covers = |line: &Newer| {
        let rest = part.strip_prefix(line.part);
        line.kind == kind
            && (line.part.is_empty()
                || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '='])))
    };
    NEWER.iter().any(covers)
}

#[test]
fn whatever_came_after_level_1_has_a_line_with_its_level() {
    let types = Types::all();
    let lines = types.lines();
    let first: BTreeSet<_> = LEVEL_1.lines().collect();
    let gone: Vec<_> = first.iter().filter(|line| !lines.contains_key(**line)).collect();
    assert!(gone.is_empty(), "level 1 has this, and what it wrote must load for ever: {gone:#?}");
    let new = lines.iter().filter(|(line, _)| !first.contains(line.as_str()));
    let places: BTreeSet<_> = new.flat_map(|(_, (name, part))| types.places(name, part)).collect();
    let unknown: Vec<_> = places
        .iter()
        .filter(|place| !has_line(place))
        .map(|(kind, part)| {
            format!("Newer::new(\"{kind}\", \"{part}\", {}),", VERSION.max(FIRST + 1))
        })
        .collect();
    assert!(
        unknown.is_empty(),
        "these have no level; see the rules in state/level.rs: {unknown:#?}"
    );
}

#[test]
fn every_line_is_of_something_that_level_1_did_not_have() {
    let types = Types::all();
    let first: BTreeSet<_> = LEVEL_1.lines().collect();
    let lines = types.lines();
    let new = lines.iter().filter(|(line, _)| !first.contains(line.as_str()));
    let places: BTreeSet<_> = new.flat_map(|(_, (name, part))| types.places(name, part)).collect();
    for line in NEWER {
        assert!(places.contains(&(line.kind.to_owned(), line.part.to_owned())), "{line:?}");
        assert!(line.level > FIRST, "{line:?}");
    }
}

const LINES: [Newer; 5] = [
    Newer::new("resumed", "", 2),
    Newer::new("paused", "reason", 3),
    Newer::new("agent_registered", "role=observer", 4),
    Newer::new("tasks_created", "tasks.context.metadata", 5),
    Newer::new("tasks_retired", "tasks.*", 6),
];

fn level(event: Value) -> u32 {
    level_by(&serde_json::from_value(event).unwrap(), &LINES)
}

#[test]
fn an_event_has_the_highest_level_of_what_it_says() {
    assert_eq!(level(json!({"kind": "started", "task": "t"})), 1);
    assert_eq!(level(json!({"kind": "resumed"})), 2, "the kind is new");
    assert_eq!(level(json!({"kind": "paused"})), 1, "a new field is left out");
    assert_eq!(level(json!({"kind": "paused", "reason": "lunch"})), 3, "a new field is said");
    let registered =
        |role| json!({"kind": "agent_registered", "agent": "a", "role": role, "max_concurrent": 1});
    assert_eq!(level(registered("worker")), 1);
    assert_eq!(level(registered("observer")), 4, "a new value of an older field");
    let task = json!({"id": "t", "description": "d", "priority": 5, "max_attempts": 3});
    let mut with_metadata = task.clone();
    with_metadata["context"] = json!({"metadata": {"key": "value"}});
    assert_eq!(level(json!({"kind": "tasks_created", "tasks": [task]})), 1);
    assert_eq!(
        level(json!({"kind": "tasks_created", "tasks": [task, with_metadata]})),
        5,
        "in one of several"
    );
}

#[test]
fn a_document_in_an_event_says_its_own_level() {
    let mut document = State::new().to_document();
    document.board.schema_version = 7;
    let restored =
        Event::StateRestored { restored_seq: 1, snapshot: None, document: Box::new(document) };
    assert_eq!(level_by(&restored, &LINES), 7);
}

#[test]
fn the_newest_of_no_lines_is_the_first() {
    assert_eq!((newest(&[]), newest(&LINES)), (FIRST, 6));
}
