//! Items as they come out of a file, put into the form of a plan.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::checklist::Ids;
use super::graph::{Placed, by_id, circle, fault, is_above, placed, too_deep};
use super::report::{Fault, Note, Report};
use super::status::{self, MADE, WORD};
use crate::plan::Node;
use crate::plan::board::Board;
use crate::state::limit;
use crate::state::plan::{one_line, shortened};
use crate::state::task::TaskStatus;

/// Fields of an item's metadata with what its title and its dependencies are in the file, where the
/// board's differ.
pub(super) const TITLE: &str = "title";
pub(super) const DEPENDS: &str = "dependencies";

/// What a file says.
#[derive(Default)]
pub(crate) struct Read {
    /// Path of what was read, for what is wrong with all of it.
    pub path: Option<String>,
    pub title: Option<String>,
    pub items: Vec<Node>,
    pub report: Report,
    /// What it has beside tasks.
    pub board: Board,
}

impl Read {
    /// Checks the items among each other. `word` is what the format calls each status.
    pub(crate) fn checked(
        mut self,
        word: fn(TaskStatus) -> &'static str,
    ) -> Result<Self, Vec<Fault>> {
        if self.items.is_empty() {
            let path = self.path.clone().unwrap_or_else(|| "-".to_owned());
            return Err(vec![Fault {
                path,
                line: 1,
                problem: "there is no task in it".to_owned(),
            }]);
        }
        if let Some(fault) = too_deep(&placed(&self.items)) {
            return Err(vec![fault]);
        }
        self.tell_twins_apart();
        let aside = self.dependencies_aside();
        let words = self.words_and_what_they_made(word);
        let mut number = 0;
        each(&mut self.items, &mut |node| {
            if let Some(ids) = aside.get(&number) {
                node.depends.retain(|id| !ids.contains(id));
                node.metadata.insert(DEPENDS.to_owned(), json!(ids));
            }
            match words[number] {
                None => _ = node.metadata.remove(WORD),
                Some(Some(made)) => _ = node.metadata.insert(MADE.to_owned(), made.as_str().into()),
                Some(None) => {}
            }
            name(node, &mut self.report);
            fit(node, &mut self.report);
            number += 1;
        });
        let placed = placed(&self.items);
        match circle(&placed, &by_id(&placed)) {
            Some(fault) => Err(vec![fault]),
            None => Ok(self),
        }
    }

    /// Gives ids that several items have a suffix. What depends on such an id means the first item.
    fn tell_twins_apart(&mut self) {
        let mut ids = Ids::default();
        let mut notes = Vec::new();
        each(&mut self.items, &mut |node| {
            let Some(source) = &mut node.source else { return };
            let id = ids.unique(source.id.clone(), &node.title);
            if id != source.id {
                let note = format!("{} stands there already: this one is {id}", source.id);
                source.id = id;
                let Fault { path, line, .. } = fault(node, String::new());
                notes.push(Note { path, line, note });
            }
        });
        self.report.notes.extend(notes);
    }

    /// Dependencies that the board does not need or cannot have: on what is not there, and on an
    /// item's own parts or what it is a part of.
    fn dependencies_aside(&mut self) -> HashMap<usize, Vec<String>> {
        let placed = placed(&self.items);
        let ids = by_id(&placed);
        let mut aside: HashMap<usize, Vec<String>> = HashMap::new();
        let mut notes = Vec::new();
        for (number, Placed { node, .. }) in placed.iter().enumerate() {
            for id in &node.depends {
                let why = match ids.get(id.as_str()) {
                    None => "no item has that id",
                    // It is a circle.
                    Some(on) if *on == number => continue,
                    Some(on) if is_above(&placed, *on, number) => "it is a part of that",
                    Some(on) if is_above(&placed, number, *on) => "its parts come before it anyway",
                    Some(_) => continue,
                };
                let Fault { path, line, .. } = fault(node, String::new());
                notes.push(Note { path, line, note: format!("it does not wait for {id}: {why}") });
                aside.entry(number).or_default().push(id.clone());
            }
        }
        self.report.notes.extend(notes);
        aside
    }

    /// For each item whose word says more than the board's status will, the status that the board
    /// gives it, if that is not what the word stands for.
    fn words_and_what_they_made(
        &self,
        word: fn(TaskStatus) -> &'static str,
    ) -> Vec<Option<Option<TaskStatus>>> {
        let placed = placed(&self.items);
        let kept = |(one, made): (&Placed<'_>, TaskStatus)| {
            let own = one.node.metadata.get(WORD)?.as_str().filter(|own| *own != word(made))?;
            let said = status::becomes(status::stated(one.node.status.unwrap_or(own)));
            Some(Some(made).filter(|made| *made != said))
        };
        placed.iter().zip(settled(&placed)).map(kept).collect()
    }

    /// The plan as JSON, with a line for each item, and the file and line that each comes from.
    pub(crate) fn plan_text(&mut self) -> (String, Vec<(String, usize)>) {
        let mut text = String::from("{");
        if let Some(title) = &self.title {
            text.push_str(&format!("\"title\":{},", Value::from(title.as_str())));
        }
        self.board.unread = Some(self.report.unread).filter(|lines| *lines > 0);
        if let Ok(Value::Object(board)) = serde_json::to_value(&self.board) {
            board.iter().for_each(|(name, value)| {
                text.push_str(&format!("{}:{value},", Value::from(name.as_str())))
            });
        }
        text.push_str("\"items\":[");
        let mut origins = vec![(self.path.clone().unwrap_or_else(|| "-".to_owned()), 1)];
        write(&mut self.items, &mut text, &mut origins);
        text.push_str("]}\n");
        (text, origins)
    }
}

/// The statuses that a board gives to items.
pub(super) fn settled(placed: &[Placed<'_>]) -> Vec<TaskStatus> {
    let said: Vec<_> = placed
        .iter()
        .map(|one| one.node.status.map_or_else(Default::default, status::stated))
        .collect();
    let parents: Vec<_> = placed.iter().map(|one| one.parent).collect();
    status::settled(&said, &parents, &|number| placed[number].node.status.is_some())
}

/// Calls `change` with every item, each before its parts.
pub(super) fn each(items: &mut [Node], change: &mut impl FnMut(&mut Node)) {
    for node in items {
        change(node);
        each(&mut node.items, change);
    }
}

/// Gives an item the title that it will have; what does not fit is kept.
fn name(node: &mut Node, report: &mut Report) {
    let title = one_line(&node.title);
    let short = shortened(&title, limit::TITLE.max);
    if short != node.title {
        node.metadata.insert(TITLE.to_owned(), std::mem::take(&mut node.title).into());
        if short != title {
            // An agent reads the whole of it there.
            node.description.get_or_insert_with(|| title.clone());
            report.kept("title (it is too long, and cut)");
        }
    }
    node.title = short;
}

/// Cuts what is longer than a task may have it.
fn fit(node: &mut Node, report: &mut Report) {
    let Fault { path, line, .. } = fault(node, String::new());
    let mut cut = |what: &str, text: &mut String, most: usize| {
        if text.len() > most {
            *text = shortened(text, most);
            report.note(&path, line, format!("{what} is cut after {most} bytes"));
        }
    };
    for (what, text, most) in [
        ("its description", &mut node.description, limit::DESCRIPTION.max),
        ("its plan", &mut node.hints, limit::HINTS.max),
    ] {
        text.iter_mut().for_each(|text| cut(what, text, most));
    }
    let size = |node: &Node| serde_json::to_vec(&node.metadata).map_or(0, |json| json.len());
    if size(node) > limit::METADATA_KEPT.max {
        let most = limit::METADATA_KEPT.max / node.metadata.len().max(2);
        for (field, value) in &mut node.metadata {
            let Value::String(text) = value else { continue };
            // Escapes take room, too.
            cut(field, text, most / 2);
        }
    }
}

fn write(items: &mut [Node], text: &mut String, origins: &mut Vec<(String, usize)>) {
    for (number, node) in items.iter_mut().enumerate() {
        let Fault { path, line, .. } = fault(node, String::new());
        origins.push((path, line));
        text.push_str(if number > 0 { ",\n" } else { "\n" });
        let mut parts = std::mem::take(&mut node.items);
        let json = serde_json::to_string(node).unwrap_or_default();
        match json.strip_suffix('}').filter(|_| !parts.is_empty()) {
            None => text.push_str(&json),
            Some(open) => {
                text.push_str(&format!("{open},\"items\":["));
                write(&mut parts, text, origins);
                text.push_str("]}");
            }
        }
        node.items = parts;
    }
}
