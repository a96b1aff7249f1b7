use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::agent::{Agent, Properties};
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::Task;
use crate::state::time::{SECOND, Timestamp};

pub struct Heartbeat;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: Option<String>,
    pub note: Option<String>,
    pub attempt: Option<u32>,
    /// Your worktree, if not the server's
    pub project_dir: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Instead of task_id if you hold a run
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<Cow<'static, str>>,
}

impl Operation for Heartbeat {
    const NAME: &'static str = "heartbeat";
    const DESCRIPTION: &'static str =
        "Say that you are alive, with a note, at milestones of long work.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> =
        Some(&["agent_id", "task_id", "note", "project_dir"]);
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        let known = state.known_agent(agent)?;
        let mut events = Vec::new();
        // Other calls record a renewal only after a while; a heartbeat does so after a second.
        if !call.renewed && call.now.since(known.last_heartbeat) >= SECOND {
            let present = call.presence.is_some() || known.is_present();
            events.push(Event::AgentSeen {
                answered: None,
                waited: false,
                agent: agent.clone(),
                through: call.presence.map(|participant| participant.id.clone()),
                lease_millis: call.policy.lease_millis(present),
            });
        }
        events.extend(moved(params, known)?);
        if let Some(note) = &params.note {
            limit::NOTE.check_text(note)?;
        }
        if let Some(task) = noted_task(params, state, call)? {
            let attempt = state.own_attempt(agent, &task, params.attempt)?;
            if !attempt.acted || params.note.is_some() && params.note != attempt.note {
                events.push(Event::Noted { task, note: params.note.clone() });
            }
        }
        Ok(events)
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let current = || state.known_agent(call.agent()?).map(|agent| agent.current_task.clone());
        let held = noted_task(params, state, call)?.map_or_else(current, |id| Ok(Some(id)))?;
        let lease_until =
            held.as_ref().and_then(|id| Some(state.task(id)?.open_attempt()?.lease_until));
        let is_run =
            held.as_ref().and_then(|id| state.task(id)).is_some_and(|task| task.run.is_some());
        let (task_id, run_id) = if is_run { (None, held) } else { (held, None) };
        let warning = params.note.as_ref().filter(|_| task_id.is_none()).map(|_| NOT_KEPT.into());
        Ok(Reply { success: true, task_id, run_id, lease_until, warning })
    }
}

/// The event that notes where the agent works, if that is new.
fn moved(params: &Params, agent: &Agent) -> Result<Option<Event>, Refusal> {
    let Some(dir) = &params.project_dir else { return Ok(None) };
    limit::PATH.check_text(dir)?;
    if !dir.starts_with('/') {
        let wanted = "an absolute path is wanted, such as \"/home/me/project\"".to_owned();
        return Err(Refusal::BadArgument { argument: "project_dir".to_owned(), wanted });
    }
    let properties =
        Properties { project_dir: Some(dir.clone()), ..Properties::clone(&agent.properties) };
    Ok((properties != *agent.properties).then(|| Event::AgentRegistered {
        agent: agent.id.clone(),
        role: agent.role,
        capabilities: BTreeSet::clone(&agent.capabilities),
        tags: BTreeSet::clone(&agent.tags),
        properties,
        metadata: None,
        max_concurrent: agent.max_concurrent,
        takeover: false,
    }))
}

const NOT_KEPT: &str = "the note was not kept: you hold no task that it could be about; \
                        report_run takes the note of a run";

/// The task that the call is about: the one named, or for a note or attempt one that the agent
/// holds. Notes of runs go to `report_run`.
fn noted_task(params: &Params, state: &State, call: &Call) -> Result<Option<TaskId>, Refusal> {
    if let Some(id) = &params.task_id {
        return TaskId::checked(id).map(Some);
    }
    if params.note.is_none() && params.attempt.is_none() {
        return Ok(None);
    }
    let agent = state.known_agent(call.agent()?)?;
    let mut held = agent
        .current_tasks
        .iter()
        .rev()
        .filter_map(|id| state.task(id))
        .filter(|task| task.run.is_none());
    let is_meant = |task: &&Arc<Task>| params.attempt.is_none_or(|number| task.attempt == number);
    // Of several held tasks the newest with the given attempt, else the newest.
    let meant = held.clone().find(is_meant).or_else(|| held.next());
    match meant {
        None if params.attempt.is_some() => Err(Refusal::HoldsNothing),
        _ => Ok(meant.map(|task| task.id.clone())),
    }
}
