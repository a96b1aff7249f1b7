//! A place that is open: what it shows, which of it the filter passes, and where the cursor is.

use super::content::Content;
use super::first::{Line, Words};
use super::place::Place;
use super::subject::Subject;
use super::views;
use crate::state::id::TaskId;

/// One line, and what it is about, if it can be chosen.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub line: Line,
    pub about: Option<Subject>,
}

/// What a view makes of its content.
#[derive(Default)]
pub(super) struct Layout {
    /// Lines that stay at the top.
    pub head: Vec<Line>,
    pub rows: Vec<Row>,
    /// What the whole page is about.
    pub about: Option<Subject>,
}

pub(super) struct Opened {
    pub place: Place,
    pub content: Option<Content>,
    pub filter: String,
    layout: Layout,
    /// Rows that the filter passes.
    passed: Vec<usize>,
    /// Places in `passed`: of the cursor, and of the first row that is shown.
    at: usize,
    top: usize,
}

impl Opened {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            content: None,
            filter: String::new(),
            layout: Layout::default(),
            passed: Vec::new(),
            at: 0,
            top: 0,
        }
    }

    /// Makes the rows anew, for the content or the width that is new. The cursor stays on what it
    /// was on.
    pub(super) fn lay_out(&mut self, columns: usize, words: Words<'_>) {
        let chosen = self.chosen().cloned();
        self.layout = match &self.content {
            Some(content) => views::layout(content, columns, words),
            None => Layout::default(),
        };
        self.pass();
        let same = |row: &Row| match (&row.about, &chosen) {
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        if !self.row(self.at).is_some_and(same) {
            let found = self.shown().position(same);
            self.at = found.unwrap_or(self.at);
        }
        self.settle();
    }

    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.pass();
        self.at = 0;
        self.settle();
    }

    /// Finds the rows that have all words of the filter. Titles and gaps are only of use with all.
    fn pass(&mut self) {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let is_page = self.is_page();
        let has_all = |row: &Row| {
            let text: String = row.line.iter().map(|(_, text)| text.as_str()).collect();
            let text = text.to_lowercase();
            (is_page || row.about.is_some()) && words.iter().all(|word| text.contains(word))
        };
        let rows = self.layout.rows.iter().enumerate();
        let passed = rows.filter(|(_, row)| words.is_empty() || has_all(row));
        self.passed = passed.map(|(index, _)| index).collect();
    }

    /// Whether there is nothing to choose, so that keys scroll.
    fn is_page(&self) -> bool {
        self.layout.rows.iter().all(|row| row.about.is_none())
    }

    fn row(&self, at: usize) -> Option<&Row> {
        self.layout.rows.get(*self.passed.get(at)?)
    }

    fn shown(&self) -> impl Iterator<Item = &Row> {
        self.passed.iter().filter_map(|index| self.layout.rows.get(*index))
    }

    pub(super) fn head(&self) -> &[Line] {
        &self.layout.head
    }

    /// What the cursor is on.
    pub(super) fn chosen(&self) -> Option<&Subject> {
        self.row(self.at)?.about.as_ref()
    }

    /// The event under the cursor.
    pub(super) fn event(&self) -> Option<u64> {
        match &self.content {
            Some(Content::Events(events)) => events.get(*self.passed.get(self.at)?)?.seq,
            _ => None,
        }
    }

    /// What actions are meant for: the row under the cursor, else the page.
    pub(super) fn subject(&self) -> Option<&Subject> {
        self.chosen().or(self.layout.about.as_ref())
    }

    /// The rows in a window of this height, with the cursor within, and the place of the cursor's
    /// row among them.
    pub(super) fn window(&mut self, height: usize) -> (Vec<&Line>, Option<usize>) {
        if self.is_page() {
            self.top = self.at.min(self.passed.len().saturating_sub(height));
            self.at = self.top;
        } else {
            // With the first row that can be chosen comes what stands above it.
            let lead = if self.places().next() == Some(self.at) { 0 } else { self.at };
            self.top = self.top.min(lead).max((self.at + 1).saturating_sub(height));
        }
        let cursor = self.chosen().is_some().then(|| self.at - self.top);
        let lines = self.shown().skip(self.top).take(height).map(|row| &row.line).collect();
        (lines, cursor)
    }

    /// Takes a priority for what the task has, until the board is read again.
    pub(super) fn set_priority(&mut self, id: &TaskId, wanted: u8) {
        let rows = self.layout.rows.iter_mut().map(|row| &mut row.about);
        for about in rows.chain([&mut self.layout.about]) {
            if let Some(Subject::Task(task)) = about
                && task.id == *id
            {
                task.priority = Some(wanted);
            }
        }
    }

    /// Moves the cursor, or scrolls a page, by so many rows that can be chosen.
    pub(super) fn step(&mut self, rows: isize) {
        if self.is_page() {
            self.at = self.at.saturating_add_signed(rows).min(self.passed.len().saturating_sub(1));
            return;
        }
        let places: Vec<usize> = self.places().collect();
        let here = places.iter().position(|place| *place >= self.at).unwrap_or_default();
        let there = here.saturating_add_signed(rows).min(places.len().saturating_sub(1));
        self.at = places.get(there).copied().unwrap_or_default();
    }

    /// Puts the cursor on the row that is so many lines below the first that is shown.
    pub(super) fn click(&mut self, line: usize) {
        let place = self.top + line;
        if self.row(place).is_some_and(|row| row.about.is_some()) {
            self.at = place;
        }
    }

    pub(super) fn jump(&mut self, is_last: bool) {
        let most = isize::MAX / 2;
        self.step(if is_last { most } else { -most });
    }

    /// Places of the rows that can be chosen.
    fn places(&self) -> impl Iterator<Item = usize> {
        self.shown().enumerate().filter(|(_, row)| row.about.is_some()).map(|(place, _)| place)
    }

    /// Puts the cursor on a row that can be chosen.
    fn settle(&mut self) {
        self.at = self.at.min(self.passed.len().saturating_sub(1));
        if self.chosen().is_none() && !self.is_page() {
            let before = self.places().take_while(|place| *place <= self.at).last();
            self.at = before.or_else(|| self.places().next()).unwrap_or_default();
        }
    }

    /// Number of rows that can be chosen, if a filter hides others.
    pub(super) fn found(&self) -> Option<usize> {
        (!self.filter.is_empty()).then_some(self.passed.len())
    }
}
