//! Plans of Cursor: Markdown whose front matter has a list of what is to be done. The text below it
//! is for people.

use super::front;
use super::json::Json;
use super::record::plain;
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "a plan of Cursor, with todos in its front matter",
    places: &[".cursor/plans/*.plan.md"],
    one_file: true,
    form: "front matter with a list of todos",
    is: |tree| {
        tree.only().is_some_and(|text| {
            front::record("-", text).is_ok_and(|(mut record, _)| {
                record.take("todos").is_some_and(|todos| todos.is_array())
            })
        })
    },
    read: Some(read),
    write: None,
};

const NAME: &str = "cursor";

pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done => "completed",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "cancelled",
        _ => "pending",
    }
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let one = |fault: Fault| vec![fault];
    let (mut record, body) = front::record(&path, tree.only().unwrap_or_default()).map_err(one)?;
    let mut report = Report::default();
    let todos = record.values("todos").map_err(one)?;
    let json = serde_json::to_string(&todos).unwrap_or_default();
    let json = Json::new(&path, &json);
    let entries: Vec<&serde_json::value::RawValue> =
        json.whole().and_then(|whole| json.parsed(whole)).map_err(one)?;
    let mut items = Vec::new();
    for raw in entries {
        let mut todo = json.record(raw).map_err(one)?;
        let id = todo.needed("id").map_err(one)?;
        let given = todo.text("status").map_err(one)?.unwrap_or_else(|| "pending".to_owned());
        let depends = todo.values("dependencies").map_err(one)?;
        let mut node = Node {
            title: todo.needed("content").map_err(one)?,
            depends: depends.iter().filter_map(plain).collect(),
            source: Some(Source { format: NAME.to_owned(), id, path: tree.path.clone() }),
            line: 1,
            ..Node::default()
        };
        todo.rest(&mut node, &mut report);
        status::read(&mut node, &given, None, &mut report);
        items.push(node);
    }
    let title = record.text("name").map_err(one)?;
    let mut rest = Node::default();
    record.rest(&mut rest, &mut Report::default());
    rest.metadata.keys().for_each(|field| report.left_out(field));
    if !body.trim().is_empty() {
        let lines = body.trim().lines().count();
        report.note(&path, 1, format!("{lines} lines below the front matter are not read"));
    }
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}
