//! Checklists in Markdown, as tools write them that read them again: headings, entries with boxes,
//! and what is below those.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::report::{Fault, Report};
use super::{Tree, status};
use crate::plan::Node;
use crate::plan::entry;
use crate::state::digest::sha256;
use crate::state::plan::{Stated, words};
use crate::state::task::Source;

/// A line that means something.
pub(super) enum Line<'t> {
    Heading {
        level: usize,
        text: &'t str,
    },
    Entry(Entry<'t>),
    /// An entry of a list without a box.
    Point {
        text: &'t str,
    },
    Text {
        is_indented: bool,
        text: &'t str,
    },
}

pub(super) struct Entry<'t> {
    pub indent: usize,
    /// What stands in the box.
    pub mark: &'t str,
    /// Whether a star stands behind the box.
    pub optional: bool,
    pub text: &'t str,
}

/// The lines of a text with their numbers, without code and comments.
pub(super) fn lines(text: &str) -> Vec<(usize, Line<'_>)> {
    let mut fence: Option<&str> = None;
    let mut in_comment = false;
    let mut found = Vec::new();
    for (number, whole) in text.lines().enumerate() {
        let line = whole.trim();
        let fencing = line.chars().next().filter(|c| "`~".contains(*c)).unwrap_or('`');
        let ticks = &line[..line.len() - line.trim_start_matches(fencing).len()];
        match fence {
            Some(open) if ticks.starts_with(open) && line == ticks => fence = None,
            Some(_) => {}
            None if in_comment => in_comment = !line.contains("-->"),
            None if ticks.len() > 2 => fence = Some(ticks),
            None if line.starts_with("<!--") => in_comment = !line.contains("-->"),
            None if line.is_empty() => {}
            None => found.push((number + 1, read(whole))),
        }
    }
    found
}

fn read(whole: &str) -> Line<'_> {
    let line = whole.trim();
    let level = line.len() - line.trim_start_matches('#').len();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return Line::Heading { level, text: line[level..].trim() };
    }
    let indent = whole.len() - whole.trim_start().len();
    let Some(found) = entry::entry(line) else {
        return Line::Text { is_indented: indent > 0, text: line };
    };
    let rest = entry::bullet(line).unwrap_or(line).trim_start();
    let inside = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match (inside, found.mark.map(|mark| mark.status)) {
        (Some((mark, text)), _) if mark.trim().chars().count() < 2 && !text.starts_with('(') => {
            // Some editors put a backslash before the star.
            let starred = text.strip_prefix("\\*").or_else(|| text.strip_prefix('*'));
            let starred = starred.filter(|after| !after.starts_with('*'));
            let (optional, text) = (starred.is_some(), starred.unwrap_or(text));
            Line::Entry(Entry { indent, mark, optional, text: text.trim() })
        }
        // A box that is not in brackets, as a symbol.
        (_, Some(Stated::Done)) => {
            Line::Entry(Entry { indent, mark: "x", optional: false, text: found.text })
        }
        (_, Some(Stated::Open)) => {
            Line::Entry(Entry { indent, mark: "", optional: false, text: found.text })
        }
        // A number says something, too.
        _ if line.starts_with(|c: char| c.is_ascii_digit()) => Line::Point { text: line },
        _ => Line::Point { text: rest },
    }
}

/// The number at the beginning of a text, as `1.2` or `3.`, and the words behind it.
pub(super) fn numbered(text: &str) -> (Option<&str>, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let number = first.trim_end_matches('.');
    let is_number = number
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if is_number && !rest.trim().is_empty() { (Some(number), rest.trim()) } else { (None, text) }
}

/// The status that a box says. A mark that a checklist does not have is named.
pub(super) fn status(mark: &str, report: &mut Report) -> Option<&'static str> {
    match mark {
        "x" | "X" => return Some("Complete"),
        blank if blank.trim().is_empty() => {}
        other => report.status(&format!("[{other}]"), "available"),
    }
    Some(status::OPEN)
}

/// Adds a line to what an item is described with.
pub(super) fn describe(node: &mut Node, line: &str) {
    let description = node.description.get_or_insert_default();
    if !description.is_empty() {
        description.push('\n');
    }
    description.push_str(line);
}

/// Files of checklists, each with its path and the name of its directory, which says what they are
/// about.
pub(super) fn files(tree: &Tree) -> Vec<(Option<String>, String, &str)> {
    let files = tree.files.iter().map(|(name, text)| {
        let path = tree.path_of(name);
        let whole = path.clone().unwrap_or_default();
        let directory = Path::new(&whole).parent().and_then(Path::file_name);
        (
            path,
            directory.map_or("", |name| name.to_str().unwrap_or_default()).to_owned(),
            text.as_str(),
        )
    });
    files.collect()
}

/// The source of an entry. `prefix` names its file if there are several.
pub(super) fn source(
    format: &str,
    prefix: &str,
    id: &str,
    path: &Option<String>,
) -> Option<Source> {
    let id = if prefix.is_empty() { id.to_owned() } else { format!("{prefix}/{id}") };
    Some(Source { format: format.to_owned(), id, path: path.clone() })
}

/// An id for what has none: it stays while the words stay.
pub(super) fn id_of_words(text: &str) -> String {
    sha256(words(text))[..8].to_owned()
}

/// Items of an outline while it is read, each below the last one that stands less deep.
#[derive(Default)]
pub(super) struct Open {
    open: Vec<(usize, Node)>,
    items: Vec<Node>,
}

impl Open {
    /// Begins an item, and ends those that stand as deep or deeper.
    pub(super) fn push(&mut self, depth: usize, node: Node) {
        self.close(depth);
        self.open.push((depth, node));
    }

    pub(super) fn close(&mut self, depth: usize) {
        while self.open.last().is_some_and(|(own, _)| *own >= depth) {
            let Some((_, node)) = self.open.pop() else { return };
            match self.open.last_mut() {
                Some((_, above)) => above.items.push(node),
                None => self.items.push(node),
            }
        }
    }

    /// The item that what follows describes.
    pub(super) fn last(&mut self) -> Option<&mut Node> {
        self.open.last_mut().map(|(_, node)| node)
    }

    pub(super) fn items(mut self) -> Vec<Node> {
        self.close(0);
        self.items
    }
}

/// Ids that are taken, with how often each was asked for.
#[derive(Default)]
pub(super) struct Ids(HashMap<String, usize>);

impl Ids {
    /// The id, or if another has it, one with its words, and with a number from the third on.
    pub(super) fn unique(&mut self, id: String, words: &str) -> String {
        let id = if self.0.contains_key(&id) { format!("{id}#{}", id_of_words(words)) } else { id };
        let mut unique = id.clone();
        while self.0.contains_key(&unique) {
            let count = self.0.entry(id.clone()).or_insert(1);
            *count += 1;
            unique = format!("{id}#{count}");
        }
        self.0.insert(unique.clone(), 1);
        unique
    }
}

/// Several files as one plan, each a group; a single file stands for itself.
pub(super) fn together(
    format: &str,
    tree: &Tree,
    mut read: impl FnMut(&Arc<str>, &Option<String>, &str, &str) -> Result<Vec<Node>, Vec<Fault>>,
) -> Result<(Option<String>, Vec<Node>), Vec<Fault>> {
    let files = files(tree);
    let is_several = tree.is_directory;
    let (mut groups, mut faults, mut title) = (Vec::new(), Vec::new(), None);
    for (path, directory, text) in files {
        let named: Arc<str> = path.clone().unwrap_or_else(|| "-".to_owned()).into();
        let prefix = if is_several { directory.as_str() } else { "" };
        match read(&named, &path, prefix, text) {
            Err(more) => faults.extend(more),
            Ok(items) if items.is_empty() => {}
            Ok(items) if !is_several => {
                title = Some(directory).filter(|directory| !directory.is_empty());
                groups = items;
            }
            Ok(items) => {
                let source = source(format, prefix, "", &path);
                groups.push(Node {
                    title: directory.clone(),
                    source,
                    items,
                    line: 1,
                    ..Node::default()
                });
            }
        }
    }
    if faults.is_empty() { Ok((title, groups)) } else { Err(faults) }
}
