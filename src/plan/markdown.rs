//! Plans as Markdown headings and checklists. Headings (see `decide_on_headings`) and every `- [ ]` are items, each a
//! part of what it stands below; other text below an item is its description, except for lines like `depends:
//! P1.M1.T2`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use regex::Regex;

use super::{Draft, Found, Given, Lines, NAMED, files, is_called_off, is_something, limit, list, named_file, stated};
use crate::state::plan::{Item, Problem, Skipped, Stated, one_line, shortened};

/// Info string of a code block that is a description, whatever it looks like.
pub const VERBATIM: &str = "description";

static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\*{0,2}`?(P\d+(?:\.[A-Z]\d+)*)`?\*{0,2}(?:[:.)]|\s[-–—])?\*{0,2}\s+(\S.*)$").ok());
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*(\**)(depends(?:[ _]on)?|dependenc(?:y|ies)|priority|files|hints|tags|status)(\**)\s*:(.*)$")
        .ok()
});

/// Boxes that only other programs understand, and what was meant to be a box.
static MARK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\[\s*[^\s\pL\pN]?\s*\](?:\s|$)|^\[\s*[xX]\s*\](?:\s|$)").ok());

/// YAML at the very beginning, which describes the text to other programs. The parser would take whatever stands
/// between two rules for such a block, items included.
static FRONT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const LINE: &str = r"(?:[\w\x22'][^\n]*:[^\n]*|[ \t]+[^\n]*|-(?:[ \t][^\n]*)?|[\]\[{}][^\n]*|#[^\n]*)?\n";
    Regex::new(&format!(
        r"^(?:---[ \t]*\n(?:#[^\n]*\n)*[\w\x22'][^\n]*:[^\n]*\n(?:{LINE})*?(?:---|\.\.\.)[ \t]*(?:\n|$))?"
    ))
    .ok()
});

/// Reads a plan. `known` are the lines of headings that are items even without a mark.
pub fn read(text: &str, known: &BTreeSet<usize>) -> Result<Found, Vec<Problem>> {
    let front = FRONT.as_ref().and_then(|front| front.find(text)).map_or(0, |front| front.end());
    let events = Parser::new_ext(&text[front..], Options::ENABLE_TASKLISTS).into_offset_iter();
    let events: Vec<_> = events.map(|(event, range)| (event, front + range.start..front + range.end)).collect();
    let mut reading = Reading {
        text,
        lines: Lines::of(text),
        headings: Vec::new(),
        entries: Vec::new(),
        drafts: Vec::new(),
        problems: Vec::new(),
        title: None,
        goes_on: None,
        events: &events,
        ends: ends(&events),
        boxes: Vec::new(),
        unboxed: Vec::new(),
        endings: endings(text),
    };
    reading.headings = reading.found_headings();
    let is_box = |number: &usize| matches!(events[*number].0, Event::TaskListMarker(_));
    reading.boxes = (0..events.len()).filter(is_box).collect();
    let marked = reading.headings.len() + reading.boxes.len();
    if marked > 2 * limit::PLAN_ITEMS.max {
        return Err(vec![super::over(1, limit::PLAN_ITEMS, marked)]);
    }
    reading.decide_on_headings(known);
    reading.document();
    if !reading.problems.is_empty() {
        reading.problems.truncate(NAMED);
        return Err(reading.problems);
    }
    let skipped = reading.skipped();
    if skipped.len() > 2 * limit::PLAN_ITEMS.max {
        return Err(vec![super::over(1, limit::PLAN_ITEMS, skipped.len())]);
    }
    Ok(Found { title: reading.title, drafts: reading.drafts, skipped })
}

/// For each event, the index at which what begins there ends.
fn ends(events: &[Piece<'_>]) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..events.len()).collect();
    let mut open = Vec::new();
    for (number, (event, _)) in events.iter().enumerate() {
        match event {
            Event::Start(_) => open.push(number),
            Event::End(_) => ends[open.pop().unwrap_or(number)] = number,
            _ => {}
        }
    }
    ends
}

fn endings(text: &str) -> Vec<String> {
    let is_one = |line: &&str| line.trim_start().starts_with('#') || line.contains("[ ]") || line.contains("[x]");
    let mut endings: Vec<String> = text.lines().filter(is_one).map(backwards).collect();
    endings.sort_unstable();
    endings
}

/// The text in lower case, last letter first.
fn backwards(text: &str) -> String {
    text.to_lowercase().chars().rev().collect()
}

type Piece<'t> = (Event<'t>, Range<usize>);

struct Reading<'a, 't> {
    text: &'t str,
    lines: Lines,
    headings: Vec<Heading>,
    /// The open list entries and headings, innermost last.
    entries: Vec<Open>,
    drafts: Vec<Draft>,
    problems: Vec<Problem>,
    title: Option<String>,
    /// A field whose value the text has left open, so that the entries below are its values.
    goes_on: Option<Begun<'t>>,
    events: &'a [Piece<'t>],
    ends: Vec<usize>,
    /// Indices of the events that are boxes.
    boxes: Vec<usize>,
    /// Entries without a box beside entries with one.
    unboxed: Vec<Skipped>,
    /// Lines of headings and boxes, backwards and sorted: if any line ends with a name, the first one not before that
    /// name does.
    endings: Vec<String>,
}

/// A field whose values follow as a list.
struct Begun<'t> {
    name: String,
    line: &'t str,
}

struct Heading {
    /// Index of its event.
    event: usize,
    level: HeadingLevel,
    /// Range of its text as written.
    text: Range<usize>,
    is_item: bool,
}

struct Open {
    /// `None` for a list entry, which lies below every heading.
    heading: Option<HeadingLevel>,
    /// `None` below what the plan calls off.
    draft: Option<usize>,
}

impl<'t> Reading<'_, 't> {
    /// Index of the end of what begins at `start`.
    fn end(&self, start: usize) -> usize {
        self.ends[start]
    }

    /// Finds the headings. One in a quotation or a list entry is text, because it ends nothing that comes after it.
    fn found_headings(&self) -> Vec<Heading> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.events.len() {
            let (event, range) = &self.events[at];
            if let Event::Start(Tag::Heading { level, .. }) = event {
                let inside = self.events[at + 1..self.end(at)].iter().map(|(_, range)| range.clone());
                let text = inside.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end));
                let text = text.unwrap_or(range.start..range.start);
                found.push(Heading { event: at, level: *level, text, is_item: true });
            }
            at = self.end(at) + 1;
        }
        found
    }

    /// Decides which headings are items. A single heading of the first level, at the beginning, is the title. Where
    /// items are marked, by a path or a box, headings without a mark at or below them are prose. What only an item has
    /// below it, and being known as an item, count as marks, too.
    fn decide_on_headings(&mut self, known: &BTreeSet<usize>) {
        let path_of = |heading: &Heading| path_and_title(&self.text[heading.text.clone()]).0.is_some();
        let paths: Vec<bool> = self.headings.iter().map(path_of).collect();
        let tops = self.headings.iter().filter(|heading| heading.level == HeadingLevel::H1).count();
        let is_title = tops == 1
            && (self.headings.len() > 1 || !self.boxes.is_empty())
            && self.headings.first().is_some_and(|first| first.level == HeadingLevel::H1 && !paths[0]);
        if is_title && let Some(first) = self.headings.first_mut() {
            first.is_item = false;
            let text = self.text[first.text.clone()].trim();
            self.title = Some(shortened(text, limit::TITLE.max));
        }
        if self.boxes.is_empty() && paths.iter().all(|path| !path) {
            return;
        }
        let is_known = |heading: &Heading| known.contains(&self.lines.at(heading.text.start));
        let marked = (0..self.headings.len())
            .map(|number| paths[number] || is_known(&self.headings[number]) || self.is_described_as_item(number));
        let marked: Vec<bool> = marked.collect();
        for number in 0..self.headings.len() {
            let Heading { event, level, .. } = self.headings[number];
            let after = self.headings[number + 1..].iter().position(|other| other.level <= level);
            let after = after.map_or(self.headings.len(), |offset| number + 1 + offset);
            let end = self.headings.get(after).map_or(self.events.len(), |heading| heading.event);
            let leads = marked[number..after].contains(&true) || self.has_boxes(event, end);
            self.headings[number].is_item &= leads;
        }
    }

    /// True if a dependency or a priority stands in the text right below the heading, or in a list entry there.
    fn is_described_as_item(&self, number: usize) -> bool {
        let end = self.headings.get(number + 1).map_or(self.events.len(), |next| next.event);
        let mut at = self.end(self.headings[number].event) + 1;
        let mut depends = false;
        while at < end {
            let (event, range) = &self.events[at];
            let text = &self.text[range.clone()];
            let is_described = match event {
                Event::Start(Tag::Paragraph) => text.lines().any(|line| self.is_for_items(line)),
                Event::Start(Tag::List(_)) => {
                    let are_fields = self.entries_of(at).all(|entry| self.is_field(entry));
                    self.entries_of(at).any(|entry| {
                        let own = &self.text[self.own_text(entry)];
                        let is_read = are_fields || self.is_dependency(entry) || self.is_followed(entry);
                        depends && self.names(own.trim()) || is_read && own.lines().any(|line| self.is_for_items(line))
                    })
                }
                _ => false,
            };
            if is_described {
                return true;
            }
            let last = text.lines().next_back().filter(|_| matches!(event, Event::Start(Tag::Paragraph)));
            depends = last.and_then(field).is_some_and(|(name, value)| is_dependency(&name) && is_left_open(value));
            at = self.end(at) + 1;
        }
        false
    }

    fn is_for_items(&self, line: &str) -> bool {
        field(line).is_some_and(|(name, value)| match name.as_str() {
            "priority" => value.parse::<u8>().is_ok(),
            name => is_dependency(name) && list(value).iter().any(|on| self.names(on)),
        })
    }

    /// True if `item` names an item of the plan. Prose may begin with such a word, too, but names no item.
    fn names(&self, item: &str) -> bool {
        let is_path = || path_and_title(&format!("{item} it")).0.is_some();
        let end = backwards(item);
        let at = self.endings.partition_point(|line| *line < end);
        self.endings.get(at).is_some_and(|line| line.starts_with(&end)) || is_path()
    }

    /// Headings that are no items, except the title, and entries that seem to be items.
    fn skipped(&self) -> Vec<Skipped> {
        let mut above: Vec<HeadingLevel> = Vec::new();
        let mut skipped = self.unboxed.clone();
        for (number, heading) in self.headings.iter().enumerate() {
            if number == 0 && self.title.is_some() {
                continue;
            }
            above.retain(|level| *level < heading.level);
            above.push(heading.level);
            if !heading.is_item {
                let title = shortened(&one_line(&self.text[heading.text.clone()]), limit::TITLE.max);
                let line = self.lines.at(heading.text.start);
                skipped.push(Skipped { line, title, level: Some(above.len()) });
            }
        }
        skipped.sort_by_key(|one| one.line);
        skipped
    }

    fn document(&mut self) {
        let (mut at, mut heading) = (0, 0);
        while at < self.events.len() {
            if self.headings.get(heading).is_some_and(|one| one.event == at) {
                self.heading(heading);
                heading += 1;
                at = self.end(at) + 1;
            } else {
                at = self.block(at);
            }
        }
    }

    fn heading(&mut self, number: usize) {
        let Heading { level, ref text, is_item, event } = self.headings[number];
        let text = text.clone();
        self.goes_on = None;
        while self.entries.last().is_some_and(|open| open.heading.is_some_and(|above| above >= level)) {
            self.entries.pop();
        }
        if !is_item {
            if self.title.is_none() || number > 0 {
                let range = self.events[event].1.clone();
                self.describe(&range, false);
            }
            return;
        }
        self.open(Some(level), &text, None);
    }

    /// Reads a block that is no heading; returns the index where the next begins.
    fn block(&mut self, at: usize) -> usize {
        let (event, range) = &self.events[at];
        let end = self.end(at);
        let goes_on = self.goes_on.take();
        match event {
            Event::Start(Tag::List(_)) => self.list(at, goes_on),
            Event::Start(Tag::Paragraph) => self.describe(range, true),
            Event::Start(Tag::CodeBlock(kind)) => {
                let is_verbatim = matches!(kind, pulldown_cmark::CodeBlockKind::Fenced(info) if &**info == VERBATIM);
                match is_verbatim {
                    true => {
                        let code = self.events[at + 1..end].iter();
                        let code: String = code
                            .filter_map(|(event, _)| if let Event::Text(text) = event { Some(&**text) } else { None })
                            .collect();
                        self.add_description(code.trim_end_matches('\n'));
                    }
                    false => self.describe(range, false),
                }
            }
            // A quotation, mostly.
            _ if self.has_boxes(at, end) => {
                let line = self.lines.at(range.start);
                let problem = "a box that does not stand in a list of its own is no item: take it out of the quotation, \
                               or write it without the brackets";
                self.problems.push(Problem { line, problem: problem.to_owned() });
            }
            _ => self.describe(range, false),
        }
        end + 1
    }

    fn has_boxes(&self, start: usize, end: usize) -> bool {
        let next = self.boxes.partition_point(|one| *one < start);
        self.boxes.get(next).is_some_and(|one| *one < end)
    }

    /// Reads a list. `goes_on` is the field that the text before it has left open. Entries before the first box are
    /// fields only if all of them are, because lists in prose have entries that begin with such a word, too.
    /// Dependencies are read from any entry.
    fn list(&mut self, at: usize, goes_on: Option<Begun<'t>>) {
        let entries: Vec<usize> = self.entries_of(at).collect();
        let first_box = entries.iter().position(|entry| self.has_boxes(*entry, self.end(*entry)));
        let (before, boxes) = entries.split_at(first_box.unwrap_or(entries.len()));
        let mut goes_on = goes_on;
        if let Some(begun) = goes_on.take_if(|begun| !self.is_meant(&begun.name, before)) {
            self.add_description(begun.line.trim());
        }
        let are_fields = before.iter().all(|entry| self.is_field(*entry));
        let is_read = |entry: &usize| {
            are_fields || self.is_dependency(*entry) || self.is_followed(*entry) || self.is_wrongly_marked(*entry)
        };
        if goes_on.is_none() && boxes.is_empty() && !before.iter().any(is_read) {
            before.iter().for_each(|entry| self.skip_unmarked(*entry));
            return self.describe(&self.events[at].1.clone(), false);
        }
        self.goes_on = goes_on;
        for entry in before {
            match self.goes_on.take() {
                Some(begun) => self.value(begun, *entry),
                None if boxes.is_empty() => {
                    self.skip_unmarked(*entry);
                    self.plain_entry(*entry, are_fields);
                }
                None => self.entry(at, *entry, are_fields),
            }
        }
        self.goes_on = None;
        boxes.iter().for_each(|entry| self.entry(at, *entry, false));
    }

    /// True if the list has the values of the field. Below `Dependencies:` stand libraries as often as not.
    fn is_meant(&self, name: &str, values: &[usize]) -> bool {
        let names = |entry: &usize| self.names(self.text[self.own_text(*entry)].trim_matches(['`', ' ', '\n']));
        !is_ambiguous(name) || values.iter().any(names)
    }

    /// Indices of the entries of the list that begins at `at`.
    fn entries_of(&self, at: usize) -> impl Iterator<Item = usize> {
        let end = self.end(at);
        let within = move |entry: usize| Some(entry).filter(|entry| *entry < end);
        std::iter::successors(within(at + 1), move |entry| within(self.end(*entry) + 1))
    }

    /// Index where the entry's own text ends: a block begins there, or the entry ends.
    fn own_end(&self, entry: usize) -> usize {
        let end = self.end(entry);
        match self.events[entry + 1].0 {
            Event::Start(Tag::Paragraph) => self.end(entry + 1) + 1,
            _ => (entry + 1..end)
                .find(|number| matches!(self.events[*number].0, Event::Start(ref tag) if is_block(tag)))
                .unwrap_or(end),
        }
    }

    fn own_text(&self, entry: usize) -> Range<usize> {
        let own = self.events[entry + 1..self.own_end(entry)].iter().map(|(_, range)| range.clone());
        let start = self.events[entry].1.start;
        own.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)).unwrap_or(start..start)
    }

    /// True if the entry begins with a field whose value can be meant.
    fn is_field(&self, entry: usize) -> bool {
        self.field_of(entry).is_some_and(|(name, value)| self.fits(&name, value))
    }

    fn is_dependency(&self, entry: usize) -> bool {
        self.field_of(entry).is_some_and(|(name, value)| is_dependency(&name) && self.fits(&name, value))
    }

    fn field_of(&self, entry: usize) -> Option<(String, &'t str)> {
        let text = self.text;
        text[self.own_text(entry)].lines().next().and_then(field)
    }

    /// End of the entry's text that is its own. To Markdown a line below a list belongs to the last entry, unless
    /// something is between them; a field in it is the item's if it begins left of the entry's text.
    fn end_of_entry(&self, entry: usize) -> usize {
        let own = self.own_text(entry);
        let column = own.start - self.text[..own.start].rfind('\n').map_or(0, |at| at + 1);
        let text = &self.text[own.clone()];
        let is_below = |line: &&str| line.len() - line.trim_start().len() < column && field(line).is_some();
        let below = text.lines().skip(1).find(is_below);
        below.map_or(text.len(), |line| line.as_ptr().addr() - text.as_ptr().addr())
    }

    fn is_followed(&self, entry: usize) -> bool {
        self.end_of_entry(entry) < self.own_text(entry).len()
    }

    /// True if the value suits the field: prose may begin with such a word, too.
    fn fits(&self, name: &str, value: &str) -> bool {
        match name {
            "status" => stated(value).is_some() || is_called_off(Some(value)),
            "priority" => value.parse::<u8>().is_ok(),
            "files" => files(value).iter().all(|file| !file.contains(char::is_whitespace)),
            name if is_ambiguous(name) => {
                let items = list(value.trim_matches(['[', ']']));
                items.is_empty() || items.iter().any(|item| self.names(item))
            }
            _ => true,
        }
    }

    /// True if the line continues the values before it.
    fn continues(&self, name: &str, line: &str) -> bool {
        let mut values = line.split(',').map(|value| value.trim().trim_matches(['`', ']']));
        match is_dependency(name) {
            true => values.any(|value| self.names(value)),
            false => values.all(|value| !value.contains(char::is_whitespace)),
        }
    }

    /// Reads an entry as one value, commas included.
    fn value(&mut self, begun: Begun<'t>, entry: usize) {
        let own = self.own_text(entry);
        let text = self.text;
        let others = text[own.clone()].lines().find(|line| field(line).is_some());
        let end = others.map_or(own.end, |line| line.as_ptr().addr() - text.as_ptr().addr());
        self.describe(&(end..own.end), true);
        let name = begun.name.clone();
        if others.is_none() {
            self.goes_on = Some(begun);
        }
        let whole = one_line(&text[own.start..end]);
        let value = whole.trim_matches('`').trim();
        let has_more = self.own_end(entry) < self.end(entry);
        if name == "files" {
            let file = named_file(&whole).or_else(|| Some(value).filter(|value| !value.contains(char::is_whitespace)));
            if has_more || file != Some(value) {
                let start = self.events[entry].1.start;
                let end = if others.is_none() { self.events[entry].1.end } else { end };
                let goes_on = self.goes_on.take();
                self.describe(&(start..end), false);
                self.goes_on = goes_on;
            }
            return self.extend(&name, file.filter(|file| is_something(file)).map(str::to_owned).into_iter().collect());
        }
        if has_more {
            let problem = format!("what stands below an entry of {name} is none of its values; put it elsewhere");
            self.problems.push(Problem { line: self.lines.at(own.start), problem });
        }
        if is_something(value) {
            self.extend(&name, vec![value.to_owned()]);
        }
    }

    /// Reads an entry of the list at `list`, which has boxes. With `are_fields` the entries before the first box are
    /// fields.
    fn entry(&mut self, list: usize, start: usize, are_fields: bool) {
        let end = self.end(start);
        let range = self.events[start].1.clone();
        let is_loose = matches!(self.events[start + 1].0, Event::Start(Tag::Paragraph));
        let marker = start + 1 + usize::from(is_loose);
        let Event::TaskListMarker(is_done) = self.events[marker.min(end)].0 else {
            let problem = match () {
                () if self.has_boxes(start, end) => "boxes below an entry without one: begin it with - [ ], too",
                () if self.mark(start).is_some() => return self.refuse_mark(start),
                () if self.is_field(start) && self.has_boxes(list, start)
                    || self.entries.is_empty() && (are_fields || self.is_dependency(start)) =>
                {
                    "it is not clear of which item this is: indent it below its box, or put it right below its heading"
                }
                () => {
                    self.skip(start, are_fields);
                    return self.plain_entry(start, are_fields);
                }
            };
            return self.problems.push(Problem { line: self.lines.at(range.start), problem: problem.to_owned() });
        };
        let text_start = self.events[marker].1.end;
        let own = text_start..self.own_text(start).end.max(text_start);
        let first = self.text[own.clone()].find('\n').map_or(own.end, |length| own.start + length);
        let depth = self.entries.len();
        if depth > 2 * limit::PLAN_DEPTH.max {
            let line = self.lines.at(range.start);
            return self.problems.push(super::over(line, limit::PLAN_DEPTH, depth));
        }
        self.open(None, &(own.start..first), Some(is_done));
        if first < own.end {
            self.describe(&(first + 1..own.end), true);
        }
        let mut at = self.own_end(start);
        while at < end {
            at = self.block(at);
        }
        self.entries.truncate(depth);
        self.goes_on = None;
    }

    /// Notes an entry of a list without boxes as skipped if it looks as if an item was meant: it begins with a path, or
    /// with brackets that are no box.
    fn skip_unmarked(&mut self, entry: usize) {
        let first = self.text[self.own_text(entry)].lines().next().unwrap_or_default().trim_start();
        // A number is a reference.
        let is_mark = |mark: &str| mark.len() < 2 && mark.chars().all(char::is_alphabetic);
        let is_bracket = |text: &str| text.find("] ").is_some_and(|end| is_mark(text[..end].trim()));
        let is_meant = path_and_title(first).0.is_some() || first.strip_prefix('[').is_some_and(is_bracket);
        if is_meant && !self.entries.is_empty() {
            self.skip(entry, false);
        }
    }

    /// Notes an entry as skipped, because it is text beside items.
    fn skip(&mut self, entry: usize, are_fields: bool) {
        let own = self.own_text(entry);
        let is_called_off = self.entries.last().is_some_and(|above| above.draft.is_none());
        if is_called_off || are_fields || self.is_dependency(entry) || self.is_followed(entry) {
            return;
        }
        let first = self.text[own.clone()].lines().next().unwrap_or_default();
        let title = shortened(&one_line(first), limit::TITLE.max);
        self.unboxed.push(Skipped { line: self.lines.at(own.start), title, level: None });
    }

    /// The mark of an entry, if it is one that is not read.
    fn mark(&self, entry: usize) -> Option<&'t str> {
        let text = &self.text[self.own_text(entry)];
        let mark = MARK.as_ref()?.find(text)?.as_str().trim_end();
        Some(mark).filter(|mark| !["[ ]", "[x]", "[X]"].contains(mark))
    }

    /// True if an entry of a list without boxes is marked wrongly. Above the first item is text for people, and an
    /// entry may begin with `[]` as with any word.
    fn is_wrongly_marked(&self, entry: usize) -> bool {
        self.mark(entry).is_some_and(|mark| mark != "[]" && !self.entries.is_empty())
    }

    fn refuse_mark(&mut self, entry: usize) {
        let problem = format!(
            "the mark {} is not read: write [ ] or [x], and below it what is meant, as `status: In Progress` or `status: \
             Cancelled`",
            self.mark(entry).unwrap_or_default()
        );
        self.problems.push(Problem { line: self.lines.at(self.events[entry].1.start), problem });
    }

    /// Reads an entry without a box. It may be a field such as `depends: P1`, or have one after its text.
    fn plain_entry(&mut self, start: usize, are_fields: bool) {
        let range = self.events[start].1.clone();
        if self.is_wrongly_marked(start) {
            return self.refuse_mark(start);
        }
        let is_read = are_fields || self.is_dependency(start);
        if !is_read && !self.is_followed(start) {
            return self.describe(&range, false);
        }
        let own = self.own_text(start);
        let end = own.start + self.end_of_entry(start);
        self.describe(&(if is_read { own.start } else { range.start }..end), is_read);
        if end < own.end {
            self.describe(&(end..own.end), true);
        }
        let mut at = self.own_end(start);
        while at < self.end(start) {
            match (&self.events[at].0, self.goes_on.take()) {
                (Event::Start(Tag::List(_)), Some(begun)) => self.list(at, Some(begun)),
                _ => self.describe(&self.events[at].1.clone(), false),
            }
            at = self.end(at) + 1;
        }
        if self.text[own].trim_end().lines().count() == 1 {
            self.goes_on = None;
        }
    }

    /// Begins an item.
    fn open(&mut self, heading: Option<HeadingLevel>, text: &Range<usize>, is_done: Option<bool>) {
        let line = self.lines.at(text.start);
        let parent = self.entries.last().map(|open| open.draft);
        if parent == Some(None) {
            return self.entries.push(Open { heading, draft: None });
        }
        let (path, title) = path_and_title(self.text[text.clone()].trim());
        let whole = one_line(title);
        let title = shortened(&whole, limit::TITLE.max);
        let status = if is_done == Some(true) { Stated::Done } else { Stated::Open };
        let description = Some(&whole).filter(|whole| whole.len() > title.len()).cloned();
        let item = Item { line, parent: parent.flatten(), path, title, description, status, ..Item::default() };
        self.entries.push(Open { heading, draft: Some(self.drafts.len()) });
        self.drafts.push(Draft { item, ..Draft::default() });
    }

    /// Adds text to the innermost open item. With `fields`, lines of the text may be fields.
    fn describe(&mut self, range: &Range<usize>, fields: bool) {
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let indent = range.start - start;
        let mut kept = Vec::new();
        let text = self.text;
        let mut at = range.start;
        self.goes_on = None;
        let mut lines = text[range.clone()].lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let line_at = at;
            at += line.len() + 1;
            let blank = line.len() - line.trim_start_matches(' ').len();
            let line =
                if number > 0 || fields { &line[blank.min(if fields { blank } else { indent })..] } else { line };
            let found = fields.then(|| field(line)).flatten();
            let Some((name, value)) = found.filter(|(name, value)| !is_ambiguous(name) || self.fits(name, value))
            else {
                kept.push(line.trim_end());
                continue;
            };
            let mut value = value.to_owned();
            while is_list(&name)
                && value.ends_with(',')
                && let Some((_, next)) = lines.next_if(|(_, next)| field(next).is_none() && self.continues(&name, next))
            {
                at += next.len() + 1;
                value.push_str(next.trim());
            }
            self.field(&name, &value, self.lines.at(line_at));
            if is_list(&name) && is_left_open(&value) && lines.peek().is_none() {
                self.goes_on = Some(Begun { name, line });
            }
        }
        self.add_description(kept.join("\n").trim_matches('\n'));
    }

    fn add_description(&mut self, text: &str) {
        let Some(Some(number)) = self.entries.last().map(|open| open.draft) else { return };
        if text.trim().is_empty() {
            return;
        }
        let description = self.drafts[number].item.description.get_or_insert_default();
        if !description.is_empty() {
            description.push_str("\n\n");
        }
        description.push_str(text);
    }

    fn field(&mut self, name: &str, value: &str, line: usize) {
        if is_list(name) {
            return self.extend(name, if name == "files" { files(value) } else { list(value) });
        }
        let Some(open) = self.entries.last_mut() else { return };
        let Some(number) = open.draft else { return };
        let draft = &mut self.drafts[number];
        match name {
            "priority" => draft.priority = Some(Given { text: value.to_owned(), line }),
            "status" if is_called_off(Some(value)) => {
                if number + 1 == self.drafts.len() {
                    self.drafts.pop();
                    open.draft = None;
                } else {
                    let problem = "this status stands behind parts of the item; put it before them".to_owned();
                    self.problems.push(Problem { line, problem });
                }
            }
            "status" => draft.status = Some(Given { text: value.to_owned(), line }),
            _ => draft.item.hints = Some(value.to_owned()).filter(|hints| !hints.is_empty()),
        }
    }

    fn extend(&mut self, name: &str, values: Vec<String>) {
        let Some(Some(number)) = self.entries.last().map(|open| open.draft) else { return };
        let item = &mut self.drafts[number].item;
        let values_before = match name {
            "files" => &mut item.files,
            "tags" => &mut item.tags,
            _ => &mut item.depends,
        };
        values_before.extend(values);
    }
}

fn is_list(name: &str) -> bool {
    !matches!(name, "priority" | "status" | "hints")
}

fn is_dependency(name: &str) -> bool {
    name.starts_with("depend")
}

/// True for names that prose also uses for dependencies of another kind.
fn is_ambiguous(name: &str) -> bool {
    name.starts_with("dependenc")
}

/// True if the values may follow as entries of a list.
fn is_left_open(value: &str) -> bool {
    value.is_empty() || value.ends_with(',')
}

/// Name and value of a line like `depends: P1`, whose name may be in bold.
fn field(line: &str) -> Option<(String, &str)> {
    let found = FIELD.as_ref()?.captures(line)?;
    let [opened, name, closed, value] = [1, 2, 3, 4].map(|group| found.get(group).map_or("", |one| one.as_str()));
    // Otherwise the stars belong to the value, as in `files:**/*.rs`.
    let is_closed_behind = !opened.is_empty() && closed.is_empty();
    let value = if is_closed_behind { value.trim_start_matches('*') } else { value };
    Some((name.to_lowercase(), value.trim()))
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

/// Splits a text like `P1.M2: Storage` into path and title.
pub fn path_and_title(text: &str) -> (Option<String>, &str) {
    match PATH.as_ref().and_then(|path| path.captures(text)) {
        Some(found) => {
            (found.get(1).map(|path| path.as_str().to_owned()), found.get(2).map_or("", |title| title.as_str()))
        }
        None => (None, text),
    }
}
