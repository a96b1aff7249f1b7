//! Hashes of what the plan said of a task, by which a later version is compared.

use serde::Serialize;

use super::further::Trials;
use super::item::Item;
use super::text::one_line;
use crate::state::digest::sha256;
use crate::state::id::TaskId;

/// Hash of what decides when a task comes, not what is to be done.
pub(super) fn settings_hash(
    priority: u8,
    dependencies: &[TaskId],
    tags: &[String],
    estimate: Option<u32>,
    trials: &Trials,
) -> String {
    match (estimate, trials.is_empty()) {
        // As boards have it from before there were estimates.
        (None, true) => hash(&(priority, dependencies, tags)),
        _ => hash(&(priority, dependencies, tags, estimate, trials)),
    }
}

/// Hash of what is to be done. Spaces and line ends in hints do not count, because Markdown has
/// hints on one line.
pub(super) fn content_hash(item: &Item) -> String {
    let hints = item.hints.as_deref().map(one_line);
    if item.metadata.is_empty() {
        hash(&(&item.description, &item.files, hints))
    } else {
        hash(&(&item.description, &item.files, hints, &item.metadata))
    }
}

/// The hash that boards have of plans imported when every space counted.
pub(super) fn older_content_hash(item: &Item) -> String {
    hash(&(&item.description, &item.files, &item.hints))
}

/// First 16 hex digits of the SHA-256 of the JSON.
pub(super) fn hash(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    sha256(json)[..16].to_owned()
}
