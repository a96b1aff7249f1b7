//! The invariants, asserted after every step in tests and simulation.

use std::collections::HashMap;
use std::sync::Arc;

use super::State;
use super::index::Index;
use super::task::{Task, TaskStatus};

impl State {
    /// What is wrong with the state; empty when every invariant holds.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        self.check_holders(&mut wrong);
        self.check_dependencies_exist(&mut wrong);
        self.check_index(&mut wrong);
        self.check_hierarchy(&mut wrong);
        self.check_counters(&mut wrong);
        self.check_numbers(&mut wrong);
        self.check_records(&mut wrong);
        self.check_level(&mut wrong);
        wrong
    }

    /// One live attempt per held task, none on others, and exactly its agent lists the task.
    fn check_holders(&self, wrong: &mut Vec<String>) {
        let mut listed: HashMap<_, Vec<_>> = HashMap::new();
        for agent in self.agents() {
            if agent.current_task.as_ref() != agent.current_tasks.last() {
                wrong.push(format!(
                    "agent {}: current_task is not the newest of current_tasks",
                    agent.id
                ));
            }
            for id in &agent.current_tasks {
                listed.entry(id).or_default().push(&agent.id);
            }
            for id in &agent.present_through {
                if self.participant(id).is_none() {
                    wrong.push(format!(
                        "agent {} is present through {id}, which is not there",
                        agent.id
                    ));
                }
            }
        }
        for task in self.tasks() {
            let open: Vec<_> =
                task.attempts.iter().filter(|attempt| attempt.outcome.is_none()).collect();
            if open.len() != usize::from(task.status.is_held()) {
                wrong.push(format!(
                    "task {} is {} with {} open attempts",
                    task.id,
                    task.status,
                    open.len()
                ));
            }
            let holders = listed.remove(&task.id).unwrap_or_default();
            let owners: Vec<_> = open.iter().map(|attempt| &attempt.agent).collect();
            if holders != owners {
                wrong.push(format!(
                    "task {} is held by {owners:?} and listed by {holders:?}",
                    task.id
                ));
            }
            if open.iter().any(|attempt| attempt.number != task.attempt) {
                wrong.push(format!(
                    "task {}: the open attempt is not attempt {}",
                    task.id, task.attempt
                ));
            }
            if task.status == TaskStatus::Review && !self.is_reviewable(task) {
                wrong.push(format!("task {} is in review and has no result of its own", task.id));
            }
            if task.status.is_held()
                && task.claimed_by.as_ref() != open.first().map(|attempt| &attempt.agent)
            {
                wrong.push(format!("task {}: claimed_by is not the holder", task.id));
            }
        }
        wrong.extend(
            listed.keys().map(|id| format!("task {id} is listed by an agent and does not exist")),
        );
    }

    fn check_dependencies_exist(&self, wrong: &mut Vec<String>) {
        for task in self.tasks() {
            for id in &task.dependencies {
                if self.status_of(id).is_none() {
                    wrong.push(format!("task {} depends on {id}, which does not exist", task.id));
                }
            }
            wrong.extend(self.refuse_runs(&task.dependencies).err().map(|one| one.to_string()));
        }
        wrong.extend(self.check_acyclic().err().map(|refusal| refusal.to_string()));
    }

    /// The index kept up by changes equals one built from the tasks.
    fn check_index(&self, wrong: &mut Vec<String>) {
        let mut fresh = Self { index: Index::rising(self.index.aging()), ..self.clone() };
        fresh.index.due(self.index.awake_until());
        for (ordinal, task) in self.records.tasks.iter() {
            fresh.index.replace(ordinal, None, Some(task));
        }
        for (ordinal, _) in self.records.tasks.iter() {
            fresh.refresh(ordinal);
        }
        if fresh.index != self.index {
            wrong.push(format!("the index is {:?} and should be {:?}", self.index, fresh.index));
        }
    }

    fn check_counters(&self, wrong: &mut Vec<String>) {
        for status in TaskStatus::ALL {
            let is_counted = |task: &&Arc<Task>| task.run.is_none() && !self.is_parent(&task.id);
            let leaves = self.tasks().filter(is_counted);
            let counted = leaves.filter(|task| task.status == status).count();
            if counted != self.count(status) {
                wrong.push(format!(
                    "{counted} tasks are {status}, and {} are counted",
                    self.count(status)
                ));
            }
        }
        let archived = self.board().archived;
        let archived_runs = self.board().archived_runs;
        let runs = self.retired().filter(|(_, stub)| stub.run).count();
        let leaves = self.retired().filter(|(_, stub)| !stub.run && !stub.parent).count() as u64;
        let leaves = leaves + self.board().dropped_stubs;
        for (what, stubs, counted) in
            [("tasks", leaves, archived), ("runs", runs as u64, archived_runs)]
        {
            if counted.total() != stubs {
                wrong.push(format!("{stubs} stubs, and {counted:?} of {what} are counted"));
            }
        }
    }
}
