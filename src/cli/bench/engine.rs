//! The pure core alone: a claim is decided and applied without disk, lock, thread or JSON.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::{Value, json};

use super::figure::{Key, micros};
use super::{Bench, Measure};
use crate::ops::{self, Call, NoHistory, Vitals};
use crate::state::agent::{Demands, Properties, Role};
use crate::state::event::{Event, NewTask, Recorded};
use crate::state::id::{AgentId, Chance, ParticipantId, TaskId};
use crate::state::policy::Policy;
use crate::state::time::Timestamp;
use crate::state::{Envelope, State};

const PART: &str = "engine";
pub(super) const CLAIM: Key = Key::new(PART, "claim");
pub(super) const RARE: Key = Key::new(PART, "claim with a rare capability");
const COMPLETE: Key = Key::new(PART, "complete");

/// Tasks in one event.
const AT_ONCE: usize = 5_000;
/// One in this many tasks demands the rare capability.
const RARITY: usize = 100;
/// Capabilities that the other tasks demand, in turn.
const COMMON: [&[&str]; 4] = [&["docs"], &["linux"], &["rust"], &["linux", "rust"]];
/// At most one claim per this many tasks in a round, so that the state stays about as large as
/// stated.
const SHARE: usize = 2;

#[derive(Default)]
pub(super) struct Engine {
    states: Vec<(usize, State)>,
}

impl Measure for Engine {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        for tasks in bench.size.engine.clone() {
            bench.begin(format_args!("the engine at {tasks} tasks"));
            if !self.states.iter().any(|(size, _)| *size == tasks) {
                self.states.push((tasks, state_of(tasks)?));
            }
            let Some((_, state)) = self.states.iter_mut().find(|(size, _)| *size == tasks) else {
                continue;
            };
            for (agent, key, suited) in
                [("generalist", CLAIM, tasks), ("specialist", RARE, tasks / RARITY)]
            {
                let count = bench.size.decided.min(suited / SHARE).max(1);
                let (claims, completions) = claims(state, agent, count)?;
                bench.figures.add(
                    key.tasks(tasks),
                    super::figure::Unit::Micros,
                    claims.into_iter().map(micros),
                );
                if key == CLAIM {
                    bench.figures.times(COMPLETE.tasks(tasks), completions);
                }
            }
        }
        Ok(())
    }
}

/// The state of a board with nothing done yet and two agents: one has the common capabilities, the
/// other only the rare one.
pub(super) fn state_of(tasks: usize) -> anyhow::Result<State> {
    let mut state = State::new();
    let envelope = envelope();
    let mut record = |event| -> anyhow::Result<()> {
        state.record(event, &envelope)?;
        state.settle();
        Ok(())
    };
    record(Event::BoardCreated { board_id: "board-bench".to_owned(), numbered: true })?;
    let mut chance = Chance::new(1);
    for first in (0..tasks).step_by(AT_ONCE) {
        let new = (first..tasks.min(first + AT_ONCE))
            .map(|number| new_task(number, &mut chance))
            .collect();
        record(Event::TasksCreated { tasks: new })?;
    }
    for (agent, capabilities) in
        [("generalist", &["docs", "linux", "rust"][..]), ("specialist", &["rare"])]
    {
        record(Event::AgentRegistered {
            agent: AgentId::trusted(agent),
            role: Role::Worker,
            capabilities: capabilities.iter().map(|&capability| capability.to_owned()).collect(),
            tags: Default::default(),
            properties: Properties::default(),
            metadata: None,
            max_concurrent: 1,
            takeover: false,
        })?;
    }
    Ok(state)
}

fn new_task(number: usize, chance: &mut Chance) -> NewTask {
    let demanded =
        if number % RARITY == RARITY - 1 { &["rare"][..] } else { COMMON[number % COMMON.len()] };
    let capabilities = demanded.iter().map(|&capability| capability.to_owned()).collect();
    NewTask {
        id: TaskId::trusted(format!("task-{}", chance.base32(8))),
        title: None,
        description: format!("do thing {number}, and do it well"),
        priority: 5,
        dependencies: Vec::new(),
        context: None,
        path: None,
        parent: None,
        planned: None,
        status: None,
        demands: Demands { capabilities, ..Demands::default() },
        tags: Vec::new(),
        max_attempts: 3,
        not_before: None,
        timeout_seconds: None,
        silent_minutes: None,
        estimated_minutes: None,
        review: None,
        run: None,
    }
}

/// Times of `count` claims and completions. Afterwards the state is as before.
fn claims(
    state: &mut State,
    agent: &str,
    count: usize,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let before = state.savepoint();
    let (mut claims, mut completions) = (Vec::new(), Vec::new());
    // The first call after a pause is slow, so it is not counted.
    for turn in 0..=count {
        let (claimed, claim) = act(state, agent, "claim_task", json!({"agent_id": agent}))?;
        let Some(Event::Claimed { task, .. }) = claimed.first().map(|recorded| &recorded.event)
        else {
            return Err(anyhow!("`{agent}` was given nothing"));
        };
        let completion = json!({"agent_id": agent, "task_id": task, "output": "what was done"});
        let (_, completion) = act(state, agent, "complete_task", completion)?;
        if turn > 0 {
            claims.push(claim);
            completions.push(completion);
        }
    }
    state.rollback(before);
    Ok((claims, completions))
}

fn act(
    state: &mut State,
    agent: &str,
    operation: &str,
    arguments: Value,
) -> anyhow::Result<(Vec<Recorded>, Duration)> {
    let agent = AgentId::trusted(agent);
    let entry =
        ops::find(operation).ok_or_else(|| anyhow!("there is no operation `{operation}`"))?;
    let prepared = entry.prepare(arguments)?;
    let envelope = Envelope { actor: Some(agent.clone()), ..envelope() };
    let (vitals, policy) = (Vitals::since(envelope.at), Policy::default());
    let call = Call::new(envelope.at, 1, &policy, &envelope.participant, &NoHistory, &vitals);
    let call = Call { actor: Some(agent), ..call };
    let start = Instant::now();
    let events = prepared.decide(state, &call).map_err(|rejected| rejected.refusal)?;
    let recorded = events
        .into_iter()
        .map(|event| state.record(event, &envelope))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((recorded, start.elapsed()))
}

fn envelope() -> Envelope {
    Envelope {
        at: Timestamp::from_millis(1_772_366_400_000),
        participant: ParticipantId::trusted("p-bench"),
        actor: None,
        idempotency: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_find_suited_tasks_and_leave_the_state_as_it_was() {
        let mut state = state_of(1_000).expect("a state");
        let before = state.to_document();
        for (agent, count) in [("generalist", 200), ("specialist", 9)] {
            let (claims, completions) =
                claims(&mut state, agent, count).expect("there is enough to do");
            assert_eq!((claims.len(), completions.len()), (count, count));
            assert!(state.to_document() == before, "{agent} left something behind");
            assert_eq!(state.check(), Vec::<String>::new());
        }
        assert!(super::claims(&mut state, "specialist", 10).is_err());
    }
}
