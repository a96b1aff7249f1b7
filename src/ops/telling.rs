//! Events as replies show them. A page of events is bounded in bytes, and an event too large for it
//! is shortened. The journal and the feed have all events whole.

use std::num::NonZeroU32;

use serde_json::{Map, Value, json};

use super::claim_task::shortened;
use super::page::Page;
use super::privacy::without_texts;
use super::{Call, Principal};
use crate::state::document::Document;
use crate::state::event::{Event, Recorded};
use crate::state::refusal::Refusal;

/// Most bytes of JSON that the events of one reply have for a program, unless a single event has
/// more.
const PAGE_BYTES: usize = 64 * 1024;
/// An event with more bytes of JSON is shortened.
const EVENT_BYTES: usize = 16 * 1024;

/// Most fields of one object that are shown; only objects that agents made up have more.
const FIELDS: usize = 40;
/// Ways to shorten an event, tried in order, from the one that leaves out least to one that is
/// always short enough.
const BRIEFER: [Brevity; 3] = [
    Brevity { text: 1_000, entries: 40, depth: 4 },
    Brevity { text: 160, entries: 40, depth: 4 },
    Brevity { text: 160, entries: 10, depth: 3 },
];

/// A page of events. There may be millions of them, so without a limit it has 50, for programs too.
pub(super) fn page(call: &Call, limit: Option<NonZeroU32>) -> Result<Page<Value>, Refusal> {
    let size = limit.or(NonZeroU32::new(50));
    Ok(Page::new(call, size, 50)?.within(PAGE_BYTES))
}

/// The event as JSON, as the caller may read it: whole if it is small and holds no board's state.
pub(super) fn told(recorded: &Recorded, principal: Option<&Principal>) -> Value {
    match &recorded.event {
        Event::Imported { source, document } => {
            of_document(recorded, document, json!({"source": source}))
        }
        Event::StateRestored { restored_seq, snapshot, document } => of_document(
            recorded,
            document,
            json!({"restored_seq": restored_seq, "snapshot": snapshot}),
        ),
        Event::Purged { document, rows } => {
            of_document(recorded, document, json!({"events": rows.len()}))
        }
        _ => {
            let whole = || serde_json::to_value(recorded).unwrap_or_default();
            let whole = without_texts(recorded, principal).unwrap_or_else(whole);
            if whole.to_string().len() <= EVENT_BYTES { whole } else { in_brief(whole) }
        }
    }
}

fn of_document(recorded: &Recorded, document: &Document, extra: Value) -> Value {
    let mut told = json!({
        "seq": recorded.seq, "at": recorded.at, "writer": recorded.participant, "actor": recorded.actor,
        "kind": recorded.event.kind(), "tasks": document.tasks.len(), "agents": document.agents.len(),
    });
    if let (Some(told), Value::Object(extra)) = (told.as_object_mut(), extra) {
        told.extend(extra);
    }
    told
}

/// The event with less in its fields, marked `shortened`, and with the lengths of its lists in
/// `counts`.
fn in_brief(mut event: Value) -> Value {
    let counts = counts(&event);
    for brevity in &BRIEFER {
        brevity.shorten(&mut event, 0);
        if event.to_string().len() <= EVENT_BYTES {
            break;
        }
    }
    event["shortened"] = Value::Bool(true);
    if !counts.is_empty() {
        event["counts"] = Value::Object(counts);
    }
    event
}

fn counts(event: &Value) -> Map<String, Value> {
    let fields = event.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), Value::from(value.as_array()?.len()))))
        .collect()
}

struct Brevity {
    /// Most bytes of one text.
    text: usize,
    /// Most entries of one list.
    entries: usize,
    /// Levels of nested lists and objects that are kept, counted from the event.
    depth: usize,
}

impl Brevity {
    fn shorten(&self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) if text.len() > self.text => *text = shortened(text, self.text),
            Value::Array(items) => {
                // Each of many objects is shown with its own plain fields only, such as id and
                // title.
                if items.iter().all(Value::is_object) {
                    items
                        .iter_mut()
                        .filter_map(Value::as_object_mut)
                        .for_each(|item| item.retain(|_, value| is_one(value)));
                }
                items.retain(|item| self.keeps(item, depth));
                items.truncate(self.entries);
                items.iter_mut().for_each(|item| self.shorten(item, depth + 1));
            }
            Value::Object(fields) => {
                let mut left = FIELDS;
                fields.retain(|_, value| {
                    let keeps = left > 0 && self.keeps(value, depth);
                    left -= usize::from(keeps);
                    keeps
                });
                fields.values_mut().for_each(|value| self.shorten(value, depth + 1));
            }
            _ => {}
        }
    }

    fn keeps(&self, value: &Value, depth: usize) -> bool {
        depth + 1 < self.depth || is_one(value)
    }
}

/// True for anything but a list or an object.
fn is_one(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}
