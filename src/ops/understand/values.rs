//! Single values as models and clients write them.

use serde_json::{Map, Number, Value};

use crate::strict;

/// Other words for the values of enumerations.
const CHOICES: &[(&str, &str)] = &[
    ("completed complete finished closed resolved", "done"),
    ("pending todo open", "available"),
    ("running active working started", "in_progress"),
    ("in_review needs_review", "review"),
    ("canceled", "cancelled"),
    ("error errored", "failed"),
    ("any *", "all"),
    ("leader", "by_leader"),
    ("worker", "by_worker"),
    ("yes true", "required"),
    ("no false", "none"),
];

/// Whether the value says nothing, as strict clients fill it in.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(super) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

/// The JSON in a text.
pub(super) fn json(text: &str) -> Option<Value> {
    strict::check(text.as_bytes()).ok()?;
    serde_json::from_str(text).ok()
}

/// Whether the text is meant as a list in JSON. A path may begin with a bracket, too.
pub(super) fn looks_like_a_list(text: &str) -> bool {
    let text = text.trim();
    let inside = text.strip_prefix('[').map(str::trim_start);
    inside.is_some_and(|inside| inside.ends_with(']') || inside.starts_with(['"', '\'', '{', '[']))
}

/// The parts of `a, b`; none if it has one part only.
pub(crate) fn parts(text: &str) -> Option<Vec<&str>> {
    let parts: Vec<_> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    (text.contains(',') && !parts.is_empty()).then_some(parts)
}

/// An object, or the text of one.
pub(super) fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        Value::String(text) => match json(&text) {
            Some(Value::Object(fields)) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// JSON as it came, or as a text of an object or list says it.
pub(super) fn any(value: Value) -> Value {
    let inside =
        value.as_str().and_then(json).filter(|inside| inside.is_object() || inside.is_array());
    inside.unwrap_or(value)
}

/// A text, or the digits of a number.
pub(super) fn text(value: Value) -> Option<Value> {
    match value {
        Value::String(_) => Some(value),
        Value::Number(number) if !number.is_f64() => Some(Value::String(number.to_string())),
        _ => None,
    }
}

/// The value that is written so, whatever its case and the marks between its words, or another word for one.
pub(super) fn choice(values: &[String], given: &Value) -> Option<Value> {
    let plain = |text: &str| text.trim().to_lowercase().replace([' ', '-'], "_");
    let given = plain(given.as_str()?);
    let other = CHOICES.iter().find(|(words, _)| words.split(' ').any(|word| word == given));
    let found = |wanted: &str| values.iter().find(|value| plain(value) == wanted);
    found(&given).or_else(|| found(other?.1)).map(|value| Value::from(value.as_str()))
}

pub(super) fn flag(value: &Value) -> Option<Value> {
    let said = match value {
        Value::Bool(said) => *said,
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => true,
            "false" | "no" => false,
            _ => return None,
        },
        Value::Number(number) if number.as_u64().is_some_and(|number| number <= 1) => {
            number.as_u64() == Some(1)
        }
        _ => return None,
    };
    Some(Value::Bool(said))
}

pub(super) fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            Some(Value::Number(text.trim().parse::<f64>().ok().and_then(Number::from_f64)?))
        }
        _ => None,
    }
}

/// A whole number, also in a text and with zeros behind its point.
pub(super) fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            whole.or_else(|| {
                number.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128)
            })
        }
        Value::String(text) => whole(&serde_json::from_str::<Number>(text.trim()).ok()?.into()),
        _ => None,
    }
}

pub(super) fn as_json(number: i128) -> Option<Value> {
    let small = i64::try_from(number).ok().map(Value::from);
    small.or_else(|| u64::try_from(number).ok().map(Value::from))
}
