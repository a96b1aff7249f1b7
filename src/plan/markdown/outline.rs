//! What the lines of a text mean: which headings, entries and rows are items, and which are text.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::super::counted::{Counted, counted};
use super::super::{bare_title, path_and_title, stated};
use super::field::{self, field, is_dependency, is_left_open, is_list};
use super::lines::{Kind, Line};
use super::sense::{Sense, is_about, sense};
use super::table::{self, Row};
use crate::state::plan::Names;

/// The meaning of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    Item,
    /// `priority: 2`, or another field.
    Field,
    /// A value of the field above it.
    Value,
    /// Text; what it stands below, if that is an item, keeps it.
    Text,
}

pub(super) struct Outline {
    pub headings: Vec<Heading>,
    /// By line. Lines that are not entries have none.
    pub roles: HashMap<usize, Role>,
    /// Rows that are items, by line.
    pub rows: HashMap<usize, Row>,
    /// Entries without a mark that are done, because their heading says so.
    pub done: HashSet<usize>,
    /// Whether anything has a box or a sign, so that plain lists need not be work.
    pub has_boxes: bool,
    /// Index of the heading that is the title.
    pub title: Option<usize>,
    pub names: Names,
    /// Entries and rows that may be work, are no items, and are below none.
    pub unread: usize,
}

pub(super) struct Heading {
    /// Index of its line.
    pub line: usize,
    pub level: usize,
    pub is_item: bool,
    pub counted: Option<Counted>,
    /// Lines at or below it that may be work and are no items.
    pub unread: usize,
}

/// Entries below `Dependencies:` of which one has to name an item.
const LOOKED_AT: usize = 10;

/// An entry, and where it stands.
struct Node {
    line: usize,
    column: usize,
    parent: Option<usize>,
    section: usize,
    has_box: bool,
    /// A box at any depth below it.
    leads: bool,
    /// Neighbours without boxes share a group.
    group: usize,
    /// All neighbours share a list.
    list: usize,
    is_listed: bool,
}

/// The lines from one heading to the next.
struct Section {
    heading: Option<usize>,
    lines: Range<usize>,
    has_boxes: bool,
    is_listed: bool,
    /// What its own heading says, and what the nearest does that says anything.
    own: Option<Sense>,
    sense: Option<Sense>,
}

pub(super) fn outline(lines: &[Line<'_>], known: &BTreeSet<usize>, lists: bool) -> Outline {
    let mut reading = Reading {
        lines,
        names: names(lines),
        headings: headings(lines),
        sections: Vec::new(),
        nodes: Vec::new(),
        roles: HashMap::new(),
        dependencies: HashSet::new(),
        introduced: introduced(lines),
        rows: HashMap::new(),
        unread: 0,
    };
    reading.sections = reading.sections();
    reading.rows = table::rows(lines, |line| reading.section_at(line).sense != Some(Sense::Aside));
    reading.nodes = reading.nodes();
    reading.fields_and_values();
    let title = reading.title();
    let has_boxes = reading.decide_on_lists(title, lists);
    reading.decide_on_entries();
    reading.decide_on_headings(title, known);
    reading.count_unread(title);
    let done = reading.done();
    let Reading { headings, roles, rows, names, unread, .. } = reading;
    Outline { headings, roles, rows, done, has_boxes, title, names, unread }
}

/// What the headings and entries are called, before it is known which of them are items. Fields and
/// their values are none.
fn names(lines: &[Line<'_>]) -> Names {
    let mut names = Names::default();
    let mut are_values = false;
    for line in lines {
        let text = match &line.kind {
            Kind::Heading { text, .. } => text,
            Kind::Entry(entry) if entry.mark.is_some() => entry.text,
            Kind::Entry(entry) if line.column < 2 && !are_values && field(entry.text).is_none() => {
                entry.text
            }
            Kind::Text(text) => {
                are_values =
                    field(text).is_some_and(|(name, value)| is_list(&name) && is_left_open(value));
                continue;
            }
            _ => continue,
        };
        let (path, title) = path_and_title(text);
        names.push(path.as_deref(), &bare_title(title));
    }
    names
}

fn headings(lines: &[Line<'_>]) -> Vec<Heading> {
    let of = |(number, line): (usize, &Line<'_>)| match &line.kind {
        Kind::Heading { level, text, .. } => Some(Heading {
            line: number,
            level: *level,
            is_item: true,
            counted: counted(path_and_title(text).1),
            unread: 0,
        }),
        _ => None,
    };
    lines.iter().enumerate().filter_map(of).collect()
}

/// Entries of lists of which the line before says what they are, as `Notes:` does.
fn introduced(lines: &[Line<'_>]) -> HashMap<usize, Sense> {
    let mut found = HashMap::new();
    let mut said = None;
    for (number, line) in lines.iter().enumerate() {
        match &line.kind {
            Kind::Blank => {}
            Kind::Entry(_) => found.extend(said.map(|said| (number, said))),
            Kind::Text(text) => {
                let introduces = text.trim_end_matches('*').ends_with(':');
                said = introduces.then(|| sense(text)).flatten();
            }
            _ => said = None,
        }
    }
    found
}

/// Whether an entry begins with a name, as `Note: …` or `**Files:** …`.
fn is_labelled(text: &str) -> bool {
    let text = text.trim_start_matches(['*', '_', '`']);
    text.split_once(':').is_some_and(|(name, _)| name.split_whitespace().count() < 4)
}

struct Reading<'a, 't> {
    lines: &'a [Line<'t>],
    names: Names,
    headings: Vec<Heading>,
    sections: Vec<Section>,
    nodes: Vec<Node>,
    roles: HashMap<usize, Role>,
    /// Lines with what an item depends on, in a list below `depends:`.
    dependencies: HashSet<usize>,
    /// Entries of lists that a line like `Notes:` introduces.
    introduced: HashMap<usize, Sense>,
    rows: HashMap<usize, Row>,
    /// What is below no heading that is an item, and may be one itself.
    unread: usize,
}

impl<'t> Reading<'_, 't> {
    fn text(&self, line: usize) -> &'t str {
        match &self.lines[line].kind {
            Kind::Heading { text, .. } | Kind::Text(text) => text,
            Kind::Entry(entry) => entry.text,
            _ => "",
        }
    }

    fn sections(&self) -> Vec<Section> {
        let starts = self.headings.iter().map(|heading| heading.line);
        let ends = starts.clone().chain([self.lines.len()]);
        let of = |(number, (start, end)): (usize, (Option<usize>, usize))| Section {
            heading: number.checked_sub(1),
            lines: start.map_or(0, |line| line + 1)..end,
            has_boxes: false,
            is_listed: false,
            own: number
                .checked_sub(1)
                .and_then(|heading| sense(self.text(self.headings[heading].line))),
            sense: None,
        };
        let sections = [None].into_iter().chain(starts.map(Some)).zip(ends).enumerate().map(of);
        let mut sections: Vec<Section> = sections.collect();
        let title = self.headings.first().filter(|first| first.level == 1).map(|_| 0);
        let mut above: Vec<(usize, Option<Sense>)> = Vec::new();
        for section in &mut sections {
            let Some(heading) = section.heading else { continue };
            let level = self.headings[heading].level;
            above.retain(|(other, _)| *other < level);
            let inherited = above.iter().rev().find_map(|(_, sense)| *sense);
            // What the title of a whole text says is not said of each list.
            section.own = section.own.filter(|_| Some(heading) != title);
            let is_about = is_about(self.text(self.headings[heading].line));
            section.sense = section.own.or(inherited.filter(|_| !is_about));
            above.push((level, section.own));
        }
        sections
    }

    fn section_at(&self, line: usize) -> &Section {
        &self.sections[self.headings.partition_point(|heading| heading.line < line)]
    }

    /// Finds what each entry stands below. A line of text at the margin ends the lists before it.
    fn nodes(&mut self) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut groups = 0;
        for (section, part) in self.sections.iter_mut().enumerate() {
            let mut open: Vec<usize> = Vec::new();
            let mut last: HashMap<Option<usize>, (bool, usize, usize)> = HashMap::new();
            let mut after_gap = true;
            let has_signs = part.sense != Some(Sense::Aside);
            for number in part.lines.clone() {
                let line = &self.lines[number];
                match &line.kind {
                    Kind::Text(_) | Kind::Code(_) | Kind::Row { .. } if after_gap => {
                        open.retain(|node| nodes[*node].column < line.column);
                        last.remove(&open.last().copied());
                    }
                    _ => {}
                }
                after_gap = matches!(line.kind, Kind::Blank | Kind::Hidden);
                part.has_boxes |= self.rows.contains_key(&number);
                let Kind::Entry(entry) = &line.kind else { continue };
                open.retain(|node| nodes[*node].column + 2 <= line.column);
                let parent = open.last().copied();
                let has_box = entry.mark.as_ref().is_some_and(|mark| has_signs || !mark.is_sign);
                part.has_boxes |= has_box;
                let before = last.get(&parent).copied();
                let group =
                    before.filter(|(boxed, ..)| *boxed == has_box).map(|(_, group, _)| group);
                groups += usize::from(group.is_none());
                let group = group.unwrap_or(groups);
                let list = before.map_or(group, |(.., list)| list);
                last.insert(parent, (has_box, group, list));
                open.push(nodes.len());
                nodes.push(Node {
                    line: number,
                    column: line.column,
                    parent,
                    section,
                    has_box,
                    leads: false,
                    group,
                    list,
                    is_listed: false,
                });
            }
        }
        for number in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[number].parent {
                nodes[parent].leads |= nodes[number].has_box || nodes[number].leads;
            }
        }
        nodes
    }

    /// Finds entries that are fields, and values of a field before them. Entries are fields only if
    /// all of their list are, because lists in prose have entries that begin with such a word,
    /// too. Dependencies are read from any entry.
    fn fields_and_values(&mut self) {
        let is_field = |reading: &Self, node: &Node| {
            let found = field(reading.text(node.line));
            found.is_some_and(|(name, value)| field::fits(&reading.names, &name, value))
        };
        let mut all: HashMap<usize, bool> = HashMap::new();
        for node in self.nodes.iter().filter(|node| !node.has_box && !node.leads) {
            *all.entry(node.group).or_insert(true) &= is_field(self, node);
        }
        let mut roles: Vec<Option<Role>> = vec![None; self.nodes.len()];
        let mut by_line =
            self.nodes.iter().enumerate().map(|(number, node)| (node.line, number)).peekable();
        // The field whose values follow, the least column of one, and the column of the first.
        let mut begun: Option<(String, usize, Option<usize>)> = None;
        for (at, line) in self.lines.iter().enumerate() {
            match &line.kind {
                Kind::Entry(_) => {
                    let Some((_, number)) = by_line.next_if(|(line, _)| *line == at) else {
                        continue;
                    };
                    let node = &self.nodes[number];
                    if node.has_box || node.leads {
                        begun = None;
                        continue;
                    }
                    let is_text = |parent: usize| {
                        let above = &self.nodes[parent];
                        let is_item =
                            above.has_box || above.leads || roles[parent] == Some(Role::Field);
                        !is_item
                            && (above.parent.is_some() || self.sections[above.section].has_boxes)
                    };
                    let is_below_text = node.parent.is_some_and(is_text);
                    begun = begun.filter(|(_, least, _)| node.column >= *least);
                    if let Some((name, _, first)) = &mut begun {
                        let first = *first.get_or_insert(node.column);
                        if is_dependency(name) && field::names(&self.names, self.text(at)) {
                            self.dependencies.insert(at);
                        }
                        roles[number] =
                            Some(if node.column < first + 2 { Role::Value } else { Role::Text });
                        continue;
                    }
                    let found = field(self.text(at));
                    let is_dependency = found.as_ref().is_some_and(|(name, value)| {
                        is_dependency(name) && field::fits(&self.names, name, value)
                    });
                    if is_below_text || !(all.get(&node.group) == Some(&true) || is_dependency) {
                        continue;
                    }
                    roles[number] = Some(Role::Field);
                    let column = node.column + 1;
                    let opens = found.filter(|(name, value)| self.begins(at, name, value));
                    begun = opens.map(|(name, _)| (name, column, None));
                }
                Kind::Blank => {}
                Kind::Text(text) => {
                    let is_value = begun
                        .as_ref()
                        .is_some_and(|(.., first)| first.is_some_and(|first| line.column > first));
                    if !is_value {
                        let opens =
                            field(text).filter(|(name, value)| self.begins(at, name, value));
                        begun = opens.map(|(name, _)| (name, 0, None));
                    }
                }
                _ => begun = None,
            }
        }
        let found =
            self.nodes.iter().zip(roles).filter_map(|(node, role)| Some((node.line, role?)));
        self.roles.extend(found);
    }

    /// True if a list of values follows. Below `Dependencies:` stand libraries as often as not.
    fn begins(&self, at: usize, name: &str, value: &str) -> bool {
        if !is_list(name) || !is_left_open(value) {
            return false;
        }
        let below = self.lines[at + 1..]
            .iter()
            .take_while(|line| matches!(line.kind, Kind::Entry(_) | Kind::Blank));
        let mut below = below.take(LOOKED_AT).filter_map(|line| match &line.kind {
            Kind::Entry(entry) if entry.mark.is_none() => Some(entry.text),
            _ => None,
        });
        !field::is_ambiguous(name) || below.any(|text| field::names(&self.names, text))
    }

    /// The only heading of the first level, if it comes first, is the title.
    fn title(&self) -> Option<usize> {
        let tops = self.headings.iter().filter(|heading| heading.level == 1).count();
        let first = self.headings.first().filter(|first| first.level == 1 && tops == 1)?;
        let Kind::Heading { mark: None, text, .. } = &self.lines[first.line].kind else {
            return None;
        };
        let has_more = self.headings.len() > 1
            || !self.nodes.is_empty()
            || self.sections.iter().any(|one| one.has_boxes);
        (path_and_title(text).0.is_none() && has_more).then_some(0)
    }

    /// Decides which entries without a mark are items, and returns whether anything has a mark. Where
    /// nothing has, all are that stand below headings of their own. Else they are in a list with a
    /// mark, below a heading that names work, or if `lists` says so.
    fn decide_on_lists(&mut self, title: Option<usize>, lists: bool) -> bool {
        let has_boxes = self.sections.iter().any(|section| section.has_boxes)
            || self.headings.iter().any(|heading| self.is_boxed(heading));
        let marked: HashSet<usize> = self
            .nodes
            .iter()
            .filter(|node| node.has_box || node.leads)
            .map(|node| node.list)
            .collect();
        let is_intro =
            |section: &Section| section.heading.is_none_or(|heading| Some(heading) == title);
        let is_open = |reading: &Self, node: &Node| {
            !node.has_box && !node.leads && !reading.roles.contains_key(&node.line)
        };
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            if !is_open(self, node) {
                continue;
            }
            let section = &self.sections[node.section];
            let said = self.introduced.get(&node.line).copied();
            let sense = said.or(section.sense);
            let is_no_work = |sense: Option<Sense>| sense.is_some_and(Sense::is_no_work);
            let is_top = node.parent.is_none();
            let is_listed = match () {
                () if lists => is_top,
                () if marked.contains(&node.list) && sense != Some(Sense::Aside) => {
                    is_top || !is_labelled(self.text(node.line))
                }
                () if !is_top => false,
                () if has_boxes => matches!(sense, Some(Sense::Work | Sense::Done)),
                () => !is_intro(section) && !is_no_work(said.or(section.own)),
            };
            self.nodes[number].is_listed = is_listed;
        }
        // What stands above everything else is an introduction, unless there is nothing else.
        if !has_boxes && !self.nodes.iter().any(|node| node.is_listed) {
            for number in 0..self.nodes.len() {
                let node = &self.nodes[number];
                let is_said = self.introduced.get(&node.line).is_some_and(|said| said.is_no_work());
                let is_alone = is_open(self, node) && is_intro(&self.sections[node.section]);
                self.nodes[number].is_listed = node.parent.is_none() && is_alone && !is_said;
            }
        }
        for node in self.nodes.iter().filter(|node| node.is_listed) {
            self.sections[node.section].is_listed = true;
        }
        has_boxes
    }

    fn decide_on_entries(&mut self) {
        for node in &self.nodes {
            let is_item = node.has_box || node.leads || node.is_listed;
            let role = if is_item { Role::Item } else { Role::Text };
            self.roles.entry(node.line).or_insert(role);
        }
    }

    /// Entries without a mark that stand where everything is done.
    fn done(&self) -> HashSet<usize> {
        let is_done = |node: &&Node| {
            let said = self.introduced.get(&node.line).copied();
            node.is_listed && said.or(self.sections[node.section].sense) == Some(Sense::Done)
        };
        self.nodes.iter().filter(is_done).map(|node| node.line).collect()
    }

    /// Counts for each heading that is an item the entries and rows at or below it that are none,
    /// other than those that are said to be no work.
    fn count_unread(&mut self, title: Option<usize>) {
        let tops = self.nodes.iter().filter(|node| node.parent.is_none());
        let entries = tops.filter(|node| {
            let said = self.introduced.get(&node.line).is_some_and(|said| said.is_no_work());
            self.roles.get(&node.line) == Some(&Role::Text) && !said
        });
        let is_unread = |line: &Line<'_>, at: usize| {
            matches!(line.kind, Kind::Row { names: false }) && !self.rows.contains_key(&at)
        };
        let rows = self.lines.iter().enumerate().filter(|(at, line)| is_unread(line, *at));
        let lines: Vec<usize> =
            entries.map(|node| node.line).chain(rows.map(|(at, _)| at)).collect();
        for line in lines {
            let section = self.section_at(line);
            if section.sense.is_some_and(Sense::is_no_work) {
                continue;
            }
            let mut level = usize::MAX;
            let above =
                (0..section.heading.map_or(0, |heading| heading + 1)).rev().find(|heading| {
                    let heading = &self.headings[*heading];
                    let is_above = heading.level < level;
                    level = level.min(heading.level);
                    is_above && heading.is_item
                });
            let is_row = matches!(self.lines[line].kind, Kind::Row { .. });
            match above {
                Some(above) => self.headings[above].unread += 1,
                // An introduction, and tables of other things, are frequent.
                None if section.heading.is_none_or(|heading| Some(heading) == title) => {}
                None if is_row && section.sense != Some(Sense::Work) => {}
                None => self.unread += 1,
            }
        }
    }

    /// Decides which headings are items. Where anything is marked as an item, headings with nothing
    /// marked at or below them are prose. What only an item has below it, and being known as an
    /// item, count as marks, too.
    fn decide_on_headings(&mut self, title: Option<usize>, known: &BTreeSet<usize>) {
        let count = self.headings.len();
        let has_path = |heading: &Heading| path_and_title(self.text(heading.line)).0.is_some();
        let paths: Vec<bool> = self.headings.iter().map(has_path).collect();
        let leads: Vec<bool> = (0..count).map(|number| self.leads(number)).collect();
        let is_marked = paths.contains(&true)
            || self.sections.iter().any(|section| section.has_boxes || section.is_listed)
            || self.headings.iter().any(|heading| self.is_boxed(heading));
        if is_marked {
            let marks = |number: usize| {
                let heading = &self.headings[number];
                paths[number]
                    || leads[number]
                    || heading.counted.is_some()
                    || self.is_boxed(heading)
                    || known.contains(&self.lines[heading.line].number)
                    || self.is_described_as_item(number)
            };
            let marked: Vec<bool> = (0..count).map(marks).collect();
            for number in 0..count {
                let level = self.headings[number].level;
                let below = self.headings[number + 1..]
                    .iter()
                    .take_while(|other| other.level > level)
                    .count();
                self.headings[number].is_item = marked[number..=number + below].contains(&true);
            }
        }
        // Lists that stand only below headings like `Notes` are not a plan.
        if !is_marked {
            for number in 0..count {
                let is_noted = self.nodes.iter().any(|node| node.section == number + 1);
                let is_no_work = self.sections[number + 1].own.is_some_and(Sense::is_no_work);
                self.headings[number].is_item = !(is_noted && is_no_work);
            }
        }
        if let Some(title) = title {
            self.headings[title].is_item = false;
        }
    }

    fn is_boxed(&self, heading: &Heading) -> bool {
        matches!(self.lines[heading.line].kind, Kind::Heading { mark: Some(_), .. })
    }

    /// True if items stand right below the heading.
    fn leads(&self, number: usize) -> bool {
        let section = &self.sections[number + 1];
        section.is_listed || section.has_boxes
    }

    /// True if a dependency, a priority or a status stands below the heading.
    fn is_described_as_item(&self, number: usize) -> bool {
        self.sections[number + 1].lines.clone().any(|line| {
            let is_read = matches!(self.lines[line].kind, Kind::Text(_))
                || self.roles.get(&line) == Some(&Role::Field);
            is_read && self.is_for_items(self.text(line)) || self.dependencies.contains(&line)
        })
    }

    fn is_for_items(&self, line: &str) -> bool {
        field(line).is_some_and(|(name, value)| match name.as_str() {
            "priority" | "estimate" | "review" => field::fits(&self.names, &name, value),
            "status" => stated(value).is_some(),
            name => {
                is_dependency(name)
                    && super::super::list(value).iter().any(|on| field::names(&self.names, on))
            }
        })
    }
}
