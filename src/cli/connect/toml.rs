use anyhow::Context;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table as TomlTable, TableLike, Value};

use super::entry::{Edited, Entry, SERVER, Setting, Table};
use super::json::split_mark;

/// Puts the entry at `[servers.callboard]`. Comments, order and layout of the rest stay.
pub(super) fn edit(text: &str, servers: &str, entry: &Entry) -> anyhow::Result<Edited> {
    let (mark, text) = split_mark(text);
    let edited = edit_unmarked(text, servers, entry)?;
    let are_windows = 2 * text.matches("\r\n").count() > text.matches('\n').count();
    let line_ends = if are_windows { "\r\n" } else { "\n" };
    let text = edited.text.replace("\r\n", "\n").replace('\n', line_ends);
    Ok(Edited { text: format!("{mark}{text}"), ..edited })
}

/// The `args` of the entry; empty if there are none.
pub(super) fn arguments(text: &str, servers: &str) -> Vec<String> {
    let Ok(document) = split_mark(text).1.parse::<DocumentMut>() else { return Vec::new() };
    let server = document.get(servers).and_then(|servers| servers.get(SERVER));
    let words = server.and_then(|server| server.get("args")?.as_array()).into_iter().flatten();
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// The text without the table `[servers.callboard]`; none if there is none. Comments above it stay.
pub(super) fn remove(text: &str, servers: &str) -> anyhow::Result<Option<String>> {
    let (mark, unmarked) = split_mark(text);
    let mut document: DocumentMut = unmarked.parse().context("it is not valid TOML")?;
    let Some(servers_table) = document.get_mut(servers).and_then(Item::as_table_like_mut) else {
        return Ok(None);
    };
    let Some(removed) = servers_table.remove(SERVER) else { return Ok(None) };
    if servers_table.is_empty() && servers_table.iter().next().is_none() {
        document.remove(servers);
    }
    if let Item::Table(table) = &removed {
        let comments = table
            .decor()
            .prefix()
            .and_then(|prefix| prefix.as_str())
            .unwrap_or_default()
            .to_owned();
        put_back(&mut document, table.position(), &comments);
    }
    let are_windows = 2 * text.matches("\r\n").count() > text.matches('\n').count();
    let line_ends = if are_windows { "\r\n" } else { "\n" };
    let text = document.to_string().replace("\r\n", "\n").replace('\n', line_ends);
    Ok(Some(format!("{mark}{text}")))
}

/// Puts comments that stood above a removed table above the next one, or at the end.
fn put_back(document: &mut DocumentMut, position: Option<isize>, comments: &str) {
    if comments.trim().is_empty() {
        return;
    }
    match next_table(document.as_table_mut(), position) {
        Some(next) => {
            let before = next
                .decor()
                .prefix()
                .and_then(|prefix| prefix.as_str())
                .unwrap_or_default()
                .to_owned();
            next.decor_mut().set_prefix(format!("{}\n{before}", comments.trim_end()));
        }
        None => {
            let before = document.trailing().as_str().unwrap_or_default().to_owned();
            let own = if document.is_empty() { comments.trim_start() } else { comments };
            document.set_trailing(format!("{}\n{before}", own.trim_end()));
        }
    }
}

/// The table that is written first after `position`.
fn next_table(table: &mut TomlTable, position: Option<isize>) -> Option<&mut TomlTable> {
    let mut next: Option<&mut TomlTable> = None;
    let mut tables: Vec<&mut TomlTable> = vec![table];
    while let Some(table) = tables.pop() {
        for (_, item) in table.iter_mut() {
            match item {
                Item::Table(below) => {
                    let is_nearer = below.position() > position
                        && next.as_ref().is_none_or(|next| below.position() < next.position());
                    if is_nearer && !below.is_implicit() {
                        next = Some(below);
                    } else {
                        tables.push(below);
                    }
                }
                Item::ArrayOfTables(below) => tables.extend(below.iter_mut()),
                _ => {}
            }
        }
    }
    next
}

/// Edits a text without a byte order mark. The document does not preserve the kind of its line
/// ends.
fn edit_unmarked(text: &str, servers: &str, entry: &Entry) -> anyhow::Result<Edited> {
    let mut document: DocumentMut = text.parse().context("it is not valid TOML")?;
    let mut server_table = TomlTable::new();
    if !document.contains_key(servers) {
        keep_last_comments_above(&mut server_table, &mut document);
    }
    let servers_item = document.entry(servers).or_insert_with(without_header);
    let empty = if servers_item.is_inline_table() {
        Item::Value(InlineTable::new().into())
    } else {
        Item::Table(server_table)
    };
    let servers_table =
        servers_item.as_table_like_mut().with_context(|| format!("`{servers}` is not a table"))?;
    let new = !servers_table.contains_key(SERVER);
    let mut server = servers_table
        .entry(SERVER)
        .or_insert(empty)
        .as_table_like_mut()
        .with_context(|| format!("`{servers}.{SERVER}` is not a table"))?;
    let changes = entry.merge_into(&mut server);
    Ok(Edited { text: document.to_string(), new, changes })
}

/// Comments at the end of a file belong to no table; a new table would be put above them.
fn keep_last_comments_above(table: &mut TomlTable, document: &mut DocumentMut) {
    let comments = document.trailing().as_str().unwrap_or_default().trim_end();
    if !comments.is_empty() {
        table.decor_mut().set_prefix(format!("{comments}\n\n"));
        document.set_trailing("");
    }
}

fn without_header() -> Item {
    let mut table = TomlTable::new();
    table.set_implicit(true);
    Item::Table(table)
}

impl Table for &mut dyn TableLike {
    fn shown(&self, key: &str) -> Option<String> {
        let item = self.get(key)?;
        Some(match item.as_value() {
            Some(value) => value.clone().decorated("", "").to_string(),
            None => item.type_name().to_owned(),
        })
    }

    fn holds(&self, key: &str, setting: &Setting) -> bool {
        let Some(value) = self.get(key).and_then(Item::as_value) else {
            return false;
        };
        match setting {
            Setting::Text(text) => value.as_str() == Some(text),
            Setting::Number(number) => value.as_integer() == Some(i64::from(*number)),
            Setting::Flag(flag) => value.as_bool() == Some(*flag),
            Setting::List(list) => value.as_array().is_some_and(|array| {
                array.len() == list.len()
                    && array.iter().zip(list).all(|(is, should)| is.as_str() == Some(should))
            }),
            Setting::Field(name, text) => {
                let field = value.as_inline_table().and_then(|table| table.get(name));
                field.and_then(Value::as_str) == Some(text)
            }
        }
    }

    fn set(&mut self, key: &str, setting: &Setting) {
        let mut value = match setting {
            Setting::Text(text) => Value::from(text),
            Setting::List(list) => Value::from(Array::from_iter(list)),
            Setting::Number(number) => Value::from(i64::from(*number)),
            Setting::Flag(flag) => Value::from(*flag),
            Setting::Field(name, text) => {
                let before = self.get(key).and_then(Item::as_inline_table);
                let mut table = before.cloned().unwrap_or_default();
                table.insert(*name, text.into());
                table.into()
            }
        };
        // A comment after the old value is part of its decor.
        if let Some(before) = self.get(key).and_then(Item::as_value) {
            *value.decor_mut() = before.decor().clone();
        }
        self.insert(key, Item::Value(value));
    }

    fn remove(&mut self, key: &str) {
        TableLike::remove(*self, key);
    }
}
