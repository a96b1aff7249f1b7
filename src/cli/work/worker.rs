//! One agent of a worker process: claims tasks, runs the command, retries, and ends each task in
//! one way or another.

mod run;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::bail;
use serde_json::{Map, Value, json};
use tokio::select;
use tokio::time::{Instant, interval};

use super::checkout::{Before, Changes, Checkout};
use super::failure::{Category, Failure};
use super::ledger::Persona;
use super::output::{Printed, bounded, result};
use super::shop::{Held, Reason, Shop, Urgency};
use super::show::Event;
use crate::participant::{AgentChoice, CallError, Caller};
use crate::state::State;
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Attempt, Outcome as Ended, Task};
use crate::state::workflow::Spent;

/// Length of one long poll.
const WAIT_SECONDS: u64 = 30;
/// Why the work ends where reviewers go on.
const REVIEWS_LEFT: &str = "what is left waits for review";
/// Interval between checks that the task is still ours.
const LOOK: Duration = Duration::from_secs(1);
/// Longest interval of heartbeats, well within the shortest lease that can be set, a minute.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// Most files of a task that the workflow's state names.
const FILES_NAMED: usize = 20;
/// Most bytes in the message of a failure.
const MESSAGE: usize = 4 << 10;
const OUT_OF_TIME: &str = "the workflow's budget of time is spent";
const OUT_OF_ATTEMPTS: &str = "the workflow's budget of attempts is spent";

pub(super) struct Worker {
    pub agent: AgentId,
    pub checkout: Checkout,
    pub shop: Rc<Shop>,
    /// State of the checkout when the current task began.
    pub begun: RefCell<Option<Before>>,
}

/// How one try of a task ended.
enum Tried {
    Done(Printed, Changes),
    Failed(Failure),
    /// Ended by us, because the work stops.
    Interrupted,
    /// Ended by us, because the workflow's budget of time is spent.
    Spent,
    /// A leader, or a changed plan, asks for the end of the task.
    StopRequested {
        reason: String,
    },
    /// The task is now somebody else's, or nobody's.
    Lost {
        reason: String,
    },
    /// What an earlier worker runs for the task does not end.
    Busy {
        reason: String,
    },
    /// The command cannot be run at all.
    NotStarted {
        reason: String,
    },
}

/// Why a run is ended early.
#[derive(Clone)]
enum Cause {
    Timeout(Duration),
    /// Not a failure of the task: another workflow would have had more time.
    Spent,
    Interruption,
    StopRequested(String),
    Lost(String),
}

/// A finished try: its result, and what it used.
struct Outcome {
    tried: Tried,
    tokens: u64,
    took: Duration,
    /// When the task's own time is over; no try begins after it.
    until: Option<Instant>,
}

impl Worker {
    /// Works until there is nothing more to do, or the work stops.
    pub(super) async fn work(&mut self) -> anyhow::Result<()> {
        self.end_what_it_holds().await?;
        while self.may_claim().await && self.wait_for_breaker().await {
            self.shop.claiming.set(self.shop.claiming.get() + 1);
            let claimed = self.claim().await;
            self.shop.claiming.set(self.shop.claiming.get() - 1);
            if let Some((held, handoff)) = claimed? {
                self.shop.find_pending().await?;
                self.shop.taken.set(self.shop.taken.get() + 1);
                self.execute(held, handoff).await?;
            }
        }
        self.release_rest().await
    }

    /// Ends the tasks that were held before an interruption, and claims none.
    pub(super) async fn end_what_it_holds(&self) -> anyhow::Result<()> {
        for held in self.held().await? {
            let (agent, task, attempt) = (&self.agent, &held.task, held.attempt);
            self.shop.show.tell(&Event::TakenUp { agent, task, attempt });
            self.shop.taken.set(self.shop.taken.get() + 1);
            self.execute(held, Value::Null).await?;
        }
        Ok(())
    }

    fn caller(&self) -> Caller {
        let agent = AgentChoice::Named(self.agent.clone());
        Caller { agent, place: self.checkout.place(), ..Caller::default() }
    }

    /// Whether another task may be claimed. With a limit, claims that other agents have in progress
    /// may use it up, so they are waited for.
    async fn may_claim(&self) -> bool {
        while let Some(most) = self.shop.settings.max_tasks {
            if self.shop.taken.get() >= most {
                self.shop.stop(
                    Urgency::Enough,
                    format!("{most} tasks were taken, as many as it may"),
                    true,
                );
            }
            if self.shop.is_stopping() || self.shop.taken.get() + self.shop.claiming.get() < most {
                break;
            }
            self.shop.pause(LOOK, Urgency::Enough).await;
        }
        !self.shop.is_stopping()
    }

    /// Waits for the breaker before a claim. If the claim would yield nothing anyway, it is not
    /// waited for, since the claim's answer says so.
    async fn wait_for_breaker(&self) -> bool {
        if self.shop.breaker_is_open() && !self.may_get_a_task().await {
            return !self.shop.is_stopping();
        }
        self.shop.wait_for_breaker(Urgency::Enough).await
    }

    /// Whether there may be a task for this agent, now or later.
    async fn may_get_a_task(&self) -> bool {
        let (id, scope, now) =
            (self.agent.clone(), self.shop.settings.scope.clone(), self.shop.now());
        let looked = move |state: &State| {
            state.agent(&id).is_none_or(|agent| state.is_to_wait(agent, scope.as_deref(), now))
        };
        self.shop.handle.look(looked).await.unwrap_or(true)
    }

    async fn held(&self) -> anyhow::Result<Vec<Held>> {
        let mut held = self.shop.held(vec![self.agent.clone()]).await?;
        Ok(held.remove(&self.agent).unwrap_or_default())
    }

    /// Claims the next task; none if there is none for now. If there will be none, the work stops.
    /// What an interruption has left comes first.
    async fn claim(&mut self) -> anyhow::Result<Option<(Held, Value)>> {
        while let Some(task) = self.shop.next_set_aside().await? {
            let query = json!({"agent_id": self.agent, "task_id": task});
            match self.shop.call(&self.caller(), "claim_task", query).await {
                Ok(reply) if reply["success"] == true => return self.claimed(&reply).map(Some),
                Ok(reply) => {
                    self.make_of(&reply).await?;
                    return Ok(None);
                }
                // Others have it, or it is over: it is not ours to go on with.
                Err(CallError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let query = json!({"agent_id": self.agent, "scope": self.shop.settings.scope, "wait_seconds": WAIT_SECONDS});
        let caller = self.caller();
        let mut stop = self.shop.stop.subscribe();
        let reply = select! {
            reply = self.shop.call(&caller, "claim_task", query) => reply?,
            _ = stop.wait_for(|level| *level > Urgency::Work) => return Ok(None),
            () = self.only_reviewers_are_left() => {
                self.shop.stop(Urgency::Enough, REVIEWS_LEFT.to_owned(), true);
                return Ok(None);
            }
        };
        if reply["success"] == true {
            return self.claimed(&reply).map(Some);
        }
        self.make_of(&reply).await?;
        Ok(None)
    }

    /// Returns once this agent would wait for reviewers alone, who may take days.
    async fn only_reviewers_are_left(&self) {
        loop {
            let (id, scope) = (self.agent.clone(), self.shop.settings.scope.clone());
            let now = self.shop.now();
            let looked = move |state: &State| {
                let agent = state.agent(&id);
                agent.is_some_and(|agent| state.waits_for_review(agent, scope.as_deref(), now))
            };
            if self.shop.handle.look(looked).await.unwrap_or(false) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The task in the answer to a claim, and what earlier work hands on.
    fn claimed(&self, reply: &Value) -> anyhow::Result<(Held, Value)> {
        let task: Task = serde_json::from_value(reply["task"].clone())?;
        let attempt = u32::try_from(reply["attempt"].as_u64().unwrap_or_default())?;
        let (agent, title) = (&self.agent, task.headline());
        self.shop.show.tell(&Event::Claimed { agent, task: &task.id, title, attempt });
        let held = Held { task: task.id, attempt, acted: false, head: None };
        Ok((held, reply["handoff"].clone()))
    }

    /// Handles an answer without a task.
    async fn make_of(&self, reply: &Value) -> anyhow::Result<()> {
        let message = reply["message"].as_str().unwrap_or_default();
        let stop = |text: String, is_good| self.shop.stop(Urgency::Enough, text, is_good);
        match reply["verdict"].as_str().unwrap_or_default() {
            // Tasks that failed are not finished, and the end names them.
            "finished" => stop("nothing is left to do".to_owned(), true),
            "wait" | "empty" => {
                self.shop.show.tell(&Event::Waiting { agent: &self.agent, r#for: message })
            }
            "unsuited" => {
                let missing: Vec<_> = reply["missing"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                let text = format!(
                    "ready tasks demand what this worker has not ({}); see --capabilities",
                    missing.join(", ")
                );
                stop(text, false);
            }
            "paused" => {
                stop("claims are paused; `callboard resume` allows them again".to_owned(), false)
            }
            "stuck" | "unread" => stop(message.to_owned(), false),
            "spent" => self.shop.spent(message.to_owned()),
            _ if reply["holding"].is_array() => {
                // The answer to an earlier claim of ours was lost: its task is taken up like one
                // from before an interruption.
                for held in self.held().await?.into_iter().filter(|held| held.acted) {
                    self.execute(held, Value::Null).await?;
                }
            }
            other => stop(format!("claim_task answered `{other}`: {message}"), false),
        }
        Ok(())
    }

    /// Works on one task until it is ended in one way or another.
    async fn execute(&self, held: Held, handoff: Value) -> anyhow::Result<()> {
        let mut has_begun = false;
        let before = match self.before(&held).await {
            Ok(before) => before,
            Err(error) => return self.has_no_place(&held, &error).await,
        };
        self.begun.replace(Some(before.clone()));
        loop {
            let level = *self.shop.stop.borrow();
            if level >= Urgency::Cut || !has_begun && level >= Urgency::Finish {
                return self
                    .release(&held, "the worker was stopped before it began", Spent::default())
                    .await;
            }
            has_begun = true;
            let is_counted =
                !self.shop.ledger.borrow().goes_on(&self.agent, &held.task, held.attempt);
            if !is_counted && let Some(failure) = self.worker_died_too_often(&held).await? {
                return self.give_up(&held, &failure, Spent::default()).await;
            }
            if is_counted && !self.shop.begins_attempt() {
                self.shop.spent(OUT_OF_ATTEMPTS.to_owned());
                return self.release(&held, OUT_OF_ATTEMPTS, Spent::default()).await;
            }
            let (agent, now) = (&self.agent, self.shop.now());
            let (number, spent) =
                self.shop.ledger.borrow_mut().begin(agent, &held.task, held.attempt, now);
            let saving = self.shop.saving(Some(agent), Some(&held), spent);
            let starting =
                json!({"agent_id": agent, "task_id": held.task, "attempt": held.attempt});
            let begun = self
                .shop
                .batch(&self.caller(), vec![("start_task", starting), ("save_checkpoint", saving)])
                .await;
            if let Err(CallError::Refused(refusal)) = &begun {
                if is_counted {
                    self.shop.takes_attempt_back();
                }
                if self.is_lost(&held).await {
                    return self.lost(&held, &refusal.to_string(), Spent::default()).await;
                }
                let failure = Failure::new(
                    Category::Transient,
                    format!("it could not be started: {refusal}"),
                );
                return self.give_up(&held, &failure, Spent::default()).await;
            }
            begun?;
            let outcome = self.run(&held, number, &handoff, &before).await?;
            if !self.settle(&held, number, outcome).await? {
                return Ok(());
            }
        }
    }

    /// The failure of a task during whose present attempt workers died as often as it may fail:
    /// what it runs may well have killed them.
    async fn worker_died_too_often(&self, held: &Held) -> anyhow::Result<Option<Failure>> {
        let deaths = self.shop.ledger.borrow().persona(&self.agent).deaths + 1;
        let id = held.task.clone();
        let looked = move |state: &State| {
            let task = state.task(&id)?;
            Some(task.max_attempts.saturating_sub(task.attempts_used().saturating_sub(1)))
        };
        let allowed = self.shop.handle.look(looked).await?;
        let log = self.shop.settings.board.join("logs").join(held.task.as_str());
        Ok(allowed.filter(|allowed| deaths >= *allowed).map(|_| {
            let message = format!(
                "its worker was killed {deaths} times while it ran; it may kill it, or use up the \
                 memory: see {}, and limit it with --memory-limit",
                log.display()
            );
            Failure::new(Category::Permanent, message)
        }))
    }

    /// Prepares the checkout for a task and records its state. What another task has left is put
    /// aside, so that it is not taken for this one's.
    async fn before(&self, held: &Held) -> anyhow::Result<Before> {
        let persona = self.shop.ledger.borrow().persona(&self.agent);
        let goes_on = persona.is_at(&held.task, held.attempt);
        let left = if goes_on { None } else { self.left_behind(persona).await };
        let (checkout, agent, head, now) =
            (self.checkout.clone(), self.agent.clone(), held.head.clone(), self.shop.now());
        let look = move || {
            if goes_on {
                let made = checkout.be_there(agent.as_str(), now, &Before::default())?;
                return Ok((checkout.before_what_goes_on(head.as_deref()), [made, None]));
            }
            let of_task = left.map_or(Ok(None), |left| {
                let before = checkout.before_what_goes_on(left.head.as_deref());
                checkout.put_aside(&before, left.task.as_str(), left.attempt)
            })?;
            let rest = checkout.put_rest_aside(agent.as_str(), now)?;
            anyhow::Ok((checkout.before(), [of_task, rest]))
        };
        let (before, problems) = tokio::task::spawn_blocking(look).await??;
        problems.into_iter().for_each(|problem| self.shop.tell_problem(problem));
        Ok(before)
    }

    /// Gives the task back and stops the work: no other task would have a place to work, either.
    async fn has_no_place(&self, held: &Held, error: &anyhow::Error) -> anyhow::Result<()> {
        let reason = format!("{} has nowhere to work: {error:#}", self.agent);
        self.shop.stop(Urgency::Finish, reason.as_str(), false);
        self.release(held, &reason, Spent::default()).await
    }

    /// The task that this agent was working on when its worker was killed, if others have it now or
    /// nobody is to do it.
    async fn left_behind(&self, persona: Persona) -> Option<Held> {
        let (id, number) =
            (persona.task.filter(|_| persona.status.is_at_work())?, persona.task_attempt);
        let agent = self.agent.clone();
        let looked = self.shop.handle.look(move |state| {
            let own = |one: &&Attempt| one.number == number && one.agent == agent;
            let attempt = state.task(&id)?.attempts.iter().find(own)?;
            let is_done = attempt.outcome == Some(Ended::Done);
            (!is_done).then(|| Held {
                attempt: number,
                acted: true,
                head: attempt.place.head.clone(),
                task: id.clone(),
            })
        });
        looked.await.ok().flatten()
    }

    /// Puts aside what the task has left, so that the next task does not see it.
    async fn put_aside(&self, held: &Held) {
        let Some(before) = self.begun.take() else { return };
        let (checkout, id, attempt) = (self.checkout.clone(), held.task.to_string(), held.attempt);
        let put =
            tokio::task::spawn_blocking(move || checkout.put_aside(&before, &id, attempt)).await;
        // It is tried again before the next task.
        let problem = put.map_err(anyhow::Error::from).and_then(|put| put);
        self.shop.tell_problem(
            problem.unwrap_or_else(|error| Some(format!("{}: {error:#}", held.task))),
        );
    }

    /// Records the result of a try on the board. Returns whether the same agent tries again.
    async fn settle(&self, held: &Held, number: u32, outcome: Outcome) -> anyhow::Result<bool> {
        let Outcome { tried, tokens, took, until } = outcome;
        let failure =
            if let Tried::Failed(failure) = &tried { Some(failure.clone()) } else { None };
        let (agent, now) = (&self.agent, self.shop.now());
        let uncharged = self.shop.ended(&self.agent);
        let spent =
            self.shop.ledger.borrow_mut().tried(agent, failure.as_ref(), tokens, uncharged, now);
        self.judge_command(&tried);
        match (tried, failure) {
            (Tried::Done(printed, changes), _) => {
                if self.complete(held, printed, changes, spent).await? {
                    self.shop.show.tell(&Event::Done {
                        agent,
                        task: &held.task,
                        seconds: took.as_secs_f64(),
                        tokens,
                    });
                }
                Ok(false)
            }
            (Tried::Failed(_), Some(failure)) => {
                let left =
                    failure.category.retries(self.shop.settings.retries).saturating_sub(number - 1);
                let pause = failure.category.pause(self.shop.settings.backoff, number);
                if left == 0 || until.is_some_and(|until| Instant::now() + pause >= until) {
                    self.give_up(held, &failure, spent).await?;
                    return Ok(false);
                }
                self.wait_to_retry(held, pause, &failure, spent).await
            }
            (Tried::StopRequested { reason }, _) => {
                self.stop_as_asked(held, &reason, spent).await?;
                Ok(false)
            }
            (Tried::Lost { reason }, _) => {
                self.lost(held, &reason, spent).await?;
                Ok(false)
            }
            (Tried::Busy { reason }, _) => {
                self.release(held, &reason, spent).await?;
                Ok(false)
            }
            (Tried::NotStarted { reason }, _) => {
                self.shop.stop(
                    Urgency::Finish,
                    format!("the command cannot be run: {reason}"),
                    false,
                );
                self.release(held, &format!("the worker's command cannot be run: {reason}"), spent)
                    .await?;
                Ok(false)
            }
            (Tried::Spent, _) => {
                self.release(held, OUT_OF_TIME, spent).await?;
                Ok(false)
            }
            _ => {
                self.release(held, "the worker was interrupted", spent).await?;
                Ok(false)
            }
        }
    }

    fn judge_command(&self, tried: &Tried) {
        let (now, threshold) = (self.shop.now(), self.shop.settings.breaker);
        let mut ledger = self.shop.ledger.borrow_mut();
        match tried {
            Tried::Done(..) => ledger.breaker.succeeded(),
            Tried::Failed(_) => ledger.breaker.failed(threshold, now),
            _ => {}
        }
    }

    /// Completes the task. Returns whether it is done: a result that the board does not accept
    /// fails the task.
    async fn complete(
        &self,
        held: &Held,
        printed: Printed,
        changes: Changes,
        spent: Spent,
    ) -> anyhow::Result<bool> {
        let agent = &self.agent;
        let (output, data) = result(printed);
        let mut completing = json!({
            "agent_id": agent,
            "task_id": held.task,
            "attempt": held.attempt,
            "output": output,
            "data": data,
            "files_modified": changes.modified,
            "files_created": changes.created,
            "branch": changes.branch,
            "commit": changes.commit,
        });
        let left = self.artifacts(held, &changes).await;
        {
            let mut ledger = self.shop.ledger.borrow_mut();
            ledger.ended(agent, &held.task, true, self.shop.now());
            ledger.leaves(&held.task, left);
            ledger.tally.done += 1;
        }
        let mut ended = self.end_by("complete_task", held, &completing, spent).await?;
        if ended.is_err() && !self.is_lost(held).await {
            completing["data"] = Value::Null;
            ended = self.end_by("complete_task", held, &completing, spent).await?;
        }
        let Err(refusal) = ended else {
            self.begun.take();
            self.shop.show_progress().await;
            return Ok(true);
        };
        self.shop.ledger.borrow_mut().take_back(&held.task);
        if self.is_lost(held).await {
            self.lost(held, &refusal.to_string(), spent).await?;
        } else {
            let failure =
                Failure::new(Category::Permanent, format!("its result was refused: {refusal}"));
            self.give_up(held, &failure, spent).await?;
        }
        Ok(false)
    }

    /// What work on the task has left: files, a commit, and artifacts attached to it.
    async fn artifacts(&self, held: &Held, changes: &Changes) -> Map<String, Value> {
        let id = held.task.clone();
        let attached = move |state: &State| {
            let artifacts = state.task(&id).map(|task| task.artifacts.clone()).unwrap_or_default();
            artifacts.into_iter().map(|one| Value::from(one.name)).collect::<Vec<_>>()
        };
        let attached = self.shop.handle.look(attached).await.unwrap_or_default();
        let files = changes.created.iter().chain(&changes.modified).take(FILES_NAMED);
        let files: Vec<_> = files.map(|file| Value::from(file.as_str())).collect();
        let parts = [
            ("files", json!(files)),
            ("attached", json!(attached)),
            ("branch", json!(changes.branch)),
            ("commit", json!(changes.commit)),
        ];
        let is_there = |value: &Value| !value.is_null() && *value != json!([]);
        let parts = parts.into_iter().filter(|(_, value)| is_there(value));
        parts.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Ends a task by one operation, and saves in the same write. If that is refused, the operation
    /// is called alone, since a result that comes too late is kept on its attempt.
    async fn end_by(
        &self,
        name: &str,
        held: &Held,
        arguments: &Value,
        spent: Spent,
    ) -> anyhow::Result<Result<Value, Refusal>> {
        let saving = self.shop.saving(Some(&self.agent), None, spent);
        match self
            .shop
            .batch(&self.caller(), vec![(name, arguments.clone()), ("save_checkpoint", saving)])
            .await
        {
            Ok(mut replies) => {
                return Ok(Ok(replies.first_mut().map(Value::take).unwrap_or_default()));
            }
            Err(CallError::Refused(refusal)) => {
                tracing::debug!(%refusal, task = %held.task, name, "alone, then")
            }
            Err(error) => return Err(error.into()),
        }
        match self.shop.call(&self.caller(), name, arguments.clone()).await {
            Ok(reply) => {
                self.save(None, spent).await?;
                Ok(Ok(reply))
            }
            Err(CallError::Refused(refusal)) => Ok(Err(refusal)),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a refusal means that the task is not ours any more. If it is still ours, the call
    /// would be refused again, and the task must be ended.
    async fn is_lost(&self, held: &Held) -> bool {
        self.has_completed(held).await
            || matches!(self.reason_to_end(held).await, Some(Cause::Lost(_)))
    }

    /// The second level of retries: another attempt, by another agent if there is one. A permanent
    /// failure parks the task.
    async fn give_up(&self, held: &Held, failure: &Failure, spent: Spent) -> anyhow::Result<()> {
        let agent = &self.agent;
        self.put_aside(held).await;
        let failing = json!({
            "agent_id": agent,
            "task_id": held.task,
            "attempt": held.attempt,
            "error": bounded(&failure.message, MESSAGE),
            "category": failure.category.as_str(),
            "final": failure.category == Category::Permanent,
        });
        {
            let mut ledger = self.shop.ledger.borrow_mut();
            ledger.ended(agent, &held.task, false, self.shop.now());
            ledger.tally.given_up += 1;
        }
        let reply = match self.end_by("fail_task", held, &failing, spent).await? {
            Ok(reply) => reply,
            Err(refusal) => {
                self.shop.ledger.borrow_mut().tally.given_up -= 1;
                return self.release(held, &refusal.to_string(), spent).await;
            }
        };
        let status = reply["status"].as_str().unwrap_or("failed");
        let attempts_left = reply["attempts_left"].as_u64().unwrap_or_default();
        let is_parked = status == "failed";
        {
            let mut ledger = self.shop.ledger.borrow_mut();
            ledger.tally.parked += u64::from(is_parked);
            if is_parked {
                ledger.no_longer_pending(&held.task);
            }
        }
        let (category, error) = (failure.category.as_str(), failure.message.as_str());
        self.shop.show.tell(&Event::Failed {
            agent,
            task: &held.task,
            category,
            error,
            status,
            attempts_left,
        });
        if is_parked && !self.shop.settings.continue_on_error {
            let text = format!("task {} failed", held.task);
            let hint = Some("--continue-on-error goes on with others");
            self.shop.stop_for(Urgency::Finish, Reason { text, hint, is_good: false });
        }
        Ok(())
    }

    /// The first level of retries: the same agent tries again after a pause. Returns whether it
    /// does.
    async fn wait_to_retry(
        &self,
        held: &Held,
        pause: Duration,
        failure: &Failure,
        spent: Spent,
    ) -> anyhow::Result<bool> {
        let agent = &self.agent;
        let (category, error) = (failure.category.as_str(), failure.message.as_str());
        let pause_seconds = pause.as_secs_f64();
        self.shop.show.tell(&Event::Retrying {
            agent,
            task: &held.task,
            category,
            error,
            pause_seconds,
        });
        let saved = self
            .shop
            .call(
                &self.caller(),
                "save_checkpoint",
                self.shop.saving(Some(agent), Some(held), spent),
            )
            .await;
        let saved = match saved {
            Err(CallError::Refused(refusal)) if self.is_lost(held).await => {
                self.lost(held, &refusal.to_string(), spent).await?;
                return Ok(false);
            }
            Err(CallError::Refused(refusal)) => {
                self.release(held, &format!("it could not be saved: {refusal}"), spent).await?;
                return Ok(false);
            }
            saved => saved?,
        };
        if let Some(exhausted) = saved["exhausted"].as_str() {
            self.shop.spent(format!("the workflow's budget is spent: {exhausted}"));
            self.release(held, "the workflow's budget is spent", Spent::default()).await?;
            return Ok(false);
        }
        let waiting = async {
            self.shop.pause(pause, Urgency::Finish).await
                && self.shop.wait_for_breaker(Urgency::Finish).await
        };
        let end = select! {
            goes_on = waiting => if goes_on { None } else { Some(Cause::Interruption) },
            end = self.hold(held) => Some(end),
        };
        match end {
            None => {
                self.shop.ledger.borrow_mut().tally.retries += 1;
                return Ok(true);
            }
            Some(Cause::Lost(reason)) => self.lost(held, &reason, Spent::default()).await?,
            Some(Cause::StopRequested(reason)) => {
                self.stop_as_asked(held, &reason, Spent::default()).await?
            }
            Some(_) => {
                let reason = format!("the worker stopped after a failure: {}", bounded(error, 500));
                self.release(held, &reason, Spent::default()).await?;
            }
        }
        Ok(false)
    }

    /// Renews the lease between two tries, until there is a reason to stop.
    async fn hold(&self, held: &Held) -> Cause {
        let (mut look, mut beat) = (interval(LOOK), interval(self.between_beats()));
        loop {
            select! {
                _ = look.tick() => if let Some(end) = self.reason_to_end(held).await {
                    return end;
                },
                _ = beat.tick() => self.heartbeat(held).await,
            }
        }
    }

    /// Gives the task back: whoever asked for its end decides whether it is cancelled or offered
    /// again.
    async fn stop_as_asked(&self, held: &Held, reason: &str, spent: Spent) -> anyhow::Result<()> {
        self.put_aside(held).await;
        self.shop.ledger.borrow_mut().ended(&self.agent, &held.task, false, self.shop.now());
        self.give_back(held, &format!("stopped as asked: {reason}"), spent).await
    }

    /// Gives the task back because the work stops: the next start goes on with it.
    async fn release(&self, held: &Held, reason: &str, spent: Spent) -> anyhow::Result<()> {
        self.put_aside(held).await;
        let now = self.shop.now();
        self.shop.ledger.borrow_mut().interrupted(&self.agent, &held.task, held.attempt, now);
        self.give_back(held, reason, spent).await
    }

    async fn give_back(&self, held: &Held, reason: &str, spent: Spent) -> anyhow::Result<()> {
        let agent = &self.agent;
        let releasing = json!({"agent_id": agent, "task_id": held.task, "attempt": held.attempt, "reason": bounded(reason, limit::REASON.max)});
        if let Err(refusal) = self.end_by("release_task", held, &releasing, spent).await? {
            if self.is_lost(held).await {
                return self.lost(held, &refusal.to_string(), spent).await;
            }
            bail!("{} can be neither ended nor given back: {refusal}", held.task);
        }
        self.shop.ledger.borrow_mut().tally.released += 1;
        self.shop.show.tell(&Event::Released { agent, task: &held.task, reason });
        Ok(())
    }

    /// Ends work on a task that is not ours any more. On the board, the task stays as it is.
    async fn lost(&self, held: &Held, reason: &str, spent: Spent) -> anyhow::Result<()> {
        self.put_aside(held).await;
        {
            let mut ledger = self.shop.ledger.borrow_mut();
            ledger.ended(&self.agent, &held.task, false, self.shop.now());
            ledger.tally.lost += 1;
        }
        self.shop.show.tell(&Event::Lost { agent: &self.agent, task: &held.task, reason });
        self.save(None, spent).await
    }

    /// Saves the workflow. If the state is refused, that must not end the work, so what was spent
    /// is charged without it, and the refusal is told.
    async fn save(&self, held: Option<&Held>, spent: Spent) -> anyhow::Result<()> {
        let refusal = self.try_save(held, spent).await?;
        let problem = |refusal| format!("where the work stands was not saved: {refusal}");
        self.shop.tell_problem(refusal.map(problem));
        Ok(())
    }

    /// Like [`Self::save`]. Returns why the state was refused, if it was.
    async fn try_save(&self, held: Option<&Held>, spent: Spent) -> anyhow::Result<Option<Refusal>> {
        let mut saving = self.shop.saving(Some(&self.agent), held, spent);
        let refusal = match self.shop.call(&self.caller(), "save_checkpoint", saving.clone()).await
        {
            Ok(_) => return Ok(None),
            Err(CallError::Refused(refusal)) => refusal,
            Err(error) => return Err(error.into()),
        };
        for field in ["state", "replace", "kept"] {
            saving[field] = Value::Null;
        }
        match self.shop.call(&self.caller(), "save_checkpoint", saving).await {
            Ok(_) | Err(CallError::Refused(_)) => Ok(Some(refusal)),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives back a task whose claim was answered after the work had stopped.
    async fn release_rest(&self) -> anyhow::Result<()> {
        for held in self.held().await? {
            self.release(&held, "the worker stopped before it began", Spent::default()).await?;
        }
        Ok(())
    }

    /// Interval of heartbeats: a tenth of what is left of a budget of time, so that a worker that
    /// is killed has not worked much longer than is charged.
    fn between_beats(&self) -> Duration {
        let tenth = |left: u64| Duration::from_secs(left / 10).max(LOOK);
        self.shop.seconds_left.get().map_or(HEARTBEAT, |left| HEARTBEAT.min(tenth(left)))
    }

    /// Renews the lease, and charges the time since the last heartbeat, so that the time of a
    /// killed worker counts.
    async fn heartbeat(&self, held: &Held) {
        let beating =
            json!({"agent_id": self.agent, "task_id": held.task, "attempt": held.attempt});
        let more = self.shop.uncharged(&self.agent);
        let seconds = self.shop.ledger.borrow_mut().charge(more);
        let spent = Spent { seconds, ..Spent::default() };
        let charging =
            json!({"agent_id": self.agent, "workflow_id": self.shop.workflow, "spent": spent});
        let both = vec![("heartbeat", beating), ("save_checkpoint", charging)];
        match self.shop.batch(&self.caller(), both).await {
            Ok(_) => self.shop.charged(&self.agent, more),
            Err(error) => {
                self.shop.ledger.borrow_mut().uncharge(more, seconds);
                tracing::debug!(%error, "no heartbeat");
            }
        }
    }

    /// Whether the command has completed its task itself, so that nobody does it again.
    async fn has_completed(&self, held: &Held) -> bool {
        let (id, agent, attempt) = (held.task.clone(), self.agent.clone(), held.attempt);
        let looked = move |state: &State| {
            state.task(&id).is_some_and(|task| is_completed(task, &agent, attempt))
        };
        self.shop.handle.look(looked).await.unwrap_or(false)
    }

    /// Why the run must end: the task is not ours any more, or not wanted. None also if the command
    /// has completed it.
    async fn reason_to_end(&self, held: &Held) -> Option<Cause> {
        let (id, agent, attempt) = (held.task.clone(), self.agent.clone(), held.attempt);
        let looked = self.shop.handle.look(move |state| {
            let Some(task) = state.task(&id) else {
                return Some(Cause::Lost("it is gone".to_owned()));
            };
            match task.open_attempt() {
                Some(open) if open.agent == agent && open.number == attempt => {
                    let request = task.stop_requested.as_ref()?;
                    let reason =
                        request.reason.clone().unwrap_or_else(|| "no reason given".to_owned());
                    Some(Cause::StopRequested(reason))
                }
                Some(open) => {
                    Some(Cause::Lost(format!("{} has it, attempt {}", open.agent, open.number)))
                }
                None if is_completed(task, &agent, attempt) => None,
                None => Some(Cause::Lost(format!("it is {}", task.status))),
            }
        });
        // A board that cannot be read says nothing about the task.
        looked.await.ok().flatten()
    }
}

fn is_completed(task: &Task, agent: &AgentId, attempt: u32) -> bool {
    let own = |one: &Attempt| one.number == attempt && one.agent == *agent;
    task.attempts.iter().any(|one| own(one) && one.outcome == Some(Ended::Done))
}
