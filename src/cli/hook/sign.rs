//! What hooks record in the name of an agent: that it lives, and that it waits for a person.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::{Session, runtime};
use super::prompt::{Prompt, place};
use super::scene::Scene;
use crate::board::seed;
use crate::clock::SystemClock;
use crate::participant::holder::Holder;
use crate::participant::{self, Caller, Options, Stay, directory, presence};
use crate::state::agent::{Agent, WaitReason};
use crate::state::time::SECOND;

/// Milliseconds since an agent's last heartbeat within which no new one is sent.
const HEARD: i64 = 20 * SECOND;

/// Renews the leases of silent agents: any call that names an agent does. One that waits for a
/// person goes on only by a sign of its own.
pub(super) fn renew(session: &Session, scene: &Scene) {
    let now = participant::board_time(&scene.dir);
    let is_silent =
        |agent: &Agent| !agent.current_tasks.is_empty() && now.since(agent.last_heartbeat) >= HEARD;
    let own = scene.own();
    let silent =
        scene.agents.iter().filter(|agent| agent.waiting.is_none() && is_silent(agent)).cloned();
    let of_subagent =
        own.iter().filter(|agent| is_silent(agent) && agent.waiting.is_none()).cloned();
    let waited = own.iter().filter(|agent| agent.waiting.is_some()).cloned();
    heartbeat(session, scene, silent.chain(of_subagent).chain(waited).collect());
}

/// Records that the conversation's agents have heard that they are to stop.
pub(super) fn hear(session: &Session, scene: &Scene) {
    let is_new = |agent: &Arc<Agent>| agent.stop_asked().is_some_and(|(_, heard)| !heard);
    heartbeat(session, scene, scene.own().into_iter().filter(is_new).collect());
}

/// Ends the waiting of the conversation's agents, if they wait.
pub(super) fn go_on(session: &Session, scene: &Scene) {
    heartbeat(
        session,
        scene,
        scene.own().into_iter().filter(|agent| agent.waiting.is_some()).collect(),
    );
}

/// Records that the conversation's agent waits for a person.
pub(super) fn wait(session: &Session, scene: &Scene, prompt: Prompt, is_detailed: bool) {
    let own = scene.own();
    let Some(agent) = own.iter().find(|agent| !agent.current_tasks.is_empty()).or(own.first())
    else {
        return;
    };
    // An agent that holds nothing and waits for words is only free.
    if prompt.reason == WaitReason::Input && agent.current_tasks.is_empty() {
        return;
    }
    let waits = |agent: &Arc<Agent>| {
        agent.waiting.as_ref().is_some_and(|waiting| waiting.reason == prompt.reason)
    };
    // What a client says later of the same prompt has no details, and names no subagent.
    if !is_detailed && scene.agents.iter().chain([agent]).any(waits) {
        return;
    }
    if agent
        .waiting
        .as_ref()
        .is_some_and(|waiting| waiting.reason == prompt.reason && waiting.what == prompt.what)
    {
        return;
    }
    let arguments =
        json!({"agent_id": agent.id, "for": prompt.reason, "what": prompt.what, "where": place()});
    call(session, scene, vec![("report_waiting", arguments)]);
}

fn heartbeat(session: &Session, scene: &Scene, mut agents: Vec<Arc<Agent>>) {
    agents.sort_by(|one, other| one.id.cmp(&other.id));
    agents.dedup_by(|one, other| one.id == other.id);
    call(
        session,
        scene,
        agents.iter().map(|agent| ("heartbeat", json!({"agent_id": agent.id}))).collect(),
    );
}

fn call(session: &Session, scene: &Scene, calls: Vec<(&'static str, Value)>) {
    // While a stopped process has the lock nothing can be written, and the client waits for this
    // hook to end.
    if calls.is_empty() || is_stopped(&scene.dir) {
        return;
    }
    let Ok(runtime) = runtime() else { return };
    let handle = participant::spawn(Options {
        dir: scene.dir.clone(),
        state_file: None,
        stay: Stay::Brief,
        forbidden: None,
        unasked: None,
        unwritable: session.objection_to(&scene.dir),
        clock: Box::new(SystemClock),
        seed: seed(),
        worktree: None,
    });
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for (operation, arguments) in calls {
            let handle = handle.clone();
            running.spawn(async move {
                // A hook has nowhere to show an error.
                drop(handle.call(operation, arguments, &Caller::default()).await);
            });
        }
        running.join_all().await;
    });
}

/// Whether a stopped process holds the board's lock.
fn is_stopped(dir: &Path) -> bool {
    let lock = File::open(dir.join(directory::LOCK));
    lock.is_ok_and(|lock| presence::is_held(&lock) && Holder::of(&lock).is_stopped)
}
