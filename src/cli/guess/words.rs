//! Words of a command line that is not understood: what kind each is of.

use super::table::{ADD, LIST, NOUNS, Noun, REMOVE, ROWS, Row, SHOW};
use crate::state::hierarchy::numbers;
use crate::state::message::Message;

/// What is to be done with a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    List,
    Show,
    Add,
    Remove,
}

impl Verb {
    pub(super) fn of(word: &str) -> Option<Self> {
        let all =
            [(LIST, Self::List), (SHOW, Self::Show), (ADD, Self::Add), (REMOVE, Self::Remove)];
        let word = word.to_lowercase();
        all.into_iter().find(|(words, _)| words.split(' ').any(|one| one == word)).map(|(_, is)| is)
    }

    /// Whether it changes nothing.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::List | Self::Show)
    }
}

/// The word as tables have it, and without the ending of a plural.
pub(super) fn forms(word: &str) -> Vec<String> {
    let word = word.to_lowercase().replace('_', "-");
    let ies = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let others = ["s", "es"].into_iter().filter_map(|end| Some(word.strip_suffix(end)?.to_owned()));
    let others: Vec<_> = others.chain(ies).filter(|form| form.len() > 1).collect();
    std::iter::once(word.clone()).chain(others).collect()
}

fn has(words: &str, forms: &[String]) -> bool {
    words.split_whitespace().any(|one| forms.iter().any(|form| form == one))
}

pub(super) fn noun(word: &str) -> Option<&'static Noun> {
    let forms = forms(word);
    NOUNS.iter().find(|noun| has(noun.words, &forms))
}

pub(super) fn row(word: &str) -> Option<&'static Row> {
    let forms = forms(word);
    // A word that stands there as it is goes before one without its ending.
    let exact = ROWS.iter().find(|row| has(row.words, &forms[..1]));
    exact.or_else(|| ROWS.iter().find(|row| has(row.words, &forms)))
}

pub(super) fn is_one_of(words: &str, word: &str) -> bool {
    has(words, &forms(word)[..1])
}

/// Whether the word can only be the name of a task.
pub(super) fn is_task(word: &str) -> bool {
    let number = word.trim_start_matches(['#', 'T', 't']);
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number || is_path(word) || word.to_lowercase().starts_with("task-")
}

pub(super) fn is_path(word: &str) -> bool {
    numbers(&word.to_uppercase()).is_some_and(|numbers| !numbers.is_empty())
}

pub(super) fn is_question(word: &str) -> bool {
    Message::number_of(word).is_some()
}

/// Whether the word looks like the name of an agent, such as `claude-1`.
pub(super) fn is_agent(word: &str) -> bool {
    let numbered = word.rsplit_once('-').is_some_and(|(name, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        is_number && name.starts_with(|first: char| first.is_ascii_alphabetic())
    });
    !is_task(word) && (numbered || word.starts_with('@'))
}

/// Whether the word names a thing of the board, whatever is on it.
pub(super) fn is_thing(word: &str) -> bool {
    is_task(word) || is_question(word) || is_agent(word)
}
