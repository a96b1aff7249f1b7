//! What those who wait for a task, and those who read the whole history at once, cost everybody else.

use std::time::{Duration, Instant};

use callboard::ops::EventFilter;
use callboard::participant::{Caller, Handle};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::{Outcome, board_of, inside, median, millis, quantile};

const WAITING: [usize; 4] = [0, 64, 1_024, 8_000];
const CALLS: usize = 40;
const LISTENERS: usize = 1_000;
const EVENTS: usize = 10_000;
/// Agents that one call registers.
const AT_ONCE: usize = 500;

pub fn measure() -> Outcome<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    println!("| waiting claims | get_status | create_task | until a waiting one has the task |\n|---|---|---|---|");
    for waiting in WAITING {
        runtime.block_on(beside_waiting(waiting))?;
    }
    runtime.block_on(beside_listeners())
}

async fn call(handle: &Handle, operation: &str, arguments: Value) -> Outcome<(Value, Duration)> {
    let start = Instant::now();
    let reply = handle.call(operation, arguments, &Caller::default()).await?;
    Ok((reply, start.elapsed()))
}

/// Registers that many agents.
async fn agents(handle: &Handle, count: usize) -> Outcome<()> {
    for first in (0..count).step_by(AT_ONCE) {
        let register = |number| json!({"name": "register_agent", "arguments": {"agent_id": format!("agent-{number}"), "role": "worker"}});
        let all: Vec<_> = (first..count.min(first + AT_ONCE)).map(register).collect();
        call(handle, "apply_batch", json!({"operations": all})).await?;
    }
    Ok(())
}

async fn beside_waiting(waiting: usize) -> Outcome<()> {
    let dir = tempfile::tempdir_in(std::env::current_dir()?)?;
    let handle = inside(&board_of(dir.path(), 1)?);
    agents(&handle, waiting + 1).await?;
    // While it is held, there may be more to do.
    call(&handle, "claim_task", json!({"agent_id": format!("agent-{waiting}")})).await?;
    let mut claims = JoinSet::new();
    for number in 0..waiting {
        let waiter = handle.clone();
        claims.spawn(async move {
            let claim = json!({"agent_id": format!("agent-{number}"), "wait_seconds": 50});
            let claim = waiter.call("claim_task", claim, &Caller::default()).await;
            (claim.is_ok_and(|claim| claim["success"] == true), Instant::now())
        });
        if number % 64 == 0 {
            call(&handle, "get_status", json!({})).await?;
        }
    }
    let (mut reads, mut writes, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CALLS {
        reads.push(call(&handle, "get_status", json!({})).await?.1);
        let start = Instant::now();
        writes.push(call(&handle, "create_task", json!({"description": "for whoever waits"})).await?.1);
        if let Some(claimed) = claims.join_next().await {
            let (success, when) = claimed?;
            assert!(success, "a claim came back empty");
            arrivals.push(when - start);
        }
    }
    let show = |times: Vec<Duration>| {
        if times.is_empty() { "-".to_owned() } else { format!("{:.3} ms", millis(median(times))) }
    };
    println!("| {waiting} | {} | {} | {} |", show(reads), show(writes), show(arrivals));
    Ok(())
}

/// A thousand who resume from the beginning at the same time, and one who calls meanwhile.
async fn beside_listeners() -> Outcome<()> {
    let dir = tempfile::tempdir_in(std::env::current_dir()?)?;
    let handle = inside(&board_of(dir.path(), 1)?);
    for first in (0..EVENTS).step_by(AT_ONCE) {
        let create =
            |number| json!({"name": "create_task", "arguments": {"description": format!("do thing {number}")}});
        let all: Vec<_> = (first..first + AT_ONCE).map(create).collect();
        call(&handle, "apply_batch", json!({"operations": all})).await?;
    }
    let head = call(&handle, "get_status", json!({})).await?.0["seq"].as_u64().ok_or("no seq")?;
    let alone = median_call(&handle).await?;
    let start = Instant::now();
    let mut listeners = JoinSet::new();
    for _ in 0..LISTENERS {
        let handle = handle.clone();
        listeners.spawn(async move {
            let mut listener = handle.listen(Some(0), EventFilter::default()).await.map_err(|error| error.message())?;
            for seq in 1..=head {
                let item = listener.next().await.map_err(|error| error.message())?;
                assert_eq!(item.recorded.seq, seq);
            }
            Ok::<_, String>(())
        });
    }
    let (mut calls, mut refused, mut ended) = (Vec::new(), 0, 0);
    while !listeners.is_empty() {
        let asked = Instant::now();
        match handle.call("get_agents", json!({}), &Caller::default()).await {
            Ok(_) => calls.push(asked.elapsed()),
            Err(_) => refused += 1,
        }
        while let Some(listener) = listeners.try_join_next() {
            ended += usize::from(listener?.is_err());
        }
        tokio::task::yield_now().await;
    }
    println!(
        "{LISTENERS} listeners read {head} events each from the beginning: {:.1} s, {ended} were ended; a call meanwhile \
         {:.2} ms (p95 {:.2} ms, alone {:.2} ms), {refused} were refused",
        start.elapsed().as_secs_f64(),
        millis(median(calls.clone())),
        millis(quantile(calls, 95)),
        millis(alone),
    );
    Ok(())
}

async fn median_call(handle: &Handle) -> Outcome<Duration> {
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(call(handle, "get_agents", json!({})).await?.1);
    }
    Ok(median(calls))
}
