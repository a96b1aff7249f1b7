//! `tasks.json` of task-master: tags, each with a list of tasks, which have subtasks.

mod write;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::Json;
use super::record::{Record, plain};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, priority, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the tasks.json of task-master",
    places: &[".taskmaster/tasks/tasks.json"],
    one_file: true,
    form: "tags with lists of numbered tasks",
    is,
    read: Some(read),
    write: Some(write::write),
};

const NAME: &str = "task-master";
/// The tag that is there without being asked for. Only its ids are numbers.
const MASTER: &str = "master";
/// Field that names the tag in the metadata of the item that stands for it.
const TAG: &str = "tag";

/// Fields of a task that are read by their names, beside those that are kept.
const OWN: [&str; 10] = [
    "id",
    "title",
    "description",
    "details",
    "status",
    status::OWN,
    "subtasks",
    "parentId",
    "parentTaskId",
    TAG,
];

fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Available => "pending",
        TaskStatus::Claimed | TaskStatus::InProgress => "in-progress",
        TaskStatus::Review => "review",
        TaskStatus::Done => "done",
        TaskStatus::Failed => "blocked",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "cancelled",
    }
}

fn is(tree: &Tree) -> bool {
    let Some(text) = tree.only() else { return false };
    let is_id = |id: &Value| {
        plain(id).is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_tag = |tag: &Tag| tag.tasks.iter().all(|task| is_id(&task.id));
    let tags: Result<BTreeMap<String, Tag>, _> = serde_json::from_str(text);
    serde_json::from_str(text).is_ok_and(|tag| is_tag(&tag))
        || tags.is_ok_and(|tags| !tags.is_empty() && tags.values().all(is_tag))
}

/// What a file is known by. The rest is skipped, however deeply it is nested.
#[derive(Deserialize)]
struct Tag {
    tasks: Vec<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    id: Value,
    #[expect(dead_code, reason = "it has to be there")]
    title: String,
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let mut reading = Reading { source: tree.path.clone(), json, report: Report::default() };
    let items = reading.tags().map_err(|fault| vec![fault])?;
    Read { path: tree.path.clone(), title: None, items, report: reading.report, ..Read::default() }
        .checked(word)
}

struct Reading<'a> {
    source: Option<String>,
    json: Json<'a>,
    report: Report,
}

/// Where a task's numbers are ids: below the tag of this name, and among the subtasks of a task.
#[derive(Clone, Copy)]
struct Within<'a> {
    tag: &'a str,
    task: Option<&'a str>,
}

impl Within<'_> {
    fn id(&self, own: &str) -> String {
        let id = self.task.map_or_else(|| own.to_owned(), |task| format!("{task}.{own}"));
        if self.tag == MASTER { id } else { format!("{}:{id}", self.tag) }
    }

    fn level(&self) -> usize {
        self.task.map_or(1, |task| task.split('.').count() + 1)
    }
}

impl<'a> Reading<'a> {
    fn tags(&mut self) -> Result<Vec<Node>, Fault> {
        let whole = self.json.whole()?;
        let mut tags: BTreeMap<String, &RawValue> = self.json.parsed(whole)?;
        if tags.get("tasks").is_some_and(|tasks| tasks.get().starts_with('[')) {
            // Files from before there were tags.
            tags = BTreeMap::from([(MASTER.to_owned(), whole)]);
        }
        let mut tags: Vec<_> = tags.into_iter().collect();
        tags.sort_by_key(|(_, raw)| raw.get().as_ptr());
        let is_alone = tags.len() == 1 && tags[0].0 == MASTER;
        let mut items = Vec::new();
        for (tag, raw) in tags {
            let fields: BTreeMap<String, &RawValue> = self.json.parsed(raw)?;
            let tasks: Vec<&RawValue> = match fields.get("tasks") {
                Some(tasks) => self.json.parsed(tasks)?,
                None => Vec::new(),
            };
            let line = self.json.line(raw);
            let within = Within { tag: &tag, task: None };
            let parts = self.tasks(&tasks, within)?;
            let about = fields.get("metadata").map(|raw| self.json.record(raw)).transpose()?;
            match about {
                _ if parts.is_empty() => {
                    self.report.note(
                        &self.json.path,
                        line,
                        format!("the tag {tag} has no tasks: it is left out"),
                    );
                }
                Some(about) if is_alone => {
                    let mut dropped = Report::default();
                    about.rest(&mut Node::default(), &mut dropped);
                    dropped.kept.keys().for_each(|name| {
                        self.report.left_out(&format!("metadata.{name} of the tag"))
                    });
                    items = parts;
                }
                None if is_alone => items = parts,
                about => items.push(self.tag(&tag, line, about, parts)?),
            }
        }
        Ok(items)
    }

    /// The item that stands for a tag, if there are several.
    fn tag(
        &mut self,
        tag: &str,
        line: usize,
        about: Option<Record>,
        items: Vec<Node>,
    ) -> Result<Node, Fault> {
        let source = self.source(format!("{tag}:"));
        let mut node = Node { title: tag.to_owned(), source, items, line, ..Node::default() };
        if let Some(mut about) = about {
            node.description = about.text("description")?;
            about.rest(&mut node, &mut self.report);
        }
        node.metadata.insert(TAG.to_owned(), tag.into());
        Ok(node)
    }

    fn source(&self, id: String) -> Option<Source> {
        Some(Source { format: NAME.to_owned(), id, path: self.source.clone() })
    }

    fn tasks(&mut self, tasks: &[&'a RawValue], within: Within<'_>) -> Result<Vec<Node>, Fault> {
        let mut records = Vec::with_capacity(tasks.len());
        for raw in tasks {
            let (mut record, parts) =
                self.json.record_and_parts(raw, "subtasks", within.level())?;
            let id = record.needed("id")?;
            records.push((record, id, parts));
        }
        let beside: Vec<String> = records.iter().map(|(_, id, _)| id.clone()).collect();
        records
            .into_iter()
            .map(|(record, id, parts)| self.task(record, &id, within, &beside, &parts))
            .collect()
    }

    fn task(
        &mut self,
        mut record: Record,
        own: &str,
        within: Within<'_>,
        beside: &[String],
        parts: &[&'a RawValue],
    ) -> Result<Node, Fault> {
        let mut node = Node {
            title: record.needed("title")?,
            description: record.text("description")?,
            hints: record.text("details")?,
            source: self.source(within.id(own)),
            line: record.line,
            ..Node::default()
        };
        for given in record.values("dependencies")? {
            let id = plain(&given)
                .ok_or_else(|| record.fault("dependencies has an entry that is not an id"))?;
            node.depends.push(depended(&given, &id, within, beside));
        }
        priority::read(&mut node, &mut record, priority::word)?;
        let status =
            record.text("status")?.unwrap_or_else(|| word(TaskStatus::Available).to_owned());
        // What a subtask is a part of, it says by standing there.
        record.take("parentId");
        record.take("parentTaskId");
        let own_word = record.take(status::OWN);
        record.rest(&mut node, &mut self.report);
        status::read(&mut node, &status, None, &mut self.report);
        status::own(&mut node, own_word, &status, word);
        node.items = self.tasks(
            parts,
            Within {
                task: Some(
                    &within.task.map_or_else(|| own.to_owned(), |task| format!("{task}.{own}")),
                ),
                ..within
            },
        )?;
        Ok(node)
    }
}

/// The id that a dependency names. Among subtasks a number names one beside, and a text a task;
/// whichever is there.
fn depended(given: &Value, id: &str, within: Within<'_>, beside: &[String]) -> String {
    let is_beside = beside.iter().any(|other| other == id);
    let top = Within { task: None, ..within };
    match within.task {
        Some(_) if given.is_number() && is_beside => within.id(id),
        _ => top.id(id),
    }
}
