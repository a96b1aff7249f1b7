//! The tools as `tools/list` shows them. Each vendor reads a different part of JSON Schema and
//! refuses the rest, so the schemas have only what all of them read. The board checks arguments
//! itself, so nothing is lost by that.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::ops::schema::variants;
use crate::ops::{self, Annotations, Entry, Toolset};

const JSON_TEXT: &str = "JSON object";

/// The tools that `tools/list` returns, in a stable order.
pub fn tool_list(toolset: Toolset, agent_required: bool) -> Vec<Tool> {
    let shown = ops::all().iter().filter(|entry| entry.toolset <= toolset);
    shown.map(|entry| tool(entry, toolset, agent_required)).collect()
}

fn tool(entry: &Entry, toolset: Toolset, agent_required: bool) -> Tool {
    let mut schema = entry.input_schema(agent_required);
    schema.entry("properties").or_insert_with(|| json!({}));
    let mut schema = portable(&Value::Object(schema));
    let shown = entry.of_workers.filter(|_| toolset == Toolset::Worker);
    if let (Some(shown), Some(properties)) =
        (shown, schema.get_mut("properties").and_then(Value::as_object_mut))
    {
        properties.retain(|name, _| shown.contains(&name.as_str()));
    }
    Tool::new(entry.name, entry.description, schema)
        .with_annotations(annotations(entry.annotations))
}

/// The hints that differ from what MCP assumes without them, because models pay for each byte of
/// the list.
fn annotations(of: Annotations) -> ToolAnnotations {
    ToolAnnotations::from_raw(
        None,
        of.read_only.then_some(true),
        (!of.read_only && !of.destructive).then_some(false),
        (!of.read_only && of.idempotent).then_some(true),
        Some(false),
    )
}

/// The schema with the keywords that every client reads: `type`, `enum`, `properties`, `items`,
/// `required` and `description`. Defaults and the meanings of variants go into the description.
///
/// An object with any members is shown as a text with its JSON. Strict conversion refuses it
/// otherwise, or closes it, so that it can only be empty. Both forms are taken.
fn portable(schema: &Value) -> Map<String, Value> {
    let variants = variants(schema);
    let kind =
        schema["type"].as_str().unwrap_or(if variants.is_empty() { "object" } else { "string" });
    let is_free = kind == "object" && !schema["properties"].is_object();
    let kind = if is_free { "string" } else { kind };
    let mut shown = Map::new();
    shown.insert("type".to_owned(), Value::from(kind));
    if !variants.is_empty() {
        shown.insert("enum".to_owned(), Value::from(variants));
    }
    match kind {
        "object" => shown.extend(fields(schema)),
        "array" => _ = shown.insert("items".to_owned(), Value::Object(portable(&schema["items"]))),
        _ => {}
    }
    let described = description(schema).into_iter().chain(is_free.then(|| JSON_TEXT.to_owned()));
    let description = described.collect::<Vec<_>>().join("; ");
    if !description.is_empty() {
        shown.insert("description".to_owned(), Value::from(description));
    }
    shown
}

/// `properties`, which some clients demand even if there are none, and `required`. Old names of
/// arguments are not shown.
fn fields(schema: &Value) -> impl Iterator<Item = (String, Value)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let current = properties.filter(|(_, field)| field["deprecated"] != true);
    let properties: Map<_, _> =
        current.map(|(name, field)| (name.clone(), Value::Object(portable(field)))).collect();
    let required = schema["required"].as_array().filter(|names| !names.is_empty()).cloned();
    let required = required.map(|names| ("required".to_owned(), Value::Array(names)));
    [("properties".to_owned(), Value::Object(properties))].into_iter().chain(required)
}

fn description(schema: &Value) -> Option<String> {
    let own =
        schema["description"].as_str().map(|text| text.replace('\n', " ")).unwrap_or_default();
    let mut parts = vec![own.trim_end_matches('.').to_owned()];
    for part in schema["oneOf"].as_array().into_iter().flatten() {
        if let (Some(value), Some(meaning)) = (part["const"].as_str(), part["description"].as_str())
        {
            parts.push(format!("{value}: {}", meaning.trim_end_matches('.')));
        }
    }
    if let Some(default) =
        schema.get("default").filter(|default| !is_nothing(default) && !own.contains("efault"))
    {
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        parts.push(format!("default {text}"));
    }
    parts.retain(|part| !part.is_empty());
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// True of defaults that say no more than "nothing".
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}
