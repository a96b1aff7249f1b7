//! What events do not say themselves: titles of tasks, which agents acted through a process that
//! went, and what a field was before it was changed.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::state::event::{Event, NewTask, Recorded};
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::task::Task;

#[derive(Default)]
pub struct Names {
    /// Titles, each with the event that it is known from; none for a task that the board does not
    /// know any more.
    titles: HashMap<TaskId, (u64, Option<String>)>,
    /// Numbers of the tasks that were looked up; none for a task that has no number.
    numbers: HashMap<TaskId, Option<u64>>,
    through: HashMap<ParticipantId, Vec<AgentId>>,
    before: HashMap<u64, Map<String, Value>>,
}

impl Names {
    /// Takes what the event says.
    pub fn note(&mut self, recorded: &Recorded) {
        if let Some(actor) = &recorded.actor {
            let agents = self.through.entry(recorded.participant.clone()).or_default();
            if !agents.contains(actor) {
                agents.push(actor.clone());
            }
        }
        match &recorded.event {
            Event::TasksCreated { tasks } => {
                for task in tasks {
                    self.set_title(&task.id, recorded.seq, Some(headline(task).to_owned()));
                }
            }
            Event::TaskUpdated { task, change, .. } if change.title.is_some() => {
                self.set_title(task, recorded.seq, change.title.clone());
            }
            _ => {}
        }
    }

    /// Takes what the board says of a task that event `seq` names; none if it has no such task. A
    /// title that an event told stays.
    pub fn set_task(&mut self, id: &TaskId, seq: u64, task: Option<&Task>) {
        self.numbers.insert(id.clone(), task.and_then(|task| task.number));
        if !self.titles.contains_key(id) {
            self.set_title(id, seq, task.map(|task| task.headline().to_owned()));
        }
    }

    /// Events may come newest first: an older one does not replace what a newer one said.
    fn set_title(&mut self, id: &TaskId, seq: u64, title: Option<String>) {
        if self.titles.get(id).is_none_or(|(known, _)| *known <= seq) {
            self.titles.insert(id.clone(), (seq, title));
        }
    }

    pub fn knows(&self, task: &TaskId) -> bool {
        self.numbers.contains_key(task)
    }

    pub fn has_agents_of(&self, participant: &ParticipantId) -> bool {
        self.through.contains_key(participant)
    }

    /// Sets the old values of the fields that event `seq` changed.
    pub fn set_before(&mut self, seq: u64, old: Map<String, Value>) {
        self.before.insert(seq, old);
    }

    pub(super) fn number(&self, id: &TaskId) -> Option<u64> {
        *self.numbers.get(id)?
    }

    pub(super) fn title(&self, id: &TaskId) -> Option<&str> {
        self.titles.get(id)?.1.as_deref()
    }

    pub(super) fn agents_of(&self, participant: &ParticipantId) -> &[AgentId] {
        self.through.get(participant).map(Vec::as_slice).unwrap_or_default()
    }

    /// The old values of the fields that event `seq` changed, as far as they are known.
    pub(super) fn before(&self, seq: u64) -> Option<&Map<String, Value>> {
        self.before.get(&seq)
    }
}

fn headline(task: &NewTask) -> &str {
    let text = task.title.as_deref().unwrap_or(&task.description);
    text.lines().next().unwrap_or_default()
}
