//! What a workflow has done, and where each of its agents stands: saved on the board before and
//! after every try.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::breaker::Breaker;
use super::failure::Failure;
use super::output::first_bytes;
use crate::cli::supervise::Usage;
use crate::ops::input::depth;
use crate::state::execution::ExecutionState;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::time::Timestamp;
use crate::state::workflow::Spent;

/// Most finished tasks that the state names, the newest; `step` counts all of them.
const COMPLETED_NAMED: usize = 300;
/// Bytes of what commands keep that are saved in the state, too, for all agents together. What has
/// more is kept with its task alone.
const KEPT_BYTES: usize = 32_000;
const LAST_ERROR: usize = 500;
/// Most tasks whose artifacts the state names, the newest.
const ARTIFACTS_KEPT: usize = 50;
/// Fields of the tally that are not summed up: the most of any try.
const PEAKS: [&str; 2] = ["peak_memory_bytes", "peak_open_files"];
/// Bytes of a whole state as it is saved, which is often.
const STATE_BYTES: usize = 62 << 10;
/// Parts of the state that are saved entry by entry, so that entries of others stay.
const BY_ENTRY: [&str; 4] = [PERSONAS, "retry_counts", "artifacts", "metrics"];
const PERSONAS: &str = "persona_states";
const INTERRUPTED: &str = "interrupted";
/// Levels of nesting in the state above what a command keeps.
const DEPTH_OF_KEPT: usize = 3;
const BREAKER: &str = "breaker";

pub(super) struct Ledger {
    pub state: ExecutionState,
    pub breaker: Breaker,
    pub tally: Tally,
    /// Metrics of the workflow when this process began.
    before: Map<String, Value>,
    /// The state as the board has it, if all that was sent has arrived.
    sent: Value,
    agents: usize,
    /// Time that all tries took, and whole seconds of it that the workflow was charged for,
    /// rounded up.
    took: Duration,
    charged: u64,
}

/// Counts of what this process has done.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Tally {
    pub done: u64,
    /// Tasks that a worker here has given up; others may try them.
    pub given_up: u64,
    /// Tasks given up for good, included in `given_up`; they wait for a person.
    pub parked: u64,
    pub released: u64,
    pub lost: u64,
    pub tries: u64,
    pub retries: u64,
    pub recovered: u64,
    pub tokens: u64,
    pub calls: u64,
    pub writes_saved: u64,
    /// Most memory that the processes of one try had, and most files that they had open.
    pub peak_memory_bytes: u64,
    pub peak_open_files: u64,
}

/// Where an agent stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Persona {
    pub last_updated: Timestamp,
    #[serde(default)]
    pub status: PersonaStatus,
    /// Number of the try of `task_attempt` that is running or ran last.
    #[serde(default)]
    pub current_attempt: u32,
    #[serde(default)]
    pub tokens_used: u64,
    #[serde(default)]
    pub last_error: Option<String>,
    /// The try was resumed after an interruption.
    #[serde(default)]
    pub recovery_applied: bool,
    // What is not there is saved as null, because a field that is left out stays as it was.
    #[serde(default)]
    pub task: Option<TaskId>,
    #[serde(default)]
    pub task_attempt: u32,
    /// Workers that died while they ran `task_attempt`.
    #[serde(default)]
    pub deaths: u32,
    /// Object that the command keeps by a marked line.
    #[serde(default)]
    pub checkpoint: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PersonaStatus {
    #[default]
    Idle,
    Running,
    /// Waiting between two tries.
    Waiting,
    /// The task was given back because the work stopped: it is to be done next, and its tries go
    /// on where they were.
    Interrupted,
}

impl PersonaStatus {
    pub(super) fn is_at_work(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}

impl Persona {
    /// Whether this is the task and attempt that it works on, or worked on last.
    pub(super) fn is_at(&self, task: &TaskId, attempt: u32) -> bool {
        self.task.as_ref() == Some(task) && self.task_attempt == attempt
    }
}

impl Ledger {
    pub(super) fn new(known: Option<ExecutionState>, command: &str, agents: usize) -> Self {
        let state = known.unwrap_or_default();
        let breaker =
            state.metrics.get(BREAKER).and_then(|value| serde_json::from_value(value.clone()).ok());
        let mut ledger = Self {
            before: state.metrics.clone(),
            sent: serde_json::to_value(&state).unwrap_or_default(),
            state,
            breaker: Breaker::of(command, breaker),
            tally: Tally::default(),
            agents,
            took: Duration::ZERO,
            charged: 0,
        };
        ledger.phase("executing", "running");
        ledger
    }

    pub(super) fn phase(&mut self, phase: &str, status: &str) {
        self.state.phase = phase.to_owned();
        self.state.status = status.to_owned();
    }

    pub(super) fn persona(&self, agent: &AgentId) -> Persona {
        let known = self.state.persona_states.get(agent.as_str());
        known
            .and_then(|known| serde_json::from_value(Value::Object(known.clone())).ok())
            .unwrap_or_default()
    }

    /// Agents in the middle of a task, each with the task and the number of its attempt.
    pub(super) fn in_work(&self) -> Vec<(AgentId, TaskId, u32)> {
        let agents = self.state.persona_states.keys().map(AgentId::trusted);
        let at = |agent: AgentId| {
            let persona = self.persona(&agent);
            let task = persona.task.filter(|_| persona.status.is_at_work())?;
            Some((agent, task, persona.task_attempt))
        };
        agents.filter_map(at).collect()
    }

    /// Tasks that were begun, or about to be, when the work stopped.
    pub(super) fn set_aside(&self) -> Vec<TaskId> {
        let agents = self.state.persona_states.keys().map(AgentId::trusted);
        let personas = agents.map(|agent| self.persona(&agent));
        personas
            .filter(|persona| persona.status != PersonaStatus::Idle)
            .filter_map(|persona| persona.task)
            .collect()
    }

    fn is_interrupted(&self, task: &TaskId) -> bool {
        self.agents_interrupted_at(task).next().is_some()
    }

    fn agents_interrupted_at(&self, task: &TaskId) -> impl Iterator<Item = AgentId> {
        let agents = self.state.persona_states.keys().map(AgentId::trusted);
        agents.filter(|agent| {
            let persona = self.persona(agent);
            persona.status == PersonaStatus::Interrupted && persona.task.as_ref() == Some(task)
        })
    }

    pub(super) fn put(&mut self, agent: &AgentId, persona: &Persona) {
        if let Ok(Value::Object(fields)) = serde_json::to_value(persona) {
            self.state.persona_states.insert(agent.to_string(), fields);
        }
    }

    /// Whether the agent was interrupted during a try of that attempt.
    pub(super) fn goes_on(&self, agent: &AgentId, task: &TaskId, attempt: u32) -> bool {
        let persona = self.persona(agent);
        persona.is_at(task, attempt) && persona.status == PersonaStatus::Running
    }

    /// Begins a try, or resumes one that was interrupted, which is not counted again. Returns its
    /// number and what to charge.
    pub(super) fn begin(
        &mut self,
        agent: &AgentId,
        task: &TaskId,
        attempt: u32,
        now: Timestamp,
    ) -> (u32, Spent) {
        let goes_on = self.goes_on(agent, task, attempt);
        let mut persona = self.persona_at(agent, task, attempt);
        for other in self.agents_interrupted_at(task).collect::<Vec<_>>() {
            let idle = Persona { status: PersonaStatus::Idle, ..self.persona(&other) };
            self.put(&other, &idle);
        }
        if !goes_on {
            persona.current_attempt += 1;
            self.tally.tries += 1;
        }
        self.tally.recovered += u64::from(goes_on);
        persona.deaths += u32::from(goes_on);
        persona.last_updated = now;
        persona.status = PersonaStatus::Running;
        persona.recovery_applied = goes_on;
        self.put(agent, &persona);
        (persona.current_attempt, Spent { attempts: u64::from(!goes_on), ..Spent::default() })
    }

    /// The agent's persona for an attempt. If the attempt is new, tries that failed before an
    /// interruption count, and others do not.
    fn persona_at(&mut self, agent: &AgentId, task: &TaskId, attempt: u32) -> Persona {
        let persona = self.persona(agent);
        if persona.is_at(task, attempt) {
            return persona;
        }
        if !self.is_interrupted(task) {
            self.state.retry_counts.remove(task.as_str());
        }
        let failed = self.state.retry_counts.get(task.as_str()).copied().unwrap_or_default();
        Persona {
            tokens_used: persona.tokens_used,
            current_attempt: u32::try_from(failed).unwrap_or(u32::MAX),
            task: Some(task.clone()),
            task_attempt: attempt,
            ..Persona::default()
        }
    }

    /// Records that the agent gives the task back because the work stops.
    pub(super) fn interrupted(
        &mut self,
        agent: &AgentId,
        task: &TaskId,
        attempt: u32,
        now: Timestamp,
    ) {
        let persona = self.persona_at(agent, task, attempt);
        self.put(agent, &persona);
        self.ended(agent, task, false, now);
        let persona = Persona { status: PersonaStatus::Interrupted, ..self.persona(agent) };
        self.put(agent, &persona);
    }

    /// Records the end of a try, which used `tokens` and has `took` of its time uncharged.
    pub(super) fn tried(
        &mut self,
        agent: &AgentId,
        failure: Option<&Failure>,
        tokens: u64,
        took: Duration,
        now: Timestamp,
    ) -> Spent {
        let mut persona = self.persona(agent);
        persona.last_updated = now;
        persona.tokens_used = persona.tokens_used.saturating_add(tokens);
        persona.status = PersonaStatus::Waiting;
        persona.last_error = failure.map(|failure| {
            format!("{}: {}", failure.category.as_str(), first_bytes(&failure.message, LAST_ERROR))
        });
        if let (Some(task), Some(_)) = (&persona.task, failure) {
            *self.state.retry_counts.entry(task.to_string()).or_default() += 1;
        }
        self.put(agent, &persona);
        self.tally.tokens = self.tally.tokens.saturating_add(tokens);
        Spent { tokens, attempts: 0, seconds: self.charge(took) }
    }

    /// Seconds to charge the workflow for more time.
    pub(super) fn charge(&mut self, took: Duration) -> u64 {
        self.took += took;
        let whole = self.took.as_secs() + u64::from(self.took.subsec_nanos() > 0);
        let seconds = whole.saturating_sub(self.charged);
        self.charged += seconds;
        seconds
    }

    /// Time charged beyond what all tries took, because seconds are rounded up.
    pub(super) fn charged_ahead(&self) -> Duration {
        Duration::from_secs(self.charged).saturating_sub(self.took)
    }

    /// Takes back a charge that was not saved.
    pub(super) fn uncharge(&mut self, took: Duration, seconds: u64) {
        self.took = self.took.saturating_sub(took);
        self.charged -= seconds;
    }

    /// Records that the agent no longer has the task.
    pub(super) fn ended(&mut self, agent: &AgentId, task: &TaskId, done: bool, now: Timestamp) {
        let mut persona = self.persona(agent);
        persona.last_updated = now;
        persona.status = PersonaStatus::Idle;
        if done {
            persona.checkpoint = None;
            self.state.completed_tasks.push(task.to_string());
            let surplus = self.state.completed_tasks.len().saturating_sub(COMPLETED_NAMED);
            self.state.completed_tasks.drain(..surplus);
            self.state.step += 1;
            self.state.retry_counts.remove(task.as_str());
        }
        if done {
            self.no_longer_pending(task);
        }
        self.put(agent, &persona);
    }

    pub(super) fn no_longer_pending(&mut self, task: &TaskId) {
        self.state.pending_tasks.retain(|pending| pending != task.as_str());
    }

    /// Keeps the most that any try has used.
    pub(super) fn used(&mut self, used: Usage) {
        let tally = &mut self.tally;
        tally.peak_memory_bytes = tally.peak_memory_bytes.max(used.memory_bytes);
        tally.peak_open_files = tally.peak_open_files.max(used.open_files);
    }

    /// Keeps what work on a task has left; of many tasks, the newest.
    pub(super) fn leaves(&mut self, task: &TaskId, left: Map<String, Value>) {
        let artifacts = &mut self.state.artifacts;
        artifacts.shift_remove(task.as_str());
        if !left.is_empty() {
            artifacts.insert(task.to_string(), Value::Object(left));
        }
        while artifacts.len() > ARTIFACTS_KEPT
            && let Some(oldest) = artifacts.keys().next().cloned()
        {
            artifacts.shift_remove(&oldest);
        }
    }

    /// Takes a task off the completed ones, because its completion was refused.
    pub(super) fn take_back(&mut self, task: &TaskId) {
        let done = &mut self.state.completed_tasks;
        if let Some(place) = done.iter().rposition(|one| one == task.as_str()) {
            done.remove(place);
            self.state.step = self.state.step.saturating_sub(1);
            self.state.artifacts.shift_remove(task.as_str());
            self.tally.done = self.tally.done.saturating_sub(1);
        }
    }

    /// Keeps what a command marked, if it is within bounds.
    pub(super) fn keep(
        &mut self,
        agent: &AgentId,
        marked: Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), String> {
        let text = Value::Object(marked.clone()).to_string();
        limit::CHECKPOINT.check_text(&text).map_err(|refusal| refusal.to_string())?;
        let (levels, most) =
            (depth(&Value::Object(marked.clone())) + DEPTH_OF_KEPT, limit::DEPTH.max);
        if levels > most {
            return Err(format!(
                "nested {levels} levels deep with the state around it, at most {most}"
            ));
        }
        let mut persona = self.persona(agent);
        persona.last_updated = now;
        persona.checkpoint = Some(Value::Object(marked));
        self.put(agent, &persona);
        Ok(())
    }

    /// What a save of `agent` is to change: what is not as it was sent last. Where another agent
    /// stands is saved by that agent, with what it does to its task: else it would be known that its
    /// try is over, and not that the task is done.
    pub(super) fn change(&mut self, agent: Option<&AgentId>) -> Value {
        let mut now = self.snapshot();
        let sent = entries(&self.sent, PERSONAS);
        let is_anothers = |name: &String| {
            let is_set_aside = sent.get(name).is_some_and(|one| one["status"] == INTERRUPTED);
            agent.is_some_and(|agent| agent.as_str() != name) && !is_set_aside
        };
        for (name, _) in entries(&now, PERSONAS).iter().filter(|(name, _)| is_anothers(name)) {
            if let Some(personas) = now[PERSONAS].as_object_mut() {
                match sent.get(name) {
                    Some(before) => _ = personas.insert(name.clone(), before.clone()),
                    None => _ = personas.shift_remove(name),
                }
            }
        }
        let mut change = now.clone();
        for part in BY_ENTRY {
            let (sent, all) = (entries(&self.sent, part), entries(&now, part));
            let gone = sent.keys().filter(|name| !all.contains_key(*name));
            let mut changed: Map<_, _> = gone.map(|name| (name.clone(), Value::Null)).collect();
            let is_new = |(name, value): &(&String, &Value)| sent.get(*name) != Some(*value);
            changed.extend(
                all.iter().filter(is_new).map(|(name, value)| (name.clone(), value.clone())),
            );
            change[part] = Value::Object(changed);
        }
        // Only the newest are named.
        for list in ["completed_tasks", "pending_tasks"] {
            change[list] = now.get(list).cloned().unwrap_or_else(|| json!([]));
        }
        self.sent = now;
        change
    }

    /// Has a change sent again that may not have arrived.
    pub(super) fn not_sent(&mut self, change: &Value) {
        for part in BY_ENTRY {
            let mut sent = entries(&self.sent, part);
            for (name, value) in entries(change, part) {
                match value {
                    Value::Null => _ = sent.insert(name, json!("gone")),
                    _ => _ = sent.shift_remove(&name),
                }
            }
            self.sent[part] = Value::Object(sent);
        }
    }

    /// The state as it is to be saved, shortened if it is too large.
    fn snapshot(&mut self) -> Value {
        self.measure();
        let breaker = serde_json::to_value(&self.breaker).unwrap_or_default();
        self.state.metrics.insert(BREAKER.to_owned(), breaker);
        let mut saved = self.state.clone();
        // One that was completed before and is left again has been opened again.
        let pending: BTreeSet<_> = saved.pending_tasks.iter().collect();
        saved.completed_tasks.retain(|task| !pending.contains(task));
        let most = KEPT_BYTES / self.agents.max(1);
        for persona in saved.persona_states.values_mut() {
            if let Some(kept) = persona.get_mut("checkpoint")
                && kept.to_string().len() > most
            {
                *kept = Value::Null;
            }
        }
        let size =
            |state: &ExecutionState| serde_json::to_string(state).map_or(0, |json| json.len());
        while size(&saved) > STATE_BYTES && shrink(&mut saved) {}
        serde_json::to_value(&saved).unwrap_or_default()
    }

    /// What all processes of the workflow have done: what was known when this one began, and what
    /// it has done since.
    fn measure(&mut self) {
        let Ok(Value::Object(counted)) = serde_json::to_value(&self.tally) else { return };
        for (name, count) in counted {
            let before = self.before.get(&name).and_then(Value::as_u64).unwrap_or_default();
            let count = count.as_u64().unwrap_or_default();
            let whole = if PEAKS.contains(&name.as_str()) {
                before.max(count)
            } else {
                before.saturating_add(count)
            };
            self.state.metrics.insert(name, Value::from(whole));
        }
    }
}

fn entries(state: &Value, part: &str) -> Map<String, Value> {
    state[part].as_object().cloned().unwrap_or_default()
}

/// Removes what is missed least. Returns whether there was anything.
fn shrink(state: &mut ExecutionState) -> bool {
    for named in [&mut state.completed_tasks, &mut state.pending_tasks] {
        if !named.is_empty() {
            named.drain(..named.len().div_ceil(2));
            return true;
        }
    }
    if !state.retry_counts.is_empty() || !state.artifacts.is_empty() {
        state.retry_counts.clear();
        state.artifacts.clear();
        return true;
    }
    let size =
        |persona: &Map<String, Value>| serde_json::to_string(persona).map_or(0, |json| json.len());
    let is_idle =
        |persona: &Map<String, Value>| persona.get("status").is_none_or(|status| status == "idle");
    let largest =
        state.persona_states.iter().max_by_key(|(_, persona)| (is_idle(persona), size(persona)));
    if let Some(name) = largest.map(|(name, _)| name.clone()) {
        state.persona_states.remove(&name);
        return true;
    }
    let breaker = state.metrics.remove(BREAKER);
    let is_more = !state.metrics.is_empty();
    state.metrics.clear();
    state.metrics.extend(breaker.map(|breaker| (BREAKER.to_owned(), breaker)));
    is_more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_grew_too_large_is_saved_without_what_can_be_missed() {
        let (mut ledger, now) = (Ledger::new(None, "c", 64), Timestamp::from_millis(1));
        let task = |number: u32| TaskId::trusted(format!("{number:0>64}"));
        for number in 0..400 {
            let agent = AgentId::trusted(format!("{:0>60}", number % 64));
            ledger.begin(&agent, &task(number), 1, now);
            ledger.tried(
                &agent,
                Some(&Failure::new(super::super::failure::Category::Timeout, "x".repeat(600))),
                1,
                Duration::ZERO,
                now,
            );
            ledger
                .keep(&agent, Map::from_iter([("k".to_owned(), Value::from("y".repeat(400)))]), now)
                .expect("kept");
        }
        assert!(serde_json::to_string(&ledger.state).expect("JSON").len() > STATE_BYTES);
        let saved = ledger.snapshot();
        assert!(saved.to_string().len() <= STATE_BYTES);
        assert!(saved["persona_states"].as_object().expect("personas").len() > 20, "{saved}");
    }

    #[test]
    fn where_an_agent_stands_is_saved_by_itself_alone() {
        let (mut ledger, now) = (Ledger::new(None, "c", 2), Timestamp::from_millis(1));
        let [one, other] = ["w-1", "w-2"].map(AgentId::trusted);
        let [first, second] = ["a", "b"].map(TaskId::trusted);
        ledger.begin(&one, &first, 1, now);
        let status = |change: &Value, agent: &str| change[PERSONAS][agent]["status"].clone();
        assert_eq!(status(&ledger.change(Some(&one)), "w-1"), "running");
        ledger.tried(&one, None, 1, Duration::ZERO, now);
        ledger.begin(&other, &second, 1, now);
        let saved = ledger.change(Some(&other));
        assert_eq!((status(&saved, "w-1"), status(&saved, "w-2")), (Value::Null, json!("running")));
        let saved = ledger.change(Some(&one));
        assert_eq!((status(&saved, "w-1"), status(&saved, "w-2")), (json!("waiting"), Value::Null));
    }

    #[test]
    fn time_is_charged_in_whole_seconds_rounded_up() {
        let mut ledger = Ledger::new(None, "c", 1);
        let charged =
            [200, 900, 2_900, 100].map(|millis| ledger.charge(Duration::from_millis(millis)));
        assert_eq!(charged, [1, 1, 2, 1]);
        ledger.uncharge(Duration::from_millis(100), 1);
        assert_eq!(ledger.charge(Duration::from_millis(100)), 1);
    }
}
