//! What calls cost beside agents that wait for a task or clients that read the whole history, and
//! what HTTP adds to a call.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::commit::call;
use super::doors::{Client, Server};
use super::figure::{Key, Unit, micros};
use super::place::{Board, agent, inside};
use super::{Bench, Measure};
use crate::ops::EventFilter;
use crate::participant::{BoardError, CallError, Caller, Handle};

const WAITING: &str = "waiting";
const READ: Key = Key::new(WAITING, "get_status beside waiting claims");
const WRITE: Key = Key::new(WAITING, "create_task beside waiting claims");
const ARRIVAL: Key = Key::new(WAITING, "until a waiting claim has the new task");
const LISTENING: Key = Key::new(WAITING, "listeners read the history from its start");
const BESIDE: Key = Key::new(WAITING, "get_agents beside listeners");
const ADDED: &str = "added";
const TASKS: usize = 1_000;

/// Operations and figures for what HTTP may add to a call.
pub(super) const OVER_HTTP: [(&str, Key); 4] = [
    ("get_status", Key::new(ADDED, "by MCP over HTTP to get_status")),
    ("get_status", Key::new(ADDED, "by JSON-RPC over HTTP to get_status")),
    ("create_task", Key::new(ADDED, "by MCP over HTTP to create_task")),
    ("create_task", Key::new(ADDED, "by JSON-RPC over HTTP to create_task")),
];

pub(super) struct Waiting(Runtime);

impl Waiting {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(Builder::new_multi_thread().enable_all().build()?))
    }
}

impl Measure for Waiting {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        for waiting in bench.size.waiting.clone() {
            bench.begin(format_args!("{waiting} waiting claims"));
            let board = bench.place.board(1, waiting + 1)?;
            let handle = inside(&board);
            self.0.block_on(beside_waiting(&handle, waiting, bench))?;
        }
        let (listeners, events) = bench.size.listeners;
        bench.begin(format_args!("{listeners} listeners"));
        let board = bench.place.board(1, 0)?;
        let handle = inside(&board);
        self.0.block_on(beside_listeners(&handle, listeners, events, bench))
    }
}

async fn beside_waiting(handle: &Handle, waiting: usize, bench: &mut Bench) -> anyhow::Result<()> {
    // While this task is held, more may become ready, so claims wait.
    call(handle, "claim_task", json!({"agent_id": agent(waiting)})).await?;
    let mut claims = JoinSet::new();
    for number in 0..waiting {
        let waiter = handle.clone();
        claims.spawn(async move {
            let claim = json!({"agent_id": agent(number), "wait_seconds": 50});
            (insist(&waiter, "claim_task", claim).await, Instant::now())
        });
        // The queue of calls is shorter than the number of claims that may wait.
        if number % 64 == 0 {
            insist(handle, "get_status", json!({})).await?;
        }
    }
    for _ in 0..bench.size.samples {
        let read = call(handle, "get_status", json!({})).await?.1;
        let start = Instant::now();
        let write =
            call(handle, "create_task", json!({"description": "for whoever waits"})).await?.1;
        bench.figures.times(READ.clients(waiting), [read]);
        bench.figures.times(WRITE.clients(waiting), [write]);
        if let Some(claimed) = claims.join_next().await {
            let (claim, when) = claimed?;
            let claim = claim.context("a claim that waited failed")?;
            ensure!(claim["success"] == true, "a claim that waited came back empty: {claim}");
            bench.figures.times(ARRIVAL.clients(waiting), [when - start]);
        }
    }
    claims.shutdown().await;
    Ok(())
}

/// Calls again while the participant is overloaded: on a busy machine, more calls may come at once
/// than it accepts.
async fn insist(handle: &Handle, operation: &str, arguments: Value) -> Result<Value, CallError> {
    const MOMENT: Duration = Duration::from_millis(1);
    const PATIENCE: Duration = Duration::from_secs(30);
    let start = Instant::now();
    loop {
        let answer = handle.call(operation, arguments.clone(), &Caller::default()).await;
        let is_overloaded = matches!(&answer, Err(CallError::Failed(error)) if matches!(**error, BoardError::Overloaded { .. }));
        if !is_overloaded || start.elapsed() > PATIENCE {
            return answer;
        }
        sleep(MOMENT).await;
    }
}

/// Measures one caller while several clients read all events from the beginning.
async fn beside_listeners(
    handle: &Handle,
    count: usize,
    events: usize,
    bench: &mut Bench,
) -> anyhow::Result<()> {
    const AT_ONCE: usize = 500;
    for first in (0..events).step_by(AT_ONCE) {
        let create = |number| json!({"name": "create_task", "arguments": {"description": format!("do thing {number}")}});
        let all: Vec<_> = (first..first + AT_ONCE).map(create).collect();
        call(handle, "apply_batch", json!({"operations": all})).await?;
    }
    let head = call(handle, "get_status", json!({})).await?.0["seq"].as_u64().context("no seq")?;
    let start = Instant::now();
    let mut listeners = JoinSet::new();
    for _ in 0..count {
        let handle = handle.clone();
        listeners.spawn(async move {
            let mut listener = handle.listen(Some(0), EventFilter::default()).await?;
            for seq in 1..=head {
                let item = listener.next().await.map_err(|error| anyhow!("{}", error.message()))?;
                ensure!(
                    item.recorded.seq == seq,
                    "event {} came in the place of {seq}",
                    item.recorded.seq
                );
            }
            Ok(())
        });
    }
    while !listeners.is_empty() {
        let asked = Instant::now();
        if handle.call("get_agents", json!({}), &Caller::default()).await.is_ok() {
            bench.figures.times(BESIDE.clients(count), [asked.elapsed()]);
        }
        while let Some(listener) = listeners.try_join_next() {
            listener??;
        }
        tokio::task::yield_now().await;
    }
    bench.figures.times(LISTENING.tasks(events).clients(count), [start.elapsed()]);
    Ok(())
}

/// The same operation in this process and over HTTP, in turns.
pub(super) struct OverHttp {
    runtime: Runtime,
    /// Each has a board of its own, so that neither reads what the other wrote.
    near: Handle,
    far: Server,
    /// Directories of the two boards.
    _boards: [Board; 2],
}

impl OverHttp {
    pub(super) fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        let boards = [bench.place.board(TASKS, 1)?, bench.place.board(TASKS, 1)?];
        let (near, far) = (inside(&boards[0]), Server::start(&boards[1])?);
        Ok(Self { runtime: Builder::new_current_thread().build()?, near, far, _boards: boards })
    }
}

impl Measure for OverHttp {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        bench.begin("what HTTP adds");
        let mut doors: [Box<dyn Client>; 2] =
            [Box::new(self.far.tools()?), Box::new(self.far.methods()?)];
        for pair in OVER_HTTP.chunks(doors.len()) {
            for _ in 0..bench.size.samples {
                let operation = pair[0].0;
                let arguments = match operation {
                    "create_task" => json!({"description": "do one thing more"}),
                    _ => json!({}),
                };
                let text = arguments.to_string();
                let inner = self.runtime.block_on(call(&self.near, operation, arguments))?.1;
                for (door, (_, key)) in doors.iter_mut().zip(pair) {
                    let start = Instant::now();
                    door.call(operation, &text).map_err(|error| self.far.ended(&error))?;
                    // Each is compared with its neighbour in time, because a durable write takes
                    // longer when the machine is busy.
                    bench.figures.add(
                        key.tasks(TASKS),
                        Unit::Micros,
                        [micros(start.elapsed()) - micros(inner)],
                    );
                }
            }
        }
        Ok(())
    }
}

/// The figures of [`OVER_HTTP`].
pub(super) fn added() -> impl Iterator<Item = Key> {
    OVER_HTTP.into_iter().map(|(_, key)| key.tasks(TASKS))
}
