//! What time alone brings: leases that expire and finished tasks that retire. Time is an argument.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::State;
use super::agent::Participant;
use super::event::Event;
use super::id::TaskId;
use super::policy::Policy;
use super::run::runner::{stopped, timed_out};
use super::task::Task;
use super::time::{MINUTE, Timestamp};

/// How long nothing expires after a clock step, in milliseconds.
pub const GRACE_AFTER_STEP: i64 = 10 * MINUTE;
/// Smallest gap between wall time and the time in which agents could act that counts as a clock
/// step, in milliseconds.
pub const STEP: i64 = MINUTE;

impl State {
    /// The events for leases, reservations and waits for a runner whose time is over.
    pub fn expire(&self, now: Timestamp) -> Vec<Event> {
        let ended =
            self.index.leases_ended(now).filter_map(|ordinal| self.records.tasks.get(ordinal));
        let ended = ended.flat_map(|task| {
            let expired = lease_expired(task);
            let gave_up = matches!(expired, Some(Event::LeaseExpired { gave_up: true, .. }));
            expired.into_iter().chain(cancelled_when_stopped(task).filter(|_| !gave_up))
        });
        ended
            .chain(self.unmatched(now))
            .chain(self.expired_reservations(now))
            .chain(self.opened_again(now))
            .collect()
    }

    /// The next time at which `expire` or `wake` has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let leases = self.index.next_lease_end().into_iter();
        leases
            .chain(self.index.next_delayed())
            .chain(self.runs().next_unmatched())
            .chain(self.holds.next_end())
            .chain(self.next_opened())
            .min()
    }

    /// Retires the oldest finished tasks beyond `keep_finished`, when there are a tenth more,
    /// except those still needed. As long as those are many, they are not looked through again
    /// before another tenth has finished: `left` is how many there were behind the last look, 0
    /// before the first.
    pub fn retire_surplus(&self, policy: &Policy, left: &mut usize) -> Option<Event> {
        let keep = policy.keep_finished as usize;
        let surplus = |finished: usize| {
            Some(finished.saturating_sub(keep)).filter(|surplus| *surplus > keep / 10)
        };
        let finished = self.index.finished().len();
        let is_due = finished < *left || finished > *left + keep / 10;
        let of_tasks = surplus(finished).filter(|_| is_due);
        let of_runs = surplus(self.runs().over().len());
        let oldest = self.index.finished().filter_map(|ordinal| self.records.tasks.get(ordinal));
        let mut differ = HashMap::new();
        let mut stays =
            |task: &Task| self.is_needed(task) || self.decides_on_parent(task, &mut differ);
        let oldest = oldest.take(of_tasks.map_or(0, |_| usize::MAX)).filter(|task| !stays(task));
        let runs = self.runs().over().filter_map(|ordinal| self.records.tasks.get(ordinal));
        let runs = runs
            .take(of_runs.unwrap_or_default())
            .filter(|task| !self.index.has_dependents(&task.id));
        let mut tasks: Vec<_> = oldest.take(of_tasks.unwrap_or_default()).cloned().collect();
        let parents = self.retire_parents(&mut tasks);
        tasks.extend(runs.cloned());
        if of_tasks.is_some() {
            *left = finished - tasks.iter().filter(|task| task.run.is_none()).count();
        }
        (!tasks.is_empty()).then_some(Event::TasksRetired { tasks, parents })
    }

    /// Adds the parents of which no part is left, and returns them. One that is still needed keeps
    /// its last part, because without parts it would be counted.
    fn retire_parents(&self, tasks: &mut Vec<Arc<Task>>) -> Vec<TaskId> {
        let mut going: HashMap<&TaskId, usize> = HashMap::new();
        let (mut kept, mut parents) = (BTreeSet::new(), Vec::new());
        let mut at = 0;
        while let Some(task) = tasks.get(at).cloned() {
            at += 1;
            let Some(parent) = task.parent.as_ref().and_then(|id| self.task(id)) else { continue };
            let gone = going.entry(&parent.id).or_default();
            *gone += 1;
            if *gone < self.index.count_parts(&parent.id) {
                continue;
            }
            if parent.status.may_retire() && !self.is_needed_itself(parent) {
                parents.push(parent.id.clone());
                tasks.push(Arc::clone(parent));
            } else {
                // Of a part that has parts, one stays, too.
                let part_of =
                    |id: &TaskId| tasks.iter().find(|one| one.parent.as_ref() == Some(id));
                let down = std::iter::successors(Some(&task), |kept| part_of(&kept.id));
                kept.extend(down.map(|kept| kept.id.clone()));
            }
        }
        tasks.retain(|task| !kept.contains(&task.id));
        parents.retain(|id| !kept.contains(id));
        parents
    }

    /// Drops the oldest stubs of tasks beyond `keep_stubs`, when there are a tenth more, except
    /// those that live tasks depend on.
    pub fn drop_stubs(&self, policy: &Policy) -> Option<Event> {
        let keep = policy.keep_stubs as usize;
        let runs = usize::try_from(self.board.archived_runs.total()).unwrap_or(usize::MAX);
        let stubs = self.records.retired.len().saturating_sub(runs);
        if stubs <= keep + keep / 10 {
            return None;
        }
        let mut of_tasks: Vec<_> = self.retired().filter(|(_, stub)| !stub.run).collect();
        of_tasks.sort_unstable_by_key(|(id, stub)| (stub.seq, stub.parent, *id));
        let surplus = of_tasks[..of_tasks.len().saturating_sub(keep)].iter();
        let stubs: BTreeMap<_, _> = surplus
            .filter(|(id, _)| self.index.dependents(id).next().is_none())
            .map(|(id, stub)| ((*id).clone(), stub.seq))
            .collect();
        (!stubs.is_empty()).then_some(Event::StubsDropped { stubs })
    }

    /// A task is needed by unfinished dependents and parents, while it has parts, and while it is
    /// in the plan, so that a changed plan finds it.
    fn is_needed(&self, task: &Task) -> bool {
        self.has_parts(&task.id) || self.is_needed_itself(task)
    }

    fn is_needed_itself(&self, task: &Task) -> bool {
        let mut dependents = self.index.dependents(&task.id);
        task.planned.is_some()
            || self.ancestors(task).any(|above| !above.status.may_retire())
            || dependents.any(|one| {
                self.records.tasks.get(one).is_some_and(|task| !task.status.may_retire())
            })
    }

    /// True if the parent has its status from this task and not all parts share it, so that without
    /// the task the parent's status might change. `differ` caches, by parent, whether its parts
    /// differ.
    fn decides_on_parent<'s>(
        &'s self,
        task: &Task,
        differ: &mut HashMap<&'s TaskId, bool>,
    ) -> bool {
        let parent = task
            .parent
            .as_ref()
            .and_then(|id| self.task(id))
            .filter(|parent| parent.status == task.status);
        let parts_differ = |id| self.parts(id).any(|part| part.status != task.status);
        parent.is_some_and(|parent| {
            *differ.entry(&parent.id).or_insert_with_key(|id| parts_differ(id))
        })
    }

    /// The event for a dead `participant`: its agents have until the end of the grace to come back.
    pub fn participant_gone(
        &self,
        participant: &Participant,
        policy: &Policy,
        now: Timestamp,
    ) -> Event {
        let grace_until =
            (now + policy.grace_millis()).max(self.board().grace_until.unwrap_or_default());
        Event::ParticipantGone { participant: participant.id.clone(), grace_until }
    }
}

fn lease_expired(task: &Task) -> Option<Event> {
    let attempt = task.open_attempt()?;
    if let Some(stopped) = stopped(task) {
        return Some(stopped);
    }
    if let Some(timed_out) = timed_out(task, attempt) {
        return Some(timed_out);
    }
    let counted = !attempt.stepped;
    let gave_up = counted && task.attempts_used() >= task.max_attempts;
    Some(Event::LeaseExpired { task: task.id.clone(), attempt: attempt.number, counted, gave_up })
}

/// Cancels `task` when its agent has stopped as a leader asked and the task would be ready again.
pub fn cancelled_when_stopped(task: &Task) -> Option<Event> {
    let request = task.stop_requested.as_ref().filter(|request| request.cancel)?;
    Some(Event::Cancelled { task: task.id.clone(), reason: request.reason.clone() })
}

pub fn clock_stepped(gap_millis: i64, now: Timestamp) -> Event {
    Event::ClockStepped { gap_millis, grace_until: now + GRACE_AFTER_STEP }
}
