//! What a person sees first: what waits for them, who does what, what comes next, what is stuck. It
//! is decided here, for every screen: `callboard status` and programs that draw their own.
//!
//! Every list is bounded and says how many more there are. The counts add up.

mod agents;
mod blocked;
mod card;
pub(crate) mod columns;
mod detail;
mod filter;
mod found;
mod graph;
mod latest;
mod list;
mod names;
mod pace;
mod parts;
mod profile;
mod reader;
pub mod report;
mod sorted;
mod standing;
mod timeline;
pub(crate) mod told;
mod tone;
mod tree;
mod waits;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agents::{AgentRow, Sign};
pub use blocked::{Behind, Group};
pub use card::{Card, Done, Failure, Last, Named, Retry};
pub use detail::Detail;
pub use filter::Filter;
pub use found::Found;
pub use graph::{Graph, Node};
pub use latest::{Latest, latest};
pub use list::{Kind, List, Listed, PAGE};
pub use names::Names;
pub use pace::{Head, Pace};
pub use parts::PlanPart;
pub use profile::{Profile, Worked};
pub use reader::Reader;
pub use standing::{Numbers, Standing};
pub use timeline::Timeline;
pub use told::{NAMED, Told, is_noise};
pub use tone::Tone;
pub use tree::{Branch, Tree};
pub use waits::{Remedy, Wait, WaitKind};

use crate::state::State;
use crate::state::policy::Policy;
use crate::state::time::Timestamp;
use sorted::{Numbered, Sorted};

/// The first screen of a board.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Board {
    pub head: Head,
    pub counts: Counts,
    /// What waits for the person whose board it is: by kind, then the oldest first
    pub waits: Rows<Wait>,
    /// Agents that hold tasks, are present or were heard of a moment ago
    pub agents: Rows<AgentRow>,
    /// Number of other agents: their sessions have ended
    pub ended: usize,
    /// Ready tasks in the order in which they are claimed
    pub next: Rows<Card>,
    /// Blocked tasks by what they wait for; each is in one group
    pub blocked: Rows<Group>,
    pub failed: Rows<Failure>,
    /// Tasks that wait for their time, the next first
    pub retries: Rows<Retry>,
    /// Tasks that are done, the newest first
    pub done: Rows<Done>,
    /// What happened last, the newest first; only if it is asked for
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latest: Vec<Latest>,
    /// The first parts of the plan, in its order
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PlanPart>,
    /// Time from which ages are counted
    pub now: Timestamp,
    pub seq: u64,
}

/// The beginning of a list.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    /// Number of those that are left out
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// Numbers of tasks without parts; all but `total` add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Counts {
    pub ready: u64,
    /// Wait for other tasks
    pub blocked: u64,
    /// Wait for their time
    pub waiting: u64,
    pub in_work: u64,
    pub in_review: u64,
    pub failed: u64,
    /// Cancelled, or left the plan
    pub cancelled: u64,
    pub done: u64,
    pub total: u64,
}

/// What is looked at, and how much of each list is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    /// A path such as P1.M2; agents and messages are shown whatever it is
    pub scope: Option<&'a str>,
    /// Which rows of the lists are wanted
    pub filter: &'a Filter,
    pub rows: usize,
}

impl Board {
    pub fn of(state: &State, look: &Look<'_>) -> Self {
        let sorted = Sorted::of(state, look.scope);
        let held: HashMap<_, _> = sorted.held.iter().map(|one| (&one.task.id, *one)).collect();
        let mut groups = blocked::groups(state, look.scope, &sorted);
        let (mut agents, ended) = agents::rows(state, look, &held);
        let mut waits = waits::all(state, look, &sorted, &groups, &agents);
        let failed = card::failed(&sorted, &blocked::counts(&groups), look);
        look.filter.waits(&sorted, &mut waits);
        look.filter.agents(&sorted, &mut agents);
        look.filter.groups(&sorted, &mut groups);
        Self {
            head: pace::head(state, look, &sorted),
            counts: sorted.counts,
            waits: Rows::of(waits, look.rows),
            agents: Rows::of(agents, look.rows),
            ended,
            next: card::next(state, look, &sorted),
            blocked: Rows::of(groups, look.rows),
            failed,
            retries: card::retries(&sorted, look),
            done: card::done(&sorted, look),
            latest: Vec::new(),
            parts: parts::first(state),
            now: look.now,
            seq: state.seq(),
        }
    }
}

impl<T> Rows<T> {
    fn of(mut all: Vec<T>, most: usize) -> Self {
        let more = all.len().saturating_sub(most);
        all.truncate(most);
        Self { rows: all, more }
    }

    /// The first of `all`, made into rows.
    fn made<'s>(
        all: &[Numbered<'s>],
        look: &Look<'_>,
        row: impl FnMut(&Numbered<'s>) -> T,
    ) -> Self {
        let mut fitting = all.iter().filter(|one| look.filter.fits(one));
        let rows = fitting.by_ref().take(look.rows).map(row).collect();
        Self { rows, more: fitting.count() }
    }

    pub fn total(&self) -> usize {
        self.rows.len() + self.more
    }

    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_zero_of_many(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
pub(crate) mod tests;
