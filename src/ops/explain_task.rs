use std::ops::ControlFlow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::risen;
use super::{Annotations, Call, History, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::agent::{Agent, Role};
use crate::state::event::Recorded;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::state::review::Review;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

pub struct ExplainTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Id or path of a task
    pub task_id: String,
    /// Agent for which to judge; one that is not registered counts as a new worker
    pub agent: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    pub status: TaskStatus,
    pub priority: u8,
    /// What its priority has risen to while it was ready, if aging_minutes is set
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_priority: Option<u8>,
    /// True if some agent could claim the task now
    pub claimable: bool,
    /// Why nobody can claim it, and what would change that
    pub reasons: Vec<Reason>,
    /// Agents that could take it when it is ready: present, suited and with room; the likeliest
    /// first
    pub agents: Vec<AgentId>,
    /// Agents that could not take it, and why
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change: Option<Change>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reason {
    pub why: String,
    pub next: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Other {
    pub agent: AgentId,
    pub why: String,
}

/// The newest event about the task.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Change {
    pub seq: u64,
    pub at: Timestamp,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
}

/// Most agents, and most awaited tasks, that are named.
const NAMED: usize = 20;
/// Tasks of a busy agent that are named, and characters of their titles.
const HELD_NAMED: usize = 3;
const TITLE_SHOWN: usize = 60;
/// Newest events that are searched for the last one about the task.
const LOOKED_AT: u64 = 5_000;
const READ_AT_ONCE: u64 = 500;

impl Operation for ExplainTask {
    const NAME: &'static str = "explain_task";
    const DESCRIPTION: &'static str =
        "Why a task is not claimable, who could claim it, and what changed it last.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    // It reads events, which may be large.
    fn is_long(_: &Params, _: Reader) -> bool {
        true
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        let mut reasons = reasons(task, state, call.policy, call.now);
        let mut agents = Vec::new();
        let mut others = Vec::new();
        let known: Vec<_> = state.agents().filter(|agent| agent.id.as_str() != HUMAN).collect();
        let judged = params.agent.as_deref().map(|id| judged(id, state, call.now)).transpose()?;
        for agent in judged.as_ref().map_or(known, |judged| vec![judged]) {
            match obstacle(agent, task, state, call.now) {
                None => agents.push(agent),
                Some(why) => others.push(Other { agent: agent.id.clone(), why }),
            }
        }
        agents.sort_by_key(|agent| {
            (task.was_given_up_by(&agent.id), std::cmp::Reverse(agent.last_heartbeat))
        });
        if agents.is_empty() && task.status.is_unfinished() {
            reasons.push(match (&judged, &others[..]) {
                (Some(agent), [other]) => of_one(agent, other),
                _ => nobody(&others),
            });
        }
        others.truncate(NAMED);
        let last = last_change(&task.id, state, call.history)
            .map_err(|detail| Refusal::HistoryUnread { detail })?;
        Ok(Reply {
            task: task.id.clone(),
            path: task.path.clone(),
            title: task.headline().to_owned(),
            status: task.status,
            priority: task.priority,
            effective_priority: risen(task, state, call),
            claimable: reasons.is_empty(),
            reasons,
            agents: agents.into_iter().take(NAMED).map(|agent| agent.id.clone()).collect(),
            others,
            last_change: last.map(|last| Change {
                seq: last.seq,
                at: last.at,
                kind: last.event.kind().to_owned(),
                by: last.actor,
            }),
        })
    }
}

/// The agent that is asked for, or a new one of that name.
fn judged(id: &str, state: &State, now: Timestamp) -> Result<Arc<Agent>, Refusal> {
    let id = AgentId::checked(id)?;
    Ok(state.agent(&id).cloned().unwrap_or_else(|| Arc::new(Agent::new(id, now))))
}

fn reasons(task: &Task, state: &State, policy: &Policy, now: Timestamp) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut add = |why: String, next: String| reasons.push(Reason { why, next });
    if state.board().paused.is_some() {
        add("all claims are paused".to_owned(), "resume allows them again".to_owned());
    }
    if let Some(kept) = &task.kept_for {
        add(
            format!("it is kept for {} until {}", kept.agent, kept.until),
            format!("wait; assign_task `{}` without an agent opens it to all", task.id),
        );
    }
    if let Some(open) = task.open_attempt() {
        add(
            format!("{} holds it, attempt {}, until {}", open.agent, open.number, open.lease_until),
            format!("wait; a leader can take it back with release_task `{}`", task.id),
        );
    }
    if task.status.is_unfinished()
        && let Err(refusal) = state.refuse_parent(&task.id)
    {
        let parts = match &task.path {
            Some(path) => format!("claim_task with scope {path}"),
            None => "claim one of its parts with claim_task {task_id}".to_owned(),
        };
        add(refusal.to_string(), parts);
        return reasons;
    }
    match task.status {
        TaskStatus::Done => {
            add("it is done".to_owned(), format!("reset_tasks `{}` begins it anew", task.id))
        }
        TaskStatus::Failed | TaskStatus::Cancelled => {
            let error =
                task.result.as_ref().and_then(|result| result.error.as_deref()).unwrap_or_default();
            let error: String = error.chars().take(200).collect();
            add(
                format!("it is {}: {error}", task.status),
                format!("retry_task `{}` makes it available", task.id),
            );
        }
        TaskStatus::Obsolete => {
            add(
                "the plan does not have it any more".to_owned(),
                "put it back into the plan, or create_task".to_owned(),
            );
        }
        TaskStatus::Review => {
            let reviewer = match state.review_of(task, policy) {
                Review::ByLeader => " by a leader",
                Review::ByWorker => " by a worker",
                Review::Required | Review::None | Review::Unsaid => "",
            };
            add(
                format!("it waits for review{reviewer}"),
                format!("approve_task `{0}` or reject_task `{0}`", task.id),
            );
        }
        TaskStatus::Available | TaskStatus::Claimed | TaskStatus::InProgress => {}
    }
    for (id, above) in waits(task, state).into_iter().take(NAMED) {
        let status = state.status_of(id);
        let of = above.map(|above| format!(", as does all of {above}")).unwrap_or_default();
        let (word, next) = match status {
            None => ("which does not exist", format!("update_task `{}` its dependencies", task.id)),
            Some(TaskStatus::Failed) => ("which has failed", format!("retry_task `{id}`")),
            Some(TaskStatus::Cancelled) => ("which was cancelled", format!("retry_task `{id}`")),
            Some(TaskStatus::Obsolete) => {
                ("which is obsolete", format!("update_task `{}` its dependencies", task.id))
            }
            Some(TaskStatus::Claimed | TaskStatus::InProgress) => {
                ("which is being done", "wait for it".to_owned())
            }
            Some(TaskStatus::Review) => {
                ("which waits for review", format!("approve_task `{id}` or reject_task `{id}`"))
            }
            Some(_) => ("which is not done", format!("explain_task `{id}`")),
        };
        add(format!("it waits for {}{of}, {word}", titled(id, state)), next);
    }
    if let Some(until) =
        task.not_before.filter(|until| task.status == TaskStatus::Available && *until > now)
    {
        add(
            format!("it is not tried again before {until}"),
            format!("wait, or retry_task `{}`", task.id),
        );
    }
    reasons
}

/// Why the one agent that is asked for could not take it.
fn of_one(agent: &Agent, other: &Other) -> Reason {
    let next = if agent.has_room() {
        "register_agent with what it can do"
    } else {
        "wait until it is done"
    };
    Reason { why: format!("{} {}", agent.id, other.why), next: next.to_owned() }
}

fn nobody(others: &[Other]) -> Reason {
    let (why, next) = match others {
        [] => (
            "no agent is registered",
            "start one: `callboard work -- COMMAND`, or `callboard connect CLIENT`",
        ),
        _ => (
            "no agent could take it now: see others",
            "change what keeps one of them from it, or register another",
        ),
    };
    Reason { why: why.to_owned(), next: next.to_owned() }
}

/// Unfinished dependencies of the task and of its ancestors, the latter with the ancestor's name.
fn waits<'s>(task: &'s Task, state: &'s State) -> Vec<(&'s TaskId, Option<String>)> {
    if !task.status.is_unfinished() {
        return Vec::new();
    }
    let own = task.dependencies.iter().map(|id| (id, None));
    let inherited = state.ancestors(task).flat_map(|above| {
        let name = above.path.clone().unwrap_or_else(|| above.id.to_string());
        above.dependencies.iter().map(move |id| (id, Some(name.clone())))
    });
    own.chain(inherited).filter(|(id, _)| !state.is_done(id)).collect()
}

/// What keeps this agent from taking the task once it is ready.
fn obstacle(agent: &Agent, task: &Task, state: &State, now: Timestamp) -> Option<String> {
    if agent.role == Role::Observer {
        return Some("observers take no tasks".to_owned());
    }
    let missing = task.demands.missing_from(agent);
    if !missing.is_empty() {
        return Some(format!("has not what it demands: {}", missing.join(", ")));
    }
    if let Some((workflow, exhausted)) = state.spent_workflow(&agent.id) {
        return Some(format!("the budget of its workflow {} is spent: {exhausted}", workflow.id));
    }
    if !agent.is_about(now) && agent.current_tasks.is_empty() {
        let heard = agent.last_heartbeat;
        return Some(format!(
            "is away: it has no process, and was last heard of at {heard}; it can take it if it \
             comes back"
        ));
    }
    let busy = !agent.has_room() && !agent.current_tasks.contains(&task.id);
    busy.then(|| {
        let held = agent.current_tasks.iter().take(HELD_NAMED).map(|id| titled(id, state));
        let held = held.collect::<Vec<_>>().join(", ");
        let (holds, room) = (agent.current_tasks.len(), agent.max_concurrent);
        format!("has no room: it holds {holds} of {room}: {held}")
    })
}

/// The id of a task, and its title if that says something else.
fn titled(id: &TaskId, state: &State) -> String {
    let title: Option<String> =
        state.task(id).map(|task| task.headline().chars().take(TITLE_SHOWN).collect());
    match title.filter(|title| title != id.as_str() && !title.is_empty()) {
        Some(title) => format!("{id} \"{title}\""),
        None => id.to_string(),
    }
}

fn last_change(
    id: &TaskId,
    state: &State,
    history: &dyn History,
) -> Result<Option<Recorded>, String> {
    let mut before = state.seq() + 1;
    let oldest = before.saturating_sub(LOOKED_AT);
    while before > oldest.max(1) {
        let start = (before - 1).saturating_sub(READ_AT_ONCE);
        let mut found = None;
        history.each_after(
            start,
            usize::try_from(before - 1 - start).unwrap_or_default(),
            &mut |recorded| {
                // A rebuilt journal starts at some state, so its first event may lie beyond the
                // range that is asked for.
                if recorded.seq < before && recorded.event.tasks().contains(&id) {
                    found = Some(recorded);
                }
                ControlFlow::Continue(())
            },
        )?;
        if found.is_some() {
            return Ok(found);
        }
        before = start + 1;
    }
    Ok(None)
}
