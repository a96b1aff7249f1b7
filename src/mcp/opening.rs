//! `initialize` as clients send it. Nothing here depends on which client it is or what it can do,
//! so both may be left out. The revision may not: without it there is nothing to agree on.

use rmcp::model::InitializeRequestParams;
use serde_json::{Map, Value, json};

use crate::strict;

const METHOD: &str = "initialize";
/// The revision that a refusal shows as an example.
const EXAMPLE: &str = "2025-11-25";
/// Where a message of 2026-07-28 or later names its revision.
const OWN_REVISION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Puts an object in place of the arguments of a tool call that came as the text of one, or as an
/// empty list for none. Returns whether the message was changed.
pub(super) fn name_arguments(message: &mut Value) -> bool {
    if message["method"] != "tools/call" {
        return false;
    }
    let Some(arguments) = message.pointer_mut("/params/arguments") else { return false };
    let named = match arguments {
        Value::Array(items) if items.is_empty() => Some(json!({})),
        Value::String(text) if text.trim().is_empty() => Some(json!({})),
        Value::String(text) if strict::check(text.as_bytes()).is_ok() => {
            serde_json::from_str(text).ok().filter(Value::is_object)
        }
        _ => None,
    };
    let is_changed = named.is_some();
    named.into_iter().for_each(|named| *arguments = named);
    is_changed
}

/// Fills in what the message may leave out, if it is an `initialize` request. Returns whether it
/// was changed.
///
/// # Errors
/// If the params are not usable; the text names the field.
pub(super) fn complete(message: &mut Value) -> Result<bool, String> {
    if message["method"] != METHOD || message.get("id").is_none() {
        return Ok(false);
    }
    // A message that carries its revision itself is of 2026-07-28 or later, which no longer has the
    // method.
    if message.pointer(OWN_REVISION).is_some() {
        return Ok(false);
    }
    let before = message.clone();
    let version = message.get("params").and_then(|params| params.get("protocolVersion"));
    if version.and_then(Value::as_str).is_none_or(|version| version.trim().is_empty()) {
        let found =
            version.map_or("is missing".to_owned(), |found| format!("is {}", shortened(found)));
        return Err(format!(
            "{METHOD}: `protocolVersion` {found}; send a revision of MCP, such as \"{EXAMPLE}\""
        ));
    }
    if let Some(Value::Object(params)) = message.get_mut("params") {
        fill(params, "capabilities", json!({}));
        fill(params, "clientInfo", json!({}));
        if let Some(Value::Object(client)) = params.get_mut("clientInfo") {
            fill(client, "name", json!(""));
            fill(client, "version", json!(""));
        }
    }
    // The reply to the client's author is worth reading it twice: there is one such message per
    // session.
    serde_path_to_error::deserialize::<_, InitializeRequestParams>(&message["params"]).map_err(
        |error| format!("{METHOD}: `{}` is not usable: {}", error.path(), error.inner()),
    )?;
    Ok(*message != before)
}

fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value);
    }
}

fn shortened(value: &Value) -> String {
    let kind = match value {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::String(_) => "empty",
        value => return value.to_string(),
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(params: Value) -> Result<Value, String> {
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params});
        complete(&mut message).map(|_| message["params"].take())
    }

    #[test]
    fn who_the_client_is_may_be_left_out_in_every_way() {
        let nameless = json!({"name": "", "version": ""});
        for client in [
            json!({}),
            json!({"clientInfo": null}),
            json!({"clientInfo": {}}),
            json!({"capabilities": null}),
        ] {
            let mut params = client;
            params["protocolVersion"] = json!("2025-06-18");
            let found = completed(params.clone()).expect("it is answered");
            assert_eq!(
                (&found["clientInfo"], &found["capabilities"]),
                (&nameless, &json!({})),
                "{params}"
            );
        }
        let named = json!({"protocolVersion": "v", "capabilities": {"roots": {}}, "clientInfo": {"name": "a", "version": "1"}});
        assert_eq!(completed(named.clone()), Ok(named));
        let half =
            completed(json!({"protocolVersion": "v", "clientInfo": {"name": "a", "title": "A"}}));
        assert_eq!(
            half.expect("it is answered")["clientInfo"],
            json!({"name": "a", "title": "A", "version": ""})
        );
    }

    #[test]
    fn field_that_is_not_usable_is_named() {
        for version in
            [json!(null), json!(7), json!(""), json!(" "), json!([]), json!({}), json!(true)]
        {
            let refused = completed(json!({"protocolVersion": version})).expect_err("no version");
            assert!(
                refused.contains("`protocolVersion` is") && refused.contains(EXAMPLE),
                "{refused}"
            );
        }
        for params in [json!({}), json!(null), json!([]), json!("x")] {
            let refused = completed(params).expect_err("no version");
            assert!(refused.contains("`protocolVersion` is missing"), "{refused}");
        }
        for (field, value) in [
            ("clientInfo", json!("me")),
            ("clientInfo", json!(["me"])),
            ("capabilities", json!("all")),
        ] {
            let refused = completed(json!({"protocolVersion": "v", field: value}))
                .expect_err("of the wrong kind");
            assert!(refused.contains(field), "{refused}");
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        let modern = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
        let modern = json!({"id": 1, "method": METHOD, "params": modern});
        for mut message in [
            modern,
            json!({"id": 1, "method": "ping"}),
            json!({"method": METHOD}),
            json!(7),
            json!([]),
        ] {
            let before = message.clone();
            assert_eq!((complete(&mut message), message), (Ok(false), before));
        }
    }
}
