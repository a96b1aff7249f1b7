//! The newest idempotency keys and what their calls created. Not part of the document: the journal has them as a column.

use std::collections::{HashMap, VecDeque};

use super::event::{Event, Recorded};
use super::id::{DiscoveryId, MessageId, TaskId};
use super::limit::KEYS_REMEMBERED;

#[derive(Clone, Debug, Default)]
pub struct Remembered {
    calls: HashMap<String, Call>,
    order: VecDeque<String>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub params: String,
    pub created: Vec<Created>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    Tasks(Vec<TaskId>),
    Discovery(DiscoveryId),
    Run(TaskId),
    Message(MessageId),
    Plan(Box<Event>),
    /// No new thing, but how many begin anew.
    Reset(usize),
    /// Its number, if the call saved one.
    Checkpoint(Option<u64>),
}

impl Created {
    /// What the event brought into the world.
    pub fn by(event: &Event) -> Option<Self> {
        match event {
            Event::TasksCreated { tasks } => Some(Self::Tasks(tasks.iter().map(|task| task.id.clone()).collect())),
            Event::DiscoveryAdded { discovery, .. } => Some(Self::Discovery(discovery.clone())),
            Event::RunCreated { run, .. } => Some(Self::Run(run.id.clone())),
            Event::MessageSent { message } => Some(Self::Message(message.id.clone())),
            Event::TasksReset { tasks } => Some(Self::Reset(tasks.len())),
            Event::WorkflowSaved(saved) => Some(Self::Checkpoint(saved.checkpoint.as_ref().map(|(_, one)| one.number))),
            Event::PlanImported { .. } => Some(Self::Plan(Box::new(event.clone()))),
            _ => None,
        }
    }
}

impl Remembered {
    pub fn get(&self, key: &str) -> Option<&Call> {
        self.calls.get(key)
    }

    /// Answers whether the key is new. The events of one batch share a key.
    pub fn note(&mut self, recorded: &Recorded) -> bool {
        let Some(idempotency) = &recorded.idempotency else { return false };
        let created = Created::by(&recorded.event);
        if let Some(call) = self.calls.get_mut(&idempotency.key) {
            call.created.extend(created);
            return false;
        }
        let call = Call { params: idempotency.params.clone(), created: created.into_iter().collect() };
        self.calls.insert(idempotency.key.clone(), call);
        self.order.push_back(idempotency.key.clone());
        if self.order.len() > KEYS_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        true
    }

    pub fn forget(&mut self, key: &str) {
        self.calls.remove(key);
        self.order.retain(|known| known != key);
    }
}
