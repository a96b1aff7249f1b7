//! Every wrong kind of value, at every argument of every tool.

use callboard::ops::{self, Entry, Reader, Toolset, understand};
use serde_json::{Map, Value, json};

use crate::world::World;

const LONGEST_REFUSAL: usize = 200;
const MODEL: Reader = Reader::Model(Toolset::Full);

/// What only the implementation calls things.
const IMPLEMENTATION: [&str; 18] = [
    "invalid type",
    "invalid value",
    ", expected",
    "sequence",
    "struct",
    "variant",
    "unknown field",
    "missing field",
    "u8",
    "u32",
    "u64",
    "i64",
    "usize",
    "f64",
    "serde",
    "null",
    "column",
    "Option",
];

fn wrong_values() -> Vec<Value> {
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let deep_objects = (0..60).fold(json!(1), |inner, _| json!({"a": inner}));
    vec![
        Value::Null,
        json!(true),
        json!(7),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("  "),
        json!("words"),
        json!("\u{1}\n\u{2}"),
        json!("[broken"),
        json!("[broken]"),
        json!("[\"a\","),
        json!("{\"a\":"),
        json!("{\"a\": 1, \"a\": 2}"),
        json!("[[[[1]]]]"),
        json!("[".repeat(10_000)),
        json!("3.5"),
        json!("9999999999999999999999"),
        json!([]),
        json!([[]]),
        json!([{}]),
        json!([null, "", 1]),
        json!([true]),
        json!({}),
        json!({"x": 1}),
        json!({"x".repeat(5_000): {"y": [1]}}),
        json!(vec!["x"; 10_000]),
        json!(vec![json!({"description": "d"}); 10_000]),
        deep,
        deep_objects,
    ]
}

/// A value of the kind that the schema names, with all that is required.
pub(super) fn right(schema: &Value) -> Value {
    if let Some(first) =
        schema["enum"].get(0).or_else(|| schema["oneOf"].get(0)?.get("enum")?.get(0))
    {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("x"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([right(&schema["items"])]),
        Some("object") => Value::Object(required(schema)),
        _ => json!({"a": 1}),
    }
}

pub(super) fn required(schema: &Value) -> Map<String, Value> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), right(&schema["properties"][name]))).collect()
}

/// The name of a place in the arguments, and what puts a value there.
type Hole = (String, Box<dyn Fn(Value) -> Value>);

/// Arguments with a hole at every place where the schema has a field, and the name of that field.
fn holes(schema: &Value) -> Vec<Hole> {
    let mut found: Vec<Hole> = Vec::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let base = required(schema);
        let key = name.clone();
        let filled = move |value: Value| {
            let mut fields = base.clone();
            fields.insert(key.clone(), value);
            Value::Object(fields)
        };
        let is_list = field["type"] == "array";
        let inner = if is_list { &field["items"] } else { field };
        if inner["properties"].is_object() {
            for (within, fill) in holes(inner) {
                let outer = filled.clone();
                let whole = move |value: Value| {
                    outer(if is_list { json!([fill(value)]) } else { fill(value) })
                };
                found.push((within, Box::new(whole)));
            }
        }
        found.push((name.clone(), Box::new(filled)));
    }
    found
}

#[track_caller]
fn assert_form(message: &str, what: &str) {
    assert!(message.len() <= LONGEST_REFUSAL, "{what}: {} bytes: {message}", message.len());
    assert!(!message.contains(char::is_control), "{what}: {message:?} is more than a line");
    let said = IMPLEMENTATION.iter().find(|word| message.contains(*word));
    assert!(said.is_none(), "{what}: {message} says {said:?}");
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

#[test]
fn every_wrong_value_is_understood_or_refused_by_the_name_of_its_argument() {
    let (mut refused, mut understood) = (0, 0);
    for entry in ops::all() {
        let schema = Value::Object(entry.input_schema(false));
        for (name, fill) in holes(&schema) {
            for value in wrong_values() {
                let what = format!("{}.{name} = {}", entry.name, short(&value));
                match understand(entry, fill(value), MODEL) {
                    Ok(_) => understood += 1,
                    Err(refusal) => {
                        refused += 1;
                        let message = refusal.to_string();
                        assert_form(&message, &what);
                        assert!(message.contains(&name), "{what}: {message} does not name {name}");
                        let code = refusal.code();
                        assert!(
                            ["bad_arguments", "over_limit"].contains(&code.as_str()),
                            "{what}: {code}: {message}"
                        );
                    }
                }
            }
        }
    }
    println!("{refused} refused, {understood} understood");
    assert!(refused > 3_000 && understood > 3_000, "{refused} refused, {understood} understood");
}

/// An object with any members is shown as a text, and taken in both forms.
#[test]
fn an_object_with_any_members_is_taken_as_it_is_and_as_its_json() {
    let mut taken = Vec::new();
    for entry in ops::all() {
        let schema = Value::Object(entry.input_schema(false));
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_object = matches!(field["type"].as_str(), None | Some("object"));
            let is_choice = !field["enum"].is_null() || !field["oneOf"].is_null();
            if !is_object || field["properties"].is_object() || is_choice {
                continue;
            }
            let read = |value: Value| {
                let mut given = required(&schema);
                given.insert(name.clone(), value);
                let understood = understand(entry, Value::Object(given), MODEL);
                understood.map(|understood| understood.prepared.params())
            };
            let members =
                [json!({"a": {"b": [1, null]}, "c": "d"}), json!({"a": "b"}), json!({"a": 1})];
            let both =
                members.map(|object| (read(object.clone()), read(object.to_string().into())));
            let (whole, text) = both
                .into_iter()
                .find(|(whole, _)| whole.is_ok())
                .unwrap_or_else(|| panic!("{}.{name} takes no object of these", entry.name));
            let whole = whole.expect("it is taken");
            assert_eq!(text.expect("its JSON is taken, too"), whole, "{}.{name}", entry.name);
            assert!(whole[name].is_object(), "{}.{name}: {whole}", entry.name);
            taken.push(format!("{}.{name}", entry.name));
        }
    }
    for known in ["complete_task.data", "create_task.metadata", "save_checkpoint.kept"] {
        assert!(taken.iter().any(|one| one == known), "{known} is not among {taken:?}");
    }
}

/// What strict clients fill in for an optional argument that a model leaves out.
#[test]
fn blank_optional_arguments_are_none() {
    /// An empty list of these is refused, because a call reaches further without it.
    const WIDER_WITHOUT: [(&str, &str); 4] = [
        ("pause", "agents"),
        ("resume", "agents"),
        ("release_files", "reservations"),
        ("release_files", "files"),
    ];
    const ZERO_COUNTS: [&str; 6] =
        ["since_seq", "wait_seconds", "number", "keep", "seq", "expected_checkpoint"];
    let mut blanks = 0;
    for entry in ops::all() {
        let schema = Value::Object(entry.input_schema(false));
        let read = |given: Value| {
            understand(entry, given, MODEL)
                .unwrap_or_else(|refusal| panic!("{}: {refusal}", entry.name))
        };
        let without = read(right(&schema)).prepared.params();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let blank = match field["type"].as_str() {
                Some("string") => json!(" "),
                Some("integer") if !ZERO_COUNTS.contains(&name.as_str()) => json!(0),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => continue,
            };
            let mut given = required(&schema);
            if given.contains_key(name) {
                continue;
            }
            let is_wider = WIDER_WITHOUT.contains(&(entry.name, name.as_str()));
            for blank in [blank, Value::Null].into_iter().skip(usize::from(is_wider)) {
                given.insert(name.clone(), blank);
                let understood = read(Value::Object(given.clone()));
                assert_eq!(understood.prepared.params(), without, "{}.{name}", entry.name);
                assert_eq!(understood.warning, None, "{}.{name}", entry.name);
                blanks += 1;
            }
        }
    }
    assert!(blanks > 200, "{blanks}");
}

/// The operations whose reply comes from files beside the board.
fn needs_no_archive(entry: &&'static Entry) -> bool {
    understand(entry, right(&Value::Object(entry.input_schema(false))), MODEL)
        .is_ok_and(|call| !call.prepared.fetches())
}

/// Calls that were understood are answered or refused; `World` checks that a refusal records
/// nothing.
#[test]
fn every_operation_takes_what_was_understood() {
    let mut world = World::new().agent("x").task("x").claimed("x", "x");
    world.reader = Reader::Model(Toolset::Full);
    world.replays_seldom = true;
    let mut calls = 0;
    for entry in ops::all().iter().filter(needs_no_archive) {
        let schema = Value::Object(entry.input_schema(false));
        for (name, fill) in holes(&schema) {
            for value in [
                json!(7),
                json!("words"),
                json!(vec!["x"; 10_000]),
                json!({"x": 1}),
                json!("x".repeat(70_000)),
            ] {
                let what = format!("{}.{name} = {}", entry.name, short(&value));
                calls += 1;
                if let Err(refusal) = world.call(entry.name, fill(value)) {
                    let message = refusal.to_string();
                    assert_form(&message, &what);
                    assert!(!message.contains("callboard has made a mistake"), "{what}: {message}");
                }
            }
        }
    }
    assert!(calls > 1_000, "{calls}");
    world.check();
}

#[test]
fn names_that_nobody_knows_are_cut_and_cleaned() {
    let create = ops::find("create_task").expect("an operation");
    let odd = format!("prior\n\u{1}ity{}", "y".repeat(3_000));
    let understood =
        understand(create, json!({"description": "d", odd: 1}), MODEL).expect("understood");
    let warning = understood.warning.expect("it is kept");
    assert_form(&warning, "a long name");
    let many: Map<String, Value> = std::iter::once(("description".to_owned(), json!("d")))
        .chain((0..10_000).map(|number| (format!("zz{number}"), json!(1))))
        .collect();
    let warning = understand(create, Value::Object(many), MODEL)
        .expect("understood")
        .warning
        .expect("they are kept");
    assert_form(&warning, "many names");
    assert!(warning.contains("and 9995 more"), "{warning}");
    let status = ops::find("get_status").expect("an operation");
    let odd = json!({format!("sc\nope{}", "y".repeat(3_000)): 1});
    let refused = understand(status, odd, MODEL).err().expect("refused").to_string();
    assert_form(&refused, "a long name");
}
