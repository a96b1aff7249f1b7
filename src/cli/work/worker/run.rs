//! One run of the command: how it is started and listened to, and what it results in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::select;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::checkout::Before;
use super::super::child::{Child, End, Happened};
use super::super::failure::{Category, Failure};
use super::super::git;
use super::super::log::{Log, Shelf};
use super::super::output::{Marked, Output, Printed, bounded, tokens};
use super::super::shop::{Held, Urgency};
use super::super::show::Event;
use super::{Cause, LOOK, OUT_OF_TIME, Outcome, Tried, Worker};
use crate::cli::supervise::{self, Assignment, Order, Usage};
use crate::participant::CallError;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::task::Task;
use crate::state::workflow::Spent;

/// Least time between saves of marked checkpoints; those that come faster are saved with the next.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(200);
/// Time before the end of the task's own time at which its try is ended, to fail it before its
/// lease is over.
const MARGIN: Duration = Duration::from_secs(5);
/// Most bytes in an environment variable: arguments and environment share what the system allows.
const VARIABLE: usize = 16 << 10;

impl Worker {
    /// Runs the command once, to its end.
    pub(super) async fn run(
        &self,
        held: &Held,
        number: u32,
        handoff: &Value,
        before: &Before,
    ) -> anyhow::Result<Outcome> {
        let start = Instant::now();
        self.shop.begun(&self.agent);
        let task = match self.task(&held.task).await {
            Ok(task) => task,
            Err(error) if is_refusal(&error) => {
                let tried = Tried::Lost { reason: error.to_string() };
                return Ok(Outcome { tried, tokens: 0, took: start.elapsed(), until: None });
            }
            Err(error) => return Err(error),
        };
        let until = self.until(&task);
        let opened = Shelf::open(&self.shop.settings.board, &held.task);
        let opened = opened.and_then(|shelf| Ok((shelf.log(held.attempt, number)?, shelf.lock())));
        let (log, lock) = match opened {
            Ok((log, lock)) => (log, Some(lock)),
            Err(error) => {
                let message = format!("{} runs without a log: {error}", held.task);
                self.shop.show.tell(&Event::Problem { message: &message });
                (Log::none(), None)
            }
        };
        let (checkout, agent, now, head) =
            (self.checkout.clone(), self.agent.clone(), self.shop.now(), before.clone());
        let there =
            tokio::task::spawn_blocking(move || checkout.be_there(agent.as_str(), now, &head))
                .await;
        match there.map_err(anyhow::Error::from).and_then(|there| there) {
            Ok(problem) => self.shop.tell_problem(problem),
            Err(error) => {
                let tried = Tried::NotStarted { reason: format!("{error:#}") };
                return Ok(Outcome { tried, tokens: 0, took: start.elapsed(), until });
            }
        }
        let assignment = self.assignment(&task, held, number, handoff, lock);
        let mut output = Output::new(log);
        let ended = match Child::start(&assignment, self.shop.settings.pass_token).await {
            Ok(child) => self.follow(child, held, number, until, &mut output).await,
            Err(error) => (
                End::NotStarted { reason: format!("its supervisor: {error}") },
                Printed::default(),
                None,
            ),
        };
        let (end, printed, cause) = ended;
        let tokens = printed.object.as_ref().map_or(0, tokens);
        let tried = match (cause, end) {
            (Some(Cause::Lost(reason)), _) => Tried::Lost { reason },
            // However the run ended: what it changed belongs to the result that it reported.
            _ if self.has_completed(held).await => self.done(&task, before, printed).await,
            (Some(Cause::StopRequested(reason)), _) => Tried::StopRequested { reason },
            (_, End::Busy { reason }) => Tried::Busy { reason },
            (_, End::NotStarted { reason }) => {
                Tried::NotStarted { reason: format!("{}: {reason}", assignment.command[0]) }
            }
            // A command that is told to end may well exit without an error.
            (Some(Cause::Interruption), End::Exit(_)) => Tried::Interrupted,
            (Some(Cause::Timeout(after)), End::Exit(_)) => {
                let message =
                    format!("no end within {} s\n{}", after.as_secs_f64(), printed.last_lines);
                Tried::Failed(Failure::new(Category::Timeout, message.trim_end()))
            }
            (None, End::Exit(exit)) => match Failure::of(exit, &printed) {
                None => self.done(&task, before, printed).await,
                Some(failure) => Tried::Failed(failure),
            },
            (Some(Cause::Interruption), End::Lost) => Tried::Interrupted,
            (Some(Cause::Spent), End::Exit(_) | End::Lost) => Tried::Spent,
            (_, End::Lost) => {
                let message = format!(
                    "the process that supervises the command was killed\n{}",
                    printed.last_lines
                );
                Tried::Failed(Failure::new(Category::Transient, message))
            }
        };
        Ok(Outcome { tried, tokens, took: start.elapsed(), until })
    }

    async fn task(&self, id: &TaskId) -> anyhow::Result<Task> {
        let mut reply = self.shop.call(&self.caller(), "get_task", json!({"task_id": id})).await?;
        Ok(serde_json::from_value(reply["task"].take())?)
    }

    async fn done(&self, task: &Task, before: &Before, printed: Printed) -> Tried {
        let (checkout, before) = (self.checkout.clone(), before.clone());
        let (subject, id) = (task.headline().to_owned(), task.id.to_string());
        let looked =
            tokio::task::spawn_blocking(move || checkout.done(&before, &subject, &id)).await;
        match looked.map_err(anyhow::Error::from).and_then(|changes| changes) {
            Ok((changes, problem)) => {
                self.shop.tell_problem(problem);
                Tried::Done(printed, changes)
            }
            Err(error) => Tried::Failed(Failure::new(Category::Transient, format!("{error:#}"))),
        }
    }

    /// When the task's own time is over for this worker: early enough to fail it before its lease
    /// ends.
    fn until(&self, task: &Task) -> Option<Instant> {
        let (open, seconds) = (task.open_attempt()?, task.timeout_seconds?);
        let whole = Duration::from_secs(u64::from(seconds));
        let gone = self.shop.now().since(open.claimed_at + open.stepped_millis);
        let gone = Duration::from_millis(u64::try_from(gone).unwrap_or_default());
        Some(Instant::now() + whole.saturating_sub(MARGIN.min(whole / 2)).saturating_sub(gone))
    }

    fn assignment(
        &self,
        task: &Task,
        held: &Held,
        number: u32,
        handoff: &Value,
        lock: Option<PathBuf>,
    ) -> Assignment {
        let persona = self.shop.ledger.borrow().persona(&self.agent);
        let kept = || task.kept.as_deref().map(|kept| Value::Object(kept.clone()));
        let input = json!({
            "task": task.brief(),
            "attempt": held.attempt,
            "try": number,
            "agent_id": self.agent,
            "workflow_id": self.shop.workflow,
            "handoff": handoff,
            "checkpoint": persona.checkpoint.clone().or_else(kept),
            "persona_state": persona,
            "attempts": task.attempts,
            "bundle": self.shop.settings.handed.input(),
        });
        let mark = lock
            .as_deref()
            .and_then(|lock| std::fs::metadata(lock).ok())
            .map(|lock| supervise::mark(&lock));
        let run = format!("{}{}-{}-{number}", mark.unwrap_or_default(), self.shop.run, held.task);
        let path = task.path.clone().unwrap_or_default();
        let variables = [
            ("CALLBOARD_TASK_ID", held.task.to_string()),
            ("CALLBOARD_TASK_TITLE", task.headline().to_owned()),
            ("CALLBOARD_TASK_DESCRIPTION", task.description.to_string()),
            ("CALLBOARD_TASK_PATH", path),
            ("CALLBOARD_ATTEMPT", held.attempt.to_string()),
            ("CALLBOARD_TRY", number.to_string()),
            ("CALLBOARD_AGENT", self.agent.to_string()),
            ("CALLBOARD_WORKFLOW", self.shop.workflow.clone()),
            // Where it cannot be said it is left empty, and found from the worktree.
            ("COORDINATION_DIR", self.shop.settings.board.to_str().unwrap_or_default().to_owned()),
            // The command is to use this board, not a server's.
            ("CALLBOARD_SERVER", String::new()),
            (supervise::RUN, run),
            (git::WORKTREE, self.checkout.root().to_string_lossy().into_owned()),
        ];
        let handed = self.shop.settings.handed.variables();
        let variable = |(name, value): (&str, String)| {
            (name.to_owned(), bounded(&value, VARIABLE).replace('\0', " "))
        };
        Assignment {
            command: self.command(),
            environment: variables
                .into_iter()
                .chain(handed)
                .map(variable)
                .collect::<BTreeMap<_, _>>(),
            directory: self.checkout.directory().to_owned(),
            lock,
            limits: self.shop.settings.limits,
            input: input.to_string() + "\n",
        }
    }

    /// The command to run. A program named by a relative path is taken from the agent's own
    /// directory if it exists there.
    fn command(&self) -> Vec<String> {
        let mut command = self.shop.settings.command.clone();
        let is_path = |program: &&mut String| {
            program.contains('/') && !Path::new(program.as_str()).is_absolute()
        };
        if let Some(program) = command.first_mut().filter(is_path)
            && !self.checkout.directory().join(program.as_str()).exists()
            && let Some(found) = self.shop.settings.current.join(program.as_str()).to_str()
        {
            *program = found.to_owned();
        }
        command
    }

    /// Listens until the command has ended, and ends it if there is a reason to.
    async fn follow(
        &self,
        mut child: Child,
        held: &Held,
        number: u32,
        until_own: Option<Instant>,
        output: &mut Output,
    ) -> (End, Printed, Option<Cause>) {
        let (mut look, mut beat) = (interval(LOOK), interval(self.between_beats()));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let start = Instant::now();
        let own = until_own.map(|until| until.saturating_duration_since(start));
        let limit = [self.shop.settings.timeout, own].into_iter().flatten().min();
        let deadline = limit.map(|limit| start + limit);
        let mut long = limit.is_none().then(|| start + self.shop.settings.long_after);
        let mut stop = self.shop.stop.subscribe();
        let mut cause: Option<Cause> = None;
        let mut ordered = Urgency::Work;
        let (mut last_saved, mut unsaved): (Option<Instant>, bool) = (None, false);
        let mut writing: Option<Writing<'_>> = None;
        let mut unkept = Unkept::default();
        loop {
            let seen = *stop.borrow_and_update();
            if seen >= Urgency::Cut && seen > ordered {
                ordered = seen;
                cause = cause.or(Some(Cause::Interruption));
                child
                    .order(if seen == Urgency::Kill { Order::Kill } else { Order::Terminate })
                    .await;
            }
            let is_due = || last_saved.is_none_or(|last| last.elapsed() >= BETWEEN_CHECKPOINTS);
            if unsaved && writing.is_none() && is_due() {
                writing = Some(Box::pin(self.save_kept(held)));
                (last_saved, unsaved) = (Some(Instant::now()), false);
            }
            if writing.is_none()
                && let Some(reason) = unkept.untold.take()
            {
                writing = Some(Box::pin(self.note_unkept(held, reason)));
            }
            let end = select! {
                happened = child.next(output) => match happened {
                    Happened::Output => continue,
                    Happened::Started { pid } => {
                        let log = output.log().path().display().to_string();
                        self.shop.show.tell(&Event::Running { agent: &self.agent, task: &held.task, r#try: number, pid, log });
                        continue;
                    }
                    Happened::Marked(marked) => {
                        unsaved |= self.keep(marked, output, &mut unkept);
                        continue;
                    }
                    Happened::Over => {
                        self.used(held, number, child.used());
                        let (end, printed) = child.end(output).await;
                        written(&mut writing).await;
                        // The last line need not end with a newline.
                        if self.keep(output.take_marked(), output, &mut unkept) || unsaved {
                            self.save_kept(held).await;
                        }
                        if let Some(reason) = unkept.untold.take() {
                            self.note_unkept(held, reason).await;
                        }
                        return (end, printed, cause);
                    }
                },
                () = written(&mut writing), if writing.is_some() => continue,
                _ = stop.changed() => continue,
                // This check waits for no lock.
                _ = look.tick() => self.reason_to_end(held).await,
                _ = beat.tick(), if writing.is_none() => {
                    writing = Some(Box::pin(self.heartbeat(held)));
                    continue;
                }
                () = until(long), if long.is_some() => {
                    long = None;
                    let (agent, task, seconds) = (&self.agent, &held.task, start.elapsed().as_secs());
                    self.shop.show.tell(&Event::Long { agent, task, seconds });
                    continue;
                }
                () = until(deadline), if cause.is_none() => limit.map(Cause::Timeout),
                // Computed at each turn, since other agents' tries use the time up, too.
                () = until(self.shop.time_ends()), if cause.is_none() => {
                    self.shop.spent(OUT_OF_TIME.to_owned());
                    Some(Cause::Spent)
                }
            };
            if let (Some(end), None) = (end, &cause) {
                cause = Some(end);
                child.order(Order::Terminate).await;
            }
        }
    }

    /// Reports what a try has used.
    fn used(&self, held: &Held, number: u32, used: Usage) {
        let Usage { memory_bytes, open_files } = used;
        self.shop.ledger.borrow_mut().used(used);
        let (agent, task) = (&self.agent, &held.task);
        self.shop.show.tell(&Event::Used { agent, task, r#try: number, memory_bytes, open_files });
    }

    /// Keeps the newest of the marked checkpoints. Returns whether there is one to save.
    fn keep(&self, marked: Vec<Marked>, output: &mut Output, unkept: &mut Unkept) -> bool {
        let mut kept = false;
        for one in marked {
            let one = one.and_then(|state| {
                self.shop.ledger.borrow_mut().keep(&self.agent, state, self.shop.now())
            });
            match one {
                Ok(()) => kept = true,
                Err(reason) => {
                    output.note(&format!("a checkpoint was not kept: {reason}"));
                    unkept.add(reason);
                }
            }
        }
        kept
    }

    async fn save_kept(&self, held: &Held) {
        match self.try_save(Some(held), Spent::default()).await {
            Ok(None) => {
                self.shop.show.tell(&Event::Checkpoint { agent: &self.agent, task: &held.task })
            }
            Ok(Some(refusal)) => self.note_unkept(held, refusal.to_string()).await,
            Err(error) => {
                self.shop.tell_problem(Some(format!(
                    "{}: a checkpoint was not kept: {error:#}",
                    held.task
                )));
            }
        }
    }

    /// Reports a checkpoint that was not kept: in the output, and by a note on the task, because its
    /// next agent goes on from an older checkpoint.
    async fn note_unkept(&self, held: &Held, reason: String) {
        let what = format!("a checkpoint was not kept: {reason}");
        self.shop.tell_problem(Some(format!("{}: {what}", held.task)));
        let note = bounded(&what, limit::NOTE.max);
        let noting = json!({"agent_id": self.agent, "task_id": held.task,
            "attempt": held.attempt, "note": note});
        if let Err(error) = self.shop.call(&self.caller(), "heartbeat", noting).await {
            tracing::debug!(%error, "no note");
        }
    }
}

/// Why marked checkpoints of one try were not kept. The first is told; the log has all.
#[derive(Default)]
struct Unkept {
    untold: Option<String>,
    is_told: bool,
}

impl Unkept {
    fn add(&mut self, reason: String) {
        if !std::mem::replace(&mut self.is_told, true) {
            self.untold = Some(reason);
        }
    }
}

/// A write to the board while the command runs. Nothing waits for it: somebody may hold the board's
/// lock, and the command must still be ended in time.
type Writing<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

async fn written(writing: &mut Option<Writing<'_>>) {
    if let Some(under_way) = writing {
        under_way.await;
        *writing = None;
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(CallError::Refused(_)))
}
