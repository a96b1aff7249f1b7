//! The bearer of a server's token, and what it may do. Without a token the caller is the board's
//! owner.

use std::num::NonZeroU32;

use super::{
    AgentArgument, ApplyBatch, CreateTask, CreateTasksBatch, Operation, Prepared, RegisterAgent,
};
use crate::state::State;
use crate::state::agent::Role;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::refusal::Refusal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Name of the token.
    pub token: String,
    pub role: Role,
    /// The only agent that the token may act as; `None` for any.
    pub agent: Option<AgentId>,
    /// Calls per second, if the token has a rate of its own.
    pub rate: Option<NonZeroU32>,
}

/// Writing operations that a worker's token may call without naming an agent.
const OF_NOBODY: [&str; 3] = [CreateTask::NAME, CreateTasksBatch::NAME, ApplyBatch::NAME];

impl Principal {
    /// Refuses what the token's role never allows, whoever acts.
    pub fn check(&self, prepared: &dyn Prepared) -> Result<(), Refusal> {
        match self.role {
            Role::Observer if !prepared.annotations().read_only => self.refuse("change anything"),
            _ => Ok(()),
        }
    }

    fn refuse(&self, action: &'static str) -> Result<(), Refusal> {
        Err(Refusal::TokenRole { token: self.token.clone(), role: self.role, action })
    }

    /// Refuses what the token's role does not allow when `actor` acts.
    pub fn admit(
        &self,
        state: &State,
        prepared: &dyn Prepared,
        actor: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        if prepared.annotations().read_only || self.role == Role::Leader {
            return Ok(());
        }
        let is_of_leaders = prepared.agent_argument() == AgentArgument::None
            && !OF_NOBODY.contains(&prepared.name());
        if is_of_leaders {
            return self.refuse("do this");
        }
        if prepared.name() == RegisterAgent::NAME
            && prepared.params()["role"] == Role::Leader.as_str()
        {
            return self.refuse("register a leader");
        }
        match actor {
            None if OF_NOBODY.contains(&prepared.name()) => Ok(()),
            None => Err(Refusal::AgentMissing),
            Some(agent) if agent.as_str() == HUMAN => {
                self.refuse("act for the person whose board it is; give agent_id")
            }
            Some(agent) if state.agent(agent).is_some_and(|agent| agent.role == Role::Leader) => {
                self.refuse("act as an agent that leads")
            }
            Some(_) => Ok(()),
        }
    }

    /// The agent of a token that may act as one agent only; naming another is refused.
    pub fn own(&self, prepared: &dyn Prepared) -> Result<Option<&AgentId>, Refusal> {
        let Some(own) = &self.agent else { return Ok(None) };
        match prepared.agent_id() {
            Some(given) if given != own.as_str() => {
                Err(Refusal::TokenAgent { token: self.token.clone(), agent: own.clone() })
            }
            _ => Ok(Some(own)),
        }
    }
}
