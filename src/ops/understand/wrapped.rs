//! Arguments inside something else: a wrapper, a text of JSON, or the call as a whole.

use serde_json::{Map, Value};

use super::names::{is_among, plain};
use super::values::{is_blank, json};
use super::{Fields, refusal, shape, words};
use crate::ops::Entry;
use crate::state::refusal::Refusal;

/// Names of wrappers of all arguments.
const WRAPPERS: &str = "arguments args params parameters input inputs kwargs payload body request data json options toolinput toolargs toolarguments functionarguments";
/// Names of objects that are what the call creates or changes.
const OF_TASKS: &str = "task todo item issue ticket updates changes fields";
/// Names beside a wrapper that say again which operation it is.
const NAMES: &str = "name tool toolname function method operation";
/// Most wrappers in each other.
const DEEPEST: usize = 4;

/// The arguments by name. What is inside a wrapper counts as if it stood beside it.
pub(crate) fn unwrapped(entry: &'static Entry, arguments: Value) -> Result<Fields, Refusal> {
    let mut fields = by_name(entry, arguments)?;
    for _ in 0..DEEPEST {
        let Some(wrapper) = fields.iter().find(|(name, value)| wraps(entry, name, value)) else {
            break;
        };
        let wrapper = wrapper.0.clone();
        let inside = by_name(entry, fields.shift_remove(&wrapper).unwrap_or_default())?;
        let is_own_name = |name: &str, value: &Value| {
            is_among(name, NAMES)
                && value.as_str().is_some_and(|text| plain(text).ends_with(&plain(entry.name)))
        };
        fields.retain(|name, value| !is_own_name(name, value));
        for (name, value) in inside {
            match fields.get(&name) {
                Some(other) if *other != value && !is_blank(other) => {
                    let twice = format!(
                        "has another value in {} than beside it; give one",
                        words::name(&wrapper)
                    );
                    return Err(refusal(&words::name(&name), &twice));
                }
                _ => _ = fields.insert(name, value),
            }
        }
    }
    Ok(fields)
}

/// An object, or the text of one; nothing for what says nothing.
fn by_name(entry: &Entry, arguments: Value) -> Result<Fields, Refusal> {
    let arguments = match arguments {
        Value::String(text) => json(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    match arguments {
        Value::Object(fields) => Ok(fields),
        blank if is_blank(&blank) => Ok(Map::new()),
        _ => Err(refusal(
            entry.name,
            "the arguments by name are wanted, such as {\"task_id\": \"task-7f3k\"}",
        )),
    }
}

/// Whether `name` is no argument of the operation but holds its arguments.
fn wraps(entry: &'static Entry, name: &str, value: &Value) -> bool {
    let record = shape(entry);
    let is_object = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => {
            matches!(json(text), Some(Value::Object(fields)) if !fields.is_empty())
        }
        _ => false,
    };
    let of_task = record.field("description").is_some() || record.field("task_id").is_some();
    is_object
        && record.called(name).is_none()
        && (is_among(name, WRAPPERS)
            || plain(name) == plain(entry.name)
            || of_task && is_among(name, OF_TASKS))
}

/// The operations of a batch, each as `name` and `arguments`: what stands beside these two, or is
/// keyed by the operation, belongs to the arguments.
pub(super) fn items(mut given: Fields) -> Fields {
    for (_, list) in given.iter_mut() {
        if let Some(Value::Array(items)) = list.as_str().and_then(json) {
            *list = Value::Array(items);
        }
        for item in list.as_array_mut().into_iter().flatten() {
            if let Some(fields) = item.as_object_mut() {
                *fields = one(std::mem::take(fields));
            }
        }
    }
    given
}

fn one(fields: Fields) -> Fields {
    const OWN: &str = "name tool operation op method action function toolname";
    let is_name = |name: &str, value: &Value| {
        is_among(name, OWN) && value.as_str().is_some_and(|text| super::find(text).is_some())
    };
    let named =
        fields.iter().find(|(name, value)| is_name(name, value)).map(|(name, _)| name.clone());
    let Some(named) = named else {
        // `{"create_task": {…}}`
        let only = fields.iter().next().filter(|_| fields.len() == 1);
        let keyed = only.filter(|(name, value)| super::find(name).is_some() && value.is_object());
        return match keyed {
            Some((name, arguments)) => Map::from_iter([
                ("name".to_owned(), Value::from(name.as_str())),
                ("arguments".to_owned(), arguments.clone()),
            ]),
            None => fields,
        };
    };
    let (mut own, mut beside) = (Map::new(), Map::new());
    for (name, value) in fields {
        if name == named {
            own.insert("name".to_owned(), value);
        } else if is_among(&name, WRAPPERS) {
            own.insert("arguments".to_owned(), value);
        } else {
            beside.insert(name, value);
        }
    }
    if !beside.is_empty() {
        // Read with the operation's own rule, which refuses two values of one argument.
        let inside = own.insert("arguments".to_owned(), Value::Object(beside));
        if let (Some(inside), Some(Value::Object(all))) = (inside, own.get_mut("arguments")) {
            all.insert("arguments".to_owned(), inside);
        }
    }
    own
}
