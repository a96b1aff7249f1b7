//! The lines of a text with changes to some of them; the others stay as they are, with their ends.

use std::collections::BTreeMap;

use crate::state::plan::KeptText;

pub(super) struct Page<'t> {
    lines: Vec<&'t str>,
    ends: Vec<&'static str>,
    /// New text of lines; `None` for lines that are left out.
    replaced: BTreeMap<usize, Option<String>>,
    /// New lines below a line.
    added: BTreeMap<usize, Vec<String>>,
}

impl<'t> Page<'t> {
    pub(super) fn of(kept: &'t KeptText) -> Self {
        Self {
            lines: kept.text.split('\n').collect(),
            ends: kept.ends(),
            replaced: BTreeMap::new(),
            added: BTreeMap::new(),
        }
    }

    /// A line by its number, from 1.
    pub(super) fn line(&self, number: usize) -> &'t str {
        self.lines.get(number - 1).copied().unwrap_or_default()
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.replaced.is_empty() || !self.added.is_empty()
    }

    pub(super) fn replace(&mut self, number: usize, text: String) {
        self.replaced.insert(number, Some(text));
    }

    pub(super) fn leave_out(&mut self, number: usize) {
        self.replaced.insert(number, None);
    }

    pub(super) fn add_below(&mut self, number: usize, text: String) {
        self.added.entry(number).or_default().push(text);
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let usual = self.ends.first().copied().unwrap_or("\n");
        for (number, line) in (1..).zip(&self.lines) {
            let end = self.ends.get(number - 1).copied();
            let whole = match self.replaced.get(&number) {
                Some(new) => new.as_deref(),
                None => Some(*line),
            };
            let added = self.added.get(&number).into_iter().flatten().map(String::as_str);
            let mut lines = whole.into_iter().chain(added).peekable();
            while let Some(line) = lines.next() {
                text.push_str(line);
                // Only the last line of a text may have no end.
                let is_last = end.is_none() && lines.peek().is_none();
                text.push_str(if is_last { "" } else { end.unwrap_or(usual) });
            }
        }
        text
    }
}
