//! Who has to approve the result of a task before the task is done, and who may.

use std::collections::HashMap;

use super::State;
use super::agent::Role;
use super::apply::Absent;
use super::event::NewTask;
use super::guard::HUMAN;
use super::id::{AgentId, TaskId};
use super::policy::Policy;
use super::refusal::Refusal;
use super::review::{Review, Reviewed};
use super::task::{Attempt, Outcome, Task, TaskStatus};
use super::time::Timestamp;

impl Task {
    /// What was said of the last attempt, if it was reviewed.
    pub fn reviewed(&self) -> Option<&Reviewed> {
        self.attempts.last()?.reviewed.as_deref()
    }

    /// When the agent that did the work completed it; a review comes later.
    pub fn finished_at(&self) -> Option<Timestamp> {
        let reviewed = self.attempts.last().filter(|last| last.reviewed.is_some());
        reviewed.and_then(|last| last.ended_at).or(self.completed_at)
    }

    /// When the agent completed what waits for a reviewer.
    pub fn in_review_since(&self) -> Option<Timestamp> {
        let last = self.attempts.last().filter(|_| self.status == TaskStatus::Review);
        last.and_then(|attempt| attempt.ended_at)
    }
}

impl State {
    /// The review that the task's result needs: what the task says, else what it is a part of, else
    /// its plan, else the board.
    pub fn review_of(&self, task: &Task, policy: &Policy) -> Review {
        let above = || self.ancestors(task).find_map(|above| above.review);
        let plan = || self.plan_named(task.plan_name()?).ok()?.review;
        task.review.or_else(above).or_else(plan).unwrap_or_else(|| of_board(policy))
    }

    /// Refuses new tasks without a review where what they are part of, or the board, wants one: a
    /// new task may ask for more, and not for less.
    pub fn check_new_reviews(&self, new: &[NewTask], policy: &Policy) -> Result<(), Refusal> {
        let exempt = || new.iter().filter(|task| task.review == Some(Review::None));
        if exempt().next().is_none() {
            return Ok(());
        }
        let by_id: HashMap<&TaskId, &NewTask> = new.iter().map(|task| (&task.id, task)).collect();
        for task in exempt() {
            let wanted = self.review_above(task, &by_id, policy);
            if wanted != Review::None {
                return Err(Refusal::ReviewNeeded { task: task.id.clone(), wanted });
            }
        }
        Ok(())
    }

    /// The review that a new task needs if it says nothing.
    fn review_above(
        &self,
        task: &NewTask,
        new: &HashMap<&TaskId, &NewTask>,
        policy: &Policy,
    ) -> Review {
        let mut parent = task.parent.as_ref();
        while let Some(above) = parent.and_then(|id| new.get(id)) {
            if let Some(review) = above.review.and_then(Review::said) {
                return review;
            }
            parent = above.parent.as_ref();
        }
        let known = parent.and_then(|id| self.task(id));
        known.map_or_else(|| of_board(policy), |above| self.review_of(above, policy))
    }

    /// Refuses a review by an agent that may not give it. The board's owner always may.
    pub fn may_review(
        &self,
        task: &Task,
        actor: Option<&AgentId>,
        approves: bool,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        let Some(id) = actor.filter(|id| id.as_str() != HUMAN) else { return Ok(()) };
        let agent = self.known_agent(id)?;
        if approves && task.attempts.last().is_some_and(|last| last.agent == *id) {
            return Err(Refusal::OwnWork { task: task.id.clone(), agent: id.clone() });
        }
        let wanted = reviewer(self.review_of(task, policy));
        let may = wanted.map_or(agent.role != Role::Observer, |wanted| agent.role == wanted);
        if may {
            return Ok(());
        }
        Err(Refusal::NotReviewer {
            task: task.id.clone(),
            agent: id.clone(),
            role: agent.role,
            wanted,
        })
    }

    /// Whether the last attempt has a result that a reviewer can judge.
    pub(super) fn is_reviewable(&self, task: &Task) -> bool {
        let is_done = |last: &Attempt| {
            last.number == task.attempt
                && last.outcome == Some(Outcome::Done)
                && last.reviewed.is_none()
                && task.claimed_by.as_ref() == Some(&last.agent)
        };
        task.attempts.last().is_some_and(is_done)
            && task.result.is_some()
            && task.run.is_none()
            && !self.is_parent(&task.id)
    }

    /// Takes the last review of the task back: its result waits for another.
    pub(super) fn review_again(&mut self, id: &TaskId) -> Result<(), Absent> {
        let mut approved = None;
        self.edit_task(id, |task| {
            let Some(last) = task.attempts.last_mut() else { return };
            let Some(taken_back) = last.reviewed.take() else { return };
            if taken_back.approved {
                approved = Some(last.agent.clone());
            } else {
                task.uncounted = task.uncounted.saturating_sub(1);
                task.result = last.late_result.take();
                (last.outcome, last.error) = (Some(Outcome::Done), None);
            }
            task.claimed_by = Some(last.agent.clone());
            task.claimed_at = Some(last.claimed_at);
            task.started_at = last.started_at;
            (task.status, task.completed_at) = (TaskStatus::Review, None);
        })?;
        if let Some(agent) = approved.filter(|agent| self.agent(agent).is_some()) {
            self.edit_agent(&agent, |agent| {
                agent.tasks_completed = agent.tasks_completed.saturating_sub(1);
            })?;
        }
        Ok(())
    }

    /// Number of tasks whose results wait for a reviewer.
    pub fn in_review_count(&self) -> usize {
        self.count(TaskStatus::Review)
    }
}

/// The role that a reviewing agent must have, if not any.
fn reviewer(review: Review) -> Option<Role> {
    match review {
        Review::Unsaid | Review::None | Review::Required => None,
        Review::ByLeader => Some(Role::Leader),
        Review::ByWorker => Some(Role::Worker),
    }
}

fn of_board(policy: &Policy) -> Review {
    policy.review.said().unwrap_or_default()
}
