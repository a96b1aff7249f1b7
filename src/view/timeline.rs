//! Who worked when: the attempts of each agent.

use std::collections::BTreeMap;

use super::profile::{Worked, worked};
use crate::state::State;
use crate::state::id::AgentId;
use crate::state::time::Timestamp;

/// Most agents of a timeline, those that worked last.
const LANES: usize = 60;

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub since: Timestamp,
    pub now: Timestamp,
    /// Attempts by agent, each the newest first
    pub lanes: Vec<(AgentId, Vec<Worked>)>,
    /// Number of agents that are left out
    pub more: usize,
    pub seq: u64,
}

impl Timeline {
    /// The last `millis`.
    pub fn of(state: &State, now: Timestamp, millis: i64) -> Self {
        let since = now - millis;
        let mut lanes: BTreeMap<AgentId, Vec<Worked>> = BTreeMap::new();
        for one in worked(state, |_| true) {
            if one.until.is_none_or(|until| until >= since) {
                lanes.entry(one.agent.clone()).or_default().push(one);
            }
        }
        let mut lanes: Vec<_> = lanes.into_iter().collect();
        let more = lanes.len().saturating_sub(LANES);
        if more > 0 {
            let last = |lane: &(AgentId, Vec<Worked>)| lane.1.first().map(|one| one.since);
            lanes.sort_by_key(|lane| std::cmp::Reverse(last(lane)));
            lanes.truncate(LANES);
            lanes.sort_by(|one, other| one.0.cmp(&other.0));
        }
        Self { since, now, lanes, more, seq: state.seq() }
    }
}
