//! Differences between two states, entity by entity.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::document::Document;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Added,
    Removed,
    Changed,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    pub table: &'static str,
    /// Empty for the board itself
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    pub kind: Kind,
    /// Names of the fields that differ
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// All changes, ordered by table and id.
pub fn diff(from: &Document, to: &Document) -> Vec<Change> {
    let mut changes = Vec::new();
    let fields = differing(&from.board, &to.board);
    if !fields.is_empty() {
        changes.push(Change { table: "board", id: String::new(), kind: Kind::Changed, fields });
    }
    fn tasks(document: &Document) -> BTreeMap<&str, &super::task::Task> {
        document.tasks.iter().map(|task| (task.id.as_str(), task.as_ref())).collect()
    }
    fn discoveries(document: &Document) -> BTreeMap<&str, &super::discovery::Discovery> {
        document.discoveries.iter().map(|one| (one.id.as_str(), one)).collect()
    }
    fn messages(document: &Document) -> BTreeMap<&str, &super::message::Message> {
        document.messages.iter().map(|one| (one.id.as_str(), one)).collect()
    }
    fn reservations(document: &Document) -> BTreeMap<&str, &super::reservation::Reservation> {
        document.reservations.iter().map(|one| (one.id.as_str(), one)).collect()
    }
    compare("tasks", &tasks(from), &tasks(to), &mut changes);
    compare("agents", &by_id(&from.agents), &by_id(&to.agents), &mut changes);
    compare("discoveries", &discoveries(from), &discoveries(to), &mut changes);
    compare("messages", &messages(from), &messages(to), &mut changes);
    compare("reservations", &reservations(from), &reservations(to), &mut changes);
    compare("participants", &by_id(&from.participants), &by_id(&to.participants), &mut changes);
    compare("sessions", &by_id(&from.sessions), &by_id(&to.sessions), &mut changes);
    compare("retired", &by_id(&from.retired), &by_id(&to.retired), &mut changes);
    compare("workflows", &by_id(&from.workflows), &by_id(&to.workflows), &mut changes);
    compare("checkpoints", &by_id(&from.checkpoints), &by_id(&to.checkpoints), &mut changes);
    changes
}

fn by_id<K: Ord + std::borrow::Borrow<str>, T>(table: &BTreeMap<K, T>) -> BTreeMap<&str, &T> {
    table.iter().map(|(id, one)| (id.borrow(), one)).collect()
}

fn compare<T: PartialEq + Serialize>(
    table: &'static str,
    from: &BTreeMap<&str, &T>,
    to: &BTreeMap<&str, &T>,
    changes: &mut Vec<Change>,
) {
    let start = changes.len();
    for (id, old) in from {
        let (kind, fields) = match to.get(id) {
            None => (Kind::Removed, Vec::new()),
            Some(new) if old != new => (Kind::Changed, differing(*old, *new)),
            Some(_) => continue,
        };
        changes.push(Change { table, id: (*id).to_owned(), kind, fields });
    }
    for id in to.keys().filter(|id| !from.contains_key(*id)) {
        changes.push(Change { table, id: (*id).to_owned(), kind: Kind::Added, fields: Vec::new() });
    }
    changes[start..].sort_by(|one, other| one.id.cmp(&other.id));
}

/// Names of the fields that differ, in the order of the new value.
fn differing<T: Serialize>(old: &T, new: &T) -> Vec<String> {
    let fields = |one: &T| match serde_json::to_value(one) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (old, new) = (fields(old), fields(new));
    let changed =
        new.iter().filter(|(name, value)| old.get(*name) != Some(value)).map(|(name, _)| name);
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    changed.chain(gone).cloned().collect()
}
