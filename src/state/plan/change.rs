//! What an import makes of each item: a new task, or the change to the one that it was.

use super::delta::{Delta, origin};
use super::hashes::settings_hash;
use super::item::{Item, Stated};
use super::words::words;
use crate::state::agent::Demands;
use crate::state::event::{NewTask, PlanChange, Replanned, TaskChange};
use crate::state::id::TaskId;
use crate::state::parts::KEEPING;
use crate::state::review::Review;
use crate::state::task::{Context, DEFAULT_MAX_ATTEMPTS, Pending, Planned, Task, TaskStatus};

impl Delta<'_> {
    pub(super) fn created(
        &self,
        number: usize,
        parent: Option<TaskId>,
        planned: Planned,
        priority: u8,
        dependencies: Vec<TaskId>,
    ) -> NewTask {
        let item = &self.plan.items[number];
        let status = match item.status {
            Stated::Open => None,
            Stated::Done => Some(TaskStatus::Done),
            Stated::Failed => Some(TaskStatus::Failed),
            off => Some(called_off(off)),
        };
        let mut new = NewTask {
            id: self.ids[number].clone(),
            title: Some(item.title.clone()),
            description: item.description.clone().unwrap_or_else(|| item.title.clone()),
            priority,
            dependencies,
            context: Some(context(item)).filter(|context| !context.is_empty()),
            path: Some(self.paths[number].clone()),
            parent,
            planned: Some(planned),
            // The status of a group follows from its parts.
            status: status.filter(|_| !self.is_group(number)),
            demands: Demands::default(),
            tags: item.tags.clone(),
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            not_before: None,
            timeout_seconds: None,
            silent_minutes: None,
            estimated_minutes: item.estimated_minutes,
            review: None,
            run: None,
        };
        item.further.trials.give_to(&mut new);
        new
    }

    /// The change to a task; `None` if the plan says nothing new about it.
    pub(super) fn changed(
        &self,
        number: usize,
        task: &Task,
        parent: Option<TaskId>,
        mut planned: Planned,
        priority: u8,
        dependencies: Vec<TaskId>,
    ) -> Option<Replanned> {
        let item = &self.plan.items[number];
        let before = origin(task).cloned().unwrap_or_default();
        let path = self.paths[number].clone();
        let (retitled, rewritten) =
            (!self.same_title(number, task), !self.same_content(number, task));
        let is_reset = before.settings != planned.settings
            && self.settings_of(number, task) != planned.settings;
        let becomes = self.becomes(number, task);
        let mut change = TaskChange::default();
        // The same words in another spelling are no news.
        let respelled = task
            .title
            .as_ref()
            .is_some_and(|title| *title != item.title && words(title) == words(&item.title));
        if retitled || respelled {
            change.title = Some(item.title.clone());
        }
        let stays_held = task.status.is_in_work() && becomes.is_none();
        if rewritten || (retitled || respelled) && task.title.as_deref() == Some(&*task.description)
        {
            change.description =
                Some(item.description.clone().unwrap_or_else(|| item.title.clone()));
        }
        if rewritten {
            let kept = task.context.as_deref().cloned().unwrap_or_default();
            let metadata = kept.metadata.into_iter().chain(item.metadata.clone()).collect();
            change.context =
                Some(Context { parent_task: kept.parent_task, metadata, ..context(item) });
        }
        planned.pending = self.put_off(number, task, &mut change, stays_held);
        if is_reset {
            change.priority = Some(priority);
            change.dependencies = Some(dependencies);
            change.tags = Some(item.tags.clone());
            let was_planned = || before.settings == self.settings_of(number, task);
            change.estimated_minutes = match (item.estimated_minutes, task.estimated_minutes) {
                (None, Some(_)) if was_planned() => Some(0),
                (estimate, _) => estimate,
            };
            item.further.trials.change(task, &mut change);
            if item.further.trials.review.is_none() && task.review.is_some() && was_planned() {
                change.review = Some(Review::Unsaid);
            }
        }
        let is_ended = item.status == Stated::Done || item.status.is_called_off();
        planned.ticked = is_ended && !self.is_group(number) && stays_held;
        planned.done &= !planned.ticked;
        planned.off &= !planned.ticked;
        let returns = task.planned.is_none();
        let moved = task.path.as_ref() != Some(&path) || task.parent != parent;
        let renumbered = if returns {
            task.path.as_ref() != Some(&path)
        } else {
            is_renumbered(task, parent.as_ref(), Some(&path))
        };
        // A group's status follows from its parts, which are reported themselves.
        let by_parts = self.is_group(number) && self.state.is_parent(&task.id);
        let reopened = !task.status.is_unfinished() && !by_parts && self.stays_open(number);
        let news = match () {
            () if rewritten => Some(PlanChange::Modified),
            () if retitled || renumbered => Some(PlanChange::Renamed),
            () => is_reset.then_some(PlanChange::Modified),
        };
        let what = match (becomes, news) {
            (Some(TaskStatus::Done), _) => PlanChange::Completed,
            (Some(TaskStatus::Cancelled | TaskStatus::Obsolete), _) => PlanChange::CalledOff,
            _ if reopened => PlanChange::Reopened,
            (_, Some(change)) => change,
            (Some(_), None) => PlanChange::Modified,
            (None, None) if moved || returns || before != planned => PlanChange::Moved,
            (None, None) => return None,
        };
        let was = match () {
            () if retitled => task.title.clone(),
            () if renumbered => task.path.clone(),
            () => None,
        };
        Some(Replanned {
            task: task.id.clone(),
            path,
            parent,
            planned,
            change,
            becomes,
            anew: true,
            what,
            was,
        })
    }

    /// What waits for the end of an attempt: the new text, taken out of the change to a task that
    /// stays held, and what the task itself waits for.
    fn put_off(
        &self,
        number: usize,
        task: &Task,
        change: &mut TaskChange,
        stays_held: bool,
    ) -> Option<Box<Pending>> {
        let before = task.planned.as_ref().and_then(|planned| planned.pending.clone());
        let after = before.as_ref().and_then(|pending| pending.after.clone());
        let text = match change.context.take_if(|_| stays_held) {
            _ if !stays_held => Pending::default(),
            Some(context) => Pending {
                description: change.description.take(),
                context: Some(context),
                ..Pending::default()
            },
            // Its text is that of the board again, or is put off already.
            None if !self.had_content(number, task) => Pending::default(),
            None => before.map(|pending| *pending).unwrap_or_default(),
        };
        let pending = Pending { after, ..text };
        (pending != Pending::default()).then(|| Box::new(pending))
    }

    /// Hash of the task's settings as the board has them.
    fn settings_of(&self, number: usize, task: &Task) -> String {
        settings_hash(
            task.priority,
            &task.dependencies,
            &task.tags,
            task.estimated_minutes,
            &self.plan.items[number].further.trials.of(task),
        )
    }

    fn becomes(&self, number: usize, task: &Task) -> Option<TaskStatus> {
        let stated = self.plan.items[number].status;
        let stated_done = stated == Stated::Done;
        let other_words = !self.same_title(number, task);
        let was_done = task.result.as_ref().is_some_and(|result| result.error.is_none());
        let others = self.state.parts(&task.id).any(|part| part.planned.is_none());
        let had_parts = self.state.is_parent(&task.id);
        let is_own = self.plan.items[number].is_own && !self.parts[number].is_empty();
        let is_held = task.status.is_in_work() && !stated_done;
        // Its agent cannot complete it while a part is open, so its attempt ends.
        let keeps = || self.parts[number].iter().any(|part| self.keeps_open(*part));
        if is_own && is_held && (!self.state.has_parts(&task.id) || keeps()) {
            return Some(TaskStatus::Available);
        }
        if self.is_group(number) || others && !is_own {
            // What was done under other words is not done again when the parts are gone.
            let is_other = other_words && was_done;
            return (task.status.is_in_work() || is_other).then_some(TaskStatus::Available);
        }
        let is_over = !task.status.is_unfinished();
        let before = origin(task);
        let was_ticked = before.is_some_and(|before| before.done || before.ticked);
        // Nobody did what its parts alone have finished.
        let is_undone = was_ticked || had_parts && is_own && !was_done;
        let is_carried = self.import.carry.iter().any(|(done, _)| *done == task.id);
        let is_reopened = stated == Stated::Open && is_undone && !is_carried;
        let is_called_off = stated.is_called_off() && !before.is_some_and(|before| before.off);
        let is_back = task.planned.is_none()
            || before.is_some_and(|before| before.off && stated == Stated::Open);
        match task.status {
            TaskStatus::Done => is_reopened.then_some(TaskStatus::Available),
            status if status.is_in_work() => None,
            TaskStatus::Available if stated_done && !had_parts && self.is_reset(task) => None,
            _ if stated_done => Some(TaskStatus::Done),
            TaskStatus::Cancelled | TaskStatus::Obsolete if stated.is_called_off() => None,
            _ if is_called_off => Some(called_off(stated)),
            // The task was done before it got the parts that are gone again.
            TaskStatus::Available if had_parts && was_done && !other_words => {
                Some(TaskStatus::Done)
            }
            _ if is_over
                && (!self.same_content(number, task) || other_words || had_parts || is_back) =>
            {
                Some(TaskStatus::Available)
            }
            _ => None,
        }
    }

    /// True if the task was reset after the plan had called it done.
    fn is_reset(&self, task: &Task) -> bool {
        let (Some(reset_at), Some(planned)) = (task.reset_at, &task.planned) else { return false };
        let is_since = || self.current().is_some_and(|current| reset_at >= current.imported_at);
        planned.done || planned.ticked && is_since()
    }

    /// True if the item keeps what it is a part of from being done once the plan is the current one.
    fn keeps_open(&self, number: usize) -> bool {
        match self.before[number] {
            _ if self.is_group(number) => {
                self.parts[number].iter().any(|part| self.keeps_open(*part))
            }
            None => matches!(self.plan.items[number].status, Stated::Open | Stated::Failed),
            Some(task) => KEEPING.contains(&self.becomes(number, task).unwrap_or(task.status)),
        }
    }

    /// True if something of the item is still to be done once the plan is the current one.
    fn stays_open(&self, number: usize) -> bool {
        match self.before[number] {
            _ if self.is_group(number) => {
                self.parts[number].iter().any(|part| self.stays_open(*part))
            }
            None => self.plan.items[number].status == Stated::Open,
            Some(task) => self.becomes(number, task).unwrap_or(task.status).is_unfinished(),
        }
    }
}

fn called_off(stated: Stated) -> TaskStatus {
    if stated == Stated::Cancelled { TaskStatus::Cancelled } else { TaskStatus::Obsolete }
}

fn context(item: &Item) -> Context {
    let Item { files, hints, metadata, .. } = item;
    Context {
        files: files.clone(),
        hints: hints.clone(),
        metadata: metadata.clone(),
        ..Context::default()
    }
}

impl Planned {
    /// The change from this to `new`, if any, in what is to be done or what it is called.
    pub fn change(&self, new: &Self, renumbered: bool) -> Option<PlanChange> {
        match () {
            () if self.content != new.content => Some(PlanChange::Modified),
            () if self.title != new.title || renumbered => Some(PlanChange::Renamed),
            () if self.settings != new.settings => Some(PlanChange::Modified),
            () => None,
        }
    }
}

/// True if the task has another parent, or another place below it. A new number of the parent does
/// not count.
pub fn is_renumbered(before: &Task, parent: Option<&TaskId>, path: Option<&str>) -> bool {
    before.parent.as_ref() != parent || last_part(before.path.as_deref()) != last_part(path)
}

fn last_part(path: Option<&str>) -> &str {
    let path = path.unwrap_or_default();
    path.rsplit_once('.').map_or(path, |(_, last)| last)
}
