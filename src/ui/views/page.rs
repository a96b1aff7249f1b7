//! A text of several lines, folded to the width.

use super::super::content::Page;
use super::super::first::Line;
use super::super::opened::{Layout, Row};
use crate::harmless::shown::harmless;
use crate::view::columns::folded as folded_text;

pub(super) fn layout(page: &Page, columns: usize) -> Layout {
    let lines = page.lines.iter().flat_map(|line| folded(line, columns));
    let rows = lines.map(|line| Row { line, about: None }).collect();
    Layout { rows, about: page.about.clone(), ..Layout::default() }
}

/// The line in lines of at most `columns`, each piece in its tone.
pub(super) fn folded(line: &Line, columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    let mut used = 0;
    for (tone, text) in line {
        for (index, part) in folded_text(&harmless(text), used, columns).into_iter().enumerate() {
            if index > 0 {
                lines.push(Line::new());
                used = 0;
            }
            used += crate::view::columns::width(&part);
            if let Some(last) = lines.last_mut() {
                last.push((*tone, part));
            }
        }
    }
    lines
}
