//! Which task an agent is given, and why it is given none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::{Agent, Demands, Role};
use super::document::Retired;
use super::guard::held_by_other;
use super::hierarchy;
use super::id::TaskId;
use super::refusal::Refusal;
use super::reservation::{Effort, Hold};
use super::task::{Task, TaskStatus};
use super::time::{SECOND, Timestamp};
use super::{Ordinal, State};

/// What an agent that was given nothing should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is left to do
    Finished,
    /// No task is left to do, and lines of a plan that look like work are in none
    Unread,
    /// No task was ever created: ask a leader for some
    Empty,
    /// Something may become ready: ask again
    Wait,
    /// Nothing can become ready by itself
    Stuck,
    /// There is ready work, but not for this agent
    Unsuited,
    /// Claims are paused
    Paused,
    /// The budget of the agent's workflow is spent
    Spent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyHanded {
    pub verdict: Verdict,
    /// Available tasks with a dependency that is not done
    pub blocked: usize,
    /// Available tasks that wait for a retry time
    pub waiting_retry: usize,
    pub demands_unmet: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    pub held: usize,
    /// Tasks that wait for review
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_review: usize,
    /// Ready tasks that are kept for other agents for a while
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_for_others: usize,
    /// Seconds after which to ask again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Seconds between two polls of an agent that could wait instead.
const POLL: u64 = 30;
/// Tasks that are searched for one whose files are free, where any other will do as well.
const LOOK_AHEAD: usize = 64;
/// Ready tasks that are searched for one in a scope before the scope is looked up by path.
const PASSED_OVER: usize = 256;
/// Missing demands that are named.
const MISSING_NAMED: usize = 5;

impl State {
    /// The ready task for `agent`: lowest priority number, raised by ageing, then oldest; tasks
    /// that it gave up before come last. Among tasks of equal priority at `now`, a near one
    /// whose files no other agent holds is preferred; with `exclusive` only such a task is
    /// given. Looks at one task of each demand set, passes over only what the agent gave up or what
    /// lies outside `scope`, and while files are held looks at most `LOOK_AHEAD` tasks ahead,
    /// or with `exclusive` as far as the effort allows.
    pub fn pick(
        &self,
        agent: &Agent,
        scope: Option<&str>,
        exclusive: bool,
        now: Timestamp,
    ) -> Option<&Arc<Task>> {
        let aging = self.index.aging();
        let priority = |task: &Task| self.effective_priority(task, aging, now);
        if let Some(own) = self.kept_for(agent, scope, &priority) {
            let mut effort = Effort::new();
            if !exclusive || self.overlaps_of(own, agent, 1, &mut effort).is_empty() {
                return Some(own);
            }
        }
        let first_fit =
            |fresh| self.first_fit(agent, self.in_order(agent, scope, fresh), exclusive, &priority);
        first_fit(true).or_else(|| first_fit(false))
    }

    fn first_fit(
        &self,
        agent: &Agent,
        in_order: impl Iterator<Item = Ordinal>,
        exclusive: bool,
        priority: &impl Fn(&Task) -> u8,
    ) -> Option<&Arc<Task>> {
        let mut effort = Effort::new();
        let mut first: Option<&Arc<Task>> = None;
        let most = if exclusive { usize::MAX } else { LOOK_AHEAD };
        for ordinal in in_order.take(most) {
            let Some(task) = self.records.tasks.get(ordinal) else { continue };
            if effort.is_spent()
                || !exclusive && first.is_some_and(|first| priority(first) < priority(task))
            {
                break;
            }
            let overlaps = self.overlaps_of(task, agent, 1, &mut effort);
            if overlaps.is_empty() && !effort.is_spent() {
                return Some(task);
            }
            first = first.or(Some(task));
        }
        first.filter(|_| !exclusive)
    }

    /// Files of `task` that other agents hold.
    pub fn overlaps_of(
        &self,
        task: &Task,
        agent: &Agent,
        most: usize,
        effort: &mut Effort,
    ) -> Vec<Hold> {
        match &task.context {
            Some(context) if !self.all_files_are_free() => {
                self.overlaps(&context.files, &agent.id, false, most, effort)
            }
            _ => Vec::new(),
        }
    }

    /// Ready tasks that `agent` may be given, in order and computed lazily, because mostly the
    /// first will do. If none of the first `PASSED_OVER` is in the scope, the others are found
    /// by path.
    fn in_order<'a>(
        &'a self,
        agent: &'a Agent,
        scope: Option<&'a str>,
        fresh: bool,
    ) -> impl Iterator<Item = Ordinal> + 'a {
        let fits = move |ordinal: &Ordinal| {
            let task = self.records.tasks.get(*ordinal);
            task.is_some_and(|task| {
                task.is_open_to(&agent.id)
                    && in_scope(task, scope)
                    && !(fresh && task.was_given_up_by(&agent.id))
            })
        };
        let others = iter::once_with(|| self.merged(agent)).flatten().skip(1);
        let all = self.index.first_for(agent).into_iter().chain(others);
        let (near, path) = match scope.filter(|scope| *scope != "all") {
            Some(path) => (PASSED_OVER, Some(path)),
            None => (usize::MAX, None),
        };
        let far = path.into_iter().flat_map(|path| self.beyond_near(agent, path));
        all.take(near).chain(far).filter(fits)
    }

    /// Ready tasks at or below `path` that come after the first `PASSED_OVER` of all.
    fn beyond_near(&self, agent: &Agent, path: &str) -> impl Iterator<Item = Ordinal> {
        let rank =
            |ordinal| Some((self.index.rank(ordinal, self.records.tasks.get(ordinal)?), ordinal));
        let last_near = self.merged(agent).nth(PASSED_OVER - 1).and_then(rank);
        let within = last_near.into_iter().flat_map(|last| {
            let ranks = self.within(path).filter_map(rank);
            ranks.filter(move |rank| *rank > last)
        });
        let mut ready: Vec<_> =
            within.filter(|(_, ordinal)| self.is_ready_for(*ordinal, agent)).collect();
        ready.sort_unstable();
        ready.into_iter().map(|(_, ordinal)| ordinal)
    }

    fn is_ready_for(&self, ordinal: Ordinal, agent: &Agent) -> bool {
        self.records
            .tasks
            .get(ordinal)
            .is_some_and(|task| task.demands.met_by(agent) && self.index.is_ready(ordinal, task))
    }

    /// Merges the demand sets in order, reading each only as far as needed.
    fn merged<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = Ordinal> + 'a {
        let mut runs: Vec<_> = self.index.ready_for(agent).collect();
        let heads = runs
            .iter_mut()
            .enumerate()
            .filter_map(|(number, run)| Some(Reverse((run.next()?, number))));
        let mut heads: BinaryHeap<_> = heads.collect();
        let mut taken: Option<usize> = None;
        iter::from_fn(move || {
            if let Some(number) = taken.take() {
                heads.extend(runs[number].next().map(|next| Reverse((next, number))));
            }
            let Reverse(((_, ordinal), number)) = heads.pop()?;
            taken = Some(number);
            Some(ordinal)
        })
    }

    /// The named task, or why it cannot be claimed.
    pub fn pick_named(
        &self,
        agent: &Agent,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<&Arc<Task>, Refusal> {
        let task = self.known_task(id)?;
        if let Some(open) = task.open_attempt() {
            return Err(held_by_other(task, open));
        }
        if task.status != TaskStatus::Available {
            let next = match task.status {
                TaskStatus::Review => "it waits for review; claim another with claim_task",
                _ => "claim another with claim_task",
            };
            return Err(Refusal::WrongStatus {
                task: id.clone(),
                status: task.status,
                action: "claimed",
                next: next.to_owned(),
            });
        }
        self.refuse_parent(id)?;
        let waiting_for: Vec<_> = self.waits_for(task).cloned().collect();
        if !waiting_for.is_empty() {
            return Err(Refusal::NotReady { task: id.clone(), waiting_for });
        }
        if let Some(until) = task.not_before.filter(|until| *until > now) {
            return Err(Refusal::TooEarly { task: id.clone(), until });
        }
        if let Some(kept) = task.kept_for.as_deref().filter(|kept| kept.agent != agent.id) {
            let (agent, until) = (kept.agent.clone(), kept.until);
            return Err(Refusal::KeptForOther { task: id.clone(), agent, until });
        }
        let missing = task.demands.missing_from(agent);
        if missing.is_empty() {
            return Ok(task);
        }
        Err(Refusal::DemandsUnmet { task: id.clone(), agent: agent.id.clone(), missing })
    }

    /// Refuses observers.
    pub fn may_claim(&self, agent: &Agent) -> Result<(), Refusal> {
        if agent.role == Role::Observer {
            return Err(Refusal::Observer { agent: agent.id.clone() });
        }
        Ok(())
    }

    /// The newest claim of `agent`, if it has not acted on it: its reply may have been lost.
    pub fn unacted_claim(&self, agent: &Agent) -> Option<&Arc<Task>> {
        let newest = self.task(agent.current_task.as_ref()?).filter(|task| task.run.is_none())?;
        newest.open_attempt().filter(|attempt| !attempt.acted)?;
        Some(newest)
    }

    pub fn ready_count(&self) -> usize {
        self.index.ready_count()
    }

    pub fn oldest_ready(&self) -> Option<&Arc<Task>> {
        self.records.tasks.get(self.index.oldest_ready()?)
    }

    pub fn delayed_count(&self) -> usize {
        self.index.delayed_count()
    }

    /// Available tasks that wait for a dependency. Parents are not counted: they wait only for
    /// their parts.
    pub fn blocked_count(&self) -> usize {
        self.count(TaskStatus::Available) - self.ready_count() - self.delayed_count()
    }

    pub fn held_count(&self) -> usize {
        self.count(TaskStatus::Claimed) + self.count(TaskStatus::InProgress)
    }

    /// Tasks that could be claimed now, in the order in which they are claimed.
    pub fn ready_in_order(&self) -> Vec<&Arc<Task>> {
        let mut ready: Vec<_> = self.index.ready_ranked().collect();
        ready.sort_unstable();
        ready.into_iter().filter_map(|(_, ordinal)| self.records.tasks.get(ordinal)).collect()
    }

    pub fn is_ready(&self, id: &TaskId) -> bool {
        let Some(ordinal) = self.ordinal_of(id) else { return false };
        self.records.tasks.get(ordinal).is_some_and(|task| self.index.is_ready(ordinal, task))
    }

    /// Available without parts, and waiting for a dependency, as the index has it.
    pub fn is_blocked(&self, task: &Task) -> bool {
        let Some(ordinal) = self.ordinal_of(&task.id) else { return false };
        let is_open = task.status == TaskStatus::Available && task.run.is_none();
        is_open
            && !self.is_parent(&task.id)
            && !self.index.is_ready(ordinal, task)
            && !self.index.is_delayed(ordinal, task)
    }

    /// Why `agent` gets nothing from `scope`.
    pub fn empty_handed(&self, agent: &Agent, scope: Option<&str>, now: Timestamp) -> EmptyHanded {
        let outlook = self.outlook_of(scope, agent);
        let missing: BTreeSet<_> = outlook
            .unmet
            .keys()
            .flat_map(|demands| demands.missing_from(agent).into_iter().take(MISSING_NAMED))
            .collect();
        let verdict = match self.verdict(&outlook, agent, now) {
            verdict @ (Verdict::Paused | Verdict::Finished | Verdict::Unread | Verdict::Empty) => {
                verdict
            }
            _ if self.spent_workflow(&agent.id).is_some() => Verdict::Spent,
            verdict => verdict,
        };
        let next_retry = outlook
            .next_delayed
            .map(|until| (until.since(now) as u64).div_ceil(SECOND as u64).max(1));
        let retry_after = match verdict {
            Verdict::Wait | Verdict::Empty => Some(next_retry.unwrap_or(POLL).min(POLL)),
            _ => None,
        };
        EmptyHanded {
            verdict,
            blocked: outlook.blocked,
            waiting_retry: outlook.delayed,
            demands_unmet: outlook.unmet.values().sum(),
            missing: missing.into_iter().take(MISSING_NAMED).collect(),
            held: outlook.held,
            in_review: outlook.in_review,
            kept_for_others: self.kept_from(agent),
            retry_after,
        }
    }

    /// Whether something may still come, so that a call waits for it:
    /// [`empty_handed`](Self::empty_handed) would say wait, that there are no tasks yet, or that
    /// claims are paused, unless the agent is to stop.
    /// Every waiting call asks this on each change of the board, and mostly it need not look at
    /// the whole scope: if nothing in it is ready, one unfinished task is enough.
    pub fn is_to_wait(&self, agent: &Agent, scope: Option<&str>, now: Timestamp) -> bool {
        let is_plain = |path: &str| {
            let mut ready =
                self.index.ready().filter_map(|ordinal| self.records.tasks.get(ordinal));
            let mut within =
                self.within(path).filter_map(|ordinal| self.records.tasks.get(ordinal));
            self.paused_for(agent).is_none()
                && self.spent_workflow(&agent.id).is_none()
                && self.under_way() > 0
                && self.ready_count() <= PASSED_OVER
                && !ready.any(|task| in_scope(task, Some(path)))
                && within.any(|task| task.status.is_unfinished() && !self.is_parent(&task.id))
        };
        scope.filter(|scope| *scope != "all").is_some_and(is_plain)
            || match self.empty_handed(agent, scope, now).verdict {
                Verdict::Wait | Verdict::Empty => true,
                Verdict::Paused => agent.paused.as_ref().is_none_or(|pause| !pause.stop),
                _ => false,
            }
    }

    /// True if an agent told to wait would wait only for what it holds itself, so that it has to go
    /// on with that.
    pub fn waits_for_itself(&self, agent: &Agent, scope: Option<&str>, now: Timestamp) -> bool {
        let own = self.own_tasks(agent).count();
        if own == 0 {
            return false;
        }
        let outlook = self.outlook_of(scope, agent);
        let of_others = Outlook {
            held: outlook.held - outlook.own,
            under_way: outlook.under_way - own,
            own: 0,
            ..outlook
        };
        self.verdict(&of_others, agent, now) != Verdict::Wait
    }

    /// True if an agent told to wait would wait only for reviewers.
    pub fn waits_for_review(&self, agent: &Agent, scope: Option<&str>, now: Timestamp) -> bool {
        let outlook = self.outlook_of(scope, agent);
        if self.verdict(&outlook, agent, now) != Verdict::Wait {
            return false;
        }
        let under_way = outlook.under_way - self.in_review_count();
        let of_others = Outlook { in_review: 0, under_way, ..outlook };
        self.verdict(&of_others, agent, now) != Verdict::Wait
    }

    fn own_tasks<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a Arc<Task>> {
        agent.current_tasks.iter().filter_map(|id| self.task(id)).filter(|task| task.run.is_none())
    }

    fn verdict(&self, outlook: &Outlook<'_>, agent: &Agent, now: Timestamp) -> Verdict {
        let unmet = outlook.unmet.values().sum();
        if self.paused_for(agent).is_some() {
            return Verdict::Paused;
        }
        if !outlook.is_planned {
            return Verdict::Empty;
        }
        let others_go_on = outlook.held > 0 || outlook.delayed > 0 || outlook.in_review > 0;
        if others_go_on || outlook.ready > unmet {
            return Verdict::Wait;
        }
        if outlook.open == 0 {
            return if outlook.is_unread { Verdict::Unread } else { Verdict::Finished };
        }
        // The rest may wait for what others do next, even outside the scope.
        let will_others =
            || outlook.unmet.keys().any(|demands| self.is_anyone_for(demands, agent, now));
        match unmet {
            0 if outlook.under_way > 0 => Verdict::Wait,
            0 => Verdict::Stuck,
            _ if outlook.blocked > 0
                && (outlook.under_way > self.ready_count() || will_others()) =>
            {
                Verdict::Wait
            }
            _ => Verdict::Unsuited,
        }
    }

    /// Tasks that are held, in review, delayed or ready: they can go on without another being done
    /// first.
    pub(super) fn under_way(&self) -> usize {
        self.held_count() + self.in_review_count() + self.delayed_count() + self.ready_count()
    }

    fn outlook_of<'a>(&'a self, scope: Option<&str>, agent: &'a Agent) -> Outlook<'a> {
        match scope.filter(|scope| *scope != "all") {
            Some(scope) => self.outlook_in(scope, agent),
            None => self.outlook(agent),
        }
    }

    fn outlook<'a>(&'a self, agent: &'a Agent) -> Outlook<'a> {
        Outlook {
            ready: self.ready_count(),
            unmet: self.index.unmet_by(agent).collect(),
            blocked: self.blocked_count(),
            delayed: self.delayed_count(),
            held: self.held_count(),
            own: self.own_tasks(agent).count(),
            in_review: self.in_review_count(),
            under_way: self.under_way(),
            open: self.count(TaskStatus::Available),
            next_delayed: self.index.next_delayed(),
            is_planned: self.is_planned(),
            is_unread: !self.unread_lines().is_empty(),
        }
    }

    /// True if there is or ever was a task.
    fn is_planned(&self) -> bool {
        self.live_tasks() > self.runs().live() || self.board().archived.total() > 0
    }

    /// Looks at every task of the scope.
    fn outlook_in(&self, scope: &str, agent: &Agent) -> Outlook<'_> {
        let mut outlook = Outlook {
            is_planned: self.is_planned(),
            under_way: self.under_way(),
            ..Outlook::default()
        };
        let tasks = self.within(scope).filter_map(|ordinal| self.records.tasks.get(ordinal));
        for task in tasks.filter(|task| !self.is_parent(&task.id)) {
            if task.status.is_held() {
                outlook.held += 1;
                outlook.own += usize::from(agent.current_tasks.contains(&task.id));
            } else if task.status == TaskStatus::Review {
                outlook.in_review += 1;
            } else if task.status == TaskStatus::Available {
                outlook.open += 1;
                if self.is_ready(&task.id) {
                    outlook.ready += 1;
                    if !task.demands.met_by(agent) {
                        *outlook.unmet.entry(task.demands.as_ref()).or_default() += 1;
                    }
                } else if self.is_blocked(task) {
                    outlook.blocked += 1;
                } else {
                    outlook.delayed += 1;
                    let earlier = outlook.next_delayed.into_iter().chain(task.not_before).min();
                    outlook.next_delayed = earlier;
                }
            }
        }
        outlook
    }

    /// True if another agent is around that offers what is demanded.
    fn is_anyone_for(&self, demands: &Demands, agent: &Agent, now: Timestamp) -> bool {
        self.agents().any(|other| {
            other.id != agent.id
                && other.role != Role::Observer
                && other.is_about(now)
                && demands.met_by(other)
        })
    }

    /// Tasks in the scope, which is a path, or a path of a plan.
    fn within<'a>(&'a self, scope: &'a str) -> impl Iterator<Item = Ordinal> + 'a {
        let (all, below) = match hierarchy::split_scope(scope) {
            (Some(_), "all") => (Some(self.records.tasks.iter().map(|(ordinal, _)| ordinal)), None),
            (_, path) => (None, Some(self.index.within_path(path))),
        };
        let is_in = move |ordinal: &Ordinal| {
            self.records.tasks.get(*ordinal).is_some_and(|task| in_scope(task, Some(scope)))
        };
        all.into_iter().flatten().chain(below.into_iter().flatten()).filter(is_in)
    }

    /// True if there is or was a task at or below `scope`, or if there are no tasks yet.
    pub fn is_scope(&self, scope: &str) -> bool {
        let of_retired = |stub: &Retired| path_in_scope(stub.path.as_deref(), scope);
        scope == "all"
            || !self.is_planned()
            || self.within(scope).next().is_some()
            || self.retired().any(|(_, stub)| of_retired(stub))
    }
}

/// Numbers of tasks that matter to a claim, on the whole board or in a scope.
#[derive(Default)]
struct Outlook<'a> {
    ready: usize,
    /// Ready tasks whose demands the agent does not meet, counted by demands.
    unmet: BTreeMap<&'a Demands, usize>,
    blocked: usize,
    delayed: usize,
    held: usize,
    /// Held tasks that the agent itself holds.
    own: usize,
    in_review: usize,
    /// Tasks held, in review, delayed or ready on the whole board, whatever the scope.
    under_way: usize,
    /// Available tasks, ready or not.
    open: usize,
    next_delayed: Option<Timestamp>,
    /// Whether there is or ever was a task.
    is_planned: bool,
    /// Whether lines that look like work are in no task; only the whole board has them.
    is_unread: bool,
}

/// True if the task is at or below `scope`, which is `all`, a path, or one of these behind a plan
/// and `:`. A task that no plan has is in the scope of each by its path.
pub fn in_scope(task: &Task, scope: Option<&str>) -> bool {
    let Some(scope) = scope.filter(|scope| *scope != "all") else { return true };
    match (hierarchy::split_scope(scope), task.plan_name()) {
        ((Some(plan), "all"), own) => own == Some(plan),
        ((Some(plan), _), Some(own)) if plan != own => false,
        _ => path_in_scope(task.path.as_deref(), scope),
    }
}

/// True if the path is at or below that of `scope`, in whichever plan.
pub fn path_in_scope(path: Option<&str>, scope: &str) -> bool {
    let (_, scope) = hierarchy::split_scope(scope);
    path.and_then(|path| path.strip_prefix(scope))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
