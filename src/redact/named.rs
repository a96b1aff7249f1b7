//! Secrets that only their names reveal: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`.
//!
//! A name alone is not enough in a text, where `password: String` and `secret = os.environ["KEY"]`
//! are code: the value must also look like something that nobody would write for people to read.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::telling::{Habit, judged};
use super::value::{is_reference, is_secret, stands_for_one};
use super::{Finding, MARK};

/// A name, what is between, an opening quote, and the value.
const PAIR: &str = r#"(?P<name>(?:(?i:api|access|secret|private|auth)[ ])?[A-Za-z0-9_.\-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9_.\-]*)["'`\\\]\)]{0,4}[ \t]{0,8}(?:<[A-Za-z ]{1,20}>[ \t]{0,4})?(?P<between>:[ \t]{0,4}[&A-Za-z_'<>\[\], ]{1,40}=|:=|=>|={1,3}|:|[ \t](?i:is|was):?[ \t]|>)[ \t]{0,8}(?:[bBrRuUfF]{0,2}(?P<quote>\\?["'`]))?(?P<value>[^\s\x00"'`\\]+)"#;
/// The same for a command-line option whose value is a separate word.
const OPTION: &str = r#"--(?P<name>[A-Za-z0-9-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9-]*)(?P<between>[ \t]+)(?P<quote>["'])?(?P<value>[^\s\x00"'`\\]+)"#;

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [PAIR, OPTION].into_iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// Words of which every telling name contains one.
static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = ["pass", "pwd", "secret", "token", "key", "cred", "auth"];
    AhoCorasick::builder().ascii_case_insensitive(true).build(signs).ok()
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return found;
    }
    for pattern in &*PATTERNS {
        for pair in pattern.captures_iter(text) {
            let (Some(name), Some(value)) = (pair.name("name"), pair.name("value")) else {
                continue;
            };
            let Some((kind, habit)) = judged(name.as_str()) else { continue };
            if is_in_mark(&text.as_bytes()[..name.start()]) {
                continue;
            }
            let is_prose = pair
                .name("between")
                .is_some_and(|between| between.as_str().trim_end().ends_with(['s', ' ']));
            let quoted = pair.name("quote").is_some();
            let whole = value.as_str();
            let length = if quoted { whole.len() } else { unquoted_length(whole) };
            let (bare, rest) = whole.split_at(length);
            let next = rest.chars().next().or_else(|| text[value.end()..].chars().next());
            let is_markup = pair.name("between").is_some_and(|between| between.as_str() == ">");
            let is_field = quoted && is_quoted(text, name.range());
            let is_code = !quoted && !is_markup && next.is_some_and(|next| "([{<".contains(next))
                || quoted && !is_field && bare.contains(['{', '(']);
            let habit = if is_prose { Habit::Token } else { habit };
            let stands_for_one = if is_field { stands_for_one(bare) } else { is_reference(bare) };
            if !is_code && !stands_for_one && is_secret(bare, habit, quoted) {
                found.push(Finding { place: value.start()..value.start() + length, kind });
            }
        }
    }
    found
}

/// True if a quoted name stands before a quoted value: that is a field of JSON or the like, not
/// prose.
fn is_quoted(text: &str, name: Range<usize>) -> bool {
    let quotes = ['"', '\''];
    text[..name.start].ends_with(quotes)
        && text[name.end..].trim_start_matches('\\').starts_with(quotes)
}

/// True inside a mark `[redacted: …]`. Its words say nothing about what follows; otherwise a
/// redacted text would change again.
fn is_in_mark(before: &[u8]) -> bool {
    const LONGEST: usize = 40;
    let near = &before[before.len().saturating_sub(LONGEST)..];
    let open = near.windows(MARK.len()).rposition(|part| part == MARK.as_bytes());
    open.is_some_and(|open| !near[open..].contains(&b']'))
}

/// Length of the part of a bare word that is the value, not the sentence or code around it.
fn unquoted_length(word: &str) -> usize {
    let end = word
        .find(['(', ')', '[', ']', '{', '}', '<', '>', ';', ',', '&', '|'])
        .unwrap_or(word.len());
    word[..end].trim_end_matches(['.', ':', '!', '?']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), 2);
    }
}
