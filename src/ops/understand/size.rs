//! Limits that hold for an argument wherever it stands, so that the refusal can say where.

use crate::state::limit::{
    ACKNOWLEDGED, ATTEMPTS, BATCH, DEPENDENCIES, DESCRIPTION, FILES, HELD, ID, LABEL, LABELS,
    Limit, PAGE, PATH, RESERVED_MINUTES, SPAN, STOPPING, SUPERSEDED, WAIT,
};
use crate::state::refusal::Refusal;

/// Most entries of a list, by the argument's name.
const LISTS: [(&str, Limit); 13] = [
    ("acknowledge", ACKNOWLEDGED),
    ("capabilities", LABELS),
    ("context_files", FILES),
    ("dependencies", DEPENDENCIES),
    ("files", FILES),
    ("files_created", FILES),
    ("files_modified", FILES),
    ("operations", BATCH),
    ("stopping", STOPPING),
    ("supersedes", SUPERSEDED),
    ("tags", LABELS),
    // As many as a page has entries.
    ("task_ids", PAGE),
    ("tasks", BATCH),
];
/// Most bytes of a text, or of each text of a list.
const TEXTS: [(&str, Limit); 11] = [
    ("agent_id", ID),
    ("capabilities", LABEL),
    ("context_files", PATH),
    ("files", PATH),
    ("files_created", PATH),
    ("files_modified", PATH),
    ("hostname", PATH),
    ("profile", PATH),
    ("prompt", DESCRIPTION),
    ("tags", LABEL),
    ("task_id", ID),
];

/// Numbers that are limits themselves: one out of range is brought into it.
const NUMBERS: [(&str, Limit); 8] = [
    ("estimated_minutes", SPAN),
    ("limit", PAGE),
    ("max_attempts", ATTEMPTS),
    ("max_concurrent", HELD),
    ("minutes", RESERVED_MINUTES),
    ("silent_minutes", SPAN),
    ("timeout_seconds", SPAN),
    ("wait_seconds", WAIT),
];

/// The number, brought into its range if it is a limit.
pub(super) fn within(name: &str, given: i128, least: i128) -> i128 {
    let limit = NUMBERS.iter().find(|(field, _)| *field == name);
    limit.map_or(given, |(_, limit)| given.clamp(least, limit.max as i128))
}

pub(super) fn check_list(name: &str, entries: usize, at: &str) -> Result<(), Refusal> {
    let limit = LISTS.iter().find(|(field, _)| *field == name);
    limit.map_or(Ok(()), |(_, limit)| limit.check(entries).map_err(|refusal| refusal.at(at)))
}

pub(super) fn check_text(name: &str, text: &str, at: &str) -> Result<(), Refusal> {
    let limit = TEXTS.iter().find(|(field, _)| *field == name);
    limit.map_or(Ok(()), |(_, limit)| limit.check_text(text).map_err(|refusal| refusal.at(at)))
}
