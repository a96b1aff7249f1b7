//! A board without disk, processes or clock: the core and its operations, with time and chance
//! controlled by the test.
//!
//! After every step it asserts the invariants, and that a replay of the recorded events gives the
//! same state.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use callboard::mcp::resources::{Subject, is_list_changed_by};
use callboard::ops::{
    Call, DefaultAgent, Executed, Fetched, History, Prepared, Reader, Vitals, execute, find,
    understand, waits,
};
use callboard::state::agent::Participant;
use callboard::state::deadline::clock_stepped;
use callboard::state::document::{Document, Undone};
use callboard::state::event::{Event, Recorded};
use callboard::state::id::{AgentId, ParticipantId, TaskId};
use callboard::state::policy::Policy;
use callboard::state::refusal::Refusal;
use callboard::state::task::{Attempt, Place, Task, TaskStatus};
use callboard::state::time::{SECOND, Timestamp};
use callboard::state::{Envelope, State};
use serde_json::{Value, json};

use super::schemas::{assert_document, assert_reply};

/// Number of events up to which every step replays the whole history; later, one step in `SPARSE`
/// does.
const REPLAYED_ALWAYS: usize = 150;
const SPARSE: u64 = 256;
/// One step in this many is first made and undone.
const REHEARSED: u64 = 3;

pub(crate) struct World {
    pub state: State,
    pub policy: Policy,
    pub now: Timestamp,
    pub default_agent: DefaultAgent,
    pub place: Place,
    pub reader: Reader,
    /// Leaves replays to `check`, for long random histories.
    pub replays_seldom: bool,
    /// The archive's answer to the next calls.
    pub fetched: Fetched,
    past: Past,
    /// A replica to which each event is applied, as in another process.
    replica: State,
    seed: u64,
    steps: u64,
    one_shot: ParticipantId,
    /// Processes by name, and the process that each agent acts through.
    processes: BTreeMap<String, Participant>,
    homes: BTreeMap<String, String>,
    dead: Vec<ParticipantId>,
    stepped: Option<i64>,
    acting: Option<String>,
    acting_process: Option<String>,
}

/// The history, and the number of its events that calls have read.
#[derive(Default)]
struct Past(Vec<Recorded>, Cell<u64>);

impl History for Past {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let after = self.0.iter().filter(|recorded| recorded.seq > seq).take(limit);
        let after = after.inspect(|_| self.1.set(self.1.get() + 1));
        _ = after.cloned().try_for_each(take);
        Ok(())
    }

    fn retired_at(&self, id: &TaskId, undone: &[Undone]) -> Result<Option<u64>, String> {
        Ok(dropped_at(self.0.iter(), id, undone))
    }
}

/// Where the stub of a task left the state for good: what the journal keeps in a table.
pub(crate) fn dropped_at<'a>(
    events: impl DoubleEndedIterator<Item = &'a Recorded>,
    id: &TaskId,
    undone: &[Undone],
) -> Option<u64> {
    let stands = |seq| !undone.iter().any(|range| range.contains(seq));
    events.rev().filter(|recorded| stands(recorded.seq)).find_map(|recorded| {
        match &recorded.event {
            Event::StubsDropped { stubs } => stubs.get(id).copied(),
            _ => None,
        }
    })
}

impl World {
    /// A board without tasks and agents, at noon on 1 March 2026.
    pub(crate) fn new() -> Self {
        let mut world = Self {
            state: State::new(),
            policy: Policy::default(),
            now: Timestamp::from_millis(1_772_366_400_000),
            default_agent: DefaultAgent::None,
            place: Place::default(),
            reader: Reader::Program,
            replays_seldom: false,
            fetched: Fetched::Nothing,
            past: Past::default(),
            replica: State::new(),
            seed: 0,
            steps: 0,
            one_shot: ParticipantId::trusted("p-oneshot"),
            processes: BTreeMap::new(),
            homes: BTreeMap::new(),
            dead: Vec::new(),
            stepped: None,
            acting: None,
            acting_process: None,
        };
        let created = Event::BoardCreated { board_id: "board-test".to_owned(), numbered: true };
        let recorded =
            world.state.record(created, &world.envelope()).expect("a board can be created");
        world.keep(vec![recorded]);
        world
    }

    pub(crate) fn with_policy(policy: Policy) -> Self {
        Self { policy, ..Self::new() }
    }

    /// The world with a history that begins with its state changed by `change`.
    pub(crate) fn holding(mut self, change: impl FnOnce(&mut Document)) -> Self {
        let mut document = self.state.to_document();
        change(&mut document);
        let imported =
            Event::Imported { source: "a test".to_owned(), document: Box::new(document) };
        let recorded = self.state.record(imported, &self.envelope()).expect("the document follows");
        self.keep(vec![recorded]);
        self
    }

    /// The events after event `seq`.
    pub(crate) fn since(&self, seq: u64) -> Vec<Recorded> {
        self.past.0.iter().filter(|recorded| recorded.seq > seq).cloned().collect()
    }

    /// The world with a task of this id.
    pub(crate) fn task(self, id: &str) -> Self {
        self.task_with(id, json!({}))
    }

    pub(crate) fn task_with(mut self, id: &str, more: Value) -> Self {
        self.create(id, more);
        self
    }

    /// The world with a registered worker, which acts in the following calls.
    pub(crate) fn agent(self, id: &str) -> Self {
        self.agent_with(id, json!({}))
    }

    pub(crate) fn agent_with(mut self, id: &str, more: Value) -> Self {
        self.by(id)
            .call("register_agent", merged(json!({"role": "worker"}), more))
            .expect("the agent registers");
        self
    }

    /// The world with a registered worker that acts through a living process of this name.
    pub(crate) fn agent_in(mut self, id: &str, process: &str) -> Self {
        self.lives_in(id, process);
        self.agent(id)
    }

    /// The world after `agent` has claimed `task`.
    pub(crate) fn claimed(mut self, agent: &str, task: &str) -> Self {
        self.claim(agent, task);
        self
    }

    pub(crate) fn create(&mut self, id: &str, more: Value) -> Value {
        let fields = merged(json!({"id": id, "description": format!("do {id}")}), more);
        self.call("create_task", fields).expect("the task is created")
    }

    pub(crate) fn claim(&mut self, agent: &str, task: &str) -> Value {
        self.by(agent)
            .call("claim_task", json!({"task_id": task}))
            .replies(json!({"success": true}))
    }

    /// Claims whatever is next for `agent`.
    pub(crate) fn next(&mut self, agent: &str) -> Value {
        self.by(agent).call("claim_task", json!({})).expect("a claim is answered")
    }

    pub(crate) fn complete(&mut self, agent: &str, task: &str) -> Value {
        self.by(agent)
            .call("complete_task", json!({"task_id": task, "output": "made"}))
            .replies(json!({"success": true}))
    }

    /// Sets who acts: their `agent_id` is added to the following calls.
    pub(crate) fn by(&mut self, agent: &str) -> &mut Self {
        self.acting = Some(agent.to_owned());
        self.acting_process = None;
        self
    }

    /// Calls as the person, or as `default_agent`.
    pub(crate) fn nobody(&mut self) -> &mut Self {
        self.acting = None;
        self.acting_process = None;
        self
    }

    /// The following calls come through this process, whoever acts.
    pub(crate) fn through(&mut self, process: &str) -> &mut Self {
        self.acting_process = Some(self.process(process));
        self
    }

    pub(crate) fn lives_in(&mut self, agent: &str, process: &str) {
        let process = self.process(process);
        self.homes.insert(agent.to_owned(), process);
    }

    fn process(&mut self, name: &str) -> String {
        let number = self.processes.len() as u32;
        self.processes.entry(name.to_owned()).or_insert_with(|| Participant {
            id: ParticipantId::trusted(format!("p-{name}")),
            pid: 1_000 + number,
            worktree: Some(format!("/work/{name}")),
            joined_at: Timestamp::default(),
        });
        name.to_owned()
    }

    /// Kills the process. Its agents act without one until they get another.
    pub(crate) fn kill(&mut self, process: &str) -> &mut Self {
        let died = self.processes.remove(process).expect("the process lives");
        self.homes.retain(|_, home| home != process);
        self.dead.push(died.id);
        self.tick()
    }

    /// Lets time pass.
    pub(crate) fn at(&mut self, millis: i64) -> &mut Self {
        self.now = self.now + millis;
        self.tick()
    }

    /// Lets the machine sleep.
    pub(crate) fn sleeps(&mut self, millis: i64) -> &mut Self {
        self.now = self.now + millis;
        self.stepped = Some(millis);
        self.tick()
    }

    /// Records what time has brought, as the writer does before it looks at calls.
    pub(crate) fn tick(&mut self) -> &mut Self {
        self.state.set_aging(self.policy.aging());
        self.state.wake(self.now);
        let recorded = self.record_time();
        self.keep(recorded);
        self.stepped = None;
        self.dead.clear();
        self
    }

    fn record_time(&mut self) -> Vec<Recorded> {
        let envelope = self.envelope();
        let mut recorded = Vec::new();
        let mut record = |state: &mut State, event: Event| {
            recorded.push(state.record(event, &envelope).expect("what time brings fits the state"));
        };
        if let Some(gap) = self.stepped {
            record(&mut self.state, clock_stepped(gap, self.now));
        }
        for dead in &self.dead {
            if let Some(participant) = self.state.participant(dead).cloned() {
                let gone = self.state.participant_gone(&participant, &self.policy, self.now);
                record(&mut self.state, gone);
            }
        }
        for expired in self.state.expire(self.now) {
            record(&mut self.state, expired);
        }
        while let Some(event) = self.state.follow_up(self.state.seq()) {
            record(&mut self.state, event);
        }
        if let Some(retired) = self.state.retire_surplus(&self.policy, &mut 0) {
            record(&mut self.state, retired);
        }
        if let Some(dropped) = self.state.retire_checkpoints(&self.policy, self.now) {
            record(&mut self.state, dropped);
        }
        if let Some(dropped) = self.state.drop_stubs(&self.policy) {
            record(&mut self.state, dropped);
        }
        recorded
    }

    fn envelope(&self) -> Envelope {
        Envelope {
            at: self.now,
            participant: self.one_shot.clone(),
            actor: None,
            idempotency: None,
        }
    }

    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Result<Value, Refusal> {
        self.executed(name, arguments).answer
    }

    /// Executes a call; returns its result and who acted. A read must record nothing, and a refusal
    /// only a renewal and a late result.
    pub(crate) fn executed(&mut self, name: &str, arguments: Value) -> Executed {
        self.tick();
        let (seed, seq) = (self.seed, self.state.seq());
        self.seed += 1;
        if self.steps.is_multiple_of(if self.is_short() { REHEARSED } else { SPARSE }) {
            self.rehearse(name, &arguments, seed);
        }
        let executed = match self.run(name, arguments, seed) {
            Ok(executed) => executed,
            Err(refusal) => Executed { events: Vec::new(), answer: Err(refusal), actor: None },
        };
        if let Ok(reply) = &executed.answer {
            assert_reply(name, reply);
        }
        let kinds: Vec<_> = executed.events.iter().map(|recorded| recorded.event.kind()).collect();
        if find(name).is_some_and(|entry| entry.annotations.read_only) {
            assert!(kinds.is_empty(), "{name} only reads and recorded {kinds:?}");
        }
        if let Err(refusal) = &executed.answer {
            let unasked = [
                "agent_seen",
                "participant_joined",
                "agents_retired",
                "agent_registered",
                "late_result_kept",
                "stubs_recalled",
            ];
            assert!(
                kinds.iter().all(|kind| unasked.contains(kind)),
                "{refusal} recorded {kinds:?}"
            );
        }
        assert_eq!(
            self.state.seq(),
            seq + executed.events.len() as u64,
            "seq rises by one per event"
        );
        self.keep(executed.events.clone());
        self.follow();
        executed
    }

    /// Records what follows for the sessions of runs.
    fn follow(&mut self) {
        while let Some(event) = self.state.follow_up(self.state.seq()) {
            let recorded =
                self.state.record(event, &self.envelope()).expect("what follows fits the state");
            self.keep(vec![recorded]);
        }
    }

    /// Time of the call alone, which must record nothing.
    pub(crate) fn timed(&mut self, name: &str, arguments: Value) -> (Duration, Value) {
        let prepared = self.prepared(name, arguments).expect("the arguments are good");
        let start = Instant::now();
        let executed = self.with_call(0, |state, call| execute(state, prepared.as_ref(), call));
        let taken = start.elapsed();
        let executed = executed.expect("events fit the state");
        assert!(executed.events.is_empty(), "{name} has recorded something");
        (taken, executed.answer.expect("it is answered"))
    }

    /// Whether the call would wait.
    pub(crate) fn waits(&mut self, name: &str, arguments: Value) -> bool {
        self.tick();
        let prepared = self.prepared(name, arguments).expect("the arguments are good");
        self.waits_on(prepared.as_ref())
    }

    /// Whether a call would wait that may have waited before.
    pub(crate) fn waits_on(&mut self, prepared: &dyn Prepared) -> bool {
        self.with_call(0, |state, call| waits(state, prepared, call))
    }

    pub(crate) fn answer(&mut self, prepared: &dyn Prepared) -> Result<Value, Refusal> {
        self.with_call(0, |state, call| execute(state, prepared, call))
            .expect("events fit the state")
            .answer
    }

    /// Number of past events that calls have read.
    pub(crate) fn events_read(&self) -> u64 {
        self.past.1.get()
    }

    fn run(&mut self, name: &str, arguments: Value, seed: u64) -> Result<Executed, Refusal> {
        let prepared = self.prepared(name, arguments)?;
        Ok(self.with_call(seed, |state, call| {
            execute(state, prepared.as_ref(), call).expect("events fit the state")
        }))
    }

    pub(crate) fn prepared(
        &self,
        name: &str,
        mut arguments: Value,
    ) -> Result<Box<dyn Prepared>, Refusal> {
        let entry = find(name).unwrap_or_else(|| panic!("no operation {name}"));
        let takes_agent = entry.agent != callboard::ops::AgentArgument::None;
        if let (Some(agent), Some(fields), true) =
            (&self.acting, arguments.as_object_mut(), takes_agent)
        {
            fields.entry("agent_id").or_insert_with(|| Value::from(agent.as_str()));
        }
        understand(entry, arguments, self.reader).map(|understood| understood.prepared)
    }

    fn with_call<T>(&mut self, seed: u64, operate: impl FnOnce(&mut State, Call) -> T) -> T {
        let home = self.acting_process.as_ref().or_else(|| self.homes.get(self.acting.as_ref()?));
        let presence = home.and_then(|name| self.processes.get(name));
        let participant = presence.map_or(&self.one_shot, |participant| &participant.id);
        let vitals = Vitals::since(self.now);
        let call = Call {
            presence,
            place: &self.place,
            fetched: &self.fetched,
            default_agent: &self.default_agent,
            started_as: &self.default_agent,
            command: Some("callboard"),
            reader: self.reader,
            ..Call::new(self.now, seed, &self.policy, participant, &self.past, &vitals)
        };
        operate(&mut self.state, call)
    }

    /// Makes the call and undoes it; nothing of it may remain.
    fn rehearse(&mut self, name: &str, arguments: &Value, seed: u64) {
        let (before, savepoint) = (self.state.to_document(), self.state.savepoint());
        drop(self.run(name, arguments.clone(), seed));
        self.state.rollback(savepoint);
        assert_eq!(
            self.state.to_document(),
            before,
            "{name} {arguments} left something behind when it was taken back"
        );
        assert_eq!(self.state.check(), Vec::<String>::new(), "{name} {arguments}, taken back");
    }

    fn keep(&mut self, recorded: Vec<Recorded>) {
        self.state.settle();
        self.steps += 1;
        for event in &recorded {
            let shown = |state: &State| (state.to_document(), attention(state));
            let before = self.is_short().then(|| shown(&self.replica));
            self.replica.apply(&through_json(event)).expect("what was recorded can be replayed");
            self.replica.settle();
            if let Some((before, waited)) = before {
                let (after, waits) = shown(&self.replica);
                assert_told(&before, &after, event);
                let is_noted = self.replica.attention_seq() >= event.seq;
                assert!(is_noted || waits == waited, "{event:?} makes {waited} to {waits}");
            }
        }
        self.past.0.extend(recorded);
        if self.replays_seldom {
            assert_eq!(self.state.check(), Vec::<String>::new());
        } else if self.is_short() || self.steps.is_multiple_of(SPARSE) {
            self.check();
        }
    }

    fn is_short(&self) -> bool {
        self.past.0.len() <= REPLAYED_ALWAYS
    }

    /// Checks every invariant that is visible from outside.
    pub(crate) fn check(&self) {
        assert_eq!(self.state.check(), Vec::<String>::new());
        let document = self.state.to_document();
        assert_eq!(self.replica.to_document(), document, "another process has another state");
        let mut replayed = State::new();
        for recorded in &self.past.0 {
            replayed.apply(recorded).expect("what was recorded can be replayed");
        }
        replayed.wake(self.state.board().last_activity);
        assert_eq!(replayed.to_document(), document, "the replay of the whole history differs");
        assert_eq!(replayed.check(), Vec::<String>::new());
        assert_document(&serde_json::to_value(&document).expect("a document can be written"));
        let text = serde_json::to_string(&document).expect("a document can be written");
        let read = serde_json::from_str(&text).expect("and read");
        let mut loaded = State::from_document(read);
        loaded.wake(self.now);
        assert_eq!(loaded.to_document(), document, "the state read from its file differs");
        assert_eq!(loaded.check(), Vec::<String>::new());
        assert_eq!(
            loaded.expire(self.now + 1_000 * SECOND),
            self.state.expire(self.now + 1_000 * SECOND)
        );
        self.check_agents_counters();
    }

    fn check_agents_counters(&self) {
        for agent in self.state.agents() {
            let done =
                self.past.0.iter().filter(|one| self.finished_by(one) == Some(&agent.id)).count();
            let failed = self
                .past
                .0
                .iter()
                .filter(|one| self.ended_by(one, "failed") == Some(&agent.id))
                .count();
            let (came_with_done, came_with_failed) = self.brought_counters(&agent.id);
            let counted = (came_with_done + done as u64, came_with_failed + failed as u64);
            assert_eq!((agent.tasks_completed, agent.tasks_failed), counted, "of {}", agent.id);
        }
    }

    /// The counters with which an import brought the agent.
    fn brought_counters(&self, id: &AgentId) -> (u64, u64) {
        let brought = self.past.0.iter().filter_map(|one| match &one.event {
            Event::PlanImported { brought, .. } => {
                brought.as_ref()?.agents.iter().find(|agent| agent.id == *id)
            }
            _ => None,
        });
        brought.map(|agent| (agent.tasks_completed, agent.tasks_failed)).next().unwrap_or_default()
    }

    /// The agent that ended a task: only an agent itself completes and fails its tasks.
    fn ended_by<'a>(&self, recorded: &'a Recorded, kind: &str) -> Option<&'a AgentId> {
        recorded.actor.as_ref().filter(|_| recorded.event.kind() == kind)
    }

    /// The agent whose work is done by the event: the one that completed it, and if a reviewer
    /// approved it, the one of the last claim before.
    fn finished_by<'a>(&'a self, recorded: &'a Recorded) -> Option<&'a AgentId> {
        match &recorded.event {
            Event::Completed { review: true, .. } => None,
            Event::Completed { .. } => recorded.actor.as_ref(),
            Event::Reviewed { task: reviewed, approved: true, .. }
                if !self.is_taken_back(recorded, reviewed) =>
            {
                let before = self.past.0.iter().rev().skip_while(|one| one.seq >= recorded.seq);
                before.into_iter().find_map(|one| match &one.event {
                    Event::Claimed { task, agent, .. } if task == reviewed => Some(agent),
                    _ => None,
                })
            }
            _ => None,
        }
    }

    /// True if what the reviewer said of the task was undone later.
    fn is_taken_back(&self, reviewed: &Recorded, task: &TaskId) -> bool {
        self.past.0.iter().any(|one| match &one.event {
            Event::CommandUndone { first, last, reviews, .. } => {
                (*first..=*last).contains(&reviewed.seq) && reviews.contains(task)
            }
            _ => false,
        })
    }

    pub(crate) fn read(&self, id: &str) -> Task {
        Task::clone(
            self.state.task(&TaskId::trusted(id)).unwrap_or_else(|| panic!("task {id} is live")),
        )
    }

    pub(crate) fn status(&self, id: &str) -> TaskStatus {
        self.read(id).status
    }

    /// The current or last attempt.
    pub(crate) fn attempt(&self, id: &str) -> Attempt {
        self.read(id).attempts.last().expect("the task was claimed").clone()
    }

    /// Milliseconds until the lease ends.
    pub(crate) fn lease(&self, id: &str) -> i64 {
        let task = self.read(id);
        let open = task.open_attempt().unwrap_or_else(|| panic!("task {id} is held"));
        open.lease_until.millis() - self.now.millis()
    }

    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.past.0.iter().map(|recorded| recorded.event.kind()).collect()
    }

    pub(crate) fn count_of(&self, kind: &str) -> usize {
        self.kinds().into_iter().filter(|one| *one == kind).count()
    }

    /// The level of the newest event of this kind.
    pub(crate) fn level_of(&self, kind: &str) -> u32 {
        let newest = self.past.0.iter().rev().find(|recorded| recorded.event.kind() == kind);
        newest.map_or(0, |recorded| recorded.event.level())
    }

    pub(crate) fn agents_present(&self) -> BTreeSet<String> {
        let present = self.state.agents().filter(|agent| agent.is_present());
        present.map(|agent| agent.id.to_string()).collect()
    }
}

/// The event written and read as JSON, beside its envelope, as in the journal.
fn through_json(recorded: &Recorded) -> Recorded {
    let body = serde_json::to_string(&recorded.event).expect("an event can be written");
    Recorded { event: serde_json::from_str(&body).expect("and read"), ..recorded.clone() }
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}

/// Expectations of a call's answer.
pub(crate) trait Answered {
    /// Asserts a reply that contains at least `subset`.
    fn replies(self, subset: Value) -> Value;
    /// Asserts a refusal with this code. Returns its message.
    fn refuses(self, code: &str) -> String;
}

impl Answered for Result<Value, Refusal> {
    #[track_caller]
    fn replies(self, subset: Value) -> Value {
        match self {
            Ok(reply) => {
                assert!(holds(&reply, &subset), "{reply}\ndoes not hold\n{subset}");
                reply
            }
            Err(refusal) => panic!("refused: {refusal}"),
        }
    }

    #[track_caller]
    fn refuses(self, code: &str) -> String {
        match self {
            Ok(reply) => panic!("not refused: {reply}"),
            Err(refusal) => {
                assert_eq!(refusal.code(), code, "{refusal}");
                refusal.to_string()
            }
        }
    }
}

/// Which tasks wait for a person.
fn attention(state: &State) -> Value {
    json!([state.parked(None), state.stuck(None)])
}

/// Asserts that subscribers are notified of everything that differs.
fn assert_told(before: &Document, after: &Document, recorded: &Recorded) {
    let kind = recorded.event.kind();
    // A heartbeat is not shown, unless the agent had waited for a person.
    let waited = matches!(recorded.event, Event::AgentSeen { waited: true, .. });
    if ["agent_seen", "runner_seen"].contains(&kind) && !waited {
        return;
    }
    let agents = |document: &Document| {
        let mut agents = document.agents.clone();
        agents.values_mut().for_each(|agent| agent.last_heartbeat = Timestamp::default());
        agents
    };
    let plan =
        |document: &Document| (document.board.goal.clone(), document.board.master_plan.clone());
    let mut differs = vec![
        (Subject::Tasks, before.tasks != after.tasks),
        (Subject::Discoveries, before.discoveries != after.discoveries),
        (Subject::MasterPlan, plan(before) != plan(after)),
        (Subject::Agents, agents(before) != agents(after)),
    ];
    let changed = after.tasks.iter().filter(|task| !before.tasks.contains(task));
    differs.extend(changed.map(|task| (Subject::Task(task.id.clone()), true)));
    for (subject, differs) in differs {
        assert!(
            !differs || subject.is_touched_by(recorded),
            "{kind} is not told to who listens for {subject:?}"
        );
    }
    let listed = |document: &Document| -> Vec<(TaskId, String)> {
        let tasks =
            document.tasks.iter().filter(|task| task.status.is_unfinished() && task.run.is_none());
        tasks.map(|task| (task.id.clone(), task.headline().to_owned())).collect()
    };
    assert!(
        listed(before) == listed(after) || is_list_changed_by(recorded),
        "{kind} changes the list of resources"
    );
}

/// Whether `value` contains `subset`: objects may have more fields, and `null` stands for an absent
/// field.
pub(crate) fn holds(value: &Value, subset: &Value) -> bool {
    match (value, subset) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, one)| holds(fields.get(name).unwrap_or(&Value::Null), one))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len()
                && items.iter().zip(wanted).all(|(item, one)| holds(item, one))
        }
        _ => value == subset,
    }
}
