//! What events change in one task.

use std::sync::Arc;

use crate::state::event::{EditedTask, NewTask, TaskChange};
use crate::state::limit::ATTEMPTS_KEPT;
use crate::state::review::Review;
use crate::state::task::{Attempt, AttemptError, Outcome, Task, TaskResult, TaskStatus};
use crate::state::time::Timestamp;

/// Category of the error of an attempt whose result a reviewer sent back.
const REJECTED: &str = "rejected";

pub(super) fn created(new: &NewTask, at: Timestamp) -> Task {
    let new = new.clone();
    let status = new.status.unwrap_or(TaskStatus::Available);
    let error =
        (status == TaskStatus::Failed).then(|| "the plan says that it has failed".to_owned());
    Task {
        id: new.id,
        number: None,
        title: new.title,
        description: new.description.into(),
        status,
        priority: new.priority,
        claimed_by: None,
        dependencies: new.dependencies,
        context: new.context.map(Arc::new),
        result: error.map(error_result),
        created_at: at,
        claimed_at: None,
        started_at: None,
        completed_at: (!status.is_unfinished()).then_some(at),
        path: new.path,
        parent: new.parent,
        planned: new.planned.map(Arc::new),
        left_plan: None,
        demands: Arc::new(new.demands),
        tags: new.tags,
        not_before: new.not_before,
        timeout_seconds: new.timeout_seconds,
        silent_minutes: new.silent_minutes,
        estimated_minutes: new.estimated_minutes,
        review: new.review.and_then(Review::said),
        stop_requested: None,
        attempt: 0,
        max_attempts: new.max_attempts,
        uncounted: 0,
        attempts: Vec::new(),
        run: None,
        reset_at: None,
        artifacts: Vec::new(),
        kept: None,
        kept_for: None,
    }
}

pub(in crate::state) fn change_task(task: &mut Task, change: &TaskChange) {
    let change = change.clone();
    task.title = change.title.or(task.title.take());
    task.description = change.description.map_or_else(|| Arc::clone(&task.description), Arc::from);
    task.priority = change.priority.unwrap_or(task.priority);
    task.dependencies =
        change.dependencies.unwrap_or_else(|| std::mem::take(&mut task.dependencies));
    task.context = change.context.map(Arc::new).or(task.context.take());
    task.tags = change.tags.unwrap_or_else(|| std::mem::take(&mut task.tags));
    task.demands = change.demands.map_or_else(|| Arc::clone(&task.demands), Arc::new);
    task.max_attempts = change.max_attempts.unwrap_or(task.max_attempts);
    task.timeout_seconds = change.timeout_seconds.or(task.timeout_seconds);
    task.silent_minutes = change.silent_minutes.or(task.silent_minutes);
    task.estimated_minutes =
        change.estimated_minutes.or(task.estimated_minutes).filter(|minutes| *minutes > 0);
    task.review = change.review.or(task.review).and_then(Review::said);
}

/// Makes the task available again; its earlier attempts no longer count.
pub(in crate::state) fn begin_again(task: &mut Task) {
    set_aside(task);
    make_available(task, None);
    task.uncounted = task.attempt;
    task.result = None;
    task.completed_at = None;
}

/// The error of an attempt that an imported plan ended.
pub(super) fn replanned_error(what: &str) -> AttemptError {
    AttemptError {
        category: "replanned".to_owned(),
        message: format!("the task was {what} when the plan was imported"),
    }
}

pub(super) fn edit_by_hand(task: &mut Task, edited: &EditedTask) {
    change_task(task, &edited.change);
    task.title = task.title.take().filter(|_| !edited.untitled);
    task.context = task.context.take().filter(|context| !context.is_empty());
}

pub(super) fn claim(task: &mut Task, attempt: Attempt) {
    task.status = TaskStatus::Claimed;
    task.claimed_by = Some(attempt.agent.clone());
    task.claimed_at = Some(attempt.claimed_at);
    task.started_at = None;
    task.not_before = None;
    task.kept_for = None;
    task.attempt = attempt.number;
    // Most tasks have only one attempt, and room for four takes a kilobyte.
    task.attempts.reserve_exact(1);
    task.attempts.push(attempt);
    let surplus = task.attempts.len().saturating_sub(ATTEMPTS_KEPT);
    task.attempts.drain(..surplus);
}

pub(super) fn complete(
    task: &mut Task,
    attempt: u32,
    result: &Arc<TaskResult>,
    review: bool,
    at: Timestamp,
) {
    if let Some(completed) = task.attempts.iter_mut().find(|one| one.number == attempt) {
        completed.outcome = Some(Outcome::Done);
        completed.ended_at = Some(at);
        task.claimed_by = Some(completed.agent.clone());
        task.claimed_at = Some(completed.claimed_at);
        task.started_at = completed.started_at;
    }
    task.status = if review { TaskStatus::Review } else { TaskStatus::Done };
    task.not_before = None;
    task.completed_at = Some(at).filter(|_| !review);
    task.kept = task.kept.take().filter(|_| review);
    task.result = Some(Arc::clone(result));
}

/// Keeps the result of a task in review with its attempt, because it is not taken.
pub(super) fn set_aside(task: &mut Task) {
    if task.status == TaskStatus::Review
        && let Some(last) = task.attempts.last_mut()
    {
        last.late_result = task.result.take();
    }
}

/// Makes a task in review done.
pub(super) fn approve(task: &mut Task, at: Timestamp) {
    task.status = TaskStatus::Done;
    task.completed_at = Some(at);
    task.kept = None;
}

/// Makes a task in review available again. The attempt does not count against `max_attempts`.
pub(super) fn reject(task: &mut Task, reason: Option<String>) {
    set_aside(task);
    if let Some(last) = task.attempts.last_mut() {
        last.outcome = Some(Outcome::Rejected);
        last.error = reason.map(|message| AttemptError { category: REJECTED.to_owned(), message });
    }
    task.uncounted += 1;
    make_available(task, None);
}

pub(super) fn error_result(error: String) -> Arc<TaskResult> {
    Arc::new(TaskResult { error: Some(error), ..TaskResult::default() })
}

pub(in crate::state) fn make_available(task: &mut Task, not_before: Option<Timestamp>) {
    task.status = TaskStatus::Available;
    task.claimed_by = None;
    task.claimed_at = None;
    task.started_at = None;
    task.not_before = not_before;
}

pub(super) fn give_up(task: &mut Task, error: String, at: Timestamp) {
    task.status = TaskStatus::Failed;
    task.completed_at = Some(at);
    task.result = Some(error_result(error));
}
