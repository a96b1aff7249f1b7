//! Plans as JSON. `backlog`, `milestones`, `tasks`, `subtasks`, `id` and `dependencies` of other planners are read,
//! too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Draft, Found, Given, Lines, is_called_off, limit};
use crate::state::plan::{Item, Problem, one_line};

/// A plan as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The phases
    pub items: Vec<Node>,
}

#[derive(Serialize, JsonSchema)]
pub struct Node {
    /// P1, P1.M2, P1.M2.T3 or P1.M2.T3.S4; an item without a path is known by its title
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Planned (or Researching, Ready, Implementing, In Progress), Complete or Failed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// 1 (first) to 10; default that of the parent, else 5
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Paths, titles or ids of the tasks it depends on
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Parts of the item
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Node>,
}

/// The whole document. Items are kept as raw text, so that the line in which each begins can be told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Top<'a> {
    title: Option<String>,
    #[serde(borrow, alias = "backlog")]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    #[serde(alias = "id")]
    path: Option<String>,
    /// Ignored, because the path says it.
    #[serde(rename = "type", alias = "kind")]
    _kind: Option<String>,
    title: String,
    description: Option<String>,
    status: Option<String>,
    priority: Option<u8>,
    #[serde(default, alias = "dependencies")]
    depends: Vec<String>,
    #[serde(default, alias = "context_files")]
    files: Vec<String>,
    #[serde(alias = "context_scope")]
    hints: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// An estimate, which the board does not use.
    #[serde(rename = "story_points")]
    _story_points: Option<f64>,
    #[serde(borrow, default, alias = "milestones", alias = "tasks", alias = "subtasks")]
    items: Vec<&'a RawValue>,
}

pub fn read(text: &str) -> Result<Found, Vec<Problem>> {
    let lines = Lines::of(text);
    let start = text.len() - text.trim_start().len();
    let body = &text[start..];
    let top = match body.starts_with('[') {
        true => serde_json::from_str(body).map(|items| Top { title: None, items }),
        false => serde_json::from_str(body),
    };
    let top: Top = top.map_err(|error| vec![unread(lines.at(start), &error)])?;
    let mut reading = Reading { text, lines, drafts: Vec::new() };
    for item in top.items {
        reading.item(item, None, 1)?;
    }
    let title = top.title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
    Ok(Found { title, drafts: reading.drafts, skipped: Vec::new() })
}

struct Reading<'a> {
    text: &'a str,
    lines: Lines,
    drafts: Vec<Draft>,
}

impl<'a> Reading<'a> {
    fn item(&mut self, raw: &'a RawValue, parent: Option<usize>, level: usize) -> Result<(), Vec<Problem>> {
        let start = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.lines.at(start);
        let entry: Entry = serde_json::from_str(raw.get()).map_err(|error| vec![unread(line, &error)])?;
        if is_called_off(entry.status.as_deref()) {
            return Ok(());
        }
        if level > limit::PLAN_DEPTH.max {
            return Err(vec![super::over(line, limit::PLAN_DEPTH, level)]);
        }
        let number = self.drafts.len();
        let text = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        self.drafts.push(Draft {
            priority: entry.priority.map(|priority| Given { text: priority.to_string(), line }),
            status: entry.status.map(|text| Given { text, line }),
            item: Item {
                line,
                parent,
                path: entry.path,
                title: one_line(&entry.title),
                description: text(entry.description),
                depends: entry.depends,
                files: entry.files,
                hints: text(entry.hints),
                tags: entry.tags,
                ..Item::default()
            },
        });
        entry.items.into_iter().try_for_each(|part| self.item(part, Some(number), level + 1))
    }
}

/// Names that other planners use for fields that may be given only once; see `Entry`.
const ALSO_CALLED: [(&str, &str); 5] = [
    ("items", "backlog, milestones, tasks and subtasks"),
    ("path", "id"),
    ("depends", "dependencies"),
    ("files", "context_files"),
    ("hints", "context_scope"),
];

/// The problem of an unreadable text, whose beginning is in `line`.
fn unread(line: usize, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let mut what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    super::clean(&mut what);
    if let Some((_, others)) = ALSO_CALLED.iter().find(|(name, _)| what == format!("duplicate field `{name}`")) {
        what.push_str(&format!(", and {others} are read as that: leave one of them"));
    }
    Problem { line: line + error.line().saturating_sub(1), problem: format!("it cannot be read: {what}") }
}
