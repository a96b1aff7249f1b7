//! How the work went: what was done when, how long it took and had to wait, and how often it was
//! tried. By the live tasks; the board no longer has the attempts of retired ones.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rows;
use super::card::Named;
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::id::AgentId;
use crate::state::task::{Attempt, Outcome, Task, TaskStatus};
use crate::state::time::{MINUTE, SECOND, Timestamp};

const HOUR: i64 = 60 * MINUTE;
/// Most hours that are told one by one: the last day.
const HOURS: i64 = 24;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Report {
    /// Tasks done by agents
    pub done: usize,
    /// Since work on the first of them began, but not before `since`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_per_hour: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// Attempts that ended, by how
    pub tries: Tries,
    /// From claim to end, of attempts that ended as done
    pub work: Spread,
    /// From ready to claimed, of all attempts
    pub waiting: Spread,
    /// The most done first
    pub agents: Vec<AgentReport>,
    /// The longest work first
    pub tasks: Rows<TaskReport>,
    /// Tasks done in each of the last 24 hours, oldest first, from the first in which any were
    pub hours: Vec<Hour>,
    /// Tasks that have left the board, which are not counted here
    #[serde(default, skip_serializing_if = "super::is_zero_of_many")]
    pub retired: u64,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tries {
    pub done: u64,
    pub failed: u64,
    /// The agent was lost, or took too long
    pub expired: u64,
    pub released: u64,
    pub cancelled: u64,
    /// Sent back by a reviewer
    pub rejected: u64,
}

/// Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Spread {
    pub count: usize,
    pub median: i64,
    /// Nine of ten took no longer
    pub p90: i64,
    pub longest: i64,
    pub total: i64,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AgentReport {
    pub id: AgentId,
    #[serde(flatten)]
    pub tries: Tries,
    pub work: Spread,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TaskReport {
    #[serde(flatten)]
    pub task: Named,
    /// Agent of the last attempt
    pub agent: AgentId,
    pub tries: usize,
    /// Seconds that agents held it
    pub work: i64,
    /// Seconds that it was ready and nobody held it
    pub waiting: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Hour {
    pub from: Timestamp,
    pub done: usize,
}

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub now: Timestamp,
    pub scope: Option<&'a str>,
    pub agent: Option<&'a AgentId>,
    /// Nothing that ended before
    pub since: Timestamp,
    pub rows: usize,
}

/// What is collected of all attempts.
#[derive(Default)]
struct Found {
    tries: Tries,
    work: Vec<i64>,
    waiting: Vec<i64>,
    agents: BTreeMap<AgentId, (Tries, Vec<i64>)>,
    tasks: Vec<TaskReport>,
    /// Ends of the work on tasks that are done.
    done: Vec<Timestamp>,
    begun: Option<Timestamp>,
}

impl Report {
    pub fn of(state: &State, asked: &Asked<'_>) -> Self {
        let mut found = Found::default();
        for (number, task) in state.numbered() {
            if in_scope(task, asked.scope) && !state.is_parent(&task.id) {
                found.take(state, number, task, asked);
            }
        }
        found.tasks.sort_by_key(|task| std::cmp::Reverse(task.work));
        let mut agents: Vec<_> = found.agents.into_iter().collect();
        agents.sort_by_key(|(_, (tries, _))| std::cmp::Reverse(tries.done));
        let archived = &state.board().archived;
        let begun = found.begun.map(|begun| begun.max(asked.since));
        Self {
            done: found.done.len(),
            done_per_hour: per_hour(found.done.len(), begun, asked.now),
            begun,
            tries: found.tries,
            work: Spread::of(found.work),
            waiting: Spread::of(found.waiting),
            agents: agents
                .into_iter()
                .map(|(id, (tries, work))| AgentReport { id, tries, work: Spread::of(work) })
                .collect(),
            tasks: Rows::of(found.tasks, asked.rows),
            hours: hours(&found.done, asked.now),
            retired: archived.done + archived.cancelled + archived.obsolete,
            now: asked.now,
        }
    }
}

impl Found {
    fn take(&mut self, state: &State, number: u64, task: &Task, asked: &Asked<'_>) {
        let is_asked = |attempt: &&Attempt| {
            asked.agent.is_none_or(|agent| attempt.agent == *agent)
                && attempt.ended_at.is_none_or(|ended| ended >= asked.since)
        };
        let (mut work, mut waiting, mut tries) = (0, 0, 0);
        for (place, attempt) in task.attempts.iter().enumerate() {
            if !is_asked(&attempt) {
                continue;
            }
            tries += 1;
            let waited = seconds(attempt.claimed_at.since(ready_before(state, task, place)));
            let end = attempt.ended_at.unwrap_or(asked.now);
            let took = seconds(end.since(attempt.claimed_at) - attempt.stepped_millis);
            (work, waiting) = (work + took, waiting + waited);
            self.waiting.push(waited);
            self.begun =
                Some(self.begun.map_or(attempt.claimed_at, |at| at.min(attempt.claimed_at)));
            let (own, own_work) = self.agents.entry(attempt.agent.clone()).or_default();
            if let Some(outcome) = attempt.outcome {
                self.tries.count(outcome);
                own.count(outcome);
            }
            if attempt.outcome == Some(Outcome::Done) {
                self.work.push(took);
                own_work.push(took);
            }
        }
        let last = task.attempts.iter().rfind(is_asked);
        if let Some(last) = last {
            self.tasks.push(TaskReport {
                task: Named::of(Some(number), task),
                agent: last.agent.clone(),
                tries,
                work,
                waiting,
            });
        }
        let by_agent = last.and_then(|attempt| attempt.ended_at);
        self.done.extend(by_agent.filter(|_| task.status == TaskStatus::Done));
    }
}

impl Tries {
    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Done => &mut self.done,
            Outcome::Failed => &mut self.failed,
            Outcome::Expired => &mut self.expired,
            Outcome::Released => &mut self.released,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Rejected => &mut self.rejected,
        } += 1;
    }
}

impl Spread {
    fn of(mut seconds: Vec<i64>) -> Self {
        seconds.sort_unstable();
        // The value that a part of all does not exceed: the nearest rank.
        let at = |percent: usize| {
            let rank = (seconds.len() * percent).div_ceil(100).max(1);
            seconds.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            count: seconds.len(),
            median: at(50),
            p90: at(90),
            longest: at(100),
            total: seconds.iter().sum(),
        }
    }
}

/// When the task became ready for the attempt at this place. Dependencies that came later do not
/// count.
fn ready_before(state: &State, task: &Task, place: usize) -> Timestamp {
    let claimed = task.attempts[place].claimed_at;
    let before = place.checked_sub(1).map(|place| &task.attempts[place]);
    let reviewed = before.and_then(|attempt| Some(attempt.reviewed.as_ref()?.at));
    let begun = before.and_then(|attempt| attempt.ended_at).max(reviewed);
    let done = task.dependencies.iter().filter_map(|id| state.task(id)?.completed_at);
    let done = done.filter(|at| *at <= claimed).max();
    begun.unwrap_or(task.created_at).max(done.unwrap_or(task.created_at)).min(claimed)
}

fn seconds(millis: i64) -> i64 {
    millis.max(0) / SECOND
}

fn per_hour(done: usize, begun: Option<Timestamp>, now: Timestamp) -> Option<f64> {
    let span = now.since(begun?);
    (done > 0 && span >= MINUTE)
        .then(|| (done as f64 * HOUR as f64 / span as f64 * 10.0).round() / 10.0)
}

/// The last full hours, and the one that has begun.
fn hours(done: &[Timestamp], now: Timestamp) -> Vec<Hour> {
    let end = now.since(Timestamp::default()) / HOUR;
    let mut counts: BTreeMap<i64, usize> = (end - HOURS + 1..=end).map(|hour| (hour, 0)).collect();
    for at in done {
        if let Some(count) = counts.get_mut(&(at.since(Timestamp::default()) / HOUR)) {
            *count += 1;
        }
    }
    let hour = |(hour, done)| Hour { from: Timestamp::default() + hour * HOUR, done };
    counts.into_iter().skip_while(|(_, done)| *done == 0).map(hour).collect()
}
