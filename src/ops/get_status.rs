use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::privacy::{may_read, withhold};
use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::agent::{Agent, Role, Waiting};
use crate::state::attention::{Blocked, ForHuman, InReview, Parked, TEXT_SHOWN};
use crate::state::claim::{in_scope, path_in_scope};
use crate::state::document::{Pause, PlanVersion};
use crate::state::duration::Remaining;
use crate::state::guard::HUMAN;
use crate::state::health::Health;
use crate::state::hierarchy::Progress;
use crate::state::id::{AgentId, TaskId};
use crate::state::plan::Unread;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::standing::Counts;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::{MINUTE, Timestamp};

pub struct GetStatus;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only in a path such as P1.M2
    pub scope: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub goal: Arc<str>,
    pub tasks: Tasks,
    pub total_tasks: u64,
    pub progress_percent: u64,
    pub agents: Agents,
    pub discoveries_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    pub queue: Queue,
    /// Estimates of what is left to do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Remaining>,
    /// How many of tasks.failed are cancelled or obsolete
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_failed: Option<OfFailed>,
    /// How many of tasks.in_progress wait for a reviewer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_in_progress: Option<OfInProgress>,
    /// Tasks whose results wait for a reviewer, the longest first: approve_task or reject_task
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_review: Vec<InReview>,
    /// Tasks that depend on a task that failed or was cancelled: retry that one or update the
    /// dependencies
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by_failure: Vec<Blocked>,
    /// Tasks that failed, out of attempts or given up for good: they wait for a person
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_attention: Vec<Parked>,
    /// Dependency cycles, missing tasks, and what a deadlocked queue waits for
    #[serde(skip_serializing_if = "Health::is_sound")]
    pub graph: Health,
    /// Current version of the plan
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanVersion>,
    /// Plans with lines that look like work and are in no task: import_plan with `lists` as true
    /// makes the entries of lists tasks, and as false it says that none is work
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// Counts of runs, which are not tasks of the queue
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Agents that are present and hold a task, but have not called for the length of a lease
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quiet: Vec<AgentId>,
    /// Agents that wait for a person at a prompt, the longest first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waits>,
    /// Oldest messages that the board's owner has not read
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_human: Vec<ForHuman>,
    #[serde(skip_serializing_if = "is_zero")]
    pub unread_by_human: usize,
    /// Hand edits that were rejected; the reason is in the .txt file beside each
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected_edits: Vec<String>,
    pub seq: u64,
}

/// Five counters that add up to `total_tasks`; cancelled and obsolete tasks count as failed, and
/// tasks in review as in progress.
#[derive(Serialize, JsonSchema)]
pub struct Tasks {
    pub available: u64,
    pub claimed: u64,
    pub in_progress: u64,
    pub done: u64,
    pub failed: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Agents {
    pub total: usize,
    pub leaders: usize,
    pub workers: usize,
    pub active: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Queue {
    pub ready: usize,
    pub blocked: usize,
    pub waiting_retry: usize,
    /// Tasks are left, but none is ready, held or waiting for a retry
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deadlocked: bool,
}

/// A parent task at the top level, or a part of the scope, with its roll-up.
#[derive(Serialize, JsonSchema)]
pub struct Part {
    pub task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    /// Status rolled up from the parts; in_progress once one is held or done
    pub status: &'static str,
    #[serde(flatten)]
    pub progress: Progress,
}

#[derive(Serialize, JsonSchema)]
pub struct Runs {
    pub pending: u64,
    pub claimed: u64,
    pub running: u64,
    pub stopping: u64,
    pub completed: u64,
    pub failed: u64,
    pub stopped: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct OfFailed {
    pub cancelled: u64,
    pub obsolete: u64,
}

/// How many of tasks.in_progress are not worked on.
#[derive(Serialize, JsonSchema)]
pub struct OfInProgress {
    /// Completed, and waiting for a reviewer
    pub review: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Waits {
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(flatten)]
    pub waiting: Waiting,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

const REJECTED_NAMED: usize = 5;
const PARTS_NAMED: usize = 50;
const WAITING_NAMED: usize = 20;

impl Operation for GetStatus {
    const NAME: &'static str = "get_status";
    const DESCRIPTION: &'static str = "Counts of tasks and agents, progress, and what is stuck.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        input::check_scope(params.scope.as_deref(), state)?;
        let scope = params.scope.as_deref().filter(|scope| *scope != "all");
        let board = state.board();
        let counts = scope.map_or_else(|| state.counts(), |scope| counts_in(scope, state));
        Ok(Reply {
            goal: Arc::clone(&board.goal),
            progress_percent: counts.percent(),
            tasks: tasks(&counts),
            total_tasks: counts.total(),
            agents: agents(state, call.now),
            discoveries_count: state.discoveries().len(),
            last_activity: board.last_activity.known(),
            paused: board.paused.clone(),
            queue: queue(scope, state),
            remaining: state.remaining(scope),
            of_failed: of_failed(&counts),
            of_in_progress: (counts.review > 0).then_some(OfInProgress { review: counts.review }),
            in_review: state.in_review(scope),
            blocked_by_failure: state.stuck(scope),
            needs_attention: state.parked(scope),
            graph: state.health(false),
            plan: state.current_plan().map(PlanVersion::brief),
            unread: state.unread_lines(),
            runs: runs(state),
            parts: parts(scope, state),
            quiet: state
                .agents()
                .filter(|agent| is_quiet(agent, call))
                .map(|agent| agent.id.clone())
                .collect(),
            waiting: waiting(state),
            for_human: for_human(state, call),
            unread_by_human: state.unread_count(&AgentId::trusted(HUMAN)),
            rejected_edits: call.history.rejected_edits(REJECTED_NAMED),
            seq: board.seq,
        })
    }
}

fn tasks(counts: &Counts) -> Tasks {
    let Counts { available, claimed, in_progress, done, failed, .. } = *counts;
    Tasks { available, claimed, in_progress, done, failed: failed + counts.called_off() }
}

/// What the person has not read, without the texts that the caller may not read.
fn for_human(state: &State, call: &Call) -> Vec<ForHuman> {
    let hidden = |one: &ForHuman| {
        state.message(&one.message).is_some_and(|message| !may_read(call.principal, message))
    };
    let mut questions = state.questions();
    let all = questions.iter_mut().filter(|one| hidden(one));
    all.for_each(|one| withhold(&mut one.text, &mut one.options));
    questions
}

/// Counts of runs; `None` if there never was a run.
fn runs(state: &State) -> Option<Runs> {
    let count = |status| state.runs().count(status) as u64;
    let archived = state.board().archived_runs;
    (state.runs().live() > 0 || archived.total() > 0).then(|| Runs {
        pending: count(RunStatus::Pending),
        claimed: count(RunStatus::Claimed),
        running: count(RunStatus::Running),
        stopping: count(RunStatus::Stopping),
        completed: count(RunStatus::Completed) + archived.done,
        failed: count(RunStatus::Failed) + archived.obsolete,
        stopped: count(RunStatus::Stopped) + archived.cancelled,
    })
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

/// Counts in a scope, retired tasks included, as the board's are counted.
fn counts_in(scope: &str, state: &State) -> Counts {
    let live = state.tasks().filter(|task| in_scope(task, Some(scope)));
    let live = live.filter(|task| !state.is_parent(&task.id)).map(|task| task.status);
    let retired = state
        .retired()
        .map(|(_, stub)| stub)
        .filter(|stub| !stub.parent && path_in_scope(stub.path.as_deref(), scope));
    let mut counts = Counts::default();
    live.chain(retired.map(|stub| stub.status)).for_each(|status| counts.add(status));
    counts
}

fn queue(scope: Option<&str>, state: &State) -> Queue {
    let deadlocked = state.is_deadlocked();
    if scope.is_none() {
        let (ready, waiting_retry) = (state.ready_count(), state.delayed_count());
        return Queue { ready, blocked: state.blocked_count(), waiting_retry, deadlocked };
    }
    let mut queue = Queue { ready: 0, blocked: 0, waiting_retry: 0, deadlocked };
    let open =
        state.tasks().filter(|task| task.status == TaskStatus::Available && in_scope(task, scope));
    for task in open.filter(|task| !state.is_parent(&task.id)) {
        let counter = match state.is_ready(&task.id) {
            true => &mut queue.ready,
            false if state.is_blocked(task) => &mut queue.blocked,
            false => &mut queue.waiting_retry,
        };
        *counter += 1;
    }
    queue
}

/// Parents at the top level, or, with a scope, the parts directly below it.
fn parts(scope: Option<&str>, state: &State) -> Vec<Part> {
    let tops: Vec<&Arc<Task>> = match scope {
        None => state
            .tasks()
            .filter(|task| task.parent.is_none() && state.has_parts(&task.id))
            .take(PARTS_NAMED)
            .collect(),
        Some(scope) => {
            state.at_path(scope).flat_map(|task| state.parts(&task.id)).take(PARTS_NAMED).collect()
        }
    };
    let part = |task: &Arc<Task>| {
        let mut progress = state.progress(&task.id);
        let is_group = state.is_parent(&task.id);
        if !is_group {
            progress.count(task.status);
        }
        Part {
            task: task.id.clone(),
            path: task.path.clone(),
            title: task.headline().chars().take(TEXT_SHOWN).collect(),
            status: if is_group { progress.word(task.status) } else { task.status.as_str() },
            progress,
        }
    };
    tops.into_iter().map(part).collect()
}

fn of_failed(counts: &Counts) -> Option<OfFailed> {
    let Counts { cancelled, obsolete, .. } = *counts;
    (cancelled + obsolete > 0).then_some(OfFailed { cancelled, obsolete })
}

fn waiting(state: &State) -> Vec<Waits> {
    let waits = |agent: &Arc<Agent>| {
        let waiting = Waiting::clone(agent.waiting.as_ref()?);
        Some(Waits { agent: agent.id.clone(), task: agent.current_task.clone(), waiting })
    };
    let mut waiting: Vec<_> = state.agents().filter_map(waits).collect();
    waiting.sort_by_key(|one| one.waiting.since);
    waiting.truncate(WAITING_NAMED);
    waiting
}

/// True if the agent is present and holds a task, but has not called for the length of a lease.
pub fn is_quiet(agent: &Agent, call: &Call) -> bool {
    let silence = call.now.since(agent.last_heartbeat);
    agent.is_present() && agent.current_task.is_some() && silence > call.policy.lease_millis(false)
}
