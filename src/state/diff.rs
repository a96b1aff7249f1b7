//! Differences between two states, entity by entity.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::document::Document;
use super::kinds::kinds;
use super::record::{All, Record};

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

macro_rules! diff {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        /// All changes, ordered by table and id.
        pub fn diff(from: &Document, to: &Document) -> Vec<Change> {
            let mut changes = Vec::new();
            let fields = differing(&from.board, &to.board);
            if !fields.is_empty() {
                let (table, id) = ("board", String::new());
                changes.push(Change { table, id, kind: Kind::Changed, fields });
            }
            $(compare::<super::$module::$kind>(&from.$field, &to.$field, &mut changes);)*
            changes
        }
    };
}
kinds!(diff);

fn compare<R: Record>(from: &R::All, to: &R::All, changes: &mut Vec<Change>) {
    let (from, to) = (by_id::<R>(from), by_id::<R>(to));
    let table = R::FIELD;
    let start = changes.len();
    for (id, old) in &from {
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

fn by_id<R: Record>(all: &R::All) -> BTreeMap<&str, &R> {
    all.each().map(|(id, one)| (id.borrow(), one)).collect()
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
