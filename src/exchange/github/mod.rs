//! Issues of GitHub, as `gh issue list --json` prints them. Task lists in open issues are their
//! parts. Out again go Markdown task lists with our ids.

mod write;

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::checklist::{self, Line, id_of_words};
use super::json::Json;
use super::record::{Record, plain};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::Node;
use crate::state::limit;
use crate::state::plan::shortened;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "GitHub issues, as `gh issue list --json \
           number,title,body,state,labels,assignees,milestone,url` prints them",
    places: &["issues.md"],
    one_file: true,
    form: "a list of issues with number and title",
    is,
    read: Some(read),
    write: Some(write::write),
};

const NAME: &str = "github";

static BLOCKED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:blocked by|depends on|waits for)\b:?((?:[\s,]|and|#\d+)+)").ok()
});
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"#(\d+)").ok());

fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done | TaskStatus::Cancelled | TaskStatus::Obsolete => "CLOSED",
        _ => "OPEN",
    }
}

fn is(tree: &Tree) -> bool {
    let Some(Ok(Value::Array(issues))) = tree.only().map(serde_json::from_str) else {
        return false;
    };
    !issues.is_empty()
        && issues.iter().all(|issue| issue["number"].is_u64() && issue["title"].is_string())
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let mut report = Report::default();
    let issues: Result<Vec<&RawValue>, _> = json.whole().and_then(|whole| json.parsed(whole));
    let items = issues.and_then(|issues| {
        let nodes =
            issues.into_iter().map(|raw| issue(json.record(raw)?, tree.path.clone(), &mut report));
        nodes.collect::<Result<Vec<Node>, Fault>>()
    });
    let mut items = items.map_err(|fault| vec![fault])?;
    // `gh` prints the newest first.
    items.sort_by_key(|node| node.source.as_ref().and_then(|source| source.id.parse::<u64>().ok()));
    Read { path: tree.path.clone(), items, report, ..Read::default() }.checked(word)
}

fn issue(mut record: Record, path: Option<String>, report: &mut Report) -> Result<Node, Fault> {
    let id = record.needed("number")?;
    let names = |values: Vec<Value>, field: &str| -> Vec<String> {
        values.iter().filter_map(|value| plain(&value[field]).or_else(|| plain(value))).collect()
    };
    let mut node = Node {
        title: record.needed("title")?,
        tags: names(record.values("labels")?, "name"),
        line: record.line,
        ..Node::default()
    };
    let body = record.text("body")?.unwrap_or_default().replace("\r\n", "\n");
    let state = record.text("state")?.unwrap_or_else(|| "OPEN".to_owned());
    let reason = record.text("stateReason")?.unwrap_or_default();
    let assignees = names(record.values("assignees")?, "login");
    if let Some(milestone) = record.take("milestone") {
        report.kept("milestone");
        let title = plain(&milestone["title"]).or_else(|| plain(&milestone)).unwrap_or_default();
        node.metadata.insert("milestone".to_owned(), title.into());
    }
    record.rest(&mut node, report);
    if !assignees.is_empty() {
        report.kept("assignees");
        node.metadata.insert("assignees".to_owned(), assignees.into());
    }
    let is_off =
        reason.eq_ignore_ascii_case("not_planned") || reason.eq_ignore_ascii_case("duplicate");
    status::read(&mut node, &state, None, report);
    if is_off {
        report.status(&reason.to_lowercase(), "cancelled");
        node.status = Some("Cancelled");
    }
    let number = |found: &str| found.trim_start_matches('#').to_owned();
    for found in BLOCKED.as_ref().into_iter().flat_map(|blocked| blocked.captures_iter(&body)) {
        let list = found.get(1).map_or("", |list| list.as_str());
        let numbers = NUMBER.as_ref().into_iter().flat_map(|all| all.find_iter(list));
        node.depends.extend(numbers.map(|found| number(found.as_str())));
    }
    if state.eq_ignore_ascii_case("open") {
        parts(&mut node, &body, &id, &path);
    }
    node.depends.sort();
    node.depends.dedup();
    let room = limit::DESCRIPTION.max;
    if body.len() > room {
        report.note(
            &record_path(&path),
            node.line,
            format!("the text of #{id} is cut after {room} bytes"),
        );
    }
    node.description = Some(shortened(body.trim(), room)).filter(|text| !text.is_empty());
    node.source = Some(Source { format: NAME.to_owned(), id, path });
    Ok(node)
}

fn record_path(path: &Option<String>) -> String {
    path.clone().unwrap_or_else(|| "-".to_owned())
}

/// The task list in a text: issues that are named there come before this one, and the others are
/// its parts.
fn parts(node: &mut Node, body: &str, id: &str, path: &Option<String>) {
    let mut taken: HashSet<String> = HashSet::new();
    for (_, line) in checklist::lines(body) {
        let Line::Entry(entry) = line else { continue };
        let only = NUMBER
            .as_ref()
            .and_then(|number| number.captures(entry.text))
            .filter(|found| found.get(0).is_some_and(|whole| whole.len() == entry.text.len()));
        if let Some(number) = only.and_then(|found| found.get(1)) {
            node.depends.push(number.as_str().to_owned());
            continue;
        }
        let mut own = format!("{id}:{}", id_of_words(entry.text));
        while !taken.insert(own.clone()) {
            own.push('+');
        }
        let status = checklist::status(entry.mark, &mut Report::default());
        let source = Some(Source { format: NAME.to_owned(), id: own, path: path.clone() });
        let line = node.line;
        node.items.push(Node {
            title: entry.text.to_owned(),
            status,
            source,
            line,
            ..Node::default()
        });
    }
}
