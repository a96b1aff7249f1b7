//! Which tasks a list shows, and in which order. Every test looks at one task alone, so that a list
//! of ten thousand takes ten thousand looks.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, History, input};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::hierarchy;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusFilter {
    #[default]
    All,
    Available,
    Claimed,
    // Those in review, too.
    InProgress,
    Review,
    Done,
    Failed,
    Cancelled,
    Obsolete,
}

impl StatusFilter {
    fn status(self) -> Option<TaskStatus> {
        match self {
            Self::All => None,
            Self::Available => Some(TaskStatus::Available),
            Self::Claimed => Some(TaskStatus::Claimed),
            Self::InProgress => Some(TaskStatus::InProgress),
            Self::Review => Some(TaskStatus::Review),
            Self::Done => Some(TaskStatus::Done),
            Self::Failed => Some(TaskStatus::Failed),
            Self::Cancelled => Some(TaskStatus::Cancelled),
            Self::Obsolete => Some(TaskStatus::Obsolete),
        }
    }

    fn passes(self, status: TaskStatus) -> bool {
        self.status().is_none_or(|wanted| status.counts_as(wanted))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    #[default]
    Created,
    Changed,
    Priority,
    Path,
    Status,
}

/// Names of the orders, as they are typed.
pub const SORTS: [&str; 5] = ["created", "changed", "priority", "path", "status"];

// What the names say has no doc comment, because every tool list would contain it.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[serde(default)]
    #[schemars(extend("default" = "all"))]
    pub status_filter: StatusFilter,
    /// Any of these
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub statuses: Vec<TaskStatus>,
    #[serde(default)]
    pub ready: bool,
    #[serde(default)]
    pub blocked: bool,
    #[serde(default)]
    pub waiting: bool,
    #[serde(default)]
    pub tags: Vec<String>,
    /// All words
    pub text: Option<String>,
    pub min_priority: Option<i64>,
    pub max_priority: Option<i64>,
    /// Who holds or had it
    pub agent: Option<String>,
    /// A path such as P1.M2
    pub scope: Option<String>,
    pub parent: Option<String>,
    #[schemars(with = "Option<String>")]
    pub created_since: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub changed_since: Option<Timestamp>,
    #[serde(default)]
    pub sort: Sort,
    #[serde(default)]
    pub descending: bool,
    /// One line each
    #[serde(default)]
    pub brief: bool,
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

/// What decides a task's place in a list; equal ones stay in order of creation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Created,
    Changed(Timestamp),
    Priority(u8),
    /// Tasks without a path come last; P2 comes before P10.
    Path(bool, Option<Vec<u32>>),
    Status(TaskStatus),
}

impl Sort {
    fn key(self, task: &Task) -> Key {
        match self {
            Self::Created => Key::Created,
            Self::Changed => Key::Changed(changed_at(task)),
            Self::Priority => Key::Priority(task.priority),
            Self::Path => {
                let numbers = task.path.as_deref().and_then(hierarchy::numbers);
                Key::Path(numbers.is_none(), numbers)
            }
            Self::Status => Key::Status(task.status),
        }
    }
}

/// How many tasks are wanted, and those of them that a page may show.
type Selected<'s> = (usize, Box<dyn Iterator<Item = &'s Arc<Task>> + 's>);

/// The tasks that are wanted, in order, behind `after`; and how many there are with those before
/// it.
pub(super) fn select<'s>(
    params: &Params,
    after: Option<&TaskId>,
    state: &'s State,
    call: &Call,
) -> Result<Selected<'s>, Refusal> {
    if params.is_plain() {
        let filter = params.status_filter;
        let is_wanted = move |task: &&Arc<Task>| task.run.is_none() && filter.passes(task.status);
        let total = TaskStatus::ALL.into_iter().filter(|one| filter.passes(*one));
        let total = total.map(|one| state.count_all(one)).sum();
        return Ok((total, Box::new(state.tasks_after(after).filter(is_wanted))));
    }
    let filter = Filter::checked(params, state, call)?;
    let place = |(number, task): (usize, &'s Arc<Task>)| (params.sort.key(task), number, task);
    let all = || state.tasks().enumerate();
    let mut found: Vec<_> =
        all().filter(|(_, task)| filter.passes(task, state)).map(place).collect();
    found.sort_unstable_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let cursor = after.and_then(|after| all().find(|(_, task)| task.id == *after)).map(place);
    let total = found.len();
    if params.descending {
        found.reverse();
    }
    let is_behind = |one: &(Key, usize, &Arc<Task>)| {
        cursor.as_ref().is_none_or(|cursor| {
            let order = (&one.0, one.1).cmp(&(&cursor.0, cursor.1));
            order == if params.descending { Ordering::Less } else { Ordering::Greater }
        })
    };
    found.retain(is_behind);
    Ok((total, Box::new(found.into_iter().map(|(_, _, task)| task))))
}

impl Params {
    /// Whether the tasks are listed as they were created, and picked by their status at most.
    fn is_plain(&self) -> bool {
        let Self {
            statuses, ready, blocked, waiting, tags, text, min_priority, max_priority, ..
        } = self;
        let Self { agent, scope, parent, created_since, changed_since, sort, descending, .. } =
            self;
        let is_of_all = statuses.is_empty()
            && tags.is_empty()
            && text.is_none()
            && !ready
            && !blocked
            && !waiting;
        let of_some =
            min_priority.is_some() || max_priority.is_some() || agent.is_some() || scope.is_some();
        let since = created_since.is_some() || changed_since.is_some();
        is_of_all && !of_some && !since && parent.is_none() && *sort == Sort::Created && !descending
    }
}

/// The newest time that the task shows.
fn changed_at(task: &Task) -> Timestamp {
    let own = [task.claimed_at, task.started_at, task.completed_at, task.reset_at];
    let stop = task.stop_requested.as_ref().map(|stop| stop.at);
    let ended = task.attempts.iter().rev().find_map(|attempt| attempt.ended_at);
    let reviewed = task.reviewed().map(|reviewed| reviewed.at);
    own.into_iter().chain([stop, ended, reviewed]).flatten().fold(task.created_at, Ord::max)
}

/// What is wanted, checked and ready to be compared with tasks.
struct Filter<'p> {
    wanted: &'p Params,
    words: Vec<String>,
    agent: Option<AgentId>,
    parent: Option<TaskId>,
    changed: Option<HashSet<TaskId>>,
}

impl<'p> Filter<'p> {
    fn checked(wanted: &'p Params, state: &State, call: &Call) -> Result<Self, Refusal> {
        input::check_scope(wanted.scope.as_deref(), state)?;
        for priority in wanted.min_priority.into_iter().chain(wanted.max_priority) {
            input::checked_priority(priority)?;
        }
        let text = wanted.text.as_deref().unwrap_or_default();
        limit::QUERY.check_text(text)?;
        limit::LABELS.check(wanted.tags.len())?;
        let parent = wanted.parent.as_deref().map(TaskId::checked).transpose()?;
        if let Some(parent) = &parent {
            state.known_task(parent)?;
        }
        let changed =
            wanted.changed_since.map(|since| changed_since(since, state, call.history)).transpose();
        Ok(Self {
            wanted,
            words: text.split_whitespace().map(str::to_lowercase).collect(),
            agent: wanted.agent.as_deref().map(AgentId::checked).transpose()?,
            parent,
            changed: changed.map_err(|detail| Refusal::HistoryUnread { detail })?,
        })
    }

    fn passes(&self, task: &Task, state: &State) -> bool {
        let wanted = self.wanted;
        let has_priority = |is: fn(&i64, &i64) -> bool, given: Option<i64>| {
            given.is_none_or(|given| is(&i64::from(task.priority), &given))
        };
        let is_of_these = || wanted.statuses.iter().any(|one| task.status.counts_as(*one));
        task.run.is_none()
            && wanted.status_filter.passes(task.status)
            && (wanted.statuses.is_empty() || is_of_these())
            && in_scope(task, wanted.scope.as_deref())
            && (wanted.tags.is_empty() || task.tags.iter().any(|tag| wanted.tags.contains(tag)))
            && has_priority(i64::ge, wanted.min_priority)
            && has_priority(i64::le, wanted.max_priority)
            && self.agent.as_ref().is_none_or(|agent| was_of(task, agent))
            && self.parent.as_ref().is_none_or(|parent| task.parent.as_ref() == Some(parent))
            && wanted.created_since.is_none_or(|since| task.created_at >= since)
            && self.changed.as_ref().is_none_or(|changed| changed.contains(&task.id))
            && self.is_in_a_wanted_place(task, state)
            && (self.words.is_empty() || self.says(task))
    }

    /// Whether the task is ready, blocked or waiting, as far as that is asked.
    fn is_in_a_wanted_place(&self, task: &Task, state: &State) -> bool {
        let Params { ready, blocked, waiting, .. } = *self.wanted;
        if !ready && !blocked && !waiting {
            return true;
        }
        if task.status != TaskStatus::Available || state.is_parent(&task.id) {
            return false;
        }
        if state.is_ready(&task.id) {
            return ready;
        }
        if state.is_blocked(task) { blocked } else { waiting }
    }

    /// Whether each word occurs in what the task says.
    fn says(&self, task: &Task) -> bool {
        let hints = task.context.as_ref().and_then(|context| context.hints.as_deref());
        let texts = [
            Some(task.id.as_str()),
            task.title.as_deref(),
            Some(&task.description),
            task.path.as_deref(),
            hints,
        ];
        let texts = texts.into_iter().flatten().chain(task.tags.iter().map(String::as_str));
        let texts: Vec<String> = texts.map(str::to_lowercase).collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}

fn was_of(task: &Task, agent: &AgentId) -> bool {
    task.claimed_by.as_ref() == Some(agent)
        || task.attempts.last().is_some_and(|last| last.agent == *agent)
}

/// Events that are read at a time.
const READ_AT_ONCE: usize = 500;

/// Tasks that an event since that time is about. What was before the journal's first event is known
/// by what tasks show.
fn changed_since(
    since: Timestamp,
    state: &State,
    history: &dyn History,
) -> Result<HashSet<TaskId>, String> {
    let shown = state.tasks().filter(|task| changed_at(task) >= since);
    let mut changed: HashSet<TaskId> = shown.map(|task| task.id.clone()).collect();
    let mut at = first_since(since, state, history)?;
    while at < state.seq() {
        let before = at;
        history.each_after(at, READ_AT_ONCE, &mut |recorded| {
            at = recorded.seq;
            if recorded.at >= since {
                changed.extend(recorded.event.tasks().into_iter().cloned());
            }
            ControlFlow::Continue(())
        })?;
        if at == before {
            break;
        }
    }
    Ok(changed)
}

/// A seq after which every event since that time comes; the times of events never go back.
fn first_since(since: Timestamp, state: &State, history: &dyn History) -> Result<u64, String> {
    let (mut before, mut after) = (0, state.seq());
    while after - before > READ_AT_ONCE as u64 {
        let middle = before + (after - before) / 2;
        match history.events_after(middle, 1)?.first() {
            Some(recorded) if recorded.at < since => before = middle,
            _ => after = middle,
        }
    }
    Ok(before)
}
