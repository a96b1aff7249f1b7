//! The pages, a file each: pure functions from models to what is shown.

pub(super) mod add;
pub(super) mod agents;
pub(super) mod board;
pub(super) mod discoveries;
pub(super) mod events;
pub(super) mod failure;
pub(super) mod files;
pub(super) mod graph;
pub(super) mod keys;
pub(super) mod list;
pub(super) mod login;
mod markdown;
pub(super) mod plan;
mod query;
pub(super) mod search;
pub(super) mod snapshots;
pub(super) mod task;
pub(super) mod timeline;

pub(super) use query::Query;

use super::{Layout, Page, Place, Renewed, Section, shell};
use crate::view::Board;

/// The head of the pages of which nothing else is kept up to date. Each keeps its own title.
pub(super) fn head(board: &Board) -> Page {
    Page {
        title: String::new(),
        place: Place::None,
        layout: Layout::Page,
        renewed: Renewed::Head,
        sections: vec![Section { id: shell::HEAD.into(), html: shell::small(board) }],
    }
}

#[cfg(test)]
mod tests;
