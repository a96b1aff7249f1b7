//! The pure core: what the board knows, every rule and every limit. No I/O, no clock, no async.
//!
//! Operations decide on a `&State` and return events; [`State::record`] applies them. An event
//! holds all that `apply` needs, so that replaying a journal gives the same state on every machine.

pub mod agent;
pub mod aging;
#[doc(hidden)]
pub mod apply;
pub mod artifact;
pub mod attention;
mod bring;
pub mod brought;
pub mod bundle;
#[doc(hidden)]
pub mod changed;
mod check;
#[doc(hidden)]
pub mod claim;
#[doc(hidden)]
pub mod deadline;
#[doc(hidden)]
pub mod diff;
#[doc(hidden)]
pub mod digest;
pub mod discovery;
pub mod document;
#[doc(hidden)]
pub mod duration;
#[doc(hidden)]
pub mod edit;
pub mod event;
pub mod execution;
mod finding;
mod flow;
#[doc(hidden)]
pub mod graph;
#[doc(hidden)]
pub mod guard;
pub mod health;
#[doc(hidden)]
pub mod hierarchy;
mod holding;
pub mod id;
pub mod inbox;
mod index;
#[doc(hidden)]
mod kept;
pub mod kinds;
#[doc(hidden)]
pub mod level;
#[doc(hidden)]
pub mod limit;
pub mod message;
mod number;
mod parts;
#[doc(hidden)]
pub mod pattern;
mod pause;
#[doc(hidden)]
pub mod plan;
pub mod policy;
mod progress;
mod rank;
#[doc(hidden)]
pub mod record;
pub mod reference;
pub mod refusal;
mod remembered;
pub mod reservation;
pub mod reserved;
mod restore;
pub mod review;
mod reviewing;
mod room;
pub mod run;
pub mod session;
pub mod snapshot;
pub mod standing;
#[doc(hidden)]
pub mod stored;
mod table;
pub mod task;
pub mod time;
pub mod undo;
pub mod workflow;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashMapExt};

use agent::{Agent, Participant};
use changed::{Change, Changed};
use discovery::Findings;
use document::{Archived, Board, Document, Retired};
use event::{Event, Idempotency, Recorded};
pub use flow::cause::{Cause, Obstacle};
use id::{AgentId, ParticipantId, TaskId};
use index::Index;
use message::Mail;
use parts::keeps_open;
use remembered::Calls;
pub use remembered::{Created, Remembered};
use reservation::Holds;
use session::Lineage;
use stored::{Records, Replaced, Stored};
use table::{Ordinal, Table};
use task::{Task, TaskStatus};
use thiserror::Error;
use time::Timestamp;
use workflow::Progress;

#[derive(Clone, Debug)]
pub struct State {
    board: Arc<Board>,
    records: Records,
    ordinals: HashMap<TaskId, Ordinal>,
    remembered: Calls,
    index: Index,
    mail: Mail,
    findings: Findings,
    holds: Holds,
    lineage: Lineage,
    progress: Progress,
    next_ordinal: Ordinal,
    /// Set once no cycle was found. Only what a state is loaded from may have one, because every
    /// event is decided so that it closes none.
    acyclic: OnceLock<()>,
    /// The last event that changed the goal, the master plan or the imported plans.
    plan_seq: u64,
    /// The last event that may have changed which tasks wait for a person.
    attention_seq: u64,
    /// What `rollback` restores, oldest first; empty after `settle`.
    undo: Vec<Undo>,
    /// What has changed since `take_changed`, without what can still be rolled back.
    changed: Changed,
}

#[derive(Clone, Debug)]
enum Undo {
    /// What every event changes: `seq` and `last_activity`.
    Head(u64, Timestamp),
    Board(Arc<Board>),
    Record(Replaced),
    Remembered(String),
    /// The whole state but the undo list itself.
    Whole(Box<State>),
}

/// An event that does not fit the state: the state came from another journal, or the journal is
/// damaged.
#[derive(Debug, Error, PartialEq)]
pub enum ApplyError {
    #[error("event {found} cannot follow event {head}")]
    OutOfOrder { head: u64, found: u64 },
    #[error("event {seq} ({kind}) names {what}, which the state does not have")]
    Missing { seq: u64, kind: &'static str, what: String },
}

/// A point in the undo list to which `rollback` can return.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint(usize);

/// Who acts, when, and under which idempotency key.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub at: Timestamp,
    pub participant: ParticipantId,
    pub actor: Option<AgentId>,
    pub idempotency: Option<Idempotency>,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before the first event.
    pub fn new() -> Self {
        let board = Board {
            schema_version: level::FIRST,
            board_id: String::new(),
            seq: 0,
            goal: Arc::from(""),
            master_plan: Arc::from(""),
            created_at: Timestamp::default(),
            last_activity: Timestamp::default(),
            paused: None,
            grace_until: None,
            archived: Archived::default(),
            archived_runs: Archived::default(),
            dropped_stubs: 0,
            questions: 0,
            next_number: 0,
            spent_attempts: Arc::default(),
            undone: Vec::new(),
            plans: Arc::from([]),
        };
        Self {
            board: Arc::new(board),
            records: Records::default(),
            ordinals: HashMap::new(),
            remembered: Calls::default(),
            index: Index::default(),
            mail: Mail::default(),
            findings: Findings::default(),
            holds: Holds::default(),
            lineage: Lineage::default(),
            progress: Progress::default(),
            next_ordinal: 0,
            acyclic: OnceLock::new(),
            plan_seq: 0,
            attention_seq: 0,
            undo: Vec::new(),
            changed: Changed::Everything,
        }
    }

    pub fn from_document(mut document: Document) -> Self {
        let mut state = Self::new();
        (state.plan_seq, state.attention_seq) = (document.board.seq, document.board.seq);
        state.board = Arc::new(document.board.clone());
        let tasks = std::mem::take(&mut document.tasks);
        state.next_ordinal = tasks.len() as Ordinal;
        state.take_in(document);
        state.take_in_tasks(tasks);
        state.changed = Changed::default();
        state
    }

    /// Adds all tasks. Their indexes are built at once, because building them task by task costs
    /// more than everything else at the start of a process.
    fn take_in_tasks(&mut self, mut tasks: Vec<Arc<Task>>) {
        let mut demands = BTreeSet::new();
        for task in &mut tasks {
            match demands.get(&task.demands) {
                Some(known) if Arc::ptr_eq(known, &task.demands) => {}
                Some(known) => Arc::make_mut(task).demands = Arc::clone(known),
                None => drop(demands.insert(Arc::clone(&task.demands))),
            }
        }
        self.ordinals = tasks.iter().map(|task| task.id.clone()).zip(1..).collect();
        self.records.tasks = (1..).zip(tasks).collect();
        self.index = Index::of(self.records.tasks.iter().map(|(ordinal, task)| (ordinal, &**task)));
        let all = self.records.tasks.iter();
        let parents: Vec<_> = all
            .filter(|(_, task)| self.is_parent(&task.id))
            .map(|(ordinal, task)| (ordinal, task.status))
            .collect();
        let all = self.records.tasks.iter();
        let unblocked: Vec<_> = all.filter(|(_, task)| self.is_unblocked(task)).collect();
        let ranked =
            unblocked.into_iter().map(|(ordinal, task)| (ordinal, &**task, self.rank(task)));
        let ranked: Vec<_> = ranked.collect();
        self.index.place_all(ranked.into_iter());
        for (ordinal, status) in parents {
            self.index.note_parent(ordinal, Some(status));
        }
        for (ordinal, task) in self.records.tasks.iter() {
            self.holds.replace_task(ordinal, None, Some(task));
        }
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    pub fn seq(&self) -> u64 {
        self.board.seq
    }

    /// Last event known to have changed the goal, the master plan or what belongs to them.
    pub fn plan_seq(&self) -> u64 {
        self.plan_seq
    }

    /// Last event known to have changed what [`parked`](Self::parked) and [`stuck`](Self::stuck)
    /// say, or that may have.
    pub fn attention_seq(&self) -> u64 {
        self.attention_seq
    }

    /// Live tasks in order of creation, runs among them.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = &Arc<Task>> {
        self.records.tasks.values()
    }

    pub fn task(&self, id: &TaskId) -> Option<&Arc<Task>> {
        self.records.tasks.get(self.ordinal_of(id)?)
    }

    fn ordinal_of(&self, id: &TaskId) -> Option<Ordinal> {
        self.ordinals.get(id).copied()
    }

    /// Live tasks created after `id`; all if `id` is not live.
    pub fn tasks_after<'s>(
        &'s self,
        id: Option<&TaskId>,
    ) -> impl Iterator<Item = &'s Arc<Task>> + use<'s> {
        let start = id.and_then(|id| self.ordinal_of(id)).map_or(0, |ordinal| ordinal + 1);
        self.records.tasks.starting_at(start).map(|(_, task)| task)
    }

    pub fn retired(&self) -> impl Iterator<Item = (&TaskId, &Arc<Retired>)> {
        self.records.retired.iter()
    }

    pub fn retired_task(&self, id: &TaskId) -> Option<&Arc<Retired>> {
        self.records.retired.get(id)
    }

    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.records.agents.values()
    }

    pub fn agent(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.records.agents.get(id)
    }

    pub fn participants(&self) -> impl Iterator<Item = &Arc<Participant>> {
        self.records.participants.values()
    }

    pub fn participant(&self, id: &ParticipantId) -> Option<&Arc<Participant>> {
        self.records.participants.get(id)
    }

    /// Remembers the idempotency key of an event that is already in the state.
    pub fn remember(&mut self, recorded: &Recorded) {
        self.remembered.note(recorded, &self.board.undone);
    }

    /// Forgets all idempotency keys, to remember them anew.
    pub fn forget_calls(&mut self) {
        self.remembered = remembered::Calls::default();
    }

    /// The call that was made with this idempotency key, unless a restore has undone it.
    pub fn remembered(&self, key: &str) -> Option<&Remembered> {
        self.remembered.get(key, self.seq(), &self.board.undone)
    }

    /// Number of live tasks with the status, without those that have parts.
    pub fn count(&self, status: TaskStatus) -> usize {
        self.index.count(status)
    }

    /// Number of live tasks with the status, those that have parts among them.
    pub fn count_all(&self, status: TaskStatus) -> usize {
        self.index.count_all(status)
    }

    pub fn live_tasks(&self) -> usize {
        self.records.tasks.len()
    }

    /// True if the task is done, live or retired.
    pub fn is_done(&self, id: &TaskId) -> bool {
        self.status_of(id) == Some(TaskStatus::Done)
    }

    pub fn status_of(&self, id: &TaskId) -> Option<TaskStatus> {
        self.task(id).map(|task| task.status).or_else(|| Some(self.records.retired.get(id)?.status))
    }

    /// Gives `event` the next `seq` and applies it.
    pub fn record(&mut self, event: Event, envelope: &Envelope) -> Result<Recorded, ApplyError> {
        let (before, last_activity) = match &event {
            Event::Imported { document, .. } => (document.board.seq, document.board.last_activity),
            _ => (self.seq(), self.board.last_activity),
        };
        let recorded = Recorded {
            seq: before + 1,
            at: envelope.at.max(last_activity),
            participant: envelope.participant.clone(),
            actor: envelope.actor.clone(),
            idempotency: envelope.idempotency.clone(),
            event,
        };
        self.apply(&recorded)?;
        Ok(recorded)
    }

    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Undoes everything since `savepoint`.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        while self.undo.len() > savepoint.0 {
            let Some(undo) = self.undo.pop() else { break };
            match undo {
                Undo::Head(seq, last_activity) => self.set_head(seq, last_activity),
                Undo::Board(board) => self.board = board,
                Undo::Record(replaced) => self.put_back(replaced),
                Undo::Remembered(key) => self.remembered.forget(&key),
                Undo::Whole(state) => {
                    let undo = std::mem::take(&mut self.undo);
                    *self = Self { undo, ..*state };
                }
            }
        }
    }

    /// Makes everything so far final, because it is in the journal: nothing before this can be
    /// rolled back.
    pub fn settle(&mut self) {
        let seq = self.board.seq;
        for undo in std::mem::take(&mut self.undo) {
            match undo {
                Undo::Head(..) | Undo::Board(_) | Undo::Remembered(_) => {}
                Undo::Record(replaced) => {
                    if let Some((entity, anew)) = self.entity_of(&replaced) {
                        self.changed.note(entity, Change { seq, anew });
                    }
                }
                Undo::Whole(_) => self.changed = Changed::Everything,
            }
        }
    }

    /// Takes what has changed since the last call, or since the state was made from a document.
    /// Changes that are not settled are not included.
    pub fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }

    /// Makes delayed tasks ready whose time has come. Readiness is derived, so there is no event.
    pub fn wake(&mut self, now: Timestamp) {
        for ordinal in self.index.due(now) {
            self.refresh(ordinal);
        }
    }

    /// Replaces everything but the remembered keys by `document`.
    fn replace_by(&mut self, document: Document) {
        let mut new = Self::from_document(document);
        new.remembered = self.remembered.clone();
        new.set_aging(self.index.aging());
        new.wake(self.index.awake_until());
        new.undo = std::mem::take(&mut self.undo);
        new.changed = self.changed.clone();
        new.attention_seq = self.seq().max(new.seq()) + 1;
        let old = std::mem::replace(self, new);
        self.undo.push(Undo::Whole(Box::new(old)));
    }

    fn take_ordinal(&mut self) -> Ordinal {
        self.next_ordinal += 1;
        self.next_ordinal
    }

    /// Updates what follows from the tasks, after one was replaced.
    fn follow_task(&mut self, ordinal: Ordinal, old: Option<&Task>, new: Option<&Task>) {
        match (old, new) {
            (None, Some(new)) => drop(self.ordinals.insert(new.id.clone(), ordinal)),
            (Some(old), None) => drop(self.ordinals.remove(&old.id)),
            // An ordinal belongs to one task for ever.
            _ => {}
        }
        self.index.replace(ordinal, old, new);
        self.holds.replace_task(ordinal, old, new);
        if self.may_change_attention(old, new) {
            // The board's own `seq` still is that of the event before.
            self.attention_seq = self.board.seq + 1;
        }
        self.place(ordinal, old, new);
        self.refresh_around(old, new);
        let done = |task: Option<&Task>| task.is_some_and(|task| task.status == TaskStatus::Done);
        let held = |task: Option<&Task>| task.is_some_and(|task| task.status.is_in_work());
        let (is_done, is_free) = (done(old) != done(new), held(old) != held(new));
        if (is_done || is_free)
            && let Some(id) = new.or(old).map(|task| task.id.clone())
        {
            let dependents: Vec<_> = self.index.dependents(&id).collect();
            for dependent in dependents {
                let dependent_task = self.records.tasks.get(dependent);
                let waits = dependent_task.is_some_and(|task| task.after() == Some(&id));
                if !is_done && !waits {
                    continue;
                }
                self.refresh(dependent);
                if let Some(id) = self.records.tasks.get(dependent).map(|task| task.id.clone()) {
                    self.refresh_below(&id);
                }
            }
        }
        let keeps = |task: Option<&Task>| task.is_some_and(keeps_open);
        let parent = new.or(old).and_then(|task| self.task(task.parent.as_ref()?));
        if keeps(old) != keeps(new)
            && let Some(parent) = parent.filter(|parent| parent.is_own_work())
            && let Some(ordinal) = self.ordinal_of(&parent.id)
        {
            self.refresh(ordinal);
        }
    }

    /// Whether this change of a task may change which tasks ended badly, and which are available and
    /// depend on those.
    fn may_change_attention(&self, old: Option<&Task>, new: Option<&Task>) -> bool {
        let both = || [old, new].into_iter().flatten();
        let places = [old, new].map(|task| {
            task.map(|task| (task.parent.as_ref(), task.dependencies.as_slice()))
                .unwrap_or_default()
        });
        let is_available =
            |task: Option<&Task>| task.is_some_and(|task| task.status == TaskStatus::Available);
        both().any(|task| task.status.ended_badly())
            || places[0] != places[1]
            || is_available(old) != is_available(new)
                && both().any(|task| self.waits_for(task).next().is_some())
    }

    fn refresh(&mut self, ordinal: Ordinal) {
        let task = self.records.tasks.get(ordinal).cloned();
        self.place(ordinal, task.as_deref(), task.as_deref());
    }

    /// Updates the readiness of the task's parents and parts, which its change may have affected.
    fn refresh_around(&mut self, old: Option<&Task>, new: Option<&Task>) {
        let parents = [old, new].map(|task| task.and_then(|task| task.parent.clone()));
        let moved = parents[0] != parents[1];
        for parent in parents.into_iter().flatten().filter(|_| moved) {
            if let Some(ordinal) = self.ordinal_of(&parent) {
                self.refresh(ordinal);
            }
        }
        if let Some(task) =
            new.filter(|new| moved || old.is_none_or(|old| old.waits() != new.waits()))
        {
            self.refresh_below(&task.id);
        }
    }

    /// Moves the task to where the definition of ready puts it; `old` is the task before its
    /// change.
    fn place(&mut self, ordinal: Ordinal, old: Option<&Task>, new: Option<&Task>) {
        if let Some(old) = old.filter(|old| may_be_ready(old)) {
            self.index.displace(ordinal, old);
        }
        let parent = new.filter(|new| self.is_parent(&new.id));
        self.index.note_parent(ordinal, parent.map(|parent| parent.status));
        let Some(new) = new.filter(|new| may_be_ready(new)) else { return };
        if self.is_unblocked(new) {
            self.index.place(ordinal, new, self.rank(new));
        }
    }

    /// Available, no group, and with every dependency done and no part that keeps it open: ready, or
    /// waiting for `not_before` only.
    fn is_unblocked(&self, task: &Task) -> bool {
        may_be_ready(task) && !self.is_parent(&task.id) && self.waits_for(task).next().is_none()
    }

    fn put_agent(&mut self, agent: Agent) {
        self.put(agent.id.clone(), Some(Arc::new(agent)));
    }

    fn set_head(&mut self, seq: u64, last_activity: Timestamp) {
        let board = Arc::make_mut(&mut self.board);
        (board.seq, board.last_activity) = (seq, last_activity);
    }

    fn edit_board(&mut self, edit: impl FnOnce(&mut Board)) {
        let old = Arc::clone(&self.board);
        edit(Arc::make_mut(&mut self.board));
        if !old.has_plan_of(&self.board) {
            // The board's own `seq` still is that of the event before; it changes when the event is
            // applied.
            self.plan_seq = old.seq + 1;
        }
        self.undo.push(Undo::Board(old));
    }
}

impl Stored for Task {
    type Kept = Table<Arc<Self>>;

    fn key(state: &State, id: &TaskId) -> Option<Ordinal> {
        state.ordinal_of(id)
    }

    fn follow(state: &mut State, ordinal: &Ordinal, old: Option<&Self>, new: Option<&Self>) {
        state.follow_task(*ordinal, old, new);
    }
}

/// Judges by the task alone, without dependencies and parts.
fn may_be_ready(task: &Task) -> bool {
    task.status == TaskStatus::Available && task.run.is_none()
}
