//! The newest idempotency keys and what their calls created. Not part of the document: the journal
//! has the keys as a column.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::document::Undone;
use super::event::{Event, Idempotency, Recorded};
use super::id::{DiscoveryId, MessageId, TaskId};
use super::limit::KEYS_REMEMBERED;

#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Calls of each key, oldest first; more than one only if a restore has undone the earlier
    /// ones.
    by_key: HashMap<String, Vec<Remembered>>,
    order: VecDeque<String>,
}

/// A call that was made with an idempotency key.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// Seq of the call's first event.
    seq: u64,
    pub params: String,
    pub created: Vec<Created>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    Tasks(Vec<TaskId>),
    /// A task that was changed; nothing was created.
    Changed(TaskId),
    Discovery(DiscoveryId),
    Run(TaskId),
    Message(MessageId),
    Plan(Box<Event>),
    /// Number of tasks that were reset; nothing was created.
    Reset(usize),
    /// Number of the checkpoint, if the call saved one.
    Checkpoint(Option<u64>),
}

impl Created {
    /// What the event created or changed, for the reply to a repeated call.
    pub fn by(event: &Event) -> Option<Self> {
        match event {
            Event::TasksCreated { tasks } => {
                Some(Self::Tasks(tasks.iter().map(|task| task.id.clone()).collect()))
            }
            Event::DiscoveryAdded { discovery, .. } => Some(Self::Discovery(discovery.clone())),
            Event::RunCreated { run, .. } => Some(Self::Run(run.id.clone())),
            Event::MessageSent { message } => Some(Self::Message(message.id.clone())),
            Event::TasksReset { tasks } => Some(Self::Reset(tasks.len())),
            Event::WorkflowSaved(saved) => {
                Some(Self::Checkpoint(saved.checkpoint.as_ref().map(|(_, one)| one.number)))
            }
            Event::PlanImported { .. } => Some(Self::Plan(Box::new(event.without_text()))),
            Event::TaskUpdated { task, .. }
            | Event::Claimed { task, .. }
            | Event::Started { task }
            | Event::Completed { task, .. }
            | Event::Reviewed { task, .. }
            | Event::Failed { task, .. }
            | Event::Released { task, .. }
            | Event::Cancelled { task, .. }
            | Event::Retried { task }
            | Event::StopRequested { task, .. } => Some(Self::Changed(task.clone())),
            _ => None,
        }
    }

    /// The ids, named by kind, such as `created` or `discovery`.
    pub fn told(&self) -> Map<String, Value> {
        let (name, id) = match self {
            Self::Tasks(tasks) => ("created", json!(tasks)),
            Self::Changed(task) => ("changed", json!(task)),
            Self::Discovery(discovery) => ("discovery", json!(discovery)),
            Self::Run(run) => ("run", json!(run)),
            Self::Message(message) => ("message", json!(message)),
            Self::Checkpoint(number) => ("checkpoint", json!(number)),
            Self::Reset(tasks) => ("reset", json!(tasks)),
            Self::Plan(event) => match event.as_ref() {
                Event::PlanImported { plan, .. } => ("plan", json!(plan.sha256)),
                _ => ("plan", Value::Null),
            },
        };
        Map::from_iter([(name.to_owned(), id)])
    }
}

impl Calls {
    /// The call with this key whose effect is in the state after event `seq`.
    pub(super) fn get(&self, key: &str, seq: u64, undone: &[Undone]) -> Option<&Remembered> {
        self.by_key.get(key)?.iter().find(|call| call.stands(seq, undone))
    }

    /// Notes an event's key and returns whether the call is new. The events of one batch share a
    /// key.
    pub(super) fn note(&mut self, recorded: &Recorded, undone: &[Undone]) -> bool {
        let Some(Idempotency { key, params }) = &recorded.idempotency else { return false };
        let created = Created::by(&recorded.event);
        let calls = self.by_key.entry(key.clone()).or_default();
        if let Some(call) = calls.iter_mut().find(|call| call.stands(recorded.seq, undone)) {
            call.created.extend(created);
            return false;
        }
        calls.push(Remembered {
            seq: recorded.seq,
            params: params.clone(),
            created: created.into_iter().collect(),
        });
        self.order.push_back(key.clone());
        if self.order.len() > KEYS_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.take(&oldest, |calls| drop(calls.remove(0)));
        }
        true
    }

    /// Forgets the newest call with this key.
    pub(super) fn forget(&mut self, key: &str) {
        self.take(key, |calls| drop(calls.pop()));
        if let Some(place) = self.order.iter().rposition(|known| known == key) {
            self.order.remove(place);
        }
    }

    fn take(&mut self, key: &str, take: impl FnOnce(&mut Vec<Remembered>)) {
        if let Some(calls) = self.by_key.get_mut(key) {
            take(calls);
            if calls.is_empty() {
                self.by_key.remove(key);
            }
        }
    }
}

impl Remembered {
    /// True if the call's effect is in the state after event `seq`: no restore has undone it, or a
    /// later one brought it back.
    fn stands(&self, seq: u64, undone: &[Undone]) -> bool {
        self.outlasts_restores() || is_part_of(self.seq, seq, undone)
    }

    /// True if all of the call's effects survive a restore: messages, and what a workflow has
    /// spent.
    fn outlasts_restores(&self) -> bool {
        let stays =
            |created: &Created| matches!(created, Created::Message(_) | Created::Checkpoint(None));
        !self.created.is_empty() && self.created.iter().all(stays)
    }
}

/// Whether the effect of event `seq` is in the state after the later event `head`.
fn is_part_of(seq: u64, mut head: u64, undone: &[Undone]) -> bool {
    for restore in undone.iter().rev() {
        if seq <= restore.until && restore.until < head {
            if seq > restore.after {
                return false;
            }
            head = restore.after;
        }
    }
    true
}
