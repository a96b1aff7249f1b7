use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::agent::{Agent, Role};
use crate::state::document::Pause;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, MessageId, TaskId};
use crate::state::message::MessageKind;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::time::{MINUTE, Timestamp};

pub struct GetStatus;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    goal: Arc<str>,
    tasks: Tasks,
    total_tasks: u64,
    progress_percent: u64,
    agents: Agents,
    discoveries_count: usize,
    last_activity: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<Pause>,
    queue: Queue,
    /// Of the counts of failed tasks
    #[serde(skip_serializing_if = "Option::is_none")]
    of_failed: Option<OfFailed>,
    /// Tasks that wait for one that failed or was cancelled: retry or update one of the two
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by_failure: Vec<Blocked>,
    /// Agents that hold a task, live, and have not called for the length of a lease
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quiet: Vec<AgentId>,
    /// What the person whose board it is has not answered, oldest first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    for_human: Vec<ForHuman>,
    #[serde(skip_serializing_if = "is_zero")]
    unread_by_human: usize,
    /// Hand edits that were not taken; the reason is in the .txt beside
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected_edits: Vec<String>,
    seq: u64,
}

/// Five counters that add up to `total_tasks`; cancelled and obsolete tasks count as failed.
#[derive(Serialize, JsonSchema)]
struct Tasks {
    available: u64,
    claimed: u64,
    in_progress: u64,
    done: u64,
    failed: u64,
}

#[derive(Serialize, JsonSchema)]
struct Agents {
    total: usize,
    leaders: usize,
    workers: usize,
    active: usize,
}

#[derive(Serialize, JsonSchema)]
struct Queue {
    ready: usize,
    blocked: usize,
    waiting_retry: usize,
    /// Nothing is ready, held or waiting, and tasks are left
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deadlocked: bool,
}

#[derive(Serialize, JsonSchema)]
struct OfFailed {
    cancelled: u64,
    obsolete: u64,
}

#[derive(Serialize, JsonSchema)]
struct Blocked {
    task: TaskId,
    by: Vec<TaskId>,
}

#[derive(Serialize, JsonSchema)]
struct ForHuman {
    message: MessageId,
    from: AgentId,
    kind: MessageKind,
    /// Its beginning
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Messages to a person that are shown, and characters of each.
const MESSAGES_SHOWN: usize = 5;
const TEXT_SHOWN: usize = 200;
/// Blocked tasks that are named; the count is in `queue`.
const BLOCKED_NAMED: usize = 20;
const REJECTED_NAMED: usize = 5;

impl Operation for GetStatus {
    const NAME: &'static str = "get_status";
    const DESCRIPTION: &'static str = "Counts of tasks and agents, progress, and what is stuck.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let board = state.board();
        let total_tasks = state.live_tasks() as u64 + board.archived.total();
        let tasks = tasks(state);
        Ok(Reply {
            goal: Arc::clone(&board.goal),
            progress_percent: (tasks.done * 100 + total_tasks / 2) / total_tasks.max(1),
            tasks,
            total_tasks,
            agents: agents(state, call.now),
            discoveries_count: state.discoveries().len(),
            last_activity: board.last_activity,
            paused: board.paused.clone(),
            queue: queue(state),
            of_failed: of_failed(state),
            blocked_by_failure: blocked(state),
            quiet: state.agents().filter(|agent| is_quiet(agent, call)).map(|agent| agent.id.clone()).collect(),
            for_human: for_human(state),
            unread_by_human: state.unread_count(&AgentId::trusted(HUMAN)),
            rejected_edits: call.history.rejected_edits(REJECTED_NAMED),
            seq: board.seq,
        })
    }
}

fn tasks(state: &State) -> Tasks {
    let count = |status| state.count(status) as u64;
    let archived = state.board().archived;
    Tasks {
        available: count(TaskStatus::Available),
        claimed: count(TaskStatus::Claimed),
        in_progress: count(TaskStatus::InProgress),
        done: count(TaskStatus::Done) + archived.done,
        failed: count(TaskStatus::Failed)
            + count(TaskStatus::Cancelled)
            + count(TaskStatus::Obsolete)
            + archived.cancelled
            + archived.obsolete,
    }
}

fn agents(state: &State, now: Timestamp) -> Agents {
    let with_role = |role| state.agents().filter(|agent| agent.role == role).count();
    Agents {
        total: state.agents().count(),
        leaders: with_role(Role::Leader),
        workers: with_role(Role::Worker),
        active: state.agents().filter(|agent| now.since(agent.last_heartbeat) <= MINUTE).count(),
    }
}

fn queue(state: &State) -> Queue {
    let (ready, waiting_retry) = (state.ready_count(), state.delayed_count());
    let deadlocked = state.blocked_count() > 0 && ready + waiting_retry + state.held_count() == 0;
    Queue { ready, blocked: state.blocked_count(), waiting_retry, deadlocked }
}

fn of_failed(state: &State) -> Option<OfFailed> {
    let archived = state.board().archived;
    let cancelled = state.count(TaskStatus::Cancelled) as u64 + archived.cancelled;
    let obsolete = state.count(TaskStatus::Obsolete) as u64 + archived.obsolete;
    (cancelled + obsolete > 0).then_some(OfFailed { cancelled, obsolete })
}

fn blocked(state: &State) -> Vec<Blocked> {
    let blocked = state.blocked_by_failure().into_iter().take(BLOCKED_NAMED);
    blocked.map(|(task, by)| Blocked { task: task.clone(), by: by.into_iter().cloned().collect() }).collect()
}

fn for_human(state: &State) -> Vec<ForHuman> {
    let human = AgentId::trusted(HUMAN);
    let unread = state.unread(&human).take(MESSAGES_SHOWN);
    let shown = unread.map(|one| ForHuman {
        message: one.id.clone(),
        from: one.from.clone(),
        kind: one.kind,
        text: match one.text.char_indices().nth(TEXT_SHOWN) {
            Some((end, _)) => format!("{}…", &one.text[..end]),
            None => one.text.clone(),
        },
        task_id: one.task_id.clone(),
    });
    shown.collect()
}

/// Its process lives and it holds a task, but it has not called for as long as a lease lasts.
pub fn is_quiet(agent: &Agent, call: &Call) -> bool {
    let silence = call.now.since(agent.last_heartbeat);
    agent.is_present() && agent.current_task.is_some() && silence > call.policy.lease_millis(false)
}
