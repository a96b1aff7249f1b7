//! The first part of a flat file: all fields of the board but the long ones, with the checksum and
//! the layout among them.

use std::io;

use super::layout::Layout;
use crate::state::document::Board;
use crate::statefile::plan::{Plan, short};
use crate::statefile::rendering::{Rendering, hex, sum_of};
use crate::statefile::whole::push_small;

/// The text of the first part, and the checksum in it; `entities` is the entities' part of the
/// checksum.
pub(super) fn first_part(
    board: &Board,
    plan: &Plan,
    layout: &Layout,
    entities: u128,
) -> io::Result<(Vec<u8>, String)> {
    let small = Rendering::of(&short(board))?;
    let checksum =
        entities.wrapping_add(plan.sum_with(&small)).wrapping_add(sum_of("layout", "", layout)?);
    let checksum = hex(checksum);
    let mut text = vec![b'{'];
    Rendering::of(&board.schema_version)?.push_field("schema_version", &mut text);
    Rendering::of(&board.board_id)?.push_field("board_id", &mut text);
    Rendering::of(&board.seq)?.push_field("seq", &mut text);
    Rendering::of(&checksum)?.push_field("checksum", &mut text);
    text.extend(format!("\n  \"layout\": {},", serde_json::to_string(layout)?).bytes());
    push_small(&small, &mut text)?;
    Ok((text, checksum))
}
