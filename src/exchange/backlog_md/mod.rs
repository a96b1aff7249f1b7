//! The directory of Backlog.md: a file a task, with front matter and sections. Its folder says
//! whether a task is a draft or archived.

mod sections;
mod write;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::record::Record;
use super::report::{Fault, Note, Report};
use super::{Format, Read, Tree, front, parts, priority, status};
use crate::plan::Node;
use crate::state::plan::Stated;
use crate::state::task::{Source, TaskStatus};
use sections::Sections;

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the directory of Backlog.md",
    places: &[
        "backlog/tasks/*.md",
        "backlog/completed/*.md",
        "backlog/drafts/*.md",
        "backlog/archive/tasks/*.md",
        "backlog/archive/drafts/*.md",
        "backlog/milestones/*.md",
    ],
    one_file: false,
    form: "files of tasks with front matter",
    is,
    read: Some(read),
    write: Some(write::write),
};

const NAME: &str = "backlog-md";
/// Fields of the metadata: the folder that a task lies in, the title of its milestone, and the text
/// of its file that stands in no section that is known.
const FOLDER: &str = "folder";
const MILESTONE: &str = "milestone_title";
/// The folder of tasks that may be done.
const TASKS: &str = "tasks";

/// Fields of the front matter that are read by their names, beside those that are kept.
const OWN: [&str; 7] =
    ["id", "title", "status", status::OWN, "labels", "parent_task_id", "subtasks"];

/// Sections whose text is kept, as the field of the metadata and the heading.
const KEPT: [(&str, &str); 5] = [
    ("acceptance_criteria", "Acceptance Criteria"),
    ("definition_of_done", "Definition of Done"),
    ("notes", "Implementation Notes"),
    ("comments", "Comments"),
    ("final_summary", "Final Summary"),
];

fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Review => "In Progress",
        TaskStatus::Done => "Done",
        // What is called off lies in the archive, whatever its status.
        TaskStatus::Available
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::Obsolete => "To Do",
    }
}

/// The status of a task with this word in a folder.
fn stated(folder: &str, word: &str) -> Stated {
    match status::stated(word) {
        Stated::Done => Stated::Done,
        _ if ["tasks", "completed"].contains(&folder) => status::stated(word),
        _ => Stated::Cancelled,
    }
}

fn is(tree: &Tree) -> bool {
    tree.files.values().any(|text| text.starts_with("---"))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let mut report = Report::default();
    let mut faults: Vec<Fault> = Vec::new();
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    let mut nodes: Vec<(Node, Option<String>)> = Vec::new();
    for (name, text) in &tree.files {
        let path = tree.path_of(name).unwrap_or_else(|| name.clone());
        let folder = folder(&path);
        let read = front::record(&path, text);
        let added = read.and_then(|(record, body)| match folder {
            "milestones" => milestone(record, &mut titles, &mut report),
            folder => {
                nodes.push(task(record, body, folder, tree.path_of(name), &mut report)?);
                Ok(())
            }
        });
        faults.extend(added.err());
    }
    if nodes.is_empty() && !faults.is_empty() {
        return Err(faults);
    }
    // The tool skips such files, too.
    let skipped = faults.into_iter().map(|Fault { path, line, problem }| Note {
        path,
        line,
        note: format!("the file is not read: {problem}"),
    });
    report.notes.extend(skipped);
    live(&mut nodes, &mut report);
    for (node, _) in &mut nodes {
        let title =
            node.metadata.get("milestone").and_then(Value::as_str).and_then(|id| titles.get(id));
        if let Some(title) = title.cloned() {
            node.metadata.insert(MILESTONE.to_owned(), title.into());
        }
    }
    nodes.sort_by_cached_key(|(node, _)| place(node));
    let items = parts::below(nodes, &mut report);
    Read { path: tree.path.clone(), title: None, items, report, ..Read::default() }.checked(word)
}

/// Takes out tasks whose id another one has that lies in a folder nearer to the work.
fn live(nodes: &mut Vec<(Node, Option<String>)>, report: &mut Report) {
    let source = |node: &Node| node.source.clone().unwrap_or_default();
    let folder = |node: &Node| {
        let folder = node.metadata.get(FOLDER).and_then(Value::as_str).unwrap_or(TASKS);
        [TASKS, "completed", "drafts"].iter().position(|one| *one == folder).unwrap_or(3)
    };
    let mut first: BTreeMap<String, (usize, Option<String>)> = BTreeMap::new();
    for (node, _) in nodes.iter() {
        let Source { id, path, .. } = source(node);
        let own = (folder(node), path);
        let known = first.entry(id).or_insert_with(|| own.clone());
        if own.0 < known.0 {
            *known = own;
        }
    }
    nodes.retain(|(node, _)| {
        let Source { id, path, .. } = source(node);
        let Some((place, other)) = first.get(&id) else { return true };
        let is_kept = folder(node) == *place;
        if !is_kept {
            let other = other.as_deref().unwrap_or_default();
            let note = format!("the file is not read: {other} has {id}, too, and lies nearer");
            report.note(path.as_deref().unwrap_or_default(), node.line, note);
        }
        is_kept
    });
}

/// The folder below `backlog` that a file lies in.
fn folder(path: &str) -> &str {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let last = directory.rsplit('/').next().unwrap_or_default();
    match last {
        "tasks" if directory.ends_with("archive/tasks") => "archive/tasks",
        "drafts" if directory.ends_with("archive/drafts") => "archive/drafts",
        "completed" | "drafts" | "milestones" => last,
        _ => TASKS,
    }
}

fn milestone(
    mut record: Record,
    titles: &mut BTreeMap<String, String>,
    report: &mut Report,
) -> Result<(), Fault> {
    titles.insert(record.needed("id")?, record.needed("title")?);
    report.left_out("the text of a milestone");
    Ok(())
}

/// The item of a file, and the id of the task that it is a part of.
fn task(
    mut record: Record,
    body: &str,
    folder: &str,
    path: Option<String>,
    report: &mut Report,
) -> Result<(Node, Option<String>), Fault> {
    let id = record.needed("id")?.to_uppercase();
    let mut node = Node {
        title: record.needed("title")?,
        tags: record.texts("labels")?,
        depends: record.texts("dependencies")?.into_iter().map(|id| id.to_uppercase()).collect(),
        source: Some(Source { format: NAME.to_owned(), id, path }),
        line: record.line,
        ..Node::default()
    };
    priority::read(&mut node, &mut record, priority::word)?;
    let word = record.text("status")?.unwrap_or_else(|| "To Do".to_owned());
    let assignees = record.texts("assignee")?;
    let parent = record.text("parent_task_id")?.map(|id| id.to_uppercase());
    // The files of the parts say it.
    record.take("subtasks");
    let own = record.take(status::OWN);
    record.rest(&mut node, report);
    let is_off =
        stated(folder, &word) == Stated::Cancelled && status::stated(&word) != Stated::Cancelled;
    let mut of_folder = Report::default();
    let told = if is_off { &mut of_folder } else { &mut *report };
    status::read(
        &mut node,
        &word,
        Some(assignees.join(", ").as_str()).filter(|who| !who.is_empty()),
        told,
    );
    status::own(&mut node, own, &word, self::word);
    if !assignees.is_empty() {
        report.kept("assignee");
        node.metadata.insert("assignee".to_owned(), json!(assignees));
    }
    if folder != TASKS {
        node.metadata.insert(FOLDER.to_owned(), folder.into());
    }
    if is_off && node.status.is_none_or(|own| !status::stated(own).is_called_off()) {
        node.status = Some("Cancelled");
        report.status(&format!("{word} in {folder}"), "cancelled");
    }
    let mut sections = Sections::of(body);
    node.description = sections.take("Description");
    node.hints = sections.take("Implementation Plan");
    for (field, heading) in KEPT {
        if let Some(text) = sections.take(heading) {
            report.kept(field);
            node.metadata.insert(field.to_owned(), text.into());
        }
    }
    let rest = sections.rest();
    if node.description.is_none() && !rest.contains("## ") {
        node.description = Some(rest).filter(|text| !text.is_empty());
    } else if !rest.is_empty() {
        report.kept("text");
        node.metadata.insert("text".to_owned(), rest.into());
    }
    Ok((node, parent))
}

/// The order of the board: by ordinal, then by the numbers of ids.
fn place(node: &Node) -> (Option<u64>, Vec<u64>) {
    let ordinal =
        node.metadata.get("ordinal").and_then(Value::as_f64).map(|ordinal| ordinal as u64);
    let id = node.source.as_ref().map_or("", |source| source.id.as_str());
    let numbers =
        id.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
    (Some(ordinal.unwrap_or(u64::MAX)), numbers)
}
