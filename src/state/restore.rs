//! Going back to an earlier state without giving back what must never come back: an ended lease, a
//! used attempt number, a dead process, a revoked role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use super::agent::Agent;
use super::document::{Document, Undone};
use super::id::{AgentId, TaskId};
use super::limit::RESTORES_KEPT;
use super::task::{AttemptError, Outcome, Task, TaskStatus};
use super::time::{SECOND, Timestamp};
use super::workflow::Workflow;

impl State {
    /// `target` as it can follow this state. Kept from the present are: the board's identity and
    /// place in history; the living processes; the messages; the workflows with what they have
    /// spent; reservations without a task; and the agents, while their counters are those of
    /// `target`. Every open attempt of `target` ends as released, uncounted, and its task is
    /// available. A task's next attempt gets a number above every one that it ever had here, even
    /// if the task was gone in between.
    pub fn restored(&self, target: &Document, at: Timestamp) -> Document {
        let mut document = target.clone();
        let mut spent = self.spent_attempts();
        for task in &mut document.tasks {
            let task = Arc::make_mut(task);
            release(task, at);
            let number = spent.remove(&task.id).unwrap_or_default().max(task.attempt);
            task.uncounted += number - task.attempt;
            task.attempt = number;
        }
        for (id, stub) in &mut document.retired {
            stub.attempt = stub.attempt.max(spent.remove(id).unwrap_or_default());
        }
        document.board.spent_attempts = Arc::new(spent);
        document.agents = self.agents_with(&target.agents);
        // Messages sent since then stay sent, and read ones stay read.
        document.messages = self.messages().cloned().collect();
        // Reservations of a claim end with it.
        let kept = self.reservations().filter(|one| one.task.is_none());
        document.reservations = kept.cloned().collect();
        self.keep_spent(&mut document);
        document.participants = self
            .records
            .participants
            .iter()
            .map(|(id, one)| (id.clone(), (**one).clone()))
            .collect();
        let present = self.board();
        document.board.undone = self.undone_by(target);
        document.board.schema_version = present.schema_version.max(target.board.schema_version);
        // An earlier state without numbers gets them anew.
        if document.board.next_number > 0 {
            document.board.next_number = document.board.next_number.max(present.next_number);
        }
        document.board.board_id.clone_from(&present.board_id);
        document.board.seq = present.seq;
        document.board.last_activity = present.last_activity;
        document.board.created_at = present.created_at;
        document.board.grace_until = present.grace_until;
        document
    }

    /// The event ranges undone, including what goes when `target` replaces this state.
    fn undone_by(&self, target: &Document) -> Vec<Undone> {
        let present = self.board();
        let is_ours = target.board.board_id == present.board_id;
        let newest =
            Undone { after: if is_ours { target.board.seq } else { 0 }, until: present.seq };
        let surplus = (present.undone.len() + 1).saturating_sub(RESTORES_KEPT);
        present.undone.iter().copied().skip(surplus).chain([newest]).collect()
    }

    /// Keeps budgets and what was spent as they are now, and counts checkpoints on above every
    /// number used. The checkpoints themselves are those of `target`.
    fn keep_spent(&self, document: &mut Document) {
        for workflow in self.workflows() {
            let then = document.workflows.remove(&workflow.id);
            let mut kept = Workflow::clone(workflow);
            if let Some(then) = then {
                kept.spent = kept.spent.max(then.spent);
                kept.checkpoint = kept.checkpoint.max(then.checkpoint);
            }
            document.workflows.insert(workflow.id.clone(), kept);
        }
        let bound: BTreeSet<_> = self.workflows().flat_map(|one| &one.agents).collect();
        for (id, workflow) in &mut document.workflows {
            if self.workflow(id).is_none() {
                workflow.agents.retain(|agent| !bound.contains(agent));
            }
        }
    }

    /// The highest attempt number of every task that had an attempt.
    fn spent_attempts(&self) -> BTreeMap<TaskId, u32> {
        let mut spent = BTreeMap::clone(&self.board().spent_attempts);
        let live = self.tasks().map(|task| (&task.id, task.attempt));
        let retired = self.retired().map(|(id, stub)| (id, stub.attempt));
        for (id, attempt) in live.chain(retired).filter(|(_, attempt)| *attempt > 0) {
            let known = spent.entry(id.clone()).or_default();
            *known = attempt.max(*known);
        }
        spent
    }

    fn agents_with(&self, then: &BTreeMap<AgentId, Agent>) -> BTreeMap<AgentId, Agent> {
        let mut agents = then.clone();
        for agent in self.agents() {
            let counted = then
                .get(&agent.id)
                .map_or((0, 0), |then| (then.tasks_completed, then.tasks_failed));
            let (tasks_completed, tasks_failed) = counted;
            agents.insert(
                agent.id.clone(),
                Agent { tasks_completed, tasks_failed, ..Agent::clone(agent) },
            );
        }
        for agent in agents.values_mut() {
            agent.current_tasks.clear();
            agent.current_task = None;
            if self.agent(&agent.id).is_none() {
                agent.present_through.clear();
                agent.waiting = None;
            }
        }
        agents
    }
}

fn release(task: &mut Task, at: Timestamp) {
    if let Some(run) = task.run.as_deref_mut() {
        run.no_match_until = Some(at + i64::from(run.no_match_seconds) * SECOND);
    }
    let Some(attempt) = task.open_attempt_mut() else { return };
    attempt.outcome = Some(Outcome::Released);
    attempt.ended_at = Some(at);
    let message = "the board was restored to an earlier state".to_owned();
    attempt.error = Some(AttemptError { category: "restored".to_owned(), message });
    task.uncounted += 1;
    task.status = TaskStatus::Available;
    task.claimed_by = None;
    task.claimed_at = None;
    task.started_at = None;
    task.stop_requested = None;
}
