//! Durable operations in this process, without any transport: how long one caller waits, and how
//! much many callers do together.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::calibration::Rows;
use super::doors::{Claimed, Client, Reply};
use super::drive::Refused;
use super::figure::{Key, Unit};
use super::machine::written;
use super::place::{Board, agent, create_tasks, inside};
use super::{Bench, Measure};
use crate::journal::sqlite::FILE_NAME;
use crate::participant::{Caller, Handle};

const PART: &str = "commit";
pub(super) const CLAIM: Key = Key::new(PART, "claim");
pub(super) const COMPLETE: Key = Key::new(PART, "complete");
pub(super) const SAVE: Key = Key::new(PART, "save_checkpoint of 2 kB");
/// Measured in turns with the claims, so that both meet the same load on the machine.
pub(super) const SQLITE: Key = Key::new(PART, "SQLite FULL commit, in turns with the claims");
pub(super) const SQLITE_SAVES: Key =
    Key::new(PART, "SQLite FULL commit, in turns with the checkpoints");
pub(super) const RATE: Key = Key::new(PART, "claims and completions");
pub(super) const WRITTEN: Key = Key::new(PART, "written by an operation");
const EMPTY: Key = Key::new(PART, "claim, empty-handed");
pub(super) const PLANNED: Key = Key::new(PART, "claim, beside a plan of 200 kB");

/// Numbers of callers at once, in addition to a single one.
pub(super) const CALLERS: [usize; 2] = [8, 64];
/// Agents on a board: one for each caller at once, and one for the single caller.
const AGENTS: usize = 65;
const ALONE: usize = 64;
/// Size, in tasks, from which a board is reused in every round, because making one takes a while.
const RENEWED: usize = 10_000;
/// Most tasks that a caller does per round.
const MOST_EACH: usize = 20;
pub(super) const SMALL_BOARD: usize = 1_000;
const PLAN_BYTES: usize = 200_000;
/// Tasks of a large board that are done only to measure what is written, including checkpoints of
/// the log.
const LASTING: usize = 1_000;

pub(super) struct Commits {
    runtime: Runtime,
    rows: Rows,
    kept: Vec<Filled>,
    nothing_suited: Option<Filled>,
}

/// A participant in this process, with a board of tasks to do.
struct Filled {
    handle: Handle,
    board: Board,
    /// Number of available tasks when a round begins.
    tasks: usize,
    /// Number of tasks ever created.
    created: usize,
}

impl Filled {
    fn new(tasks: usize, bench: &mut Bench) -> anyhow::Result<Self> {
        let board = bench.place.board(tasks, AGENTS)?;
        Ok(Self { handle: inside(&board), board, tasks, created: tasks })
    }

    /// Adds as many tasks as were done, so that in each round the board is as large as stated.
    async fn fill_again(&mut self) -> anyhow::Result<()> {
        let (status, _) = call(&self.handle, "get_status", json!({})).await?;
        let ready = status["queue"]["ready"]
            .as_u64()
            .with_context(|| format!("nothing is said of what is ready: {status}"))?;
        let missing = self.tasks.saturating_sub(usize::try_from(ready)?);
        create_tasks(&self.handle, self.created..self.created + missing, &json!({})).await?;
        self.created += missing;
        self.board.settle()?;
        // Otherwise, what many callers wrote in the round before would be written back during a
        // measurement.
        take_log_in(&self.board)
    }
}

/// Checkpoints the log, as SQLite does by itself when the log is long.
fn take_log_in(board: &Path) -> anyhow::Result<()> {
    let journal = Connection::open(board.join(FILE_NAME))?;
    Ok(journal.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
}

impl Commits {
    pub(super) fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self {
            runtime,
            rows: Rows::new(&mut bench.place)?,
            kept: Vec::new(),
            nothing_suited: None,
        })
    }

    /// A board with that many tasks: one that was kept and is refilled, or a new one.
    fn board(&mut self, tasks: usize, bench: &mut Bench) -> anyhow::Result<Filled> {
        match self.kept.iter().position(|kept| kept.tasks == tasks) {
            Some(kept) => {
                let mut kept = self.kept.swap_remove(kept);
                self.runtime.block_on(kept.fill_again())?;
                Ok(kept)
            }
            None => Filled::new(tasks, bench),
        }
    }

    /// Measures one caller, who finishes a task before claiming the next.
    fn alone(&self, filled: &Filled, bench: &mut Bench) -> anyhow::Result<()> {
        let (handle, tasks, agent) = (&filled.handle, filled.tasks, agent(ALONE));
        // What was written to fill the board must not count.
        take_log_in(&filled.board)?;
        let samples = alone(tasks, bench);
        self.runtime.block_on(pair(handle, &agent))?;
        let (mut bytes, mut busy) = (0, Duration::ZERO);
        let mut count = |before| {
            bytes += written().zip(before).map_or(0, |(now, before): (u64, u64)| now - before)
        };
        for _ in 0..samples {
            let before = written();
            let (claim, complete) = self.runtime.block_on(pair(handle, &agent))?;
            count(before);
            let commit = self.rows.commit()?;
            busy += claim + complete;
            for (key, time) in [(CLAIM, claim), (COMPLETE, complete), (SQLITE, commit)] {
                bench.figures.times(key.tasks(tasks).clients(1), [time]);
            }
        }
        let rate = (2 * samples) as f64 / busy.as_secs_f64();
        bench.figures.value(RATE.tasks(tasks).clients(1), Unit::PerSecond, rate);

        let before = written();
        for _ in 0..lasting(tasks) {
            self.runtime.block_on(pair(handle, &agent))?;
        }
        if lasting(tasks) > 0 {
            take_log_in(&filled.board)?;
        }
        count(before);
        // Some systems do not report what was written.
        if bytes > 0 {
            let operations = (2 * (samples + lasting(tasks))) as f64;
            bench.figures.value(WRITTEN.tasks(tasks), Unit::Bytes, bytes as f64 / operations);
        }
        Ok(())
    }

    /// Measures saved checkpoints. They are not between the claims, which would then pay for part
    /// of their log.
    fn saves(&self, handle: &Handle, tasks: usize, bench: &mut Bench) -> anyhow::Result<()> {
        // The row is as large as what is saved.
        let body = checkpoint().to_string();
        for _ in 0..bench.size.samples {
            let commit = self.rows.commit_of(&body)?;
            let (_, save) = self.runtime.block_on(call(handle, "save_checkpoint", checkpoint()))?;
            for (key, time) in [(SQLITE_SAVES, commit), (SAVE, save)] {
                bench.figures.times(key.tasks(tasks).clients(1), [time]);
            }
        }
        Ok(())
    }

    fn together(
        &self,
        handle: &Handle,
        tasks: usize,
        callers: usize,
        bench: &mut Bench,
    ) -> anyhow::Result<()> {
        // The same number of claims for each group of callers, and no task is used twice.
        let left = tasks.saturating_sub(1 + alone(tasks, bench) + lasting(tasks));
        let each = (left / CALLERS.iter().sum::<usize>()).min(MOST_EACH);
        let (claims, elapsed) = self.runtime.block_on(callers_at_once(handle, callers, each))?;
        let rate = (2 * claims.len()) as f64 / elapsed.as_secs_f64();
        bench.figures.value(RATE.tasks(tasks).clients(callers), Unit::PerSecond, rate);
        bench.figures.times(CLAIM.tasks(tasks).clients(callers), claims);
        Ok(())
    }

    /// Measures claims on a board whose master plan is longer than all its tasks.
    fn planned(&self, bench: &mut Bench) -> anyhow::Result<()> {
        let filled = Filled::new(SMALL_BOARD, bench)?;
        let line = "- build the next part, and test it\n";
        let plan =
            json!({"goal": "all of it", "master_plan": line.repeat(PLAN_BYTES / line.len())});
        self.runtime.block_on(call(&filled.handle, "init_coordination", plan))?;
        let agent = agent(ALONE);
        self.runtime.block_on(pair(&filled.handle, &agent))?;
        for _ in 0..alone(SMALL_BOARD, bench) {
            let (claim, _) = self.runtime.block_on(pair(&filled.handle, &agent))?;
            // A SQLite commit in between, as for the claims that these are compared with.
            self.rows.commit()?;
            bench.figures.times(PLANNED.tasks(SMALL_BOARD).clients(1), [claim]);
        }
        Ok(())
    }

    /// Measures claims for which no task is ready, so nothing is recorded.
    fn empty_handed(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        let filled = match self.nothing_suited.take() {
            Some(filled) => filled,
            None => {
                let unsuited = json!({"demands": {"capabilities": ["rare"]}});
                let board = bench.place.board_of(SMALL_BOARD, 1, &unsuited)?;
                Filled { handle: inside(&board), board, tasks: 0, created: SMALL_BOARD }
            }
        };
        let handle = &self.nothing_suited.insert(filled).handle;
        let claim = json!({"agent_id": agent(0)});
        for _ in 0..bench.size.samples {
            let (reply, took) = self.runtime.block_on(call(handle, "claim_task", claim.clone()))?;
            ensure!(reply["success"] == false, "there was something to claim: {reply}");
            bench.figures.times(EMPTY.tasks(SMALL_BOARD).clients(1), [took]);
        }
        Ok(())
    }
}

impl Measure for Commits {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        for tasks in bench.size.tasks.clone() {
            bench.begin(format_args!("durable claims at {tasks} tasks"));
            let filled = self.board(tasks, bench)?;
            let handle = &filled.handle;
            self.alone(&filled, bench)?;
            for callers in CALLERS {
                self.together(handle, tasks, callers, bench)?;
            }
            self.saves(handle, tasks, bench)?;
            if tasks > RENEWED {
                self.kept.push(filled);
            }
        }
        bench.begin("durable claims beside a long plan");
        self.planned(bench)?;
        bench.begin("claims that find nothing");
        self.empty_handed(bench)
    }
}

/// Number of tasks for the single caller; a board of a hundred tasks must have some left for the
/// others.
fn alone(tasks: usize, bench: &Bench) -> usize {
    bench.size.samples.min(tasks / 5)
}

/// Number of tasks done to measure what is written; a small board has too few.
fn lasting(tasks: usize) -> usize {
    if tasks < 10 * LASTING { 0 } else { LASTING }
}

pub(super) async fn call(
    handle: &Handle,
    operation: &str,
    arguments: Value,
) -> anyhow::Result<(Value, Duration)> {
    let start = Instant::now();
    let reply = handle.call(operation, arguments, &Caller::default()).await?;
    let took = start.elapsed();
    match reply["warning"].as_str() {
        Some(warning) => bail!("{operation}: {warning}"),
        None => Ok((reply, took)),
    }
}

/// A checkpoint as a worker saves it, with the status of a dozen agents.
fn checkpoint() -> Value {
    let persona = |number: usize| {
        (agent(number), json!({"status": "running", "current_attempt": 1, "tokens_used": 1_234}))
    };
    let personas: serde_json::Map<_, _> = (0..12).map(persona).collect();
    let tasks: Vec<_> = (0..60).map(|number| format!("task-{number:06}")).collect();
    json!({"workflow_id": "bench", "spent": {"attempts": 1}, "state":
        {"phase": "build", "step": 7, "status": "running", "persona_states": personas, "completed_tasks": tasks}})
}

/// A claim and a completion, with the time of each.
async fn pair(handle: &Handle, agent: &str) -> anyhow::Result<(Duration, Duration)> {
    let (claimed, claim) = call(handle, "claim_task", json!({"agent_id": agent})).await?;
    let task = claimed["task"]["id"]
        .as_str()
        .with_context(|| format!("nothing was claimed: {claimed}"))?;
    let completion = json!({"agent_id": agent, "task_id": task, "output": "what was done"});
    Ok((claim, call(handle, "complete_task", completion).await?.1))
}

/// The time of each claim, and of everything together.
async fn callers_at_once(
    handle: &Handle,
    callers: usize,
    each: usize,
) -> anyhow::Result<(Vec<Duration>, Duration)> {
    let start = Arc::new(Barrier::new(callers + 1));
    let mut running = JoinSet::new();
    for number in 0..callers {
        let (handle, start) = (handle.clone(), Arc::clone(&start));
        running.spawn(async move {
            let agent = agent(number);
            start.wait().await;
            let began = Instant::now();
            let mut claims = Vec::new();
            for _ in 0..each {
                claims.push(pair(&handle, &agent).await?.0);
            }
            anyhow::Ok((began, claims))
        });
    }
    start.wait().await;
    // Callers may begin before this task goes on, so the earliest start counts.
    let mut first = Instant::now();
    let mut claims = Vec::new();
    while let Some(own) = running.join_next().await {
        let (began, own) = own??;
        first = first.min(began);
        claims.extend(own);
    }
    Ok((claims, first.elapsed()))
}

/// A client that calls the participant in this process directly.
pub(super) struct Inside {
    handle: Handle,
    runtime: Runtime,
}

impl Inside {
    pub(super) fn new(handle: Handle) -> anyhow::Result<Self> {
        Ok(Self { handle, runtime: tokio::runtime::Builder::new_current_thread().build()? })
    }
}

impl Client for Inside {
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply> {
        let arguments = serde_json::from_str(arguments)?;
        let reply =
            self.runtime.block_on(self.handle.call(operation, arguments, &Caller::default()));
        let reply = reply.map_err(|error| Refused(format!("{operation}: {error}")))?;
        let task = reply["task"]["id"].as_str().map(|id| Claimed { id: id.to_owned() });
        let warning = reply["warning"].as_str().map(str::to_owned);
        Reply { success: reply["success"] == true, task, warning }.whole(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_board_has_as_many_tasks_in_every_round_and_goes_at_the_end() {
        let mut bench = Bench::small();
        let mut commits = Commits::new(&mut bench).expect("a runtime");
        let mut path = None;
        for _ in 0..3 {
            let filled = commits.board(5, &mut bench).expect("a board");
            assert_eq!(
                *path.get_or_insert_with(|| filled.board.to_owned()),
                *filled.board,
                "it was kept"
            );
            for _ in 0..5 {
                commits
                    .runtime
                    .block_on(pair(&filled.handle, &agent(0)))
                    .expect("there is something to do");
            }
            let none = commits.runtime.block_on(pair(&filled.handle, &agent(0)));
            assert!(none.is_err(), "{none:?}");
            commits.kept.push(filled);
        }
        drop(commits);
        assert!(path.is_some_and(|path| !path.exists()));
    }
}
