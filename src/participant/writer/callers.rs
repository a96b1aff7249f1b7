//! Which agents act through this process, and where.

use super::Writer;
use crate::ops::{DefaultAgent, Executed, Operation, RegisterAgent};
use crate::participant::{Queued, kept};
use crate::state::id::AgentId;
use crate::state::task::Place;

impl Writer {
    /// Replaces `auto` by the agents that act through this process.
    pub(super) fn resolved(&self, default_agent: &DefaultAgent) -> DefaultAgent {
        let DefaultAgent::Auto { prefix } = default_agent else { return default_agent.clone() };
        let ours = self.auto.get(prefix).into_iter().flatten().filter(|id| self.is_ours(id));
        let ours: Vec<_> = ours.cloned().collect();
        match ours.as_slice() {
            [] => default_agent.clone(),
            [only] => DefaultAgent::Named(only.clone()),
            _ => DefaultAgent::Several(ours),
        }
    }

    /// The place of the call's agent, if it has said that it works elsewhere than this process.
    pub(super) fn elsewhere(&self, call: &Queued, default_agent: &DefaultAgent) -> Option<Place> {
        let cwd = call.caller.cwd.as_deref()?;
        let state = &self.board.as_ref()?.state;
        let agent = match (call.prepared.agent_id(), default_agent) {
            (Some(id), _) => state.agent(&AgentId::trusted(id)),
            (None, DefaultAgent::Named(agent)) => state.agent(agent),
            _ => None,
        };
        self.whereabouts.elsewhere(agent?, cwd).map(|place| kept(&place))
    }

    /// Whether the agent is registered, and no other process acts as it.
    fn is_ours(&self, agent: &AgentId) -> bool {
        let agent = self.board.as_ref().and_then(|board| board.state.agent(agent));
        let through = agent.map(|agent| &agent.present_through);
        through.is_some_and(|through| through.is_empty() || through.contains(&self.participant.id))
    }

    /// Remembers who acted, if the process was started with `auto`: agents that were given a name, and those that
    /// registered under one of their own.
    pub(super) fn note_actor(&mut self, call: &Queued, executed: &Executed) {
        let DefaultAgent::Auto { prefix } = call.caller.default_agent() else { return };
        let registers = call.prepared.name() == RegisterAgent::NAME && executed.answer.is_ok();
        let is_told = call.prepared.agent_id().is_none() || registers;
        let Some(actor) = executed.actor.as_ref().filter(|actor| is_told && self.is_ours(actor)) else { return };
        let ours = self.auto.entry(prefix).or_default();
        if !ours.contains(actor) {
            ours.push(actor.clone());
        }
    }
}
