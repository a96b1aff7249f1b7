//! Replies and files match the schemas.

use std::collections::HashMap;
use std::sync::LazyLock;

use callboard::ops;
use callboard::statefile::Shown;
use jsonschema::Validator;
use serde_json::Value;

static REPLIES: LazyLock<HashMap<&str, Validator>> = LazyLock::new(|| {
    ops::all()
        .iter()
        .map(|entry| (entry.name, validator(&Value::Object(entry.output_schema()))))
        .collect()
});
static DOCUMENT: LazyLock<Validator> =
    LazyLock::new(|| validator(&ops::schema_of_written::<Shown>("mcp-state.json")));

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("it is a schema")
}

#[track_caller]
pub(crate) fn assert_reply(operation: &str, reply: &Value) {
    assert_valid(&REPLIES[operation], operation, reply);
}

#[track_caller]
pub(crate) fn assert_document(document: &Value) {
    assert_valid(&DOCUMENT, "the state file", document);
}

#[track_caller]
pub(crate) fn assert_plan(plan: &Value) {
    let schema = serde_json::from_str(include_str!("../../schemas/plan.json")).expect("it is JSON");
    assert_valid(&validator(&schema), "the plan", plan);
}

#[track_caller]
fn assert_valid(validator: &Validator, what: &str, found: &Value) {
    let wrong: Vec<_> = validator
        .iter_errors(found)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
}
