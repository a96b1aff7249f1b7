//! The first part of a flat file: all fields of the board but the long ones, with the checksum and
//! the layout among them.

use std::io;

use super::layout::LaidOut;
use crate::state::document::Board;
use crate::statefile::plan::{Plan, short};
use crate::statefile::rendering::Rendering;
use crate::statefile::rendering::hex;

/// The fields of one board. Most commits change only two of them, `seq` and `last_activity`, so the
/// text before, between and after those is kept.
#[derive(Debug)]
pub(super) struct FirstPart {
    board: Board,
    /// As compact JSON, which the checksum covers.
    compact: [String; 3],
    /// As indented JSON, which the file shows.
    lines: [String; 3],
}

impl FirstPart {
    pub(super) fn of(board: &Board) -> io::Result<Self> {
        let short = short(board);
        let compact =
            around(&serde_json::to_string(&short)?, &short, "\"seq\":", "\"last_activity\":")?;
        // A line break in the text is never inside a string, so these are the fields.
        let mut lines = serde_json::to_string_pretty(&short)?;
        for long in ["\n  \"goal\": \"\",", "\n  \"master_plan\": \"\","] {
            let start = lines
                .find(long)
                .ok_or_else(|| io::Error::other("the board has no goal and plan"))?;
            lines.drain(start..start + long.len());
        }
        let fields =
            lines.strip_suffix("\n}").ok_or_else(|| io::Error::other("the board is no object"))?;
        let mut lines = around(fields, &short, "\n  \"seq\": ", "\n  \"last_activity\": ")?;
        lines[2].push(',');
        Ok(Self { board: short, compact, lines })
    }

    /// `known`, if `board` differs from its board only in those two fields; else a new one.
    pub(super) fn known_or_of(known: Option<Self>, board: &Board) -> io::Result<Self> {
        match known.filter(|known| known.is_of(board)) {
            Some(known) => Ok(known),
            None => Self::of(board),
        }
    }

    fn is_of(&self, board: &Board) -> bool {
        let Board {
            schema_version,
            board_id,
            created_at,
            paused,
            grace_until,
            archived,
            archived_runs,
            undone,
            // Those two, and the fields that are not in this part.
            seq: _,
            last_activity: _,
            goal: _,
            master_plan: _,
            spent_attempts: _,
            plans: _,
        } = &self.board;
        (schema_version, created_at, grace_until)
            == (&board.schema_version, &board.created_at, &board.grace_until)
            && (archived, archived_runs) == (&board.archived, &board.archived_runs)
            && (board_id, paused, undone) == (&board.board_id, &board.paused, &board.undone)
    }

    /// The text, and the checksum in it; `entities` is the entities' part of the checksum.
    pub(super) fn text(
        &self,
        board: &Board,
        plan: &Plan,
        laid_out: &LaidOut,
        entities: u128,
    ) -> io::Result<(Vec<u8>, String)> {
        let (seq, time) = (board.seq.to_string(), serde_json::to_string(&board.last_activity)?);
        let [start, middle, end] = &self.compact;
        let compact =
            Rendering::of_compact([start, &seq, middle, &time, end].map(String::as_str).concat());
        let checksum =
            hex(entities.wrapping_add(plan.sum_with(&compact)).wrapping_add(laid_out.sum));
        let [start, middle, end] = &self.lines;
        let (before, between) = (",\n  \"checksum\": \"", "\",\n  \"layout\": ");
        let parts = [start, &seq, before, &checksum, between, &laid_out.text, middle, &time, end];
        Ok((parts.concat().into_bytes(), checksum))
    }
}

/// The parts of `text` before, between and after the values of the two fields.
fn around(text: &str, board: &Board, seq: &str, last_activity: &str) -> io::Result<[String; 3]> {
    let split = |text: &str, key: &str, value: &str| {
        let (before, behind) = text.split_once(&format!("{key}{value}"))?;
        Some((format!("{before}{key}"), behind.to_owned()))
    };
    let time = serde_json::to_string(&board.last_activity)?;
    let parts = split(text, seq, &board.seq.to_string()).and_then(|(start, rest)| {
        let (middle, end) = split(&rest, last_activity, &time)?;
        Some([start, middle, end])
    });
    parts.ok_or_else(|| io::Error::other("the board has no seq or no last_activity"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::state::document::{Archived, Pause, Undone};
    use crate::state::time::Timestamp;
    use crate::statefile::plan::sum_of_board;

    /// The text and checksum of `first`: the same as those of a new one for the board, and the
    /// checksum that a reader computes.
    fn shown(first: &FirstPart, board: &Board) -> (String, String) {
        let plan = Plan::of(board).unwrap();
        let text = |first: &FirstPart| {
            let (text, checksum) = first.text(board, &plan, &LaidOut::default(), 7).unwrap();
            (String::from_utf8(text).unwrap(), checksum)
        };
        assert_eq!(text(first), text(&FirstPart::of(board).unwrap()));
        assert_eq!(text(first).1, hex(sum_of_board(board).unwrap().wrapping_add(7)));
        text(first)
    }

    #[test]
    fn first_part_that_is_kept_shows_the_board_as_it_is_now() {
        let mut board = State::new().board().clone();
        (board.board_id, board.seq) = ("\"seq\": 3, \"last_activity\":".to_owned(), 3);
        let mut first = FirstPart::of(&board).unwrap();
        let mut seen = vec![shown(&first, &board)];
        let changes: [fn(&mut Board); 10] = [
            |board| board.seq = 100,
            |board| board.last_activity = Timestamp::from_millis(1_000),
            |board| board.paused = Some(Pause { reason: None, at: Timestamp::from_millis(3) }),
            |board| board.archived = Archived { done: 3, ..Archived::default() },
            |board| board.archived_runs = Archived { done: 4, ..Archived::default() },
            |board| board.grace_until = Some(Timestamp::from_millis(2_000)),
            |board| board.created_at = Timestamp::from_millis(500),
            |board| board.undone = vec![Undone { after: 1, until: 2 }],
            |board| board.schema_version += 1,
            |board| board.board_id = "other".to_owned(),
        ];
        for change in changes {
            change(&mut board);
            first = FirstPart::known_or_of(Some(first), &board).unwrap();
            let now = shown(&first, &board);
            assert!(seen.iter().all(|before| before.0 != now.0 && before.1 != now.1), "{}", now.0);
            seen.push(now);
        }
    }
}
