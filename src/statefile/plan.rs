//! The long fields of the board, which hardly change: goal and plan. They are counted apart in the checksum, so that a
//! commit costs the same however long they are.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use super::fragment::sum_of;
use crate::state::document::{Board, PlanVersion};
use crate::state::id::TaskId;

#[derive(Debug, Default)]
pub struct Plan {
    goal: Arc<str>,
    master_plan: Arc<str>,
    versions: Arc<[PlanVersion]>,
    spent: BTreeMap<TaskId, u32>,
    /// In the checksum.
    sum: u128,
}

impl Plan {
    pub fn of(board: &Board) -> io::Result<Self> {
        let Board { goal, master_plan, plans, spent_attempts, .. } = board;
        let sums = [
            number("goal", goal, goal.is_empty())?,
            number("master_plan", master_plan, master_plan.is_empty())?,
            number("plans", plans, plans.is_empty())?,
            number("spent_attempts", spent_attempts, spent_attempts.is_empty())?,
        ];
        Ok(Self {
            goal: Arc::clone(goal),
            master_plan: Arc::clone(master_plan),
            versions: Arc::clone(plans),
            spent: spent_attempts.clone(),
            sum: sums.into_iter().fold(0, u128::wrapping_add),
        })
    }

    pub fn is_of(&self, board: &Board) -> bool {
        let is_same = |one: &Arc<str>, other: &Arc<str>| Arc::ptr_eq(one, other) || one == other;
        is_same(&self.goal, &board.goal)
            && is_same(&self.master_plan, &board.master_plan)
            && (Arc::ptr_eq(&self.versions, &board.plans) || self.versions == board.plans)
            && self.spent == board.spent_attempts
    }

    /// The numbers of the board whose plan this is, without those of its entities.
    pub fn sum_with(&self, short: &Board) -> io::Result<u128> {
        Ok(sum_of("board", "", short)?.wrapping_add(self.sum))
    }

    pub fn text(&self) -> io::Result<Vec<u8>> {
        let (goal, master_plan) = (serde_json::to_string(&self.goal)?, serde_json::to_string(&self.master_plan)?);
        let mut text = format!("\n  \"goal\": {goal},\n  \"master_plan\": {master_plan},");
        if !self.versions.is_empty() {
            text.push_str(&format!("\n  \"plans\": {},", serde_json::to_string(&self.versions)?));
        }
        Ok(text.into_bytes())
    }

    pub fn spent_text(&self) -> io::Result<Vec<u8>> {
        match self.spent.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(format!("\n  \"spent_attempts\": {},", serde_json::to_string(&self.spent)?).into_bytes()),
        }
    }
}

/// Of a long field; an empty one has none.
fn number(name: &str, value: &impl Serialize, is_empty: bool) -> io::Result<u128> {
    if is_empty { Ok(0) } else { sum_of(name, "", value) }
}

/// The board without its long fields.
pub fn short(board: &Board) -> Board {
    Board {
        board_id: board.board_id.clone(),
        goal: Arc::from(""),
        master_plan: Arc::from(""),
        paused: board.paused.clone(),
        spent_attempts: BTreeMap::new(),
        undone: board.undone.clone(),
        plans: Arc::from([]),
        ..*board
    }
}

pub fn sum_of_board(board: &Board) -> io::Result<u128> {
    Plan::of(board)?.sum_with(&short(board))
}
