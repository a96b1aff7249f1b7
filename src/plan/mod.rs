//! Plans as people and programs write them: JSON or Markdown to `state::plan`, and back.
//! `examples/plan.md` shows the format.

pub mod board;
mod counted;
mod export;
mod front;
mod json;
mod markdown;
mod phrases;
mod places;
mod rewrite;
#[cfg(test)]
mod tests;

pub use export::{json as to_json, markdown as to_markdown};
pub use json::{Document, Node};
pub(crate) use markdown::entry;
pub use rewrite::rewritten;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jiff::SignedDuration;
use regex::Regex;
use serde_json::{Map, Value};

use crate::bom;
use crate::harmless;
use crate::redact;
use crate::state::brought::Brought;
use crate::state::digest::sha256;
use crate::state::hierarchy;
use crate::state::limit::{self, Limit};
use crate::state::pattern::Pattern;
use crate::state::plan::{Item, Plan, Problem, Remark, Skipped, Stated, shortened};
use crate::state::review::Review;
use crate::state::task::Source;
use crate::state::time::MINUTE;
use counted::Counted;

/// Most problems that are named at once.
const NAMED: usize = 1_000;
/// Most bytes shown of a value that cannot be read.
const SHOWN: usize = 60;

static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\*{0,2}`?(P\d+(?:\.[A-Z]\d+)*)`?\*{0,2}([:.)]|\s[-–—])?\*{0,2}\s+(\S.*)$").ok()
});

/// Splits a text like `P1.M2: Storage` into path and title. A path of a single part needs a
/// delimiter behind it.
pub fn path_and_title(text: &str) -> (Option<String>, &str) {
    let Some(found) = PATH.as_ref().and_then(|path| path.captures(text)) else {
        return (None, text);
    };
    let [path, title] = [1, 3].map(|group| found.get(group).map_or("", |one| one.as_str()));
    let is_path = found.get(2).is_some() || path.contains('.');
    if is_path { (Some(path.to_owned()), title) } else { (None, text) }
}

/// The hash by which a plan with this text is known.
pub fn version(text: &str) -> String {
    sha256(bom::skip(text))
}

/// Reads a plan: JSON if it begins with a brace, or with a bracket before a brace, else Markdown.
pub fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    parse_with(text, &BTreeSet::new(), false)
}

/// Reads a plan. Headings in the lines `known` are items even without a mark; `lists` makes all
/// entries of lists items, wherever they stand.
pub fn parse_with(text: &str, known: &BTreeSet<usize>, lists: bool) -> Result<Plan, Vec<Problem>> {
    let text = bom::skip(text);
    if text.len() > limit::PLAN.max {
        return Err(vec![over(1, limit::PLAN, text.len())]);
    }
    let unix = with_unix_lines(text);
    let found =
        if is_json(&unix) { json::read(&unix)? } else { markdown::read(&unix, known, lists)? };
    let Found { mut title, mut drafts, mut skipped, unread, mut remarks, brings, metadata, review } =
        found;
    let review = review.or_else(|| Review::read(front::value(&unix, "review")?));
    if drafts.is_empty() {
        return Err(nothing(&skipped));
    }
    let items = drafts.iter().filter(|draft| !draft.item.is_group).count();
    if items > limit::PLAN_ITEMS.max {
        return Err(vec![over(drafts[0].item.line, limit::PLAN_ITEMS, items)]);
    }
    title.iter_mut().for_each(clean);
    if let Some(title) = title.as_ref().filter(|title| title.len() > limit::TITLE.max) {
        return Err(vec![over(1, limit::TITLE, title.len())]);
    }
    skipped.iter_mut().for_each(|one| clean(&mut one.title));
    drafts.iter_mut().for_each(tidy);
    let mut drafts = places::settle(drafts, &mut remarks);
    let (order, problems) = phrases::read(&mut drafts, &mut remarks);
    if !problems.is_empty() {
        return Err(problems);
    }
    let items = checked(drafts, &mut remarks)?;
    remarks.iter_mut().for_each(|one| clean(&mut one.remark));
    remarks.sort();
    Ok(Plan {
        sha256: version(text),
        title,
        items,
        skipped,
        unread,
        remarks,
        brings,
        metadata,
        review: review.and_then(Review::said),
        order,
    })
}

/// The text with lines that end with `\n` alone.
fn with_unix_lines(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    }
}

/// True for JSON. Markdown may begin with a bracket, too: `[TOC]`, or a link.
fn is_json(text: &str) -> bool {
    let is_front = front::lines(text) > 0;
    let text = text.trim_start();
    let items = text.strip_prefix('[').map(str::trim_start);
    (text.starts_with('{') || items.is_some_and(|items| items.starts_with(['{', ']']))) && !is_front
}

/// The problem with a text in which nothing is an item.
fn nothing(skipped: &[Skipped]) -> Vec<Problem> {
    let line = skipped.first().map_or(1, |one| one.line);
    let problem = match skipped.len() {
        0 => "there is nothing to do in it: `- [ ] words` makes a line an item, and so does an \
              entry of a list below a heading, or in JSON an entry of `items`"
            .to_owned(),
        count => format!(
            "nothing in it is an item, although {count} of its lines look like work; begin those \
             that are with `- [ ]`: \"{}\"",
            skipped[0].title
        ),
    };
    vec![Problem { line, problem }]
}

fn over(line: usize, limit: Limit, actual: usize) -> Problem {
    let Limit { what, max, unit, .. } = limit;
    Problem { line, problem: format!("{what} is over its limit: {actual} {unit}, at most {max}") }
}

/// Contents of a text, unchecked.
#[derive(Default)]
struct Found {
    title: Option<String>,
    drafts: Vec<Draft>,
    skipped: Vec<Skipped>,
    unread: usize,
    remarks: Vec<Remark>,
    brings: Brought,
    metadata: Map<String, Value>,
    /// What it says of itself; the first lines may say it, too.
    review: Option<Review>,
}

/// An item as it was found, unchecked.
#[derive(Debug, Default)]
struct Draft {
    item: Item,
    priority: Option<Given>,
    status: Option<Given>,
    estimate: Option<Given>,
    review: Option<Given>,
    /// True if the path stood before the title, where it may also be a priority.
    is_path_in_title: bool,
    /// The number of a heading that counts.
    counted: Option<Counted>,
    /// True if the item says that it waits for none but those that it names, so that neither
    /// headings that count nor its title matter.
    is_free: bool,
}

/// A value, and the line that it stands in.
#[derive(Debug)]
struct Given {
    text: String,
    line: usize,
}

/// Makes the texts of an item harmless, in the form that they are kept in.
fn tidy(draft: &mut Draft) {
    let item = &mut draft.item;
    // An escape in JSON may stand for characters that were removed from the plan's text.
    let long = [&mut item.description, &mut item.hints].into_iter().flatten();
    let lists = item.tags.iter_mut().chain(&mut item.files).chain(&mut item.depends);
    long.chain([&mut item.title]).chain(&mut item.path).chain(lists).for_each(clean);
    if let Some(Source { format, id, path }) = &mut item.source {
        [format, id].into_iter().chain(path).for_each(clean);
    }
    let given = [&mut draft.priority, &mut draft.status, &mut draft.estimate, &mut draft.review];
    for given in given.into_iter().flatten() {
        clean(&mut given.text);
    }
    item.metadata = cleaned(std::mem::take(&mut item.metadata));
    item.tags.retain(|tag| !tag.trim().is_empty());
}

/// Fields with harmless names and values, in which secrets are masked.
fn cleaned(fields: Map<String, Value>) -> Map<String, Value> {
    let mut value = Value::Object(fields);
    harmless::value(&mut value);
    redact::value(&mut value);
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Checks every item by itself.
fn checked(drafts: Vec<Draft>, remarks: &mut Vec<Remark>) -> Result<Vec<Item>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut items: Vec<Item> = Vec::with_capacity(drafts.len());
    let mut levels: Vec<usize> = Vec::with_capacity(drafts.len());
    let written = |draft: &Draft| Some((draft.item.path.clone()?, draft.item.line));
    let written: HashMap<String, usize> = drafts.iter().filter_map(written).collect();
    for mut draft in drafts {
        let parent = draft.item.parent;
        levels.push(1 + parent.map_or(0, |parent| levels[parent]));
        values(&mut draft, remarks);
        let called_off = parent.map(|parent| items[parent].status).filter(Stated::is_called_off);
        if let Some(status) = called_off.filter(|_| !draft.item.status.stays_below_called_off()) {
            draft.item.status = status;
        }
        let above = parent.and_then(|parent| items[parent].path.as_deref());
        let line = draft.item.line;
        let level = levels[items.len()];
        problems.extend(
            check(&mut draft, level, above).into_iter().map(|problem| Problem { line, problem }),
        );
        // What stands below an item without a path cannot have a path below another item's.
        let named =
            draft.item.path.as_deref().filter(|_| above.is_none()).and_then(hierarchy::parent_path);
        if let Some((named, there)) = named.and_then(|named| Some((named, written.get(named)?))) {
            let problem = format!(
                "its path says that it is a part of {named}, which stands on line {there}: put it \
                 there"
            );
            problems.push(Problem { line, problem });
        }
        items.push(draft.item);
    }
    problems.truncate(NAMED);
    if problems.is_empty() { Ok(items) } else { Err(problems) }
}

/// Reads priority and status. What is not understood is kept as text.
fn values(draft: &mut Draft, remarks: &mut Vec<Remark>) {
    let mut keep = |item: &mut Item, name: &str, given: &Given, why: &str| {
        let shown = shortened(&given.text, SHOWN);
        remarks.push(Remark {
            line: given.line,
            remark: format!("{name} {shown}: {why}; it is kept in the description"),
        });
        let description = item.description.take().unwrap_or_default();
        item.description = Some(format!("{name}: {}\n\n{description}", given.text));
    };
    if let Some(given) = draft.priority.take() {
        match priority(&given.text) {
            Some(priority) => draft.item.priority = Some(priority),
            None => keep(
                &mut draft.item,
                "priority",
                &given,
                "it is 1 (first) to 10 (last), or high, medium or low",
            ),
        }
    }
    if let Some(given) = draft.estimate.take() {
        match minutes(&given.text) {
            Some(minutes) => draft.item.estimated_minutes = Some(minutes),
            None => keep(
                &mut draft.item,
                "estimate",
                &given,
                "it is a number of minutes, or hours as in 1h 30m",
            ),
        }
    }
    if let Some(given) = draft.review.take() {
        match Review::read(&given.text) {
            Some(review) => draft.item.further.trials.review = review.said(),
            None => keep(
                &mut draft.item,
                "review",
                &given,
                "it is required, by leader, by worker, none or default",
            ),
        }
    }
    if let Some(given) = draft.status.take() {
        match stated(&given.text) {
            Some((status, is_said)) => {
                (draft.item.status, draft.item.is_own) = (status, true);
                if is_said {
                    let read = if status.is_called_off() { "cancelled" } else { "not done yet" };
                    let remark =
                        format!("status {} is read as {read}", shortened(&given.text, SHOWN));
                    remarks.push(Remark { line: given.line, remark });
                }
            }
            None => keep(
                &mut draft.item,
                "status",
                &given,
                "it is Planned, In Progress, Complete, Failed or Cancelled",
            ),
        }
    }
    // Trimmed in every format, so that another format does not count as a changed plan.
    let description = draft.item.description.take();
    let description = description.map(|text| text.trim().to_owned());
    draft.item.description = description.filter(|text| !text.is_empty());
    // What a person wrote stays in the file; a program can be told.
    let is_written = !draft.item.lines.is_empty();
    let most = limit::DESCRIPTION.max;
    if let Some(long) = draft.item.description.as_mut().filter(|text| text.len() > most)
        && is_written
    {
        *long = shortened(long, most);
        let remark = format!("its text is cut after {most} bytes: the file has the rest");
        remarks.push(Remark { line: draft.item.line, remark });
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

/// The problems with one item.
fn check(draft: &mut Draft, level: usize, above: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    let item = &mut draft.item;
    let mut keep = |limit: Limit, actual: usize| {
        if actual > limit.max {
            problems.push(over(0, limit, actual).problem);
        }
    };
    keep(limit::TITLE, item.title.len());
    keep(limit::DESCRIPTION, item.description.as_ref().map_or(0, String::len));
    keep(limit::HINTS, item.hints.as_ref().map_or(0, String::len));
    keep(limit::FILES, item.files.len());
    keep(limit::LABELS, item.tags.len());
    keep(limit::DEPENDENCIES, item.depends.len() + item.waits.len());
    item.tags.iter().for_each(|tag| keep(limit::LABEL, tag.len()));
    if let Some(Source { format, id, path }) = &item.source {
        keep(limit::ID, format.len());
        keep(limit::PATH, id.len());
        keep(limit::PATH, path.as_ref().map_or(0, String::len));
    }
    if !item.metadata.is_empty() {
        let most = if item.source.is_some() { limit::METADATA_KEPT } else { limit::METADATA };
        keep(most, serde_json::to_vec(&item.metadata).map_or(0, |json| json.len()));
    }
    if item.title.trim().is_empty() {
        problems.push("it has no title: write what is to be done behind the box".to_owned());
    }
    for file in &item.files {
        if let Err(refusal) = Pattern::checked(file, || "files".to_owned()) {
            problems.push(refusal.to_string());
        }
    }
    if let Some(path) = &item.path {
        let expected = hierarchy::part_path(above, 1).unwrap_or_default();
        let form = expected.trim_end_matches('1');
        let is_beside = hierarchy::is_path(path)
            && hierarchy::level(path) == level
            && above.is_none_or(|above| hierarchy::parent_path(path) == Some(above));
        if !is_beside {
            problems.push(format!(
                "the path {path} does not fit where it stands: {form}<number> does, without zeros \
                 before the number"
            ));
        }
    }
    problems
}

/// Reads a priority: a number, or a word.
pub fn priority(given: &str) -> Option<u8> {
    let word = given.trim().trim_matches(['*', '`', '!', '.']).to_lowercase();
    Some(match word.as_str() {
        "critical" | "urgent" | "highest" | "blocker" | "p0" => 1,
        "high" | "p1" => 3,
        "medium" | "normal" | "moderate" | "p2" => 5,
        "low" | "p3" => 7,
        "lowest" | "p4" => 9,
        word => return word.parse().ok().filter(|number| (1..=10).contains(number)),
    })
}

/// Reads a number of minutes, or a span such as `1h 30m` or `2.5 hours`.
fn minutes(given: &str) -> Option<u32> {
    let given = given.trim().trim_start_matches('~').trim_start();
    let minutes = given.parse::<u32>().ok().or_else(|| {
        let span = given.parse::<SignedDuration>().ok()?;
        u32::try_from(span.as_millis() / i128::from(MINUTE)).ok()
    });
    minutes.filter(|minutes| (1..=limit::SPAN.max as u64).contains(&u64::from(*minutes)))
}

/// Reads a status, in the words of other planners, too; true if it is one that the board does not
/// have.
pub fn stated(given: &str) -> Option<(Stated, bool)> {
    let word: String =
        given.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    Some(match word.as_str() {
        "planned" | "researching" | "ready" | "implementing" | "inprogress" | "available"
        | "claimed" | "pending" | "todo" | "open" | "review" | "inreview" => (Stated::Open, false),
        "notstarted" | "notdone" | "new" | "upcoming" | "queued" => (Stated::Open, false),
        "doing"
        | "started"
        | "wip"
        | "blocked"
        | "deferred"
        | "onhold"
        | "backlog"
        | "active"
        | "paused"
        | "triage"
        | "reopened"
        | "selectedfordevelopment"
        | "readyfordevelopment"
        | "readyfordev"
        | "indevelopment"
        | "readyforreview"
        | "codereview"
        | "testing"
        | "intesting"
        | "qa"
        | "inqa"
        | "partial"
        | "ongoing"
        | "waiting" => (Stated::Open, true),
        "complete" | "completed" | "done" | "closed" | "finished" | "resolved" | "merged"
        | "released" | "shipped" | "deployed" => (Stated::Done, false),
        "failed" => (Stated::Failed, false),
        "cancelled" | "canceled" => (Stated::Cancelled, false),
        "wontfix" | "wontdo" | "dropped" | "duplicate" | "abandoned" | "rejected" | "declined"
        | "skipped" | "deleted" => (Stated::Cancelled, true),
        "obsolete" => (Stated::Obsolete, false),
        _ => return None,
    })
}

/// A title without what is said about it beside its words.
fn bare_title(title: &str) -> String {
    phrases::stripped(title)
}

/// Reads a list such as `a, b` or `[a, b]`. Written as JSON, `["a, b"]`, its entries may be any
/// text.
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
        end.starts_with(|c: char| c.is_ascii_digit())
            && end.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let name = name.rsplit_once(':').filter(|(_, end)| is_line(end)).map_or(name, |(name, _)| name);
    Some(name.trim()).filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))
}

fn listed(text: &str, name: impl Fn(&str) -> &str) -> Vec<String> {
    if let Ok(texts) = serde_json::from_str::<Vec<String>>(text) {
        return texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    }
    let text = text.trim();
    let words = unwrapped(text)
        .unwrap_or(text)
        .split(',')
        .map(|word| name(word).trim().trim_matches('`').trim());
    words.filter(|word| is_something(word)).map(str::to_owned).collect()
}

/// True if a list of dependencies has a word that stands for none.
fn says_none(text: &str) -> bool {
    text.split(',').any(is_none)
}

/// Stands for no dependency at all.
const NONE: &str = "none";

/// True for `none` and `nothing`, whatever reason stands behind in parentheses.
fn is_none(word: &str) -> bool {
    let word = word.split(" (").next().unwrap_or_default().trim().trim_end_matches('.');
    [NONE, "nothing"].iter().any(|none| word.eq_ignore_ascii_case(none))
}

fn is_something(word: &str) -> bool {
    let short = word.trim_end_matches('.');
    !short.is_empty() && short != "-" && !short.eq_ignore_ascii_case("n/a") && !is_none(word)
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
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    pub fn at(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}
