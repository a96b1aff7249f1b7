//! Tasks of Taskwarrior, as `task export` prints them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::json::Json;
use super::record::{Record, plain};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "tasks of Taskwarrior, as `task export` prints them",
    places: &["taskwarrior.json"],
    one_file: true,
    form: "a list of tasks with uuid, description and status",
    is,
    read: Some(read),
    write: None,
};

const NAME: &str = "taskwarrior";

pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done => "completed",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "deleted",
        _ => "pending",
    }
}

fn is(tree: &Tree) -> bool {
    let Some(Ok(Value::Array(tasks))) = tree.only().map(serde_json::from_str) else { return false };
    let has =
        |task: &Value| ["uuid", "description", "status"].iter().all(|name| task[name].is_string());
    !tasks.is_empty() && tasks.iter().all(has)
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let mut report = Report::default();
    let tasks: Result<Vec<&RawValue>, _> = json.whole().and_then(|whole| json.parsed(whole));
    let items = tasks.and_then(|tasks| {
        let nodes =
            tasks.into_iter().map(|raw| task(json.record(raw)?, tree.path.clone(), &mut report));
        nodes.collect::<Result<Vec<Node>, Fault>>()
    });
    let items = items.map_err(|fault| vec![fault])?;
    Read { path: tree.path.clone(), items, report, ..Read::default() }.checked(word)
}

fn task(mut record: Record, path: Option<String>, report: &mut Report) -> Result<Node, Fault> {
    let id = record.needed("uuid")?;
    let given = record.needed("status")?;
    let depends = record.values("depends")?;
    let notes = record.values("annotations")?;
    let notes = notes.iter().filter_map(|note| plain(&note["description"]).or_else(|| plain(note)));
    let notes = notes.collect::<Vec<_>>().join("\n");
    let mut node = Node {
        title: record.needed("description")?,
        description: Some(notes).filter(|notes| !notes.is_empty()),
        depends: depends
            .iter()
            .filter_map(plain)
            .flat_map(|ids| ids.split(',').map(|id| id.trim().to_owned()).collect::<Vec<_>>())
            .collect(),
        tags: record.texts("tags")?,
        priority: match record.text("priority")?.as_deref() {
            Some("H") => Some(3),
            Some("M") => Some(5),
            Some("L") => Some(7),
            _ => None,
        },
        line: record.line,
        ..Node::default()
    };
    // Its number and its rank are of the moment.
    record.take("id");
    record.take("urgency");
    record.rest(&mut node, report);
    status::read(&mut node, &given, None, report);
    node.source = Some(Source { format: NAME.to_owned(), id, path });
    Ok(node)
}
