//! Files of other tools: read into the types of `plan::json`, and written from the board. Nothing here touches the disk:
//! files come in and go out as text. A format is one file and one line in [`FORMATS`].

mod graph;
mod json;
mod priority;
mod reading;
mod record;
mod report;
mod status;
mod task_master;
mod tree;
mod verify;
mod view;

pub use reading::Read;
pub use report::{Fault, Note, Report};
pub use tree::{Tree, below, fits, fits_path};
pub use verify::{Counts, Verdict, verify};
pub use view::View;

/// All formats, in the order in which a file is compared with them.
pub const FORMATS: &[Format] = &[task_master::FORMAT];

/// A format of another tool.
pub struct Format {
    /// As the command line has it.
    pub name: &'static str,
    /// What has this format, in a few words.
    pub what: &'static str,
    /// Where its files lie below a project's root; `*` stands for anything in one name. An export goes to the first.
    pub places: &'static [&'static str],
    /// Whether it is one file, wherever that lies, and not a directory.
    pub one_file: bool,
    /// What files of this format are known by, in words.
    pub form: &'static str,
    /// Whether files have that form.
    pub is: fn(&Tree) -> bool,
    pub read: Option<fn(&Tree) -> Result<Read, Vec<Fault>>>,
    pub write: Option<fn(&View) -> Written>,
}

/// What an export writes.
#[derive(Default)]
pub struct Written {
    /// Texts of files by their paths, below the project's root or, of a format of one file, under its first place.
    pub files: Vec<(String, String)>,
    /// What of the board has no place in the format.
    pub report: Report,
}

/// The format of this name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format that a file has, and what it is known by. `path` has the file's directories, as far as they are known; a
/// place in a directory of a tool's own decides alone, so that what is wrong with the file is told.
pub fn detect(path: &str, tree: &Tree) -> Option<(&'static Format, String)> {
    let readable = || FORMATS.iter().filter(|format| format.read.is_some());
    let is_there = |place: &str| fits_path(place, path) && place.contains('/');
    let by_path = readable().find(|format| format.one_file && format.places.iter().any(|place| is_there(place)));
    if let Some(format) = by_path {
        return Some((format, "by its path".to_owned()));
    }
    let by_form = readable().find(|format| format.one_file && (format.is)(tree))?;
    Some((by_form, format!("by its form: {}", by_form.form)))
}
