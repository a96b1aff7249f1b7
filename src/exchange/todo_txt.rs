//! Lists of todo.txt: a task a line.

use std::sync::LazyLock;

use regex::Regex;

use super::checklist::{Ids, id_of_words};
use super::report::{Fault, Report};
use super::{Format, Read, Tree, status};
use crate::plan::Node;
use crate::state::task::{Source, TaskStatus};

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "a list of todo.txt",
    places: &["todo.txt", "done.txt"],
    one_file: true,
    form: "",
    is: |tree| tree.only().is_some_and(|text| !text.trim().is_empty()),
    read: Some(read),
    write: None,
};

const NAME: &str = "todo-txt";

static LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(x\s+)?(?:\(([A-Z])\)\s+)?((?:\d{4}-\d\d-\d\d\s+){0,2})(\S.*)$").ok()
});
static FIELD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:^|\s)([A-Za-z]+):([^\s:/][^\s:]*)").ok());

pub(super) fn word(status: TaskStatus) -> &'static str {
    if status == TaskStatus::Done { "done" } else { "todo" }
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let mut report = Report::default();
    let mut ids = Ids::default();
    let mut items = Vec::new();
    for (number, line) in tree.only().unwrap_or_default().lines().enumerate() {
        let Some(found) = LINE.as_ref().and_then(|form| form.captures(line.trim())) else {
            continue;
        };
        let part = |group: usize| found.get(group).map_or("", |part| part.as_str());
        let mut node = Node { line: number + 1, ..Node::default() };
        node.priority = part(2).bytes().next().map(|letter| (1 + 2 * (letter - b'A')).min(9));
        let labels = part(4).split_whitespace().filter(|word| word.len() > 1);
        node.tags =
            labels.filter_map(|word| word.strip_prefix(['+', '@'])).map(str::to_owned).collect();
        let mut id = None;
        for field in FIELD.as_ref().into_iter().flat_map(|field| field.captures_iter(part(4))) {
            let value = field.get(2).map_or("", |value| value.as_str()).to_owned();
            match field.get(1).map_or("", |name| name.as_str()) {
                "id" => id = Some(value),
                "dep" | "p" | "after" | "blocked" => node.depends.push(value),
                name => {
                    report.kept(name);
                    node.metadata.insert(name.to_owned(), value.into());
                }
            }
        }
        node.title = part(4).to_owned();
        let id = ids.unique(id.unwrap_or_else(|| id_of_words(part(4))), part(4));
        node.source = Some(Source { format: NAME.to_owned(), id, path: tree.path.clone() });
        let given = if part(1).is_empty() { "todo" } else { "done" };
        status::read(&mut node, given, None, &mut report);
        items.push(node);
    }
    Read { path: tree.path.clone(), items, report, ..Read::default() }.checked(word)
}
