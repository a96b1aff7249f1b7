//! Events, newest first, a line each.

use super::super::content::EventRow;
use super::super::opened::{Layout, Row};
use crate::view::Tone;

pub(super) fn layout(events: &[EventRow]) -> Layout {
    let mut rows: Vec<_> = events
        .iter()
        .map(|event| Row { line: event.line.clone(), about: event.about.clone() })
        .collect();
    if rows.is_empty() {
        let line = vec![(Tone::Over, "nothing has happened yet".to_owned())];
        rows.push(Row { line, about: None });
    }
    Layout { rows, ..Layout::default() }
}
