//! How far the board is, how fast it moves, and when it may be done.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sorted::Sorted;
use super::{Counts, Look};
use crate::state::State;
use crate::state::document::Pause;
use crate::state::hierarchy::percent;
use crate::state::time::{MINUTE, Timestamp};

const HOUR: i64 = 60 * MINUTE;
/// Milliseconds that are looked back for the pace: long enough for several tasks, short enough that
/// a night without work does not count.
const WINDOW: i64 = 4 * HOUR;
/// Fewest tasks, and shortest time in milliseconds, of which a pace is told.
const FEWEST: usize = 3;
const SHORTEST: i64 = 10 * MINUTE;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Head {
    pub goal: Arc<str>,
    /// Tasks without parts that are done
    pub done: u64,
    /// Tasks without parts that are to be done: all but cancelled ones
    pub wanted: u64,
    pub percent: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// When the rest is done at this pace
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// Time since which the first task in the order of claims is ready
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Pace {
    pub per_hour: f64,
    /// Tasks that agents did since then
    pub done: usize,
    /// Four hours ago, or when work on the first of these tasks began
    pub since: Timestamp,
}

pub(super) fn head(state: &State, look: &Look<'_>, sorted: &Sorted<'_>) -> Head {
    let board = state.board();
    let counts = &sorted.counts;
    let wanted = counts.total - counts.cancelled;
    let pace = pace(sorted, look.now);
    let ready = state.ready_in_order();
    Head {
        goal: Arc::clone(&board.goal),
        done: counts.done,
        wanted,
        percent: percent(counts.done, wanted),
        pace,
        ends_at: pace.filter(|_| board.paused.is_none()).and_then(|pace| {
            let hours = open(counts)? as f64 / pace.per_hour;
            Some(look.now + (hours * HOUR as f64) as i64)
        }),
        ready_since: ready.first().map(|task| state.ready_since(task)),
        paused: board.paused.clone(),
        last_activity: board.last_activity.known(),
    }
}

/// Number of tasks that are still to be done; none if nothing moves.
fn open(counts: &Counts) -> Option<u64> {
    let moving = counts.ready + counts.waiting + counts.in_work + counts.in_review;
    (moving > 0).then_some(moving + counts.blocked)
}

fn pace(sorted: &Sorted<'_>, now: Timestamp) -> Option<Pace> {
    let begin = now - WINDOW;
    // What came in as done says nothing about how fast agents are.
    let worked = sorted.done.iter().map(|one| one.task).filter(|task| task.attempt > 0);
    let recent = worked.take_while(|task| task.completed_at.is_some_and(|at| at >= begin));
    let starts: Vec<Timestamp> = recent.map(|task| task.claimed_at.unwrap_or(begin)).collect();
    let since = starts.iter().copied().min()?.max(begin);
    let span = now.since(since);
    let hours = span as f64 / HOUR as f64;
    let per_hour = (starts.len() as f64 / hours * 10.0).round() / 10.0;
    let is_told = starts.len() >= FEWEST && span >= SHORTEST;
    is_told.then_some(Pace { per_hour, done: starts.len(), since })
}
