//! What titles say beside their words: that they are struck out, how urgent they are, and what they
//! wait for.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::{Draft, is_something, list, priority};
use crate::state::hierarchy::{is_path, split_scope};
use crate::state::plan::{Named, Names, Problem, Remark, Stated, one_line, shortened};

static WAITS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\s*[(\[]\s*(depends\s+on|depends|after|blocked\s+by)\b\s*:?\s+([^()\[\]]*(?:\([^()]*\)[^()\[\]]*)*)[)\]]",
    )
    .ok()
});
static WAITS_AT_END: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:\s+(?:—|–|-{1,2})\s+|\s*[;,]\s+)(depends\s+on|depends:|after:?|blocked\s+by)\s*:?\s+(\S.*)$")
        .ok()
});
static URGENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const WORDS: &str = "critical|urgent|highest|high|medium|normal|low|lowest|p[0-4]|[1-9]|10";
    Regex::new(&format!(
        r"(?i)\s*[*_]{{0,2}}[(\[]\s*(?:(?:priority|prio)\s*[:=]?\s*({WORDS})|({WORDS})[\s-]+(?:priority|prio)|(p[0-4]))\s*!*\s*[)\]][*_]{{0,2}}"
    ))
    .ok()
});
static STRUCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^~~\s*(\S.*?)\s*~~(\s*(?:[(\[—–:;,.-].*)?)$").ok());

/// Most bytes of a name that a message shows.
const SHOWN: usize = 60;

/// A title's phrase that says what the item waits for.
struct Phrase {
    draft: usize,
    is_certain: bool,
    names: String,
    /// The title with the phrase.
    whole: String,
}

/// Reads the phrases of all titles. Returns the pairs that the order of headings says, later one
/// first, and problems with ids.
pub(super) fn read(
    drafts: &mut [Draft],
    remarks: &mut Vec<Remark>,
) -> (Vec<(usize, usize)>, Vec<Problem>) {
    let mut phrases = Vec::new();
    // What comes from elsewhere says in fields what its titles do not mean to say.
    for (number, draft) in
        drafts.iter_mut().enumerate().filter(|(_, draft)| draft.item.source.is_none())
    {
        struck(draft);
        urgent(draft);
        phrases.extend(waits(number, draft));
    }
    let mut names = Names::default();
    drafts.iter().for_each(|draft| names.push(draft.item.path.as_deref(), &draft.item.title));
    let mut problems = Vec::new();
    for phrase in phrases {
        let found = resolved(&phrase.names, phrase.draft, &names);
        settle(phrase, found, drafts, remarks);
    }
    let elsewhere = elsewhere(drafts, &mut problems);
    for number in 0..drafts.len() {
        let given = std::mem::take(&mut drafts[number].item.depends);
        if let Some(source) = drafts[number].item.source.clone() {
            for id in given {
                match elsewhere.get(&(source.format.clone(), id.clone())) {
                    Some(on) => wait(&mut drafts[number], *on),
                    None => drafts[number].item.depends.push(id),
                }
            }
            continue;
        }
        for one in given {
            let found = resolved(&one, number, &names);
            for (given, several) in &found.several {
                remarks.push(ambiguous(number, given, several, drafts));
            }
            // It may be the path that an item gets by its place, or a task beside the plan.
            let is_whole = found.on.is_empty() && found.several.is_empty();
            let unknown = if is_whole { vec![one] } else { found.unknown };
            found.on.into_iter().for_each(|on| wait(&mut drafts[number], on));
            drafts[number].item.depends.extend(unknown);
        }
    }
    (in_order(drafts), problems)
}

/// Items by the format and id that they had before they came here, each of which only one may have.
fn elsewhere(drafts: &[Draft], problems: &mut Vec<Problem>) -> HashMap<(String, String), usize> {
    let mut found: HashMap<(String, String), usize> = HashMap::new();
    for (number, draft) in drafts.iter().enumerate() {
        let Some(source) = &draft.item.source else { continue };
        if let Some(first) = found.insert((source.format.clone(), source.id.clone()), number) {
            let first = drafts[first].item.line;
            let problem = format!(
                "the id {} of {} stands on line {first} already",
                shown(&source.id),
                source.format
            );
            problems.push(Problem { line: draft.item.line, problem });
        }
    }
    found
}

/// The title without the phrases that are read.
pub(super) fn stripped(title: &str) -> String {
    let mut text = title.to_owned();
    for phrase in [&URGENT, &WAITS, &WAITS_AT_END] {
        if let Some(phrase) = phrase.as_ref() {
            text = phrase.replace_all(&text, "").into_owned();
        }
    }
    let text = one_line(&text);
    if text.is_empty() { title.to_owned() } else { text }
}

/// A title that is struck out as a whole, but for a reason behind it, is not to be done any more.
fn struck(draft: &mut Draft) {
    let Some(found) = STRUCK.as_ref().and_then(|struck| struck.captures(&draft.item.title)) else {
        return;
    };
    let [title, reason] = [1, 2].map(|group| found.get(group).map_or("", |one| one.as_str()));
    let title = format!("{title}{reason}");
    if draft.item.status == Stated::Open {
        (draft.item.status, draft.item.is_own) = (Stated::Obsolete, true);
    }
    draft.item.title = title;
}

fn urgent(draft: &mut Draft) {
    let Some(found) = URGENT.as_ref().and_then(|urgent| urgent.captures(&draft.item.title)) else {
        return;
    };
    let word = (1..=3).find_map(|group| found.get(group)).map_or("", |word| word.as_str());
    let Some(priority) = priority(word) else { return };
    let range = found.get(0).map_or(0..0, |all| all.range());
    let rest = one_line(&format!(
        "{} {}",
        &draft.item.title[..range.start],
        &draft.item.title[range.end..]
    ));
    if rest.is_empty() {
        return;
    }
    draft.item.title = rest;
    draft.item.priority = draft.item.priority.or(Some(priority));
}

/// The part of a title that may say what its item waits for.
fn phrase(title: &str) -> Option<regex::Captures<'_>> {
    WAITS.as_ref()?.captures(title).or_else(|| WAITS_AT_END.as_ref()?.captures(title))
}

/// True if a part of the title may be read as what its item waits for.
pub(super) fn may_wait(title: &str) -> bool {
    phrase(title).is_some()
}

/// Takes the phrase about what an item waits for out of its title, unless the item says that it
/// waits for none.
fn waits(number: usize, draft: &mut Draft) -> Option<Phrase> {
    if draft.is_free {
        return None;
    }
    let title = &draft.item.title;
    let found = phrase(title)?;
    let range = found.get(0)?.range();
    let is_certain = !found.get(1)?.as_str().to_lowercase().starts_with("after");
    let rest = one_line(&format!("{} {}", &title[..range.start], &title[range.end..]));
    let names = found.get(2)?.as_str().trim().to_owned();
    if rest.is_empty() || names.is_empty() {
        return None;
    }
    let whole = std::mem::replace(&mut draft.item.title, rest);
    Some(Phrase { draft: number, is_certain, names, whole })
}

/// The items that a text names, and the names that fit none or several.
#[derive(Default)]
struct Resolved {
    on: Vec<usize>,
    unknown: Vec<String>,
    several: Vec<(String, Vec<usize>)>,
}

/// Splits names at commas, and at `and` where the whole names nothing.
fn resolved(text: &str, itself: usize, names: &Names) -> Resolved {
    let mut resolved = Resolved::default();
    if let Named::One(on) = names.find(text, Some(itself)) {
        resolved.on.push(on);
        return resolved;
    }
    let parts = list(text)
        .into_iter()
        .flat_map(|part| part.split(';').map(str::to_owned).collect::<Vec<_>>());
    for part in parts {
        let part = part.trim().trim_start_matches("and ").trim().to_owned();
        let whole = names.find(&part, Some(itself));
        let halves: Vec<&str> = part
            .split(" and ")
            .flat_map(|part| part.split(" & "))
            .flat_map(|part| part.split(" + "))
            .collect();
        match whole {
            Named::None if halves.len() > 1 => {
                halves
                    .into_iter()
                    .for_each(|half| resolved.add(half.trim(), names.find(half, Some(itself))));
            }
            whole => resolved.add(&part, whole),
        }
    }
    resolved
}

impl Resolved {
    fn add(&mut self, given: &str, found: Named) {
        match found {
            Named::One(on) => self.on.push(on),
            Named::Several(several) => self.several.push((given.to_owned(), several)),
            Named::None if is_something(given) => self.unknown.push(given.to_owned()),
            Named::None => {}
        }
    }
}

/// Makes the dependencies of a phrase, or puts it back into the title if it does not name items
/// alone.
fn settle(phrase: Phrase, found: Resolved, drafts: &mut [Draft], remarks: &mut Vec<Remark>) {
    let Phrase { draft: number, is_certain, whole, .. } = phrase;
    let line = drafts[number].item.line;
    // Whether another plan has an item at a path is known only on the board.
    let is_elsewhere = |given: &String| {
        is_certain && matches!(split_scope(given), (Some(_), path) if is_path(path))
    };
    let (elsewhere, unknown): (Vec<_>, Vec<_>) = found.unknown.into_iter().partition(is_elsewhere);
    drafts[number].item.depends.extend(elsewhere);
    let is_whole = unknown.is_empty() && found.several.is_empty();
    for (given, several) in &found.several {
        remarks.push(ambiguous(number, given, several, drafts));
    }
    for given in &unknown {
        remarks.push(Remark {
            line,
            remark: format!("\"{}\" fits no item: it makes none wait", shown(given)),
        });
    }
    found.on.into_iter().for_each(|on| wait(&mut drafts[number], on));
    if !is_whole {
        drafts[number].item.title = whole;
    }
}

fn wait(draft: &mut Draft, on: usize) {
    if !draft.item.waits.contains(&on) {
        draft.item.waits.push(on);
    }
}

fn ambiguous(number: usize, given: &str, several: &[usize], drafts: &[Draft]) -> Remark {
    const MOST: usize = 5;
    let lines: Vec<_> =
        several.iter().take(MOST).map(|one| drafts[*one].item.line.to_string()).collect();
    let more = if several.len() > MOST { " and others" } else { "" };
    let (given, lines) = (shown(given), lines.join(" and "));
    let remark = format!(
        "\"{given}\" may be that of line {lines}{more}: it makes none wait; name it by more of its \
         words, or by its path"
    );
    Remark { line: drafts[number].item.line, remark }
}

fn shown(text: &str) -> String {
    shortened(text, SHOWN)
}

/// For headings that count one after the other beside each other: each, and the one before it. One
/// that says `depends: none` waits for no other.
fn in_order(drafts: &[Draft]) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    let mut last: HashMap<(Option<usize>, &str), (usize, u32)> = HashMap::new();
    for (number, draft) in drafts.iter().enumerate() {
        let Some(counted) = &draft.counted else { continue };
        let place = (draft.item.parent, counted.word.as_str());
        if let Some((before, count)) = last.insert(place, (number, counted.number))
            && count < counted.number
            && !draft.is_free
        {
            order.push((number, before));
        }
    }
    order
}
