//! Org: headings with stars and keywords, and boxes below them.

use std::sync::LazyLock;

use regex::Regex;

use super::checklist::{self, Ids, Open, id_of_words};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::{Node, entry};
use crate::state::plan::Stated;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "an outline of Org, with TODO and DONE",
    places: &["*.org"],
    one_file: true,
    form: "headings with stars and keywords",
    is: |tree| {
        let text = tree.only().unwrap_or_default();
        let is_named = match tree.path.as_deref() {
            Some(path) => path.ends_with(".org"),
            // Bullets are stars, too.
            None => text.starts_with("#+") || text.contains("\n** "),
        };
        is_named && text.lines().any(|line| keyword(line).is_some())
    },
    read: Some(read),
    write: None,
};

const NAME: &str = "org";

static HEADING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\*+)\s+(.*?)\s*(?:\s(:[\w@#%:]+:))?$").ok());
static PRIORITY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\[#([A-Ea-e1-9])\]\s*").ok());

/// Keywords that come with Org or are often added, with the status that each is.
const KEYWORDS: [(&str, &str); 16] = [
    ("TODO", "todo"),
    ("NEXT", "todo"),
    ("PROJ", "todo"),
    ("STARTED", "in progress"),
    ("STRT", "in progress"),
    ("INPROGRESS", "in progress"),
    ("IN-PROGRESS", "in progress"),
    ("DOING", "doing"),
    ("WAITING", "waiting"),
    ("WAIT", "waiting"),
    ("HOLD", "on hold"),
    ("SOMEDAY", "deferred"),
    ("DONE", "done"),
    ("CANCELLED", "cancelled"),
    ("CANCELED", "cancelled"),
    ("KILL", "cancelled"),
];

pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done => "done",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "cancelled",
        _ => "todo",
    }
}

/// Stars, keyword, and the text without it and its priority.
fn keyword(line: &str) -> Option<(usize, &'static str, &'static str)> {
    let found = HEADING.as_ref()?.captures(line)?;
    let text = found.get(2)?.as_str();
    let text = PRIORITY.as_ref()?.replace(text, "").into_owned();
    let word = text.split_whitespace().next()?;
    let (name, status) = KEYWORDS.iter().find(|(name, _)| *name == word)?;
    Some((found.get(1)?.as_str().len(), name, status))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone();
    let named = path.clone().unwrap_or_else(|| "-".to_owned());
    let mut reading =
        Reading { open: Open::default(), ids: Ids::default(), path, report: Report::default() };
    let (mut title, mut in_block) = (None, false);
    for (number, line) in tree.only().unwrap_or_default().lines().enumerate() {
        let lower = line.trim().to_lowercase();
        if let Some(text) = lower.strip_prefix("#+title:") {
            title = Some(line.trim()[line.trim().len() - text.len()..].trim().to_owned());
        } else if lower.starts_with("#+begin") || lower == ":properties:" || lower == ":logbook:" {
            in_block = true;
        } else if lower.starts_with("#+end") || lower == ":end:" {
            in_block = false;
        } else if in_block || lower.starts_with("#+") || line.starts_with("# ") {
        } else if line.starts_with('*')
            && HEADING.as_ref().is_some_and(|heading| heading.is_match(line))
        {
            reading.heading(number + 1, line);
        } else {
            reading.line(number + 1, line);
        }
    }
    let Reading { open, mut report, .. } = reading;
    let mut items = open.items();
    drop_prose(&mut items, &named, &mut report);
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}

struct Reading {
    /// Boxes stand deeper than all headings.
    open: Open,
    ids: Ids,
    path: Option<String>,
    report: Report,
}

/// Level of a box without an indent.
const BOXES: usize = 100;

impl Reading {
    fn push(&mut self, level: usize, mut node: Node) {
        let id = self.ids.unique(id_of_words(&node.title), &node.title);
        node.source = Some(Source { format: NAME.to_owned(), id, path: self.path.clone() });
        self.open.push(level, node);
    }

    fn heading(&mut self, line: usize, text: &str) {
        let Some(found) = HEADING.as_ref().and_then(|heading| heading.captures(text)) else {
            return;
        };
        let part = |group: usize| found.get(group).map_or("", |part| part.as_str());
        let tags: Vec<String> =
            part(3).split(':').filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        let mut node = Node { tags, line, ..Node::default() };
        let mut rest = part(2).to_owned();
        let keyword = keyword(text);
        // The priority stands on either side of the keyword.
        for _ in 0..2 {
            if let Some(found) = PRIORITY.as_ref().and_then(|priority| priority.captures(&rest)) {
                let letter = found.get(1).map_or("", |one| one.as_str()).to_uppercase();
                node.priority =
                    "ABCDE".find(&letter).map(|at| 1 + 2 * at as u8).or(letter.parse().ok());
                rest = rest[found.get(0).map_or(0, |whole| whole.end())..].to_owned();
            }
            if let Some((_, name, _)) = keyword
                && let Some(after) = rest.strip_prefix(name)
            {
                rest = after.trim_start().to_owned();
            }
        }
        node.title = rest;
        if let Some((_, name, word)) = keyword {
            let is_usual = ["TODO", "DONE"].contains(&name);
            let mut quiet = Report::default();
            status::read(
                &mut node,
                word,
                None,
                if is_usual { &mut quiet } else { &mut self.report },
            );
        }
        self.push(part(1).len(), node);
    }

    fn line(&mut self, number: usize, raw: &str) {
        let (column, text) = entry::indented(raw);
        match entry::entry(text) {
            Some(entry::Entry { mark: Some(mark), text }) if !mark.is_sign => {
                let word = match mark.status {
                    Stated::Done => "done",
                    _ => "todo",
                };
                let mut node = Node { title: text.to_owned(), line: number, ..Node::default() };
                status::read(&mut node, word, None, &mut self.report);
                self.push(BOXES + column, node);
            }
            _ => {
                if column == 0 {
                    self.open.close(BOXES);
                }
                if let Some(node) = self.open.last().filter(|_| !text.is_empty()) {
                    checklist::describe(node, text);
                }
            }
        }
    }
}

/// Takes out headings without a keyword that have nothing to do below them.
fn drop_prose(items: &mut Vec<Node>, path: &str, report: &mut Report) {
    items.iter_mut().for_each(|node| drop_prose(&mut node.items, path, report));
    items.retain(|node| {
        let is_kept = node.status.is_some() || !node.items.is_empty();
        if !is_kept {
            report.note(
                path,
                node.line,
                format!("not a task, for it has no keyword: {}", node.title),
            );
        }
        is_kept
    });
}
