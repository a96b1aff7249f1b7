//! Pages of lists: the one place that decides how much of a list a reply shows. A program gets all
//! that it has not limited itself; a model gets as many bytes as it can read, with long texts cut.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Call, input};
use crate::state::limit::{ENTRIES_SHOWN, FIELDS_SHOWN, REPLY, TEXT_SHOWN};
use crate::state::refusal::Refusal;

/// One page of a list while it is filled.
pub(super) struct Page<T> {
    entries: Vec<Shown<T>>,
    size: usize,
    /// Bytes that are left. `None` means no limit.
    room: Option<usize>,
    /// The operation that has an entry whole, if entries may be cut.
    whole: Option<&'static str>,
}

/// How much of the list a reply has, if that is not all.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Part<C> {
    /// Entries in this reply
    pub shown: usize,
    /// Entries in all; null if counting them would take long
    pub total: Option<usize>,
    /// Where the next page begins
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<C>,
}

/// An entry of a list, or what is left of it where it was cut.
pub struct Shown<T> {
    entry: T,
    cut: Option<Value>,
}

impl<T: Serialize> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.cut {
            Some(cut) => cut.serialize(serializer),
            None => self.entry.serialize(serializer),
        }
    }
}

/// An entry that was cut reads as what is left of it.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shown<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { entry: T::deserialize(deserializer)?, cut: None })
    }
}

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.entry
    }
}

impl<T> Shown<T> {
    pub fn into_entry(self) -> T {
        self.entry
    }
}

impl<T: JsonSchema> JsonSchema for Shown<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: Serialize> Page<T> {
    /// A page of at most `limit` entries. Without a limit a model gets `default`, and a program
    /// all.
    pub(super) fn new(
        call: &Call,
        limit: Option<NonZeroU32>,
        default: usize,
    ) -> Result<Self, Refusal> {
        let size = input::page(limit, if call.reader.is_model() { default } else { usize::MAX })?;
        Ok(Self { entries: Vec::new(), size, room: call.reader.room(), whole: None })
    }

    /// Long texts of entries are cut for models, and refer to the operation `whole`.
    pub(super) fn cut(self, whole: &'static str) -> Self {
        Self { whole: Some(whole), ..self }
    }

    /// Limits the page to `bytes`, for programs too.
    pub(super) fn within(self, bytes: usize) -> Self {
        Self { room: Some(self.room.map_or(bytes, |room| room.min(bytes))), ..self }
    }

    /// Adds `entry`. Returns false if there is no room for it: the next page then begins with it.
    pub(super) fn add(&mut self, entry: T) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(room) = self.room else {
            self.entries.push(Shown { entry, cut: None });
            return true;
        };
        let mut cut = None;
        let mut bytes = bytes(&entry);
        if self.whole.is_some() && bytes > TEXT_SHOWN || bytes > room && self.entries.is_empty() {
            (cut, bytes) = self.shortened(&entry, room);
        }
        if bytes > room && !self.entries.is_empty() {
            self.size = self.entries.len();
            return false;
        }
        self.room = Some(room.saturating_sub(bytes));
        self.entries.push(Shown { entry, cut });
        true
    }

    /// Adds `entry` whole, whatever its size.
    pub(super) fn add_whole(&mut self, entry: T) {
        self.room = self.room.map(|room| room.saturating_sub(bytes(&entry)));
        self.entries.push(Shown { entry, cut: None });
    }

    /// Adds entries until one does not fit, and returns whether there is one.
    pub(super) fn fill(&mut self, entries: impl IntoIterator<Item = T>) -> bool {
        entries.into_iter().any(|entry| !self.add(entry))
    }

    /// The entry with less in it, and its size. The first of a page is cut until it fits.
    fn shortened(&self, entry: &T, room: usize) -> (Option<Value>, usize) {
        let whole = self.whole.unwrap_or("callboard");
        let Ok(given) = serde_json::to_value(entry) else { return (None, usize::MAX) };
        for brevity in &BRIEFER {
            let mut value = given.clone();
            brevity.cut(&mut value, whole, 0);
            let bytes = bytes(&value);
            if bytes <= room || !self.entries.is_empty() {
                return (Some(value), bytes);
            }
        }
        (None, usize::MAX)
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.size
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.entries.last().map(|last| &last.entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|shown| &shown.entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn into_entries(self) -> Vec<Shown<T>> {
        self.entries
    }

    /// What the reply says of the list if the page is not all of it: `continues` an earlier page,
    /// or has a `next` one.
    pub(super) fn part<C>(
        &self,
        total: Option<usize>,
        continues: bool,
        next: Option<C>,
    ) -> Option<Part<C>> {
        (continues || next.is_some()).then(|| Part { shown: self.len(), total, next })
    }
}

/// Ways to shorten an entry, from the usual one to one that makes any entry short.
const BRIEFER: [Brevity; 3] = [
    Brevity { text: TEXT_SHOWN, entries: ENTRIES_SHOWN, fields: FIELDS_SHOWN, depth: 4 },
    Brevity {
        text: TEXT_SHOWN / 3,
        entries: ENTRIES_SHOWN / 2,
        fields: FIELDS_SHOWN / 3,
        depth: 3,
    },
    Brevity { text: TEXT_SHOWN / 5, entries: 3, fields: 5, depth: 2 },
];

struct Brevity {
    /// Most bytes of one text.
    text: usize,
    /// Most entries of one list.
    entries: usize,
    /// Most fields of an object inside the entry.
    fields: usize,
    /// Levels of lists and objects that are kept, counted from the entry.
    depth: usize,
}

impl Brevity {
    fn cut(&self, value: &mut Value, whole: &str, depth: usize) {
        match value {
            Value::String(text) => {
                if let Some(cut) = cut_text(text, self.text, whole) {
                    *text = cut;
                }
            }
            Value::Array(items) => {
                let left_out = items.len().saturating_sub(self.entries);
                items.truncate(self.entries);
                items.iter_mut().for_each(|item| self.cut_inner(item, whole, depth + 1));
                if left_out > 0 && items.iter().all(Value::is_string) {
                    items.push(Value::from(format!("… {left_out} more: {whole}")));
                }
            }
            Value::Object(fields) => {
                if depth > 0 && fields.len() > self.fields {
                    let left_out = fields.len() - self.fields;
                    *fields = std::mem::take(fields).into_iter().take(self.fields).collect();
                    fields.insert("…".to_owned(), Value::from(format!("{left_out} more: {whole}")));
                }
                self.cut_names(fields);
                fields.values_mut().for_each(|value| self.cut_inner(value, whole, depth + 1));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn cut_inner(&self, value: &mut Value, whole: &str, depth: usize) {
        match value {
            Value::Array(items) if depth >= self.depth => items.clear(),
            Value::Object(fields) if depth >= self.depth => *fields = Map::new(),
            value => self.cut(value, whole, depth),
        }
    }

    /// Agents make up the names of fields in their data.
    fn cut_names(&self, fields: &mut Map<String, Value>) {
        if fields.keys().any(|name| name.len() > self.text) {
            fields.retain(|name, _| name.len() <= self.text);
        }
    }
}

/// The beginning of a text that is longer than `most` bytes, with its length and where it is whole.
pub(super) fn cut_text(text: &str, most: usize, whole: &str) -> Option<String> {
    if text.len() <= most {
        return None;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Some(format!("{}… ({} bytes: {whole})", &text[..end], text.len()))
}

/// Bytes of JSON, at least as many as a model is sent: what replaces an angle bracket has two bytes
/// more.
pub(super) fn bytes(value: &impl Serialize) -> usize {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.len() + ",".len() + 2 * text.bytes().filter(|byte| *byte == b'<').count()
}

/// Cuts the lists of a reply that is too long for a model and has no pages: what a writing call has
/// made, say. The reply then begins with `shown`, `total` and where the rest is. It stays whole if
/// its other fields alone are too long.
pub(super) fn fit(reply: Value, rest: &str) -> Value {
    let Value::Object(mut fields) = reply else { return reply };
    let mut size = bytes(&fields);
    let in_lists: usize = fields.values().filter(|value| value.is_array()).map(bytes).sum();
    if fields.contains_key("shown") || size.saturating_sub(in_lists) > REPLY {
        return Value::Object(fields);
    }
    let (mut left_out, mut cut) = (0, Vec::new());
    while size > REPLY {
        let lists =
            fields.iter_mut().filter_map(|(name, value)| Some((name, value.as_array_mut()?)));
        let longest =
            lists.filter(|(_, items)| !items.is_empty()).max_by_key(|(_, items)| bytes(*items));
        let Some((name, items)) = longest else { break };
        let before = items.len();
        while size > REPLY
            && let Some(last) = items.pop()
        {
            size -= bytes(&last).min(size);
        }
        left_out += before - items.len();
        cut.push(name.clone());
    }
    if left_out == 0 {
        return Value::Object(fields);
    }
    let shown: usize =
        cut.iter().filter_map(|name| Some(fields.get(name)?.as_array()?.len())).sum();
    let mut whole = Map::new();
    whole.insert("shown".to_owned(), Value::from(shown));
    whole.insert("total".to_owned(), Value::from(shown + left_out));
    whole.insert("next".to_owned(), Value::from(rest));
    whole.extend(
        fields.into_iter().filter(|(name, _)| name != "shown" && name != "total" && name != "next"),
    );
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_lists_without_pages_are_cut_and_only_if_that_helps() {
        let long = "x".repeat(REPLY);
        let page = json!({"shown": 2, "total": 9, "next": "task-2", "tasks": [long, "task-2"]});
        let text = json!({"plan": long, "versions": [1, 2, 3]});
        for whole in [page, text] {
            assert_eq!(fit(whole.clone(), "get_task"), whole);
        }
        let cut = fit(json!({"success": true, "made": ["task-1", long]}), "get_task");
        assert_eq!(
            cut,
            json!({"shown": 1, "total": 2, "next": "get_task", "success": true, "made": ["task-1"]})
        );
    }
}
