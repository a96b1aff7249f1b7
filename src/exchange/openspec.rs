//! `tasks.md` of OpenSpec: groups, and in them tasks with boxes. Only `x` is done. Numbers are for
//! people: the tool counts positions, so two tasks may have one number.

use super::checklist::{self, Ids, Line, Open, id_of_words, numbered, source};
use super::report::{Fault, Report};
use super::spec_kit::word;
use super::{Format, Read, Tree};
use crate::plan::Node;

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the tasks.md of an OpenSpec change",
    places: &["openspec/changes/*/tasks.md"],
    one_file: true,
    form: "",
    is: |tree| tree.files.values().any(|text| text.contains('[')),
    read: Some(read),
    write: None,
};

const NAME: &str = "openspec";

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let mut report = Report::default();
    let (title, items) = checklist::together(NAME, tree, |named, path, prefix, text| {
        let mut open = Open::default();
        let mut ids = Ids::default();
        for (line, read) in checklist::lines(text) {
            match read {
                Line::Heading { level, text } if level > 1 => {
                    let (number, title) = numbered(text);
                    let id = number.map_or_else(|| title.to_lowercase(), str::to_owned);
                    let id = ids.unique(id, title);
                    let source = source(NAME, prefix, &id, path);
                    let group = Node { title: title.to_owned(), source, line, ..Node::default() };
                    open.push(0, group);
                }
                Line::Entry(entry) => {
                    let (number, title) = numbered(entry.text);
                    let id =
                        ids.unique(number.map_or_else(|| id_of_words(title), str::to_owned), title);
                    let status = checklist::status(entry.mark, &mut report);
                    let source = source(NAME, prefix, &id, path);
                    let node =
                        Node { title: title.to_owned(), status, source, line, ..Node::default() };
                    open.push(entry.indent + 1, node);
                }
                Line::Point { text } => report.unread(named, line, text),
                Line::Text { is_indented: true, text } => {
                    let task = open.last().filter(|node| node.status.is_some());
                    task.into_iter().for_each(|task| checklist::describe(task, text));
                }
                Line::Heading { .. } | Line::Text { .. } => {}
            }
        }
        let mut items = open.items();
        items.retain(|node| node.status.is_some() || !node.items.is_empty());
        Ok(items)
    })?;
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}
