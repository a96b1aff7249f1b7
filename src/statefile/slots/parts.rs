//! The parts of a file with slots that hold no slots: at the front the goal and what is derived, the
//! plan, behind all slots the board's small fields, and at the end those that tell whose file it is.

use std::io;

use super::layout::Layout;
use crate::state::document::Board;
use crate::statefile::derived::Derived;
use crate::statefile::fragment::Sums;
use crate::statefile::plan::Plan;
use crate::statefile::rendering::{Rendering, hex, sum_of};
use crate::statefile::whole::{push_end, push_small};

/// The length of a part, and of a slot, is a multiple of this, in bytes.
pub(super) const GRAIN: usize = 16;
/// Bytes by which a part may grow, beside a quarter of it, before the file is rearranged.
const ROOM: usize = 512;
/// Bytes by which the last fields may grow.
pub(super) const END_ROOM: usize = 64;

pub(super) fn front(plan: &Plan, derived: &Derived) -> Vec<u8> {
    let mut text = b"{".to_vec();
    text.extend_from_slice(&plan.goal);
    derived.push(&mut text);
    text
}

pub(super) fn small(board: &Rendering, plan: &Plan) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    push_small(board, &mut text)?;
    text.extend_from_slice(&plan.spent);
    Ok(text)
}

/// The last fields, and the checksum in them; `sums` are the checksums but for the layout's number.
pub(super) fn end(board: &Board, sums: Sums, layout: &Layout) -> io::Result<(Vec<u8>, String)> {
    let sums = sums.and(Sums::of_state(sum_of("layout", "", layout)?));
    let mut text = Vec::new();
    push_end(board, sums, &mut text)?;
    text.extend(format!("\n  \"layout\": {}", serde_json::to_string(layout)?).bytes());
    Ok((text, hex(sums.state)))
}

/// The length of a part that begins with this text.
pub(super) fn roomy(text: &[u8]) -> u64 {
    grained(text.len() + text.len() / 4 + ROOM)
}

pub(super) fn grained(length: usize) -> u64 {
    length.next_multiple_of(GRAIN) as u64
}

/// Pads `text` with spaces to `length`; `None` when it is longer.
pub(super) fn filled(mut text: Vec<u8>, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| text.len() <= *length)?;
    text.resize(length, b' ');
    Some(text)
}

/// The last part of the file, with padding at the end of its last field; `None` when it is longer
/// than `length`.
pub(super) fn filled_end(fields: Vec<u8>, length: u64) -> Option<Vec<u8>> {
    const CLOSING: &[u8] = b"\n}";
    let mut end = filled(fields, length.checked_sub(CLOSING.len() as u64)?)?;
    end.extend_from_slice(CLOSING);
    Some(end)
}
