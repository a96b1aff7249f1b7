//! `tasks.md` of OpenSpec: groups, and in them tasks with boxes. Only `x` is done. Numbers are for
//! people: the tool counts positions, so two tasks may have one number.

use super::checklist::{self, Ids, Line, id_of_words, numbered, source};
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
        let mut groups: Vec<(bool, Node)> = Vec::new();
        let mut ids = Ids::default();
        for (line, read) in checklist::lines(text) {
            match read {
                Line::Heading { level, text } if level > 1 => {
                    let (number, title) = numbered(text);
                    let id = number.map_or_else(|| title.to_lowercase(), str::to_owned);
                    let id = ids.unique(id, title);
                    let source = source(NAME, prefix, &id, path);
                    groups.push((
                        true,
                        Node { title: title.to_owned(), source, line, ..Node::default() },
                    ));
                }
                Line::Entry(entry) => {
                    let (number, title) = numbered(entry.text);
                    let id =
                        ids.unique(number.map_or_else(|| id_of_words(title), str::to_owned), title);
                    let status = checklist::status(entry.mark, &mut report);
                    let source = source(NAME, prefix, &id, path);
                    let node =
                        Node { title: title.to_owned(), status, source, line, ..Node::default() };
                    match groups.last_mut() {
                        Some((true, group)) => group.items.push(node),
                        _ => groups.push((false, node)),
                    }
                }
                Line::Point { text } => {
                    report.note(named, line, format!("not a task, for it has no box: {text}"))
                }
                Line::Text { is_indented: true, text } => {
                    let task = groups.last_mut().and_then(|(is_group, node)| match is_group {
                        true => node.items.last_mut(),
                        false => Some(node),
                    });
                    task.into_iter().for_each(|task| checklist::describe(task, text));
                }
                Line::Heading { .. } | Line::Text { .. } => {}
            }
        }
        groups.retain(|(is_group, node)| !is_group || !node.items.is_empty());
        Ok(groups.into_iter().map(|(_, node)| node).collect())
    })?;
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}
