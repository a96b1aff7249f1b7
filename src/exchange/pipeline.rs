//! `tasks.json` of pipelines that plan in phases: a backlog of phases, with milestones, tasks and
//! subtasks.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json::Json;
use super::record::Record;
use super::report::{Fault, Report};
use super::view::Word;
use super::{Format, Read, Tree, View, Written, status};
use crate::plan::Node;
use crate::state::hierarchy;
use crate::state::task::{DEFAULT_PRIORITY, Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the tasks.json of a pipeline: phases, milestones, tasks and subtasks",
    places: &["tasks.json"],
    one_file: true,
    form: "a backlog of phases",
    is,
    read: Some(read),
    write: Some(write),
};

const NAME: &str = "pipeline";
const BACKLOG: &str = "backlog";

/// Fields of an item that are read by their names, beside those that are kept.
const OWN: [&str; 7] = ["id", "title", "description", "status", status::OWN, "hints", "files"];

/// What items of each level are called, and the field that has their parts. The last one counts for
/// what is below it.
const LEVELS: [(&str, &str); 4] = [
    ("Phase", "milestones"),
    ("Milestone", "tasks"),
    ("Task", "subtasks"),
    ("Subtask", "subtasks"),
];

/// Levels whose items are there for their parts.
const GROUPS: usize = 2;

fn level(depth: usize) -> (&'static str, &'static str) {
    LEVELS[depth.min(LEVELS.len() - 1)]
}

fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Available => "Planned",
        TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Review => "Implementing",
        TaskStatus::Done => "Complete",
        TaskStatus::Failed => "Failed",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "Obsolete",
    }
}

fn is(tree: &Tree) -> bool {
    let file = tree.only().and_then(|text| serde_json::from_str::<Known>(text).ok());
    file.is_some_and(|file| file.backlog.iter().all(|phase| phase.kind == LEVELS[0].0))
}

/// What a file is known by. The rest is skipped, however deeply it is nested.
#[derive(Deserialize)]
struct Known {
    backlog: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    #[expect(dead_code, reason = "it has to be there")]
    id: String,
    #[serde(rename = "type")]
    kind: String,
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let mut reading = Reading { source: tree.path.clone(), json, report: Report::default() };
    let items = reading.backlog().map_err(|fault| vec![fault])?;
    Read { path: tree.path.clone(), title: None, items, report: reading.report, ..Read::default() }
        .checked(word)
}

struct Reading<'a> {
    source: Option<String>,
    json: Json<'a>,
    report: Report,
}

impl<'a> Reading<'a> {
    fn backlog(&mut self) -> Result<Vec<Node>, Fault> {
        let whole = self.json.whole()?;
        let mut fields: BTreeMap<String, &RawValue> = self.json.parsed(whole)?;
        let phases: Vec<&RawValue> = match fields.remove(BACKLOG) {
            Some(phases) => self.json.parsed(phases)?,
            None => {
                let problem = format!("it has no {BACKLOG}: the list of phases stands there");
                return Err(Fault {
                    path: self.json.path.to_string(),
                    line: self.json.line(whole),
                    problem,
                });
            }
        };
        fields.keys().for_each(|name| self.report.left_out(name));
        self.items(&phases, 0)
    }

    fn items(&mut self, items: &[&'a RawValue], depth: usize) -> Result<Vec<Node>, Fault> {
        items.iter().map(|raw| self.item(raw, depth)).collect()
    }

    fn item(&mut self, raw: &'a RawValue, depth: usize) -> Result<Node, Fault> {
        let (kind, parts) = level(depth);
        let (mut record, below) = self.json.record_and_parts(raw, parts, depth + 1)?;
        let id = record.needed("id")?;
        let mut node = Node {
            title: record.needed("title")?,
            description: record.text("description")?,
            hints: record.text("hints")?,
            depends: record.texts("dependencies")?,
            files: record.texts("files")?,
            tags: record.texts("tags")?,
            priority: priority(&mut record)?,
            line: record.line,
            ..Node::default()
        };
        let is_its_place =
            hierarchy::numbers(&id).is_some_and(|numbers| numbers.len() == depth + 1);
        node.path = Some(&id).filter(|_| is_its_place).cloned();
        node.source = Some(Source { format: NAME.to_owned(), id, path: self.source.clone() });
        record.take_if("type", &kind.into());
        record.take_if("story_points", &1.into());
        let status =
            record.text("status")?.unwrap_or_else(|| word(TaskStatus::Available).to_owned());
        let own_word = record.take(status::OWN);
        record.rest(&mut node, &mut self.report);
        status::read(&mut node, &status, None, &mut self.report);
        let is_said = own_word.is_some();
        status::own(&mut node, own_word, &status, word);
        node.items = self.items(&below, depth + 1)?;
        // Phases and milestones are there for their parts, unless an export says otherwise.
        let is_own = depth >= GROUPS || node.items.is_empty() || is_said;
        node.status = node.status.filter(|_| is_own);
        Ok(node)
    }
}

fn priority(record: &mut Record) -> Result<Option<u8>, Fault> {
    let Some(given) = record.text("priority")? else { return Ok(None) };
    let priority = crate::plan::priority(&given);
    priority.map(Some).ok_or_else(|| {
        record.fault(format!("the priority {given} is neither 1 to 10 nor a word for one"))
    })
}

fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["result"], &mut report);
    let words = view.words(NAME, word, &|_, word| status::stated(word));
    let mut writing = Writing { view, words, ids: ids(view), report };
    let phases: Vec<Value> = view.roots().map(|root| writing.item(root, 0)).collect();
    let text = serde_json::to_string_pretty(&json!({BACKLOG: phases})).unwrap_or_default() + "\n";
    Written {
        files: vec![(FORMAT.places[0].to_owned(), text)],
        report: writing.report,
        ..Written::default()
    }
}

/// The id that each item had, or its path, or the task's own.
fn ids(view: &View) -> Vec<String> {
    let before = view.ids_before(|format| format == NAME);
    let mut taken: HashSet<String> = before.iter().flatten().cloned().collect();
    let ids = before.into_iter().zip(&view.tasks).map(|(before, task)| {
        let path = || task.path.clone().filter(|path| taken.insert(path.clone()));
        before.or_else(path).unwrap_or_else(|| task.id.to_string())
    });
    ids.collect()
}

struct Writing<'a> {
    view: &'a View,
    words: Vec<Word>,
    ids: Vec<String>,
    report: Report,
}

impl Writing<'_> {
    fn item(&mut self, number: usize, depth: usize) -> Value {
        let (view, task) = (self.view, &self.view.tasks[number]);
        let (kind, parts) = level(depth);
        let mut metadata =
            view.metadata(number, &[&OWN[..], &["tags", parts]].concat(), &mut self.report);
        let mut item = Map::new();
        let mut put = |name: &str, value: Value| _ = item.insert(name.to_owned(), value);
        put("id", self.ids[number].as_str().into());
        put("type", metadata.shift_remove("type").unwrap_or_else(|| kind.into()));
        put("title", view.title(number).into());
        put("status", self.words[number].word.as_str().into());
        let is_own = task.is_own_work() && depth < GROUPS;
        let own = self.words[number].own.or(Some(task.status.as_str()).filter(|_| is_own));
        own.into_iter().for_each(|own| put(status::OWN, own.into()));
        put("description", view.description(number).unwrap_or_default().into());
        let (on, aside) = view.depends(number);
        let depends: Vec<String> = on.iter().map(|on| self.ids[*on].clone()).chain(aside).collect();
        let is_subtask = depth + 1 == LEVELS.len();
        if !depends.is_empty() || is_subtask {
            put("dependencies", depends.into());
        }
        if is_subtask {
            // Their readers want these of every subtask.
            for (name, nothing) in [("story_points", json!(1)), ("context_scope", json!(""))] {
                put(name, metadata.shift_remove(name).unwrap_or(nothing));
            }
        }
        // The pipelines have no such fields; they stand beside theirs.
        view.hints(number).into_iter().for_each(|hints| put("hints", hints.into()));
        let files =
            task.context.as_ref().map(|context| &context.files).filter(|files| !files.is_empty());
        files.into_iter().for_each(|files| put("files", json!(files)));
        if !task.tags.is_empty() {
            put("tags", json!(task.tags));
        }
        let above =
            view.parents[number].map_or(DEFAULT_PRIORITY, |parent| view.tasks[parent].priority);
        if task.priority != above {
            put("priority", task.priority.into());
        }
        item.extend(metadata);
        let below: Vec<Value> =
            view.parts[number].iter().map(|part| self.item(*part, depth + 1)).collect();
        if depth + 1 < LEVELS.len() || !below.is_empty() {
            item.insert(parts.to_owned(), below.into());
        }
        Value::Object(item)
    }
}
