//! Plans as people and programs write them: JSON or Markdown to `state::plan`, and back. `examples/plan.md` shows the
//! format.

mod export;
mod json;
mod markdown;
#[cfg(test)]
mod tests;

pub use export::{json as to_json, markdown as to_markdown};
pub use json::Document;

use std::collections::BTreeSet;

use crate::bom;
use crate::harmless;
use crate::redact;
use crate::state::digest::sha256;
use crate::state::hierarchy;
use crate::state::limit::{self, Limit};
use crate::state::pattern::Pattern;
use crate::state::plan::{Item, Plan, Problem, Skipped, Stated, shortened};

/// Most problems that are named at once.
const NAMED: usize = 20;
/// Most bytes shown of a value that cannot be read.
const SHOWN: usize = 60;

/// Reads a plan: JSON if it begins with a brace, or with a bracket before a brace, else Markdown.
pub fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    parse_with(text, &BTreeSet::new())
}

/// Reads a plan. Headings in the lines `known` are items even without a mark.
pub fn parse_with(text: &str, known: &BTreeSet<usize>) -> Result<Plan, Vec<Problem>> {
    let text = bom::skip(text);
    if text.len() > limit::PLAN.max {
        return Err(vec![over(1, limit::PLAN, text.len())]);
    }
    let Found { mut title, drafts, mut skipped } =
        if is_json(text) { json::read(text)? } else { markdown::read(text, known)? };
    title.iter_mut().for_each(clean);
    if let Some(title) = title.as_ref().filter(|title| title.len() > limit::TITLE.max) {
        return Err(vec![over(1, limit::TITLE, title.len())]);
    }
    skipped.iter_mut().for_each(|one| clean(&mut one.title));
    Ok(Plan { sha256: sha256(text), title, items: checked(drafts)?, skipped })
}

/// True for JSON. Markdown may begin with a bracket, too: `[TOC]`, or a link.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let items = text.strip_prefix('[').map(str::trim_start);
    text.starts_with('{') || items.is_some_and(|items| items.starts_with(['{', ']']))
}

fn over(line: usize, limit: Limit, actual: usize) -> Problem {
    let Limit { what, max, unit, .. } = limit;
    Problem { line, problem: format!("{what} is over its limit: {actual} {unit}, at most {max}") }
}

/// Contents of a text, unchecked.
struct Found {
    title: Option<String>,
    drafts: Vec<Draft>,
    skipped: Vec<Skipped>,
}

/// An item as it was found, unchecked.
#[derive(Debug, Default)]
struct Draft {
    item: Item,
    priority: Option<Given>,
    status: Option<Given>,
}

/// A value, and the line that it stands in.
#[derive(Debug)]
struct Given {
    text: String,
    line: usize,
}

/// Checks every item by itself, and its path against its place.
fn checked(mut drafts: Vec<Draft>) -> Result<Vec<Item>, Vec<Problem>> {
    let mut problems = Vec::new();
    let first = drafts.first().map_or(1, |draft| draft.item.line);
    if drafts.is_empty() {
        let problem = "there is nothing to do in it: a heading or a `- [ ]` is an item, and so is an entry of `items`";
        problems.push(Problem { line: first, problem: problem.to_owned() });
    }
    if drafts.len() > limit::PLAN_ITEMS.max {
        problems.push(over(first, limit::PLAN_ITEMS, drafts.len()));
        return Err(problems);
    }
    let mut levels: Vec<usize> = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        levels.push(1 + draft.item.parent.map_or(0, |parent| levels[parent]));
    }
    name_above(&mut drafts, &levels);
    let mut items: Vec<Item> = Vec::with_capacity(drafts.len());
    for (mut draft, level) in drafts.into_iter().zip(levels) {
        let above = draft.item.parent.and_then(|parent| items[parent].path.as_deref());
        let line = draft.item.line;
        if let Err(found) = check(&mut draft, level, above) {
            problems.extend(found.into_iter().map(|(at, problem)| Problem { line: at.unwrap_or(line), problem }));
        }
        items.push(draft.item);
    }
    problems.truncate(NAMED);
    if problems.is_empty() { Ok(items) } else { Err(problems) }
}

/// Gives an item without a path the one that follows from the first part that has one.
fn name_above(drafts: &mut [Draft], levels: &[usize]) {
    let fits = |path: &str, level| hierarchy::numbers(path).is_some_and(|numbers| numbers.len() == level);
    let unnamed: Vec<bool> = drafts.iter().map(|draft| draft.item.path.is_none()).collect();
    for number in (0..drafts.len()).rev() {
        let Item { parent, path, .. } = &drafts[number].item;
        if let (Some(parent), Some(path)) = (*parent, path)
            && unnamed[parent]
            && fits(path, levels[number])
            && let Some(above) = hierarchy::parent_path(path)
        {
            drafts[parent].item.path = Some(above.to_owned());
        }
    }
}

fn clean(text: &mut String) {
    if let Some(harmless) = harmless::text(text) {
        *text = harmless;
    }
    if let Some((redacted, _)) = redact::text(text) {
        *text = redacted;
    }
}

/// Checks one item. A problem has a line only if it is not the item's.
fn check(draft: &mut Draft, level: usize, above: Option<&str>) -> Result<(), Vec<(Option<usize>, String)>> {
    let mut problems = Vec::new();
    let item = &mut draft.item;
    // An escape in JSON may stand for characters that were removed from the plan's text.
    let long = [&mut item.description, &mut item.hints].into_iter().flatten();
    let lists = item.tags.iter_mut().chain(&mut item.files).chain(&mut item.depends);
    long.chain([&mut item.title]).chain(&mut item.path).chain(lists).for_each(clean);
    item.tags.retain(|tag| !tag.trim().is_empty());
    // Trimmed in every format, so that a change of format is no change of the plan.
    item.description = item.description.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let mut keep = |limit: Limit, actual: usize| {
        if actual > limit.max {
            problems.push((None, over(0, limit, actual).problem));
        }
    };
    keep(limit::PLAN_DEPTH, level);
    keep(limit::TITLE, item.title.len());
    keep(limit::DESCRIPTION, item.description.as_ref().map_or(0, String::len));
    keep(limit::HINTS, item.hints.as_ref().map_or(0, String::len));
    keep(limit::FILES, item.files.len());
    keep(limit::LABELS, item.tags.len());
    keep(limit::DEPENDENCIES, item.depends.len());
    item.tags.iter().for_each(|tag| keep(limit::LABEL, tag.len()));
    if item.title.trim().is_empty() {
        problems.push((None, "it has no title".to_owned()));
    }
    for file in &item.files {
        if let Err(refusal) = Pattern::checked(file, || "files".to_owned()) {
            problems.push((None, refusal.to_string()));
        }
    }
    if let Some(given) = &draft.priority {
        match given.text.parse::<u8>() {
            Ok(priority @ 1..=10) => item.priority = Some(priority),
            _ => {
                let problem = format!("priority must be 1 (first) to 10 (last), not {}", given.shown());
                problems.push((Some(given.line), problem));
            }
        }
    }
    if let Some(given) = &draft.status {
        match stated(&given.text) {
            Some(status) => item.status = status,
            None => {
                let problem = format!(
                    "its status is none of Planned, Researching, Ready, Implementing, In Progress, Complete, Failed: {}",
                    given.shown()
                );
                problems.push((Some(given.line), problem));
            }
        }
    }
    if let Some(path) = item.path.as_deref().filter(|_| level <= limit::PLAN_DEPTH.max) {
        let expected = hierarchy::part_path(above, 1).unwrap_or_default();
        let form = expected.trim_end_matches('1');
        let is_beside = hierarchy::is_path(path)
            && hierarchy::level(path) == level
            && above.is_none_or(|above| hierarchy::parent_path(path) == Some(above));
        if !is_beside {
            let problem = format!(
                "the path {path} does not fit where it stands: {form}<number> does, without zeros before the number"
            );
            problems.push((None, problem));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl Given {
    fn shown(&self) -> String {
        shortened(&self.text, SHOWN)
    }
}

/// Reads a status, in the words of other planners, too.
fn stated(given: &str) -> Option<Stated> {
    let word: String = given.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    Some(match word.as_str() {
        "planned" | "researching" | "ready" | "implementing" | "inprogress" | "available" | "claimed" | "pending"
        | "todo" | "open" => Stated::Open,
        "complete" | "completed" | "done" => Stated::Done,
        "failed" => Stated::Failed,
        _ => return None,
    })
}

/// True if the plan calls the item off: then it and everything below it are not in the plan.
fn is_called_off(status: Option<&str>) -> bool {
    let word = status.unwrap_or_default().to_lowercase();
    matches!(word.as_str(), "obsolete" | "cancelled" | "canceled")
}

/// Reads a list such as `a, b` or `[a, b]`. Written as JSON, `["a, b"]`, its entries may be any text.
fn list(text: &str) -> Vec<String> {
    listed(text, |word| word)
}

/// Reads a list of files, each of which may stand among words, as in "`a.rs` (new)".
fn files(text: &str) -> Vec<String> {
    listed(text, |word| named_file(word).unwrap_or(word))
}

/// The file name in backticks among words, without line numbers at its end.
fn named_file(text: &str) -> Option<&str> {
    let (_, from) = text.split_once('`')?;
    let (name, _) = from.split_once('`')?;
    let is_line = |end: &str| {
        end.starts_with(|c: char| c.is_ascii_digit()) && end.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let name = name.rsplit_once(':').filter(|(_, end)| is_line(end)).map_or(name, |(name, _)| name);
    Some(name.trim()).filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))
}

fn listed(text: &str, name: impl Fn(&str) -> &str) -> Vec<String> {
    if let Ok(texts) = serde_json::from_str::<Vec<String>>(text) {
        return texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    }
    let text = text.trim();
    let words = unwrapped(text).unwrap_or(text).split(',').map(|word| name(word).trim().trim_matches('`').trim());
    words.filter(|word| is_something(word)).map(str::to_owned).collect()
}

fn is_something(word: &str) -> bool {
    let word = word.trim_end_matches('.');
    !word.is_empty() && word != "-" && !["none", "n/a"].iter().any(|none| word.eq_ignore_ascii_case(none))
}

/// The text inside brackets, if it begins and ends with one pair of them.
fn unwrapped(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut open = 0usize;
    for c in inside.chars() {
        match c {
            '[' => open += 1,
            ']' => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    (open == 0).then_some(inside)
}

/// Line numbers of a text, from 1, by position.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    fn at(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}
