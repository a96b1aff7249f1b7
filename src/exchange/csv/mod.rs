//! Tables in CSV: our own, Linear's and Jira's by the names of their columns, and others by a map
//! of columns.

mod guard;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::record::Record;
use super::report::{Fault, Report};
use super::{Format, Read, Tree, parts, priority, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "a table in CSV",
    places: &["tasks.csv"],
    one_file: true,
    form: "a first line with columns for title and id or status",
    is,
    read: Some(read),
    write: Some(write::write),
};

pub(crate) const NAME: &str = "csv";

/// Fields of a task, with the names that columns for them have here and in the exports of other
/// tools.
const COLUMNS: [(&str, &[&str]); 9] = [
    ("id", &["id", "issue key", "key", "identifier", "task id"]),
    ("title", &["title", "summary", "name"]),
    ("description", &["description", "body", "details"]),
    ("status", &["status", "state", "section/column", "column"]),
    ("priority", &["priority"]),
    (
        "depends",
        &[
            "depends",
            "dependencies",
            "depends on",
            "blocked by",
            "blocked by (dependencies)",
            "inward issue link (blocks)",
        ],
    ),
    ("parent", &["parent", "parent key", "parent issue", "parent id", "parent task"]),
    ("tags", &["tags", "labels"]),
    ("assignee", &["assignee"]),
];

fn word(status: TaskStatus) -> &'static str {
    status.as_str()
}

fn priority_word(priority: u8) -> &'static str {
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"][usize::from(priority.clamp(1, 10)) - 1]
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    let first = text.lines().next().unwrap_or_default();
    let separator = [b',', b';', b'\t']
        .into_iter()
        .max_by_key(|byte| first.bytes().filter(|one| one == byte).count());
    csv::ReaderBuilder::new()
        .flexible(false)
        .delimiter(separator.unwrap_or(b','))
        .from_reader(text.as_bytes())
}

fn is(tree: &Tree) -> bool {
    let Some(text) = tree.only() else { return false };
    let Ok(header) = reader(text).headers().cloned() else { return false };
    let fields: Vec<_> = header.iter().filter_map(|name| field(name, &tree.map)).collect();
    let is_named =
        tree.path.as_deref().is_some_and(|path| path.ends_with(".csv") || path.ends_with(".tsv"));
    fields.contains(&"title")
        && (is_named || header.len() > 2 && fields.contains(&"id") && fields.contains(&"status"))
}

/// The field that a column is for.
fn field<'m>(column: &str, map: &'m [(String, String)]) -> Option<&'m str> {
    let column = column.trim();
    if let Some((field, _)) = map.iter().find(|(_, given)| given.eq_ignore_ascii_case(column)) {
        return Some(field);
    }
    let found = COLUMNS
        .iter()
        .find(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(column)));
    found.map(|(field, _)| *field).filter(|field| !map.iter().any(|(mapped, _)| mapped == field))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path: Arc<str> = tree.path.clone().unwrap_or_else(|| "-".to_owned()).into();
    let fault = |line: u64, problem: String| {
        vec![Fault { path: path.to_string(), line: line as usize, problem }]
    };
    let text = tree.only().unwrap_or_default();
    let mut rows = reader(text);
    let header = rows.headers().map_err(|error| fault(1, error.to_string()))?.clone();
    let known = COLUMNS.map(|(field, _)| field);
    if let Some((wrong, _)) = tree.map.iter().find(|(field, _)| !known.contains(&field.as_str())) {
        return Err(fault(
            1,
            format!("--map {wrong}=: there is no such field; there are {}", known.join(", ")),
        ));
    }
    let missing = tree
        .map
        .iter()
        .find(|(_, column)| !header.iter().any(|name| name.trim().eq_ignore_ascii_case(column)));
    if let Some((_, column)) = missing {
        return Err(fault(1, format!("no column is called {column}")));
    }
    if !header.iter().any(|name| field(name, &tree.map) == Some("title")) {
        return Err(fault(
            1,
            "no column is for the title: say which, as --map title=COLUMN".to_owned(),
        ));
    }
    let mut report = Report::default();
    if !header.iter().any(|name| field(name, &tree.map) == Some("status")) {
        let columns = header.iter().map(str::trim).collect::<Vec<_>>().join(", ");
        report.first = Some(format!(
            "no column is for the status, so that all is open: say which with --map status=COLUMN; \
             there are {columns}"
        ));
    }
    let (mut nodes, mut faults) = (Vec::new(), Vec::new());
    for (number, row) in rows.records().enumerate() {
        let row = row.map_err(|error| {
            fault(error.position().map_or(1, csv::Position::line), error.to_string())
        })?;
        let line = row.position().map_or(1, csv::Position::line) as usize;
        match task(fields(&header, &row, tree), &path, line, number + 1, tree, &mut report) {
            Ok(Some(found)) => nodes.push(found),
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    by_titles(&mut nodes);
    let items = parts::below(nodes, &mut report);
    Read { path: tree.path.clone(), items, report, ..Read::default() }.checked(word)
}

/// The cells of a row by their fields. Columns that stand there several times, as in Jira's
/// exports, are a list.
fn fields(header: &csv::StringRecord, row: &csv::StringRecord, tree: &Tree) -> Map<String, Value> {
    let mut fields: Map<String, Value> = Map::new();
    for (column, cell) in
        header.iter().zip(row.iter().map(guard::plain)).filter(|(_, cell)| !cell.trim().is_empty())
    {
        let name = field(column, &tree.map).unwrap_or(column.trim()).to_owned();
        match fields.get_mut(&name) {
            Some(Value::Array(cells)) => cells.push(cell.into()),
            Some(first) => *first = Value::Array(vec![first.take(), cell.into()]),
            None => _ = fields.insert(name, cell.into()),
        }
    }
    fields
}

fn task(
    fields: Map<String, Value>,
    path: &Arc<str>,
    line: usize,
    row: usize,
    tree: &Tree,
    report: &mut Report,
) -> Result<Option<(Node, Option<String>)>, Fault> {
    if fields.is_empty() {
        return Ok(None);
    }
    let mut record = Record::new(path, line, fields);
    let mut single = |name: &str| -> Result<Option<String>, Fault> {
        Ok(record.values(name)?.first().and_then(super::record::plain))
    };
    let id = single("id")?.unwrap_or_else(|| format!("row {row}"));
    // Where statuses are columns of a board, only the time says that something is done.
    let completed = single("Completed At")?.map(|_| "done".to_owned());
    let (description, status, parent) =
        (single("description")?, single("status")?, single("parent")?);
    let assignee = single("assignee")?;
    let mut node = Node {
        title: record.needed("title")?,
        description,
        depends: record.texts("depends")?,
        tags: record.texts("tags")?.iter().flat_map(|cell| listed(cell)).collect(),
        source: Some(Source { format: NAME.to_owned(), id, path: tree.path.clone() }),
        line,
        ..Node::default()
    };
    priority::read(&mut node, &mut record, priority_word)?;
    let own = record.take("metadata");
    record.rest(&mut node, report);
    if let Some(Ok(Value::Object(more))) =
        own.as_ref().and_then(Value::as_str).map(serde_json::from_str)
    {
        node.metadata.extend(more);
    }
    if let Some(assignee) = &assignee {
        report.kept("assignee");
        node.metadata.insert("assignee".to_owned(), assignee.as_str().into());
    }
    let status = completed.or(status).unwrap_or_else(|| "available".to_owned());
    status::read(&mut node, &status, assignee.as_deref(), report);
    Ok(Some((node, parent)))
}

/// The entries of a cell.
fn listed(cell: &str) -> Vec<String> {
    if let Ok(entries) = serde_json::from_str(cell) {
        return entries;
    }
    cell.split([',', ';']).map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// Reads the cells with what rows wait for. An id may have commas, and some tools name other rows
/// by their titles.
fn by_titles(nodes: &mut [(Node, Option<String>)]) {
    let id = |node: &Node| node.source.as_ref().map(|source| source.id.clone()).unwrap_or_default();
    let mut titles: HashMap<String, Option<String>> = HashMap::new();
    for (node, _) in nodes.iter() {
        titles
            .entry(node.title.clone())
            .and_modify(|id| *id = None)
            .or_insert_with(|| Some(id(node)));
    }
    let ids: std::collections::HashSet<String> = nodes.iter().map(|(node, _)| id(node)).collect();
    // Jira's rows have a second id, by which they name what they are a part of.
    for (node, _) in nodes.iter() {
        let other = node.metadata.iter().find(|(name, _)| name.eq_ignore_ascii_case("issue id"));
        let other = other.and_then(|(_, other)| other.as_str()).map(str::to_owned);
        titles.extend(other.map(|other| (other, Some(id(node)))));
    }
    let resolve = |name: &mut String| {
        if let (false, Some(Some(id))) = (ids.contains(name), titles.get(name)) {
            name.clone_from(id);
        }
    };
    for (node, parent) in nodes {
        let cells = std::mem::take(&mut node.depends).into_iter();
        let entries =
            cells.flat_map(|cell| if ids.contains(&cell) { vec![cell] } else { listed(&cell) });
        node.depends = entries.collect();
        node.depends.iter_mut().chain(parent).for_each(resolve);
    }
}
