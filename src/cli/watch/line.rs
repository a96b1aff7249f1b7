//! One event as one line: when, who, what happened to which task or agent.

use serde_json::Value;

use crate::cli::print::{Page, text};
use crate::state::id::AgentId;
use crate::state::time::Timestamp;
use crate::view::Names;

/// Writes the event behind its number, by which `undo` and `--before` take it.
pub(crate) fn write_numbered(page: &mut Page, event: &Value, names: &Names) {
    write_behind(&format!("{:>5} ", text(&event["seq"])), page, event, names);
}

pub(crate) fn write(page: &mut Page, event: &Value, names: &Names) {
    write_behind("", page, event, names);
}

fn write_behind(before: &str, page: &mut Page, event: &Value, names: &Names) {
    let told = names.told(event);
    // No one acts when a lease expires.
    let actor = event["actor"].as_str().map(AgentId::trusted);
    let actor = actor.as_ref().map_or("-", |actor| page.who(actor));
    let at = Timestamp::of_text(&text(&event["at"])).map(|at| page.stamp(at)).unwrap_or_default();
    page.wrapped(&format!("{before}{at} {actor}"), told.word, told.tone, &told.text);
}
