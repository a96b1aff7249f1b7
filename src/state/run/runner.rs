//! Which runner takes which run, and how runs end that none takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Run, RunStatus, Runner, queue};
use crate::state::State;
use crate::state::agent::{Agent, Demands};
use crate::state::event::Event;
use crate::state::guard::own_open;
use crate::state::id::{AgentId, SessionId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::task::{Attempt, AttemptError, Task};
use crate::state::time::{MINUTE, SECOND, Timestamp};

/// Milliseconds without a call after which a runner with room is taken to be gone.
const RUNNER_LASTS: i64 = 5 * MINUTE;
/// Missing demands that are named.
const MISSING_NAMED: usize = 5;

impl State {
    pub fn runs(&self) -> &queue::Queue {
        self.index.runs()
    }

    /// Live runs created before `before`, newest first.
    pub fn newest_runs(&self, before: Option<&TaskId>) -> impl Iterator<Item = &Arc<Task>> {
        let end = before.and_then(|id| self.ordinal_of(id));
        self.runs().newest(end).filter_map(|ordinal| self.records.tasks.get(ordinal))
    }

    /// Live runs of the session, oldest first.
    pub fn runs_of<'s>(
        &'s self,
        session: &SessionId,
    ) -> impl DoubleEndedIterator<Item = &'s Arc<Task>> + 's {
        self.runs().of_session(session).filter_map(|ordinal| self.records.tasks.get(ordinal))
    }

    /// Retired runs after `after`, newest first.
    pub fn newest_retired_runs(&self, after: Option<&TaskId>) -> Vec<&TaskId> {
        let mut retired: Vec<_> = self.retired().filter(|(_, stub)| stub.run).collect();
        retired.sort_by(|(one, first), (other, second)| {
            second.seq.cmp(&first.seq).then_with(|| one.cmp(other))
        });
        let place = after.and_then(|after| retired.iter().position(|(id, _)| *id == after));
        retired.into_iter().skip(place.map_or(0, |place| place + 1)).map(|(id, _)| id).collect()
    }

    pub fn known_run(&self, id: &TaskId) -> Result<(&Arc<Task>, &Run), Refusal> {
        let unknown = || Refusal::UnknownRun { run: id.clone() };
        let task = self.task(id).ok_or_else(unknown)?;
        Ok((task, task.run.as_deref().ok_or_else(unknown)?))
    }

    /// Runs that are claimed and not begun.
    pub fn claimed_runs(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.runs().claimed().filter_map(|ordinal| self.records.tasks.get(ordinal))
    }

    /// Status of a live or retired run; `None` if there is no such run.
    pub fn run_status(&self, id: &TaskId) -> Option<RunStatus> {
        match self.task(id) {
            Some(task) => task.run.is_some().then(|| RunStatus::of(task)),
            None => self
                .retired_task(id)
                .filter(|stub| stub.run)
                .map(|stub| RunStatus::of_status(stub.status)),
        }
    }

    /// The open attempt of run `id`, if `agent` holds it and `given`, if set, is its number.
    pub fn own_run(
        &self,
        agent: &AgentId,
        id: &TaskId,
        given: Option<u32>,
    ) -> Result<&Attempt, Refusal> {
        self.known_agent(agent)?;
        own_open(self.known_run(id)?.0, agent, given, run_over)
    }

    /// Checks that `actor` leads or created the run.
    pub fn commands(
        &self,
        actor: Option<&AgentId>,
        task: &Task,
        action: &'static str,
    ) -> Result<(), Refusal> {
        let created = task.run.as_ref().and_then(|run| run.created_by.as_ref());
        if actor.is_some() && actor == created {
            return Ok(());
        }
        self.leads(actor, action).map_err(|refusal| match (refusal, actor) {
            (Refusal::NotLeader { .. }, Some(agent)) => {
                Refusal::NotYourRun { agent: agent.clone(), run: task.id.clone(), action }
            }
            (refusal, _) => refusal,
        })
    }

    /// The pending run for `agent`: lowest priority number, then oldest. Looks at one run of each
    /// demand set.
    pub fn pick_run(&self, agent: &Agent, runner: Runner) -> Option<&Arc<Task>> {
        let mut best = None;
        for (demands, first) in self.runs().first_of_each() {
            if best.is_none_or(|best| first < best)
                && runner.takes(demands)
                && demands.met_by(agent)
            {
                best = Some(first);
            }
        }
        self.records.tasks.get(best?.1)
    }

    /// The newest claim of `agent`, if it is a run and was not acted on: its reply may have been
    /// lost.
    pub fn unacted_run(&self, agent: &Agent) -> Option<&Arc<Task>> {
        let newest = self.task(agent.current_task.as_ref()?).filter(|task| task.run.is_some())?;
        newest.open_attempt().filter(|attempt| !attempt.acted)?;
        Some(newest)
    }

    /// Number of pending runs that `agent` cannot take, and some of what it lacks for them.
    pub fn runs_unmet(&self, agent: &Agent, runner: Runner) -> (usize, Vec<String>) {
        let (mut runs, mut missing) = (0, Vec::new());
        for (demands, count) in self.runs().demanded() {
            if runner.takes(demands) && demands.met_by(agent) {
                continue;
            }
            runs += count;
            if missing.len() < MISSING_NAMED {
                let lacks =
                    demands.missing_from(agent).into_iter().filter(|one| !missing.contains(one));
                missing.extend(lacks.collect::<Vec<_>>());
            }
        }
        missing.truncate(MISSING_NAMED);
        (runs, missing)
    }

    /// Events for pending runs whose wait for a runner is over: they fail, unless a fitting runner
    /// is there but busy, or claims are paused.
    pub(in crate::state) fn unmatched(&self, now: Timestamp) -> Vec<Event> {
        let mut fits: BTreeMap<&Demands, bool> = BTreeMap::new();
        let (mut events, mut awaited) = (Vec::new(), Vec::new());
        let is_paused = self.board().paused.is_some();
        for task in self.runs().unmatched(now).filter_map(|ordinal| self.records.tasks.get(ordinal))
        {
            let is_awaited = is_paused
                || *fits
                    .entry(&task.demands)
                    .or_insert_with(|| self.has_runner_for(&task.demands, now));
            if is_awaited {
                awaited.push(task.id.clone())
            } else {
                events.push(Event::RunFailed {
                    run_id: task.id.clone(),
                    error: self.no_match(task, now),
                })
            }
        }
        if !awaited.is_empty() {
            events.push(Event::RunsAwaited { runs: awaited, until: now + RUNNER_LASTS });
        }
        events
    }

    /// Runners that are there. One that has room but has not called lately is not waited for, even
    /// if its process lives.
    fn runners(&self, now: Timestamp) -> impl Iterator<Item = (&Arc<Agent>, Runner)> {
        let is_there = move |agent: &Agent| {
            !agent.has_room() || now.since(agent.last_heartbeat) <= RUNNER_LASTS
        };
        let runners = self.agents().filter_map(|agent| Some((agent, agent.runner?)));
        runners.filter(move |(agent, _)| is_there(agent))
    }

    fn has_runner_for(&self, demands: &Demands, now: Timestamp) -> bool {
        self.runners(now).any(|(agent, runner)| runner.takes(demands) && demands.met_by(agent))
    }

    fn no_match(&self, task: &Task, now: Timestamp) -> AttemptError {
        let seconds = task.run.as_ref().map_or(0, |run| run.no_match_seconds);
        let runners = self.runners(now).count();
        let demands = task.demands.described();
        let demanded = if demands.is_empty() { "a runner".to_owned() } else { demands.join(", ") };
        let message = format!(
            "no runner met its demands within {seconds} s ({demanded}); runners there: {runners}"
        );
        AttemptError { category: "no_match".to_owned(), message }
    }
}

/// Cancels a run whose stop was requested, once nobody works on it, so that nobody else begins it.
pub fn stopped(task: &Task) -> Option<Event> {
    let request = task.stop_requested.as_ref().filter(|_| task.run.is_some())?;
    let reason = request.reason.clone().unwrap_or_else(|| "stopped".to_owned());
    Some(Event::Cancelled { task: task.id.clone(), reason: Some(reason) })
}

/// Fails a run whose attempt has taken all the time that the run allows.
pub(in crate::state) fn timed_out(task: &Task, attempt: &Attempt) -> Option<Event> {
    let seconds = task.timeout_seconds.filter(|_| task.run.is_some())?;
    let end = attempt.claimed_at + attempt.stepped_millis + i64::from(seconds) * SECOND;
    let message = format!("it took longer than its timeout of {seconds} s");
    let error = AttemptError { category: "timeout".to_owned(), message };
    (attempt.lease_until >= end).then(|| Event::RunFailed { run_id: task.id.clone(), error })
}

/// The refusal of a report on a run that nobody holds.
pub fn run_over(task: &Task) -> Refusal {
    let status = RunStatus::of(task);
    let next = match status {
        RunStatus::Pending => "claim it with claim_run: another runner may have it by then",
        _ => "there is nothing to report on it any more; claim another with claim_run",
    };
    Refusal::RunStatus { run: task.id.clone(), status, action: "reported on", next }
}
