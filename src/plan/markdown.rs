//! Headings and checklists. Every heading that leads somewhere, and every `- [ ]`, is an item, a part of what it stands
//! below; what else stands below an item is its description, but for lines like `depends: P1.M1.T2`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use regex::Regex;

use super::{Draft, Found, Lines, files, is_called_off, limit, list};
use crate::state::plan::{Item, Problem, Skipped, Stated, one_line};

/// The info string of a code block that is a description, whatever it looks like.
pub const VERBATIM: &str = "description";

static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\*{0,2}`?(P\d+(?:\.[A-Z]\d+)*)`?\*{0,2}(?:[:.)]|\s[-–—])?\*{0,2}\s+(\S.*)$").ok());
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*(\**)(depends(?:[ _]on)?|priority|files|hints|tags|status)(\**)\s*:(.*)$").ok()
});

/// YAML at the very beginning, which describes the text to other programs. The parser would take whatever stands between two
/// rules for such a block, items and all.
static FRONT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\u{feff}?(?:---[ \t]*\n[\w\x22'][^\n]*:[^\n]*\n(?:[^\n]*\S[^\n]*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|$))?")
        .ok()
});

/// `known` are the lines of headings that are items, whether they are marked or not.
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
        events: &events,
        ends: ends(&events),
        boxes: Vec::new(),
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
        return Err(reading.problems);
    }
    let skipped = reading.skipped();
    Ok(Found { title: reading.title, drafts: reading.drafts, skipped })
}

/// Where what begins at each event ends.
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

/// From its last letter to its first, all of them small.
fn backwards(text: &str) -> String {
    text.to_lowercase().chars().rev().collect()
}

type Piece<'t> = (Event<'t>, Range<usize>);

struct Reading<'a, 't> {
    text: &'t str,
    lines: Lines,
    headings: Vec<Heading>,
    /// What an item of a list or a heading that is open stands for; the innermost is the last.
    entries: Vec<Open>,
    drafts: Vec<Draft>,
    problems: Vec<Problem>,
    title: Option<String>,
    events: &'a [Piece<'t>],
    ends: Vec<usize>,
    /// The events that are boxes.
    boxes: Vec<usize>,
    /// The lines of headings and boxes, backwards and sorted: the first that is not before a name has its end, if any does.
    endings: Vec<String>,
}

struct Heading {
    /// Its place in the events.
    event: usize,
    level: HeadingLevel,
    /// What it says, as it is written.
    text: Range<usize>,
    is_item: bool,
}

struct Open {
    /// None of an entry of a list, which lies below every heading.
    heading: Option<HeadingLevel>,
    /// None below what the plan calls off.
    draft: Option<usize>,
}

impl<'t> Reading<'_, 't> {
    /// The place of the end of what begins at `start`.
    fn end(&self, start: usize) -> usize {
        self.ends[start]
    }

    /// One in a quotation or an entry of a list is text, as it ends nothing that comes after it.
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

    /// A single heading of the first level, at the beginning, is the title. Where items are marked, by a path or a box,
    /// headings without a mark at or below them are prose; theirs are also what only an item has below it, and that they
    /// are known as items.
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

    /// A dependency or a priority stands in the text right below the heading.
    fn is_described_as_item(&self, number: usize) -> bool {
        let end = self.headings.get(number + 1).map_or(self.events.len(), |next| next.event);
        let mut at = self.end(self.headings[number].event) + 1;
        while at < end {
            let (event, range) = &self.events[at];
            if matches!(event, Event::Start(Tag::Paragraph))
                && self.text[range.clone()].lines().any(|line| self.is_for_items(line))
            {
                return true;
            }
            at = self.end(at) + 1;
        }
        false
    }

    fn is_for_items(&self, line: &str) -> bool {
        field(line).is_some_and(|(name, value)| match name.as_str() {
            "priority" => value.parse::<u8>().is_ok(),
            name => name.starts_with("depends") && list(value).iter().any(|on| self.names(on)),
        })
    }

    /// Prose may begin with such a word, too, but names no item.
    fn names(&self, item: &str) -> bool {
        let is_path = || path_and_title(&format!("{item} it")).0.is_some();
        let end = backwards(item);
        let at = self.endings.partition_point(|line| *line < end);
        self.endings.get(at).is_some_and(|line| line.starts_with(&end)) || is_path()
    }

    /// The headings that are no items, but for the title.
    fn skipped(&self) -> Vec<Skipped> {
        let mut above: Vec<HeadingLevel> = Vec::new();
        let mut skipped = Vec::new();
        for (number, heading) in self.headings.iter().enumerate() {
            if number == 0 && self.title.is_some() {
                continue;
            }
            above.retain(|level| *level < heading.level);
            above.push(heading.level);
            if !heading.is_item {
                let title = shortened(&one_line(&self.text[heading.text.clone()]), limit::TITLE.max);
                let line = self.lines.at(heading.text.start);
                skipped.push(Skipped { line, title, level: above.len() });
            }
        }
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

    /// A block that is no heading; answers where the next begins.
    fn block(&mut self, at: usize) -> usize {
        let (event, range) = &self.events[at];
        let end = self.end(at);
        match event {
            Event::Start(Tag::List(_)) if self.has_boxes(at, end) => {
                let mut item = at + 1;
                while item < end {
                    self.entry(item);
                    item = self.end(item) + 1;
                }
            }
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
            // In a quotation, mostly.
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

    /// One entry of a list in which there are boxes.
    fn entry(&mut self, start: usize) {
        let end = self.end(start);
        let range = self.events[start].1.clone();
        let mut at = start + 1;
        let is_loose = matches!(self.events[at].0, Event::Start(Tag::Paragraph));
        let marker = at + usize::from(is_loose);
        let Event::TaskListMarker(is_done) = self.events[marker.min(end)].0 else {
            if self.has_boxes(start, end) {
                let line = self.lines.at(range.start);
                let problem = "boxes below an entry without one: begin it with - [ ], too".to_owned();
                self.problems.push(Problem { line, problem });
            } else {
                self.describe(&range, false);
            }
            return;
        };
        // Its own text ends where a block begins.
        let own_end = match is_loose {
            true => self.end(at),
            false => (marker..end)
                .find(|number| matches!(self.events[*number].0, Event::Start(ref tag) if is_block(tag)))
                .unwrap_or(end),
        };
        let text_start = self.events[marker].1.end;
        let text_end = self.events[marker..own_end].iter().map(|(_, range)| range.end).max().unwrap_or(text_start);
        let own = text_start..text_end.max(text_start);
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
        at = if is_loose { own_end + 1 } else { own_end };
        while at < end {
            at = self.block(at);
        }
        self.entries.truncate(depth);
    }

    /// An item begins.
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

    /// Text of the innermost item that is open; with `fields` in it, in lines of their own.
    fn describe(&mut self, range: &Range<usize>, fields: bool) {
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let indent = range.start - start;
        let mut kept = Vec::new();
        let text = self.text;
        let mut at = range.start;
        for (number, line) in text[range.clone()].lines().enumerate() {
            let line_at = at;
            at += line.len() + 1;
            let blank = line.len() - line.trim_start_matches(' ').len();
            let line =
                if number > 0 || fields { &line[blank.min(if fields { blank } else { indent })..] } else { line };
            match field(line).filter(|_| fields) {
                Some((name, value)) => self.field(&name, value, self.lines.at(line_at)),
                None => kept.push(line.trim_end()),
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
        let Some(open) = self.entries.last_mut() else { return };
        let Some(number) = open.draft else { return };
        let draft = &mut self.drafts[number];
        match name {
            "priority" => draft.priority = Some(value.to_owned()),
            "status" if is_called_off(Some(value)) => {
                if number + 1 == self.drafts.len() {
                    self.drafts.pop();
                    open.draft = None;
                } else {
                    let problem = "this status stands behind parts of the item; put it before them".to_owned();
                    self.problems.push(Problem { line, problem });
                }
            }
            "status" => draft.status = Some(value.to_owned()),
            "files" => draft.item.files.extend(files(value)),
            "tags" => draft.item.tags.extend(list(value)),
            "hints" => draft.item.hints = Some(value.to_owned()).filter(|hints| !hints.is_empty()),
            _ => draft.item.depends.extend(list(value)),
        }
    }
}

/// Name and value of a line like `depends: P1`, whose name may stand in bold.
fn field(line: &str) -> Option<(String, &str)> {
    let found = FIELD.as_ref()?.captures(line)?;
    let [opened, name, closed, value] = [1, 2, 3, 4].map(|group| found.get(group).map_or("", |one| one.as_str()));
    // Else the stars are the value's own, as in `files:**/*.rs`.
    let is_closed_behind = !opened.is_empty() && closed.is_empty();
    let value = if is_closed_behind { value.trim_start_matches('*') } else { value };
    Some((name.to_lowercase(), value.trim()))
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

/// `P1.M2: Storage` has both.
pub fn path_and_title(text: &str) -> (Option<String>, &str) {
    match PATH.as_ref().and_then(|path| path.captures(text)) {
        Some(found) => {
            (found.get(1).map(|path| path.as_str().to_owned()), found.get(2).map_or("", |title| title.as_str()))
        }
        None => (None, text),
    }
}

/// At most so many bytes.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let cut = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= bytes - '…'.len_utf8());
    format!("{}…", &text[..cut.last().unwrap_or_default()])
}
