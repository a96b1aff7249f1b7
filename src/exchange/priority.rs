//! Priorities: the words and numbers of other tools for them.

use super::record::Record;
use super::report::Fault;
use crate::plan::{self, Node};

/// Field of an item's metadata with what its file has for the priority, where the board's says
/// less.
pub(super) const PRIORITY: &str = "priority";

/// Gives the item the priority that its record names. `word` is what the format calls each.
pub(super) fn read(
    node: &mut Node,
    record: &mut Record,
    word: fn(u8) -> &'static str,
) -> Result<(), Fault> {
    let Some(given) = record.text(PRIORITY)? else { return Ok(()) };
    node.priority = plan::priority(&given);
    if node.priority.map(word) != Some(given.as_str()) {
        node.metadata.insert(PRIORITY.to_owned(), given.into());
    }
    Ok(())
}

/// The word for a priority in formats that have three of them.
pub(super) fn word(priority: u8) -> &'static str {
    match priority {
        0..=3 => "high",
        4..=6 => "medium",
        _ => "low",
    }
}

/// What a file says for a priority: what it said before, while that stands for the same.
pub(super) fn written(before: Option<&str>, priority: u8, word: fn(u8) -> &'static str) -> &str {
    let is_same = |before: &&str| match plan::priority(before) {
        Some(before) => before == priority,
        None => true,
    };
    before.filter(is_same).unwrap_or(word(priority))
}
