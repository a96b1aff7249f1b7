//! Tasks that are kept for an agent: only it is given them until a time. It is given them first.

use std::sync::Arc;

use super::State;
use super::agent::Agent;
use super::apply::Absent;
use super::claim::in_scope;
use super::event::Event;
use super::id::{AgentId, TaskId};
use super::task::{KeptFor, Task};
use super::time::Timestamp;

impl State {
    pub(super) fn keep_for(
        &mut self,
        task: &TaskId,
        agent: &AgentId,
        until: Timestamp,
    ) -> Result<(), Absent> {
        let kept = KeptFor { agent: agent.clone(), until };
        self.edit_task(task, |task| task.kept_for = Some(Box::new(kept)))
    }

    /// Tasks that are kept for an agent, the first to be opened first.
    fn kept(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.index.kept().filter_map(|(_, ordinal)| self.records.tasks.get(ordinal))
    }

    /// The ready task that is kept for `agent` and has the lowest priority number.
    pub(super) fn kept_for(
        &self,
        agent: &Agent,
        scope: Option<&str>,
        priority: &impl Fn(&Task) -> u8,
    ) -> Option<&Arc<Task>> {
        let is_own = |task: &&Arc<Task>| {
            task.kept_for.as_ref().is_some_and(|kept| kept.agent == agent.id)
                && in_scope(task, scope)
                && self.is_ready(&task.id)
                && task.demands.met_by(agent)
        };
        self.kept().filter(is_own).min_by_key(|task| priority(task))
    }

    /// Ready tasks that are kept for others than `agent`.
    pub fn kept_from(&self, agent: &Agent) -> usize {
        self.kept().filter(|task| !task.is_open_to(&agent.id) && self.is_ready(&task.id)).count()
    }

    /// The events for tasks whose time for one agent is over.
    pub(super) fn opened_again(&self, now: Timestamp) -> impl Iterator<Item = Event> {
        let over = self.index.kept().take_while(move |(until, _)| *until <= now);
        let over = over.filter_map(|(_, ordinal)| self.records.tasks.get(ordinal));
        over.map(|task| Event::TaskOpened { task: task.id.clone() })
    }

    pub(super) fn next_opened(&self) -> Option<Timestamp> {
        self.index.kept().next().map(|(until, _)| until)
    }
}
