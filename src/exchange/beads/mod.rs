//! JSON lines of beads: an issue a line.

mod write;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::record::{Record, plain};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, parts, priority, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the issues of beads",
    places: &[".beads/issues.jsonl", ".beads/beads.jsonl"],
    one_file: true,
    form: "JSON lines of issues with id, title and issue_type or dependencies",
    is,
    read: Some(read),
    write: Some(write::write),
};

const NAME: &str = "beads";
/// Field of the metadata with relations that nothing waits for.
const LINKS: &str = "links";
/// The relation of an issue to what it is a part of.
const PART: &str = "parent-child";
const BLOCKS: &str = "blocks";

/// Fields of an issue that are read by their names, beside those that are kept.
const OWN: [&str; 7] = ["id", "title", "description", "design", "status", status::OWN, "labels"];

fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Available => "open",
        TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Review => "in_progress",
        TaskStatus::Failed => "blocked",
        TaskStatus::Done | TaskStatus::Cancelled | TaskStatus::Obsolete => "closed",
    }
}

/// Priorities are numbers from 0, the most urgent.
fn priority_word(priority: u8) -> &'static str {
    ["0", "0", "1", "1", "2", "2", "3", "3", "4", "4"][usize::from(priority.clamp(1, 10)) - 1]
}

fn is(tree: &Tree) -> bool {
    let first = tree.only().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let Some(Ok(issue)) = first.map(serde_json::from_str::<Value>) else { return false };
    let has = |name: &str| issue.get(name).is_some();
    has("id")
        && has("title")
        && has("status")
        && (has("issue_type") || has("dependencies") || has("priority"))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path: Arc<str> = tree.path.clone().unwrap_or_else(|| "-".to_owned()).into();
    let mut report = Report::default();
    let (mut nodes, mut faults) = (Vec::new(), Vec::new());
    let lines = tree.only().unwrap_or_default().lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Result<Map<String, Value>, _> = serde_json::from_str(line);
        let record = fields.map(|fields| Record::new(&path, number + 1, fields));
        let read = match record {
            Ok(record) => issue(record, tree.path.clone(), &mut report),
            Err(error) => Err(Fault {
                path: path.to_string(),
                line: number + 1,
                problem: format!("it cannot be read: {error}; each line is an object"),
            }),
        };
        match read {
            Ok(found) => nodes.extend(found),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let items = parts::below(nodes, &mut report);
    Read { path: tree.path.clone(), items, report, ..Read::default() }.checked(word)
}

/// The item of an issue, and the id of the one that it is a part of.
fn issue(
    mut record: Record,
    path: Option<String>,
    report: &mut Report,
) -> Result<Option<(Node, Option<String>)>, Fault> {
    let status = record.text("status")?.unwrap_or_else(|| "open".to_owned());
    if status == "tombstone" {
        report.left_out("an issue that was deleted");
        return Ok(None);
    }
    let id = record.needed("id")?;
    let mut node = Node {
        title: record.needed("title")?,
        description: record.text("description")?,
        hints: record.text("design")?,
        tags: record.texts("labels")?,
        line: record.line,
        ..Node::default()
    };
    if let Some(number) = record.text(priority::PRIORITY)? {
        let level = number.parse::<u8>().ok().filter(|level| *level <= 4);
        node.priority = Some(
            1 + 2 * level
                .ok_or_else(|| record.fault(format!("priority is {number}: it is 0 to 4")))?,
        );
    }
    let (parent, links) = relations(&mut node, &mut record, &id, report)?;
    let assignee = record.text("assignee")?;
    node.source = Some(Source { format: NAME.to_owned(), id, path });
    let own = record.take(status::OWN);
    record.rest(&mut node, report);
    if let Some(assignee) = &assignee {
        report.kept("assignee");
        node.metadata.insert("assignee".to_owned(), assignee.as_str().into());
    }
    if !links.is_empty() {
        node.metadata.insert(LINKS.to_owned(), links.into());
    }
    status::read(&mut node, &status, assignee.as_deref(), report);
    status::own(&mut node, own, &status, word);
    Ok(Some((node, parent)))
}

/// Reads what an issue depends on: what it is a part of, and the relations that are kept.
fn relations(
    node: &mut Node,
    record: &mut Record,
    id: &str,
    report: &mut Report,
) -> Result<(Option<String>, Vec<Value>), Fault> {
    let (mut parent, mut links) = (None, Vec::new());
    for relation in record.values("dependencies")? {
        let kind = plain(&relation["type"]).unwrap_or_else(|| BLOCKS.to_owned());
        let on = match &relation {
            Value::Object(_) => {
                plain(&relation["depends_on_id"]).or_else(|| plain(&relation["id"]))
            }
            other => plain(other),
        };
        let Some(on) = on else { return Err(record.fault("a dependency has no depends_on_id")) };
        if plain(&relation["issue_id"]).is_some_and(|own| own != id) {
            return Err(record
                .fault(format!("a dependency is of issue {}, not of {id}", relation["issue_id"])));
        }
        let details = relation.as_object().into_iter().flat_map(Map::keys);
        let known = ["issue_id", "depends_on_id", "id", "type"];
        let lost = details.filter(|name| !known.contains(&name.as_str()));
        match kind.as_str() {
            BLOCKS => node.depends.push(on),
            PART if parent.is_none() => parent = Some(on),
            _ => {
                report.kept(&format!("dependency of type {kind}"));
                links.push(relation.clone());
                continue;
            }
        }
        lost.for_each(|name| report.left_out(&format!("dependencies.{name}")));
    }
    Ok((parent, links))
}
