//! All agents: those that are there as on the first screen, then those whose sessions have ended.

use super::super::content::AgentRow;
use super::super::first::{Overview, Room, Words};
use super::super::opened::{Layout, Row};
use super::super::subject::Subject;
use super::board;
use crate::view::columns::{left, span, widest};
use crate::view::{Board, Tone};

/// Widest column of names.
const NAME: usize = 24;

pub(super) fn layout(
    board: &Board,
    ended: &[AgentRow],
    columns: usize,
    words: Words<'_>,
) -> Layout {
    let overview = Overview { board, room: Room { columns, lines: None }, words };
    let there = overview.agents(board.agents.rows.len());
    let mut rows = board::listed(there, &board.agents, board::agent);
    // The gap above the first title.
    rows.remove(0);
    if !ended.is_empty() {
        let title = vec![(Tone::Waiting, format!("ENDED  {}", ended.len()))];
        rows.extend([Row::default(), Row { line: title, about: None }]);
    }
    let name = widest(ended.iter().map(|agent| agent.id.as_str()), NAME);
    rows.extend(ended.iter().map(|agent| {
        let ago = span(board.now.since(agent.last_sign));
        let counts = format!("{} done, {} failed", agent.completed, agent.failed);
        let line = format!(
            "  {}  {}  {ago} ago  {counts}",
            left(agent.id.as_str(), name),
            agent.role.as_str()
        );
        let about = Subject::Agent { id: agent.id.clone(), holds: None };
        Row { line: vec![(Tone::Over, line)], about: Some(about) }
    }));
    Layout { rows, ..Layout::default() }
}
