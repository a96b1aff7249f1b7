//! Boards of Trello, as it exports them in JSON: cards in lists, whose names are statuses.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::json::Json;
use super::record::{Record, plain};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::{Node, stated};
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "a board of Trello, as it is exported in JSON",
    places: &["trello.json"],
    one_file: true,
    form: "cards and the lists that they are in",
    is,
    read: Some(read),
    write: None,
};

const NAME: &str = "trello";

pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done => "done",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "cancelled",
        _ => "todo",
    }
}

fn is(tree: &Tree) -> bool {
    let board = tree.only().and_then(|text| serde_json::from_str::<Value>(text).ok());
    board.is_some_and(|board| {
        let is_card = |card: &Value| card["idList"].is_string() && card["name"].is_string();
        board["lists"].is_array()
            && board["cards"].as_array().is_some_and(|cards| cards.iter().all(is_card))
    })
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let one = |fault: Fault| vec![fault];
    let top = json.whole().map_err(one)?;
    let (mut board, cards) = json.record_and_parts(top, "cards", 1).map_err(one)?;
    let title = board.text("name").map_err(one)?;
    let lists = board.values("lists").map_err(one)?;
    let lists: HashMap<String, (String, bool)> = lists
        .iter()
        .filter_map(|list| {
            Some((plain(&list["id"])?, (plain(&list["name"])?, list["closed"] == true)))
        })
        .collect();
    let mut reading = Reading {
        lists,
        checklists: board.values("checklists").map_err(one)?,
        path: tree.path.clone(),
        report: Report::default(),
    };
    let cards = cards.into_iter().map(|raw: &RawValue| reading.card(json.record(raw)?));
    let items = cards.collect::<Result<Vec<Node>, Fault>>().map_err(one)?;
    let Reading { mut report, .. } = reading;
    let mut rest = Node::default();
    board.rest(&mut rest, &mut Report::default());
    rest.metadata.keys().for_each(|field| report.left_out(field));
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}

struct Reading {
    /// Names of lists by their ids, and whether each is archived.
    lists: HashMap<String, (String, bool)>,
    checklists: Vec<Value>,
    path: Option<String>,
    report: Report,
}

impl Reading {
    fn source(&self, id: &str) -> Option<Source> {
        Some(Source { format: NAME.to_owned(), id: id.to_owned(), path: self.path.clone() })
    }

    fn card(&mut self, mut record: Record) -> Result<Node, Fault> {
        let id = record.needed("id")?;
        let list = record.needed("idList")?;
        let labels = record.values("labels")?;
        let is_closed = record.take("closed") == Some(Value::Bool(true));
        let is_ticked = record.take("dueComplete") == Some(Value::Bool(true));
        let mut node = Node {
            title: record.needed("name")?,
            description: record.text("desc")?,
            tags: labels
                .iter()
                .filter_map(|label| plain(&label["name"]))
                .filter(|name| !name.is_empty())
                .collect(),
            source: self.source(&id),
            line: record.line,
            ..Node::default()
        };
        let (name, is_archived) = self.lists.get(&list).cloned().unwrap_or_default();
        let is_done = is_ticked
            || stated(&name).is_some_and(|(said, _)| said == crate::state::plan::Stated::Done);
        let word = match (is_done, is_closed || is_archived) {
            (true, _) => "done",
            (false, true) => "cancelled",
            (false, false) => stated(&name).map_or("todo", |_| name.as_str()),
        };
        for field in ["checklists", "idChecklists", "badges", "pos", "shortUrl", "idShort"] {
            record.take(field);
        }
        record.rest(&mut node, &mut self.report);
        node.metadata.insert("list".to_owned(), name.as_str().into());
        if is_closed && !is_done {
            self.report.status("an archived card", "cancelled");
        }
        status::read(&mut node, word, None, &mut self.report);
        let of_card =
            self.checklists.iter().filter(|one| plain(&one["idCard"]).as_ref() == Some(&id));
        let entries: Vec<Value> = of_card
            .flat_map(|one| one["checkItems"].as_array().cloned().unwrap_or_default())
            .collect();
        for entry in entries {
            let (Some(part), Some(title)) = (plain(&entry["id"]), plain(&entry["name"])) else {
                continue;
            };
            let mut below =
                Node { title, source: self.source(&part), line: node.line, ..Node::default() };
            let word = if entry["state"] == "complete" { "done" } else { "todo" };
            status::read(&mut below, word, None, &mut self.report);
            node.items.push(below);
        }
        Ok(node)
    }
}
