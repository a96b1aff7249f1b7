//! `tasks.md` of Kiro: numbered tasks with boxes, one below the other, with details in points below
//! them.

use super::checklist::{self, Entry, Ids, Line, Open, id_of_words, numbered, source};
use super::report::{Fault, Report};
use super::spec_kit::word;
use super::{Format, Read, Tree, status};
use crate::plan::Node;

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the tasks.md of Kiro",
    places: &[".kiro/specs/*/tasks.md"],
    one_file: true,
    form: "",
    is: |tree| {
        tree.files.keys().any(|name| tree.path_of(name).is_some_and(|path| path.contains(".kiro")))
    },
    read: Some(read),
    write: None,
};

const NAME: &str = "kiro";
/// Tag of tasks that need not be done.
const OPTIONAL: &str = "optional";
/// Field of the metadata with the requirements that a task is for.
const REQUIREMENTS: &str = "requirements";

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let mut report = Report::default();
    let (title, items) = checklist::together(NAME, tree, |named, path, prefix, text| {
        let mut open = Open::default();
        let mut ids = Ids::default();
        for (line, read) in checklist::lines(text) {
            match read {
                Line::Entry(entry) => {
                    let mut node = task(&entry, line, &mut report);
                    node.source = source(NAME, prefix, &id(&entry, &mut ids), path);
                    open.push(entry.indent, node);
                }
                Line::Point { text } | Line::Text { text, .. } => match (open.last(), read) {
                    (Some(node), _) => detail(node, text),
                    (None, Line::Point { text }) => report.unread(named, line, text),
                    (None, _) => {}
                },
                Line::Heading { .. } => open.close(0),
            }
        }
        Ok(open.items())
    })?;
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}

fn id(entry: &Entry<'_>, ids: &mut Ids) -> String {
    let (number, title) = numbered(entry.text);
    number.map_or_else(|| ids.unique(id_of_words(title), title), str::to_owned)
}

fn task(entry: &Entry<'_>, line: usize, report: &mut Report) -> Node {
    let (_, title) = numbered(entry.text);
    let tags = if entry.optional { vec![OPTIONAL.to_owned()] } else { Vec::new() };
    let mut node = Node { title: title.to_owned(), tags, line, ..Node::default() };
    match entry.mark.trim() {
        "-" => status::read(&mut node, "in progress", None, report),
        mark => node.status = checklist::status(mark, report),
    }
    node
}

/// Adds what a point below a task says.
fn detail(node: &mut Node, text: &str) {
    let inside = text.trim_matches('_');
    if let Some(requirements) = inside.strip_prefix("Requirements:") {
        let list: Vec<&str> =
            requirements.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
        node.metadata.insert(REQUIREMENTS.to_owned(), list.into());
        return;
    }
    checklist::describe(node, &format!("- {text}"));
}
