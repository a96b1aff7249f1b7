//! Who may do what: the checks that operations make before they decide.

use std::sync::Arc;

use super::State;
use super::agent::{Agent, Role};
use super::apply::lease_end;
use super::event::Event;
use super::id::{AgentId, ParticipantId, TaskId};
use super::policy::Policy;
use super::refusal::Refusal;
use super::task::{Attempt, Outcome, Task, TaskStatus};
use super::time::{SECOND, Timestamp};

/// Acts where no agent is named, and counts as a leader.
pub use super::id::HUMAN;

impl State {
    pub fn known_task(&self, id: &TaskId) -> Result<&Arc<Task>, Refusal> {
        if let Some(task) = self.task(id) {
            return match task.run {
                None => Ok(task),
                Some(_) => Err(Refusal::IsRun {
                    task: id.clone(),
                    next: "see get_run, report_run, update_run, stop_run",
                }),
            };
        }
        match self.retired_task(id) {
            Some(stub) => Err(Refusal::WrongStatus {
                task: id.clone(),
                status: stub.status,
                action: "changed",
                next: "it has retired; read it with get_task".to_owned(),
            }),
            None => Err(Refusal::UnknownTask { task: id.clone() }),
        }
    }

    /// Checks that a page of tasks may begin after `id`.
    pub fn known_cursor(&self, id: &TaskId) -> Result<(), Refusal> {
        match self.retired_task(id) {
            Some(_) => Err(Refusal::CursorRetired { after: id.clone() }),
            None => self.known_task(id).map(drop),
        }
    }

    pub fn known_agent(&self, id: &AgentId) -> Result<&Arc<Agent>, Refusal> {
        self.agent(id).ok_or_else(|| Refusal::UnknownAgent { agent: id.clone() })
    }

    /// The agent that a call is about.
    pub fn agent_called(&self, id: &str) -> Result<&Arc<Agent>, Refusal> {
        let id = AgentId::checked(id)?;
        self.agent(&id).ok_or(Refusal::NoAgentCalled { agent: id })
    }

    /// Checks that `actor` is registered; no actor stands for the board's owner.
    pub fn takes_part(&self, actor: Option<&AgentId>) -> Result<(), Refusal> {
        let Some(id) = actor.filter(|id| id.as_str() != HUMAN) else { return Ok(()) };
        self.known_agent(id).map(drop)
    }

    /// Checks that `actor` is a leader; no actor stands for the board's owner, who is one.
    pub fn leads(&self, actor: Option<&AgentId>, action: &'static str) -> Result<(), Refusal> {
        let Some(id) = actor.filter(|id| id.as_str() != HUMAN) else { return Ok(()) };
        let agent = self.known_agent(id)?;
        if agent.role == Role::Leader {
            return Ok(());
        }
        Err(Refusal::NotLeader { agent: id.clone(), role: agent.role, action })
    }

    /// The open attempt of `task`, if `agent` holds it and `given`, if set, is its number.
    pub fn own_attempt(
        &self,
        agent: &AgentId,
        id: &TaskId,
        given: Option<u32>,
    ) -> Result<&Attempt, Refusal> {
        self.known_agent(agent)?;
        let task = self.known_task(id)?;
        own_open(task, agent, given, not_held)
    }

    /// The event that notes that `agent` knows of its claim, the first time that it names the task.
    pub fn acted_on(&self, agent: Option<&AgentId>, id: &TaskId) -> Option<Event> {
        let open = self.task(id)?.open_attempt().filter(|open| Some(&open.agent) == agent)?;
        (!open.acted).then(|| Event::Noted { task: id.clone(), note: None })
    }

    /// True if `agent` ended the task in that way in its last attempt, and `given`, if set, is that
    /// attempt. What waits for a reviewer counts as done. A task that a plan marked as done counts only if the agent completed it.
    pub fn has_ended(
        &self,
        agent: &AgentId,
        id: &TaskId,
        given: Option<u32>,
        like: TaskStatus,
    ) -> bool {
        let same = |attempt: u32| given.is_none_or(|given| given == attempt);
        if let Some(task) = self.task(id) {
            let last = task.attempts.last();
            let own = last.filter(|one| one.agent == *agent && same(one.number));
            let is_like = task.status == like
                || like == TaskStatus::Done && task.status == TaskStatus::Review;
            return is_like
                && own.is_some_and(|own| {
                    like != TaskStatus::Done || own.outcome == Some(Outcome::Done)
                });
        }
        let stub = self.retired_task(id).filter(|stub| stub.status == like);
        stub.is_some_and(|stub| stub.agent.as_ref() == Some(agent) && same(stub.attempt))
    }

    /// The event that renews `agent`'s leases and presence, if enough has changed to be worth
    /// recording.
    pub fn seen(
        &self,
        agent: &AgentId,
        through: Option<&ParticipantId>,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Event> {
        const WORTH_RECORDING: i64 = 20 * SECOND;
        let known = self.agent(agent)?;
        let joins = through.is_some_and(|one| !known.present_through.contains(one));
        let present = through.is_some() || known.is_present();
        let lease_millis = policy.lease_millis(present);
        let grows = |task: &Arc<Task>| {
            let until = lease_end(task, present, lease_millis, now);
            let worth = |open: &Attempt| {
                open.stepped || until.since(open.lease_until) > until.since(now) / 10
            };
            task.open_attempt().is_some_and(worth)
        };
        let waited = known.waiting.is_some();
        let hears_stop = known.stop_asked().is_some_and(|(_, heard)| !heard);
        let due = joins
            || waited
            || hears_stop
            || now.since(known.last_heartbeat) >= WORTH_RECORDING
            || known.current_tasks.iter().filter_map(|id| self.task(id)).any(grows);
        due.then(|| Event::AgentSeen {
            agent: agent.clone(),
            through: through.cloned(),
            lease_millis,
            answered: None,
            waited,
        })
    }
}

/// The open attempt of `task`, if `agent` holds it and `given`, if set, is its number; `over` makes
/// the refusal if no attempt is open.
pub fn own_open<'t>(
    task: &'t Task,
    agent: &AgentId,
    given: Option<u32>,
    over: fn(&Task) -> Refusal,
) -> Result<&'t Attempt, Refusal> {
    let Some(open) = task.open_attempt() else { return Err(over(task)) };
    if open.agent != *agent {
        return Err(held_by_other(task, open));
    }
    match given {
        Some(number) if number != open.number => Err(attempt_over(task, number)),
        _ => Ok(open),
    }
}

/// The refusal for an attempt that is not the current one.
pub fn attempt_over(task: &Task, given: u32) -> Refusal {
    Refusal::AttemptOver {
        task: task.id.clone(),
        given,
        current: task.attempt,
        status: task.status,
        holder: task.open_attempt().map(|open| open.agent.clone()),
        kept: None,
        next: match task.open_attempt() {
            Some(_) => "give that one if you mean it, or leave attempt out",
            None => "claim other work with claim_task",
        },
    }
}

pub fn not_held(task: &Task) -> Refusal {
    let next = match task.status {
        TaskStatus::Available => format!("claim it with claim_task `{}`", task.id),
        TaskStatus::Failed | TaskStatus::Cancelled => {
            format!("a leader can retry_task `{}`", task.id)
        }
        TaskStatus::Review => {
            format!("approve_task `{0}` or reject_task `{0}` ends its review", task.id)
        }
        _ => "claim another with claim_task".to_owned(),
    };
    Refusal::NotHeld { task: task.id.clone(), status: task.status, next }
}

pub fn held_by_other(task: &Task, open: &Attempt) -> Refusal {
    Refusal::HeldByOther {
        task: task.id.clone(),
        holder: open.agent.clone(),
        attempt: open.number,
        lease_until: open.lease_until,
    }
}
