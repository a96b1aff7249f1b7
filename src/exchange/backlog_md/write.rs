use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::sections::Sections;
use super::{FOLDER, KEPT, MILESTONE, NAME, OWN, TASKS, stated, word};
use crate::exchange::report::Report;
use crate::exchange::view::free_numbers;
use crate::exchange::{View, Written, front, priority, safe_name, status};
use crate::state::task::TaskStatus;

/// Fields of the front matter that stand before all others, in the order of the tool.
const FIRST: [&str; 3] = ["reporter", "created_date", "updated_date"];

pub(super) fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["files", "result"], &mut report);
    let ids = ids(view);
    let words = view.words(NAME, word, &|number, word| stated(folder(view, number), word));
    let (mut files, mut moved) = (Vec::new(), Vec::new());
    let mut milestones: BTreeMap<String, String> = BTreeMap::new();
    for number in 0..view.tasks.len() {
        let mut metadata = view.metadata(number, &OWN, &mut report);
        let folder = folder(view, number);
        metadata.shift_remove(FOLDER);
        if let (Some(id), Some(title)) = (metadata.get("milestone"), metadata.get(MILESTONE)) {
            milestones.insert(text(id), text(title));
        }
        metadata.shift_remove(MILESTONE);
        let sections = sections(view, number, &mut metadata);
        let mut front = Front(String::from("---\n"));
        front.field("id", &ids[number].as_str().into());
        front.field("title", &view.title(number).into());
        front.field("status", &words[number].word.as_str().into());
        words[number].own.into_iter().for_each(|own| front.field(status::OWN, &own.into()));
        front.field(
            "assignee",
            &metadata.shift_remove("assignee").unwrap_or_else(|| Value::Array(Vec::new())),
        );
        for name in FIRST {
            metadata.shift_remove(name).into_iter().for_each(|value| front.field(name, &value));
        }
        front.field("labels", &view.tasks[number].tags.clone().into());
        let (on, aside) = view.depends(number);
        let depends: Vec<String> = on.iter().map(|on| ids[*on].clone()).chain(aside).collect();
        front.field("dependencies", &depends.into());
        let ordinal = metadata.shift_remove("ordinal");
        if let Some(parent) = view.parent_id(number, &ids) {
            front.field("parent_task_id", &parent.into());
        }
        front.field("priority", &view.priority(NAME, number, priority::word).into());
        ordinal.into_iter().for_each(|value| front.field("ordinal", &value));
        metadata.iter().for_each(|(name, value)| front.field(name, value));
        let name = name(view, number, &ids);
        let path = format!("backlog/{folder}/{name}");
        let before = folder_before(view, number);
        if view.id_in(NAME, number).is_some() && before != folder {
            moved.push((format!("backlog/{before}/{name}"), path.clone()));
        }
        files.push((path, format!("{}---\n{sections}", front.0)));
    }
    for (id, title) in milestones {
        let mut front = Front(String::from("---\n"));
        front.field("id", &id.as_str().into());
        front.field("title", &title.as_str().into());
        let text = format!("{}---\n\n## Description\n\nMilestone: {title}\n", front.0);
        files.push((
            format!(
                "backlog/milestones/{} - {}.md",
                safe_name(&id),
                safe_name(&title).to_lowercase()
            ),
            text,
        ));
    }
    Written { files, report, moved, merge: Some(merge) }
}

/// Fields that a file need not have when they say this.
fn says_nothing(name: &str, value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || name == "priority" && *value == "medium"
}

/// The lines of front matter by the fields that they are of.
fn fields(yaml: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in yaml.lines().filter(|line| line.trim() != "---") {
        let name = line.split_once(':').filter(|_| !line.starts_with([' ', '-', '#']));
        match (name, fields.last_mut()) {
            (Some((name, _)), _) => {
                let name = name.trim_matches(['"', '\'']).to_owned();
                fields.push((name, format!("{line}\n")));
            }
            (None, Some((_, text))) => text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    fields
}

/// The text that is there, with the fields and sections that say something else in `new`.
fn merge(there: &str, new: &str) -> String {
    let read = |text| front::record("-", text).ok();
    let (Some((mut old, old_body)), Some((mut now, new_body))) = (read(there), read(new)) else {
        return new.to_owned();
    };
    let front = |text: &str, body: &str| text[..text.len() - body.len()].to_owned();
    let (old_lines, new_lines) = (fields(&front(there, old_body)), fields(&front(new, new_body)));
    let mut text = String::from("---\n");
    for (name, lines) in &old_lines {
        let (before, after) = (old.take(name), now.take(name));
        let own = new_lines.iter().find(|(other, _)| other == name);
        match own {
            _ if before == after => text.push_str(lines),
            Some((_, lines)) => text.push_str(lines),
            None if [status::OWN, "parent_task_id"].contains(&name.as_str()) => {}
            None => text.push_str(lines),
        }
    }
    let is_new = |name: &String| !old_lines.iter().any(|(other, _)| other == name);
    for (name, lines) in new_lines.iter().filter(|(name, _)| is_new(name)) {
        if now.take(name).is_some_and(|value| !says_nothing(name, &value)) {
            text.push_str(lines);
        }
    }
    let same = Sections::of(old_body) == Sections::of(new_body);
    format!("{text}---\n{}", if same { old_body } else { new_body })
}

/// The id of each task: that which it had, or the next number.
fn ids(view: &View) -> Vec<String> {
    let had = view.ids_before(|format| format == NAME);
    let mut taken: HashSet<String> = had.iter().flatten().cloned().collect();
    let prefix = had
        .iter()
        .flatten()
        .find_map(|id| id.split_once('-'))
        .map_or("TASK", |(prefix, _)| prefix)
        .to_owned();
    let numbers =
        taken.iter().filter_map(|id| id.split_once('-')?.1.split('.').next()?.parse::<u64>().ok());
    let numbers: BTreeSet<u64> = numbers.collect();
    let mut free = free_numbers(&numbers);
    let mut ids: Vec<String> = Vec::new();
    let mut last_part = vec![0; view.tasks.len()];
    for (number, had) in had.into_iter().enumerate() {
        let id = had.unwrap_or_else(|| match view.parents[number] {
            Some(parent) => loop {
                last_part[parent] += 1;
                let id = format!("{}.{}", ids[parent], last_part[parent]);
                if taken.insert(id.clone()) {
                    break id;
                }
            },
            None => format!("{prefix}-{}", free.next().unwrap_or_default()),
        });
        ids.push(id);
    }
    ids
}

fn folder_before(view: &View, number: usize) -> &str {
    view.id_in(NAME, number).and_then(|_| view.kept(number, FOLDER)?.as_str()).unwrap_or(TASKS)
}

/// The folder of a task. What is called off lies in the archive, or where it lay.
fn folder(view: &View, number: usize) -> &'static str {
    let before = folder_before(view, number);
    let is_off = matches!(view.tasks[number].status, TaskStatus::Cancelled | TaskStatus::Obsolete);
    let folders: &[&str] = match (is_off, view.tasks[number].status) {
        (true, _) => &["archive/tasks", "archive/drafts", "drafts"],
        (false, TaskStatus::Done) => &[TASKS, "completed", "archive/tasks", "archive/drafts"],
        (false, _) => &[TASKS],
    };
    folders.iter().find(|folder| **folder == before).unwrap_or(&folders[0])
}

/// The name of a task's file: that which it had, or one of its id and title.
fn name(view: &View, number: usize, ids: &[String]) -> String {
    let had = view
        .id_in(NAME, number)
        .and_then(|_| view.source(number)?.path.as_deref()?.rsplit('/').next());
    let id = ids[number].to_lowercase();
    let is_its =
        |name: &&str| name.to_lowercase().starts_with(&format!("{id} - ")) && name.ends_with(".md");
    had.filter(is_its).map_or_else(
        || format!("{} - {}.md", safe_name(&id), safe_name(&view.title(number))),
        str::to_owned,
    )
}

/// The text below the front matter.
fn sections(view: &View, number: usize, metadata: &mut serde_json::Map<String, Value>) -> String {
    let mut text_below = String::new();
    let mut section = |heading: &str, mark: &str, gap: &str, text: &str| {
        let text = text.trim();
        text_below.push_str(&format!(
            "\n## {heading}\n{gap}<!-- {mark}:BEGIN -->\n{text}\n<!-- {mark}:END -->\n"
        ));
    };
    if let Some(text) = view.description(number) {
        section("Description", "SECTION:DESCRIPTION", "\n", text);
    }
    let mut kept = |field: &str| metadata.shift_remove(field).map(|value| text(&value));
    let [criteria, done, notes, comments, summary] = KEPT.map(|(field, _)| kept(field));
    criteria.into_iter().for_each(|text| section(KEPT[0].1, "AC", "", &text));
    done.into_iter().for_each(|text| section(KEPT[1].1, "DOD", "", &text));
    if let Some(text) = view.hints(number) {
        section("Implementation Plan", "SECTION:PLAN", "\n", text);
    }
    notes.into_iter().for_each(|text| section(KEPT[2].1, "SECTION:NOTES", "\n", &text));
    comments.into_iter().for_each(|text| section(KEPT[3].1, "COMMENTS", "\n", &text));
    summary.into_iter().for_each(|text| section(KEPT[4].1, "SECTION:FINAL_SUMMARY", "\n", &text));
    if let Some(rest) = kept("text") {
        text_below.push_str(&format!("\n{}\n", rest.trim()));
    }
    text_below
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Front matter in YAML, as the tool writes it.
struct Front(String);

impl Front {
    fn field(&mut self, name: &str, value: &Value) {
        let name = scalar(&name.into());
        let line = match value {
            Value::Array(values) if values.is_empty() => format!("{name}: []\n"),
            Value::Array(values)
                if values.iter().all(|value| !value.is_object() && !value.is_array()) =>
            {
                let entries = values.iter().map(|value| format!("  - {}\n", scalar(value)));
                format!("{name}:\n{}", entries.collect::<String>())
            }
            value => format!("{name}: {}\n", scalar(value)),
        };
        self.0.push_str(&line);
    }
}

/// A value on one line; JSON is YAML.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_bare(text) => text.clone(),
        Value::String(text) if !text.contains(|c: char| c.is_control()) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        value => value.to_string(),
    }
}

/// Whether a text stands for itself in YAML without quotes.
fn is_bare(text: &str) -> bool {
    let mut chars = text.chars();
    let words: BTreeSet<&str> =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].into();
    chars.next().is_some_and(char::is_alphabetic)
        && chars.all(|c| c.is_alphanumeric() || " -_./()".contains(c))
        && !text.ends_with(' ')
        && !words.contains(text.to_lowercase().as_str())
}
