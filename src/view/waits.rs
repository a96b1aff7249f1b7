//! What waits for the person: each with what to do about it.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use super::agents::{AgentRow, Sign, is_here};
use super::blocked::{Group, counts};
use super::card::{Last, Named, begun};
use super::sorted::{Numbered, Sorted};
use crate::state::State;
use crate::state::agent::{Agent, Demands, Role, WaitReason};
use crate::state::claim::in_scope;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, MessageId};
use crate::state::message::MessageKind;
use crate::state::plan::Unread;
use crate::state::standing::Counts;
use crate::state::task::Task;
use crate::state::time::Timestamp;

/// Agents that may be compared with what ready tasks demand: more are not looked for.
const COMPARED: usize = 1_000_000;

/// A command as it is typed behind `callboard`; words in capitals stand for what the person adds.
pub type Remedy = Vec<String>;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Wait {
    pub kind: WaitKind,
    /// What it is about: the name of an agent, `#12` of a task, or the id of a message
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// One line; empty if the caller may not read it
    pub text: String,
    /// Answers that a question offers, for those who may read it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The attempt whose result waits for a reviewer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Where the person can answer, such as the terminal
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "where")]
    pub place: Option<String>,
    /// Commands that end it, the likeliest first
    pub remedies: Vec<Remedy>,
}

/// Kinds of what waits, in their order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// An agent at a prompt that asks to permit something
    Permission,
    /// An agent at its prompt
    Input,
    Question,
    Message,
    /// A result to approve or to send back
    Review,
    Failed,
    /// An agent that holds a task and gives no sign
    NoSign,
    /// Ready tasks that no agent is there to take
    Untaken,
    /// Nothing moves, and tasks are left
    Stuck,
    /// No task is left, and lines of a plan that look like work are in none
    Unread,
}

impl WaitKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Input => "input",
            Self::Question => "question",
            Self::Message => "message",
            Self::Review => "review",
            Self::Failed => "failed",
            Self::NoSign => "no sign",
            Self::Untaken => "untaken",
            Self::Stuck => "stuck",
            Self::Unread => "unread",
        }
    }
}

impl Wait {
    fn new(kind: WaitKind, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            agent: None,
            task: None,
            message: None,
            since: None,
            text: text.into(),
            options: Vec::new(),
            attempt: None,
            place: None,
            remedies: Vec::new(),
        }
    }
}

fn typed(words: &[&str]) -> Remedy {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// All that waits, by kind, the oldest first within each.
pub(super) fn all(
    state: &State,
    look: &Look<'_>,
    sorted: &Sorted<'_>,
    groups: &[Group],
    agents: &[AgentRow],
) -> Vec<Wait> {
    let blocks = counts(groups);
    let mut waits: Vec<Wait> = agents.iter().filter_map(of_agent).collect();
    waits.extend(messages(state, sorted));
    waits.extend(sorted.in_review.iter().map(in_review));
    waits.extend(
        sorted
            .failed
            .iter()
            .map(|one| failed(one, blocks.get(&one.task.id).copied().unwrap_or_default())),
    );
    waits.extend(untaken(state, look, sorted));
    waits.extend(stuck(state, groups));
    waits.extend(unread(state));
    waits.sort_by_key(|wait| (wait.kind, wait.since));
    waits
}

fn of_agent(row: &AgentRow) -> Option<Wait> {
    let name = row.id.as_str();
    let wait = match (row.sign, &row.waits) {
        (Sign::Waiting, Some(waiting)) => {
            let kind = match waiting.reason {
                WaitReason::Permission => WaitKind::Permission,
                WaitReason::Input => WaitKind::Input,
            };
            let text = waiting.what.as_deref().map(begun).unwrap_or_default();
            Wait {
                since: Some(waiting.since),
                place: waiting.place.clone(),
                ..Wait::new(kind, name, text)
            }
        }
        (Sign::Quiet | Sign::Gone, _) => {
            let task = row.task.as_ref()?;
            let has = if row.sign == Sign::Gone { "its process has ended" } else { "no sign" };
            Wait {
                since: Some(row.last_sign),
                remedies: vec![typed(&["release", &task.short()])],
                ..Wait::new(
                    WaitKind::NoSign,
                    name,
                    format!("{has}; holds {} {}", task.name(), task.title),
                )
            }
        }
        _ => return None,
    };
    Some(Wait { agent: Some(row.id.clone()), task: row.task.clone(), ..wait })
}

/// What the person has not read.
fn messages(state: &State, sorted: &Sorted<'_>) -> Vec<Wait> {
    let human = AgentId::trusted(HUMAN);
    let unread = state.unread(&human).map(|message| {
        let kind = match message.kind {
            MessageKind::Request => WaitKind::Question,
            MessageKind::Inform | MessageKind::Reply => WaitKind::Message,
        };
        let remedy = match kind {
            WaitKind::Question => typed(&["answer", &message.name(), "TEXT"]),
            _ => typed(&["messages"]),
        };
        Wait {
            agent: Some(message.from.clone()),
            task: message.task_id.as_ref().map(|id| sorted.named(id)),
            message: Some(message.id.clone()),
            since: Some(message.sent_at),
            options: message.options.clone(),
            remedies: vec![remedy],
            ..Wait::new(kind, message.name(), format!("{}: {}", message.from, begun(&message.text)))
        }
    });
    unread.collect()
}

fn in_review(one: &Numbered<'_>) -> Wait {
    let named = Named::of(Some(one.number), one.task);
    let id = &named.short();
    Wait {
        agent: one.task.claimed_by.clone(),
        since: one.task.in_review_since(),
        attempt: Some(one.task.attempt),
        remedies: vec![typed(&["approve", id]), typed(&["reject", id, "REASON"])],
        ..Wait::new(WaitKind::Review, named.name(), named.title.clone())
    }
    .about(named)
}

fn failed(one: &Numbered<'_>, blocks: usize) -> Wait {
    let (task, last) = (one.task, Last::of(one.task));
    let named = Named::of(Some(one.number), task);
    let error = last.error.filter(|error| !error.is_empty());
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    let wait = if blocks == 0 { String::new() } else { format!("; {blocks} wait for it") };
    let id = &named.short();
    Wait {
        agent: last.agent,
        since: last.at,
        remedies: vec![typed(&["retry", id]), typed(&["show", id])],
        ..Wait::new(WaitKind::Failed, named.name(), format!("{}{error}{wait}", named.title))
    }
    .about(named)
}

impl Wait {
    fn about(self, task: Named) -> Self {
        Self { task: Some(task), ..self }
    }
}

/// Ready tasks that no agent is there to take: none at all, or none that has what they demand.
fn untaken(state: &State, look: &Look<'_>, sorted: &Sorted<'_>) -> Option<Wait> {
    if state.board().paused.is_some() {
        return None;
    }
    let workers: Vec<&Arc<Agent>> = state.agents().filter(|one| may_take(one, look.now)).collect();
    let mut budget = COMPARED;
    let mut judged: HashMap<*const Demands, bool> = HashMap::new();
    let mut is_untaken = |task: &Task| {
        *judged.entry(Arc::as_ptr(&task.demands)).or_insert_with(|| {
            budget = budget.saturating_sub(workers.len());
            budget > 0 && !workers.iter().any(|agent| task.demands.met_by(agent))
        })
    };
    let ready = state.ready_in_order().into_iter().filter(|task| in_scope(task, look.scope));
    let left: Vec<_> = ready.filter(|task| is_untaken(task)).collect();
    let first = left.first()?;
    let named = sorted.named(&first.id);
    let demands = first.demands.described();
    let who = match (workers.is_empty(), demands.as_slice()) {
        (true, []) => "no agent to take them".to_owned(),
        (true, demands) => format!("no agent to take them; they demand {}", demands.join(", ")),
        (false, demands) => format!("no agent has what they demand: {}", demands.join(", ")),
    };
    let others =
        if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
    let since = left.iter().map(|task| state.ready_since(task)).min();
    Some(Wait {
        since,
        remedies: vec![typed(&["connect", "CLIENT"]), typed(&["work", "--exec", "COMMAND"])],
        ..Wait::new(
            WaitKind::Untaken,
            format!("{} ready", left.len()),
            format!("{who}: {} {}{others}", named.name(), named.title),
        )
    })
}

/// Whether the agent takes tasks, now or when it is done with those that it holds.
fn may_take(agent: &Agent, now: Timestamp) -> bool {
    agent.role != Role::Observer && agent.id.as_str() != HUMAN && is_here(agent, now)
}

/// Tasks are left, and nothing is ready, held or waiting for its time.
/// What was not read of plans, once nothing else is left.
fn unread(state: &State) -> Vec<Wait> {
    let Counts { available, claimed, in_progress, .. } = state.counts();
    let unread =
        if available + claimed + in_progress == 0 { state.unread_lines() } else { Vec::new() };
    let wait = |one: Unread| {
        let file = one.file.as_deref().unwrap_or("FILE");
        let remedies = ["--lists", "--lists=false"].map(|lists| typed(&["import", file, lists]));
        let text = one.to_string();
        Wait { remedies: remedies.into(), ..Wait::new(WaitKind::Unread, one.plan, text) }
    };
    unread.into_iter().map(wait).collect()
}

fn stuck(state: &State, groups: &[Group]) -> Option<Wait> {
    let worst = groups.first().filter(|_| state.is_deadlocked())?;
    let by = worst.by.first();
    let names = |all: &[Named]| all.iter().map(Named::name).collect::<Vec<_>>().join(", ");
    let (cause, remedy) = match (worst.behind, by) {
        (super::Behind::Ended, Some(by)) => {
            let status = by.status.map_or("gone", |status| status.as_str());
            let word = match status {
                "obsolete" => typed(&["edit", "TASK", "--no-depends"]),
                _ => typed(&["retry", &by.short()]),
            };
            (
                format!("{} {} is {status}, and {} wait for it", by.name(), by.title, worst.tasks),
                word,
            )
        }
        (super::Behind::Gone, Some(by)) => {
            let cause = format!("{} is not there any more, and {} wait for it", by.id, worst.tasks);
            (cause, typed(&["edit", "TASK", "--no-depends"]))
        }
        _ => {
            let cause = format!("these wait for each other: {}", names(&worst.first));
            (cause, typed(&["edit", "TASK", "--no-depends"]))
        }
    };
    Some(Wait {
        task: by.cloned(),
        since: state.board().last_activity.known(),
        remedies: vec![remedy],
        ..Wait::new(WaitKind::Stuck, "queue", cause)
    })
}
