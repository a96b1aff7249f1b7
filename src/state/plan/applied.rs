//! What an imported plan does to tasks, at once or when the attempts on them have ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::state::apply::Absent;
use crate::state::apply::task::{begin_again, change_task, make_available};
use crate::state::event::{Replanned, TaskChange};
use crate::state::id::TaskId;
use crate::state::stored::Replaced;
use crate::state::task::{Pending, Planned, StopRequest, Task, TaskStatus};
use crate::state::time::Timestamp;
use crate::state::{Savepoint, State, Undo};

impl State {
    /// Applies what a plan has put off until the attempts on the tasks changed since `since` have
    /// ended.
    pub(in crate::state) fn follow_plan(
        &mut self,
        since: Savepoint,
        at: Timestamp,
    ) -> Result<(), Absent> {
        let changed = self.undo[since.0..].iter().filter_map(|undo| match undo {
            Undo::Record(Replaced::Task(ordinal, _)) => self.records.tasks.get(*ordinal),
            _ => None,
        });
        let is_due = |task: &&Arc<Task>| {
            let is_left = task.leaves_plan()
                && !matches!(task.status, TaskStatus::Done | TaskStatus::Obsolete);
            !task.status.is_in_work()
                && (is_left || put_off_text(task.planned.as_deref()).is_some())
        };
        let due: BTreeSet<TaskId> = changed.filter(is_due).map(|task| task.id.clone()).collect();
        for id in due {
            self.edit_task(&id, |task| end_pending(task, at))?;
        }
        Ok(())
    }
}

/// Applies what the plan says anew about a task.
pub(in crate::state) fn replan(task: &mut Task, new: &Replanned, at: Timestamp) {
    if task.leaves_plan() {
        // It is back in the plan, so that its holder need not stop.
        task.stop_requested = task.stop_requested.take().filter(|request| request.cancel);
    }
    let is_put_off = put_off_text(Some(&new.planned)).is_some()
        && put_off_text(Some(&new.planned)) != put_off_text(task.planned.as_deref());
    let is_rewritten =
        is_put_off || new.change.description.is_some() || new.change.context.is_some();
    change_task(task, &new.change);
    task.context = task.context.take().filter(|context| !context.is_empty());
    task.path = Some(new.path.clone());
    task.parent.clone_from(&new.parent);
    task.planned = Some(Arc::new(new.planned.clone()));
    task.left_plan = None;
    match new.becomes {
        Some(TaskStatus::Done) => end(task, TaskStatus::Done, at),
        Some(status) if new.planned.off => end(task, status, at),
        Some(_) => {
            begin_again(task);
            task.reset_at = Some(at).filter(|_| new.anew).or(task.reset_at);
            task.kept = task.kept.take().filter(|_| !new.anew);
        }
        None if new.anew && task.stop_requested.as_ref().is_some_and(|request| request.cancel) => {}
        None if task.status.is_held() && is_rewritten => {
            let reason = "the plan has changed the task: release it, and claim it again for the \
                          new text"
                .to_owned();
            task.stop_requested = Some(StopRequest { reason: Some(reason), at, cancel: false });
        }
        None => {}
    }
}

pub(in crate::state) fn leave_plan(task: &mut Task, known_again: bool, at: Timestamp) {
    task.left_plan = task.planned.take().filter(|_| known_again);
    task.parent = None;
    if task.status != TaskStatus::Done {
        end(task, TaskStatus::Obsolete, at);
    }
}

/// Takes a task in work out of the plan and leaves it to its holder or reviewer. `new` has the words that replace
/// its own.
pub(in crate::state) fn leave_to_holder(task: &mut Task, new: Option<&TaskId>, at: Timestamp) {
    let Some(planned) = task.planned.take() else { return };
    let pending = Some(Box::new(Pending { leaves: true, ..Pending::default() }));
    task.left_plan = Some(Arc::new(Planned { pending, ..Planned::clone(&planned) }));
    task.parent = None;
    let is_cancelled = task.stop_requested.as_ref().is_some_and(|request| request.cancel);
    if is_cancelled || !task.status.is_held() {
        return;
    }
    let reason = match new {
        Some(new) => format!(
            "the plan has other words for it now, in {new}: complete it as it is, or release it"
        ),
        None => "the plan no longer has the task: complete it as it is, or release it".to_owned(),
    };
    task.stop_requested = Some(StopRequest { reason: Some(reason), at, cancel: false });
}

fn end(task: &mut Task, status: TaskStatus, at: Timestamp) {
    make_available(task, None);
    task.status = status;
    task.completed_at = Some(at);
}

fn put_off_text(planned: Option<&Planned>) -> Option<&Pending> {
    planned?.pending.as_deref().filter(|pending| pending.has_text())
}

/// Does what waited for the end of the attempt.
fn end_pending(task: &mut Task, at: Timestamp) {
    if task.leaves_plan() && task.status != TaskStatus::Done {
        end(task, TaskStatus::Obsolete, at);
    }
    let Some(pending) = put_off_text(task.planned.as_deref()).cloned() else { return };
    let Pending { description, context, .. } = pending.clone();
    change_task(task, &TaskChange { description, context, ..TaskChange::default() });
    task.context = task.context.take().filter(|context| !context.is_empty());
    let left = Pending { description: None, context: None, ..pending };
    if let Some(planned) = &mut task.planned {
        Arc::make_mut(planned).pending =
            Some(Box::new(left)).filter(|left| **left != Pending::default());
    }
}
