//! Applies what an import brings.

use std::sync::Arc;

use super::State;
use super::apply::Absent;
use super::brought::Brought;
use super::limit;
use super::refusal::Refusal;
use super::time::Timestamp;

impl State {
    /// Applies what an import brings, after its tasks are there.
    pub(super) fn bring(&mut self, brought: &Brought, at: Timestamp) -> Result<(), Absent> {
        if brought.goal.is_some() || brought.master_plan.is_some() {
            self.edit_board(|board| {
                board.goal =
                    brought.goal.as_deref().map_or_else(|| Arc::clone(&board.goal), Arc::from);
                let plan = brought.master_plan.as_deref();
                board.master_plan = plan.map_or_else(|| Arc::clone(&board.master_plan), Arc::from);
            });
        }
        brought.agents.iter().for_each(|agent| self.put_agent(agent.clone()));
        brought.discoveries.iter().for_each(|one| self.put_discovery(one.clone()));
        // From the parts upwards, so that each parent already has the status that follows from its
        // parts.
        for (id, past) in brought.tasks.iter().rev() {
            let rolled_up = self.rolled_up(id);
            self.edit_task(id, |task| {
                task.status = rolled_up.unwrap_or(task.status);
                past.give_to(task, at);
            })?;
        }
        Ok(())
    }

    /// Checks that there is room for what an import brings.
    pub fn check_room_for(&self, brought: &Brought) -> Result<(), Refusal> {
        limit::AGENTS.check(self.records.agents.len() + brought.agents.len())?;
        limit::DISCOVERIES.check(self.records.discoveries.len() + brought.discoveries.len())
    }

    /// What of `brings` is new to the board.
    pub fn news_of(&self, brings: &Brought) -> Brought {
        let is_new = |old: &str, new: &Option<String>| old.is_empty() && new.is_some();
        let board = self.board();
        let agents = brings.agents.iter().filter(|agent| self.agent(&agent.id).is_none());
        let discoveries = brings.discoveries.iter().filter(|one| self.discovery(&one.id).is_none());
        Brought {
            goal: brings.goal.clone().filter(|_| is_new(&board.goal, &brings.goal)),
            master_plan: brings
                .master_plan
                .clone()
                .filter(|_| is_new(&board.master_plan, &brings.master_plan)),
            agents: agents.cloned().collect(),
            discoveries: discoveries.cloned().collect(),
            tasks: Vec::new(),
        }
    }
}
