//! The lines of a text, and what each of them is. It is read line by line, because what people
//! write is only near to Markdown: to a parser of the standard, a box without a bullet or below
//! `<details>` is text.

use std::sync::LazyLock;

use regex::Regex;

use super::super::stated;
use super::entry::{
    Entry, Mark, entry, indented, is_blank, is_on_the_way, is_rule, is_tick, mark, trimmed,
};
use super::sense::{Sense, is_ticked, said};
use crate::state::plan::Stated;

/// Info string of a code block that is a description, whatever it looks like.
pub(crate) const VERBATIM: &str = "description";

static TAG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>").ok());
static UNDERLINE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(=+|-{2,})\s*$").ok());
static DELIMITER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$").ok());

pub(crate) struct Line<'t> {
    /// Number in the text, from 1.
    pub number: usize,
    pub raw: &'t str,
    /// Column in which its text begins.
    pub column: usize,
    pub kind: Kind<'t>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Kind<'t> {
    Blank,
    /// A line of a code block, with its fences. `Some` in one whose text is a description.
    Code(Option<Verbatim>),
    /// A comment or rule, or the second line of a heading.
    Hidden,
    Heading {
        level: usize,
        mark: Option<Mark>,
        text: &'t str,
    },
    Entry(Entry<'t>),
    /// A row of a table. The first of a table with a line below it names the columns.
    Row {
        names: bool,
    },
    Text(&'t str),
}

/// Part of a code block that is a description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verbatim {
    Fence,
    Content,
}

/// Something that begins in a line and ends in a later one.
struct Block {
    end: usize,
    verbatim: bool,
    is_code: bool,
}

/// Reads the lines of a text from the line after `front` on. With them come the numbers of lines in
/// code that never ends, or that only its indent makes code, if they look like items.
pub(crate) fn lines(text: &str, front: usize) -> (Vec<Line<'_>>, Vec<usize>) {
    let raws: Vec<&str> = text.lines().collect();
    let mut scan = Scan {
        raws: &raws,
        lines: Vec::with_capacity(raws.len()),
        doubtful: Vec::new(),
        unclosed: Vec::new(),
        in_list: false,
    };
    let is_torn = raws.iter().any(|raw| raw.starts_with(CONFLICT[0]));
    let mut at = front;
    while at < raws.len() {
        if is_torn && is_conflict(raws[at]) {
            scan.push(at, 0, Kind::Hidden);
            at += 1;
        } else {
            at = scan.line(at);
        }
    }
    (scan.lines, scan.doubtful)
}

/// Marks that git puts between two versions that it cannot merge.
const CONFLICT: [&str; 4] = ["<<<<<<< ", "||||||| ", "=======", ">>>>>>> "];

/// Whether the line is such a mark.
pub(crate) fn is_conflict(raw: &str) -> bool {
    CONFLICT.iter().any(|mark| raw.starts_with(mark) && (mark.ends_with(' ') || raw == *mark))
}

struct Scan<'a, 't> {
    raws: &'a [&'t str],
    lines: Vec<Line<'t>>,
    doubtful: Vec<usize>,
    /// Ends of blocks of which there is none from here on.
    unclosed: Vec<&'static str>,
    /// True while a line may belong to an entry above it.
    in_list: bool,
}

impl<'t> Scan<'_, 't> {
    /// Reads what begins in a line; returns the line in which the next thing begins.
    fn line(&mut self, at: usize) -> usize {
        let (column, text, is_quoted) = unquoted(self.raws[at]);
        let text = untagged(self.raws[at], text);
        if let Some(block) = self.block(at, text) {
            self.push_block(at, &block);
            return block.end + 1;
        }
        if column >= 4 && !self.in_list && !text.is_empty() && self.is_after_gap() && !is_quoted {
            if entry(text).is_some_and(|entry| entry.mark.is_some()) {
                self.doubtful.push(at + 1);
            }
            self.push(at, column, Kind::Code(None));
            return at + 1;
        }
        if let Some(kind) = self.table(at, text) {
            self.push(at, column, kind);
            return at + 1;
        }
        // A heading in an entry ends nothing that comes after it.
        let kind = match kind(text, column, is_quoted) {
            Kind::Heading { .. } if column > 0 && self.in_list => Kind::Text(text),
            kind => kind,
        };
        if let Kind::Text(text) = kind
            && !is_quoted
            && let Some(level) = self.underlined(at)
        {
            self.in_list = false;
            let (mark, text) = marked(text);
            self.push(at, column, Kind::Heading { level, mark, text });
            self.push(at + 1, 0, Kind::Hidden);
            return at + 2;
        }
        match &kind {
            Kind::Entry(_) => self.in_list = true,
            Kind::Heading { .. } => self.in_list = false,
            Kind::Text(_) if column == 0 && self.is_after_gap() => self.in_list = false,
            _ => {}
        }
        self.push(at, column, kind);
        at + 1
    }

    fn push(&mut self, at: usize, column: usize, kind: Kind<'t>) {
        self.lines.push(Line { number: at + 1, raw: self.raws[at], column, kind });
    }

    fn push_block(&mut self, start: usize, block: &Block) {
        let (column, ..) = indented(self.raws[start]);
        for at in start..=block.end {
            let kind = match (block.is_code, block.verbatim, at == start || at == block.end) {
                (false, ..) => Kind::Hidden,
                (true, false, _) => Kind::Code(None),
                (true, true, true) => Kind::Code(Some(Verbatim::Fence)),
                (true, true, false) => Kind::Code(Some(Verbatim::Content)),
            };
            self.push(at, column, kind);
        }
    }

    /// True if the last line is blank, a heading or code, or there is none.
    fn is_after_gap(&self) -> bool {
        let last = self.lines.last().map(|line| &line.kind);
        last.is_none_or(|kind| {
            matches!(kind, Kind::Blank | Kind::Hidden | Kind::Heading { .. } | Kind::Code(_))
        })
    }

    /// The block that begins in a line. Each end is looked for in vain only once.
    fn block(&mut self, at: usize, text: &str) -> Option<Block> {
        let inside =
            entry(text).filter(|entry| entry.mark.is_none()).map_or(text, |entry| entry.text);
        if let Some((fence, length, info)) = fence(inside) {
            return Some(self.code(at, (fence, length), info == VERBATIM));
        }
        let closing = match text {
            _ if text.starts_with("<!--") => "-->",
            _ if is_tag(text, "<pre") => "</pre>",
            _ if is_tag(text, "<script") => "</script>",
            _ if is_tag(text, "<style") => "</style>",
            _ => return None,
        };
        if self.unclosed.contains(&closing) {
            return None;
        }
        let Some(end) =
            (at..self.raws.len()).find(|line| self.raws[*line].to_lowercase().contains(closing))
        else {
            self.unclosed.push(closing);
            return None;
        };
        Some(Block { end, verbatim: false, is_code: closing != "-->" })
    }

    /// The code block that begins with a fence. One that never ends goes on to the end of the text.
    fn code(&mut self, at: usize, (mark, length): (char, usize), verbatim: bool) -> Block {
        let closes = |line: &usize| {
            let (_, text, _) = unquoted(self.raws[*line]);
            fence(text).is_some_and(|(other, long, info)| {
                other == mark && long >= length && info.is_empty()
            })
        };
        let end = (at + 1..self.raws.len()).find(closes);
        let is_item = |line: &usize| looks_like_item(self.raws[*line]);
        if end.is_none() {
            self.doubtful.extend((at + 1..self.raws.len()).filter(is_item).map(|line| line + 1));
        }
        Block {
            end: end.unwrap_or(self.raws.len() - 1),
            verbatim: verbatim && end.is_some(),
            is_code: true,
        }
    }

    /// A line of a table: one with bars, in a table with a line below its first row, or with a bar
    /// at its beginning.
    fn table(&self, at: usize, text: &str) -> Option<Kind<'t>> {
        let has_cells = |text: &str| text.contains('|') && trimmed(text) != "|";
        let is_delimiter = |line: usize| {
            let text = self.raws.get(line).map_or("", |raw| unquoted(raw).1);
            text.contains('|')
                && DELIMITER.as_ref().is_some_and(|delimiter| delimiter.is_match(text))
        };
        let in_table = matches!(self.lines.last().map(|line| &line.kind), Some(Kind::Row { .. }));
        let is_first = !in_table && has_cells(text) && is_delimiter(at + 1);
        match () {
            () if in_table && is_delimiter(at) => Some(Kind::Row { names: true }),
            () if is_first => Some(Kind::Row { names: true }),
            () if text.starts_with('|') && has_cells(text) => Some(Kind::Row { names: false }),
            () if in_table && has_cells(text) && entry(text).is_none() => {
                Some(Kind::Row { names: false })
            }
            () => None,
        }
    }

    /// The level of the heading whose text is this line, if the next one underlines it.
    fn underlined(&self, at: usize) -> Option<usize> {
        let is_alone = self
            .lines
            .last()
            .is_none_or(|line| !matches!(line.kind, Kind::Text(_) | Kind::Entry(_)));
        let next = self.raws.get(at + 1).filter(|_| is_alone)?;
        UNDERLINE.as_ref()?.is_match(next).then(|| if next.starts_with('=') { 1 } else { 2 })
    }
}

/// True if the line, wherever it stands, has a box.
fn looks_like_item(raw: &str) -> bool {
    entry(unquoted(raw).1).is_some_and(|entry| entry.mark.is_some())
}

/// The line's column, its text without the marks of a quotation and without tags, and whether it is
/// quoted.
fn unquoted(raw: &str) -> (usize, &str, bool) {
    let (mut column, mut text) = indented(raw);
    let mut is_quoted = false;
    while let Some(quoted) = text.strip_prefix('>') {
        is_quoted = true;
        (column, text) = indented(quoted.strip_prefix(' ').unwrap_or(quoted));
    }
    while let Some(tag) = TAG.as_ref().and_then(|tag| tag.find(text)) {
        if ["pre", "script", "style"].iter().any(|name| is_tag(text, &format!("<{name}"))) {
            break;
        }
        text = text[tag.end()..].trim_start_matches(is_blank);
    }
    (column, text.trim_end_matches(is_blank), is_quoted)
}

/// The text without the tags that end what tags before it began.
fn untagged<'t>(raw: &str, text: &'t str) -> &'t str {
    let mut text = text;
    while indented(raw).1.starts_with('<')
        && text.ends_with('>')
        && let Some(at) = text.rfind("</")
        && TAG.as_ref().is_some_and(|tag| {
            tag.find(&text[at..]).is_some_and(|tag| tag.end() == text.len() - at)
        })
    {
        text = text[..at].trim_end_matches(is_blank);
    }
    text
}

/// The column in which the line's text begins, behind the marks of a quotation and tags, and that
/// text.
pub(crate) fn opening(raw: &str) -> (usize, &str) {
    let (column, text, _) = unquoted(raw);
    (column, text)
}

fn is_tag(text: &str, tag: &str) -> bool {
    let begins = text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    begins && text[tag.len()..].starts_with(|c: char| c == '>' || c.is_whitespace())
}

/// The character of a fence, its length, and what stands behind it.
fn fence(text: &str) -> Option<(char, usize, &str)> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let length = text.len() - info.len();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then(|| (mark, length, info.trim()))
}

fn kind(text: &str, column: usize, is_quoted: bool) -> Kind<'_> {
    if text.is_empty() {
        return Kind::Blank;
    }
    if let Some((level, text)) = heading(text).filter(|_| column < 4 && !is_quoted) {
        let (mark, text) = marked(text);
        return Kind::Heading { level, mark, text };
    }
    if is_rule(text) {
        return Kind::Hidden;
    }
    match entry(text).filter(|entry| !is_quoted || entry.mark.is_some()) {
        Some(entry) => Kind::Entry(entry),
        None => Kind::Text(text),
    }
}

/// The level and text of a heading.
fn heading(text: &str) -> Option<(usize, &str)> {
    let after = text.trim_start_matches('#');
    let level = text.len() - after.len();
    let is_heading = (1..=6).contains(&level) && (after.is_empty() || after.starts_with(is_blank));
    let text = trimmed(after);
    let bare = text.trim_end_matches('#');
    let closes = bare.is_empty() || bare.ends_with(is_blank);
    is_heading.then(|| (level, if closes { trimmed(bare) } else { text }))
}

fn marked(text: &str) -> (Option<Mark>, &str) {
    let is_apart = |after: &str| after.starts_with(is_blank) && !trimmed(after).is_empty();
    let found = mark(text).filter(|(_, after)| is_apart(after));
    // A symbol may adorn a heading that says how what is below it stands.
    let bare: String = text.chars().filter(|c| !is_tick(*c)).collect();
    let adorns = stated(&bare).is_some()
        || said(&bare).is_some_and(|said| said != Sense::Work)
        || text.starts_with(is_on_the_way);
    let ticked = is_ticked(text).then(|| Mark { is_sign: true, ..Mark::of(Stated::Done) });
    match found {
        Some((mark, after)) if !mark.is_sign || !adorns => (Some(mark), trimmed(after)),
        _ => (ticked.filter(|_| !adorns), text),
    }
}

/// The cells of a row.
pub(crate) fn cells(raw: &str) -> Vec<&str> {
    let text = unquoted(raw).1;
    let text = text.strip_prefix('|').unwrap_or(text);
    let text = text.strip_suffix('|').filter(|inside| !inside.ends_with('\\')).unwrap_or(text);
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('|') {
        if !text[..at].ends_with('\\') {
            cells.push(trimmed(&text[start..at]));
            start = at + 1;
        }
    }
    cells.push(trimmed(&text[start..]));
    cells
}
