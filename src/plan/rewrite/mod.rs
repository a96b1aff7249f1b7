//! The text of an imported plan, with what has changed on the board since. Every line that still
//! says what the board says stays as it is.

mod mark;
mod page;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::export::{self, Said, body, word};
use super::front;
use super::markdown::entry::Entry;
use super::markdown::{Kind, Line, cells, columns, field, lines, opening};
use super::{bom, files, list, parse, parse_with, path_and_title};
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::plan::{Import, Item, KeptText, Matched, Plan, Stated, one_line};
use crate::state::review::Review;
use crate::state::task::{Context, DEFAULT_PRIORITY, Task, TaskStatus};
use page::Page;

/// The text with what the board says now; `None` if the text cannot say it.
pub fn rewritten(state: &State, kept: &KeptText, import: &Import) -> Option<String> {
    let plan = read(state, &kept.text, import)?;
    let matched = state.matched(&plan, import)?;
    let text = bom::skip(&kept.text);
    let read = lines(text, front::lines(text)).0;
    let mut writing = Writing {
        plan: &plan,
        columns: columns(&read),
        lines: read.iter().map(|line| (line.number, line)).collect(),
        own: plan.items.iter().map(|item| item.line).collect(),
        of_parts: plan.of_parts(),
        paths: matched
            .iter()
            .filter_map(|one| Some((&one.task.id, one.task.path.as_deref()?)))
            .collect(),
        priorities: Vec::new(),
        page: Page::of(kept),
    };
    for (number, one) in matched.iter().enumerate() {
        writing.item(number, one)?;
    }
    let new = writing.page.text();
    let is_the_plan =
        || read_again(state, &new, import).is_some_and(|plan| state.is_no_news(&plan, import));
    (!writing.page.is_changed() || is_the_plan()).then_some(new)
}

/// The plan as an import reads it now.
fn read(state: &State, text: &str, import: &Import) -> Option<Plan> {
    let plan = parse(text).ok()?;
    let known = state.still_items(&plan, import);
    if known.is_empty() && !import.lists {
        Some(plan)
    } else {
        parse_with(text, &known, import.lists).ok()
    }
}

/// As [`read`], with the line ends that an import would clean.
fn read_again(state: &State, text: &str, import: &Import) -> Option<Plan> {
    read(state, &text.replace("\r\n", "\n").replace('\r', "\n"), import)
}

struct Writing<'a, 't> {
    plan: &'a Plan,
    lines: HashMap<usize, &'a Line<'t>>,
    /// Lines in which items begin.
    own: HashSet<usize>,
    /// Columns that say the status of rows that are items, by line.
    columns: HashMap<usize, Vec<usize>>,
    /// For items that have parts, the status that these give them.
    of_parts: Vec<Option<Stated>>,
    paths: HashMap<&'a TaskId, &'a str>,
    /// What the new text says of each item's priority.
    priorities: Vec<u8>,
    page: Page<'t>,
}

impl<'t> Writing<'_, 't> {
    /// Changes the lines of one item that say something else than the board.
    fn item(&mut self, number: usize, one: &Matched<'_>) -> Option<()> {
        let item = &self.plan.items[number];
        let task = one.task;
        let inherited = item.parent.map_or(DEFAULT_PRIORITY, |parent| self.priorities[parent]);
        self.priorities.push(task.priority);
        let priority =
            (item.priority.unwrap_or(inherited) != task.priority).then_some(task.priority);
        let context = task.context.as_deref().cloned().unwrap_or_default();
        let (less, more) = waits(one);
        let unlike_above = (task.priority != inherited).then_some(task.priority);
        if less || !says(item, task, &context) {
            return self.anew(number, one, unlike_above);
        }
        let line = |name: &str, value: String| (name.to_owned(), value);
        let mut changed = BTreeMap::new();
        changed.extend(priority.map(|priority| line("priority", priority.to_string())));
        if item.tags != task.tags {
            changed.insert("tags".to_owned(), export::listed(&task.tags, list));
        }
        if item.estimated_minutes != task.estimated_minutes {
            changed.extend([line("estimate", export::estimate(task))]);
        }
        if item.further.trials.review != task.review {
            let review = task.review.unwrap_or(Review::Unsaid);
            changed.extend([line("review", review.to_string())]);
        }
        if item.files != context.files {
            changed.insert("files".to_owned(), export::listed(&context.files, files));
        }
        let title = one_line(task.headline());
        let own = if title == item.title {
            None
        } else {
            let text = self.title(item)?;
            let Some(at) = text.find(&item.title) else {
                return self.anew(number, one, unlike_above);
            };
            let at = at + self.offset(item.line, text)?;
            let raw = self.page.line(item.line);
            Some(format!("{}{title}{}", &raw[..at], &raw[at + item.title.len()..]))
        };
        let own = self.status(number, task, own, &mut changed)?;
        if let Some(own) = own {
            self.page.replace(item.line, own);
        }
        for (name, value) in changed {
            self.field(item, &name, &value)?;
        }
        let is_free = is_free(one);
        if is_free || !more.is_empty() {
            let kept = one.ordered.iter().filter(|id| is_free && task.dependencies.contains(id));
            let named: Vec<_> = kept.chain(more).map(|id| self.named(id)).collect();
            self.below(item, format!("depends: {}", export::waits(&named, is_free)))?;
        }
        Some(())
    }

    fn named(&self, id: &TaskId) -> String {
        self.paths.get(id).map_or_else(|| id.to_string(), |path| (*path).to_owned())
    }

    /// Makes the item's box and its status say what the task's status is. Returns its own line, if
    /// that changes.
    fn status(
        &self,
        number: usize,
        task: &Task,
        own: Option<String>,
        changed: &mut BTreeMap<String, String>,
    ) -> Option<Option<String>> {
        let item = &self.plan.items[number];
        let wanted = stated(task.status);
        let of_parts = self.of_parts[number];
        let is_parent = of_parts.is_some();
        // Who holds the task says when it is done, whatever the text says.
        let waits = task.planned.as_ref().is_some_and(|planned| planned.ticked)
            && item.status == Stated::Done;
        let is_moot = is_parent && item.status != Stated::Done && wanted != Stated::Done;
        if of_parts.unwrap_or(item.status) == wanted || waits || is_moot {
            return Some(own);
        }
        let raw = own.unwrap_or_else(|| self.page.line(item.line).to_owned());
        // A task that is not called off any more is not struck out.
        let raw = if item.status == Stated::Obsolete { raw.replace("~~", "") } else { raw };
        let boxed = match self.columns.get(&item.line) {
            Some(columns) => Some(with_status(&raw, columns, task.status)),
            None => self.mark_end(item.line, &raw).and_then(|end| {
                let inside = if wanted == Stated::Done { mark::DONE } else { mark::OPEN };
                let (range, mark) = mark::set(&raw[..end], inside)?;
                Some(format!("{}{mark}{}", &raw[..range.start], &raw[range.end..]))
            }),
        };
        let has_field = self.field_line(item, "status").is_some();
        // A row has no lines below it, so that there a box has to do.
        let has_room = !matches!(self.lines.get(&item.line)?.kind, Kind::Row { .. });
        let is_said =
            boxed.is_some() && (matches!(wanted, Stated::Open | Stated::Done) || !has_room);
        // What is struck out or called off is open without a word; below `Done`, it needs one.
        let needs_word = wanted != Stated::Open || item.status == Stated::Done;
        if has_field || !is_said && !is_parent && needs_word {
            changed.insert("status".to_owned(), word(task.status).to_owned());
        }
        Some(Some(boxed.unwrap_or(raw)))
    }

    /// Writes the item's lines anew, with all that the board says of it.
    fn anew(&mut self, number: usize, one: &Matched<'_>, priority: Option<u8>) -> Option<()> {
        let item = &self.plan.items[number];
        let task = one.task;
        let (raw, indent) = (self.page.line(item.line), self.indent(item.line)?);
        let text = self.opening(item.line)?;
        let prefix = &raw[..self.offset(item.line, text)?];
        let path = item.path.as_ref().filter(|_| path_and_title(text).0.is_some());
        let path = path.map(|path| format!("{path}: ")).unwrap_or_default();
        let own = format!("{prefix}{path}{}", one_line(task.headline()));
        let mut changed = BTreeMap::new();
        let own = self.status(number, task, Some(own), &mut changed)?;
        let is_boxed = match &self.lines.get(&item.line)?.kind {
            Kind::Heading { mark, .. } | Kind::Entry(Entry { mark, .. }) => mark.is_some(),
            _ => true,
        };
        if item.is_own && !is_boxed {
            // The lines that made it work of its own are left out.
            changed.entry("status".to_owned()).or_insert_with(|| word(task.status).to_owned());
        }
        let head = self.head(item)?;
        let is_below = |line: &usize| *line != head && !self.own.contains(line);
        let below: Vec<usize> = item.lines.iter().copied().filter(is_below).collect();
        let gap =
            below.iter().rev().take_while(|line| self.page.line(**line).trim().is_empty()).count();
        below[..below.len() - gap].iter().for_each(|line| self.page.leave_out(*line));
        let is_free = is_free(one);
        let waits = task.dependencies.iter().filter(|id| is_free || !one.ordered.contains(id));
        let waits: Vec<_> = waits.map(|id| self.named(id)).collect();
        let mut said = String::new();
        let status = changed.get("status").map(String::as_str);
        body(
            &mut said,
            task,
            &Said { status, priority, depends: &waits, is_free, indent: &indent },
        );
        let own = own.unwrap_or_else(|| raw.to_owned());
        self.page.replace(item.line, own);
        said.lines().for_each(|line| self.page.add_below(head, line.to_owned()));
        Some(())
    }

    /// Sets a field: in its line, or in a new one.
    fn field(&mut self, item: &Item, name: &str, value: &str) -> Option<()> {
        let Some((line, range)) = self.field_line(item, name) else {
            return if value.is_empty() {
                Some(())
            } else {
                self.below(item, format!("{name}: {value}"))
            };
        };
        let raw = self.page.line(line);
        match value {
            "" => self.page.leave_out(line),
            value => self
                .page
                .replace(line, format!("{}{value}{}", &raw[..range.start], &raw[range.end..])),
        }
        Some(())
    }

    /// The line with this field among the item's, and where its value stands.
    fn field_line(&self, item: &Item, name: &str) -> Option<(usize, std::ops::Range<usize>)> {
        item.lines.iter().filter(|line| !self.own.contains(line)).find_map(|number| {
            let text = match self.lines.get(number)?.kind {
                Kind::Text(text) => text,
                Kind::Entry(ref entry) if entry.mark.is_none() => entry.text,
                _ => return None,
            };
            let (_, value) =
                field(text).filter(|(found, value)| found == name && !value.is_empty())?;
            let start = self.offset(*number, value)?;
            Some((*number, start..start + value.len()))
        })
    }

    /// Adds a line to an item, in front of its text.
    fn below(&mut self, item: &Item, line: String) -> Option<()> {
        let indent = self.indent(item.line)?;
        self.page.add_below(self.head(item)?, format!("{indent}{line}"));
        Some(())
    }

    /// The item's own line, or the one that underlines it.
    fn head(&self, item: &Item) -> Option<usize> {
        let is_heading = matches!(self.lines.get(&item.line)?.kind, Kind::Heading { .. });
        let is_underlined = is_heading && !self.page.line(item.line).trim_start().starts_with('#');
        Some(item.line + usize::from(is_underlined))
    }

    /// What begins the lines below an item; `None` below rows, which have none.
    fn indent(&self, number: usize) -> Option<String> {
        let raw = self.page.line(number);
        match self.lines.get(&number)?.kind {
            Kind::Heading { .. } => Some(String::new()),
            Kind::Entry(_) => {
                let (column, text) = opening(raw);
                let lead = &raw[..raw.len() - text.len()];
                let lead = if lead.contains('<') { " ".repeat(column) } else { lead.to_owned() };
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                Some(format!("{lead}{}", " ".repeat(2 + digits)))
            }
            _ => None,
        }
    }

    /// The text of an item's line, behind its bullet and box.
    fn opening(&self, number: usize) -> Option<&'t str> {
        match self.lines.get(&number)?.kind {
            Kind::Heading { text, .. } => Some(text),
            Kind::Entry(ref entry) => Some(entry.text),
            Kind::Row { .. } => Some(self.page.line(number)),
            _ => None,
        }
    }

    /// The text of an item's line without its path.
    fn title(&self, item: &Item) -> Option<&'t str> {
        self.opening(item.line).map(|text| path_and_title(text).1)
    }

    /// The end of what may be the item's box, in its own line.
    fn mark_end(&self, number: usize, raw: &str) -> Option<usize> {
        Some(self.offset(number, self.opening(number)?)?.min(raw.len()))
    }

    /// Where a part of a line begins.
    fn offset(&self, number: usize, part: &str) -> Option<usize> {
        let raw = self.page.line(number);
        let at = (part.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
        (at + part.len() <= raw.len()).then_some(at)
    }
}

/// The row with other words and boxes in the columns of its status.
fn with_status(raw: &str, columns: &[usize], status: TaskStatus) -> String {
    let mut text = raw.to_owned();
    for (_, old) in cells(raw).iter().enumerate().rev().filter(|(at, _)| columns.contains(at)) {
        let start = old.as_ptr() as usize - raw.as_ptr() as usize;
        // A row has no lines for a word below it.
        let inside = match status {
            TaskStatus::Done => mark::DONE,
            TaskStatus::Cancelled | TaskStatus::Obsolete => mark::CANCELLED,
            _ => mark::OPEN,
        };
        let new = mark::cell(old, inside, word(status));
        text.replace_range(start..start + old.len(), &new);
    }
    text
}

/// True if the task does not wait for what the order of headings says.
fn is_free(one: &Matched<'_>) -> bool {
    one.ordered.iter().any(|id| !one.task.dependencies.contains(id))
}

/// Whether the task waits for less than its item says, and what it waits for besides.
fn waits<'m>(one: &'m Matched<'_>) -> (bool, Vec<&'m TaskId>) {
    let less =
        one.waits.iter().any(|id| !one.ordered.contains(id) && !one.task.dependencies.contains(id));
    (less, one.task.dependencies.iter().filter(|id| !one.waits.contains(id)).collect())
}

/// True if the item says what the task's description, hints and metadata are.
fn says(item: &Item, task: &Task, context: &Context) -> bool {
    let description = task.description.trim();
    // Of an item without a description, the task has its title as one, also after it was given
    // another title.
    let is_same = match item.description.as_deref() {
        Some(text) => text == description,
        None => description == task.headline() || description == item.title,
    };
    let line = |hints: &Option<String>| one_line(hints.as_deref().unwrap_or_default());
    is_same && line(&item.hints) == line(&context.hints) && item.metadata == context.metadata
}

fn stated(status: TaskStatus) -> Stated {
    match status {
        TaskStatus::Available
        | TaskStatus::Claimed
        | TaskStatus::InProgress
        | TaskStatus::Review => Stated::Open,
        TaskStatus::Done => Stated::Done,
        TaskStatus::Failed => Stated::Failed,
        TaskStatus::Cancelled => Stated::Cancelled,
        TaskStatus::Obsolete => Stated::Obsolete,
    }
}
