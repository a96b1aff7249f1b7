//! The workflow's name, and its agents: who they are, and that no other process works as them.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};

use super::own::Own;
use super::{Arguments, continuing};
use crate::cli::Session;
use crate::participant::{AgentChoice, CallError, Caller, Handle, presence};
use crate::state::id::{AgentId, ParticipantId, WorkflowId};
use crate::state::refusal::Refusal;

/// Names for a workflow that are tried before the worker gives up.
const NAMES: u32 = 10_000;

/// Name of the workflow, as a start now would choose it; errors are those that the start would
/// meet.
pub(super) async fn name(
    session: &Session,
    arguments: &Arguments,
    handle: &Handle,
) -> anyhow::Result<String> {
    if arguments.worktree {
        Own::start(&session.cwd)?;
    }
    let in_use = async |workflow: &str| {
        let agents = ids(workflow, arguments.agents).into_iter().collect();
        present(session, handle, agents).await
    };
    if let Some(workflow) = &arguments.workflow {
        known_or_new(session, arguments, handle, workflow).await?;
        return match in_use(workflow).await? {
            Some(pid) => Err(self::in_use(workflow, pid).into()),
            None => Ok(workflow.clone()),
        };
    }
    for number in 1..NAMES {
        let workflow = format!("work-{number}");
        if is_free(session, arguments, handle, &workflow).await?
            && in_use(&workflow).await?.is_none()
        {
            return Ok(workflow);
        }
    }
    Err(no_name())
}

/// The agents at work, and what the board knows about the workflow.
pub(super) struct Enlisted {
    pub(super) workflow: String,
    pub(super) agents: Vec<AgentId>,
    /// Agents of an earlier start with more agents that still hold a task.
    pub(super) others: Vec<AgentId>,
    pub(super) known: Option<Value>,
}

pub(super) async fn enlist(
    session: &Session,
    arguments: &Arguments,
    handle: &Handle,
) -> anyhow::Result<Enlisted> {
    let Some(workflow) = &arguments.workflow else {
        for number in 1..NAMES {
            let workflow = format!("work-{number}");
            if !is_free(session, arguments, handle, &workflow).await? {
                continue;
            }
            match register(session, arguments, handle, &ids(&workflow, arguments.agents)).await {
                Err(CallError::Refused(Refusal::AgentInUse { .. })) => {}
                registered => {
                    registered?;
                    let agents = ids(&workflow, arguments.agents);
                    return Ok(Enlisted { workflow, agents, others: Vec::new(), known: None });
                }
            }
        }
        return Err(no_name());
    };
    let known = known_or_new(session, arguments, handle, workflow).await?;
    let agents = ids(workflow, arguments.agents);
    let before = agents_of(&known);
    let is_own = |id: &AgentId| {
        let number =
            id.as_str().strip_prefix(workflow.as_str()).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| {
            number.parse::<u16>().is_ok_and(|parsed| parsed.to_string() == number)
        })
    };
    let others: Vec<_> =
        before.into_iter().filter(|id| is_own(id) && !agents.contains(id)).collect();
    let holding = handle.look(move |state| {
        let holds =
            |id: &AgentId| state.agent(id).is_some_and(|agent| !agent.current_tasks.is_empty());
        others.into_iter().filter(holds).collect::<Vec<_>>()
    });
    let others = holding.await?;
    let all: Vec<_> = agents.iter().chain(&others).cloned().collect();
    match register(session, arguments, handle, &all).await {
        Err(CallError::Refused(Refusal::AgentInUse { pid, .. })) => {
            return Err(in_use(workflow, pid).into());
        }
        registered => registered?,
    }
    Ok(Enlisted { workflow: workflow.clone(), agents, others, known: Some(known) })
}

fn no_name() -> anyhow::Error {
    anyhow!("every name up to work-{NAMES} is taken; give one with --workflow")
}

/// Whether an unnamed workflow can take this name.
async fn is_free(
    session: &Session,
    arguments: &Arguments,
    handle: &Handle,
    workflow: &str,
) -> anyhow::Result<bool> {
    let known = known(handle, workflow).await?;
    Ok(!known["workflow"].is_object()
        && left(session, arguments, &ids(workflow, arguments.agents)).is_none())
}

/// What the board knows about a named workflow. Refuses one that can neither begin nor continue.
async fn known_or_new(
    session: &Session,
    arguments: &Arguments,
    handle: &Handle,
    workflow: &str,
) -> anyhow::Result<Value> {
    let known = known(handle, workflow).await?;
    if !known["workflow"].is_object() {
        if let Some(left) = left(session, arguments, &ids(workflow, arguments.agents)) {
            bail!(
                "workflow {workflow} is new, but {left} is there from an earlier one of that \
                 name, with its code; give another --workflow, or remove it (git worktree remove \
                 --force PATH; git branch -D BRANCH)"
            );
        }
    } else if !arguments.continued {
        // If a process works for it right now, the way out is another one.
        if let Some(pid) = present(session, handle, agents_of(&known)).await? {
            return Err(in_use(workflow, pid).into());
        }
        let (workflow, command) = (WorkflowId::trusted(workflow), continuing(workflow));
        return Err(CallError::Refused(Refusal::WorkflowExists { workflow, command }).into());
    }
    Ok(known)
}

pub(super) fn agents_of(known: &Value) -> BTreeSet<AgentId> {
    let agents =
        known["workflow"]["agents"].as_array().into_iter().flatten().filter_map(Value::as_str);
    agents.filter_map(|id| AgentId::checked(id).ok()).collect()
}

/// Process id of a live process through which one of these agents works.
async fn present(
    session: &Session,
    handle: &Handle,
    agents: BTreeSet<AgentId>,
) -> anyhow::Result<Option<u32>> {
    let through = handle.look(move |state| {
        let through =
            agents.iter().filter_map(|id| state.agent(id)?.present_through.iter().next().cloned());
        let through = through.filter_map(|one| state.participant(&one));
        through.map(|one| (one.id.clone(), one.pid)).collect::<Vec<_>>()
    });
    // The end of a process is recorded only by the next call that writes.
    let is_present =
        |(id, _): &(ParticipantId, u32)| presence::is_present(session.dir(), id.as_str());
    Ok(through.await?.into_iter().find(is_present).map(|(_, pid)| pid))
}

/// Worktrees or branches that an earlier workflow of this name has left; only with --worktree.
fn left(session: &Session, arguments: &Arguments, agents: &[AgentId]) -> Option<String> {
    let mut agents = agents.iter().filter(|_| arguments.worktree);
    agents.find_map(|agent| Own::left(&session.cwd, session.dir(), agent.as_str()))
}

fn in_use(workflow: &str, pid: u32) -> CallError {
    CallError::Refused(Refusal::WorkflowInUse { workflow: WorkflowId::trusted(workflow), pid })
}

pub(super) fn ids(workflow: &str, agents: u16) -> Vec<AgentId> {
    (1..=agents).map(|number| AgentId::trusted(format!("{workflow}-{number}"))).collect()
}

pub(super) async fn known(handle: &Handle, workflow: &str) -> Result<Value, CallError> {
    handle.call("get_checkpoint", json!({"workflow_id": workflow}), &Caller::default()).await
}

async fn register(
    session: &Session,
    arguments: &Arguments,
    handle: &Handle,
    agents: &[AgentId],
) -> Result<(), CallError> {
    for agent in agents {
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let registration = json!({
            "agent_id": agent,
            "role": "worker",
            "capabilities": arguments.capabilities,
            "max_concurrent": 1,
            "properties": {"hostname": hostname, "project_dir": session.cwd.to_string_lossy(), "type": "work"},
        });
        let caller = Caller {
            agent: AgentChoice::Named(agent.clone()),
            place: session.place(),
            ..Caller::default()
        };
        handle.call("register_agent", registration, &caller).await?;
    }
    Ok(())
}
