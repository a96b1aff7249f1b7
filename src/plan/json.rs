//! Plans as JSON. `backlog`, `milestones`, `tasks`, `subtasks`, `id` and `dependencies` of other
//! planners are read, too.

use std::collections::HashSet;
use std::fmt::{self, Formatter};

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::board::{self, Board, OfTask};
use super::{Draft, Found, Given, Lines, over};
use crate::state::brought::Brought;
use crate::state::limit;
use crate::state::plan::{Further, Item, Problem, Remark, one_line};
use crate::state::review::Review;
use crate::state::task::Source;
use crate::{harmless, redact};

/// A plan as JSON.
#[derive(Default, Serialize, JsonSchema)]
pub struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Review of the items that say nothing else
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// The phases
    pub items: Vec<Node>,
    #[serde(flatten)]
    pub board: Board,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// P1, P1.M2, P1.M2.T3 or P1.M2.T3.S4; an item without a path is known by its title
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Planned (or Researching, Ready, Implementing, In Progress), Complete or Failed. With parts,
    /// an item that has one is work of its own, unless its type is Phase or Milestone; one without
    /// follows from them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// 1 (first) to 10; default that of the parent, else 5
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// What all work on it is expected to take
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    /// Who has to approve what was done: required (anybody else), by leader, by worker, none, or
    /// default for what is said above it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Paths, titles or ids of the tasks it depends on; of an item with a source, ids there
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Where it was before: by that it is known again, whatever its words are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Fields that callboard does not know and keeps, whatever their names are
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(flatten)]
    pub of_task: OfTask,
    /// Parts of the item
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Node>,
    /// Further fields, which are kept like those of `metadata`
    #[serde(flatten)]
    pub further: Map<String, Value>,
    /// Line of the file that it was read from.
    #[serde(skip)]
    pub line: usize,
}

/// The names of an item's fields: its own, then those of other planners, of which only one may be
/// given.
const FIELDS: [(&str, &[&str]); 19] = [
    ("path", &["id"]),
    ("title", &[]),
    ("description", &[]),
    ("status", &[]),
    ("priority", &[]),
    ("estimated_minutes", &[]),
    ("review", &[]),
    ("depends", &["dependencies"]),
    ("files", &["context_files"]),
    ("hints", &["context_scope"]),
    ("tags", &[]),
    ("source", &[]),
    ("metadata", &[]),
    ("task_id", &[]),
    ("max_attempts", &[]),
    ("timeout_seconds", &[]),
    ("demands", &[]),
    ("past", &[]),
    ("items", &["backlog", "milestones", "tasks", "subtasks"]),
];
/// True for names of fields that callboard reads itself.
pub(super) fn is_field(name: &str) -> bool {
    IGNORED.contains(&name)
        || FIELDS.iter().any(|(own, others)| *own == name || others.contains(&name))
}

/// Fields of the whole.
const OF_BOARD: [&str; 7] =
    ["title", "items", "goal", "master_plan", "agents", "discoveries", "metadata"];

const UNREAD: &str = "unread";

/// What the path says already.
const IGNORED: [&str; 2] = ["type", "kind"];
/// Types of items that are there for their parts.
const GROUPS: [&str; 2] = ["phase", "milestone"];

/// The fields of an object, each by its own name. Values are kept as raw text, so that errors
/// can name the line in which each begins.
#[derive(Default)]
struct Fields<'a>(Vec<(&'static str, &'a RawValue)>, Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| *value)
            .filter(|value| value.get() != "null")
    }

    /// How many lines of the file that it was made of may be work and are no items.
    fn unread(&self) -> Option<usize> {
        let (_, lines) = self.1.iter().find(|(name, _)| name == UNREAD)?;
        lines.get().parse().ok()
    }

    /// Whether its type says that it is there for its parts.
    fn is_group(&self) -> bool {
        let kinds = self.1.iter().filter(|(name, _)| IGNORED.contains(&name.as_str()));
        kinds.into_iter().any(|(_, kind)| {
            GROUPS.iter().any(|group| kind.get().trim_matches('"').eq_ignore_ascii_case(group))
        })
    }
}

struct FieldsOf;

impl<'de> Visitor<'de> for FieldsOf {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a title")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            let known =
                FIELDS.iter().find(|(name, others)| *name == key || others.contains(&key.as_str()));
            match known {
                Some((name, _)) if fields.0.iter().any(|(other, _)| other == name) => {
                    return Err(M::Error::custom(format!("duplicate field `{name}`")));
                }
                Some((name, _)) => fields.0.push((name, map.next_value()?)),
                None => fields.1.push((key, map.next_value()?)),
            }
        }
        Ok(fields)
    }
}

pub(super) fn read(text: &str) -> Result<Found, Vec<Problem>> {
    let lines = Lines::of(text);
    let start = text.len() - text.trim_start().len();
    let body = &text[start..];
    let mut reading = Reading { text, lines, drafts: Vec::new(), remarks: Vec::new() };
    let whole = |error: &serde_json::Error| vec![unread(reading.lines.at(start), error)];
    // Checks the whole text first, so that a fault has its own line.
    let top: &RawValue = serde_json::from_str(body).map_err(|error| whole(&error))?;
    let (mut title, mut review, mut lines_unread) = (None, None, 0);
    let (mut brings, mut metadata) = (Brought::default(), Map::new());
    let items: Vec<&RawValue> = if body.starts_with('[') {
        serde_json::from_str(top.get()).map_err(|error| whole(&error))?
    } else {
        let fields = fields(top.get()).map_err(|error| whole(&error))?;
        title = fields.get("title").map(|raw| serde_json::from_str::<String>(raw.get()));
        let items = fields.get("items").ok_or_else(|| {
            let problem = "it cannot be read: missing field `items`, the list of what is to \
                           be done"
                .to_owned();
            vec![Problem { line: reading.lines.at(start), problem }]
        })?;
        review = reading.review(&fields);
        lines_unread = fields.unread().unwrap_or_default();
        (brings, metadata) = reading.board(&fields)?;
        serde_json::from_str(items.get())
            .map_err(|error| vec![unread(reading.line(items), &error)])?
    };
    let title = title.transpose().map_err(|error| vec![unread(reading.lines.at(start), &error)])?;
    for item in items {
        reading.item(item, None, 1)?;
    }
    let title = title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
    Ok(Found {
        title,
        unread: lines_unread,
        drafts: reading.drafts,
        remarks: reading.remarks,
        brings,
        metadata,
        review,
        ..Found::default()
    })
}

fn fields(text: &str) -> Result<Fields<'_>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let fields = json.deserialize_map(FieldsOf)?;
    json.end()?;
    Ok(fields)
}

struct Reading<'a> {
    text: &'a str,
    lines: Lines,
    drafts: Vec<Draft>,
    remarks: Vec<Remark>,
}

impl<'a> Reading<'a> {
    fn line(&self, raw: &RawValue) -> usize {
        self.lines.at(raw.get().as_ptr() as usize - self.text.as_ptr() as usize)
    }

    /// The value of a field, if it is there.
    fn value<T: Deserialize<'a>>(
        &self,
        fields: &Fields<'a>,
        name: &str,
    ) -> Result<Option<T>, Vec<Problem>> {
        let Some(raw) = fields.get(name) else { return Ok(None) };
        let wrong = |error: serde_json::Error| {
            let Problem { line, problem } = unread(self.line(raw), &error);
            vec![Problem { line, problem: format!("{name}: {problem}") }]
        };
        serde_json::from_str(raw.get()).map(Some).map_err(wrong)
    }

    /// The value of a field that is a text or a number.
    fn given(&self, fields: &Fields<'a>, name: &str) -> Option<Given> {
        let raw = fields.get(name)?;
        let text =
            serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
        Some(Given { text: one_line(&text), line: self.line(raw) })
    }

    /// The review that the whole plan asks for.
    fn review(&self, fields: &Fields<'a>) -> Option<Review> {
        Review::read(&self.given(fields, "review")?.text)
    }

    /// Reads an item and its parts. `level` is 1 for an item that is not a part of another.
    fn item(
        &mut self,
        raw: &'a RawValue,
        parent: Option<usize>,
        level: usize,
    ) -> Result<(), Vec<Problem>> {
        let line = self.line(raw);
        if level > limit::JSON_DEPTH.max {
            return Err(vec![over(line, limit::JSON_DEPTH, level)]);
        }
        let fields = fields(raw.get()).map_err(|error| vec![unread(line, &error)])?;
        let text = |text: Option<String>| {
            text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let title: Option<String> = self.value(&fields, "title")?;
        let title = title.ok_or_else(|| {
            vec![Problem { line, problem: "it cannot be read: missing field `title`".to_owned() }]
        })?;
        let item = Item {
            line,
            parent,
            path: self.value(&fields, "path")?,
            title: one_line(&title),
            description: text(self.value(&fields, "description")?),
            depends: self.value(&fields, "depends")?.unwrap_or_default(),
            files: self.value(&fields, "files")?.unwrap_or_default(),
            hints: text(self.value(&fields, "hints")?),
            tags: self.value(&fields, "tags")?.unwrap_or_default(),
            source: self.source(&fields),
            metadata: self.metadata(&fields)?,
            further: self.further(&fields, line)?,
            ..Item::default()
        };
        let [priority, status, estimate, review] =
            ["priority", "status", "estimated_minutes", "review"]
                .map(|name| self.given(&fields, name));
        let number = self.drafts.len();
        let parts: Vec<&RawValue> = self.value(&fields, "items")?.unwrap_or_default();
        let status = status.filter(|_| parts.is_empty() || !fields.is_group());
        self.drafts.push(Draft { item, priority, status, estimate, review, ..Draft::default() });
        parts.into_iter().try_for_each(|part| self.item(part, Some(number), level + 1))
    }

    fn source(&self, fields: &Fields<'a>) -> Option<Source> {
        serde_json::from_str(fields.get("source")?.get()).ok()
    }

    /// What another board says of an item.
    fn further(&self, fields: &Fields<'a>, line: usize) -> Result<Further, Vec<Problem>> {
        let of_task = OfTask {
            task_id: self.value(fields, "task_id")?,
            max_attempts: self.value(fields, "max_attempts")?,
            timeout_seconds: self.value(fields, "timeout_seconds")?,
            demands: self.cleaned(fields.get("demands"), "demands")?,
            past: self.cleaned(fields.get("past"), "past")?.unwrap_or_default(),
        };
        of_task.checked().map_err(|problem| vec![Problem { line, problem }])
    }

    /// A value whose texts are made harmless.
    fn cleaned<T: DeserializeOwned>(
        &self,
        raw: Option<&'a RawValue>,
        name: &str,
    ) -> Result<Option<T>, Vec<Problem>> {
        let Some(raw) = raw else { return Ok(None) };
        let wrong = |error: serde_json::Error| {
            let Problem { line, problem } = unread(self.line(raw), &error);
            vec![Problem { line, problem: format!("{name}: {problem}") }]
        };
        let mut value: Value = serde_json::from_str(raw.get()).map_err(wrong)?;
        harmless::value(&mut value);
        redact::value(&mut value);
        serde_json::from_value(value).map(Some).map_err(wrong)
    }

    /// What a board has beside tasks.
    fn board(
        &mut self,
        fields: &Fields<'a>,
    ) -> Result<(Brought, Map<String, Value>), Vec<Problem>> {
        let raw = |name: &str| {
            let found = fields.1.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw);
            found.or(fields.get(name)).filter(|raw| raw.get() != "null")
        };
        let entries = |name: &str| -> Result<Vec<&'a RawValue>, Vec<Problem>> {
            let Some(raw) = raw(name) else { return Ok(Vec::new()) };
            serde_json::from_str(raw.get()).map_err(|error| vec![unread(self.line(raw), &error)])
        };
        let wrong = |raw: &RawValue, name: &str, problem: String| {
            vec![Problem { line: self.line(raw), problem: format!("{name}: {problem}") }]
        };
        let mut brought = Brought {
            goal: self.cleaned(raw("goal"), "goal")?,
            master_plan: self.cleaned(raw("master_plan"), "master_plan")?,
            ..Brought::default()
        };
        let mut seen = HashSet::new();
        for raw in entries("agents")? {
            let Some(agent) = self.cleaned::<board::Agent>(Some(raw), "agents")? else { continue };
            let agent = agent.checked().map_err(|problem| wrong(raw, "agents", problem))?;
            if !seen.insert(agent.id.to_string()) {
                return Err(wrong(raw, "agents", format!("{} is there twice", agent.id)));
            }
            brought.agents.push(agent);
        }
        seen.clear();
        for raw in entries("discoveries")? {
            let Some(one) = self.cleaned::<board::Discovery>(Some(raw), "discoveries")? else {
                continue;
            };
            let one = one.checked().map_err(|problem| wrong(raw, "discoveries", problem))?;
            if !seen.insert(one.id.to_string()) {
                return Err(wrong(raw, "discoveries", format!("{} is there twice", one.id)));
            }
            brought.discoveries.push(one);
        }
        let mut metadata: Map<String, Value> =
            self.cleaned(raw("metadata"), "metadata")?.unwrap_or_default();
        let is_read = |key: &str| {
            OF_BOARD.contains(&key)
                || key == UNREAD && fields.unread().is_some()
                || key == "review" && self.review(fields).is_some()
        };
        let of_item = fields.0.iter().map(|(key, raw)| ((*key).to_owned(), *raw));
        let unread: Vec<_> =
            of_item.chain(fields.1.clone()).filter(|(key, _)| !is_read(key)).collect();
        for (key, raw) in unread {
            self.keep(&mut metadata, &key, raw, "not a field of a plan")?;
        }
        board::check(&brought, &metadata).map_err(|problem| vec![Problem { line: 1, problem }])?;
        Ok((brought, metadata))
    }

    /// Fields that are not known. They are kept with the item.
    fn metadata(&mut self, fields: &Fields<'a>) -> Result<Map<String, Value>, Vec<Problem>> {
        let mut metadata = match self.cleaned(fields.get("metadata"), "metadata")? {
            Some(Value::Object(metadata)) => metadata,
            other => other.into_iter().map(|other| ("metadata".to_owned(), other)).collect(),
        };
        if let Some(raw) = fields.get("source").filter(|_| self.source(fields).is_none()) {
            self.keep(&mut metadata, "source", raw, "not an object with format and id")?;
        }
        for (key, raw) in fields.1.iter().filter(|(key, _)| !IGNORED.contains(&key.as_str())) {
            self.keep(&mut metadata, key, raw, "not a field of an item")?;
        }
        Ok(metadata)
    }

    /// Keeps a value in the metadata, under another name if that has its own already, and says so.
    fn keep(
        &mut self,
        metadata: &mut Map<String, Value>,
        key: &str,
        raw: &'a RawValue,
        what: &str,
    ) -> Result<(), Vec<Problem>> {
        let mut key = key.to_owned();
        super::clean(&mut key);
        let value = self.cleaned(Some(raw), &key)?.unwrap_or_default();
        let name = other_than(&key, |name| metadata.contains_key(name));
        let under = if name == key { String::new() } else { format!(", as `{name}`") };
        let remark = format!("`{key}` is {what}: it is kept in its metadata{under}");
        self.remarks.push(Remark { line: self.line(raw), remark });
        metadata.insert(name, value);
        Ok(())
    }
}

/// The name, with a number behind it if there is such a name already.
fn other_than(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}#{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !is_taken(name))
        .unwrap_or_default()
}

/// Names that other planners use for fields that may be given only once; see `Entry`.
const ALSO_CALLED: [(&str, &str); 5] = [
    ("items", "backlog, milestones, tasks and subtasks"),
    ("path", "id"),
    ("depends", "dependencies"),
    ("files", "context_files"),
    ("hints", "context_scope"),
];

/// The problem of an unreadable text, whose beginning is in `line`.
fn unread(line: usize, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let mut what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    super::clean(&mut what);
    if let Some((_, others)) =
        ALSO_CALLED.iter().find(|(name, _)| what == format!("duplicate field `{name}`"))
    {
        what.push_str(&format!(", and {others} are read as that: leave one of them"));
    }
    Problem {
        line: line + error.line().saturating_sub(1),
        problem: format!("it cannot be read: {what}"),
    }
}
