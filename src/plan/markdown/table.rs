//! Rows of tables that are items: what each column says decides.

use std::collections::HashMap;
use std::ops::Range;

use super::super::stated;
use super::entry::{Mark, is_blank, mark, trimmed};
use super::lines::{Kind, Line, cells};
use crate::state::plan::{Stated, one_line, words};

/// A row that is an item.
#[derive(Debug)]
pub(crate) struct Row {
    pub mark: Mark,
    pub title: String,
    /// The other cells, with the names of their columns.
    pub description: Option<String>,
    /// Columns that say its status.
    pub status: Vec<usize>,
}

/// Names of columns with titles, the best first.
const TITLES: [&str; 18] = [
    "task",
    "title",
    "feature",
    "item",
    "what",
    "name",
    "step",
    "todo",
    "work",
    "action",
    "story",
    "deliverable",
    "description",
    "aufgabe",
    "titel",
    "tâche",
    "tarea",
    "test",
];
/// Names of columns with statuses, and those that are answered with yes or no.
const STATUSES: [&str; 6] = ["status", "state", "progress", "stand", "statut", "estado"];
const ANSWERED: [&str; 6] = ["done", "complete", "completed", "finished", "shipped", "erledigt"];
/// Names of columns with what a row is called by programs.
const IDS: [&str; 6] = ["id", "#", "no", "nr", "key", "number"];

/// What a cell says.
#[derive(Clone, Debug)]
enum Cell<'t> {
    Empty,
    /// A status; with words if they are not known.
    Status(Mark, Option<&'t str>),
    /// A mark before other words.
    Marked(Mark, &'t str),
    Words,
    /// No words at all.
    Number,
}

/// The rows that are items, by the numbers of their lines in `lines`. `signs` says whether symbols
/// and words are statuses there, too, and not boxes alone.
pub(super) fn rows(lines: &[Line<'_>], signs: impl Fn(usize) -> bool) -> HashMap<usize, Row> {
    let is_row =
        |at: usize| lines.get(at).is_some_and(|line| matches!(line.kind, Kind::Row { .. }));
    let mut found = HashMap::new();
    let mut at = 0;
    while at < lines.len() {
        let end = (at..).find(|end| !is_row(*end)).unwrap_or(at);
        if end > at {
            Table::of(lines, at..end, signs(at)).items(&mut found);
        }
        at = end.max(at + 1);
    }
    found
}

struct Table<'t> {
    /// Names of the columns, as they compare and as they are written.
    columns: Vec<(String, String)>,
    /// Lines of rows, with their cells.
    rows: Vec<(usize, Vec<&'t str>)>,
    signs: bool,
}

impl<'t> Table<'t> {
    fn of(lines: &[Line<'t>], range: Range<usize>, signs: bool) -> Self {
        let is_delimiter =
            |found: &[&str]| found.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)));
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for at in range {
            let found = cells(lines[at].raw);
            match lines[at].kind {
                _ if is_delimiter(&found) => {}
                Kind::Row { names: true } => {
                    let name = |cell: &&str| {
                        let name = words(cell);
                        (
                            name.trim_matches(|c| is_blank(c) || "?:.".contains(c)).to_owned(),
                            one_line(cell),
                        )
                    };
                    columns = found.iter().map(name).collect();
                }
                _ => rows.push((at, found)),
            }
        }
        Self { columns, rows, signs }
    }

    fn is_called(&self, column: usize, names: &[&str]) -> bool {
        self.columns.get(column).is_some_and(|(name, _)| names.contains(&name.as_str()))
    }

    fn cell(&self, column: usize, text: &'t str) -> Cell<'t> {
        let is_named =
            self.signs && (self.is_called(column, &STATUSES) || self.is_called(column, &ANSWERED));
        let open = |text: &'t str| Cell::Status(Mark::of(Stated::Open), Some(text));
        if let Some((mark, after)) = mark(text).filter(|(mark, _)| self.signs || !mark.is_sign) {
            let words = trimmed(after);
            return match status(words) {
                Some(status) if self.signs => Cell::Status(status, None),
                _ if words.is_empty() => Cell::Status(mark, None),
                _ if is_named => Cell::Status(mark, Some(words)),
                _ => Cell::Marked(mark, words),
            };
        }
        let answer = self.is_called(column, &ANSWERED).then(|| text.to_lowercase());
        match answer.as_deref() {
            _ if text.is_empty() => Cell::Empty,
            Some("x" | "yes" | "y") => Cell::Status(Mark::of(Stated::Done), None),
            Some("no" | "n" | "-" | "–" | "—") => Cell::Status(Mark::of(Stated::Open), None),
            _ if is_named => match status(text) {
                Some(status) => Cell::Status(status, None),
                None if text.eq_ignore_ascii_case("x") => {
                    Cell::Status(Mark::of(Stated::Done), None)
                }
                None => open(text),
            },
            _ if text.chars().any(char::is_alphabetic) => Cell::Words,
            _ => Cell::Number,
        }
    }

    /// Columns that say the status of every row: those that are called so, else those in which
    /// nothing else stands.
    fn statuses(&self) -> Vec<usize> {
        let width = self.rows.iter().map(|(_, row)| row.len()).max().unwrap_or_default();
        let is_known = |cell: &Cell<'_>| matches!(cell, Cell::Status(_, None));
        let is_status = |column: &usize| {
            let cells =
                self.rows.iter().filter_map(|(_, row)| Some(self.cell(*column, row.get(*column)?)));
            let cells: Vec<_> = cells.filter(|cell| !matches!(cell, Cell::Empty)).collect();
            let is_named = self.is_called(*column, &STATUSES) || self.is_called(*column, &ANSWERED);
            cells.iter().any(is_known) && (is_named || cells.iter().all(is_known))
        };
        let (named, others): (Vec<_>, Vec<_>) = (0..width).filter(is_status).partition(|column| {
            self.is_called(*column, &STATUSES) || self.is_called(*column, &ANSWERED)
        });
        if named.is_empty() { others } else { named }
    }

    fn items(&self, found: &mut HashMap<usize, Row>) {
        let statuses = self.statuses();
        for (at, row) in &self.rows {
            let cells: Vec<Cell<'t>> =
                row.iter().enumerate().map(|(column, text)| self.cell(column, text)).collect();
            let item = if statuses.is_empty() {
                self.by_its_mark(row, &cells)
            } else {
                self.by_columns(row, &cells, &statuses)
            };
            found.extend(item.map(|item| (*at, item)));
        }
    }

    /// The item of a row in a table with columns of statuses; several are done when all are.
    fn by_columns(&self, row: &[&'t str], cells: &[Cell<'t>], statuses: &[usize]) -> Option<Row> {
        let marks = statuses.iter().map(|column| match cells.get(*column) {
            Some(Cell::Status(mark, words)) => {
                let unusual = words.map(str::to_owned).or_else(|| mark.unusual.clone());
                Mark { unusual: unusual.filter(|_| mark.status != Stated::Done), ..mark.clone() }
            }
            Some(Cell::Marked(mark, _)) => mark.clone(),
            _ => Mark::of(Stated::Open),
        });
        let all =
            marks.reduce(
                |one, other| {
                    if one.status == other.status { one } else { Mark::of(Stated::Open) }
                },
            )?;
        let marked = || {
            cells.iter().find_map(|cell| match cell {
                Cell::Marked(_, words) => Some(*words),
                _ => None,
            })
        };
        let title_at = self.title(cells, statuses);
        let title = title_at.map(|at| row[at]).or_else(marked)?;
        Some(self.row(row, all, title, title_at, statuses))
    }

    /// The item of a row with a mark in any cell.
    fn by_its_mark(&self, row: &[&'t str], cells: &[Cell<'t>]) -> Option<Row> {
        let (place, mark, behind) = cells.iter().enumerate().find_map(|(at, cell)| match cell {
            Cell::Marked(mark, words) => Some((at, mark, Some(*words))),
            Cell::Status(mark, None) => Some((at, mark, None)),
            _ => None,
        })?;
        let is_title = |text: &&str| text.chars().any(char::is_alphabetic);
        let behind = behind.filter(is_title);
        let title_at = match behind {
            Some(_) => Some(place),
            None => self.title(cells, &[place]),
        };
        let title = behind.or_else(|| title_at.map(|at| row[at])).unwrap_or(row[place]);
        Some(self.row(row, mark.clone(), title, title_at, &[place]))
    }

    /// The column with the title of a row.
    fn title(&self, cells: &[Cell<'t>], statuses: &[usize]) -> Option<usize> {
        let has_words =
            |at: &usize| !statuses.contains(at) && matches!(cells.get(*at), Some(Cell::Words));
        let named = TITLES.iter().find_map(|title| {
            (0..cells.len()).find(|at| has_words(at) && self.is_called(*at, &[title]))
        });
        let mut others = (0..cells.len()).filter(has_words);
        named
            .or_else(|| others.clone().find(|at| !self.is_called(*at, &IDS)))
            .or_else(|| others.next())
    }

    fn row(
        &self,
        row: &[&'t str],
        mark: Mark,
        title: &str,
        title_at: Option<usize>,
        statuses: &[usize],
    ) -> Row {
        let rest = (0..row.len())
            .filter(|at| Some(*at) != title_at && !statuses.contains(at) && !row[*at].is_empty());
        let described =
            rest.map(|at| match self.columns.get(at).filter(|(name, _)| !name.is_empty()) {
                Some((_, name)) => format!("{name}: {}", row[at]),
                None => row[at].to_owned(),
            });
        let described = described.collect::<Vec<_>>().join("\n");
        Row {
            mark,
            title: title.to_owned(),
            description: Some(described).filter(|text| !text.is_empty()),
            status: statuses.to_vec(),
        }
    }
}

/// The status that words in a cell say, whatever stands behind them.
fn status(text: &str) -> Option<Mark> {
    let begin = text.split(['(', ',', ';', ':', '–', '—']).next().unwrap_or_default();
    let (status, is_said) = stated(text).or_else(|| stated(begin))?;
    let unusual = is_said.then(|| one_line(text));
    Some(Mark { unusual, ..Mark::of(status) })
}
