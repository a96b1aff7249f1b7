//! Plans as people write them: headings, checklists, lists and tables. `outline` says what is an
//! item; here the items get their texts, fields and places.

pub(crate) mod entry;
mod field;
mod lines;
mod outline;
mod sense;
mod table;

use std::collections::{BTreeSet, HashMap};

use super::front;
use super::{
    Draft, Found, Given, files, is_something, limit, list, named_file, path_and_title, says_none,
};
use crate::state::plan::{Item, Problem, Remark, Skipped, Stated, one_line, shortened};
use crate::state::review::Review;
use entry::{Mark, trimmed};
pub(super) use field::field;
use field::{continues, fits, is_ambiguous, is_dependency, is_left_open, is_list};
pub(super) use lines::{Kind, Line, VERBATIM, cells, lines, opening};
use lines::{Verbatim, is_conflict};
use outline::{Outline, Role};

/// Reads a plan. `known` are the lines of headings that are items even without a mark.
/// `lists` makes all entries of lists items.
pub(super) fn read(
    text: &str,
    known: &BTreeSet<usize>,
    lists: bool,
) -> Result<Found, Vec<Problem>> {
    let (lines, doubtful) = lines(text, front::lines(text));
    let is_mark = |line: &&Line<'_>| {
        matches!(line.kind, Kind::Heading { .. } | Kind::Entry(_) | Kind::Row { .. })
    };
    let marked = lines.iter().filter(is_mark).count();
    if marked > MARKS * limit::PLAN_ITEMS.max {
        return Err(vec![super::over(1, limit::PLAN_ITEMS, marked)]);
    }
    let outline = outline::outline(&lines, known, lists);
    let mut reading = Reading {
        lines: &lines,
        outline,
        open: Vec::new(),
        drafts: Vec::new(),
        skipped: Vec::new(),
        remarks: Vec::new(),
        title: None,
        review: None,
        begun: None,
        below: String::new(),
        after_gap: true,
    };
    reading.document();
    for line in lines.iter().filter(|line| line.kind == Kind::Hidden && is_conflict(line.raw)) {
        let remark = "a mark of a merge: both sides are read".to_owned();
        reading.remarks.push(Remark { line: line.number, remark });
    }
    let unread = reading.outline.unread + doubtful.len();
    let raws: Vec<&str> = if doubtful.is_empty() { Vec::new() } else { text.lines().collect() };
    for number in doubtful {
        let title = trimmed(raws.get(number - 1).copied().unwrap_or_default());
        reading.skipped.push(Skipped {
            line: number,
            title: shortened(title, limit::TITLE.max),
            level: None,
            below: None,
        });
    }
    reading.skipped.sort_by_key(|one| one.line);
    let Reading { title, review, drafts, skipped, remarks, .. } = reading;
    Ok(Found { title, review, drafts, skipped, unread, remarks, ..Found::default() })
}

/// Columns that say the status of rows that are items, by the numbers of their lines.
pub(super) fn columns(lines: &[Line<'_>]) -> HashMap<usize, Vec<usize>> {
    let rows = outline::outline(lines, &BTreeSet::new(), false).rows;
    rows.into_iter().map(|(at, row)| (lines[at].number, row.status)).collect()
}

/// Marked lines for each item that a plan may have. More are not looked at one by one.
const MARKS: usize = 5;

struct Reading<'a, 't> {
    lines: &'a [Line<'t>],
    outline: Outline,
    /// What the next line may stand below, innermost last.
    open: Vec<Open>,
    drafts: Vec<Draft>,
    skipped: Vec<Skipped>,
    remarks: Vec<Remark>,
    title: Option<String>,
    review: Option<Review>,
    /// A field whose values follow.
    begun: Option<Begun>,
    /// The last heading.
    below: String,
    after_gap: bool,
}

enum Open {
    Heading {
        level: usize,
        draft: usize,
    },
    /// An entry; without a draft, one that is text.
    Entry {
        column: usize,
        width: usize,
        draft: Option<usize>,
    },
}

struct Begun {
    name: String,
    line: String,
    /// True once a value was read.
    has_values: bool,
}

impl Open {
    fn draft(&self) -> Option<usize> {
        match self {
            Self::Heading { draft, .. } => Some(*draft),
            Self::Entry { draft, .. } => *draft,
        }
    }
}

impl<'t> Reading<'_, 't> {
    fn document(&mut self) {
        let mut heading = 0;
        let mut at = 0;
        while at < self.lines.len() {
            let (line, start) = (&self.lines[at], at);
            match &line.kind {
                Kind::Heading { mark, text, .. } => {
                    self.forget_field();
                    self.heading(heading, mark.clone(), text);
                    heading += 1;
                }
                Kind::Entry(_) => at = self.entry(at),
                Kind::Row { names } => {
                    self.forget_field();
                    self.row(at, *names);
                }
                Kind::Code(verbatim) => {
                    self.forget_field();
                    self.code(at, *verbatim);
                }
                Kind::Text(text) => at = self.text(at, text),
                Kind::Blank => self.blank(),
                Kind::Hidden => {}
            }
            self.after_gap = matches!(line.kind, Kind::Blank | Kind::Hidden | Kind::Heading { .. });
            if let Some(owner) = self.owner() {
                self.drafts[owner]
                    .item
                    .lines
                    .extend(self.lines[start..=at].iter().map(|line| line.number));
            }
            at += 1;
        }
        self.forget_field();
    }

    fn heading(&mut self, number: usize, mark: Option<Mark>, text: &str) {
        let heading = &self.outline.headings[number];
        let (level, is_item, counted) = (heading.level, heading.is_item, heading.counted.clone());
        let unread = heading.unread;
        let line = &self.lines[heading.line];
        self.below = shortened(&one_line(text), limit::TITLE.max);
        if Some(number) == self.outline.title {
            self.title = Some(shortened(text, limit::TITLE.max));
            self.open.clear();
            return;
        }
        let is_above =
            |open: &Open| matches!(open, Open::Heading { level: above, .. } if *above < level);
        self.open.retain(is_above);
        if !is_item {
            let levels = self.open.len() + 1;
            let (title, level) = (self.below.clone(), Some(levels));
            self.skipped.push(Skipped { line: line.number, title, level, below: None });
            return self.describe(line.raw);
        }
        // What it has beside its parts nobody has read, so that they do not finish it.
        let mark = mark.or_else(|| (unread > 0).then(|| Mark::of(Stated::Open)));
        let draft = self.add(line.number, mark, text);
        self.drafts[draft].counted = counted;
        self.drafts[draft].item.is_group = true;
        self.open.push(Open::Heading { level, draft });
    }

    /// Reads an entry; returns the last of its lines.
    fn entry(&mut self, at: usize) -> usize {
        let line = &self.lines[at];
        let Kind::Entry(entry) = &line.kind else { return at };
        let role = self.outline.roles.get(&at).copied().unwrap_or(Role::Text);
        if role == Role::Value {
            return self.value(at);
        }
        let is_below_value =
            role == Role::Text && self.begun.as_ref().is_some_and(|begun| begun.has_values);
        if !is_below_value {
            self.forget_field();
        }
        self.open
            .retain(|open| !matches!(open, Open::Entry { column, .. } if column + 2 > line.column));
        match role {
            Role::Item => {
                let done = self.outline.done.contains(&at).then(|| Mark::of(Stated::Done));
                let draft = self.add(line.number, entry.mark.clone().or(done), entry.text);
                self.open.push(Open::Entry {
                    column: line.column,
                    width: width(line.raw),
                    draft: Some(draft),
                });
            }
            Role::Field => {
                let (name, value) = field(entry.text).unwrap_or_default();
                let last = self.field(&name, value, at);
                self.open.push(Open::Entry {
                    column: line.column,
                    width: width(line.raw),
                    draft: None,
                });
                return last;
            }
            Role::Text | Role::Value => {
                let is_of_item =
                    self.open.iter().any(|open| matches!(open, Open::Entry { draft: Some(_), .. }));
                if !is_of_item {
                    let below = self.outline.has_boxes.then(|| self.below.clone());
                    self.skip(at, entry.text, below);
                }
                self.describe(line.raw);
                self.open.push(Open::Entry {
                    column: line.column,
                    width: width(line.raw),
                    draft: None,
                });
            }
        }
        at
    }

    /// Reads an entry as one value, commas included.
    fn value(&mut self, at: usize) -> usize {
        let line = &self.lines[at];
        let Kind::Entry(entry) = &line.kind else { return at };
        let Some(name) = self.begun.as_mut().map(|begun| {
            begun.has_values = true;
            begun.name.clone()
        }) else {
            return at;
        };
        let mut last = at;
        let mut whole = entry.text.to_owned();
        while let Some(Line { kind: Kind::Text(text), column, .. }) = self.lines.get(last + 1)
            && *column > line.column
            && field(text).is_none()
        {
            whole.push(' ');
            whole.push_str(text);
            last += 1;
        }
        let whole = one_line(&whole);
        let value = whole.trim_matches('`').trim();
        if name == "files" {
            let file = named_file(&whole)
                .or_else(|| Some(value).filter(|value| !value.contains(char::is_whitespace)));
            let has_more = matches!(self.lines.get(last + 1), Some(next) if next.column > line.column + 1 && !matches!(next.kind, Kind::Blank));
            if has_more || file != Some(value) {
                (at..=last).for_each(|line| self.describe(self.lines[line].raw));
            }
            self.extend(
                &name,
                file.filter(|file| is_something(file)).map(str::to_owned).into_iter().collect(),
            );
        } else if is_something(value) {
            self.extend(&name, vec![value.to_owned()]);
        }
        last
    }

    /// Reads a row of a table.
    fn row(&mut self, at: usize, names: bool) {
        let line = &self.lines[at];
        let Some(row) = self.outline.rows.remove(&at) else {
            let found = cells(line.raw);
            let is_delimiter = found.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)));
            let is_of_item =
                self.open.iter().any(|open| matches!(open, Open::Entry { draft: Some(_), .. }));
            if !names && !is_delimiter && !is_of_item {
                let cells = found.iter().filter(|cell| !cell.is_empty()).copied();
                self.skip(at, &cells.collect::<Vec<_>>().join(" | "), None);
            }
            return self.describe(line.raw);
        };
        self.open.retain(|open| matches!(open, Open::Heading { .. }));
        let draft = self.add(line.number, Some(row.mark), &row.title);
        self.drafts[draft].item.description = row.description;
    }

    /// Notes a line that looks like work and is not read as an item.
    fn skip(&mut self, at: usize, title: &str, below: Option<String>) {
        let title = shortened(&one_line(title), limit::TITLE.max);
        self.skipped.push(Skipped { line: self.lines[at].number, title, level: None, below });
    }

    fn code(&mut self, at: usize, verbatim: Option<Verbatim>) {
        let line = &self.lines[at];
        if self.after_gap {
            self.close(line.column);
        }
        match verbatim {
            Some(Verbatim::Fence) => {}
            Some(Verbatim::Content) => self.add_exact_line(unindented(line.raw, line.column)),
            None => self.describe(line.raw),
        }
    }

    fn blank(&mut self) {
        if self.begun.as_ref().is_none_or(|begun| !begun.has_values) {
            self.add_line("");
        }
    }

    /// Closes the entries that a line at this column does not belong to.
    fn close(&mut self, column: usize) {
        self.open.retain(|open| !matches!(open, Open::Entry { column: own, .. } if *own >= column));
    }

    /// Reads a line of text, which may be a field; returns the last line that belongs to it.
    fn text(&mut self, at: usize, text: &'t str) -> usize {
        let line = &self.lines[at];
        let found = field(text);
        let is_kept =
            self.begun.as_ref().is_some_and(|begun| !begun.has_values && begun.line.ends_with(','));
        if !is_kept {
            self.forget_field();
        }
        if self.after_gap || found.is_some() && line.column > 0 {
            self.close(line.column);
        }
        // Text below an entry that is text is none of the item's fields.
        let is_nested = matches!(self.open.last(), Some(Open::Entry { draft: None, .. }));
        if let Some((name, value)) = found.filter(|_| !is_nested) {
            if matches!(name.as_str(), "files" | "tags" | "hints")
                || fits(&self.outline.names, &name, value)
            {
                return self.field(&name, value, at);
            }
            if !is_ambiguous(&name) {
                self.remark_on(
                    line.number,
                    format!("`{}` is not understood: it is kept as text", trimmed(text)),
                );
            }
        } else if is_nested {
            // Not looked at.
        } else if let Some(named) = field::worded(text).filter(|named| self.is_named(named)) {
            self.extend("depends", list(named));
            return at;
        } else if let Some(named) =
            field::worded(text).filter(|_| !text.to_lowercase().starts_with("after"))
        {
            self.remark_on(
                line.number,
                format!("\"{named}\" names no item: the line is kept as text"),
            );
        } else if let Some(name) = field::other(text).filter(|_| self.owner().is_some()) {
            self.remark_on(
                line.number,
                format!("`{name}` is not a field of an item: it is kept in the description"),
            );
        }
        self.describe(line.raw);
        at
    }

    /// True if all that is named is an item.
    fn is_named(&self, named: &str) -> bool {
        let values = list(named);
        !values.is_empty() && values.iter().all(|one| field::names(&self.outline.names, one))
    }

    fn remark_on(&mut self, line: usize, remark: String) {
        if self.owner().is_some() {
            self.remarks.push(Remark { line, remark });
        }
    }

    /// Reads a field, and the lines that its values go on in; returns the last of them.
    fn field(&mut self, name: &str, value: &str, at: usize) -> usize {
        let mut last = at;
        let mut value = value.to_owned();
        while is_list(name)
            && value.ends_with(',')
            && let Some(Line { kind: Kind::Text(next), .. }) = self.lines.get(last + 1)
            && field(next).is_none()
            && continues(&self.outline.names, name, next)
        {
            value.push_str(trimmed(next));
            last += 1;
        }
        let line = &self.lines[at];
        self.set(name, &value, line.number);
        if is_list(name) && is_left_open(&value) {
            self.begun =
                Some(Begun { name: name.to_owned(), line: line.raw.to_owned(), has_values: false });
        }
        last
    }

    /// Ends a field. If nothing followed a name such as `dependencies:`, it was text.
    fn forget_field(&mut self) {
        if let Some(begun) = self.begun.take()
            && !begun.has_values
            && is_ambiguous(&begun.name)
        {
            self.describe(&begun.line);
        }
    }

    fn set(&mut self, name: &str, value: &str, line: usize) {
        if is_dependency(name)
            && says_none(value)
            && let Some(number) = self.owner()
        {
            self.drafts[number].is_free = true;
        }
        if is_list(name) {
            return self.extend(name, if name == "files" { files(value) } else { list(value) });
        }
        let Some(number) = self.owner() else { return self.set_of_plan(name, value) };
        let draft = &mut self.drafts[number];
        let given = Given { text: value.to_owned(), line };
        match name {
            "priority" => draft.priority = Some(given),
            "status" => draft.status = Some(given),
            "estimate" => draft.estimate = Some(given),
            "review" => draft.review = Some(given),
            "metadata" => draft.item.metadata = serde_json::from_str(value).unwrap_or_default(),
            _ => draft.item.hints = Some(value.to_owned()).filter(|hints| !hints.is_empty()),
        }
    }

    /// Reads a field of the whole plan, which stands before all items.
    fn set_of_plan(&mut self, name: &str, value: &str) {
        if name == "review" && self.drafts.is_empty() {
            self.review = Review::read(value);
        }
    }

    fn extend(&mut self, name: &str, values: Vec<String>) {
        let Some(number) = self.owner() else { return };
        let item = &mut self.drafts[number].item;
        match name {
            "files" => item.files.extend(values),
            "tags" => item.tags.extend(values),
            name if is_dependency(name) => item.depends.extend(values),
            _ => {}
        }
    }

    /// The item that text and fields belong to.
    fn owner(&self) -> Option<usize> {
        self.open.iter().rev().find_map(Open::draft)
    }

    /// Begins an item.
    fn add(&mut self, line: usize, mark: Option<Mark>, text: &str) -> usize {
        let parent = self.owner();
        let (path, title) = path_and_title(text);
        let whole = one_line(title);
        let title = shortened(&whole, limit::TITLE.max);
        let status = mark.as_ref().map_or(Stated::Open, |mark| mark.status);
        if let Some(unusual) = mark.as_ref().and_then(|mark| mark.unusual.as_ref()) {
            let read = if status == Stated::Cancelled { "cancelled" } else { "not done" };
            self.remarks
                .push(Remark { line, remark: format!("the mark {unusual} is read as {read}") });
        }
        let description = Some(&whole)
            .filter(|whole| whole.len() > title.len())
            .map(|whole| format!("{whole}\n\n"));
        let is_own = mark.is_some();
        let item =
            Item { line, parent, path, title, description, status, is_own, ..Item::default() };
        let is_path_in_title = item.path.is_some();
        self.drafts.push(Draft { item, is_path_in_title, ..Draft::default() });
        self.drafts.len() - 1
    }

    /// Adds a line as it stands to the innermost open item, less the item's own indent.
    fn describe(&mut self, raw: &str) {
        let column =
            self.open.iter().rev().find(|open| open.draft().is_some()).map_or(
                0,
                |open| match open {
                    Open::Heading { .. } => 0,
                    Open::Entry { column, width, .. } => column + width,
                },
            );
        self.add_line(unindented(raw, column).trim_end());
    }

    fn add_line(&mut self, line: &str) {
        let Some(number) = self.owner() else { return };
        let description = self.drafts[number].item.description.get_or_insert_default();
        if !line.is_empty() || !description.is_empty() && !description.ends_with("\n\n") {
            self.add_exact_line(line);
        }
    }

    fn add_exact_line(&mut self, line: &str) {
        let Some(number) = self.owner() else { return };
        let description = self.drafts[number].item.description.get_or_insert_default();
        description.push_str(line);
        description.push('\n');
    }
}

/// The width of the bullet or number that begins a line, with a space behind it.
fn width(raw: &str) -> usize {
    let text = trimmed(raw);
    2 + text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The line without at most so many columns of white space at its beginning.
fn unindented(raw: &str, columns: usize) -> &str {
    let blank = raw.len() - raw.trim_start_matches(' ').len();
    &raw[blank.min(columns)..]
}
