//! `tasks.md` of spec-kit: phases, and in them tasks with ids. Tasks without [P] wait for those
//! before them in their phase; phases wait for the one before, but user stories only for what comes
//! before all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::checklist::{self, Entry, Ids, Line, id_of_words, source};
use super::report::{Fault, Report};
use super::{Format, Read, Tree};
use crate::plan::Node;
use crate::state::task::TaskStatus;

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "the tasks.md of spec-kit",
    places: &["specs/*/tasks.md", ".specify/specs/*/tasks.md"],
    one_file: true,
    form: "",
    is,
    read: Some(read),
    write: None,
};

const NAME: &str = "spec-kit";

static TASK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(T\d+[a-z]?)\b[:.]?\s*((?:\[[^\]]*\]\s*)*)(\S.*)$").ok());
static DEPENDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)[(\[—-]\s*(?:depends on|after|blocked by)\s*:?\s+([^)\]]*)").ok()
});
static ID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bT\d+[a-z]?\b").ok());

pub(super) fn word(status: TaskStatus) -> &'static str {
    if status == TaskStatus::Done { "x" } else { "" }
}

fn is(tree: &Tree) -> bool {
    let entry = |text: &str| {
        checklist::lines(text).iter().any(|(_, line)| match line {
            Line::Entry(entry) => TASK.as_ref().is_some_and(|task| task.is_match(entry.text)),
            _ => false,
        })
    };
    tree.files.values().any(|text| entry(text))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let mut report = Report::default();
    let (title, items) = checklist::together(NAME, tree, |named, path, prefix, text| {
        let mut phases = Phases {
            named,
            path,
            prefix,
            phases: Vec::new(),
            ids: Ids::default(),
            points: BTreeMap::new(),
        };
        phases.read(text, &mut report);
        Ok(phases.ordered(&mut report))
    })?;
    Read { path: tree.path.clone(), title, items, report, ..Read::default() }.checked(word)
}

struct Phases<'a> {
    named: &'a Arc<str>,
    path: &'a Option<String>,
    prefix: &'a str,
    phases: Vec<Phase>,
    /// Ids of tasks and phases that have no number.
    ids: Ids,
    /// Entries that are not tasks, by their headings: the first line, and how many there are.
    points: BTreeMap<String, (usize, usize)>,
}

struct Phase {
    node: Node,
    is_story: bool,
    /// Ids of the task that the next ones wait for, and of those that run side by side since.
    before: Option<String>,
    beside: Vec<String>,
}

impl Phases<'_> {
    fn read(&mut self, text: &str, report: &mut Report) {
        let mut heading = String::new();
        for (line, read) in checklist::lines(text) {
            match read {
                Line::Heading { level, text } => {
                    heading = text.to_owned();
                    if level <= 2 {
                        self.phase(line, text);
                    }
                }
                Line::Entry(entry) => self.task(line, &entry, report),
                Line::Point { .. } => {
                    self.points.entry(heading.clone()).or_insert((line, 0)).1 += 1
                }
                Line::Text { is_indented, text } => {
                    let task = self.phases.last_mut().and_then(|phase| phase.node.items.last_mut());
                    task.filter(|_| is_indented)
                        .into_iter()
                        .for_each(|task| checklist::describe(task, text));
                }
            }
        }
    }

    fn phase(&mut self, line: usize, text: &str) {
        let is_story = text.to_lowercase().contains("user story");
        let is_phase = text.to_lowercase().starts_with("phase ");
        let id = if is_phase {
            text.split([':', '-', '—']).next().unwrap_or(text).trim().to_lowercase()
        } else {
            text.to_lowercase()
        };
        let source = source(NAME, self.prefix, &id, self.path);
        let node = Node { title: text.to_owned(), source, line, ..Node::default() };
        self.phases.push(Phase { node, is_story, before: None, beside: Vec::new() });
    }

    fn task(&mut self, line: usize, entry: &Entry<'_>, report: &mut Report) {
        let found = TASK.as_ref().and_then(|task| task.captures(entry.text));
        let part = |group: usize| {
            found.as_ref().and_then(|found| found.get(group)).map_or("", |part| part.as_str())
        };
        let (id, marks, title) = match part(1) {
            "" => (self.ids.unique(id_of_words(entry.text), entry.text), "", entry.text),
            id => (id.to_owned(), part(2), part(3)),
        };
        if part(1).is_empty() {
            report.note(
                self.named,
                line,
                format!("\"{title}\" has no id like T001: it is a task all the same"),
            );
        }
        if self.phases.is_empty() {
            self.phase(line, "Tasks");
        }
        let Some(phase) = self.phases.last_mut() else { return };
        let marks: Vec<&str> =
            marks.split(['[', ']']).map(str::trim).filter(|mark| !mark.is_empty()).collect();
        let is_beside = marks.contains(&"P");
        let waits = if !is_beside && !phase.beside.is_empty() {
            std::mem::take(&mut phase.beside)
        } else {
            phase.before.iter().cloned().collect()
        };
        let own = source(NAME, self.prefix, &id, self.path);
        let whole = own.as_ref().map(|source| source.id.clone()).unwrap_or_default();
        if is_beside {
            phase.beside.push(whole)
        } else {
            phase.before = Some(whole)
        }
        let mut node = Node {
            title: title.to_owned(),
            tags: marks
                .iter()
                .filter(|mark| **mark != "P")
                .map(|mark| (*mark).to_owned())
                .collect(),
            status: checklist::status(entry.mark, report),
            depends: waits,
            source: own,
            line,
            ..Node::default()
        };
        let said = DEPENDS
            .as_ref()
            .and_then(|depends| depends.captures(title))
            .and_then(|said| said.get(1));
        let named =
            said.zip(ID.as_ref()).map(|(said, id)| id.find_iter(said.as_str()).collect::<Vec<_>>());
        for on in named.into_iter().flatten() {
            let on = source(NAME, self.prefix, on.as_str(), self.path)
                .map(|source| source.id)
                .unwrap_or_default();
            if !node.depends.contains(&on) {
                node.depends.push(on);
            }
        }
        phase.node.items.push(node);
    }

    /// The phases with tasks, in their order.
    fn ordered(mut self, report: &mut Report) -> Vec<Node> {
        for (heading, (line, count)) in self.points {
            report.note(
                self.named,
                line,
                format!("{count} entries below \"{heading}\" are no tasks"),
            );
        }
        let mut base: Vec<String> = Vec::new();
        let mut stories: Vec<String> = Vec::new();
        let mut nodes = Vec::new();
        for mut phase in self.phases.into_iter().filter(|phase| !phase.node.items.is_empty()) {
            let Some(source) = &mut phase.node.source else { continue };
            source.id = self.ids.unique(std::mem::take(&mut source.id), &phase.node.title);
            let id = source.id.clone();
            if phase.is_story {
                phase.node.depends.clone_from(&base);
                stories.push(id);
            } else {
                phase.node.depends =
                    if stories.is_empty() { base } else { std::mem::take(&mut stories) };
                base = vec![id];
            }
            nodes.push(phase.node);
        }
        nodes
    }
}
