//! Room for one more agent on a full board: which agents may retire.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::State;
use super::agent::Agent;
use super::event::Event;
use super::guard::HUMAN;
use super::id::AgentId;
use super::limit;
use super::refusal::Refusal;
use super::time::Timestamp;

/// Agents that retire at once to make room.
const RETIRED_AT_ONCE: usize = 100;

impl State {
    /// Checks that there is room for one more agent, `id`. On a full board, returns the event that
    /// retires agents which hold nothing: first those without mail, and of these the ones heard
    /// of longest ago. The board's owner needs no room.
    pub fn room_for_agent(&self, id: &AgentId, now: Timestamp) -> Result<Option<Event>, Refusal> {
        let room = limit::AGENTS.check(self.records.agents.len() + 1);
        if room.is_ok() || id.as_str() == HUMAN || self.agent(id).is_some() {
            return Ok(None);
        }
        let mut away = self.agents_to_spare(now);
        away.sort_by_key(|agent| (self.unread_count(&agent.id) > 0, agent.last_heartbeat));
        away.truncate(self.records.agents.len() - limit::AGENTS.max + RETIRED_AT_ONCE);
        limit::AGENTS.check(self.records.agents.len() + 1 - away.len())?;
        Ok(Some(Event::AgentsRetired {
            agents: away.into_iter().map(|agent| agent.id.clone()).collect(),
        }))
    }

    /// Agents that may retire: away and holding nothing; one with mail only after a week. Workflows
    /// and attempts refer to agents by id, registered or not, so they need none to stay.
    pub(super) fn agents_to_spare(&self, now: Timestamp) -> Vec<&Arc<Agent>> {
        let reserving: BTreeSet<_> = self.reservations().map(|one| &one.agent).collect();
        let is_away = |agent: &Agent| match self.unread_count(&agent.id) {
            0 => !agent.is_about(now),
            _ => agent.is_lost(now),
        };
        let holds_nothing =
            |agent: &Agent| agent.current_tasks.is_empty() && !reserving.contains(&agent.id);
        self.agents()
            .filter(|one| one.id.as_str() != HUMAN && is_away(one) && holds_nothing(one))
            .collect()
    }
}
