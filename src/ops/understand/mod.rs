//! What a caller means by its arguments. Whatever door a call comes through, what came is read with
//! the operation's schema and made into strict arguments, or refused in words that say what is
//! wanted. The rule: nothing narrower becomes wider, and nothing is dropped without a word.
//!
//! 1. Arguments in a wrapper (`{"arguments": {…}}`) or in a text are unwrapped.
//! 2. A name that is not known is tried as another name of an argument. If its value fits, it is
//!    taken, and the reply says so.
//! 3. Otherwise a call that creates keeps it in `metadata` and says so; any other call is refused.
//! 4. A limit out of range is brought into it, and the reply says so.
//!
//! Models and their clients fill in `""`, `0` and `[]` for what they leave out; programs do not.

mod advice;
mod called;
mod names;
mod outcome;
mod said;
mod shape;
mod size;
mod values;
mod words;
mod wrapped;

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

pub(crate) use called::no_operation;
use said::Said;
use shape::Field;
pub(super) use shape::{Record, Shape};
pub(crate) use values::parts;
use values::{is_blank, is_zero, json};
pub(crate) use wrapped::unwrapped;

use super::{ApplyBatch, CreateTask, Entry, Operation, Prepared, Reader, all, find};
use crate::state::refusal::Refusal;

/// Optional numbers for which 0 has a meaning of its own. For others it stands for none, as strict
/// clients fill in every argument.
const ZERO_COUNTS: [&str; 6] =
    ["since_seq", "wait_seconds", "number", "keep", "seq", "expected_checkpoint"];
/// Records in which each field decides who may do something, or how much.
const BINDING: [&str; 2] = ["demands", "budget"];
/// Lists without which a call reaches further: an empty one names nobody, so it is no way to leave
/// it out.
const WIDER_WITHOUT: [(&str, &str); 4] = [
    ("pause", "agents"),
    ("resume", "agents"),
    ("release_files", "reservations"),
    ("release_files", "files"),
];
/// Lists that a text such as `a, b` may stand for, unless there is something of that whole name.
const JOINED: [&str; 6] =
    ["tags", "capabilities", "files", "context_files", "files_modified", "files_created"];

/// A call that was understood, and what the reply must say about it.
pub struct Understood {
    pub prepared: Box<dyn Prepared>,
    pub warning: Option<String>,
}

/// Reads the arguments of `entry` as the caller means them.
pub fn understand(
    entry: &'static Entry,
    arguments: Value,
    reader: Reader,
) -> Result<Understood, Refusal> {
    let given = unwrapped(entry, arguments)?;
    let mut reading = Reading {
        operation: entry.name,
        is_read: entry.annotations.read_only,
        fills_in: reader.is_model(),
        joined: Vec::new(),
        said: Said::default(),
    };
    let arguments = reading.operation(entry, given, "")?;
    let prepared = entry
        .prepare_joined(Value::Object(arguments), reading.joined)
        .map_err(|refused| in_words(entry, refused))?;
    Ok(Understood { prepared, warning: reading.said.in_words() })
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

struct Reading {
    operation: &'static str,
    is_read: bool,
    /// Whether the caller fills in a value that says nothing for an argument that it leaves out.
    fills_in: bool,
    /// Lists that came as one text with commas, as JSON pointers.
    joined: Vec<String>,
    said: Said,
}

type Fields = Map<String, Value>;

impl Reading {
    fn operation(
        &mut self,
        entry: &'static Entry,
        given: Fields,
        place: &str,
    ) -> Result<Fields, Refusal> {
        let before = (self.operation, self.is_read);
        (self.operation, self.is_read) = (entry.name, entry.annotations.read_only);
        let given = if entry.name == ApplyBatch::NAME { wrapped::items(given) } else { given };
        let mut read = self.record(shape(entry), given, place, false)?;
        if entry.name == ApplyBatch::NAME
            && let Some(Value::Array(items)) = read.get_mut("operations")
        {
            for (index, item) in items.iter_mut().enumerate() {
                self.step(item, &format!("operations[{index}].arguments"))?;
            }
        }
        (self.operation, self.is_read) = before;
        Ok(read)
    }

    /// Reads the arguments of one operation of a batch. An operation that there is not is refused
    /// by the batch.
    fn step(&mut self, item: &mut Value, place: &str) -> Result<(), Refusal> {
        let entry =
            item["name"].as_str().and_then(find).filter(|entry| entry.name != ApplyBatch::NAME);
        let Some(entry) = entry else { return Ok(()) };
        let given =
            unwrapped(entry, item.get_mut("arguments").map(Value::take).unwrap_or_default())?;
        item["arguments"] = Value::Object(self.operation(entry, given, place)?);
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
        let is_task = record.creates() && record.field("dependencies").is_some();
        let operation = if is_task { CreateTask::NAME } else { self.operation };
        let skipped = self.outcomes(record, operation, &given, place)?;
        let mut read = Fields::new();
        // Under which name each field came.
        let mut came: Vec<(&str, String)> = Vec::new();
        let (known, unknown): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|(name, _)| record.called(name).is_some());
        for (name, value) in known {
            let at = within(place, &words::name(&name));
            let Some(field) = record.called(&name) else { continue };
            let wider = WIDER_WITHOUT.contains(&(operation, &field.name)) && place.is_empty();
            if wider && !value.is_null() && is_blank(&value) {
                let without =
                    format!("is empty; leave {} out if all are meant, or name some", field.name);
                return Err(refusal(&at, &without));
            }
            if let Some(value) =
                self.field(&field.name, &field.shape, field.required, value, &at)?
            {
                put(&mut read, &mut came, field, &name, value, place)?;
            }
        }
        for (name, value) in unknown {
            // A value that says nothing stands for an argument that was left out.
            if is_blank(&value) || names::is_added(&name) {
                continue;
            }
            let at = within(place, &words::name(&name));
            if binding {
                return Err(refusal(&at, &advice::no_field(record, &name)));
            }
            if let Some(field) = self.synonym(record, operation, &name, &value, &at, &read) {
                let (field, value) = field;
                self.said.taken(&at, &field.name);
                put(&mut read, &mut came, field, &name, value, place)?;
                continue;
            }
            if skipped.contains(&name) || self.says_nothing(record, &name, &value, &at, &read) {
                continue;
            }
            if !record.creates() {
                return Err(refusal(&at, &advice::unknown(operation, record, &name)));
            }
            if let Some(instead) = record.instead(&name).or_else(|| advice::near(record, &name)) {
                return Err(refusal(&at, &instead));
            }
            self.keep(&mut read, name, value, place)?;
        }
        title_describes(record, &mut read);
        self.all_required(record, &read, place)?;
        // In the order of the schema, so that the same call is the same text.
        Ok(record.0.iter().filter_map(|field| read.remove_entry(&field.name)).collect())
    }

    /// Checks what the call says of a task's end beside its own arguments. Returns the names of
    /// those that say what the operation does.
    fn outcomes(
        &self,
        record: &Record,
        operation: &str,
        given: &Fields,
        place: &str,
    ) -> Result<Vec<String>, Refusal> {
        let mut agreeing = Vec::new();
        for (name, value) in given {
            if record.called(name).is_some() || is_blank(value) {
                continue;
            }
            match outcome::against(operation, name, value, given) {
                Some(instead) if instead.is_empty() => agreeing.push(name.clone()),
                Some(instead) => {
                    return Err(Refusal::BadArgument {
                        argument: within(place, &words::name(name)),
                        wanted: words::plain(&instead),
                    });
                }
                None => {}
            }
        }
        Ok(agreeing)
    }

    /// The field that `name` is another name of, and the value as that field takes it.
    fn synonym<'r>(
        &mut self,
        record: &'r Record,
        operation: &str,
        name: &str,
        value: &Value,
        at: &str,
        read: &Fields,
    ) -> Option<(&'r Field, Value)> {
        let before = (self.joined.len(), self.said.clone());
        for field in record.synonyms(operation, name) {
            let taken = self.field(&field.name, &field.shape, field.required, value.clone(), at);
            let is_free = |value: &Value| read.get(&field.name).is_none_or(|there| there == value);
            match taken {
                // Two values of one argument are refused, unless one of them can be kept.
                Ok(Some(value)) if is_free(&value) || !record.creates() => {
                    return Some((field, value));
                }
                _ => {
                    self.joined.truncate(before.0);
                    self.said = before.1.clone();
                }
            }
        }
        None
    }

    /// Whether an argument that the operation does not have changes nothing of what the call means.
    fn says_nothing(
        &mut self,
        record: &Record,
        name: &str,
        value: &Value,
        at: &str,
        read: &Fields,
    ) -> bool {
        // Models name themselves in every call, but not in what they list.
        let is_listed = at.rsplit_once('.').is_some_and(|(place, _)| place.ends_with(']'));
        if names::plain(name) == "agentid" && !is_listed {
            if record.field("agent").is_some() && !read.contains_key("agent") {
                self.said
                    .ignored(&format!("{at} says who asks, and leaves nothing out; agent does"));
            }
            return true;
        }
        if advice::is_default(name, value) {
            return true;
        }
        let is_look = self.is_read && advice::is_look(name);
        if is_look {
            self.said.ignored(&format!("no such argument: `{at}`"));
        }
        is_look
    }

    /// Keeps what is not known with the task that the call creates.
    fn keep(
        &mut self,
        read: &mut Fields,
        name: String,
        value: Value,
        place: &str,
    ) -> Result<(), Refusal> {
        let metadata = read.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
        let at = within(place, &words::name(&name));
        if metadata.get(&name).is_some_and(|there| *there != value) {
            return Err(refusal(&at, "is in metadata, too, with another value; give only one"));
        }
        self.said.kept(&at);
        metadata.insert(name, value);
        Ok(())
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
        let is_blank =
            |value: &Value| if self.fills_in { is_blank(value) } else { value.is_null() };
        let is_list_of_none = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
        if required
            && is_blank(&value)
            && (matches!(shape, Shape::Text) || !is_list_of_none(&value))
        {
            let what = if value.is_null() { "is missing" } else { "must not be empty" };
            return Err(refusal(at, &format!("{what}; {}", words::wanted(name, shape))));
        }
        let is_number = matches!(shape, Shape::Whole { .. } | Shape::Number);
        let counts = !self.fills_in || !is_number || ZERO_COUNTS.contains(&name);
        let is_none = |value: &Value| is_blank(value) || (is_zero(value) && !counts);
        if !required && is_none(&value) {
            return Ok(None);
        }
        let fills_in = self.fills_in;
        let read = self.value(name, shape, value, at)?;
        let is_none =
            fills_in && values::is_blank(&read) || read.is_null() || is_zero(&read) && !counts;
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
            Shape::Any => Ok(values::any(value)),
            Shape::Text => {
                let text = values::text(value).ok_or_else(wanted)?;
                size::check_text(name, text.as_str().unwrap_or_default(), at)?;
                Ok(text)
            }
            Shape::Choice(choices) => values::choice(choices, &value).ok_or_else(|| {
                let given = value
                    .as_str()
                    .map(|text| format!(", not {}", words::name(text)))
                    .unwrap_or_default();
                refusal(at, &format!("{}{given}", words::wanted(name, shape)))
            }),
            Shape::Flag => values::flag(&value).ok_or_else(wanted),
            Shape::Number => values::number(&value).ok_or_else(wanted),
            Shape::Whole { least, most } => {
                let given = values::whole(&value).ok_or_else(|| match value.as_str() {
                    Some(text) => {
                        let not = words::name(text);
                        refusal(at, &format!("{}, not {not}", words::wanted(name, shape)))
                    }
                    None => wanted(),
                })?;
                let number = size::within(name, given, *least);
                if number != given {
                    self.said.clamped(at, number);
                }
                let is_within = (*least..=*most).contains(&number);
                let outside =
                    || refusal(at, &format!("a whole number from {least} to {most}, such as 3"));
                Some(number).filter(|_| is_within).and_then(values::as_json).ok_or_else(outside)
            }
            Shape::List(item) => self.list(name, item, value, at)?.ok_or_else(wanted),
            Shape::Record(record) => {
                let fields = match value {
                    // A text alone says what is to be done.
                    Value::String(text)
                        if record.creates() && at.ends_with(']') && json(&text).is_none() =>
                    {
                        Fields::from_iter([("description".to_owned(), Value::String(text))])
                    }
                    value => values::object(value).ok_or_else(wanted)?,
                };
                self.record(record, fields, at, BINDING.contains(&name)).map(Value::Object)
            }
            Shape::Map(item) => {
                let fields = values::object(value).ok_or_else(wanted)?;
                let fields = fields.into_iter().map(|(key, value)| {
                    let at = within(at, &words::name(&key));
                    // null takes the entry away where that is possible, else it is refused later.
                    let value = if **item == Shape::Any || value.is_null() {
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
                _ if values::looks_like_a_list(&text) => return Ok(None),
                (_, Shape::Text | Shape::Choice(_)) => self.texts(name, item, text, at),
                _ => return Ok(None),
            },
            one @ Value::Object(_) if matches!(item, Shape::Record(_)) => vec![one],
            Value::Number(one) if matches!(item, Shape::Text) && !one.is_f64() => {
                vec![Value::Number(one)]
            }
            _ => return Ok(None),
        };
        size::check_list(name, items.len(), at)?;
        let (is_text, fills_in) = (matches!(item, Shape::Text | Shape::Choice(_)), self.fills_in);
        let is_left_out =
            |one: &Value| is_text && if fills_in { is_blank(one) } else { one.is_null() };
        let items = items.into_iter().enumerate().filter(|(_, one)| !is_left_out(one));
        let read = items.map(|(index, one)| self.value(name, item, one, &format!("{at}[{index}]")));
        read.collect::<Result<_, _>>().map(|items| Some(Value::Array(items)))
    }

    /// The texts that one text stands for: itself, or those between its commas. Whether there is
    /// something that is called by the whole of it, the state says; tasks are looked up there, too.
    fn texts(&mut self, name: &str, item: &Shape, text: String, at: &str) -> Vec<Value> {
        let Some(parts) = parts(&text) else { return vec![Value::String(text)] };
        let is_choice = matches!(item, Shape::Choice(_));
        if is_choice || SPLIT.contains(&name) {
            return parts.into_iter().map(Value::from).collect();
        }
        if JOINED.contains(&name) {
            self.joined.push(pointer(at, name));
        }
        vec![Value::String(text)]
    }
}

/// Lists of what has no comma in its name.
const SPLIT: [&str; 7] =
    ["agents", "kinds", "acknowledge", "supersedes", "reservations", "stopping", "clear"];

/// The JSON pointer to the list at `at`, which may have come under another name than `name`.
fn pointer(at: &str, name: &str) -> String {
    let (before, _) = at.rsplit_once('.').unwrap_or(("", ""));
    let steps = before.split(['.', '[', ']']).filter(|step| !step.is_empty());
    steps.chain([name]).map(|step| format!("/{step}")).collect()
}

/// Puts the value of a field, which may have come under two names.
fn put<'r>(
    read: &mut Fields,
    came: &mut Vec<(&'r str, String)>,
    field: &'r Field,
    name: &str,
    value: Value,
    place: &str,
) -> Result<(), Refusal> {
    if read.get(&field.name).is_some_and(|other| *other != value) {
        let first = came.iter().find(|(known, _)| *known == field.name);
        let twice = format!(
            "{} and {} are one argument with two values; give only {}",
            first.map_or("", |(_, first)| first),
            words::name(name),
            field.name
        );
        return Err(refusal(&within(place, &field.name), &twice));
    }
    came.push((&field.name, words::name(name)));
    read.insert(field.name.clone(), value);
    Ok(())
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
