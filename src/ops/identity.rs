//! Who acts in a call. Nothing is inferred from earlier requests, because several agents may share
//! one connection: the subagents of a session act through their parent's process.
//!
//! 1. The agent is the one that `agent_id` names.
//! 2. Without it, the agent that the process was started for (`--agent NAME`), or that the bearer's
//!    token stands for.
//! 3. Without that, with `--agent auto`, the agent that acts through this process. If there is none
//!    yet, it is the lowest free slot `PREFIX-N`, which an agent of a dead process may have held: a
//!    restarted session goes on with its work. If there are several, the call is refused and they
//!    are named.
//! 4. `register_agent` without `agent_id` returns the process's own agent in case 2. With `--agent
//!    auto` it is always a newcomer's call, since nothing tells a subagent from an agent that has
//!    lost its memory: it takes the lowest slot in which no living agent is at work, and the reply
//!    names the process's other agents with what they hold. An agent that has lost its memory
//!    registers again under its old name, which it finds there. Over HTTP the id is the lowest
//!    `CLIENT-N` that no agent has. Otherwise an id is made up.
//! 5. An id that acts through another living process is refused; `takeover` moves it. A session that
//!    is an agent acts as no other that lives elsewhere, whatever the call.
//! 6. Who may decide as the person is said by the [`Door`] of the call.
//!
//! A repeated registration whose reply was lost leaves an idle slot, which is taken again after
//! `lease_minutes`.

use std::sync::Arc;

use super::{AgentArgument, Call, DefaultAgent, Operation, Prepared, RegisterAgent};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, Chance, ParticipantId};
use crate::state::refusal::{Candidate, Refusal};
use crate::state::reserved::{is_reserved, reads_as};

/// Who stands behind a call, by the door through which it comes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Door {
    /// The page after a login, a token, a question that the client asked its user, the library, and
    /// commands of a shell that no agent's client has started. Whoever names no agent is the
    /// person.
    #[default]
    Person,
    /// MCP over stdio, `--agent`, `CALLBOARD_AGENT`, and commands of a shell that an agent's client
    /// has started. Nobody who comes through it is the person.
    Agent(Inside),
}

/// What a command's surroundings say of the agent that it runs inside of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inside {
    /// What shows that an agent's client has started the shell, for commands.
    pub mark: Option<String>,
    /// Processes of the session that act as agents, besides the calling one.
    pub processes: Vec<ParticipantId>,
}

/// The agent that the call acts as, provided that the caller may act as it.
pub(super) fn identify(
    state: &State,
    prepared: &dyn Prepared,
    call: &Call<'_>,
) -> Result<Option<AgentId>, Refusal> {
    let Some(principal) = call.principal else {
        let actor = actor(state, prepared, call)?;
        return match call.door {
            Door::Person => Ok(actor),
            Door::Agent(inside) => inside.admit(state, prepared, call, actor),
        };
    };
    principal.check(prepared)?;
    let actor = match principal.own(prepared)? {
        Some(_)
            if prepared.annotations().read_only
                && prepared.agent_argument() == AgentArgument::None =>
        {
            None
        }
        Some(own) => Some(own.clone()),
        None => actor(state, prepared, call)?,
    };
    principal.admit(state, prepared, actor.as_ref())?;
    Ok(actor)
}

impl Door {
    /// The agent of a session that has no other.
    fn only_agent(&self, state: &State, call: &Call<'_>) -> Option<AgentId> {
        let Self::Agent(inside) = self else { return None };
        let mut own = inside.own(state, call);
        own.next().filter(|_| own.next().is_none()).map(|agent| agent.id.clone())
    }
}

/// Whether the id reads as the person whose board it is, or as the board.
pub(super) fn reads_as_the_person(agent: &AgentId, call: &Call<'_>) -> bool {
    let id = agent.as_str();
    is_reserved(id) || call.person.is_some_and(|name| reads_as(id, name))
}

impl Inside {
    /// The agent that acts, which is never the person, nor an agent that lives in another session.
    /// A call that changes something without saying whose it is, is the session's only agent's.
    fn admit(
        &self,
        state: &State,
        prepared: &dyn Prepared,
        call: &Call<'_>,
        actor: Option<AgentId>,
    ) -> Result<Option<AgentId>, Refusal> {
        let Some(agent) = actor else {
            let is_anybodys = prepared.annotations().read_only
                || prepared.agent_argument() == AgentArgument::None;
            if is_anybodys {
                return Ok(None);
            }
            let own: Vec<_> = self.own(state, call).map(|agent| agent.id.clone()).collect();
            return match own.as_slice() {
                [] => Ok(None),
                [only] => Ok(Some(only.clone())),
                several => Err(which(state, several)),
            };
        };
        if prepared.name() == RegisterAgent::NAME {
            return Ok(Some(agent));
        }
        if agent.as_str() == HUMAN {
            return Err(Refusal::NotThePerson { agent: Some(agent), mark: self.mark.clone() });
        }
        if state.agent(&agent).is_none() && reads_as_the_person(&agent, call) {
            return Err(Refusal::ReservedId { agent });
        }
        self.refuse_of_another_session(&agent, state, call)?;
        Ok(Some(agent))
    }

    fn is_ours(&self, agent: &Agent, call: &Call<'_>) -> bool {
        is_ours(agent, call) || agent.present_through.iter().any(|one| self.processes.contains(one))
    }

    fn own<'s>(&self, state: &'s State, call: &Call<'_>) -> impl Iterator<Item = &'s Arc<Agent>> {
        state.agents().filter(move |agent| self.is_ours(agent, call))
    }

    /// Refuses an agent that lives in another session, if this one is an agent.
    fn refuse_of_another_session(
        &self,
        id: &AgentId,
        state: &State,
        call: &Call<'_>,
    ) -> Result<(), Refusal> {
        let elsewhere = state.agent(id).filter(|agent| !self.is_ours(agent, call));
        let mut through = elsewhere.into_iter().flat_map(|agent| &agent.present_through);
        let Some(process) = through.find_map(|one| state.participant(one)) else { return Ok(()) };
        let started_as = match call.started_as {
            DefaultAgent::Named(own) => Some(own.clone()),
            _ => None,
        };
        let own = self.own(state, call).map(|agent| agent.id.clone()).next().or(started_as);
        match own.filter(|own| own != id) {
            None => Ok(()),
            Some(own) => Err(Refusal::OfAnotherSession {
                agent: id.clone(),
                pid: process.pid,
                worktree: process.worktree.clone(),
                own,
            }),
        }
    }
}

fn actor(
    state: &State,
    prepared: &dyn Prepared,
    call: &Call<'_>,
) -> Result<Option<AgentId>, Refusal> {
    if let Some(given) = prepared.agent_id() {
        return AgentId::checked(given).map(Some);
    }
    if prepared.name() == RegisterAgent::NAME {
        return Ok(Some(registering(state, call)));
    }
    match (prepared.agent_argument(), call.default_agent) {
        (AgentArgument::None, default) => Ok(author(state, prepared, default, call)),
        (AgentArgument::Optional, DefaultAgent::None) => Ok(None),
        (AgentArgument::Optional, DefaultAgent::Several(_)) if prepared.annotations().read_only => {
            Ok(None)
        }
        (_, DefaultAgent::Named(agent)) => Ok(Some(agent.clone())),
        (_, DefaultAgent::Auto { prefix }) => Ok(Some(free_slot(state, prefix, call))),
        (_, DefaultAgent::Several(agents)) => Err(which(state, agents)),
        (AgentArgument::Required, DefaultAgent::None) => Err(Refusal::AgentMissing),
    }
}

/// The id for an agent that registers without one. A person who registers an agent does not become
/// that agent.
fn registering(state: &State, call: &Call<'_>) -> AgentId {
    match call.started_as {
        DefaultAgent::Named(agent) if agent.as_str() != HUMAN => agent.clone(),
        DefaultAgent::Auto { prefix } => newcomers_slot(state, prefix, call),
        _ => match call.nickname {
            // HTTP shows no sign of life, so an agent that is on the board keeps its name.
            Some(prefix) => lowest(prefix, |id| state.agent(id).is_some()),
            None => made_up(state, call.seed),
        },
    }
}

/// The author of a call that takes no `agent_id`: the agent that the process stands for, if it is
/// registered; of several the first. A free slot that the process has not taken does not count,
/// because another may take it.
fn author(
    state: &State,
    prepared: &dyn Prepared,
    default: &DefaultAgent,
    call: &Call<'_>,
) -> Option<AgentId> {
    let author = match default {
        // A default agent that is not registered may be a typing error.
        DefaultAgent::Named(agent) => state.agent(agent)?.id.clone(),
        DefaultAgent::Several(agents) => state.agent(agents.first()?)?.id.clone(),
        DefaultAgent::Auto { prefix } => {
            let slot = free_slot(state, prefix, call);
            state.agent(&slot).filter(|agent| is_ours(agent, call))?.id.clone()
        }
        DefaultAgent::None => call.door.only_agent(state, call)?,
    };
    Some(author).filter(|author| author.as_str() != HUMAN && !prepared.annotations().read_only)
}

fn which(state: &State, agents: &[AgentId]) -> Refusal {
    let task = |agent: &AgentId| state.agent(agent)?.current_task.clone();
    let candidates =
        agents.iter().map(|agent| Candidate { agent_id: agent.clone(), task: task(agent) });
    Refusal::WhichAgent { agents: candidates.collect() }
}

/// The lowest `<prefix>-N` that no other living process acts as.
pub(super) fn free_slot(state: &State, prefix: &str, call: &Call<'_>) -> AgentId {
    lowest(prefix, |id| state.agent(id).is_some_and(|agent| is_anothers(agent, state, call)))
}

/// The lowest `<prefix>-N` that no living agent uses.
pub(super) fn newcomers_slot(state: &State, prefix: &str, call: &Call<'_>) -> AgentId {
    let is_at_work = |agent: &Agent| {
        let is_quiet = call.now.since(agent.last_heartbeat) >= call.policy.lease_millis(false);
        is_ours(agent, call) && (!is_quiet || !agent.current_tasks.is_empty())
    };
    lowest(prefix, |id| {
        state.agent(id).is_some_and(|agent| is_anothers(agent, state, call) || is_at_work(agent))
    })
}

fn lowest(prefix: &str, is_taken: impl Fn(&AgentId) -> bool) -> AgentId {
    let mut slots = (1_u64..).map(|number| AgentId::trusted(format!("{prefix}-{number}")));
    slots.find(|id| !is_taken(id)).unwrap_or_else(|| AgentId::trusted(prefix))
}

/// True if the agent acts through this process.
pub(super) fn is_ours(agent: &Agent, call: &Call<'_>) -> bool {
    call.presence.is_some_and(|own| agent.present_through.contains(&own.id))
}

/// True if the agent acts through another process, or its process died and left work in another
/// worktree. That work is continued by the next agent that starts in that worktree.
fn is_anothers(agent: &Agent, state: &State, call: &Call<'_>) -> bool {
    let ours = call.presence.map(|participant| &participant.id);
    let is_elsewhere =
        |there: &String| call.place.worktree.as_ref().is_some_and(|here| here != there);
    let left_elsewhere = || {
        let held = agent.current_tasks.iter().filter_map(|id| state.task(id)?.open_attempt());
        held.filter_map(|open| open.place.worktree.as_ref()).any(is_elsewhere)
    };
    agent.present_through.iter().any(|one| Some(one) != ours)
        || !agent.is_present() && left_elsewhere()
}

fn made_up(state: &State, seed: u64) -> AgentId {
    let mut chance = Chance::new(seed);
    let mut names =
        std::iter::repeat_with(move || chance.agent_name()).take(64).map(AgentId::trusted);
    let mut suffixed = Chance::new(!seed);
    names
        .find(|id| state.agent(id).is_none())
        .unwrap_or_else(|| AgentId::trusted(format!("agent-{}", suffixed.base32(8))))
}
