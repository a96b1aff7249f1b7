//! What a command changed, taken back as far as it still stands.
//!
//! Each value that the command changed and that is as it left it gets back the value from before.
//! Values that others changed since stay, and so does what cannot be taken back, such as a result.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::State;
use super::agent::{Agent, AgentPause};
use super::document::Pause;
use super::event::{EditedTask, Event, Recorded, TaskChange};
use super::id::{AgentId, TaskId};
use super::review::Review;
use super::task::{Task, TaskStatus};
use super::time::Timestamp;

/// The events of one command, and the board around them.
#[derive(Clone, Debug)]
pub struct Command {
    pub before: State,
    pub after: State,
    pub events: Vec<Recorded>,
}

/// How a command is taken back.
#[derive(Clone, Debug, Default)]
pub struct Undoing {
    pub events: Vec<Event>,
    /// What stays as it is, and why
    pub left: Vec<String>,
    goal: Option<String>,
    master_plan: Option<String>,
    tasks: Vec<EditedTask>,
    reviews: Vec<TaskId>,
    seen: BTreeSet<TaskId>,
}

/// Whether an undo takes back what the event says, if nobody changed it since.
pub fn can_undo(event: &Event) -> bool {
    matches!(
        event,
        Event::TasksCreated { .. }
            | Event::TaskUpdated { .. }
            | Event::StateEdited { .. }
            | Event::PlanSet { .. }
            | Event::Cancelled { .. }
            | Event::Reviewed { .. }
            | Event::Retried { .. }
            | Event::TaskKept { .. }
            | Event::TaskOpened { .. }
            | Event::Paused { .. }
            | Event::Resumed {}
            | Event::AgentsPaused { .. }
            | Event::AgentsResumed { .. }
    )
}

impl Command {
    pub fn first(&self) -> u64 {
        self.events.first().map_or(0, |recorded| recorded.seq)
    }

    pub fn last(&self) -> u64 {
        self.events.last().map_or(0, |recorded| recorded.seq)
    }

    /// What takes the command back on the board as it is at `now`. The last event says that it was
    /// taken back; without one, nothing can be.
    pub fn undoing(&self, state: &State, now: Timestamp) -> Undoing {
        let mut undoing = Undoing::default();
        for recorded in &self.events {
            self.take_back(&recorded.event, state, now, &mut undoing);
        }
        let (goal, master_plan) = (undoing.goal.take(), undoing.master_plan.take());
        let tasks = std::mem::take(&mut undoing.tasks);
        let reviews = std::mem::take(&mut undoing.reviews);
        if goal.is_some()
            || master_plan.is_some()
            || !tasks.is_empty()
            || !reviews.is_empty()
            || !undoing.events.is_empty()
        {
            let (first, last) = (self.first(), self.last());
            let event = Event::CommandUndone { first, last, goal, master_plan, tasks, reviews };
            undoing.events.push(event);
        }
        undoing
    }

    fn take_back(&self, event: &Event, state: &State, now: Timestamp, undoing: &mut Undoing) {
        match event {
            Event::TasksCreated { tasks } => {
                tasks.iter().for_each(|task| self.uncreate(&task.id, state, undoing));
            }
            Event::TaskUpdated { task, .. } => self.change_back(task, state, undoing),
            Event::StateEdited { tasks, .. } => {
                tasks.iter().for_each(|edited| self.change_back(&edited.task, state, undoing));
                self.set_back(state, undoing);
            }
            Event::PlanSet { .. } => self.set_back(state, undoing),
            Event::Cancelled { task, .. } => self.reopen(task, state, undoing),
            Event::Reviewed { task, .. } => self.review_again(task, state, undoing),
            Event::Retried { task } => self.close(task, state, undoing),
            Event::TaskKept { task, .. } | Event::TaskOpened { task } => {
                self.keep_as_before(task, state, now, undoing);
            }
            Event::Paused { .. } | Event::Resumed {} => self.pause_as_before(state, undoing),
            Event::AgentsPaused { agents, .. } | Event::AgentsResumed { agents } => {
                agents.iter().for_each(|agent| self.pause_agent_as_before(agent, state, undoing));
            }
            Event::FilesReserved { reservation } => {
                if state.reservation(&reservation.id).is_some() {
                    let reservations = vec![reservation.id.clone()];
                    undoing.events.push(Event::FilesReleased { reservations, expired: false });
                }
            }
            // They follow from others, or say only that an agent or a process lives.
            Event::AgentSeen { .. }
            | Event::AgentRegistered { .. }
            | Event::ParticipantJoined { .. }
            | Event::ParticipantGone { .. }
            | Event::ClockStepped { .. }
            | Event::MessagesRead { .. }
            | Event::TasksRetired { .. }
            | Event::TasksNumbered {}
            | Event::StubsRecalled { .. }
            | Event::StubsDropped { .. } => {}
            other => undoing.leave(other),
        }
    }

    fn uncreate(&self, id: &TaskId, state: &State, undoing: &mut Undoing) {
        let Some(task) = state.task(id) else { return undoing.changed(id, "has left the board") };
        match task.status {
            // A task with parts ends with the last of them.
            _ if state.is_parent(id) => {}
            TaskStatus::Cancelled | TaskStatus::Obsolete => {}
            TaskStatus::Available if task.attempts.is_empty() => {
                let reason = Some("its creation was undone".to_owned());
                undoing.events.push(Event::Cancelled { task: id.clone(), reason });
            }
            status => undoing.changed(id, &format!("is {} by now", status.as_str())),
        }
    }

    fn reopen(&self, id: &TaskId, state: &State, undoing: &mut Undoing) {
        let (Some(task), Some(was)) = (state.task(id), self.before.task(id)) else {
            return undoing.changed(id, "has left the board");
        };
        match was.status {
            _ if task.status != TaskStatus::Cancelled => {}
            status if status.is_unfinished() && status != TaskStatus::Review => {
                undoing.events.push(Event::Retried { task: id.clone() });
            }
            status => {
                let why = format!("was {}, and `retry` would begin it anew", status.as_str());
                undoing.changed(id, &why);
            }
        }
    }

    fn close(&self, id: &TaskId, state: &State, undoing: &mut Undoing) {
        let (Some(task), Some(was)) = (state.task(id), self.before.task(id)) else {
            return undoing.changed(id, "has left the board");
        };
        let after = self.after.task(id).map(|task| task.attempts.len());
        match was.status {
            status if task.status == status => {}
            _ if task.status != TaskStatus::Available || after != Some(task.attempts.len()) => {
                undoing.changed(id, "was taken since");
            }
            TaskStatus::Cancelled => {
                let reason = Some("its retry was undone".to_owned());
                undoing.events.push(Event::Cancelled { task: id.clone(), reason });
            }
            _ => undoing.changed(id, "stays available; `cancel` takes it from the queue"),
        }
    }

    /// A result is reviewed again while nobody has built on what the reviewer said.
    fn review_again(&self, id: &TaskId, state: &State, undoing: &mut Undoing) {
        let (Some(task), Some(set)) = (state.task(id), self.after.task(id)) else {
            return undoing.changed(id, "has left the board");
        };
        let last = |task: &Task| {
            let last = task.attempts.last()?;
            Some((last.number, last.reviewed.as_ref()?.at))
        };
        if last(task).is_none() || last(task) != last(set) || task.status != set.status {
            return undoing.changed(id, &format!("is {} by now", task.status.as_str()));
        }
        let has_begun = |other: &&Arc<Task>| {
            other.dependencies.contains(id)
                && (other.status.is_in_work() || other.status == TaskStatus::Done)
        };
        if task.status == TaskStatus::Done
            && let Some(other) = state.tasks().find(has_begun)
        {
            let why = format!("stays done: {} builds on it", other.id);
            return undoing.changed(id, &why);
        }
        undoing.reviews.push(id.clone());
    }

    fn keep_as_before(&self, id: &TaskId, state: &State, now: Timestamp, undoing: &mut Undoing) {
        let kept = |state: &State| state.task(id).and_then(|task| task.kept_for.clone());
        let (was, is) = (kept(&self.before).filter(|kept| kept.until > now), kept(state));
        let is_held = state.task(id).is_none_or(|task| task.status.is_held());
        if was == is && !is_held {
            return;
        }
        if is != kept(&self.after) || is_held {
            return undoing.changed(id, "was assigned or taken since");
        }
        let task = id.clone();
        undoing.events.push(match was {
            Some(kept) => Event::TaskKept { task, agent: kept.agent, until: kept.until },
            None => Event::TaskOpened { task },
        });
    }

    fn pause_as_before(&self, state: &State, undoing: &mut Undoing) {
        let reason =
            |state: &State| state.board().paused.as_ref().map(|pause: &Pause| pause.reason.clone());
        let (was, is) = (reason(&self.before), reason(state));
        if was == is {
            return;
        }
        if is != reason(&self.after) {
            return undoing.left.push("claims were paused or resumed since".to_owned());
        }
        undoing.events.push(was.map_or(Event::Resumed {}, |reason| Event::Paused { reason }));
    }

    fn pause_agent_as_before(&self, id: &AgentId, state: &State, undoing: &mut Undoing) {
        type Told = (Option<String>, bool);
        let told = |pause: &AgentPause| -> Told { (pause.reason.clone(), pause.stop) };
        let paused = |agent: Option<&Arc<Agent>>| Some(agent?.paused.as_deref().map(told));
        let (Some(is), was) = (paused(state.agent(id)), paused(self.before.agent(id))) else {
            return undoing.left.push(format!("{id} has left the board"));
        };
        if was.as_ref() == Some(&is) {
            return;
        }
        if Some(&is) != paused(self.after.agent(id)).as_ref() {
            return undoing.left.push(format!("{id} was paused or resumed since"));
        }
        let agents = vec![id.clone()];
        undoing.events.push(match was.flatten() {
            Some((reason, stop)) => Event::AgentsPaused { agents, reason, stop },
            None => Event::AgentsResumed { agents },
        });
    }

    fn set_back(&self, state: &State, undoing: &mut Undoing) {
        let (was, set, is) = (self.before.board(), self.after.board(), state.board());
        let back = |was: &str, set: &str, is: &str| match is {
            _ if is == was || was == set => Ok(None),
            _ if is == set => Ok(Some(was.to_owned())),
            _ => Err(()),
        };
        match back(&was.goal, &set.goal, &is.goal) {
            Ok(goal) => undoing.goal = goal.or(undoing.goal.take()),
            Err(()) => undoing.left.push("the goal was changed since".to_owned()),
        }
        match back(&was.master_plan, &set.master_plan, &is.master_plan) {
            Ok(plan) => undoing.master_plan = plan.or(undoing.master_plan.take()),
            Err(()) => undoing.left.push("the master plan was changed since".to_owned()),
        }
    }

    fn change_back(&self, id: &TaskId, state: &State, undoing: &mut Undoing) {
        if !undoing.seen.insert(id.clone()) {
            return;
        }
        let (Some(was), Some(set)) = (self.before.task(id), self.after.task(id)) else {
            return;
        };
        let Some(is) = state.task(id) else { return undoing.changed(id, "has left the board") };
        let mut fields = Fields { was, set, is, others: Vec::new() };
        let untitled =
            was.title.is_none() && fields.get(|task| task.title.clone(), "title").is_some();
        let mut change = TaskChange {
            title: if untitled {
                None
            } else {
                fields.get(|task| task.title.clone(), "title").flatten()
            },
            description: fields.get(|task| task.description.to_string(), "description"),
            priority: fields.get(|task| task.priority, "priority"),
            dependencies: fields.get(|task| task.dependencies.clone(), "dependencies"),
            context: fields
                .get(|task| task.context.as_deref().cloned().unwrap_or_default(), "context"),
            tags: fields.get(|task| task.tags.clone(), "tags"),
            demands: fields.get(|task| (*task.demands).clone(), "demands"),
            max_attempts: fields.get(|task| task.max_attempts, "max_attempts"),
            timeout_seconds: fields.get_span(|task| task.timeout_seconds, "timeout_seconds"),
            silent_minutes: fields.get_span(|task| task.silent_minutes, "silent_minutes"),
            estimated_minutes: fields
                .get(|task| task.estimated_minutes.unwrap_or_default(), "estimated_minutes"),
            review: fields.get(|task| task.review.unwrap_or(Review::Unsaid), "review"),
        };
        let refused = change.dependencies.as_ref().and_then(|ids| {
            state.check_dependencies(id, ids).and_then(|()| state.check_still_ready(is, ids)).err()
        });
        if let Some(refusal) = refused {
            change.dependencies = None;
            undoing.changed(id, &format!("keeps its dependencies: {refusal}"));
        }
        if !fields.others.is_empty() {
            let others = fields.others.join(", ");
            undoing.changed(id, &format!("keeps what was changed since or is in use: {others}"));
        }
        if untitled || change != TaskChange::default() {
            undoing.tasks.push(EditedTask { task: id.clone(), change, untitled });
        }
    }
}

/// One task before a command, after it, and as it is.
struct Fields<'s> {
    was: &'s Task,
    set: &'s Task,
    is: &'s Task,
    /// Fields that stay as they are
    others: Vec<&'static str>,
}

impl Fields<'_> {
    /// The value from before, if the command changed it and it is as the command left it.
    fn get<T: PartialEq>(&mut self, of: impl Fn(&Task) -> T, name: &'static str) -> Option<T> {
        let (was, set, is) = (of(self.was), of(self.set), of(self.is));
        if was == set || was == is {
            return None;
        }
        if is == set {
            return Some(was);
        }
        self.others.push(name);
        None
    }

    /// A limit of attempts, which stays if there was none before or an agent works under it.
    fn get_span(&mut self, of: impl Fn(&Task) -> Option<u32>, name: &'static str) -> Option<u32> {
        let before = self.get(of, name)?;
        if before.is_none() || self.is.status.is_held() {
            self.others.push(name);
            return None;
        }
        before
    }
}

impl Undoing {
    fn changed(&mut self, id: &TaskId, why: &str) {
        self.left.push(format!("{id} {why}"));
    }

    fn leave(&mut self, event: &Event) {
        let task = event.tasks().first().map(|id| id.to_string());
        let task = task.unwrap_or_else(|| "the board".to_owned());
        self.left.push(match event {
            Event::TasksReset { .. } => {
                format!("{task} has begun anew; the snapshot from before the reset has its result")
            }
            Event::Completed { .. } => {
                format!("{task} stays as it is; reset_tasks `{task}` begins it anew, without its result")
            }
            Event::MessageSent { .. } => {
                "the message was sent, and may have been read; send another".to_owned()
            }
            Event::Released { .. } => {
                format!("{task} is open; assign_task `{task}` keeps it for the agent that had it")
            }
            Event::StopRequested { .. } => {
                format!("{task}: its agent was asked to stop; retry_task `{task}` makes it available again")
            }
            Event::PlanImported { .. } => {
                "the plan stays; import the one before it again".to_owned()
            }
            Event::StateRestored { .. } => {
                "the restored state stays; restore_snapshot goes back to an earlier one".to_owned()
            }
            Event::CommandUndone { .. } => "an undo is not undone; do it again".to_owned(),
            Event::BoardCreated { .. } => "the board stays; nothing was before it".to_owned(),
            other => {
                format!("{task}: {} cannot be taken back", other.kind().replace('_', " "))
            }
        });
    }
}
