//! The OpenRPC document, generated from the list of operations; see <https://spec.open-rpc.org>.

use serde_json::{Map, Value, json};

use super::events::{EVENT, SUBSCRIBE, SubscribeParams, UNSUBSCRIBE};
use super::{FAILED, REFUSED};
use crate::ops::{self, Entry, schema};
use crate::state::limit;

const OPENRPC: &str = "1.3.2";

pub fn document() -> Value {
    let mut methods: Vec<_> = ops::all().iter().map(operation).collect();
    methods.extend(subscription());
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "callboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "One durable task queue and agent registry for AI coding agents.",
        },
        "methods": methods,
        "components": {
            "errors": {
                "refused": {"code": REFUSED, "message": "refused: error.data says why, and its message what to do"},
                "failed": {"code": FAILED, "message": "the board cannot be used"},
            },
        },
    })
}

fn operation(entry: &Entry) -> Value {
    let (arguments, reply) =
        (written_out(entry.input_schema(true)), written_out(entry.output_schema()));
    method(
        entry.name,
        entry.description,
        params(&arguments),
        json!({"name": "reply", "schema": reply}),
    )
}

/// The schema without references, which readers of OpenRPC follow without end where a type contains
/// itself. It is written out as often as items of a plan may be nested, and below that it is any
/// object.
fn written_out(mut schema: Map<String, Value>) -> Map<String, Value> {
    let definitions = schema::take_definitions(&mut schema);
    schema
        .into_iter()
        .map(|(key, value)| (key, resolved(value, &definitions, limit::PLAN_DEPTH.max)))
        .collect()
}

fn resolved(schema: Value, definitions: &Map<String, Value>, levels: usize) -> Value {
    match schema {
        Value::Object(mut fields) => {
            let referred = fields
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|target| target.strip_prefix("#/$defs/"));
            let definition =
                referred.and_then(|name| definitions.get(name)).and_then(Value::as_object).cloned();
            if let Some(definition) = definition {
                fields.remove("$ref");
                let any = || Map::from_iter([("type".to_owned(), json!("object"))]);
                let whole = if levels > 0 { definition } else { any() };
                let fields = whole.into_iter().chain(fields).collect();
                return resolved(Value::Object(fields), definitions, levels.saturating_sub(1));
            }
            fields
                .into_iter()
                .map(|(key, value)| (key, resolved(value, definitions, levels)))
                .collect()
        }
        Value::Array(items) => {
            items.into_iter().map(|item| resolved(item, definitions, levels)).collect()
        }
        other => other,
    }
}

fn subscription() -> [Value; 2] {
    let schema = ops::schema_of::<SubscribeParams>(SUBSCRIBE);
    let params = params(schema.as_object().unwrap_or(&Map::new()));
    let id = json!({"name": "subscription", "schema": {"type": ["integer", "string"]}});
    let subscribe = format!(
        "WebSocket only. Every event after since_seq, once and in order, as a notification \
         `{EVENT}` with the params subscription and result; a last one with error ends it."
    );
    let done = json!({"name": "ended", "schema": {"type": "boolean"}});
    let unsubscribe = json!([{"name": "subscription", "required": true, "schema": id["schema"]}]);
    let mut unsubscribe = method(UNSUBSCRIBE, "End a subscription.", unsubscribe, done);
    // jsonrpsee expects the id in an array.
    unsubscribe["paramStructure"] = json!("by-position");
    [method(SUBSCRIBE, &subscribe, params, id), unsubscribe]
}

fn method(name: &str, description: &str, params: Value, result: Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "paramStructure": "by-name",
        "params": params,
        "result": result,
        "errors": [
            {"$ref": "#/components/errors/refused"},
            {"$ref": "#/components/errors/failed"},
        ],
    })
}

/// An object's properties as parameters, required ones first, as OpenRPC wants them.
fn params(schema: &Map<String, Value>) -> Value {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|one| one == name);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let (first, then): (Vec<_>, Vec<_>) = properties.partition(|(name, _)| is_required(name));
    let params = first.into_iter().chain(then).map(
        |(name, schema)| json!({"name": name, "required": is_required(name), "schema": schema}),
    );
    Value::Array(params.collect())
}
