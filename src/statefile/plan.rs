//! The long fields of the board, which hardly change: goal and plan. They have numbers of their own
//! in the checksum, so that a commit costs the same however long they are.

use std::io;
use std::sync::Arc;

use serde::Serialize;

use super::rendering::{Rendering, sum_of};
use crate::state::document::Board;

#[derive(Debug)]
pub(super) struct Plan {
    board: Board,
    /// The long fields' part of the checksum.
    sum: u128,
    /// The fields as the file shows them, each with a comma behind it: the goal; the plan, with
    /// its versions; the spent attempts.
    pub goal: Vec<u8>,
    pub plan: Vec<u8>,
    pub spent: Vec<u8>,
}

impl Plan {
    pub(super) fn of(board: &Board) -> io::Result<Self> {
        let Board { goal, master_plan, plans, spent_attempts, .. } = board;
        let sums = [
            number("goal", goal, goal.is_empty())?,
            number("master_plan", master_plan, master_plan.is_empty())?,
            number("plans", plans, plans.is_empty())?,
            number("spent_attempts", spent_attempts, spent_attempts.is_empty())?,
        ];
        let sum = sums.into_iter().fold(0, u128::wrapping_add);
        let (mut of_goal, mut of_plan, mut of_spent) = (Vec::new(), Vec::new(), Vec::new());
        Rendering::of(goal)?.push_field("goal", &mut of_goal);
        Rendering::of(master_plan)?.push_field("master_plan", &mut of_plan);
        if !plans.is_empty() {
            Rendering::of(plans)?.push_field("plans", &mut of_plan);
        }
        if !spent_attempts.is_empty() {
            Rendering::of(spent_attempts)?.push_field("spent_attempts", &mut of_spent);
        }
        Ok(Self { board: board.clone(), sum, goal: of_goal, plan: of_plan, spent: of_spent })
    }

    /// `known`, if it is still the board's; else a new one.
    pub(super) fn known_or_of(known: Option<Self>, board: &Board) -> io::Result<Self> {
        match known.filter(|known| known.board.has_plan_of(board)) {
            Some(known) => Ok(known),
            None => Self::of(board),
        }
    }

    /// Bytes of all three texts.
    pub(super) fn length(&self) -> u64 {
        (self.goal.len() + self.plan.len() + self.spent.len()) as u64
    }

    /// The header's part of the checksum, given its `short` form, together with the long fields'.
    pub(super) fn sum_with(&self, short: &Rendering) -> u128 {
        short.sum("board", "").wrapping_add(self.sum)
    }
}

/// The number of a long field in the checksum, 0 if it is empty.
fn number(name: &str, value: &impl Serialize, is_empty: bool) -> io::Result<u128> {
    if is_empty { Ok(0) } else { sum_of(name, "", value) }
}

/// The board without its long fields.
pub(super) fn short(board: &Board) -> Board {
    Board {
        board_id: board.board_id.clone(),
        goal: Arc::from(""),
        master_plan: Arc::from(""),
        paused: board.paused.clone(),
        spent_attempts: Arc::default(),
        undone: board.undone.clone(),
        plans: Arc::from([]),
        ..*board
    }
}

pub(super) fn sum_of_board(board: &Board) -> io::Result<u128> {
    Ok(Plan::of(board)?.sum_with(&Rendering::of(&short(board))?))
}
