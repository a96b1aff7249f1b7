//! Which agents act through this process, and where.

use super::Driver;
use crate::ops::{DefaultAgent, Executed, Operation, RegisterAgent};
use crate::participant::message::Queued;
use crate::state::State;
use crate::state::id::AgentId;

impl Driver {
    /// Replaces `auto` by the agents that act through this process.
    pub(super) fn resolved(&self, default_agent: &DefaultAgent, state: &State) -> DefaultAgent {
        let DefaultAgent::Auto { prefix } = default_agent else { return default_agent.clone() };
        let ours = self.auto.get(prefix).into_iter().flatten();
        let ours: Vec<_> = ours.filter(|id| self.is_ours(id, state)).cloned().collect();
        match ours.as_slice() {
            [] => default_agent.clone(),
            [only] => DefaultAgent::Named(only.clone()),
            _ => DefaultAgent::Several(ours),
        }
    }

    /// The directory in which the call's agent works, if it has told one and the call is not made
    /// from there yet. The directory of a command is the agent's own, that of a server is its
    /// session's.
    pub(super) fn works_elsewhere(&self, call: &Queued, state: &State) -> Option<String> {
        let is_server = call.caller.reader.is_model() || call.site.place.worktree.is_none();
        call.caller.cwd.as_ref().filter(|_| is_server && !call.prepared.fetches())?;
        let steps = call.prepared.steps().ok().flatten().into_iter().flatten();
        let named =
            call.prepared.agent_id().or_else(|| steps.filter_map(|step| step.agent_id()).next());
        let agent = match (named, self.resolved(&call.caller.default_agent(), state)) {
            (Some(id), _) => AgentId::trusted(id),
            (None, DefaultAgent::Named(agent)) => agent,
            _ => return None,
        };
        let told = state.agent(&agent)?.properties.project_dir.as_ref()?;
        (call.site.told.as_ref() != Some(told)).then(|| told.clone())
    }

    /// Whether the agent is registered, and no other process acts as it.
    fn is_ours(&self, agent: &AgentId, state: &State) -> bool {
        let through = state.agent(agent).map(|agent| &agent.present_through);
        through.is_some_and(|through| through.is_empty() || through.contains(&self.participant.id))
    }

    /// Remembers who acted, if the process was started with `auto`: agents that were given a name,
    /// and those that registered under one of their own.
    pub(super) fn note_actor(&mut self, call: &Queued, executed: &Executed, state: &State) {
        let DefaultAgent::Auto { prefix } = call.caller.default_agent() else { return };
        let registers = call.prepared.name() == RegisterAgent::NAME && executed.answer.is_ok();
        let is_told = call.prepared.agent_id().is_none() || registers;
        let ours = |actor: &&AgentId| is_told && self.is_ours(actor, state);
        let Some(actor) = executed.actor.clone().filter(|actor| ours(&actor)) else { return };
        let ours = self.auto.entry(prefix).or_default();
        if !ours.contains(&actor) {
            ours.push(actor);
        }
    }
}
