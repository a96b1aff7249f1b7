//! Exports the plan as it stands on the board, in a form that is the same plan when imported.

use std::collections::{HashMap, HashSet};

use super::board::{Board, OfTask};
use super::counted::{Counted, counted};
use super::json::{Document, Node, is_field};
use super::markdown::VERBATIM;
use super::phrases::may_wait;
use super::{NONE, files, list, path_and_title};
use crate::state::agent::Demands;
use crate::state::hierarchy;
use crate::state::id::TaskId;
use crate::state::plan::one_line;
use crate::state::review::Review;
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, Task, TaskStatus};

/// The plan as JSON. `tasks` are those of the plan, each before its parts.
pub fn json(title: Option<&str>, tasks: &[&Task]) -> Document {
    let paths = paths(tasks);
    let mut open: Vec<(Node, bool)> = Vec::new();
    let mut items = Vec::new();
    for task in tasks {
        while open.last().is_some_and(|_| open.len() >= level(task)) {
            close(&mut open, &mut items);
        }
        open.push((node(task, &paths), task.is_own_work()));
    }
    while !open.is_empty() {
        close(&mut open, &mut items);
    }
    Document { title: title.map(str::to_owned), review: None, items, board: Board::default() }
}

/// Closes the innermost item. A group has no status of its own.
fn close(open: &mut Vec<(Node, bool)>, items: &mut Vec<Node>) {
    let Some((mut node, is_own)) = open.pop() else { return };
    node.status = node.status.filter(|_| is_own || node.items.is_empty());
    match open.last_mut() {
        Some((above, _)) => above.items.push(node),
        None => items.push(node),
    }
}

fn level(task: &Task) -> usize {
    hierarchy::level(task.path.as_deref().unwrap_or_default())
}

fn paths<'a>(tasks: &[&'a Task]) -> HashMap<&'a TaskId, &'a str> {
    tasks.iter().filter_map(|task| Some((&task.id, task.path.as_deref()?))).collect()
}

fn node(task: &Task, paths: &HashMap<&TaskId, &str>) -> Node {
    let context = task.context.as_deref().cloned().unwrap_or_default();
    let (metadata, further) = context.metadata.into_iter().partition(|(key, _)| is_field(key));
    Node {
        path: task.path.clone(),
        title: task.headline().to_owned(),
        description: Some(&*task.description)
            .filter(|text| task.title.as_deref() != Some(text))
            .map(str::to_owned),
        status: Some(word(task.status)),
        priority: Some(task.priority),
        estimated_minutes: task.estimated_minutes,
        review: task.review,
        depends: depends(task, paths),
        files: context.files,
        hints: context.hints,
        tags: task.tags.clone(),
        source: task.planned.as_ref().and_then(|planned| planned.source.clone()),
        metadata,
        of_task: of_task(task),
        items: Vec::new(),
        further,
        line: 0,
    }
}

/// What is said of a task that differs from the default.
fn of_task(task: &Task) -> OfTask {
    OfTask {
        max_attempts: Some(task.max_attempts).filter(|most| *most != DEFAULT_MAX_ATTEMPTS),
        timeout_seconds: task.timeout_seconds,
        demands: Some(Demands::clone(&task.demands)).filter(|demands| !demands.is_empty()),
        ..OfTask::default()
    }
}

fn depends(task: &Task, paths: &HashMap<&TaskId, &str>) -> Vec<String> {
    let named =
        |id: &TaskId| paths.get(id).map_or_else(|| id.to_string(), |path| (*path).to_owned());
    task.dependencies.iter().map(named).collect()
}

/// The word for a status.
pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Available => "Planned",
        TaskStatus::Claimed | TaskStatus::InProgress => "In Progress",
        TaskStatus::Review => "In Review",
        TaskStatus::Done => "Complete",
        TaskStatus::Failed => "Failed",
        TaskStatus::Cancelled => "Cancelled",
        TaskStatus::Obsolete => "Obsolete",
    }
}

pub fn markdown(title: Option<&str>, review: Option<Review>, tasks: &[&Task]) -> String {
    let (paths, order) = (paths(tasks), counted_before(tasks));
    let mut text = format!("# {}\n", heading(title.unwrap_or("Plan")));
    if let Some(review) = review {
        text.push_str(&format!("\nreview: {review}\n"));
    }
    let parents: HashSet<&TaskId> = tasks.iter().filter_map(|task| task.parent.as_ref()).collect();
    for task in tasks {
        let is_group = parents.contains(&task.id) && !task.is_own_work();
        item(&mut text, task, &paths, order.get(&task.id).copied(), is_group);
    }
    text
}

/// Levels of items that are written as headings.
const HEADINGS: usize = 2;

/// Writes one item: phases and milestones as headings, what is below them as a checklist. A group has
/// no status of its own.
fn item(
    text: &mut String,
    task: &Task,
    paths: &HashMap<&TaskId, &str>,
    before: Option<&TaskId>,
    is_group: bool,
) {
    let (path, title) = (task.path.as_deref().unwrap_or_default(), one_line(task.headline()));
    let level = level(task);
    let indent = match level {
        0..=2 => String::new(),
        level => "  ".repeat(level - 2),
    };
    match level {
        0..=2 => {
            // A heading loses `#` at its end, so a title that ends with it gets one more.
            let end = if title.ends_with('#') { " #" } else { "" };
            text.push_str(&format!("\n{} {path}: {title}{end}\n\n", "#".repeat(level + 1)));
        }
        _ => {
            let mark = match task.status {
                _ if is_group => "",
                TaskStatus::Done => "[x] ",
                _ => "[ ] ",
            };
            text.push_str(&format!("{}- {mark}{path}: {title}\n", "  ".repeat(level - 3)));
        }
    }
    let has_word =
        matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Obsolete);
    let has_box = level > HEADINGS && !is_group;
    let is_done = task.status == TaskStatus::Done;
    let is_said = has_word || !has_box && (is_done || task.is_own_work());
    let status = (is_said && !is_group).then(|| word(task.status));
    let (priority, depends) = (Some(task.priority), depends(task, paths));
    let is_free =
        may_wait(&title) || before.is_some_and(|before| !task.dependencies.contains(before));
    body(text, task, &Said { status, priority, depends: &depends, is_free, indent: &indent });
}

/// What is said of an item below its title, besides what its task says.
pub(super) struct Said<'a> {
    pub status: Option<&'a str>,
    pub priority: Option<u8>,
    pub depends: &'a [String],
    /// True if it waits for no others, although headings that count or words of its title may say
    /// so.
    pub is_free: bool,
    /// Begins every line.
    pub indent: &'a str,
}

/// Writes what stands below an item's title: its fields and its description.
pub(super) fn body(text: &mut String, task: &Task, said: &Said<'_>) {
    let Said { status, priority, depends, is_free, indent } = said;
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{indent}{name}: {value}\n"));
        }
    };
    line("status", status.unwrap_or_default());
    line("priority", &priority.map(|priority| priority.to_string()).unwrap_or_default());
    line("estimate", &estimate(task));
    line("review", task.review.map_or("", Review::as_str));
    line("depends", &waits(depends, *is_free));
    line("tags", &listed(&task.tags, list));
    if let Some(context) = &task.context {
        line("files", &listed(&context.files, files));
        line("hints", &one_line(context.hints.as_deref().unwrap_or_default()));
        let metadata = serde_json::Value::Object(context.metadata.clone());
        line(
            "metadata",
            &if context.metadata.is_empty() { String::new() } else { metadata.to_string() },
        );
    }
    if task.title.as_deref() != Some(&*task.description) {
        description(text, &task.description, indent);
    }
}

/// Writes a description as a code block, so that nothing in it is read as anything else.
fn description(text: &mut String, description: &str, indent: &str) {
    let longest = description.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    text.push_str(&format!("\n{indent}{fence}{VERBATIM}\n"));
    for line in description.lines() {
        text.push_str(&format!("{indent}{line}\n"));
    }
    text.push_str(&format!("{indent}{fence}\n"));
}

/// The value of `estimate`.
pub(super) fn estimate(task: &Task) -> String {
    task.estimated_minutes.map(|minutes| format!("{minutes} min")).unwrap_or_default()
}

/// The value of `depends`.
pub(super) fn waits(depends: &[String], is_free: bool) -> String {
    let named = listed(depends, list);
    match (is_free, depends.is_empty()) {
        (false, _) => named,
        (true, true) => NONE.to_owned(),
        (true, false) => format!("{NONE}, {named}"),
    }
}

/// For each heading that counts, the one before it.
fn counted_before<'a>(tasks: &[&'a Task]) -> HashMap<&'a TaskId, &'a TaskId> {
    let mut before = HashMap::new();
    let mut last: HashMap<(Option<&TaskId>, String), (&TaskId, u32)> = HashMap::new();
    for task in tasks.iter().filter(|task| level(task) <= HEADINGS) {
        let Some(Counted { word, number }) = counted(&one_line(task.headline())) else { continue };
        if let Some((earlier, count)) =
            last.insert((task.parent.as_ref(), word), (&task.id, number))
            && count < number
        {
            before.insert(&task.id, earlier);
        }
    }
    before
}

/// The list in the form that is read as the same list.
pub(super) fn listed(texts: &[String], read: fn(&str) -> Vec<String>) -> String {
    let plain = texts.join(", ");
    let is_read = read(&plain) == texts && !plain.contains(char::is_control);
    if is_read { plain } else { serde_json::json!(texts).to_string() }
}

/// The plan's title as a heading, changed if it would be read as a phase.
fn heading(title: &str) -> String {
    let line = one_line(title);
    if path_and_title(&line).0.is_some() { format!("Plan {line}") } else { line }
}
