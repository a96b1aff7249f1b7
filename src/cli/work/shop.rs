//! What the agents of one worker process share: the board, the workflow's ledger, and when to stop.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::select;
use tokio::sync::watch;
use tokio::time::Instant;

use super::bundle::Handed;
use super::ledger::Ledger;
use super::show::{Event, Show};
use crate::cli::supervise::Limits;
use crate::participant::board_time;
use crate::participant::{CallError, Caller, Handle};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::id::{AgentId, TaskId};
use crate::state::time::Timestamp;
use crate::state::workflow::Spent;

/// Pauses, in milliseconds, between calls that fail because the board cannot be used; then the
/// worker gives up.
const PAUSES: [u64; 6] = [100, 300, 1_000, 3_000, 5_000, 10_000];

/// Most tasks that are left and that the workflow's state names.
const PENDING_NAMED: usize = 100;

/// How urgently to stop, from not at all to at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    Work,
    /// Claim nothing more; claimed tasks are worked on as usual.
    Enough,
    /// Let running tries finish, and retry nothing.
    Finish,
    /// End running tries, and give their tasks back.
    Cut,
    Kill,
}

pub(super) struct Settings {
    pub board: std::path::PathBuf,
    pub command: Vec<String>,
    pub current: std::path::PathBuf,
    pub scope: Option<String>,
    pub retries: u32,
    pub backoff: Duration,
    pub timeout: Option<Duration>,
    /// A try that nothing limits is pointed out when it has taken so long.
    pub long_after: Duration,
    pub max_tasks: Option<u32>,
    pub continue_on_error: bool,
    pub pass_token: bool,
    pub limits: Limits,
    pub breaker: u32,
    pub handed: Handed,
}

pub(super) struct Shop {
    pub handle: Handle,
    pub workflow: String,
    pub settings: Settings,
    pub ledger: RefCell<Ledger>,
    pub show: Show,
    pub stop: watch::Sender<Urgency>,
    /// The first reason to stop.
    pub reason: RefCell<Option<Reason>>,
    pub taken: Cell<u32>,
    /// Tasks that an interruption has left, to be gone on with before others are claimed.
    pub set_aside: RefCell<VecDeque<TaskId>>,
    /// Number of claims in progress.
    pub claiming: Cell<u32>,
    /// Distinguishes the batches of this process from those of others.
    pub run: String,
    pub batches: Cell<u64>,
    /// Seconds that the workflow's tries may still take, if that is limited.
    pub seconds_left: Cell<Option<u64>>,
    /// Tries that the workflow has begun, and how many it may begin in all, if that is limited.
    pub attempts_begun: Cell<u64>,
    pub attempts_bound: Cell<Option<u64>>,
    /// For each running try, the time from which it is not yet charged to the workflow.
    pub running: RefCell<BTreeMap<AgentId, Instant>>,
    /// The budget is the reason to stop.
    pub is_spent: Cell<bool>,
}

/// Why the work ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub text: String,
    /// What can be done about it while the work goes on.
    pub hint: Option<&'static str>,
    /// Everything went as it was asked for.
    pub is_good: bool,
}

/// A task that one of our agents holds.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub task: TaskId,
    pub attempt: u32,
    pub acted: bool,
    /// The commit on which it was claimed, as the board knows it.
    pub head: Option<String>,
}

impl Shop {
    pub(super) fn now(&self) -> Timestamp {
        board_time(&self.settings.board)
    }

    /// Calls one operation. While the board cannot be used, it is called again for a while.
    pub(super) async fn call(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Value,
    ) -> Result<Value, CallError> {
        self.ledger.borrow_mut().tally.calls += 1;
        let mut pauses = PAUSES.iter();
        loop {
            match (self.handle.call(name, arguments.clone(), caller).await, pauses.next()) {
                (Err(error @ CallError::Failed(_)), Some(pause))
                    if *self.stop.borrow() < Urgency::Kill =>
                {
                    tracing::warn!(%error, "the board could not be used; trying again");
                    self.pause(Duration::from_millis(*pause), Urgency::Kill).await;
                }
                (answer, _) => {
                    match &answer {
                        Ok(reply) => self.learn(reply),
                        Err(_) => self.not_sent(&arguments),
                    }
                    return answer;
                }
            }
        }
    }

    /// Notes that what a call, or one of a batch, says of the state may not have arrived.
    fn not_sent(&self, arguments: &Value) {
        let of_batch = arguments["operations"].as_array().into_iter().flatten();
        for saving in of_batch.map(|one| &one["arguments"]).chain([arguments]) {
            self.ledger.borrow_mut().not_sent(&saving["state"]);
        }
    }

    /// Remembers what a reply says about the budget.
    fn learn(&self, reply: &Value) {
        for saved in reply["results"].as_array().into_iter().flatten().chain([reply]) {
            if saved["spent"].is_object() {
                self.seconds_left.set(saved["remaining"]["seconds"].as_u64());
                // The board may not know yet about tries that begin just now.
                let begun = saved["spent"]["attempts"].as_u64().unwrap_or_default();
                self.attempts_begun.set(self.attempts_begun.get().max(begun));
                self.attempts_bound
                    .set(saved["remaining"]["attempts"].as_u64().map(|left| begun + left));
            }
        }
    }

    /// Counts a try that is about to begin, unless the workflow may begin no more. The board counts
    /// too, but several agents begin before it has answered one of them.
    pub(super) fn begins_attempt(&self) -> bool {
        let begun = self.attempts_begun.get();
        let may_begin = self.attempts_bound.get().is_none_or(|bound| begun < bound);
        self.attempts_begun.set(begun + u64::from(may_begin));
        may_begin
    }

    /// Takes back the count of a try that the board refused.
    pub(super) fn takes_attempt_back(&self) {
        self.attempts_begun.set(self.attempts_begun.get().saturating_sub(1));
    }

    /// Calls several writing operations in one durable write. It takes effect once, however often
    /// it must be sent.
    pub(super) async fn batch(
        &self,
        caller: &Caller,
        operations: Vec<(&str, Value)>,
    ) -> Result<Vec<Value>, CallError> {
        let items = operations.len() as u64;
        let operations: Vec<_> = operations
            .into_iter()
            .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
            .collect();
        self.batches.set(self.batches.get() + 1);
        let key = format!("work-{}-{}", self.run, self.batches.get());
        let batch = json!({"operations": operations, "idempotency_key": key});
        let mut reply = self.call(caller, "apply_batch", batch).await?;
        let mut ledger = self.ledger.borrow_mut();
        ledger.tally.writes_saved += reply["writes_saved"].as_u64().unwrap_or_default();
        ledger.tally.calls += items - 1;
        drop(ledger);
        let results = reply["results"].as_array_mut().map(std::mem::take).unwrap_or_default();
        if let Some(exhausted) = results.iter().find_map(|reply| reply["exhausted"].as_str()) {
            self.spent(format!("the workflow's budget is spent: {exhausted}"));
        }
        Ok(results)
    }

    pub(super) fn begun(&self, agent: &AgentId) {
        self.running.borrow_mut().insert(agent.clone(), Instant::now());
    }

    pub(super) fn uncharged(&self, agent: &AgentId) -> Duration {
        self.running.borrow().get(agent).map_or(Duration::ZERO, Instant::elapsed)
    }

    pub(super) fn charged(&self, agent: &AgentId, more: Duration) {
        if let Some(since) = self.running.borrow_mut().get_mut(agent) {
            *since += more;
        }
    }

    /// Ends the clock of the agent's try. Returns its time that is not yet charged.
    pub(super) fn ended(&self, agent: &AgentId) -> Duration {
        self.running.borrow_mut().remove(agent).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// When the workflow's time will be used up, if it is limited and all running tries go on.
    pub(super) fn time_ends(&self) -> Option<Instant> {
        let (left, running) =
            (Duration::from_secs(self.seconds_left.get()?), self.running.borrow());
        let left = left + self.ledger.borrow().charged_ahead();
        let uncharged = running.values().map(Instant::elapsed).sum();
        Some(
            Instant::now()
                + left.saturating_sub(uncharged) / u32::try_from(running.len()).unwrap_or(1).max(1),
        )
    }

    /// Stops the work because of its budget.
    pub(super) fn spent(&self, text: String) {
        self.is_spent.set(self.is_spent.get() || self.reason.borrow().is_none());
        self.stop(Urgency::Finish, text, false);
    }

    /// Arguments of `save_checkpoint`: the workflow as it stands and, for the held task, what the
    /// command keeps.
    pub(super) fn saving(
        &self,
        agent: Option<&AgentId>,
        held: Option<&Held>,
        spent: Spent,
    ) -> Value {
        let holder = agent.filter(|_| held.is_some());
        json!({
            "kept": holder.and_then(|agent| self.ledger.borrow().persona(agent).checkpoint),
            "agent_id": agent,
            "workflow_id": self.workflow,
            "task_id": held.map(|held| &held.task),
            "attempt": held.map(|held| held.attempt),
            "state": self.ledger.borrow_mut().change(agent),
            "replace": ["completed_tasks"],
            "spent": spent,
        })
    }

    pub(super) fn stop(&self, urgency: Urgency, text: impl Into<String>, is_good: bool) {
        self.stop_for(urgency, Reason { text: text.into(), hint: None, is_good });
    }

    pub(super) fn stop_for(&self, urgency: Urgency, why: Reason) {
        self.stop.send_if_modified(|level| {
            let rises = urgency > *level;
            *level = urgency.max(*level);
            rises
        });
        let mut reason = self.reason.borrow_mut();
        if reason.is_none() {
            let is_last = why.hint.is_none() && self.running.borrow().is_empty();
            self.show.tell(&Event::Stopping { reason: &why.text, hint: why.hint, is_last });
            *reason = Some(why);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow() > Urgency::Work
    }

    /// Waits, unless the work is to stop that urgently. Returns whether it waited to the end.
    pub(super) async fn pause(&self, pause: Duration, until: Urgency) -> bool {
        let mut stop = self.stop.subscribe();
        let end = Instant::now() + pause;
        select! {
            () = tokio::time::sleep_until(end) => true,
            _ = stop.wait_for(|level| *level >= until) => false,
        }
    }

    /// Whether the breaker keeps the command from running now.
    pub(super) fn breaker_is_open(&self) -> bool {
        self.settings.breaker > 0 && self.ledger.borrow_mut().breaker.left(self.now()) > 0
    }

    /// Waits until the breaker lets the command run again; false if the work stops. With a
    /// threshold of 0, the breaker is ignored: it may be open in the state that the work
    /// continues from.
    pub(super) async fn wait_for_breaker(&self, until: Urgency) -> bool {
        if self.settings.breaker == 0 {
            return *self.stop.borrow() < until;
        }
        loop {
            let (left, failures, gave_up) = {
                let mut ledger = self.ledger.borrow_mut();
                (
                    ledger.breaker.left(self.now()),
                    ledger.breaker.failures,
                    ledger.breaker.has_given_up(),
                )
            };
            if gave_up {
                let text = format!(
                    "the command failed {failures} times in a row; see the logs, mend it, and \
                     continue"
                );
                self.stop(Urgency::Finish, text, false);
                return false;
            }
            if left <= 0 {
                return *self.stop.borrow() < until;
            }
            let pause = Duration::from_millis(left.unsigned_abs());
            self.show.tell(&Event::Paused { seconds: pause.as_secs_f64(), failures });
            if !self.pause(pause, until).await {
                return false;
            }
        }
    }

    /// The next task that an interruption has left and that is to be done here.
    pub(super) async fn next_set_aside(&self) -> Result<Option<TaskId>, CallError> {
        loop {
            let Some(task) = self.set_aside.borrow_mut().pop_front() else { return Ok(None) };
            let (id, scope) = (task.clone(), self.settings.scope.clone());
            let looked = move |state: &State| {
                state.is_ready(&id)
                    && state.task(&id).is_some_and(|task| in_scope(task, scope.as_deref()))
            };
            if self.handle.look(looked).await? {
                return Ok(Some(task));
            }
        }
    }

    /// Notes which tasks are left for the workflow, also those that other agents work on.
    pub(super) async fn find_pending(&self) -> Result<(), CallError> {
        let scope = self.settings.scope.clone();
        let looked = move |state: &State| {
            let left = state.tasks().filter(|task| {
                task.status.is_unfinished()
                    && task.run.is_none()
                    && in_scope(task, scope.as_deref())
                    && !state.is_parent(&task.id)
            });
            left.take(PENDING_NAMED).map(|task| task.id.to_string()).collect()
        };
        let pending = self.handle.look(looked).await?;
        self.ledger.borrow_mut().state.pending_tasks = pending;
        Ok(())
    }

    pub(super) fn tell_problem(&self, problem: Option<String>) {
        if let Some(message) = problem {
            self.show.tell(&Event::Problem { message: &message });
        }
    }

    /// Updates the progress bar for the scope.
    pub(super) async fn show_progress(&self) {
        let query = json!({"scope": self.settings.scope});
        if let Ok(status) = self.handle.call("get_status", query, &Caller::default()).await {
            let number = |value: &Value| value.as_u64().unwrap_or_default();
            self.show.progress(number(&status["tasks"]["done"]), number(&status["total_tasks"]));
        }
    }

    /// The tasks that each of the agents holds.
    pub(super) async fn held(
        &self,
        agents: Vec<AgentId>,
    ) -> Result<BTreeMap<AgentId, Vec<Held>>, CallError> {
        let of = move |state: &State| {
            let held = |agent: &AgentId| {
                let tasks =
                    state.agent(agent).map(|agent| agent.current_tasks.clone()).unwrap_or_default();
                let held = tasks.into_iter().filter_map(|id| {
                    let open = state.task(&id)?.open_attempt()?;
                    Some(Held {
                        attempt: open.number,
                        acted: open.acted,
                        head: open.place.head.clone(),
                        task: id,
                    })
                });
                held.collect()
            };
            agents.iter().map(|agent| (agent.clone(), held(agent))).collect()
        };
        self.handle.look(of).await
    }
}
