use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Fault {
    pub path: String,
    pub line: usize,
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}: {}", self.path, self.line, self.problem)
    }
}

/// How something was read that the file does not say in so many words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    pub path: String,
    pub line: usize,
    pub note: String,
}

/// What became of that for which there is no field of the same meaning. Nothing goes without being
/// counted here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// Fields that are kept in the tasks' metadata and come back with an export, and how many
    /// tasks have each
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, usize>,
    /// Fields that are left out
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// Words of statuses that the board does not have, with what they are read or written as
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Of the notes, those of lines that look like work and are in no task
    #[serde(skip)]
    pub unread: usize,
    /// What has to be known before all else
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

impl Report {
    pub(crate) fn kept(&mut self, field: &str) {
        *self.kept.entry(field.to_owned()).or_default() += 1;
    }

    pub(crate) fn left_out(&mut self, field: &str) {
        *self.left_out.entry(field.to_owned()).or_default() += 1;
    }

    pub(crate) fn status(&mut self, word: &str, becomes: &str) {
        *self.statuses.entry(format!("{word} is {becomes}")).or_default() += 1;
    }

    /// Notes a line that looks like work and is in no task.
    pub(crate) fn unread(&mut self, path: &str, line: usize, text: &str) {
        self.unread += 1;
        self.note(path, line, format!("not a task, for it has no box: {text}"));
    }

    pub(crate) fn note(&mut self, path: &str, line: usize, note: String) {
        self.notes.push(Note { path: path.to_owned(), line, note });
    }
}
