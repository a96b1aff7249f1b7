//! Files of other tools: read into the types of `plan::json`, and written from the board. Nothing
//! here touches the disk: files come in and go out as text. A format is one file and one line in
//! [`FORMATS`].

mod backlog_md;
mod beads;
mod checklist;
mod coordinator;
mod csv;
mod cursor;
mod front;
mod github;
mod graph;
mod graphs;
mod json;
mod kiro;
mod openspec;
mod option_a;
mod option_b;
mod org;
mod parts;
mod pipeline;
mod priority;
mod reading;
mod record;
mod report;
mod spec_kit;
mod status;
mod task_master;
mod taskwarrior;
mod todo_txt;
mod tree;
mod trello;
mod verify;
mod view;

pub(crate) use csv::NAME as CSV;
pub(crate) use reading::Read;
pub(crate) use report::{Fault, Report};
pub(crate) use tree::{Tree, below, fits, fits_path};
pub(crate) use verify::{Counts, verify};
pub(crate) use view::View;

/// All formats, in the order in which a file is compared with them.
pub(crate) const FORMATS: &[Format] = &[
    task_master::FORMAT,
    backlog_md::FORMAT,
    beads::FORMAT,
    github::FORMAT,
    kiro::FORMAT,
    openspec::FORMAT,
    spec_kit::FORMAT,
    cursor::FORMAT,
    org::FORMAT,
    todo_txt::FORMAT,
    taskwarrior::FORMAT,
    trello::FORMAT,
    csv::FORMAT,
    option_a::FORMAT,
    option_b::OPTION_B,
    option_b::OPTION_C,
    pipeline::FORMAT,
    graphs::MERMAID,
    graphs::DOT,
];

/// A format of another tool.
pub(crate) struct Format {
    /// As the command line has it.
    pub name: &'static str,
    /// What has this format, in a few words.
    pub what: &'static str,
    /// Where its files lie below a project's root; `*` stands for anything in one name. An export
    /// goes to the first.
    pub places: &'static [&'static str],
    /// Whether it is one file, wherever that lies, and not a directory.
    pub one_file: bool,
    /// What files of this format are known by, in words; empty if only their place tells.
    pub form: &'static str,
    /// Whether files have that form.
    pub is: fn(&Tree) -> bool,
    pub read: Option<Reader>,
    pub write: Option<fn(&View) -> Written>,
}

type Reader = fn(&Tree) -> Result<Read, Vec<Fault>>;

/// What an export writes.
#[derive(Default)]
pub(crate) struct Written {
    /// Texts of files by their paths, below the project's root or, of a format of one file, under
    /// its first place.
    pub files: Vec<(String, String)>,
    /// What of the board has no place in the format.
    pub report: Report,
    /// Files whose tasks stand in others now, with those.
    pub moved: Vec<(String, String)>,
    /// What becomes of the text of a file that is there already, so that only what has changed is
    /// written anew.
    pub merge: Option<fn(there: &str, new: &str) -> String>,
}

/// The format of this name.
pub(crate) fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format that a file has, and what it is known by. `path` has the file's directories, as far
/// as they are known; a place in a directory of a tool's own decides alone, so that what is wrong
/// with the file is told.
pub(crate) fn detect(path: &str, tree: &Tree) -> Option<(&'static Format, String)> {
    let readable = || FORMATS.iter().filter(|format| format.read.is_some() && format.one_file);
    let is_there = |format: &&Format| {
        format
            .places
            .iter()
            .any(|place| (place.contains('/') || format.form.is_empty()) && fits_path(place, path))
    };
    let by_path =
        readable().filter(is_there).find(|format| format.is_of_a_tool() || (format.is)(tree));
    if let Some(format) = by_path {
        return Some((format, "by its path".to_owned()));
    }
    let by_form = readable().find(|format| !format.form.is_empty() && (format.is)(tree))?;
    Some((by_form, format!("by its form: {}", by_form.form)))
}

impl Format {
    /// Whether its files lie in a directory that only this tool has, so that what is wrong with one
    /// is told.
    pub(crate) fn is_of_a_tool(&self) -> bool {
        self.one_file
            && !self.places.is_empty()
            && self.places.iter().all(|place| place.starts_with('.'))
    }
}

/// Most bytes of a file's name that is made of a title.
const NAME_BYTES: usize = 80;

/// A text as part of a file's name: letters, digits and dashes.
pub(crate) fn safe_name(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric() && !"._".contains(c))
        .filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    let name = name.trim_matches(['.', '_', '-']);
    let end = name
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= NAME_BYTES)
        .last();
    let name = name[..end.unwrap_or_default()].trim_end_matches('.');
    if name.is_empty() { "task".to_owned() } else { name.to_owned() }
}
