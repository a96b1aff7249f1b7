//! What each view makes of its content, for a width.

mod agents;
mod board;
mod events;
mod page;
mod tasks;

use super::content::Content;
use super::first::Words;
use super::opened::Layout;

pub(super) fn layout(content: &Content, columns: usize, words: Words<'_>) -> Layout {
    match content {
        Content::Board(board, notes) => board::layout(board, notes, columns, words),
        Content::Tasks(tasks) => tasks::layout(tasks, columns),
        Content::Agents(board, ended) => agents::layout(board, ended, columns, words),
        Content::Events(events) => events::layout(events),
        Content::Page(page) => page::layout(page, columns),
    }
}
