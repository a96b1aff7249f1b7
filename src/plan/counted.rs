//! Headings that count, such as `Phase 2: The data`.

use std::sync::LazyLock;

use regex::Regex;

use crate::state::plan::plain;

static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(phase|step|milestone|stage)\s+(\d{1,4}|[ivx]{1,5}|one|two|three|four|five|six|seven|eight|nine|ten)\b").ok()
});
const SPELT: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const ROMAN: [&str; 20] = [
    "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv",
    "xvi", "xvii", "xviii", "xix", "xx",
];

/// The word that a heading counts with, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub word: String,
    pub number: u32,
}

/// Reads the beginning of a heading.
pub(super) fn counted(title: &str) -> Option<Counted> {
    let title = plain(title);
    let found = COUNTED.as_ref()?.captures(&title)?;
    let [word, number] =
        [1, 2].map(|group| found.get(group).map_or("", |one| one.as_str()).to_lowercase());
    let place =
        |words: &[&str]| words.iter().position(|word| *word == number).map(|at| at as u32 + 1);
    let number = number.parse().ok().or_else(|| place(&SPELT)).or_else(|| place(&ROMAN))?;
    Some(Counted { word, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_figures_words_and_roman_count() {
        for (title, expected) in [
            ("Phase 1: Groundwork", Some(("phase", 1))),
            ("**Phase 12** – Later", Some(("phase", 12))),
            ("Step Three", Some(("step", 3))),
            ("Milestone IV", Some(("milestone", 4))),
            ("🚀 Stage 2", Some(("stage", 2))),
            ("Phase 0", Some(("phase", 0))),
            ("Phases 1 and 2", None),
            ("Phase in the new queue", None),
            ("The phase 1", None),
            ("Phase 1a", None),
        ] {
            let found = counted(title);
            let found = found.as_ref().map(|counted| (counted.word.as_str(), counted.number));
            assert_eq!(found, expected, "{title}");
        }
    }
}
