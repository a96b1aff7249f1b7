//! What a model means by its arguments. Over MCP, what came is read with the operation's schema and
//! made into the strict arguments that other doors demand, or refused in words that say what is
//! wanted.

mod names;
mod shape;
mod size;
mod words;

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Number, Value};

use names::Unknown;
pub(crate) use names::near;
pub(super) use shape::{Record, Shape};

use super::{ApplyBatch, Entry, Operation, Prepared, all, find};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::strict;

/// Optional numbers for which 0 has a meaning of its own. For others it stands for none, as strict
/// clients fill in every argument.
const ZERO_COUNTS: [&str; 4] = ["since_seq", "wait_seconds", "number", "keep"];
/// Records in which each field decides who may do something, or how much.
const BINDING: [&str; 2] = ["demands", "budget"];
/// Most ignored arguments that are named.
const NAMED: usize = 5;

/// A call that was understood, and what the reply must say about it.
pub struct Understood {
    pub prepared: Box<dyn Prepared>,
    pub warning: Option<String>,
}

/// Reads the arguments of `entry` as the caller means them.
pub fn understand(entry: &'static Entry, arguments: Value) -> Result<Understood, Refusal> {
    let mut reading = Reading { changes: !entry.annotations.read_only, ignored: Vec::new() };
    let arguments = match arguments {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => {
            return Err(refusal(
                entry.name,
                "the arguments by name are wanted, such as {\"task_id\": \"task-7f3k\"}",
            ));
        }
    };
    let arguments = reading.operation(entry, arguments, "")?;
    let prepared =
        entry.prepare(Value::Object(arguments)).map_err(|refused| in_words(entry, refused))?;
    Ok(Understood { prepared, warning: warning(&reading.ignored) })
}

/// The shape of an operation's arguments, made when it is first needed.
fn shape(entry: &'static Entry) -> &'static Record {
    static SHAPES: LazyLock<Vec<OnceLock<Record>>> =
        LazyLock::new(|| all().iter().map(|_| OnceLock::new()).collect());
    static NONE: Record = Record(Vec::new());
    let place = all().iter().position(|one| one.name == entry.name);
    place.map_or(&NONE, |place| SHAPES[place].get_or_init(|| Record::of(&entry.exact_schema())))
}

fn refusal(argument: &str, wanted: &str) -> Refusal {
    let line = words::line(&format!("{argument}: {wanted}"));
    let (argument, wanted) = line.split_once(": ").unwrap_or((&line, ""));
    Refusal::BadArgument { argument: argument.to_owned(), wanted: wanted.to_owned() }
}

/// The refusal of arguments that look right and cannot be read all the same, such as a time that is
/// none.
fn in_words(entry: &'static Entry, refused: Refusal) -> Refusal {
    let Refusal::BadArguments { argument: Some(place), .. } = &refused else { return refused };
    let names = place.split(['.', '[']).filter(|part| !part.ends_with(']'));
    let mut fields = shape(entry);
    let mut found = None;
    for name in names {
        let Some(field) = fields.field(name) else { break };
        found = Some((name, &field.shape));
        fields = match &field.shape {
            Shape::Record(record) => record,
            Shape::List(item) => match &**item {
                Shape::Record(record) => record,
                _ => break,
            },
            _ => break,
        };
    }
    found.map_or_else(
        || refusal(place, "cannot be read"),
        |(name, shape)| refusal(place, &words::wanted(name, shape)),
    )
}

fn warning(ignored: &[String]) -> Option<String> {
    let named =
        ignored.iter().take(NAMED).map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", ");
    let more = ignored.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!ignored.is_empty())
        .then(|| words::line(&format!("ignored, as there are no such arguments: {named}{more}")))
}

/// Whether the value says nothing, as strict clients fill it in.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

/// The JSON in a text.
fn json(text: &str) -> Option<Value> {
    strict::check(text.as_bytes()).ok()?;
    serde_json::from_str(text).ok()
}

struct Reading {
    /// Whether an argument that is left out by mistake would change something on the board.
    changes: bool,
    /// Places of the arguments that were left out.
    ignored: Vec<String>,
}

type Fields = Map<String, Value>;

impl Reading {
    fn operation(
        &mut self,
        entry: &'static Entry,
        mut given: Fields,
        place: &str,
    ) -> Result<Fields, Refusal> {
        given.retain(|name, _| !shape(entry).is_added(name));
        let mut read = self.record(shape(entry), given, place, false)?;
        if entry.name == ApplyBatch::NAME
            && let Some(Value::Array(items)) = read.get_mut("operations")
        {
            for (index, item) in items.iter_mut().enumerate() {
                self.step(item, &format!("operations[{index}].arguments"))?;
            }
        }
        Ok(read)
    }

    /// Reads the arguments of one operation of a batch. An operation that there is not is refused
    /// by the batch.
    fn step(&mut self, item: &mut Value, place: &str) -> Result<(), Refusal> {
        let entry =
            item["name"].as_str().and_then(find).filter(|entry| entry.name != ApplyBatch::NAME);
        let given = item.get_mut("arguments").map(Value::take).unwrap_or_default();
        if let (Some(entry), Value::Object(given)) = (entry, given) {
            item["arguments"] = Value::Object(self.operation(entry, given, place)?);
        } else if let Some(entry) = entry {
            item["arguments"] = Value::Object(self.operation(entry, Fields::new(), place)?);
        }
        Ok(())
    }

    /// Reads an object with known fields. `place` is where it stands; the arguments themselves
    /// stand nowhere.
    fn record(
        &mut self,
        record: &Record,
        given: Fields,
        place: &str,
        binding: bool,
    ) -> Result<Fields, Refusal> {
        let mut read = Fields::new();
        // Under which name each field came.
        let mut came: Vec<(String, String)> = Vec::new();
        for (name, value) in given {
            let at = within(place, &words::name(&name));
            let field = match record.field(&name) {
                Some(field) => field,
                None if value.is_null() => continue,
                None => match record.unknown(&name, self.changes, binding) {
                    Unknown::Meant(meant) => match record.field(&meant) {
                        Some(field) => field,
                        None => continue,
                    },
                    Unknown::Ignored => {
                        self.ignored.push(at);
                        continue;
                    }
                    Unknown::Refused(instead) => return Err(refusal(&at, &instead)),
                },
            };
            let Some(value) = self.field(&field.name, &field.shape, field.required, value, &at)?
            else {
                continue;
            };
            match read.get(&field.name) {
                Some(other) if *other != value => {
                    let first = came
                        .iter()
                        .find(|(known, _)| *known == field.name)
                        .map_or("", |(_, first)| first);
                    let twice = format!(
                        "{first} and {} are one argument with two values; give only {}",
                        words::name(&name),
                        field.name
                    );
                    return Err(refusal(&within(place, &field.name), &twice));
                }
                _ => {
                    came.push((field.name.clone(), words::name(&name)));
                    read.insert(field.name.clone(), value);
                }
            }
        }
        title_describes(record, &mut read);
        self.all_required(record, &read, place)?;
        // In the order of the schema, so that the same call is the same text.
        Ok(record.0.iter().filter_map(|field| read.remove_entry(&field.name)).collect())
    }

    fn all_required(&self, record: &Record, read: &Fields, place: &str) -> Result<(), Refusal> {
        let missing =
            record.0.iter().find(|field| field.required && !read.contains_key(&field.name));
        let Some(missing) = missing else { return Ok(()) };
        let wanted = words::wanted(&missing.name, &missing.shape);
        Err(refusal(&within(place, &missing.name), &format!("is missing; {wanted}")))
    }

    /// Reads the value of a field; none if it says nothing.
    fn field(
        &mut self,
        name: &str,
        shape: &Shape,
        required: bool,
        value: Value,
        at: &str,
    ) -> Result<Option<Value>, Refusal> {
        let is_list_of_none = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
        if required
            && is_blank(&value)
            && (matches!(shape, Shape::Text) || !is_list_of_none(&value))
        {
            let what = if value.is_null() { "is missing" } else { "must not be empty" };
            return Err(refusal(at, &format!("{what}; {}", words::wanted(name, shape))));
        }
        let counts = ZERO_COUNTS.contains(&name) || *shape == Shape::Any;
        if !required && (is_blank(&value) || (is_zero(&value) && !counts)) {
            return Ok(None);
        }
        let read = self.value(name, shape, value, at)?;
        let is_none = is_blank(&read) || (is_zero(&read) && !counts);
        Ok(Some(read).filter(|_| required || !is_none))
    }

    fn value(
        &mut self,
        name: &str,
        shape: &Shape,
        value: Value,
        at: &str,
    ) -> Result<Value, Refusal> {
        let wanted = || refusal(at, &words::wanted(name, shape));
        match shape {
            Shape::Any => Ok(any(value)),
            Shape::Text => {
                let text = text(value).ok_or_else(wanted)?;
                size::check_text(name, text.as_str().unwrap_or_default(), at)?;
                Ok(text)
            }
            Shape::Choice(values) => choice(values, &value).ok_or_else(|| {
                let given = value
                    .as_str()
                    .map(|text| format!(", not {}", words::name(text)))
                    .unwrap_or_default();
                refusal(at, &format!("{}{given}", words::wanted(name, shape)))
            }),
            Shape::Flag => flag(&value).ok_or_else(wanted),
            Shape::Number => number(&value).ok_or_else(wanted),
            Shape::Whole { least, most } => {
                let number = whole(&value).ok_or_else(wanted)?;
                let number = if name == "wait_seconds" {
                    number.min(limit::WAIT.max as i128)
                } else {
                    number
                };
                let is_within = (*least..=*most).contains(&number);
                let outside =
                    || refusal(at, &format!("a whole number from {least} to {most}, such as 3"));
                Some(number).filter(|_| is_within).and_then(as_json).ok_or_else(outside)
            }
            Shape::List(item) => self.list(name, item, value, at)?.ok_or_else(wanted),
            Shape::Record(record) => {
                let fields = object(value).ok_or_else(wanted)?;
                self.record(record, fields, at, BINDING.contains(&name)).map(Value::Object)
            }
            Shape::Map(item) => {
                let fields = object(value).ok_or_else(wanted)?;
                let fields = fields.into_iter().map(|(key, value)| {
                    let at = within(at, &words::name(&key));
                    let value = if **item == Shape::Any {
                        value
                    } else {
                        self.value(&key, item, value, &at)?
                    };
                    Ok((key, value))
                });
                fields.collect::<Result<_, _>>().map(Value::Object)
            }
        }
    }

    /// Reads a list. One item stands for a list of it, and items that say nothing are left out.
    fn list(
        &mut self,
        name: &str,
        item: &Shape,
        value: Value,
        at: &str,
    ) -> Result<Option<Value>, Refusal> {
        let items = match value {
            Value::Array(items) => items,
            Value::String(text) => match (json(&text), item) {
                (Some(Value::Array(items)), _) => items,
                (Some(one @ Value::Object(_)), Shape::Record(_)) => vec![one],
                _ if looks_like_a_list(&text) => return Ok(None),
                (_, Shape::Text | Shape::Choice(_)) => vec![Value::String(text)],
                _ => return Ok(None),
            },
            one @ Value::Object(_) if matches!(item, Shape::Record(_)) => vec![one],
            Value::Number(one) if matches!(item, Shape::Text) && !one.is_f64() => {
                vec![Value::Number(one)]
            }
            _ => return Ok(None),
        };
        size::check_list(name, items.len(), at)?;
        let is_text = matches!(item, Shape::Text | Shape::Choice(_));
        let items = items.into_iter().enumerate().filter(|(_, one)| !(is_text && is_blank(one)));
        let read = items.map(|(index, one)| self.value(name, item, one, &format!("{at}[{index}]")));
        read.collect::<Result<_, _>>().map(|items| Some(Value::Array(items)))
    }
}

fn within(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// A title alone says what is to be done.
fn title_describes(record: &Record, read: &mut Fields) {
    let needs = record.field("description").is_some_and(|field| field.required);
    if needs
        && !read.contains_key("description")
        && let Some(title) = read.get("title").cloned()
    {
        read.insert("description".to_owned(), title);
    }
}

/// Whether the text is meant as a list in JSON. A path may begin with a bracket, too.
fn looks_like_a_list(text: &str) -> bool {
    let text = text.trim();
    let inside = text.strip_prefix('[').map(str::trim_start);
    inside.is_some_and(|inside| inside.ends_with(']') || inside.starts_with(['"', '\'', '{', '[']))
}

/// An object, or the text of one.
fn object(value: Value) -> Option<Fields> {
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
fn any(value: Value) -> Value {
    let inside =
        value.as_str().and_then(json).filter(|inside| inside.is_object() || inside.is_array());
    inside.unwrap_or(value)
}

/// A text, or the digits of a number.
fn text(value: Value) -> Option<Value> {
    match value {
        Value::String(_) => Some(value),
        Value::Number(number) if !number.is_f64() => Some(Value::String(number.to_string())),
        _ => None,
    }
}

/// The value that is written so, whatever its case and the marks between its words.
fn choice(values: &[String], given: &Value) -> Option<Value> {
    let plain = |text: &str| text.trim().to_lowercase().replace([' ', '-'], "_");
    let given = plain(given.as_str()?);
    values.iter().find(|value| plain(value) == given).map(|value| Value::from(value.as_str()))
}

fn flag(value: &Value) -> Option<Value> {
    let said = match value {
        Value::Bool(said) => *said,
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => false,
        Value::Number(number) if number.as_u64().is_some_and(|number| number <= 1) => {
            number.as_u64() == Some(1)
        }
        _ => return None,
    };
    Some(Value::Bool(said))
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            Some(Value::Number(text.trim().parse::<f64>().ok().and_then(Number::from_f64)?))
        }
        _ => None,
    }
}

/// A whole number, also in a text and with zeros behind its point.
fn whole(value: &Value) -> Option<i128> {
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

fn as_json(number: i128) -> Option<Value> {
    let small = i64::try_from(number).ok().map(Value::from);
    small.or_else(|| u64::try_from(number).ok().map(Value::from))
}
