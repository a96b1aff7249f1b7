//! JSON Schema of parameters, in the plain form that every client reads, and of replies, as exact
//! as they are.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Schema of what is read: parameters and plans.
pub fn of<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = object::<T>(settings().with_transform(Nullless));
    // Clients refuse a tool whose arguments are not an object, even if it takes none.
    schema.entry("type").or_insert_with(|| Value::from("object"));
    schema
}

/// Schema of parameters as their types are, with `null` and the formats of numbers.
pub fn exact<T: JsonSchema>() -> Map<String, Value> {
    object::<T>(inlined())
}

/// Schema of what is written: replies and the state file.
pub fn of_reply<T: JsonSchema>() -> Map<String, Value> {
    object::<T>(settings().for_serialize())
}

/// The values of an enumeration. Those with a meaning of their own are constants beside the others.
pub fn variants(schema: &Value) -> Vec<Value> {
    let parts = schema["oneOf"].as_array().into_iter().flatten();
    let values =
        std::iter::once(schema).chain(parts).flat_map(|part| match part["enum"].as_array() {
            Some(values) => values.clone(),
            None => part.get("const").cloned().into_iter().collect(),
        });
    values.collect()
}

fn settings() -> SchemaSettings {
    inlined().with_transform(Plain)
}

fn inlined() -> SchemaSettings {
    let inlined = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    inlined.with_transform(Joined)
}

fn object<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.as_object().cloned().unwrap_or_default()
}

/// Where a schema has those that it refers to: types that contain themselves.
pub const DEFINITIONS: &str = "$defs";

/// Takes the definitions out of a schema that becomes part of a larger document.
pub fn take_definitions(schema: &mut Map<String, Value>) -> Map<String, Value> {
    match schema.remove(DEFINITIONS) {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    }
}

pub fn require(schema: &mut Map<String, Value>, name: &str) {
    let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(required) = required.as_array_mut()
        && !required.iter().any(|known| known == name)
    {
        required.insert(0, Value::from(name));
    }
}

/// Names of the arguments for error messages: `task_id, output, files_modified?`.
pub fn summary(schema: &Map<String, Value>) -> String {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys).map(|name| {
        let optional = !required.iter().any(|one| one == name);
        format!("{name}{}", if optional { "?" } else { "" })
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Joins the lines of a paragraph: where the source breaks them says nothing.
#[derive(Clone)]
struct Joined;

impl Transform for Joined {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(description)) = schema.get_mut("description") {
            let paragraphs =
                description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
            *description = paragraphs.collect::<Vec<_>>().join("\n\n");
        }
        transform_subschemas(self, schema);
    }
}

/// Removes `format: uint32` and `default: null`, which clients warn about and models pay for.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        // Some clients read only objects, so `true` becomes `{}`.
        if schema.as_bool() == Some(true) {
            schema.ensure_object();
        }
        if is_number(schema)
            || schema
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with("uint"))
        {
            schema.remove("format");
        }
        if schema.get("default").is_some_and(is_blank) {
            schema.remove("default");
        }
        transform_subschemas(self, schema);
    }
}

/// Removes `null` as an allowed value of optional fields. They accept null all the same, but
/// clients warn about types in arrays.
#[derive(Clone)]
struct Nullless;

impl Transform for Nullless {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::Array(types)) = schema.get("type")
            && let Some(only) = types.iter().find(|one| *one != "null").cloned()
        {
            schema.insert("type".to_owned(), only);
            schema.remove("format");
        }
        if let Some(Value::Array(variants)) = schema.get("anyOf")
            && let [Value::Object(only), Value::Object(null)] = variants.as_slice()
            && null.get("type").is_some_and(|kind| kind == "null")
        {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.insert(key, value);
            }
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        transform_subschemas(self, schema);
    }
}

fn is_number(schema: &Schema) -> bool {
    let is_one = |name: &Value| name == "integer" || name == "number";
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_one),
        Some(name) => is_one(name),
        None => false,
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(value) => !value,
        Value::Number(_) | Value::String(_) => false,
    }
}
