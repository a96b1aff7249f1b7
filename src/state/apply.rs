//! Event to state. Deterministic: reads nothing but the state and the event.

pub(super) mod task;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agent::{Agent, AgentPause, Participant, Waiting};
use super::artifact::Artifact;
use super::changed::Changed;
use super::discovery::Discovery;
use super::document::{Board, Pause, PlanVersion, Retired};
use super::event::{Event, Recorded, Saved};
use super::id::{AgentId, ParticipantId, TaskId};
use super::message::Message;
use super::plan::{kept_versions, leave_plan, leave_to_holder, replan};
use super::review::Reviewed;
use super::run::Runner;
use super::session::Session;
use super::stored::Replaced;
use super::task::{Attempt, AttemptError, Outcome, StopRequest, Task, TaskStatus};
use super::time::{MINUTE, SECOND, Timestamp};
use super::{ApplyError, Savepoint, State, Undo};
use task::{
    approve, begin_again, change_task, claim, complete, created, edit_by_hand, error_result,
    give_up, make_available, reject, replanned_error, set_aside,
};

/// What an event names but the state does not have.
pub(super) struct Absent(pub(super) String);

impl State {
    pub fn apply(&mut self, recorded: &Recorded) -> Result<(), ApplyError> {
        let follows = match &recorded.event {
            // An import brings the state before it along.
            Event::Imported { document, .. } if recorded.seq == document.board.seq + 1 => {
                recorded.seq > self.seq()
            }
            _ => recorded.seq == self.seq() + 1,
        };
        if !follows {
            return Err(ApplyError::OutOfOrder { head: self.seq(), found: recorded.seq });
        }
        let savepoint = self.savepoint();
        let applied = self
            .apply_event(recorded)
            .and_then(|()| self.follow_plan(savepoint, recorded.at))
            .and_then(|()| self.roll_up(savepoint, recorded.at))
            .and_then(|()| self.follow_runs(savepoint, recorded.at))
            .and_then(|()| self.apply_envelope(recorded, savepoint));
        applied.map_err(|Absent(what)| {
            self.rollback(savepoint);
            ApplyError::Missing { seq: recorded.seq, kind: recorded.event.kind(), what }
        })
    }

    /// Applies what every event changes. `begun` is the savepoint before the event's own changes.
    fn apply_envelope(&mut self, recorded: &Recorded, begun: Savepoint) -> Result<(), Absent> {
        self.note_level(&recorded.event);
        self.undo.push(Undo::Head(self.board.seq, self.board.last_activity));
        self.set_head(recorded.seq, recorded.at);
        if let Some(actor) = &recorded.actor
            && let Some(agent) = self.records.agents.get_mut(actor)
        {
            let goes_on = !matches!(recorded.event, Event::AgentWaits { .. });
            let give_sign = |agent: &mut Agent| {
                agent.last_heartbeat = recorded.at;
                if goes_on {
                    agent.waiting = None;
                }
            };
            // The event may have changed the agent already; the old value then is on the undo list.
            let is_new =
                |undo: &Undo| matches!(undo, Undo::Record(Replaced::Agent(id, _)) if id == actor);
            match Arc::get_mut(agent).filter(|_| self.undo[begun.0..].iter().any(is_new)) {
                Some(agent) => give_sign(agent),
                None => self.edit_agent(actor, give_sign)?,
            }
        }
        if self.remembered.note(recorded, &self.board.undone)
            && let Some(idempotency) = &recorded.idempotency
        {
            self.undo.push(Undo::Remembered(idempotency.key.clone()));
        }
        Ok(())
    }

    fn apply_event(&mut self, recorded: &Recorded) -> Result<(), Absent> {
        let at = recorded.at;
        match &recorded.event {
            Event::BoardCreated { board_id, numbered } => self.edit_board(|board| {
                board.board_id.clone_from(board_id);
                board.created_at = at;
                board.next_number = u64::from(*numbered);
            }),
            Event::Imported { document, .. } => {
                // Only ever the first event of a journal, so rollback can miss nothing.
                let (undo, remembered) =
                    (std::mem::take(&mut self.undo), std::mem::take(&mut self.remembered));
                *self = Self::from_document((**document).clone());
                (self.undo, self.remembered) = (undo, remembered);
                self.changed = Changed::Everything;
            }
            Event::PlanSet { goal, master_plan } => self.edit_board(|board| {
                board.goal = Arc::from(goal.as_str());
                if let Some(plan) = master_plan {
                    board.master_plan = Arc::from(plan.as_str());
                }
            }),
            Event::TasksCreated { tasks } => {
                let mut numbers = self.numbers();
                for task in tasks {
                    let ordinal = self.take_ordinal();
                    let mut task = created(task, at);
                    task.number = numbers.next();
                    task.demands = self.index.shared(task.demands);
                    self.number_above_spent(&mut task);
                    self.put(ordinal, Some(Arc::new(task)));
                }
                self.go_on_with(numbers);
            }
            Event::TaskUpdated { task, change, lease_until } => self.edit_task(task, |task| {
                change_task(task, change);
                if let (Some(until), Some(attempt)) = (lease_until, task.open_attempt_mut()) {
                    attempt.lease_until = *until;
                }
            })?,
            Event::AgentRegistered {
                agent,
                role,
                capabilities,
                tags,
                properties,
                metadata,
                max_concurrent,
                takeover,
            } => {
                let known = self.records.agents.get(agent).map(|known| Agent::clone(known));
                let mut agent = known.unwrap_or_else(|| Agent::new(agent.clone(), at));
                agent.role = *role;
                agent.capabilities = Arc::new(capabilities.clone());
                agent.tags = Arc::new(tags.clone());
                agent.properties = Arc::new(properties.clone());
                if let Some(metadata) = metadata {
                    agent.metadata = Arc::new(metadata.clone());
                }
                agent.max_concurrent = *max_concurrent;
                agent.last_heartbeat = at;
                if *takeover {
                    agent.present_through.clear();
                }
                self.put_agent(agent);
            }
            Event::AgentSeen { agent, through, lease_millis, answered, .. } => {
                self.see(agent, through.as_ref(), *lease_millis, at)?;
                if let Some(task) = answered {
                    self.edit_open_attempt(task, |_, attempt| {
                        attempt.participant.clone_from(through)
                    })?;
                }
            }
            Event::Noted { task, note } => self.edit_open_attempt(task, |_, attempt| {
                attempt.acted = true;
                if note.is_some() {
                    attempt.note.clone_from(note);
                }
            })?,
            Event::ParticipantJoined { participant } => {
                self.put(participant.id.clone(), Some(Arc::new(participant.clone())));
            }
            Event::ParticipantGone { participant, grace_until } => {
                self.lose(participant, *grace_until)?
            }
            Event::ClockStepped { gap_millis, grace_until } => {
                self.step_clock(*gap_millis, *grace_until)?
            }
            Event::Claimed { task, agent, attempt, lease_until, through, place } => {
                let opened = Attempt {
                    number: *attempt,
                    agent: agent.clone(),
                    participant: through.clone(),
                    place: place.clone(),
                    claimed_at: at,
                    lease_until: *lease_until,
                    stepped: false,
                    stepped_millis: 0,
                    acted: false,
                    started_at: None,
                    ended_at: None,
                    outcome: None,
                    error: None,
                    note: None,
                    reviewed: None,
                    late_result: None,
                };
                self.edit_task(task, |task| claim(task, opened))?;
                self.edit_agent(agent, |agent| {
                    agent.current_tasks.reserve_exact(1);
                    agent.current_tasks.push(task.clone());
                    agent.current_task = Some(task.clone());
                    agent.present_through.extend(through.clone());
                })?;
            }
            Event::Started { task } => {
                self.edit_open_attempt(task, |task, attempt| {
                    attempt.acted = true;
                    attempt.started_at = Some(at);
                    *task = Some(TaskStatus::InProgress);
                })?;
                self.edit_task(task, |task| task.started_at = Some(at))?;
            }
            Event::Completed { task, attempt, result, review } => {
                let agent = self.agent_of(task, *attempt)?;
                self.end_attempt(task, Outcome::Done, None, at)?;
                self.edit_task(task, |task| complete(task, *attempt, result, *review, at))?;
                if !review {
                    self.edit_agent(&agent, |agent| agent.tasks_completed += 1)?;
                }
            }
            Event::Reviewed { task, approved, comment } => {
                let reviewed = Reviewed {
                    approved: *approved,
                    by: recorded.actor.clone(),
                    comment: comment.clone(),
                    at,
                };
                self.review(task, reviewed)?;
            }
            Event::LateResultKept { task, attempt, result } => self.edit_task(task, |task| {
                if let Some(late) = task.attempts.iter_mut().find(|one| one.number == *attempt) {
                    late.late_result = Some(Arc::clone(result));
                }
            })?,
            Event::Failed { task, error, retry_at } => {
                let agent = self.end_attempt(task, Outcome::Failed, Some(error), at)?;
                self.edit_task(task, |task| match retry_at {
                    Some(_) => make_available(task, *retry_at),
                    None => give_up(task, error.message.clone(), at),
                })?;
                if let Some(agent) = agent {
                    self.edit_agent(&agent, |agent| agent.tasks_failed += 1)?;
                }
            }
            Event::Released { task, reason } => {
                let error = reason.as_ref().map(|reason| AttemptError {
                    category: "released".to_owned(),
                    message: reason.clone(),
                });
                self.end_attempt(task, Outcome::Released, error.as_ref(), at)?;
                self.edit_task(task, |task| {
                    task.uncounted += 1;
                    make_available(task, None);
                })?;
            }
            Event::LeaseExpired { task, counted, gave_up, .. } => {
                self.end_attempt(task, Outcome::Expired, None, at)?;
                self.edit_task(task, |task| {
                    task.uncounted += u32::from(!counted);
                    if *gave_up {
                        let error = format!("gave up after {} attempts", task.attempts_used());
                        give_up(task, error, at);
                    } else {
                        make_available(task, None);
                    }
                })?;
            }
            Event::StopRequested { task, reason, cancel } => self.edit_task(task, |task| {
                task.stop_requested =
                    Some(StopRequest { reason: reason.clone(), at, cancel: *cancel });
            })?,
            Event::Cancelled { task, reason } => {
                self.end_attempt(task, Outcome::Cancelled, None, at)?;
                self.edit_task(task, |task| {
                    set_aside(task);
                    make_available(task, None);
                    task.status = TaskStatus::Cancelled;
                    task.completed_at = Some(at);
                    task.result = reason.clone().map(error_result);
                })?;
            }
            Event::Retried { task } => self.edit_task(task, begin_again)?,
            Event::DiscoveryAdded {
                discovery,
                agent,
                content,
                tags,
                task_id,
                files,
                supersedes,
            } => {
                self.put_discovery(Discovery {
                    id: discovery.clone(),
                    agent_id: agent.clone(),
                    content: content.clone(),
                    tags: tags.clone(),
                    created_at: at,
                    task_id: task_id.clone(),
                    files: files.clone(),
                    supersedes: supersedes.clone(),
                });
            }
            Event::MessageSent { message } => {
                if let Some(asked) = &message.reply_to {
                    self.mark_read(&message.from, asked);
                }
                let ordinal = self.take_ordinal();
                let mut message = Message::clone(message);
                message.sent_at = at;
                message.unread_by.clone_from(&message.recipients);
                if let Some(number) = message.question {
                    self.edit_board(|board| board.questions = board.questions.max(number));
                }
                self.put(ordinal, Some(Arc::new(message)));
            }
            Event::MessagesRead { agent, messages } => {
                messages.iter().for_each(|id| self.mark_read(agent, id));
            }
            Event::MessagesRetired { messages } => {
                for id in messages {
                    let ordinal =
                        self.mail.ordinal(id).ok_or_else(|| Absent(format!("message {id}")))?;
                    self.put::<Message>(ordinal, None);
                }
            }
            Event::FilesReserved { reservation } => {
                let reservation = super::reservation::Reservation::clone(reservation);
                self.reserve(super::reservation::Reservation { created_at: at, ..reservation });
            }
            Event::FilesReleased { reservations, .. } => {
                reservations.iter().for_each(|id| self.unreserve(id))
            }
            Event::Paused { reason } => {
                self.edit_board(|board| board.paused = Some(Pause { reason: reason.clone(), at }));
            }
            Event::Resumed {} => self.edit_board(|board| board.paused = None),
            Event::AgentsPaused { agents, reason, stop } => {
                let pause = AgentPause { reason: reason.clone(), at, stop: *stop };
                agents.iter().try_for_each(|agent| self.pause_agent(agent, &pause))?;
            }
            Event::AgentsResumed { agents } => {
                agents.iter().try_for_each(|agent| self.resume_agent(agent))?;
            }
            Event::TasksRetired { tasks, parents } => {
                for task in tasks {
                    self.retire(task, parents.contains(&task.id), recorded.seq)?;
                }
            }
            Event::PlanImported {
                plan,
                created: new,
                changed,
                removed,
                leaving,
                known_again,
                brought,
                ..
            } => {
                self.edit_board(|board| {
                    let newest = PlanVersion { seq: recorded.seq, imported_at: at, ..plan.clone() };
                    board.plans = kept_versions(&board.plans, newest).into();
                });
                let mut numbers = self.numbers();
                for task in new {
                    let ordinal = self.take_ordinal();
                    let mut task = created(task, at);
                    task.number = numbers.next();
                    self.number_above_spent(&mut task);
                    self.put(ordinal, Some(Arc::new(task)));
                }
                self.go_on_with(numbers);
                for one in changed {
                    if one.becomes.is_some() {
                        self.end_attempt(
                            &one.task,
                            Outcome::Cancelled,
                            Some(&replanned_error("changed")),
                            at,
                        )?;
                    }
                    self.edit_task(&one.task, |task| replan(task, one, at))?;
                }
                for id in removed {
                    self.end_attempt(
                        id,
                        Outcome::Cancelled,
                        Some(&replanned_error("left out")),
                        at,
                    )?;
                    self.edit_task(id, |task| leave_plan(task, *known_again, at))?;
                }
                for id in leaving {
                    let new = new.iter().find(|one| one.after() == Some(id)).map(|one| &one.id);
                    self.edit_task(id, |task| leave_to_holder(task, new, at))?;
                }
                if let Some(brought) = brought {
                    self.bring(brought, at)?;
                }
            }
            Event::TasksReset { tasks } => {
                for id in tasks {
                    let error = AttemptError {
                        category: "reset".to_owned(),
                        message: "the task was reset".to_owned(),
                    };
                    self.end_attempt(id, Outcome::Released, Some(&error), at)?;
                    self.edit_task(id, |task| {
                        begin_again(task);
                        task.reset_at = Some(at);
                        task.kept = None;
                    })?;
                }
            }
            Event::StateEdited { goal, master_plan, tasks, .. }
            | Event::CommandUndone { goal, master_plan, tasks, .. } => {
                self.edit_board(|board| {
                    board.goal = goal.as_deref().map_or_else(|| Arc::clone(&board.goal), Arc::from);
                    board.master_plan = master_plan
                        .as_deref()
                        .map_or_else(|| Arc::clone(&board.master_plan), Arc::from);
                });
                for edited in tasks {
                    self.edit_task(&edited.task, |task| edit_by_hand(task, edited))?;
                }
                if let Event::CommandUndone { reviews, .. } = &recorded.event {
                    reviews.iter().try_for_each(|id| self.review_again(id))?;
                }
            }
            Event::StateRestored { document, .. } | Event::Purged { document, .. } => {
                self.replace_by((**document).clone());
            }
            Event::RunCreated { run, session } => {
                let mut task = created(run, at);
                task.demands = self.index.shared(task.demands);
                self.begin_run(run, session.as_deref(), task, at)?;
            }
            Event::RunFailed { run_id, error } => {
                self.end_attempt(run_id, Outcome::Expired, Some(error), at)?;
                self.edit_task(run_id, |task| give_up(task, error.message.clone(), at))?;
            }
            Event::RunsAwaited { runs, until } => {
                for id in runs {
                    self.edit_run(id, |run| run.no_match_until = Some(*until))?;
                }
            }
            Event::ResultsAdded { run_id } => self.tell_run(run_id)?,
            Event::AgentWaits { agent, reason, what, place } => {
                let waiting = Waiting {
                    reason: *reason,
                    what: what.clone(),
                    place: place.clone(),
                    since: at,
                };
                self.edit_agent(agent, |agent| agent.waiting = Some(Box::new(waiting)))?;
            }
            Event::RunnerSeen { agent, require_matching_tags } => {
                let runner = Runner { require_matching_tags: *require_matching_tags };
                self.edit_agent(agent, |agent| agent.runner = Some(runner))?;
            }
            Event::WorkflowSaved(saved) => {
                self.save_workflow(saved, at);
                self.note_saved(saved)?;
            }
            Event::ArtifactAttached { task, artifact } => self.edit_task(task, |task| {
                task.artifacts.retain(|one| one.name != artifact.name);
                task.artifacts.push(Artifact { at, ..Artifact::clone(artifact) });
            })?,
            Event::CheckpointsDropped { checkpoints, workflow, .. } => {
                self.drop_checkpoints(checkpoints, workflow.as_ref());
            }
            Event::DiscoveriesRetired { discoveries } => {
                for id in discoveries {
                    self.retire_discovery(id).ok_or_else(|| Absent(format!("discovery {id}")))?;
                }
            }
            Event::SessionsRetired { sessions } => {
                for id in sessions {
                    self.session(id).ok_or_else(|| Absent(format!("session {id}")))?;
                    self.put::<Session>(id.clone(), None);
                }
            }
            Event::TaskKept { task, agent, until } => self.keep_for(task, agent, *until)?,
            Event::TaskOpened { task } => self.edit_task(task, |task| task.kept_for = None)?,
            Event::TasksNumbered {} => self.number_tasks(),
            Event::StubsDropped { stubs } => {
                let mut leaves = 0;
                for id in stubs.keys() {
                    let stub = self.retired_task(id);
                    let stub = stub.ok_or_else(|| Absent(format!("retired task {id}")))?;
                    leaves += u64::from(!stub.parent);
                    self.put::<Retired>(id.clone(), None);
                }
                self.edit_board(|board| board.dropped_stubs += leaves);
            }
            Event::StubsRecalled { stubs } => {
                for (id, stub) in stubs {
                    self.put(id.clone(), Some(Arc::new(stub.clone())));
                }
                let leaves = stubs.values().filter(|stub| !stub.parent).count() as u64;
                self.edit_board(|board| {
                    board.dropped_stubs = board.dropped_stubs.saturating_sub(leaves);
                });
            }
            Event::AgentsRetired { agents } => {
                for id in agents {
                    let unread: Vec<_> =
                        self.unread(id).map(|message| message.id.clone()).collect();
                    unread.iter().for_each(|message| self.mark_read(id, message));
                    self.agent(id).ok_or_else(|| Absent(format!("agent {id}")))?;
                    self.put::<Agent>(id.clone(), None);
                }
            }
        }
        Ok(())
    }

    /// Updates the status of all parents of the tasks changed since `since`.
    fn roll_up(&mut self, since: Savepoint, at: Timestamp) -> Result<(), Absent> {
        let mut above: BTreeSet<TaskId> = BTreeSet::new();
        for undo in &self.undo[since.0..] {
            let Undo::Record(Replaced::Task(ordinal, old)) = undo else { continue };
            for task in old.iter().chain(self.records.tasks.get(*ordinal)) {
                above.extend(task.parent.clone());
                above.extend(Some(&task.id).filter(|id| self.is_parent(id)).cloned());
            }
        }
        for start in above {
            let mut next = Some(start);
            while let Some(id) = next.take() {
                let Some(status) = self.rolled_up(&id) else { break };
                let Some(task) = self.task(&id).filter(|task| task.status != status) else { break };
                next.clone_from(&task.parent);
                self.edit_task(&id, |task| {
                    make_available(task, None);
                    task.status = status;
                    task.completed_at = (status != TaskStatus::Available).then_some(at);
                })?;
            }
        }
        Ok(())
    }

    /// Notes that an agent which saves a checkpoint of a task has begun it.
    fn note_saved(&mut self, saved: &Saved) -> Result<(), Absent> {
        if let Some((id, kept)) = &saved.kept {
            self.edit_task(id, |task| task.kept = Some(Arc::clone(kept)))?;
        }
        let Some((_, checkpoint)) = &saved.checkpoint else { return Ok(()) };
        let Some(id) = &checkpoint.task else { return Ok(()) };
        let open = self.task(id).and_then(|task| task.open_attempt());
        if open.is_some_and(|open| !open.acted && Some(&open.agent) == checkpoint.agent.as_ref()) {
            self.edit_open_attempt(id, |_, attempt| attempt.acted = true)
        } else {
            Ok(())
        }
    }

    pub(super) fn number_above_spent(&mut self, task: &mut Task) {
        if let Some(attempt) = self.board.spent_attempts.get(&task.id).copied() {
            (task.attempt, task.uncounted) = (attempt, attempt);
            self.edit_board(|board| _ = Arc::make_mut(&mut board.spent_attempts).remove(&task.id));
        }
    }

    pub(super) fn edit_task(
        &mut self,
        id: &TaskId,
        edit: impl FnOnce(&mut Task),
    ) -> Result<(), Absent> {
        let absent = || Absent(format!("task {id}"));
        let ordinal = self.ordinal_of(id).ok_or_else(absent)?;
        let mut task = Task::clone(self.records.tasks.get(ordinal).ok_or_else(absent)?);
        edit(&mut task);
        self.put(ordinal, Some(Arc::new(task)));
        Ok(())
    }

    /// Edits the open attempt. `edit` may set the task's status, which it cannot reach through the
    /// attempt.
    fn edit_open_attempt(
        &mut self,
        id: &TaskId,
        edit: impl FnOnce(&mut Option<TaskStatus>, &mut Attempt),
    ) -> Result<(), Absent> {
        let mut found = false;
        self.edit_task(id, |task| {
            let mut status = None;
            if let Some(attempt) = task.open_attempt_mut() {
                found = true;
                edit(&mut status, attempt);
            }
            task.status = status.unwrap_or(task.status);
        })?;
        if found { Ok(()) } else { Err(Absent(format!("an open attempt of task {id}"))) }
    }

    pub(super) fn edit_agent(
        &mut self,
        id: &AgentId,
        edit: impl FnOnce(&mut Agent),
    ) -> Result<(), Absent> {
        let known = self.agent(id).ok_or_else(|| Absent(format!("agent {id}")))?;
        let mut agent = Agent::clone(known);
        edit(&mut agent);
        self.put_agent(agent);
        Ok(())
    }

    fn agent_of(&self, task: &TaskId, attempt: u32) -> Result<AgentId, Absent> {
        let found =
            self.task(task).and_then(|task| task.attempts.iter().find(|one| one.number == attempt));
        found
            .map(|attempt| attempt.agent.clone())
            .ok_or_else(|| Absent(format!("attempt {attempt} of task {task}")))
    }

    /// Ends the review of a task in review.
    fn review(&mut self, id: &TaskId, reviewed: Reviewed) -> Result<(), Absent> {
        let mut agent = None;
        self.edit_task(id, |task| {
            if task.status != TaskStatus::Review {
                return;
            }
            if let Some(last) = task.attempts.last_mut() {
                agent = Some(last.agent.clone());
                last.reviewed = Some(Box::new(reviewed.clone()));
            }
            if reviewed.approved {
                approve(task, reviewed.at);
            } else {
                reject(task, reviewed.comment.clone());
            }
        })?;
        let agent = agent.ok_or_else(|| Absent(format!("a review of task {id}")))?;
        // It may have retired meanwhile.
        if reviewed.approved && self.agent(&agent).is_some() {
            self.edit_agent(&agent, |agent| agent.tasks_completed += 1)?;
        }
        Ok(())
    }

    /// Closes the open attempt, if any, and takes the task off its agent's list. Returns the agent.
    fn end_attempt(
        &mut self,
        id: &TaskId,
        outcome: Outcome,
        error: Option<&AttemptError>,
        at: Timestamp,
    ) -> Result<Option<AgentId>, Absent> {
        let mut owner = None;
        self.edit_task(id, |task| {
            if let Some(attempt) = task.open_attempt_mut() {
                attempt.outcome = Some(outcome);
                attempt.ended_at = Some(at);
                attempt.error = error.cloned();
                owner = Some(attempt.agent.clone());
            }
            task.stop_requested = None;
        })?;
        if let Some(agent) = &owner {
            self.edit_agent(agent, |agent| {
                agent.current_tasks.retain(|held| held != id);
                agent.current_task = agent.current_tasks.last().cloned();
            })?;
            self.unreserve_all_of(id);
        }
        Ok(owner)
    }

    fn see(
        &mut self,
        id: &AgentId,
        through: Option<&ParticipantId>,
        lease_millis: i64,
        at: Timestamp,
    ) -> Result<(), Absent> {
        self.edit_agent(id, |agent| {
            agent.last_heartbeat = at;
            agent.present_through.extend(through.cloned());
        })?;
        let agent = Arc::clone(&self.records.agents[id]);
        for task in &agent.current_tasks {
            let present = agent.is_present();
            self.edit_task(task, |task| {
                let until = lease_end(task, present, lease_millis, at);
                if let Some(attempt) = task.open_attempt_mut() {
                    attempt.lease_until = until;
                    attempt.stepped = false;
                }
            })?;
        }
        Ok(())
    }

    fn lose(&mut self, participant: &ParticipantId, grace_until: Timestamp) -> Result<(), Absent> {
        self.put::<Participant>(participant.clone(), None);
        let there: Vec<_> = self
            .records
            .agents
            .values()
            .filter(|agent| agent.present_through.contains(participant))
            .cloned()
            .collect();
        for agent in there {
            self.edit_agent(&agent.id, |agent| {
                agent.present_through.remove(participant);
                // The prompt went with the process.
                if !agent.is_present() {
                    agent.waiting = None;
                }
            })?;
            if agent.present_through.len() > 1 {
                continue;
            }
            for task in &agent.current_tasks {
                self.edit_open_attempt(task, |_, attempt| {
                    attempt.lease_until = attempt.lease_until.min(grace_until)
                })?;
            }
        }
        Ok(())
    }

    fn step_clock(&mut self, gap_millis: i64, grace_until: Timestamp) -> Result<(), Absent> {
        self.edit_board(|board: &mut Board| board.grace_until = Some(grace_until));
        self.move_reservations(gap_millis);
        self.step_runs(gap_millis)?;
        let held: Vec<_> = self
            .records
            .tasks
            .values()
            .filter(|task| task.status.is_held())
            .map(|task| task.id.clone())
            .collect();
        for task in held {
            self.edit_open_attempt(&task, |_, attempt| {
                attempt.lease_until = (attempt.lease_until + gap_millis).max(grace_until);
                attempt.stepped = true;
                attempt.stepped_millis = attempt.stepped_millis.saturating_add(gap_millis);
            })?;
        }
        Ok(())
    }

    fn retire(&mut self, task: &Task, parent: bool, seq: u64) -> Result<(), Absent> {
        let ordinal =
            self.ordinal_of(&task.id).ok_or_else(|| Absent(format!("task {}", task.id)))?;
        self.put(task.id.clone(), Some(Arc::new(Retired::of(task, parent, seq))));
        self.put::<Task>(ordinal, None);
        if parent {
            return Ok(());
        }
        self.edit_board(|board| {
            let archived =
                if task.run.is_some() { &mut board.archived_runs } else { &mut board.archived };
            match task.status {
                TaskStatus::Done => archived.done += 1,
                TaskStatus::Cancelled => archived.cancelled += 1,
                _ => archived.obsolete += 1,
            }
        });
        Ok(())
    }
}

/// End of a lease of `lease_millis` from `at`. The task's own `silent_minutes` and
/// `timeout_seconds` take precedence.
pub fn lease_end(task: &Task, present: bool, lease_millis: i64, at: Timestamp) -> Timestamp {
    let own = task.silent_minutes.filter(|_| present).map(|minutes| i64::from(minutes) * MINUTE);
    let until = at + own.unwrap_or(lease_millis);
    let claimed_at =
        task.open_attempt().map_or(at, |attempt| attempt.claimed_at + attempt.stepped_millis);
    match task.timeout_seconds {
        Some(seconds) => until.min(claimed_at + i64::from(seconds) * SECOND),
        None => until,
    }
}
